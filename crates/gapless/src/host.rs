//! Hosts: one builder for a service, a replicated state or aggregates, in memory, in a directory, or on a member of a
//! cluster. The same program runs in each place, which can be one argument:
//!
//! ```no_run
//! use gapless::Host;
//! use gapless::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Default, Serialize, Deserialize, State)]
//! struct Account {
//!     balance: u64,
//! }
//!
//! #[derive(Serialize, Deserialize, Message)]
//! #[message(reply = u64)]
//! struct Deposit(u64);
//!
//! #[gapless::service]
//! impl Account {
//!     #[command]
//!     fn deposit(&mut self, Deposit(amount): Deposit) -> u64 {
//!         self.balance += amount;
//!         self.balance
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // "memory", "data", or "member-1.toml".
//!     let place = std::env::args().nth(1).unwrap_or("memory".to_owned());
//!     let host = Host::at(&place)?.service(Account::default()).start()?;
//!     Ok(host.wait()?)
//! }
//! ```
//!
//! A test of timers freezes the time, and moves it:
//!
//! ```
//! use gapless::Host;
//! use gapless::prelude::*;
//!
//! /// Counts the hours.
//! #[derive(Default)]
//! struct Hours(u64);
//! # const BEGIN: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
//!
//! impl Service for Hours {
//!     fn handlers(handlers: &mut Handlers<Self>) {
//!         handlers.on_bytes(BEGIN.schema, |hours, _, context| {
//!             context.set_timer(1, context.time_ns() + 3_600_000_000_000);
//!             context.reply_with(BEGIN, &hours.0.to_le_bytes())
//!         });
//!     }
//!     fn on_timer(&mut self, _: u64, _: &mut Context<'_>) -> Result<(), Reject> {
//!         self.0 += 1;
//!         Ok(())
//!     }
//! #     fn snapshot(&self, _: &mut Vec<u8>) {}
//! #     fn restore(&mut self, _: &[u8]) -> Result<(), String> { Ok(()) }
//! }
//!
//! let host = Host::in_memory().manual_time().service_from(Hours::default).start()?;
//! let mut client = host.polled_client(ClientOptions::default())?;
//! let session = client.open_session(random_token(), 16)?;
//! client.call(session, BEGIN, b"", Duration::from_secs(5))?;
//! host.advance(Duration::from_secs(3600))?;
//! assert_eq!(client.call(session, BEGIN, b"", Duration::from_secs(5))?.payload, 1_u64.to_le_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "cqrs")]
pub use gapless_host::Aggregates;
pub use gapless_host::{Host, HostError, Phase, Role, Running, Services, Status};
