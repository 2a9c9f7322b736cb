#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bench_process::rows;
use crate::program::{gapless, names};
use crate::turn;
use serde_json::Value;

#[test]
fn every_size_is_measured_and_verified() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let temporary = directory.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let words = ["bench", "rpc", "payloads", "--quick", "--json", "out.json", "--plot", "out.svg"];
    let mut command = gapless(directory.path(), &words);
    let ended: crate::program::ProgramOutput = command.env("TMPDIR", &temporary).output().unwrap().into();
    let table = ended.good();
    assert!(names(&temporary).is_empty(), "a file is left: {:?}", names(&temporary));
    assert_eq!(names(directory.path()), ["out.json", "out.svg", "tmp"]);
    let report: Value = serde_json::from_slice(&std::fs::read(directory.path().join("out.json")).unwrap()).unwrap();
    assert_eq!(report["benchmark"], "rpc payloads");
    assert_eq!(rows(&report).len(), (4 + 2) * 4);
    for row in rows(&report) {
        assert_eq!((&row["verified"], &row["wrong"]), (&true.into(), &0.into()), "{row}");
        let of = |key: &str| row[key].as_f64().unwrap();
        assert!(of("throughput_min_per_s") > 0.0, "{row}");
        assert!(of("throughput_min_per_s") <= of("throughput_per_s"), "{row}");
        assert!(of("throughput_per_s") <= of("throughput_max_per_s"), "{row}");
        assert_eq!((&row["config"]["cycles"], &row["config"]["workers"]), (&8.into(), &200.into()), "{row}");
        let between_processes = row["config"]["ends"] == "two processes";
        assert_eq!(row.get("floor_ratio").is_some(), between_processes, "{row}");
        assert_eq!(row["cpu_ns_per_message"]["service"].as_f64().unwrap() > 0.0, between_processes, "{row}");
    }
    let through = |name: &str| rows(&report).iter().filter(|row| row["published"]["through"] == name).count();
    assert_eq!((through("memory"), through("kafka")), (8, 8));
    let targets = rows(&report).iter().filter(|row| row["target_met"].is_boolean()).count();
    assert_eq!(targets, 1, "500 KB, two ways, between processes");
    assert!(table.contains("500,071") && table.contains("951–1,316"), "{table}");
    let picture = std::fs::read_to_string(directory.path().join("out.svg")).unwrap();
    for curve in ["one process, one way", "two processes, two way", "floor: memcpy_cold"] {
        assert!(picture.contains(curve), "{curve}");
    }
}

#[test]
fn invalid_options_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (option, value) in [("--calls", "0"), ("--plot", "..")] {
        let ended: crate::program::ProgramOutput =
            gapless(directory.path(), &["bench", "rpc", "payloads", option, value]).output().unwrap().into();
        let refused = ended.error(2);
        assert!(refused.contains(option), "{refused}");
    }
}
