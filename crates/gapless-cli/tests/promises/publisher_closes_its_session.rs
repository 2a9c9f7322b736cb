//! A killed publisher, or one with a named session, leaves it to expiry.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program;
use crate::stream_process::{configured, sequencer, started, stream, stream_command, write_lines};
use gapless_testkit::process::Process;
use gapless_testkit::wait::until;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

#[track_caller]
fn wait_for_sessions(here: &Path, expected: u64) {
    until(&format!("{expected} sessions"), || {
        let counters = program::run(here, &["counters", "stream", "--json"]).good();
        serde_json::from_str::<Value>(&counters).unwrap()["sequencer.sessions"] == expected
    });
}

fn publisher_with_a_line(here: &Path, command: &mut Command) -> (Process, std::process::ChildStdin) {
    let count = || stream(here, "tail --no-follow --raw").good().lines().count();
    let before = count();
    let mut publish = Process::start(command.stdin(Stdio::piped()));
    let mut input = publish.input();
    input.write_all(b"a line\n").unwrap();
    until("the line is in the stream", || count() > before);
    (publish, input)
}

fn leaves_no_session_over(transport: &str) {
    let directory = configured(transport);
    let here = directory.path();
    let running = sequencer(here);
    write_lines(here, "lines", &["one".to_owned(), "two".to_owned()]);
    stream(here, "publish lines").good();
    wait_for_sessions(here, 0);
    let kinds: Vec<String> = stream(here, "replay --json").good().lines().map(kind).collect();
    assert_eq!(kinds, ["feed-began", "session-open", "event", "event", "session-close"]);

    let (mut publish, _input) = publisher_with_a_line(here, stream_command(here, "publish").stderr(Stdio::null()));
    wait_for_sessions(here, 1);
    publish.interrupt();
    assert_eq!(publish.wait().code(), Some(1), "not everything was published");
    wait_for_sessions(here, 0);
    let (mut chat, input) = publisher_with_a_line(here, stream_command(here, "node --from live").stderr(Stdio::null()));
    drop(input);
    assert_eq!(chat.wait().code(), Some(0));
    wait_for_sessions(here, 0);

    let (mut killed, _input) = publisher_with_a_line(here, stream_command(here, "publish").stderr(Stdio::null()));
    killed.kill();
    stream(here, "publish lines --token monday").good();
    wait_for_sessions(here, 2);

    drop(running);
    let _running = sequencer(here);
    stream(here, "publish lines").good();
    wait_for_sessions(here, 2);
}

fn kind(line: &str) -> String {
    serde_json::from_str::<Value>(line).unwrap()["kind"].as_str().unwrap().to_owned()
}

#[test]
fn over_shared_memory() {
    leaves_no_session_over("shared-memory");
}

#[test]
fn over_udp() {
    leaves_no_session_over("udp");
}

#[test]
fn over_multicast() {
    leaves_no_session_over("multicast");
}

#[test]
fn over_tcp() {
    leaves_no_session_over("tcp");
}

#[test]
fn through_a_dispatcher() {
    let directory = configured("tcp");
    let here = directory.path();
    let _running = sequencer(here);
    let mut relay = started(here, &["stream", "dispatch", "--config", "stream.toml", "--to", "dispatched"]);
    assert!(relay.line().starts_with("looking for the stream at "));
    assert!(relay.line().contains(" passed on: "));
    write_lines(here, "lines", &["one".to_owned()]);
    program::run(here, &["stream", "publish", "lines", "--directory", "dispatched"]).good();
    wait_for_sessions(here, 0);
}

#[test]
fn halted_stream_lets_publisher_end() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let _running = sequencer(here);
    let said = std::fs::File::create(here.join("said")).unwrap();
    let (mut publish, _input) = publisher_with_a_line(here, stream_command(here, "publish").stderr(said));
    stream(here, "control halt").good();
    publish.interrupt();
    assert_eq!(publish.wait().code(), Some(1));
    let said = std::fs::read_to_string(here.join("said")).unwrap();
    assert!(said.contains("interrupted; 1 lines published, 0 of them not acknowledged"), "{said}");
    wait_for_sessions(here, 1);
    stream(here, "control resume").good();
    wait_for_sessions(here, 0);
}

#[test]
fn halted_stream_with_nothing_to_send() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let _running = sequencer(here);
    let mut command = stream_command(here, "node --from first");
    let (mut chat, input) = publisher_with_a_line(here, command.stderr(Stdio::inherit()));
    stream(here, "control halt").good();
    while !chat.line().contains("halted") {}
    drop(input);
    assert_eq!(chat.wait().code(), Some(0), "its line is in the stream");
    stream(here, "control resume").good();
    wait_for_sessions(here, 0);
}
