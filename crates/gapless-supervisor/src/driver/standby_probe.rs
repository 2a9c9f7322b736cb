//! Failover does not depend on these polls: the kernel hands the lock on.

use super::poll_backoff::PollBackoff;
use super::readiness::{has_called_exec, unless_shortage};
use crate::instance_name::InstanceName;
use crate::launch::STANDBY_NAME;
use std::io;

const PAUSE_MAX_NS: u64 = 500_000_000;

#[derive(Debug)]
pub struct StandbyProbe {
    pub backoff: PollBackoff,
    pub is_standby: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandbyChange {
    Standby,
    Active,
    RunsProgram { was_standby: bool },
}

impl StandbyProbe {
    pub const fn new(now_ns: u64, is_standby: bool) -> Self {
        Self { backoff: PollBackoff::new(now_ns, PAUSE_MAX_NS), is_standby }
    }

    /// Polls at once: another instance has ended and this one may become active.
    pub const fn poll_soon(&mut self, now_ns: u64) {
        self.backoff.reset(now_ns);
    }

    /// Polls, if it is time, and returns a change.
    pub fn poll(&mut self, now_ns: u64, instance: &InstanceName, process_id: u32) -> io::Result<Option<StandbyChange>> {
        if !self.backoff.is_due(now_ns) {
            return Ok(None);
        }
        if has_called_exec(instance, process_id)? {
            return Ok(Some(StandbyChange::RunsProgram { was_standby: self.is_standby }));
        }
        let Some(name) = unless_shortage(std::fs::read(format!("/proc/{process_id}/comm")))? else { return Ok(None) };
        let is_standby = name.strip_suffix(b"\n") == Some(STANDBY_NAME.to_bytes());
        let was_standby = std::mem::replace(&mut self.is_standby, is_standby);
        Ok(match (was_standby, is_standby) {
            (false, true) => Some(StandbyChange::Standby),
            (true, false) => Some(StandbyChange::Active),
            _ => None,
        })
    }
}
