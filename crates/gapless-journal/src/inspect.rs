//! Inspection of a journal (`gapless journal info` and `verify`), without the lock, also while a writer runs.

use gapless_wire::Frame;
use std::path::{Path, PathBuf};

use crate::descriptor as d;
use crate::directory::SurveyedSegment;
use crate::error::{JournalError, MarkName};
use crate::evaluation::evaluate;
use crate::options::{FilePoint, JournalEnvironment, RecoveryCheck};
use crate::reader::JournalReader;
use crate::records::{ReplayStop, SegmentRecords};
use crate::removed_tail_files::bytes_on_device;
use crate::replay::Replay;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    pub path: PathBuf,
    /// In the directory from 1, counting deleted ones.
    pub number: u64,
    pub first_sequence: u64,
    /// Last sequence by its journaled mark; `None` if the mark is damaged.
    pub journaled_sequence: Option<u64>,
    /// Position of the damaged slot of the journaled mark, if the other is intact.
    pub damaged_slot_position: Option<u64>,
    /// Last sequence by its synced mark; `None` if the mark is damaged.
    pub synced_sequence: Option<u64>,
    /// Bytes.
    pub frame_length_max: u32,
    /// Actual length.
    pub file_bytes: u64,
    /// Expected length.
    pub length_bytes: u64,
    /// Frames and records by the journaled mark.
    pub used_bytes: u64,
    /// Set by the records mark if it has consensus records.
    pub has_records: bool,
    /// Newest one, by the records mark.
    pub checkpoint_position: Option<u64>,
    /// Takes no more frames.
    pub is_sealed: bool,
    /// First frame, ns since the epoch.
    pub opened_ns: u64,
    pub sync_failed: bool,
    /// Location of its frames if they are archived; then `path` is its stub.
    pub archived: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalInfo {
    pub directory: PathBuf,
    pub stream_id: u128,
    /// Drawn when the directory was created.
    pub incarnation: u64,
    /// Set if it was last written on this boot of this machine.
    pub is_same_boot: bool,
    /// The mark, and the sequence up to which it vouches for every frame.
    pub good_mark: (MarkName, u64),
    /// Bytes.
    pub frame_length_max: u32,
    pub segments: Vec<SegmentInfo>,
    pub leftovers: Vec<PathBuf>,
    /// Bytes removed by starts; with the space used.
    pub removed_tail_files: Vec<(PathBuf, u64)>,
}

impl JournalInfo {
    #[must_use]
    pub fn first_sequence(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.first_sequence)
    }

    /// Returns the last sequence by any journaled mark; one before the first in an empty journal.
    #[must_use]
    pub fn journaled_sequence(&self) -> u64 {
        self.segments.iter().filter_map(|segment| segment.journaled_sequence).max().unwrap_or(0)
    }

    /// Returns the last sequence by any synced mark; 0 without one.
    #[must_use]
    pub fn synced_sequence(&self) -> u64 {
        self.segments.iter().filter_map(|segment| segment.synced_sequence).max().unwrap_or(0)
    }

    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.file_bytes).sum()
    }
}

#[derive(Debug)]
pub struct VerifyReport {
    pub info: JournalInfo,
    pub frames: u64,
    /// Length of these frames with padding, bytes.
    pub frame_bytes: u64,
    pub records: u64,
    /// Length of these records with padding, bytes.
    pub record_bytes: u64,
    pub newest_checkpoint: Option<(PathBuf, u64)>,
    /// Can be replayed from the first without a gap; one before the first in an empty journal.
    pub last_sequence: u64,
    /// Oldest segment first; empty for a sound journal.
    pub problems: Vec<JournalError>,
    /// Bytes after the end, which opening for writing removes: no mark vouches for them.
    pub stop: Option<ReplayStop>,
    /// Intact frames and records after the end, which opening for writing removes. Only on another boot than the
    /// writer's.
    pub intact_after_end: u64,
    /// Highest sequence that a mark or a file next to the journal vouches for.
    pub vouched_sequence: u64,
    /// Index entries without a frame: they slow down a search, and are otherwise harmless.
    pub bad_index_entries: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyVerdict {
    /// All frames that ever existed are there.
    Whole,
    /// A vouched frame is damaged or missing.
    Damaged,
    /// Intact frames follow a damaged place after the vouched part; a start would remove them.
    FramesBeyondEnd,
    /// The frames are intact, but the machine has rebooted since, so there may have been more.
    NothingVouchesForEnd,
}

impl VerifyReport {
    #[must_use]
    pub fn verdict(&self) -> VerifyVerdict {
        match self {
            _ if !self.problems.is_empty() => VerifyVerdict::Damaged,
            _ if self.intact_after_end > 0 => VerifyVerdict::FramesBeyondEnd,
            _ if self.stop.is_some() || self.vouched_sequence < self.last_sequence => {
                VerifyVerdict::NothingVouchesForEnd
            }
            _ => VerifyVerdict::Whole,
        }
    }
}

/// Describes the journal of `directory`.
///
/// # Errors
/// As [`JournalReader::open`].
pub fn info(directory: impl Into<PathBuf>) -> Result<JournalInfo, JournalError> {
    info_in(directory, JournalEnvironment::default())
}

/// In the environment of another machine.
///
/// # Errors
/// As [`JournalReader::open`].
pub fn info_in(directory: impl Into<PathBuf>, environment: JournalEnvironment) -> Result<JournalInfo, JournalError> {
    info_of(&JournalReader::open_in(directory, environment)?)
}

/// Reads and checks every frame of the journal of `directory`. After a bad frame it continues with the next segment, so
/// that the report has every damaged segment.
///
/// # Errors
/// As [`JournalReader::open`]; damaged frames are in the report.
pub fn verify(directory: impl Into<PathBuf>) -> Result<VerifyReport, JournalError> {
    verify_in(directory, JournalEnvironment::default())
}

/// In the environment of another machine.
///
/// # Errors
/// As [`verify`].
pub fn verify_in(directory: impl Into<PathBuf>, environment: JournalEnvironment) -> Result<VerifyReport, JournalError> {
    verify_with(directory, environment, &[], &mut |_| {})
}

/// Like [`verify_in`], also checks `points`; calls `seen` with each intact frame.
///
/// # Errors
/// As [`verify`].
pub fn verify_with(
    directory: impl Into<PathBuf>,
    environment: JournalEnvironment,
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
        intact_after_end: 0,
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
    evaluate_end(&reader, &environment, &mut report);
    for point in points {
        report.vouched_sequence = report.vouched_sequence.max(point.sequence);
        report.problems.extend(reader.check_point(point).err());
    }
    Ok(report)
}

fn evaluate_end(reader: &JournalReader, environment: &JournalEnvironment, report: &mut VerifyReport) {
    report.vouched_sequence = report.info.good_mark.1;
    if reader.is_same_boot() {
        // Frames after the journaled mark were never promised.
        report.vouched_sequence = report.vouched_sequence.max(report.last_sequence);
        return;
    }
    match evaluate(reader.survey(), environment, RecoveryCheck::Tail) {
        Ok(evaluation) => {
            report.intact_after_end = evaluation.tail.map_or(0, |tail| tail.frames + tail.records);
        }
        // Segments were read one by one, so most errors are known already.
        Err(error) if report.problems.is_empty() => report.problems.push(error),
        Err(_) => {}
    }
}

/// Up to the first sequence of `next`; missing frames before that are a gap.
fn verify_segment(
    reader: &JournalReader,
    found: &SurveyedSegment,
    next: Option<&SurveyedSegment>,
    (report, seen): (&mut VerifyReport, &mut dyn FnMut(&Frame<'_>)),
) -> Result<Option<ReplayStop>, JournalError> {
    let mut replay = reader.replay_segment(found)?;
    let mut last_ns = 0;
    let checked = check_segment(&mut replay, next.map(|next| next.first_sequence), (report, seen), &mut last_ns);
    let passed = replay.skipped();
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

fn check_times(
    found: &SurveyedSegment,
    next: Option<&SurveyedSegment>,
    sequence: u64,
    last_ns: u64,
) -> Result<(), JournalError> {
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
        replay.check_records_after()?;
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
        removed_tail_files: reader
            .survey()
            .removed_tail_files
            .iter()
            .map(|path| (path.clone(), bytes_on_device(std::slice::from_ref(path))))
            .collect(),
    })
}

fn segment_info(found: &SurveyedSegment) -> SegmentInfo {
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
        has_records: found.segment_records != SegmentRecords::Empty,
        checkpoint_position: match found.segment_records {
            SegmentRecords::Checkpoint { position, .. } => Some(position),
            SegmentRecords::Empty | SegmentRecords::Records => None,
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
            None if self.has_records => f.write_str(", records without a checkpoint")?,
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

#[must_use]
pub fn holds_journal(directory: &Path) -> bool {
    let Ok(listing) = std::fs::read_dir(directory) else { return false };
    listing.flatten().any(|entry| {
        let name = entry.file_name();
        matches!(name.to_str().and_then(d::parse_file_name), Some(d::ParsedFileName::Segment(_)))
    })
}
