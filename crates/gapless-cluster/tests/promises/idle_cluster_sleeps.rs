#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::Cluster;
use std::process::Command;
use std::time::{Duration, Instant};

/// Other tests' threads must not be counted.
const IS_ALONE: &str = "GAPLESS_TEST_IS_ALONE";
const WAKE_UPS_MAX: u64 = 250;

fn sleeps() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let texts = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    let counts = texts.map(|text| {
        let count = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.unwrap().trim().parse::<u64>().unwrap()
    });
    counts.sum()
}

#[test]
fn idle_cluster_sleeps() {
    if std::env::var_os(IS_ALONE).is_none() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "idle_cluster_sleeps::idle_cluster_sleeps"]);
        let output = again.arg("--nocapture").env(IS_ALONE, "1").output().unwrap();
        let [said, failed] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success() && said.contains("1 passed"), "{said}{failed}");
        return;
    }
    let cluster = Cluster::start(3);
    cluster.leader();
    cluster.has_exactly(0);
    let (before, begun) = (sleeps(), Instant::now());
    std::thread::sleep(Duration::from_secs(3));
    let count = (sleeps() - before) as f64 / begun.elapsed().as_secs_f64();
    assert!(count < (3 * WAKE_UPS_MAX) as f64, "{count:.0} wake-ups a second of three members");
}
