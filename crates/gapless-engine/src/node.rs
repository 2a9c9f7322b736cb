//! [`Node`]: one durable stream and a service on it, event-sourced or state-replicated, put together from the agents and run.

use crate::dead_letters::DeadLetters;
use crate::executor::{Delivery, End, Executor, ExecutorCounters, ExecutorLinks};
use crate::fold::{DeadLettersOnly, Fold, Sink};
use crate::node_journal::JournalBelow;
use crate::options::NodeOptions;
use crate::output_record::Recorded;
use crate::recovery::{Recovered, recover};
use crate::service::Service;
use crate::snapshot_schedule::{SnapshotRequests, SnapshotRules, SnapshotSchedule};
use crate::state::follower::{Follower, StateViews};
use crate::state::{StateService, make_of};
use crate::store::Store;
use crate::{EngineError, seats, sender, snapshot};
use gapless_agent::{Agent, Clock, CounterView, Counters, Pauses, ThreadGroup, ThreadPlan};
use gapless_client::client::ClientOptions;
use gapless_client::stream_layout::StreamLayout;
use gapless_client::{Client, ClientError};
use gapless_journal::RecoveryReport;
use gapless_log::{MemoryKind, Scope, StreamIdentity, Window, WindowOptions};
use gapless_stream::acceptor::{AcceptorLinks, StreamDescription};
use gapless_stream::egress::Egress;
use gapless_stream::ingress::{IngressCounters, IngressLinks, IngressShared};
use gapless_stream::journaler::{JournalerCounters, Release};
use gapless_stream::past::Past;
use gapless_stream::persistence::{OpenedJournal, Opening};
use gapless_stream::preparing::PreparerThread;
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::syncer::SyncThread;
use gapless_stream::taken_directory::{Owner, TakenDirectory};
use gapless_stream::{Acceptor, Ingress, IngressOptions, Journaler, Sequencer};
use gapless_transport::Tier;
use gapless_transport::mailbox::Mailbox;
use gapless_transport::token::random_token;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A running node.
pub struct Node {
    threads: Option<ThreadGroup>,
    acceptor: Option<Acceptor>,
    sync_thread: Option<SyncThread>,
    preparer: Option<PreparerThread>,
    ingress: Arc<IngressShared>,
    window: Window,
    snapshots: Option<SnapshotRequests>,
    counters: Counters,
    handled: CounterView,
    repeated: CounterView,
    dead_letters: CounterView,
    /// Of a state-replicated service.
    state: Option<StateViews>,
    recovered: Recovered,
    journal_report: Option<RecoveryReport>,
    plan: ThreadPlan,
    tier: Tier,
    /// Behind all that writes there.
    _directory: Option<TakenDirectory>,
}

/// Mailboxes hold this many messages.
const MAILBOX_MESSAGES: usize = 4096;
/// The term of a stream without a cluster.
const NO_TERM: u64 = 0;
/// Room for the counters of a node and of the application in it.
const COUNTERS_MAX: usize = 64;
/// Frames journaled at once before they are released.
const JOURNAL_BATCH_BYTES: usize = 64 << 10;

impl Node {
    /// Recovers what `options.directory` holds, and starts: when this returns, clients can connect.
    ///
    /// # Errors
    /// Options that make no sense, a directory in use, damage, no threads or memory.
    pub fn start<S: Service>(service: S, options: NodeOptions) -> Result<Self, EngineError> {
        options.check()?;
        Self::start_fold(Fold::new(service, options.policy.clone()), options)
    }

    /// As [`Node::start`], of a state-replicated service ([`crate::state`]), which needs no cluster: its handlers run before
    /// their commands enter the stream, once, and what enters is what they did. A restart runs none of them again. `make`
    /// declares the collections and gives the service that knows them.
    ///
    /// ```
    /// use gapless_engine::store::{Counter, Store};
    /// use gapless_engine::{Node, NodeOptions, StateHandlers, StateService};
    /// use gapless_schema::Encoding;
    /// use gapless_client::ClientOptions;
    /// use gapless_client::client::MessageType;
    /// use gapless_transport::token::random_token;
    /// use std::time::{Duration, SystemTime};
    ///
    /// const CALL: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
    ///
    /// /// Counts its calls, and says what the clock said. No two runs of its handler do the same.
    /// struct Clock {
    ///     calls: Counter,
    /// }
    ///
    /// impl StateService for Clock {
    ///     fn handlers(handlers: &mut StateHandlers<Self>) {
    ///         handlers.on_bytes(CALL.schema, |clock: &Self, store, payload, context| {
    ///             store.add(clock.calls, 1)?;
    ///             if payload.is_empty() {
    ///                 // The call is not counted: a refusal takes back what was done before.
    ///                 return Err("an empty call".into());
    ///             }
    ///             let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    ///             context.reply_with(CALL, &[store.value(clock.calls) as u64, seconds].map(u64::to_le_bytes).concat())
    ///         });
    ///     }
    /// }
    ///
    /// let make = |store: &mut Store| Clock { calls: store.counter(1, "calls") };
    /// let node = Node::start_state(make, NodeOptions::in_memory())?;
    /// let mut client = node.connect(ClientOptions::default())?;
    /// let session = client.open_session(random_token(), 16)?;
    /// assert!(client.call(session, CALL, b"", Duration::from_secs(5)).is_err());
    /// let reply = client.call(session, CALL, b"now", Duration::from_secs(5))?;
    /// assert_eq!(reply.payload[..8], 1u64.to_le_bytes());
    /// node.stop()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Node::start`]; [`EngineError::Option`] for a policy that such a service has no use for: nothing stops it.
    pub fn start_state<S: StateService>(
        make: impl Fn(&mut Store) -> S + Send + Sync + 'static,
        options: NodeOptions,
    ) -> Result<Self, EngineError> {
        options.check_of_state()?;
        let follower = Follower::new(make_of(make), options.state_limits);
        Self::start_fold(Fold::of_transactions(Box::new(follower)), options)
    }

    fn start_fold(mut fold: Fold, options: NodeOptions) -> Result<Self, EngineError> {
        let expiry_ns = options.session_expiry.as_nanos().min(u128::from(u64::MAX)) as u64;
        let mut sequencer = Sequencer::new(SequencerRules::of_service(expiry_ns));
        let directory =
            options.directory.as_deref().map(|root| TakenDirectory::take(StreamLayout::new(root))).transpose()?;
        directory.as_ref().map_or(Ok(()), |directory| directory.check_owner(Owner::Stream))?;
        let layout = directory.as_ref().map(TakenDirectory::layout);
        let (mut opened, mut record) = (None, None);
        let mut recovered = Recovered::default();
        let mut identity = StreamIdentity { stream_id: random_token(), incarnation: random_token() as u64 };
        let mut dead_letters = DeadLetters::counting();
        if let (Some(layout), true) = (layout, options.tier != Tier::Memory) {
            let points = snapshot::points(&layout.snapshots())?;
            let opening = Opening { points, ..Opening::new(options.tier, options.frame_length_max) };
            let mut found = options.persistence.open(&layout.journal(), opening)?;
            identity = found.identity;
            let mut recorded = Recorded::read(layout.root(), identity)?;
            dead_letters = DeadLetters::open(layout.root(), found.journal.last_sequence())?;
            let mut sink = DeadLettersOnly(&mut dead_letters);
            let replayed = (&mut sink as &mut dyn Sink, Some(&mut recorded));
            recovered = recover(layout, identity, &mut fold, &mut sequencer, replayed, u64::MAX)?;
            record = Some(recorded.go_on_behind(&fold, &layout.snapshots())?);
            if recovered.incomplete_from.is_some() {
                found.journal.truncate_after(recovered.last_sequence)?;
            }
            opened = Some(found);
        }
        let counters = match layout {
            Some(layout) => Counters::create(layout.counters(), COUNTERS_MAX)?,
            None => Counters::in_memory(COUNTERS_MAX)?,
        };
        let seats = seats::of_node(&options)?;
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

        let acceptor_links = AcceptorLinks {
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
        let ingress_counters = IngressCounters::add_to(&counters)?;
        let repeated = ingress_counters.frames_repeated.view();
        let mut ingress = Ingress::new(
            sequencer,
            writer,
            ingress_releaser,
            IngressLinks {
                publishers: acceptor_links.ingress.clone(),
                service: for_service.clone(),
                requests: for_sequencer.clone(),
                downstream: seats.downstream(Some("sequencer"), &["journaler", "service"]),
                counters: ingress_counters,
            },
            IngressOptions {
                frames_per_poll_max,
                message_bytes_max: options.window_bytes / 2,
                ..IngressOptions::default()
            },
        );
        let mut state = None;
        if let Some(follower) = Follower::in_fold(&mut fold) {
            ingress = ingress.running_ahead(Box::new(follower.ahead(seats.waker("sequencer"))));
            // There is no other: it asks for the state now, and takes nothing before that is there.
            ingress.lead(NO_TERM)?;
            state = Some(follower.attach(seats.waker("service"), &counters)?);
        }
        let ingress_shared = ingress.shared();
        agents.push(Box::new(ingress));

        let (mut sync_thread, mut preparer, mut snapshots, mut journal_report) = (None, None, None, None);
        if let (Some(opened), Some(cursor), Some(releaser)) = (opened, journal_cursor, journal_releaser) {
            let OpenedJournal { journal, report, .. } = opened;
            journal_report = Some(report);
            let layout = layout.expect("a journal has a directory");
            let rules = SnapshotRules {
                interval_frames: options.snapshot_interval_frames,
                on_stop: options.snapshot_on_stop && options.snapshot_interval_frames.is_some(),
            };
            let at = recovered.snapshot_sequence;
            let below = JournalBelow::new(&journal, at);
            let woken = seats.waker("service");
            snapshots = Some(SnapshotSchedule::start(layout.snapshots(), identity, at, rules, below, woken)?);
            preparer = Some(PreparerThread::start(journal.preparer())?);
            let release = if options.tier == Tier::Sync {
                let woken = seats.downstream(None, &["service", "journaler"]);
                let last_sequence = counters.add("sync.last_sequence")?;
                let (thread, requests) = SyncThread::start(journal.syncer(), releaser, woken, last_sequence)?;
                sync_thread = Some(thread);
                Release::WhenSynced(requests)
            } else {
                Release::WhenJournaled(releaser)
            };
            let downstream = seats.downstream(Some("journaler"), &["service"]);
            let batch_bytes_max = if options.persistence.flush_on_commit { 1 } else { JOURNAL_BATCH_BYTES };
            let counted = JournalerCounters::add_to(&counters)?;
            agents.push(Box::new(Journaler::new(cursor, journal, release, downstream, batch_bytes_max, counted)));
        }

        let egress = Egress::new(acceptor_links.delivery.clone(), options.frame_length_max);
        let mut sender_agent = None;
        let delivery = if seats.seat("sender").is_some() {
            let depth = options.threads.send_queue_depth;
            // At least the longest output, of which a ring takes half its length.
            let queue_bytes = (depth * 4096).clamp(4 << 20, 1 << 26).next_power_of_two();
            let (queue, sender) = sender::detached(egress, depth, queue_bytes, seats.waker("sender"))?;
            sender_agent = Some(sender);
            Delivery::Detached(queue)
        } else {
            Delivery::Direct(egress)
        };
        let executor_counters = ExecutorCounters::add_to(&counters, &recovered)?;
        let (handled, dead_letter_count) = executor_counters.views();
        let (snapshots, snapshot_requests) = snapshots.unzip();
        let executor = Executor::new(
            fold,
            ExecutorLinks {
                hashes: None,
                record,
                cursor: service_cursor,
                window: window.clone(),
                end: End::Appended,
                delivery,
                sequencer: for_sequencer,
                from_sequencer: for_service,
                dead_letters,
                snapshots,
                frames_per_poll_max,
                counters: executor_counters,
            },
        );
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
        let journal = layout.filter(|_| options.tier != Tier::Memory).map(StreamLayout::journal);
        let past = Some(Past::new(window.clone(), journal, false));
        let acceptor = Acceptor::start(options.socket_path.as_deref(), description, acceptor_links, None, None, past)?;
        Ok(Self {
            threads: Some(threads),
            acceptor: Some(acceptor),
            sync_thread,
            preparer,
            ingress: ingress_shared,
            window,
            snapshots: snapshot_requests,
            counters,
            handled,
            repeated,
            dead_letters: dead_letter_count,
            state,
            recovered,
            journal_report,
            plan: seats.plan,
            tier: options.tier,
            _directory: directory,
        })
    }

    /// A client inside this process.
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory for them.
    pub fn connect(&self, options: ClientOptions) -> Result<Client, ClientError> {
        let acceptor = self.acceptor.as_ref().expect("a node has its acceptor until it stops");
        acceptor.client(options)
    }

    /// Where other processes connect.
    #[must_use]
    pub fn socket_path(&self) -> Option<&Path> {
        self.acceptor.as_ref().and_then(Acceptor::socket_path)
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

    /// How long each of the node's threads, in the order of its plan, was kept from running while it spun, so far:
    /// by an interrupt, another thread or the hypervisor.
    #[must_use]
    pub fn pauses(&self) -> Vec<Pauses> {
        self.threads.as_ref().map(ThreadGroup::pauses).unwrap_or_default()
    }

    /// The last sequence that has reached the tier.
    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.window.released_sequence()
    }

    /// The last sequence that the service has handled.
    #[must_use]
    pub fn handled_sequence(&self) -> u64 {
        self.handled.get()
    }

    /// Commands that no handler took, since the start.
    #[must_use]
    pub fn dead_letter_count(&self) -> u64 {
        self.dead_letters.get()
    }

    /// The hash of a state-replicated service's state behind [`Node::handled_sequence`]; `None` of an event-sourced service,
    /// whose state is its own.
    #[must_use]
    pub fn state_hash(&self) -> Option<u64> {
        self.state.as_ref().map(|state| state.hash.get())
    }

    /// Frames recognised as repeats, since the start.
    #[must_use]
    pub fn repeated_count(&self) -> u64 {
        self.repeated.get()
    }

    /// The node's counters, which other processes read from the file `counters` of its directory; an
    /// application adds its own.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Takes a snapshot of everything handled so far and waits until it is on the device. Returns the
    /// sequence that it stands at.
    ///
    /// # Errors
    /// A node at tier `memory`, a snapshot that cannot be written, a node that has failed.
    pub fn snapshot(&self) -> Result<u64, EngineError> {
        let Some(requests) = &self.snapshots else {
            let reason = "a node at tier memory keeps nothing that a snapshot could be part of".to_owned();
            return Err(EngineError::Option { option: "tier", reason });
        };
        requests.take(|| self.failure())
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
        self.acceptor = None;
        self.sync_thread = None;
        self.preparer = None;
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
