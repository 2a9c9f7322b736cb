//! A service that is not deterministic is found, with the sequence where its replicas part.
#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_client::client::MessageType;
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_sim::{Application, Options, Random, simulate};
use gapless_wire::Encoding;
use std::sync::atomic::{AtomicU64, Ordering};

const SCHEMA: u32 = 9 << 16 | 1;
static REPLICAS: AtomicU64 = AtomicU64::new(0);

/// Counts messages; if `who` is set, the ninth counts otherwise on each replica.
#[derive(Default)]
struct Count {
    messages: u64,
    who: Option<u64>,
}

impl Service for Count {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SCHEMA, |count: &mut Self, _: &[u8], _: &mut Context<'_>| -> Result<(), Reject> {
            count.messages += 1;
            if count.messages == 9 {
                count.messages += count.who.map_or(0, |who| 1000 + who);
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
    is_planted: bool,
}

impl Application for Counting {
    type Service = Count;

    fn service(&self) -> Count {
        let who = self.is_planted.then(|| REPLICAS.fetch_add(1, Ordering::Relaxed));
        Count { messages: 0, who }
    }

    fn message(&self, _: u64, index: u64, _: &mut Random) -> (MessageType, Vec<u8>) {
        (MessageType { schema: SCHEMA, encoding: Encoding::Opaque }, index.to_le_bytes().to_vec())
    }
}

#[test]
fn the_sequence_is_named_and_a_sound_service_passes() {
    let options = Options { messages: 10, faults_ms: 300, ..Options::default() };
    simulate(&Counting { is_planted: false }, &options, 5).unwrap();
    let failure = simulate(&Counting { is_planted: true }, &options, 5).unwrap_err();
    let reason = &failure.reason;
    assert!(reason.contains("has another state on member"), "{failure}");
    let first = reason.lines().next().unwrap();
    let sequence: u64 = first.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(reason.contains("message: schema 9 template 1, 8 bytes"), "{failure}");
    assert!(reason.contains("\n  folded once more, the snapshots of the state part at byte "), "{failure}");
    // Nine messages, a mark and two sessions are before it at least.
    assert!((9..=16).contains(&sequence), "{failure}");
}
