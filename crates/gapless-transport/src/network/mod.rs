//! Packets and connections between machines. Higher layers see only [`Datagrams`] and [`TcpConnection`].
//!
//! | module | what lives there |
//! |---|---|
//! | [`datagrams`] | [`Datagrams`]: the interface of a carrier of packets |
//! | [`shared`] | one carrier for two agents |
//! | [`udp`] | [`UdpSocket`]: the carrier over UDP |
//! | `udp_receive` | receiving by UDP |
//! | `udp_peer` | connecting a socket to a single peer, and the errors that it receives |
//! | [`route`] | [`Route`]: outgoing interface and its MTU |
//! | [`udp_options`] | [`UdpOptions`]: local address, multicast group and buffer sizes of a socket |
//! | [`memory`] | [`MemoryNetwork`]: the carrier of tests, with its own time and seeded faults |
//! | `random` | the random numbers of its faults |
//! | [`tcp`] | [`TcpConnection`]: a connection that never blocks, and its buffers |
//! | [`tcp_server`] | a listening port and its connections |
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
