//! Passing the kernel's network stack costs 1 to 2 µs, for one packet or for 64 of equal length that the kernel splits
//! at its far end (`UDP_SEGMENT`; the last may be shorter). The receiving kernel keeps or joins them (`UDP_GRO`), and
//! one call takes them all. The segment length is set on the socket, and only when it changes: unlike a control message
//! with each call, it costs nothing while the length stays the same.

use super::datagrams::{Datagrams, PACKET_LENGTH_MAX, Peer, SendRefusal, check_even, check_uneven};
use super::route::Route;
use super::udp_options::{Segmentation, UdpOptions, failed, open};
use super::udp_peer::{connect_to, disconnect, is_lost_packet};
use super::udp_receive::{Inbox, UdpCounters};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::UdpGsoSegment;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, send, sendmmsg, sendto, sockopt};
use std::fmt;
use std::io::{self, IoSlice};

/// Newer kernels take 128.
const SEGMENTS_MAX: usize = 64;
const MESSAGES_PER_CALL: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Ends when an interface does not support it.
    pub send: bool,
    /// Begins when packets first queue up.
    pub receive: bool,
}

pub struct UdpSocket {
    socket: OwnedFd,
    local: Peer,
    requested_local: Peer,
    peer: Option<Peer>,
    is_connected: bool,
    joins: bool,
    /// Segment length set in the kernel, bytes; 0 for none.
    segment_bytes: usize,
    /// Longest segment that fits the interface, bytes; a longer one failed.
    segment_bytes_max: usize,
    inbox: Inbox,
}

impl UdpSocket {
    /// Works without the kernel's support for joined packets too; see [`UdpSocket::offload`].
    ///
    /// # Errors
    /// Contradictory options, an unknown address or interface, other errors of the operating system; the text names the
    /// step that failed.
    pub fn open(options: &UdpOptions) -> io::Result<Self> {
        let socket = open(options)?;
        let wanted = options.segmentation == Segmentation::Auto;
        // Sets the current value, only to ask whether the kernel knows the option.
        let joins = wanted && setsockopt(&socket, UdpGsoSegment, &0).is_ok();
        let inbox = Inbox::new(&socket, options.peer, wanted);
        let peer = options.peer;
        let mut opened = Self {
            local: local_of(&socket)?,
            socket,
            requested_local: options.local,
            peer,
            is_connected: false,
            joins,
            segment_bytes: 0,
            segment_bytes_max: PACKET_LENGTH_MAX,
            inbox,
        };
        opened.connect()?;
        Ok(opened)
    }

    fn connect(&mut self) -> io::Result<()> {
        let Some(peer) = self.peer else { return Ok(()) };
        let connected = connect_to(&self.socket, peer);
        self.is_connected = connected == Ok(true);
        self.inbox.set_connected(self.is_connected);
        connected.map_err(failed(format!("connecting a UDP socket to {peer}")))?;
        self.local = local_of(&self.socket)?;
        Ok(())
    }

    #[must_use]
    pub fn offload(&self) -> Offload {
        Offload { send: self.joins, receive: self.inbox.joins() }
    }

    #[must_use]
    pub fn counters(&self) -> UdpCounters {
        self.inbox.counters()
    }

    /// Counted by the kernel: twice the requested size, or twice the system's limit.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn receive_buffer_bytes(&self) -> io::Result<usize> {
        Ok(sockopt::socket_recv_buffer_size(&self.socket)?)
    }

    /// Counted by the kernel.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn send_buffer_bytes(&self) -> io::Result<usize> {
        Ok(sockopt::socket_send_buffer_size(&self.socket)?)
    }

    fn segments_max(&self, packet_length: usize) -> usize {
        if !self.joins || packet_length > self.segment_bytes_max {
            return 1;
        }
        (PACKET_LENGTH_MAX / packet_length).min(SEGMENTS_MAX)
    }

    /// Packets as long as the first, and a shorter one after them.
    fn run_at(&self, lengths: &[usize]) -> usize {
        let length = lengths[0];
        let packets_max = self.segments_max(length).min(lengths.len());
        let equal = lengths[..packets_max].iter().take_while(|next| **next == length).count();
        let is_followed = equal < packets_max && lengths[equal] < length;
        equal + usize::from(is_followed)
    }

    fn send_run(&mut self, to: Peer, bytes: &[u8], packet_length: usize) -> io::Result<usize> {
        self.set_segment_bytes(packet_length);
        let errno = match self.retry_interrupted(|this| this.send_single(to, bytes)) {
            Err(errno @ (Errno::INVAL | Errno::IO | Errno::MSGSIZE)) => errno,
            sent => return send_result(sent, to, packet_length),
        };
        // No support by the interface, or a wrong address: sending singly shows which.
        let sent = self.send_each(to, bytes, bytes.chunks(packet_length).map(<[u8]>::len))?;
        if sent > 0 && errno == Errno::MSGSIZE {
            // A joined packet, unlike a single one, is not split to fit the interface.
            self.segment_bytes_max = packet_length - 1;
        } else if sent > 0 {
            self.joins = false;
            let local = self.local;
            tracing::warn!(%local, %to, %errno, "packets are sent one by one: the way to there takes no joined ones");
        }
        Ok((sent * packet_length).min(bytes.len()))
    }

    /// One call; returns the number taken, of the first [`MESSAGES_PER_CALL`].
    fn send_each(&mut self, to: Peer, bytes: &[u8], lengths: impl Iterator<Item = usize> + Clone) -> io::Result<usize> {
        let longest = lengths.clone().take(MESSAGES_PER_CALL).max().unwrap_or(0);
        let mut rest = bytes;
        let mut lengths = lengths.take(MESSAGES_PER_CALL);
        let mut packets = 0;
        let slices: [_; MESSAGES_PER_CALL] = std::array::from_fn(|_| {
            let (packet, after) = rest.split_at(lengths.next().unwrap_or(0));
            packets += usize::from(!packet.is_empty());
            rest = after;
            [IoSlice::new(packet)]
        });
        let sent = self.without_segmentation(longest, |this| {
            let address = to.as_any();
            let mut controls: [_; MESSAGES_PER_CALL] = std::array::from_fn(|_| SendAncillaryBuffer::default());
            let mut messages = controls.iter_mut().zip(&slices);
            let mut messages: [_; MESSAGES_PER_CALL] = std::array::from_fn(|_| match messages.next() {
                Some((control, slice)) => MMsgHdr::new_with_addr(&address, slice, control),
                None => unreachable!("there are as many messages as slices"),
            });
            sendmmsg(&this.socket, &mut messages[..packets], SendFlags::empty())
        });
        send_result(sent, to, longest)
    }

    fn send_one(&mut self, to: Peer, packet: &[u8]) -> io::Result<usize> {
        let sent = self.without_segmentation(packet.len(), |this| this.send_single(to, packet));
        send_result(sent, to, packet.len())
    }

    fn send_single(&self, to: Peer, bytes: &[u8]) -> Result<usize, Errno> {
        if self.is_connected && self.peer == Some(to) {
            return send(&self.socket, bytes, SendFlags::empty());
        }
        sendto(&self.socket, bytes, SendFlags::empty(), &to)
    }

    /// The kernel must not split packets of at most `longest` bytes.
    fn without_segmentation<T>(
        &mut self,
        longest: usize,
        call: impl Fn(&Self) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        if longest > self.segment_bytes {
            self.set_segment_bytes(0);
        }
        match self.retry_interrupted(&call) {
            // An interface without segmentation refuses whole packets too while it is on.
            Err(Errno::INVAL | Errno::IO | Errno::MSGSIZE) if self.segment_bytes != 0 => {
                self.set_segment_bytes(0);
                self.retry_interrupted(&call)
            }
            result => result,
        }
    }

    /// Repeats a call that was interrupted by a signal. Also repeats one whose error may belong to an earlier packet:
    /// the kernel reports it once, so the second result belongs to this packet.
    fn retry_interrupted<T>(&self, call: impl Fn(&Self) -> Result<T, Errno>) -> Result<T, Errno> {
        let mut may_be_of_earlier = self.peer.is_some();
        loop {
            match call(self) {
                Err(Errno::INTR) => {}
                Err(errno) if may_be_of_earlier && is_lost_packet(errno) => may_be_of_earlier = false,
                result => return result,
            }
        }
    }

    fn set_segment_bytes(&mut self, segment_bytes: usize) {
        if segment_bytes != self.segment_bytes {
            let set = setsockopt(&self.socket, UdpGsoSegment, &(segment_bytes as i32));
            assert!(set.is_ok(), "the kernel refuses to cut at {segment_bytes} bytes: {set:?}");
            self.segment_bytes = segment_bytes;
        }
    }
}

impl Datagrams for UdpSocket {
    fn send(&mut self, to: Peer, bytes: &[u8], packet_length: usize) -> io::Result<usize> {
        check_even(to, bytes, packet_length)?;
        let run_bytes = packet_length * self.segments_max(packet_length);
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            let sent = if rest.len() <= packet_length {
                self.send_one(to, rest)
            } else if run_bytes > packet_length && self.joins {
                self.send_run(to, &rest[..rest.len().min(run_bytes)], packet_length)
            } else {
                let sent = self.send_each(to, rest, rest.chunks(packet_length).map(<[u8]>::len));
                sent.map(|packets| (packets * packet_length).min(rest.len()))
            };
            match sent {
                Ok(0) => break,
                Ok(sent) => done += sent,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn send_uneven(&mut self, to: Peer, bytes: &[u8], lengths: &[usize]) -> io::Result<usize> {
        check_uneven(to, bytes, lengths)?;
        let (mut done, mut rest) = (0, bytes);
        while done < lengths.len() {
            let lengths = &lengths[done..];
            let run = self.run_at(lengths);
            let sent = if run > 1 {
                let run_bytes = lengths[..run].iter().sum();
                self.send_run(to, &rest[..run_bytes], lengths[0]).map(|sent| sent.div_ceil(lengths[0]))
            } else {
                let begins_run = |at: &usize| self.run_at(&lengths[*at..]) > 1;
                let singles = (1..lengths.len().min(MESSAGES_PER_CALL)).find(begins_run);
                let singles = singles.unwrap_or(lengths.len().min(MESSAGES_PER_CALL));
                if singles == 1 {
                    self.send_one(to, &rest[..lengths[0]]).map(|sent| usize::from(sent > 0))
                } else {
                    self.send_each(to, rest, lengths[..singles].iter().copied())
                }
            };
            match sent {
                Ok(0) => break,
                Ok(sent) => {
                    rest = &rest[lengths[..sent].iter().sum()..];
                    done += sent;
                }
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn receive(&mut self, take: &mut dyn FnMut(Peer, &[u8])) -> io::Result<usize> {
        self.inbox
            .receive_packets(&self.socket, take)
            .map_err(|errno| failed(format!("receiving at {}", self.local))(errno))
    }

    fn renew(&mut self) -> io::Result<()> {
        let Some(peer) = self.peer else { return Ok(()) };
        self.is_connected = false;
        self.inbox.set_connected(false);
        disconnect(&self.socket, self.local, self.requested_local)
            .map_err(failed(format!("disconnecting a UDP socket from {peer}")))?;
        self.connect()
    }

    fn route(&self) -> Option<Route> {
        if self.is_connected { Route::of_connected(&self.socket) } else { None }
    }

    fn local_address(&self) -> Peer {
        self.local
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket")
            .field("local", &self.local)
            .field("offload", &self.offload())
            .finish_non_exhaustive()
    }
}

fn local_of(socket: &OwnedFd) -> io::Result<Peer> {
    let name = rustix::net::getsockname(socket).and_then(Peer::try_from);
    name.map_err(failed("reading a socket's address".to_owned()))
}

#[cold]
fn too_narrow(peer: Peer, packet_bytes: usize) -> Option<SendRefusal> {
    let narrow = Route::to(peer)?.check(packet_bytes, peer.ip()).err()?;
    Some(SendRefusal::TooNarrow { peer, narrow })
}

/// 0 if there is no room.
fn send_result(sent: Result<usize, Errno>, peer: Peer, packet_bytes: usize) -> io::Result<usize> {
    match sent {
        Ok(sent) => Ok(sent),
        Err(Errno::AGAIN | Errno::NOBUFS) => Ok(0),
        Err(Errno::MSGSIZE) if let Some(refused) = too_narrow(peer, packet_bytes) => Err(refused.into()),
        Err(errno) => Err(SendRefusal::System { packet_bytes, peer, source: errno.into() }.into()),
    }
}
