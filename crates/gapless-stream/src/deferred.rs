//! [`DeferredSessions`]: sessions whose next command the service cannot run yet. That command and the frames after it
//! are dropped; the publisher resends them when asked, or when it queries missing frames. Nothing is buffered, and
//! other sessions are not delayed.

use gapless_transport::link::ConnectionId;
use rustc_hash::FxHashMap;

/// Least time between two answers to a publisher that keeps querying, ns.
const ANSWER_INTERVAL_NS: u64 = 10_000_000;

struct DeferredSession {
    connection: ConnectionId,
    /// A second copy of a frame up to here is the publisher's query for missing frames.
    dropped_through: u64,
    next_answer_ns: u64,
}

#[derive(Default)]
pub(crate) struct DeferredSessions {
    sessions: FxHashMap<u64, DeferredSession>,
}

impl DeferredSessions {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Drops the command whose last frame is `session_seq`.
    #[cold]
    pub fn defer(&mut self, session: u64, session_seq: u64, connection: ConnectionId, now_ns: u64) {
        let deferred = self.sessions.entry(session).or_insert(DeferredSession {
            connection,
            dropped_through: session_seq,
            next_answer_ns: now_ns + ANSWER_INTERVAL_NS,
        });
        (deferred.connection, deferred.dropped_through) = (connection, session_seq);
    }

    /// Whether an early frame is dropped: a command of its session is deferred.
    #[cold]
    pub fn drops(&mut self, session: u64, session_seq: u64, now_ns: u64) -> bool {
        let Some(deferred) = self.sessions.get_mut(&session) else { return false };
        if session_seq > deferred.dropped_through {
            deferred.dropped_through = session_seq;
            return true;
        }
        let is_due = now_ns >= deferred.next_answer_ns;
        if is_due {
            deferred.next_answer_ns = now_ns + ANSWER_INTERVAL_NS;
        }
        !is_due
    }

    /// Connection that has to resend the deferred command.
    #[cold]
    pub fn recall(&mut self, session: u64, now_ns: u64) -> Option<ConnectionId> {
        let deferred = self.sessions.get_mut(&session)?;
        deferred.next_answer_ns = now_ns + ANSWER_INTERVAL_NS;
        Some(deferred.connection)
    }

    /// Removes the session; `false` if it was not deferred.
    pub fn forget(&mut self, session: u64) -> bool {
        self.sessions.remove(&session).is_some()
    }

    /// Removes a connection's sessions, with `gone` for each.
    pub fn forget_from(&mut self, connection: ConnectionId, mut gone: impl FnMut(u64)) {
        self.sessions.retain(|session, deferred| {
            let is_gone = deferred.connection == connection;
            if is_gone {
                gone(*session);
            }
            !is_gone
        });
    }

    pub fn forget_all(&mut self) {
        self.sessions.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_after_deferred_are_dropped() {
        let mut deferred = DeferredSessions::default();
        let connection = ConnectionId(3);
        assert!(deferred.is_empty() && !deferred.drops(1, 8, 0));
        deferred.defer(1, 7, connection, 0);
        assert!(deferred.drops(1, 8, 0) && deferred.drops(1, 9, 1));
        assert!(!deferred.drops(2, 8, 1), "another session is not deferred");
        assert!(deferred.drops(1, 8, 2), "queried too soon");
        assert!(!deferred.drops(1, 8, ANSWER_INTERVAL_NS));
        assert!(deferred.drops(1, 9, ANSWER_INTERVAL_NS + 1), "queried too soon again");
        assert_eq!((deferred.recall(1, 5), deferred.recall(2, 5)), (Some(connection), None));
        deferred.defer(1, 7, ConnectionId(4), 6);
        assert!(deferred.drops(1, 8, 7));
        let mut gone = Vec::new();
        deferred.forget_from(connection, |session| gone.push(session));
        assert!(!deferred.is_empty() && gone.is_empty());
        deferred.forget_from(ConnectionId(4), |session| gone.push(session));
        assert!(deferred.is_empty() && gone == [1]);
        deferred.defer(1, 7, connection, 0);
        assert!(deferred.forget(1) && !deferred.forget(1));
    }
}
