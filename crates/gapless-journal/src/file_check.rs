//! A look at the files that a running journal writes: whether they are still the ones that it opened.
//!
//! Nothing that a writer does fails where somebody removes a file that it has open, puts another under its name, or cuts it and
//! makes it long again: frames would be acknowledged that no start finds. The helper thread looks once a second, and whoever
//! writes a state or a snapshot above the journal looks before. What it finds ends the journal, with the file's name.
//!
//! Of the newest segment and the file `history`: the name leads to the open file, which is as long as it was, and its header is
//! there. Of the segment also that the frames before the journaled mark of the look before are still what they were. Older
//! segments are not looked at: whoever archives them moves them, and a reader and the next start check them.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use gapless_wire::checksum::crc32c;

use crate::descriptor::{FIXED_LENGTH, FixedHeader, JOURNALED_MARK_OFFSET, SEALED_BIT};
use crate::error::{FileLoss, JournalError};
use crate::segment::Segment;
use crate::shared_journal::{SegmentMaintenance, SharedJournal};

/// Most bytes of frames that a look remembers for the next one.
const KNOWN_LENGTH_MAX: u64 = 64 << 10;

/// Frames that were journaled at the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownFrames {
    /// The number of their segment.
    segment_number: u64,
    from: u64,
    to: u64,
    crc32c: u32,
}

impl SharedJournal {
    /// Looks at the newest segment and the history. What is lost ends the journal.
    pub(crate) fn check_files(&self, maintenance: &mut SegmentMaintenance) -> Result<(), JournalError> {
        self.check_poison()?;
        // Whoever holds `maintenance` is the only one who renames, cuts and deletes segments.
        let active = self.segment_list().active.clone();
        let known = maintenance.known_frames;
        let looked = check_segment(&active, known).and_then(|now| {
            maintenance.known_frames = now;
            maintenance.history.check()
        });
        looked.inspect_err(|error| {
            if matches!(error, JournalError::FileLost { .. }) {
                self.poison(error);
            }
        })
    }
}

/// That `path` leads to `file`, if need be over links, and that it has at least `length` bytes.
pub(crate) fn check_place(file: &File, path: &Path, length: u64) -> Result<(), JournalError> {
    let failed = |error| JournalError::io("look at", path, error);
    let ours = file.metadata().map_err(failed)?;
    let loss = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(FileLoss::Gone),
        Err(error) => return Err(failed(error)),
        Ok(there) if (there.dev(), there.ino()) != (ours.dev(), ours.ino()) => Some(FileLoss::Exchanged),
        Ok(there) if there.len() < length => Some(FileLoss::Cut { from_bytes: length, to_bytes: there.len() }),
        Ok(_) => None,
    };
    loss.map_or(Ok(()), |loss| Err(lost(path, loss)))
}

pub(crate) fn lost(path: &Path, loss: FileLoss) -> JournalError {
    JournalError::FileLost { path: path.to_owned(), loss }
}

/// Looks at a segment, and gives what the next look can compare with.
fn check_segment(segment: &Segment, known: Option<KnownFrames>) -> Result<Option<KnownFrames>, JournalError> {
    let path = segment.path();
    check_place(&segment.file, &path, segment.header.segment_length)?;
    let mut fixed = [0; FIXED_LENGTH];
    read(&segment.file, &path, &mut fixed, 0)?;
    if FixedHeader::from_bytes(&fixed).ok().as_ref() != Some(&segment.header) {
        return Err(lost(&path, FileLoss::Overwritten { position: 0 }));
    }
    let number = segment.header.number;
    if let Some(known) = known.filter(|known| known.segment_number == number)
        && sum_of(segment, &path, known.from, known.to)? != known.crc32c
    {
        return Err(lost(&path, FileLoss::Overwritten { position: known.from }));
    }
    // A writer that moves it all the time may not let it be read: then the next look compares with the same.
    let Some(mark) = segment.mark(JOURNALED_MARK_OFFSET) else { return Ok(known) };
    let to = mark.first & !SEALED_BIT;
    // Together at least one frame with its header, which is never all zeros.
    let length = KNOWN_LENGTH_MAX.max(segment.header.frame_length_max.into());
    let from = segment.header.frames_offset.max(to.saturating_sub(length));
    let crc32c = sum_of(segment, &path, from, to)?;
    Ok(Some(KnownFrames { segment_number: number, from, to, crc32c }))
}

fn sum_of(segment: &Segment, path: &Path, from: u64, to: u64) -> Result<u32, JournalError> {
    let mut bytes = vec![0; to.saturating_sub(from) as usize];
    read(&segment.file, path, &mut bytes, from)?;
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
