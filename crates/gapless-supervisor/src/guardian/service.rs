//! One thread forks, reaps and communicates, so these never race.

use super::children::Children;
use super::conversation::{Conversation, NextRequest};
use super::detached::check_limits;
use super::keeper::SupervisorKeeper;
use super::protocol::{ChildReport, GuardianMessage, GuardianRequest};
use super::signals::GuardianSignals;
use crate::end_status::EndStatus;
use crate::error::{SupervisorError, check_proc};
use crate::instance_name::InstanceName;
use crate::listening::OpenSocket;
use crate::role::{ProcessRole, RoleCommand, RoleOutcome};
use crate::silence::{SILENCE_MAX, START_SILENCE_MAX, SilenceTimer};
use crate::state_directory::{HeldLock, RoleLock, StateDirectory, StateSocket};
use gapless_agent::fault::crash_point;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType};
use rustix::process::{WaitOptions, getpid, set_child_subreaper, setsid, wait};
use rustix::time::Timespec;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// In case a signal is lost or no descriptor is left.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
const REQUESTS_PER_TURN: usize = 64;

/// Runs the guardian of a state directory until it is shut down. The process must do nothing else: all its children are
/// reaped and its signal handlers replaced.
///
/// # Errors
/// It cannot take its lock or listen. Later errors are logged and retried.
pub fn run(directory: &Path, roles: &RoleCommand) -> Result<RoleOutcome, SupervisorError> {
    check_proc()?;
    check_limits()?;
    let directory = StateDirectory::open(directory)?;
    let _as_it_was = rustix::thread::set_name(c"gapless-guard");
    // Instances do not inherit the umask of the user's shell.
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    let _leads_already = setsid();
    set_child_subreaper(Some(getpid())).map_err(SupervisorError::system("becoming the parent of orphans"))?;
    let signals = GuardianSignals::install()?;
    let Some(role_lock) = directory.take_role_lock(RoleLock::Guardian)? else { return Ok(RoleOutcome::AlreadyRunning) };
    crash_point("guardian_locked");
    // Kept open, so that notifications wait while no supervisor runs.
    let notify = open(&directory, StateSocket::Notify)?;
    let listener = open(&directory, StateSocket::Guardian)?;
    crash_point("guardian_listening");
    let keeper = SupervisorKeeper::new(directory.clone(), roles.clone(), Instant::now());
    let guardian = Guardian {
        directory,
        roles: roles.clone(),
        signals,
        listener,
        notify,
        keeper,
        children: Children::default(),
        conversation: None,
        silence: SilenceTimer::begin(Instant::now()),
        has_taken_over: false,
        check_at: Instant::now() + CHECK_INTERVAL,
        cannot_accept: false,
        end_wanted: false,
        ending: false,
    };
    guardian.serve(role_lock);
    Ok(RoleOutcome::ShutDown)
}

fn open(directory: &StateDirectory, socket: StateSocket) -> Result<OpenSocket, SupervisorError> {
    if socket == StateSocket::Notify {
        directory.make_notify_folder()?;
        return OpenSocket::open(directory, socket, SocketType::DGRAM, Mode::from_raw_mode(0o666), None);
    }
    OpenSocket::open(directory, socket, SocketType::SEQPACKET, Mode::RUSR | Mode::WUSR, None)
}

struct Guardian {
    directory: StateDirectory,
    roles: RoleCommand,
    signals: GuardianSignals,
    listener: OpenSocket,
    notify: OpenSocket,
    keeper: SupervisorKeeper,
    children: Children,
    conversation: Option<Conversation>,
    silence: SilenceTimer,
    has_taken_over: bool,
    check_at: Instant,
    cannot_accept: bool,
    end_wanted: bool,
    ending: bool,
}

impl Guardian {
    fn serve(mut self, role_lock: HeldLock) {
        loop {
            if self.signals.take() {
                tracing::info!("it is asked to end");
                self.end_wanted = true;
                self.send(&GuardianMessage::EndWanted);
            }
            self.reap();
            if (self.ending || !self.directory.is_in_role(RoleLock::Guardian, &role_lock))
                && self.children.living() == 0
            {
                crash_point("guardian_ending");
                // A waiter for the lock can rely on all messages being sent.
                drop(self.conversation);
                drop(self.listener);
                return drop(role_lock);
            }
            if !self.ending && self.keeper.poll(Instant::now()) {
                self.reset_liveness();
            }
            let has_more = self.handle_requests();
            self.check(&role_lock, Instant::now());
            let is_over = self.ending && self.children.living() == 0;
            self.sleep(if has_more || is_over { Duration::ZERO } else { CHECK_INTERVAL });
        }
    }

    fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((ended, status))) => {
                    let Some(status) = EndStatus::of_wait(status) else { continue };
                    let process_id = ended.as_raw_nonzero().get().unsigned_abs();
                    crash_point("guardian_reaped");
                    let message = match self.children.note_end(process_id, status) {
                        Some(ChildReport { instance, incarnation, .. }) => {
                            GuardianMessage::Ended { instance, incarnation, process_id, status }
                        }
                        None => GuardianMessage::OrphanEnded { process_id },
                    };
                    self.send(&message);
                    crash_point("guardian_ended_told");
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn send(&mut self, message: &GuardianMessage) {
        if let Some(conversation) = &mut self.conversation {
            conversation.send(message);
        }
    }

    fn handle_requests(&mut self) -> bool {
        for _ in 0..REQUESTS_PER_TURN {
            let Some(conversation) = &mut self.conversation else {
                if !self.accept() {
                    return false;
                }
                continue;
            };
            match conversation.next(Instant::now(), self.end_wanted) {
                Ok(NextRequest::Request(ask)) => self.answer(ask),
                Ok(NextRequest::Nothing) => return false,
                Ok(NextRequest::Closed) => {
                    self.conversation = None;
                    // The supervisor did not complete the shutdown; its successor decides.
                    self.ending &= self.children.living() == 0;
                }
                Err(reason) => {
                    tracing::warn!("a connection is closed: {reason}");
                    self.conversation.take().into_iter().for_each(|conversation| conversation.refuse(&reason));
                }
            }
        }
        true
    }

    fn accept(&mut self) -> bool {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        self.cannot_accept = false;
        match rustix::net::accept_with(&self.listener, flags) {
            Ok(socket) => {
                crash_point("guardian_connected");
                self.reset_liveness();
                match Conversation::begin(socket, &self.notify, Instant::now()) {
                    Ok(conversation) => self.conversation = Some(conversation),
                    Err(reason) => tracing::warn!("a connection is refused: {reason}"),
                }
                true
            }
            Err(Errno::INTR | Errno::CONNABORTED) => true,
            Err(Errno::AGAIN) => false,
            Err(errno) => {
                tracing::warn!("a connection cannot be taken: {errno}");
                self.cannot_accept = true;
                false
            }
        }
    }

    const fn reset_liveness(&mut self) {
        self.silence.reset();
        self.has_taken_over = false;
    }

    fn answer(&mut self, ask: GuardianRequest) {
        self.silence.reset();
        match ask {
            GuardianRequest::Hello { .. } => unreachable!("a conversation hears that itself"),
            GuardianRequest::Start { instance, incarnation } => self.start(instance, incarnation),
            GuardianRequest::List => {
                // The list must contain all children that have ended by now.
                self.reap();
                let children = self.children.report();
                self.conversation.iter_mut().for_each(|conversation| conversation.send_children(&children));
            }
            GuardianRequest::Forget { instance, incarnation } => {
                self.children.forget(instance, incarnation);
                crash_point("guardian_forgotten");
            }
            GuardianRequest::Ping => {
                self.keeper.note_in_charge();
                self.has_taken_over = true;
                self.send(&GuardianMessage::Pong);
            }
            GuardianRequest::End => self.ending = true,
        }
    }

    fn check(&mut self, role_lock: &HeldLock, now: Instant) {
        if now < self.check_at {
            return;
        }
        self.check_at = now + CHECK_INTERVAL;
        if self.directory.is_in_role(RoleLock::Guardian, role_lock) {
            self.reopen_removed();
        }
        let limit = if self.has_taken_over { SILENCE_MAX } else { START_SILENCE_MAX };
        if self.silence.has_lasted(limit, now) && !self.ending && self.keeper.kill() {
            tracing::error!("the supervisor is silent and is killed");
            self.reset_liveness();
        }
    }

    fn reopen_removed(&mut self) {
        if !self.listener.is_reachable(&self.directory) {
            match open(&self.directory, StateSocket::Guardian) {
                Ok(listener) => self.listener = listener,
                Err(error) => tracing::error!("{error}"),
            }
        }
        if !self.notify.is_reachable(&self.directory) {
            match open(&self.directory, StateSocket::Notify) {
                Ok(notify) => {
                    self.notify = notify;
                    // Disconnects the supervisor, so that it gets the new socket.
                    self.conversation = None;
                }
                Err(error) => tracing::error!("{error}"),
            }
        }
    }

    fn start(&mut self, instance: InstanceName, incarnation: u64) {
        let role = ProcessRole::Launch {
            directory: self.directory.path().to_owned(),
            instance: instance.clone(),
            incarnation,
        };
        let mut command = self.roles.command(&role);
        command.stdin(Stdio::null());
        let started = match self.ending {
            true => Err(SupervisorError::Refused("this guardian is to end".to_owned())),
            false => {
                // A child that a pidfd reports as dead may not be reaped yet.
                self.reap();
                self.children.start(&instance, incarnation, &mut command)
            }
        };
        let error = match started {
            Ok(ChildReport { instance, incarnation, process_id, ended }) => {
                self.send(&GuardianMessage::Started { instance: instance.clone(), incarnation, process_id });
                crash_point("guardian_started_told");
                if let Some(status) = ended {
                    self.send(&GuardianMessage::Ended { instance, incarnation, process_id, status });
                }
                return;
            }
            Err(error) => error,
        };
        let (reason, is_shortage) = (error.to_string(), error.is_shortage());
        self.send(&GuardianMessage::NotStarted { instance, incarnation, reason, is_shortage });
    }

    fn sleep(&self, most: Duration) {
        let now = Instant::now();
        let keeper = self.keeper.deadline().filter(|_| !self.ending);
        let conversation = self.conversation.as_ref().and_then(Conversation::deadline);
        let until = keeper.into_iter().chain(conversation).min();
        let sleep = until.map_or(most, |until| most.min(until.saturating_duration_since(now)));
        let sleep = Timespec { tv_sec: sleep.as_secs() as i64, tv_nsec: i64::from(sleep.subsec_nanos()) };

        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        match &self.conversation {
            None if self.cannot_accept => {}
            None => fds.push(PollFd::new(&self.listener, PollFlags::IN)),
            Some(conversation) => {
                let writable = if conversation.has_queued() { PollFlags::OUT } else { PollFlags::empty() };
                fds.push(PollFd::from_borrowed_fd(conversation.as_fd(), PollFlags::IN | writable));
            }
        }
        if let Some(pidfd) = self.keeper.watched().filter(|_| !self.ending) {
            fds.push(PollFd::new(pidfd, PollFlags::IN));
        }
        // The result does not matter: each turn checks everything.
        let _ = poll(&mut fds, Some(&sleep));
    }
}
