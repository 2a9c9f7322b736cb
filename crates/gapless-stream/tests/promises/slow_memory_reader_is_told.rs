//! A reader over TCP that lags behind the window: a client gets the end of its connection and a refused login, a node
//! an error.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::raw_soup::{Client, PATIENCE, counter, login, reaches};
use gapless_client::ClientError;
use gapless_client::node::{SharedMemoryOptions, Start, StreamNode, StreamNodeOptions, TcpLink, TcpOptions};
use gapless_client::polled::MessageType;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::own_loopback;
use gapless_wire::Encoding;
use std::net::SocketAddr;
use std::time::Instant;

const TYPE: MessageType = MessageType { schema: 9 << 16 | 1, encoding: Encoding::Opaque };

#[test]
fn too_slow_reader_is_told() {
    let mut options = EventStreamOptions::in_memory();
    options.window_bytes = 1 << 20;
    options.message_length_max = 64 << 10;
    options.frame_length_max = 1_376;
    let any_port = SocketAddr::from((own_loopback(), 0));
    options.tcp = Some(TcpNetwork::new(any_port, any_port));
    let stream = EventStream::start(&options).unwrap();
    let feed = options.feed_session.to_string();
    let link = stream.local_link(SharedMemoryOptions::default()).unwrap();
    let mut publisher = StreamNode::new(link, StreamNodeOptions::default());
    publisher.wait_open(PATIENCE).unwrap();

    let mut asleep = Client::connect(&stream);
    asleep.send(&login("", "", "", 1));
    asleep.accepted(&feed, 1);
    // 60 MB: more than sockets, buffers and window hold.
    for _ in 0..600 {
        for _ in 0..100 {
            publisher.publish(TYPE, &[7; 1_000]).unwrap();
        }
        publisher.poll_until(PATIENCE, "all come back", |node| node.in_flight() == 0, |_| {}).unwrap();
    }
    let mut expected = 1;
    while let Some((kind, payload)) = asleep.next() {
        if kind == b'S' {
            assert_eq!(payload[8..16], u64::to_le_bytes(expected), "until then nothing is left out");
            expected += 1;
        }
    }
    assert!(expected < 60_000, "all of it came");
    reaches(&stream, "rewind.clients_overtaken", 1);
    let mut again = Client::connect(&stream);
    again.send(&login("", "", "", expected));
    again.rejected(b'S');

    let addresses = stream.tcp_addresses().unwrap();
    let link = TcpLink::new(TcpOptions::new(addresses.command, addresses.rewind));
    let mut late = StreamNode::new(link, StreamNodeOptions::reading(Start::Sequence(expected)));
    let begun = Instant::now();
    let error = loop {
        assert!(begun.elapsed() < PATIENCE, "no error");
        if let Err(error) = late.poll(16, |_| {}) {
            break error;
        }
    };
    assert!(matches!(error, ClientError::Lapped { sequence, .. } if sequence == expected), "{error}");
    assert_eq!(counter(&stream, "rewind.malformed"), 0);
}
