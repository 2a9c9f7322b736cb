//! Targets for the parts of a call: a request or reply in each encoding, the caller's headers, a refusal, the packets
//! between processes of a domain, and their shared memory.

use crate::input::{FuzzInput, assert_says_something};
use gapless_log::Region;
use gapless_log::call_table::{
    CLASSES, CallTable, CallTableShape, HEADERS_ROOM, InstanceSide, OfferRings, RequestHeader,
};
use gapless_log::claim::{ClaimState, Withdrawal};
use gapless_rpc::message::rewritten;
use gapless_rpc::{Headers, Message, MessageError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

#[derive(Debug, Serialize, Deserialize, Message)]
#[message(version = 2)]
pub struct Order {
    pub id: u64,
    pub price: i128,
    pub weight: f64,
    pub grade: char,
    pub lines: Vec<Line>,
    pub marks: BTreeMap<String, Option<bool>>,
    pub holes: Vec<()>,
    #[serde(default)]
    #[message(since = 2)]
    pub parent: Option<Box<Order>>,
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[message(version = 2)]
pub enum Line {
    Empty,
    Count(i16),
    Pair(u8, u32),
    #[message(since = 2)]
    Nested {
        lines: Vec<Line>,
    },
}

type Check = fn(u8, &[u8]);

const MESSAGES: [Check; 5] = [check::<Order>, check::<Line>, check::<String>, check::<u128>, check::<Vec<u8>>];

/// The first byte selects the type, the second the form: JSON, version 1, or the newest version.
pub fn message(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let check = MESSAGES[usize::from(input.byte()) % MESSAGES.len()];
    let form = input.byte();
    check(form, input.rest());
}

/// Compares bytes, because a NaN is not equal to itself.
fn check<M: Message>(form: u8, bytes: &[u8]) {
    let result = match form % 3 {
        0 => M::decode(bytes),
        1 => M::decode_as(1, bytes),
        _ => M::from_json(bytes),
    };
    let message = match result {
        Ok(message) => message,
        Err(error) => return check_error_text::<M>(&error),
    };
    let encoded = encode(&message);
    // Deep JSON values may exceed postcard's limit of nesting.
    match M::decode(&encoded) {
        Ok(again) => assert_eq!(encode(&again), encoded),
        Err(error) => assert!(form % 3 == 2, "{error}"),
    }
    if form % 3 == 1 && M::VERSION > 1 {
        let mut as_older = Vec::new();
        message.encode_as(1, &mut as_older).expect("it came as version 1");
        let again = M::decode_as(1, &as_older).expect("what was written is read");
        assert_eq!(encode(&again), encoded);
    }
    if M::decode(&encoded).is_ok() {
        rewrite::<M>(&encoded);
    }
    if let Ok(text) = message.to_json() {
        assert!(std::str::from_utf8(&text).is_ok());
    }
}

fn rewrite<M: Message>(encoded: &[u8]) {
    for older in M::older() {
        let (down, up) = ((M::fingerprint(), older.fingerprint), (older.fingerprint, M::fingerprint()));
        match rewritten::<M>(down, encoded) {
            Ok(bytes) => {
                let again = rewritten::<M>(up, &bytes).expect("what was written is read");
                assert_eq!(rewritten::<M>(down, &again), Ok(bytes));
            }
            Err(error) => check_error_text::<M>(&error),
        }
    }
}

fn encode<M: Message>(message: &M) -> Vec<u8> {
    let mut bytes = vec![1, 2];
    message.encode(&mut bytes).expect("what was read can be written");
    bytes.split_off(2)
}

fn check_error_text<M: Message>(error: &MessageError) {
    assert_says_something(error);
    assert_eq!(error.type_name, M::TYPE_NAME);
}

pub fn headers(bytes: &[u8]) {
    let Some(headers) = Headers::decode(bytes) else { return };
    let mut again = Vec::new();
    match headers.encode(&mut again) {
        Ok(()) => assert_eq!(again, bytes),
        Err(error) => {
            assert!(!error.is_empty() && again.is_empty());
            assert!(bytes.len() > gapless_rpc::context::HEADERS_LENGTH_MAX, "{error}");
        }
    }
}

pub fn packet(bytes: &[u8]) {
    match gapless_rpc::packet_again(bytes) {
        Ok(again) => assert_eq!(again, bytes),
        Err(reason) => assert_says_something(&reason),
    }
}

pub fn ended(bytes: &[u8]) {
    if let Some(again) = gapless_rpc::ended_again(bytes) {
        assert_eq!(again, bytes);
    }
}

pub fn refusal(bytes: &[u8]) {
    if let Some(again) = gapless_rpc::refusal_again(bytes) {
        assert_eq!(gapless_rpc::refusal_again(&again).as_deref(), Some(&*again), "what was written is read");
    }
}

const SLOTS: u32 = 4;
const PAYLOAD_LENGTH_MAX: usize = 64;

/// Writes only to the beginning of each page of a large region.
fn scribble(region: &Region, input: &mut FuzzInput<'_>) {
    for _ in 0..input.byte() % 64 {
        let (place, word) = (usize::from(input.u16()), input.u64());
        region.word(place * 8 % region.length()).store(word, Ordering::Relaxed);
    }
}

/// A corrupt caller's writes and the instance's reads; then a corrupt instance's writes and the caller's reads.
pub fn call_table(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let shape = CallTableShape::new(SLOTS, PAYLOAD_LENGTH_MAX).expect("it is in range");
    let table = CallTable::create(shape).expect("there is memory");
    let mut rings = OfferRings::new(shape);
    for slot in 0..SLOTS {
        let header = RequestHeader { generation: 1, class: slot as u8 % CLASSES as u8, ..RequestHeader::default() };
        table.write_request(slot, header, &[], &[slot as u8; 16]);
        rings.offer(&table, header.class.into(), slot, 1, (0, slot % 2 == 0));
    }
    scribble(table.request_region(), &mut input);
    scribble(table.claim_region(), &mut input);
    let copy = InstanceSide::in_process(&table, 1);
    let (mut user_headers, mut payload) = (Vec::new(), Vec::new());
    for class in (0..CLASSES).cycle().take(CLASSES * 4) {
        let Some(taken) = copy.take(class) else { continue };
        assert!(taken.slot < SLOTS);
        if let Some(header) = copy.request_header(taken) {
            assert_eq!(header.generation, taken.generation);
            copy.read_request(taken, &header, &mut user_headers, &mut payload);
            assert!(user_headers.len() <= HEADERS_ROOM && payload.len() <= PAYLOAD_LENGTH_MAX);
        }
        let _ = copy.begin(taken);
        let _ = copy.is_withdrawn(taken);
        let _ = copy.answer(taken, 1, &[9; PAYLOAD_LENGTH_MAX][..usize::from(input.byte()) % (PAYLOAD_LENGTH_MAX + 1)]);
    }
    scribble(table.claim_region(), &mut input);
    for slot in 0..SLOTS {
        let claim = table.claim(slot);
        let seen = claim.load();
        let noticed = table.notice(slot, seen.generation());
        for header in noticed.into_iter().chain([table.reply_header(slot)]) {
            table.read_reply(slot, header, &mut payload);
            assert!(payload.len() == header.length as usize && payload.len() <= PAYLOAD_LENGTH_MAX);
        }
        let _ = claim.revoke(1);
        let _ = claim.want_notice(seen.generation());
        let withdrawal = claim.withdraw(seen.generation());
        assert!(withdrawal != Withdrawal::TakenBack || claim.load().state() == Some(ClaimState::Free));
    }
    let _ = table.take_done(0);
}
