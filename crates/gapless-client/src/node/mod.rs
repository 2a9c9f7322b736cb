//! [`StreamNode`]: publishes into an event stream and reads it.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`StreamNode`]: polling, and the handling of each frame |
//! | [`event`] | [`NodeEvent`]: the events delivered by a poll |
//! | [`publishing_session`] | the publishing half: numbers, unacknowledged messages, resending; no I/O |
//! | [`options`] | [`StreamNodeOptions`] |
//! | `event_decoder`, `response_decoder` | decoding a frame of the stream, and an answer of the sequencer |
//! | `closing` | closing a node's session |
//! | `derived_messages` | publishing the outputs of a deterministic service, which follow from the stream alone |
//! | `resend_buffer` | published frames that have not come back yet |
//! | `stall_detector` | when to ask the sequencer for its state, because nothing comes back |
//! | [`link`] | [`NodeLink`]: a node's connection with its sequencer, one implementation for each transport |
//! | [`datagram`] | the link by UDP: MoldUDP64 to this node alone, or to multicast groups |
//! | [`feed_receiver`] | makes a gapless stream of packets that are lost, duplicated or out of order; no I/O |
//! | [`tcp`] | the link by TCP: publishing at the command port, reading by SoupBinTCP |
//! | `upstream` | a node's messages to the sequencer over a network, and decoding the answers; no I/O |
//! | [`rewind`] | a SoupBinTCP client: a feed session from any frame |
//! | `rewind_driver` | when a node by UDP fills a large gap by such a rewind |
//! | [`shared_memory`] | the link of nodes on the sequencer's machine: a ring up, the mapped window down |
//! | [`journal`] | the link to the journal alone |
//! | [`resumption`] | a publisher that repeats its messages skips those that the stream has |
//! | `waiting` | messages about a long wait for the sequencer |
//! | [`any`] | [`AnyLink`]: the link of the configured transport |
//!
//! The path of a message: [`StreamNode::publish`] → resend buffer → link → sequencer → stream → link →
//! [`StreamNode::poll`], where its return is the acknowledgement.

pub mod any;
mod closing;
pub mod datagram;
mod derived_messages;
pub mod event;
mod event_decoder;
pub mod feed_receiver;
pub mod journal;
pub mod link;
pub mod options;
pub mod publishing_session;
mod resend_buffer;
mod response_decoder;
pub mod resumption;
pub mod rewind;
mod rewind_driver;
pub mod shared_memory;
mod stall_detector;
pub mod tcp;
mod upstream;
mod waiting;

pub use any::AnyLink;
pub use datagram::{DatagramLink, DatagramOptions};
pub use event::{Message, NodeEvent, NodeState};
pub use journal::JournalLink;
pub use link::{NodeLink, Start};
pub use options::StreamNodeOptions;
pub use publishing_session::PublisherOptions;
pub use resumption::Resumption;
pub use shared_memory::{SharedMemoryLink, SharedMemoryOptions};
pub use tcp::{TcpLink, TcpOptions};

use crate::ClientError;
use crate::message_type::{MessageType, encode};
use crate::node_progress::ProgressReport;
use event_decoder::{EventDecoder, StreamClosure, observe};
use gapless_agent::Clock;
use gapless_log::StreamIdentity;
use gapless_message::contract;
use gapless_schema::Encode;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::control::{SessionOpen, TimerFired};
use gapless_wire::{Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind};
use link::{ConnectionInfo, LinkRead};
use publishing_session::PublishingSession;
use response_decoder::{Response, take_response};
use std::time::Duration;

/// A node of an event stream. Every node reads every frame in the same order; the return of an own message acknowledges
/// it. A message that does not come back is resent, and enters the order once. It has no thread: its owner polls it.
pub struct StreamNode<L> {
    link: L,
    clock: Clock,
    options: StreamNodeOptions,
    state: NodeState,
    connected: Option<ConnectionInfo>,
    publisher: Option<PublishingSession>,
    position: u64,
    seen: SeenFrame,
    live_from: u64,
    closed: StreamClosure,
    event_decoder: EventDecoder,
    lapped: u64,
    reported_open: Option<u64>,
    busy_polls: u32,
    /// The first attempt to connect has failed; the first event reports it.
    is_waiting: bool,
}

/// A node that always finds frames to read checks its published messages in one of this many polls.
const BUSY_POLLS_PER_LOOK: u32 = 64;

impl<L: NodeLink> StreamNode<L> {
    /// Connects by `link` at the first poll; uses the fastest clock of the machine.
    #[must_use]
    pub fn new(link: L, options: StreamNodeOptions) -> Self {
        Self::with_clock(link, options, Clock::fastest().0)
    }

    /// Like [`StreamNode::new`], with another clock.
    #[must_use]
    pub fn with_clock(link: L, options: StreamNodeOptions, clock: Clock) -> Self {
        let publisher = options.publisher.map(PublishingSession::new);
        Self {
            link,
            clock,
            options,
            state: NodeState::Connecting,
            connected: None,
            publisher,
            position: 0,
            seen: SeenFrame::default(),
            live_from: 0,
            closed: StreamClosure::default(),
            event_decoder: EventDecoder::default(),
            lapped: 0,
            reported_open: None,
            busy_polls: 0,
            is_waiting: false,
        }
    }

    #[must_use]
    pub const fn state(&self) -> NodeState {
        self.state
    }

    /// Reason why the last attempt failed, while the node is [`NodeState::Connecting`]; it keeps trying. `None` over
    /// networks, where only the lack of an answer is known.
    #[must_use]
    pub fn connect_failure(&self) -> Option<String> {
        if self.state == NodeState::Connecting { self.link.connect_failure() } else { None }
    }

    /// Next sequence to be read; 0 before it is known.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Last released sequence that the node knows of.
    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.link.released_sequence()
    }

    /// `None` before the session is open.
    #[must_use]
    pub fn session(&self) -> Option<u64> {
        self.publisher.as_ref().and_then(PublishingSession::session)
    }

    /// Number of the next published frame; `None` before the session is open.
    #[must_use]
    pub fn next_session_seq(&self) -> Option<u64> {
        self.publisher.as_ref().filter(|publisher| publisher.is_open()).map(PublishingSession::next_number)
    }

    /// Frames, and session numbers, of a message of `length` bytes; `None` before the node is connected.
    #[must_use]
    pub fn frames_of(&self, length: usize) -> Option<u64> {
        let part = self.connected.as_ref()?.frame_length_max - HEADER_LENGTH;
        Some(length.div_ceil(part).max(1) as u64)
    }

    /// Published and not seen in the stream yet, without the close of the session.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.publisher.as_ref().map_or(0, PublishingSession::in_flight)
    }

    /// Frames resent so far.
    #[must_use]
    pub fn resent(&self) -> u64 {
        self.publisher.as_ref().map_or(0, PublishingSession::resent)
    }

    /// Number of times that the stream was faster than this node.
    #[must_use]
    pub const fn lapped(&self) -> u64 {
        self.lapped
    }

    /// `None` before the first connection.
    #[must_use]
    pub fn identity(&self) -> Option<StreamIdentity> {
        self.connected.map(|connected| connected.identity)
    }

    /// False for a node that only reads.
    #[must_use]
    pub const fn publishes(&self) -> bool {
        self.publisher.is_some()
    }

    #[must_use]
    pub const fn link(&self) -> &L {
        &self.link
    }

    /// Publishes `payload` as an event, sent by the next [`StreamNode::flush`] or [`StreamNode::poll`]. Returns the
    /// number of its last frame.
    ///
    /// # Errors
    /// [`ClientError::NotOpen`] before the session is open; [`ClientError::WindowFull`], [`ClientError::KeptFull`],
    /// [`ClientError::Throttled`] and [`ClientError::Halted`]: poll and retry; [`ClientError::TooLong`].
    #[inline]
    pub fn publish(&mut self, message: MessageType, payload: &[u8]) -> Result<u64, ClientError> {
        self.publish_with(message, payload.len(), |buffer| {
            buffer.copy_from_slice(payload);
            Ok(payload.len())
        })
    }

    /// Like [`StreamNode::publish`]; `encode` writes at most `length_max` bytes in place and returns the length.
    ///
    /// # Errors
    /// As for [`StreamNode::publish`], and those of `encode`.
    #[inline]
    pub fn publish_with(
        &mut self,
        message: MessageType,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, ClientError>,
    ) -> Result<u64, ClientError> {
        self.publish_frame(event_header(message), length_max, encode)
    }

    /// Like [`StreamNode::publish`], for an object of a schema.
    ///
    /// # Errors
    /// As for [`StreamNode::publish`]; the object cannot be encoded.
    pub fn publish_object<M: Encode>(&mut self, message: &M) -> Result<u64, ClientError> {
        self.publish_with(MessageType::of::<M>(), message.encoded_length(), |buffer| encode(message, buffer))
    }

    /// Like [`StreamNode::publish`], for a typed message.
    ///
    /// # Errors
    /// As for [`StreamNode::publish`]; the message cannot be encoded.
    pub fn publish_message<M: gapless_message::Message>(&mut self, message: &M) -> Result<u64, ClientError> {
        let mut payload = Vec::new();
        contract::encode_message(message, &mut payload).map_err(|error| ClientError::Encode(error.to_string()))?;
        self.publish(MessageType::typed::<M>(), &payload)
    }

    /// Sets a timer that fires once sequenced time has reached `deadline_ns`; 0 cancels it. It replaces one with the
    /// same identifier. At the stream's limit of timers (2^20) it comes back as [`NodeEvent::TimerRefused`].
    ///
    /// # Errors
    /// As for [`StreamNode::publish`].
    pub fn set_timer(&mut self, timer: u64, deadline_ns: u64) -> Result<u64, ClientError> {
        let payload = TimerFired { timer, deadline_ns }.to_bytes();
        self.publish_frame(PublishingSession::timer_header(), payload.len(), |buffer| {
            buffer.copy_from_slice(&payload);
            Ok(payload.len())
        })
    }

    #[inline]
    fn publish_frame(
        &mut self,
        header: FrameHeader,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, ClientError>,
    ) -> Result<u64, ClientError> {
        if self.closed.is_halted && self.publisher.is_some() {
            return Err(ClientError::Halted);
        }
        self.put(header, length_max, encode)
    }

    #[inline]
    fn put(
        &mut self,
        header: FrameHeader,
        length_max: usize,
        encode: impl FnOnce(&mut [u8]) -> Result<usize, ClientError>,
    ) -> Result<u64, ClientError> {
        let (Some(publisher), Some(connected)) = (&mut self.publisher, &self.connected) else {
            return Err(ClientError::NotOpen);
        };
        let frame_length_max = connected.frame_length_max;
        if HEADER_LENGTH + length_max > frame_length_max {
            let part = frame_length_max - HEADER_LENGTH;
            let needed = length_max + length_max.div_ceil(part) * (HEADER_LENGTH + 8);
            if needed > connected.message_bytes_max {
                let limit_bytes = connected.message_bytes_max / frame_length_max * part;
                return Err(ClientError::TooLong { length_bytes: length_max, limit_bytes });
            }
        }
        let now_ns = if self.options.publisher.is_some_and(|options| options.throttle.is_some()) || self.link.loses() {
            self.clock.now().monotonic_ns
        } else {
            0
        };
        publisher.publish(header, (length_max, frame_length_max), now_ns, encode)
    }

    /// Sends published frames, as far as there is room.
    ///
    /// # Errors
    /// A fatal error of the link; the next polls re-establish a lost connection.
    #[inline]
    pub fn flush(&mut self) -> Result<(), ClientError> {
        let Some(publisher) = &mut self.publisher else { return Ok(()) };
        if !matches!(self.state, NodeState::Rewinding | NodeState::Live) {
            return Ok(());
        }
        let mut any = false;
        let outcome = loop {
            let Some(frame) = publisher.next_frame() else { break Ok(()) };
            match self.link.send(frame) {
                Ok(true) => publisher.sent(),
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
            any = true;
        };
        let outcome = if any { outcome.and_then(|()| self.link.flush()) } else { outcome };
        match outcome {
            Err(ClientError::Disconnected { .. }) => {
                self.state = NodeState::Connecting;
                Ok(())
            }
            other => other,
        }
    }

    /// Sends published messages, and delivers the events of at most `limit` frames; reconnects by itself. Returns the
    /// number of frames read.
    ///
    /// # Errors
    /// Fatal errors of this node: another stream or incarnation, a lost session, frames that are no longer kept,
    /// damage. The node is then closed.
    #[inline]
    pub fn poll(&mut self, limit: usize, mut take: impl FnMut(NodeEvent<'_>)) -> Result<usize, ClientError> {
        let before = self.state;
        let outcome = self.poll_connected(limit, &mut take);
        let outcome = match outcome {
            Err(ClientError::Disconnected { .. }) if self.state != NodeState::Closed => {
                self.state = NodeState::Connecting;
                Ok(0)
            }
            Err(error) => {
                self.state = NodeState::Closed;
                Err(error)
            }
            other => other,
        };
        if self.state != before && !(before == NodeState::Connecting && self.state == NodeState::Live) {
            take(NodeEvent::State(self.state));
        }
        outcome
    }

    #[inline]
    fn poll_connected(&mut self, limit: usize, take: &mut impl FnMut(NodeEvent<'_>)) -> Result<usize, ClientError> {
        if self.state == NodeState::Closed {
            return Err(ClientError::Closed);
        }
        if self.state == NodeState::Connecting && !self.connect(take)? {
            return Ok(0);
        }
        let now_ns = self.now_ns();
        self.flush()?;
        self.receive(now_ns, take)?;
        let Self { link, publisher, closed, event_decoder, position, seen, state, live_from, .. } = self;
        let reads = link.read_each(limit, now_ns, &mut |frame| {
            check_due(frame, *position)?;
            *position += 1;
            seen.observe(frame.sequence(), frame.timestamp_ns());
            let own = observe(publisher.as_mut(), closed, frame, now_ns);
            event_decoder.decode(frame, own, take)?;
            if *state == NodeState::Rewinding && *position > *live_from {
                *state = NodeState::Live;
                take(NodeEvent::State(NodeState::Live));
            }
            Ok(())
        })?;
        if let Some(publisher) = &mut self.publisher {
            publisher.check_lost()?;
        }
        if reads.is_lapped {
            self.lapped += 1;
            self.state = NodeState::Rewinding;
            let released_sequence = self.link.released_sequence();
            self.live_from = released_sequence;
            take(NodeEvent::Lapped { sequence: self.position, released_sequence });
        }
        let count = reads.frames;
        self.busy_polls = if count == 0 { 0 } else { self.busy_polls.wrapping_add(1) };
        if self.busy_polls.is_multiple_of(BUSY_POLLS_PER_LOOK) {
            self.idle(now_ns, take)?;
        }
        self.link.note(ProgressReport {
            is_live: self.state == NodeState::Live,
            frames_resent: self.resent(),
            in_flight: self.in_flight() as u32,
        });
        self.link.tick(now_ns)?;
        Ok(count)
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        if self.link.is_timed() { self.clock.now().monotonic_ns } else { 0 }
    }

    fn idle(&mut self, now_ns: u64, take: &mut dyn FnMut(NodeEvent<'_>)) -> Result<(), ClientError> {
        // The end announced at the beginning may have been wrong.
        let live_from = self.live_from.min(self.link.released_sequence());
        if self.state == NodeState::Rewinding && self.position > live_from {
            self.state = NodeState::Live;
            take(NodeEvent::State(NodeState::Live));
        }
        if let Some(publisher) = &mut self.publisher {
            if publisher.has_absent() && !self.closed.is_halted {
                publisher.check_absent(self.clock.now().monotonic_ns)?;
            }
            if self.link.loses() {
                publisher.resend_overdue(now_ns);
            } else if publisher.take_clock_check() && !self.closed.is_halted {
                self.resend_last_frame()?;
            }
        }
        self.open_session()
    }

    /// The answer gives the last number that the sequencer has.
    #[cold]
    fn resend_last_frame(&mut self) -> Result<(), ClientError> {
        let Some(publisher) = &mut self.publisher else { return Ok(()) };
        let now_ns = self.clock.now().monotonic_ns;
        if publisher.take_due_question(now_ns)
            && let Some(frame) = publisher.last_sent()
            && self.link.send(frame)?
        {
            publisher.note_asked();
            self.link.flush()?;
        }
        Ok(())
    }

    /// [`StreamNode::poll`] without reading, for callers of [`StreamNode::next_frame`].
    ///
    /// # Errors
    /// As for [`StreamNode::poll`].
    pub fn turn(&mut self, mut take: impl FnMut(NodeEvent<'_>)) -> Result<(), ClientError> {
        self.poll(0, &mut take).map(|_| ())
    }

    /// Next frame, and whether this node published it or asked for it.
    ///
    /// # Errors
    /// As for [`StreamNode::poll`]. After a lost connection there are no frames until [`StreamNode::turn`] has
    /// reconnected.
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<(Frame<'_>, bool)>, ClientError> {
        if !matches!(self.state, NodeState::Rewinding | NodeState::Live) {
            return Ok(None);
        }
        let now_ns = self.now_ns();
        let read = match self.link.read(now_ns) {
            Err(ClientError::Disconnected { .. }) => {
                self.state = NodeState::Connecting;
                return Ok(None);
            }
            other => other?,
        };
        match read {
            LinkRead::Frame(frame) => {
                check_due(&frame, self.position)?;
                self.position += 1;
                self.seen.observe(frame.sequence(), frame.timestamp_ns());
                let own = observe(self.publisher.as_mut(), &mut self.closed, &frame, now_ns);
                Ok(Some((frame, own)))
            }
            LinkRead::Empty => Ok(None),
            LinkRead::Lapped => {
                self.lapped += 1;
                self.state = NodeState::Rewinding;
                self.live_from = self.position;
                Ok(None)
            }
        }
    }

    #[cold]
    fn connect(&mut self, take: &mut dyn FnMut(NodeEvent<'_>)) -> Result<bool, ClientError> {
        let now_ns = self.clock.now().monotonic_ns;
        // A node that has read nothing starts with the current first frame: the first one of then may be deleted.
        let has_read = self.seen.sequence != 0;
        let start = match self.options.start {
            Start::First if !has_read => Start::First,
            start if self.position == 0 => start,
            _ => Start::Sequence(self.position),
        };
        let Some(connected) = self.link.connect(start, self.seen, now_ns)? else {
            let is_first = self.connected.is_none() && !self.is_waiting;
            if is_first && self.link.connect_failure().is_some() {
                self.is_waiting = true;
                take(NodeEvent::State(NodeState::Connecting));
            }
            return Ok(false);
        };
        let expected = self.connected.map_or(self.options.identity, |before| before.identity);
        let found = connected.identity;
        if (expected.stream_id != 0 && expected.stream_id != found.stream_id)
            || (expected.incarnation != 0 && expected.incarnation != found.incarnation)
        {
            return Err(ClientError::OtherStream { peer: self.link.peer(), expected, found });
        }
        if self.seen.identity != found {
            self.seen = SeenFrame::none_seen(found);
        }
        self.connected = Some(connected);
        self.position = connected.position;
        self.live_from = connected.released_sequence;
        self.state = NodeState::Rewinding;
        if let Some(publisher) = &mut self.publisher {
            publisher.connected();
        }
        take(NodeEvent::State(NodeState::Rewinding));
        self.open_session()?;
        Ok(true)
    }

    fn open_session(&mut self) -> Result<(), ClientError> {
        let Some(publisher) = &mut self.publisher else { return Ok(()) };
        if self.state == NodeState::Connecting || publisher.is_attached() {
            return Ok(());
        }
        let now_ns = self.clock.now().monotonic_ns;
        let Some((open, session)) = publisher.due_open(now_ns) else { return Ok(()) };
        let mut frame = [0; HEADER_LENGTH + SessionOpen::LENGTH];
        let mut writer = FrameWriter::new(&mut frame);
        writer.payload_mut().copy_from_slice(&open.to_bytes());
        writer.finish(&FrameHeader { kind: Kind::SessionOpen, session, ..FrameHeader::default() }, SessionOpen::LENGTH);
        if self.link.send(&frame)? {
            self.link.flush()?;
            publisher.open_sent(now_ns);
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self, now_ns: u64, take: &mut dyn FnMut(NodeEvent<'_>)) -> Result<(), ClientError> {
        let Some(publisher) = &mut self.publisher else {
            self.link.answers(&mut |_| {})?;
            return Ok(());
        };
        let mut outcome = Ok(());
        let mut response = None;
        let count = self.link.answers(&mut |frame| match take_response(publisher, frame, now_ns) {
            Ok(answer) => response = answer.or(response.take()),
            Err(error) => outcome = Err(error),
        })?;
        if count == 0 {
            return Ok(());
        }
        outcome?;
        let session = publisher.session().filter(|_| publisher.is_open());
        if let Some(session) = session.filter(|session| self.reported_open != Some(*session)) {
            self.reported_open = Some(session);
            take(NodeEvent::Open { session, next_session_seq: publisher.next_number() });
        }
        match response {
            Some(Response::Throttled { until_ns }) => {
                let now = self.clock.now();
                publisher.hold(until_ns.saturating_sub(now.epoch_ns), now.monotonic_ns);
                take(NodeEvent::Throttled { until_ns });
            }
            Some(Response::Limit) => take(NodeEvent::Limit),
            Some(Response::NotLeader { leaders }) => self.link.on_not_leader(&leaders)?,
            None => {}
        }
        Ok(())
    }

    /// Sleeps until data arrives, or for `timeout`.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), ClientError> {
        self.flush()?;
        self.publisher.iter_mut().for_each(PublishingSession::note_slept);
        self.link.wait(timeout)
    }

    /// Messages read meanwhile are dropped.
    ///
    /// # Errors
    /// [`ClientError::NotOpen`] at once if the node only reads; [`ClientError::TimedOut`], and those of
    /// [`StreamNode::poll`].
    pub fn wait_open(&mut self, timeout: Duration) -> Result<(), ClientError> {
        if self.publisher.is_none() {
            return Err(ClientError::NotOpen);
        }
        self.poll_until(timeout, "a session open", Self::can_publish, |_| {})
    }

    /// The session is open and there is room.
    #[must_use]
    pub fn can_publish(&self) -> bool {
        let is_room = |publisher: &PublishingSession| {
            let window = self.options.publisher.map_or(0, |options| options.window_messages as usize);
            publisher.is_open() && publisher.in_flight() < window
        };
        !self.closed.is_halted && self.connected.is_some() && self.publisher.as_ref().is_some_and(is_room)
    }

    /// Polls and waits until `is_done` returns true.
    ///
    /// # Errors
    /// [`ClientError::TimedOut`] naming `request` after `timeout`, and those of [`StreamNode::poll`].
    pub fn poll_until(
        &mut self,
        timeout: Duration,
        request: &str,
        is_done: impl Fn(&Self) -> bool,
        mut take: impl FnMut(NodeEvent<'_>),
    ) -> Result<(), ClientError> {
        let deadline_ns = self.clock.now().monotonic_ns.saturating_add(timeout.as_nanos() as u64);
        loop {
            let count = self.poll(1024, &mut take)?;
            if is_done(self) {
                return Ok(());
            }
            let now_ns = self.clock.now().monotonic_ns;
            if now_ns >= deadline_ns {
                let timeout_ms = timeout.as_millis() as u64;
                let failure = self.connect_failure().or_else(|| self.link.standstill());
                let failure = failure.map(|failure| format!(" ({failure})")).unwrap_or_default();
                let peer = self.link.peer() + &failure;
                return Err(ClientError::TimedOut { peer, request: request.to_owned(), timeout_ms });
            }
            if count == 0 {
                self.publisher.iter_mut().for_each(PublishingSession::note_slept);
                self.link.wait(Duration::from_nanos(deadline_ns - now_ns).min(Duration::from_millis(1)))?;
            }
        }
    }
}

fn event_header(message: MessageType) -> FrameHeader {
    let (schema, flags) = (message.schema, message.encoding.flags());
    FrameHeader { kind: Kind::Event, schema, flags, ..FrameHeader::default() }
}

#[inline]
fn check_due(frame: &Frame<'_>, position: u64) -> Result<(), ClientError> {
    if frame.sequence() == position { Ok(()) } else { Err(is_not_due(frame.sequence(), position)) }
}

#[cold]
fn is_not_due(sequence: u64, position: u64) -> ClientError {
    ClientError::Protocol { what: format!("frame {sequence} where {position} was due") }
}
