//! [`Copies`]: the calling half of the I/O thread: the instances found in the domain, and their packets.
//!
//! ```text
//!  socket seen ──connected──▶ pending ──hello in time──▶ found ──listed──▶ listed
//!       ▲                        └──────────┬──────────────┴────────────────┘
//!       └── after a pause, while it lives ──┴──▶ closed ──its death──▶ dead, its files swept
//! ```
//! A socket is retried while it stands in the directory: its process may have been stopped, or may have dropped this
//! caller because this one was stopped. Each connection has a number of its own.

use super::connection::{Connection, Flushed, Received};
use super::copy_files;
use super::directory::{CopyId, DomainDirectory};
use super::packets::{Packet, Refused, RefusedReason, Role, RouteState, other_protocol};
use super::peer::PeerIdentity;
use super::reactor::{CONNECTIONS_MAX, HANDSHAKE_NS, PACKETS_AT_A_TIME, RETRY_NS, Reactor, Source};
use super::sides::{CallingSide, CopyNumber, PeerProcess, Unheard};
use super::watch::DirectoryWatch;
use crate::error::RegistryError;
use gapless_agent::fault::crash_point;
use gapless_log::claim::COPY_NUMBER_MAX;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub const ROUTES_MAX: usize = 1024;
/// Pause before the first retry of a socket; each further pause is twice as long.
const PAUSE_NS: u64 = 50_000_000;
const PAUSE_NS_MAX: u64 = 5_000_000_000;

pub struct Copies {
    side: Arc<dyn CallingSide>,
    directory: Arc<DomainDirectory>,
    hello: Arc<[u8]>,
    watch: Option<DirectoryWatch>,
    candidates: HashMap<CopyId, Candidate>,
    copies: HashMap<u32, ConnectedCopy>,
    last_number: u32,
    /// Instances of the first listing that have not listed their routes; `None` after [`CallingSide::settled`].
    unsettled: Option<HashSet<CopyId>>,
    settle_by_ns: u64,
    flush_again_ns: Option<u64>,
    /// The socket tried last, if its backlog is full.
    full_at: Option<CopyId>,
    /// Cached time of the next tick; `None` after a change. The time is computed over all instances, and read before
    /// each sleep.
    next_ns: Option<Option<u64>>,
}

struct Candidate {
    number: Option<u32>,
    /// Time of the next attempt, while not connected.
    again_ns: u64,
    pause_ns: u64,
}

struct ConnectedCopy {
    id: CopyId,
    connection: Connection,
    identity: PeerIdentity,
    stage: Stage,
    /// Deadline of its hello and of the end of its list.
    deadline_ns: u64,
    routes: HashSet<String>,
    /// Attachments without an answer; false: the caller does not wait for it any more.
    asked: HashMap<u64, bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Pending,
    Found,
    Listed,
}

/// Whether this process, or the machine, lacks a resource.
fn is_own_shortage(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::INTR)
}

impl Copies {
    pub fn new(side: Arc<dyn CallingSide>, directory: Arc<DomainDirectory>, hello: Arc<[u8]>) -> Self {
        Self {
            side,
            directory,
            hello,
            watch: None,
            candidates: HashMap::new(),
            copies: HashMap::new(),
            last_number: 0,
            unsettled: None,
            settle_by_ns: 0,
            flush_again_ns: None,
            full_at: None,
            next_ns: None,
        }
    }

    /// Starts to look for instances, with a watch if there is one yet. `there` are those in the directory, without this
    /// process.
    pub fn discover(&mut self, reactor: &mut Reactor, watch: Option<DirectoryWatch>, there: Vec<CopyId>, now_ns: u64) {
        self.next_ns = None;
        crash_point("discover_watching");
        self.watch = watch;
        self.unsettled = Some(there.iter().copied().collect());
        self.settle_by_ns = now_ns + HANDSHAKE_NS;
        for id in there {
            self.try_socket(reactor, id, now_ns);
        }
        self.look_settled(now_ns);
    }

    /// Uses this watch from now on: the first one, or that of a directory that replaced the previous one. `there` stand
    /// in it. `own` is this process's socket.
    pub fn watch(
        &mut self,
        reactor: &mut Reactor,
        watch: DirectoryWatch,
        there: Vec<CopyId>,
        own: Option<CopyId>,
        now_ns: u64,
    ) {
        self.watch = Some(watch);
        self.try_new(reactor, there, own, now_ns);
    }

    /// Handles an event of the watch. `own` is this process's socket.
    pub fn appeared(&mut self, reactor: &mut Reactor, own: Option<CopyId>, now_ns: u64) {
        let Some(watch) = &self.watch else { return };
        match watch.appeared() {
            Ok(appeared) => self.try_new(reactor, appeared, own, now_ns),
            Err(error) => reactor.warnings.warn_now(|| format!("new copies may be missed: {error}")),
        }
    }

    fn try_new(&mut self, reactor: &mut Reactor, there: Vec<CopyId>, own: Option<CopyId>, now_ns: u64) {
        for id in there.into_iter().filter(|id| Some(*id) != own) {
            if self.candidates.get(&id).is_none_or(|candidate| candidate.number.is_none()) {
                self.try_socket(reactor, id, now_ns);
            }
        }
    }

    fn try_socket(&mut self, reactor: &mut Reactor, id: CopyId, now_ns: u64) {
        self.next_ns = None;
        if self.connect(reactor, id, now_ns) {
            return;
        }
        let is_full = self.full_at.take() == Some(id);
        let candidate =
            self.candidates.entry(id).or_insert(Candidate { number: None, again_ns: 0, pause_ns: PAUSE_NS });
        (candidate.number, candidate.again_ns) = (None, now_ns + candidate.pause_ns);
        if !is_full {
            candidate.pause_ns = (candidate.pause_ns * 2).min(PAUSE_NS_MAX);
        }
    }

    /// Connects; false if it is to be retried.
    fn connect(&mut self, reactor: &mut Reactor, id: CopyId, now_ns: u64) -> bool {
        if !reactor.has_room() || self.last_number == COPY_NUMBER_MAX {
            reactor.warnings.warn_now(|| match self.last_number {
                COPY_NUMBER_MAX => format!("{id} is not called: all {COPY_NUMBER_MAX} numbers of copies are used up"),
                _ => format!("{id} is not called yet: {CONNECTIONS_MAX} processes are connected"),
            });
            return false;
        }
        let connection = match Connection::connect(&self.directory, id) {
            Ok(connection) => connection,
            Err(Errno::NOENT) if let Some(process_id) = copy_files::without_socket(&self.directory, id) => {
                self.side.unheard(id, Some(Unheard::asked(process_id, None)));
                self.full_at = Some(id);
                return false;
            }
            Err(errno @ (Errno::NOENT | Errno::CONNREFUSED)) => {
                // A socket listens before it appears, so one that refuses belongs to a dead process.
                if errno == Errno::CONNREFUSED {
                    copy_files::sweep_one(&self.directory, id);
                }
                self.forget(id);
                return true;
            }
            Err(Errno::AGAIN) => {
                let unheard = match copy_files::holder(&self.directory, id) {
                    Some(holder) if holder.is_of_this_namespace() => Unheard::asked(holder.process_id, None),
                    holder => Unheard::unnumbered(holder.is_some()),
                };
                self.side.unheard(id, Some(unheard));
                self.full_at = Some(id);
                return false;
            }
            Err(errno) => {
                reactor.warnings.warn_now(|| format!("{id} cannot be called: {errno}"));
                if !is_own_shortage(errno) {
                    // This is not the socket of a live process, but may become one.
                    self.settle(id);
                }
                return false;
            }
        };
        crash_point("discover_connected");
        let number = self.last_number + 1;
        let identity = match reactor.open(&connection, Source::Copy(number)) {
            Ok(identity) => identity,
            Err(error) => {
                reactor.warnings.warn_now(|| format!("{id} cannot be called: {error}"));
                let unheard = match error {
                    // A child of the dead process keeps its socket and its lock; no one will answer.
                    RegistryError::Dead { .. } => None,
                    RegistryError::OtherNamespace => Some(Unheard::unnumbered(true)),
                    _ => return false,
                };
                self.side.unheard(id, unheard);
                self.settle(id);
                return false;
            }
        };
        self.last_number = number;
        let deadline_ns = now_ns + HANDSHAKE_NS;
        let (routes, asked) = (HashSet::new(), HashMap::new());
        let copy = ConnectedCopy { id, connection, identity, stage: Stage::Pending, deadline_ns, routes, asked };
        self.copies.insert(number, copy);
        let candidate =
            self.candidates.entry(id).or_insert(Candidate { number: None, again_ns: 0, pause_ns: PAUSE_NS });
        candidate.number = Some(number);
        if !self.directory.may_serve(identity.user_id) {
            self.close(reactor, number, Some(&format!("it belongs to the user {}", identity.user_id)));
            return true;
        }
        self.side.unheard(id, Some(Unheard::asked(identity.process_id, None)));
        self.send(reactor, number, Arc::clone(&self.hello), Vec::new());
        true
    }

    pub fn ready(&mut self, reactor: &mut Reactor, number: u32, flags: EventFlags) {
        if flags.contains(EventFlags::OUT) {
            self.flush(reactor, number);
        }
        for _ in 0..PACKETS_AT_A_TIME {
            let Some(copy) = self.copies.get_mut(&number) else { return };
            match copy.connection.receive(&mut reactor.buffer) {
                Ok(Received::Nothing) => return,
                Ok(Received::Packet(packet, descriptors)) => {
                    if let Err(reason) = self.handle(number, packet, descriptors) {
                        self.close(reactor, number, Some(&reason));
                        return;
                    }
                }
                Ok(Received::WithoutDescriptors(packet)) => {
                    if let Err(reason) = self.put_off_without_descriptors(reactor, number, &packet) {
                        self.close(reactor, number, Some(&reason));
                        return;
                    }
                }
                Ok(Received::OtherVersion(version)) => {
                    self.give_up(reactor, number, Some(version), &other_protocol(version));
                    return;
                }
                Ok(Received::End) => {
                    self.ended(reactor, number);
                    return;
                }
                Err(reason) => {
                    self.close(reactor, number, Some(&reason));
                    return;
                }
            }
        }
    }

    fn handle(&mut self, number: u32, packet: Packet, descriptors: Vec<OwnedFd>) -> Result<(), String> {
        let Some(copy) = self.copies.get_mut(&number) else { return Ok(()) };
        let (name, number) = (packet.name(), CopyNumber(number));
        match (packet, copy.stage) {
            (Packet::Hello(hello), Stage::Pending) if hello.role == Role::Copy => {
                copy.stage = Stage::Found;
                self.side.copy_found(number, &Arc::new(PeerProcess::new(hello, copy.identity)));
            }
            (Packet::Route(route), Stage::Found | Stage::Listed) => {
                let is_known = copy.routes.contains(&route.name);
                if route.state == RouteState::Gone {
                    copy.routes.remove(&route.name);
                } else if !is_known {
                    if copy.routes.len() >= ROUTES_MAX {
                        return Err(format!("it has more than {ROUTES_MAX} routes"));
                    }
                    copy.routes.insert(route.name.clone());
                }
                if is_known || route.state != RouteState::Gone {
                    self.side.route_changed(number, &route);
                }
            }
            (Packet::Listed, Stage::Found) => {
                copy.stage = Stage::Listed;
                let id = copy.id;
                self.side.unheard(id, None);
                self.side.copy_listed(number);
                self.settle(id);
            }
            (Packet::Attached { attachment }, Stage::Found | Stage::Listed) => {
                let Ok([bell, eventfd]) = <[OwnedFd; 2]>::try_from(descriptors) else {
                    return Err("an answer without its two descriptors".to_owned());
                };
                match copy.asked.remove(&attachment) {
                    Some(true) => self.side.attached(number, attachment, bell, eventfd),
                    Some(false) => {}
                    None => return Err(format!("it answers the attachment {attachment}, which nobody has asked for")),
                }
            }
            (Packet::Refused { attachment, refused }, Stage::Found | Stage::Listed) => {
                match copy.asked.remove(&attachment) {
                    Some(true) => self.side.refused(number, attachment, refused),
                    Some(false) => {}
                    None => return Err(format!("it refuses the attachment {attachment}, which nobody has asked for")),
                }
            }
            (_, stage) => {
                let when = if stage == Stage::Pending { "instead of its hello" } else { "after its hello" };
                return Err(format!("a copy sent a packet {name} {when}"));
            }
        }
        Ok(())
    }

    /// An instance has accepted a call table, but the descriptors of its answer were lost: detaches the table, which
    /// may be attached again.
    fn put_off_without_descriptors(
        &mut self,
        reactor: &mut Reactor,
        number: u32,
        packet: &Packet,
    ) -> Result<(), String> {
        let Packet::Attached { attachment } = packet else {
            return Err(format!("a packet {} has descriptors for which there is no room", packet.name()));
        };
        let Some(copy) = self.copies.get_mut(&number) else { return Ok(()) };
        let Some(is_awaited) = copy.asked.remove(attachment) else {
            return Err(format!("it answers the attachment {attachment}, which nobody has asked for"));
        };
        self.send(reactor, number, Packet::Detach { attachment: *attachment }.encode()?.into(), Vec::new());
        if is_awaited {
            let text = "the process that calls has no descriptors left for the answer";
            self.side.refused(CopyNumber(number), *attachment, Refused::new(RefusedReason::Memory, text));
        }
        Ok(())
    }

    /// Sends a call table to an instance. If the instance is gone, the side was notified of that already.
    pub fn attach(
        &mut self,
        reactor: &mut Reactor,
        number: u32,
        attachment: u64,
        bytes: Arc<[u8]>,
        descriptors: Vec<Arc<OwnedFd>>,
    ) {
        let Some(copy) = self.copies.get_mut(&number) else { return };
        copy.asked.insert(attachment, true);
        crash_point("attach_before_passing");
        self.send(reactor, number, bytes, descriptors);
        crash_point("attach_passed");
    }

    pub fn detach(&mut self, reactor: &mut Reactor, number: u32, attachment: u64, bytes: Arc<[u8]>) {
        let Some(copy) = self.copies.get_mut(&number) else { return };
        if let Some(is_awaited) = copy.asked.get_mut(&attachment) {
            *is_awaited = false;
        }
        self.send(reactor, number, bytes, Vec::new());
    }

    pub fn change(&mut self, reactor: &mut Reactor, number: u32, bytes: Arc<[u8]>) {
        self.send(reactor, number, bytes, Vec::new());
    }

    fn send(&mut self, reactor: &mut Reactor, number: u32, bytes: Arc<[u8]>, descriptors: Vec<Arc<OwnedFd>>) {
        let Some(copy) = self.copies.get_mut(&number) else { return };
        let flushed = copy.connection.send(bytes, descriptors);
        self.sent(reactor, number, flushed);
    }

    fn flush(&mut self, reactor: &mut Reactor, number: u32) {
        let Some(copy) = self.copies.get_mut(&number) else { return };
        let flushed = copy.connection.flush();
        self.sent(reactor, number, flushed);
    }

    fn sent(&mut self, reactor: &mut Reactor, number: u32, flushed: Result<Flushed, String>) {
        let Some(copy) = self.copies.get(&number) else { return };
        match flushed {
            Ok(flushed) => {
                if reactor.watch_room(&copy.connection, Source::Copy(number), flushed) {
                    self.flush_again_ns = Some(gapless_agent::monotonic::monotonic_ns() + RETRY_NS);
                    self.next_ns = None;
                }
            }
            Err(reason) => self.close(reactor, number, Some(&reason)),
        }
    }

    /// Closes the connection of a live process whose routes are not known.
    fn give_up(&mut self, reactor: &mut Reactor, number: u32, version: Option<u16>, reason: &str) {
        let copy = self.copies.get(&number).filter(|copy| copy.stage != Stage::Listed);
        let unheard = copy.map(|copy| Unheard::asked(copy.identity.process_id, version));
        self.end(reactor, number, Some(reason), unheard);
    }

    /// Handles the end of a connection. A live process that has not sent its hello may serve unknown routes: it had no
    /// room for this caller, or cannot see it from its process namespace.
    fn ended(&mut self, reactor: &mut Reactor, number: u32) {
        let pending = self.copies.get(&number).filter(|copy| copy.stage == Stage::Pending);
        let process_id = pending.map(|copy| copy.identity.process_id);
        let alive = process_id.filter(|process_id| !reactor.is_dead(*process_id));
        self.end(reactor, number, None, alive.map(|process_id| Unheard::asked(process_id, None)));
    }

    /// Closes a connection, and retries it after a pause. Logs the reason if there is one.
    fn close(&mut self, reactor: &mut Reactor, number: u32, reason: Option<&str>) {
        self.end(reactor, number, reason, None);
    }

    fn end(&mut self, reactor: &mut Reactor, number: u32, reason: Option<&str>, unheard: Option<Unheard>) {
        self.next_ns = None;
        let Some(copy) = self.copies.remove(&number) else { return };
        let (id, process_id) = (copy.id, copy.identity.process_id);
        if let Some(reason) = reason {
            reactor.warnings.warn_now(|| format!("the connection to the copy {process_id} ({id}) is closed: {reason}"));
        }
        let was_found = copy.stage != Stage::Pending;
        reactor.close(copy.connection, process_id, was_found.then_some(number));
        if let Some(candidate) = self.candidates.get_mut(&id) {
            let now_ns = gapless_agent::monotonic::monotonic_ns();
            // A connection that breaks again and again uses up numbers: its pause grows.
            if now_ns > copy.deadline_ns + PAUSE_NS_MAX {
                candidate.pause_ns = PAUSE_NS;
            }
            (candidate.number, candidate.again_ns) = (None, now_ns + candidate.pause_ns);
            candidate.pause_ns = (candidate.pause_ns * 2).min(PAUSE_NS_MAX);
        }
        if was_found {
            self.side.copy_closed(CopyNumber(number));
        }
        self.side.unheard(id, unheard);
        self.settle(id);
    }

    /// Closes the connections of a dead process, and removes its files. While a child that was just forked still holds
    /// its lock, the socket is retried instead, and refuses.
    pub fn process_died(&mut self, reactor: &mut Reactor, process_id: u32) {
        let of_process = self.copies.iter().filter(|(_, copy)| copy.identity.process_id == process_id);
        for number in of_process.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.close(reactor, number, None);
        }
        // The files of this connection, and those of earlier ones.
        let unconnected = self.candidates.iter().filter(|(_, candidate)| candidate.number.is_none());
        for id in unconnected.map(|(id, _)| *id).collect::<Vec<_>>() {
            if copy_files::sweep_one(&self.directory, id) {
                self.forget(id);
            }
        }
    }

    /// Reports the death of an instance whose connection is closed.
    pub fn mourn(&self, number: u32) {
        self.side.copy_dead(CopyNumber(number));
    }

    fn forget(&mut self, id: CopyId) {
        self.side.unheard(id, None);
        self.candidates.remove(&id);
        self.settle(id);
    }

    /// Stops waiting for this instance before [`CallingSide::settled`].
    fn settle(&mut self, id: CopyId) {
        self.next_ns = None;
        if let Some(unsettled) = &mut self.unsettled {
            unsettled.remove(&id);
        }
    }

    fn look_settled(&mut self, now_ns: u64) {
        let is_settled = |left: &mut HashSet<CopyId>| left.is_empty() || self.settle_by_ns <= now_ns;
        if self.unsettled.take_if(is_settled).is_some() {
            self.side.settled();
        }
    }

    /// Time of the next [`tick`](Self::tick).
    pub fn next_ns(&mut self) -> Option<u64> {
        if self.next_ns.is_none() {
            let candidates = self.candidates.values().filter(|each| each.number.is_none()).map(|each| each.again_ns);
            let pending = self.copies.values().filter(|copy| copy.stage != Stage::Listed).map(|copy| copy.deadline_ns);
            let unsettled = self.unsettled.as_ref().map(|left| if left.is_empty() { 0 } else { self.settle_by_ns });
            self.next_ns = Some(candidates.chain(pending).chain(unsettled).chain(self.flush_again_ns).min());
        }
        self.next_ns.flatten()
    }

    /// Closes instances past their deadline, and retries postponed work.
    pub fn tick(&mut self, reactor: &mut Reactor, now_ns: u64) {
        self.next_ns = None;
        let is_late = |copy: &ConnectedCopy| copy.stage != Stage::Listed && copy.deadline_ns <= now_ns;
        let late = self.copies.iter().filter(|(_, copy)| is_late(copy)).map(|(number, _)| *number);
        for number in late.collect::<Vec<_>>() {
            self.give_up(reactor, number, None, "it has not said who it is and what it serves in 2 s");
        }
        let is_due = |candidate: &Candidate| candidate.number.is_none() && candidate.again_ns <= now_ns;
        let due = self.candidates.iter().filter(|(_, candidate)| is_due(candidate)).map(|(id, _)| *id);
        for id in due.collect::<Vec<_>>() {
            self.try_socket(reactor, id, now_ns);
        }
        if self.flush_again_ns.take_if(|again_ns| *again_ns <= now_ns).is_some() {
            for number in self.copies.keys().copied().collect::<Vec<_>>() {
                self.flush(reactor, number);
            }
        }
        self.look_settled(now_ns);
    }

    pub fn close_all(&mut self, reactor: &mut Reactor) {
        if let Some(watch) = self.watch.take() {
            reactor.unwatch(&watch);
        }
        self.unsettled = None;
        for number in self.copies.keys().copied().collect::<Vec<_>>() {
            self.close(reactor, number, None);
        }
    }
}
