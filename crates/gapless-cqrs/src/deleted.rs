//! [`DeletedEvents`]: what stands for the events of a directory that are deleted, looked at from outside.

use crate::error::BaseFileError;
use crate::names::TypeNames;
use crate::store::{BASE_FOLDER, Base};
use gapless_client::stream_layout::StreamLayout;
use gapless_engine::directory_consistency::is_member;
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
    /// The file is damaged, or of another stream or history; it is missing, and the journal of a bus begins late.
    pub fn look(directory: &Path) -> Result<Option<Self>, BaseFileError> {
        Ok(base_in(directory)?.as_ref().map(Self::of))
    }

    /// As [`DeletedEvents::look`], and reads all of the file.
    ///
    /// # Errors
    /// As for [`DeletedEvents::look`].
    pub fn check(directory: &Path) -> Result<Option<Self>, BaseFileError> {
        let Some(base) = base_in(directory)? else { return Ok(None) };
        base.check()?;
        Ok(Some(Self::of(&base)))
    }

    fn of(base: &Base) -> Self {
        let Base { before, entries, length, .. } = *base;
        Self { before, aggregates: entries, file: base.path.clone(), file_bytes: length }
    }
}

/// The file, compared with the journal as far as that can be read.
fn base_in(directory: &Path) -> Result<Option<Base>, BaseFileError> {
    let layout = StreamLayout::new(directory);
    let newest = Base::newest(&directory.join(BASE_FOLDER), None)?;
    // The journal of what is no bus may begin anywhere, and a member's where the state begins that it has fetched.
    let is_of_bus = || directory.join(TypeNames::FILE_NAME).exists() && !is_member(&layout);
    if (newest.is_some() || is_of_bus())
        && let Err(error) = Base::beside(&layout.journal(), None)
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
    fn a_members_file_stands_for_no_events() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(BASE_FOLDER), "sealed 0011 12 3\n").unwrap();
        assert_eq!(DeletedEvents::look(directory.path()).unwrap(), None);
        assert_eq!(DeletedEvents::check(directory.path()).unwrap(), None);
    }
}
