#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bench_process::{self, LongRun, processes_of, rows};
use crate::program::{names, run};
use gapless_testkit::wait::until_some;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;

fn report(part: &str, count: &str) -> Value {
    let (report, table) = bench_process::report(part, &["--count", count], &["out.json"]);
    assert!(!report["floor"].as_array().unwrap().is_empty(), "{report}");
    for row in rows(&report) {
        let name = row["config"]["name"].as_str().unwrap();
        assert!(table.contains(name), "{name} is in the table: {table}");
        assert!(row.get("latency_ns").is_some() || row.get("throughput_per_s").is_some(), "{row}");
        assert!(row["floor_ratio"].is_number(), "{row}");
        let floor = row["floor_name"].as_str().unwrap();
        assert!(report["floor"].as_array().unwrap().iter().any(|row| row["name"] == floor), "{floor}");
        assert_ne!(row["verified"], false);
    }
    report
}

fn rows_named<'a>(report: &'a Value, part_of_name: &str) -> Vec<&'a Value> {
    rows(report).iter().filter(|row| row["config"]["name"].as_str().unwrap().contains(part_of_name)).collect()
}

#[test]
fn serialization_covers_both_ways() {
    let report = report("serialization", "1000");
    for name in ["encode", "decode"] {
        let encodings: Vec<_> = rows_named(&report, name).iter().map(|row| row["config"]["encoding"].clone()).collect();
        assert_eq!(encodings, ["sbe.serial", "sbe.random", "protobuf.serial", "protobuf.random"]);
    }
}

#[test]
fn log_covers_ring_and_window() {
    let report = report("log", "2000");
    for name in ["ring, one way, 16", "ring, one way, 1 ", "window, one way"] {
        let bytes: Vec<_> =
            rows_named(&report, name).iter().map(|row| row["config"]["payload_bytes"].clone()).collect();
        assert_eq!(bytes, [64, 256, 1024], "{name}");
    }
    for row in rows_named(&report, "there and back") {
        assert_eq!((&row["config"]["payload_bytes"], &row["latency_ns"]["count"]), (&256.into(), &200.into()));
    }
}

fn partner_of(parent: Pid) -> Option<Pid> {
    let is_its = |partner: &Pid| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", partner.as_raw_nonzero())).unwrap_or_default();
        status.contains(&format!("\nPPid:\t{}\n", parent.as_raw_nonzero()))
    };
    processes_of(&["child", "log-partner"]).into_iter().find(is_its)
}

fn has_ended(partner: Pid) -> bool {
    !processes_of(&["child", "log-partner"]).contains(&partner)
}

fn long_run(directory: &Path) -> (LongRun, Pid) {
    let run = LongRun::start(directory, &["log", "--count", "1000000000", "--json", "out.json"]);
    let partner = until_some("a second process", || partner_of(run.pid()));
    (run, partner)
}

#[test]
fn log_leaves_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let run = LongRun::start(directory.path(), &["log", "--count", "200000"]);
    let partner = until_some("a second process", || partner_of(run.pid()));
    run.end().good();
    assert!(has_ended(partner));
}

#[test]
fn killed_log_partner_ends_log() {
    let directory = tempfile::tempdir().unwrap();
    let (run, partner) = long_run(directory.path());
    kill_process(partner, Signal::KILL).unwrap();
    let error = run.end().error(1);
    assert!(error.contains("the second process ended") && error.contains("signal: 9"), "{error}");
    assert!(has_ended(partner));
    assert!(names(directory.path()).is_empty(), "no report without a measurement");
}

#[test]
fn log_partner_dies_with_log() {
    let directory = tempfile::tempdir().unwrap();
    let (run, partner) = long_run(directory.path());
    drop(run);
    until_some("the end of the second process", || has_ended(partner).then_some(()));
}

#[test]
fn interrupted_log_ends_and_reports() {
    let directory = tempfile::tempdir().unwrap();
    for of_both in [true, false] {
        let (run, partner) = long_run(directory.path());
        if of_both {
            kill_process(partner, Signal::INT).unwrap();
        }
        kill_process(run.pid(), Signal::INT).unwrap();
        let table = run.end().interrupted();
        assert!(table.contains("interrupted"), "{table}");
        assert!(has_ended(partner));
    }
}

#[test]
fn log_partner_refuses_invalid_order() {
    let directory = tempfile::tempdir().unwrap();
    let refused = run(directory.path(), &["bench", "child", "log-partner", "{"]).error(1);
    assert!(refused.contains("EOF"), "{refused}");
    let order = r#"{"cpu":null,"frame_length":64,"frames":6,"task":{"read_ring":{"ring":"missing"}}}"#;
    let refused = run(directory.path(), &["bench", "child", "log-partner", order]).error(1);
    assert!(refused.contains("missing"), "{refused}");
}

#[test]
fn link_covers_four_ways_and_sizes() {
    let report = report("link", "6000");
    for (name, is_latency) in [
        ("there and back", true),
        ("there and back, 64 in flight", false),
        ("one way", false),
        ("one way, acknowledged", false),
    ] {
        for transport in ["TCP", "shared memory"] {
            let name = format!("{transport}, {name}");
            let rows: Vec<_> = rows(&report).iter().filter(|row| row["config"]["name"] == name).collect();
            let bytes: Vec<_> = rows.iter().map(|row| row["config"]["payload_bytes"].as_u64().unwrap()).collect();
            assert_eq!(bytes, [72, 256, 1024, 65_536], "{name}");
            for row in rows {
                let key = if is_latency { "latency_ns" } else { "bytes_per_s" };
                assert!(row.get(key).is_some() && row["verified"] == true, "{row}");
            }
        }
    }
    // The standard input is empty: the messages will never come.
    let order = r#"{"cpu":null,"frame_length":136,"messages":6,"task":"read"}"#;
    let directory = tempfile::tempdir().unwrap();
    let refused = run(directory.path(), &["bench", "child", "link-partner", order]).error(1);
    assert!(refused.contains("has gone"), "{refused}");
    let malformed = order.replace("\"messages\":6", "\"messages\":7");
    let refused = run(directory.path(), &["bench", "child", "link-partner", &malformed]).error(1);
    assert!(refused.contains("malformed"), "{refused}");
    assert!(run(directory.path(), &["bench", "link", "--quick", "--count", "2"]).error(2).contains("--count"));
}

#[test]
fn messaging_goes_up_to_fragments() {
    let report = report("messaging", "20");
    let rows = rows_named(&report, "client to node and back");
    let bytes: Vec<_> = rows.iter().map(|row| row["config"]["payload_bytes"].as_u64().unwrap()).collect();
    assert_eq!((bytes[0], bytes[bytes.len() - 1]), (72, 500_000));
    assert!(rows.iter().all(|row| row["latency_ns"]["count"] == 20 && row["config"]["tier"] == "memory"));
}

#[test]
fn persistence_appends_and_replays() {
    let report = report("persistence", "100");
    assert_eq!(rows_named(&report, "append and commit").len(), 2);
    assert_eq!(rows_named(&report, "sync")[0]["config"]["tier"], "sync");
    assert!(rows_named(&report, "replay")[0]["throughput_per_s"].as_f64().unwrap() > 0.0);
    let directory = tempfile::tempdir().unwrap();
    let missing = run(directory.path(), &["bench", "persistence", "--log-location", "missing"]).error(1);
    assert!(missing.contains("missing"), "{missing}");
}

#[test]
fn storage_covers_every_operation() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["bench", "storage", "--quick", "--objects", "300", "--count", "500", "--json", "out.json"];
    let table = run(directory.path(), &words).good();
    let report: Value = serde_json::from_slice(&std::fs::read(directory.path().join("out.json")).unwrap()).unwrap();
    for size in ["Car", "1 KB"] {
        for what in ["put new", "change one field", "change two", "apply", "read", "remove", "scan", "snapshot"] {
            let rows = rows_named(&report, what);
            let row = rows.iter().find(|row| row["config"]["name"].as_str().unwrap().ends_with(size)).unwrap();
            assert!(row["floor_ratio"].is_number() && row["verified"] == true, "{row}");
            assert!(table.contains(row["config"]["name"].as_str().unwrap()), "{table}");
        }
    }
    let refused = run(directory.path(), &["bench", "storage", "--objects", "0"]).error(2);
    assert!(refused.contains("--objects"), "{refused}");
}

#[test]
fn time_covers_system_and_agent_clocks() {
    let report = report("time", "20");
    for name in ["std_instant", "clock_monotonic", "agent_system"] {
        assert!(!rows_named(&report, name).is_empty(), "{name}");
    }
}

#[test]
fn json_on_stdout_stands_alone() {
    let directory = tempfile::tempdir().unwrap();
    let text = run(directory.path(), &["bench", "time", "--count", "2", "--json", "-"]).good();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["benchmark"], "time");
    assert!(names(directory.path()).is_empty());
    let refused = run(directory.path(), &["bench", "time", "--count", "2", "--json", "no/out.json"]).error(2);
    assert!(refused.contains("no/out.json") && refused.contains("the folder no is not there"), "{refused}");
}
