//! The journal's directory: its lock, and the survey of its segments, which checks that they belong together and
//! changes nothing.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gapless_agent::{checked_file, file_lock};

use crate::archived::ArchiveLocation;
use crate::boot::BootId;
use crate::descriptor::{self as d, FixedHeader, FixedHeaderFault, ParsedFileName};
use crate::error::JournalError;
use crate::history::{self, JournalHistory};
use crate::lock_holder::holder_in;
use crate::mapping::FileMapping;
use crate::mark::{self, MarkValue};
use crate::records::SegmentRecords;

const DYING_MAX: Duration = Duration::from_secs(3);
const DYING_PAUSE: Duration = Duration::from_millis(20);

/// Released by the kernel however the process ends. An open [`crate::Journal`] holds its own. Taken alone it prevents
/// opening the journal.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
    identity: DeviceAndInode,
}

type DeviceAndInode = (u64, u64);

/// Locks held by this process; taking one of them again fails at once.
fn held_locks() -> MutexGuard<'static, Vec<DeviceAndInode>> {
    static HELD: Mutex<Vec<DeviceAndInode>> = Mutex::new(Vec::new());
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        held_locks().retain(|held| *held != self.identity);
        file_lock::unlock(&self.file);
    }
}

impl DirectoryLock {
    /// Takes the lock, or names its holder. A killed process holds it until the kernel has freed its memory, so this
    /// waits up to 3 s.
    ///
    /// # Errors
    /// [`JournalError::Locked`], or the directory is missing or not writable.
    pub fn take(directory: &Path) -> Result<Self, JournalError> {
        Self::take_named(directory, d::LOCK_NAME)
    }

    pub(crate) fn take_named(directory: &Path, name: &str) -> Result<Self, JournalError> {
        let path = directory.join(name);
        let until = Instant::now() + DYING_MAX;
        let mut file = loop {
            // The holder writes its name there: a link must not be followed, and a pipe must not block.
            let opened = checked_file::open_or_create(&path, 0o600);
            let file = opened.map_err(|error| JournalError::io("create", &path, error))?;
            let identity = identity(&file, &path)?;
            let is_taken = file_lock::try_lock(&file).map_err(|error| JournalError::io("lock", &path, error))?;
            let found = std::fs::symlink_metadata(&path);
            let is_there = found.as_ref().is_ok_and(|found| (found.dev(), found.ino()) == identity);
            match (is_taken, is_there) {
                (true, true) if found.is_ok_and(|found| found.nlink() > 1) => break replace_shared_lock(&path)?,
                (true, true) => break file,
                (true, false) => {}
                (false, _) if held_locks().contains(&identity) || Instant::now() >= until => {
                    return Err(JournalError::Locked { directory: directory.to_owned(), holder: holder(file) });
                }
                (false, _) => std::thread::sleep(DYING_PAUSE),
            }
        };
        let identity = identity(&file, &path)?;
        let program = std::env::current_exe().ok();
        let program =
            program.as_deref().and_then(Path::file_name).map_or("unknown".into(), |name| name.to_string_lossy());
        file.set_len(0)
            .and_then(|()| writeln!(file, "process {} ({program})", std::process::id()))
            .map_err(|error| JournalError::io("write", &path, error))?;
        held_locks().push(identity);
        Ok(Self { file, identity })
    }
}

fn identity(file: &File, path: &Path) -> Result<DeviceAndInode, JournalError> {
    let found = file.metadata().map_err(|error| JournalError::io("look at", path, error))?;
    Ok((found.dev(), found.ino()))
}

/// `cp -al` shares a lock file with another directory. The caller holds the lock of the old one.
fn replace_shared_lock(path: &Path) -> Result<File, JournalError> {
    let new = path.with_extension("new");
    // Replaces one left by a process that died here.
    let file = checked_file::create(&new, 0o600).map_err(|error| JournalError::io("create", &new, error))?;
    file_lock::try_lock(&file).map_err(|error| JournalError::io("lock", &new, error))?;
    checked_file::rename(&new, path).map_err(|error| JournalError::io("rename", &new, error))?;
    Ok(file)
}

/// Returns the holder's name, with a hint for a lock file that is shared by a hard link.
fn holder(mut file: File) -> String {
    let holder = holder_in(&mut file);
    match file.metadata() {
        Ok(found) if found.nlink() > 1 => {
            format!("{holder}, or another directory is, whose file `lock` is the same by a hard link")
        }
        _ => holder,
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SurveyedSegment {
    pub(crate) path: PathBuf,
    pub(crate) has_final_name: bool,
    pub(crate) file_length: u64,
    pub(crate) header: FixedHeader,
    pub(crate) first_sequence: u64,
    pub(crate) opened_ns: u64,
    /// `None` if both slots are damaged, like the two marks below.
    pub(crate) boot: Option<Option<BootId>>,
    pub(crate) journaled: Option<MarkValue>,
    pub(crate) damaged_slot_position: Option<u64>,
    pub(crate) synced: Option<MarkValue>,
    pub(crate) sync_failed: bool,
    pub(crate) segment_records: SegmentRecords,
    /// Time stamps of the frame before the first and of the last frame; 0 if unknown.
    pub(crate) times_ns: (u64, u64),
    /// Location of its frames if it is archived; then `path` is its stub. `file_length` is the segment's.
    pub(crate) archived: Option<Arc<ArchiveLocation>>,
}

impl SurveyedSegment {
    pub(crate) fn is_sealed(&self) -> bool {
        self.journaled.is_some_and(|mark| mark.first & d::SEALED_BIT != 0)
    }

    pub(crate) fn journaled_position(&self) -> Option<u64> {
        self.journaled.map(|mark| mark.first & !d::SEALED_BIT)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    pub(crate) segments: Vec<SurveyedSegment>,
    pub(crate) leftovers: Vec<PathBuf>,
    pub(crate) removed_tail_files: Vec<PathBuf>,
    /// `None` if missing or damaged.
    pub(crate) history: Option<JournalHistory>,
    pub(crate) is_history_damaged: bool,
}

impl Survey {
    pub(crate) fn synced_sequence(&self) -> u64 {
        self.segments.iter().filter_map(|found| found.synced).map(|mark| mark.first).max().unwrap_or(0)
    }

    /// Furthest byte that a synced mark vouches for, records included: a segment's first sequence, and a position.
    pub(crate) fn synced_position(&self) -> Option<(u64, u64)> {
        let position = |found: &SurveyedSegment| Some((found.first_sequence, found.synced?.second));
        self.segments.iter().rev().filter_map(position).find(|&(_, position)| position != 0)
    }

    /// Checks that all segments named by the history exist. A running writer may change both meanwhile, so only the
    /// holder of the lock can rely on the result.
    ///
    /// # Errors
    /// The missing segments, and the files that show it.
    pub(crate) fn check_complete(&self, directory: &Path) -> Result<(), JournalError> {
        let path = directory.join(d::HISTORY_NAME);
        if self.is_history_damaged {
            return Err(JournalError::HistoryDamaged { path });
        }
        let Some(history) = self.history else { return Ok(()) };
        if history.replaced != 0 {
            return Err(JournalError::RestoreUnfinished { path });
        }
        let (Some(oldest), Some(newest)) = (self.segments.first(), self.segments.last()) else {
            return Err(JournalError::SegmentsMissing {
                directory: directory.to_owned(),
                path,
                first: history.first_sequence,
                newest: history.newest_sequence,
            });
        };
        if oldest.first_sequence > history.first_sequence {
            let (missing_from, missing_to) = (history.first_sequence, oldest.first_sequence - 1);
            return Err(JournalError::OldestMissing { oldest: oldest.path.clone(), path, missing_from, missing_to });
        }
        if newest.first_sequence < history.newest_sequence {
            let sequence = history.newest_sequence;
            return Err(JournalError::NewestMissing { newest: newest.path.clone(), path, sequence });
        }
        Ok(())
    }

    /// The archive may have taken a segment while they were listed.
    fn may_have_moved(&self) -> bool {
        let is_gap = |pair: &[SurveyedSegment]| {
            let last = pair[0].journaled.filter(|_| pair[0].is_sealed()).map(|mark| mark.second);
            last.is_some_and(|last| last + 1 < pair[1].first_sequence)
        };
        let begins_late = || {
            let first = self.segments.first().map_or(0, |found| found.first_sequence);
            self.history.is_some_and(|history| first > history.first_sequence)
        };
        self.segments.iter().any(|found| found.archived.is_some())
            && (begins_late() || self.segments.windows(2).any(is_gap))
    }

    pub(crate) fn is_same_boot(&self, boot_id: Option<BootId>) -> bool {
        boot_id.is_some() && self.segments.last().is_some_and(|found| found.boot == Some(boot_id))
    }
}

/// Far above any real journal, so that sums cannot overflow.
const SEQUENCE_MAX: u64 = u64::MAX / 2;

/// Attempts of a survey when a segment may have been archived meanwhile.
const MOVED_ATTEMPTS_MAX: usize = 10;
/// Attempts of a survey when a live writer changes the directory.
const SURVEY_ATTEMPTS_MAX: usize = 100;

pub(crate) fn survey(directory: &Path, expected_stream: Option<u128>) -> Result<Survey, JournalError> {
    for attempt in 1..=SURVEY_ATTEMPTS_MAX {
        let Some(survey) = survey_once(directory, expected_stream)? else { continue };
        // A permanent gap is reported by the callers.
        if attempt >= MOVED_ATTEMPTS_MAX || !survey.may_have_moved() {
            return Ok(survey);
        }
    }
    let changing = io::Error::other("segments come and go faster than they can be listed");
    Err(JournalError::io("survey", directory, changing))
}

/// `None` if a file disappeared between listing and opening.
fn survey_once(directory: &Path, expected_stream: Option<u128>) -> Result<Option<Survey>, JournalError> {
    let (history, is_history_damaged) = match history::read(directory) {
        Err(JournalError::HistoryDamaged { .. }) => (None, true),
        read => (read?, false),
    };
    let mut survey = Survey { history, is_history_damaged, ..Survey::default() };
    let listing = std::fs::read_dir(directory).map_err(|error| JournalError::io("list", directory, error))?;
    for entry in listing {
        let entry = entry.map_err(|error| JournalError::io("list", directory, error))?;
        let name = entry.file_name();
        let path = entry.path();
        let Some(meaning) = name.to_str().and_then(d::parse_file_name) else {
            if name.to_str().is_some_and(d::is_cut_name) {
                survey.removed_tail_files.push(path);
            }
            continue;
        };
        let file = match checked_file::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(JournalError::io("open", path, error)),
        };
        match examine(path, &file, meaning)? {
            SurveyEntry::Segment(found) => survey.segments.push(*found),
            SurveyEntry::Leftover(path) => survey.leftovers.push(path),
        }
    }
    // A segment takes precedence over its stub.
    let rank = |found: &SurveyedSegment| (found.first_sequence, found.archived.is_some());
    survey.segments.sort_by(|a, b| (rank(a), &a.path).cmp(&(rank(b), &b.path)));
    survey.segments.dedup_by(|later, before| later.archived.is_some() && later.first_sequence == before.first_sequence);
    survey.removed_tail_files.sort_unstable();
    check_identity(&survey, directory, expected_stream)?;
    Ok(Some(survey))
}

pub(crate) fn read_stub(
    directory: &Path,
    first_sequence: u64,
) -> Result<Option<(FixedHeader, ArchiveLocation)>, JournalError> {
    let path = directory.join(d::archived_name(first_sequence));
    let stub = match checked_file::open(&path) {
        Ok(stub) => stub,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(JournalError::io("open", path, error)),
    };
    let length = stub.metadata().map_err(|error| JournalError::io("examine", &path, error))?.len();
    let header = read_fixed_header(&stub, length).map_err(|fault| fault.into_error(path.clone()))?;
    let archived = ArchiveLocation::read(&stub, &path, header.frames_offset)?;
    Ok(Some((header, archived)))
}

enum SurveyEntry {
    Segment(Box<SurveyedSegment>),
    Leftover(PathBuf),
}

fn examine(path: PathBuf, file: &File, meaning: ParsedFileName) -> Result<SurveyEntry, JournalError> {
    let has_final_name = !matches!(meaning, ParsedFileName::Prepared(_));
    let file_length = file.metadata().map_err(|error| JournalError::io("examine", &path, error))?.len();
    let header = match read_fixed_header(file, file_length) {
        Ok(header) => header,
        // A crash during its creation: the header is written last, and a prepared segment has no final name.
        Err(_) if !has_final_name => return Ok(SurveyEntry::Leftover(path)),
        Err(fault) => return Err(fault.into_error(path)),
    };
    let mapping =
        FileMapping::read_only(file, d::HEADER_PAGE_LENGTH).map_err(|error| JournalError::io("map", &path, error))?;
    let read = |offset| mark::read(mapping.mark(offset));
    let read_sequence =
        |offset, sequence: fn(&MarkValue) -> u64| read(offset).filter(|mark| sequence(mark) <= SEQUENCE_MAX);
    let Some(opened) = read(d::OPENED_MARK_OFFSET) else {
        let reason = "both slots of the opened mark fail their checksum".to_owned();
        return Err(JournalError::HeaderDamaged { segment: path, position: d::OPENED_MARK_OFFSET as u64, reason });
    };
    if opened.first > SEQUENCE_MAX {
        let reason = format!("it would begin with sequence {}", opened.first);
        return Err(JournalError::HeaderDamaged { segment: path, position: d::OPENED_MARK_OFFSET as u64, reason });
    }
    match meaning {
        ParsedFileName::Prepared(_) if opened.first == 0 => return Ok(SurveyEntry::Leftover(path)),
        ParsedFileName::Segment(named) | ParsedFileName::Archived(named)
            if opened.first != named || opened.first == 0 =>
        {
            if opened.first == 0 {
                let reason = format!("it was never opened, but is named as the segment from sequence {named}");
                let position = d::OPENED_MARK_OFFSET as u64;
                return Err(JournalError::HeaderDamaged { segment: path, position, reason });
            }
            let expected_name = d::segment_name(opened.first);
            return Err(JournalError::NameMismatch { segment: path, found: opened.first, expected_name });
        }
        _ => {}
    }
    let mut file_length = file_length;
    let mut archived = None;
    if let ParsedFileName::Archived(_) = meaning {
        let summary = ArchiveLocation::read(file, &path, header.frames_offset)?;
        file_length = summary.segment_bytes;
        archived = Some(Arc::new(summary));
    }
    Ok(SurveyEntry::Segment(Box::new(SurveyedSegment {
        has_final_name,
        file_length,
        header,
        first_sequence: opened.first,
        opened_ns: opened.second,
        boot: read(d::BOOT_MARK_OFFSET).map(|mark| BootId::from_words(mark.first, mark.second)),
        // A slot written before the segment was opened names no frame.
        journaled: read_sequence(d::JOURNALED_MARK_OFFSET, |mark| mark.second)
            .map(|mark| MarkValue { second: mark.second.max(opened.first - 1), ..mark }),
        damaged_slot_position: read(d::JOURNALED_MARK_OFFSET)
            .and_then(|_| mark::damaged_slot(mapping.mark(d::JOURNALED_MARK_OFFSET)))
            .map(|start| (d::JOURNALED_MARK_OFFSET + start) as u64),
        synced: read_sequence(d::SYNCED_MARK_OFFSET, |mark| mark.first),
        sync_failed: read(d::FAILED_MARK_OFFSET).is_some_and(|mark| mark.first != 0),
        segment_records: SegmentRecords::read(&mapping),
        times_ns: read(d::TIMES_MARK_OFFSET).map_or((0, 0), |mark| (mark.first, mark.second)),
        archived,
        path,
    })))
}

enum HeaderFault {
    Short(u64),
    Fixed(FixedHeaderFault, Vec<u8>),
    Io(io::Error),
}

fn read_fixed_header(file: &File, file_length: u64) -> Result<FixedHeader, HeaderFault> {
    if file_length < d::HEADER_PAGE_LENGTH as u64 {
        return Err(HeaderFault::Short(file_length));
    }
    let mut bytes = [0; d::FIXED_LENGTH];
    file.read_exact_at(&mut bytes, 0).map_err(HeaderFault::Io)?;
    FixedHeader::from_bytes(&bytes).map_err(|fault| HeaderFault::Fixed(fault, bytes[..8].to_vec()))
}

impl HeaderFault {
    fn into_error(self, segment: PathBuf) -> JournalError {
        let damaged = |segment, position, reason: String| JournalError::HeaderDamaged { segment, position, reason };
        match self {
            Self::Short(length) => {
                damaged(segment, length, format!("the file ends there, a header page has {}", d::HEADER_PAGE_LENGTH))
            }
            Self::Fixed(FixedHeaderFault::Magic, found) => JournalError::NotASegment { segment, found },
            Self::Fixed(FixedHeaderFault::Version(found), _) => {
                JournalError::Version { segment, expected: d::VERSION, found }
            }
            Self::Fixed(FixedHeaderFault::Checksum, _) => {
                damaged(segment, d::FIXED_CRC_OFFSET as u64, "its checksum is not that of its bytes".to_owned())
            }
            Self::Fixed(FixedHeaderFault::Lengths, _) => {
                damaged(segment, 48, "its lengths and offsets contradict each other".to_owned())
            }
            Self::Io(source) => JournalError::io("read", segment, source),
        }
    }
}

/// One stream, one incarnation, no sequence twice. The history decides whose the journal is, or else the oldest
/// segment.
fn check_identity(survey: &Survey, directory: &Path, expected_stream: Option<u128>) -> Result<(), JournalError> {
    let Survey { segments, history, .. } = survey;
    let by_history = history.map(|history| (history.stream_id, history.incarnation));
    let by_segment = segments.first().map(|oldest| (oldest.header.stream_id, oldest.header.incarnation));
    let Some((named_stream, incarnation)) = by_history.or(by_segment) else { return Ok(()) };
    let stream = expected_stream.unwrap_or(named_stream);
    if stream != named_stream && by_history.is_some() {
        let segment = directory.join(d::HISTORY_NAME);
        return Err(JournalError::ForeignStream { segment, expected: stream, found: named_stream });
    }
    // During a restore, some segments still have the replaced incarnation.
    let replaced = history.map_or(0, |history| history.replaced);
    let is_ours =
        |found: &SurveyedSegment| Some(identity_of(found)) == by_history || found.header.incarnation == replaced;
    if let (Some((named, _)), true) = (by_history, !segments.iter().any(is_ours))
        && let Some(oldest) = segments.first()
    {
        let (history, segment) = (directory.join(d::HISTORY_NAME), oldest.path.clone());
        let segment_says = format!("{:032x} {:016x}", oldest.header.stream_id, oldest.header.incarnation);
        let history_says = format!("{named:032x} {incarnation:016x}");
        return Err(JournalError::ForeignHistory { history, history_says, segment, segment_says });
    }
    for found in segments {
        if found.header.stream_id != stream {
            let (segment, found) = (found.path.clone(), found.header.stream_id);
            return Err(JournalError::ForeignStream { segment, expected: stream, found });
        }
        if found.header.incarnation != incarnation && (replaced == 0 || found.header.incarnation != replaced) {
            let (segment, found) = (found.path.clone(), found.header.incarnation);
            return Err(JournalError::ForeignIncarnation { segment, expected: incarnation, found });
        }
    }
    for pair in segments.windows(2) {
        if pair[0].first_sequence == pair[1].first_sequence {
            let (first, second) = (pair[0].path.clone(), pair[1].path.clone());
            return Err(JournalError::Duplicate { first, second, sequence: pair[0].first_sequence });
        }
    }
    Ok(())
}

fn identity_of(found: &SurveyedSegment) -> (u128, u64) {
    (found.header.stream_id, found.header.incarnation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_the_lock_holder() {
        let directory = tempfile::tempdir().unwrap();
        let lock = DirectoryLock::take(directory.path()).unwrap();
        let refused = DirectoryLock::take(directory.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        assert!(refused.contains("gapless_journal"), "{refused}");
        drop(lock);
        DirectoryLock::take(directory.path()).unwrap();
    }

    #[test]
    fn garbage_lock_file_is_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let rubbish = || std::fs::write(directory.path().join(d::LOCK_NAME), vec![0xff; 100_000]).unwrap();
        rubbish();
        let _lock = DirectoryLock::take(directory.path()).unwrap();
        rubbish();
        let refused = DirectoryLock::take(directory.path()).unwrap_err().to_string();
        assert!(refused.contains("did not leave its name"), "{refused}");
    }

    #[test]
    fn survey_ignores_foreign_files() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("notes.txt"), "mine").unwrap();
        let survey = survey(directory.path(), None).unwrap();
        assert!(survey.segments.is_empty() && survey.leftovers.is_empty());
    }
}
