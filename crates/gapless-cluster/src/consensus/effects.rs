//! [`Effects`]: the work that the core gives to its agent, in the order of the fields.

use super::members::Members;
use super::types::{LogPosition, MemberId};
use raft::StateRole;
use raft::eraftpb::{Message, MessageType};

/// Output of [`crate::consensus::Consensus::poll`]; allocated once and reused.
#[derive(Debug, Default)]
pub struct Effects {
    /// Number of this poll, for [`crate::consensus::Consensus::persisted`].
    pub number: u64,
    /// First: cut all frames and records after this sequence. Never below the released sequence.
    ///
    /// The first of [`Effects::records`] is then a checkpoint, because the cut also removes records that must be kept:
    /// a forgotten vote could be given twice. No crash may fall between the two. So the agent makes the log durable so
    /// far, writes the checkpoint durably to a temporary file, cuts, and appends the checkpoint as a record. It removes
    /// the temporary file once that record is durable. The checkpoint is appended even if there is nothing to cut.
    pub truncate_after: Option<u64>,
    /// Then: append the frames up to this log position, which were reported to
    /// [`crate::consensus::Consensus::fetched`].
    pub restored: Option<LogPosition>,
    /// Then: append the records in order, each after the frames that it covers.
    pub records: Vec<ConsensusRecord>,
    /// Whether all records must be on the device, at every tier, before [`crate::consensus::Consensus::persisted`] is
    /// called.
    pub must_sync: bool,
    /// Record with the changed term and vote, which is also among the records. At every tier it must be on the device
    /// before that call, in any file: a restart passes it to [`crate::consensus::RecoveredState::note_vote`].
    pub ballot: Option<Vec<u8>>,
    /// Then: send the messages. Those of a leader may leave before its own records are appended.
    pub messages: Vec<OutgoingMessage>,
    /// Sequence up to which everything is committed and persisted here. Never decreases.
    pub released: Option<u64>,
    /// Change of the role, the term or the leader.
    pub role: Option<RoleChange>,
    /// New members.
    pub members: Option<Members>,
    /// Fetch of frames up to a log position.
    pub fetch: Option<PositionFetch>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsensusRecord {
    /// Last frame that must be appended before it.
    pub after_sequence: u64,
    /// Whether it holds the whole consensus state.
    pub is_checkpoint: bool,
    pub payload: Vec<u8>,
}

/// A message with its frames.
#[derive(Clone, Debug)]
pub struct OutgoingMessage {
    pub to: MemberId,
    /// Message, to be encoded with [`crate::consensus::wire::encode`].
    pub message: Message,
    /// First and last sequence of its frames.
    pub frames: Option<(u64, u64)>,
}

impl OutgoingMessage {
    /// Returns whether a leader sends it to a follower.
    #[must_use]
    pub fn is_append(&self) -> bool {
        self.message.get_msg_type() == MessageType::MsgAppend
    }

    /// Returns whether it is an append without entries, which carries only the commit index; a later append carries
    /// that too.
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

/// Frames to fetch from the leader's journal, or any other member's: the hash proves that they are right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionFetch {
    /// Last frame to fetch.
    pub position: LogPosition,
    /// Members at that position.
    pub members: Members,
    /// Last position at which both logs are known to be equal; the fetched frames begin one after it. Frames that this
    /// member has after it are compared with the fetched ones, and stay until [`Effects::truncate_after`] removes them:
    /// they may be committed.
    pub base: LogPosition,
    /// Leader that offered it.
    pub leader: MemberId,
}

impl Effects {
    /// Returns whether there is nothing to do.
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
        // Fields are named one by one, so that none is forgotten and nothing large is moved.
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

/// Present role of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemberRole {
    /// Follows a leader, or waits for one.
    #[default]
    Follower,
    /// Campaigns; a pre-vote counts as a campaign.
    Candidate,
    /// Leads.
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
