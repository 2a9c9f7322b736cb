//! From the text of a stream's file to its `StreamConfig`.

use super::{StreamConfig, checks, tables};
use gapless_config::{ConfigError, Document, Table, read_file};
use std::path::Path;

#[cfg(test)]
mod tests;

impl StreamConfig {
    /// A relative directory in the file is relative to the file.
    ///
    /// # Errors
    /// [`ConfigError::File`] if it cannot be read; as for [`StreamConfig::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::load_with(path, |_, _| Ok(())).map(|(config, ())| config)
    }

    /// `others` takes its own tables, see [`StreamConfig::load`].
    ///
    /// # Errors
    /// As for [`StreamConfig::load`], and those of `others`.
    pub fn load_with<T>(
        path: impl AsRef<Path>,
        others: impl FnOnce(&Document<'_>, &mut Table<'_>) -> Result<T, ConfigError>,
    ) -> Result<(Self, T), ConfigError> {
        let path = path.as_ref();
        let (mut config, found) = Self::parse_with(&read_file(path)?, &path.display().to_string(), others)?;
        if let (Some(directory), Some(parent)) = (&mut config.directory, path.parent()) {
            *directory = parent.join(&*directory);
        }
        Ok((config, found))
    }

    /// `name` is the file, for messages. A relative directory stays as it is.
    ///
    /// # Errors
    /// [`ConfigError::Refused`] names file, line, key and values. The text is not TOML, a key is unknown, or a value is
    /// wrong or contradicts another. The sequencer's options check the sequencer's limits.
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        Self::parse_with(text, name, |_, _| Ok(())).map(|(config, ())| config)
    }

    /// `others` takes its own tables, see [`StreamConfig::parse`].
    ///
    /// # Errors
    /// As for [`StreamConfig::parse`], and those of `others`.
    pub fn parse_with<T>(
        text: &str,
        name: &str,
        others: impl FnOnce(&Document<'_>, &mut Table<'_>) -> Result<T, ConfigError>,
    ) -> Result<(Self, T), ConfigError> {
        let document = Document::new(name, text);
        let mut file = document.tables()?;
        let mut config = tables::read(&mut file)?;
        let found = others(&document, &mut file)?;
        file.end()?;
        let lines = document.into_lines();
        checks::check(&config, &lines)?;
        config.lines = Some(lines);
        Ok((config, found))
    }
}
