//! Processes of one user that share a directory, but neither process nor user namespaces, or not their clocks: like
//! containers of one volume.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::floor::Floor;
use crate::program::{ProgramOutput, gapless};
use gapless_testkit::process::Process;
use gapless_testkit::wait::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

const UNSHARE: [&str; 6] = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"];
/// Clocks a day ahead.
const LATER: [&str; 9] =
    ["--user", "--map-root-user", "--time", "--monotonic", "90000", "--boottime", "90000", "--fork", "--kill-child"];

const FOREIGN_PROC: [&str; 5] = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
const MOUNTS: [&str; 3] = ["--user", "--map-root-user", "--mount"];

fn in_container(directory: &Path, words: &[&str]) -> Command {
    in_namespaces(&UNSHARE, directory, words)
}

fn in_namespaces(namespaces: &[&str], directory: &Path, words: &[&str]) -> Command {
    let program = gapless(directory, words);
    let mut command = Command::new("unshare");
    command.args(namespaces).arg(program.get_program()).args(program.get_args());
    command.current_dir(directory).stdin(Stdio::null());
    command
}

fn has_namespaces() -> bool {
    can_make(&UNSHARE)
}

fn can_make(namespaces: &[&str]) -> bool {
    let trial = Command::new("unshare").args(namespaces).arg("true").output();
    let has = trial.as_ref().is_ok_and(|ended| ended.status.success());
    if !has {
        println!("SKIPPED: unshare {namespaces:?}: {trial:?}");
    }
    has
}

fn contained_sequencer(directory: &Path) -> Process {
    let mut process = Process::start(&mut in_container(directory, &["stream", "sequencer", "--directory", "orders"]));
    assert!(process.line().starts_with("stream "));
    process
}

fn output_of(mut command: Command) -> ProgramOutput {
    command.output().unwrap().into()
}

#[test]
fn stream_is_published_and_inspected() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::fs::write(here.join("lines"), "one\n").unwrap();
    let mut sequencer = contained_sequencer(here);
    let publish = ["stream", "publish", "--directory", "orders", "lines"];
    let status = ["stream", "status", "--directory", "orders", "--json"];
    for command in [in_container, gapless] {
        output_of(command(here, &publish)).good();
        let status: Value = serde_json::from_str(&output_of(command(here, &status)).good()).unwrap();
        assert_eq!((&status["process"], &status["process_in_other_namespace"]), (&1.into(), &true.into()), "{status}");
        let top = output_of(command(here, &["top", "--once", "orders"])).good();
        assert!(top.contains("running"), "{top}");
        let second = output_of(command(here, &["stream", "sequencer", "--directory", "orders"])).error(1);
        assert!(second.contains("in use by process 1"), "{second}");
    }
    sequencer.kill();
    sequencer.wait_end("it was killed");
    until("nothing runs there", || output_of(gapless(here, &status)).code == Some(3));
}

#[test]
fn killed_container_is_waited_for() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        // Each is process 1, like the previous one, which may still be dying.
        let mut sequencer = contained_sequencer(directory.path());
        sequencer.kill();
    }
}

#[test]
fn members_meet_by_shared_memory() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    output_of(gapless(here, &["cluster", "new", "trio"])).good();
    let mut members = Vec::new();
    for member in 1..=3 {
        let path = here.join(format!("trio/member-{member}.toml"));
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| match line.strip_prefix("addresses = [\"127.0.0.1:") {
            Some(rest) => {
                let port = rest.split('"').next().unwrap();
                format!("addresses = [\"shm:{}/link-{port}\"]", here.display())
            }
            None => line.to_owned(),
        });
        std::fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
        let file = format!("trio/member-{member}.toml");
        members.push(Process::start(&mut in_container(here, &["cluster", "start", &file])));
    }
    until("they have a leader", || {
        output_of(gapless(here, &["cluster", "status", "trio/member-1.toml"])).code == Some(0)
    });
}

#[test]
fn instances_survive_other_clocks() {
    if !can_make(&LATER) {
        return;
    }
    let floor = Floor::new("[process.worker]\ncommand = [\"sleep\", \"300\"]\n");
    output_of(in_namespaces(&LATER, floor.path(), &["up", "floor.toml"])).good();
    // Each is taken over by the next one, which has other clocks.
    for command in [gapless, |directory: &Path, words: &[&str]| in_namespaces(&LATER, directory, words)] {
        let before = floor.status();
        for role in ["guardian_process_id", "supervisor_process_id"] {
            let pid = Pid::from_raw(i32::try_from(before[role].as_i64().unwrap()).unwrap()).unwrap();
            kill_process(pid, Signal::STOP).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
        }
        output_of(command(floor.path(), &["up", "floor.toml"])).good();
        let (before, after) = (&before["instances"][0], &floor.instances()[0]);
        assert_eq!((&after["process_id"], &after["restarts"]), (&before["process_id"], &0.into()));
        let (since_ms, running_ms) = (after["since_ms"].as_u64().unwrap(), after["running_ms"].as_u64().unwrap());
        assert!(since_ms < 3_600_000 && running_ms < 3_600_000, "{after}");
    }
}

/// Process 1: starts the floor, and kills guardian and supervisor at the test's signal.
const CONTAINER: &str = r#""$0" up floor.toml && echo up
until [ -e go ]; do sleep 0.02; done
roles=$(sed 's/.*"process_id":\([0-9]*\).*/\1/' floor.state/guardian.lock floor.state/supervisor.lock)
kill -STOP $roles && kill -9 $roles
echo killed
exec sleep 300"#;

#[test]
fn container_instances_are_marked() {
    if !has_namespaces() {
        return;
    }
    let floor = Floor::new("[process.worker]\ncommand = [\"sleep\", \"300\"]\n");
    let program = gapless(floor.path(), &[]).get_program().to_owned();
    let mut command = Command::new("unshare");
    command.args(UNSHARE).args(["sh", "-c", CONTAINER]).arg(program).current_dir(floor.path());
    let mut container = Process::start(&mut command);
    while container.line() != "up" {}
    let is_marked = |shown: &str| shown.contains("*  ") && shown.contains("\n* of another process namespace");
    let shown_to = |command: fn(&Path, &[&str]) -> Command| output_of(command(floor.path(), &["ps"])).shown();
    for shown in [shown_to(in_container), shown_to(gapless)] {
        assert!(shown.contains("ready") && is_marked(&shown), "{shown}");
    }
    std::fs::write(floor.path().join("go"), "").unwrap();
    while container.line() != "killed" {}
    until("nobody watches", || shown_to(in_container).contains("nobody watches"));
    let shown = shown_to(in_container);
    assert!(shown.contains("unwatched") && is_marked(&shown), "{shown}");
    let before = floor.instances();
    let pid = before[0]["process_id"].as_u64().unwrap();
    assert!(std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap().contains("sleep"), "{before:?}");
    assert_eq!(before[0]["process_in_other_namespace"], false);
    output_of(gapless(floor.path(), &["up", "floor.toml"])).good();
    let after = floor.instances();
    assert_eq!((&after[0]["process_id"], &after[0]["restarts"]), (&pid.into(), &0.into()));
}

#[test]
fn foreign_route_is_explained() {
    if !has_namespaces() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let mut serving = Process::start(&mut in_container(here, &["serve", "--directory", "domain", "echo", "--", "cat"]));
    assert!(serving.line().contains(" is served"));
    for command in [in_container, gapless] {
        let call = output_of(command(here, &["call", "--directory", "domain", "echo", "1"])).error(1);
        let routes = output_of(command(here, &["routes", "--directory", "domain"]));
        assert_eq!(routes.code, Some(1));
        for said in [call, routes.stderr] {
            assert!(said.contains("another process namespace"), "{said}");
            assert!(!said.contains("process 0") && !said.contains("process 1 "), "{said}");
        }
    }
}

#[test]
fn other_mount_at_path_is_no_loss() {
    if !can_make(&MOUNTS) {
        return;
    }
    let floor = Floor::new("[process.worker]\ncommand = [\"sleep\", \"300\"]\n");
    floor.run(&["up", "floor.toml"]).good();
    let script =
        "cp floor.toml /tmp/$$.toml && mount -t tmpfs tmpfs . && cd \"$PWD\" && mv /tmp/$$.toml floor.toml || exit 77
        \"$0\" up floor.toml && \"$0\" down";
    let mut command = Command::new("unshare");
    command.args(MOUNTS).args(["sh", "-c", script, env!("CARGO_BIN_EXE_gapless")]).current_dir(floor.path());
    let ended = output_of(command);
    if ended.code == Some(77) {
        println!("SKIPPED: no file system can be mounted: {ended:?}");
        return;
    }
    ended.good();
    let state = floor.path().join("floor.state");
    std::fs::rename(&state, floor.path().join("moved")).unwrap();
    let refused = floor.run(&["up", "floor.toml"]).error(1);
    assert!(refused.contains("it was removed while process"), "{refused}");
    std::fs::rename(floor.path().join("moved"), &state).unwrap();
}

#[test]
fn foreign_proc_is_named() {
    if !can_make(&FOREIGN_PROC) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("floor.toml"), "[process.worker]\ncommand = [\"sleep\", \"300\"]\n").unwrap();
    let up: &[&str] = &["up", "floor.toml"];
    let foreground: &[&str] = &["up", "floor.toml", "--foreground"];
    for words in [up, foreground, &["serve", "--directory", "domain", "upper", "--", "cat"]] {
        let refused = output_of(in_namespaces(&FOREIGN_PROC, directory.path(), words)).error(1);
        assert!(refused.contains("/proc is that of another process namespace"), "{words:?}: {refused}");
    }
}
