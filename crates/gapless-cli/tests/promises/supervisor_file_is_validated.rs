#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, gapless, names, run};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

fn validate(text: &str, more: &[&str]) -> ProgramOutput {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("floor.toml"), text).unwrap();
    let ended = run(folder.path(), &[&["validate", "floor.toml"], more].concat());
    assert_eq!(names(folder.path()), ["floor.toml"], "nothing else is made");
    ended
}

const FLOOR: &str = r#"
[process.matching]
command = ["/bin/sleep", "60"]
ready = { route = "orders/match" }
instances = { min = 2, max = 4 }

[process.gate]
command = ["/bin/sleep", "60"]
after = ["matching"]

[process.import]
command = ["/bin/true"]
once = true
"#;

#[test]
fn meaning_of_file_is_shown() {
    let shown = validate(FLOOR, &[]).good();
    let lines: Vec<&str> = shown.lines().collect();
    let expected = [
        "matching: 2 to 4 instances; ready when it serves orders/match",
        "gate: 1 instance; ready when it runs; after matching",
        "import: 1 instance; a task",
    ];
    assert_eq!(lines, expected);
    let json: Value = serde_json::from_str(&validate(FLOOR, &["--json"]).good()).unwrap();
    assert_eq!(json["processes"][0]["instances_max"], 4);
    assert_eq!(json["processes"][1]["after"][0], "matching");
}

#[test]
fn former_key_is_reported() {
    let ended = validate(&FLOOR.replace("instances =", "copies ="), &[]);
    let expected =
        "note: floor.toml:5: process.matching.copies: the key is called `instances` now; `copies` is still read";
    assert_eq!((ended.code, ended.stderr.trim_end()), (Some(0), expected));
}

#[test]
fn help_names_every_key_of_guide() {
    let help = run(Path::new("/"), &["validate", "--help"]).good();
    let named: Vec<&str> = help.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let guide = include_str!("../../../../docs/guides/supervisor.toml");
    let keys = guide.lines().filter_map(|line| Some(line.trim_start_matches("#~ ").split_once(" = ")?.0));
    let keys: Vec<&str> = keys.filter(|key| !key.contains(['#', ' '])).collect();
    assert!(keys.len() > 30 && keys.contains(&"logs_kept"), "{keys:?}");
    let missing: Vec<&&str> = keys.iter().filter(|key| !named.contains(key)).collect();
    assert!(missing.is_empty(), "{missing:?} in {help}");
}

#[test]
fn error_has_line_and_allowed_values() {
    let told = validate(&FLOOR.replace("[\"matching\"]", "[\"matchin\"]"), &[]).error(1);
    assert!(told.contains("floor.toml:9: process.gate.after: \"matchin\" is no process of this file"), "{told}");
    let told = validate("", &[]).error(1);
    assert!(told.contains("[process.NAME] with a command is expected"), "{told}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("floor.toml"), FLOOR).unwrap();
    let mut command = gapless(folder.path(), &["validate", "floor.toml"]);
    let told = ProgramOutput::from(command.env("BROKEN", OsStr::from_bytes(b"\xff")).output().unwrap()).error(1);
    assert!(told.contains("\"BROKEN\" of the environment is not UTF-8"), "{told}");
    let told = run(Path::new("/"), &["validate", "/nowhere/floor.toml"]).error(1);
    assert!(told.contains("/nowhere/floor.toml"), "{told}");
}

#[test]
fn every_error_has_its_line() {
    let text = FLOOR.replace("[\"matching\"]", "[\"matchin\"]").replace("min = 2", "min = 9") + "twice = 1\n";
    let ended = validate(&text, &["--json"]);
    let told: Vec<&str> = ended.stderr.lines().collect();
    let expected = [
        "gapless: floor.toml:5: process.matching.instances.max: 4 was found",
        "gapless: floor.toml:9: process.gate.after: \"matchin\" is no process",
        "gapless: floor.toml:14: process.import.twice: unknown",
    ];
    let is_told = told.iter().zip(&expected).all(|(told, expected)| told.starts_with(expected));
    assert!(ended.code == Some(1) && told.len() == 3 && is_told, "{ended:?}");
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let errors = json["errors"].as_array().unwrap();
    assert_eq!((errors.len(), &errors[2]["place"]), (3, &"floor.toml:14".into()), "{json}");
    assert!(errors[0]["reason"].as_str().unwrap().starts_with("process.matching.instances.max: 4"), "{json}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("floor.toml"), text).unwrap();
    let ended = run(folder.path(), &["up", "floor.toml"]);
    assert!(ended.code == Some(1) && ended.stderr.lines().eq(told), "`up` says the same: {ended:?}");
    assert_eq!(names(folder.path()), ["floor.toml"]);
}
