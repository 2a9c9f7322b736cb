//! `Queries`: queries from arrival to answer, which wait for a sequence, or for room in their client's ring.

use gapless_stream::messages::QueryMessage;
use gapless_transport::ConnectionId;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Queries of one connection that may wait; more are refused.
pub const QUERIES_WAITING_MAX: usize = 1024;
/// Bytes of the waiting queries of one connection; a longer query waits alone.
pub const QUERY_BYTES_MAX: usize = 4 << 20;
const WAIT_NS_MAX: u64 = 3_600_000_000_000;
const SWEEP_INTERVAL_NS: u64 = 1_000_000_000;

/// Sequence that a query waits for, and number of its arrival.
type WaitingKey = (u64, u64);

/// Bounded by [`QUERIES_WAITING_MAX`] and [`QUERY_BYTES_MAX`] for each connection.
#[derive(Default)]
pub(super) struct Queries {
    pub ready: VecDeque<Box<QueryMessage>>,
    waiting: BTreeMap<WaitingKey, WaitingQuery>,
    deadlines: BTreeSet<(u64, WaitingKey)>,
    /// Ready, but the client has not read an earlier message: a handler runs only when its answer has room.
    pub blocked: Vec<BlockedQueries>,
    loads: FxHashMap<ConnectionId, QueryLoad>,
    arrived: u64,
    next_sweep_ns: u64,
    /// Since the start.
    pub answered: u64,
    /// Spent in handlers.
    pub handler_ns: u64,
}

/// Queries of one connection.
#[derive(Default)]
struct QueryLoad {
    queries: usize,
    bytes: usize,
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
        self.loads.is_empty()
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
        self.loads.values().map(|load| load.queries).sum()
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

    /// Counts a query of its connection, unless there are too many.
    pub fn enter(&mut self, query: &QueryMessage) -> bool {
        let load = self.loads.entry(query.connection).or_default();
        let bytes = load.bytes + query.payload.len();
        let has_room = load.queries < QUERIES_WAITING_MAX && (load.queries == 0 || bytes <= QUERY_BYTES_MAX);
        if has_room {
            *load = QueryLoad { queries: load.queries + 1, bytes };
        }
        has_room
    }

    pub fn ended(&mut self, query: &QueryMessage) {
        let connection = query.connection;
        if let Some(load) = self.loads.get_mut(&connection) {
            *load = QueryLoad { queries: load.queries - 1, bytes: load.bytes - query.payload.len() };
            if load.queries == 0 {
                self.loads.remove(&connection);
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
                self.ended(&query);
            }
        }
        let is_left = |blocked: &BlockedQueries| blocked.queries.front().is_none_or(|query| !is_gone(query));
        let (left, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.blocked).into_iter().partition(is_left);
        self.blocked = left;
        for query in gone.into_iter().flat_map(|blocked| blocked.queries) {
            self.ended(&query);
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
