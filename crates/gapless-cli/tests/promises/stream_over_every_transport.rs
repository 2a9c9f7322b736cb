#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::stream_process::{configured, sequencer, some_lines, stream, stream_command, stream_with, write_lines};
use gapless_testkit::process::Process;
use serde_json::Value;

fn runs_over(transport: &str) {
    let directory = configured(transport);
    let here = directory.path();
    let mut running = sequencer(here);
    let lines = some_lines(2_000);
    write_lines(here, "lines", &lines);

    let mut tail = Process::start(&mut stream_command(here, "tail --raw --from first --count 2000"));
    stream(here, "publish lines --schema 7:3").good();
    assert_eq!(tail.rest(), lines, "a follower meets every line in order");
    assert_eq!(tail.wait().code(), Some(0));
    let text: Vec<String> = stream(here, "tail --no-follow --raw").good().lines().map(str::to_owned).collect();
    assert_eq!(text, lines, "a late joiner, too");
    assert_eq!(stream(here, "tail --no-follow --from live --raw").good(), "");

    let objects = stream(here, "tail --no-follow --json").good();
    let objects: Vec<Value> = objects.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = objects[..3].iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["feed-began", "session-open", "event"]);
    let first = &objects[2];
    assert_eq!((&first["payload"], &first["length"]), (&Value::from(&*lines[0]), &Value::from(lines[0].len())));
    assert_eq!((&first["schema_id"], &first["template_id"], &first["session_seq"]), (&7.into(), &3.into(), &1.into()));
    assert!(objects.iter().all(|object| object["time"].as_str().unwrap().ends_with('Z')));

    std::fs::write(here.join("hex"), "00ff\n0A\n\n").unwrap();
    stream_with(here, "publish --hex", &here.join("hex")).good();
    let hexed = stream(here, "tail --no-follow").good();
    let hexed: Vec<&str> = hexed.lines().collect();
    let ends: Vec<bool> = [" 2 bytes hex 00ff", " 1 bytes \\n", " 0 bytes "]
        .iter()
        .zip(&hexed[hexed.len() - 4..])
        .map(|(end, line)| line.ends_with(end))
        .collect();
    assert_eq!(ends, [true; 3], "{hexed:?}");
    assert!(hexed[hexed.len() - 1].contains(" session-close session "), "who publishes leaves no session: {hexed:?}");

    std::fs::write(here.join("chat"), "hello\n").unwrap();
    let chat = stream_with(here, "node --from live", &here.join("chat")).good();
    let chat: Vec<&str> = chat.lines().collect();
    assert!(chat.len() == 2 && chat[0].contains(" session-open own ") && chat[1].contains(" event own "), "{chat:?}");

    let from_journal = stream(here, "replay --from 3 --to 400").good();
    assert_eq!(stream(here, "replay --from 3 --to 400 --rewind").good(), from_journal, "rewound from the sequencer");
    running.interrupt();
    assert!(running.rest()[0].starts_with("stopped at sequence "));
    assert_eq!(running.wait().code(), Some(0));
    assert_eq!(stream(here, "replay --from 3 --to 400").good(), from_journal, "without a sequencer");
}

#[test]
fn over_shared_memory() {
    runs_over("shared-memory");
}

#[test]
fn over_udp() {
    runs_over("udp");
}

#[test]
fn over_multicast() {
    runs_over("multicast");
}

#[test]
fn over_tcp() {
    runs_over("tcp");
}
