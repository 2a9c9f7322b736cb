//! [`ConfigErrors`]: everything that is wrong in a file; [`Refusals`]: what has been found of it so far; [`Unread`]: a process that
//! something is wrong with.

use super::process::Dependency;
use gapless_client::ClientError;
use std::fmt;

/// Everything that is wrong in the file of a supervisor, in the order of its lines, at least one thing. As text in one line.
#[derive(Debug)]
pub struct ConfigErrors(Vec<ClientError>);

impl ConfigErrors {
    /// Each by itself: [`ClientError::Config`] with file and line, or [`ClientError::File`], which is the only one then.
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

/// What is wrong, as far as it was found: reading goes on behind it.
#[derive(Default)]
pub(super) struct Refusals(Vec<ClientError>);

impl Refusals {
    /// What was read; of what is wrong, none.
    pub fn keep<T>(&mut self, read: Result<T, ClientError>) -> Option<T> {
        read.map_err(|error| self.0.push(error)).ok()
    }

    /// What was read of a key that need not be there; none, too, if it is wrong.
    pub fn optional<T>(&mut self, read: Result<Option<T>, ClientError>) -> Option<T> {
        self.keep(read).flatten()
    }

    /// This is wrong.
    pub fn add(&mut self, error: ClientError) {
        self.0.push(error);
    }

    /// These are wrong, if any.
    pub fn extend(&mut self, errors: impl IntoIterator<Item = ClientError>) {
        self.0.extend(errors);
    }

    /// How much was found so far.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// `read`, if nothing is wrong.
    pub fn or<T>(mut self, read: T) -> Result<T, ConfigErrors> {
        if self.0.is_empty() {
            return Ok(read);
        }
        self.0.sort_by_key(line);
        Err(ConfigErrors(self.0))
    }
}

/// The line of an error: the number behind its file.
fn line(error: &ClientError) -> Option<u64> {
    match error {
        ClientError::Config { place, .. } => place.rsplit_once(':')?.1.parse().ok(),
        _ => None,
    }
}

/// A process that something is wrong with.
pub(super) struct Unread {
    pub name: String,
    /// What it is after, as far as that could be read.
    pub after: Vec<Dependency>,
}
