//! Watches the holder of the supervisor's lock, its own child or not, and starts another one after its death.

use crate::role::{ProcessRole, RoleCommand};
use crate::state_directory::{Holder, RoleLock, StateDirectory, is_dead};
use gapless_agent::fault::crash_point;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A supervisor that lived shorter restarts after a backoff, which grows only for those that never took charge.
const HEALTHY_AFTER: Duration = Duration::from_secs(1);
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct SupervisorKeeper {
    directory: StateDirectory,
    roles: RoleCommand,
    state: KeeperState,
    backoff: Duration,
    /// The last supervisor has completed its takeover.
    was_in_charge: bool,
}

#[derive(Debug)]
enum KeeperState {
    Waiting(Instant),
    Watching(OwnedFd, Instant),
}

impl SupervisorKeeper {
    /// Creates it; the first turn looks for a supervisor.
    pub fn new(directory: StateDirectory, roles: RoleCommand, now: Instant) -> Self {
        Self { directory, roles, state: KeeperState::Waiting(now), backoff: BACKOFF_FIRST, was_in_charge: false }
    }

    /// Notices a death, restarts if it is time; true if a new supervisor is watched.
    pub fn poll(&mut self, now: Instant) -> bool {
        if let KeeperState::Watching(pidfd, since) = &self.state
            && is_dead(pidfd)
        {
            self.wait_after(now, now - *since);
        }
        if !matches!(self.state, KeeperState::Waiting(until) if now >= until) {
            return false;
        }
        match self.find_or_start() {
            Ok(Some(pidfd)) => {
                self.state = KeeperState::Watching(pidfd, now);
                return true;
            }
            Ok(None) => {}
            Err(reason) => tracing::error!("no supervisor: {reason}"),
        }
        self.wait_after(now, Duration::ZERO);
        false
    }

    /// Records a completed takeover, which resets the backoff.
    pub const fn note_in_charge(&mut self) {
        self.was_in_charge = true;
    }

    fn wait_after(&mut self, now: Instant, lived: Duration) {
        let is_healthy = lived >= HEALTHY_AFTER;
        if is_healthy || std::mem::take(&mut self.was_in_charge) {
            self.backoff = BACKOFF_FIRST;
        }
        let wait = if is_healthy { Duration::ZERO } else { self.backoff };
        self.state = KeeperState::Waiting(now + wait);
        if !is_healthy {
            self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
        }
    }

    fn find_or_start(&self) -> Result<Option<OwnedFd>, String> {
        match self.directory.role_holder(RoleLock::Supervisor).map_err(|error| error.to_string())? {
            Holder::Recorded { pidfd, .. } => Ok(Some(pidfd)),
            // A supervisor without a record, or its child between fork and exec.
            Holder::Descendants(found) => Ok(found.into_iter().next().map(|process| process.pidfd)),
            Holder::Foreign { .. } | Holder::Hidden { .. } => Ok(None),
            Holder::Free { .. } => self.start().map(Some),
        }
    }

    fn start(&self) -> Result<OwnedFd, String> {
        crash_point("guardian_before_supervisor");
        let role = ProcessRole::Supervisor { directory: self.directory.path().to_owned() };
        let spawned = self.roles.command(&role).stdin(Stdio::null()).spawn();
        let child = spawned.map_err(|error| format!("starting it: {error}"))?;
        crash_point("guardian_supervisor_started");
        // Not reaped yet, so the id is not reused.
        pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(|errno| format!("watching it: {errno}"))
    }

    /// Kills the watched supervisor; false without one.
    pub fn kill(&self) -> bool {
        let Some(pidfd) = self.watched() else { return false };
        // Fails if it has died meanwhile.
        let _ = pidfd_send_signal(pidfd, Signal::KILL);
        true
    }

    pub const fn watched(&self) -> Option<&OwnedFd> {
        match &self.state {
            KeeperState::Watching(pidfd, _) => Some(pidfd),
            KeeperState::Waiting(_) => None,
        }
    }

    /// Time of the next turn without an event.
    pub const fn deadline(&self) -> Option<Instant> {
        match self.state {
            KeeperState::Waiting(until) => Some(until),
            KeeperState::Watching(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takeover_resets_the_backoff() {
        let directory = tempfile::tempdir().unwrap();
        let directory = StateDirectory::create(&directory.path().join("state"), None).unwrap();
        let now = Instant::now();
        let mut keeper = SupervisorKeeper::new(directory, RoleCommand::default(), now);
        let mut waits_after = |is_in_charge: bool, lived_ms: u64| {
            if is_in_charge {
                keeper.note_in_charge();
            }
            keeper.wait_after(now, Duration::from_millis(lived_ms));
            keeper.deadline().unwrap().duration_since(now).as_millis()
        };
        let waits: Vec<_> = (0..9).map(|_| waits_after(false, 10)).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!((0..5).map(|_| waits_after(true, 10)).collect::<Vec<_>>(), [50; 5]);
        assert_eq!((waits_after(false, 10), waits_after(false, 10)), (100, 200));
        assert_eq!((waits_after(false, 1000), waits_after(false, 999)), (0, 50));
    }
}
