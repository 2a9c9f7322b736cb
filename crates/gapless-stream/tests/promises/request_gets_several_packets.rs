//! A minimal client catches up with few requests; a node, which requests the rest itself, gets hardly any duplicates.

use crate::memory_world::{TYPE, World};
use crate::raw_soup::{PATIENCE, counter, reaches};
use gapless_client::node::{SharedMemoryOptions, Start, StreamNode, StreamNodeOptions};
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::endpoints::PacketNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::free_address;
use gapless_wire::FeedSession;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const MESSAGES: u64 = 5_000;

fn request(sequence: u64, count: u16) -> Vec<u8> {
    [&b"MONDAY    "[..], &sequence.to_be_bytes(), &count.to_be_bytes()].concat()
}

fn range(packet: &[u8]) -> (u64, u64) {
    assert_eq!(&packet[..10], b"MONDAY    ");
    let sequence = u64::from_be_bytes(packet[10..18].try_into().unwrap());
    let count = u16::from_be_bytes([packet[18], packet[19]]);
    let mut rest = &packet[20..];
    for _ in 0..count {
        let length = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
        rest = &rest[2 + length..];
    }
    assert!(rest.is_empty(), "{} bytes after the last message", rest.len());
    (sequence, u64::from(count))
}

fn stream() -> (EventStream, SocketAddr) {
    let mut options = EventStreamOptions::in_memory();
    options.frame_length_max = 1_376;
    options.message_length_max = 64 << 10;
    options.feed_session = FeedSession::new("MONDAY").unwrap();
    let network = PacketNetwork::udp(free_address(), free_address());
    options.packets = Some(network.clone());
    let stream = EventStream::start(&options).unwrap();
    let link = stream.local_link(SharedMemoryOptions::default()).unwrap();
    let mut node = StreamNode::new(link, StreamNodeOptions::default());
    node.wait_open(PATIENCE).unwrap();
    for number in 0..MESSAGES {
        while node.publish(TYPE, &number.to_le_bytes()).is_err() {
            node.poll(1_024, |_| {}).unwrap();
        }
    }
    node.poll_until(PATIENCE, "all come back", |node| node.in_flight() == 0, |_| {}).unwrap();
    (stream, network.request)
}

fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> Option<usize> {
    match socket.recv(buffer) {
        Ok(length) => Some(length),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn minimal_client_catches_up() {
    let (stream, at) = stream();
    let last = stream.released_sequence();
    assert!(last >= MESSAGES);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(at).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 2_048];
    client.send(&request(1, 600)).unwrap();
    let (mut next, mut packets) = (1, 0);
    while next <= 600 {
        let length = receive(&client, &mut buffer).expect("the next packet");
        let (sequence, count) = range(&buffer[..length]);
        assert_eq!(sequence, next);
        next += count;
        packets += 1;
    }
    assert_eq!(next, 601, "no more than was asked for");
    assert!(packets > 10, "{packets} packets");
    reaches(&stream, "replayer.packets_further", packets - 1);
    assert_eq!(counter(&stream, "replayer.requests_answered"), 1);
    // Left out by the allowance, or lost by the machine.
    client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let (begun, mut requests) = (Instant::now(), 0);
    while next <= last {
        assert!(begun.elapsed() < 4 * PATIENCE, "{next} of {last}");
        let until = (next + 600).min(last + 1);
        client.send(&request(next, (until - next) as u16)).unwrap();
        requests += 1;
        while next < until
            && let Some(length) = receive(&client, &mut buffer)
        {
            let (sequence, count) = range(&buffer[..length]);
            if sequence == next {
                next += count;
            }
        }
    }
    assert!(requests < 60, "{requests} requests for {} messages", last - 600);
}

#[test]
fn next_request_replaces_the_rest() {
    let mut world = World::new();
    let publisher = world.node(StreamNodeOptions::default());
    let reader = world.node(StreamNodeOptions::reading(Start::First));
    let both = [publisher, reader];
    world.until(&both, "both are in", |world| world.nodes[0].can_publish());
    // The operating system keeps only the first part for a reader that does not poll.
    world.memory.set_queue_bytes_max(60_000);
    for number in 0..180u64 {
        for _ in 0..10 {
            world.nodes[publisher].publish(TYPE, &[number as u8; 64]).unwrap();
        }
        world.step(&[publisher]);
    }
    world.until(&[publisher], "the publisher has all", |world| world.read[0] == 1_800);
    world.memory.set_queue_bytes_max(4 << 20);
    for _ in 0..4 {
        world.step(&both);
    }
    assert_eq!(counter(&world.stream, "replayer.frames"), 0, "no heartbeat has told of the rest yet");
    let lost = 1_800 - world.read[reader];
    assert!((800..1_700).contains(&lost), "{lost}");
    world.until(&both, "the reader has all", |world| world.read[1] == 1_800);
    let counts = world.nodes[reader].link().counts();
    let (sent, further) =
        (counter(&world.stream, "replayer.frames"), counter(&world.stream, "replayer.packets_further"));
    assert!(further > 0 && counts.frames_rewound == 0, "{further} {counts:?}");
    assert!(sent < lost + 300, "{sent} frames were sent for {lost} that were lost: {counts:?}");
}
