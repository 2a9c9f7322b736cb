//! A new publisher counts as work: the thread sleeps only after announcing so in the new ring, too.

use gapless_agent::Now;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_transport::RingSizes;

#[test]
fn new_publisher_counts_as_work() {
    let mut stream = EventStream::start_by_hand(&EventStreamOptions::in_memory()).unwrap();
    let now = Now { monotonic_ns: 1_000_000_000, epoch_ns: 1_000_000_000_000_000_000 };
    while stream.turn(now).unwrap() > 0 {}
    let _publisher = stream.connect(RingSizes::default()).unwrap();
    assert!(stream.turn(now).unwrap() > 0, "its ring would not be armed");
    assert_eq!(stream.turn(now).unwrap(), 0);
}
