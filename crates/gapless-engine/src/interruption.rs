//! Which frame was being handled when a process was killed or aborted. A handler that allocates for ever, or that ends the process,
//! ends each start at the same frame, and nothing else says at which.
//!
//! The sequence is in the service's counters while it runs (`service.handling_sequence`), and in a file `replaying` of the same form
//! while frames are replayed. A clean stop removes both. A process that is killed while it is busy leaves a frame there, too: only a
//! frame at which two processes have ended, one after the other, is an error.

use crate::EngineError;
use gapless_agent::{Counter, Counters, CountersReader};
use gapless_client::stream_layout::StreamLayout;
use std::path::{Path, PathBuf};

/// The counter of the frame that is handled now; 0 between two batches of frames.
pub(crate) const HANDLING: &str = "service.handling_sequence";
/// The counter of the frame at which the process before was ended; 0 where it was not.
pub(crate) const INTERRUPTED: &str = "service.interrupted_sequence";

fn path_in(directory: &Path) -> PathBuf {
    directory.join("replaying")
}

/// A frame that was being handled when a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// Its sequence.
    pub sequence: u64,
    /// Whether the process before that one was ended there, too: the operator may skip the frame
    /// ([`crate::Policy::skip_sequences`]).
    pub is_again: bool,
}

/// The frame that the last process on `directory` was handling when it was ended, if it was; while one runs, the frame that it
/// is at.
#[must_use]
pub fn interrupted_at(directory: &Path) -> Option<Interrupted> {
    let of = |path: PathBuf| {
        // A file that cannot be read says nothing.
        let values = CountersReader::open(path).and_then(|reader| reader.read()).ok()?;
        let value = |label| values.iter().find(|(found, _)| found == label).map_or(0, |(_, value)| *value);
        let (sequence, before) = (value(HANDLING), value(INTERRUPTED));
        (sequence > 0).then_some(Interrupted { sequence, is_again: sequence == before })
    };
    of(path_in(directory)).or_else(|| of(StreamLayout::new(directory).counters()))
}

/// A replay that is under way; dropping it removes the file.
pub(crate) struct ReplayProgress {
    sequence: Counter,
    _file: Counters,
}

impl ReplayProgress {
    /// Logs at which frame the process before ended, and returns that; 0 for none.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn begin(directory: &Path) -> Result<(Self, u64), EngineError> {
        let interrupted = interrupted_at(directory);
        match interrupted {
            Some(Interrupted { sequence, is_again: true }) => tracing::error!(
                sequence,
                "two processes, one behind the other, have ended without a word while they handled this frame. Mend the handler, \
                 or skip the frame: skip_sequences, or `gapless cluster skip` for all members"
            ),
            Some(Interrupted { sequence, .. }) => {
                tracing::info!(sequence, "the process before this one was ended while it handled this frame")
            }
            None => {}
        }
        let file = Counters::create(path_in(directory), 2)?;
        let before = interrupted.map_or(0, |interrupted| interrupted.sequence);
        file.add(INTERRUPTED)?.set(before);
        Ok((Self { sequence: file.add(HANDLING)?, _file: file }, before))
    }

    /// The frame `sequence` is handled next.
    #[inline]
    pub fn at(&self, sequence: u64) {
        self.sequence.set(sequence);
    }
}
