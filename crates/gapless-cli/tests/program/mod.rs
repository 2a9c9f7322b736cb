//! The program as a process, for the tests of what it promises.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

/// The program in a directory, nothing on its standard input.
pub fn gapless(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gapless"));
    command.args(words).current_dir(directory).stdin(Stdio::null());
    command
}

/// What a run printed, and how it ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ended {
    /// Standard output of a run that went well.
    #[track_caller]
    pub fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// The one line of an error that ended the program with `code`.
    #[track_caller]
    pub fn error(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "one line: {}", self.stderr);
        assert!(self.stderr.starts_with("gapless: "), "{}", self.stderr);
        self.stderr
    }
}

/// Runs the program to its end.
pub fn run(directory: &Path, words: &[&str]) -> Ended {
    gapless(directory, words).output().unwrap().into()
}

/// A port that nobody uses now, of UDP and TCP. It is none of those that the kernel gives to whoever asks for any: between
/// here and its use somebody would get it.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let process = std::process::id() as u16;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + process.wrapping_mul(101).wrapping_add(number) % 10_000;
        let is_free = UdpSocket::bind(("127.0.0.1", port)).and_then(|_| TcpListener::bind(("127.0.0.1", port)));
        if is_free.is_ok() {
            return port;
        }
    }
}

/// The names in a directory, hidden ones included, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
