//! [`CountersWriter`]: shows counters of memory to other processes, in files that it writes now and then.
//!
//! It has no thread: one that is there anyway asks it when it wants to be called next, and calls it then. Nothing is written, and
//! nobody is woken, while nobody counts.

use super::written::WrittenFile;
use super::{Counters, Error};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// There is nothing to be done.
const NEVER: u64 = u64::MAX;

/// Writes counters of memory into files: what changes is in its file after [`PERIOD_NS`](Self::PERIOD_NS), and a turn of the thread.
///
/// Whoever counts says so with [`changed`](Self::changed), behind the count. The thread that writes sleeps no longer than to
/// [`next_ns`](Self::next_ns), calls [`tick`](Self::tick) then, and looks at both again when it was woken.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("counters");
/// use gapless_agent::{Counters, CountersReader, CountersWriter};
/// let counters = Counters::in_memory(64)?;
/// let calls = counters.add("calls")?;
/// let writer = CountersWriter::new(|| { /* wakes the thread that writes */ });
/// let written = writer.write_to(&counters, &path)?;
///
/// calls.add(3);
/// writer.changed();
/// let next_ns = writer.next_ns(0).expect("something has changed");
/// writer.tick(next_ns);
/// assert_eq!(CountersReader::open(&path)?.read()?, [("calls".to_owned(), 3)]);
///
/// drop(written);
/// assert!(!path.exists());
/// # Ok::<(), gapless_agent::Error>(())
/// ```
pub struct CountersWriter {
    /// Somebody may have counted since it was lowered. Everybody who counts reads it, and next to nobody writes it.
    has_changes: AtomicBool,
    /// When the thread looks next, or [`NEVER`]. Written by that thread.
    next_ns: AtomicU64,
    files: Mutex<Vec<Weak<Written>>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// A file that a [`CountersWriter`] writes; it is removed when this is dropped.
#[derive(Debug)]
pub struct WrittenCounters(Arc<Written>);

#[derive(Debug)]
struct Written {
    file: WrittenFile,
    /// That it cannot be written is in the log.
    is_told: AtomicBool,
}

impl CountersWriter {
    /// A change is written so long after it was made, at the latest, if the thread has the time.
    pub const PERIOD_NS: u64 = 250_000_000;

    /// `wake` ends the sleep of the thread that writes: somebody counts again. It may be called with any lock held, and must not wait.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            has_changes: AtomicBool::new(false),
            next_ns: AtomicU64::new(NEVER),
            files: Mutex::default(),
            wake: Box::new(wake),
        })
    }

    /// For counters that no other process sees: it never wakes anybody.
    #[must_use]
    pub fn of_nothing() -> Arc<Self> {
        let writer = Self::new(|| {});
        writer.has_changes.store(true, Ordering::SeqCst);
        writer
    }

    /// Shows these counters, and those that are added to them, in a file at `path`, which has what was counted so far. A file left by a
    /// process that has died is replaced.
    ///
    /// # Errors
    /// [`Error::CountersInUse`] if its owner lives; [`Error::CountersDamaged`] if what is there is something else;
    /// [`Error::CountersIo`].
    pub fn write_to(&self, counters: &Counters, path: impl AsRef<Path>) -> Result<WrittenCounters, Error> {
        let file = WrittenFile::create(Arc::clone(&counters.region), counters.capacity, path.as_ref())?;
        let written = Arc::new(Written { file, is_told: AtomicBool::new(false) });
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&written));
        Ok(WrittenCounters(written))
    }

    /// Something was counted. Costs a load while somebody counts; the first one after a pause wakes the thread.
    #[inline]
    pub fn changed(&self) {
        // Relaxed: whoever finds it raised has counted before it was lowered, or a moment later, as soon as the store reached it. The
        // thread looks once more a period after it has lowered it.
        if !self.has_changes.load(Ordering::Relaxed) {
            self.changed_after_a_pause();
        }
    }

    #[cold]
    fn changed_after_a_pause(&self) {
        // SeqCst: pairs with `next_ns`, so that either finds what the other has stored.
        let is_first = !self.has_changes.swap(true, Ordering::SeqCst);
        if is_first && self.next_ns.load(Ordering::SeqCst) == NEVER {
            (self.wake)();
        }
    }

    /// When the thread is to [`tick`](Self::tick); `None` as long as nobody counts. On the clock of `now_ns`. For that thread.
    pub fn next_ns(&self, now_ns: u64) -> Option<u64> {
        // Relaxed: it was written by this thread.
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        if next_ns != NEVER {
            return Some(next_ns);
        }
        // SeqCst: pairs with `changed_after_a_pause`.
        let next_ns = self.has_changes.load(Ordering::SeqCst).then_some(now_ns + Self::PERIOD_NS)?;
        self.next_ns.store(next_ns, Ordering::SeqCst);
        Some(next_ns)
    }

    /// Writes if it is time. For the thread that writes.
    pub fn tick(&self, now_ns: u64) {
        // Relaxed: it was written by this thread.
        if self.next_ns.load(Ordering::Relaxed) > now_ns {
            return;
        }
        // Who has found it raised just now may have counted a moment later: there is a last look after the one that has found nothing.
        let is_more = self.write() || self.has_changes.swap(false, Ordering::SeqCst);
        self.next_ns.store(if is_more { now_ns + Self::PERIOD_NS } else { NEVER }, Ordering::SeqCst);
    }

    /// Writes what has changed, now, on any thread. Whether anything has, or a file could not be written; that is logged, once for
    /// each file, and the next change is written with all that is missing.
    pub fn write(&self) -> bool {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let files: Vec<_> = files.iter().filter_map(Weak::upgrade).collect();
        // Without the lock: whoever makes or removes counters does not wait for a disk.
        files.iter().fold(false, |any, written| written.write() | any)
    }
}

impl std::fmt::Debug for CountersWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CountersWriter").finish_non_exhaustive()
    }
}

impl Written {
    fn write(&self) -> bool {
        self.file.write().unwrap_or_else(|error| {
            // Relaxed: it guards nothing.
            if !self.is_told.swap(true, Ordering::Relaxed) {
                tracing::warn!(%error, "other processes do not see what is counted; everything else goes on");
            }
            true
        })
    }
}

impl Drop for WrittenCounters {
    fn drop(&mut self) {
        // Here, though the thread may be at it: when this returns, the file has gone.
        self.0.file.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn the_thread_is_woken_once_and_sleeps_when_nothing_changes() {
        const PERIOD_NS: u64 = CountersWriter::PERIOD_NS;
        let directory = tempfile::tempdir().unwrap();
        let woken = Arc::new(AtomicU32::new(0));
        let wakes = Arc::clone(&woken);
        let writer = CountersWriter::new(move || _ = wakes.fetch_add(1, Ordering::SeqCst));
        let counters = Counters::in_memory(1).unwrap();
        let counter = counters.add("calls").unwrap();
        let _written = writer.write_to(&counters, directory.path().join("counters")).unwrap();
        let woken = || woken.swap(0, Ordering::SeqCst);
        let mut now_ns = 7;
        for _ in 0..3 {
            assert_eq!((writer.next_ns(now_ns), woken()), (None, 0), "nobody has counted");
            for looks in 1..=3 {
                for _ in 0..5 {
                    counter.add(1);
                    writer.changed();
                }
                assert_eq!(woken(), u32::from(looks == 1), "it is woken by the first of all");
                assert_eq!(writer.next_ns(now_ns), Some(now_ns + PERIOD_NS));
                writer.tick(now_ns + PERIOD_NS - 1);
                assert_eq!(writer.next_ns(now_ns + 1), Some(now_ns + PERIOD_NS), "it is not time yet");
                now_ns += PERIOD_NS;
                writer.tick(now_ns);
            }
            // Nothing has changed, and once more; what is counted between them wakes nobody, and is seen.
            now_ns += PERIOD_NS;
            writer.tick(now_ns);
            counter.add(1);
            writer.changed();
            now_ns += PERIOD_NS;
            writer.tick(now_ns);
            for _ in 0..2 {
                assert_eq!((writer.next_ns(now_ns), woken()), (Some(now_ns + PERIOD_NS), 0));
                now_ns += PERIOD_NS;
                writer.tick(now_ns);
            }
        }
        let of_nothing = CountersWriter::of_nothing();
        of_nothing.changed();
    }
}
