//! The index of a stream of accounts, compared with a scan of the whole stream.

use super::run::extent_of_name;
use super::*;
use crate::aggregate::Aggregate as _;
use crate::host::{AggregateOptions, CommandHost};
use crate::identity::{AggregateId as _, ID_LENGTH_MAX, TypeKey};
use crate::samples::{Account, AccountCommand, Transfer, TransferHandler};
use crate::transaction::{EventHead, write_count, write_event, write_head};
use crate::{BusOptions, CommandBus, CommandHandler as _, CommandModel};
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_engine::transaction_service::{ReleasedTransaction, ReleasedTransactions, write_done};
use gapless_engine::{ServiceHost, ServiceHostOptions};
use gapless_stream::Sequencer;
use gapless_stream::transactions::{ExecutionResult, Transactions};
use gapless_testkit::limits::{is_alone, leave_files};
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::wait::PATIENCE;
use gapless_wire::control::TimerFired;
use gapless_wire::{Encoding, FrameHeader};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

const ACCOUNTS: u64 = 40;

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
        let _ = match random.below(5) {
            0 => bus.call(Account::command(&id, &AccountCommand::Open)).map(drop),
            1 => bus.call(Account::command(&id, &AccountCommand::Many(random.below(20) as u32))).map(drop),
            2 => bus.call(Account::command(&id, &AccountCommand::Withdraw(random.below(3)))).map(drop),
            _ => {
                let transfer = Transfer { from: id, to: random.below(ACCOUNTS), amount: 1 };
                ignore_outcome(bus.call(TransferHandler::command(&transfer)));
                Ok(())
            }
        };
    }
}

fn ignore_outcome<T, E>(_: Result<T, E>) {}

fn account(id: u64) -> IndexKey {
    let mut bytes = [0; ID_LENGTH_MAX];
    let length = id.write(&mut bytes).unwrap();
    IndexKey::of_aggregate(TypeKey::of(Account::NAME), &bytes[..length])
}

fn read_all(host: &CommandHost) -> BTreeMap<IndexKey, Vec<Position>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    let mut reader = host.events(Position::default());
    while let Some(mut transaction) = reader.next_transaction().unwrap() {
        while let Some(event) = transaction.next_event().unwrap() {
            postings::keys_of(&event).for_each(|key| all.entry(key).or_default().push(event.position));
        }
    }
    all
}

/// Small runs, next to the host's own index, which merges its runs at the same time.
fn build(directory: &Path, host: &CommandHost) -> (IndexBuilder, u64) {
    let mut reader = host.events(Position::default());
    let identity = host.service().identity();
    let mut builder =
        IndexBuilder::open(EventIndex::empty(), directory.join("other-index"), identity, &mut reader, 100).unwrap();
    let begun_at = reader.next_sequence();
    while builder.index().last_sequence() < host.service().released_sequence() {
        builder.follow(&mut reader, |_| ()).unwrap();
    }
    (builder, begun_at)
}

#[track_caller]
fn assert_complete(index: &EventIndex, all: &BTreeMap<IndexKey, Vec<Position>>, random: &mut Random) {
    let mut filters = index.filters();
    for (key, positions) in all {
        assert!(filters.may_have(*key, index.last_sequence()));
        assert_eq!(index.find(*key, Position::default(), usize::MAX).unwrap(), *positions);
        let from = random.below(positions.len() as u64) as usize;
        let limit = 1 + random.below(5) as usize;
        let expected: Vec<_> = positions[from..].iter().take(limit).copied().collect();
        assert_eq!(index.find(*key, positions[from], limit).unwrap(), expected);
    }
    assert_eq!(index.find(account(ACCOUNTS), Position::default(), 9).unwrap(), []);
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(directory.join("other-index")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn long_transactions_are_indexed() {
    let directory = tempfile::tempdir().unwrap();
    let stream = ServiceHostOptions { frame_length_max: 1 << 10, ..ServiceHostOptions::in_directory(directory.path()) };
    let model = CommandModel::new().aggregate::<Account>();
    let host = CommandHost::start(model, AggregateOptions::default(), stream).unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    // One frame opens the session, and each transaction has two frames, so that the 256th frame is in the middle of
    // one.
    for _ in 0..400 {
        bus.call(Account::command(&1, &AccountCommand::Many(40))).unwrap();
    }
    let released = host.service().released_sequence();
    assert_eq!(released, 1 + 2 * 400);
    let (mut reader, identity) = (host.events(Position::default()), host.service().identity());
    let other = directory.path().join("other-index");
    let mut builder = IndexBuilder::open(EventIndex::empty(), other, identity, &mut reader, 1000).unwrap();
    for turn in 1..=released / TURN_FRAMES_MAX as u64 {
        assert!(builder.follow(&mut reader, |_| ()).unwrap());
        assert_eq!(builder.index().last_sequence(), turn * TURN_FRAMES_MAX as u64 + 1);
    }
    host.stop().unwrap();
}

#[test]
fn descriptor_shortage_removes_no_file() {
    if !is_alone("store::tests::descriptor_shortage_removes_no_file") {
        return;
    }
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path);
    decide(&bus, 1_000, &mut random);
    build(path, &host).0.close();
    // Merges may have left a single file.
    bus.call(Account::command(&ACCOUNTS, &AccountCommand::Open)).unwrap();
    build(path, &host).0.close();
    host.stop().unwrap();
    let (host, _) = start(path);
    let (before, identity) = (files(path), host.service().identity());
    assert!(before.len() > 1);
    let (mut refused, mut count) = (0, 0);
    let end = loop {
        let mut reader = host.events(Position::default());
        let few = leave_files(count);
        let opened = IndexBuilder::open(EventIndex::empty(), path.join("other-index"), identity, &mut reader, 100);
        drop(few);
        assert_eq!(files(path), before, "with {count} descriptors");
        match opened {
            Ok(_) => break reader.next_sequence() - 1,
            Err(_) => (refused, count) = (refused + 1, count + 1),
        }
    };
    assert!(
        refused > 0 && end == before.iter().filter_map(|path| last_of(path)).max().unwrap(),
        "{refused} refused, up to {end}"
    );
    let mut reader = host.events(Position::default());
    let few = leave_files(0);
    let looked = StoredIndex::open(&path.join("other-index"), &mut reader);
    drop(few);
    assert!(looked.is_err_and(|error| error.to_string().contains("Too many open files")));
    host.stop().unwrap();
}

fn last_of(path: &Path) -> Option<u64> {
    extent_of_name(path.file_name()?.to_str()?).map(|(_, last)| last)
}

#[test]
fn index_survives_restarts() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut begun_before = 0;
    for round in 0..rounds(4, 2) {
        let (host, bus) = start(path);
        decide(&bus, 1_000, &mut random);
        let all = read_all(&host);
        let (builder, begun_at) = build(path, &host);
        assert!(begun_at > begun_before || round == 0, "a restart reads only what follows the last run");
        begun_before = begun_at;
        assert_complete(&builder.index(), &all, &mut random);
        let (runs, postings, bytes) = builder.index().size();
        assert!(runs > 0 && postings > 0 && bytes > 0);
        host.stop().unwrap();
    }
    let (host, bus) = start(path);
    decide(&bus, 10, &mut random);
    let (mut builder, _) = build(path, &host);
    let mut reader = host.events(Position::default());
    gapless_testkit::wait::until("the runs are merged", || {
        reader.seek(Position { sequence: builder.index().last_sequence() + 1, ordinal: 0 });
        builder.follow(&mut reader, |_| ()).unwrap();
        builder.merging.is_none()
    });
    assert_complete(&builder.index(), &read_all(&host), &mut random);
    assert_eq!(builder.index().size().0, files(path).len(), "merged runs are removed");
    for private in files(path).iter().chain([&path.join("other-index")]) {
        assert_eq!(private.metadata().unwrap().permissions().mode() & 0o077, 0, "{}", private.display());
    }
    host.stop().unwrap();
}

#[test]
fn invalid_runs_are_rebuilt() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path);
    decide(&bus, 2_000, &mut random);
    let all = read_all(&host);
    drop(build(path, &host));
    let whole: Vec<_> = files(path).into_iter().map(|file| (std::fs::read(&file).unwrap(), file)).collect();
    assert!(whole.len() > 1, "{} files", whole.len());
    let spoil: [&dyn Fn(&Path); 5] = [
        &|file| std::fs::remove_file(file).unwrap(),
        &|file| std::fs::write(file, b"").unwrap(),
        &|file| {
            let mut bytes = std::fs::read(file).unwrap();
            let at = bytes.len() - 100;
            bytes[at] ^= 1;
            std::fs::write(file, bytes).unwrap();
        },
        &|file| std::fs::write(file.with_extension("new"), b"unfinished").unwrap(),
        &|file| {
            let (first, last) = extent_of_name(file.file_name().unwrap().to_str().unwrap()).unwrap();
            let inner = file.with_file_name(run::name_of(first, last.saturating_sub(1).max(first)));
            std::fs::copy(file, inner).unwrap();
        },
    ];
    for spoil in spoil {
        let tried = rounds(whole.len() as u64, 1) as usize;
        let first = random.below((whole.len() - tried + 1) as u64) as usize;
        for (_, file) in &whole[first..first + tried] {
            files(path).iter().for_each(|file| std::fs::remove_file(file).unwrap());
            whole.iter().for_each(|(bytes, file)| std::fs::write(file, bytes).unwrap());
            spoil(file);
            let (builder, _) = build(path, &host);
            assert_complete(&builder.index(), &all, &mut random);
            drop(builder);
            assert!(files(path).iter().all(|file| file.extension().is_none()));
        }
    }
    files(path).iter().for_each(|file| std::fs::remove_file(file).unwrap());
    let mut reader = host.events(Position::default());
    let identity = host.service().identity();
    let mut builder =
        IndexBuilder::open(EventIndex::empty(), path.join("other-index"), identity, &mut reader, 100).unwrap();
    builder.follow(&mut reader, |_| ()).unwrap();
    let (mut recent, last) = (RecentPostings::new(1, 100), builder.index().last_sequence());
    recent.add(IndexKey(1), Position { sequence: last, ordinal: 0 });
    builder.seal(&mut recent, last, 1);
    drop(builder);
    let (builder, begun_at) = build(path, &host);
    assert_eq!(begun_at, 1);
    assert_complete(&builder.index(), &all, &mut random);
    host.stop().unwrap();
}

#[test]
fn filters_admit_all_during_rebuild() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start(directory.path());
    let (mut builder, _) = build(directory.path(), &host);
    let mut reader = host.events(Position { sequence: builder.index().last_sequence() + 1, ordinal: 0 });
    while builder.merging.is_none() {
        decide(&bus, 100, &mut random);
        builder.follow(&mut reader, |_| ()).unwrap();
    }
    while builder.merging.as_ref().is_some_and(|merging| !merging.is_finished()) {
        std::thread::yield_now();
    }
    let all = read_all(&host);
    let (index, through) = (builder.index(), builder.index().last_sequence());
    let mut filters = index.filters();
    assert!(!filters.may_have(account(ACCOUNTS), through));
    builder.rebuild(&mut reader).unwrap();
    assert!(filters.may_have(account(ACCOUNTS), through) && files(directory.path()).is_empty());
    while builder.follow(&mut reader, |_| ()).unwrap() {
        assert!(all.keys().all(|key| filters.may_have(*key, through)));
    }
    assert!(!filters.may_have(account(ACCOUNTS), through));
    assert_complete(&index, &all, &mut random);
    host.stop().unwrap();
}

#[test]
fn full_disk_keeps_index_in_memory() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let (host, bus) = start(directory.path());
    decide(&bus, 200, &mut random);
    let all = read_all(&host);
    let mut reader = host.events(Position::default());
    let place = directory.path().join("other-index");
    let identity = host.service().identity();
    let mut builder = IndexBuilder::open(EventIndex::empty(), place.clone(), identity, &mut reader, 50).unwrap();
    std::fs::remove_dir(&place).unwrap();
    while builder.index().last_sequence() < host.service().released_sequence() {
        builder.follow(&mut reader, |_| ()).unwrap();
    }
    assert_eq!(builder.index().size().0, 0);
    assert_complete(&builder.index(), &all, &mut random);
    host.stop().unwrap();
}

struct SpoilingTransactions(u64);

impl Transactions for SpoilingTransactions {
    fn lead(&mut self, _: u64, _: u64) {}

    fn follow(&mut self, _: u64) {}

    fn poll(&mut self, _: u64) -> bool {
        true
    }

    fn command(&mut self, _: &FrameHeader, _: &[u8], _: &Sequencer, _: usize, out: &mut Vec<u8>) -> ExecutionResult {
        self.0 += 1;
        let mut changes = Vec::new();
        write_head(&mut changes, None, &[]);
        let id = self.0.to_be_bytes();
        let aggregate = TypeKey::of(Account::NAME);
        let head = EventHead { event: TypeKey::of("event"), version: 1, aggregate, id: &id, tags: &[] };
        write_event(&mut changes, &head, |_| Ok::<_, ()>(())).unwrap();
        write_count(&mut changes, if self.0 == 2 { 7 } else { 1 });
        write_done(out, 1, &[], &changes);
        ExecutionResult::Done
    }

    fn is_set(&self, _: TimerFired) -> bool {
        false
    }

    fn timer(&mut self, _: &FrameHeader, _: TimerFired, _: &Sequencer, _: usize, _: &mut Vec<u8>) {
        unreachable!("no timer is set")
    }

    fn acknowledged(&mut self, _: u64, _: u64) {}

    fn closed(&mut self, _: u64) {}
}

struct NoReleased;

impl ReleasedTransactions for NoReleased {
    fn apply(&mut self, _: &ReleasedTransaction<'_>) -> Result<(), String> {
        Ok(())
    }

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn index_stops_at_bad_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let stream = ServiceHostOptions::in_directory(directory.path());
    let host = ServiceHost::start_transactions(NoReleased, |_| Ok(Box::new(SpoilingTransactions(0)) as Box<_>), stream)
        .unwrap();
    let mut client = host.connect(ClientOptions::default()).unwrap();
    let session = client.open_session(1, 4).unwrap();
    let message = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
    (0..3).for_each(|_| drop(client.call(session, message, b"", PATIENCE).unwrap()));
    let mut reader = EventReader::over(host.reader(1), Position::default());
    let place = directory.path().join("other-index");
    let mut builder = IndexBuilder::open(EventIndex::empty(), place, host.identity(), &mut reader, 100).unwrap();
    for _ in 0..3 {
        let error = builder.follow(&mut reader, |_| ()).unwrap_err();
        assert!(error.to_string().starts_with("the transaction 3 cannot be decoded"), "{error}");
        assert!(builder.index().last_sequence() < 3);
    }
    let mut filters = builder.index().filters();
    assert!(filters.may_have(account(9), 4), "every key may have events");
    host.stop().unwrap();
}
