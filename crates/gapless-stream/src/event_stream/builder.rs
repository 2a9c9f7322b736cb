//! [`StreamBuilder`]: assembles the parts common to all streams, also of a cluster's members, whose head lives in
//! another crate.

use super::{EventStream, StreamDriver, StreamRecovery};
use crate::acceptor::{Acceptor, AcceptorLinks, StreamDescription};
use crate::control_server::{ControlCounters, ControlFacts, ControlServer, ControlTarget};
use crate::egress::Egress;
use crate::history_check::HistoryCheck;
use crate::ingress::IngressShared;
use crate::journaler::SyncedEnd;
use crate::journaler::{Journaler, JournalerCounters, Release};
use crate::locked_directory::LockedDirectory;
use crate::messages::{ResponderMessage, SequencerRequest};
use crate::network::client_sessions::SharedStatus;
use crate::network::endpoints::{ServedStream, build};
use crate::network::{client_port, tcp_endpoints};
use crate::options::EventStreamOptions;
use crate::persistence::OpenedJournal;
use crate::preparer_thread::PreparerThread;
use crate::syncer::SyncThread;
use crate::{AgentRole, StreamError};
use gapless_agent::plan::{SPREADING_CORES_MIN, cores_available};
use gapless_agent::{Agent, AgentGroup, AgentSpec, Clock, Counters, PlanKind, ThreadAssignment, ThreadGroup};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{DirectoryLock, RecoveryReport, SegmentPreparer, Syncer};
use gapless_log::{GatingCursor, MemoryKind, Releaser, Scope, StreamIdentity, Window, WindowOptions, WindowWriter};
use gapless_transport::Tier;
use gapless_transport::mailbox::Mailbox;
use gapless_transport::transport::Transport;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

const MAILBOX_MESSAGES: usize = 4096;
/// Last sequence on the device, at tier `sync`.
const SYNCED_SEQUENCE: &str = "sync.last_sequence";
/// Successful checks that the journal's files are in their places, one a second.
const FILE_CHECKS: &str = "journal.file_checks";
const COUNTERS_MAX: usize = 256;
const JOURNAL_BATCH_BYTES: usize = 64 << 10;

/// A service handles frames taken, and writes a last snapshot.
const SERVICE_DRAIN_NS_MAX: u64 = 600_000_000_000;

/// Agent that appends to a stream's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRole {
    /// Sequences publishers' frames; a separate journaler follows.
    Sequencer,
    /// Forwards another sequencer's frames, and answers publishers itself; a separate journaler follows.
    Relay,
    /// Does its own journaling.
    Member,
    /// [`StreamRole::Member`] whose service answers.
    Replica,
    /// [`StreamRole::Sequencer`] whose service answers; clients, but no nodes.
    Service,
}

impl StreamRole {
    #[must_use]
    pub const fn role(self) -> AgentRole {
        match self {
            Self::Sequencer | Self::Service => AgentRole::Sequencer,
            Self::Relay => AgentRole::Relay,
            Self::Member | Self::Replica => AgentRole::Member,
        }
    }

    #[must_use]
    pub const fn answering(self) -> AgentRole {
        match self {
            Self::Relay => AgentRole::Relay,
            Self::Sequencer | Self::Member => AgentRole::Responder,
            Self::Replica | Self::Service => AgentRole::Service,
        }
    }

    fn journal_readers(self) -> Vec<AgentRole> {
        match self {
            Self::Service => vec![self.answering()],
            _ => vec![AgentRole::Responder, self.role()],
        }
    }

    /// A member does its own journaling.
    #[must_use]
    pub const fn is_member(self) -> bool {
        matches!(self, Self::Member | Self::Replica)
    }
}

pub struct StreamBuilder<'a> {
    options: &'a EventStreamOptions,
    pub layout: Option<StreamLayout>,
    lock: Option<DirectoryLock>,
    identity: StreamIdentity,
    next_sequence: u64,
    head: StreamRole,
    /// Longest frame and message for nodes, bytes.
    pub advertised_limits: (usize, usize),
    pub counters: Counters,
    pub threads: ThreadAssignment<AgentRole>,
    pub window: Window,
    writer: Option<WindowWriter>,
    releaser: Option<Releaser>,
    opened: Option<OpenedJournal>,
    journal_cursor: Option<GatingCursor>,
    feed_cursor: Option<GatingCursor>,
    pub acceptor_links: AcceptorLinks,
    /// Sequencer to the agent that answers.
    pub answers: Mailbox<ResponderMessage>,
    /// Requests of the stream's owner to the sequencer.
    pub requests: Mailbox<SequencerRequest>,
    journaler: Option<Journaler>,
    sync_thread: Option<SyncThread<SyncedEnd>>,
    preparer: Option<PreparerThread>,
    has_threads: bool,
    socket_path: Option<PathBuf>,
}

/// Parts for a head that does its own journaling.
pub struct OwnJournaling {
    pub opened: OpenedJournal,
    /// Frames appended and not journaled yet.
    pub cursor: GatingCursor,
    pub releaser: Releaser,
}

/// Parts for the agent that appends.
pub struct Journaling {
    /// Set at tier `memory`, where the appending agent releases.
    pub releaser: Option<Releaser>,
    /// The journal's ends for helper threads.
    pub syncer_and_preparer: Option<(Syncer, SegmentPreparer)>,
    pub report: Option<RecoveryReport>,
}

impl<'a> StreamBuilder<'a> {
    /// Creates all parts, not running yet.
    ///
    /// # Errors
    /// Options out of range, no memory, no files.
    pub fn new(
        options: &'a EventStreamOptions,
        directory: Option<LockedDirectory>,
        identity: StreamIdentity,
        next_sequence: u64,
        opened: Option<OpenedJournal>,
        head: StreamRole,
    ) -> Result<Self, StreamError> {
        let threads = assign_threads(options, head)?;
        Self::on_threads(options, directory, identity, next_sequence, opened, head, threads)
    }

    /// [`StreamBuilder::new`] with the given threads.
    ///
    /// # Errors
    /// As for [`StreamBuilder::new`].
    pub fn on_threads(
        options: &'a EventStreamOptions,
        directory: Option<LockedDirectory>,
        identity: StreamIdentity,
        next_sequence: u64,
        opened: Option<OpenedJournal>,
        head: StreamRole,
        threads: ThreadAssignment<AgentRole>,
    ) -> Result<Self, StreamError> {
        directory.as_ref().map_or(Ok(()), LockedDirectory::note_owner)?;
        let (layout, lock) = directory.map(LockedDirectory::split).unzip();
        let counters = match &layout {
            Some(layout) => Counters::create(layout.counters(), COUNTERS_MAX)?,
            None => Counters::in_memory(COUNTERS_MAX)?,
        };
        let window_options = WindowOptions {
            memory: if head == StreamRole::Service { MemoryKind::Anonymous } else { MemoryKind::Shared },
            capacity_bytes: options.window_bytes,
            // A member finds each unreleased frame by its sequence, even if all are of the shortest length.
            index_slots: (options.window_bytes / if head.is_member() { 64 } else { 128 }).next_power_of_two(),
            frame_length_max: options.frame_length_max,
            identity,
        };
        let (mut writer, releaser) = window_options.create(next_sequence)?;
        let window = writer.window();
        let journal_cursor = opened.is_some().then(|| writer.gating_cursor(Scope::Appended));
        let feed_cursor = options.packets.is_some().then(|| writer.gating_cursor(Scope::Released));
        let acceptor_links = AcceptorLinks {
            ingress: Mailbox::new(MAILBOX_MESSAGES),
            egress: Mailbox::new(MAILBOX_MESSAGES),
            ingress_waker: threads.waker(head.role()),
            egress_waker: threads.waker(if threads.has(AgentRole::Sender) {
                AgentRole::Sender
            } else {
                head.answering()
            }),
        };
        let socket_path = layout.as_ref().map(StreamLayout::socket);
        Ok(Self {
            options,
            socket_path,
            layout,
            lock,
            identity,
            next_sequence,
            head,
            advertised_limits: (options.frame_length_max, options.message_bytes_max()),
            counters,
            threads,
            window,
            writer: Some(writer),
            releaser: Some(releaser),
            opened,
            journal_cursor,
            feed_cursor,
            acceptor_links,
            answers: Mailbox::new(MAILBOX_MESSAGES),
            requests: Mailbox::new(MAILBOX_MESSAGES),
            journaler: None,
            sync_thread: None,
            preparer: None,
            has_threads: true,
        })
    }

    /// Leaves the helpers' work to [`EventStream::turn`], too.
    pub const fn without_threads(&mut self) {
        self.has_threads = false;
    }

    /// Socket instead of the directory's; `None` for none.
    pub fn set_socket_path(&mut self, path: Option<PathBuf>) {
        self.socket_path = path;
    }

    /// Window writer for the agent that appends.
    ///
    /// # Panics
    /// If it was taken before.
    #[must_use]
    pub fn take_writer(&mut self) -> WindowWriter {
        self.writer.take().expect("one agent appends")
    }

    /// Sender of answers to the nodes of this machine.
    #[must_use]
    pub fn egress(&self) -> Egress {
        Egress::new(self.acceptor_links.egress.clone(), self.options.frame_length_max)
    }

    /// Journal for a head that does its own journaling; starts the preparer of segments.
    ///
    /// # Errors
    /// The thread cannot be started.
    ///
    /// # Panics
    /// If the journal was taken before, or the stream has none.
    pub fn take_journal(&mut self) -> Result<OwnJournaling, StreamError> {
        let found = (self.opened.take(), self.journal_cursor.take(), self.releaser.take());
        let (Some(opened), Some(cursor), Some(releaser)) = found else { panic!("a stream has one journal") };
        let preparer = opened.journal.preparer();
        self.preparer = Some(if self.has_threads {
            PreparerThread::start(preparer, self.counters.add(FILE_CHECKS)?)?
        } else {
            PreparerThread::by_hand(preparer)
        });
        Ok(OwnJournaling { opened, cursor, releaser })
    }

    /// Creates the journaler and its helpers.
    ///
    /// # Errors
    /// The threads cannot be started, or there is no room for counters.
    ///
    /// # Panics
    /// If it was created before.
    pub fn journal(&mut self) -> Result<Journaling, StreamError> {
        let releaser = self.releaser.take();
        let (Some(opened), Some(cursor)) = (self.opened.take(), self.journal_cursor.take()) else {
            return Ok(Journaling { releaser, syncer_and_preparer: None, report: None });
        };
        let releaser = releaser.expect("the journal is made once");
        let OpenedJournal { journal, report, .. } = opened;
        let below = (journal.syncer(), journal.preparer());
        self.preparer = Some(PreparerThread::start(journal.preparer(), self.counters.add(FILE_CHECKS)?)?);
        let readers = self.head.journal_readers();
        let release = if self.options.tier.is_synced() {
            let woken = self.threads.downstream(None, &[&readers[..], &[AgentRole::Journaler]].concat());
            let last_sequence = self.counters.add(SYNCED_SEQUENCE)?;
            last_sequence.set(report.last_sequence);
            let mut releaser = releaser;
            let on_synced = move |SyncedEnd { position, sequence }| {
                releaser.release(position, sequence);
                last_sequence.set(sequence);
            };
            let started = SyncThread::start(journal.syncer(), on_synced, woken, self.options.sync_cpus);
            let (thread, syncing) = started.map_err(|error| StreamError::System {
                action: "starting the sync thread".to_owned(),
                source: std::io::Error::other(error),
            })?;
            self.sync_thread = Some(thread);
            Release::WhenSynced(syncing)
        } else {
            Release::WhenJournaled(releaser)
        };
        let downstream = self.threads.downstream(Some(AgentRole::Journaler), &readers);
        let batch_bytes_max = if self.options.persistence.flush_on_commit { 1 } else { JOURNAL_BATCH_BYTES };
        let counted = JournalerCounters::add_to(&self.counters)?;
        counted.last_sequence.set(report.last_sequence);
        self.journaler = Some(Journaler::new(cursor, journal, release, downstream, batch_bytes_max, counted));
        Ok(Journaling { releaser: None, syncer_and_preparer: Some(below), report: Some(report) })
    }

    /// Admits publishers and starts the agents: `head` appends, `answering` answers. Without a clock no threads are
    /// started, and the caller polls.
    ///
    /// # Errors
    /// The socket cannot be bound, or the threads cannot be started.
    pub fn start(
        self,
        head: Box<dyn Agent>,
        answering: Vec<(AgentRole, Box<dyn Agent>)>,
        ingress: Arc<IngressShared>,
        recovery: StreamRecovery,
        clock: Option<Clock>,
    ) -> Result<EventStream, StreamError> {
        let options = self.options;
        let description = StreamDescription {
            identity: self.identity,
            frame_length_max: self.advertised_limits.0,
            message_length_max: self.advertised_limits.1,
            tier: options.tier,
            mtu: options.effective_mtu(),
        };
        let socket = self.socket_path.as_deref().filter(|_| clock.is_some());
        let target = if self.head == StreamRole::Relay {
            ControlTarget::Elsewhere
        } else {
            let (requests, outcomes) = (self.requests.clone(), ingress.outcomes.clone());
            ControlTarget::Sequencer { requests, outcomes, waker: self.threads.waker(self.head.role()) }
        };
        let (status, counted) = (SharedStatus::default(), ControlCounters::add_to(&self.counters)?);
        let facts = ControlFacts {
            tier: options.tier,
            transports: transports(options),
            feeds: ingress.feeds.clone(),
            is_halted: Arc::clone(&ingress.is_stream_halted),
        };
        let control = ControlServer::new(target, self.window.clone(), status.clone(), facts, counted);
        let has_nodes = self.head != StreamRole::Service;
        let (window, control) = (has_nodes.then(|| self.window.clone()), has_nodes.then_some(control));
        let journal = self.layout.as_ref().filter(|_| options.tier != Tier::Memory).map(StreamLayout::journal);
        let is_first = matches!(self.head, StreamRole::Sequencer | StreamRole::Service);
        let history = HistoryCheck::new(self.window.clone(), journal.clone(), !is_first);
        let (acceptor_links, history_of_clients) = (self.acceptor_links, Some(history.clone()));
        let acceptor = Acceptor::start(socket, description, acceptor_links, window, control, history_of_clients)?;
        let acceptor = Arc::new(acceptor);
        let served = ServedStream {
            acceptor: Arc::clone(&acceptor),
            window: self.window.clone(),
            feeds: ingress.feeds.clone(),
            history,
            journal,
            next_sequence: self.next_sequence,
            ends_here: self.head == StreamRole::Sequencer && options.tier == Tier::Memory,
            status: status.clone(),
            counters: &self.counters,
        };
        let mut agents: Vec<(AgentRole, Box<dyn Agent>)> = Vec::new();
        let mut network_agents = Vec::new();
        if let (Some(network), Some(cursor)) = (&options.packets, self.feed_cursor) {
            let [gateway, feed, replayer] = build(network, cursor, &served)?;
            agents.push((AgentRole::Gateway, gateway));
            network_agents.extend([(AgentRole::Feed, feed), (AgentRole::Replayer, replayer)]);
        }
        let mut tcp_addresses = None;
        if let Some(network) = &options.tcp {
            let ([gateway, rewind], addresses) = tcp_endpoints::build(network, &served)?;
            agents.push((AgentRole::TcpGateway, gateway));
            network_agents.push((AgentRole::Rewind, rewind));
            tcp_addresses = Some(addresses);
        }
        let mut client_address = None;
        if let Some(port) = options.clients.as_ref().filter(|_| self.head == StreamRole::Replica) {
            let (gateway, address) = client_port::build(port, &served)?;
            agents.push((AgentRole::TcpGateway, gateway));
            client_address = Some(address);
        }
        agents.push((self.head.role(), head));
        let journaler = |journaler| (AgentRole::Journaler, Box::new(journaler) as Box<dyn Agent>);
        agents.extend(self.journaler.map(journaler));
        agents.extend(network_agents);
        agents.extend(answering);
        let waker = self.threads.waker(self.head.role());
        let driver = match clock {
            Some(clock) => {
                let threads = ThreadGroup::launch(&self.threads.plan, agents, &clock, self.threads.wakers)?;
                acceptor.watch(threads.failures());
                StreamDriver::Threads(threads)
            }
            None => {
                StreamDriver::Caller(Mutex::new(AgentGroup::new(agents.into_iter().map(|(_, agent)| agent).collect())))
            }
        };
        Ok(EventStream {
            driver: Some(driver),
            acceptor: Some(acceptor),
            sync_thread: self.sync_thread,
            preparer: self.preparer,
            ingress,
            requests: self.requests,
            waker,
            window: self.window,
            layout: self.layout,
            _lock: self.lock,
            counters: self.counters,
            recovery,
            plan: self.threads.plan,
            tier: options.tier,
            status,
            tcp_addresses,
            client_address,
            is_failure_reported: AtomicBool::new(false),
        })
    }
}

fn transports(options: &EventStreamOptions) -> Vec<Transport> {
    let by_packets = options.packets.as_ref();
    let packets =
        by_packets.map(|network| if network.groups.is_empty() { Transport::Udp } else { Transport::Multicast });
    let here = options.directory.as_ref().map(|_| Transport::SharedMemory);
    here.into_iter().chain(packets).chain(options.tcp.as_ref().map(|_| Transport::Tcp)).collect()
}

/// Spec of the rewind port's agent. With packets, the rewind port serves only late joiners, off the hot path, since one
/// can use a whole core. Without, it carries every message: a parked thread would delay each by milliseconds, so it
/// gets its own thread if there are enough cores, else the sequencer's.
fn rewind(options: &EventStreamOptions, head: StreamRole) -> AgentSpec<AgentRole> {
    let rewind = AgentSpec::new(AgentRole::Rewind).detachable();
    // A member's thread must answer the others in time.
    if options.packets.is_some() || head.is_member() {
        return rewind;
    }
    rewind.hot().alone(options.plan != PlanKind::Min && cores_available() >= SPREADING_CORES_MIN)
}

fn assign_threads(options: &EventStreamOptions, head: StreamRole) -> Result<ThreadAssignment<AgentRole>, StreamError> {
    let mut agents = Vec::new();
    if options.packets.is_some() {
        agents.push(AgentSpec::new(AgentRole::Gateway).hot());
    }
    if options.tcp.is_some() || (options.clients.is_some() && head == StreamRole::Replica) {
        agents.push(AgentSpec::new(AgentRole::TcpGateway).hot());
    }
    let threads = &options.member_threads;
    let spins = head.is_member() && threads.spins;
    agents.push(AgentSpec::new(head.role()).hot().weight(2).cpus(options.sequencer_cpus).spins(spins));
    if options.tier != Tier::Memory && !head.is_member() {
        agents.push(AgentSpec::new(AgentRole::Journaler).detachable().hot());
    }
    if options.packets.is_some() {
        agents.push(AgentSpec::new(AgentRole::Feed).hot());
        agents.push(AgentSpec::new(AgentRole::Replayer));
    }
    if options.tcp.is_some() {
        agents.push(rewind(options, head));
    }
    match head {
        StreamRole::Relay => {}
        StreamRole::Sequencer | StreamRole::Member => agents.push(AgentSpec::new(head.answering()).hot()),
        StreamRole::Replica | StreamRole::Service => {
            let service = AgentSpec::new(head.answering()).hot().weight(2).cpus(options.service_cpus);
            // A service thread next to the member: one more hand-over for each message, but less work for each thread.
            let is_detached =
                head == StreamRole::Replica && (options.plan == PlanKind::Max || threads.detached_service);
            agents.push(if is_detached { service.detachable().alone(threads.detached_service) } else { service });
            if head == StreamRole::Replica && threads.detached_sender {
                agents.push(AgentSpec::new(AgentRole::Sender).detachable().hot().alone(true).cpus(threads.sender_cpus));
            }
        }
    }
    let callers_hot = options.callers_hot;
    let mut plan = gapless_agent::plan(options.plan, options.optimize_for, &agents, cores_available(), callers_hot);
    if matches!(head, StreamRole::Replica | StreamRole::Service) {
        for thread in &mut plan.threads {
            thread.spec.drain_ns_max = SERVICE_DRAIN_NS_MAX;
        }
    }
    ThreadAssignment::new(plan).map_err(|source| StreamError::System { action: "making a waker".to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::TcpNetwork;
    use crate::network::endpoints::PacketNetwork;
    use std::net::SocketAddr;

    fn options(plan: PlanKind) -> EventStreamOptions {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        EventStreamOptions { tcp: Some(TcpNetwork::new(any, any)), plan, ..EventStreamOptions::in_memory() }
    }

    fn shares_a_thread(options: &EventStreamOptions, head: StreamRole) -> bool {
        let plan = assign_threads(options, head).unwrap().plan;
        plan.thread_of(AgentRole::Rewind).unwrap() == plan.thread_of(head.role()).unwrap()
    }

    #[test]
    fn live_tcp_feed_is_on_the_hot_path() {
        assert!(shares_a_thread(&options(PlanKind::Min), StreamRole::Sequencer));
        assert!(shares_a_thread(&options(PlanKind::Min), StreamRole::Relay));
        assert!(!shares_a_thread(&options(PlanKind::Max), StreamRole::Sequencer));
        let has_few_cores = cores_available() < SPREADING_CORES_MIN;
        assert_eq!(shares_a_thread(&options(PlanKind::Default), StreamRole::Sequencer), has_few_cores);
    }

    #[test]
    fn late_joiners_are_off_the_hot_path() {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let by_packets = PacketNetwork::udp(address(1), address(2));
        let options = options(PlanKind::Min);
        assert!(!shares_a_thread(&options, StreamRole::Member));
        assert!(!shares_a_thread(&EventStreamOptions { packets: Some(by_packets), ..options }, StreamRole::Sequencer));
    }
}
