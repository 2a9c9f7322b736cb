//! What can be asked of a member, and what becomes of it.

use crate::config::{MEMBERS_MAX, MemberKind};
use crate::consensus::details::ADDRESSES_MAX;
use crate::consensus::{Change, MemberId, ProposeError};
use std::sync::mpsc::SyncSender;

/// A member to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMember {
    /// Its number: higher than any member ever had.
    pub member: MemberId,
    /// Where the others reach it.
    pub addresses: Vec<String>,
    /// What it does in the end.
    pub kind: MemberKind,
    /// Who goes when it votes.
    pub replaces: Option<MemberId>,
}

/// Why members are not changed. Nothing has happened then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefused {
    /// Another member leads, or none.
    #[error("this member does not lead; {}", .leader.as_ref().map_or_else(|| "no leader is known".to_owned(), |leader| format!("ask {leader}")))]
    NotLeader {
        /// Who leads, and where it is reached.
        leader: Option<String>,
    },
    /// One at a time.
    #[error("another change of members is under way; ask again when it is done")]
    UnderWay,
    /// One at a time, and a member that joins is a change until it votes.
    #[error("member {0} is joining; wait until it votes, or give that up: gapless cluster remove --member {0}")]
    IsJoining(MemberId),
    /// There is such a member.
    #[error("member {0} is a member already")]
    Exists(MemberId),
    /// A number is given once.
    #[error("number {member} was used before or passed over; a new member takes {} or a higher one", .highest + 1)]
    NumberUsed {
        /// The number.
        member: MemberId,
        /// The highest number that a member had.
        highest: u64,
    },
    /// As many as may be.
    #[error("there are {MEMBERS_MAX} members already, which is as many as may be")]
    Full,
    /// No address.
    #[error("addresses: 1 to {ADDRESSES_MAX} of the form host:port are expected, and {found:?} is none")]
    Address {
        /// What was given.
        found: String,
    },
    /// Only a voter takes the place of one.
    #[error("a learner replaces nobody: it does not vote")]
    LearnerReplaces,
    /// There is no such member.
    #[error("there is no member {0}")]
    NotMember(MemberId),
    /// A leader does not remove itself.
    #[error("member {0} leads; let it hand over first: gapless cluster transfer --to another one")]
    Leads(MemberId),
    /// Nobody would be left.
    #[error("member {0} is the last one that votes")]
    LastVoter(MemberId),
    /// Nobody would be left who runs the service.
    #[error("member {0} is the last full member that votes; witnesses alone serve nobody")]
    LastFull(MemberId),
    /// Nothing would be committed any more.
    #[error(
        "of the {voters} that would vote {needed} are needed and {live} are there; start the others first, or add a \
         member before one is removed"
    )]
    TooFewLive {
        /// Who would vote.
        voters: usize,
        /// A majority of them.
        needed: usize,
        /// How many of them were heard of lately.
        live: usize,
    },
    /// Consensus does not take it.
    #[error(transparent)]
    Consensus(#[from] ProposeError),
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is under way; the status tells when it is done.
    Begun,
    /// It was refused, and nothing has happened.
    Refused(ProposeError),
    /// The members are not changed like this, and nothing has happened.
    NotChanged(ChangeRefused),
    /// The service does not act as another version, and nothing has happened.
    NotUpgraded(String),
}

/// What may be asked of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// Hand the lead over to this one.
    Transfer(MemberId),
    /// Change the members, whatever comes of it: [`AdminCommand::Add`] and [`AdminCommand::Remove`] are checked.
    Change(Change),
    /// Add a member: a learner at first, a voter when it has nearly everything.
    Add(NewMember),
    /// Remove a member.
    Remove(MemberId),
    /// Let the service act as this version of itself from one sequence on.
    Upgrade(u32),
    /// Write the sequencer's state aside now: what it and a snapshot cover may go from the journal.
    KeepState,
}

/// A command, and whom to tell.
pub struct MemberRequest {
    pub(super) command: AdminCommand,
    pub(super) answer: SyncSender<Outcome>,
}
