//! `Route`: outgoing interface of packets, and the longest packet that it carries.

use gapless_agent::regular_file::read_text;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{getsockopt, sockopt};
use rustix::fd::OwnedFd;
use rustix::net::sockopt::set_ip_multicast_if;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, getsockname, ipproto, socket_with};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Name of the interface; the address of this host if no interface has it.
    pub interface: String,
    pub mtu_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "packets of {packet_bytes} bytes with their IP headers do not pass {}, whose MTU is {}: a larger MTU there, or \
     a smaller mtu of the stream, is needed",
    route.interface,
    route.mtu_bytes
)]
pub struct RouteTooNarrow {
    pub packet_bytes: usize,
    pub route: Route,
}

const HEADERS_IPV4: usize = 28;
const HEADERS_IPV6: usize = 48;

impl Route {
    /// `None` if no interface has it, or the MTU is unknown.
    #[must_use]
    pub fn of_address(address: IpAddr) -> Option<Self> {
        let interface = interface_of(address)?;
        let mtu_bytes = mtu_at(address).or_else(|| interface_mtu(&interface))?;
        Some(Self { interface, mtu_bytes })
    }

    /// `None` without a route.
    #[must_use]
    pub fn to(peer: SocketAddr) -> Option<Self> {
        let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(ipproto::UDP)).ok()?;
        connect(&socket, &peer).ok()?;
        Self::of_connected(&socket)
    }

    pub(super) fn of_connected(socket: &OwnedFd) -> Option<Self> {
        let local = SocketAddr::try_from(getsockname(socket).ok()?).ok()?.ip();
        let interface = interface_of(local);
        // Includes routes that stay on this host, and routers after the interface.
        let path_mtu = if local.is_ipv4() { getsockopt(socket, sockopt::IpMtu).ok() } else { None };
        let mtu_bytes = match path_mtu {
            Some(mtu) => usize::try_from(mtu).ok()?,
            None => interface_mtu(interface.as_deref()?)?,
        };
        Some(Self { interface: interface.unwrap_or_else(|| local.to_string()), mtu_bytes })
    }

    /// Whether a UDP payload of `packet_length` bytes to `peer` fits.
    ///
    /// # Errors
    /// It does not fit; the text names the interface.
    pub fn check(&self, packet_length: usize, peer: IpAddr) -> Result<(), RouteTooNarrow> {
        let packet_bytes = packet_length + if peer.is_ipv4() { HEADERS_IPV4 } else { HEADERS_IPV6 };
        if packet_bytes <= self.mtu_bytes {
            return Ok(());
        }
        Err(RouteTooNarrow { packet_bytes, route: self.clone() })
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with an MTU of {}", self.interface, self.mtu_bytes)
    }
}

pub(super) fn interface_of(address: IpAddr) -> Option<String> {
    let has_address = |interface: &nix::ifaddrs::InterfaceAddress| {
        let found = interface.address.as_ref();
        match address {
            IpAddr::V4(address) => found.and_then(|f| f.as_sockaddr_in()).is_some_and(|f| f.ip() == address),
            IpAddr::V6(address) => found.and_then(|f| f.as_sockaddr_in6()).is_some_and(|f| f.ip() == address),
        }
    };
    let loopback = address.is_loopback().then(|| "lo".to_owned());
    getifaddrs().ok()?.find(has_address).map(|found| found.interface_name).or(loopback)
}

/// MTU of the interface with `address`, from a socket whose multicast packets use it: unlike the file, this is right
/// for the process's network namespace.
fn mtu_at(address: IpAddr) -> Option<usize> {
    let IpAddr::V4(address) = address else { return None };
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, Some(ipproto::UDP)).ok()?;
    set_ip_multicast_if(&socket, &address).ok()?;
    connect(&socket, &ALL_HOSTS).ok()?;
    usize::try_from(getsockopt(&socket, sockopt::IpMtu).ok()?).ok()
}

/// At the discard port; nothing is sent there.
const ALL_HOSTS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(224, 0, 0, 1)), 9);

fn interface_mtu(interface: &str) -> Option<usize> {
    let path = Path::new("/sys/class/net").join(interface).join("mtu");
    read_text(&path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn loopback_has_a_name_and_an_mtu() {
        let route = Route::of_address(LOOPBACK).unwrap();
        assert_eq!(route.interface, "lo");
        assert_eq!(Route::to(SocketAddr::new(LOOPBACK, 9)), Some(route));
        assert_eq!(Route::of_address(Ipv4Addr::new(127, 9, 9, 9).into()).unwrap().interface, "lo");
        assert_eq!(Route::of_address(Ipv4Addr::new(203, 0, 113, 1).into()), None);
    }

    #[test]
    fn longer_packet_names_the_interface() {
        let route = Route { interface: "eth7".to_owned(), mtu_bytes: 1_500 };
        assert_eq!(route.check(1_472, LOOPBACK), Ok(()));
        let text = route.check(1_473, LOOPBACK).unwrap_err().to_string();
        assert!(text.contains("1501 bytes") && text.contains("eth7, whose MTU is 1500"), "{text}");
        assert_eq!(route.check(1_452, Ipv6Addr::LOCALHOST.into()), Ok(()));
        assert!(route.check(1_453, Ipv6Addr::LOCALHOST.into()).is_err());
    }
}
