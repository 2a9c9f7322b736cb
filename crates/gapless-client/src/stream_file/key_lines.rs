//! [`KeyLines`]: the line of each key of a file, so that what is refused later is refused where it stands.

use crate::ClientError;
use std::collections::BTreeMap;

/// Where the keys of a file stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyLines {
    name: String,
    /// By the full name of the key or table.
    lines: BTreeMap<String, usize>,
}

impl KeyLines {
    /// Of the file `name`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), lines: BTreeMap::new() }
    }

    /// `key`, by its full name, stands at `line`.
    pub fn insert(&mut self, key: String, line: usize) {
        self.lines.insert(key, line);
    }

    /// Whether `key`, by its full name, is there.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.lines.contains_key(key)
    }

    /// Refuses what is wrong with `key`, at its line: a value that does not go together with others. A key that is
    /// not there is shown at the innermost of its tables that is, or at the first line.
    #[must_use]
    pub fn refuse(&self, key: &str, reason: impl std::fmt::Display) -> ClientError {
        let ends = key.rmatch_indices('.').map(|(end, _)| end);
        let mut places = std::iter::once(key.len()).chain(ends).map(|end| &key[..end]);
        let line = places.find_map(|place| self.lines.get(place)).copied().unwrap_or(1);
        self.refuse_at(line, format!("{key}: {reason}"))
    }

    /// Refuses what stands at `line`.
    #[must_use]
    pub fn refuse_at(&self, line: usize, reason: String) -> ClientError {
        ClientError::Config { place: format!("{}:{line}", self.name), reason }
    }
}
