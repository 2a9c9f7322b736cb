//! [`SegmentPreparer`]: prepares segments ahead of the writer and cleans up old ones, on a helper thread.
//!
//! It checks that the files still exist, allocates the next segment, makes pages present before the writer touches
//! them, names segments, syncs sealed ones, and deletes segments by retention or on request. A journal works without
//! one; then the writer does the necessary work at each roll.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::JournalError;
use crate::shared_journal::SharedJournal;

/// Pause of [`SegmentPreparer::run`] between two attempts on a full disk.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// Interval of the file checks. Retention by age and the sync of sealed segments also need a look at the clock while
/// the journal is idle.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Prepares segments ahead of a journal's writer and cleans up old ones.
#[derive(Clone, Debug)]
pub struct SegmentPreparer {
    shared: Arc<SharedJournal>,
}

impl SegmentPreparer {
    pub(crate) fn new(shared: Arc<SharedJournal>) -> Self {
        Self { shared }
    }

    /// Takes one short step of the most urgent work. Returns `false` without work. Does not check the files: see
    /// [`SegmentPreparer::check_files`].
    ///
    /// # Errors
    /// A full disk ([`JournalError::NoSpace`]): the journal works until its writer needs the next segment; call again
    /// to retry. A failed sync is fatal for the journal.
    pub fn run_once(&mut self) -> Result<bool, JournalError> {
        let shared = &self.shared;
        shared.check_poison()?;
        let mut maintenance = shared.maintenance();
        if shared.populate_step(&mut maintenance)? || shared.give_final_names(&mut maintenance)? {
            return Ok(true);
        }
        if shared.retire_step(&mut maintenance) || shared.unmap_step(&mut maintenance) {
            return Ok(true);
        }
        if maintenance.preparation.is_some() || shared.wants_preparation() {
            shared.prepare_step(&mut maintenance)?;
            return Ok(true);
        }
        Ok(shared.sync_sealed_step(&mut maintenance)?
            || shared.delete_step(&mut maintenance)?
            || shared.retain_step(&mut maintenance)?)
    }

    /// Like [`crate::Journal::set_snapshot_sequence`], from the thread that writes the snapshots.
    pub fn set_snapshot_sequence(&self, sequence: u64) {
        // Release: pairs with the acquire of retention.
        self.shared.snapshot_sequence.fetch_max(sequence, Ordering::Release);
        self.shared.wake.signal();
    }

    /// Requests deletion of the segments wholly before `sequence`, independently of retention, and of their archived
    /// copies. Each is deleted once a snapshot covers it, its archive is reachable, and no archiving runs.
    pub fn delete_before(&self, sequence: u64) {
        // Release: pairs with the acquire of retention.
        self.shared.delete_before.fetch_max(sequence, Ordering::Release);
        self.shared.wake.signal();
    }

    /// Sleeps until the writer passes a threshold, a snapshot is taken, or `timeout` has passed. Returns `false` after
    /// the journal's end. A loop should use a timeout of some seconds, because retention by age and the sync of sealed
    /// segments depend on time alone; see [`SegmentPreparer::run`].
    #[must_use]
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        self.shared.wake.wait(timeout)
    }

    /// Ends [`SegmentPreparer::wait`] in other threads, like dropping the journal.
    pub fn end(&self) {
        self.shared.wake.end();
    }

    /// Checks that the newest segment and the history are still the intact files that the journal writes.
    ///
    /// # Errors
    /// [`JournalError::FileLost`]; from then on every use of the journal returns it.
    pub fn check_files(&self) -> Result<(), JournalError> {
        self.shared.check_files(&mut self.shared.maintenance())
    }

    /// Prepares and cleans up until the journal ends: the body of a helper thread. Checks the files once a second
    /// ([`SegmentPreparer::check_files`]). Logs other errors and retries, because space may become free before the
    /// writer needs it.
    ///
    /// # Errors
    /// [`JournalError::FileLost`] and failed syncs, after which the writer is refused too.
    pub fn run(self) -> Result<(), JournalError> {
        self.run_with(|| ())
    }

    /// Runs like [`SegmentPreparer::run`], and calls `on_check` after each check of the files.
    ///
    /// # Errors
    /// As [`SegmentPreparer::run`].
    pub fn run_with(mut self, mut on_check: impl FnMut()) -> Result<(), JournalError> {
        let mut is_refused = false;
        let mut checked = Instant::now();
        loop {
            let is_due = checked.elapsed() >= FILE_CHECK_INTERVAL;
            let looked = if is_due { self.check_files() } else { Ok(()) };
            if is_due {
                checked = Instant::now();
                looked.iter().for_each(|()| on_check());
            }
            let limit = match looked.and_then(|()| self.run_once()) {
                Ok(true) if !self.shared.wake.is_ended() => continue,
                Ok(_) => {
                    is_refused = false;
                    FILE_CHECK_INTERVAL.saturating_sub(checked.elapsed())
                }
                Err(JournalError::Poisoned { .. }) => return Ok(()),
                Err(error) if self.shared.check_poison().is_err() => return Err(error),
                Err(error) => {
                    if !is_refused {
                        tracing::warn!(%error, "the journal's files cannot be looked after now, and are tried again");
                    }
                    is_refused = true;
                    RETRY_INTERVAL
                }
            };
            if !self.wait(Some(limit)) {
                return Ok(());
            }
        }
    }
}
