//! [`Connection`]: one connection between two processes of a domain: packets with descriptors, and a bounded queue.
//!
//! Nothing here waits. What the peer does not take yet is queued, and a peer whose queue is full is given up: it slows nobody.
//! What the peer sends is checked before anybody sees it, and its descriptors are closed with it.

use super::directory::{CopyId, DomainDirectory, FileKind, path_in};
use super::packets::{self, DESCRIPTORS_MAX, PACKET_LENGTH_MAX, Packet};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Bytes that wait for a peer at most: all routes of a process, each as long as it may be, and as much again.
pub const QUEUED_BYTES_MAX: usize = 8 << 20;
/// Packets that wait for a peer at most.
pub const QUEUED_PACKETS_MAX: usize = 4096;
/// Bytes of a buffer for [`Connection::receive`].
pub const BUFFER_BYTES: usize = PACKET_LENGTH_MAX;

/// One connection.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    queue: VecDeque<Outgoing>,
    queued_bytes: usize,
}

#[derive(Debug)]
struct Outgoing {
    bytes: Arc<[u8]>,
    descriptors: Vec<Arc<OwnedFd>>,
}

/// What has come.
#[derive(Debug)]
pub enum Received {
    /// Nothing at the moment.
    Nothing,
    /// A packet, with as many descriptors as belong to it.
    Packet(Packet, Vec<OwnedFd>),
    /// A packet whose descriptors this process had no room for: they are lost.
    WithoutDescriptors(Packet),
    /// The peer speaks this other version of the protocol.
    OtherVersion(u16),
    /// The peer has closed its end, or is dead.
    End,
}

/// How far a queue was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// All of it.
    All,
    /// There is more when the socket is writable.
    WhenWritable,
    /// There is more after a while: too many descriptors are on their way, or the kernel has no memory, which no socket tells.
    Later,
}

impl Connection {
    /// Connects to a serving process. `AGAIN`: it has not taken so many others yet; `CONNREFUSED`: it is dead; `NOENT`: it
    /// has gone.
    pub fn connect(directory: &DomainDirectory, id: CopyId) -> Result<Self, Errno> {
        let folder = directory.fd();
        let address = SocketAddrUnix::new(path_in(&folder, &id.file(FileKind::Socket)))?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        rustix::net::connect(&socket, &address)?;
        Ok(Self::over(socket))
    }

    /// Takes over a socket that is connected and does not block.
    pub const fn over(socket: OwnedFd) -> Self {
        Self { socket, queue: VecDeque::new(), queued_bytes: 0 }
    }

    /// Sends a packet behind those that wait.
    ///
    /// # Errors
    /// The connection is broken, or its queue is full: it is to be closed.
    pub fn send(&mut self, bytes: Arc<[u8]>, descriptors: Vec<Arc<OwnedFd>>) -> Result<Flushed, String> {
        self.queued_bytes += bytes.len();
        self.queue.push_back(Outgoing { bytes, descriptors });
        let flushed = self.flush()?;
        if self.queue.len() > QUEUED_PACKETS_MAX || self.queued_bytes > QUEUED_BYTES_MAX {
            let (packets, bytes) = (self.queue.len(), self.queued_bytes);
            return Err(format!("it does not read: {packets} packets of {bytes} bytes wait for it"));
        }
        Ok(flushed)
    }

    /// Sends what waits, as far as the peer takes it.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn flush(&mut self) -> Result<Flushed, String> {
        while let Some(next) = self.queue.front() {
            match send_packet(&self.socket, &next.bytes, &next.descriptors) {
                Ok(()) => {
                    self.queued_bytes -= next.bytes.len();
                    self.queue.pop_front();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Flushed::WhenWritable),
                Err(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => return Ok(Flushed::Later),
                // It is gone, as processes go: what it has said before can be read still, and behind that its end.
                Err(Errno::PIPE | Errno::CONNRESET) => {
                    self.queue.clear();
                    self.queued_bytes = 0;
                }
                Err(errno) => return Err(format!("sending to it: {errno}")),
            }
        }
        Ok(Flushed::All)
    }

    /// Takes the next packet; `buffer` has [`BUFFER_BYTES`].
    ///
    /// # Errors
    /// What the peer has done wrong: the connection is to be closed.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Received, String> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let came = match rustix::net::recvmsg(&self.socket, &mut [IoSliceMut::new(buffer)], &mut control, flags) {
            Ok(came) => came,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Received::Nothing),
            Err(_) => return Ok(Received::End),
        };
        // Owned from here on, so that every return closes what it does not hand on.
        let descriptors = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect::<Vec<OwnedFd>>();
        if came.bytes == 0 {
            return Ok(Received::End);
        }
        if let Some(version) = packets::other_version(&buffer[..came.bytes]) {
            return Ok(Received::OtherVersion(version));
        }
        if came.flags.contains(ReturnFlags::TRUNC) {
            return Err(format!("a packet has more than {PACKET_LENGTH_MAX} bytes"));
        }
        let is_cut = came.flags.contains(ReturnFlags::CTRUNC);
        if is_cut && descriptors.len() >= DESCRIPTORS_MAX {
            return Err(format!("a packet has more than {DESCRIPTORS_MAX} descriptors"));
        }
        let packet = Packet::decode(&buffer[..came.bytes])?;
        if is_cut {
            return Ok(Received::WithoutDescriptors(packet));
        }
        let (expected, found) = (packet.descriptors(), descriptors.len());
        if found != expected {
            return Err(format!("a packet {} has {found} descriptors; {expected} are expected", packet.name()));
        }
        Ok(Received::Packet(packet, descriptors))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The peer is to know now, even if a child that was just forked still has the descriptor. It may know already.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}

/// Sends one packet, whole or not at all.
fn send_packet(socket: impl AsFd, bytes: &[u8], descriptors: &[Arc<OwnedFd>]) -> Result<(), Errno> {
    let descriptors = descriptors.iter().map(|descriptor| descriptor.as_fd()).collect::<Vec<_>>();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let pushed = control.push(SendAncillaryMessage::ScmRights(&descriptors));
        assert!(pushed, "no packet has more than {DESCRIPTORS_MAX} descriptors");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_gone_is_at_its_end_and_no_error() {
        let (flags, kind) = (SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, SocketType::SEQPACKET);
        let (own, other) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        let (mut own, mut buffer) = (Connection::over(own), vec![0; BUFFER_BYTES]);
        drop(other);
        let listed: Arc<[u8]> = Packet::Listed.encode().unwrap().into();
        assert_eq!(own.send(listed, Vec::new()), Ok(Flushed::All));
        assert_eq!((own.queue.len(), own.queued_bytes), (0, 0));
        assert!(matches!(own.receive(&mut buffer), Ok(Received::End)));
    }
}
