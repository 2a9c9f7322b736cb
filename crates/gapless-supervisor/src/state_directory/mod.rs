//! [`StateDirectory`]: shared state of all roles on disk. A killed role leaves everything here that its successor
//! needs.
//!
//! ```text
//! config-in-force    configuration in force: its path and its text
//! supervisor.lock    held by the current supervisor
//! guardian.lock      held by the current guardian
//! guardian.log       output of guardian, supervisor and launchers
//! guardian.socket    the guardian listens
//! control.socket     the supervisor listens
//! notify/socket      sd_notify socket, kept by the guardian; in a directory of its own for instances of other users
//! events.log         one event per line
//! memory             state for the next supervisor
//! copies             link to `instances`, for programs of earlier versions
//! instances/NAME.NUMBER/
//!     launch         launch plan, written before the request to the guardian
//!     launch-error   reason for a failed launch
//!     lock           held by the instance and its descendants; content: the process that took it
//! singletons/NAME    held by the active instance of a singleton and its descendants; content: the process that took it
//! logs/NAME.NUMBER.log
//! ```

pub(crate) mod files;
mod holder;
mod instance_directory;
mod launch_plan;
mod lock;
mod process;
mod singleton;

pub use holder::{Holder, Orphan};
pub use instance_directory::{InstanceDirectory, LaunchFailureFile};
pub use launch_plan::{LaunchFailure, LaunchPlan, ResourceLimits, UserIdentity};
pub use lock::{HeldLock, LockRecord};
pub use process::{ProcessIdentity, is_dead};
pub use singleton::SingletonLock;

use crate::error::SupervisorError;
use crate::instance_name::InstanceName;
use gapless_agent::fault::crash_point;
use gapless_agent::folder::Folder;
use lock::Inheritance;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Gid, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const CONFIG_IN_FORCE: &str = "config-in-force";
const OWN_FILES: [&str; 6] =
    [CONFIG_IN_FORCE, "supervisor.lock", "guardian.lock", "guardian.log", INSTANCES, FORMER_INSTANCES];
const INSTANCES: &str = "instances";
/// A link, through which earlier versions meet the same locks.
const FORMER_INSTANCES: &str = "copies";
const EVENTS: &str = "events.log";
const LOGS: &str = "logs";
const SINGLETONS: &str = "singletons";
const NOTIFY: &str = "notify";
const MEMORY: &str = "memory";

/// Roles with one process for each state directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoleLock {
    Supervisor,
    Guardian,
}

impl RoleLock {
    const fn lock(self) -> &'static str {
        match self {
            Self::Supervisor => "supervisor.lock",
            Self::Guardian => "guardian.lock",
        }
    }
}

/// Sockets of the state directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateSocket {
    Guardian,
    Control,
    Notify,
}

impl StateSocket {
    /// Path relative to the directory.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Guardian => "guardian.socket",
            Self::Control => "control.socket",
            Self::Notify => "notify/socket",
        }
    }
}

/// Configuration in force; `Debug` omits the text, which contains environment values.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigInForce {
    /// Path of the file, absolute.
    pub path: PathBuf,
    pub text: String,
}

impl std::fmt::Debug for ConfigInForce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigInForce").field("path", &self.path).finish_non_exhaustive()
    }
}

/// State directory of a supervisor.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    path: PathBuf,
    fd: Arc<OwnedFd>,
}

impl StateDirectory {
    /// Creates the directory, whose parent must exist, or sets an existing one's mode: 0700, or 0750 with a group for
    /// readers, which also gets the logs.
    ///
    /// # Errors
    /// It cannot be created, or belongs to another user.
    pub fn create(path: &Path, group: Option<u32>) -> Result<Self, SupervisorError> {
        let group = group.map(Gid::from_raw);
        // Refuses a directory of another user: only its owner can change the mode.
        let mode = Mode::from_raw_mode(if group.is_some() { 0o750 } else { 0o700 });
        files::make_directory(path, mode, group)?;
        let this = Self::open(path)?;
        files::make_directory(&this.instances_folder(), Mode::RWXU, None)?;
        if !this.has_former_name() {
            this.link_former_name();
        }
        // Setgid, so that new files get the group.
        let mode = Mode::from_raw_mode(if group.is_some() { 0o2750 } else { 0o700 });
        files::make_directory(&this.path.join(LOGS), mode, group)?;
        if let Some(group) = group {
            files::open_to_write(&this.events(), OFlags::empty(), Mode::from_raw_mode(0o640))?;
            files::give_to_group(&this.path, EVENTS, group)?;
            files::give_to_group(&this.path.join(LOGS), "", group)?;
        }
        Ok(this)
    }

    /// Reason why an existing path cannot become a state directory: no directory, or foreign files.
    #[must_use]
    pub fn refusal(path: &Path) -> Option<&'static str> {
        let found = std::fs::metadata(path).ok()?;
        if !found.is_dir() {
            return Some("is no directory");
        }
        let is_empty = std::fs::read_dir(path).ok()?.next().is_none();
        (!is_empty && !Self::is_state_directory(path).ok()?)
            .then_some("is no state directory and holds other files; an empty or a new one is expected")
    }

    /// Whether the directory at this path is, or was, a state directory.
    pub fn is_state_directory(path: &Path) -> std::io::Result<bool> {
        for name in OWN_FILES {
            match path.join(name).symlink_metadata() {
                Ok(_) => return Ok(true),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Opens an existing directory.
    ///
    /// # Errors
    /// It does not exist, belongs to another user, or others may write to it.
    pub fn open(path: &Path) -> Result<Self, SupervisorError> {
        let (this, stat) = Self::open_with_stat(path)?;
        let (owner, user) = (stat.st_uid, rustix::process::geteuid().as_raw());
        if owner != user {
            let reason = format!("it is of user {owner}, and this process of user {user}");
            return Err(SupervisorError::damaged(&this.path, reason));
        }
        if stat.st_mode & 0o022 != 0 {
            let mode = stat.st_mode & 0o7777;
            let reason = format!("others may write there (mode {mode:o}); expected is 700, or 750 with a group");
            return Err(SupervisorError::damaged(&this.path, reason));
        }
        Ok(this)
    }

    /// Opens an existing directory of any user for reading.
    ///
    /// # Errors
    /// It does not exist, or this user may not access it.
    pub fn open_to_read(path: &Path) -> Result<Self, SupervisorError> {
        Ok(Self::open_with_stat(path)?.0)
    }

    #[must_use]
    pub fn is_own(&self) -> bool {
        rustix::fs::fstat(&self.fd).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw())
    }

    fn open_with_stat(path: &Path) -> Result<(Self, Stat), SupervisorError> {
        let absolute = std::path::absolute(path);
        let path = absolute.map_err(SupervisorError::io(format!("finding {}", path.display())))?;
        let action = format!("opening the state directory {}", path.display());
        let fd = OwnedFd::from(Folder::open(&path).map_err(SupervisorError::io(action.clone()))?);
        let stat = rustix::fs::fstat(&fd).map_err(SupervisorError::system(action))?;
        Ok((Self { path, fd: Arc::new(fd) }, stat))
    }

    /// Absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub fn guardian_log(&self) -> PathBuf {
        self.path.join("guardian.log")
    }

    #[must_use]
    pub fn events(&self) -> PathBuf {
        self.path.join(EVENTS)
    }

    #[must_use]
    pub fn log(&self, instance: &InstanceName) -> PathBuf {
        self.path.join(LOGS).join(format!("{instance}.log"))
    }

    #[must_use]
    pub fn socket(&self, socket: StateSocket) -> PathBuf {
        self.path.join(socket.file())
    }

    /// Short address of a socket here, valid in this process while `self` lives: addresses are limited to 108 bytes,
    /// paths are not.
    ///
    /// # Errors
    /// The name is too long.
    pub fn socket_address(&self, name: &str) -> Result<SocketAddrUnix, Errno> {
        SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", self.fd.as_raw_fd()))
    }

    #[must_use]
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Takes the lock of a role for this process's lifetime and records its holder; `None` if another process holds it.
    ///
    /// # Errors
    /// The lock cannot be taken. A failure to write the record is only logged: the lock alone decides.
    pub fn take_role_lock(&self, role_lock: RoleLock) -> Result<Option<HeldLock>, SupervisorError> {
        let Some(lock) = HeldLock::take(&self.path.join(role_lock.lock()), Inheritance::No)? else { return Ok(None) };
        if let Err(error) = lock.record(&LockRecord::of_this(0)?) {
            tracing::warn!("{}: {error}", role_lock.lock());
        }
        if role_lock == RoleLock::Supervisor {
            crash_point("supervisor_locked");
        }
        Ok(Some(lock))
    }

    /// Whether this is still the lock of the role: not after directory or lock file was removed.
    pub fn is_in_role(&self, role_lock: RoleLock, lock: &HeldLock) -> bool {
        lock.is_in(self.fd().as_fd(), role_lock.lock())
    }

    pub fn role_holder(&self, role_lock: RoleLock) -> Result<Holder, SupervisorError> {
        Holder::of(&self.path.join(role_lock.lock()), None)
    }

    fn instances_folder(&self) -> PathBuf {
        self.path.join(if self.has_former_name() { FORMER_INSTANCES } else { INSTANCES })
    }

    fn has_former_name(&self) -> bool {
        let is_directory = |name| self.path.join(name).symlink_metadata().is_ok_and(|found| found.is_dir());
        is_directory(FORMER_INSTANCES) && !is_directory(INSTANCES)
    }

    /// Renames the instances' directory of an earlier version, and returns a warning with both names; locks of running
    /// instances stay held. For the supervisor only.
    ///
    /// # Errors
    /// The directory cannot be renamed; it is then used under its former name.
    pub fn rename_former(&self) -> Result<Option<String>, SupervisorError> {
        if !self.has_former_name() {
            return Ok(None);
        }
        let failed = SupervisorError::system(format!("renaming {}", self.path.join(FORMER_INSTANCES).display()));
        rustix::fs::renameat(self.fd(), FORMER_INSTANCES, self.fd(), INSTANCES).map_err(failed)?;
        self.link_former_name();
        let path = self.path.display();
        Ok(Some(format!(
            "{path} is of an earlier version: its `{FORMER_INSTANCES}` are called `{INSTANCES}` now, and are taken over"
        )))
    }

    fn link_former_name(&self) {
        match rustix::fs::symlinkat(INSTANCES, self.fd(), FORMER_INSTANCES) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => tracing::debug!("{}: {errno}", self.path.join(FORMER_INSTANCES).display()),
        }
    }

    /// Files of an instance, which need not exist.
    #[must_use]
    pub fn instance(&self, name: &InstanceName) -> InstanceDirectory {
        InstanceDirectory::new(self.instances_folder().join(name.to_string()), name.clone())
    }

    /// All instances that have files here, sorted by name.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn instances(&self) -> Result<Vec<InstanceName>, SupervisorError> {
        let path = self.instances_folder();
        let failed = || SupervisorError::io(format!("listing {}", path.display()));
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let is_directory = entry.file_type().map_err(failed())?.is_dir();
            let name = entry.file_name().to_str().and_then(|name| name.parse().ok());
            found.extend(name.filter(|_| is_directory));
        }
        found.sort();
        Ok(found)
    }

    /// Path of a singleton's lock; creates its directory.
    pub fn singleton_lock(&self, process: &str) -> Result<PathBuf, SupervisorError> {
        let folder = self.path.join(SINGLETONS);
        files::make_directory(&folder, Mode::RWXU, None)?;
        Ok(folder.join(process))
    }

    /// Creates the directory of the notification socket; instances of other users receive it, since they may not enter
    /// the state directory.
    pub fn make_notify_folder(&self) -> Result<(), SupervisorError> {
        files::make_directory(&self.path.join(NOTIFY), Mode::from_raw_mode(0o711), None)
    }

    /// Removes the locks of all singletons; none may be running.
    pub fn remove_singleton_locks(&self) -> Result<(), SupervisorError> {
        let folder = self.path.join(SINGLETONS);
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            files::remove(&entry.path())?;
        }
        files::remove_directory(&folder)
    }

    /// Puts a configuration in force.
    ///
    /// # Errors
    /// I/O errors; the previous one then stays in force.
    pub fn write_config_in_force(&self, in_force: &ConfigInForce) -> Result<(), SupervisorError> {
        files::write_json(&self.path.join(CONFIG_IN_FORCE), in_force)
    }

    pub fn read_config_in_force(&self) -> Result<Option<ConfigInForce>, SupervisorError> {
        files::read_json(&self.path.join(CONFIG_IN_FORCE))
    }

    /// Removes the configuration in force: no process is wanted after that.
    pub fn remove_config_in_force(&self) -> Result<(), SupervisorError> {
        files::remove(&self.path.join(CONFIG_IN_FORCE))
    }

    /// Writes the state for the next supervisor.
    ///
    /// # Errors
    /// I/O errors; the previous state then stays.
    pub fn write_state(&self, state: &impl Serialize) -> Result<(), SupervisorError> {
        files::write_json(&self.path.join(MEMORY), state)
    }

    /// Removes the state for the next supervisor.
    pub fn remove_state(&self) -> Result<(), SupervisorError> {
        files::remove(&self.path.join(MEMORY))
    }

    pub fn read_state<T: DeserializeOwned>(&self) -> Result<Option<T>, SupervisorError> {
        files::read_json(&self.path.join(MEMORY))
    }
}

#[cfg(test)]
mod tests;
