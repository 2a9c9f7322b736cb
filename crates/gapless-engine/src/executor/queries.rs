//! `Queries`: queries from arrival to answer. They run between frames, and wait for a sequence, or for room in their
//! client's ring.

use super::POLL_NS_MAX;
use super::outbox::ReplyOutbox;
use crate::context::OUTPUT_LENGTH_MAX;
use crate::fold::Fold;
use crate::handler_guard::HandlerRefusal;
use crate::outputs::ExecutionOutcome;
use crate::sender::{DeferredAnswer, DeferredSendKind};
use gapless_agent::monotonic::monotonic_ns;
use gapless_stream::egress::{CheckedPayload, SendResult};
use gapless_stream::messages::QueryMessage;
use gapless_stream::responder::{QUERY_REFUSAL_LENGTH_MAX, refused_query};
use gapless_transport::ConnectionId;
use gapless_wire::control::{Refusal, RefusalCode};
use gapless_wire::{FrameHeader, Kind};
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
    ready: VecDeque<Box<QueryMessage>>,
    waiting: BTreeMap<WaitingKey, WaitingQuery>,
    deadlines: BTreeSet<(u64, WaitingKey)>,
    /// Ready, but the client has not read an earlier message: a handler runs only when its answer has room.
    blocked: Vec<BlockedQueries>,
    counts: FxHashMap<ConnectionId, usize>,
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

struct BlockedQueries {
    connection: ConnectionId,
    queries: VecDeque<Box<QueryMessage>>,
}

impl Queries {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    pub fn count(&self) -> usize {
        self.counts.values().sum()
    }

    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline_ns, _)| *deadline_ns)
    }

    fn wait(&mut self, query: Box<QueryMessage>, now_ns: u64) {
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
    fn end_due_waits(&mut self, handled: u64, now_ns: u64) {
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

    fn ended(&mut self, connection: ConnectionId) {
        if let Some(count) = self.counts.get_mut(&connection) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&connection);
            }
        }
    }

    /// Drops queries of clients that are gone.
    fn sweep(&mut self, now_ns: u64) {
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

    fn block(&mut self, query: Box<QueryMessage>) {
        let connection = query.connection;
        match self.blocked.iter_mut().find(|blocked| blocked.connection == connection) {
            Some(blocked) => blocked.queries.push_back(query),
            None => self.blocked.push(BlockedQueries { connection, queries: VecDeque::from([query]) }),
        }
    }

    fn is_blocked(&self, connection: ConnectionId) -> bool {
        self.blocked.iter().any(|blocked| blocked.connection == connection)
    }
}

fn is_gone(query: &QueryMessage) -> bool {
    query.publisher.strong_count() == 0
}

impl ReplyOutbox {
    #[cold]
    pub(super) fn take_query(&mut self, fold: &Fold, query: Box<QueryMessage>, now_ns: u64) {
        let count = self.queries.counts.entry(query.connection).or_default();
        if *count == QUERIES_WAITING_MAX {
            // Without room it is dropped: the client has waiting answers to read.
            if !self.is_waiting(query.connection) {
                let detail = QUERIES_WAITING_MAX as u64;
                let text = "as many queries of this connection wait as may";
                let refusal = Refusal { code: RefusalCode::Busy, detail, text };
                let mut payload = [0; QUERY_REFUSAL_LENGTH_MAX];
                let (header, length) = refused_query(&query, position(fold), &refusal, &mut payload);
                let _ = self.deliver(query.connection, &header, CheckedPayload::new(&payload[..length]));
            }
            return;
        }
        *count += 1;
        if query.after <= fold.last_sequence() {
            self.queries.ready.push_back(query);
        } else {
            self.queries.wait(query, now_ns);
        }
    }

    /// Answers queries for about [`POLL_NS_MAX`]; returns the number of answers, and of queries that are left for the
    /// next poll.
    #[cold]
    pub(super) fn answer_queries(&mut self, fold: &Fold, now_ns: u64) -> usize {
        let mut queries = std::mem::take(&mut self.queries);
        queries.end_due_waits(fold.last_sequence(), now_ns);
        queries.sweep(now_ns);
        let (begun_ns, before) = (monotonic_ns(), queries.answered);
        let mut buffer = Vec::new();
        let mut is_over = false;
        let mut index = 0;
        while index < queries.blocked.len() {
            let blocked = &mut queries.blocked[index];
            if blocked.queries.is_empty() {
                queries.blocked.swap_remove(index);
            } else if is_over || self.is_waiting(blocked.connection) {
                index += 1;
            } else if let Some(query) = blocked.queries.pop_front() {
                is_over = self.answer_query(fold, &query, &mut queries, &mut buffer) - begun_ns > POLL_NS_MAX;
            }
        }
        while !is_over && let Some(query) = queries.ready.pop_front() {
            let is_full = queries.is_blocked(query.connection) || self.is_waiting(query.connection);
            if is_full && !is_gone(&query) {
                queries.block(query);
            } else {
                is_over = self.answer_query(fold, &query, &mut queries, &mut buffer) - begun_ns > POLL_NS_MAX;
            }
        }
        let work = (queries.answered - before) as usize + queries.ready.len();
        self.queries = queries;
        work
    }

    /// Returns the time after it.
    fn answer_query(&mut self, fold: &Fold, query: &QueryMessage, queries: &mut Queries, buffer: &mut Vec<u8>) -> u64 {
        queries.ended(query.connection);
        let begun_ns = monotonic_ns();
        if is_gone(query) {
            return begun_ns;
        }
        queries.answered += 1;
        buffer.clear();
        let refused = if query.after > fold.last_sequence() {
            Some((RefusalCode::Behind, query.after, "the frame that it waits for is not handled yet".to_owned()))
        } else {
            refusal_of(fold.query(query.schema, query.encoding, &query.payload, buffer).err(), buffer.len())
        };
        let after_ns = monotonic_ns();
        queries.handler_ns += after_ns - begun_ns;
        match refused {
            None => {
                let (sequence, timestamp_ns) = position(fold);
                let header = FrameHeader {
                    kind: Kind::Answer,
                    flags: query.encoding.flags(),
                    sequence,
                    timestamp_ns,
                    session_seq: query.number,
                    schema: query.schema,
                    ..FrameHeader::default()
                };
                self.send_answer(query.connection, &header, buffer);
            }
            Some((code, detail, text)) => {
                let mut payload = [0; QUERY_REFUSAL_LENGTH_MAX];
                let refusal = Refusal { code, detail, text: &text };
                let (header, length) = refused_query(query, position(fold), &refusal, &mut payload);
                self.send_answer(query.connection, &header, &payload[..length]);
            }
        }
        after_ns
    }

    fn send_answer(&mut self, connection: ConnectionId, header: &FrameHeader, payload: &[u8]) {
        if self.deliver(connection, header, CheckedPayload::new(payload)) == SendResult::RingFull {
            let answer = DeferredAnswer { header: *header, payload: payload.to_vec() };
            self.defer(connection, 0, DeferredSendKind::Answer(Box::new(answer)));
        }
    }
}

const fn position(fold: &Fold) -> (u64, u64) {
    (fold.last_sequence(), fold.last_timestamp_ns())
}

fn refusal_of(refused: Option<HandlerRefusal>, answer_length: usize) -> Option<(RefusalCode, u64, String)> {
    match refused.map(ExecutionOutcome::from) {
        Some(ExecutionOutcome::Refused { code, detail, text, .. }) => Some((code, detail, text)),
        Some(ExecutionOutcome::Done) | None if answer_length > OUTPUT_LENGTH_MAX => {
            let text = format!("an answer of {answer_length} bytes; {OUTPUT_LENGTH_MAX} are the most");
            Some((RefusalCode::ReplyTooLong, answer_length as u64, text))
        }
        Some(ExecutionOutcome::Done) | None => None,
    }
}
