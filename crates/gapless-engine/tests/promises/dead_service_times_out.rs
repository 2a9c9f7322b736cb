//! A client or node that polls without `wait` detects after about 50 ms that its service or sequencer is gone, even
//! with few polls.

use gapless_client::node::{
    NodeEvent, NodeState, SharedMemoryLink, SharedMemoryOptions, StreamNode, StreamNodeOptions,
};
use gapless_client::polled::ClientOptions;
use gapless_client::{ClientError, PolledClient};
use gapless_engine::{Handlers, Service, ServiceHost, ServiceHostOptions};
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// 50 ms of polls, doubled for a busy machine and the end of the service's threads.
const POLLS_MAX: u32 = 100;

struct Idle;

impl Service for Idle {
    fn handlers(_: &mut Handlers<Self>) {}

    fn snapshot(&self, _: &mut Vec<u8>) {}

    fn restore(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

fn polls_until(mut poll: impl FnMut() -> bool) -> u32 {
    (1..=2 * POLLS_MAX)
        .find(|_| {
            std::thread::sleep(Duration::from_millis(1));
            poll()
        })
        .expect("the end is detected")
}

#[test]
fn polling_client_detects_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let host = ServiceHost::start(Idle, ServiceHostOptions::in_directory(directory.path())).unwrap();
    let mut client = PolledClient::connect(host.socket_path().unwrap(), ClientOptions::default()).unwrap();
    client.open_session(1, 4).unwrap();
    client.poll(16, |_| {}).unwrap();
    host.stop().unwrap();
    let polls = polls_until(|| match client.poll(16, |_| {}) {
        Err(ClientError::Disconnected { .. }) => true,
        other => other.map(|_| false).unwrap(),
    });
    assert!(polls <= POLLS_MAX, "{polls} polls");
}

#[test]
fn polling_node_detects_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let stream = EventStream::start(&EventStreamOptions::in_directory(directory.path())).unwrap();
    let link = SharedMemoryLink::new(directory.path(), SharedMemoryOptions::default());
    let mut node = StreamNode::new(link, StreamNodeOptions::default());
    node.wait_open(PATIENCE).unwrap();
    stream.stop().unwrap();
    let polls = polls_until(|| {
        let mut is_noticed = false;
        node.poll(16, |event| is_noticed |= matches!(event, NodeEvent::State(NodeState::Connecting))).unwrap();
        is_noticed
    });
    assert!(polls <= POLLS_MAX, "{polls} polls");
}
