//! Links between the members of a cluster: each member has one to every other, over TCP or, on one host, through shared
//! memory.
//!
//! | module | what lives there |
//! |---|---|
//! | [`wire`] | every layout with its offsets; a member's identity, and refusals |
//! | `links` | [`Links`]: all links of a member, polled by its own thread |
//! | `peer` | the link to one other member: dialling, sending, receiving, events |
//! | `pending_connections` | connections before the handshake |
//! | `handshake` | [`judge`]: acceptance of another member |
//! | [`log_state`] | state of a member's log, and its acknowledgements |
//! | `connection` | messages over one socket |
//! | `receive_buffer` | [`ReceiveBuffer`]: messages handed out in place |
//! | `dial` | a link's sockets |
//! | [`detached_sender`] | sending on a separate thread |
//! | `content` | [`MessageContent`], [`ReceivedMessage`]: the messages of a link |
//! | [`beacon`], `discovery` | members announce their addresses to a multicast group |
//! | [`tls`] | mutual TLS over TCP |
//! | `listener` | the sockets that others connect to |
//! | `addresses` | addresses of a peer; names are resolved on a separate thread |
//! | `options`, `error` | [`MemberLinkOptions`], [`PeerOptions`]; [`LinkError`], [`SendError`], [`DisconnectReason`], [`LinkEvent`] |
//!
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
