//! The frame or command in progress when a process was killed or aborted: a handler that loops, allocates without end
//! or exits the process ends each start at the same place, and no error names it. The sequence is in the service's
//! counters (`service.handling_sequence`), during a replay in a file `replaying` of the same format; a clean stop
//! removes both. Only a frame at which two consecutive processes ended is an error, because any killed busy process
//! leaves one. Commands that run ahead of the stream have no sequence: their session and number are in
//! `sequencer.executing_…`. Queries have none either: the key of the query's name is in `service.answering_query`.

use crate::EngineError;
use crate::erased_service::ErasedService;
use crate::handler_guard::describe;
use gapless_agent::{Counter, Counters, CountersReader};
use gapless_client::stream_layout::StreamLayout;
use gapless_schema::Encoding;
use std::fmt;
use std::path::{Path, PathBuf};

/// Sequence of the frame in a handler; 0 between batches.
pub(crate) const HANDLING: &str = "service.handling_sequence";
/// Sequence of the frame at which the previous process ended; 0 after a clean stop.
pub(crate) const INTERRUPTED: &str = "service.interrupted_sequence";

/// Counters of a command that runs ahead of the stream: the sequence that it will get, its session, its number there.
const EXECUTING: [&str; 3] =
    ["sequencer.executing_sequence", "sequencer.executing_session", "sequencer.executing_number"];
/// The same counters, of the previous process.
const INTERRUPTED_AHEAD: [&str; 3] = [AHEAD_SEQUENCE, AHEAD_SESSION, AHEAD_NUMBER];
/// Sequence of the command that ran ahead of the stream when the previous process ended; else 0.
const AHEAD_SEQUENCE: &str = "service.interrupted_ahead_sequence";
/// Session of the command that ran ahead of the stream when the previous process ended.
const AHEAD_SESSION: &str = "service.interrupted_ahead_session";
/// Number in its session of the command that ran ahead of the stream when the previous process ended, or the timer.
const AHEAD_NUMBER: &str = "service.interrupted_ahead_number";

/// Key of the query in a handler; else 0.
pub(crate) const ANSWERING: &str = "service.answering_query";
/// Key of the query in a handler of a leader's state, on the thread that appends commands; else 0.
pub(crate) const ANSWERING_AHEAD: &str = "service.answering_query_ahead";
/// Key of the query during which the previous process ended; else 0.
const INTERRUPTED_QUERY: &str = "service.interrupted_query";

fn path_in(directory: &Path) -> PathBuf {
    directory.join("replaying")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptedFrame {
    pub sequence: u64,
    /// Two processes in a row ended there: the operator may skip the frame ([`crate::skips::skip`]).
    pub is_repeated: bool,
}

/// Returns the frame at which the last process on `directory` ended, if it did not stop cleanly; while one runs, its
/// current frame.
#[must_use]
pub fn interrupted_at(directory: &Path) -> Option<InterruptedFrame> {
    let of = |path: PathBuf| {
        // An unreadable file counts as missing.
        let values = CountersReader::open(path).and_then(|reader| reader.read()).ok()?;
        let value = |label| values.iter().find(|(found, _)| found == label).map_or(0, |(_, value)| *value);
        let (sequence, before) = (value(HANDLING), value(INTERRUPTED));
        (sequence > 0).then_some(InterruptedFrame { sequence, is_repeated: sequence == before })
    };
    of(path_in(directory)).or_else(|| of(StreamLayout::new(directory).counters()))
}

/// Command or timer that ran ahead of the stream when the process ended. The stream has no trace of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptedSpeculation {
    /// Sequence intended for it; another frame may have it by now.
    pub sequence: u64,
    /// 0 for a timer.
    pub session: u64,
    /// Number in the session, or the timer.
    pub number: u64,
    /// Two processes in a row ended there: the client resends the command at each start, and a timer is due again.
    pub is_repeated: bool,
}

impl fmt::Display for InterruptedSpeculation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, number, .. } = self;
        match session {
            0 => write!(f, "timer {number}"),
            session => write!(f, "command {number} of session {session}"),
        }
    }
}

/// Like [`interrupted_at`], of a service whose handlers run ahead of the stream.
#[must_use]
pub fn interrupted_speculation_at(directory: &Path) -> Option<InterruptedSpeculation> {
    // An unreadable file counts as missing.
    let values = CountersReader::open(StreamLayout::new(directory).counters()).and_then(|reader| reader.read()).ok()?;
    let value = |label: &str| values.iter().find(|(found, _)| found == label).map_or(0, |(_, value)| *value);
    let ([sequence, session, number], before) = (EXECUTING.map(value), INTERRUPTED_AHEAD.map(value));
    let is_repeated = before[0] > 0 && before[1..] == [session, number];
    (sequence > 0).then_some(InterruptedSpeculation { sequence, session, number, is_repeated })
}

/// Query in a handler when the process ended. The stream has no trace of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptedQuery {
    /// Key of the query's name.
    pub schema: u32,
    /// Two processes in a row ended there: clients ask again after a restart.
    pub is_repeated: bool,
}

/// Like [`interrupted_at`], of queries.
#[must_use]
pub fn interrupted_query_at(directory: &Path) -> Option<InterruptedQuery> {
    // An unreadable file counts as missing.
    let values = CountersReader::open(StreamLayout::new(directory).counters()).and_then(|reader| reader.read()).ok()?;
    let value = |label: &str| values.iter().find(|(found, _)| found == label).map_or(0, |(_, value)| *value);
    let schema = [ANSWERING, ANSWERING_AHEAD].map(value).into_iter().find(|schema| *schema > 0)?;
    Some(InterruptedQuery { schema: u32::try_from(schema).ok()?, is_repeated: schema == value(INTERRUPTED_QUERY) })
}

pub(crate) fn keep_interrupted_query(
    counters: &Counters,
    before: Option<InterruptedQuery>,
) -> Result<(), gapless_agent::Error> {
    counters.add(INTERRUPTED_QUERY)?.set(before.map_or(0, |query| query.schema.into()));
    Ok(())
}

/// Names the query by `service`.
pub(crate) fn log_interrupted_query(directory: &Path, service: &dyn ErasedService) -> Option<InterruptedQuery> {
    let interrupted = interrupted_query_at(directory)?;
    let InterruptedQuery { schema, is_repeated } = interrupted;
    let name = service.query_name(schema).map_or_else(|| describe(schema, Encoding::Postcard), str::to_owned);
    if is_repeated {
        tracing::error!(
            query = name,
            "two processes in a row ended without an error while they answered this query. Correct its handler, or end the client that asks again after each start"
        );
    } else {
        tracing::info!(query = name, "the previous process ended while it answered this query");
    }
    Some(interrupted)
}

pub(crate) fn keep_interrupted_speculation(
    counters: &Counters,
    before: Option<InterruptedSpeculation>,
) -> Result<(), gapless_agent::Error> {
    let values = before.map_or([0; 3], |it| [it.sequence, it.session, it.number]);
    INTERRUPTED_AHEAD.iter().zip(values).try_for_each(|(label, value)| {
        counters.add(label)?.set(value);
        Ok(())
    })
}

fn log_interrupted_speculation(directory: &Path) -> Option<InterruptedSpeculation> {
    let interrupted = interrupted_speculation_at(directory)?;
    if interrupted.is_repeated {
        tracing::error!(
            "two processes, one behind the other, have ended without a word while they handled {interrupted}, ahead of the stream. Mend the \
             handler, or end the client that sends this again at each start"
        );
    } else {
        tracing::info!("the process before this one was ended while it handled {interrupted}, ahead of the stream");
    }
    Some(interrupted)
}

/// Dropping it removes the file.
pub(crate) struct ReplayProgress {
    sequence: Counter,
    _file: Counters,
}

impl ReplayProgress {
    /// Logs where the previous process ended; 0: no frame.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn begin(directory: &Path) -> Result<(Self, u64, Option<InterruptedSpeculation>), EngineError> {
        let (interrupted, ahead) = (interrupted_at(directory), log_interrupted_speculation(directory));
        match interrupted {
            Some(InterruptedFrame { sequence, is_repeated: true }) => tracing::error!(
                sequence,
                "two processes, one behind the other, have ended without a word while they handled this frame. Mend the handler, \
                 or skip the frame: `gapless journal skip DIRECTORY {sequence}`, or `gapless cluster skip` for all members"
            ),
            Some(InterruptedFrame { sequence, .. }) => {
                tracing::info!(sequence, "the process before this one was ended while it handled this frame")
            }
            None => {}
        }
        let file = Counters::create(path_in(directory), 2)?;
        let before = interrupted.map_or(0, |interrupted| interrupted.sequence);
        file.add(INTERRUPTED)?.set(before);
        Ok((Self { sequence: file.add(HANDLING)?, _file: file }, before, ahead))
    }

    #[inline]
    pub fn at(&self, sequence: u64) {
        self.sequence.set(sequence);
    }
}
