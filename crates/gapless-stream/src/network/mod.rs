//! Serving nodes and clients of other machines, over the carriers of [`gapless_transport::network`].

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
