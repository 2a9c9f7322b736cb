//! The launcher: the process of an instance between the guardian's fork and its exec. It takes the instance's lock and
//! keeps the descriptor open over exec, so that no second instance can start in between.

mod confinement;
mod dispositions;
mod input;
mod notify_socket;
mod standby;

pub use gapless_rpc::context::{COPY_VARIABLE, INSTANCE_VARIABLE};
pub use input::is_input;
pub use standby::STANDBY_NAME;

use crate::error::SupervisorError;
use crate::instance_name::InstanceName;
use crate::state_directory::{
    HeldLock, InstanceDirectory, LaunchFailure, LaunchFailureFile, LaunchPlan, LockRecord, StateDirectory,
};
use gapless_agent::fault::crash_point;
use gapless_agent::folder::Folder;
use rustix::fs::{Mode, OFlags};
use std::convert::Infallible;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Exit status of a superseded launcher: the instance already runs, or another launch plan is in force.
pub const STATUS_ALREADY: u8 = 75;
/// Exit status of a failed launcher; the reason is in its log and in `launch-error`.
pub const STATUS_FAILED: u8 = 76;

/// Environment variable with the `sd_notify` socket.
pub const NOTIFY_VARIABLE: &str = "NOTIFY_SOCKET";

/// Becomes the instance and does not return; on an error returns the exit code. The caller must be single-threaded and
/// have only its standard streams open: descriptors without close-on-exec stay open in the instance.
#[must_use = "it is what the process is to end with"]
pub fn run(directory: &Path, name: &InstanceName, incarnation: u64) -> ExitCode {
    crash_point("launch_begun");
    let instance = match StateDirectory::open(directory) {
        Ok(directory) => directory.instance(name),
        Err(error) => {
            say(&format!("{name}: {error}\n"));
            return ExitCode::from(STATUS_FAILED);
        }
    };
    let mut sinks = FailureSinks::default();
    let refusal = match become_instance(&instance, incarnation, &mut sinks) {
        Ok(never) => match never {},
        Err(refusal) => refusal,
    };
    crash_point("launch_refused");
    let (already_runs, reason, is_shortage) = match refusal {
        LaunchRefusal::Already(reason) => (true, reason, false),
        LaunchRefusal::Failed { reason, is_shortage } => (false, reason, is_shortage),
    };
    let line = format!("{name}: not started: {reason}\n");
    let log = sinks.log.filter(|_| !already_runs);
    if log.is_none_or(|mut log| log.write_all(line.as_bytes()).is_err()) {
        say(&line);
    }
    let failure = LaunchFailure { incarnation, already_runs, is_shortage, reason };
    let written = match sinks.failure {
        Some(file) => file.write(&failure),
        None => instance.write_launch_failure(&failure),
    };
    if let Err(error) = written {
        say(&format!("{name}: {error}\n"));
    }
    ExitCode::from(if already_runs { STATUS_ALREADY } else { STATUS_FAILED })
}

fn say(line: &str) {
    let _ = std::io::stderr().write_all(line.as_bytes());
}

enum LaunchRefusal {
    Already(String),
    Failed { reason: String, is_shortage: bool },
}

impl From<SupervisorError> for LaunchRefusal {
    fn from(error: SupervisorError) -> Self {
        Self::Failed { reason: error.to_string(), is_shortage: error.is_shortage() }
    }
}

#[derive(Default)]
struct FailureSinks {
    log: Option<File>,
    failure: Option<LaunchFailureFile>,
}

fn become_instance(
    instance: &InstanceDirectory,
    incarnation: u64,
    sinks: &mut FailureSinks,
) -> Result<Infallible, LaunchRefusal> {
    // Without the lock the plan could be replaced after it was read.
    let lock = lock(instance)?;
    crash_point("launch_locked");
    if let Some(previous) = lock.previous().filter(|previous| previous.incarnation == incarnation) {
        let reason =
            format!("this start, {incarnation}, was made by process {} and is over", previous.process.process_id);
        return Err(LaunchRefusal::Already(reason));
    }
    let plan = plan(instance, incarnation)?;
    crash_point("launch_read");
    lock.record(&LockRecord::of_this(incarnation)?)?;
    crash_point("launch_recorded");
    // A session of its own: no signals of a terminal, and descendants are recognised. Stop signals go to the process
    // only. Fails only for a session leader.
    let _leads_already = rustix::process::setsid();
    dispositions::reset()?;
    let joined = confinement::join_group(&plan);
    crash_point("launch_confined");
    let log = sinks.log.insert(open_log(&plan)?);
    crash_point("launch_log_opened");
    confinement::note_group(&joined, instance.name(), log);
    confinement::pin(&plan, instance.name(), log);
    // The change of user may take the permission away.
    sinks.failure = Some(instance.open_launch_failure()?);
    let mut command = command(&plan, instance.name(), log)?;
    let _open_until_exec = notify_socket::pass_on(&plan, &mut command)?;
    let singleton = standby::open(&plan)?;
    confinement::set_limits(&plan, joined.unwrap_or(false))?;
    crash_point("launch_limited");
    confinement::change_identity(&plan)?;
    let entering = SupervisorError::system(format!("entering its folder {}", plan.folder.display()));
    rustix::process::chdir(&plan.folder).map_err(entering)?;
    command.stdin(input::open(&plan)?);
    if let Some(singleton) = &singleton {
        crash_point("launch_standby");
        standby::stand_by(singleton, incarnation)?;
        crash_point("launch_active");
    }
    crash_point("launch_before_exec");
    let error = command.exec();
    // Both locks are held until here.
    drop((singleton, lock));
    Err(SupervisorError::io(format!("running {}", plan.program.display()))(error).into())
}

fn lock(instance: &InstanceDirectory) -> Result<HeldLock, LaunchRefusal> {
    let reason = || format!("it runs already: the lock of {} is held", instance.path().display());
    instance.lock()?.ok_or_else(|| LaunchRefusal::Already(reason()))
}

fn plan(instance: &InstanceDirectory, incarnation: u64) -> Result<LaunchPlan, LaunchRefusal> {
    let Some(plan) = instance.read_launch()? else {
        return Err(SupervisorError::Refused(format!("there is no intent in {}", instance.path().display())).into());
    };
    if plan.incarnation != incarnation {
        let reason = format!("the intent in force is {}, and this was to be {incarnation}", plan.incarnation);
        return Err(LaunchRefusal::Already(reason));
    }
    Ok(plan)
}

fn open_log(plan: &LaunchPlan) -> Result<File, SupervisorError> {
    let failed = SupervisorError::io(format!("opening its log {}", plan.log.display()));
    let open = || {
        let no_name = || std::io::Error::other("it has no name");
        let folder = Folder::open(plan.log.parent().ok_or_else(no_name)?)?;
        let (flags, mode) = (OFlags::WRONLY | OFlags::APPEND, Mode::from_raw_mode(0o640));
        folder.open_or_create_file(plan.log.file_name().ok_or_else(no_name)?, flags, mode)
    };
    let log = open().map_err(failed)?;
    let failed = SupervisorError::system(format!("opening its log {}", plan.log.display()));
    rustix::fs::fcntl_setfl(&log, OFlags::APPEND).map_err(failed)?;
    Ok(log)
}

fn command(plan: &LaunchPlan, name: &InstanceName, log: &File) -> Result<Command, SupervisorError> {
    let output = || log.try_clone().map(Stdio::from).map_err(SupervisorError::io("copying the descriptor of its log"));
    let mut command = Command::new(&plan.program);
    command.args(&plan.arguments).env_clear().envs(plan.environment.iter());
    command.env(INSTANCE_VARIABLE, name.to_string()).env(COPY_VARIABLE, name.to_string());
    command.stdout(output()?).stderr(output()?);
    Ok(command)
}
