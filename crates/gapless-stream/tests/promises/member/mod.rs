//! An ingress without threads, whose journal and releases are controlled by the test.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_agent::{Agent, Counters, Now, Waker};
use gapless_log::{GatingCursor, Releaser, Scope, StreamIdentity, Window, WindowOptions};
use gapless_stream::acceptor::{AcceptorLinks, StreamDescription};
use gapless_stream::ingress::{IngressCounters, IngressLinks};
use gapless_stream::messages::{EgressMessage, SequencerRequest};
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::sequencer_state::SequencerState;
use gapless_stream::{Acceptor, Ingress, IngressOptions, ResponderMessage, Sequencer};
use gapless_transport::Tier;
use gapless_transport::link::RingSizes;
use gapless_transport::mailbox::Mailbox;
use gapless_transport::publisher_link::PublisherLink;
use gapless_wire::{Frame, aligned_length};

pub const IDENTITY: StreamIdentity = StreamIdentity { stream_id: 5, incarnation: 1 };
pub const FRAME_LENGTH_MAX: usize = 1024;
pub const WINDOW_BYTES: usize = 1 << 16;
pub const EXPIRY_NS: u64 = 60_000_000_000;

pub const fn rules() -> SequencerRules {
    SequencerRules::of_stream(EXPIRY_NS)
}

pub struct Member {
    pub ingress: Ingress,
    pub window: Window,
    pub releaser: Releaser,
    pub cursor: GatingCursor,
    pub service: Mailbox<ResponderMessage>,
    pub requests: Mailbox<SequencerRequest>,
    delivery: Mailbox<EgressMessage>,
    acceptor: Acceptor,
}

impl Member {
    pub fn new() -> Self {
        Self::with(Sequencer::new(rules()))
    }

    pub fn with(sequencer: Sequencer) -> Self {
        let options = WindowOptions {
            capacity_bytes: WINDOW_BYTES,
            index_slots: 1024,
            frame_length_max: FRAME_LENGTH_MAX,
            identity: IDENTITY,
            ..WindowOptions::default()
        };
        let (mut writer, releaser) = options.create(sequencer.last_sequence() + 1).unwrap();
        let (window, cursor) = (writer.window(), writer.gating_cursor(Scope::Appended));
        let counters = Counters::in_memory(16).unwrap();
        let (publishers, service, requests) = (Mailbox::new(64), Mailbox::new(4096), Mailbox::new(64));
        let delivery = Mailbox::new(64);
        let acceptor_links = AcceptorLinks {
            ingress: publishers.clone(),
            egress: delivery.clone(),
            ingress_waker: Waker::new().unwrap(),
            egress_waker: Waker::new().unwrap(),
        };
        let description = StreamDescription {
            identity: IDENTITY,
            frame_length_max: FRAME_LENGTH_MAX,
            message_length_max: WINDOW_BYTES / 2,
            tier: Tier::Quorum,
            mtu: None,
        };
        let acceptor = Acceptor::start(None, description, acceptor_links, None, None, None).unwrap();
        let links = IngressLinks {
            publishers,
            service: service.clone(),
            requests: requests.clone(),
            downstream: Vec::new(),
            counters: IngressCounters::add_to(&counters).unwrap(),
        };
        let options = IngressOptions { message_bytes_max: WINDOW_BYTES / 2, ..IngressOptions::default() };
        let ingress = Ingress::new(sequencer, writer, None, links, options);
        Self { ingress, window, releaser, cursor, service, requests, delivery, acceptor }
    }

    pub fn connect(&self) -> PublisherLink {
        let rings = RingSizes { command_ring_bytes: 1 << 17, reply_ring_bytes: 1 << 12 };
        let publisher = self.acceptor.connect(rings).unwrap();
        let _ = self.delivery.pop();
        publisher
    }

    pub fn poll(&mut self, ns: u64) {
        self.ingress.poll(Now { monotonic_ns: ns, epoch_ns: ns }).unwrap();
    }

    pub fn appended(&mut self) -> Vec<u8> {
        let bytes = self.cursor.available().unwrap().to_vec();
        self.cursor.advance(bytes.len());
        bytes
    }

    pub fn release(&mut self) {
        self.releaser.release(self.window.appended(), self.window.appended_sequence());
    }

    pub fn take_over(&mut self, frames: &[u8]) {
        assert_eq!(self.ingress.append_followed(frames).unwrap(), frames.len(), "there is room");
        self.ingress.publish();
    }

    pub fn state(&self) -> SequencerState {
        SequencerState::of(self.ingress.sequencer(), IDENTITY)
    }

    pub fn told(&self) -> Vec<ResponderMessage> {
        let is_of_role =
            |told: &ResponderMessage| matches!(told, ResponderMessage::Leads { .. } | ResponderMessage::Deposed);
        self.everything_told().into_iter().filter(|told| !is_of_role(told)).collect()
    }

    pub fn everything_told(&self) -> Vec<ResponderMessage> {
        std::iter::from_fn(|| self.service.pop()).collect()
    }

    pub fn turned_away(&self) -> Vec<String> {
        let leader = |message| match message {
            ResponderMessage::NotLeader { leader, .. } => leader.to_string(),
            other => panic!("{other:?}"),
        };
        self.told().into_iter().map(leader).collect()
    }
}

pub fn frames(bytes: &[u8]) -> Vec<Frame<'_>> {
    let (mut frames, mut position) = (Vec::new(), 0);
    while position < bytes.len() {
        let frame = Frame::parse(&bytes[position..]).unwrap();
        assert_eq!(frame.verify(), Ok(()));
        position += aligned_length(frame.length());
        frames.push(frame);
    }
    frames
}

pub fn send(publisher: &mut PublisherLink, frame: &[u8]) {
    publisher.writer.append(frame).unwrap();
    let _ = publisher.writer.publish();
}
