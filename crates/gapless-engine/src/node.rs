//! [`Node`]: one durable stream and a service on it, put together from the agents and run.

use crate::EngineError;
use crate::dead_letters::DeadLetters;
use crate::delivery::Outlets;
use crate::executor::{Delivery, Executor, ExecutorLinks};
use crate::fold::{Fold, NoSink, Policy};
use crate::recovery::{Layout, Recovered, recover};
use crate::sender;
use crate::service::Service;
use crate::snapshot::{SnapshotJournal, SnapshotSchedule};
use gapless_agent::plan::cores_available;
use gapless_agent::{
    Agent, AgentSpec, Clock, CpuMask, OptimizeFor, PlanKind, PlannedThread, ThreadGroup, ThreadPlan, ThreadSpec, Waker,
};
use gapless_journal::{Flush, Journal, JournalOptions, JournalReader, Preparer, RecoveryReport, Retention, Syncer};
use gapless_log::{MemoryKind, Scope, StreamIdentity, Window, WindowOptions};
use gapless_stream::client::ClientOptions;
use gapless_stream::doorman::{DoormanLinks, StreamDescription};
use gapless_stream::ingress::{IngressLinks, IngressShared};
use gapless_stream::journaler::Release;
use gapless_stream::mailbox::Mailbox;
use gapless_stream::syncer::SyncThread;
use gapless_stream::{Client, Doorman, Ingress, IngressOptions, Journaler, Sequencer, StreamError, Tier};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How the journal of a node is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persistence {
    /// Length of a segment in bytes, preallocated.
    pub segment_length_bytes: u64,
    /// Whether new segments are written full of zeros first.
    pub zero_initial: bool,
    /// Mapped or written; `None` chooses: mapped at tier `journal`, written at tier `sync`.
    pub flush: Option<Flush>,
    /// Length of the write buffer in bytes.
    pub write_buffer_bytes: usize,
    /// Whether every frame is put into the operating system's hands by itself, not batch by batch.
    pub flush_on_commit: bool,
    /// When old segments are deleted.
    pub retention: Retention,
}

impl Default for Persistence {
    fn default() -> Self {
        Self {
            segment_length_bytes: 256 << 20,
            zero_initial: false,
            flush: None,
            write_buffer_bytes: 8192,
            flush_on_commit: false,
            retention: Retention::default(),
        }
    }
}

/// Which agents get a thread, and which CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads {
    /// The thread plan.
    pub plan: PlanKind,
    /// Whether batches are kept small or large.
    pub optimize_for: OptimizeFor,
    /// Threads of this process that spin beside the node's: an in-process client, for instance.
    pub callers_hot: usize,
    /// Journal on a thread of its own.
    pub detach_persister: bool,
    /// Send on a thread of its own.
    pub detach_sender: bool,
    /// Messages that may wait for the detached sender.
    pub send_queue_depth: usize,
    /// CPUs of the business logic.
    pub service_cpus: Option<CpuMask>,
    /// CPUs of the detached persister.
    pub persister_cpus: Option<CpuMask>,
    /// CPUs of the detached sender.
    pub sender_cpus: Option<CpuMask>,
}

impl Default for Threads {
    fn default() -> Self {
        Self {
            plan: PlanKind::Default,
            optimize_for: OptimizeFor::Latency,
            callers_hot: 0,
            detach_persister: false,
            detach_sender: false,
            send_queue_depth: 1024,
            service_cpus: None,
            persister_cpus: None,
            sender_cpus: None,
        }
    }
}

/// How a node is run. [`NodeOptions::in_directory`] and [`NodeOptions::in_memory`] hold the defaults.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Where journal, snapshots and socket live; `None` at tier `memory` only.
    pub directory: Option<PathBuf>,
    /// How durable a frame is before the service acts on it.
    pub tier: Tier,
    /// Where other processes connect; `None` for in-process clients only.
    pub socket_path: Option<PathBuf>,
    /// How the journal is kept.
    pub persistence: Persistence,
    /// Threads and CPUs.
    pub threads: Threads,
    /// Bytes of the window, a power of two.
    pub window_bytes: usize,
    /// The longest frame, bytes; longer messages are split.
    pub frame_length_max: usize,
    /// The longest payload that a handler may send, bytes.
    pub payload_length_max: usize,
    /// Sessions without a frame for so long are closed.
    pub session_expiry: Duration,
    /// A snapshot after so many frames; `None` for none.
    pub snapshot_interval_frames: Option<u64>,
    /// A snapshot at a clean stop.
    pub snapshot_on_stop: bool,
    /// What happens to messages that no handler takes, and to handlers that panic.
    pub policy: Policy,
    /// Frames that an agent takes in one poll; `None` chooses by what is optimised for.
    pub frames_per_poll_max: Option<usize>,
}

impl NodeOptions {
    /// A durable node in `directory`, at tier `journal`, listening on `node.socket` there.
    #[must_use]
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        let socket_path = Some(Layout::new(&directory).socket());
        Self { directory: Some(directory), tier: Tier::Journal, socket_path, ..Self::in_memory() }
    }

    /// A node without a disk, at tier `memory`, for in-process clients.
    #[must_use]
    pub fn in_memory() -> Self {
        Self {
            directory: None,
            tier: Tier::Memory,
            socket_path: None,
            persistence: Persistence::default(),
            threads: Threads::default(),
            window_bytes: 4 << 20,
            frame_length_max: 64 << 10,
            payload_length_max: 1 << 20,
            session_expiry: Duration::from_secs(24 * 3600),
            snapshot_interval_frames: Some(10_000_000),
            snapshot_on_stop: true,
            policy: Policy::default(),
            frames_per_poll_max: None,
        }
    }

    fn check(&self) -> Result<(), EngineError> {
        let refuse = |option, reason: &str| Err(EngineError::Option { option, reason: reason.to_owned() });
        if self.tier != Tier::Memory && self.directory.is_none() {
            return refuse("directory", "the tiers journal and sync need one");
        }
        if !(gapless_wire::HEADER_LENGTH + 64..=gapless_wire::descriptor::FRAME_LENGTH_MAX)
            .contains(&self.frame_length_max)
        {
            return refuse("frame_length_max", "it must lie between 128 bytes and 1 MiB");
        }
        if self.snapshot_interval_frames == Some(0) {
            return refuse("snapshot_interval_frames", "0 frames; leave it out for no snapshots");
        }
        if self.threads.send_queue_depth == 0 {
            return refuse("send_queue_depth", "a queue of 0 messages");
        }
        Ok(())
    }

    fn frames_per_poll(&self) -> usize {
        self.frames_per_poll_max.unwrap_or(match self.threads.optimize_for {
            OptimizeFor::Latency => 16,
            OptimizeFor::Throughput => 128,
        })
    }
}

/// A running node.
pub struct Node {
    threads: Option<ThreadGroup>,
    doorman: Option<Doorman>,
    sync_thread: Option<SyncThread>,
    preparer: Option<(Preparer, JoinHandle<()>)>,
    ingress: Arc<IngressShared>,
    window: Window,
    handled: Arc<AtomicU64>,
    dead_letters: Arc<AtomicU64>,
    recovered: Recovered,
    journal_report: Option<RecoveryReport>,
    plan: ThreadPlan,
    tier: Tier,
}

/// A clean stop may take this long: what was taken is handled, and a last snapshot written.
const DRAIN_NS_MAX: u64 = 600_000_000_000;
/// Mailboxes hold this many messages.
const MAILBOX_MESSAGES: usize = 4096;

/// The agents' threads: which, and how each is woken.
struct Seats {
    plan: ThreadPlan,
    wakers: Vec<Waker>,
}

impl Seats {
    fn new(options: &NodeOptions) -> Result<Self, EngineError> {
        let threads = &options.threads;
        let is_durable = options.tier != Tier::Memory;
        // All of them are on the path of a message. The weights are their shares of its time.
        let mut agents = vec![AgentSpec::new("sequencer").hot()];
        if is_durable {
            agents.push(AgentSpec::new("journaler").detachable().hot().cpus(threads.persister_cpus));
        }
        agents.push(AgentSpec::new("service").hot().weight(2).cpus(threads.service_cpus));
        if threads.detach_sender || threads.plan == PlanKind::Max {
            agents.push(AgentSpec::new("sender").detachable().hot().cpus(threads.sender_cpus));
        }
        let mut plan =
            gapless_agent::plan(threads.plan, threads.optimize_for, &agents, cores_available(), threads.callers_hot);
        if threads.detach_persister {
            detach(&mut plan, "journaler", &threads.persister_cpus);
        }
        if threads.detach_sender {
            detach(&mut plan, "sender", &threads.sender_cpus);
        }
        for thread in &mut plan.threads {
            thread.spec.drain_ns_max = DRAIN_NS_MAX;
        }
        let wakers = plan.threads.iter().map(|_| Waker::new()).collect::<Result<_, _>>();
        Ok(Self { wakers: wakers.map_err(EngineError::system("making a waker"))?, plan })
    }

    fn seat(&self, agent: &str) -> Option<usize> {
        self.plan.threads.iter().position(|thread| thread.agents.iter().any(|name| name == agent))
    }

    fn waker(&self, agent: &str) -> Waker {
        let seat = self.seat(agent).expect("the plan seats every agent");
        self.wakers[seat].clone()
    }

    /// The wakers of `agents` that sit on another thread than `from` (`None`: a helper thread).
    fn downstream(&self, from: Option<&str>, agents: &[&str]) -> Vec<Waker> {
        let own = from.and_then(|from| self.seat(from));
        let mut seats: Vec<usize> = agents.iter().filter_map(|agent| self.seat(agent)).collect();
        seats.dedup();
        seats.into_iter().filter(|seat| Some(*seat) != own).map(|seat| self.wakers[seat].clone()).collect()
    }
}

/// Gives an agent a thread of its own, unless it has one.
fn detach(plan: &mut ThreadPlan, agent: &str, cpus: &Option<CpuMask>) {
    let Some(thread) = plan.threads.iter_mut().find(|thread| thread.agents.iter().any(|name| name == agent)) else {
        return;
    };
    if thread.agents.len() > 1 {
        thread.agents.retain(|name| name != agent);
        let mut spec = ThreadSpec::new(agent);
        spec.cpus.clone_from(cpus);
        plan.threads.push(PlannedThread { spec, agents: vec![agent.to_owned()] });
    }
}

/// A journal that was opened, and what was found there.
struct Opened {
    journal: Journal,
    report: RecoveryReport,
    identity: StreamIdentity,
}

fn open_journal(layout: &Layout, options: &NodeOptions) -> Result<Opened, EngineError> {
    let directory = layout.journal();
    std::fs::create_dir_all(&directory).map_err(EngineError::system(format!("making {}", directory.display())))?;
    let stream_id = match JournalReader::open(&directory) {
        Ok(reader) if reader.stream_id() != 0 => reader.stream_id(),
        // Whatever is wrong with it, opening it for writing says so.
        _ => random_u128()?,
    };
    let persistence = &options.persistence;
    let mut journal = JournalOptions::new(&directory, stream_id);
    journal.segment_length_bytes = persistence.segment_length_bytes;
    journal.zero_initial = persistence.zero_initial;
    journal.flush = persistence.flush.unwrap_or(match options.tier {
        Tier::Sync => Flush::Write,
        _ => Flush::Mapped,
    });
    journal.write_buffer_bytes = persistence.write_buffer_bytes;
    journal.flush_on_commit = persistence.flush_on_commit;
    journal.retention = persistence.retention;
    journal.frame_length_max = options.frame_length_max;
    if options.tier == Tier::Sync {
        journal.populate_ahead_bytes = 0;
    }
    let (journal, report) = Journal::open(journal)?;
    let identity = StreamIdentity { stream_id, incarnation: journal.incarnation() };
    Ok(Opened { journal, report, identity })
}

fn random_u128() -> Result<u128, EngineError> {
    let mut bytes = [0u8; 16];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| EngineError::system("drawing a random number")(errno.into()))?;
    assert_eq!(filled, bytes.len(), "the kernel fills requests of up to 256 bytes whole");
    Ok(u128::from_le_bytes(bytes).max(1))
}

/// The journal as snapshots need it.
struct JournalBelow {
    syncer: Syncer,
    preparer: Preparer,
}

impl SnapshotJournal for JournalBelow {
    fn sync(&mut self) -> Result<(), EngineError> {
        self.syncer.sync()?;
        Ok(())
    }

    fn covered(&mut self, sequence: u64) {
        self.preparer.set_snapshot_sequence(sequence);
    }
}

impl Node {
    /// Recovers what `options.directory` holds, and starts: when this returns, clients can connect.
    ///
    /// # Errors
    /// Options that make no sense, a directory in use, damage, no threads or memory.
    pub fn start<S: Service>(service: S, options: NodeOptions) -> Result<Self, EngineError> {
        options.check()?;
        let mut fold = Fold::new(service, options.policy.clone(), options.payload_length_max);
        let mut sequencer = Sequencer::new(options.session_expiry.as_nanos().min(u128::from(u64::MAX)) as u64);
        let layout = options.directory.as_deref().map(Layout::new);
        let mut opened = None;
        let mut recovered = Recovered::default();
        let mut identity = StreamIdentity { stream_id: random_u128()?, incarnation: random_u128()? as u64 };
        let mut dead_letters = DeadLetters::counting();
        if let Some(layout) = &layout {
            let root = layout.root();
            std::fs::create_dir_all(root).map_err(EngineError::system(format!("making {}", root.display())))?;
        }
        if let (Some(layout), true) = (&layout, options.tier != Tier::Memory) {
            let mut found = open_journal(layout, &options)?;
            identity = found.identity;
            let last = Some(found.journal.last_sequence());
            recovered = recover(layout, identity, &mut fold, &mut sequencer, &mut NoSink, last, u64::MAX)?;
            if recovered.incomplete_from.is_some() {
                found.journal.truncate_after(recovered.last_sequence)?;
            }
            dead_letters = DeadLetters::open(layout.root())?;
            opened = Some(found);
        }
        let seats = Seats::new(&options)?;
        let window_options = WindowOptions {
            memory: MemoryKind::Anonymous,
            capacity_bytes: options.window_bytes,
            index_slots: (options.window_bytes / 128).next_power_of_two(),
            frame_length_max: options.frame_length_max,
            identity,
        };
        let (mut writer, releaser) = window_options.create(recovered.last_sequence + 1)?;
        let window = writer.window();
        let journal_cursor = opened.is_some().then(|| writer.gating_cursor(Scope::Appended));
        let service_cursor = writer.gating_cursor(Scope::Released);

        let doorman_links = DoormanLinks {
            ingress: Mailbox::new(MAILBOX_MESSAGES),
            delivery: Mailbox::new(MAILBOX_MESSAGES),
            ingress_waker: seats.waker("sequencer"),
            delivery_waker: seats.waker(if seats.seat("sender").is_some() { "sender" } else { "service" }),
        };
        let for_service = Mailbox::new(MAILBOX_MESSAGES);
        let for_sequencer = Mailbox::new(MAILBOX_MESSAGES);
        let frames_per_poll_max = options.frames_per_poll();

        let mut agents: Vec<Box<dyn Agent>> = Vec::new();
        let (mut ingress_releaser, mut journal_releaser) = (None, None);
        match &opened {
            None => ingress_releaser = Some(releaser),
            Some(_) => journal_releaser = Some(releaser),
        }
        let ingress = Ingress::new(
            sequencer,
            writer,
            ingress_releaser,
            IngressLinks {
                publishers: doorman_links.ingress.clone(),
                service: for_service.clone(),
                requests: for_sequencer.clone(),
                downstream: seats.downstream(Some("sequencer"), &["journaler", "service"]),
            },
            IngressOptions { frames_per_poll_max },
        );
        let ingress_shared = ingress.shared();
        agents.push(Box::new(ingress));

        let (mut sync_thread, mut preparer, mut snapshots, mut journal_report) = (None, None, None, None);
        if let (Some(opened), Some(cursor), Some(releaser)) = (opened, journal_cursor, journal_releaser) {
            let Opened { journal, report, .. } = opened;
            journal_report = Some(report);
            let layout = layout.as_ref().expect("a journal has a directory");
            if let Some(interval) = options.snapshot_interval_frames {
                let below = JournalBelow { syncer: journal.syncer(), preparer: journal.preparer() };
                let (directory, on_stop) = (layout.snapshots(), options.snapshot_on_stop);
                let at = recovered.snapshot_sequence;
                let schedule = SnapshotSchedule::start(directory, identity, at, interval, on_stop, below)?;
                below_snapshot(&journal, recovered.snapshot_sequence);
                snapshots = Some(schedule);
            }
            preparer = Some(start_preparer(journal.preparer())?);
            let release = if options.tier == Tier::Sync {
                let woken = seats.downstream(None, &["service", "journaler"]);
                let (thread, requests) = SyncThread::start(journal.syncer(), releaser, woken)?;
                sync_thread = Some(thread);
                Release::WhenSynced(requests)
            } else {
                Release::WhenJournaled(releaser)
            };
            let downstream = seats.downstream(Some("journaler"), &["service"]);
            let batch_bytes_max = if options.persistence.flush_on_commit { 1 } else { JOURNAL_BATCH_BYTES };
            agents.push(Box::new(Journaler::new(cursor, journal, release, downstream, batch_bytes_max)));
        }

        let outlets = Outlets::new(doorman_links.delivery.clone(), options.frame_length_max);
        let mut sender_agent = None;
        let delivery = if seats.seat("sender").is_some() {
            let depth = options.threads.send_queue_depth;
            let queue_bytes = (depth * 4096).clamp(1 << 20, 1 << 26).next_power_of_two();
            let (queue, sender) = sender::detached(outlets, depth, queue_bytes, seats.waker("sender"))?;
            sender_agent = Some(sender);
            Delivery::Detached(queue)
        } else {
            Delivery::Direct(outlets)
        };
        let dead_letter_count = dead_letters.count();
        let executor = Executor::new(
            fold,
            ExecutorLinks {
                cursor: service_cursor,
                window: window.clone(),
                delivery,
                sequencer: for_sequencer,
                from_sequencer: for_service,
                dead_letters,
                snapshots,
                frames_per_poll_max,
            },
        );
        let handled = executor.handled();
        agents.push(Box::new(executor));
        if let Some(sender) = sender_agent {
            agents.push(Box::new(sender));
        }

        let (clock, why_not_tsc) = Clock::fastest();
        if let Some(reason) = why_not_tsc {
            tracing::info!(reason, "time is read from the operating system");
        }
        let description = StreamDescription {
            identity,
            frame_length_max: options.frame_length_max,
            message_length_max: options.window_bytes / 2,
            tier: options.tier,
        };
        let threads = ThreadGroup::launch(&seats.plan, agents, &clock, seats.wakers)?;
        // Last: whoever connects finds everything running.
        let doorman = Doorman::start(options.socket_path.as_deref(), description, doorman_links)?;
        Ok(Self {
            threads: Some(threads),
            doorman: Some(doorman),
            sync_thread,
            preparer,
            ingress: ingress_shared,
            window,
            handled,
            dead_letters: dead_letter_count,
            recovered,
            journal_report,
            plan: seats.plan,
            tier: options.tier,
        })
    }

    /// A client inside this process.
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory for them.
    pub fn connect(&self, options: ClientOptions) -> Result<Client, StreamError> {
        let doorman = self.doorman.as_ref().expect("a node has its doorman until it stops");
        Client::connect_local(doorman, options)
    }

    /// Where other processes connect.
    #[must_use]
    pub fn socket_path(&self) -> Option<&Path> {
        self.doorman.as_ref().and_then(Doorman::socket_path)
    }

    /// What recovery did at the start.
    #[must_use]
    pub const fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// What the journal found at the start, and what it cut.
    #[must_use]
    pub const fn journal_report(&self) -> Option<&RecoveryReport> {
        self.journal_report.as_ref()
    }

    /// How durable a reply is.
    #[must_use]
    pub const fn tier(&self) -> Tier {
        self.tier
    }

    /// The threads and what the plan says of them.
    #[must_use]
    pub const fn plan(&self) -> &ThreadPlan {
        &self.plan
    }

    /// What pinning the threads could not do.
    #[must_use]
    pub fn pin_warnings(&self) -> Vec<String> {
        self.threads.as_ref().map(ThreadGroup::pin_warnings).unwrap_or_default()
    }

    /// CPU time of the node's agent threads so far, ns.
    #[must_use]
    pub fn cpu_time_ns(&self) -> u64 {
        let threads = self.threads.as_ref().map_or(&[][..], ThreadGroup::threads);
        threads.iter().filter_map(|thread| thread.cpu_time_ns()).sum()
    }

    /// The last sequence that has reached the tier.
    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.window.released_sequence()
    }

    /// The last sequence that the service has handled.
    #[must_use]
    pub fn handled_sequence(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }

    /// Commands that no handler took, since the start.
    #[must_use]
    pub fn dead_letter_count(&self) -> u64 {
        self.dead_letters.load(Ordering::Relaxed)
    }

    /// Frames recognised as repeats, since the start.
    #[must_use]
    pub fn repeated_count(&self) -> u64 {
        self.ingress.frames_repeated.load(Ordering::Relaxed)
    }

    /// Why the node has stopped by itself, if it has.
    #[must_use]
    pub fn failure(&self) -> Option<EngineError> {
        let failure = self.threads.as_ref()?.failures().failure()?;
        Some(EngineError::Stopped(failure))
    }

    /// Stops cleanly: takes no more input, handles what was taken, writes a snapshot if that was asked
    /// for. Returns the last sequence.
    ///
    /// # Errors
    /// What made the node stop by itself, before or now.
    pub fn stop(mut self) -> Result<u64, EngineError> {
        self.end()?;
        Ok(self.handled_sequence())
    }

    fn end(&mut self) -> Result<(), EngineError> {
        let Some(threads) = self.threads.take() else { return Ok(()) };
        // Release: pairs with the Acquire in Ingress::poll.
        self.ingress.stopped.store(true, Ordering::Release);
        while !self.ingress.halted.load(Ordering::Acquire) && !threads.failures().has_failed() {
            threads.threads().iter().for_each(|thread| thread.waker().wake());
            std::thread::sleep(Duration::from_micros(200));
        }
        let ended = threads.stop_and_join().map_err(EngineError::Stopped);
        self.doorman = None;
        self.sync_thread = None;
        if let Some((preparer, thread)) = self.preparer.take() {
            preparer.end();
            // A panic of the thread has been reported by its message already.
            let _ = thread.join();
        }
        ended
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::error!(%error, "a node that was dropped had failed");
        }
    }
}

/// Frames journaled at once before they are released.
const JOURNAL_BATCH_BYTES: usize = 64 << 10;

fn below_snapshot(journal: &Journal, sequence: u64) {
    if sequence > 0 {
        journal.set_snapshot_sequence(sequence);
    }
}

fn start_preparer(preparer: Preparer) -> Result<(Preparer, JoinHandle<()>), EngineError> {
    let for_thread = preparer.clone();
    let run = move || {
        if let Err(error) = for_thread.run() {
            // The journal's writer finds the same fault where it matters, and stops the node.
            tracing::error!(%error, "the journal cannot be prepared ahead");
        }
    };
    let thread = std::thread::Builder::new()
        .name("gapless-prepare".to_owned())
        .spawn(run)
        .map_err(EngineError::system("starting the preparing thread"))?;
    Ok((preparer, thread))
}
