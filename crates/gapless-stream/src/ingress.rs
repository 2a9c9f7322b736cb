//! [`Ingress`]: the agent that moves frames from publishers' rings into the window, by the decision of the
//! [`Sequencer`] on each. It copies once, checks the copy, then stamps and commits in place.

pub use crate::ingress_links::{IngressCounters, IngressLinks, IngressOptions, IngressShared};

mod answering;
mod controlling;
pub mod direct;
mod following;
mod housekeeping;
mod publishers;
mod speculative_execution;
mod window_frames;

use crate::deferred::DeferredSessions;
use crate::fragments::{CollectResult, Fragments};
use crate::handled_commands::HandledCommands;
use crate::manual_time::ManualTime;
use crate::messages::{ResponderMessage, SequencerRequest};
use crate::sequencer::{Decision, Sequencer, decide_by_number};
use crate::sequencer_state::SequencerState;
use crate::sequencer_state_writer::SequencerStateWriter;
use crate::stream_time::StreamTime;
use crate::{AgentRole, StreamError};
use following::{IngressRole, UnsentRoleChanges};
use gapless_agent::fault::crash_point;
use gapless_agent::{Agent, AgentError, Now, Waker};
use gapless_client::feed_sessions::SharedFeeds;
use gapless_log::{LogError, Releaser, WindowWriter};
use gapless_transport::link::ConnectionId;
use gapless_wire::control::SessionOpen;
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::writer::{add_flags, set_session, stamp};
use gapless_wire::{Encoding, Fragment, Frame, FrameError, Kind};
use publishers::{ConnectedPublisher, TurnResult};
use speculative_execution::{SpeculativeExecution, drop_deferred, forget_deferred_from};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Agent between publishers' rings and the window.
pub struct Ingress {
    sequencer: Sequencer,
    window: WindowWriter,
    releaser: Option<Releaser>,
    publishers: Vec<ConnectedPublisher>,
    links: IngressLinks,
    options: IngressOptions,
    shared: Arc<IngressShared>,
    fragments: Fragments,
    deferred: DeferredSessions,
    state_writer: Option<SequencerStateWriter>,
    requests: VecDeque<SequencerRequest>,
    /// A halt or resume between two feed sessions, where no frame may stand: it follows the beginning of the next.
    request_between_feeds: Option<SequencerRequest>,
    /// Sessions whose close is not appended yet.
    expired: Vec<u64>,
    has_notified: bool,
    unsent: UnsentRoleChanges,
    /// Polled first, so that a full window starves none.
    first: usize,
    /// Valid while this member leads.
    now: Now,
    time: StreamTime,
    manual_time: Option<ManualTime>,
    role: IngressRole,
    serves: bool,
    speculation: Option<SpeculativeExecution>,
    /// `None`: typed commands get no flags.
    handled: Option<HandledCommands>,
}

impl Ingress {
    /// A leading agent. With a `releaser`, at tier `memory`, it releases; else the journaler or the member does.
    #[must_use]
    pub fn new(
        sequencer: Sequencer,
        window: WindowWriter,
        releaser: Option<Releaser>,
        links: IngressLinks,
        options: IngressOptions,
    ) -> Self {
        let feeds = SharedFeeds::new(sequencer.feeds().clone());
        let is_stream_halted = Arc::new(AtomicBool::new(sequencer.is_halted()));
        let time = StreamTime::after(sequencer.last_timestamp_ns());
        links.counters.last_sequence.set(sequencer.last_sequence());
        Self {
            sequencer,
            window,
            releaser,
            publishers: Vec::new(),
            links,
            options,
            shared: Arc::new(IngressShared { feeds, is_stream_halted, ..IngressShared::default() }),
            fragments: Fragments::new(options.fragments_bytes_max, options.message_bytes_max),
            deferred: DeferredSessions::default(),
            state_writer: None,
            requests: VecDeque::new(),
            request_between_feeds: None,
            expired: Vec::new(),
            has_notified: false,
            unsent: UnsentRoleChanges::default(),
            first: 0,
            now: Now { monotonic_ns: 0, epoch_ns: 0 },
            time,
            manual_time: None,
            role: IngressRole::Leading,
            serves: true,
            speculation: None,
            handled: None,
        }
    }

    /// Marks typed commands outside of `handled`, so that no member handles them
    /// ([`UNHANDLED_FLAG`](gapless_wire::descriptor::UNHANDLED_FLAG)).
    #[must_use]
    pub fn handling_only(mut self, handled: HandledCommands) -> Self {
        self.handled = Some(handled);
        self
    }

    /// Hands over the sequencer's state when due, and at a clean stop.
    #[must_use]
    pub fn writing_state(mut self, state_writer: SequencerStateWriter) -> Self {
        self.state_writer = Some(state_writer);
        self
    }

    /// Lets the time move by requests alone.
    #[must_use]
    pub fn with_manual_time(mut self, time: ManualTime) -> Self {
        self.manual_time = Some(time);
        self
    }

    /// Writes the state without threads; call it once the covered frames may be released.
    #[inline]
    pub fn turn_state_writer(&mut self) {
        if let Some(state_writer) = &mut self.state_writer {
            state_writer.turn();
        }
    }

    /// Hands over the state even if not due: now, or after the current message.
    pub fn write_state_soon(&mut self) {
        if let Some(state_writer) = &mut self.state_writer {
            state_writer.expedite();
        }
        if self.is_state_whole(false) {
            self.write_state();
        }
    }

    #[cold]
    fn write_state(&mut self) {
        if let Some(state_writer) = &mut self.state_writer {
            let state = SequencerState::of(&self.sequencer, state_writer.identity());
            state_writer.submit(state, self.now.monotonic_ns);
        }
    }

    #[must_use]
    pub fn shared(&self) -> Arc<IngressShared> {
        Arc::clone(&self.shared)
    }

    fn take_from(&mut self, number: usize) -> Result<TurnResult, StreamError> {
        // A frame causes at most two messages to the service, so none of this turn's can be refused.
        if self.has_unsent() || !self.links.service.has_room(2 * self.options.frames_per_poll_max + 2) {
            return Ok(TurnResult::WindowFull(0));
        }
        let Some(frames_max) = self.allowance(number) else { return Ok(TurnResult::Waits(0)) };
        let mut frames = 0;
        loop {
            if self.publishers[number].complete.is_some() && !self.append_complete(number)? {
                return Ok(TurnResult::WindowFull(frames));
            }
            if frames == frames_max {
                return Ok(TurnResult::Taken(frames));
            }
            match self.take_frame(number)? {
                FrameResult::Taken => frames += 1,
                FrameResult::Empty => return Ok(TurnResult::Taken(frames)),
                FrameResult::WindowFull => return Ok(TurnResult::WindowFull(frames)),
                FrameResult::Waits => return Ok(TurnResult::Waits(frames)),
                FrameResult::Corrupt(reason) => return Ok(TurnResult::Corrupt(reason)),
                FrameResult::Malformed(reason, session) => return Ok(TurnResult::Malformed(reason, session)),
            }
        }
    }

    /// Copies the frame to its place in the window, verifies it there, and appends or answers it.
    #[inline(always)]
    fn take_frame(&mut self, number: usize) -> Result<FrameResult, StreamError> {
        if !self.has_room_for_transaction()? {
            return Ok(FrameResult::WindowFull);
        }
        let publisher = &mut self.publishers[number];
        let length = match publisher.reader.next_length() {
            Ok(Some(length)) => length,
            Ok(None) => return Ok(FrameResult::Empty),
            Err(error) => return Ok(FrameResult::corrupt(error)),
        };
        let (reader, sequencer) = (&publisher.reader, &self.sequencer);
        publisher.frames_ahead.step(|sessions| sequencer.prefetch(reader.peek_sessions(sessions)));
        publisher.reader.prefetch_ahead(length);
        if length > self.window.frame_length_max() {
            return Ok(FrameResult::too_long(length, self.window.frame_length_max()));
        }
        let claim = match self.window.claim(length) {
            Ok(claim) => claim,
            Err(error) => return FrameResult::claim_error(error),
        };
        publisher.reader.copy(claim);
        // No checksum covers the padding, and the journal treats nonzero padding as damage.
        claim[length..].fill(0);
        crash_point("between_claim_and_commit");
        let frame = match checked(claim, publisher.is_checked) {
            Ok(frame) if frame.length() == length => frame,
            Ok(_) => return Ok(FrameResult::corrupt("a frame changed its length while it was read")),
            Err(error) => return Ok(FrameResult::corrupt(error)),
        };
        let connection = publisher.connection;
        let (kind, session, session_seq) = (frame.kind(), frame.session(), frame.session_seq());
        let step = if frame.fragment() != Fragment::WHOLE {
            let is_last = frame.fragment().is_last();
            let collected = match self.sequencer.expected(session, connection) {
                Ok(expected) => self.fragments.add(connection, &frame, claim, expected, self.now.monotonic_ns),
                Err(unknown) => CollectResult::Answer(unknown),
            };
            let is_early = matches!(collected, CollectResult::Answer(Decision::Gap { .. }));
            if is_early && self.deferred.drops(session, session_seq, self.now.monotonic_ns) {
                drop_deferred(&mut self.speculation, &frame);
                self.links.counters.frames_refused.add(1);
                FrameResult::Taken
            } else {
                self.handle_collected(number, collected, session, session_seq, is_last)
            }
        } else {
            let expected = self.fragments.expected(session).filter(|_| kind != Kind::SessionOpen);
            let decision = match expected.map(|expected| decide_by_number(session_seq, expected)) {
                // The frame is early because a part was lost.
                Some(Decision::Append) => Decision::Malformed("a message was left unfinished"),
                Some(other) => other,
                None => self.sequencer.decide(&frame, connection, self.now.epoch_ns),
            };
            match decision {
                Decision::Append if kind == Kind::Command && self.speculation.is_some() => {
                    self.append_transaction(length, connection)?;
                    FrameResult::Taken
                }
                Decision::Append | Decision::AppendRefused => {
                    let timer = frame.payload().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                    let open = (kind == Kind::SessionOpen).then(|| SessionOpen::from_bytes(frame.payload())).flatten();
                    let is_refused = matches!(decision, Decision::AppendRefused);
                    let mut flags = if is_refused { REFUSED_FLAG } else { 0 };
                    if frame.encoding() == Encoding::Postcard {
                        flags |= typed_flags(self.handled.as_ref(), &frame);
                    }
                    let by = (connection, self.now.epoch_ns);
                    let sequence = stamp_in_place(&mut self.sequencer, claim, open.as_ref(), flags, by);
                    self.window.commit(length, sequence);
                    if is_refused {
                        self.links.counters.frames_refused.add(1);
                    }
                    if let Some(open) = open {
                        self.notify_service(ResponderMessage::Attach {
                            session: sequence,
                            token: open.token,
                            connection,
                        });
                    }
                    if self.speculation.is_some() {
                        self.note_passed(kind, session, timer);
                    }
                    FrameResult::Taken
                }
                Decision::Gap { .. } if self.deferred.drops(session, session_seq, self.now.monotonic_ns) => {
                    drop_deferred(&mut self.speculation, &frame);
                    self.links.counters.frames_refused.add(1);
                    FrameResult::Taken
                }
                Decision::Query => {
                    let query = self.publishers[number].query(&frame);
                    self.notify_service(query);
                    FrameResult::Taken
                }
                _ => {
                    let open = SessionOpen::from_bytes(frame.payload());
                    self.answer_unappended(number, decision, open, session, session_seq)
                }
            }
        };
        if matches!(step, FrameResult::Taken) {
            self.publishers[number].reader.advance(length);
        }
        Ok(step)
    }

    fn handle_collected(
        &mut self,
        number: usize,
        collected: CollectResult,
        session: u64,
        session_seq: u64,
        is_last: bool,
    ) -> FrameResult {
        match collected {
            CollectResult::Kept => {}
            CollectResult::Complete => self.publishers[number].complete = Some(session),
            CollectResult::NoMemory => return FrameResult::Waits,
            // A duplicate message of several frames gets one answer, at its last frame.
            CollectResult::Answer(Decision::Repeat) if !is_last => {}
            CollectResult::Postponed => self.links.counters.frames_refused.add(1),
            CollectResult::Answer(decision) => return self.answer_frame(number, decision, session, session_seq),
        }
        FrameResult::Taken
    }

    /// `open` is the payload of a session's open.
    #[cold]
    fn answer_unappended(
        &mut self,
        number: usize,
        decision: Decision,
        open: Option<SessionOpen>,
        session: u64,
        session_seq: u64,
    ) -> FrameResult {
        let is_early = matches!(decision, Decision::Gap { .. });
        if is_early && self.fragments.drops_silently(session, session_seq, self.now.monotonic_ns) {
            self.links.counters.frames_refused.add(1);
            return FrameResult::Taken;
        }
        let Decision::Reopen { session, token, next_session_seq } = decision else {
            return self.answer_frame(number, decision, session, session_seq);
        };
        let open = open.expect("only an open is answered so");
        // A publisher that has gone may have reopened the session since, through a ring that is read before this one.
        if !self.publishers[number].is_gone() {
            let connection = self.publishers[number].connection;
            self.reopen(&open, session, token, next_session_seq, connection);
        }
        FrameResult::Taken
    }

    /// Answers a frame, or redirects its publisher if that has to reopen its sessions.
    fn answer_frame(&mut self, number: usize, decision: Decision, session: u64, session_seq: u64) -> FrameResult {
        if self.redirect_if_detached(decision, session, number) {
            return FrameResult::Waits;
        }
        let connection = self.publishers[number].connection;
        match self.answer(decision, session, session_seq, connection) {
            Some(reason) => FrameResult::Malformed(reason, session),
            None => FrameResult::Taken,
        }
    }

    #[cold]
    fn reopen(
        &mut self,
        open: &SessionOpen,
        session: u64,
        token: u128,
        next_session_seq: u64,
        connection: ConnectionId,
    ) {
        self.sequencer.attach(session, connection, open.shared);
        // A resuming publisher resends unfinished messages.
        self.fragments.forget(session);
        self.deferred.forget(session);
        // Frames of this turn are not published yet.
        let (notices_seen, last_sequence) = (open.notices_seen, self.window.last_sequence());
        self.notify_service(ResponderMessage::Reopen {
            session,
            token,
            next_session_seq,
            notices_seen,
            last_sequence,
            connection,
        });
    }

    #[cold]
    fn append_complete(&mut self, number: usize) -> Result<bool, StreamError> {
        let publisher = &mut self.publishers[number];
        let Some(session) = publisher.complete else { return Ok(true) };
        // The session may have been reopened elsewhere, or closed, meanwhile.
        if self.sequencer.expected(session, publisher.connection).is_err() || !self.fragments.has(session) {
            publisher.complete = None;
            return Ok(true);
        }
        let (message, frames) = self.fragments.complete(session);
        if !self.window.has_room(message.len())? {
            return Ok(false);
        }
        if let Some(speculation) = &self.speculation {
            if !self.window.has_room(speculation.room_bytes)? {
                return Ok(false);
            }
            let connection = publisher.connection;
            self.append_long_transaction(session, connection)?;
            self.fragments.forget(session);
            self.publishers[number].complete = None;
            return Ok(true);
        }
        let first = frames.first().and_then(|range| Frame::parse(&message[range.clone()]).ok());
        let flags = first.map_or(0, |first| typed_flags(self.handled.as_ref(), &first));
        for range in frames {
            let claim = self.window.claim(range.len())?;
            claim.copy_from_slice(&message[range.start..range.start + claim.len()]);
            if flags != 0 {
                add_flags(claim, flags);
            }
            let (sequence, timestamp_ns) = self.sequencer.stamp(self.now.epoch_ns);
            stamp(claim, sequence, timestamp_ns, self.sequencer.term());
            self.window.commit(range.len(), sequence);
        }
        self.sequencer.count_message(session, frames.len() as u64);
        self.fragments.forget(session);
        publisher.complete = None;
        Ok(true)
    }

    /// Publishes appended frames; for a caller of [`Ingress::append_followed`], at the end of a batch.
    pub fn publish(&mut self) {
        self.window.publish();
        let sequence = self.window.last_sequence();
        if let Some(releaser) = &mut self.releaser {
            releaser.release(self.window.tail(), sequence);
        }
        let counters = &self.links.counters;
        counters.last_sequence.set(sequence);
        counters.sessions.set(self.sequencer.session_count() as u64);
        counters.messages_evicted.set(self.fragments.evicted());
    }

    fn take_from_all(&mut self) -> Result<usize, StreamError> {
        let mut work = 0;
        self.first = if self.first + 1 < self.publishers.len() { self.first + 1 } else { 0 };
        for turn in 0..self.publishers.len() {
            let number = (self.first + turn) % self.publishers.len();
            let mut outcome = self.take_turn(number)?;
            let mut closed = false;
            if matches!(outcome, TurnResult::Taken(0)) {
                let publisher = &self.publishers[number];
                closed = publisher.is_gone();
                if closed {
                    // Checked once more, so that nothing published before the close is missed.
                    outcome = self.take_turn(number)?;
                }
            }
            let publisher = &mut self.publishers[number];
            publisher.reader.release();
            if let (
                TurnResult::Taken(frames) | TurnResult::Waits(frames) | TurnResult::WindowFull(frames),
                Some(bucket),
            ) = (&outcome, &mut publisher.bucket)
            {
                bucket.take(*frames as u64, self.now.monotonic_ns);
            }
            match outcome {
                TurnResult::Taken(0) if closed => self.publishers[number].done = true,
                TurnResult::Taken(frames) | TurnResult::Waits(frames) => work += frames,
                TurnResult::WindowFull(frames) => {
                    work += frames;
                    break;
                }
                TurnResult::Corrupt(reason) => self.drop_corrupt(number, &reason, 0),
                TurnResult::Malformed(reason, session) => self.drop_corrupt(number, reason, session),
            }
        }
        if self.publishers.iter().any(|publisher| publisher.done) {
            for publisher in self.publishers.iter().filter(|publisher| publisher.done) {
                self.fragments.forget_from(publisher.connection);
                forget_deferred_from(&mut self.deferred, &mut self.speculation, publisher.connection);
                self.sequencer.detach(publisher.connection);
            }
            self.publishers.retain(|publisher| !publisher.done);
            self.count_publishers();
        }
        Ok(work)
    }
}

enum FrameResult {
    Taken,
    Empty,
    WindowFull,
    /// The frame stays in the ring until something else has happened.
    Waits,
    Corrupt(String),
    Malformed(&'static str, u64),
}

/// Marked cold, or the compiler would treat every branch of [`Ingress::take_frame`] as equally likely, and inline
/// nothing in the deeper ones.
impl FrameResult {
    #[cold]
    fn corrupt(reason: impl std::fmt::Display) -> Self {
        Self::Corrupt(reason.to_string())
    }

    #[cold]
    fn too_long(length: usize, limit: usize) -> Self {
        Self::Corrupt(format!("a frame of {length} bytes is longer than the stream's limit of {limit}"))
    }

    #[cold]
    fn claim_error(error: LogError) -> Result<Self, StreamError> {
        match error {
            LogError::Full { .. } => Ok(Self::WindowFull),
            error => Err(error.into()),
        }
    }
}

/// Stamps a frame in its place in the window, with `flags` added; a session open also opens its session. Returns the
/// sequence.
#[inline(always)]
fn stamp_in_place(
    sequencer: &mut Sequencer,
    claim: &mut [u8],
    open: Option<&SessionOpen>,
    flags: u16,
    (connection, epoch_ns): (ConnectionId, u64),
) -> u64 {
    let (sequence, timestamp_ns) = sequencer.stamp(epoch_ns);
    if let Some(open) = open {
        sequencer.open(sequence, open, connection);
        set_session(claim, sequence);
    }
    if flags != 0 {
        add_flags(claim, flags);
    }
    stamp(claim, sequence, timestamp_ns, sequencer.term());
    sequence
}

/// Flags of the sequencer for a typed frame. Out of line, for the sake of the other frames' path.
#[inline(never)]
fn typed_flags(handled: Option<&HandledCommands>, first: &Frame<'_>) -> u16 {
    handled.map_or(0, |handled| handled.flags_for(first))
}

#[inline]
fn checked(copied: &[u8], is_checked: bool) -> Result<Frame<'_>, FrameError> {
    let frame = Frame::parse(copied)?;
    if !is_checked {
        frame.verify()?;
    }
    Ok(frame)
}

impl Agent for Ingress {
    fn name(&self) -> &str {
        AgentRole::Sequencer.name()
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        self.now = if self.is_following() { now } else { self.time.lead(now) };
        if let Some(time) = &mut self.manual_time {
            self.now = time.read(self.now);
        }
        let mut events = 0;
        while let Some(event) = self.links.publishers.pop() {
            self.take_publisher_events(event);
            events += 1;
        }
        // Pairs with the thread that stops the input and then looks at the appended frames.
        if self.shared.stopped.load(Ordering::Acquire) {
            if !self.shared.halted.load(Ordering::Relaxed) {
                if self.is_state_whole(true) {
                    self.write_state();
                }
                if let Some(speculation) = &mut self.speculation {
                    speculation.transactions.follow(self.window.last_sequence());
                }
            }
            // Pairs with the thread that waits for the last append.
            self.shared.halted.store(true, Ordering::Release);
            return Ok(0);
        }
        let before = self.window.last_sequence();
        self.has_notified = false;
        self.send_unsent();
        let may_append = self.is_following() || self.may_append();
        let mut work = match (self.is_following(), may_append) {
            (true, _) => self.execute_as_follower(),
            (_, true) => self.append_due()?,
            // No frame may come between the state and the frames that it covers.
            _ => 0,
        };
        // Waiting requests overtake the rings.
        if may_append && self.requests.is_empty() && (!self.sequencer.is_closed() || self.is_following()) {
            self.recall();
            self.recall_deferred();
            work += self.take_from_all()?;
        }
        if self.window.last_sequence() != before {
            self.publish();
            if self
                .state_writer
                .as_ref()
                .is_some_and(|state_writer| state_writer.is_due(self.window.last_sequence(), now.monotonic_ns))
            {
                self.write_state();
            }
        }
        if let Some(time) = &mut self.manual_time
            && self.sequencer.due_timer(self.now.epoch_ns).is_none()
        {
            time.report(self.now.epoch_ns, self.window.last_sequence());
        }
        if self.is_following() {
            self.write_state_if_due();
        }
        if self.window.last_sequence() != before || self.has_notified {
            self.links.downstream.iter().for_each(Waker::wake);
        }
        // A thread that is about to sleep must announce that in a new publisher's ring, too.
        Ok(work + events)
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let away_ns = self.publishers.iter().filter_map(|publisher| publisher.next_redirect_ns).min();
        if self.is_following() {
            return away_ns;
        }
        let in_ns = |deadline_ns: u64| deadline_ns.saturating_sub(self.now.epoch_ns);
        let due_ns = self.sequencer.next_deadline_ns().map(|deadline_ns| self.now.monotonic_ns + in_ns(deadline_ns));
        due_ns.into_iter().chain(self.fragments.next_recall_ns()).chain(away_ns).min()
    }

    fn arm(&mut self) {
        self.publishers.iter().for_each(|publisher| publisher.reader.arm());
    }

    fn disarm(&mut self) {
        self.publishers.iter().for_each(|publisher| publisher.reader.disarm());
    }
}
