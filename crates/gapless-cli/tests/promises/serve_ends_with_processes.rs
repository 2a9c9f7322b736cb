#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{gapless, run};
use gapless_testkit::process::Process;
use gapless_testkit::wait::until;
use rustix::process::Signal;
use std::path::Path;
use std::process::{Command, Stdio};

/// A zombie does not.
fn runs(process_id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat"));
    stat.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|state| !state.starts_with('Z')))
}

fn ignores_hang_up(process_id: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process_id}/status")).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    u64::from_str_radix(ignored, 16).unwrap() & 1 == 1
}

fn at_work(folder: &Path, workers: usize) -> (Process, Vec<Process>, Vec<String>) {
    let script = "sleep 1000 & echo $$ $! > ids-$$; wait";
    let count = workers.to_string();
    let words = ["serve", "--directory", "domain", "--workers", &count, "slow", "--", "sh", "-c", script];
    let mut instance = Process::start(gapless(folder, &words).stderr(Stdio::piped()));
    instance.line();
    let words = ["call", "--directory", "domain", "slow", "x", "--bytes", "--timeout", "600"];
    let calls = (0..workers).map(|_| Process::start(gapless(folder, &words).stderr(Stdio::null()))).collect();
    let ids = || -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.filter(|path| path.to_string_lossy().contains("ids-"));
        files
            .flat_map(|path| {
                std::fs::read_to_string(path).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
            })
            .collect()
    };
    until("every process runs", || ids().len() == 2 * workers);
    (instance, calls, ids())
}

#[test]
fn second_signal_kills_begun_requests() {
    for signal in [Signal::INT, Signal::TERM] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (mut instance, mut calls, ids) = at_work(folder, 3);
        assert!(ids.iter().all(|id| runs(id)), "{ids:?}");
        instance.signal(signal);
        until("it drains", || run(folder, &["routes", "--directory", "domain"]).good().contains(" draining "));
        assert!(ids.iter().all(|id| runs(id)), "what has begun may finish: {ids:?}");
        instance.signal(signal);
        assert_eq!(instance.wait_end("an end by two signals").code(), Some(130));
        for call in &mut calls {
            assert_eq!(call.wait_end("a call").code(), Some(1), "it has no reply");
        }
        until("no process is left", || !ids.iter().any(|id| runs(id)));
    }
}

#[test]
fn killed_server_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let (mut instance, mut calls, ids) = at_work(folder.path(), 2);
    instance.kill();
    until("no process is left", || !ids.iter().any(|id| runs(id)));
    for call in &mut calls {
        assert_eq!(call.wait_end("a call").code(), Some(1), "the outcome is unknown");
    }
}

#[test]
fn one_signal_ends_an_idle_server() {
    let folder = tempfile::tempdir().unwrap();
    // Ignored under `nohup`.
    let hangs_up = (!ignores_hang_up("self")).then_some(Signal::HUP);
    for signal in [Signal::INT, Signal::TERM].into_iter().chain(hangs_up) {
        let words = ["serve", "--directory", "domain", "echo", "--", "cat"];
        let mut instance = Process::start(gapless(folder.path(), &words).stderr(Stdio::inherit()));
        instance.line();
        instance.signal(signal);
        assert!(instance.wait_end("an end by a signal").success());
    }
}

#[test]
fn ignored_hang_up_keeps_serving() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' HUP; exec \"$0\" serve --directory domain echo -- cat";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_gapless")]).current_dir(folder.path()).stderr(Stdio::inherit());
    let mut instance = Process::start(&mut command);
    instance.line();
    assert!(ignores_hang_up(&instance.pid().as_raw_nonzero().to_string()), "SIGHUP is still ignored");
    instance.signal(Signal::HUP);
    let words = ["call", "--directory", "domain", "echo", "x", "--bytes", "--timeout", "60"];
    assert_eq!(run(folder.path(), &words).good(), "x");
    instance.signal(Signal::TERM);
    assert!(instance.wait_end("an end by a signal").success());
}
