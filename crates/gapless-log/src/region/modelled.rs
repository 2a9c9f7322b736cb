//! [`Region`] as loom's atomics. Its words are allocated when the region is made, so a model should use few bytes.

use super::{AtomicU64, LogError};
use crate::sync::{Arc, Ordering};
use loom::sync::{Condvar, Mutex};
use std::time::Duration;

/// Words, and the kernel's wait queue for each futex word that was used.
pub struct Region {
    words: Vec<AtomicU64>,
    sleepers: Mutex<Vec<(usize, Arc<Condvar>)>>,
}

impl Region {
    /// `length` is a multiple of 8.
    ///
    /// # Errors
    /// Never; the signature is that of the mapped kind.
    pub fn create(length: usize) -> Result<Self, LogError> {
        let words = (0..length / 8).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { words, sleepers: Mutex::new(Vec::new()) })
    }

    #[must_use]
    pub fn length(&self) -> usize {
        self.words.len() * 8
    }

    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        &self.words[offset / 8]
    }

    pub fn load(&self, offset: usize, bytes: &mut [u8]) {
        for (number, target) in bytes.chunks_mut(8).enumerate() {
            let word = self.word(offset + number * 8).load(Ordering::Relaxed).to_ne_bytes();
            target.copy_from_slice(&word[..target.len()]);
        }
    }

    pub fn load_into(&self, offset: usize, length: usize, buffer: &mut Vec<u8>) {
        buffer.clear();
        buffer.resize(length, 0);
        self.load(offset, buffer);
    }

    pub fn store(&self, offset: usize, bytes: &[u8]) {
        for (number, source) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..source.len()].copy_from_slice(source);
            self.word(offset + number * 8).store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    pub(crate) fn prefetch_for_writing(&self, _offset: usize, _length: usize) {}

    pub(crate) fn prefetch(&self, _offset: usize, _length: usize) {}

    /// Sleeps without a timeout, so that a lost wake-up is a deadlock, which loom reports. Compares the value under the
    /// lock that a waker takes, like the kernel.
    pub fn wait(&self, offset: usize, expected: u32, _timeout: Duration) {
        let mut sleepers = self.sleepers.lock().expect("nobody panics with the lock");
        // Relaxed: the lock orders it after the waker's writes.
        if self.word(offset).load(Ordering::Relaxed) as u32 == expected {
            let known = sleepers.iter().find(|(of, _)| *of == offset).map(|(_, woken)| Arc::clone(woken));
            let woken = known.unwrap_or_else(|| {
                let woken = Arc::new(Condvar::new());
                sleepers.push((offset, Arc::clone(&woken)));
                woken
            });
            drop(woken.wait(sleepers).expect("nobody panics with the lock"));
        }
    }

    /// Wakes all; surplus sleepers look again.
    pub fn wake(&self, offset: usize, _count: u32) {
        let sleepers = self.sleepers.lock().expect("nobody panics with the lock");
        sleepers.iter().filter(|(of, _)| *of == offset).for_each(|(_, woken)| woken.notify_all());
        drop(sleepers);
    }
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Region").finish_non_exhaustive()
    }
}
