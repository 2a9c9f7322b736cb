//! Hosts: one builder for a service, a replicated state or aggregates, in memory, in a directory, on a member of a
//! cluster, or as a node of a stream of others. The same program runs in each place, which can be one argument:
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
//! On a stream of others a service reads all messages and publishes its own. Its instances share a token, so that the
//! stream has each message once; no client reaches it, so its handle answers queries:
//!
//! ```no_run
//! use gapless::Host;
//! use gapless::prelude::*;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Default, Serialize, Deserialize, State)]
//! struct Total(u64);
//!
//! #[derive(Serialize, Deserialize, Message)]
//! struct Order(u64);
//!
//! #[derive(Serialize, Deserialize, Message)]
//! struct Sum(u64);
//!
//! #[derive(Serialize, Deserialize, Message)]
//! #[message(reply = u64)]
//! struct AskTotal;
//!
//! #[gapless::service]
//! impl Total {
//!     #[event]
//!     fn order(&mut self, Order(quantity): Order, context: &mut Context<'_>) {
//!         self.0 += quantity;
//!         context.publish(&Sum(self.0));
//!     }
//!     #[query]
//!     fn total(&self, _: AskTotal) -> u64 {
//!         self.0
//!     }
//! }
//!
//! let host = Host::on_stream("stream.toml").token(0x7375_6d73).directory("total-1").service(Total::default()).start()?;
//! println!("{} after sequence {}", host.query(&AskTotal)?, host.status().handled);
//! host.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A test of timers freezes the time, and moves it:
//!
//! ```
//! use gapless::Host;
//! use gapless::prelude::*;
//!
//! # use serde::{Deserialize, Serialize};
//! /// Counts the hours.
//! #[derive(Default, Serialize, Deserialize, State)]
//! struct Hours(u64);
//!
//! /// Begins an hour. The reply is the number of those that are over.
//! #[derive(Serialize, Deserialize, Message)]
//! #[message(reply = u64)]
//! struct Begin;
//!
//! #[derive(Serialize, Deserialize, Message)]
//! struct HourEnds;
//!
//! #[gapless::service]
//! impl Hours {
//!     #[command]
//!     fn begin(&mut self, _: Begin, context: &mut Context<'_>) -> u64 {
//!         context.set_timer(&HourEnds, context.time_ns() + 3_600_000_000_000);
//!         self.0
//!     }
//!     #[timer]
//!     fn end(&mut self, _: HourEnds) {
//!         self.0 += 1;
//!     }
//! }
//!
//! let host = Host::in_memory().manual_time().service(Hours::default()).start()?;
//! let client = host.blocking_client()?;
//! client.call(Begin)?;
//! host.advance(Duration::from_secs(3600))?;
//! assert_eq!(client.call(Begin)?, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "cqrs")]
pub use gapless_host::Aggregates;
pub use gapless_host::{Host, HostError, NodeStatus, Phase, Role, Running, Services, Status};
