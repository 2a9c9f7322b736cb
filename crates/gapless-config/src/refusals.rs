//! `ConfigErrors`: all errors of a file.

use crate::error::ConfigError;
use std::fmt;

/// At least one, by line. Displayed in one line.
#[derive(Debug)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// [`ConfigError::Refused`] with file and line each; or one [`ConfigError::File`] alone.
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

/// Collects errors, so that parsing continues after each, and keys with former names.
#[derive(Default)]
pub struct Refusals {
    errors: Vec<ConfigError>,
    former: Vec<ConfigError>,
}

impl Refusals {
    /// `None` after an error.
    pub fn keep<T>(&mut self, read: Result<T, ConfigError>) -> Option<T> {
        read.map_err(|error| self.errors.push(error)).ok()
    }

    pub fn optional<T>(&mut self, read: Result<Option<T>, ConfigError>) -> Option<T> {
        self.keep(read).flatten()
    }

    pub fn add(&mut self, error: ConfigError) {
        self.errors.push(error);
    }

    pub fn add_former(&mut self, notice: ConfigError) {
        self.former.push(notice);
    }

    pub fn extend(&mut self, errors: impl IntoIterator<Item = ConfigError>) {
        self.errors.extend(errors);
    }

    #[must_use]
    pub const fn count(&self) -> usize {
        self.errors.len()
    }

    /// One warning for all keys with former names, with their lines.
    pub fn warning(&mut self) -> Option<String> {
        self.former.sort_by_key(ConfigError::line);
        let (first, others) = self.former.split_first()?;
        let lines: Vec<String> = others.iter().filter_map(ConfigError::line).map(|line| line.to_string()).collect();
        let also = if lines.is_empty() { String::new() } else { format!(", also in line {}", lines.join(", ")) };
        Some(format!("{first}{also}"))
    }

    /// Returns `read` if there are no errors.
    ///
    /// # Errors
    /// All that were collected.
    pub fn or<T>(mut self, read: T) -> Result<T, ConfigErrors> {
        if self.errors.is_empty() {
            return Ok(read);
        }
        self.errors.sort_by_key(ConfigError::line);
        Err(ConfigErrors(self.errors))
    }
}
