//! `gapless bench canonical -v`: primary and backup over each link between them.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::run;
use crate::turn;
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
    assert_eq!((&row["config"]["transport"], &row["floor_name"]), (&transport.into(), &floor.into()));
    assert_eq!((&row["lost"], &row["duplicated"]), (&0.into(), &0.into()));
    assert_eq!((&row["config"]["clustered"], &row["config"]["tier"]), (&true.into(), &"quorum".into()));
    assert!(row["latency_ns"]["p50"].as_u64().unwrap() > 0);
    assert!(report["floor"].as_array().unwrap().iter().any(|row| row["name"] == floor), "beside the link's");
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "nothing is left");
}
