//! [`ConfigErrors`]: all errors of a file. [`Refusals`]: collects them.

use crate::error::ConfigError;
use std::fmt;

/// All errors of a configuration file, at least one, in the order of lines. Displayed in one line.
#[derive(Debug)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// Single errors: [`ConfigError::Refused`] with file and line; or one [`ConfigError::File`] alone.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if index > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

/// Collects errors, so that parsing continues after each.
#[derive(Default)]
pub struct Refusals(Vec<ConfigError>);

impl Refusals {
    /// Value that was read; `None` after an error.
    pub fn keep<T>(&mut self, read: Result<T, ConfigError>) -> Option<T> {
        read.map_err(|error| self.0.push(error)).ok()
    }

    /// The same for an optional value.
    pub fn optional<T>(&mut self, read: Result<Option<T>, ConfigError>) -> Option<T> {
        self.keep(read).flatten()
    }

    pub fn add(&mut self, error: ConfigError) {
        self.0.push(error);
    }

    pub fn extend(&mut self, errors: impl IntoIterator<Item = ConfigError>) {
        self.0.extend(errors);
    }

    #[must_use]
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns `read` if there are no errors.
    ///
    /// # Errors
    /// All that were collected.
    pub fn or<T>(mut self, read: T) -> Result<T, ConfigErrors> {
        if self.0.is_empty() {
            return Ok(read);
        }
        self.0.sort_by_key(ConfigError::line);
        Err(ConfigErrors(self.0))
    }
}
