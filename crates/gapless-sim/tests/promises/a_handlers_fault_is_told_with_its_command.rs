//! A handler that changes its state and then refuses is found, with its message and its sequence.
#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_client::client::MessageType;
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_sim::{Application, Options, Random, simulate};
use gapless_wire::Encoding;

const SCHEMA: u32 = 9 << 16 | 1;

/// Counts messages and refuses every third: before it counts, or after it.
#[derive(Default)]
struct Count {
    messages: u64,
    is_late: bool,
}

impl Service for Count {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SCHEMA, |count: &mut Self, index: &[u8], _: &mut Context<'_>| -> Result<(), Reject> {
            let is_refused = index[0] % 3 == 2;
            if !is_refused || count.is_late {
                count.messages += 1;
            }
            if is_refused { Err("one of three".into()) } else { Ok(()) }
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.messages.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.messages = u64::from_le_bytes(state.try_into().map_err(|_| "eight bytes are expected")?);
        Ok(())
    }
}

struct Counting {
    is_late: bool,
}

impl Application for Counting {
    type Service = Count;

    fn service(&self) -> Count {
        Count { messages: 0, is_late: self.is_late }
    }

    fn message(&self, _: u64, index: u64, _: &mut Random) -> (MessageType, Vec<u8>) {
        (MessageType { schema: SCHEMA, encoding: Encoding::Opaque }, index.to_le_bytes().to_vec())
    }

    fn check_reply(&self, _: u64, index: u64, reply: &gapless_client::Reply<'_>) -> Result<(), String> {
        let is_right = reply.refusal.is_some() == (index % 3 == 2);
        if is_right { Ok(()) } else { Err(format!("message {index}: {:?}", reply.refusal)) }
    }
}

#[test]
fn with_message_and_sequence() {
    let options = Options { messages: 10, faults_ms: 300, ..Options::default() };
    simulate(&Counting { is_late: false }, &options, 5).unwrap();
    let failure = simulate(&Counting { is_late: true }, &options, 5).unwrap_err().to_string();
    let is_named = failure.contains("changed the state and then refused") && failure.contains("schema 9 template 1");
    assert!(is_named && failure.contains("at sequence "), "{failure}");
}
