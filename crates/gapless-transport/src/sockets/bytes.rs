//! Common parts of all carriers of bytes: `SocketRead`, the result of a read, and checking for a connecting peer.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketRead {
    Bytes(usize),
    Nothing,
    End,
}

/// A failing accept makes the kernel create and drop a socket, so frequent callers check first.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if no peer is connecting; an error of the operating system.
pub fn check_connecting(listener: impl AsFd) -> io::Result<()> {
    match poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&Timespec::default()))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}
