//! Clients append to lists and read them through a cluster whose members are killed, paused and cut off. The history is
//! checked here, and by outside checkers (Jepsen's EDN, Elle's list-append) in the file `GAPLESS_HISTORY`; without it
//! the file is removed.
//!
//! An append is a published message, complete when read back. A read is a published message, too: a reader's own
//! position alone may lag, and would be sequentially consistent. An operation without a result may happen even later;
//! its client continues as another process with another session.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod history;

use crate::processes;
use crate::processes::load::TYPE;
use crate::processes::{Cluster, PATIENCE, THREE, WITNESS};
use gapless_client::node::{NodeEvent, SharedMemoryLink, SharedMemoryOptions, StreamNode, StreamNodeOptions};
use gapless_testkit::random::Random;
use gapless_testkit::scenarios::Module;
use history::{ClientAction, ClientHistory, EventKind};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const CLIENTS: u64 = 5;
const KEYS: u64 = 6;
const GIVEN_UP: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(5);

pub fn module() -> Module {
    Module::new(module_path!())
        .scenario("a_wrong_history_is_refused", history::a_wrong_history_is_refused)
        .with_choices("three_members", |random| a_history(THREE, "three", random))
        .with_choices("with_a_witness", |random| a_history(WITNESS, "witness", random))
}

struct ClientState {
    history: Mutex<ClientHistory>,
    begun: Instant,
    is_over: AtomicBool,
    next_value: AtomicU64,
    next_process: AtomicU64,
    done: AtomicU64,
}

impl ClientState {
    fn record(&self, kind: EventKind, process: u64, action: &ClientAction) {
        // Under the lock, so that times rise along the file.
        let mut history = self.history.lock().unwrap();
        let time_ns = self.begun.elapsed().as_nanos() as u64;
        history.push(kind, process, time_ns, action.clone());
    }
}

fn a_history(plan: processes::ClusterPlan, name: &str, random: &mut Random) {
    let mut cluster = Cluster::start(plan);
    cluster.leader();
    let shared = Arc::new(ClientState {
        history: Mutex::default(),
        begun: Instant::now(),
        is_over: AtomicBool::new(false),
        next_value: AtomicU64::new(1),
        next_process: AtomicU64::new(0),
        done: AtomicU64::new(0),
    });
    let client = |number| {
        let (shared, directories) = (Arc::clone(&shared), cluster.directories());
        std::thread::spawn(move || run_client(number, &directories, &shared))
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let wait_done = |count: u64| {
        let (deadline, end) = (Instant::now() + PATIENCE, shared.done.load(Ordering::SeqCst) + count);
        while shared.done.load(Ordering::SeqCst) < end {
            assert!(clients.iter().all(|client| !client.is_finished()), "a client has ended");
            assert!(Instant::now() < deadline, "clients make no progress");
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    wait_done(100);
    for round in 0..6 {
        let leader = cluster.leader();
        let others: Vec<usize> = cluster.all().filter(|other| *other != leader).collect();
        match round % 3 {
            0 => cluster.kill(leader),
            1 => cluster.pause(leader),
            _ => cluster.isolate(leader, true),
        }
        cluster.leader_among(&others);
        wait_done(50 + random.below(100));
        match round % 3 {
            0 => cluster.start_member(leader, &[]),
            1 => cluster.go_on(leader),
            _ => cluster.isolate(leader, false),
        }
        cluster.caught_up(leader);
        wait_done(50);
    }
    shared.is_over.store(true, Ordering::SeqCst);
    clients.into_iter().for_each(|client| client.join().unwrap());

    let history = std::mem::take(&mut *shared.history.lock().unwrap());
    let path = match std::env::var_os("GAPLESS_HISTORY") {
        Some(path) => PathBuf::from(path).with_extension(format!("{name}.edn")),
        None => cluster.root.path().join("history.edn"),
    };
    std::fs::write(&path, history.to_edn()).unwrap();
    let read = ClientHistory::from_edn(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(read, history);
    let counts = read.check().unwrap_or_else(|reason| {
        let kept = std::env::temp_dir().join(format!("gapless-history-{name}-{}.edn", std::process::id()));
        std::fs::copy(&path, &kept).unwrap();
        panic!("not linearizable: {reason}; the history is kept as {}", kept.display());
    });
    println!("{}: {counts}", path.display());
    assert!(counts.appends > 100 && counts.reads > 100, "{counts}");
}

/// 0 for an append and 1 for a read, key, value, number for the client.
fn encode(action: &ClientAction) -> Vec<u8> {
    let (kind, key, value) = match action {
        ClientAction::Append { key, value } => (0, *key, *value),
        ClientAction::Read { key, .. } => (1, *key, 0),
    };
    [kind, key, value].into_iter().flat_map(u64::to_le_bytes).collect()
}

fn run_client(number: u64, directories: &[PathBuf], shared: &ClientState) {
    let mut random = number;
    while !shared.is_over.load(Ordering::SeqCst) {
        let process = shared.next_process.fetch_add(1, Ordering::SeqCst);
        // Its node resends unanswered messages as long as it lives.
        let link = SharedMemoryLink::any(directories, SharedMemoryOptions::default());
        let mut node = StreamNode::new(link, StreamNodeOptions::default());
        let mut lists = HashMap::<u64, Vec<u64>>::new();
        while !shared.is_over.load(Ordering::SeqCst) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (random >> 33) % KEYS;
            let action = if (random >> 43).is_multiple_of(3) {
                ClientAction::Read { key, list: None }
            } else {
                ClientAction::Append { key, value: shared.next_value.fetch_add(1, Ordering::SeqCst) }
            };
            shared.record(EventKind::Invoke, process, &action);
            match operate(&mut node, &mut lists, &action) {
                OperationOutcome::Done(action) => {
                    shared.record(EventKind::Ok, process, &action);
                    shared.done.fetch_add(1, Ordering::SeqCst);
                }
                OperationOutcome::NotSent => shared.record(EventKind::Fail, process, &action),
                OperationOutcome::Unknown => {
                    shared.record(EventKind::Info, process, &action);
                    break;
                }
            }
            std::thread::sleep(PAUSE);
        }
    }
}

enum OperationOutcome {
    Done(ClientAction),
    NotSent,
    /// May have happened, or may still happen.
    Unknown,
}

fn operate(
    node: &mut StreamNode<SharedMemoryLink>,
    lists: &mut HashMap<u64, Vec<u64>>,
    action: &ClientAction,
) -> OperationOutcome {
    let deadline = Instant::now() + GIVEN_UP;
    let (mut is_sent, mut done) = (false, None);
    while done.is_none() {
        if Instant::now() > deadline {
            return if is_sent { OperationOutcome::Unknown } else { OperationOutcome::NotSent };
        }
        if !is_sent && node.can_publish() {
            node.publish(TYPE, &encode(action)).unwrap();
            is_sent = true;
        }
        let count = node.poll(256, |event| {
            let NodeEvent::Message(message) = event else { return };
            let word = |at: usize| u64::from_le_bytes(message.payload[8 * at..8 * at + 8].try_into().unwrap());
            let list = lists.entry(word(1)).or_default();
            if message.own {
                let seen = ClientAction::Read { key: word(1), list: Some(list.clone()) };
                done = Some(if word(0) == 1 { seen } else { action.clone() });
            }
            if word(0) == 0 {
                list.push(word(2));
            }
        });
        if count.unwrap() == 0 {
            node.wait(Duration::from_micros(500)).unwrap();
        }
    }
    OperationOutcome::Done(done.unwrap())
}
