//! Multicast beacons. A beacon only suggests an address; the link's handshake identifies the member there.

use super::beacon::Beacon;
use super::error::LinkError;
use super::options::DiscoveryOptions;
use super::wire::{MemberIdentity, MemberNumber};
use gapless_transport::network::{Datagrams, Interface, MulticastOut, UdpOptions, UdpSocket};
use std::fmt;
use std::net::SocketAddr;

/// Each read costs a system call.
const CHECK_INTERVAL_NS: u64 = 5_000_000;
/// Interval of beacons while a member is missing, ns; then the one while all are connected.
const BEACON_INTERVAL_NS: u64 = 100_000_000;
const BEACON_INTERVAL_CALM_NS: u64 = 1_000_000_000;
const READS_MAX: usize = 4;
const BUFFER_BYTES: usize = 256 << 10;

pub(super) struct PeerDiscovery {
    socket: UdpSocket,
    group: SocketAddr,
    addresses: Vec<SocketAddr>,
    next_check_ns: u64,
    next_beacon_ns: u64,
    is_failing: bool,
}

impl PeerDiscovery {
    pub(super) fn open(options: &DiscoveryOptions) -> Result<Self, LinkError> {
        let (group, interface) = (options.group, Interface::Name(options.interface.clone()));
        let mut udp = UdpOptions::of_group(group.ip(), group.port(), interface.clone());
        udp.multicast_out = MulticastOut { interface, hops: 1, loops_back: true };
        udp.receive_buffer_bytes = BUFFER_BYTES;
        udp.send_buffer_bytes = BUFFER_BYTES;
        let failed = |source| LinkError::Discovery { group, interface: options.interface.clone(), source };
        let socket = UdpSocket::open(&udp).map_err(failed)?;
        let addresses = options.addresses.clone();
        Ok(Self { socket, group, addresses, next_check_ns: 0, next_beacon_ns: 0, is_failing: false })
    }

    pub(super) fn poll(
        &mut self,
        now_ns: u64,
        own: &MemberIdentity,
        is_missing: bool,
        mut take: impl FnMut(MemberNumber, &[SocketAddr]),
    ) {
        if now_ns < self.next_check_ns {
            return;
        }
        self.next_check_ns = now_ns + CHECK_INTERVAL_NS;
        self.next_beacon_ns = self.next_beacon_ns.min(now_ns + BEACON_INTERVAL_CALM_NS);
        if is_missing {
            self.next_beacon_ns = self.next_beacon_ns.min(now_ns + BEACON_INTERVAL_NS);
        }
        if now_ns >= self.next_beacon_ns {
            self.next_beacon_ns = u64::MAX;
            self.announce(own);
        }
        for _ in 0..READS_MAX {
            let looked = self.socket.receive(&mut |from, packet| {
                let Some(beacon) = Beacon::parse(packet, from.ip()) else { return };
                let is_known = |theirs: u64| theirs == own.incarnation || theirs == 0 || own.incarnation == 0;
                if beacon.cluster == own.cluster && beacon.member != own.member && is_known(beacon.incarnation) {
                    take(beacon.member, &beacon.addresses);
                }
            });
            if !looked.is_ok_and(|count| count > 0) {
                break;
            }
        }
    }

    fn announce(&mut self, own: &MemberIdentity) {
        let (cluster, addresses) = (own.cluster.clone(), self.addresses.clone());
        let beacon = Beacon { cluster, member: own.member, incarnation: own.incarnation, addresses }.to_bytes();
        match self.socket.send(self.group, &beacon, beacon.len()) {
            Ok(_) => self.is_failing = false,
            Err(error) if !self.is_failing => {
                self.is_failing = true;
                tracing::warn!(group = %self.group, %error, "the other members cannot be told where this one is");
            }
            Err(_) => {}
        }
    }
}

impl fmt::Debug for PeerDiscovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery").field("group", &self.group).finish_non_exhaustive()
    }
}
