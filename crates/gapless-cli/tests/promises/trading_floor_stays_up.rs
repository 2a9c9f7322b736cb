//! Whichever process is killed, every order is filled once; each entry checks this.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::floor::Floor;
use gapless_testkit::wait::until;
use serde_json::Value;

fn floor() -> Floor {
    Floor::of_example(
        "gapless",
        "crates/gapless/examples/trading_floor",
        &["floor.toml", "stream.toml"],
        &["trading_floor", "clustered"],
    )
}

fn filled(floor: &Floor, entry: &str) -> u64 {
    let said = floor.run(&["logs", entry]).good();
    let last = said.lines().rev().find_map(|line| line.split_once(" orders in the stream, "));
    last.map_or(0, |(_, filled)| filled.split(' ').next().unwrap().parse().unwrap())
}

fn kill(pid: &Value) {
    let pid = rustix::process::Pid::from_raw(pid.as_u64().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn each_order_is_filled_once() {
    let floor = floor();
    floor.run(&["cluster", "new", "accounts"]).good();
    let said = floor.run(&["up", "floor.toml"]).good();
    assert!(said.ends_with("9 instances are up\n"), "{said}");
    let entries = ["entry.1", "entry.2", "entry.3"];
    for victim in ["sequencer.1", "matching.1", "entry.2", "member-1.1"] {
        let before: Vec<u64> = entries.iter().map(|entry| filled(&floor, entry)).collect();
        let instance = floor.instances().into_iter().find(|instance| instance["instance"] == victim).unwrap();
        kill(&instance["process_id"]);
        until(&format!("{victim} is ready again"), || {
            let instances = floor.instances();
            let now = instances.iter().find(|instance| instance["instance"] == victim).unwrap();
            now["state"] == "ready" && now["process_id"] != instance["process_id"]
        });
        until(&format!("orders are filled after the death of {victim}"), || {
            entries.iter().zip(&before).all(|(entry, before)| filled(&floor, entry) > *before)
        });
    }
    let restarted: Vec<_> = floor.instances().into_iter().filter(|instance| instance["restarts"] != 0).collect();
    let reasons = serde_json::to_string(&restarted).unwrap();
    assert!(!reasons.contains(" follows "), "{reasons}");
    assert_eq!(floor.run(&["down"]).good(), "all has ended\n");
}
