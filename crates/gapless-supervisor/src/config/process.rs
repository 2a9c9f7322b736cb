//! [`ProcessConfig`]: what the file says of one process.

use crate::variables::Variables;
use gapless_agent::CpuMask;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What the file says of one process. The default is of one of which the file says nothing any more: no copies, and nothing
/// that would start one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessConfig {
    /// Its name: ASCII letters, digits, `-` and `_`, at most 64 bytes.
    pub name: String,
    /// The program: a path, or a name that was found on the `PATH`.
    pub program: PathBuf,
    /// Its arguments, as they are; there is no shell.
    pub arguments: Vec<String>,
    /// Variables beside those of the supervisor.
    pub environment: Variables,
    /// Names of variables that have to be set, here or in the supervisor's own environment.
    pub secrets: BTreeSet<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// The file that its standard input is; `/dev/null` without one.
    pub input: Option<PathBuf>,
    /// The user that it runs as; without it the supervisor's.
    pub user: Option<UserConfig>,
    /// Copies that run at first.
    pub copies_min: u32,
    /// Copies that `scale` may ask for.
    pub copies_max: u32,
    /// Where its copies run.
    pub cpus: CpusConfig,
    /// What must be there before it starts.
    pub after: Vec<Dependency>,
    /// When a copy is ready.
    pub ready: Readiness,
    /// A copy that is not ready after this time is ended, and counts as one that failed.
    pub ready_within: Duration,
    /// What follows its end.
    pub restart: RestartConfig,
    /// How it is stopped.
    pub stop: StopConfig,
    /// How often it is asked whether it is well.
    pub ping: Option<PingConfig>,
    /// Memory of a copy, in bytes.
    pub memory_bytes_max: Option<u64>,
    /// Files that a copy may have open.
    pub files_max: Option<u64>,
    /// The length of a core file, in bytes.
    pub core_bytes_max: Option<u64>,
    /// A task: done when it has ended with status 0.
    pub is_once: bool,
    /// One copy is active, the others stand by.
    pub is_singleton: bool,
    /// What makes its copies start anew, one after the other.
    pub reload: ReloadConfig,
    /// Where its output goes, by copy: `calculator.1.log` in this folder.
    pub log_folder: PathBuf,
}

/// The user that a process runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserConfig {
    /// Its name.
    pub name: String,
    /// Its number.
    pub id: u32,
    /// Its group.
    pub group_id: u32,
}

/// Where the copies of a process run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum CpusConfig {
    /// Wherever the system wants.
    #[default]
    Any,
    /// So many CPUs for each copy, which no other copy has that asks for its own.
    Own(u32),
    /// These CPUs, one mask for each copy; the last for all that follow.
    Masks(Vec<CpuMask>),
}

/// A process that must have come so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The other process.
    pub process: String,
    /// How far.
    pub stage: Stage,
}

/// How far a process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Its copies run and, where they say so themselves, have said `INITIALISED=1`.
    Initialised,
    /// Its copies are ready; a task is done.
    Ready,
}

/// When a copy is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Readiness {
    /// When it runs.
    #[default]
    Started,
    /// When its process, or one of its session, serves this route in the supervisor's domain ([`domain`](super::SupervisorConfig::domain)),
    /// and takes calls. Another copy that serves it makes no difference.
    Route(String),
    /// When this address takes a connection.
    Address(SocketAddr),
    /// When this Unix socket takes a connection.
    Socket(PathBuf),
    /// When it has printed a line that contains this.
    Line(String),
    /// When it says `READY=1` to the socket in `NOTIFY_SOCKET`.
    Notify,
}

/// After which ends a copy starts again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartPolicy {
    /// After each.
    #[default]
    Always,
    /// After each but that with status 0.
    OnFailure,
    /// After none.
    Never,
}

/// What follows the end of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestartConfig {
    /// After which ends it starts again.
    pub policy: RestartPolicy,
    /// The second restart waits so long; the first does not wait, each later one twice as long.
    pub backoff_first: Duration,
    /// The longest wait.
    pub backoff_max: Duration,
    /// With more restarts than this within `within` it is held.
    pub restarts_max: u32,
    /// The time that `restarts_max` is about.
    pub within: Duration,
    /// A copy that was ready for so long begins to count anew.
    pub healthy_after: Duration,
}

/// How a copy is stopped. One that serves routes in the supervisor's domain is drained first, for half of its grace at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopConfig {
    /// The signal, as `SIGTERM`.
    pub signal: StopSignal,
    /// It is killed when it has not ended after this time.
    pub grace: Duration,
}

impl Default for StopConfig {
    /// SIGTERM, and ten seconds.
    fn default() -> Self {
        Self { signal: StopSignal::Terminate, grace: Duration::from_secs(10) }
    }
}

/// Signals that ask a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// `SIGTERM`.
    Terminate,
    /// `SIGINT`.
    Interrupt,
    /// `SIGQUIT`.
    Quit,
    /// `SIGHUP`.
    HangUp,
    /// `SIGUSR1`.
    User1,
    /// `SIGUSR2`.
    User2,
    /// `SIGKILL`.
    Kill,
}

impl StopSignal {
    /// Every choice with its name in the file.
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

/// How often a copy is asked whether it is well, while it is ready and serves the route and takes calls: by the ping that each copy of a
/// route answers by itself, without its handler. A worker of the route answers, before all calls that wait: so a copy whose workers
/// are all busy for longer than `within`, `failures_max` times one after the other, is taken for stuck, as is one that is stopped.
/// `every` and `within` are to be longer than its calls take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PingConfig {
    /// The route.
    pub route: String,
    /// From one to the next.
    pub every: Duration,
    /// The answer must come within.
    pub within: Duration,
    /// A copy that fails so often one after the other is killed.
    pub failures_max: u32,
}

/// What makes the copies of a process start anew, one after the other. A file that is being written is waited for: it must be
/// the same for a second, and nobody may be seen to have it open for writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadConfig {
    /// `program`: another program lies at its path, by inode, time of change or length. Not without being asked for.
    pub on_program: bool,
    /// `input`: another file lies at the path of its `input`, told apart in the same way. Not without being asked for.
    pub on_input: bool,
    /// `file`: the file says something else about it, by itself or by `gapless reload`. Else that holds from the next start
    /// of each copy. Yes unless it says otherwise.
    pub on_file: bool,
    /// A new copy is ready before an old one is stopped: for a moment there is one more than asked for.
    pub is_overlapping: bool,
}
