//! [`DerivedFiles`]: what lies beside the journal of a command bus and is made of it alone, the index and the states of aggregates: looked at, and
//! removed. The next host makes it anew.

use crate::directory::{EventDirectory, EventDirectoryError};
use crate::snapshots::SNAPSHOTS_FOLDER;
use crate::store::INDEX_FOLDER;
use std::io;
use std::path::{Path, PathBuf};

/// The findings of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DerivedFiles {
    /// Files of the index that are whole, as all before them, and of the journal's history.
    pub index_files: usize,
    /// The positions in them.
    pub positions: u64,
    /// Everything up to here is in them; 0 of none.
    pub last_sequence: u64,
    /// Files of the index that cannot be used, and why.
    pub unusable: Vec<(PathBuf, String)>,
    /// Files with states of aggregates. They are looked at when they are used.
    pub states: usize,
}

impl DerivedFiles {
    /// Whether there are any in the directory of a stream.
    #[must_use]
    pub fn are_there(directory: &Path) -> bool {
        !folders(directory).is_empty()
    }

    /// Looks at them, and reads all of the index; `None` if there are none.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn look(directory: &EventDirectory) -> Result<Option<Self>, EventDirectoryError> {
        let folders = folders(directory.path());
        if folders.is_empty() {
            return Ok(None);
        }
        let mut index = directory.index(&mut directory.reader())?;
        index.check();
        let (index_files, positions, _) = index.size();
        let last_sequence = index.last_sequence();
        let mut found = Self { index_files, positions, last_sequence, unusable: index.unusable, ..Self::default() };
        let path = directory.path().join(SNAPSHOTS_FOLDER);
        found.states = match std::fs::read_dir(&path) {
            Ok(entries) => entries.count(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(EventDirectoryError::System { path, error }),
        };
        Ok(Some(found))
    }

    /// Removes them from the directory of a stream, where no host runs; which folders there were.
    ///
    /// # Errors
    /// A folder that cannot be removed.
    pub fn remove(directory: &Path) -> Result<Vec<PathBuf>, EventDirectoryError> {
        let folders = folders(directory);
        for path in &folders {
            std::fs::remove_dir_all(path).map_err(|error| EventDirectoryError::System { path: path.clone(), error })?;
        }
        Ok(folders)
    }
}

fn folders(directory: &Path) -> Vec<PathBuf> {
    [INDEX_FOLDER, SNAPSHOTS_FOLDER].map(|name| directory.join(name)).into_iter().filter(|path| path.is_dir()).collect()
}
