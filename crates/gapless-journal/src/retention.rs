//! Retention: deletes the oldest segments, so that a journal runs for weeks.
//!
//! A step of the helper thread. It never deletes a frame above the snapshot sequence, nor the active
//! segment.

use std::io;
use std::sync::atomic::Ordering;

use crate::directory::sync_directory;
use crate::error::JournalError;
use crate::shared::{Shared, Works};

impl Shared {
    /// Deletes the oldest segment if it may and must go; `true` if it went.
    pub(crate) fn retain_step(&self, _works: &mut Works) -> Result<bool, JournalError> {
        let retention = self.options.retention;
        if retention.bytes_max.is_none() && retention.age_max_ns.is_none() {
            return Ok(false);
        }
        // Acquire: pairs with the release of `set_snapshot_sequence`.
        let snapshot_sequence = self.snapshot_sequence.load(Ordering::Acquire);
        let (oldest, next_first_sequence) = {
            let state = self.state();
            let (Some(oldest), Some(next)) = (state.entries.front(), state.entries.get(1)) else { return Ok(false) };
            let total_bytes: u64 = state.entries.iter().map(|entry| entry.length).sum();
            let is_too_much = retention.bytes_max.is_some_and(|limit| total_bytes > limit);
            // A segment took its last frame when the next was opened.
            let age_ns = (self.options.environment.epoch_ns)().saturating_sub(next.opened_ns);
            let is_too_old = retention.age_max_ns.is_some_and(|limit| age_ns > limit);
            let is_covered = next.first_sequence - 1 <= snapshot_sequence;
            if !is_covered || !(is_too_much || is_too_old) {
                return Ok(false);
            }
            (*oldest, next.first_sequence)
        };
        let path = self.segment_path(oldest.first_sequence);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(JournalError::io("delete", path, error));
            }
            _ => {}
        }
        sync_directory(&self.options.directory)?;
        {
            let mut state = self.state();
            state.entries.pop_front();
            // What is gone need not get to the device.
            state.rolled.retain(|rolled| rolled.first_sequence >= next_first_sequence);
        }
        // Release: pairs with the acquire of `Journal::first_sequence`.
        self.first_sequence.store(next_first_sequence, Ordering::Release);
        Ok(true)
    }
}
