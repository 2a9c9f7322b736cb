use gapless_agent::Clock;
use gapless_client::ClientError;
use gapless_client::node::{NodeEvent, NodeLink, NodeState, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_stream::event_stream::EventStream;
use gapless_stream::messages::SequencerRequest;
use gapless_stream::options::EventStreamOptions;
use gapless_wire::Encoding;
use std::time::{Duration, Instant};

pub trait World {
    type Link: NodeLink;

    const FORGETS: bool = false;
    const LOSES: bool = false;

    /// In real time a throttled node must not wait longer than the suite's timeout, however busy the machine is.
    const THROTTLED_PER_S: u32 = 2;

    fn start(change: impl Fn(&mut EventStreamOptions) + 'static) -> Self;

    fn link(&mut self) -> Self::Link;

    fn clock(&self) -> Option<Clock> {
        None
    }

    fn stream(&self) -> &EventStream;

    fn restart(&mut self);

    fn lift_throttle(&mut self) {
        self.stream().ask(SequencerRequest::Throttle(None)).unwrap();
    }

    fn turn(&mut self) {}
}

pub struct TestNode<L> {
    pub node: StreamNode<L>,
    pub messages: Vec<ReceivedMessage>,
    pub notes: Vec<String>,
    pub states: Vec<NodeState>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    pub sequence: u64,
    pub session: u64,
    pub session_seq: u64,
    pub own: bool,
    pub payload: Vec<u8>,
}

impl ReceivedMessage {
    pub fn shared(&self) -> (u64, u64, u64, &[u8]) {
        (self.sequence, self.session, self.session_seq, &self.payload)
    }
}

pub const TYPE: MessageType = MessageType { schema: 7 << 16 | 1, encoding: Encoding::Opaque };
const PATIENCE: Duration = Duration::from_secs(120);
const QUIET_TURNS_MAX: u32 = 10;
const PAUSE: Duration = Duration::from_micros(50);
const TURNS_MAX: u64 = 4_000_000;

impl<L: NodeLink> TestNode<L> {
    pub fn new<W: World<Link = L>>(world: &mut W, options: StreamNodeOptions) -> Self {
        let link = world.link();
        let node = match world.clock() {
            Some(clock) => StreamNode::with_clock(link, options, clock),
            None => StreamNode::new(link, options),
        };
        Self { node, messages: Vec::new(), notes: Vec::new(), states: Vec::new() }
    }

    pub fn poll(&mut self) -> Result<usize, ClientError> {
        let Self { node, messages, notes, states } = self;
        node.poll(256, |event| match event {
            NodeEvent::Message(message) => messages.push(ReceivedMessage {
                sequence: message.sequence,
                session: message.session,
                session_seq: message.session_seq,
                own: message.own,
                payload: message.payload.to_vec(),
            }),
            NodeEvent::State(state) => states.push(state),
            NodeEvent::Open { next_session_seq, .. } => notes.push(format!("open {next_session_seq}")),
            NodeEvent::Timer { timer, own, timestamp_ns, deadline_ns, .. } => {
                assert!(timestamp_ns >= deadline_ns, "no timer fires early");
                notes.push(format!("timer {timer} own {own}"));
            }
            NodeEvent::TimerRefused { timer, own, .. } => notes.push(format!("timer {timer} refused own {own}")),
            NodeEvent::Halted { reason, .. } => notes.push(format!("halted {reason}")),
            NodeEvent::Resumed { .. } => notes.push("resumed".to_owned()),
            NodeEvent::FeedBegan { feed_session, .. } => notes.push(format!("feed began {feed_session}")),
            NodeEvent::FeedEnded { feed_session, .. } => notes.push(format!("feed ended {feed_session}")),
            NodeEvent::Lapped { .. } => notes.push("lapped".to_owned()),
            NodeEvent::Throttled { .. } => notes.push("throttled".to_owned()),
            NodeEvent::Limit => notes.push("limit".to_owned()),
            NodeEvent::Session { opened: true, session, .. } => notes.push(format!("session opened {session}")),
            NodeEvent::Session { session, .. } => notes.push(format!("session closed {session}")),
        })
    }

    pub fn has_noted(&self, note: &str) -> bool {
        self.notes.iter().any(|each| each == note)
    }

    pub fn publish(&mut self, payload: &[u8]) -> u64 {
        self.node.publish(TYPE, payload).expect("the node is open and has room")
    }
}

pub fn run<W: World>(
    world: &mut W,
    parties: &mut [&mut TestNode<W::Link>],
    what: &str,
    mut is_done: impl FnMut(&[&mut TestNode<W::Link>]) -> bool,
) {
    let deadline = Instant::now() + PATIENCE;
    let (mut turns, mut quiet_turns) = (0, 0);
    loop {
        world.turn();
        turns += 1;
        let mut count = 0;
        for party in parties.iter_mut() {
            count += party.poll().unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        if is_done(parties) {
            return;
        }
        if let Some(failure) = world.stream().failure() {
            panic!("{what}: the stream has failed: {failure}");
        }
        // Only turns count: a busy machine must not use up the timeout.
        if world.clock().is_some() {
            assert!(turns < TURNS_MAX, "{what}: not done in {turns} turns");
            continue;
        }
        assert!(Instant::now() < deadline, "{what}: not done in {PATIENCE:?}");
        quiet_turns = if count == 0 { quiet_turns + 1 } else { 0 };
        match quiet_turns {
            0 => {}
            1..QUIET_TURNS_MAX => std::thread::yield_now(),
            _ => std::thread::sleep(PAUSE),
        }
    }
}

pub fn open<W: World>(world: &mut W, options: StreamNodeOptions) -> TestNode<W::Link> {
    let mut party = TestNode::new(world, options);
    run(world, &mut [&mut party], "a session opens", |parties| parties[0].node.can_publish());
    party
}

pub fn settle<W: World>(world: &mut W, parties: &mut [&mut TestNode<W::Link>]) {
    run(world, parties, "everything comes back", |parties| parties.iter().all(|party| party.node.in_flight() == 0));
    let last = parties.iter().map(|party| party.node.position()).max().unwrap_or(0);
    run(world, parties, "everybody catches up", |parties| parties.iter().all(|party| party.node.position() >= last));
}

pub fn payload(number: u64, length: usize) -> Vec<u8> {
    let byte = |index: u64| (number.wrapping_mul(31) ^ index.wrapping_mul(7) ^ length as u64) as u8;
    // Tests are not optimised.
    let mut bytes: Vec<u8> = (0..length.min(256) as u64).map(byte).collect();
    while bytes.len() < length {
        bytes.extend_from_within(..bytes.len().min(length - bytes.len()));
    }
    bytes
}
