//! `Region` as mapped words.

use super::{AtomicU64, LogError, REGION_LENGTH_MAX};
use crate::sealed::{self, foreign, system};
use crate::sync::Ordering;
use gapless_agent::process_mark::ProcessMark;
use gapless_wire::prefetch::{prefetch_bytes, prefetch_bytes_for_writing};
use gapless_wire::words::{copy_words, copy_words_to_unwritten};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use rustix::thread::futex;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

const PAGE: usize = 4096;

pub struct Region {
    base: NonNull<u8>,
    length: usize,
    fd: OwnedFd,
    mapped_by: ProcessMark,
}

// SAFETY: the mapping belongs to this value until it is dropped, and all access to it is by atomics or by copies of
// words.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// `length` is a multiple of the page. No process can change it, and processes of other users cannot open the
    /// region by a path below `/proc`.
    ///
    /// # Errors
    /// The length is 0, not whole pages or above [`REGION_LENGTH_MAX`], or the operating system refuses.
    pub fn create(length: usize) -> Result<Self, LogError> {
        if length == 0 || !length.is_multiple_of(PAGE) || length > REGION_LENGTH_MAX {
            let expected = format!("whole pages, up to {REGION_LENGTH_MAX} bytes");
            return Err(foreign("a region's length", length, expected));
        }
        let fd = sealed::create("gapless-region")?;
        sealed::size(&fd, length as u64, "a region")?;
        rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR).map_err(system("limiting a region to its user"))?;
        sealed::seal(&fd, SealFlags::empty())?;
        Self::map(fd, length, true)
    }

    /// Opens the region of exactly `length` bytes that another process made and passed.
    ///
    /// # Errors
    /// [`LogError::Foreign`] unless it is memory of that length, and the length is sealed.
    pub fn open(fd: OwnedFd, length: usize, writable: bool) -> Result<Self, LogError> {
        sealed::check(&fd)?;
        let found = rustix::fs::fstat(&fd).map_err(system("reading a region's length"))?.st_size;
        if found as u64 != length as u64 || length == 0 || length > REGION_LENGTH_MAX {
            return Err(foreign("a region's length", found, length));
        }
        Self::map(fd, length, writable)
    }

    fn map(fd: OwnedFd, length: usize, writable: bool) -> Result<Self, LogError> {
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
        let base = unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, &fd, 0) }
            .map_err(system(format!("mapping a region of {length} bytes")))?;
        let base = NonNull::new(base.cast::<u8>()).expect("the kernel never maps the null page");
        let region = Self { base, length, fd, mapped_by: ProcessMark::current() };
        // SAFETY: the mapping is ours, and the memory of children does not matter here.
        unsafe { madvise(base.as_ptr().cast(), length, Advice::LinuxDontFork) }
            .map_err(system("keeping a region from children"))?;
        Ok(region)
    }

    #[inline]
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }

    /// False in a forked child, where an access kills the process.
    #[inline]
    #[must_use]
    pub fn is_mapped_here(&self) -> bool {
        self.mapped_by.is_here()
    }

    /// The receiver can also write.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A new descriptor that cannot write.
    ///
    /// # Errors
    /// The operating system has no descriptors left, or does not show them under `/proc`.
    pub fn read_only_fd(&self) -> Result<OwnedFd, LogError> {
        sealed::read_only(&self.fd)
    }

    /// The word at byte `offset`.
    ///
    /// # Panics
    /// If `offset` (bytes) is not aligned or out of bounds.
    #[inline]
    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        &self.words(offset, 8)[0]
    }

    #[inline]
    fn words(&self, offset: usize, length: usize) -> &[AtomicU64] {
        let is_inside = offset <= self.length && length <= self.length - offset;
        assert!(is_inside && offset.is_multiple_of(8) && length.is_multiple_of(8));
        // SAFETY: the range is inside the mapping, aligned, and alive as long as self; words may be shared because they
        // are atomics.
        unsafe { std::slice::from_raw_parts(self.base.add(offset).cast::<AtomicU64>().as_ptr(), length / 8) }
    }

    /// Reads each word once. Another process may be writing them: only the copy may be used.
    ///
    /// # Panics
    /// If `offset` is not a multiple of 8, or the range is out of bounds.
    #[inline]
    pub fn load(&self, offset: usize, bytes: &mut [u8]) {
        let whole = bytes.len() / 8 * 8;
        let words = self.words(offset, bytes.len().next_multiple_of(8));
        copy_words(&words[..whole / 8], &mut bytes[..whole]);
        if whole != bytes.len() {
            // Relaxed: ordered by the claim, as the whole words are.
            let last = words[whole / 8].load(Ordering::Relaxed).to_ne_bytes();
            let rest = bytes.len() - whole;
            bytes[whole..].copy_from_slice(&last[..rest]);
        }
    }

    /// Replaces `buffer`, without zeroing it first.
    ///
    /// # Panics
    /// As [`Region::load`].
    #[inline]
    pub fn load_into(&self, offset: usize, length: usize, buffer: &mut Vec<u8>) {
        let (whole, rest) = self.words(offset, length.next_multiple_of(8)).split_at(length / 8);
        buffer.clear();
        if buffer.capacity() < length {
            // A growing buffer would double its capacity, and keep it.
            *buffer = Vec::with_capacity(length);
        }
        copy_words_to_unwritten(whole, &mut buffer.spare_capacity_mut()[..whole.len() * 8]);
        // SAFETY: this many bytes were just written.
        unsafe { buffer.set_len(whole.len() * 8) };
        if let Some(last) = rest.first() {
            // Relaxed: as the words before it.
            buffer.extend_from_slice(&last.load(Ordering::Relaxed).to_ne_bytes()[..length % 8]);
        }
    }

    /// Pads with zeros to a whole word.
    ///
    /// # Panics
    /// If `offset` is not a multiple of 8, or the range is out of bounds. The process is killed if the region was
    /// opened read-only.
    #[inline]
    pub fn store(&self, offset: usize, bytes: &[u8]) {
        let words = self.words(offset, bytes.len().next_multiple_of(8));
        let (whole, rest) = bytes.as_chunks::<8>();
        if whole.len() >= 64 {
            // SAFETY: the range is inside the mapping and `bytes` is borrowed from elsewhere. A concurrent reader reads
            // single words by atomics, in another process, and uses none before the claim has changed hands.
            unsafe {
                let target = self.base.add(offset).as_ptr();
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, whole.len() * 8);
            }
        } else {
            for (word, source) in words.iter().zip(whole) {
                // Relaxed: published by the Release of the claim.
                word.store(u64::from_ne_bytes(*source), Ordering::Relaxed);
            }
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            words[whole.len()].store(u64::from_ne_bytes(last), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn prefetch_for_writing(&self, offset: usize, length: usize) {
        prefetch_bytes_for_writing(self.words(offset, length.next_multiple_of(8)).as_ptr().cast(), length);
    }

    #[inline]
    pub(crate) fn prefetch(&self, offset: usize, length: usize) {
        prefetch_bytes(self.words(offset, length.next_multiple_of(8)).as_ptr().cast(), length);
    }

    /// Releases the whole pages in the range; they are zeros afterwards.
    ///
    /// # Errors
    /// The operating system refuses.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn release_pages(&self, offset: usize, length: usize) -> Result<(), LogError> {
        assert!(offset <= self.length && length <= self.length - offset);
        let first = offset.next_multiple_of(PAGE);
        let end = (offset + length) / PAGE * PAGE;
        if first >= end {
            return Ok(());
        }
        // SAFETY: the pages are inside the mapping; atomics read zeros there afterwards.
        unsafe { madvise(self.base.add(first).cast().as_ptr(), end - first, Advice::LinuxRemove) }
            .map_err(system("giving pages of a region back"))
    }

    /// Sleeps while the low half of the word is `expected`, until [`Region::wake`] or for `timeout`. May wake
    /// spuriously.
    ///
    /// # Panics
    /// If `offset` is not aligned or out of bounds.
    pub fn wait(&self, offset: usize, expected: u32, timeout: Duration) {
        let timeout =
            futex::Timespec { tv_sec: timeout.as_secs().min(1 << 30) as i64, tv_nsec: timeout.subsec_nanos().into() };
        // The caller looks again after all errors: changed value, signal, timeout.
        let _ = futex::wait(self.low_half(offset), futex::Flags::empty(), expected, Some(&timeout));
    }

    /// Wakes `count` threads of any process.
    ///
    /// # Panics
    /// If `offset` is not aligned or out of bounds.
    pub fn wake(&self, offset: usize, count: u32) {
        // Fails only for an address that is not mapped.
        let _ = futex::wake(self.low_half(offset), futex::Flags::empty(), count);
    }

    #[inline]
    fn low_half(&self, offset: usize) -> &AtomicU32 {
        const { assert!(cfg!(target_endian = "little"), "the low half of a word is its first four bytes") };
        let word: *const AtomicU64 = self.word(offset);
        // SAFETY: the four bytes belong to a live atomic word, aligned to eight.
        unsafe { &*word.cast::<AtomicU32>() }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if !self.mapped_by.is_here() {
            // In a child the addresses may hold anything.
            return;
        }
        // SAFETY: the mapping is ours and nothing borrowed from self is left.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Region").field("length", &self.length).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_reuses_the_buffer() {
        let region = Region::create(PAGE).unwrap();
        let bytes: Vec<u8> = (0..PAGE).map(|index| (index * 7) as u8).collect();
        region.store(0, &bytes);
        for (offset, length) in [(0, 0), (8, 1), (8, 7), (16, 8), (8, 63), (0, 64), (8, 65), (64, 1_003), (8, PAGE - 8)]
        {
            let expected = &bytes[offset..offset + length];
            let mut buffer = vec![0xa5; length];
            let address = buffer.as_ptr();
            region.load_into(offset, length, &mut buffer);
            assert_eq!((&*buffer, buffer.as_ptr(), buffer.capacity()), (expected, address, length));
            let mut buffer = vec![0xa5; length / 2];
            region.load_into(offset, length, &mut buffer);
            assert_eq!((&*buffer, buffer.capacity()), (expected, length));
        }
    }

    #[test]
    #[should_panic(expected = "is_inside")]
    fn out_of_bounds_load_panics() {
        Region::create(PAGE).unwrap().load_into(8, PAGE, &mut Vec::new());
    }
}
