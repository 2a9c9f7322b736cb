//! Packets to and from other machines. What is above sees only [`Datagrams`].
//!
//! | module | what lives there |
//! |---|---|
//! | [`datagrams`] | [`Datagrams`]: the carrier of packets that everything above is written against |
//! | [`udp`] | [`UdpSocket`]: the carrier that is real |
//! | `udp_receive` | how that one looks for packets |
//! | [`udp_options`] | [`UdpOptions`]: where a socket listens, what it joins, how large its buffers are |
//! | [`memory`] | [`MemoryNetwork`]: the carrier of tests, with its own time and its faults from one seed |
//!
//! A carrier may lose, double, delay and reorder packets. It never joins two, and never splits one.

pub mod datagrams;
pub mod memory;
mod random;
pub mod udp;
pub mod udp_options;
mod udp_receive;

pub use datagrams::{Datagrams, PACKET_LENGTH_MAX, Peer, SendRefused};
pub use memory::{Faults, MemoryCounters, MemoryNetwork, MemorySocket};
pub use udp::{Offload, UdpSocket};
pub use udp_options::{Interface, MulticastGroup, MulticastOut, Segmentation, UdpOptions};
pub use udp_receive::UdpCounters;
