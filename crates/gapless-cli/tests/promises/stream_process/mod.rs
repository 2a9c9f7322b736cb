#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, gapless};
use gapless_testkit::ports::{free_port, multicast_group};
use gapless_testkit::process::Process;
use gapless_testkit::wait::PATIENCE;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

/// Small enough for many at a time.
const SIZES: &str = "window = \"8 MiB\"\nmessage_length_max = \"1 MiB\"\n";

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

pub fn started(directory: &Path, words: &[&str]) -> Process {
    Process::start(gapless(directory, words).stderr(Stdio::inherit()))
}

pub fn sequencer(directory: &Path) -> Process {
    let mut process = started(directory, &["stream", "sequencer", "--config", "stream.toml"]);
    let line = process.line();
    assert!(line.starts_with("stream "), "{line}");
    process
}

pub fn stream_with(directory: &Path, words: &str, input: &Path) -> ProgramOutput {
    stream_command(directory, words).stdin(File::open(input).unwrap()).output().unwrap().into()
}

pub fn stream(directory: &Path, words: &str) -> ProgramOutput {
    stream_command(directory, words).output().unwrap().into()
}

pub fn stream_command(directory: &Path, words: &str) -> Command {
    let mut line = vec!["stream"];
    line.extend(words.split(' '));
    line.extend(["--config", "stream.toml"]);
    gapless(directory, &line)
}

/// Nodes over networks report every 200 ms: with a shorter interval two of them would seldom both have rates.
#[track_caller]
pub fn status_when(directory: &Path, what: &str, expected: impl Fn(&Value) -> bool) -> Value {
    let mut watch = Process::start(&mut stream_command(directory, "status --json --watch 0.25"));
    let (lines, begun) = (watch.lines_in_background(), Instant::now());
    loop {
        let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{what}: {error}"));
        let status = serde_json::from_str(&line).unwrap();
        if expected(&status) {
            return status;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {status}");
    }
}

pub fn stream_with_config(directory: &Path, place: &[&str], words: &[&str]) -> ProgramOutput {
    let line: Vec<&str> = ["stream"].iter().chain(words).chain(place).copied().collect();
    gapless(directory, &line).output().unwrap().into()
}

pub fn write_lines(directory: &Path, name: &str, lines: &[String]) {
    std::fs::write(directory.join(name), lines.join("\n") + "\n").unwrap();
}

pub fn some_lines(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{number} {}", "x".repeat(number * 7 % 90 + if number % 50 == 49 { 3000 } else { 0 })))
        .collect()
}
