//! A directory that a benchmark makes for itself, and removes.

use crate::{BenchError, Result};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A directory; removed with this value.
pub struct OwnDirectory(PathBuf);

impl OwnDirectory {
    /// Makes it in `parent`, empty: what a killed process of the same number has left is removed.
    pub fn create(parent: &Path, name: &str) -> Result<Self> {
        let path = parent.join(name);
        match std::fs::remove_dir_all(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => return Err(BenchError::io("remove", &path, source)),
            _ => {}
        }
        std::fs::create_dir(&path).map_err(|source| BenchError::io("create", &path, source))?;
        Ok(Self(path))
    }

    /// The same where `parent` need not be there.
    pub fn create_with_parent(parent: &Path, name: &str) -> Result<Self> {
        std::fs::create_dir_all(parent).map_err(|source| BenchError::io("create", parent, source))?;
        Self::create(parent, name)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        // A file that cannot be removed is left for the user to see; the figures are complete.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits until the file system of `directory` has written earlier data: floors, earlier rows and their removal would
/// otherwise be measured with the rows that follow, as stalls of a fifth of a second.
pub fn settle(directory: &Path) -> Result<()> {
    let failed = |source| BenchError::io("write out the file system of", directory, source);
    let opened = std::fs::File::open(directory).map_err(failed)?;
    rustix::fs::syncfs(&opened).map_err(|errno| failed(errno.into()))
}
