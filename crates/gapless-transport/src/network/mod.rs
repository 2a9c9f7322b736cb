//! Packets to and from other machines, and connections. The layers above see only [`Datagrams`] and [`TcpConnection`].
//!
//! | module | what lives there |
//! |---|---|
//! | [`datagrams`] | [`Datagrams`]: the carrier of packets that everything above is written against |
//! | [`shared`] | one carrier for two agents |
//! | [`udp`] | [`UdpSocket`]: the carrier that is real |
//! | `udp_receive` | how that one looks for packets |
//! | `udp_peer` | connecting a socket that talks with one peer alone, and the errors it receives |
//! | [`route`] | [`Route`]: the interface that packets leave by, and its MTU |
//! | [`udp_options`] | [`UdpOptions`]: where a socket listens, which group it joins, how large its buffers are |
//! | [`memory`] | [`MemoryNetwork`]: the carrier of tests, with its own time and its faults from one seed |
//! | `random` | its dice |
//! | [`tcp`] | [`TcpConnection`]: a connection that never blocks, and its buffers |
//! | [`tcp_server`] | a listening port and its connections |
//!
//! A carrier may lose, double, delay and reorder packets. It never joins two, and never splits one.

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

pub use datagrams::{Datagrams, PACKET_LENGTH_MAX, Peer, SendRefused};
pub use memory::{Faults, MemoryCounters, MemoryNetwork, MemorySocket};
pub use route::{Route, RouteTooNarrow};
pub use shared::SharedDatagrams;
pub use tcp::TcpConnection;
pub use udp::{Offload, UdpSocket};
pub use udp_options::{Interface, MulticastGroup, MulticastOut, Segmentation, UdpOptions};
pub use udp_receive::UdpCounters;
