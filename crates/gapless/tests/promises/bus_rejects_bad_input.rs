//! Bad input is an error of its own kind, and unrelated work continues.

use gapless::client::MessageType;
use gapless::cqrs::{
    AcceptedCommand, Aggregate, AggregateOptions, BusError, BusOptions, CommandBus, CommandError, CommandModel,
    Creation, Decision, TypeKey,
};
use gapless::host::Aggregates;
use gapless::message::Headers;
use gapless::prelude::*;
use gapless::{Message, Running};
use gapless_bus_checker::reported_outcomes::LABEL;
use gapless_bus_checker::{History, ReportedOutcome, ReportedOutcomes};
use gapless_testkit::folder::SmallDisk;
use gapless_testkit::random::Random;
use gapless_testkit::wait;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

const PATIENCE: Duration = wait::PATIENCE;

macro_rules! counter {
    ($module:ident, $command:meta, {$($commands:tt)*}, $event:meta, {$($events:tt)*}, $decide:expr) => {
        mod $module {
            use super::*;

            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
            #[$command]
            pub enum Command { $($commands)* }

            #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
            #[$event]
            pub enum Event { $($events)* }

            #[derive(Clone)]
            pub struct Counter;

            impl Aggregate for Counter {
                const NAME: &'static str = "counter";
                type Id = u64;
                type Command = Command;
                type Event = Event;
                type Refusal = ();

                fn new(_: &u64) -> Self {
                    Self
                }

                fn creation(_: &Command) -> Creation {
                    Creation::CreatesIfMissing
                }

                fn decide(&self, command: Command, decision: &mut Decision<'_, Event>) -> Result<(), ()> {
                    let decide: fn(Command) -> Event = $decide;
                    decision.emit(decide(command));
                    Ok(())
                }

                fn apply(&mut self, event: &Event) {
                    let _ = event;
                    #[allow(unreachable_patterns, reason = "not all have such an event")]
                    if format!("{event:?}").starts_with("Spoiled") {
                        panic!("nobody applies that");
                    }
                }
            }

            pub fn start(directory: &Path) -> (Running<Aggregates>, CommandBus) {
                super::start(directory, CommandModel::new().aggregate::<Counter>())
            }
        }
    };
}

counter!(first, message(name = "counter.Command"), { Count(u64), Panic, Spoil, Long(Vec<u8>) },
message(name = "counter.Event"), { Counted(u64), Spoiled, Lengthened(Vec<u8>) },
|command| match command {
    Command::Count(count) => Event::Counted(count),
    Command::Panic => panic!("nobody decides on that"),
    Command::Spoil => Event::Spoiled,
    Command::Long(bytes) => Event::Lengthened(bytes),
});
counter!(newer, message(name = "counter.Command", version = 2), {
    Count(u64), Panic, Spoil, Long(Vec<u8>), #[message(since = 2)] Double,
},
message(name = "counter.Event", version = 2), {
    Counted(u64), Spoiled, Lengthened(Vec<u8>), #[message(since = 2)] Doubled,
},
|command| match command {
    Command::Double => Event::Doubled,
    Command::Count(count) => Event::Counted(count),
    _ => Event::Lengthened(Vec::new()),
});
counter!(
    other,
    message(name = "counter.Command"),
    { Count(u64) },
    message(name = "counter.Event"),
    { Counted(String) },
    |Command::Count(count)| Event::Counted(count.to_string())
);
counter!(
    renamed,
    message(name = "counter.Command"),
    { Count(u64) },
    message(name = "counter.OtherEvent"),
    { Counted(u64) },
    |Command::Count(count)| Event::Counted(count)
);

fn start(directory: &Path, model: CommandModel) -> (Running<Aggregates>, CommandBus) {
    try_start(directory, model).unwrap_or_else(|refused| panic!("{refused}"))
}

fn try_start(directory: &Path, model: CommandModel) -> Result<(Running<Aggregates>, CommandBus), String> {
    let options = AggregateOptions { aggregates_max: 4, index_entries_max: 60, ..AggregateOptions::default() };
    let started = Host::in_directory(directory).aggregates(model).aggregate_options(options).start();
    let host = started.map_err(|error| error.to_string())?;
    let bus = host.bus(&BusOptions::default()).unwrap();
    Ok((host, bus))
}

fn count(bus: &CommandBus, id: u64) -> Result<u64, CommandError<()>> {
    bus.call(first::Counter::command(&id, &first::Command::Count(5))).map(|counted| counted.version)
}

fn is_quarantined(outcome: &Result<u64, CommandError<()>>, words: &str) -> bool {
    matches!(outcome, Err(CommandError::Quarantined(reason)) if reason.contains(words))
}

#[test]
fn unknown_events_quarantine_one() {
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = newer::start(directory.path());
    let doubled = bus.call(newer::Counter::command(&1, &newer::Command::Double)).unwrap();
    for id in [1, 2] {
        bus.call(newer::Counter::command(&id, &newer::Command::Count(5))).unwrap();
    }
    host.stop().unwrap();

    let (host, bus) = first::start(directory.path());
    let quarantined = count(&bus, 1);
    assert!(is_quarantined(&quarantined, &format!("event {}", doubled.position)), "{quarantined:?}");
    assert_eq!(count(&bus, 3), Ok(1), "others go on");
    let outcome = count(&bus, 2);
    assert!(outcome == Ok(2) || is_quarantined(&outcome, "version"), "{outcome:?}");
    let Err(CommandError::Failed(reason)) = bus.call(newer::Counter::command(&3, &newer::Command::Double)) else {
        panic!("a command of a newer version was decided");
    };
    assert!(reason.contains('2'), "{reason}");
    assert_eq!(count(&bus, 3), Ok(2));
    host.stop().unwrap();

    let refused = try_start(directory.path(), CommandModel::new().aggregate::<other::Counter>()).err().unwrap();
    assert!(refused.contains("counter.Event v1") && refused.contains("String"), "{refused}");
    for (start, words) in [(other::start as fn(&Path) -> _, "event"), (renamed::start, "its type")] {
        std::fs::remove_file(directory.path().join("types.json")).unwrap();
        let (host, bus) = start(directory.path());
        for id in [1, 2, 3] {
            let quarantined = count(&bus, id);
            assert!(is_quarantined(&quarantined, words), "{quarantined:?}");
        }
        host.stop().unwrap();
    }
    // No event is lost: a program that knows the events can read them.
    std::fs::remove_file(directory.path().join("types.json")).unwrap();
    let (host, bus) = newer::start(directory.path());
    let versions = [1, 2, 3].map(|id| bus.call(newer::Counter::command(&id, &newer::Command::Double)).unwrap().version);
    assert_eq!((versions[0], versions[2]), (3, 3));
    host.stop().unwrap();
    History::read(&directory.path().join("journal")).unwrap().check(1000).unwrap();
}

#[test]
fn panicking_decision_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let (host, bus) = first::start(directory.path());
        for step in 0..20 {
            for command in [first::Command::Panic, first::Command::Spoil] {
                let Err(CommandError::Failed(reason)) = bus.call(first::Counter::command(&(step % 7), &command)) else {
                    panic!("{command:?} was decided");
                };
                assert!(reason.contains("nobody"), "{reason}");
            }
            for id in 0..7 {
                assert_eq!(count(&bus, id), Ok(round * 20 + step + 1));
            }
        }
        host.stop().unwrap();
    }
}

/// Follows the layout that `gapless-cqrs` documents.
fn envelope(id: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    first::Command::Count(5).encode(&mut payload).unwrap();
    let mut bytes = vec![1, 0, 1, 0];
    bytes.extend_from_slice(&TypeKey::of("counter").0.to_le_bytes());
    bytes.extend_from_slice(&TypeKey::of("counter.Command").0.to_le_bytes());
    bytes.extend_from_slice(&[0, 0, 8, 0]);
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.extend_from_slice(&payload);
    bytes
}

#[test]
fn hostile_bytes_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let (host, bus) = first::start(directory.path());
    let mut hostile = host.polled_client(ClientOptions::default()).unwrap();
    let session = hostile.open_session(random_token(), 8).unwrap();
    let schema = TypeKey::of("counter.Command").0;
    let message = |schema| MessageType { schema, encoding: Encoding::Opaque };
    let right = hostile.call(session, message(schema), &envelope(7), PATIENCE).unwrap();
    assert_eq!(right.payload[1], 0, "the test writes commands as the bus does");
    let mut refused = 0;
    for round in 0..400 {
        let mut bytes = envelope(7);
        match random.below(5) {
            0 => bytes.truncate(random.below(bytes.len() as u64) as usize),
            1 => bytes = (0..random.below(300)).map(|_| random.number() as u8).collect(),
            2 => bytes[random.below(16) as usize] = random.number() as u8,
            3 => bytes.extend((0..random.below(5000)).map(|_| random.number() as u8)),
            _ => {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
        }
        let schema = if random.below(3) == 0 { random.number() as u32 } else { schema };
        match hostile.call(session, message(schema), &bytes, PATIENCE) {
            Ok(reply) => refused += u64::from(reply.payload[1] != 0),
            Err(ClientError::Refused { .. }) => refused += 1,
            Err(error) => panic!("{bytes:?} ended as {error}"),
        }
        if round % 20 == 0 {
            assert_eq!(count(&bus, 1000), Ok(round / 20 + 1));
        }
    }
    assert!(refused > 100, "{refused} were refused");
    host.stop().unwrap();
    let history = History::read(&directory.path().join("journal")).unwrap();
    history.check(1000).unwrap();
    assert_eq!(history.aggregates()[&(TypeKey::of("counter").0, 1000_u64.to_be_bytes().to_vec())].len(), 20);
}

#[test]
fn full_disk_stops_bus_without_loss() {
    let Some(disk) = SmallDisk::new(3000) else { return };
    let directory = disk.path.join("bus");
    let (mut outcomes, mut label) = (ReportedOutcomes::default(), 0);
    let long = first::Command::Long(vec![7; 20_000]);
    for (round, size) in [(0, None), (1, Some("size=9m"))] {
        size.iter().for_each(|size| disk.remount(size));
        let persistence = Persistence { segment_length_bytes: 512 << 10, ..Persistence::default() };
        let model = CommandModel::new().aggregate::<first::Counter>();
        let host = Host::in_directory(&directory).persistence(persistence).aggregates(model).start().unwrap();
        let bus = host.bus(&BusOptions::default()).unwrap();
        let mut call = |identifier: u128| {
            label += 1;
            outcomes.record_sent(label, Some(identifier));
            let headers = Headers::default().with(LABEL, label.to_le_bytes());
            let outcome = bus.call(first::Counter::command(&1, &long).identified_by(identifier).with(&headers));
            if let Ok(AcceptedCommand { position, events, version, .. }) = outcome {
                outcomes
                    .report(label, ReportedOutcome::Accepted { sequence: position.sequence, events, version })
                    .unwrap();
            }
            outcome
        };
        if round == 1 {
            assert!(call(u128::MAX).is_ok(), "there is room again");
            host.stop().unwrap();
            continue;
        }
        let error = (1..).find_map(|identifier| call(identifier).err()).unwrap();
        assert_eq!(error, CommandError::Bus(BusError::Disconnected));
        let said = wait::until_some("the host says why", || host.status().failure);
        assert!(said.to_lowercase().contains("no space"), "{said}");
        assert!(host.stop().is_err());
    }
    let history = History::read(&directory.join("journal")).unwrap();
    history.check(1_000_000).unwrap();
    let counts = outcomes.check(&history).unwrap();
    assert!(counts.accepted > 10, "{counts:?}");
}

fn index_files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(directory.join("index")).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    files
}

fn tear(file: &Path, is_in_use: bool, random: &mut Random) {
    let length = std::fs::metadata(file).unwrap().len();
    match random.below(if is_in_use { 1 } else { 4 }) {
        0 => {
            let open = std::fs::OpenOptions::new().read(true).write(true).open(file).unwrap();
            let (at, mut byte) = (random.below(length), [0]);
            open.read_exact_at(&mut byte, at).unwrap();
            open.write_all_at(&[byte[0] ^ 1 << random.below(8)], at).unwrap();
        }
        1 => std::fs::OpenOptions::new().write(true).open(file).unwrap().set_len(random.below(length)).unwrap(),
        2 => std::fs::remove_file(file).unwrap(),
        _ => std::fs::write(file, vec![random.number() as u8; length as usize]).unwrap(),
    }
}

#[test]
fn torn_index_is_rebuilt() {
    const COUNTERS: u64 = 30;
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let (mut version, mut torn) = (0, 0);
    for _ in 0..6 {
        let (host, bus) = first::start(directory.path());
        for _ in 0..4 {
            version += 1;
            for id in 0..COUNTERS {
                assert_eq!(count(&bus, id), Ok(version), "counter {id}");
            }
            for file in index_files(directory.path()) {
                // The file may be merged meanwhile.
                if random.below(3) == 0 && file.extension().is_none() && file.exists() {
                    tear(&file, true, &mut random);
                    torn += 1;
                }
            }
        }
        host.stop().unwrap();
        for file in index_files(directory.path()) {
            if random.below(2) == 0 {
                tear(&file, false, &mut random);
                torn += 1;
            }
        }
    }
    assert!(torn > 0);
}
