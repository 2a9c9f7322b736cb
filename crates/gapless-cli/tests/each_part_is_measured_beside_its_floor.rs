//! `gapless bench serialization|log|messaging|persistence|time`: figures, floors and ratios of one run,
//! in a table and in the JSON.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod program;

use program::{names, run};
use serde_json::Value;

/// The report of a short run, whose rows and floors are all there.
fn report(part: &str, count: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let table = run(directory.path(), &["bench", part, "--count", count, "--json", "out.json"]).good();
    assert_eq!(names(directory.path()), ["out.json"], "nothing else is left");
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(directory.path().join("out.json")).unwrap()).unwrap();
    assert_eq!(report["benchmark"], part);
    assert!(!report["floor"].as_array().unwrap().is_empty(), "{report}");
    for row in report["rows"].as_array().unwrap() {
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
    let rows = report["rows"].as_array().unwrap();
    rows.iter().filter(|row| row["config"]["name"].as_str().unwrap().contains(part_of_name)).collect()
}

#[test]
fn serialization_has_both_directions_of_every_encoding() {
    let report = report("serialization", "1000");
    for name in ["encode", "decode"] {
        let encodings: Vec<_> = rows_named(&report, name).iter().map(|row| row["config"]["encoding"].clone()).collect();
        assert_eq!(encodings, ["sbe.serial", "sbe.random", "protobuf.serial", "protobuf.random"]);
    }
}

#[test]
fn log_has_ring_and_window_both_ways() {
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

#[test]
fn messaging_goes_from_small_to_fragmented() {
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
fn time_has_the_system_s_clocks_and_the_agents() {
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
    let refused = run(directory.path(), &["bench", "time", "--count", "2", "--json", "no/out.json"]).error(1);
    assert!(refused.contains("no/out.json"), "{refused}");
}
