//! The first process's hold on the second, as one that waits for what it does.

use super::partner::{Order, SUBCOMMAND};
use super::waiting::Other;
use crate::Result;
use crate::child::Process;
use serde::de::DeserializeOwned;
use std::sync::atomic::AtomicBool;

/// The second process; killed if it is still there when this is dropped.
pub(super) struct Partner<'a> {
    process: Process<'a>,
    shares_the_cpu: bool,
}

impl<'a> Partner<'a> {
    /// Starts it. `interrupted` ends the waiting for it.
    pub(super) fn start(order: &Order, interrupted: &'a AtomicBool) -> Result<Self> {
        let process = Process::start("log", "the second process", (SUBCOMMAND, order), interrupted)?;
        Ok(Self { process, shares_the_cpu: order.cpu.is_none() })
    }

    /// Waits for the line that it answers.
    pub(super) fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        self.process.hear()
    }

    /// Waits for its end, which must be a good one.
    pub(super) fn finish(self) -> Result<()> {
        self.process.finish().map(drop)
    }
}

impl Other for Partner<'_> {
    fn look(&mut self) -> Result<()> {
        self.process.look_around()?;
        self.process.look()
    }

    fn shares_the_cpu(&self) -> bool {
        self.shares_the_cpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn an_end_or_an_interrupt_ends_the_waiting() {
        let interrupted = AtomicBool::new(false);
        let partner = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Partner { process: Process::spawn("log", "it", command, &interrupted).unwrap(), shares_the_cpu: false }
        };
        let error = partner("exit 3").wait_until(|| Ok(false)).unwrap_err().to_string();
        assert!(error.ends_with("it ended too early, with exit status: 3"), "{error}");
        interrupted.store(true, std::sync::atomic::Ordering::Relaxed);
        let error = partner("exec sleep 1000").wait_until(|| Ok(false)).unwrap_err().to_string();
        assert!(error.contains("interrupted"), "{error}");
    }
}
