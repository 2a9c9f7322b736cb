#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::stream_process::{configured, sequencer, some_lines, stream, stream_command, write_lines};
use gapless_testkit::process::Process;
use std::process::Stdio;

const BEFORE: usize = 1_500;

fn survives_a_killed_sequencer(transport: &str) {
    let directory = configured(transport);
    let here = directory.path();
    let lines = some_lines(5_000);
    write_lines(here, "lines", &lines);
    let mut running = sequencer(here);
    let mut tail = Process::start(&mut stream_command(here, "tail --raw --from first --count 5000"));
    let mut publish = Process::start(stream_command(here, "publish lines --rate 2500").stderr(Stdio::null()));
    let mut met: Vec<String> = (0..BEFORE).map(|_| tail.line()).collect();
    running.kill();
    let mut running = sequencer(here);
    assert_eq!(publish.wait().code(), Some(0), "everything is acknowledged");
    met.extend(tail.rest());
    assert!(met == lines, "the tail has met {} lines of {}", met.len(), lines.len());
    running.interrupt();
    assert_eq!(running.wait().code(), Some(0));
    let replayed = stream(here, "replay --raw").good();
    assert!(replayed.lines().eq(&lines), "the journal holds {} lines", replayed.lines().count());
}

#[test]
fn killed_sequencer_shared_memory() {
    survives_a_killed_sequencer("shared-memory");
}

#[test]
fn killed_sequencer_udp() {
    survives_a_killed_sequencer("udp");
}

#[test]
fn killed_sequencer_multicast() {
    survives_a_killed_sequencer("multicast");
}

#[test]
fn killed_sequencer_tcp() {
    survives_a_killed_sequencer("tcp");
}

#[test]
fn killed_publisher_resumes_by_token() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let lines = some_lines(6_000);
    write_lines(here, "lines", &lines);
    let _running = sequencer(here);
    let mut tail = Process::start(&mut stream_command(here, "tail --raw --from first --count 6000"));
    let mut publish = Process::start(&mut stream_command(here, "publish lines --rate 6000 --token import"));
    let mut met: Vec<String> = (0..BEFORE).map(|_| tail.line()).collect();
    publish.kill();
    let again = stream(here, "publish lines --token import");
    assert!(again.stderr.contains(" were there already"), "{again:?}");
    again.good();
    met.extend(tail.rest());
    assert!(met == lines, "the tail has met {} lines of {}", met.len(), lines.len());

    let third = stream(here, "publish lines --token import");
    assert!(third.stderr.starts_with("0 lines published") && third.stderr.contains("6000 were there"), "{third:?}");
    third.good();
    let longer = [lines.clone(), vec!["one more".to_owned()]].concat();
    write_lines(here, "longer", &longer);
    let fourth = stream(here, "publish longer --token import");
    assert!(fourth.stderr.starts_with("1 lines published"), "{fourth:?}");
    fourth.good();
    let replayed = stream(here, "replay --raw").good();
    assert!(replayed.lines().eq(&longer), "the journal holds {} lines", replayed.lines().count());
}

#[test]
fn other_lines_with_token_are_noticed() {
    let directory = configured("udp");
    let here = directory.path();
    let _running = sequencer(here);
    write_lines(here, "short", &["a".to_owned(), "b".to_owned()]);
    write_lines(here, "long", &["a".to_owned(), "b".repeat(5_000)]);
    stream(here, "publish short --token t").good();
    let error = stream(here, "publish long --token t").error(1);
    assert!(error.contains("line 2") && error.contains("other lines than these"), "{error}");
}
