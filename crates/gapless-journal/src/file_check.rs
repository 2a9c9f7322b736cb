//! Checks that the files written by a running journal are still those that it opened: a writer notices no error when
//! another process removes, exchanges, or truncates and extends an open file, and would acknowledge frames that no
//! start finds. A loss ends the journal.
//!
//! Checked for the newest segment and the history file, once a second and before a state or snapshot is written: path,
//! length and header; for the segment also the end of the frames journaled at the last check, so truncating and
//! extending it after that position goes undetected. Older segments are checked by readers and the next start, because
//! archiving moves them.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use gapless_wire::checksum::crc32c;

use crate::descriptor::{FIXED_LENGTH, FixedHeader, JOURNALED_MARK_OFFSET, SEALED_BIT};
use crate::error::{FileLoss, JournalError};
use crate::segment::Segment;

const KNOWN_LENGTH_MAX: u64 = 64 << 10;

#[derive(Clone, Debug)]
pub(crate) struct KnownFrames {
    file: Arc<File>,
    from: u64,
    to: u64,
    crc32c: u32,
}

/// `path` leads to `file`, possibly through links, and it has at least `length` bytes.
pub(crate) fn check_place(file: &File, path: &Path, length: u64) -> Result<(), JournalError> {
    let failed = |error| JournalError::io("look at", path, error);
    let ours = file.metadata().map_err(failed)?;
    let loss = match std::fs::metadata(path) {
        Err(error) if is_missing(&error) => Some(FileLoss::Removed),
        Err(error) => return Err(failed(error)),
        Ok(there) if (there.dev(), there.ino()) != (ours.dev(), ours.ino()) => Some(FileLoss::Exchanged),
        Ok(there) if there.len() < length => Some(FileLoss::Shortened { from_bytes: length, to_bytes: there.len() }),
        Ok(_) => None,
    };
    loss.map_or(Ok(()), |loss| Err(lost_file(path, loss)))
}

/// Whether the name leads to no file; other errors may pass.
fn is_missing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].contains(&errno))
}

pub(crate) fn lost_file(path: &Path, loss: FileLoss) -> JournalError {
    JournalError::FileLost { path: path.to_owned(), loss }
}

pub(crate) fn check_newest(segment: &Segment, known: Option<KnownFrames>) -> Result<Option<KnownFrames>, JournalError> {
    let (file, path) = (&segment.file, segment.path());
    check_place(file, &path, segment.header.segment_length)?;
    let mut fixed = [0; FIXED_LENGTH];
    read(file, &path, &mut fixed, 0)?;
    if FixedHeader::from_bytes(&fixed).ok().as_ref() != Some(&segment.header) {
        return Err(lost_file(&path, FileLoss::Overwritten { position: 0 }));
    }
    check_known(file, &path, &known)?;
    // The writer may keep moving the mark; then the next check compares with the same frames.
    let Some(mark) = segment.mark(JOURNALED_MARK_OFFSET) else { return Ok(known) };
    let to = mark.first & !SEALED_BIT;
    // The range contains a frame's header, which is not zero, so truncated bytes change the sum.
    let length = KNOWN_LENGTH_MAX.max(segment.header.frame_length_max.into());
    let from = segment.header.frames_offset.max(to.saturating_sub(length));
    let crc32c = checksum(file, &path, from, to)?;
    Ok(Some(KnownFrames { file: Arc::clone(file), from, to, crc32c }))
}

pub(crate) fn check_known(file: &Arc<File>, path: &Path, known: &Option<KnownFrames>) -> Result<(), JournalError> {
    match known.as_ref().filter(|known| Arc::ptr_eq(&known.file, file)) {
        Some(known) if checksum(file, path, known.from, known.to)? != known.crc32c => {
            Err(lost_file(path, FileLoss::Overwritten { position: known.from }))
        }
        _ => Ok(()),
    }
}

fn checksum(file: &File, path: &Path, from: u64, to: u64) -> Result<u32, JournalError> {
    let mut bytes = vec![0; to.saturating_sub(from) as usize];
    read(file, path, &mut bytes, from)?;
    Ok(crc32c(&bytes))
}

/// Reads from the file, not from the mapping: missing bytes give an error instead of a signal.
fn read(file: &File, path: &Path, bytes: &mut [u8], position: u64) -> Result<(), JournalError> {
    file.read_exact_at(bytes, position).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            let to_bytes = file.metadata().map_or(0, |metadata| metadata.len());
            lost_file(path, FileLoss::Shortened { from_bytes: position + bytes.len() as u64, to_bytes })
        }
        _ => JournalError::io("read", path, error),
    })
}
