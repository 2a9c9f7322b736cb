//! The errors of a benchmark, each with the place and what to do about it.

use std::path::{Path, PathBuf};

/// The result of anything here that can fail.
pub type Result<T> = std::result::Result<T, BenchError>;

/// An error of this crate; its message is one line.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// An option, or a combination of options, that makes no sense.
    #[error("{0}")]
    Option(String),
    /// A file or directory could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action, as a verb: "write", "open".
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The system refused something that has no path.
    #[error("cannot {action}: {source}")]
    System { action: &'static str, source: std::io::Error },
    /// An Excel workbook could not be read or written.
    #[error("workbook {}: {reason}", path.display())]
    Workbook {
        /// The workbook.
        path: PathBuf,
        /// The expected and the found value, and what to do.
        reason: String,
    },
    /// A plot could not be drawn.
    #[error("the plot cannot be drawn: {0}")]
    Plot(String),
    /// A report could not be turned into JSON.
    #[error("cannot write the report as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A text is no report.
    #[error("this is no report of a benchmark: {0}")]
    Unreadable(serde_json::Error),
    /// A comparison found that the second build is slower.
    #[error("{0} is slower than {1}")]
    Slower(String, String),
    /// A measurement has finished, and found what its user does not accept.
    #[error("{name}: {reason}")]
    Verdict {
        /// The benchmark.
        name: &'static str,
        reason: String,
    },
    /// A measurement did not finish.
    #[error("{name} could not be measured: {reason}")]
    Measurement {
        /// The floor or benchmark.
        name: &'static str,
        reason: String,
    },
}

impl BenchError {
    pub fn io(action: &'static str, path: &Path, source: impl Into<std::io::Error>) -> Self {
        Self::Io { action, path: path.to_owned(), source: source.into() }
    }

    pub fn measurement(name: &'static str, reason: impl ToString) -> Self {
        Self::Measurement { name, reason: reason.to_string() }
    }

    pub fn system(action: &'static str, source: impl Into<std::io::Error>) -> Self {
        Self::System { action, source: source.into() }
    }

    pub(crate) fn workbook(path: &Path, reason: impl Into<String>) -> Self {
        // Parsers quote the input with its line breaks; an error is one line.
        Self::Workbook { path: path.to_owned(), reason: reason.into().replace(char::is_control, " ") }
    }

    /// The program then ends as for unknown options.
    pub fn is_about_options(&self) -> bool {
        matches!(self, Self::Option(_))
    }
}
