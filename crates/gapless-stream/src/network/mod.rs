//! Where nodes and clients of other machines are served, over the carriers of [`gapless_transport::network`].
//!
//! | module | what lives there |
//! |---|---|
//! | [`endpoints`] | where the sequencer meets nodes by packets, and its agents for it |
//! | [`gateway`] | the command port: frames that nodes publish over datagrams |
//! | [`client_sessions`] | the nodes that were let in, for every carrier of packets |
//! | [`feed_sender`] | the released frames, to all nodes, as MoldUDP64 |
//! | [`replayer`] | the messages that a node has missed, to it alone |
//! | [`tcp_endpoints`] | where the sequencer meets nodes by TCP, and its agents for it |
//! | [`tcp_gateway`] | the command port over TCP |
//! | [`client_port`] | where clients of a service come in by TCP |
//! | [`soup_server`] | the stream from any frame on, over TCP, as SoupBinTCP |

pub mod client_port;
pub mod client_sessions;
pub mod endpoints;
pub mod feed_sender;
pub mod gateway;
pub mod replayer;
pub mod soup_server;
pub mod tcp_endpoints;
pub mod tcp_gateway;

pub use client_port::ClientPort;
pub use tcp_endpoints::{TcpAddresses, TcpNetwork};
