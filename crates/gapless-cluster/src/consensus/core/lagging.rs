//! Lagging followers: they need entries whose frames have left their leader's window, or more of them than one message
//! takes. Raft-rs would send them the whole log at once, in messages without a limit of bytes. So the storage reports
//! these entries as unavailable for the moment, and the agent gives each such member the next piece when it has read
//! that piece and the previous one has arrived. Raft-rs then makes the message, as it makes all others.

use super::Consensus;
use crate::consensus::effects::Outgoing;
use crate::consensus::types::{Batch, MemberId};
use raft::ProgressState;

/// How far a lagging follower has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaggingFollower {
    pub member: MemberId,
    /// The next entry to send.
    pub next_index: u64,
    /// The index up to which its log equals the leader's.
    pub matched_index: u64,
}

impl Consensus {
    /// From now on members that need frames before `first_sequence` lag.
    pub fn set_lagging_before(&mut self, first_sequence: u64) {
        let log = self.raw.raft.mut_store();
        log.set_lagging_before(first_sequence);
        log.set_lagging(true);
    }

    /// Whether a member may lag. Costs nothing where none does.
    #[inline]
    #[must_use]
    pub fn has_lagging(&self) -> bool {
        self.storage().has_lagging()
    }

    /// The members that lag and may be sent entries now, in the order of their numbers.
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

    /// A lagging member is not connected: nothing is sent to it until it answers again.
    pub fn pause_lagging(&mut self, member: MemberId) {
        if let Some(progress) = self.raw.raft.mut_prs().get_mut(member.get())
            && progress.state == ProgressState::Probe
        {
            progress.pause();
        }
    }

    /// The batch of the entry at this index, if the log has it.
    #[must_use]
    pub fn batch_at(&self, index: u64) -> Option<Batch> {
        self.storage().batch_at(index)
    }

    /// Makes the append of the next entries up to `last_index` for a member that lags. Makes none where none is
    /// possible now.
    pub fn append_to_lagging(&mut self, follower: &LaggingFollower, last_index: u64, messages: &mut Vec<Outgoing>) {
        let raft = &mut self.raw.raft;
        let is_as_it_was = raft.prs().get(follower.member.get()).is_some_and(|progress| {
            progress.next_idx == follower.next_index && progress.state != ProgressState::Snapshot
        });
        // Raft-rs would append entries that no poll has given out to those that are given.
        if !is_as_it_was || !raft.raft_log.unstable_entries().is_empty() {
            return;
        }
        raft.mut_store().give_until(Some(last_index));
        raft.send_append(follower.member.get());
        raft.mut_store().give_until(None);
        self.take_appends(messages);
    }
}
