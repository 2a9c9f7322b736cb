//! The frames that an [`Ingress`] has appended and its window still keeps, for the agent of a cluster's member that
//! owns it.

use super::Ingress;
use gapless_log::LogError;

impl Ingress {
    /// The frames `first_sequence..=last_sequence` as they stand in the window, if it has all of them.
    #[inline]
    #[must_use]
    pub fn frames(&self, first_sequence: u64, last_sequence: u64) -> Option<&[u8]> {
        self.window.frames(first_sequence, last_sequence)
    }

    /// The first sequence from which on all frames take `length_bytes` at most and are still in the window; one after
    /// the last where there is none. Looks at some twenty frames.
    #[must_use]
    pub fn first_within(&self, length_bytes: usize) -> u64 {
        self.window.first_within(length_bytes)
    }

    /// Position in the window after the frame `sequence`, if it still has the next ones, or there are none.
    #[inline]
    #[must_use]
    pub fn end_of(&self, sequence: u64) -> Option<u64> {
        self.window.end_of(sequence)
    }

    /// Whether frames of `length_bytes` in all, padded, can be appended now.
    ///
    /// # Errors
    /// [`LogError::TooLong`] if they never can.
    #[inline]
    pub fn has_room(&mut self, length_bytes: usize) -> Result<bool, LogError> {
        self.window.has_room(length_bytes)
    }
}
