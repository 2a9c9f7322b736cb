#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bench_process::{LongRun, processes_of, report, rows};
use crate::program::{gapless, names};
use crate::turn;
use gapless_testkit::wait::until;
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

#[test]
fn every_row_is_measured_and_verified() {
    let words = ["--quick", "--plot", "out.svg", "--only", "throughput,latency,replay,scale"];
    let (report, table) = report("commands", &words, &["out.json", "out.svg"]);
    let of = |row: &Value, key: &str| row["config"][key].clone();
    for row in rows(&report) {
        assert_eq!(row["verified"], true, "{row}");
        let has_rate = row["throughput_per_s"].as_f64().is_some_and(|rate| rate > 0.0);
        assert!(has_rate || row["latency_ns"].is_object() || row["elapsed_ns"].is_u64(), "{row}");
    }
    let throughput: Vec<&Value> = rows(&report).iter().filter(|row| of(row, "mode") == "throughput").collect();
    let has =
        |pairs: &[(&str, Value)]| throughput.iter().any(|row| pairs.iter().all(|(key, value)| of(row, key) == *value));
    for drive in ["pipelined", "direct"] {
        for tier in ["memory", "journal", "sync"] {
            for aggregates in [1, 100] {
                let row = [("drive", drive.into()), ("tier", tier.into()), ("aggregates", aggregates.into())];
                assert!(has(&row), "{row:?}");
            }
        }
        for (key, values) in [("encoding", ["sbe", "serde"]), ("identifiers", ["random", "time-ordered"])] {
            assert!(values.iter().all(|value| has(&[("drive", drive.into()), (key, (*value).into())])), "{key}");
        }
        assert!(
            [0, 256, 1024, 4096].iter().all(|size| has(&[("drive", drive.into()), ("payload_bytes", (*size).into())]))
        );
    }
    assert!(has(&[("tier", "quorum".into())]));
    for row in &throughput {
        assert!(row["cpu_ns_per_message"]["driver"].as_f64().unwrap() > 0.0, "{row}");
        let is_of_a_drive = row["config"].get("drive").is_some();
        let has_floor = is_of_a_drive && of(row, "tier") != "sync";
        assert_eq!(row.get("floor_ratio").is_some(), has_floor, "{row}");
        let is_repeated = is_of_a_drive && of(row, "identifiers") != "position";
        assert_eq!(row["repeated"].as_u64().unwrap_or(0) > 0, is_repeated, "{row}");
    }
    let named = |name: &str| {
        report["floor"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|floor| floor["name"].as_str().unwrap().starts_with(name))
            .count()
    };
    assert_eq!((named("encode_and_append"), named("canonical"), named("shm_ping_pong_paced")), (5, 2, 1));
    let latencies = rows(&report).iter().filter(|row| of(row, "mode") == "latency");
    assert!(latencies.clone().count() == 4 && latencies.clone().all(|row| row["config"]["rate_per_s"] == 10_000));
    let replay = rows(&report).iter().find(|row| of(row, "mode") == "replay").unwrap();
    assert_eq!(replay["sent"], replay["config"]["count"]);
    let scale: Vec<&Value> = rows(&report).iter().filter(|row| of(row, "mode") == "scale").collect();
    assert_eq!(scale.len(), 7);
    let is_restart = |row: &&&Value| of(row, "what").as_str().unwrap().starts_with("restart");
    let restart = scale.iter().find(is_restart).unwrap();
    for key in ["elapsed_ns", "peak_memory_bytes", "anonymous_memory_bytes", "stream_bytes"] {
        assert!(restart[key].as_u64().unwrap() > 0, "{key}: {restart}");
    }
    assert!(
        table.contains("replay of") && table.contains("encode_and_append_serde") && !table.contains("NOT VERIFIED"),
        "{table}"
    );
}

fn script(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn axon_report(programs: &Path, part: &str) -> (Value, String) {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let words = ["bench", "commands", "--quick", "--only", part, "--json", "out.json"];
    let mut command = gapless(directory.path(), &words);
    let ended: crate::program::ProgramOutput = command.env("PATH", programs).output().unwrap().into();
    let table = ended.good();
    assert_eq!(names(directory.path()), ["out.json"]);
    (serde_json::from_slice(&std::fs::read(directory.path().join("out.json")).unwrap()).unwrap(), table)
}

#[test]
fn axon_is_built_if_java_is_installed() {
    let programs = tempfile::tempdir().unwrap();
    let (report, table) = axon_report(programs.path(), "axon");
    let reason = rows(&report)[0]["not_measured"].as_str().unwrap();
    assert!(
        rows(&report).len() == 1 && reason.contains("java is not on the PATH") && table.contains(reason),
        "{table}"
    );

    script(programs.path(), "mvn", "read -r line < pom.xml && test -f src/main/java/gapless/Main.java");
    script(
        programs.path(),
        "java",
        r#"echo "{\"counted\":1000,\"elapsed_ns\":2000000,\"cpu_ns\":3000000,\"collected_ns\":7,\"sent\":1001,\"wrong\":0,\"first_wrong\":null,\"axon\":\"4.0.0\",\"java\":\"17\",\"heap_bytes_max\":1}""#,
    );
    let (report, table) = axon_report(programs.path(), "axon");
    assert_eq!(rows(&report).len(), 12, "{table}");
    for row in rows(&report) {
        assert!(row["config"]["name"].as_str().unwrap().starts_with("axon "), "{row}");
        assert_eq!(
            (&row["throughput_per_s"], &row["cpu_ns_per_message"]["service"]),
            (&500_000.0.into(), &3_000.0.into())
        );
        assert_eq!((&row["verified"], &row["config"]["axon"]), (&true.into(), &"4.0.0".into()), "{row}");
    }

    let (report, table) = axon_report(programs.path(), "ladder");
    let answered: Vec<&Value> = rows(&report).iter().filter_map(|row| row["answers"].as_array()).flatten().collect();
    assert!(answered.len() == 7 && answered.contains(&&"axon/disruptor/repeated".into()), "{report}");
    assert!(table.contains("1,353,546, 1,422,475") && table.contains("500,000") && !table.contains("NO"), "{table}");

    script(programs.path(), "mvn", "echo '[ERROR] there is no network'; exit 1");
    let (report, _) = axon_report(programs.path(), "axon");
    let reason = rows(&report)[0]["not_measured"].as_str().unwrap();
    assert!(reason.contains("there is no network"), "{reason}");
}

#[test]
fn invalid_options_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refused = [
        ("--seconds", "0"),
        ("--turns", "0"),
        ("--in-flight", "1"),
        ("--aggregates", "1"),
        ("--replayed-events", "0"),
        ("--scale-events", "1"),
        ("--scale-aggregates", "50000001"),
        ("--only", "nothing"),
        ("--buses", "nothing"),
        ("--identifiers", "nothing"),
        ("--directory", "nowhere"),
        ("--plot", ".."),
    ];
    for (option, value) in refused {
        let ended: crate::program::ProgramOutput =
            gapless(directory.path(), &["bench", "commands", option, value]).output().unwrap().into();
        let refused = ended.error(2);
        assert!(refused.contains(option), "{refused}");
    }
    assert!(names(directory.path()).is_empty());
}

#[test]
fn interrupt_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["commands", "--only", "throughput", "--seconds", "600", "--json", "out.json"];
    let run = LongRun::start(directory.path(), &words);
    // A row in memory has no directory; the canonical one before it has.
    until("the canonical row begins", || names(directory.path()).iter().any(|name| name.starts_with(".gapless")));
    kill_process(run.pid(), Signal::INT).unwrap();
    let table = run.end().interrupted();
    assert_eq!(names(directory.path()), ["out.json"]);
    assert!(table.contains("interrupted"), "{table}");
}

#[test]
fn rows_before_interrupt_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let rates = ["--only", "throughput,scale", "--drives", "direct", "--tiers", "memory", "--seconds", "0.05"];
    let words = [&["commands"], &rates[..], &["--scale-events", "1000000000", "--json", "out.json"]].concat();
    let run = LongRun::start(directory.path(), &words);
    let place = format!(".gapless-commands-{}", run.pid().as_raw_nonzero());
    until("the rates are over", || !processes_of(&["commands-bus", &place]).is_empty());
    kill_process(run.pid(), Signal::TERM).unwrap();
    let ended = run.end();
    let lines =
        ended.stderr.lines().filter(|line| line.starts_with("direct, memory, ") && line.ends_with("/s")).count();
    let table = ended.interrupted();
    let report: Value = serde_json::from_slice(&std::fs::read(directory.path().join("out.json")).unwrap()).unwrap();
    assert_eq!((rows(&report).len(), lines), (9, 9), "{table}");
    assert!(table.contains("interrupted") && rows(&report).iter().all(|row| row["verified"] == true), "{table}");
    assert_eq!(names(directory.path()), ["out.json"]);
}

#[test]
fn interrupt_ends_the_bus_process() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["commands", "--only", "scale", "--scale-events", "1000000000", "--json", "out.json"];
    let run = LongRun::start(directory.path(), &words);
    let place = format!(".gapless-commands-{}", run.pid().as_raw_nonzero());
    let of_the_bus = || processes_of(&["commands-bus", &place]);
    until("the bus is there", || !of_the_bus().is_empty());
    kill_process(run.pid(), Signal::INT).unwrap();
    let table = run.end().interrupted();
    assert!(of_the_bus().is_empty() && table.contains("interrupted"), "{table}");
    assert_eq!(names(directory.path()), ["out.json"]);
}
