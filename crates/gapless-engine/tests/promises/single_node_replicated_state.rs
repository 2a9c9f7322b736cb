//! Without a cluster, in memory and in a directory at each tier: handlers run once, effects before a refusal or a panic
//! are undone, and a restart runs no handler again. A directory of another kind of service, or with unknown objects, is
//! refused and unchanged.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::attacked::{ADD, Adder, PATIENCE, add, call, connect, failure, message, options};
use gapless_agent::PlanKind;
use gapless_client::ClientError;
use gapless_client::polled::{ClientOptions, OwnedReply};
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_engine::store::{Counter, Map, Store, StoreLimits, Transaction};
use gapless_engine::{
    Context, EngineError, OnPanic, OnUnhandled, Policy, Reject, ServiceHost, ServiceHostOptions, StateHandlers,
    StateService, Threads,
};
use gapless_testkit::process::{Process, this_program};
use gapless_testkit::wait::until_some;
use gapless_transport::Tier;
use gapless_transport::token::random_token;
use gapless_wire::control::RefusalCode;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The first byte selects the action, the next eight are a number; the rest comes back in the reply.
const DO: u32 = 1 << 16 | 1;
const UNKNOWN: u32 = 1 << 16 | 9;

const KEEP: u8 = 0;
const REFUSE: u8 = 1;
const PANIC: u8 = 2;
/// Sets a timer in 20 ms, and a second one with the number plus 1,000,000, which it cancels again.
const TIMER: u8 = 3;
const NOTIFY: u8 = 4;
/// Replies with the number of entries, of fired ones, and the sum of all random numbers.
const ASK: u8 = 5;
const FLOOD: u8 = 6;

gapless_engine::store_object! {
    struct Entry = 1, version 1 {
        drawn: u64,
        has_fired: bool,
    }
}

struct Register {
    entries: Map<u64, Entry>,
    fired: Counter,
    runs: Arc<AtomicU64>,
}

fn make(runs: &Arc<AtomicU64>) -> impl Fn(&mut Store) -> Register + Send + Sync + 'static {
    let runs = Arc::clone(runs);
    move |store| Register {
        entries: store.map(1, "entries"),
        fired: store.counter(2, "fired"),
        runs: Arc::clone(&runs),
    }
}

impl Register {
    fn act(&self, store: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let (&[what], rest) = payload.split_first_chunk().ok_or("what is to be done?")?;
        let (number, filling) = rest.split_first_chunk().ok_or("a number is missing")?;
        let number = u64::from_le_bytes(*number);
        if what == ASK {
            let sum = (0..100).filter_map(|number| store.get(self.entries, &number)).map(|entry| entry.drawn);
            let sum = sum.fold(0, u64::wrapping_add);
            let said = [store.len(self.entries), store.value(self.fired) as u64, sum];
            return context.reply_with(message(DO), &said.map(u64::to_le_bytes).concat());
        }
        let drawn = RandomState::new().hash_one(Instant::now());
        store.insert(self.entries, number, Entry { drawn, has_fired: false });
        context.reply_with(message(DO), &[&drawn.to_le_bytes(), filling].concat())?;
        match what {
            REFUSE => return Err(Reject::new(number, "as it was asked to")),
            PANIC => panic!("a handler with a bug"),
            TIMER => {
                context.set_numbered_timer(number, context.time_ns() + 20_000_000);
                context.set_numbered_timer(number + 1_000_000, context.time_ns() + 20_000_000);
                context.cancel_numbered_timer(number + 1_000_000);
            }
            NOTIFY | FLOOD => {
                for _ in 0..if what == NOTIFY { 1 } else { 2_000 } {
                    context.notify_bytes(context.session(), DO, message(DO).encoding, 8, |buffer| {
                        buffer.copy_from_slice(&number.to_le_bytes());
                        Ok::<_, String>(8)
                    })?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl StateService for Register {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.on_bytes(DO, Self::act);
    }

    fn on_timer(&self, timer: u64, store: &mut Transaction<'_>, _: &mut Context<'_>) -> Result<(), Reject> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        store.add(self.fired, 1)?;
        let entry = store.get_mut(self.entries, &timer).ok_or("a timer that was cancelled")?;
        match std::mem::replace(&mut entry.has_fired, true) {
            true => Err("it has fired before".into()),
            false => Ok(()),
        }
    }
}

fn payload(what: u8, number: u64, filling: &[u8]) -> Vec<u8> {
    [&[what], &number.to_le_bytes()[..], filling].concat()
}

fn act(client: &mut PolledClient, key: SessionKey, what: u8, number: u64) -> Result<OwnedReply, ClientError> {
    call(client, key, DO, &payload(what, number, b""))
}

fn ask(client: &mut PolledClient, key: SessionKey) -> [u64; 3] {
    let said = act(client, key, ASK, 0).unwrap().payload;
    [0, 8, 16].map(|at| u64::from_le_bytes(said[at..at + 8].try_into().unwrap()))
}

fn refusal(outcome: Result<OwnedReply, ClientError>) -> (RefusalCode, u64, String) {
    match outcome {
        Err(ClientError::Refused { code, detail, reason, .. }) => (code, detail, reason),
        other => panic!("a refusal is expected, not {other:?}"),
    }
}

fn last_number(client: &PolledClient, key: SessionKey) -> u64 {
    client.next_session_seq(key).unwrap() - 1
}

fn repeated(client: &mut PolledClient, key: SessionKey, number: u64) -> Vec<u8> {
    client.repeat(key, number).unwrap();
    let mut found = None;
    until_some("the reply comes again", || {
        let poll = client.poll(64, |incoming| {
            if let Incoming::Reply { reply, .. } = incoming
                && reply.session_seq == number
            {
                found = Some(reply.payload.to_vec());
            }
        });
        poll.unwrap();
        client.wait(Duration::from_millis(1)).unwrap();
        found.take()
    })
}

fn noticed(client: &mut PolledClient) -> Vec<u8> {
    let mut found = None;
    until_some("a notice comes", || {
        let poll = client.poll(64, |incoming| {
            if let Incoming::Notice { notice, .. } = incoming {
                found = Some(notice.payload.to_vec());
            }
        });
        poll.unwrap();
        found.take()
    })
}

fn check_command_promises(host: &ServiceHost, client: &mut PolledClient, runs: &AtomicU64) {
    let key = client.open_session(random_token(), 8).unwrap();
    let empty = host.state_hash().unwrap();
    let (first, number) = (act(client, key, KEEP, 1).unwrap(), last_number(client, key));
    let (hash, before) = (host.state_hash().unwrap(), ask(client, key));
    assert_ne!(hash, empty, "the state's hash has changed");

    let ran = runs.load(Ordering::Relaxed);
    assert_eq!(repeated(client, key, number), first.payload);
    assert_eq!(runs.load(Ordering::Relaxed), ran, "a repeat runs no handler");

    let dead = host.dead_letter_count();
    assert_eq!(refusal(act(client, key, REFUSE, 2)), (RefusalCode::Rejected, 2, "as it was asked to".to_owned()));
    let (code, _, reason) = refusal(act(client, key, PANIC, 2));
    assert!(code == RefusalCode::HandlerPanicked && reason.contains("a handler with a bug"), "{reason}");
    assert_eq!(refusal(call(client, key, UNKNOWN, b"?")).0, RefusalCode::Unhandled);
    assert!(refusal(act(client, key, FLOOD, 2)).2.contains("unreceived notices"));
    assert_eq!((ask(client, key), host.state_hash()), (before, Some(hash)));
    assert_eq!(host.dead_letter_count(), dead + 2, "only faults are recorded");

    let filling: Vec<u8> = (0..150_000_u32).map(|at| (at % 251) as u8).collect();
    let long = call(client, key, DO, &payload(KEEP, 3, &filling)).unwrap();
    assert!(long.payload[8..] == filling);

    act(client, key, NOTIFY, 77).unwrap();
    assert_eq!(noticed(client), 77_u64.to_le_bytes());

    act(client, key, TIMER, 4).unwrap();
    until_some("the timer fires", || (ask(client, key)[1] == 1).then_some(()));
    // The cancelled timer was due at the same time.
    std::thread::sleep(Duration::from_millis(40));
    assert_eq!(ask(client, key)[..2], [4, 1], "1, 3, 77 and 4; one has fired");
    assert!(host.failure().is_none());
}

fn in_directory(directory: &Path, tier: Tier) -> ServiceHostOptions {
    ServiceHostOptions { tier, ..options(directory) }
}

fn start(runs: &Arc<AtomicU64>, options: ServiceHostOptions) -> ServiceHost {
    ServiceHost::start_state(make(runs), options).unwrap()
}

#[test]
fn in_memory_with_any_threads() {
    let detached = Threads { detach_sender: true, ..Threads::default() };
    let plans = [PlanKind::Min, PlanKind::Default, PlanKind::Max].map(|plan| Threads { plan, ..Threads::default() });
    for threads in plans.into_iter().chain([detached]) {
        let runs = Arc::default();
        let host =
            start(&runs, ServiceHostOptions { threads, window_bytes: 1 << 20, ..ServiceHostOptions::in_memory() });
        let mut client = host.connect(ClientOptions { timeout: PATIENCE, ..ClientOptions::default() }).unwrap();
        check_command_promises(&host, &mut client, &runs);
        drop(client);
        host.stop().unwrap();
    }
}

#[test]
fn every_tier_survives_a_restart() {
    for (tier, snapshot_on_stop) in [(Tier::Journal, false), (Tier::Journal, true), (Tier::Sync, false)] {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let options = || ServiceHostOptions { snapshot_on_stop, ..in_directory(place, tier) };
        let runs = Arc::default();
        let host = start(&runs, options());
        let mut client = connect(place);
        check_command_promises(&host, &mut client, &runs);
        let key = client.open_session(5, 8).unwrap();
        let last = call(&mut client, key, DO, &payload(KEEP, 8, &[7; 30_000])).unwrap();
        let (number, before, hash) = (last_number(&client, key), ask(&mut client, key), host.state_hash());
        let end = host.stop().unwrap();

        let runs: Arc<AtomicU64> = Arc::default();
        let host = start(&runs, options());
        let recovered = *host.recovered();
        assert_eq!(recovered.last_sequence, end);
        assert_eq!(recovered.snapshot_sequence, if snapshot_on_stop { end } else { 0 });
        assert_eq!((host.state_hash(), runs.load(Ordering::Relaxed)), (hash, 0), "no handler ran again");
        client.reconnect().unwrap();
        assert_eq!(repeated(&mut client, key, number), last.payload, "the original random bytes");
        assert_eq!(ask(&mut client, key), before);

        act(&mut client, key, TIMER, 9).unwrap();
        let handled = host.handled_sequence();
        crate::attacked::send(&mut client, key, DO, &payload(NOTIFY, 10, b""));
        until_some("the command is handled", || (host.handled_sequence() > handled).then_some(()));
        drop(client);
        host.stop().unwrap();
        let host = start(&runs, options());
        let mut client = connect(place);
        let key = client.open_session(5, 8).unwrap();
        assert_eq!(noticed(&mut client), 10_u64.to_le_bytes());
        until_some("the timer fires", || (ask(&mut client, key)[1] == 2).then_some(()));
        assert_eq!(ask(&mut client, key)[0], before[0] + 2);
        act(&mut client, key, REFUSE, 50).unwrap_err();
        act(&mut client, key, KEEP, 50).unwrap();
        assert_eq!(ask(&mut client, key)[..2], [before[0] + 3, 2]);
        host.stop().unwrap();
    }
}

#[test]
fn snapshots_run_during_commands() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let options = ServiceHostOptions { snapshot_interval_frames: Some(3), ..in_directory(place, Tier::Journal) };
    let runs = Arc::default();
    let host = start(&runs, options.clone());
    let mut client = connect(place);
    let key = client.open_session(5, 8).unwrap();
    let mut drawn = BTreeMap::new();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| (0..20).map(|_| host.snapshot().unwrap()).max());
        for number in 0..400 {
            drawn.insert(number % 90, act(&mut client, key, KEEP, number % 90).unwrap().payload);
        }
        assert!(asked.join().unwrap() > Some(0));
    });
    let sum =
        drawn.values().fold(0_u64, |sum, drawn| sum.wrapping_add(u64::from_le_bytes(drawn[..].try_into().unwrap())));
    assert_eq!(ask(&mut client, key), [90, 0, sum]);
    let (at, hash) = (host.snapshot().unwrap(), host.state_hash());
    act(&mut client, key, REFUSE, 1).unwrap_err();
    host.stop().unwrap();

    let runs: Arc<AtomicU64> = Arc::default();
    let host = start(&runs, options);
    assert!(host.recovered().snapshot_sequence >= at && at > 400);
    assert_eq!((host.state_hash(), runs.load(Ordering::Relaxed)), (hash, 0));
    client.reconnect().unwrap();
    assert_eq!(ask(&mut client, key), [90, 0, sum]);
    host.stop().unwrap();
}

const VICTIM_DIRECTORY: &str = "GAPLESS_STATE_NODE";

/// Killed by [`kill_keeps_answered_commands`]; does nothing as a test.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os(VICTIM_DIRECTORY) else { return };
    // Ends it if the test dies.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).unwrap();
    let options =
        ServiceHostOptions { snapshot_interval_frames: Some(40), ..in_directory(Path::new(&directory), Tier::Journal) };
    let host = start(&Arc::default(), options);
    panic!("it ends by itself: {}", failure(&host));
}

fn snapshots(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory.join("snapshots")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "snapshot")).collect()
}

#[test]
fn kill_keeps_answered_commands() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let (mut answered, mut last) = (BTreeMap::new(), None);
    let mut client: Option<(PolledClient, SessionKey)> = None;
    for life in 0..4 {
        let mut command = this_program();
        command.args(["--exact", "single_node_replicated_state::victim"]).env(VICTIM_DIRECTORY, place);
        let mut victim = Process::start_as(command.stdout(std::process::Stdio::null()));
        match &mut client {
            Some((client, _)) => until_some("the service is back", || client.reconnect().ok()),
            None => {
                let options = || ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
                let mut first =
                    until_some("a connection", || PolledClient::connect(place.join("node.socket"), options()).ok());
                let key = first.open_session(5, 8).unwrap();
                client = Some((first, key));
            }
        }
        let (client, key) = client.as_mut().unwrap();
        for number in 0..30 + life {
            let number = if number < 10 { number } else { life * 20 + number - 10 };
            let reply = act(client, *key, KEEP, number).unwrap();
            last = Some((last_number(client, *key), reply.payload.clone()));
            answered.insert(number, reply);
            if number % 7 == 0 {
                act(client, *key, REFUSE, 99).unwrap_err();
            }
        }
        // A transaction with many frames, cut anywhere: it may be in the journal or not.
        crate::attacked::send(client, *key, DO, &payload(KEEP, 98, &vec![1; 100_000]));
        victim.kill();
    }
    assert!(!snapshots(place).is_empty());

    let runs: Arc<AtomicU64> = Arc::default();
    let host = start(&runs, in_directory(place, Tier::Journal));
    assert!(host.recovered().snapshot_sequence > 0 && host.recovered().frames_replayed > 0, "{:?}", host.recovered());
    assert_eq!(runs.load(Ordering::Relaxed), 0, "recovery runs no handler");
    let (mut client, key) = client.unwrap();
    client.reconnect().unwrap();
    until_some("the open commands are answered", || {
        client.poll(64, |_| {}).unwrap();
        (client.in_flight(key) == 0).then_some(())
    });
    let (number, expected) = last.unwrap();
    assert_eq!(repeated(&mut client, key, number), expected);
    act(&mut client, key, KEEP, 98).map(|reply| answered.insert(98, reply)).unwrap();
    let drawn = |reply: &OwnedReply| u64::from_le_bytes(*reply.payload.first_chunk().unwrap());
    let sum = answered.values().map(drawn).fold(0, u64::wrapping_add);
    assert_eq!(ask(&mut client, key), [answered.len() as u64, 0, sum]);
    host.stop().unwrap();
}

#[test]
fn other_service_kind_is_refused() {
    for snapshot_on_stop in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let options = || ServiceHostOptions { snapshot_on_stop, ..options(place) };
        let host = ServiceHost::start(Adder::default(), options()).unwrap();
        let mut client = connect(place);
        let key = client.open_session(5, 8).unwrap();
        assert_eq!(add(&mut client, key, 3), 3);
        host.stop().unwrap();
        for _ in 0..2 {
            let refused = ServiceHost::start_state(make(&Arc::default()), options()).err().unwrap();
            let said = refused.to_string();
            assert!(said.contains("of an event-sourced service, and this one is state-replicated"), "{said}");
            assert_eq!(matches!(refused, EngineError::Kind { sequence: 2, .. }), !snapshot_on_stop, "{said}");
        }
        let host = ServiceHost::start(Adder::default(), options()).unwrap();
        client.reconnect().unwrap();
        assert_eq!(add(&mut client, key, 1), 4);
        host.stop().unwrap();

        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let options = || ServiceHostOptions { snapshot_on_stop, ..self::options(place) };
        let host = start(&Arc::default(), options());
        let mut client = connect(place);
        let key = client.open_session(5, 8).unwrap();
        act(&mut client, key, KEEP, 3).unwrap();
        host.stop().unwrap();
        for _ in 0..2 {
            let refused = ServiceHost::start(Adder::default(), options()).err().unwrap();
            let said = refused.to_string();
            assert!(said.contains("of a state-replicated service, and this one is event-sourced"), "{said}");
            assert_eq!(matches!(refused, EngineError::Kind { sequence: 2, .. }), !snapshot_on_stop, "{said}");
            // Refused even if the service's `restore` accepts any bytes.
            let refused = ServiceHost::start(Forgetful, options()).err().unwrap().to_string();
            assert!(refused.contains("of a state-replicated service"), "{refused}");
        }
        let host = start(&Arc::default(), options());
        client.reconnect().unwrap();
        assert_eq!(ask(&mut client, key)[0], 1);
        host.stop().unwrap();
    }
}

struct Forgetful;

impl gapless_engine::Service for Forgetful {
    fn handlers(handlers: &mut gapless_engine::Handlers<Self>) {
        handlers.on_bytes(ADD, |_, _, _| Ok(()));
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

gapless_engine::store_object! {
    struct LaterEntry = 1, version 2 {
        drawn: u64,
        has_fired: bool,
        note: u64,
    }
}

struct Other;

impl StateService for Other {
    fn handlers(_: &mut StateHandlers<Self>) {}
}

#[test]
fn unknown_objects_are_refused() {
    for snapshot_on_stop in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let options = || ServiceHostOptions { snapshot_on_stop, ..options(place) };
        let host = start(&Arc::default(), options());
        let mut client = connect(place);
        let key = client.open_session(5, 8).unwrap();
        act(&mut client, key, KEEP, 3).unwrap();
        host.stop().unwrap();
        let declares_other = |store: &mut Store| {
            store.counter(7, "something else");
            Other
        };
        let said = ServiceHost::start_state(declares_other, options()).err().unwrap().to_string();
        assert!(said.contains("collection 1"), "{said}");
        let declares_later = |store: &mut Store| {
            store.map::<u64, LaterEntry>(1, "entries");
            store.counter(2, "fired");
            Other
        };
        ServiceHost::start_state(declares_later, options()).unwrap().stop().unwrap();
        if snapshot_on_stop {
            assert_eq!(snapshots(place).len(), 1);
        }
        let host = start(&Arc::default(), options());
        client.reconnect().unwrap();
        assert_eq!(ask(&mut client, key)[0], 1);
        host.stop().unwrap();
    }
}

#[test]
fn limits_and_policies_are_checked() {
    let limits = StoreLimits { objects_max: 3, ..StoreLimits::default() };
    let policy = Policy { on_panic: OnPanic::DeadLetter, ..Policy::default() };
    let runs = Arc::default();
    let host = start(&runs, ServiceHostOptions { state_limits: limits, policy, ..ServiceHostOptions::in_memory() });
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let key = client.open_session(5, 8).unwrap();
    let kept = (0..5).filter(|number| act(&mut client, key, KEEP, *number).is_ok()).count() as u64;
    assert!((2..=3).contains(&kept) && ask(&mut client, key)[0] == kept, "{kept}");
    assert!(refusal(act(&mut client, key, KEEP, 9)).2.contains("the limit is 3"));
    drop(client);
    host.stop().unwrap();

    let skip = Policy { skip_sequences: [7].into(), ..Policy::default() };
    let stop = Policy { on_unhandled: OnUnhandled::Stop, ..Policy::default() };
    for (policy, option) in [(skip, "policy.skip_sequences"), (stop, "policy.on_unhandled")] {
        let started =
            ServiceHost::start_state(make(&runs), ServiceHostOptions { policy, ..ServiceHostOptions::in_memory() });
        let said = started.err().unwrap().to_string();
        assert!(said.contains(option) && said.contains("is refused"), "{said}");
    }
    let started = ServiceHost::start_state(
        make(&runs),
        ServiceHostOptions { tier: Tier::Quorum, ..ServiceHostOptions::in_memory() },
    );
    assert!(started.err().unwrap().to_string().contains("option tier"));
}
