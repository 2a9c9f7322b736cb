//! [`Counters`]: records that changed nothing, by their reason.

use serde::{Deserialize, Serialize};

/// Numbers since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Records that were read before.
    pub repeated_records: u64,
    /// Records that break the protocol.
    pub malformed_records: u64,
    /// Requests of another version of the protocol.
    pub other_protocol: u64,
    /// Requests that were read before, by their correlation.
    pub repeated_requests: u64,
    /// Requests to an earlier incarnation of this bridge.
    pub discarded_requests: u64,
    /// Requests whose sender has named no place for the reply, or one that is not allowed.
    pub without_address: u64,
    /// Replies to an earlier incarnation of this bridge.
    pub replies_to_earlier: u64,
    /// Replies to calls that have ended.
    pub late_replies: u64,
    /// Replies of a bridge that was not asked.
    pub foreign_replies: u64,
    /// Leases of an earlier incarnation of a bridge.
    pub stale_leases: u64,
    /// Replies that could not be sent.
    pub lost_replies: u64,
}
