//! A hostile publisher spoils its own ring and no later data of others.

use crate::input::{FuzzInput, assert_says_something, heal_frames, whole_words};
use gapless_agent::{Agent, Counters, Now, Waker};
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_log::{Scope, StreamIdentity, WindowOptions};
use gapless_stream::acceptor::{AcceptorLinks, StreamDescription};
use gapless_stream::ingress::{IngressCounters, IngressLinks};
use gapless_stream::messages::{EgressMessage, PublisherEvent};
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::{Acceptor, Ingress, IngressOptions, ResponderMessage, Sequencer};
use gapless_transport::Tier;
use gapless_transport::link::RingSizes;
use gapless_transport::mailbox::Mailbox;
use gapless_wire::{Encoding, Frame, HEADER_LENGTH, aligned_length};

const RING_LENGTH: usize = 4096;
const FRAME_LENGTH_MAX: usize = 1024;
const PART_LENGTH_MAX: usize = RING_LENGTH / 2;

const HEALED: u8 = 1;
const APART: u8 = 2;

/// Input: mode, then the ring's content.
pub fn ingress(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let mode = input.byte();
    let mut frames = whole_words(input.rest(), 16 * PART_LENGTH_MAX);
    if mode & HEALED != 0 {
        heal_frames(&mut frames);
    }
    let options = WindowOptions {
        capacity_bytes: 1 << 16,
        index_slots: 1024,
        frame_length_max: FRAME_LENGTH_MAX,
        ..WindowOptions::default()
    };
    let (mut window, releaser) = options.create(1).expect("a small window can be made");
    let mut cursor = window.gating_cursor(Scope::Appended);
    let counters = Counters::in_memory(16).expect("a few counters can be made");
    let (publishers, service) = (Mailbox::new(4), Mailbox::new(1024));
    let (_, delivery_messages, acceptor) = acceptor(publishers.clone());
    let links = IngressLinks {
        publishers,
        service: service.clone(),
        requests: Mailbox::new(4),
        downstream: Vec::new(),
        counters: IngressCounters::add_to(&counters).expect("there is room for them"),
    };
    let mut ingress = Ingress::new(
        Sequencer::new(SequencerRules::of_service(1 << 40)),
        window,
        Some(releaser),
        links,
        IngressOptions::default(),
    );
    let link = RingSizes { command_ring_bytes: RING_LENGTH, reply_ring_bytes: RING_LENGTH };
    let mut publisher = acceptor.connect(link).expect("rings can be made");
    let _ = delivery_messages.pop();

    let mut due = 1;
    let part_length = if mode & APART != 0 { HEADER_LENGTH + 32 } else { PART_LENGTH_MAX };
    for (round, part) in (1..).zip(frames.chunks(part_length)) {
        if publisher.writer.append(&at_least_a_header(part)).is_err() {
            break;
        }
        let _ = publisher.writer.publish();
        for _ in 0..3 {
            let now = Now { monotonic_ns: round, epoch_ns: round };
            ingress.poll(now).expect("the sequencer lives, whatever a publisher does");
        }
        let appended = cursor.available().expect("nothing is truncated");
        due = check_appended(appended, due);
        let length = appended.len();
        cursor.advance(length);
        while let Some(message) = service.pop() {
            let _: ResponderMessage = message;
        }
    }
}

fn check_appended(mut bytes: &[u8], mut due: u64) -> u64 {
    while !bytes.is_empty() {
        let frame = Frame::parse(bytes).expect("what is appended is a frame");
        assert_eq!(frame.verify(), Ok(()));
        assert_eq!(frame.sequence(), due, "sequences are gapless");
        assert!(frame.length() <= FRAME_LENGTH_MAX);
        let (padded, rest) = bytes.split_at(aligned_length(frame.length()));
        assert!(padded[frame.length()..].iter().all(|byte| *byte == 0), "frame {due}: its padding is not zero");
        (bytes, due) = (rest, due + 1);
    }
    due
}

/// The least that the ring's writer accepts.
fn at_least_a_header(part: &[u8]) -> Vec<u8> {
    let mut part = part.to_vec();
    part.resize(part.len().max(HEADER_LENGTH), 0);
    part
}

type Outbox = Mailbox<EgressMessage>;

fn acceptor(ingress: Mailbox<PublisherEvent>) -> (Mailbox<PublisherEvent>, Outbox, Acceptor) {
    let delivery = Mailbox::new(4);
    let waker = || Waker::new().expect("a waker can be made");
    let links = AcceptorLinks {
        ingress: ingress.clone(),
        egress: delivery.clone(),
        ingress_waker: waker(),
        egress_waker: waker(),
    };
    let description = StreamDescription {
        identity: StreamIdentity { stream_id: 1, incarnation: 1 },
        frame_length_max: FRAME_LENGTH_MAX,
        message_length_max: 1 << 16,
        tier: Tier::Memory,
        mtu: None,
    };
    let acceptor =
        Acceptor::start(None, description, links, None, None, None).expect("an acceptor without a socket can be made");
    (ingress, delivery, acceptor)
}

pub const TOKEN: u128 = 5;
pub const SESSION: u64 = 1;

/// Input: mode, then the ring's content.
pub fn client(bytes: &[u8]) {
    let mut input = FuzzInput(bytes);
    let mode = input.byte();
    let mut frames = whole_words(input.rest(), 16 * PART_LENGTH_MAX);
    if mode & HEALED != 0 {
        heal_frames(&mut frames);
    }
    let (_ingress, delivery, acceptor) = acceptor(Mailbox::new(4));
    let link = RingSizes { command_ring_bytes: 1 << 16, reply_ring_bytes: RING_LENGTH };
    let options = ClientOptions { link, ..ClientOptions::default() };
    let mut client = acceptor.client(options).expect("rings can be made");
    let Some(EgressMessage::Opened { mut writer, .. }) = delivery.pop() else {
        panic!("the acceptor tells of a client")
    };
    let key = client.begin_session(TOKEN, 4).expect("there is room for one frame");
    let message = MessageType { schema: 1, encoding: Encoding::Opaque };

    let part_length = if mode & APART != 0 { HEADER_LENGTH + 32 } else { PART_LENGTH_MAX };
    for part in frames.chunks(part_length) {
        if writer.append(&at_least_a_header(part)).is_err() {
            break;
        }
        let _ = writer.publish();
        for _ in 0..PART_LENGTH_MAX / HEADER_LENGTH + 1 {
            match client.poll(8, |incoming| assert!(!format!("{incoming:?}").is_empty())) {
                Ok(0) => break,
                Ok(messages) => assert!(messages <= 8),
                Err(error) => return assert_says_something(&error),
            }
        }
        assert!(client.in_flight(key) <= 4);
        if client.can_send(key)
            && let Err(error) = client.send(key, message, 1500, |buffer| Ok(buffer.len().min(1500)))
        {
            assert_says_something(&error);
        }
        if let Some(next) = client.next_session_seq(key)
            && let Err(error) = client.repeat(key, next.wrapping_sub(1))
        {
            assert_says_something(&error);
        }
    }
}
