//! Through a relay many nodes share one connection, another relay's: one of them closes its session, and the requests
//! of the others are still answered.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::raw_publisher::{Answer, PATIENCE, RawPublisher, frame, open};
use gapless_client::ClientError;
use gapless_client::node::link::{Connected, LinkRead};
use gapless_client::node::{NodeLink, SharedMemoryLink, SharedMemoryOptions, Start};
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_transport::seen::Seen;
use gapless_wire::{Frame, FrameHeader, Kind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A link that holds back the sequencer's answers while told to.
struct Late {
    way: SharedMemoryLink,
    is_late: Arc<AtomicBool>,
}

impl NodeLink for Late {
    fn connect(&mut self, start: Start, seen: Seen, now_ns: u64) -> Result<Option<Connected>, ClientError> {
        self.way.connect(start, seen, now_ns)
    }

    fn send(&mut self, frame: &[u8]) -> Result<bool, ClientError> {
        self.way.send(frame)
    }

    fn flush(&mut self) -> Result<(), ClientError> {
        self.way.flush()
    }

    fn answers(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> Result<usize, ClientError> {
        if self.is_late.load(Ordering::Relaxed) { Ok(0) } else { self.way.answers(take) }
    }

    fn read(&mut self, now_ns: u64) -> Result<LinkRead<'_>, ClientError> {
        self.way.read(now_ns)
    }

    fn released_sequence(&self) -> u64 {
        self.way.released_sequence()
    }

    fn loses(&self) -> bool {
        self.way.loses()
    }

    fn tick(&mut self, now_ns: u64) -> Result<(), ClientError> {
        self.way.tick(now_ns)
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), ClientError> {
        self.way.wait(timeout)
    }

    fn peer(&self) -> String {
        self.way.peer()
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
    let way = SharedMemoryLink::new(near.path(), SharedMemoryOptions::default());
    let way = Late { way, is_late: Arc::clone(&is_late) };
    let running = AtomicBool::new(false);
    let relay = EventStream::relay(&options(far.path()), Box::new(way), Start::First, &running).unwrap();
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
