//! [`run`]: the role of the guardian. One thread, which forks, reaps and talks, so that none of these meets another.

use super::children::Children;
use super::conversation::{Conversation, Next};
use super::detached::check_limits;
use super::keeper::Keeper;
use super::protocol::{Ask, ChildReport, Told};
use super::signals::Signals;
use crate::copy_name::CopyName;
use crate::end_status::EndStatus;
use crate::error::{SupervisorError, check_proc};
use crate::listening::OpenSocket;
use crate::role::{Outcome, Role, RoleCommand};
use crate::silence::{SILENCE_MAX, START_SILENCE_MAX, Silence};
use crate::state_directory::{HeldLock, RoleLock, Socket, StateDirectory};
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

/// The longest sleep: should a signal be lost, or no descriptor be left, it looks by itself.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// What is asked in one turn at most, before children are looked after again.
const ASKS_A_TURN: usize = 64;

/// Is the guardian of a state directory, until it is asked to end.
///
/// A process that runs this does nothing else: its children are all reaped here, and its signals are taken over.
///
/// # Errors
/// It cannot take its lock or listen. Later nothing ends it: what fails is logged, and tried again.
pub fn run(directory: &Path, roles: &RoleCommand) -> Result<Outcome, SupervisorError> {
    check_proc()?;
    check_limits()?;
    let directory = StateDirectory::open(directory)?;
    // What `ps` shows; it was started as `exe`.
    let _as_it_was = rustix::thread::set_name(c"gapless-guard");
    // What the copies make is not the affair of whoever started this.
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    // Fails where it leads a session or group already.
    let _leads_already = setsid();
    set_child_subreaper(Some(getpid())).map_err(SupervisorError::system("becoming the parent of orphans"))?;
    let signals = Signals::install()?;
    let Some(role_lock) = directory.take_role_lock(RoleLock::Guardian)? else { return Ok(Outcome::AnotherIsThere) };
    crash_point("guardian_locked");
    // Kept here, so that what copies say waits for the next supervisor when one is dead.
    let notify = open(&directory, Socket::Notify)?;
    let listener = open(&directory, Socket::Guardian)?;
    crash_point("guardian_listening");
    let keeper = Keeper::new(directory.clone(), roles.clone(), Instant::now());
    let guardian = Guardian {
        directory,
        roles: roles.clone(),
        signals,
        listener,
        notify,
        keeper,
        children: Children::default(),
        conversation: None,
        silence: Silence::begin(Instant::now()),
        has_taken_over: false,
        look_at: Instant::now() + LOOK_INTERVAL,
        is_deaf: false,
        end_wanted: false,
        ending: false,
    };
    guardian.serve(role_lock);
    Ok(Outcome::Over)
}

/// Opens a socket of the guardian. Who sends to that for notices is looked at.
fn open(directory: &StateDirectory, socket: Socket) -> Result<OpenSocket, SupervisorError> {
    if socket == Socket::Notify {
        directory.make_notify_folder()?;
        return OpenSocket::open(directory, socket, SocketType::DGRAM, Mode::from_raw_mode(0o666), None);
    }
    OpenSocket::open(directory, socket, SocketType::SEQPACKET, Mode::RUSR | Mode::WUSR, None)
}

struct Guardian {
    directory: StateDirectory,
    roles: RoleCommand,
    signals: Signals,
    listener: OpenSocket,
    /// On which copies say how far they have come. Read by supervisors only.
    notify: OpenSocket,
    keeper: Keeper,
    children: Children,
    conversation: Option<Conversation>,
    /// Of the supervisor that the keeper watches.
    silence: Silence,
    /// It asks for signs of life.
    has_taken_over: bool,
    /// When it is looked next whether the sockets are still there.
    look_at: Instant,
    /// A connection that waits cannot be accepted now: the listener is not polled.
    is_deaf: bool,
    /// SIGTERM has come.
    end_wanted: bool,
    /// The supervisor has asked it to end.
    ending: bool,
}

impl Guardian {
    fn serve(mut self, role_lock: HeldLock) {
        loop {
            if self.signals.take() {
                tracing::info!("it is asked to end");
                self.end_wanted = true;
                self.tell(&Told::EndWanted);
            }
            self.reap();
            if (self.ending || !self.directory.is_in_role(RoleLock::Guardian, &role_lock))
                && self.children.living() == 0
            {
                crash_point("guardian_ending");
                // Who waits for the lock may be sure that it has told everything.
                drop(self.conversation);
                drop(self.listener);
                return drop(role_lock);
            }
            if !self.ending && self.keeper.turn(Instant::now()) {
                self.hear_anew();
            }
            let has_more = self.converse();
            self.look(&role_lock, Instant::now());
            let is_over = self.ending && self.children.living() == 0;
            self.sleep(if has_more || is_over { Duration::ZERO } else { LOOK_INTERVAL });
        }
    }

    /// Takes note of all that have ended.
    fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((ended, status))) => {
                    let Some(status) = EndStatus::of_wait(status) else { continue };
                    let process_id = ended.as_raw_nonzero().get().unsigned_abs();
                    crash_point("guardian_reaped");
                    let told = match self.children.note_end(process_id, status) {
                        Some(ChildReport { copy, incarnation, .. }) => {
                            Told::Ended { copy, incarnation, process_id, status }
                        }
                        // Or a supervisor, whose death the keeper sees.
                        None => Told::OrphanEnded { process_id },
                    };
                    self.tell(&told);
                    crash_point("guardian_ended_told");
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Tells the supervisor, if there is one.
    fn tell(&mut self, told: &Told) {
        if let Some(conversation) = &mut self.conversation {
            conversation.tell(told);
        }
    }

    /// Does what the supervisor asks for, up to a number; hears another when that one is gone. Whether there may be more.
    fn converse(&mut self) -> bool {
        for _ in 0..ASKS_A_TURN {
            let Some(conversation) = &mut self.conversation else {
                if !self.accept() {
                    return false;
                }
                continue;
            };
            match conversation.next(Instant::now(), self.end_wanted) {
                Ok(Next::Ask(ask)) => self.answer(ask),
                Ok(Next::Nothing) => return false,
                Ok(Next::End) => {
                    self.conversation = None;
                    // It did not see it through: the next one is to.
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

    /// Hears the next one that waits, if there is one.
    fn accept(&mut self) -> bool {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        self.is_deaf = false;
        match rustix::net::accept_with(&self.listener, flags) {
            Ok(socket) => {
                crash_point("guardian_connected");
                self.hear_anew();
                match Conversation::begin(socket, &self.notify, Instant::now()) {
                    Ok(conversation) => self.conversation = Some(conversation),
                    Err(reason) => tracing::warn!("a connection is refused: {reason}"),
                }
                true
            }
            Err(Errno::INTR | Errno::CONNABORTED) => true,
            Err(Errno::AGAIN) => false,
            // No descriptor, no memory: it is tried again.
            Err(errno) => {
                tracing::warn!("a connection cannot be taken: {errno}");
                self.is_deaf = true;
                false
            }
        }
    }

    /// What was silent before is another process, or comes again.
    const fn hear_anew(&mut self) {
        self.silence.heard();
        self.has_taken_over = false;
    }

    fn answer(&mut self, ask: Ask) {
        self.silence.heard();
        match ask {
            Ask::Hello { .. } => unreachable!("a conversation hears that itself"),
            Ask::Start { copy, incarnation } => self.start(copy, incarnation),
            Ask::List => {
                // Who ended before the list is in it.
                self.reap();
                let children = self.children.report();
                self.conversation.iter_mut().for_each(|conversation| conversation.tell_children(&children));
            }
            Ask::Forget { copy, incarnation } => {
                self.children.forget(copy, incarnation);
                crash_point("guardian_forgotten");
            }
            Ask::Hears => {
                // It asks so when it has taken over.
                self.keeper.note_in_charge();
                self.has_taken_over = true;
                self.tell(&Told::Hears);
            }
            Ask::End => self.ending = true,
        }
    }

    /// Opens sockets anew whose files were removed, and kills a supervisor that is silent.
    fn look(&mut self, role_lock: &HeldLock, now: Instant) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_INTERVAL;
        if self.directory.is_in_role(RoleLock::Guardian, role_lock) {
            self.reopen_removed();
        }
        let limit = if self.has_taken_over { SILENCE_MAX } else { START_SILENCE_MAX };
        if self.silence.is_as_long_as(limit, now) && !self.ending && self.keeper.kill() {
            tracing::error!("the supervisor is silent and is killed");
            self.hear_anew();
        }
    }

    fn reopen_removed(&mut self) {
        if !self.listener.is_reachable(&self.directory) {
            match open(&self.directory, Socket::Guardian) {
                Ok(listener) => self.listener = listener,
                Err(error) => tracing::error!("{error}"),
            }
        }
        if !self.notify.is_reachable(&self.directory) {
            match open(&self.directory, Socket::Notify) {
                Ok(notify) => {
                    self.notify = notify;
                    // The supervisor comes again, and is given this one.
                    self.conversation = None;
                }
                Err(error) => tracing::error!("{error}"),
            }
        }
    }

    fn start(&mut self, copy: CopyName, incarnation: u64) {
        let role = Role::Launch { directory: self.directory.path().to_owned(), copy: copy.clone(), incarnation };
        let mut command = self.roles.command(&role);
        command.stdin(Stdio::null());
        let started = match self.ending {
            true => Err(SupervisorError::Refused("this guardian is to end".to_owned())),
            false => {
                // One that is seen to be dead may not be waited for yet.
                self.reap();
                self.children.start(&copy, incarnation, &mut command)
            }
        };
        let error = match started {
            Ok(ChildReport { copy, incarnation, process_id, ended }) => {
                self.tell(&Told::Started { copy: copy.clone(), incarnation, process_id });
                crash_point("guardian_started_told");
                if let Some(status) = ended {
                    self.tell(&Told::Ended { copy, incarnation, process_id, status });
                }
                return;
            }
            Err(error) => error,
        };
        let (reason, is_shortage) = (error.to_string(), error.is_shortage());
        self.tell(&Told::NotStarted { copy, incarnation, reason, is_shortage });
    }

    /// Sleeps until there is something to do, and no longer than `most`.
    fn sleep(&self, most: Duration) {
        let now = Instant::now();
        let keeper = self.keeper.deadline().filter(|_| !self.ending);
        let conversation = self.conversation.as_ref().and_then(Conversation::deadline);
        let until = keeper.into_iter().chain(conversation).min();
        let sleep = until.map_or(most, |until| most.min(until.saturating_duration_since(now)));
        let sleep = Timespec { tv_sec: sleep.as_secs() as i64, tv_nsec: i64::from(sleep.subsec_nanos()) };

        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        match &self.conversation {
            None if self.is_deaf => {}
            None => fds.push(PollFd::new(&self.listener, PollFlags::IN)),
            Some(conversation) => {
                let writable = if conversation.has_queued() { PollFlags::OUT } else { PollFlags::empty() };
                fds.push(PollFd::from_borrowed_fd(conversation.as_fd(), PollFlags::IN | writable));
            }
        }
        if let Some(pidfd) = self.keeper.watched().filter(|_| !self.ending) {
            fds.push(PollFd::new(pidfd, PollFlags::IN));
        }
        // Whatever it says, everything is looked at.
        let _ = poll(&mut fds, Some(&sleep));
    }
}
