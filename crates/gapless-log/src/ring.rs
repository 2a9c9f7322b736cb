//! Frames from one publisher to one consumer, each in its own process. The consumer trusts nothing: it checks positions
//! and lengths, copies, and uses only its copy. A faulty or dead publisher corrupts only its own ring.

use crate::LogError;
use crate::descriptor as d;
use crate::memory::{Memory, MemoryKind, MemoryShape};
use crate::sync::{Arc, Ordering, fence};
use crate::window::StreamIdentity;
use gapless_wire::descriptor::SESSION_OFFSET;
use gapless_wire::prefetch::{AHEAD_BYTES, BACKLOG_AHEAD_BYTES};
use gapless_wire::{HEADER_LENGTH, aligned_length};

const WRITER_CLOSED: u64 = 1;
const READER_CLOSED: u64 = 2;
const ASLEEP: u64 = 1;
/// Asleep, and a wake-up is on the way.
const WOKEN: u64 = 2;

/// One end usually goes to another process, which opens it by [`RingWriter::open`] or [`RingReader::open`].
///
/// # Errors
/// Sizes are out of range, or the operating system refuses.
pub fn create(
    kind: &MemoryKind,
    capacity_bytes: usize,
    identity: StreamIdentity,
) -> Result<(RingWriter, RingReader), LogError> {
    let shape = MemoryShape { kind: d::KIND_RING, capacity: capacity_bytes, index_slots: 0 };
    let words = [
        (d::STREAM_LOW_WORD, identity.stream_id as u64),
        (d::STREAM_HIGH_WORD, (identity.stream_id >> 64) as u64),
        (d::INCARNATION_WORD, identity.incarnation),
    ];
    let memory = Arc::new(Memory::create(kind, shape, &words)?);
    Ok((RingWriter::over(Arc::clone(&memory))?, RingReader::over(memory)?))
}

pub struct RingWriter {
    memory: Arc<Memory>,
    tail: u64,
    published: u64,
    head: u64,
    /// Dropping this value does not close the ring.
    leaving: bool,
}

impl RingWriter {
    fn over(memory: Arc<Memory>) -> Result<Self, LogError> {
        // Same checks as in `reserve`; frames of an earlier publisher come before ours.
        let (head, tail) = (memory.foreign_position(d::HEAD_WORD)?, memory.foreign_position(d::TAIL_WORD)?);
        if head > tail || tail - head > memory.capacity() as u64 {
            return Err(LogError::Corrupt {
                position: tail,
                reason: format!("the writer cannot be there while the reader is at {head}"),
            });
        }
        Ok(Self { memory, tail, published: tail, head, leaving: false })
    }

    /// Opens the publisher's end of a ring of another process, by a descriptor that it passed.
    ///
    /// # Errors
    /// [`LogError::Foreign`] unless it is a ring in [`MemoryKind::Shared`]; [`LogError::Corrupt`] if its positions are
    /// impossible.
    #[cfg(not(loom))]
    pub fn open(fd: rustix::fd::OwnedFd) -> Result<Self, LogError> {
        Self::over(Arc::new(Memory::open(fd, d::KIND_RING, true)?))
    }

    /// Opens a file of this process's user.
    ///
    /// # Errors
    /// As [`RingWriter::open`].
    #[cfg(not(loom))]
    pub fn open_file(path: &std::path::Path) -> Result<Self, LogError> {
        Self::over(Arc::new(Memory::open_file(path, d::KIND_RING, true)?))
    }

    #[cfg(not(loom))]
    #[must_use]
    pub fn fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.memory.fd()
    }

    /// Longest frame, bytes: half of the capacity.
    #[must_use]
    pub fn frame_length_max(&self) -> usize {
        self.memory.capacity() / 2
    }

    /// No announcement is needed: the reader never reads beyond the tail.
    #[inline]
    fn reserve(&mut self, length: usize) -> Result<u64, LogError> {
        let capacity = self.memory.capacity();
        if length > capacity / 2 {
            return Err(LogError::TooLong { length_bytes: length, limit_bytes: capacity / 2 });
        }
        let end = self.tail + aligned_length(length) as u64;
        if end > self.head + capacity as u64 {
            // The reader's last read comes before our next write (pairs with RingReader::release).
            let head = self.memory.foreign_position(d::HEAD_WORD)?;
            // A faulty reader must cause neither an overwrite of unread frames nor a panic.
            if head < self.head || head > self.published {
                return Err(LogError::Corrupt {
                    position: head,
                    reason: format!("the reader's position must lie between {} and {}", self.head, self.published),
                });
            }
            self.head = head;
            if end > head + capacity as u64 {
                return Err(LogError::Full {
                    needed_bytes: aligned_length(length),
                    lag_bytes: self.tail - head,
                    capacity_bytes: capacity,
                });
            }
        }
        Ok(self.tail)
    }

    /// Space for a frame, to be written in place.
    ///
    /// # Errors
    /// [`LogError::Full`] until the reader moves on; [`LogError::TooLong`]; [`LogError::Corrupt`] if the reader's
    /// position is impossible.
    #[cfg(not(loom))]
    #[inline]
    pub fn claim(&mut self, length: usize) -> Result<&mut [u8], LogError> {
        let position = self.reserve(length)?;
        // SAFETY: the range lies after the published tail and within the reader's position plus the capacity. The
        // reader reads only up to the tail, and this value is the only writer.
        Ok(unsafe { self.memory.bytes_mut(position, aligned_length(length)) })
    }

    /// The reader sees the frame after [`RingWriter::publish`]; publish the fragments of one message together.
    ///
    /// # Panics
    /// If there is no room for it, so that it cannot have been claimed, or it is shorter than a header.
    #[inline]
    pub fn commit(&mut self, length: usize) {
        let room = (self.head + self.memory.capacity() as u64 - self.tail) as usize;
        assert!((HEADER_LENGTH..=room).contains(&length), "a frame of {length} bytes was not claimed");
        self.tail += aligned_length(length) as u64;
    }

    /// Copies in and commits a whole frame, padded to 8 bytes.
    ///
    /// # Errors
    /// As for `claim`.
    ///
    /// # Panics
    /// If the length of `frame` is not a multiple of 8.
    #[inline]
    pub fn append(&mut self, frame: &[u8]) -> Result<(), LogError> {
        assert!(frame.len().is_multiple_of(8), "frames are padded to 8 bytes");
        self.put(frame)?;
        self.commit(frame.len());
        Ok(())
    }

    #[cfg(not(loom))]
    #[inline]
    fn put(&mut self, frame: &[u8]) -> Result<(), LogError> {
        self.claim(frame.len())?.copy_from_slice(frame);
        Ok(())
    }

    #[cfg(loom)]
    fn put(&mut self, frame: &[u8]) -> Result<(), LogError> {
        let position = self.reserve(frame.len())?;
        self.memory.store(position, frame);
        Ok(())
    }

    /// Publishes all committed frames. Returns whether the reader sleeps and must be woken.
    #[inline]
    #[must_use = "a reader that sleeps must be woken"]
    pub fn publish(&mut self) -> bool {
        if self.published == self.tail {
            return false;
        }
        self.published = self.tail;
        // Release: pairs with the Acquire in RingReader.
        self.memory.header_word(d::TAIL_WORD).store(self.tail, Ordering::Release);
        self.memory.prefetch_for_writing(self.tail);
        // The tail is stored before the flag is read (pairs with the fence in RingReader::arm).
        fence(Ordering::SeqCst);
        self.memory.header_word(d::READER_PARKED_WORD).load(Ordering::Relaxed) != 0
    }

    /// Reports whether the reader sleeps and was not woken since; the caller must wake it then. For news outside of the
    /// ring, which must be published before this call.
    #[inline]
    #[must_use = "a reader that sleeps must be woken"]
    pub fn wakes_reader(&self) -> bool {
        // The news is stored before the flag is read (pairs with the fence in RingReader::arm).
        fence(Ordering::SeqCst);
        let flag = self.memory.header_word(d::READER_PARKED_WORD);
        // Only the transition from asleep to woken counts, so that a slow reader is woken once. Relaxed: the wake-up
        // itself orders the news.
        flag.load(Ordering::Relaxed) == ASLEEP
            && flag.compare_exchange(ASLEEP, WOKEN, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Call it when there is nothing more urgent.
    #[inline]
    pub fn prefetch(&self) {
        self.memory.prefetch_for_writing(self.tail);
    }

    /// Drops this end without closing the ring: the peer process uses an end of its own.
    #[cfg(not(loom))]
    pub fn leave_to_peer(mut self) {
        self.leaving = true;
    }

    pub fn discard_unpublished(&mut self) {
        self.tail = self.published;
    }

    /// Relative to the reader's last known position.
    #[must_use]
    pub fn backlog_bytes(&self) -> u64 {
        self.tail.saturating_sub(self.memory.header_word(d::HEAD_WORD).load(Ordering::Acquire))
    }

    /// Outlives this end.
    #[must_use]
    pub fn notes(&self) -> RingNotes {
        RingNotes { memory: Arc::clone(&self.memory) }
    }

    #[must_use]
    pub fn is_reader_closed(&self) -> bool {
        self.memory.header_word(d::CLOSED_WORD).load(Ordering::Acquire) & READER_CLOSED != 0
    }
}

impl Drop for RingWriter {
    fn drop(&mut self) {
        if !self.leaving {
            self.memory.header_word(d::CLOSED_WORD).fetch_or(WRITER_CLOSED, Ordering::AcqRel);
        }
    }
}

pub struct RingReader {
    memory: Arc<Memory>,
    head: u64,
    released: u64,
    tail: u64,
    /// Dropping this value does not close the ring.
    leaving: bool,
}

impl RingReader {
    fn over(memory: Arc<Memory>) -> Result<Self, LogError> {
        // Pairs with RingReader::release of an earlier consumer.
        let head = memory.foreign_position(d::HEAD_WORD)?;
        Ok(Self { memory, head, released: head, tail: head, leaving: false })
    }

    /// Opens the publisher's end of a ring of another process, by a descriptor that it passed.
    ///
    /// # Errors
    /// [`LogError::Foreign`] unless it is a ring in [`MemoryKind::Shared`]; [`LogError::Corrupt`] if its positions are
    /// impossible.
    #[cfg(not(loom))]
    pub fn open(fd: rustix::fd::OwnedFd) -> Result<Self, LogError> {
        Self::over(Arc::new(Memory::open(fd, d::KIND_RING, true)?))
    }

    /// Opens a file of this process's user.
    ///
    /// # Errors
    /// As [`RingReader::open`].
    #[cfg(not(loom))]
    pub fn open_file(path: &std::path::Path) -> Result<Self, LogError> {
        Self::over(Arc::new(Memory::open_file(path, d::KIND_RING, true)?))
    }

    #[cfg(not(loom))]
    #[must_use]
    pub fn fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.memory.fd()
    }

    /// Length of the next frame, bytes, without padding.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if the writer's position or the length is impossible. The ring is unusable then.
    #[inline]
    pub fn next_length(&mut self) -> Result<Option<usize>, LogError> {
        if self.head == self.tail && !self.refresh_tail()? {
            return Ok(None);
        }
        let available = self.tail - self.head;
        let length = self.memory.load_word(self.head) as u32 as usize;
        if length < HEADER_LENGTH || aligned_length(length) as u64 > available {
            return Err(LogError::Corrupt {
                position: self.head,
                reason: format!("a frame of {length} bytes where {available} are published"),
            });
        }
        Ok(Some(length))
    }

    /// Sessions of the next frames, to prepare for them: of known frames that are near, up to the length of `sessions`.
    /// Unchecked: only the copy of a frame is authoritative.
    #[inline]
    pub fn peek_sessions<'a>(&self, sessions: &'a mut [u64]) -> &'a [u64] {
        let near = self.tail.min(self.head + BACKLOG_AHEAD_BYTES as u64);
        let (mut position, mut count) = (self.head, 0);
        while count < sessions.len() && position + HEADER_LENGTH as u64 <= near {
            sessions[count] = self.memory.load_word(position + SESSION_OFFSET as u64);
            count += 1;
            // At least one word, whatever the length says.
            position += aligned_length(self.memory.load_word(position) as u32 as usize).max(8) as u64;
        }
        &sessions[..count]
    }

    /// Prefetches `length` bytes [`BACKLOG_AHEAD_BYTES`] after the next frame: each frame of a long backlog is cached
    /// when its turn comes.
    #[inline]
    pub fn prefetch_ahead(&self, length: usize) {
        if self.known_bytes() >= (BACKLOG_AHEAD_BYTES + length) as u64 {
            self.memory.prefetch_bytes(self.head + BACKLOG_AHEAD_BYTES as u64, length);
        }
    }

    #[inline]
    fn refresh_tail(&mut self) -> Result<bool, LogError> {
        // Relaxed: without new frames nothing is read.
        if self.memory.header_word(d::TAIL_WORD).load(Ordering::Relaxed) == self.tail {
            return Ok(self.head != self.tail);
        }
        // Pairs with the Release in RingWriter::publish.
        let tail = self.memory.foreign_position(d::TAIL_WORD)?;
        if tail < self.tail || tail - self.released > self.memory.capacity() as u64 {
            return Err(LogError::Corrupt {
                position: self.head,
                reason: format!("the writer's position {tail} is impossible; it was {}", self.tail),
            });
        }
        self.tail = tail;
        if self.head == tail {
            return Ok(false);
        }
        // In the writer's core still: prefetched all at once instead of one by one.
        self.memory.prefetch_bytes(self.head, AHEAD_BYTES.min((tail - self.head) as usize));
        Ok(true)
    }

    /// Copies the next frame, of the length from [`RingReader::next_length`] but padded. It may differ from the peeked
    /// bytes: only the copy counts.
    ///
    /// # Panics
    /// If the length of `buffer` is not a multiple of 8, or greater than the capacity.
    #[inline]
    pub fn copy(&self, buffer: &mut [u8]) {
        self.memory.load(self.head, buffer);
    }

    /// Like [`RingReader::copy`], for a frame `offset_bytes` after the next one.
    ///
    /// # Panics
    /// As [`RingReader::copy`], and if `offset_bytes` is not a multiple of 8.
    #[inline]
    pub fn copy_at(&self, offset_bytes: usize, buffer: &mut [u8]) {
        self.memory.load(self.head + offset_bytes as u64, buffer);
    }

    #[inline]
    #[must_use]
    pub const fn known_bytes(&self) -> u64 {
        self.tail - self.head
    }

    /// The writer gets the room at the next [`RingReader::release`].
    ///
    /// # Panics
    /// If it would pass the writer.
    #[inline]
    pub fn advance(&mut self, length: usize) {
        assert!(length as u64 <= self.tail - self.head, "a reader cannot pass the writer");
        self.head += aligned_length(length) as u64;
    }

    #[inline]
    pub fn release(&mut self) {
        if self.released != self.head {
            self.released = self.head;
            // Release: our last read comes before the writer's next write (pairs with RingWriter::reserve).
            self.memory.header_word(d::HEAD_WORD).store(self.head, Ordering::Release);
        }
    }

    /// Announces a sleep; the reader must call [`RingReader::next_length`] once more before it.
    pub fn arm(&self) {
        self.memory.header_word(d::READER_PARKED_WORD).store(ASLEEP, Ordering::Relaxed);
        // The flag is stored before the tail is read (pairs with the fence in RingWriter::publish).
        fence(Ordering::SeqCst);
    }

    pub fn disarm(&self) {
        self.memory.header_word(d::READER_PARKED_WORD).store(0, Ordering::Relaxed);
    }

    /// Publishes a word about the reader, in a cache line that is read only on request.
    ///
    /// # Panics
    /// If `number` is not below [`d::NOTES`].
    #[inline]
    pub fn note(&self, number: usize, value: u64) {
        assert!(number < d::NOTES, "there are {} notes", d::NOTES);
        // Relaxed: notes are independent and synchronise nothing.
        self.memory.header_word(d::NOTES_WORD + number).store(value, Ordering::Relaxed);
    }

    #[cfg(not(loom))]
    pub fn leave_to_peer(mut self) {
        self.leaving = true;
    }

    /// Published frames can still be read.
    #[must_use]
    pub fn is_writer_closed(&self) -> bool {
        self.memory.header_word(d::CLOSED_WORD).load(Ordering::Acquire) & WRITER_CLOSED != 0
    }

    #[must_use]
    pub fn identity(&self) -> StreamIdentity {
        let word = |number| self.memory.header_word(number).load(Ordering::Relaxed);
        StreamIdentity {
            stream_id: u128::from(word(d::STREAM_HIGH_WORD)) << 64 | u128::from(word(d::STREAM_LOW_WORD)),
            incarnation: word(d::INCARNATION_WORD),
        }
    }
}

impl Drop for RingReader {
    fn drop(&mut self) {
        if !self.leaving {
            self.memory.header_word(d::CLOSED_WORD).fetch_or(READER_CLOSED, Ordering::AcqRel);
        }
    }
}

/// The reader may be a foreign process: any value is possible.
pub struct RingNotes {
    memory: Arc<Memory>,
}

impl RingNotes {
    /// 0 before the first note.
    ///
    /// # Panics
    /// If `number` is not below [`d::NOTES`].
    #[must_use]
    pub fn read(&self, number: usize) -> u64 {
        assert!(number < d::NOTES, "there are {} notes", d::NOTES);
        // Relaxed: as in RingReader::note.
        self.memory.header_word(d::NOTES_WORD + number).load(Ordering::Relaxed)
    }
}
