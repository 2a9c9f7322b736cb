//! Default values are left out.

use super::fields::{self, ENCODINGS, PRIORITIES, QUERIES};
use super::names::{self, BridgeId};
use super::{KafkaRecord, PROTOCOL_VERSION, ReplyHead, RequestHead, SegmentPlace};
use gapless_rpc::Priority;
use std::borrow::Cow;

pub(super) const CALLER_LENGTH_MAX: usize = 256;
pub(super) const REFUSAL_TEXT_LENGTH_MAX: usize = 16 << 10;

/// Writes the records of one bridge.
#[derive(Clone, Debug)]
pub struct RecordWriter {
    from: Vec<u8>,
}

impl RecordWriter {
    /// A writer of the records of `sender`.
    #[must_use]
    pub fn new(sender: &BridgeId) -> Self {
        Self { from: sender.to_string().into_bytes() }
    }

    /// A request for the incarnation `to`, with its payload or first segment.
    #[must_use]
    pub fn request(&self, correlation: &str, to: u64, head: &RequestHead, place: Option<SegmentPlace>) -> KafkaRecord {
        let mut record = self.begin("request", correlation, Some(to), 16);
        let headers = &mut record.headers;
        let mut add = |name: &'static str, value: String| headers.push((Cow::Borrowed(name), value.into_bytes()));
        add(names::ROUTE, head.route.clone());
        if let Some(instance) = head.instance {
            add(names::INSTANCE, format!("{instance:016x}"));
        }
        if let Some(query) = head.query {
            add(names::QUERY, fields::name_of(&QUERIES, &query).to_owned());
        }
        if head.priority != Priority::default() {
            add(names::PRIORITY, fields::name_of(&PRIORITIES, &head.priority).to_owned());
        }
        if let Some(key) = head.key {
            add(names::KEY, format!("{key:016x}"));
        }
        if let Some(time_left_ms) = head.time_left_ms {
            add(names::TIME_LEFT, time_left_ms.to_string());
        }
        if let Some(deadline_ms) = head.deadline_ms {
            add(names::DEADLINE, deadline_ms.to_string());
        }
        if head.attempt > 1 {
            add(names::ATTEMPT, head.attempt.to_string());
        }
        if head.hops > 0 {
            add(names::HOPS, head.hops.to_string());
        }
        if !head.trace.is_none() {
            add(names::TRACE_PARENT, head.trace.to_string());
            if let Some(state) = head.trace.state() {
                add(names::TRACE_STATE, state.to_owned());
            }
        }
        add(names::ENCODING, fields::name_of(&ENCODINGS, &head.encoding).to_owned());
        if head.fingerprint != head.request_type.as_ref().map_or(0, |described| described.fingerprint) {
            add(names::FINGERPRINT, format!("{:016x}", head.fingerprint));
        }
        if let Some(described) = &head.request_type {
            add(names::REQUEST_TYPE, fields::description(described));
        }
        if let Some(described) = &head.reply_type {
            add(names::REPLY_TYPE, fields::description(described));
        }
        if head.is_one_way {
            add(names::ONE_WAY, "true".to_owned());
        }
        if !head.caller.is_empty() {
            add(names::CALLER, cut(&head.caller, CALLER_LENGTH_MAX).to_owned());
        }
        for (name, value) in head.headers.iter() {
            let name = format!("{}{name}", names::APPLICATION_PREFIX);
            headers.push((Cow::Owned(name), value.to_vec()));
        }
        add_place(&mut record, place);
        record
    }

    /// A reply to a request of the incarnation `to`, or of a foreign program.
    #[must_use]
    pub fn reply(
        &self,
        correlation: &str,
        to: Option<u64>,
        head: &ReplyHead,
        place: Option<SegmentPlace>,
    ) -> KafkaRecord {
        let mut record = self.begin("reply", correlation, to, 8);
        let headers = &mut record.headers;
        let mut add = |name: &'static str, value: Vec<u8>| headers.push((Cow::Borrowed(name), value));
        match head {
            ReplyHead::Reply => add(names::STATUS, b"reply".to_vec()),
            ReplyHead::Refused { code, text } => {
                add(names::STATUS, b"refused".to_vec());
                add(names::REFUSAL_CODE, code.to_string().into_bytes());
                add(names::REFUSAL_TEXT, cut(text, REFUSAL_TEXT_LENGTH_MAX).as_bytes().to_vec());
            }
            ReplyHead::Failed => add(names::STATUS, b"ended".to_vec()),
        }
        add_place(&mut record, place);
        record
    }

    /// A further segment of a request, or of a reply.
    #[must_use]
    pub fn segment(&self, is_request: bool, correlation: &str, to: Option<u64>, place: SegmentPlace) -> KafkaRecord {
        let mut record = self.begin(if is_request { "request" } else { "reply" }, correlation, to, 6);
        add_place(&mut record, Some(place));
        record
    }

    /// A record without a payload: `cancel`, `ping`, `pong`, `discarded`.
    #[must_use]
    pub fn control(&self, kind: &'static str, correlation: &str, to: Option<u64>) -> KafkaRecord {
        self.begin(kind, correlation, to, 5)
    }

    /// A mark; `caller` says in words which process it is.
    #[must_use]
    pub fn mark(&self, caller: &str) -> KafkaRecord {
        let mut record = self.begin("mark", "", None, 4);
        let caller = cut(caller, CALLER_LENGTH_MAX).as_bytes().to_vec();
        record.headers.push((Cow::Borrowed(names::CALLER), caller));
        record
    }

    /// A lease, or the tombstone of one, with the key `bridge`.
    #[must_use]
    pub fn lease(&self, bridge: &str, correlation: &str, value: Option<Vec<u8>>) -> KafkaRecord {
        let mut record = self.begin("lease", correlation, None, 4);
        record.key = Some(bridge.as_bytes().to_vec());
        record.payload = value;
        record
    }

    fn begin(&self, kind: &'static str, correlation: &str, to: Option<u64>, capacity: usize) -> KafkaRecord {
        let mut headers = Vec::with_capacity(capacity);
        headers.push((Cow::Borrowed(names::PROTOCOL), PROTOCOL_VERSION.to_string().into_bytes()));
        headers.push((Cow::Borrowed(names::KIND), kind.as_bytes().to_vec()));
        if !correlation.is_empty() {
            headers.push((Cow::Borrowed(names::CORRELATION), correlation.as_bytes().to_vec()));
        }
        headers.push((Cow::Borrowed(names::FROM), self.from.clone()));
        if let Some(to) = to {
            headers.push((Cow::Borrowed(names::TO), format!("{to:016x}").into_bytes()));
        }
        KafkaRecord { key: None, headers, payload: Some(Vec::new()) }
    }
}

fn add_place(record: &mut KafkaRecord, place: Option<SegmentPlace>) {
    if let Some(SegmentPlace { index, count, total_bytes }) = place {
        let value = format!("{index}/{count}/{total_bytes}").into_bytes();
        record.headers.push((Cow::Borrowed(names::SEGMENT), value));
    }
}

fn cut(text: &str, length_max: usize) -> &str {
    let end = (0..=length_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}
