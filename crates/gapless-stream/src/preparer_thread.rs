//! `PreparerThread`: the thread that prepares segments before the journal's writer needs them.

use crate::StreamError;
use gapless_agent::Counter;
use gapless_agent::thread::spawn_helper;
use gapless_journal::SegmentPreparer;
use std::thread::JoinHandle;

/// Prepares segments before the journal's writer needs them, on a thread (ended by dropping it) or polled by the owner.
pub struct PreparerThread {
    preparer: SegmentPreparer,
    thread: Option<JoinHandle<()>>,
}

impl PreparerThread {
    /// Starts the thread; `file_checks` counts successful checks of the journal's files.
    ///
    /// # Errors
    /// [`StreamError::System`] if no thread can be started.
    pub fn start(preparer: SegmentPreparer, file_checks: Counter) -> Result<Self, StreamError> {
        let for_thread = preparer.clone();
        let run = move || {
            // The counter lives in a mapped file: an idle process notices a truncation by this write.
            if let Err(error) = for_thread.run_with(|| file_checks.add(1)) {
                // The journal's writer finds the same fault when it matters.
                tracing::error!(%error, "the journal cannot go on");
            }
        };
        let thread = spawn_helper("gapless-prepare", run).map_err(|error| StreamError::System {
            action: "starting the thread that prepares the journal".to_owned(),
            source: std::io::Error::other(error),
        })?;
        Ok(Self { preparer, thread: Some(thread) })
    }

    /// Works without a thread, by [`PreparerThread::turn`].
    #[must_use]
    pub const fn by_hand(preparer: SegmentPreparer) -> Self {
        Self { preparer, thread: None }
    }

    /// Checks the files one last time, for a clean stop.
    ///
    /// # Errors
    /// [`StreamError::Journal`]: a file is gone.
    pub fn check_files(&self) -> Result<(), StreamError> {
        Ok(self.preparer.check_files()?)
    }

    /// One step, without a thread; the journal's writer reports faults.
    pub fn turn(&mut self) {
        if self.thread.is_none() {
            let _ = self.preparer.run_once();
        }
    }
}

impl Drop for PreparerThread {
    fn drop(&mut self) {
        self.preparer.end();
        if let Some(thread) = self.thread.take() {
            // The message of a panic has been printed already; the writer prepares segments itself.
            let _ = thread.join();
        }
    }
}
