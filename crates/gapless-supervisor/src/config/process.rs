//! `ProcessConfig`: options of one process.

use crate::variables::Variables;
use gapless_agent::CpuMask;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Options of one process. The default is for a process outside the configuration: no instances, and no cause to start
/// one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessConfig {
    /// Name: ASCII letters, digits, `-` and `_`, at most 64 bytes.
    pub name: String,
    /// Path of the program, or its name if not found on the `PATH`.
    pub program: PathBuf,
    /// Arguments, passed without a shell.
    pub arguments: Vec<String>,
    /// Variables in addition to those of the supervisor.
    pub environment: Variables,
    /// Variables that must be set, here or in the supervisor's environment.
    pub secrets: BTreeSet<String>,
    pub folder: PathBuf,
    /// File for standard input; `/dev/null` without one.
    pub input: Option<PathBuf>,
    /// User of the process; by default that of the supervisor.
    pub user: Option<UserConfig>,
    /// Initial number of instances.
    pub instances_min: u32,
    pub instances_max: u32,
    pub cpus: CpusConfig,
    /// Dependencies that must have reached a stage before it starts.
    pub after: Vec<Dependency>,
    /// Condition for an instance to be ready.
    pub ready: Readiness,
    /// Time after which an instance that is not ready is killed as failed.
    pub ready_within: Duration,
    pub restart: RestartConfig,
    pub stop: StopConfig,
    pub ping: Option<PingConfig>,
    /// Memory limit of an instance, bytes.
    pub memory_bytes_max: Option<u64>,
    pub files_max: Option<u64>,
    /// Length limit of a core dump, bytes.
    pub core_bytes_max: Option<u64>,
    /// A task, done once it has exited with status 0.
    pub is_once: bool,
    /// One instance is active, the others are standbys.
    pub is_singleton: bool,
    /// Causes of a reload.
    pub reload: ReloadConfig,
    /// Directory of its logs, as `calculator.1.log`.
    pub log_folder: PathBuf,
}

/// User of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserConfig {
    pub name: String,
    pub id: u32,
    pub group_id: u32,
}

/// CPUs of the instances of a process.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum CpusConfig {
    #[default]
    Any,
    Own(u32),
    /// Masks for the instances in order; the last one for all further ones.
    Masks(Vec<CpuMask>),
}

/// Dependency on another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    pub process: String,
    pub stage: DependencyStage,
}

/// Stage of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DependencyStage {
    /// Instances run; those that report readiness themselves have sent `INITIALISED=1`.
    Initialised,
    /// Instances are ready; a task is done.
    Ready,
}

/// Condition for an instance to be ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Readiness {
    #[default]
    Started,
    /// The process, or one of its session, serves this route in the supervisor's domain
    /// ([`domain`](super::SupervisorConfig::domain)) and takes calls. Other instances of it do not count.
    Route(String),
    /// This address accepts a connection.
    Address(SocketAddr),
    /// This Unix socket accepts a connection.
    Socket(PathBuf),
    /// The log has a line that contains this text.
    Line(String),
    /// The process has sent `READY=1` to the socket in `NOTIFY_SOCKET`.
    Notify,
}

/// Ends after which an instance is restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartPolicy {
    #[default]
    Always,
    OnFailure,
    Never,
}

/// Restart policy of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestartConfig {
    pub policy: RestartPolicy,
    /// Pause before the second restart, doubled for each further one; the first restart is immediate.
    pub backoff_first: Duration,
    pub backoff_max: Duration,
    /// Limit of restarts within `within`, beyond which the instance is held.
    pub restarts_max: u32,
    /// Period of `restarts_max`.
    pub within: Duration,
    /// Time of readiness after which the backoff starts over.
    pub healthy_after: Duration,
}

/// Way of stopping an instance. An instance that serves routes in the supervisor's domain is drained first, for at most
/// half of its grace period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopConfig {
    pub signal: StopSignal,
    /// Grace period after which it is killed.
    pub grace: Duration,
}

impl Default for StopConfig {
    fn default() -> Self {
        Self { signal: StopSignal::Terminate, grace: Duration::from_secs(10) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    Terminate,
    Interrupt,
    Quit,
    HangUp,
    User1,
    User2,
    Kill,
}

impl StopSignal {
    /// All signals with their names in the configuration.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("SIGTERM", Self::Terminate),
        ("SIGINT", Self::Interrupt),
        ("SIGQUIT", Self::Quit),
        ("SIGHUP", Self::HangUp),
        ("SIGUSR1", Self::User1),
        ("SIGUSR2", Self::User2),
        ("SIGKILL", Self::Kill),
    ];
}

/// Liveness probes of an instance while it is ready, serves the route and takes calls. A worker of the route answers
/// before all waiting calls, without the handler. So an instance counts as hung if all its workers are busy, or it is
/// stopped, for longer than `within`, `failures_max` times in succession; `every` and `within` must be longer than its
/// calls take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PingConfig {
    pub route: String,
    pub every: Duration,
    pub within: Duration,
    /// Consecutive failures after which the instance is killed.
    pub failures_max: u32,
}

/// Causes of a reload, which replaces instances one after the other. A file must be unchanged for a second, without a
/// visible process that has it open for writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadConfig {
    /// `program`: the program file was replaced, by inode, modification time or length. Off by default.
    pub on_program: bool,
    /// `input`: the `input` file was replaced. Off by default.
    pub on_input: bool,
    /// `file`: its configuration was changed, as noticed or by `gapless reload`. On by default; if off, changes apply
    /// from each instance's next start.
    pub on_file: bool,
    /// A new instance is ready before an old one is stopped: one more than configured runs temporarily.
    pub is_overlapping: bool,
}

pub(super) struct InvalidProcess {
    pub name: String,
    pub after: Vec<Dependency>,
}
