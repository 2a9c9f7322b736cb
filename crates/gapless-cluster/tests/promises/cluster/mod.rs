use gapless_client::node::{NodeEvent, PublisherOptions, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_client::replay_merge::ReplayRead;
use gapless_cluster::ClusterMember;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::consensus::{MemberId, MemberRole};
use gapless_testkit::ports::{free_port, free_ports};
use gapless_testkit::turns::{TestPermit, TestSemaphore};
use gapless_wire::{Encoding, Kind};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(90);
const TYPE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
/// A busy machine causes no election.
const SMALL: &str = "window = \"8 MiB\"\nmessage_length_max = \"64 KiB\"\n[election]\ntimeout = \"1 s\"";

pub fn id(number: u64) -> MemberId {
    MemberId::new(number).unwrap()
}

/// Each cluster has more threads than the machine has cores, but most wait.
pub static TURNS: TestSemaphore = TestSemaphore::new(3);

pub struct Cluster {
    root: tempfile::TempDir,
    ports: Vec<u16>,
    pub first: usize,
    pub members: BTreeMap<u64, ClusterMember>,
    joined: BTreeMap<u64, String>,
    pub extra: String,
    pub incarnation: u64,
    _turn: TestPermit,
}

impl Cluster {
    pub fn start(count: usize) -> Self {
        Self::start_with(count, "")
    }

    pub fn start_with(count: usize, extra: &str) -> Self {
        let turn = TURNS.take();
        let mut cluster = Self {
            root: tempfile::tempdir().unwrap(),
            ports: free_ports(count),
            first: count,
            members: BTreeMap::new(),
            joined: BTreeMap::new(),
            extra: extra.to_owned(),
            incarnation: 1,
            _turn: turn,
        };
        (1..=count as u64).for_each(|member| cluster.start_one(member));
        cluster
    }

    pub fn directory(&self, member: u64) -> PathBuf {
        self.root.path().join(format!("member-{member}"))
    }

    pub fn make_room(&mut self) -> u64 {
        self.ports.push(free_port());
        self.ports.len() as u64
    }

    pub fn address(&self, member: u64) -> String {
        format!("127.0.0.1:{}", self.ports[member as usize - 1])
    }

    pub fn config(&self, member: u64) -> ClusterConfig {
        let kind = self.joined.get(&member);
        let join = if kind.is_some() { "join = true\n" } else { "" };
        let mut text =
            format!("[cluster]\nname = \"test\"\nmember = {member}\nincarnation = {}\n{join}", self.incarnation);
        for number in (1..=self.first as u64).chain(kind.map(|_| member)) {
            text += &format!("[[member]]\nid = {number}\naddresses = [\"{}\"]\n", self.address(number));
        }
        if let Some(kind) = kind {
            text += &format!("kind = \"{kind}\"\n");
        }
        let directory = self.directory(member);
        text += &format!(
            "[stream]\ndirectory = \"{}\"\n{SMALL}\n[journal]\nsegment_length = \"4 MiB\"\n{}",
            directory.display(),
            self.extra
        );
        ClusterConfig::parse(&text, "test.toml").unwrap()
    }

    pub fn try_start(&self, member: u64) -> Result<ClusterMember, gapless_cluster::ClusterError> {
        ClusterMember::start(&self.config(member))
    }

    pub fn start_one(&mut self, member: u64) {
        let started = self.try_start(member).unwrap();
        self.members.insert(member, started);
    }

    pub fn join(&mut self, member: u64) {
        self.join_as(member, "full");
    }

    pub fn join_as(&mut self, member: u64, kind: &str) {
        self.joined.insert(member, kind.to_owned());
        self.start_one(member);
    }

    pub fn restart(&mut self) {
        let all: Vec<_> = self.members.keys().copied().collect();
        for member in std::mem::take(&mut self.members).into_values() {
            member.stop().unwrap();
        }
        all.into_iter().for_each(|member| self.start_one(member));
    }

    pub fn get(&self, member: u64) -> &ClusterMember {
        &self.members[&member]
    }

    pub fn forget(&mut self, member: u64) -> ClusterMember {
        self.members.remove(&member).unwrap()
    }

    pub fn running(&self) -> impl Iterator<Item = &ClusterMember> {
        self.members.values()
    }

    #[track_caller]
    pub fn wait<T>(&self, what: &str, mut is_there: impl FnMut(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = is_there(self) {
                return found;
            }
            if Instant::now() > deadline {
                let states: Vec<_> = self.running().map(|each| (each.status(), each.stream().failure())).collect();
                panic!("{what} did not occur: {states:#?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[track_caller]
    pub fn failure(&self, member: u64) -> String {
        self.wait("an error", |cluster| cluster.get(member).stream().failure().map(|error| error.to_string()))
    }

    #[track_caller]
    pub fn leader(&self) -> u64 {
        self.wait("a leader", |cluster| {
            let leads = |member: &ClusterMember| {
                let is_leader = |status: gapless_cluster::member::MemberStatus| {
                    let is_alone = status.members.all().len() == 1;
                    status.consensus.role == MemberRole::Leader && (is_alone || !status.consensus.peers.is_empty())
                };
                member.stream().failure().is_none() && member.status().is_some_and(is_leader)
            };
            cluster.members.iter().find(|(_, member)| leads(member)).map(|(number, _)| *number)
        })
    }

    #[track_caller]
    pub fn leading(&self) -> &ClusterMember {
        self.get(self.leader())
    }

    #[track_caller]
    pub fn has_exactly(&self, count: u64) {
        let end = self.wait("the same last sequence on all members", |cluster| {
            let ends: Vec<_> = cluster.running().map(|member| member.stream().released_sequence()).collect();
            (ends[0] >= count && ends.iter().all(|end| *end == ends[0])).then_some(ends[0])
        });
        for member in self.running() {
            let mut reader = member.stream().reader(1);
            let mut next = 0;
            while reader.sequence() <= end {
                match reader.read().unwrap() {
                    ReplayRead::Frame(frame) if frame.kind() == Kind::Event => {
                        let number = u64::from_le_bytes(frame.payload()[..8].try_into().unwrap());
                        assert_eq!(number, next, "at sequence {}", frame.sequence());
                        next += 1;
                    }
                    _ => {}
                }
            }
            assert_eq!(next, count);
        }
    }
}

pub struct Traffic {
    stopping: Arc<AtomicBool>,
    came: Arc<AtomicU64>,
    thread: JoinHandle<u64>,
}

const LENGTH: usize = 512;

impl Traffic {
    #[track_caller]
    pub fn begin(cluster: &Cluster) -> Self {
        let events = {
            let member = cluster.leading();
            let end = member.stream().released_sequence();
            let mut reader = member.stream().reader(1);
            let mut count = 0;
            while end > 0 && reader.sequence() <= end {
                match reader.read().unwrap() {
                    ReplayRead::Frame(frame) if frame.kind() == Kind::Event => {
                        count = u64::from_le_bytes(frame.payload()[..8].try_into().unwrap()) + 1;
                    }
                    _ => {}
                }
            }
            count
        };
        let link = cluster.leading().stream().local_link(SharedMemoryOptions::default()).unwrap();
        let publisher = PublisherOptions { window_messages: 64, ..PublisherOptions::default() };
        let options =
            StreamNodeOptions { start: Start::Live, publisher: Some(publisher), ..StreamNodeOptions::default() };
        let stopping = Arc::<AtomicBool>::default();
        let came = Arc::<AtomicU64>::default();
        let (stops, counts) = (Arc::clone(&stopping), Arc::clone(&came));
        let run = move || {
            let mut node = StreamNode::new(link, options);
            node.wait_open(PATIENCE).unwrap();
            let (mut sent, mut back) = (0u64, 0u64);
            let deadline = Instant::now() + 3 * PATIENCE;
            let mut payload = [7; LENGTH];
            while !stops.load(Ordering::Relaxed) || back < sent {
                assert!(Instant::now() < deadline, "{back} of {sent} messages were read back");
                if !stops.load(Ordering::Relaxed) && sent - back < 64 && node.can_publish() {
                    payload[..8].copy_from_slice(&(events + sent).to_le_bytes());
                    node.publish(TYPE, &payload).unwrap();
                    sent += 1;
                }
                let polled = node
                    .poll(64, |event| back += u64::from(matches!(event, NodeEvent::Message(message) if message.own)))
                    .unwrap();
                counts.store(back, Ordering::Relaxed);
                if polled == 0 {
                    node.wait(Duration::from_millis(1)).unwrap();
                }
            }
            sent
        };
        Self { stopping, came, thread: std::thread::spawn(run) }
    }

    #[track_caller]
    pub fn continues(&self) {
        self.arrives(500);
    }

    #[track_caller]
    pub fn arrives(&self, count: u64) {
        let target = self.came.load(Ordering::Relaxed) + count;
        let deadline = Instant::now() + PATIENCE;
        while self.came.load(Ordering::Relaxed) < target {
            assert!(!self.thread.is_finished(), "the publisher has failed");
            assert!(Instant::now() < deadline, "messages are no longer read back");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[track_caller]
    pub fn end(self) -> u64 {
        self.stopping.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
