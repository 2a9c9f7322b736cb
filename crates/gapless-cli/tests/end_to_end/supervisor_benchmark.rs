#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bench_process::{processes_of, rows};
use crate::program::{ProgramOutput, gapless, names};
use crate::turn;
use serde_json::Value;

#[test]
fn every_row_is_complete() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let temporary = directory.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = gapless(directory.path(), &["bench", "supervisor", "--quick", "--json", "out.json"]);
    let ended: ProgramOutput = command.env("TMPDIR", &temporary).output().unwrap().into();
    let table = ended.good();
    assert!(names(&temporary).is_empty(), "a file is left: {:?}", names(&temporary));
    assert!(processes_of(&[directory.path().to_str().unwrap()]).is_empty(), "a process is left");
    let report: Value = serde_json::from_slice(&std::fs::read(directory.path().join("out.json")).unwrap()).unwrap();
    assert_eq!((&report["benchmark"], &report["floor"][0]["name"]), (&"supervisor".into(), &"spawn_and_wait".into()));
    let expected = [
        ("up", 1),
        ("idle", 0),
        ("a killed instance's replacement is forked", 2),
        ("it runs its program", 2),
        ("a killed supervisor is back", 2),
        ("it is in control", 2),
        ("a killed guardian is back", 2),
        ("idle, after the deaths", 0),
        ("down", 1),
    ];
    let found: Vec<_> = rows(&report)
        .iter()
        .map(|row| (row["config"]["name"].as_str().unwrap(), row["latency_ns"]["count"].as_u64().unwrap_or(0)))
        .collect();
    assert_eq!(found, expected);
    for row in rows(&report) {
        assert_eq!(row["config"]["copies"], 5, "{row}");
        assert!(table.contains(row["config"]["name"].as_str().unwrap()), "{table}");
        if row["latency_ns"].is_null() {
            assert!(row["cpu_share"].as_f64().unwrap() < 1.0 && row["resident_bytes"].as_u64().unwrap() > 0, "{row}");
        }
    }
}
