//! [`StandbyLook`]: whether a copy of a singleton stands by. That another has ended is no reason to ask: the kernel hands the
//! lock on, and here it is only seen.

use super::growing_pause::GrowingPause;
use super::readiness::{has_become_itself, seen};
use crate::copy_name::CopyName;
use crate::launch::STANDBY_NAME;
use std::io;

/// Between two looks at one that stands by, ns.
const PAUSE_MAX_NS: u64 = 500_000_000;

/// Whether a copy of a singleton stands by, looked at from time to time.
#[derive(Debug)]
pub struct StandbyLook {
    /// When it wants to look.
    pub pause: GrowingPause,
    /// It was seen to stand by.
    pub is_standby: bool,
}

/// What a look has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It stands by now.
    Standby,
    /// It stands by no more.
    Active,
    /// It is its own program: there is nothing more to be seen.
    Itself {
        /// It was seen to stand by.
        was_standby: bool,
    },
}

impl StandbyLook {
    /// Of one that stood by when it was last looked at, or did not.
    pub const fn new(now_ns: u64, is_standby: bool) -> Self {
        Self { pause: GrowingPause::new(now_ns, PAUSE_MAX_NS), is_standby }
    }

    /// Another copy has ended: this one may be active soon.
    pub const fn hurry(&mut self, now_ns: u64) {
        self.pause.begin_anew(now_ns);
    }

    /// Looks, if it is time: what has changed.
    ///
    /// # Errors
    /// As [`Probe::look`](super::readiness::Probe::look).
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
