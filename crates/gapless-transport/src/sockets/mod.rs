//! Connections of bytes that never block, whatever carries them: the links between a cluster's members, and everything of
//! TCP, are made of these. No message is known here.
//!
//! | module | what lives there |
//! |---|---|
//! | [`tcp`] | [`TcpSocket`]: bytes over TCP |
//! | [`tls`] | [`MutualTls`], [`TlsSocket`]: TLS over that, with the feature `tls` |
//! | [`shared_memory`] | [`SharedSocket`]: bytes between two processes of one host, through rings in memory that both map |
//! | [`pipe`] | [`Network`]: connections that are not the operating system's, for simulations |
//! | [`bytes`] | [`SocketRead`]: what a look at one of them brings |

pub mod bytes;
pub mod pipe;
pub mod shared_memory;
pub mod tcp;
pub mod tls;

pub use bytes::SocketRead;
pub use pipe::{Network, Pipe, PipeListener, Pipes};
pub use shared_memory::{RING_BYTES, SharedListener, SharedSocket};
pub use tcp::TcpSocket;
pub use tls::{MutualTls, TlsError, TlsSocket};
