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
    /// This member is not the leader.
    #[error("this member does not lead; {}", .leader.as_ref().map_or_else(|| "no leader is known".to_owned(), |leader| format!("ask {leader}")))]
    NotLeader { leader: Option<String> },
    /// Only one change is made at a time.
    #[error("another change of members is under way; ask again when it is done")]
    UnderWay,
    /// A joining member is a change until it votes.
    #[error("member {0} is joining; wait until it votes, or give that up: gapless cluster remove FILE... --member {0}")]
    IsJoining(MemberId),
    #[error("member {0} is a member already")]
    Exists(MemberId),
    /// Numbers are never reused.
    #[error("number {member} was used before or passed over; a new member takes {} or a higher one", .highest + 1)]
    NumberUsed { member: MemberId, highest: u64 },
    #[error("there are {CLUSTER_MEMBERS_MAX} members already, which is as many as may be")]
    Full,
    #[error("addresses: 1 to {MEMBER_ADDRESSES_MAX} of the form host:port are expected, and {found:?} is none")]
    Address { found: String },
    /// A connection to this address would reach another member.
    #[error(
        "{address} is the address of member {owner}; a new member has one of its own, unless it comes in the place of that one: \
         --replace {owner}"
    )]
    AddressTaken { address: String, owner: MemberId },
    /// Only a voter replaces a voter.
    #[error("a learner replaces nobody: it does not vote")]
    LearnerReplaces,
    #[error("there is no member {0}")]
    NotMember(MemberId),
    /// A leader does not remove itself.
    #[error("member {0} leads; let it hand over first: gapless cluster transfer FILE... --to another one")]
    Leads(MemberId),
    /// No voter would be left.
    #[error("member {0} is the last one that votes")]
    LastVoter(MemberId),
    /// No voter that runs the service would be left.
    #[error("member {0} is the last full member that votes; witnesses alone serve nobody")]
    LastFull(MemberId),
    /// No majority would be active, so nothing would be committed any more.
    #[error(
        "of the {voters} that would vote {needed} are needed and {live} are there; start the others first, or add a \
         member before one is removed"
    )]
    TooFewLive {
        voters: usize,
        needed: usize,
        /// Voters that have answered recently.
        live: usize,
    },
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
    /// Without checks, unlike [`AdminCommand::Add`] and [`AdminCommand::Remove`].
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
