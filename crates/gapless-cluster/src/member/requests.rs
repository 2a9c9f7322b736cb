//! Requests to a member, and their outcomes.

use crate::config::{CLUSTER_MEMBERS_MAX, MemberKind};
use crate::consensus::details::MEMBER_ADDRESSES_MAX;
use crate::consensus::{MemberId, MembershipChange, ProposeError};
use std::sync::mpsc::SyncSender;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// Higher than any number ever given.
    pub member: MemberId,
    /// Addresses for the other members.
    pub addresses: Vec<String>,
    /// Kind once it votes.
    pub kind: MemberKind,
    /// Removed when the new member becomes a voter.
    pub replaces: Option<MemberId>,
}

/// Refusal of a membership change, without effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipChangeError {
    #[error("this member does not lead; {}", .leader.as_ref().map_or_else(|| "no leader is known".to_owned(), |leader| format!("ask {leader}")))]
    NotLeader { leader: Option<String> },
    /// Only one change is made at a time.
    #[error("another membership change is in progress; retry when it is done")]
    UnderWay,
    /// A new voter is a learner until it has nearly all frames; no other change is made in that time.
    #[error("member {0} is joining; wait until it votes, or cancel that: gapless cluster remove FILE... --member {0}")]
    IsJoining(MemberId),
    /// Choose a new number; numbers are never reused.
    #[error("member {0} is a member already")]
    Exists(MemberId),
    /// Numbers are never reused.
    #[error("number {member} was used before or skipped; use {} or a higher one", .highest + 1)]
    NumberUsed { member: MemberId, highest: u64 },
    /// Remove a member first.
    #[error("the cluster has {CLUSTER_MEMBERS_MAX} members already, which is the limit")]
    Full,
    #[error("addresses: expected 1 to {MEMBER_ADDRESSES_MAX} of the form host:port, found {found:?}")]
    Address { found: String },
    /// A connection to this address would reach another member.
    #[error(
        "{address} is the address of member {owner}; give the new member another address, or replace that member: \
         --replace {owner}"
    )]
    AddressTaken { address: String, owner: MemberId },
    /// Add the new member as a voter, or without `--replace`.
    #[error("a learner cannot replace a member: it does not vote")]
    LearnerReplaces,
    /// Look up the number with `gapless cluster status`.
    #[error("there is no member {0}")]
    NotMember(MemberId),
    /// A leader does not remove itself.
    #[error(
        "member {0} is the leader; transfer the leadership first: gapless cluster transfer FILE... --to another one"
    )]
    Leads(MemberId),
    /// Add another voter first.
    #[error("member {0} is the last voter")]
    LastVoter(MemberId),
    /// No voter that runs the service would be left. Add a full member first.
    #[error("member {0} is the last full voter; witnesses alone run no service")]
    LastFull(MemberId),
    /// No majority would be active, so that nothing would be committed any more.
    #[error(
        "of {voters} voters {needed} are needed, and {live} are active; start the others first, or add a member before \
         you remove one"
    )]
    TooFewLive {
        voters: usize,
        needed: usize,
        /// Voters that have answered recently.
        live: usize,
    },
    /// Consensus does not accept the request, for the given reason.
    #[error(transparent)]
    Consensus(#[from] ProposeError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminOutcome {
    /// The status shows when it is done.
    Begun,
    Refused(ProposeError),
    NotChanged(MembershipChangeError),
    NotUpgraded(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    Transfer(MemberId),
    /// Changes the members without checks: [`AdminCommand::Add`] and [`AdminCommand::Remove`] are checked.
    Change(MembershipChange),
    /// First a learner, then a voter once it has nearly every entry.
    Add(NewMember),
    Remove(MemberId),
    /// The service acts as this version from one sequence on.
    Upgrade(u32),
    /// Writes the sequencer's state now: retention may delete the frames that it and a snapshot cover.
    KeepState,
}

/// Command with the channel for its outcome.
pub struct MemberRequest {
    pub(super) command: AdminCommand,
    pub(super) answer: SyncSender<AdminOutcome>,
}
