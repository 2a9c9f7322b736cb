//! Flow control for lagging members: small pieces, several in flight, so that a leader's turn stays short and no member
//! gets more than it can accept.

use super::journal_readers::ReadOutcome;
use super::{Member, transmit};
use crate::consensus::core::lagging::LaggingFollower;
use crate::consensus::wire::ENTRIES_MAX;
use crate::consensus::{MemberId, OutgoingMessage};
use std::collections::VecDeque;

/// An entry is never split.
const PIECE_BYTES: usize = 256 << 10;
/// One more piece may exceed it.
const IN_FLIGHT_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
pub(super) struct LaggingAppends {
    windows: Vec<PeerWindow>,
    turn: usize,
    frames: Vec<u8>,
    ends: Vec<(u64, usize)>,
    messages: Vec<OutgoingMessage>,
}

struct PeerWindow {
    member: MemberId,
    next_index: u64,
    /// Last entry of each piece in flight, and the piece's bytes.
    in_flight: VecDeque<(u64, usize)>,
}

impl LaggingAppends {
    fn window(&mut self, follower: &LaggingFollower) -> &mut PeerWindow {
        let at = self.windows.iter().position(|window| window.member == follower.member).unwrap_or_else(|| {
            self.windows.push(PeerWindow { member: follower.member, next_index: 0, in_flight: VecDeque::new() });
            self.windows.len() - 1
        });
        let window = &mut self.windows[at];
        if window.next_index != follower.next_index {
            // The member was found at another entry: pieces in flight no longer count.
            window.in_flight.clear();
        }
        while window.in_flight.pop_front_if(|(index, _)| *index <= follower.matched_index).is_some() {}
        window
    }
}

impl PeerWindow {
    fn has_room(&self) -> bool {
        self.in_flight.iter().map(|(_, bytes)| bytes).sum::<usize>() < IN_FLIGHT_BYTES_MAX
    }
}

impl Member {
    pub(super) fn send_to_lagging(&mut self) -> bool {
        if !self.core.consensus.has_lagging() || !self.core.catch_up_budget.has_budget(self.core.now.monotonic_ns) {
            return false;
        }
        self.mark_lagging();
        let all = self.core.consensus.lagging();
        self.lagging.windows.retain(|window| all.iter().any(|follower| follower.member == window.member));
        for at in 0..all.len() {
            let follower = all[self.lagging.turn.wrapping_add(at) % all.len()];
            let number = follower.member.get();
            if !self.links.is_connected(number) {
                self.core.consensus.pause_lagging(follower.member);
                continue;
            }
            let queued_bytes = self.links.statistics(number).map_or(0, |link| link.queued_bytes);
            if queued_bytes < PIECE_BYTES as u64 && self.lagging.window(&follower).has_room() {
                self.lagging.turn = self.lagging.turn.wrapping_add(at + 1);
                self.send_piece(&follower);
                return true;
            }
        }
        false
    }

    /// Marks members that need more than one message. The window holds at least two messages, so it does not soon lose
    /// frames of the others.
    pub(super) fn mark_lagging(&mut self) {
        let first_sequence = self.core.ingress.first_within(self.message_bytes_max);
        self.core.consensus.set_lagging_before(first_sequence);
    }

    fn send_piece(&mut self, follower: &LaggingFollower) {
        let (mut frames, mut messages) =
            (std::mem::take(&mut self.lagging.frames), std::mem::take(&mut self.lagging.messages));
        let Some(last_index) = self.read_piece(follower, &mut frames) else {
            self.core.consensus.unreachable(follower.member);
            self.core.consensus.pause_lagging(follower.member);
            self.lagging.frames = frames;
            return;
        };
        self.core.consensus.append_to_lagging(follower, last_index, &mut messages);
        for outgoing in messages.drain(..) {
            let is_it = outgoing.to == follower.member
                && outgoing.is_append()
                && outgoing.message.index + 1 == follower.next_index;
            let Some(last) = outgoing.message.get_entries().last().filter(|_| is_it).map(|entry| entry.index) else {
                self.core.outbox.push(outgoing);
                continue;
            };
            // Raft-rs may make an append of fewer entries.
            let ends = &self.lagging.ends;
            let length = ends.iter().take_while(|(index, _)| *index <= last).last().map_or(0, |(_, length)| *length);
            let window = self.lagging.window(follower);
            window.in_flight.push_back((last, length));
            window.next_index = last + 1;
            self.core.catch_up_budget.spend(length);
            if !transmit(&mut self.links, &mut self.bytes, &outgoing, &frames[..length]) {
                self.core.consensus.unreachable(follower.member);
            }
        }
        (self.lagging.frames, self.lagging.messages) = (frames, messages);
    }

    /// Returns the last entry's index; `None`, with a warning, if the first frames are not held or cannot be read now.
    fn read_piece(&mut self, follower: &LaggingFollower, frames: &mut Vec<u8>) -> Option<u64> {
        frames.clear();
        self.lagging.ends.clear();
        let Self { core, lagging: LaggingAppends { ends, .. }, .. } = self;
        let mut last_index = None;
        for index in (follower.next_index..).take(ENTRIES_MAX) {
            let Some(batch) = core.consensus.batch_at(index) else { break };
            if !batch.is_empty() {
                if frames.len() >= PIECE_BYTES {
                    break;
                }
                let before = frames.len();
                let range = (batch.first_sequence, batch.end_sequence);
                let to = (&mut *frames, core.now.monotonic_ns);
                let outcome = core.readers.read(follower.member, range, usize::MAX, to);
                if outcome != ReadOutcome::Until(batch.end_sequence) {
                    frames.truncate(before);
                    if last_index.is_none() && outcome != ReadOutcome::NotNow {
                        let reason = format!("an entry that it needs, {index}, is not in this journal any more");
                        core.warn(follower.member, &reason);
                    }
                    break;
                }
            }
            ends.push((index, frames.len()));
            last_index = Some(index);
        }
        last_index
    }
}
