//! A bank that deletes its events is killed at each named step of the deletion: every account is unchanged, and the
//! deletion resumes. Half of the segments are in an archive.
//!
//! CI kills at the first pass of each point, `GAPLESS_FULL` at the second, too; needs debug assertions.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless::cqrs::{
    Aggregate, AggregateOptions, BusOptions, CommandError, CommandModel, Creation, Decision, DeletionError,
    SnapshotPolicy,
};
use gapless::host::Aggregates;
use gapless::prelude::*;
use gapless::{Message, Running};
use gapless_agent::fault::DELETION_CRASH_POINTS;
use gapless_journal::{ArchiveFormat, ArchiveOptions, JournalReader, archive};
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_testkit::random::rounds;
use gapless_testkit::scenarios::Module;
use gapless_testkit::wait;
use serde::{Deserialize, Serialize};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

const SAFES: u64 = 600;
const ROUNDS: u64 = 12;

pub fn module() -> Module {
    Module::new(module_path!()).scenario("kills_at_every_point", kills_at_every_point)
}

#[derive(Serialize, Deserialize, Message)]
enum SafeCommand {
    Put(u64),
    Take(u64),
}

#[derive(Serialize, Deserialize, Message)]
struct Moved {
    by: i64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
struct Holds(i64);

#[derive(Clone, Serialize, Deserialize, Message)]
struct Safe {
    holds: i64,
}

impl Aggregate for Safe {
    const NAME: &'static str = "safe";
    type Id = u64;
    type Command = SafeCommand;
    type Event = Moved;
    type Refusal = Holds;

    fn new(_: &u64) -> Self {
        Self { holds: 0 }
    }

    fn creation(command: &SafeCommand) -> Creation {
        match command {
            SafeCommand::Put(_) => Creation::CreatesIfMissing,
            SafeCommand::Take(_) => Creation::MustExist,
        }
    }

    fn decide(&self, command: SafeCommand, decision: &mut Decision<'_, Moved>) -> Result<(), Holds> {
        match command {
            SafeCommand::Put(amount) => _ = decision.emit(Moved { by: amount.cast_signed() }),
            SafeCommand::Take(amount) if amount.cast_signed() > self.holds => return Err(Holds(self.holds)),
            SafeCommand::Take(amount) => _ = decision.emit(Moved { by: -amount.cast_signed() }),
        }
        Ok(())
    }

    fn apply(&mut self, event: &Moved) {
        self.holds += event.by;
    }
}

fn start(directory: &Path) -> Running<Aggregates> {
    let persistence = Persistence { segment_length_bytes: 256 << 10, ..Persistence::default() };
    let host = Host::in_directory(directory).tier(Tier::Sync).frame_length_max(4096).window_bytes(1 << 20);
    let model = CommandModel::new().aggregate_with_snapshots::<Safe>(SnapshotPolicy::default());
    let options = AggregateOptions { aggregates_max: 100, index_entries_max: 3_000, ..AggregateOptions::default() };
    host.persistence(persistence).aggregates(model).aggregate_options(options).start().unwrap()
}

const DELETER: &str = "killed_deletion_keeps_events::deleter";

/// Does not return if this process was started as a deleter.
pub fn run_deleter_if_asked() {
    let Some(arguments) = started_as(DELETER) else { return };
    let host = start(Path::new(&arguments[0]));
    delete(&host, Path::new(&arguments[0]));
    host.stop().unwrap();
    std::process::exit(3);
}

fn delete(host: &Running<Aggregates>, directory: &Path) {
    match host.delete_events_before(u64::MAX).unwrap() {
        Ok(_) | Err(DeletionError::NothingBefore { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let base = std::fs::read_dir(directory.join("base")).unwrap().next().unwrap().unwrap().file_name();
    let before: u64 = base.to_str().unwrap().strip_prefix("base-").unwrap().parse().unwrap();
    wait::until("the segments are gone", || first(directory) == before);
}

fn first(directory: &Path) -> u64 {
    JournalReader::open(directory.join("journal")).unwrap().first_sequence()
}

fn fill(directory: &Path) {
    let host = start(directory);
    let bus = host.bus(&BusOptions::default()).unwrap();
    for _ in 0..ROUNDS {
        let sent: Vec<_> = (0..SAFES).map(|id| bus.send(Safe::command(&id, &SafeCommand::Put(id + 1)))).collect();
        sent.into_iter().for_each(|pending| assert!(pending.wait().is_ok()));
    }
    drop(bus);
    let last = host.stop().unwrap();
    let options = ArchiveOptions {
        place: directory.join("archive"),
        form: ArchiveFormat::Plain,
        before_sequence: Some(last / 2),
    };
    let archived = archive(&directory.join("journal"), &options, |_| ()).unwrap();
    assert!(archived.archived.len() > 1);
}

fn check(host: &Running<Aggregates>, point: &str) {
    let bus = host.bus(&BusOptions::default()).unwrap();
    for id in (0..SAFES).step_by(7) {
        let holds = (ROUNDS * (id + 1)).cast_signed();
        let refused = bus.call(Safe::command(&id, &SafeCommand::Take(1 << 40)).expecting_version(ROUNDS));
        assert_eq!(refused, Err(CommandError::Refused(Holds(holds))), "{point}: {id}");
    }
    let none = bus.call(Safe::command(&SAFES, &SafeCommand::Take(1)));
    assert_eq!(none, Err(CommandError::NotFound), "{point}");
}

fn kills_at_every_point() {
    for point in DELETION_CRASH_POINTS {
        for pass in 1..=rounds(2, 1) {
            if pass == 2 && point == "deletion_after_base" {
                continue;
            }
            let directory = tempfile::tempdir().unwrap();
            fill(directory.path());
            let mut command = this_program();
            command.arg(DELETER).arg(directory.path()).env("GAPLESS_CRASH_POINT", format!("{point}:{pass}"));
            let killed = Process::start(&mut command).wait();
            assert_eq!(killed.signal(), Some(9), "{point}:{pass}");
            let host = start(directory.path());
            check(&host, point);
            delete(&host, directory.path());
            check(&host, point);
            host.stop().unwrap();
            std::fs::remove_dir_all(directory.path().join("index")).unwrap();
            let host = start(directory.path());
            check(&host, point);
            host.stop().unwrap();
            assert_eq!(std::fs::read_dir(directory.path().join("archive")).unwrap().count(), 0, "{point}");
            assert_eq!(std::fs::read_dir(directory.path().join("base")).unwrap().count(), 1, "{point}");
        }
        println!("{point}: hit, nothing lost");
    }
}
