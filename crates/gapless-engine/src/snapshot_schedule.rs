//! When snapshots are taken, and the thread that writes them: the executor only encodes the state, so that
//! messages wait for that and not for the disk.

use crate::EngineError;
use crate::fold::Fold;
use crate::service::Service;
use crate::snapshot::{encode, write};
use gapless_agent::Waker;
use gapless_agent::thread::spawn_helper;
use gapless_log::StreamIdentity;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What makes a snapshot's promise good: the journal below it is on the device first.
pub trait SnapshotJournal: Send {
    /// Puts the journal on the device.
    ///
    /// # Errors
    /// It cannot be put there.
    fn sync(&mut self) -> Result<(), EngineError>;
    /// A snapshot holds everything up to `sequence`.
    fn covered(&mut self, sequence: u64);
}

/// When snapshots are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRules {
    /// After so many frames; `None` only when asked for.
    pub interval_frames: Option<u64>,
    /// At a clean stop.
    pub on_stop: bool,
}

struct Job {
    sequence: u64,
    bytes: Vec<u8>,
    /// The number of the last request that it answers.
    serves: u64,
}

#[derive(Default)]
struct Desk {
    job: Option<Job>,
    written_sequence: u64,
    busy: bool,
    stopping: bool,
    failure: Option<String>,
    /// Requests so far, and how many of them are answered.
    requests: u64,
    served: u64,
}

#[derive(Default)]
struct Shared {
    desk: Mutex<Desk>,
    changed: Condvar,
    /// A request waits for the executor.
    is_wanted: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Desk> {
        // No holder leaves the desk half changed.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_jobs(&self, directory: &std::path::Path, journal: &mut impl SnapshotJournal) {
        let mut watch = Watch { shared: self, ended: false };
        loop {
            let mut desk = self.lock();
            desk.busy = false;
            while desk.job.is_none() && !desk.stopping {
                desk = self.changed.wait(desk).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(Job { sequence, bytes, serves }) = desk.job.take() else {
                watch.ended = true;
                return;
            };
            desk.busy = true;
            drop(desk);
            let written = journal.sync().and_then(|()| write(directory, sequence, &bytes));
            if written.is_ok() {
                journal.covered(sequence);
            }
            let mut desk = self.lock();
            match written {
                Ok(()) => {
                    desk.written_sequence = sequence;
                    desk.served = serves;
                }
                Err(error) => desk.failure = Some(error.to_string()),
            }
            drop(desk);
            self.changed.notify_all();
        }
    }
}

/// Makes a panic of the thread a failure that the executor sees.
struct Watch<'a> {
    shared: &'a Shared,
    ended: bool,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.lock().failure = Some("the snapshot thread panicked".to_owned());
            self.shared.changed.notify_all();
        }
    }
}

/// Takes snapshots by its rules and when asked; a thread of its own writes them.
pub struct SnapshotSchedule {
    identity: StreamIdentity,
    rules: SnapshotRules,
    next_sequence: u64,
    asked_sequence: u64,
    asked_last: bool,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Asks for a snapshot, from any thread.
#[derive(Clone)]
pub struct SnapshotRequests {
    shared: Arc<Shared>,
    service: Waker,
}

impl SnapshotSchedule {
    /// Snapshots into `directory`, of a state that was snapshotted last at `sequence`; requests wake `service`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        directory: PathBuf,
        identity: StreamIdentity,
        sequence: u64,
        rules: SnapshotRules,
        mut journal: impl SnapshotJournal + 'static,
        service: Waker,
    ) -> Result<(Self, SnapshotRequests), EngineError> {
        let desk = Mutex::new(Desk { written_sequence: sequence, ..Desk::default() });
        let shared = Arc::new(Shared { desk, ..Shared::default() });
        let for_thread = Arc::clone(&shared);
        let thread = spawn_helper("gapless-snapshot", move || for_thread.write_jobs(&directory, &mut journal))?;
        let schedule = Self {
            identity,
            rules,
            next_sequence: sequence.saturating_add(rules.interval_frames.unwrap_or(u64::MAX)),
            asked_sequence: sequence,
            asked_last: false,
            shared: Arc::clone(&shared),
            thread: Some(thread),
        };
        Ok((schedule, SnapshotRequests { shared, service }))
    }

    /// After a batch of frames: takes a snapshot if one is due or wanted and the last is written.
    #[inline]
    pub(crate) fn after_batch<S: Service>(&mut self, fold: &Fold<S>, is_last: bool) -> Result<(), EngineError> {
        let is_due = fold.last_sequence() >= self.next_sequence;
        let is_final = is_last && self.rules.on_stop && !self.asked_last;
        // Relaxed: the lock orders the rest.
        let is_wanted = self.shared.is_wanted.load(Ordering::Relaxed);
        if is_due || is_final || is_wanted { self.take(fold, is_final) } else { Ok(()) }
    }

    #[cold]
    fn take<S: Service>(&mut self, fold: &Fold<S>, is_final: bool) -> Result<(), EngineError> {
        let mut desk = self.shared.lock();
        if let Some(failure) = &desk.failure {
            return Err(EngineError::system("taking a snapshot")(std::io::Error::other(failure.clone())));
        }
        if desk.busy || desk.job.is_some() || fold.is_mid_message() {
            return Ok(());
        }
        self.asked_last |= is_final;
        // Relaxed: under the lock, as the store of whoever asks.
        self.shared.is_wanted.store(false, Ordering::Relaxed);
        let (sequence, serves) = (fold.last_sequence(), desk.requests);
        if sequence > self.asked_sequence {
            desk.job = Some(Job { sequence, bytes: encode(fold, self.identity), serves });
            self.asked_sequence = sequence;
        } else {
            // Nothing has happened since the last one, which is written.
            desk.served = serves;
        }
        drop(desk);
        self.shared.changed.notify_all();
        self.next_sequence = sequence.saturating_add(self.rules.interval_frames.unwrap_or(u64::MAX));
        Ok(())
    }

    /// Whether the last snapshot of a clean stop is written, or cannot be.
    pub(crate) fn is_finished(&self) -> bool {
        let desk = self.shared.lock();
        let is_written = desk.written_sequence >= self.asked_sequence;
        !self.rules.on_stop || desk.failure.is_some() || (self.asked_last && is_written)
    }
}

impl Drop for SnapshotSchedule {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by its message already.
            let _ = thread.join();
        }
    }
}

/// How often a request looks whether the node has failed.
const FAILURE_LOOK: Duration = Duration::from_millis(50);

impl SnapshotRequests {
    /// Waits for a snapshot of everything handled up to now; the sequence that it stands at. `failure` tells
    /// why there will be none.
    ///
    /// # Errors
    /// The snapshot cannot be written, or what `failure` says.
    pub(crate) fn take(&self, failure: impl Fn() -> Option<EngineError>) -> Result<u64, EngineError> {
        let mut desk = self.shared.lock();
        desk.requests += 1;
        let number = desk.requests;
        // Relaxed: the executor takes the lock before it looks further.
        self.shared.is_wanted.store(true, Ordering::Relaxed);
        self.service.wake();
        while desk.served < number {
            if let Some(failure) = &desk.failure {
                return Err(EngineError::system("taking a snapshot")(std::io::Error::other(failure.clone())));
            }
            desk = self.shared.changed.wait_timeout(desk, FAILURE_LOOK).unwrap_or_else(PoisonError::into_inner).0;
            if let Some(error) = failure() {
                return Err(error);
            }
        }
        Ok(desk.written_sequence)
    }
}
