//! Holders of a lock are adopted and killed with the supervisor's rights, but a program of another user can pass its
//! lock to any process: such an instance owns only that user's processes and those in its control group
//! ([`AllowedHolders`]).

use super::files;
use super::lock::{LockRecord, is_held};
use super::process::is_dead;
use crate::error::SupervisorError;
use crate::process_facts::{is_in_group, users};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use serde::Deserialize;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ATTEMPTS_MAX: u32 = 10;
const PAUSE: Duration = Duration::from_millis(2);

/// Holder of a lock.
#[derive(Debug)]
pub enum Holder {
    /// No live process.
    Free { last: Option<LockRecord> },
    /// The recorded process is alive, though it may have closed the lock's descriptor.
    Recorded { record: LockRecord, pidfd: OwnedFd },
    /// The recorded process is dead, its descendants hold the lock. Also a launcher stopped before it wrote its record,
    /// which has done nothing yet and can be killed.
    Descendants(Vec<Orphan>),
    /// A foreign process: not killed, it blocks starts. Either a program has passed its lock on, or a launcher has not
    /// changed its user yet.
    Foreign { process_id: u32 },
    /// Processes of another user or PID namespace.
    Hidden { record: Option<LockRecord> },
}

/// Process that has inherited a lock from a dead one.
#[derive(Debug)]
pub struct Orphan {
    pub process_id: u32,
    /// Readable once the process is dead; kills exactly this process.
    pub pidfd: OwnedFd,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct AllowedHolders {
    #[serde(default)]
    identity: Option<HolderUser>,
    #[serde(default)]
    cgroup: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct HolderUser {
    user: u32,
}

impl AllowedHolders {
    /// A false claim gains nothing: a user's programs can signal its processes anyway.
    fn contains(&self, process_id: u32) -> bool {
        let Some(HolderUser { user }) = self.identity else { return true };
        user == geteuid().as_raw()
            || users(process_id).is_some_and(|users| users.contains(&user))
            || self.cgroup.as_ref().is_some_and(|group| is_in_group(process_id, group))
    }
}

impl Holder {
    /// Finds the holder of the lock in this file. Without `allowed`, as for a role, any process may be the holder.
    /// Waits some milliseconds for a lock just taken. Without privileges, processes of other users are missing from
    /// [`Descendants`](Self::Descendants).
    ///
    /// # Errors
    /// The file or `/proc` cannot be read, or this process has no descriptor left.
    pub(super) fn of(path: &Path, allowed: Option<&AllowedHolders>) -> Result<Self, SupervisorError> {
        let Some(file) = files::open(path)? else { return Ok(Self::Free { last: None }) };
        let mut attempts = 0;
        loop {
            let record = LockRecord::read(&file);
            if let Some(record) = &record
                && let Some(process) = record.process.in_this_namespace()?
                && let Some(pidfd) = process.open()?
            {
                if allowed.is_none_or(|allowed| allowed.contains(process.process_id)) {
                    return Ok(Self::Recorded { record: LockRecord { process, ..record.clone() }, pidfd });
                }
                if !is_dead(&pidfd) {
                    return Ok(Self::Foreign { process_id: process.process_id });
                }
            }
            attempts += 1;
            if !is_held(&file)? {
                // An unchanged record rules out a new holder between the two checks.
                if LockRecord::read(&file) == record || attempts >= ATTEMPTS_MAX {
                    return Ok(Self::Free { last: record });
                }
            } else if attempts >= ATTEMPTS_MAX {
                let (found, foreign) = find(&file, path, allowed, record.as_ref())?;
                if !found.is_empty() {
                    return Ok(Self::Descendants(found));
                }
                if let Some(process_id) = foreign {
                    return Ok(Self::Foreign { process_id });
                }
                if is_held(&file)? {
                    return Ok(Self::Hidden { record });
                }
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn find(
    file: &File,
    path: &Path,
    allowed: Option<&AllowedHolders>,
    record: Option<&LockRecord>,
) -> Result<(Vec<Orphan>, Option<u32>), SupervisorError> {
    let failed = |what: &str| SupervisorError::io(format!("{what} {}", path.display()));
    let wanted = file.metadata().map_err(failed("looking at"))?;
    let name = path.file_name().unwrap_or_default();
    let (mut found, mut foreign) = (Vec::new(), None);
    for entry in std::fs::read_dir("/proc").map_err(failed("listing processes for"))?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|text| text.parse::<i32>().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        if !holds(&entry.path(), &wanted, name) {
            continue;
        }
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let process_id = pid.as_raw_nonzero().get().unsigned_abs();
        let is_older = record.is_some_and(|record| record.process.is_younger_than(process_id));
        let is_allowed = allowed.is_none_or(|allowed| !is_older && allowed.contains(process_id));
        // Checked again: a live process that still holds the lock must be the one of the pidfd.
        if holds(&entry.path(), &wanted, name) && !is_dead(&pidfd) {
            match is_allowed {
                true => found.push(Orphan { process_id, pidfd }),
                false => foreign = Some(process_id),
            }
        }
    }
    Ok((found, foreign))
}

fn holds(process: &Path, wanted: &Metadata, name: &OsStr) -> bool {
    // Processes of other users, and dying ones, cannot be inspected.
    let Ok(descriptors) = std::fs::read_dir(process.join("fd")) else { return false };
    descriptors.flatten().any(|descriptor| {
        // Names first: `stat` on other files could block on an unresponsive disk.
        let is_named = std::fs::read_link(descriptor.path()).is_ok_and(|target| {
            let target = target.as_os_str().as_bytes();
            let target = target.strip_suffix(b" (deleted)").unwrap_or(target);
            target.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes())
        });
        let is_wanted = || {
            let found = std::fs::metadata(descriptor.path());
            found.is_ok_and(|found| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino()))
        };
        // An open file without the lock does not count.
        let has_lock = || {
            let information = std::fs::read_to_string(process.join("fdinfo").join(descriptor.file_name()));
            information.is_ok_and(|text| text.lines().any(|line| line.starts_with("lock:") && line.contains("FLOCK")))
        };
        is_named && is_wanted() && has_lock()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_directory::lock::{HeldLock, Inheritance};
    use gapless_testkit::process::Process;
    use gapless_testkit::wait::until_some;
    use rustix::process::{Signal, pidfd_send_signal};
    use std::process::{Command, Stdio};

    fn heir(held: &HeldLock) -> Process {
        let inherited = rustix::io::dup(held).unwrap();
        Process::start_as(Command::new("sleep").arg("1000").stdin(Stdio::from(inherited)).stdout(Stdio::null()))
    }

    #[test]
    fn holders_are_classified() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(matches!(Holder::of(&path, None).unwrap(), Holder::Free { last: None }));
        let held = HeldLock::take(&path, Inheritance::No).unwrap().unwrap();
        assert!(HeldLock::take(&path, Inheritance::No).unwrap().is_none());
        let Holder::Descendants(unnamed) = Holder::of(&path, None).unwrap() else {
            panic!("the lock is held without a record")
        };
        // A child forked by another test holds it too, until it calls exec.
        assert!(unnamed.iter().any(|orphan| orphan.process_id == std::process::id()));
        let record = LockRecord::of_this(3).unwrap();
        held.record(&record).unwrap();
        let Holder::Recorded { record: found, .. } = Holder::of(&path, None).unwrap() else { panic!("it is recorded") };
        assert_eq!(found, record);

        let mut heir = heir(&held);
        let mut dead = Command::new("true").spawn().unwrap();
        let mut process = record.process.clone();
        process.process_id = dead.id();
        dead.wait().unwrap();
        held.record(&LockRecord { process, ..record.clone() }).unwrap();
        drop(held);
        let _onlooker = File::open(&path).unwrap();
        let Holder::Descendants(orphans) = Holder::of(&path, None).unwrap() else { panic!("an orphan holds it") };
        let heir_id = heir.pid().as_raw_pid() as u32;
        let orphan = orphans.iter().find(|orphan| orphan.process_id == heir_id).unwrap();
        pidfd_send_signal(&orphan.pidfd, Signal::KILL).unwrap();
        heir.wait();
        let last = until_some("the orphan is dead", || match Holder::of(&path, None).unwrap() {
            Holder::Free { last } => Some(last),
            _ => None,
        });
        assert_eq!(last.unwrap().incarnation, 3);
        assert!(HeldLock::take(&path, Inheritance::No).unwrap().is_some());
    }

    #[test]
    fn closed_lock_has_its_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = HeldLock::take(&path, Inheritance::No).unwrap().unwrap();
        held.record(&LockRecord::of_this(1).unwrap()).unwrap();
        drop(held);
        assert!(matches!(Holder::of(&path, None).unwrap(), Holder::Recorded { .. }));
    }

    #[test]
    fn older_records_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let record = LockRecord::of_this(1).unwrap();
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.contains("\"process_id\":"), "{text}");
        std::fs::write(&path, text.replace("process_id", "pid")).unwrap();
        let Holder::Recorded { record: found, .. } = Holder::of(&path, None).unwrap() else { panic!("it is recorded") };
        assert_eq!(found, record);
    }

    #[test]
    fn damaged_record_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let record = serde_json::to_string(&LockRecord::of_this(1).unwrap()).unwrap();
        let wrong_boot = record.replace("\"boot\":\"", "\"boot\":\"x");
        for text in
            ["", "{", &record[..record.len() / 2], &wrong_boot, "[1,2]", &"9".repeat(4096), "{\"process_id\":-1}"]
        {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(Holder::of(&path, None).unwrap(), Holder::Free { .. }), "{text}");
        }
    }

    /// A check's short shared lock must not refuse others.
    #[test]
    fn checks_do_not_refuse_takers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        let Some(file) = files::open(&path).unwrap() else { continue };
                        is_held(&file).unwrap();
                        std::thread::yield_now();
                    }
                });
            }
            let refused = (0..200).filter(|_| HeldLock::take(&path, Inheritance::No).unwrap().is_none()).count();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }
}
