//! [`Beacon`]: the announcement of a member to a multicast group, byte by byte. No I/O; safe on any bytes.
//!
//! ```text
//!  beacon, little-endian
//!   0  u32  magic "GCB\1"                          then each address (24 bytes)
//!   4  u8   version, 1                              0  u8   4 or 6, or 0 for where the packet comes from
//!   5  u8   addresses, 1 to 16                      1  u8   reserved, 0
//!   6  u16  length of the cluster's name, bytes     2  u16  port, not 0
//!   8  u64  member, not 0                           4  u32  reserved, 0
//!  16  u64  incarnation                             8  16 B the address: 4 bytes and zeros, 16 bytes, or zeros
//!  24  u32  CRC-32C of everything else
//!  28  u32  reserved, 0
//!  32  64 B the cluster's name, UTF-8, then zeros
//! ```

use super::options::MEMBER_ADDRESSES_MAX;
use super::wire::{CLUSTER_NAME_LENGTH_MAX, ClusterName, MemberNumber};
use gapless_wire::checksum::crc32c;
use gapless_wire::fields::{u16_at, u64_at};
use std::net::{IpAddr, SocketAddr};

pub const BEACON_MAGIC: u32 = u32::from_le_bytes(*b"GCB\x01");
const VERSION: u8 = 1;
const CRC: std::ops::Range<usize> = 24..28;
const NAME_OFFSET: usize = 32;
const HEAD_LENGTH: usize = NAME_OFFSET + CLUSTER_NAME_LENGTH_MAX;
const ADDRESS_LENGTH: usize = 24;
/// Longest beacon, bytes.
pub const BEACON_LENGTH_MAX: usize = HEAD_LENGTH + MEMBER_ADDRESSES_MAX * ADDRESS_LENGTH;

/// A member's claim about its addresses, not authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beacon {
    pub cluster: ClusterName,
    pub member: MemberNumber,
    pub incarnation: u64,
    /// 1 to [`MEMBER_ADDRESSES_MAX`]; `0.0.0.0` stands for the packet's source.
    pub addresses: Vec<SocketAddr>,
}

impl Beacon {
    /// # Panics
    /// If there are no addresses, or too many.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        assert!(
            (1..=MEMBER_ADDRESSES_MAX).contains(&self.addresses.len()),
            "a beacon has 1 to {MEMBER_ADDRESSES_MAX} addresses"
        );
        let name = self.cluster.as_str().as_bytes();
        let mut bytes = vec![0; HEAD_LENGTH];
        bytes[..4].copy_from_slice(&BEACON_MAGIC.to_le_bytes());
        (bytes[4], bytes[5]) = (VERSION, self.addresses.len() as u8);
        bytes[6..8].copy_from_slice(&(name.len() as u16).to_le_bytes());
        bytes[8..16].copy_from_slice(&self.member.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[NAME_OFFSET..NAME_OFFSET + name.len()].copy_from_slice(name);
        for address in &self.addresses {
            let mut one = [0; ADDRESS_LENGTH];
            one[2..4].copy_from_slice(&address.port().to_le_bytes());
            match address.ip() {
                ip if ip.is_unspecified() => {}
                IpAddr::V4(ip) => {
                    one[0] = 4;
                    one[8..12].copy_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    one[0] = 6;
                    one[8..].copy_from_slice(&ip.octets());
                }
            }
            bytes.extend(one);
        }
        let crc = crc32c(&bytes);
        bytes[CRC].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` unless the packet from `source` is a beacon.
    #[must_use]
    pub fn parse(bytes: &[u8], source: IpAddr) -> Option<Self> {
        let (head, addresses) = bytes.split_first_chunk::<HEAD_LENGTH>()?;
        let count = usize::from(head[5]);
        let is_beacon = head[..4] == BEACON_MAGIC.to_le_bytes()
            && head[4] == VERSION
            && (1..=MEMBER_ADDRESSES_MAX).contains(&count)
            && addresses.len() == count * ADDRESS_LENGTH
            && head[28..NAME_OFFSET] == [0; 4];
        if !is_beacon {
            return None;
        }
        let mut unsigned = bytes.to_vec();
        unsigned[CRC].fill(0);
        if crc32c(&unsigned).to_le_bytes() != head[CRC] {
            return None;
        }
        let name_length = usize::from(u16_at(head, 6));
        let (name, filling) = head[NAME_OFFSET..].split_at_checked(name_length)?;
        let cluster = ClusterName::new(std::str::from_utf8(name).ok()?)?;
        let (member, incarnation) = (u64_at(head, 8), u64_at(head, 16));
        let (addresses, rest) = addresses.as_chunks::<ADDRESS_LENGTH>();
        if member == 0 || filling.iter().any(|byte| *byte != 0) || !rest.is_empty() {
            return None;
        }
        let addresses = addresses.iter().map(|one| address(one, source)).collect::<Option<_>>()?;
        Some(Self { cluster, member, incarnation, addresses })
    }
}

fn address(one: &[u8; ADDRESS_LENGTH], source: IpAddr) -> Option<SocketAddr> {
    let port = u16_at(one, 2);
    let ip: [u8; 16] = *one.last_chunk().expect("an address has 24 bytes");
    let (first, rest) = ip.split_first_chunk::<4>().expect("it has 16");
    let (ip, is_filled) = match one[0] {
        0 => (source, ip == [0; 16]),
        4 => (IpAddr::from(*first), rest == [0; 12]),
        6 => (IpAddr::from(ip), true),
        _ => return None,
    };
    let is_one = is_filled
        && port != 0
        && one[1] == 0
        && one[4..8] == [0; 4]
        && !ip.is_multicast()
        && !ip.is_unspecified()
        && ip != IpAddr::from([255; 4]);
    is_one.then(|| SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beacon() -> Beacon {
        Beacon {
            cluster: ClusterName::new("market").unwrap(),
            member: 2,
            incarnation: 7,
            addresses: ["10.0.0.2:4100", "[fe80::1]:4101", "0.0.0.0:4102"].map(|text| text.parse().unwrap()).to_vec(),
        }
    }

    #[test]
    fn beacon_round_trips() {
        let read = Beacon::parse(&beacon().to_bytes(), "192.0.2.9".parse().unwrap()).unwrap();
        assert_eq!(read.addresses[2], "192.0.2.9:4102".parse().unwrap());
        assert_eq!(read.addresses[..2], beacon().addresses[..2]);
        assert_eq!((read.cluster.as_str(), read.member, read.incarnation), ("market", 2, 7));
        let most = Beacon { addresses: vec!["10.0.0.2:1".parse().unwrap(); MEMBER_ADDRESSES_MAX], ..beacon() };
        assert_eq!(most.to_bytes().len(), BEACON_LENGTH_MAX);
        assert_eq!(Beacon::parse(&most.to_bytes(), "10.0.0.1".parse().unwrap()), Some(most));
    }

    #[test]
    fn damaged_beacon_is_refused() {
        let (bytes, source) = (beacon().to_bytes(), "192.0.2.9".parse().unwrap());
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Beacon::parse(&flipped, source), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(Beacon::parse(&bytes[..length], source), None, "{length} bytes");
        }
        assert_eq!(Beacon::parse(&[&bytes[..], &[0]].concat(), source), None);
        for bad in ["224.0.0.1:5", "10.0.0.1:0", "[ff02::1]:5", "255.255.255.255:5"] {
            let bad = Beacon { addresses: vec![bad.parse().unwrap()], ..beacon() };
            assert_eq!(Beacon::parse(&bad.to_bytes(), source), None, "{bad:?}");
        }
        assert_eq!(Beacon::parse(&Beacon { member: 0, ..beacon() }.to_bytes(), source), None);
    }
}
