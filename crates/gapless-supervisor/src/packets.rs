//! [`Packets`]: one end of a connection, without waiting unless it says so. What comes is not believed.

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

/// The longest packet of either side, bytes.
pub const PACKET_BYTES_MAX: usize = 64 << 10;
/// How it is said that a packet is of another protocol, or none.
pub const CANNOT_BE_READ: &str = "a packet cannot be read";
/// Packets that may wait for a peer that does not read.
const QUEUED_MAX: usize = 16 << 10;
/// Between two attempts at a socket at which others wait already.
const PAUSE: Duration = Duration::from_millis(1);

/// One end of a connection.
#[derive(Debug)]
pub struct Packets {
    socket: OwnedFd,
    queue: VecDeque<Waiting>,
    buffer: Vec<u8>,
    /// Descriptors that come along are taken.
    takes_descriptors: bool,
    /// The last one that has come.
    descriptor: Option<OwnedFd>,
}

/// A packet that is to be sent.
#[derive(Debug)]
struct Waiting {
    bytes: Vec<u8>,
    /// What goes along.
    descriptor: Option<OwnedFd>,
}

/// What has come.
#[derive(Debug)]
pub enum Received<T> {
    /// A packet.
    Packet(T),
    /// None yet.
    Nothing,
    /// The peer is gone.
    End,
}

impl Packets {
    /// Connects; `None` if nobody listens there. Waits until `deadline` where too many others wait to be heard.
    ///
    /// # Errors
    /// The system's.
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

    /// Takes over a socket that is connected and does not block.
    pub fn over(socket: OwnedFd) -> Self {
        let buffer = vec![0; PACKET_BYTES_MAX + 1];
        Self { socket, queue: VecDeque::new(), buffer, takes_descriptors: false, descriptor: None }
    }

    /// The same, of a peer that is trusted with handing over descriptors.
    pub fn with_descriptors(mut self) -> Self {
        self.takes_descriptors = true;
        self
    }

    /// The descriptor that came along with the last packets, if any did.
    pub const fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptor.take()
    }

    /// Sends a packet behind those that wait.
    ///
    /// # Errors
    /// The connection is broken, or the peer does not read: it is to be closed.
    pub fn send(&mut self, packet: &impl Serialize) -> Result<(), String> {
        self.send_with(packet, None)
    }

    /// As [`send`](Self::send), with a descriptor that goes along.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_with(&mut self, packet: &impl Serialize, descriptor: Option<OwnedFd>) -> Result<(), String> {
        let bytes = serde_json::to_vec(packet).map_err(|error| format!("writing a packet: {error}"))?;
        assert!(bytes.len() <= PACKET_BYTES_MAX, "a packet has {} bytes", bytes.len());
        self.queue.push_back(Waiting { bytes, descriptor });
        self.flush()?;
        if self.queue.len() > QUEUED_MAX {
            return Err(format!("it does not read: {} packets wait for it", self.queue.len()));
        }
        Ok(())
    }

    /// Sends what waits, as far as the peer takes it.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn flush(&mut self) -> Result<(), String> {
        while let Some(next) = self.queue.front() {
            match send_one(&self.socket, next) {
                Ok(_) => drop(self.queue.pop_front()),
                Err(Errno::INTR) => {}
                // Without memory in the kernel it is tried again, as with a queue that is full.
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => return Ok(()),
                Err(errno) => return Err(format!("sending to it: {errno}")),
            }
        }
        Ok(())
    }

    /// Whether something waits until the peer has read.
    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Waits until there is something to receive, or room for what is queued, and no longer than `most`. Whether it was no
    /// signal that ended it.
    fn wait(&self, most: Duration) -> bool {
        let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
        let writable = if self.has_queued() { PollFlags::OUT } else { PollFlags::empty() };
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN | writable)], Some(&most)) != Err(Errno::INTR)
    }

    /// Takes the next packet.
    ///
    /// # Errors
    /// What the peer has done wrong: the connection is to be closed.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<Received<T>, String> {
        let length = match self.receive_bytes() {
            // It went without reading all: told once, before what it has said.
            Err(Errno::CONNRESET) => self.receive_bytes(),
            other => other,
        };
        let length = match length {
            Ok(length) => length,
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::NOMEM) => return Ok(Received::Nothing),
            Err(_) => return Ok(Received::End),
        };
        match length {
            0 => Ok(Received::End),
            too_long if too_long > PACKET_BYTES_MAX => Err(format!("a packet has more than {PACKET_BYTES_MAX} bytes")),
            length => {
                let packet = serde_json::from_slice(&self.buffer[..length]);
                packet.map(Received::Packet).map_err(|error| format!("{CANNOT_BE_READ}: {error}"))
            }
        }
    }

    /// Takes the next packet, if one has come, and sends what waits.
    ///
    /// # Errors
    /// The connection is over.
    pub fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        let flushed = self.flush();
        match self.receive()? {
            Received::Packet(packet) => Ok(Some(packet)),
            // What it said last is read before it is noticed that it hears no more.
            Received::Nothing => flushed.map(|()| None),
            Received::End => Err("it has closed the connection".to_owned()),
        }
    }

    /// Waits for the next packet; `None` if none comes until then, or a signal comes.
    ///
    /// # Errors
    /// As [`next`](Self::next).
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
            // Those that come along are closed by the kernel: there is no room for them.
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

fn send_one(socket: &OwnedFd, waiting: &Waiting) -> Result<usize, Errno> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let Some(descriptor) = &waiting.descriptor else { return rustix::net::send(socket, &waiting.bytes, flags) };
    let descriptors = [descriptor.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)), "there is room for one");
    rustix::net::sendmsg(socket, &[IoSlice::new(&waiting.bytes)], &mut control, flags)
}

impl Packets {
    /// Hears nothing new from the peer and tells it nothing more. What it has sent already is still received, and then its
    /// end.
    pub fn shut(&mut self) {
        self.queue.clear();
        // It may be gone.
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
        // The peer is to know now, even if a child that was just forked still has the descriptor. It may know already.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}
