//! The carriers of bytes as one type.

use super::bytes::SocketRead;
use super::pipe::{self, Pipe};
use super::shared_memory::SharedSocket;
use super::tcp::TcpSocket;
use super::tls::TlsSocket;
use rustix::fd::{AsFd, BorrowedFd};
use std::io::{self, IoSlice};

#[derive(Debug)]
pub enum Socket {
    Tcp(TcpSocket),
    Tls(Box<TlsSocket>),
    SharedMemory(Box<SharedSocket>),
    Other(Box<dyn Pipe>),
}

impl Socket {
    #[must_use]
    pub fn shared(socket: SharedSocket) -> Self {
        Self::SharedMemory(Box::new(socket))
    }

    /// Fills `room` with received bytes.
    ///
    /// # Errors
    /// The connection failed.
    #[inline]
    pub fn receive(&mut self, room: &mut [u8]) -> io::Result<SocketRead> {
        debug_assert!(!room.is_empty(), "no room looks like the end");
        match self {
            Self::Tcp(socket) => socket.receive(room),
            Self::Tls(socket) => socket.receive(room),
            Self::SharedMemory(socket) => socket.receive(room),
            Self::Other(pipe) => pipe::to_socket_read(pipe.receive(room)),
        }
    }

    /// Writes without waiting; returns the bytes taken.
    ///
    /// # Errors
    /// The connection failed.
    #[inline]
    pub fn send_slices(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.send_slices(slices),
            Self::Tls(socket) => socket.send_slices(slices),
            Self::SharedMemory(socket) => socket.send_slices(slices),
            Self::Other(pipe) => {
                let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
                pipe::to_sent_bytes(pipe.send(&bytes))
            }
        }
    }

    /// Writes without waiting; returns the bytes taken.
    ///
    /// # Errors
    /// The connection failed.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.send(bytes),
            Self::Tls(socket) => socket.send_slices(&[IoSlice::new(bytes)]),
            Self::SharedMemory(socket) => socket.send_slices(&[IoSlice::new(bytes)]),
            Self::Other(pipe) => pipe::to_sent_bytes(pipe.send(bytes)),
        }
    }

    pub fn finish(&mut self) {
        match self {
            Self::Tcp(socket) => socket.finish(),
            Self::Tls(socket) => socket.finish(),
            Self::SharedMemory(socket) => socket.finish(),
            Self::Other(pipe) => pipe.finish(),
        }
    }

    #[inline]
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::SharedMemory(_) | Self::Other(_) => false,
            Self::Tls(socket) => socket.has_unsent(),
        }
    }

    /// Sends the taken bytes, as far as possible now.
    ///
    /// # Errors
    /// The connection failed.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::SharedMemory(_) | Self::Other(_) => Ok(()),
            Self::Tls(socket) => socket.flush(),
        }
    }

    /// On protected connections the certificate must prove `name`; otherwise always true.
    #[must_use]
    pub fn proves(&self, name: &str) -> bool {
        match self {
            Self::Tcp(_) | Self::SharedMemory(_) | Self::Other(_) => true,
            Self::Tls(socket) => socket.proves(name),
        }
    }

    /// Notices an end that [`Socket::receive`] cannot see by itself; to be called regularly.
    #[inline]
    pub fn check(&mut self) {
        match self {
            Self::Tcp(_) | Self::Tls(_) | Self::Other(_) => {}
            Self::SharedMemory(socket) => socket.check(),
        }
    }

    /// Before sleep on the descriptor; check once more after this.
    #[inline]
    pub fn arm(&self) {
        match self {
            Self::Tcp(_) | Self::Tls(_) | Self::Other(_) => {}
            Self::SharedMemory(socket) => socket.arm(),
        }
    }

    #[inline]
    pub fn disarm(&mut self) {
        match self {
            Self::Tcp(_) | Self::Tls(_) | Self::Other(_) => {}
            Self::SharedMemory(socket) => socket.disarm(),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Tls(socket) => socket.as_fd(),
            Self::SharedMemory(socket) => socket.as_fd(),
            Self::Other(pipe) => pipe.as_fd(),
        }
    }
}
