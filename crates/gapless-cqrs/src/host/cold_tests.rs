//! The same outcomes with few aggregates in memory, across restarts, and with a lost or damaged index.

use super::*;
use crate::aggregate::SnapshotFormat;
use crate::samples::{Account, AccountCommand, AccountRefusal, Transfer, TransferHandler};
use crate::snapshots::{Snapshot, SnapshotFiles, SnapshotKey};
use crate::{Aggregate as _, CommandError, CommandHandler as _, Message as _, SnapshotPolicy, TypeKey};
use gapless_testkit::limits::{is_alone, leave_files};
use gapless_testkit::random::{Random, rounds};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const ACCOUNTS: u64 = 100;

fn start(directory: &Path, aggregates_max: usize) -> (CommandHost, CommandBus) {
    let policy = SnapshotPolicy { events: 8, load_time: Duration::from_secs(60) };
    let model = CommandModel::new().aggregate_with_snapshots::<Account>(policy).handler(TransferHandler);
    let options = AggregateOptions { aggregates_max, ..AggregateOptions::default() };
    let host = CommandHost::start(model, options, ServiceHostOptions::in_directory(directory)).unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    (host, bus)
}

#[derive(Default)]
struct Expected(BTreeMap<u64, (u64, u64)>);

impl Expected {
    fn decide(&mut self, bus: &CommandBus, random: &mut Random) {
        let id = random.below(ACCOUNTS);
        let amount = 1 + random.below(50);
        match random.below(4) {
            0 => match bus.call(Account::command(&id, &AccountCommand::Open)) {
                Ok(opened) => {
                    assert_eq!(opened.version, 1);
                    assert!(self.0.insert(id, (0, 1)).is_none(), "{id} was open");
                }
                Err(error) => assert!(error == CommandError::AlreadyExists && self.0.contains_key(&id), "{error}"),
            },
            1 => match (bus.call(Account::command(&id, &AccountCommand::Deposit(amount))), self.0.get_mut(&id)) {
                (Ok(deposited), Some((balance, version))) => {
                    (*balance, *version) = (*balance + amount, *version + 1);
                    assert_eq!(deposited.version, *version);
                }
                (outcome, known) => assert!(outcome == Err(CommandError::NotFound) && known.is_none(), "{outcome:?}"),
            },
            2 => match (bus.call(Account::command(&id, &AccountCommand::Withdraw(amount))), self.0.get_mut(&id)) {
                (Ok(withdrawn), Some((balance, version))) => {
                    (*balance, *version) = (*balance - amount, *version + 1);
                    assert_eq!(withdrawn.version, *version);
                }
                (Err(CommandError::Refused(AccountRefusal::Overdrawn { balance })), Some((known, _))) => {
                    assert!(balance == *known && balance < amount);
                }
                (outcome, known) => assert!(outcome == Err(CommandError::NotFound) && known.is_none(), "{outcome:?}"),
            },
            _ => {
                let to = random.below(ACCOUNTS);
                let outcome = bus.call(TransferHandler::command(&Transfer { from: id, to, amount }));
                let has_enough = self.0.get(&id).is_some_and(|(balance, _)| *balance >= amount);
                assert_eq!(outcome.is_ok(), has_enough && self.0.contains_key(&to), "{id} to {to}: {outcome:?}");
                if outcome.is_ok() {
                    for (id, is_credit) in [(id, false), (to, true)] {
                        let (balance, version) = self.0.get_mut(&id).unwrap();
                        *balance = if is_credit { *balance + amount } else { *balance - amount };
                        *version += 1;
                    }
                }
            }
        }
    }

    fn check(&self, bus: &CommandBus) {
        for (id, (balance, _)) in &self.0 {
            let refused = bus.call(Account::command(id, &AccountCommand::Withdraw(u64::MAX)));
            assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance: *balance })), "{id}");
        }
    }
}

#[test]
fn small_cache_decides_the_same() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let index = directory.path().join("index");
    let mut expected = Expected::default();
    for round in 0..6 {
        let (host, bus) = start(directory.path(), 10);
        for _ in 0..rounds(400, 100) {
            expected.decide(&bus, &mut random);
        }
        expected.check(&bus);
        match round {
            0 | 3 => drop(host),
            _ => _ = host.stop().unwrap(),
        }
        if round == 2 {
            std::fs::remove_dir_all(&index).unwrap();
        }
    }
    assert!(index.is_dir());
}

#[test]
fn order_holds_while_aggregate_loads() {
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start(directory.path(), 10);
    for id in 0..20_u64 {
        bus.call(Account::command(&id, &AccountCommand::Open)).unwrap();
    }
    host.stop().unwrap();
    for round in 0..5 {
        let (host, bus) = start(directory.path(), 10);
        // More than one session takes.
        let pending: Vec<_> = (0..300_u64)
            .flat_map(|_| [1, 2, 3])
            .map(|id| (id, bus.send(Account::command(&id, &AccountCommand::Deposit(1)))))
            .collect();
        let mut versions = BTreeMap::from([1, 2, 3].map(|id: u64| (id, 1 + 300 * round)));
        for (id, pending) in pending {
            let version = versions.get_mut(&id).unwrap();
            *version += 1;
            assert_eq!(pending.wait().unwrap().version, *version, "of {id}, in round {round}");
        }
        host.stop().unwrap();
    }
}

#[test]
fn cold_loads_wait_for_descriptors() {
    if !is_alone("host::cold_tests::cold_loads_wait_for_descriptors") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start(directory.path(), 10);
    for id in 0..20_u64 {
        bus.call(Account::command(&id, &AccountCommand::Open)).unwrap();
    }
    host.stop().unwrap();
    let (host, bus) = start(directory.path(), 10);
    // The window is empty, so older events are read from the journal.
    let few = leave_files(0);
    let mut pending: Vec<_> =
        (0..20_u64).map(|id| bus.send(Account::command(&id, &AccountCommand::Deposit(1)))).collect();
    let until = Instant::now() + Duration::from_millis(300);
    while Instant::now() < until {
        let waiting = pending.into_iter().map(|pending| pending.try_wait().expect_err("no descriptor is free"));
        pending = waiting.collect();
        std::thread::yield_now();
    }
    drop(few);
    for pending in pending {
        assert_eq!(pending.wait().unwrap().version, 2);
    }
    host.stop().unwrap();
}

#[test]
fn concurrent_waiters_get_own_outcomes() {
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start(directory.path(), 10);
    let threads: Vec<_> = (0..6_u64)
        .map(|thread| {
            let bus = bus.clone();
            std::thread::spawn(move || {
                for round in 1..=20 {
                    let own = (0..10).map(|number| 100 * thread + number);
                    let many: Vec<_> =
                        own.map(|id| bus.send(Account::command(&id, &AccountCommand::Many(3)))).collect();
                    for pending in many {
                        assert_eq!(pending.wait().unwrap().version, 3 * round);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    host.stop().unwrap();
}

#[test]
fn live_events_are_found_by_key() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start(directory.path(), 10);
    let filters = [
        EventFilter::aggregate::<Account>(&7),
        EventFilter::tag("amount", *b"3"),
        EventFilter::event::<crate::samples::AccountEvent>(),
        EventFilter::aggregate::<Account>(&ACCOUNTS),
    ];
    let mut found: Vec<_> =
        filters.iter().map(|filter| host.found_events(filter.clone(), Position::default())).collect();
    let mut positions = vec![Vec::new(); filters.len()];
    let mut expected = Expected::default();
    for _ in 0..20 {
        (0..20).for_each(|_| expected.decide(&bus, &mut random));
        for (found, positions) in found.iter_mut().zip(&mut positions) {
            while let Some((transaction, event)) = found.next_event().unwrap() {
                assert_eq!(transaction.sequence, event.position.sequence);
                positions.push(event.position);
            }
        }
    }
    let mut all = vec![Vec::new(); filters.len()];
    let mut reader = host.events(Position::default());
    while let Some(mut transaction) = reader.next_transaction().unwrap() {
        while let Some(event) = transaction.next_event().unwrap() {
            let has = filters.iter().zip(&mut all).filter(|(filter, _)| filter.has(&event));
            has.for_each(|(_, positions)| positions.push(event.position));
        }
    }
    assert_eq!(positions, all);
    assert!(all[2].len() > 50 && all[3].is_empty());
    let middle = all[2][all[2].len() / 2];
    let mut from = host.found_events(filters[2].clone(), middle);
    assert_eq!(from.next_event().unwrap().unwrap().1.position, middle);
    host.stop().unwrap();
    let model = CommandModel::new().aggregate::<Account>();
    let host = CommandHost::start(model, AggregateOptions::default(), ServiceHostOptions::in_memory()).unwrap();
    let mut none = host.found_events(filters[0].clone(), Position::default());
    assert!(matches!(none.next_event(), Err(crate::ReadError::NoIndex)));
}

fn snapshots_of(directory: &Path, id: u64) -> (SnapshotFiles, impl Fn(&SnapshotFiles) -> Option<Snapshot>) {
    let stream = ServiceHostOptions::in_directory(directory);
    let host = CommandHost::start(CommandModel::new(), AggregateOptions::default(), stream).unwrap();
    let snapshots = SnapshotFiles::new(directory.join("aggregates"), host.service().identity());
    host.stop().unwrap();
    (snapshots, move |snapshots| snapshots.read(of(&id.to_be_bytes())).unwrap())
}

fn of(id: &[u8]) -> SnapshotKey<'_> {
    SnapshotFormat::of::<Account>(SnapshotPolicy::default()).of_aggregate(TypeKey::of("account"), id)
}

#[test]
fn load_uses_snapshot_and_later_events() {
    let directory = tempfile::tempdir().unwrap();
    let balance = |expected: u64| {
        let (host, bus) = start(directory.path(), 10);
        let refused = bus.call(Account::command(&7, &AccountCommand::Withdraw(u64::MAX)));
        assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance: expected })));
        host.stop().unwrap();
    };
    let (host, bus) = start(directory.path(), 10);
    bus.call(Account::command(&7, &AccountCommand::Open)).unwrap();
    let pending: Vec<_> = (0..20).map(|_| bus.send(Account::command(&7, &AccountCommand::Deposit(1)))).collect();
    pending.into_iter().for_each(|pending| assert!(pending.wait().is_ok()));
    let folder = directory.path().join("aggregates");
    let paths = || std::fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let file = || paths().find(|path| path.extension().is_none());
    let file = gapless_testkit::wait::until_some("a snapshot", file);
    host.stop().unwrap();
    let (snapshots, read) = snapshots_of(directory.path(), 7);
    let found = read(&snapshots).unwrap();
    assert!(found.version == 8 || found.version == 16, "{found:?}");
    balance(20);
    let mut state = Account::decode(&found.state).unwrap();
    state.balance += 1000;
    let mut changed = Snapshot { state: Vec::new(), ..found.clone() };
    state.encode(&mut changed.state).unwrap();
    let rewrite = |snapshot: &Snapshot| snapshots.write(of(&7_u64.to_be_bytes()), snapshot).unwrap();
    rewrite(&changed);
    balance(1020);
    // Of another history, of a later version, undecodable, damaged.
    rewrite(&Snapshot { last_time_ns: found.last_time_ns + 1, ..changed.clone() });
    balance(20);
    rewrite(&Snapshot { last_sequence: 1 << 40, ..changed.clone() });
    balance(20);
    rewrite(&Snapshot { state: vec![0xff; 3], ..changed.clone() });
    balance(20);
    snapshots.write(SnapshotKey { state_version: 2, ..of(&7_u64.to_be_bytes()) }, &changed).unwrap();
    balance(20);
    std::fs::write(&file, b"no snapshot").unwrap();
    balance(20);
    assert_ne!(std::fs::read(&file).unwrap(), b"no snapshot", "the snapshot was not written again");
    std::fs::remove_dir_all(&folder).unwrap();
    balance(20);
}

#[test]
fn cold_transfers_do_not_deadlock() {
    const EACH: u64 = 600;
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start(directory.path(), 4);
    for id in 0..20_u64 {
        bus.call(Account::command(&id, &AccountCommand::Open)).unwrap();
        bus.call(Account::command(&id, &AccountCommand::Deposit(1_000_000))).unwrap();
    }
    let mut random = Random::seeded();
    let threads = [(); 4].map(|()| {
        let (bus, mut random) = (host.bus(&BusOptions::default()).unwrap(), Random::new(random.number()));
        std::thread::spawn(move || {
            for _ in 0..EACH / 40 {
                let sent: Vec<_> = (0..20)
                    .map(|_| {
                        let (from, to) = (random.below(20), random.below(20));
                        let transfer = bus.send(TransferHandler::command(&Transfer { from, to, amount: 1 }));
                        (transfer, bus.send(Account::command(&random.below(20), &AccountCommand::Deposit(1))))
                    })
                    .collect();
                for (transfer, deposit) in sent {
                    transfer.wait_within(gapless_testkit::wait::PATIENCE).unwrap();
                    deposit.wait_within(gapless_testkit::wait::PATIENCE).unwrap();
                }
            }
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drop(bus);
    host.stop().unwrap();
}
