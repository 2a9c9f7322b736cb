//! Even in a turn that ends because the window is full.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use crate::raw_publisher::{RawPublisher, event};
use gapless_agent::Now;
use gapless_client::throttle::Throttle;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_transport::RingSizes;

#[test]
fn full_window_turn_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = EventStreamOptions::in_directory(directory.path());
    options.persistence.segment_length_bytes = 16 << 20;
    options.window_bytes = 1 << 20;
    options.message_length_max = 64 << 10;
    options.frame_length_max = 2 << 10;
    options.frames_per_poll_max = 1024;
    options.throttle = Some(Throttle { frames_per_s: 1, burst_frames: 2_000 });
    let mut stream = EventStream::start_by_hand(&options).unwrap();
    let now = Now { monotonic_ns: 5_000_000_000, epoch_ns: 1_000_000_000_000_000_000 };
    let rings = RingSizes { command_ring_bytes: 8 << 20, ..RingSizes::default() };
    let mut publisher = RawPublisher::connect_with(&stream, rings);
    let session = publisher.open_while(1, || {
        stream.turn(now).unwrap();
    });
    let before = stream.released_sequence();
    for number in 1..=4_000 {
        publisher.send(&event(session, number, &[7; 1_500]));
    }
    let mut turns = 0;
    let mut last = (0, 0);
    while last.1 < 100 {
        stream.turn(now).unwrap();
        turns += 1;
        let released = stream.released_sequence();
        last = if released == last.0 { (released, last.1 + 1) } else { (released, 0) };
    }
    assert!(turns > 102, "the window was full in between");
    // The session's open was the first of the burst.
    assert_eq!(stream.released_sequence() - before, 1_999);
}
