//! [`JournalReaders`]: readers of this member's journal for others, one for each member that is behind. A reader stays where
//! it has read to, so that the next piece costs what it moves, wherever in the journal that is.
//!
//! A kept reader has looked a little ahead. So all of them go when this journal is cut, and when another leads: what they
//! have looked at may not be there any more. Retention may delete the segment that one stands in: it reads that to its end,
//! and is told then that the next frame is not held.

use crate::ClusterError;
use crate::consensus::MemberId;
use gapless_journal::{JournalError, JournalReader, Replay};
use gapless_wire::aligned_length;
use std::path::PathBuf;

/// A reader that nobody has needed for so long goes, and the segment that it maps with it, ns.
const IDLE_NS_MAX: u64 = 2_000_000_000;

/// What became of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The frames up to this sequence.
    Until(u64),
    /// The journal does not hold the first of them any more.
    NotHeld,
}

/// See the module.
pub(super) struct JournalReaders {
    journal: PathBuf,
    kept: Vec<Kept>,
}

struct Kept {
    member: MemberId,
    replay: Replay,
    used_ns: u64,
}

impl JournalReaders {
    pub const fn new(journal: PathBuf) -> Self {
        Self { journal, kept: Vec::new() }
    }

    /// Appends frames from `first` on to `frames`, padded: up to `last`, but no more once there are `bytes_max`. Says up to
    /// where that is; one before `first` if the journal ends there.
    ///
    /// # Errors
    /// Damage.
    pub fn read(
        &mut self,
        member: MemberId,
        (first, last): (u64, u64),
        bytes_max: usize,
        (frames, now_ns): (&mut Vec<u8>, u64),
    ) -> Result<Found, ClusterError> {
        let mut next = first;
        let outcome = self.stand_at(member, first, now_ns).and_then(|replay| {
            replay.read_until(last);
            while next <= last && frames.len() < bytes_max {
                let Some(frame) = replay.next_frame()? else { break };
                let padding = aligned_length(frame.length()) - frame.length();
                frames.extend_from_slice(frame.bytes());
                frames.extend_from_slice(&[0; 8][..padding]);
                next += 1;
            }
            Ok(())
        });
        if let Err(error) = outcome {
            self.forget(member);
            if !self.is_cut_off(&error, next) {
                return Err(error.into());
            }
            if next == first {
                return Ok(Found::NotHeld);
            }
        }
        Ok(Found::Until(next - 1))
    }

    /// Whether an error only says that retention has deleted the frame `sequence`, perhaps while a reader stood before it.
    #[cold]
    fn is_cut_off(&self, error: &JournalError, sequence: u64) -> bool {
        matches!(error, JournalError::NotHeld { .. })
            || JournalReader::open(&self.journal).is_ok_and(|reader| sequence < reader.first_sequence())
    }

    /// The reader of a member, before the frame `first`.
    fn stand_at(&mut self, member: MemberId, first: u64, now_ns: u64) -> Result<&mut Replay, JournalError> {
        let at = self.kept.iter().position(|kept| kept.member == member);
        let at = match at {
            Some(at) if self.kept[at].replay.next_sequence() == first => at,
            other => {
                // What was sent was lost, or it stands elsewhere for another reason.
                other.into_iter().for_each(|at| drop(self.kept.swap_remove(at)));
                let replay = JournalReader::open(&self.journal).and_then(|reader| reader.replay(first))?;
                self.kept.push(Kept { member, replay, used_ns: now_ns });
                self.kept.len() - 1
            }
        };
        self.kept[at].used_ns = now_ns;
        Ok(&mut self.kept[at].replay)
    }

    /// A member is gone, or has what it was behind.
    pub fn forget(&mut self, member: MemberId) {
        self.kept.retain(|kept| kept.member != member);
    }

    /// What readers have looked at ahead may not be there any more.
    pub fn forget_all(&mut self) {
        self.kept.clear();
    }

    /// Lets go what nobody has needed for a while.
    pub fn forget_idle(&mut self, now_ns: u64) {
        if !self.kept.is_empty() {
            self.kept.retain(|kept| now_ns.saturating_sub(kept.used_ns) < IDLE_NS_MAX);
        }
    }
}
