use crate::program::{ProgramOutput, gapless, run};
use gapless::rpc::{CallOptions, Caller, CallerOptions, Domain, DomainOptions, Reach};
use gapless_testkit::process::Process;
use gapless_testkit::wait::{PATIENCE, until};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Resource, Rlimit, prlimit};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The signal of file size limits is ignored, so that the limit is an error.
fn serving(folder: &Path, route: &str) -> Process {
    let program = gapless(folder, &["serve", "--directory", "domain", route, "--", "tr", "a-z", "A-Z"]);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(program.get_program()).args(program.get_args());
    command.current_dir(folder).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut process = Process::start(&mut command);
    let line = process.line();
    assert!(line.contains(" is served"), "{line}");
    process
}

fn files(folder: &Path, side: &str) -> BTreeSet<PathBuf> {
    let paths = std::fs::read_dir(folder.join("domain")).unwrap().map(|entry| entry.unwrap().path());
    let is_meant = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(side);
    paths.filter(is_meant).filter(|path| path.extension().is_some_and(|ending| ending == "counters")).collect()
}

fn top(folder: &Path) -> Value {
    let ended = run(folder, &["top", "domain", "--once", "--json", "--interval", "0.05"]);
    serde_json::from_str::<Value>(&ended.stdout).unwrap()["directories"][0].take()
}

fn counted(folder: &Path, (rows, route): (&str, &str), name: &str) -> Option<u64> {
    let top = top(folder);
    let row = top[rows].as_array().unwrap().iter().find(|row| row["route"] == route)?;
    Some(row["counters"][name].as_u64().unwrap())
}

fn until_all_is_written(folder: &Path, calls: u64) {
    let is_written = |rows, name| counted(folder, (rows, "upper"), name) == Some(calls);
    until("all is written", || is_written("routes", "replied") && is_written("calls", "replied"));
    until("the end of the handler", || counted(folder, ("routes", "upper"), "in_flight") == Some(0));
}

#[track_caller]
fn check_said(folder: &Path, path: &Path, reason: &str) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let ended = run(folder, &["top", "domain", "--once", "--interval", "0.05"]);
    assert!(ended.stdout.contains("other") && !ended.stdout.contains("no route is served"), "{}", ended.stdout);
    let line = ended.stdout.lines().next().unwrap().to_owned();
    let error = ended.error(1);
    for said in [line, error] {
        assert!(said.contains(reason) && said.contains(name) && said.contains("cannot be read"), "{said}");
    }
    let top = top(folder);
    let unreadable = top["unreadable"].as_array().unwrap();
    assert!(unreadable.len() == 1 && unreadable[0]["path"].as_str().unwrap().ends_with(name), "{top}");
    let routes: ProgramOutput = run(folder, &["routes", "--directory", "domain", "--json"]);
    assert!(routes.stderr.contains(reason) && routes.stderr.lines().count() == 1, "{}", routes.stderr);
    assert_eq!(serde_json::from_str::<Value>(&routes.good()).unwrap().as_array().unwrap().len(), 2);
}

#[test]
fn damaged_counters_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut other = serving(folder, "other");
    let before = files(folder, "route-");
    let mut upper = serving(folder, "upper");
    let errors = upper.error_lines();
    let instance = files(folder, "route-").difference(&before).next().unwrap().clone();
    let domain = Domain::open_directory(folder.join("domain"), DomainOptions::default()).unwrap();
    let call = CallOptions { wait_for_route: Some(PATIENCE), timeout: Some(PATIENCE), ..CallOptions::default() };
    let options = CallerOptions { reach: Reach::OtherProcesses, call, ..CallerOptions::default() };
    let caller: Caller<Vec<u8>, Vec<u8>> = domain.caller_with("upper", options).unwrap();
    let mut calls = 0;
    let mut call = || {
        calls += 1;
        assert_eq!(caller.call(b"abc".to_vec()), Ok(b"ABC".to_vec()));
        calls
    };
    until_all_is_written(folder, call());
    let calling = files(folder, "calls-").pop_first().unwrap();

    let shorten = |path: &Path| File::options().write(true).open(path).unwrap().set_len(0).unwrap();
    for path in [&instance, &calling] {
        shorten(path);
        check_said(folder, path, "found 0 bytes");
        until_all_is_written(folder, call());
        std::fs::remove_file(path).unwrap();
        until_all_is_written(folder, call());
        for make in [&|| std::fs::create_dir(path).unwrap() as (), &|| {
            mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap()
        }] as [&dyn Fn(); 2]
        {
            std::fs::remove_file(path).unwrap();
            make();
            (0..3).for_each(|_| _ = call());
            check_said(folder, path, "not a file");
            std::fs::remove_dir(path).or_else(|_| std::fs::remove_file(path)).unwrap();
            until_all_is_written(folder, call());
        }
    }

    let limit = |bytes| {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(upper.pid()), Resource::Fsize, limit).unwrap()
    };
    limit(Some(0));
    shorten(&instance);
    (0..3).for_each(|_| _ = call());
    check_said(folder, &instance, "found 0 bytes");
    let names_instance = |line: &String| line.contains(instance.file_name().unwrap().to_str().unwrap());
    let told = std::iter::from_fn(|| errors.recv_timeout(PATIENCE).ok()).find(names_instance);
    assert!(told.is_some(), "the instance says that its file cannot be written");
    limit(None);
    until_all_is_written(folder, call());

    drop(caller);
    assert!(upper.ended().is_none() && other.ended().is_none());
    upper.interrupt();
    assert_eq!(errors.iter().find(names_instance), None, "once for its file");
    assert!(upper.wait_end("an instance that is interrupted ends").success());
    assert!(!instance.exists());
}
