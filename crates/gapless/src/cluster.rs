//! Services and streams on a replicated cluster, with the feature `cluster`.
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
//! # #[derive(Serialize, Deserialize, Message)]
//! # #[message(reply = u64)]
//! # struct Deposit(u64);
//! # #[gapless::service]
//! # impl Account {
//! #     #[command]
//! #     fn deposit(&mut self, Deposit(amount): Deposit) -> u64 {
//! #         self.balance += amount;
//! #         self.balance
//! #     }
//! # }
//!
//! // `gapless cluster new accounts` has written three of these files.
//! let host = Host::member("accounts/member-1.toml").service(Account::default()).start()?;
//! host.wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The example `clustered` is a whole program, `docs/guides/running-a-cluster.md` the guide.

pub use gapless_cluster::config::{ClusterConfig, MemberConfig, MemberKind, OnFault, ServiceConfig};
pub use gapless_cluster::consensus::{MemberId, MemberRole};
pub use gapless_cluster::member::{MemberStatus, control};
pub use gapless_cluster::{ClusterError, ClusterMember};
