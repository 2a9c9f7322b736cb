//! `Counters`: records that changed nothing, by their reason.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Counts, since the start, of records that changed nothing, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Records that were read before.
    pub repeated_records: u64,
    /// Records that break the protocol.
    pub malformed_records: u64,
    /// Records that the client could not read, each with all that was skipped for it.
    pub unreadable_records: u64,
    /// Requests of another version of the protocol.
    pub other_protocol: u64,
    /// Requests with a correlation that was read before.
    pub repeated_requests: u64,
    /// Requests to an earlier incarnation of this bridge.
    pub discarded_requests: u64,
    /// Requests without a place for the reply, or with one that is not allowed.
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

/// The counters that are not 0, in words.
impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            (self.repeated_records, "read before"),
            (self.malformed_records, "that break the protocol"),
            (self.unreadable_records, "that no client can read"),
            (self.other_protocol, "of another version of the protocol"),
            (self.repeated_requests, "requests that were sent twice"),
            (self.discarded_requests, "requests to an earlier incarnation"),
            (self.without_address, "requests without a place for the reply"),
            (self.replies_to_earlier, "replies to an earlier incarnation"),
            (self.late_replies, "replies to calls that had ended"),
            (self.foreign_replies, "replies of bridges that were not asked"),
            (self.stale_leases, "leases of earlier incarnations"),
            (self.lost_replies, "replies that could not be sent"),
        ];
        let mut is_first = true;
        for (count, words) in words.into_iter().filter(|(count, _)| *count > 0) {
            let before = if std::mem::take(&mut is_first) { "" } else { ", " };
            write!(f, "{before}{count} {words}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_told_in_words() {
        let counters = Counters { malformed_records: 3, late_replies: 1, ..Counters::default() };
        assert_eq!(counters.to_string(), "3 that break the protocol, 1 replies to calls that had ended");
        assert_eq!(Counters::default().to_string(), "");
    }
}
