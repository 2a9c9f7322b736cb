//! [`LateAppends`]: how fast members that are late are sent what they lack. A piece at a time, and some on the way at once:
//! a leader's turn stays short, and who is late is not sent more than it can take.

use super::journal_readers::Found;
use super::{Member, transmit};
use crate::ClusterError;
use crate::consensus::core::late::Late;
use crate::consensus::wire::ENTRIES_MAX;
use crate::consensus::{MemberId, Outgoing};
use std::collections::VecDeque;

/// Frames of one piece, bytes; an entry goes whole.
const PIECE_BYTES: usize = 256 << 10;
/// On the way to one member at once, bytes; a piece more may go beyond.
const ON_THE_WAY_BYTES_MAX: usize = 1 << 20;

/// What is on the way to members that are late.
#[derive(Default)]
pub(super) struct LateAppends {
    paces: Vec<Pace>,
    /// Whose turn it is.
    turn: usize,
    /// Frames of a piece, and where those of each entry end.
    frames: Vec<u8>,
    ends: Vec<(u64, usize)>,
    messages: Vec<Outgoing>,
}

/// Of one member.
struct Pace {
    member: MemberId,
    /// The entry that follows what was sent last.
    next_index: u64,
    /// The last entry of each piece that was sent, and the piece's bytes.
    on_the_way: VecDeque<(u64, usize)>,
}

impl LateAppends {
    fn pace(&mut self, late: &Late) -> &mut Pace {
        let at = self.paces.iter().position(|pace| pace.member == late.member).unwrap_or_else(|| {
            self.paces.push(Pace { member: late.member, next_index: 0, on_the_way: VecDeque::new() });
            self.paces.len() - 1
        });
        let pace = &mut self.paces[at];
        if pace.next_index != late.next_index {
            // It was found to be elsewhere: what was on the way does not count.
            pace.on_the_way.clear();
        }
        while pace.on_the_way.pop_front_if(|(index, _)| *index <= late.matched_index).is_some() {}
        pace
    }
}

impl Pace {
    fn has_room(&self) -> bool {
        self.on_the_way.iter().map(|(_, bytes)| bytes).sum::<usize>() < ON_THE_WAY_BYTES_MAX
    }
}

impl Member {
    /// Sends the next piece to one of the members that are late; whether one was sent.
    pub(super) fn send_late(&mut self) -> Result<bool, ClusterError> {
        if !self.core.consensus.has_late() || !self.core.late_budget.has_some(self.core.now.monotonic_ns) {
            return Ok(false);
        }
        self.look_who_is_late();
        let all = self.core.consensus.late();
        self.late.paces.retain(|pace| all.iter().any(|late| late.member == pace.member));
        for at in 0..all.len() {
            let late = all[self.late.turn.wrapping_add(at) % all.len()];
            let number = late.member.get();
            if !self.links.is_connected(number) {
                self.core.consensus.pause_late(late.member);
                continue;
            }
            let queued_bytes = self.links.statistics(number).map_or(0, |link| link.queued_bytes);
            if queued_bytes < PIECE_BYTES as u64 && self.late.pace(&late).has_room() {
                self.late.turn = self.late.turn.wrapping_add(at + 1);
                self.send_piece(&late)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Who needs more than a message takes is late; the window holds two messages at least, so it will not lose what others
    /// need very soon.
    pub(super) fn look_who_is_late(&mut self) {
        let first_sequence = self.core.ingress.first_within(self.message_bytes_max);
        self.core.consensus.is_late_before(first_sequence);
    }

    fn send_piece(&mut self, late: &Late) -> Result<(), ClusterError> {
        let (mut frames, mut messages) =
            (std::mem::take(&mut self.late.frames), std::mem::take(&mut self.late.messages));
        let Some(last_index) = self.read_piece(late, &mut frames)? else {
            let reason = format!("an entry that it needs, {}, is not in this journal any more", late.next_index);
            self.core.warn(late.member, &reason);
            self.core.consensus.unreachable(late.member);
            self.core.consensus.pause_late(late.member);
            self.late.frames = frames;
            return Ok(());
        };
        self.core.consensus.append_late(late, last_index, &mut messages);
        for outgoing in messages.drain(..) {
            let is_it =
                outgoing.to == late.member && outgoing.is_append() && outgoing.message.index + 1 == late.next_index;
            let Some(last) = outgoing.message.get_entries().last().filter(|_| is_it).map(|entry| entry.index) else {
                self.core.outbox.push(outgoing);
                continue;
            };
            // Raft-rs may give it fewer entries than there are frames for.
            let ends = &self.late.ends;
            let length = ends.iter().take_while(|(index, _)| *index <= last).last().map_or(0, |(_, length)| *length);
            let pace = self.late.pace(late);
            pace.on_the_way.push_back((last, length));
            pace.next_index = last + 1;
            self.core.late_budget.spend(length);
            if !transmit(&mut self.links, &mut self.bytes, &outgoing, &frames[..length]) {
                self.core.consensus.unreachable(late.member);
            }
        }
        (self.late.frames, self.late.messages) = (frames, messages);
        Ok(())
    }

    /// Reads the frames of the next entries of a member that is late; up to which entry. `None` if the journal does not hold
    /// those of the first.
    fn read_piece(&mut self, late: &Late, frames: &mut Vec<u8>) -> Result<Option<u64>, ClusterError> {
        frames.clear();
        self.late.ends.clear();
        let Self { core, late: LateAppends { ends, .. }, .. } = self;
        let mut last_index = None;
        for index in (late.next_index..).take(ENTRIES_MAX) {
            let Some(batch) = core.consensus.batch_at(index) else { break };
            if !batch.is_empty() {
                if frames.len() >= PIECE_BYTES {
                    break;
                }
                let before = frames.len();
                let range = (batch.first_sequence, batch.end_sequence);
                let to = (&mut *frames, core.now.monotonic_ns);
                if core.readers.read(late.member, range, usize::MAX, to)? != Found::Until(batch.end_sequence) {
                    frames.truncate(before);
                    break;
                }
            }
            ends.push((index, frames.len()));
            last_index = Some(index);
        }
        Ok(last_index)
    }
}
