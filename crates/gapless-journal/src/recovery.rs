//! Opening a journal: makes the first segment, or recovers what is there by decision D7.
//!
//! `evaluation` judges; this module acts on it: cuts, cleans, moves the marks. Every step leaves a
//! directory that recovers to the same end if the process dies behind it.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gapless_agent::fault;

use crate::boot::BootId;
use crate::descriptor as d;
use crate::directory::{DirectoryLock, Found, Survey, survey, sync_directory};
use crate::disk::DiskWork;
use crate::error::{FrameFault, JournalError, MarkName};
use crate::evaluation::{Evaluation, Kept, Tail, evaluate};
use crate::index;
use crate::options::{Flush, JournalOptions};
use crate::records::Held;
use crate::segment::{Preparation, Segment, allocate, write_zeros};
use crate::shared::{Entry, Rolled, Shared, State};

/// What recovery found and did.
#[derive(Clone, Debug)]
pub struct RecoveryReport {
    /// Whether the journal was made now.
    pub is_new: bool,
    /// Whether the journal was last written on this boot of this machine.
    pub is_same_boot: bool,
    /// The mark that was good, and the sequence up to which it vouches for every frame.
    pub good_mark: (MarkName, u64),
    /// The first sequence that the journal holds.
    pub first_sequence: u64,
    /// The last sequence that the journal holds; one before the first where there is none.
    pub last_sequence: u64,
    /// How many segments there are.
    pub segments: usize,
    /// How many frames were checked.
    pub frames_scanned: u64,
    /// What was cut from the end; `None` if nothing was.
    pub cut: Option<Cut>,
    /// Whether the process before had a failed fdatasync, so that its frames were written again.
    pub is_rewritten: bool,
    /// Files that were removed: segments behind the cut, and such as were never used.
    pub removed: Vec<PathBuf>,
}

/// What recovery cut from the end of a journal: nothing that a good mark vouched for.
#[derive(Clone, Debug)]
pub struct Cut {
    /// In which segment.
    pub segment: PathBuf,
    /// Where the first bad frame began.
    pub position: u64,
    /// The sequence that belonged there.
    pub sequence: u64,
    /// What was wrong with it.
    pub reason: FrameFault,
    /// How many bytes were cut, up to the last that was not zero.
    pub bytes: u64,
    /// How many intact frames were cut with it.
    pub frames: u64,
    /// How many intact records of consensus were cut with it.
    pub records: u64,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { segment, position, sequence, reason, bytes, frames, records } = self;
        let segment = segment.display();
        write!(f, "{bytes} bytes from byte {position} of {segment} cut, {frames} intact frames ")?;
        if *records > 0 {
            write!(f, "and {records} intact records ")?;
        }
        write!(f, "among them: sequence {sequence} was expected there, but {reason}")
    }
}

/// What a writer stands on.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) shared: Arc<Shared>,
    pub(crate) active: Arc<Segment>,
    pub(crate) position: usize,
    pub(crate) last_sequence: u64,
}

/// Opens the journal of a directory.
pub(crate) fn open(options: JournalOptions) -> Result<(Recovered, RecoveryReport), JournalError> {
    let directory = &options.directory;
    std::fs::create_dir_all(directory).map_err(|error| JournalError::io("create", directory, error))?;
    let lock = DirectoryLock::take(directory)?;
    let survey = survey(directory, Some(options.stream_id))?;
    if survey.segments.is_empty() { create(options, lock, survey) } else { recover(options, lock, survey) }
}

/// Makes the first segment.
fn create(
    options: JournalOptions,
    lock: DirectoryLock,
    survey: Survey,
) -> Result<(Recovered, RecoveryReport), JournalError> {
    let removed = remove_all(survey.leftovers)?;
    let incarnation = draw_incarnation(&options)?;
    let first_sequence = options.first_sequence;
    let header = d::FixedHeader {
        stream_id: options.stream_id,
        incarnation,
        number: 1,
        segment_length: options.segment_length_bytes,
        frames_offset: d::frames_offset(options.segment_length_bytes),
        frame_length_max: options.frame_length_max as u32,
    };
    let mut preparation = Preparation::begin(&options, header)?;
    while !preparation.step()? {}
    let segment = preparation.finish(options.flush, options.environment.boot_id)?;
    let opened_ns = (options.environment.epoch_ns)();
    segment.open_for(first_sequence, opened_ns);
    settle(&options, &segment, first_sequence)?;
    let report = RecoveryReport {
        is_new: true,
        is_same_boot: true,
        good_mark: (MarkName::Journaled, first_sequence - 1),
        first_sequence,
        last_sequence: first_sequence - 1,
        segments: 1,
        frames_scanned: 0,
        cut: None,
        is_rewritten: false,
        removed,
    };
    let active = Arc::new(segment);
    let entry = Entry { first_sequence, opened_ns, length: header.segment_length, held: Held::Nothing };
    let state = State {
        entries: VecDeque::from([entry]),
        active: active.clone(),
        prepared: None,
        rolled: VecDeque::new(),
        unsettled: VecDeque::new(),
    };
    let last_sequence = first_sequence - 1;
    let shared = Shared::new(options, incarnation, (last_sequence, last_sequence), state, 2, lock);
    let position = header.frames_offset as usize;
    Ok((Recovered { shared: Arc::new(shared), active, position, last_sequence }, report))
}

/// Recovers what is there.
fn recover(
    options: JournalOptions,
    lock: DirectoryLock,
    survey: Survey,
) -> Result<(Recovered, RecoveryReport), JournalError> {
    let evaluation = evaluate(&survey, &options.environment, options.check)?;
    let synced_sequence = survey.synced_sequence();
    let Evaluation { is_same_boot, good, kept, dropped, tail, frames_scanned } = evaluation;
    let newest = kept.last().expect("an evaluation keeps at least one segment");
    let (first_sequence, last_sequence) = (survey.segments[0].first_sequence, newest.last_sequence);
    let incarnation = newest.found.header.incarnation;
    let next_number = survey.segments.iter().map(|found| found.header.number).max().unwrap_or(0) + 1;
    let is_rewritten = is_same_boot && survey.segments.iter().any(|found| found.sync_failed);
    let mut synced_sequence = synced_sequence.min(last_sequence);

    let mut removed = remove_all(survey.leftovers)?;
    // From the newest on, so that no gap arises if this is interrupted.
    removed.extend(remove_all(dropped.into_iter().rev().map(|found| found.path).collect())?);

    let cut = tail.as_ref().map(|tail| Cut {
        segment: newest.found.path.clone(),
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
    let (active, position) = restore_active(&options, newest, tail.as_ref())?;

    let mut rolled = VecDeque::new();
    for segment in &kept[..kept.len() - 1] {
        let found = &segment.found;
        let is_scanned = segment.index.is_some();
        let has_unsynced = segment.last_sequence > synced_sequence
            || segment.last_sequence == synced_sequence && segment.held != Held::Nothing;
        if is_scanned || has_unsynced || !found.is_settled {
            let restored = restore_sealed(&options, segment)?;
            rolled.push_back(Rolled {
                file: restored.file.clone(),
                segment: None,
                first_sequence: found.first_sequence,
                last_sequence: segment.last_sequence,
                end: segment.position as u64,
                sealed_ns: found.opened_ns,
            });
        }
    }
    if is_rewritten || !is_same_boot {
        let frames_of = |rolled: &Rolled| (rolled.file.clone(), rolled.first_sequence, rolled.end);
        let newest_frames = (active.file.clone(), newest.found.first_sequence, position as u64);
        for (file, first_sequence, end) in rolled.iter().map(frames_of).chain([newest_frames]) {
            let path = options.directory.join(d::segment_name(first_sequence));
            if is_rewritten {
                rewrite(&file, d::HEADER_PAGE_LENGTH as u64, end)
                    .map_err(|error| JournalError::io("write again", &path, error))?;
            }
            let asked = options.environment.ask(DiskWork::Sync);
            asked
                .and_then(|()| file.sync_data())
                .map_err(|source| JournalError::SyncFailed { segment: path, source })?;
        }
        rolled.clear();
        synced_sequence = last_sequence;
    }
    let holds_records = kept.iter().any(|kept| kept.held != Held::Nothing);
    let is_all_synced = is_rewritten || !is_same_boot;
    let synced_position = match newest.found.synced {
        _ if is_all_synced && holds_records => position as u64,
        Some(mark) if !is_all_synced => mark.second.min(position as u64),
        _ => 0,
    };
    if !newest.found.is_settled {
        settle(&options, &active, newest.found.first_sequence)?;
    }
    for segment in survey.segments.iter().filter(|found| found.sync_failed) {
        clear_failed_mark(&options, segment)?;
    }
    // The boot mark is last: until then the marks are judged as those of the boot before.
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
        cut,
        is_rewritten,
        removed,
    };
    let entries = kept.iter().map(|kept| Entry {
        first_sequence: kept.found.first_sequence,
        opened_ns: kept.found.opened_ns,
        length: kept.found.header.segment_length,
        held: kept.held,
    });
    let active = Arc::new(active);
    let state = State {
        entries: entries.collect(),
        active: active.clone(),
        prepared: None,
        rolled,
        unsettled: VecDeque::new(),
    };
    let shared = Shared::new(options, incarnation, (last_sequence, synced_sequence), state, next_number, lock);
    if holds_records && !is_all_synced {
        // Relaxed: nobody else has a handle yet.
        shared.journaled_records.store(1, Ordering::Relaxed);
    }
    Ok((Recovered { shared: Arc::new(shared), active, position, last_sequence }, report))
}

/// Opens the newest segment for writing and takes away what does not belong to the journal.
fn restore_active(
    options: &JournalOptions,
    newest: &Kept,
    tail: Option<&Tail>,
) -> Result<(Segment, usize), JournalError> {
    let found = &newest.found;
    let file = open_for_writing(newest)?;
    let mut position = newest.position;
    if let Some(tail) = tail.filter(|tail| tail.nonzero_end > position as u64) {
        if fault::mutant("skip_truncation") {
            position = (tail.nonzero_end as usize).next_multiple_of(gapless_wire::MESSAGE_ALIGNMENT);
        } else {
            // Else these bytes could come back as frames, behind others that are written before them.
            write_zeros(&file, position as u64, tail.nonzero_end)
                .and_then(|()| file.sync_data())
                .map_err(|error| JournalError::io("cut", &found.path, error))?;
        }
    }
    let header = admit_longer_frames(options, found, &file)?;
    let segment = Segment::map(found.path.clone(), file, header, options.flush)?;
    rebuild_index(&segment, newest);
    note_held(&segment, newest);
    Ok((segment, position))
}

/// Raises the limit in the header of the segment that takes the next frames to that of the options: a frame above
/// the header's limit would be damage to whoever reads it.
fn admit_longer_frames(options: &JournalOptions, found: &Found, file: &File) -> Result<d::FixedHeader, JournalError> {
    let frame_length_max = found.header.frame_length_max.max(options.frame_length_max as u32);
    let header = d::FixedHeader { frame_length_max, ..found.header };
    if header != found.header {
        file.write_all_at(&header.to_bytes(), 0)
            .and_then(|()| file.sync_data())
            .map_err(|error| JournalError::io("write", &found.path, error))?;
    }
    Ok(header)
}

/// Opens an older segment that recovery has scanned, or that is not on the device yet.
fn restore_sealed(options: &JournalOptions, kept: &Kept) -> Result<Segment, JournalError> {
    let found = &kept.found;
    let segment = Segment::map(found.path.clone(), open_for_writing(kept)?, found.header, options.flush)?;
    rebuild_index(&segment, kept);
    note_held(&segment, kept);
    segment.write_mark(d::JOURNALED_MARK_OFFSET, kept.position as u64 | d::SEALED_BIT, kept.last_sequence);
    if !found.is_settled {
        settle(options, &segment, found.first_sequence)?;
    }
    Ok(segment)
}

fn open_for_writing(kept: &Kept) -> Result<File, JournalError> {
    let (path, length) = (&kept.found.path, kept.found.header.segment_length);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| JournalError::io("open for writing", path, error))?;
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

fn rebuild_index(segment: &Segment, kept: &Kept) {
    if let Some(entries) = &kept.index {
        let words = segment.index();
        index::clear_from(words, 0);
        for &(slot, sequence, position) in entries {
            index::record(words, slot, sequence, position);
        }
    }
}

/// Makes the header say which records the segment holds.
fn note_held(segment: &Segment, kept: &Kept) {
    if kept.held != kept.found.held {
        let (first, second) = kept.held.to_words();
        segment.write_mark(d::RECORDS_MARK_OFFSET, first, second);
    }
}

/// Writes frames once more: after a failed fdatasync the kernel may hold them for written.
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

/// Takes back the note of a failed sync, once its frames are on the device after all.
fn clear_failed_mark(options: &JournalOptions, found: &Found) -> Result<(), JournalError> {
    let path = options.directory.join(d::segment_name(found.first_sequence));
    let file = match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(file) => file,
        // It was behind the cut.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(JournalError::io("open for writing", path, error)),
    };
    Segment::map(path, file, found.header, Flush::Write)?.write_mark(d::FAILED_MARK_OFFSET, 0, 0);
    Ok(())
}

/// Gives a segment its final name.
fn settle(options: &JournalOptions, segment: &Segment, first_sequence: u64) -> Result<(), JournalError> {
    let (from, to) = (segment.path(), options.directory.join(d::segment_name(first_sequence)));
    let synced = segment.sync_header();
    synced.map_err(|source| JournalError::SyncFailed { segment: from.clone(), source })?;
    std::fs::rename(&from, &to).map_err(|error| JournalError::io("rename", &from, error))?;
    segment.set_path(to);
    sync_directory(&options.directory)
}

fn remove_all(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, JournalError> {
    for path in &paths {
        std::fs::remove_file(path).map_err(|error| JournalError::io("remove", path, error))?;
    }
    Ok(paths)
}

fn draw_incarnation(options: &JournalOptions) -> Result<u64, JournalError> {
    let mut bytes = [0u8; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
            .map_err(|error| JournalError::io("draw random bytes for", &options.directory, error.into()))?;
    }
    Ok(u64::from_le_bytes(bytes))
}
