//! Records of an inbox and their headers, all in `docs/protocols/kafka.md`. Foreign bytes reach nothing above without
//! these checks.

pub(crate) mod bundle;
pub(crate) mod fields;
pub mod names;
mod reading;
mod writing;

use crate::outcome::CallFailure;
use gapless_message::Encoding;
use gapless_message::described::TypeDescription;
use gapless_rpc::{Headers, InstanceQuery, Priority, TraceContext};
use names::BridgeId;
use std::borrow::Cow;

pub use fields::SEGMENTS_MAX;
pub(crate) use reading::read_sender;
pub use reading::{CORRELATION_LENGTH_MAX, MalformedRecord, read};
pub use writing::RecordWriter;

/// Version of the protocol that this crate speaks.
pub const PROTOCOL_VERSION: u16 = 1;
/// Bridges that a request passes at most, forwards included.
pub const HOPS_MAX: u8 = 16;

/// Name and value of a header; a null value is an empty one.
pub type RecordHeader = (Cow<'static, str>, Vec<u8>);

/// Converts a client's header without a copy of a protocol name; `None` for a header that no bridge reads.
#[must_use]
pub fn header(name: &[u8], value: Option<&[u8]>) -> Option<RecordHeader> {
    let name = std::str::from_utf8(name).ok()?;
    let known = names::ALL.iter().find(|known| **known == name).map(|known| Cow::Borrowed(*known));
    let is_application = name.starts_with(names::APPLICATION_PREFIX);
    let name = known.or_else(|| is_application.then(|| Cow::Owned(name.to_owned())))?;
    Some((name, value.unwrap_or_default().to_vec()))
}

/// A topic that a bridge reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    Inbox,
    Presence,
}

/// A record as a topic holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KafkaRecord {
    /// Key; only leases have one.
    pub key: Option<Vec<u8>>,
    /// Headers in their order.
    pub headers: Vec<RecordHeader>,
    /// Payload; `None` is a tombstone.
    pub payload: Option<Vec<u8>>,
}

/// A record that was read, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordEnvelope {
    /// Sender.
    pub sender: RecordSender,
    /// Incarnation that the record is for; `None` means any reader.
    pub to: Option<u64>,
    /// Content.
    pub content: EnvelopeContent,
}

/// Sender of a record, and its correlation: together they identify a request and bring its reply back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordSender {
    /// Text by which a reply finds its request; may be empty in kinds without a reply.
    pub correlation: String,
    /// The sender, if it is a bridge.
    pub from: Option<BridgeId>,
    /// Topic for the reply of a program that is no bridge.
    pub reply_topic: Option<String>,
    /// The caller in words, where a program names neither a bridge nor a reply topic: all that tells it from others.
    pub program: String,
}

impl RecordSender {
    /// A program is its reply topic or else its own name; names of bridges and topics have no space.
    pub(crate) fn key(&self) -> (String, String) {
        let sender = match (&self.from, &self.reply_topic) {
            (Some(bridge), _) => bridge.to_string(),
            (None, Some(topic)) => topic.clone(),
            (None, None) => format!("program {}", self.program),
        };
        (sender, self.correlation.clone())
    }
}

/// Content of a record of an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopeContent {
    /// A request or its first segment.
    Request(Box<RequestHead>, Option<SegmentPlace>),
    Reply(ReplyHead, Option<SegmentPlace>),
    RequestSegment(SegmentPlace),
    ReplySegment(SegmentPlace),
    Cancel,
    /// A bridge begins to read its inbox here; the text says where it runs.
    Mark(String),
    Bundle,
    Ping,
    Pong,
    /// The request with the correlation was for an earlier incarnation and was not begun.
    Discarded,
}

/// Place of a segment in its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentPlace {
    /// Number of the segment, from 0.
    pub index: u32,
    /// Number of segments, at least 2.
    pub count: u32,
    /// Bytes of the whole payload.
    pub total_bytes: u64,
}

/// A request without its payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHead {
    /// Route; a valid name of an application's route.
    pub route: String,
    /// Identity of the instance that it is for.
    pub instance: Option<u64>,
    /// Question to the instance itself instead of its handler.
    pub query: Option<InstanceQuery>,
    /// Class.
    pub priority: Priority,
    /// Affinity key.
    pub key: Option<u64>,
    /// Time left for the call at the append, ms; `None` without end.
    pub time_left_ms: Option<u64>,
    /// Append time at which the call is over, ms since 1970, so that waiting for the append counts. `None` where the
    /// sender does not know the inbox's clock.
    pub deadline_ms: Option<i64>,
    /// Number of the attempt, from 1.
    pub attempt: u8,
    /// Bridges passed, including the sender, and forwards.
    pub hops: u8,
    /// Trace of the call.
    pub trace: TraceContext,
    /// Encoding of the payload.
    pub encoding: Encoding,
    /// Fingerprint of the payload's type in the version written; 0 is not compared.
    pub fingerprint: u64,
    /// The caller's type of the request.
    pub request_type: Option<TypeDescription>,
    /// The caller's type of the reply.
    pub reply_type: Option<TypeDescription>,
    /// No reply is wanted.
    pub is_one_way: bool,
    /// The caller in words, as `machine/process`; may be empty.
    pub caller: String,
    /// Headers of the application.
    pub headers: Headers,
}

/// A reply without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyHead {
    Reply,
    Refused {
        code: u32,
        text: String,
    },
    /// The payload is the JSON of a [`CallFailure`].
    Failed,
}

/// Other bytes are an unknown end.
pub(crate) fn read_failure(payload: &[u8]) -> CallFailure {
    CallFailure::read(payload)
        .unwrap_or_else(|reason| CallFailure::unknown(format!("the reply's end cannot be read: {reason}")))
}
