//! A process dies at a random moment; when the kernel says so.

use crate::rpc::failed;
use gapless_load::rpc::faults::traffic::FaultCaller;
use gapless_measure::Row;
use gapless_measure::{BenchError, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::rand::{GetRandomFlags, getrandom};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Random pause between a process that serves again and the next kill.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(80);

pub(super) trait Victims {
    type Caller: FaultCaller;

    fn line(&mut self) -> Result<Self::Caller>;

    /// Kills one or more processes, and waits until all is restored.
    fn kill(&mut self, dice: &mut KillDice) -> Result<Vec<Death>>;

    /// Ends all waiting for a process that comes back.
    fn release(&self) {}

    /// File in which serving processes note each call that they begin.
    fn begun(&self) -> PathBuf;

    fn retried(&self) -> u64 {
        0
    }

    fn finish(self, row: &mut Row) -> Result<()>
    where
        Self: Sized,
    {
        let _ = row;
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Death {
    /// Taken before SIGKILL is sent.
    pub(super) killed_at: Instant,
    /// Time at which its pidfd became readable.
    pub(super) sign_at: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kill {
    pub(super) deaths: Vec<Death>,
    pub(super) restored_at: Instant,
}

/// Kills processes at once, and waits for their pidfds on this thread.
pub(super) fn kill(process_ids: &[u32]) -> Result<Vec<Death>> {
    let refused = |errno: rustix::io::Errno| BenchError::system("kill a process of the benchmark", errno);
    let open = |id: &u32| {
        let pid = Pid::from_raw(id.cast_signed()).ok_or_else(|| failed("a process has no number"))?;
        pidfd_open(pid, PidfdFlags::empty()).map_err(refused)
    };
    let pidfds = process_ids.iter().map(open).collect::<Result<Vec<_>>>()?;
    let mut killed = Vec::with_capacity(pidfds.len());
    for pidfd in &pidfds {
        killed.push(Instant::now());
        pidfd_send_signal(pidfd, Signal::KILL).map_err(refused)?;
    }
    let wait = |(pidfd, killed_at): (&OwnedFd, Instant)| {
        let mut waiting = [PollFd::new(pidfd, PollFlags::IN)];
        while let Err(errno) = poll(&mut waiting, None) {
            if errno != rustix::io::Errno::INTR {
                return Err(refused(errno));
            }
        }
        Ok(Death { killed_at, sign_at: Instant::now() })
    };
    pidfds.iter().zip(killed).map(wait).collect()
}

/// SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct KillDice(u64);

impl KillDice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        gapless_wire::split_mix::next(&mut self.0)
    }

    pub(super) fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    pub(super) fn pause(&mut self) -> Duration {
        let range = (PAUSE_MAX - PAUSE_MIN).as_nanos() as usize;
        PAUSE_MIN + Duration::from_nanos(self.below(range) as u64)
    }
}

pub(super) fn new_seed() -> Result<u64> {
    let mut bytes = [0_u8; 4];
    // So few bytes come whole; a short number is easier to type again.
    getrandom(&mut bytes, GetRandomFlags::empty()).map_err(|errno| BenchError::system("draw a seed", errno))?;
    Ok(u32::from_le_bytes(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn equal_seeds_give_equal_kills() {
        let throws = |seed| {
            let mut dice = KillDice::new(seed);
            (0..50).map(|_| (dice.pause(), dice.below(4))).collect::<Vec<_>>()
        };
        assert_eq!(throws(7), throws(7));
        assert_ne!(throws(7), throws(8));
        assert!(throws(7).iter().all(|(pause, copy)| (PAUSE_MIN..PAUSE_MAX).contains(pause) && *copy < 4));
        assert!((0..4).all(|copy| throws(7).iter().any(|(_, thrown)| *thrown == copy)), "each has its turn");
    }

    #[test]
    fn processes_are_dead_at_the_sign() {
        let start = || Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut processes = [start(), start()];
        let ids = processes.each_ref().map(std::process::Child::id);
        let deaths = kill(&ids).unwrap();
        assert_eq!(deaths.len(), 2);
        assert!(deaths.iter().all(|death| death.killed_at <= death.sign_at));
        assert!(processes.iter_mut().all(|process| process.try_wait().unwrap().is_some()), "both have ended by now");
        let error = kill(&ids[..1]).unwrap_err();
        assert!(error.to_string().contains("kill a process"), "{error}");
    }
}
