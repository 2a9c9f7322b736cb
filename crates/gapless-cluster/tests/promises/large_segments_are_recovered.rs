//! A segment holds more entries than a checkpoint can.

#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_agent::Now;
use gapless_client::node::{NodeEvent, PublisherOptions, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_cluster::ClusterMember;
use gapless_cluster::config::ClusterConfig;
use gapless_testkit::ports::free_port;
use gapless_wire::Encoding;
use std::time::{Duration, Instant};

/// Their checkpoint would be longer than any frame.
const ENTRIES: u64 = 40_000;
const PATIENCE: Duration = Duration::from_secs(120);
const TYPE: MessageType = MessageType { schema: 1, encoding: Encoding::Opaque };

/// The clock advances by a millisecond until it leads, and then slowly, because the entries take the time.
struct SteppedMember {
    member: ClusterMember,
    now_ns: u64,
}

impl SteppedMember {
    fn start(config: &ClusterConfig, now_ns: u64) -> Self {
        let mut turned = Self { member: ClusterMember::start_by_hand(config).unwrap(), now_ns };
        let begun = Instant::now();
        while turned.member.status().is_none_or(|status| status.consensus.leader.is_none()) {
            assert!(begun.elapsed() < PATIENCE, "it does not lead: {:#?}", turned.member.status());
            turned.turn(1_000_000);
        }
        turned
    }

    fn turn(&mut self, step_ns: u64) {
        self.now_ns += step_ns;
        self.member.turn(Now { monotonic_ns: self.now_ns, epoch_ns: self.now_ns }).unwrap();
    }
}

#[test]
fn many_entries_are_recovered() {
    let root = tempfile::tempdir().unwrap();
    let port = free_port();
    let text = format!(
        "[cluster]\nname = \"test\"\nmember = 1\n[[member]]\nid = 1\naddresses = [\"127.0.0.1:{port}\"]\n\
         [stream]\ndirectory = {:?}\nwindow = \"8 MiB\"\nmessage_length_max = \"1 MiB\"\n[journal]\nsegment_length = \"32 MiB\"\n",
        root.path().join("member")
    );
    let config = ClusterConfig::parse(&text, "test.toml").unwrap();
    let mut turned = SteppedMember::start(&config, 1);

    let link = turned.member.stream().local_link(SharedMemoryOptions::default()).unwrap();
    let options = StreamNodeOptions {
        start: Start::Live,
        publisher: Some(PublisherOptions::default()),
        ..StreamNodeOptions::default()
    };
    let mut node = StreamNode::new(link, options);
    let (mut sent, mut came) = (0, 0);
    let begun = Instant::now();
    while came < ENTRIES {
        assert!(begun.elapsed() < PATIENCE, "{came} of {sent} have come back");
        if sent == came && node.can_publish() {
            node.publish(TYPE, b"one frame").unwrap();
            sent += 1;
        }
        turned.turn(1_000);
        node.poll(64, |event| came += u64::from(matches!(event, NodeEvent::Message(message) if message.own))).unwrap();
    }
    let SteppedMember { member, now_ns } = turned;
    let (released, first) = (member.stream().released_sequence(), member.status().unwrap());
    assert!(first.consensus.committed_index > ENTRIES, "each was an entry: {first:#?}");
    member.abandon();
    let mut now_ns = now_ns;
    for _ in 0..2 {
        let again = SteppedMember::start(&config, now_ns);
        assert!(again.member.stream().released_sequence() >= released);
        now_ns = again.now_ns;
        again.member.abandon();
    }
}
