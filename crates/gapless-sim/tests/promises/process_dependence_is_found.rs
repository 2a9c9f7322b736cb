//! A second process finds a handler that depends on state that members of one process share: time of day, statics,
//! process identifier, addresses, thread.
#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_client::polled::MessageType;
use gapless_engine::store::{Counter, Store, Transaction};
use gapless_engine::{Context, Handlers, Reject, Service, StateHandlers, StateService};
use gapless_sim::{
    Application, ApplicationKind, Options, Random, SecondPass, SimulationFailure, StateApplication, Tally, simulate,
    simulate_own, simulate_state,
};
use gapless_testkit::random::rounds;
use gapless_wire::Encoding;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

const SCHEMA: u32 = 9 << 16 | 1;

type InputReader = fn(&mut Context<'_>) -> u64;

struct Sum {
    look: InputReader,
    sum: u64,
}

impl Service for Sum {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SCHEMA, |sum: &mut Self, _: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            sum.sum = sum.sum.wrapping_mul(31).wrapping_add((sum.look)(context));
            Ok(())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.sum.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.sum = u64::from_le_bytes(state.try_into().map_err(|_| "eight bytes are expected")?);
        Ok(())
    }
}

struct Summing(InputReader);

impl Application for Summing {
    type Service = Sum;

    fn service(&self) -> Sum {
        Sum { look: self.0, sum: 0 }
    }

    fn message(&self, _: u64, index: u64, _: &mut Random) -> (MessageType, Vec<u8>) {
        (MessageType { schema: SCHEMA, encoding: Encoding::Opaque }, index.to_le_bytes().to_vec())
    }

    fn describe(&self, _: MessageType, payload: &[u8]) -> Option<String> {
        Some(format!("Look {{ index: {} }}", u64::from_le_bytes(payload.try_into().ok()?)))
    }
}

struct Making(fn() -> Sum);

impl Application for Making {
    type Service = Sum;

    fn service(&self) -> Sum {
        (self.0)()
    }

    fn message(&self, publisher: u64, index: u64, random: &mut Random) -> (MessageType, Vec<u8>) {
        Application::message(&Summing(|_| 1), publisher, index, random)
    }
}

fn options() -> Options {
    Options { messages: 12, faults_ms: 200, ..Options::default() }
}

/// A run in one process succeeds.
fn is_found(look: InputReader) -> Box<SimulationFailure> {
    let alone = Options { second_pass: SecondPass::Off, ..options() };
    // A jump of a member's clock shows even in whole minutes.
    let hidden = |seed: &u64| simulate(&Summing(look), &alone, *seed).is_ok();
    let seed = (1..20).find(hidden).unwrap();
    let failure = simulate(&Summing(look), &options(), seed).unwrap_err();
    let text = failure.to_string();
    let is_named = text.contains("a second process comes to another state") && text.contains("message: Look { index: ");
    assert!(is_named && text.contains("part at byte ") && text.contains(": command "), "{text}");
    assert!(!text.contains("term "), "consensus is behind an option: {text}");
    failure
}

#[test]
fn clock_in_whole_minutes_is_found() {
    let minutes = |_: &mut Context<'_>| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 60;
    let first = is_found(minutes);
    assert_eq!(simulate(&Summing(minutes), &options(), first.seed).unwrap_err(), first, "a seed finds the same again");
}

#[test]
fn static_set_once_is_found() {
    // Set by an earlier run of this process.
    static FIRST: OnceLock<u64> = OnceLock::new();
    let look: InputReader = |context| *FIRST.get_or_init(|| context.time_ns());
    simulate(&Summing(look), &Options { second_pass: SecondPass::Off, ..options() }, 40).unwrap();
    is_found(look);
    // Set by the run itself, so it differs for a process that begins with a snapshot.
    static OWN: OnceLock<u64> = OnceLock::new();
    let look: InputReader = |context| *OWN.get_or_init(|| context.time_ns());
    let long = Options { messages: 40, ..options() };
    let text = simulate(&Summing(look), &long, 3).unwrap_err().to_string();
    assert!(text.contains("another state from a member's snapshot after sequence "), "{text}");
}

#[test]
fn process_id_is_found() {
    is_found(|_| u64::from(std::process::id()));
}

#[test]
fn address_is_found() {
    static HERE: u8 = 7;
    is_found(|_| std::ptr::from_ref(&HERE).addr() as u64);
}

#[test]
fn thread_id_is_found() {
    is_found(|_| {
        let text = format!("{:?}", std::thread::current().id());
        text.bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte))
    });
}

#[test]
fn directory_and_environment_are_found() {
    is_found(|_| std::env::current_dir().unwrap().as_os_str().len() as u64);
    is_found(|_| std::env::var_os("TZ").map_or(0, |zone| zone.len() as u64));
    // A second process keeps its temporary files there.
    is_found(|_| std::env::temp_dir().as_os_str().len() as u64);
}

/// The snapshot leaves the count out.
#[derive(Default)]
struct Forgetful {
    count: u64,
}

impl Service for Forgetful {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SCHEMA, |forgetful: &mut Self, _: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            forgetful.count += 1;
            let kind = MessageType { schema: SCHEMA, encoding: Encoding::Opaque };
            context.reply_with(kind, &forgetful.count.to_le_bytes())
        });
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

struct Forgetting;

impl Application for Forgetting {
    type Service = Forgetful;

    fn service(&self) -> Forgetful {
        Forgetful::default()
    }

    fn message(&self, _: u64, index: u64, _: &mut Random) -> (MessageType, Vec<u8>) {
        (MessageType { schema: SCHEMA, encoding: Encoding::Opaque }, index.to_le_bytes().to_vec())
    }
}

#[test]
fn incomplete_snapshot_is_found() {
    // No member restarts, so only the second process begins with a snapshot.
    let options = Options { messages: 40, faults_ms: 1, ..Options::default() };
    simulate(&Forgetting, &Options { second_pass: SecondPass::Off, ..options.clone() }, 1).unwrap();
    let text = simulate(&Forgetting, &options, 1).unwrap_err().to_string();
    let is_named = text.contains("from a member's snapshot after sequence ")
        && text.contains("in the second process: reply to command ");
    assert!(is_named, "{text}");
}

#[test]
fn deterministic_handlers_pass() {
    simulate(&Summing(|context| context.time_ns() ^ context.sequence()), &options(), 3).unwrap();
    // A handler's random numbers follow from its message.
    simulate(&Summing(|context| context.random() ^ context.random_below(1_000)), &options(), 3).unwrap();
    for offer in
        [ApplicationKind::Service, ApplicationKind::State, ApplicationKind::EventStream, ApplicationKind::Commands]
    {
        for seed in 1..=rounds(2, 1) {
            let outcome = simulate_own(Some(offer), &options(), seed);
            assert!(outcome.is_ok(), "{offer}, seed {seed}: {}", outcome.unwrap_err());
        }
    }
}

#[test]
fn panic_in_second_process_is_reported() {
    let of_a_service = || {
        assert!(std::env::var_os("GAPLESS_SIM_SECOND_PASS").is_none(), "nobody makes me");
        Sum { look: |_| 1, sum: 0 }
    };
    let text = simulate(&Making(of_a_service), &options(), 3).unwrap_err().to_string();
    assert!(text.contains("a second process panics, and the run did not: nobody makes me"), "{text}");
}

#[test]
fn unnamed_thread_gets_a_remedy() {
    let outcome = std::thread::spawn(|| simulate(&Summing(|_| 1), &options(), 3)).join().unwrap();
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("SecondPass::Off") && text.contains("SecondPass::With"), "{text}");
}

struct Stored {
    sum: Counter,
    look: fn() -> u64,
}

impl StateService for Stored {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        let take = |stored: &Self, store: &mut Transaction<'_>, _: &[u8], _: &mut Context<'_>| -> Result<(), Reject> {
            let looked = (stored.look)() % 1_000_000_007;
            store.add(stored.sum, looked as i64)?;
            Ok(())
        };
        handlers.on_bytes(SCHEMA, take);
    }
}

struct Storing<const IS_CLOCK: bool>;

fn clock_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

fn process() -> u64 {
    u64::from(std::process::id())
}

impl<const IS_CLOCK: bool> StateApplication for Storing<IS_CLOCK> {
    type Service = Stored;

    fn service(store: &mut Store) -> Stored {
        Stored { sum: store.counter(1, "sum"), look: if IS_CLOCK { clock_ns } else { process } }
    }

    fn message(&self, _: u64, index: u64, _: &mut Random) -> (MessageType, Vec<u8>) {
        (MessageType { schema: SCHEMA, encoding: Encoding::Opaque }, index.to_le_bytes().to_vec())
    }
}

#[test]
fn leader_clock_follows_the_seed() {
    let run = || -> Tally { simulate_state(&Storing::<true>, &options(), 4).unwrap() };
    assert_eq!(run(), run());
}

#[test]
fn leader_nondeterminism_is_found() {
    let text = simulate_state(&Storing::<false>, &options(), 4).unwrap_err().to_string();
    let is_named = text.contains("the same seed gives another run in a second process")
        && text.contains("message: schema 9 template 1");
    assert!(is_named && text.contains("the frames part at byte "), "{text}");
}
