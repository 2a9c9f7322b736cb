//! `Packets`: JSON packets over a connection.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
};
use rustix::time::Timespec;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

pub const PACKET_BYTES_MAX: usize = 64 << 10;
/// Beginning of the error for an invalid packet, also of another protocol version.
pub const UNREADABLE_PACKET: &str = "a packet cannot be read";
const QUEUED_MAX: usize = 16 << 10;
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub struct Packets {
    socket: OwnedFd,
    queue: VecDeque<QueuedPacket>,
    buffer: Vec<u8>,
    takes_descriptors: bool,
    descriptor: Option<OwnedFd>,
}

#[derive(Debug)]
struct QueuedPacket {
    bytes: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

#[derive(Debug)]
pub enum PacketPoll<T> {
    Packet(T),
    Pending,
    Closed,
}

impl Packets {
    /// Connects, waiting until `deadline` while the backlog is full; `None` without a listener.
    pub fn connect(address: &SocketAddrUnix, deadline: Instant) -> Result<Option<Self>, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        loop {
            match rustix::net::connect(&socket, address) {
                Ok(()) => return Ok(Some(Self::over(socket))),
                Err(Errno::NOENT | Errno::CONNREFUSED) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if Instant::now() < deadline => std::thread::sleep(PAUSE),
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Takes over a connected, non-blocking socket.
    pub fn over(socket: OwnedFd) -> Self {
        let buffer = vec![0; PACKET_BYTES_MAX + 1];
        Self { socket, queue: VecDeque::new(), buffer, takes_descriptors: false, descriptor: None }
    }

    /// Accepts descriptors, from a trusted peer.
    pub fn with_descriptors(mut self) -> Self {
        self.takes_descriptors = true;
        self
    }

    /// Descriptor received with the last packets.
    pub const fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptor.take()
    }

    /// Sends a packet after the queued ones.
    ///
    /// # Errors
    /// The connection is broken, or the peer does not read; close the connection.
    pub fn send(&mut self, packet: &impl Serialize) -> Result<(), String> {
        self.send_with(packet, None)
    }

    /// Same as [`send`](Self::send), with a descriptor.
    pub fn send_with(&mut self, packet: &impl Serialize, descriptor: Option<OwnedFd>) -> Result<(), String> {
        let bytes = serde_json::to_vec(packet).map_err(|error| format!("writing a packet: {error}"))?;
        assert!(bytes.len() <= PACKET_BYTES_MAX, "a packet has {} bytes", bytes.len());
        self.queue.push_back(QueuedPacket { bytes, descriptor });
        self.flush()?;
        if self.queue.len() > QUEUED_MAX {
            return Err(format!("it does not read: {} packets wait for it", self.queue.len()));
        }
        Ok(())
    }

    /// Sends queued packets, as far as the peer accepts them.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn flush(&mut self) -> Result<(), String> {
        while let Some(next) = self.queue.front() {
            match send_one(&self.socket, next) {
                Ok(_) => drop(self.queue.pop_front()),
                Err(Errno::INTR) => {}
                // Retried later: queue full, or no memory in the kernel.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return Ok(()),
                Err(errno) => return Err(format!("sending to it: {errno}")),
            }
        }
        Ok(())
    }

    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    fn wait(&self, most: Duration) -> bool {
        let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
        let writable = if self.has_queued() { PollFlags::OUT } else { PollFlags::empty() };
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN | writable)], Some(&most)) != Err(Errno::INTR)
    }

    /// Receives the next packet.
    ///
    /// # Errors
    /// The peer has violated the protocol; close the connection.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<PacketPoll<T>, String> {
        let length = match self.receive_bytes() {
            // The peer has closed with unread data; reported once, before its remaining packets.
            Err(Errno::CONNRESET) => self.receive_bytes(),
            other => other,
        };
        let length = match length {
            Ok(length) => length,
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::NOMEM) => return Ok(PacketPoll::Pending),
            Err(_) => return Ok(PacketPoll::Closed),
        };
        match length {
            0 => Ok(PacketPoll::Closed),
            too_long if too_long > PACKET_BYTES_MAX => Err(format!("a packet has more than {PACKET_BYTES_MAX} bytes")),
            length => {
                let packet = serde_json::from_slice(&self.buffer[..length]);
                packet.map(PacketPoll::Packet).map_err(|error| format!("{UNREADABLE_PACKET}: {error}"))
            }
        }
    }

    /// Receives the next packet, if any, and sends queued ones.
    ///
    /// # Errors
    /// The connection is closed.
    pub fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        let flushed = self.flush();
        match self.receive()? {
            PacketPoll::Packet(packet) => Ok(Some(packet)),
            // The last packets of the peer are read before a failed send is reported.
            PacketPoll::Pending => flushed.map(|()| None),
            PacketPoll::Closed => Err("it has closed the connection".to_owned()),
        }
    }

    /// Waits for the next packet; `None` after the deadline or a signal.
    pub fn next_until<T: DeserializeOwned>(&mut self, deadline: Instant) -> Result<Option<T>, String> {
        loop {
            let packet = self.next()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if packet.is_some() || left.is_zero() || !self.wait(left) {
                return Ok(packet);
            }
        }
    }

    fn receive_bytes(&mut self) -> Result<usize, Errno> {
        if !self.takes_descriptors {
            // No room for descriptors, so the kernel closes them.
            return rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::DONTWAIT)
                .map(|(length, _)| length);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut pieces = [IoSliceMut::new(&mut self.buffer)];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = rustix::net::recvmsg(&self.socket, &mut pieces, &mut control, flags)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                descriptors.for_each(|descriptor| self.descriptor = Some(descriptor));
            }
        }
        Ok(received.bytes)
    }
}

fn send_one(socket: &OwnedFd, packet: &QueuedPacket) -> Result<usize, Errno> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let Some(descriptor) = &packet.descriptor else { return rustix::net::send(socket, &packet.bytes, flags) };
    let descriptors = [descriptor.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)), "there is room for one");
    rustix::net::sendmsg(socket, &[IoSlice::new(&packet.bytes)], &mut control, flags)
}

impl Packets {
    /// Shuts both directions; received packets can still be read.
    pub fn shut(&mut self) {
        self.queue.clear();
        // The peer may be gone.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}

impl AsFd for Packets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        // Explicit, because a child just forked may still hold the descriptor. Fails if the peer has closed it.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}
