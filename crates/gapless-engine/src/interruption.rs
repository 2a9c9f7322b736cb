//! What was being handled when a process was killed or aborted. A handler that allocates for ever, or that ends the process,
//! ends each start at the same frame or command, and nothing else says at which.
//!
//! The sequence is in the service's counters while it runs (`service.handling_sequence`), and in a file `replaying` of the same form
//! while frames are replayed. A clean stop removes both. A process that is killed while it is busy leaves a frame there, too: only a
//! frame at which two processes have ended, one after the other, is an error.
//!
//! Handlers of a replicated state, and of a command bus, run ahead of the stream: what they were at has no sequence yet, but a session and a
//! number, or a timer. That is in the counters of who appends (`sequencer.executing_…`).

use crate::EngineError;
use gapless_agent::{Counter, Counters, CountersReader};
use gapless_client::stream_layout::StreamLayout;
use std::fmt;
use std::path::{Path, PathBuf};

/// The counter of the frame that is handled now; 0 between two batches of frames.
pub(crate) const HANDLING: &str = "service.handling_sequence";
/// The counter of the frame at which the process before was ended; 0 where it was not.
pub(crate) const INTERRUPTED: &str = "service.interrupted_sequence";

/// The counters of what runs ahead of the stream: its sequence if it is appended, its session, its number there.
const EXECUTING: [&str; 3] =
    ["sequencer.executing_sequence", "sequencer.executing_session", "sequencer.executing_number"];
/// The same, of the process before.
const INTERRUPTED_AHEAD: [&str; 3] =
    ["service.interrupted_ahead_sequence", "service.interrupted_ahead_session", "service.interrupted_ahead_number"];

fn path_in(directory: &Path) -> PathBuf {
    directory.join("replaying")
}

/// A frame that was being handled when a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// Its sequence.
    pub sequence: u64,
    /// Whether the process before that one was ended there, too: the operator may skip the frame
    /// ([`crate::skips::skip`]).
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

/// What a handler of a replicated state or of a command bus was at when its process ended, ahead of the stream: nothing of it is
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptedAhead {
    /// The sequence that it was to get. Something else may have it by now.
    pub sequence: u64,
    /// The session of the command; 0 of a timer.
    pub session: u64,
    /// The command's number there, or the timer.
    pub number: u64,
    /// Whether the process before that one was ended there, too: the command's client sends it again at each start, a timer is due again.
    pub is_again: bool,
}

impl fmt::Display for InterruptedAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, number, .. } = self;
        match session {
            0 => write!(f, "timer {number}"),
            session => write!(f, "command {number} of session {session}"),
        }
    }
}

/// As [`interrupted_at`], of a service whose handlers run ahead of the stream.
#[must_use]
pub fn interrupted_ahead_at(directory: &Path) -> Option<InterruptedAhead> {
    // A file that cannot be read says nothing.
    let values = CountersReader::open(StreamLayout::new(directory).counters()).and_then(|reader| reader.read()).ok()?;
    let value = |label: &str| values.iter().find(|(found, _)| found == label).map_or(0, |(_, value)| *value);
    let ([sequence, session, number], before) = (EXECUTING.map(value), INTERRUPTED_AHEAD.map(value));
    let is_again = before[0] > 0 && before[1..] == [session, number];
    (sequence > 0).then_some(InterruptedAhead { sequence, session, number, is_again })
}

/// Keeps what the process before was at ahead of the stream, for who asks when this one ends there, too.
pub(crate) fn keep_interrupted_ahead(
    counters: &Counters,
    before: Option<InterruptedAhead>,
) -> Result<(), gapless_agent::Error> {
    let values = before.map_or([0; 3], |it| [it.sequence, it.session, it.number]);
    INTERRUPTED_AHEAD.iter().zip(values).try_for_each(|(label, value)| {
        counters.add(label)?.set(value);
        Ok(())
    })
}

/// Logs what the process before was at ahead of the stream, and returns it.
fn told_interrupted_ahead(directory: &Path) -> Option<InterruptedAhead> {
    let interrupted = interrupted_ahead_at(directory)?;
    if interrupted.is_again {
        tracing::error!(
            "two processes, one behind the other, have ended without a word while they handled {interrupted}, ahead of the stream. Mend the \
             handler, or end the client that sends this again at each start"
        );
    } else {
        tracing::info!("the process before this one was ended while it handled {interrupted}, ahead of the stream");
    }
    Some(interrupted)
}

/// A replay that is under way; dropping it removes the file.
pub(crate) struct ReplayProgress {
    sequence: Counter,
    _file: Counters,
}

impl ReplayProgress {
    /// Logs at what the process before ended, and returns that: its frame, 0 for none, and what it handled ahead of the stream.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn begin(directory: &Path) -> Result<(Self, u64, Option<InterruptedAhead>), EngineError> {
        let (interrupted, ahead) = (interrupted_at(directory), told_interrupted_ahead(directory));
        match interrupted {
            Some(Interrupted { sequence, is_again: true }) => tracing::error!(
                sequence,
                "two processes, one behind the other, have ended without a word while they handled this frame. Mend the handler, \
                 or skip the frame: `gapless journal skip DIRECTORY {sequence}`, or `gapless cluster skip` for all members"
            ),
            Some(Interrupted { sequence, .. }) => {
                tracing::info!(sequence, "the process before this one was ended while it handled this frame")
            }
            None => {}
        }
        let file = Counters::create(path_in(directory), 2)?;
        let before = interrupted.map_or(0, |interrupted| interrupted.sequence);
        file.add(INTERRUPTED)?.set(before);
        Ok((Self { sequence: file.add(HANDLING)?, _file: file }, before, ahead))
    }

    /// The frame `sequence` is handled next.
    #[inline]
    pub fn at(&self, sequence: u64) {
        self.sequence.set(sequence);
    }
}
