//! Permissions of a newly bound socket, independent of the umask, and safe against a file that another user has put in
//! its place.

use crate::folder::Folder;
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use rustix::process::geteuid;
use std::io;
use std::path::Path;

/// Sets mode and optionally group of the named socket, which does not listen yet.
///
/// # Errors
/// An error of the operating system; `ENOTSOCK` if the name belongs to another kind of file by now.
pub fn limit(folder: impl AsFd, name: &Path, mode: Mode, group: Option<Gid>) -> Result<(), Errno> {
    // Not by its name, which may be a link by now.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&found)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket || stat.st_uid != geteuid().as_raw() {
        return Err(Errno::NOTSOCK);
    }
    if group.is_some() {
        rustix::fs::chownat(&found, "", None, group, AtFlags::EMPTY_PATH)?;
    }
    if Mode::from_raw_mode(stat.st_mode) == mode {
        return Ok(());
    }
    // An `O_PATH` descriptor cannot change the mode itself.
    rustix::fs::chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), mode)
}

/// Binds a socket to a path, accessible only to this process's user.
///
/// # Errors
/// As for [`limit`] and [`Folder::open`].
pub fn bind_for_user(socket: impl AsFd, path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let mode = Mode::RUSR | Mode::WUSR;
    // The file gets this mode less the umask, which is usually right already.
    rustix::fs::fchmod(&socket, mode)?;
    rustix::net::bind(&socket, address)?;
    let folder = Folder::open(path.parent().unwrap_or(Path::new("")))?;
    Ok(limit(&folder, Path::new(path.file_name().unwrap_or_default()), mode, None)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_a_socket_gets_the_mode() {
        let folder = tempfile::tempdir().unwrap();
        let [socket, bound, link, file] = ["socket", "bound", "link", "file"].map(|name| folder.path().join(name));
        let _listens = UnixListener::bind(&socket).unwrap();
        let limit = |path: &Path| {
            let folder = Folder::open(folder.path()).unwrap();
            limit(&folder, Path::new(path.file_name().unwrap()), Mode::RUSR | Mode::WUSR, None)
        };
        limit(&socket).unwrap();
        let (family, kind) = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM);
        let unnamed = rustix::net::socket(family, kind, None).unwrap();
        bind_for_user(&unnamed, &bound, &SocketAddrUnix::new(&bound).unwrap()).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!([mode(&socket), mode(&bound)], [0o600; 2]);
        std::fs::write(&file, "").unwrap();
        let before = mode(&file);
        symlink(&file, &link).unwrap();
        for wrong in [&link, &file] {
            assert_eq!(limit(wrong), Err(Errno::NOTSOCK));
        }
        assert_eq!(mode(&file), before);
    }
}
