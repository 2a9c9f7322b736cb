//! Which frame is being handled, for the start behind a process that ended without a word: a handler that allocates for ever, or
//! that ends the process, ends each start at the same frame, and nothing else says at which.
//!
//! It stands in the service's counters while it runs (`service.handling_sequence`), and in a file `replaying` of the same form while
//! frames are replayed. A clean stop removes both. Whoever kills a process that is busy leaves a frame there, too: only one at
//! which two processes have ended, one behind the other, is told of as an error.

use crate::EngineError;
use gapless_agent::{Counter, Counters, CountersReader};
use gapless_client::stream_layout::StreamLayout;
use std::path::{Path, PathBuf};

/// The frame that is handled now; 0 between two batches of frames.
pub(crate) const HANDLING: &str = "service.handling_sequence";
/// The frame at which the process before was ended; 0 where it was not.
pub(crate) const INTERRUPTED: &str = "service.interrupted_sequence";

fn path_in(directory: &Path) -> PathBuf {
    directory.join("replaying")
}

/// A frame at which processes were ended.
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
        // One that cannot be read says nothing.
        let values = CountersReader::open(path).and_then(|reader| reader.read()).ok()?;
        let value = |label| values.iter().find(|(found, _)| found == label).map_or(0, |(_, value)| *value);
        let (sequence, before) = (value(HANDLING), value(INTERRUPTED));
        (sequence > 0).then_some(Interrupted { sequence, is_again: sequence == before })
    };
    of(path_in(directory)).or_else(|| of(StreamLayout::new(directory).counters()))
}

/// A replay that is under way. Dropped, it is over, and the file goes.
pub(crate) struct Replaying {
    sequence: Counter,
    _file: Counters,
}

impl Replaying {
    /// Says where the process before has ended; returns that, too, 0 for nowhere.
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

    /// This frame is handled next.
    #[inline]
    pub fn at(&self, sequence: u64) {
        self.sequence.set(sequence);
    }
}
