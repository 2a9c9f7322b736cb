//! No process outlives the parent, however that ends.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::ledger_process::{self, Run, example};
use gapless_testkit::wait::until;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROCESSES: [&str; 7] = ["sequencer", "entry-1", "entry-2", "entry-3", "matching-1", "matching-2", "reader"];

fn market(place: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(example("market"));
    command.env("TMPDIR", place).args(options);
    command
}

fn adds_up(transport: &str) {
    let place = tempfile::tempdir().unwrap();
    let options = ["--transport", transport, "--orders", "500", "--orders-per-second", "400", "--kill-an-instance"];
    let ended = Run::start(&mut market(place.path(), &options)).end();
    let out = ended.report();
    assert!(out.ends_with("\neverything adds up\n"), "{out}");
    let lines = |beginning: &str| out.lines().filter(|line| line.starts_with(beginning)).count();
    for name in PROCESSES {
        assert!(lines(&format!("{name:<10} | ")) > 0, "{name} is seen: {out}");
    }
    assert!(out.contains("was killed after") && out.contains("is started again"), "{out}");
    assert!(lines("right  ") >= 12 && lines("WRONG") == 0, "{out}");
    assert!(out.contains("had one outcome at its entry node   1500 of 1500"), "{out}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "it cleans up");
}

#[test]
fn over_shared_memory() {
    adds_up("shared-memory");
}

#[test]
fn over_udp() {
    adds_up("udp");
}

#[test]
fn over_multicast() {
    adds_up("multicast");
}

#[test]
fn over_tcp() {
    adds_up("tcp");
}

/// All processes but the first name something in `place`.
fn processes_of(place: &Path) -> Vec<PathBuf> {
    let place = place.as_os_str().as_encoded_bytes();
    let names_it = |process: &PathBuf| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        line.windows(place.len()).any(|part| part == place)
    };
    std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()).filter(names_it).collect()
}

fn ended_by(signal: Signal) -> (tempfile::TempDir, ledger_process::Ended) {
    let place = tempfile::tempdir().unwrap();
    let run = Run::start(&mut market(place.path(), &["--seconds", "600", "--orders-per-second", "100"]));
    until("all processes run", || processes_of(place.path()).len() == PROCESSES.len());
    run.signal(signal);
    let ended = run.end();
    until("a process outlives the market", || processes_of(place.path()).is_empty());
    (place, ended)
}

#[test]
fn stopped_market_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let (place, ended) = ended_by(signal);
        assert_eq!(ended.status.code(), Some(130), "{}", ended.err);
        assert!(String::from_utf8_lossy(&ended.out).ends_with("stopped; nothing is left behind\n"));
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "it cleans up");
    }
}

#[test]
fn killed_market_ends_its_processes() {
    let (_place, ended) = ended_by(Signal::KILL);
    assert!(ended.was_killed());
}
