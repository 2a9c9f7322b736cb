//! [`CopyDirectory`]: the files of one copy.

use super::files::{self, PRIVATE_FILE, make_directory};
use super::holder::{Heirs, Holder};
use super::launch_plan::{LaunchFailure, LaunchPlan};
use super::lock::{HeldLock, Inherited};
use crate::copy_name::CopyName;
use crate::error::SupervisorError;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const LAUNCH: &str = "launch";
const LAUNCH_ERROR: &str = "launch-error";
const LOCK: &str = "lock";

/// The files of one copy. Written by the supervisor, but for the lock and the reason of a failure, which are the launcher's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyDirectory {
    path: PathBuf,
    name: CopyName,
}

impl CopyDirectory {
    pub(super) const fn new(path: PathBuf, name: CopyName) -> Self {
        Self { path, name }
    }

    /// The copy that it belongs to.
    #[must_use]
    pub const fn name(&self) -> &CopyName {
        &self.name
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it, or makes it usable again: files that were being written when their process was killed go.
    ///
    /// # Errors
    /// The system's.
    pub fn prepare(&self) -> Result<(), SupervisorError> {
        make_directory(&self.path, Mode::RWXU, None)?;
        let failed = || SupervisorError::io(format!("listing {}", self.path.display()));
        for entry in std::fs::read_dir(&self.path).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            if entry.file_name().to_string_lossy().ends_with(files::NEW) {
                files::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Writes the intent. Only then may the guardian be asked to start it.
    ///
    /// # Errors
    /// The system's; the intent before is then still in force.
    pub fn write_launch(&self, plan: &LaunchPlan) -> Result<(), SupervisorError> {
        files::write_json(&self.path.join(LAUNCH), plan)
    }

    /// The intent, if there is one.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_launch(&self) -> Result<Option<LaunchPlan>, SupervisorError> {
        files::read_json(&self.path.join(LAUNCH))
    }

    /// Writes why a launcher did not become the copy.
    ///
    /// # Errors
    /// The system's.
    pub fn write_launch_failure(&self, failure: &LaunchFailure) -> Result<(), SupervisorError> {
        files::write_json(&self.path.join(LAUNCH_ERROR), failure)
    }

    /// Opens the file for that, for a launcher that may not write here when it fails.
    ///
    /// # Errors
    /// The system's.
    pub fn open_launch_failure(&self) -> Result<LaunchFailureFile, SupervisorError> {
        let path = self.path.join(LAUNCH_ERROR);
        let file = files::open_to_write(&path, OFlags::empty(), PRIVATE_FILE)?;
        Ok(LaunchFailureFile { file: file.into(), path })
    }

    /// Why the launcher of this incarnation did not become the copy; `None` if it did, or could not say.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_launch_failure(&self, incarnation: u64) -> Result<Option<LaunchFailure>, SupervisorError> {
        let path = self.path.join(LAUNCH_ERROR);
        // One that was opened and not written.
        if std::fs::metadata(&path).is_ok_and(|file| file.len() == 0) {
            return Ok(None);
        }
        let found = files::read_json::<LaunchFailure>(&path)?;
        Ok(found.filter(|failure| failure.incarnation == incarnation))
    }

    /// The process that holds the lock, and is thus this copy.
    ///
    /// # Errors
    /// The lock or `/proc` cannot be read, or this process has no descriptor left.
    pub fn holder(&self) -> Result<Holder, SupervisorError> {
        // An intent that cannot be read names nobody else: what runs was believed when it was written.
        let heirs = files::read_json::<Heirs>(&self.path.join(LAUNCH)).ok().flatten().unwrap_or_default();
        Holder::of(&self.path.join(LOCK), Some(&heirs))
    }

    /// Takes the lock, for as long as this process or anything that it becomes or forks lives. `None`: this copy runs.
    ///
    /// # Errors
    /// The system's.
    pub fn lock(&self) -> Result<Option<HeldLock>, SupervisorError> {
        self.lock_as(Inherited::Yes)
    }

    fn lock_as(&self, inherited: Inherited) -> Result<Option<HeldLock>, SupervisorError> {
        let Some(lock) = HeldLock::take(&self.path.join(LOCK), inherited)? else { return Ok(None) };
        // A program that closes everything closes its lock, too.
        let previous = lock.previous();
        let lives = previous.is_some_and(|record| !matches!(record.process.open(), Ok(None)));
        Ok((!lives).then_some(lock))
    }

    /// Removes all of it, if the copy does not run: whether it was removed, or was not there.
    ///
    /// # Errors
    /// The system's; what is left is removed by another attempt.
    pub fn remove(&self) -> Result<bool, SupervisorError> {
        if !self.path.exists() {
            return Ok(true);
        }
        let Some(_lock) = self.lock_as(Inherited::No)? else { return Ok(false) };
        self.prepare()?;
        // The lock is the last: while it is there, nobody makes another one beside it.
        for name in [LAUNCH, LAUNCH_ERROR, LOCK] {
            files::remove(&self.path.join(name))?;
        }
        files::remove_directory(&self.path).map(|()| true)
    }
}

/// The file for why a launcher did not become the copy, opened before that is known.
#[derive(Debug)]
pub struct LaunchFailureFile {
    file: File,
    path: PathBuf,
}

impl LaunchFailureFile {
    /// Writes it. Not in one piece: it is read when the launcher has ended.
    ///
    /// # Errors
    /// The system's.
    pub fn write(self, failure: &LaunchFailure) -> Result<(), SupervisorError> {
        let text = serde_json::to_vec(failure).expect("a reason has nothing that JSON has not");
        let written = self.file.write_all_at(&text, 0).and_then(|()| self.file.set_len(text.len() as u64));
        written.map_err(SupervisorError::io(format!("writing {}", self.path.display())))
    }
}
