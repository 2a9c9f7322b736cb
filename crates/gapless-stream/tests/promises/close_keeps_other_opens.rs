//! Through a relay many nodes share one connection: one closes its session, and the others' requests are still
//! answered.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::raw_publisher::{Answer, PATIENCE, RawPublisher, frame, open};
use gapless_client::ClientError;
use gapless_client::node::link::{ConnectionInfo, LinkRead};
use gapless_client::node::{NodeLink, SharedMemoryLink, SharedMemoryOptions, Start};
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_transport::seen_frame::SeenFrame;
use gapless_wire::{Frame, FrameHeader, Kind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

struct DelayingLink {
    link: SharedMemoryLink,
    is_late: Arc<AtomicBool>,
}

impl NodeLink for DelayingLink {
    fn connect(&mut self, start: Start, seen: SeenFrame, now_ns: u64) -> Result<Option<ConnectionInfo>, ClientError> {
        self.link.connect(start, seen, now_ns)
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError> {
        self.link.send(frame)
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        self.link.flush()
    }

    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError> {
        if self.is_late.load(Ordering::Relaxed) { Ok(0) } else { self.link.answers(take) }
    }

    fn read(&mut self, now_ns: u64) -> Result<LinkRead<'_>, ClientError> {
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

fn options(directory: &Path) -> EventStreamOptions {
    let mut options = EventStreamOptions::in_directory(directory);
    options.persistence.segment_length_bytes = 4 << 20;
    options.window_bytes = 8 << 20;
    options.message_length_max = 1 << 20;
    options
}

#[test]
fn open_is_answered_despite_a_close() {
    let (near, far) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let origin = EventStream::start(&options(near.path())).unwrap();
    let is_late = Arc::new(AtomicBool::new(false));
    let link = SharedMemoryLink::new(near.path(), SharedMemoryOptions::default());
    let link = DelayingLink { link, is_late: Arc::clone(&is_late) };
    let running = AtomicBool::new(false);
    let relay = EventStream::relay(&options(far.path()), Box::new(link), Start::First, &running).unwrap();
    let mut publisher = RawPublisher::connect(&relay);
    let closing = publisher.open(1);

    is_late.store(true, Ordering::Relaxed);
    let before = origin.released_sequence();
    publisher.send(&open(2));
    let close = FrameHeader { kind: Kind::SessionClose, session: closing, session_seq: 1, ..FrameHeader::default() };
    publisher.send(&frame(&close, &[]));
    let begun = Instant::now();
    while origin.released_sequence() < before + 2 {
        assert!(begun.elapsed() < PATIENCE, "the open and the close are not in the stream");
        std::thread::yield_now();
    }
    is_late.store(false, Ordering::Relaxed);
    assert_eq!(publisher.answer(), Answer::Opened { session: before + 1 });
    drop(publisher);
    relay.stop().unwrap();
    origin.stop().unwrap();
}
