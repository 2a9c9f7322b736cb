//! [`Region`] as a vector of loom's atomics, so that claims, offers and bells can be model-checked. Its words are made when the
//! region is, so a model asks for few bytes.

use super::{AtomicU64, LogError};
use crate::sync::{Arc, Ordering};
use loom::sync::{Condvar, Mutex};
use std::time::Duration;

/// The words of a region as loom's atomics, and the kernel's queue of sleepers for each word on which one has slept.
pub struct Region {
    words: Vec<AtomicU64>,
    sleepers: Mutex<Vec<(usize, Arc<Condvar>)>>,
}

impl Region {
    /// A model of `length` bytes, a multiple of 8.
    ///
    /// # Errors
    /// None; the signature is that of the mapped kind.
    pub fn create(length: usize) -> Result<Self, LogError> {
        let words = (0..length / 8).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { words, sleepers: Mutex::new(Vec::new()) })
    }

    /// Its length in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.words.len() * 8
    }

    /// The word at byte `offset`.
    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        &self.words[offset / 8]
    }

    /// As the mapped kind.
    pub fn load(&self, offset: usize, bytes: &mut [u8]) {
        for (number, target) in bytes.chunks_mut(8).enumerate() {
            let word = self.word(offset + number * 8).load(Ordering::Relaxed).to_ne_bytes();
            target.copy_from_slice(&word[..target.len()]);
        }
    }

    /// As the mapped kind.
    pub fn load_into(&self, offset: usize, length: usize, buffer: &mut Vec<u8>) {
        buffer.clear();
        buffer.resize(length, 0);
        self.load(offset, buffer);
    }

    /// As the mapped kind.
    pub fn store(&self, offset: usize, bytes: &[u8]) {
        for (number, source) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..source.len()].copy_from_slice(source);
            self.word(offset + number * 8).store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    pub(crate) fn prefetch_for_writing(&self, _offset: usize, _length: usize) {}

    pub(crate) fn prefetch(&self, _offset: usize, _length: usize) {}

    /// Sleeps without a time-out, so that a wake-up that is lost is a deadlock, which loom reports. As the kernel does, it compares
    /// the value under the lock that a waker takes.
    pub fn wait(&self, offset: usize, expected: u32, _timeout: Duration) {
        let mut sleepers = self.sleepers.lock().expect("nobody panics with the lock");
        // Relaxed: the lock orders it after what a waker did before its call.
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

    /// Wakes all who sleep on the word: who was not meant looks again.
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
