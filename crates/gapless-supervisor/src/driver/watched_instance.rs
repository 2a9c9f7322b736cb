//! `WatchedInstance`: a requested or running process, until it and all of its descendants have ended.

use super::readiness::ReadinessProbe;
use super::standby_probe::StandbyProbe;
use crate::config::process::StopSignal;
use crate::control_groups;
use crate::state_directory::ProcessIdentity;
use crate::supervision::instance::InstanceEnd;
use rustix::fd::OwnedFd;
use rustix::process::{Signal, pidfd_send_signal};
use std::path::{Path, PathBuf};

/// A requested or running process, until it and all descendants have ended.
#[derive(Debug, Default)]
pub struct WatchedInstance {
    pub incarnation: u64,
    /// `None` until the guardian has reported it.
    pub process_id: Option<u32>,
    pub pidfd: Option<OwnedFd>,
    /// Control group of the launcher.
    pub group: Option<PathBuf>,
    /// The guardian reports its end.
    pub is_guardians: bool,
    pub probe: Option<ReadinessProbe>,
    /// Only for a singleton, until its launcher has called exec.
    pub standby: Option<StandbyProbe>,
    /// The stop signal was sent.
    pub is_signalled: bool,
    /// Signal to send once the process runs.
    pub wanted_signal: Option<StopSignal>,
    /// Drain in progress.
    pub draining: Option<PendingDrain>,
    /// Ended, but descendants may still run.
    pub ended: Option<InstanceEnd>,
    /// Next check for descendants, monotonic, ns.
    pub next_descendants_ns: u64,
    /// Time at which descendants are killed, monotonic, ns: after a stop the end of the grace period, else at once.
    pub kill_descendants_at_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct PendingDrain {
    pub signal: StopSignal,
    /// Deadline, monotonic, ns.
    pub until_ns: u64,
}

impl WatchedInstance {
    /// Creates one for a requested start.
    pub fn requested(incarnation: u64, group: Option<PathBuf>) -> Self {
        Self { incarnation, group, ..Self::default() }
    }

    /// Next deadline, monotonic, ns.
    pub fn next_check_ns(&self) -> Option<u64> {
        match &self.ended {
            Some(_) => Some(self.next_descendants_ns),
            None => {
                let probe = self.probe.as_ref().filter(|_| !self.is_standby()).map(|probe| probe.backoff.next_ns);
                let standby = self.standby.as_ref().map(|standby| standby.backoff.next_ns);
                let drained = self.draining.as_ref().map(|draining| draining.until_ns);
                probe.into_iter().chain(standby).chain(drained).min()
            }
        }
    }

    pub fn is_standby(&self) -> bool {
        self.standby.as_ref().is_some_and(|standby| standby.is_standby)
    }

    /// Pidfd to poll for the end, unless the guardian reports it.
    pub fn awaited(&self) -> Option<&OwnedFd> {
        self.pidfd.as_ref().filter(|_| !self.is_guardians && self.ended.is_none())
    }

    pub fn runs_as(&mut self, process_id: u32, pidfd: Option<OwnedFd>, is_guardians: bool) {
        (self.process_id, self.pidfd, self.is_guardians) = (Some(process_id), pidfd, is_guardians);
    }

    /// Sends a signal, now or once the process runs.
    pub fn signal(&mut self, signal: StopSignal) {
        match &self.pidfd {
            Some(pidfd) => {
                // Fails if it has died meanwhile.
                let _ = pidfd_send_signal(pidfd, signal_of(signal));
                self.is_signalled = true;
            }
            None => self.wanted_signal = Some(signal),
        }
    }

    /// Ends a drain and sends the pending stop signal.
    pub fn signal_drained(&mut self) {
        if let Some(draining) = self.draining.take() {
            self.signal(draining.signal);
        }
    }

    /// Kills the process, now or once it runs, and its descendants.
    pub fn kill(&mut self) {
        self.signal(StopSignal::Kill);
        self.kill_descendants_at_ns = 0;
        self.kill_group();
    }

    /// Whether its control group has processes; removes an empty one.
    pub fn has_survivors(&self) -> bool {
        self.group.as_deref().is_some_and(has_survivors)
    }

    pub fn kill_group(&self) {
        self.group.iter().for_each(|group| control_groups::kill(group));
    }

    pub fn end(&mut self, end: InstanceEnd) {
        self.ended.get_or_insert(end);
        (self.probe, self.standby, self.draining) = (None, None, None);
        self.next_descendants_ns = 0;
    }
}

/// Whether an ended instance's control group has processes; removes an empty one.
pub fn has_survivors(group: &Path) -> bool {
    let is_populated = control_groups::is_populated(group);
    if !is_populated {
        control_groups::remove(group);
    }
    is_populated
}

pub fn pidfd_of(process_id: u32) -> Option<OwnedFd> {
    ProcessIdentity::of(process_id).ok().flatten()?.open().ok().flatten()
}

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
