//! `ConfigError`, the error of every configuration file.

use gapless_agent::regular_file::read_text;
use std::io;
use std::path::Path;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read. Check the path and the permissions.
    #[error("reading {path}: {source}")]
    File { path: String, source: io::Error },
    /// The text is not TOML, a key is unknown, or a value is not allowed. Correct the named line.
    #[error("{place}: {reason}")]
    Refused {
        /// File and line.
        place: String,
        /// Key, found value and allowed values.
        reason: String,
    },
}

impl ConfigError {
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        match self {
            Self::Refused { place, .. } => place.rsplit_once(':')?.1.parse().ok(),
            Self::File { .. } => None,
        }
    }
}

/// A regular file of at most 1 MiB.
///
/// # Errors
/// [`ConfigError::File`].
pub fn read_file(path: &Path) -> Result<String, ConfigError> {
    read_text(path).map_err(|source| ConfigError::File { path: path.display().to_string(), source })
}
