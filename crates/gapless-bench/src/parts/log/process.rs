//! The first process's hold on the second: starts it, notices when it ends, leaves none behind.

use super::partner::{Order, SUBCOMMAND};
use super::waiting::Other;
use crate::parts::failed;
use crate::{BenchError, Result};
use serde::de::DeserializeOwned;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// The second process; killed if it is still there when this is dropped.
pub(super) struct Partner<'a> {
    child: Child,
    answers: BufReader<ChildStdout>,
    shares_the_cpu: bool,
    interrupted: &'a AtomicBool,
}

impl<'a> Partner<'a> {
    /// Starts it. `interrupted` ends the waiting for it.
    pub(super) fn start(order: &Order, interrupted: &'a AtomicBool) -> Result<Self> {
        let program = std::env::current_exe().map_err(|source| BenchError::system("find this program", source))?;
        let mut command = Command::new(program);
        command.args(["bench", SUBCOMMAND, &serde_json::to_string(order)?]);
        Self::spawn(command, order.cpu.is_none(), interrupted)
    }

    fn spawn(mut command: Command, shares_the_cpu: bool, interrupted: &'a AtomicBool) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| BenchError::system("start the second process", source))?;
        let stdout = child.stdout.take().expect("its standard output was asked for just now");
        Ok(Self { child, answers: BufReader::new(stdout), shares_the_cpu, interrupted })
    }

    /// Waits for the line that it answers.
    pub(super) fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .map_err(|source| BenchError::system("read what the second process answers", source))?;
        if line.is_empty() {
            let status = self.wait()?;
            return Err(self.ended(status));
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// Waits for its end, which must be a good one.
    pub(super) fn finish(mut self) -> Result<()> {
        let status = self.wait()?;
        if status.success() { Ok(()) } else { Err(self.ended(status)) }
    }

    fn wait(&mut self) -> Result<ExitStatus> {
        self.child.wait().map_err(|source| BenchError::system("wait for the second process", source))
    }

    /// What its end says; it has ended.
    fn ended(&mut self, status: ExitStatus) -> BenchError {
        if status.signal() == Some(rustix::process::Signal::INT.as_raw()) {
            // Ctrl-C goes to both; this process may notice it a little later. Relaxed: the flag guards no data.
            self.interrupted.store(true, Ordering::Relaxed);
        }
        let mut words = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            // Without its words its status has to do.
            let _ = stderr.read_to_string(&mut words);
        }
        let words = words.trim().trim_start_matches("gapless: ");
        let colon = if words.is_empty() { "" } else { ": " };
        failed("log", format!("the second process ended before the measurement did, with {status}{colon}{words}"))
    }
}

impl Other for Partner<'_> {
    fn look(&mut self) -> Result<()> {
        // Relaxed: the flag guards no data (pairs with the store of the signal handler).
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(failed("log", "interrupted"));
        }
        match self.child.try_wait().map_err(|source| BenchError::system("wait for the second process", source))? {
            None => Ok(()),
            Some(status) => Err(self.ended(status)),
        }
    }

    fn shares_the_cpu(&self) -> bool {
        self.shares_the_cpu
    }
}

impl Drop for Partner<'_> {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, interrupted: &AtomicBool) -> BenchError {
        // A test that runs in the background may have been started with interrupts ignored.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", "sh", "-c", script]);
        let mut partner = Partner::spawn(command, false, interrupted).unwrap();
        partner.wait_until(|| Ok(false)).unwrap_err()
    }

    #[test]
    fn its_own_words_are_in_the_error() {
        let interrupted = AtomicBool::new(false);
        let error = shell("echo 'gapless: it is broken' >&2; exit 3", &interrupted).to_string();
        assert!(error.ends_with("with exit status: 3: it is broken"), "{error}");
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
        let mut partner = Partner::spawn(Command::new("true"), false, &interrupted).unwrap();
        let error = partner.answer::<f64>().unwrap_err().to_string();
        assert!(error.contains("exit status: 0"), "{error}");
    }
}
