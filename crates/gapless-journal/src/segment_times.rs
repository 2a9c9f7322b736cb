//! Time stamps on which neighbouring segments must agree: two diverged journals have the same stream, incarnation and
//! sequences, but different time stamps.

use crate::own_file::open_to_write;
use std::fs::File;
use std::path::Path;

use crate::descriptor::{self as d, FixedHeader};
use crate::error::JournalError;
use crate::index;
use crate::mapping::FileMapping;
use crate::mark::{self, MarkWriter};
use crate::scan;

/// Writes the time stamp of the segment's last frame to its header, and returns it. 0 if that frame is missing: its
/// reader reports the damage.
pub(crate) fn write_last_time(path: &Path, first_sequence: u64, last_sequence: u64) -> Result<u64, JournalError> {
    let failed = |action, error| JournalError::io(action, path, error);
    let file = open_to_write(path)?;
    let page = FileMapping::read_write(&file, d::HEADER_PAGE_LENGTH).map_err(|error| failed("map", error))?;
    let noted = mark::read(page.mark(d::TIMES_MARK_OFFSET)).unwrap_or_default();
    if noted.second != 0 {
        return Ok(noted.second);
    }
    let last_ns = of_last(&file, (first_sequence, last_sequence)).map_err(|error| failed("read", error))?;
    if last_ns != 0 {
        let words = page.mark(d::TIMES_MARK_OFFSET);
        MarkWriter::continue_from(words).write(words, noted.first, last_ns);
    }
    Ok(last_ns)
}

fn of_last(file: &File, (first_sequence, last_sequence): (u64, u64)) -> std::io::Result<u64> {
    use std::os::unix::fs::FileExt;
    let mut fixed = [0; d::FIXED_LENGTH];
    file.read_exact_at(&mut fixed, 0)?;
    let Ok(header) = FixedHeader::from_bytes(&fixed) else { return Ok(0) };
    let mapping = FileMapping::read_only(file, header.segment_length.min(file.metadata()?.len()) as usize)?;
    let frames_offset = header.frames_offset as usize;
    let Some(journaled) = mark::read(mapping.mark(d::JOURNALED_MARK_OFFSET)) else { return Ok(0) };
    let end = (journaled.first & !d::SEALED_BIT) as usize;
    if !(frames_offset..=mapping.length()).contains(&end) {
        return Ok(0);
    }
    // SAFETY: the segment is sealed, so its frames do not change any more.
    #[allow(unsafe_code)]
    let frames = unsafe { mapping.bytes(frames_offset..end) };
    let words = mapping.words(d::INDEX_OFFSET, d::index_entries(header.segment_length) * 2);
    let nearest = index::last_entry(words, last_sequence)
        .filter(|&(_, position)| (frames_offset..end).contains(&position))
        .map(|(sequence, position)| (sequence, position - frames_offset));
    for (sequence, position) in nearest.into_iter().chain([(first_sequence, 0)]) {
        let mut last_ns = 0;
        let limit = header.frame_length_max as usize;
        let stop = scan::scan(frames, position, sequence, limit, |frame, _, _, _| {
            if !scan::is_record(frame) {
                last_ns = frame.timestamp_ns();
            }
        });
        if stop.last_sequence == last_sequence {
            return Ok(last_ns);
        }
    }
    Ok(0)
}
