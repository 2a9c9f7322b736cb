//! [`SnapshotSchedule`]: times of snapshots, and the thread that writes them. The executor only encodes the state, so
//! messages do not wait for the disk.

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

/// Must be on the device before a snapshot of its frames.
pub trait SnapshotJournal: Send {
    /// Syncs the journal to the device.
    ///
    /// # Errors
    /// The sync fails.
    fn sync(&mut self) -> Result<(), EngineError>;
    fn snapshot_written(&mut self, sequence: u64);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRules {
    /// `None`: on request only.
    pub interval_frames: Option<u64>,
    pub on_stop: bool,
}

impl SnapshotRules {
    /// Creates rules for a service with a journal of its own. Without an interval it takes no snapshot at a stop
    /// either, because a start replays the journal. A service on an event stream of others keeps `on_stop` as given.
    pub(crate) const fn for_own_journal(interval_frames: Option<u64>, on_stop: bool) -> Self {
        Self { interval_frames, on_stop: on_stop && interval_frames.is_some() }
    }
}

struct SnapshotJob {
    sequence: u64,
    bytes: Vec<u8>,
    /// Number of the last request that this snapshot answers.
    serves: u64,
}

#[derive(Default)]
struct WriterStatus {
    job: Option<SnapshotJob>,
    written_sequence: u64,
    busy: bool,
    stopping: bool,
    failure: Option<String>,
    requests: u64,
    served: u64,
}

#[derive(Default)]
struct WriterQueue {
    status: Mutex<WriterStatus>,
    changed: Condvar,
    is_wanted: AtomicBool,
}

impl WriterQueue {
    fn after_snapshot(sequence: u64) -> Arc<Self> {
        let status = Mutex::new(WriterStatus { written_sequence: sequence, ..WriterStatus::default() });
        Arc::new(Self { status, ..Self::default() })
    }

    fn lock(&self) -> MutexGuard<'_, WriterStatus> {
        // No holder leaves the status half changed.
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_jobs(&self, directory: &Path, journal: &mut impl SnapshotJournal) {
        let mut report = PanicReport { queue: self, ended: false };
        loop {
            let mut status = self.lock();
            status.busy = false;
            while status.job.is_none() && !status.stopping {
                status = self.changed.wait(status).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(job) = status.job.take() else {
                report.ended = true;
                return;
            };
            status.busy = true;
            drop(status);
            self.write_job(&job, directory, journal);
        }
    }

    #[cold]
    fn write_waiting(&self, directory: &Path, journal: &mut dyn SnapshotJournal) {
        let job = self.lock().job.take();
        if let Some(job) = job {
            self.write_job(&job, directory, journal);
        }
    }

    fn write_job(&self, job: &SnapshotJob, directory: &Path, journal: &mut (impl SnapshotJournal + ?Sized)) {
        let written = journal.sync().and_then(|()| write(directory, job.sequence, &job.bytes));
        if written.is_ok() {
            journal.snapshot_written(job.sequence);
        }
        let mut status = self.lock();
        match written {
            Ok(()) => {
                status.written_sequence = job.sequence;
                status.served = job.serves;
            }
            Err(error) => status.failure = Some(error.to_string()),
        }
        drop(status);
        self.changed.notify_all();
    }
}

/// Makes a panic of the writing thread a failure that the executor sees.
struct PanicReport<'a> {
    queue: &'a WriterQueue,
    ended: bool,
}

impl Drop for PanicReport<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.queue.lock().failure = Some("the snapshot thread panicked".to_owned());
            self.queue.changed.notify_all();
        }
    }
}

pub struct SnapshotSchedule {
    identity: StreamIdentity,
    rules: SnapshotRules,
    next_sequence: u64,
    requested_sequence: u64,
    final_requested: bool,
    unwritten: Option<UnwrittenSnapshot>,
    queue: Arc<WriterQueue>,
    writer: SnapshotWriter,
}

/// Waits for the outputs of its state to be in the stream: a process that starts with it does not make them again.
struct UnwrittenSnapshot {
    job: SnapshotJob,
    /// Number of its last published message.
    published: u64,
}

enum SnapshotWriter {
    /// `None` once it has ended.
    Thread(Option<JoinHandle<()>>),
    /// The executor: each poll writes the snapshot taken by the previous one.
    Caller(PathBuf, Box<dyn SnapshotJournal>),
}

/// Requests snapshots, from any thread.
#[derive(Clone)]
pub struct SnapshotRequests {
    queue: Arc<WriterQueue>,
    service: Waker,
    directory: PathBuf,
    identity: StreamIdentity,
}

impl SnapshotSchedule {
    /// Starts the schedule. It writes to `directory`; the last snapshot is at `sequence`; requests wake `service`.
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
        let queue = WriterQueue::after_snapshot(sequence);
        let (for_thread, for_requests) = (Arc::clone(&queue), directory.clone());
        let thread = spawn_helper("gapless-snapshot", move || for_thread.write_jobs(&directory, &mut journal))?;
        Ok(Self::with_writer(
            queue,
            for_requests,
            identity,
            sequence,
            rules,
            SnapshotWriter::Thread(Some(thread)),
            service,
        ))
    }

    /// Creates the schedule like [`SnapshotSchedule::start`], but without a thread: the executor writes the snapshots
    /// in its polls.
    pub fn by_hand(
        directory: PathBuf,
        identity: StreamIdentity,
        sequence: u64,
        rules: SnapshotRules,
        journal: impl SnapshotJournal + 'static,
        service: Waker,
    ) -> (Self, SnapshotRequests) {
        let writer = SnapshotWriter::Caller(directory.clone(), Box::new(journal));
        Self::with_writer(WriterQueue::after_snapshot(sequence), directory, identity, sequence, rules, writer, service)
    }

    fn with_writer(
        queue: Arc<WriterQueue>,
        directory: PathBuf,
        identity: StreamIdentity,
        sequence: u64,
        rules: SnapshotRules,
        writer: SnapshotWriter,
        service: Waker,
    ) -> (Self, SnapshotRequests) {
        let schedule = Self {
            identity,
            rules,
            next_sequence: sequence.saturating_add(rules.interval_frames.unwrap_or(u64::MAX)),
            requested_sequence: sequence,
            final_requested: false,
            unwritten: None,
            queue: Arc::clone(&queue),
            writer,
        };
        (schedule, SnapshotRequests { queue, service, directory, identity })
    }

    /// Takes a due snapshot of a service with a journal of its own.
    #[inline]
    pub(crate) fn after_batch(&mut self, fold: &mut Fold, is_last: bool) -> Result<(), EngineError> {
        self.after_batch_acknowledged(fold, is_last, u64::MAX)
    }

    /// Takes a due snapshot, and writes it once the stream has every message that its state has published.
    /// `acknowledged`: number of the last one that it is known to have.
    #[inline]
    pub(crate) fn after_batch_acknowledged(
        &mut self,
        fold: &mut Fold,
        is_last: bool,
        acknowledged: u64,
    ) -> Result<(), EngineError> {
        if let SnapshotWriter::Caller(directory, journal) = &mut self.writer {
            self.queue.write_waiting(directory, &mut **journal);
        }
        let is_due = fold.last_sequence() >= self.next_sequence && !self.final_requested;
        let is_final = is_last && self.rules.on_stop && !self.final_requested;
        // Relaxed: the lock orders the rest.
        let is_wanted = self.queue.is_wanted.load(Ordering::Relaxed);
        if is_final || ((is_due || is_wanted) && self.unwritten.is_none()) {
            self.take(fold, is_final)?;
        }
        if self.unwritten.as_ref().is_some_and(|snapshot| snapshot.published <= acknowledged) {
            self.begin_write();
        }
        Ok(())
    }

    #[cold]
    fn take(&mut self, fold: &mut Fold, is_final: bool) -> Result<(), EngineError> {
        let mut status = self.queue.lock();
        status.check()?;
        if status.busy || status.job.is_some() || fold.is_mid_message() {
            return Ok(());
        }
        if !fold.can_snapshot(is_final)? {
            return Ok(());
        }
        if self.unwritten.take().is_some() {
            // The final one replaces it.
            self.requested_sequence = status.written_sequence;
        }
        self.final_requested |= is_final;
        // Relaxed: under the lock.
        self.queue.is_wanted.store(false, Ordering::Relaxed);
        let (sequence, serves) = (fold.last_sequence(), status.requests);
        if sequence > self.requested_sequence {
            let job = SnapshotJob { sequence, bytes: encode(fold, self.identity), serves };
            self.unwritten = Some(UnwrittenSnapshot { job, published: fold.next_published - 1 });
            self.requested_sequence = sequence;
        } else {
            // Nothing was applied since the last snapshot, which is written.
            status.served = serves;
        }
        drop(status);
        self.queue.changed.notify_all();
        self.next_sequence = sequence.saturating_add(self.rules.interval_frames.unwrap_or(u64::MAX));
        Ok(())
    }

    #[cold]
    fn begin_write(&mut self) {
        self.queue.lock().job = self.unwritten.take().map(|snapshot| snapshot.job);
        self.queue.changed.notify_all();
    }

    pub(crate) const fn taken_sequence(&self) -> u64 {
        self.requested_sequence
    }

    pub(crate) fn is_finished(&self) -> bool {
        let status = self.queue.lock();
        let is_written = status.written_sequence >= self.requested_sequence;
        !self.rules.on_stop || status.failure.is_some() || (self.final_requested && is_written)
    }

    /// # Errors
    /// A snapshot could not be written.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        self.queue.lock().check()
    }

    pub(crate) fn is_writing(&self) -> bool {
        let status = self.queue.lock();
        status.busy || status.job.is_some()
    }
}

impl Drop for SnapshotSchedule {
    fn drop(&mut self) {
        self.queue.lock().stopping = true;
        self.queue.changed.notify_all();
        if let SnapshotWriter::Thread(thread) = &mut self.writer
            && let Some(thread) = thread.take()
        {
            // A panic of the thread was reported already.
            let _ = thread.join();
        }
    }
}

/// Interval of checks for a failed host.
const FAILURE_CHECK_INTERVAL: Duration = Duration::from_millis(50);

impl WriterStatus {
    fn check(&self) -> Result<(), EngineError> {
        self.failure.as_ref().map_or(Ok(()), |failure| {
            Err(EngineError::system("taking a snapshot")(std::io::Error::other(failure.clone())))
        })
    }

    fn taken(&self, number: u64) -> Option<Result<u64, EngineError>> {
        if self.served >= number {
            return Some(Ok(self.written_sequence));
        }
        let reason = match &self.failure {
            Some(failure) => failure.clone(),
            None if self.stopping && !self.busy && self.job.is_none() => {
                "the service has stopped before it was taken".to_owned()
            }
            None => return None,
        };
        Some(Err(EngineError::system("taking a snapshot")(std::io::Error::other(reason))))
    }
}

impl SnapshotRequests {
    fn request(&self) -> MutexGuard<'_, WriterStatus> {
        let mut status = self.queue.lock();
        status.requests += 1;
        // Relaxed: the executor takes the lock before it reads more.
        self.queue.is_wanted.store(true, Ordering::Relaxed);
        self.service.wake();
        status
    }

    /// Waits for a snapshot of everything handled so far; returns its sequence. `failure` returns an error once none
    /// can be expected.
    ///
    /// # Errors
    /// The snapshot cannot be written; or the failure.
    pub fn take(&self, failure: impl Fn() -> Option<EngineError>) -> Result<u64, EngineError> {
        let mut status = self.request();
        let number = status.requests;
        loop {
            if let Some(taken) = status.taken(number) {
                return taken;
            }
            status = self
                .queue
                .changed
                .wait_timeout(status, FAILURE_CHECK_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            if let Some(error) = failure() {
                return Err(error);
            }
        }
    }

    pub(crate) fn begin(&self) -> u64 {
        self.request().requests
    }

    pub(crate) fn taken(&self, number: u64) -> Option<Result<u64, EngineError>> {
        self.queue.lock().taken(number)
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

    fn expedite(&self) {
        drop(self.request());
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
