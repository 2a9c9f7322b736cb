//! Byte streams that never block, over every carrier. The links between a cluster's members, and all TCP connections,
//! are made of these. No message formats are known here.
//!
//! | module | what lives there |
//! |---|---|
//! | [`send_queue`] | [`SendQueue`]: bytes that a socket did not take yet |
//! | [`socket`] | [`Socket`]: each of the sockets below as one type |
//! | [`tcp`] | [`TcpSocket`]: bytes over TCP |
//! | [`tls`] | [`MutualTls`], [`TlsSocket`]: TLS over that, with the feature `tls` |
//! | [`shared_memory`] | [`SharedSocket`]: bytes between two processes of one host, through rings in shared memory |
//! | [`pipe`] | [`Network`]: connections outside of the operating system, for simulations |
//! | [`address`] | [`Address`]: address of a connection, and its text form |
//! | [`bytes`] | [`SocketRead`]: the result of a read; checking for a connecting peer |

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
