//! Lagging followers, which need entries from before the leader's window, or more than one message takes. Raft-rs would
//! send them the whole log at once, so the storage reports these entries as temporarily unavailable; the agent releases
//! the next piece for a member when it has read that piece and the previous one has arrived.

use super::Consensus;
use crate::consensus::effects::OutgoingMessage;
use crate::consensus::types::{Batch, MemberId};
use raft::ProgressState;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaggingFollower {
    pub member: MemberId,
    /// Next entry to send.
    pub next_index: u64,
    /// Index up to which the logs are equal.
    pub matched_index: u64,
}

impl Consensus {
    /// Sets the first sequence in the leader's window: members that need earlier frames lag.
    pub fn set_lagging_before(&mut self, first_sequence: u64) {
        let log = self.raw.raft.mut_store();
        log.set_lagging_before(first_sequence);
        log.set_lagging(true);
    }

    /// Whether a member may lag; cheap.
    #[inline]
    #[must_use]
    pub fn has_lagging(&self) -> bool {
        self.storage().has_lagging()
    }

    /// Lagging members that may be sent entries now, ordered by number.
    #[must_use]
    pub fn lagging(&self) -> Vec<LaggingFollower> {
        let raft = &self.raw.raft;
        let (log, last) = (self.storage(), raft.raft_log.last_index());
        let follower = |(number, progress): (&u64, &raft::Progress)| {
            let member = MemberId::new(*number).filter(|member| *member != self.id)?;
            let next_index = progress.next_idx;
            let is_there = next_index > log.start().index && next_index <= last;
            let waits = is_there && !progress.is_paused() && log.is_lagging_at(next_index);
            waits.then_some(LaggingFollower { member, next_index, matched_index: progress.matched })
        };
        let mut all: Vec<_> =
            if self.is_leader() { raft.prs().iter().filter_map(follower).collect() } else { Vec::new() };
        all.sort_unstable_by_key(|follower| follower.member);
        log.set_lagging(!all.is_empty());
        all
    }

    /// Sends nothing to a lagging member without a connection until it answers again.
    pub fn pause_lagging(&mut self, member: MemberId) {
        if let Some(progress) = self.raw.raft.mut_prs().get_mut(member.get())
            && progress.state == ProgressState::Probe
        {
            progress.pause();
        }
    }

    /// Batch of the entry at this index.
    #[must_use]
    pub fn batch_at(&self, index: u64) -> Option<Batch> {
        self.storage().batch_at(index)
    }

    /// Makes the append of the next entries up to `last_index`, if that is possible now.
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
