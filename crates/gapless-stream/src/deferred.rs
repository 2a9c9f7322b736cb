//! [`Deferred`]: sessions whose next command its service cannot run yet. That command and those behind it are dropped unanswered; their
//! publisher is told to send them again when the service can run it, or when it asks. So nothing waits here, and only that session does.

use gapless_transport::link::ConnectionId;
use rustc_hash::FxHashMap;

/// A publisher that asks again and again is answered this often, ns.
const ANSWER_INTERVAL_NS: u64 = 10_000_000;

struct DeferredSession {
    connection: ConnectionId,
    /// The last of the frames that were dropped; a frame up to here that comes a second time is the publisher's question what is missing.
    dropped_through: u64,
    next_answer_ns: u64,
}

/// The deferred sessions.
#[derive(Default)]
pub(crate) struct Deferred {
    sessions: FxHashMap<u64, DeferredSession>,
}

impl Deferred {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// The command whose last frame is `session_seq`, of `connection`, is dropped.
    #[cold]
    pub fn defer(&mut self, session: u64, session_seq: u64, connection: ConnectionId, now_ns: u64) {
        let deferred = self.sessions.entry(session).or_insert(DeferredSession {
            connection,
            dropped_through: session_seq,
            next_answer_ns: now_ns + ANSWER_INTERVAL_NS,
        });
        (deferred.connection, deferred.dropped_through) = (connection, session_seq);
    }

    /// Whether the frame `session_seq`, which comes too early, is dropped unanswered, because a command of its session is deferred.
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

    /// Whose publisher is to send its command again, if it is deferred.
    #[cold]
    pub fn recall(&mut self, session: u64, now_ns: u64) -> Option<ConnectionId> {
        let deferred = self.sessions.get_mut(&session)?;
        deferred.next_answer_ns = now_ns + ANSWER_INTERVAL_NS;
        Some(deferred.connection)
    }

    /// The session is deferred no more; whether it was.
    pub fn forget(&mut self, session: u64) -> bool {
        self.sessions.remove(&session).is_some()
    }

    /// Nor are those of `connection`, each of which `gone` is told of.
    pub fn forget_from(&mut self, connection: ConnectionId, mut gone: impl FnMut(u64)) {
        self.sessions.retain(|session, deferred| {
            let is_gone = deferred.connection == connection;
            if is_gone {
                gone(*session);
            }
            !is_gone
        });
    }

    /// Nor is any.
    pub fn forget_all(&mut self) {
        self.sessions.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_a_deferred_command_is_dropped_and_who_asks_is_answered() {
        let mut deferred = Deferred::default();
        let connection = ConnectionId(3);
        assert!(deferred.is_empty() && !deferred.drops(1, 8, 0));
        deferred.defer(1, 7, connection, 0);
        assert!(deferred.drops(1, 8, 0) && deferred.drops(1, 9, 1));
        assert!(!deferred.drops(2, 8, 1), "another session is not deferred");
        assert!(deferred.drops(1, 8, 2), "it asks too soon");
        assert!(!deferred.drops(1, 8, ANSWER_INTERVAL_NS));
        assert!(deferred.drops(1, 9, ANSWER_INTERVAL_NS + 1), "and again too soon");
        assert_eq!((deferred.recall(1, 5), deferred.recall(2, 5)), (Some(connection), None));
        // What is sent again is deferred again.
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
