//! Messages between two members of a cluster.
//!
//! | module | what lives there |
//! |---|---|
//! | [`sending`] | the first process |
//! | [`partner`] | the second process: reads and measures, echoes, or acknowledges |
//! | [`endpoint`] | one member's links |
//! | [`protocol`] | the assignment of the second process |

pub mod endpoint;
pub mod partner;
pub mod protocol;
pub mod sending;

/// Shortest long message, bytes.
pub const LONG_BYTES: usize = 16 << 10;
/// Capacity of each ring for long messages. An end that waits for room does not read meanwhile, so the ring must hold
/// all messages in flight.
pub const LONG_RING_BYTES: usize = 8 << 20;
/// Length of the consensus part, bytes: about that of an append of Raft.
pub const CONSENSUS_BYTES: usize = 64;
