//! [`SegmentPreparer`]: prepares segments ahead of the writer and cleans up behind it, on a helper thread.
//!
//! It looks whether the files are still there, allocates the next segment, makes pages present before the writer touches them, gives segments
//! their names, puts sealed ones on the device and deletes what retention lets go, or somebody has asked to be deleted. A journal works
//! without one, only that the writer then does at each roll what must be done.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::JournalError;
use crate::shared_journal::SharedJournal;

/// How long the loop of [`SegmentPreparer::run`] waits before it tries again on a full disk.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// How often the files are looked at. Retention by age and the sync of sealed segments need a look at the clock now and then,
/// too, also when nothing is written.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Prepares segments ahead of a journal's writer and cleans up behind it.
#[derive(Clone, Debug)]
pub struct SegmentPreparer {
    shared: Arc<SharedJournal>,
}

impl SegmentPreparer {
    pub(crate) fn new(shared: Arc<SharedJournal>) -> Self {
        Self { shared }
    }

    /// Takes one short step of the most urgent work. `false` when there is nothing to do. Looks at no file that is being
    /// written: see [`SegmentPreparer::check_files`].
    ///
    /// # Errors
    /// A full disk ([`JournalError::NoSpace`]) leaves the journal working until its writer needs the
    /// next segment; calling again tries again. A failed sync is fatal for the journal.
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

    /// As [`crate::Journal::set_snapshot_sequence`], from the thread that writes the snapshots.
    pub fn set_snapshot_sequence(&self, sequence: u64) {
        // Release: pairs with the acquire of retention.
        self.shared.snapshot_sequence.fetch_max(sequence, Ordering::Release);
        self.shared.wake.signal();
    }

    /// Has the segments deleted that are wholly before `sequence`, whatever retention says, and those of them that are archived there, too. Each goes
    /// when a snapshot covers it, and when its archive can be reached and nobody is archiving.
    pub fn delete_before(&self, sequence: u64) {
        // Release: pairs with the acquire of retention.
        self.shared.delete_before.fetch_max(sequence, Ordering::Release);
        self.shared.wake.signal();
    }

    /// Sleeps until the writer has passed a threshold, a snapshot was taken, or `timeout` is over.
    /// `false` when the journal has ended. A loop of one's own gives a timeout of some seconds, because
    /// retention by age and the sync of sealed segments fall due by time alone; see
    /// [`SegmentPreparer::run`].
    #[must_use]
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        self.shared.wake.wait(timeout)
    }

    /// Ends the wait of a thread in [`SegmentPreparer::wait`]. Dropping the journal does it too.
    pub fn end(&self) {
        self.shared.wake.end();
    }

    /// Looks whether the newest segment and the file `history` are still the files that the journal writes, whole.
    ///
    /// # Errors
    /// [`JournalError::FileLost`], from then on for every use of the journal.
    pub fn check_files(&self) -> Result<(), JournalError> {
        self.shared.check_files(&mut self.shared.maintenance())
    }

    /// Prepares and cleans up until the journal ends: the body of a helper thread. Once a second it looks whether the files are
    /// there ([`SegmentPreparer::check_files`]). Whatever else goes wrong it says in the log and tries again, because
    /// space may come back before the writer needs it.
    ///
    /// # Errors
    /// [`JournalError::FileLost`] and failed syncs, after which the journal's writer finds it refused, too.
    pub fn run(self) -> Result<(), JournalError> {
        self.run_with(|| ())
    }

    /// As [`SegmentPreparer::run`], and calls `on_check` after each look at the files.
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
