//! [`Status`]: how a member stands, for operators and for the agent's decisions.

use super::Consensus;
use crate::consensus::effects::Role;
use crate::consensus::types::{LogPosition, MemberId};
use raft::{ProgressState, StateRole};

/// How a member stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What it is.
    pub role: Role,
    /// The newest term that it knows.
    pub term: u64,
    /// Who leads.
    pub leader: Option<MemberId>,
    /// The index known to be committed.
    pub committed_index: u64,
    /// The index up to which entries are applied.
    pub applied_index: u64,
    /// What is released.
    pub released_sequence: u64,
    /// Where the log starts.
    pub start: LogPosition,
    /// Where it ends.
    pub end: LogPosition,
    /// To whom it is handing over.
    pub transfer_to: Option<MemberId>,
    /// Whether it may lack what it has acknowledged, so that its vote counts only with everybody's.
    pub is_behind: bool,
    /// Messages that were refused.
    pub refused_messages: u64,
    /// The other members, as their leader sees them; empty on everybody else.
    pub peers: Vec<PeerStatus>,
}

/// How the leader sees a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Who.
    pub member: MemberId,
    /// The index up to which its log is the leader's.
    pub matched_index: u64,
    /// The sequence there; 0 where that is further back than the leader's log goes, or nothing is known.
    pub matched_sequence: u64,
    /// How many frames it lags.
    pub lag_frames: u64,
    /// Whether it was heard of lately.
    pub is_active: bool,
    /// Whether it is fetching frames up to a log position.
    pub is_fetching: bool,
}

impl Consensus {
    /// How this member stands. Allocates; not for each message.
    #[must_use]
    pub fn status(&self) -> Status {
        let raft = &self.raw.raft;
        let log = self.storage();
        let end = log.end();
        let peer = |(number, progress): (&u64, &raft::Progress)| {
            let member = MemberId::new(*number).filter(|member| *member != self.id)?;
            let matched = log.position_at(progress.matched).map_or(0, |position| position.sequence);
            Some(PeerStatus {
                member,
                matched_index: progress.matched,
                matched_sequence: matched,
                lag_frames: end.sequence.saturating_sub(matched),
                is_active: progress.recent_active,
                is_fetching: progress.state == ProgressState::Snapshot,
            })
        };
        let is_leader = raft.state == StateRole::Leader;
        let mut peers: Vec<_> = if is_leader { raft.prs().iter().filter_map(peer).collect() } else { Vec::new() };
        peers.sort_unstable_by_key(|peer| peer.member);
        Status {
            role: self.role(),
            term: raft.term,
            leader: MemberId::new(raft.leader_id),
            committed_index: raft.raft_log.committed,
            applied_index: raft.raft_log.applied,
            released_sequence: self.released_sequence,
            start: log.start(),
            end,
            transfer_to: raft.lead_transferee.and_then(MemberId::new),
            is_behind: self.is_behind(),
            refused_messages: self.refused_messages,
            peers,
        }
    }

    pub(super) fn role(&self) -> Role {
        match Role::from(self.raw.raft.state) {
            // Elected by itself, and not yet persisted.
            Role::Leader if !self.is_leader() => Role::Candidate,
            role => role,
        }
    }

    /// To whom a witness that leads will hand over: the voter with a service that has most; `None` if this is no leader,
    /// no witness, or nobody is there.
    #[must_use]
    pub fn wants_transfer(&self) -> Option<MemberId> {
        let is_leading_witness = self.options.is_witness && self.is_leader();
        if !is_leading_witness {
            return None;
        }
        let members = self.storage().members();
        let candidates = members.voters.iter().filter(|member| !members.witnesses.contains(member));
        let progress = |member: &MemberId| self.raw.raft.prs().get(member.get());
        let is_there = |member: &&MemberId| progress(member).is_some_and(|found| found.recent_active);
        candidates
            .filter(|member| **member != self.id)
            .filter(is_there)
            // The lower number among equals, so that it does not depend on the order of the list.
            .max_by_key(|member| (progress(member).map_or(0, |found| found.matched), u64::MAX - member.get()))
            .copied()
    }
}
