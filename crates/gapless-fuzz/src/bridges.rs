//! Targets for records of bridges over Kafka: headers of any content, leases, and whole sequences of records for a
//! serving bridge.

use crate::input::{FuzzInput as Bytes, assert_says_something};
use gapless_agent::Now;
use gapless_kafka::BridgeCore;
use gapless_kafka::bridge_core::{BridgeInput, ReadRecord, Topic};
use gapless_kafka::calls_out::{OutgoingCall, RecordPlace};
use gapless_kafka::config::{BridgeLimits, CoreOptions};
use gapless_kafka::effects::{Effect, RequestId};
use gapless_kafka::outcome::{CallFailure, CallOutcome};
use gapless_kafka::presence::{Lease, MarkPlace, OfferedInstance, OfferedRoute};
use gapless_kafka::record::names::{self, BridgeId};
use gapless_kafka::record::{EnvelopeContent, KafkaRecord, RecordWriter, RequestHead, read};
use std::borrow::Cow;

pub const NAMES: [&str; 29] = [
    names::PROTOCOL,
    names::KIND,
    names::CORRELATION,
    names::FROM,
    names::TO,
    names::REPLY_TOPIC,
    names::ROUTE,
    names::INSTANCE,
    names::QUERY,
    names::PRIORITY,
    names::KEY,
    names::TIME_LEFT,
    names::ATTEMPT,
    names::HOPS,
    names::TRACE_PARENT,
    names::TRACE_STATE,
    names::ENCODING,
    names::FINGERPRINT,
    names::REQUEST_TYPE,
    names::REPLY_TYPE,
    names::ONE_WAY,
    names::CALLER,
    names::SEGMENT,
    names::STATUS,
    names::REFUSAL_CODE,
    names::REFUSAL_TEXT,
    "h-tenant",
    OTHER,
    names::DEADLINE,
];

const OTHER: &str = "other";

pub const OWN: (&str, u64) = ("a", 7);
pub const PEER: (&str, u64) = ("b", 9);
const ROUTE: &str = "shop/price";
/// Many fit into an input.
const SEGMENT_BYTES: usize = 1 << 10;

#[must_use]
pub fn bridge((name, incarnation): (&str, u64)) -> BridgeId {
    BridgeId { name: name.into(), incarnation }
}

/// Encodes a record for [`records`]: flags, the number of headers, each with the number of its name and the length of
/// its value; the length of the payload.
#[must_use]
pub fn to_bytes(flags: u8, record: &KafkaRecord) -> Vec<u8> {
    let mut bytes = vec![flags, record.headers.len() as u8];
    for (name, value) in &record.headers {
        let name = NAMES.iter().copied().find(|each| each == name).unwrap_or(OTHER);
        let number = NAMES.iter().position(|each| *each == name).unwrap_or_default();
        bytes.extend([number as u8, value.len() as u8]);
        bytes.extend(value);
    }
    let payload = record.payload.as_deref().unwrap_or_default();
    bytes.extend((payload.len() as u16).to_le_bytes());
    bytes.extend(payload);
    bytes
}

pub const FLAG_PRESENCE: u8 = 1;
/// Flag of a record after which the calls started in the domain end.
pub const FLAG_END: u8 = 2;
pub const FLAG_TOMBSTONE: u8 = 4;

fn record(flags: u8, input: &mut Bytes<'_>) -> KafkaRecord {
    let mut headers = Vec::new();
    for _ in 0..input.byte() {
        let name = NAMES[usize::from(input.byte()) % NAMES.len()];
        let length = input.byte().into();
        headers.push((Cow::Borrowed(name), input.bytes(length).to_vec()));
    }
    let length = usize::from(input.u16());
    let payload = input.bytes(length).to_vec();
    let key = headers.first().map(|(_, value)| value.clone()).filter(|_| flags & FLAG_PRESENCE != 0);
    KafkaRecord { key, headers, payload: (flags & FLAG_TOMBSTONE == 0).then_some(payload) }
}

/// The bridge has a call in flight, which ends at most once; every record that it writes can be read.
pub fn records(bytes: &[u8]) {
    let mut input = Bytes(bytes);
    let mut attacked = FuzzedBridge::new();
    while !input.is_empty() {
        let flags = input.byte();
        let record = record(flags, &mut input);
        written_again(&record);
        let topic = if flags & FLAG_PRESENCE == 0 { Topic::Inbox } else { Topic::Presence };
        attacked.read(topic, record);
        if flags & FLAG_END != 0 {
            attacked.end_started();
        }
    }
    attacked.give(BridgeInput::Tick);
}

fn written_again(record: &KafkaRecord) {
    match read(&record.headers) {
        Ok(envelope) => {
            if let (EnvelopeContent::Request(head, place), Some(from)) = (&envelope.content, &envelope.sender.from) {
                let again = RecordWriter::new(from).request(
                    &envelope.sender.correlation,
                    envelope.to.unwrap_or(0),
                    head,
                    *place,
                );
                let read_again = read(&again.headers).expect("what was written is read");
                assert_eq!(read_again.content, envelope.content);
            }
        }
        Err(malformed) => assert_says_something(&malformed),
    }
}

struct FuzzedBridge {
    core: BridgeCore,
    now: Now,
    offset: i64,
    started: Vec<Effect>,
    ends: usize,
}

impl FuzzedBridge {
    fn new() -> Self {
        let options = CoreOptions {
            prefix: "p".to_owned(),
            name: OWN.0.to_owned(),
            machine: "m".to_owned(),
            process: "x".to_owned(),
            offer: vec![ROUTE.parse().expect("a filter")],
            take: vec![ROUTE.parse().expect("a filter")],
            reply_topics: vec!["p.reply.*".parse().expect("a filter")],
            limits: BridgeLimits {
                segment_bytes: SEGMENT_BYTES,
                calls_per_peer: 8,
                bytes_per_peer: 16 << 10,
                ..BridgeLimits::default()
            },
        };
        let now = Now { monotonic_ns: 1_000_000_000_000, epoch_ns: 0 };
        let core = BridgeCore::new(options, OWN.1);
        let mut attacked = Self { core, now, offset: 0, started: Vec::new(), ends: 0 };
        let mark = attacked.give(BridgeInput::Start);
        let Some(Effect::Send(mark)) = mark.into_iter().nth(1) else { panic!("no mark is sent") };
        let place = RecordPlace { offset: 0, append_time_ms: 1_000 };
        attacked.give(BridgeInput::Delivered { token: mark.token, result: Ok(place) });
        let effects = attacked.read(Topic::Inbox, mark.record);
        let lease = effects.into_iter().find_map(|effect| match effect {
            Effect::Send(lease) if lease.record.key.is_some() => Some(lease.record),
            _ => None,
        });
        attacked.read(Topic::Presence, lease.expect("the mark is read"));
        let instances = vec![OfferedInstance { identity: 1, workers: 1, is_open: true, ..OfferedInstance::default() }];
        let routes = vec![OfferedRoute { route: ROUTE.to_owned(), instances, ..OfferedRoute::default() }];
        let mark = MarkPlace { offset: 0, time_ms: 1_000 };
        let lease = Lease { protocol: 1, incarnation: PEER.1, mark, lease_ms: 5_000, routes, ..Lease::default() };
        let lease = RecordWriter::new(&bridge(PEER)).lease(PEER.0, "", Some(lease.to_json()));
        attacked.read(Topic::Presence, lease);
        let head = RequestHead { route: ROUTE.to_owned(), attempt: 1, ..RequestHead::default() };
        let call = OutgoingCall { request: RequestId(1), head: Box::new(head), payload: vec![1, 2], timeout: None };
        attacked.give(BridgeInput::Request(call));
        assert_eq!((attacked.ends, attacked.core.in_flight()), (0, (1, 0)), "the call goes to the other bridge");
        attacked
    }

    fn read(&mut self, topic: Topic, record: KafkaRecord) -> Vec<Effect> {
        self.offset += 1;
        let append_time_ms = 1_000 + self.offset;
        self.give(BridgeInput::Record(ReadRecord { topic, offset: self.offset, append_time_ms, record }))
    }

    fn give(&mut self, input: BridgeInput) -> Vec<Effect> {
        self.now.monotonic_ns += 1_000_000;
        let mut effects = Vec::new();
        self.core.handle(input, self.now, &mut effects);
        for effect in &effects {
            match effect {
                Effect::End { request, .. } => {
                    assert_eq!(*request, RequestId(1));
                    self.ends += 1;
                }
                Effect::Start(_) => self.started.push(effect.clone()),
                Effect::Send(sent) if *sent.topic != *"p.presence" => {
                    assert!(sent.topic.starts_with("p.inbox.") || sent.topic.starts_with("p.reply."), "{}", sent.topic);
                    read(&sent.record.headers).expect("what a bridge writes is read");
                    let length = sent.record.payload.as_ref().map_or(0, Vec::len);
                    assert!(length <= SEGMENT_BYTES, "{length}");
                }
                Effect::Notice(notice) => assert_says_something(notice),
                _ => {}
            }
        }
        assert!(self.ends <= 1, "the call ends once");
        assert!(self.core.next_tick_ns() > self.now.monotonic_ns, "it would tick for ever");
        effects
    }

    fn end_started(&mut self) {
        for started in std::mem::take(&mut self.started) {
            let Effect::Start(call) = started else { continue };
            let outcome = CallOutcome::Reply(call.payload);
            self.give(BridgeInput::CallEnded { call: call.call, outcome });
        }
    }
}

pub fn json(bytes: &[u8]) {
    match Lease::read(bytes) {
        Ok(lease) => assert_eq!(Lease::read(&lease.to_json()).as_ref(), Ok(&lease)),
        Err(error) => assert_says_something(&error),
    }
    if let Ok(ended) = CallFailure::read(bytes) {
        let short = CallFailure::read(&ended.to_json()).expect("what was written is read");
        assert_eq!(CallFailure::read(&short.to_json()), Ok(short));
    }
}
