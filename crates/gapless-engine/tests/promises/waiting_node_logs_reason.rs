//! A node without a stream retries, because a sequencer may start later.

use gapless_client::ClientError;
use gapless_client::node::{
    NodeEvent, NodeState, SharedMemoryLink, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions,
};
use gapless_engine::{Handlers, Service, ServiceHost, ServiceHostOptions};
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

struct Idle;

impl Service for Idle {
    fn handlers(_: &mut Handlers<Self>) {}

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

fn reader(directory: &Path) -> StreamNode<SharedMemoryLink> {
    let link = SharedMemoryLink::new(directory, SharedMemoryOptions::default());
    StreamNode::new(link, StreamNodeOptions::reading(Start::First))
}

fn states(node: &mut StreamNode<SharedMemoryLink>, polls: u32) -> Vec<NodeState> {
    let mut states = Vec::new();
    for _ in 0..polls {
        let take = |event: NodeEvent<'_>| {
            if let NodeEvent::State(state) = event {
                states.push(state);
            }
        };
        node.poll(16, take).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    states
}

#[test]
fn node_waits_for_its_directory() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("later");
    let mut node = reader(&directory);
    assert_eq!(states(&mut node, 20), [NodeState::Connecting], "once");
    let failure = node.connect_failure().unwrap();
    assert!(failure.contains("there is no directory") && failure.contains("later"), "{failure}");
    std::fs::create_dir(&directory).unwrap();
    assert_eq!(states(&mut node, 20), []);
    let failure = node.connect_failure().unwrap();
    assert!(failure.contains("stream.socket"), "{failure}");

    let stream = EventStream::start(&EventStreamOptions::in_directory(&directory)).unwrap();
    let begun = Instant::now();
    let mut met = Vec::new();
    while node.state() != NodeState::Live {
        assert!(begun.elapsed() < PATIENCE, "{met:?}");
        met.extend(states(&mut node, 1));
    }
    assert_eq!((met, node.connect_failure()), (vec![NodeState::Rewinding, NodeState::Live], None));
    drop(node);
    stream.stop().unwrap();
}

#[test]
fn service_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let host = ServiceHost::start(Idle, ServiceHostOptions::in_directory(directory.path())).unwrap();
    let mut node = reader(directory.path());
    assert_eq!(states(&mut node, 3), [NodeState::Connecting]);
    let failure = node.connect_failure().unwrap();
    assert!(failure.contains("directory of a service") && failure.contains("node.socket"), "{failure}");
    let waited = node.poll_until(Duration::from_millis(20), "a message", |_| false, |_| {});
    match waited {
        Err(error @ ClientError::TimedOut { .. }) => assert!(error.to_string().contains("a service"), "{error}"),
        other => panic!("{other:?}"),
    }
    host.stop().unwrap();
}
