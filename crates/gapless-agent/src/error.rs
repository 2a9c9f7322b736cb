use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{what}: expected {expected}, found {found:?}")]
    Parse { what: &'static str, expected: &'static str, found: String },
    #[error("thread {thread} cannot be started: {source}; check the limits on processes and threads")]
    ThreadStart { thread: String, source: io::Error },
    #[error("panicked: {message}")]
    AgentPanicked { message: String },
    /// An agent still had work when the time limit of its stop was over.
    #[error("not drained {limit_ns} ns after it was closed; its unfinished work is lost")]
    NotDrained { limit_ns: u64 },
    /// A plan does not match the given agents or wakers.
    #[error("thread plan: {0}")]
    PlanMismatch(String),
    /// The time stamp counter cannot serve as a clock.
    #[error("the time stamp counter is no clock here: {0}; use the system clock")]
    TscUnusable(String),
    /// A system call on the counters file failed.
    #[error("counters file {path}: cannot {action}: {source}")]
    CountersIo { path: PathBuf, action: &'static str, source: io::Error },
    #[error("counters file {path} belongs to process {pid}, which is alive; choose another path or stop that process")]
    CountersInUse {
        path: PathBuf,
        /// 0 if the file names none.
        pid: u32,
    },
    #[error("counters file {path} is damaged at byte {position}: expected {expected}, found {found}")]
    CountersDamaged { path: PathBuf, position: u64, expected: String, found: String },
    /// More counters than the file has room for, or a capacity out of range.
    #[error("counters: {asked} asked for, {limit} is the limit; create the file with a larger capacity")]
    CountersFull { asked: usize, limit: usize },
    #[error("counter label {label:?}: {reason}")]
    CounterLabel { label: String, reason: &'static str },
}
