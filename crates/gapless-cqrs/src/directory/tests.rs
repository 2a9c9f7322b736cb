//! Compares reads from outside with those of the host itself.

use super::*;
use crate::host::{AggregateOptions, CommandHost};
use crate::samples::{Account, AccountCommand, AccountEvent, Transfer, TransferHandler};
use crate::store::{EventIndex, IndexBuilder};
use crate::{Aggregate as _, BusOptions, CommandBus, CommandHandler as _, CommandModel};
use gapless_engine::ServiceHostOptions;
use gapless_testkit::random::Random;
use gapless_testkit::wait;

const ACCOUNTS: u64 = 30;

fn start(directory: &Path) -> (CommandHost, CommandBus) {
    let model = CommandModel::new().aggregate::<Account>().handler(TransferHandler);
    let stream = ServiceHostOptions::in_directory(directory);
    let host = CommandHost::start(model, AggregateOptions::default(), stream).unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    (host, bus)
}

fn decide(bus: &CommandBus, count: u64, random: &mut Random) {
    for _ in 0..count {
        let id = random.below(ACCOUNTS);
        match random.below(4) {
            0 => drop(bus.call(Account::command(&id, &AccountCommand::Open))),
            1 => drop(bus.call(Account::command(&id, &AccountCommand::Many(random.below(20) as u32)))),
            2 => drop(bus.call(Account::command(&id, &AccountCommand::Withdraw(random.below(3))))),
            _ => {
                let transfer = Transfer { from: id, to: random.below(ACCOUNTS), amount: 1 };
                drop(bus.call(TransferHandler::command(&transfer)));
            }
        }
    }
}

fn read_by_host(host: &CommandHost, selection: &Selection) -> Vec<Position> {
    let mut positions = Vec::new();
    let mut reader = host.events(Position::default());
    while let Some(mut transaction) = reader.next_transaction().unwrap() {
        while let Some(event) = transaction.next_event().unwrap() {
            if selection.has(&event) {
                positions.push(event.position);
            }
        }
    }
    positions
}

fn read(transactions: &mut SelectedTransactions, selection: &Selection) -> Vec<Position> {
    let mut positions = Vec::new();
    while let Some(mut transaction) = transactions.next_transaction().unwrap() {
        while let Some(event) = transaction.next_event().unwrap() {
            if selection.has(&event) {
                positions.push(event.position);
            }
        }
    }
    positions
}

fn select(random: &mut Random, last: u64) -> Selection {
    let mut filters = Vec::new();
    if random.below(2) == 0 {
        filters.push(EventFilter::aggregate::<Account>(&random.below(ACCOUNTS + 1)));
    }
    if random.below(2) == 0 {
        filters.push(EventFilter::tag("amount", random.below(3).to_string()));
    }
    if random.below(2) == 0 {
        filters.push(EventFilter::event::<AccountEvent>());
    }
    let mut position = || Position { sequence: random.below(last + 2), ordinal: random.below(5) as u16 };
    let (from, until) = (position(), position());
    Selection { filters, from, until: (random.below(2) == 0).then_some(until) }
}

fn wait_released(directory: &Path, host: &CommandHost) -> u64 {
    let layout = StreamLayout::new(directory);
    wait::until("released frames are counted", || {
        JournalWriterState::read(&layout).unwrap() == JournalWriterState::Released(host.service().released_sequence())
    });
    host.service().released_sequence()
}

#[test]
fn outside_reads_agree_with_the_host() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path);
    for round in 0..3 {
        decide(&bus, 300, &mut random);
        if round == 1 {
            let mut reader = host.events(Position::default());
            let identity = host.service().identity();
            let mut builder =
                IndexBuilder::open(EventIndex::empty(), path.join(INDEX_FOLDER), identity, &mut reader, 100).unwrap();
            while builder.index().last_sequence() < host.service().released_sequence() {
                builder.follow(&mut reader, |_| ()).unwrap();
            }
        }
        let last = wait_released(path, &host);
        let outside = EventDirectory::open(path).unwrap();
        for _ in 0..40 {
            let selection = select(&mut random, last);
            let found = read(&mut outside.transactions(selection.clone()).unwrap(), &selection);
            assert_eq!(found, read_by_host(&host, &selection), "{selection:?}");
        }
    }
    let outside = EventDirectory::open(&path.join("journal")).unwrap();
    let index = outside.index(&mut outside.reader()).unwrap();
    assert!(index.last_sequence() > 0 && index.unusable.is_empty(), "{:?}", index.unusable);
    let selections: Vec<_> = (0..20).map(|_| select(&mut random, host.service().released_sequence())).collect();
    let expected: Vec<_> = selections.iter().map(|selection| read_by_host(&host, selection)).collect();
    host.stop().unwrap();
    let all = |what: &str| {
        for (selection, expected) in selections.iter().zip(&expected) {
            let found = read(&mut outside.transactions(selection.clone()).unwrap(), selection);
            assert_eq!(found, *expected, "{what}: {selection:?}");
        }
    };
    all("of a host that has stopped");
    // Invalid files only cost time, and stay for the next host to rebuild.
    let files = || std::fs::read_dir(path.join(INDEX_FOLDER)).unwrap().map(|entry| entry.unwrap().path());
    let damaged: Vec<_> = files().inspect(|file| std::fs::write(file, b"no index").unwrap()).collect();
    all("with a damaged index");
    assert!(damaged.iter().all(|file| file.exists()));
    assert!(!outside.statistics().unwrap().index.unusable.is_empty());
    std::fs::remove_dir_all(path.join(INDEX_FOLDER)).unwrap();
    all("without an index");
}

#[test]
fn reader_follows_a_restarted_host() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let (mut host, mut bus) = start(directory.path());
    decide(&bus, 20, &mut random);
    wait_released(directory.path(), &host);
    let outside = EventDirectory::open(directory.path()).unwrap();
    let selection = Selection { filters: vec![EventFilter::event::<AccountEvent>()], ..Selection::default() };
    let mut transactions = outside.transactions(selection.clone()).unwrap();
    let mut found = Vec::new();
    for round in 0..4 {
        decide(&bus, 50, &mut random);
        let expected = read_by_host(&host, &selection);
        wait::until("all of it is read", || {
            found.extend(read(&mut transactions, &selection));
            found.len() == expected.len()
        });
        assert_eq!(found, expected, "in round {round}");
        host.stop().unwrap();
        (host, bus) = start(directory.path());
    }
    host.stop().unwrap();
}

#[test]
fn aggregates_are_counted() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start(directory.path());
    decide(&bus, 500, &mut random);
    wait_released(directory.path(), &host);
    let mut expected = BTreeMap::<Vec<u8>, (u64, Position, Position)>::new();
    let (mut events, mut transactions, mut payload_bytes) = (0, 0, 0);
    let mut reader = host.events(Position::default());
    while let Some(mut transaction) = reader.next_transaction().unwrap() {
        transactions += 1;
        while let Some(event) = transaction.next_event().unwrap() {
            (events, payload_bytes) = (events + 1, payload_bytes + event.payload.len() as u64);
            let entry = expected.entry(event.id.to_vec()).or_insert((0, event.position, event.position));
            (entry.0, entry.2) = (entry.0 + 1, event.position);
        }
    }
    let outside = EventDirectory::open(directory.path()).unwrap();
    let (listed, more) = outside.aggregates(Selection::default(), None, usize::MAX).unwrap();
    assert!(listed.is_sorted_by_key(|entry| entry.first) && more == 0);
    let found: BTreeMap<_, _> =
        listed.iter().map(|entry| (entry.id.clone(), (entry.events, entry.first, entry.last))).collect();
    assert_eq!(found, expected);
    let key = Some(TypeKey::of(Account::NAME));
    let (first, more) = outside.aggregates(Selection::default(), key, 3).unwrap();
    assert_eq!((&first[..], more), (&listed[..3], expected.len() as u64 - 3));
    assert_eq!(outside.aggregates(Selection::default(), Some(TypeKey(1)), 3).unwrap(), (vec![], 0));

    let statistics = outside.statistics().unwrap();
    assert_eq!(
        (statistics.events, statistics.transactions, statistics.payload_bytes),
        (events, transactions, payload_bytes)
    );
    let of_type = AggregateStatistics { aggregates: expected.len() as u64, events };
    assert_eq!(statistics.aggregates, BTreeMap::from([(TypeKey::of(Account::NAME), of_type)]));
    assert_eq!(statistics.types, BTreeMap::from([((TypeKey::of("AccountEvent"), 1), events)]));
    assert_eq!((statistics.index.runs, statistics.segments), (0, 1));
    host.stop().unwrap();
}

#[test]
fn unnamed_types_go_by_their_keys() {
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start(directory.path());
    bus.call(Account::command(&7, &AccountCommand::Open)).unwrap();
    let amount = AccountCommand::Deposit(30);
    bus.call(Account::command(&7, &amount)).unwrap();
    host.stop().unwrap();
    let outside = EventDirectory::open(directory.path()).unwrap();
    let of_account = EventFilter::aggregate::<Account>(&7);
    assert_eq!(outside.aggregate_filter("account/7").unwrap(), of_account);
    assert_eq!(outside.type_filter("AccountEvent").unwrap(), EventFilter::event::<AccountEvent>());
    for (text, expected) in [
        ("account", "TYPE/ID is expected"),
        ("order/7", "there are no aggregates of that type; there are account"),
        ("account/x", "the identifiers of account are numbers of 8 bytes"),
    ] {
        let error = outside.aggregate_filter(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = outside.type_filter("AccountCommand").unwrap_err().to_string();
    assert!(error.contains("there are AccountEvent"), "a command is no event: {error}");
    let selection = Selection { filters: vec![of_account.clone()], ..Selection::default() };
    let mut transactions = outside.transactions(selection).unwrap();
    let mut said = Vec::new();
    while let Some(mut transaction) = transactions.next_transaction().unwrap() {
        while let Some(event) = transaction.next_event().unwrap() {
            said.push(outside.names.json_of(&event).unwrap());
        }
    }
    assert_eq!(said, ["\"Opened\"", "{\"Deposited\":30}"]);
    std::fs::write(directory.path().join(TypeNames::FILE_NAME), "damaged").unwrap();
    let outside = EventDirectory::open(directory.path()).unwrap();
    assert!(outside.names_error.as_ref().unwrap().contains("types.json"));
    assert_eq!(outside.aggregate_filter("account/7").unwrap(), of_account, "digits are a u64");
    let number = format!("{:#x}/0x0000000000000007", TypeKey::of(Account::NAME).0);
    assert_eq!(outside.aggregate_filter(&number).unwrap(), of_account);
}
