//! `create`: a folder accessible only to this process's user.

use crate::folder::Folder;
use std::io;
use std::path::Path;

/// Creates a folder and missing path components, with mode 0700 whatever the umask; an existing one is not changed. In
/// another user's folder it is given to that user, if possible.
///
/// # Errors
/// As for [`Folder::open`]; a dangling link.
pub fn create(path: &Path) -> io::Result<()> {
    Folder::create_private(path).map(drop).map_err(|error| {
        let mut ways = path.ancestors().filter(|way| !way.as_os_str().is_empty());
        match ways.find(|way| way.is_symlink() && !way.exists()) {
            Some(link) => io::Error::new(error.kind(), format!("{} is a link that leads nowhere", link.display())),
            None => error,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn others_have_no_rights() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        create(&path).unwrap();
        create(&path).unwrap();
        for made in [path.as_path(), &root.path().join("a")] {
            assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn dangling_link_is_named() {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("link");
        symlink(root.path().join("none"), &link).unwrap();
        for path in [link.clone(), link.join("below")] {
            let error = create(&path).unwrap_err().to_string();
            assert!(error.contains("link is a link that leads nowhere"), "{error}");
        }
    }
}
