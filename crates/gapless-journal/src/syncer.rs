//! The syncer: puts what is journaled on the device, for tier `sync`.
//!
//! For a helper thread, because fdatasync blocks. A failed sync is fatal for ever (decision D7): the
//! kernel may have dropped the data and would report success the next time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gapless_agent::fault;

use crate::descriptor::{FAILED_MARK_OFFSET, SYNCED_MARK_OFFSET};
use crate::error::JournalError;
use crate::segment::Segment;
use crate::shared::Shared;

/// Syncs a journal. Several may exist; they take turns.
#[derive(Clone, Debug)]
pub struct Syncer {
    shared: Arc<Shared>,
}

impl Syncer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Puts everything that was committed before this call on the device, the rest of segments that
    /// were rolled since included, and returns the last synced sequence. Blocks. Does nothing if
    /// everything is there already.
    ///
    /// The synced mark is written afterwards, so it reaches the device with the next sync.
    ///
    /// # Errors
    /// [`JournalError::SyncFailed`] once, [`JournalError::Poisoned`] from then on.
    pub fn sync(&self) -> Result<u64, JournalError> {
        let shared = &self.shared;
        loop {
            shared.check_poison()?;
            // A segment is found again after a power failure by its final name.
            if !shared.state().unsettled.is_empty() {
                shared.settle(&mut shared.works())?;
            }
            let _syncing = shared.syncing();
            let (target, active, rolled) = {
                let state = shared.state();
                if !state.unsettled.is_empty() {
                    continue;
                }
                // Acquire: pairs with the release of `move_mark`. Under the lock that a roll takes,
                // so everything up to here is in the segments that are listed here.
                let target = shared.journaled_sequence.0.load(Ordering::Acquire);
                (target, state.active.clone(), state.rolled.clone())
            };
            if target <= self.synced_sequence() {
                return Ok(self.synced_sequence());
            }
            fault::crash_point("before_sync");
            for rolled in &rolled {
                shared.sync_segment(&rolled.segment)?;
            }
            shared.sync_segment(&active)?;
            fault::crash_point("after_sync");
            shared.state().rolled.drain(..rolled.len());
            shared.move_synced(&active, target);
            return Ok(target);
        }
    }

    /// Puts the marks themselves on the device: the last step of an orderly end.
    ///
    /// # Errors
    /// As [`Syncer::sync`].
    pub fn sync_marks(&self) -> Result<(), JournalError> {
        self.shared.check_poison()?;
        let _syncing = self.shared.syncing();
        let active = self.shared.state().active.clone();
        self.shared.sync_segment(&active)
    }

    /// The last sequence on the device.
    #[must_use]
    pub fn synced_sequence(&self) -> u64 {
        // Acquire: pairs with the release of `move_synced`.
        self.shared.synced_sequence.0.load(Ordering::Acquire)
    }

    /// The last sequence in the operating system's hands.
    #[must_use]
    pub fn journaled_sequence(&self) -> u64 {
        // Acquire: pairs with the release of `move_mark`.
        self.shared.journaled_sequence.0.load(Ordering::Acquire)
    }

    /// Makes the next sync fail as a broken device would; for tests of what must follow.
    #[cfg(any(test, feature = "fault-injection"))]
    pub fn fail_next_sync(&self) {
        self.shared.fails_next_sync.store(true, Ordering::SeqCst);
    }
}

impl Shared {
    /// Puts a segment's data on the device. The caller holds `syncing`.
    pub(crate) fn sync_segment(&self, segment: &Segment) -> Result<(), JournalError> {
        #[cfg(any(test, feature = "fault-injection"))]
        if self.fails_next_sync.swap(false, Ordering::SeqCst) {
            return Err(self.sync_failed(segment, io::Error::other("injected for a test")));
        }
        segment.file.sync_data().map_err(|error| self.sync_failed(segment, error))
    }

    /// Moves the synced mark, never back. The caller holds `syncing`.
    pub(crate) fn move_synced(&self, active: &Segment, sequence: u64) {
        // Relaxed: only holders of `syncing` write it, and its mutex orders them.
        if sequence > self.synced_sequence.0.load(Ordering::Relaxed) {
            active.write_mark(SYNCED_MARK_OFFSET, sequence, 0);
            // Release: pairs with the acquire of `synced_sequence`; the sync is done before it.
            self.synced_sequence.0.store(sequence, Ordering::Release);
        }
    }

    /// Notes for this process, and for the next on this boot, that a sync has failed.
    pub(crate) fn sync_failed(&self, segment: &Segment, source: io::Error) -> JournalError {
        segment.write_mark(FAILED_MARK_OFFSET, 1, 0);
        let error = JournalError::SyncFailed { segment: segment.path(), source };
        self.poison(&error);
        error
    }
}
