//! Disturbed deletions: a rebuilt index, a stream that goes on without events, foreign or damaged files next to the
//! journal.

use super::deletion_tests::{Expected, first_held, model, start, stream, try_start, wait_for_deleted_segments};
use super::*;
use crate::samples::{Account, AccountCommand, AccountEvent, AccountRefusal};
use crate::store::BASE_FOLDER;
use crate::{Aggregate as _, CommandError, DeletedEvents, PolledBus, ReadError};
use gapless_testkit::folder::copy;
use gapless_testkit::random::{Random, rounds};
use gapless_transport::Tier;
use std::collections::BTreeMap;
use std::time::Duration;

fn deposit(bus: &mut PolledBus, balances: &mut BTreeMap<u64, u64>, commands: u64) {
    for number in 0..commands {
        let account = number % 50;
        bus.call(Account::command(&account, &AccountCommand::Many(30))).unwrap();
        *balances.entry(account).or_default() += 30;
    }
}

#[test]
fn direct_bus_deletes_events() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let options = AggregateOptions { aggregates_max: 20, index_entries_max: 2_000, ..AggregateOptions::default() };
    let begin = || PolledBus::start(model(), options.clone(), stream(path), &BusOptions::default()).unwrap();
    let (mut bus, mut balances) = (begin(), BTreeMap::new());
    deposit(&mut bus, &mut balances, 1_000);
    let middle = bus.service().released_sequence() / 2;
    let reader = bus.events(Position::default());
    let delete = |bus: &mut PolledBus, before: u64| loop {
        match bus.delete_events_before(before) {
            Err(DeletionError::Read(ReadError::IndexBehind { .. })) => _ = bus.turn_or_sleep(Duration::from_millis(1)),
            other => break other,
        }
    };
    assert!(matches!(delete(&mut bus, middle), Err(DeletionError::Reader { .. })));
    drop(reader);
    let tickets: Vec<_> =
        (0..50).map(|account| bus.send(Account::command(&account, &AccountCommand::Deposit(1)))).collect();
    let report = delete(&mut bus, middle).unwrap();
    assert!(report.before > 1 && report.before <= middle && report.aggregates == 50, "{report:?}");
    for (account, ticket) in (0..).zip(tickets) {
        bus.wait(ticket).unwrap();
        *balances.get_mut(&account).unwrap() += 1;
    }
    wait_for_deleted_segments(path, &report);
    deposit(&mut bus, &mut balances, 100);
    bus.stop().unwrap();
    let overdrawn = |balance: &u64| Err(CommandError::Refused(AccountRefusal::Overdrawn { balance: *balance }));
    let mut bus = begin();
    for (account, balance) in &balances {
        assert_eq!(bus.call(Account::command(account, &AccountCommand::Withdraw(u64::MAX))), overdrawn(balance));
    }
    assert!(matches!(delete(&mut bus, middle), Err(DeletionError::NothingBefore { .. })));
    bus.stop().unwrap();
    let (host, bus) = start(path, 20);
    for (account, balance) in &balances {
        assert_eq!(bus.call(Account::command(account, &AccountCommand::Withdraw(u64::MAX))), overdrawn(balance));
    }
    host.stop().unwrap();
}

#[test]
fn index_is_rebuilt_from_rest() {
    let (directory, before) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = directory.path();
    let (host, bus) = start(path, 8);
    let mut expected = Expected::default();
    for _ in 0..4 {
        expected.decide(&bus, 800, &mut Random::seeded());
    }
    host.stop().unwrap();
    copy(path, before.path());
    let (host, _) = start(path, 8);
    let report = host.delete_events_before(u64::MAX).unwrap();
    host.stop().unwrap();
    std::fs::create_dir(before.path().join(BASE_FOLDER)).unwrap();
    std::fs::copy(&report.file, before.path().join(BASE_FOLDER).join(report.file.file_name().unwrap())).unwrap();
    std::fs::remove_dir_all(before.path().join("index")).unwrap();
    assert_eq!(first_held(before.path()), 1);
    let (host, bus) = start(before.path(), 8);
    wait_for_deleted_segments(before.path(), &report);
    expected.check(&bus);
    host.stop().unwrap();
}

#[test]
fn eventless_tail_allows_deletion() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path, 8);
    bus.call(Account::command(&7, &AccountCommand::Many(70))).unwrap();
    let refuse = || {
        let sent: Vec<_> =
            (0..4_000).map(|_| bus.send(Account::command(&7, &AccountCommand::Withdraw(u64::MAX)))).collect();
        sent.into_iter().for_each(|pending| assert!(pending.wait().is_err()));
    };
    refuse();
    let report = host.delete_events_before(u64::MAX).unwrap();
    wait_for_deleted_segments(path, &report);
    refuse();
    let report = host.delete_events_before(u64::MAX).unwrap();
    wait_for_deleted_segments(path, &report);
    assert_eq!(report.aggregates, 1);
    host.stop().unwrap();
    let (host, bus) = start(path, 8);
    let refused = bus.call(Account::command(&7, &AccountCommand::Withdraw(100)).expecting_version(70));
    assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance: 70 })));
    host.stop().unwrap();
}

#[test]
fn tier_journal_syncs_before_deletion() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut stream = stream(path);
    stream.tier = Tier::Journal;
    let options = AggregateOptions { aggregates_max: 8, index_entries_max: 2_000, ..AggregateOptions::default() };
    let host = CommandHost::start(model(), options.clone(), stream.clone()).unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    let mut expected = Expected::default();
    expected.decide(&bus, 800, &mut Random::seeded());
    let report = host.delete_events_before(u64::MAX).unwrap();
    wait_for_deleted_segments(path, &report);
    expected.check(&bus);
    host.stop().unwrap();
    let mut bus = PolledBus::start(model(), options, stream, &BusOptions::default()).unwrap();
    for (id, (balance, version)) in &expected.0 {
        let refused = bus.call(Account::command(id, &AccountCommand::Withdraw(u64::MAX)).expecting_version(*version));
        assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance: *balance })));
    }
    bus.stop().unwrap();
    // Identifiers of commands are kept in a snapshot of the service, which a start needs.
    std::fs::rename(path.join("snapshots"), path.join("away")).unwrap();
    let refused = try_start(path, model(), 8).err().unwrap().to_string();
    assert!(refused.contains("no snapshot covers that"), "{refused}");
}

#[test]
fn outside_check_agrees_with_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path, 8);
    let mut expected = Expected::default();
    expected.decide(&bus, 800, &mut Random::seeded());
    let first = host.delete_events_before(u64::MAX).unwrap();
    wait_for_deleted_segments(path, &first);
    let old = std::fs::read(&first.file).unwrap();
    expected.decide(&bus, 800, &mut Random::seeded());
    let second = host.delete_events_before(u64::MAX).unwrap();
    wait_for_deleted_segments(path, &second);
    host.stop().unwrap();
    let whole = std::fs::read(&second.file).unwrap();
    assert_eq!(DeletedEvents::check(path).unwrap().unwrap().before, second.before);
    let is_refused = |what: &str| {
        let error = DeletedEvents::check(path).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
        assert!(matches!(try_start(path, model(), 8), Err(HostError::Base(_))));
    };
    std::fs::remove_file(&second.file).unwrap();
    is_refused("is missing");
    std::fs::write(&first.file, old).unwrap();
    is_refused("ends before sequence");
    std::fs::remove_file(&first.file).unwrap();
    let other = tempfile::tempdir().unwrap();
    let (host, bus) = start(other.path(), 8);
    Expected::default().decide(&bus, 1_600, &mut Random::seeded());
    let foreign = host.delete_events_before(u64::MAX).unwrap();
    host.stop().unwrap();
    std::fs::copy(&foreign.file, path.join(BASE_FOLDER).join(foreign.file.file_name().unwrap())).unwrap();
    is_refused("of another stream");
    std::fs::remove_dir_all(path.join(BASE_FOLDER)).unwrap();
    std::fs::create_dir(path.join(BASE_FOLDER)).unwrap();
    std::fs::write(&second.file, whole).unwrap();
    let (host, bus) = start(path, 8);
    expected.check(&bus);
    host.stop().unwrap();
}

#[test]
fn long_transactions_stay_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut random = Random::seeded();
    let mut expected = std::collections::BTreeMap::<u64, u64>::new();
    let mut lives = 0;
    // Sequences within the first segment delete nothing.
    while lives < rounds(4, 2) || first_held(path) == 1 {
        lives += 1;
        assert!(lives < 20, "nothing is deleted");
        let (host, bus) = start(path, 1);
        for _ in 0..4 {
            let mut sent = Vec::new();
            for _ in 0..12 {
                let (id, many) = (random.below(5), 1 + random.below(1_500));
                *expected.entry(id).or_default() += many;
                sent.push(bus.send(Account::command(&id, &AccountCommand::Many(many as u32))));
            }
            sent.into_iter().for_each(|pending| assert!(pending.wait().is_ok()));
            let last = host.service().released_sequence();
            match host.delete_events_before(last / 2 + random.below(last / 2)) {
                Ok(report) => wait_for_deleted_segments(path, &report),
                Err(error) => assert!(matches!(error, DeletionError::NothingBefore { .. }), "{error}"),
            }
            for (id, events) in &expected {
                let command = Account::command(id, &AccountCommand::Withdraw(u64::MAX)).expecting_version(*events);
                let refused = bus.call(command);
                assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance: *events })), "{id}");
            }
        }
        host.stop().unwrap();
        if random.below(2) == 0 {
            std::fs::remove_dir_all(path.join("index")).unwrap();
        }
        if path.join("aggregates").is_dir() && random.below(2) == 0 {
            std::fs::remove_dir_all(path.join("aggregates")).unwrap();
        }
    }
}

#[test]
fn damaged_index_loses_no_event() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path, 4);
    let mut random = Random::seeded();
    let rounds = rounds(30, 10);
    for round in 1..=rounds {
        let sent: Vec<_> = (0..25).map(|id| (id, bus.send(Account::command(&id, &AccountCommand::Many(40))))).collect();
        for (id, pending) in sent {
            assert_eq!(pending.wait().unwrap().version, 40 * round, "{id}");
        }
        for run in std::fs::read_dir(path.join("index")).unwrap() {
            let run = run.unwrap().path();
            if random.below(3) == 0
                && let Ok(mut bytes) = std::fs::read(&run)
            {
                bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
                if let Ok(file) = std::fs::OpenOptions::new().write(true).open(&run) {
                    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
                }
            }
        }
        match host.delete_events_before(u64::MAX) {
            Ok(_) | Err(DeletionError::NothingBefore { .. } | DeletionError::Read(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    host.stop().unwrap();
    let (host, bus) = start(path, 4);
    let balance = 40 * rounds;
    for id in 0..25 {
        let refused = bus.call(Account::command(&id, &AccountCommand::Withdraw(u64::MAX)).expecting_version(balance));
        assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance })), "{id}");
    }
    host.stop().unwrap();
}

#[test]
fn reader_survives_index_rebuild() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path, 8);
    let sent: Vec<_> = (0..600).map(|id| bus.send(Account::command(&id, &AccountCommand::Many(40)))).collect();
    sent.into_iter().for_each(|pending| assert!(pending.wait().is_ok()));
    host.stop().unwrap();
    let (host, _) = start(path, 8);
    let mut found = host.found_events(EventFilter::event::<AccountEvent>(), Position::default());
    // More events than a page has.
    assert!(found.next_event().unwrap().is_some());
    for run in std::fs::read_dir(path.join("index")).unwrap() {
        let run = run.unwrap().path();
        let Ok(mut bytes) = std::fs::read(&run) else { continue };
        bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
        let Ok(file) = std::fs::OpenOptions::new().write(true).open(&run) else { continue };
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
    }
    let (mut read, mut errors) = (1, 0);
    loop {
        match found.next_event() {
            Ok(Some(_)) => read += 1,
            Ok(None) => break,
            Err(_) => errors += 1,
        }
    }
    assert_eq!(read, 600 * 40, "{errors} errors on the way");
    host.stop().unwrap();
}

mod named {
    use super::*;
    use crate::{Creation, Decision, Message, SnapshotPolicy};
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize, Message)]
    #[message(crate = crate)]
    struct Add(u32);
    #[derive(Serialize, Deserialize, Message)]
    #[message(crate = crate)]
    struct Added(Vec<u8>);
    #[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
    #[message(crate = crate)]
    struct No;
    #[derive(Clone, Serialize, Deserialize, Message)]
    #[message(crate = crate)]
    struct Named(Vec<u8>);

    impl crate::Aggregate for Named {
        const NAME: &'static str = "named";
        type Id = String;
        type Command = Add;
        type Event = Added;
        type Refusal = No;

        fn new(_: &String) -> Self {
            Self(Vec::new())
        }

        fn creation(_: &Add) -> Creation {
            Creation::CreatesIfMissing
        }

        fn decide(&self, Add(count): Add, decision: &mut Decision<'_, Added>) -> Result<(), No> {
            decision.emit(Added(vec![7; count as usize]));
            Ok(())
        }

        fn apply(&mut self, Added(bytes): &Added) {
            self.0.extend(bytes);
        }
    }

    #[test]
    fn base_has_long_ids_and_large_states() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let start = || {
            let model = || CommandModel::new().aggregate_with_snapshots::<Named>(SnapshotPolicy::default());
            let host = try_start(path, model(), 3).unwrap();
            let bus = host.bus(&BusOptions::default()).unwrap();
            (host, bus)
        };
        let longest = crate::identity::ID_LENGTH_MAX;
        let ids: Vec<String> = [0, 1, 2, 3, 8, 40, longest - 1, longest].map(|length| "x".repeat(length)).into();
        let mut version = 0;
        for _ in 0..rounds(3, 2) {
            let (host, bus) = start();
            for _ in 0..30 {
                version += 1;
                for id in &ids {
                    let sent = bus.call(Named::command(id, &Add(900)).expecting_version(version - 1));
                    assert_eq!(sent.unwrap().version, version, "{}", id.len());
                }
            }
            let report = host.delete_events_before(u64::MAX).unwrap();
            assert_eq!(report.aggregates, ids.len() as u64);
            wait_for_deleted_segments(path, &report);
            host.stop().unwrap();
            std::fs::remove_dir_all(path.join("index")).unwrap();
            if path.join("aggregates").is_dir() {
                std::fs::remove_dir_all(path.join("aggregates")).unwrap();
            }
        }
    }
}
