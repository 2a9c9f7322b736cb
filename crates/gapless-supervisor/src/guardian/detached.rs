//! Starting a guardian that is nobody's child: [`start_if_missing`] by way of a process that is [`start_detached`].

use crate::error::SupervisorError;
use crate::role::{Role, RoleCommand};
use crate::state_directory::{Holder, RoleLock, StateDirectory, files};
use gapless_agent::fault::crash_point;
use rustix::fs::OFlags;
use rustix::process::{Resource, getrlimit};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Between two looks at whether there is a guardian.
pub(super) const PAUSE: Duration = Duration::from_millis(1);
/// Another guardian is started if none has taken its lock so long after the last attempt.
const START_INTERVAL: Duration = Duration::from_secs(1);

/// Is the process between a supervisor and the guardian that it starts: starts the guardian in a session of its own, with its
/// output in the directory's log, and is to end at once, so that the guardian is nobody's child and has nothing open that
/// was inherited. Nothing says here that the guardian takes its lock.
///
/// A process that runs this has one thread and needs nothing that it has open but its standard streams: all else is closed.
///
/// # Errors
/// It cannot be started.
pub fn start_detached(directory: &Path, roles: &RoleCommand) -> Result<(), SupervisorError> {
    close_inherited()?;
    check_limits()?;
    // Of the terminal's signals it and the guardian hear nothing any more.
    let _leads_already = rustix::process::setsid();
    let directory = StateDirectory::open(directory)?;
    let mut command = roles.command(&Role::Guardian { directory: directory.path().to_owned() });
    command.stdin(Stdio::null()).current_dir("/");
    // Without a log it is as good.
    let flags = OFlags::APPEND;
    let log = files::open_to_write(&directory.guardian_log(), flags, files::PRIVATE_FILE);
    let copy = log.as_ref().ok().and_then(|log| log.try_clone().ok());
    command.stdout(log.map_or_else(|_| Stdio::null(), Stdio::from)).stderr(copy.map_or_else(Stdio::null, Stdio::from));
    let spawned = command.spawn();
    spawned.map(drop).map_err(SupervisorError::io("starting a guardian"))
}

/// Descriptors that a guardian may have open, at least: fewer, and it could not be talked to, and not be ended.
const DESCRIPTORS_MIN: u64 = 64;

/// # Errors
/// This process, and so the guardian, may open too few files.
pub(super) fn check_limits() -> Result<(), SupervisorError> {
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < DESCRIPTORS_MIN => Err(SupervisorError::Refused(format!(
            "a guardian needs {DESCRIPTORS_MIN} descriptors, and this process may have {most}: raise `ulimit -n`"
        ))),
        _ => Ok(()),
    }
}

/// Closes what whoever started this has left open: locks and pipes of others, which a guardian and its children would keep
/// for days.
fn close_inherited() -> Result<(), SupervisorError> {
    let failed = SupervisorError::io("listing open descriptors");
    let listed = std::fs::read_dir("/proc/self/fd").map_err(failed)?.flatten();
    let numbers = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).collect::<Vec<_>>();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // One of them was the listing's own.
        let _closed_already = nix::unistd::close(number);
    }
    Ok(())
}

/// Sees to it that there is a guardian, which then sees to it that there is a supervisor. For those who are no supervisor, and so
/// do not connect to it.
///
/// # Errors
/// None can be started, or none takes its lock within this time.
pub fn start_if_missing(
    directory: &StateDirectory,
    roles: &RoleCommand,
    within: Duration,
) -> Result<(), SupervisorError> {
    let deadline = Instant::now() + within;
    let mut starter = Starter::new();
    loop {
        if starter.look(directory, roles, deadline)? {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(late(directory, within));
        }
        std::thread::sleep(PAUSE);
    }
}

/// A guardian of a state directory at this path, which was removed: it lives as long as its copies. Of this user, or for root, and of this mount
/// namespace: in another one the path is of another directory.
#[must_use]
pub fn find_lost(directory: &Path) -> Option<u32> {
    let path = std::path::absolute(directory).ok()?;
    let role = Role::Guardian { directory: path }.arguments();
    let role: Vec<&[u8]> = role.iter().map(|word| word.as_bytes()).collect();
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let namespace_of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let own_namespace = namespace_of("self")?;
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.into_iter().find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        // Behind the last word there is a 0, too.
        words.strip_suffix(&[&[][..]]).is_some_and(|words| words.ends_with(&role))
            && namespace_of(&pid.to_string()).as_ref() == Some(&own_namespace)
    })
}

pub(super) fn late(directory: &StateDirectory, within: Duration) -> SupervisorError {
    let what = match directory.role_holder(RoleLock::Guardian) {
        Ok(Holder::Nobody { .. }) => "none has started",
        Ok(Holder::Hidden { .. }) => "one of another process namespace or user holds its lock and does not answer",
        _ => "one runs and does not answer",
    };
    let reason = format!("{what} within {} ms", within.as_millis());
    SupervisorError::Guardian { directory: directory.path().to_owned(), reason }
}

/// Waits for a guardian, and starts one from time to time.
pub(super) struct Starter {
    start_at: Instant,
}

impl Starter {
    pub(super) fn new() -> Self {
        Self { start_at: Instant::now() }
    }

    /// Whether a guardian runs; starts one if there is none, and none was started just now.
    pub(super) fn look(
        &mut self,
        directory: &StateDirectory,
        roles: &RoleCommand,
        deadline: Instant,
    ) -> Result<bool, SupervisorError> {
        // Also one of another container, which listens at the same socket.
        if !matches!(directory.role_holder(RoleLock::Guardian)?, Holder::Nobody { .. }) {
            return Ok(true);
        }
        let now = Instant::now();
        if now >= self.start_at {
            crash_point("supervisor_before_guardian");
            start(directory, roles, deadline)?;
            crash_point("supervisor_guardian_started");
            self.start_at = now + START_INTERVAL;
        }
        Ok(false)
    }
}

/// Starts the process between, and waits until it has started a guardian; no longer than until `deadline`.
fn start(directory: &StateDirectory, roles: &RoleCommand, deadline: Instant) -> Result<(), SupervisorError> {
    let mut command = roles.command(&Role::StartGuardian { directory: directory.path().to_owned() });
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(SupervisorError::io("starting a process that starts a guardian"))?;
    let ended = wait_until(&mut child, deadline)?;
    if ended.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let mut said = String::new();
    if let Some(stderr) = child.stderr.take().filter(|_| ended.is_some()) {
        // It has ended, and the guardian has another standard error.
        let _ = std::io::Read::read_to_string(&mut std::io::Read::take(stderr, 1000), &mut said);
    }
    let how = ended.map_or_else(|| "it did not end in time".to_owned(), |status| format!("it ended with {status}"));
    let reason = format!("the process that starts it has not: {how} {}", said.trim());
    Err(SupervisorError::Guardian { directory: directory.path().to_owned(), reason })
}

fn wait_until(child: &mut Child, deadline: Instant) -> Result<Option<std::process::ExitStatus>, SupervisorError> {
    let failed = || SupervisorError::io("waiting for a process that starts a guardian");
    loop {
        if let Some(status) = child.try_wait().map_err(failed())? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            // It may have ended since.
            let _ = child.kill();
            return child.wait().map(|_| None).map_err(failed());
        }
        std::thread::sleep(PAUSE);
    }
}
