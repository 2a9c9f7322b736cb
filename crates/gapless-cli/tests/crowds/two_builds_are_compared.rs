//! `gapless bench compare`: what it says of builds whose figures are known, and of one build and itself.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{Ended, run};
use crate::turn;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A program that reports `per_s` messages a second, each time a little else, whatever it is asked to run.
fn build(directory: &Path, name: &str, per_s: u64) {
    let script = format!(
        r#"#!/bin/sh
for word; do target=$word; done
turn=$(cat {name}.turn 2>/dev/null || echo 0)
echo $(((turn + 1) % 4)) > {name}.turn
cat > "$target" <<END
{{ "benchmark": "canonical", "environment": {{}},
   "rows": [{{ "config": {{ "mode": "throughput" }}, "throughput_per_s": $(({per_s} * (1000 + turn) / 1000)) }}] }}
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

fn compare(directory: &Path, words: &[&str]) -> Ended {
    run(directory, &[&["bench", "compare"], words].concat())
}

#[test]
fn the_exit_code_says_that_a_build_is_slower() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    build(directory, "quick", 1_000_000);
    build(directory, "slow", 900_000);
    for (a, b, tolerance, code, verdict) in [
        ("quick", "slow", "0", 3, "slower"),
        ("quick", "slow", "20", 0, "no difference"),
        ("slow", "quick", "0", 0, "faster"),
        ("quick", "quick", "0", 0, "no difference"),
    ] {
        let ended = compare(directory, &[a, b, "--run", "direct", "--json", "report.json", "--tolerance", tolerance]);
        assert_eq!(ended.code, Some(code), "{a} and {b}: {ended:?}");
        assert!(ended.stdout.contains(verdict), "{a} and {b}: {}", ended.stdout);
        let report: Value = serde_json::from_slice(&fs::read(directory.join("report.json")).unwrap()).unwrap();
        assert_eq!((&report["a"], &report["b"]), (&a.into(), &b.into()));
        assert_eq!(report["rows"][0]["verdict"], verdict);
        let pairs = report["rows"][0]["pairs"].as_u64().unwrap();
        assert!((6..=20).contains(&pairs), "{pairs} pairs");
    }
}

#[test]
fn one_build_is_not_slower_than_itself() {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_gapless");
    let run = "canonical --mode throughput --encoding sbe.serial --tier memory -c 20000";
    // Six pairs are too few to be certain of two figures: whatever the machine does meanwhile, none can be called slower.
    let words = [program, program, "--run", run, "--pairs-max", "6", "--json", "-"];
    let report: Value = serde_json::from_str(&compare(directory.path(), &words).good()).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let figures: Vec<_> = rows.iter().map(|row| row["config"]["figure"].as_str().unwrap()).collect();
    assert_eq!(figures[..2], ["throughput", "CPU"], "{report:#}");
    for row in &rows[..2] {
        assert_eq!(row["pairs"], 6);
        let (low, ratio, high) = (
            &row["ratio_low"].as_f64().unwrap(),
            &row["ratio"].as_f64().unwrap(),
            &row["ratio_high"].as_f64().unwrap(),
        );
        assert!(0.0 < *low && low <= ratio && ratio <= high, "{row:#}");
        assert!(["no difference", "the clock cannot decide"].contains(&row["verdict"].as_str().unwrap()), "{row:#}");
    }
}

#[test]
fn a_build_that_fails_ends_the_comparison_with_its_own_words() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    build(directory, "good", 1_000_000);
    program(directory, "failing", "#!/bin/sh\necho the disk is full >&2\nexit 1\n");
    program(directory, "silent", "#!/bin/sh\n");
    program(directory, "text", "not a program\n");
    for (b, expected) in [("failing", "the disk is full"), ("silent", "report.json"), ("text", "text")] {
        let error = compare(directory, &["good", b, "--run", "direct"]).error(1);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_runs() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    program(directory, "ran", "#!/bin/sh\ntouch it-ran\n");
    for (words, expected) in [
        (&["ran", "nothing"][..], "\"nothing\" is neither the path of a program nor a git revision"),
        (&["ran", "ran", "--run", "quickly"], "expected one of direct, indirect, latency"),
        (&["ran", "ran", "--run", "canonical --json x"], "--json is this command's own"),
        (&["ran", "ran", "--run", "canonical -c many"], "expected a number of messages, not \"many\""),
        (&["ran", "ran", "--pairs-max", "5"], "5"),
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
