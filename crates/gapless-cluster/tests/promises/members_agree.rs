#![allow(clippy::unwrap_used, reason = "a test")]

use crate::cluster::TURNS;
use gapless_agent::Now;
use gapless_client::node::{NodeEvent, PublisherOptions, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_client::replay_merge::ReplayRead;
use gapless_cluster::ClusterMember;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::consensus::MemberRole;
use gapless_testkit::ports::free_ports;
use gapless_testkit::turns::TestPermit;
use gapless_testkit::wait::{PATIENCE, turn_until};
use gapless_wire::{Encoding, Kind};
use std::path::Path;
use std::time::{Duration, Instant};

const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };

fn config(directory: &Path, ports: &[u16], member: usize, sizes: &str) -> ClusterConfig {
    let mut text = format!("[cluster]\nname = \"test\"\nmember = {member}\n");
    for (at, port) in ports.iter().enumerate() {
        text += &format!("[[member]]\nid = {}\naddresses = [\"127.0.0.1:{port}\"]\n", at + 1);
    }
    let directory = directory.join(format!("member-{member}"));
    // A busy machine causes no election.
    text += &format!(
        "[stream]\ndirectory = \"{}\"\n{sizes}\n[journal]\nsegment_length = \"4 MiB\"\n[election]\ntimeout = \"1 s\"\n",
        directory.display()
    );
    ClusterConfig::parse(&text, "test.toml").unwrap()
}

const SMALL: &str = "window = \"8 MiB\"\nmessage_length_max = \"64 KiB\"";

struct Cluster {
    sizes: &'static str,
    directory: tempfile::TempDir,
    ports: Vec<u16>,
    members: Vec<Option<ClusterMember>>,
    _turn: TestPermit,
}

impl Cluster {
    fn start(count: usize) -> Self {
        Self::start_with(count, SMALL)
    }

    fn start_with(count: usize, sizes: &'static str) -> Self {
        let turn = TURNS.take();
        let directory = tempfile::tempdir().unwrap();
        let ports = free_ports(count);
        let members = (0..count).map(|_| None).collect();
        let mut cluster = Self { sizes, directory, ports, members, _turn: turn };
        (1..=count).for_each(|member| cluster.start_one(member));
        cluster
    }

    fn start_one(&mut self, member: usize) {
        let config = config(self.directory.path(), &self.ports, member, self.sizes);
        self.members[member - 1] = Some(ClusterMember::start(&config).unwrap());
    }

    fn get(&self, member: usize) -> &ClusterMember {
        self.members[member - 1].as_ref().unwrap()
    }

    fn running(&self) -> impl Iterator<Item = &ClusterMember> {
        self.members.iter().flatten()
    }

    #[track_caller]
    fn wait<T>(&self, what: &str, mut is_there: impl FnMut(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = is_there(self) {
                return found;
            }
            for member in self.running() {
                assert!(member.stream().failure().is_none(), "{what}: {:?}", member.stream().failure());
            }
            let states: Vec<_> = self.running().map(ClusterMember::status).collect();
            assert!(Instant::now() < deadline, "{what} did not occur: {states:#?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[track_caller]
    fn leader(&self) -> usize {
        self.wait("a leader", |cluster| {
            let leads = |member: &ClusterMember| {
                member.status().is_some_and(|status| status.consensus.role == MemberRole::Leader)
            };
            cluster.members.iter().position(|member| member.as_ref().is_some_and(leads)).map(|at| at + 1)
        })
    }

    #[track_caller]
    fn publish(&self, member: usize, texts: impl Iterator<Item = String>) {
        self.publish_in(256, member, texts);
    }

    #[track_caller]
    fn publish_in(&self, window_messages: u32, member: usize, texts: impl Iterator<Item = String>) {
        let link = self.get(member).stream().local_link(SharedMemoryOptions::default()).unwrap();
        let publisher = PublisherOptions { window_messages, ..PublisherOptions::default() };
        let options =
            StreamNodeOptions { start: Start::Live, publisher: Some(publisher), ..StreamNodeOptions::default() };
        let mut node = StreamNode::new(link, options);
        node.wait_open(PATIENCE).unwrap();
        let (mut sent, mut came) = (0, 0);
        for text in texts {
            while !node.can_publish() {
                let count = node
                    .poll(64, |event| came += u64::from(matches!(event, NodeEvent::Message(message) if message.own)))
                    .unwrap();
                if count == 0 {
                    node.wait(Duration::from_millis(1)).unwrap();
                }
            }
            node.publish(TYPE, text.as_bytes()).unwrap();
            sent += 1;
        }
        let deadline = Instant::now() + PATIENCE;
        while came < sent {
            let count =
                node.poll(64, |event| came += u64::from(matches!(event, NodeEvent::Message(message) if message.own)));
            assert!(Instant::now() < deadline, "{came} of {sent} messages were read back");
            if count.unwrap() == 0 {
                node.wait(Duration::from_millis(1)).unwrap();
            }
        }
    }

    /// Sequence, term, payload; the same on each running member.
    #[track_caller]
    fn contents(&self) -> Vec<(u64, u64, String)> {
        let end = self.wait("the same last sequence on all members", |cluster| {
            let ends: Vec<_> = cluster.running().map(|member| member.stream().released_sequence()).collect();
            (ends[0] > 0 && ends.iter().all(|end| *end == ends[0])).then_some(ends[0])
        });
        let read = |member: &ClusterMember| {
            let mut reader = member.stream().reader(1);
            let mut found = Vec::new();
            while reader.sequence() <= end {
                match reader.read().unwrap() {
                    ReplayRead::Frame(frame) if frame.kind() == Kind::Event => {
                        let text = String::from_utf8(frame.payload().to_vec()).unwrap();
                        found.push((frame.sequence(), frame.term(), text));
                    }
                    _ => {}
                }
            }
            found
        };
        let all: Vec<_> = self.running().map(read).collect();
        assert!(all.iter().all(|each| *each == all[0]), "the members have different streams");
        all.into_iter().next().unwrap()
    }
}

fn texts(name: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{name} {number} {}", "x".repeat(number % 300)))
}

#[track_caller]
fn has_exactly(contents: &[(u64, u64, String)], expected: impl Iterator<Item = String>) {
    let found: Vec<_> = contents.iter().map(|(_, _, text)| text.as_str()).collect();
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn members_agree_under_each_leader() {
    let mut cluster = Cluster::start(3);
    let first = cluster.leader();
    cluster.publish(first, texts("first", 5000));
    has_exactly(&cluster.contents(), texts("first", 5000));

    cluster.members[first - 1].take().unwrap().stop().unwrap();
    let second = cluster.leader();
    assert_ne!(first, second);
    cluster.publish(second, texts("second", 5000));
    has_exactly(&cluster.contents(), texts("first", 5000).chain(texts("second", 5000)));

    cluster.start_one(first);
    let expected = || texts("first", 5000).chain(texts("second", 5000));
    has_exactly(&cluster.contents(), expected());

    for member in &mut cluster.members {
        member.take().unwrap().stop().unwrap();
    }
    (1..=3).for_each(|member| cluster.start_one(member));
    let third = cluster.leader();
    cluster.publish(third, texts("third", 100));
    has_exactly(&cluster.contents(), expected().chain(texts("third", 100)));
}

#[test]
fn idle_leader_stays() {
    const STEP_NS: u64 = 200_000;
    /// A leader without answers would step down after one.
    const TIME_OUTS: u64 = 4;
    let directory = tempfile::tempdir().unwrap();
    let ports = free_ports(3);
    let configs = [1, 2, 3].map(|member| config(directory.path(), &ports, member, SMALL));
    let timeout_ns = configs[0].election.timeout.as_nanos() as u64;
    let mut members = configs.map(|config| ClusterMember::start_by_hand(&config).unwrap());
    let mut now_ns = 1;
    let mut turn = |members: &mut [ClusterMember; 3]| {
        now_ns += STEP_NS;
        for member in members {
            member.turn(Now { monotonic_ns: now_ns, epoch_ns: now_ns }).unwrap();
        }
    };
    let leads = |member: &ClusterMember| {
        member
            .status()
            .is_some_and(|status| status.consensus.role == MemberRole::Leader && status.members.voters.len() == 3)
    };
    let mut leader = None;
    turn_until("a leader", || {
        turn(&mut members);
        leader = members.iter().position(leads);
        leader.is_some()
    });
    let leader = leader.unwrap();
    let term = members[leader].status().unwrap().consensus.term;
    for _ in 0..TIME_OUTS * timeout_ns / STEP_NS {
        turn(&mut members);
        let status = members[leader].status().unwrap().consensus;
        assert_eq!((status.role, status.term), (MemberRole::Leader, term));
    }
}

#[test]
fn lone_member_leads() {
    let cluster = Cluster::start(1);
    let leader = cluster.leader();
    cluster.publish(leader, texts("alone", 2000));
    has_exactly(&cluster.contents(), texts("alone", 2000));
}

#[test]
fn long_absent_member_catches_up() {
    let mut cluster = Cluster::start(3);
    let leader = cluster.leader();
    cluster.publish(leader, texts("before", 10));
    let away = leader % 3 + 1;
    cluster.members[away - 1].take().unwrap().stop().unwrap();
    // More entries than the 4,096 of a log, and more frames than a window holds.
    let singly = || (0..4_500).map(|number| format!("singly {number}"));
    let many = || (0..12_000).map(|number| format!("many {number} {}", "y".repeat(1000)));
    cluster.publish_in(1, leader, singly());
    cluster.publish(leader, many());
    cluster.start_one(away);
    has_exactly(&cluster.contents(), texts("before", 10).chain(singly()).chain(many()));
    let fetched = || cluster.get(away).status().unwrap().fetched;
    cluster.wait("a fetched log position", |_| (fetched() > 0).then_some(()));
    let third = (1..=3).find(|member| ![leader, away].contains(member)).unwrap();
    cluster.members[third - 1].take().unwrap().stop().unwrap();
    let leader = cluster.leader();
    cluster.publish(leader, texts("after", 10));
    let expected = texts("before", 10).chain(singly()).chain(many()).chain(texts("after", 10));
    has_exactly(&cluster.contents(), expected);
}

#[test]
fn long_message_is_one_entry() {
    let cluster = Cluster::start_with(3, "window = \"64 MiB\"\nmessage_length_max = \"12 MiB\"");
    let leader = cluster.leader();
    let texts = || (0..4).map(|number| format!("{number}").repeat(if number % 2 == 0 { 11 << 20 } else { 100 }));
    cluster.publish(leader, texts());
    let whole: String = cluster.contents().into_iter().map(|(_, _, text)| text).collect();
    assert!(whole == texts().collect::<String>(), "{} bytes", whole.len());
}

#[test]
fn oversized_limit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sizes = "window = \"256 MiB\"\nmessage_length_max = \"64 MiB\"\n[node]\nkept = \"128 MiB\"";
    let config = config(directory.path(), &free_ports(1), 1, sizes);
    let refused = ClusterMember::start(&config).err().unwrap().to_string();
    assert!(refused.contains("message_length_max") && refused.contains("67108864"), "{refused}");
}

#[test]
fn foreign_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let ports = free_ports(1);
    let config = config(directory.path(), &ports, 1, SMALL);
    let mut options = config.event_stream_options();
    options.tier = gapless_transport::Tier::Journal;
    let stream = gapless_stream::event_stream::EventStream::start(&options).unwrap();
    stream.stop().unwrap();
    let refused = ClusterMember::start(&config).err().unwrap();
    assert!(refused.to_string().contains("is that of a stream"), "{refused}");
    std::fs::remove_file(options.directory.unwrap().join("directory")).unwrap();
    let refused = ClusterMember::start(&config).err().unwrap();
    assert!(refused.to_string().contains("another cluster"), "of before there was such a file: {refused}");
}
