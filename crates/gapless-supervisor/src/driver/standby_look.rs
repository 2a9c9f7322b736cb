//! [`StandbyLook`]: polls whether an instance of a singleton is a standby. Failover does not depend on it: the kernel
//! hands the lock on.

use super::growing_pause::GrowingPause;
use super::readiness::{has_become_itself, seen};
use crate::copy_name::CopyName;
use crate::launch::STANDBY_NAME;
use std::io;

/// Longest interval between polls of a standby, ns.
const PAUSE_MAX_NS: u64 = 500_000_000;

#[derive(Debug)]
pub struct StandbyLook {
    pub pause: GrowingPause,
    pub is_standby: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Became a standby.
    Standby,
    /// Became active.
    Active,
    /// Runs its own program; polling is over.
    Itself {
        /// Was a standby before.
        was_standby: bool,
    },
}

impl StandbyLook {
    pub const fn new(now_ns: u64, is_standby: bool) -> Self {
        Self { pause: GrowingPause::new(now_ns, PAUSE_MAX_NS), is_standby }
    }

    /// Polls at once, because another instance has ended and this one may become active.
    pub const fn hurry(&mut self, now_ns: u64) {
        self.pause.begin_anew(now_ns);
    }

    /// Polls, if it is time, and returns a change.
    pub fn look(&mut self, now_ns: u64, copy: &CopyName, process_id: u32) -> io::Result<Option<Seen>> {
        if !self.pause.is_over(now_ns) {
            return Ok(None);
        }
        if has_become_itself(copy, process_id)? {
            return Ok(Some(Seen::Itself { was_standby: self.is_standby }));
        }
        let Some(name) = seen(std::fs::read(format!("/proc/{process_id}/comm")))? else { return Ok(None) };
        let is_standby = name.strip_suffix(b"\n") == Some(STANDBY_NAME.to_bytes());
        let was_standby = std::mem::replace(&mut self.is_standby, is_standby);
        Ok(match (was_standby, is_standby) {
            (false, true) => Some(Seen::Standby),
            (true, false) => Some(Seen::Active),
            _ => None,
        })
    }
}
