//! [`Openings`]: sessions that nodes behind a relay have asked for and that the sequencer has not answered yet. Bounded:
//! a node asks again until it is answered, so what is forgotten here costs a little time.

use crate::link::ConnectionId;
use rustc_hash::FxHashMap;

/// Who asks, by token.
#[derive(Default)]
pub(crate) struct Openings {
    asked: FxHashMap<u128, Opening>,
}

struct Opening {
    /// Who asks, and whether it shares the session.
    connections: Vec<(ConnectionId, bool)>,
    asked_ns: u64,
}

/// Tokens at one time.
const OPENINGS_MAX: usize = 1 << 16;
/// Without an answer for so long a token is forgotten, ns.
const PATIENCE_NS: u64 = 10_000_000_000;

impl Openings {
    /// `connection` asks for the session of `token`. `false` if so many are asked for that it has to ask again.
    pub fn ask(&mut self, token: u128, connection: ConnectionId, shared: bool, now_ns: u64) -> bool {
        if self.asked.len() >= OPENINGS_MAX && !self.asked.contains_key(&token) {
            return false;
        }
        let opening = self.asked.entry(token).or_insert(Opening { connections: Vec::new(), asked_ns: now_ns });
        opening.asked_ns = now_ns;
        opening.connections.retain(|(each, _)| *each != connection);
        opening.connections.push((connection, shared));
        true
    }

    /// The session of `token` is open. Who asked for it.
    pub fn opened(&mut self, token: u128) -> Vec<(ConnectionId, bool)> {
        self.asked.remove(&token).map(|opening| opening.connections).unwrap_or_default()
    }

    /// A session is refused of whose token the low half is `token_low`. Who asked for it.
    pub fn refused(&mut self, token_low: u64) -> Vec<ConnectionId> {
        let mut who = Vec::new();
        self.asked.retain(|token, opening| {
            let is_refused = *token as u64 == token_low;
            if is_refused {
                who.extend(opening.connections.iter().map(|(connection, _)| *connection));
            }
            !is_refused
        });
        who
    }

    /// `connection` is gone.
    pub fn forget_from(&mut self, connection: ConnectionId) {
        self.asked.retain(|_, opening| {
            opening.connections.retain(|(each, _)| *each != connection);
            !opening.connections.is_empty()
        });
    }

    /// Forgets what was not answered for long.
    pub fn sweep(&mut self, now_ns: u64) {
        self.asked.retain(|_, opening| now_ns.saturating_sub(opening.asked_ns) < PATIENCE_NS);
    }

    /// Forgets everything.
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
            assert!(openings.ask(token, connection, token == 7, 5));
        }
        assert_eq!(openings.opened(7), [(two, true), (one, true)]);
        assert_eq!((openings.opened(7), openings.refused(8)), (vec![], vec![one]));
        openings.forget_from(two);
        assert_eq!(openings.asked.len(), 1);
        openings.sweep(5 + PATIENCE_NS - 1);
        assert_eq!(openings.asked.len(), 1);
        openings.sweep(5 + PATIENCE_NS);
        assert_eq!(openings.asked.len(), 0);
    }

    #[test]
    fn there_are_so_many_and_no_more() {
        let mut openings = Openings::default();
        assert!((0..OPENINGS_MAX as u128).all(|token| openings.ask(token, ConnectionId(1), false, 0)));
        assert!(!openings.ask(u128::MAX, ConnectionId(2), false, 0));
        assert!(openings.ask(3, ConnectionId(2), false, 0), "it is among them");
        openings.sweep(PATIENCE_NS);
        assert!(openings.ask(u128::MAX, ConnectionId(2), false, PATIENCE_NS));
    }
}
