//! A service that is not deterministic is found, with the sequence where its replicas part.
#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_client::client::MessageType;
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_sim::{Application, Options, Random, simulate};
use gapless_wire::Encoding;
use std::sync::atomic::{AtomicU64, Ordering};

const SCHEMA: u32 = 9 << 16 | 1;
static REPLICAS: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, PartialEq)]
enum Planted {
    Nothing,
    State,
    Reply,
}

/// Counts messages; the ninth counts otherwise on each replica, or is answered otherwise, by what is planted.
struct Count {
    messages: u64,
    planted: Planted,
    who: u64,
}

impl Service for Count {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SCHEMA, |count: &mut Self, _: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            count.messages += 1;
            match count.planted {
                Planted::State if count.messages == 9 => count.messages += 1000 + count.who,
                Planted::Reply if count.messages == 9 => {
                    let message = MessageType { schema: SCHEMA, encoding: Encoding::Opaque };
                    context.reply_with(message, &count.who.to_le_bytes())?;
                }
                _ => {}
            }
            Ok(())
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
    planted: Planted,
}

impl Application for Counting {
    type Service = Count;

    fn service(&self) -> Count {
        Count { messages: 0, planted: self.planted, who: REPLICAS.fetch_add(1, Ordering::Relaxed) }
    }

    fn message(&self, _: u64, index: u64, _: &mut Random) -> (MessageType, Vec<u8>) {
        (MessageType { schema: SCHEMA, encoding: Encoding::Opaque }, index.to_le_bytes().to_vec())
    }
}

#[test]
fn the_sequence_is_named_and_a_sound_service_passes() {
    let options = Options { messages: 10, faults_ms: 300, ..Options::default() };
    simulate(&Counting { planted: Planted::Nothing }, &options, 5).unwrap();
    let failure = simulate(&Counting { planted: Planted::State }, &options, 5).unwrap_err();
    let reason = &failure.reason;
    assert!(reason.contains("has another state on member"), "{failure}");
    let first = reason.lines().next().unwrap();
    let sequence: u64 = first.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(reason.contains("message: schema 9 template 1, 8 bytes"), "{failure}");
    assert!(reason.contains("\n  folded once more, the snapshots of the state part at byte "), "{failure}");
    // Nine messages, a mark and two sessions are before it at least.
    assert!((9..=16).contains(&sequence), "{failure}");
}

#[test]
fn a_reply_that_differs_is_told_with_its_command_and_both_texts() {
    let options = Options { messages: 10, faults_ms: 300, ..Options::default() };
    let failure = simulate(&Counting { planted: Planted::Reply }, &options, 5).unwrap_err();
    let reason = &failure.reason;
    let lines: Vec<_> = reason.lines().collect();
    assert_eq!(lines.len(), 4, "{failure}");
    assert!(lines[1].starts_with("  sequence ") && lines[1].contains(": command "), "{failure}");
    assert_eq!(lines[2], "  message: schema 9 template 1, 8 bytes 0700000000000000", "{failure}");
    assert!(lines[3].starts_with("  folded once more, the "), "{failure}");
    assert!(lines[3].contains("replies, notices or timers part in a line: in one "), "{failure}");
    assert!(lines[3].contains("reply"), "{failure}");
}
