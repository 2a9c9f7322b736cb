//! [`DeletedEvents`]: what stands for the events of a directory that are deleted, looked at from outside.

use crate::error::BaseFileError;
use crate::store::{BASE_FOLDER, Base};
use std::path::{Path, PathBuf};

/// The file that stands for events that are deleted. It cannot be made anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedEvents {
    /// Events before this sequence are deleted; the journal's segments go by and by.
    pub before: u64,
    /// So many aggregates have had some of them.
    pub aggregates: u64,
    /// The file.
    pub file: PathBuf,
    /// Its length, bytes.
    pub file_bytes: u64,
}

impl DeletedEvents {
    /// Looks into the directory of a stream; `None` if no events are deleted.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn look(directory: &Path) -> Result<Option<Self>, BaseFileError> {
        Ok(Base::newest(&directory.join(BASE_FOLDER), None)?.map(|base| Self::of(&base)))
    }

    /// As [`DeletedEvents::look`], and reads all of the file.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn check(directory: &Path) -> Result<Option<Self>, BaseFileError> {
        let Some(base) = Base::newest(&directory.join(BASE_FOLDER), None)? else { return Ok(None) };
        base.check()?;
        Ok(Some(Self::of(&base)))
    }

    fn of(base: &Base) -> Self {
        let Base { before, entries, length, .. } = *base;
        Self { before, aggregates: entries, file: base.path.clone(), file_bytes: length }
    }
}
