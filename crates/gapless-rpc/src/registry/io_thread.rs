//! [`IoThread`]: one thread for each process and domain, which calls the two sides. Other threads send it commands by
//! an [`IoHandle`], which never waits.

use super::callbacks::{CallingSide, InstanceNumber, ServingSide};
use super::callers::ConnectedCallers;
use super::directory::{DomainDirectory, InstanceId};
use super::instance_files::{self, InstanceFiles};
use super::instances::{InstanceConnections, ROUTES_MAX};
use super::liveness::Liveness;
use super::packets::{Attach, Hello, Packet, PeerRole, RouteDescription, RouteState};
use super::reactor::{EventSource, Reactor, WatchedDescriptors};
use super::watch::{self, DirectoryWatch};
use crate::registry::error::RegistryError;
use gapless_agent::monotonic::{monotonic_ns, saturating_ns};
use gapless_agent::process_mark::ProcessMark;
use gapless_agent::wake_fd;
use gapless_message::route_name;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Thread of one process and domain. On drop the process leaves the domain.
pub struct IoThread {
    handle: IoHandle,
    thread: Option<JoinHandle<()>>,
}

/// Sends commands to an I/O thread, from any thread including that one.
#[derive(Clone)]
pub struct IoHandle(Arc<IoShared>);

struct IoShared {
    started_ns: u64,
    started_by: ProcessMark,
    directory: Arc<DomainDirectory>,
    waker: OwnedFd,
    watched: WatchedDescriptors,
    commands: Mutex<Option<Vec<IoCommand>>>,
    /// Set before the socket appears: the thread does not connect to it.
    own: Mutex<Option<InstanceId>>,
    /// Lock order: before `commands` and `own`.
    open: Mutex<OpenState>,
}

const CHECK_INTERVAL_NS: u64 = 1_000_000_000;

#[derive(Default)]
struct OpenState {
    is_closed: bool,
    is_discovering: bool,
    watch_after: Duration,
    files: Option<InstanceFiles>,
    routes: BTreeMap<String, RouteDescription>,
}

enum IoCommand {
    Listen(OwnedFd),
    Announce { route: String, bytes: Arc<[u8]>, is_gone: bool },
    Discover { watch: Option<DirectoryWatch>, listed_instances: Vec<InstanceId>, check_ns: u64 },
    Attach { instance: u32, attachment: u64, bytes: Arc<[u8]>, descriptors: Vec<Arc<OwnedFd>> },
    Detach { instance: u32, attachment: u64, bytes: Arc<[u8]> },
    Change { instance: u32, bytes: Arc<[u8]> },
    Register { token: u64, eventfd: Arc<OwnedFd> },
    Unregister { token: u64 },
    Stop,
}

impl IoThread {
    /// Serves nothing and looks for nothing yet. `process_name` is sent to others, at most 128 bytes.
    ///
    /// # Errors
    /// A name that is too long; a machine without descriptors or threads.
    pub fn start(
        directory: DomainDirectory,
        process_name: &str,
        serving: Arc<dyn ServingSide>,
        calling: Arc<dyn CallingSide>,
    ) -> Result<Self, RegistryError> {
        let encode = |packet: Packet| {
            packet.encode().map(Arc::from).map_err(|reason| RegistryError::Option { option: "process name", reason })
        };
        let started_ns = monotonic_ns();
        let hello = |role| {
            let (process_id, process_name) = (std::process::id(), process_name.to_owned());
            Packet::Hello(Hello { role, process_id, started_ns, process_name })
        };
        let (as_instance, as_caller) = (encode(hello(PeerRole::Instance))?, encode(hello(PeerRole::Caller))?);
        let listed = encode(Packet::Listed)?;
        let directory = Arc::new(directory);
        instance_files::sweep(&directory)?;
        let waker = wake_fd::create();
        let reactor = Reactor::new()?;
        let shared = Arc::new(IoShared {
            started_ns,
            started_by: ProcessMark::current(),
            directory: Arc::clone(&directory),
            waker: waker.map_err(RegistryError::system("making an eventfd"))?,
            watched: reactor.clone(),
            commands: Mutex::new(Some(Vec::new())),
            own: Mutex::default(),
            open: Mutex::default(),
        });
        reactor.watch(&shared.waker, EventSource::Waker, EventFlags::IN)?;
        let mut turns = EventLoop {
            callers: ConnectedCallers::new(serving, Arc::clone(&directory), as_instance, listed),
            instances: InstanceConnections::new(Arc::clone(&calling), directory, as_caller),
            shared: Arc::clone(&shared),
            calling,
            reactor,
            completions: HashMap::new(),
            numbers: HashMap::new(),
            last_number: 0,
            check_ns: None,
            is_watch_due: false,
        };
        let thread = std::thread::Builder::new().name("gapless-rpc-io".to_owned()).spawn(move || {
            gapless_agent::foreign::own_this_thread();
            // However the thread ends, others must see that this process serves no more.
            let _closing = CloseGuard(Arc::clone(&turns.shared), Arc::clone(&turns.calling));
            turns.run();
        });
        let thread = thread.map_err(RegistryError::system("starting the I/O thread"))?;
        Ok(Self { handle: IoHandle(shared), thread: Some(thread) })
    }

    #[must_use]
    pub fn handle(&self) -> IoHandle {
        self.handle.clone()
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        if self.handle.0.is_of_parent() {
            // A forked child has no such thread, and the files belong to its parent.
            return std::mem::forget((self.thread.take(), self.handle.clone()));
        }
        self.handle.0.close();
        self.handle.0.command(IoCommand::Stop);
        let Some(thread) = self.thread.take() else { return };
        // A side may drop the last reference to this on the thread itself.
        if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
            tracing::error!("the I/O thread has panicked");
        }
    }
}

struct CloseGuard(Arc<IoShared>, Arc<dyn CallingSide>);

impl Drop for CloseGuard {
    fn drop(&mut self) {
        self.0.close();
        // Drops the commands with their descriptors.
        *lock(&self.0.commands) = None;
        gapless_agent::foreign::run("the end of calls", || self.1.ended());
    }
}

impl IoHandle {
    /// Ns of the monotonic clock, as sent to others.
    pub fn started_ns(&self) -> u64 {
        self.0.started_ns
    }

    /// Announces a route, or a change of it, to all callers. The first one creates this process's socket: after the
    /// return, every caller that connects receives the route.
    ///
    /// # Errors
    /// An invalid name; a description that is too long; 1,024 routes already; a domain where this process may not
    /// serve, or that is closed; no room for a watched descriptor.
    pub fn announce(&self, route: RouteDescription) -> Result<(), RegistryError> {
        route_name::check(&route.name)?;
        let packet = Packet::Route(route.clone());
        let bytes = packet.encode().map_err(|reason| RegistryError::Option { option: "route", reason })?;
        let mut open = self.0.lock_open()?;
        if !open.routes.contains_key(&route.name) && open.routes.len() >= ROUTES_MAX {
            let reason =
                format!("a process serves at most {ROUTES_MAX} routes in a domain, {} would be one more", route.name);
            return Err(RegistryError::Option { option: "route", reason });
        }
        if open.files.is_none() {
            let (files, listener) = InstanceFiles::create(&self.0.directory, |id| *lock(&self.0.own) = Some(id))?;
            self.0.watched.watch(&listener, EventSource::Listener, EventFlags::IN)?;
            open.files = Some(files);
            self.0.command(IoCommand::Listen(listener));
        }
        self.tell(&mut open, route, bytes);
        Ok(())
    }

    /// Announces a new state; [`RouteState::Gone`] withdraws the route. False if it is not announced.
    ///
    /// # Errors
    /// A domain that is closed.
    pub fn change_state(&self, route: &str, state: RouteState) -> Result<bool, RegistryError> {
        let mut open = self.0.lock_open()?;
        let Some(route) = open.routes.get(route) else { return Ok(false) };
        let route = RouteDescription { state, ..route.clone() };
        let bytes = Packet::Route(route.clone()).encode();
        let bytes = bytes.map_err(|reason| RegistryError::Option { option: "route", reason })?;
        self.tell(&mut open, route, bytes);
        Ok(true)
    }

    /// Takes the locked state, so that callers see the changes in order.
    fn tell(&self, open: &mut OpenState, route: RouteDescription, bytes: Vec<u8>) {
        let (name, is_gone) = (route.name.clone(), route.state == RouteState::Gone);
        if is_gone {
            open.routes.remove(&name);
        } else {
            open.routes.insert(name.clone(), route);
        }
        self.0.command(IoCommand::Announce { route: name, bytes: bytes.into(), is_gone });
    }

    /// Delays the watch by `by` after the first [`discover`](Self::discover). A process that ends earlier needs no
    /// watch, whose closing takes the kernel 10 to 20 ms.
    pub fn delay_watch(&self, by: Duration) {
        lock(&self.0.open).watch_after = by;
    }

    /// Starts to look for instances; idempotent.
    ///
    /// # Errors
    /// A directory that cannot be watched; a domain that is closed.
    pub fn discover(&self) -> Result<(), RegistryError> {
        let mut open = self.0.lock_open()?;
        if open.is_discovering {
            return Ok(());
        }
        let (watch, mut listed_instances) = if open.watch_after.is_zero() {
            let (watch, listed_instances) = DirectoryWatch::begin(&self.0.directory)?;
            self.0.watched.watch(&watch, EventSource::Watch, EventFlags::IN)?;
            (Some(watch), listed_instances)
        } else {
            (None, watch::listed_instances(&self.0.directory)?)
        };
        let own = *lock(&self.0.own);
        listed_instances.retain(|id| Some(*id) != own);
        open.is_discovering = true;
        let delay_ns =
            if watch.is_some() { CHECK_INTERVAL_NS } else { saturating_ns(open.watch_after).min(CHECK_INTERVAL_NS) };
        self.0.command(IoCommand::Discover { watch, listed_instances, check_ns: monotonic_ns() + delay_ns });
        Ok(())
    }

    pub fn is_closed(&self) -> bool {
        self.0.is_of_parent() || lock(&self.0.open).is_closed
    }

    /// Blocks the calling thread, up to `timeout`.
    ///
    /// # Errors
    /// A directory that cannot be listed; a process or a machine without descriptors.
    pub fn answers(&self, timeout: Duration) -> Result<Liveness, RegistryError> {
        let own = *lock(&self.0.own);
        Liveness::ask(&self.0.directory, own, timeout)
    }

    /// Sends a call table to an instance, which answers with [`CallingSide::attached`] or [`CallingSide::refused`], or
    /// is closed. `attach.instance_number` is set here. The descriptors are the read-only request region, the claim
    /// region, and the completion eventfd.
    ///
    /// # Errors
    /// A field too long for a packet.
    pub fn attach(
        &self,
        instance: InstanceNumber,
        attach: Attach,
        descriptors: [Arc<OwnedFd>; 3],
    ) -> Result<(), RegistryError> {
        let (instance, attachment) = (instance.0, attach.attachment);
        let bytes = Packet::Attach(Attach { instance_number: instance, ..attach }).encode();
        let bytes = bytes.map_err(|reason| RegistryError::Option { option: "route", reason })?.into();
        self.0.command(IoCommand::Attach { instance, attachment, bytes, descriptors: descriptors.into() });
        Ok(())
    }

    pub fn detach(&self, instance: InstanceNumber, attachment: u64) {
        // A detach packet always fits.
        let Ok(bytes) = (Packet::Detach { attachment }).encode() else { return };
        self.0.command(IoCommand::Detach { instance: instance.0, attachment, bytes: bytes.into() });
    }

    /// A change is reported by [`CallingSide::route_changed`]. An instance of another user ignores the request, unless
    /// this process is root's.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn change(&self, instance: InstanceNumber, route: &str, to: RouteState) -> Result<(), RegistryError> {
        route_name::check(route)?;
        let bytes = Packet::Change { route: route.to_owned(), to }.encode();
        let bytes = bytes.map_err(|reason| RegistryError::Option { option: "route", reason })?.into();
        self.0.command(IoCommand::Change { instance: instance.0, bytes });
        Ok(())
    }

    /// Calls [`CallingSide::completions`] with `token` after each write to the eventfd, once or more often. The counter
    /// is never read, so no one can make the thread wait for it.
    pub fn register_completion(&self, token: u64, eventfd: Arc<OwnedFd>) {
        self.0.command(IoCommand::Register { token, eventfd });
    }

    /// Reverses [`register_completion`](Self::register_completion).
    pub fn unregister_completion(&self, token: u64) {
        self.0.command(IoCommand::Unregister { token });
    }

    /// Makes the thread read the next deadline again.
    pub fn wake(&self) {
        wake_fd::signal(&self.0.waker);
    }
}

impl IoShared {
    fn command(self: &Arc<Self>, command: IoCommand) {
        if self.is_of_parent() {
            return;
        }
        let mut commands = lock(&self.commands);
        let Some(queue) = &mut *commands else { return };
        let is_first = queue.is_empty();
        queue.push(command);
        drop(commands);
        if is_first {
            IoHandle(Arc::clone(self)).wake();
        }
    }

    fn is_of_parent(&self) -> bool {
        !self.started_by.is_here()
    }

    fn lock_open(&self) -> Result<MutexGuard<'_, OpenState>, RegistryError> {
        if self.is_of_parent() {
            let reason = "it was opened by the process that forked this one; a child opens it anew".to_owned();
            return Err(RegistryError::Domain { path: self.directory.path().to_owned(), reason });
        }
        let open = lock(&self.open);
        if open.is_closed {
            let reason = "this process has closed it".to_owned();
            return Err(RegistryError::Domain { path: self.directory.path().to_owned(), reason });
        }
        Ok(open)
    }

    /// The files may be removed by a cleaner of old files. Returns the listener.
    fn restore_files(&self) -> Result<Option<OwnedFd>, RegistryError> {
        let mut open = lock(&self.open);
        let Some(files) = open.files.as_mut().filter(|files| !files.exist()) else { return Ok(None) };
        let listener = files.restore()?;
        self.watched.watch(&listener, EventSource::Listener, EventFlags::IN)?;
        Ok(Some(listener))
    }

    fn close(&self) {
        let mut open = lock(&self.open);
        open.is_closed = true;
        open.routes.clear();
        open.files = None;
    }
}

/// Ignores a panic of another holder: each change is one assignment, so the state is consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct EventLoop {
    shared: Arc<IoShared>,
    calling: Arc<dyn CallingSide>,
    callers: ConnectedCallers,
    instances: InstanceConnections,
    reactor: Reactor,
    /// An event may come from a registration that has ended.
    completions: HashMap<u64, CompletionWatch>,
    numbers: HashMap<u64, u64>,
    last_number: u64,
    check_ns: Option<u64>,
    /// There is no watch yet, or it is on an earlier directory.
    is_watch_due: bool,
}

struct CompletionWatch {
    token: u64,
    eventfd: Arc<OwnedFd>,
}

impl EventLoop {
    fn run(&mut self) {
        let mut ready = Vec::new();
        while self.take_commands() {
            let now_ns = monotonic_ns();
            if self.callers.next_ns().is_some_and(|next_ns| next_ns <= now_ns) {
                self.callers.tick(&mut self.reactor, now_ns);
            }
            if self.instances.next_ns().is_some_and(|next_ns| next_ns <= now_ns) {
                self.instances.tick(&mut self.reactor, now_ns);
            }
            if self.calling.next_deadline_ns().is_some_and(|next_ns| next_ns <= now_ns) {
                self.calling.tick(now_ns);
            }
            if self.check_ns.is_some_and(|check_ns| check_ns <= now_ns) {
                self.check_registration(now_ns);
            }
            let next_ns =
                [self.callers.next_ns(), self.instances.next_ns(), self.calling.next_deadline_ns(), self.check_ns];
            let next_ns = next_ns.into_iter().flatten().min();
            let timeout_ns = if self.calling.may_sleep() {
                next_ns.map(|next_ns| next_ns.saturating_sub(monotonic_ns()))
            } else {
                Some(0)
            };
            let slept = self.reactor.wait(timeout_ns, &mut ready);
            self.calling.woken();
            if let Err(errno) = slept {
                tracing::error!("this process leaves the domain, because its I/O thread cannot wait: {errno}");
                break;
            }
            // Commands first: a route announced before a caller connected is listed to it.
            if !self.take_commands() {
                break;
            }
            for (source, flags) in ready.drain(..) {
                self.handle(source, flags);
            }
        }
        self.shared.close();
        self.callers.close_all(&mut self.reactor);
        self.instances.close_all(&mut self.reactor);
    }

    fn check_registration(&mut self, now_ns: u64) {
        self.check_ns = Some(now_ns + CHECK_INTERVAL_NS);
        if let Err(error) = self.check_directory(now_ns) {
            return self
                .reactor
                .warnings
                .warn_now(|| format!("this process and others do not find each other: {error}"));
        }
        match self.shared.restore_files() {
            Ok(None) => {}
            Ok(Some(listener)) => {
                let directory = self.shared.directory.path().display();
                tracing::warn!(
                    "somebody has removed the files of this process in the domain {directory}; they are made anew"
                );
                self.callers.listen(listener);
            }
            Err(error) => self.reactor.warnings.warn_now(|| format!("new callers do not find this process: {error}")),
        }
    }

    fn check_directory(&mut self, now_ns: u64) -> Result<(), RegistryError> {
        let directory = &self.shared.directory;
        if directory.renew()? {
            let path = directory.path().display();
            tracing::warn!(
                "the directory of the domain {path} was removed or replaced; this process goes on in the one there now"
            );
            self.is_watch_due = lock(&self.shared.open).is_discovering;
        }
        if self.is_watch_due {
            let (watch, listed_instances) = DirectoryWatch::begin(directory)?;
            self.shared.watched.watch(&watch, EventSource::Watch, EventFlags::IN)?;
            let own = *lock(&self.shared.own);
            self.instances.watch(&mut self.reactor, watch, listed_instances, own, now_ns);
            self.is_watch_due = false;
        }
        Ok(())
    }

    /// False if the thread must end.
    fn take_commands(&mut self) -> bool {
        self.shared.started_by.end_child("what is told of the ends of calls");
        let commands = lock(&self.shared.commands).as_mut().map(std::mem::take);
        for command in commands.into_iter().flatten() {
            let reactor = &mut self.reactor;
            match command {
                IoCommand::Listen(listener) => {
                    self.callers.listen(listener);
                    self.check_ns = Some(monotonic_ns() + CHECK_INTERVAL_NS);
                }
                IoCommand::Announce { route, bytes, is_gone } => self.callers.announce(reactor, route, bytes, is_gone),
                IoCommand::Discover { watch, listed_instances, check_ns } => {
                    self.is_watch_due |= watch.is_none();
                    self.instances.discover(reactor, watch, listed_instances, monotonic_ns());
                    self.check_ns = Some(self.check_ns.map_or(check_ns, |before_ns| before_ns.min(check_ns)));
                }
                IoCommand::Attach { instance, attachment, bytes, descriptors } => {
                    self.instances.attach(reactor, instance, attachment, bytes, descriptors);
                }
                IoCommand::Detach { instance, attachment, bytes } => {
                    self.instances.detach(reactor, instance, attachment, bytes)
                }
                IoCommand::Change { instance, bytes } => self.instances.change(reactor, instance, bytes),
                IoCommand::Register { token, eventfd } => self.register(token, eventfd),
                IoCommand::Unregister { token } => self.unregister(token),
                IoCommand::Stop => return false,
            }
        }
        true
    }

    fn handle(&mut self, source: EventSource, flags: EventFlags) {
        match source {
            EventSource::Waker => loop {
                match rustix::io::read(&self.shared.waker, &mut [0; 8]) {
                    Err(Errno::INTR) => {}
                    _ => return,
                }
            },
            EventSource::Listener => self.callers.accept(&mut self.reactor, monotonic_ns()),
            EventSource::Watch => {
                let own = *lock(&self.shared.own);
                self.instances.appeared(&mut self.reactor, own, monotonic_ns());
            }
            EventSource::Caller(number) => self.callers.ready(&mut self.reactor, number, flags),
            EventSource::Instance(number) => self.instances.ready(&mut self.reactor, number, flags),
            EventSource::Process(process_id) => self.process_died(process_id),
            EventSource::Completion(number) => {
                if let Some(completion) = self.completions.get(&number) {
                    self.calling.completions(completion.token);
                }
            }
        }
    }

    fn process_died(&mut self, process_id: u32) {
        if !self.reactor.is_dead(process_id) {
            return;
        }
        self.callers.process_died(&mut self.reactor, process_id);
        self.instances.process_died(&mut self.reactor, process_id);
        for unreported_instance in self.reactor.take_dead(process_id) {
            self.instances.report_death(unreported_instance);
        }
    }

    fn register(&mut self, token: u64, eventfd: Arc<OwnedFd>) {
        self.unregister(token);
        self.last_number += 1;
        let number = self.last_number;
        // Edge-triggered: an event for each write, whatever the counter says.
        match self.reactor.watch(&eventfd, EventSource::Completion(number), EventFlags::IN | EventFlags::ET) {
            Ok(()) => {
                self.completions.insert(number, CompletionWatch { token, eventfd });
                self.numbers.insert(token, number);
            }
            Err(error) => tracing::error!("completions of calls are not noticed: {error}"),
        }
    }

    fn unregister(&mut self, token: u64) {
        let Some(number) = self.numbers.remove(&token) else { return };
        if let Some(completion) = self.completions.remove(&number) {
            self.reactor.unwatch(&completion.eventfd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::directory::DomainLocation;

    #[test]
    fn failed_watch_is_error_and_retryable() {
        let parent = tempfile::tempdir().unwrap();
        let directory = DomainDirectory::open(&DomainLocation::Path(parent.path().join("domain")), None).unwrap();
        let handle = IoHandle(Arc::new(IoShared {
            started_ns: 0,
            started_by: ProcessMark::current(),
            directory: Arc::new(directory),
            waker: wake_fd::create().unwrap(),
            watched: WatchedDescriptors::broken(),
            commands: Mutex::new(Some(Vec::new())),
            own: Mutex::default(),
            open: Mutex::default(),
        }));
        for _ in 0..2 {
            let errors = [handle.discover(), handle.announce(RouteDescription::new("route"))];
            for error in errors.map(Result::unwrap_err) {
                assert!(error.to_string().contains("watching a descriptor"), "{error}");
            }
        }
        assert!(lock(&handle.0.commands).as_ref().unwrap().is_empty(), "the thread was told of it");
        assert_eq!(std::fs::read_dir(parent.path().join("domain")).unwrap().count(), 0, "files are left");
    }
}
