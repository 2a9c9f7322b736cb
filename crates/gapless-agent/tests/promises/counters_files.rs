#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::Write;
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gapless_agent::counters::descriptor;
use gapless_agent::{Counters, CountersReader, Error};
use gapless_testkit::process::{Process, this_program};
use proptest::prelude::*;

const PATH: &str = "GAPLESS_TEST_COUNTERS_PATH";

/// Code of the other process, if the environment gives it a path.
#[test]
fn owner_process() {
    let Ok(path) = std::env::var(PATH) else { return };
    let counters = Counters::create(path, 8).unwrap();
    let frames = counters.add("frames").unwrap();
    frames.set(41);
    frames.add(1);
    counters.add("bytes").unwrap().set(u64::MAX);
    println!("ready");
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

struct Owner {
    process: Process,
    input: ChildStdin,
}

impl Owner {
    fn start(path: &std::path::Path) -> Self {
        let mut command = this_program();
        command.args(["--exact", "counters_files::owner_process", "--nocapture"]).env(PATH, path).stdin(Stdio::piped());
        let mut process = Process::start(&mut command);
        while !process.line().contains("ready") {}
        let input = process.input();
        Self { process, input }
    }

    fn id(&self) -> u32 {
        self.process.pid().as_raw_nonzero().get() as u32
    }
}

#[test]
fn dead_owners_file_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("counters");
    let owner = Owner::start(&path);
    let reader = CountersReader::open(&path).unwrap();
    assert_eq!(reader.read().unwrap(), [("frames".to_owned(), 42), ("bytes".to_owned(), u64::MAX)]);
    assert_eq!(reader.owner_pid(), owner.id());
    assert!(!reader.is_removed());
    match Counters::create(&path, 8) {
        Err(Error::CountersInUse { pid, .. }) => assert_eq!(pid, owner.id()),
        other => panic!("the owner lives: {other:?}"),
    }
    drop(owner);
    assert!(path.exists(), "a killed owner cannot remove it");
    assert_eq!(reader.read().unwrap()[0], ("frames".to_owned(), 42), "the last values can still be read");
    let ours = Counters::create(&path, 4).unwrap();
    assert!(reader.is_removed());
    ours.add("mine").unwrap().set(7);
    assert_eq!(CountersReader::open(&path).unwrap().read().unwrap(), [("mine".to_owned(), 7)]);
    drop(ours);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "its owner removes it, and no draft is left");
}

#[test]
fn orderly_end_removes_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("counters");
    let mut owner = Owner::start(&path);
    owner.input.write_all(b"\n").unwrap();
    assert!(owner.process.wait().success());
    assert!(!path.exists());
}

#[test]
fn file_of_zeros_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("counters");
    for length in [0, 1, 63, 64, 5_000] {
        std::fs::write(&path, vec![0; length]).unwrap();
        drop(Counters::create(&path, 4).unwrap());
        assert!(!path.exists(), "{length} bytes");
    }
}

#[test]
fn foreign_file_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("precious");
    std::fs::write(&path, "not counters").unwrap();
    let error = Counters::create(&path, 4).unwrap_err().to_string();
    assert!(error.contains("left alone") && error.contains("precious"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "not counters");
    let error = Counters::create(directory.path(), 4).unwrap_err().to_string();
    assert!(error.contains("no regular file"), "{error}");
    let error = Counters::create(directory.path().join("missing/counters"), 4).unwrap_err().to_string();
    assert!(error.contains("missing/counters") && error.contains("create it"), "{error}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no draft is left");
}

#[test]
fn link_to_counters_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let [real, link] = ["real", "link"].map(|name| directory.path().join(name));
    let _counters = Counters::create(&real, 4).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let read = CountersReader::open(&link).unwrap_err().to_string();
    let made = Counters::create(&link, 4).unwrap_err().to_string();
    for error in [read, made] {
        assert!(error.contains("it is a link, which is not followed"), "{error}");
    }
    assert_eq!(CountersReader::open(&real).unwrap().read().unwrap(), []);
}

#[test]
fn limits_are_errors() {
    let counters = Counters::in_memory(2).unwrap();
    for label in ["", "tab\tbed", &"x".repeat(125)] {
        let error = counters.add(label).unwrap_err();
        assert!(matches!(error, Error::CounterLabel { .. }), "{error}");
    }
    let first = counters.add(&"x".repeat(124)).unwrap();
    assert!(counters.add(&"x".repeat(124)).unwrap_err().to_string().contains("taken"));
    let second = counters.add("größe").unwrap();
    assert!(matches!(counters.add("third"), Err(Error::CountersFull { asked: 3, limit: 2 })));
    first.add(u64::MAX);
    first.add(3);
    second.set(5);
    assert_eq!(counters.values(), [("x".repeat(124), 2), ("größe".to_owned(), 5)]);
    drop(counters);
    assert_eq!(second.get(), 5, "a counter outlives its set");
    for capacity in [0, descriptor::CAPACITY_MAX + 1, usize::MAX] {
        assert!(matches!(Counters::in_memory(capacity), Err(Error::CountersFull { .. })));
    }
}

fn good_file() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("counters");
    let counters = Counters::create(&path, 3).unwrap();
    counters.add("one").unwrap().set(1);
    counters.add("two").unwrap().set(2);
    std::fs::read(&path).unwrap()
}

fn read(bytes: &[u8]) -> Result<Vec<(String, u64)>, Error> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("counters");
    std::fs::write(&path, bytes).unwrap();
    CountersReader::open(&path)?.read()
}

#[test]
fn damage_is_located() {
    let good = good_file();
    assert_eq!(read(&good).unwrap().len(), 2);
    for length in 0..good.len() {
        let error = read(&good[..length]).unwrap_err();
        assert!(matches!(error, Error::CountersDamaged { .. }), "{length}: {error}");
    }
    for (position, value, place) in [
        (0, b'g', "byte 0"),
        (descriptor::VERSION_OFFSET, 2, "byte 8"),
        (descriptor::CAPACITY_OFFSET, 0, "byte 12"),
        (descriptor::CAPACITY_OFFSET + 3, 0xff, "byte 12"),
        (descriptor::USED_OFFSET, 4, "byte 16"),
        (descriptor::USED_OFFSET + 3, 0x80, "byte 16"),
        (descriptor::label_offset(1), 0, "byte 256"),
        (descriptor::label_offset(1) + 3, 0xff, "byte 256"),
        (descriptor::label_offset(1) + 4, 0xff, "byte 256"),
    ] {
        let mut bytes = good.clone();
        bytes[position] = value;
        let error = read(&bytes).unwrap_err().to_string();
        assert!(error.contains(place), "{position}: {error}");
    }
}

#[test]
fn shrunk_open_file_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("counters");
    std::fs::write(&path, good_file()).unwrap();
    let reader = CountersReader::open(&path).unwrap();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(200).unwrap();
    assert!(matches!(reader.read(), Err(Error::CountersDamaged { .. })));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(changes in proptest::collection::vec((0_usize..900, any::<u8>()), 0..30)) {
        let mut bytes = good_file();
        for (position, value) in changes {
            let last = bytes.len() - 1;
            bytes[position.min(last)] = value;
        }
        if let Ok(counters) = read(&bytes) {
            prop_assert!(counters.len() <= 3);
        }
    }
}

#[test]
fn values_are_never_torn() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("counters");
    let counters = Counters::create(&path, 1).unwrap();
    let counter = counters.add("all or nothing").unwrap();
    let reader = CountersReader::open(&path).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let done = done.clone();
        move || {
            while !done.load(Ordering::Relaxed) {
                counter.set(u64::MAX);
                counter.set(0);
            }
        }
    });
    for _ in 0..20_000 {
        let value = reader.read().unwrap()[0].1;
        if value != 0 && value != u64::MAX {
            done.store(true, Ordering::Relaxed);
            panic!("torn: {value:x}");
        }
    }
    done.store(true, Ordering::Relaxed);
    writer.join().unwrap();
}
