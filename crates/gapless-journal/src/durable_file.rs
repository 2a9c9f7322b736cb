//! [`FileReplacement`]: replaces the whole content of a small file atomically. After a crash of the process or the
//! machine, the file has its old or its new content.
//!
//! ```text
//! begin        creates a temporary file in the same directory
//! write, sync  writes the new content and syncs it to the device
//! put_in_place renames the temporary file and syncs the directory
//! ```
//!
//! The phases are separate so that callers can place their crash points between them: `in_state_write` and
//! `in_snapshot_write` before the sync, `before_snapshot_rename` before the rename. Segments are named elsewhere: they
//! replace no file, and their marks decide which bytes count.

use std::ffi::OsString;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use gapless_agent::folder::Folder;
use rustix::fs::Mode;

use crate::disk::DiskOperation;
use crate::options::JournalEnvironment;

#[derive(Debug, thiserror::Error)]
#[error("its directory cannot be synced: {0}")]
struct FolderNotSynced(#[source] io::Error);

/// Removed if dropped before it is put in place.
#[derive(Debug)]
pub struct FileReplacement {
    folder: Folder,
    name: OsString,
    temporary: OsString,
    file: File,
    environment: Option<JournalEnvironment>,
    is_synced: bool,
    is_in_place: bool,
}

impl FileReplacement {
    /// Creates the file `temporary`, replacing one left by a crash. Both paths are in one directory, whose owner gets
    /// the file if possible. `mode` is subject to the umask.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn begin(path: &Path, temporary: PathBuf, mode: u32) -> io::Result<Self> {
        debug_assert_eq!(path.parent(), temporary.parent(), "a name is changed inside one directory");
        let name = |path: &Path| path.file_name().map(ToOwned::to_owned).ok_or(io::ErrorKind::IsADirectory);
        let (name, temporary) = (name(path)?, name(&temporary)?);
        let folder = Folder::open(path.parent().unwrap_or(Path::new("")))?;
        let file = folder.create_file(&temporary, Mode::from_raw_mode(mode))?;
        folder.give(&file);
        Ok(Self { folder, name, temporary, file, environment: None, is_synced: false, is_in_place: false })
    }

    /// On a disk that may refuse.
    ///
    /// # Errors
    /// The disk has no space, or the file cannot be created.
    pub fn begin_on(environment: &JournalEnvironment, path: &Path, temporary: PathBuf, mode: u32) -> io::Result<Self> {
        environment.check_disk(DiskOperation::Allocate)?;
        let mut replacement = Self::begin(path, temporary, mode)?;
        replacement.environment = Some(environment.clone());
        Ok(replacement)
    }

    /// Replaces the file's permissions.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        self.file.set_permissions(permissions)
    }

    /// Sets user and group.
    ///
    /// # Errors
    /// The process lacks the permission.
    pub fn copy_owner(&self, from: &Metadata) -> io::Result<()> {
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) == (from.uid(), from.gid()) {
            return Ok(());
        }
        fchown(&self.file, Some(from.uid()), Some(from.gid())).map_err(|error| {
            let reason = format!("only user {} of group {}, and root, may replace it: {error}", from.uid(), from.gid());
            io::Error::new(error.kind(), reason)
        })
    }

    /// Appends the contents of another file.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn copy_from(&mut self, mut file: &File) -> io::Result<u64> {
        self.is_synced = false;
        io::copy(&mut file, &mut self.file)
    }

    /// Syncs the written content to the device.
    ///
    /// # Errors
    /// The sync fails.
    pub fn sync(&mut self) -> io::Result<()> {
        self.environment.as_ref().map_or(Ok(()), |environment| environment.check_disk(DiskOperation::Sync))?;
        self.file.sync_all()?;
        self.is_synced = true;
        Ok(())
    }

    /// Renames the file, syncs the directory, and returns the open file.
    ///
    /// # Errors
    /// The rename fails, or the directory cannot be synced. After the latter the file has the new content, which a
    /// power failure may undo.
    ///
    /// # Panics
    /// The content was not synced: a power failure would leave a name without content.
    pub fn put_in_place(mut self) -> io::Result<File> {
        assert!(self.is_synced, "a file is synced before it gets its name");
        let file = self.file.try_clone()?;
        if !self.folder.rename(&self.temporary, &self.name)? {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the new file has gone"));
        }
        self.is_in_place = true;
        self.folder.sync().map_err(|error| io::Error::new(error.kind(), FolderNotSynced(error)))?;
        Ok(file)
    }
}

impl Write for FileReplacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_synced = false;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for FileReplacement {
    fn drop(&mut self) {
        if !self.is_in_place {
            // If the file cannot be removed, the next attempt overwrites it.
            let _removed = self.folder.remove(&self.temporary);
        }
    }
}

/// Syncs the names in `directory` to the device.
///
/// # Errors
/// As of the system, with the directory's path.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    Folder::open(directory).and_then(|folder| folder.sync()).map_err(|error| {
        io::Error::new(error.kind(), format!("the directory {} cannot be synced: {error}", directory.display()))
    })
}

/// `temporary`: a name in the same directory.
///
/// # Errors
/// A full, failing or read-only disk. The old content stays, unless only the sync of the directory failed.
pub fn replace_file(path: &Path, temporary: PathBuf, content: &[u8]) -> io::Result<()> {
    let mut replacement = FileReplacement::begin(path, temporary, 0o600)?;
    replacement.write_all(content)?;
    replacement.sync()?;
    replacement.put_in_place().map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn file_has_old_or_new_content() {
        let directory = tempfile::tempdir().unwrap();
        let (path, temporary) = (directory.path().join("a"), directory.path().join("a.new"));
        replace_file(&path, temporary.clone(), b"old").unwrap();
        std::fs::write(&temporary, b"a longer one that a crash has left").unwrap();
        let mut replacement = FileReplacement::begin(&path, temporary.clone(), 0o600).unwrap();
        replacement.write_all(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        replacement.sync().unwrap();
        drop(replacement.put_in_place().unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        drop(FileReplacement::begin(&path, temporary.clone(), 0o600).unwrap());
        assert_eq!((std::fs::read(&path).unwrap(), temporary.exists()), (b"new".to_vec(), false));
    }

    #[test]
    fn failed_write_keeps_old_content() {
        #[derive(Debug)]
        struct Refuses(DiskOperation);

        impl crate::disk::Disk for Refuses {
            fn check(&self, operation: DiskOperation) -> io::Result<()> {
                if operation == self.0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
            }
        }

        let directory = tempfile::tempdir().unwrap();
        let (path, temporary) = (directory.path().join("a"), directory.path().join("a.new"));
        replace_file(&path, temporary.clone(), b"old").unwrap();
        for operation in [DiskOperation::Allocate, DiskOperation::Sync] {
            let disk: std::sync::Arc<dyn crate::disk::Disk> = std::sync::Arc::new(Refuses(operation));
            let environment = JournalEnvironment { disk: Some(disk), ..JournalEnvironment::default() };
            let replaced =
                FileReplacement::begin_on(&environment, &path, temporary.clone(), 0o600).and_then(|mut file| {
                    file.write_all(b"new")?;
                    file.sync()?;
                    file.put_in_place()
                });
            assert_eq!(replaced.unwrap_err().kind(), io::ErrorKind::StorageFull);
            assert_eq!((std::fs::read(&path).unwrap(), temporary.exists()), (b"old".to_vec(), false));
        }
    }
}
