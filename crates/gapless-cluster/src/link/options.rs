//! `MemberLinkOptions`: options of a member's links, with every default.

use super::detached_sender::DetachedSend;
use super::error::LinkError;
use super::tls::LinkTls;
use super::wire::MemberNumber;
use gapless_transport::sockets::Network;
use gapless_transport::sockets::RING_BYTES;
use std::net::SocketAddr;
use std::path::PathBuf;

pub const PEERS_MAX: usize = 64;
/// Limit of addresses of one peer.
pub const MEMBER_ADDRESSES_MAX: usize = 16;

/// Another member, and its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerOptions {
    pub member: MemberNumber,
    /// Host and port (`10.0.0.5:9100`, `[fe80::1]:9100`, `db2.example.org:9100`) or a shared-memory socket
    /// (`shm:/run/orders/member-2`), tried in this order; at most [`MEMBER_ADDRESSES_MAX`]. May be empty for a peer
    /// with a lower number, which dials.
    pub addresses: Vec<String>,
}

/// Multicast group of the announcements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryOptions {
    pub group: SocketAddr,
    /// Interface that joins the group.
    pub interface: String,
    /// 1 to [`MEMBER_ADDRESSES_MAX`]; for `0.0.0.0` and `[::]` the others take the source address of the beacons.
    pub addresses: Vec<SocketAddr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberLinkOptions {
    /// TCP address for members with lower numbers; port 0 is any free one. `None`: no TCP.
    pub listen: Option<SocketAddr>,
    /// Unix socket (mode 0600) for members with lower numbers on this host, created at the start and removed at the
    /// end. `None`: none.
    pub listen_shared: Option<PathBuf>,
    /// Network of the connections.
    pub network: Network,
    /// Limit of queued bytes for one peer; beyond it messages are dropped. A message in progress is kept, so there can
    /// be one more.
    pub queue_bytes_max: usize,
    /// Bytes for one peer; grows for longer messages while they keep arriving.
    pub receive_buffer_bytes: usize,
    /// Sending threads for TCP connections without TLS. `None`: the caller sends.
    pub detached_send: Option<DetachedSend>,
    /// Bytes for each connection; 0 leaves the size to the operating system, best on Linux.
    pub kernel_buffer_bytes: usize,
    /// `None`: only the given addresses.
    pub discovery: Option<DiscoveryOptions>,
    /// TLS over TCP; other connections are refused, including shared memory. `None`: any peer with the right name and
    /// number is accepted, unencrypted.
    pub tls: Option<LinkTls>,
    /// Bytes of each of the two rings of a shared-memory connection, decided by the dialling member: a power of two
    /// from 4 KiB to 256 MiB.
    pub shared_ring_bytes: usize,
    /// Time without a message until a ping, ns.
    pub ping_interval_ns: u64,
    /// Time without a message until a peer is gone, ns; at least three ping intervals.
    pub silence_ns_max: u64,
    /// Timeout of connecting and handshake, ns.
    pub handshake_ns_max: u64,
    /// Connections before the handshake; the oldest is dropped for a new one.
    pub half_open_max: usize,
    /// First pause between rounds of a peer's addresses, ns; doubled from round to round.
    pub back_off_ns_min: u64,
    /// Longest such pause, and the pause after a refusal, ns.
    pub back_off_ns_max: u64,
}

impl Default for MemberLinkOptions {
    fn default() -> Self {
        Self {
            listen: None,
            listen_shared: None,
            network: Network::Tcp,
            queue_bytes_max: 16 << 20,
            receive_buffer_bytes: 1 << 20,
            detached_send: None,
            kernel_buffer_bytes: 0,
            discovery: None,
            tls: None,
            shared_ring_bytes: 1 << 20,
            ping_interval_ns: 100_000_000,
            silence_ns_max: 2_000_000_000,
            handshake_ns_max: 1_000_000_000,
            half_open_max: 32,
            back_off_ns_min: 5_000_000,
            back_off_ns_max: 200_000_000,
        }
    }
}

impl MemberLinkOptions {
    /// Checks the options against each other.
    ///
    /// # Errors
    /// The first option that is out of range or contradicts another.
    pub fn validate(&self) -> Result<(), LinkError> {
        let checks = [
            (self.receive_buffer_bytes >= 4096, "receive_buffer_bytes is at least 4096"),
            (self.receive_buffer_bytes <= 1 << 30, "receive_buffer_bytes is at most 1 GiB"),
            (self.kernel_buffer_bytes <= 1 << 30, "kernel_buffer_bytes is at most 1 GiB"),
            (
                self.shared_ring_bytes.is_power_of_two() && RING_BYTES.contains(&self.shared_ring_bytes),
                "shared_ring_bytes is a power of two from 4 KiB to 256 MiB",
            ),
            (self.queue_bytes_max <= 1 << 32, "queue_bytes_max is at most 4 GiB"),
            (
                self.tls.is_none() || self.listen_shared.is_none(),
                "with TLS there are no connections through shared memory",
            ),
            (
                self.discovery.as_ref().is_none_or(|each| (1..=MEMBER_ADDRESSES_MAX).contains(&each.addresses.len())),
                "who is to be discovered has 1 to 16 addresses",
            ),
            (self.ping_interval_ns > 0, "ping_interval_ns is at least 1"),
            (self.silence_ns_max / 3 >= self.ping_interval_ns, "silence_ns_max is at least three ping intervals"),
            (self.handshake_ns_max > 0, "handshake_ns_max is at least 1"),
            ((1..=4096).contains(&self.half_open_max), "half_open_max is 1 to 4096"),
            (self.back_off_ns_min > 0, "back_off_ns_min is at least 1"),
            (self.back_off_ns_max >= self.back_off_ns_min, "back_off_ns_max is at least back_off_ns_min"),
        ];
        let broken = checks.into_iter().find(|(is_valid, _)| !is_valid);
        broken.map_or(Ok(()), |(_, rule)| Err(LinkError::Option { rule }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_options_are_refused() {
        assert!(MemberLinkOptions::default().validate().is_ok());
        let wrong = MemberLinkOptions { silence_ns_max: 250_000_000, ..MemberLinkOptions::default() };
        assert!(wrong.validate().unwrap_err().to_string().contains("three ping intervals"));
        assert!(MemberLinkOptions { half_open_max: 0, ..MemberLinkOptions::default() }.validate().is_err());
        assert!(MemberLinkOptions { back_off_ns_max: 1, ..MemberLinkOptions::default() }.validate().is_err());
    }
}
