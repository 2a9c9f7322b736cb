//! Connected UDP sockets. The kernel reports an earlier packet's error at the next call; an unconnected socket never
//! receives it.

use super::Peer;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, bind, connect, connect_unspec, getsockname, recv, sockopt};
use std::net::SocketAddr;

const WAITING_BYTES_MIN: usize = 512;

/// Returns false without a route.
pub(super) fn connect_to(socket: &OwnedFd, peer: Peer) -> Result<bool, Errno> {
    match connect(socket, &peer) {
        Ok(()) => {}
        Err(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::ADDRNOTAVAIL) => return Ok(false),
        Err(errno) => return Err(errno),
    }
    // Earlier packets may be from any sender; later ones are not checked for it.
    let waiting_max = sockopt::socket_recv_buffer_size(socket)? / WAITING_BYTES_MIN;
    for _ in 0..waiting_max {
        if recv(socket, &mut [0; 1][..], RecvFlags::empty()) == Err(Errno::AGAIN) {
            break;
        }
    }
    Ok(true)
}

/// Disconnects from the peer, and from the host's address that was chosen by connecting. The port, that of `local`,
/// stays the same unless another socket has taken it meanwhile.
pub(super) fn disconnect(socket: &OwnedFd, local: SocketAddr, unconnected: SocketAddr) -> Result<(), Errno> {
    connect_unspec(socket)?;
    let bound = Peer::try_from(getsockname(socket)?)?;
    if bound.port() != 0 {
        return Ok(());
    }
    // The kernel releases a port that it has chosen itself.
    match bind(socket, &SocketAddr::new(unconnected.ip(), local.port())) {
        Err(Errno::ADDRINUSE) => bind(socket, &SocketAddr::new(unconnected.ip(), 0)),
        bound => bound,
    }
}

/// An earlier packet was not delivered: no listener, no route, forbidden, or too long. These are Linux's errors for
/// ICMP and ICMPv6 messages, its own routes and filters.
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
    fn icmp_errors_are_lost_packets() {
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
    fn socket_errors_are_not_lost_packets() {
        for errno in [Errno::AGAIN, Errno::INTR, Errno::BADF, Errno::NOTSOCK, Errno::INVAL, Errno::FAULT, Errno::NOMEM]
        {
            assert!(!is_lost_packet(errno), "{errno:?}");
        }
    }
}
