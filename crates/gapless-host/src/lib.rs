//! One builder for all hosts: a service, a replicated state or aggregates, in memory, in a directory, on a member of a
//! cluster, or as a node of a stream of others.
//!
//! | module | contents |
//! |---|---|
//! | [`host`] | [`Host`]: place, options and program; starts |
//! | [`running`] | [`Running`]: clients, status, snapshots, end |
//! | `watcher` | starts a member again that has fetched another member's state, with the feature `cluster` |
//! | `life` | phases of a running host, shared by its handles |
//! | [`program`] | [`Services`] and `Aggregates`: programs of a host |
//! | `started` | a started host, whatever it runs |
//! | `node` | a service on a stream of others, and its thread |
//! | `options` | options of a host, and the places that have them |
//! | `place` | where a host keeps its stream |
//! | [`status`] | [`Status`]: phase, role and sequences |
//! | [`error`] | [`HostError`] |

#![forbid(unsafe_code)]

pub mod error;
pub mod host;
mod life;
mod node;
mod options;
mod place;
pub mod program;
pub mod running;
mod started;
pub mod status;
#[cfg(feature = "cluster")]
mod watcher;

pub use error::HostError;
pub use host::Host;
#[cfg(feature = "cqrs")]
pub use program::Aggregates;
pub use program::Services;
pub use running::Running;
pub use status::{NodeStatus, Phase, Role, Status};
