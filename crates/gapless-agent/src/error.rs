//! What can go wrong in this crate itself, outside the agents' own errors.

use std::io;
use std::path::PathBuf;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text that configures something is not understood.
    #[error("{what}: expected {expected}, found {found:?}")]
    Parse {
        /// What was to be configured.
        what: &'static str,
        /// The accepted forms.
        expected: &'static str,
        found: String,
    },
    /// The system starts no more threads.
    #[error("thread {thread} cannot be started: {source}; check the limits on processes and threads")]
    ThreadStart { thread: String, source: io::Error },
    /// An agent panicked.
    #[error("panicked: {message}")]
    AgentPanicked { message: String },
    /// An agent was asked to stop and still had work when its time was over.
    #[error("not drained {limit_ns} ns after it was closed; its unfinished work is lost")]
    NotDrained {
        /// The time it had, in nanoseconds.
        limit_ns: u64,
    },
    /// A plan and the agents or wakers handed in with it do not fit together.
    #[error("thread plan: {0}")]
    PlanMismatch(String),
    /// The time stamp counter cannot serve as a clock.
    #[error("the time stamp counter is no clock here: {0}; use the system clock")]
    TscUnusable(String),
    /// A system call on the counters file failed.
    #[error("counters file {path}: cannot {action}: {source}")]
    CountersIo { path: PathBuf, action: &'static str, source: io::Error },
    /// The counters file belongs to a process that is alive.
    #[error("counters file {path} belongs to process {pid}, which is alive; choose another path or stop that process")]
    CountersInUse {
        path: PathBuf,
        /// The owner, as the file names it; 0 if the file does not say.
        pid: u32,
    },
    /// The file is not a counters file, or a damaged one.
    #[error("counters file {path} is damaged at byte {position}: expected {expected}, found {found}")]
    CountersDamaged {
        path: PathBuf,
        /// Where in the file, in bytes.
        position: u64,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// More counters than the file was made for, or a capacity out of range.
    #[error("counters: {asked} asked for, {limit} is the limit; create the file with a larger capacity")]
    CountersFull {
        /// How many were wanted.
        asked: usize,
        /// How many there can be.
        limit: usize,
    },
    /// A label that cannot be stored.
    #[error("counter label {label:?}: {reason}")]
    CounterLabel { label: String, reason: &'static str },
}
