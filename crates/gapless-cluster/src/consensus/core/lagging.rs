//! Lagging followers: they need entries whose frames have left their leader's window, or more of them than one message
//! takes. Raft-rs would send them the whole log at once, in messages without a limit of bytes. So the storage reports
//! these entries as temporarily unavailable. The agent releases the next piece for each such member when it has read
//! that piece and the previous one has arrived. Raft-rs then makes the message like any other.

use super::Consensus;
use crate::consensus::effects::OutgoingMessage;
use crate::consensus::types::{Batch, MemberId};
use raft::ProgressState;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaggingFollower {
    pub member: MemberId,
    /// Next entry to send.
    pub next_index: u64,
    /// Index up to which its log equals the leader's.
    pub matched_index: u64,
}

impl Consensus {
    /// Sets the first sequence in the leader's window: members that need earlier frames lag.
    pub fn set_lagging_before(&mut self, first_sequence: u64) {
        let log = self.raw.raft.mut_store();
        log.set_lagging_before(first_sequence);
        log.set_lagging(true);
    }

    /// Returns whether a member may lag. Free of cost if none does.
    #[inline]
    #[must_use]
    pub fn has_lagging(&self) -> bool {
        self.storage().has_lagging()
    }

    /// Returns the lagging members that may be sent entries now, ordered by number.
    #[must_use]
    pub fn lagging(&self) -> Vec<LaggingFollower> {
        let raft = &self.raw.raft;
        let (log, last) = (self.storage(), raft.raft_log.last_index());
        let follower = |(number, progress): (&u64, &raft::Progress)| {
            let member = MemberId::new(*number).filter(|member| *member != self.id)?;
            let next_index = progress.next_idx;
            let is_there = next_index > log.start().index && next_index <= last;
            // A member that is offered a log position is paused.
            let waits = is_there && !progress.is_paused() && log.is_lagging_at(next_index);
            waits.then_some(LaggingFollower { member, next_index, matched_index: progress.matched })
        };
        let mut all: Vec<_> =
            if self.is_leader() { raft.prs().iter().filter_map(follower).collect() } else { Vec::new() };
        all.sort_unstable_by_key(|follower| follower.member);
        // A member that begins to lag is given no entries at first.
        log.set_lagging(!all.is_empty());
        all
    }

    /// Pauses a lagging member without a connection: nothing is sent to it until it answers again.
    pub fn pause_lagging(&mut self, member: MemberId) {
        if let Some(progress) = self.raw.raft.mut_prs().get_mut(member.get())
            && progress.state == ProgressState::Probe
        {
            progress.pause();
        }
    }

    /// Returns the batch of the entry at this index, if the log has it.
    #[must_use]
    pub fn batch_at(&self, index: u64) -> Option<Batch> {
        self.storage().batch_at(index)
    }

    /// Makes the append of the next entries up to `last_index` for a lagging member, if that is possible now.
    pub fn append_to_lagging(
        &mut self,
        follower: &LaggingFollower,
        last_index: u64,
        messages: &mut Vec<OutgoingMessage>,
    ) {
        let raft = &mut self.raw.raft;
        let is_as_it_was = raft.prs().get(follower.member.get()).is_some_and(|progress| {
            progress.next_idx == follower.next_index && progress.state != ProgressState::Snapshot
        });
        // Otherwise raft-rs would also append entries that no poll has returned.
        if !is_as_it_was || !raft.raft_log.unstable_entries().is_empty() {
            return;
        }
        raft.mut_store().allow_lagging_until(Some(last_index));
        raft.send_append(follower.member.get());
        raft.mut_store().allow_lagging_until(None);
        self.take_appends(messages);
    }
}
