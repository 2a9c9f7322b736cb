//! A command whose handler panics is skipped by a mark in the stream. The fault rules hold for the stream's life.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says where it failed")]

use crate::attacked::*;
use gapless_client::stream_layout::StreamLayout;
use gapless_engine::directory_consistency::verify;
use gapless_engine::fold::NoSink;
use gapless_engine::recovery::replay_copy;
use gapless_engine::skips::{SkippedCommand, skip};
use gapless_engine::{OnPanic, Persistence, Policy, ServiceHost, ServiceHostOptions};
use gapless_journal::inspect::VerifyVerdict;
use gapless_journal::{ArchiveFormat, ArchiveOptions, Journal, JournalOptions, JournalReader, Retention, archive};
use gapless_testkit::wait::until;
use gapless_wire::mark::{LENGTH_MAX, Mark};
use gapless_wire::{Fragment, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use std::fs;
use std::path::Path;

fn dead_letter() -> Policy {
    Policy { on_panic: OnPanic::DeadLetter, ..Policy::default() }
}

fn with(directory: &Path, policy: Policy) -> ServiceHostOptions {
    ServiceHostOptions { policy, ..options(directory) }
}

fn refused(options: ServiceHostOptions) -> String {
    ServiceHost::start(Adder::default(), options).err().expect("the start is refused").to_string()
}

/// The service has added 10 and stopped at sequence 3; a command that adds 7 follows.
fn poisoned() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let host = start(options(directory.path()));
    let mut client = connect(directory.path());
    let key = client.open_session(5, 8).unwrap();
    assert_eq!(add(&mut client, key, 10), 10);
    send(&mut client, key, PANIC, b"?");
    send(&mut client, key, ADD, &[7]);
    let said = failure(&host);
    assert!(said.contains("`gapless journal skip DIRECTORY 3`"), "{said}");
    assert!(host.stop().is_err());
    directory
}

fn last_sequence(place: &Path) -> u64 {
    JournalReader::open(StreamLayout::new(place).journal()).unwrap().last_sequence().unwrap()
}

fn append(place: &Path, kind: Kind, fragment: Fragment, payload: &[u8]) {
    let journal = StreamLayout::new(place).journal();
    let stream_id = JournalReader::open(&journal).unwrap().stream_id();
    let options = JournalOptions { frame_length_max: 4096, ..JournalOptions::new(&journal, stream_id) };
    let (mut journal, _) = Journal::open(options).unwrap();
    let mut frame = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
    let mut writer = FrameWriter::new(&mut frame);
    writer.payload_mut()[..payload.len()].copy_from_slice(payload);
    let sequence = journal.last_sequence() + 1;
    let timestamp_ns = gapless_agent::Clock::system().now().epoch_ns;
    let (session, schema) = if kind == Kind::Command { (1, ADD) } else { (0, 0) };
    let header = FrameHeader { kind, sequence, timestamp_ns, session, schema, fragment, ..FrameHeader::default() };
    writer.finish(&header, payload.len());
    journal.append(&frame, sequence, sequence).unwrap();
    journal.close().unwrap();
}

#[test]
fn torn_message_is_removed() {
    let directory = poisoned();
    let place = directory.path();
    let whole = last_sequence(place);
    // End of the journal after a kill between two writes.
    (0..2).for_each(|index| append(place, Kind::Command, Fragment { index, count: 3 }, b"torn"));
    for part in 1..=2 {
        let said = skip(place, whole + part).unwrap_err().to_string();
        let expected = format!("a message that ends at {}, and the journal ends at {}", whole + 3, whole + 2);
        assert!(said.contains(&expected), "{said}");
    }
    assert_eq!(last_sequence(place), whole + 2, "a refusal truncates nothing");
    assert_eq!(skip(place, 3).unwrap(), SkippedCommand { sequence: 3, mark: whole + 1, is_repeated: false });
    assert_eq!(last_sequence(place), whole + 1);
    assert_eq!(verify(&StreamLayout::new(place)).unwrap().verdict(), VerifyVerdict::Whole);
    let host = start(options(place));
    let mut client = connect(place);
    let key = client.open_session(6, 8).unwrap();
    assert_eq!(add(&mut client, key, 1), if whole == 3 { 11 } else { 18 });
    host.stop().unwrap();
}

#[test]
fn skip_is_at_the_last_fragment() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let host = start(options(place));
    let mut client = connect(place);
    let key = client.open_session(5, 8).unwrap();
    // In three frames, at 2 to 4.
    send(&mut client, key, PANIC, &[0; 10_000]);
    let said = failure(&host);
    assert!(said.contains("`gapless journal skip DIRECTORY 4`"), "{said}");
    assert!(host.stop().is_err());
    for part in 2..=3 {
        let said = skip(place, part).unwrap_err().to_string();
        assert!(said.contains("whose handler is called at 4"), "{said}");
    }
    skip(place, 4).unwrap();
    let host = start(options(place));
    let mut client = connect(place);
    let key = client.open_session(6, 8).unwrap();
    assert_eq!(add(&mut client, key, 1), 1);
    host.stop().unwrap();
}

#[test]
fn second_mark_changes_nothing() {
    let directory = poisoned();
    let (place, layout) = (directory.path(), StreamLayout::new(directory.path()));
    let mark = skip(place, 3).unwrap().mark;
    let mut payload = [0; LENGTH_MAX];
    let length = Mark::Skipped { sequence: 3 }.write_to(&mut payload);
    append(place, Kind::Mark, Fragment::WHOLE, &payload[..length]);
    let report = verify(&layout).unwrap();
    assert_eq!((report.skips.as_slice(), report.verdict()), (&[(3, mark), (3, mark + 1)][..], VerifyVerdict::Whole));
    for line in [format!("3 at {mark}\n"), format!("3 at {}\n", mark + 1), String::new()] {
        fs::write(layout.skips(), line).unwrap();
        assert_eq!(skip(place, 3).unwrap(), SkippedCommand { sequence: 3, mark, is_repeated: true });
    }
    start(options(place)).stop().unwrap();
    for (sequence, expected) in [(0, "the journal holds 1 to"), (mark, "no command but a Mark")] {
        let said = skip(place, sequence).unwrap_err().to_string();
        assert!(said.contains(expected), "{sequence}: {said}");
    }
}

#[test]
fn empty_journal_has_no_skips() {
    let directory = tempfile::tempdir().unwrap();
    start(options(directory.path())).stop().unwrap();
    let said = skip(directory.path(), 1).unwrap_err().to_string();
    assert!(said.contains("the journal holds no frame yet"), "{said}");
}

fn write_past_the_mark(place: &Path, options: &ServiceHostOptions, segments: u64) -> (u64, u64) {
    let mark = skip(place, 3).unwrap().mark;
    let host = start(options.clone());
    let mut client = connect(place);
    let key = client.open_session(6, 8).unwrap();
    for _ in 0..segments * 70 {
        call(&mut client, key, ADD, &[0; 3_900]).unwrap();
    }
    let sum = add(&mut client, key, 1);
    host.snapshot().unwrap();
    host.stop().unwrap();
    (mark, sum)
}

fn sum_of(place: &Path, options: &ServiceHostOptions) -> u64 {
    let host = start(options.clone());
    let mut client = connect(place);
    let key = client.open_session(7, 8).unwrap();
    let sum = add(&mut client, key, 0);
    host.stop().unwrap();
    sum
}

#[test]
fn mark_goes_with_its_segment() {
    let directory = poisoned();
    let (place, layout) = (directory.path(), StreamLayout::new(directory.path()));
    let options = options(place);
    let retention = Retention { bytes_max: Some(256 << 10), age_max_ns: None };
    let options =
        ServiceHostOptions { persistence: Persistence { retention, ..options.persistence.clone() }, ..options };
    let (mark, sum) = write_past_the_mark(place, &options, 2);
    let host = start(options.clone());
    let first = || JournalReader::open(layout.journal()).unwrap().first_sequence();
    until("the segment of command and mark is deleted", || first() > mark);
    host.stop().unwrap();

    let said = skip(place, 3).unwrap_err().to_string();
    assert!(said.contains("handled or skipped before the snapshot at"), "{said}");
    assert_eq!(fs::read_to_string(layout.skips()).unwrap(), format!("3 at {mark}\n"));
    assert_eq!(verify(&layout).unwrap().verdict(), VerifyVerdict::Whole);
    let host = start(options.clone());
    let mut client = connect(place);
    let key = client.open_session(7, 8).unwrap();
    assert_eq!(add(&mut client, key, 1), sum + 1);
    send(&mut client, key, PANIC, b"?");
    failure(&host);
    assert!(host.stop().is_err());
    let poisoned = last_sequence(place);
    let mark = skip(place, poisoned).unwrap().mark;
    assert_eq!(fs::read_to_string(layout.skips()).unwrap(), format!("{poisoned} at {mark}\n"));
    assert_eq!(sum_of(place, &options), sum + 1);
}

#[test]
fn start_needs_no_archived_mark() {
    let directory = poisoned();
    let (place, layout) = (directory.path(), StreamLayout::new(directory.path()));
    let options = options(place);
    let (mark, sum) = write_past_the_mark(place, &options, 1);
    let archived = tempfile::tempdir().unwrap();
    let to = ArchiveOptions { place: archived.path().to_owned(), form: ArchiveFormat::Plain, before_sequence: None };
    let report = archive(&layout.journal(), &to, |_| {}).unwrap();
    assert!(report.archived.iter().any(|segment| segment.last_sequence >= mark), "{report:?}");
    archived.close().unwrap();
    assert!(layout.skips().exists() && JournalReader::open(layout.journal()).unwrap().first_sequence() <= mark);
    assert_eq!(sum_of(place, &options), sum);
}

#[test]
fn node_continues_after_the_skip() {
    let directory = poisoned();
    let place = directory.path();
    let layout = StreamLayout::new(place);
    let last = last_sequence(place);
    assert_eq!(skip(place, 3).unwrap(), SkippedCommand { sequence: 3, mark: last + 1, is_repeated: false });
    assert_eq!(skip(place, 3).unwrap(), SkippedCommand { sequence: 3, mark: last + 1, is_repeated: true });
    let report = verify(&layout).unwrap();
    assert_eq!((report.skips.as_slice(), report.verdict()), (&[(3, last + 1)][..], VerifyVerdict::Whole), "{report:?}");

    let host = start(options(place));
    let running = skip(place, 3).unwrap_err().to_string();
    assert!(running.contains(&format!("is in use by process {}", std::process::id())), "{running}");
    let letters = fs::read_to_string(layout.dead_letters()).unwrap();
    assert!(letters.contains("\"sequence\":3") && letters.contains("skipped by an operator"), "{letters}");
    let mut client = connect(place);
    let key = client.open_session(6, 8).unwrap();
    assert_eq!(add(&mut client, key, 1), if last == 3 { 11 } else { 18 });
    host.stop().unwrap();

    let (fold, _) = replay_copy(place, Adder::default(), Policy::default(), u64::MAX, &mut NoSink).unwrap();
    let state = fold.state();

    let file = fs::read(layout.skips()).unwrap();
    for (damaged, expected) in [
        // The handler panics before the replay reaches the mark.
        (None, "skip this sequence (`gapless journal skip DIRECTORY 3`"),
        (Some("2 at 4\n"), "the file is of another journal"),
        (Some("3 at 999\n"), "the file is of another journal"),
        (Some("3 at 2\n"), "it is damaged"),
        (Some("three\n"), "it is damaged"),
    ] {
        match damaged {
            None => fs::remove_file(layout.skips()).unwrap(),
            Some(text) => fs::write(layout.skips(), text).unwrap(),
        }
        let said = refused(options(place));
        assert!(said.contains(expected), "{damaged:?}: {said}");
        assert_eq!(verify(&layout).unwrap().verdict(), VerifyVerdict::Damaged, "{damaged:?}");
    }
    fs::remove_file(layout.skips()).unwrap();
    assert!(skip(place, 3).unwrap().is_repeated);
    assert_eq!(fs::read(layout.skips()).unwrap(), file);

    let host = start(options(place));
    host.snapshot().unwrap();
    host.stop().unwrap();
    fs::remove_file(layout.skips()).unwrap();
    let host = start(options(place));
    assert_eq!(verify_state(&host, place), state);
    host.stop().unwrap();
    assert_eq!(verify(&layout).unwrap().verdict(), VerifyVerdict::Whole);
}

fn verify_state(host: &ServiceHost, place: &Path) -> Vec<u8> {
    host.snapshot().unwrap();
    let copy = replay_copy(place, Adder::default(), Policy::default(), u64::MAX, &mut NoSink);
    copy.unwrap().0.state()
}

#[test]
fn fixed_handler_needs_the_file() {
    #[derive(Default)]
    struct Mended;
    impl gapless_engine::Service for Mended {
        fn handlers(handlers: &mut gapless_engine::Handlers<Self>) {
            for schema in [ADD, PANIC] {
                handlers.on_bytes(schema, |_, _, _| Ok(()));
            }
        }
        fn snapshot(&self, _: &mut Vec<u8>) {}
        fn restore(&mut self, _: &[u8]) -> Result<(), String> {
            Ok(())
        }
    }
    let directory = poisoned();
    let place = directory.path();
    let mark = skip(place, 3).unwrap().mark;
    fs::remove_file(StreamLayout::new(place).skips()).unwrap();
    fs::remove_file(StreamLayout::new(place).outputs()).unwrap();
    let said = ServiceHost::start(Mended, options(place)).err().expect("the skipped command was handled").to_string();
    assert!(said.contains(&format!("says at sequence {mark} that sequence 3 is skipped")), "{said}");
}

#[test]
fn handled_command_is_not_skipped() {
    let directory = poisoned();
    let place = directory.path();
    let said = |sequence| skip(place, sequence).unwrap_err().to_string();
    let held = said(999);
    assert!(said(2).contains("its outputs are recorded"), "{}", said(2));
    assert!(held.contains("the journal holds 1 to"), "{held}");
    fs::remove_file(StreamLayout::new(place).outputs()).unwrap();
    assert!(said(1).contains("no command but a SessionOpen"), "{}", said(1));
    assert!(!StreamLayout::new(place).skips().exists());
    assert_eq!(said(999), held, "a refused skip appends nothing");
    skip(place, 3).unwrap();
    let host = start(options(place));
    let at = host.snapshot().unwrap();
    host.stop().unwrap();
    assert!(said(3).contains(&format!("before the snapshot at {at}")), "{}", said(3));
    for (kind, expected) in [
        ("member", "gapless cluster skip"),
        ("stream", "no handler runs"),
        ("relay", "no handler runs"),
        ("bus", "refuses its command"),
    ] {
        let record = fs::read_to_string(place.join("directory")).unwrap();
        let (plain, _) = record.split_once("check ").unwrap();
        fs::write(place.join("directory"), plain.replace("kind service", &format!("kind {kind}"))).unwrap();
        assert!(said(3).contains(expected), "{kind}: {}", said(3));
        fs::write(place.join("directory"), record).unwrap();
    }
    let empty = tempfile::tempdir().unwrap();
    assert!(skip(empty.path(), 1).unwrap_err().to_string().contains("there is no journal"));
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn interrupted_frame_bounds_skips() {
    let directory = poisoned();
    let (place, layout) = (directory.path(), StreamLayout::new(directory.path()));
    // State of a process killed at sequence 3 without recorded outputs.
    fs::remove_file(layout.outputs()).unwrap();
    let counters = gapless_agent::Counters::create(layout.counters(), 1).unwrap();
    let handling = counters.add("service.handling_sequence").unwrap();
    handling.set(3);
    let said = skip(place, 2).unwrap_err().to_string();
    assert!(said.contains("it was handled: the process before was ended at sequence 3"), "{said}");
    let mark = skip(place, 3).unwrap().mark;
    // With a later sequence in progress the file is rewritten too.
    handling.set(mark + 1);
    fs::remove_file(layout.skips()).unwrap();
    assert_eq!(skip(place, 3).unwrap(), SkippedCommand { sequence: 3, mark, is_repeated: true });
    assert!(layout.skips().exists());
}

#[test]
fn another_user_is_refused() {
    let directory = poisoned();
    let layout = StreamLayout::new(directory.path());
    if std::os::unix::fs::chown(layout.journal(), Some(12345), None).is_err() {
        // Only root can change the owner of a folder.
        return;
    }
    let said = skip(directory.path(), 3).unwrap_err().to_string();
    assert!(said.contains("run this as user 12345") && !layout.skips().exists(), "{said}");
}

#[test]
fn damaged_file_is_found_first() {
    let directory = poisoned();
    let layout = StreamLayout::new(directory.path());
    let before = last_sequence(directory.path());
    fs::write(layout.skips(), "three\n").unwrap();
    let said = skip(directory.path(), 3).unwrap_err().to_string();
    assert!(said.contains("it is damaged") && last_sequence(directory.path()) == before, "{said}");
}

#[test]
fn fault_rules_hold_for_life() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let host = start(with(place, dead_letter()));
    let mut client = connect(place);
    let key = client.open_session(5, 8).unwrap();
    assert_eq!(add(&mut client, key, 10), 10);
    assert!(call(&mut client, key, PANIC, b"?").is_err());
    assert_eq!(add(&mut client, key, 1), 11);
    host.stop().unwrap();
    let fixed = "the stream says for its whole life that a panic is a dead letter (on_panic DeadLetter)";
    let said = refused(options(place));
    assert!(said.contains(fixed), "{said}");
    let replayed = replay_copy(place, Adder::default(), Policy::default(), u64::MAX, &mut NoSink);
    assert_eq!(replayed.unwrap().0.state(), 11u64.to_le_bytes());
    let host = start(with(place, dead_letter()));
    host.snapshot().unwrap();
    host.stop().unwrap();
    assert!(refused(options(place)).contains(fixed));
    start(with(place, dead_letter())).stop().unwrap();
}

#[test]
fn stopped_stream_can_adopt_rules() {
    let directory = poisoned();
    let place = directory.path();
    let host = start(with(place, dead_letter()));
    let mut client = connect(place);
    let key = client.open_session(6, 8).unwrap();
    assert!(call(&mut client, key, PANIC, b"?").is_err());
    assert!(add(&mut client, key, 1) >= 11);
    host.snapshot().unwrap();
    host.stop().unwrap();
    let said = refused(options(place));
    assert!(said.contains("for its whole life"), "{said}");
}
