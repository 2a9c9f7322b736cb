//! `SupervisorError`: error type of this crate.

use gapless_agent::proc_folder;
use gapless_agent::shortage::is_shortage_errno;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SupervisorError {
    /// A system call failed. Remove the cause and retry.
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
    /// A file of the state directory is invalid.
    #[error("{}: {reason}", path.display())]
    Damaged {
        path: PathBuf,
        /// The expected and the found content.
        reason: String,
    },
    /// The guardian gives no answer, or an unexpected one. See `guardian.log` in the state directory.
    #[error("the guardian of {}: {reason}", directory.display())]
    Guardian {
        directory: PathBuf,
        /// The expected and the received answer.
        reason: String,
    },
    /// The supervisor gives no answer, or an unexpected one. See `guardian.log` in the state directory.
    #[error("the supervisor of {}: {reason}", directory.display())]
    Supervisor {
        directory: PathBuf,
        /// The expected and the received answer.
        reason: String,
    },
    /// A supervisor runs, but does not answer. A command may still take effect: `gapless ps` shows it.
    #[error("the supervisor of {} does not answer within {} s{more}", directory.display(), within.as_secs_f32())]
    Silent {
        directory: PathBuf,
        within: Duration,
        /// Consequence, and stopped processes, each after a semicolon.
        more: String,
    },
    /// The supervisor or the guardian refuses the request, for the given reason.
    #[error("{0}")]
    Refused(String),
}

/// Checks that `/proc` shows this process's PID namespace; liveness checks rely on it.
pub fn check_proc() -> Result<(), SupervisorError> {
    proc_folder::check().map_err(SupervisorError::io("looking at processes"))
}

impl SupervisorError {
    /// Error of a system call, with the attempted action.
    pub fn system(what: impl Into<String>) -> impl FnOnce(Errno) -> Self {
        let what = what.into();
        move |errno| Self::System { what, source: errno.into() }
    }

    /// Same as [`system`](Self::system), for the standard library's errors.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }

    pub fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }

    /// Whether the machine lacks space, memory or descriptors, which may pass.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        // `fork` fails with EAGAIN at the limit of processes.
        self.errno().is_some_and(|errno| errno == Errno::AGAIN || is_shortage_errno(errno))
    }

    /// Error number, for I/O errors.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::System { source, .. } => Errno::from_io_error(source),
            _ => None,
        }
    }
}

/// Whether this process or machine lacks descriptors or memory, regardless of the call's object.
pub fn is_shortage_here(errno: Errno) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS].contains(&errno)
}
