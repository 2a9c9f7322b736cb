//! Byte streams that never block, over every carrier, without message formats.

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
