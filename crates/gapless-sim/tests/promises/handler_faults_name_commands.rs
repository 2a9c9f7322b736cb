//! A handler that refuses after a change, or panics, is found; the report names command, fields and remedy.
#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_client::polled::MessageType;
use gapless_engine::{Context, Handlers, Reject, Service};
use gapless_sim::{Application, ApplicationKind, Options, Random, simulate};
use gapless_wire::Encoding;

const SCHEMA: u32 = 9 << 16 | 1;

#[derive(Clone, Copy, PartialEq)]
enum PlantedFault {
    Nothing,
    /// Refused messages are counted.
    LateRefusal,
    /// Panic at index 7.
    Panic,
    /// A timer set at index 4 panics.
    PanicOfTimer,
}

/// Refuses every third message.
struct Count {
    messages: u64,
    planted: PlantedFault,
}

impl Service for Count {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SCHEMA, |count: &mut Self, index: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            let is_refused = index[0] % 3 == 2;
            if !is_refused || count.planted == PlantedFault::LateRefusal {
                count.messages += 1;
            }
            assert!(index[0] != 7 || count.planted != PlantedFault::Panic, "seven is too many");
            if index[0] == 4 && count.planted == PlantedFault::PanicOfTimer {
                context.set_numbered_timer(10, context.time_ns() + 1_000);
            }
            if is_refused { Err("one of three".into()) } else { Ok(()) }
        });
    }

    fn on_timer(&mut self, _: u64, _: &mut Context<'_>) -> Result<(), Reject> {
        panic!("no timer is to come");
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.messages.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.messages = u64::from_le_bytes(state.try_into().map_err(|_| "eight bytes are expected")?);
        Ok(())
    }
}

struct Counting<const IS_EVENT_STREAM: bool>(PlantedFault);

impl<const IS_EVENT_STREAM: bool> Application for Counting<IS_EVENT_STREAM> {
    type Service = Count;

    const APPLICATION_KIND: ApplicationKind =
        if IS_EVENT_STREAM { ApplicationKind::EventStream } else { ApplicationKind::Service };

    fn service(&self) -> Count {
        Count { messages: 0, planted: self.0 }
    }

    fn message(&self, _: u64, index: u64, _: &mut Random) -> (MessageType, Vec<u8>) {
        (MessageType { schema: SCHEMA, encoding: Encoding::Opaque }, index.to_le_bytes().to_vec())
    }

    fn check_reply(&self, _: u64, index: u64, reply: &gapless_client::Reply<'_>) -> Result<(), String> {
        let is_right = reply.refusal.is_some() == (index % 3 == 2);
        if is_right { Ok(()) } else { Err(format!("message {index}: {:?}", reply.refusal)) }
    }

    fn describe(&self, _: MessageType, payload: &[u8]) -> Option<String> {
        Some(format!("Count {{ index: {} }}", u64::from_le_bytes(payload.try_into().ok()?)))
    }
}

fn lines<const IS_EVENT_STREAM: bool>(planted: PlantedFault) -> Vec<String> {
    let options = Options { messages: 10, faults_ms: 300, ..Options::default() };
    simulate(&Counting::<IS_EVENT_STREAM>(PlantedFault::Nothing), &options, 5).unwrap();
    let failure = simulate(&Counting::<IS_EVENT_STREAM>(planted), &options, 5).unwrap_err().to_string();
    assert!(!failure.contains("skip") && !failure.contains("policy"), "that is for an operator: {failure}");
    failure.lines().map(str::to_owned).collect()
}

#[test]
fn refusal_with_effect_is_reported() {
    let lines = lines::<false>(PlantedFault::LateRefusal);
    assert_eq!(lines.len(), 3, "{lines:?}");
    let said = "the handler of schema 9 template 1 has changed the state and then refused: one of three. ";
    assert!(lines[0].contains(said) && lines[0].ends_with("check first, then change"), "{lines:?}");
    assert!(lines[1].starts_with("  sequence ") && lines[1].contains(": command 3 of session "), "{lines:?}");
    assert_eq!(lines[2], "  message: Count { index: 2 }");
}

#[test]
fn panic_is_reported() {
    let lines = lines::<false>(PlantedFault::Panic);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].ends_with("the handler of schema 9 template 1 panicked: seven is too many"), "{lines:?}");
    assert!(lines[1].starts_with("  sequence ") && lines[1].contains(": command 8 of session "), "{lines:?}");
    assert_eq!(lines[2], "  message: Count { index: 7 }");
}

#[test]
fn timer_panic_names_its_command() {
    let lines = lines::<false>(PlantedFault::PanicOfTimer);
    assert_eq!(lines.len(), 4, "{lines:?}");
    let due = "2030-03-17T1";
    assert!(lines[0].contains(&format!("the handler of timer 10 (due at {due}")), "{lines:?}");
    assert!(lines[0].ends_with("panicked: no timer is to come"), "{lines:?}");
    assert!(lines[1].starts_with("  sequence "), "{lines:?}");
    assert!(lines[1].contains(&format!(": timer 10, due at {due}")) && lines[1].ends_with(" ms late"), "{lines:?}");
    assert!(lines[2].starts_with("  set at sequence ") && lines[2].contains(": command 5 of session "), "{lines:?}");
    assert_eq!(lines[3], "  message: Count { index: 4 }");
}

#[test]
fn event_stream_panic_is_reported() {
    let lines = lines::<true>(PlantedFault::Panic);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].ends_with("the handler of schema 9 template 1 panicked: seven is too many"), "{lines:?}");
    assert!(lines[1].contains(": message 8 of publisher session "), "{lines:?}");
    assert_eq!(lines[2], "  message: Count { index: 7 }");
}
