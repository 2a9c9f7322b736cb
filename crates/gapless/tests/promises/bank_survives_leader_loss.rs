//! The members end with the example, for whatever reason.

use crate::ledger_process::{Run, example};
use gapless_testkit::wait::until;
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;

fn bank(folder: &Path, transfers: &str) -> Run {
    let mut command = Command::new(example("bank"));
    command.env("TMPDIR", folder).args(["--cluster", "--accounts", "20", "--transfers", transfers]);
    Run::start(&mut command)
}

fn processes_of(folder: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap();
    let command_lines = processes.filter_map(|entry| std::fs::read(entry.unwrap().path().join("cmdline")).ok());
    command_lines.filter(|line| String::from_utf8_lossy(line).contains(folder.to_str().unwrap())).count()
}

#[test]
fn no_transfer_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let report = bank(folder.path(), "6000").end().report();
    let lines: Vec<&str> = report.lines().collect();
    for member in 1..=3 {
        let has = |line: &&str| {
            line.starts_with(&format!("member {member} has ")) && line.contains("no account is overdrawn")
        };
        assert!(lines.iter().any(has), "{report}");
    }
    assert!(report.contains(" is killed\n") && report.contains(" is started again\n"), "{report}");
    assert_eq!(lines.last(), Some(&"each has the transfers that were accepted, and no other"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no file is left");
}

#[test]
fn members_end_with_a_killed_bank() {
    let folder = tempfile::tempdir().unwrap();
    let run = bank(folder.path(), "100000000");
    until("the members run", || processes_of(folder.path()) == 3);
    run.signal(Signal::KILL);
    assert!(run.end().was_killed());
    until("the members have ended", || processes_of(folder.path()) == 0);
}
