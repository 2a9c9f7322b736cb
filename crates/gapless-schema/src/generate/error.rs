//! [`SchemaError`]: what is wrong with a schema, and where.

use std::path::PathBuf;
use std::rc::Rc;

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

/// The text of a schema file.
#[derive(Debug)]
pub(crate) struct Source {
    pub name: String,
    pub text: String,
}

/// A place in a schema file. Line and column are counted when somebody wants to know them: to count them for every
/// element would take the square of the file's length.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub source: Rc<Source>,
    pub byte: usize,
}

impl Location {
    /// Line, from 1.
    pub(crate) fn line(&self) -> u32 {
        1 + self.before().bytes().filter(|byte| *byte == b'\n').count() as u32
    }

    /// Column in characters, from 1.
    fn column(&self) -> u32 {
        let before = self.before();
        1 + before[before.rfind('\n').map_or(0, |end| end + 1)..].chars().count() as u32
    }

    fn before(&self) -> &str {
        self.source.text.get(..self.byte).unwrap_or(&self.source.text)
    }

    pub(crate) fn error(&self, problem: impl Into<String>, expected: impl Into<String>) -> SchemaError {
        SchemaError::Invalid {
            file: self.source.name.clone(),
            line: self.line(),
            column: self.column(),
            problem: problem.into(),
            expected: expected.into(),
        }
    }
}
