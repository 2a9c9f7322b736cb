#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

pub fn gapless(directory: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gapless"));
    command.args(words).current_dir(directory).stdin(Stdio::null());
    command
}

#[derive(Debug)]
pub struct ProgramOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for ProgramOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl ProgramOutput {
    #[track_caller]
    pub fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// The exit code may be that of an unhealthy subject.
    #[track_caller]
    #[allow(dead_code, reason = "one of the two programs of tests looks at supervisors")]
    pub fn shown(self) -> String {
        assert!(matches!(self.code, Some(0 | 1 | 3)), "{self:?}");
        self.stdout
    }

    #[track_caller]
    #[allow(dead_code, reason = "one of the two programs of tests measures")]
    pub fn interrupted(self) -> String {
        assert_eq!(self.code, Some(130), "{self:?}");
        assert!(self.stderr.contains("gapless: interrupted"), "{self:?}");
        self.stdout
    }

    /// Standard error has a single line.
    #[track_caller]
    pub fn error(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        // Notices during a wait are not part of the error.
        let lines: Vec<_> =
            self.stderr.split_inclusive('\n').filter(|line| !line.starts_with("note: waiting ")).collect();
        assert_eq!(lines.len(), 1, "one line: {}", self.stderr);
        assert!(lines[0].starts_with("gapless: "), "{}", self.stderr);
        lines.concat()
    }
}

pub fn run(directory: &Path, words: &[&str]) -> ProgramOutput {
    gapless(directory, words).output().unwrap().into()
}

pub fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
