//! The counters file of its owner, from creation to removal. Ownership is an advisory lock on the open file; a file
//! without a lock is stale. A new file is completed under another name and then renamed, so no reader sees a partial
//! one.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, linkat, renameat_with, unlinkat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::descriptor;
use crate::error::Error;
use crate::file_lock;
use crate::folder::Folder;

const TRIES_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct OwnedFile {
    path: PathBuf,
    file: File,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilePresence {
    Present { length: u64 },
    Missing,
}

impl OwnedFile {
    pub(crate) fn create(path: &Path, contents: &[u8]) -> Result<Self, Error> {
        let folder = folder_of(path).map_err(|source| io_error(path, "create it", source))?;
        let name = path.file_name().unwrap_or_default();
        let draft = DraftFile::write(&folder, path, contents)?;
        for _ in 0..TRIES_MAX {
            match place_if_free(&folder, &draft.name, name) {
                Ok(()) => return Ok(draft.placed(path)),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(io_error(path, "put it in place", errno.into())),
            }
            let Some(stale) = lock_stale(&folder, path)? else { continue };
            // We hold the lock of the stale file, so no other process is replacing it.
            folder.rename(&draft.name, name).map_err(|source| io_error(path, "replace it", source))?;
            drop(stale);
            return Ok(draft.placed(path));
        }
        let source = io::Error::other("other processes keep creating and removing it");
        Err(io_error(path, "put it in place", source))
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn error(&self, action: &'static str, source: io::Error) -> Error {
        io_error(&self.path, action, source)
    }

    pub(crate) fn presence(&self) -> Result<FilePresence, Error> {
        let ours = self.file.metadata().map_err(|source| self.error("look at it", source))?;
        match std::fs::symlink_metadata(&self.path) {
            Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => {
                Ok(FilePresence::Present { length: ours.len() })
            }
            Ok(_) => Err(self.error("write it", io::Error::other("something else is in its place"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FilePresence::Missing),
            Err(source) => Err(self.error("look at it", source)),
        }
    }

    pub(crate) fn write_at(&self, bytes: &[u8], position: usize) -> Result<(), Error> {
        check_length(&self.path, (position + bytes.len()) as u64)?;
        self.file.write_all_at(bytes, position as u64).map_err(|source| self.error("write it", source))
    }

    pub(crate) fn set_length(&self, length: u64) -> Result<(), Error> {
        check_length(&self.path, length)?;
        self.file.set_len(length).map_err(|source| self.error("set the length of it", source))
    }
}

impl Drop for OwnedFile {
    fn drop(&mut self) {
        // Only our own: another process may have replaced it.
        let name = self.path.file_name().unwrap_or_default();
        if let Ok(folder) = folder_of(&self.path)
            && folder.holds(name, &self.file).unwrap_or(false)
        {
            let _ = folder.remove(name);
        }
    }
}

/// Beyond this process's limit the kernel would send a signal that ends the process.
fn check_length(path: &Path, length: u64) -> Result<(), Error> {
    match getrlimit(Resource::Fsize).current {
        Some(most) if most < length => Err(io_error(path, "write it", io::ErrorKind::FileTooLarge.into())),
        _ => Ok(()),
    }
}

const MODE: u32 = 0o600;

struct DraftFile<'a> {
    folder: &'a Folder,
    name: OsString,
    file: Option<File>,
}

impl<'a> DraftFile<'a> {
    fn write(folder: &'a Folder, target: &Path, contents: &[u8]) -> Result<Self, Error> {
        check_length(target, contents.len() as u64)?;
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        let mut name = target.file_name().unwrap_or_default().to_owned();
        let number = DRAFTS.fetch_add(1, Ordering::SeqCst);
        name.push(format!(".{}.{number}.new", std::process::id()));
        let file = folder.create_file(&name, Mode::from_raw_mode(MODE));
        let mut file = file.map_err(|source| io_error(target, "create it", source))?;
        let mut draft = Self { folder, name, file: None };
        // Independent of the umask: other processes of this user read it.
        file.set_permissions(Permissions::from_mode(MODE))
            .map_err(|source| io_error(target, "set its mode", source))?;
        // Written, not left as a hole: a full disk is an error here instead of a signal later.
        file.write_all(contents).map_err(|source| io_error(target, "write it", source))?;
        file_lock::try_lock(&file).map_err(|source| io_error(target, "lock it", source))?;
        draft.file = Some(file);
        Ok(draft)
    }

    fn placed(mut self, path: &Path) -> OwnedFile {
        let file = self.file.take().expect("a draft holds its file until it is placed");
        self.name = OsString::new();
        OwnedFile { path: path.to_owned(), file }
    }
}

impl Drop for DraftFile<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            let _ = self.folder.remove(&self.name);
        }
    }
}

fn lock_stale(folder: &Folder, path: &Path) -> Result<Option<File>, Error> {
    let name = path.file_name().unwrap_or_default();
    let opened = folder.open_file(name, OFlags::RDONLY);
    let Some(file) = opened.map_err(|source| io_error(path, "open the file that is there", source))? else {
        return Ok(None);
    };
    let mut header = [0; descriptor::HEADER_LENGTH];
    let length = rustix::io::pread(&file, &mut header, 0)
        .map_err(|errno| io_error(path, "read the file that is there", errno.into()))?;
    // Left by a power failure.
    let is_blank = header.iter().all(|byte| *byte == 0);
    if !is_blank && (length < header.len() || header[..descriptor::MAGIC.len()] != descriptor::MAGIC) {
        return Err(Error::CountersDamaged {
            path: path.to_owned(),
            position: 0,
            expected: "a counters file, which may be replaced".to_owned(),
            found: "another file, which is left alone".to_owned(),
        });
    }
    if !file_lock::try_lock(&file).map_err(|source| io_error(path, "lock the file that is there", source))? {
        let at = descriptor::PID_OFFSET;
        let pid = u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        return Err(Error::CountersInUse { path: path.to_owned(), pid });
    }
    // The file may have been replaced before we had the lock.
    match folder.holds(name, &file) {
        Ok(true) => Ok(Some(file)),
        Ok(false) => Ok(None),
        Err(source) => Err(io_error(path, "look at the file that is there", source)),
    }
}

fn place_if_free(folder: &Folder, draft: &OsStr, name: &OsStr) -> Result<(), Errno> {
    match renameat_with(folder, draft, folder, name, RenameFlags::NOREPLACE) {
        // A file system without this kind of rename has hard links.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            linkat(folder, draft, folder, name, AtFlags::empty())?;
            unlinkat(folder, draft, AtFlags::empty())
        }
        result => result,
    }
}

fn folder_of(path: &Path) -> io::Result<Folder> {
    Folder::open(path.parent().unwrap_or(Path::new("")))
}

fn io_error(path: &Path, action: &'static str, source: io::Error) -> Error {
    Error::CountersIo { path: path.to_owned(), action, source }
}
