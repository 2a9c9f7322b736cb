//! Cursors: [`GatingCursor`] borrows frames in place and is waited for; [`FreeCursor`] copies, is
//! never waited for, and is told when it was lapped.

use crate::LogError;
use crate::descriptor as d;
use crate::memory::Memory;
use crate::sync::{Arc, AtomicU64, Ordering, fence};
use gapless_wire::{HEADER_LENGTH, aligned_length};

/// How far a cursor may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything appended: the journaler, the replicator and the state-replication leader only.
    Appended,
    /// What has reached the stream's tier: everybody else.
    Released,
}

/// A gating cursor's position, on a cache line of its own.
#[repr(align(128))]
pub(crate) struct GatingPosition(AtomicU64);

/// The position of a cursor that no longer exists; it gates nothing.
const ABANDONED: u64 = u64::MAX;

impl GatingPosition {
    pub(crate) fn new(position: u64) -> Self {
        Self(AtomicU64::new(position))
    }

    pub(crate) fn load(&self) -> u64 {
        // Acquire: the reader's last look comes before our next write (pairs with store below).
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.load() == ABANDONED
    }

    fn store(&self, position: u64) {
        // Release: pairs with load above.
        self.0.store(position, Ordering::Release);
    }
}

/// Reads frames in place, in the process of the writer, which waits for it.
pub struct GatingCursor {
    memory: Arc<Memory>,
    gate: Arc<GatingPosition>,
    position: u64,
    /// What was available at the last look, so that the writer's cache line is asked for once a batch.
    limit: u64,
    limit_word: usize,
}

impl GatingCursor {
    pub(crate) fn new(memory: Arc<Memory>, gate: Arc<GatingPosition>, position: u64, scope: Scope) -> Self {
        let limit_word = match scope {
            Scope::Appended => d::TAIL_WORD,
            Scope::Released => d::RELEASED_WORD,
        };
        Self { memory, gate, position, limit: position, limit_word }
    }

    /// Position of the next frame, bytes.
    #[inline]
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// How many bytes can be read, asking the writer again only when all that was known is consumed.
    ///
    /// # Errors
    /// [`LogError::Truncated`] if the window now ends before this cursor: [`GatingCursor::rewind`].
    #[inline]
    fn available_bytes(&mut self) -> Result<usize, LogError> {
        if self.position >= self.limit || self.limit_word == d::TAIL_WORD {
            // Acquire: pairs with the Release in publish and release.
            self.limit = self.memory.header_word(self.limit_word).load(Ordering::Acquire);
            if self.limit < self.position {
                return Err(LogError::Truncated { position: self.limit, cursor_position: self.position });
            }
        }
        Ok((self.limit - self.position) as usize)
    }

    /// All whole frames that can be read now, in place, back to back, each padded to 8 bytes; empty if
    /// there are none.
    ///
    /// # Errors
    /// [`LogError::Truncated`] if the window now ends before this cursor: [`GatingCursor::rewind`].
    #[cfg(not(loom))]
    #[inline]
    pub fn available(&mut self) -> Result<&[u8], LogError> {
        let length = self.available_bytes()?;
        // SAFETY: these frames are published and this cursor's gate keeps the writer from them until
        // `advance`, which needs the borrow to have ended.
        Ok(unsafe { self.memory.bytes(self.position, length) })
    }

    /// Copies what can be read now into `bytes`, as far as it fits, for model-checking.
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

    /// Moves past `length_bytes` of what was available, and lets the writer have them.
    ///
    /// # Panics
    /// If it would go beyond what was available.
    #[inline]
    pub fn advance(&mut self, length_bytes: usize) {
        self.advance_quietly(length_bytes);
        self.gate.store(self.position);
    }

    /// Moves past `length_bytes` without letting the writer have them yet; the next
    /// [`GatingCursor::advance`] does, also one by 0.
    ///
    /// # Panics
    /// If it would go beyond what was available.
    #[inline]
    pub fn advance_quietly(&mut self, length_bytes: usize) {
        assert!(self.position + length_bytes as u64 <= self.limit, "a cursor cannot pass what it may read");
        self.position += length_bytes as u64;
    }

    /// Goes back to the end of the window after it was truncated.
    pub fn rewind(&mut self) {
        self.limit = self.memory.header_word(self.limit_word).load(Ordering::Acquire);
        self.position = self.position.min(self.limit);
        self.gate.store(self.position);
    }
}

impl Drop for GatingCursor {
    fn drop(&mut self) {
        self.gate.store(ABANDONED);
    }
}

/// What a [`FreeCursor`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeRead {
    /// The next frame was copied: this many bytes, without padding.
    Frame(usize),
    /// Nothing is released beyond this cursor.
    Empty,
    /// The frame is no longer in the window: replay from this sequence from the journal, then
    /// [`FreeCursor::seek`].
    Lapped {
        /// The sequence that was missed.
        from_sequence: u64,
    },
}

/// Copies released frames, from any process; nobody waits for it.
pub struct FreeCursor {
    memory: Arc<Memory>,
    sequence: u64,
    /// Position of `sequence`, once it is known.
    position: Option<u64>,
}

impl FreeCursor {
    pub(crate) fn new(memory: Arc<Memory>, sequence: u64) -> Self {
        Self { memory, sequence: sequence.max(1), position: None }
    }

    /// The sequence it reads next.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Goes to `sequence`, after a replay up to there.
    pub fn seek(&mut self, sequence: u64) {
        self.sequence = sequence.max(1);
        self.position = None;
    }

    /// Copies the next released frame into `buffer`, which is grown as needed.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if the writer broke the protocol.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> Result<FreeRead, LogError> {
        let lapped = FreeRead::Lapped { from_sequence: self.sequence };
        let word = |number| self.memory.header_word(number);
        // Acquire: pairs with the Release in Releaser::release.
        let released = word(d::RELEASED_WORD).load(Ordering::Acquire);
        let position = match self.position {
            Some(position) => position,
            None => {
                if self.sequence > word(d::RELEASED_SEQUENCE_WORD).load(Ordering::Acquire) {
                    return Ok(FreeRead::Empty);
                }
                // Relaxed: ordered by the tail, and believed only after the frame's own sequence agrees.
                self.memory.index_word(self.sequence).load(Ordering::Relaxed)
            }
        };
        if self.position.is_some() && position >= released {
            return Ok(FreeRead::Empty);
        }
        let capacity = self.memory.capacity() as u64;
        let is_lapped = || {
            // Acquire fence after the copy: if any copied word was written under a later announcement,
            // that announcement is seen here (pairs with the Release fence in WindowWriter::reserve).
            fence(Ordering::Acquire);
            word(d::CLAIMED_WORD).load(Ordering::Relaxed) > position + capacity
        };
        let corrupt = |reason: String| Err(LogError::Corrupt { position, reason });
        if !position.is_multiple_of(8) {
            return corrupt("the position is not a multiple of 8".to_owned());
        }
        let length = self.memory.load_word(position) as u32 as usize;
        let sequence = self.memory.load_word(position + 8);
        if is_lapped() || sequence > self.sequence {
            return Ok(lapped);
        }
        if self.position.is_none() && (sequence < self.sequence || position >= released) {
            // The index slot or its frame belongs to another sequence: overwritten, or not yet visible.
            return Ok(if position >= released { FreeRead::Empty } else { lapped });
        }
        let limit = word(d::FRAME_LENGTH_MAX_WORD).load(Ordering::Relaxed).min(capacity);
        if length < HEADER_LENGTH || length as u64 > limit || sequence != self.sequence {
            return corrupt(format!("length {length}, sequence {sequence} where {} was due", self.sequence));
        }
        buffer.resize(aligned_length(length), 0);
        self.memory.load(position, buffer);
        if is_lapped() {
            return Ok(lapped);
        }
        buffer.truncate(length);
        self.sequence += 1;
        self.position = Some(position + aligned_length(length) as u64);
        Ok(FreeRead::Frame(length))
    }
}
