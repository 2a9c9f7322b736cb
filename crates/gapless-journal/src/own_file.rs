//! A file is written in place only if it has a single name, so that a copy made of hard links stays unchanged.

use crate::durable_file::FileReplacement;
use crate::error::JournalError;
use gapless_agent::checked_file;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Gives a file with several names (`cp -al`, hard-link backups) its own synced contents, with its owner, group and
/// mode. Does nothing for a file with one name, or a missing one. Call before opening for writing, with the lock of the
/// directory.
///
/// # Errors
/// As of the system: for instance no space for the copy, or no permission to set its owner.
pub fn own_file(path: &Path) -> io::Result<()> {
    let shared = match checked_file::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let found = shared.metadata()?;
    if found.nlink() <= 1 {
        return Ok(());
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".copy");
    let copied = || {
        let mut copy = FileReplacement::begin(path, path.with_file_name(name), 0o600)?;
        copy.copy_from(&shared)?;
        copy.copy_owner(&found)?;
        copy.set_permissions(found.permissions())?;
        copy.sync()?;
        copy.put_in_place().map(drop)
    };
    copied().map_err(|error: io::Error| {
        io::Error::new(error.kind(), format!("it is copied, because it has several names: {error}"))
    })
}

pub(crate) fn open_to_write(path: &Path) -> Result<File, JournalError> {
    let opened = own_file(path).and_then(|()| checked_file::open_to_write(path));
    opened.map_err(|error| JournalError::io("open for writing", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown};

    #[test]
    fn other_names_keep_the_contents() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        own_file(&at("none")).unwrap();
        std::fs::write(at("one"), "before").unwrap();
        let inode = || std::fs::metadata(at("one")).unwrap().ino();
        let first = inode();
        own_file(&at("one")).unwrap();
        assert_eq!(inode(), first, "a file with one name is not copied");
        std::fs::hard_link(at("one"), at("other")).unwrap();
        std::fs::hard_link(at("one"), at("one.copy")).unwrap();
        own_file(&at("one")).unwrap();
        std::fs::write(at("one"), "after").unwrap();
        assert_eq!(std::fs::read(at("other")).unwrap(), b"before");
        assert!(inode() != first && !at("one.copy").exists());
    }

    #[test]
    fn copy_keeps_owner_and_mode() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        std::fs::write(&one, "x").unwrap();
        std::fs::hard_link(&one, &other).unwrap();
        std::fs::set_permissions(&one, std::fs::Permissions::from_mode(0o640)).unwrap();
        if chown(&one, Some(12_345), Some(54_321)).is_err() {
            return println!("SKIPPED: only root can give files away");
        }
        own_file(&one).unwrap();
        let of = |path: &Path| std::fs::metadata(path).map(|found| (found.uid(), found.gid(), found.mode() & 0o7777));
        assert_eq!(of(&one).unwrap(), (12_345, 54_321, 0o640));
        assert_eq!((of(&other).unwrap(), std::fs::metadata(&one).unwrap().nlink()), (of(&one).unwrap(), 1));
    }
}
