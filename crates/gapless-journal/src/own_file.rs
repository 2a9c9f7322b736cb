//! [`own_file`] and [`new_file`]: what is written has one name, so that a copy made of hard links stays what it is, and no link is followed.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Gives a file with several names, as `cp -al` and backups by hard links make them, contents of its own, on the device; the other
/// names keep what they have. A file with one name, and one that is missing, is left alone. To be called before it is opened for
/// writing, by whoever has the lock of its directory.
///
/// # Errors
/// The system's, as that there is no room for the copy.
pub fn own_file(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() && found.nlink() > 1 => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".copy");
    let copy = path.with_file_name(name);
    // What a crash has left here may be another name of something.
    let _ = std::fs::remove_file(&copy);
    let copied = std::fs::copy(path, &copy)
        .and_then(|_| File::open(&copy)?.sync_all())
        .and_then(|()| std::fs::rename(&copy, path));
    if copied.is_err() {
        let _ = std::fs::remove_file(&copy);
    }
    copied.and_then(|()| File::open(path.parent().unwrap_or_else(|| Path::new(".")))?.sync_all())
}

/// Creates a file for reading and writing in the place of what has that name: nothing that a link leads to is opened, and another name
/// of what was there keeps it.
///
/// # Errors
/// The system's.
pub fn new_file(path: &Path, mode: u32) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    File::options().read(true).write(true).create_new(true).mode(mode).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_touches_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("kept"), "kept").unwrap();
        std::os::unix::fs::symlink(at("kept"), at("link")).unwrap();
        std::fs::hard_link(at("kept"), at("name")).unwrap();
        for name in ["link", "name", "none"] {
            let file = new_file(&at(name), 0o600).unwrap();
            assert_eq!(file.metadata().unwrap().len(), 0, "{name}");
            assert!(at(name).symlink_metadata().unwrap().is_file() && std::fs::read(at("kept")).unwrap() == b"kept");
        }
    }

    #[test]
    fn other_names_keep_what_they_have() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        own_file(&at("none")).unwrap();
        std::fs::write(at("one"), "before").unwrap();
        let inode = || std::fs::metadata(at("one")).unwrap().ino();
        let first = inode();
        own_file(&at("one")).unwrap();
        assert_eq!(inode(), first, "it has one name");
        std::fs::hard_link(at("one"), at("other")).unwrap();
        std::fs::hard_link(at("one"), at("one.copy")).unwrap();
        own_file(&at("one")).unwrap();
        std::fs::write(at("one"), "after").unwrap();
        assert_eq!(std::fs::read(at("other")).unwrap(), b"before");
        assert!(inode() != first && !at("one.copy").exists());
    }
}
