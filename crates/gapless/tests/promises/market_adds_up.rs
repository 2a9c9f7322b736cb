//! No process outlives the parent, however that ends.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::ledger_process::{self, Run, example};
use gapless_testkit::wait::until;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROCESSES: [&str; 6] = ["sequencer", "entry-1", "entry-2", "entry-3", "matching-1", "matching-2"];

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
    assert!(out.ends_with("floor      | everything adds up\n"), "{out}");
    let lines = |beginning: &str| out.lines().filter(|line| line.starts_with(beginning)).count();
    for name in PROCESSES.iter().chain(&["reader"]) {
        assert!(lines(&format!("{name:<10} | ")) > 0, "{name} is seen: {out}");
    }
    assert!(out.contains("was killed after") && out.contains("is started again"), "{out}");
    assert_eq!((lines("right  "), lines("WRONG")), (9, 0), "{out}");
    assert!(out.contains("requests with one outcome            1500 of 1500"), "{out}");
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

/// All processes but the first run in `place`.
fn processes_in(place: &Path) -> Vec<PathBuf> {
    let place = place.canonicalize().unwrap();
    let is_in = |process: &PathBuf| process.join("cwd").read_link().is_ok_and(|cwd| cwd.starts_with(&place));
    std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()).filter(is_in).collect()
}

fn ended_by(signal: Signal) -> (tempfile::TempDir, ledger_process::Ended) {
    let place = tempfile::tempdir().unwrap();
    let run = Run::start(&mut market(place.path(), &["--orders", "60000", "--orders-per-second", "100"]));
    until("all processes run", || processes_in(place.path()).len() == PROCESSES.len());
    run.signal(signal);
    let ended = run.end();
    until("no process outlives the market", || processes_in(place.path()).is_empty());
    (place, ended)
}

#[test]
fn stopped_market_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let (place, ended) = ended_by(signal);
        assert_eq!(ended.status.code(), Some(130), "{}", ended.err);
        assert!(ended.err.ends_with("stopped; nothing is left behind\n"), "{}", ended.err);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "it cleans up");
    }
}

#[test]
fn killed_market_ends_its_processes() {
    let (_place, ended) = ended_by(Signal::KILL);
    assert!(ended.was_killed());
}
