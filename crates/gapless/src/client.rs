//! Clients of a service: sessions, commands, replies, notices.
//!
//! A client is connected to a service on this machine by a socket and two rings in shared memory, or to a member of a
//! cluster by TCP (`tcp:HOST:PORT`). It numbers its commands in a *session*, so that a command that is sent again has its
//! effect once and gets its first reply again.
//!
//! ```
//! use gapless::prelude::*;
//! # #[derive(Default)]
//! # struct Echo;
//! # impl Service for Echo {
//! #     fn handlers(handlers: &mut Handlers<Self>) {
//! #         handlers.on_bytes(ECHO.schema, |_echo, payload, context| {
//! #             let reply = payload.to_vec();
//! #             context.reply_with(ECHO, &reply)
//! #         });
//! #     }
//! #     fn snapshot(&self, _state: &mut Vec<u8>) {}
//! #     fn restore(&mut self, _state: &[u8]) -> Result<(), String> { Ok(()) }
//! # }
//! const ECHO: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
//!
//! # let host = Host::in_memory().service_from(Echo::default).start()?;
//! let mut client = host.polled_client(ClientOptions::default())?; // From another process: `PolledClient::connect(socket, …)`.
//! let session = client.open_session(random_token(), 16)?;
//!
//! // One command, and its reply.
//! assert_eq!(client.call(session, ECHO, b"one", Duration::from_secs(5))?.payload, b"one");
//!
//! // Sixteen at a time, as the session's window allows; replies come in the order of the commands.
//! for number in 0..16_u8 {
//!     client.send(session, ECHO, 1, |payload| {
//!         payload[0] = number; // Encoded in place, in the ring.
//!         Ok(1)
//!     })?;
//! }
//! let mut replies = Vec::new();
//! while replies.len() < 16 {
//!     client.poll(16, |incoming| {
//!         if let Incoming::Reply { reply, .. } = incoming {
//!             replies.push(reply.payload[0]);
//!         }
//!     })?;
//! }
//! assert_eq!(replies, (0..16).collect::<Vec<_>>());
//! # host.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A client that may be killed is a [`DurableClient`]: the example `surviving_client`, and the guide
//! `docs/guides/connecting-clients.md`.

pub use gapless_client::polled::{MessageType, Outcome, OwnedReply, SavedSession};
pub use gapless_client::shared::{CallOptions, Connect, Notice, Notices, NoticesLost, Query};
pub use gapless_client::{
    Call, CallError, Client, ClientError, ClientOptions, CommandNumber, DurableClient, Incoming, Kept, PolledClient,
    QueryError, Reply, SessionKey, blocking,
};
pub use gapless_log::LogError;
pub use gapless_message::request_description::RequestKind;
pub use gapless_transport::RingSizes;
pub use gapless_transport::credentials::Credentials;
pub use gapless_wire::control::{Refusal, RefusalCode};
