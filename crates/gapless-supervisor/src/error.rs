//! [`SupervisorError`]: what fails around the state directory and the guardian.

use gapless_agent::proc_folder;
use gapless_agent::shortage::is_shortage_errno;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What fails around the state directory and the guardian.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SupervisorError {
    /// The system refuses something.
    #[error("{what}: {source}")]
    System {
        /// What was tried, with its file.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A file of the state directory is not what it should be.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was expected, and what was found.
        reason: String,
    },
    /// The guardian does not answer, or not what is expected.
    #[error("the guardian of {}: {reason}", directory.display())]
    Guardian {
        /// Its state directory.
        directory: PathBuf,
        /// What was waited for, and what came.
        reason: String,
    },
    /// The supervisor does not answer, or not what is expected.
    #[error("the supervisor of {}: {reason}", directory.display())]
    Supervisor {
        /// Its state directory.
        directory: PathBuf,
        /// What was waited for, and what came.
        reason: String,
    },
    /// The supervisor runs and does not answer.
    #[error("the supervisor of {} does not answer within {} s{more}", directory.display(), within.as_secs_f32())]
    Silent {
        /// Its state directory.
        directory: PathBuf,
        /// How long it was waited for.
        within: Duration,
        /// What that means, and which of it and its guardian stand still; each behind a semicolon.
        more: String,
    },
    /// What was asked for is refused.
    #[error("{0}")]
    Refused(String),
}

/// Checks that the numbers of processes here are those of `/proc`, by which it is known who runs.
pub fn check_proc() -> Result<(), SupervisorError> {
    proc_folder::check().map_err(SupervisorError::io("looking at processes"))
}

impl SupervisorError {
    /// The error of a call of the system, behind what was tried.
    pub fn system(what: impl Into<String>) -> impl FnOnce(Errno) -> Self {
        let what = what.into();
        move |errno| Self::System { what, source: errno.into() }
    }

    /// As [`system`](Self::system), of the standard library's calls.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }

    /// A file that is not what it should be.
    pub fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }

    /// Whether the machine lacks something: room, memory, descriptors. It may have it again later.
    #[must_use]
    pub fn is_shortage(&self) -> bool {
        // A fork says AGAIN where there are too many processes.
        self.errno().is_some_and(|errno| errno == Errno::AGAIN || is_shortage_errno(errno))
    }

    /// The kind of the system's refusal, if that is what it was.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::System { source, .. } => Errno::from_io_error(source),
            _ => None,
        }
    }
}

/// Whether a call has failed for what this process or its machine lacks, descriptors or memory, whatever it was about.
pub fn is_shortage_here(errno: Errno) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS].contains(&errno)
}
