//! Consensus over a stream: frames on a quorum are never lost.
//!
//! | module | what lives there |
//! |---|---|
//! | [`member`] | a member: its agent, its start |
//! | [`config`] | the configuration file of a member |
//! | `error` | [`ClusterError`] |
//! | [`consensus`] | the core: votes, entries, members, log positions; no I/O, no clock, no randomness |
//! | [`link`] | the links between members |

#![forbid(unsafe_code)]

pub mod config;
pub mod consensus;
mod error;
pub mod link;
pub mod member;

pub use error::ClusterError;
pub use member::ClusterMember;
