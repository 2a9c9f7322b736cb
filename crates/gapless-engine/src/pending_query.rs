//! [`PendingQuery`]: a query on its way. A leader's state is owned by the appending agent, which answers queries from it;
//! the answer waits until everything that it has read is released.

use crate::handler_guard::HandlerRefusal;
use gapless_stream::messages::QueryMessage;

/// Time of an agent's poll with queries or frames, above which the next one takes fewer: a cluster member may share the thread and must send its
/// heartbeats.
pub(crate) const POLL_NS_MAX: u64 = 5_000_000;

pub(crate) struct PendingQuery {
    pub query: Box<QueryMessage>,
    pub deadline_ns: u64,
    /// Frame in the state of a deposed leader that must be released first; 0: none.
    pub release_awaited: u64,
    /// Of a leader.
    pub answer: Option<SpeculativeAnswer>,
}

impl PendingQuery {
    /// Sequence that must be handled first.
    pub fn awaited_sequence(&self) -> u64 {
        self.answer.as_ref().map_or(self.query.after.max(self.release_awaited), |answer| answer.sequence)
    }
}

/// Place where a query is answered.
pub(crate) enum QueryPlace {
    /// The state is here.
    Here(PendingQuery),
    /// The owner of the state has the query.
    Lent,
    /// Nowhere until this frame, which the state contains, is released or cut.
    Unreleased(PendingQuery, u64),
}

/// Answer from a state that may contain frames that are not released.
pub(crate) struct SpeculativeAnswer {
    /// Last frame in the state.
    pub sequence: u64,
    pub time_ns: u64,
    /// Void in a later lineage of the state ([`ReplicatedState::lineage`](crate::state::ReplicatedState::lineage)).
    pub lineage: u64,
    pub bytes: Result<Vec<u8>, HandlerRefusal>,
    /// Time in the handler.
    pub handler_ns: u64,
}

impl SpeculativeAnswer {
    pub fn length(&self) -> usize {
        self.bytes.as_ref().map_or(0, Vec::len)
    }
}
