//! [`Memory`]: the mapped words of a window or a ring. Anonymous, shared and file-backed memory look
//! the same from here on; under loom it is a vector of loom's atomics.
//!
//! This module owns all mapping and all raw access of the crate.

use crate::LogError;
use crate::descriptor as d;
use crate::sync::AtomicU64;

/// Where the words of a mapping live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// This process only (children and threads included).
    Anonymous,
    /// A sealed memory file whose descriptor can be passed to another process; nobody can shrink it,
    /// so no access to it ever faults.
    Shared,
    /// A file that another process opens by its path. Created with mode 0600.
    File(std::path::PathBuf),
}

/// What a mapping's header says of its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// [`d::KIND_WINDOW`] or [`d::KIND_RING`].
    pub kind: u64,
    /// Data bytes, a power of two.
    pub capacity: usize,
    /// Index entries, a power of two or 0.
    pub index_slots: usize,
}

impl Shape {
    pub(crate) fn check(&self) -> Result<(), LogError> {
        let in_range = (d::CAPACITY_MIN..=d::CAPACITY_MAX).contains(&self.capacity);
        if !in_range || !self.capacity.is_power_of_two() {
            return Err(LogError::Capacity {
                what: "the capacity",
                found: self.capacity,
                min: d::CAPACITY_MIN,
                max: d::CAPACITY_MAX,
            });
        }
        if self.index_slots != 0 && (!self.index_slots.is_power_of_two() || self.index_slots > self.capacity) {
            return Err(LogError::Capacity {
                what: "the number of index slots",
                found: self.index_slots,
                min: 1,
                max: self.capacity,
            });
        }
        Ok(())
    }

    /// Bytes of the index, rounded up to whole pages.
    #[cfg(not(loom))]
    const fn index_length(&self) -> usize {
        (self.index_slots * 8).next_multiple_of(4096)
    }

    #[cfg(not(loom))]
    const fn file_length(&self) -> usize {
        d::HEADER_LENGTH + self.index_length() + self.capacity
    }
}

#[cfg(not(loom))]
pub use mapped::Memory;
#[cfg(loom)]
pub use modelled::Memory;

#[cfg(not(loom))]
mod mapped {
    use super::{AtomicU64, LogError, MemoryKind, Shape, d};
    use crate::sync::Ordering;
    use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
    use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
    use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
    use std::path::Path;
    use std::ptr::NonNull;

    /// A mapping: header words, index words and data, the data mapped twice in a row.
    pub struct Memory {
        base: NonNull<u8>,
        data: NonNull<u8>,
        mapped_length: usize,
        shape: Shape,
        fd: OwnedFd,
    }

    // SAFETY: the mapping belongs to this value alone until it is dropped; shared access goes through
    // atomics, and the byte slices handed out follow the claim and gating protocol of window and ring.
    unsafe impl Send for Memory {}
    // SAFETY: as above.
    unsafe impl Sync for Memory {}

    fn system(action: impl Into<String>) -> impl FnOnce(rustix::io::Errno) -> LogError {
        let action = action.into();
        move |errno| LogError::System { action, source: errno.into() }
    }

    impl Memory {
        /// Makes a new mapping, all of it in memory already, and writes its shape.
        ///
        /// # Errors
        /// A capacity out of range, or the operating system's refusal.
        pub fn create(kind: &MemoryKind, shape: Shape) -> Result<Self, LogError> {
            shape.check()?;
            let length = shape.file_length() as u64;
            let fd = match kind {
                MemoryKind::Anonymous => rustix::fs::memfd_create("gapless", MemfdFlags::CLOEXEC)
                    .map_err(system("creating anonymous memory"))?,
                MemoryKind::Shared => {
                    rustix::fs::memfd_create("gapless-shared", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
                        .map_err(system("creating shared memory"))?
                }
                MemoryKind::File(path) => {
                    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                    rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
                        .map_err(system(format!("creating {}", path.display())))?
                }
            };
            rustix::fs::ftruncate(&fd, length).map_err(system(format!("sizing a mapping of {length} bytes")))?;
            // Space is taken now, so that a full file system is this error and never a bus error later.
            rustix::fs::fallocate(&fd, rustix::fs::FallocateFlags::empty(), 0, length)
                .map_err(system(format!("allocating a mapping of {length} bytes")))?;
            if *kind == MemoryKind::Shared {
                rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
                    .map_err(system("sealing shared memory"))?;
            }
            let memory = Self::map(fd, shape, true)?;
            memory.header_word(d::KIND_WORD).store(shape.kind, Ordering::Relaxed);
            memory.header_word(d::CAPACITY_WORD).store(shape.capacity as u64, Ordering::Relaxed);
            memory.header_word(d::INDEX_SLOTS_WORD).store(shape.index_slots as u64, Ordering::Relaxed);
            // Release: whoever sees the magic sees the shape (pairs with the Acquire in `open`).
            memory.header_word(d::MAGIC_WORD).store(d::MAGIC, Ordering::Release);
            Ok(memory)
        }

        /// Opens a mapping that another process made, from its path.
        ///
        /// # Errors
        /// As [`Memory::open`].
        pub fn open_file(path: &Path, kind: u64, writable: bool) -> Result<Self, LogError> {
            let access = if writable { OFlags::RDWR } else { OFlags::RDONLY };
            let fd = rustix::fs::open(path, access | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
                .map_err(system(format!("opening {}", path.display())))?;
            Self::open(fd, kind, writable)
        }

        /// Opens a mapping that another process made, from a descriptor that it passed.
        ///
        /// # Errors
        /// [`LogError::Foreign`] unless magic, kind, shape and file length agree.
        pub fn open(fd: OwnedFd, kind: u64, writable: bool) -> Result<Self, LogError> {
            let mut header = [0u8; 64];
            let read = rustix::io::pread(&fd, &mut header, 0).map_err(system("reading a mapping's header"))?;
            let word = |number: usize| {
                u64::from_le_bytes(*header[number * 8..].first_chunk().expect("the header holds eight words"))
            };
            let foreign = |field, found: u64, expected: u64| LogError::Foreign {
                field,
                found: format!("{found:#x}"),
                expected: format!("{expected:#x}"),
            };
            if read < header.len() || word(d::MAGIC_WORD) != d::MAGIC {
                return Err(foreign("magic", word(d::MAGIC_WORD), d::MAGIC));
            }
            if word(d::KIND_WORD) != kind {
                return Err(foreign("kind", word(d::KIND_WORD), kind));
            }
            let shape = Shape {
                kind,
                capacity: usize::try_from(word(d::CAPACITY_WORD)).unwrap_or(usize::MAX),
                index_slots: usize::try_from(word(d::INDEX_SLOTS_WORD)).unwrap_or(usize::MAX),
            };
            shape.check()?;
            let stat = rustix::fs::fstat(&fd).map_err(system("reading a mapping's length"))?;
            if stat.st_size as u64 != shape.file_length() as u64 {
                return Err(foreign("file length", stat.st_size as u64, shape.file_length() as u64));
            }
            Self::map(fd, shape, writable)
        }

        fn map(fd: OwnedFd, shape: Shape, writable: bool) -> Result<Self, LogError> {
            let first_length = shape.file_length();
            let mapped_length = first_length + shape.capacity;
            let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
            // SAFETY: a fresh reservation at an address of the kernel's choice overlaps nothing.
            let base =
                unsafe { mmap_anonymous(std::ptr::null_mut(), mapped_length, ProtFlags::empty(), MapFlags::PRIVATE) }
                    .map_err(system(format!("reserving {mapped_length} bytes of addresses")))?;
            let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::POPULATE;
            let data_offset = first_length - shape.capacity;
            let map_both = || {
                // SAFETY: both fixed mappings lie inside the reservation made above, which nobody else knows.
                unsafe {
                    mmap(base, first_length, protection, flags, &fd, 0)?;
                    mmap(
                        base.cast::<u8>().add(first_length).cast(),
                        shape.capacity,
                        protection,
                        flags,
                        &fd,
                        data_offset as u64,
                    )
                }
            };
            if let Err(errno) = map_both() {
                // SAFETY: the reservation is ours and nothing points into it.
                let _ = unsafe { munmap(base, mapped_length) };
                return Err(system(format!("mapping {first_length} bytes"))(errno));
            }
            let base = NonNull::new(base.cast::<u8>()).expect("the kernel never maps the null page");
            // SAFETY: data_offset is inside the mapping.
            let data = unsafe { base.add(data_offset) };
            Ok(Self { base, data, mapped_length, shape, fd })
        }

        /// The shape this mapping was made with.
        #[must_use]
        pub const fn shape(&self) -> Shape {
            self.shape
        }

        /// Data bytes.
        #[inline]
        #[must_use]
        pub const fn capacity(&self) -> usize {
            self.shape.capacity
        }

        /// The descriptor, to be passed to another process.
        #[must_use]
        pub fn fd(&self) -> BorrowedFd<'_> {
            self.fd.as_fd()
        }

        /// Header word `number`.
        #[inline]
        pub(crate) fn header_word(&self, number: usize) -> &AtomicU64 {
            assert!(number < d::HEADER_WORDS);
            // SAFETY: inside the header page, aligned, alive as long as self.
            unsafe { self.base.cast::<AtomicU64>().add(number).as_ref() }
        }

        /// The index word of `sequence`.
        #[inline]
        pub(crate) fn index_word(&self, sequence: u64) -> &AtomicU64 {
            let slot = sequence as usize & (self.shape.index_slots - 1);
            // SAFETY: slot < index_slots, so the word is inside the index, which follows the header page.
            unsafe { self.base.add(d::HEADER_LENGTH).cast::<AtomicU64>().add(slot).as_ref() }
        }

        /// The data words of `length` bytes from `position` on.
        #[inline]
        fn words(&self, position: u64, length: usize) -> &[AtomicU64] {
            let offset = position as usize & (self.shape.capacity - 1);
            assert!(length <= self.shape.capacity && offset.is_multiple_of(8) && length.is_multiple_of(8));
            // SAFETY: offset < capacity and length <= capacity, and the data is mapped twice in a row, so
            // the range is mapped; words may be shared because they are atomics.
            unsafe { std::slice::from_raw_parts(self.data.add(offset).cast::<AtomicU64>().as_ptr(), length / 8) }
        }

        /// The word at `position`.
        #[inline]
        pub(crate) fn load_word(&self, position: u64) -> u64 {
            // Relaxed: ordered by the Acquire load of the tail that made the position known.
            self.words(position, 8)[0].load(Ordering::Relaxed)
        }

        /// Copies words from `position` on into `bytes`, whose length is a multiple of 8.
        #[inline]
        pub(crate) fn load(&self, position: u64, bytes: &mut [u8]) {
            let words = self.words(position, bytes.len());
            for (word, target) in words.iter().zip(bytes.as_chunks_mut::<8>().0) {
                // Relaxed: ordered by the tail (ring) or validated afterwards (free cursor).
                *target = word.load(Ordering::Relaxed).to_ne_bytes();
            }
        }

        /// Copies `bytes`, whose length is a multiple of 8, into the words from `position` on.
        #[inline]
        pub(crate) fn store(&self, position: u64, bytes: &[u8]) {
            let words = self.words(position, bytes.len());
            for (word, source) in words.iter().zip(bytes.as_chunks::<8>().0) {
                // Relaxed: published by the Release store of the tail.
                word.store(u64::from_ne_bytes(*source), Ordering::Relaxed);
            }
        }

        /// The bytes from `position` on, in place.
        ///
        /// # Safety
        /// Nobody may write these bytes while the slice lives.
        #[inline]
        pub(crate) unsafe fn bytes(&self, position: u64, length: usize) -> &[u8] {
            let words = self.words(position, length.next_multiple_of(8));
            // SAFETY: the range is mapped (words checks it); the caller keeps writers away.
            unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), length) }
        }

        /// The bytes from `position` on, in place, for writing.
        ///
        /// # Safety
        /// The mapping must be writable, and nobody else may read or write these bytes while the slice
        /// lives, except by validated relaxed copies.
        #[inline]
        #[allow(clippy::mut_from_ref)]
        pub(crate) unsafe fn bytes_mut(&self, position: u64, length: usize) -> &mut [u8] {
            let words = self.words(position, length.next_multiple_of(8));
            // SAFETY: the range is mapped (words checks it) and shared memory is not frozen by the
            // reference to its atomics; the caller keeps everybody else away.
            unsafe { std::slice::from_raw_parts_mut(words.as_ptr().cast::<u8>().cast_mut(), length) }
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: the mapping is ours; every borrow of it has ended with self.
            let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.mapped_length) };
            debug_assert!(unmapped.is_ok(), "unmapping a live mapping cannot fail: {unmapped:?}");
        }
    }
}

#[cfg(loom)]
mod modelled {
    use super::{AtomicU64, LogError, MemoryKind, Shape, d};
    use crate::sync::Ordering;

    /// The words of a mapping as loom's atomics, so that the protocol above can be model-checked.
    pub struct Memory {
        header: Vec<AtomicU64>,
        index: Vec<AtomicU64>,
        data: Vec<AtomicU64>,
        shape: Shape,
    }

    impl Memory {
        /// A model ignores where its memory lives, and takes capacities below a page.
        pub fn create(_kind: &MemoryKind, shape: Shape) -> Result<Self, LogError> {
            let words = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
            Ok(Self {
                header: words(d::HEADER_WORDS),
                index: words(shape.index_slots),
                data: words(shape.capacity / 8),
                shape,
            })
        }

        pub fn capacity(&self) -> usize {
            self.shape.capacity
        }

        pub fn shape(&self) -> Shape {
            self.shape
        }

        pub(crate) fn header_word(&self, number: usize) -> &AtomicU64 {
            &self.header[number]
        }

        pub(crate) fn index_word(&self, sequence: u64) -> &AtomicU64 {
            &self.index[sequence as usize & (self.shape.index_slots - 1)]
        }

        fn word(&self, position: u64) -> &AtomicU64 {
            &self.data[position as usize / 8 % self.data.len()]
        }

        pub(crate) fn load_word(&self, position: u64) -> u64 {
            self.word(position).load(Ordering::Relaxed)
        }

        pub(crate) fn load(&self, position: u64, bytes: &mut [u8]) {
            for (number, target) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                *target = self.word(position + number as u64 * 8).load(Ordering::Relaxed).to_ne_bytes();
            }
        }

        pub(crate) fn store(&self, position: u64, bytes: &[u8]) {
            for (number, source) in bytes.as_chunks::<8>().0.iter().enumerate() {
                self.word(position + number as u64 * 8).store(u64::from_ne_bytes(*source), Ordering::Relaxed);
            }
        }
    }
}
