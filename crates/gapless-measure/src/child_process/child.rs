//! A process that a benchmark has started: answers requests, its end is noticed, and none is left running.

use super::{ChildRole, write_line};
use crate::{BenchError, Result};
use clap::ValueEnum as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Processes that end for the same reason end within this.
const ENDING_TIME: Duration = Duration::from_millis(500);
const STDERR_LENGTH_MAX: u64 = 4096;

/// Killed when dropped.
pub struct Child<'a> {
    benchmark: &'static str,
    name: String,
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    interrupted: &'a AtomicBool,
}

impl<'a> Child<'a> {
    /// Starts this program in `role`. `interrupted` ends any wait for it.
    pub fn start(
        benchmark: &'static str,
        name: &str,
        (role, assignment): (ChildRole, &impl Serialize),
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        let program = std::env::current_exe().map_err(|source| BenchError::system("find this program", source))?;
        let role = role.to_possible_value().expect("every role has a name");
        let mut command = Command::new(program);
        command.args(["bench", "child", role.get_name(), &serde_json::to_string(assignment)?]);
        Self::spawn(benchmark, name, command, interrupted)
    }

    pub fn spawn(
        benchmark: &'static str,
        name: &str,
        mut command: Command,
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| BenchError::system("start a process", source))?;
        let stdin = process.stdin.take();
        let stdout = process.stdout.take().expect("its standard output was asked for just now");
        let mut pipe = process.stderr.take().expect("its standard error was asked for just now");
        let (sender, answers) = channel();
        // Both threads end with the process, whose pipes they read.
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(std::result::Result::ok);
            lines.map(|line| sender.send(line)).take_while(std::result::Result::is_ok).for_each(drop);
        });
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            // A process that cannot write the rest would block for ever.
            let _ = pipe.by_ref().take(STDERR_LENGTH_MAX).read_to_string(&mut text);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
            text
        });
        Ok(Self { benchmark, name: name.to_owned(), process, stdin, answers, stderr: Some(stderr), interrupted })
    }

    pub fn send(&mut self, request: &impl Serialize) -> Result<()> {
        let stdin = self.stdin.as_mut().expect("open until the process is dropped");
        write_line(stdin, request).map_err(|_| self.has_ended())
    }

    pub fn ask<T: DeserializeOwned>(&mut self, request: &impl Serialize) -> Result<T> {
        self.send(request)?;
        self.receive()
    }

    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<T> {
        self.receive_while(&mut || Ok(()))
    }

    /// `look` is called now and then; its error ends the wait.
    pub fn receive_while<T: DeserializeOwned>(&mut self, look: &mut dyn FnMut() -> Result<()>) -> Result<T> {
        let answers = receive_all(std::slice::from_mut(self), look)?;
        Ok(answers.into_iter().next().expect("an answer of each"))
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills at once; waits on drop.
    pub fn kill(&mut self) {
        // One that has ended by itself cannot be killed, and need not be.
        let _ = self.process.kill();
    }

    /// The error has its standard error.
    pub fn check_running(&mut self) -> Result<()> {
        match self.process.try_wait().map_err(|source| BenchError::system("wait for a process", source))? {
            None => Ok(()),
            Some(status) => Err(self.ended(status)),
        }
    }

    pub fn check_interrupted(&self) -> Result<()> {
        if self.interrupted.load(Ordering::Relaxed) { Err(self.failed("interrupted")) } else { Ok(()) }
    }

    fn failed(&self, reason: impl ToString) -> BenchError {
        BenchError::measurement(self.benchmark, reason)
    }

    /// Waits for a successful end; returns standard error.
    pub fn finish(mut self) -> Result<String> {
        let status = self.wait()?;
        if status.success() { Ok(self.stderr()) } else { Err(self.ended(status)) }
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        self.process.wait().map_err(|source| BenchError::system("wait for a process", source))
    }

    /// Omits the prefix that every error of this benchmark has.
    fn stderr(&mut self) -> String {
        let text = self.stderr.take().and_then(|text| text.join().ok()).unwrap_or_default();
        let text = text.trim().trim_start_matches("gapless: ");
        text.trim_start_matches(&format!("{} could not be measured: ", self.benchmark)).to_owned()
    }

    fn has_ended(&mut self) -> BenchError {
        match self.wait() {
            Ok(status) => self.ended(status),
            Err(error) => error,
        }
    }

    fn ended(&mut self, status: ExitStatus) -> BenchError {
        if status.signal() == Some(rustix::process::Signal::INT.as_raw()) {
            // Ctrl-C goes to all; this process may notice it later.
            self.interrupted.store(true, Ordering::Relaxed);
        }
        let text = self.stderr();
        let colon = if text.is_empty() { "" } else { ": " };
        self.failed(format!("{} ended too early, with {status}{colon}{text}", self.name))
    }
}

impl Drop for Child<'_> {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed, and need not be.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits for an answer of each, and notices when one of them ends; `look` as in [`Child::receive_while`].
pub fn receive_all<T: DeserializeOwned>(
    children: &mut [Child<'_>],
    look: &mut dyn FnMut() -> Result<()>,
) -> Result<Vec<T>> {
    let mut answers: Vec<Option<T>> = children.iter().map(|_| None).collect();
    while answers.iter().any(Option::is_none) {
        for index in 0..children.len() {
            if answers[index].is_some() {
                continue;
            }
            match children[index].answers.recv_timeout(CHECK_INTERVAL) {
                Ok(line) => answers[index] = Some(serde_json::from_str(&line)?),
                Err(RecvTimeoutError::Disconnected) => {
                    // An error of `look` is the cause: a killed process closes its links to the others before it has
                    // ended.
                    std::thread::sleep(ENDING_TIME);
                    return Err(look().err().unwrap_or_else(|| all_that_ended(children, index)));
                }
                Err(RecvTimeoutError::Timeout) => children[index].check_interrupted().and_then(|()| look())?,
            }
        }
    }
    Ok(answers.into_iter().flatten().collect())
}

/// An error that stops one stops others, and the first to report is seldom the cause.
fn all_that_ended(children: &mut [Child<'_>], index: usize) -> BenchError {
    let mut reasons = Vec::new();
    for (at, child) in children.iter_mut().enumerate() {
        reasons.extend(if at == index { Some(child.has_ended()) } else { child.check_running().err() }.map(reason));
    }
    children[index].failed(reasons.join("; "))
}

fn reason(error: BenchError) -> String {
    match error {
        BenchError::Measurement { reason, .. } => reason,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, interrupted: &AtomicBool) -> BenchError {
        // A background test may have been started with interrupts ignored.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", "sh", "-c", script]);
        let mut process = Child::spawn("sequencer", "node 1", command, interrupted).unwrap();
        process.receive::<bool>().unwrap_err()
    }

    #[test]
    fn error_contains_stderr() {
        let interrupted = AtomicBool::new(false);
        let error = shell("echo 'gapless: it is broken' >&2; exit 3", &interrupted).to_string();
        assert!(error.contains("node 1 ended") && error.ends_with("with exit status: 3: it is broken"), "{error}");
        assert!(!interrupted.load(Ordering::Relaxed));
    }

    #[test]
    fn interrupt_of_either_ends_both() {
        let interrupted = AtomicBool::new(false);
        shell("kill -INT $$", &interrupted);
        assert!(interrupted.load(Ordering::Relaxed));
        let error = shell("exec sleep 1000", &interrupted).to_string();
        assert!(error.contains("interrupted"), "{error}");
    }

    #[test]
    fn an_end_without_an_answer_is_an_error() {
        let interrupted = AtomicBool::new(false);
        let mut process = Child::spawn("log", "it", Command::new("true"), &interrupted).unwrap();
        let error = process.receive::<f64>().unwrap_err().to_string();
        assert!(error.contains("exit status: 0"), "{error}");
    }

    #[test]
    fn long_stderr_blocks_no_answer() {
        let interrupted = AtomicBool::new(false);
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 300000 /dev/zero >&2; read line; echo $line"]);
        let mut processes = [Child::spawn("sequencer", "echo", command, &interrupted).unwrap()];
        processes[0].send(&7).unwrap();
        assert_eq!(receive_all::<u64>(&mut processes, &mut || Ok(())).unwrap(), [7]);
        let [process] = processes;
        assert_eq!(process.finish().unwrap().len(), STDERR_LENGTH_MAX as usize);
    }
}
