//! Decides which bytes of the surveyed segments belong to the journal (decision 7). Only reads; `recovery` acts on the
//! result.

use std::fs::File;

use gapless_agent::checked_file;
use gapless_wire::Frame;

use crate::descriptor::{self as d, INDEX_STRIDE};
use crate::directory::{Survey, SurveyedSegment};
use crate::error::{FrameFault, JournalError, MarkName};
use crate::index;
use crate::mapping::FileMapping;
use crate::options::{JournalEnvironment, RecoveryCheck};
use crate::records::{SegmentRecords, is_checkpoint};
use crate::scan::{self, ScanEnd};
use crate::segment::end_of_nonzero;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoodMark {
    pub(crate) name: MarkName,
    pub(crate) sequence: u64,
    /// Everything before this position in the segment with this first sequence is vouched for too, records included,
    /// and all older segments.
    pub(crate) position: Option<(u64, u64)>,
}

impl GoodMark {
    /// Before it every byte of `found` must belong to a frame or a record.
    pub(crate) fn vouched_end(&self, found: &SurveyedSegment) -> u64 {
        let is_before = |(first_sequence, _)| found.first_sequence < first_sequence;
        let is_all_good =
            found.journaled.is_some_and(|mark| mark.second < self.sequence) || self.position.is_some_and(is_before);
        let sealed_end = found.journaled_position().filter(|_| found.is_sealed() && is_all_good).unwrap_or(0);
        match self.position {
            Some((first_sequence, position)) if found.first_sequence == first_sequence => position.max(sealed_end),
            _ => sealed_end,
        }
    }
}

#[derive(Debug)]
pub(crate) struct ValidSegment {
    pub(crate) found: SurveyedSegment,
    pub(crate) last_sequence: u64,
    pub(crate) position: usize,
    /// Rebuilt if the segment was scanned: slot, sequence, position.
    pub(crate) index: Option<Vec<(usize, u64, usize)>>,
    pub(crate) segment_records: SegmentRecords,
    /// Time stamp of the last frame, or of the frame before the first in an empty segment; 0 if unknown.
    pub(crate) last_timestamp_ns: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct InvalidTail {
    pub(crate) reason: FrameFault,
    pub(crate) nonzero_end: u64,
    pub(crate) bytes: u64,
    pub(crate) frames: u64,
    pub(crate) records: u64,
}

#[derive(Debug)]
pub(crate) struct Evaluation {
    pub(crate) is_same_boot: bool,
    pub(crate) good: GoodMark,
    /// At least one; the last becomes the active one.
    pub(crate) kept: Vec<ValidSegment>,
    /// Oldest first.
    pub(crate) dropped: Vec<SurveyedSegment>,
    pub(crate) tail: Option<InvalidTail>,
    pub(crate) frames_scanned: u64,
}

/// At least one segment. The caller holds the lock.
pub(crate) fn evaluate(
    survey: &Survey,
    environment: &JournalEnvironment,
    check: RecoveryCheck,
) -> Result<Evaluation, JournalError> {
    let segments = &survey.segments;
    let newest = segments.last().expect("the caller has found a segment");
    if let (Some(_), Some(mark)) = (&newest.archived, newest.journaled) {
        // A segment is archived only after its successor is in use.
        return Err(JournalError::SuccessorMissing { segment: newest.path.clone(), sequence: mark.second + 1 });
    }
    let is_same_boot = survey.is_same_boot(environment.boot_id);
    let good = good_mark(survey, newest, is_same_boot)?;
    let mut kept: Vec<ValidSegment> = Vec::with_capacity(segments.len());
    let mut frames_scanned = 0;
    for (i, found) in segments.iter().enumerate() {
        if let Some(before) = kept.last() {
            check_times(before, found)?;
        }
        let judged = evaluate_segment(found, segments.get(i + 1), good, is_same_boot, check)?;
        frames_scanned += judged.frames_scanned;
        kept.push(judged.kept);
        let Some(fault) = judged.fault else { continue };
        let dropped = segments[i + 1..].to_vec();
        let last = kept.last().expect("pushed above");
        let tail = tail_after(last, fault, &dropped)?;
        return Ok(Evaluation { is_same_boot, good, kept, dropped, tail, frames_scanned });
    }
    unreachable!("the newest segment is always scanned to its end, which is a fault")
}

pub(crate) fn good_mark(
    survey: &Survey,
    newest: &SurveyedSegment,
    is_same_boot: bool,
) -> Result<GoodMark, JournalError> {
    let damaged = |found: &SurveyedSegment, mark, position: usize| {
        Err(JournalError::MarkDamaged { segment: found.path.clone(), position: position as u64, mark })
    };
    if newest.boot.is_none() {
        let (segment, position) = (newest.path.clone(), d::BOOT_MARK_OFFSET as u64);
        let reason = "both slots of the boot mark fail their checksum".to_owned();
        return Err(JournalError::HeaderDamaged { segment, position, reason });
    }
    if is_same_boot {
        let Some(mark) = newest.journaled else {
            return damaged(newest, MarkName::Journaled, d::JOURNALED_MARK_OFFSET);
        };
        if newest.is_sealed() {
            let (segment, sequence) = (newest.path.clone(), mark.second + 1);
            return Err(JournalError::SuccessorMissing { segment, sequence });
        }
        let position = Some((newest.first_sequence, mark.first));
        return Ok(GoodMark { name: MarkName::Journaled, sequence: mark.second, position });
    }
    match survey.segments.iter().find(|found| found.synced.is_none()) {
        Some(found) => damaged(found, MarkName::Synced, d::SYNCED_MARK_OFFSET),
        None => Ok(GoodMark {
            name: MarkName::Synced,
            sequence: survey.synced_sequence(),
            position: survey.synced_position(),
        }),
    }
}

struct SegmentEvaluation {
    kept: ValidSegment,
    /// Reason for the end of the journal in this segment; `None` if it continues in the next.
    fault: Option<FrameFault>,
    frames_scanned: u64,
}

fn evaluate_segment(
    found: &SurveyedSegment,
    next: Option<&SurveyedSegment>,
    good: GoodMark,
    is_same_boot: bool,
    check: RecoveryCheck,
) -> Result<SegmentEvaluation, JournalError> {
    let expected_last = next.map(|next| next.first_sequence - 1);
    let may_lose_next = !is_same_boot && next.is_some_and(|next| good.sequence < next.first_sequence);
    let must_hold = match expected_last {
        Some(last) => last.min(good.sequence),
        None => good.sequence,
    };
    if let (Some(mark), Some(next), Some(expected_last)) = (found.journaled, next, expected_last) {
        // Records after the last vouched frame count only up to the mark's position.
        let has_synced_end =
            found.segment_records == SegmentRecords::Empty || good.vouched_end(found) >= mark.first & !d::SEALED_BIT;
        let is_vouched_for = found.is_sealed() && (is_same_boot || mark.second <= good.sequence && has_synced_end);
        if found.is_sealed() && mark.second > expected_last {
            return Err(duplicate(found, next));
        }
        // A power failure may lose a segment that was never synced, and the later ones, which have no final names yet.
        let must_follow = next.has_final_name || !may_lose_next;
        if found.is_sealed() && mark.second < expected_last && must_follow {
            return Err(gap(found, next, mark.second));
        }
        // Archiving has read it; its readers check it again.
        let is_trusted = check == RecoveryCheck::Tail || found.archived.is_some();
        let position = mark.first & !d::SEALED_BIT;
        let is_there = found.file_length >= position;
        if is_vouched_for && mark.second == expected_last && is_trusted && is_there && has_index(found)? {
            let kept = ValidSegment {
                found: found.clone(),
                last_sequence: mark.second,
                position: position as usize,
                index: None,
                segment_records: found.segment_records,
                last_timestamp_ns: found.times_ns.1,
            };
            return Ok(SegmentEvaluation { kept, fault: None, frames_scanned: 0 });
        }
    }
    if found.archived.is_some() {
        let reason = "it is archived, and no mark on the device vouches for it".to_owned();
        let (segment, position) = (found.path.clone(), d::SYNCED_MARK_OFFSET as u64);
        return Err(JournalError::HeaderDamaged { segment, position, reason });
    }
    let (end, entries) = scan_segment(found)?;
    if end.last_sequence < must_hold {
        return Err(corrupt(found, end.position as u64, end.last_sequence + 1, end.fault, good));
    }
    // Zeros at the end show that the mark is wrong, not that a frame is damaged.
    let is_short = (end.position as u64) < good.vouched_end(found) && end.fault != FrameFault::Empty;
    // After a crash during a roll no mark has the end of the segment's records: only zeros may follow.
    let is_unsealed_end = is_same_boot && next.is_some() && !found.is_sealed();
    let is_rubbish = !matches!(end.fault, FrameFault::Empty | FrameFault::EndOfFile { .. });
    if is_short || is_unsealed_end && is_rubbish && expected_last == Some(end.last_sequence) {
        return Err(corrupt(found, end.position as u64, end.last_sequence + 1, end.fault, good));
    }
    if (end.position as u64) < good.vouched_end(found) || is_same_boot && next.is_none() {
        check_mark_position(found, &entries.at_mark, good)?;
    }
    let is_whole = !found.is_sealed() || end.position as u64 >= found.journaled_position().unwrap_or(0);
    let fault = match (expected_last, next) {
        (Some(expected), Some(next)) if end.last_sequence > expected => return Err(duplicate(found, next)),
        // Missing records after the last frame end the journal too.
        (Some(expected), _) if end.last_sequence == expected && is_whole => None,
        _ => Some(end.fault),
    };
    let frames_scanned = end.last_sequence + 1 - found.first_sequence;
    let kept = ValidSegment {
        found: found.clone(),
        last_sequence: end.last_sequence,
        position: end.position,
        index: Some(entries.index),
        segment_records: entries.segment_records,
        last_timestamp_ns: entries.last_timestamp_ns,
    };
    Ok(SegmentEvaluation { kept, fault, frames_scanned })
}

struct SegmentScan {
    index: Vec<(usize, u64, usize)>,
    /// End of the last journaled frame, or of the last record covered by the journaled mark.
    at_mark: Option<u64>,
    segment_records: SegmentRecords,
    last_timestamp_ns: u64,
}

fn scan_segment(found: &SurveyedSegment) -> Result<(ScanEnd, SegmentScan), JournalError> {
    let header = &found.header;
    let frames_offset = header.frames_offset as usize;
    let mapping = map(found, header.segment_length)?;
    let mark_sequence = found.journaled.map_or(0, |mark| mark.second);
    let mark_position = found.journaled_position().unwrap_or(0);
    let mut scanned = SegmentScan {
        index: Vec::new(),
        at_mark: (mark_sequence + 1 == found.first_sequence).then_some(header.frames_offset),
        segment_records: SegmentRecords::Empty,
        last_timestamp_ns: found.times_ns.0,
    };
    let mut next_slot_position = frames_offset;
    // SAFETY: the journal's lock is held by the caller and nothing is written during recovery.
    #[allow(unsafe_code)]
    let bytes = unsafe { mapping.bytes(0..mapping.length()) };
    mapping.read_ahead(0..mapping.length().min(found.journaled_position().unwrap_or(0) as usize));
    let each = |frame: &Frame<'_>, sequence, start: usize, end: usize| {
        if scan::is_record(frame) {
            scanned.segment_records = scanned.segment_records.with(is_checkpoint(frame), start as u64, sequence);
        } else {
            scanned.last_timestamp_ns = frame.timestamp_ns();
        }
        if !scan::is_record(frame) && start >= next_slot_position {
            let slot = index::slot_of(start, frames_offset);
            scanned.index.push((slot, sequence, start));
            next_slot_position = frames_offset + (slot + 1) * INDEX_STRIDE;
        }
        if sequence == mark_sequence && (!scan::is_record(frame) || end as u64 <= mark_position) {
            scanned.at_mark = Some(end as u64);
        }
    };
    let mut end = scan::scan(bytes, frames_offset, found.first_sequence, header.frame_length_max as usize, each);
    let is_cut = found.file_length < header.segment_length;
    if is_cut && matches!(end.fault, FrameFault::Empty | FrameFault::Frame(gapless_wire::FrameError::Truncated { .. }))
    {
        end.fault = FrameFault::EndOfFile { file_bytes: found.file_length };
    }
    Ok((end, scanned))
}

fn check_mark_position(found: &SurveyedSegment, at_mark: &Option<u64>, good: GoodMark) -> Result<(), JournalError> {
    let expected = good.vouched_end(found);
    match *at_mark {
        Some(position) if position == expected => Ok(()),
        position => {
            let found_position = position.unwrap_or(found.header.frames_offset);
            let reason = FrameFault::MarkDisagrees { sequence: good.sequence, expected, found: found_position };
            Err(corrupt(found, found_position, good.sequence, reason, good))
        }
    }
}

fn tail_after(
    last: &ValidSegment,
    reason: FrameFault,
    dropped: &[SurveyedSegment],
) -> Result<Option<InvalidTail>, JournalError> {
    let found = &last.found;
    let file = open(found)?;
    let (from, to) = (last.position as u64, found.file_length.min(found.header.segment_length));
    let nonzero_end =
        end_of_nonzero(&file, from, to).map_err(|error| JournalError::io("read", &found.path, error))?.unwrap_or(from);
    let mut tail = InvalidTail { reason, nonzero_end, bytes: nonzero_end - from, frames: 0, records: 0 };
    if tail.bytes > 0 {
        let mapping = map(found, nonzero_end.next_multiple_of(8))?;
        // SAFETY: as in `scan_segment`.
        #[allow(unsafe_code)]
        let bytes = unsafe { mapping.bytes(last.position..mapping.length()) };
        (tail.frames, tail.records) = scan::count_intact(bytes, last.last_sequence);
    }
    for found in dropped {
        if let (Some(mark), Some(position)) = (found.journaled, found.journaled_position()) {
            tail.bytes += position.saturating_sub(found.header.frames_offset);
            tail.frames += (mark.second + 1).saturating_sub(found.first_sequence);
        }
    }
    let is_clean = tail.bytes == 0 && dropped.is_empty() && reason == FrameFault::Empty;
    Ok((!is_clean).then_some(tail))
}

fn has_index(found: &SurveyedSegment) -> Result<bool, JournalError> {
    let mapping = map(found, found.header.frames_offset)?;
    let words = mapping.words(d::INDEX_OFFSET, d::index_entries(found.header.segment_length) * 2);
    Ok(index::is_begun(words, found.first_sequence, found.header.frames_offset as usize))
}

fn open(found: &SurveyedSegment) -> Result<File, JournalError> {
    checked_file::open(&found.path).map_err(|error| JournalError::io("open", &found.path, error))
}

fn map(found: &SurveyedSegment, length: u64) -> Result<FileMapping, JournalError> {
    let length = length.min(found.file_length) as usize;
    FileMapping::read_only(&open(found)?, length).map_err(|error| JournalError::io("map", &found.path, error))
}

/// Neighbours have the same time stamp for the frame between them.
pub(crate) fn check_times(before: &ValidSegment, after: &SurveyedSegment) -> Result<(), JournalError> {
    let (before_ns, after_ns) = (before.last_timestamp_ns, after.times_ns.0);
    if before.last_sequence + 1 != after.first_sequence || [before_ns, after_ns].contains(&0) || before_ns == after_ns {
        return Ok(());
    }
    let (sequence, before, after) = (before.last_sequence, before.found.path.clone(), after.path.clone());
    Err(JournalError::OtherTimes { before, after, sequence, before_ns, after_ns })
}

fn gap(before: &SurveyedSegment, after: &SurveyedSegment, last_before: u64) -> JournalError {
    JournalError::Gap {
        before: before.path.clone(),
        after: after.path.clone(),
        missing_from: last_before + 1,
        missing_to: after.first_sequence - 1,
    }
}

fn duplicate(first: &SurveyedSegment, second: &SurveyedSegment) -> JournalError {
    let (sequence, first, second) = (second.first_sequence, first.path.clone(), second.path.clone());
    JournalError::Duplicate { first, second, sequence }
}

fn corrupt(found: &SurveyedSegment, position: u64, sequence: u64, reason: FrameFault, good: GoodMark) -> JournalError {
    JournalError::Corrupt {
        segment: found.path.clone(),
        position,
        sequence,
        reason,
        mark: good.name,
        mark_sequence: good.sequence,
    }
}
