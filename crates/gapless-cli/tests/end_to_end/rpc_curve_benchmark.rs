#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bench_process::{processes_of, rows};
use crate::program::{ProgramOutput, gapless, names};
use crate::turn;
use gapless_testkit::wait::until_some;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn curve(directory: &Path, words: &[&str]) -> Command {
    let temporary = directory.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut command = gapless(directory, &[&["bench", "rpc", "curve"], words].concat());
    command.env("TMPDIR", temporary);
    command
}

fn run(directory: &Path, words: &[&str]) -> ProgramOutput {
    let ended = curve(directory, words).output().unwrap().into();
    assert!(names(&directory.join("tmp")).is_empty(), "a file is left: {:?}", names(&directory.join("tmp")));
    assert!(processes_of(&[directory.to_str().unwrap()]).is_empty(), "a broker is left");
    ended
}

fn report(directory: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(directory.join(name)).unwrap()).unwrap()
}

fn measured(report: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    for row in rows(report) {
        match row["not_measured"].as_str() {
            Some(reason) => {
                assert!(reason.contains("PATH") && reason.contains("install"), "{reason}");
                eprintln!("SKIPPED: {reason}");
            }
            None => found.push(row),
        }
    }
    found
}

#[test]
fn every_available_system_has_curves() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let words = ["--sizes", "1,300", "--samples", "20", "--json", "out.json", "--plot", "out.svg"];
    let table = run(directory.path(), &words).good();
    assert_eq!(names(directory.path()), ["out-one-way.svg", "out.json", "out.svg", "tmp"]);
    let report = report(directory.path(), "out.json");
    assert_eq!(report["benchmark"], "rpc curve");
    let systems = [("gapless", None), ("rabbitmq", Some("explicit")), ("rabbitmq", Some("automatic")), ("nats", None)];
    let measured = measured(&report);
    for (system, acknowledgement) in systems {
        let of_it = measured.iter().filter(|row| {
            row["config"]["system"] == system && row["config"]["acknowledgement"].as_str() == acknowledgement
        });
        let of_it: Vec<_> = of_it.collect();
        assert!(table.contains(system), "{table}");
        if of_it.is_empty() {
            continue;
        }
        // Both ways of waiting: alone, many in flight and one way at both sizes, and with 16 and 256 callers.
        assert_eq!(of_it.len(), 2 * (2 * 3 + 2), "{system}");
        for row in of_it {
            assert_eq!((&row["verified"], &row["lost"], &row["wrong"]), (&true.into(), &0.into(), &0.into()), "{row}");
            assert!(row["throughput_per_s"].as_f64().unwrap() > 0.0, "{row}");
            let cpu = &row["cpu_ns_per_call"];
            let processes: &[&str] =
                if system == "gapless" { &["client", "server"] } else { &["client", "server", "broker"] };
            assert!(processes.iter().all(|process| cpu[process].as_f64().unwrap() > 0.0), "{row}");
            let is_call = row["config"]["mode"] == "call";
            assert_eq!(row.get("latency_ns").is_some(), is_call, "{row}");
            let is_alone = row["config"]["in_flight"] == 1;
            assert!(!is_alone || row["latency_ns"]["count"] == 20, "{row}");
        }
        for file in ["out.svg", "out-one-way.svg"] {
            let text = std::fs::read_to_string(directory.path().join(file)).unwrap();
            assert!(text.contains(&format!("{system}, ")) && text.contains("floor"), "{file}");
        }
    }
    for floor in ["shm_ping_pong", "shm_stream"] {
        let floors = report["floor"].as_array().unwrap().iter().filter(|row| row["name"] == floor);
        let bytes: Vec<_> = floors.map(|row| row["payload_bytes"].as_u64().unwrap()).collect();
        assert_eq!(bytes, [65, 364], "{floor}");
    }

    let words =
        ["--sizes", "1", "--samples", "20", "--waiting", "blocking", "--json", "second.json", "--compare", "out.json"];
    let table = run(directory.path(), &words).good();
    assert!(table.contains("× earlier"), "{table}");
    let second = self::report(directory.path(), "second.json");
    let with_ratio = rows(&second).iter().filter(|row| row["earlier_ratio"].is_number()).count();
    assert_eq!(with_ratio, measured.len() * 5 / 16, "three at the one size, and two with many callers");
}

fn long_run(directory: &Path) -> Option<(Child, Pid)> {
    let words = ["--systems", "nats", "--samples", "10000000", "--json", "out.json"];
    let mut child = curve(directory, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let broker = until_some("a server, or the end of a run without a broker", || {
        let pid = child.id();
        let is_its = |server: &Pid| {
            let status = std::fs::read_to_string(format!("/proc/{}/status", server.as_raw_nonzero()));
            status.unwrap_or_default().contains(&format!("\nPPid:\t{pid}\n"))
        };
        let is_served = processes_of(&["child", "rpc-server"]).iter().any(is_its);
        let broker = processes_of(&["nats.conf", directory.to_str().unwrap()]).into_iter().next().filter(|_| is_served);
        let has_ended = child.try_wait().unwrap().is_some();
        if has_ended { Some(None) } else { broker.map(Some) }
    });
    if broker.is_none() {
        eprintln!("SKIPPED: nats-server is not there");
    }
    Some((child, broker?))
}

#[test]
fn interrupt_stops_broker_and_reports() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let Some((child, _)) = long_run(directory.path()) else { return };
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended: ProgramOutput = child.wait_with_output().unwrap().into();
    let table = ended.interrupted();
    assert!(table.contains("interrupted"), "{table}");
    assert!(processes_of(&[directory.path().to_str().unwrap()]).is_empty());
    assert_eq!(names(directory.path()), ["out.json", "tmp"]);
    assert!(names(&directory.path().join("tmp")).is_empty());
}

#[test]
fn broker_dies_with_killed_benchmark() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let Some((mut child, _)) = long_run(directory.path()) else { return };
    child.kill().unwrap();
    child.wait().unwrap();
    until_some("the end of the broker", || {
        processes_of(&[directory.path().to_str().unwrap()]).is_empty().then_some(())
    });
}

#[test]
fn killed_broker_fails_the_run() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let Some((child, _)) = long_run(directory.path()) else { return };
    // Kills its guard, too, whose command line has the same words.
    for process in processes_of(&["nats.conf", directory.path().to_str().unwrap()]) {
        let _ = kill_process(process, Signal::KILL);
    }
    let ended: ProgramOutput = child.wait_with_output().unwrap().into();
    let error = ended.error(1);
    assert!(error.contains("the broker") || error.contains("connect to 127.0.0.1"), "{error}");
    assert_eq!(names(directory.path()), ["tmp"], "no report without a measurement");
}

#[test]
fn invalid_options_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (words, expected) in [
        (["--sizes", "0"], "--sizes"),
        (["--samples", "1"], "--samples"),
        (["--systems", "kafka"], "kafka"),
        (["--plot", ".."], "--plot"),
    ] {
        let refused = run(directory.path(), &words).error(2);
        assert!(refused.contains(expected), "{refused}");
    }
    let missing = run(directory.path(), &["--compare", "missing.json"]).error(1);
    assert!(missing.contains("missing.json"), "{missing}");
}
