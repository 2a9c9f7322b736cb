//! Damages every kind of file in a member's directory, before and after a reboot, at the tiers `quorum` and
//! `quorum-sync`, and restarts it. The outcome is that of the guide's table: no member continues with less than it
//! acknowledged, or with another vote. This thread polls all members, on its own clock.

use crate::damages::{
    Damage, PATIENCE, Row, Share, case_name, check_against_page, copy, files, flip, newest_history_slot, newest_slot,
    other_boot, put_other, truncate,
};
use gapless_agent::Now;
use gapless_client::Incoming;
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::replay_merge::ReplayRead;
use gapless_client::stream_layout::StreamLayout;
use gapless_cluster::ClusterMember;
use gapless_cluster::config::ClusterConfig;
use gapless_cluster::consensus::MemberRole;
use gapless_cluster::member::member_environment::MemberEnvironment;
use gapless_cluster::member::recover::ForcedRecovery;
use gapless_engine::{Context, Handlers, Reject, Replica, ReplicaOptions, Service, directory_consistency, snapshot};
use gapless_journal::descriptor as d;
use gapless_journal::descriptor::ParsedFileName;
use gapless_schema::Encoding;
use gapless_stream::directory_record::DirectoryRecord;
use gapless_testkit::ports::free_ports;
use gapless_transport::token::random_token;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const MESSAGE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const PAYLOAD: [u8; 3_000] = [7; 3_000];
const SEGMENT_LENGTH: u64 = 1_280 << 10;
/// Of states and snapshots; these frames take more than two segments.
const INTERVAL_FRAMES: u64 = 1_500;
/// In the payload of an early frame, with other frames after it.
const IN_FRAMES: u64 = d::frames_offset(SEGMENT_LENGTH) + 5 * 3_100;
/// Never the leader: its election timeout is too long.
const DAMAGED: usize = 2;
/// Virtual time per turn of all members.
const STEP_NS: u64 = 2_000_000;
/// Longer than a failing member runs before it stops.
const SETTLES_NS: u64 = 500_000_000;
/// Time for catching up or stopping.
const ENDS_NS: u64 = 5_000_000_000;
const COMPARED_FRAMES: u64 = 300;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FileKind {
    Instance,
    Instances,
    Incarnation,
    Voting,
    Ballot,
    Base,
    OldestSegment,
    /// Sealed, and wholly before the newest state and snapshot; the newest when the older copy was made.
    CoveredSegment,
    /// Sealed, and after them.
    SealedSegment,
    NewestSegment,
    PreparedSegment,
    History,
    Lock,
    JournalLock,
    OlderState,
    NewestState,
    OlderSnapshot,
    NewestSnapshot,
    Counters,
    DeadLetters,
    Outputs,
    Record,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instance => "`instance`",
            Self::Instances => "`instances`",
            Self::Incarnation => "`incarnation`",
            Self::Voting => "`voting`",
            Self::Ballot => "`ballot`",
            Self::Base => "`base`",
            Self::OldestSegment => "oldest segment",
            Self::CoveredSegment => "segment that state and snapshot cover",
            Self::SealedSegment => "sealed segment after them",
            Self::NewestSegment => "newest segment",
            Self::PreparedSegment => "prepared segment",
            Self::History => "`history`",
            Self::Lock => "`lock`",
            Self::JournalLock => "`journal/lock`",
            Self::OlderState => "older state",
            Self::NewestState => "newest state",
            Self::OlderSnapshot => "older snapshot",
            Self::NewestSnapshot => "newest snapshot",
            Self::Counters => "`counters`",
            Self::DeadLetters => "`dead-letters.jsonl`",
            Self::Outputs => "`outputs`",
            Self::Record => "`directory`",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartOutcome {
    /// The error names a path in the directory; the journal is unchanged.
    Refused,
    /// Soon after its start, with an error that names it.
    Stops,
    Starts,
    Fetched,
    /// A forced recovery has less, and reports it.
    Less,
    /// Impossible for this file.
    Nothing,
}

impl fmt::Display for StartOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "refused",
            Self::Stops => "stops",
            Self::Starts => "starts",
            Self::Fetched => "fetched",
            Self::Less => "less",
            Self::Nothing => "–",
        })
    }
}

struct Count(u64, Arc<AtomicU64>);

impl Service for Count {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(MESSAGE.schema, |it: &mut Self, _: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            it.0 += 1;
            it.1.store(it.0, Ordering::Relaxed);
            context.reply_with(MESSAGE, &it.0.to_le_bytes())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes")?);
        self.1.store(self.0, Ordering::Relaxed);
        Ok(())
    }
}

fn config(tier: &str, at: usize, incarnation: u64, members: &str, directory: &Path, journal: &str) -> ClusterConfig {
    let timeout = if at == DAMAGED && incarnation == 1 { "10 s" } else { "100 ms" };
    let text = format!(
        "[cluster]\nname = \"damaged\"\nmember = {}\ntier = \"{tier}\"\nincarnation = {incarnation}\n{members}\
         [election]\ntimeout = \"{timeout}\"\nheartbeat_interval = \"10 ms\"\n[stream]\ndirectory = {directory:?}\n\
         window = \"8 MiB\"\nmessage_length_max = \"64 KiB\"\nstate_interval_frames = {INTERVAL_FRAMES}\n\
         state_interval_min = \"1 ms\"\n[journal]\nsegment_length = \"1280 KiB\"\n{journal}[service]\n\
         snapshot_interval_frames = {INTERVAL_FRAMES}\n",
        at + 1
    );
    ClusterConfig::parse(&text, "test.toml").unwrap()
}

struct Cluster {
    root: tempfile::TempDir,
    tier: &'static str,
    configs: Vec<ClusterConfig>,
    members: Vec<Option<ClusterMember>>,
    counts: Vec<Arc<AtomicU64>>,
    now_ns: u64,
}

impl Cluster {
    fn new(tier: &'static str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let addresses: String = (1..)
            .zip(free_ports(3))
            .map(|(id, port)| format!("[[member]]\nid = {id}\naddresses = [\"127.0.0.1:{port}\"]\n"))
            .collect();
        let config = |at: usize| {
            let more = if at == DAMAGED { "" } else { "retention_bytes = \"1 MiB\"\n" };
            config(tier, at, 1, &addresses, &root.path().join(format!("member-{}", at + 1)), more)
        };
        let configs = (0..3).map(config).collect();
        let (members, counts) = ((0..3).map(|_| None).collect(), (0..3).map(|_| Arc::default()).collect());
        Self { root, tier, configs, members, counts, now_ns: 1 }
    }

    fn directory(&self, at: usize) -> PathBuf {
        self.root.path().join(format!("member-{}", at + 1))
    }

    fn try_start(&mut self, at: usize) -> Result<(), String> {
        let config = &self.configs[at];
        let service =
            Replica::member_service(Count(0, Arc::clone(&self.counts[at])), ReplicaOptions::default(), config);
        let member_environment = MemberEnvironment { without_helpers: true, ..MemberEnvironment::default() };
        let start = || ClusterMember::start_by_hand_with_in(config, service, &member_environment);
        let started = catch_unwind(AssertUnwindSafe(start)).map_err(|_| "the start panics".to_owned())?;
        self.members[at] = Some(started.map_err(|error| error.to_string())?);
        Ok(())
    }

    fn start(&mut self, at: usize) {
        self.try_start(at).unwrap();
    }

    fn crash(&mut self, at: usize) {
        self.members[at].take().unwrap().abandon();
    }

    fn get(&self, at: usize) -> &ClusterMember {
        self.members[at].as_ref().unwrap()
    }

    fn turn(&mut self) -> Option<String> {
        self.now_ns += STEP_NS;
        let now = Now { monotonic_ns: self.now_ns, epoch_ns: self.now_ns };
        let mut said = None;
        for (at, member) in self.members.iter_mut().enumerate() {
            let Some(running) = member else { continue };
            match catch_unwind(AssertUnwindSafe(|| running.turn(now))).expect("no member panics") {
                Ok(_) => {}
                Err(error) if at == DAMAGED => said = Some(error.to_string()),
                Err(error) => panic!("member {} stops: {error}", at + 1),
            }
        }
        said
    }

    fn run(&mut self, ns: u64) {
        let until_ns = self.now_ns + ns;
        while self.now_ns < until_ns {
            assert_eq!(self.turn(), None);
        }
    }

    fn leader(&self) -> Option<usize> {
        let leads = |member: &Option<ClusterMember>| {
            let status = member.as_ref().and_then(ClusterMember::status);
            status
                .is_some_and(|status| status.consensus.role == MemberRole::Leader && !status.consensus.peers.is_empty())
        };
        self.members.iter().position(leads)
    }

    #[track_caller]
    fn until<T>(&mut self, what: &str, is_there: impl Fn(&Self) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = is_there(self) {
                return found;
            }
            let states = || self.members.iter().flatten().map(ClusterMember::status).collect::<Vec<_>>();
            assert!(begun.elapsed() < PATIENCE, "timed out waiting for {what}: {:#?}", states());
            assert_eq!(self.turn(), None);
        }
    }

    fn is_level(&self) -> Option<()> {
        let leader = self.get(self.leader()?).status()?;
        let own = self.get(DAMAGED).status()?;
        let has_all = own.consensus.applied_index == leader.consensus.end.index
            && own.consensus.term == leader.consensus.term
            && own.released_sequence == leader.released_sequence;
        (has_all && !own.consensus.is_rejoining).then_some(())
    }

    fn send(&mut self, count: u64) {
        let leader = self.until("a leader", Self::leader);
        let mut client = self.get(leader).stream().client(ClientOptions::default()).unwrap();
        let key = client.begin_session(random_token(), 64).unwrap();
        let (mut sent, mut came, mut is_open) = (0, 0, false);
        let begun = Instant::now();
        while came < count {
            assert!(begun.elapsed() < PATIENCE, "{came} of {count} are answered");
            while is_open && sent < count && client.can_send(key) {
                let encode = |room: &mut [u8]| {
                    room.copy_from_slice(&PAYLOAD);
                    Ok(PAYLOAD.len())
                };
                if client.send(key, MESSAGE, PAYLOAD.len(), encode).is_err() {
                    break;
                }
                sent += 1;
            }
            assert_eq!(self.turn(), None);
            let polled = client.poll(64, |incoming| match incoming {
                Incoming::Opened { .. } => is_open = true,
                Incoming::Reply { first: true, .. } => came += 1,
                _ => {}
            });
            polled.unwrap();
        }
    }

    fn last_frames(&self, at: usize, last: u64) -> Vec<u8> {
        let mut reader = self.get(at).stream().reader(last.saturating_sub(COMPARED_FRAMES).max(1));
        let (mut bytes, begun) = (Vec::new(), Instant::now());
        while reader.sequence() <= last {
            match reader.read().unwrap() {
                ReplayRead::Frame(frame) => bytes.extend_from_slice(frame.bytes()),
                _ => assert!(begun.elapsed() < PATIENCE, "frames up to {last} are not there"),
            }
        }
        bytes
    }
}

fn points(directory: &Path) -> Vec<PathBuf> {
    let is_point = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("state-") || name.ends_with(".snapshot")
    };
    let mut found: Vec<_> = files(directory).into_iter().map(|file| directory.join(file)).filter(is_point).collect();
    found.sort();
    found
}

fn newest_segment(directory: &Path) -> PathBuf {
    let is_segment = |file: &PathBuf| {
        matches!(d::parse_file_name(file.file_name().unwrap().to_str().unwrap()), Some(ParsedFileName::Segment(_)))
    };
    files(directory).into_iter().filter(is_segment).max().unwrap()
}

fn sequence_of(point: &Path) -> u64 {
    point.file_stem().unwrap().to_str().unwrap().trim_start_matches("state-").parse().unwrap()
}

/// Starts a cluster of one member; returns the last sequence and the number of counted commands. The recovery must
/// change no file before it is applied.
fn recovered_by_force(directory: &Path, address: &str, tier: &str) -> Result<(u64, u64), String> {
    const INCARNATION: u64 = 7;
    let own = format!("[[member]]\nid = {}\naddresses = [\"{address}\"]\n", DAMAGED + 1);
    let old = config(tier, DAMAGED, 1, &own, directory, "");
    let open = || ForcedRecovery::open(&old, |layout| Ok(snapshot::points(&layout.snapshots())?));
    let before = all_content(directory);
    for _ in 0..2 {
        let opened = open();
        assert!(all_content(directory) == before, "{tier}: a file has changed too early");
        drop(opened.map_err(|error| error.to_string())?);
    }
    let recovery = open().unwrap();
    let said = recovery.last_sequence();
    let adopted = recovery.apply(INCARNATION, |kept| {
        let layout = StreamLayout::new(kept.root);
        Ok(directory_consistency::adopt(&layout, kept.journal, kept.last_sequence, kept.identity).map(drop)?)
    });
    adopted.map_err(|error| error.to_string())?;
    let counts: Arc<AtomicU64> = Arc::default();
    let config = config(tier, DAMAGED, INCARNATION, &own, directory, "");
    let service = Replica::member_service(Count(0, Arc::clone(&counts)), ReplicaOptions::default(), &config);
    let member_environment = MemberEnvironment { without_helpers: true, ..MemberEnvironment::default() };
    let mut member = ClusterMember::start_by_hand_with_in(&config, service, &member_environment).unwrap();
    let begun = Instant::now();
    let mut now_ns = 1;
    let has_all = |member: &ClusterMember| {
        let status = member.status();
        status.is_some_and(|it| it.consensus.role == MemberRole::Leader && it.released_sequence >= said)
    };
    let mut quiet_turns = 0;
    while quiet_turns < 20 {
        assert!(begun.elapsed() < PATIENCE, "the member does not lead: {:?}", member.status());
        now_ns += STEP_NS;
        let before = counts.load(Ordering::Relaxed);
        member.turn(Now { monotonic_ns: now_ns, epoch_ns: now_ns }).unwrap();
        let is_quiet = has_all(&member) && counts.load(Ordering::Relaxed) == before;
        quiet_turns = if is_quiet { quiet_turns + 1 } else { 0 };
    }
    member.abandon();
    Ok((said, counts.load(Ordering::Relaxed)))
}

/// Locks show the last access.
fn all_content(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let is_lock = |file: &PathBuf| file.file_name().is_some_and(|name| name == d::LOCK_NAME);
    let read = |file: PathBuf| (file.clone(), std::fs::read(directory.join(file)).unwrap());
    files(directory).into_iter().filter(|file| !is_lock(file)).map(read).collect()
}

fn kinds(directory: &Path, old: &Path) -> BTreeMap<FileKind, PathBuf> {
    let layout = StreamLayout::new(directory);
    let relative = |path: &Path| path.strip_prefix(directory).unwrap().to_owned();
    let (states, snapshots) = (points(&layout.state()), points(&layout.snapshots()));
    let mut kinds = BTreeMap::new();
    for (points, older, newest) in [
        (&states, FileKind::OlderState, FileKind::NewestState),
        (&snapshots, FileKind::OlderSnapshot, FileKind::NewestSnapshot),
    ] {
        let [.., before, last] = points.as_slice() else { panic!("two of {points:?}") };
        kinds.extend([(older, relative(before)), (newest, relative(last))]);
    }
    let mut segments = Vec::new();
    for file in files(directory) {
        let name = file.file_name().unwrap().to_str().unwrap();
        let path = directory.join(&file);
        let kind = match d::parse_file_name(name) {
            Some(ParsedFileName::Segment(first)) => {
                segments.push((first, file));
                continue;
            }
            Some(ParsedFileName::Prepared(_)) => FileKind::PreparedSegment,
            None if path.parent() == Some(&layout.journal()) && name == d::HISTORY_NAME => FileKind::History,
            None if path.parent() == Some(&layout.journal()) && name == d::LOCK_NAME => FileKind::JournalLock,
            None if path.parent() == Some(directory) && name == d::LOCK_NAME => FileKind::Lock,
            None if states.contains(&path) || snapshots.contains(&path) => continue,
            None if path == layout.counters() => FileKind::Counters,
            None if path.parent() == Some(directory) && name == "dead-letters.jsonl" => FileKind::DeadLetters,
            None if path.parent() == Some(directory) && name == gapless_engine::output_record::FILE_NAME => {
                FileKind::Outputs
            }
            None if path.parent() == Some(directory) && name == "instance" => FileKind::Instance,
            None if path.parent() == Some(directory) && name == "instances" => FileKind::Instances,
            None if path.parent() == Some(directory) && name == "incarnation" => FileKind::Incarnation,
            None if path.parent() == Some(directory) && name == "voting" => FileKind::Voting,
            None if path.parent() == Some(directory) && name == "ballot" => FileKind::Ballot,
            None if path.parent() == Some(directory) && name == "base" => FileKind::Base,
            None if path == DirectoryRecord::path(&layout) => FileKind::Record,
            Some(ParsedFileName::Archived(_)) | None => {
                panic!("{} is unknown to this test", path.display())
            }
        };
        kinds.insert(kind, file);
    }
    segments.sort();
    let covered = [states.last(), snapshots.last()].map(|point| sequence_of(point.unwrap())).into_iter().min().unwrap();
    let is_behind = |(first, _): &&(u64, PathBuf)| *first > covered;
    let last_covered = segments.iter().rposition(|(first, _)| *first <= covered).unwrap();
    assert!(last_covered >= 2 && segments.iter().filter(is_behind).count() >= 2, "{segments:?} around {covered}");
    kinds.insert(FileKind::OldestSegment, segments[0].1.clone());
    kinds.insert(FileKind::CoveredSegment, newest_segment(old));
    assert!(segments[1..last_covered].iter().any(|(_, file)| *file == kinds[&FileKind::CoveredSegment]), "{kinds:?}");
    kinds.insert(FileKind::SealedSegment, segments[last_covered + 1].1.clone());
    kinds.insert(FileKind::NewestSegment, segments.last().unwrap().1.clone());
    kinds
}

const fn is_segment(kind: FileKind) -> bool {
    use FileKind::{CoveredSegment, NewestSegment, OldestSegment, SealedSegment};
    matches!(kind, OldestSegment | CoveredSegment | SealedSegment | NewestSegment)
}

fn neighbour(kind: FileKind) -> Option<FileKind> {
    Some(match kind {
        FileKind::OldestSegment => FileKind::CoveredSegment,
        FileKind::CoveredSegment => FileKind::OldestSegment,
        FileKind::SealedSegment => FileKind::NewestSegment,
        FileKind::NewestSegment => FileKind::SealedSegment,
        FileKind::OlderState => FileKind::NewestState,
        FileKind::NewestState => FileKind::OlderState,
        FileKind::OlderSnapshot => FileKind::NewestSnapshot,
        FileKind::NewestSnapshot => FileKind::OlderSnapshot,
        FileKind::Instance => FileKind::Instances,
        FileKind::Instances => FileKind::Instance,
        FileKind::Incarnation => FileKind::Voting,
        FileKind::Voting => FileKind::Incarnation,
        _ => return None,
    })
}

struct Trials {
    cluster: Cluster,
    now: tempfile::TempDir,
    /// Before the member's last start, and before a leader was elected with its vote.
    old: tempfile::TempDir,
    /// A little older than `now`, with the newest segment.
    recent: tempfile::TempDir,
    foreign: tempfile::TempDir,
    kinds: BTreeMap<FileKind, PathBuf>,
    last_sequence: u64,
    term: u64,
}

impl Trials {
    fn begin(tier: &'static str) -> Self {
        let [now, old, recent, foreign] = [(); 4].map(|()| tempfile::tempdir().unwrap());
        let mut cluster = Cluster::new(tier);
        (0..3).for_each(|at| cluster.start(at));
        cluster.send(10);
        // The others delete their journals meanwhile, so it fetches a state.
        cluster.crash(DAMAGED);
        cluster.send(2 * INTERVAL_FRAMES);
        cluster.start(DAMAGED);
        let begun = Instant::now();
        let said = loop {
            assert!(begun.elapsed() < PATIENCE, "the member fetches no state");
            if let Some(said) = cluster.turn() {
                break said;
            }
        };
        assert!(cluster.get(DAMAGED).must_start_again(), "{said}");
        cluster.crash(DAMAGED);
        cluster.start(DAMAGED);
        cluster.until("its return", Cluster::is_level);
        cluster.send(INTERVAL_FRAMES / 2);
        copy(&cluster.directory(DAMAGED), old.path());
        cluster.send(INTERVAL_FRAMES * 2 / 3);
        cluster.crash(DAMAGED);
        cluster.start(DAMAGED);
        cluster.until("its return", Cluster::is_level);
        let leader = cluster.leader().unwrap();
        cluster.crash(leader);
        cluster.until("another leader", Cluster::leader);
        cluster.start(leader);
        let count = |cluster: &Cluster| {
            let layout = StreamLayout::new(cluster.directory(DAMAGED));
            points(&layout.state()).last().cloned().zip(points(&layout.snapshots()).last().cloned())
        };
        let before = count(&cluster);
        while count(&cluster).zip(before.clone()).is_none_or(|(now, then)| now.0 == then.0 || now.1 == then.1) {
            cluster.send(100);
        }
        cluster.send(INTERVAL_FRAMES * 2 / 3);
        copy(&cluster.directory(DAMAGED), recent.path());
        cluster.send(20);
        cluster.until("all members to be level", Cluster::is_level);
        // The others learn of its acknowledgements.
        cluster.run(SETTLES_NS);
        copy(&cluster.directory(DAMAGED), now.path());
        copy(&cluster.directory(1), foreign.path());
        let leader = cluster.get(cluster.leader().unwrap()).status().unwrap();
        let (last_sequence, term) = (leader.released_sequence, leader.consensus.term);
        cluster.crash(DAMAGED);
        let kinds = kinds(now.path(), old.path());
        Self { cluster, now, old, recent, foreign, kinds, last_sequence, term }
    }

    fn damage(&self, kind: FileKind, damage: Damage) -> bool {
        let directory = self.cluster.directory(DAMAGED);
        std::fs::remove_dir_all(&directory).unwrap();
        copy(self.now.path(), &directory);
        let Some(file) = self.kinds.get(&kind) else { return false };
        let path = directory.join(file);
        let length = std::fs::metadata(&path).unwrap().len();
        let put = |from: PathBuf| put_other(&from, &path);
        match damage {
            Damage::Remove => std::fs::remove_file(&path).is_ok(),
            Damage::Truncate | Damage::Flip if length == 0 => false,
            Damage::Truncate => {
                let length = match kind {
                    _ if is_segment(kind) => IN_FRAMES,
                    FileKind::History => 60,
                    // The first slot is in it; the other may be the newer one.
                    FileKind::Ballot => 1,
                    _ => length * 2 / 3,
                };
                truncate(&path, length);
                true
            }
            Damage::Exchange => neighbour(kind).is_some_and(|other| put(self.now.path().join(&self.kinds[&other]))),
            // Depends on the clock: varies from run to run.
            Damage::OldCopy if kind == FileKind::Outputs => false,
            Damage::OldCopy if kind == FileKind::NewestSegment => put(self.recent.path().join(file)),
            Damage::OldCopy if is_segment(kind) && kind != FileKind::CoveredSegment => false,
            Damage::OldCopy => put(self.old.path().join(file)),
            Damage::Foreign => put(self.foreign_of(kind, file)),
            Damage::Flip => {
                flip(&path, |file| match kind {
                    _ if is_segment(kind) => IN_FRAMES,
                    FileKind::History => newest_history_slot(file) + 50,
                    // Of the term or the vote, in the valid slot.
                    FileKind::Ballot => newest_slot(file, 4_096) + 40,
                    _ => length / 2,
                });
                true
            }
        }
    }

    fn foreign_of(&self, kind: FileKind, file: &Path) -> PathBuf {
        let same = self.foreign.path().join(file);
        if same.exists() || !is_segment(kind) {
            return same;
        }
        self.foreign.path().join(newest_segment(self.foreign.path()))
    }

    fn try_damage(&mut self, kind: FileKind, damage: Damage, is_other_boot: bool) -> StartOutcome {
        let case = format!("{kind}, {damage}, other boot {is_other_boot}");
        if !self.damage(kind, damage) {
            return StartOutcome::Nothing;
        }
        let directory = self.cluster.directory(DAMAGED);
        if is_other_boot {
            other_boot(&StreamLayout::new(&directory).journal());
        }
        let before = content(&directory);
        self.cluster.counts[DAMAGED].store(0, Ordering::Relaxed);
        if let Err(said) = self.cluster.try_start(DAMAGED) {
            assert!(said.contains(directory.to_str().unwrap()), "{case}: the error names no path: {said}");
            assert!(content(&directory) == before, "{case}: refused, but a file has changed: {said}");
            return StartOutcome::Refused;
        }
        let recovery = self.cluster.get(DAMAGED).stream().recovery().clone();
        let outcome = self.ends(&case);
        if outcome == StartOutcome::Starts {
            let leader = self.cluster.leader().unwrap();
            let counts = [leader, DAMAGED].map(|at| self.cluster.counts[at].load(Ordering::Relaxed));
            assert_eq!(counts[0], counts[1], "{case}: its service differs");
            let frames = [leader, DAMAGED].map(|at| self.cluster.last_frames(at, self.last_sequence));
            assert!(frames[0] == frames[1], "{case}: its frames differ");
        }
        self.cluster.crash(DAMAGED);
        let leader = self.cluster.get(self.cluster.leader().unwrap()).status().unwrap();
        assert_eq!((leader.released_sequence, leader.consensus.term), (self.last_sequence, self.term), "{case}");
        if outcome == StartOutcome::Starts && recovery.last_sequence < self.last_sequence {
            StartOutcome::Fetched
        } else {
            outcome
        }
    }

    fn try_by_force(&self, kind: FileKind, damage: Damage, is_other_boot: bool) -> StartOutcome {
        let case = format!("{kind}, {damage}, other boot {is_other_boot}");
        assert!(self.damage(kind, damage), "{case}");
        let directory = self.cluster.directory(DAMAGED);
        if is_other_boot {
            other_boot(&StreamLayout::new(&directory).journal());
        }
        let before = content(&directory);
        let address = &self.cluster.configs[DAMAGED].own().addresses[0];
        match recovered_by_force(&directory, address, self.cluster.tier) {
            Err(said) => {
                assert!(said.contains(directory.to_str().unwrap()), "{case}: the error names no path: {said}");
                assert!(content(&directory) == before, "{case}: refused, but a file has changed: {said}");
                StartOutcome::Refused
            }
            Ok((last, count)) => {
                let leader = self.cluster.leader().unwrap();
                let has_all = last == self.last_sequence;
                let (its, all) = (count, self.cluster.counts[leader].load(Ordering::Relaxed));
                assert!(
                    if has_all { its == all } else { last < self.last_sequence && its < all },
                    "{case}: {its} of {all}"
                );
                if has_all { StartOutcome::Starts } else { StartOutcome::Less }
            }
        }
    }

    fn ends(&mut self, case: &str) -> StartOutcome {
        let end_ns = self.cluster.now_ns + ENDS_NS;
        let mut settled_ns = None;
        while self.cluster.now_ns < end_ns {
            if let Some(said) = self.cluster.turn() {
                let names_it = said.contains(&format!("member {}", DAMAGED + 1))
                    || said.contains(self.cluster.directory(DAMAGED).to_str().unwrap());
                assert!(names_it, "{case}: the error names no member: {said}");
                return StartOutcome::Stops;
            }
            if self.cluster.is_level().is_none() {
                settled_ns = None;
            } else if settled_ns.get_or_insert(self.cluster.now_ns + SETTLES_NS) <= &mut self.cluster.now_ns {
                return StartOutcome::Starts;
            }
        }
        panic!("{case}: the member neither catches up nor stops: {:#?}", self.cluster.get(DAMAGED).status());
    }
}

/// A refused start must not change these.
fn content(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let read = |file: PathBuf| {
        let bytes = std::fs::read(directory.join(&file)).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        match d::parse_file_name(name) {
            Some(ParsedFileName::Segment(_)) => {
                let frames = bytes.get(d::frames_offset(SEGMENT_LENGTH) as usize..).unwrap_or_default().to_vec();
                Some((file, frames))
            }
            None if name.starts_with("state-") || name.ends_with(".snapshot") => Some((file, bytes)),
            _ => None,
        }
    };
    files(directory).into_iter().filter_map(read).collect()
}

type Found = (FileKind, Damage, [StartOutcome; 2], [StartOutcome; 2]);

fn outcomes(tier: &'static str, share: Share) -> Vec<Found> {
    let mut trials = Trials::begin(tier);
    let kinds: Vec<FileKind> = trials.kinds.keys().copied().collect();
    let mut try_case = |(kind, damage): (FileKind, Damage)| {
        let outcomes = [false, true].map(|is_other_boot| trials.try_damage(kind, damage, is_other_boot));
        let forced = match outcomes {
            [StartOutcome::Nothing, StartOutcome::Nothing] => outcomes,
            _ => [false, true].map(|is_other_boot| trials.try_by_force(kind, damage, is_other_boot)),
        };
        (kind, damage, outcomes, forced)
    };
    share.cases(&kinds).into_iter().map(&mut try_case).collect()
}

#[test]
fn member_damages_match_reference() {
    let share = Share::seeded();
    let [quorum, synced] = std::thread::scope(|scope| {
        ["quorum", "quorum-sync"]
            .map(|tier| scope.spawn(move || outcomes(tier, share)))
            .map(|run| run.join().expect("no run panics"))
    });
    let row = |(at_quorum, at_synced): (&Found, &Found)| -> Row {
        let ((kind, damage, [same, other], forced), (_, _, [synced, synced_other], synced_forced)) =
            (at_quorum, at_synced);
        let forced = match (forced, synced_forced) {
            ([same, other], synced) if same == other && forced == synced => same.to_string(),
            ([same, other], [synced, synced_other]) => format!("{same}, {other}, {synced}, {synced_other}"),
        };
        assert_eq!((kind, damage), (&at_synced.0, &at_synced.1), "both tiers have the same files");
        let damage = if *damage == Damage::Foreign { "another member's".to_owned() } else { damage.to_string() };
        let name = case_name(kind, damage);
        let outcomes = [same, other, synced, synced_other];
        let is_possible = outcomes.iter().any(|outcome| **outcome != StartOutcome::Nothing);
        let line = format!("{name} {same} | {other} | {synced} | {synced_other} | {forced} |");
        (name, is_possible.then_some(line))
    };
    let rows: Vec<Row> = quorum.iter().zip(&synced).map(row).collect();
    check_against_page("The directory of a member", share, &rows);
}
