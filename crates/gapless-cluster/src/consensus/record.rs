//! The consensus state in the journal: the payloads of its records (decision 35). Numbers are little-endian.
//!
//! ```text
//! entry        u8 version 1, u8 kind 1, u64 index, term, commit, batch (24 bytes), u8 0: none, 1: change, change
//! hard state   u8 version 1, u8 kind 2, u64 term, vote, commit
//! checkpoint   u8 version 1, u8 kind 3, hard state as above, log position, members, u32 count,
//!              entries: u64 term, batch, change as above; acknowledged as below, if there are any
//! acknowledged u8 version 1, u8 kind 4, u8 count, each: u64 member, term, index
//! ```
//!
//! A change, members and their details: see `change`, `fields` and [`super::details`].
//!
//! The commit index is the one known when the record was written: never too high, and never waited for. It lets a
//! member restart with its members: without it, a member could forget a membership change and count a majority that is
//! no longer one.

use super::change::MembershipChange;
use super::fields::{FieldError, Fields, put_acknowledged, put_position, put_u64};
use super::members::{Members, put_members};
use super::types::{Batch, LogPosition, MemberId, NUMBER_MAX};
use crate::link::log_state::Acknowledgement;
use raft::eraftpb::{Entry, EntryType};

pub const VERSION: u8 = 1;
/// Limit of entries in a checkpoint; the journal's longest frame holds them.
pub const CHECKPOINT_ENTRIES_MAX: usize = 16_384;

/// Bytes of an entry with frames in a checkpoint.
pub const CHECKPOINT_ENTRY_LENGTH: usize = 33;

const LENGTH_USUAL: usize = 64;

const ENTRY: u8 = 1;
const HARD_STATE: u8 = 2;
const CHECKPOINT: u8 = 3;
const ACKNOWLEDGED: u8 = 4;

/// Bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("a record of consensus is cut short after {found_bytes} bytes")]
    Short { found_bytes: usize },
    /// A field has an invalid value.
    #[error("a record of consensus has a wrong {0}")]
    Field(&'static str),
}

/// An entry, and the frames that it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRecord {
    /// Index in the log, from 2: 1 is where every cluster begins.
    pub index: u64,
    pub term: u64,
    /// Covered frames; without frames, its position in the stream.
    pub batch: Batch,
    /// Set if the entry is a membership change.
    pub change: Option<MembershipChange>,
}

/// State that a member must never forget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardState {
    /// Newest seen term.
    pub term: u64,
    /// Vote in that term.
    pub vote: Option<MemberId>,
    /// A committed index, not always the newest.
    pub commit: u64,
}

/// The whole consensus state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub hard_state: HardState,
    /// Log position that the entries follow.
    pub start: LogPosition,
    /// Members at that position.
    pub members: Members,
    /// Contiguous from there.
    pub entries: Vec<EntryRecord>,
    /// Acknowledgements of others, ordered by number.
    pub acknowledged: Vec<(MemberId, Acknowledgement)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordContent {
    /// One entry, and the commit index known at that time.
    Entry(EntryRecord, u64),
    HardState(HardState),
    /// Replaces all earlier records.
    Checkpoint(Box<Checkpoint>),
    /// In addition to earlier records.
    Acknowledged(Vec<(MemberId, Acknowledgement)>),
}

impl EntryRecord {
    pub(super) fn from_raft(entry: &Entry, batch: Batch) -> Self {
        let change = match entry.get_entry_type() {
            EntryType::EntryNormal => None,
            EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => {
                Some(MembershipChange::from_entry_data(entry.get_data()))
            }
        };
        Self { index: entry.index, term: entry.term, batch, change }
    }

    pub(super) fn to_raft(&self) -> Entry {
        let mut entry = Entry { index: self.index, term: self.term, ..Entry::default() };
        if let Some(change) = &self.change {
            entry.set_entry_type(EntryType::EntryConfChangeV2);
            entry.data = change.to_entry_data().into();
        } else if !self.batch.is_empty() {
            entry.data = self.batch.to_bytes().to_vec().into();
        }
        entry
    }

    fn put_content(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.batch.to_bytes());
        bytes.push(u8::from(self.change.is_some()));
        if let Some(change) = &self.change {
            change.put(bytes);
        }
    }

    fn take_content(fields: &mut Fields<'_>, index: u64, term: u64) -> Result<Self, FieldError> {
        let batch = fields.batch()?;
        let change = if fields.flag("change")? { Some(MembershipChange::take(fields)?) } else { None };
        let is_right = index >= 1 && term >= 1 && (change.is_none() || batch.is_empty());
        if is_right { Ok(Self { index, term, batch, change }) } else { Err(FieldError::Value { what: "entry" }) }
    }
}

impl HardState {
    fn put(&self, bytes: &mut Vec<u8>) {
        for value in [self.term, self.vote.map_or(0, MemberId::get), self.commit] {
            put_u64(bytes, value);
        }
    }

    fn take(fields: &mut Fields<'_>) -> Result<Self, FieldError> {
        let term = fields.number("term")?;
        let vote = MemberId::new(fields.number("vote")?);
        Ok(Self { term, vote, commit: fields.number("commit")? })
    }
}

impl RecordContent {
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LENGTH_USUAL);
        bytes.push(VERSION);
        match self {
            Self::Entry(entry, commit) => {
                bytes.push(ENTRY);
                for value in [entry.index, entry.term, *commit] {
                    put_u64(&mut bytes, value);
                }
                entry.put_content(&mut bytes);
            }
            Self::HardState(state) => {
                bytes.push(HARD_STATE);
                state.put(&mut bytes);
            }
            Self::Checkpoint(checkpoint) => {
                bytes.push(CHECKPOINT);
                checkpoint.hard_state.put(&mut bytes);
                put_position(&mut bytes, &checkpoint.start);
                put_members(&mut bytes, &checkpoint.members);
                bytes.extend_from_slice(&(checkpoint.entries.len() as u32).to_le_bytes());
                for entry in &checkpoint.entries {
                    put_u64(&mut bytes, entry.term);
                    entry.put_content(&mut bytes);
                }
                if !checkpoint.acknowledged.is_empty() {
                    put_list(&mut bytes, &checkpoint.acknowledged);
                }
            }
            Self::Acknowledged(list) => {
                bytes.push(ACKNOWLEDGED);
                put_list(&mut bytes, list);
            }
        }
        bytes
    }

    /// Decodes a record's payload.
    ///
    /// # Errors
    /// The payload is not a record.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut fields = Fields::new(bytes);
        Self::take(&mut fields).map_err(|error| match error {
            FieldError::Short { .. } => RecordError::Short { found_bytes: bytes.len() },
            FieldError::Value { what } => RecordError::Field(what),
        })
    }

    fn take(fields: &mut Fields<'_>) -> Result<Self, FieldError> {
        fields.version(VERSION)?;
        let content = match fields.u8("kind")? {
            ENTRY => {
                let index = fields.number("index")?;
                let term = fields.number("term")?;
                let commit = fields.number("commit")?;
                Self::Entry(EntryRecord::take_content(fields, index, term)?, commit)
            }
            HARD_STATE => Self::HardState(HardState::take(fields)?),
            CHECKPOINT => Self::Checkpoint(Box::new(Checkpoint::take(fields)?)),
            ACKNOWLEDGED => Self::Acknowledged(take_list(fields)?),
            _ => return Err(FieldError::Value { what: "kind" }),
        };
        fields.end()?;
        Ok(content)
    }
}

impl Checkpoint {
    fn take(fields: &mut Fields<'_>) -> Result<Self, FieldError> {
        let hard_state = HardState::take(fields)?;
        let start = fields.position()?;
        let members = fields.members()?;
        let count = fields.u32("number of entries")? as usize;
        if count > CHECKPOINT_ENTRIES_MAX || start.index > NUMBER_MAX - CHECKPOINT_ENTRIES_MAX as u64 {
            return Err(FieldError::Value { what: "number of entries" });
        }
        let mut entries = Vec::with_capacity(count.min(fields.rest().len() / CHECKPOINT_ENTRY_LENGTH));
        for index in (start.index + 1..).take(count) {
            let term = fields.number("term")?;
            entries.push(EntryRecord::take_content(fields, index, term)?);
        }
        let acknowledged = if fields.rest().is_empty() { Vec::new() } else { take_list(fields)? };
        Ok(Self { hard_state, start, members, entries, acknowledged })
    }
}

fn put_list(bytes: &mut Vec<u8>, list: &[(MemberId, Acknowledgement)]) {
    put_acknowledged(bytes, list.iter().map(|(member, Acknowledgement { term, index })| [member.get(), *term, *index]));
}

fn take_list(fields: &mut Fields<'_>) -> Result<Vec<(MemberId, Acknowledgement)>, FieldError> {
    let count = fields.count("number of acknowledgements")?;
    let each = |_| {
        let member = fields.member("member that has acknowledged")?;
        let (term, index) = (fields.number("term")?, fields.number("index")?);
        Ok((member, Acknowledgement { term, index }))
    };
    let list = (0..count).map(each).collect::<Result<Vec<_>, _>>()?;
    let is_right = !list.is_empty() && list.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if is_right { Ok(list) } else { Err(FieldError::Value { what: "order of acknowledgements" }) }
}
