//! State of a log at a handshake, and other members' memory of its acknowledgements. A member with less than it
//! acknowledged has an older copy of its directory.

/// Newest acknowledgement of a member: all entries up to this one, in this term. Ordered by term, then index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Acknowledgement {
    pub term: u64,
    /// Last acknowledged entry.
    pub index: u64,
}

/// Log state at a handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogState {
    /// Newest term with its participation; 0 before the first.
    pub term: u64,
    /// Last persisted entry.
    pub last_index: u64,
    /// May lack acknowledged entries.
    pub is_rejoining: bool,
}

impl LogState {
    /// Whether the acknowledged entries are kept; in a later term another leader may have cut them.
    #[must_use]
    pub fn has_kept(&self, acknowledged: Acknowledgement) -> bool {
        let Acknowledgement { term, index } = acknowledged;
        self.is_rejoining || self.term > term || (self.term == term && self.last_index >= index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_log_is_a_loss() {
        let log = |term, last_index| LogState { term, last_index, is_rejoining: false };
        let acknowledged = Acknowledgement { term: 4, index: 100 };
        for (log, has_kept) in
            [(log(4, 100), true), (log(4, 99), false), (log(3, 200), false), (log(5, 1), true), (log(0, 0), false)]
        {
            assert_eq!(log.has_kept(acknowledged), has_kept, "{log:?}");
            assert!(LogState { is_rejoining: true, ..log }.has_kept(acknowledged), "a rejoining member is trusted");
        }
    }
}
