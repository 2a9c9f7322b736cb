//! `CountersWriter`: publishes counters in memory to other processes, in files that it writes periodically.

use super::written::WrittenFile;
use super::{Counters, Error};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

const NEVER: u64 = u64::MAX;

/// Writes counters in memory to files: a change is in its file after [`PERIOD_NS`](Self::PERIOD_NS) and one turn of the
/// thread.
///
/// A counting thread calls [`changed`](Self::changed) after each count. The writing thread sleeps no longer than until
/// [`next_ns`](Self::next_ns), then calls [`tick`](Self::tick), and does both again after each wake-up.
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
    has_changes: AtomicBool,
    next_ns: AtomicU64,
    files: Mutex<Vec<Weak<SharedWriter>>>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// A file written by a [`CountersWriter`]; dropping this removes it.
#[derive(Debug)]
pub struct WrittenCounters(Arc<SharedWriter>);

#[derive(Debug)]
struct SharedWriter {
    file: WrittenFile,
    is_reported: AtomicBool,
}

impl CountersWriter {
    /// Maximum delay of writing a change, ns.
    pub const PERIOD_NS: u64 = 250_000_000;

    /// Creates a writer. `wake` ends the writing thread's sleep when counting resumes; it may be called with any lock
    /// held and must not block.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            has_changes: AtomicBool::new(false),
            next_ns: AtomicU64::new(NEVER),
            files: Mutex::default(),
            wake: Box::new(wake),
        })
    }

    /// Creates a writer without files, which wakes no thread.
    #[must_use]
    pub fn without_files() -> Arc<Self> {
        let writer = Self::new(|| {});
        writer.has_changes.store(true, Ordering::SeqCst);
        writer
    }

    /// Publishes these counters, and those added later, in a file at `path`, starting with the counts so far; a dead
    /// process's file is replaced.
    ///
    /// # Errors
    /// [`Error::CountersInUse`] if its owner is alive; [`Error::CountersDamaged`] if another kind of file is there;
    /// [`Error::CountersIo`].
    pub fn write_to(&self, counters: &Counters, path: impl AsRef<Path>) -> Result<WrittenCounters, Error> {
        let file = WrittenFile::create(Arc::clone(&counters.region), counters.capacity, path.as_ref())?;
        let written = Arc::new(SharedWriter { file, is_reported: AtomicBool::new(false) });
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&written));
        Ok(WrittenCounters(written))
    }

    /// Notes a count: a load while counting goes on; the first call after a pause wakes the thread.
    #[inline]
    pub fn changed(&self) {
        // Relaxed: a thread that finds the flag set has counted before it was cleared, or shortly after, before the
        // store became visible. The writing thread checks once more a period after clearing it.
        if !self.has_changes.load(Ordering::Relaxed) {
            self.wake_after_pause();
        }
    }

    #[cold]
    fn wake_after_pause(&self) {
        // SeqCst: pairs with `next_ns`, so that at least one of the two sees the other's store.
        let is_first = !self.has_changes.swap(true, Ordering::SeqCst);
        if is_first && self.next_ns.load(Ordering::SeqCst) == NEVER {
            (self.wake)();
        }
    }

    /// Time of the next [`tick`](Self::tick), on the clock of `now_ns`; `None` while nothing changes.
    pub fn next_ns(&self, now_ns: u64) -> Option<u64> {
        // Relaxed: it was written by this thread.
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        if next_ns != NEVER {
            return Some(next_ns);
        }
        // SeqCst: pairs with `wake_after_pause`.
        let next_ns = self.has_changes.load(Ordering::SeqCst).then_some(now_ns + Self::PERIOD_NS)?;
        self.next_ns.store(next_ns, Ordering::SeqCst);
        Some(next_ns)
    }

    /// Writes if it is due; for the writing thread.
    pub fn tick(&self, now_ns: u64) {
        if self.next_ns.load(Ordering::Relaxed) > now_ns {
            return;
        }
        // A thread that has just found the flag set may count a moment later: one last check follows after a check
        // without changes.
        let is_more = self.write() || self.has_changes.swap(false, Ordering::SeqCst);
        self.next_ns.store(if is_more { now_ns + Self::PERIOD_NS } else { NEVER }, Ordering::SeqCst);
    }

    /// Writes all changes now, on any thread; true if there were any, or a file could not be written. A failure is
    /// logged once for each file, and the next change writes everything missing.
    pub fn write(&self) -> bool {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let files: Vec<_> = files.iter().filter_map(Weak::upgrade).collect();
        // Without the lock: adding and removing counters must not wait for a disk.
        files.iter().fold(false, |any, written| written.write() | any)
    }
}

impl std::fmt::Debug for CountersWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CountersWriter").finish_non_exhaustive()
    }
}

impl SharedWriter {
    fn write(&self) -> bool {
        self.file.write().unwrap_or_else(|error| {
            // Relaxed: it guards no data.
            if !self.is_reported.swap(true, Ordering::Relaxed) {
                tracing::warn!(%error, "other processes do not see what is counted; everything else goes on");
            }
            true
        })
    }
}

impl Drop for WrittenCounters {
    fn drop(&mut self) {
        // Even if the thread is writing: when this returns, the file is gone.
        self.0.file.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn thread_is_woken_once_then_sleeps() {
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
            assert_eq!((writer.next_ns(now_ns), woken()), (None, 0), "no counts yet");
            for looks in 1..=3 {
                for _ in 0..5 {
                    counter.add(1);
                    writer.changed();
                }
                assert_eq!(woken(), u32::from(looks == 1), "only the first change wakes the agent");
                assert_eq!(writer.next_ns(now_ns), Some(now_ns + PERIOD_NS));
                writer.tick(now_ns + PERIOD_NS - 1);
                assert_eq!(writer.next_ns(now_ns + 1), Some(now_ns + PERIOD_NS), "it is not time yet");
                now_ns += PERIOD_NS;
                writer.tick(now_ns);
            }
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
        let without_files = CountersWriter::without_files();
        without_files.changed();
    }
}
