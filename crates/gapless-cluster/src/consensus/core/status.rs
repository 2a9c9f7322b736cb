//! [`ConsensusStatus`]: for operators and for the agent's decisions.

use super::Consensus;
use crate::consensus::effects::MemberRole;
use crate::consensus::types::{LogPosition, MemberId};
use raft::{ProgressState, StateRole};

/// State of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsensusStatus {
    pub role: MemberRole,
    /// Newest known term.
    pub term: u64,
    pub leader: Option<MemberId>,
    pub committed_index: u64,
    pub applied_index: u64,
    pub released_sequence: u64,
    pub start: LogPosition,
    pub end: LogPosition,
    /// Target of a leadership transfer in progress.
    pub transfer_to: Option<MemberId>,
    /// May lack entries that it acknowledged; its vote counts only with all others.
    pub is_rejoining: bool,
    pub refused_messages: u64,
    /// Empty unless this member leads.
    pub peers: Vec<FollowerProgress>,
}

/// A member as its leader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerProgress {
    pub member: MemberId,
    /// Index up to which its log equals the leader's.
    pub matched_index: u64,
    /// 0 if before the start of the leader's log, or unknown.
    pub matched_sequence: u64,
    pub lag_frames: u64,
    /// Whether it has answered recently.
    pub is_active: bool,
    /// Fetches frames up to a log position.
    pub is_fetching: bool,
}

impl Consensus {
    /// Allocates: do not call it for each message.
    #[must_use]
    pub fn status(&self) -> ConsensusStatus {
        let raft = &self.raw.raft;
        let log = self.storage();
        let end = log.end();
        let peer = |(number, progress): (&u64, &raft::Progress)| {
            let member = MemberId::new(*number).filter(|member| *member != self.id)?;
            let matched = log.position_at(progress.matched).map_or(0, |position| position.sequence);
            Some(FollowerProgress {
                member,
                matched_index: progress.matched,
                matched_sequence: matched,
                lag_frames: end.sequence.saturating_sub(matched),
                is_active: self.is_active(*number, progress),
                is_fetching: progress.state == ProgressState::Snapshot,
            })
        };
        let is_leader = raft.state == StateRole::Leader;
        let mut peers: Vec<_> = if is_leader { raft.prs().iter().filter_map(peer).collect() } else { Vec::new() };
        peers.sort_unstable_by_key(|peer| peer.member);
        ConsensusStatus {
            role: self.role(),
            term: raft.term,
            leader: MemberId::new(raft.leader_id),
            committed_index: raft.raft_log.committed,
            applied_index: raft.raft_log.applied,
            released_sequence: self.released_sequence,
            start: log.start(),
            end,
            transfer_to: raft.lead_transferee.and_then(MemberId::new),
            is_rejoining: self.is_rejoining(),
            refused_messages: self.refused_messages,
            peers,
        }
    }

    pub(super) fn role(&self) -> MemberRole {
        match MemberRole::from(self.raw.raft.state) {
            // A sole voter whose vote is not yet persisted.
            MemberRole::Leader if !self.is_leader() => MemberRole::Candidate,
            role => role,
        }
    }

    /// Target of a leading witness's transfer: the active voter with a service and the longest log.
    #[must_use]
    pub fn wants_transfer(&self) -> Option<MemberId> {
        let is_leading_witness = self.options.is_witness && self.is_leader();
        if !is_leading_witness {
            return None;
        }
        let members = self.storage().members();
        let candidates = members.voters.iter().filter(|member| !members.witnesses.contains(member));
        let progress = |member: &MemberId| self.raw.raft.prs().get(member.get());
        let is_there = |member: &&MemberId| progress(member).is_some_and(|found| self.is_active(member.get(), found));
        candidates
            .filter(|member| **member != self.id)
            .filter(is_there)
            // The lower number among equals, independent of the list's order.
            .max_by_key(|member| (progress(member).map_or(0, |found| found.matched), u64::MAX - member.get()))
            .copied()
    }
}
