#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bench_process::{LongRun, rows};
use crate::program::{ProgramOutput, gapless, names, run};
use crate::turn;
use gapless_testkit::wait::until;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

#[test]
fn every_system_has_its_rows() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let ended = run(directory.path(), &["bench", "--quick", "--json", "out.json"]);
    let printed = ended.stderr.clone();
    let table = ended.good();
    assert_eq!(names(directory.path()), ["out.json"], "nothing else is left");
    let report: Value = serde_json::from_slice(&std::fs::read(directory.path().join("out.json")).unwrap()).unwrap();
    assert_eq!(report["benchmark"], "overview");
    for (part, count, published) in
        [("service", 4, 1), ("sequencer", 4, 4), ("calls", 5, 4), ("events", 6, 4), ("commands", 4, 1), ("kills", 3, 0)]
    {
        let of_part: Vec<&Value> = rows(&report).iter().filter(|row| row["config"]["part"] == part).collect();
        assert_eq!(of_part.len(), count, "{part}: {of_part:?}");
        assert_eq!(of_part.iter().filter(|row| row["answers"].is_string()).count(), published, "{part}");
        let begins = |line: &&str| line.starts_with(part) && line.contains("begins after");
        assert_eq!(printed.lines().filter(begins).count(), 1, "{part}: {printed}");
        for row in of_part {
            assert_eq!(row["verified"], true, "{row}");
            assert!(row["shown"]["ours"].as_f64().is_some_and(|ours| ours > 0.0), "{row}");
            let name = row["config"]["name"].as_str().unwrap();
            assert!(printed.contains(name) && table.contains(name), "{name}: {printed}");
        }
    }
    let has_ratio = |row: &&Value| row["floor_ratio"].as_f64().is_some_and(|ratio| ratio > 0.0);
    assert!(rows(&report).iter().filter(has_ratio).count() >= 20, "{report}");
    for line in ["all is well", ", memory, sbe,"] {
        assert!(!printed.contains(line), "a line of another benchmark: {printed}");
    }
    let kafka = "not measured: calls over Kafka";
    for text in ["published (system, machine, year)", "floor here", "Enduro/X", "a short run", kafka] {
        assert!(table.contains(text), "{text}: {table}");
    }
}

#[test]
fn only_the_named_parts_are_measured() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let report: Value =
        serde_json::from_str(&run(directory.path(), &["bench", "--quick", "--only", "commands", "--json", "-"]).good())
            .unwrap();
    assert!(rows(&report).len() == 4 && rows(&report).iter().all(|row| row["config"]["part"] == "commands"));
    assert!(names(directory.path()).is_empty());
}

#[test]
fn missing_peers_are_named() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let mut command = gapless(directory.path(), &["bench", "--quick", "--only", "commands"]);
    let ended: ProgramOutput = command.env("PATH", directory.path()).output().unwrap().into();
    let table = ended.good();
    assert!(table.contains("not measured: java is not on the PATH: apt install"), "{table}");
}

#[test]
fn an_interrupt_keeps_measured_rows() {
    let directory = tempfile::tempdir().unwrap();
    let run = LongRun::start(directory.path(), &["--json", "out.json"]);
    until("a row begins", || names(directory.path()).iter().any(|name| name.starts_with(".gapless")));
    kill_process(run.pid(), Signal::INT).unwrap();
    let table = run.end().interrupted();
    assert!(table.contains("interrupted"), "{table}");
    assert_eq!(names(directory.path()), ["out.json"]);
}
