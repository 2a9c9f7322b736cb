//! Answers of queries: each runs between frames, on the service's thread, and only if its answer has room.

use super::POLL_NS_MAX;
use super::outbox::ReplyOutbox;
use super::queries::{QUERIES_WAITING_MAX, Queries, is_gone};
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
        if query.after <= fold.last_sequence() {
            self.queries.ready.push_back(query);
        } else {
            self.queries.wait(query, now_ns);
        }
    }

    /// Answers queries for about [`POLL_NS_MAX`], at least [`ANSWERS_MIN`]; returns the number of answers, and of queries that are left for the
    /// next poll.
    #[cold]
    pub(super) fn answer_queries(&mut self, fold: &Fold, now_ns: u64) -> usize {
        if self.queries.is_idle(fold.last_sequence(), now_ns) {
            return 0;
        }
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
                let after_ns = self.answer_query(fold, &query, &mut queries, &mut buffer);
                is_over = after_ns - begun_ns > POLL_NS_MAX && queries.answered - before >= ANSWERS_MIN;
            }
        }
        while !is_over && let Some(query) = queries.ready.pop_front() {
            let is_full = queries.is_blocked(query.connection) || self.is_waiting(query.connection);
            if is_full && !is_gone(&query) {
                queries.block(query);
            } else {
                let after_ns = self.answer_query(fold, &query, &mut queries, &mut buffer);
                is_over = after_ns - begun_ns > POLL_NS_MAX && queries.answered - before >= ANSWERS_MIN;
            }
        }
        let work = (queries.answered - before) as usize + queries.ready.len();
        self.queries = queries;
        work
    }

    /// Returns the time after it.
    fn answer_query(&mut self, fold: &Fold, query: &QueryMessage, queries: &mut Queries, buffer: &mut Vec<u8>) -> u64 {
        queries.ended(query);
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
