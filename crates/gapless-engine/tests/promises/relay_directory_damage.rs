//! Damages every kind of file in a relay's directory, before and after a reboot. A restart has the outcome of the
//! guide's table.

use crate::damages::{
    Damage, PATIENCE, Row, Share, case_name, check_against_page, copy, files, flip, newest_history_slot, other_boot,
    put_other, truncate,
};
use gapless_client::node::{NodeEvent, SharedMemoryLink, SharedMemoryOptions, Start, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_client::replay_merge::ReplayRead;
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::descriptor::ParsedFileName;
use gapless_journal::{JournalReader, descriptor as d};
use gapless_schema::Encoding;
use gapless_stream::directory_record::DirectoryRecord;
use gapless_stream::event_stream::EventStream;
use gapless_stream::messages::SequencerRequest;
use gapless_stream::options::EventStreamOptions;
use gapless_testkit::wait::until;
use gapless_transport::Tier;
use gapless_wire::feed_session::FeedSession;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const MESSAGE: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
const SEGMENT_LENGTH: u64 = 64 << 10;
/// In the payload of an early frame, with other frames after it.
const IN_FRAMES: u64 = d::frames_offset(SEGMENT_LENGTH) + 5 * 1_080;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FileKind {
    Origin,
    Feeds,
    OldestSegment,
    MiddleSegment,
    NewestSegment,
    History,
    Lock,
    JournalLock,
    Counters,
    Socket,
    Record,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Origin => "`origin`",
            Self::Feeds => "`feeds`",
            Self::OldestSegment => "oldest segment",
            Self::MiddleSegment => "segment in the middle",
            Self::NewestSegment => "newest segment",
            Self::History => "`history`",
            Self::Lock => "`lock`",
            Self::JournalLock => "`journal/lock`",
            Self::Counters => "`counters`",
            Self::Socket => "socket",
            Self::Record => "`directory`",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartOutcome {
    Refused,
    Starts,
    /// Passes on all frames, after fetching the lost ones from the stream.
    Fetched,
    /// Passes on all frames, without the oldest ones' feed session names.
    Unnamed,
    /// Impossible for this file.
    Nothing,
}

impl fmt::Display for StartOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "refused",
            Self::Starts => "starts",
            Self::Fetched => "fetched",
            Self::Unnamed => "unnamed",
            Self::Nothing => "–",
        })
    }
}

fn options(directory: &Path, tier: Tier) -> EventStreamOptions {
    let mut options = EventStreamOptions::in_directory(directory);
    options.tier = tier;
    options.persistence.segment_length_bytes = SEGMENT_LENGTH;
    options.window_bytes = 1 << 20;
    options.message_length_max = 64 << 10;
    options.frame_length_max = 1_376;
    options.feed_session = FeedSession::new("MONDAY").unwrap();
    options
}

fn relay(directory: &Path, upstream: &Path, (tier, bytes_max): (Tier, Option<u64>)) -> Result<EventStream, String> {
    let mut options = options(directory, tier);
    options.persistence.retention.bytes_max = bytes_max;
    let upstream = SharedMemoryLink::new(upstream, SharedMemoryOptions::default());
    EventStream::relay(&options, Box::new(upstream), Start::First, &AtomicBool::new(false))
        .map_err(|error| error.to_string())
}

fn publish(publisher: &mut StreamNode<SharedMemoryLink>, count: u64) {
    for number in 0..count {
        publisher.publish(MESSAGE, &[7; 1_000]).unwrap();
        if number % 20 == 19 || number + 1 == count {
            publisher.poll_until(PATIENCE, "all to come back", |node| node.in_flight() == 0, |_| {}).unwrap();
        }
    }
}

fn begin_feed(stream: &EventStream, publisher: &mut StreamNode<SharedMemoryLink>, name: &str) {
    stream.ask(SequencerRequest::BeginFeed { name: FeedSession::new(name).unwrap() }).unwrap();
    let mut began = false;
    until("a feed session", || {
        publisher.poll(64, |event| began |= matches!(event, NodeEvent::FeedBegan { .. })).unwrap();
        began
    });
}

fn settle(stream: &EventStream, relay: &EventStream) {
    until("what the stream has", || relay.released_sequence() == stream.released_sequence());
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    let is_segment = |file: &PathBuf| {
        matches!(d::parse_file_name(file.file_name().unwrap().to_str().unwrap()), Some(ParsedFileName::Segment(_)))
    };
    files(directory).into_iter().filter(is_segment).collect()
}

fn kinds(directory: &Path) -> BTreeMap<FileKind, PathBuf> {
    let layout = StreamLayout::new(directory);
    let mut kinds = BTreeMap::new();
    for file in files(directory) {
        let name = file.file_name().unwrap().to_str().unwrap();
        let path = directory.join(&file);
        let kind = match d::parse_file_name(name) {
            Some(ParsedFileName::Segment(_)) => continue,
            Some(ParsedFileName::Prepared(_)) => panic!("prepared segments were removed"),
            None if path.parent() == Some(&layout.journal()) && name == d::HISTORY_NAME => FileKind::History,
            None if path.parent() == Some(&layout.journal()) && name == d::LOCK_NAME => FileKind::JournalLock,
            None if path.parent() == Some(directory) && name == d::LOCK_NAME => FileKind::Lock,
            None if path == layout.origin() => FileKind::Origin,
            None if path == layout.feeds() => FileKind::Feeds,
            None if path == layout.counters() => FileKind::Counters,
            None if path == layout.socket() => FileKind::Socket,
            None if path == DirectoryRecord::path(&layout) => FileKind::Record,
            Some(ParsedFileName::Archived(_)) | None => {
                panic!("{} is unknown to this test", path.display())
            }
        };
        kinds.insert(kind, file);
    }
    let segments = segments(directory);
    assert!(segments.len() >= 4, "{segments:?}");
    kinds.insert(FileKind::OldestSegment, segments[0].clone());
    kinds.insert(FileKind::MiddleSegment, segments[2].clone());
    kinds.insert(FileKind::NewestSegment, segments.last().unwrap().clone());
    kinds
}

const fn is_segment(kind: FileKind) -> bool {
    matches!(kind, FileKind::OldestSegment | FileKind::MiddleSegment | FileKind::NewestSegment)
}

struct Trials {
    tier: Tier,
    _place: tempfile::TempDir,
    upstream: PathBuf,
    stream: EventStream,
    now: tempfile::TempDir,
    old: tempfile::TempDir,
    recent: tempfile::TempDir,
    foreign: tempfile::TempDir,
    kinds: BTreeMap<FileKind, PathBuf>,
    first_sequence: u64,
    feeds: String,
}

/// Copies the relay's directory into `images`: during the first feed session, shortly before the end, and at the end.
fn run(upstream: &Path, beside: &Path, tier: Tier, images: [&Path; 3]) -> EventStream {
    let stream = EventStream::start(&options(upstream, tier)).unwrap();
    let relay = relay(beside, upstream, (tier, Some(6 * SEGMENT_LENGTH))).unwrap();
    let link = SharedMemoryLink::new(upstream, SharedMemoryOptions::default());
    let mut publisher = StreamNode::new(link, StreamNodeOptions::default());
    publisher.wait_open(PATIENCE).unwrap();
    publish(&mut publisher, 100);
    settle(&stream, &relay);
    copy(beside, images[0]);
    begin_feed(&stream, &mut publisher, "TUESDAY");
    let begun = Instant::now();
    while relay.reader(1).first_held().unwrap() < 200 {
        assert!(begun.elapsed() < PATIENCE, "nothing is deleted");
        publish(&mut publisher, 60);
        settle(&stream, &relay);
    }
    begin_feed(&stream, &mut publisher, "WEDNESDAY");
    publish(&mut publisher, 50);
    settle(&stream, &relay);
    // A new segment starts the deletion of old ones.
    let newest = || segments(beside).pop();
    let before = newest();
    while newest() == before {
        publish(&mut publisher, 1);
        settle(&stream, &relay);
    }
    publish(&mut publisher, 10);
    settle(&stream, &relay);
    // Repeats if a new segment was begun between the copies.
    loop {
        copy(beside, images[1]);
        publish(&mut publisher, 10);
        settle(&stream, &relay);
        until("its journal", || {
            copy(beside, images[2]);
            // Not during a deletion, nor while a segment is being written.
            std::thread::sleep(Duration::from_millis(50));
            let is_same = |file: &PathBuf| {
                let [original, copied] = [beside, images[2]].map(|at| std::fs::read(at.join(file)));
                original.is_ok_and(|bytes| copied.is_ok_and(|copied| bytes == copied))
            };
            if segments(beside) != segments(images[2]) || !segments(beside).iter().all(is_same) {
                return false;
            }
            let read = JournalReader::open(StreamLayout::new(images[2]).journal());
            let last = read.and_then(|reader| reader.last_sequence());
            last.is_ok_and(|last| last == stream.released_sequence())
        });
        if segments(images[1]).pop() == segments(images[2]).pop() {
            break;
        }
    }
    // A helper thread may have prepared a segment by now; the table of a stream has their outcomes.
    let is_prepared = |file: &PathBuf| {
        matches!(d::parse_file_name(file.file_name().unwrap().to_str().unwrap()), Some(ParsedFileName::Prepared(_)))
    };
    for file in files(images[2]).into_iter().filter(is_prepared) {
        std::fs::remove_file(images[2].join(file)).unwrap();
    }
    relay.abandon();
    stream
}

fn feeds_of(directory: &Path) -> String {
    std::fs::read_to_string(StreamLayout::new(directory).feeds()).unwrap()
}

impl Trials {
    fn begin(tier: Tier) -> Self {
        let place = tempfile::tempdir().unwrap();
        let [now, old, recent, foreign, ignored] = [(); 5].map(|()| tempfile::tempdir().unwrap());
        let at = |name: &str| place.path().join(name);
        let stream = run(&at("stream"), &at("relay"), tier, [old.path(), recent.path(), now.path()]);
        let other = run(&at("other"), &at("beside"), tier, [ignored.path(), ignored.path(), foreign.path()]);
        other.stop().unwrap();
        let kinds = kinds(now.path());
        let whole = at("whole");
        copy(now.path(), &whole);
        let upstream = at("stream");
        let relay = relay(&whole, &upstream, (tier, None)).unwrap();
        settle(&stream, &relay);
        let first_sequence = relay.reader(1).first_held().unwrap();
        relay.stop().unwrap();
        let feeds = feeds_of(&whole);
        assert!(feeds.contains("TUESDAY") && feeds.contains("WEDNESDAY"), "{feeds}");
        assert!(first_sequence > 110, "the second feed session's first frame is gone");
        Self { tier, _place: place, upstream, stream, now, old, recent, foreign, kinds, first_sequence, feeds }
    }

    fn damage(&self, directory: &Path, kind: FileKind, damage: Damage) -> bool {
        copy(self.now.path(), directory);
        let Some(file) = self.kinds.get(&kind) else { return false };
        let path = directory.join(file);
        let length = std::fs::metadata(&path).unwrap().len();
        let put = |from: PathBuf| put_other(&from, &path);
        let neighbour = match kind {
            FileKind::Origin => FileKind::Feeds,
            FileKind::Feeds => FileKind::Origin,
            FileKind::OldestSegment | FileKind::NewestSegment => FileKind::MiddleSegment,
            FileKind::MiddleSegment => FileKind::NewestSegment,
            _ => kind,
        };
        match damage {
            Damage::Remove => std::fs::remove_file(&path).is_ok(),
            Damage::Truncate | Damage::Flip if length == 0 => false,
            Damage::Truncate => {
                let length = match kind {
                    _ if is_segment(kind) => IN_FRAMES,
                    FileKind::History => 60,
                    _ => length * 2 / 3,
                };
                truncate(&path, length);
                true
            }
            Damage::Exchange => neighbour != kind && put(self.now.path().join(&self.kinds[&neighbour])),
            Damage::OldCopy if kind == FileKind::NewestSegment => put(self.recent.path().join(file)),
            Damage::OldCopy if is_segment(kind) => false,
            Damage::OldCopy => put(self.old.path().join(file)),
            Damage::Foreign if kind == FileKind::Counters => false,
            Damage::Foreign if is_segment(kind) => {
                put(self.foreign.path().join(segments(self.foreign.path()).pop().unwrap()))
            }
            Damage::Foreign => put(self.foreign.path().join(file)),
            Damage::Flip => {
                flip(&path, |file| match kind {
                    _ if is_segment(kind) => IN_FRAMES,
                    FileKind::History => newest_history_slot(file) + 50,
                    _ => length / 2,
                });
                true
            }
        }
    }

    fn try_damage(&self, kind: FileKind, damage: Damage, is_other_boot: bool) -> StartOutcome {
        let case = format!("{kind}, {damage}, other boot {is_other_boot}");
        let place = tempfile::tempdir().unwrap();
        let directory = place.path();
        if !self.damage(directory, kind, damage) {
            return StartOutcome::Nothing;
        }
        if is_other_boot {
            other_boot(&StreamLayout::new(directory).journal());
        }
        let relay = match relay(directory, &self.upstream, (self.tier, None)) {
            Ok(relay) => relay,
            Err(said) => {
                assert!(said.contains(directory.to_str().unwrap()), "{case}: the error names no path: {said}");
                return StartOutcome::Refused;
            }
        };
        settle(&self.stream, &relay);
        let recovery = relay.recovery().clone();
        assert_eq!(relay.reader(1).first_held().unwrap(), self.first_sequence, "{case}: the first frame differs");
        // The frames that a start reads; older damage is reported to later readers.
        let last = self.stream.released_sequence();
        let frames = |stream: &EventStream| {
            let mut reader = stream.reader(last - 5);
            let mut bytes = Vec::new();
            while reader.sequence() <= last {
                if let ReplayRead::Frame(frame) = reader.read().unwrap() {
                    bytes.extend_from_slice(frame.bytes());
                }
            }
            bytes
        };
        assert!(frames(&relay) == frames(&self.stream), "{case}: the frames differ");
        relay.stop().unwrap();
        let feeds = feeds_of(directory);
        // The newest name is always known; unknown older ones are left out.
        let lines: Vec<&str> = feeds.lines().skip(1).collect();
        assert!(
            lines.iter().all(|line| self.feeds.lines().any(|it| it == *line)),
            "{case}: {feeds}, not {}",
            self.feeds
        );
        match (recovery.last_sequence < last, feeds == self.feeds) {
            (true, _) => StartOutcome::Fetched,
            (false, true) => StartOutcome::Starts,
            (false, false) => StartOutcome::Unnamed,
        }
    }
}

#[test]
fn relay_damages_match_reference() {
    let trials = [Tier::Journal, Tier::Sync].map(Trials::begin);
    let share = Share::seeded();
    let kinds: Vec<FileKind> = trials[0].kinds.keys().copied().collect();
    let try_case = |(kind, damage): (FileKind, Damage)| -> Row {
        let outcomes = [(0, false), (0, true), (1, false), (1, true)]
            .map(|(tier, is_other_boot)| trials[tier].try_damage(kind, damage, is_other_boot));
        let is_possible = outcomes.iter().any(|outcome| *outcome != StartOutcome::Nothing);
        let [journal, journal_other, sync, sync_other] = outcomes;
        let name = case_name(kind, damage);
        let line = format!("{name} {journal} | {journal_other} | {sync} | {sync_other} |");
        (name, is_possible.then_some(line))
    };
    let rows: Vec<Row> = share.cases(&kinds).into_iter().map(try_case).collect();
    check_against_page("The directory of a relay", share, &rows);
}
