//! [`Executor`]: the agent that applies released frames, in order, and answers the publishers.

use crate::EngineError;
use crate::dead_letters::{DeadLetter, DeadLetters};
use crate::fold::{Fold, Sink};
use crate::interruption::{HANDLING, INTERRUPTED};
use crate::output_record::OutputRecord;
use crate::recovery::Recovered;
use crate::sender::{Deferred, DeferredKind, SendQueue, Undelivered};
use crate::sessions::{Notice, SessionEntry, StoredReply};
use crate::snapshot_schedule::SnapshotSchedule;
use crate::state_hasher::StateHasher;
use gapless_agent::fault::crash_point;
use gapless_agent::{Agent, AgentError, Counter, CounterView, Counters, Now};
use gapless_log::{GatingCursor, Window};
use gapless_stream::AgentRole;
use gapless_stream::egress::{Delivered, Egress, Payload};
use gapless_stream::messages::{ResponderMessage, SequencerRequest};
use gapless_stream::responder::{NOT_LEADER_LENGTH_MAX, not_leader};
use gapless_transport::ConnectionId;
use gapless_transport::mailbox::Mailbox;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpened};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::frame::peek_session;
use gapless_wire::{Frame, FrameHeader, Kind, aligned_length};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};

/// How replies leave.
pub enum Delivery {
    /// From this agent.
    Direct(Egress),
    /// Through the detached sender.
    Detached(SendQueue),
}

/// A session's open with the token that it has: the answer says what the stream has, and waits until it has that.
struct Reopened {
    connection: ConnectionId,
    next_session_seq: u64,
    notices_seen: u64,
    /// The last sequence that was given before.
    last_sequence: u64,
}

/// Messages kept back for one publisher that does not read, before further ones are left to be asked for.
const DEFERRED_MAX: usize = 1 << 16;
/// A poll that takes longer applies fewer frames the next time: on the same thread a cluster's member has to be heard.
const POLL_NS_MAX: u64 = 5_000_000;

/// Where the live fold's outputs go.
struct Outbox {
    delivery: Delivery,
    /// For publishers whose ring was full, in order.
    deferred: Vec<(ConnectionId, VecDeque<Deferred>)>,
    /// Sessions whose publisher is known before their open was applied.
    attached_early: FxHashMap<u64, ConnectionId>,
    /// Sessions that were opened again and are not answered yet.
    reopened: BTreeMap<u64, Reopened>,
    sequencer: Mailbox<SequencerRequest>,
    /// Requests that the sequencer's mailbox has no room for yet.
    requests: VecDeque<SequencerRequest>,
    dead_letters: DeadLetters,
    record: Option<OutputRecord>,
    /// The sequencer is to be told of all timers as they stand behind this sequence, and of none before.
    timers_from: Option<u64>,
}

/// The agent between released frames and publishers.
pub struct Executor {
    fold: Fold,
    cursor: GatingCursor,
    window: Window,
    stop_at: StopAt,
    outbox: Outbox,
    from_sequencer: Mailbox<ResponderMessage>,
    snapshots: Option<SnapshotSchedule>,
    state_hasher: Option<StateHasher>,
    frames_per_poll_max: usize,
    /// The limit of the next poll; adapted to how long handlers take.
    frames_per_poll: usize,
    /// When the last poll began, if it was full.
    full_since_ns: Option<u64>,
    counters: ExecutorCounters,
    next_sweep_ns: u64,
    closing: bool,
}

/// Where an executor ends at a clean stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAt {
    /// The end of what is appended: it will be released.
    Appended,
    /// The end of what is released: frames that are appended behind it may be cut by a cluster.
    Released,
}

/// What an executor is connected to.
pub struct ExecutorLinks {
    /// Of scope `Released`.
    pub cursor: GatingCursor,
    /// To know how far frames are appended and released.
    pub window: Window,
    pub stop_at: StopAt,
    pub delivery: Delivery,
    pub sequencer: Mailbox<SequencerRequest>,
    pub from_sequencer: Mailbox<ResponderMessage>,
    pub dead_letters: DeadLetters,
    pub snapshots: Option<SnapshotSchedule>,
    pub state_hasher: Option<StateHasher>,
    /// The record of the handlers' outputs.
    pub record: Option<OutputRecord>,
    pub frames_per_poll_max: usize,
    pub counters: ExecutorCounters,
}

/// What the executor counts.
#[derive(Debug)]
pub struct ExecutorCounters {
    /// The last sequence handled.
    pub last_sequence: Counter,
    /// Commands that no handler took, since the start.
    pub dead_letters: Counter,
    /// Messages that wait because their publisher's ring is full.
    pub waiting: Counter,
    /// The frame that is handled now; see [`crate::interruption`].
    pub handling: Counter,
}

impl ExecutorCounters {
    /// Adds them to `counters`, as they stand after `recovered`.
    ///
    /// # Errors
    /// No room, or labels that are taken.
    pub fn add_to(counters: &Counters, recovered: &Recovered) -> Result<Self, gapless_agent::Error> {
        let last_sequence = counters.add("service.last_sequence")?;
        last_sequence.set(recovered.last_sequence);
        let dead_letters = counters.add("service.dead_letters")?;
        counters.add(INTERRUPTED)?.set(recovered.interrupted_sequence);
        let (waiting, handling) = (counters.add("service.messages_waiting")?, counters.add(HANDLING)?);
        Ok(Self { last_sequence, dead_letters, waiting, handling })
    }

    /// The last sequence handled, and the dead letters, for other threads.
    #[must_use]
    pub fn views(&self) -> (CounterView, CounterView) {
        (self.last_sequence.view(), self.dead_letters.view())
    }
}

impl Executor {
    /// An agent that goes on where `fold` stands.
    #[must_use]
    pub fn new(fold: Fold, links: ExecutorLinks) -> Self {
        Self {
            fold,
            cursor: links.cursor,
            window: links.window,
            stop_at: links.stop_at,
            outbox: Outbox {
                delivery: links.delivery,
                deferred: Vec::new(),
                attached_early: FxHashMap::default(),
                reopened: BTreeMap::new(),
                sequencer: links.sequencer,
                requests: VecDeque::new(),
                dead_letters: links.dead_letters,
                record: links.record,
                timers_from: None,
            },
            from_sequencer: links.from_sequencer,
            snapshots: links.snapshots,
            state_hasher: links.state_hasher,
            frames_per_poll_max: links.frames_per_poll_max,
            frames_per_poll: 1,
            full_since_ns: None,
            counters: links.counters,
            next_sweep_ns: 0,
            closing: false,
        }
    }

    /// Whether everything is applied that a clean stop waits for.
    fn is_at_end(&self) -> bool {
        let end = match self.stop_at {
            StopAt::Appended => self.window.appended(),
            StopAt::Released => self.window.released(),
        };
        self.cursor.position() == end
    }

    /// Polls that are full get shorter where handlers take long, and longer again where they do not.
    #[inline]
    fn pace(&mut self, now_ns: u64) {
        let Some(since_ns) = self.full_since_ns.take() else { return };
        self.frames_per_poll = if now_ns.saturating_sub(since_ns) > POLL_NS_MAX {
            (self.frames_per_poll / 2).max(1)
        } else {
            (self.frames_per_poll * 2).min(self.frames_per_poll_max)
        };
    }

    /// Applies released frames in place.
    #[inline]
    fn apply_released(&mut self) -> Result<usize, EngineError> {
        let frames = self.cursor.available()?;
        // Whatever the sequencer said before it published these frames is heard before they are applied.
        while let Some(message) = self.from_sequencer.pop() {
            self.outbox.handle_request(&mut self.fold, message);
        }
        if !self.outbox.reopened.is_empty() {
            self.outbox.answer_reopened(&mut self.fold, self.window.released_sequence());
        }
        self.fold.between_batches()?;
        let (mut position, mut applied) = (0, 0);
        self.fold.prefetch(peek_session(frames));
        while position < frames.len() && (applied < self.frames_per_poll || self.fold.is_mid_message()) {
            let frame = Frame::parse(&frames[position..]).map_err(|source| {
                let reason = source.to_string();
                EngineError::Corrupt { sequence: self.fold.last_sequence() + 1, reason }
            })?;
            position += aligned_length(frame.length());
            // The next one's session, while this one is handled.
            self.fold.prefetch(peek_session(&frames[position.min(frames.len())..]));
            self.counters.handling.set(frame.sequence());
            self.fold.apply(&frame, &mut self.outbox)?;
            if let Some(state_hasher) = &self.state_hasher {
                state_hasher.after_frame(&self.fold);
            }
            applied += 1;
        }
        if position > 0 {
            self.counters.handling.set(0);
            self.cursor.advance(position);
        }
        Ok(applied)
    }

    /// After the replies have left, so that none waits for it.
    #[inline]
    fn count(&mut self) {
        if self.counters.last_sequence.get() != self.fold.last_sequence() {
            self.counters.last_sequence.set(self.fold.last_sequence());
            self.counters.dead_letters.set(self.outbox.dead_letters.count());
        }
        let waiting = self.outbox.deferred.iter().map(|(_, messages)| messages.len() as u64).sum();
        if self.counters.waiting.get() != waiting {
            self.counters.waiting.set(waiting);
        }
    }
}

impl Agent for Executor {
    fn name(&self) -> &str {
        AgentRole::Service.name()
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        self.pace(now.monotonic_ns);
        let moved = self.outbox.refresh();
        let applied = self.apply_released();
        if self.outbox.timers_from.is_some_and(|sequence| self.fold.last_sequence() >= sequence) {
            self.outbox.timers_from = None;
            self.outbox.set_timers(&self.fold);
        }
        // Replies to what was applied before a failure leave: their commands are released.
        if !self.outbox.deferred.is_empty() {
            self.outbox.retry(&self.fold);
        }
        self.outbox.flush();
        self.count();
        let applied = applied?;
        self.full_since_ns = (applied >= self.frames_per_poll).then_some(now.monotonic_ns);
        let is_last = self.closing && self.is_at_end();
        let before = self.snapshots.as_ref().map_or(0, SnapshotSchedule::taken_sequence);
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.after_batch(&mut self.fold, is_last)?;
        }
        if let Some(record) = &mut self.outbox.record {
            let last = (self.fold.last_sequence(), self.fold.last_timestamp_ns());
            record.after_batch(last, now.monotonic_ns);
            if self.snapshots.as_ref().is_some_and(|snapshots| snapshots.taken_sequence() != before) {
                record.cut(now.monotonic_ns);
            }
        }
        if now.monotonic_ns >= self.next_sweep_ns {
            self.next_sweep_ns = now.monotonic_ns + 1_000_000_000;
            self.outbox.drop_closed();
        }
        Ok(applied + moved)
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.outbox.record.as_ref().and_then(OutputRecord::next_deadline_ns)
    }

    fn on_close(&mut self, _now: Now) -> Result<(), AgentError> {
        self.closing = true;
        Ok(())
    }

    fn is_drained(&self) -> bool {
        let is_written = self.snapshots.as_ref().is_none_or(SnapshotSchedule::is_finished);
        self.is_at_end() && is_written
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.outbox.flush();
    }
}

impl Outbox {
    /// How much of what is longer than a ring has found room.
    #[inline]
    fn refresh(&mut self) -> usize {
        match &mut self.delivery {
            Delivery::Direct(egress) => egress.refresh(),
            Delivery::Detached(queue) => {
                while let Some(back) = queue.take_undelivered() {
                    let Undelivered { connection, message } = back;
                    defer(&mut self.deferred, connection, message);
                }
                0
            }
        }
    }

    #[inline]
    fn flush(&mut self) {
        while let Some(request) = self.requests.pop_front() {
            if let Err(request) = self.sequencer.push(request) {
                self.requests.push_front(request);
                break;
            }
        }
        match &mut self.delivery {
            Delivery::Direct(egress) => egress.flush(),
            Delivery::Detached(queue) => queue.flush(),
        }
    }

    fn drop_closed(&mut self) {
        if let Delivery::Direct(egress) = &mut self.delivery {
            egress.drop_closed();
        }
    }

    #[inline]
    fn deliver(&mut self, connection: ConnectionId, header: &FrameHeader, payload: Payload<'_>) -> Delivered {
        match &mut self.delivery {
            Delivery::Direct(egress) => egress.deliver(connection, header, payload),
            Delivery::Detached(queue) => queue.push(connection, header, payload),
        }
    }

    fn defer(&mut self, connection: ConnectionId, session: u64, kind: DeferredKind) {
        defer(&mut self.deferred, connection, Deferred { session, kind });
    }

    /// Whether messages to this publisher wait already; later ones must not overtake them.
    #[inline]
    fn is_waiting(&self, connection: ConnectionId) -> bool {
        !self.deferred.is_empty() && self.deferred.iter().any(|(waiting, _)| *waiting == connection)
    }

    #[inline]
    fn send_reply(&mut self, connection: ConnectionId, session: u64, reply: &StoredReply, payload: Payload<'_>) {
        if self.is_waiting(connection) || self.deliver(connection, &reply.header(session), payload) == Delivered::Later
        {
            self.defer(connection, session, DeferredKind::Reply(reply.session_seq));
        }
    }

    fn send_notice(&mut self, connection: ConnectionId, session: u64, notice: &Notice) -> Delivered {
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
        self.deliver(connection, &header, Payload::new(&notice.payload))
    }

    fn send_notices(&mut self, entry: &SessionEntry, connection: ConnectionId, seen: u64) {
        for notice in entry.notices.iter().filter(|notice| notice.number > seen) {
            if self.send_notice(connection, entry.session, notice) == Delivered::Later {
                self.defer(connection, entry.session, DeferredKind::Notices);
                return;
            }
        }
    }

    /// Answers a session open. Its sequence is the session's identifier.
    fn send_opened(&mut self, connection: ConnectionId, entry: &SessionEntry, next_session_seq: u64) {
        if self.is_waiting(connection) || self.try_opened(connection, entry, next_session_seq) == Delivered::Later {
            self.defer(connection, entry.session, DeferredKind::Opened { next_session_seq });
        }
    }

    fn try_opened(&mut self, connection: ConnectionId, entry: &SessionEntry, next_session_seq: u64) -> Delivered {
        let notices_acknowledged = entry.last_notice - entry.notices.len() as u64;
        let opened = SessionOpened { token: entry.token, next_session_seq, notices_acknowledged };
        let session = entry.session;
        let header = FrameHeader { kind: Kind::Reply, sequence: session, session, ..FrameHeader::default() };
        self.deliver(connection, &header, Payload::new(&opened.to_bytes()))
    }

    fn send_refusal(&mut self, connection: ConnectionId, session: u64, session_seq: u64, refusal: &Refusal<'_>) {
        let mut payload = [0; 256];
        let length = refusal.write_to(&mut payload);
        let kind = Kind::Reply;
        let header = FrameHeader { kind, flags: REFUSED_FLAG, session, session_seq, ..FrameHeader::default() };
        // If there is no room the publisher repeats its command and is refused again.
        let _ = self.deliver(connection, &header, Payload::new(&payload[..length]));
    }

    /// Asks the sequencer for every timer that is set.
    #[cold]
    fn set_timers(&mut self, fold: &Fold) {
        let requests = fold.timers.iter().map(|(timer, deadline_ns)| SequencerRequest::SetTimer { timer, deadline_ns });
        self.requests.extend(requests);
    }

    /// Something from the sequencer.
    #[cold]
    fn handle_request(&mut self, fold: &mut Fold, message: ResponderMessage) {
        match message {
            ResponderMessage::Attach { session, connection, .. } => match fold.sessions.get_mut(session) {
                Some(entry) => entry.connection = Some(connection),
                None => {
                    self.attached_early.insert(session, connection);
                }
            },
            ResponderMessage::Repeat { session, session_seq, connection, .. } => {
                // A session or command that is not known here yet is on its way; its reply will go out then.
                let Some(entry) = fold.sessions.get(session) else { return };
                if let Some(reply) = entry.find(session_seq) {
                    self.send_reply(connection, session, reply, Payload::new(&reply.payload));
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
                self.reopened.insert(session, Reopened { connection, next_session_seq, notices_seen, last_sequence });
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
                // If there is no room it is said again.
                let _ = self.deliver(connection, &header, Payload::new(&payload[..length]));
            }
            ResponderMessage::LeadsNoMore => {
                self.attached_early.clear();
                self.reopened.clear();
            }
            ResponderMessage::Leads { last_sequence } => self.timers_from = Some(last_sequence),
        }
    }

    /// Answers opens of sessions that are open: when all that was given before is released, and the session is known here.
    #[cold]
    fn answer_reopened(&mut self, fold: &mut Fold, released_sequence: u64) {
        let mut all = std::mem::take(&mut self.reopened);
        let last_applied = fold.last_sequence();
        all.retain(|session, reopened| {
            let Reopened { connection, next_session_seq, notices_seen, last_sequence } = *reopened;
            if last_sequence > released_sequence || *session > last_applied {
                return true;
            }
            // One that has been closed meanwhile is opened anew by who asks again.
            let Some(entry) = fold.sessions.get_mut(*session) else { return false };
            entry.connection = Some(connection);
            let entry = &*entry;
            self.send_opened(connection, entry, next_session_seq);
            self.send_notices(entry, connection, notices_seen);
            false
        });
        self.reopened = all;
    }

    /// Tries again what did not fit, for each publisher until its ring is full again.
    #[cold]
    fn retry(&mut self, fold: &Fold) {
        let mut all = std::mem::take(&mut self.deferred);
        all.retain_mut(|(connection, waiting)| {
            while let Some(message) = waiting.front() {
                if self.try_again(fold, *connection, *message) == Delivered::Later {
                    return true;
                }
                waiting.pop_front();
            }
            false
        });
        self.deferred = all;
    }

    fn try_again(&mut self, fold: &Fold, connection: ConnectionId, message: Deferred) -> Delivered {
        let Deferred { session, kind } = message;
        let Some(entry) = fold.sessions.get(session) else { return Delivered::Never };
        match kind {
            DeferredKind::Reply(session_seq) => match entry.find(session_seq) {
                Some(reply) => self.deliver(connection, &reply.header(session), Payload::new(&reply.payload)),
                // A reply that is no longer kept was acknowledged by a later command.
                None => Delivered::Never,
            },
            DeferredKind::Notices => {
                // The publisher drops those that it has by their numbers.
                let mut notices = entry.notices.iter();
                let first_rejected =
                    notices.find(|notice| self.send_notice(connection, session, notice) == Delivered::Later);
                if first_rejected.is_some() { Delivered::Later } else { Delivered::Yes }
            }
            DeferredKind::Opened { next_session_seq } => self.try_opened(connection, entry, next_session_seq),
        }
    }
}

/// Keeps a message back for a publisher whose ring is full.
#[cold]
fn defer(deferred: &mut Vec<(ConnectionId, VecDeque<Deferred>)>, connection: ConnectionId, message: Deferred) {
    let number = deferred.iter().position(|(waiting, _)| *waiting == connection).unwrap_or_else(|| {
        deferred.push((connection, VecDeque::new()));
        deferred.len() - 1
    });
    let waiting = &mut deferred[number].1;
    // Beyond the limit the reply stays in the session table, for when it is asked for.
    if waiting.len() < DEFERRED_MAX {
        waiting.push_back(message);
    }
}

impl Sink for Outbox {
    #[inline]
    fn reply(&mut self, session: &SessionEntry, reply: &StoredReply) {
        crash_point("before_reply");
        let payload = Payload::new(&reply.payload);
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
        if self.is_waiting(connection) || self.send_notice(connection, session.session, notice) == Delivered::Later {
            self.defer(connection, session.session, DeferredKind::Notices);
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
        self.dead_letters.record(&letter);
    }
}
