//! Streams as processes, for the tests of what `gapless stream` promises.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{Ended, gapless};
use gapless_testkit::ports::{free_port, multicast_group};
use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use tempfile::TempDir;

/// Small enough for many at a time.
const SIZES: &str = "window = \"8 MiB\"\nmessage_length_max = \"1 MiB\"\n";

/// A directory with the file `stream.toml` of a stream over `transport`.
pub fn configured(transport: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let (command, request) = (free_port(), free_port());
    let network = match transport {
        "shared-memory" => String::new(),
        "tcp" => format!("[network]\ncommand = \"127.0.0.1:{command}\"\nrewind = \"127.0.0.1:{request}\"\n"),
        _ => format!("[network]\ncommand = \"127.0.0.1:{command}\"\nrequest = \"127.0.0.1:{request}\"\n"),
    };
    let groups = match transport {
        "multicast" => format!(
            "groups = [\"{}\", \"{}\"]\ninterface = \"127.0.0.1\"\nhops = 0\n",
            multicast_group(),
            multicast_group()
        ),
        _ => String::new(),
    };
    let text = format!(
        "[stream]\ndirectory = \"stream\"\ntransport = \"{transport}\"\n{SIZES}[journal]\nsegment_length = \"4 MiB\"\n{network}{groups}"
    );
    std::fs::write(directory.path().join("stream.toml"), text).unwrap();
    directory
}

/// A process that is killed at the end of the test, however it ends.
pub struct Process {
    child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl Process {
    /// Starts the program in `directory`, with its output for [`Process::line`].
    pub fn start(directory: &Path, words: &[&str]) -> Self {
        Self::spawn(gapless(directory, words).stderr(Stdio::inherit()))
    }

    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = child.stdout.take().map(|stdout| BufReader::new(stdout).lines());
        Self { child, lines }
    }

    /// The next line of its output.
    #[track_caller]
    pub fn line(&mut self) -> String {
        self.lines.as_mut().unwrap().next().expect("it has ended").unwrap()
    }

    /// The lines of its output, read from now on whether anybody takes them or not.
    pub fn lines_aside(&mut self) -> Receiver<String> {
        let (sender, lines) = channel();
        let own = self.lines.take().unwrap();
        // It ends with the process.
        std::thread::spawn(move || own.map(|line| sender.send(line.unwrap())).take_while(Result::is_ok).for_each(drop));
        lines
    }

    /// What is left of its output.
    pub fn rest(&mut self) -> Vec<String> {
        self.lines.take().unwrap().map(Result::unwrap).collect()
    }

    /// Its standard input, if that is a pipe; it ends when this is dropped.
    pub fn input(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Nobody reads its output any more.
    pub fn stop_reading(&mut self) {
        self.lines = None;
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, as Ctrl-C does.
    pub fn interrupt(&self) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    }

    /// How it ended.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sequencer of the stream that `directory` configures, once nodes can connect.
pub fn sequencer(directory: &Path) -> Process {
    let mut process = Process::start(directory, &["stream", "sequencer", "--config", "stream.toml"]);
    let line = process.line();
    assert!(line.starts_with("stream "), "{line}");
    process
}

/// `gapless stream SUBCOMMAND --config stream.toml …`, run to its end with `input`.
pub fn stream_with(directory: &Path, words: &str, input: &Path) -> Ended {
    stream_command(directory, words).stdin(File::open(input).unwrap()).output().unwrap().into()
}

/// As [`stream_with`], with nothing on its input.
pub fn stream(directory: &Path, words: &str) -> Ended {
    stream_command(directory, words).output().unwrap().into()
}

pub fn stream_command(directory: &Path, words: &str) -> Command {
    let mut line = vec!["stream"];
    line.extend(words.split(' '));
    line.extend(["--config", "stream.toml"]);
    gapless(directory, &line)
}

/// `gapless stream WORDS PLACE`, run to its end.
pub fn stream_with_config(directory: &Path, place: &[&str], words: &[&str]) -> Ended {
    let line: Vec<&str> = ["stream"].iter().chain(words).chain(place).copied().collect();
    gapless(directory, &line).output().unwrap().into()
}

/// Writes `lines` into the file `name` of `directory`.
pub fn write_lines(directory: &Path, name: &str, lines: &[String]) {
    std::fs::write(directory.join(name), lines.join("\n") + "\n").unwrap();
}

/// Lines of different lengths, some of several frames.
pub fn some_lines(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{number} {}", "x".repeat(number * 7 % 90 + if number % 50 == 49 { 3000 } else { 0 })))
        .collect()
}
