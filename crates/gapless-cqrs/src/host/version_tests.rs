//! Event versions: events of older programs are read, a new version begins at its mark, and an unknown event affects
//! only its aggregate.

use super::*;
use crate::aggregate::{Aggregate, Creation, Decision, OldEvent};
use crate::{CommandError, DerivedFiles, Draft, EventDirectory, Message, PendingOutcome, TypeKey};
use gapless_message::MessageError;
use gapless_testkit::random::{Random, printed_seed, rounds};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::Path;

#[derive(Clone, Serialize, Deserialize, Message)]
#[message(crate = crate)]
pub(crate) enum LampCommand {
    Switch(bool),
    Dim(u8),
    Ask,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate)]
pub(crate) struct Shines(u8);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate, name = "lamp")]
pub(crate) enum FirstEvent {
    On,
    Off,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate, name = "lamp", version = 2)]
pub(crate) enum SecondEvent {
    On,
    Off,
    #[message(since = 2)]
    Dimmed(u8),
}

/// Another name, and nothing in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate, name = "brightness")]
pub(crate) struct ThirdEvent(u8);

macro_rules! lamp {
    ($lamp:ident, $event:ident, $decided:expr, $shines:expr, { $($more:tt)* }) => {
        #[derive(Clone)]
        pub(crate) struct $lamp(u8);

        impl Aggregate for $lamp {
            const NAME: &'static str = "lamp";
            type Id = u64;
            type Command = LampCommand;
            type Event = $event;
            type Refusal = Shines;

            fn new(_: &u64) -> Self {
                Self(0)
            }

            fn creation(_: &LampCommand) -> Creation {
                Creation::CreatesIfMissing
            }

            fn decide(&self, command: LampCommand, decision: &mut Decision<'_, $event>) -> Result<(), Shines> {
                let event: Option<$event> = ($decided)(command);
                decision.emit(event.ok_or(Shines(self.0))?);
                Ok(())
            }

            fn apply(&mut self, event: &$event) {
                self.0 = ($shines)(event);
            }

            $($more)*
        }
    };
}

lamp!(
    FirstLamp,
    FirstEvent,
    |command| match command {
        LampCommand::Switch(true) => Some(FirstEvent::On),
        LampCommand::Switch(false) => Some(FirstEvent::Off),
        LampCommand::Dim(_) | LampCommand::Ask => None,
    },
    |event: &FirstEvent| if *event == FirstEvent::On { 100 } else { 0 },
    {}
);

lamp!(
    SecondLamp,
    SecondEvent,
    |command| match command {
        LampCommand::Switch(true) => Some(SecondEvent::On),
        LampCommand::Switch(false) => Some(SecondEvent::Off),
        LampCommand::Dim(percent) => Some(SecondEvent::Dimmed(percent)),
        LampCommand::Ask => None,
    },
    |event: &SecondEvent| match event {
        SecondEvent::On => 100,
        SecondEvent::Off => 0,
        SecondEvent::Dimmed(percent) => *percent,
    },
    {
        fn event_version(version: u32) -> u32 {
            version
        }
    }
);

lamp!(
    ThirdLamp,
    ThirdEvent,
    |command| match command {
        LampCommand::Switch(is_on) => Some(ThirdEvent(u8::from(is_on) * 100)),
        LampCommand::Dim(percent) => Some(ThirdEvent(percent)),
        LampCommand::Ask => None,
    },
    |event: &ThirdEvent| event.0,
    {
        fn upcast(old: &OldEvent<'_>) -> Result<Option<ThirdEvent>, MessageError> {
            Ok(match old.decode::<SecondEvent>()? {
                SecondEvent::On => Some(ThirdEvent(100)),
                SecondEvent::Off => None,
                SecondEvent::Dimmed(percent) => Some(ThirdEvent(percent)),
            })
        }
    }
);

/// The author forgot to raise the version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Message)]
#[message(crate = crate, name = "lamp")]
pub(crate) struct CarelessEvent(u64, u64);

lamp!(
    CarelessLamp,
    CarelessEvent,
    |command| match command {
        LampCommand::Switch(is_on) => Some(CarelessEvent(u64::from(is_on) * 100, 0)),
        LampCommand::Dim(_) | LampCommand::Ask => None,
    },
    |event: &CarelessEvent| event.0 as u8,
    {}
);

fn start<A: Aggregate>(directory: &Path, newest: u32) -> Result<(CommandHost, CommandBus), HostError> {
    let model = CommandModel::new().aggregate::<A>().versions(1..=newest);
    let stream = ServiceHostOptions::in_directory(directory);
    let host = CommandHost::start(model, AggregateOptions::default(), stream)?;
    let bus = host.bus(&BusOptions::default())?;
    Ok((host, bus))
}

pub(crate) fn lamp(id: u64, command: &LampCommand) -> Draft<'_, LampCommand, (), Shines> {
    FirstLamp::command(&id, command)
}

fn shines(bus: &CommandBus, id: u64) -> u8 {
    match bus.call(lamp(id, &LampCommand::Ask)) {
        Err(CommandError::Refused(Shines(percent))) => percent,
        other => panic!("{other:?}"),
    }
}

fn versions(host: &CommandHost) -> Vec<u32> {
    let (mut reader, mut versions) = (host.events(Position::default()), Vec::new());
    while let Some(mut transaction) = reader.next_transaction().unwrap() {
        while let Some(event) = transaction.next_event().unwrap() {
            versions.push(event.version);
        }
    }
    versions
}

fn source_of(started: Result<(CommandHost, CommandBus), HostError>) -> std::io::Error {
    match started.map(drop) {
        Err(HostError::Engine(EngineError::System { source, .. })) => source,
        other => panic!("{other:?}"),
    }
}

#[test]
fn newer_files_are_refused_or_rebuilt() {
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start::<FirstLamp>(directory.path(), 1).unwrap();
    bus.call(lamp(1, &LampCommand::Switch(true))).unwrap();
    let second = start::<FirstLamp>(directory.path(), 1).map(drop).unwrap_err().to_string();
    assert!(second.contains("is in use by process") && second.contains("stop it"), "{second}");
    assert_eq!(shines(&bus, 1), 100);
    host.stop().unwrap();

    let types = directory.path().join(TypeNames::FILE_NAME);
    let known = std::fs::read_to_string(&types).unwrap();
    std::fs::write(&types, known.replacen("\"format\": 1", "\"format\": 2", 1)).unwrap();
    let error = source_of(start::<FirstLamp>(directory.path(), 1));
    assert!(matches!(TypesError::of(&error), Some(TypesError::Newer { found: 2, known: 1, .. })), "{error}");
    assert!(error.to_string().contains("Start the newer program; or move the file away"), "{error}");
    std::fs::write(&types, known).unwrap();

    let index = directory.path().join("index");
    let file = std::fs::read_dir(&index).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let format_at = bytes.len() - 128 + 7;
    assert_eq!(std::mem::replace(&mut bytes[format_at], 2), 1);
    std::fs::write(&file, bytes).unwrap();
    let found = EventDirectory::open(directory.path()).unwrap();
    let unusable = DerivedFiles::read(&found).unwrap().unwrap().unusable;
    assert_eq!(unusable, [(file, "it has format 2, and this program reads 1".to_owned())]);
    let (host, bus) = start::<FirstLamp>(directory.path(), 1).unwrap();
    assert_eq!(shines(&bus, 1), 100);
    host.stop().unwrap();

    let journal = std::fs::read_dir(directory.path().join("journal")).unwrap();
    let segment = journal
        .map(|entry| entry.unwrap().path())
        .find(|path| std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"GAPLSEGM")));
    let segment = segment.unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[8] += 1;
    std::fs::write(&segment, bytes).unwrap();
    let newer = start::<FirstLamp>(directory.path(), 1).map(drop).unwrap_err().to_string();
    assert!(newer.contains("version 2") || newer.contains("damaged"), "{newer}");
}

#[test]
fn event_version_begins_at_its_mark() {
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start::<FirstLamp>(directory.path(), 1).unwrap();
    bus.call(lamp(1, &LampCommand::Switch(true))).unwrap();
    host.stop().unwrap();

    let (host, bus) = start::<SecondLamp>(directory.path(), 2).unwrap();
    assert_eq!(shines(&bus, 1), 100);
    bus.call(lamp(2, &LampCommand::Switch(true))).unwrap();
    let failed = bus.call(lamp(2, &LampCommand::Dim(30)));
    assert!(matches!(&failed, Err(CommandError::Failed(reason)) if reason.contains("lamp")), "{failed:?}");
    assert_eq!((shines(&bus, 2), versions(&host)), (100, vec![1, 1]));
    let lacking = host.service().begin_version(3);
    assert!(matches!(lacking, Err(EngineError::Version { version: 3, last: 2, .. })), "{lacking:?}");
    host.service().begin_version(2).unwrap();
    gapless_testkit::wait::until("the new version has begun", || bus.call(lamp(2, &LampCommand::Dim(30))).is_ok());
    bus.call(lamp(1, &LampCommand::Switch(false))).unwrap();
    assert_eq!((shines(&bus, 2), versions(&host)), (30, vec![1, 1, 2, 2]));
    host.stop().unwrap();

    let old = start::<FirstLamp>(directory.path(), 1).map(drop);
    assert!(matches!(old, Err(HostError::Engine(EngineError::Version { version: 2, last: 1, .. }))), "{old:?}");
    let (host, bus) = start::<SecondLamp>(directory.path(), 2).unwrap();
    bus.call(lamp(3, &LampCommand::Dim(7))).unwrap();
    assert_eq!([1, 2, 3].map(|id| shines(&bus, id)), [0, 30, 7]);
    host.stop().unwrap();
}

#[test]
fn old_events_are_upcast() {
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start::<SecondLamp>(directory.path(), 2).unwrap();
    bus.call(lamp(1, &LampCommand::Switch(true))).unwrap();
    bus.call(lamp(1, &LampCommand::Switch(false))).unwrap();
    host.service().begin_version(2).unwrap();
    gapless_testkit::wait::until("the new version has begun", || bus.call(lamp(2, &LampCommand::Dim(30))).is_ok());
    host.stop().unwrap();

    let (host, bus) = start::<FirstLamp>(directory.path(), 2).unwrap();
    let quarantined = bus.call(lamp(2, &LampCommand::Switch(true)));
    let is_told = |reason: &str| reason.contains("version 2") && reason.contains("event ");
    assert!(matches!(&quarantined, Err(CommandError::Quarantined(reason)) if is_told(reason)), "{quarantined:?}");
    assert_eq!((shines(&bus, 1), bus.call(lamp(3, &LampCommand::Switch(true))).unwrap().version), (0, 1));
    assert_eq!((host.counters().quarantined, host.counters().aggregates_quarantined), (1, 1));
    host.stop().unwrap();

    // The layout may never have been recorded.
    let types = directory.path().join(TypeNames::FILE_NAME);
    let error = source_of(start::<CarelessLamp>(directory.path(), 2));
    let Some(TypesError::LayoutChanged { name: "lamp", version: 1, before, now, .. }) = TypesError::of(&error) else {
        panic!("{error}");
    };
    assert_eq!(before, "lamp v1 enum {On, Off}");
    assert!(now.starts_with("`lamp v1 (u64, u64)` in this program"), "{now}");
    let known = std::fs::read(&types).unwrap();
    std::fs::remove_file(&types).unwrap();
    let (host, bus) = start::<CarelessLamp>(directory.path(), 2).unwrap();
    let quarantined = bus.call(lamp(1, &LampCommand::Ask));
    assert!(
        matches!(&quarantined, Err(CommandError::Quarantined(reason)) if reason.contains("event ")),
        "{quarantined:?}"
    );
    assert_eq!(shines(&bus, 4), 0);
    host.stop().unwrap();
    std::fs::write(types, known).unwrap();

    let (host, bus) = start::<ThirdLamp>(directory.path(), 2).unwrap();
    let dimmed = bus.call(lamp(1, &LampCommand::Dim(5)).expecting_version(2)).unwrap();
    assert_eq!((dimmed.version, shines(&bus, 2), shines(&bus, 3)), (3, 30, 100));
    let (mut reader, mut read) = (host.events(Position::default()), Vec::new());
    while let Some(mut transaction) = reader.next_transaction().unwrap() {
        while let Some(event) = transaction.next_event().unwrap() {
            read.push(event.decode::<ThirdLamp>().unwrap().map(|event| event.0));
        }
    }
    assert_eq!(read, [Some(100), None, Some(30), Some(100), Some(5)]);
    host.stop().unwrap();
}

/// Two names with the same key: their FNV-1a hashes of 32 bits are equal.
#[derive(Serialize, Deserialize, Message)]
#[message(crate = crate, name = "costarring")]
struct Costarring;

#[derive(Serialize, Deserialize, Message)]
#[message(crate = crate, name = "liquid")]
struct Liquid;

#[derive(Clone)]
struct Collides;

impl Aggregate for Collides {
    const NAME: &'static str = "collides";
    type Id = u64;
    type Command = Costarring;
    type Event = Liquid;
    type Refusal = ();

    fn new(_: &u64) -> Self {
        Self
    }

    fn decide(&self, _: Costarring, _: &mut Decision<'_, Liquid>) -> Result<(), ()> {
        Ok(())
    }

    fn apply(&mut self, _: &Liquid) {}
}

#[test]
fn colliding_names_do_not_start() {
    assert_eq!(TypeKey::of("costarring"), TypeKey::of("liquid"));
    let refused = |model: CommandModel| match bus_parts(model, AggregateOptions::default()) {
        Err(error) => error,
        Ok(_) => panic!("it was taken"),
    };
    let same = ModelError::SameKey("costarring", "liquid");
    assert_eq!(refused(CommandModel::new().aggregate::<Collides>()), same);
    assert!(same.to_string().contains("\"costarring\" and \"liquid\""));
    let twice = CommandModel::new().aggregate::<FirstLamp>().aggregate::<FirstLamp>();
    assert_eq!(refused(twice), ModelError::Twice("lamp"));
    for (first, last) in [(0, 1), (2, 1), (1, 65_536)] {
        let versions = CommandModel::new().aggregate::<FirstLamp>().versions(first..=last);
        assert_eq!(refused(versions), ModelError::Versions { first, last });
    }
    let beyond = CommandModel::new().aggregate::<SecondLamp>().versions(1..=3);
    assert_eq!(refused(beyond), ModelError::Version { name: "lamp", version: 3 });
}

const LAMPS: u64 = 60;
const APART: u64 = 40;

/// Gives some lamps events that the first program cannot read.
pub(crate) fn write_unreadable_events(bus: &CommandBus, begin_second: impl FnOnce()) {
    for id in 0..LAMPS {
        bus.call(lamp(id, &LampCommand::Switch(true))).unwrap();
    }
    begin_second();
    gapless_testkit::wait::until("the new version has begun", || bus.call(lamp(0, &LampCommand::Dim(30))).is_ok());
    for id in 1..APART {
        bus.call(lamp(id, &LampCommand::Dim(30))).unwrap();
    }
}

pub(crate) fn model_that_quarantines() -> CommandModel {
    CommandModel::new().aggregate::<FirstLamp>().versions(1..=2)
}

/// Each command must have its outcome, and those of a lamp must be decided in order.
pub(crate) fn check_every_outcome(
    bus: &CommandBus,
    (commands, in_flight_max): (u64, usize),
    mut random: Random,
    case: &str,
) {
    let (mut pending, mut versions) = (VecDeque::new(), [0; LAMPS as usize]);
    let mut take = |(id, pending): (u64, PendingOutcome<(), Shines>), sent| match pending
        .wait_within(gapless_testkit::wait::PATIENCE)
    {
        Err(CommandError::Quarantined(_)) => assert!(id < APART, "{id}"),
        Ok(accepted) => {
            let before = std::mem::replace(&mut versions[id as usize], accepted.version);
            assert!(id >= APART && before < accepted.version, "lamp {id}: {} after {before}", accepted.version);
        }
        Err(error) => panic!("lamp {id}, after {sent} others, {case}: {error}"),
    };
    for sent in 0..commands {
        let most = 1 + random.below(LAMPS);
        let id = random.below(most);
        let is_on = random.below(2) == 0;
        pending.push_back((id, bus.send(lamp(id, &LampCommand::Switch(is_on)))));
        if pending.len() >= in_flight_max {
            take(pending.pop_front().unwrap(), sent);
        }
    }
    pending.into_iter().for_each(|one| take(one, u64::MAX));
}

#[test]
fn quarantine_blocks_no_host() {
    let seed = printed_seed();
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start::<SecondLamp>(directory.path(), 2).unwrap();
    write_unreadable_events(&bus, || host.service().begin_version(2).unwrap());
    host.stop().unwrap();

    for (aggregates_max, in_flight_max, handles) in
        [(2, 128, 1), (8, 128, 2), (8, 1024, 1), (30, 256, 2), (2, 64, 3), (100, 4096, 1)]
    {
        let options = AggregateOptions { aggregates_max, ..AggregateOptions::default() };
        let stream = ServiceHostOptions::in_directory(directory.path());
        let host = CommandHost::start(model_that_quarantines(), options, stream).unwrap();
        let case = format!("{aggregates_max} in memory, {in_flight_max} in flight, {handles} handles");
        std::thread::scope(|scope| {
            for handle in 0..handles {
                let (bus, case) = (host.bus(&BusOptions { in_flight_max }).unwrap(), &case);
                let random = Random::of(seed, &format!("{case}, {handle}"));
                scope.spawn(move || check_every_outcome(&bus, (rounds(20_000, 3_000), in_flight_max), random, case));
            }
        });
        host.stop().unwrap();
    }
}
