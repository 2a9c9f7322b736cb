//! Messages between members as bytes (decision 4: bytes from a peer never reach the protobuf decoder). Numbers are
//! little-endian.
//!
//! ```text
//!   0  u8   version, 1                      32  u64  log term
//!   1  u8   type: raft's number             40  u64  index
//!   2  u8   flags: 1 rejected               48  u64  commit
//!             2 transfer of the lead        56  u64  commit's term
//!             4 a context of 16 bytes       64  u64  hint of a rejection
//!             8 a vote that counts only     72  …    the context, if there is one
//!               with those of all others    …   …    the entries, or a log position and its members
//!            16 about the end of a log
//!   3  u8   0                               an entry: u64 term, u8 kind: 0 without frames, 1 batch, 2 change;
//!   4  u32  number of entries               then the batch's 24 bytes, or the change's steps
//!   8  u64  to
//!  16  u64  from
//!  24  u64  term
//! ```
//!
//! An entry's index is not sent: they follow the message's index without a gap.

use super::change::MembershipChange;
use super::fields::{FieldError, Fields, put_position, put_u64};
use super::members::put_members;
use super::raft_form::{batch_in, position_of, snapshot_of};
use super::types::NUMBER_MAX;
use raft::eraftpb::{Entry, EntryType, Message, MessageType};

pub const VERSION: u8 = 1;
/// Limit of entries in a message.
pub const ENTRIES_MAX: usize = 4096;
/// The asking member, and the number of its start.
pub(super) const CONTEXT_LENGTH: usize = 16;

const REJECTED_FLAG: u8 = 1;
const TRANSFER_FLAG: u8 = 2;
const CONTEXT_FLAG: u8 = 4;
const CONDITIONAL_FLAG: u8 = 8;
const END_FLAG: u8 = 16;
const TRANSFER_CONTEXT: &[u8] = b"CampaignTransfer";
/// Vote that counts only with all others; raft-rs ignores it.
pub(super) const CONDITIONAL_CONTEXT: &[u8] = b"Conditional";
/// Question about the end of a log, and its answer; raft-rs does not see them.
pub(super) const END_CONTEXT: &[u8] = b"End";

/// Reason for which bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("a message of consensus is cut short after {found_bytes} bytes")]
    Short { found_bytes: usize },
    /// A layout that this program does not know.
    #[error("a message of consensus has version {found}, {VERSION} is expected")]
    Version { found: u8 },
    /// Unknown, local, or a proposal.
    #[error("a message of consensus has type {found}, which members do not send to each other")]
    Type { found: u8 },
    /// A field has an invalid value.
    #[error("a message of consensus has a wrong {0}")]
    Field(&'static str),
}

/// Heartbeat or response: its sender is alive, and nothing else is to be done. False for bytes that are no message.
#[must_use]
pub fn is_heartbeat(bytes: &[u8]) -> bool {
    let kind = bytes.get(1).and_then(|kind| type_of(*kind));
    matches!(kind, Some(MessageType::MsgHeartbeat | MessageType::MsgHeartbeatResponse))
}

const fn type_of(byte: u8) -> Option<MessageType> {
    Some(match byte {
        3 => MessageType::MsgAppend,
        4 => MessageType::MsgAppendResponse,
        5 => MessageType::MsgRequestVote,
        6 => MessageType::MsgRequestVoteResponse,
        7 => MessageType::MsgSnapshot,
        8 => MessageType::MsgHeartbeat,
        9 => MessageType::MsgHeartbeatResponse,
        14 => MessageType::MsgTimeoutNow,
        15 => MessageType::MsgReadIndex,
        16 => MessageType::MsgReadIndexResp,
        17 => MessageType::MsgRequestPreVote,
        18 => MessageType::MsgRequestPreVoteResponse,
        _ => return None,
    })
}

/// Members ask for the end of a log in the layout of a read.
const fn is_read(kind: MessageType) -> bool {
    matches!(kind, MessageType::MsgReadIndex | MessageType::MsgReadIndexResp)
}

const fn is_voted(kind: MessageType) -> bool {
    matches!(kind, MessageType::MsgRequestVoteResponse | MessageType::MsgRequestPreVoteResponse)
}

const fn is_vote(kind: MessageType) -> bool {
    matches!(kind, MessageType::MsgRequestVote | MessageType::MsgRequestPreVote)
}

/// Proposals and orders to the leader stay inside a member.
pub(super) fn is_sent(message: &Message) -> bool {
    type_of(message.get_msg_type() as u8).is_some()
}

/// Appends the encoding of a message from [`crate::consensus::Effects`].
///
/// # Panics
/// If the core never sends it.
pub fn encode(message: &Message, bytes: &mut Vec<u8>) {
    let kind = message.get_msg_type();
    assert!(is_sent(message), "{kind:?} is never sent");
    let is_transfer = is_vote(kind) && message.get_context() == TRANSFER_CONTEXT;
    let context = if is_read(kind) { message.get_entries()[0].get_data() } else { message.get_context() };
    let is_conditional = is_voted(kind) && message.get_context() == CONDITIONAL_CONTEXT;
    let is_end = is_read(kind) && message.get_context() == END_CONTEXT;
    let context = if is_transfer || is_conditional { &[][..] } else { context };
    assert!(context.is_empty() || context.len() == CONTEXT_LENGTH, "a context is made by the core");
    let entries = if is_read(kind) { &[][..] } else { message.get_entries() };

    let mut flags = if message.reject { REJECTED_FLAG } else { 0 };
    flags |= if is_transfer { TRANSFER_FLAG } else { 0 };
    flags |= if context.is_empty() { 0 } else { CONTEXT_FLAG };
    flags |= if is_conditional { CONDITIONAL_FLAG } else { 0 };
    flags |= if is_end { END_FLAG } else { 0 };
    bytes.extend_from_slice(&[VERSION, kind as u8, flags, 0]);
    bytes.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    let numbers = [message.to, message.from, message.term, message.log_term, message.index, message.commit];
    for number in numbers.into_iter().chain([message.commit_term, message.reject_hint]) {
        put_u64(bytes, number);
    }
    bytes.extend_from_slice(context);
    for (entry, index) in entries.iter().zip(message.index + 1..) {
        assert_eq!(entry.index, index, "a message's entries follow each other");
        put_entry(entry, bytes);
    }
    if kind == MessageType::MsgSnapshot {
        let (position, members) = position_of(message.get_snapshot()).expect("the core made this snapshot");
        put_position(bytes, &position);
        put_members(bytes, &members);
    }
}

fn put_entry(entry: &Entry, bytes: &mut Vec<u8>) {
    put_u64(bytes, entry.term);
    match entry.get_entry_type() {
        EntryType::EntryNormal if entry.get_data().is_empty() => bytes.push(0),
        EntryType::EntryNormal => {
            bytes.push(1);
            bytes.extend_from_slice(entry.get_data());
        }
        EntryType::EntryConfChange | EntryType::EntryConfChangeV2 => {
            bytes.push(2);
            MembershipChange::from_entry_data(entry.get_data()).put(bytes);
        }
    }
}

/// Decodes a message, every field checked.
///
/// # Errors
/// The first invalid field.
pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
    let mut fields = Fields::new(bytes);
    take(&mut fields).map_err(|error| match error {
        TakeError::Field(FieldError::Short { .. }) => DecodeError::Short { found_bytes: bytes.len() },
        TakeError::Field(FieldError::Value { what }) => DecodeError::Field(what),
        TakeError::Decode(error) => error,
    })
}

enum TakeError {
    Field(FieldError),
    Decode(DecodeError),
}

impl From<FieldError> for TakeError {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
    }
}

fn ensure(is_right: bool, name: &'static str) -> Result<(), FieldError> {
    if is_right { Ok(()) } else { Err(FieldError::Value { what: name }) }
}

fn take(fields: &mut Fields<'_>) -> Result<Message, TakeError> {
    let version = fields.u8("version")?;
    if version != VERSION {
        return Err(TakeError::Decode(DecodeError::Version { found: version }));
    }
    let found = fields.u8("type")?;
    let kind = type_of(found).ok_or(TakeError::Decode(DecodeError::Type { found }))?;
    let flags = fields.u8("flags")?;
    ensure(flags & !(REJECTED_FLAG | TRANSFER_FLAG | CONTEXT_FLAG | CONDITIONAL_FLAG | END_FLAG) == 0, "flag")?;
    ensure(fields.u8("reserved byte")? == 0, "reserved byte")?;
    let count = fields.u32("number of entries")? as usize;
    let mut message = Message::default();
    message.set_msg_type(kind);
    message.to = fields.member("receiver")?.get();
    message.from = fields.member("sender")?.get();
    message.term = fields.number("term")?;
    message.log_term = fields.number("log term")?;
    message.index = fields.number("index")?;
    message.commit = fields.number("commit")?;
    message.commit_term = fields.number("commit's term")?;
    message.reject_hint = fields.number("hint of a rejection")?;
    message.reject = flags & REJECTED_FLAG != 0;
    ensure((message.term == 0) == (kind == MessageType::MsgReadIndex), "term")?;
    ensure(count == 0 || kind == MessageType::MsgAppend, "number of entries")?;

    if flags & TRANSFER_FLAG != 0 {
        ensure(is_vote(kind), "transfer")?;
        message.context = TRANSFER_CONTEXT.into();
    }
    if flags & CONDITIONAL_FLAG != 0 {
        ensure(is_voted(kind) && !message.reject, "condition")?;
        message.context = CONDITIONAL_CONTEXT.into();
    }
    if flags & END_FLAG != 0 {
        ensure(is_read(kind), "end")?;
        message.context = END_CONTEXT.into();
    }
    let may_have_context = matches!(kind, MessageType::MsgHeartbeat | MessageType::MsgHeartbeatResponse);
    if flags & CONTEXT_FLAG != 0 {
        let context = fields.bytes(CONTEXT_LENGTH, "context")?.to_vec();
        if is_read(kind) {
            let entry = Entry { data: context.into(), ..Entry::default() };
            message.mut_entries().push(entry);
        } else {
            ensure(may_have_context, "context")?;
            message.context = context.into();
        }
    } else {
        ensure(!is_read(kind), "context")?;
    }

    match kind {
        MessageType::MsgAppend => take_entries(fields, &mut message, count)?,
        MessageType::MsgSnapshot => {
            let position = fields.position()?;
            ensure(position.index >= 1 && position.term >= 1 && position.term <= message.term, "log position")?;
            let members = fields.members()?;
            ensure(!members.is_empty(), "members")?;
            message.set_snapshot(snapshot_of(&position, &members));
        }
        _ => {}
    }
    fields.end()?;
    Ok(message)
}

fn take_entries(fields: &mut Fields<'_>, message: &mut Message, count: usize) -> Result<(), FieldError> {
    ensure(count <= ENTRIES_MAX && message.log_term <= message.term, "number of entries or log term")?;
    ensure(message.index < NUMBER_MAX - ENTRIES_MAX as u64, "index")?;
    let mut entries = Vec::with_capacity(count.min(fields.rest().len() / 9));
    let (mut term, mut end) = (message.log_term.max(1), None);
    for index in (message.index + 1..).take(count) {
        let mut entry = Entry { index, term: fields.number("term of an entry")?, ..Entry::default() };
        ensure(entry.term >= term && entry.term <= message.term, "term of an entry")?;
        term = entry.term;
        match fields.u8("kind of an entry")? {
            0 => {}
            1 => {
                let batch = fields.batch()?;
                let follows = end.is_none_or(|end: u64| batch.first_sequence == end + 1);
                ensure(!batch.is_empty() && follows, "batch")?;
                end = Some(batch.end_sequence);
                entry.data = batch.to_bytes().to_vec().into();
            }
            2 => {
                entry.set_entry_type(EntryType::EntryConfChangeV2);
                entry.data = MembershipChange::take(fields)?.to_entry_data().into();
            }
            _ => return Err(FieldError::Value { what: "kind of an entry" }),
        }
        entries.push(entry);
    }
    message.set_entries(entries.into());
    Ok(())
}

/// First and last sequence of a message's frames.
#[must_use]
pub fn frames_of(message: &Message) -> Option<(u64, u64)> {
    if message.get_msg_type() != MessageType::MsgAppend {
        return None;
    }
    let mut batches = message.get_entries().iter().filter_map(batch_in);
    let first = batches.next()?;
    Some((first.first_sequence, batches.last().unwrap_or(first).end_sequence))
}
