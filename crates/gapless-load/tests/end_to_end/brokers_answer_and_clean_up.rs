//! Each installed broker answers every call, delivers every message in order, and leaves no process and no file.
//! Missing ones are skipped.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_load::peers::nats::{NatsBroker, NatsCaller, NatsServer};
use gapless_load::peers::rabbitmq::{Acknowledgement, RabbitMqBroker, RabbitMqCaller, RabbitMqServer};
use gapless_load::peers::subject::{PeerCaller, PeerHandler, PeerServer, WaitMode, increment};
use gapless_load::peers::{PeerError, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const ROUTE: &str = "increment";
const SIZES: [usize; 5] = [0, 1, 64, 4096, 300_000];
const CALLS: u64 = 200;
const MESSAGES: u64 = 2_000;
const BOTH: [WaitMode; 2] = [WaitMode::Blocking, WaitMode::Spinning];

struct Work<'a>(&'a AtomicU64);

impl PeerHandler for Work<'_> {
    fn call(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        increment(request, reply);
    }

    fn receive(&mut self, message: &[u8]) {
        let number = self.0.load(Ordering::Relaxed);
        assert_eq!(message, [&number.to_le_bytes()[..], &[7; 100]].concat());
        self.0.store(number + 1, Ordering::Relaxed);
    }
}

fn or_skipped<B>(started: Result<B>) -> Option<B> {
    match started {
        Ok(broker) => Some(broker),
        Err(error @ PeerError::Missing { .. }) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn payload(ticket: u64, size: usize) -> Vec<u8> {
    (0..size).map(|index| (ticket as usize * 31 + index * 7) as u8).collect()
}

fn is_served(mut caller: impl PeerCaller, mut server: impl PeerServer) {
    let (stop, received) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(&mut Work(&received), &stop));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for size in SIZES {
                for in_flight in [1, 64] {
                    calls(&mut caller, size, in_flight);
                }
            }
            for number in 0..MESSAGES {
                caller.send(&[&number.to_le_bytes()[..], &[7; 100]].concat()).unwrap();
            }
            caller.flush().unwrap();
            gapless_testkit::wait::until_some("all messages", || {
                (received.load(Ordering::Relaxed) == MESSAGES).then_some(())
            });
        }));
        stop.store(true, Ordering::Relaxed);
        serving.join().unwrap().unwrap();
        done.unwrap();
    });
}

fn calls(caller: &mut impl PeerCaller, size: usize, in_flight: u64) {
    let (mut begun, mut replies) = (0, BTreeMap::new());
    while (replies.len() as u64) < CALLS {
        while begun < CALLS && begun - (replies.len() as u64) < in_flight {
            caller.begin(begun, &payload(begun, size)).unwrap();
            begun += 1;
        }
        caller.receive(&mut |ticket, reply| assert!(replies.insert(ticket, reply.to_vec()).is_none())).unwrap();
    }
    for (ticket, reply) in replies {
        let mut expected = Vec::new();
        increment(&payload(ticket, size), &mut expected);
        assert!(reply == expected, "{size} bytes, {in_flight} in flight, call {ticket}");
    }
}

fn processes_in(directory: &Path) -> Vec<String> {
    let working = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.ok()?.path();
        std::fs::read_link(path.join("cwd")).ok()?.starts_with(directory).then(|| path.display().to_string())
    };
    std::fs::read_dir("/proc").unwrap().filter_map(working).collect()
}

#[test]
fn nats_answers_and_cleans_up() {
    let directory = tempfile::tempdir().unwrap();
    let Some(broker) = or_skipped(NatsBroker::start(directory.path(), &|| false)) else { return };
    assert!(!processes_in(directory.path()).is_empty());
    for waiting in BOTH {
        let caller = NatsCaller::connect(broker.address(), ROUTE, waiting).unwrap();
        is_served(caller, NatsServer::connect(broker.address(), ROUTE, waiting).unwrap());
    }
    assert!(broker.process().cpu_ns() > 0);
    drop(broker);
    assert_eq!(processes_in(directory.path()), [""; 0]);
}

#[test]
fn rabbitmq_answers_and_cleans_up() {
    let directory = tempfile::tempdir().unwrap();
    let Some(broker) = or_skipped(RabbitMqBroker::start(directory.path(), &|| false)) else { return };
    for (acknowledgement, waiting) in [
        (Acknowledgement::Explicit, WaitMode::Blocking),
        (Acknowledgement::Automatic, WaitMode::Blocking),
        (Acknowledgement::Explicit, WaitMode::Spinning),
    ] {
        let caller = RabbitMqCaller::connect(broker.address(), ROUTE, waiting).unwrap();
        is_served(caller, RabbitMqServer::connect(broker.address(), ROUTE, waiting, acknowledgement).unwrap());
    }
    assert!(broker.process().cpu_ns() > 0);
    drop(broker);
    assert_eq!(processes_in(directory.path()), [""; 0]);
}

#[test]
fn killed_broker_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let Some(broker) = or_skipped(NatsBroker::start(directory.path(), &|| false)) else { return };
    let mut caller = NatsCaller::connect(broker.address(), ROUTE, WaitMode::Blocking).unwrap();
    drop(broker);
    let error = caller.begin(0, b"x").and_then(|()| caller.receive(&mut |_, _| ())).unwrap_err().to_string();
    assert!(error.contains("the broker"), "{error}");
}
