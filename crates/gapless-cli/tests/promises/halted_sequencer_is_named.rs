#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{gapless, run};
use crate::stream_process::{configured, sequencer, stream, stream_command, write_lines};
use gapless_testkit::process::Process;
use gapless_testkit::wait::until;
use rustix::process::Signal;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;
use std::sync::mpsc::Receiver;

fn process_name(sequencer: &Process) -> String {
    format!("process {}", sequencer.pid().as_raw_nonzero())
}

fn stopped_report(errors: &Receiver<String>, beginning: &str, sequencer: &Process) -> String {
    let is_it = |line: &String| {
        line.contains(beginning) && line.contains(&process_name(sequencer)) && line.contains("is stopped by a signal")
    };
    errors.iter().find(is_it).unwrap_or_else(|| panic!("no line says {beginning}"))
}

#[test]
fn newcomer_waits_and_continues() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let running = sequencer(here);
    write_lines(here, "lines", &["one".to_owned()]);
    stream(here, "publish lines").good();
    running.stop();
    let start = |words: &str| {
        let mut process = Process::start(stream_command(here, words).stdin(Stdio::null()).stderr(Stdio::piped()));
        (process.error_lines(), process)
    };
    let commands = ["publish lines", "node", "tail --no-follow", "replay --rewind"];
    let mut waiting = commands.map(|words| start(&format!("{words} --timeout 600")));
    for (errors, _) in &waiting {
        for waited in [1, 2, 5] {
            stopped_report(errors, &format!("note: waiting for {waited} s: no sequencer answers at "), &running);
        }
    }
    running.signal(Signal::CONT);
    for ((errors, process), words) in waiting.iter_mut().zip(commands) {
        assert_eq!(process.wait().code(), Some(0), "{words}: {:?}", errors.iter().collect::<Vec<_>>());
    }
}

#[test]
fn newcomer_gives_up_at_timeout() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let running = sequencer(here);
    write_lines(here, "lines", &["one".to_owned()]);
    running.stop();
    std::thread::scope(|scope| {
        for words in ["publish lines", "node", "tail", "replay --rewind"] {
            let running = &running;
            scope.spawn(move || {
                let said = stream(here, &format!("{words} --timeout 2")).error(1);
                let expected = "within 2 s; is it running? (";
                assert!(said.contains(expected) && said.contains(&process_name(running)), "{words}: {said}");
            });
        }
    });
    let said = stream(here, "control halt --timeout 2").error(1);
    let expected = "to a halt within 2000 ms";
    assert!(said.contains(expected) && said.contains(&process_name(&running)), "{said}");
}

#[test]
fn active_nodes_report_a_stop() {
    let (stopped, idle) = (configured("shared-memory"), configured("shared-memory"));
    let (running, _idle) = (sequencer(stopped.path()), sequencer(idle.path()));
    let start = |here, words| {
        let mut command = stream_command(here, words);
        Process::start(command.stdin(Stdio::piped()).stderr(Stdio::piped()))
    };
    let mut beside = start(idle.path(), "tail --from live --raw");
    let mut publisher = start(stopped.path(), "publish");
    let (mut input, publisher_errors) = (publisher.input(), publisher.error_lines());
    let mut tail = start(stopped.path(), "tail --raw");
    let tail_errors = tail.error_lines();
    input.write_all(b"one\n").unwrap();
    assert_eq!(tail.line(), "one");
    running.stop();
    // A publisher without input waits only for the stream.
    stopped_report(&publisher_errors, "note: waiting for 1 s: nothing comes: the sequencer's ", &running);
    input.write_all(b"two\n").unwrap();
    for waited in [1, 2] {
        stopped_report(
            &tail_errors,
            &format!("note: waiting for {waited} s: nothing comes: the sequencer's "),
            &running,
        );
    }
    stopped_report(&publisher_errors, " s: a message has not come back: the sequencer's ", &running);
    running.signal(Signal::CONT);
    assert_eq!(tail.line(), "two");
    drop(input);
    assert_eq!(publisher.wait().code(), Some(0));
    beside.interrupt();
    assert_eq!(beside.errors(), "", "its stream is idle");
}

#[test]
fn status_reports_it_and_exits_with_4() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let running = sequencer(here);
    let status = |words: &str| stream(here, &format!("status{words}"));
    let json = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    assert_eq!(json(&status(" --json").good())["answers"], true);
    running.stop();
    let ended = status("");
    assert!(ended.stdout.contains(&process_name(&running)) && !ended.stdout.contains("running"), "{ended:?}");
    assert!(ended.stdout.contains("last_sequence"), "the counters are there: {ended:?}");
    let said = ended.error(1);
    assert!(said.contains("does not answer: it is stopped by a signal; SIGCONT lets it go on"), "{said}");
    let ended = status(" --json");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let shown = json(&ended.stdout);
    assert_eq!((&shown["running"], &shown["answers"]), (&Value::Bool(true), &Value::Bool(false)), "{shown}");
    assert!(shown["silence"].as_str().unwrap().contains(&process_name(&running)), "{shown}");
    running.signal(Signal::CONT);
    assert_eq!(json(&status(" --json").good())["answers"], true);
}

#[test]
fn control_names_the_sequencer() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let running = sequencer(here);
    running.stop();
    let mut halting = Process::start(stream_command(here, "control halt").stderr(Stdio::piped()));
    stopped_report(&halting.error_lines(), "note: waiting for 1 s: no answer from ", &running);
    running.signal(Signal::CONT);
    assert!(halting.line().starts_with("halted at sequence "));
}

#[test]
fn relay_logs_the_stop() {
    let directory = configured("shared-memory");
    let here = directory.path();
    let running = sequencer(here);
    let words = ["stream", "archive", "--config", "stream.toml", "--to", "archive"];
    let mut archiving = Process::start(gapless(here, &words).stderr(Stdio::piped()));
    let errors = archiving.error_lines();
    let lines = [archiving.line(), archiving.line()];
    assert!(lines[1].contains("passed on"), "{lines:?}");
    running.stop();
    stopped_report(&errors, "nothing comes: the sequencer's ", &running);
    running.signal(Signal::CONT);
    archiving.interrupt();
    assert_eq!(archiving.wait().code(), Some(0));
}

#[test]
fn stopped_cluster_member_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    run(here, &["cluster", "new", "orders", "--members", "1"]).good();
    let member = Process::start(&mut gapless(here, &["cluster", "start", "orders/member-1.toml"]));
    let status = ["cluster", "status", "orders/member-1.toml"];
    until("it leads", || run(here, &status).stdout.contains("member 1 of orders: leader"));
    member.stop();
    let said = run(here, &status).error(1);
    assert!(said.contains(&process_name(&member)) && said.contains("is stopped by a signal"), "{said}");
    let said = run(here, &["stream", "status", "--directory", "orders/member-1"]).error(1);
    assert!(said.contains(&process_name(&member)) && said.contains("is stopped by a signal"), "{said}");
}
