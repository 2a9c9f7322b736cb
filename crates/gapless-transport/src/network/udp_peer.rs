//! Connects a [`super::UdpSocket`] to one peer, and handles the errors that it receives because of that. The kernel
//! reports to a connected socket, at whichever call comes next, the error of an earlier packet; a socket that is not
//! connected never receives it.

use super::Peer;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, bind, connect, connect_unspec, getsockname, recv, sockopt};
use std::net::SocketAddr;

/// A packet that waits takes at least so much of the receive buffer, with the kernel's own notes.
const WAITING_BYTES_MIN: usize = 512;

/// Connects a bound socket to `peer`. Returns whether it is connected: it is not while there is no way to there.
pub(super) fn connect_to(socket: &OwnedFd, peer: Peer) -> Result<bool, Errno> {
    match connect(socket, &peer) {
        Ok(()) => {}
        Err(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::ADDRNOTAVAIL) => return Ok(false),
        Err(errno) => return Err(errno),
    }
    // Earlier packets may be from anybody; from now on packets are not asked for their sender.
    let waiting_max = sockopt::socket_recv_buffer_size(socket)? / WAITING_BYTES_MIN;
    for _ in 0..waiting_max {
        if recv(socket, &mut [0; 1][..], RecvFlags::empty()) == Err(Errno::AGAIN) {
            break;
        }
    }
    Ok(true)
}

/// Lets go of the peer, and with it of the host's address that was chosen when the socket was connected. The port, that
/// of `local`, stays the same unless another socket has taken it meanwhile.
pub(super) fn disconnect(socket: &OwnedFd, local: SocketAddr, unconnected: SocketAddr) -> Result<(), Errno> {
    connect_unspec(socket)?;
    let bound = Peer::try_from(getsockname(socket)?)?;
    if bound.port() != 0 {
        return Ok(());
    }
    // The kernel takes back a port that it has chosen itself.
    match bind(socket, &SocketAddr::new(unconnected.ip(), local.port())) {
        Err(Errno::ADDRINUSE) => bind(socket, &SocketAddr::new(unconnected.ip(), 0)),
        bound => bound,
    }
}

/// Whether an error only tells that a packet of ours did not arrive: nobody there, no way to there, not allowed to pass,
/// too long for a part of the way. The next packet may arrive, and this one is asked for or sent again.
///
/// They are what Linux makes of the messages of ICMP and ICMPv6, and of routes and filters of its own.
pub(super) const fn is_lost_packet(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::CONNREFUSED
            | Errno::MSGSIZE
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::ACCESS
            | Errno::PERM
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::NOPROTOOPT
            | Errno::PROTO
            | Errno::NETDOWN
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_icmp_tells_is_a_lost_packet() {
        // icmp_err_convert of net/ipv4/icmp.c, and icmpv6_err_convert of net/ipv6/icmp.c.
        let reported = [
            Errno::NETUNREACH,
            Errno::HOSTUNREACH,
            Errno::NOPROTOOPT,
            Errno::CONNREFUSED,
            Errno::MSGSIZE,
            Errno::HOSTDOWN,
            Errno::NONET,
            Errno::PROTO,
            Errno::ACCESS,
        ];
        let by_this_host = [Errno::PERM, Errno::NETDOWN];
        for errno in reported.into_iter().chain(by_this_host) {
            assert!(is_lost_packet(errno), "{errno:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_the_socket_is_no_lost_packet() {
        for errno in [Errno::AGAIN, Errno::INTR, Errno::BADF, Errno::NOTSOCK, Errno::INVAL, Errno::FAULT, Errno::NOMEM]
        {
            assert!(!is_lost_packet(errno), "{errno:?}");
        }
    }
}
