//! [`Segment`]: a segment file in the hands of its writer; layout: `descriptor`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex};

use gapless_agent::checked_file;
use rustix::fs::{FallocateFlags, SeekFrom};

use crate::boot::BootId;
use crate::descriptor::FixedHeader;
use crate::disk::{DiskOperation, sync_directory, unpoisoned};
use crate::error::JournalError;
use crate::mapping::FileMapping;
use crate::mark::{MarkValue, MarkWriter};
use crate::options::{Flush, JournalOptions};
use crate::{descriptor as d, mark};

/// Keeps the steps of a helper thread short.
const ZERO_STEP_LENGTH: usize = 4 << 20;
/// A kernel keeps the bytes of one write as one large page, and examines each of its blocks at every later write into
/// it. After writes of 1 MiB, ext4 takes 1.9 µs for a frame of 223 bytes; after these 0.6 µs.
const ZERO_PIECE_LENGTH: usize = 16 << 10;

pub(crate) const FIRST_NUMBER: u64 = 1;

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) header: FixedHeader,
    pub(crate) file: Arc<File>,
    /// Whole file for [`Flush::Mapped`], header page and index for [`Flush::Write`].
    pub(crate) mapping: FileMapping,
    /// End of the present pages; moved only by the helper thread.
    pub(crate) populated_until: AtomicUsize,
    /// End of the written and unmapped pages; moved only by the helper thread.
    pub(crate) retired_until: AtomicUsize,
    path: Mutex<PathBuf>,
}

impl Segment {
    pub(crate) fn map(path: PathBuf, file: File, header: FixedHeader, flush: Flush) -> Result<Self, JournalError> {
        let length = match flush {
            Flush::Mapped => header.segment_length,
            Flush::Write => header.frames_offset,
        };
        let mapping =
            FileMapping::read_write(&file, length as usize).map_err(|error| JournalError::io("map", &path, error))?;
        let populated_until = AtomicUsize::new(header.frames_offset as usize);
        let retired_until = AtomicUsize::new(header.frames_offset as usize);
        Ok(Self { header, file: Arc::new(file), mapping, populated_until, retired_until, path: Mutex::new(path) })
    }

    pub(crate) fn path(&self) -> PathBuf {
        unpoisoned(self.path.lock()).clone()
    }

    pub(crate) fn set_path(&self, path: PathBuf) {
        *unpoisoned(self.path.lock()) = path;
    }

    pub(crate) fn mark(&self, offset: usize) -> Option<MarkValue> {
        mark::read(self.mapping.mark(offset))
    }

    #[inline]
    pub(crate) fn move_mark(
        &self,
        writer: &mut MarkWriter,
        offset: usize,
        value: (u64, u64),
        marks: Flush,
    ) -> io::Result<()> {
        match marks {
            Flush::Mapped => writer.write(self.mapping.mark(offset), value.0, value.1),
            Flush::Write => {
                let (place, bytes) = writer.next_slot(value.0, value.1);
                // Readers get the mark by the kernel's stores: earlier stores to the mapping must be visible before
                // them, as with the release stores of `MarkWriter::write`.
                fence(Ordering::Release);
                self.file.write_all_at(&bytes, (offset + place) as u64)?;
            }
        }
        Ok(())
    }

    pub(crate) fn write_mark(&self, offset: usize, first: u64, second: u64) {
        let words = self.mapping.mark(offset);
        MarkWriter::continue_from(words).write(words, first, second);
    }

    pub(crate) fn mark_writer(&self, offset: usize) -> MarkWriter {
        MarkWriter::continue_from(self.mapping.mark(offset))
    }

    pub(crate) fn open_for(&self, first_sequence: u64, epoch_ns: u64) {
        self.write_mark(d::JOURNALED_MARK_OFFSET, self.header.frames_offset, first_sequence - 1);
        // Last: from here on recovery treats this as a segment of the journal.
        self.write_mark(d::OPENED_MARK_OFFSET, first_sequence, epoch_ns);
    }

    pub(crate) fn index(&self) -> &[AtomicU64] {
        self.mapping.words(d::INDEX_OFFSET, d::index_entries(self.header.segment_length) * 2)
    }

    pub(crate) fn sync_header(&self) -> io::Result<()> {
        self.mapping.sync(0..d::HEADER_PAGE_LENGTH)
    }
}

#[derive(Debug)]
pub(crate) struct SegmentPreparation {
    file: File,
    path: PathBuf,
    header: FixedHeader,
    /// End of the zeroed bytes; the segment's length if no zeros are required.
    zeroed_until: u64,
}

impl SegmentPreparation {
    /// A full disk fails here, and not later.
    pub(crate) fn begin(options: &JournalOptions, header: FixedHeader) -> Result<Self, JournalError> {
        let path = options.directory.join(d::prepared_name(header.number));
        let file = checked_file::create(&path, 0o600).map_err(|error| JournalError::io("create", &path, error))?;
        let room = options.environment.check_disk(DiskOperation::Allocate);
        match room.and_then(|()| allocate(&file, header.segment_length)) {
            Ok(is_allocated) => {
                let is_first = header.number == FIRST_NUMBER;
                let is_zeroed = options.zeroing.is_of(is_first) || !is_allocated;
                let zeroed_until = if is_zeroed { 0 } else { header.segment_length };
                Ok(Self { file, path, header, zeroed_until })
            }
            Err(error) => {
                // Frees space allocated before the disk was full.
                let _removed = checked_file::remove(&path);
                Err(JournalError::allocation(path, header.segment_length, error))
            }
        }
    }

    pub(crate) fn step(&mut self) -> Result<bool, JournalError> {
        let end = self.header.segment_length;
        if self.zeroed_until < end {
            let until = end.min(self.zeroed_until + ZERO_STEP_LENGTH as u64);
            let mapped_until = until.min(self.header.frames_offset);
            let written = write_zero_pages(&self.file, self.zeroed_until, mapped_until)
                .and_then(|()| write_zeros(&self.file, self.zeroed_until.max(mapped_until), until))
                .and_then(|()| self.file.sync_data());
            if let Err(error) = written {
                let _removed = checked_file::remove(&self.path);
                return Err(JournalError::allocation(&self.path, end, error));
            }
            self.zeroed_until = until;
        }
        Ok(self.zeroed_until == end)
    }

    pub(crate) fn finish(self, flush: Flush, boot_id: Option<BootId>) -> Result<Segment, JournalError> {
        let Self { file, path, header, .. } = self;
        let segment = Segment::map(path.clone(), file, header, flush)?;
        let (low, high) = BootId::to_words(boot_id);
        segment.write_mark(d::BOOT_MARK_OFFSET, low, high);
        segment.write_mark(d::JOURNALED_MARK_OFFSET, header.frames_offset, 0);
        segment.write_mark(d::SYNCED_MARK_OFFSET, 0, 0);
        segment.write_mark(d::FAILED_MARK_OFFSET, 0, 0);
        segment.write_mark(d::OPENED_MARK_OFFSET, 0, 0);
        // After the marks are on the device: a segment with a fixed header has its marks, even after an interruption.
        let sync = || segment.file.sync_all().map_err(|error| JournalError::io("sync", &path, error));
        sync()?;
        let written = segment.file.write_all_at(&header.to_bytes(), 0);
        written.map_err(|error| JournalError::io("write", &path, error))?;
        sync()?;
        sync_directory(path.parent().unwrap_or(&path))?;
        Ok(segment)
    }
}

/// Returns `false` if the file system cannot reserve blocks, so that zeros must be written.
pub(crate) fn allocate(file: &File, length: u64) -> io::Result<bool> {
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                file.set_len(length)?;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

pub(crate) fn write_zeros(file: &File, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0u8; ((to - from) as usize).min(ZERO_PIECE_LENGTH)];
    let mut position = from;
    while position < to {
        let piece = zeros.len().min((to - position) as usize);
        file.write_all_at(&zeros[..piece], position)?;
        position += piece as u64;
    }
    Ok(())
}

/// One page at a time, for parts with small changes that are synced often: after one large write, a sync would write
/// all of it for one store.
fn write_zero_pages(file: &File, from: u64, to: u64) -> io::Result<()> {
    (from..to).step_by(d::PAGE_LENGTH).try_for_each(|position| file.write_all_at(&[0; d::PAGE_LENGTH], position))
}

/// Position after the last nonzero byte. Skips holes known to the file system.
pub(crate) fn end_of_nonzero(file: &File, from: u64, to: u64) -> io::Result<Option<u64>> {
    let mut buffer = vec![0u8; 1 << 20];
    // Byte by byte, an empty segment takes seconds in an unoptimised build.
    let zeros = buffer.clone();
    let mut end = None;
    let mut position = from;
    while position < to {
        position = match rustix::fs::seek(file, SeekFrom::Data(position)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => break,
            // The file system does not know its holes.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => position,
            Err(error) => return Err(error.into()),
        };
        let hole = rustix::fs::seek(file, SeekFrom::Hole(position)).unwrap_or(to).min(to);
        while position < hole {
            let piece = buffer.len().min((hole - position) as usize);
            let read = file.read_at(&mut buffer[..piece], position)?;
            if read == 0 {
                return Ok(end);
            }
            if buffer[..read] != zeros[..read]
                && let Some(last) = buffer[..read].iter().rposition(|&byte| byte != 0)
            {
                end = Some(position + last as u64 + 1);
            }
            position += read as u64;
        }
        position = position.max(hole);
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Zeroing;

    #[test]
    fn data_end_is_found_among_holes() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 << 20).unwrap();
        assert_eq!(end_of_nonzero(&file, 0, 8 << 20).unwrap(), None);
        file.write_all_at(&[0, 7, 0, 0], 5_000_001).unwrap();
        file.write_all_at(&[1], 100).unwrap();
        assert_eq!(end_of_nonzero(&file, 0, 8 << 20).unwrap(), Some(5_000_003));
        assert_eq!(end_of_nonzero(&file, 5_000_003, 8 << 20).unwrap(), None);
        assert_eq!(end_of_nonzero(&file, 64, 4_000_000).unwrap(), Some(101));
    }

    #[test]
    fn zeros_cover_the_exact_range() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[1; 3000], 0).unwrap();
        write_zeros(&file, 1000, 2001).unwrap();
        let mut bytes = [9; 3000];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes[..1000].iter().chain(&bytes[2001..]).all(|&byte| byte == 1));
        assert!(bytes[1000..2001].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn prepared_segment_is_not_open() {
        let directory = tempfile::tempdir().unwrap();
        let header = FixedHeader {
            stream_id: 1,
            incarnation: 2,
            number: 1,
            segment_length: 1 << 20,
            frames_offset: d::frames_offset(1 << 20),
            frame_length_max: 1376,
        };
        for (zeroing, number, is_zeroed) in [
            (Zeroing::None, 1, false),
            (Zeroing::First, 1, true),
            (Zeroing::First, 2, false),
            (Zeroing::All, 1, true),
            (Zeroing::All, 2, true),
        ] {
            let mut options = JournalOptions::new(directory.path(), 1);
            options.zeroing = zeroing;
            let header = FixedHeader { number, ..header };
            let mut preparation = SegmentPreparation::begin(&options, header).unwrap();
            while !preparation.step().unwrap() {}
            let segment = preparation.finish(Flush::Mapped, None).unwrap();
            assert_eq!(segment.mark(d::OPENED_MARK_OFFSET).unwrap().first, 0);
            assert_eq!(segment.file.metadata().unwrap().len(), 1 << 20);
            // A file system that cannot reserve blocks has all of them written.
            let hole = rustix::fs::seek(&*segment.file, SeekFrom::Hole(header.frames_offset)).unwrap();
            assert!(!is_zeroed || hole == 1 << 20, "{zeroing:?} {number}: a hole at {hole}");
            segment.open_for(17, 5);
            assert_eq!(segment.mark(d::OPENED_MARK_OFFSET).unwrap().first, 17);
            assert_eq!(segment.mark(d::JOURNALED_MARK_OFFSET).unwrap().second, 16);
        }
    }
}
