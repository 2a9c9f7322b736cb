//! [`FileReplacement`]: a small file's content is replaced as a whole. After a crash at any moment, of the process or of the
//! machine, the file has its old or its new content.
//!
//! ```text
//! begin        the new content goes into a temporary file, in the same directory
//! write, sync  and onto the device
//! put_in_place the temporary file gets the name, and the directory goes onto the device
//! ```
//!
//! The phases are apart so that a caller's crash points stand between them, with the caller's names: `in_state_write` and
//! `in_snapshot_write` before the sync, `before_snapshot_rename` before the new name. [`replace_file`] does all of them.
//! Segments get their names elsewhere: they replace nothing, and their marks decide what of them counts.

use std::ffi::OsString;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use gapless_agent::folder::Folder;
use rustix::fs::Mode;

use crate::disk::DiskWork;
use crate::options::Environment;

#[derive(Debug, thiserror::Error)]
#[error("its directory cannot be synced: {0}")]
struct FolderNotSynced(#[source] io::Error);

/// A file with the new content. Dropped before it is put in place, it is removed.
#[derive(Debug)]
pub struct FileReplacement {
    folder: Folder,
    name: OsString,
    temporary: OsString,
    file: File,
    environment: Option<Environment>,
    is_synced: bool,
    is_in_place: bool,
}

impl FileReplacement {
    /// Makes the file `temporary`, in the place of one that a crash has left there. Both paths are in one directory, whose user gets the
    /// file where this process may give it away. `mode` are its permissions, from which the process's mask is taken.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn begin(path: &Path, temporary: PathBuf, mode: u32) -> io::Result<Self> {
        debug_assert_eq!(path.parent(), temporary.parent(), "a name is changed inside one directory");
        let name = |path: &Path| path.file_name().map(ToOwned::to_owned).ok_or(io::ErrorKind::IsADirectory);
        let (name, temporary) = (name(path)?, name(&temporary)?);
        let folder = Folder::open(path.parent().unwrap_or(Path::new("")))?;
        let file = folder.create_file(&temporary, Mode::from_raw_mode(mode))?;
        folder.give(&file);
        Ok(Self { folder, name, temporary, file, environment: None, is_synced: false, is_in_place: false })
    }

    /// The same on a disk that may refuse.
    ///
    /// # Errors
    /// The disk has no room, or the file cannot be made.
    pub fn begin_on(environment: &Environment, path: &Path, temporary: PathBuf, mode: u32) -> io::Result<Self> {
        environment.ask(DiskWork::Allocate)?;
        let mut replacement = Self::begin(path, temporary, mode)?;
        replacement.environment = Some(environment.clone());
        Ok(replacement)
    }

    /// Gives it these permissions in the place of those that it was made with.
    ///
    /// # Errors
    /// The system's.
    pub fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        self.file.set_permissions(permissions)
    }

    /// Gives it the user and the group of another file.
    ///
    /// # Errors
    /// This process may not.
    pub fn give(&self, to: &Metadata) -> io::Result<()> {
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) == (to.uid(), to.gid()) {
            return Ok(());
        }
        fchown(&self.file, Some(to.uid()), Some(to.gid())).map_err(|error| {
            let reason = format!("only user {} of group {}, and root, may replace it: {error}", to.uid(), to.gid());
            io::Error::new(error.kind(), reason)
        })
    }

    /// Appends what there is of another file.
    ///
    /// # Errors
    /// The system's.
    pub fn copy_from(&mut self, mut file: &File) -> io::Result<u64> {
        self.is_synced = false;
        io::copy(&mut file, &mut self.file)
    }

    /// Puts what was written on the device.
    ///
    /// # Errors
    /// The device does not take it.
    pub fn sync(&mut self) -> io::Result<()> {
        self.environment.as_ref().map_or(Ok(()), |environment| environment.ask(DiskWork::Sync))?;
        self.file.sync_all()?;
        self.is_synced = true;
        Ok(())
    }

    /// Gives the file its name, and puts that on the device. The file comes back, open.
    ///
    /// # Errors
    /// The name cannot be given, or the directory cannot be synced; after the latter the file has the new content, which a
    /// power failure may take back.
    ///
    /// # Panics
    /// If it was not synced: a power failure would leave a name without a content.
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
            // The unfinished file is of no use; where it cannot be removed the next attempt writes over it.
            let _removed = self.folder.remove(&self.temporary);
        }
    }
}

/// Puts the names in `directory` on the device.
///
/// # Errors
/// The system's, with the directory's path.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    Folder::open(directory).and_then(|folder| folder.sync()).map_err(|error| {
        io::Error::new(error.kind(), format!("the directory {} cannot be synced: {error}", directory.display()))
    })
}

/// Replaces the content of the file at `path` by way of `temporary`, a name in the same directory.
///
/// # Errors
/// A full, failing or read-only disk. The old content stays, unless only the directory could not be synced.
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
    fn a_file_has_the_old_or_the_new_content() {
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
    fn a_disk_that_refuses_leaves_the_old_content() {
        #[derive(Debug)]
        struct Refuses(DiskWork);

        impl crate::disk::Disk for Refuses {
            fn ask(&self, work: DiskWork) -> io::Result<()> {
                if work == self.0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
            }
        }

        let directory = tempfile::tempdir().unwrap();
        let (path, temporary) = (directory.path().join("a"), directory.path().join("a.new"));
        replace_file(&path, temporary.clone(), b"old").unwrap();
        for work in [DiskWork::Allocate, DiskWork::Sync] {
            let disk: std::sync::Arc<dyn crate::disk::Disk> = std::sync::Arc::new(Refuses(work));
            let environment = Environment { disk: Some(disk), ..Environment::default() };
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
