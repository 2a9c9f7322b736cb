//! [`Openings`]: sessions that nodes of a relay have asked for and the sequencer has not answered yet. Bounded: a node
//! asks again until it is answered, so a forgotten entry costs only time.

use gapless_transport::link::ConnectionId;
use rustc_hash::FxHashMap;

#[derive(Default)]
pub(crate) struct Openings {
    asked: FxHashMap<u128, Opening>,
}

struct Opening {
    asking: Vec<Asking>,
    asked_ns: u64,
}

#[derive(Clone, Copy)]
struct Asking {
    connection: ConnectionId,
    shared: bool,
    /// Only session that it accepts; 0 for any.
    session: u64,
}

/// Limit on tokens at one time.
const OPENINGS_MAX: usize = 1 << 16;
/// Time without an answer after which a token is forgotten, ns.
const PATIENCE_NS: u64 = 10_000_000_000;

impl Openings {
    /// Notes that `connection` asks for the session of `token`, and for no other than `session` if that is not 0.
    /// `false` if the table is full, and it must ask again.
    pub fn ask(&mut self, token: u128, session: u64, connection: ConnectionId, shared: bool, now_ns: u64) -> bool {
        if self.asked.len() >= OPENINGS_MAX && !self.asked.contains_key(&token) {
            return false;
        }
        let opening = self.asked.entry(token).or_insert(Opening { asking: Vec::new(), asked_ns: now_ns });
        opening.asked_ns = now_ns;
        opening.asking.retain(|each| each.connection != connection);
        opening.asking.push(Asking { connection, shared, session });
        true
    }

    /// Handles the opening of `session`, of `token`. Returns the connections that asked for it, and whether they share
    /// it.
    pub fn opened(&mut self, token: u128, session: u64) -> Vec<(ConnectionId, bool)> {
        let asking = self.asked.remove(&token).map(|opening| opening.asking).unwrap_or_default();
        let wants = |each: &&Asking| [0, session].contains(&each.session);
        asking.iter().filter(wants).map(|each| (each.connection, each.shared)).collect()
    }

    /// Handles the refusal of a session whose token has the low half `token_low`. Returns the connections that asked
    /// for it.
    pub fn refused(&mut self, token_low: u64) -> Vec<ConnectionId> {
        let mut who = Vec::new();
        self.asked.retain(|token, opening| {
            let is_refused = *token as u64 == token_low;
            if is_refused {
                who.extend(opening.asking.iter().map(|each| each.connection));
            }
            !is_refused
        });
        who
    }

    /// Withdraws the request of `connection` for the session of `token`.
    pub fn forget(&mut self, token: u128, connection: ConnectionId) {
        if let Some(opening) = self.asked.get_mut(&token) {
            opening.asking.retain(|each| each.connection != connection);
            if opening.asking.is_empty() {
                self.asked.remove(&token);
            }
        }
    }

    pub fn forget_from(&mut self, connection: ConnectionId) {
        self.asked.retain(|_, opening| {
            opening.asking.retain(|each| each.connection != connection);
            !opening.asking.is_empty()
        });
    }

    /// Forgets requests that were not answered for long.
    pub fn sweep(&mut self, now_ns: u64) {
        self.asked.retain(|_, opening| now_ns.saturating_sub(opening.asked_ns) < PATIENCE_NS);
    }

    pub fn clear(&mut self) {
        self.asked.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ends_with_answer_or_timeout() {
        let mut openings = Openings::default();
        let (one, two) = (ConnectionId(1), ConnectionId(2));
        for (token, connection) in [(7, one), (7, two), (8, one), (9, two), (10, one), (7, one)] {
            assert!(openings.ask(token, 0, connection, token == 7, 5));
        }
        assert_eq!(openings.opened(7, 3), [(two, true), (one, true)]);
        assert_eq!((openings.opened(7, 3), openings.refused(8)), (vec![], vec![one]));
        openings.forget_from(two);
        assert_eq!(openings.asked.len(), 1);
        openings.sweep(5 + PATIENCE_NS - 1);
        assert_eq!(openings.asked.len(), 1);
        openings.sweep(5 + PATIENCE_NS);
        assert_eq!(openings.asked.len(), 0);
    }

    #[test]
    fn closer_gets_no_other_session() {
        let mut openings = Openings::default();
        let (closing, successor) = (ConnectionId(1), ConnectionId(2));
        openings.ask(7, 3, closing, false, 0);
        openings.ask(7, 0, successor, false, 0);
        assert_eq!(openings.opened(7, 9), [(successor, false)]);
        openings.ask(7, 3, closing, false, 0);
        assert_eq!(openings.opened(7, 3), [(closing, false)]);
    }

    #[test]
    fn other_requests_survive_a_close() {
        let mut openings = Openings::default();
        let (closing, successor) = (ConnectionId(1), ConnectionId(2));
        for (token, connection) in [(7, closing), (8, closing), (7, successor)] {
            openings.ask(token, 0, connection, false, 0);
        }
        openings.forget(7, closing);
        openings.forget(9, closing);
        assert_eq!((openings.opened(7, 4), openings.opened(8, 5)), (vec![(successor, false)], vec![(closing, false)]));
        openings.ask(8, 0, closing, false, 0);
        openings.forget(8, closing);
        assert!(openings.asked.is_empty());
    }

    #[test]
    fn tokens_are_bounded() {
        let mut openings = Openings::default();
        assert!((0..OPENINGS_MAX as u128).all(|token| openings.ask(token, 0, ConnectionId(1), false, 0)));
        assert!(!openings.ask(u128::MAX, 0, ConnectionId(2), false, 0));
        assert!(openings.ask(3, 0, ConnectionId(2), false, 0), "the token is known");
        openings.sweep(PATIENCE_NS);
        assert!(openings.ask(u128::MAX, 0, ConnectionId(2), false, PATIENCE_NS));
    }
}
