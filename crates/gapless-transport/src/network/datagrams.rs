//! [`Datagrams`]: the interface of a carrier of packets, and the packets that every carrier refuses.

use super::route::{Route, RouteTooNarrow};
use rustix::fd::BorrowedFd;
use std::io;

/// Address of a peer. A network in memory has addresses of its own.
pub type Peer = std::net::SocketAddr;

/// Longest packet of any carrier, bytes: the maximum of UDP over IPv4, 65,535 less 20 of IP's header and 8 of UDP's.
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
    /// Sends the packets that lie back to back in `bytes`, each `packet_length` bytes long except
    /// the last, which may be shorter.
    ///
    /// Returns the number of bytes taken, always whole packets. If it is less than given, the carrier has no room now,
    /// or refuses the next packet. Sending the rest again shows which, by 0 or an error. A taken packet may still be
    /// lost.
    ///
    /// # Errors
    /// The first packet is refused: it is longer than [`PACKET_LENGTH_MAX`], or by the operating system, with its
    /// reason. The error holds a [`SendRefusal`].
    ///
    /// # Panics
    /// If `packet_length` is 0.
    fn send(&mut self, to: Peer, bytes: &[u8], packet_length: usize) -> io::Result<usize>;

    /// Sends the packets that lie back to back in `bytes`, each with its length in `lengths`, bytes.
    ///
    /// Returns the number of packets taken; otherwise like [`Datagrams::send`].
    ///
    /// # Errors
    /// As for [`Datagrams::send`].
    ///
    /// # Panics
    /// If `lengths` holds a 0 or does not add up to the length of `bytes`.
    fn send_uneven(&mut self, to: Peer, bytes: &[u8], lengths: &[usize]) -> io::Result<usize>;

    /// Receives once: calls `take` with each packet and its sender, and returns the number of packets. 0 if none is
    /// waiting; after any other number there may be more.
    ///
    /// # Errors
    /// An error of the operating system that a retry cannot fix.
    fn receive(&mut self, take: &mut dyn FnMut(Peer, &[u8])) -> io::Result<usize>;

    /// Looks up the route to its peer again, for an end with a single peer: the host may have other addresses and
    /// routes than before. Waiting packets may be lost. No effect without a route to look up.
    ///
    /// # Errors
    /// An error of the operating system. This end continues as well as it can; a later call may succeed.
    fn renew(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Interface and longest packet of the route to its peer, for an end with a single peer, if they are known.
    fn route(&self) -> Option<Route> {
        None
    }

    /// Address of this end for others; for a multicast receiver its group.
    fn local_address(&self) -> Peer;

    /// Descriptor for `poll`, if the carrier has one.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
}

/// Reason why a packet was not taken, found inside the [`io::Error`] of [`Datagrams::send`].
#[derive(Debug, thiserror::Error)]
pub enum SendRefusal {
    /// No carrier takes a packet of this length.
    #[error("a packet of {packet_bytes} bytes to {peer} is longer than {PACKET_LENGTH_MAX}, the most that UDP carries")]
    TooLong { packet_bytes: usize, peer: Peer },
    /// The route does not take packets of this length.
    #[error("sending to {peer}: {narrow}")]
    TooNarrow { peer: Peer, narrow: RouteTooNarrow },
    #[error("sending a packet of {packet_bytes} bytes to {peer}: {source}")]
    System {
        /// Length of the packet; the longest, if several were sent in one call.
        packet_bytes: usize,
        peer: Peer,
        source: io::Error,
    },
}

impl SendRefusal {
    /// Whether `error` means that the route takes no packet of this length, so that a retry never helps.
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

/// Checks common to all carriers before sending packets of equal length.
pub(super) fn check_even(to: Peer, bytes: &[u8], packet_length: usize) -> Result<(), SendRefusal> {
    assert!(packet_length > 0, "packets of no length were to be sent to {to}");
    check_length(to, packet_length.min(bytes.len()))
}

/// Checks common to all carriers before sending packets of different lengths.
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
