//! A missing archive affects only aggregates that need it.

use super::*;
use crate::directory::{EventDirectory, EventDirectoryError};
use crate::samples::{Account, AccountCommand, AccountRefusal};
use crate::{Aggregate as _, CommandError};
use gapless_journal::{ArchiveFormat, ArchiveOptions, Journal, JournalOptions, Retention};
use gapless_transport::Tier;
use std::path::Path;

const ACCOUNTS: u64 = 40;

fn try_start(directory: &Path, retention: Retention) -> Result<CommandHost, HostError> {
    let model = CommandModel::new().aggregate::<Account>();
    let options = AggregateOptions { aggregates_max: 4, ..AggregateOptions::default() };
    let mut stream = ServiceHostOptions::in_directory(directory);
    // Sealed segments are on the device at once.
    stream.tier = Tier::Sync;
    stream.persistence.segment_length_bytes = 2 << 20;
    stream.persistence.retention = retention;
    CommandHost::start(model, options, stream)
}

fn start(directory: &Path) -> (CommandHost, CommandBus) {
    let host = try_start(directory, Retention::default()).unwrap();
    let bus = host.bus(&BusOptions::default()).unwrap();
    (host, bus)
}

fn archived(directory: &Path, form: ArchiveFormat, before_sequence: Option<u64>) -> Result<usize, EventDirectoryError> {
    let options = ArchiveOptions { place: directory.join("archive"), form, before_sequence };
    EventDirectory::open(directory)?.archive(options, |_| ()).map(|(report, _)| report.archived.len())
}

fn has(bus: &CommandBus, id: u64, balance: u64) {
    let refused = bus.call(Account::command(&id, &AccountCommand::Withdraw(u64::MAX)));
    assert_eq!(refused, Err(CommandError::Refused(AccountRefusal::Overdrawn { balance })), "{id}");
}

fn event_count(host: &CommandHost, id: u64) -> usize {
    let mut events = host.found_events(EventFilter::aggregate::<Account>(&id), Position::default());
    std::iter::from_fn(|| events.next_event().unwrap().map(|_| ())).count()
}

#[test]
fn aggregates_load_from_archive() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (host, bus) = start(path);
    let refused = archived(path, ArchiveFormat::Plain, None).unwrap_err();
    assert!(matches!(refused, EventDirectoryError::NothingMayGo { .. }), "{refused}");
    let mut balance = 0;
    for _ in 0..12 {
        for id in 0..ACCOUNTS {
            bus.call(Account::command(&id, &AccountCommand::Many(300))).unwrap();
        }
        balance += 300;
    }
    let middle = host.service().released_sequence() / 2;
    host.stop().unwrap();
    let (host, bus) = start(path);
    has(&bus, 7, balance);
    let mut went = archived(path, ArchiveFormat::Plain, Some(middle)).unwrap();
    assert!(went > 0);
    has(&bus, 8, balance);
    let rest = archived(path, ArchiveFormat::Lz4, None).unwrap();
    went += rest;
    assert!(rest > 0);
    for id in 0..ACCOUNTS {
        has(&bus, id, balance);
    }
    assert_eq!(event_count(&host, 9), balance as usize);
    assert_eq!(EventDirectory::open(path).unwrap().statistics().unwrap().archived_segments, went);
    host.stop().unwrap();
    let (host, bus) = start(path);
    has(&bus, 1, balance);
    bus.call(Account::command(&ACCOUNTS, &AccountCommand::Open)).unwrap();
    host.stop().unwrap();
    std::fs::rename(path.join("archive"), path.join("away")).unwrap();
    let (host, bus) = start(path);
    let error = bus.call(Account::command(&2, &AccountCommand::Deposit(1))).unwrap_err();
    let CommandError::Quarantined(reason) = error else { panic!("{error}") };
    assert!(reason.contains("are archived at ") && reason.contains("mount the archive"), "{reason}");
    let mut events = host.found_events(EventFilter::aggregate::<Account>(&2), Position::default());
    let error = events.next_event().unwrap_err().to_string();
    assert!(error.contains("mount the archive"), "{error}");
    bus.call(Account::command(&(ACCOUNTS + 1), &AccountCommand::Open)).unwrap();
    bus.call(Account::command(&(ACCOUNTS + 1), &AccountCommand::Deposit(5))).unwrap();
    drop(events);
    host.stop().unwrap();
    std::fs::rename(path.join("away"), path.join("archive")).unwrap();
    let (host, bus) = start(path);
    for id in 0..ACCOUNTS {
        has(&bus, id, balance);
    }
    has(&bus, ACCOUNTS + 1, 5);
    host.stop().unwrap();
}

#[test]
fn retention_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let retention = Retention { bytes_max: Some(1), age_max_ns: None };
    let refused = try_start(path, retention).err().unwrap().to_string();
    assert!(refused.contains("persistence.retention") && refused.contains("gapless events archive"), "{refused}");
    let (host, bus) = start(path);
    let sent: Vec<_> = (0..500).map(|id| bus.send(Account::command(&id, &AccountCommand::Many(300)))).collect();
    sent.into_iter().for_each(|pending| _ = pending.wait().unwrap());
    let stream_id = host.service().identity().stream_id;
    let last = host.stop().unwrap();
    let (journal, report) =
        Journal::open(JournalOptions { retention, ..JournalOptions::new(path.join("journal"), stream_id) }).unwrap();
    assert!(report.segments > 1);
    journal.set_snapshot_sequence(last);
    while journal.preparer().run_once().unwrap() {}
    journal.close().unwrap();
    let refused = try_start(path, Retention::default()).err().unwrap().to_string();
    assert!(refused.contains("with which the journal begins") && refused.contains("were deleted"), "{refused}");
}
