//! Errors of this crate itself, as opposed to those of agents.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text of an option has another form. Correct it.
    #[error("{what}: expected {expected}, found {found:?}")]
    Parse { what: &'static str, expected: &'static str, found: String },
    #[error("thread {thread} cannot be started: {source}; check the limits on processes and threads")]
    ThreadStart { thread: String, source: io::Error },
    /// A bug in an agent: its thread has ended. Fix it and start again.
    #[error("panicked: {message}")]
    AgentPanicked { message: String },
    /// The agent still had work when the time limit of its stop was over.
    #[error("not drained {limit_ns} ns after it was closed; its unfinished work is lost")]
    NotDrained { limit_ns: u64 },
    /// The given agents or wakers are not those of the plan. Give each planned agent once, and one waker for each
    /// thread.
    #[error("thread plan: {0}")]
    PlanMismatch(String),
    #[error("the time stamp counter cannot be used as a clock: {0}; use the system clock")]
    TscUnusable(String),
    /// A system call on the counters file failed. Check the path, its permissions and the free space.
    #[error("counters file {path}: cannot {action}: {source}")]
    CountersIo { path: PathBuf, action: &'static str, source: io::Error },
    #[error("counters file {path} belongs to process {pid}, which is alive; choose another path or stop that process")]
    CountersInUse {
        path: PathBuf,
        /// 0 if the file names none.
        pid: u32,
    },
    /// The file is of another kind, or was cut short or overwritten. Remove it, or choose another path; a writer
    /// creates a new file.
    #[error("counters file {path} is damaged at byte {position}: expected {expected}, found {found}")]
    CountersDamaged { path: PathBuf, position: u64, expected: String, found: String },
    /// The file has no room for another counter, or the requested capacity is out of range.
    #[error("counters: {asked} requested, the limit is {limit}; create the file with a larger capacity")]
    CountersFull { asked: usize, limit: usize },
    /// The label is empty, too long, in use, or has control characters. Choose another one.
    #[error("counter label {label:?}: {reason}")]
    CounterLabel { label: String, reason: &'static str },
}
