//! Packets and connections between machines.
//!
//! A carrier may lose, duplicate, delay and reorder packets. It never joins or splits them.

pub mod datagrams;
pub mod memory;
mod random;
pub mod route;
pub mod shared;
pub mod tcp;
pub mod tcp_server;
pub mod udp;
pub mod udp_options;
mod udp_peer;
mod udp_receive;

pub use datagrams::{Datagrams, PACKET_LENGTH_MAX, Peer, SendRefusal};
pub use memory::{Faults, MemoryCounters, MemoryNetwork, MemorySocket};
pub use route::{Route, RouteTooNarrow};
pub use shared::SharedDatagrams;
pub use tcp::TcpConnection;
pub use udp::{Offload, UdpSocket};
pub use udp_options::{Interface, MulticastGroup, MulticastOut, Segmentation, UdpOptions};
pub use udp_receive::UdpCounters;
