//! Connections from outside of the operating system, such as a simulator's network.

use super::bytes::SocketRead;
use rustix::fd::AsFd;
use std::fmt::Debug;
use std::io;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub enum Network {
    /// TCP of the operating system.
    #[default]
    Tcp,
    Other(Arc<dyn Pipes>),
}

impl PartialEq for Network {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tcp, Self::Tcp) => true,
            (Self::Other(one), Self::Other(another)) => Arc::ptr_eq(one, another),
            _ => false,
        }
    }
}

impl Eq for Network {}

/// Addresses are those of the configuration.
pub trait Pipes: Debug + Send + Sync {
    /// The pipe's first calls show the outcome.
    ///
    /// # Errors
    /// The failure, if it is known at once.
    fn dial(&self, address: SocketAddr) -> io::Result<Box<dyn Pipe>>;

    /// Listens at `address`.
    ///
    /// # Errors
    /// The address is in use.
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn PipeListener>>;
}

/// A byte stream that never blocks. Its descriptor becomes readable when there is work; a pipe polled by hand may have
/// any descriptor.
pub trait Pipe: AsFd + Debug + Send {
    /// Fills `room`, which is not empty; 0 after the other side's end.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if there are no bytes now; any other error means that the pipe is broken.
    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize>;

    /// Returns the number taken.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if none are taken now; any other error means that the pipe is broken.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Ends the output: no byte follows.
    fn finish(&self);
}

pub trait PipeListener: AsFd + Debug + Send {
    /// Next connection, and its source.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] without a new connection.
    fn accept(&self) -> io::Result<(Box<dyn Pipe>, SocketAddr)>;
}

/// Converts the result of a pipe's receive to a socket's.
///
/// # Errors
/// The pipe is broken.
pub fn to_socket_read(received: io::Result<usize>) -> io::Result<SocketRead> {
    match received {
        Ok(0) => Ok(SocketRead::End),
        Ok(length) => Ok(SocketRead::Bytes(length)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(SocketRead::Nothing),
        Err(error) => Err(error),
    }
}

/// Converts the result of a pipe's send.
///
/// # Errors
/// The pipe is broken.
pub fn to_sent_bytes(sent: io::Result<usize>) -> io::Result<usize> {
    match sent {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}
