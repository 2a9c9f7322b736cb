//! [`PeerConnection`]: packets with descriptors between two processes. A peer whose queue is full is disconnected.
//! Input is validated before it is returned.

use super::directory::{DomainDirectory, FileKind, InstanceId, path_in};
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

/// Limit of queued bytes: all routes of a process at maximum length, and as much again.
pub const QUEUED_BYTES_MAX: usize = 8 << 20;
pub const QUEUED_PACKETS_MAX: usize = 4096;
/// Length of the buffer for [`PeerConnection::receive`].
pub const BUFFER_BYTES: usize = PACKET_LENGTH_MAX;

#[derive(Debug)]
pub struct PeerConnection {
    socket: OwnedFd,
    queue: VecDeque<OutgoingPacket>,
    queued_bytes: usize,
}

#[derive(Debug)]
struct OutgoingPacket {
    bytes: Arc<[u8]>,
    descriptors: Vec<Arc<OwnedFd>>,
}

#[derive(Debug)]
pub enum ReceiveResult {
    Nothing,
    Packet(Packet, Vec<OwnedFd>),
    /// This process had no room for the packet's descriptors.
    WithoutDescriptors(Packet),
    OtherVersion(u16),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushResult {
    All,
    WhenWritable,
    /// Too many descriptors are in flight, or the kernel has no memory. No socket event reports the end of either.
    Later,
}

impl PeerConnection {
    /// Connects to a serving process. `AGAIN`: its backlog is full; `CONNREFUSED`: it is dead; `NOENT`: it has gone.
    pub fn connect(directory: &DomainDirectory, id: InstanceId) -> Result<Self, Errno> {
        let folder = directory.fd();
        let address = SocketAddrUnix::new(path_in(&folder, &id.file(FileKind::Socket)))?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        rustix::net::connect(&socket, &address)?;
        Ok(Self::over(socket))
    }

    /// Takes a connected, non-blocking socket.
    pub const fn over(socket: OwnedFd) -> Self {
        Self { socket, queue: VecDeque::new(), queued_bytes: 0 }
    }

    /// Sends a packet after those in the queue.
    ///
    /// # Errors
    /// The connection is broken, or its queue is full; close it.
    pub fn send(&mut self, bytes: Arc<[u8]>, descriptors: Vec<Arc<OwnedFd>>) -> Result<FlushResult, String> {
        self.queued_bytes += bytes.len();
        self.queue.push_back(OutgoingPacket { bytes, descriptors });
        let flushed = self.flush()?;
        if self.queue.len() > QUEUED_PACKETS_MAX || self.queued_bytes > QUEUED_BYTES_MAX {
            let (packets, bytes) = (self.queue.len(), self.queued_bytes);
            return Err(format!("it does not read: {packets} packets of {bytes} bytes wait for it"));
        }
        Ok(flushed)
    }

    /// Sends the queue as far as the peer takes it.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn flush(&mut self) -> Result<FlushResult, String> {
        while let Some(next) = self.queue.front() {
            match send_packet(&self.socket, &next.bytes, &next.descriptors) {
                Ok(()) => {
                    self.queued_bytes -= next.bytes.len();
                    self.queue.pop_front();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(FlushResult::WhenWritable),
                Err(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => return Ok(FlushResult::Later),
                // The peer's earlier packets can still be read, and then its end.
                Err(Errno::PIPE | Errno::CONNRESET) => {
                    self.queue.clear();
                    self.queued_bytes = 0;
                }
                Err(errno) => return Err(format!("sending to it: {errno}")),
            }
        }
        Ok(FlushResult::All)
    }

    /// Reads the next packet; `buffer` has [`BUFFER_BYTES`].
    ///
    /// # Errors
    /// A violation of the protocol; close the connection.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<ReceiveResult, String> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let came = match rustix::net::recvmsg(&self.socket, &mut [IoSliceMut::new(buffer)], &mut control, flags) {
            Ok(came) => came,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(ReceiveResult::Nothing),
            Err(_) => return Ok(ReceiveResult::End),
        };
        // Owned, so that every return closes descriptors that it does not pass on.
        let descriptors = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect::<Vec<OwnedFd>>();
        if came.bytes == 0 {
            return Ok(ReceiveResult::End);
        }
        if let Some(version) = packets::other_version(&buffer[..came.bytes]) {
            return Ok(ReceiveResult::OtherVersion(version));
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
            return Ok(ReceiveResult::WithoutDescriptors(packet));
        }
        let (expected, found) = (packet.descriptors(), descriptors.len());
        if found != expected {
            return Err(format!("a packet {} has {found} descriptors; {expected} are expected", packet.name()));
        }
        Ok(ReceiveResult::Packet(packet, descriptors))
    }
}

impl AsFd for PeerConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        // Tells the peer now, even if a forked child still has the descriptor. The peer may know already.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}

/// All or nothing.
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
    fn gone_peer_is_end_not_error() {
        let (flags, kind) = (SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, SocketType::SEQPACKET);
        let (own, other) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
        let (mut own, mut buffer) = (PeerConnection::over(own), vec![0; BUFFER_BYTES]);
        drop(other);
        let listed: Arc<[u8]> = Packet::Listed.encode().unwrap().into();
        assert_eq!(own.send(listed, Vec::new()), Ok(FlushResult::All));
        assert_eq!((own.queue.len(), own.queued_bytes), (0, 0));
        assert!(matches!(own.receive(&mut buffer), Ok(ReceiveResult::End)));
    }
}
