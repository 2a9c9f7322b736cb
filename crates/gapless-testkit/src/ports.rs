//! Ports, addresses and groups that no other test uses, also in other processes.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// Free for UDP and TCP, and below 32,768, from where the kernel assigns ports to sockets that ask for any. Each of 99
/// consecutive processes has 101 ports of its own before it takes another's.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (process.wrapping_mul(101).wrapping_add(number) % 10_000) as u16;
        let is_free = UdpSocket::bind(("127.0.0.1", port)).and_then(|_| TcpListener::bind(("127.0.0.1", port)));
        if is_free.is_ok() {
            return port;
        }
    }
}

pub fn free_ports(count: usize) -> Vec<u16> {
    (0..count).map(|_| free_port()).collect()
}

pub fn free_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()))
}

pub fn multicast_group() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let address = Ipv4Addr::new(239, 255, process as u8, (process >> 8) as u8 ^ number as u8);
    SocketAddr::from((address, 20_000 + (process as u16 ^ number.wrapping_mul(97)) % 12_000))
}

/// A process that is down for a while finds its port free again, because no other socket has this address.
pub fn own_loopback() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = std::process::id().wrapping_mul(256).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
    // After 127.0.x.x, which others use, and before the broadcast address.
    Ipv4Addr::from_bits(0x7F01_0000 + number % 0x00FE_0000)
}
