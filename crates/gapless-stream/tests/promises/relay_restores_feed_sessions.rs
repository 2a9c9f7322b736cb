//! A restarted relay still knows the feed session of its oldest frames, although its journal lacks the beginning.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::node::{
    NodeEvent, NodeState, SharedMemoryLink, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions, TcpLink,
    TcpOptions,
};
use gapless_client::polled::MessageType;
use gapless_stream::event_stream::EventStream;
use gapless_stream::messages::SequencerRequest;
use gapless_stream::network::TcpNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::own_loopback;
use gapless_wire::Encoding;
use gapless_wire::feed_session::FeedSession;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const TYPE: MessageType = MessageType { schema: 3 << 16 | 1, encoding: Encoding::Opaque };

fn options(directory: &Path) -> EventStreamOptions {
    let mut options = EventStreamOptions::in_directory(directory);
    options.persistence.segment_length_bytes = 4 << 20;
    options.window_bytes = 1 << 20;
    options.message_length_max = 64 << 10;
    options.frame_length_max = 1_376;
    options.feed_session = FeedSession::new("MONDAY").unwrap();
    options
}

fn relay(directory: &Path, upstream: &Path) -> EventStream {
    let any_port = SocketAddr::from((own_loopback(), 0));
    let mut options = options(directory);
    options.tcp = Some(TcpNetwork::new(any_port, any_port));
    options.persistence.retention.bytes_max = Some(12 << 20);
    let upstream = SharedMemoryLink::new(upstream, SharedMemoryOptions::default());
    EventStream::relay(&options, Box::new(upstream), Start::First, &AtomicBool::new(false)).unwrap()
}

fn publish(publisher: &mut StreamNode<SharedMemoryLink>, count: u32) {
    for number in 0..count {
        publisher.publish(TYPE, &[7; 1_000]).unwrap();
        if number % 100 == 99 || number + 1 == count {
            publisher.poll_until(PATIENCE, "all to come back", |node| node.in_flight() == 0, |_| {}).unwrap();
        }
    }
}

fn settle(stream: &EventStream, relay: &EventStream) {
    let begun = Instant::now();
    while relay.released_sequence() < stream.released_sequence() {
        assert!(begun.elapsed() < PATIENCE, "the relay stands at {}", relay.released_sequence());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn late_nodes_read_all_kept_frames() {
    let (directory, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let stream = EventStream::start(&options(directory.path())).unwrap();
    let mut relayed = relay(beside.path(), directory.path());
    let link = SharedMemoryLink::new(directory.path(), SharedMemoryOptions::default());
    let mut publisher = StreamNode::new(link, StreamNodeOptions::default());
    publisher.wait_open(PATIENCE).unwrap();
    let begun = Instant::now();
    while relayed.reader(1).first_held().unwrap() == 1 {
        assert!(begun.elapsed() < PATIENCE, "nothing is deleted");
        publish(&mut publisher, 2_000);
        settle(&stream, &relayed);
    }
    let name = FeedSession::new("TUESDAY").unwrap();
    for rolls in [false, true] {
        if rolls {
            stream.ask(SequencerRequest::BeginFeed { name }).unwrap();
            let mut began = false;
            let begun = Instant::now();
            while !began {
                publisher.poll(64, |event| began |= matches!(event, NodeEvent::FeedBegan { .. })).unwrap();
                assert!(begun.elapsed() < PATIENCE, "Tuesday does not begin");
            }
            publish(&mut publisher, 10);
            settle(&stream, &relayed);
        }
        relayed.stop().unwrap();
        relayed = relay(beside.path(), directory.path());
        settle(&stream, &relayed);
        let addresses = relayed.tcp_addresses().unwrap();
        let link = TcpLink::new(TcpOptions::new(addresses.command, addresses.rewind));
        let mut late = StreamNode::new(link, StreamNodeOptions::reading(Start::First));
        let first = relayed.reader(1).first_held().unwrap();
        assert!(first > 1, "Monday's first frame is gone");
        let (mut met, mut feeds) = (0, Vec::new());
        let begun = Instant::now();
        while late.position() <= stream.released_sequence() || late.state() != NodeState::Live {
            assert!(begun.elapsed() < PATIENCE, "rolls {rolls}: it stands at {} of {first}", late.position());
            late.poll(256, |event| match event {
                NodeEvent::Message(_) => met += 1,
                NodeEvent::FeedBegan { feed_session, .. } => feeds.push(feed_session),
                _ => {}
            })
            .unwrap();
        }
        assert!(met >= 1_000, "{met} messages");
        assert_eq!(feeds, if rolls { vec![name] } else { vec![] });
    }
    relayed.stop().unwrap();
    drop(publisher);
    stream.stop().unwrap();
}
