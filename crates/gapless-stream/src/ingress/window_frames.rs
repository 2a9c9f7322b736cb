//! Appended frames that the window still keeps, for the agent of a cluster's member that owns the `Ingress`.

use super::Ingress;
use gapless_log::LogError;

impl Ingress {
    /// Frames `first_sequence..=last_sequence`, if the window has all.
    #[inline]
    #[must_use]
    pub fn frames(&self, first_sequence: u64, last_sequence: u64) -> Option<&[u8]> {
        self.window.frames(first_sequence, last_sequence)
    }

    /// First sequence from which all frames take at most `length_bytes` and are in the window; one after the last if
    /// none do. Examines about twenty frames.
    #[must_use]
    pub fn first_within(&self, length_bytes: usize) -> u64 {
        self.window.first_within(length_bytes)
    }

    /// Position after `sequence`, if the window has all later frames, or the stream ends there.
    #[inline]
    #[must_use]
    pub fn end_of(&self, sequence: u64) -> Option<u64> {
        self.window.end_of(sequence)
    }

    /// Whether padded frames of `length_bytes` in total can be appended now.
    ///
    /// # Errors
    /// [`LogError::TooLong`] if they never can.
    #[inline]
    pub fn has_room(&mut self, length_bytes: usize) -> Result<bool, LogError> {
        self.window.has_room(length_bytes)
    }
}
