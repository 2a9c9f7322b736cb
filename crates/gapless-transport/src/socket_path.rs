//! The address of a socket by its path, which the kernel allows to be short only, and a connection to it that waits for nobody.

use rustix::fd::OwnedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::path::Path;

/// The longest path of a socket, bytes.
pub const SOCKET_PATH_LENGTH_MAX: usize = 107;

/// The address of the socket at `path`.
///
/// # Errors
/// The path is longer than [`SOCKET_PATH_LENGTH_MAX`], or holds a zero byte.
pub fn socket_address(path: &Path) -> io::Result<SocketAddrUnix> {
    let length = path.as_os_str().len();
    if length > SOCKET_PATH_LENGTH_MAX {
        let what = format!(
            "the path has {length} bytes, that of a socket at most {SOCKET_PATH_LENGTH_MAX}; choose a directory with a \\
             shorter path"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, what));
    }
    Ok(SocketAddrUnix::new(path)?)
}

/// A connection of packets to who listens on the socket at `path`.
///
/// # Errors
/// Nobody listens there; [`io::ErrorKind::WouldBlock`] where as many wait to be accepted as may wait, because the one who listens
/// accepts none.
pub fn connect_packets(path: &Path) -> io::Result<OwnedFd> {
    connect(path, SocketType::SEQPACKET)
}

/// As [`connect_packets`], of a stream of bytes.
///
/// # Errors
/// As [`connect_packets`].
pub fn connect_stream(path: &Path) -> io::Result<OwnedFd> {
    connect(path, SocketType::STREAM)
}

fn connect(path: &Path, kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
    let address = socket_address(path)?;
    match retry_on_intr(|| rustix::net::connect(&socket, &address)) {
        Ok(()) => Ok(socket),
        Err(Errno::AGAIN) => {
            let what = "as many as may wait there wait already; its process stands still";
            Err(io::Error::new(io::ErrorKind::WouldBlock, what))
        }
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_too_long_is_refused_with_the_limit() {
        let path = |length: usize| std::path::PathBuf::from("x".repeat(length));
        assert!(socket_address(&path(SOCKET_PATH_LENGTH_MAX)).is_ok());
        let refused = socket_address(&path(SOCKET_PATH_LENGTH_MAX + 1)).unwrap_err().to_string();
        assert!(refused.contains("108 bytes") && refused.contains("at most 107"), "{refused}");
    }
}
