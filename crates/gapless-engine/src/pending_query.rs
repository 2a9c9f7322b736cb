//! [`PendingQuery`]: a query on its way. A leader's state is owned by the appending agent, which answers queries from it;
//! the answer waits until everything that it has read is released.

use crate::handler_guard::HandlerRefusal;
use gapless_stream::messages::QueryMessage;

/// Time of an agent's poll with queries or frames, above which the next one takes fewer: a cluster member may share the thread and must send its
/// heartbeats.
pub(crate) const POLL_NS_MAX: u64 = 5_000_000;

const WARNING_INTERVAL_NS: u64 = 1_000_000_000;

/// Names queries in the log that take longer than [`POLL_NS_MAX`], one a second: no command runs meanwhile.
#[derive(Default)]
pub(crate) struct SlowQueryLog {
    next_warning_ns: u64,
}

impl SlowQueryLog {
    #[inline]
    pub fn note(&mut self, handler_ns: u64, now_ns: u64, name: impl FnOnce() -> Option<&'static str>) {
        if handler_ns > POLL_NS_MAX && self.is_due(now_ns) {
            let (query, took_ms) = (name().unwrap_or("without a name"), handler_ns / 1_000_000);
            tracing::warn!(query, took_ms, "a slow query: no command runs meanwhile");
        }
    }

    #[cold]
    const fn is_due(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns >= self.next_warning_ns;
        if is_due {
            self.next_warning_ns = now_ns + WARNING_INTERVAL_NS;
        }
        is_due
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_queries_are_named_once_a_second() {
        let (mut log, mut named) = (SlowQueryLog::default(), Vec::new());
        let slow = POLL_NS_MAX + 1;
        for (handler_ns, now_ns) in
            [(POLL_NS_MAX, 1), (slow, 2), (slow, 3), (slow, 1_000_000_002), (slow, 1_000_000_003)]
        {
            log.note(handler_ns, now_ns, || {
                named.push(now_ns);
                Some("Taken")
            });
        }
        assert_eq!(named, [2, 1_000_000_002]);
    }
}
