//! [`FaultyDisk`]: a machine's disk while it is full or fails. Refused requests are not done. The member must stop with
//! the error, and never retry a failed sync.

use gapless_journal::{Disk, DiskOperation};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct FaultyDisk {
    state: Mutex<DiskState>,
}

#[derive(Debug, Default)]
struct DiskState {
    is_full: bool,
    /// Syncs until the next failure; 0 for never.
    syncs_left: u64,
    writes_left: u64,
    /// Errors since the member's last start, each once.
    refused: Vec<&'static str>,
    has_failed_sync: bool,
    was_retried: bool,
}

const FULL: &str = "No space left on device";
const FAILED: &str = "Input/output error";

impl FaultyDisk {
    fn lock(&self) -> MutexGuard<'_, DiskState> {
        // A killed member unwinds, but never while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_full(&self, is_full: bool) {
        self.lock().is_full = is_full;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lock().is_full
    }

    /// The numbers select the failing sync and write.
    pub(crate) fn fail(&self, syncs: u64, writes: u64) {
        let mut state = self.lock();
        (state.syncs_left, state.writes_left) = (syncs, writes);
    }

    pub(crate) fn heal(&self) {
        let mut state = self.lock();
        (state.is_full, state.syncs_left, state.writes_left) = (false, 0, 0);
    }

    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        (state.has_failed_sync, state.was_retried) = (false, false);
        state.refused.clear();
    }

    /// `said` names an error of this disk since the last start. A member may survive one disk error and receive more.
    pub(crate) fn has_reported(&self, said: &str) -> bool {
        self.lock().refused.iter().any(|refusal| said.contains(refusal))
    }

    pub(crate) fn is_full_disk_error(said: &str) -> bool {
        said.contains(FULL)
    }

    pub(crate) fn was_retried(&self) -> bool {
        self.lock().was_retried
    }
}

const fn is_due(left: &mut u64) -> bool {
    let is_due = *left == 1;
    *left = left.saturating_sub(1);
    is_due
}

impl Disk for FaultyDisk {
    fn check(&self, operation: DiskOperation) -> io::Result<()> {
        let mut state = self.lock();
        let errno = match operation {
            DiskOperation::Allocate if state.is_full => rustix::io::Errno::NOSPC,
            DiskOperation::Write if is_due(&mut state.writes_left) => rustix::io::Errno::IO,
            DiskOperation::Sync => {
                state.was_retried |= state.has_failed_sync;
                if !is_due(&mut state.syncs_left) {
                    return Ok(());
                }
                state.has_failed_sync = true;
                rustix::io::Errno::IO
            }
            DiskOperation::Allocate | DiskOperation::Write => return Ok(()),
        };
        let said = if errno == rustix::io::Errno::NOSPC { FULL } else { FAILED };
        if !state.refused.contains(&said) {
            state.refused.push(said);
        }
        Err(errno.into())
    }
}
