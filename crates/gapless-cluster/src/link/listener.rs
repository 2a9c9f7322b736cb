//! `LinkListener`: the sockets that other members connect to.

use super::dial::accepted;
use super::error::LinkError;
use super::options::MemberLinkOptions;
use gapless_transport::sockets::Address;
use gapless_transport::sockets::SharedListener;
use gapless_transport::sockets::Socket;
use gapless_transport::sockets::tcp::{TcpSocket, accept};
use gapless_transport::sockets::{Network, PipeListener};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::net::{SocketAddr, TcpListener};

#[derive(Debug)]
pub(super) enum LinkListener {
    Tcp(TcpListener),
    SharedMemory(SharedListener),
    Other(Box<dyn PipeListener>, SocketAddr),
}

impl LinkListener {
    /// Shared memory first: a member that finds the port open finds the shared memory, too.
    pub(super) fn open_all(options: &MemberLinkOptions) -> Result<Vec<Self>, LinkError> {
        let mut all = Vec::new();
        if let Some(path) = &options.listen_shared {
            let failed = |source| LinkError::ListenShared { path: path.clone(), source };
            all.push(SharedListener::open(path).map(Self::SharedMemory).map_err(failed)?);
        }
        if let Some(address) = options.listen {
            let failed = |source| LinkError::Listen { address, source };
            if let Network::Other(pipes) = &options.network {
                all.push(Self::Other(pipes.listen(address).map_err(failed)?, address));
                return Ok(all);
            }
            let listener = TcpListener::bind(address).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            all.push(Self::Tcp(listener));
        }
        Ok(all)
    }

    pub(super) fn network_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::SharedMemory(_) => None,
            Self::Other(_, address) => Some(*address),
        }
    }

    pub(super) fn accept(&self, options: &MemberLinkOptions) -> io::Result<Option<(Socket, Address)>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = accept(listener)?;
                let socket = TcpSocket::accepted(OwnedFd::from(stream), options.kernel_buffer_bytes)
                    .and_then(|socket| accepted(socket, options));
                Ok(socket.ok().map(|socket| (socket, Address::Network(address))))
            }
            Self::SharedMemory(listener) => {
                let address = Address::SharedMemory(listener.path().into());
                Ok(Some((Socket::shared(listener.accept()?), address)))
            }
            Self::Other(listener, _) => {
                let (pipe, address) = listener.accept()?;
                Ok(Some((Socket::Other(pipe), Address::Network(address))))
            }
        }
    }
}

impl AsFd for LinkListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::SharedMemory(listener) => listener.as_fd(),
            Self::Other(listener, _) => listener.as_fd(),
        }
    }
}
