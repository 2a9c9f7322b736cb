//! A member returns after thousands of single messages, to a leader without them in its window. The cost grows with the
//! bytes moved, not with the entries or the log's length, and the leader opens its journal once. One thread polls all
//! on a virtual clock: the counts do not depend on the machine.

#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_agent::Now;
use gapless_client::node::{NodeEvent, PublisherOptions, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_client::replay_merge::ReplayRead;
use gapless_cluster::ClusterMember;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::consensus::{MemberId, MemberRole};
use gapless_cluster::link::LinkStatistics;
use gapless_testkit::ports::free_ports;
use gapless_testkit::random::rounds;
use gapless_testkit::wait::PATIENCE;
use gapless_wire::{Encoding, Kind};
use rustix::fd::OwnedFd;
use rustix::fs::inotify;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::time::Instant;

const TYPE: MessageType = MessageType { schema: 1, encoding: Encoding::Opaque };
/// More entries than the 4,096 of a log.
const MORE_THAN_A_LOG: u64 = 5_000;
const STEP_NS: u64 = 50_000;
/// Longer than a leader waits for a log position to be reached, shorter than a silence that ends a connection.
const STANDS_STILL_NS: u64 = 1_500_000_000;
/// Heartbeats every 10 ms, answers and others, for the virtual time of a catch-up.
const IDLE_MESSAGES: u64 = 200;

fn in_the_log() -> u64 {
    rounds(4_000, 800)
}

fn before_the_log() -> u64 {
    rounds(10_000, MORE_THAN_A_LOG)
}

struct SteppedCluster {
    root: tempfile::TempDir,
    ports: Vec<u16>,
    members: BTreeMap<u64, ClusterMember>,
    paused: Option<u64>,
    now_ns: u64,
}

impl SteppedCluster {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let ports = free_ports(3);
        Self { root, ports, members: BTreeMap::new(), paused: None, now_ns: 1 }
    }

    fn directory(&self, member: u64) -> PathBuf {
        self.root.path().join(format!("member-{member}"))
    }

    fn start(&mut self, member: u64) {
        let mut text = format!("[cluster]\nname = \"test\"\nmember = {member}\n");
        for (at, port) in self.ports.iter().enumerate() {
            text += &format!("[[member]]\nid = {}\naddresses = [\"127.0.0.1:{port}\"]\n", at + 1);
        }
        text += &format!(
            "[stream]\ndirectory = {:?}\nwindow = \"8 MiB\"\nmessage_length_max = \"64 KiB\"\n\
             [journal]\nsegment_length = \"4 MiB\"\n",
            self.directory(member)
        );
        let config = ClusterConfig::parse(&text, "test.toml").unwrap();
        self.members.insert(member, ClusterMember::start_by_hand(&config).unwrap());
    }

    fn crash(&mut self, member: u64) {
        self.members.remove(&member).unwrap().abandon();
    }

    fn turn(&mut self) {
        self.now_ns += STEP_NS;
        let now = Now { monotonic_ns: self.now_ns, epoch_ns: self.now_ns };
        let paused = self.paused;
        for (_, member) in self.members.iter_mut().filter(|(number, _)| Some(**number) != paused) {
            member.turn(now).unwrap();
        }
    }

    fn leader(&self) -> Option<u64> {
        let leads = |member: &ClusterMember| {
            member
                .status()
                .is_some_and(|status| status.consensus.role == MemberRole::Leader && !status.consensus.peers.is_empty())
        };
        self.members.iter().find(|(_, member)| leads(member)).map(|(number, _)| *number)
    }

    #[track_caller]
    fn until<T>(&mut self, what: &str, mut is_there: impl FnMut(&mut Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = is_there(self) {
                return found;
            }
            let states: Vec<_> = self.members.values().map(ClusterMember::status).collect();
            assert!(begun.elapsed() < PATIENCE, "{what} did not occur: {states:#?}");
            self.turn();
        }
    }

    fn released(&self, member: u64) -> u64 {
        self.members[&member].stream().released_sequence()
    }

    fn sent(&self, from: u64, to: u64) -> LinkStatistics {
        let to = MemberId::new(to).unwrap();
        let status = self.members[&from].status().unwrap();
        status.links.into_iter().find(|(peer, ..)| *peer == to).unwrap().2
    }

    /// One at a time, so that each is an entry.
    fn publish_singly(&mut self, count: u64, length: usize) {
        let leader = self.until("a leader", |turned| turned.leader());
        let link = self.members[&leader].stream().local_link(SharedMemoryOptions::default()).unwrap();
        let options = StreamNodeOptions {
            start: Start::Live,
            publisher: Some(PublisherOptions::default()),
            ..StreamNodeOptions::default()
        };
        let mut node = StreamNode::new(link, options);
        let (mut sent, mut came) = (0, 0);
        let (payload, begun) = (vec![7; length], Instant::now());
        while came < count {
            assert!(begun.elapsed() < PATIENCE, "{came} of {sent} messages were read back");
            if sent == came && node.can_publish() {
                node.publish(TYPE, &payload).unwrap();
                sent += 1;
            }
            self.turn();
            let own =
                |event: NodeEvent<'_>| came += u64::from(matches!(event, NodeEvent::Message(message) if message.own));
            node.poll(64, own).unwrap();
        }
    }

    fn messages(&self, member: u64) -> (u64, Vec<u8>) {
        let stream = self.members[&member].stream();
        let end = stream.released_sequence();
        let (mut reader, mut count, mut bytes) = (stream.reader(1), 0, Vec::new());
        while reader.sequence() <= end {
            if let ReplayRead::Frame(frame) = reader.read().unwrap()
                && frame.kind() == Kind::Event
            {
                count += 1;
                bytes.extend_from_slice(&frame.sequence().to_le_bytes());
                bytes.extend_from_slice(frame.payload());
            }
        }
        (count, bytes)
    }
}

struct OpenCounter {
    inotify: OwnedFd,
    count: u64,
}

impl OpenCounter {
    fn watch(directory: &Path) -> Self {
        let inotify = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&inotify, directory, inotify::WatchFlags::OPEN).unwrap();
        Self { inotify, count: 0 }
    }

    fn count_opens(&mut self) -> u64 {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        while let Ok(event) = reader.next() {
            assert!(!event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW), "too many to count");
            self.count += u64::from(event.file_name().is_some());
        }
        self.count
    }
}

struct CatchUpCost {
    messages: u64,
    bytes: u64,
    opened: u64,
}

fn catch_up(missed: u64, length: usize) -> CatchUpCost {
    let mut turned = SteppedCluster::new();
    (1..=3).for_each(|member| turned.start(member));
    turned.publish_singly(1, length);
    turned.until("the first message on all", |turned| {
        let ends: Vec<u64> = (1..=3).map(|member| turned.released(member)).collect();
        ends.iter().all(|end| *end == ends[0]).then_some(())
    });
    let leader = turned.until("a leader", |turned| turned.leader());
    let (away, stays) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    turned.crash(away);
    turned.publish_singly(missed, length);
    let end = turned.until("the same last sequence on all members", |turned| {
        (turned.released(leader) == turned.released(stays)).then(|| turned.released(leader))
    });
    turned.crash(leader);
    turned.crash(stays);

    turned.start(stays);
    let mut opened = OpenCounter::watch(&turned.directory(stays).join("journal"));
    turned.start(away);
    turned.until("the end of the missed messages", |turned| {
        opened.count_opens();
        (turned.released(away) >= end && turned.leader() == Some(stays)).then_some(())
    });
    let until_ns = turned.now_ns + 40_000_000;
    turned.until("another status", |turned| (turned.now_ns > until_ns).then_some(()));
    let statistics = turned.sent(stays, away);
    let (count, bytes) = turned.messages(away);
    assert_eq!(count, missed + 1);
    assert!(bytes == turned.messages(stays).1, "both have the same messages");
    CatchUpCost { messages: statistics.messages_sent, bytes: statistics.bytes_sent, opened: opened.count_opens() }
}

/// `opened_max`: each new reader opens its four or five segments.
fn costs_what_it_moves(missed: u64, length: usize, opened_max: u64) {
    let CatchUpCost { messages, bytes, opened } = catch_up(missed, length);
    println!("{missed} messages of {length} bytes: {messages} messages, {bytes} bytes, {opened} files opened");
    let moved = (64 + length.next_multiple_of(8)) as u64 * (missed + 1);
    // Each entry has some bytes beside its frame.
    let bytes_max = moved + moved / 4 + 64 * missed;
    assert!(bytes <= bytes_max, "{bytes} bytes left for {moved} of frames");
    let messages_max = IDLE_MESSAGES + moved / (64 << 10);
    assert!(messages <= messages_max, "{messages} messages left for {moved} bytes, {messages_max} would do");
    assert!(opened <= opened_max, "files of the journal were opened {opened} times");
}

#[test]
fn short_kept_entries_batched() {
    costs_what_it_moves(in_the_log(), 30, 12);
}

#[test]
fn long_kept_entries_batched() {
    costs_what_it_moves(in_the_log(), 1_000, 24);
}

#[test]
fn short_lost_entries_batched() {
    costs_what_it_moves(before_the_log(), 30, 12);
}

#[test]
fn long_lost_entries_batched() {
    costs_what_it_moves(before_the_log(), 1_000, 24);
}

#[test]
fn late_fetch_continues_at_once() {
    let mut turned = SteppedCluster::new();
    (1..=3).for_each(|member| turned.start(member));
    turned.publish_singly(1, 1_000);
    let leader = turned.until("a leader", |turned| turned.leader());
    let away = leader % 3 + 1;
    turned.crash(away);
    turned.publish_singly(before_the_log(), 1_000);
    turned.start(away);
    turned.until("a fetch that has begun", |turned| {
        let released = turned.released(away);
        (released > 1_000 && released < before_the_log()).then_some(())
    });
    // The log grows beyond its limit; the fetching member is paused for less than a silence.
    let until_ns = turned.now_ns + STANDS_STILL_NS;
    let mut published = 0;
    while turned.now_ns < until_ns {
        turned.paused = Some(away);
        if published < MORE_THAN_A_LOG {
            published += 100;
            turned.publish_singly(100, 8);
        } else {
            turned.turn();
        }
    }
    turned.paused = None;
    let since_ns = turned.now_ns;
    let end = turned.released(leader);
    turned.until("the end", |turned| (turned.released(away) >= end).then_some(()));
    let took_ms = (turned.now_ns - since_ns) / 1_000_000;
    println!("caught up after {took_ms} ms of virtual time");
    assert!(took_ms < 100, "caught up only after {took_ms} ms");
}
