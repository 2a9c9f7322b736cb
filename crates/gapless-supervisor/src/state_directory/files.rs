//! Small files, never synced: their content is void after a reboot.

use crate::error::SupervisorError;
use gapless_agent::checked_file;
use gapless_agent::fault::crash_point;
use gapless_agent::folder::Folder;
use rustix::fs::{AtFlags, Gid, Mode, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

pub const PRIVATE_FILE: Mode = Mode::from_raw_mode(0o600);
/// An environment may have 2 MiB, and twice that as JSON.
const LENGTH_MAX: u64 = 8 << 20;
pub const NEW: &str = ".new";

/// Opens a file for reading, unless it is a link or could block; `None` if it does not exist.
pub fn open(path: &Path) -> Result<Option<File>, SupervisorError> {
    match checked_file::open(path) {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SupervisorError::io(format!("opening {}", path.display()))(error)),
    }
}

/// Opens or creates a file for writing without truncation, with exactly this mode.
pub fn open_to_write(path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, SupervisorError> {
    let opened = folder_of(path).and_then(|(folder, name)| open_in(&folder, name, flags, mode));
    opened.map(OwnedFd::from).map_err(SupervisorError::io(format!("opening {} for writing", path.display())))
}

fn open_in(folder: &Folder, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<File> {
    let file = folder.open_or_create_file(name, flags | OFlags::RDWR, mode)?;
    rustix::fs::fchmod(&file, mode)?;
    Ok(file)
}

/// Reads a file; `None` if it does not exist.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, SupervisorError> {
    let Some(file) = open(path)? else { return Ok(None) };
    let failed = SupervisorError::io(format!("reading {}", path.display()));
    checked_file::read_from(&file, LENGTH_MAX).map(Some).map_err(failed)
}

/// Reads a JSON file; `None` if it does not exist.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, SupervisorError> {
    let Some(bytes) = read(path)? else { return Ok(None) };
    let damaged = |error: serde_json::Error| SupervisorError::damaged(path, format!("it cannot be read: {error}"));
    serde_json::from_slice(&bytes).map(Some).map_err(damaged)
}

/// Replaces a file atomically; the temporary name has the process id, so that writers do not collide.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), SupervisorError> {
    let failed = SupervisorError::io(format!("writing {}", path.display()));
    let write = || {
        let (folder, name) = folder_of(path)?;
        let new = new_name(name);
        let written = write_new(&folder, &new, name, bytes);
        if written.is_err() {
            // A partial file would take space from the next attempt.
            let _absent = folder.remove(&new);
        }
        written
    };
    write().map_err(failed)
}

fn write_new(folder: &Folder, new: &OsStr, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    open_in(folder, new, OFlags::TRUNC, PRIVATE_FILE)?.write_all(bytes)?;
    crash_point("state_before_rename");
    if !folder.rename(new, name)? {
        return Err(ErrorKind::NotFound.into());
    }
    crash_point("state_renamed");
    Ok(())
}

/// Same as [`write`], with JSON.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), SupervisorError> {
    let text = serde_json::to_vec(value);
    let text = text.map_err(|error| SupervisorError::damaged(path, format!("it cannot be written: {error}")))?;
    write(path, &text)
}

/// Removes a file, if it exists.
pub fn remove(path: &Path) -> Result<(), SupervisorError> {
    absent(path, folder_of(path).and_then(|(folder, name)| folder.remove(name)))
}

/// Removes an empty directory, if it exists.
pub fn remove_directory(path: &Path) -> Result<(), SupervisorError> {
    let unlink = |(folder, name): (Folder, &OsStr)| Ok(rustix::fs::unlinkat(&folder, name, AtFlags::REMOVEDIR)?);
    absent(path, folder_of(path).and_then(unlink))
}

fn absent<T>(path: &Path, removed: io::Result<T>) -> Result<(), SupervisorError> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(SupervisorError::io(format!("removing {}", path.display()))(error))
        }
        _ => Ok(()),
    }
}

fn new_name(name: &OsStr) -> OsString {
    let mut new = name.to_owned();
    new.push(format!(".{}{NEW}", std::process::id()));
    new
}

fn folder_of(path: &Path) -> io::Result<(Folder, &OsStr)> {
    let name = path.file_name().ok_or(ErrorKind::InvalidFilename)?;
    Ok((Folder::open(path.parent().unwrap_or(Path::new("")))?, name))
}

/// Creates a directory, or adjusts an existing one, with exactly this mode and group.
pub fn make_directory(path: &Path, mode: Mode, group: Option<Gid>) -> Result<(), SupervisorError> {
    let failed = || SupervisorError::system(format!("making the directory {}", path.display()));
    let (folder, name) =
        folder_of(path).map_err(SupervisorError::io(format!("making the directory {}", path.display())))?;
    match rustix::fs::mkdirat(&folder, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(failed()(errno)),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&folder, name, flags, Mode::empty()).map_err(failed())?;
    let owner = rustix::fs::fstat(&opened).map_err(failed())?.st_uid;
    if owner != rustix::process::geteuid().as_raw() {
        return Err(SupervisorError::damaged(path, format!("it is of user {owner}")));
    }
    if group.is_some() {
        rustix::fs::fchown(&opened, None, group).map_err(failed())?;
    }
    rustix::fs::fchmod(&opened, mode).map_err(failed())
}

/// Gives the files with this prefix to a group, readable.
pub fn give_to_group(directory: &Path, name: &str, group: Gid) -> Result<(), SupervisorError> {
    let failed = || SupervisorError::io(format!("listing {}", directory.display()));
    let folder = Folder::open(directory).map_err(failed())?;
    for entry in std::fs::read_dir(directory).map_err(failed())?.flatten() {
        let is_meant = entry.file_name().as_encoded_bytes().starts_with(name.as_bytes());
        if !is_meant || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        if let Ok(Some(opened)) = folder.open_file(entry.file_name(), OFlags::RDONLY) {
            let failed = || SupervisorError::system(format!("giving {} to its group", entry.path().display()));
            rustix::fs::fchown(&opened, None, Some(group)).map_err(failed())?;
            rustix::fs::fchmod(&opened, Mode::from_raw_mode(0o640)).map_err(failed())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::FileType;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn writes_are_atomic_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!(read(&path).unwrap(), None);
        for text in ["one", "another, longer", ""] {
            write(&path, text.as_bytes()).unwrap();
            assert_eq!(read(&path).unwrap().unwrap(), text.as_bytes());
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the temporary file is gone");
    }

    #[test]
    fn links_of_other_users_are_refused() {
        const OTHER: u32 = 65_534;
        let parent = tempfile::tempdir().unwrap();
        let (secret, home) = (parent.path().join("secret"), parent.path().join("home"));
        std::fs::create_dir_all(secret.join("empty")).unwrap();
        std::fs::write(secret.join("file"), "kept").unwrap();
        std::fs::create_dir(&home).unwrap();
        std::os::unix::fs::symlink(&secret, home.join("run")).unwrap();
        for path in [&home, &home.join("run")] {
            if std::os::unix::fs::lchown(path, Some(OTHER), Some(OTHER)).is_err() {
                return println!("SKIPPED: only root can give links away");
            }
        }
        let run = home.join("run");
        let done = [write(&run.join("file"), b"new"), remove(&run.join("file")), remove_directory(&run.join("empty"))];
        for error in done.map(Result::unwrap_err) {
            assert!(error.to_string().contains("a link of user 65534 leads to"), "{error}");
        }
        assert_eq!(std::fs::read(secret.join("file")).unwrap(), b"kept");
        assert_eq!(std::fs::read_dir(&secret).unwrap().count(), 2);
    }

    #[test]
    fn full_disk_keeps_the_old_file() {
        let Some(disk) = gapless_testkit::folder::SmallDisk::new(64) else { return };
        let path = disk.path.join("file");
        write(&path, b"old").unwrap();
        let error = write(&path, &vec![1; 100_000]).unwrap_err();
        assert_eq!(error.errno(), Some(Errno::NOSPC), "{error}");
        assert_eq!(read(&path).unwrap().unwrap(), b"old");
        write(&path, b"new").unwrap();
        assert_eq!(read(&path).unwrap().unwrap(), b"new");
    }

    #[test]
    fn wrong_file_types_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        std::fs::write(&other, "{}").unwrap();
        let path = folder.path().join("file");
        let check = |what: &str| {
            let error = read_json::<u32>(&path).unwrap_err().to_string();
            assert!(error.contains(path.to_str().unwrap()), "{what}: {error}");
        };
        std::os::unix::fs::symlink(&other, &path).unwrap();
        check("a link");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        check("a directory");
        std::fs::remove_dir(&path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, PRIVATE_FILE, 0).unwrap();
        check("a pipe without a writer");
        std::fs::remove_file(&path).unwrap();
        for text in ["", "{", "null", "\"text\"", "\u{feff}1", &"[".repeat(100_000), "1 1", "-1"] {
            std::fs::write(&path, text).unwrap();
            check(&text.chars().take(20).collect::<String>());
        }
        File::create(&path).unwrap().set_len(LENGTH_MAX + 1).unwrap();
        check("a file that is too long");
    }
}
