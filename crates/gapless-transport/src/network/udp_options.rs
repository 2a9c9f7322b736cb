//! `UdpOptions`: local address, multicast group and buffer sizes of a socket; and creating it.

use super::route::interface_of;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, netdevice, sockopt};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpOptions {
    /// Port 0: any free one. With `multicast` only the port counts, which should not be 0, as a chosen one may belong
    /// to another group; the address must then be the unspecified one of the group's family.
    pub local: SocketAddr,
    /// Other senders are ignored, and sending saves the route lookup, 0.2 µs each. The route may come later:
    /// [`super::Datagrams::renew`].
    pub peer: Option<SocketAddr>,
    /// The socket receives nothing else; other processes may receive the same group at the same port.
    pub multicast: Option<MulticastGroup>,
    pub multicast_out: MulticastOut,
    /// The system counts its own overhead, for small packets several times their contents. The limit is
    /// `net.core.rmem_max`, unless privileged.
    pub receive_buffer_bytes: usize,
    /// The limit is `net.core.wmem_max`.
    pub send_buffer_bytes: usize,
    pub segmentation: Segmentation,
}

impl UdpOptions {
    /// Buffers of 4 MiB and 1 MiB, segmentation if it works.
    #[must_use]
    pub const fn at(local: SocketAddr) -> Self {
        Self {
            local,
            peer: None,
            multicast: None,
            multicast_out: MulticastOut { interface: Interface::Default, hops: 1, loops_back: true },
            receive_buffer_bytes: 4 << 20,
            send_buffer_bytes: 1 << 20,
            segmentation: Segmentation::Auto,
        }
    }

    /// A port chosen by the operating system; otherwise [`UdpOptions::at`].
    #[must_use]
    pub fn to(peer: SocketAddr) -> Self {
        let local = SocketAddr::new(unspecified_like(peer.ip()), 0);
        Self { peer: Some(peer), ..Self::at(local) }
    }

    /// Receives `group` from `interface`; otherwise [`UdpOptions::at`].
    #[must_use]
    pub fn of_group(group: IpAddr, port: u16, interface: Interface) -> Self {
        let multicast = Some(MulticastGroup { group, interface });
        Self { multicast, ..Self::at(SocketAddr::new(unspecified_like(group), port)) }
    }
}

const fn unspecified_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastGroup {
    pub group: IpAddr,
    pub interface: Interface,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastOut {
    pub interface: Interface,
    /// Time to live: routers to pass, plus one; 1 stays in the local network. 0 to 255.
    pub hops: u8,
    /// Needed between processes of one host.
    pub loops_back: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interface {
    Default,
    Address(IpAddr),
    Name(String),
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the default interface"),
            Self::Address(address) => write!(f, "the interface of {address}"),
            Self::Name(name) => write!(f, "interface {name}"),
        }
    }
}

/// Several packets pass the kernel as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segmentation {
    /// If kernel and interface support it.
    Auto,
    Off,
}

/// Creates the socket, without the settings of segmentation.
pub(super) fn open(options: &UdpOptions) -> io::Result<OwnedFd> {
    let family = if options.local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))
        .map_err(failed("making a UDP socket".to_owned()))?;
    if options.local.is_ipv6() {
        // A peer then has a single address.
        sockopt::set_ipv6_v6only(&socket, true).map_err(failed("making a socket for IPv6 alone".to_owned()))?;
    }
    never_fragment(&socket, family).map_err(failed("asking for packets that are never cut".to_owned()))?;
    set_buffers(&socket, options)?;
    let local = match &options.multicast {
        Some(multicast) => group_address(&socket, options, multicast)?,
        None => options.local,
    };
    if options.multicast.is_some() {
        // All members of a group on one host listen at the same address.
        sockopt::set_socket_reuseaddr(&socket, true).map_err(failed(format!("sharing {local}")))?;
    }
    rustix::net::bind(&socket, &local).map_err(failed(format!("binding a UDP socket to {local}")))?;
    if let Some(MulticastGroup { group, interface }) = &options.multicast {
        join(&socket, *group, interface)
            .map_err(|source| with_context(format!("joining {group} on {interface}"), &source))?;
    }
    send_by(&socket, family, &options.multicast_out)
        .map_err(|source| with_context(format!("sending to groups by {}", options.multicast_out.interface), &source))?;
    Ok(socket)
}

/// Bound to the group itself, a socket receives no other group of the same port, and no unicast packets.
fn group_address(socket: &OwnedFd, options: &UdpOptions, multicast: &MulticastGroup) -> io::Result<SocketAddr> {
    let (group, local) = (multicast.group, options.local);
    let reason = if !group.is_multicast() {
        format!("{group} is not the address of a group")
    } else if group.is_ipv4() != local.is_ipv4() || !local.ip().is_unspecified() {
        format!("the local address of a receiver of {group} must be unspecified, not {}", local.ip())
    } else {
        return match group {
            IpAddr::V4(_) => Ok(SocketAddr::new(group, local.port())),
            // A group of link scope exists once for each network of the host.
            IpAddr::V6(group) => {
                let index = index_of(socket, &multicast.interface)
                    .map_err(|source| with_context(format!("finding {}", multicast.interface), &source))?;
                Ok(SocketAddrV6::new(group, local.port(), 0, index).into())
            }
        };
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

/// The kernel refuses a packet longer than its route's MTU, and routers do not split it: losing one fragment would lose
/// the whole packet unnoticed.
fn never_fragment(socket: &OwnedFd, family: AddressFamily) -> Result<(), rustix::io::Errno> {
    if family == AddressFamily::INET {
        sockopt::set_ip_mtu_discover(socket, sockopt::Ipv4PathMtuDiscovery::DO)
    } else {
        sockopt::set_ipv6_mtu_discover(socket, sockopt::Ipv6PathMtuDiscovery::DO)
    }
}

fn set_buffers(socket: &OwnedFd, options: &UdpOptions) -> io::Result<()> {
    let (receive_bytes, send_bytes) = (options.receive_buffer_bytes, options.send_buffer_bytes);
    // Beyond the system's limit only with privileges; otherwise silently the limit.
    if sockopt::set_socket_recv_buffer_size_force(socket, receive_bytes).is_err() {
        sockopt::set_socket_recv_buffer_size(socket, receive_bytes)
            .map_err(failed(format!("setting a receive buffer of {receive_bytes} bytes")))?;
    }
    if sockopt::set_socket_send_buffer_size_force(socket, send_bytes).is_err() {
        sockopt::set_socket_send_buffer_size(socket, send_bytes)
            .map_err(failed(format!("setting a send buffer of {send_bytes} bytes")))?;
    }
    Ok(())
}

fn join(socket: &OwnedFd, group: IpAddr, interface: &Interface) -> io::Result<()> {
    match (group, interface) {
        (IpAddr::V4(group), Interface::Address(IpAddr::V4(address))) => {
            sockopt::set_ip_add_membership(socket, &group, address)?;
        }
        (IpAddr::V4(group), interface) => {
            let index = index_of(socket, interface)?;
            sockopt::set_ip_add_membership_with_ifindex(socket, &group, &Ipv4Addr::UNSPECIFIED, index)?;
        }
        (IpAddr::V6(group), interface) => {
            sockopt::set_ipv6_add_membership(socket, &group, index_of(socket, interface)?)?;
        }
    }
    Ok(())
}

fn send_by(socket: &OwnedFd, family: AddressFamily, out: &MulticastOut) -> io::Result<()> {
    if family == AddressFamily::INET {
        sockopt::set_ip_multicast_ttl(socket, u32::from(out.hops))?;
        sockopt::set_ip_multicast_loop(socket, out.loops_back)?;
        match &out.interface {
            Interface::Default => {}
            Interface::Address(IpAddr::V4(address)) => sockopt::set_ip_multicast_if(socket, address)?,
            interface => {
                let (index, unspecified) = (index_of(socket, interface)?, Ipv4Addr::UNSPECIFIED);
                sockopt::set_ip_multicast_if_with_ifindex(socket, &unspecified, &unspecified, index)?;
            }
        }
    } else {
        sockopt::set_ipv6_multicast_hops(socket, u32::from(out.hops))?;
        sockopt::set_ipv6_multicast_loop(socket, out.loops_back)?;
        if out.interface != Interface::Default {
            sockopt::set_ipv6_multicast_if(socket, index_of(socket, &out.interface)?)?;
        }
    }
    Ok(())
}

/// 0 lets the kernel choose.
fn index_of(socket: &OwnedFd, interface: &Interface) -> io::Result<u32> {
    match interface {
        Interface::Default => Ok(0),
        Interface::Name(name) => Ok(netdevice::name_to_index(socket, name)?),
        Interface::Address(address) => match interface_of(*address) {
            Some(interface) => Ok(netdevice::name_to_index(socket, &interface)?),
            None => Err(io::Error::new(io::ErrorKind::AddrNotAvailable, "no interface has this address")),
        },
    }
}

pub(super) fn failed(action: String) -> impl FnOnce(rustix::io::Errno) -> io::Error {
    move |errno| with_context(action, &errno.into())
}

fn with_context(action: String, source: &io::Error) -> io::Error {
    io::Error::new(source.kind(), format!("{action}: {source}"))
}
