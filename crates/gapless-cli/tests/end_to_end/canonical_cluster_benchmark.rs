#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::bench_process::{LongRun, rows};
use crate::program::{ProgramOutput, names, run};
use crate::turn;
use gapless_agent::CountersReader;
use gapless_testkit::ports::own_loopback;
use gapless_testkit::wait::{until, until_some};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;

#[test]
fn over_each_link() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    for (link, transport, floor) in [("tcp", "tcp", "tcp_round_trip"), ("shared-memory", "shm", "shm_ping_pong")] {
        compares_its_copies(directory.path(), link, transport, floor);
    }
}

fn compares_its_copies(directory: &Path, link: &str, transport: &str, floor: &str) {
    let line = format!(
        "bench canonical -v -l sbe.serial -c 10000 -r 5000 -t 0.5 -i 0.02 -a --json - --replication-link {link}"
    );
    let out = run(directory, &line.split(' ').collect::<Vec<_>>());
    let report: serde_json::Value =
        serde_json::from_str(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    let row = &report["rows"][0];
    assert_eq!(row["verified"], true, "{report:#}");
    assert_eq!(row["config"]["transport"], transport);
    // A busy machine may miss the rate, and the row then has no floor.
    assert!(row["floor_name"] == floor || row["rate_reached"] == false, "{report:#}");
    assert!(row["bare"]["latency_ns"]["p99"].is_u64() && row["tail"]["p99"].is_string(), "{report:#}");
    assert_eq!((&row["lost"], &row["duplicated"]), (&0.into(), &0.into()));
    assert_eq!((&row["config"]["clustered"], &row["config"]["tier"]), (&true.into(), &"quorum".into()));
    assert!(row["latency_ns"]["p50"].as_u64().unwrap() > 0);
    assert!(
        report["floor"].as_array().unwrap().iter().any(|row| row["name"] == floor),
        "the floor of the link is reported"
    );
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "nothing is left");
}

fn canonical(directory: &Path, words: &str) -> ProgramOutput {
    run(directory, &["bench", "canonical"].into_iter().chain(words.split(' ')).collect::<Vec<_>>())
}

#[track_caller]
fn report_of(ended: &ProgramOutput, directory: &Path) -> Value {
    let text = std::fs::read_to_string(directory.join("out.json")).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let report: Value = serde_json::from_str(&text).unwrap();
    for row in rows(&report) {
        assert_eq!((&row["verified"], &row["failed"]), (&true.into(), &Value::Null), "{row:#} {ended:?}");
    }
    assert_eq!(ended.code, Some(0), "{ended:?}");
    report
}

#[test]
fn every_row_has_own_threads() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let ended = canonical(directory.path(), "-v --quick --mode throughput --cpu max --json out.json");
    let report = report_of(&ended, directory.path());
    let of = |row: &Value| format!("{} {}", row["config"]["program"], row["config"]["encoding"]);
    let distinct: std::collections::BTreeSet<String> = rows(&report).iter().map(of).collect();
    assert_eq!((rows(&report).len(), distinct.len()), (5, 5), "{distinct:?}");
    for row in rows(&report) {
        let threads = row["config"]["threads"].as_array().unwrap();
        let has = |agent: &str| threads.iter().filter(|each| each["agents"] == serde_json::json!([agent])).count();
        assert_eq!((has("member"), has("service")), (1, 1), "each on a thread of its own: {threads:?}");
    }
    assert!(
        ended.stdout.contains("quorum = in the operating systems' hands of primary and backup"),
        "{}",
        ended.stdout
    );
    assert!(!ended.stdout.contains("no replication"), "{}", ended.stdout);
}

#[test]
fn directory_is_reused_with_options() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    for program in ["es", "sr"] {
        let words = format!(
            "-v --program {program} --cpu min -l sbe.random -c 1500 -r 1000 -t 0 -i 0.02 -b -a -k log -j [0] -W --json out.json"
        );
        let ended = canonical(directory.path(), &words);
        let report = report_of(&ended, directory.path());
        let config = &rows(&report)[0]["config"];
        assert_eq!((&config["program"], &config["cpu"]), (&program.into(), &"min".into()));
        assert_eq!(
            (&config["driver_cpus"], &config["primary_cpus"]),
            (&serde_json::json!([0]), &serde_json::json!([0]))
        );
        assert_eq!((&config["journal_flush_on_commit"], &config["journal_directory"]), (&false.into(), &"log".into()));
        assert!(ended.stderr.contains("p99"), "interval figures: {}", ended.stderr);
        assert!(!ended.stderr.contains("no effect"), "{}", ended.stderr);
        assert_eq!(config["replication_spin"], true);
        assert_eq!(names(directory.path()), ["log", "out.json"]);
        assert_eq!(names(&directory.path().join("log")), ["gapless-canonical"]);
        for member in ["primary", "backup"] {
            let log = format!("log/gapless-canonical/{member}");
            let checked = run(directory.path(), &["journal", "verify", &log]).good();
            assert!(checked.ends_with("\nwhole\n"), "{checked}");
        }
    }
}

fn has_thread(row: &Value, process: &str, name: &str, cpus: Option<&str>) -> bool {
    let threads = row["config"][process].as_array().unwrap();
    threads.iter().any(|thread| thread["name"] == name && cpus.is_none_or(|cpus| thread["cpus"] == cpus))
}

#[test]
fn detached_threads_of_a_cluster_exist() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let run_with = |options: &str| {
        let words = format!("-v -l sbe.serial -c 200 -r 200 -t 0 -i 0.02 -a {options} --json out.json");
        let ended = canonical(directory.path(), &words);
        rows(&report_of(&ended, directory.path()))[0].clone()
    };
    let plain = run_with("-W");
    // The service shares the member's thread.
    for process in ["primary_threads", "backup_threads"] {
        let is_absent = |name: &str| !has_thread(&plain, process, name, None);
        assert!(["replica-sender", "member", "sender"].into_iter().all(is_absent), "{plain:#}");
    }
    let detached = run_with("-S -A [0] -D -B [0] -u -n 64 -o [0] -f");
    for process in ["primary_threads", "backup_threads"] {
        assert!(has_thread(&detached, process, "replica-sender", Some("0")), "{process}: {detached:#}");
        assert!(has_thread(&detached, process, "service", Some("0")), "{process}: {detached:#}");
        assert!(has_thread(&detached, process, "member", None), "{process}: {detached:#}");
    }
    assert!(has_thread(&detached, "primary_threads", "sender", Some("0")), "{detached:#}");
    assert_eq!(
        (&detached["config"]["journal_flush_on_commit"], &detached["config"]["detached_send_queue_depth"]),
        (&true.into(), &64.into())
    );
    let synced = run_with("--tier quorum-sync -d -x [0]");
    for process in ["primary_threads", "backup_threads"] {
        assert!(has_thread(&synced, process, "gapless-sync", Some("0")), "{process}: {synced:#}");
    }
}

#[test]
fn interrupted_cluster_reports() {
    // Ctrl-C reaches the backup, too.
    for reaches_backup in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let line = "canonical -v -l sbe.serial -c 10000000 -r 1000 -t 0 -i 0.02 -a --json out.json";
        let long = LongRun::start(directory.path(), &line.split(' ').collect::<Vec<_>>());
        let place = format!(".gapless-bench-{}-0/primary/counters", long.pid().as_raw_nonzero());
        let counters = || CountersReader::open(directory.path().join(&place)).ok()?.read().ok();
        until("messages flow", || {
            let all = counters().unwrap_or_default();
            all.iter().any(|(label, value)| label == "sequencer.last_sequence" && *value > 500)
        });
        if reaches_backup {
            kill_process(child_of(long.pid()).unwrap(), Signal::INT).unwrap();
        }
        kill_process(long.pid(), Signal::INT).unwrap();
        let ended = long.end();
        assert_eq!(ended.code, Some(130), "{ended:?}");
        let text = std::fs::read_to_string(directory.path().join("out.json")).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        let row = &rows(&report)[0];
        assert!(row["verified"] == true && row["sent"].as_u64().unwrap() > 100, "{row:#}");
        assert!(ended.stderr.contains("es latency sbe.serial direct default quorum 1 session"), "{}", ended.stderr);
        assert_eq!(names(directory.path()), ["out.json"]);
    }
}

#[test]
fn primary_and_backup_are_two_commands() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("{}:4300", own_loopback());
    let words = ["canonical", "--role", "backup", "--backup-address", &address, "-k", "there", "-V", "[0]"];
    let backup = LongRun::start(directory.path(), &words);
    until("the backup listens", || std::net::TcpStream::connect(&address).is_ok());
    for program in ["es", "sr"] {
        let words = format!(
            "--role primary --backup-address {address} --program {program} -l sbe.serial -c 1000 -r 1000 -t 0 -i 0.02 -a \
             --json out.json"
        );
        let ended = canonical(directory.path(), &words);
        let report = report_of(&ended, directory.path());
        let config = &rows(&report)[0]["config"];
        assert_eq!((&config["program"], &config["role"]), (&program.into(), &"primary".into()));
        assert_eq!((&config["clustered"], &config["backup_cpus"]), (&true.into(), &"[0]".into()));
    }
    assert_eq!(names(&directory.path().join("there")), ["gapless-canonical-backup"]);
    kill_process(backup.pid(), Signal::INT).unwrap();
    backup.end();
    assert_eq!(names(directory.path()), ["out.json", "there"]);
    let refused = canonical(directory.path(), "--role backup -c 5").error(2);
    assert!(refused.contains("--count has no use with --role backup"), "{refused}");
}

fn child_of(parent: Pid) -> Option<Pid> {
    let wanted = format!("PPid:\t{}\n", parent.as_raw_nonzero());
    let is_child = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
        std::fs::read_to_string(entry.path().join("status")).ok()?.contains(&wanted).then_some(pid)
    };
    std::fs::read_dir("/proc").unwrap().find_map(|entry| is_child(entry.unwrap()))
}

#[test]
fn dead_backup_fails_its_row_only() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["canonical", "-v", "--quick", "--program", "es", "--mode", "throughput", "--json", "out.json"];
    let long = LongRun::start(directory.path(), &words);
    kill_process(until_some("a backup", || child_of(long.pid())), Signal::KILL).unwrap();
    let ended = long.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let last = ended.stderr.lines().last().unwrap();
    assert!(last.contains("1 of 4 rows failed, the first: ") && last.contains("the backup"), "{last}");
    let text = std::fs::read_to_string(directory.path().join("out.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let failed = |row: &&Value| row["failed"].is_string();
    assert_eq!((rows(&report).len(), rows(&report).iter().filter(failed).count()), (4, 1), "{report:#}");
    let lost = rows(&report).iter().find(failed).unwrap();
    assert!(lost["floor_ratio"].is_null() && lost["config"]["encoding"] == "sbe.serial", "{lost:#}");
    assert!(rows(&report).iter().filter(|row| !failed(row)).all(|row| row["verified"] == true), "{report:#}");
    assert!(ended.stdout.contains("FAILED: es throughput sbe.serial direct default quorum"), "{}", ended.stdout);
    assert_eq!(names(directory.path()), ["out.json"]);
}

#[test]
fn next_run_cleans_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["canonical", "-v", "-l", "sbe.serial", "-c", "100000000", "-r", "1000", "-i", "0.02", "-a"];
    let long = LongRun::start(directory.path(), &words);
    let own = format!(".gapless-bench-{}-0", long.pid().as_raw_nonzero());
    let journal = directory.path().join(own).join("primary/journal");
    until("the primary has a journal", || journal.exists());
    let backup = child_of(long.pid()).unwrap();
    drop(long);
    let command_line = format!("/proc/{}/cmdline", backup.as_raw_nonzero());
    until("the backup has ended", || std::fs::read(&command_line).map_or(true, |bytes| bytes.is_empty()));
    assert_eq!(names(directory.path()).len(), 1, "what is left");
    let _turn = turn();
    let ended = canonical(directory.path(), "-l sbe.serial -c 500 -r 1000 -t 0 -a --json out.json");
    report_of(&ended, directory.path());
    assert_eq!(names(directory.path()), ["out.json"]);
}

#[test]
fn missed_rate_is_marked_or_fails() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let words = "-l sbe.serial -c 300000 -r 1000000000 -t 0 -a --json out.json";
    let strict = canonical(directory.path(), &format!("{words} --strict"));
    assert_eq!(strict.code, Some(1), "{strict:?}");
    assert!(strict.stderr.contains("the asked rate of 1000000000 messages/s was not reached"), "{}", strict.stderr);
    let ended = canonical(directory.path(), words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.contains("MISSED: es latency sbe.serial direct default memory 1 session: the rate"),
        "{}",
        ended.stdout
    );
    let text = std::fs::read_to_string(directory.path().join("out.json")).unwrap();
    let row = &serde_json::from_str::<Value>(&text).unwrap()["rows"][0];
    assert_eq!(
        (&row["rate_reached"], &row["verified"], &row["floor_ratio"]),
        (&false.into(), &true.into(), &Value::Null)
    );
}

#[test]
fn thread_on_driver_cpu_is_named() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let ended =
        canonical(directory.path(), "-l sbe.serial -c 300 -r 100 -t 0 -e -d -i 0.01 -j [0] -x [0] -a --json out.json");
    let report = report_of(&ended, directory.path());
    let notes = rows(&report)[0]["notes"].as_array().unwrap();
    let names = |note: &Value| note.as_str().unwrap().starts_with("driver, thread journaler share CPU 0: ");
    assert!(notes.iter().any(names), "{notes:?}");
}
