//! `run`: the supervisor process, on one thread.

use super::changed_files::{ChangedFiles, FileVersion};
use super::connections::Connections;
use super::notify_sockets::NotifySockets;
use super::persistence::{EventLog, InstanceNotes, PersistentState};
use super::repeated_failure::RepeatedFailure;
use super::routes::RouteObserver;
use super::watched_instance::WatchedInstance;
use crate::clock::now_ns;
use crate::config::SupervisorConfig;
use crate::control_groups::ControlGroups;
use crate::error::{SupervisorError, check_proc};
use crate::guardian::GuardianClient;
use crate::instance_name::InstanceName;
use crate::logs::LogKeeper;
use crate::role::{RoleCommand, RoleOutcome};
use crate::silence::SilenceTimer;
use crate::state_directory::{HeldLock, RoleLock, StateDirectory, StateSocket};
use crate::supervision::event::{OperatorCommand, ProcessAction, ProcessEvent};
use crate::supervision::{KILL_TIMEOUT, Supervision};
use gapless_agent::regular_file::read_text;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::AtFlags;
use rustix::time::Timespec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const GUARDIAN_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);
const GUARDIAN_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
const SLEEP_MAX_NS: u64 = 1_000_000_000;

/// Runs the supervisor of a state directory until it has been shut down.
///
/// # Errors
/// Its lock or socket is unavailable, or the configuration in force cannot be read.
pub fn run(directory: &Path, roles: &RoleCommand) -> Result<RoleOutcome, SupervisorError> {
    check_proc()?;
    let directory = StateDirectory::open(directory)?;
    // Sets the name for `ps`; the process was started as `exe`.
    let _as_it_was = rustix::thread::set_name(c"gapless-superv");
    let Some(role_lock) = directory.take_role_lock(RoleLock::Supervisor)? else {
        return Ok(RoleOutcome::AlreadyRunning);
    };
    SupervisorDriver::begin(directory, roles.clone())?.serve(role_lock)
}

pub(super) struct SupervisorDriver {
    pub directory: StateDirectory,
    roles: RoleCommand,
    /// Path of the configuration in force; `None` without one.
    pub file: Option<PathBuf>,
    pub config: SupervisorConfig,
    pub supervision: Supervision,
    pub boot: String,
    /// Control groups, or the reason for running without them.
    pub groups: Result<ControlGroups, String>,
    /// Persistent state of instances outside the rules.
    pub notes: BTreeMap<String, InstanceNotes>,
    pub guardian: Option<GuardianClient>,
    pub guardian_silence: SilenceTimer,
    /// Next liveness probe of the guardian.
    pub next_probe_at: Instant,
    /// Instances that run or are requested.
    pub watched: BTreeMap<InstanceName, WatchedInstance>,
    /// Ended instances to remove from the guardian's records once persisted.
    pub to_forget: Vec<(InstanceName, u64)>,
    pub connections: Connections,
    /// `None` while no process needs it.
    pub routes: Option<RouteObserver>,
    pub notify_sockets: NotifySockets,
    pub events: EventLog,
    pub changed_files: ChangedFiles,
    pub logs: LogKeeper,
    /// Directories of logs on full disks.
    pub full_disks: BTreeSet<PathBuf>,
    pub actions: Vec<ProcessAction>,
    pub pending_events: VecDeque<ProcessEvent>,
    /// The persistent state has unwritten changes.
    pub is_dirty: bool,
    /// The last write failed; `problem` has the reason.
    pub is_unwritten: bool,
    pub is_ending: bool,
    pub problem: Option<String>,
    /// Reason for rejecting a newer configuration.
    pub refused_file: Option<String>,
    /// Failing probes of instances.
    pub probe_failure: RepeatedFailure,
    guardian_failure: RepeatedFailure,
    /// Result of the last sleep.
    pub wake_sources: WakeSources,
}

#[derive(Debug)]
pub(super) struct WakeSources {
    has_notifications: bool,
    /// Reports about routes.
    pub has_routes: bool,
    /// Requests of commands, or room for answers.
    pub has_commands: bool,
    /// Ended instances that no guardian reports.
    pub ended: Vec<InstanceName>,
}

impl SupervisorDriver {
    fn begin(directory: StateDirectory, roles: RoleCommand) -> Result<Self, SupervisorError> {
        match directory.rename_former() {
            Ok(warning) => warning.iter().for_each(|warning| tracing::warn!("{warning}")),
            Err(error) => tracing::warn!("{error}"),
        }
        let in_force = directory.read_config_in_force()?;
        let (text, path) = in_force.as_ref().map_or(("", Path::new("/")), |in_force| (&in_force.text, &in_force.path));
        let config = SupervisorConfig::parse_in_force(text, path);
        let config = config.map_err(|error| SupervisorError::damaged(path, error.to_string()))?;
        config.warning.iter().for_each(|warning| tracing::warn!("{warning}"));
        let persistent = PersistentState::read(&directory)?;
        let connections = Connections::open(&directory, &config)?;
        let groups = ControlGroups::make(&directory);
        let logs = LogKeeper::start(config.log_bytes_max, config.logs_kept);
        let logs = logs.map_err(SupervisorError::io("starting to look after logs"))?;
        let of_instances = persistent.instances.values().map(|notes| notes.log.clone()).filter(|log| log.has_root());
        of_instances.chain([directory.events(), directory.guardian_log()]).for_each(|log| logs.add(&log));
        let mut changed_files = ChangedFiles::default();
        let on_disk = in_force.as_ref().map(|in_force| {
            let identity = FileVersion::of(&in_force.path);
            let is_in_force = read_text(&in_force.path).is_ok_and(|text| text == in_force.text);
            (in_force.path.as_path(), identity.filter(|_| is_in_force))
        });
        changed_files.follow(on_disk, &config, &persistent.started_versions);
        Ok(Self {
            changed_files,
            supervision: Supervision::new(&config, persistent.supervision),
            is_ending: persistent.is_ending || in_force.is_none(),
            file: in_force.map(|in_force| in_force.path),
            notify_sockets: NotifySockets::default(),
            events: EventLog::new(directory.events()),
            logs,
            full_disks: BTreeSet::new(),
            boot: persistent.boot,
            groups,
            notes: persistent.instances,
            connections,
            config,
            directory,
            roles,
            guardian: None,
            guardian_silence: SilenceTimer::begin(Instant::now()),
            next_probe_at: Instant::now(),
            routes: None,
            watched: BTreeMap::new(),
            to_forget: Vec::new(),
            actions: Vec::new(),
            pending_events: VecDeque::new(),
            is_dirty: false,
            is_unwritten: false,
            problem: None,
            refused_file: None,
            probe_failure: RepeatedFailure::default(),
            guardian_failure: RepeatedFailure::default(),
            wake_sources: WakeSources {
                has_notifications: true,
                has_routes: true,
                has_commands: true,
                ended: Vec::new(),
            },
        })
    }

    fn serve(mut self, role_lock: HeldLock) -> Result<RoleOutcome, SupervisorError> {
        let mut has_taken_over = false;
        loop {
            // Directory or lock removed: this supervisor is unreachable, and another one may have started.
            if !self.directory.is_in_role(RoleLock::Supervisor, &role_lock) {
                return Ok(RoleOutcome::ShutDown);
            }
            if self.guardian.is_none() {
                match self.connect(&mut has_taken_over) {
                    Ok(()) => self.guardian_failure.clear(),
                    Err(error) => {
                        self.guardian_failure.record(error.to_string());
                        self.guardian = None;
                        self.note_unreachable_guardian();
                        std::thread::sleep(PAUSE);
                    }
                }
            }
            if let Err(error) = self.receive_from_guardian() {
                tracing::warn!("{error}");
                self.disconnect_guardian();
            }
            self.check_liveness();
            if has_taken_over {
                if self.wake_sources.has_notifications {
                    self.handle_notifications();
                }
                self.handle_route_reports();
                self.check_instances();
                self.report_log_findings();
                self.check_files();
                if self.wake_sources.has_commands || self.connections.next_ns().is_some_and(|at_ns| at_ns <= now_ns()) {
                    self.serve_commands();
                }
                if self.supervision.next_deadline_ns().is_some_and(|deadline| deadline <= now_ns()) {
                    self.supervision.reconcile(now_ns(), &mut self.actions);
                }
                self.work();
                self.update_route_watch();
                if self.is_ending {
                    self.report_unkillable();
                }
            }
            if has_taken_over && self.is_ending && self.supervision.is_over() && self.watched.is_empty() {
                self.end();
                drop(role_lock);
                return Ok(RoleOutcome::ShutDown);
            }
            self.sleep();
        }
    }

    fn connect(&mut self, has_taken_over: &mut bool) -> Result<(), SupervisorError> {
        let mut guardian = GuardianClient::connect_or_start(&self.directory, &self.roles, GUARDIAN_TIMEOUT)?;
        self.notify_sockets.listen(guardian.take_notify_socket().ok_or_else(|| {
            let reason = "it has not handed its notify socket over".to_owned();
            SupervisorError::Guardian { directory: self.directory.path().to_owned(), reason }
        })?);
        let known = guardian.list(GUARDIAN_TIMEOUT)?;
        self.guardian = Some(guardian);
        self.guardian_silence.reset();
        if *has_taken_over {
            self.compare_children(known);
        } else {
            self.take_over(known)?;
            *has_taken_over = true;
            if self.is_ending {
                self.stop_all();
            }
        }
        self.work();
        Ok(())
    }

    /// Begins the shutdown.
    pub fn stop_all(&mut self) {
        self.is_ending = true;
        let stopped = self.supervision.command(now_ns(), &OperatorCommand::Stop(Vec::new()), &mut self.actions);
        stopped.expect("it names nothing that could be missing");
    }

    fn report_unkillable(&mut self) {
        if let Some(instance) = self.supervision.find_unkillable(now_ns()) {
            let within = KILL_TIMEOUT.as_secs();
            let usual = "it waits for a device or is kept by another namespace";
            let reason = self.probe_failure.reason.as_deref().unwrap_or(usual);
            self.connections.answer_waiters(Some(format!(
                "{instance} has not ended within {within} s after it was killed: {reason}; the rest ends after it, as `gapless ps` shows"
            )));
        }
    }

    /// Finishes the shutdown even if some of the state cannot be written.
    fn end(&mut self) {
        // First, because nothing starts again without a configuration.
        let removed = self.directory.remove_config_in_force();
        if let Err(error) = self.clear_state() {
            tracing::warn!("{error}");
            // The directories of the instances record the given incarnations as well.
            self.directory.remove_state().unwrap_or_else(|error| tracing::warn!("{error}"));
        } else {
            self.remove_instances();
        }
        self.groups.iter().for_each(ControlGroups::remove);
        if let Err(error) = self.directory.remove_singleton_locks() {
            tracing::warn!("{error}");
        }
        if let Some(guardian) = &mut self.guardian {
            let until_ns = now_ns() + GUARDIAN_SHUTDOWN_TIMEOUT.as_nanos() as u64;
            let mut asked = guardian.ask(&crate::guardian::protocol::GuardianRequest::End);
            // The guardian closes the connection as its last act.
            while asked.is_ok() && now_ns() < until_ns {
                asked = guardian.wait(GUARDIAN_SHUTDOWN_TIMEOUT).map(drop);
            }
        }
        for socket in [StateSocket::Control, StateSocket::Notify] {
            // No listener is left. A later supervisor replaces the file anyway.
            let _ = rustix::fs::unlinkat(self.directory.fd(), socket.file(), AtFlags::empty());
        }
        let unwritten = removed.err().map(|error| {
            tracing::error!("{error}");
            format!(
                "all instances have ended, and it cannot be written down ({error}): the file stays in force, and the next supervisor \
                 starts them again"
            )
        });
        self.connections.answer_waiters(unwritten);
    }

    fn remove_instances(&self) {
        let instances = self.directory.instances().unwrap_or_else(|error| {
            tracing::warn!("{error}");
            Vec::new()
        });
        for instance in instances {
            // Harmless if it stays: the next start has another incarnation.
            if let Err(error) = self.directory.instance(&instance).remove() {
                tracing::warn!("{error}");
            }
        }
    }

    fn sleep(&mut self) {
        let now = now_ns();
        let checks = self.watched.values().filter_map(WatchedInstance::next_check_ns);
        let until = checks.chain(self.supervision.next_deadline_ns()).chain([self.changed_files.next_ns]);
        let until = until.chain(self.connections.next_ns()).min();
        let until = until.unwrap_or(u64::MAX);
        // Without a guardian only poll, since reconnecting comes first.
        let most = if self.guardian.as_ref().is_none_or(GuardianClient::has_early) { 0 } else { SLEEP_MAX_NS };
        let sleep = until.saturating_sub(now).min(most);
        let sleep = Timespec { tv_sec: (sleep / 1_000_000_000) as i64, tv_nsec: (sleep % 1_000_000_000) as i64 };
        let mut fds = Vec::new();
        self.notify_sockets.poll_fds(&mut fds);
        let notifications_end = fds.len();
        fds.extend(self.routes.as_ref().map(|routes| PollFd::new(routes, PollFlags::IN)));
        let routes_end = fds.len();
        self.connections.poll_fds(now, &mut fds);
        let connections_end = fds.len();
        let awaited = self.watched.iter().filter_map(|(instance, watched)| Some((instance, watched.awaited()?)));
        let (instances, pidfds): (Vec<_>, Vec<_>) = awaited.unzip();
        fds.extend(pidfds.into_iter().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
        let pidfds_end = fds.len();
        if let Some(guardian) = &self.guardian {
            let writable = if guardian.has_queued() { PollFlags::OUT } else { PollFlags::empty() };
            fds.push(PollFd::new(guardian, PollFlags::IN | writable));
        }
        // On EINTR no events are reported; the next poll finds them.
        let _ = poll(&mut fds, Some(&sleep));
        let has_any = |fds: &[PollFd<'_>]| fds.iter().any(|fd| !fd.revents().is_empty());
        let ended = instances.into_iter().zip(&fds[connections_end..pidfds_end]);
        let ended = ended.filter(|(_, fd)| !fd.revents().is_empty()).map(|(instance, _)| instance.clone()).collect();
        self.wake_sources = WakeSources {
            has_notifications: has_any(&fds[..notifications_end]),
            has_routes: has_any(&fds[notifications_end..routes_end]),
            has_commands: has_any(&fds[routes_end..connections_end]),
            ended,
        };
    }
}
