//! [`PreparerThread`]: the thread that prepares segments before the journal's writer needs them.

use crate::StreamError;
use gapless_agent::Counter;
use gapless_agent::thread::spawn_helper;
use gapless_journal::SegmentPreparer;
use std::thread::JoinHandle;

/// The thread that prepares segments before the journal's writer needs them, or the same without a thread, polled by its
/// owner. Dropping it ends it.
pub struct PreparerThread {
    preparer: SegmentPreparer,
    thread: Option<JoinHandle<()>>,
}

impl PreparerThread {
    /// Starts it. `file_checks` counts how often the files of the journal were found in their places.
    ///
    /// # Errors
    /// [`StreamError::System`] if no thread can be started.
    pub fn start(preparer: SegmentPreparer, file_checks: Counter) -> Result<Self, StreamError> {
        let for_thread = preparer.clone();
        let run = move || {
            // The count stands in a mapped file: where that was cut, an idle process notices by it.
            if let Err(error) = for_thread.run_with(|| file_checks.add(1)) {
                // The journal's writer finds the same fault where it matters, and stops.
                tracing::error!(%error, "the journal cannot go on");
            }
        };
        let thread = spawn_helper("gapless-prepare", run).map_err(|error| StreamError::System {
            action: "starting the thread that prepares the journal".to_owned(),
            source: std::io::Error::other(error),
        })?;
        Ok(Self { preparer, thread: Some(thread) })
    }

    /// The same without a thread: [`PreparerThread::turn`] does the work.
    #[must_use]
    pub const fn by_hand(preparer: SegmentPreparer) -> Self {
        Self { preparer, thread: None }
    }

    /// A last look at the files, for a clean stop.
    ///
    /// # Errors
    /// [`StreamError::Journal`]: a file is gone.
    pub fn check_files(&self) -> Result<(), StreamError> {
        Ok(self.preparer.check_files()?)
    }

    /// Takes one step, where there is no thread for it. A fault is found by the journal's writer, where it matters.
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
            // A panic of the thread has been reported by its message already; the writer prepares for itself.
            let _ = thread.join();
        }
    }
}
