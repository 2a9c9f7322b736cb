//! Cursors: `GatingCursor` borrows frames in place and holds the writer back; `FreeCursor` copies, never holds the
//! writer back, and learns when it was lapped.

use crate::LogError;
use crate::descriptor as d;
use crate::memory::Memory;
use crate::sync::{Arc, AtomicU64, Ordering, fence};
use gapless_wire::descriptor::FRAME_LENGTH_MAX;
use gapless_wire::prefetch::BACKLOG_AHEAD_BYTES;
use gapless_wire::{HEADER_LENGTH, aligned_length};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All appended frames: only for the journaler, the replicator and the leader of state replication.
    Appended,
    /// Frames that have reached the stream's tier: for everyone else.
    Released,
}

/// Shared by a gating cursor and its writer, on a cache line of its own.
#[repr(align(128))]
pub(crate) struct Gate {
    /// Stored by the cursor: it reads nothing before this position any more.
    position: AtomicU64,
    /// Stored by the cursor: truncations it has noted.
    noted: AtomicU64,
    truncations: AtomicU64,
}

/// Position of a dropped cursor, which gates nothing.
const ABANDONED: u64 = u64::MAX;

/// Value of `noted` for scope [`Scope::Released`], whose frames cannot be truncated.
const UNCONCERNED: u64 = u64::MAX;

impl Gate {
    pub(crate) fn new(position: u64, scope: Scope, truncations: u64) -> Self {
        let noted = match scope {
            Scope::Appended => truncations,
            Scope::Released => UNCONCERNED,
        };
        Self {
            position: AtomicU64::new(position),
            noted: AtomicU64::new(noted),
            truncations: AtomicU64::new(truncations),
        }
    }

    pub(crate) fn load(&self) -> u64 {
        // Acquire: the cursor's last read comes before our next write (pairs with GatingCursor::advance).
        self.position.load(Ordering::Acquire)
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.load() == ABANDONED
    }

    pub(crate) fn announce_truncation(&self, truncations: u64) {
        // Release: a cursor that sees the count sees the new tail (pairs with GatingCursor::available_bytes).
        self.truncations.store(truncations, Ordering::Release);
    }

    /// Whether the cursor has stopped reading frames cut off by the first `truncations`.
    pub(crate) fn has_noted(&self, truncations: u64) -> bool {
        // Acquire: its last read comes before our next write (pairs with GatingCursor::note).
        self.noted.load(Ordering::Acquire) >= truncations
    }
}

/// Reads frames in place, in the process of the writer, which waits for it.
pub struct GatingCursor {
    memory: Arc<Memory>,
    gate: Arc<Gate>,
    position: u64,
    /// Value at the last refresh, so that the writer's cache line is loaded once per batch.
    limit: u64,
    truncations: u64,
    /// End of the window when it was found to end before this cursor, and the truncations then.
    cut: Option<(u64, u64)>,
    scope: Scope,
}

impl GatingCursor {
    pub(crate) fn new(memory: Arc<Memory>, gate: Arc<Gate>, position: u64, scope: Scope, truncations: u64) -> Self {
        Self { memory, gate, position, limit: position, truncations, cut: None, scope }
    }

    #[inline]
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    #[must_use]
    pub fn is_at_limit(&self) -> bool {
        self.position == self.load_limit()
    }

    #[inline]
    fn available_bytes(&mut self) -> Result<usize, LogError> {
        if self.scope == Scope::Appended {
            // Acquire: the truncated tail is seen below (pairs with Gate::announce_truncation).
            let truncations = self.gate.truncations.load(Ordering::Acquire);
            if truncations != self.truncations {
                self.refresh_limit(truncations)?;
                self.note(truncations);
            }
        }
        if self.position == self.limit {
            self.refresh_limit(self.truncations)?;
        }
        Ok((self.limit - self.position) as usize)
    }

    /// Fails if the window was truncated before the cursor.
    #[inline]
    fn refresh_limit(&mut self, truncations: u64) -> Result<(), LogError> {
        let limit = self.load_limit();
        if limit < self.position {
            self.cut = Some((limit, truncations));
            self.limit = self.position;
            return Err(LogError::Truncated { position: limit, cursor_position: self.position });
        }
        self.limit = limit;
        Ok(())
    }

    #[inline]
    fn load_limit(&self) -> u64 {
        let word = match self.scope {
            Scope::Appended => d::TAIL_WORD,
            Scope::Released => d::RELEASED_WORD,
        };
        // Acquire: pairs with the Release in publish, truncate_after and release.
        self.memory.header_word(word).load(Ordering::Acquire)
    }

    /// Lets the writer go on: no truncated frame is read any more.
    fn note(&mut self, truncations: u64) {
        self.truncations = truncations;
        // Release: pairs with Gate::has_noted.
        self.gate.noted.store(truncations, Ordering::Release);
    }

    /// Whole readable frames in place, back to back, each padded to 8 bytes: the rest of an earlier refresh, else all
    /// there are.
    ///
    /// # Errors
    /// [`LogError::Truncated`] if the window now ends before this cursor; call [`GatingCursor::rewind`].
    #[cfg(not(loom))]
    #[inline]
    pub fn available(&mut self) -> Result<&[u8], LogError> {
        let length = self.available_bytes()?;
        // SAFETY: these frames are published. The writer does not touch them until `advance`, or after a truncation
        // until `note`; both need this borrow to have ended.
        Ok(unsafe { self.memory.bytes(self.position, length) })
    }

    /// Copies the readable frames into `bytes`, as far as they fit, for model checking.
    ///
    /// # Errors
    /// As for `available`.
    #[cfg(loom)]
    pub fn copy_available(&mut self, bytes: &mut Vec<u8>) -> Result<(), LogError> {
        let length = self.available_bytes()?;
        bytes.resize(length, 0);
        self.memory.load(self.position, bytes);
        Ok(())
    }

    /// Releases `length_bytes` of the readable frames to the writer.
    ///
    /// # Panics
    /// If it would go beyond the readable frames.
    #[inline]
    pub fn advance(&mut self, length_bytes: usize) {
        self.advance_quietly(length_bytes);
        // Release: pairs with Gate::load.
        self.gate.position.store(self.position, Ordering::Release);
    }

    /// Releases nothing to the writer yet; the next [`GatingCursor::advance`] does, even by 0.
    ///
    /// # Panics
    /// If it would go beyond the readable frames.
    #[inline]
    pub fn advance_quietly(&mut self, length_bytes: usize) {
        assert!(length_bytes as u64 <= self.limit - self.position, "a cursor cannot pass what it may read");
        self.position += length_bytes as u64;
    }

    /// Goes back to the position in [`LogError::Truncated`]; without such an error it stays. If the window was
    /// truncated again meanwhile, the next poll reports it.
    pub fn rewind(&mut self) {
        if let Some((position, truncations)) = self.cut.take() {
            self.position = position;
            self.limit = position;
            // Release: pairs with Gate::load.
            self.gate.position.store(position, Ordering::Release);
            self.note(truncations);
        }
    }
}

impl Drop for GatingCursor {
    fn drop(&mut self) {
        // Release: our last read comes before the writer's next write (pairs with Gate::load).
        self.gate.position.store(ABANDONED, Ordering::Release);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeRead {
    /// Length in bytes, without padding; for several frames, their total with padding.
    Frame(usize),
    /// The next frame is not released yet.
    Empty,
    /// Replay from this sequence from the journal, then call [`FreeCursor::seek`].
    Lapped { from_sequence: u64 },
}

/// Copies released frames, from any process; never holds the writer back.
pub struct FreeCursor {
    memory: Arc<Memory>,
    sequence: u64,
    position: Option<u64>,
    /// Value at the last refresh; refreshed only when all of it is read.
    released: u64,
    released_sequence: u64,
}

impl FreeCursor {
    pub(crate) fn new(memory: Arc<Memory>, sequence: u64) -> Self {
        Self { memory, sequence: sequence.max(1), position: None, released: 0, released_sequence: 0 }
    }

    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    pub fn seek(&mut self, sequence: u64) {
        self.sequence = sequence.max(1);
        self.position = None;
    }

    /// Refreshes the limit once all known frames are read; false without a frame.
    #[inline]
    fn refresh_released(&mut self) -> Result<bool, LogError> {
        if self.sequence > self.released_sequence {
            // The frame, its index entry and the position after it are visible (pairs with the Release stores in
            // Releaser::release).
            let released_sequence = self.memory.foreign_sequence(d::RELEASED_SEQUENCE_WORD);
            if self.sequence > released_sequence {
                return Ok(false);
            }
            // Every frame before it is completely visible (pairs as above).
            self.released = self.memory.foreign_position(d::RELEASED_WORD)?;
            self.released_sequence = released_sequence;
        }
        Ok(true)
    }

    #[inline]
    fn check_is_released(&self, position: u64) -> Result<(), LogError> {
        if position < self.released {
            return Ok(());
        }
        let reason = format!("frame {} cannot be there: {} bytes are released", self.sequence, self.released);
        Err(LogError::Corrupt { position, reason })
    }

    /// Copies the next released frames, whole ones, back to back and padded, as many as fit. A frame longer than
    /// `buffer` is left to [`FreeCursor::read`]: [`FreeRead::Frame`] of 0 bytes.
    ///
    /// # Errors
    /// As for [`FreeCursor::read`].
    ///
    /// # Panics
    /// If the length of `buffer` is not a multiple of 8.
    pub fn read_many(&mut self, buffer: &mut [u8]) -> Result<FreeRead, LogError> {
        if !self.refresh_released()? {
            return Ok(FreeRead::Empty);
        }
        let Some(position) = self.position else { return Ok(FreeRead::Frame(0)) };
        self.check_is_released(position)?;
        let capacity = self.memory.capacity() as u64;
        let available = (self.released - position).min(capacity / 2) as usize;
        let length = available.min(buffer.len());
        let copied = &mut buffer[..length];
        for (number, part) in copied.chunks_mut(BACKLOG_AHEAD_BYTES).enumerate() {
            let at = number * BACKLOG_AHEAD_BYTES;
            let ahead = at + BACKLOG_AHEAD_BYTES;
            self.memory.prefetch_bytes(position + ahead as u64, BACKLOG_AHEAD_BYTES.min(length.saturating_sub(ahead)));
            self.memory.load_racing(position + at as u64, part);
        }
        // Checked like `read`. If the first word of the copy is not newer, no word is.
        fence(Ordering::Acquire);
        let claimed = self.memory.header_word(d::CLAIMED_WORD).load(Ordering::Relaxed);
        if claimed.saturating_sub(capacity) > position {
            return Ok(FreeRead::Lapped { from_sequence: self.sequence });
        }
        let mut end = 0;
        while let Some(header) = copied[end..].first_chunk::<16>() {
            let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
            let sequence = u64::from_le_bytes(*header[8..].first_chunk().expect("16 bytes hold two words"));
            if sequence != self.sequence || !(HEADER_LENGTH..=FRAME_LENGTH_MAX).contains(&length) {
                let reason = format!("length {length}, sequence {sequence} where {} was due", self.sequence);
                return Err(LogError::Corrupt { position: position + end as u64, reason });
            }
            let next = end + aligned_length(length);
            if next > copied.len() {
                break;
            }
            end = next;
            self.sequence = self.sequence.saturating_add(1);
        }
        self.position = Some(position + end as u64);
        Ok(FreeRead::Frame(end))
    }

    /// `buffer` grows as needed.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if the writer broke the protocol.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> Result<FreeRead, LogError> {
        if !self.refresh_released()? {
            return Ok(FreeRead::Empty);
        }
        let released = self.released;
        let lapped = Ok(FreeRead::Lapped { from_sequence: self.sequence });
        let position = match self.position {
            Some(position) => position,
            None => match self.memory.foreign_index_position(self.sequence)? {
                position if position >= released => return lapped,
                position => position,
            },
        };
        self.check_is_released(position)?;
        let capacity = self.memory.capacity() as u64;
        let room = (released - position).min(capacity / 2).min(FRAME_LENGTH_MAX as u64) as usize;
        let length = self.memory.load_word_racing(position) as u32 as usize;
        let sequence = self.memory.load_word_racing(position + 8);
        let is_due = sequence == self.sequence && length >= HEADER_LENGTH && aligned_length(length) <= room;
        if is_due {
            buffer.resize(aligned_length(length), 0);
            self.memory.load_racing(position, buffer);
        }
        // Acquire fence after the copy: if any word was written under a later announcement, that announcement is seen
        // here (pairs with the Release fence in WindowWriter::reserve).
        fence(Ordering::Acquire);
        let claimed = self.memory.header_word(d::CLAIMED_WORD).load(Ordering::Relaxed);
        if claimed.saturating_sub(capacity) > position {
            return lapped;
        }
        if !is_due {
            if self.position.is_none() && sequence != self.sequence {
                // More frames than slots: the slot belongs to another frame.
                return lapped;
            }
            let reason = format!("length {length}, sequence {sequence} where {} was due", self.sequence);
            return Err(LogError::Corrupt { position, reason });
        }
        buffer.truncate(length);
        self.sequence = self.sequence.saturating_add(1);
        self.position = Some(position + aligned_length(length) as u64);
        Ok(FreeRead::Frame(length))
    }
}
