#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::floor::Floor;
use gapless_testkit::wait::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::{Command, Stdio};

fn calls(floor: &Floor) {
    let mut command = Command::new("calculator");
    let domain = floor.path().join("calculator.state/domain");
    floor.with_examples(&mut command).arg("client").env("GAPLESS_DOMAIN", domain).stdin(Stdio::null());
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(said, "2 + 40 = 42\n7 / 0: nothing can be divided by zero\n");
}

fn pids(floor: &Floor) -> Vec<Value> {
    floor.instances().iter().map(|instance| instance["process_id"].clone()).collect()
}

#[test]
fn calls_survive_a_killed_instance() {
    let folder = "crates/gapless-rpc/examples/calculator";
    let floor = Floor::of_example("gapless-rpc", folder, &["calculator.toml"], &["calculator"]);
    let said = floor.run(&["up", "calculator.toml"]).good();
    assert!(said.ends_with("2 instances are up\n"), "{said}");
    calls(&floor);
    for index in 0..2 {
        let before = pids(&floor);
        let pid = before[index].as_i64().unwrap() as i32;
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        calls(&floor);
        until("it is back", || {
            let instances = floor.instances();
            instances.iter().all(|instance| instance["state"] == "ready")
                && instances[index]["process_id"] != before[index]
        });
        assert_eq!(pids(&floor)[1 - index], before[1 - index], "the other one has stayed");
    }
    let before = pids(&floor);
    floor.run(&["reload", "calculator"]).good();
    until("both instances were replaced", || {
        calls(&floor);
        let instances = floor.instances();
        instances.len() == 2
            && instances
                .iter()
                .all(|instance| instance["state"] == "ready" && !before.contains(&instance["process_id"]))
    });
    let ends: Vec<Value> = floor.instances().iter().map(|instance| instance["last_end"].clone()).collect();
    assert_eq!(ends, [serde_json::json!({ "status": 0 }), serde_json::json!({ "status": 0 })], "asked to end, they do");
    assert_eq!(floor.run(&["down"]).good(), "all has ended\n");
}
