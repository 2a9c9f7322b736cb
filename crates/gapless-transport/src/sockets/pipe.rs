//! [`Network`]: where connections come from, if not from the operating system. A simulator's network is one; the
//! handshake, the framing and everything above are the same.

use super::bytes::SocketRead;
use rustix::fd::AsFd;
use std::fmt::Debug;
use std::io;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

/// The factory of pipes for connections.
#[derive(Clone, Debug, Default)]
pub enum Network {
    /// TCP of the operating system.
    #[default]
    Tcp,
    /// One that the application supplies.
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

/// A network of one's own. Its addresses are those of the configuration.
pub trait Pipes: Debug + Send + Sync {
    /// Begins to connect to `address`; the pipe's first calls show whether it works out.
    ///
    /// # Errors
    /// It is known at once that it does not.
    fn dial(&self, address: SocketAddr) -> io::Result<Box<dyn Pipe>>;

    /// Listens.
    ///
    /// # Errors
    /// Somebody does already.
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn PipeListener>>;
}

/// A connection of bytes that never blocks. Its descriptor becomes readable when there is something to do; one that is
/// polled by hand may have any.
pub trait Pipe: AsFd + Debug + Send {
    /// Fills `room`, which is not empty, with received bytes; 0 when the other side sends no more.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] when there is nothing now; any other says that it is broken.
    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize>;

    /// Sends the first of `bytes`: how many were taken.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] when nothing is taken now; any other says that it is broken.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Tells the other side that nothing more comes after the sent bytes.
    fn finish(&self);
}

/// Where others connect to.
pub trait PipeListener: AsFd + Debug + Send {
    /// The next connection, and from where it comes.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] when there is none now.
    fn accept(&self) -> io::Result<(Box<dyn Pipe>, SocketAddr)>;
}

/// Converts a pipe's answer to the result of a look at a socket.
///
/// # Errors
/// The pipe is broken.
pub fn looked(received: io::Result<usize>) -> io::Result<SocketRead> {
    match received {
        Ok(0) => Ok(SocketRead::End),
        Ok(length) => Ok(SocketRead::Bytes(length)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(SocketRead::Nothing),
        Err(error) => Err(error),
    }
}

/// The same of sent bytes.
///
/// # Errors
/// The pipe is broken.
pub fn taken(sent: io::Result<usize>) -> io::Result<usize> {
    match sent {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}
