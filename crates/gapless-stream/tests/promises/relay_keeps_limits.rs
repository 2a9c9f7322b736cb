//! A relay announces the common limits of itself and the stream, does not start if the stream's messages do not fit,
//! and drops only a publisher of refused frames.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::raw_publisher::{Answer, PATIENCE, RawPublisher, event, frame, part};
use gapless_client::ClientError;
use gapless_client::node::{
    NodeEvent, SharedMemoryLink, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions, TcpLink, TcpOptions,
};
use gapless_client::polled::MessageType;
use gapless_stream::StreamError;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::own_loopback;
use gapless_wire::control::{RefusalCode, TimerFired};
use gapless_wire::{Encoding, FrameHeader, Kind};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TYPE: MessageType = MessageType { schema: 3 << 16 | 1, encoding: Encoding::Opaque };

fn options(directory: &Path, frame_length_max: usize, message_length_max: usize) -> EventStreamOptions {
    let mut options = EventStreamOptions::in_directory(directory);
    options.persistence.segment_length_bytes = 4 << 20;
    options.window_bytes = 8 << 20;
    (options.frame_length_max, options.message_length_max) = (frame_length_max, message_length_max);
    options
}

struct Origin {
    directory: TempDir,
    network: TcpNetwork,
    stream: Option<EventStream>,
}

impl Origin {
    fn start(message_length_max: usize) -> Self {
        let any_port = SocketAddr::from((own_loopback(), 0));
        let network = TcpNetwork::new(any_port, any_port);
        let mut origin = Self { directory: tempfile::tempdir().unwrap(), network, stream: None };
        origin.restart(1_376, message_length_max);
        origin
    }

    fn restart(&mut self, frame_length_max: usize, message_length_max: usize) {
        self.stream = None;
        let mut options = options(self.directory.path(), frame_length_max, message_length_max);
        options.tcp = Some(self.network.clone());
        let stream = EventStream::start(&options).unwrap();
        let addresses = stream.tcp_addresses().unwrap();
        (self.network.command, self.network.rewind) = (addresses.command, addresses.rewind);
        self.stream = Some(stream);
    }

    fn relay(&self, options: &EventStreamOptions) -> Result<EventStream, StreamError> {
        let link = TcpLink::new(TcpOptions::new(self.network.command, self.network.rewind));
        EventStream::relay(options, Box::new(link), Start::First, &AtomicBool::new(false))
    }
}

fn node(relay: &EventStream) -> StreamNode<SharedMemoryLink> {
    let link = relay.local_link(SharedMemoryOptions::default()).unwrap();
    let mut node = StreamNode::new(link, StreamNodeOptions { start: Start::Live, ..StreamNodeOptions::default() });
    node.wait_open(PATIENCE).unwrap();
    node
}

fn publish(node: &mut StreamNode<SharedMemoryLink>, payload: &[u8]) {
    let begun = Instant::now();
    while !node.can_publish() {
        node.poll(64, |_| {}).unwrap();
        assert!(begun.elapsed() < PATIENCE, "the node may not publish");
    }
    node.publish(TYPE, payload).unwrap();
    let mut came = false;
    while !came {
        node.poll(64, |event| {
            if let NodeEvent::Message(message) = event {
                came |= message.own && message.payload == payload;
            }
        })
        .unwrap();
        assert!(begun.elapsed() < PATIENCE, "{} bytes do not come back", payload.len());
    }
}

#[test]
fn nodes_get_the_common_limits() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let origin = Origin::start(100_000);
    let relay = origin.relay(&options(directories[0].path(), 32 << 10, 1 << 20)).unwrap();
    let mut node = self::node(&relay);
    publish(&mut node, &vec![1; 20_000]);
    publish(&mut node, &vec![2; 100_000]);
    assert!(matches!(node.publish(TYPE, &vec![3; 110_000]), Err(ClientError::TooLong { .. })));
    publish(&mut node, b"goes on");
    let shorter = origin.relay(&options(directories[1].path(), 1_376, 10_000)).unwrap();
    let mut other = self::node(&shorter);
    publish(&mut other, &vec![4; 10_000]);
    assert!(matches!(other.publish(TYPE, &vec![5; 11_000]), Err(ClientError::TooLong { .. })));
    publish(&mut node, &vec![6; 100_000]);
    let (begun, mut came) = (Instant::now(), false);
    while !came {
        other
            .poll(64, |event| {
                if let NodeEvent::Message(message) = event {
                    came |= message.payload.len() == 100_000;
                }
            })
            .unwrap();
        assert!(begun.elapsed() < PATIENCE, "the long message of another node does not come");
    }
    drop((node, other));
    relay.stop().unwrap();
    shorter.stop().unwrap();
}

#[test]
fn too_small_relay_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    let origin = Origin::start(1 << 20);
    let mut small = options(directory.path(), 1_376, 64 << 10);
    small.window_bytes = 2 << 20;
    let error = origin.relay(&small).err().unwrap();
    assert!(matches!(error, StreamError::Option { option: "window_bytes", .. }), "{error}");
    assert!(error.to_string().contains("4194304 are needed"), "{error}");
    small.window_bytes = 4 << 20;
    origin.relay(&small).unwrap().stop().unwrap();
    let error = origin.relay(&options(directory.path(), 1_000, 64 << 10)).err().unwrap();
    assert!(matches!(error, StreamError::Option { option: "frame_length_max", .. }), "{error}");
}

#[test]
fn lowered_limits_end_relays() {
    let directory = tempfile::tempdir().unwrap();
    let mut origin = Origin::start(100_000);
    let relay = origin.relay(&options(directory.path(), 1_376, 100_000)).unwrap();
    let mut node = self::node(&relay);
    publish(&mut node, b"before");
    origin.restart(1_376, 50_000);
    let begun = Instant::now();
    let failure = loop {
        if let Some(failure) = relay.failure() {
            break failure.to_string();
        }
        assert!(begun.elapsed() < PATIENCE, "the relay goes on");
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(failure.contains("start the relay again"), "{failure}");
}

#[test]
fn only_faulty_publisher_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let origin = Origin::start(100_000);
    let relay = origin.relay(&options(directory.path(), 32 << 10, 1 << 20)).unwrap();
    let mut honest = node(&relay);
    let request = |session, payload: &[u8]| {
        let header = FrameHeader { kind: Kind::TimerRequest, session, session_seq: 1, ..FrameHeader::default() };
        frame(&header, payload)
    };
    let timer = TimerFired { timer: 1, deadline_ns: 1 }.to_bytes();
    let reply =
        |session| frame(&FrameHeader { kind: Kind::Reply, session, session_seq: 1, ..FrameHeader::default() }, b"");
    let offences: [&dyn Fn(u64) -> Vec<Vec<u8>>; 8] = [
        &|session| vec![event(session, 1, &[1; 2_000])],
        &|session| vec![part(session, 1, 0, 100, 1_300)],
        &|session| vec![event(session, 0, b"no number")],
        &|session| vec![request(session, &timer[1..])],
        &|session| vec![reply(session)],
        &|_| vec![frame(&FrameHeader { kind: Kind::SessionOpen, ..FrameHeader::default() }, b"nonsense")],
        // Faults that a single frame does not show.
        &|session| vec![part(session, 1, 1, 3, 100)],
        &|session| vec![part(session, 1, 0, 3, 100), event(session, 2, b"left unfinished")],
    ];
    for (number, offence) in offences.iter().enumerate() {
        let mut offender = RawPublisher::connect(&relay);
        let session = offender.open(1_000 + number as u128);
        publish(&mut honest, b"before");
        offence(session).iter().for_each(|frame| offender.send(frame));
        let refused = offender.answer();
        assert!(matches!(refused, Answer::Refused { code: RefusalCode::Malformed, .. }), "{number}: {refused:?}");
        let begun = Instant::now();
        while !offender.is_dropped() {
            assert!(begun.elapsed() < PATIENCE, "{number}: it is not dropped");
            std::thread::yield_now();
        }
        publish(&mut honest, format!("after offence {number}").as_bytes());
        publish(&mut node(&relay), b"somebody new");
    }
    drop(honest);
    relay.stop().unwrap();
}
