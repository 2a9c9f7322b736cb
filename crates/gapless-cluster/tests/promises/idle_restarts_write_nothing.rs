//! An idle member that restarts repeatedly always finds room for its records.
#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_agent::Now;
use gapless_cluster::ClusterMember;
use gapless_cluster::config::ClusterConfig;
use gapless_testkit::ports::free_port;
use gapless_testkit::random::rounds;
use std::fmt::Write as _;

/// Their checkpoints are several times as long as a segment.
const STARTS: u64 = 250;

#[test]
fn idle_restarts_fill_no_journal() {
    // The first is the shortest that a member accepts.
    for segment_length in &["1280 KiB", "2 MiB"][..rounds(2, 1) as usize] {
        starts_with(segment_length);
    }
}

fn starts_with(segment_length: &str) {
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let mut text = "[cluster]\nname = \"test\"\nmember = 16\n".to_owned();
    for member in 1..16 {
        // Discard prefix (RFC 6666); long addresses make checkpoints long.
        let addresses: Vec<_> = (0..16).map(|at| format!("[100::ffff:ffff:ffff:{member:x}{at:02x}]:65535")).collect();
        writeln!(text, "[[member]]\nid = {member}\naddresses = {addresses:?}").unwrap();
    }
    writeln!(text, "[[member]]\nid = 16\naddresses = [\"127.0.0.1:{port}\"]").unwrap();
    writeln!(text, "[stream]\ndirectory = {:?}", directory.path().join("member")).unwrap();
    text += "window = \"8 MiB\"\nmessage_length_max = \"64 KiB\"\n";
    writeln!(text, "[journal]\nsegment_length = {segment_length:?}").unwrap();
    let config = ClusterConfig::parse(&text, "test.toml").unwrap();
    let mut members = None;
    for start in 1..=rounds(STARTS, STARTS / 3) {
        let mut member = ClusterMember::start_by_hand(&config).unwrap_or_else(|error| panic!("start {start}: {error}"));
        for turn in 1..=2 {
            let now = Now { monotonic_ns: turn, epoch_ns: turn };
            member.turn(now).unwrap_or_else(|error| panic!("start {start}: {error}"));
        }
        let status = member.status().unwrap();
        assert_eq!(*members.get_or_insert_with(|| status.members.clone()), status.members, "start {start}");
        member.abandon();
    }
}
