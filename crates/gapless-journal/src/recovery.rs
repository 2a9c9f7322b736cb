//! Opens a journal: creates the first segment, or recovers the directory (decision 7). `evaluation` judges; this module
//! truncates, cleans up and moves the marks. Every step leaves a directory that recovers to the same result if the
//! process dies after it.

use gapless_agent::checked_file;
use gapless_agent::private_folder;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gapless_agent::fault;

use crate::boot::BootId;
use crate::directory::{DirectoryLock, Survey, SurveyedSegment, survey};
use crate::disk::{DiskOperation, sync_directory};
use crate::error::{JournalError, MarkName, PointFault};
use crate::evaluation::{Evaluation, InvalidTail, ValidSegment, evaluate};
use crate::history::{HistoryFile, JournalHistory};
use crate::options::{Flush, JournalOptions};
use crate::own_file::open_to_write;
use crate::reader::JournalReader;
use crate::records::SegmentRecords;
use crate::recovery_report::{RecoveryReport, RemovedTail, RepairedMark};
use crate::removed_tail_files::{bytes_on_device, copy_tail, set_segment_aside};
use crate::segment::{FIRST_NUMBER, Segment, SegmentPreparation, allocate, write_zeros};
use crate::segment_times::write_last_time;
use crate::shared_journal::{RolledSegment, SegmentEntry, SegmentList, SharedJournal};
use crate::{descriptor as d, index};

#[derive(Debug)]
pub(crate) struct AppendPosition {
    pub(crate) shared: Arc<SharedJournal>,
    pub(crate) active: Arc<Segment>,
    pub(crate) position: usize,
    pub(crate) last_sequence: u64,
}

pub(crate) fn open(options: JournalOptions) -> Result<(AppendPosition, RecoveryReport), JournalError> {
    let directory = &options.directory;
    private_folder::create(directory).map_err(|error| JournalError::io("create", directory, error))?;
    let lock = DirectoryLock::take(directory)?;
    let survey = survey(directory, Some(options.stream_id))?;
    survey.check_complete(directory)?;
    if !survey.segments.is_empty() {
        return recover(options, lock, survey);
    }
    match options.points.iter().find(|point| point.sequence > 0) {
        Some(point) => Err(point.refuse(directory, PointFault::NoJournal)),
        None => create(options, lock, survey),
    }
}

fn create(
    options: JournalOptions,
    lock: DirectoryLock,
    survey: Survey,
) -> Result<(AppendPosition, RecoveryReport), JournalError> {
    let removed = remove_all(survey.leftovers)?;
    let incarnation = draw_incarnation(&options.directory)?;
    let first_sequence = options.first_sequence;
    let header = d::FixedHeader {
        stream_id: options.stream_id,
        incarnation,
        number: FIRST_NUMBER,
        segment_length: options.first_segment_length_bytes,
        frames_offset: d::frames_offset(options.first_segment_length_bytes),
        frame_length_max: options.frame_length_max as u32,
    };
    let mut preparation = SegmentPreparation::begin(&options, header)?;
    while !preparation.step()? {}
    let segment = preparation.finish(options.flush, options.environment.boot_id)?;
    let opened_ns = (options.environment.epoch_ns)();
    segment.open_for(first_sequence, opened_ns);
    give_final_name(&options, &segment, first_sequence)?;
    let stream_id = options.stream_id;
    let history =
        JournalHistory { stream_id, incarnation, replaced: 0, first_sequence, newest_sequence: first_sequence };
    let history = HistoryFile::create(&options.directory, history)?;
    let report = RecoveryReport {
        is_new: true,
        is_same_boot: true,
        good_mark: (MarkName::Journaled, first_sequence - 1),
        first_sequence,
        last_sequence: first_sequence - 1,
        segments: 1,
        frames_scanned: 0,
        removed_tail: None,
        is_rewritten: false,
        repaired_marks: Vec::new(),
        removed,
        removed_tail_files: survey.removed_tail_files,
    };
    let active = Arc::new(segment);
    let entry = SegmentEntry {
        first_sequence,
        opened_ns,
        length: header.segment_length,
        segment_records: SegmentRecords::Empty,
    };
    let list = SegmentList {
        entries: VecDeque::from([entry]),
        active: active.clone(),
        prepared: None,
        rolled: VecDeque::new(),
        unnamed: VecDeque::new(),
    };
    let last_sequence = first_sequence - 1;
    let shared = SharedJournal::new(
        options,
        incarnation,
        (last_sequence, last_sequence),
        list,
        bytes_on_device(&report.removed_tail_files),
        (FIRST_NUMBER + 1, history),
        lock,
    );
    let position = header.frames_offset as usize;
    Ok((AppendPosition { shared: Arc::new(shared), active, position, last_sequence }, report))
}

fn recover(
    options: JournalOptions,
    lock: DirectoryLock,
    survey: Survey,
) -> Result<(AppendPosition, RecoveryReport), JournalError> {
    let evaluation = evaluate(&survey, &options.environment, options.check)?;
    let synced_sequence = survey.synced_sequence();
    check_points(&options, &survey, &evaluation)?;
    let Evaluation { is_same_boot, good, kept, dropped, tail, frames_scanned } = evaluation;
    let newest = kept.last().expect("an evaluation keeps at least one segment");
    let (first_sequence, last_sequence) = (survey.segments[0].first_sequence, newest.last_sequence);
    let incarnation = newest.found.header.incarnation;
    let next_number = survey.segments.iter().map(|found| found.header.number).max().unwrap_or(0) + 1;
    let is_rewritten = is_same_boot && survey.segments.iter().any(|found| found.sync_failed);
    let mut synced_sequence = synced_sequence.min(last_sequence);

    let mut history = open_history(&options, incarnation, &kept)?;
    let repaired_marks = find_damaged_slots(&survey);
    let removed = remove_all(survey.leftovers)?;
    let mut removed_tail_files = survey.removed_tail_files;
    let mut cuts = Vec::new();
    // Newest first, so that an interruption leaves no gap.
    for found in dropped.iter().rev() {
        cuts.push(set_segment_aside(&options.directory, &found.path, found.first_sequence)?);
    }
    let (active, position, kept_tail) = restore_active(&options, newest, tail.as_ref())?;
    cuts.extend(kept_tail);
    cuts.reverse();
    removed_tail_files.extend(cuts.iter().cloned());

    let cut = tail.as_ref().map(|tail| RemovedTail {
        segment: newest.found.path.clone(),
        files: cuts,
        position: newest.position as u64,
        sequence: last_sequence + 1,
        reason: tail.reason,
        bytes: tail.bytes,
        frames: tail.frames,
        records: tail.records,
    });
    if let Some(cut) = &cut {
        tracing::warn!(%cut, "the journal's end was not whole");
    }

    let mut rolled = restore_older(&options, &kept, synced_sequence)?;
    if is_rewritten || !is_same_boot {
        let newest_frames = (active.file.clone(), newest.found.first_sequence, position as u64);
        sync_segments(&options, &rolled, newest_frames, is_rewritten)?;
        rolled.clear();
        synced_sequence = last_sequence;
    }
    let has_records = kept.iter().any(|kept| kept.segment_records != SegmentRecords::Empty);
    let is_all_synced = is_rewritten || !is_same_boot;
    let synced_position = match newest.found.synced {
        _ if is_all_synced && has_records => position as u64,
        Some(mark) if !is_all_synced => mark.second.min(position as u64),
        _ => 0,
    };
    let before_ns = last_ns(&options.directory, kept.iter().rev().nth(1))?;
    write_times_mark(&active, newest, (before_ns, 0));
    if !newest.found.has_final_name {
        give_final_name(&options, &active, newest.found.first_sequence)?;
    }
    let newest_sequence = newest.found.first_sequence;
    history.set(JournalHistory { newest_sequence, ..history.history() }, &options.environment)?;
    for kept in kept.iter().filter(|kept| kept.found.sync_failed) {
        clear_failed_mark(&options, &kept.found)?;
    }
    // The boot mark comes last: until then the marks count as those of the previous boot.
    active.write_mark(d::JOURNALED_MARK_OFFSET, position as u64, last_sequence);
    active.write_mark(d::SYNCED_MARK_OFFSET, synced_sequence, synced_position);
    let (low, high) = BootId::to_words(options.environment.boot_id);
    active.write_mark(d::BOOT_MARK_OFFSET, low, high);
    sync_directory(&options.directory)?;

    let report = RecoveryReport {
        is_new: false,
        is_same_boot,
        good_mark: (good.name, good.sequence),
        first_sequence,
        last_sequence,
        segments: kept.len(),
        frames_scanned,
        removed_tail: cut,
        is_rewritten,
        repaired_marks,
        removed,
        removed_tail_files,
    };
    let entries = kept.iter().map(|kept| SegmentEntry {
        first_sequence: kept.found.first_sequence,
        opened_ns: kept.found.opened_ns,
        length: kept.found.header.segment_length,
        segment_records: kept.segment_records,
    });
    let active = Arc::new(active);
    let list = SegmentList {
        entries: entries.collect(),
        active: active.clone(),
        prepared: None,
        rolled,
        unnamed: VecDeque::new(),
    };
    let (removed_tail_bytes, next) = (bytes_on_device(&report.removed_tail_files), (next_number, history));
    let shared = SharedJournal::new(
        options,
        incarnation,
        (last_sequence, synced_sequence),
        list,
        removed_tail_bytes,
        next,
        lock,
    );
    if has_records && !is_all_synced {
        // Relaxed: there are no other handles yet.
        shared.journaled_records.store(1, Ordering::Relaxed);
    }
    Ok((AppendPosition { shared: Arc::new(shared), active, position, last_sequence }, report))
}

fn find_damaged_slots(survey: &Survey) -> Vec<RepairedMark> {
    let is_here = |found: &&SurveyedSegment| found.archived.is_none();
    let damaged = |found: &SurveyedSegment| {
        Some(RepairedMark { segment: found.path.clone(), position: found.damaged_slot_position? })
    };
    let damaged: Vec<_> = survey.segments.iter().filter(is_here).filter_map(damaged).collect();
    for RepairedMark { segment, position } in &damaged {
        let segment = segment.display();
        tracing::warn!(%segment, position, "one slot of the journaled mark was damaged; the other is believed, and the mark written anew");
    }
    damaged
}

/// Segments that were scanned, are not completely on the device, have no final name, or have a damaged slot.
fn restore_older(
    options: &JournalOptions,
    kept: &[ValidSegment],
    synced_sequence: u64,
) -> Result<VecDeque<RolledSegment>, JournalError> {
    let mut rolled = VecDeque::new();
    for (i, segment) in kept[..kept.len() - 1].iter().enumerate() {
        let found = &segment.found;
        let is_scanned = segment.index.is_some();
        let has_unsynced = segment.last_sequence > synced_sequence
            || segment.last_sequence == synced_sequence && segment.segment_records != SegmentRecords::Empty;
        let is_mended = found.damaged_slot_position.is_some() && found.archived.is_none();
        if is_scanned || has_unsynced || is_mended || !found.has_final_name {
            let before_ns = last_ns(&options.directory, i.checked_sub(1).map(|before| &kept[before]))?;
            let restored = restore_sealed(options, segment, before_ns)?;
            rolled.push_back(RolledSegment {
                file: restored.file.clone(),
                segment: None,
                first_sequence: found.first_sequence,
                last_sequence: segment.last_sequence,
                end: segment.position as u64,
                sealed_ns: found.opened_ns,
            });
        }
    }
    Ok(rolled)
}

/// Rewrites the frames first if a failed fdatasync may have dropped them from the cache. `newest`: file, first sequence
/// and end of the active segment.
fn sync_segments(
    options: &JournalOptions,
    rolled: &VecDeque<RolledSegment>,
    newest: (Arc<File>, u64, u64),
    is_rewritten: bool,
) -> Result<(), JournalError> {
    let frames_of = |rolled: &RolledSegment| (rolled.file.clone(), rolled.first_sequence, rolled.end);
    for (file, first_sequence, end) in rolled.iter().map(frames_of).chain([newest]) {
        let path = options.directory.join(d::segment_name(first_sequence));
        if is_rewritten {
            rewrite(&file, d::HEADER_PAGE_LENGTH as u64, end)
                .map_err(|error| JournalError::io("write again", &path, error))?;
        }
        let asked = options.environment.check_disk(DiskOperation::Sync);
        asked.and_then(|()| file.sync_data()).map_err(|source| JournalError::SyncFailed { segment: path, source })?;
    }
    Ok(())
}

/// Recovery truncates no frame that a point needs.
fn check_points(options: &JournalOptions, survey: &Survey, evaluation: &Evaluation) -> Result<(), JournalError> {
    let mut environment = options.environment.clone();
    if survey.segments.iter().any(|found| found.damaged_slot_position.is_some()) {
        // Finds frames without the mark, as on another boot.
        environment.boot_id = None;
    }
    let reader = JournalReader::of(&options.directory, &environment, survey);
    let expected = (reader.stream_id(), reader.incarnation());
    let newest = evaluation.kept.last().expect("an evaluation keeps at least one segment");
    for point in &options.points {
        if let Some(found) = point.identity.filter(|found| *found != expected) {
            return Err(point.refuse(&newest.found.path, PointFault::Identity { found, expected }));
        }
        if point.sequence > newest.last_sequence {
            let (last_sequence, is_damaged) = (newest.last_sequence, evaluation.tail.is_some());
            return Err(point.refuse(&newest.found.path, PointFault::Ahead { last_sequence, is_damaged }));
        }
        reader.check_time(point)?;
    }
    Ok(())
}

/// Removes segments that are about to be truncated from the history; recreates a missing one.
fn open_history(
    options: &JournalOptions,
    incarnation: u64,
    kept: &[ValidSegment],
) -> Result<HistoryFile, JournalError> {
    let (oldest, newest) = (kept[0].found.first_sequence, kept[kept.len() - 1].found.first_sequence);
    let Some(mut file) = HistoryFile::open(&options.directory)? else {
        tracing::warn!(directory = %options.directory.display(), "the journal's file `history` is made anew from its segments");
        let (stream_id, first_sequence, newest_sequence) = (options.stream_id, oldest, newest);
        let history = JournalHistory { stream_id, incarnation, replaced: 0, first_sequence, newest_sequence };
        return HistoryFile::create(&options.directory, history);
    };
    let history = file.history();
    let newest_sequence = history.newest_sequence.min(newest);
    file.set(JournalHistory { newest_sequence, ..history }, &options.environment)?;
    Ok(file)
}

/// Opens the newest segment for writing and cuts the bytes after the journal's end. Returns the file that keeps them,
/// if any.
fn restore_active(
    options: &JournalOptions,
    newest: &ValidSegment,
    tail: Option<&InvalidTail>,
) -> Result<(Segment, usize, Option<PathBuf>), JournalError> {
    let found = &newest.found;
    let file = open_for_writing(newest)?;
    let mut position = newest.position;
    let mut kept_tail = None;
    if let Some(tail) = tail.filter(|tail| tail.nonzero_end > position as u64) {
        if fault::mutant("skip_truncation") {
            position = (tail.nonzero_end as usize).next_multiple_of(gapless_wire::MESSAGE_ALIGNMENT);
        } else {
            let range = (position as u64, tail.nonzero_end);
            kept_tail = Some(copy_tail(&options.directory, &file, found.first_sequence, range)?);
            // These bytes could reappear as frames after newer ones.
            write_zeros(&file, position as u64, tail.nonzero_end)
                .and_then(|()| file.sync_data())
                .map_err(|error| JournalError::io("cut", &found.path, error))?;
        }
    }
    let header = admit_longer_frames(options, found, &file)?;
    let segment = Segment::map(found.path.clone(), file, header, options.flush)?;
    rebuild_index(&segment, newest);
    write_records_mark(&segment, newest);
    Ok((segment, position, kept_tail))
}

/// Raises the frame limit in the header of the active segment to that of the options: to a reader, a frame above the
/// header's limit is damage.
fn admit_longer_frames(
    options: &JournalOptions,
    found: &SurveyedSegment,
    file: &File,
) -> Result<d::FixedHeader, JournalError> {
    let frame_length_max = found.header.frame_length_max.max(options.frame_length_max as u32);
    let header = d::FixedHeader { frame_length_max, ..found.header };
    if header != found.header {
        file.write_all_at(&header.to_bytes(), 0)
            .and_then(|()| file.sync_data())
            .map_err(|error| JournalError::io("write", &found.path, error))?;
    }
    Ok(header)
}

fn restore_sealed(options: &JournalOptions, kept: &ValidSegment, before_ns: u64) -> Result<Segment, JournalError> {
    let found = &kept.found;
    let segment = Segment::map(found.path.clone(), open_for_writing(kept)?, found.header, options.flush)?;
    rebuild_index(&segment, kept);
    write_records_mark(&segment, kept);
    segment.write_mark(d::JOURNALED_MARK_OFFSET, kept.position as u64 | d::SEALED_BIT, kept.last_sequence);
    write_times_mark(&segment, kept, (before_ns, kept.last_timestamp_ns));
    if !found.has_final_name {
        give_final_name(options, &segment, found.first_sequence)?;
    }
    Ok(segment)
}

fn open_for_writing(kept: &ValidSegment) -> Result<File, JournalError> {
    let (path, length) = (&kept.found.path, kept.found.header.segment_length);
    let file = open_to_write(path)?;
    if kept.found.file_length < length {
        match allocate(&file, length) {
            Ok(true) => {}
            Ok(false) => write_zeros(&file, kept.found.file_length, length)
                .map_err(|error| JournalError::allocation(path, length, error))?,
            Err(error) => return Err(JournalError::allocation(path, length, error)),
        }
    }
    Ok(file)
}

fn rebuild_index(segment: &Segment, kept: &ValidSegment) {
    if let Some(entries) = &kept.index {
        let words = segment.index();
        index::clear_from(words, 0);
        for &(slot, sequence, position) in entries {
            index::record(words, slot, sequence, position);
        }
    }
}

fn write_records_mark(segment: &Segment, kept: &ValidSegment) {
    if kept.segment_records != kept.found.segment_records {
        let (first, second) = kept.segment_records.to_words();
        segment.write_mark(d::RECORDS_MARK_OFFSET, first, second);
    }
}

/// 0 without a segment. The mark lacks it if the writer died before naming the next segment.
fn last_ns(directory: &Path, kept: Option<&ValidSegment>) -> Result<u64, JournalError> {
    match kept {
        Some(kept) if kept.last_timestamp_ns == 0 => {
            let first_sequence = kept.found.first_sequence;
            write_last_time(&directory.join(d::segment_name(first_sequence)), first_sequence, kept.last_sequence)
        }
        Some(kept) => Ok(kept.last_timestamp_ns),
        None => Ok(0),
    }
}

fn write_times_mark(segment: &Segment, kept: &ValidSegment, (before_ns, last_ns): (u64, u64)) {
    let noted = kept.found.times_ns;
    let times_ns = (if noted.0 == 0 { before_ns } else { noted.0 }, last_ns);
    if times_ns != noted {
        segment.write_mark(d::TIMES_MARK_OFFSET, times_ns.0, times_ns.1);
    }
}

/// Rewrites frames, because after a failed fdatasync the kernel may consider them written.
fn rewrite(file: &File, from: u64, to: u64) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut position = from;
    while position < to {
        let piece = buffer.len().min((to - position) as usize);
        file.read_exact_at(&mut buffer[..piece], position)?;
        file.write_all_at(&buffer[..piece], position)?;
        position += piece as u64;
    }
    Ok(())
}

/// Clears the mark of a failed sync; call it once the frames are on the device.
fn clear_failed_mark(options: &JournalOptions, found: &SurveyedSegment) -> Result<(), JournalError> {
    let path = options.directory.join(d::segment_name(found.first_sequence));
    let file = open_to_write(&path)?;
    Segment::map(path, file, found.header, Flush::Write)?.write_mark(d::FAILED_MARK_OFFSET, 0, 0);
    Ok(())
}

fn give_final_name(options: &JournalOptions, segment: &Segment, first_sequence: u64) -> Result<(), JournalError> {
    let (from, to) = (segment.path(), options.directory.join(d::segment_name(first_sequence)));
    let synced = segment.sync_header();
    synced.map_err(|source| JournalError::SyncFailed { segment: from.clone(), source })?;
    checked_file::rename(&from, &to).map_err(|error| JournalError::io("rename", &from, error))?;
    segment.set_path(to);
    sync_directory(&options.directory)
}

fn remove_all(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, JournalError> {
    for path in &paths {
        checked_file::remove(path).map_err(|error| JournalError::io("remove", path, error))?;
    }
    Ok(paths)
}

pub(crate) fn draw_incarnation(directory: &Path) -> Result<u64, JournalError> {
    let mut bytes = [0u8; 8];
    gapless_agent::random::fill(&mut bytes)
        .map_err(|error| JournalError::io("draw random bytes for", directory, error))?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    #[test]
    fn rewrite_covers_exact_range() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("frames");
        let bytes: Vec<u8> = (0..(5_u32 << 20) / 2).map(|i| (i % 251) as u8).collect();
        for (from, to) in [(0, bytes.len()), (8, bytes.len()), (4096, 8192), (4096, 4096)] {
            std::fs::write(&path, &bytes).unwrap();
            // On Linux, positioned writes to an append-mode file are appended: this shows the written bytes.
            let file = OpenOptions::new().read(true).append(true).open(&path).unwrap();
            rewrite(&file, from as u64, to as u64).unwrap();
            assert!(std::fs::read(&path).unwrap()[bytes.len()..] == bytes[from..to], "{from}..{to}");
        }
    }
}
