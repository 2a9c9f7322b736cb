//! `ReplyOutbox`: outputs of a live fold on their way to the publishers and the sequencer.

use super::ReplyDelivery;
use super::queries::{QUERIES_WAITING_MAX, Queries};
use crate::dead_letters::{DeadLetter, DeadLetters};
use crate::fold::{Fold, Sink};
use crate::output_record::OutputRecord;
use crate::sender::{DeferredSend, DeferredSendKind, UndeliveredMessage};
use crate::sessions::{SessionEntry, StoredNotice, StoredReply};
use gapless_agent::fault::crash_point;
use gapless_agent::{Counter, Waker};
use gapless_stream::egress::{CheckedPayload, SendResult};
use gapless_stream::messages::{ResponderMessage, SequencerRequest};
use gapless_stream::responder::{NOT_LEADER_LENGTH_MAX, not_leader};
use gapless_transport::ConnectionId;
use gapless_transport::mailbox::Mailbox;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpened};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{FrameHeader, Kind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};

const COMPACTED_FROM: usize = 1 << 16;

/// Messages for a publisher whose ring is full. Never dropped while of use: no client would ask for them. Bounded by
/// the windows and unacknowledged notices of the open sessions.
pub(super) struct DeferredQueue {
    connection: ConnectionId,
    pub(super) messages: VecDeque<DeferredSend>,
    /// Number of messages that triggers the next compaction.
    compacted_from: usize,
}

/// The answer states the stream's last sequence, and waits until that is released.
pub(super) struct ReopenedSession {
    connection: ConnectionId,
    next_session_seq: u64,
    notices_seen: u64,
    last_sequence: u64,
}

pub(super) struct ReplyOutbox {
    pub(super) delivery: ReplyDelivery,
    pub(super) deferred: Vec<DeferredQueue>,
    pub(super) attached_early: FxHashMap<u64, ConnectionId>,
    pub(super) reopened: BTreeMap<u64, ReopenedSession>,
    pub(super) sequencer: Mailbox<SequencerRequest>,
    pub(super) sequencer_waker: Waker,
    pub(super) requests: VecDeque<SequencerRequest>,
    pub(super) dead_letters: DeadLetters,
    pub(super) record: Option<OutputRecord>,
    /// Sequence after which the sequencer receives all timers that are set then; until then it receives none.
    pub(super) timers_from: Option<u64>,
    pub(super) queries: Queries,
    /// Key of the query in progress.
    pub(super) answering: Option<Counter>,
}

impl ReplyOutbox {
    #[inline]
    pub(super) fn refresh(&mut self) -> usize {
        match &mut self.delivery {
            ReplyDelivery::Direct(egress) => egress.refresh(),
            ReplyDelivery::Detached(queue) => {
                while let Some(back) = queue.take_undelivered() {
                    let UndeliveredMessage { connection, message } = back;
                    if !matches!(message.kind, DeferredSendKind::Answer(_))
                        || has_room_for_answer(&self.deferred, connection)
                    {
                        defer(&mut self.deferred, connection, message);
                    }
                }
                0
            }
        }
    }

    #[inline]
    pub(super) fn flush(&mut self) {
        if !self.requests.is_empty() {
            self.flush_requests();
        }
        match &mut self.delivery {
            ReplyDelivery::Direct(egress) => egress.flush(),
            ReplyDelivery::Detached(queue) => queue.flush(),
        }
    }

    fn flush_requests(&mut self) {
        while let Some(request) = self.requests.pop_front() {
            if let Err(request) = self.sequencer.push(request) {
                self.requests.push_front(request);
                break;
            }
        }
        self.sequencer_waker.wake();
    }

    pub(super) fn drop_closed(&mut self) {
        if let ReplyDelivery::Direct(egress) = &mut self.delivery {
            egress.drop_closed();
        }
    }

    #[inline]
    pub(super) fn deliver(
        &mut self,
        connection: ConnectionId,
        header: &FrameHeader,
        payload: CheckedPayload<'_>,
    ) -> SendResult {
        match &mut self.delivery {
            ReplyDelivery::Direct(egress) => egress.deliver(connection, header, payload),
            ReplyDelivery::Detached(queue) => queue.push(connection, header, payload),
        }
    }

    pub(super) fn defer(&mut self, connection: ConnectionId, session: u64, kind: DeferredSendKind) {
        defer(&mut self.deferred, connection, DeferredSend { session, kind });
    }

    #[inline]
    pub(super) fn is_waiting(&self, connection: ConnectionId) -> bool {
        !self.deferred.is_empty() && self.deferred.iter().any(|waiting| waiting.connection == connection)
    }

    #[inline]
    fn send_reply(&mut self, connection: ConnectionId, session: u64, reply: &StoredReply, payload: CheckedPayload<'_>) {
        if self.is_waiting(connection)
            || self.deliver(connection, &reply.header(session), payload) == SendResult::RingFull
        {
            self.defer(connection, session, DeferredSendKind::Reply(reply.session_seq));
        }
    }

    fn send_notice(&mut self, connection: ConnectionId, session: u64, notice: &StoredNotice) -> SendResult {
        let header = FrameHeader {
            kind: Kind::Notice,
            flags: notice.encoding.flags(),
            sequence: notice.sequence,
            timestamp_ns: notice.timestamp_ns,
            session,
            session_seq: notice.number,
            schema: notice.schema,
            ..FrameHeader::default()
        };
        self.deliver(connection, &header, CheckedPayload::new(&notice.payload))
    }

    fn send_notices(&mut self, entry: &SessionEntry, connection: ConnectionId, seen: u64) {
        for notice in entry.notices.iter().filter(|notice| notice.number > seen) {
            if self.send_notice(connection, entry.session, notice) == SendResult::RingFull {
                self.defer(connection, entry.session, DeferredSendKind::Notices);
                return;
            }
        }
    }

    /// The frame's sequence is the session's identifier.
    fn send_opened(&mut self, connection: ConnectionId, entry: &SessionEntry, next_session_seq: u64) {
        if self.is_waiting(connection) || self.try_opened(connection, entry, next_session_seq) == SendResult::RingFull {
            self.defer(connection, entry.session, DeferredSendKind::Opened { next_session_seq });
        }
    }

    fn try_opened(&mut self, connection: ConnectionId, entry: &SessionEntry, next_session_seq: u64) -> SendResult {
        let notices_acknowledged = entry.last_notice - entry.notices.len() as u64;
        let opened = SessionOpened { token: entry.token, next_session_seq, notices_acknowledged };
        let session = entry.session;
        let header = FrameHeader { kind: Kind::Reply, sequence: session, session, ..FrameHeader::default() };
        self.deliver(connection, &header, CheckedPayload::new(&opened.to_bytes()))
    }

    fn send_refusal(&mut self, connection: ConnectionId, session: u64, session_seq: u64, refusal: &Refusal<'_>) {
        let mut payload = [0; 256];
        let length = refusal.write_to(&mut payload);
        let kind = Kind::Reply;
        let header = FrameHeader { kind, flags: REFUSED_FLAG, session, session_seq, ..FrameHeader::default() };
        // Dropped without room: the publisher repeats its command and is refused again.
        let _ = self.deliver(connection, &header, CheckedPayload::new(&payload[..length]));
    }

    #[cold]
    pub(super) fn set_timers(&mut self, fold: &Fold) {
        let requests = fold.timers.iter().map(|(timer, deadline_ns)| SequencerRequest::SetTimer { timer, deadline_ns });
        self.requests.extend(requests);
    }

    #[cold]
    pub(super) fn handle_request(&mut self, fold: &mut Fold, message: ResponderMessage, now_ns: u64) {
        match message {
            ResponderMessage::Attach { session, connection, .. } => match fold.sessions.get_mut(session) {
                Some(entry) => entry.connection = Some(connection),
                None => {
                    self.attached_early.insert(session, connection);
                }
            },
            ResponderMessage::Repeat { session, session_seq, connection, .. } => {
                // An unknown session or command is still on its way; its reply is sent when it is applied.
                let Some(entry) = fold.sessions.get(session) else { return };
                if let Some(reply) = entry.find_reply(session_seq) {
                    self.send_reply(connection, session, reply, CheckedPayload::new(&reply.payload));
                } else if session_seq <= entry.last_session_seq {
                    let (code, detail, text) = match entry.command_over(session_seq) {
                        Some(command) => (RefusalCode::NotACommand, command, "a frame of a longer command"),
                        None => {
                            let text = "its reply is no longer kept: later commands have acknowledged it";
                            (RefusalCode::ReplyExpired, entry.first_stored(), text)
                        }
                    };
                    self.send_refusal(connection, session, session_seq, &Refusal { code, detail, text });
                }
            }
            ResponderMessage::Reopen { session, next_session_seq, notices_seen, last_sequence, connection, .. } => {
                self.attached_early.remove(&session);
                self.reopened
                    .insert(session, ReopenedSession { connection, next_session_seq, notices_seen, last_sequence });
            }
            ResponderMessage::Refuse { connection, session, session_seq, code, detail } => {
                let text = match code {
                    RefusalCode::Gap => "earlier commands of the session are missing",
                    RefusalCode::SessionUnknown => "the stream has no such session; open it again",
                    RefusalCode::Limit => "the stream has as many sessions as it may have",
                    RefusalCode::Throttled => "too many messages at once; they wait",
                    _ => "the frame is malformed",
                };
                self.send_refusal(connection, session, session_seq, &Refusal { code, detail, text });
            }
            ResponderMessage::NotLeader { connection, leader } => {
                let mut payload = [0; NOT_LEADER_LENGTH_MAX];
                let (header, length) = not_leader(&leader, &mut payload);
                // Dropped without room: the publisher asks again.
                let _ = self.deliver(connection, &header, CheckedPayload::new(&payload[..length]));
            }
            ResponderMessage::Deposed => {
                self.attached_early.clear();
                self.reopened.clear();
            }
            ResponderMessage::Leads { last_sequence } => self.timers_from = Some(last_sequence),
            ResponderMessage::Query(query) => self.take_query(fold, query, now_ns),
        }
    }

    /// Waits until everything sequenced before is released and the session is known here.
    #[cold]
    pub(super) fn answer_reopened(&mut self, fold: &mut Fold, released_sequence: u64) {
        let mut all = std::mem::take(&mut self.reopened);
        let last_applied = fold.last_sequence();
        all.retain(|session, reopened| {
            let ReopenedSession { connection, next_session_seq, notices_seen, last_sequence } = *reopened;
            if last_sequence > released_sequence || *session > last_applied {
                return true;
            }
            // The session was closed; the client's retry opens a new one.
            let Some(entry) = fold.sessions.get_mut(*session) else { return false };
            entry.connection = Some(connection);
            let entry = &*entry;
            self.send_opened(connection, entry, next_session_seq);
            self.send_notices(entry, connection, notices_seen);
            false
        });
        self.reopened = all;
    }

    /// No wake-up announces room in a publisher's ring.
    #[inline]
    pub(super) fn has_deferred_messages(&self) -> bool {
        let has_begun = matches!(&self.delivery, ReplyDelivery::Direct(egress) if egress.is_waiting_for_room());
        has_begun || !self.deferred.is_empty()
    }

    #[cold]
    pub(super) fn retry(&mut self, fold: &Fold) -> usize {
        let mut moved = 0;
        let mut all = std::mem::take(&mut self.deferred);
        all.retain_mut(|waiting| {
            while let Some(message) = waiting.messages.front() {
                if self.resend(fold, waiting.connection, message) == SendResult::RingFull {
                    waiting.compact(fold);
                    return true;
                }
                waiting.messages.pop_front();
                moved += 1;
            }
            false
        });
        self.deferred = all;
        moved
    }

    fn resend(&mut self, fold: &Fold, connection: ConnectionId, message: &DeferredSend) -> SendResult {
        let DeferredSend { session, kind } = message;
        let session = *session;
        if let DeferredSendKind::Answer(answer) = kind {
            return self.deliver(connection, &answer.header, CheckedPayload::new(&answer.payload));
        }
        let Some(entry) = fold.sessions.get(session) else { return SendResult::Undeliverable };
        match kind {
            DeferredSendKind::Reply(session_seq) => match entry.find_reply(*session_seq) {
                Some(reply) => self.deliver(connection, &reply.header(session), CheckedPayload::new(&reply.payload)),
                // A reply that is no longer stored was acknowledged by a later command.
                None => SendResult::Undeliverable,
            },
            DeferredSendKind::Notices => {
                // The publisher drops duplicates by their numbers.
                let mut notices = entry.notices.iter();
                let first_rejected =
                    notices.find(|notice| self.send_notice(connection, session, notice) == SendResult::RingFull);
                if first_rejected.is_some() { SendResult::RingFull } else { SendResult::Written }
            }
            DeferredSendKind::Opened { next_session_seq } => self.try_opened(connection, entry, *next_session_seq),
            DeferredSendKind::Answer(_) => unreachable!("it needs no session"),
        }
    }
}

/// A client has no more queries in flight: more answers without room are for a client that never reads, and dropped.
#[cold]
fn has_room_for_answer(deferred: &[DeferredQueue], connection: ConnectionId) -> bool {
    let waiting = deferred.iter().find(|waiting| waiting.connection == connection);
    waiting.is_none_or(|waiting| waiting.messages.len() < QUERIES_WAITING_MAX)
}

#[cold]
fn defer(deferred: &mut Vec<DeferredQueue>, connection: ConnectionId, message: DeferredSend) {
    let number = deferred.iter().position(|waiting| waiting.connection == connection).unwrap_or_else(|| {
        deferred.push(DeferredQueue { connection, messages: VecDeque::new(), compacted_from: COMPACTED_FROM });
        deferred.len() - 1
    });
    deferred[number].messages.push_back(message);
}

impl DeferredQueue {
    /// Removes duplicates, acknowledged replies, and messages for closed sessions: a publisher that sends and never
    /// reads would grow the queue without end.
    fn compact(&mut self, fold: &Fold) {
        if self.messages.len() < self.compacted_from {
            return;
        }
        let mut seen = FxHashSet::default();
        self.messages.retain(|DeferredSend { session, kind }| {
            if matches!(kind, DeferredSendKind::Answer(_)) {
                return true;
            }
            let Some(entry) = fold.sessions.get(*session) else { return false };
            let (is_of_use, number) = match kind {
                DeferredSendKind::Reply(session_seq) => (entry.find_reply(*session_seq).is_some(), *session_seq),
                DeferredSendKind::Notices => (!entry.notices.is_empty(), 0),
                DeferredSendKind::Opened { .. } | DeferredSendKind::Answer(_) => (true, 0),
            };
            is_of_use && seen.insert((*session, std::mem::discriminant(kind), number))
        });
        self.compacted_from = COMPACTED_FROM.max(2 * self.messages.len());
    }
}

impl Sink for ReplyOutbox {
    #[inline]
    fn reply(&mut self, session: &SessionEntry, reply: &StoredReply) {
        crash_point("before_reply");
        // No publisher waits here: the session is connected elsewhere or nowhere, or its owner has read the reply.
        if session.connection.is_none() && self.record.is_none() {
            return;
        }
        let payload = CheckedPayload::new(&reply.payload);
        if let Some(record) = &mut self.record {
            record.hash.reply(reply, payload.crc());
        }
        if let Some(connection) = session.connection {
            self.send_reply(connection, session.session, reply, payload);
        }
    }

    fn opened(&mut self, session: &mut SessionEntry) {
        if let Some(connection) = self.attached_early.remove(&session.session) {
            session.connection = Some(connection);
            self.send_opened(connection, session, 1);
        }
    }

    fn notice(&mut self, session: &SessionEntry) {
        if let Some(record) = &mut self.record {
            record.hash.notice(session);
        }
        let (Some(connection), Some(notice)) = (session.connection, session.notices.back()) else { return };
        if self.is_waiting(connection) || self.send_notice(connection, session.session, notice) == SendResult::RingFull
        {
            self.defer(connection, session.session, DeferredSendKind::Notices);
        }
    }

    fn set_timer(&mut self, timer: u64, deadline_ns: u64) {
        if let Some(record) = &mut self.record {
            record.hash.timer(timer, deadline_ns);
        }
        if self.timers_from.is_none() {
            self.requests.push_back(SequencerRequest::SetTimer { timer, deadline_ns });
        }
    }

    fn cancel_timer(&mut self, timer: u64, deadline_ns: u64) {
        if let Some(record) = &mut self.record {
            record.hash.timer(timer, !deadline_ns);
        }
        if self.timers_from.is_none() {
            self.requests.push_back(SequencerRequest::CancelTimer { timer, deadline_ns });
        }
    }

    fn dead_letter(&mut self, letter: DeadLetter) {
        if let Some(record) = &mut self.record {
            record.hash.dead_letter(&letter);
        }
        self.dead_letters.record(&letter);
    }
}
