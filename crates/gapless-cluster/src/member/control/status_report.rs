//! [`StatusReport`]: the state of a member, for people and programs.

use crate::consensus::{LogDivergence, MemberId, MemberRole};
use crate::member::MemberStatus;
use gapless_transport::Tier;
use serde::{Deserialize, Serialize};

/// The state of a member, for people and programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    pub cluster: String,
    pub member: u64,
    /// `leader`, `follower` or `candidate`.
    pub role: String,
    /// Newest term that it knows.
    pub term: u64,
    /// Leader, as far as it knows.
    pub leader: Option<u64>,
    /// Durability of a released message.
    pub tier: String,
    /// Last sequence that readers here see.
    pub released_sequence: u64,
    /// Last sequence that is journaled here.
    pub journaled_sequence: u64,
    pub sessions: u64,
    /// Sequence up to which frames are being fetched from the leader's journal.
    pub fetching_to: Option<u64>,
    /// Refused messages of other members, since the start.
    pub messages_refused: u64,
    /// Messages of the leader for which the window had no room, since the start.
    pub messages_dropped: u64,
    /// On a new member: the voters from which it has not received a message yet. It takes part once it has received one
    /// from each.
    #[serde(default)]
    pub waits_for: Vec<u64>,
    /// Whether its machine has lost power and it has not caught up since, so that its vote counts only together with
    /// all others.
    #[serde(default)]
    pub is_behind: bool,
    /// Newest sequence at which the states of the full members were compared here, while this member led.
    #[serde(default)]
    pub compared_sequence: Option<u64>,
    /// Members whose logs diverge from this one's: one of the directories was replaced by an older copy, or exchanged.
    #[serde(default)]
    pub parted: Vec<DivergenceReport>,
    /// Number of such logs found since the start.
    #[serde(default)]
    pub partings: u64,
    /// Offset of the stream's time from this machine's clock, ms; `None` while it is not known.
    #[serde(default)]
    pub time_ahead_ms: Option<i64>,
    pub members: Vec<MemberReport>,
}

impl StatusReport {
    /// Returns the reason for which the member cannot do its part, if there is one.
    #[must_use]
    pub fn illness(&self) -> Option<&'static str> {
        if !self.parted.is_empty() {
            Some("its log and that of another member are not of one history")
        } else if !self.waits_for.is_empty() {
            Some("it does not take part yet")
        } else if self.leader.is_none() {
            Some("no leader is known")
        } else if self.is_behind {
            Some("it has not caught up since its machine lost power")
        } else {
            None
        }
    }
}

/// A member as another one sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberReport {
    pub member: u64,
    /// `voter`, `witness`, `learner`, or `joining`: a learner that becomes a voter or a witness.
    pub kind: String,
    /// Addresses that the members have agreed on.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Whether it is connected; for the reporting member itself, always true.
    pub is_connected: bool,
    /// Sequence that it has, as its leader knows; `None` on a member that does not lead, and until a new leader knows
    /// it.
    pub matched_sequence: Option<u64>,
    /// Lag in frames, as its leader knows; `None` likewise.
    pub lag_frames: Option<u64>,
    /// Reason of the refusal of its last connection, if it was refused.
    #[serde(default)]
    pub refused: Option<String>,
}

/// Divergence of a member's log from that of the reporting member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DivergenceReport {
    pub member: u64,
    /// Newest sequence up to which both are known to be equal.
    pub same_sequence: Option<u64>,
    /// Oldest entry at which they are known to differ.
    pub index: u64,
    /// Last sequence up to there, as this member has it.
    pub sequence: u64,
}

impl DivergenceReport {
    fn new(member: MemberId, LogDivergence { same, other }: &LogDivergence) -> Self {
        let same_sequence = same.map(|position| position.sequence);
        Self { member: member.get(), same_sequence, index: other.index, sequence: other.sequence }
    }
}

impl StatusReport {
    pub(super) fn new(cluster: &str, tier: Tier, status: &MemberStatus) -> Self {
        let consensus = &status.consensus;
        let members = &status.members;
        let report = |member: MemberId| {
            let details = members.details_of(member);
            let kind = if details.is_some_and(|details| details.joining.is_some()) {
                "joining"
            } else if members.witnesses.contains(&member) {
                "witness"
            } else if members.is_voter(member) {
                "voter"
            } else {
                "learner"
            };
            // Every log has a first entry: at 0 a new leader does not know the member's log yet.
            let peer = consensus.peers.iter().find(|peer| peer.member == member && peer.matched_index > 0);
            let is_self = member == status.member;
            let leads = consensus.role == MemberRole::Leader;
            let own = (is_self && leads).then_some((consensus.end.sequence, 0));
            let seen = peer.map(|peer| (peer.matched_sequence, peer.lag_frames)).or(own);
            MemberReport {
                member: member.get(),
                kind: kind.to_owned(),
                addresses: details.map(|details| details.addresses.clone()).unwrap_or_default(),
                is_connected: is_self || status.links.iter().any(|(other, is, _)| *other == member && *is),
                matched_sequence: seen.map(|(sequence, _)| sequence),
                lag_frames: seen.map(|(_, lag)| lag),
                refused: status.refused.iter().find(|(other, _)| *other == member).map(|(_, why)| why.clone()),
            }
        };
        let role = match consensus.role {
            MemberRole::Leader => "leader",
            MemberRole::Follower => "follower",
            MemberRole::Candidate => "candidate",
        };
        Self {
            cluster: cluster.to_owned(),
            member: status.member.get(),
            role: role.to_owned(),
            term: consensus.term,
            leader: consensus.leader.map(MemberId::get),
            tier: tier.name().to_owned(),
            released_sequence: status.released_sequence,
            journaled_sequence: status.journaled_sequence,
            sessions: status.sessions,
            fetching_to: status.fetching_to,
            messages_refused: consensus.refused_messages,
            messages_dropped: status.dropped_full,
            waits_for: status.waits_for.iter().map(|member| member.get()).collect(),
            is_behind: consensus.is_rejoining,
            compared_sequence: status.compared_sequence,
            parted: status
                .divergent
                .iter()
                .map(|(member, divergence)| DivergenceReport::new(*member, divergence))
                .collect(),
            partings: status.divergences,
            time_ahead_ms: status.time_ahead_ns.map(|ahead_ns| ahead_ns / 1_000_000),
            members: members.all().into_iter().map(report).collect(),
        }
    }
}
