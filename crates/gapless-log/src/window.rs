//! [`WindowWriter`] belongs to the sequencer, [`Releaser`] to the agent that reaches the promised tier, [`Window`] to
//! every user of a cursor. Only length and sequence of a frame are interpreted.

use crate::LogError;
use crate::cursor::{FreeCursor, Gate, GatingCursor, Scope};
use crate::descriptor as d;
use crate::memory::{Memory, MemoryKind, MemoryShape};
use crate::sync::{Arc, Ordering, fence};
use gapless_wire::descriptor::FRAME_LENGTH_MAX;
use gapless_wire::fields::{u64_at, u128_at};
#[cfg(not(loom))]
use gapless_wire::prefetch::BACKLOG_AHEAD_BYTES;
use gapless_wire::{HEADER_LENGTH, aligned_length};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamIdentity {
    /// Chosen when the stream is made; never changes.
    pub stream_id: u128,
    /// Changes whenever sequences of an earlier incarnation become invalid.
    pub incarnation: u64,
}

impl StreamIdentity {
    /// Every layout that has both has them in this order.
    ///
    /// # Panics
    /// If `bytes` has fewer than 24 bytes at `offset`.
    #[must_use]
    pub fn at(bytes: &[u8], offset: usize) -> Self {
        Self { stream_id: u128_at(bytes, offset), incarnation: u64_at(bytes, offset + 16) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowOptions {
    pub memory: MemoryKind,
    /// Bytes; a power of two.
    pub capacity_bytes: usize,
    /// A power of two; limits how far back a sequence can be looked up.
    pub index_slots: usize,
    /// Bytes; at most half of the capacity, and 1 MiB.
    pub frame_length_max: usize,
    pub identity: StreamIdentity,
}

impl Default for WindowOptions {
    fn default() -> Self {
        Self {
            memory: MemoryKind::Anonymous,
            capacity_bytes: 8 << 20,
            index_slots: 1 << 16,
            frame_length_max: 1 << 20,
            identity: StreamIdentity::default(),
        }
    }
}

#[derive(Clone)]
pub struct Window {
    memory: Arc<Memory>,
}

pub struct WindowWriter {
    memory: Arc<Memory>,
    tail: u64,
    tail_sequence: u64,
    published: u64,
    /// Limit of the tail before the gating cursors must be checked again.
    limit: u64,
    /// End of the last claim.
    reserved: u64,
    /// Announced write limit, bytes. Never goes back: the writes of an abandoned claim have destroyed old frames.
    claimed: u64,
    /// Distance by which announcements exceed the need: the word that free cursors check after each frame changes less
    /// often.
    claim_ahead_bytes: u64,
    /// Number of truncations that cursors may have seen.
    truncations: u64,
    gating: Vec<Arc<Gate>>,
    frame_length_max: usize,
}

/// A 64th of the capacity, at most 16 KiB, and 0 in windows below 64 KiB. Free cursors can read that much less of the
/// window.
const fn claim_ahead_bytes(capacity_bytes: usize) -> u64 {
    match capacity_bytes as u64 / 64 {
        0..1024 => 0,
        share if share < 16 << 10 => share,
        _ => 16 << 10,
    }
}

pub struct Releaser {
    memory: Arc<Memory>,
}

impl WindowOptions {
    /// Makes an empty window.
    ///
    /// # Errors
    /// Sizes are out of range, or the operating system refuses.
    ///
    /// # Panics
    /// If `first_sequence` is 0.
    pub fn create(&self, first_sequence: u64) -> Result<(WindowWriter, Releaser), LogError> {
        assert!(first_sequence > 0, "sequences start at 1");
        let frame_length_limit = (self.capacity_bytes / 2).min(FRAME_LENGTH_MAX);
        if !(HEADER_LENGTH..=frame_length_limit).contains(&self.frame_length_max) {
            return Err(LogError::FrameLengthMax {
                found: self.frame_length_max,
                min: HEADER_LENGTH,
                max: frame_length_limit,
            });
        }
        let shape = MemoryShape { kind: d::KIND_WINDOW, capacity: self.capacity_bytes, index_slots: self.index_slots };
        let words = [
            (d::STREAM_LOW_WORD, self.identity.stream_id as u64),
            (d::STREAM_HIGH_WORD, (self.identity.stream_id >> 64) as u64),
            (d::INCARNATION_WORD, self.identity.incarnation),
            (d::FRAME_LENGTH_MAX_WORD, self.frame_length_max as u64),
            (d::TAIL_SEQUENCE_WORD, first_sequence - 1),
            (d::RELEASED_SEQUENCE_WORD, first_sequence - 1),
        ];
        let memory = Memory::create(&self.memory, shape, &words)?;
        let memory = Arc::new(memory);
        let writer = WindowWriter {
            memory: Arc::clone(&memory),
            tail: 0,
            tail_sequence: first_sequence - 1,
            published: 0,
            limit: self.capacity_bytes as u64,
            reserved: 0,
            claimed: 0,
            claim_ahead_bytes: claim_ahead_bytes(self.capacity_bytes),
            truncations: 0,
            gating: Vec::new(),
            frame_length_max: self.frame_length_max,
        };
        Ok((writer, Releaser { memory }))
    }
}

impl WindowWriter {
    /// Sets the distance of announcements, for models whose windows are too small to have one.
    #[cfg(loom)]
    pub fn announce_ahead(&mut self, bytes: u64) {
        self.claim_ahead_bytes = bytes;
    }

    #[must_use]
    pub fn window(&self) -> Window {
        Window { memory: Arc::clone(&self.memory) }
    }

    /// A cursor that holds this writer back, starting after the last published or the last released frame.
    #[must_use]
    pub fn gating_cursor(&mut self, scope: Scope) -> GatingCursor {
        let start = match scope {
            Scope::Appended => self.published,
            // Acquire: pairs with the Release in Releaser::release. Unreleased frames are never overwritten
            // (refresh_limit), so this position stays valid.
            Scope::Released => self.memory.header_word(d::RELEASED_WORD).load(Ordering::Acquire),
        };
        let gate = Arc::new(Gate::new(start, scope, self.truncations));
        self.gating.push(Arc::clone(&gate));
        GatingCursor::new(Arc::clone(&self.memory), gate, start, scope, self.truncations)
    }

    /// 0 before the first.
    #[inline]
    #[must_use]
    pub const fn last_sequence(&self) -> u64 {
        self.tail_sequence
    }

    /// Position after the last committed frame, bytes.
    #[inline]
    #[must_use]
    pub const fn tail(&self) -> u64 {
        self.tail
    }

    /// Longest frame, bytes.
    #[must_use]
    pub const fn frame_length_max(&self) -> usize {
        self.frame_length_max
    }

    /// Makes room for a frame of `length` bytes after the last committed one.
    ///
    /// # Errors
    /// [`LogError::TooLong`]; [`LogError::Full`] while a gating cursor lags too far.
    #[inline]
    fn reserve(&mut self, length: usize) -> Result<u64, LogError> {
        if length > self.frame_length_max {
            return Err(LogError::TooLong { length_bytes: length, limit_bytes: self.frame_length_max });
        }
        let end = self.tail + aligned_length(length) as u64;
        if end > self.limit {
            self.refresh_limit(end)?;
        }
        self.reserved = end;
        if end > self.claimed {
            self.claimed = end + self.claim_ahead_bytes;
            // Relaxed, then a Release fence: the announcement comes before every word written under it (pairs with the
            // Acquire fence in FreeCursor::read).
            self.memory.header_word(d::CLAIMED_WORD).store(self.claimed, Ordering::Relaxed);
            fence(Ordering::Release);
        }
        Ok(self.tail)
    }

    /// Whether frames of `padded_bytes` in total can be claimed one after the other now.
    ///
    /// # Errors
    /// [`LogError::TooLong`] if they never can, because they need more than half of the capacity.
    pub fn has_room(&mut self, padded_bytes: usize) -> Result<bool, LogError> {
        let limit_bytes = self.memory.capacity() / 2;
        if padded_bytes > limit_bytes {
            return Err(LogError::TooLong { length_bytes: padded_bytes, limit_bytes });
        }
        let end = self.tail + padded_bytes as u64;
        Ok(end <= self.limit || self.refresh_limit(end).is_ok())
    }

    #[cold]
    fn refresh_limit(&mut self, end: u64) -> Result<(), LogError> {
        self.gating.retain(|gate| !gate.is_abandoned());
        let capacity = self.memory.capacity() as u64;
        // Unreleased frames may still be truncated, so they must stay where truncate_after finds them. Relaxed: nothing
        // is read on its account.
        let released = self.memory.header_word(d::RELEASED_WORD).load(Ordering::Relaxed);
        let slowest = self.gating.iter().map(|gate| gate.load()).fold(released.min(self.published), u64::min);
        // A cursor that has not noted a truncation may be reading truncated frames.
        let is_settled = self.gating.iter().all(|gate| gate.has_noted(self.truncations));
        self.limit = if is_settled { slowest + capacity } else { self.tail };
        if end > self.limit {
            return Err(LogError::Full {
                needed_bytes: (end - self.tail) as usize,
                lag_bytes: if is_settled { self.tail - slowest } else { capacity },
                capacity_bytes: capacity as usize,
            });
        }
        Ok(())
    }

    /// Space for a frame, to be written in place. Dropping the slice without [`WindowWriter::commit`] abandons the
    /// claim. Length and sequence in the frame must be those that are committed: free cursors rely on them.
    ///
    /// # Errors
    /// As for [`WindowWriter::append`].
    #[cfg(not(loom))]
    #[inline]
    pub fn claim(&mut self, length: usize) -> Result<&mut [u8], LogError> {
        let position = self.reserve(length)?;
        // A window is larger than the caches: each line is cold when its turn comes.
        self.memory.prefetch_bytes_for_writing(position + BACKLOG_AHEAD_BYTES as u64, length);
        // SAFETY: the range lies after the published tail and before every gating cursor plus the capacity (reserve),
        // and no cursor still reads truncated frames (refresh_limit), so no other reference to it exists; free cursors
        // copy words and discard copies made while this range was announced.
        Ok(unsafe { self.memory.bytes_mut(position, aligned_length(length)) })
    }

    /// The frame becomes visible with [`WindowWriter::publish`].
    ///
    /// # Panics
    /// If `sequence` is not the next one, if less was claimed, or if the frame is shorter than a header.
    #[inline]
    pub fn commit(&mut self, length: usize, sequence: u64) {
        assert_eq!(sequence, self.tail_sequence + 1, "sequences have no gaps");
        let claimed = (self.reserved - self.tail) as usize;
        assert!((HEADER_LENGTH..=claimed).contains(&length), "a frame of {length} bytes was not claimed");
        // Relaxed: published by the Release store of the tail.
        self.memory.index_word(sequence).store(self.tail, Ordering::Relaxed);
        self.tail += aligned_length(length) as u64;
        self.tail_sequence = sequence;
    }

    /// Copies a whole frame in and commits it as `sequence`.
    ///
    /// # Errors
    /// [`LogError::TooLong`]; [`LogError::Full`] while a gating cursor lags too far.
    ///
    /// # Panics
    /// If the length of `frame` is not a multiple of 8, or `sequence` is not the next one.
    #[inline]
    pub fn append(&mut self, frame: &[u8], sequence: u64) -> Result<(), LogError> {
        assert!(frame.len().is_multiple_of(8), "frames are padded to 8 bytes");
        let position = self.reserve(frame.len())?;
        self.memory.store(position, frame);
        self.commit(frame.len(), sequence);
        Ok(())
    }

    /// Shows the committed frames to readers of scope [`Scope::Appended`].
    #[inline]
    pub fn publish(&mut self) {
        if self.published != self.tail {
            self.published = self.tail;
            // Relaxed: an upper bound for readers that load it after the tail.
            self.memory.header_word(d::TAIL_SEQUENCE_WORD).store(self.tail_sequence, Ordering::Relaxed);
            // Release: pairs with the Acquire load in the cursors.
            self.memory.header_word(d::TAIL_WORD).store(self.tail, Ordering::Release);
            self.memory.prefetch_for_writing(self.tail);
        }
    }

    /// The next frame will be `sequence + 1`. Cursors of scope [`Scope::Appended`] beyond it get an error at their next
    /// poll; if published frames are truncated, there is no room ([`LogError::Full`]) until each of them has polled,
    /// and rewound if it had to. The caller ensures that nothing is released meanwhile.
    ///
    /// # Errors
    /// [`LogError::TruncatesReleased`] if `sequence` is below the released one.
    pub fn truncate_after(&mut self, sequence: u64) -> Result<(), LogError> {
        if sequence >= self.tail_sequence {
            return Ok(());
        }
        // Acquire: pairs with the Release in Releaser::release.
        let released_sequence = self.memory.header_word(d::RELEASED_SEQUENCE_WORD).load(Ordering::Acquire);
        if sequence < released_sequence {
            return Err(LogError::TruncatesReleased { sequence, released_sequence });
        }
        let position = self.position_of_unreleased(sequence + 1)?;
        let slots = self.memory.shape().index_slots as u64;
        for cut in (sequence + 1).max(self.tail_sequence.saturating_sub(slots) + 1)..=self.tail_sequence {
            // Relaxed: a reader that sees a rewritten frame released sees this too.
            self.memory.index_word(cut).store(d::NOWHERE, Ordering::Relaxed);
        }
        self.tail = position;
        self.reserved = position;
        self.tail_sequence = sequence;
        if position >= self.published {
            return Ok(());
        }
        self.published = position;
        self.memory.header_word(d::TAIL_SEQUENCE_WORD).store(sequence, Ordering::Relaxed);
        // Release: pairs with the Acquire load in the cursors.
        self.memory.header_word(d::TAIL_WORD).store(position, Ordering::Release);
        self.truncations += 1;
        for gate in &self.gating {
            gate.announce_truncation(self.truncations);
        }
        // The next claim checks the cursors.
        self.limit = position;
        Ok(())
    }

    /// In place, back to back and padded, if the window has all of them. Only this value writes, and it is borrowed.
    #[cfg(not(loom))]
    #[inline]
    #[must_use]
    pub fn frames(&self, first_sequence: u64, last_sequence: u64) -> Option<&[u8]> {
        if first_sequence > last_sequence {
            return None;
        }
        let (start, end) = (self.start_of(first_sequence)?, self.end_of(last_sequence)?);
        // SAFETY: start_of found the first frame not overwritten, and everything after it up to the tail is newer;
        // writing takes a mutable borrow of this value, the only writer.
        Some(unsafe { self.memory.bytes(start, (end - start) as usize) })
    }

    /// Position after the frame, if it is the last one or the window still has the next.
    #[cfg(not(loom))]
    #[inline]
    #[must_use]
    pub fn end_of(&self, sequence: u64) -> Option<u64> {
        if sequence == self.tail_sequence { Some(self.tail) } else { self.start_of(sequence.checked_add(1)?) }
    }

    /// First sequence from which all committed frames take at most `length` bytes and are still in the window; one past
    /// the last without any.
    #[cfg(not(loom))]
    #[must_use]
    pub fn first_within(&self, length: usize) -> u64 {
        let is_within = |sequence| self.start_of(sequence).is_some_and(|start| self.tail - start <= length as u64);
        let slots = self.memory.shape().index_slots as u64;
        // Monotonic: if a frame is not within the length, no older one is.
        let (mut low, mut high) = (self.tail_sequence.saturating_sub(slots) + 1, self.tail_sequence + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_within(middle) { high = middle } else { low = middle + 1 }
        }
        high
    }

    #[cfg(not(loom))]
    #[inline]
    fn start_of(&self, sequence: u64) -> Option<u64> {
        let slots = self.memory.shape().index_slots as u64;
        let is_known = sequence > 0 && sequence <= self.tail_sequence && self.tail_sequence - sequence < slots;
        if !is_known {
            return None;
        }
        // Relaxed: this value wrote it.
        let position = self.memory.index_word(sequence).load(Ordering::Relaxed);
        let is_there = position < self.tail && position + self.memory.capacity() as u64 >= self.claimed;
        // The frame may have been written through the other mapping of the data: the compiler must not read it earlier.
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        // An unused or truncated index slot points elsewhere.
        (is_there && self.memory.load_word(position + 8) == sequence).then_some(position)
    }

    fn position_of_unreleased(&self, sequence: u64) -> Result<u64, LogError> {
        if self.tail_sequence - sequence < self.memory.shape().index_slots as u64 {
            let position = self.memory.index_word(sequence).load(Ordering::Relaxed);
            if position != d::NOWHERE {
                return Ok(position);
            }
        }
        // The index lacks it: later frames were truncated, or there are too many. Walks the frames, since unreleased
        // ones are never overwritten. They may have been written through the other mapping: the compiler must not read
        // them earlier.
        fence(Ordering::SeqCst);
        let mut position = self.memory.header_word(d::RELEASED_WORD).load(Ordering::Acquire);
        while position < self.tail {
            let length = self.memory.load_word(position) as u32 as usize;
            if self.memory.load_word(position + 8) == sequence {
                return Ok(position);
            }
            if length < HEADER_LENGTH {
                break;
            }
            position += aligned_length(length) as u64;
        }
        Err(LogError::Corrupt { position, reason: format!("there is no frame with sequence {sequence}") })
    }
}

impl Releaser {
    /// Promises that every frame before `position`, the last of them `sequence`, has reached the stream's tier.
    ///
    /// # Panics
    /// If `position` goes back or lies beyond the appended frames.
    #[inline]
    pub fn release(&mut self, position: u64, sequence: u64) {
        // Relaxed: only this value stores the word.
        let before = self.memory.header_word(d::RELEASED_WORD).load(Ordering::Relaxed);
        // Acquire: pairs with the Release in publish, and passes it on.
        let appended = self.memory.header_word(d::TAIL_WORD).load(Ordering::Acquire);
        assert!(
            (before..=appended).contains(&position),
            "released position {position} must lie between {before} and appended {appended}"
        );
        // Release, the position first: a reader that sees the sequence sees the position, the frame and its index entry
        // (pairs with the Acquire loads in the cursors).
        self.memory.header_word(d::RELEASED_WORD).store(position, Ordering::Release);
        self.memory.header_word(d::RELEASED_SEQUENCE_WORD).store(sequence, Ordering::Release);
    }
}

impl Window {
    /// Opens the window of another process, read-only.
    ///
    /// # Errors
    /// [`LogError::Foreign`] unless it is a window in [`MemoryKind::Shared`].
    #[cfg(not(loom))]
    pub fn open(fd: rustix::fd::OwnedFd) -> Result<Self, LogError> {
        Ok(Self { memory: Arc::new(Memory::open(fd, d::KIND_WINDOW, false)?) })
    }

    /// Opens a file of this process's user, read-only.
    ///
    /// # Errors
    /// As [`Window::open`].
    #[cfg(not(loom))]
    pub fn open_file(path: &std::path::Path) -> Result<Self, LogError> {
        Ok(Self { memory: Arc::new(Memory::open_file(path, d::KIND_WINDOW, false)?) })
    }

    #[cfg(not(loom))]
    #[must_use]
    pub fn fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.memory.fd()
    }

    /// Read-only descriptor to pass to another process.
    ///
    /// # Errors
    /// The operating system has no descriptors left.
    #[cfg(not(loom))]
    pub fn read_only_fd(&self) -> Result<rustix::fd::OwnedFd, LogError> {
        self.memory.read_only_fd()
    }

    #[must_use]
    pub fn identity(&self) -> StreamIdentity {
        let word = |number| self.memory.header_word(number).load(Ordering::Relaxed);
        StreamIdentity {
            stream_id: u128::from(word(d::STREAM_HIGH_WORD)) << 64 | u128::from(word(d::STREAM_LOW_WORD)),
            incarnation: word(d::INCARNATION_WORD),
        }
    }

    #[must_use]
    pub fn free_cursor(&self, sequence: u64) -> FreeCursor {
        FreeCursor::new(Arc::clone(&self.memory), sequence)
    }

    #[inline]
    #[must_use]
    pub fn appended(&self) -> u64 {
        self.memory.header_word(d::TAIL_WORD).load(Ordering::Acquire)
    }

    #[inline]
    #[must_use]
    pub fn released(&self) -> u64 {
        self.memory.header_word(d::RELEASED_WORD).load(Ordering::Acquire)
    }

    #[must_use]
    pub fn appended_sequence(&self) -> u64 {
        self.memory.foreign_sequence(d::TAIL_SEQUENCE_WORD)
    }

    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.memory.foreign_sequence(d::RELEASED_SEQUENCE_WORD)
    }
}
