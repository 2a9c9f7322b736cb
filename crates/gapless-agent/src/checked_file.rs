//! Files by path, as by [`Folder`]: links and files placed by another user are not trusted, no operation blocks, every
//! read has a limit.

use crate::folder::Folder;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

const TRIES: u32 = 8;

/// Opens a file for reading.
///
/// # Errors
/// As for [`Folder::open_file`]; `NotFound` if it does not exist.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::RDONLY)
}

/// Opens a file for reading and writing.
///
/// # Errors
/// As for [`open`].
pub fn open_to_write(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::RDWR)
}

/// Opens a file for reading and writing, or creates it as [`create`] does.
///
/// # Errors
/// As for [`open`].
pub fn open_or_create(path: &Path, mode: u32) -> io::Result<File> {
    let (folder, name) = folder_of(path)?;
    for _ in 0..TRIES {
        if let Some(file) = folder.open_file(name, OFlags::RDWR)? {
            return Ok(file);
        }
        match folder.create_new_file(name, Mode::from_raw_mode(mode)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.inspect(|file| folder.give(file)),
        }
    }
    Err(io::Error::other("others remove it again and again"))
}

/// Creates a file for reading and writing, replacing one of that name. A link of that name is replaced, not followed;
/// other hard links keep the contents. In another user's folder the file is given to that user, if possible.
///
/// # Errors
/// An error of the operating system.
pub fn create(path: &Path, mode: u32) -> io::Result<File> {
    let (folder, name) = folder_of(path)?;
    folder.create_file(name, Mode::from_raw_mode(mode)).inspect(|file| folder.give(file))
}

/// Like [`create`], if no file of that name exists.
///
/// # Errors
/// As for [`create`].
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    let (folder, name) = folder_of(path)?;
    folder.create_new_file(name, Mode::from_raw_mode(mode)).inspect(|file| folder.give(file))
}

/// Reads a file of at most `bytes_max` bytes.
///
/// # Errors
/// As for [`open`]; `FileTooLarge` with both lengths.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_from(&open(path)?, bytes_max)
}

/// Reads a text file of at most `bytes_max` bytes.
///
/// # Errors
/// As for [`read`]; `InvalidData` if it is not UTF-8.
pub fn read_to_string(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, bytes_max)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8"))
}

/// Reads the rest of an open file, at most `bytes_max` bytes.
///
/// # Errors
/// As for [`read`].
pub fn read_from(file: &File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let too_long = |length: u64| {
        let text = format!("it has {length} bytes or more, and {bytes_max} at most are read");
        Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
    };
    let length = file.metadata()?.len();
    if length > bytes_max {
        return too_long(length);
    }
    let mut bytes = Vec::new();
    // The file may grow concurrently.
    let read = file.take(bytes_max + 1).read_to_end(&mut bytes)? as u64;
    if read > bytes_max { too_long(read) } else { Ok(bytes) }
}

/// Replaces a file by one with these bytes, first written under a name ending in `.new`. Syncs nothing.
///
/// # Errors
/// As for [`create`].
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let (folder, name) = folder_of(path)?;
    let mut unfinished = name.to_owned();
    unfinished.push(".new");
    let mut file = folder.create_file(&unfinished, Mode::from_raw_mode(mode))?;
    folder.give(&file);
    file.write_all(bytes)?;
    require_found(folder.rename(unfinished, name)?)
}

/// Removes a file or a link.
///
/// # Errors
/// As for [`Folder::open`] of its folder; `NotFound` if it does not exist.
pub fn remove(path: impl AsRef<Path>) -> io::Result<()> {
    let (folder, name) = folder_of(path.as_ref())?;
    require_found(folder.remove(name)?)
}

/// Removes a folder with its contents, a file or a link.
///
/// # Errors
/// As for [`Folder::remove_tree`] and [`remove`].
pub fn remove_tree(path: impl AsRef<Path>) -> io::Result<()> {
    let (folder, name) = folder_of(path.as_ref())?;
    require_found(folder.remove_tree(name)?)
}

/// Renames a file or a folder, replacing a file of the new name.
///
/// # Errors
/// As for [`Folder::open`] of both folders; `NotFound` if it does not exist.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (folder_of(from.as_ref())?, folder_of(to.as_ref())?);
    Ok(rustix::fs::renameat(&from.0, from.1, &to.0, to.1)?)
}

fn require_found(was_there: bool) -> io::Result<()> {
    if was_there { Ok(()) } else { Err(Errno::NOENT.into()) }
}

fn open_with(path: &Path, flags: OFlags) -> io::Result<File> {
    let (folder, name) = folder_of(path)?;
    folder.open_file(name, flags)?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn folder_of(path: &Path) -> io::Result<(Folder, &OsStr)> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    Ok((Folder::open(path.parent().unwrap_or(Path::new("")))?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_are_read_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!(read(&path, 3).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(read_to_string(&path, 3).unwrap(), "abc");
        let error = read(&path, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "it has 3 bytes or more, and 2 at most are read");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path, 1 << 20).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_to_string(&path, 3).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let told = read_from(&File::open("/dev/zero").unwrap(), 1000).unwrap_err().to_string();
        assert!(told.contains("1000 at most"), "{told}");
    }

    #[test]
    fn created_files_touch_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("kept"), "kept").unwrap();
        symlink(at("kept"), at("link")).unwrap();
        std::fs::hard_link(at("kept"), at("name")).unwrap();
        assert!(open(&at("link")).is_err() && open_to_write(&at("link")).is_err());
        assert!(open_or_create(&at("link"), 0o600).is_err());
        for name in ["link", "name", "none"] {
            let mut file = create(&at(name), 0o600).unwrap();
            file.write_all(b"new").unwrap();
            assert!(at(name).symlink_metadata().unwrap().is_file() && std::fs::read(at("kept")).unwrap() == b"kept");
            assert_eq!(read(&at(name), 3).unwrap(), b"new", "{name}");
        }
        replace(&at("link"), b"whole", 0o600).unwrap();
        assert!(read(&at("link"), 5).unwrap() == b"whole" && !at("link.new").exists());
        assert_eq!(open_or_create(&at("kept"), 0o600).unwrap().metadata().unwrap().len(), 4);
        assert_eq!(open_or_create(&at("fresh"), 0o600).unwrap().metadata().unwrap().len(), 0);
        assert_eq!(create_new(&at("kept"), 0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(open(Path::new("/")).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn rename_stays_in_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["home/index", "home/b", "private/index"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("private/file"), "kept").unwrap();
        std::fs::write(at("home/file"), "new").unwrap();
        rename(at("home/file"), at("home/b/other")).unwrap();
        remove(at("home/b/other")).unwrap();
        for gone in [remove(at("home/file")), rename(at("home/file"), at("home/x")), remove_tree(at("home/file"))] {
            assert_eq!(gone.unwrap_err().kind(), io::ErrorKind::NotFound);
        }
        remove_tree(at("home/b")).unwrap();
        symlink(at("private"), at("home/link")).unwrap();
        let (user, group) = (rustix::fs::Uid::from_raw(12_345), rustix::fs::Gid::from_raw(12_345));
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        for given in ["home", "home/index", "home/link"] {
            if rustix::fs::chownat(rustix::fs::CWD, at(given), Some(user), Some(group), flags).is_err() {
                return println!("SKIPPED: only root can give files away");
            }
        }
        let refused = [
            remove(at("home/link/file")),
            rename(at("home/link/file"), at("home/x")),
            rename(at("home/index"), at("home/link/x")),
            remove_tree(at("home/link/index")),
        ];
        for refused in refused {
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        assert!(at("private/index").is_dir() && std::fs::read(at("private/file")).unwrap() == b"kept");
    }

    #[test]
    fn paths_may_be_relative() {
        assert!(open(Path::new("Cargo.toml")).is_ok(), "tests run in the folder of their crate");
        assert!(open(Path::new("./src/../Cargo.toml")).is_ok());
    }
}
