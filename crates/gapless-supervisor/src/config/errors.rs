//! [`ConfigErrors`]: all errors of a configuration file. [`Refusals`]: collects them. [`Unread`]: a process with
//! errors.

use super::process::Dependency;
use gapless_client::ClientError;
use std::fmt;

/// All errors of a configuration file, at least one, in the order of lines. Displayed in one line.
#[derive(Debug)]
pub struct ConfigErrors(Vec<ClientError>);

impl ConfigErrors {
    /// Single errors: [`ClientError::Config`] with file and line; or one [`ClientError::File`] alone.
    pub fn iter(&self) -> impl Iterator<Item = &ClientError> {
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

impl From<ClientError> for ConfigErrors {
    fn from(error: ClientError) -> Self {
        Self(vec![error])
    }
}

/// Collects errors, so that parsing continues after each.
#[derive(Default)]
pub(super) struct Refusals(Vec<ClientError>);

impl Refusals {
    pub fn keep<T>(&mut self, read: Result<T, ClientError>) -> Option<T> {
        read.map_err(|error| self.0.push(error)).ok()
    }

    /// The same for an optional value.
    pub fn optional<T>(&mut self, read: Result<Option<T>, ClientError>) -> Option<T> {
        self.keep(read).flatten()
    }

    pub fn add(&mut self, error: ClientError) {
        self.0.push(error);
    }

    pub fn extend(&mut self, errors: impl IntoIterator<Item = ClientError>) {
        self.0.extend(errors);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns `read` if there are no errors.
    pub fn or<T>(mut self, read: T) -> Result<T, ConfigErrors> {
        if self.0.is_empty() {
            return Ok(read);
        }
        self.0.sort_by_key(line);
        Err(ConfigErrors(self.0))
    }
}

/// Line of an error, from its place `FILE:LINE`.
fn line(error: &ClientError) -> Option<u64> {
    match error {
        ClientError::Config { place, .. } => place.rsplit_once(':')?.1.parse().ok(),
        _ => None,
    }
}

pub(super) struct Unread {
    pub name: String,
    pub after: Vec<Dependency>,
}
