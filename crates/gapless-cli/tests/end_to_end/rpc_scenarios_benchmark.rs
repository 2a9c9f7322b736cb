#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bench_process::rows;
use crate::program::{ProgramOutput, gapless, names};
use crate::turn;
use serde_json::Value;

#[test]
fn every_scenario_has_its_row() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let overflow = directory.path().join("overflow");
    std::fs::create_dir(&overflow).unwrap();
    let words =
        ["bench", "rpc", "scenarios", "--quick", "--json", "out.json", "--plot", "out.svg", "--directory", "overflow"];
    let ended: ProgramOutput = gapless(directory.path(), &words).output().unwrap().into();
    let table = ended.good();
    assert!(names(&overflow).is_empty(), "a file is left: {:?}", names(&overflow));
    assert_eq!(names(directory.path()), ["out.json", "out.svg", "overflow"]);
    let report: Value = serde_json::from_slice(&std::fs::read(directory.path().join("out.json")).unwrap()).unwrap();
    assert_eq!(report["benchmark"], "rpc scenarios");
    let of_all = rows(&report);
    let loads: Vec<_> = of_all.iter().filter(|row| row["throughput_per_s"].is_number()).collect();
    let probes: Vec<_> = of_all.iter().filter(|row| row["latency_ns"].is_object()).collect();
    assert_eq!((loads.len(), probes.len(), of_all.len()), (7, 6, 13));
    for row in of_all {
        assert_eq!((&row["verified"], &row["wrong"]), (&true.into(), &0.into()), "{row}");
        assert!(table.contains(row["config"]["name"].as_str().unwrap()), "{table}");
    }
    for row in &loads {
        assert!(row["throughput_min_per_s"].as_f64().unwrap() > 0.0 && row["lost"] == 0, "{row}");
    }
    for row in &probes {
        assert_eq!(row["latency_ns"]["count"], 200, "{row}");
        let is_flooded = row["config"]["name"].as_str().unwrap().contains("flood");
        assert_eq!(row["flood_calls"].as_u64().is_some_and(|calls| calls > 0), is_flooded, "{row}");
    }
    let by_bare = probes.iter().filter(|row| row["p99_by_bare"].as_f64().is_some_and(|ratio| ratio > 0.0));
    assert_eq!(by_bare.count(), 2, "each flooded probe is compared with bare wake-ups");
    let overloaded = loads.iter().find(|row| row["spilled"].is_number()).unwrap();
    assert!(overloaded["spilled_share"].as_f64().unwrap() >= 0.5, "{overloaded}");
    let picture = std::fs::read_to_string(directory.path().join("out.svg")).unwrap();
    assert!(picture.contains("probe, flood on all cores"));
}

#[test]
fn invalid_options_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let run = |option: &str, value: &str| -> ProgramOutput {
        gapless(directory.path(), &["bench", "rpc", "scenarios", "--quick", option, value]).output().unwrap().into()
    };
    for (option, value) in [("--probes", "1"), ("--plot", ".."), ("--directory", "missing")] {
        let refused = run(option, value).error(2);
        assert!(refused.contains(option), "{refused}");
    }
}
