#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::floor::Floor;
use crate::program::{ProgramOutput, gapless};
use gapless_testkit::process::Process;
use serde_json::Value;
use std::process::Stdio;

fn serving(name: &str, more: &str) -> String {
    let words = [env!("CARGO_BIN_EXE_gapless"), "serve", "upper", "--json", "--", "cat"];
    format!("[process.{name}]\ncommand = {words:?}\nready = {{ route = \"upper\" }}\n{more}\n")
}

fn names(floor: &Floor) -> Vec<String> {
    let shown = floor.run(&["routes", "--json", "--directory", "floor.state/domain"]).good();
    let shown: Vec<Value> = serde_json::from_str(&shown).unwrap();
    let mut names: Vec<_> = shown.iter().map(|route| route["process"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn instance_or_program_name_is_shown() {
    let renamed = serving("renamed", "environment = { GAPLESS_INSTANCE = \"another\" }");
    let floor = Floor::new(&[serving("fraud", "instances = 2"), renamed].concat());
    floor.run(&["up", "floor.toml"]).good();
    assert_eq!(names(&floor), ["fraud.1", "fraud.2", "renamed.1"]);
    let shown = floor.run(&["routes", "--directory", "floor.state/domain"]).good();
    let top = floor
        .run(&["top", "--once", "--domain", &floor.path().join("floor.state/domain").display().to_string()])
        .good();
    let instances = floor.instances();
    for instance in &instances {
        let expected = format!("{} {}", instance["instance"].as_str().unwrap(), instance["process_id"]);
        assert!(shown.contains(&expected) && top.contains(&expected), "{expected} in {shown}{top}");
    }
    let mut others: Vec<Process> = ["", "no\tname"]
        .map(|none| {
            let mut command =
                gapless(floor.path(), &["serve", "--directory", "floor.state/domain", "upper", "--json", "--", "cat"]);
            let mut process = Process::start(command.env("GAPLESS_INSTANCE", none).stderr(Stdio::inherit()));
            assert!(process.line().contains(" is served"), "{none:?}");
            process
        })
        .into();
    assert_eq!(names(&floor), ["fraud.1", "fraud.2", "gapless", "gapless", "renamed.1"]);
    ProgramOutput::from(
        gapless(floor.path(), &["routes", "drain", "upper", "--directory", "floor.state/domain"]).output().unwrap(),
    )
    .good();
    others.iter_mut().for_each(|other| assert!(other.wait_end("a server whose route is drained").success()));
}
