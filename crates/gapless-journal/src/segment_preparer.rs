//! [`SegmentPreparer`]: prepares, names, checks, syncs and deletes segments on a helper thread. A journal works without
//! one; then the writer does the necessary work at each roll.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::JournalError;
use crate::shared_journal::SharedJournal;

const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// Retention by age and the sync of sealed segments also need the clock while the journal is idle.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct SegmentPreparer {
    shared: Arc<SharedJournal>,
}

impl SegmentPreparer {
    pub(crate) fn new(shared: Arc<SharedJournal>) -> Self {
        Self { shared }
    }

    /// Takes one short step of the most urgent work; `false` without work. Does not check the files: see
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

    pub fn set_snapshot_sequence(&self, sequence: u64) {
        // Pairs with the acquire of retention.
        self.shared.snapshot_sequence.fetch_max(sequence, Ordering::Release);
        self.shared.wake.signal();
    }

    /// Requests deletion of the segments wholly before `sequence` and of their archived copies: each once a snapshot
    /// covers it, its archive is reachable, and no archiving runs.
    pub fn delete_before(&self, sequence: u64) {
        // Pairs with the acquire of retention.
        self.shared.delete_before.fetch_max(sequence, Ordering::Release);
        self.shared.wake.signal();
    }

    /// Sleeps until there may be work, or for `timeout`; `false` after the journal's end. Use a timeout of some
    /// seconds: retention by age and the sync of sealed segments depend on time alone.
    #[must_use]
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        self.shared.wake.wait(timeout)
    }

    /// Ends [`SegmentPreparer::wait`] in other threads.
    pub fn end(&self) {
        self.shared.wake.end();
    }

    /// The newest segment and the history must still be the intact files that the journal writes.
    ///
    /// # Errors
    /// [`JournalError::FileLost`]; from then on every use of the journal returns it.
    pub fn check_files(&self) -> Result<(), JournalError> {
        self.shared.check_files(&mut self.shared.maintenance())
    }

    /// Body of a helper thread, until the journal ends. Checks the files once a second. Logs other errors and retries,
    /// because space may become free before the writer needs it.
    ///
    /// # Errors
    /// [`JournalError::FileLost`] and failed syncs, after which the writer is refused too.
    pub fn run(self) -> Result<(), JournalError> {
        self.run_with(|| ())
    }

    /// Like [`SegmentPreparer::run`], with `on_check` after each check of the files.
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
