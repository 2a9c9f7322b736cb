//! Encoding of a transaction's events in the stream, after the reply.
//!
//! ```text
//!   0  u8   version, 1
//!   1  u8   flags: 1 identifier, 2 metadata
//!   2  u16  events
//!   4  with an identifier: u128 the command's identifier, u64 hash of the command
//!      with metadata: u16 length, headers
//!      each event:
//!        0  u32  key of the event's type
//!        4  u16  version of the event's type
//!        6  u8   length of the aggregate's identifier
//!        7  u8   0
//!        8  u32  key of the aggregate's type; 0 of an event without an aggregate
//!       12  u32  length of the tags
//!       16  u32  length of the payload
//!       20  the identifier; the tags, each as u8 length, name, u8 length, value; the payload
//! ```
//!
//! Numbers are little-endian. An event's ordinal is its index, from 0.

use crate::identity::{Position, TypeKey};
use gapless_message::headers::Headers;
use gapless_message::{Message, MessageError};
use gapless_wire::fields::{FieldError, FieldReader, u16_at, u32_at};

const VERSION: u8 = 1;
const HAS_IDENTIFIER: u8 = 1;
const HAS_HEADERS: u8 = 2;
const COUNT_AT: usize = 2;
pub(crate) const EVENT_HEAD_LENGTH: usize = 20;
const PAYLOAD_LENGTH_AT: usize = 16;

/// Caller's identifier of a command, and hash, to detect duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandIdentity {
    /// Chosen by the caller.
    pub identifier: u128,
    /// Hash of target, type and content.
    pub hash: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventHead<'a> {
    pub event: TypeKey,
    pub version: u32,
    /// [`TypeKey::NONE`] for an event without an aggregate.
    pub aggregate: TypeKey,
    pub id: &'a [u8],
    pub tags: &'a [u8],
}

#[inline]
pub(crate) fn write_head(out: &mut Vec<u8>, identity: Option<CommandIdentity>, headers: &[u8]) {
    let flags = (u8::from(identity.is_some()) * HAS_IDENTIFIER) | (u8::from(!headers.is_empty()) * HAS_HEADERS);
    out.extend_from_slice(&[VERSION, flags, 0, 0]);
    if let Some(identity) = identity {
        out.extend_from_slice(&identity.identifier.to_le_bytes());
        out.extend_from_slice(&identity.hash.to_le_bytes());
    }
    if !headers.is_empty() {
        out.extend_from_slice(&(headers.len() as u16).to_le_bytes());
        out.extend_from_slice(headers);
    }
}

#[inline]
pub(crate) fn write_event<Error>(
    out: &mut Vec<u8>,
    head: &EventHead<'_>,
    payload: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let begin = out.len();
    let mut bytes = [0; EVENT_HEAD_LENGTH];
    bytes[..4].copy_from_slice(&head.event.0.to_le_bytes());
    bytes[4..6].copy_from_slice(&(head.version as u16).to_le_bytes());
    bytes[6] = head.id.len() as u8;
    bytes[8..12].copy_from_slice(&head.aggregate.0.to_le_bytes());
    bytes[12..16].copy_from_slice(&(head.tags.len() as u32).to_le_bytes());
    out.extend_from_slice(&bytes);
    out.extend_from_slice(head.id);
    out.extend_from_slice(head.tags);
    let payload_at = out.len();
    payload(out)?;
    let length = (out.len() - payload_at) as u32;
    out[begin + PAYLOAD_LENGTH_AT..][..4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

#[inline]
pub(crate) fn write_count(transaction: &mut [u8], count: u16) {
    transaction[COUNT_AT..][..2].copy_from_slice(&count.to_le_bytes());
}

/// A stored event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedEvent<'a> {
    /// Position, also its identifier.
    pub position: Position,
    /// Type key.
    pub event: TypeKey,
    /// Type version.
    pub version: u32,
    /// Aggregate's type; [`TypeKey::NONE`] without one.
    pub aggregate: TypeKey,
    /// Encoded identifier of the aggregate.
    pub id: &'a [u8],
    tags: &'a [u8],
    /// Encoded event.
    pub payload: &'a [u8],
}

impl<'a> RecordedEvent<'a> {
    /// `None` if the event is of another type.
    ///
    /// # Errors
    /// The bytes do not decode, or have an unknown version.
    pub fn read<E: Message>(&self) -> Result<Option<E>, MessageError> {
        match self.event == const { TypeKey::of(E::TYPE_NAME) } {
            true => E::decode_as(self.version, self.payload).map(Some),
            false => Ok(None),
        }
    }

    /// Tags, name and value.
    pub fn tags(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let mut fields = FieldReader::new(self.tags);
        std::iter::from_fn(move || read_tag(&mut fields).ok().flatten())
    }
}

fn read_tag<'a>(fields: &mut FieldReader<'a>) -> Result<Option<(&'a str, &'a [u8])>, FieldError> {
    if fields.rest().is_empty() {
        return Ok(None);
    }
    let length = fields.u8("the length of a tag's name")?;
    let name = std::str::from_utf8(fields.bytes(length.into(), "a tag's name")?);
    let length = fields.u8("the length of a tag's value")?;
    let value = fields.bytes(length.into(), "a tag's value")?;
    Ok(Some((name.map_err(|_| FieldError::Value { what: "a tag's name" })?, value)))
}

/// Events of a stored transaction.
#[derive(Clone, Debug)]
pub struct RecordedEvents<'a> {
    identity: Option<CommandIdentity>,
    headers: &'a [u8],
    fields: FieldReader<'a>,
    next: Position,
    left: u16,
}

/// Whether an encoded transaction has events, by its head alone.
pub(crate) fn has_events(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.get(COUNT_AT..COUNT_AT + 2).is_none_or(|count| count != [0, 0])
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EventCursor {
    length: usize,
    events: u16,
}

impl<'a> RecordedEvents<'a> {
    /// `sequence` is the first frame's.
    ///
    /// # Errors
    /// The first fault found.
    pub fn read(sequence: u64, bytes: &'a [u8]) -> Result<Self, FieldError> {
        let mut fields = FieldReader::new(bytes);
        let head: &[u8; 4] = fields.head("the head of a transaction's events")?;
        if head[0] != VERSION || head[1] & !(HAS_IDENTIFIER | HAS_HEADERS) != 0 {
            return Err(FieldError::Value { what: "the version of a transaction's events" });
        }
        let identity = match head[1] & HAS_IDENTIFIER {
            0 => None,
            _ => {
                let identifier = u128::from_le_bytes(fields.array("a command's identifier")?);
                Some(CommandIdentity { identifier, hash: fields.u64("a command's hash")? })
            }
        };
        let headers = match head[1] & HAS_HEADERS {
            0 => &[][..],
            _ => {
                let length = fields.u16("the length of metadata")?;
                fields.bytes(length.into(), "metadata")?
            }
        };
        Ok(Self { identity, headers, fields, next: Position { sequence, ordinal: 0 }, left: u16_at(head, COUNT_AT) })
    }

    /// Identifier of the command, if the caller gave one.
    #[must_use]
    pub const fn identity(&self) -> Option<CommandIdentity> {
        self.identity
    }

    pub(crate) const fn encoded_headers(&self) -> &'a [u8] {
        self.headers
    }

    /// Headers; `None` if they do not decode.
    #[must_use]
    pub fn headers(&self) -> Option<Headers> {
        Headers::decode(self.headers)
    }

    pub(crate) fn cursor(&self, bytes: usize) -> EventCursor {
        EventCursor { length: bytes - self.fields.rest().len(), events: self.next.ordinal }
    }

    pub(crate) fn skip(&mut self, cursor: EventCursor, bytes: &'a [u8]) {
        if cursor.events > 0 {
            self.fields = FieldReader::new(&bytes[cursor.length..]);
            self.left -= cursor.events;
            self.next.ordinal = cursor.events;
        }
    }

    /// Next event; `None` after the last.
    ///
    /// # Errors
    /// The first fault found.
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<RecordedEvent<'a>>, FieldError> {
        let Some(left) = self.left.checked_sub(1) else {
            return match self.fields.rest() {
                [] => Ok(None),
                _ => Err(FieldError::Value { what: "what stands behind the last event" }),
            };
        };
        let fields = &mut self.fields;
        let head: &[u8; EVENT_HEAD_LENGTH] = fields.head("the head of an event")?;
        let id = fields.bytes(head[6].into(), "an aggregate's identifier")?;
        let tags = fields.bytes(u32_at(head, 12) as usize, "an event's tags")?;
        let payload = fields.bytes(u32_at(head, PAYLOAD_LENGTH_AT) as usize, "an event")?;
        let mut checked = FieldReader::new(tags);
        while read_tag(&mut checked)?.is_some() {}
        let position = self.next;
        self.left = left;
        self.next.ordinal = position.ordinal.wrapping_add(1);
        let (event, aggregate) = (TypeKey(u32_at(head, 0)), TypeKey(u32_at(head, 8)));
        Ok(Some(RecordedEvent { position, event, version: u16_at(head, 4).into(), aggregate, id, tags, payload }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode_transaction(identity: Option<CommandIdentity>, headers: &Headers) -> Vec<u8> {
        let (mut out, mut encoded) = (Vec::new(), Vec::new());
        headers.encode(&mut encoded).unwrap();
        write_head(&mut out, identity, &encoded);
        let key = TypeKey::of("a");
        let tags = b"\x04seat\x0217";
        let head = EventHead { event: key, version: 2, aggregate: TypeKey::of("b"), id: b"id", tags };
        let payload = |out: &mut Vec<u8>| {
            out.extend_from_slice(b"first");
            Ok::<_, ()>(())
        };
        write_event(&mut out, &head, payload).unwrap();
        let head = EventHead { event: key, version: 1, aggregate: TypeKey::NONE, id: b"", tags: b"" };
        write_event(&mut out, &head, |_| Ok::<_, ()>(())).unwrap();
        write_count(&mut out, 2);
        out
    }

    #[test]
    fn events_round_trip() {
        let identity = Some(CommandIdentity { identifier: 1 << 100, hash: 7 });
        for identity in [None, identity] {
            for headers in [Headers::default(), Headers::default().with("user", "x")] {
                let bytes = encode_transaction(identity, &headers);
                let mut events = RecordedEvents::read(5, &bytes).unwrap();
                assert_eq!((events.identity(), events.headers()), (identity, Some(headers)));
                let first = events.next_event().unwrap().unwrap();
                assert_eq!((first.position, first.version), (Position { sequence: 5, ordinal: 0 }, 2));
                assert_eq!((first.aggregate, first.id, first.payload), (TypeKey::of("b"), &b"id"[..], &b"first"[..]));
                assert_eq!(first.tags().collect::<Vec<_>>(), [("seat", &b"17"[..])]);
                let second = events.next_event().unwrap().unwrap();
                assert_eq!((second.position.ordinal, second.aggregate, second.tags().count()), (1, TypeKey::NONE, 0));
                assert_eq!(events.next_event(), Ok(None));
            }
        }
    }

    #[test]
    fn malformed_events_are_errors() {
        let bytes =
            encode_transaction(Some(CommandIdentity { identifier: 1, hash: 2 }), &Headers::default().with("a", "b"));
        let read = |bytes: &[u8]| {
            let mut events = RecordedEvents::read(1, bytes)?;
            while let Some(event) = events.next_event()? {
                event.tags().for_each(drop);
            }
            Ok::<_, FieldError>(())
        };
        assert_eq!(read(&bytes), Ok(()));
        (0..bytes.len()).for_each(|cut| assert!(read(&bytes[..cut]).is_err(), "cut at {cut}"));
        let longer = [&bytes[..], &[0]].concat();
        assert!(read(&longer).is_err());
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                // A checksum detects damage elsewhere; here no read may leave the buffer.
                let _ = read(&changed);
            }
        }
    }
}
