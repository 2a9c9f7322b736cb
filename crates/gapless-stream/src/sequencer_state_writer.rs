//! [`SequencerStateWriter`]: writes the sequencer's state on a thread of its own. Retention may delete journal frames
//! that the newest state covers.

use crate::StreamError;
use crate::retention_watermark::RetentionWatermark;
use crate::sequencer_state::SequencerState;
use gapless_agent::checked_file;
use gapless_agent::fault::crash_point;
use gapless_agent::private_folder;
use gapless_agent::thread::spawn_helper;
use gapless_journal::{DiskOperation, FilePoint, FileReplacement, Syncer};
use gapless_log::{StreamIdentity, Window};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// The older one serves if the newer cannot be read.
const STATES_KEPT: usize = 2;
const PREFIX: &str = "state-";

pub struct SequencerStateWriter {
    driver: WriterDriver,
    /// Truncations so far: an earlier state may cover frames that are gone.
    cuts: Arc<AtomicU64>,
    identity: StreamIdentity,
    interval: StateInterval,
    next_sequence: u64,
    next_ns: u64,
}

enum WriterDriver {
    Thread {
        sender: Option<SyncSender<(u64, SequencerState)>>,
        thread: Option<JoinHandle<()>>,
        is_closing: Arc<AtomicBool>,
    },
    /// [`SequencerStateWriter::turn`] writes; `waiting` has unreleased frames.
    Caller { files: Box<StateFiles>, waiting: Option<(u64, SequencerState)> },
}

struct StateFiles {
    directory: PathBuf,
    window: Window,
    syncer: Syncer,
    watermark: RetentionWatermark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateInterval {
    /// Minimum number of frames.
    pub frames: u64,
    /// Minimum time, ns.
    pub time_min_ns: u64,
}

impl SequencerStateWriter {
    /// Writes states to `directory`, each once `syncer` has the journal on the device that far, and reports them to
    /// `watermark`.
    ///
    /// # Errors
    /// The directory cannot be created, or no thread can be started.
    pub fn start(
        directory: PathBuf,
        identity: StreamIdentity,
        sequence: u64,
        interval: StateInterval,
        window: Window,
        (syncer, watermark): (Syncer, RetentionWatermark),
    ) -> Result<Self, StreamError> {
        let mut writer = Self::by_hand(directory, identity, sequence, interval, window, (syncer, watermark))?;
        let is_closing = Arc::<AtomicBool>::default();
        let nobody = WriterDriver::Thread { sender: None, thread: None, is_closing: Arc::clone(&is_closing) };
        if let WriterDriver::Caller { files, .. } = std::mem::replace(&mut writer.driver, nobody) {
            let (sender, receiver) = sync_channel(1);
            let (cuts_seen, closes) = (Arc::clone(&writer.cuts), Arc::clone(&is_closing));
            let thread = spawn_helper("gapless-state", move || write_states(&files, &receiver, &cuts_seen, &closes))?;
            writer.driver = WriterDriver::Thread { sender: Some(sender), thread: Some(thread), is_closing };
        }
        Ok(writer)
    }

    /// Starts without a thread: [`SequencerStateWriter::turn`] writes.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn by_hand(
        directory: PathBuf,
        identity: StreamIdentity,
        sequence: u64,
        interval: StateInterval,
        window: Window,
        (syncer, watermark): (Syncer, RetentionWatermark),
    ) -> Result<Self, StreamError> {
        private_folder::create(&directory).map_err(system("making", &directory))?;
        let next_sequence = sequence.saturating_add(interval.frames);
        let files = Box::new(StateFiles { directory, window, syncer, watermark });
        let driver = WriterDriver::Caller { files, waiting: None };
        Ok(Self { driver, cuts: Arc::default(), identity, interval, next_sequence, next_ns: 0 })
    }

    /// Writes the waiting state once its frames are released, without a thread.
    #[inline]
    pub fn turn(&mut self) {
        if let WriterDriver::Caller { files, waiting } = &mut self.driver
            && let Some((cuts_before, state)) =
                waiting.take_if(|(_, state)| files.window.released_sequence() >= state.sequence)
        {
            files.write(&state, cuts_before, &self.cuts);
        }
    }

    /// Whether a state is due; `now_ns` is monotonic.
    #[inline]
    #[must_use]
    pub const fn is_due(&self, sequence: u64, now_ns: u64) -> bool {
        sequence >= self.next_sequence && now_ns >= self.next_ns
    }

    pub const fn expedite(&mut self) {
        (self.next_sequence, self.next_ns) = (0, 0);
    }

    #[must_use]
    pub const fn identity(&self) -> StreamIdentity {
        self.identity
    }

    /// Takes a state; while one is written, a second waits and a third is dropped.
    pub fn submit(&mut self, state: SequencerState, now_ns: u64) {
        self.next_sequence = state.sequence.saturating_add(self.interval.frames);
        self.next_ns = now_ns.saturating_add(self.interval.time_min_ns);
        // Relaxed: only this thread changes it.
        let cuts = self.cuts.load(Ordering::Relaxed);
        match &mut self.driver {
            WriterDriver::Thread { sender: Some(sender), .. } => {
                // A later state will cover more; a thread that ended has logged the reason.
                let _ = sender.try_send((cuts, state));
            }
            WriterDriver::Thread { sender: None, .. } => {}
            WriterDriver::Caller { waiting, .. } => *waiting = Some((cuts, state)),
        }
    }

    /// Discards unwritten states, before anything is released after a truncation.
    pub fn discard_unreleased(&mut self, sequence: u64) {
        // Pairs with the Acquire in write_states, through the later release of frames.
        self.cuts.fetch_add(1, Ordering::Release);
        self.next_sequence = self.next_sequence.min(sequence.saturating_add(self.interval.frames));
    }
}

impl Drop for SequencerStateWriter {
    fn drop(&mut self) {
        let WriterDriver::Thread { sender, thread, is_closing } = &mut self.driver else { return };
        *sender = None;
        // Relaxed: the flag guards no data.
        is_closing.store(true, Ordering::Relaxed);
        if let Some(thread) = thread.take() {
            // The message of a panic has been printed already.
            let _ = thread.join();
        }
    }
}

const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);
/// Frames that are never released, as of a member without a quorum, must not delay the stop.
const RELEASE_TIMEOUT_CLOSING: Duration = Duration::from_secs(1);

fn write_states(
    files: &StateFiles,
    receiver: &Receiver<(u64, SequencerState)>,
    cuts: &AtomicU64,
    is_closing: &AtomicBool,
) {
    while let Ok((cuts_before, state)) = receiver.recv() {
        if !is_released(&files.window, state.sequence, is_closing) {
            tracing::warn!(sequence = state.sequence, "a state is not written: its frames were not released");
            continue;
        }
        files.write(&state, cuts_before, cuts);
    }
}

impl StateFiles {
    fn write(&self, state: &SequencerState, cuts_before: u64, cuts: &AtomicU64) {
        // Acquire: a thread that sees the release of frames appended after a truncation also sees the truncation.
        // Released frames are never truncated.
        if cuts.load(Ordering::Acquire) != cuts_before {
            return;
        }
        // A state must never be ahead of the journal, even after a power failure.
        let synced = self.syncer.sync_and_check().map_err(StreamError::from);
        let room = || self.syncer.check_disk(DiskOperation::Allocate).map_err(system("writing into", &self.directory));
        let written = synced.and_then(|_| room()).and_then(|()| write(&self.directory, state));
        match written {
            Ok(()) => self.watermark.mark_covered(state.sequence),
            Err(error) => tracing::error!(%error, "the sequencer's state cannot be written; the journal keeps growing"),
        }
    }
}

fn is_released(window: &Window, sequence: u64, is_closing: &AtomicBool) -> bool {
    let step = Duration::from_millis(1);
    let mut left = RELEASE_TIMEOUT;
    while window.released_sequence() < sequence {
        // Relaxed: as where it is stored.
        if is_closing.load(Ordering::Relaxed) {
            left = left.min(RELEASE_TIMEOUT_CLOSING);
        }
        left = left.saturating_sub(step);
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(step);
    }
    true
}

fn write(directory: &Path, state: &SequencerState) -> Result<(), StreamError> {
    let path = directory.join(file_name(state.sequence));
    let unfinished = directory.join("unfinished");
    let mut file = FileReplacement::begin(&path, unfinished.clone(), 0o600).map_err(system("making", &unfinished))?;
    file.write_all(&state.to_bytes()).map_err(system("writing", &unfinished))?;
    crash_point("in_state_write");
    file.sync().map_err(system("syncing", &unfinished))?;
    file.put_in_place().map_err(system("renaming", &unfinished))?;
    let states = list(directory)?;
    for (_, old) in &states[..states.len().saturating_sub(STATES_KEPT)] {
        checked_file::remove(old).map_err(system("removing", old))?;
    }
    Ok(())
}

fn list(directory: &Path) -> Result<Vec<(u64, PathBuf)>, StreamError> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(system("listing", directory)(error)),
    };
    let mut states = Vec::new();
    for entry in entries {
        let entry = entry.map_err(system("listing", directory))?;
        let name = entry.file_name();
        let sequence = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|digits| digits.parse().ok());
        states.extend(sequence.map(|sequence| (sequence, entry.path())));
    }
    states.sort_unstable();
    Ok(states)
}

/// Rewrites states for another incarnation of the same stream; removes unreadable ones, which readers would skip.
///
/// # Errors
/// The directory cannot be read or written, or holds states of another stream.
pub fn adopt(directory: &Path, identity: StreamIdentity) -> Result<(), StreamError> {
    for (_, path) in list(directory)? {
        match SequencerState::read(&path).map_err(system("reading", &path))? {
            Ok(state) if state.identity.stream_id != identity.stream_id => {
                let reason = "it belongs to another stream than the journal beside it".to_owned();
                return Err(StreamError::State { path, reason });
            }
            Ok(state) => write(directory, &SequencerState { identity, ..state })?,
            Err(reason) => {
                tracing::warn!(path = %path.display(), reason, "a state is damaged and removed");
                checked_file::remove(&path).map_err(system("removing", &path))?;
            }
        }
    }
    Ok(())
}

/// Journal positions recorded by the states, oldest first; of an unreadable one only the name is used.
///
/// # Errors
/// The directory cannot be read.
pub fn points(directory: &Path) -> Result<Vec<FilePoint>, StreamError> {
    let point = |(sequence, path): (u64, PathBuf)| {
        let state = SequencerState::read(&path)
            .map_err(system("reading", &path))?
            .ok()
            .filter(|state| state.sequence == sequence);
        let identity = state.as_ref().map(|state| (state.identity.stream_id, state.identity.incarnation));
        let timestamp_ns = state.map(|state| state.timestamp_ns);
        Ok(FilePoint { path, identity, sequence, timestamp_ns })
    };
    list(directory)?.into_iter().map(point).collect()
}

/// Newest state not ahead of `last_sequence`.
///
/// # Errors
/// The directory cannot be read.
pub fn newest_file(directory: &Path, last_sequence: u64) -> Result<Option<(u64, PathBuf)>, StreamError> {
    Ok(list(directory)?.into_iter().rev().find(|(sequence, _)| *sequence <= last_sequence))
}

#[must_use]
pub fn file_name(sequence: u64) -> String {
    format!("{PREFIX}{sequence:020}")
}

/// Whether the file is a state of `identity` at `sequence`.
///
/// # Errors
/// It cannot be read, or is something else.
pub fn check(path: &Path, identity: StreamIdentity, sequence: u64) -> Result<(), StreamError> {
    let state = SequencerState::read(path).map_err(system("reading", path))?.and_then(|state| {
        let is_it = state.identity == identity && state.sequence == sequence;
        let why = "it is of another stream, or stands at another sequence, than is said";
        if is_it { Ok(()) } else { Err(why.to_owned()) }
    });
    state.map_err(|reason| StreamError::State { path: path.to_owned(), reason })
}

/// Newest state not ahead of `last_sequence`, the journal's end. Skips unreadable ones with a warning: an older one
/// plus the journal gives the same state.
///
/// # Errors
/// The directory cannot be read, or holds states of another stream.
pub fn newest(
    directory: &Path,
    identity: StreamIdentity,
    last_sequence: u64,
) -> Result<Option<SequencerState>, StreamError> {
    for (sequence, path) in list(directory)?.into_iter().rev().filter(|(sequence, _)| *sequence <= last_sequence) {
        let state = SequencerState::read(&path).map_err(system("reading", &path))?.and_then(|state| {
            let is_named = state.sequence == sequence;
            if is_named { Ok(state) } else { Err(format!("it stands at sequence {}, not {sequence}", state.sequence)) }
        });
        match state {
            Ok(state) if state.identity == identity => return Ok(Some(state)),
            Ok(_) => {
                let reason = "it belongs to another stream or incarnation than the journal beside it".to_owned();
                return Err(StreamError::State { path, reason });
            }
            Err(reason) => tracing::warn!(path = %path.display(), reason, "a state is damaged and passed over"),
        }
    }
    Ok(None)
}

fn system<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> StreamError + 'a {
    move |source| StreamError::System { action: format!("{action} {}", path.display()), source }
}
