//! A benchmark's hold on its processes: starts them, talks with them, notices when one ends, leaves none behind.

use crate::{BenchError, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often who waits for an answer looks around.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Processes that end for the same reason end within so long.
const ENDING_TIME: Duration = Duration::from_millis(500);
/// Of what a process says on standard error so much is kept, bytes.
const WORDS_LENGTH_MAX: u64 = 4096;

/// A process of the benchmark; killed if it is still there when this is dropped.
pub(crate) struct Process<'a> {
    benchmark: &'static str,
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
    words: Option<JoinHandle<String>>,
    interrupted: &'a AtomicBool,
}

impl<'a> Process<'a> {
    /// Starts this program with a hidden subcommand, as one that does what `order` says in `benchmark`. `interrupted`
    /// ends the waiting for it.
    pub(crate) fn start(
        benchmark: &'static str,
        name: &str,
        (subcommand, order): (&str, &impl Serialize),
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        let program = std::env::current_exe().map_err(|source| BenchError::system("find this program", source))?;
        let mut command = Command::new(program);
        command.args(["bench", subcommand, &serde_json::to_string(order)?]);
        Self::spawn(benchmark, name, command, interrupted)
    }

    pub(crate) fn spawn(
        benchmark: &'static str,
        name: &str,
        mut command: Command,
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| BenchError::system("start a process", source))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("its standard output was asked for just now");
        let mut stderr = child.stderr.take().expect("its standard error was asked for just now");
        let (sender, answers) = channel();
        // Both threads end with the process, whose pipes they read.
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(std::result::Result::ok);
            lines.map(|line| sender.send(line)).take_while(std::result::Result::is_ok).for_each(drop);
        });
        let words = std::thread::spawn(move || {
            let mut words = String::new();
            // A process that could not get rid of its words would wait for ever.
            let _ = stderr.by_ref().take(WORDS_LENGTH_MAX).read_to_string(&mut words);
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            words
        });
        Ok(Self { benchmark, name: name.to_owned(), child, stdin, answers, words: Some(words), interrupted })
    }

    /// Says something.
    pub(crate) fn tell(&mut self, value: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_string(value)?;
        line.push('\n');
        let stdin = self.stdin.as_mut().expect("open until the process is dropped");
        if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
            return Err(self.has_ended());
        }
        Ok(())
    }

    /// Waits for what it answers.
    pub(crate) fn hear<T: DeserializeOwned>(&mut self) -> Result<T> {
        self.hear_while(&mut || Ok(()))
    }

    /// As [`Process::hear`]; `look` is called now and then, and ends the waiting if it fails.
    pub(crate) fn hear_while<T: DeserializeOwned>(&mut self, look: &mut dyn FnMut() -> Result<()>) -> Result<T> {
        loop {
            match self.answers.recv_timeout(LOOK_INTERVAL) {
                Ok(line) => return Ok(serde_json::from_str(&line)?),
                Err(RecvTimeoutError::Disconnected) => {
                    // What looking around finds is the cause; who is killed lets go of the others before it is gone.
                    std::thread::sleep(ENDING_TIME);
                    return Err(look().err().unwrap_or_else(|| self.has_ended()));
                }
                Err(RecvTimeoutError::Timeout) => self.look_around().and_then(|()| look())?,
            }
        }
    }

    /// Kills it, at once; its end is taken note of when this is dropped.
    pub(crate) fn kill(&mut self) {
        // One that has ended by itself cannot be killed, and need not be.
        let _ = self.child.kill();
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> Result<bool> {
        let status = self.child.try_wait().map_err(|source| BenchError::system("wait for a process", source))?;
        Ok(status.is_none())
    }

    /// An error if it has ended with words of its own, though nobody waits for it now.
    pub(crate) fn look(&mut self) -> Result<()> {
        if self.is_running()? { Ok(()) } else { Err(self.has_ended()) }
    }

    /// An error if the benchmark was interrupted.
    pub(crate) fn look_around(&self) -> Result<()> {
        // Relaxed: the flag guards no data (pairs with the store of the signal handler).
        if self.interrupted.load(Ordering::Relaxed) { Err(self.failed("interrupted")) } else { Ok(()) }
    }

    fn failed(&self, reason: impl Into<String>) -> BenchError {
        BenchError::Measurement { name: self.benchmark, reason: reason.into() }
    }

    /// Waits for its end, which must be a good one; what it said on standard error.
    pub(crate) fn finish(mut self) -> Result<String> {
        let status = self.wait()?;
        if status.success() { Ok(self.words()) } else { Err(self.ended(status)) }
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        self.child.wait().map_err(|source| BenchError::system("wait for a process", source))
    }

    fn words(&mut self) -> String {
        let words = self.words.take().and_then(|words| words.join().ok()).unwrap_or_default();
        let words = words.trim().trim_start_matches("gapless: ");
        words.trim_start_matches(&format!("{} could not be measured: ", self.benchmark)).to_owned()
    }

    /// The error of one that does not talk any more.
    fn has_ended(&mut self) -> BenchError {
        match self.wait() {
            Ok(status) => self.ended(status),
            Err(error) => error,
        }
    }

    fn ended(&mut self, status: ExitStatus) -> BenchError {
        if status.signal() == Some(rustix::process::Signal::INT.as_raw()) {
            // Ctrl-C goes to all; this process may notice it a little later. Relaxed: the flag guards no data.
            self.interrupted.store(true, Ordering::Relaxed);
        }
        let words = self.words();
        let colon = if words.is_empty() { "" } else { ": " };
        self.failed(format!("{} ended too early, with {status}{colon}{words}", self.name))
    }
}

impl Drop for Process<'_> {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for an answer of each, notices when one of them ends meanwhile, and looks around with `look`.
pub(crate) fn hear_all<T: DeserializeOwned>(
    processes: &mut [Process<'_>],
    look: &mut dyn FnMut() -> Result<()>,
) -> Result<Vec<T>> {
    let mut answers: Vec<Option<T>> = processes.iter().map(|_| None).collect();
    while answers.iter().any(Option::is_none) {
        for index in 0..processes.len() {
            if answers[index].is_some() {
                continue;
            }
            match processes[index].answers.recv_timeout(LOOK_INTERVAL) {
                Ok(line) => answers[index] = Some(serde_json::from_str(&line)?),
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(ENDING_TIME);
                    return Err(look().err().unwrap_or_else(|| all_that_ended(processes)));
                }
                Err(RecvTimeoutError::Timeout) => processes[index].look_around().and_then(|()| look())?,
            }
        }
    }
    Ok(answers.into_iter().flatten().collect())
}

/// The errors of all that end now: what stops one stops others, and the first to say so is seldom the cause.
fn all_that_ended(processes: &mut [Process<'_>]) -> BenchError {
    let ended = processes.iter_mut().filter_map(|process| process.look().err());
    let words: Vec<_> = ended.map(reason).collect();
    processes[0].failed(words.join("; "))
}

/// What is behind the name of the benchmark.
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
        // A test that runs in the background may have been started with interrupts ignored.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", "sh", "-c", script]);
        let mut process = Process::spawn("sequencer", "node 1", command, interrupted).unwrap();
        process.hear::<bool>().unwrap_err()
    }

    #[test]
    fn its_own_words_are_in_the_error() {
        let interrupted = AtomicBool::new(false);
        let error = shell("echo 'gapless: it is broken' >&2; exit 3", &interrupted).to_string();
        assert!(error.contains("node 1 ended") && error.ends_with("with exit status: 3: it is broken"), "{error}");
        assert!(!interrupted.load(Ordering::Relaxed));
    }

    #[test]
    fn an_interrupt_of_either_is_one_of_both() {
        let interrupted = AtomicBool::new(false);
        shell("kill -INT $$", &interrupted);
        assert!(interrupted.load(Ordering::Relaxed));
        let error = shell("exec sleep 1000", &interrupted).to_string();
        assert!(error.contains("interrupted"), "{error}");
    }

    #[test]
    fn an_end_without_an_answer_is_an_error() {
        let interrupted = AtomicBool::new(false);
        let mut process = Process::spawn("log", "it", Command::new("true"), &interrupted).unwrap();
        let error = process.hear::<f64>().unwrap_err().to_string();
        assert!(error.contains("exit status: 0"), "{error}");
    }

    #[test]
    fn what_is_said_is_answered_and_many_words_block_nobody() {
        let interrupted = AtomicBool::new(false);
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 300000 /dev/zero >&2; read line; echo $line"]);
        let mut processes = [Process::spawn("sequencer", "echo", command, &interrupted).unwrap()];
        processes[0].tell(&7).unwrap();
        assert_eq!(hear_all::<u64>(&mut processes, &mut || Ok(())).unwrap(), [7]);
        let [process] = processes;
        assert_eq!(process.finish().unwrap().len(), WORDS_LENGTH_MAX as usize);
    }
}
