#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bench_process::{processes_of, rows};
use crate::program::{ProgramOutput, gapless, names};
use crate::turn;
use serde_json::Value;

#[test]
fn every_row_survives_its_kills() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let temporary = directory.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let words = ["bench", "rpc", "faults", "--quick", "--seed", "7", "--json", "out.json", "--plot", "out.svg"];
    let mut command = gapless(directory.path(), &words);
    let ended: ProgramOutput = command.env("TMPDIR", &temporary).output().unwrap().into();
    let table = ended.good();
    assert!(names(&temporary).is_empty(), "a file is left: {:?}", names(&temporary));
    assert!(processes_of(&[directory.path().to_str().unwrap()]).is_empty(), "a process is left");
    assert_eq!(names(directory.path()), ["out.json", "out.svg", "tmp"]);
    assert!(table.contains("seed 7"), "{table}");
    let report: Value = serde_json::from_slice(&std::fs::read(directory.path().join("out.json")).unwrap()).unwrap();
    assert_eq!(report["benchmark"], "rpc faults");
    let configurations: Vec<_> = rows(&report)
        .iter()
        .map(|row| (row["config"]["system"].as_str().unwrap(), &row["config"]["copies"], &row["config"]["retry"]))
        .map(|(system, copies, retry)| (system, copies.as_u64(), retry.as_str()))
        .collect();
    let is_installed = rows(&report).iter().all(|row| row["not_measured"].is_null());
    let expected: Vec<_> = ["not_begun", "always"]
        .into_iter()
        .flat_map(|retry| [1, 2, 4].map(|copies| ("gapless", Some(copies), Some(retry))))
        .chain([("gapless", Some(2), Some("not_begun")); 5])
        .chain([("gapless", Some(2), Some("always"))])
        .chain(is_installed.then_some(("rabbitmq", Some(2), Some("always"))))
        .chain([("rabbitmq", None, None)])
        .collect();
    assert_eq!(configurations, expected);
    for row in rows(&report) {
        if let Some(reason) = row["not_measured"].as_str() {
            assert!(reason.contains("PATH") && reason.contains("install"), "{reason}");
            eprintln!("SKIPPED: {reason}");
            continue;
        }
        let of = |key: &str| row[key].as_u64().unwrap();
        assert_eq!((of("wrong"), of("duplicated"), &row["verified"]), (0, 0, &true.into()), "{row}");
        let is_rabbitmq = row["config"]["system"] == "rabbitmq";
        let is_broker = is_rabbitmq && row["config"]["copies"].is_null();
        let supervised = row["config"]["supervised"].as_str();
        let kills = if is_broker {
            1
        } else if supervised == Some("any") {
            5
        } else {
            3
        };
        assert_eq!(row["config"]["kills"], kills, "{row}");
        if supervised.is_some() {
            assert_eq!((of("started_twice"), of("orphans"), of("restarts")), (0, 0, of("copies_killed")), "{row}");
        }
        assert!(row["throughput_per_s"].as_f64().unwrap() > 0.0 && of("longest_silence_ns") > 0, "{row}");
        let failed = row["failed"].as_object().unwrap();
        assert_eq!(failed.values().map(|count| count.as_u64().unwrap()).sum::<u64>(), of("lost"), "{row}");
        match row["config"]["retry"].as_str() {
            Some("not_begun") => {
                assert!(failed.keys().all(|kind| kind == "unknown"), "what had not begun was repeated: {row}");
                assert_eq!(of("begun_twice"), 0, "{row}");
            }
            Some(_) => assert!(failed.is_empty() && of("retried") > 0, "all were repeated: {row}"),
            None => assert!(of("lost") > 0 && failed.keys().all(|kind| kind == "connection_lost"), "{row}"),
        }
        assert_eq!(row["latency_ns"].is_object(), of("lost") > 0, "who failed knew it at some time: {row}");
    }
    let picture = std::fs::read_to_string(directory.path().join("out.svg")).unwrap();
    assert!(picture.contains("gapless, one instance of 4"));
    assert!(!is_installed || table.contains("rabbitmq, one server of 2"), "{table}");
}

#[test]
fn invalid_options_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (option, value) in [("--kills", "0"), ("--minutes", "0"), ("--seed", "now"), ("--plot", "..")] {
        let words = ["bench", "rpc", "faults", "--quick", option, value];
        let ended: ProgramOutput = gapless(directory.path(), &words).output().unwrap().into();
        let refused = ended.error(2);
        assert!(refused.contains(option), "{refused}");
    }
}
