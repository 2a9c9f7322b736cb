#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::gapless;
use gapless::rpc::{CallOptions, CallerOptions, Domain, DomainOptions, Reach};
use gapless_testkit::process::Process;
use gapless_testkit::wait::{PATIENCE, until, until_some};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

/// Route `up`; errors go to the file `errors`.
fn serving(folder: &Path, words: &[&str]) -> Process {
    let errors = File::create(folder.join("errors")).unwrap();
    let words = [&["serve", "--directory", "domain", "--workers", "4", "up", "--"], words].concat();
    let mut copy = Process::start(gapless(folder, &words).stderr(errors));
    assert!(copy.line().contains(" is served"));
    copy
}

fn children(process: &Process, word: &str) -> Vec<Pid> {
    let id = process.pid().as_raw_nonzero();
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let children = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    let ids: Vec<i32> =
        children.flat_map(|ids| ids.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>()).collect();
    let is_one =
        |id: &i32| std::fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains(word));
    ids.into_iter().filter(is_one).filter_map(Pid::from_raw).collect()
}

fn errors(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("errors")).unwrap()
}

fn guard(process: &Process) -> Pid {
    until_some("the guard", || children(process, "serve-guard").first().copied())
}

fn runs(process_id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat"));
    stat.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|state| !state.starts_with('Z')))
}

fn call(folder: &Path, count: usize) {
    let domain = Domain::open_directory(folder.join("domain"), DomainOptions::default()).unwrap();
    let call = CallOptions { timeout: Some(PATIENCE), wait_for_route: Some(PATIENCE), ..CallOptions::default() };
    let options = CallerOptions { reach: Reach::OtherProcesses, call, ..CallerOptions::default() };
    let up = domain.caller_with::<Vec<u8>, Vec<u8>>("up", options).unwrap();
    for _ in 0..count.div_ceil(16) {
        let calls: Vec<_> = (0..16).map(|_| up.start(Vec::new())).collect();
        calls.into_iter().for_each(|call| drop(call.wait().unwrap()));
    }
}

#[test]
fn stopped_guard_delays_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut copy = serving(folder, &["true"]);
    let guard = guard(&copy);
    kill_process(guard, Signal::STOP).unwrap();
    // Each call sends two lines of 8 bytes or more: a pipe of one page is soon full.
    let pipe = File::open(format!("/proc/{}/fd/0", guard.as_raw_nonzero())).unwrap();
    assert_eq!(fcntl_setpipe_size(pipe, 4096), Ok(4096));
    call(folder, 400);
    copy.interrupt();
    assert!(copy.wait_end("an end by a signal").success());
    let said = errors(folder);
    assert_eq!(said.matches("does not read").count(), 1, "{said}");
    assert!(
        said.starts_with(&format!("note: the guard of its programs, process {}, ", guard.as_raw_nonzero())),
        "{said}"
    );
    kill_process(guard, Signal::KILL).unwrap();
}

#[test]
fn dead_guard_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut copy = serving(folder, &["sh", "-c", "echo $$ > id.new; mv id.new id; exec sleep 1000"]);
    let words = ["call", "--directory", "domain", "up", "x", "--bytes", "--timeout", "600"];
    let _call = Process::start(gapless(folder, &words).stderr(Stdio::null()));
    let id = until_some("the program", || std::fs::read_to_string(folder.join("id")).ok());
    let first = guard(&copy);
    kill_process(first, Signal::KILL).unwrap();
    let second =
        until_some("another guard", || children(&copy, "serve-guard").into_iter().find(|process| *process != first));
    until("no zombie is left", || !Path::new(&format!("/proc/{}", first.as_raw_nonzero())).exists());
    assert!(runs(id.trim()) && second != first);
    let said = until_some("a note", || Some(errors(folder)).filter(|said| said.ends_with('\n')));
    let begin = format!("note: the guard of its programs, process {}, has ended (signal: 9", first.as_raw_nonzero());
    assert!(said.starts_with(&begin) && said.ends_with("another is started\n"), "{said}");
    copy.kill();
    until("the program is killed with its server", || !runs(id.trim()));
}
