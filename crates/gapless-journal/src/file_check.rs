//! A look at the files that a running journal writes: whether they are still the ones that it opened.
//!
//! Nothing that a writer does fails where somebody removes a file that it has open, puts another under its name, or cuts it and
//! makes it long again: frames would be acknowledged that no start finds. The helper thread looks once a second, and at each
//! segment that the writer has left; a thread that writes a state or a snapshot above the journal looks before. A loss ends the journal, with
//! the file's name.
//!
//! Of the newest segment and the file `history`: the name leads to the open file, which is as long as it was, and its header is
//! there. Of the segment also that the end of what was journaled at the look before, 64 KiB or a frame, is still what it was. So a
//! segment that is cut behind that end, and made long again before the next look, is not noticed. Older segments are not looked at: an archiver
//! moves them, which waits until the segment behind has its name; a reader and the next start check them.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use gapless_wire::checksum::crc32c;

use crate::descriptor::{FIXED_LENGTH, FixedHeader, JOURNALED_MARK_OFFSET, SEALED_BIT};
use crate::error::{FileLoss, JournalError};
use crate::segment::Segment;

/// Most bytes of frames that a look remembers for the next one.
const KNOWN_LENGTH_MAX: u64 = 64 << 10;

/// Frames that were journaled at the last look.
#[derive(Clone, Debug)]
pub(crate) struct KnownFrames {
    /// Their segment.
    file: Arc<File>,
    from: u64,
    to: u64,
    crc32c: u32,
}

/// That `path` leads to `file`, if need be over links, and that it has at least `length` bytes.
pub(crate) fn check_place(file: &File, path: &Path, length: u64) -> Result<(), JournalError> {
    let failed = |error| JournalError::io("look at", path, error);
    let ours = file.metadata().map_err(failed)?;
    let loss = match std::fs::metadata(path) {
        Err(error) if leads_nowhere(&error) => Some(FileLoss::Gone),
        Err(error) => return Err(failed(error)),
        Ok(there) if (there.dev(), there.ino()) != (ours.dev(), ours.ino()) => Some(FileLoss::Exchanged),
        Ok(there) if there.len() < length => Some(FileLoss::Cut { from_bytes: length, to_bytes: there.len() }),
        Ok(_) => None,
    };
    loss.map_or(Ok(()), |loss| Err(lost(path, loss)))
}

/// Whether a name leads to no file, and not only cannot be followed now.
fn leads_nowhere(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].contains(&errno))
}

pub(crate) fn lost(path: &Path, loss: FileLoss) -> JournalError {
    JournalError::FileLost { path: path.to_owned(), loss }
}

/// Looks at the segment that takes frames, and gives what the next look can compare with.
pub(crate) fn check_newest(segment: &Segment, known: Option<KnownFrames>) -> Result<Option<KnownFrames>, JournalError> {
    let (file, path) = (&segment.file, segment.path());
    check_place(file, &path, segment.header.segment_length)?;
    let mut fixed = [0; FIXED_LENGTH];
    read(file, &path, &mut fixed, 0)?;
    if FixedHeader::from_bytes(&fixed).ok().as_ref() != Some(&segment.header) {
        return Err(lost(&path, FileLoss::Overwritten { position: 0 }));
    }
    check_known(file, &path, &known)?;
    // A writer that moves it all the time may not let it be read: then the next look compares with the same.
    let Some(mark) = segment.mark(JOURNALED_MARK_OFFSET) else { return Ok(known) };
    let to = mark.first & !SEALED_BIT;
    // A frame's header is among them, which is not zero: bytes that were cut have another sum.
    let length = KNOWN_LENGTH_MAX.max(segment.header.frame_length_max.into());
    let from = segment.header.frames_offset.max(to.saturating_sub(length));
    let crc32c = sum_of(file, &path, from, to)?;
    Ok(Some(KnownFrames { file: Arc::clone(file), from, to, crc32c }))
}

/// That the frames that the last look has seen in this segment are what they were.
pub(crate) fn check_known(file: &Arc<File>, path: &Path, known: &Option<KnownFrames>) -> Result<(), JournalError> {
    match known.as_ref().filter(|known| Arc::ptr_eq(&known.file, file)) {
        Some(known) if sum_of(file, path, known.from, known.to)? != known.crc32c => {
            Err(lost(path, FileLoss::Overwritten { position: known.from }))
        }
        _ => Ok(()),
    }
}

fn sum_of(file: &File, path: &Path, from: u64, to: u64) -> Result<u32, JournalError> {
    let mut bytes = vec![0; to.saturating_sub(from) as usize];
    read(file, path, &mut bytes, from)?;
    Ok(crc32c(&bytes))
}

/// Reads by the file and not by the mapping: what is gone is an error and no signal.
fn read(file: &File, path: &Path, bytes: &mut [u8], position: u64) -> Result<(), JournalError> {
    file.read_exact_at(bytes, position).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            let to_bytes = file.metadata().map_or(0, |metadata| metadata.len());
            lost(path, FileLoss::Cut { from_bytes: position + bytes.len() as u64, to_bytes })
        }
        _ => JournalError::io("read", path, error),
    })
}
