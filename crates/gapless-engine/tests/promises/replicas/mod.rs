//! A cluster of replicas in this process: files, members, and their snapshots.

use gapless_client::ClientError;
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::stream_layout::StreamLayout;
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::consensus::MemberRole;
use gapless_engine::store::Store;
use gapless_engine::{Replica, ReplicaOptions, Service, StateOptions, StateService};
use gapless_testkit::ports::{free_port, free_ports};
use gapless_testkit::turns::{TestPermit, TestSemaphore};
use gapless_transport::token::random_token;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(crate) use gapless_testkit::wait::PATIENCE;

/// Clusters that run in parallel: each has more threads than the machine has cores, most of them waiting.
static TURNS: TestSemaphore = TestSemaphore::new(3);

pub(crate) struct Cluster {
    root: tempfile::TempDir,
    pub members: Vec<Option<Replica>>,
    pub failures: BTreeMap<usize, String>,
    _turn: TestPermit,
}

impl Cluster {
    pub fn new(count: usize, more: &str) -> Self {
        let turn = TURNS.take();
        let root = tempfile::tempdir().unwrap();
        let members: String = (1..)
            .zip(free_ports(count))
            .map(|(id, port)| format!("[[member]]\nid = {id}\naddresses = [\"127.0.0.1:{port}\"]\n"))
            .collect();
        for member in 1..=count {
            let directory = root.path().join(format!("member-{member}"));
            let text = format!(
                "[cluster]\nname = \"replicas\"\nmember = {member}\n{members}[stream]\ndirectory = \"{}\"\n\
                 window = \"8 MiB\"\nmessage_length_max = \"64 KiB\"\n[journal]\nsegment_length = \"2 MiB\"\n{more}",
                directory.display()
            );
            std::fs::write(root.path().join(format!("{member}.toml")), text).unwrap();
        }
        Self { root, members: (0..count).map(|_| None).collect(), failures: BTreeMap::new(), _turn: turn }
    }

    /// The new member joins, and does not run yet; returns its address.
    pub fn make_room(&mut self) -> String {
        let port = free_port();
        let (first, next) = (std::fs::read_to_string(self.file(1)).unwrap(), self.members.len() + 1);
        let address = format!("127.0.0.1:{port}");
        let own = format!("[[member]]\nid = {next}\naddresses = [\"{address}\"]\n[stream]\n");
        let text = first
            .replace("member = 1\n", &format!("member = {next}\njoin = true\n"))
            .replace("/member-1\"", &format!("/member-{next}\""))
            .replace("[stream]\n", &own);
        std::fs::write(self.file(next), text).unwrap();
        self.members.push(None);
        address
    }

    pub fn file(&self, member: usize) -> PathBuf {
        self.root.path().join(format!("{member}.toml"))
    }

    pub fn start<S: Service>(&mut self, member: usize, service: S) -> Result<(), gapless_engine::EngineError> {
        let config = ClusterConfig::load(self.file(member)).unwrap();
        let options = ReplicaOptions::default();
        self.members[member - 1] = Some(Replica::start(service, options, &config)?);
        Ok(())
    }

    pub fn start_state<S: StateService>(
        &mut self,
        member: usize,
        make: impl Fn(&mut Store) -> S + Send + Sync + 'static,
    ) {
        let config = ClusterConfig::load(self.file(member)).unwrap();
        self.members[member - 1] = Some(Replica::start_state(make, StateOptions::default(), &config).unwrap());
    }

    pub fn of(&self, member: usize) -> &Replica {
        self.members[member - 1].as_ref().unwrap()
    }

    /// Ends members that have stopped by themselves, so that no client waits for their sockets.
    pub fn end_failed(&mut self) {
        for (member, replica) in (1..).zip(&mut self.members) {
            if let Some(failure) = replica.as_ref().and_then(Replica::failure) {
                self.failures.insert(member, failure.to_string());
                *replica = None;
            }
        }
    }

    pub fn sockets(&self) -> Vec<PathBuf> {
        let socket = |member| StreamLayout::new(self.root.path().join(format!("member-{member}"))).socket();
        (1..=self.members.len()).map(socket).collect()
    }

    #[track_caller]
    pub fn leader(&self) -> usize {
        let leads = |replica: &Option<Replica>| {
            let status = replica.as_ref().filter(|each| each.failure().is_none())?.member().status();
            status.filter(|status| status.consensus.role == MemberRole::Leader)
        };
        wait("a leader", || (1..=self.members.len()).find(|member| leads(&self.members[member - 1]).is_some()))
    }

    #[track_caller]
    pub fn ends_equal(&mut self, members: &[usize]) {
        wait("the same sequence on each member", || {
            let handled: Vec<u64> = members.iter().map(|member| self.of(*member).handled_sequence()).collect();
            handled.iter().all(|each| *each == handled[0]).then_some(())
        });
        // The leader last: without a majority no one leads after it, and appends more.
        let leader = self.leader();
        let mut order = members.to_vec();
        order.sort_by_key(|member| *member == leader);
        for member in order {
            self.members[member - 1].take().unwrap().stop().unwrap();
        }
        let newest = |member: &usize| {
            let directory = StreamLayout::new(self.root.path().join(format!("member-{member}"))).snapshots();
            let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|each| each.unwrap().path()).collect();
            paths.sort();
            let newest = paths.pop().unwrap();
            (newest.file_name().unwrap().to_owned(), std::fs::read(&newest).unwrap())
        };
        let copies: Vec<_> = members.iter().map(newest).collect();
        let names: Vec<_> = copies.iter().map(|(name, _)| name).collect();
        assert!(names.windows(2).all(|pair| pair[0] == pair[1]), "the members end at different sequences: {names:?}");
        assert!(copies.windows(2).all(|pair| pair[0] == pair[1]), "the snapshots differ");
    }
}

#[track_caller]
pub(crate) fn wait<T>(what: &str, mut is_there: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = is_there() {
            return found;
        }
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) struct Caller {
    client: PolledClient,
    session: SessionKey,
    message: MessageType,
    pub length: usize,
    sent: u64,
    pub replies: BTreeMap<u64, Vec<u8>>,
}

impl Caller {
    pub fn new(cluster: &Cluster, message: MessageType) -> Self {
        let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
        Self::over(PolledClient::connect_any(&cluster.sockets(), options).unwrap(), message)
    }

    pub fn over(mut client: PolledClient, message: MessageType) -> Self {
        let session = client.open_session(random_token(), 8).unwrap();
        Self { client, session, message, length: 8, sent: 0, replies: BTreeMap::new() }
    }

    #[track_caller]
    pub fn call_more(&mut self, cluster: &mut Cluster, count: u64) {
        self.call_until(cluster, self.sent + count);
    }

    #[track_caller]
    pub fn call_until(&mut self, cluster: &mut Cluster, count: u64) {
        let deadline = Instant::now() + PATIENCE;
        while (self.replies.len() as u64) < count {
            assert!(Instant::now() < deadline, "{} of {count} replies have come", self.replies.len());
            cluster.end_failed();
            while self.sent < count && self.client.can_send(self.session) {
                let number = self.sent + 1;
                let length = self.length;
                let encode = |buffer: &mut [u8]| {
                    buffer.fill(0);
                    buffer[..8].copy_from_slice(&number.to_le_bytes());
                    Ok(length)
                };
                if self.client.send(self.session, self.message, length, encode).is_err() {
                    break;
                }
                self.sent = number;
            }
            let replies = &mut self.replies;
            let polled = self.client.poll(64, |incoming| {
                if let Incoming::Reply { reply, .. } = incoming {
                    assert!(reply.refusal.is_none(), "{reply:?}");
                    let before = replies.insert(reply.session_seq, reply.payload.to_vec());
                    assert!(before.is_none_or(|before| before == reply.payload), "the same reply again");
                }
            });
            match polled.and_then(|_| self.client.wait(Duration::from_millis(1))) {
                Err(ClientError::Disconnected { .. }) => self.client.reconnect().unwrap(),
                other => other.unwrap(),
            }
        }
    }
}
