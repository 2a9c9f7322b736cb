//! [`Datagrams`]: the operations that the stream needs of a carrier of packets, and the packets that every carrier
//! refuses.

use super::route::{Route, RouteTooNarrow};
use rustix::fd::BorrowedFd;
use std::io;

/// Where packets are sent to and come from. A network in memory makes up its own addresses.
pub type Peer = std::net::SocketAddr;

/// The longest packet that any carrier takes, bytes: the most that UDP over IPv4 carries, which is 65,535 less 20 of
/// IP's header and 8 of UDP's.
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
    /// Returns how many bytes were taken, whole packets always. Fewer than there are: the carrier
    /// has no room now, or refuses the next packet; sending the rest again tells which, by 0 or
    /// an error. Taken does not mean that it arrives.
    ///
    /// # Errors
    /// The first packet is refused: it is longer than [`PACKET_LENGTH_MAX`], or the operating
    /// system says why. The error holds a [`SendRefused`].
    ///
    /// # Panics
    /// If `packet_length` is 0.
    fn send(&mut self, to: Peer, bytes: &[u8], packet_length: usize) -> io::Result<usize>;

    /// Sends the packets that lie back to back in `bytes`, each as long as `lengths` says, bytes.
    ///
    /// Returns how many packets were taken; as for [`Datagrams::send`] otherwise.
    ///
    /// # Errors
    /// As for [`Datagrams::send`].
    ///
    /// # Panics
    /// If `lengths` holds a 0 or does not add up to the length of `bytes`.
    fn send_uneven(&mut self, to: Peer, bytes: &[u8], lengths: &[usize]) -> io::Result<usize>;

    /// Takes what one look brings: calls `take` with each packet and its sender, and returns how
    /// many there were. 0 if nothing is waiting; there may be more after any other number.
    ///
    /// # Errors
    /// The operating system's, of a kind that another try does not mend.
    fn receive(&mut self, take: &mut dyn FnMut(Peer, &[u8])) -> io::Result<usize>;

    /// Looks for the way to its peer anew, where this end talks with one alone: the host may have other addresses and
    /// routes than before. Packets that wait to be received may be lost. Nothing, where there is nothing to look for.
    ///
    /// # Errors
    /// The operating system's. This end goes on as well as it can; a later call may succeed.
    fn renew(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The interface and the longest packet of the way to its peer, where this end talks with one alone and they are
    /// known.
    fn route(&self) -> Option<Route> {
        None
    }

    /// Where others reach this end; a receiver of multicast says its group.
    fn local_address(&self) -> Peer;

    /// The descriptor that `poll` may wait on, if the carrier has such a thing.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
}

/// Why a packet was not taken. Found inside the [`io::Error`] of [`Datagrams::send`].
#[derive(Debug, thiserror::Error)]
pub enum SendRefused {
    /// No carrier takes a packet of this length.
    #[error("a packet of {packet_bytes} bytes to {peer} is longer than {PACKET_LENGTH_MAX}, the most that UDP carries")]
    TooLong {
        packet_bytes: usize,
        /// Where it should go.
        peer: Peer,
    },
    /// The way to there takes no packet of this length.
    #[error("sending to {peer}: {narrow}")]
    TooNarrow {
        /// Where it should go.
        peer: Peer,
        narrow: RouteTooNarrow,
    },
    #[error("sending a packet of {packet_bytes} bytes to {peer}: {source}")]
    System {
        /// Its length; the longest, where several were sent in one call.
        packet_bytes: usize,
        /// Where it should go.
        peer: Peer,
        source: io::Error,
    },
}

impl SendRefused {
    /// Whether `error` says that the way takes no packet of this length: sending it again never helps.
    #[must_use]
    pub fn is_too_narrow(error: &io::Error) -> bool {
        let refused = error.get_ref().and_then(|source| source.downcast_ref::<Self>());
        matches!(refused, Some(Self::TooNarrow { .. }))
    }
}

impl From<SendRefused> for io::Error {
    fn from(refused: SendRefused) -> Self {
        let kind = match &refused {
            SendRefused::TooLong { .. } | SendRefused::TooNarrow { .. } => io::ErrorKind::InvalidInput,
            SendRefused::System { source, .. } => source.kind(),
        };
        Self::new(kind, refused)
    }
}

/// Checks what every carrier checks before it sends equal packets.
pub(super) fn check_even(to: Peer, bytes: &[u8], packet_length: usize) -> Result<(), SendRefused> {
    assert!(packet_length > 0, "packets of no length were to be sent to {to}");
    check_length(to, packet_length.min(bytes.len()))
}

/// Checks what every carrier checks before it sends packets of different lengths.
pub(super) fn check_uneven(to: Peer, bytes: &[u8], lengths: &[usize]) -> Result<(), SendRefused> {
    let (mut total, mut longest) = (0, 0);
    for &length in lengths {
        assert!(length > 0, "a packet of no length was to be sent to {to}");
        total += length;
        longest = longest.max(length);
    }
    assert_eq!(total, bytes.len(), "the lengths of the packets to {to} do not add up to their bytes");
    check_length(to, longest)
}

fn check_length(peer: Peer, packet_bytes: usize) -> Result<(), SendRefused> {
    if packet_bytes > PACKET_LENGTH_MAX { Err(SendRefused::TooLong { packet_bytes, peer }) } else { Ok(()) }
}
