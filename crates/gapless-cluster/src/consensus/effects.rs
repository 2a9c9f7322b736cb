//! [`Effects`]: what the core asks its agent to do, in the order of the fields.

use super::members::Members;
use super::types::{LogPosition, MemberId};
use raft::StateRole;
use raft::eraftpb::{Message, MessageType};

/// Filled by [`crate::consensus::Consensus::poll`]; made once and used again.
#[derive(Debug, Default)]
pub struct Effects {
    /// Names this poll; to be given to [`crate::consensus::Consensus::persisted`].
    pub number: u64,
    /// First: everything behind this sequence goes, frames and records. Never below what was released.
    ///
    /// The first of [`Effects::records`] is then a checkpoint, because the cut takes records along that must stay: a vote
    /// that is forgotten can be given twice. So that no crash falls between the two, the agent makes durable what it has
    /// appended so far, writes the checkpoint aside, durably, cuts, appends the checkpoint as a record, and removes what
    /// it wrote aside once that record is durable. Where there is nothing to cut the checkpoint is appended all the same.
    pub cut_behind: Option<u64>,
    /// Then: the frames up to this log position, which [`crate::consensus::Consensus::fetched`] was told of, are appended.
    pub restored: Option<LogPosition>,
    /// Then: records, in their order, each behind the frames that it covers.
    pub records: Vec<Record>,
    /// Whether all records have to be on the device, at every tier, before [`crate::consensus::Consensus::persisted`] is
    /// called.
    pub must_sync: bool,
    /// A record with the term and the vote, which have changed; it is among the records as well. It has to be on the
    /// device before that at every tier, wherever: at a restart [`crate::consensus::Recovered::has_voted`] is told of it.
    pub ballot: Option<Vec<u8>>,
    /// Then: messages that may leave now. Those of a leader may leave before its own records are appended.
    pub messages: Vec<Outgoing>,
    /// Everything up to this sequence is committed and persisted here. Only moves up.
    pub released: Option<u64>,
    /// The role, the term or the leader has changed.
    pub role: Option<RoleChange>,
    /// These are the members now.
    pub members: Option<Members>,
    /// Frames are to be fetched up to a log position.
    pub fetch: Option<Fetch>,
}

/// A record for the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The sequence of the last frame that has to be appended before it.
    pub behind_sequence: u64,
    /// Whether it holds all that consensus keeps.
    pub is_checkpoint: bool,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// A message, and the frames that go with it.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// For whom.
    pub to: MemberId,
    /// What; [`crate::consensus::wire::encode`] makes bytes of it.
    pub message: Message,
    /// The first and the last sequence of its frames.
    pub frames: Option<(u64, u64)>,
}

impl Outgoing {
    /// Whether a leader sends it to one that follows.
    #[must_use]
    pub fn is_append(&self) -> bool {
        self.message.get_msg_type() == MessageType::MsgAppend
    }

    /// An append without entries: it says how far is committed, as a later one says, too.
    #[must_use]
    pub fn says_only_commit(&self) -> bool {
        self.is_append() && self.message.get_entries().is_empty()
    }
}

/// A new role, term or leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleChange {
    /// What this member is.
    pub role: Role,
    /// Its term.
    pub term: u64,
    /// Who leads, as far as it knows.
    pub leader: Option<MemberId>,
}

/// Frames to fetch from the leader's journal, or any other member's: the hash tells whether they are right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Up to here.
    pub position: LogPosition,
    /// The members there.
    pub members: Members,
    /// What is surely the same there and here; what is fetched begins one behind it. Frames that this member has beyond
    /// are to be compared with what is fetched, and stay until [`Effects::cut_behind`] says otherwise: they may be
    /// committed.
    pub behind: LogPosition,
    /// Who offered it.
    pub leader: MemberId,
}

impl Effects {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cut_behind.is_none()
            && self.restored.is_none()
            && self.records.is_empty()
            && self.messages.is_empty()
            && self.released.is_none()
            && self.role.is_none()
            && self.members.is_none()
            && self.fetch.is_none()
    }

    pub(super) fn clear(&mut self) {
        // Named one by one, so that none is forgotten and nothing large is moved.
        let Self { number, cut_behind, restored, records, must_sync, ballot, messages, released, role, members, fetch } =
            self;
        (*number, *cut_behind, *restored, *must_sync) = (0, None, None, false);
        (*ballot, *released, *role, *members, *fetch) = (None, None, None, None, None);
        records.clear();
        messages.clear();
    }
}

/// What a member is at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Follows a leader, or waits for one.
    #[default]
    Follower,
    /// Tries to lead; asking first whether it could win counts as trying.
    Candidate,
    /// Leads.
    Leader,
}

impl From<StateRole> for Role {
    fn from(role: StateRole) -> Self {
        match role {
            StateRole::Follower => Self::Follower,
            StateRole::Candidate | StateRole::PreCandidate => Self::Candidate,
            StateRole::Leader => Self::Leader,
        }
    }
}
