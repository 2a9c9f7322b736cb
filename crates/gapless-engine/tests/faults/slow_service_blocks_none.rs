//! A slow handler delays no other member. As leader it keeps the lead, and each client gets each reply once, unless a
//! single handler exceeds an election timeout.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it says what it has done")]

use crate::replica_processes::{self, Cluster, Environment, HEARD, Numbers, PATIENCE, Sender, number_of};
use gapless_engine::store::{Counter, Queue, Store, Transaction};
use gapless_engine::{
    Context, Handlers, Reject, Replica, ReplicaOptions, Service, StateHandlers, StateOptions, StateService,
};
use gapless_testkit::scenarios::Module;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const SLOW: usize = 2;
const IS_SLOW: &str = "GAPLESS_TEST_IS_SLOW";
const IS_STATE: &str = "GAPLESS_TEST_IS_STATE";
/// Handling a whole batch in one poll would keep the member from sending heartbeats.
const PAUSE: Duration = Duration::from_millis(15);
/// [`LONG_PAUSE`] exceeds an election timeout.
const LONG: u32 = 300;
const LONG_PAUSE: Duration = Duration::from_millis(1_900);
const ELECTION: &str = "[election]\ntimeout = \"900 ms\"\n";
const COMMANDS: u64 = 120;
/// Attempts: a busy machine may depose a leader with quick handlers, too.
const ATTEMPTS_MAX: u32 = 3;

const REPLICA: &str = "slow_service_blocks_none::replica";

pub fn run_as_replica_if_requested() {
    replica_processes::run_as_replica_if_requested(REPLICA, |config| {
        if std::env::var_os(IS_STATE).is_some() {
            Replica::start_state(SlowState::new, StateOptions::default(), config).unwrap()
        } else {
            Replica::start(Slow::default(), ReplicaOptions::default(), config).unwrap()
        }
    });
}

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("events_are_replicated", events_are_replicated)
        .scenario("a_state_is_replicated", a_state_is_replicated)
}

fn take_long(number: u64) {
    if std::env::var_os(IS_SLOW).is_some() {
        std::thread::sleep(if number as u32 == LONG { LONG_PAUSE } else { PAUSE });
    }
}

#[derive(Default)]
struct Slow(Vec<u64>);

impl Service for Slow {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(HEARD.schema, |it: &mut Self, payload: &[u8], context: &mut Context<'_>| {
            let number = number_of(payload)?;
            take_long(number);
            it.0.push(number);
            context.reply_with(HEARD, payload)
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        self.0.iter().for_each(|number| state.extend_from_slice(&number.to_le_bytes()));
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = state.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect();
        Ok(())
    }
}

gapless_engine::store_object! {
    struct Number = 1, version 1 {
        number: u64,
    }
}

struct SlowState {
    heard: Queue<Number>,
    count: Counter,
}

impl SlowState {
    fn new(store: &mut Store) -> Self {
        Self { heard: store.queue(1, "heard"), count: store.counter(2, "count") }
    }

    fn hear(&self, store: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let number = number_of(payload)?;
        take_long(number);
        store.push(self.heard, Number { number })?;
        store.add(self.count, 1)?;
        context.reply_with(HEARD, payload)
    }
}

impl StateService for SlowState {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.on_bytes(HEARD.schema, Self::hear);
    }
}

fn call_and(sender: &mut Numbers, mut meanwhile: impl FnMut()) -> Duration {
    let (begun, goal) = (Instant::now(), sender.sent + COMMANDS);
    while sender.answered() < goal {
        assert!(begun.elapsed() < PATIENCE, "{} of {goal} have their replies", sender.answered());
        sender.turn(goal);
        meanwhile();
    }
    begun.elapsed()
}

fn call(sender: &mut Numbers) -> Duration {
    call_and(sender, || {})
}

/// Returns also whether another replica was ahead of the slow one meanwhile.
fn call_and_compare(cluster: &mut Cluster, sender: &mut Numbers) -> (Duration, bool) {
    let mut is_ahead = false;
    let took = call_and(sender, || {
        // Reads the slow one last: it is behind even later.
        let other = cluster.of(1).standing().handled_sequence;
        let slow = cluster.of(SLOW).standing().handled_sequence;
        is_ahead |= slow < other;
    });
    (took, is_ahead)
}

fn has_every_reply(sender: &Numbers) {
    let expected: BTreeMap<u64, u64> = (1..=sender.sent).map(|number| (number, sender.owner << 32 | number)).collect();
    assert!(sender.replies == expected, "each command has its own reply");
}

fn events_are_replicated() {
    assert!((0..ATTEMPTS_MAX).any(|_| slow_leader_keeps_lead()), "slow handlers do not cost the lead");
}

fn slow_leader_keeps_lead() -> bool {
    let mut environments: [Environment; 3] = [&[]; 3];
    environments[SLOW - 1] = &[(IS_SLOW, "1")];
    let mut cluster = Cluster::start_with(REPLICA, None, ELECTION, environments);
    cluster.make_leader(1);
    let mut sender = Numbers::new(&cluster.sockets(), 1);
    let (following, is_ahead) = call_and_compare(&mut cluster, &mut sender);
    assert!(is_ahead, "no member waits for the slow one");

    let term = cluster.make_leader(SLOW);
    let (leading, is_ahead) = call_and_compare(&mut cluster, &mut sender);
    let terms = [1, 2, 3].map(|member| cluster.term(member));
    if terms != [term; 3] {
        println!("events: the slow one led in term {term}; later the terms were {terms:?}");
        return false;
    }
    assert!(is_ahead, "no member waits for the leader's handlers");

    let deposing = call(&mut sender);
    cluster.make_leader(1);
    let behind = call(&mut sender);
    has_every_reply(&sender);
    println!(
        "events: {COMMANDS} commands in {following:?} while the slow one followed, {leading:?} while it led, {deposing:?} \
         with one that takes {LONG_PAUSE:?}, {behind:?} behind that; {} replies again",
        sender.again
    );
    cluster.settle();
    drop(sender);
    cluster.stop();
    true
}

fn a_state_is_replicated() {
    let mut environments: [Environment; 3] = [&[(IS_STATE, "1")]; 3];
    environments[SLOW - 1] = &[(IS_STATE, "1"), (IS_SLOW, "1")];
    let mut cluster = Cluster::start_with(REPLICA, None, ELECTION, environments);
    cluster.make_leader(SLOW);
    let mut sender = Numbers::new(&cluster.sockets(), 1);
    let leading = [(); 3].map(|()| call(&mut sender));
    cluster.make_leader(1);
    let behind = call(&mut sender);
    has_every_reply(&sender);
    println!(
        "state: {COMMANDS} commands in {leading:?} while the slow one led, the last ones with one that takes \
         {LONG_PAUSE:?}, {behind:?} behind that; {} replies again",
        sender.again
    );
    cluster.settle();
    drop(sender);
    cluster.stop();
}
