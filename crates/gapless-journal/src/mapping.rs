//! Mapped files: the only module of this crate that accesses memory by pointer. This crate never shortens a mapped
//! file; unlinking leaves its mappings intact. If another process truncates one, an access ends this process with
//! SIGBUS, which no program can prevent.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use gapless_wire::prefetch::{prefetch_bytes, prefetch_for_writing};
use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};

use crate::descriptor::{MARK_WORDS, PAGE_LENGTH};

#[derive(Debug)]
pub(crate) struct FileMapping {
    raw: MmapRaw,
    length: usize,
    writable: bool,
}

impl FileMapping {
    pub(crate) fn read_write(file: &File, length: usize) -> io::Result<Self> {
        Ok(Self { raw: MmapOptions::new().len(length).map_raw(file)?, length, writable: true })
    }

    pub(crate) fn read_only(file: &File, length: usize) -> io::Result<Self> {
        Ok(Self { raw: MmapOptions::new().len(length).map_raw_read_only(file)?, length, writable: false })
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// `offset`: a multiple of 8. Stores need a writable mapping.
    #[inline]
    pub(crate) fn words(&self, offset: usize, count: usize) -> &[AtomicU64] {
        assert!(offset.is_multiple_of(8) && offset <= self.length && count * 8 <= self.length - offset);
        // SAFETY: in bounds and aligned (asserted; the mapping begins at a page). Other threads and processes may
        // change atomics at any time. Words of headers and index entries are accessed only by atomics. A reader copies
        // a frame's words: those below the journaled mark that it has read do not change until a truncation, and torn
        // words fail their checksums in the copy.
        unsafe { std::slice::from_raw_parts(self.raw.as_ptr().add(offset).cast::<AtomicU64>(), count) }
    }

    #[inline]
    pub(crate) fn mark(&self, offset: usize) -> &[AtomicU64] {
        self.words(offset, MARK_WORDS)
    }

    /// Returns the bytes of `range`.
    ///
    /// # Safety
    /// No thread writes these bytes during the borrow: the caller holds the journal's lock and does not write. Without
    /// the lock, frames may be truncated and rewritten at any time, so a reader must copy words.
    #[inline]
    pub(crate) unsafe fn bytes(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.length);
        // SAFETY: in bounds (asserted), initialised by the kernel, constant as promised by the caller.
        unsafe { std::slice::from_raw_parts(self.raw.as_ptr().add(range.start), range.len()) }
    }

    /// Copies `bytes` to `position`.
    ///
    /// # Safety
    /// The caller is the journal's only writer, and `position` is at or after the journaled mark, so that no reader
    /// accesses these bytes before the mark moves past them.
    #[inline]
    pub(crate) unsafe fn copy_in(&self, position: usize, bytes: &[u8]) {
        assert!(self.writable && position <= self.length && bytes.len() <= self.length - position);
        // SAFETY: in bounds and writable (asserted). `bytes` cannot overlap the mapping: no `&mut` to it exists, and no
        // `&` reaches beyond the mark.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.raw.as_mut_ptr().add(position), bytes.len());
        }
    }

    #[inline]
    pub(crate) fn prefetch_for_writing(&self, position: usize) {
        prefetch_for_writing(self.raw.as_ptr().wrapping_add(position));
    }

    #[inline]
    pub(crate) fn prefetch(&self, position: usize, length: usize) {
        prefetch_bytes(self.raw.as_ptr().wrapping_add(position), length);
    }

    /// Makes whole pages present and writable, so that a later store does not fault. `Unsupported` on kernels before
    /// 5.14.
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

    /// [`FileMapping::populate`] on older kernels: stores a zero into every page.
    ///
    /// # Safety
    /// The pages hold zeros and have no other writer: the segment is not in use yet.
    pub(crate) unsafe fn touch(&self, range: Range<usize>) {
        assert!(self.writable && range.end <= self.length);
        for position in range.step_by(PAGE_LENGTH) {
            // SAFETY: in bounds and writable (asserted), without other writers as promised by the caller. Volatile,
            // because the store must happen even though it does not change the value.
            unsafe { self.raw.as_mut_ptr().add(position).write_volatile(0) };
        }
    }

    /// Unmaps whole written pages, so that the kernel need not revisit the mapping when it writes them. A later access
    /// maps them again. Only a hint: failures are ignored.
    pub(crate) fn retire(&self, range: Range<usize>) {
        let range = range.start..range.end.min(self.length);
        if !range.is_empty() {
            // SAFETY: a shared mapping of a file, so pages that are mapped again have the file's contents: no byte
            // changes.
            let _hint = unsafe { self.raw.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.len()) };
        }
    }

    /// Whole pages.
    pub(crate) fn sync(&self, range: Range<usize>) -> io::Result<()> {
        let range = range.start..range.end.min(self.length);
        if range.is_empty() { Ok(()) } else { self.raw.flush_range(range.start, range.len()) }
    }

    /// Maps `range` too. Only a hint: failures are ignored.
    pub(crate) fn read_ahead(&self, range: Range<usize>) {
        let range = range.start..range.end.min(self.length);
        if !range.is_empty() {
            let _hint = self.raw.advise_range(Advice::PopulateRead, range.start, range.len());
        }
    }
}
