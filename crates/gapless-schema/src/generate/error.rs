//! [`SchemaError`]: what is wrong with a schema, and where.

use std::path::PathBuf;

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The file cannot be read or written.
    #[error("{}: {source}; expected {expected}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What was expected of it.
        expected: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is larger than any schema.
    #[error("{}: {found_bytes} bytes found, expected a schema of at most {limit_bytes} bytes", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// Its size.
        found_bytes: u64,
        /// The largest size allowed.
        limit_bytes: u64,
    },
    /// Something in the file is wrong.
    #[error("{file}:{line}:{column}: {problem}; expected {expected}")]
    Invalid {
        /// The file, as it was named.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Column in characters, from 1.
        column: u32,
        /// What is wrong.
        problem: String,
        /// What would be right.
        expected: String,
    },
}

/// A place in a schema file.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub file: std::rc::Rc<str>,
    pub line: u32,
    pub column: u32,
}

impl Location {
    pub(crate) fn error(&self, problem: impl Into<String>, expected: impl Into<String>) -> SchemaError {
        SchemaError::Invalid {
            file: self.file.to_string(),
            line: self.line,
            column: self.column,
            problem: problem.into(),
            expected: expected.into(),
        }
    }
}
