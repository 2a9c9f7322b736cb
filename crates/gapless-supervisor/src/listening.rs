//! `OpenSocket`: listening sockets of the state directory.

use crate::error::SupervisorError;
use crate::state_directory::{StateDirectory, StateSocket};
use gapless_agent::socket_file;
use nix::sys::socket::{setsockopt, sockopt};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Gid, Mode};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::path::Path;

const BACKLOG: i32 = 64;

#[derive(Debug)]
pub struct OpenSocket {
    fd: OwnedFd,
    socket: StateSocket,
    file: (u64, u64),
}

impl OpenSocket {
    /// Opens a socket in place of a predecessor's, renamed once it listens: a refused connection always means a dead
    /// listener.
    pub fn open(
        directory: &StateDirectory,
        socket: StateSocket,
        kind: SocketType,
        mode: Mode,
        group: Option<u32>,
    ) -> Result<Self, SupervisorError> {
        let name = socket.file();
        let new = format!("{name}.new");
        let failed = || SupervisorError::system(format!("listening at {}", directory.socket(socket).display()));
        match rustix::fs::unlinkat(directory.fd(), &*new, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed()(errno)),
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let opened = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None).map_err(failed())?;
        if kind == SocketType::DGRAM {
            // Before any sender can connect: all messages carry credentials.
            let is_set = setsockopt(&opened, sockopt::PassCred, &true);
            is_set.map_err(|errno| failed()(Errno::from_raw_os_error(errno as i32)))?;
        }
        rustix::net::bind(&opened, &directory.socket_address(&new).map_err(failed())?).map_err(failed())?;
        socket_file::limit(directory.fd(), Path::new(&new), mode, group.map(Gid::from_raw)).map_err(failed())?;
        if kind != SocketType::DGRAM {
            rustix::net::listen(&opened, BACKLOG).map_err(failed())?;
        }
        rustix::fs::renameat(directory.fd(), &*new, directory.fd(), name).map_err(failed())?;
        let file = file_of(directory, socket).map_err(failed())?;
        Ok(Self { fd: opened, socket, file })
    }

    /// Whether its file still exists; otherwise no client can connect.
    pub fn is_reachable(&self, directory: &StateDirectory) -> bool {
        file_of(directory, self.socket).is_ok_and(|file| file == self.file)
    }
}

impl AsFd for OpenSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn file_of(directory: &StateDirectory, socket: StateSocket) -> Result<(u64, u64), Errno> {
    let found = rustix::fs::statat(directory.fd(), socket.file(), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((found.st_dev, found.st_ino))
}
