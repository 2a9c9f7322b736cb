//! What a [`super::UdpSocket`] hears because it is connected to one peer. The kernel tells a connected socket, at whichever
//! call comes next, what became of an earlier packet; one that is not connected never hears of it.

use rustix::io::Errno;

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
        let told = [
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
        for errno in told.into_iter().chain(by_this_host) {
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
