//! [`CommandLog`]: kept commands in one append-only file, which only one process uses at a time. It survives the death
//! of the process, as nothing is acknowledged before the operating system has it; not a power failure.

use super::command::KeptCommand;
use super::log_state::LogState;
use super::record::{Record, UNNUMBERED};
use crate::polled::{MessageType, SavedSession};
use crate::shared::call_state::Ending;
use crate::{ClientError, CommandNumber};
use gapless_agent::file_lock;
use gapless_agent::folder::Folder;
use rustix::fs::{Mode, OFlags};
use std::borrow::Cow;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::time::{Duration, Instant};

pub(super) const FILE_NAME: &str = "outbox";
const LOCK_NAME: &str = "outbox.lock";
const LOCK_INTERVAL: Duration = Duration::from_millis(5);

pub(super) struct CommandLog {
    path: PathBuf,
    state: Mutex<LogState>,
    lock: File,
}

/// A command was not kept.
#[derive(Debug)]
pub(super) enum NotKept {
    Full { kept: usize },
    Failed(ClientError),
}

/// A command whose number was recorded, and not its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsettled {
    pub id: u64,
    pub number: CommandNumber,
    /// The number belongs to the last session, not to an earlier one.
    pub is_of_session: bool,
}

impl CommandLog {
    /// Opens the log of a directory, which is created if it is missing. Another process may need a moment to end: its
    /// lock is waited for.
    ///
    /// # Errors
    /// The directory is in use; the file is damaged, or is none; an error of the operating system.
    pub fn open(directory: &Path, lock_within: Duration) -> Result<Self, ClientError> {
        let path = directory.join(FILE_NAME);
        let failed = |action| move |error| error_at(directory, format!("cannot {action}: {error}"));
        let folder = Folder::create_private(directory).map_err(failed("open the directory"))?;
        let mode = Mode::RUSR | Mode::WUSR;
        let lock = folder.open_or_create_file(LOCK_NAME, OFlags::RDWR, mode).map_err(failed("open its lock"))?;
        let deadline = Instant::now() + lock_within;
        while !file_lock::try_lock(&lock).map_err(failed("lock it"))? {
            if Instant::now() >= deadline {
                let reason = "another client uses this directory; end it, or choose another directory".to_owned();
                return Err(error_at(directory, reason));
            }
            std::thread::sleep(LOCK_INTERVAL);
        }
        let opened = LogState::open(folder, &path);
        match opened {
            Ok(state) => Ok(Self { path, state: Mutex::new(state), lock }),
            Err(reason) => {
                file_lock::unlock(&lock);
                Err(error_at(&path, reason))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn error(&self, reason: String) -> ClientError {
        error_at(&self.path, reason)
    }

    pub fn session(&self) -> Option<SavedSession> {
        self.lock().session
    }

    /// Records the session of later numbers: before it is opened, and after that.
    ///
    /// # Errors
    /// The disk refuses it.
    pub fn save_session(&self, session: SavedSession) -> Result<(), ClientError> {
        self.lock().append(&Record::Session(session)).map_err(|reason| self.error(reason))
    }

    /// Records the last frame that was seen, if an outcome came with it or the session is another.
    pub fn see(&self, session: SavedSession) {
        let mut state = self.lock();
        let is_known = state.session.is_some_and(|known| known.session == session.session);
        if (!is_known || state.has_settled) && state.session != Some(session) {
            // The next outcome tries again.
            let _ = state.append(&Record::Session(session));
        }
        state.has_settled = false;
    }

    /// Records a command. At most `count_max` are kept, settled ones included.
    ///
    /// # Errors
    /// Too many are kept; the disk refuses it.
    pub fn keep(&self, message: MessageType, payload: Vec<u8>, count_max: usize) -> Result<Arc<KeptCommand>, NotKept> {
        let mut state = self.lock();
        if !state.has_room(payload.len(), count_max) {
            return Err(NotKept::Full { kept: state.kept.len() });
        }
        state.rewrite_if_due(&self.path);
        let id = state.next_id;
        let kept = state.append(&Record::Kept { id, message, payload: &payload });
        kept.map_err(|reason| NotKept::Failed(self.error(reason)))?;
        Ok(state.command(id).expect("it was kept"))
    }

    /// Records the number under which a command is going to be sent.
    ///
    /// # Errors
    /// The disk refuses it; the command was forgotten.
    pub fn number(&self, id: u64, number: CommandNumber) -> Result<(), ClientError> {
        let mut state = self.lock();
        match state.kept.get(&id) {
            None => Err(self.error(FORGOTTEN.to_owned())),
            Some(kept) if kept.number == Some(number) && kept.is_of_session => Ok(()),
            Some(_) => state.append(&Record::Numbered { id, number }).map_err(|reason| self.error(reason)),
        }
    }

    /// Records that the number has brought no command into the stream, and never will.
    ///
    /// # Errors
    /// The disk refuses it.
    pub fn unnumber(&self, id: u64) -> Result<(), ClientError> {
        self.number(id, UNNUMBERED)
    }

    /// Keeps an outcome. If the disk refuses it, it is written before the next number.
    ///
    /// # Errors
    /// The disk has refused it.
    pub fn settle(&self, id: u64, ending: Ending) -> Result<(), ClientError> {
        let mut state = self.lock();
        let Some(command) = state.command(id) else { return Ok(()) };
        if command.is_settled() {
            return Ok(());
        }
        let ending = command.settle(ending);
        state.has_settled = true;
        let settled = state.append(&Record::Settled { id, ending: Cow::Borrowed(&ending) });
        settled.map_err(|reason| {
            state.unwritten.push(id);
            self.error(reason)
        })
    }

    /// # Errors
    /// The disk refuses it; the command stays kept.
    pub fn forget(&self, id: u64) -> Result<(), ClientError> {
        let mut state = self.lock();
        let Some(command) = state.command(id) else { return Ok(()) };
        state.rewrite_if_due(&self.path);
        state.append(&Record::Forgotten { id }).map_err(|reason| self.error(reason))?;
        drop(state);
        command.stop(FORGOTTEN.to_owned());
        command.wake();
        Ok(())
    }

    /// Kept commands, oldest first.
    pub fn commands(&self) -> Vec<Arc<KeptCommand>> {
        self.lock().kept.values().map(|kept| Arc::clone(&kept.command)).collect()
    }

    pub fn count(&self) -> usize {
        self.lock().kept.len()
    }

    /// Commands that may have been sent, and have no outcome yet; oldest first.
    pub fn unsettled(&self) -> Vec<Unsettled> {
        let state = self.lock();
        let numbered = state.kept.iter().filter(|(_, kept)| !kept.command.is_settled());
        let with_number = |(id, kept): (&u64, &super::log_state::KeptEntry)| {
            kept.number.map(|number| Unsettled { id: *id, number, is_of_session: kept.is_of_session })
        };
        numbered.filter_map(with_number).collect()
    }
}

impl Drop for CommandLog {
    fn drop(&mut self) {
        file_lock::unlock(&self.lock);
    }
}

const FORGOTTEN: &str = "the command was forgotten";

fn error_at(path: &Path, reason: String) -> ClientError {
    ClientError::Outbox { path: path.display().to_string(), reason }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests;
