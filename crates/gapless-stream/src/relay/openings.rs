//! [`Openings`]: sessions that nodes of a relay have asked for and that the sequencer has not answered yet. Bounded: a
//! node asks again until it is answered, so what is forgotten here costs a little time.

use gapless_transport::link::ConnectionId;
use rustc_hash::FxHashMap;

/// Publishers that ask, by token.
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
    /// The only session that it wants; 0 for whichever the token has.
    session: u64,
}

/// Tokens at one time.
const OPENINGS_MAX: usize = 1 << 16;
/// Without an answer for so long a token is forgotten, ns.
const PATIENCE_NS: u64 = 10_000_000_000;

impl Openings {
    /// `connection` asks for the session of `token`, and for no other than `session` if that is not 0. `false` if so
    /// many are asked for that it has to ask again.
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

    /// `session`, of `token`, is open. The connections that asked for it, and whether they share it.
    pub fn opened(&mut self, token: u128, session: u64) -> Vec<(ConnectionId, bool)> {
        let asking = self.asked.remove(&token).map(|opening| opening.asking).unwrap_or_default();
        let wants = |each: &&Asking| [0, session].contains(&each.session);
        asking.iter().filter(wants).map(|each| (each.connection, each.shared)).collect()
    }

    /// A session is refused of whose token the low half is `token_low`. The connections that asked for it.
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

    /// `connection` asks for the session of `token` no more.
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

    /// Forgets what was not answered for long.
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
    fn each_asks_until_it_is_answered_refused_gone_or_forgotten() {
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
    fn who_closes_a_session_is_given_no_other() {
        let mut openings = Openings::default();
        let (closing, successor) = (ConnectionId(1), ConnectionId(2));
        openings.ask(7, 3, closing, false, 0);
        openings.ask(7, 0, successor, false, 0);
        assert_eq!(openings.opened(7, 9), [(successor, false)]);
        openings.ask(7, 3, closing, false, 0);
        assert_eq!(openings.opened(7, 3), [(closing, false)]);
    }

    #[test]
    fn who_closes_one_session_asks_for_the_others_still() {
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
    fn there_are_so_many_and_no_more() {
        let mut openings = Openings::default();
        assert!((0..OPENINGS_MAX as u128).all(|token| openings.ask(token, 0, ConnectionId(1), false, 0)));
        assert!(!openings.ask(u128::MAX, 0, ConnectionId(2), false, 0));
        assert!(openings.ask(3, 0, ConnectionId(2), false, 0), "it is among them");
        openings.sweep(PATIENCE_NS);
        assert!(openings.ask(u128::MAX, 0, ConnectionId(2), false, PATIENCE_NS));
    }
}
