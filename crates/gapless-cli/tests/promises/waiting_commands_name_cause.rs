#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{gapless, run};
use crate::stream_process::{configured, sequencer, stream, stream_command, write_lines};
use gapless_testkit::process::Process;
use std::io::Write;
use std::process::Stdio;

const NO_SEQUENCER: &str = " s: no sequencer answers at ";

/// Number of notes about a wait that contain `cause`.
fn notes(errors: &str, cause: &str) -> usize {
    errors.lines().filter(|line| line.contains("note: waiting for ") && line.contains(cause)).count()
}

#[test]
fn publisher_reports_killed_sequencer() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let mut running = sequencer(here);
    let mut command = stream_command(here, "publish --timeout 6");
    let mut publisher = Process::start(command.stdin(Stdio::piped()).stderr(Stdio::piped()));
    let mut input = publisher.input();
    input.write_all(b"one\n").unwrap();
    let mut tail = Process::start(&mut stream_command(here, "tail --raw"));
    assert_eq!(tail.line(), "one");
    running.kill();
    input.write_all(b"two\n").unwrap();
    let said = publisher.errors();
    assert_eq!(publisher.wait().code(), Some(1), "{said}");
    assert!(notes(&said, NO_SEQUENCER) >= 2, "a note is repeated: {said}");
}

#[test]
fn publisher_reports_halt_or_end() {
    let waits = |command: &str, expected: &str| {
        let directory = configured("shared-memory");
        let here = directory.path();
        let _running = sequencer(here);
        write_lines(here, "lines", &["one".to_owned()]);
        stream(here, command).good();
        let ended = stream(here, "publish lines --timeout 3");
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(notes(&ended.stderr, " s: ") > 0 && ended.stderr.contains(expected), "{ended:?}");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| waits("control halt", "is halted"));
        scope.spawn(|| waits("control end", "feed session"));
    });
}

#[test]
fn reader_reports_missing_sequencer() {
    let waits = |transport: &str| {
        let directory = configured(transport);
        let ended = stream(directory.path(), "tail --timeout 3");
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(notes(&ended.stderr, NO_SEQUENCER) > 0, "{transport}: {ended:?}");
    };
    std::thread::scope(|scope| {
        for transport in ["udp", "tcp", "multicast"] {
            scope.spawn(move || waits(transport));
        }
    });
}

#[test]
fn lone_dispatcher_and_member_report() {
    let directory = configured("udp");
    let here = directory.path();
    run(here, &["cluster", "new", "orders"]).good();
    let dispatching = ["stream", "dispatch", "--config", "stream.toml", "--to", "here"];
    for (words, expected) in
        [(&dispatching[..], "no sequencer answers"), (&["cluster", "start", "orders/member-1.toml"], "absent=\"2, 3\"")]
    {
        let mut waiting = Process::start(gapless(here, words).stderr(Stdio::piped()));
        let errors = waiting.error_lines();
        let told = errors.iter().find(|line: &String| line.contains("waited_s=") && line.contains(expected));
        assert!(told.is_some(), "{words:?}");
        waiting.interrupt();
        assert_eq!(waiting.wait().code(), Some(0), "{words:?}");
    }
}
