#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::program::{ProgramOutput, gapless, names, run};
use crate::turn;
use gapless_testkit::wait::until_some;
use rustix::process::Pid;
use serde_json::Value;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;

/// Asserts that the run leaves exactly these files.
#[track_caller]
pub fn report(name: &str, words: &[&str], files: &[&str]) -> (Value, String) {
    let _turn = turn();
    let directory = tempfile::tempdir().unwrap();
    let table = run(directory.path(), &[&["bench", name, "--json", "out.json"], words].concat()).good();
    assert_eq!(names(directory.path()), files, "nothing else is left");
    let text = std::fs::read_to_string(directory.path().join("out.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["benchmark"], name);
    (report, table)
}

pub fn rows(report: &Value) -> &[Value] {
    report["rows"].as_array().unwrap()
}

pub fn processes_of(words: &[&str]) -> Vec<Pid> {
    let is_one = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
        // A process that ends meanwhile, or a zombie, has no command line.
        let command_line = String::from_utf8(std::fs::read(entry.path().join("cmdline")).ok()?).ok()?;
        words.iter().all(|word| command_line.contains(word)).then_some(pid)
    };
    std::fs::read_dir("/proc").unwrap().filter_map(|entry| is_one(entry.unwrap())).collect()
}

/// Takes hours; killed with the test.
pub struct LongRun {
    child: Option<Child>,
    _turn: MutexGuard<'static, ()>,
}

impl LongRun {
    pub fn start(directory: &Path, words: &[&str]) -> Self {
        let turn = turn();
        let command: &mut Command = &mut gapless(directory, &[&["bench"], words].concat());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { child: Some(child), _turn: turn }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().unwrap())
    }

    pub fn first_line(&mut self) -> String {
        let stderr = self.child.as_mut().unwrap().stderr.as_mut().unwrap();
        let bytes = std::iter::from_fn(|| {
            let mut byte = [0];
            (stderr.read(&mut byte).unwrap() == 1 && byte != *b"\n").then_some(byte[0])
        });
        String::from_utf8(bytes.collect()).unwrap()
    }

    pub fn end(mut self) -> ProgramOutput {
        until_some("the end of the run", || self.child.as_mut().unwrap().try_wait().unwrap());
        self.child.take().unwrap().wait_with_output().unwrap().into()
    }
}

impl Drop for LongRun {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
