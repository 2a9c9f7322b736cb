//! [`PreparerThread`]: the thread that works ahead of the journal's writer.

use crate::StreamError;
use gapless_agent::thread::spawn_helper;
use gapless_journal::Preparer;
use std::thread::JoinHandle;

/// The thread that works ahead of the journal's writer; ended by being dropped.
pub struct PreparerThread {
    preparer: Preparer,
    thread: Option<JoinHandle<()>>,
}

impl PreparerThread {
    /// Starts it.
    ///
    /// # Errors
    /// [`StreamError::System`] if no thread can be started.
    pub fn start(preparer: Preparer) -> Result<Self, StreamError> {
        let for_thread = preparer.clone();
        let run = move || {
            if let Err(error) = for_thread.run() {
                // The journal's writer finds the same fault where it matters, and stops.
                tracing::error!(%error, "the journal cannot be prepared ahead");
            }
        };
        let thread = spawn_helper("gapless-prepare", run).map_err(|error| StreamError::System {
            action: "starting the thread that prepares the journal".to_owned(),
            source: std::io::Error::other(error),
        })?;
        Ok(Self { preparer, thread: Some(thread) })
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
