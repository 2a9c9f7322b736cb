//! Packets captured at real sockets without privilege: Ethernet, IP and UDP headers are recreated.

use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;

#[derive(Clone, Debug)]
pub struct CapturedPacket {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub payload: Vec<u8>,
}

impl CapturedPacket {
    pub fn is_of(&self, session: &[u8]) -> bool {
        self.payload.starts_with(session)
    }
}

pub fn join(group: SocketAddr) -> UdpSocket {
    let IpAddr::V4(ip) = group.ip() else { unreachable!("groups of this test are of IPv4") };
    let member = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
    sockopt::set_socket_reuseaddr(&member, true).unwrap();
    sockopt::set_socket_recv_buffer_size(&member, 8 << 20).unwrap();
    bind(&member, &SocketAddr::new(ip.into(), group.port())).unwrap();
    let member = UdpSocket::from(member);
    member.join_multicast_v4(&ip, &Ipv4Addr::LOCALHOST).unwrap();
    member.set_nonblocking(true).unwrap();
    member
}

pub fn take(socket: &mut UdpSocket, to: SocketAddr) -> Vec<CapturedPacket> {
    let (mut buffer, mut caught) = (vec![0; 1 << 16], Vec::new());
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        caught.push(CapturedPacket { from, to, payload: buffer[..length].to_vec() });
    }
    caught
}

pub struct Tap {
    port: SocketAddr,
    front: UdpSocket,
    behind: HashMap<SocketAddr, UdpSocket>,
}

fn local() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

impl Tap {
    pub fn before(port: SocketAddr) -> Self {
        Self { port, front: local(), behind: HashMap::new() }
    }

    pub fn address(&self) -> SocketAddr {
        self.front.local_addr().unwrap()
    }

    pub fn pass(&mut self) -> Vec<CapturedPacket> {
        let Self { port, front, behind } = self;
        let mut caught = take(front, *port);
        for each in &caught {
            behind.entry(each.from).or_insert_with(local).send_to(&each.payload, *port).unwrap();
        }
        for (who, socket) in behind {
            for each in take(socket, *who) {
                front.send_to(&each.payload, *who).unwrap();
                caught.push(each);
            }
        }
        caught
    }
}

/// pcap 2.4 with Ethernet frames.
pub fn write_pcap(path: &Path, packets: &[CapturedPacket]) {
    let mut file = Vec::new();
    // Microseconds, version 2.4, UTC, whole packets, Ethernet.
    for word in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 1 << 16, 1] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (number, packet) in packets.iter().enumerate() {
        let frame = ethernet(packet);
        for word in [1, number as u32, frame.len() as u32, frame.len() as u32] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&frame);
    }
    std::fs::write(path, file).unwrap();
}

fn ethernet(packet: &CapturedPacket) -> Vec<u8> {
    let (SocketAddr::V4(from), SocketAddr::V4(to)) = (packet.from, packet.to) else { unreachable!("all of IPv4") };
    let udp_length = 8 + packet.payload.len();
    let [from_ip, to_ip] = [from.ip().octets(), to.ip().octets()];
    let mut udp =
        [from.port().to_be_bytes(), to.port().to_be_bytes(), (udp_length as u16).to_be_bytes(), [0; 2]].concat();
    udp.extend_from_slice(&packet.payload);
    let pseudo = [&from_ip[..], &to_ip, &[0, 17], &(udp_length as u16).to_be_bytes(), &udp].concat();
    // 0 would mean "no checksum".
    let sum = match checksum(&pseudo) {
        0 => 0xffff,
        sum => sum,
    };
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    let mut ip = vec![0x45, 0];
    ip.extend_from_slice(&((20 + udp_length) as u16).to_be_bytes());
    // No identification, don't fragment, one hop, UDP.
    ip.extend_from_slice(&[0, 0, 0x40, 0, 1, 17, 0, 0]);
    ip.extend_from_slice(&[from_ip, to_ip].concat());
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let [_, high, middle, low] = to_ip;
    let to_station = if to.ip().is_multicast() { [1, 0, 0x5e, high & 0x7f, middle, low] } else { [2, 0, 0, 0, 0, 1] };
    [&to_station[..], &[2, 0, 0, 0, 0, 2], &[8, 0], &ip, &udp].concat()
}

/// Internet checksum, RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
