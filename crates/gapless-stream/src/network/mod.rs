//! Packets to and from other machines. What is above sees only [`Datagrams`].
//!
//! | module | what lives there |
//! |---|---|
//! | [`endpoints`] | where the sequencer meets nodes by packets, and its agents for it |
//! | [`gateway`] | the command port: what nodes publish over datagrams |
//! | [`guests`] | the nodes that were let in, whatever carries their packets |
//! | [`status`] | how they are, for whoever asks |
//! | [`feed_sender`] | what is released, to all nodes, as MoldUDP64 |
//! | [`replayer`] | what a node has missed, to it alone |
//! | [`shared`] | one carrier for two agents |
//! | [`datagrams`] | [`Datagrams`]: the carrier of packets that everything above is written against |
//! | [`udp`] | [`UdpSocket`]: the carrier that is real |
//! | `udp_receive` | how that one looks for packets |
//! | `udp_peer` | how one is connected that talks with one peer alone, and what it hears |
//! | [`udp_options`] | [`UdpOptions`]: where a socket listens, what it joins, how large its buffers are |
//! | [`tcp_endpoints`] | where the sequencer meets nodes by TCP, and its agents for it |
//! | [`tcp_gateway`] | the command port over TCP |
//! | [`client_port`] | where clients of a service come in by TCP |
//! | [`soup_server`] | the stream from any frame on, over TCP, as SoupBinTCP |
//! | [`tcp`] | [`TcpConnection`]: a connection that never blocks, and its buffers |
//! | `tcp_server` | a listening port and its connections |
//! | [`memory`] | [`MemoryNetwork`]: the carrier of tests, with its own time and its faults from one seed |
//!
//! A carrier may lose, double, delay and reorder packets. It never joins two, and never splits one.

pub mod client_port;
pub mod datagrams;
pub mod endpoints;
pub mod feed_sender;
pub mod gateway;
pub mod guests;
pub mod memory;
mod random;
pub mod replayer;
pub mod shared;
pub mod soup_server;
pub mod status;
pub mod tcp;
pub mod tcp_endpoints;
pub mod tcp_gateway;
mod tcp_server;
pub mod udp;
pub mod udp_options;
mod udp_peer;
mod udp_receive;

pub use client_port::ClientPort;
pub use datagrams::{Datagrams, PACKET_LENGTH_MAX, Peer, SendRefused};
pub use memory::{Faults, MemoryCounters, MemoryNetwork, MemorySocket};
pub use shared::SharedDatagrams;
pub use tcp::TcpConnection;
pub use tcp_endpoints::{TcpAddresses, TcpNetwork};
pub use udp::{Offload, UdpSocket};
pub use udp_options::{Interface, MulticastGroup, MulticastOut, Segmentation, UdpOptions};
pub use udp_receive::UdpCounters;
