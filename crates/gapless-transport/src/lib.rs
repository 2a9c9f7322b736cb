//! Connections between processes and machines: accepting publishers, giving them rings, and noticing their death;
//! packets and connections between machines, and their in-memory variants for tests. This crate knows nothing about the
//! contents of a stream.
//!
//! | module | what lives there |
//! |---|---|
//! | [`connect`] | connecting to a service: by a Unix socket, or by TCP |
//! | [`listener`] | [`Listener`](listener::Listener): the socket for publishers of this machine, and notices of their death |
//! | [`publisher_rings`] | [`PublisherRings`](publisher_rings::PublisherRings): both ends of a new publisher's rings |
//! | [`publisher_link`] | [`PublisherLink`]: a publisher's end of a connection |
//! | [`pump`] | [`Pump`](pump::Pump): carries a publisher's rings to another machine |
//! | [`addresses`] | [`Addresses`](addresses::Addresses): several addresses of one service, and which to try next |
//! | [`network`] | [`network::Datagrams`] and [`network::TcpConnection`]: packets and connections to other machines |
//! | [`sockets`] | byte streams: [`TcpSocket`](sockets::TcpSocket), [`SharedSocket`](sockets::SharedSocket), a simulation's |
//! | [`catch_up_budget`] | [`CatchUpBudget`](catch_up_budget::CatchUpBudget): limit on the traffic to members that are catching up |
//! | [`mailbox`] | [`mailbox::Mailbox`]: messages between agents of one process |
//! | [`warnings`] | [`Warnings`](warnings::Warnings): rate limit of warnings that a peer can provoke |
//! | [`peer_process`] | [`PeerProcess`](peer_process::PeerProcess): the process at the other end of a socket, and whether it is stopped |
//! | [`socket_path`] | socket addresses by path, and connecting to them |
//! | [`interest`] | [`Interest`](interest::Interest): sleeping for a link that other threads use meanwhile |
//! | `readiness` | sleeping until a descriptor is ready |
//! | `descriptors` | error text for a lack of descriptors |
//! | [`error`] | [`TransportError`] |
//! | [`handshake`] | handshake messages over the Unix socket |
//! | [`seen_frame`] | [`SeenFrame`](seen_frame::SeenFrame): the last frame of a stream that a peer has seen |
//! | [`link`] | connection numbers, ring sizes, limits of frames and messages |
//! | [`credentials`], [`token`] | user name and password, and random tokens |
//! | [`transport`] | [`Transport`]: the transport of a stream to its nodes |
//! | [`tier`] | [`Tier`]: durability of a released frame |

#![forbid(unsafe_code)]

pub mod addresses;
pub mod catch_up_budget;
pub mod connect;
pub mod credentials;
mod descriptors;
pub mod error;
pub mod handshake;
pub mod interest;
pub mod link;
pub mod listener;
pub mod mailbox;
pub mod network;
pub mod peer_process;
pub mod publisher_link;
pub mod publisher_rings;
pub mod pump;
mod readiness;
pub mod seen_frame;
pub mod socket_path;
pub mod sockets;
pub mod tier;
pub mod token;
pub mod transport;
pub mod warnings;

pub use error::TransportError;
pub use link::{ConnectionId, RingSizes};
pub use publisher_link::PublisherLink;
pub use tier::Tier;
pub use transport::Transport;
