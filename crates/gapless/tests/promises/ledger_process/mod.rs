#![allow(clippy::unwrap_used, reason = "this is a test")]

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Far longer than any run on however busy a machine.
const RUN_TIME_MAX: Duration = Duration::from_secs(300);

/// Cargo puts examples next to the tests' programs.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is missing: run `cargo build -p gapless --examples` first", path.display());
    path
}

pub fn shipped_transfers() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("data/transfers.csv")).unwrap()
}

pub struct Place {
    folder: tempfile::TempDir,
    pub file: PathBuf,
}

impl Place {
    pub fn with(content: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("transfers.csv");
        std::fs::write(&file, content).unwrap();
        Self { folder, file }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn command(&self, options: &[&str]) -> Command {
        self.command_on(&self.file, options)
    }

    pub fn command_on(&self, file: &Path, options: &[&str]) -> Command {
        let mut command = Command::new(example("ledger"));
        command.arg(file).arg("--directory").arg(self.folder.path().join("ledger")).args(options);
        command
    }

    pub fn run(&self, options: &[&str]) -> Ended {
        Run::start(&mut self.command(options)).end()
    }
}

#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub out: Vec<u8>,
    pub err: String,
}

impl Ended {
    pub fn report(&self) -> String {
        assert_eq!(self.status.code(), Some(0), "standard error: {}", self.err);
        String::from_utf8(self.out.clone()).unwrap()
    }

    /// Asserts that the run has failed with `code` and printed nothing else.
    pub fn error(&self, code: i32) -> &str {
        assert_eq!(self.status.code(), Some(code), "standard error: {}", self.err);
        assert!(self.out.is_empty(), "a run that fails prints no report");
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self.err.trim_end()
    }

    pub fn was_killed(&self) -> bool {
        self.status.signal() == Some(Signal::KILL.as_raw())
    }
}

pub struct Run {
    child: Child,
    out: JoinHandle<Vec<u8>>,
    err: BufReader<ChildStderr>,
    seen: String,
    pub begun_after: u64,
    pub taken: u64,
    /// Kills a run that does not end; dropped with the run.
    _watchdog: Sender<()>,
}

impl Run {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut stdout = child.stdout.take().unwrap();
        let out = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let err = BufReader::new(child.stderr.take().unwrap());
        let (watchdog, is_over) = channel();
        let process = Pid::from_child(&child);
        std::thread::spawn(move || {
            if is_over.recv_timeout(RUN_TIME_MAX) == Err(RecvTimeoutError::Timeout) {
                eprintln!("a run did not end within {RUN_TIME_MAX:?}: it is killed");
                // Not reaped yet: the sender lives until then.
                let _ = kill_process(process, Signal::KILL);
            }
        });
        Self { child, out, err, seen: String::new(), begun_after: 0, taken: 0, _watchdog: watchdog }
    }

    pub fn hear(&mut self) -> bool {
        let mut line = String::new();
        self.err.read_line(&mut line).unwrap();
        self.note(&line);
        !line.is_empty()
    }

    fn note(&mut self, text: &str) {
        for line in text.lines() {
            let begun_after = line.split_once(": going on after line ").and_then(|(_, number)| number.parse().ok());
            self.begun_after = begun_after.unwrap_or(self.begun_after);
            let taken = line.strip_prefix("line ").and_then(|rest| rest.strip_suffix(" taken"));
            self.taken = taken.and_then(|number| number.parse().ok()).unwrap_or(self.taken);
        }
        self.seen.push_str(text);
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn end(mut self) -> Ended {
        self.wait()
    }

    pub fn wait(&mut self) -> Ended {
        let mut rest = Vec::new();
        self.err.read_to_end(&mut rest).unwrap();
        self.note(&String::from_utf8(rest).unwrap());
        let status = self.child.wait().unwrap();
        let out = std::mem::replace(&mut self.out, std::thread::spawn(Vec::new)).join().unwrap();
        Ended { status, out, err: std::mem::take(&mut self.seen) }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
