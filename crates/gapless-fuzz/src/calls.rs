//! Targets for what comes with a call: a request or reply in each encoding, and the caller's headers.

use crate::input::{Input, assert_says_something};
use gapless_rpc::{Headers, Message, MessageError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A message with everything that postcard can write.
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

/// A message: the first byte says which, the second how it is read: as JSON, as version 1, or as it is.
pub fn message(bytes: &[u8]) {
    let mut input = Input(bytes);
    let check = MESSAGES[usize::from(input.byte()) % MESSAGES.len()];
    let form = input.byte();
    check(form, input.rest());
}

/// Compares bytes, because a number that is none is not equal to itself.
fn check<M: Message>(form: u8, bytes: &[u8]) {
    let result = match form % 3 {
        0 => M::decode(bytes),
        1 => M::decode_as(1, bytes),
        _ => M::from_json(bytes),
    };
    let message = match result {
        Ok(message) => message,
        Err(error) => return say::<M>(&error),
    };
    let encoded = encode(&message);
    // JSON of deep values may be read where postcard's limit of nesting has other steps; every other value comes back.
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
    if let Ok(text) = message.to_json() {
        assert!(std::str::from_utf8(&text).is_ok());
    }
}

fn encode<M: Message>(message: &M) -> Vec<u8> {
    let mut bytes = vec![1, 2];
    message.encode(&mut bytes).expect("what was read can be written");
    bytes.split_off(2)
}

fn say<M: Message>(error: &MessageError) {
    assert_says_something(error);
    assert_eq!(error.type_name, M::TYPE_NAME);
}

/// The headers of a call.
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
