//! Requests to a member, and their outcomes.

use crate::config::{CLUSTER_MEMBERS_MAX, MemberKind};
use crate::consensus::details::MEMBER_ADDRESSES_MAX;
use crate::consensus::{MemberId, MembershipChange, ProposeError};
use std::sync::mpsc::SyncSender;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// Number, higher than any that was ever given.
    pub member: MemberId,
    /// Addresses at which the other members reach it.
    pub addresses: Vec<String>,
    /// Kind of the member once it votes.
    pub kind: MemberKind,
    /// Member that is removed when it becomes a voter.
    pub replaces: Option<MemberId>,
}

/// Reason for which a membership change is refused. It has no effect then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipChangeError {
    /// This member is not the leader.
    #[error("this member does not lead; {}", .leader.as_ref().map_or_else(|| "no leader is known".to_owned(), |leader| format!("ask {leader}")))]
    NotLeader {
        /// The leader with its addresses.
        leader: Option<String>,
    },
    /// Only one change is made at a time.
    #[error("another change of members is under way; ask again when it is done")]
    UnderWay,
    /// Only one change is made at a time, and a joining member is a change until it votes.
    #[error("member {0} is joining; wait until it votes, or give that up: gapless cluster remove FILE... --member {0}")]
    IsJoining(MemberId),
    #[error("member {0} is a member already")]
    Exists(MemberId),
    /// Numbers are never reused.
    #[error("number {member} was used before or passed over; a new member takes {} or a higher one", .highest + 1)]
    NumberUsed {
        member: MemberId,
        /// Highest number that was ever given.
        highest: u64,
    },
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
        /// Number of voters after the change.
        voters: usize,
        /// Majority of them.
        needed: usize,
        /// Number of voters that have answered recently.
        live: usize,
    },
    #[error(transparent)]
    Consensus(#[from] ProposeError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminOutcome {
    /// The command is being carried out; the status shows when it is done.
    Begun,
    /// Consensus refused it, and it has had no effect.
    Refused(ProposeError),
    /// The change of members was refused, and has had no effect.
    NotChanged(MembershipChangeError),
    /// The upgrade of the service was refused, and has had no effect.
    NotUpgraded(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// Transfers leadership to this member.
    Transfer(MemberId),
    /// Changes the members without checks: [`AdminCommand::Add`] and [`AdminCommand::Remove`] are checked.
    Change(MembershipChange),
    /// Adds a member: first a learner, and a voter when it has nearly every entry.
    Add(NewMember),
    Remove(MemberId),
    /// Lets the service behave as this version from one sequence on.
    Upgrade(u32),
    /// Writes the sequencer's state to its file now: retention may delete the frames that it and a snapshot cover.
    KeepState,
}

/// A command, with the channel for its outcome.
pub struct MemberRequest {
    pub(super) command: AdminCommand,
    pub(super) answer: SyncSender<AdminOutcome>,
}
