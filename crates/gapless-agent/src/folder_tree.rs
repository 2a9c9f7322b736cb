//! `Folder::remove_tree`: removes a folder with its contents, without following links in it.

use crate::folder::Folder;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

/// Each level takes a descriptor and a stack frame.
const DEPTH_MAX: u32 = 64;

impl Folder {
    /// Removes a folder with its contents, a file or a link, without following links; false if it did not exist.
    ///
    /// # Errors
    /// An error of the operating system; folders nested more than 64 deep. Part of the contents may be removed then.
    pub fn remove_tree(&self, name: impl AsRef<OsStr>) -> io::Result<bool> {
        remove(self.as_fd(), name.as_ref(), 0)
    }
}

fn remove(above: BorrowedFd<'_>, name: &OsStr, depth: u32) -> io::Result<bool> {
    match rustix::fs::unlinkat(above, name, AtFlags::empty()) {
        Ok(()) => return Ok(true),
        Err(Errno::NOENT) => return Ok(false),
        Err(Errno::ISDIR) => {}
        Err(errno) => return Err(errno.into()),
    }
    if depth == DEPTH_MAX {
        return Err(io::Error::other(format!("folders lie more than {DEPTH_MAX} deep in it")));
    }
    // Even if the name was replaced by now, a link is not followed.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(above, name, flags, Mode::empty())?;
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            remove(folder.as_fd(), OsStr::from_bytes(name), depth + 1)?;
        }
    }
    rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn removal_does_not_follow_links() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["tree/a/b", "kept/deep"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["tree/file", "tree/a/file", "tree/a/b/file", "kept/deep/file"] {
            std::fs::write(at(file), file).unwrap();
        }
        symlink(at("kept"), at("tree/a/link")).unwrap();
        symlink(at("kept"), at("link")).unwrap();
        let folder = Folder::open(root.path()).unwrap();
        assert!(folder.remove_tree("tree").unwrap() && folder.remove_tree("link").unwrap());
        assert!(!folder.remove_tree("tree").unwrap() && !folder.has("tree") && !folder.has("link"));
        assert_eq!(std::fs::read(at("kept/deep/file")).unwrap(), b"kept/deep/file");
    }

    #[test]
    fn too_deep_tree_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let deep = (0..DEPTH_MAX).fold(root.path().join("tree"), |path, _| path.join("d"));
        std::fs::create_dir_all(&deep).unwrap();
        let folder = Folder::open(root.path()).unwrap();
        assert!(folder.remove_tree("tree").unwrap_err().to_string().contains("64 deep"));
        std::fs::remove_dir(&deep).unwrap();
        assert!(folder.remove_tree("tree").unwrap());
    }
}
