//! `InstanceDirectory`: files of one instance.

use super::files::{self, PRIVATE_FILE, make_directory};
use super::holder::{AllowedHolders, Holder};
use super::launch_plan::{LaunchFailure, LaunchPlan};
use super::lock::{HeldLock, Inheritance};
use crate::error::SupervisorError;
use crate::instance_name::InstanceName;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const LAUNCH: &str = "launch";
const LAUNCH_ERROR: &str = "launch-error";
const LOCK: &str = "lock";

/// Files of one instance, written by the supervisor; lock and launch failure by the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceDirectory {
    path: PathBuf,
    name: InstanceName,
}

impl InstanceDirectory {
    pub(super) const fn new(path: PathBuf, name: InstanceName) -> Self {
        Self { path, name }
    }

    #[must_use]
    pub const fn name(&self) -> &InstanceName {
        &self.name
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the directory, or cleans up after killed writers.
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

    /// Writes the launch plan, which must precede the request to the guardian.
    ///
    /// # Errors
    /// I/O errors; the previous plan then stays.
    pub fn write_launch(&self, plan: &LaunchPlan) -> Result<(), SupervisorError> {
        files::write_json(&self.path.join(LAUNCH), plan)
    }

    pub fn read_launch(&self) -> Result<Option<LaunchPlan>, SupervisorError> {
        files::read_json(&self.path.join(LAUNCH))
    }

    /// Records why a launcher has failed.
    pub fn write_launch_failure(&self, failure: &LaunchFailure) -> Result<(), SupervisorError> {
        files::write_json(&self.path.join(LAUNCH_ERROR), failure)
    }

    /// Opens that file early: a failing launcher may lack the permission.
    pub fn open_launch_failure(&self) -> Result<LaunchFailureFile, SupervisorError> {
        let path = self.path.join(LAUNCH_ERROR);
        let file = files::open_to_write(&path, OFlags::empty(), PRIVATE_FILE)?;
        Ok(LaunchFailureFile { file: file.into(), path })
    }

    /// Failure of the launcher of this incarnation; `None` if it called exec, or left no reason.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_launch_failure(&self, incarnation: u64) -> Result<Option<LaunchFailure>, SupervisorError> {
        let path = self.path.join(LAUNCH_ERROR);
        // Opened, but never written.
        if std::fs::metadata(&path).is_ok_and(|file| file.len() == 0) {
            return Ok(None);
        }
        let found = files::read_json::<LaunchFailure>(&path)?;
        Ok(found.filter(|failure| failure.incarnation == incarnation))
    }

    /// Holder of the lock, which is the process of this instance.
    ///
    /// # Errors
    /// The lock or `/proc` cannot be read, or this process has no descriptor left.
    pub fn holder(&self) -> Result<Holder, SupervisorError> {
        // An unreadable plan restricts no holder: the running instance was validated before.
        let allowed = files::read_json::<AllowedHolders>(&self.path.join(LAUNCH)).ok().flatten().unwrap_or_default();
        Holder::of(&self.path.join(LOCK), Some(&allowed))
    }

    /// Takes the lock, which lasts as long as this process, its exec'd program or any descendant; `None` if the
    /// instance runs.
    pub fn lock(&self) -> Result<Option<HeldLock>, SupervisorError> {
        self.lock_as(Inheritance::Yes)
    }

    fn lock_as(&self, inherited: Inheritance) -> Result<Option<HeldLock>, SupervisorError> {
        let Some(lock) = HeldLock::take(&self.path.join(LOCK), inherited)? else { return Ok(None) };
        // Programs that close all descriptors live on without the lock.
        let previous = lock.previous();
        let lives = previous.is_some_and(|record| !matches!(record.process.open(), Ok(None)));
        Ok((!lives).then_some(lock))
    }

    /// Removes the directory unless the instance runs; true if it is gone.
    ///
    /// # Errors
    /// I/O errors; a later attempt removes the rest.
    pub fn remove(&self) -> Result<bool, SupervisorError> {
        if !self.path.exists() {
            return Ok(true);
        }
        let Some(_lock) = self.lock_as(Inheritance::No)? else { return Ok(false) };
        self.prepare()?;
        // The lock goes last: while its file exists, no other process can create and take a second one.
        for name in [LAUNCH, LAUNCH_ERROR, LOCK] {
            files::remove(&self.path.join(name))?;
        }
        files::remove_directory(&self.path).map(|()| true)
    }
}

/// File for a launch failure, opened before the failure.
#[derive(Debug)]
pub struct LaunchFailureFile {
    file: File,
    path: PathBuf,
}

impl LaunchFailureFile {
    /// Writes the failure, not atomically: it is read after the launcher's end.
    pub fn write(self, failure: &LaunchFailure) -> Result<(), SupervisorError> {
        let text = serde_json::to_vec(failure).expect("a reason has nothing that JSON has not");
        let written = self.file.write_all_at(&text, 0).and_then(|()| self.file.set_len(text.len() as u64));
        written.map_err(SupervisorError::io(format!("writing {}", self.path.display())))
    }
}
