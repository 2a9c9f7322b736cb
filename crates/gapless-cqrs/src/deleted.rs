//! `DeletedEvents`: the file that replaces deleted events of a directory, read from outside.

use crate::error::BaseFileError;
use crate::names::TypeNames;
use crate::store::{BASE_FOLDER, BaseFile};
use gapless_client::stream_layout::StreamLayout;
use gapless_engine::directory_consistency::is_member;
use std::path::{Path, PathBuf};

/// Base file, which replaces deleted events and cannot be rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedEvents {
    /// Earlier events are deleted; the journal's segments follow gradually.
    pub before: u64,
    /// Aggregates with deleted events.
    pub aggregates: u64,
    pub file: PathBuf,
    /// Length of the file, bytes.
    pub file_bytes: u64,
}

impl DeletedEvents {
    /// Reads the base of a stream's directory; `None` if no events are deleted.
    ///
    /// # Errors
    /// The file is damaged, of another stream or history, or missing although the journal of a bus begins later than at
    /// 1.
    pub fn read(directory: &Path) -> Result<Option<Self>, BaseFileError> {
        Ok(base_in(directory)?.as_ref().map(Self::of))
    }

    /// [`DeletedEvents::read`] with a check of the whole file.
    ///
    /// # Errors
    /// The same as for [`DeletedEvents::read`].
    pub fn check(directory: &Path) -> Result<Option<Self>, BaseFileError> {
        let Some(base) = base_in(directory)? else { return Ok(None) };
        base.check()?;
        Ok(Some(Self::of(&base)))
    }

    fn of(base: &BaseFile) -> Self {
        let BaseFile { before, entries, length, .. } = *base;
        Self { before, aggregates: entries, file: base.path.clone(), file_bytes: length }
    }
}

fn base_in(directory: &Path) -> Result<Option<BaseFile>, BaseFileError> {
    let layout = StreamLayout::new(directory);
    let newest = BaseFile::newest(&directory.join(BASE_FOLDER), None)?;
    // The journal of another kind of service may begin anywhere, and that of a member after the state that it has
    // fetched.
    let is_of_bus = || directory.join(TypeNames::FILE_NAME).exists() && !is_member(&layout);
    if (newest.is_some() || is_of_bus())
        && let Err(error) = BaseFile::next_to(&layout.journal(), None)
        && let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<BaseFileError>())
    {
        return Err(error.clone());
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_file_is_no_base() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(BASE_FOLDER), "sealed 0011 12 3\n").unwrap();
        assert_eq!(DeletedEvents::read(directory.path()).unwrap(), None);
        assert_eq!(DeletedEvents::check(directory.path()).unwrap(), None);
    }
}
