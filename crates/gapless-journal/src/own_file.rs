//! [`own_file`]: what is written in place has one name, so that a copy made of hard links stays what it is.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
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

#[cfg(test)]
mod tests {
    use super::*;

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
