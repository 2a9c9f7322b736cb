#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::floor::Floor;
use crate::program::{ProgramOutput, gapless, run};
use gapless_testkit::process::Process;
use gapless_testkit::wait::until;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn is(states: &[(String, String)], expected: &[(&str, &str)]) -> bool {
    states.iter().map(|(instance, state)| (instance.as_str(), state.as_str())).eq(expected.iter().copied())
}

#[test]
fn floor_is_run_from_up_to_down() {
    let floor = Floor::new(
        "[process.worker]\ncommand = [\"sh\", \"-c\", \"echo here I am; exec sleep 300\"]\n\
         instances = { min = 1, max = 2 }\nready = { line = \"here I\" }\n\
         [process.later]\ncommand = [\"sleep\", \"300\"]\nafter = [\"worker\"]\n",
    );
    let said = run(floor.path(), &["up", "floor.toml"]).good();
    assert!(said.ends_with("2 instances are up\n"), "{said}");
    let order = ["worker.1: ready", "later.1: ready"].map(|line| said.find(line).unwrap());
    assert!(order.is_sorted(), "{said}");
    let shown = run(floor.path(), &["ps"]).shown();
    assert!(shown.starts_with("INSTANCE") && shown.lines().count() == 3, "{shown}");
    assert_eq!(run(floor.path(), &["logs", "worker"]).good(), "here I am\n");

    run(floor.path(), &["scale", "worker=2"]).good();
    let both = [("worker.1", "ready"), ("worker.2", "ready"), ("later.1", "ready")];
    until("there are two", || is(&floor.states(), &both));
    run(floor.path(), &["stop", "later", "--at", "floor.toml"]).good();
    let stopped = [("worker.1", "ready"), ("worker.2", "ready"), ("later.1", "stopped")];
    until("it is stopped", || is(&floor.states(), &stopped));
    run(floor.path(), &["start", "later"]).good();
    until("it is back", || is(&floor.states(), &both));
    let before = floor.instances();
    run(floor.path(), &["up", "floor.toml"]).good();
    let pids =
        |instances: &[Value]| instances.iter().map(|instance| instance["process_id"].clone()).collect::<Vec<_>>();
    assert_eq!(pids(&floor.instances()), pids(&before), "what runs is left alone");

    for (words, expected) in [
        (&["scale", "worker=3"][..], "the file allows 1 to 2"),
        (&["scale", "worker=1", "later=9"], "the file allows 1 to 1"),
        (&["start", "nobody"], "worker, later are"),
        (&["scale", "worker=1", "worker=2"], "\"worker\" is given two numbers of instances"),
        (&["logs", "nobody"], "worker, later are"),
        (&["logs", "worker.9"], "worker.9 has no log"),
    ] {
        let ended = run(floor.path(), words);
        assert!(ended.stderr.contains(expected), "{words:?}: {}", ended.stderr);
    }
    assert!(is(&floor.states(), &both), "what is refused in part changes nothing");
    assert_eq!(run(floor.path(), &["down"]).good(), "all has ended\n");
    assert_eq!(run(floor.path(), &["down"]).good(), "nothing runs\n");
    let pids = pids(&before);
    let left = pids.iter().filter(|pid| Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(left.count(), 0);
    let said = run(floor.path(), &["start", "worker"]).error(1);
    assert!(said.contains("gapless up FILE"), "{said}");
}

#[test]
fn up_names_unready_instances() {
    let floor = Floor::new(
        "[process.worker]\ncommand = [\"sh\", \"-c\", \"echo no such luck; exit 7\"]\n\
         ready = \"notify\"\nrestart = { restarts_max = 1, backoff_first = \"1 ms\" }\n\
         [process.task]\ncommand = [\"true\"]\nonce = true\n",
    );
    let said = run(floor.path(), &["up", "floor.toml"]).error(1);
    assert!(said.contains("worker.1: held (exited with 7; \"no such luck\")"), "{said}");
    assert!(is(&floor.states(), &[("worker.1", "held"), ("task.1", "done")]), "{:?}", floor.states());
    let wrong = floor.path().join("wrong.toml");
    std::fs::write(&wrong, "[process.worker]\ncommand = [\"true\"]\nsingleton = true\nonce = true\n").unwrap();
    let said = run(floor.path(), &["up", "wrong.toml"]).error(1);
    assert!(said.contains("a task (`once`) is none"), "{said}");
    assert!(!floor.path().join("wrong.state").exists(), "no supervisor was started for it");
}

#[test]
fn stopped_instance_stays_stopped() {
    let floor = Floor::new("[process.worker]\ncommand = [\"sleep\", \"300\"]\ninstances = { min = 2, max = 4 }\n");
    run(floor.path(), &["up", "floor.toml"]).good();
    let pids = || floor.instances().iter().map(|instance| instance["process_id"].clone()).collect::<Vec<_>>();
    let both = [("worker.1", "ready"), ("worker.2", "ready")];
    let before = pids();
    for command in ["restart", "reload"] {
        let before = pids();
        run(floor.path(), &[command, "worker.2"]).good();
        until(command, || pids()[1] != before[1] && is(&floor.states(), &both));
    }
    run(floor.path(), &["stop", "worker.2"]).good();
    let stopped = [("worker.1", "ready"), ("worker.2", "stopped")];
    until("it is stopped", || is(&floor.states(), &stopped));
    let supervisor = floor.status()["supervisor_process_id"].clone();
    let pid = rustix::process::Pid::from_raw(supervisor.as_i64().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    until("another one is there", || {
        let status = floor.status();
        let found = &status["supervisor_process_id"];
        !found.is_null() && *found != supervisor && status["problem"].is_null()
    });
    assert!(is(&floor.states(), &stopped), "{:?}", floor.states());
    assert_eq!(pids()[0], before[0], "the other instance is unchanged");
    let said = run(floor.path(), &["start", "worker.3"]).error(1);
    assert!(said.contains("worker.3 is not a configured instance; worker has 2 now, numbered from 1"), "{said}");
    let said = run(floor.path(), &["start", "other.1"]).error(1);
    assert!(said.contains("\"other.1\" is no process of the file; worker are"), "{said}");
    run(floor.path(), &["start", "worker.2"]).good();
    until("it is back", || is(&floor.states(), &both));
    run(floor.path(), &["stop", "worker.2"]).good();
    until("it is stopped again", || is(&floor.states(), &stopped));
    run(floor.path(), &["up", "floor.toml"]).good();
    until("`up` starts what is stopped", || is(&floor.states(), &both));
}

#[track_caller]
fn line_with(printed: &mut Process, text: &str) {
    let mut all = Vec::new();
    while let Some(line) = printed.next_line() {
        if line.contains(text) {
            return;
        }
        all.push(line);
    }
    panic!("it has ended, and {text:?} is missing: {all:?}");
}

#[test]
fn reload_events_and_logs() {
    let one = "[process.one]\ncommand = [\"sh\", \"-c\", \"echo one begins; exec sleep 300\"]\n";
    let floor = Floor::new(one);
    run(floor.path(), &["up", "floor.toml"]).good();
    let events = run(floor.path(), &["events"]).good();
    assert!(events.lines().any(|line| line.ends_with("Z one.1: ready")), "{events}");
    assert_eq!(run(floor.path(), &["events", "-n", "1"]).good().lines().count(), 1);
    let json: Vec<Value> = run(floor.path(), &["events", "--json"]).good().lines().map(as_json).collect();
    assert!(json.iter().any(|event| event["instance"] == "one.1" && event["what"] == "ready"), "{json:?}");
    let line = as_json(run(floor.path(), &["logs", "--json"]).good().trim_end());
    assert_eq!((&line["instance"], &line["line"]), (&"one.1".into(), &"one begins".into()));

    let mut happens = Process::start(&mut gapless(floor.path(), &["events", "-f"]));
    let mut printed = Process::start(&mut gapless(floor.path(), &["logs", "-f"]));
    line_with(&mut printed, "one begins");
    let path = floor.path().join("floor.toml");
    std::fs::write(&path, format!("{one}instances = many\n")).unwrap();
    let refused = run(floor.path(), &["reload"]).error(1);
    assert!(refused.contains("floor.toml:3"), "{refused}");
    line_with(&mut happens, "a new file was not taken: ");
    assert!(is(&floor.states(), &[("one.1", "ready")]));
    std::fs::write(
        &path,
        format!("{one}[process.two]\ncommand = [\"sh\", \"-c\", \"echo two begins; exec sleep 300\"]\n"),
    )
    .unwrap();
    run(floor.path(), &["reload"]).good();
    line_with(&mut happens, "two.1: ready");
    line_with(&mut printed, "two begins");

    run(floor.path(), &["down"]).good();
    let events = run(floor.path(), &["events", "-n", "2"]).good();
    assert!(
        events.lines().count() == 2 && events.lines().all(|line| line.ends_with("killed by signal 15")),
        "{events}"
    );
}

fn as_json(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn ps_shows_routes_of_instances() {
    let served = env!("CARGO_BIN_EXE_gapless");
    let floor = Floor::new(&format!(
        "[process.upper]\ncommand = [\"{served}\", \"serve\", \"upper\", \"--json\", \"--\", \"tr\", \"a-z\", \"A-Z\"]\n\
         ready = {{ route = \"upper\" }}\n\
         [process.busy]\ncommand = [\"sh\", \"-c\", \"while :; do :; done\"]\n\
         [process.idle]\ncommand = [\"sleep\", \"300\"]\n"
    ));
    run(floor.path(), &["up", "floor.toml"]).good();
    let directory = floor.path().join("floor.state/domain");
    for _ in 0..3 {
        let words = ["call", "upper", "--directory", directory.to_str().unwrap(), "\"abc\""];
        assert_eq!(run(floor.path(), &words).good().trim_end(), "\"ABC\"");
    }
    let shown = || {
        let mut instances = floor.instances();
        let [upper, busy, idle] = [0, 1, 2].map(|index| instances[index].take());
        let percent = |instance: &Value| instance["cpu_percent"].as_f64().unwrap_or(0.0);
        assert!(percent(&idle) < 50.0 && idle["routes"] == serde_json::json!([]), "{idle}");
        let routes = upper["routes"].as_array().unwrap().clone();
        let is_counted = routes.iter().any(|route| route["calls"] == 3 && route["p99_ns"].as_u64() > Some(0));
        is_counted && percent(&busy) > 1.0
    };
    until("three calls are counted", shown);
    let text = run(floor.path(), &["ps"]).shown();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let heads = [
        "INSTANCE", "STATE", "PID", "SINCE", "RESTARTS", "CPU", "MEMORY", "CALLS", "QUEUE", "P50", "P99", "LAST", "END",
    ];
    assert_eq!(lines[0], heads, "{text}");
    assert_eq!(&lines[1][9..12], ["MiB", "3", "0"], "{text}");
    assert_eq!(&lines[3][10..], ["-", "-", "-", "-"], "{text}");
}

#[test]
fn exit_codes_tell_health() {
    let floor = Floor::new("[process.a]\ncommand = [\"sleep\", \"300\"]\n");
    let code = || run(floor.path(), &["ps"]).code;
    run(floor.path(), &["up", "floor.toml"]).good();
    assert_eq!(code(), Some(0));
    run(floor.path(), &["stop", "a"]).good();
    until("a person has stopped it", || code() == Some(0));
    let failing = "[process.a]\ncommand = [\"false\"]\nrestart = { policy = \"never\" }\n";
    std::fs::write(floor.path().join("floor.toml"), failing).unwrap();
    run(floor.path(), &["up", "floor.toml"]);
    until("it has failed", || code() == Some(1));
    run(floor.path(), &["down"]).good();
    assert_eq!(code(), Some(3));
}

#[test]
fn failed_checks_are_logged_seldom() {
    let floor = Floor::new("[process.a]\ncommand = [\"sleep\", \"300\"]\n");
    run(floor.path(), &["up", "floor.toml"]).good();
    let process = floor.instances()[0]["process_id"].as_i64().unwrap();
    let lock = floor.path().join("floor.state/instances/a.1/lock");
    std::fs::remove_file(&lock).unwrap();
    mknodat(CWD, &lock, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let begun = Instant::now();
    kill_process(Pid::from_raw(process as i32).unwrap(), Signal::KILL).unwrap();
    let said = |text: &str| {
        let log = std::fs::read_to_string(floor.path().join("floor.state/guardian.log")).unwrap();
        log.lines().filter(|line| line.contains("it is a pipe") && line.contains(text)).count()
    };
    until("it is said twice", || said("") >= 2);
    let elapsed = begun.elapsed();
    std::fs::remove_file(&lock).unwrap();
    assert!(elapsed >= Duration::from_secs(1), "{elapsed:?}");
    until("that it is over is said", || said("no more: ") == 1);
    until("it runs again", || is(&floor.states(), &[("a.1", "ready")]));
}

#[test]
fn stopped_and_missing_are_distinct() {
    let one = "[process.a]\ncommand = [\"sleep\", \"300\"]\n";
    let floor = Floor::new(one);
    std::fs::write(floor.path().join("other.toml"), one).unwrap();
    for file in ["floor.toml", "other.toml"] {
        run(floor.path(), &["up", file]).good();
        run(floor.path(), &["down", "--at", file]).good();
        assert_eq!(run(floor.path(), &["ps"]).code, Some(3), "{file}");
        assert_eq!(run(floor.path(), &["down"]).good(), "nothing runs\n", "{file}");
    }
    for command in ["down", "ps", "logs"] {
        let told = run(floor.path(), &[command, "--at", "."]).error(2);
        assert!(told.contains(". is no state directory of a supervisor"), "{told}");
    }
    let events = floor.path().join("floor.state/events.log");
    std::fs::remove_file(&events).unwrap();
    mknodat(CWD, &events, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let mut following =
        Process::start(gapless(floor.path(), &["events", "-f", "--at", "floor.state"]).stderr(Stdio::piped()));
    assert_eq!(following.wait_end("it ends").code(), Some(1));
    let told = following.errors();
    assert!(told.contains("events.log: it is a pipe, no regular file"), "{told}");
}

#[test]
fn no_guardian_without_descriptors() {
    let floor = Floor::new("[process.a]\ncommand = [\"sleep\", \"300\"]\n");
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -n 20; exec \"$0\" up floor.toml", env!("CARGO_BIN_EXE_gapless")]);
    let limited = ProgramOutput::from(limited.current_dir(floor.path()).output().unwrap());
    assert!(limited.code == Some(1) && limited.stderr.contains("ulimit -n"), "{limited:?}");
    run(floor.path(), &["up", "floor.toml"]).good();
}
