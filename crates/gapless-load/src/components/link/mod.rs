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

/// From so many bytes on a message is long.
pub const LONG_BYTES: usize = 16 << 10;
/// Each ring for long messages: an end that waits for room does not read meanwhile, so that all in flight must find
/// some.
pub const LONG_RING_BYTES: usize = 8 << 20;
/// Bytes of the consensus part: about what an append of Raft needs.
pub const CONSENSUS_BYTES: usize = 64;
