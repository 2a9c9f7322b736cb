//! [`Callers`]: the serving half of the I/O thread: the connected callers, and the packets sent to them.
//!
//! ```text
//!  connected ──hello in time──▶ greeted ──attach, detach──▶ greeted
//!      └─────────────── anything else, or its end ──────────────▶ closed
//! ```

use super::callbacks::{AttachMemory, CallerNumber, PeerProcess, ServingSide};
use super::connection::{FlushResult, PeerConnection, ReceiveResult};
use super::directory::DomainDirectory;
use super::packets::{Attach, AttachRefusal, AttachRefusalReason, Packet, PeerRole, other_protocol};
use super::peer::{PeerIdentity, lacks_descriptors};
use super::reactor::{
    CONNECTIONS_MAX, CONNECTIONS_OF_PROCESS_MAX, EventSource, HANDSHAKE_NS, PACKETS_AT_A_TIME, RETRY_NS, Reactor,
};
use gapless_agent::fault::crash_point;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::SocketFlags;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Limit of call tables of one caller, one for each route.
pub const ATTACHMENTS_MAX: usize = 1024;
const NO_DESCRIPTORS: &str = "this process has no descriptors left for a call table";
const ACCEPT_AGAIN_NS: u64 = 100_000_000;

pub struct ConnectedCallers {
    side: Arc<dyn ServingSide>,
    directory: Arc<DomainDirectory>,
    listener: Option<OwnedFd>,
    hello: Arc<[u8]>,
    listed: Arc<[u8]>,
    routes: BTreeMap<String, Arc<[u8]>>,
    callers: HashMap<u64, ConnectedCaller>,
    next_number: u64,
    /// Hello deadlines, in order; some entries are outdated.
    pending: VecDeque<(u64, u64)>,
    accept_again_ns: Option<u64>,
    /// Accepted with the last descriptor: none was left for its pidfd.
    put_off: Option<PeerConnection>,
    flush_again_ns: Option<u64>,
}

struct ConnectedCaller {
    connection: PeerConnection,
    identity: PeerIdentity,
    /// `None` before its hello.
    process: Option<Arc<PeerProcess>>,
    attachments: HashSet<u64>,
}

impl ConnectedCallers {
    /// `hello` and `listed` are the packets sent to each caller.
    pub fn new(
        side: Arc<dyn ServingSide>,
        directory: Arc<DomainDirectory>,
        hello: Arc<[u8]>,
        listed: Arc<[u8]>,
    ) -> Self {
        Self {
            side,
            directory,
            listener: None,
            hello,
            listed,
            routes: BTreeMap::new(),
            callers: HashMap::new(),
            next_number: 1,
            pending: VecDeque::new(),
            accept_again_ns: None,
            put_off: None,
            flush_again_ns: None,
        }
    }

    /// Accepts callers from a listener that is watched.
    pub fn listen(&mut self, listener: OwnedFd) {
        self.listener = Some(listener);
    }

    pub fn announce(&mut self, reactor: &mut Reactor, route: String, bytes: Arc<[u8]>, is_gone: bool) {
        if is_gone {
            self.routes.remove(&route);
        } else {
            self.routes.insert(route, Arc::clone(&bytes));
        }
        let greeted = self.callers.iter().filter(|(_, caller)| caller.process.is_some());
        for number in greeted.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.send(reactor, number, Arc::clone(&bytes), Vec::new());
        }
    }

    pub fn accept(&mut self, reactor: &mut Reactor, now_ns: u64) {
        loop {
            let Some(listener) = &self.listener else { return };
            let accepted = match self.put_off.take() {
                Some(connection) => Ok(connection),
                None => rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
                    .map(PeerConnection::over),
            };
            match accepted {
                Ok(connection) => self.take(reactor, connection, now_ns),
                Err(Errno::AGAIN) => return,
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(errno) => self.pause(reactor, now_ns, &errno),
            }
            if self.accept_again_ns.is_some() {
                return;
            }
        }
    }

    fn pause(&mut self, reactor: &mut Reactor, now_ns: u64, reason: &dyn std::fmt::Display) {
        // The listener stays readable, and would keep the thread awake.
        self.listener.iter().for_each(|listener| reactor.unwatch(listener));
        self.accept_again_ns = Some(now_ns + ACCEPT_AGAIN_NS);
        reactor.warnings.warn_now(|| format!("callers must wait to be let in: {reason}"));
    }

    fn take(&mut self, reactor: &mut Reactor, connection: PeerConnection, now_ns: u64) {
        if !reactor.has_room() {
            reactor.warnings.warn_now(|| format!("a caller was not let in: {CONNECTIONS_MAX} processes are connected"));
            return;
        }
        let number = self.next_number;
        self.next_number += 1;
        let identity = match reactor.open(&connection, EventSource::Caller(number)) {
            Ok(identity) => identity,
            Err(error) if lacks_descriptors(&error) => {
                self.put_off = Some(connection);
                self.pause(reactor, now_ns, &error);
                return;
            }
            Err(error) => {
                reactor.warnings.warn_now(|| format!("a caller was not let in: {error}"));
                return;
            }
        };
        let caller = ConnectedCaller { connection, identity, process: None, attachments: HashSet::new() };
        self.callers.insert(number, caller);
        if reactor.connections_of(identity.process_id) > CONNECTIONS_OF_PROCESS_MAX {
            let reason = format!("its process has {CONNECTIONS_OF_PROCESS_MAX} others");
            self.close(reactor, number, Some(&reason));
            return;
        }
        if !self.directory.may_call(identity.user_id) {
            self.close(reactor, number, Some(&format!("it belongs to the user {}", identity.user_id)));
            return;
        }
        self.pending.push_back((now_ns + HANDSHAKE_NS, number));
    }

    pub fn ready(&mut self, reactor: &mut Reactor, number: u64, flags: EventFlags) {
        if flags.contains(EventFlags::OUT) {
            self.flush(reactor, number);
        }
        for _ in 0..PACKETS_AT_A_TIME {
            let Some(caller) = self.callers.get_mut(&number) else { return };
            match caller.connection.receive(&mut reactor.buffer) {
                Ok(ReceiveResult::Nothing) => return,
                Ok(ReceiveResult::Packet(packet, descriptors)) => {
                    if let Err(reason) = self.handle(reactor, number, packet, descriptors) {
                        self.close(reactor, number, Some(&reason));
                        return;
                    }
                }
                Ok(ReceiveResult::WithoutDescriptors(packet)) => {
                    if let Err(reason) = self.refuse_without_descriptors(reactor, number, &packet) {
                        self.close(reactor, number, Some(&reason));
                        return;
                    }
                }
                Ok(ReceiveResult::OtherVersion(version)) => {
                    self.send(reactor, number, Arc::clone(&self.hello), Vec::new());
                    self.close(reactor, number, Some(&other_protocol(version)));
                    return;
                }
                Ok(ReceiveResult::End) => {
                    self.close(reactor, number, None);
                    return;
                }
                Err(reason) => {
                    self.close(reactor, number, Some(&reason));
                    return;
                }
            }
        }
    }

    fn handle(
        &mut self,
        reactor: &mut Reactor,
        number: u64,
        packet: Packet,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), String> {
        let Some(caller) = self.callers.get_mut(&number) else { return Ok(()) };
        match (packet, &caller.process) {
            (Packet::Hello(hello), None) if hello.role == PeerRole::Caller => {
                caller.process = Some(Arc::new(PeerProcess::new(hello, caller.identity)));
                let routes = self.routes.values().cloned();
                let told = [Arc::clone(&self.hello)].into_iter().chain(routes).chain([Arc::clone(&self.listed)]);
                for bytes in told.collect::<Vec<_>>() {
                    self.send(reactor, number, bytes, Vec::new());
                }
            }
            (Packet::Attach(attach), Some(process)) => {
                let process = Arc::clone(process);
                self.attach(reactor, number, &process, attach, descriptors)?;
            }
            (Packet::Detach { attachment }, Some(_)) => {
                // A refused call table is not attached, which the caller may not have known.
                if caller.attachments.remove(&attachment) {
                    self.side.detach(CallerNumber(number), attachment);
                }
            }
            (Packet::Change { route, to }, Some(_)) => {
                let user_id = caller.identity.user_id;
                if self.directory.may_serve(user_id) {
                    self.side.change(&route, to);
                } else {
                    reactor
                        .warnings
                        .warn_now(|| format!("{route} stays as it is: the user {user_id} may only call it"));
                }
            }
            (packet, process) => {
                let when = if process.is_some() { "after its hello" } else { "instead of its hello" };
                return Err(format!("a caller sent a packet {} {when}", packet.name()));
            }
        }
        Ok(())
    }

    fn attach(
        &mut self,
        reactor: &mut Reactor,
        number: u64,
        process: &Arc<PeerProcess>,
        attach: Attach,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), String> {
        let Some(caller) = self.callers.get_mut(&number) else { return Ok(()) };
        let Ok([request_region, claim_region, completion]) = <[OwnedFd; 3]>::try_from(descriptors) else {
            return Err("an attach without its three descriptors".to_owned());
        };
        let attachment = attach.attachment;
        if caller.attachments.contains(&attachment) {
            return Err(format!("the attachment {attachment} is used twice"));
        }
        let answer = if caller.attachments.len() >= ATTACHMENTS_MAX {
            let text = format!("this caller has {ATTACHMENTS_MAX} call tables here, which is the limit");
            Err(AttachRefusal::new(AttachRefusalReason::Limit, text))
        } else {
            let memory = AttachMemory { request_region, claim_region, completion };
            self.side.attach(CallerNumber(number), process, attach, memory)
        };
        let (packet, descriptors) = match answer {
            Ok(answer) => {
                caller.attachments.insert(attachment);
                (Packet::Attached { attachment }, vec![answer.bell, answer.eventfd])
            }
            Err(refused) => (Packet::Refused { attachment, refused: shortened(refused) }, Vec::new()),
        };
        let bytes = packet.encode()?;
        crash_point("bell_before_passing");
        self.send(reactor, number, bytes.into(), descriptors);
        crash_point("bell_passed");
        Ok(())
    }

    /// The table's descriptors were lost; the caller may retry.
    fn refuse_without_descriptors(
        &mut self,
        reactor: &mut Reactor,
        number: u64,
        packet: &Packet,
    ) -> Result<(), String> {
        let is_greeted = self.callers.get(&number).is_some_and(|caller| caller.process.is_some());
        let Packet::Attach(Attach { attachment, .. }) = packet else {
            return Err(format!("a packet {} has descriptors for which there is no room", packet.name()));
        };
        if !is_greeted {
            return Err("a caller sent a packet attach instead of its hello".to_owned());
        }
        let refused = AttachRefusal::new(AttachRefusalReason::Memory, NO_DESCRIPTORS);
        let bytes = Packet::Refused { attachment: *attachment, refused }.encode()?;
        self.send(reactor, number, bytes.into(), Vec::new());
        Ok(())
    }

    fn send(&mut self, reactor: &mut Reactor, number: u64, bytes: Arc<[u8]>, descriptors: Vec<Arc<OwnedFd>>) {
        let Some(caller) = self.callers.get_mut(&number) else { return };
        let flushed = caller.connection.send(bytes, descriptors);
        self.sent(reactor, number, flushed);
    }

    fn flush(&mut self, reactor: &mut Reactor, number: u64) {
        let Some(caller) = self.callers.get_mut(&number) else { return };
        let flushed = caller.connection.flush();
        self.sent(reactor, number, flushed);
    }

    fn sent(&mut self, reactor: &mut Reactor, number: u64, flushed: Result<FlushResult, String>) {
        let Some(caller) = self.callers.get(&number) else { return };
        match flushed {
            Ok(flushed) => {
                if reactor.watch_room(&caller.connection, EventSource::Caller(number), flushed) {
                    self.flush_again_ns = Some(gapless_agent::monotonic::monotonic_ns() + RETRY_NS);
                }
            }
            Err(reason) => self.close(reactor, number, Some(&reason)),
        }
    }

    fn close(&mut self, reactor: &mut Reactor, number: u64, reason: Option<&str>) {
        let Some(caller) = self.callers.remove(&number) else { return };
        let process_id = caller.identity.process_id;
        if let Some(reason) = reason {
            reactor.warnings.warn_now(|| format!("the connection of the caller {process_id} is closed: {reason}"));
        }
        reactor.close(caller.connection, process_id, None);
        self.side.caller_gone(CallerNumber(number));
    }

    pub fn process_died(&mut self, reactor: &mut Reactor, process_id: u32) {
        let of_process = self.callers.iter().filter(|(_, caller)| caller.identity.process_id == process_id);
        for number in of_process.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.close(reactor, number, None);
        }
    }

    /// Time of the next [`tick`](Self::tick).
    pub fn next_ns(&self) -> Option<u64> {
        let pending = self.pending.front().map(|(deadline_ns, _)| *deadline_ns);
        [pending, self.accept_again_ns, self.flush_again_ns].into_iter().flatten().min()
    }

    /// Closes callers past their deadline, and retries postponed work.
    pub fn tick(&mut self, reactor: &mut Reactor, now_ns: u64) {
        while let Some((_, number)) = self.pending.pop_front_if(|(deadline_ns, _)| *deadline_ns <= now_ns) {
            if self.callers.get(&number).is_some_and(|caller| caller.process.is_none()) {
                self.close(reactor, number, Some("it has not said who it is in 2 s"));
            }
        }
        if self.accept_again_ns.take_if(|again_ns| *again_ns <= now_ns).is_some()
            && let Some(listener) = &self.listener
        {
            match reactor.watch(listener, EventSource::Listener, EventFlags::IN) {
                Ok(()) => self.accept(reactor, now_ns),
                Err(error) => self.pause(reactor, now_ns, &error),
            }
        }
        if self.flush_again_ns.take_if(|again_ns| *again_ns <= now_ns).is_some() {
            for number in self.callers.keys().copied().collect::<Vec<_>>() {
                self.flush(reactor, number);
            }
        }
    }

    pub fn close_all(&mut self, reactor: &mut Reactor) {
        if let Some(listener) = self.listener.take() {
            reactor.unwatch(&listener);
        }
        self.put_off = None;
        for number in self.callers.keys().copied().collect::<Vec<_>>() {
            self.close(reactor, number, None);
        }
    }
}

fn shortened(mut refused: AttachRefusal) -> AttachRefusal {
    const TEXT_MAX: usize = 2048;
    let cut = refused.text.floor_char_boundary(TEXT_MAX);
    refused.text.truncate(cut);
    refused
}
