//! [`Effects`]: what the core asks its agent to do, in the order of the fields.

use super::members::Members;
use super::types::{LogPosition, MemberId};
use raft::StateRole;
use raft::eraftpb::{Message, MessageType};

/// Filled by [`crate::consensus::Consensus::poll`]; made once and used again.
#[derive(Debug, Default)]
pub struct Effects {
    /// Identifies this poll; to be given to [`crate::consensus::Consensus::persisted`].
    pub number: u64,
    /// First: everything after this sequence is cut, frames and records. Never below the released sequence.
    ///
    /// The first of [`Effects::records`] is then a checkpoint, because the cut also removes records that must be kept:
    /// a vote that is forgotten can be given twice. So that no crash falls between the two, the agent makes durable
    /// what it has appended so far, writes the checkpoint durably to a temporary file, cuts, appends the checkpoint as
    /// a record, and removes the temporary file once that record is durable. Where there is nothing to cut the
    /// checkpoint is appended nevertheless.
    pub cut_behind: Option<u64>,
    /// Then: the frames up to this log position, which were reported to [`crate::consensus::Consensus::fetched`],
    /// are appended.
    pub restored: Option<LogPosition>,
    /// Then: records, in their order, each after the frames that it covers.
    pub records: Vec<Record>,
    /// Whether all records must be on the device, at every tier, before [`crate::consensus::Consensus::persisted`] is
    /// called.
    pub must_sync: bool,
    /// A record with the term and the vote, which have changed; it is among the records as well. At every tier it must
    /// be on the device before that call, in whatever file: a restart passes it to
    /// [`crate::consensus::Recovered::note_vote`].
    pub ballot: Option<Vec<u8>>,
    /// Then: messages that may leave now. Those of a leader may leave before its own records are appended.
    pub messages: Vec<Outgoing>,
    /// Everything up to this sequence is committed and persisted here. Never decreases.
    pub released: Option<u64>,
    /// The role, the term or the leader has changed.
    pub role: Option<RoleChange>,
    /// The members have changed to these.
    pub members: Option<Members>,
    /// Frames are to be fetched up to a log position.
    pub fetch: Option<Fetch>,
}

/// A record for the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The sequence of the last frame that must be appended before it.
    pub behind_sequence: u64,
    /// Whether it holds the whole state that consensus keeps.
    pub is_checkpoint: bool,
    pub payload: Vec<u8>,
}

/// A message, and the frames that go with it.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub to: MemberId,
    /// [`crate::consensus::wire::encode`] makes bytes of it.
    pub message: Message,
    /// The first and the last sequence of its frames.
    pub frames: Option<(u64, u64)>,
}

impl Outgoing {
    /// Whether a leader sends it to a follower.
    #[must_use]
    pub fn is_append(&self) -> bool {
        self.message.get_msg_type() == MessageType::MsgAppend
    }

    /// An append without entries: it carries only the commit index, which a later append carries too.
    #[must_use]
    pub fn says_only_commit(&self) -> bool {
        self.is_append() && self.message.get_entries().is_empty()
    }
}

/// A new role, term or leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleChange {
    /// This member's role.
    pub role: Role,
    pub term: u64,
    /// The leader, as far as the member knows.
    pub leader: Option<MemberId>,
}

/// Frames to fetch from the leader's journal, or any other member's: the hash proves that they are right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The last frame to fetch.
    pub position: LogPosition,
    /// The members there.
    pub members: Members,
    /// Up to here both logs are surely equal; the fetched frames begin one after it. Frames that this member has beyond
    /// it are to be compared with the fetched ones, and stay until [`Effects::cut_behind`] says otherwise: they may be
    /// committed.
    pub behind: LogPosition,
    /// The leader that offered it.
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
        // The fields are named one by one, so that none is forgotten and nothing large is moved.
        let Self { number, cut_behind, restored, records, must_sync, ballot, messages, released, role, members, fetch } =
            self;
        (*number, *cut_behind, *restored, *must_sync) = (0, None, None, false);
        (*ballot, *released, *role, *members, *fetch) = (None, None, None, None, None);
        records.clear();
        messages.clear();
    }
}

/// The role of a member at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Follows a leader, or waits for one.
    #[default]
    Follower,
    /// Campaigns; a pre-vote counts as a campaign.
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
