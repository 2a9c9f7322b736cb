//! [`Instances`]: the calling half of the I/O thread: the instances found in the domain, and their packets.
//!
//! ```text
//!  socket seen ──connected──▶ pending ──hello in time──▶ found ──listed──▶ listed
//!       ▲                        └──────────┬──────────────┴────────────────┘
//!       └── after a pause, while it lives ──┴──▶ closed ──its death──▶ dead, its files swept
//! ```
//!
//! A socket is retried while it stands in the directory: its process may have been stopped, or may have dropped this
//! caller because this one was stopped.

use super::callbacks::{CallingSide, InstanceNumber, PeerProcess, UnknownServer};
use super::connection::{FlushResult, PeerConnection, ReceiveResult};
use super::directory::{DomainDirectory, InstanceId};
use super::instance_files;
use super::packets::{AttachRefusal, AttachRefusalReason, Packet, PeerRole, RouteState, other_protocol};
use super::peer::PeerIdentity;
use super::reactor::{CONNECTIONS_MAX, EventSource, HANDSHAKE_NS, PACKETS_AT_A_TIME, RETRY_NS, Reactor};
use super::watch::DirectoryWatch;
use crate::registry::error::RegistryError;
use gapless_agent::fault::crash_point;
use gapless_log::claim::INSTANCE_NUMBER_MAX;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub const ROUTES_MAX: usize = 1024;
const PAUSE_NS: u64 = 50_000_000;
const PAUSE_NS_MAX: u64 = 5_000_000_000;

pub struct InstanceConnections {
    side: Arc<dyn CallingSide>,
    directory: Arc<DomainDirectory>,
    hello: Arc<[u8]>,
    watch: Option<DirectoryWatch>,
    candidates: HashMap<InstanceId, InstanceCandidate>,
    instances: HashMap<u32, ConnectedInstance>,
    last_number: u32,
    /// Instances of the first listing that have not listed their routes; `None` after [`CallingSide::settled`].
    unsettled: Option<HashSet<InstanceId>>,
    settle_by_ns: u64,
    flush_again_ns: Option<u64>,
    full_at: Option<InstanceId>,
    /// Cached, because it is read before each sleep; `None` after a change.
    next_ns: Option<Option<u64>>,
}

struct InstanceCandidate {
    number: Option<u32>,
    again_ns: u64,
    pause_ns: u64,
}

struct ConnectedInstance {
    id: InstanceId,
    connection: PeerConnection,
    identity: PeerIdentity,
    stage: HandshakeStage,
    /// Deadline of its hello and of the end of its list.
    deadline_ns: u64,
    routes: HashSet<String>,
    /// Attachments without an answer; false: the caller does not wait for it any more.
    asked: HashMap<u64, bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HandshakeStage {
    Pending,
    Found,
    Listed,
}

fn is_own_shortage(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::INTR)
}

impl InstanceConnections {
    pub fn new(side: Arc<dyn CallingSide>, directory: Arc<DomainDirectory>, hello: Arc<[u8]>) -> Self {
        Self {
            side,
            directory,
            hello,
            watch: None,
            candidates: HashMap::new(),
            instances: HashMap::new(),
            last_number: 0,
            unsettled: None,
            settle_by_ns: 0,
            flush_again_ns: None,
            full_at: None,
            next_ns: None,
        }
    }

    /// Looks for instances, with a watch if there is one yet. `listed_instances` are those in the directory, without
    /// this process.
    pub fn discover(
        &mut self,
        reactor: &mut Reactor,
        watch: Option<DirectoryWatch>,
        listed_instances: Vec<InstanceId>,
        now_ns: u64,
    ) {
        self.next_ns = None;
        crash_point("discover_watching");
        self.watch = watch;
        self.unsettled = Some(listed_instances.iter().copied().collect());
        self.settle_by_ns = now_ns + HANDSHAKE_NS;
        for id in listed_instances {
            self.try_socket(reactor, id, now_ns);
        }
        self.check_settled(now_ns);
    }

    /// The first watch, or that of a directory that replaced the previous one. `listed_instances` stand in it; `own` is
    /// this process's socket.
    pub fn watch(
        &mut self,
        reactor: &mut Reactor,
        watch: DirectoryWatch,
        listed_instances: Vec<InstanceId>,
        own: Option<InstanceId>,
        now_ns: u64,
    ) {
        self.watch = Some(watch);
        self.try_new(reactor, listed_instances, own, now_ns);
    }

    /// Handles an event of the watch. `own` is this process's socket.
    pub fn appeared(&mut self, reactor: &mut Reactor, own: Option<InstanceId>, now_ns: u64) {
        let Some(watch) = &self.watch else { return };
        match watch.appeared() {
            Ok(appeared) => self.try_new(reactor, appeared, own, now_ns),
            Err(error) => reactor.warnings.warn_now(|| format!("new instances may be missed: {error}")),
        }
    }

    fn try_new(
        &mut self,
        reactor: &mut Reactor,
        listed_instances: Vec<InstanceId>,
        own: Option<InstanceId>,
        now_ns: u64,
    ) {
        for id in listed_instances.into_iter().filter(|id| Some(*id) != own) {
            if self.candidates.get(&id).is_none_or(|candidate| candidate.number.is_none()) {
                self.try_socket(reactor, id, now_ns);
            }
        }
    }

    fn try_socket(&mut self, reactor: &mut Reactor, id: InstanceId, now_ns: u64) {
        self.next_ns = None;
        if self.connect(reactor, id, now_ns) {
            return;
        }
        let is_full = self.full_at.take() == Some(id);
        let candidate =
            self.candidates.entry(id).or_insert(InstanceCandidate { number: None, again_ns: 0, pause_ns: PAUSE_NS });
        (candidate.number, candidate.again_ns) = (None, now_ns + candidate.pause_ns);
        if !is_full {
            candidate.pause_ns = (candidate.pause_ns * 2).min(PAUSE_NS_MAX);
        }
    }

    /// False if it is to be retried.
    fn connect(&mut self, reactor: &mut Reactor, id: InstanceId, now_ns: u64) -> bool {
        if !reactor.has_room() || self.last_number == INSTANCE_NUMBER_MAX {
            reactor.warnings.warn_now(|| match self.last_number {
                INSTANCE_NUMBER_MAX => {
                    format!("{id} is not called: all {INSTANCE_NUMBER_MAX} numbers of instances are used up")
                }
                _ => format!("{id} is not called yet: {CONNECTIONS_MAX} processes are connected"),
            });
            return false;
        }
        let connection = match PeerConnection::connect(&self.directory, id) {
            Ok(connection) => connection,
            Err(Errno::NOENT) if let Some(process_id) = instance_files::without_socket(&self.directory, id) => {
                self.side.unknown_server(id, Some(UnknownServer::asked(process_id, None)));
                self.full_at = Some(id);
                return false;
            }
            Err(errno @ (Errno::NOENT | Errno::CONNREFUSED)) => {
                // A socket listens before it appears, so the process is dead.
                if errno == Errno::CONNREFUSED {
                    instance_files::sweep_one(&self.directory, id);
                }
                self.forget(id);
                return true;
            }
            Err(Errno::AGAIN) => {
                let unknown_server = match instance_files::holder(&self.directory, id) {
                    Some(holder) if holder.is_of_this_namespace() => UnknownServer::asked(holder.process_id, None),
                    holder => UnknownServer::unnumbered(holder.is_some()),
                };
                self.side.unknown_server(id, Some(unknown_server));
                self.full_at = Some(id);
                return false;
            }
            Err(errno) => {
                reactor.warnings.warn_now(|| format!("{id} cannot be called: {errno}"));
                if !is_own_shortage(errno) {
                    self.report_settled(id);
                }
                return false;
            }
        };
        crash_point("discover_connected");
        let number = self.last_number + 1;
        let identity = match reactor.open(&connection, EventSource::Instance(number)) {
            Ok(identity) => identity,
            Err(error) => {
                reactor.warnings.warn_now(|| format!("{id} cannot be called: {error}"));
                let unknown_server = match error {
                    // A child of the dead process keeps its socket and lock.
                    RegistryError::Dead { .. } => None,
                    RegistryError::OtherNamespace => Some(UnknownServer::unnumbered(true)),
                    _ => return false,
                };
                self.side.unknown_server(id, unknown_server);
                self.report_settled(id);
                return false;
            }
        };
        self.last_number = number;
        let deadline_ns = now_ns + HANDSHAKE_NS;
        let (routes, asked) = (HashSet::new(), HashMap::new());
        let instance =
            ConnectedInstance { id, connection, identity, stage: HandshakeStage::Pending, deadline_ns, routes, asked };
        self.instances.insert(number, instance);
        let candidate =
            self.candidates.entry(id).or_insert(InstanceCandidate { number: None, again_ns: 0, pause_ns: PAUSE_NS });
        candidate.number = Some(number);
        if !self.directory.may_serve(identity.user_id) {
            self.close(reactor, number, Some(&format!("it belongs to the user {}", identity.user_id)));
            return true;
        }
        self.side.unknown_server(id, Some(UnknownServer::asked(identity.process_id, None)));
        self.send(reactor, number, Arc::clone(&self.hello), Vec::new());
        true
    }

    pub fn ready(&mut self, reactor: &mut Reactor, number: u32, flags: EventFlags) {
        if flags.contains(EventFlags::OUT) {
            self.flush(reactor, number);
        }
        for _ in 0..PACKETS_AT_A_TIME {
            let Some(instance) = self.instances.get_mut(&number) else { return };
            match instance.connection.receive(&mut reactor.buffer) {
                Ok(ReceiveResult::Nothing) => return,
                Ok(ReceiveResult::Packet(packet, descriptors)) => {
                    if let Err(reason) = self.handle(number, packet, descriptors) {
                        self.close(reactor, number, Some(&reason));
                        return;
                    }
                }
                Ok(ReceiveResult::WithoutDescriptors(packet)) => {
                    if let Err(reason) = self.postpone_without_descriptors(reactor, number, &packet) {
                        self.close(reactor, number, Some(&reason));
                        return;
                    }
                }
                Ok(ReceiveResult::OtherVersion(version)) => {
                    self.give_up(reactor, number, Some(version), &other_protocol(version));
                    return;
                }
                Ok(ReceiveResult::End) => {
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
        let Some(instance) = self.instances.get_mut(&number) else { return Ok(()) };
        let (name, number) = (packet.name(), InstanceNumber(number));
        match (packet, instance.stage) {
            (Packet::Hello(hello), HandshakeStage::Pending) if hello.role == PeerRole::Instance => {
                instance.stage = HandshakeStage::Found;
                self.side.instance_found(number, &Arc::new(PeerProcess::new(hello, instance.identity)));
            }
            (Packet::Route(route), HandshakeStage::Found | HandshakeStage::Listed) => {
                let is_known = instance.routes.contains(&route.name);
                if route.state == RouteState::Gone {
                    instance.routes.remove(&route.name);
                } else if !is_known {
                    if instance.routes.len() >= ROUTES_MAX {
                        return Err(format!("it has more than {ROUTES_MAX} routes"));
                    }
                    instance.routes.insert(route.name.clone());
                }
                if is_known || route.state != RouteState::Gone {
                    self.side.route_changed(number, &route);
                }
            }
            (Packet::Listed, HandshakeStage::Found) => {
                instance.stage = HandshakeStage::Listed;
                let id = instance.id;
                self.side.unknown_server(id, None);
                self.side.instance_listed(number);
                self.report_settled(id);
            }
            (Packet::Attached { attachment }, HandshakeStage::Found | HandshakeStage::Listed) => {
                let Ok([bell, eventfd]) = <[OwnedFd; 2]>::try_from(descriptors) else {
                    return Err("an answer without its two descriptors".to_owned());
                };
                match instance.asked.remove(&attachment) {
                    Some(true) => self.side.attached(number, attachment, bell, eventfd),
                    Some(false) => {}
                    None => return Err(format!("it answers the attachment {attachment}, which nobody has asked for")),
                }
            }
            (Packet::Refused { attachment, refused }, HandshakeStage::Found | HandshakeStage::Listed) => {
                match instance.asked.remove(&attachment) {
                    Some(true) => self.side.refused(number, attachment, refused),
                    Some(false) => {}
                    None => return Err(format!("it refuses the attachment {attachment}, which nobody has asked for")),
                }
            }
            (_, stage) => {
                let when = if stage == HandshakeStage::Pending { "instead of its hello" } else { "after its hello" };
                return Err(format!("an instance sent a packet {name} {when}"));
            }
        }
        Ok(())
    }

    /// The answer's descriptors were lost: the table is detached and may be attached again.
    fn postpone_without_descriptors(
        &mut self,
        reactor: &mut Reactor,
        number: u32,
        packet: &Packet,
    ) -> Result<(), String> {
        let Packet::Attached { attachment } = packet else {
            return Err(format!("a packet {} has descriptors for which there is no room", packet.name()));
        };
        let Some(instance) = self.instances.get_mut(&number) else { return Ok(()) };
        let Some(is_awaited) = instance.asked.remove(attachment) else {
            return Err(format!("it answers the attachment {attachment}, which nobody has asked for"));
        };
        self.send(reactor, number, Packet::Detach { attachment: *attachment }.encode()?.into(), Vec::new());
        if is_awaited {
            let text = "the process that calls has no descriptors left for the answer";
            self.side.refused(
                InstanceNumber(number),
                *attachment,
                AttachRefusal::new(AttachRefusalReason::Memory, text),
            );
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
        let Some(instance) = self.instances.get_mut(&number) else { return };
        instance.asked.insert(attachment, true);
        crash_point("attach_before_passing");
        self.send(reactor, number, bytes, descriptors);
        crash_point("attach_passed");
    }

    pub fn detach(&mut self, reactor: &mut Reactor, number: u32, attachment: u64, bytes: Arc<[u8]>) {
        let Some(instance) = self.instances.get_mut(&number) else { return };
        if let Some(is_awaited) = instance.asked.get_mut(&attachment) {
            *is_awaited = false;
        }
        self.send(reactor, number, bytes, Vec::new());
    }

    pub fn change(&mut self, reactor: &mut Reactor, number: u32, bytes: Arc<[u8]>) {
        self.send(reactor, number, bytes, Vec::new());
    }

    fn send(&mut self, reactor: &mut Reactor, number: u32, bytes: Arc<[u8]>, descriptors: Vec<Arc<OwnedFd>>) {
        let Some(instance) = self.instances.get_mut(&number) else { return };
        let flushed = instance.connection.send(bytes, descriptors);
        self.sent(reactor, number, flushed);
    }

    fn flush(&mut self, reactor: &mut Reactor, number: u32) {
        let Some(instance) = self.instances.get_mut(&number) else { return };
        let flushed = instance.connection.flush();
        self.sent(reactor, number, flushed);
    }

    fn sent(&mut self, reactor: &mut Reactor, number: u32, flushed: Result<FlushResult, String>) {
        let Some(instance) = self.instances.get(&number) else { return };
        match flushed {
            Ok(flushed) => {
                if reactor.watch_room(&instance.connection, EventSource::Instance(number), flushed) {
                    self.flush_again_ns = Some(gapless_agent::monotonic::monotonic_ns() + RETRY_NS);
                    self.next_ns = None;
                }
            }
            Err(reason) => self.close(reactor, number, Some(&reason)),
        }
    }

    fn give_up(&mut self, reactor: &mut Reactor, number: u32, version: Option<u16>, reason: &str) {
        let instance = self.instances.get(&number).filter(|instance| instance.stage != HandshakeStage::Listed);
        let unknown_server = instance.map(|instance| UnknownServer::asked(instance.identity.process_id, version));
        self.end(reactor, number, Some(reason), unknown_server);
    }

    /// A live process without a hello may serve unknown routes: it had no room for this caller, or cannot see it from
    /// its namespace.
    fn ended(&mut self, reactor: &mut Reactor, number: u32) {
        let pending = self.instances.get(&number).filter(|instance| instance.stage == HandshakeStage::Pending);
        let process_id = pending.map(|instance| instance.identity.process_id);
        let alive = process_id.filter(|process_id| !reactor.is_dead(*process_id));
        self.end(reactor, number, None, alive.map(|process_id| UnknownServer::asked(process_id, None)));
    }

    /// Closes a connection, and retries it after a pause.
    fn close(&mut self, reactor: &mut Reactor, number: u32, reason: Option<&str>) {
        self.end(reactor, number, reason, None);
    }

    fn end(&mut self, reactor: &mut Reactor, number: u32, reason: Option<&str>, unknown_server: Option<UnknownServer>) {
        self.next_ns = None;
        let Some(instance) = self.instances.remove(&number) else { return };
        let (id, process_id) = (instance.id, instance.identity.process_id);
        if let Some(reason) = reason {
            reactor
                .warnings
                .warn_now(|| format!("the connection to the instance {process_id} ({id}) is closed: {reason}"));
        }
        let was_found = instance.stage != HandshakeStage::Pending;
        reactor.close(instance.connection, process_id, was_found.then_some(number));
        if let Some(candidate) = self.candidates.get_mut(&id) {
            let now_ns = gapless_agent::monotonic::monotonic_ns();
            // A connection that breaks again and again uses up numbers: its pause grows.
            if now_ns > instance.deadline_ns + PAUSE_NS_MAX {
                candidate.pause_ns = PAUSE_NS;
            }
            (candidate.number, candidate.again_ns) = (None, now_ns + candidate.pause_ns);
            candidate.pause_ns = (candidate.pause_ns * 2).min(PAUSE_NS_MAX);
        }
        if was_found {
            self.side.instance_closed(InstanceNumber(number));
        }
        self.side.unknown_server(id, unknown_server);
        self.report_settled(id);
    }

    /// Closes the connections of a dead process, and removes its files. While a child that was just forked still holds
    /// its lock, the socket is retried instead, and refuses.
    pub fn process_died(&mut self, reactor: &mut Reactor, process_id: u32) {
        let of_process = self.instances.iter().filter(|(_, instance)| instance.identity.process_id == process_id);
        for number in of_process.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.close(reactor, number, None);
        }
        let unconnected = self.candidates.iter().filter(|(_, candidate)| candidate.number.is_none());
        for id in unconnected.map(|(id, _)| *id).collect::<Vec<_>>() {
            if instance_files::sweep_one(&self.directory, id) {
                self.forget(id);
            }
        }
    }

    /// Reports the death of an instance whose connection is closed.
    pub fn report_death(&self, number: u32) {
        self.side.instance_dead(InstanceNumber(number));
    }

    fn forget(&mut self, id: InstanceId) {
        self.side.unknown_server(id, None);
        self.candidates.remove(&id);
        self.report_settled(id);
    }

    fn report_settled(&mut self, id: InstanceId) {
        self.next_ns = None;
        if let Some(unsettled) = &mut self.unsettled {
            unsettled.remove(&id);
        }
    }

    fn check_settled(&mut self, now_ns: u64) {
        let is_settled = |left: &mut HashSet<InstanceId>| left.is_empty() || self.settle_by_ns <= now_ns;
        if self.unsettled.take_if(is_settled).is_some() {
            self.side.settled();
        }
    }

    /// Time of the next [`tick`](Self::tick).
    pub fn next_ns(&mut self) -> Option<u64> {
        if self.next_ns.is_none() {
            let candidates = self.candidates.values().filter(|each| each.number.is_none()).map(|each| each.again_ns);
            let pending = self
                .instances
                .values()
                .filter(|instance| instance.stage != HandshakeStage::Listed)
                .map(|instance| instance.deadline_ns);
            let unsettled = self.unsettled.as_ref().map(|left| if left.is_empty() { 0 } else { self.settle_by_ns });
            self.next_ns = Some(candidates.chain(pending).chain(unsettled).chain(self.flush_again_ns).min());
        }
        self.next_ns.flatten()
    }

    /// Closes instances past their deadline, and retries postponed work.
    pub fn tick(&mut self, reactor: &mut Reactor, now_ns: u64) {
        self.next_ns = None;
        let is_late =
            |instance: &ConnectedInstance| instance.stage != HandshakeStage::Listed && instance.deadline_ns <= now_ns;
        let late = self.instances.iter().filter(|(_, instance)| is_late(instance)).map(|(number, _)| *number);
        for number in late.collect::<Vec<_>>() {
            self.give_up(reactor, number, None, "it has not said who it is and what it serves in 2 s");
        }
        let is_due = |candidate: &InstanceCandidate| candidate.number.is_none() && candidate.again_ns <= now_ns;
        let due = self.candidates.iter().filter(|(_, candidate)| is_due(candidate)).map(|(id, _)| *id);
        for id in due.collect::<Vec<_>>() {
            self.try_socket(reactor, id, now_ns);
        }
        if self.flush_again_ns.take_if(|again_ns| *again_ns <= now_ns).is_some() {
            for number in self.instances.keys().copied().collect::<Vec<_>>() {
                self.flush(reactor, number);
            }
        }
        self.check_settled(now_ns);
    }

    pub fn close_all(&mut self, reactor: &mut Reactor) {
        if let Some(watch) = self.watch.take() {
            reactor.unwatch(&watch);
        }
        self.unsettled = None;
        for number in self.instances.keys().copied().collect::<Vec<_>>() {
            self.close(reactor, number, None);
        }
    }
}
