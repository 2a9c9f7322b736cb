//! [`PublishingNode`]: a shipped node that publishes through any accepting member, and resends unacknowledged messages
//! through the next one. [`MemberLink`], its in-process link, is replaced when a member is gone or does not lead.

use crate::checker::Violation;
use crate::random::Random;
use crate::reference::ReferenceAnswers;
use crate::system_under_test::SystemUnderTest;
use crate::trace::hash_of;
use crate::workload::{Workload, message_of};
use gapless_agent::Clock;
use gapless_client::ClientError;
use gapless_client::node::link::{ConnectionInfo, LinkRead};
use gapless_client::node::{
    NodeEvent, NodeLink, PublisherOptions, SharedMemoryLink, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions,
};
use gapless_client::node_progress::ProgressReport;
use gapless_log::StreamIdentity;
use gapless_stream::event_stream::EventStream;
use gapless_transport::link::RingSizes;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::Frame;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const RINGS: RingSizes = RingSizes { command_ring_bytes: 128 << 10, reply_ring_bytes: 32 << 10 };

#[derive(Default)]
struct LinkHandover {
    is_wanted: bool,
    is_gone: bool,
    offer: Option<SharedMemoryLink>,
}

/// Link to one member after the other.
struct MemberLink {
    handover: Arc<Mutex<LinkHandover>>,
    link: Option<SharedMemoryLink>,
}

fn lock(handover: &Mutex<LinkHandover>) -> MutexGuard<'_, LinkHandover> {
    handover.lock().unwrap_or_else(PoisonError::into_inner)
}

fn disconnected() -> ClientError {
    ClientError::Disconnected { peer: "a member".to_owned(), reason: None }
}

impl MemberLink {
    fn up(&mut self) -> Result<&mut SharedMemoryLink, ClientError> {
        if std::mem::take(&mut lock(&self.handover).is_gone) {
            self.link = None;
        }
        self.link.as_mut().ok_or_else(disconnected)
    }
}

impl NodeLink for MemberLink {
    fn connect(&mut self, start: Start, seen: SeenFrame, now_ns: u64) -> Result<Option<ConnectionInfo>, ClientError> {
        let offer = {
            let mut handover = lock(&self.handover);
            handover.is_gone = false;
            handover.is_wanted = true;
            handover.offer.take()
        };
        let Some(mut link) = offer else { return Ok(None) };
        // A member that has just begun to catch up is useless to a node that has read more.
        if let Start::Sequence(sequence) = start
            && sequence > 1
        {
            link.connect(Start::Live, SeenFrame::default(), now_ns)?;
            if link.released_sequence() + 1 < sequence {
                return Ok(None);
            }
        }
        let connected = link.connect(start, seen, now_ns)?;
        if connected.is_some() {
            lock(&self.handover).is_wanted = false;
            self.link = Some(link);
        }
        Ok(connected)
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError> {
        self.up()?.send(frame)
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        self.up()?.flush()
    }

    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError> {
        self.up()?.answers(take)
    }

    fn read(&mut self, now_ns: u64) -> Result<LinkRead<'_>, ClientError> {
        self.up()?.read(now_ns)
    }

    fn released_sequence(&self) -> u64 {
        self.link.as_ref().map_or(0, NodeLink::released_sequence)
    }

    fn loses(&self) -> bool {
        false
    }

    fn note(&mut self, progress: ProgressReport) {
        if let Some(link) = &mut self.link {
            link.note(progress);
        }
    }

    fn on_not_leader(&mut self, _: &str) -> Result<(), ClientError> {
        self.link = None;
        Err(disconnected())
    }

    fn tick(&mut self, now_ns: u64) -> Result<(), ClientError> {
        self.up()?.tick(now_ns)
    }

    fn wait(&mut self, _: Duration) -> Result<(), ClientError> {
        Ok(())
    }

    fn peer(&self) -> String {
        "a member".to_owned()
    }
}

pub(crate) struct PublishingNode {
    number: u64,
    seed: u64,
    node: StreamNode<MemberLink>,
    handover: Arc<Mutex<LinkHandover>>,
    clock: Clock,
    at: Option<u64>,
    /// `None` until the stream has reported it.
    next: Option<u64>,
    /// Own messages read since the last start.
    read: u64,
    /// Own messages of any life, which are acknowledged for good.
    acknowledged: u64,
    messages: u64,
}

impl PublishingNode {
    pub(crate) fn new(seed: u64, number: u64, messages: u64, clock: Clock) -> Self {
        let (node, handover) = node(seed, number, &clock);
        Self { number, seed, node, handover, clock, at: None, next: None, read: 0, acknowledged: 0, messages }
    }

    /// Returns the message whose first session number is `session_seq`.
    fn message_at(&self, application: &impl SystemUnderTest, session_seq: u64) -> Result<u64, Violation> {
        let (mut index, mut number) = (0, 1);
        while number < session_seq {
            let (_, payload) = message_of(application, self.seed, self.number, index);
            let frames = self.node.frames_of(payload.len());
            number += frames.ok_or_else(|| "a session is open without a connection".to_owned())?;
            index += 1;
        }
        if number == session_seq && index <= self.messages {
            return Ok(index);
        }
        Err(format!("publisher {}: its session goes on at {session_seq}, which begins no message", self.number))
    }
}

impl<A: SystemUnderTest> Workload<A> for PublishingNode {
    fn restart(&mut self) {
        (self.node, self.handover) = node(self.seed, self.number, &self.clock);
        (self.at, self.next, self.read) = (None, None, 0);
    }

    fn is_done(&self) -> bool {
        self.acknowledged >= self.messages
    }

    fn is_searching(&self) -> bool {
        let handover = lock(&self.handover);
        handover.is_wanted && handover.offer.is_none()
    }

    fn connected_member(&self) -> Option<u64> {
        self.at
    }

    fn connect_to(&mut self, member: u64, stream: &EventStream) -> Result<(), Violation> {
        let options = SharedMemoryOptions { rings: RINGS, ..SharedMemoryOptions::default() };
        let link = stream.local_link(options).map_err(|error| error.to_string())?;
        lock(&self.handover).offer = Some(link);
        self.at = Some(member);
        Ok(())
    }

    fn disconnect(&mut self) {
        let mut handover = lock(&self.handover);
        (handover.is_gone, handover.offer) = (true, None);
        self.at = None;
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    fn describe(&self) -> String {
        let (number, acknowledged, messages) = (self.number, self.acknowledged, self.messages);
        format!("  publisher {number}: {acknowledged} of {messages} acknowledged, at member {:?}", self.at)
    }

    fn poll(&mut self, _: u64, application: &A, _: &ReferenceAnswers, random: &mut Random) -> Result<usize, Violation> {
        if let Some(next) = self.next
            && next < self.messages
            && self.node.can_publish()
            && random.happens_per_100_000(30_000)
        {
            let (message, payload) = message_of(application, self.seed, self.number, next);
            match self.node.publish(message, &payload) {
                Ok(_) => self.next = Some(next + 1),
                Err(ClientError::WindowFull { .. } | ClientError::KeptFull { .. } | ClientError::NotOpen) => {}
                Err(error) => return Err(format!("publisher {}: {error}", self.number)),
            }
        }
        let (number, seed) = (self.number, self.seed);
        let (mut read, mut opened, mut broken) = (self.read, None, None);
        let polled = self.node.poll(64, |event| match event {
            NodeEvent::Message(found) if found.own => {
                let (_, payload) = message_of(application, seed, number, read);
                if hash_of(found.payload) != hash_of(&payload) && broken.is_none() {
                    let sequence = found.sequence;
                    broken = Some(format!("publisher {number}: its message {read} came back otherwise, at {sequence}"));
                }
                read += 1;
            }
            NodeEvent::Open { next_session_seq, .. } => opened = Some(next_session_seq),
            _ => {}
        });
        self.read = read;
        self.acknowledged = self.acknowledged.max(read);
        let polled = polled.map_err(|error| format!("publisher {number}: {error}"))?;
        if let Some(broken) = broken {
            return Err(broken);
        }
        if let (None, Some(next_session_seq)) = (self.next, opened) {
            self.next = Some(self.message_at(application, next_session_seq)?);
        }
        Ok(polled)
    }
}

fn node(seed: u64, number: u64, clock: &Clock) -> (StreamNode<MemberLink>, Arc<Mutex<LinkHandover>>) {
    let mut random = Random::of(seed, &[8, number]);
    let token = u128::from(random.number()) << 64 | u128::from(random.number());
    let publisher = PublisherOptions {
        token,
        shared: false,
        window_messages: 64,
        kept_bytes_max: 1 << 20,
        throttle: None,
        resend_interval_ns: 20_000_000,
    };
    let options =
        StreamNodeOptions { start: Start::First, publisher: Some(publisher), identity: StreamIdentity::default() };
    let handover = Arc::<Mutex<LinkHandover>>::default();
    let link = MemberLink { handover: Arc::clone(&handover), link: None };
    (StreamNode::with_clock(link, options, clock.clone()), handover)
}
