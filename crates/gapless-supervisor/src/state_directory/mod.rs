//! [`StateDirectory`]: where the roles meet. Whoever is killed leaves in it what the next one needs.
//!
//! ```text
//! config-in-force    the file in force: its path and its text
//! supervisor.lock    held by the supervisor in charge
//! guardian.lock      held by the guardian in charge
//! guardian.log       what guardian, supervisor and launchers say
//! guardian.socket    the guardian listens
//! control.socket     the supervisor listens
//! notify/socket      children say READY=1; the guardian keeps it. In a folder of its own, which copies of other users get
//! events.log         one event a line
//! memory             what the next supervisor is to know
//! copies/NAME.NUMBER/
//!     launch         the intent, written before the guardian is asked
//!     launch-error   why nothing came of it
//!     lock           held by the copy and all that it has forked; text: who took it
//! singletons/NAME    held by the active copy of a singleton and all that it has forked; text: who took it
//! logs/NAME.NUMBER.log
//! ```
//!
//! | module | what lives there |
//! |---|---|
//! | `copy_directory` | [`CopyDirectory`]: the files of one copy |
//! | `launch_plan` | [`LaunchPlan`]: the intent |
//! | `holder` | [`Holder`]: who holds a lock |
//! | `lock` | [`HeldLock`], [`LockRecord`] |
//! | `singleton` | [`SingletonLock`]: which copy is active |
//! | `process` | [`ProcessIdentity`]: one process and no other |
//! | `files` | small files that are whole or not there |

mod copy_directory;
pub(crate) mod files;
mod holder;
mod launch_plan;
mod lock;
mod process;
mod singleton;

pub use copy_directory::{CopyDirectory, LaunchFailureFile};
pub use holder::{Holder, Orphan};
pub use launch_plan::{Identity, LaunchFailure, LaunchPlan, Limits};
pub use lock::{HeldLock, LockRecord};
pub use process::{ProcessIdentity, is_dead};
pub use singleton::SingletonLock;

use crate::copy_name::CopyName;
use crate::error::SupervisorError;
use gapless_agent::fault::crash_point;
use gapless_agent::folder::Folder;
use lock::Inherited;
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
/// One of them is in each state directory, also in one whose making was cut short.
const OWN_FILES: [&str; 5] = [CONFIG_IN_FORCE, "supervisor.lock", "guardian.lock", "guardian.log", COPIES];
const COPIES: &str = "copies";
const EVENTS: &str = "events.log";
const LOGS: &str = "logs";
const SINGLETONS: &str = "singletons";
const NOTIFY: &str = "notify";
const MEMORY: &str = "memory";

/// The roles of which a state directory has one process each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoleLock {
    /// The supervisor.
    Supervisor,
    /// The guardian.
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

/// The sockets of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Socket {
    /// The guardian listens: packets.
    Guardian,
    /// The supervisor listens.
    Control,
    /// Children say `READY=1`: datagrams.
    Notify,
}

impl Socket {
    /// Its file.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Guardian => "guardian.socket",
            Self::Control => "control.socket",
            Self::Notify => "notify/socket",
        }
    }
}

/// The file that is in force. `Debug` does not show its text, which has the values of variables.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigInForce {
    /// Where it was read, absolute.
    pub path: PathBuf,
    /// What stood in it.
    pub text: String,
}

impl std::fmt::Debug for ConfigInForce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigInForce").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Where the roles meet.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    path: PathBuf,
    fd: Arc<OwnedFd>,
}

impl StateDirectory {
    /// Makes it, or gives one that is there its modes: 0700, and 0750 for a group that may look, which then gets the logs that are there. Its
    /// parent must be there.
    ///
    /// # Errors
    /// It cannot be made, or is somebody else's.
    pub fn create(path: &Path, group: Option<u32>) -> Result<Self, SupervisorError> {
        let group = group.map(Gid::from_raw);
        // Only its owner can change its mode: that of somebody else is refused here.
        let mode = Mode::from_raw_mode(if group.is_some() { 0o750 } else { 0o700 });
        files::make_directory(path, mode, group)?;
        let this = Self::open(path)?;
        files::make_directory(&this.path.join(COPIES), Mode::RWXU, None)?;
        // What is made in there is of its group, too.
        let mode = Mode::from_raw_mode(if group.is_some() { 0o2750 } else { 0o700 });
        files::make_directory(&this.path.join(LOGS), mode, group)?;
        if let Some(group) = group {
            files::open_to_write(&this.events(), OFlags::empty(), Mode::from_raw_mode(0o640))?;
            files::give_to_group(&this.path, EVENTS, group)?;
            files::give_to_group(&this.path.join(LOGS), "", group)?;
        }
        Ok(this)
    }

    /// Why a directory at this path can be none, if it is there: it is another's, whose files would be mixed with those here.
    #[must_use]
    pub fn refusal(path: &Path) -> Option<&'static str> {
        let found = std::fs::metadata(path).ok()?;
        if !found.is_dir() {
            return Some("is no directory");
        }
        // What cannot be read, the start says.
        let is_empty = std::fs::read_dir(path).ok()?.next().is_none();
        (!is_empty && !Self::is_one(path).ok()?)
            .then_some("is no state directory and holds other files; an empty or a new one is expected")
    }

    /// Whether a supervisor has, or had, its files in the directory at this path.
    ///
    /// # Errors
    /// That cannot be seen.
    pub fn is_one(path: &Path) -> std::io::Result<bool> {
        for name in OWN_FILES {
            match path.join(name).symlink_metadata() {
                Ok(_) => return Ok(true),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Opens one that is there.
    ///
    /// # Errors
    /// It is not there, or others than its owner, who must be this user, may write there.
    pub fn open(path: &Path) -> Result<Self, SupervisorError> {
        let (this, stat) = Self::look_with_stat(path)?;
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

    /// Opens one that is there for looking, whoever's it is: what this user may see is the system's affair.
    ///
    /// # Errors
    /// It is not there, or not for this user.
    pub fn look(path: &Path) -> Result<Self, SupervisorError> {
        Ok(Self::look_with_stat(path)?.0)
    }

    /// Whether it is this user's.
    #[must_use]
    pub fn is_own(&self) -> bool {
        rustix::fs::fstat(&self.fd).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw())
    }

    fn look_with_stat(path: &Path) -> Result<(Self, Stat), SupervisorError> {
        let absolute = std::path::absolute(path);
        let path = absolute.map_err(SupervisorError::io(format!("finding {}", path.display())))?;
        let action = format!("opening the state directory {}", path.display());
        let fd = OwnedFd::from(Folder::open(&path).map_err(SupervisorError::io(action.clone()))?);
        let stat = rustix::fs::fstat(&fd).map_err(SupervisorError::system(action))?;
        Ok((Self { path, fd: Arc::new(fd) }, stat))
    }

    /// Where it is, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The log of guardian, supervisor and launchers.
    #[must_use]
    pub fn guardian_log(&self) -> PathBuf {
        self.path.join("guardian.log")
    }

    /// The events, one a line.
    #[must_use]
    pub fn events(&self) -> PathBuf {
        self.path.join(EVENTS)
    }

    /// Where the output of a copy goes unless the file says another place.
    #[must_use]
    pub fn log(&self, copy: &CopyName) -> PathBuf {
        self.path.join(LOGS).join(format!("{copy}.log"))
    }

    /// Where a socket is.
    #[must_use]
    pub fn socket(&self, socket: Socket) -> PathBuf {
        self.path.join(socket.file())
    }

    /// A short address of what has this name here: addresses have 108 bytes at most, paths more. For this process only, as
    /// long as this lives.
    ///
    /// # Errors
    /// The name is too long.
    pub fn socket_address(&self, name: &str) -> Result<SocketAddrUnix, Errno> {
        SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", self.fd.as_raw_fd()))
    }

    /// The directory itself, for calls that take names in it.
    #[must_use]
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Takes the lock of a role, and writes which process holds it; `None` if somebody else holds it. It ends with this process.
    ///
    /// # Errors
    /// The lock cannot be taken. That nobody can be written into it is none: the lock alone decides.
    pub fn take_role_lock(&self, role_lock: RoleLock) -> Result<Option<HeldLock>, SupervisorError> {
        let Some(lock) = HeldLock::take(&self.path.join(role_lock.lock()), Inherited::No)? else { return Ok(None) };
        if let Err(error) = lock.record(&LockRecord::of_this(0)?) {
            tracing::warn!("{}: {error}", role_lock.lock());
        }
        if role_lock == RoleLock::Supervisor {
            crash_point("supervisor_locked");
        }
        Ok(Some(lock))
    }

    /// Whether this lock is still the one of a role. It is not where the directory or the lock's file was removed: others
    /// find nobody then.
    pub fn is_in_role(&self, role_lock: RoleLock, lock: &HeldLock) -> bool {
        lock.is_in(self.fd().as_fd(), role_lock.lock())
    }

    /// Which process holds the lock of a role.
    ///
    /// # Errors
    /// As [`CopyDirectory::holder`].
    pub fn role_holder(&self, role_lock: RoleLock) -> Result<Holder, SupervisorError> {
        Holder::of(&self.path.join(role_lock.lock()), None)
    }

    /// The files of one copy, which need not be there.
    #[must_use]
    pub fn copy(&self, name: &CopyName) -> CopyDirectory {
        CopyDirectory::new(self.path.join(COPIES).join(name.to_string()), name.clone())
    }

    /// Every copy that has files here, in the order of their names. What is no copy's is left alone.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn copies(&self) -> Result<Vec<CopyName>, SupervisorError> {
        let path = self.path.join(COPIES);
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

    /// The file of a singleton's lock; its folder is made.
    ///
    /// # Errors
    /// The system's.
    pub fn singleton_lock(&self, process: &str) -> Result<PathBuf, SupervisorError> {
        let folder = self.path.join(SINGLETONS);
        files::make_directory(&folder, Mode::RWXU, None)?;
        Ok(folder.join(process))
    }

    /// Makes the folder of the notify socket. Who has it, may send there; who has not, does not come into the state directory.
    ///
    /// # Errors
    /// The system's.
    pub fn make_notify_folder(&self) -> Result<(), SupervisorError> {
        files::make_directory(&self.path.join(NOTIFY), Mode::from_raw_mode(0o711), None)
    }

    /// Removes the locks of singletons, of which none may run any more.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_singleton_locks(&self) -> Result<(), SupervisorError> {
        let folder = self.path.join(SINGLETONS);
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            files::remove(&entry.path())?;
        }
        files::remove_directory(&folder)
    }

    /// Writes which file is in force.
    ///
    /// # Errors
    /// The system's; the one before is then still in force.
    pub fn write_config_in_force(&self, in_force: &ConfigInForce) -> Result<(), SupervisorError> {
        files::write_json(&self.path.join(CONFIG_IN_FORCE), in_force)
    }

    /// Which file is in force, if any.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_config_in_force(&self) -> Result<Option<ConfigInForce>, SupervisorError> {
        files::read_json(&self.path.join(CONFIG_IN_FORCE))
    }

    /// No file is in force any more: nothing is to run.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_config_in_force(&self) -> Result<(), SupervisorError> {
        files::remove(&self.path.join(CONFIG_IN_FORCE))
    }

    /// Writes what the next supervisor is to know.
    ///
    /// # Errors
    /// The system's; what was there before is still there.
    pub fn write_memory(&self, memory: &impl Serialize) -> Result<(), SupervisorError> {
        files::write_json(&self.path.join(MEMORY), memory)
    }

    /// The next supervisor is to know nothing.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_memory(&self) -> Result<(), SupervisorError> {
        files::remove(&self.path.join(MEMORY))
    }

    /// What the supervisor before knew, if anything.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_memory<T: DeserializeOwned>(&self) -> Result<Option<T>, SupervisorError> {
        files::read_json(&self.path.join(MEMORY))
    }
}

#[cfg(test)]
mod tests;
