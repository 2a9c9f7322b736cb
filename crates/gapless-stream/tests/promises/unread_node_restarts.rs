//! A node that loses its connection before it has read anything starts with the first kept frame again, which may be
//! another one now.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::ClientError;
use gapless_client::node::link::{ConnectionInfo, LinkRead};
use gapless_client::node::{NodeLink, SharedMemoryLink, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::wait::{PATIENCE, turn_until};
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::{Encoding, Frame};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TYPE: MessageType = MessageType { schema: 9 << 16 | 1, encoding: Encoding::Opaque };

struct BreakingLink {
    link: SharedMemoryLink,
    starts: Arc<Mutex<Vec<Start>>>,
    breaks: Arc<AtomicBool>,
}

impl NodeLink for BreakingLink {
    fn connect(&mut self, start: Start, seen: SeenFrame, now_ns: u64) -> Result<Option<ConnectionInfo>, ClientError> {
        let connected = self.link.connect(start, seen, now_ns)?;
        self.starts.lock().unwrap().extend(connected.is_some().then_some(start));
        Ok(connected)
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError> {
        self.link.send(frame)
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        self.link.flush()
    }

    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError> {
        self.link.answers(take)
    }

    fn read(&mut self, now_ns: u64) -> Result<LinkRead<'_>, ClientError> {
        if self.breaks.swap(false, Ordering::Relaxed) {
            return Err(ClientError::Disconnected { peer: self.peer(), reason: None });
        }
        self.link.read(now_ns)
    }

    fn released_sequence(&self) -> u64 {
        self.link.released_sequence()
    }

    fn loses(&self) -> bool {
        self.link.loses()
    }

    fn tick(&mut self, now_ns: u64) -> Result<(), ClientError> {
        self.link.tick(now_ns)
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), ClientError> {
        self.link.wait(timeout)
    }

    fn peer(&self) -> String {
        self.link.peer()
    }
}

#[test]
fn unread_node_restarts_at_first() {
    let directory = tempfile::tempdir().unwrap();
    let stream = EventStream::start(&EventStreamOptions::in_directory(directory.path())).unwrap();
    let link = || SharedMemoryLink::new(directory.path(), SharedMemoryOptions::default());
    let mut publisher = StreamNode::new(link(), StreamNodeOptions::default());
    publisher.wait_open(PATIENCE).unwrap();
    publisher.publish(TYPE, b"message").unwrap();
    publisher.poll_until(PATIENCE, "it comes back", |node| node.in_flight() == 0, |_| {}).unwrap();

    let (starts, breaks) = (Arc::<Mutex<Vec<Start>>>::default(), Arc::new(AtomicBool::new(true)));
    let link = BreakingLink { link: link(), starts: Arc::clone(&starts), breaks: Arc::clone(&breaks) };
    let mut node = StreamNode::new(link, StreamNodeOptions::reading(Start::First));
    turn_until("it has read all", || {
        node.poll(64, |_| {}).unwrap();
        node.position() > stream.released_sequence()
    });
    assert_eq!(*starts.lock().unwrap(), [Start::First, Start::First]);
    let position = node.position();
    breaks.store(true, Ordering::Relaxed);
    turn_until("it is there again", || {
        node.poll(64, |_| {}).unwrap();
        starts.lock().unwrap().len() == 3
    });
    assert_eq!(starts.lock().unwrap()[2], Start::Sequence(position));
    drop((node, publisher));
    stream.stop().unwrap();
}
