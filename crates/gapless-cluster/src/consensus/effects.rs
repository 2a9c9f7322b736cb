//! [`Effects`]: work of the core for its agent, in the order of the fields.

use super::members::Members;
use super::types::{LogPosition, MemberId};
use raft::StateRole;
use raft::eraftpb::{Message, MessageType};

/// Output of [`crate::consensus::Consensus::poll`]; allocated once and reused.
#[derive(Debug, Default)]
pub struct Effects {
    /// Poll number for [`crate::consensus::Consensus::persisted`].
    pub number: u64,
    /// First: cut all frames and records after this sequence, never below the released one. [`Effects::records`] then
    /// begins with a checkpoint, because the cut also removes records that must be kept: a forgotten vote could be
    /// given twice. No crash may fall between the two: make the log durable so far, write the checkpoint durably to a
    /// temporary file, cut, append the checkpoint (even if nothing was cut), and remove the file once that record is
    /// durable.
    pub truncate_after: Option<u64>,
    /// Then: append the frames reported to [`crate::consensus::Consensus::fetched`] up to here.
    pub restored: Option<LogPosition>,
    /// Then: append the records in order, each after its frames.
    pub records: Vec<ConsensusRecord>,
    /// All records must be on the device, at every tier, before [`crate::consensus::Consensus::persisted`].
    pub must_sync: bool,
    /// The changed term and vote, also among the records. At every tier it must be on the device before that call, in
    /// any file; a restart passes it to [`crate::consensus::RecoveredState::note_vote`].
    pub ballot: Option<Vec<u8>>,
    /// Then: send the messages. A leader's may leave before its own records are appended.
    pub messages: Vec<OutgoingMessage>,
    /// Committed and persisted up to here; never decreases.
    pub released: Option<u64>,
    /// Change of role, term or leader.
    pub role: Option<RoleChange>,
    /// New members.
    pub members: Option<Members>,
    /// Fetch of frames up to a log position.
    pub fetch: Option<PositionFetch>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsensusRecord {
    /// Must be appended after this frame.
    pub after_sequence: u64,
    /// Holds the whole consensus state.
    pub is_checkpoint: bool,
    pub payload: Vec<u8>,
}

/// A message with its frames.
#[derive(Clone, Debug)]
pub struct OutgoingMessage {
    pub to: MemberId,
    /// Message, to be encoded with [`crate::consensus::wire::encode`].
    pub message: Message,
    /// First and last sequence.
    pub frames: Option<(u64, u64)>,
}

impl OutgoingMessage {
    /// Whether a leader sends it to a follower.
    #[must_use]
    pub fn is_append(&self) -> bool {
        self.message.get_msg_type() == MessageType::MsgAppend
    }

    /// Whether it carries only the commit index, which a later append carries too.
    #[must_use]
    pub fn is_commit_only(&self) -> bool {
        self.is_append() && self.message.get_entries().is_empty()
    }
}

/// A new role, term or leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleChange {
    /// Role of this member.
    pub role: MemberRole,
    pub term: u64,
    pub leader: Option<MemberId>,
}

/// Frames to fetch from any member's journal: the hash proves that they are right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionFetch {
    /// Last frame to fetch.
    pub position: LogPosition,
    /// Members at that position.
    pub members: Members,
    /// Last position known to be equal; the fetched frames follow it. This member's frames after it are compared and
    /// stay until [`Effects::truncate_after`]: they may be committed.
    pub base: LogPosition,
    /// Leader that offered it.
    pub leader: MemberId,
}

impl Effects {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.truncate_after.is_none()
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
        let Self {
            number,
            truncate_after,
            restored,
            records,
            must_sync,
            ballot,
            messages,
            released,
            role,
            members,
            fetch,
        } = self;
        (*number, *truncate_after, *restored, *must_sync) = (0, None, None, false);
        (*ballot, *released, *role, *members, *fetch) = (None, None, None, None, None);
        records.clear();
        messages.clear();
    }
}

/// Role of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemberRole {
    #[default]
    Follower,
    /// Includes a pre-vote.
    Candidate,
    Leader,
}

impl From<StateRole> for MemberRole {
    fn from(role: StateRole) -> Self {
        match role {
            StateRole::Follower => Self::Follower,
            StateRole::Candidate | StateRole::PreCandidate => Self::Candidate,
            StateRole::Leader => Self::Leader,
        }
    }
}
