//! A deposed leader's speculative frames are truncated, its state is rebuilt, and the next leader runs the commands
//! again; no query shows them. Also long messages, refusals, notices, snapshots and recovery of a single member.

#![allow(clippy::unwrap_used, reason = "a test")]

use gapless_agent::Now;
use gapless_client::ClientError;
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::stream_layout::StreamLayout;
use gapless_client::{Incoming, PolledClient, SessionKey};
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::consensus::MemberRole;
use gapless_engine::store::{Counter, Queue, Store, StoreLimits, StoreObject, Transaction};
use gapless_engine::{Context, Reject, Replica, StateHandlers, StateOptions, StateService};
use gapless_message::{Message, NoRefusal};
use gapless_schema::Encoding;
use gapless_testkit::ports::free_ports;
use gapless_testkit::wait::until;
use gapless_transport::token::random_token;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

const PATIENCE: Duration = Duration::from_secs(60);
const KEEP: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const LENGTHS: MessageType = MessageType { schema: 1 << 16 | 2, encoding: Encoding::Opaque };
const NOTIFY: MessageType = MessageType { schema: 1 << 16 | 3, encoding: Encoding::Opaque };
const UNKNOWN: MessageType = MessageType { schema: 1 << 16 | 4, encoding: Encoding::Opaque };

#[derive(Clone)]
struct StoredBytes(Vec<u8>);

impl StoreObject for StoredBytes {
    const TYPE: u64 = 1;
    const VERSION: u16 = 0;

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), gapless_engine::store::ObjectError> {
        out.extend_from_slice(&self.0);
        Ok(())
    }

    fn decode(_: u16, bytes: &[u8]) -> Result<Self, gapless_engine::store::ObjectError> {
        Ok(Self(bytes.to_vec()))
    }
}

/// Answered by the newest kept bytes.
#[derive(serde::Serialize, serde::Deserialize, Message)]
#[message(reply = Vec<u8>)]
struct Newest;

/// Queries that a handler has answered, of this process.
static ASKED: AtomicU64 = AtomicU64::new(0);

struct Keeper {
    kept: Queue<StoredBytes>,
    count: Counter,
    runs: Arc<AtomicU64>,
}

impl Keeper {
    fn keep(&self, store: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        let drawn = epoch_ns() ^ run << 48;
        store.push(self.kept, StoredBytes([payload, &drawn.to_le_bytes()].concat()))?;
        store.add(self.count, 1)?;
        if payload.first() == Some(&0) {
            return Err("nothing that begins with 0".into());
        }
        context.reply_with(KEEP, &[payload, &drawn.to_le_bytes()].concat())
    }

    fn lengths(&self, store: &mut Transaction<'_>, _: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let bytes: usize = store.items(self.kept).map(|kept| kept.0.len()).sum();
        let lengths = [store.queue_len(self.kept) as u64, store.value(self.count) as u64, bytes as u64];
        context.reply_with(LENGTHS, &lengths.map(u64::to_le_bytes).concat())
    }

    fn notify(&self, _: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        for _ in 0..usize::from(payload[0]) * 256 {
            context.notify_bytes(context.session(), KEEP.schema, KEEP.encoding, 0, |_| Ok::<_, String>(0))?;
        }
        Ok(())
    }
}

impl StateService for Keeper {
    fn handlers(handlers: &mut StateHandlers<Self>) {
        handlers.on_bytes(KEEP.schema, Self::keep);
        handlers.on_bytes(LENGTHS.schema, Self::lengths);
        handlers.on_bytes(NOTIFY.schema, Self::notify);
        handlers.query(|it: &Self, store, _: Newest, _| {
            ASKED.fetch_add(1, Ordering::Relaxed);
            Ok::<_, NoRefusal>(store.items(it.kept).last().map(|kept| kept.0.clone()).unwrap_or_default())
        });
    }
}

fn make(runs: Arc<AtomicU64>) -> impl Fn(&mut Store) -> Keeper + Send + Sync + 'static {
    move |store| Keeper { kept: store.queue(1, "kept"), count: store.counter(2, "count"), runs: Arc::clone(&runs) }
}

fn epoch_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64
}

struct PolledMember {
    replica: Arc<Mutex<Replica>>,
    is_paused: Arc<AtomicBool>,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PolledMember {
    fn start(file: &Path, runs: &Arc<AtomicU64>) -> Self {
        let options = StateOptions { limits: StoreLimits::default(), ..StateOptions::default() };
        let config = ClusterConfig::load(file).unwrap();
        let replica = Replica::start_state_by_hand(make(Arc::clone(runs)), options, &config).unwrap();
        let replica = Arc::new(Mutex::new(replica));
        let (is_paused, has_ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (turned, paused, ended) = (Arc::clone(&replica), Arc::clone(&is_paused), Arc::clone(&has_ended));
        let thread = std::thread::spawn(move || {
            // The clock stops during a pause, so the process does not detect one.
            let (begin_ns, mut running, mut last) = (epoch_ns(), Duration::from_nanos(1), Instant::now());
            while !ended.load(Ordering::Relaxed) {
                let before = std::mem::replace(&mut last, Instant::now());
                let mut replica = turned.lock().unwrap();
                let is_paused = paused.load(Ordering::Relaxed);
                let mut work = 0;
                if !is_paused {
                    running += last - before;
                    let monotonic_ns = running.as_nanos() as u64;
                    work = replica.turn(Now { monotonic_ns, epoch_ns: begin_ns + monotonic_ns }).unwrap();
                }
                drop(replica);
                if work == 0 {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        });
        Self { replica, is_paused, has_ended, thread: Some(thread) }
    }

    fn pause(&self) {
        self.is_paused.store(true, Ordering::Relaxed);
        drop(self.replica.lock().unwrap());
    }

    fn go_on(&self) {
        self.is_paused.store(false, Ordering::Relaxed);
    }

    fn leads(&self) -> bool {
        let status = self.replica.lock().unwrap().member().status();
        status.is_some_and(|status| status.consensus.role == MemberRole::Leader)
    }

    fn connect(&self, token: u128) -> (PolledClient, SessionKey) {
        let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
        let mut client = self.replica.lock().unwrap().connect(options).unwrap();
        let session = client.open_session(token, 16).unwrap();
        (client, session)
    }

    fn standing(&self) -> (u64, Option<u64>) {
        let replica = self.replica.lock().unwrap();
        (replica.handled_sequence(), replica.state_hash())
    }
}

impl Drop for PolledMember {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        let joined = self.thread.take().unwrap().join();
        assert!(joined.is_ok() || std::thread::panicking(), "a member has failed");
    }
}

fn files(root: &Path, count: usize) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let ports = free_ports(count);
    let of = |member: usize| {
        let directory = root.join(format!("member-{member}"));
        let mut text = format!("[cluster]\nname = \"deposed\"\nmember = {member}\n");
        for (at, port) in ports.iter().enumerate() {
            text += &format!("[[member]]\nid = {}\naddresses = [\"127.0.0.1:{port}\"]\nkind = \"full\"\n", at + 1);
        }
        text += &format!(
            "[stream]\ndirectory = \"{}\"\nwindow = \"8 MiB\"\nmessage_length_max = \"768 KiB\"\n\
             [journal]\nsegment_length = \"8 MiB\"\n[election]\ntimeout = \"1 s\"\n",
            directory.display()
        );
        let file = root.join(format!("{member}.toml"));
        std::fs::write(&file, text).unwrap();
        (file, StreamLayout::new(directory).socket())
    };
    (1..=count).map(of).unzip()
}

fn connect(sockets: &[PathBuf]) -> (PolledClient, SessionKey) {
    let options = ClientOptions { timeout: PATIENCE, ..ClientOptions::default() };
    let mut client = PolledClient::connect_any(sockets, options).unwrap();
    let session = client.open_session(random_token(), 16).unwrap();
    (client, session)
}

#[test]
fn deposed_leader_rebuilds_its_state() {
    const TOGETHER: u64 = 8;
    const ROUNDS_MAX: u64 = 10;
    let root = tempfile::tempdir().unwrap();
    let (files, _) = files(root.path(), 3);
    let runs = Arc::new(AtomicU64::new(0));
    let mut members: Vec<_> = files.iter().map(|file| Some(PolledMember::start(file, &runs))).collect();
    let leader_of = |members: &[Option<PolledMember>]| {
        let leads = |member: &Option<PolledMember>| {
            member.as_ref().is_some_and(|member| !member.is_paused.load(Ordering::Relaxed) && member.leads())
        };
        members.iter().position(leads)
    };
    let (mut sent, mut unknown, mut remade) = (0_u64, 0_u64, 0);
    let (mut committed, mut answers) = (vec![Vec::new()], Vec::new());
    for _ in 0..ROUNDS_MAX {
        until("a member leads", || leader_of(&members).is_some());
        let leader = leader_of(&members).unwrap();
        let token = random_token();
        let (mut client, session) = members[leader].as_ref().unwrap().connect(token);
        let before = runs.load(Ordering::Relaxed);
        members[leader].as_ref().unwrap().pause();
        for at in (0..3).filter(|at| *at != leader) {
            members[at] = None;
        }
        let payloads: Vec<_> = (1..=TOGETHER).map(|n| [&[1_u8][..], &(sent + n).to_le_bytes()].concat()).collect();
        for payload in &payloads {
            let encode = |buffer: &mut [u8]| {
                buffer.copy_from_slice(payload);
                Ok(payload.len())
            };
            if client.send(session, KEEP, payload.len(), encode).is_err() {
                break;
            }
        }
        members[leader].as_ref().unwrap().go_on();
        // The leader runs them unless it has detected its isolation.
        let deadline = Instant::now() + Duration::from_secs(4);
        while runs.load(Ordering::Relaxed) < before + TOGETHER && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let asked = ASKED.load(Ordering::Relaxed);
        let query = client.send_query(&Newest, 0, PATIENCE).ok();
        while ASKED.load(Ordering::Relaxed) == asked && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        members[leader].as_ref().unwrap().pause();
        for at in (0..3).filter(|at| *at != leader) {
            members[at] = Some(PolledMember::start(&files[at], &runs));
        }
        until("another member leads", || leader_of(&members).is_some());
        let next = leader_of(&members).unwrap();
        members[leader].as_ref().unwrap().go_on();
        let (mut other, session) = members[next].as_ref().unwrap().connect(token);
        let mut replies = Vec::new();
        for payload in &payloads {
            match other.call(session, KEEP, payload, PATIENCE / 4) {
                Ok(reply) => {
                    assert_eq!(reply.payload[..payload.len()], *payload);
                    replies.push(reply.payload);
                    sent += 1;
                }
                // The replica may have lost the lead on a busy machine.
                Err(
                    ClientError::Disconnected { .. }
                    | ClientError::NotLeader { .. }
                    | ClientError::OutcomeUnknown { .. },
                ) => {
                    unknown += 1;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        until("all members have the same sequence and state", || {
            let standing: Vec<_> = members.iter().flatten().map(PolledMember::standing).collect();
            standing.iter().all(|each| *each == standing[0])
        });
        remade += members[leader].as_ref().unwrap().replica.lock().unwrap().states_rebuilt();
        // Replies only to committed effects, not to truncated ones.
        let answered = client.poll(256, |incoming| {
            if let Incoming::Reply { reply, .. } = incoming
                && let Some(known) = replies.get(reply.session_seq as usize - 1)
            {
                assert_eq!(reply.payload, known);
            }
        });
        assert!(matches!(answered, Ok(_) | Err(ClientError::Disconnected { .. })), "{answered:?}");
        committed.append(&mut replies);
        let answer = query.and_then(|query| client.take_answer::<Newest>(query));
        answers.extend(answer.and_then(Result::ok));
        if remade > 0 {
            break;
        }
    }
    assert!(remade > 0, "a truncation of speculative frames rebuilds the state");
    assert!(runs.load(Ordering::Relaxed) > sent, "truncated commands run again");
    for newest in answers {
        let newest = newest.unwrap_or_else(|never| match never {});
        assert!(unknown > 0 || committed.contains(&newest), "a query shows an effect that was truncated");
    }
    let mut counted = None;
    until("a leader answers the last call", || {
        let Some(leader) = leader_of(&members) else { return false };
        let (mut client, session) = members[leader].as_ref().unwrap().connect(random_token());
        counted = client.call(session, LENGTHS, &[], PATIENCE).ok();
        counted.is_some()
    });
    let counted = u64::from_le_bytes(*counted.unwrap().payload.first_chunk().unwrap());
    assert!((sent..=sent + unknown).contains(&counted), "{sent} commands had their effect once, not {counted}");
}

#[test]
fn useless_fault_rules_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let (files, _) = files(root.path(), 1);
    let text = std::fs::read_to_string(&files[0]).unwrap();
    for (line, option) in [
        ("skip = [7]", "service.skip"),
        ("on_panic = \"stop\"", "service.on_panic"),
        ("on_unhandled = \"stop\"", "service.on_unhandled"),
    ] {
        let config = ClusterConfig::parse(&format!("{text}[service]\n{line}\n"), "member.toml").unwrap();
        let started = Replica::start_state(make(Arc::default()), StateOptions::default(), &config);
        let refused = started.err().unwrap().to_string();
        assert!(refused.contains(option) && refused.contains("is refused"), "{refused}");
    }
}

#[test]
fn single_member_keeps_state() {
    let root = tempfile::tempdir().unwrap();
    let (files, sockets) = files(root.path(), 1);
    let config = ClusterConfig::load(&files[0]).unwrap();
    let runs = Arc::new(AtomicU64::new(0));
    let start = || {
        let options = StateOptions { snapshot_on_stop: false, ..StateOptions::default() };
        Replica::start_state(make(Arc::clone(&runs)), options, &config).unwrap()
    };
    let replica = start();
    let (mut client, session) = connect(&sockets);
    let mut call = |message, payload: &[u8]| client.call(session, message, payload, PATIENCE);
    let long: Vec<u8> = (0..350_000_u32).map(|at| (at % 251) as u8 | 1).collect();
    for payload in [&long[..], b"short", &long[..40_000]] {
        let reply = call(KEEP, payload).unwrap();
        assert_eq!(reply.payload[..payload.len()], *payload);
    }
    let refusals = [
        (KEEP, &[0; 9][..], "begins with 0"),
        (KEEP, &[1; 450_000], "the limit is"),
        (NOTIFY, &[5], "unreceived notices"),
        (UNKNOWN, &[], "no handler"),
    ];
    for (message, payload, expected) in refusals {
        match call(message, payload) {
            Err(error @ ClientError::Refused { .. }) => assert!(error.to_string().contains(expected), "{error}"),
            other => panic!("{expected} is expected, not {other:?}"),
        }
    }
    let lengths = call(LENGTHS, &[]).unwrap().payload;
    let expected = [3, 3, 390_005 + 24].map(u64::to_le_bytes).concat();
    assert_eq!(lengths, expected);
    let at = replica.snapshot().unwrap();
    assert!(at > 0);
    call(KEEP, b"behind the snapshot").unwrap();
    until("the command is handled", || replica.handled_sequence() > at);
    let (hash, ran) = (replica.state_hash(), runs.load(Ordering::Relaxed));
    replica.stop().unwrap();
    let replica = start();
    assert_eq!(replica.recovered().snapshot_sequence, at);
    assert!(replica.recovered().frames_replayed > 0);
    assert_eq!((replica.state_hash(), runs.load(Ordering::Relaxed)), (hash, ran), "recovery runs no handler");
    assert_eq!(replica.states_rebuilt(), 0);
    replica.stop().unwrap();
}
