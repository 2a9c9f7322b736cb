//! Mapped files: the only place of this crate where memory is touched by pointer.
//!
//! Used by segments (the writer's mapping) and by the reader. A file that is mapped here is never
//! made shorter by this crate; it may be unlinked, which leaves its mappings alone. A file that
//! somebody else cuts while it is mapped ends the process with SIGBUS, which no program can prevent.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use gapless_wire::prefetch::{prefetch_bytes, prefetch_for_writing};
use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};

use crate::descriptor::{MARK_WORDS, PAGE_LENGTH};

/// A shared mapping of the first bytes of a file.
#[derive(Debug)]
pub(crate) struct Mapping {
    raw: MmapRaw,
    length: usize,
    writable: bool,
}

impl Mapping {
    /// Maps the first `length` bytes for reading and writing.
    pub(crate) fn read_write(file: &File, length: usize) -> io::Result<Self> {
        Ok(Self { raw: MmapOptions::new().len(length).map_raw(file)?, length, writable: true })
    }

    /// Maps the first `length` bytes for reading.
    pub(crate) fn read_only(file: &File, length: usize) -> io::Result<Self> {
        Ok(Self { raw: MmapOptions::new().len(length).map_raw_read_only(file)?, length, writable: false })
    }

    /// How many bytes are mapped.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// `count` words of 8 bytes from `offset`, a multiple of 8. Stores need a writable mapping.
    #[inline]
    pub(crate) fn words(&self, offset: usize, count: usize) -> &[AtomicU64] {
        assert!(offset.is_multiple_of(8) && offset <= self.length && count * 8 <= self.length - offset);
        // SAFETY: in bounds and aligned (asserted; the mapping begins at a page). Atomics may be changed by other
        // threads and processes at any time. Words of headers and index entries are accessed by atomics alone. Of
        // frames a reader copies words: those below the journaled mark it has read do not change until a truncation,
        // and words that this tears fail their checksums in the copy.
        unsafe { std::slice::from_raw_parts(self.raw.as_ptr().add(offset).cast::<AtomicU64>(), count) }
    }

    /// The words of the mark at `offset`.
    #[inline]
    pub(crate) fn mark(&self, offset: usize) -> &[AtomicU64] {
        self.words(offset, MARK_WORDS)
    }

    /// The bytes of `range`.
    ///
    /// # Safety
    /// Nobody writes these bytes while the borrow lives: the caller holds the journal's lock and does not write. Without
    /// it frames may be cut and written anew at any time, so a reader copies words.
    #[inline]
    pub(crate) unsafe fn bytes(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.length);
        // SAFETY: in bounds (asserted), initialised by the kernel, unchanging by the caller's word.
        unsafe { std::slice::from_raw_parts(self.raw.as_ptr().add(range.start), range.len()) }
    }

    /// Copies `bytes` to `position`.
    ///
    /// # Safety
    /// The caller is the journal's one writer, and `position` is at or after the journaled mark, so that nobody reads
    /// these bytes before the mark moves over them.
    #[inline]
    pub(crate) unsafe fn copy_in(&self, position: usize, bytes: &[u8]) {
        assert!(self.writable && position <= self.length && bytes.len() <= self.length - position);
        // SAFETY: in bounds and writable (asserted); `bytes` cannot overlap a mapping of which no `&mut` exists and no
        // `&` reaches beyond the mark.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.raw.as_mut_ptr().add(position), bytes.len());
        }
    }

    /// Asks for the lines from `position` on, which will be written soon.
    #[inline]
    pub(crate) fn prefetch_for_writing(&self, position: usize) {
        prefetch_for_writing(self.raw.as_ptr().wrapping_add(position));
    }

    /// Asks for the lines of `length` bytes from `position` on, which will be read soon.
    #[inline]
    pub(crate) fn prefetch(&self, position: usize, length: usize) {
        prefetch_bytes(self.raw.as_ptr().wrapping_add(position), length);
    }

    /// Makes the pages of `range` (whole pages) present and writable, so that a later store does not
    /// fault. `Unsupported` on kernels before 5.14.
    pub(crate) fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let range = range.start..range.end.min(self.length);
        if range.is_empty() {
            return Ok(());
        }
        match self.raw.advise_range(Advice::PopulateWrite, range.start, range.len()) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(io::ErrorKind::Unsupported.into()),
            done => done,
        }
    }

    /// The same for kernels without that advice: stores a zero into every page of `range`.
    ///
    /// # Safety
    /// The pages hold zeros and nobody else writes them: the segment is not in use yet.
    pub(crate) unsafe fn touch(&self, range: Range<usize>) {
        assert!(self.writable && range.end <= self.length);
        for position in range.step_by(PAGE_LENGTH) {
            // SAFETY: in bounds and writable (asserted), not written by others by the caller's word. Volatile, because
            // a store of a value that is there already must still happen.
            unsafe { self.raw.as_mut_ptr().add(position).write_volatile(0) };
        }
    }

    /// Takes the pages of `range` (whole pages), which are written, out of this mapping; they stay in the file. The
    /// kernel need not come back to the mapping, page by page, when it puts them on the device. A later access finds
    /// them again. A hint, so its failure is of no account.
    pub(crate) fn retire(&self, range: Range<usize>) {
        let range = range.start..range.end.min(self.length);
        if !range.is_empty() {
            // SAFETY: the mapping is of a file and shared, so its pages hold what is in the file whenever they are
            // mapped again: no byte changes.
            let _hint = unsafe { self.raw.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.len()) };
        }
    }

    /// Puts the pages of `range` (whole pages) on the device.
    pub(crate) fn sync(&self, range: Range<usize>) -> io::Result<()> {
        let range = range.start..range.end.min(self.length);
        if range.is_empty() { Ok(()) } else { self.raw.flush_range(range.start, range.len()) }
    }

    /// Asks the kernel to read `range` ahead and to map it; a hint, so its failure is of no account.
    pub(crate) fn read_ahead(&self, range: Range<usize>) {
        let range = range.start..range.end.min(self.length);
        if !range.is_empty() {
            let _hint = self.raw.advise_range(Advice::PopulateRead, range.start, range.len());
        }
    }
}
