//! All raw access to windows and rings. Knows the sizes of the layout, but not the protocol in the words.

use super::{AtomicU64, LogError, MemoryKind, MemoryShape, d};
use crate::sealed::{self, foreign, system};
use crate::sync::Ordering;
use gapless_wire::prefetch::{prefetch_bytes, prefetch_bytes_for_writing, prefetch_for_writing};
use gapless_wire::words::copy_words;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FallocateFlags, FileType, Mode, OFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::process::geteuid;
use std::path::Path;
use std::ptr::NonNull;

pub struct Memory {
    base: NonNull<u8>,
    data: NonNull<u8>,
    mapped_length: usize,
    shape: MemoryShape,
    fd: OwnedFd,
}

// SAFETY: only this value owns the mapping until it is dropped. Shared access goes through atomics, and the byte slices
// handed out follow the claim and gating protocol of window and ring.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// The mapping is fully allocated.
    ///
    /// # Errors
    /// The capacity is out of range, or the operating system refuses.
    pub fn create(kind: &MemoryKind, shape: MemoryShape, words: &[(usize, u64)]) -> Result<Self, LogError> {
        shape.check()?;
        match kind {
            MemoryKind::Anonymous => {
                let memory = Self::fill(sealed::create("gapless")?, shape, words)?;
                sealed::seal(&memory.fd, SealFlags::empty())?;
                Ok(memory)
            }
            MemoryKind::Shared => {
                let memory = Self::fill(sealed::create("gapless-shared")?, shape, words)?;
                // Readers of a window never write, so no other process may map it for writing.
                let is_window = shape.kind == d::KIND_WINDOW;
                sealed::seal(&memory.fd, if is_window { SealFlags::FUTURE_WRITE } else { SealFlags::empty() })?;
                Ok(memory)
            }
            MemoryKind::File(path) => {
                // Another process may still map the old file, and would be killed if it were truncated.
                if let Err(errno) = rustix::fs::unlink(path)
                    && errno != rustix::io::Errno::NOENT
                {
                    return Err(system(format!("replacing {}", path.display()))(errno));
                }
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                let fd = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)
                    .map_err(system(format!("creating {}", path.display())))?;
                Self::fill(fd, shape, words).inspect_err(|_| {
                    // A failure to remove half a mapping adds nothing to the error.
                    let _ = rustix::fs::unlink(path);
                })
            }
        }
    }

    fn fill(fd: OwnedFd, shape: MemoryShape, words: &[(usize, u64)]) -> Result<Self, LogError> {
        let length = shape.file_length() as u64;
        sealed::size(&fd, length, "a mapping")?;
        // Now, so that a full file system is this error instead of a bus error later.
        rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, length)
            .map_err(system(format!("allocating a mapping of {length} bytes")))?;
        let memory = Self::map(fd, shape, true)?;
        let shape_words = [
            (d::KIND_WORD, shape.kind),
            (d::CAPACITY_WORD, shape.capacity as u64),
            (d::INDEX_SLOTS_WORD, shape.index_slots as u64),
        ];
        for (number, value) in shape_words.iter().chain(words) {
            // Relaxed: published by the magic.
            memory.header_word(*number).store(*value, Ordering::Relaxed);
        }
        // Release: a process that sees the magic sees the rest (pairs with the Acquire in `adopt`).
        memory.header_word(d::MAGIC_WORD).store(d::MAGIC, Ordering::Release);
        Ok(memory)
    }

    /// Opens a [`MemoryKind::File`] mapping of another process by its path.
    ///
    /// # Errors
    /// [`LogError::Foreign`] unless it is a file of this process's user, and as [`Memory::open`].
    pub fn open_file(path: &Path, kind: u64, writable: bool) -> Result<Self, LogError> {
        let access = if writable { OFlags::RDWR } else { OFlags::RDONLY };
        // NONBLOCK: opening a pipe must not block.
        let flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(system(format!("opening {}", path.display())))?;
        // A file has no seals: its owner can truncate it under us, but that is our own user.
        let (owner, user) = (rustix::fs::fstat(&fd).map_err(system("reading a mapping's owner"))?.st_uid, geteuid());
        if owner != user.as_raw() {
            return Err(foreign("owner", owner, user.as_raw()));
        }
        Self::adopt(fd, kind, writable)
    }

    /// Opens a mapping of another process by a descriptor that it passed.
    ///
    /// # Errors
    /// [`LogError::Foreign`] unless it is memory whose length is sealed, and magic, kind, shape and file length agree.
    pub fn open(fd: OwnedFd, kind: u64, writable: bool) -> Result<Self, LogError> {
        sealed::check(&fd)?;
        Self::adopt(fd, kind, writable)
    }

    /// Call it only for memory that no untrusted process can truncate.
    fn adopt(fd: OwnedFd, kind: u64, writable: bool) -> Result<Self, LogError> {
        let stat = rustix::fs::fstat(&fd).map_err(system("reading a mapping's length"))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(foreign("file type", format!("{:?}", FileType::from_raw_mode(stat.st_mode)), "a regular file"));
        }
        let mut header = [0u8; 64];
        let read = rustix::io::pread(&fd, &mut header, 0).map_err(system("reading a mapping's header"))?;
        if read < header.len() {
            return Err(foreign("file length", stat.st_size, format!("at least {}", d::HEADER_LENGTH)));
        }
        let word = |number: usize| {
            u64::from_le_bytes(*header[number * 8..].first_chunk().expect("the header holds eight words"))
        };
        if word(d::MAGIC_WORD) != d::MAGIC {
            return Err(foreign("magic", format!("{:#x}", word(d::MAGIC_WORD)), format!("{:#x}", d::MAGIC)));
        }
        if word(d::KIND_WORD) != kind {
            return Err(foreign("kind", word(d::KIND_WORD), kind));
        }
        let shape = MemoryShape {
            kind,
            capacity: usize::try_from(word(d::CAPACITY_WORD)).unwrap_or(usize::MAX),
            index_slots: usize::try_from(word(d::INDEX_SLOTS_WORD)).unwrap_or(usize::MAX),
        };
        shape.check_found()?;
        if stat.st_size as u64 != shape.file_length() as u64 {
            return Err(foreign("file length", stat.st_size, shape.file_length()));
        }
        let memory = Self::map(fd, shape, writable)?;
        // Acquire: the words written before the magic are visible (pairs with the Release in `fill`).
        let magic = memory.header_word(d::MAGIC_WORD).load(Ordering::Acquire);
        if magic != d::MAGIC {
            return Err(foreign("magic", format!("{magic:#x}"), format!("{:#x}", d::MAGIC)));
        }
        Ok(memory)
    }

    fn map(fd: OwnedFd, shape: MemoryShape, writable: bool) -> Result<Self, LogError> {
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
            // SAFETY: both fixed mappings lie inside the reservation made above, which no other code knows.
            unsafe {
                mmap(base, first_length, protection, flags, &fd, 0)?;
                let second = base.cast::<u8>().add(first_length).cast();
                mmap(second, shape.capacity, protection, flags, &fd, data_offset as u64)
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

    #[must_use]
    pub const fn shape(&self) -> MemoryShape {
        self.shape
    }

    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.shape.capacity
    }

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

    #[inline]
    pub(crate) fn header_word(&self, number: usize) -> &AtomicU64 {
        assert!(number < d::HEADER_WORDS);
        // SAFETY: inside the header page, aligned, alive as long as self.
        unsafe { self.base.cast::<AtomicU64>().add(number).as_ref() }
    }

    /// Index word of `sequence`.
    ///
    /// # Panics
    /// If the mapping has no index.
    #[inline]
    pub(crate) fn index_word(&self, sequence: u64) -> &AtomicU64 {
        assert!(self.shape.index_slots != 0, "only a window has an index");
        let slot = sequence as usize & (self.shape.index_slots - 1);
        // SAFETY: slot < index_slots, so the word is inside the index, which follows the header page.
        unsafe { self.base.add(d::HEADER_LENGTH).cast::<AtomicU64>().add(slot).as_ref() }
    }

    #[inline]
    fn words(&self, position: u64, length: usize) -> &[AtomicU64] {
        let offset = position as usize & (self.shape.capacity - 1);
        assert!(length <= self.shape.capacity && offset.is_multiple_of(8) && length.is_multiple_of(8));
        // SAFETY: offset < capacity and length <= capacity, and the data is mapped twice in a row, so
        // the range is mapped; words may be shared because they are atomics.
        unsafe { std::slice::from_raw_parts(self.data.add(offset).cast::<AtomicU64>().as_ptr(), length / 8) }
    }

    /// The frame there must no longer be written.
    #[inline]
    pub(crate) fn load_word(&self, position: u64) -> u64 {
        // Relaxed: ordered by the Acquire load of the tail. Still atomic, because another process may break that
        // protocol.
        self.words(position, 8)[0].load(Ordering::Relaxed)
    }

    /// `bytes` has a multiple of 8; the frames must no longer be written.
    #[inline]
    pub(crate) fn load(&self, position: u64, bytes: &mut [u8]) {
        copy_words(self.words(position, bytes.len()), bytes);
    }

    /// Like [`Memory::load_word`], while the writer may be writing there: validate the result afterwards.
    #[inline]
    pub(crate) fn load_word_racing(&self, position: u64) -> u64 {
        self.load_word(position)
    }

    /// Like [`Memory::load`], while the writer may be writing there: validate the result afterwards.
    #[inline]
    pub(crate) fn load_racing(&self, position: u64, bytes: &mut [u8]) {
        self.load(position, bytes);
    }

    /// `bytes` has a multiple of 8.
    #[inline]
    pub(crate) fn store(&self, position: u64, bytes: &[u8]) {
        let words = self.words(position, bytes.len());
        for (word, source) in words.iter().zip(bytes.as_chunks::<8>().0) {
            // Relaxed: published by the Release store of the tail.
            word.store(u64::from_ne_bytes(*source), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn prefetch_for_writing(&self, position: u64) {
        prefetch_for_writing(self.words(position, 0).as_ptr().cast());
    }

    #[inline]
    pub(crate) fn prefetch_bytes_for_writing(&self, position: u64, length: usize) {
        prefetch_bytes_for_writing(self.words(position, 0).as_ptr().cast(), length);
    }

    #[inline]
    pub(crate) fn prefetch_bytes(&self, position: u64, length: usize) {
        prefetch_bytes(self.words(position, 0).as_ptr().cast(), length);
    }

    /// The bytes from `position` on, in place.
    ///
    /// # Safety
    /// These bytes must not be written while the slice lives.
    #[inline]
    pub(crate) unsafe fn bytes(&self, position: u64, length: usize) -> &[u8] {
        let words = self.words(position, length.next_multiple_of(8));
        // SAFETY: the range is mapped (words checks it); the caller keeps writers away.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), length) }
    }

    /// The bytes from `position` on, in place, for writing.
    ///
    /// # Safety
    /// The mapping must be writable, and no other access to these bytes may happen while the slice lives, except for
    /// validated relaxed copies.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn bytes_mut(&self, position: u64, length: usize) -> &mut [u8] {
        let words = self.words(position, length.next_multiple_of(8));
        // SAFETY: the range is mapped (words checks it) and shared memory is not frozen by the reference to its
        // atomics; the caller keeps all other access away.
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
