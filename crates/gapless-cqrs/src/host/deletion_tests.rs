//! Deletion of events: aggregates stay as they were, readers of deleted events get an error, and events that are still
//! needed stay.

use super::*;
use crate::samples::{Account, AccountCommand, AccountEvent, AccountRefusal, Transfer, TransferHandler};
use crate::store::{BASE_FOLDER, BaseEntry, BaseFile, BaseWriter};
use crate::{Aggregate as _, CommandError, CommandHandler as _, DecisionModel, DeletedEvents, EventDirectory};
use crate::{ReadError, SnapshotPolicy};
use gapless_client::stream_layout::StreamLayout;
use gapless_engine::directory_consistency;
use gapless_journal::{ArchiveFormat, ArchiveOptions, JournalReader};
use gapless_testkit::folder::{SmallDisk, copy};
use gapless_testkit::random::{Random, rounds};
use gapless_testkit::wait;
use gapless_transport::Tier;
use std::collections::BTreeMap;
use std::path::Path;

const ACCOUNTS: u64 = 60;

pub(super) fn stream(directory: &Path) -> ServiceHostOptions {
    let mut stream = ServiceHostOptions::in_directory(directory);
    // Sealed segments are on the device at once.
    stream.tier = Tier::Sync;
    stream.persistence.segment_length_bytes = 256 << 10;
    (stream.window_bytes, stream.frame_length_max) = (1 << 20, 4096);
    stream
}

pub(super) fn model() -> CommandModel {
    let policy = SnapshotPolicy { events: 64, ..SnapshotPolicy::default() };
    CommandModel::new().aggregate_with_snapshots::<Account>(policy).handler(TransferHandler)
}

pub(super) fn try_start(
    directory: &Path,
    model: CommandModel,
    aggregates_max: usize,
) -> Result<CommandHost, HostError> {
    let options = AggregateOptions { aggregates_max, index_entries_max: 2_000, ..AggregateOptions::default() };
    CommandHost::start(model, options, stream(directory))
}

pub(super) fn start(directory: &Path, aggregates_max: usize) -> (CommandHost, CommandBus) {
    let host = try_start(directory, model(), aggregates_max).unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    (host, bus)
}

pub(super) fn first_held(directory: &Path) -> u64 {
    JournalReader::open(directory.join("journal")).unwrap().first_sequence()
}

pub(super) fn remove_snapshots(directory: &Path) {
    let folder = directory.join("aggregates");
    if folder.is_dir() {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

pub(super) fn wait_for_deleted_segments(directory: &Path, report: &DeletionReport) {
    wait::until("the segments are deleted", || first_held(directory) == report.before);
}

#[derive(Default)]
pub(super) struct Expected(pub BTreeMap<u64, (u64, u64)>);

impl Expected {
    /// Sends commands, each of which has an effect.
    pub fn decide(&mut self, bus: &CommandBus, count: u64, random: &mut Random) {
        let mut sent = Vec::new();
        for _ in 0..count {
            let (id, many) = (random.below(ACCOUNTS), 1 + random.below(60));
            let (balance, version) = self.0.entry(id).or_default();
            (*balance, *version) = (*balance + many, *version + many);
            sent.push((*version, bus.send(Account::command(&id, &AccountCommand::Many(many as u32)))));
        }
        for (version, pending) in sent {
            assert_eq!(pending.wait().unwrap().version, version);
        }
        let from = *self.0.keys().next().unwrap();
        let to = random.below(ACCOUNTS);
        let is_there = self.0.contains_key(&to);
        let outcome = bus.call(TransferHandler::command(&Transfer { from, to, amount: 1 }));
        assert_eq!(outcome.is_ok(), is_there, "{from} to {to}: {outcome:?}");
        if is_there {
            for (id, is_credit) in [(from, false), (to, true)] {
                let (balance, version) = self.0.get_mut(&id).unwrap();
                *balance = if is_credit { *balance + 1 } else { *balance - 1 };
                *version += 1;
            }
        }
    }

    /// Checks that these are all accounts.
    pub fn check(&mut self, bus: &CommandBus) {
        for id in 0..ACCOUNTS {
            let outcome = bus.call(Account::command(&id, &AccountCommand::Withdraw(u64::MAX)));
            match self.0.get_mut(&id) {
                None => assert_eq!(outcome, Err(CommandError::NotFound), "{id}"),
                Some((balance, version)) => {
                    let refusal = AccountRefusal::Overdrawn { balance: *balance };
                    assert_eq!(outcome, Err(CommandError::Refused(refusal)), "{id}");
                    if id % 7 == 0 {
                        let noted = bus.call(Account::command(&id, &AccountCommand::Deposit(1))).unwrap();
                        (*balance, *version) = (*balance + 1, *version + 1);
                        assert_eq!(noted.version, *version, "{id}");
                    }
                }
            }
        }
    }
}

#[test]
fn deletions_keep_all_accounts() {
    let mut random = Random::seeded();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (mut expected, mut deleted) = (Expected::default(), 0);
    let mut round = 0;
    while round < rounds(8, 3) || deleted <= 1 {
        assert!(round < 100, "nothing is deleted");
        // Few aggregates in memory: several passes over the stream for one base.
        let (host, bus) = start(path, 8);
        for _ in 0..2 {
            expected.decide(&bus, 150, &mut random);
            let last = host.service().released_sequence();
            match host.delete_events_before(1 + random.below(last)) {
                Ok(report) => {
                    assert!(report.before > deleted && report.aggregates <= expected.0.len() as u64);
                    deleted = report.before;
                    wait_for_deleted_segments(path, &report);
                }
                Err(error) => assert!(matches!(error, DeletionError::NothingBefore { .. }), "{error}"),
            }
            expected.check(&bus);
        }
        match round % 3 {
            0 => drop(host),
            _ => _ = host.stop().unwrap(),
        }
        if random.below(2) == 0 {
            std::fs::remove_dir_all(path.join("index")).unwrap();
        }
        if random.below(2) == 0 {
            remove_snapshots(path);
        }
        round += 1;
    }
    let (host, bus) = start(path, 1_000);
    expected.check(&bus);
    host.stop().unwrap();
    let looked = DeletedEvents::check(path).unwrap().unwrap();
    assert_eq!((looked.before, first_held(path)), (deleted, deleted));
}

#[test]
fn fully_deleted_aggregate_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path, 4);
    bus.call(Account::command(&7, &AccountCommand::Many(70))).unwrap();
    bus.call(Account::command(&8, &AccountCommand::Open)).unwrap();
    bus.call(Account::command(&8, &AccountCommand::Close)).unwrap();
    let identified = |bus: &CommandBus| bus.call(Account::command(&9, &AccountCommand::Many(3)).identified_by(99));
    let first = identified(&bus).unwrap();
    for id in 100..rounds(1_600, 400) {
        bus.send(Account::command(&id, &AccountCommand::Many(rounds(10, 50) as u32))).wait().unwrap();
    }
    let report = host.delete_events_before(u64::MAX).unwrap();
    wait_for_deleted_segments(path, &report);
    assert_eq!(identified(&bus).unwrap(), first);
    host.stop().unwrap();
    for lost in ["", "index", "aggregates"] {
        if path.join(lost).is_dir() && !lost.is_empty() {
            std::fs::remove_dir_all(path.join(lost)).unwrap();
        }
        let (host, bus) = start(path, 4);
        let exists = bus.call(Account::command(&7, &AccountCommand::Open));
        assert_eq!(exists, Err(CommandError::AlreadyExists));
        let refused = bus.call(Account::command(&7, &AccountCommand::Withdraw(100)).expecting_version(70));
        assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance: 70 })));
        let closed = bus.call(Account::command(&8, &AccountCommand::Deposit(1)));
        assert_eq!(closed, Err(CommandError::Refused(AccountRefusal::Closed)));
        assert_eq!(bus.call(Account::command(&10, &AccountCommand::Deposit(1))), Err(CommandError::NotFound));
        assert_eq!(identified(&bus).unwrap(), first);
        assert_eq!(first.version, 3);
        host.stop().unwrap();
    }
}

fn deleted(directory: &Path) -> (CommandHost, CommandBus, DeletionReport) {
    let (host, bus) = start(directory, 8);
    Expected::default().decide(&bus, 800, &mut Random::seeded());
    let report = host.delete_events_before(u64::MAX).unwrap();
    wait_for_deleted_segments(directory, &report);
    (host, bus, report)
}

fn is_deleted(error: &ReadError, before: u64) -> bool {
    matches!(error, ReadError::Deleted { first, .. } if *first == before) && error.to_string().contains("read from")
}

#[test]
fn reading_deleted_events_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, _, report) = deleted(path);
    let before = report.before;
    host.stop().unwrap();
    let (host, bus) = start(path, 8);
    let at = |sequence| Position { sequence, ordinal: 0 };
    let filter = || EventFilter::event::<AccountEvent>();
    for from in [0, 1, before - 1] {
        let error = host.events(at(from)).next_transaction().unwrap_err();
        assert!(is_deleted(&error, before), "{error}");
        let error = host.found_events(filter(), at(from)).next_event().unwrap_err();
        assert!(is_deleted(&error, before), "{error}");
        let condition = filter();
        let handled = TransferHandler::command(&Transfer { from: 1, to: 2, amount: 1 });
        let failed = bus.call(handled.only_if_none(&condition, at(from)));
        assert!(matches!(&failed, Err(CommandError::Failed(reason)) if reason.contains("are deleted")), "{failed:?}");
    }
    let (mut read, mut found) = (0, 0);
    let mut events = host.events(at(before));
    while let Some(mut transaction) = events.next_transaction().unwrap() {
        while transaction.next_event().unwrap().is_some() {
            read += 1;
        }
    }
    let mut events = host.found_events(filter(), at(before));
    while events.next_event().unwrap().is_some() {
        found += 1;
    }
    assert!(read > 0 && read == found, "{read} and {found}");
    let through = events.read_through();
    let handled = TransferHandler::command(&Transfer { from: ACCOUNTS, to: 2, amount: 1 });
    let refused = bus.call(handled.only_if_none(&filter(), through));
    assert!(matches!(refused, Err(CommandError::Refused(_))), "{refused:?}");
    drop(events);
    host.stop().unwrap();
    let outside = EventDirectory::open(path).unwrap();
    assert_eq!(outside.first_after_deleted().unwrap(), Some(before));
    let selection = |from| crate::directory::Selection { filters: vec![filter()], from: at(from), until: None };
    let error = outside.transactions(selection(before - 1)).err().unwrap().to_string();
    assert!(error.contains(&format!("the events before {before} are deleted")), "{error}");
    let first = outside.transactions(selection(0)).unwrap().next_transaction().unwrap().unwrap().sequence;
    assert!(first >= before);
}

#[test]
fn open_reader_blocks_deletion() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path, 8);
    Expected::default().decide(&bus, 800, &mut Random::seeded());
    let mut events = host.events(Position::default());
    let mut found = host.found_events(EventFilter::aggregate::<Account>(&ACCOUNTS), Position::default());
    let refused = host.delete_events_before(u64::MAX).unwrap_err();
    assert!(matches!(refused, DeletionError::Reader { position: 0..=1, .. }), "{refused}");
    while events.next_transaction().unwrap().is_some() {}
    let refused = host.delete_events_before(u64::MAX).unwrap_err();
    assert!(matches!(refused, DeletionError::Reader { position: 0, .. }), "{refused}");
    assert!(found.next_event().unwrap().is_none());
    let report = host.delete_events_before(u64::MAX).unwrap();
    wait_for_deleted_segments(path, &report);
    bus.call(Account::command(&ACCOUNTS, &AccountCommand::Open)).unwrap();
    assert!(found.next_event().unwrap().is_some() && events.next_transaction().unwrap().is_some());
    drop((events, found));
    host.stop().unwrap();
}

#[derive(Clone)]
struct Everything(u64);

impl DecisionModel for Everything {
    type Id = u64;

    fn events(_: &u64) -> EventFilter {
        EventFilter::event::<AccountEvent>()
    }

    fn new(_: &u64) -> Self {
        Self(0)
    }

    fn apply(&mut self, _: &crate::RecordedEvent<'_>) -> Result<(), crate::MessageError> {
        self.0 += 1;
        Ok(())
    }
}

#[test]
fn stateless_types_refuse_deletion() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let without = || CommandModel::new().aggregate::<Account>().handler(TransferHandler);
    let host = try_start(path, without(), 8).unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    let mut expected = Expected::default();
    expected.decide(&bus, 800, &mut Random::seeded());
    let refused = host.delete_events_before(u64::MAX).unwrap_err();
    let DeletionError::WithoutStates { types } = &refused else { panic!("{refused}") };
    assert_eq!(*types, [("account".to_owned(), expected.0.len() as u64)]);
    assert!(refused.to_string().contains(&format!(" {} of type account", expected.0.len())), "{refused}");
    host.stop().unwrap();
    let host = try_start(path, CommandModel::new(), 8).unwrap();
    let refused = host.delete_events_before(u64::MAX).unwrap_err().to_string();
    assert!(refused.contains("which the model does not have"), "{refused}");
    host.stop().unwrap();
    let host = try_start(path, model().decision_model::<Everything>(), 8).unwrap();
    let refused = host.delete_events_before(u64::MAX).unwrap_err();
    assert!(matches!(refused, DeletionError::DecisionModel { .. }), "{refused}");
    assert_eq!((first_held(path), DeletedEvents::read(path).unwrap()), (1, None));
    host.stop().unwrap();
    let (host, bus) = start(path, 8);
    let report = host.delete_events_before(u64::MAX).unwrap();
    wait_for_deleted_segments(path, &report);
    expected.check(&bus);
    host.stop().unwrap();
    let refused = try_start(path, model().decision_model::<Everything>(), 8).err().unwrap().to_string();
    assert!(refused.contains("decision model") && refused.contains("are deleted"), "{refused}");
    // The model does not read the base's states, so these aggregates are quarantined.
    let host = try_start(path, without(), 8).unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    let id = *expected.0.keys().next().unwrap();
    let outcome = bus.call(Account::command(&id, &AccountCommand::Deposit(1)));
    assert!(matches!(&outcome, Err(CommandError::Quarantined(reason)) if reason.contains("base-")), "{outcome:?}");
    bus.call(Account::command(&ACCOUNTS, &AccountCommand::Open)).unwrap();
    host.stop().unwrap();
}

#[test]
fn start_needs_an_intact_base() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, _, report) = deleted(path);
    host.stop().unwrap();
    let whole = std::fs::read(&report.file).unwrap();
    let refused = || match try_start(path, model(), 8).err().unwrap() {
        HostError::Base(error) => error,
        error => panic!("{error}"),
    };
    std::fs::rename(&report.file, path.join("away")).unwrap();
    let error = refused();
    assert!(error.path == path.join("base") && error.reason.contains("the events before it were deleted"), "{error}");
    // A start reads the end of the file: the summary, the filter and the table.
    for at in (whole.len() - 270..whole.len()).step_by(61) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        std::fs::write(&report.file, damaged).unwrap();
        let error = refused();
        assert!(error.path == report.file && error.to_string().contains("put it back"), "{error}");
        assert!(DeletedEvents::check(path).is_err());
    }
    let other = tempfile::tempdir().unwrap();
    let (host, _, foreign) = deleted(other.path());
    host.stop().unwrap();
    std::fs::write(&report.file, std::fs::read(&foreign.file).unwrap()).unwrap();
    assert!(refused().reason.contains("of another stream"));
    // Damage in the part that a start does not read affects only aggregates in that part.
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    std::fs::write(&report.file, damaged).unwrap();
    assert!(DeletedEvents::check(path).is_err() && DeletedEvents::read(path).is_ok());
    remove_snapshots(path);
    let (host, bus) = start(path, 1_000);
    let outcomes = (0..ACCOUNTS).map(|id| bus.call(Account::command(&id, &AccountCommand::Withdraw(u64::MAX))));
    let (mut whole_ones, mut aggregates_quarantined) = (0, 0);
    for outcome in outcomes {
        match outcome {
            Err(CommandError::Refused(_)) => whole_ones += 1,
            Err(CommandError::Quarantined(reason)) => {
                assert!(reason.contains("is damaged") && reason.contains("base-"), "{reason}");
                aggregates_quarantined += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(aggregates_quarantined > 0, "{whole_ones} and {aggregates_quarantined}");
    host.stop().unwrap();
    std::fs::write(&report.file, whole).unwrap();
    let (host, bus) = start(path, 8);
    let outcome = bus.call(Account::command(&1, &AccountCommand::Withdraw(u64::MAX)));
    assert!(matches!(outcome, Err(CommandError::Refused(_))), "{outcome:?}");
    host.stop().unwrap();
}

#[test]
fn archived_segments_are_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path, 8);
    let mut expected = Expected::default();
    expected.decide(&bus, 800, &mut Random::seeded());
    host.stop().unwrap();
    let (host, bus) = start(path, 8);
    let options = ArchiveOptions { place: path.join("archive"), form: ArchiveFormat::Lz4, before_sequence: None };
    let (archived, _) = EventDirectory::open(path).unwrap().archive(options, |_| ()).unwrap();
    assert!(archived.archived.len() > 1);
    let files = || std::fs::read_dir(path.join("archive")).unwrap().count();
    assert_eq!(files(), archived.archived.len());
    let second = archived.archived[1].first_sequence;
    let report = host.delete_events_before(second).unwrap();
    assert_eq!(report.before, second);
    wait_for_deleted_segments(path, &report);
    assert_eq!(files(), archived.archived.len() - 1);
    std::fs::rename(path.join("archive"), path.join("away")).unwrap();
    let refused = host.delete_events_before(u64::MAX).unwrap_err().to_string();
    assert!(refused.contains("mount the archive"), "{refused}");
    std::fs::rename(path.join("away"), path.join("archive")).unwrap();
    let report = host.delete_events_before(u64::MAX).unwrap();
    wait_for_deleted_segments(path, &report);
    assert_eq!(files(), 0);
    expected.check(&bus);
    host.stop().unwrap();
    let (host, bus) = start(path, 8);
    expected.check(&bus);
    host.stop().unwrap();
}

fn rewrite(directory: &Path, last_time_ns: impl Fn(u64) -> u64, change: impl Fn(&mut BaseEntry)) {
    let folder = directory.join(BASE_FOLDER);
    let old = BaseFile::newest(&folder, None).unwrap().unwrap();
    let stream_id = JournalReader::open(directory.join("journal")).unwrap().stream_id();
    let mut writer = BaseWriter::begin(&folder, stream_id, old.before, last_time_ns(old.last_time_ns)).unwrap();
    let mut entries = old.entries();
    while let Some(mut entry) = entries.next().unwrap() {
        change(&mut entry);
        writer.put(&entry).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn foreign_base_states_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path, 8);
    let mut expected = Expected::default();
    expected.decide(&bus, 800, &mut Random::seeded());
    let report = host.delete_events_before(u64::MAX).unwrap();
    wait_for_deleted_segments(path, &report);
    host.stop().unwrap();
    remove_snapshots(path);
    let ids: Vec<u64> = expected.0.keys().copied().take(2).collect();
    rewrite(
        path,
        |time_ns| time_ns,
        |entry| {
            entry.state_version += u32::from(*entry.id == ids[0].to_be_bytes());
            entry.state_layout ^= u32::from(*entry.id == ids[1].to_be_bytes());
        },
    );
    let (host, bus) = start(path, 8);
    for (id, what) in ids.iter().zip(["is of version 2", "has another layout"]) {
        let outcome = bus.call(Account::command(id, &AccountCommand::Withdraw(u64::MAX)));
        assert!(
            matches!(&outcome, Err(CommandError::Quarantined(reason)) if reason.contains(what)),
            "{what}: {outcome:?}"
        );
    }
    let id = *expected.0.keys().last().unwrap();
    let outcome = bus.call(Account::command(&id, &AccountCommand::Withdraw(u64::MAX)));
    assert!(matches!(outcome, Err(CommandError::Refused(_))), "{outcome:?}");
    host.stop().unwrap();
    rewrite(path, |time_ns| time_ns + 1, |_| {});
    let refused = try_start(path, model(), 8).err().unwrap().to_string();
    assert!(refused.contains("base-") && refused.contains("of another history"), "{refused}");
    rewrite(path, |time_ns| time_ns - 1, |_| {});
    let copied = tempfile::tempdir().unwrap();
    copy(path, copied.path());
    directory_consistency::restore(&StreamLayout::new(copied.path())).unwrap();
    let refused = try_start(copied.path(), model(), 8).err();
    assert!(refused.is_none(), "{refused:?}");
}

#[test]
fn full_disk_deletes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path, 1_000);
    let sent: Vec<_> = (0..2_000).map(|id| bus.send(Account::command(&id, &AccountCommand::Many(10)))).collect();
    sent.into_iter().for_each(|pending| assert!(pending.wait().is_ok()));
    if let Some(disk) = SmallDisk::mount(&path.join(BASE_FOLDER), 32) {
        let refused = host.delete_events_before(u64::MAX).unwrap_err();
        assert!(matches!(refused, DeletionError::Write { .. }) && refused.to_string().contains("nothing is deleted"));
        assert_eq!(std::fs::read_dir(&disk.path).unwrap().count(), 0);
        drop(disk);
    }
    assert_eq!((first_held(path), DeletedEvents::read(path).unwrap()), (1, None));
    let report = host.delete_events_before(u64::MAX).unwrap();
    wait_for_deleted_segments(path, &report);
    let refused = host.delete_events_before(u64::MAX).unwrap_err();
    assert!(matches!(refused, DeletionError::NothingBefore { first, .. } if first == report.before), "{refused}");
    host.stop().unwrap();
}

#[test]
fn start_resumes_deletion() {
    let (directory, before) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = directory.path();
    let (host, bus) = start(path, 8);
    let mut expected = Expected::default();
    expected.decide(&bus, 800, &mut Random::seeded());
    host.stop().unwrap();
    copy(path, before.path());
    let (host, _) = start(path, 8);
    let report = host.delete_events_before(u64::MAX).unwrap();
    host.stop().unwrap();
    // As after a crash before the first segment was deleted.
    let file = before.path().join(BASE_FOLDER).join(report.file.file_name().unwrap());
    std::fs::create_dir(before.path().join(BASE_FOLDER)).unwrap();
    let whole = std::fs::read(&report.file).unwrap();
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    std::fs::write(&file, damaged).unwrap();
    let refused = try_start(before.path(), model(), 8).err().unwrap();
    assert!(matches!(&refused, HostError::Base(error) if error.path == file), "{refused}");
    assert_eq!(first_held(before.path()), 1);
    std::fs::write(&file, whole).unwrap();
    let (host, bus) = start(before.path(), 8);
    wait_for_deleted_segments(before.path(), &report);
    expected.check(&bus);
    host.stop().unwrap();
}

#[test]
fn cold_loads_go_on_during_deletion() {
    const EACH: u64 = 25;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path, 4);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let deletions = std::sync::atomic::AtomicU64::new(0);
    let goes_on =
        |rounds_made: u64| rounds_made < rounds(60, 15) || deletions.load(std::sync::atomic::Ordering::Relaxed) < 2;
    let rounds_made = std::thread::scope(|scope| {
        let tellers: Vec<_> = (0..3)
            .map(|teller| {
                let bus = bus.clone();
                let goes_on = &goes_on;
                scope.spawn(move || {
                    let mut round = 0;
                    while goes_on(round) {
                        round += 1;
                        let ids = (0..EACH).map(|number| 1_000 * teller + number);
                        let sent: Vec<_> =
                            ids.map(|id| (id, bus.send(Account::command(&id, &AccountCommand::Many(7))))).collect();
                        for (id, pending) in sent {
                            assert_eq!(pending.wait().unwrap().version, 7 * round, "{id}");
                        }
                    }
                    round
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                match host.delete_events_before(u64::MAX) {
                    Ok(_) => _ = deletions.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
                    Err(DeletionError::NothingBefore { .. }) => std::thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let ended: Vec<_> = tellers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        ended.into_iter().map(|ended| ended.unwrap()).collect::<Vec<u64>>()
    });
    let balance = 7 * rounds_made[0];
    for id in 0..EACH {
        let refused = bus.call(Account::command(&id, &AccountCommand::Withdraw(u64::MAX)));
        assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance })), "{id}");
    }
    host.stop().unwrap();
}
