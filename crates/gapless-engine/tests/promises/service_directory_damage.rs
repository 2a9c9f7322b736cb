//! Damages every kind of file in the directory of a stream and of a service, before and after a reboot, at the tiers
//! `journal` and `sync`. A start does what the guide's table says, and apart from the limit stated there never silently
//! continues with less than was acknowledged.

use crate::damages::{
    Damage, PATIENCE, Row, Share, case_name, check_against_page, copy, files, flip, newest_history_slot, other_boot,
    put, put_other, truncate,
};
use gapless_client::node::{SharedMemoryOptions, StreamNode, StreamNodeOptions};
use gapless_client::polled::{ClientOptions, MessageType};
use gapless_client::stream_layout::StreamLayout;
use gapless_engine::{
    Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions, directory_consistency, output_record,
};
use gapless_journal::descriptor::ParsedFileName;
use gapless_journal::inspect::VerifyVerdict;
use gapless_journal::{Journal, JournalOptions, JournalReader, RecoveryReport, descriptor as d};
use gapless_schema::Encoding;
use gapless_stream::Persistence;
use gapless_stream::directory_record::DirectoryRecord;
use gapless_stream::event_stream::EventStream;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::wait::until;
use gapless_transport::Tier;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MESSAGE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const TOKEN: u128 = 0xda4a;
const SEGMENT_LENGTH: u64 = 64 << 10;
const INTERVAL_FRAMES: u64 = 900;
/// Messages up to the first state, the second, a copy of the directory, and the damage, when the next segment is being
/// prepared.
const COUNTS: [u64; 4] = [INTERVAL_FRAMES, INTERVAL_FRAMES, 855, 25];
const SEGMENTS: usize = 8;
/// In the payload of an early frame, with other frames after it.
const IN_FRAMES: u64 = d::frames_offset(SEGMENT_LENGTH) + 5 * 168 + 70;
const SIDE_BY_SIDE: usize = 6;
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Stream,
    ServiceHost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FileKind {
    OldestSegment,
    /// Sealed, and wholly before the newest state or snapshot.
    CoveredSegment,
    /// Sealed, and after them.
    SealedSegment,
    /// The newest when the older copy was made.
    FormerSegment,
    NewestSegment,
    PreparedSegment,
    History,
    Lock,
    JournalLock,
    OlderState,
    NewestState,
    Counters,
    Socket,
    DeadLetters,
    Outputs,
    Record,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OldestSegment => "oldest segment",
            Self::CoveredSegment => "segment that a state covers",
            Self::SealedSegment => "sealed segment after the states",
            Self::FormerSegment => "segment that was the newest",
            Self::NewestSegment => "newest segment",
            Self::PreparedSegment => "prepared segment",
            Self::History => "`history`",
            Self::Lock => "`lock`",
            Self::JournalLock => "`journal/lock`",
            Self::OlderState => "older state or snapshot",
            Self::NewestState => "newest state or snapshot",
            Self::Counters => "`counters`",
            Self::Socket => "socket",
            Self::DeadLetters => "`dead-letters.jsonl`",
            Self::Outputs => "`outputs`",
            Self::Record => "`directory`",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StartOutcome {
    Refused,
    Starts,
    /// Frames without a valid mark were truncated and reported; their bytes are kept.
    Cut,
    /// Continues with less, which no file reveals.
    Unnoticed,
    /// Impossible for this file.
    Nothing,
}

impl fmt::Display for StartOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "refused",
            Self::Starts => "starts",
            Self::Cut => "cut",
            Self::Unnoticed => "unnoticed",
            Self::Nothing => "–",
        })
    }
}

#[derive(Default)]
struct Count(u64);

impl Service for Count {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(MESSAGE.schema, |it: &mut Self, _: &[u8], context: &mut Context<'_>| -> Result<(), Reject> {
            it.0 += 1;
            context.reply_with(MESSAGE, &it.0.to_le_bytes())
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        state.extend_from_slice(&self.0.to_le_bytes());
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = u64::from_le_bytes(state.try_into().map_err(|_| "8 bytes")?);
        Ok(())
    }
}

impl Subject {
    fn persistence() -> Persistence {
        Persistence { segment_length_bytes: SEGMENT_LENGTH, ..Persistence::default() }
    }

    fn stream_options(directory: &Path, tier: Tier) -> EventStreamOptions {
        let mut options = EventStreamOptions::in_directory(directory);
        options.tier = tier;
        options.persistence = Self::persistence();
        options.window_bytes = 1 << 20;
        options.message_length_max = 64 << 10;
        options.frame_length_max = 1_376;
        options.state_interval_frames = INTERVAL_FRAMES;
        options.state_interval_min = Duration::ZERO;
        options
    }

    fn host_options(directory: &Path, tier: Tier) -> ServiceHostOptions {
        let mut options = ServiceHostOptions::in_directory(directory);
        options.tier = tier;
        options.persistence = Self::persistence();
        options.window_bytes = 1 << 20;
        options.frame_length_max = 1_376;
        options.snapshot_interval_frames = Some(INTERVAL_FRAMES);
        options
    }

    fn states(self, directory: &Path) -> PathBuf {
        let layout = StreamLayout::new(directory);
        match self {
            Self::Stream => layout.state(),
            Self::ServiceHost => layout.snapshots(),
        }
    }

    fn run(self, directory: &Path, tier: Tier, mut between: impl FnMut(usize)) {
        let mut states = 0;
        let mut rest = |at: usize| {
            if at < 2 {
                states += 1;
                until("a state", || self.list_states(directory).len() == states);
            }
            between(at);
        };
        match self {
            Self::Stream => {
                let stream = EventStream::start(&Self::stream_options(directory, tier)).unwrap();
                let link = stream.local_link(SharedMemoryOptions::default()).unwrap();
                let mut node = StreamNode::new(link, StreamNodeOptions::with_token(TOKEN));
                node.wait_open(PATIENCE).unwrap();
                for (at, count) in COUNTS.iter().enumerate() {
                    let (mut sent, mut came) = (0, 0);
                    let deadline = Instant::now() + PATIENCE;
                    while came < *count {
                        assert!(Instant::now() < deadline, "{came} of {count} have come back");
                        while sent < *count && node.can_publish() {
                            node.publish(MESSAGE, &[7; 100]).unwrap();
                            sent += 1;
                        }
                        came += node.poll(64, |_| {}).unwrap() as u64;
                    }
                    rest(at);
                }
                drop(node);
                stream.abandon();
            }
            Self::ServiceHost => {
                let host = ServiceHost::start(Count::default(), Self::host_options(directory, tier)).unwrap();
                let mut client = host.connect(ClientOptions::default()).unwrap();
                let session = client.open_session(TOKEN, 4).unwrap();
                for (at, count) in COUNTS.iter().enumerate() {
                    for number in 0..*count {
                        if number == 10 {
                            let other = MessageType { schema: 1 << 16 | 2, ..MESSAGE };
                            client.call(session, other, &[7; 100], PATIENCE).unwrap_err();
                            continue;
                        }
                        client.call(session, MESSAGE, &[7; 100], PATIENCE).unwrap();
                    }
                    rest(at);
                }
                host.stop().unwrap();
            }
        }
    }

    fn start(self, directory: &Path, tier: Tier) -> Result<(u64, RecoveryReport, Vec<u8>), String> {
        let (last_sequence, report) = match self {
            Self::Stream => {
                let stream =
                    EventStream::start(&Self::stream_options(directory, tier)).map_err(|error| error.to_string())?;
                let recovery = stream.recovery().clone();
                stream.stop().map_err(|error| error.to_string())?;
                (recovery.last_sequence, recovery.journal.unwrap())
            }
            Self::ServiceHost => {
                let options = Self::host_options(directory, tier);
                let host = ServiceHost::start(Count::default(), options).map_err(|error| error.to_string())?;
                let (last, report) = (host.recovered().last_sequence, host.journal_report().unwrap().clone());
                host.stop().map_err(|error| error.to_string())?;
                (last, report)
            }
        };
        let newest = self.list_states(directory).pop().unwrap();
        Ok((last_sequence, report, std::fs::read(newest).unwrap()))
    }

    fn list_states(self, directory: &Path) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.states(directory)) else { return Vec::new() };
        let is_one = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("state-") || name.ends_with(".snapshot")
        };
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(is_one).collect();
        found.sort();
        found
    }
}

/// As the helper thread prepares it when the newest segment is half full, at an unpredictable moment.
fn prepare_next(directory: &Path) {
    let scratch = tempfile::tempdir().unwrap();
    copy(directory, scratch.path());
    let (from, to) = [scratch.path(), directory].map(|root| StreamLayout::new(root).journal()).into();
    let mut options = JournalOptions::new(&from, JournalReader::open(&from).unwrap().stream_id());
    options.segment_length_bytes = SEGMENT_LENGTH;
    options.frame_length_max = 1_376;
    let (journal, _) = Journal::open(options).unwrap();
    let mut preparer = journal.preparer();
    while preparer.run_once().unwrap() {}
    for file in files(&from) {
        if let Some(ParsedFileName::Prepared(_)) = d::parse_file_name(file.to_str().unwrap()) {
            std::fs::copy(from.join(&file), to.join(&file)).unwrap();
        }
    }
}

fn meanings(directory: &Path) -> Vec<ParsedFileName> {
    let meaning = |file: PathBuf| d::parse_file_name(file.file_name()?.to_str()?);
    files(directory).into_iter().filter_map(meaning).collect()
}

fn kinds(subject: Subject, directory: &Path) -> BTreeMap<FileKind, PathBuf> {
    let layout = StreamLayout::new(directory);
    let relative = |path: PathBuf| path.strip_prefix(directory).unwrap().to_owned();
    let states = subject.list_states(directory);
    assert_eq!(states.len(), 2, "{states:?}");
    let covered: u64 = states[1].file_stem().unwrap().to_str().unwrap().trim_start_matches("state-").parse().unwrap();
    let mut kinds = BTreeMap::from([
        (FileKind::OlderState, relative(states[0].clone())),
        (FileKind::NewestState, relative(states[1].clone())),
    ]);
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
            None if states.contains(&path) => continue,
            None if path == layout.counters() => FileKind::Counters,
            None if [layout.socket(), layout.node_socket()].contains(&path) => FileKind::Socket,
            None if name == "dead-letters.jsonl" => FileKind::DeadLetters,
            None if name == output_record::FILE_NAME => FileKind::Outputs,
            None if path == DirectoryRecord::path(&layout) => FileKind::Record,
            Some(ParsedFileName::Archived(_)) | None => {
                panic!("{} is unknown to this test", path.display())
            }
        };
        kinds.insert(kind, file);
    }
    segments.sort();
    assert_eq!(segments.len(), SEGMENTS, "{segments:?}");
    let is_behind = |(first, _): &&(u64, PathBuf)| *first > covered;
    assert!(segments.iter().filter(is_behind).count() >= 2, "{segments:?} after {covered}");
    let first_behind = segments.iter().find(is_behind).unwrap().1.clone();
    kinds.insert(FileKind::OldestSegment, segments[0].1.clone());
    kinds.insert(FileKind::CoveredSegment, segments[1].1.clone());
    kinds.insert(FileKind::SealedSegment, first_behind);
    kinds.insert(FileKind::NewestSegment, segments.last().unwrap().1.clone());
    assert!(kinds.contains_key(&FileKind::PreparedSegment));
    kinds
}

struct Images {
    subject: Subject,
    tier: Tier,
    now: tempfile::TempDir,
    old: tempfile::TempDir,
    recent: tempfile::TempDir,
    foreign: tempfile::TempDir,
    kinds: BTreeMap<FileKind, PathBuf>,
    last_sequence: u64,
    knows: Vec<u8>,
}

impl Images {
    fn make(subject: Subject, tier: Tier) -> Self {
        let [now, old, recent, foreign, running, other] = [(); 6].map(|()| tempfile::tempdir().unwrap());
        // A helper thread renames segments.
        let copy_whole = |from: &Path, to: &Path| {
            let count = |of: fn(&ParsedFileName) -> bool| meanings(from).iter().filter(|meaning| of(meaning)).count();
            until("each segment's name", || count(|meaning| matches!(meaning, ParsedFileName::Segment(_))) == SEGMENTS);
            copy(from, to);
        };
        subject.run(running.path(), tier, |at| match at {
            1 => copy(running.path(), old.path()),
            2 => copy_whole(running.path(), recent.path()),
            3 => copy_whole(running.path(), now.path()),
            _ => {}
        });
        subject.run(other.path(), tier, |at| {
            if at == 3 {
                copy_whole(other.path(), foreign.path());
            }
        });
        prepare_next(now.path());
        prepare_next(foreign.path());
        let mut kinds = kinds(subject, now.path());
        let former = files(old.path()).into_iter().rfind(|file| {
            matches!(d::parse_file_name(file.file_name().unwrap().to_str().unwrap()), Some(ParsedFileName::Segment(_)))
        });
        kinds.insert(FileKind::FormerSegment, former.unwrap());
        let whole = tempfile::tempdir().unwrap();
        copy(now.path(), whole.path());
        let (last_sequence, report, knows) = subject.start(whole.path(), tier).unwrap();
        assert!(report.removed_tail.is_none() && report.is_same_boot);
        Self { subject, tier, now, old, recent, foreign, kinds, last_sequence, knows }
    }

    fn neighbour(&self, kind: FileKind) -> Option<PathBuf> {
        let other = match kind {
            FileKind::OldestSegment => FileKind::CoveredSegment,
            FileKind::CoveredSegment => FileKind::OldestSegment,
            FileKind::SealedSegment | FileKind::FormerSegment => FileKind::NewestSegment,
            FileKind::NewestSegment => FileKind::SealedSegment,
            FileKind::OlderState => FileKind::NewestState,
            FileKind::NewestState => FileKind::OlderState,
            _ => return None,
        };
        self.kinds.get(&other).cloned()
    }

    fn try_damage(&self, kind: FileKind, damage: Damage, is_other_boot: bool) -> (StartOutcome, &'static str) {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path();
        copy(self.now.path(), directory);
        let Some(file) = self.kinds.get(&kind) else { return (StartOutcome::Nothing, "–") };
        let path = directory.join(file);
        let length = std::fs::metadata(&path).unwrap().len();
        let put = |from: PathBuf| put(&from, &path);
        let is_done = match damage {
            Damage::Remove => std::fs::remove_file(&path).is_ok(),
            Damage::Truncate if length == 0 => false,
            Damage::Truncate => {
                let length = match kind {
                    _ if is_segment(kind) => IN_FRAMES,
                    FileKind::History => 60,
                    _ => length * 2 / 3,
                };
                truncate(&path, length);
                true
            }
            Damage::Exchange => self.neighbour(kind).is_some_and(|other| put(self.now.path().join(other))),
            // Depends on the clock: varies from run to run.
            Damage::OldCopy if kind == FileKind::Outputs => false,
            Damage::OldCopy => {
                let image = if kind == FileKind::NewestSegment { &self.recent } else { &self.old };
                put_other(&image.path().join(file), &path)
            }
            Damage::Foreign => put(self.foreign_of(kind, file)),
            Damage::Flip if length == 0 => false,
            Damage::Flip => {
                flip(&path, |file| match kind {
                    _ if is_segment(kind) => IN_FRAMES,
                    FileKind::History => newest_history_slot(file) + 50,
                    _ => length / 2,
                });
                true
            }
        };
        if !is_done {
            return (StartOutcome::Nothing, "–");
        }
        if is_other_boot {
            other_boot(&StreamLayout::new(directory).journal());
        }
        let before = content(directory);
        let verdict = match directory_consistency::verify(&StreamLayout::new(directory)).map(|report| report.verdict())
        {
            Ok(VerifyVerdict::Whole) => "whole",
            Ok(VerifyVerdict::FramesBeyondEnd) => "frames beyond",
            Ok(VerifyVerdict::NothingVouchesForEnd) => "end in doubt",
            Ok(VerifyVerdict::Damaged) | Err(_) => "damaged",
        };
        assert!(content(directory) == before, "{kind}, {damage}: verification has changed a file");
        let outcome = match self.subject.start(directory, self.tier) {
            Err(error) => {
                assert!(
                    error.contains(directory.to_str().unwrap()),
                    "{kind}, {damage}: the error names no path: {error}"
                );
                assert!(content(directory) == before, "{kind}, {damage}: refused, but a file has changed: {error}");
                StartOutcome::Refused
            }
            Ok((last_sequence, report, knows)) => {
                let is_whole = last_sequence == self.last_sequence && knows == self.knows;
                let is_told =
                    report.removed_tail.as_ref().is_some_and(|cut| cut.files.iter().all(|kept| kept.exists()));
                // All files are consistent: only a client that has seen more can know, the limit stated in the guide.
                let is_bound = kind == FileKind::NewestSegment && damage == Damage::OldCopy;
                assert!(
                    is_whole || is_told || is_bound,
                    "{kind}, {damage}, other boot {is_other_boot}, tier {}: at {last_sequence} of {}, unreported",
                    self.tier,
                    self.last_sequence
                );
                let may_lose = self.tier == Tier::Journal || is_bound;
                assert!(is_whole || may_lose, "{kind}, {damage}: acknowledged at tier sync, and lost");
                match (is_whole, is_told) {
                    (true, _) => StartOutcome::Starts,
                    (false, true) => StartOutcome::Cut,
                    (false, false) => StartOutcome::Unnoticed,
                }
            }
        };
        (outcome, verdict)
    }

    fn foreign_of(&self, kind: FileKind, file: &Path) -> PathBuf {
        let same = self.foreign.path().join(file);
        let kinds = kinds(self.subject, self.foreign.path());
        if same.exists() { same } else { kinds.get(&kind).map_or(same, |other| self.foreign.path().join(other)) }
    }
}

/// Locks, counters and sockets are recreated by each start.
fn content(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let means_something = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_str().unwrap();
        !["lock", "counters", "stream.socket", "node.socket", "dead-letters.jsonl"].contains(&name)
    };
    let read = |file: PathBuf| {
        let bytes = std::fs::read(directory.join(&file)).unwrap();
        match d::parse_file_name(file.file_name().unwrap().to_str().unwrap()) {
            Some(ParsedFileName::Segment(_)) => {
                let frames = bytes.get(d::frames_offset(SEGMENT_LENGTH) as usize..).unwrap_or_default();
                Some((file, frames.to_vec()))
            }
            Some(ParsedFileName::Prepared(_)) => None,
            Some(ParsedFileName::Archived(_)) | None => Some((file, bytes)),
        }
    };
    files(directory).into_iter().filter(means_something).filter_map(read).collect()
}

const fn is_segment(kind: FileKind) -> bool {
    use FileKind::{CoveredSegment, FormerSegment, NewestSegment, OldestSegment, SealedSegment};
    matches!(kind, OldestSegment | CoveredSegment | SealedSegment | FormerSegment | NewestSegment)
}

fn row(kind: FileKind, damage: Damage, outcomes: [(StartOutcome, &'static str); 4]) -> Row {
    let is_possible = outcomes.iter().any(|(outcome, _)| *outcome != StartOutcome::Nothing);
    let [(journal, same), (journal_other, other), (sync, _), (sync_other, _)] = outcomes;
    let name = case_name(kind, damage);
    let line = format!("{name} {journal} | {journal_other} | {sync} | {sync_other} | {same} | {other} |");
    (name, is_possible.then_some(line))
}

fn table(subject: Subject, share: Share) -> Vec<Row> {
    let images = [Images::make(subject, Tier::Journal), Images::make(subject, Tier::Sync)];
    let kinds: Vec<FileKind> = images[0].kinds.keys().copied().collect();
    let cases = share.cases(&kinds);
    let try_case = |(kind, damage): &(FileKind, Damage)| {
        let outcomes = [(0, false), (0, true), (1, false), (1, true)]
            .map(|(tier, is_other_boot)| images[tier].try_damage(*kind, *damage, is_other_boot));
        row(*kind, *damage, outcomes)
    };
    let length = cases.len().div_ceil(SIDE_BY_SIDE);
    std::thread::scope(|scope| {
        let runs: Vec<_> = cases
            .chunks(length)
            .map(|cases| scope.spawn(|| cases.iter().map(&try_case).collect::<Vec<Row>>()))
            .collect();
        runs.into_iter().flat_map(|run| run.join().expect("no run panics")).collect()
    })
}

#[test]
fn stream_damages_match_reference() {
    let share = Share::seeded();
    check_against_page("The directory of a stream", share, &table(Subject::Stream, share));
}

#[test]
fn service_damages_match_reference() {
    let share = Share::seeded();
    check_against_page("The directory of a service", share, &table(Subject::ServiceHost, share));
}
