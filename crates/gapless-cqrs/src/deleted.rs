//! [`DeletedEvents`]: what stands for the events of a directory that are deleted, looked at from outside.

use crate::error::BaseFileError;
use crate::names::TypeNames;
use crate::store::{BASE_FOLDER, Base};
use gapless_client::stream_layout::StreamLayout;
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

    /// As [`DeletedEvents::look`], and reads all of the file, and whether the journal is the one that it is of, as far as that can be read.
    ///
    /// # Errors
    /// The file is damaged, or of another stream or history; it is missing, and the journal of a bus begins late.
    pub fn check(directory: &Path) -> Result<Option<Self>, BaseFileError> {
        let newest = Base::newest(&directory.join(BASE_FOLDER), None)?;
        // The journal of what is no bus may begin anywhere.
        if (newest.is_some() || directory.join(TypeNames::FILE_NAME).exists())
            && let Err(error) = Base::beside(&StreamLayout::new(directory).journal(), None)
            && let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<BaseFileError>())
        {
            return Err(error.clone());
        }
        let Some(base) = newest else { return Ok(None) };
        base.check()?;
        Ok(Some(Self::of(&base)))
    }

    fn of(base: &Base) -> Self {
        let Base { before, entries, length, .. } = *base;
        Self { before, aggregates: entries, file: base.path.clone(), file_bytes: length }
    }
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
