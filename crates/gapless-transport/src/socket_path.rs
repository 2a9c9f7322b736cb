//! Socket addresses by path, whose length the kernel limits, and connecting to them without blocking.

use rustix::fd::OwnedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::path::Path;

/// Limit of the kernel, bytes.
pub const SOCKET_PATH_LENGTH_MAX: usize = 107;

/// Address of the socket at `path`.
///
/// # Errors
/// The path is longer than [`SOCKET_PATH_LENGTH_MAX`], or contains a zero byte.
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

/// Packet connection, without blocking.
///
/// # Errors
/// No listener; [`io::ErrorKind::WouldBlock`] if its accept queue is full, because it accepts none.
pub fn connect_packets(path: &Path) -> io::Result<OwnedFd> {
    connect(path, SocketType::SEQPACKET)
}

/// Byte stream, otherwise [`connect_packets`].
///
/// # Errors
/// As for [`connect_packets`].
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
    fn too_long_path_is_refused() {
        let path = |length: usize| std::path::PathBuf::from("x".repeat(length));
        assert!(socket_address(&path(SOCKET_PATH_LENGTH_MAX)).is_ok());
        let refused = socket_address(&path(SOCKET_PATH_LENGTH_MAX + 1)).unwrap_err().to_string();
        assert!(refused.contains("108 bytes") && refused.contains("at most 107"), "{refused}");
    }
}
