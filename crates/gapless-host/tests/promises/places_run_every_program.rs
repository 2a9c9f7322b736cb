//! The same program runs in memory, in a directory and on a member; it takes commands, and stops. In a directory and on a
//! member its state is there after a restart.

use crate::clusters::Files;
use crate::programs::{Account, Caller, Calls, Deposit, Hours, Sum, add, model};
use gapless_cqrs::{Aggregate, BusOptions, Position};
use gapless_host::{Host, Phase, Role, Running};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Memory,
    Directory,
    Member,
}

const KINDS: [Kind; 3] = [Kind::Memory, Kind::Directory, Kind::Member];

struct Folder {
    kind: Kind,
    root: tempfile::TempDir,
    files: Option<Files>,
}

impl Folder {
    fn new(kind: Kind) -> Self {
        let files = (kind == Kind::Member).then(|| Files::new(&["full"], ""));
        Self { kind, root: tempfile::tempdir().unwrap(), files }
    }

    /// The place is one argument of the program.
    fn host(&self) -> Host {
        match &self.files {
            Some(files) => files.host(1),
            None if self.kind == Kind::Memory => Host::at("memory").unwrap(),
            None => Host::at(self.root.path().join("data").to_str().unwrap()).unwrap(),
        }
    }

    fn keeps(&self) -> bool {
        self.kind != Kind::Memory
    }
}

fn runs_everywhere(start: impl Fn(Host) -> Running) {
    for kind in KINDS {
        let folder = Folder::new(kind);
        for start_number in 0..2 {
            let host = start(folder.host());
            let before = if folder.keeps() { 3 * start_number } else { 0 };
            let mut caller = Caller::new(&host);
            for number in 1..=3 {
                assert_eq!(caller.add(&add(7)), before + number, "{kind:?}");
            }
            let status = host.status();
            assert_eq!((status.phase, status.starts), (Phase::Running, 1));
            assert_eq!(status.role, if kind == Kind::Member { Role::Leader } else { Role::Alone });
            assert_eq!(status.recovered.last_sequence > 0, folder.keeps() && start_number > 0, "{kind:?}");
            assert_eq!(host.snapshot().is_ok(), folder.keeps());
            assert!(host.stop().unwrap() >= 3 * (before + 3) / 3);
            assert_eq!(host.status().phase, Phase::Stopped);
        }
    }
}

#[test]
fn derived_service() {
    runs_everywhere(|host| host.service(Sum::default()).start().unwrap());
}

#[test]
fn service_from_function() {
    runs_everywhere(|host| host.service_from(Hours::default).start().unwrap());
}

#[test]
fn replicated_state() {
    runs_everywhere(|host| host.replicated_state(Calls::new).start().unwrap());
}

#[test]
fn aggregates() {
    for kind in KINDS {
        let folder = Folder::new(kind);
        for start_number in 0..2 {
            let host = folder.host().aggregates(model()).start().unwrap();
            let bus = host.bus(&BusOptions::default()).unwrap();
            let before = if folder.keeps() { 3 * start_number } else { 0 };
            for number in 1..=3 {
                let accepted = bus.call(Account::command(&7, &Deposit(number))).unwrap();
                assert_eq!(accepted.version, before + number, "{kind:?}");
            }
            let mut events = host.events(Position::default()).unwrap();
            let mut count = 0;
            while let Some(mut transaction) = events.next_transaction().unwrap() {
                while transaction.next_event().unwrap().is_some() {
                    count += 1;
                }
            }
            assert_eq!(count, before + 3, "{kind:?}");
            let deleted = host.delete_events_before(1);
            assert_eq!(deleted.is_ok(), kind != Kind::Member);
            drop((events, bus));
            host.stop().unwrap();
        }
    }
}

#[test]
fn polled_aggregates() {
    for kind in [Kind::Memory, Kind::Directory] {
        let folder = Folder::new(kind);
        for start_number in 0..2 {
            let mut bus = folder.host().aggregates(model()).start_polled(&BusOptions::default()).unwrap();
            let before = if folder.keeps() { 3 * start_number } else { 0 };
            for number in 1..=3 {
                let accepted = bus.call(Account::command(&7, &Deposit(number))).unwrap();
                assert_eq!(accepted.version, before + number, "{kind:?}");
            }
            bus.stop().unwrap();
        }
    }
    let host = Folder::new(Kind::Member).host().aggregates(model());
    let error = host.start_polled(&BusOptions::default()).err().expect("a refusal").to_string();
    assert!(error.contains("start_polled") && error.contains("take Host::start"), "{error}");
}
