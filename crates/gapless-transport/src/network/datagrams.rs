//! `Datagrams`: the interface of a carrier of packets, and the packets that every carrier refuses.

use super::route::{Route, RouteTooNarrow};
use rustix::fd::BorrowedFd;
use std::io;

/// A network in memory has addresses of its own.
pub type Peer = std::net::SocketAddr;

/// Maximum of UDP over IPv4: 65,535 less 20 of IP's header and 8 of UDP's.
pub const PACKET_LENGTH_MAX: usize = 65_507;

/// An unreliable carrier of packets that never blocks: sockets of the operating system, or a
/// network in memory.
///
/// ```
/// use gapless_transport::network::{Datagrams, Faults, MemoryNetwork};
///
/// let network = MemoryNetwork::new(7, Faults::NONE);
/// let (left, right) = ("10.0.0.1:1000".parse()?, "10.0.0.2:1000".parse()?);
/// let (mut sender, mut receiver) = (network.socket(left)?, network.socket(right)?);
/// assert_eq!(sender.send(right, b"onetwoend!", 3)?, 10);
/// let mut packets = Vec::new();
/// assert_eq!(receiver.receive(&mut |_, packet| packets.push(packet.to_vec()))?, 4);
/// assert_eq!(packets, [&b"one"[..], b"two", b"end", b"!"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Datagrams: Send {
    /// Sends packets back to back, each `packet_length` bytes long; the last may be shorter. Returns the bytes taken,
    /// always whole packets. Fewer: no room now, or the next packet is refused; sending the rest shows which, by 0 or
    /// an error. A taken packet may still be lost.
    ///
    /// # Errors
    /// The first packet is longer than [`PACKET_LENGTH_MAX`], or refused by the operating system. The error holds a
    /// [`SendRefusal`].
    ///
    /// # Panics
    /// If `packet_length` is 0.
    fn send(&mut self, to: Peer, bytes: &[u8], packet_length: usize) -> io::Result<usize>;

    /// Like [`Datagrams::send`], with the lengths of the packets; returns the number of packets taken.
    ///
    /// # Errors
    /// As for [`Datagrams::send`].
    ///
    /// # Panics
    /// If `lengths` holds a 0 or does not add up to the length of `bytes`.
    fn send_uneven(&mut self, to: Peer, bytes: &[u8], lengths: &[usize]) -> io::Result<usize>;

    /// Receives once and returns the number of packets: 0 if none is waiting, otherwise there may be more.
    ///
    /// # Errors
    /// An error of the operating system that a retry cannot fix.
    fn receive(&mut self, take: &mut dyn FnMut(Peer, &[u8])) -> io::Result<usize>;

    /// Looks up the route to a single peer again: the host's addresses may have changed. Waiting packets may be lost.
    ///
    /// # Errors
    /// An error of the operating system; this end continues as well as it can, and a later call may succeed.
    fn renew(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn route(&self) -> Option<Route> {
        None
    }

    /// Address of this end for others; for a multicast receiver its group.
    fn local_address(&self) -> Peer;

    fn fd(&self) -> Option<BorrowedFd<'_>>;
}

#[derive(Debug, thiserror::Error)]
pub enum SendRefusal {
    #[error("a packet of {packet_bytes} bytes to {peer} is longer than {PACKET_LENGTH_MAX}, the most that UDP carries")]
    TooLong { packet_bytes: usize, peer: Peer },
    #[error("sending to {peer}: {narrow}")]
    TooNarrow { peer: Peer, narrow: RouteTooNarrow },
    #[error("sending a packet of {packet_bytes} bytes to {peer}: {source}")]
    System {
        /// The longest, if several were sent in one call.
        packet_bytes: usize,
        peer: Peer,
        source: io::Error,
    },
}

impl SendRefusal {
    /// A retry never helps.
    #[must_use]
    pub fn is_too_narrow(error: &io::Error) -> bool {
        let refused = error.get_ref().and_then(|source| source.downcast_ref::<Self>());
        matches!(refused, Some(Self::TooNarrow { .. }))
    }
}

impl From<SendRefusal> for io::Error {
    fn from(refused: SendRefusal) -> Self {
        let kind = match &refused {
            SendRefusal::TooLong { .. } | SendRefusal::TooNarrow { .. } => io::ErrorKind::InvalidInput,
            SendRefusal::System { source, .. } => source.kind(),
        };
        Self::new(kind, refused)
    }
}

pub(super) fn check_even(to: Peer, bytes: &[u8], packet_length: usize) -> Result<(), SendRefusal> {
    assert!(packet_length > 0, "packets of no length were to be sent to {to}");
    check_length(to, packet_length.min(bytes.len()))
}

pub(super) fn check_uneven(to: Peer, bytes: &[u8], lengths: &[usize]) -> Result<(), SendRefusal> {
    let (mut total, mut longest) = (0, 0);
    for &length in lengths {
        assert!(length > 0, "a packet of no length was to be sent to {to}");
        total += length;
        longest = longest.max(length);
    }
    assert_eq!(total, bytes.len(), "the lengths of the packets to {to} do not add up to their bytes");
    check_length(to, longest)
}

fn check_length(peer: Peer, packet_bytes: usize) -> Result<(), SendRefusal> {
    if packet_bytes > PACKET_LENGTH_MAX { Err(SendRefusal::TooLong { packet_bytes, peer }) } else { Ok(()) }
}
