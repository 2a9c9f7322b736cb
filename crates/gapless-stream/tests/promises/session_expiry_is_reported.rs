//! A publisher whose session has expired loses no message silently.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::ClientError;
use gapless_client::node::{NodeEvent, SharedMemoryLink, SharedMemoryOptions, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::random::rounds;
use gapless_testkit::wait::until;
use gapless_wire::descriptor::Encoding;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const WORD: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const TOKEN: u128 = 77;
/// Long enough for a message to be in the stream before a new session expires, on a busy machine, too.
const SESSION_EXPIRY: Duration = Duration::from_secs(5);

fn node(directory: &Path) -> StreamNode<SharedMemoryLink> {
    let link = SharedMemoryLink::new(directory, SharedMemoryOptions::default());
    let mut node = StreamNode::new(link, StreamNodeOptions::with_token(TOKEN));
    node.wait_open(PATIENCE).unwrap();
    node
}

fn poll(node: &mut StreamNode<SharedMemoryLink>, at_least: Duration) -> Result<Vec<Vec<u8>>, ClientError> {
    let begun = Instant::now();
    let mut own = Vec::new();
    while begun.elapsed() < at_least || node.in_flight() > 0 {
        assert!(begun.elapsed() < PATIENCE, "{} are in flight", node.in_flight());
        node.poll(64, |event| match event {
            NodeEvent::Message(message) if message.own => own.push(message.payload.to_vec()),
            _ => {}
        })?;
        node.wait(Duration::from_millis(5))?;
    }
    Ok(own)
}

fn all(stream: &EventStream) -> Vec<Vec<u8>> {
    let mut reader = stream.reader(1);
    let mut found = Vec::new();
    while reader.sequence() <= stream.released_sequence() {
        if let gapless_client::replay_merge::ReplayRead::Frame(frame) = reader.read().unwrap()
            && frame.kind() == gapless_wire::Kind::Event
        {
            found.push(frame.payload().to_vec());
        }
    }
    found
}

fn stream(directory: &Path) -> EventStream {
    let mut options = EventStreamOptions::in_directory(directory);
    options.session_expiry = SESSION_EXPIRY;
    options.persistence.segment_length_bytes = 4 << 20;
    EventStream::start(&options).unwrap()
}

#[test]
fn polling_publisher_reopens() {
    let directory = tempfile::tempdir().unwrap();
    let stream = stream(directory.path());
    let mut node = node(directory.path());
    let mut sessions = Vec::new();
    let rounds = rounds(3, 2) as u8;
    for round in 0..rounds {
        let begun = Instant::now();
        while node.session().is_none() || sessions.last() == Some(&node.session()) {
            assert!(begun.elapsed() < PATIENCE, "{sessions:?}");
            assert_eq!(poll(&mut node, Duration::from_millis(5)).unwrap(), [[0; 0]; 0]);
        }
        node.publish(WORD, &[round]).unwrap();
        assert_eq!(poll(&mut node, Duration::ZERO).unwrap(), [[round]]);
        sessions.push(node.session());
    }
    sessions.dedup();
    assert_eq!(sessions.len(), usize::from(rounds), "{sessions:?}");
    assert!(all(&stream).into_iter().eq((0..rounds).map(|round| vec![round])), "{:?}", all(&stream));
    stream.stop().unwrap();
}

#[test]
fn sleeping_publisher_learns_of_loss() {
    let directory = tempfile::tempdir().unwrap();
    let stream = stream(directory.path());
    let mut first = node(directory.path());
    first.publish(WORD, &[1]).unwrap();
    poll(&mut first, Duration::ZERO).unwrap();
    let session = first.session().unwrap();
    let open = |(label, value): &(String, u64)| label == "sequencer.sessions" && *value > 0;
    until("the session is open", || stream.counters().values().iter().any(open));
    until("the session has expired", || !stream.counters().values().iter().any(open));
    first.publish(WORD, &[2]).unwrap();
    let lost = first.publish(WORD, &[3]).unwrap() - 1;
    match poll(&mut first, PATIENCE / 2) {
        Err(ClientError::SessionExpired { session: expired, first_lost }) => {
            assert_eq!((expired, first_lost), (session, lost));
        }
        other => panic!("{other:?}"),
    }
    let mut second = node(directory.path());
    second.publish(WORD, &[2]).unwrap();
    poll(&mut second, Duration::ZERO).unwrap();
    assert_eq!(all(&stream), [[1], [2]]);
    stream.stop().unwrap();
}
