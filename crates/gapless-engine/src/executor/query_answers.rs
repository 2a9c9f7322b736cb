//! Answers of queries: each runs between frames, on the service's thread, and only if its answer has room. Queries of a
//! leader's state run where that is.

use super::outbox::ReplyOutbox;
use super::queries::{QUERIES_WAITING_MAX, Queries, is_gone};
use crate::fold::{Fold, is_description};
use crate::handler_guard::HandlerRefusal;
use crate::outputs::ExecutionOutcome;
use crate::outputs::OUTPUT_LENGTH_MAX;
use crate::pending_query::{POLL_NS_MAX, PendingQuery, QueryPlace, SpeculativeAnswer};
use crate::sender::{DeferredAnswer, DeferredSendKind};
use gapless_agent::monotonic::monotonic_ns;
use gapless_stream::egress::{CheckedPayload, SendResult};
use gapless_stream::messages::QueryMessage;
use gapless_stream::responder::{QUERY_REFUSAL_LENGTH_MAX, refused_query};
use gapless_transport::ConnectionId;
use gapless_wire::control::{Refusal, RefusalCode};
use gapless_wire::{FrameHeader, Kind};

const ANSWERS_MIN: u64 = 16;

impl ReplyOutbox {
    #[cold]
    pub(super) fn take_query(&mut self, fold: &Fold, query: Box<QueryMessage>, now_ns: u64) {
        if !self.queries.enter(&query) {
            // Without room it is dropped: the client has waiting answers to read.
            if !self.is_waiting(query.connection) {
                let detail = QUERIES_WAITING_MAX as u64;
                let text = "as many queries of this connection wait as may, by number or length";
                let refusal = Refusal { code: RefusalCode::Busy, detail, text };
                let mut payload = [0; QUERY_REFUSAL_LENGTH_MAX];
                let (header, length) = refused_query(&query, position(fold), &refusal, &mut payload);
                let _ = self.deliver(query.connection, &header, CheckedPayload::new(&payload[..length]));
            }
            return;
        }
        let pending = Queries::begin(query, now_ns);
        if pending.query.after <= fold.last_sequence() {
            self.queries.ready.push_back(pending);
        } else {
            self.queries.wait(pending);
        }
    }

    /// Answers queries for about [`POLL_NS_MAX`], at least [`ANSWERS_MIN`]; returns the number of answers, and of queries that are left for the
    /// next poll.
    #[cold]
    pub(super) fn answer_queries(&mut self, fold: &mut Fold, now_ns: u64) -> usize {
        self.queries.keep_lineage(fold.service.state_lineage());
        if self.queries.has_lent() {
            self.queries.take_lent(fold.service.take_lent_queries(), now_ns);
        }
        if self.queries.is_idle(fold.last_sequence(), now_ns) {
            return 0;
        }
        let mut queries = std::mem::take(&mut self.queries);
        queries.end_due_waits(fold.last_sequence(), now_ns);
        queries.sweep(now_ns);
        let (begun_ns, before) = (monotonic_ns(), queries.answered);
        let mut buffer = Vec::new();
        let mut is_over = false;
        let is_full = |queries: &Queries, fold: &Fold| fold.service.lends_queries() && !queries.may_lend();
        let mut index = 0;
        while index < queries.blocked.len() {
            let connection = queries.blocked[index].connection;
            let stays = is_over || is_full(&queries, fold) || queries.is_lent_enough(connection);
            let blocked = &mut queries.blocked[index];
            if blocked.queries.is_empty() {
                queries.blocked.swap_remove(index);
            } else if stays || self.is_waiting(connection) {
                index += 1;
            } else if let Some(pending) = blocked.queries.pop_front() {
                let after_ns = self.answer_query(fold, pending, (&mut queries, now_ns), &mut buffer);
                is_over = after_ns - begun_ns > POLL_NS_MAX && queries.answered - before >= ANSWERS_MIN;
            }
        }
        while !is_over && let Some(pending) = queries.ready.pop_front() {
            let connection = pending.query.connection;
            // Answers overtake: blocked queries wait for them.
            let is_blocked = pending.answer.is_none() && queries.is_blocked(connection);
            let has_room = !is_blocked && !self.is_waiting(connection);
            if !has_room && !is_gone(&pending.query) {
                queries.block(pending);
            } else if pending.answer.is_none() && is_full(&queries, fold) {
                queries.ready.push_front(pending);
                break;
            } else {
                let after_ns = self.answer_query(fold, pending, (&mut queries, now_ns), &mut buffer);
                is_over = after_ns - begun_ns > POLL_NS_MAX && queries.answered - before >= ANSWERS_MIN;
            }
        }
        // Queries that wait for room with the owner of the state are no work.
        let left = if is_over { queries.ready.len() } else { 0 };
        let work = (queries.answered - before) as usize + left;
        self.queries = queries;
        work
    }

    /// Answers a query, hands it to the owner of the state, or lets it wait. Returns the time after it.
    fn answer_query(
        &mut self,
        fold: &mut Fold,
        mut pending: PendingQuery,
        (queries, now_ns): (&mut Queries, u64),
        buffer: &mut Vec<u8>,
    ) -> u64 {
        let begun_ns = monotonic_ns();
        if is_gone(&pending.query) {
            queries.ended(&pending.query);
            return begun_ns;
        }
        buffer.clear();
        let (wanted, mut read) = (pending.awaited_sequence(), position(fold));
        let refused = if wanted > fold.last_sequence() {
            Some((RefusalCode::Behind, wanted, "the frame that it waits for is not handled yet".to_owned()))
        } else if let Some(SpeculativeAnswer { sequence, time_ns, bytes, .. }) = pending.answer.take() {
            read = (sequence, time_ns);
            let refused = bytes.map(|bytes| *buffer = bytes).err();
            refusal_of(refused, buffer.len())
        } else {
            let connection = pending.query.connection;
            // A description of the types needs no state.
            let place = match is_description(&pending.query) {
                true => QueryPlace::Here(pending),
                false => fold.service.lend_query(pending, fold.last_sequence),
            };
            match place {
                QueryPlace::Here(owned) => pending = owned,
                QueryPlace::Lent => {
                    queries.lent(connection);
                    return begun_ns;
                }
                QueryPlace::Unreleased(owned, sequence) => {
                    queries.wait_for_release(owned, sequence, now_ns);
                    return begun_ns;
                }
            }
            self.answering.iter().for_each(|counter| counter.set(pending.query.schema.into()));
            let refused = fold.query(&pending.query, buffer).err();
            self.answering.iter().for_each(|counter| counter.set(0));
            refusal_of(refused, buffer.len())
        };
        let query = &*pending.query;
        queries.ended(query);
        queries.answered += 1;
        let after_ns = monotonic_ns();
        queries.handler_ns += after_ns - begun_ns;
        queries.slow.note(after_ns - begun_ns, after_ns, || fold.service.query_name(query.schema));
        match refused {
            None => {
                let (sequence, timestamp_ns) = read;
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
                let (header, length) = refused_query(query, read, &refusal, &mut payload);
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
            refusal_of(Some(HandlerRefusal::TooLong(answer_length)), 0)
        }
        Some(ExecutionOutcome::Done) | None => None,
    }
}
