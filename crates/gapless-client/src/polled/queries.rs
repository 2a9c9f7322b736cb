//! Queries: typed reads of the service's state. They do not enter the stream, need no session, and change nothing.

use super::typed_messages::answer;
use super::waiting::{CallWaits, RESEND_INTERVAL, TimeLimit};
use super::{MessageType, PolledClient, append_all};
use crate::ClientError;
use crate::error::QueryError;
use gapless_log::LogError;
use gapless_message::Request;
use gapless_wire::control::{Refusal, RefusalCode};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use std::collections::BTreeMap;
use std::time::Duration;

/// Queries of a client without a taken answer; more are refused.
pub const QUERIES_IN_FLIGHT_MAX: usize = 1024;

#[derive(Default)]
pub(super) struct QueriesInFlight {
    last_number: u64,
    by_number: BTreeMap<u64, QueryInFlight>,
    /// Answers have arrived since it was last asked.
    has_news: bool,
    /// First one that the new connection lacks.
    resend_from: Option<u64>,
}

struct QueryInFlight {
    /// Padded, for the next connection.
    frame: Vec<u8>,
    /// Sequence that the caller asked for; 0 for none.
    after: u64,
    /// The service has released the awaited frame, so that it answers at once.
    is_owed: bool,
    answer: Option<QueryAnswer>,
}

/// An answer without the types of its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueryAnswer {
    sequence: u64,
    message: MessageType,
    kind: AnswerKind,
    payload: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerKind {
    Answer,
    Refusal,
    /// None: the awaited sequence belongs to an earlier incarnation of the stream.
    OtherIncarnation,
}

impl QueriesInFlight {
    #[cold]
    pub fn answered(&mut self, frame: &Frame<'_>, payload: &[u8]) {
        // The answer of a forgotten query, or a second one after a reconnection, is ignored.
        let Some(query) = self.by_number.get_mut(&frame.session_seq()) else { return };
        query.answer.get_or_insert_with(|| QueryAnswer {
            sequence: frame.sequence(),
            message: MessageType { schema: frame.schema(), encoding: frame.encoding() },
            kind: if frame.flags() & REFUSED_FLAG != 0 { AnswerKind::Refusal } else { AnswerKind::Answer },
            payload: payload.to_vec(),
        });
        query.frame = Vec::new();
        self.has_news = true;
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// In another incarnation of the stream, sequences of the former one mean nothing.
    pub fn begin_resending(&mut self, is_other_incarnation: bool) {
        let unanswered = self.by_number.values_mut().filter(|query| query.answer.is_none());
        for query in unanswered.filter(|_| is_other_incarnation) {
            self.has_news |= query.move_to_other_incarnation();
        }
        self.resend_from = self.by_number.first_key_value().map(|(number, _)| *number);
    }

    #[inline]
    pub const fn are_resent(&self) -> bool {
        self.resend_from.is_some()
    }

    #[inline]
    pub fn are_owed(&self) -> bool {
        !self.by_number.is_empty() && self.by_number.values().any(|query| query.is_owed && query.answer.is_none())
    }
}

impl QueryInFlight {
    /// Reads the new incarnation, or ends if it awaits a sequence of the former one; returns whether it ends.
    fn move_to_other_incarnation(&mut self) -> bool {
        let Ok(frame) = Frame::parse(&self.frame) else { return false };
        let header = FrameHeader { sequence: 0, ..frame.header() };
        if self.after > 0 {
            self.answer = Some(QueryAnswer {
                sequence: self.after,
                message: MessageType { schema: header.schema, encoding: frame.encoding() },
                kind: AnswerKind::OtherIncarnation,
                payload: Vec::new(),
            });
            self.frame = Vec::new();
            return true;
        }
        let payload_length = frame.payload().len();
        FrameWriter::new(&mut self.frame).finish(&header, payload_length);
        self.is_owed = true;
        false
    }
}

impl PolledClient {
    /// Asks the service, whose handler `Handlers::query` reads the state and answers; waits for the answer. The state
    /// contains at least every frame of which this client has seen a reply or a notice: it reads its own writes. Another
    /// client's command may be missing, if it was answered a moment ago; send a command to be sure. Reconnects to a
    /// service that is restarted meanwhile, and asks again.
    ///
    /// Other messages that arrive meanwhile are delivered by the next [`PolledClient::poll`], as by
    /// [`PolledClient::call`].
    ///
    /// # Errors
    /// [`QueryError::Mismatch`], for which the client asks the service for its types, up to another second;
    /// [`QueryError::Behind`], [`QueryError::Unhandled`], [`QueryError::Failed`]; [`QueryError::Busy`] with [`QUERIES_IN_FLIGHT_MAX`] queries in flight; [`ClientError::TimedOut`] without an answer
    /// within `timeout`; [`ClientError::TooLong`]: a query has one frame; [`ClientError::Disconnected`];
    /// [`ClientError::Encode`] and [`ClientError::Decode`].
    pub fn query_request<Q: Request>(
        &mut self,
        query: &Q,
        timeout: Duration,
    ) -> Result<Result<Q::Reply, Q::Refusal>, QueryError> {
        self.query_request_after(query, 0, timeout)
    }

    /// Like [`PolledClient::query_request`], of a state that contains at least the frame `sequence`, which the service
    /// waits for.
    ///
    /// # Errors
    /// As for [`PolledClient::query_request`].
    pub fn query_request_after<Q: Request>(
        &mut self,
        query: &Q,
        sequence: u64,
        timeout: Duration,
    ) -> Result<Result<Q::Reply, Q::Refusal>, QueryError> {
        match self.run_query(query, sequence, timeout) {
            Err(error @ QueryError::Unhandled { .. }) => Err(self.explained_query::<Q>(error, timeout)),
            answered => answered,
        }
    }

    pub(super) fn run_query<Q: Request>(
        &mut self,
        query: &Q,
        sequence: u64,
        timeout: Duration,
    ) -> Result<Result<Q::Reply, Q::Refusal>, QueryError> {
        let begun = self.now();
        let limit = TimeLimit::new(begun, timeout);
        // The service's own answer, that it is behind, says more than a timeout.
        let wait_max = timeout - timeout / 8;
        let mut waits = CallWaits::since(begun);
        let number = loop {
            match self.send_query(query, sequence, wait_max) {
                Err(QueryError::Client(ClientError::Log(LogError::Full { .. }))) if self.now() < limit.end => {}
                sent => break sent?,
            }
            self.await_reply(None, None, limit.end.min(self.now() + RESEND_INTERVAL), limit)?;
            waits.log_if_due(self, "room for a query in the ring");
        };
        let answer = self.await_answer::<Q>(number, limit, &mut waits);
        self.forget_query(number);
        answer
    }

    fn await_answer<Q: Request>(
        &mut self,
        number: u64,
        limit: TimeLimit,
        waits: &mut CallWaits,
    ) -> Result<Result<Q::Reply, Q::Refusal>, QueryError> {
        loop {
            if let Some(answer) = self.take_answer::<Q>(number) {
                return answer;
            }
            if self.now() >= limit.end {
                return Err(self.timed_out(&format!("the query {}", Q::TYPE_NAME), limit.given).into());
            }
            self.await_reply(None, None, waits.until(limit.end), limit)?;
            waits.log_if_due(self, "an answer");
        }
    }

    /// Sends a query without waiting. Returns its number for [`PolledClient::take_answer`]. The service answers from a
    /// state that contains the frame `after`, and every frame that this client has seen; it waits for them for at most
    /// `wait_max`. After a reconnection the query is sent again.
    ///
    /// # Errors
    /// [`QueryError::Busy`]; [`LogError::Full`]: poll and retry; [`ClientError::TooLong`]; [`ClientError::Encode`].
    pub fn send_query<Q: Request>(&mut self, query: &Q, after: u64, wait_max: Duration) -> Result<u64, QueryError> {
        if self.queries.by_number.len() >= QUERIES_IN_FLIGHT_MAX {
            return Err(QueryError::Busy);
        }
        let payload = self.encode_request(query)?;
        let sent = self.send_query_payload(MessageType::typed::<Q>(), &payload, after, wait_max);
        self.request = payload;
        Ok(sent?)
    }

    pub(crate) fn send_query_payload(
        &mut self,
        message: MessageType,
        payload: &[u8],
        after: u64,
        wait_max: Duration,
    ) -> Result<u64, ClientError> {
        let (length_bytes, limit_bytes) = (payload.len(), self.link.welcome.frame_length_max as usize - HEADER_LENGTH);
        if length_bytes > limit_bytes {
            return Err(ClientError::TooLong { length_bytes, limit_bytes });
        }
        let number = self.queries.last_number + 1;
        let header = FrameHeader {
            kind: Kind::Query,
            flags: message.encoding.flags(),
            sequence: after.max(self.seen.sequence),
            timestamp_ns: u64::try_from(wait_max.as_nanos()).unwrap_or(u64::MAX),
            session_seq: number,
            schema: message.schema,
            ..FrameHeader::default()
        };
        let mut frame = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
        let mut writer = FrameWriter::new(&mut frame);
        writer.payload_mut()[..payload.len()].copy_from_slice(payload);
        writer.finish(&header, payload.len());
        append_all(&mut self.link, &frame)?;
        self.flush();
        let is_owed = after <= self.seen.sequence;
        self.queries.by_number.insert(number, QueryInFlight { frame, after, is_owed, answer: None });
        self.queries.last_number = number;
        Ok(number)
    }

    /// Takes the answer of a query sent by [`PolledClient::send_query`], once a poll has received it; `None` until then.
    ///
    /// # Errors
    /// [`QueryError::Behind`], [`QueryError::Unhandled`], [`QueryError::Failed`], [`QueryError::Busy`];
    /// [`ClientError::Option`]: no query of this number is in flight; [`ClientError::Decode`], for an answer of another
    /// type.
    #[allow(clippy::type_complexity, reason = "an answer, an error, or not yet")]
    pub fn take_answer<Q: Request>(&mut self, number: u64) -> Option<Result<Result<Q::Reply, Q::Refusal>, QueryError>> {
        let Some(query) = self.queries.by_number.get_mut(&number) else {
            let reason = format!("no query {number} is in flight: its answer was taken, or it was never sent");
            return Some(Err(ClientError::Option { option: "number", reason }.into()));
        };
        let found = query.answer.take()?;
        self.queries.by_number.remove(&number);
        Some(found.result::<Q>())
    }

    pub(crate) fn take_raw_answer(&mut self, number: u64) -> Option<QueryAnswer> {
        let answer = self.queries.by_number.get_mut(&number)?.answer.take()?;
        self.queries.by_number.remove(&number);
        Some(answer)
    }

    /// Whether answers have arrived since the last call.
    pub(crate) fn has_new_answers(&mut self) -> bool {
        self.queries.take_news()
    }

    /// Ignores the answer of a query, whose place becomes free.
    pub fn forget_query(&mut self, number: u64) {
        self.queries.by_number.remove(&number);
    }

    /// Last sequence of which this client has seen a reply, a notice or an answer; 0 before the first.
    #[must_use]
    pub const fn seen_sequence(&self) -> u64 {
        self.seen.sequence
    }

    #[cold]
    pub(super) fn resend_queries(&mut self) -> Result<(), ClientError> {
        let Self { queries, link, .. } = self;
        let from = queries.resend_from.take().unwrap_or_default();
        for (number, query) in queries.by_number.range(from..).filter(|(_, query)| query.answer.is_none()) {
            match append_all(link, &query.frame) {
                Ok(()) => {}
                Err(ClientError::Log(LogError::Full { .. })) => {
                    queries.resend_from = Some(*number);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        self.flush();
        Ok(())
    }
}

impl QueryAnswer {
    pub(crate) fn is_unhandled(&self) -> bool {
        self.kind == AnswerKind::Refusal && matches!(self.refused(), QueryError::Unhandled { .. })
    }

    pub(crate) fn result<Q: Request>(&self) -> Result<Result<Q::Reply, Q::Refusal>, QueryError> {
        match self.kind {
            AnswerKind::Answer => self.decode::<Q>(),
            AnswerKind::Refusal => Err(self.refused()),
            AnswerKind::OtherIncarnation => {
                let sequence = self.sequence;
                let reason = format!(
                    "the stream was restored or restarted, and sequence {sequence} belongs to its former incarnation; \
                     ask without it"
                );
                Err(QueryError::Unavailable { reason })
            }
        }
    }

    fn refused(&self) -> QueryError {
        let Some(Refusal { code, detail, text }) = Refusal::from_bytes(&self.payload) else {
            return ClientError::Protocol { what: "a malformed refusal of a query".to_owned() }.into();
        };
        match code {
            RefusalCode::Behind => QueryError::Behind { handled: self.sequence, wanted: detail },
            RefusalCode::Busy => QueryError::Busy,
            RefusalCode::Unhandled | RefusalCode::Malformed => QueryError::Unhandled { reason: text.to_owned() },
            _ => QueryError::Failed { reason: text.to_owned() },
        }
    }

    fn decode<Q: Request>(&self) -> Result<Result<Q::Reply, Q::Refusal>, QueryError> {
        answer::<Q>(self.message, self.sequence, &self.payload).map_err(|error| match error {
            ClientError::ReplyLost { reply, .. } => {
                QueryError::Unhandled { reason: format!("its {reply} has no form in this program's version") }
            }
            error => error.into(),
        })
    }
}
