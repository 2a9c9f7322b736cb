//! Names of headers, bridges and topics.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// In front of the headers of the application.
pub const APPLICATION_PREFIX: &str = "h-";

/// Version of the protocol, decimal; 1 without it.
pub const PROTOCOL: &str = "gapless-protocol";
/// Kind of the record: `request`, `reply`, `cancel`, `bundle`, `mark`, `ping`, `pong`, `discarded`.
pub const KIND: &str = "gapless-kind";
/// Text by which a reply finds its request.
pub const CORRELATION: &str = "gapless-correlation";
/// Sender: `NAME@INCARNATION`.
pub const FROM: &str = "gapless-from";
/// Incarnation that the record is for, 16 hexadecimal digits.
pub const TO: &str = "gapless-to";
/// Topic for the reply of a program that is no bridge.
pub const REPLY_TOPIC: &str = "gapless-reply-topic";
/// Route of a request.
pub const ROUTE: &str = "gapless-route";
/// Identity of the instance that a request is for, 16 hexadecimal digits.
pub const INSTANCE: &str = "gapless-instance";
/// Question to an instance: `ping`, `info`, `statistics`.
pub const QUERY: &str = "gapless-query";
/// Class: `urgent`, `high`, `normal`, `low`.
pub const PRIORITY: &str = "gapless-priority";
/// Affinity key, 16 hexadecimal digits.
pub const KEY: &str = "gapless-key";
/// Time left at the append, ms, decimal.
pub const TIME_LEFT: &str = "gapless-time-left-ms";
/// End of the call by the inbox's append times, as far as the sender knows that clock, ms since 1970, decimal.
pub const DEADLINE: &str = "gapless-deadline-ms";
/// Number of the attempt, decimal, from 1.
pub const ATTEMPT: &str = "gapless-attempt";
/// Bridges passed, decimal.
pub const HOPS: &str = "gapless-hops";
/// Trace, as W3C's recommendation "Trace Context" says.
pub const TRACE_PARENT: &str = "traceparent";
/// State of the trace, of the same recommendation.
pub const TRACE_STATE: &str = "tracestate";
/// Encoding of the payload: `bytes`, `postcard`, `sbe`, `protobuf`, `json`.
pub const ENCODING: &str = "gapless-encoding";
/// Fingerprint of the payload's type, 16 hexadecimal digits; the caller's type without it.
pub const FINGERPRINT: &str = "gapless-fingerprint";
/// The caller's request type: `VERSION FINGERPRINT ENCODING NAME`.
pub const REQUEST_TYPE: &str = "gapless-request-type";
/// The caller's reply type, in the same form.
pub const REPLY_TYPE: &str = "gapless-reply-type";
/// `true`: no reply is wanted.
pub const ONE_WAY: &str = "gapless-one-way";
/// The caller in words; in a mark, the process that begins.
pub const CALLER: &str = "gapless-caller";
/// Place of a segment: `INDEX/COUNT/BYTES`, decimal.
pub const SEGMENT: &str = "gapless-segment";
/// Status of a reply: `reply`, `refused`, `ended`.
pub const STATUS: &str = "gapless-status";
/// Code of a refusal, decimal.
pub const REFUSAL_CODE: &str = "gapless-refusal-code";
/// Text of a refusal.
pub const REFUSAL_TEXT: &str = "gapless-refusal-text";

/// Names of all headers but those of applications.
pub const ALL: [&str; 27] = [
    PROTOCOL,
    KIND,
    CORRELATION,
    FROM,
    TO,
    REPLY_TOPIC,
    ROUTE,
    INSTANCE,
    QUERY,
    PRIORITY,
    KEY,
    TIME_LEFT,
    DEADLINE,
    ATTEMPT,
    HOPS,
    TRACE_PARENT,
    TRACE_STATE,
    ENCODING,
    FINGERPRINT,
    REQUEST_TYPE,
    REPLY_TYPE,
    ONE_WAY,
    CALLER,
    SEGMENT,
    STATUS,
    REFUSAL_CODE,
    REFUSAL_TEXT,
];

/// Bytes of a bridge's name at most.
pub const BRIDGE_NAME_LENGTH_MAX: usize = 64;
/// Longest prefix in bytes: with a name and the words between, Kafka's limit of 249 is kept.
pub const PREFIX_LENGTH_MAX: usize = 128;
/// Bytes of a topic's name at most, as Kafka has it.
pub const TOPIC_LENGTH_MAX: usize = 249;

/// True for letters, digits, `-` and `_`.
#[must_use]
pub fn is_bridge_name(name: &str) -> bool {
    (1..=BRIDGE_NAME_LENGTH_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// True for letters, digits, `.`, `-` and `_`, beginning with a letter or digit.
#[must_use]
pub fn is_prefix(prefix: &str) -> bool {
    prefix.len() <= PREFIX_LENGTH_MAX && prefix.starts_with(|c: char| c.is_ascii_alphanumeric()) && is_topic(prefix)
}

/// Checks a topic's name by Kafka's rules.
#[must_use]
pub fn is_topic(name: &str) -> bool {
    (1..=TOPIC_LENGTH_MAX).contains(&name.len())
        && name != "."
        && name != ".."
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

/// Name of the inbox of a bridge.
#[must_use]
pub fn inbox(prefix: &str, bridge: &str) -> String {
    format!("{prefix}.inbox.{bridge}")
}

/// Name of the topic of leases.
#[must_use]
pub fn presence(prefix: &str) -> String {
    format!("{prefix}.presence")
}

/// An incarnation of a bridge: `NAME@INCARNATION`, the incarnation as 16 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BridgeId {
    /// Name.
    pub name: Arc<str>,
    /// Random number of the incarnation.
    pub incarnation: u64,
}

impl fmt::Display for BridgeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{:016x}", self.name, self.incarnation)
    }
}

impl FromStr for BridgeId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('@').filter(|(name, _)| is_bridge_name(name));
        let read = parts.and_then(|(name, number)| Some((name, super::fields::hexadecimal(number)?)));
        let (name, incarnation) = read.ok_or_else(|| "NAME@INCARNATION is expected".to_owned())?;
        Ok(Self { name: name.into(), incarnation })
    }
}
