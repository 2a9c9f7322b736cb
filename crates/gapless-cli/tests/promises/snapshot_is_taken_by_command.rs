#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_cluster::ClusterMember;
use gapless_cluster::config::ClusterConfig;
use gapless_engine::{Handlers, Replica, ReplicaOptions, Service};
use gapless_testkit::ports::free_port;
use std::path::Path;
use std::process::{Command, Output};

struct Nothing;

impl Service for Nothing {
    fn handlers(_: &mut Handlers<Self>) {}

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

fn config(root: &Path) -> ClusterConfig {
    let port = free_port();
    let text = format!(
        "[cluster]\nname = \"one\"\nmember = 1\n[[member]]\nid = 1\naddresses = [\"127.0.0.1:{port}\"]\n[stream]\n\
         directory = \"{}\"\nwindow = \"8 MiB\"\nmessage_length_max = \"64 KiB\"\n[journal]\nsegment_length = \"2 MiB\"\n",
        root.join("member-1").display()
    );
    std::fs::write(root.join("member-1.toml"), &text).unwrap();
    ClusterConfig::parse(&text, "member-1.toml").unwrap()
}

fn snapshot(place: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gapless")).args(["cluster", "snapshot"]).arg(place).args(more).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn sequence_is_printed() {
    let root = tempfile::tempdir().unwrap();
    let replica = Replica::start(Nothing, ReplicaOptions::default(), &config(root.path())).unwrap();
    let plain = snapshot(&root.path().join("member-1.toml"), &[]);
    assert!(plain.status.success(), "{}", text(&plain.stderr));
    let expected = "member 1 has taken a snapshot, which stands at sequence ";
    assert!(text(&plain.stdout).starts_with(expected), "{}", text(&plain.stdout));
    let json = snapshot(&root.path().join("member-1"), &["--json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((value["member"].as_u64(), value["sequence"].is_u64()), (Some(1), true), "{value}");
    replica.stop().unwrap();
}

#[test]
fn failed_snapshot_has_a_reason() {
    let root = tempfile::tempdir().unwrap();
    let member = ClusterMember::start(&config(root.path())).unwrap();
    let refused = snapshot(&root.path().join("member-1.toml"), &["--json"]);
    assert!(!refused.status.success() && refused.stdout.is_empty());
    let said = text(&refused.stderr);
    assert!(said.contains("this member runs no service, of which a snapshot could be taken"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    member.stop().unwrap();
    let gone = snapshot(&root.path().join("member-1.toml"), &[]);
    assert!(!gone.status.success() && text(&gone.stderr).contains("cluster.socket"), "{}", text(&gone.stderr));
}
