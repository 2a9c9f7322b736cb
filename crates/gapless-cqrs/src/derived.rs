//! `DerivedFiles`: files next to the journal of a command bus that are derived from it, the index and the snapshots of
//! aggregates.

use crate::directory::{EventDirectory, EventDirectoryError};
use crate::snapshots::SNAPSHOTS_FOLDER;
use crate::store::INDEX_FOLDER;
use gapless_agent::folder::Folder;
use std::io;
use std::path::{Path, PathBuf};

const FOLDERS: [&str; 2] = [INDEX_FOLDER, SNAPSHOTS_FOLDER];

/// Files derived from the journal: index and snapshots of aggregates. The next host rebuilds removed ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DerivedFiles {
    /// Valid index files: intact, and of the journal's history.
    pub index_files: usize,
    /// Positions in them.
    pub positions: u64,
    /// Last indexed sequence; 0 without files.
    pub last_sequence: u64,
    /// Invalid index files, with reasons.
    pub unusable: Vec<(PathBuf, String)>,
    /// Snapshot files, checked when they are used.
    pub states: usize,
}

impl DerivedFiles {
    /// Whether a stream's directory has any.
    #[must_use]
    pub fn exist(directory: &Path) -> bool {
        !folders(directory).is_empty()
    }

    /// Reads all of the index; `None` without files.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn read(directory: &EventDirectory) -> Result<Option<Self>, EventDirectoryError> {
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

    /// Removes the files of a stream without a running host; returns the folders.
    ///
    /// # Errors
    /// A folder cannot be removed.
    pub fn remove(directory: &Path) -> Result<Vec<PathBuf>, EventDirectoryError> {
        let mut removed = Vec::new();
        // One handle for all, so that a directory put in its place by another user meanwhile is not touched.
        let failed = |path: PathBuf| move |error| EventDirectoryError::System { path, error };
        let folder = Folder::open(directory).map_err(failed(directory.to_owned()))?;
        for name in FOLDERS {
            let path = directory.join(name);
            if folder.remove_tree(name).map_err(failed(path.clone()))? {
                removed.push(path);
            }
        }
        Ok(removed)
    }
}

fn folders(directory: &Path) -> Vec<PathBuf> {
    FOLDERS.map(|name| directory.join(name)).into_iter().filter(|path| path.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, lchown, symlink};

    #[test]
    fn links_are_not_followed_to_remove() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["home/bank/index", "home/bank/aggregates", "private/bank/index"] {
            std::fs::create_dir_all(at(folder)).unwrap();
            std::fs::write(at(folder).join("file"), "").unwrap();
        }
        let own = [at("home/bank/index"), at("home/bank/aggregates")];
        assert_eq!(DerivedFiles::remove(&at("home/bank")).unwrap(), own);
        assert!(DerivedFiles::remove(&at("home/bank")).unwrap().is_empty() && own.iter().all(|path| !path.exists()));
        symlink(at("private/bank"), at("home/link")).unwrap();
        if chown(at("home"), Some(12_345), Some(12_345)).is_err() {
            return println!("SKIPPED: only root can give files away");
        }
        lchown(at("home/link"), Some(12_345), Some(12_345)).unwrap();
        DerivedFiles::remove(&at("home/link")).unwrap_err();
        assert!(at("private/bank/index/file").exists());
    }
}
