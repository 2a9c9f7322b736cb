//! [`Replaying`]: which frame a replay is at, for the start behind one that ended without a word: a handler that allocates for
//! ever, or that ends the process, ends each start at the same frame, and nothing else says at which.
//!
//! The file `replaying` in the node's directory, in the form of `counters`. It is there while frames are replayed; one that is
//! there before is of a process that was ended meanwhile, by a handler or by somebody else.

use crate::EngineError;
use gapless_agent::{Counter, Counters, CountersReader};
use std::path::{Path, PathBuf};

const COUNTER: &str = "service.replaying_sequence";

fn path_in(directory: &Path) -> PathBuf {
    directory.join("replaying")
}

/// The frame at which the last start in `directory` ended without a word, if it did: the operator may skip it
/// ([`crate::Policy::skip_sequences`]). While a node is starting there, the one that it is at.
#[must_use]
pub fn interrupted_at(directory: &Path) -> Option<u64> {
    // One that cannot be read says nothing.
    let values = CountersReader::open(path_in(directory)).and_then(|reader| reader.read()).ok()?;
    values.into_iter().find(|(label, sequence)| label == COUNTER && *sequence > 0).map(|(_, sequence)| sequence)
}

/// A replay that is under way. Dropped, it is over, and the file goes.
pub(crate) struct Replaying {
    sequence: Counter,
    _file: Counters,
}

impl Replaying {
    /// Says where the start before has ended, if nobody has heard.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn begin(directory: &Path) -> Result<Self, EngineError> {
        if let Some(sequence) = interrupted_at(directory) {
            tracing::error!(
                sequence,
                "the start before this one ended without a word while it handled this frame. If this one does, too: mend the \
                 handler, or skip the frame (skip_sequences)"
            );
        }
        let file = Counters::create(path_in(directory), 1)?;
        Ok(Self { sequence: file.add(COUNTER)?, _file: file })
    }

    /// This frame is handled next.
    #[inline]
    pub fn at(&self, sequence: u64) {
        self.sequence.set(sequence);
    }
}
