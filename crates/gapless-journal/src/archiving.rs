//! [`archive`]: moves the oldest segments of a journal to an archive, where they stay readable.
//!
//! ```text
//! copy ─▶ sync ─▶ name ─▶ compare with the segment ─▶ stub in the journal's folder ─▶ remove the segment
//! ```
//!
//! After a kill at any point, the segment exists, or the stub with a complete copy. Archiving again continues from
//! there.

use crate::archived::{ArchiveFormat, ArchiveLocation};
use crate::compressed::{compress, decompress};
use crate::descriptor::{ARCHIVE_LOCK_NAME, archived_name};
use crate::directory::{DirectoryLock, Survey, SurveyedSegment, survey};
use crate::disk::sync_directory;
use crate::durable_file::FileReplacement;
use crate::error::JournalError;
use crate::reader::JournalReader;
use gapless_agent::checked_file;
use gapless_agent::fault::crash_point;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const PIECE_LENGTH: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// On any file system; created if missing. Several journals may share it.
    pub place: PathBuf,
    pub form: ArchiveFormat,
    /// Archive only segments whose frames are all before this sequence; `None` archives all that it can.
    pub before_sequence: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedSegment {
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub path: PathBuf,
    /// Bytes in the archive.
    pub stored_bytes: u64,
    /// Bytes in the journal.
    pub segment_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveReport {
    /// Oldest first.
    pub archived: Vec<ArchivedSegment>,
    pub not_archived: Option<(PathBuf, String)>,
}

/// Calls `each` after each archived segment, oldest first. Moves only segments that the writer has finished: sealed,
/// with a successor, and on the device, which may be half a minute after the next one was begun. Every frame is checked
/// first.
///
/// # Errors
/// Another archiving is in progress; a segment is damaged; the destination cannot be written.
pub fn archive(
    directory: &Path,
    options: &ArchiveOptions,
    mut each: impl FnMut(&ArchivedSegment),
) -> Result<ArchiveReport, JournalError> {
    let reader = JournalReader::open_complete(directory)?;
    let _lock = DirectoryLock::take_named(directory, ARCHIVE_LOCK_NAME)?;
    std::fs::create_dir_all(&options.place).map_err(|error| JournalError::io("create", &options.place, error))?;
    let place = options.place.canonicalize().map_err(|error| JournalError::io("examine", &options.place, error))?;
    let survey = survey(directory, None)?;
    let mut report = ArchiveReport::default();
    for (index, found) in survey.segments.iter().enumerate() {
        if found.archived.is_some() {
            continue;
        }
        let last_sequence = match end_of(&survey, index, options.before_sequence) {
            Ok(last_sequence) => last_sequence,
            Err(reason) => {
                report.not_archived = Some((found.path.clone(), reason));
                break;
            }
        };
        if report.archived.is_empty() {
            sync_mark(&survey)?;
        }
        check_frames(&reader, found, last_sequence)?;
        let archived = archive_segment(directory, &place, options.form, found)?;
        crash_point("archive_before_removal");
        checked_file::remove(&found.path).map_err(|error| JournalError::io("remove", &found.path, error))?;
        sync_directory(directory)?;
        crash_point("archive_after_removal");
        let segment = ArchivedSegment {
            first_sequence: found.first_sequence,
            last_sequence,
            path: archived.place,
            stored_bytes: archived.stored_bytes,
            segment_bytes: found.file_length,
        };
        each(&segment);
        report.archived.push(segment);
    }
    Ok(report)
}

/// Returns the last sequence of a segment that can be archived, or the reason why it cannot.
fn end_of(survey: &Survey, index: usize, before_sequence: Option<u64>) -> Result<u64, String> {
    let (found, next) = (&survey.segments[index], survey.segments.get(index + 1));
    let next = next.filter(|next| next.has_final_name).ok_or("it is the newest, or the next has no name yet")?;
    let mark = found.journaled.filter(|_| found.is_sealed()).ok_or("it is not sealed")?;
    if mark.second + 1 != next.first_sequence {
        return Err(format!("it ends at sequence {}, and the next begins at {}", mark.second, next.first_sequence));
    }
    if before_sequence.is_some_and(|before| mark.second >= before) {
        return Err(format!("its last sequence is {}, which is not before what may go", mark.second));
    }
    if found.sync_failed || found.synced.is_none() || survey.synced_sequence() <= mark.second {
        return Err(
            "it is not on the device yet; try again in half a minute, or when its writer has stopped".to_owned()
        );
    }
    if found.boot.is_none() || found.times_ns.1 == 0 || found.file_length < found.header.frames_offset {
        return Err("its header does not say all that is needed".to_owned());
    }
    Ok(mark.second)
}

/// The mark that vouches for the archived frames: without it, a start after a power failure would have to read the
/// archive.
fn sync_mark(survey: &Survey) -> Result<(), JournalError> {
    let sequence = |found: &&SurveyedSegment| found.synced.map_or(0, |mark| mark.first);
    let Some(holder) = survey.segments.iter().max_by_key(sequence) else { return Ok(()) };
    let synced = checked_file::open(&holder.path).and_then(|file| file.sync_data());
    synced.map_err(|error| JournalError::io("sync", &holder.path, error))
}

fn check_frames(reader: &JournalReader, found: &SurveyedSegment, last_sequence: u64) -> Result<(), JournalError> {
    let mut replay = reader.replay_segment(found)?;
    while replay.next_sequence() <= last_sequence {
        if replay.next_frame()?.is_none() {
            let (segment, position) = replay.position();
            let reason = format!("its frames end before sequence {last_sequence}");
            return Err(JournalError::HeaderDamaged { segment: segment.to_owned(), position, reason });
        }
    }
    Ok(())
}

/// Reuses a complete copy and stub of an interrupted run.
fn archive_segment(
    directory: &Path,
    place: &Path,
    form: ArchiveFormat,
    found: &SurveyedSegment,
) -> Result<ArchiveLocation, JournalError> {
    let failed = |error| JournalError::io("read", &found.path, error);
    let segment = checked_file::open(&found.path).map_err(failed)?;
    let stub_path = directory.join(archived_name(found.first_sequence));
    if let Ok(stub) = checked_file::open(&stub_path)
        && let Ok(before) = ArchiveLocation::read(&stub, &stub_path, found.header.frames_offset)
        && is_same(&segment, &before).unwrap_or(false)
    {
        return Ok(before);
    }
    let segment_bytes = found.journaled_position().expect("it is sealed");
    let header = found.header;
    let ending = if form == ArchiveFormat::Lz4 { ".lz4" } else { "" };
    let name =
        format!("{:032x}-{:016x}-{:020}.segment{ending}", header.stream_id, header.incarnation, found.first_sequence);
    let path = place.join(&name);
    let not_written = |error| JournalError::io("write", &path, error);
    let copy = FileReplacement::begin(&path, place.join(format!("{name}.new")), 0o600).map_err(not_written)?;
    let mut out = BufWriter::with_capacity(PIECE_LENGTH, copy);
    match form {
        ArchiveFormat::Plain => copy_bytes(&segment, segment_bytes, &mut out),
        ArchiveFormat::Lz4 => compress(&segment, segment_bytes, &mut out),
    }
    .map_err(not_written)?;
    crash_point("archive_in_copy");
    let mut copy = out.into_inner().map_err(|error| not_written(error.into_error()))?;
    // The reader is the journal's owner, not the archiving user. Some file systems have no owners.
    let _kept = segment.metadata().and_then(|segment| copy.copy_owner(&segment));
    copy.sync().map_err(not_written)?;
    let stored = copy.put_in_place().map_err(not_written)?;
    crash_point("archive_after_copy");
    let stored_bytes = stored.metadata().map_err(not_written)?.len();
    let archived = ArchiveLocation { place: path.clone(), form, stored_bytes, segment_bytes };
    if !is_same(&segment, &archived).map_err(not_written)? {
        return Err(not_written(io::Error::other("what was written is not what is read back")));
    }
    write_stub(&segment, &stub_path, header.frames_offset, &archived)?;
    crash_point("archive_after_stub");
    Ok(archived)
}

fn copy_bytes(segment: &File, length: u64, out: &mut impl Write) -> io::Result<()> {
    let mut piece = vec![0; PIECE_LENGTH];
    let mut position = 0;
    while position < length {
        let piece = &mut piece[..PIECE_LENGTH.min((length - position) as usize)];
        segment.read_exact_at(piece, position)?;
        out.write_all(piece)?;
        position += piece.len() as u64;
    }
    Ok(())
}

fn is_same(segment: &File, archived: &ArchiveLocation) -> io::Result<bool> {
    let stored = checked_file::open(&archived.place)?;
    let (mut ours, mut is_same) = (vec![0; PIECE_LENGTH], true);
    let compare = |position, piece: &[u8]| {
        let ours = &mut ours[..piece.len()];
        segment.read_exact_at(ours, position)?;
        is_same &= *ours == *piece;
        Ok(())
    };
    let length = match archived.form {
        ArchiveFormat::Plain => read_pieces(stored, compare)?,
        ArchiveFormat::Lz4 => decompress(&stored, compare)?,
    };
    Ok(is_same && length == archived.segment_bytes)
}

fn read_pieces(mut stored: impl Read, mut take: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<u64> {
    let (mut piece, mut position) = (vec![0; PIECE_LENGTH], 0);
    loop {
        let length = stored.read(&mut piece)?;
        if length == 0 {
            return Ok(position);
        }
        take(position, &piece[..length])?;
        position += length as u64;
    }
}

fn write_stub(segment: &File, path: &Path, frames_offset: u64, archived: &ArchiveLocation) -> Result<(), JournalError> {
    let failed = |error| JournalError::io("write", path, error);
    let mut bytes = vec![0; frames_offset as usize];
    segment.read_exact_at(&mut bytes, 0).map_err(failed)?;
    bytes.extend_from_slice(&archived.to_bytes());
    let mut stub = FileReplacement::begin(path, path.with_extension("archived.new"), 0o600).map_err(failed)?;
    stub.write_all(&bytes).and_then(|()| stub.sync()).map_err(failed)?;
    stub.put_in_place().map(drop).map_err(failed)
}
