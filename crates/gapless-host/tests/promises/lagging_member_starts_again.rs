//! A member that needs frames which no journal has any more fetches another member's state, and starts again by itself.
//! If that start fails, every handle is told; a stop meanwhile stops the next start.

use crate::clusters::{Files, leader};
use crate::programs::{Add, Caller, Sum};
use gapless_host::{HostError, Phase, Running};
use gapless_journal::JournalReader;
use gapless_testkit::wait;
use std::sync::mpsc::channel;

const FILLER_BYTES: usize = 30_000;

struct Lagging {
    files: Files,
    members: Vec<Option<Running>>,
    away: usize,
    caller: Caller,
    count: u64,
}

impl Lagging {
    /// One of three members is away, and the others have deleted frames that it lacks.
    fn new() -> Self {
        let files = Files::new(&["full"; 3], "retention_bytes = \"2 MiB\"\n");
        let mut members: Vec<Option<Running>> =
            (1..=3).map(|member| Some(files.host(member).service(Sum::default()).start().unwrap())).collect();
        let away = leader(&members) % 3 + 1;
        let caller = Caller::new(members[away % 3].as_ref().unwrap());
        let mut this = Self { files, members: Vec::new(), away, caller, count: 0 };
        this.add(5);
        let end = members[away - 1].take().unwrap().stop().unwrap();
        this.members = members;
        let forget = |this: &Self| {
            let others = (1..=3).filter(|member| *member != away);
            others.map(|member| first_sequence(this, member)).all(|first| first > end + 1)
        };
        wait::until("old segments to go", || {
            // Later frames seal a segment that the snapshot covers.
            this.add(80);
            for host in this.members.iter().flatten() {
                host.snapshot().unwrap();
            }
            forget(&this)
        });
        this
    }

    fn add(&mut self, count: u64) {
        for _ in 0..count {
            self.count += 1;
            let command = Add { amount: self.count, filler: vec![self.count as u8; FILLER_BYTES] };
            assert_eq!(self.caller.add(&command), self.count, "each is counted once");
        }
    }

    /// Commands go on until `is_so`.
    #[track_caller]
    fn add_until(&mut self, what: &str, is_so: impl Fn() -> bool) {
        wait::until(what, || {
            self.add(1);
            is_so()
        });
    }
}

fn first_sequence(lagging: &Lagging, member: usize) -> u64 {
    JournalReader::open(lagging.files.directory(member).join("journal")).unwrap().first_sequence()
}

#[test]
fn continues_from_the_fetched_state() {
    let mut lagging = Lagging::new();
    let away = lagging.away;
    let host = lagging.files.host(away).service(Sum::default()).start().unwrap();
    assert_eq!(host.status().starts, 1);
    lagging.add_until("its second start", || host.status().starts == 2);
    assert!(host.status().recovered.snapshot_sequence > 0, "it began with a snapshot");
    assert!(first_sequence(&lagging, away) > 1, "its journal begins after the fetched snapshot");
    lagging.add(5);
    let mut caller = Caller::new(&host);
    lagging.count += 1;
    assert_eq!(caller.add(&Add { amount: 1, filler: Vec::new() }), lagging.count, "its clients are served");
    lagging.members[away - 1] = Some(host);
    wait::until("all members to have all", || {
        let handled: Vec<u64> = lagging.members.iter().flatten().map(|host| host.status().handled).collect();
        handled.iter().all(|each| *each == handled[0])
    });
    let newest = |member: usize| {
        let paths = std::fs::read_dir(lagging.files.directory(member).join("snapshots")).unwrap();
        std::fs::read(paths.map(|entry| entry.unwrap().path()).max().unwrap()).unwrap()
    };
    for host in lagging.members.iter().flatten() {
        host.stop().unwrap();
    }
    assert!(newest(1) == newest(2) && newest(2) == newest(3), "the states are equal");
}

#[test]
fn failed_start_is_reported() {
    let mut lagging = Lagging::new();
    let mut starts = 0;
    let make = move || {
        starts += 1;
        assert!(starts == 1, "no second service");
        Sum::default()
    };
    let host = lagging.files.host(lagging.away).service_from(make).start().unwrap();
    let waiting = host.clone();
    let waiting = std::thread::spawn(move || waiting.wait());
    lagging.add_until("its failure", || host.status().phase == Phase::Failed);
    wait::until("the end of the wait", || waiting.is_finished());
    let error = waiting.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("its next start failed: the service panicked while"), "{error}");
    assert_eq!(host.status().failure, Some(error));
    assert!(matches!(host.stop(), Err(HostError::Ended(_))));
}

#[test]
fn stop_ends_the_next_start() {
    let mut lagging = Lagging::new();
    let (starting, starts) = channel();
    let (go_on, gate) = channel::<()>();
    let make = move || {
        starting.send(()).unwrap();
        // The first start goes on at once.
        gate.recv().unwrap();
        Sum::default()
    };
    go_on.send(()).unwrap();
    let host = lagging.files.host(lagging.away).service_from(make).start().unwrap();
    starts.recv().unwrap();
    lagging.add_until("its second start", || starts.try_recv().is_ok());
    assert_eq!(host.status().phase, Phase::Starting);
    assert!(matches!(host.snapshot(), Err(HostError::Starting)));
    let stopping = host.clone();
    let stopping = std::thread::spawn(move || stopping.stop());
    wait::until("the request", || matches!(host.snapshot(), Err(HostError::Stopped)));
    assert!(!stopping.is_finished(), "the member is starting");
    go_on.send(()).unwrap();
    wait::until("the stop", || stopping.is_finished());
    assert!(stopping.join().unwrap().unwrap() > 0);
    assert_eq!(host.status().phase, Phase::Stopped);
    host.wait().unwrap();
}
