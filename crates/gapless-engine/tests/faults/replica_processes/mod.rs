//! Replicas as separate processes of this executable; `role` selects the replica to run.

use gapless_client::ClientError;
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::stream_layout::StreamLayout;
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::consensus::MemberRole;
use gapless_cluster::member::control;
use gapless_cluster::member::control::{AdminAnswer, AdminRequest, StatusReport};
use gapless_engine::{Reject, Replica};
use gapless_schema::Encoding;
use gapless_testkit::ports::free_ports;
use gapless_testkit::process::{Process, started_as, this_program};
use gapless_transport::token::random_token;
use rustix::process::Pid;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(90);
pub const HEARD: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
pub const COUNTS: MessageType = MessageType { schema: 1 << 16 | 2, encoding: Encoding::Opaque };
pub const COMMANDS: u64 = 1_500;
pub const CLIENTS: u64 = 2;
pub const KILLS: usize = 4;

pub fn number_of(payload: &[u8]) -> Result<u64, Reject> {
    Ok(payload.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).ok_or("8 bytes are expected")?)
}

/// Does not return if the arguments request a replica.
pub fn run_as_replica_if_requested(role: &str, start: impl FnOnce(&ClusterConfig) -> Replica) {
    let Some(arguments) = started_as(role) else { return };
    let file = &arguments[0];
    let replica = start(&ClusterConfig::load(file).unwrap());
    println!("running");
    let mut line = String::new();
    let mut input = BufReader::new(std::io::stdin());
    while input.read_line(&mut line).unwrap() > 0 {
        if let Some(failure) = replica.failure() {
            eprintln!("{file}: {failure}");
            std::process::exit(3);
        }
        let is_leader = replica.member().status().is_some_and(|status| status.consensus.role == MemberRole::Leader);
        let handled = replica.handled_sequence();
        println!("{is_leader} {handled} {}", replica.state_hash().unwrap_or(0));
        line.clear();
    }
    println!("{}", replica.stop().unwrap());
    std::process::exit(0);
}

pub struct ReplicaStatus {
    pub leads: bool,
    pub handled_sequence: u64,
    pub state_hash: u64,
}

pub struct ReplicaProcess {
    process: Process,
    input: ChildStdin,
}

impl ReplicaProcess {
    fn start(role: &str, file: &Path, environment: &[(&str, &str)]) -> Self {
        let mut command = this_program();
        command.arg(role).arg(file).envs(environment.iter().copied()).stdin(Stdio::piped());
        let mut process = Process::start(&mut command);
        assert_eq!(process.line(), "running");
        let input = process.input();
        Self { process, input }
    }

    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    pub fn standing(&mut self) -> ReplicaStatus {
        self.input.write_all(b"?\n").unwrap();
        let line = self.process.line();
        let words: Vec<&str> = line.split(' ').collect();
        let [leads, handled, hash] = words[..] else { panic!("a running replica replies: {line:?}") };
        ReplicaStatus {
            leads: leads == "true",
            handled_sequence: handled.parse().unwrap(),
            state_hash: hash.parse().unwrap(),
        }
    }

    fn stop(self) -> u64 {
        let Self { mut process, input } = self;
        drop(input);
        let rest = process.rest();
        assert!(process.wait().success());
        rest[0].parse().unwrap()
    }
}

pub struct Cluster {
    role: &'static str,
    root: tempfile::TempDir,
    witness: Option<usize>,
    members: Vec<Option<ReplicaProcess>>,
    environments: [Environment; 3],
}

pub type Environment = &'static [(&'static str, &'static str)];

impl Cluster {
    pub fn start(role: &'static str, witness: Option<usize>) -> Self {
        Self::start_with(role, witness, "", [&[]; 3])
    }

    pub fn start_with(role: &'static str, witness: Option<usize>, more: &str, environments: [Environment; 3]) -> Self {
        const COUNT: usize = 3;
        let root = tempfile::tempdir().unwrap();
        let ports = free_ports(COUNT);
        for member in 1..=COUNT {
            let mut text = format!("[cluster]\nname = \"killed\"\nmember = {member}\n");
            for (id, port) in (1..).zip(&ports) {
                let kind = if Some(id) == witness { "witness" } else { "full" };
                text += &format!("[[member]]\nid = {id}\naddresses = [\"127.0.0.1:{port}\"]\nkind = \"{kind}\"\n");
            }
            text += &format!(
                "[stream]\ndirectory = \"member-{member}\"\nwindow = \"8 MiB\"\nmessage_length_max = \"64 KiB\"\n\
                 [journal]\nsegment_length = \"2 MiB\"\n{more}"
            );
            std::fs::write(root.path().join(format!("{member}.toml")), text).unwrap();
        }
        let mut cluster = Self { role, root, witness, members: (0..COUNT).map(|_| None).collect(), environments };
        (1..=COUNT).for_each(|member| cluster.start_one(member));
        cluster
    }

    fn start_one(&mut self, member: usize) {
        let started = ReplicaProcess::start(self.role, &self.file(member), self.environments[member - 1]);
        self.members[member - 1] = Some(started);
    }

    pub fn file(&self, member: usize) -> PathBuf {
        self.root.path().join(format!("{member}.toml"))
    }

    pub fn layout(&self, member: usize) -> StreamLayout {
        StreamLayout::new(self.root.path().join(format!("member-{member}")))
    }

    pub fn sockets(&self) -> Vec<PathBuf> {
        (1..=self.members.len()).map(|member| self.layout(member).socket()).collect()
    }

    pub fn of(&mut self, member: usize) -> &mut ReplicaProcess {
        self.members[member - 1].as_mut().unwrap()
    }

    pub fn full(&self) -> Vec<usize> {
        (1..=self.members.len()).filter(|member| Some(*member) != self.witness).collect()
    }

    pub fn leader(&mut self) -> usize {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found =
                self.members.iter_mut().position(|each| each.as_mut().is_some_and(|each| each.standing().leads));
            if let Some(at) = found {
                return at + 1;
            }
            assert!(Instant::now() < deadline, "no member leads");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn ask(&self, member: usize, request: &AdminRequest) -> Option<AdminAnswer> {
        control::ask(&self.root.path().join(format!("member-{member}")), request).ok()
    }

    fn status(&self, member: usize) -> StatusReport {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(AdminAnswer::Status(status)) = self.ask(member, &AdminRequest::Status) {
                return *status;
            }
            assert!(Instant::now() < deadline, "member {member} reports no status");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn term(&self, member: usize) -> u64 {
        self.status(member).term
    }

    pub fn make_leader(&mut self, member: usize) -> u64 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.status(member);
            if status.role == "leader" {
                return status.term;
            }
            assert!(Instant::now() < deadline, "member {member} does not become the leader");
            let leader = self.leader();
            // The replica may have lost the lead; the next attempt asks again.
            let _ = self.ask(leader, &AdminRequest::Transfer { to: member as u64 });
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub fn settle(&mut self) -> u64 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let standing: Vec<_> = self.full().into_iter().map(|member| self.of(member).standing()).collect();
            let handled: Vec<_> = standing.iter().map(|each| each.handled_sequence).collect();
            if handled.iter().all(|each| *each == handled[0]) {
                let hashes: Vec<_> = standing.iter().map(|each| each.state_hash).collect();
                assert!(
                    hashes.iter().all(|each| *each == hashes[0]),
                    "the instances differ: {hashes:?} at {handled:?}"
                );
                return hashes[0];
            }
            assert!(Instant::now() < deadline, "the instances have handled {handled:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn stop(&mut self) -> Vec<u64> {
        self.members.iter_mut().map(|member| member.take().unwrap().stop()).collect()
    }
}

pub fn client(sockets: &[PathBuf]) -> PolledClient {
    let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    PolledClient::connect_any(sockets, options).unwrap()
}

pub trait Sender {
    fn turn(&mut self, until: u64);

    fn answered(&self) -> u64;
}

pub struct Numbers {
    pub client: PolledClient,
    pub session: SessionKey,
    pub owner: u64,
    pub sent: u64,
    pub replies: BTreeMap<u64, u64>,
    pub again: u64,
}

impl Numbers {
    pub fn new(sockets: &[PathBuf], owner: u64) -> Self {
        let mut client = client(sockets);
        let session = client.open_session(random_token(), 16).unwrap();
        Self { client, session, owner, sent: 0, replies: BTreeMap::new(), again: 0 }
    }
}

impl Sender for Numbers {
    fn answered(&self) -> u64 {
        self.replies.len() as u64
    }

    fn turn(&mut self, until: u64) {
        while self.sent < until && self.client.can_send(self.session) {
            let number = self.owner << 32 | (self.sent + 1);
            let encode = |buffer: &mut [u8]| {
                buffer.copy_from_slice(&number.to_le_bytes());
                Ok(8)
            };
            match self.client.send(self.session, HEARD, 8, encode) {
                Ok(_) => self.sent += 1,
                Err(_) => break,
            }
        }
        let (replies, again) = (&mut self.replies, &mut self.again);
        let outcome = self.client.poll(256, |incoming| match incoming {
            Incoming::Reply { reply, first, .. } => {
                assert!(reply.refusal.is_none(), "{reply:?}");
                let answered = number_of(reply.payload).unwrap();
                let before = replies.insert(reply.session_seq, answered);
                assert_eq!(first, before.is_none(), "{reply:?}");
                assert!(before.is_none_or(|before| before == answered), "the same reply again");
                *again += u64::from(!first);
            }
            Incoming::SessionLost { .. } => panic!("a session is kept over a change of leader"),
            Incoming::Opened { .. } | Incoming::Notice { .. } => {}
        });
        match outcome.and_then(|_| self.client.wait(Duration::from_millis(1))) {
            Err(ClientError::Disconnected { .. }) => self.client.reconnect().unwrap(),
            other => other.unwrap(),
        }
    }
}

pub fn kill_leaders(cluster: &mut Cluster, senders: &mut [impl Sender]) -> Duration {
    let mut longest = Duration::ZERO;
    for kill in 1..=KILLS as u64 {
        let (goal, half) = (COMMANDS * kill, COMMANDS * kill - COMMANDS / 2);
        let deadline = Instant::now() + PATIENCE;
        let mut killed = None;
        while senders.iter().any(|sender| sender.answered() < goal) {
            let answered: Vec<_> = senders.iter().map(Sender::answered).collect();
            assert!(Instant::now() < deadline, "round {kill}: {answered:?} of {goal}");
            if killed.is_none() && senders[0].answered() >= half {
                let leader = cluster.leader();
                cluster.members[leader - 1] = None;
                killed = Some((leader, Instant::now(), senders[0].answered()));
            }
            senders.iter_mut().for_each(|sender| sender.turn(goal));
            if let Some((_, since, before)) = killed
                && senders[0].answered() == before
            {
                longest = longest.max(since.elapsed());
            }
        }
        let (leader, ..) = killed.expect("it was killed in the middle");
        cluster.start_one(leader);
    }
    longest
}
