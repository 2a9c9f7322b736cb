//! [`Ingress`]: the agent that moves frames from publishers' rings into the window, asking the
//! [`Sequencer`] about each. It copies once, checks the copy, stamps and commits in place.

pub use crate::ingress_links::{IngressCounters, IngressLinks, IngressOptions, IngressShared};

mod controlling;

use crate::StreamError;
use crate::feeds::SharedFeeds;
use crate::fragments::{Collected, Fragments};
use crate::link::{ConnectionId, ForIngress, ForSequencer, ForService};
use crate::sequencer::{Decision, Sequencer, compare};
use crate::sequencer_state::SequencerState;
use crate::state_keeper::StateKeeper;
use crate::throttle::TokenBucket;
use gapless_agent::fault::crash_point;
use gapless_agent::{Agent, AgentError, Now, Waker};
use gapless_log::{LogError, Releaser, RingReader, WindowWriter};
use gapless_wire::control::{RefusalCode, SessionOpen, TimerFired};
use gapless_wire::feed_session::FeedSession;
use gapless_wire::mark::{self, Mark};
use gapless_wire::writer::{set_refused, set_session, stamp};
use gapless_wire::{Fragment, Frame, FrameError, FrameHeader, FrameWriter, HEADER_LENGTH, Kind};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

struct Publisher {
    connection: ConnectionId,
    reader: RingReader,
    /// Whether this process has checked both checksums of what is in the ring.
    is_checked: bool,
    /// The session of the frame that was taken last.
    session: u64,
    /// The session of a message that is complete and waits for room in the window.
    complete: Option<u64>,
    bucket: Option<TokenBucket>,
    /// It was told that it is throttled, and has not been served since.
    told_throttled: bool,
    /// Gone: its ring is drained, then dropped.
    closed: bool,
    /// To be dropped after this poll.
    done: bool,
}

/// The agent between publishers' rings and the window.
pub struct Ingress {
    sequencer: Sequencer,
    window: WindowWriter,
    /// At tier `memory` a frame is released as soon as it is appended.
    releaser: Option<Releaser>,
    publishers: Vec<Publisher>,
    links: IngressLinks,
    options: IngressOptions,
    shared: Arc<IngressShared>,
    fragments: Fragments,
    keeper: Option<StateKeeper>,
    /// What was asked of the sequencer and did not fit the window yet.
    asked: VecDeque<ForSequencer>,
    /// A halt or its end that was asked for between two feed sessions, where nothing belongs: it follows the beginning
    /// of the next.
    asked_between: Option<ForSequencer>,
    /// Sessions that have expired and whose close is not appended yet.
    expired: Vec<u64>,
    /// Whether the service was told anything in this poll.
    told: bool,
    /// Whose turn is first, so that a full window starves nobody.
    first: usize,
    now: Now,
}

/// What became of a publisher's turn.
enum Turn {
    /// So many frames were taken.
    Taken(usize),
    /// So many were; the next has to wait, for its publisher's rate or for memory.
    Waits(usize),
    /// The window or the service's mailbox is full: nobody's turn until the service moves on.
    WindowFull(usize),
    /// The ring is of no more use.
    Spoiled(String),
    /// Nor is it behind a frame of this session that no publisher may send.
    Malformed(&'static str, u64),
}

impl Ingress {
    /// An agent that appends to `window`; with a `releaser` at tier `memory`.
    #[must_use]
    pub fn new(
        sequencer: Sequencer,
        window: WindowWriter,
        releaser: Option<Releaser>,
        links: IngressLinks,
        options: IngressOptions,
    ) -> Self {
        let feeds = SharedFeeds::new(sequencer.feeds().clone());
        Self {
            sequencer,
            window,
            releaser,
            publishers: Vec::new(),
            links,
            options,
            shared: Arc::new(IngressShared { feeds, ..IngressShared::default() }),
            fragments: Fragments::new(options.fragments_bytes_max, options.message_bytes_max),
            keeper: None,
            asked: VecDeque::new(),
            asked_between: None,
            expired: Vec::new(),
            told: false,
            first: 0,
            now: Now { monotonic_ns: 0, epoch_ns: 0 },
        }
    }

    /// Gives the sequencer's state to `keeper` when that is due, and at a clean stop.
    #[must_use]
    pub fn keeping_state(mut self, keeper: StateKeeper) -> Self {
        self.keeper = Some(keeper);
        self
    }

    #[cold]
    fn keep_state(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            let state = SequencerState::of(&self.sequencer, keeper.identity());
            keeper.keep(state, self.now.monotonic_ns);
        }
    }

    /// What the outside may know and say.
    #[must_use]
    pub fn shared(&self) -> Arc<IngressShared> {
        Arc::clone(&self.shared)
    }

    #[cold]
    fn take_publisher_events(&mut self, event: ForIngress) {
        match event {
            ForIngress::Opened { connection, reader, is_checked } => {
                self.publishers.push(Publisher {
                    connection,
                    reader,
                    is_checked,
                    session: 0,
                    complete: None,
                    bucket: self.options.throttle.map(TokenBucket::new),
                    told_throttled: false,
                    closed: false,
                    done: false,
                });
                self.count_publishers();
            }
            ForIngress::Closed { connection } => {
                if let Some(publisher) = self.publishers.iter_mut().find(|each| each.connection == connection) {
                    publisher.closed = true;
                }
            }
        }
    }

    fn count_publishers(&self) {
        self.links.counters.publishers.set(self.publishers.len() as u64);
    }

    /// One publisher's turn.
    fn take_from(&mut self, number: usize) -> Result<Turn, StreamError> {
        let (mut taken, mut waits) = (0, false);
        // A frame causes at most two messages to the service, so none of this turn's can be refused.
        if !self.links.service.has_room(2 * self.options.frames_per_poll_max + 2) {
            return Ok(Turn::WindowFull(0));
        }
        let frames_max = match self.allowance(number) {
            Some(frames_max) => frames_max,
            None => return Ok(Turn::Waits(0)),
        };
        if self.publishers[number].complete.is_some() && !self.append_complete(number)? {
            return Ok(Turn::WindowFull(0));
        }
        while taken < frames_max {
            let publisher = &mut self.publishers[number];
            let length = match publisher.reader.next_length() {
                Ok(Some(length)) => length,
                Ok(None) => break,
                Err(error) => return Ok(Turn::Spoiled(error.to_string())),
            };
            let session = publisher.reader.peek_session();
            if session != publisher.session {
                publisher.session = session;
                self.sequencer.prefetch(session);
            }
            publisher.reader.prefetch_ahead(length);
            if length > self.window.frame_length_max() {
                return Ok(Turn::Spoiled(format!(
                    "a frame of {length} bytes is longer than the stream's limit of {}",
                    self.window.frame_length_max()
                )));
            }
            let claim = match self.window.claim(length) {
                Ok(claim) => claim,
                Err(LogError::Full { .. }) => return Ok(Turn::WindowFull(taken)),
                Err(error) => return Err(error.into()),
            };
            publisher.reader.copy(claim);
            // No checksum covers the padding, and the journal takes a frame for damaged whose padding is not zero.
            claim[length..].fill(0);
            crash_point("between_claim_and_commit");
            let frame = match checked(claim, publisher.is_checked) {
                Ok(frame) if frame.length() == length => frame,
                Ok(_) => return Ok(Turn::Spoiled("a frame changed its length while it was read".to_owned())),
                Err(error) => return Ok(Turn::Spoiled(error.to_string())),
            };
            let connection = publisher.connection;
            let (session, session_seq) = (frame.session(), frame.session_seq());
            if frame.fragment() != Fragment::WHOLE {
                let is_last = frame.fragment().is_last();
                let collected = match self.sequencer.expected(session, connection) {
                    Ok(expected) => self.fragments.add(connection, &frame, claim, expected, self.now.monotonic_ns),
                    Err(unknown) => Collected::Answer(unknown),
                };
                match collected {
                    Collected::Kept => {}
                    Collected::Complete => self.publishers[number].complete = Some(session),
                    Collected::Later => {
                        waits = true;
                        break;
                    }
                    // A repeated message has one answer.
                    Collected::Answer(Decision::Repeat) if !is_last => {}
                    Collected::PutOff => self.links.counters.frames_refused.add(1),
                    Collected::Answer(decision) => {
                        if let Some(reason) = self.answer(decision, session, session_seq, connection) {
                            return Ok(Turn::Malformed(reason, session));
                        }
                    }
                }
                self.publishers[number].reader.advance(length);
                taken += 1;
                if self.publishers[number].complete.is_some() && !self.append_complete(number)? {
                    return Ok(Turn::WindowFull(taken));
                }
                continue;
            }
            let opens = frame.kind() == Kind::SessionOpen;
            let decision = match self.fragments.expected(session).filter(|_| !opens) {
                // Behind a part that was lost it is too early.
                Some(expected) => match compare(session_seq, expected) {
                    Decision::Append => Decision::Malformed("a message was left unfinished"),
                    other => other,
                },
                None => self.sequencer.decide(&frame, connection),
            };
            if matches!(decision, Decision::Append | Decision::AppendRefused) {
                let opens = opens.then(|| SessionOpen::from_bytes(frame.payload()));
                let (sequence, timestamp_ns) = self.sequencer.stamp(self.now.epoch_ns);
                if let Some(Some(open)) = &opens {
                    self.sequencer.open(sequence, open, connection);
                    set_session(claim, sequence);
                }
                if decision == Decision::AppendRefused {
                    set_refused(claim);
                    self.links.counters.frames_refused.add(1);
                }
                stamp(claim, sequence, timestamp_ns, self.sequencer.term());
                self.window.commit(length, sequence);
                if let Some(Some(open)) = opens {
                    self.tell(ForService::Attach { session: sequence, token: open.token, connection });
                }
            } else {
                let opens = SessionOpen::from_bytes(frame.payload());
                let is_early = matches!(decision, Decision::Gap { .. });
                if is_early && self.fragments.passes_by(session, session_seq, self.now.monotonic_ns) {
                    self.links.counters.frames_refused.add(1);
                } else if let Decision::Reopen { session, token, next_session_seq } = decision {
                    let open = opens.expect("only an open is answered so");
                    self.links.counters.frames_refused.add(1);
                    self.sequencer.attach(session, connection, open.shared);
                    // Who goes on sends unfinished messages anew.
                    self.fragments.forget(session);
                    let notices_seen = open.notices_seen;
                    // What was appended in this turn is not published yet.
                    let last_sequence = self.window.last_sequence();
                    self.tell(ForService::Reopen {
                        session,
                        token,
                        next_session_seq,
                        notices_seen,
                        last_sequence,
                        connection,
                    });
                } else if let Some(reason) = self.answer(decision, session, session_seq, connection) {
                    return Ok(Turn::Malformed(reason, session));
                }
            }
            self.publishers[number].reader.advance(length);
            taken += 1;
        }
        Ok(if waits { Turn::Waits(taken) } else { Turn::Taken(taken) })
    }

    /// How many frames a publisher may send now; `None` if it has to wait.
    #[inline]
    fn allowance(&mut self, number: usize) -> Option<usize> {
        let publisher = &mut self.publishers[number];
        let Some(bucket) = &publisher.bucket else { return Some(self.options.frames_per_poll_max) };
        let available = bucket.available(self.now.monotonic_ns);
        if available > 0 {
            publisher.told_throttled = false;
            return Some(self.options.frames_per_poll_max.min(available as usize));
        }
        if !publisher.told_throttled && matches!(publisher.reader.next_length(), Ok(Some(_))) {
            publisher.told_throttled = true;
            let detail = self.now.epoch_ns + bucket.next_ns().saturating_sub(self.now.monotonic_ns);
            let (connection, code) = (publisher.connection, RefusalCode::Throttled);
            self.links.counters.throttled.add(1);
            self.tell(ForService::Refuse { connection, session: 0, session_seq: 0, code, detail });
        }
        None
    }

    /// Appends the message that a publisher has sent in fragments. `false` while the window has no room for all of it.
    #[cold]
    fn append_complete(&mut self, number: usize) -> Result<bool, StreamError> {
        let publisher = &mut self.publishers[number];
        let Some(session) = publisher.complete else { return Ok(true) };
        // Its session may have been opened by somebody else, or closed, while it waited.
        if self.sequencer.expected(session, publisher.connection).is_err() || !self.fragments.has(session) {
            publisher.complete = None;
            return Ok(true);
        }
        let (message, frames) = self.fragments.complete(session);
        if !self.window.has_room(message.len())? {
            return Ok(false);
        }
        for range in frames {
            let claim = self.window.claim(range.len())?;
            claim.copy_from_slice(&message[range.start..range.start + claim.len()]);
            let (sequence, timestamp_ns) = self.sequencer.stamp(self.now.epoch_ns);
            stamp(claim, sequence, timestamp_ns, self.sequencer.term());
            self.window.commit(range.len(), sequence);
        }
        self.sequencer.count_message(session, frames.len() as u64);
        self.fragments.forget(session);
        publisher.complete = None;
        Ok(true)
    }

    /// Tells the service what to answer to a frame that is not appended. Returns what makes the whole
    /// ring useless.
    fn answer(
        &mut self,
        decision: Decision,
        session: u64,
        session_seq: u64,
        connection: ConnectionId,
    ) -> Option<&'static str> {
        let refuse = |code, detail| ForService::Refuse { connection, session, session_seq, code, detail };
        let counter = match decision {
            Decision::Repeat => &self.links.counters.frames_repeated,
            _ => &self.links.counters.frames_refused,
        };
        counter.add(1);
        let message = match decision {
            Decision::Append | Decision::AppendRefused | Decision::Reopen { .. } => {
                unreachable!("the caller appends, and reopens")
            }
            Decision::Repeat => {
                let last_sequence = self.window.last_sequence();
                ForService::Repeat { session, session_seq, connection, last_sequence }
            }
            Decision::Gap { next_session_seq } => refuse(RefusalCode::Gap, next_session_seq),
            Decision::SessionUnknown => refuse(RefusalCode::SessionUnknown, 0),
            Decision::Limit { token } => refuse(RefusalCode::Limit, token as u64),
            Decision::Malformed(reason) => return Some(reason),
        };
        self.tell(message);
        None
    }

    /// Tells who had to put a message off that there is room now.
    #[inline]
    fn recall(&mut self) {
        let now_ns = self.now.monotonic_ns;
        if self.fragments.next_recall_ns().is_some_and(|due_ns| now_ns >= due_ns)
            && self.links.service.has_room(1)
            && let Some((session, connection)) = self.fragments.recalled(now_ns)
            && let Ok(next) = self.sequencer.expected(session, connection)
        {
            let (session_seq, code, detail) = (next, RefusalCode::Gap, next);
            self.tell(ForService::Refuse { connection, session, session_seq, code, detail });
        }
    }

    fn tell(&mut self, message: ForService) {
        self.told = true;
        let refused = self.links.service.push(message);
        assert!(refused.is_ok(), "take_from makes sure of room");
    }

    /// Appends a frame of the sequencer's own and returns its sequence; `None` while the window is full.
    fn append_own(&mut self, kind: Kind, session: u64, payload: &[u8]) -> Result<Option<u64>, StreamError> {
        let length = HEADER_LENGTH + payload.len();
        let claim = match self.window.claim(length) {
            Ok(claim) => claim,
            Err(LogError::Full { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (sequence, timestamp_ns) = self.sequencer.stamp(self.now.epoch_ns);
        let mut writer = FrameWriter::new(claim);
        writer.payload_mut()[..payload.len()].copy_from_slice(payload);
        let term = self.sequencer.term();
        let header = FrameHeader { kind, sequence, timestamp_ns, session, term, ..FrameHeader::default() };
        writer.finish(&header, payload.len());
        self.window.commit(length, sequence);
        Ok(Some(sequence))
    }

    /// What was asked of the sequencer, timers that are due, sessions that have expired.
    fn append_due(&mut self) -> Result<usize, StreamError> {
        let mut work = 0;
        while let Some(request) = self.links.requests.pop() {
            self.asked.push_back(request);
        }
        while let Some(request) = self.asked.pop_front() {
            if !self.obey(&request)? {
                self.asked.push_front(request);
                return Ok(work);
            }
            work += 1;
        }
        if self.sequencer.is_between_feeds() {
            return Ok(work);
        }
        while let Some(timer) = self.sequencer.due_timer(self.now.epoch_ns) {
            let payload = TimerFired { timer: timer.timer, deadline_ns: timer.deadline_ns }.to_bytes();
            if self.append_own(Kind::Timer, timer.owner, &payload)?.is_none() {
                break;
            }
            self.sequencer.take_timer(timer);
            work += 1;
        }
        self.expired.extend(self.sequencer.take_expired_sessions(self.now.epoch_ns));
        while let Some(session) = self.expired.last().copied() {
            if self.append_own(Kind::SessionClose, session, &[])?.is_none() {
                break;
            }
            self.expired.pop();
            self.fragments.forget(session);
            work += 1;
        }
        Ok(work)
    }

    /// Does what the service or the stream's owner asks. `false` while the window is full.
    fn obey(&mut self, request: &ForSequencer) -> Result<bool, StreamError> {
        match request {
            ForSequencer::SetTimer { timer, deadline_ns } => self.sequencer.set_timer(*timer, *deadline_ns),
            ForSequencer::CancelTimer { timer, deadline_ns } => self.sequencer.cancel_timer(*timer, *deadline_ns),
            ForSequencer::Throttle(throttle) => {
                self.options.throttle = *throttle;
                for publisher in &mut self.publishers {
                    publisher.bucket = throttle.map(TokenBucket::new);
                }
            }
            ForSequencer::Halt { .. } | ForSequencer::Resume if self.sequencer.is_between_feeds() => {
                self.asked_between = Some(request.clone());
            }
            ForSequencer::Halt { reason } if !self.sequencer.is_halted() => {
                return self.append_mark(Mark::Halted { reason });
            }
            ForSequencer::Resume if self.sequencer.is_halted() => return self.append_mark(Mark::Resumed),
            ForSequencer::EndFeed => {
                if let Some(feed_session) = self.sequencer.feed_session() {
                    return self.append_mark(Mark::FeedEnded { feed_session });
                }
            }
            ForSequencer::BeginFeed { name } => return self.begin_feed(*name),
            ForSequencer::Control { number, command } => return self.obey_control(*number, command),
            ForSequencer::Halt { .. } | ForSequencer::Resume => {}
        }
        Ok(true)
    }

    /// Ends the feed session that there is and begins the next; what was asked for between the two comes right behind.
    /// `false` while the window is full.
    fn begin_feed(&mut self, name: FeedSession) -> Result<bool, StreamError> {
        if let Some(feed_session) = self.sequencer.feed_session()
            && !self.append_mark(Mark::FeedEnded { feed_session })?
        {
            return Ok(false);
        }
        let is_begun = self.append_mark(Mark::FeedBegan { feed_session: name })?;
        if is_begun && let Some(request) = self.asked_between.take() {
            self.asked.push_front(request);
        }
        Ok(is_begun)
    }

    /// Appends a note and folds it in. `false` while the window is full.
    fn append_mark(&mut self, mark: Mark<'_>) -> Result<bool, StreamError> {
        let mut payload = [0; mark::LENGTH_MAX];
        let length = mark.write_to(&mut payload);
        let Some(sequence) = self.append_own(Kind::Mark, 0, &payload[..length])? else { return Ok(false) };
        self.sequencer.note(sequence, mark);
        self.shared.feeds.lock().clone_from(self.sequencer.feeds());
        Ok(true)
    }

    fn publish(&mut self) {
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

    /// Every publisher's turn, once.
    fn take_from_all(&mut self) -> Result<usize, StreamError> {
        let mut work = 0;
        self.first = if self.first + 1 < self.publishers.len() { self.first + 1 } else { 0 };
        for turn in 0..self.publishers.len() {
            let number = (self.first + turn) % self.publishers.len();
            let mut outcome = self.take_from(number)?;
            let mut closed = false;
            if matches!(outcome, Turn::Taken(0)) {
                let publisher = &self.publishers[number];
                closed = publisher.closed || publisher.reader.is_writer_closed();
                if closed {
                    // Looked at once more, so that nothing published before it closed is missed.
                    outcome = self.take_from(number)?;
                }
            }
            let publisher = &mut self.publishers[number];
            publisher.reader.release();
            if let (Turn::Taken(taken) | Turn::Waits(taken) | Turn::WindowFull(taken), Some(bucket)) =
                (&outcome, &mut publisher.bucket)
            {
                bucket.take(*taken as u64, self.now.monotonic_ns);
            }
            match outcome {
                Turn::Taken(0) if closed => self.publishers[number].done = true,
                Turn::Taken(taken) | Turn::Waits(taken) => work += taken,
                Turn::WindowFull(taken) => {
                    work += taken;
                    break;
                }
                Turn::Spoiled(reason) => self.drop_spoiled(number, &reason, 0),
                Turn::Malformed(reason, session) => self.drop_spoiled(number, reason, session),
            }
        }
        if self.publishers.iter().any(|publisher| publisher.done) {
            for publisher in self.publishers.iter().filter(|publisher| publisher.done) {
                self.fragments.forget_from(publisher.connection);
                self.sequencer.detach(publisher.connection);
            }
            self.publishers.retain(|publisher| !publisher.done);
            self.count_publishers();
        }
        Ok(work)
    }

    /// Its publisher is told, with the `session` that it was for: behind a relay it may be one of many.
    #[cold]
    fn drop_spoiled(&mut self, number: usize, reason: &str, session: u64) {
        let publisher = &mut self.publishers[number];
        publisher.done = true;
        let connection = publisher.connection;
        self.links.counters.frames_refused.add(1);
        tracing::warn!(connection = connection.0, reason, "a publisher's ring is corrupt; it is dropped");
        let code = RefusalCode::Malformed;
        self.tell(ForService::Refuse { connection, session, session_seq: 0, code, detail: 0 });
    }
}

/// The frame that was copied, if its checksums are right.
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
        "sequencer"
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        self.now = now;
        while let Some(event) = self.links.publishers.pop() {
            self.take_publisher_events(event);
        }
        // Acquire: pairs with whoever stops the input and then looks at what was appended.
        if self.shared.stopped.load(Ordering::Acquire) {
            if !self.shared.halted.load(Ordering::Relaxed) {
                self.keep_state();
            }
            // Release: pairs with whoever waits for the last append.
            self.shared.halted.store(true, Ordering::Release);
            return Ok(0);
        }
        let before = self.window.last_sequence();
        self.told = false;
        let mut work = self.append_due()?;
        // What was asked for and waits for room overtakes what publishers have sent.
        if self.asked.is_empty() && !self.sequencer.is_closed() {
            self.recall();
            work += self.take_from_all()?;
        }
        if self.window.last_sequence() != before {
            self.publish();
            if self.keeper.as_ref().is_some_and(|keeper| keeper.is_due(self.window.last_sequence(), now.monotonic_ns)) {
                self.keep_state();
            }
        }
        if self.window.last_sequence() != before || self.told {
            self.links.downstream.iter().for_each(Waker::wake);
        }
        Ok(work)
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let in_ns = |deadline_ns: u64| deadline_ns.saturating_sub(self.now.epoch_ns);
        let due_ns = self.sequencer.next_deadline_ns().map(|deadline_ns| self.now.monotonic_ns + in_ns(deadline_ns));
        due_ns.into_iter().chain(self.fragments.next_recall_ns()).min()
    }

    fn arm(&mut self) {
        self.publishers.iter().for_each(|publisher| publisher.reader.arm());
    }

    fn disarm(&mut self) {
        self.publishers.iter().for_each(|publisher| publisher.reader.disarm());
    }
}
