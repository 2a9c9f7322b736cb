//! [`Memory`]: anonymous, shared and file-backed mappings with one interface. All raw access is in `memory/mapped.rs`;
//! under loom, `memory/modelled.rs` replaces it.

use crate::LogError;
use crate::descriptor as d;
use crate::sync::{AtomicU64, Ordering};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// This process only, with its forked children.
    Anonymous,
    /// A sealed memory file whose descriptor can be passed to another process. No process can shrink it, so no access
    /// ever faults.
    Shared,
    /// A file that another process of the same user opens by its path. Created with mode 0600 as a new file: a process
    /// that maps an older one of this name keeps it. A process of this user could shrink it, which would kill every
    /// process that maps it: use [`MemoryKind::Shared`] for untrusted peers.
    File(std::path::PathBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShape {
    /// [`d::KIND_WINDOW`] or [`d::KIND_RING`].
    pub kind: u64,
    /// Bytes, a power of two.
    pub capacity: usize,
    /// A power of two or 0.
    pub index_slots: usize,
}

#[cfg(not(loom))]
impl MemoryShape {
    const fn has_valid_capacity(&self) -> bool {
        self.capacity >= d::CAPACITY_MIN && self.capacity <= d::CAPACITY_MAX && self.capacity.is_power_of_two()
    }

    const fn has_valid_index(&self) -> bool {
        if self.kind == d::KIND_WINDOW {
            self.index_slots.is_power_of_two() && self.index_slots <= self.capacity
        } else {
            self.index_slots == 0
        }
    }

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

    const fn index_length(&self) -> usize {
        (self.index_slots * 8).next_multiple_of(4096)
    }

    const fn file_length(&self) -> usize {
        d::HEADER_LENGTH + self.index_length() + self.capacity
    }
}

impl Memory {
    /// A position that another process may have stored: a multiple of 8 and small enough for sums; its plausibility is
    /// up to the caller.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] for an invalid position.
    #[inline]
    pub(crate) fn foreign_position(&self, number: usize) -> Result<u64, LogError> {
        // Acquire: everything that the other process wrote before the position is visible (pairs with the Release that
        // publishes, releases, or hands back room).
        Self::check_position(self.header_word(number).load(Ordering::Acquire))
    }

    /// [`d::NOWHERE`] if the frame was truncated.
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

    /// Clamped to [`d::POSITION_MAX`], which no stream reaches, so that sums do not overflow.
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
