//! The other process of a measurement, seen by one that spins for it. No wait outlives it.

use crate::Result;
use crate::child_process::{Child, ChildRole, OrphanPolicy, Parent};
use gapless_measure::affinity::pin_current_thread;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::atomic::AtomicBool;

pub struct PeerProcess<'a> {
    process: PeerHandle<'a>,
    /// Spinning would block the other one.
    shares_the_cpu: bool,
}

enum PeerHandle<'a> {
    Second(Child<'a>),
    First(Parent),
}

impl<'a> PeerProcess<'a> {
    /// Starts the second process, which pins itself to `cpu`; `None` shares this process's CPU. `interrupted` ends any
    /// wait.
    pub fn start(
        part: &'static str,
        (role, assignment): (ChildRole, &impl Serialize),
        cpu: Option<usize>,
        interrupted: &'a AtomicBool,
    ) -> Result<Self> {
        let process = Child::start(part, "the second process", (role, assignment), interrupted)?;
        Ok(Self { process: PeerHandle::Second(process), shares_the_cpu: cpu.is_none() })
    }

    /// Pins this thread to `cpu`; `None` shares the CPUs.
    pub fn first(part: &'static str, cpu: Option<usize>) -> Result<Self> {
        let parent = Parent::listen(part, OrphanPolicy::Notice)?;
        if let Some(cpu) = cpu {
            pin_current_thread(&[cpu])?;
        }
        Ok(Self { process: PeerHandle::First(parent), shares_the_cpu: cpu.is_none() })
    }

    pub fn send(&mut self, value: &impl Serialize) -> Result<()> {
        match &mut self.process {
            PeerHandle::Second(child) => child.send(value),
            PeerHandle::First(parent) => parent.send(value),
        }
    }

    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<T> {
        match &mut self.process {
            PeerHandle::Second(child) => child.receive(),
            PeerHandle::First(parent) => parent.receive()?.ok_or_else(|| parent.ended_error()),
        }
    }

    pub fn check_running(&mut self) -> Result<()> {
        match &mut self.process {
            PeerHandle::Second(child) => child.check_interrupted().and_then(|()| child.check_running()),
            PeerHandle::First(parent) => parent.check_running(),
        }
    }

    pub const fn shares_the_cpu(&self) -> bool {
        self.shares_the_cpu
    }

    /// Spins, then yields and checks the other process.
    ///
    /// # Errors
    /// Those of `ready`; those of [`PeerProcess::check_running`], if `ready` is still false afterwards.
    #[inline]
    pub fn wait_until(&mut self, mut ready: impl FnMut() -> Result<bool>) -> Result<()> {
        const TURNS_BEFORE_YIELD: u32 = 10_000;
        let mut turns = 0;
        while !ready()? {
            if turns < TURNS_BEFORE_YIELD && !self.shares_the_cpu {
                turns += 1;
                std::hint::spin_loop();
                continue;
            }
            if let Err(gone) = self.check_running() {
                // The last steps of a process before its end count.
                return if ready()? { Ok(()) } else { Err(gone) };
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    pub fn finish(self) -> Result<()> {
        match self.process {
            PeerHandle::Second(child) => child.finish().map(drop),
            // The first process outlives this one.
            PeerHandle::First(_) => Ok(()),
        }
    }

    #[cfg(test)]
    pub fn shell(script: &str, interrupted: &'a AtomicBool) -> Self {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]);
        let child = Child::spawn("log", "it", command, interrupted).unwrap();
        Self { process: PeerHandle::Second(child), shares_the_cpu: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn end_or_interrupt_ends_waiting() {
        let interrupted = AtomicBool::new(false);
        let error = PeerProcess::shell("exit 3", &interrupted).wait_until(|| Ok(false)).unwrap_err().to_string();
        assert!(error.ends_with("it ended too early, with exit status: 3"), "{error}");
        interrupted.store(true, Ordering::Relaxed);
        let error =
            PeerProcess::shell("exec sleep 1000", &interrupted).wait_until(|| Ok(false)).unwrap_err().to_string();
        assert!(error.contains("interrupted"), "{error}");
    }

    #[test]
    fn last_steps_are_still_seen() {
        let (interrupted, directory) = (AtomicBool::new(false), tempfile::tempdir().unwrap());
        let file = directory.path().join("done");
        let mut other = PeerProcess::shell(&format!("touch {}", file.display()), &interrupted);
        while other.check_running().is_ok() {}
        let mut looks = 0;
        let ready = || {
            looks += 1;
            Ok(looks > 10_001 && file.exists())
        };
        other.wait_until(ready).unwrap();
    }
}
