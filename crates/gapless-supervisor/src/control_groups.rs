//! Control groups (version 2), where the machine allows them: descendants of an instance stay in its group, even if
//! they leave its session and close its lock; otherwise they are found by the lock.

use crate::error::SupervisorError;
use crate::instance_name::InstanceName;
use crate::process_facts::{is_in_group, processes_of_group};
use crate::state_directory::StateDirectory;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Control groups of a state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroups {
    root: PathBuf,
}

impl ControlGroups {
    /// Creates the parent group of all instances below this process's group, with the memory controller if the kernel
    /// allows that.
    ///
    /// # Errors
    /// Reason why this machine does not allow it, in one line.
    pub fn make(directory: &StateDirectory) -> Result<Self, String> {
        let base = own_group()?;
        let this = Self::below(&base, directory)?;
        let failed = |error: std::io::Error| format!("{}: {error}", this.root.display());
        make_folder(&this.root).map_err(failed)?;
        // Without the right to move processes between both, the groups would stay empty.
        for procs in [base.join("cgroup.procs"), this.root.join("cgroup.procs")] {
            let opened = File::options().write(true).open(&procs).map(drop);
            if let Err(error) = opened {
                let _ = std::fs::remove_dir(&this.root);
                return Err(format!("{}: {error}", procs.display()));
            }
        }
        // Fails without a memory controller, and in a group that has processes of its own.
        let is_handed_on =
            [&base, &this.root].into_iter().all(|group| write(group, "cgroup.subtree_control", "+memory").is_ok());
        tracing::debug!("{}: memory.max of each instance: {is_handed_on}", this.root.display());
        Ok(this)
    }

    /// Location of the groups, existing or not; `None` without control groups of version 2.
    #[must_use]
    pub fn of(directory: &StateDirectory) -> Option<Self> {
        Self::below(&own_group().ok()?, directory).ok()
    }

    fn below(base: &Path, directory: &StateDirectory) -> Result<Self, String> {
        let failed = |error| format!("{}: {error}", directory.path().display());
        Ok(Self { root: base.join(root_name(directory).map_err(failed)?) })
    }

    /// Group of an instance; its launcher creates it.
    #[must_use]
    pub fn of_instance(&self, instance: &InstanceName) -> PathBuf {
        self.root.join(instance.to_string())
    }

    /// Parent group.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Removes all empty groups.
    pub fn remove(&self) {
        for entry in std::fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                // Fails for a group with processes.
                let _ = std::fs::remove_dir(entry.path());
            }
        }
        let _ = std::fs::remove_dir(&self.root);
    }
}

fn root_name(directory: &StateDirectory) -> std::io::Result<String> {
    let found = std::fs::metadata(directory.path())?;
    Ok(format!("gapless-{:x}-{:x}", found.dev(), found.ino()))
}

/// Whether a group belongs to an instance of this directory.
#[must_use]
pub fn belongs_to(directory: &StateDirectory, group: &Path) -> bool {
    let root = group.parent().and_then(Path::file_name);
    root_name(directory).is_ok_and(|name| root == Some(name.as_ref()))
}

/// Moves this process into the group of an instance, created if necessary; true if the group also limits the memory.
///
/// # Errors
/// The machine does not allow it; the process then stays in its group.
pub fn join(group: &Path, memory_bytes_max: Option<u64>) -> Result<bool, SupervisorError> {
    make_folder(group).map_err(SupervisorError::io(format!("making the control group {}", group.display())))?;
    let wanted = memory_bytes_max.map_or_else(|| "max".to_owned(), |bytes| bytes.to_string());
    let is_limited = write(group, "memory.max", &wanted).is_ok() && memory_bytes_max.is_some();
    let joined = write(group, "cgroup.procs", &std::process::id().to_string());
    joined.map_err(SupervisorError::io(format!("joining the control group {}", group.display())))?;
    Ok(is_limited)
}

/// Kills all processes in a group; a missing group has none.
pub fn kill(group: &Path) {
    match write(group, "cgroup.kill", "1") {
        Err(error) if group.exists() => {
            tracing::debug!("{}: {error}", group.display());
            // Linux before 5.14 has no `cgroup.kill`.
            for pid in processes_of_group(group).into_iter().filter_map(Pid::from_raw) {
                // Fails if it has died meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        _ => {}
    }
}

#[must_use]
pub fn is_populated(group: &Path) -> bool {
    let events = std::fs::read_to_string(group.join("cgroup.events"));
    events.is_ok_and(|text| text.lines().any(|line| line == "populated 1"))
}

#[must_use]
pub fn contains(group: &Path, process_id: u32) -> bool {
    is_in_group(process_id, group)
}

/// Removes an empty group; failures are only logged.
pub fn remove(group: &Path) {
    match std::fs::remove_dir(group) {
        Err(error) if error.kind() != ErrorKind::NotFound => tracing::debug!("{}: {error}", group.display()),
        _ => {}
    }
}

fn make_folder(path: &Path) -> std::io::Result<()> {
    match std::fs::create_dir(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn write(group: &Path, file: &str, text: &str) -> std::io::Result<()> {
    File::options().write(true).open(group.join(file))?.write_all(text.as_bytes())
}

fn own_group() -> Result<PathBuf, String> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    group_directory(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)
}

fn group_directory(cgroup: &str, mounts: &str) -> Result<PathBuf, String> {
    let group = cgroup.lines().find_map(|line| line.strip_prefix("0::"));
    let group = group.ok_or("this machine has no control groups of version 2")?;
    let mount = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ');
        let (root, point) = (fields.nth(3)?, fields.next()?);
        (after.split(' ').next() == Some("cgroup2")).then_some((root, point))
    });
    let (root, point) = mount.ok_or("no control groups of version 2 are mounted")?;
    // In a cgroup namespace or container, the mount shows only a part.
    let below = if root == "/" { Some(group) } else { group.strip_prefix(root) };
    match below {
        Some(below) if !below.contains("..") && !point.contains('\\') => {
            let below = Path::new(below.trim_start_matches('/'));
            // Unit of systemd with `DelegateSubgroup=`: instances get groups next to that of the supervisor.
            let below = if below.ends_with("gapless-supervisor") { below.parent().unwrap_or(below) } else { below };
            Ok(Path::new(point).join(below))
        }
        _ => Err(format!("the control group {group} is not below what is mounted at {point}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_group_is_found() {
        let mounts = "24 1 0:22 / /proc rw - proc proc rw\n31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let of = |cgroup: &str| group_directory(cgroup, mounts);
        assert_eq!(of("1:cpu:/x\n0::/\n").unwrap(), Path::new("/sys/fs/cgroup/"));
        assert_eq!(of("0::/system.slice/a.service").unwrap(), Path::new("/sys/fs/cgroup/system.slice/a.service"));
        let delegated = "0::/system.slice/a.service/gapless-supervisor";
        assert_eq!(of(delegated).unwrap(), Path::new("/sys/fs/cgroup/system.slice/a.service"));
        let part = mounts.replace("0:27 / ", "0:27 /docker/1 ");
        assert_eq!(group_directory("0::/docker/1/a", &part).unwrap(), Path::new("/sys/fs/cgroup/a"));
        for (cgroup, mounts) in [("1:cpu:/x", mounts), ("0::/../a", mounts), ("0::/a", &part), ("0::/a", "")] {
            assert!(group_directory(cgroup, mounts).is_err(), "{cgroup}");
        }
    }

    #[test]
    fn missing_group_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("none");
        kill(&group);
        remove(&group);
        assert!(!is_populated(&group));
        assert!(join(&folder.path().join("none/below"), None).is_err());
    }
}
