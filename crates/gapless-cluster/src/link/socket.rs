//! [`Socket`]: what a link's bytes go through, behind one type, so that another transport is another variant. Knows no
//! message.

use super::address::Address;
use super::options::MemberLinkOptions;
use super::wire::MemberId;
use gapless_transport::sockets::{Network, Pipe, SharedSocket, SocketRead, TcpSocket, TlsSocket, pipe};
use rustix::fd::{AsFd, BorrowedFd};
use std::io::{self, IoSlice};

/// A connection of bytes that never blocks.
#[derive(Debug)]
pub(super) enum Socket {
    /// A TCP connection.
    Tcp(TcpSocket),
    /// TLS over one.
    Tls(Box<TlsSocket>),
    /// Two rings in memory that both processes map.
    SharedMemory(Box<SharedSocket>),
    /// A connection of another network.
    Other(Box<dyn Pipe>),
}

impl Socket {
    /// Begins to connect; whether it works out is said by the first calls of the others.
    pub(super) fn dial(address: &Address, to: MemberId, options: &MemberLinkOptions) -> io::Result<Self> {
        match address {
            Address::Network(address) => {
                if let Network::Other(pipes) = &options.network {
                    return Ok(Self::Other(pipes.dial(*address)?));
                }
                let socket = TcpSocket::dial(*address, options.kernel_buffer_bytes)?;
                match &options.tls {
                    Some(tls) => Ok(Self::Tls(Box::new(tls.dialled(socket, to)?))),
                    None => Ok(Self::Tcp(socket)),
                }
            }
            Address::SharedMemory(_) if options.tls.is_some() => Err(io::ErrorKind::PermissionDenied.into()),
            Address::SharedMemory(path) => SharedSocket::dial(path, options.shared_ring_bytes).map(Self::shared),
        }
    }

    /// Takes over a TCP connection that was accepted.
    pub(super) fn accepted(socket: TcpSocket, options: &MemberLinkOptions) -> io::Result<Self> {
        match &options.tls {
            Some(tls) => Ok(Self::Tls(Box::new(tls.accepted(socket)?))),
            None => Ok(Self::Tcp(socket)),
        }
    }

    /// One of shared memory.
    pub(super) fn shared(socket: SharedSocket) -> Self {
        Self::SharedMemory(Box::new(socket))
    }

    /// Fills `room` with what has come.
    #[inline]
    pub(super) fn receive(&mut self, room: &mut [u8]) -> io::Result<SocketRead> {
        debug_assert!(!room.is_empty(), "no room looks like the end");
        match self {
            Self::Tcp(socket) => socket.receive(room),
            Self::Tls(socket) => socket.receive(room),
            Self::SharedMemory(socket) => socket.receive(room),
            Self::Other(pipe) => pipe::looked(pipe.receive(room)),
        }
    }

    /// Sends the slices as one, as far as they are taken now: how many bytes were.
    #[inline]
    pub(super) fn send_slices(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.send_slices(slices),
            Self::Tls(socket) => socket.send_slices(slices),
            Self::SharedMemory(socket) => socket.send_slices(slices),
            Self::Other(pipe) => {
                let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
                pipe::taken(pipe.send(&bytes))
            }
        }
    }

    /// Sends `bytes` as far as they are taken now: how many were.
    #[inline]
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.send(bytes),
            Self::Tls(socket) => socket.send_slices(&[IoSlice::new(bytes)]),
            Self::SharedMemory(socket) => socket.send_slices(&[IoSlice::new(bytes)]),
            Self::Other(pipe) => pipe::taken(pipe.send(bytes)),
        }
    }

    /// Tells the other side that nothing more comes, behind what was sent.
    pub(super) fn finish(&mut self) {
        match self {
            Self::Tcp(socket) => socket.finish(),
            Self::Tls(socket) => socket.finish(),
            Self::SharedMemory(socket) => socket.finish(),
            Self::Other(pipe) => pipe.finish(),
        }
    }

    /// Whether it has taken bytes that it still keeps.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::SharedMemory(_) | Self::Other(_) => false,
            Self::Tls(socket) => socket.has_unsent(),
        }
    }

    /// Sends what it keeps, as far as it is taken now.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::SharedMemory(_) | Self::Other(_) => Ok(()),
            Self::Tls(socket) => socket.flush(),
        }
    }

    /// Whether nothing is known against the other side's having this name: where connections are protected, its
    /// certificate says that it has.
    pub(super) fn proves(&self, name: &str) -> bool {
        match self {
            Self::Tcp(_) | Self::SharedMemory(_) | Self::Other(_) => true,
            Self::Tls(socket) => socket.proves(name),
        }
    }

    /// Looks for an end of the other side that [`Socket::receive`] cannot see by itself; to be called now and then.
    #[inline]
    pub(super) fn check(&mut self) {
        match self {
            Self::Tcp(_) | Self::Tls(_) | Self::Other(_) => {}
            Self::SharedMemory(socket) => socket.check(),
        }
    }

    /// The caller is about to sleep until the descriptor is readable; it looks once more before it does.
    #[inline]
    pub(super) fn arm(&self) {
        match self {
            Self::Tcp(_) | Self::Tls(_) | Self::Other(_) => {}
            Self::SharedMemory(socket) => socket.arm(),
        }
    }

    /// The caller is awake.
    #[inline]
    pub(super) fn disarm(&mut self) {
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
