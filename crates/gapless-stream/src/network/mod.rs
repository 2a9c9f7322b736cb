//! Serving nodes and clients of other machines, over the carriers of [`gapless_transport::network`].
//!
//! | module | what lives there |
//! |---|---|
//! | [`endpoints`] | the packet ports of a sequencer, and their agents |
//! | [`gateway`] | the command port: frames that nodes publish over datagrams |
//! | [`client_sessions`] | admitted nodes, for every carrier of packets |
//! | [`feed_sender`] | released frames to all nodes, as MoldUDP64 |
//! | [`replayer`] | missed messages, sent to the node that requests them |
//! | [`tcp_endpoints`] | the TCP ports of a sequencer, and their agents |
//! | [`tcp_gateway`] | the command port over TCP |
//! | [`client_port`] | the TCP port for clients of a service |
//! | [`soup_server`] | the stream from any frame, over TCP, as SoupBinTCP |

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
