//! [`Memory`]: the mapped words of a window or a ring. Anonymous, shared and file-backed memory look
//! the same from here on; under loom it is a vector of loom's atomics.
//!
//! `memory/mapped.rs` owns all mapping and all raw access of the crate, `memory/modelled.rs` is its
//! model. Window, cursors and ring see words and byte ranges only, never a pointer.

use crate::LogError;
use crate::descriptor as d;
use crate::sync::{AtomicU64, Ordering};

/// Where the words of a mapping live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// This process only (children and threads included).
    Anonymous,
    /// A sealed memory file whose descriptor can be passed to another process; nobody can shrink it,
    /// so no access to it ever faults.
    Shared,
    /// A file that another process of the same user opens by its path. Created anew with mode 0600; a process that still maps
    /// an older file of this name keeps it. A process of this user could shrink it under one that maps it, which
    /// would kill that one: what need not be trusted passes [`MemoryKind::Shared`].
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

#[cfg(not(loom))]
impl Shape {
    const fn has_valid_capacity(&self) -> bool {
        self.capacity >= d::CAPACITY_MIN && self.capacity <= d::CAPACITY_MAX && self.capacity.is_power_of_two()
    }

    /// A window has an index, a ring has none.
    const fn has_valid_index(&self) -> bool {
        if self.kind == d::KIND_WINDOW {
            self.index_slots.is_power_of_two() && self.index_slots <= self.capacity
        } else {
            self.index_slots == 0
        }
    }

    /// Checks the sizes that a caller asks for.
    fn check(&self) -> Result<(), LogError> {
        if !self.has_valid_capacity() {
            return Err(LogError::Capacity {
                what: "the capacity",
                found: self.capacity,
                min: d::CAPACITY_MIN,
                max: d::CAPACITY_MAX,
            });
        }
        if !self.has_valid_index() {
            return Err(LogError::Capacity {
                what: "the number of index slots",
                found: self.index_slots,
                min: 1,
                max: self.capacity,
            });
        }
        Ok(())
    }

    /// Checks the sizes that a foreign header says.
    fn check_found(&self) -> Result<(), LogError> {
        let foreign =
            |field, found: usize, expected: String| LogError::Foreign { field, found: found.to_string(), expected };
        if !self.has_valid_capacity() {
            let expected = format!("a power of two from {} to {}", d::CAPACITY_MIN, d::CAPACITY_MAX);
            return Err(foreign("capacity", self.capacity, expected));
        }
        if !self.has_valid_index() {
            let expected = format!("a power of two from 1 to {} in a window, 0 in a ring", self.capacity);
            return Err(foreign("index slots", self.index_slots, expected));
        }
        Ok(())
    }

    /// Bytes of the index, rounded up to whole pages.
    const fn index_length(&self) -> usize {
        (self.index_slots * 8).next_multiple_of(4096)
    }

    const fn file_length(&self) -> usize {
        d::HEADER_LENGTH + self.index_length() + self.capacity
    }
}

impl Memory {
    /// The position in header word `number`, as another process may have stored it. Whatever stands there, what comes out
    /// is a multiple of 8, and sums with it do not overflow; where it lies is for the caller to judge.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] for what is no position.
    #[inline]
    pub(crate) fn foreign_position(&self, number: usize) -> Result<u64, LogError> {
        // Acquire: what the other process wrote before it stored this position is seen (pairs with the Release of who
        // publishes, releases, or hands room back).
        Self::check_position(self.header_word(number).load(Ordering::Acquire))
    }

    /// The position at which the index says that the frame `sequence` stands; [`d::NOWHERE`] if it was cut off.
    ///
    /// # Errors
    /// As [`Memory::foreign_position`].
    #[inline]
    pub(crate) fn foreign_index_position(&self, sequence: u64) -> Result<u64, LogError> {
        // Relaxed: ordered by the released sequence; the slot may belong to a later frame by now.
        match self.index_word(sequence).load(Ordering::Relaxed) {
            d::NOWHERE => Ok(d::NOWHERE),
            position => Self::check_position(position),
        }
    }

    /// The sequence in header word `number`, as another process may have stored it: at most [`d::POSITION_MAX`], which no
    /// stream reaches, so that sums with it do not overflow.
    #[inline]
    pub(crate) fn foreign_sequence(&self, number: usize) -> u64 {
        // Acquire: as in `foreign_position`.
        self.header_word(number).load(Ordering::Acquire).min(d::POSITION_MAX)
    }

    #[inline]
    fn check_position(position: u64) -> Result<u64, LogError> {
        if position <= d::POSITION_MAX && position.is_multiple_of(8) {
            Ok(position)
        } else {
            Err(no_position(position))
        }
    }
}

#[cold]
fn no_position(position: u64) -> LogError {
    LogError::Corrupt { position, reason: "no frame begins or ends there".to_owned() }
}

#[cfg(not(loom))]
mod mapped;
#[cfg(not(loom))]
pub use mapped::Memory;

#[cfg(loom)]
mod modelled;
#[cfg(loom)]
pub use modelled::Memory;
