//! Over each transport, a node with another MTU is refused, and so is a journal whose frames fit no packet.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::StreamConfig;
use gapless_client::node::{AnyLink, NodeEvent, Start, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::{free_address, multicast_group};
use gapless_wire::Encoding;
use gapless_wire::mtu::Mtu;
use std::path::Path;
use std::time::{Duration, Instant};

const TYPE: MessageType = MessageType { schema: 7 << 16 | 1, encoding: Encoding::Opaque };
const TRANSPORTS: [&str; 4] = ["shared-memory", "udp", "multicast", "tcp"];
const PATIENCE: Duration = Duration::from_secs(30);

fn config(directory: &Path, transport: &str, mtu: Option<u16>) -> StreamConfig {
    let mtu = mtu.map_or_else(String::new, |mtu| format!("mtu = {mtu}\n"));
    let mut text = format!(
        "[stream]\ndirectory = {directory:?}\ntransport = {transport:?}\nwindow = \"4 MiB\"\n{mtu}\
         [journal]\nsegment_length = \"4 MiB\"\n[network]\n"
    );
    if transport != "shared-memory" {
        text += &format!("command = \"{}\"\nsilence = \"60 s\"\n", free_address());
        let (key, address) = if transport == "tcp" { ("rewind", free_address()) } else { ("request", free_address()) };
        text += &format!("{key} = \"{address}\"\n");
    }
    if transport == "multicast" {
        text += &format!("groups = [\"{}\"]\ninterface = \"127.0.0.1\"\n", multicast_group());
    }
    StreamConfig::parse(&text, "s.toml").unwrap()
}

fn start(config: &StreamConfig) -> EventStream {
    EventStream::start(&EventStreamOptions::from_config(config).unwrap()).unwrap()
}

fn node(config: &StreamConfig, start: Start) -> StreamNode<AnyLink> {
    StreamNode::new(config.link().unwrap(), StreamNodeOptions { start, ..config.node_options(None) })
}

fn publish(node: &mut StreamNode<AnyLink>, lengths: &[usize]) -> Vec<u64> {
    node.wait_open(PATIENCE).unwrap();
    for length in lengths {
        node.publish(TYPE, &vec![*length as u8; *length]).unwrap();
    }
    read(node, lengths)
}

fn read(node: &mut StreamNode<AnyLink>, lengths: &[usize]) -> Vec<u64> {
    let (mut sequences, begun) = (Vec::new(), Instant::now());
    while sequences.len() < lengths.len() {
        assert!(begun.elapsed() < PATIENCE, "{} of {} messages came", sequences.len(), lengths.len());
        let take = |event: NodeEvent<'_>| {
            if let NodeEvent::Message(message) = event {
                assert_eq!(message.payload, vec![message.payload[0]; lengths[sequences.len()]]);
                sequences.push(message.sequence);
            }
        };
        if node.poll(64, take).unwrap() == 0 {
            std::thread::yield_now();
        }
    }
    sequences
}

#[test]
fn fitting_message_is_one_frame() {
    for transport in TRANSPORTS {
        for (mtu, longest) in [(1_600, 1_412), (9_000, 8_812), (65_535, 64_936)] {
            let directory = tempfile::tempdir().unwrap();
            let config = config(directory.path(), transport, Some(mtu));
            let stream = start(&config);
            let sequences = publish(&mut node(&config, Start::Live), &[1_400, longest, longest]);
            assert_eq!(sequences[2] - sequences[0], 2, "{transport} {mtu}");
            // By the replayer, the rewind port or from the journal.
            assert_eq!(read(&mut node(&config, Start::First), &[1_400, longest, longest]), sequences);
            stream.stop().unwrap();
        }
    }
}

#[test]
fn longer_message_is_split() {
    for transport in TRANSPORTS {
        let directory = tempfile::tempdir().unwrap();
        let config = config(directory.path(), transport, Some(1_500));
        let stream = start(&config);
        let sequences = publish(&mut node(&config, Start::Live), &[1_312, 1_400, 100_000, 1]);
        assert_eq!(sequences[1] - sequences[0], 2, "{transport}: of two frames, by the sequence of the last");
        assert_eq!(read(&mut node(&config, Start::First), &[1_312, 1_400, 100_000, 1]), sequences);
        stream.stop().unwrap();
    }
}

#[test]
fn node_with_another_mtu_is_told() {
    for transport in TRANSPORTS {
        let directory = tempfile::tempdir().unwrap();
        let stated = config(directory.path(), transport, Some(9_000));
        let stream = start(&stated);
        let refused = |mtu: Option<u16>| {
            let other = StreamConfig { mtu: mtu.map(|mtu| Mtu::new(mtu.into()).unwrap()), ..stated.clone() };
            node(&other, Start::Live).wait_open(PATIENCE).err().map(|error| error.to_string())
        };
        for mtu in [1_500, 8_999, 65_535] {
            let text = refused(Some(mtu)).unwrap();
            assert!(text.contains(&format!("the stream's mtu is 9000, the node's {mtu}")), "{transport}: {text}");
        }
        assert_eq!((refused(Some(9_000)), refused(None)), (None, None), "{transport}");
        stream.stop().unwrap();
    }
}

#[test]
fn unstated_mtu_is_as_before() {
    for (transport, accepted) in [("shared-memory", false), ("udp", true), ("multicast", true), ("tcp", false)] {
        let directory = tempfile::tempdir().unwrap();
        let unstated = config(directory.path(), transport, None);
        let stream = start(&unstated);
        assert_eq!(node(&unstated, Start::Live).wait_open(PATIENCE).err().map(|error| error.to_string()), None);
        let stated = StreamConfig { mtu: Some(Mtu::DEFAULT), ..unstated };
        let opened = node(&stated, Start::Live).wait_open(PATIENCE);
        assert_eq!(opened.is_ok(), accepted, "{transport}");
        if let Err(error) = opened {
            assert!(error.to_string().contains("the stream states no mtu"), "{transport}: {error}");
        }
        stream.stop().unwrap();
    }
}

#[test]
fn journal_of_long_frames_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let with = |mtu: u16| config(directory.path(), "udp", Some(mtu));
    let jumbo = with(9_000);
    let stream = start(&jumbo);
    let sequences = publish(&mut node(&jumbo, Start::Live), &[100, 3_000, 100]);
    stream.stop().unwrap();

    let refused = EventStream::start(&EventStreamOptions::from_config(&with(1_500)).unwrap()).err().unwrap();
    let text = refused.to_string();
    for words in [format!("sequence {}", sequences[1]), "3064 bytes".to_owned(), "an mtu of 3188".to_owned()] {
        assert!(text.contains(&words), "{words}: {text}");
    }

    let enough = with(3_188);
    let stream = start(&enough);
    assert_eq!(read(&mut node(&enough, Start::First), &[100, 3_000, 100]), sequences);
    stream.stop().unwrap();
}

#[test]
fn smaller_mtu_works_if_frames_fit() {
    let directory = tempfile::tempdir().unwrap();
    let mut sequences = Vec::new();
    let lengths = [100, 200, 300];
    for (mtu, length) in [9_000, 1_500, 9_000].into_iter().zip(lengths) {
        let config = config(directory.path(), "udp", Some(mtu));
        let stream = start(&config);
        sequences.extend(publish(&mut node(&config, Start::Live), &[length]));
        assert_eq!(read(&mut node(&config, Start::First), &lengths[..sequences.len()]), sequences);
        stream.stop().unwrap();
    }
}
