//! Counters that another process can read. An update is one relaxed store to a cache line of its own.
//!
//! [`Counters::create`] counts in a mapping of the file. [`CountersWriter`] copies counts from memory into the file, so
//! that damage to the file cannot end the counting process.

pub mod descriptor;
mod file;
pub mod reader;
pub mod writer;
mod written;

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{MmapMut, MmapRaw};

use crate::error::Error;
use file::OwnedFile;

pub use reader::CountersReader;
pub use writer::{CountersWriter, WrittenCounters};

/// A set of counters, in a file or in memory. Dropping it removes the file; counters still in use stay valid, but other
/// processes no longer see them.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("counters");
/// # mod gapless { pub mod threads { pub use gapless_agent::{Counters, CountersReader}; } }
/// use gapless::threads::{Counters, CountersReader};
/// let counters = Counters::create(&path, 64)?;
/// let frames = counters.add("journaler.frames")?;
/// frames.add(3);
/// let seen = CountersReader::open(&path)?.read()?;
/// assert_eq!(seen, [("journaler.frames".to_owned(), 3)]);
/// # Ok::<(), gapless_agent::Error>(())
/// ```
#[derive(Debug)]
pub struct Counters {
    region: Arc<CounterRegion>,
    labels: Mutex<Vec<String>>,
    capacity: usize,
    /// Holds the lock while this process lives; `None` in memory.
    file: Option<OwnedFile>,
}

impl Counters {
    /// Creates the file for up to `capacity` (1 to 65,536) counters, 256 bytes each, all allocated here; a dead
    /// process's file is replaced. Counting writes to a mapping of the file: a process that truncates the file ends
    /// this one by `SIGBUS`, which [`CountersWriter`] avoids.
    ///
    /// # Errors
    /// [`Error::CountersFull`] for a capacity out of range; [`Error::CountersInUse`] if its owner is alive;
    /// [`Error::CountersIo`].
    pub fn create(path: impl AsRef<Path>, capacity: usize) -> Result<Self, Error> {
        check_capacity(capacity)?;
        let file = OwnedFile::create(path.as_ref(), &descriptor::blank(capacity))?;
        let mapping = memmap2::MmapOptions::new()
            .len(descriptor::file_length(capacity))
            .map_raw(file.file())
            .map_err(|source| file.error("map it", source))?;
        Ok(Self::over(mapping, capacity, Some(file)))
    }

    /// Creates counters in memory: for the simulator, tests, and a [`CountersWriter`].
    ///
    /// # Errors
    /// [`Error::CountersFull`] for a capacity out of range; [`Error::CountersIo`] without memory.
    pub fn in_memory(capacity: usize) -> Result<Self, Error> {
        check_capacity(capacity)?;
        let mut mapping = MmapMut::map_anon(descriptor::file_length(capacity)).map_err(|source| Error::CountersIo {
            path: "(memory)".into(),
            action: "allocate",
            source,
        })?;
        let blank = descriptor::blank(capacity);
        mapping[..blank.len()].copy_from_slice(&blank);
        Ok(Self::over(MmapRaw::from(mapping), capacity, None))
    }

    fn over(mapping: MmapRaw, capacity: usize, file: Option<OwnedFile>) -> Self {
        Self { region: Arc::new(CounterRegion { mapping }), labels: Mutex::new(Vec::new()), capacity, file }
    }

    /// Adds a counter with the value 0.
    ///
    /// # Errors
    /// [`Error::CounterLabel`] if the label is empty, over 124 bytes, has control characters or
    /// is taken; [`Error::CountersFull`].
    pub fn add(&self, label: &str) -> Result<Counter, Error> {
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |reason| Err(Error::CounterLabel { label: label.to_owned(), reason });
        if let Err(reason) = descriptor::check_label(label.as_bytes()) {
            return refused(reason);
        }
        if labels.iter().any(|taken| taken == label) {
            return refused("is taken by another counter");
        }
        let index = labels.len();
        if index == self.capacity {
            return Err(Error::CountersFull { asked: index + 1, limit: self.capacity });
        }
        let record = descriptor::label_record(label);
        for (number, bytes) in record.chunks_exact(4).enumerate() {
            let bytes: [u8; 4] = bytes.try_into().expect("chunks of four");
            // Relaxed: published by the store of the count below.
            let word = self.region.u32_at(descriptor::label_offset(index) + 4 * number);
            word.store(u32::from_ne_bytes(bytes), Ordering::Relaxed);
        }
        // Release: a reader reads the count first, by a system call, and only then the labels.
        self.region.u32_at(descriptor::USED_OFFSET).store((index as u32 + 1).to_le(), Ordering::Release);
        labels.push(label.to_owned());
        let value = self.region.u64_at(descriptor::value_offset(self.capacity, index));
        Ok(Counter { value, _region: self.region.clone(), _one_writer: PhantomData })
    }

    /// Labels and values, in the order of addition.
    #[must_use]
    pub fn values(&self) -> Vec<(String, u64)> {
        let labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        labels.iter().cloned().zip(self.region.values(self.capacity, labels.len())).collect()
    }

    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(OwnedFile::path)
    }
}

fn check_capacity(capacity: usize) -> Result<(), Error> {
    if (1..=descriptor::CAPACITY_MAX).contains(&capacity) {
        Ok(())
    } else {
        Err(Error::CountersFull { asked: capacity, limit: descriptor::CAPACITY_MAX })
    }
}

/// A counter with a single writer, its owner; it can be moved to another thread, but not shared.
pub struct Counter {
    value: *const AtomicU64,
    _region: Arc<CounterRegion>,
    /// Two writers would lose updates: `add` is a load and a store.
    _one_writer: PhantomData<std::cell::Cell<u64>>,
}

// SAFETY: the pointer is to an atomic in the region that `_region` keeps mapped; nothing about it depends on the
// thread.
unsafe impl Send for Counter {}

impl Counter {
    #[inline]
    pub fn set(&self, value: u64) {
        // Relaxed: values are independent.
        self.word().store(value.to_le(), Ordering::Relaxed);
    }

    /// Adds, wrapping around: a load and a store, no locked instruction.
    #[inline]
    pub fn add(&self, value: u64) {
        self.set(self.get().wrapping_add(value));
    }

    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        // Relaxed: this is the only writer.
        u64::from_le(self.word().load(Ordering::Relaxed))
    }

    #[must_use]
    pub fn view(&self) -> CounterView {
        CounterView { value: self.value, _region: Arc::clone(&self._region) }
    }

    /// Converts it to a counter with many writers, by locked instructions.
    #[must_use]
    pub fn shared(self) -> SharedCounter {
        const { assert!(cfg!(target_endian = "little"), "a locked addition is to a word of the file's byte order") };
        SharedCounter(self.view())
    }

    #[inline]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: made by `CounterRegion::u64_at`, so aligned and inside the region, which `_region` keeps mapped; only
        // accessed as an atomic.
        unsafe { &*self.value }
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counter").field(&self.get()).finish()
    }
}

/// A counter with many writers, from [`Counter::shared`]; clones are the same counter.
#[derive(Clone, Debug)]
pub struct SharedCounter(CounterView);

impl SharedCounter {
    /// Adds to the value, wrapping around.
    #[inline]
    pub fn add(&self, value: u64) {
        // Relaxed: each value is independent; pairs with nothing.
        self.0.word().fetch_add(value, Ordering::Relaxed);
    }

    #[inline]
    pub fn set(&self, value: u64) {
        self.0.word().store(value, Ordering::Relaxed);
    }
}

#[derive(Clone)]
pub struct CounterView {
    value: *const AtomicU64,
    _region: Arc<CounterRegion>,
}

// SAFETY: as for `Counter`.
unsafe impl Send for CounterView {}
// SAFETY: the atomic is only accessed as one.
unsafe impl Sync for CounterView {}

impl CounterView {
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        // Relaxed: each value is independent; pairs with nothing.
        u64::from_le(self.word().load(Ordering::Relaxed))
    }

    #[inline]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: as in `Counter::word`.
        unsafe { &*self.value }
    }
}

impl fmt::Debug for CounterView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CounterView").field(&self.get()).finish()
    }
}

/// All access is atomic: other processes may read it.
#[derive(Debug)]
struct CounterRegion {
    mapping: MmapRaw,
}

impl CounterRegion {
    fn u32_at(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.mapping.len(), "offset {offset} is not in the region");
        // SAFETY: inside the mapping and aligned (a mapping begins on a page), as just checked; the mapping lives as
        // long as `self`, and no plain reference into it exists. If the file is truncated under it, which its mode 0600
        // permits only to its owner, an access raises a signal and reads no other memory.
        unsafe { &*self.mapping.as_ptr().add(offset).cast::<AtomicU32>() }
    }

    fn u64_at(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.mapping.len(), "offset {offset} is not in the region");
        // SAFETY: as in `u32_at`.
        unsafe { &*self.mapping.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    fn used(&self) -> usize {
        // Acquire: pairs with the Release of `Counters::add`, so that the counted labels are visible.
        u32::from_le(self.u32_at(descriptor::USED_OFFSET).load(Ordering::Acquire)) as usize
    }

    fn values(&self, capacity: usize, used: usize) -> Vec<u64> {
        let word = |index| self.u64_at(descriptor::value_offset(capacity, index));
        // Relaxed: each value is independent; pairs with nothing.
        (0..used).map(|index| u64::from_le(word(index).load(Ordering::Relaxed))).collect()
    }
}
