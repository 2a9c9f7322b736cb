//! When snapshots are taken, and the thread that writes them: the executor only encodes the state, so that
//! messages wait for that and not for the disk.

use crate::EngineError;
use crate::fold::Fold;
use crate::snapshot::{self, encode, write};
use gapless_agent::Waker;
use gapless_agent::thread::spawn_helper;
use gapless_log::StreamIdentity;
use gapless_stream::member_service::Snapshots;
use std::path::{Path, PathBuf};
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
    /// Nothing is to be written; what is, stands at `sequence`.
    fn standing_at(sequence: u64) -> Arc<Self> {
        let desk = Mutex::new(Desk { written_sequence: sequence, ..Desk::default() });
        Arc::new(Self { desk, ..Self::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        // No holder leaves the desk half changed.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_jobs(&self, directory: &Path, journal: &mut impl SnapshotJournal) {
        let mut watch = Watch { shared: self, ended: false };
        loop {
            let mut desk = self.lock();
            desk.busy = false;
            while desk.job.is_none() && !desk.stopping {
                desk = self.changed.wait(desk).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(job) = desk.job.take() else {
                watch.ended = true;
                return;
            };
            desk.busy = true;
            drop(desk);
            self.write_job(&job, directory, journal);
        }
    }

    /// Writes the job that waits, where there is no thread for it.
    #[cold]
    fn write_waiting(&self, directory: &Path, journal: &mut dyn SnapshotJournal) {
        let job = self.lock().job.take();
        if let Some(job) = job {
            self.write_job(&job, directory, journal);
        }
    }

    fn write_job(&self, job: &Job, directory: &Path, journal: &mut (impl SnapshotJournal + ?Sized)) {
        let written = journal.sync().and_then(|()| write(directory, job.sequence, &job.bytes));
        if written.is_ok() {
            journal.covered(job.sequence);
        }
        let mut desk = self.lock();
        match written {
            Ok(()) => {
                desk.written_sequence = job.sequence;
                desk.served = job.serves;
            }
            Err(error) => desk.failure = Some(error.to_string()),
        }
        drop(desk);
        self.changed.notify_all();
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
    writer: Writer,
}

/// Who writes.
enum Writer {
    /// A thread of its own; none once it has ended.
    Thread(Option<JoinHandle<()>>),
    /// Whoever polls: what one poll has taken is written by the next.
    Caller(PathBuf, Box<dyn SnapshotJournal>),
}

/// Asks for a snapshot, from any thread.
#[derive(Clone)]
pub struct SnapshotRequests {
    shared: Arc<Shared>,
    service: Waker,
    directory: PathBuf,
    identity: StreamIdentity,
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
        let shared = Shared::standing_at(sequence);
        let (for_thread, for_requests) = (Arc::clone(&shared), directory.clone());
        let thread = spawn_helper("gapless-snapshot", move || for_thread.write_jobs(&directory, &mut journal))?;
        Ok(Self::over(shared, for_requests, identity, sequence, rules, Writer::Thread(Some(thread)), service))
    }

    /// As [`SnapshotSchedule::start`], without a thread: snapshots are written by who polls.
    pub fn by_hand(
        directory: PathBuf,
        identity: StreamIdentity,
        sequence: u64,
        rules: SnapshotRules,
        journal: impl SnapshotJournal + 'static,
        service: Waker,
    ) -> (Self, SnapshotRequests) {
        let writer = Writer::Caller(directory.clone(), Box::new(journal));
        Self::over(Shared::standing_at(sequence), directory, identity, sequence, rules, writer, service)
    }

    fn over(
        shared: Arc<Shared>,
        directory: PathBuf,
        identity: StreamIdentity,
        sequence: u64,
        rules: SnapshotRules,
        writer: Writer,
        service: Waker,
    ) -> (Self, SnapshotRequests) {
        let schedule = Self {
            identity,
            rules,
            next_sequence: sequence.saturating_add(rules.interval_frames.unwrap_or(u64::MAX)),
            asked_sequence: sequence,
            asked_last: false,
            shared: Arc::clone(&shared),
            writer,
        };
        (schedule, SnapshotRequests { shared, service, directory, identity })
    }

    /// After a batch of frames: takes a snapshot if one is due or wanted and the last is written.
    #[inline]
    pub(crate) fn after_batch(&mut self, fold: &mut Fold, is_last: bool) -> Result<(), EngineError> {
        if let Writer::Caller(directory, journal) = &mut self.writer {
            self.shared.write_waiting(directory, &mut **journal);
        }
        let is_due = fold.last_sequence() >= self.next_sequence;
        let is_final = is_last && self.rules.on_stop && !self.asked_last;
        // Relaxed: the lock orders the rest.
        let is_wanted = self.shared.is_wanted.load(Ordering::Relaxed);
        if is_due || is_final || is_wanted { self.take(fold, is_final) } else { Ok(()) }
    }

    #[cold]
    fn take(&mut self, fold: &mut Fold, is_final: bool) -> Result<(), EngineError> {
        let mut desk = self.shared.lock();
        if let Some(failure) = &desk.failure {
            return Err(EngineError::system("taking a snapshot")(std::io::Error::other(failure.clone())));
        }
        if desk.busy || desk.job.is_some() || fold.is_mid_message() {
            return Ok(());
        }
        if !fold.can_snapshot(is_final)? {
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

    /// Where the last snapshot stands that was taken, or is there from before.
    pub(crate) const fn taken_sequence(&self) -> u64 {
        self.asked_sequence
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
        if let Writer::Thread(thread) = &mut self.writer
            && let Some(thread) = thread.take()
        {
            // A panic of the thread has been reported by its message already.
            let _ = thread.join();
        }
    }
}

/// How often a request looks whether the host has failed.
const FAILURE_LOOK: Duration = Duration::from_millis(50);

impl SnapshotRequests {
    /// Asks for one more.
    fn ask(&self) -> MutexGuard<'_, Desk> {
        let mut desk = self.shared.lock();
        desk.requests += 1;
        // Relaxed: the executor takes the lock before it looks further.
        self.shared.is_wanted.store(true, Ordering::Relaxed);
        self.service.wake();
        desk
    }

    /// Waits for a snapshot of everything handled up to now; the sequence that it stands at. `failure` tells
    /// why there will be none.
    ///
    /// # Errors
    /// The snapshot cannot be written, or what `failure` says.
    pub fn take(&self, failure: impl Fn() -> Option<EngineError>) -> Result<u64, EngineError> {
        let mut desk = self.ask();
        let number = desk.requests;
        while desk.served < number {
            if let Some(failure) = &desk.failure {
                return Err(EngineError::system("taking a snapshot")(std::io::Error::other(failure.clone())));
            }
            if desk.stopping && !desk.busy && desk.job.is_none() {
                let reason = "the service has stopped before it was taken";
                return Err(EngineError::system("taking a snapshot")(std::io::Error::other(reason)));
            }
            desk = self.shared.changed.wait_timeout(desk, FAILURE_LOOK).unwrap_or_else(PoisonError::into_inner).0;
            if let Some(error) = failure() {
                return Err(error);
            }
        }
        Ok(desk.written_sequence)
    }
}

impl Snapshots for SnapshotRequests {
    fn take(&self, is_over: &dyn Fn() -> bool) -> Result<u64, String> {
        let over = || {
            let stops = std::io::Error::other("the member stops");
            is_over().then(|| EngineError::system("taking a snapshot")(stops))
        };
        Self::take(self, over).map_err(|error| error.to_string())
    }

    fn hasten(&self) {
        drop(self.ask());
    }

    fn list(&self) -> Result<Vec<(u64, PathBuf)>, String> {
        snapshot::list(&self.directory).map_err(|error| error.to_string())
    }

    fn file_name(&self, sequence: u64) -> String {
        snapshot::file_name(sequence)
    }

    fn check(&self, path: &Path, sequence: u64) -> Result<(), String> {
        snapshot::check(path, self.identity, sequence).map_err(|error| error.to_string())
    }
}
