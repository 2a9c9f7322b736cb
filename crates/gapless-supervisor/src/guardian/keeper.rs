//! [`Keeper`]: that there is always a supervisor. It watches the process that holds the lock of the supervisor, its own child or not, and starts
//! another when that one is dead.

use crate::role::{Role, RoleCommand};
use crate::state_directory::{Holder, RoleLock, StateDirectory, is_dead};
use gapless_agent::fault::crash_point;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A supervisor that lives shorter than this is not started again at once; one that was never in charge, later and later.
const HEALTHY_AFTER: Duration = Duration::from_secs(1);
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// That there is always a supervisor.
#[derive(Debug)]
pub struct Keeper {
    directory: StateDirectory,
    roles: RoleCommand,
    state: State,
    backoff: Duration,
    /// The last one has taken over what runs.
    was_in_charge: bool,
}

#[derive(Debug)]
enum State {
    /// Nobody is watched, and nobody is looked for until then.
    Waiting(Instant),
    /// This one is watched, since then.
    Watching(OwnedFd, Instant),
}

impl Keeper {
    /// Looks for a supervisor at its first turn.
    pub fn new(directory: StateDirectory, roles: RoleCommand, now: Instant) -> Self {
        Self { directory, roles, state: State::Waiting(now), backoff: BACKOFF_FIRST, was_in_charge: false }
    }

    /// Notices a death, and starts another one if it is time. Whether another one is watched from now on.
    pub fn turn(&mut self, now: Instant) -> bool {
        if let State::Watching(pidfd, since) = &self.state
            && is_dead(pidfd)
        {
            self.wait_after(now, now - *since);
        }
        if !matches!(self.state, State::Waiting(until) if now >= until) {
            return false;
        }
        match self.find_or_start() {
            Ok(Some(pidfd)) => {
                self.state = State::Watching(pidfd, now);
                return true;
            }
            Ok(None) => {}
            Err(reason) => tracing::error!("no supervisor: {reason}"),
        }
        self.wait_after(now, Duration::ZERO);
        false
    }

    /// The supervisor has taken over what runs: whatever ends it is no reason to do without one for long.
    pub const fn note_in_charge(&mut self) {
        self.was_in_charge = true;
    }

    fn wait_after(&mut self, now: Instant, lived: Duration) {
        let is_healthy = lived >= HEALTHY_AFTER;
        if is_healthy || std::mem::take(&mut self.was_in_charge) {
            self.backoff = BACKOFF_FIRST;
        }
        let wait = if is_healthy { Duration::ZERO } else { self.backoff };
        self.state = State::Waiting(now + wait);
        if !is_healthy {
            self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
        }
    }

    /// The supervisor that runs; else one that it starts. `None`: somebody is, who cannot be watched.
    fn find_or_start(&self) -> Result<Option<OwnedFd>, String> {
        match self.directory.role_holder(RoleLock::Supervisor).map_err(|error| error.to_string())? {
            Holder::Recorded { pidfd, .. } => Ok(Some(pidfd)),
            // It could not write its record; or is one that a supervisor has forked, for the moment before its exec.
            Holder::Others(found) => Ok(found.into_iter().next().map(|process| process.pidfd)),
            Holder::Foreign { .. } | Holder::Hidden { .. } => Ok(None),
            Holder::Nobody { .. } => self.start().map(Some),
        }
    }

    fn start(&self) -> Result<OwnedFd, String> {
        crash_point("guardian_before_supervisor");
        let role = Role::Supervisor { directory: self.directory.path().to_owned() };
        let spawned = self.roles.command(&role).stdin(Stdio::null()).spawn();
        let child = spawned.map_err(|error| format!("starting it: {error}"))?;
        crash_point("guardian_supervisor_started");
        // Nobody has waited for it yet, so the number is its own.
        pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(|errno| format!("watching it: {errno}"))
    }

    /// Kills the supervisor that is watched: another one follows. Whether one is.
    pub fn kill(&self) -> bool {
        let Some(pidfd) = self.watched() else { return false };
        // It may have died meanwhile.
        let _ = pidfd_send_signal(pidfd, Signal::KILL);
        true
    }

    /// What becomes readable when the supervisor is dead.
    pub const fn watched(&self) -> Option<&OwnedFd> {
        match &self.state {
            State::Watching(pidfd, _) => Some(pidfd),
            State::Waiting(_) => None,
        }
    }

    /// When it wants another turn, if nothing happens before.
    pub const fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Waiting(until) => Some(until),
            State::Watching(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_supervisors_that_never_were_in_charge_are_started_later_and_later() {
        let directory = tempfile::tempdir().unwrap();
        let directory = StateDirectory::create(&directory.path().join("state"), None).unwrap();
        let now = Instant::now();
        let mut keeper = Keeper::new(directory, RoleCommand::default(), now);
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
        // What was in charge once does not speak for those that come later.
        assert_eq!((waits_after(false, 10), waits_after(false, 10)), (100, 200));
        assert_eq!((waits_after(false, 1000), waits_after(false, 999)), (0, 50));
    }
}
