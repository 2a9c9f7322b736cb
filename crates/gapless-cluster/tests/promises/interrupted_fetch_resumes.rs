//! A member ends while it fetches frames, with a snapshot beyond its log, and continues after a restart.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::{Cluster, PATIENCE};
use gapless_agent::{Agent, AgentError, Now};
use gapless_client::node::{NodeEvent, PublisherOptions, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::ClusterMember;
use gapless_journal::{FilePoint, JournalReader};
use gapless_log::{GatingCursor, StreamIdentity};
use gapless_stream::member_service::{MemberService, ServiceAgents, ServiceError, ServiceParts};
use gapless_stream::messages::ResponderMessage;
use gapless_transport::mailbox::Mailbox;
use gapless_wire::Encoding;
use std::ops::Range;
use std::time::{Duration, Instant};

const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

struct ReadingService {
    snapshot_sequence: u64,
}

struct ServiceReader {
    cursor: GatingCursor,
    from_sequencer: Mailbox<ResponderMessage>,
}

impl MemberService for ReadingService {
    fn points(&self, layout: &StreamLayout) -> Result<Vec<FilePoint>, ServiceError> {
        let sequence = self.snapshot_sequence;
        if sequence == 0 {
            return Ok(Vec::new());
        }
        let mut replay = JournalReader::open(layout.journal())?.replay(sequence)?;
        let timestamp_ns = replay.next_frame()?.map(|frame| frame.timestamp_ns());
        Ok(vec![FilePoint { path: layout.snapshots(), identity: None, sequence, timestamp_ns }])
    }

    fn recover(&mut self, _: &StreamLayout, _: StreamIdentity, sequence: u64) -> Result<(), ServiceError> {
        assert!(sequence >= self.snapshot_sequence, "the service is recovered at {sequence}");
        Ok(())
    }

    fn agent(self: Box<Self>, parts: ServiceParts<'_>) -> Result<ServiceAgents, ServiceError> {
        Ok(ServiceAgents::alone(ServiceReader { cursor: parts.cursor, from_sequencer: parts.from_sequencer }))
    }
}

impl Agent for ServiceReader {
    fn name(&self) -> &str {
        "service"
    }

    fn poll(&mut self, _: Now) -> Result<usize, AgentError> {
        while self.from_sequencer.pop().is_some() {}
        let length = self.cursor.available()?.len();
        self.cursor.advance(length);
        Ok(length)
    }
}

fn publish(cluster: &Cluster, numbers: Range<u64>, length: usize, window_messages: u32) {
    let link = cluster.leading().stream().local_link(SharedMemoryOptions::default()).unwrap();
    let publisher = PublisherOptions { window_messages, ..PublisherOptions::default() };
    let options = StreamNodeOptions { start: Start::Live, publisher: Some(publisher), ..StreamNodeOptions::default() };
    let mut node = StreamNode::new(link, options);
    node.wait_open(PATIENCE).unwrap();
    let (mut came, count) = (0, numbers.end - numbers.start);
    let mut left = numbers.peekable();
    let mut payload = vec![0; length];
    let mut moved = Instant::now();
    while came < count {
        assert!(moved.elapsed() < PATIENCE, "{came} of {count} messages were read back, without further progress");
        while let Some(number) = left.next_if(|_| node.can_publish()) {
            payload[..8].copy_from_slice(&number.to_le_bytes());
            node.publish(TYPE, &payload).unwrap();
        }
        let polled =
            node.poll(64, |event| came += u64::from(matches!(event, NodeEvent::Message(message) if message.own)));
        if polled.unwrap() == 0 {
            node.wait(Duration::from_millis(1)).unwrap();
        } else {
            moved = Instant::now();
        }
    }
}

#[test]
fn interrupted_fetch_is_resumed() {
    let mut cluster = Cluster::start(3);
    publish(&cluster, 0..10, 8, 64);
    let away = cluster.leader() % 3 + 1;
    cluster.forget(away).stop().unwrap();
    // More entries than a log keeps, and more frames than are fetched at once.
    publish(&cluster, 10..5_010, 8, 1);
    publish(&cluster, 5_010..12_010, 1000, 256);

    let service = |snapshot_sequence| Box::new(ReadingService { snapshot_sequence });
    let mut fetching = ClusterMember::start_by_hand_with(&cluster.config(away), service(0)).unwrap();
    let clock = Instant::now();
    while fetching.stream().released_sequence() < 6_000 {
        assert!(clock.elapsed() < PATIENCE, "nothing is fetched: {:#?}", fetching.status());
        fetching.turn(Now { monotonic_ns: 1 + clock.elapsed().as_nanos() as u64, epoch_ns: 1 }).unwrap();
    }
    let released = fetching.stream().released_sequence();
    assert!(released < 12_000, "the member was ended too late: {released}");
    assert_eq!(fetching.status().unwrap().fetched, 0);
    fetching.abandon();

    let again = ClusterMember::start_with(&cluster.config(away), service(released)).unwrap();
    assert!(again.stream().released_sequence() >= released);
    cluster.members.insert(away, again);
    cluster.has_exactly(12_010);
}
