//! `Queries`: queries from arrival to answer, which wait for a sequence, for the owner of the state, or for room in their
//! client's ring.

use crate::outputs::OUTPUT_LENGTH_MAX;
use crate::pending_query::{PendingQuery, SlowQueryLog};
use gapless_stream::messages::QueryMessage;
use gapless_transport::ConnectionId;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Queries of one connection that may wait; more are refused.
pub const QUERIES_WAITING_MAX: usize = 1024;
/// Bytes of the waiting queries of one connection; a longer query waits alone.
pub const QUERY_BYTES_MAX: usize = 4 << 20;
/// Queries of all connections that the owner of a leader's state has, or whose answers wait for the release.
const LENT_MAX: usize = 256;
/// Of one connection whose client reads slowly: a ring takes few answers, and those without room are made again.
const BLOCKED_LENT_MAX: usize = 8;
/// Bytes of the answers that wait for the release; a query that is lent counts as its longest answer.
const HELD_BYTES_MAX: usize = 16 << 20;
/// Longest wait of an answer for the release, at least: a client that waits for nothing gets its answer, too.
const RELEASE_WAIT_NS_MIN: u64 = 1_000_000_000;
const WAIT_NS_MAX: u64 = 3_600_000_000_000;
const SWEEP_INTERVAL_NS: u64 = 1_000_000_000;

/// Sequence that a query waits for, and number of its arrival.
type WaitingKey = (u64, u64);

/// Bounded by [`QUERIES_WAITING_MAX`] and [`QUERY_BYTES_MAX`] for each connection.
#[derive(Default)]
pub(super) struct Queries {
    pub ready: VecDeque<PendingQuery>,
    waiting: BTreeMap<WaitingKey, PendingQuery>,
    deadlines: BTreeSet<(u64, WaitingKey)>,
    /// Ready, but the client has not read an earlier message: a handler runs only when its answer has room.
    pub blocked: Vec<BlockedQueries>,
    loads: FxHashMap<ConnectionId, QueryLoad>,
    arrived: u64,
    next_sweep_ns: u64,
    /// With the owner of the state.
    lent: usize,
    /// Answers that wait for the release.
    held: usize,
    held_bytes: usize,
    /// Of the state that the answers were made from.
    lineage: u64,
    /// Since the start.
    pub answered: u64,
    /// Spent in handlers, on this thread.
    pub handler_ns: u64,
    pub slow: SlowQueryLog,
    /// Spent in handlers, on the thread that owns a leader's state.
    pub lent_ns: u64,
}

/// Queries of one connection.
#[derive(Default)]
struct QueryLoad {
    queries: usize,
    bytes: usize,
    /// With the owner of the state.
    lent: usize,
}

pub(super) struct BlockedQueries {
    pub connection: ConnectionId,
    pub queries: VecDeque<PendingQuery>,
}

impl Queries {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    /// Whether none ends its wait, has room again, or may be of a client that is gone.
    pub fn is_idle(&self, handled: u64, now_ns: u64) -> bool {
        let waits_on = |(key, _): (&WaitingKey, &PendingQuery)| key.0 > handled;
        (self.ready.is_empty() || !self.may_lend())
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

    pub fn begin(query: Box<QueryMessage>, now_ns: u64) -> PendingQuery {
        let deadline_ns = now_ns.saturating_add(query.wait_ns_max.min(WAIT_NS_MAX));
        PendingQuery { query, deadline_ns, release_awaited: 0, answer: None }
    }

    pub fn wait(&mut self, pending: PendingQuery) {
        self.arrived += 1;
        let key = (pending.awaited_sequence(), self.arrived);
        if let Some(answer) = &pending.answer {
            self.held += 1;
            self.held_bytes += answer.length();
        }
        self.deadlines.insert((pending.deadline_ns, key));
        self.waiting.insert(key, pending);
    }

    /// Waits for the release of a frame that the state of a deposed leader contains.
    pub fn wait_for_release(&mut self, pending: PendingQuery, sequence: u64, now_ns: u64) {
        let deadline_ns = pending.deadline_ns.max(now_ns.saturating_add(RELEASE_WAIT_NS_MIN));
        self.wait(PendingQuery { deadline_ns, release_awaited: sequence, ..pending });
    }

    fn end_wait(&mut self, key: WaitingKey) -> Option<PendingQuery> {
        let pending = self.waiting.remove(&key)?;
        self.deadlines.remove(&(pending.deadline_ns, key));
        if let Some(answer) = &pending.answer {
            self.held -= 1;
            self.held_bytes -= answer.length();
        }
        Some(pending)
    }

    /// Whether the owner of a leader's state may get one more.
    pub const fn may_lend(&self) -> bool {
        let bytes = self.held_bytes + (self.lent + 1) * OUTPUT_LENGTH_MAX;
        self.lent + self.held < LENT_MAX && bytes <= HELD_BYTES_MAX
    }

    pub fn lent(&mut self, connection: ConnectionId) {
        self.lent += 1;
        self.loads.entry(connection).or_default().lent += 1;
    }

    /// Whether the owner of the state has as many queries as it may of a connection without room.
    pub fn is_lent_enough(&self, connection: ConnectionId) -> bool {
        self.loads.get(&connection).is_some_and(|load| load.lent >= BLOCKED_LENT_MAX)
    }

    pub const fn has_lent(&self) -> bool {
        self.lent > 0
    }

    /// Takes back queries that were lent. Their answers wait for the release.
    pub fn take_lent(&mut self, taken: Vec<PendingQuery>, now_ns: u64) {
        for mut pending in taken {
            self.lent -= 1;
            if let Some(load) = self.loads.get_mut(&pending.query.connection) {
                load.lent -= 1;
            }
            self.lent_ns += pending.answer.as_ref().map_or(0, |answer| answer.handler_ns);
            pending.answer = pending.answer.filter(|answer| answer.lineage == self.lineage);
            if pending.answer.is_some() {
                pending.deadline_ns = pending.deadline_ns.max(now_ns.saturating_add(RELEASE_WAIT_NS_MIN));
                self.wait(pending);
            } else {
                self.ready.push_back(pending);
            }
        }
    }

    /// Asks again where the answer was made from another lineage of the state, or waits for a frame of that.
    pub fn keep_lineage(&mut self, lineage: u64) {
        if self.lineage == lineage {
            return;
        }
        self.lineage = lineage;
        let is_void = |pending: &PendingQuery| match &pending.answer {
            Some(answer) => answer.lineage != lineage,
            None => pending.release_awaited > 0,
        };
        let void: Vec<_> = self.waiting.iter().filter(|(_, pending)| is_void(pending)).map(|(key, _)| *key).collect();
        for key in void {
            if let Some(pending) = self.end_wait(key) {
                self.ready.push_back(PendingQuery { release_awaited: 0, answer: None, ..pending });
            }
        }
    }

    /// Ends the waits whose sequence is handled or whose time is over.
    pub fn end_due_waits(&mut self, handled: u64, now_ns: u64) {
        let mut first = Vec::new();
        while let Some((key, _)) = self.waiting.first_key_value()
            && key.0 <= handled
            && let Some(pending) = self.end_wait(*key)
        {
            match pending.answer {
                Some(_) => first.push(pending),
                None => self.ready.push_back(pending),
            }
        }
        while let Some((deadline_ns, key)) = self.deadlines.first().copied()
            && deadline_ns <= now_ns
        {
            first.extend(self.end_wait(key));
        }
        // In front of queries that wait until one more can be lent.
        first.into_iter().rev().for_each(|pending| self.ready.push_front(pending));
    }

    /// Counts a query of its connection, unless there are too many.
    pub fn enter(&mut self, query: &QueryMessage) -> bool {
        let load = self.loads.entry(query.connection).or_default();
        let bytes = load.bytes + query.payload.len();
        let has_room = load.queries < QUERIES_WAITING_MAX && (load.queries == 0 || bytes <= QUERY_BYTES_MAX);
        if has_room {
            *load = QueryLoad { queries: load.queries + 1, bytes, lent: load.lent };
        }
        has_room
    }

    pub fn ended(&mut self, query: &QueryMessage) {
        let connection = query.connection;
        if let Some(load) = self.loads.get_mut(&connection) {
            load.queries -= 1;
            load.bytes -= query.payload.len();
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
            if let Some(pending) = self.end_wait(key) {
                self.ended(&pending.query);
            }
        }
        let (gone, ready) = std::mem::take(&mut self.ready).into_iter().partition(|pending| is_gone(&pending.query));
        self.ready = ready;
        let is_left = |blocked: &BlockedQueries| blocked.queries.front().is_none_or(|pending| !is_gone(&pending.query));
        let (left, without_room): (Vec<_>, Vec<_>) = std::mem::take(&mut self.blocked).into_iter().partition(is_left);
        self.blocked = left;
        let gone: VecDeque<PendingQuery> = gone;
        for pending in gone.into_iter().chain(without_room.into_iter().flat_map(|blocked| blocked.queries)) {
            self.ended(&pending.query);
        }
    }

    /// Keeps a query until its client reads. An answer is dropped: it would be kept for a client that may never read.
    pub fn block(&mut self, pending: PendingQuery) {
        let connection = pending.query.connection;
        let pending = PendingQuery { release_awaited: 0, answer: None, ..pending };
        match self.blocked.iter_mut().find(|blocked| blocked.connection == connection) {
            Some(blocked) => blocked.queries.push_back(pending),
            None => self.blocked.push(BlockedQueries { connection, queries: VecDeque::from([pending]) }),
        }
    }

    pub fn is_blocked(&self, connection: ConnectionId) -> bool {
        self.blocked.iter().any(|blocked| blocked.connection == connection)
    }
}

pub(super) fn is_gone(query: &QueryMessage) -> bool {
    query.publisher.strong_count() == 0
}
