//! The simplest call while packets arrive singly, many packets for each call while they queue up.

use super::Peer;
use super::udp_peer::is_lost_packet;
use nix::sys::socket::sockopt::{RxqOvfl, UdpGroSegment};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrStorage, recvmmsg, recvmsg, setsockopt,
};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, recvfrom};
use std::io::IoSliceMut;

/// No packet is longer, and the kernel joins no more.
const MESSAGE_BYTES_MAX: usize = 1 << 16;
const MESSAGES_PER_CALL: usize = 16;
/// Successful reads in a row until many packets are requested at once. They need not mean a queue: a receiver that
/// answers may find the next packet when the answer is sent.
const FRUITFUL_POLLS: u32 = 8;
const QUEUED_MESSAGES: usize = 4;
/// Length of joined packets and count of overflows, 24 bytes each.
const CONTROL_BYTES: usize = 48;

type PacketHandler<'a> = &'a mut dyn FnMut(Peer, &[u8]);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpCounters {
    /// Longer than the receive buffer.
    pub truncated: u64,
    /// The receive buffer was too full. Reported with a later packet, only after packets have queued up; joined packets
    /// count as one.
    pub overflowed: u64,
}

pub(super) struct Inbox {
    /// Allocated page by page, when first written to.
    buffers: Box<[u8]>,
    control: ControlBuffer,
    senders: SenderFilter,
    fruitful_polls: u32,
    may_join: bool,
    joins: bool,
    counters: UdpCounters,
}

#[derive(Clone, Copy)]
struct SenderFilter {
    peer: Option<Peer>,
    is_connected: bool,
}

impl SenderFilter {
    /// `None` if not accepted; the peer keeps its given name.
    fn name(self, from: impl FnOnce() -> Option<Peer>) -> Option<Peer> {
        match self.peer {
            Some(peer) if self.is_connected => Some(peer),
            Some(peer) => from().filter(|from| (from.ip(), from.port()) == (peer.ip(), peer.port())).and(Some(peer)),
            None => from(),
        }
    }
}

/// Aligned for the headers of control messages.
#[repr(align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

impl Inbox {
    pub(super) fn new(socket: &OwnedFd, peer: Option<Peer>, may_join: bool) -> Self {
        // Without it, overflows are not counted.
        let _ = setsockopt(socket, RxqOvfl, &1);
        Self {
            buffers: vec![0; MESSAGE_BYTES_MAX * MESSAGES_PER_CALL].into_boxed_slice(),
            control: ControlBuffer([0; CONTROL_BYTES]),
            senders: SenderFilter { peer, is_connected: false },
            fruitful_polls: 0,
            may_join,
            joins: false,
            counters: UdpCounters::default(),
        }
    }

    pub(super) fn set_connected(&mut self, is_connected: bool) {
        self.senders.is_connected = is_connected;
    }

    pub(super) fn counters(&self) -> UdpCounters {
        self.counters
    }

    pub(super) fn joins(&self) -> bool {
        self.joins
    }

    pub(super) fn receive_packets(&mut self, socket: &OwnedFd, take: PacketHandler<'_>) -> Result<usize, Errno> {
        loop {
            let found = if self.fruitful_polls >= FRUITFUL_POLLS {
                self.take_many(socket, take)
            } else if self.joins {
                self.take_joined(socket, take)
            } else {
                self.take_one(socket, take)
            };
            match found {
                Ok(0) => {}
                Ok(packets) => {
                    self.fruitful_polls = self.fruitful_polls.saturating_add(1);
                    return Ok(packets);
                }
                Err(Errno::AGAIN) => {
                    self.fruitful_polls = 0;
                    return Ok(0);
                }
                Err(Errno::INTR) => {}
                // Reported once; the next read gets the packets after it.
                Err(errno) if self.senders.peer.is_some() && is_lost_packet(errno) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Every packet then costs 0.2 µs more, an empty poll 0.1 µs, so it starts only when it pays. It never ends:
    /// waiting joined packets would be received without their segment length.
    fn enable_joining(&mut self, socket: &OwnedFd) {
        if self.may_join && !self.joins {
            self.joins = setsockopt(socket, UdpGroSegment, &true).is_ok();
            self.may_join = self.joins;
        }
    }

    fn take_one(&mut self, socket: &OwnedFd, take: PacketHandler<'_>) -> Result<usize, Errno> {
        let buffer = &mut self.buffers[..MESSAGE_BYTES_MAX];
        // The length is then the packet's, even if the buffer is shorter.
        let (length, from) = if self.senders.is_connected {
            let (_, length) = recv(socket, &mut *buffer, RecvFlags::TRUNC)?;
            (length, None)
        } else {
            let (_, length, from) = recvfrom(socket, &mut *buffer, RecvFlags::TRUNC)?;
            (length, from)
        };
        let Some(packet) = buffer.get(..length) else {
            self.counters.truncated += 1;
            return Ok(0);
        };
        let Some(from) = self.senders.name(|| from.and_then(|from| Peer::try_from(from).ok())) else { return Ok(0) };
        take(from, packet);
        Ok(1)
    }

    fn take_joined(&mut self, socket: &OwnedFd, take: PacketHandler<'_>) -> Result<usize, Errno> {
        let mut slices = [IoSliceMut::new(&mut self.buffers[..MESSAGE_BYTES_MAX])];
        let control = Some(&mut self.control.0[..]);
        let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slices, control, MsgFlags::empty());
        Ok(split_joined(&message.map_err(errno)?, self.senders, &mut self.counters, take))
    }

    fn take_many(&mut self, socket: &OwnedFd, take: PacketHandler<'_>) -> Result<usize, Errno> {
        // For each call: nix does not restore the lengths of the control buffers, so a second use would receive joined
        // packets without their segment length (nix-rust/nix#2813).
        let control = Some(vec![0; CONTROL_BYTES]);
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(MESSAGES_PER_CALL, control);
        let mut buffers = self.buffers.chunks_exact_mut(MESSAGE_BYTES_MAX);
        let mut slices: [_; MESSAGES_PER_CALL] =
            std::array::from_fn(|_| [IoSliceMut::new(buffers.next().unwrap_or_default())]);
        let messages = recvmmsg(socket.as_raw_fd(), &mut headers, &mut slices, MsgFlags::empty(), None);
        let (mut packets, mut message_count) = (0, 0);
        for message in messages.map_err(errno)? {
            packets += split_joined(&message, self.senders, &mut self.counters, take);
            message_count += 1;
        }
        if message_count >= QUEUED_MESSAGES {
            self.enable_joining(socket);
        }
        if message_count < MESSAGES_PER_CALL {
            self.fruitful_polls = 0;
        }
        Ok(packets)
    }
}

fn split_joined(
    message: &RecvMsg<'_, '_, SockaddrStorage>,
    senders: SenderFilter,
    counters: &mut UdpCounters,
    take: PacketHandler<'_>,
) -> usize {
    let bytes = message.iovs().next().unwrap_or_default();
    let mut packet_length = bytes.len();
    for control in message.cmsgs().into_iter().flatten() {
        match control {
            ControlMessageOwned::UdpGroSegments(length) => packet_length = length as usize,
            ControlMessageOwned::RxqOvfl(count) => counters.overflowed = u64::from(count),
            _ => {}
        }
    }
    // Without complete control messages the packets' ends are unknown.
    if message.flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC) {
        counters.truncated += 1;
        return 0;
    }
    let Some(from) = senders.name(|| message.address.as_ref().and_then(peer_of)) else { return 0 };
    if bytes.is_empty() {
        take(from, bytes);
        return 1;
    }
    let packets = bytes.chunks(packet_length.max(1));
    let count = packets.len();
    packets.for_each(|packet| take(from, packet));
    count
}

fn peer_of(address: &SockaddrStorage) -> Option<Peer> {
    if let Some(address) = address.as_sockaddr_in() {
        return Some(Peer::V4((*address).into()));
    }
    address.as_sockaddr_in6().map(|address| Peer::V6((*address).into()))
}

fn errno(error: nix::Error) -> Errno {
    Errno::from_raw_os_error(error as i32)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;
    use crate::network::udp_options::{UdpOptions, open};
    use std::net::{Ipv4Addr, UdpSocket};
    use std::time::{Duration, Instant};

    #[test]
    fn unconnected_socket_filters_senders() {
        let end = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (peer, stranger) = (end(), end());
        let name = peer.local_addr().unwrap();
        let socket = open(&UdpOptions::at(Peer::new(Ipv4Addr::LOCALHOST.into(), 0))).unwrap();
        let here = Peer::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
        let mut inbox = Inbox::new(&socket, Some(name), true);
        for (fruitful_polls, strangers, joins) in
            [(0, 1, false), (FRUITFUL_POLLS, 1, false), (FRUITFUL_POLLS, 2, true), (0, 1, true)]
        {
            let stranger_sends = || {
                (0..strangers).for_each(|_| {
                    stranger.send_to(b"strange", here).unwrap();
                })
            };
            stranger_sends();
            peer.send_to(b"known", here).unwrap();
            stranger_sends();
            inbox.fruitful_polls = fruitful_polls;
            let (mut packets, deadline) = (Vec::new(), Instant::now() + Duration::from_secs(30));
            while packets.is_empty() {
                inbox.receive_packets(&socket, &mut |from, packet| packets.push((from, packet.to_vec()))).unwrap();
                assert!(Instant::now() < deadline, "nothing has come");
            }
            while inbox.receive_packets(&socket, &mut |from, packet| packets.push((from, packet.to_vec()))).unwrap() > 0
            {
            }
            assert_eq!(packets, [(name, b"known".to_vec())]);
            assert_eq!(inbox.joins(), joins, "{strangers} before and after");
        }
        assert_eq!(inbox.counters().truncated, 0);
    }
}
