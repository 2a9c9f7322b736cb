#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, run};
use crate::turn;
use gapless_testkit::wait::until_some;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

fn build(directory: &Path, name: &str, per_s: u64) {
    let script = format!(
        r#"#!/bin/sh
for word; do target=$word; done
turn=$(cat {name}.turn 2>/dev/null || echo 0)
echo $(((turn + 1) % 4)) > {name}.turn
cat > "$target" <<END
{{ "benchmark": "canonical", "environment": {{}},
   "rows": [{{ "config": {{ "mode": "throughput" }}, "throughput_per_s": $(({per_s} * (1000 + turn) / 1000)),
     "cpu_ns_per_message": {{ "driver": $((500000000 / {per_s})), "service": $((500000000 / {per_s})) }} }}] }}
END
"#
    );
    program(directory, name, &script);
}

fn program(directory: &Path, name: &str, script: &str) {
    let path = directory.join(name);
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn compare(directory: &Path, words: &[&str]) -> ProgramOutput {
    run(directory, &[&["bench", "compare"], words].concat())
}

#[test]
fn exit_code_reports_slower_build() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    build(directory, "quick", 1_000_000);
    build(directory, "slow", 900_000);
    build(directory, "twin", 1_000_000);
    for (a, b, tolerance, code, verdict) in [
        ("quick", "slow", "0", 3, "slower"),
        ("quick", "slow", "20", 0, "slower, within the tolerance"),
        ("slow", "quick", "0", 0, "faster"),
        ("quick", "twin", "0", 0, "no difference"),
    ] {
        let ended = compare(directory, &[a, b, "--run", "direct", "--json", "report.json", "--tolerance", tolerance]);
        assert_eq!(ended.code, Some(code), "{a} and {b}: {ended:?}");
        assert!(ended.stdout.contains(verdict), "{a} and {b}: {}", ended.stdout);
        let report: Value = serde_json::from_slice(&fs::read(directory.join("report.json")).unwrap()).unwrap();
        assert_eq!((&report["a"], &report["b"]), (&a.into(), &b.into()));
        assert_eq!(report["rows"][0]["verdict"], verdict);
        let pairs = report["rows"][0]["pairs"].as_u64().unwrap();
        assert!((7..=20).contains(&pairs), "{pairs} pairs: 6 are not certain of two figures");
    }
}

#[test]
fn program_is_compared_with_itself() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_gapless");
    let run = "canonical --mode latency --encoding sbe.serial --tier memory --rate 2000 -c 400 --warmup-time 0";
    let ended = compare(directory.path(), &[program, program, "--run", run, "--pairs-max", "6", "--json", "-"]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert_eq!(report["rows"].as_array().unwrap().len(), 1, "of a run at a rate its p50: {report:#}");
    let row = &report["rows"][0];
    assert_eq!((&row["config"]["figure"], &row["config"]["tier"]), (&"p50".into(), &"memory".into()));
    let values = |key: &str| row[key].as_array().unwrap().iter().map(|each| each.as_f64().unwrap()).collect();
    let (a, b, floors): (Vec<f64>, Vec<f64>, Vec<f64>) = (values("a"), values("b"), values("floor_a_ns"));
    assert_eq!((a.len(), b.len()), (floors.len(), floors.len()), "each with its floor: {row:#}");
    assert!(a.iter().chain(&b).chain(&floors).all(|value| *value > 0.0), "{row:#}");
    // A build compared with itself may be called slower once in twenty runs.
    assert_eq!(ended.code, Some(if row["verdict"] == "slower" { 3 } else { 0 }), "{row:#}");
}

#[test]
fn results_survive_a_later_failure() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    build(directory, "quick", 1_000_000);
    build(directory, "slow", 900_000);
    let script = fs::read_to_string(directory.join("slow")).unwrap();
    program(
        directory,
        "slow",
        &script.replace("turn=", "case \"$*\" in *latency*) echo no latency >&2; exit 1;; esac\nturn="),
    );
    let ended = compare(directory, &["quick", "slow", "--run", "direct", "--run", "latency", "--json", "report.json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("no latency"), "{}", ended.stderr);
    let report: Value = serde_json::from_slice(&fs::read(directory.join("report.json")).unwrap()).unwrap();
    assert_eq!(report["rows"][0]["verdict"], "slower");
    assert!(ended.stdout.contains("slower"), "{}", ended.stdout);
}

#[test]
fn failing_build_ends_comparison() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    build(directory, "good", 1_000_000);
    program(directory, "failing", "#!/bin/sh\necho the disk is full >&2\nexit 1\n");
    program(directory, "silent", "#!/bin/sh\n");
    program(directory, "text", "not a program\n");
    for (b, expected) in [("failing", "the disk is full"), ("silent", "wrote no report"), ("text", "text")] {
        let error = compare(directory, &["good", b, "--run", "direct"]).error(1);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn unsaved_report_is_still_printed() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    build(directory, "quick", 1_000_000);
    build(directory, "slow", 900_000);
    let ended = compare(directory, &["quick", "slow", "--run", "direct", "--json", "/dev/full"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("slower") && ended.stderr.contains("/dev/full"), "{ended:?}");
}

#[test]
fn signal_ends_a_hanging_build() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    build(directory, "good", 1_000_000);
    // A shell that waits for another process handles a signal when that ends; both get it.
    program(directory, "hanging", "#!/bin/sh\ntouch it-hangs\nsleep 1000\n");
    // A background test may have interrupts ignored, which children inherit.
    let mut comparison = Command::new("env")
        .args(["--default-signal=INT,TERM", env!("CARGO_BIN_EXE_gapless"), "bench", "compare", "hanging", "good"])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until_some("it hangs", || directory.join("it-hangs").exists().then_some(()));
    kill_process(Pid::from_child(&comparison), Signal::TERM).unwrap();
    // The hanging process holds the pipes open.
    until_some("the end", || comparison.try_wait().unwrap());
    let output = comparison.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted"), "{stderr}");
}

#[test]
fn too_few_pairs_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    build(directory, "good", 1_000_000);
    let text = compare(directory, &["good", "good", "--run", "direct", "--pairs-max", "6"]).error(2);
    assert!(text.contains("take 7 pairs at least"), "{text}");
}

#[test]
fn incomparable_input_is_refused_first() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    program(directory, "ran", "#!/bin/sh\ntouch it-ran\n");
    for (words, expected) in [
        (&["ran", "nothing"][..], "\"nothing\" is neither the path of a program nor a git revision"),
        (&["ran", "ran", "--run", "quickly"], "expected one of direct, indirect, latency"),
        (&["ran", "ran", "--run", "canonical --json x"], "--json is this command's own"),
        (&["ran", "ran", "--run", "canonical -c many"], "expected a number of messages, not \"many\""),
        (&["ran", "ran", "--pairs-max", "5"], "5"),
        (&["ran", "ran", "--run", "compare ran ran"], "a comparison compares no comparisons"),
        (&["ran", "ran", "--json", "."], "it is a folder, not a file"),
        (&["ran", "ran", "--json", "nowhere/report.json"], "the folder nowhere is not there"),
        (&["ran", "ran", "--width", "-1"], "-1"),
        (&["ran", "ran", "--tolerance", "101"], "0 to 100 percent"),
        (&["ran"], "required"),
    ] {
        let ended = compare(directory, words);
        assert_eq!(ended.code, Some(2), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{words:?}: {}", ended.stderr);
    }
    assert!(!directory.join("it-ran").exists());
}
