//! A node's journal as its snapshots need it: synced below them, and cleaned up behind them.

use crate::EngineError;
use crate::snapshot_schedule::SnapshotJournal;
use gapless_journal::{Journal, Preparer, Syncer};

/// The journal as snapshots need it.
pub(crate) struct JournalBelow {
    syncer: Syncer,
    preparer: Preparer,
}

impl JournalBelow {
    /// Of `journal`, whose newest snapshot stands at `snapshot_sequence`, 0 without one.
    pub fn new(journal: &Journal, snapshot_sequence: u64) -> Self {
        if snapshot_sequence > 0 {
            journal.set_snapshot_sequence(snapshot_sequence);
        }
        Self { syncer: journal.syncer(), preparer: journal.preparer() }
    }
}

impl SnapshotJournal for JournalBelow {
    fn sync(&mut self) -> Result<(), EngineError> {
        self.syncer.sync()?;
        Ok(())
    }

    fn covered(&mut self, sequence: u64) {
        self.preparer.set_snapshot_sequence(sequence);
    }
}
