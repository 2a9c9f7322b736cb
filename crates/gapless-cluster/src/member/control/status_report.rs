//! `StatusReport`: the state of a member, for people and programs.

use crate::consensus::{LogDivergence, MemberId, MemberRole};
use crate::member::MemberStatus;
use gapless_transport::Tier;
use serde::{Deserialize, Serialize};

/// State of a member for people and programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    pub cluster: String,
    pub member: u64,
    /// `leader`, `follower` or `candidate`.
    pub role: String,
    /// Newest known term.
    pub term: u64,
    /// Leader, as far as known.
    pub leader: Option<u64>,
    /// Durability of a released message.
    pub tier: String,
    /// Last sequence visible to readers here.
    pub released_sequence: u64,
    /// Last journaled sequence here.
    pub journaled_sequence: u64,
    pub sessions: u64,
    /// Last sequence to be fetched from the leader's journal.
    pub fetching_to: Option<u64>,
    /// Refused messages of other members since the start.
    pub messages_refused: u64,
    /// The leader's messages without room in the window, since the start.
    pub messages_dropped: u64,
    /// On a new member: voters without a message so far; it takes part once it has one from each.
    #[serde(default)]
    pub waits_for: Vec<u64>,
    /// Power was lost, and it has not caught up since: its vote counts only together with all others.
    #[serde(default)]
    pub is_behind: bool,
    /// Newest sequence at which it compared the full members' states as leader.
    #[serde(default)]
    pub compared_sequence: Option<u64>,
    /// Members with a divergent log: a directory was replaced by an older copy, or exchanged.
    #[serde(default)]
    pub parted: Vec<DivergenceReport>,
    /// Divergent logs found since the start.
    #[serde(default)]
    pub partings: u64,
    /// Stream's time minus this machine's clock, ms; `None` while unknown.
    #[serde(default)]
    pub time_ahead_ms: Option<i64>,
    pub members: Vec<MemberReport>,
}

impl StatusReport {
    /// Reason for which the member cannot do its part.
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
    /// `voter`, `witness`, `learner`, or `joining` (a learner to become a voter or witness).
    pub kind: String,
    /// Agreed addresses.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Always true for the reporting member.
    pub is_connected: bool,
    /// Known by its leader; `None` elsewhere, and until a new leader knows it.
    pub matched_sequence: Option<u64>,
    /// Known by its leader; `None` elsewhere.
    pub lag_frames: Option<u64>,
    /// Reason if its last connection was refused.
    #[serde(default)]
    pub refused: Option<String>,
}

/// Divergence of a log from the reporting member's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DivergenceReport {
    pub member: u64,
    /// Newest sequence known to be equal.
    pub same_sequence: Option<u64>,
    /// Oldest entry known to differ.
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
            // At 0 a new leader does not know the member's log yet: every log has a first entry.
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
