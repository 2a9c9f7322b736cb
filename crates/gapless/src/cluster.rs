//! Services and streams on a replicated cluster, with the feature `cluster`.
//!
//! ```no_run
//! use gapless::prelude::*;
//! # #[derive(Default)]
//! # struct Account;
//! # impl Service for Account {
//! #     fn handlers(_handlers: &mut Handlers<Self>) {}
//! #     fn snapshot(&self, _state: &mut Vec<u8>) {}
//! #     fn restore(&mut self, _state: &[u8]) -> Result<(), String> { Ok(()) }
//! # }
//!
//! // `gapless cluster new accounts` has written three of these files.
//! let config = ClusterConfig::load(std::path::Path::new("accounts/member-1.toml"))?;
//! let replica = Replica::start(Account::default(), ReplicaOptions::default(), &config)?;
//! while replica.failure().is_none() {
//!     std::thread::sleep(Duration::from_millis(200));
//! }
//! replica.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The example `clustered` is a whole program, `docs/guides/running-a-cluster.md` the guide.

pub use gapless_cluster::config::{ClusterConfig, MemberConfig, MemberKind, OnFault, ServiceConfig};
pub use gapless_cluster::consensus::{MemberId, MemberRole};
pub use gapless_cluster::member::{MemberStatus, control};
pub use gapless_cluster::{ClusterError, ClusterMember};
pub use gapless_engine::snapshot_schedule::SnapshotRequests;
pub use gapless_engine::{Replica, ReplicaOptions, StateOptions};
