//! What every carrier has in common: [`SocketRead`], the result of a look at a connection of bytes, and the look whether somebody connects.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use std::io;

/// The result of one look at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketRead {
    /// So many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The other side sends no more.
    End,
}

/// Whether somebody connects. To accept in vain costs the kernel a socket that it makes and drops: who looks often asks first.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] where nobody does; the operating system's.
pub fn check_connecting(listener: impl AsFd) -> io::Result<()> {
    match poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&Timespec::default()))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}
