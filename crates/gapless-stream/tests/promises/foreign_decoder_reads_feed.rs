//! tshark decodes captured packets of a running stream to the journal's contents: also heartbeats, the end of a session
//! and requests. Skipped without tshark.

#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

mod capture;
mod tshark;

use self::capture::{CapturedPacket, Tap};
use self::tshark::DecodedPacket;
use gapless_client::node::{
    DatagramLink, DatagramOptions, NodeLink, SharedMemoryLink, SharedMemoryOptions, Start, StreamNode,
    StreamNodeOptions,
};
use gapless_client::polled::MessageType;
use gapless_journal::JournalReader;
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::messages::SequencerRequest;
use gapless_stream::network::endpoints::{Carrier, PacketNetwork};
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::{free_address, multicast_group};
use gapless_transport::network::{Interface, Segmentation, UdpSocket};
use gapless_wire::feed_session::FeedSession;
use gapless_wire::mark::Mark;
use gapless_wire::{Encoding, Kind, mold};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const PATIENCE: Duration = Duration::from_secs(60);
const MESSAGES: usize = 600;
const LENGTHS: [usize; 5] = [0, 8, 100, 1_000, 5_000];

fn start(directory: &Path, group: SocketAddr) -> (EventStream, PacketNetwork) {
    let mut options = EventStreamOptions::in_directory(directory);
    options.persistence = Persistence { segment_length_bytes: 4 << 20, ..Persistence::default() };
    options.window_bytes = 8 << 20;
    options.message_length_max = 1 << 20;
    options.frame_length_max = 1_376;
    options.feed_session = FeedSession::new("MONDAY").unwrap();
    let mut network = PacketNetwork::udp(free_address(), free_address());
    let interface = Interface::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));
    network.carrier = Carrier::Udp { interface, hops: 0, segmentation: Segmentation::Auto };
    network.groups = vec![group];
    network.heartbeat_interval_ns = 50_000_000;
    options.packets = Some(network.clone());
    (EventStream::start(&options).unwrap(), network)
}

fn node_behind(tap: &Tap, network: &PacketNetwork, group: SocketAddr) -> StreamNode<DatagramLink<UdpSocket>> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let options = DatagramOptions::new(network.command, tap.address());
    let link = DatagramLink::open(&[group], &Interface::Address(loopback), Segmentation::Auto, options).unwrap();
    StreamNode::new(link, StreamNodeOptions::reading(Start::First))
}

fn catch(
    caught: &mut Vec<CapturedPacket>,
    what: &str,
    mut look: impl FnMut() -> Vec<CapturedPacket>,
    is_done: impl Fn(&[CapturedPacket]) -> bool,
) {
    let deadline = Instant::now() + PATIENCE;
    let first = caught.len();
    while !is_done(&caught[first..]) {
        caught.extend(look());
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn count_of(caught: &CapturedPacket) -> u16 {
    u16::from_be_bytes(caught.payload[18..20].try_into().unwrap())
}

fn publish<L: NodeLink>(node: &mut StreamNode<L>, count: usize) {
    for number in 0..count {
        node.publish(TYPE, &vec![number as u8; LENGTHS[number % LENGTHS.len()]]).unwrap();
    }
    node.poll_until(PATIENCE, "all to come back", |node| node.in_flight() == 0, |_| {}).unwrap();
}

#[test]
fn tshark_decodes_the_journal() {
    if !tshark::is_there() {
        return eprintln!("SKIPPED: tshark is not installed, nobody else decodes the feed");
    }
    let place = tempfile::tempdir().unwrap();
    let (stream_place, pcap) = (place.path().join("stream"), place.path().join("feed.pcap"));
    let group = multicast_group();
    let (stream, network) = start(&stream_place, group);
    let mut member = capture::join(group);
    let mut tap = Tap::before(network.request);
    let mut publisher = StreamNode::new(
        SharedMemoryLink::new(&stream_place, SharedMemoryOptions::default()),
        StreamNodeOptions::default(),
    );
    publisher.wait_open(PATIENCE).unwrap();
    let mut caught = Vec::new();
    publish(&mut publisher, MESSAGES);
    let released = stream.released_sequence();
    let is_heartbeat = |caught: &[CapturedPacket]| caught.iter().filter(|each| count_of(each) == 0).count() >= 3;
    catch(&mut caught, "no heartbeat came", || capture::take(&mut member, group), is_heartbeat);
    let mut late = node_behind(&tap, &network, group);
    let read_all = |late: &mut StreamNode<_>, tap: &mut Tap| {
        late.poll(256, |_| {}).unwrap();
        tap.pass()
    };
    let deadline = Instant::now() + PATIENCE;
    while late.position() <= released {
        caught.extend(read_all(&mut late, &mut tap));
        assert!(Instant::now() < deadline, "the late node is at {} of {released}", late.position());
    }
    stream.ask(SequencerRequest::BeginFeed { name: FeedSession::new("TUESDAY").unwrap() }).unwrap();
    publisher.poll_until(PATIENCE, "the next feed", |node| node.position() > released + 2, |_| {}).unwrap();
    publish(&mut publisher, 40);
    stream.ask(SequencerRequest::EndFeed).unwrap();
    let has_ended =
        |caught: &[CapturedPacket]| caught.iter().any(|each| count_of(each) == u16::MAX && each.is_of(b"TUESDAY"));
    catch(&mut caught, "no end of the session came", || capture::take(&mut member, group), has_ended);
    drop(late);
    stream.stop().unwrap();

    capture::write_pcap(&pcap, &caught);
    let decoded = tshark::decode(&pcap, &[group.port(), network.request.port()]);
    assert_eq!(decoded.len(), caught.len(), "it sees every packet");
    for (decoded, caught) in decoded.iter().zip(&caught) {
        assert!(decoded.is_sound(), "{decoded:?}");
        assert_eq!(decoded.session.as_bytes(), &caught.payload[..10], "{decoded:?}");
        assert_eq!(decoded.kind == "Request", caught.to == network.request, "{decoded:?}");
    }
    against_the_journal(&stream_place, &decoded);

    // Control: one message too many, and one longer than its room.
    for damage in [19, 21] {
        let first = caught.iter().find(|each| (1..100).contains(&count_of(each)) && each.to == group).unwrap();
        let mut damaged = first.clone();
        damaged.payload[damage] = damaged.payload[damage].wrapping_add(if damage == 19 { 1 } else { 251 });
        capture::write_pcap(&pcap, &[damaged]);
        let decoded = tshark::decode(&pcap, &[group.port()]);
        assert!(decoded.iter().all(|each| !each.is_sound()), "damage at byte {damage}: {decoded:?}");
    }
}

/// Every frame was in a packet, and every kind of packet was seen.
fn against_the_journal(stream_place: &Path, decoded: &[DecodedPacket]) {
    let mut frames: BTreeMap<(String, u64), Vec<u8>> = BTreeMap::new();
    let mut replay = JournalReader::open(stream_place.join("journal")).unwrap().replay(1).unwrap();
    let (mut session, mut number) = (String::new(), 0);
    while let Some(frame) = replay.next_frame().unwrap() {
        let mark = (frame.kind() == Kind::Mark).then(|| Mark::from_bytes(frame.payload())).flatten();
        if let Some(Mark::FeedBegan { feed_session }) = mark {
            (session, number) = (feed_session.to_string(), 0);
        }
        number += 1;
        frames.insert((session.clone(), number), frame.bytes()[..frame.length()].to_vec());
    }
    let mut seen = BTreeMap::new();
    let [mut heartbeats, mut ends, mut requests, mut answers] = [0; 4];
    for packet in decoded {
        let session = packet.session.trim_end().to_owned();
        match packet.count {
            _ if packet.kind == "Request" => {
                requests += 1;
                assert!(packet.count > 0 && packet.messages.is_empty(), "{packet:?}");
                assert!(frames.contains_key(&(session, packet.sequence)), "{packet:?}");
            }
            mold::MESSAGE_COUNT_HEARTBEAT => {
                heartbeats += 1;
                assert_eq!(packet.kind, "Heartbeat", "{packet:?}");
            }
            mold::MESSAGE_COUNT_END_OF_SESSION => {
                ends += 1;
                assert_eq!(packet.kind, "End Of Session", "{packet:?}");
                let last = frames.keys().filter(|(name, _)| *name == session).map(|(_, number)| number).max();
                assert_eq!(Some(&(packet.sequence - 1)), last, "{packet:?}");
            }
            count => {
                answers += usize::from(packet.is_answer);
                assert_eq!(packet.messages.len(), usize::from(count), "{packet:?}");
                for (message, number) in packet.messages.iter().zip(packet.sequence..) {
                    assert_eq!(message.sequence, number, "{packet:?}");
                    let frame = &frames[&(session.clone(), number)];
                    assert!(message.data == *frame && message.length == frame.len(), "{session} {number}");
                    seen.insert((session.clone(), number), ());
                }
            }
        }
    }
    assert_eq!(seen.len(), frames.len(), "every frame was in a packet");
    println!("{} frames; {heartbeats} heartbeats, {ends} ends, {requests} requests, {answers} answers", frames.len());
    assert!(heartbeats >= 3 && ends >= 1 && requests >= 1 && answers >= 1);
}
