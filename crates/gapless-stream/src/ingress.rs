//! [`Ingress`]: the agent that moves frames from publishers' rings into the window, asking the
//! [`Sequencer`] about each. It copies once, checks the copy, stamps and commits in place.

use crate::StreamError;
use crate::link::{ConnectionId, ForIngress, ForSequencer, ForService};
use crate::mailbox::Mailbox;
use crate::sequencer::{Decision, Sequencer};
use gapless_agent::fault::crash_point;
use gapless_agent::{Agent, AgentError, Counter, Counters, Now, Waker};
use gapless_log::{LogError, Releaser, RingReader, WindowWriter};
use gapless_wire::control::{RefusalCode, SessionOpen, TimerFired};
use gapless_wire::writer::{set_session, stamp};
use gapless_wire::{Fragment, Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What an [`Ingress`] takes from each ring, and how much at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IngressOptions {
    /// Frames taken from one ring in one poll, before the others get their turn.
    pub frames_per_poll_max: usize,
}

impl Default for IngressOptions {
    fn default() -> Self {
        Self { frames_per_poll_max: 64 }
    }
}

/// What the outside may know and say while the agent runs.
#[derive(Debug, Default)]
pub struct IngressShared {
    /// Set to take no more input: a clean stop, or a failure elsewhere.
    pub stopped: AtomicBool,
    /// Set once the agent has seen `stopped`: nothing is appended any more.
    pub halted: AtomicBool,
}

/// What the agent counts.
#[derive(Debug)]
pub struct IngressCounters {
    /// The last sequence given.
    pub last_sequence: Counter,
    /// Frames recognised as repeats.
    pub frames_repeated: Counter,
    /// Frames refused, malformed ones included.
    pub frames_refused: Counter,
    /// Publishers connected.
    pub publishers: Counter,
    /// Sessions open.
    pub sessions: Counter,
}

impl IngressCounters {
    /// Adds them to `counters`.
    ///
    /// # Errors
    /// No room, or labels that are taken.
    pub fn add_to(counters: &Counters) -> Result<Self, gapless_agent::Error> {
        Ok(Self {
            last_sequence: counters.add("sequencer.last_sequence")?,
            frames_repeated: counters.add("sequencer.frames_repeated")?,
            frames_refused: counters.add("sequencer.frames_refused")?,
            publishers: counters.add("sequencer.publishers")?,
            sessions: counters.add("sequencer.sessions")?,
        })
    }
}

struct Publisher {
    connection: ConnectionId,
    reader: RingReader,
    /// Gone: its ring is drained, then dropped.
    closed: bool,
    /// To be dropped after this poll.
    done: bool,
}

/// Everything the agent is connected to.
pub struct IngressLinks {
    /// From the doorman.
    pub publishers: Mailbox<ForIngress>,
    /// To the service.
    pub service: Mailbox<ForService>,
    /// From the service.
    pub requests: Mailbox<ForSequencer>,
    /// Threads to wake when frames were appended.
    pub downstream: Vec<Waker>,
    /// What it counts.
    pub counters: IngressCounters,
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
    /// Fragments of one message, back to back, while they are checked.
    message: Vec<u8>,
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
    /// The window or the service's mailbox is full: nobody's turn until the service moves on.
    WindowFull(usize),
    /// The ring is of no more use.
    Spoiled(String),
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
        Self {
            sequencer,
            window,
            releaser,
            publishers: Vec::new(),
            links,
            options,
            shared: Arc::default(),
            message: Vec::new(),
            expired: Vec::new(),
            told: false,
            first: 0,
            now: Now { monotonic_ns: 0, epoch_ns: 0 },
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
            ForIngress::Opened { connection, reader } => {
                self.publishers.push(Publisher { connection, reader, closed: false, done: false });
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
        let mut taken = 0;
        // A frame causes at most two messages to the service, so none of this turn's can be refused.
        if !self.links.service.has_room(2 * self.options.frames_per_poll_max + 2) {
            return Ok(Turn::WindowFull(0));
        }
        while taken < self.options.frames_per_poll_max {
            let publisher = &mut self.publishers[number];
            let length = match publisher.reader.next_length() {
                Ok(Some(length)) => length,
                Ok(None) => break,
                Err(error) => return Ok(Turn::Spoiled(error.to_string())),
            };
            self.sequencer.prefetch(publisher.reader.peek_session());
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
            let frame = match Frame::parse(claim).and_then(|frame| frame.verify().map(|()| frame)) {
                Ok(frame) if frame.length() == length => frame,
                Ok(_) => return Ok(Turn::Spoiled("a frame changed its length while it was read".to_owned())),
                Err(error) => return Ok(Turn::Spoiled(error.to_string())),
            };
            let connection = publisher.connection;
            if frame.fragment() != Fragment::WHOLE {
                match self.take_fragments(number)? {
                    Turn::Taken(frames) => taken += frames,
                    other => return Ok(other),
                }
                continue;
            }
            let decision = self.sequencer.decide(&frame, connection);
            if decision == Decision::Append {
                let is_open = frame.kind() == Kind::SessionOpen;
                let token = is_open.then(|| SessionOpen::from_bytes(frame.payload())).flatten();
                let (sequence, timestamp_ns) = self.sequencer.stamp(self.now.epoch_ns);
                if let Some(open) = token {
                    self.sequencer.open(sequence, open.token, connection);
                    set_session(claim, sequence);
                }
                stamp(claim, sequence, timestamp_ns, self.sequencer.term());
                self.window.commit(length, sequence);
                if is_open {
                    self.tell(ForService::Attach { session: sequence, connection });
                }
            } else {
                let (session, session_seq) = (frame.session(), frame.session_seq());
                let notices_seen = SessionOpen::from_bytes(frame.payload()).map_or(0, |open| open.notices_seen);
                if let Some(reason) = self.answer(decision, session, session_seq, notices_seen, connection) {
                    return Ok(Turn::Spoiled(reason.to_owned()));
                }
            }
            self.publishers[number].reader.advance(length);
            taken += 1;
        }
        self.publishers[number].reader.release();
        Ok(Turn::Taken(taken))
    }

    /// Takes all fragments of the message that begins at the ring's head, or none: they are checked
    /// whole before the first is appended.
    fn take_fragments(&mut self, number: usize) -> Result<Turn, StreamError> {
        let publisher = &self.publishers[number];
        let connection = publisher.connection;
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        let mut frames = Vec::new();
        let spoiled = |reason: &str| Ok(Turn::Spoiled(reason.to_owned()));
        let mut first: Option<FrameHeader> = None;
        loop {
            let offset = message.len();
            let mut word = [0; 8];
            if offset as u64 + HEADER_LENGTH as u64 > publisher.reader.known_bytes() {
                return spoiled("a message's fragments were not published together");
            }
            publisher.reader.copy_at(offset, &mut word);
            let length = u32::from_le_bytes([word[0], word[1], word[2], word[3]]) as usize;
            let padded = aligned_length(length);
            if length < HEADER_LENGTH
                || length > self.window.frame_length_max()
                || (offset + padded) as u64 > publisher.reader.known_bytes()
            {
                return spoiled("a fragment's length is impossible, or it was not published with its message");
            }
            message.resize(offset + padded, 0);
            publisher.reader.copy_at(offset, &mut message[offset..]);
            // As in `take_from`.
            message[offset + length..].fill(0);
            let frame = match Frame::parse(&message[offset..]).and_then(|frame| frame.verify().map(|()| frame)) {
                Ok(frame) if frame.length() == length => frame,
                Ok(_) => return spoiled("a frame changed its length while it was read"),
                Err(error) => return spoiled(&error.to_string()),
            };
            let header = frame.header();
            let begin = *first.get_or_insert(header);
            let index = frames.len();
            let Some(session_seq) = begin.session_seq.checked_add(index as u64) else {
                return spoiled("a fragment's session_seq runs over");
            };
            let expected = FrameHeader {
                session_seq,
                fragment: Fragment { index: index as u16, count: begin.fragment.count },
                ..begin
            };
            if header != expected || header.kind != Kind::Command {
                return spoiled("fragments must be commands that differ only in session_seq and index, from 0");
            }
            frames.push(offset..offset + length);
            if header.fragment.is_last() {
                break;
            }
        }
        let begin = first.expect("the loop took at least one fragment");
        let last_seq = begin.session_seq + frames.len() as u64 - 1;
        match self.window.has_room(message.len()) {
            Ok(true) => {}
            Ok(false) => {
                self.message = message;
                return Ok(Turn::WindowFull(0));
            }
            Err(error) => return spoiled(&error.to_string()),
        }
        let whole = Frame::parse(&message).expect("checked above");
        let decision = self.sequencer.decide(&whole, connection);
        if decision == Decision::Append {
            for (index, range) in frames.iter().enumerate() {
                if index > 0 {
                    let fragment = Frame::parse(&message[range.clone()]).expect("checked above");
                    let next = self.sequencer.decide(&fragment, connection);
                    assert!(next == Decision::Append, "fragments follow each other");
                }
                let (sequence, timestamp_ns) = self.sequencer.stamp(self.now.epoch_ns);
                let claim = self.window.claim(range.len())?;
                claim.copy_from_slice(&message[range.start..range.start + claim.len()]);
                stamp(claim, sequence, timestamp_ns, self.sequencer.term());
                self.window.commit(range.len(), sequence);
            }
        } else if let Some(reason) = self.answer(decision, begin.session, last_seq, 0, connection) {
            return spoiled(reason);
        }
        for range in &frames {
            self.publishers[number].reader.advance(range.len());
        }
        self.message = message;
        Ok(Turn::Taken(frames.len()))
    }

    /// Tells the service what to answer to a frame that is not appended. Returns what makes the whole
    /// ring useless.
    fn answer(
        &mut self,
        decision: Decision,
        session: u64,
        session_seq: u64,
        notices_seen: u64,
        connection: ConnectionId,
    ) -> Option<&'static str> {
        let refuse = |code, detail| ForService::Refuse { connection, session, session_seq, code, detail };
        let counter = match decision {
            Decision::Repeat => &self.links.counters.frames_repeated,
            _ => &self.links.counters.frames_refused,
        };
        counter.add(1);
        let message = match decision {
            Decision::Append => unreachable!("the caller appends"),
            Decision::Repeat => ForService::Repeat { session, session_seq, connection },
            Decision::Reopen { session, next_session_seq } => {
                self.sequencer.attach(session, connection);
                ForService::Reopen { session, next_session_seq, notices_seen, connection }
            }
            Decision::Gap { next_session_seq } => refuse(RefusalCode::Gap, next_session_seq),
            Decision::SessionUnknown => refuse(RefusalCode::SessionUnknown, 0),
            Decision::Malformed(reason) => return Some(reason),
        };
        self.tell(message);
        None
    }

    fn tell(&mut self, message: ForService) {
        self.told = true;
        let refused = self.links.service.push(message);
        assert!(refused.is_ok(), "take_from makes sure of room");
    }

    /// Appends a frame of the sequencer's own.
    fn append_own(&mut self, kind: Kind, session: u64, payload: &[u8]) -> Result<bool, StreamError> {
        let length = HEADER_LENGTH + payload.len();
        let claim = match self.window.claim(length) {
            Ok(claim) => claim,
            Err(LogError::Full { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let (sequence, timestamp_ns) = self.sequencer.stamp(self.now.epoch_ns);
        let mut writer = FrameWriter::new(claim);
        writer.payload_mut()[..payload.len()].copy_from_slice(payload);
        let term = self.sequencer.term();
        let header = FrameHeader { kind, sequence, timestamp_ns, session, term, ..FrameHeader::default() };
        writer.finish(&header, payload.len());
        self.window.commit(length, sequence);
        Ok(true)
    }

    /// Timers that are due and sessions that have expired.
    fn append_due(&mut self) -> Result<usize, StreamError> {
        let mut work = 0;
        while let Some(request) = self.links.requests.pop() {
            match request {
                ForSequencer::SetTimer { timer, deadline_ns } => self.sequencer.set_timer(timer, deadline_ns),
                ForSequencer::CancelTimer { timer, deadline_ns } => self.sequencer.cancel_timer(timer, deadline_ns),
            }
            work += 1;
        }
        while let Some((timer, deadline_ns)) = self.sequencer.take_due_timer(self.now.epoch_ns) {
            let payload = TimerFired { timer, deadline_ns }.to_bytes();
            if !self.append_own(Kind::Timer, 0, &payload)? {
                self.sequencer.set_timer(timer, deadline_ns);
                break;
            }
            work += 1;
        }
        self.expired.extend(self.sequencer.take_expired_sessions(self.now.epoch_ns));
        while let Some(session) = self.expired.last().copied() {
            if !self.append_own(Kind::SessionClose, session, &[])? {
                break;
            }
            self.expired.pop();
            work += 1;
        }
        Ok(work)
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
            self.publishers[number].reader.release();
            match outcome {
                Turn::Taken(0) if closed => self.publishers[number].done = true,
                Turn::Taken(taken) => work += taken,
                Turn::WindowFull(taken) => {
                    work += taken;
                    break;
                }
                Turn::Spoiled(reason) => self.drop_spoiled(number, &reason),
            }
        }
        if self.publishers.iter().any(|publisher| publisher.done) {
            self.publishers.retain(|publisher| !publisher.done);
            self.count_publishers();
        }
        Ok(work)
    }

    #[cold]
    fn drop_spoiled(&mut self, number: usize, reason: &str) {
        let publisher = &mut self.publishers[number];
        publisher.done = true;
        let connection = publisher.connection;
        self.links.counters.frames_refused.add(1);
        tracing::warn!(connection = connection.0, reason, "a publisher's ring is corrupt; it is dropped");
        let code = RefusalCode::Malformed;
        self.tell(ForService::Refuse { connection, session: 0, session_seq: 0, code, detail: 0 });
    }
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
            // Release: pairs with whoever waits for the last append.
            self.shared.halted.store(true, Ordering::Release);
            return Ok(0);
        }
        let before = self.window.last_sequence();
        self.told = false;
        let mut work = self.append_due()?;
        work += self.take_from_all()?;
        if self.window.last_sequence() != before {
            self.publish();
        }
        if self.window.last_sequence() != before || self.told {
            self.links.downstream.iter().for_each(Waker::wake);
        }
        Ok(work)
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let in_ns = self.sequencer.next_deadline_ns()?.saturating_sub(self.now.epoch_ns);
        Some(self.now.monotonic_ns + in_ns)
    }

    fn arm(&mut self) {
        self.publishers.iter().for_each(|publisher| publisher.reader.arm());
    }

    fn disarm(&mut self) {
        self.publishers.iter().for_each(|publisher| publisher.reader.disarm());
    }
}
