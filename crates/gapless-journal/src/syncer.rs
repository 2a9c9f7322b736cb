//! The syncer: syncs journaled frames, for tier `sync`, on a helper thread. A failed sync is fatal forever (decision
//! 7): the kernel may have dropped the data, and would report success the next time.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gapless_agent::fault;

use crate::descriptor::{FAILED_MARK_OFFSET, JOURNALED_MARK_OFFSET, SEALED_BIT, SYNCED_MARK_OFFSET};
use crate::disk::DiskOperation;
use crate::error::JournalError;
use crate::options::Flush;
use crate::segment::Segment;
use crate::shared_journal::SharedJournal;

/// Syncs a journal. Several may exist; they take turns.
#[derive(Clone, Debug)]
pub struct Syncer {
    shared: Arc<SharedJournal>,
}

impl Syncer {
    pub(crate) fn new(shared: Arc<SharedJournal>) -> Self {
        Self { shared }
    }

    /// Syncs everything committed before this call, consensus records included; returns the last synced sequence.
    /// Blocks, unless everything is on the device already. The synced mark is written afterwards, so it reaches the
    /// device with the next sync.
    ///
    /// # Errors
    /// [`JournalError::SyncFailed`] once, [`JournalError::Poisoned`] from then on.
    pub fn sync(&self) -> Result<u64, JournalError> {
        let shared = &self.shared;
        loop {
            shared.check_poison()?;
            // After a power failure a segment is found only by its final name.
            if !shared.segment_list().unnamed.is_empty() {
                shared.give_final_names(&mut shared.maintenance())?;
            }
            let _syncing = shared.syncing();
            let (target, records, active, rolled) = {
                let list = shared.segment_list();
                if !list.unnamed.is_empty() {
                    continue;
                }
                // Acquire: pairs with the release of `move_mark`. Under the lock that a roll takes, so everything up to
                // here is in the listed segments.
                let target = shared.journaled_sequence.0.load(Ordering::Acquire);
                // Pairs with the release of the writer's `count_records`.
                let records = shared.journaled_records.load(Ordering::Acquire);
                (target, records, list.active.clone(), list.rolled.clone())
            };
            // Relaxed: ordered by the mutex of `syncing`.
            let has_records = records != shared.synced_records.load(Ordering::Relaxed);
            if target <= self.synced_sequence() && !has_records {
                return Ok(self.synced_sequence());
            }
            // Read before the sync, which covers at least this much.
            let written = active.mark(JOURNALED_MARK_OFFSET).filter(|_| has_records);
            let synced_position = written.map_or(0, |mark| mark.first & !SEALED_BIT);
            fault::crash_point("before_sync");
            for rolled in &rolled {
                shared.sync_file(&rolled.file, || shared.segment_path(rolled.first_sequence))?;
            }
            shared.sync_written(&active)?;
            fault::crash_point("after_sync");
            // Meanwhile retention may have removed some, and a roll may have added others.
            let is_synced = |file: &Arc<File>| rolled.iter().any(|synced| Arc::ptr_eq(&synced.file, file));
            shared.segment_list().rolled.retain(|each| !is_synced(&each.file));
            shared.move_synced(&active, target, synced_position)?;
            // Relaxed: as above.
            shared.synced_records.store(records, Ordering::Relaxed);
            return Ok(self.synced_sequence());
        }
    }

    /// Syncs like [`Syncer::sync`], and checks that the journal's files still exist: for a caller that then writes a
    /// state or a snapshot above the journal.
    ///
    /// # Errors
    /// As [`Syncer::sync`]; [`JournalError::FileLost`].
    pub fn sync_and_check(&self) -> Result<u64, JournalError> {
        let synced = self.sync()?;
        self.shared.check_files(&mut self.shared.maintenance())?;
        Ok(synced)
    }

    /// The last step of an orderly end.
    ///
    /// # Errors
    /// As [`Syncer::sync`].
    pub fn sync_marks(&self) -> Result<(), JournalError> {
        self.shared.check_poison()?;
        let _syncing = self.shared.syncing();
        let active = self.shared.segment_list().active.clone();
        self.shared.sync_file(&active.file, || active.path())
    }

    /// Asks the journal's disk for permission, for a file next to the journal.
    ///
    /// # Errors
    /// Error to return instead of doing the work.
    pub fn check_disk(&self, operation: DiskOperation) -> io::Result<()> {
        self.shared.options.environment.check_disk(operation)
    }

    #[must_use]
    pub fn synced_sequence(&self) -> u64 {
        // Acquire: pairs with the release of `move_synced`.
        self.shared.synced_sequence.0.load(Ordering::Acquire)
    }

    #[must_use]
    pub fn journaled_sequence(&self) -> u64 {
        // Acquire: pairs with the release of `move_mark`.
        self.shared.journaled_sequence.0.load(Ordering::Acquire)
    }

    #[cfg(any(test, debug_assertions))]
    pub fn fail_next_sync(&self) {
        self.shared.fails_next_sync.store(true, Ordering::SeqCst);
    }
}

impl SharedJournal {
    /// The caller holds `syncing`.
    pub(crate) fn sync_file(&self, file: &File, path: impl Fn() -> PathBuf) -> Result<(), JournalError> {
        self.sync_by(|| file.sync_data(), path)
    }

    /// Header page, index and frames up to the journaled mark; not the pages made present ahead of the writer, because
    /// a sync would write-protect them again. The caller holds `syncing`.
    pub(crate) fn sync_written(&self, active: &Segment) -> Result<(), JournalError> {
        let path = || active.path();
        match (self.options.flush, active.mark(JOURNALED_MARK_OFFSET)) {
            (Flush::Mapped, Some(mark)) => {
                let end = (mark.first & !SEALED_BIT) as usize;
                self.sync_by(|| active.mapping.sync(0..end), path)
            }
            // Without the mark the end of the frames is unknown, so sync everything.
            (Flush::Mapped, None) | (Flush::Write, _) => self.sync_file(&active.file, path),
        }
    }

    fn sync_by(&self, sync: impl FnOnce() -> io::Result<()>, path: impl Fn() -> PathBuf) -> Result<(), JournalError> {
        #[cfg(any(test, debug_assertions))]
        if self.fails_next_sync.swap(false, Ordering::SeqCst) {
            return Err(self.sync_failed(path(), io::Error::other("injected for a test")));
        }
        let synced = self.options.environment.check_disk(DiskOperation::Sync).and_then(|()| sync());
        synced.map_err(|error| self.sync_failed(path(), error))
    }

    /// Forward only. `position` is not 0 if records were synced, with everything before it in `active`. The caller
    /// holds `syncing`.
    pub(crate) fn move_synced(&self, active: &Segment, sequence: u64, position: u64) -> Result<(), JournalError> {
        // Relaxed: ordered by the mutex of `syncing`.
        let synced_sequence = self.synced_sequence.0.load(Ordering::Relaxed);
        if sequence > synced_sequence || position != 0 {
            let sequence = sequence.max(synced_sequence);
            let mut writer = active.mark_writer(SYNCED_MARK_OFFSET);
            active.move_mark(&mut writer, SYNCED_MARK_OFFSET, (sequence, position), self.options.marks).map_err(
                |error| {
                    let error = JournalError::io("write", active.path(), error);
                    self.poison(&error);
                    error
                },
            )?;
            // Pairs with the acquire of `synced_sequence`; the sync is done before it.
            self.synced_sequence.0.store(sequence, Ordering::Release);
        }
        Ok(())
    }

    /// Notes for this process, and for the next one on this boot, that a sync has failed.
    pub(crate) fn sync_failed(&self, segment: PathBuf, source: io::Error) -> JournalError {
        let active = self.segment_list().active.clone();
        active.write_mark(FAILED_MARK_OFFSET, 1, 0);
        let error = JournalError::SyncFailed { segment, source };
        self.poison(&error);
        error
    }
}

#[cfg(test)]
mod tests {
    use crate::test_frames::frames;
    use crate::{Flush, Journal, JournalError, JournalOptions};

    fn options(directory: &std::path::Path, flush: Flush) -> JournalOptions {
        let mut options = JournalOptions::new(directory, 1);
        options.segment_length_bytes = 64 * 1024;
        options.frame_length_max = 2048;
        (options.flush, options.marks) = (flush, flush);
        options
    }

    fn append(journal: &mut Journal, count: u64) {
        let first = journal.last_sequence() + 1;
        journal.append(&frames(first, count, 100), first, first + count - 1).unwrap();
        journal.commit().unwrap();
    }

    #[test]
    fn failed_sync_poisons_journal() {
        for flush in [Flush::Mapped, Flush::Write] {
            let directory = tempfile::tempdir().unwrap();
            let (mut journal, _) = Journal::open(options(directory.path(), flush)).unwrap();
            let syncer = journal.syncer();
            append(&mut journal, 10);
            assert_eq!(syncer.sync().unwrap(), 10);
            append(&mut journal, 700);
            syncer.fail_next_sync();
            assert!(matches!(syncer.sync(), Err(JournalError::SyncFailed { .. })));
            assert!(matches!(syncer.sync(), Err(JournalError::Poisoned { .. })));
            assert_eq!(syncer.synced_sequence(), 10);
            let refused = journal.append(&frames(711, 1, 100), 711, 711).unwrap_err();
            assert!(matches!(refused, JournalError::Poisoned { .. }) && refused.to_string().contains("syncing"));
            assert!(matches!(journal.commit(), Err(JournalError::Poisoned { .. })));
            assert!(matches!(journal.preparer().run_once(), Err(JournalError::Poisoned { .. })));
            assert!(matches!(journal.truncate_after(500), Err(JournalError::Poisoned { .. })));
            drop((journal, syncer));

            let (mut journal, report) = Journal::open(options(directory.path(), flush)).unwrap();
            assert!(report.is_rewritten);
            assert_eq!((report.last_sequence, journal.synced_sequence()), (710, 710));
            append(&mut journal, 1);
            assert_eq!(journal.syncer().sync().unwrap(), 711);
            drop(journal);
            let (_journal, report) = Journal::open(options(directory.path(), flush)).unwrap();
            assert!(!report.is_rewritten);
        }
    }

    #[test]
    fn rolled_segments_sync_once() {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(options(directory.path(), Flush::Mapped)).unwrap();
        let syncer = journal.syncer();
        assert_eq!(syncer.sync().unwrap(), 0);
        append(&mut journal, 2000);
        assert!(journal.shared.segment_list().rolled.len() > 3);
        assert_eq!(syncer.sync().unwrap(), 2000);
        assert!(journal.shared.segment_list().rolled.is_empty());
        syncer.fail_next_sync();
        assert_eq!(syncer.sync().unwrap(), 2000, "without work no sync is issued, so none fails");
        append(&mut journal, 1);
        assert!(syncer.sync().is_err());
    }

    #[test]
    fn uncommitted_is_not_synced() {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(options(directory.path(), Flush::Mapped)).unwrap();
        append(&mut journal, 5);
        journal.append(&frames(6, 5, 100), 6, 10).unwrap();
        assert_eq!(journal.syncer().sync().unwrap(), 5);
    }

    #[test]
    fn appends_run_during_syncs() {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(options(directory.path(), Flush::Mapped)).unwrap();
        let (syncer, preparer) = (journal.syncer(), journal.preparer());
        let helpers = [
            std::thread::spawn(move || preparer.run().map(|()| 0)),
            std::thread::spawn(move || {
                let mut last = 0;
                while last < 5000 {
                    let synced = syncer.sync()?;
                    assert!(synced >= last);
                    last = synced;
                    std::thread::yield_now();
                }
                Ok(last)
            }),
        ];
        for _ in 0..500 {
            append(&mut journal, 10);
            assert!(journal.synced_sequence() <= journal.journaled_sequence());
        }
        let [preparer, syncer] = helpers;
        assert_eq!(syncer.join().unwrap().unwrap(), 5000);
        drop(journal);
        preparer.join().unwrap().unwrap();
    }
}
