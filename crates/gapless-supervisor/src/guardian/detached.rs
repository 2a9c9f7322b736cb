//! Starts a guardian as a daemon: `start_if_missing` runs an intermediate process, which calls `start_detached`.

use crate::error::SupervisorError;
use crate::role::{ProcessRole, RoleCommand};
use crate::state_directory::{Holder, RoleLock, StateDirectory, files};
use gapless_agent::fault::crash_point;
use rustix::fs::OFlags;
use rustix::process::{Resource, getrlimit};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

pub(super) const PAUSE: Duration = Duration::from_millis(1);
const START_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the intermediate process: starts a guardian in its own session, with the log as its output, and must exit at
/// once. The guardian thus has no parent and no inherited descriptors. The caller must be single-threaded; all its
/// descriptors except the standard streams are closed.
///
/// # Errors
/// The guardian cannot be started.
pub fn start_detached(directory: &Path, roles: &RoleCommand) -> Result<(), SupervisorError> {
    close_inherited()?;
    check_limits()?;
    let _leads_already = rustix::process::setsid();
    let directory = StateDirectory::open(directory)?;
    let mut command = roles.command(&ProcessRole::Guardian { directory: directory.path().to_owned() });
    command.stdin(Stdio::null()).current_dir("/");
    let flags = OFlags::APPEND;
    let log = files::open_to_write(&directory.guardian_log(), flags, files::PRIVATE_FILE);
    let copy = log.as_ref().ok().and_then(|log| log.try_clone().ok());
    command.stdout(log.map_or_else(|_| Stdio::null(), Stdio::from)).stderr(copy.map_or_else(Stdio::null, Stdio::from));
    let spawned = command.spawn();
    spawned.map(drop).map_err(SupervisorError::io("starting a guardian"))
}

/// Least limit of descriptors for a guardian; with fewer it could neither be reached nor shut down.
const DESCRIPTORS_MIN: u64 = 64;

pub(super) fn check_limits() -> Result<(), SupervisorError> {
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < DESCRIPTORS_MIN => Err(SupervisorError::Refused(format!(
            "a guardian needs {DESCRIPTORS_MIN} descriptors, and this process may have {most}: raise `ulimit -n`"
        ))),
        _ => Ok(()),
    }
}

/// Guardian and instances would keep inherited locks and pipes open for days.
fn close_inherited() -> Result<(), SupervisorError> {
    let failed = SupervisorError::io("listing open descriptors");
    let listed = std::fs::read_dir("/proc/self/fd").map_err(failed)?.flatten();
    let numbers = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).collect::<Vec<_>>();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        let _closed_already = nix::unistd::close(number);
    }
    Ok(())
}

/// Makes sure that a guardian runs, which starts a supervisor. For processes other than supervisors.
///
/// # Errors
/// No guardian can be started, or none takes its lock in time.
pub fn start_if_missing(
    directory: &StateDirectory,
    roles: &RoleCommand,
    within: Duration,
) -> Result<(), SupervisorError> {
    let deadline = Instant::now() + within;
    let mut starter = Starter::new();
    loop {
        if starter.start_if_due(directory, roles, deadline)? {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(late(directory, within));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Finds a guardian whose state directory at this path was removed; it lives as long as its instances. Searches the
/// same mount namespace only, where the path means the same.
#[must_use]
pub fn find_orphaned(directory: &Path) -> Option<u32> {
    let path = std::path::absolute(directory).ok()?;
    let role = ProcessRole::Guardian { directory: path }.arguments();
    let role: Vec<&[u8]> = role.iter().map(|word| word.as_bytes()).collect();
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let namespace_of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let own_namespace = namespace_of("self")?;
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.into_iter().find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.strip_suffix(&[&[][..]]).is_some_and(|words| words.ends_with(&role))
            && namespace_of(&pid.to_string()).as_ref() == Some(&own_namespace)
    })
}

pub(super) fn late(directory: &StateDirectory, within: Duration) -> SupervisorError {
    let what = match directory.role_holder(RoleLock::Guardian) {
        Ok(Holder::Free { .. }) => "none has started",
        Ok(Holder::Hidden { .. }) => "one of another process namespace or user holds its lock and does not answer",
        _ => "one runs and does not answer",
    };
    let reason = format!("{what} within {} ms", within.as_millis());
    SupervisorError::Guardian { directory: directory.path().to_owned(), reason }
}

pub(super) struct Starter {
    start_at: Instant,
}

impl Starter {
    pub(super) fn new() -> Self {
        Self { start_at: Instant::now() }
    }

    pub(super) fn start_if_due(
        &mut self,
        directory: &StateDirectory,
        roles: &RoleCommand,
        deadline: Instant,
    ) -> Result<bool, SupervisorError> {
        // A guardian in another container counts: it listens at the same socket.
        if !matches!(directory.role_holder(RoleLock::Guardian)?, Holder::Free { .. }) {
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

fn start(directory: &StateDirectory, roles: &RoleCommand, deadline: Instant) -> Result<(), SupervisorError> {
    let mut command = roles.command(&ProcessRole::StartGuardian { directory: directory.path().to_owned() });
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(SupervisorError::io("starting a process that starts a guardian"))?;
    let ended = wait_until(&mut child, deadline)?;
    if ended.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let mut error_output = String::new();
    if let Some(stderr) = child.stderr.take().filter(|_| ended.is_some()) {
        // The guardian does not share its stderr, so this reads to the end.
        let _ = std::io::Read::read_to_string(&mut std::io::Read::take(stderr, 1000), &mut error_output);
    }
    let how = ended.map_or_else(|| "it did not end in time".to_owned(), |status| format!("it ended with {status}"));
    let reason = format!("the process that starts it has not: {how} {}", error_output.trim());
    Err(SupervisorError::Guardian { directory: directory.path().to_owned(), reason })
}

fn wait_until(child: &mut Child, deadline: Instant) -> Result<Option<std::process::ExitStatus>, SupervisorError> {
    let failed = || SupervisorError::io("waiting for a process that starts a guardian");
    loop {
        if let Some(status) = child.try_wait().map_err(failed())? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            // The process may have exited meanwhile.
            let _ = child.kill();
            return child.wait().map(|_| None).map_err(failed());
        }
        std::thread::sleep(PAUSE);
    }
}
