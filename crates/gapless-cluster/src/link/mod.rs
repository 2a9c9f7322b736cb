//! Links between members: one for each pair, over TCP or, on one host, through shared memory.
//! `docs/protocols/cluster.md` explains the messages.

mod addresses;
pub mod beacon;
mod connection;
mod content;
pub mod detached_sender;
mod dial;
mod discovery;
mod error;
mod handshake;
mod links;
mod listener;
pub mod log_state;
mod options;
mod peer;
mod pending_connections;
mod receive_buffer;
pub mod tls;
pub mod wire;

pub use content::{MessageContent, ReceivedMessage};
pub use detached_sender::DetachedSend;
pub use error::{DisconnectReason, LinkError, LinkEvent, SendError};
pub use gapless_transport::sockets::{SHARED_MEMORY_PREFIX, shared_memory_path};
pub use handshake::judge;
pub use links::Links;
pub use options::{DiscoveryOptions, MEMBER_ADDRESSES_MAX, MemberLinkOptions, PEERS_MAX, PeerOptions};
pub use peer::LinkStatistics;
pub use pending_connections::PendingStatistics;
pub use receive_buffer::{LinkMessage, ReceiveBuffer};
pub use tls::LinkTls;
pub use wire::{MemberIdentity, MemberNumber};
