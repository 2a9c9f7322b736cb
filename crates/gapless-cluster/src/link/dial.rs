//! Sockets of links: dialled, or accepted by a listener, with TLS if it is configured.

use super::options::MemberLinkOptions;
use super::wire::MemberNumber;
use gapless_transport::sockets::{Address, Network, SharedSocket, Socket, TcpSocket};
use std::io;

/// The socket's first calls report whether the connection succeeds.
pub(super) fn dial(address: &Address, to: MemberNumber, options: &MemberLinkOptions) -> io::Result<Socket> {
    match address {
        Address::Network(address) => {
            if let Network::Other(pipes) = &options.network {
                return Ok(Socket::Other(pipes.dial(*address)?));
            }
            let socket = TcpSocket::dial(*address, options.kernel_buffer_bytes)?;
            match &options.tls {
                Some(tls) => Ok(Socket::Tls(Box::new(tls.dialled(socket, to)?))),
                None => Ok(Socket::Tcp(socket)),
            }
        }
        Address::SharedMemory(_) if options.tls.is_some() => Err(io::ErrorKind::PermissionDenied.into()),
        Address::SharedMemory(path) => SharedSocket::dial(path, options.shared_ring_bytes).map(Socket::shared),
    }
}

pub(super) fn accepted(socket: TcpSocket, options: &MemberLinkOptions) -> io::Result<Socket> {
    match &options.tls {
        Some(tls) => Ok(Socket::Tls(Box::new(tls.accepted(socket)?))),
        None => Ok(Socket::Tcp(socket)),
    }
}
