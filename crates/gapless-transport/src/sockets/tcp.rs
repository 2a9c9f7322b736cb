//! `TcpSocket`: bytes over a TCP connection.

use super::bytes::{SocketRead, check_connecting};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, ipproto, sockopt,
};
use std::io;
use std::io::IoSlice;
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Next connection of a listener that never blocks, if a peer is connecting.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if no peer is connecting; an error of the operating system.
pub fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    check_connecting(listener)?;
    listener.accept()
}

#[derive(Debug)]
pub struct TcpSocket(OwnedFd);

impl TcpSocket {
    /// The first reads and writes show the outcome. `kernel_buffer_bytes`: 0 for the system's default.
    ///
    /// # Errors
    /// An error of the operating system, if it is known at once.
    pub fn dial(address: SocketAddr, kernel_buffer_bytes: usize) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        // Before connecting: the announced window depends on it.
        set_buffers(&socket, kernel_buffer_bytes)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        // On one machine without a listener, the source port can equal the destination port: a connection to itself,
        // which would block the port for its listener.
        let own = rustix::net::getsockname(&socket)?;
        if SocketAddr::try_from(own).is_ok_and(|own| own == address) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Self::over(socket)
    }

    /// Makes an accepted connection nonblocking.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn accepted(socket: OwnedFd, kernel_buffer_bytes: usize) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        set_buffers(&socket, kernel_buffer_bytes)?;
        Self::over(socket)
    }

    /// Wraps a connection that is nonblocking already.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn over(socket: OwnedFd) -> io::Result<Self> {
        // Related bytes are collected before they are written here.
        sockopt::set_tcp_nodelay(&socket, true)?;
        Ok(Self(socket))
    }

    /// `room` is not empty.
    ///
    /// # Errors
    /// The connection failed, or could not be made.
    #[inline]
    pub fn receive(&mut self, room: &mut [u8]) -> io::Result<SocketRead> {
        match rustix::net::recv(&self.0, room, RecvFlags::empty()) {
            Ok((0, _)) => Ok(SocketRead::End),
            Ok((length, _)) => Ok(SocketRead::Bytes(length)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(SocketRead::Nothing),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Writes without waiting; returns the bytes taken.
    ///
    /// # Errors
    /// The connection failed, or could not be made.
    #[inline]
    pub fn send_slices(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match rustix::net::sendmsg(&self.0, slices, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
            Ok(length) => Ok(length),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Writes without waiting; returns the bytes taken.
    ///
    /// # Errors
    /// The connection failed, or could not be made.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::net::send(&self.0, bytes, SendFlags::NOSIGNAL) {
            Ok(length) => Ok(length),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(errno) => Err(errno.into()),
        }
    }

    pub fn finish(&self) {
        // A broken connection needs no end.
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Write);
    }
}

impl AsFd for TcpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// 0 for the default.
fn set_buffers(socket: &OwnedFd, bytes: usize) -> io::Result<()> {
    if bytes > 0 {
        sockopt::set_socket_recv_buffer_size(socket, bytes)?;
        sockopt::set_socket_send_buffer_size(socket, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_send_without_delay() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dialled = TcpSocket::dial(listener.local_addr().unwrap(), 0).unwrap();
        let (stream, _) = listener.accept().unwrap();
        assert!(!stream.nodelay().unwrap(), "the system's default");
        let accepted = TcpSocket::accepted(OwnedFd::from(stream), 0).unwrap();
        for socket in [&dialled, &accepted] {
            assert!(sockopt::tcp_nodelay(socket).unwrap());
        }
    }
}
