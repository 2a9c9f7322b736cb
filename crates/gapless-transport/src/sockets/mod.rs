//! Connections of bytes that never block, over every carrier: the links between a cluster's members, and everything of
//! TCP, are made of these. No message is known here.
//!
//! | module | what lives there |
//! |---|---|
//! | [`send_queue`] | [`SendQueue`]: the bytes that a socket did not take |
//! | [`socket`] | [`Socket`]: each of those below as one type |
//! | [`tcp`] | [`TcpSocket`]: bytes over TCP |
//! | [`tls`] | [`MutualTls`], [`TlsSocket`]: TLS over that, with the feature `tls` |
//! | [`shared_memory`] | [`SharedSocket`]: bytes between two processes of one host, through rings in memory that both map |
//! | [`pipe`] | [`Network`]: connections that are not the operating system's, for simulations |
//! | [`address`] | [`Address`]: where a connection goes to, or comes from, and its form in text |
//! | [`bytes`] | [`SocketRead`]: the result of a look at one of them; whether somebody connects |

pub mod address;
pub mod bytes;
pub mod pipe;
pub mod send_queue;
pub mod shared_memory;
pub mod socket;
pub mod tcp;
pub mod tls;

pub use address::{Address, SHARED_MEMORY_PREFIX, shared_memory_path};
pub use bytes::SocketRead;
pub use pipe::{Network, Pipe, PipeListener, Pipes};
pub use send_queue::SendQueue;
pub use shared_memory::{RING_BYTES, SharedListener, SharedSocket};
pub use socket::Socket;
pub use tcp::TcpSocket;
pub use tls::{MutualTls, TlsError, TlsSocket};
