//! `Queries`: queries from arrival to answer, which wait for a sequence, or for room in their client's ring.

use gapless_stream::messages::QueryMessage;
use gapless_transport::ConnectionId;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Queries of one connection that may wait; more are refused.
pub const QUERIES_WAITING_MAX: usize = 1024;
const WAIT_NS_MAX: u64 = 3_600_000_000_000;
const SWEEP_INTERVAL_NS: u64 = 1_000_000_000;

/// Sequence that a query waits for, and number of its arrival.
type WaitingKey = (u64, u64);

/// Bounded by [`QUERIES_WAITING_MAX`] for each connection.
#[derive(Default)]
pub(super) struct Queries {
    pub ready: VecDeque<Box<QueryMessage>>,
    waiting: BTreeMap<WaitingKey, WaitingQuery>,
    deadlines: BTreeSet<(u64, WaitingKey)>,
    /// Ready, but the client has not read an earlier message: a handler runs only when its answer has room.
    pub blocked: Vec<BlockedQueries>,
    pub counts: FxHashMap<ConnectionId, usize>,
    arrived: u64,
    next_sweep_ns: u64,
    /// Since the start.
    pub answered: u64,
    /// Spent in handlers.
    pub handler_ns: u64,
}

struct WaitingQuery {
    deadline_ns: u64,
    query: Box<QueryMessage>,
}

pub(super) struct BlockedQueries {
    pub connection: ConnectionId,
    pub queries: VecDeque<Box<QueryMessage>>,
}

impl Queries {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Whether none ends its wait, has room again, or may be of a client that is gone.
    pub fn is_idle(&self, handled: u64, now_ns: u64) -> bool {
        let waits_on = |(key, _): (&WaitingKey, &WaitingQuery)| key.0 > handled;
        self.ready.is_empty()
            && self.blocked.is_empty()
            && now_ns < self.next_sweep_ns
            && self.waiting.first_key_value().is_none_or(waits_on)
            && self.deadlines.first().is_none_or(|(deadline_ns, _)| now_ns < *deadline_ns)
    }

    pub fn count(&self) -> usize {
        self.counts.values().sum()
    }

    pub fn next_deadline_ns(&self) -> Option<u64> {
        // A sweep finds the clients that are gone.
        self.deadlines.first().map(|(deadline_ns, _)| (*deadline_ns).min(self.next_sweep_ns))
    }

    pub fn wait(&mut self, query: Box<QueryMessage>, now_ns: u64) {
        self.arrived += 1;
        let key = (query.after, self.arrived);
        let deadline_ns = now_ns.saturating_add(query.wait_ns_max.min(WAIT_NS_MAX));
        self.deadlines.insert((deadline_ns, key));
        self.waiting.insert(key, WaitingQuery { deadline_ns, query });
    }

    fn end_wait(&mut self, key: WaitingKey) -> Option<Box<QueryMessage>> {
        let WaitingQuery { deadline_ns, query } = self.waiting.remove(&key)?;
        self.deadlines.remove(&(deadline_ns, key));
        Some(query)
    }

    /// Ends the waits whose sequence is handled or whose time is over.
    pub fn end_due_waits(&mut self, handled: u64, now_ns: u64) {
        while let Some((key, _)) = self.waiting.first_key_value()
            && key.0 <= handled
        {
            let query = self.end_wait(*key);
            self.ready.extend(query);
        }
        while let Some((deadline_ns, key)) = self.deadlines.first().copied()
            && deadline_ns <= now_ns
        {
            let query = self.end_wait(key);
            self.ready.extend(query);
        }
    }

    pub fn ended(&mut self, connection: ConnectionId) {
        if let Some(count) = self.counts.get_mut(&connection) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&connection);
            }
        }
    }

    /// Drops queries of clients that are gone.
    pub fn sweep(&mut self, now_ns: u64) {
        if now_ns < self.next_sweep_ns {
            return;
        }
        self.next_sweep_ns = now_ns + SWEEP_INTERVAL_NS;
        let gone = self.waiting.iter().filter(|(_, waiting)| is_gone(&waiting.query));
        let gone: Vec<WaitingKey> = gone.map(|(key, _)| *key).collect();
        for key in gone {
            if let Some(query) = self.end_wait(key) {
                self.ended(query.connection);
            }
        }
        let is_left = |blocked: &BlockedQueries| blocked.queries.front().is_none_or(|query| !is_gone(query));
        let (left, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.blocked).into_iter().partition(is_left);
        self.blocked = left;
        for query in gone.into_iter().flat_map(|blocked| blocked.queries) {
            self.ended(query.connection);
        }
    }

    pub fn block(&mut self, query: Box<QueryMessage>) {
        let connection = query.connection;
        match self.blocked.iter_mut().find(|blocked| blocked.connection == connection) {
            Some(blocked) => blocked.queries.push_back(query),
            None => self.blocked.push(BlockedQueries { connection, queries: VecDeque::from([query]) }),
        }
    }

    pub fn is_blocked(&self, connection: ConnectionId) -> bool {
        self.blocked.iter().any(|blocked| blocked.connection == connection)
    }
}

pub(super) fn is_gone(query: &QueryMessage) -> bool {
    query.publisher.strong_count() == 0
}
