//! `HostJournal`: syncs a service host's journal before a snapshot, and deletes segments after one.

use crate::EngineError;
use crate::snapshot_schedule::SnapshotJournal;
use gapless_journal::{SegmentPreparer, Syncer};

pub(crate) struct HostJournal {
    syncer: Syncer,
    preparer: SegmentPreparer,
}

impl HostJournal {
    /// `snapshot_sequence`: newest snapshot; 0 without one.
    pub fn new(syncer: Syncer, preparer: SegmentPreparer, snapshot_sequence: u64) -> Self {
        if snapshot_sequence > 0 {
            preparer.set_snapshot_sequence(snapshot_sequence);
        }
        Self { syncer, preparer }
    }
}

impl SnapshotJournal for HostJournal {
    fn sync(&mut self) -> Result<(), EngineError> {
        self.syncer.sync_and_check()?;
        Ok(())
    }

    fn snapshot_written(&mut self, sequence: u64) {
        self.preparer.set_snapshot_sequence(sequence);
    }
}
