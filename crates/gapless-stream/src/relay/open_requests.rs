//! [`OpenRequests`]: sessions that a relay's nodes have asked for, unanswered. Bounded: a node asks again, so a
//! forgotten entry costs only time.

use gapless_transport::link::ConnectionId;
use rustc_hash::FxHashMap;

#[derive(Default)]
pub(crate) struct OpenRequests {
    requests: FxHashMap<u128, OpenRequest>,
}

struct OpenRequest {
    requesters: Vec<OpenRequester>,
    asked_ns: u64,
}

#[derive(Clone, Copy)]
struct OpenRequester {
    connection: ConnectionId,
    shared: bool,
    /// 0 for any.
    session: u64,
}

const OPENINGS_MAX: usize = 1 << 16;
const REQUEST_AGE_NS_MAX: u64 = 10_000_000_000;

impl OpenRequests {
    /// Notes a request, for `session` only if that is not 0. `false` if the table is full: ask again.
    pub fn ask(&mut self, token: u128, session: u64, connection: ConnectionId, shared: bool, now_ns: u64) -> bool {
        if self.requests.len() >= OPENINGS_MAX && !self.requests.contains_key(&token) {
            return false;
        }
        let opening = self.requests.entry(token).or_insert(OpenRequest { requesters: Vec::new(), asked_ns: now_ns });
        opening.asked_ns = now_ns;
        opening.requesters.retain(|each| each.connection != connection);
        opening.requesters.push(OpenRequester { connection, shared, session });
        true
    }

    /// Connections that asked, and whether they share the session.
    pub fn take_requesters(&mut self, token: u128, session: u64) -> Vec<(ConnectionId, bool)> {
        let requesters = self.requests.remove(&token).map(|opening| opening.requesters).unwrap_or_default();
        let wants = |each: &&OpenRequester| [0, session].contains(&each.session);
        requesters.iter().filter(wants).map(|each| (each.connection, each.shared)).collect()
    }

    /// Connections that asked; `token_low` is the token's low half.
    pub fn take_refused(&mut self, token_low: u64) -> Vec<ConnectionId> {
        let mut connections = Vec::new();
        self.requests.retain(|token, opening| {
            let is_refused = *token as u64 == token_low;
            if is_refused {
                connections.extend(opening.requesters.iter().map(|each| each.connection));
            }
            !is_refused
        });
        connections
    }

    /// Withdraws a request.
    pub fn forget(&mut self, token: u128, connection: ConnectionId) {
        if let Some(opening) = self.requests.get_mut(&token) {
            opening.requesters.retain(|each| each.connection != connection);
            if opening.requesters.is_empty() {
                self.requests.remove(&token);
            }
        }
    }

    pub fn forget_from(&mut self, connection: ConnectionId) {
        self.requests.retain(|_, opening| {
            opening.requesters.retain(|each| each.connection != connection);
            !opening.requesters.is_empty()
        });
    }

    /// Forgets old requests.
    pub fn sweep(&mut self, now_ns: u64) {
        self.requests.retain(|_, opening| now_ns.saturating_sub(opening.asked_ns) < REQUEST_AGE_NS_MAX);
    }

    pub fn clear(&mut self) {
        self.requests.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ends_with_answer_or_timeout() {
        let mut open_requests = OpenRequests::default();
        let (one, two) = (ConnectionId(1), ConnectionId(2));
        for (token, connection) in [(7, one), (7, two), (8, one), (9, two), (10, one), (7, one)] {
            assert!(open_requests.ask(token, 0, connection, token == 7, 5));
        }
        assert_eq!(open_requests.take_requesters(7, 3), [(two, true), (one, true)]);
        assert_eq!((open_requests.take_requesters(7, 3), open_requests.take_refused(8)), (vec![], vec![one]));
        open_requests.forget_from(two);
        assert_eq!(open_requests.requests.len(), 1);
        open_requests.sweep(5 + REQUEST_AGE_NS_MAX - 1);
        assert_eq!(open_requests.requests.len(), 1);
        open_requests.sweep(5 + REQUEST_AGE_NS_MAX);
        assert_eq!(open_requests.requests.len(), 0);
    }

    #[test]
    fn closer_gets_no_other_session() {
        let mut open_requests = OpenRequests::default();
        let (closing, successor) = (ConnectionId(1), ConnectionId(2));
        open_requests.ask(7, 3, closing, false, 0);
        open_requests.ask(7, 0, successor, false, 0);
        assert_eq!(open_requests.take_requesters(7, 9), [(successor, false)]);
        open_requests.ask(7, 3, closing, false, 0);
        assert_eq!(open_requests.take_requesters(7, 3), [(closing, false)]);
    }

    #[test]
    fn other_requests_survive_a_close() {
        let mut open_requests = OpenRequests::default();
        let (closing, successor) = (ConnectionId(1), ConnectionId(2));
        for (token, connection) in [(7, closing), (8, closing), (7, successor)] {
            open_requests.ask(token, 0, connection, false, 0);
        }
        open_requests.forget(7, closing);
        open_requests.forget(9, closing);
        assert_eq!(
            (open_requests.take_requesters(7, 4), open_requests.take_requesters(8, 5)),
            (vec![(successor, false)], vec![(closing, false)])
        );
        open_requests.ask(8, 0, closing, false, 0);
        open_requests.forget(8, closing);
        assert!(open_requests.requests.is_empty());
    }

    #[test]
    fn tokens_are_bounded() {
        let mut open_requests = OpenRequests::default();
        assert!((0..OPENINGS_MAX as u128).all(|token| open_requests.ask(token, 0, ConnectionId(1), false, 0)));
        assert!(!open_requests.ask(u128::MAX, 0, ConnectionId(2), false, 0));
        assert!(open_requests.ask(3, 0, ConnectionId(2), false, 0), "the token is known");
        open_requests.sweep(REQUEST_AGE_NS_MAX);
        assert!(open_requests.ask(u128::MAX, 0, ConnectionId(2), false, REQUEST_AGE_NS_MAX));
    }
}
