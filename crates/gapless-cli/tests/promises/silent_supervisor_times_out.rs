//! `ps` shows the state from the files; a waiting command names the process that it waits for.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::floor::Floor;
use crate::program::{gapless, run};
use gapless_testkit::folder::SmallDisk;
use gapless_testkit::wait::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::process::Stdio;

fn started() -> Floor {
    let floor = Floor::new("[process.worker]\ncommand = [\"sleep\", \"300\"]\n");
    run(floor.path(), &["up", "floor.toml"]).good();
    floor
}

struct StoppedProcess(Pid);

impl StoppedProcess {
    fn new(status: &Value, role: &str) -> Self {
        let pid = status[role].as_i64().unwrap();
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

#[test]
fn ps_reads_files_without_an_answer() {
    let floor = started();
    let pid = floor.instances()[0]["process_id"].clone();
    let status = floor.status();
    // The guardian would kill the supervisor after a while.
    let guardian = StoppedProcess::new(&status, "guardian_process_id");
    let stopped = StoppedProcess::new(&status, "supervisor_process_id");
    let shown = run(floor.path(), &["ps"]).shown();
    let expected =
        format!("the supervisor (process {}) does not answer within 2 s; this is what its files say", stopped.0);
    assert!(shown.contains("worker.1") && shown.contains("unwatched") && shown.contains(&expected), "{shown}");
    assert!(!shown.contains("nobody watches"), "{shown}");
    let status = floor.status();
    assert_eq!(status["instances"][0]["process_id"], pid);
    assert_eq!(status["supervisor_process_id"], stopped.0.as_raw_nonzero().get());
    drop((guardian, stopped));
    until("it answers", || floor.states() == [("worker.1".to_owned(), "ready".to_owned())]);
}

#[test]
fn ps_marks_a_stopped_process() {
    let floor = started();
    let pid = floor.instances()[0]["process_id"].clone();
    let stopped = StoppedProcess::new(&floor.instances()[0], "process_id");
    let expected = format!("worker.1: its process {pid} is stopped by a signal; SIGCONT lets it go on\n");
    until("it is said", || run(floor.path(), &["ps"]).shown().contains(&expected));
    let in_json = "\"standstill\":\"is stopped by a signal; SIGCONT lets it go on\"";
    assert!(run(floor.path(), &["ps", "--json"]).shown().contains(in_json));
    drop(stopped);
    until("it is said no more", || !run(floor.path(), &["ps"]).shown().contains("is stopped"));
}

#[test]
fn ps_reports_a_missing_supervisor() {
    let floor = started();
    let status = floor.status();
    let both = ["guardian_process_id", "supervisor_process_id"].map(|role| StoppedProcess::new(&status, role));
    both.iter().for_each(|stopped| kill_process(stopped.0, Signal::KILL).unwrap());
    let shown = run(floor.path(), &["ps"]).shown();
    assert!(shown.contains("worker.1") && shown.contains("nobody watches"), "{shown}");
}

#[test]
fn waiting_command_names_supervisor() {
    let floor = started();
    let status = floor.status();
    let guardian = StoppedProcess::new(&status, "guardian_process_id");
    let stopped = StoppedProcess::new(&status, "supervisor_process_id");
    let mut command = gapless(floor.path(), &["stop", "worker"]);
    let mut waiting = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(waiting.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with(&format!("gapless: waiting for the supervisor (process {}) of ", stopped.0)), "{line}");
    drop((guardian, stopped));
    assert!(waiting.wait().unwrap().success());
}

#[test]
fn down_names_remaining_instances() {
    let worker = "command = [\"sh\", \"-c\", \"trap '' TERM; echo up; while :; do sleep 0.1; done\"]\nready = { line = \"up\" }\n";
    let floor = Floor::new(&format!("[process.worker]\n{worker}stop = {{ grace = \"3s\" }}\n"));
    run(floor.path(), &["up", "floor.toml"]).good();
    let ended = run(floor.path(), &["down"]);
    assert!(ended.stderr.contains("gapless: waiting for worker.1 (stopping)\n"), "{}", ended.stderr);
    assert_eq!(ended.good(), "all has ended\n");
}

#[test]
fn down_ends_on_a_full_disk() {
    let floor = Floor::new("[process.worker]\ncommand = [\"sleep\", \"300\"]\n");
    let Some(disk) = SmallDisk::mount(&floor.path().join("floor.state"), 300) else { return };
    run(floor.path(), &["up", "floor.toml"]).good();
    let filling = std::fs::write(disk.path.join("filling"), vec![0; 400 << 10]).unwrap_err();
    assert_eq!(filling.kind(), ErrorKind::StorageFull);
    assert_eq!(run(floor.path(), &["down"]).good(), "all has ended\n");
    assert!(floor.instances().is_empty() && floor.status()["file"].is_null());
    std::fs::remove_file(disk.path.join("filling")).unwrap();
    assert_eq!(run(floor.path(), &["down"]).good(), "nothing runs\n");
    run(floor.path(), &["up", "floor.toml"]).good();
    run(floor.path(), &["down"]).good();
}

#[test]
fn full_log_disk_stops_no_guardian() {
    let floor = Floor::new("[process.worker]\ncommand = [\"sleep\", \"300\"]\n");
    let state = floor.path().join("floor.state");
    std::fs::DirBuilder::new().mode(0o700).create(&state).unwrap();
    std::os::unix::fs::symlink("/dev/full", state.join("guardian.log")).unwrap();
    run(floor.path(), &["up", "floor.toml"]).good();
    let before = floor.status();
    for _ in 0..3 {
        let supervisor = i32::try_from(floor.status()["supervisor_process_id"].as_i64().unwrap()).unwrap();
        kill_process(Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
        until("there is another", || floor.status()["supervisor_process_id"] != supervisor);
    }
    let after = floor.status();
    assert_eq!(after["guardian_process_id"], before["guardian_process_id"]);
    assert_eq!(after["instances"][0]["process_id"], before["instances"][0]["process_id"]);
}
