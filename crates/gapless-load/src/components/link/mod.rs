//! Messages between two members of a cluster.

pub mod endpoint;
pub mod partner;
pub mod protocol;
pub mod sending;

pub const LONG_BYTES: usize = 16 << 10;
/// An end that waits for room does not read, so each ring must hold all messages in flight.
pub const LONG_RING_BYTES: usize = 8 << 20;
/// About an append of Raft.
pub const CONSENSUS_BYTES: usize = 64;
