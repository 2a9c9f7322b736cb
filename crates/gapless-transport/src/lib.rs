//! How processes and machines meet: publishers are accepted, get their rings, and their death is noticed; packets and connections
//! between machines, and the same in memory for tests. Nothing here knows what a stream is made of.
//!
//! | module | what lives there |
//! |---|---|
//! | [`connect`] | connecting to a service: by a socket of this machine, or by TCP |
//! | [`listener`] | [`Listener`](listener::Listener): the socket where publishers of this machine connect, and the notice of their death |
//! | [`publisher_rings`] | [`PublisherRings`](publisher_rings::PublisherRings): both ends of a new publisher's rings |
//! | [`publisher_link`] | [`PublisherLink`]: a publisher's end of a connection |
//! | [`pump`] | [`Pump`](pump::Pump): carries a publisher's rings to another machine |
//! | [`addresses`] | [`Addresses`](addresses::Addresses): several addresses of one service, and whose turn it is |
//! | [`network`] | [`network::Datagrams`] and [`network::TcpConnection`]: the carriers to and from other machines |
//! | [`sockets`] | connections of bytes: [`TcpSocket`](sockets::TcpSocket), [`SharedSocket`](sockets::SharedSocket), a simulation's |
//! | [`catch_up_budget`] | [`CatchUpBudget`](catch_up_budget::CatchUpBudget): how much may be sent to those who catch up |
//! | [`mailbox`] | [`mailbox::Mailbox`]: messages between agents of one process |
//! | [`warnings`] | [`Warnings`](warnings::Warnings): warnings that others can provoke are logged once a second |
//! | [`peer_process`] | [`PeerProcess`](peer_process::PeerProcess): the process at the other side of a socket, and whether it stands still |
//! | [`socket_path`] | the address of a socket by its path, and a connection to it |
//! | `readiness` | sleeping until a descriptor is ready |
//! | `descriptors` | that this process can take no more of them, in words |
//! | [`error`] | [`TransportError`] |
//! | [`handshake`] | the messages of both sides over the Unix socket before the rings |
//! | [`seen`] | [`Seen`](seen::Seen): the last frame that somebody has seen of a stream |
//! | [`link`] | which link, how large its rings are, its longest frame and message |
//! | [`credentials`], [`token`] | username and password, and numbers that nobody else has |
//! | [`transport`] | [`Transport`]: the transport of a stream to its nodes |
//! | [`tier`] | [`Tier`]: how durable a released frame is |

#![forbid(unsafe_code)]

pub mod addresses;
pub mod catch_up_budget;
pub mod connect;
pub mod credentials;
mod descriptors;
pub mod error;
pub mod handshake;
pub mod link;
pub mod listener;
pub mod mailbox;
pub mod network;
pub mod peer_process;
pub mod publisher_link;
pub mod publisher_rings;
pub mod pump;
mod readiness;
pub mod seen;
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
