#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bench_process::{LongRun, rows};
use crate::program::names;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

#[test]
fn printed_rows_outlive_a_signal() {
    for (words, first) in [
        ("rpc curve --systems gapless", "system: gapless; waiting: blocking; what: call; bytes: 1; a second: "),
        ("rpc payloads", "ends: one process; way: one way; bytes: 72; calls/s: "),
        ("rpc faults --kills 3", "killed: gapless, one instance of 1; repeated: not begun; kills: 3; calls: "),
        ("supervisor --instances 3", "what: up; target: "),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let words: Vec<&str> = words.split(' ').chain(["--json", "out.json"]).collect();
        let mut run = LongRun::start(directory.path(), &words);
        let line = run.first_line();
        kill_process(run.pid(), Signal::TERM).unwrap();
        let table = run.end().interrupted();
        assert!(line.starts_with(first), "{line}");
        assert!(table.contains("interrupted: the rows that are missing"), "{table}");
        assert_eq!(names(directory.path()), ["out.json"]);
        let text = std::fs::read_to_string(directory.path().join("out.json")).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        assert!(!rows(&report).is_empty(), "{text}");
    }
}
