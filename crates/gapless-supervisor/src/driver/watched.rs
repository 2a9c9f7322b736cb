//! [`Watched`]: a process that runs or is asked for, until it and all that it has left have ended.

use super::readiness::Probe;
use super::standby_look::StandbyLook;
use crate::config::process::StopSignal;
use crate::control_groups;
use crate::state_directory::ProcessIdentity;
use crate::supervision::copy::End;
use rustix::fd::OwnedFd;
use rustix::process::{Signal, pidfd_send_signal};
use std::path::{Path, PathBuf};

/// A process that runs or is asked for.
#[derive(Debug, Default)]
pub struct Watched {
    pub incarnation: u64,
    /// None until the guardian has told it.
    pub process_id: Option<u32>,
    pub pidfd: Option<OwnedFd>,
    /// The control group that its launcher was to join.
    pub group: Option<PathBuf>,
    /// The guardian tells how it ends.
    pub is_guardians: bool,
    pub probe: Option<Probe>,
    /// Of a singleton, until it is its own program.
    pub standby: Option<StandbyLook>,
    /// It was asked to end by a signal.
    pub is_signalled: bool,
    /// It is to be signalled as soon as it runs.
    pub wanted_signal: Option<StopSignal>,
    /// It is to end when it has finished what it serves.
    pub draining: Option<Draining>,
    /// It has ended so; what it has left has not yet.
    pub ended: Option<End>,
    /// When that is looked for, monotonic, ns.
    pub next_orphans_ns: u64,
    /// What it has left is killed then, monotonic, ns: later than its end where it was asked to end and its grace is not over.
    pub kill_rest_at_ns: u64,
}

/// A copy is to end when it has finished what it serves.
#[derive(Clone, Copy, Debug)]
pub struct Draining {
    /// By this signal.
    pub signal: StopSignal,
    /// Then at the latest, monotonic, ns.
    pub until_ns: u64,
}

impl Watched {
    /// It is asked for.
    pub fn asked(incarnation: u64, group: Option<PathBuf>) -> Self {
        Self { incarnation, group, ..Self::default() }
    }

    /// When something is to be looked at, monotonic, ns.
    pub fn next_look_ns(&self) -> Option<u64> {
        match &self.ended {
            Some(_) => Some(self.next_orphans_ns),
            None => {
                // What stands by need not be asked whether it is ready.
                let probe = self.probe.as_ref().filter(|_| !self.is_standby()).map(|probe| probe.pause.next_ns);
                let standby = self.standby.as_ref().map(|standby| standby.pause.next_ns);
                let drained = self.draining.as_ref().map(|draining| draining.until_ns);
                probe.into_iter().chain(standby).chain(drained).min()
            }
        }
    }

    /// Whether it was seen to stand by.
    pub fn is_standby(&self) -> bool {
        self.standby.as_ref().is_some_and(|standby| standby.is_standby)
    }

    /// What becomes readable when it ends, if nobody else tells that.
    pub fn awaited(&self) -> Option<&OwnedFd> {
        self.pidfd.as_ref().filter(|_| !self.is_guardians && self.ended.is_none())
    }

    /// It runs as this process.
    pub fn runs_as(&mut self, process_id: u32, pidfd: Option<OwnedFd>, is_guardians: bool) {
        (self.process_id, self.pidfd, self.is_guardians) = (Some(process_id), pidfd, is_guardians);
    }

    /// Signals it, now or as soon as it runs.
    pub fn signal(&mut self, signal: StopSignal) {
        match &self.pidfd {
            Some(pidfd) => {
                // It may have died meanwhile.
                let _ = pidfd_send_signal(pidfd, signal_of(signal));
                self.is_signalled = true;
            }
            None => self.wanted_signal = Some(signal),
        }
    }

    /// It has finished what it serves, or need not: it gets the signal that waited for that.
    pub fn signal_drained(&mut self) {
        if let Some(draining) = self.draining.take() {
            self.signal(draining.signal);
        }
    }

    /// Kills it, now or as soon as it runs, and all that it has started.
    pub fn kill(&mut self) {
        self.signal(StopSignal::Kill);
        self.kill_rest_at_ns = 0;
        self.kill_group();
    }

    /// Whether somebody is left in its control group; if not, that is removed.
    pub fn has_left_somebody(&self) -> bool {
        self.group.as_deref().is_some_and(kill_remaining)
    }

    /// Kills who is left in its control group.
    pub fn kill_group(&self) {
        self.group.iter().for_each(|group| control_groups::kill(group));
    }

    pub fn end(&mut self, end: End) {
        self.ended.get_or_insert(end);
        (self.probe, self.standby, self.draining) = (None, None, None);
        self.next_orphans_ns = 0;
    }
}

/// Whether somebody is in a control group whose copy has ended; if not, it is removed.
pub fn kill_remaining(group: &Path) -> bool {
    let is_populated = control_groups::is_populated(group);
    if !is_populated {
        control_groups::remove(group);
    }
    is_populated
}

/// A pidfd of a process that lives.
pub fn pidfd_of(process_id: u32) -> Option<OwnedFd> {
    ProcessIdentity::of(process_id).ok().flatten()?.open().ok().flatten()
}

/// The signal of a choice in the file.
const fn signal_of(signal: StopSignal) -> Signal {
    match signal {
        StopSignal::Terminate => Signal::TERM,
        StopSignal::Interrupt => Signal::INT,
        StopSignal::Quit => Signal::QUIT,
        StopSignal::HangUp => Signal::HUP,
        StopSignal::User1 => Signal::USR1,
        StopSignal::User2 => Signal::USR2,
        StopSignal::Kill => Signal::KILL,
    }
}
