//! [`Socket`]: the carriers of bytes as one type, so that another carrier is another variant. Knows no message formats.

use super::bytes::SocketRead;
use super::pipe::{self, Pipe};
use super::shared_memory::SharedSocket;
use super::tcp::TcpSocket;
use super::tls::TlsSocket;
use rustix::fd::{AsFd, BorrowedFd};
use std::io::{self, IoSlice};

/// A byte stream that never blocks.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpSocket),
    Tls(Box<TlsSocket>),
    /// Two rings in shared memory.
    SharedMemory(Box<SharedSocket>),
    /// A connection of another network.
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

    /// Sends the slices as one, as far as they are taken now; returns the number of bytes.
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

    /// Sends `bytes` as far as they are taken now; returns their number.
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

    /// Tells the other side that nothing follows the sent bytes.
    pub fn finish(&mut self) {
        match self {
            Self::Tcp(socket) => socket.finish(),
            Self::Tls(socket) => socket.finish(),
            Self::SharedMemory(socket) => socket.finish(),
            Self::Other(pipe) => pipe.finish(),
        }
    }

    /// Whether it has taken bytes that are not sent yet.
    #[inline]
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::SharedMemory(_) | Self::Other(_) => false,
            Self::Tls(socket) => socket.has_unsent(),
        }
    }

    /// Sends the bytes that it has taken, as far as possible now.
    ///
    /// # Errors
    /// The connection failed.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::SharedMemory(_) | Self::Other(_) => Ok(()),
            Self::Tls(socket) => socket.flush(),
        }
    }

    /// Whether the other side may have this name: on protected connections its certificate must prove it; otherwise
    /// always.
    #[must_use]
    pub fn proves(&self, name: &str) -> bool {
        match self {
            Self::Tcp(_) | Self::SharedMemory(_) | Self::Other(_) => true,
            Self::Tls(socket) => socket.proves(name),
        }
    }

    /// Checks for an end of the other side that [`Socket::receive`] cannot see by itself; to be called regularly.
    #[inline]
    pub fn check(&mut self) {
        match self {
            Self::Tcp(_) | Self::Tls(_) | Self::Other(_) => {}
            Self::SharedMemory(socket) => socket.check(),
        }
    }

    /// Prepares for sleep until the descriptor is readable; the caller checks once more after this.
    #[inline]
    pub fn arm(&self) {
        match self {
            Self::Tcp(_) | Self::Tls(_) | Self::Other(_) => {}
            Self::SharedMemory(socket) => socket.arm(),
        }
    }

    /// Ends the preparation for sleep.
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
