//! Encoding of a command on its way to the writer, and of the writer's answer.
//!
//! ```text
//! command                                             answer
//!   0  u8   version, 1                                  0  u8   version, 1
//!   1  u8   flags: 1 identifier, 2 expected version,    1  u8   outcome, as `AnswerKind` says
//!           4 condition
//!   2  u16  version of the command's type               2  u16  version of the type of reply or refusal
//!   4  u32  key of the aggregate's type; 0 without      4  u32  key of the type of reply or refusal; 0 without
//!   8  u32  key of the command's type                   8  u64  sequence of the transaction's first frame
//!  12  u16  length of the metadata                     16  u64  version of the aggregate after it
//!  14  u8   length of the aggregate's identifier       24  u32  events
//!  15  u8   0                                          28  u32  0
//!  16  u128 identifier, if any                         32  reply, refusal or text
//!      u64  expected version, if any
//!      condition, if any: u64 sequence, u16 ordinal, u16 length of a filter, filter
//!      metadata, the aggregate's identifier, payload
//! ```
//! Numbers are little-endian. After a failed condition, 8 is the sequence of the excluded event, and 16 its ordinal.

use crate::identity::{Position, TypeKey};
use gapless_message::headers::Headers;
use gapless_wire::fields::{FieldError, FieldReader, u16_at, u32_at, u64_at};

const VERSION: u8 = 1;
const HAS_IDENTIFIER: u8 = 1;
const HAS_EXPECTED_VERSION: u8 = 2;
const HAS_CONDITION: u8 = 4;
const COMMAND_HEAD_LENGTH: usize = 16;
const METADATA_LENGTH_AT: usize = 12;
const ANSWER_HEAD_LENGTH: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition<'a> {
    pub after: Position,
    pub filter: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandEnvelope<'a> {
    /// [`TypeKey::NONE`] for a handler's command.
    pub aggregate: TypeKey,
    pub command: TypeKey,
    pub version: u32,
    pub identifier: Option<u128>,
    pub expected_version: Option<u64>,
    pub condition: Option<Condition<'a>>,
    pub metadata: &'a [u8],
    /// Identifier of the aggregate.
    pub id: &'a [u8],
    pub payload: &'a [u8],
}

impl<'a> Condition<'a> {
    #[cold]
    fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.after.sequence.to_le_bytes());
        into.extend_from_slice(&self.after.ordinal.to_le_bytes());
        into.extend_from_slice(&(self.filter.len() as u16).to_le_bytes());
        into.extend_from_slice(self.filter);
    }

    #[cold]
    fn read(fields: &mut FieldReader<'a>) -> Result<Self, FieldError> {
        let sequence = fields.u64("a condition's position")?;
        let ordinal = fields.u16("a condition's position")?;
        let length = fields.u16("the length of a filter")?;
        let filter = fields.bytes(length.into(), "a filter")?;
        Ok(Self { after: Position { sequence, ordinal }, filter })
    }
}

impl<'a> CommandEnvelope<'a> {
    /// Encodes the command with other headers.
    ///
    /// # Errors
    /// The headers are too long.
    #[cold]
    pub fn with_headers(&self, headers: &Headers) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        self.write_head(&mut bytes, |into| headers.encode(into))?;
        bytes.extend_from_slice(self.payload);
        Ok(bytes)
    }

    /// Appends all but the payload, which must follow; `write_metadata` replaces the metadata.
    ///
    /// # Errors
    /// Errors of `write_metadata`.
    #[inline]
    pub fn write_head(
        &self,
        into: &mut Vec<u8>,
        write_metadata: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
    ) -> Result<(), String> {
        let flags = (u8::from(self.identifier.is_some()) * HAS_IDENTIFIER)
            | (u8::from(self.expected_version.is_some()) * HAS_EXPECTED_VERSION)
            | (u8::from(self.condition.is_some()) * HAS_CONDITION);
        let mut head = [0; COMMAND_HEAD_LENGTH];
        (head[0], head[1], head[14]) = (VERSION, flags, self.id.len() as u8);
        head[2..4].copy_from_slice(&(self.version as u16).to_le_bytes());
        head[4..8].copy_from_slice(&self.aggregate.0.to_le_bytes());
        head[8..12].copy_from_slice(&self.command.0.to_le_bytes());
        let begin = into.len();
        into.extend_from_slice(&head);
        self.identifier.iter().for_each(|identifier| into.extend_from_slice(&identifier.to_le_bytes()));
        self.expected_version.iter().for_each(|version| into.extend_from_slice(&version.to_le_bytes()));
        self.condition.iter().for_each(|condition| condition.write(into));
        let metadata = into.len();
        write_metadata(into)?;
        let length = (into.len() - metadata) as u16;
        into[begin + METADATA_LENGTH_AT..][..2].copy_from_slice(&length.to_le_bytes());
        into.extend_from_slice(self.id);
        Ok(())
    }

    /// Decodes a command.
    ///
    /// # Errors
    /// The first fault found.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Result<Self, FieldError> {
        let mut fields = FieldReader::new(bytes);
        let head: &[u8; COMMAND_HEAD_LENGTH] = fields.head("the head of a command")?;
        if head[0] != VERSION || head[1] & !(HAS_IDENTIFIER | HAS_EXPECTED_VERSION | HAS_CONDITION) != 0 {
            return Err(FieldError::Value { what: "the version of a command's head" });
        }
        let identifier = match head[1] & HAS_IDENTIFIER {
            0 => None,
            _ => Some(u128::from_le_bytes(fields.array("a command's identifier")?)),
        };
        let expected_version = match head[1] & HAS_EXPECTED_VERSION {
            0 => None,
            _ => Some(fields.u64("the expected version")?),
        };
        let condition = match head[1] & HAS_CONDITION {
            0 => None,
            _ => Some(Condition::read(&mut fields)?),
        };
        let metadata = fields.bytes(u16_at(head, METADATA_LENGTH_AT).into(), "metadata")?;
        let id = fields.bytes(head[14].into(), "an aggregate's identifier")?;
        let (aggregate, command) = (TypeKey(u32_at(head, 4)), TypeKey(u32_at(head, 8)));
        let version = u16_at(head, 2).into();
        let payload = fields.rest();
        Ok(Self { aggregate, command, version, identifier, expected_version, condition, metadata, id, payload })
    }
}

#[cold]
pub(crate) fn change_identifier(command: &mut [u8], identifier: u128) {
    if command[1] & HAS_IDENTIFIER != 0 {
        command[COMMAND_HEAD_LENGTH..][..16].copy_from_slice(&identifier.to_le_bytes());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum AnswerKind {
    /// The handler's reply follows.
    Accepted = 0,
    /// The application's refusal follows.
    Refused = 1,
    NotFound = 2,
    AlreadyExists = 3,
    /// The version found is in the answer.
    Conflict = 4,
    IdentifierReused = 5,
    /// The aggregate cannot be loaded from its events; the reason follows.
    Quarantined = 6,
    ConditionFailed = 7,
    /// The reason follows.
    Intercepted = 8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandAnswer<Bytes> {
    pub kind: AnswerKind,
    /// Type of the message in `rest`; [`TypeKey::NONE`] if that is no message.
    pub message: TypeKey,
    pub message_version: u32,
    /// Position of the first event, if any.
    pub position: Position,
    pub aggregate_version: u64,
    pub events: u32,
    /// Reply, refusal, or text.
    pub rest: Bytes,
}

impl<'a> CommandAnswer<&'a [u8]> {
    /// A copy that owns its bytes, usually none.
    #[inline]
    pub fn owned(&self) -> CommandAnswer<Vec<u8>> {
        let Self { kind, message, message_version, position, aggregate_version, events, rest } = *self;
        CommandAnswer { kind, message, message_version, position, aggregate_version, events, rest: rest.to_vec() }
    }

    #[inline]
    pub fn write(&self, into: &mut Vec<u8>) {
        let mut head = [0; ANSWER_HEAD_LENGTH];
        (head[0], head[1]) = (VERSION, self.kind as u8);
        head[2..4].copy_from_slice(&(self.message_version as u16).to_le_bytes());
        head[4..8].copy_from_slice(&self.message.0.to_le_bytes());
        head[8..16].copy_from_slice(&self.position.sequence.to_le_bytes());
        head[16..24].copy_from_slice(&self.aggregate_version.to_le_bytes());
        head[24..28].copy_from_slice(&self.events.to_le_bytes());
        into.extend_from_slice(&head);
        into.extend_from_slice(self.rest);
    }

    /// Decodes an answer.
    ///
    /// # Errors
    /// The first fault found.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Result<Self, FieldError> {
        let mut fields = FieldReader::new(bytes);
        let head: &[u8; ANSWER_HEAD_LENGTH] = fields.head("the head of an answer")?;
        let kind = match head[1] {
            0 => AnswerKind::Accepted,
            1 => AnswerKind::Refused,
            2 => AnswerKind::NotFound,
            3 => AnswerKind::AlreadyExists,
            4 => AnswerKind::Conflict,
            5 => AnswerKind::IdentifierReused,
            6 => AnswerKind::Quarantined,
            7 => AnswerKind::ConditionFailed,
            8 => AnswerKind::Intercepted,
            _ => return Err(FieldError::Value { what: "what has become of a command" }),
        };
        if head[0] != VERSION {
            return Err(FieldError::Value { what: "the version of an answer" });
        }
        let (message, message_version) = (TypeKey(u32_at(head, 4)), u16_at(head, 2).into());
        let position = Position { sequence: u64_at(head, 8), ordinal: 0 };
        let (aggregate_version, events) = (u64_at(head, 16), u32_at(head, 24));
        Ok(Self { kind, message, message_version, position, aggregate_version, events, rest: fields.rest() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_round_trips() {
        let after = Position { sequence: 1 << 40, ordinal: 3 };
        let condition = Some(Condition { after, filter: b"filter" });
        let identifiers = [(None, None), (Some(u128::MAX), None), (Some(1), Some(2))];
        let conditions = [None, condition];
        for ((identifier, expected_version), condition) in
            identifiers.into_iter().flat_map(|identifiers| conditions.map(|condition| (identifiers, condition)))
        {
            let envelope = CommandEnvelope {
                aggregate: TypeKey::of("account"),
                command: TypeKey::of("Deposit"),
                version: 3,
                identifier,
                expected_version,
                condition,
                metadata: b"meta",
                id: b"id",
                payload: b"payload",
            };
            let mut bytes = Vec::new();
            let written = envelope.write_head(&mut bytes, |into| {
                into.extend_from_slice(envelope.metadata);
                Ok(())
            });
            assert_eq!(written, Ok(()));
            let head_length = bytes.len();
            bytes.extend_from_slice(envelope.payload);
            assert_eq!(CommandEnvelope::read(&bytes), Ok(envelope));
            (0..head_length).for_each(|cut| assert!(CommandEnvelope::read(&bytes[..cut]).is_err(), "cut at {cut}"));
            let headers = Headers::default().with("a", "b");
            let mut other = envelope.with_headers(&headers).unwrap();
            change_identifier(&mut other, 77);
            let read = CommandEnvelope::read(&other).unwrap();
            assert_eq!(Headers::decode(read.metadata), Some(headers));
            assert_eq!(CommandEnvelope { metadata: b"meta", identifier, ..read }, envelope);
            assert_eq!(read.identifier, identifier.map(|_| 77));
            bytes[0] = 2;
            assert!(CommandEnvelope::read(&bytes).is_err());
        }
    }

    #[test]
    fn answer_round_trips() {
        for code in 0..=9 {
            let mut bytes = vec![1, code];
            bytes.resize(ANSWER_HEAD_LENGTH, 7);
            bytes.push(9);
            let Ok(answer) = CommandAnswer::read(&bytes) else {
                assert_eq!(code, 9);
                continue;
            };
            assert_eq!((answer.kind as u8, answer.rest, answer.events), (code, &[9][..], 0x0707_0707));
            let mut written = Vec::new();
            answer.write(&mut written);
            assert_eq!(CommandAnswer::read(&written), Ok(answer));
            (0..ANSWER_HEAD_LENGTH)
                .for_each(|cut| assert!(CommandAnswer::read(&bytes[..cut]).is_err(), "cut at {cut}"));
        }
    }
}
