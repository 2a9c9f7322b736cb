//! Looking at a journal, for `gapless journal info` and `gapless journal verify`.
//!
//! Reads only, without the lock, also beside a running writer.

use gapless_wire::Frame;
use std::path::{Path, PathBuf};

use crate::cut_files::bytes_on_device;
use crate::descriptor as d;
use crate::directory::Found;
use crate::error::{JournalError, MarkName};
use crate::evaluation::evaluate;
use crate::options::{Environment, FilePoint, RecoveryCheck};
use crate::reader::JournalReader;
use crate::records::{ReplayStop, SegmentRecords};
use crate::replay::Replay;

/// One segment, by its header and marks alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    pub path: PathBuf,
    /// Counts the segments of the directory from 1, deleted ones included.
    pub number: u64,
    /// The sequence of its first frame.
    pub first_sequence: u64,
    /// The last sequence that its journaled mark names; `None` if the mark is damaged.
    pub journaled_sequence: Option<u64>,
    /// Where in the file the slot of its journaled mark begins that is damaged, while the other one is whole and says what
    /// stands here; `None` if both are whole.
    pub damaged_slot_position: Option<u64>,
    /// The last sequence that its synced mark names; `None` if the mark is damaged.
    pub synced_sequence: Option<u64>,
    /// The longest frame that it may hold, bytes.
    pub frame_length_max: u32,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Length that it should have, in bytes.
    pub length_bytes: u64,
    /// Bytes of frames and records by its journaled mark.
    pub used_bytes: u64,
    /// Whether it holds records of consensus, by its records mark.
    pub holds_records: bool,
    /// Where the newest checkpoint among them stands, by the same.
    pub checkpoint_position: Option<u64>,
    /// Whether it takes no more frames.
    pub is_sealed: bool,
    /// When it took its first frame, ns since the epoch.
    pub opened_ns: u64,
    /// Whether a sync of it has failed.
    pub sync_failed: bool,
    /// Where its frames lie, if they are archived: then `path` is its stub.
    pub archived: Option<PathBuf>,
}

/// A journal, by the headers and marks of its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalInfo {
    pub directory: PathBuf,
    /// The stream whose frames these are.
    pub stream_id: u128,
    /// Drawn when the directory was made.
    pub incarnation: u64,
    /// Whether it was last written on this boot of this machine.
    pub is_same_boot: bool,
    /// The mark that is good, and the sequence up to which it vouches for every frame.
    pub good_mark: (MarkName, u64),
    /// The longest frame of the stream in bytes.
    pub frame_length_max: u32,
    /// Oldest first.
    pub segments: Vec<SegmentInfo>,
    /// Files with a segment's name that were never in use.
    pub leftovers: Vec<PathBuf>,
    /// Files of bytes that were cut from the journal at starts, and the length of each on the device, in bytes.
    pub cuts: Vec<(PathBuf, u64)>,
}

impl JournalInfo {
    /// The first sequence kept.
    #[must_use]
    pub fn first_sequence(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.first_sequence)
    }

    /// The last sequence that any journaled mark names; one before the first where there is none.
    #[must_use]
    pub fn journaled_sequence(&self) -> u64 {
        self.segments.iter().filter_map(|segment| segment.journaled_sequence).max().unwrap_or(0)
    }

    /// The last sequence that any synced mark names; 0 for none.
    #[must_use]
    pub fn synced_sequence(&self) -> u64 {
        self.segments.iter().filter_map(|segment| segment.synced_sequence).max().unwrap_or(0)
    }

    /// The length of the files on the device, in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.file_bytes).sum()
    }
}

/// The findings of a read of every frame of a journal.
#[derive(Debug)]
pub struct VerifyReport {
    /// The journal by its headers and marks.
    pub info: JournalInfo,
    /// How many frames are there and whole.
    pub frames: u64,
    /// Their length in bytes, padding included.
    pub frame_bytes: u64,
    /// How many records of consensus stand among them.
    pub records: u64,
    /// Their length in bytes, padding included.
    pub record_bytes: u64,
    /// Segment and position of the newest checkpoint among them.
    pub newest_checkpoint: Option<(PathBuf, u64)>,
    /// The last sequence that can be replayed without a break from the first; one before the first
    /// where there is none.
    pub last_sequence: u64,
    /// The errors found, oldest segment first. Empty for a sound journal.
    pub problems: Vec<JournalError>,
    /// Where the journal ends on this machine although its bytes go on; not an error, because no mark vouches for the
    /// bytes after it. Opening the journal for writing cuts there.
    pub stop: Option<ReplayStop>,
    /// Intact frames, and records, after the end of the journal, in bytes that no mark vouches for: opening it for
    /// writing takes them out. Only on another boot than the one on which it was written.
    pub intact_beyond: u64,
    /// The highest sequence that a mark or a file beside the journal vouches for.
    pub vouched_sequence: u64,
    /// Index entries that lead nowhere: slows a search down, and harms nothing.
    pub bad_index_entries: u64,
}

/// The verdict of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that was ever there is there, and whole.
    Whole,
    /// Something that a mark or another file vouches for is damaged or missing.
    Damaged,
    /// The vouched part is whole, but after a damaged place there are intact frames that a start would cut.
    FramesBeyondEnd,
    /// The frames there are whole, but nothing says that there were no more: the machine has started again since.
    NothingVouchesForEnd,
}

impl VerifyReport {
    /// The verdict of the report.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self {
            _ if !self.problems.is_empty() => Verdict::Damaged,
            _ if self.intact_beyond > 0 => Verdict::FramesBeyondEnd,
            _ if self.stop.is_some() || self.vouched_sequence < self.last_sequence => Verdict::NothingVouchesForEnd,
            _ => Verdict::Whole,
        }
    }
}

/// Describes the journal of `directory`.
///
/// # Errors
/// As [`JournalReader::open`].
pub fn info(directory: impl Into<PathBuf>) -> Result<JournalInfo, JournalError> {
    info_in(directory, Environment::default())
}

/// As [`info`], on another machine than this one.
///
/// # Errors
/// As [`JournalReader::open`].
pub fn info_in(directory: impl Into<PathBuf>, environment: Environment) -> Result<JournalInfo, JournalError> {
    info_of(&JournalReader::open_in(directory, environment)?)
}

/// Reads and checks every frame of the journal of `directory`. Goes on with the next segment after a bad frame, so that
/// the report names every damaged segment.
///
/// # Errors
/// As [`JournalReader::open`]; damaged frames are in the report.
pub fn verify(directory: impl Into<PathBuf>) -> Result<VerifyReport, JournalError> {
    verify_in(directory, Environment::default())
}

/// As [`verify`], on another machine than this one.
///
/// # Errors
/// As [`verify`].
pub fn verify_in(directory: impl Into<PathBuf>, environment: Environment) -> Result<VerifyReport, JournalError> {
    verify_with(directory, environment, &[], &mut |_| {})
}

/// As [`verify_in`], with the points that files beside the journal record of it; `seen` is called with each whole frame.
///
/// # Errors
/// As [`verify`].
pub fn verify_with(
    directory: impl Into<PathBuf>,
    environment: Environment,
    points: &[FilePoint],
    seen: &mut dyn FnMut(&Frame<'_>),
) -> Result<VerifyReport, JournalError> {
    let directory = directory.into();
    let (reader, complete) = JournalReader::open_and_compare(&directory, environment.clone())?;
    let info = match (info_of(&reader), complete.as_ref()) {
        (Ok(info), _) => info,
        // A missing segment explains why the marks of the rest do not fit.
        (Err(_), Err(_)) => return Err(complete.expect_err("looked at just now")),
        (Err(error), Ok(())) => return Err(error),
    };
    let last_sequence = info.first_sequence() - 1;
    let mut report = VerifyReport {
        info,
        frames: 0,
        frame_bytes: 0,
        records: 0,
        record_bytes: 0,
        newest_checkpoint: None,
        last_sequence,
        problems: Vec::new(),
        stop: None,
        intact_beyond: 0,
        vouched_sequence: 0,
        bad_index_entries: 0,
    };
    report.problems.extend(complete.err());
    let segments = reader.segments();
    for (i, found) in segments.iter().enumerate() {
        match verify_segment(&reader, found, segments.get(i + 1), (&mut report, seen)) {
            Ok(Some(stop)) => {
                report.stop = Some(stop);
                break;
            }
            Ok(None) => {}
            Err(error) => report.problems.push(error),
        }
    }
    judge_end(&reader, &environment, &mut report);
    for point in points {
        report.vouched_sequence = report.vouched_sequence.max(point.sequence);
        report.problems.extend(reader.check_point(point).err());
    }
    Ok(report)
}

/// How far the journal is vouched for, and the bytes after its end.
fn judge_end(reader: &JournalReader, environment: &Environment, report: &mut VerifyReport) {
    report.vouched_sequence = report.info.good_mark.1;
    if reader.is_same_boot() {
        // Frames after the journaled mark were never promised to anybody.
        report.vouched_sequence = report.vouched_sequence.max(report.last_sequence);
        return;
    }
    match evaluate(reader.survey(), environment, RecoveryCheck::Tail) {
        Ok(evaluation) => {
            report.intact_beyond = evaluation.tail.map_or(0, |tail| tail.frames + tail.records);
        }
        // The segments have been read one by one, and most of the possible errors are known.
        Err(error) if report.problems.is_empty() => report.problems.push(error),
        Err(_) => {}
    }
}

/// Reads one segment, up to the sequence where the `next` begins; frames missing before that are a gap.
fn verify_segment(
    reader: &JournalReader,
    found: &Found,
    next: Option<&Found>,
    (report, seen): (&mut VerifyReport, &mut dyn FnMut(&Frame<'_>)),
) -> Result<Option<ReplayStop>, JournalError> {
    let mut replay = reader.replay_segment(found)?;
    let mut last_ns = 0;
    let checked = check_segment(&mut replay, next.map(|next| next.first_sequence), (report, seen), &mut last_ns);
    let passed = replay.passed();
    report.records += passed.count;
    report.record_bytes += passed.bytes;
    if let Some((first_sequence, position)) = passed.checkpoint {
        let holding = reader.segments().iter().find(|found| found.first_sequence == first_sequence);
        report.newest_checkpoint = holding.map(|found| (found.path.clone(), position));
    }
    checked?;
    if replay.stop().is_none() {
        check_times(found, next, replay.next_sequence() - 1, last_ns)?;
    }
    match next {
        Some(next) if replay.stop().is_none() && replay.next_sequence() < next.first_sequence => {
            Err(JournalError::Gap {
                before: found.path.clone(),
                after: next.path.clone(),
                missing_from: replay.next_sequence(),
                missing_to: next.first_sequence - 1,
            })
        }
        _ => Ok(replay.stop().cloned()),
    }
}

/// Whether what a segment's header, and that of the next, say of its last frame is so.
fn check_times(found: &Found, next: Option<&Found>, sequence: u64, last_ns: u64) -> Result<(), JournalError> {
    if ![0, last_ns].contains(&found.times_ns.1) && last_ns != 0 && next.is_some() {
        let reason = format!("the last frame is of {last_ns} ns, the times mark says {} ns", found.times_ns.1);
        let (segment, position) = (found.path.clone(), d::TIMES_MARK_OFFSET as u64);
        return Err(JournalError::HeaderDamaged { segment, position, reason });
    }
    match next {
        Some(next)
            if next.first_sequence == sequence + 1 && last_ns != 0 && ![0, last_ns].contains(&next.times_ns.0) =>
        {
            let (before, after) = (found.path.clone(), next.path.clone());
            let (before_ns, after_ns) = (last_ns, next.times_ns.0);
            Err(JournalError::OtherTimes { before, after, sequence, before_ns, after_ns })
        }
        _ => Ok(()),
    }
}

fn check_segment(
    replay: &mut Replay,
    until: Option<u64>,
    (report, seen): (&mut VerifyReport, &mut dyn FnMut(&Frame<'_>)),
    last_ns: &mut u64,
) -> Result<(), JournalError> {
    report.bad_index_entries += replay.bad_index_entries()?;
    while until.is_none_or(|until| replay.next_sequence() < until) {
        let is_unbroken = report.problems.is_empty();
        let Some(batch) = replay.next_batch()? else { break };
        report.frame_bytes += batch.bytes().len() as u64;
        let mut frames = 0;
        for frame in batch {
            frames += 1;
            *last_ns = frame.timestamp_ns();
            seen(&frame);
        }
        report.frames += frames;
        if is_unbroken {
            report.last_sequence += frames;
        }
    }
    if until == Some(replay.next_sequence()) {
        replay.check_records_behind()?;
    }
    Ok(())
}

fn info_of(reader: &JournalReader) -> Result<JournalInfo, JournalError> {
    let segments = reader.segments();
    Ok(JournalInfo {
        directory: reader.directory().to_owned(),
        stream_id: reader.stream_id(),
        incarnation: reader.incarnation(),
        is_same_boot: reader.is_same_boot(),
        good_mark: reader.good_mark()?,
        frame_length_max: segments.last().map_or(0, |found| found.header.frame_length_max),
        segments: segments.iter().map(segment_info).collect(),
        leftovers: reader.survey().leftovers.clone(),
        cuts: reader
            .survey()
            .cuts
            .iter()
            .map(|path| (path.clone(), bytes_on_device(std::slice::from_ref(path))))
            .collect(),
    })
}

fn segment_info(found: &Found) -> SegmentInfo {
    let end = found.journaled_position().unwrap_or(0);
    SegmentInfo {
        path: found.path.clone(),
        number: found.header.number,
        first_sequence: found.first_sequence,
        journaled_sequence: found.journaled.map(|mark| mark.second),
        damaged_slot_position: found.damaged_slot_position,
        synced_sequence: found.synced.map(|mark| mark.first),
        frame_length_max: found.header.frame_length_max,
        file_bytes: match &found.archived {
            Some(_) => found.path.metadata().map_or(0, |metadata| metadata.len()),
            None => found.file_length,
        },
        length_bytes: found.header.segment_length,
        used_bytes: end.saturating_sub(found.header.frames_offset),
        holds_records: found.segment_records != SegmentRecords::Nothing,
        checkpoint_position: match found.segment_records {
            SegmentRecords::Checkpoint { position, .. } => Some(position),
            SegmentRecords::Nothing | SegmentRecords::Records => None,
        },
        is_sealed: found.is_sealed(),
        opened_ns: found.opened_ns,
        sync_failed: found.sync_failed,
        archived: found.archived.as_ref().map(|archived| archived.place.clone()),
    }
}

impl std::fmt::Display for SegmentInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let Self { number, first_sequence, used_bytes, length_bytes, .. } = self;
        write!(f, "{name}: number {number}, sequences {first_sequence}..=")?;
        match self.journaled_sequence {
            Some(last) => write!(f, "{last}")?,
            None => write!(f, "? (journaled mark damaged)")?,
        }
        if let Some(position) = self.damaged_slot_position {
            write!(f, " (one slot of the journaled mark damaged, at byte {position})")?;
        }
        write!(f, ", {used_bytes} of {} bytes used", length_bytes.saturating_sub(d::frames_offset(*length_bytes)))?;
        f.write_str(if self.is_sealed { ", sealed" } else { ", open" })?;
        match self.checkpoint_position {
            Some(position) => write!(f, ", records, newest checkpoint at byte {position}")?,
            None if self.holds_records => f.write_str(", records without a checkpoint")?,
            None => {}
        }
        if let Some(place) = &self.archived {
            write!(f, ", archived at {}", place.display())?;
        } else if self.file_bytes < *length_bytes {
            write!(f, ", file cut to {} bytes", self.file_bytes)?;
        }
        if self.sync_failed { write!(f, ", a sync has FAILED") } else { Ok(()) }
    }
}

/// Whether a directory holds a journal, by the names of its files.
#[must_use]
pub fn holds_journal(directory: &Path) -> bool {
    let Ok(listing) = std::fs::read_dir(directory) else { return false };
    listing.flatten().any(|entry| {
        let name = entry.file_name();
        matches!(name.to_str().and_then(d::meaning_of_name), Some(d::NameMeaning::Segment(_)))
    })
}
