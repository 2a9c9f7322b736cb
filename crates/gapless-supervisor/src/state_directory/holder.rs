//! [`Holder`]: who holds a lock: nobody, the process of its record, others that have inherited it from one that is dead, a process that
//! has only been passed it, or processes that cannot be seen from here.
//!
//! A holder is adopted and killed with the rights of the supervisor, and it is a program of perhaps another user that passes the lock on.
//! So of a copy of another user only processes of that user or of the copy's control group are believed to be its own ([`Heirs`]).

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

/// How often it is looked again while a lock is held and its record names a dead process: who has just taken it has not
/// written yet.
const LOOKS: u32 = 10;
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(2);

/// The process that holds a lock.
#[derive(Debug)]
pub enum Holder {
    /// Nobody: what was there is dead.
    Nobody {
        /// What the last one has left, if it can be read.
        last: Option<LockRecord>,
    },
    /// The process of the record lives. It may have closed the lock, as programs do that close everything.
    Recorded {
        /// What it wrote.
        record: LockRecord,
        /// Readable when it is dead.
        pidfd: OwnedFd,
    },
    /// The process of the record is dead, and the lock is held: by what it has forked. Also a launcher that was stopped
    /// before it wrote its record, of which nothing is lost if it is killed.
    Others(Vec<Orphan>),
    /// A process that lives and is none of the copy: it is not killed, and while it lives the copy is not started. A program has
    /// passed its lock to it; or it is a launcher that has not become its user yet.
    Foreign {
        /// Its number.
        process_id: u32,
    },
    /// Processes that cannot be seen from here: of another process namespace, as of another container, or of another user.
    Hidden {
        /// What the process of the record wrote, which may be dead.
        record: Option<LockRecord>,
    },
}

/// A process that has inherited a lock from one that is dead.
#[derive(Debug)]
pub struct Orphan {
    /// Its number.
    pub process_id: u32,
    /// Readable when it is dead; for killing it and no other.
    pub pidfd: OwnedFd,
}

/// The processes that may have the lock of a copy, from its intent. Whatever else stands there is no matter here.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Heirs {
    #[serde(default)]
    identity: Option<HeirsUser>,
    #[serde(default)]
    cgroup: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct HeirsUser {
    user: u32,
}

impl Heirs {
    /// Whether a process is one of them. A user's programs can signal those whose real or saved user it is, so they gain nothing.
    fn include(&self, process_id: u32) -> bool {
        let Some(HeirsUser { user }) = self.identity else { return true };
        user == geteuid().as_raw()
            || users(process_id).is_some_and(|users| users.contains(&user))
            || self.cgroup.as_ref().is_some_and(|group| is_in_group(process_id, group))
    }
}

impl Holder {
    /// Of the lock of this file; without heirs, as of a role, nobody passes it on. Waits some milliseconds where one has just been taken. Those of other users are not found
    /// without privileges: then [`Others`](Self::Others) lacks them.
    ///
    /// # Errors
    /// The file or `/proc` cannot be read, or this process has no descriptor left.
    pub(super) fn of(path: &Path, heirs: Option<&Heirs>) -> Result<Self, SupervisorError> {
        let Some(file) = files::open(path)? else { return Ok(Self::Nobody { last: None }) };
        let mut looks = 0;
        loop {
            let record = LockRecord::read(&file);
            if let Some(record) = &record
                && let Some(process) = record.process.here()?
                && let Some(pidfd) = process.open()?
            {
                if heirs.is_none_or(|heirs| heirs.include(process.process_id)) {
                    return Ok(Self::Recorded { record: LockRecord { process, ..record.clone() }, pidfd });
                }
                if !is_dead(&pidfd) {
                    return Ok(Self::Foreign { process_id: process.process_id });
                }
            }
            looks += 1;
            if !is_held(&file)? {
                // Not somebody who came between the two looks.
                if LockRecord::read(&file) == record || looks >= LOOKS {
                    return Ok(Self::Nobody { last: record });
                }
            } else if looks >= LOOKS {
                let (found, foreign) = find(&file, path, heirs, record.as_ref())?;
                if !found.is_empty() {
                    return Ok(Self::Others(found));
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

/// The processes that hold the lock of this file, and one that holds it and is not among those that may.
fn find(
    file: &File,
    path: &Path,
    heirs: Option<&Heirs>,
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
        // It was there before the process that has taken the lock, which has not forked it then.
        let is_older = record.is_some_and(|record| record.process.is_younger_than(process_id));
        let is_heir = heirs.is_none_or(|heirs| !is_older && heirs.include(process_id));
        // That it still holds it, and lives, says that all this is of the one whose pidfd this is.
        if holds(&entry.path(), &wanted, name) && !is_dead(&pidfd) {
            match is_heir {
                true => found.push(Orphan { process_id, pidfd }),
                false => foreign = Some(process_id),
            }
        }
    }
    Ok((found, foreign))
}

/// Whether a process, by its directory in `/proc`, has inherited the lock of this file.
fn holds(process: &Path, wanted: &Metadata, name: &OsStr) -> bool {
    // Of other users, and of those that die now, there is nothing to see.
    let Ok(descriptors) = std::fs::read_dir(process.join("fd")) else { return false };
    descriptors.flatten().any(|descriptor| {
        // By name first, so that nothing else is looked at, which could be on a disk that does not answer.
        let is_named = std::fs::read_link(descriptor.path()).is_ok_and(|target| {
            let target = target.as_os_str().as_bytes();
            let target = target.strip_suffix(b" (deleted)").unwrap_or(target);
            target.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes())
        });
        let is_wanted = || {
            let found = std::fs::metadata(descriptor.path());
            found.is_ok_and(|found| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino()))
        };
        // Somebody may have the file open, and not the lock.
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
    use crate::state_directory::lock::{HeldLock, Inherited};
    use gapless_testkit::process::Process;
    use gapless_testkit::wait::until_some;
    use rustix::process::{Signal, pidfd_send_signal};
    use std::process::{Command, Stdio};

    /// A process that has inherited the lock, and lives until it is killed.
    fn heir(held: &HeldLock) -> Process {
        let inherited = rustix::io::dup(held).unwrap();
        Process::start_as(Command::new("sleep").arg("1000").stdin(Stdio::from(inherited)).stdout(Stdio::null()))
    }

    #[test]
    fn nobody_then_the_recorded_one_then_its_orphans() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(matches!(Holder::of(&path, None).unwrap(), Holder::Nobody { last: None }));
        let held = HeldLock::take(&path, Inherited::No).unwrap().unwrap();
        assert!(HeldLock::take(&path, Inherited::No).unwrap().is_none());
        // One that was stopped before it wrote.
        let Holder::Others(unnamed) = Holder::of(&path, None).unwrap() else { panic!("it is held by no record") };
        // What another test starts holds it, too, until it is another program.
        assert!(unnamed.iter().any(|orphan| orphan.process_id == std::process::id()));
        let record = LockRecord::of_this(3).unwrap();
        held.record(&record).unwrap();
        let Holder::Recorded { record: found, .. } = Holder::of(&path, None).unwrap() else { panic!("it is recorded") };
        assert_eq!(found, record);

        let mut heir = heir(&held);
        // The recorded process is another one, which is dead.
        let mut dead = Command::new("true").spawn().unwrap();
        let mut process = record.process.clone();
        process.process_id = dead.id();
        dead.wait().unwrap();
        held.record(&LockRecord { process, ..record.clone() }).unwrap();
        drop(held);
        // It has the file open, and not the lock.
        let _onlooker = File::open(&path).unwrap();
        let Holder::Others(orphans) = Holder::of(&path, None).unwrap() else { panic!("an orphan holds it") };
        let heir_id = heir.pid().as_raw_pid() as u32;
        let orphan = orphans.iter().find(|orphan| orphan.process_id == heir_id).unwrap();
        pidfd_send_signal(&orphan.pidfd, Signal::KILL).unwrap();
        heir.wait();
        let last = until_some("the orphan is dead", || match Holder::of(&path, None).unwrap() {
            Holder::Nobody { last } => Some(last),
            _ => None,
        });
        assert_eq!(last.unwrap().incarnation, 3);
        assert!(HeldLock::take(&path, Inherited::No).unwrap().is_some());
    }

    #[test]
    fn a_process_that_has_closed_its_lock_is_found_by_its_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = HeldLock::take(&path, Inherited::No).unwrap().unwrap();
        held.record(&LockRecord::of_this(1).unwrap()).unwrap();
        drop(held);
        assert!(matches!(Holder::of(&path, None).unwrap(), Holder::Recorded { .. }));
    }

    /// Its copies are taken over by the program that comes after it.
    #[test]
    fn a_record_of_the_program_before_says_who_holds_the_lock() {
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
    fn a_damaged_record_is_no_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let record = serde_json::to_string(&LockRecord::of_this(1).unwrap()).unwrap();
        let wrong_boot = record.replace("\"boot\":\"", "\"boot\":\"x");
        for text in
            ["", "{", &record[..record.len() / 2], &wrong_boot, "[1,2]", &"9".repeat(4096), "{\"process_id\":-1}"]
        {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(Holder::of(&path, None).unwrap(), Holder::Nobody { .. }), "{text}");
        }
    }

    /// A process that asks takes the lock shared for a moment; that refuses nobody.
    #[test]
    fn those_who_ask_hold_up_nobody_who_takes() {
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
            let refused = (0..200).filter(|_| HeldLock::take(&path, Inherited::No).unwrap().is_none()).count();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }
}
