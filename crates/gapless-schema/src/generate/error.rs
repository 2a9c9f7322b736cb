//! `SchemaError`: an error in a schema, with its place.

use std::path::PathBuf;
use std::rc::Rc;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The file cannot be read or written.
    #[error("{}: {source}; expected {expected}", file.display())]
    File { file: PathBuf, expected: &'static str, source: std::io::Error },
    /// The file is larger than any schema.
    #[error("{}: {found_bytes} bytes found, expected a schema of at most {limit_bytes} bytes", file.display())]
    TooLarge { file: PathBuf, found_bytes: u64, limit_bytes: u64 },
    #[error("{file}:{line}:{column}: {problem}; expected {expected}")]
    Invalid {
        file: String,
        line: u32,
        /// In characters, from 1.
        column: u32,
        problem: String,
        expected: String,
    },
}

#[derive(Debug)]
pub(crate) struct SchemaSource {
    pub name: String,
    pub text: String,
}

/// Line and column are computed on demand: for every element it would take time quadratic in the file's length.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub source: Rc<SchemaSource>,
    pub byte: usize,
}

impl Location {
    pub(crate) fn line(&self) -> u32 {
        1 + self.before().bytes().filter(|byte| *byte == b'\n').count() as u32
    }

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
