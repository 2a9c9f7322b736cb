//! Options share runs, because each run measures the machine's floor for two seconds.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, gapless, names, run};
use crate::turn;
use gapless_testkit::process::Process;
use gapless_wire::HEADER_LENGTH;
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const MISSING_CPU: &str = "[1000]";

fn canonical(directory: &Path, words: &str) -> ProgramOutput {
    let _turn = turn();
    let line: Vec<&str> = ["bench", "canonical"].into_iter().chain(words.split(' ')).collect();
    run(directory, &line)
}

fn has_floor(row: &Value) -> bool {
    row["floor_ratio"].is_number() != (row["rate_reached"] == false)
}

fn row(report: &Value) -> &Value {
    assert_eq!(report["benchmark"], "canonical");
    assert_eq!(report["rows"].as_array().unwrap().len(), 1);
    let row = &report["rows"][0];
    assert_eq!((&row["verified"], &row["lost"], &row["duplicated"]), (&true.into(), &0.into(), &0.into()), "{row}");
    row
}

fn read_json(path: PathBuf) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn has_note(report: &Value, words: &[&str]) -> bool {
    let notes = report["notes"].as_array().unwrap();
    notes.iter().any(|note| words.iter().all(|word| note.as_str().unwrap().contains(word)))
}

fn segments(location: &Path) -> Vec<PathBuf> {
    let journal = location.join("journal");
    names(&journal).iter().filter(|name| name.ends_with(".segment")).map(|name| journal.join(name)).collect()
}

#[test]
fn rate_masks_and_files_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let words = format!(
        "-l sbe.serial -c 1,300 -r 1000 -t 0 -b --sessions 10 --repeat-percent 50 --json out.json -j {MISSING_CPU} -y {MISSING_CPU}"
    );
    let ended = canonical(directory.path(), &words);
    assert!(ended.stderr.contains("p99"), "{}", ended.stderr);
    let table = ended.good();
    assert!(table.contains("sbe.serial") && table.contains("floor"), "{table}");
    let report = read_json(directory.path().join("out.json"));
    let row = row(&report);
    let config = &row["config"];
    assert_eq!(
        (&config["tier"], &config["encoding"], &config["access"]),
        (&"memory".into(), &"sbe.serial".into(), &"direct".into())
    );
    assert_eq!(
        (&config["count"], &config["rate_per_s"], &config["mode"]),
        (&1300.into(), &1000.into(), &"latency".into())
    );
    assert_eq!((&config["sessions"], &config["repeat_percent"]), (&10.into(), &50.0.into()));
    assert!(row["latency_ns"]["count"].as_u64().unwrap() > 600, "{row}");
    assert!(row["extra"].is_null() && row["repeats_sent"].as_u64().unwrap() > 0, "{row}");
    assert!(has_floor(row), "{row}");
    for option in ["--injector-cpu-mask", "--service-cpu-mask"] {
        assert!(has_note(&report, &[option, "CPU 1000 is not there"]), "{:?}", report["notes"]);
    }
    assert_eq!(names(directory.path()), ["out.hlog", "out.json"]);
    let hlog = std::fs::read_to_string(directory.path().join("out.hlog")).unwrap();
    assert!(hlog.starts_with('#') && hlog.contains("HIST"), "{hlog}");
}

#[test]
fn unwritable_output_is_refused_first() {
    let directory = tempfile::tempdir().unwrap();
    let run = "-l sbe.serial -c 100000000 -r 10 -t 0";
    for (words, expected) in [
        ("--json no/out.json", "the folder no is not there"),
        ("--json /proc/out.json", "--json"),
        ("-c 5 --hlog .", "it is a folder"),
        ("-c 5 --hlog -", "--hlog is written to a file"),
        ("-O /proc/x.xlsx", "/proc/x.xlsx"),
        ("-k log", "--log-location has no use without a journal; add --enable-persistence"),
        ("-n 5", "--detached-send-queue-depth has no use without --detached-send"),
    ] {
        let words = if words.starts_with("-c") { words.to_owned() } else { format!("{run} {words}") };
        let refused = canonical(directory.path(), &words).error(2);
        assert!(refused.contains(expected), "{words}: {refused}");
    }
    let refused = canonical(Path::new("/proc"), run).error(2);
    assert!(refused.contains("canonical.hlog") && refused.contains("--no-latency-writes"), "{refused}");
    assert!(names(directory.path()).is_empty());
}

#[test]
fn interrupt_prints_and_has_own_code() {
    let directory = tempfile::tempdir().unwrap();
    let _turn = turn();
    let words = ["bench", "canonical", "-l", "sbe.serial", "-c", "60000", "-r", "1000", "-t", "0", "-b", "-a"];
    let mut running = Process::start(gapless(directory.path(), &words).stderr(Stdio::piped()));
    let said = running.error_lines();
    assert!(said.iter().any(|line| line.contains("p99")), "it prints figures each second");
    running.interrupt();
    let printed = running.rest().join("\n");
    assert_eq!(running.wait().code(), Some(130));
    let said = said.iter().collect::<Vec<_>>().join("\n");
    assert!(printed.contains("sbe.serial") && said.contains("interrupted"), "{printed} {said}");
}

#[test]
fn replicated_state_on_one_node() {
    for (more, tier) in [("-l sbe.serial", "memory"), ("-l protobuf.random -e --client-processes 2", "journal")] {
        let directory = tempfile::tempdir().unwrap();
        let words = format!("--program sr -c 2000 -t 0 --repeat-percent 20 --json out.json {more}");
        canonical(directory.path(), &words).good();
        let report = read_json(directory.path().join("out.json"));
        let config = &row(&report)["config"];
        assert_eq!((&config["program"], &config["tier"]), (&"sr".into(), &tier.into()));
        assert_eq!(config["clustered"], false);
    }
}

#[test]
fn journal_location_length_and_threads() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("log")).unwrap();
    let words = format!(
        "-l sbe.serial -c 500 -r 20000 -t 0 -E -a -e -k log -i 0.0078125 -z -d -x {MISSING_CPU} -u -n 16 -o {MISSING_CPU} --json out.json"
    );
    canonical(directory.path(), &words).good();
    let report = read_json(directory.path().join("out.json"));
    let config = &row(&report)["config"];
    assert_eq!(config["tier"], "journal");
    // An empty Car is its fixed part; the full one has 159 bytes.
    assert!(config["payload_bytes"].as_u64().unwrap() < 120, "{config}");
    for agent in ["journaler", "sender"] {
        assert!(has_note(&report, &["plan", agent]), "{agent}: {:?}", report["notes"]);
    }
    for option in ["--persister-cpu-mask", "--detached-send-cpu-mask"] {
        assert!(has_note(&report, &[option, "CPU 1000 is not there"]), "{:?}", report["notes"]);
    }
    assert_eq!(names(directory.path()), ["log", "out.json"], "no latency data file");
    let segments = segments(&directory.path().join("log"));
    let metadata = std::fs::metadata(&segments[0]).unwrap();
    assert_eq!(metadata.len(), 8 << 20, "1/128 GiB");
    assert!(metadata.blocks() * 512 >= 8 << 20, "zeroed to its end");
    let hole = rustix::fs::seek(std::fs::File::open(&segments[0]).unwrap(), rustix::fs::SeekFrom::Hole(0)).unwrap();
    assert_eq!(hole, 8 << 20, "zeros were written, not left out");
    let checked = run(directory.path(), &["journal", "verify", "log"]).good();
    assert!(checked.ends_with("\nwhole\n"), "{checked}");
    let frames = checked.lines().find(|line| line.starts_with("frames ")).unwrap();
    let frames: u64 = frames.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(frames > 500, "every message and every session: {frames}");
}

#[test]
fn prepared_rate_is_shown_separately() {
    let directory = tempfile::tempdir().unwrap();
    // 224 bytes each, so that three segments of 4 MiB are begun.
    let words = "-l sbe.serial -c 50000 -t 0 --mode throughput -a -e -k log -i 0.00390625 --json out.json";
    let table = canonical(directory.path(), words).good();
    assert!(table.contains("prepared msg/s") && table.contains("steady msg/s"), "{table}");
    let report = read_json(directory.path().join("out.json"));
    let row = row(&report);
    assert_eq!(
        (&row["prepared_bytes"], &row["config"]["journal_zero_out_initial"]),
        (&(4 << 20).into(), &false.into())
    );
    for rate in ["prepared_per_s", "steady_per_s"] {
        assert!(row[rate].as_f64().is_some_and(|rate| rate > 0.0), "{rate}: {row}");
    }
    let segments = segments(&directory.path().join("log"));
    assert!(segments.len() >= 3, "{segments:?}");
    let file = std::fs::File::open(&segments[0]).unwrap();
    let hole = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(0)).unwrap();
    assert_eq!(hole, 4 << 20, "zeros were written, not left out");
    canonical(directory.path(), words).good();
    let report = read_json(directory.path().join("out.json"));
    assert!(report["rows"][0].get("prepared_per_s").is_none(), "{report}");
}

fn writes_of(directory: &Path, words: &str) -> u64 {
    let _turn = turn();
    let line: Vec<&str> = ["bench", "canonical"].into_iter().chain(words.split(' ')).collect();
    let mut child = gapless(directory, &line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    // The figures stay readable until the process is reaped.
    let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
    let figures = std::fs::read_to_string(format!("/proc/{}/io", pid.as_raw_nonzero())).unwrap();
    assert!(child.wait().unwrap().success());
    let line = figures.lines().find(|line| line.starts_with("syscw: ")).unwrap();
    line["syscw: ".len()..].parse().unwrap()
}

#[test]
fn flush_options_show_in_system_calls() {
    const MESSAGES: u64 = 100_000;
    let directory = tempfile::tempdir().unwrap();
    let writes = |rest: &str| {
        let words = format!("-l sbe.serial -c {MESSAGES} -t 0 --mode throughput -a -e -k {rest}");
        std::fs::create_dir(directory.path().join(rest.split(' ').next().unwrap())).unwrap();
        writes_of(directory.path(), &format!("{words} -i 0.0625 --repeat-percent 0 --json {}.json", &rest[..1]))
    };
    let mapped = writes("mapped -m");
    let large = writes("large -w 1048576");
    let small = writes(&format!("small -w {HEADER_LENGTH} -f"));
    let flushed = writes("flushed -w 1048576 -f");
    assert!(flushed >= MESSAGES, "one for each message: {flushed}");
    assert!(large < flushed, "batches: {large}, one for each message: {flushed}");
    assert!(mapped < MESSAGES / 2, "through the mapping: {mapped}");
    assert!(small >= MESSAGES, "a buffer shorter than a message, one for each: {small}");
    for (name, is_mapped, is_flushed) in [("m", true, false), ("l", false, false), ("f", false, true)] {
        let report = read_json(directory.path().join(format!("{name}.json")));
        let config = &row(&report)["config"];
        assert_eq!(config["journal_mapped"], is_mapped);
        assert_eq!(config["journal_flush_on_commit"], is_flushed);
        assert!(config.get("rate_per_s").is_none(), "as fast as possible: {config}");
        assert!(row(&report)["throughput_per_s"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn clients_in_other_processes() {
    let directory = tempfile::tempdir().unwrap();
    let first = "-c 500 -r 20000 -t 0 -O results.xlsx --hlog latencies.hlog --json - --client-processes 2";
    let report: Value = serde_json::from_str(&canonical(directory.path(), first).good()).unwrap();
    let config = &row(&report)["config"];
    assert_eq!((&config["client_processes"], &config["transport"]), (&2.into(), &"shm".into()));
    assert_eq!(config["encoding"], "protobuf.serial", "the default");
    assert_eq!(names(directory.path()), ["latencies.hlog", "results.xlsx"]);
    let before = std::fs::read(directory.path().join("results.xlsx")).unwrap();
    assert!(before.starts_with(b"PK"), "a workbook");
    canonical(directory.path(), "-l sbe.random -c 5000 -t 0 --mode throughput -a -O results.xlsx -C 40-3 -T").good();
    let after = std::fs::read(directory.path().join("results.xlsx")).unwrap();
    assert_ne!(before, after, "the cell is written");
    let missing = canonical(directory.path(), "-c 10 -a -O missing.xlsx -C 5-3").error(2);
    assert!(missing.contains("missing.xlsx"), "{missing}");
}

#[test]
fn tier_and_plan_are_as_requested() {
    let directory = tempfile::tempdir().unwrap();
    let words = "-l protobuf.random -c 200 -r 2000 -t 0 -a --tier sync --cpu min -k . -i 0.0078125 --json out.json";
    canonical(directory.path(), words).good();
    let report = read_json(directory.path().join("out.json"));
    let row = row(&report);
    let config = &row["config"];
    assert_eq!((&config["tier"], &config["cpu"]), (&"sync".into(), &"min".into()));
    assert_eq!((&config["encoding"], &config["access"]), (&"protobuf.random".into(), &"indirect".into()));
    assert!(has_floor(row) && (row["floor_name"] == "pwrite_fdatasync" || row["rate_reached"] == false), "{row}");
    let described = run(directory.path(), &["journal", "info", ".", "--json"]).good();
    let described: Value = serde_json::from_str(&described).unwrap();
    assert_eq!(described["journaled_sequence"], described["synced_sequence"]);
    assert_eq!(described["lock_holder"], Value::Null);
}
