//! A process dies at a random moment; when the kernel says so.

use super::traffic::Line;
use crate::failed;
use gapless_measure::{BenchError, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::rand::{GetRandomFlags, getrandom};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Between a process that serves again and the next kill, at random.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(80);

/// What serves a route, and dies.
pub(super) trait Victims {
    /// The calling end of one thread.
    type Line: Line;

    /// A caller that is connected.
    fn line(&mut self) -> Result<Self::Line>;

    /// Kills one of the processes and waits until as many serve as before.
    fn kill(&mut self, dice: &mut Dice) -> Result<Death>;

    /// No caller waits any more for one that comes back.
    fn release(&self) {}

    /// The file in which serving processes note what they have begun.
    fn begun(&self) -> PathBuf;

    /// Attempts of calls beyond the first.
    fn retried(&self) -> u64 {
        0
    }
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Death {
    /// SIGKILL was about to be sent.
    pub(super) killed_at: Instant,
    /// The thread that waits for its pidfd saw that it was readable.
    pub(super) sign_at: Instant,
}

/// Kills a process, and waits for the kernel's sign of its end on this thread.
pub(super) fn kill(process_id: u32) -> Result<Death> {
    let refused = |errno: rustix::io::Errno| BenchError::system("kill a process of the benchmark", errno);
    let pid = Pid::from_raw(process_id.cast_signed()).ok_or_else(|| failed("a process has no number"))?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(refused)?;
    let killed_at = Instant::now();
    pidfd_send_signal(&pidfd, Signal::KILL).map_err(refused)?;
    let mut waiting = [PollFd::new(&pidfd, PollFlags::IN)];
    while let Err(errno) = poll(&mut waiting, None) {
        if errno != rustix::io::Errno::INTR {
            return Err(refused(errno));
        }
    }
    Ok(Death { killed_at, sign_at: Instant::now() })
}

/// Equal seeds, equal throws: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014; constants of Sebastiano Vigna's `splitmix64.c`).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of so many.
    pub(super) fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// Before the next kill.
    pub(super) fn pause(&mut self) -> Duration {
        let range = (PAUSE_MAX - PAUSE_MIN).as_nanos() as usize;
        PAUSE_MIN + Duration::from_nanos(self.below(range) as u64)
    }
}

/// A seed that no run has had.
pub(super) fn new_seed() -> Result<u64> {
    let mut bytes = [0_u8; 4];
    // So few bytes come whole; a short number is typed again more easily.
    getrandom(&mut bytes, GetRandomFlags::empty()).map_err(|errno| BenchError::system("draw a seed", errno))?;
    Ok(u32::from_le_bytes(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn equal_seeds_kill_the_same_at_the_same_moments() {
        let throws = |seed| {
            let mut dice = Dice::new(seed);
            (0..50).map(|_| (dice.pause(), dice.below(4))).collect::<Vec<_>>()
        };
        assert_eq!(throws(7), throws(7));
        assert_ne!(throws(7), throws(8));
        assert!(throws(7).iter().all(|(pause, copy)| (PAUSE_MIN..PAUSE_MAX).contains(pause) && *copy < 4));
        assert!((0..4).all(|copy| throws(7).iter().any(|(_, thrown)| *thrown == copy)), "each has its turn");
    }

    #[test]
    fn a_process_is_dead_at_the_sign() {
        let mut process = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let death = kill(process.id()).unwrap();
        assert!(death.killed_at <= death.sign_at);
        assert!(process.try_wait().unwrap().is_some(), "it has ended by now");
        let error = kill(process.id()).unwrap_err();
        assert!(error.to_string().contains("kill a process"), "{error}");
    }
}
