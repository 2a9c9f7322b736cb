//! [`FaultyDisk`]: the disk of a machine, when it is full or fails. A refused request was not done; a member that is
//! refused has to stop and say so, and never asks once more for a sync that has failed.

use gapless_journal::{Disk, DiskWork};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct FaultyDisk {
    state: Mutex<DiskState>,
}

#[derive(Debug, Default)]
struct DiskState {
    is_full: bool,
    /// So many syncs from now one fails; 0 for none. The same for writes.
    syncs_left: u64,
    writes_left: u64,
    /// The errors that this life of its member received, each once.
    refused: Vec<&'static str>,
    has_failed_sync: bool,
    was_retried: bool,
}

/// The error of a full disk.
const FULL: &str = "No space left on device";
/// The error of a disk that fails.
const FAILED: &str = "Input/output error";

impl FaultyDisk {
    fn lock(&self) -> MutexGuard<'_, DiskState> {
        // A member that is killed unwinds, but never with the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is no room any more, or some again.
    pub(crate) fn set_full(&self, is_full: bool) {
        self.lock().is_full = is_full;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lock().is_full
    }

    /// One of the next syncs and writes fails, which of them say the numbers.
    pub(crate) fn fail(&self, syncs: u64, writes: u64) {
        let mut state = self.lock();
        (state.syncs_left, state.writes_left) = (syncs, writes);
    }

    /// Ends the faults; the errors that a member received so far still count.
    pub(crate) fn heal(&self) {
        let mut state = self.lock();
        (state.is_full, state.syncs_left, state.writes_left) = (false, 0, 0);
    }

    /// A new process asks.
    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        (state.has_failed_sync, state.was_retried) = (false, false);
        state.refused.clear();
    }

    /// Whether the error that the member `said` is one that it received in this life. A disk error that it survives is
    /// no reason to stop, and it may receive more afterwards.
    pub(crate) fn has_told(&self, said: &str) -> bool {
        self.lock().refused.iter().any(|refusal| said.contains(refusal))
    }

    /// Whether that was for want of room.
    pub(crate) fn is_of_fullness(said: &str) -> bool {
        said.contains(FULL)
    }

    /// Whether the member has asked for a sync after one that had failed.
    pub(crate) fn was_retried(&self) -> bool {
        self.lock().was_retried
    }
}

/// Whether this one, of those that are counted down, fails.
const fn is_due(left: &mut u64) -> bool {
    let is_due = *left == 1;
    *left = left.saturating_sub(1);
    is_due
}

impl Disk for FaultyDisk {
    fn ask(&self, work: DiskWork) -> io::Result<()> {
        let mut state = self.lock();
        let errno = match work {
            DiskWork::Allocate if state.is_full => rustix::io::Errno::NOSPC,
            DiskWork::Write if is_due(&mut state.writes_left) => rustix::io::Errno::IO,
            DiskWork::Sync => {
                state.was_retried |= state.has_failed_sync;
                if !is_due(&mut state.syncs_left) {
                    return Ok(());
                }
                state.has_failed_sync = true;
                rustix::io::Errno::IO
            }
            DiskWork::Allocate | DiskWork::Write => return Ok(()),
        };
        let said = if errno == rustix::io::Errno::NOSPC { FULL } else { FAILED };
        if !state.refused.contains(&said) {
            state.refused.push(said);
        }
        Err(errno.into())
    }
}
