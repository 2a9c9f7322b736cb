//! `check`: whether `/proc` shows the processes of this process namespace.

use rustix::process::getpid;
use std::io;
use std::path::Path;

/// Checks that `/proc` shows this process namespace; mounted for another one, as after `unshare --pid`, it shows other
/// processes under the numbers used here.
///
/// # Errors
/// It shows another namespace, or cannot be read.
pub fn check() -> io::Result<()> {
    check_in(Path::new("/proc"))
}

fn check_in(folder: &Path) -> io::Result<()> {
    let own = getpid().as_raw_pid();
    let shown = match std::fs::read_link(folder.join("self")) {
        Ok(shown) if shown.to_str().and_then(|shown| shown.parse().ok()) == Some(own) => return Ok(()),
        Ok(shown) => format!("process {own} is {} there", shown.display()),
        // The namespace of `/proc` has no number for this process.
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.join("version").exists() => {
            format!("process {own} is not there")
        }
        Err(error) => {
            return Err(io::Error::new(error.kind(), format!("{} cannot be read: {error}", folder.display())));
        }
    };
    Err(io::Error::other(format!(
        "{} is that of another process namespace ({shown}); mount one of this namespace (`unshare --mount-proc` does)",
        folder.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn foreign_namespace_is_refused() {
        check().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let error = || check_in(folder.path()).unwrap_err().to_string();
        assert!(error().contains("cannot be read"), "{}", error());
        std::fs::write(folder.path().join("version"), "").unwrap();
        assert!(error().contains("is not there); mount one of this"), "{}", error());
        symlink("1000000000", folder.path().join("self")).unwrap();
        assert!(error().contains("is 1000000000 there); mount one of this"), "{}", error());
    }
}
