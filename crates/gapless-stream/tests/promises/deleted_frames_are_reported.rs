//! Late readers of segments deleted by retention learn that their frames are gone, not that the journal is damaged.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::raw_soup::{Client, PATIENCE, counter, login, reaches};
use gapless_client::ClientError;
use gapless_client::node::{
    JournalLink, NodeLink, SharedMemoryLink, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions,
};
use gapless_client::polled::MessageType;
use gapless_client::replay_merge::ReplayRead;
use gapless_stream::event_stream::EventStream;
use gapless_stream::network::TcpNetwork;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::ports::own_loopback;
use gapless_wire::Encoding;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

const TYPE: MessageType = MessageType { schema: 9 << 16 | 1, encoding: Encoding::Opaque };
const MESSAGES: u64 = 30_000;

fn segments(journal: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().path());
    let is_segment = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(|first: char| first.is_ascii_digit()) && path.is_file()
    };
    let mut segments: Vec<_> = listed.filter(is_segment).collect();
    segments.sort();
    segments
}

fn fails<L: NodeLink>(node: &mut StreamNode<L>) -> ClientError {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "no error at position {}", node.position());
        if let Err(error) = node.poll(64, |_| {}) {
            return error;
        }
    }
}

#[test]
fn reader_of_deleted_frames_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = EventStreamOptions::in_directory(directory.path());
    options.persistence.segment_length_bytes = 4 << 20;
    options.window_bytes = 1 << 20;
    options.message_length_max = 64 << 10;
    options.frame_length_max = 1_376;
    let any_port = SocketAddr::from((own_loopback(), 0));
    options.tcp = Some(TcpNetwork::new(any_port, any_port));
    let stream = EventStream::start(&options).unwrap();
    let feed = options.feed_session.to_string();
    let link = || SharedMemoryLink::new(directory.path(), SharedMemoryOptions::default());
    let mut publisher = StreamNode::new(link(), StreamNodeOptions::default());
    publisher.wait_open(PATIENCE).unwrap();
    let mut client = Client::connect(&stream);
    client.send(&login("", "", "", 1));
    client.accepted(&feed, 1);
    for _ in 0..MESSAGES / 100 {
        for _ in 0..100 {
            publisher.publish(TYPE, &[7; 1_000]).unwrap();
        }
        publisher.poll_until(PATIENCE, "all come back", |node| node.in_flight() == 0, |_| {}).unwrap();
    }
    let journal = directory.path().join("journal");
    let mut node = StreamNode::new(link(), StreamNodeOptions::reading(Start::First));
    let mut of_journal = StreamNode::new(JournalLink::new(&journal), StreamNodeOptions::reading(Start::First));
    let mut reader = stream.reader(1);
    let begun = Instant::now();
    // A reader ahead would be past the deleted segments.
    while node.position() < 100 || of_journal.position() < 100 || reader.sequence() < 100 {
        assert!(begun.elapsed() < PATIENCE, "they read the beginning");
        if node.position() < 100 {
            node.poll(64, |_| {}).unwrap();
        }
        if of_journal.position() < 100 {
            of_journal.poll(64, |_| {}).unwrap();
        }
        if reader.sequence() < 100 {
            reader.read().unwrap();
        }
    }
    // Like retention: never the last.
    let segments = segments(&journal);
    assert!(segments.len() >= 6, "{segments:?}");
    segments[..segments.len() - 2].iter().for_each(|segment| std::fs::remove_file(segment).unwrap());
    let is_told = |error: ClientError| {
        assert!(matches!(error, ClientError::Lapped { sequence, .. } if sequence > 100), "{error}");
    };
    is_told(fails(&mut node));
    is_told(fails(&mut of_journal));
    let error = loop {
        match reader.read() {
            Ok(ReplayRead::Frame(_)) => {}
            Ok(ReplayRead::Empty) => assert!(begun.elapsed() < PATIENCE, "no error"),
            Err(error) => break error,
        }
    };
    is_told(error);
    let mut came = 0;
    while client.next().is_some() {
        came += 1;
    }
    assert!(came < MESSAGES, "all of it came");
    reaches(&stream, "rewind.clients_overtaken", 1);
    assert_eq!(counter(&stream, "rewind.malformed"), 0);
    let mut later = StreamNode::new(link(), StreamNodeOptions::reading(Start::First));
    publisher.publish(TYPE, b"after that").unwrap();
    publisher.poll_until(PATIENCE, "it to come back", |node| node.in_flight() == 0, |_| {}).unwrap();
    let end = stream.released_sequence();
    later.poll_until(PATIENCE, "the rest", |node| node.position() > end, |_| {}).unwrap();
    assert!(stream.failure().is_none());
}
