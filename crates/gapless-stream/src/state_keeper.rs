//! [`StateKeeper`]: writes the sequencer's state aside now and then, on a thread of its own, and finds it again.
//! What the newest state covers, retention may delete from the journal.

use crate::StreamError;
use crate::sequencer_state::SequencerState;
use gapless_agent::fault::crash_point;
use gapless_agent::thread::spawn_helper;
use gapless_journal::{Preparer, Syncer};
use gapless_log::{StreamIdentity, Window};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// States that are kept; the older one is for a newer one that cannot be read.
const STATES_KEPT: usize = 2;
const PREFIX: &str = "state-";

/// Takes states from the sequencer and writes them.
pub struct StateKeeper {
    sender: Option<SyncSender<SequencerState>>,
    thread: Option<JoinHandle<()>>,
    identity: StreamIdentity,
    interval: StateInterval,
    next_sequence: u64,
    /// Not before this time.
    next_ns: u64,
}

/// How often the state is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateInterval {
    /// After so many frames.
    pub frames: u64,
    /// But not more often than this, ns.
    pub time_min_ns: u64,
}

impl StateKeeper {
    /// A keeper that writes into `directory`, after each `interval` from `sequence` on, what the journal of `syncer` and
    /// `preparer` has.
    ///
    /// # Errors
    /// The directory cannot be made, or no thread be started.
    pub fn start(
        directory: PathBuf,
        identity: StreamIdentity,
        sequence: u64,
        interval: StateInterval,
        window: Window,
        (syncer, preparer): (Syncer, Preparer),
    ) -> Result<Self, StreamError> {
        std::fs::create_dir_all(&directory).map_err(system("making", &directory))?;
        if sequence > 0 {
            preparer.set_snapshot_sequence(sequence);
        }
        let (sender, receiver) = sync_channel(1);
        let run = move || write_states(&directory, &receiver, &window, &syncer, &preparer);
        let thread = spawn_helper("gapless-state", run)?;
        let next_sequence = sequence.saturating_add(interval.frames);
        Ok(Self { sender: Some(sender), thread: Some(thread), identity, interval, next_sequence, next_ns: 0 })
    }

    /// Whether it is time, the stream standing at `sequence`, at `now_ns`, monotonic.
    #[inline]
    #[must_use]
    pub const fn is_due(&self, sequence: u64, now_ns: u64) -> bool {
        sequence >= self.next_sequence && now_ns >= self.next_ns
    }

    /// Whose states these are.
    #[must_use]
    pub const fn identity(&self) -> StreamIdentity {
        self.identity
    }

    /// Takes a state to be written at `now_ns`; one that comes while another is written waits, a third is left out.
    pub fn keep(&mut self, state: SequencerState, now_ns: u64) {
        self.next_sequence = state.sequence.saturating_add(self.interval.frames);
        self.next_ns = now_ns.saturating_add(self.interval.time_min_ns);
        if let Some(sender) = &self.sender {
            // Full: the next one will say more. Gone: the thread has said why in the log.
            let _ = sender.try_send(state);
        }
    }
}

impl Drop for StateKeeper {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported by its message already.
            let _ = thread.join();
        }
    }
}

/// How long a state waits for its frames to be released, when the stream ends.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);

fn write_states(
    directory: &Path,
    receiver: &Receiver<SequencerState>,
    window: &Window,
    syncer: &Syncer,
    preparer: &Preparer,
) {
    while let Ok(state) = receiver.recv() {
        if !is_released(window, state.sequence) {
            tracing::warn!(sequence = state.sequence, "a state is not written: its frames were not released");
            continue;
        }
        // A state must never be ahead of the journal, also after power was lost.
        let written = syncer.sync().map_err(StreamError::from).and_then(|_| write(directory, &state));
        match written {
            Ok(()) => preparer.set_snapshot_sequence(state.sequence),
            Err(error) => tracing::error!(%error, "the sequencer's state cannot be written; the journal keeps growing"),
        }
    }
}

fn is_released(window: &Window, sequence: u64) -> bool {
    let step = Duration::from_millis(1);
    for _ in 0..RELEASE_TIMEOUT.as_millis() {
        if window.released_sequence() >= sequence {
            return true;
        }
        std::thread::sleep(step);
    }
    false
}

fn write(directory: &Path, state: &SequencerState) -> Result<(), StreamError> {
    let path = directory.join(format!("{PREFIX}{:020}", state.sequence));
    let unfinished = directory.join("unfinished");
    let mut file = File::create(&unfinished).map_err(system("making", &unfinished))?;
    file.write_all(&state.to_bytes()).map_err(system("writing", &unfinished))?;
    crash_point("in_state_write");
    file.sync_all().map_err(system("syncing", &unfinished))?;
    std::fs::rename(&unfinished, &path).map_err(system("renaming", &unfinished))?;
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(system("syncing", directory))?;
    let states = list(directory)?;
    for (_, old) in &states[..states.len().saturating_sub(STATES_KEPT)] {
        std::fs::remove_file(old).map_err(system("removing", old))?;
    }
    Ok(())
}

/// The states in `directory` by their sequences, oldest first.
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

/// The newest state in `directory` of the stream `identity` that is not ahead of `last_sequence`, where its journal
/// ends. One that cannot be read is passed over with a warning: an older one and the journal say the same.
///
/// # Errors
/// The directory cannot be read, or holds another stream's states.
pub fn newest(
    directory: &Path,
    identity: StreamIdentity,
    last_sequence: u64,
) -> Result<Option<SequencerState>, StreamError> {
    for (sequence, path) in list(directory)?.into_iter().rev().filter(|(sequence, _)| *sequence <= last_sequence) {
        let bytes = std::fs::read(&path).map_err(system("reading", &path))?;
        let state = SequencerState::from_bytes(&bytes).and_then(|state| {
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
