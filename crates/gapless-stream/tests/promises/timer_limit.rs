//! A publisher beyond the limit is told in the stream which timer was not set, and continues; a restart remembers the
//! refusals.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_client::ClientError;
use gapless_client::node::{
    NodeEvent, NodeState, SharedMemoryLink, SharedMemoryOptions, StreamNode, StreamNodeOptions,
};
use gapless_client::polled::MessageType;
use gapless_stream::Persistence;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::random::rounds;
use gapless_wire::Encoding;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const TYPE: MessageType = MessageType { schema: 3 << 16 | 1, encoding: Encoding::Opaque };
const TIMERS_MAX: u64 = 1 << 20;
const NEVER_NS: u64 = u64::MAX / 2;

type Node = StreamNode<SharedMemoryLink>;

fn start(directory: &Path) -> EventStream {
    let mut options = EventStreamOptions::in_directory(directory);
    options.persistence = Persistence { segment_length_bytes: 64 << 20, ..Persistence::default() };
    options.window_bytes = 16 << 20;
    options.message_length_max = 1 << 20;
    EventStream::start(&options).unwrap()
}

fn node(directory: &Path, token: u128) -> Node {
    let link = SharedMemoryLink::new(directory, SharedMemoryOptions::default());
    StreamNode::new(link, StreamNodeOptions::with_token(token))
}

fn settle(node: &mut Node) -> Vec<(u64, bool)> {
    let mut refused = Vec::new();
    let take = |event: NodeEvent<'_>| {
        if let NodeEvent::TimerRefused { timer, own, deadline_ns, .. } = event {
            assert_eq!(deadline_ns, NEVER_NS);
            refused.push((timer, own));
        }
    };
    let is_done = |node: &Node| node.in_flight() == 0 && node.can_publish() && node.state() == NodeState::Live;
    node.poll_until(PATIENCE, "everything to come back", is_done, take).unwrap();
    refused
}

fn set_timer(node: &mut Node, timer: u64, deadline_ns: u64) {
    loop {
        match node.set_timer(timer, deadline_ns) {
            Ok(_) => return,
            Err(ClientError::WindowFull { .. }) => assert_eq!(settle(node), [], "there is room for it"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn timer_over_limit_is_refused() {
    if rounds(1, 0) == 0 {
        println!(
            "skipped: a million timers are set with GAPLESS_FULL=1; the sequencer's unit tests refuse the third of two"
        );
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let stream = start(directory.path());
    let mut node = self::node(directory.path(), 7);
    assert_eq!(settle(&mut node), []);
    for timer in 0..TIMERS_MAX {
        set_timer(&mut node, timer, NEVER_NS);
    }
    assert_eq!(settle(&mut node), []);
    let resent = node.resent();

    set_timer(&mut node, TIMERS_MAX, NEVER_NS);
    node.publish(TYPE, b"behind it").unwrap();
    assert_eq!(settle(&mut node), [(TIMERS_MAX, true)], "the refused timer is reported once");
    assert_eq!(node.resent(), resent, "nothing is sent again");

    set_timer(&mut node, 5, NEVER_NS);
    set_timer(&mut node, 6, 0);
    set_timer(&mut node, TIMERS_MAX + 1, NEVER_NS);
    set_timer(&mut node, TIMERS_MAX + 2, NEVER_NS);
    assert_eq!(settle(&mut node), [(TIMERS_MAX + 2, true)]);
    drop(node);
    stream.stop().unwrap();

    std::fs::remove_dir_all(directory.path().join("sequencer")).unwrap();
    let stream = start(directory.path());
    let mut other = self::node(directory.path(), 8);
    let refused = settle(&mut other);
    assert_eq!(refused, [(TIMERS_MAX, false), (TIMERS_MAX + 2, false)], "others see it, too");
    set_timer(&mut other, 1, NEVER_NS);
    assert_eq!(settle(&mut other), [(1, true)], "there is no room after the restart either");
    drop(other);
    stream.stop().unwrap();
}
