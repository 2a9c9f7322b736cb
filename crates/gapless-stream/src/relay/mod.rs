//! [`Relay`]: in the sequencer's place, appends the received frames, with their sequences, to a window of its own. Its
//! nodes' frames go up to the sequencer, whose answers come back. It decides nothing.

pub(crate) mod feeds;
pub(crate) mod limits;
mod open_requests;

use crate::counters::counters;
pub use gapless_transport::seen_frame::SeenFrame;
use limits::RelayLimits;

use crate::egress::{CheckedPayload, Egress, SendResult};
use crate::ingress::IngressShared;
use crate::messages::PublisherEvent;
use crate::{AgentRole, StreamError};
use feeds::KeptFeeds;
use gapless_agent::wait_notices::WaitNotices;
use gapless_agent::{Agent, AgentError, Now, Waker};
use gapless_client::ClientError;
use gapless_client::feed_sessions::SharedFeeds;
use gapless_client::node::NodeLink;
use gapless_client::node::link::{LinkRead, Start};
use gapless_client::throttle::{Throttle, TokenBucket};
use gapless_log::{LogError, Releaser, RingReader, StreamIdentity, WindowWriter};
use gapless_transport::link::ConnectionId;
use gapless_transport::mailbox::Mailbox;
use gapless_wire::control::{Refusal, RefusalCode, SessionOpen, SessionOpened};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::mark::Mark;
use gapless_wire::{Frame, FrameHeader, Kind, aligned_length};
use open_requests::OpenRequests;
use rustc_hash::FxHashMap;
use rustix::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

counters! {
    pub struct RelayCounters {
        /// Last sequence that came from the stream.
        last_sequence: "relay.last_sequence",
        /// Frames of local nodes that were sent to the stream.
        frames_up: "relay.frames_up",
        /// Nodes here.
        publishers: "relay.publishers",
        /// Connections made to the stream so far.
        connections: "relay.connections",
        /// 1 while it is connected.
        connected: "relay.connected",
    }
}

struct RelayedPublisher {
    connection: ConnectionId,
    reader: RingReader,
    bucket: Option<TokenBucket>,
    /// The publisher was told that it is throttled, and nothing was taken since.
    throttle_reported: bool,
    closed: bool,
    done: bool,
}

#[derive(Default)]
struct RelayedSession {
    token: u128,
    publishers: Vec<ConnectionId>,
}

pub struct RelayLinks {
    /// Events of publishers, from the acceptor.
    pub publishers: Mailbox<PublisherEvent>,
    /// Answers to the nodes here.
    pub egress: Egress,
    /// Threads to wake after frames were appended.
    pub downstream: Vec<Waker>,
    pub feeds: SharedFeeds,
    pub(crate) kept_feeds: Option<KeptFeeds>,
    /// Limit of each node here; the sequencer sees all as one.
    pub throttle: Option<Throttle>,
    pub limits: RelayLimits,
    pub counters: RelayCounters,
}

impl RelayLinks {
    #[cold]
    fn note(&self, mark: Option<Mark<'_>>, sequence: u64) -> Result<(), StreamError> {
        let mut feeds = self.feeds.lock();
        match mark {
            Some(Mark::FeedBegan { feed_session }) => feeds.begin(feed_session, sequence),
            Some(Mark::FeedEnded { .. }) => feeds.end(sequence),
            _ => return Ok(()),
        }
        self.kept_feeds.as_ref().map_or(Ok(()), |kept| kept.write(&feeds))
    }
}

/// Agent between the stream and the window here.
pub struct Relay {
    upstream: Box<dyn NodeLink>,
    is_up: bool,
    identity: StreamIdentity,
    window: WindowWriter,
    releaser: Option<Releaser>,
    publishers: Vec<RelayedPublisher>,
    links: RelayLinks,
    shared: Arc<IngressShared>,
    opening: OpenRequests,
    sessions: FxHashMap<u64, RelayedSession>,
    /// Frames of an incomplete message; only whole messages are published.
    unpublished: usize,
    seen_frame: SeenFrame,
    pending: Vec<u8>,
    frame: Vec<u8>,
    answers: Vec<Vec<u8>>,
    released_sequence: u64,
    next_sweep_ns: u64,
    now_ns: u64,
    waits: WaitNotices,
}

const POLL_INTERVAL_NS: u64 = 2_000_000;
const FRAMES_PER_POLL: usize = 256;

impl Relay {
    /// A relay of `upstream`, connected already; `seen_frame` is the last frame relayed before.
    #[must_use]
    pub fn new(
        upstream: Box<dyn NodeLink>,
        seen_frame: SeenFrame,
        identity: StreamIdentity,
        window: WindowWriter,
        releaser: Option<Releaser>,
        links: RelayLinks,
    ) -> Self {
        let shared = Arc::new(IngressShared { feeds: links.feeds.clone(), ..IngressShared::default() });
        links.counters.connections.set(1);
        links.counters.connected.set(1);
        Self {
            upstream,
            is_up: true,
            seen_frame,
            identity,
            window,
            releaser,
            publishers: Vec::new(),
            links,
            shared,
            opening: OpenRequests::default(),
            sessions: FxHashMap::default(),
            unpublished: 0,
            pending: Vec::new(),
            frame: Vec::new(),
            answers: Vec::new(),
            released_sequence: 0,
            next_sweep_ns: 0,
            now_ns: 0,
            waits: WaitNotices::after_a_second(),
        }
    }

    #[must_use]
    pub fn shared(&self) -> Arc<IngressShared> {
        Arc::clone(&self.shared)
    }

    #[cold]
    fn connect(&mut self, now: Now) -> Result<(), StreamError> {
        let start = Start::Sequence(self.window.last_sequence() + 1);
        let Some(connected) = self.upstream.connect(start, self.seen_frame, now.monotonic_ns)? else { return Ok(()) };
        if connected.identity != self.identity {
            let (peer, expected, found) = (self.upstream.peer(), self.identity, connected.identity);
            return Err(ClientError::OtherStream { peer, expected, found }.into());
        }
        self.links.limits.check_unchanged(&connected, &self.upstream.peer())?;
        self.is_up = true;
        self.links.counters.connections.add(1);
        self.links.counters.connected.set(1);
        self.request_reopen();
        // The stream sends this frame again.
        self.pending.clear();
        Ok(())
    }

    /// Handles the loss of frames on their way up: their publishers reopen their sessions and resend the missing ones.
    #[cold]
    fn request_reopen(&mut self) {
        let sessions: Vec<_> =
            self.sessions.iter().map(|(number, session)| (*number, session.publishers.clone())).collect();
        for (session, connections) in sessions {
            for connection in connections {
                let text = "the way to the stream was lost; open the session again";
                self.refuse(connection, session, RefusalCode::SessionUnknown, 0, text);
            }
        }
        self.opening.clear();
    }

    fn refuse(&mut self, connection: ConnectionId, session: u64, code: RefusalCode, detail: u64, text: &str) {
        let mut payload = [0; 128];
        let length = Refusal { code, detail, text }.write_to(&mut payload);
        let (kind, flags) = (Kind::Reply, REFUSED_FLAG);
        let header = FrameHeader { kind, flags, session, ..FrameHeader::default() };
        // Without room for the refusal: the node resends and is answered again.
        let _ = self.links.egress.deliver(connection, &header, CheckedPayload::new(&payload[..length]));
    }

    #[inline]
    fn read_upstream(&mut self, now: Now) -> Result<usize, StreamError> {
        let mut count = 0;
        while count < FRAMES_PER_POLL || self.unpublished > 0 {
            if self.pending.is_empty() {
                match self.upstream.read(now.monotonic_ns)? {
                    LinkRead::Frame(frame) => {
                        self.pending.extend_from_slice(frame.bytes());
                        self.pending.resize(aligned_length(self.pending.len()), 0);
                    }
                    LinkRead::Empty => break,
                    LinkRead::Lapped => continue,
                }
            }
            if !self.append()? {
                break;
            }
            count += 1;
        }
        Ok(count)
    }

    /// `false` while the window is full.
    #[inline]
    fn append(&mut self) -> Result<bool, StreamError> {
        let due = self.window.last_sequence() + 1;
        let claim = match self.window.claim(self.pending.len()) {
            Ok(claim) => claim,
            Err(LogError::Full { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        claim.copy_from_slice(&self.pending);
        let frame = Frame::parse(claim).map_err(|error| ClientError::Protocol { what: error.to_string() })?;
        let (sequence, length, is_last) = (frame.sequence(), frame.length(), frame.fragment().is_last());
        let timestamp_ns = frame.timestamp_ns();
        if sequence != due {
            let what = format!("frame {sequence} where {due} was due");
            return Err(ClientError::Protocol { what }.into());
        }
        match frame.kind() {
            Kind::Mark => self.links.note(Mark::from_bytes(frame.payload()), sequence)?,
            Kind::SessionClose => {
                self.sessions.remove(&frame.session());
            }
            _ => {}
        }
        self.window.commit(length, sequence);
        self.seen_frame.observe(sequence, timestamp_ns);
        self.pending.clear();
        if is_last {
            self.unpublished = 0;
            self.window.publish();
            if let Some(releaser) = &mut self.releaser {
                releaser.release(self.window.tail(), sequence);
            }
        } else {
            self.unpublished += 1;
        }
        Ok(true)
    }

    /// The publisher is told when it has to wait.
    fn allowance(&mut self, number: usize, now: Now) -> usize {
        let publisher = &mut self.publishers[number];
        let Some(bucket) = &publisher.bucket else { return FRAMES_PER_POLL };
        let available = bucket.available(now.monotonic_ns) as usize;
        if available > 0 {
            publisher.throttle_reported = false;
            return available.min(FRAMES_PER_POLL);
        }
        if !publisher.throttle_reported && matches!(publisher.reader.next_length(), Ok(Some(_))) {
            publisher.throttle_reported = true;
            let detail = now.epoch_ns + bucket.next_ns().saturating_sub(now.monotonic_ns);
            let connection = publisher.connection;
            self.refuse(connection, 0, RefusalCode::Throttled, detail, "too many messages at once; they wait");
        }
        0
    }

    #[inline]
    fn publish_upstream(&mut self, now: Now) -> Result<usize, StreamError> {
        let mut work = 0;
        let (mut sessions_of_others, mut offenders) = (Vec::new(), Vec::new());
        'publishers: for number in 0..self.publishers.len() {
            let allowance = self.allowance(number, now);
            let publisher = &mut self.publishers[number];
            for _ in 0..allowance {
                let length = match publisher.reader.next_length() {
                    Ok(Some(length)) => length,
                    Ok(None) => {
                        publisher.done |= publisher.closed || publisher.reader.is_writer_closed();
                        break;
                    }
                    Err(error) => {
                        tracing::warn!(connection = publisher.connection.0, %error, "a publisher's ring is corrupt");
                        publisher.done = true;
                        break;
                    }
                };
                self.frame.resize(aligned_length(length), 0);
                publisher.reader.copy(&mut self.frame);
                self.frame[length..].fill(0);
                let sound = Frame::parse(&self.frame).and_then(|frame| frame.verify().map(|()| frame));
                let Some(frame) = sound.ok().filter(|frame| frame.length() == length) else {
                    tracing::warn!(connection = publisher.connection.0, "a publisher's ring is corrupt; it is dropped");
                    publisher.done = true;
                    break;
                };
                if let Err(reason) = self.links.limits.check(&frame) {
                    offenders.push((publisher.connection, frame.session(), reason));
                    publisher.done = true;
                    break;
                }
                if frame.kind() == Kind::SessionOpen {
                    if let Some(open) = SessionOpen::from_bytes(frame.payload())
                        && !self.opening.ask(
                            open.token,
                            frame.session(),
                            publisher.connection,
                            open.shared,
                            now.monotonic_ns,
                        )
                    {
                        publisher.reader.advance(length);
                        continue;
                    }
                } else if !self
                    .sessions
                    .get(&frame.session())
                    .is_some_and(|session| session.publishers.contains(&publisher.connection))
                {
                    // The sequencer sees all nodes here as one: the owner of a session is checked here.
                    sessions_of_others.push((publisher.connection, frame.session()));
                    publisher.reader.advance(length);
                    continue;
                }
                if frame.kind() == Kind::SessionClose
                    && let Some(session) = self.sessions.get(&frame.session())
                {
                    // The token may pass to a successor. Requests for its other sessions stay: on another relay they
                    // belong to other nodes.
                    self.opening.forget(session.token, publisher.connection);
                }
                if !self.upstream.send(&self.frame)? {
                    break 'publishers;
                }
                publisher.reader.advance(length);
                work += 1;
                if let Some(bucket) = &mut publisher.bucket {
                    bucket.take(1, now.monotonic_ns);
                }
            }
            publisher.reader.release();
        }
        self.publishers.iter_mut().for_each(|publisher| publisher.reader.release());
        if work > 0 {
            self.upstream.flush()?;
            self.links.counters.frames_up.add(work as u64);
        }
        sessions_of_others.dedup();
        for (connection, session) in sessions_of_others {
            let text = "the stream has no such session of this node; open it again";
            self.refuse(connection, session, RefusalCode::SessionUnknown, 0, text);
        }
        for (connection, session, reason) in offenders {
            tracing::warn!(connection = connection.0, reason, "a publisher is dropped");
            self.refuse(connection, session, RefusalCode::Malformed, 0, reason);
        }
        self.drop_done();
        Ok(work)
    }

    fn drop_done(&mut self) {
        if !self.publishers.iter().any(|publisher| publisher.done) {
            return;
        }
        for publisher in self.publishers.iter().filter(|publisher| publisher.done) {
            let gone = publisher.connection;
            self.sessions.values_mut().for_each(|session| session.publishers.retain(|connection| *connection != gone));
            self.opening.forget_from(gone);
        }
        self.sessions.retain(|_, session| !session.publishers.is_empty());
        self.publishers.retain(|publisher| !publisher.done);
        self.links.counters.publishers.set(self.publishers.len() as u64);
    }

    #[inline]
    fn deliver_answers(&mut self) -> Result<usize, StreamError> {
        let answers = &mut self.answers;
        let count = self.upstream.answers(&mut |frame| answers.push(frame.bytes().to_vec()))?;
        let (mut is_dropped, mut leaders) = (false, None);
        for bytes in std::mem::take(&mut self.answers) {
            let Ok(frame) = Frame::parse(&bytes) else { continue };
            let is_refusal = frame.flags() & REFUSED_FLAG != 0;
            let refusal = if is_refusal { Refusal::from_bytes(frame.payload()) } else { None };
            let opened = if is_refusal { None } else { SessionOpened::from_bytes(frame.payload()) };
            if let Some(refusal) = refusal.filter(|refusal| refusal.code == RefusalCode::NotLeader) {
                leaders = Some(refusal.text.to_owned());
                continue;
            }
            if refusal.is_some_and(|refusal| refusal.code == RefusalCode::Malformed) {
                is_dropped = true;
                self.drop_publishers_of(frame.session());
                if frame.session() == 0 {
                    continue;
                }
            }
            let connections = match opened {
                Some(opened) => {
                    let opening = self.opening.take_requesters(opened.token, frame.session());
                    let session = self.sessions.entry(frame.session()).or_default();
                    session.token = opened.token;
                    let known = &mut session.publishers;
                    for (connection, shared) in &opening {
                        // A publisher that takes over a session owns it alone.
                        if !shared {
                            known.clear();
                        }
                        note(known, *connection);
                    }
                    opening.into_iter().map(|(connection, _)| connection).collect()
                }
                None if refusal.is_some_and(|refusal| refusal.code == RefusalCode::Limit) => {
                    self.opening.take_refused(refusal.map_or(0, |refusal| refusal.detail))
                }
                None if frame.session() == 0 => self.publishers.iter().map(|each| each.connection).collect(),
                None => self.sessions.get(&frame.session()).map_or_else(Vec::new, |session| session.publishers.clone()),
            };
            for connection in connections {
                let payload = CheckedPayload::new(frame.payload());
                if self.links.egress.deliver(connection, &frame.header(), payload) == SendResult::RingFull {
                    tracing::debug!(connection = connection.0, "an answer finds no room; it is asked for again");
                }
            }
        }
        if let Some(leaders) = leaders {
            self.upstream.on_not_leader(&leaders)?;
            // Resent until this member leads: there is no other leader to go to.
            self.request_reopen();
        }
        if is_dropped {
            self.drop_done();
            // The sequencer takes nothing more from this connection; the others continue on a new one.
            return Err(ClientError::Disconnected { peer: self.upstream.peer(), reason: None }.into());
        }
        Ok(count)
    }

    #[cold]
    fn drop_publishers_of(&mut self, session: u64) {
        tracing::warn!(
            session,
            peer = self.upstream.peer(),
            "the sequencer has refused a frame; its publisher is dropped"
        );
        let connections = self.sessions.get(&session).map_or(&[][..], |session| session.publishers.as_slice());
        for publisher in &mut self.publishers {
            publisher.done |= connections.contains(&publisher.connection);
        }
    }

    fn take_publisher_events(&mut self) -> usize {
        let mut events = 0;
        while let Some(event) = self.links.publishers.pop() {
            events += 1;
            match event {
                PublisherEvent::Opened { connection, reader, .. } => {
                    let bucket = self.links.throttle.map(TokenBucket::new);
                    let (throttle_reported, closed, done) = (false, false, false);
                    self.publishers.push(RelayedPublisher {
                        connection,
                        reader,
                        bucket,
                        throttle_reported,
                        closed,
                        done,
                    });
                }
                PublisherEvent::Closed { connection } => {
                    let gone = self.publishers.iter_mut().find(|each| each.connection == connection);
                    gone.into_iter().for_each(|publisher| publisher.closed = true);
                }
            }
            self.links.counters.publishers.set(self.publishers.len() as u64);
        }
        events
    }

    fn turn(&mut self, now: Now) -> Result<usize, StreamError> {
        if !self.is_up {
            self.connect(now)?;
            return Ok(0);
        }
        let mut work = self.publish_upstream(now)?;
        work += self.deliver_answers()?;
        work += self.read_upstream(now)?;
        self.upstream.tick(now.monotonic_ns)?;
        Ok(work)
    }
}

/// Logs that there is no upstream yet.
pub fn log_missing_upstream(upstream: &dyn NodeLink, waited: Duration) {
    let failure = upstream.connect_failure().map(|failure| format!(": {failure}")).unwrap_or_default();
    tracing::warn!(
        waited_s = waited.as_secs(),
        "no sequencer answers at {}{failure}; it is waited for",
        upstream.peer()
    );
}

fn note(connections: &mut Vec<ConnectionId>, connection: ConnectionId) {
    if !connections.contains(&connection) {
        connections.push(connection);
    }
}

impl Agent for Relay {
    fn name(&self) -> &str {
        AgentRole::Relay.name()
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        self.now_ns = now.monotonic_ns;
        self.links.egress.refresh();
        let events = self.take_publisher_events();
        // Pairs with the thread that stops the input and then looks at the appended frames.
        if self.shared.stopped.load(Ordering::Acquire) {
            // No reader has seen an incomplete message, and the stream sends it again. Release: pairs with the thread
            // that waits for the last append.
            self.shared.halted.store(true, Ordering::Release);
            return Ok(0);
        }
        let before = self.window.last_sequence();
        let work = match self.turn(now) {
            Err(StreamError::Client(ClientError::Disconnected { .. })) => {
                tracing::info!(peer = self.upstream.peer(), "the way to the stream is lost; it is looked for again");
                self.is_up = false;
                self.links.counters.connected.set(0);
                Ok(0)
            }
            other => other,
        }?;
        if self.window.last_sequence() != before {
            self.links.counters.last_sequence.set(self.window.last_sequence());
            self.links.downstream.iter().for_each(Waker::wake);
        }
        self.links.egress.flush();
        let released_sequence = self.window.window().released_sequence();
        if released_sequence != self.released_sequence {
            self.released_sequence = released_sequence;
            self.links.egress.wake_sleepers();
        }
        if now.monotonic_ns >= self.next_sweep_ns {
            self.next_sweep_ns = now.monotonic_ns + 1_000_000_000;
            self.links.egress.drop_closed();
            self.opening.sweep(now.monotonic_ns);
            let standstill = self.upstream.standstill();
            if self.is_up && standstill.is_none() {
                self.waits.end();
            } else if let Some(waited) = self.waits.take_due(now.monotonic_ns) {
                match standstill {
                    Some(why) => tracing::warn!(waited_s = waited.as_secs(), "nothing comes: {why}; it is waited for"),
                    None => log_missing_upstream(&*self.upstream, waited),
                }
            }
        }
        // A thread that is about to sleep must announce that in a new publisher's ring, too.
        Ok(work + events)
    }

    fn arm(&mut self) {
        self.publishers.iter().for_each(|publisher| publisher.reader.arm());
    }

    fn disarm(&mut self) {
        self.publishers.iter().for_each(|publisher| publisher.reader.disarm());
    }

    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        self.upstream.watch(descriptors);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        Some(self.now_ns + POLL_INTERVAL_NS)
    }
}
