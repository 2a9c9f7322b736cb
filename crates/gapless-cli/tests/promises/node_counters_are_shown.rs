#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{gapless, run};
use gapless::prelude::*;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[derive(Default)]
struct Idle;

impl Service for Idle {
    fn handlers(_: &mut Handlers<Self>) {}
    fn snapshot(&self, _: &mut Vec<u8>) {}
    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn running_node_only() {
    let directory = tempfile::tempdir().unwrap();
    let persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
    let host = Host::in_directory(directory.path().join("node")).persistence(persistence);
    let host = host.service_from(Idle::default).start().unwrap();
    host.add_counter("orders.open").unwrap().set(17);

    let text = run(directory.path(), &["counters", "node"]).good();
    let own = text.lines().find(|line| line.starts_with("orders.open")).unwrap();
    assert_eq!(own.split_whitespace().collect::<Vec<_>>(), ["orders.open", "17"]);
    assert!(text.lines().any(|line| line.starts_with("sequencer.last_sequence")), "{text}");

    let object: Value =
        serde_json::from_str(&run(directory.path(), &["counters", "node/counters", "--json"]).good()).unwrap();
    assert_eq!((&object["orders.open"], &object["service.dead_letters"]), (&17.into(), &0.into()));

    let mut watch = gapless(directory.path(), &["counters", "node", "--watch", "0.05", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        assert!(lines.next().unwrap().unwrap().contains("\"orders.open\":17"));
    }
    host.stop().unwrap();
    assert!(lines.all(|line| line.unwrap().contains("orders.open")));
    assert!(watch.wait().unwrap().success());

    let gone = run(directory.path(), &["counters", "node"]).error(1);
    assert!(gone.contains("nothing runs there"), "{gone}");
}

#[test]
fn missing_or_foreign_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("text"), "no counters").unwrap();
    let missing = run(directory.path(), &["counters", "missing"]).error(1);
    assert!(missing.contains("missing"), "{missing}");
    let foreign = run(directory.path(), &["counters", "text"]).error(1);
    assert!(foreign.contains("text"), "{foreign}");
    for seconds in ["0", "-1", "never"] {
        run(directory.path(), &["counters", "text", &format!("--watch={seconds}")]).error(2);
    }
}
