//! [`ClientWorld`]: a member with the service, the wire to it, and one virtual clock. The wire loses whole messages,
//! delays some, and breaks; the member is killed and restarted; messages of a dead client may still arrive.

use super::book::{Book, Pages};
use gapless_agent::Now;
use gapless_client::ClientError;
use gapless_client::polled::ClientEnvironment;
use gapless_cluster::ClusterMember;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::member::MemberEnvironment;
use gapless_engine::{Replica, ReplicaOptions};
use gapless_journal::JournalEnvironment;
use gapless_log::{LogError, MemoryKind, RingReader, RingWriter, ring};
use gapless_sim::Random;
use gapless_transport::RingSizes;
use gapless_transport::publisher_link::PublisherLink;
use gapless_transport::sockets::{Network, Pipe, PipeListener, Pipes};
use gapless_wire::{Frame, aligned_length};
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub const MS: u64 = 1_000_000;
/// One poll of everything.
pub const STEP: Duration = Duration::from_millis(1);
/// Silence that closes a session.
pub const EXPIRY: Duration = Duration::from_secs(3);
const BEGINNING_NS: u64 = 1_900_000_000_000_000_000;
const RINGS: RingSizes = RingSizes { command_ring_bytes: 64 << 10, reply_ring_bytes: 64 << 10 };

/// Probabilities in 100,000ths of messages or steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultProfile {
    pub command_lost: u64,
    pub answer_lost: u64,
    pub kept_back: u64,
    pub broken: u64,
    pub killed: u64,
}

#[derive(Default)]
struct WireDirection {
    frame: Vec<u8>,
    is_lost: bool,
    has_frame: bool,
}

struct Wire {
    commands: RingReader,
    replies: RingWriter,
    far: PublisherLink,
    there: WireDirection,
    back: WireDirection,
}

/// Moves messages as far as there is room; loses them as a whole.
fn carry(way: &mut WireDirection, from: &mut RingReader, to: &mut RingWriter, lost: u64, random: &mut Random) {
    loop {
        if !way.has_frame {
            let Some(length) = from.next_length().unwrap() else { break };
            way.frame.resize(aligned_length(length), 0);
            from.copy(&mut way.frame);
            from.advance(length);
            if Frame::parse(&way.frame).unwrap().fragment().index == 0 {
                way.is_lost = random.happens_per_100_000(lost);
            }
        }
        way.has_frame = false;
        if !way.is_lost {
            match to.append(&way.frame) {
                Ok(()) => {}
                Err(LogError::Full { .. }) => {
                    way.has_frame = true;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    from.release();
    let _ = to.publish();
}

impl Wire {
    fn turn(&mut self, profile: &FaultProfile, random: &mut Random) {
        if random.happens_per_100_000(profile.kept_back) {
            return;
        }
        carry(&mut self.there, &mut self.commands, &mut self.far.writer, profile.command_lost, random);
        carry(&mut self.back, &mut self.far.reader, &mut self.replies, profile.answer_lost, random);
    }
}

/// Another process could take a real port while the member is down.
#[derive(Debug)]
struct RefusingNetwork;

impl Pipes for RefusingNetwork {
    fn dial(&self, _: SocketAddr) -> io::Result<Box<dyn Pipe>> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    fn listen(&self, _: SocketAddr) -> io::Result<Box<dyn PipeListener>> {
        Ok(Box::new(IdleListener(File::open("/dev/null")?)))
    }
}

/// The member is polled, so the descriptor is never waited for.
#[derive(Debug)]
struct IdleListener(File);

impl PipeListener for IdleListener {
    fn accept(&self) -> io::Result<(Box<dyn Pipe>, SocketAddr)> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl AsFd for IdleListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub struct ClientWorld {
    beginning: Instant,
    pub now_ns: u64,
    pub profile: FaultProfile,
    pub random: Random,
    config: ClusterConfig,
    environment: MemberEnvironment,
    member: Option<ClusterMember>,
    up_at_ns: u64,
    wire: Option<Wire>,
    /// Wires of dead or reconnected clients, with the end of their delivery.
    left_behind: Vec<(Wire, u64)>,
    pub pages: Arc<Mutex<Pages>>,
    pub kills: u64,
    pub breaks: u64,
    _directory: tempfile::TempDir,
}

impl Drop for ClientWorld {
    fn drop(&mut self) {
        self.kill();
    }
}

impl ClientWorld {
    pub fn new(seed: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let text = format!(
            "[cluster]\nname = \"model\"\nmember = 1\n[[member]]\nid = 1\naddresses = [\"127.0.0.1:1\"]\n[election]\n\
             timeout = \"100 ms\"\nheartbeat_interval = \"10 ms\"\n[stream]\ndirectory = \"{}\"\nwindow = \"4 MiB\"\n\
             frame_length_max = \"4 KiB\"\nmessage_length_max = \"64 KiB\"\nsession_expiry = \"{} s\"\n[journal]\n\
             segment_length = \"1280 KiB\"\n",
            directory.path().join("member").display(),
            EXPIRY.as_secs()
        );
        let environment = MemberEnvironment {
            network: Network::Other(Arc::new(RefusingNetwork)),
            instance: Some(1),
            journal: JournalEnvironment { epoch_ns: || BEGINNING_NS, ..JournalEnvironment::default() },
            message_bytes_max: Some(1 << 20),
            without_helpers: true,
        };
        Self {
            beginning: Instant::now(),
            now_ns: 0,
            profile: FaultProfile::default(),
            random: Random::of(seed, &[1]),
            config: ClusterConfig::parse(&text, "model.toml").unwrap(),
            environment,
            member: None,
            up_at_ns: 0,
            wire: None,
            left_behind: Vec::new(),
            pages: Arc::default(),
            kills: 0,
            breaks: 0,
            _directory: directory,
        }
    }

    pub fn kill(&mut self) {
        (self.wire, self.left_behind) = (None, Vec::new());
        if let Some(member) = self.member.take() {
            member.abandon();
        }
    }

    /// Messages in flight may still reach the member; no reply returns.
    pub fn break_wire(&mut self) {
        let late_ns = self.random.below(2) * self.random.below(100 * MS);
        self.left_behind.extend(self.wire.take().map(|wire| (wire, self.now_ns + late_ns)));
    }

    fn start(&mut self) {
        self.pages = Arc::default();
        let options = ReplicaOptions { snapshot_interval_frames: Some(30), ..ReplicaOptions::default() };
        let service = Replica::member_service(Book(Arc::clone(&self.pages)), options, &self.config);
        let member = ClusterMember::start_by_hand_with_in(&self.config, service, &self.environment);
        self.member = Some(member.unwrap());
    }

    pub fn step(&mut self, step: Duration) {
        self.now_ns += step.as_nanos() as u64;
        if self.member.is_none() && self.now_ns >= self.up_at_ns {
            self.start();
        }
        let (is_killed, is_broken) = (
            self.random.happens_per_100_000(self.profile.killed),
            self.random.happens_per_100_000(self.profile.broken),
        );
        if self.member.is_some() && is_killed {
            self.kills += 1;
            self.kill();
            self.up_at_ns = self.now_ns + self.random.below(300 * MS);
        }
        if self.wire.is_some() && is_broken {
            self.breaks += 1;
            self.break_wire();
        }
        for _ in 0..3 {
            if let Some(wire) = &mut self.wire {
                wire.turn(&self.profile, &mut self.random);
            }
            for (wire, _) in &mut self.left_behind {
                wire.turn(&FaultProfile { answer_lost: 100_000, ..self.profile }, &mut self.random);
            }
            if let Some(member) = &mut self.member {
                let now = Now { monotonic_ns: self.now_ns + MS, epoch_ns: BEGINNING_NS + self.now_ns };
                member.turn(now).unwrap();
            }
        }
        self.left_behind.retain(|(_, until_ns)| *until_ns > self.now_ns);
    }

    /// Ends when a message arrives, the wire breaks, or after `timeout`.
    fn sleep(&mut self, timeout: Duration) {
        let until_ns = self.now_ns + timeout.as_nanos() as u64;
        loop {
            let left = Duration::from_nanos(until_ns.saturating_sub(self.now_ns));
            self.step(if left.is_zero() { STEP / 20 } else { left.min(STEP) });
            let has_come = self.wire.as_ref().is_none_or(|wire| wire.replies.backlog_bytes() > 0);
            if has_come || self.now_ns >= until_ns {
                return;
            }
        }
    }

    fn connect(&mut self) -> Result<PublisherLink, ClientError> {
        self.break_wire();
        self.step(STEP);
        let gone = || ClientError::Disconnected { peer: "the model's member".to_owned(), reason: None };
        let far = self.member.as_ref().ok_or_else(gone)?.stream().connect(RINGS)?;
        let identity = far.welcome.identity;
        let (writer, commands) = ring::create(&MemoryKind::Anonymous, RINGS.command_ring_bytes, identity)?;
        let (replies, reader) = ring::create(&MemoryKind::Anonymous, RINGS.reply_ring_bytes, identity)?;
        let near = PublisherLink::of_rings(far.welcome, writer, reader)?;
        self.wire =
            Some(Wire { commands, replies, far, there: WireDirection::default(), back: WireDirection::default() });
        Ok(near)
    }
}

#[derive(Clone)]
pub struct SimulatedEnvironment(Arc<Mutex<ClientWorld>>);

impl SimulatedEnvironment {
    pub fn new(world: ClientWorld) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    pub fn world(&self) -> MutexGuard<'_, ClientWorld> {
        self.0.lock().unwrap()
    }
}

impl ClientEnvironment for SimulatedEnvironment {
    fn now(&self) -> Instant {
        let world = self.world();
        world.beginning + Duration::from_nanos(world.now_ns)
    }

    fn sleep(&mut self, timeout: Duration) {
        self.world().sleep(timeout);
    }

    fn connect(&mut self, _: Duration) -> Result<PublisherLink, ClientError> {
        self.world().connect()
    }
}
