//! Lines of keys, so that a later refusal names the right one.

use crate::error::ConfigError;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyLines {
    name: String,
    /// Line by the full name of the key or table.
    lines: BTreeMap<String, usize>,
}

impl KeyLines {
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), lines: BTreeMap::new() }
    }

    /// Adds `key`, by its full name, at `line`.
    pub fn insert(&mut self, key: String, line: usize) {
        self.lines.insert(key, line);
    }

    /// Whether `key`, by its full name, exists.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.lines.contains_key(key)
    }

    /// Error at the line of `key`, for contradicting values; a missing key has the line of its innermost table, or the
    /// first.
    #[must_use]
    pub fn refuse(&self, key: &str, reason: impl std::fmt::Display) -> ConfigError {
        let ends = key.rmatch_indices('.').map(|(end, _)| end);
        let mut places = std::iter::once(key.len()).chain(ends).map(|end| &key[..end]);
        let line = places.find_map(|place| self.lines.get(place)).copied().unwrap_or(1);
        self.refuse_at(line, format!("{key}: {reason}"))
    }

    #[must_use]
    pub fn refuse_at(&self, line: usize, reason: String) -> ConfigError {
        ConfigError::Refused { place: format!("{}:{line}", self.name), reason }
    }
}
