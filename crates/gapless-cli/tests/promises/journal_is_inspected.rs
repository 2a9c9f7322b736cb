#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{gapless, names, run};
use gapless_journal::{Journal, JournalOptions};
use gapless_testkit::process::Process;
use gapless_wire::control::TimerFired;
use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use serde_json::Value;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const SEGMENT_LENGTH: u64 = 64 << 10;
/// 2023-11-14T22:13:20Z.
const BEGIN_NS: u64 = 1_700_000_000_000_000_000;

fn open(node: &Path) -> Journal {
    let directory = node.join("journal");
    std::fs::create_dir_all(&directory).unwrap();
    let mut options = JournalOptions::new(directory, 0xabc);
    options.segment_length_bytes = SEGMENT_LENGTH;
    options.frame_length_max = 2048;
    Journal::open(options).unwrap().0
}

fn append(journal: &mut Journal, count: u64) {
    for sequence in journal.last_sequence() + 1..=journal.last_sequence() + count {
        append_frame(journal, Kind::Command, &[sequence as u8; 100]);
    }
    journal.commit().unwrap();
}

fn append_frame(journal: &mut Journal, kind: Kind, payload: &[u8]) {
    let sequence = journal.last_sequence() + 1;
    let mut bytes = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
    let mut writer = FrameWriter::new(&mut bytes);
    writer.payload_mut()[..payload.len()].copy_from_slice(payload);
    let header = FrameHeader {
        kind,
        sequence,
        timestamp_ns: BEGIN_NS + sequence,
        session: 7,
        session_seq: sequence,
        schema: 1 << 16 | 2,
        ..FrameHeader::default()
    };
    writer.finish(&header, payload.len());
    journal.append(&bytes, sequence, sequence).unwrap();
}

fn segments(node: &Path) -> Vec<PathBuf> {
    let journal = node.join("journal");
    names(&journal).iter().filter(|name| name.ends_with(".segment")).map(|name| journal.join(name)).collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn sound_journal_is_verified() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = open(directory.path());
    append(&mut journal, 1000);
    for place in [".", "journal"] {
        let text = run(directory.path(), &["journal", "verify", place]).good();
        for expected in ["frames 1000 ", "sequences 1..=1000", "\nwhole\n"] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(text.contains(&format!("segments {}\n", segments(directory.path()).len())), "{text}");
    }
    drop(journal);
}

#[test]
fn consensus_records_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = open(directory.path());
    append(&mut journal, 10);
    journal.append_record(b"an entry").unwrap();
    journal.append_checkpoint(b"all that is kept").unwrap();
    append(&mut journal, 10);
    // The journal of a member, whose small files are not here.
    assert!(run(directory.path(), &["journal", "verify", "."]).error(1).contains("instance is missing"));
    let text = run(directory.path(), &["journal", "verify", "journal"]).good();
    assert!(text.contains("frames 20 ") && text.contains("records of consensus 2 (152 bytes)"), "{text}");
    assert!(text.contains("the newest checkpoint at byte ") && text.ends_with("\nwhole\n"), "{text}");
    let text = run(directory.path(), &["journal", "info", "."]).good();
    assert!(text.contains(", records, newest checkpoint at byte "), "{text}");
    let info = json(&run(directory.path(), &["journal", "info", ".", "--json"]).good());
    let segment = &info["segments"][0];
    assert!(segment["records"] == true && segment["checkpoint_position"].as_u64().unwrap() > 8192, "{info}");
    drop(journal);
}

#[test]
fn damage_has_segment_and_position() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = open(directory.path());
    append(&mut journal, 1000);
    journal.close().unwrap();
    let hit = segments(directory.path()).remove(1);
    let position = gapless_journal::descriptor::frames_offset(SEGMENT_LENGTH) + 70;
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&hit).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, position).unwrap();
    file.write_all_at(&[byte[0] ^ 1], position).unwrap();
    let ended = run(directory.path(), &["journal", "verify", "."]);
    let damage = ended.stdout.lines().find(|line| line.starts_with("damage: ")).unwrap().to_owned();
    let name = hit.file_name().unwrap().to_str().unwrap();
    assert!(damage.contains(name) && damage.contains("at byte"), "{damage}");
    assert!(ended.stdout.ends_with("DAMAGED\n"), "{}", ended.stdout);
    assert!(ended.error(1).contains("1 damage; the first: "));
    let ended = run(directory.path(), &["journal", "dump", "."]);
    let last = ended.stdout.lines().last().unwrap();
    let sequence: u64 = last.split(' ').next().unwrap().parse().unwrap();
    assert!(sequence > 100 && sequence < 1000, "{last}");
    assert!(ended.error(1).contains(name));
}

#[test]
fn dump_has_a_line_for_each_frame() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = open(directory.path());
    append(&mut journal, 500);
    let whole = run(directory.path(), &["journal", "dump", "."]).good();
    assert_eq!(whole.lines().count(), 500);
    let part = run(directory.path(), &["journal", "dump", ".", "--from", "3", "--to", "5"]).good();
    let lines: Vec<&str> = part.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], "3 2023-11-14T22:13:20.000000003Z command session 7 seq 3 schema 1:2 164 bytes");
    let payload = run(directory.path(), &["journal", "dump", ".", "--from", "3", "--to", "3", "--payload"]).good();
    assert_eq!(payload.trim_end(), format!("{} {}", lines[0], "03".repeat(100)));
    let objects = run(directory.path(), &["journal", "dump", ".", "--from", "499", "--json", "--payload"]).good();
    let objects: Vec<Value> = objects.lines().map(json).collect();
    assert_eq!(objects.len(), 2);
    assert_eq!((&objects[1]["sequence"], &objects[1]["session"]), (&500.into(), &7.into()));
    assert_eq!((&objects[1]["kind"], &objects[1]["length"]), (&"command".into(), &164.into()));
    assert_eq!((&objects[1]["schema_id"], &objects[1]["template_id"]), (&1.into(), &2.into()));
    assert_eq!(objects[1]["payload"], "f4".repeat(100));
    assert_eq!(objects[1]["timestamp_ns"], BEGIN_NS + 500);
    let beyond = run(directory.path(), &["journal", "dump", ".", "--from", "900"]).error(1);
    assert!(beyond.contains("900"), "{beyond}");
}

#[test]
fn dump_shows_timer_and_due_time() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = open(directory.path());
    let timer = |deadline_ns| TimerFired { timer: 10, deadline_ns }.to_bytes();
    append_frame(&mut journal, Kind::Timer, &timer(BEGIN_NS - 5));
    append_frame(&mut journal, Kind::TimerRequest, &timer(0));
    journal.commit().unwrap();
    let text = run(directory.path(), &["journal", "dump", "."]).good();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with(" bytes timer 10 due 2023-11-14T22:13:19.999999995Z"), "{text}");
    assert!(lines[1].ends_with(" bytes timer 10 taken back"), "{text}");
    let object = json(run(directory.path(), &["journal", "dump", ".", "--to", "1", "--json"]).good().trim_end());
    assert_eq!((&object["timer"], &object["deadline_ns"]), (&10.into(), &(BEGIN_NS - 5).into()));
}

#[test]
fn info_names_the_lock_holder() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = open(directory.path());
    append(&mut journal, 1000);
    std::fs::create_dir(directory.path().join("snapshots")).unwrap();
    for name in ["00000000000000000400.snapshot", "00000000000000000900.snapshot"] {
        std::fs::write(directory.path().join("snapshots").join(name), "").unwrap();
    }
    let held = json(&run(directory.path(), &["journal", "info", ".", "--json"]).good());
    let holder = held["lock_holder"].as_str().unwrap();
    assert!(holder.contains(&format!("process {}", std::process::id())), "{holder}");
    assert_eq!(held["stream_id"], format!("{:032x}", 0xabc));
    assert_eq!(held["incarnation"], format!("{:016x}", journal.incarnation()));
    assert_eq!((&held["first_sequence"], &held["journaled_sequence"]), (&1.into(), &1000.into()));
    assert_eq!((&held["good_mark"]["sequence"], &held["same_boot"]), (&1000.into(), &true.into()));
    assert_eq!(held["snapshots"], serde_json::json!([400, 900]));
    let paths = segments(directory.path());
    assert_eq!(held["segments"].as_array().unwrap().len(), paths.len());
    assert_eq!(held["segments"][0]["length_bytes"], SEGMENT_LENGTH);
    assert_eq!((&held["segments"][0]["first_sequence"], &held["segments"][0]["sealed"]), (&1.into(), &true.into()));
    let text = run(directory.path(), &["journal", "info", "journal"]).good();
    assert!(text.contains("snapshots 400, 900\n") && text.contains("lock held by process"), "{text}");
    journal.close().unwrap();
    let free = json(&run(directory.path(), &["journal", "info", ".", "--json"]).good());
    assert_eq!((&free["lock_holder"], &free["synced_sequence"]), (&Value::Null, &1000.into()));
}

#[test]
fn missing_journal_is_one_line_error() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("empty")).unwrap();
    for action in ["verify", "dump", "tail", "info"] {
        let missing = run(directory.path(), &["journal", action, "missing"]).error(1);
        assert!(missing.contains("missing"), "{missing}");
        let empty = run(directory.path(), &["journal", action, "empty"]).error(1);
        assert!(empty.contains("empty"), "{empty}");
    }
    assert!(names(&directory.path().join("empty")).is_empty(), "looking writes nothing");
}

fn tail(directory: &Path, words: &[&str]) -> Process {
    let words: Vec<&str> = ["journal", "tail", "."].iter().chain(words).copied().collect();
    Process::start(gapless(directory, &words).stderr(Stdio::piped()))
}

#[test]
fn tail_follows_until_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = open(directory.path());
    append(&mut journal, 100);
    let mut tail = tail(directory.path(), &["-n", "3", "--json"]);
    let mut next = || json(&tail.line())["sequence"].as_u64().unwrap();
    assert_eq!([next(), next(), next()], [98, 99, 100]);
    append(&mut journal, 900);
    for sequence in 101..=1000 {
        assert_eq!(next(), sequence);
    }
    tail.interrupt();
    assert_eq!(tail.wait_end("the end of the tail").code(), Some(0));
}

#[test]
fn closed_pipe_ends_output_silently() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = open(directory.path());
    append(&mut journal, 1000);
    let mut idle = tail(directory.path(), &["-n", "1"]);
    let first = idle.line();
    assert!(first.starts_with("1000 "), "{first}");
    idle.stop_reading();
    assert_eq!(idle.wait_end("the end of the tail").code(), Some(0));
    let mut dump =
        Process::start(gapless(directory.path(), &["journal", "dump", ".", "--payload"]).stderr(Stdio::piped()));
    dump.stop_reading();
    assert_eq!(dump.wait_end("the end of the dump").code(), Some(0));
    for ended in [&mut idle, &mut dump] {
        assert_eq!(ended.errors(), "");
    }
}
