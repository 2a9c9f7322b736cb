//! `ServiceHost`: one durable stream with an event-sourced or state-replicated service, assembled from the agents and
//! run.

use crate::dead_letters::DeadLetters;
use crate::executor::{Executor, ExecutorCounters, ExecutorLinks, ReplyDelivery, StopPosition};
use crate::fold::{DeadLettersOnly, Fold, Sink};
use crate::host_journal::HostJournal;
use crate::options::ServiceHostOptions;
use crate::output_record::{OutputRecord, RecordedOutputs};
use crate::recovery::{RecoverySummary, recover};
use crate::sender::ReplySender;
use crate::service::Service;
use crate::snapshot_schedule::{SnapshotRequests, SnapshotRules, SnapshotSchedule};
use crate::state::transaction_applier::{StateViews, TransactionApplier};
use crate::state::{StateService, factory_of};
use crate::store::Store;
use crate::transaction_service::{ReleasedTransactions, TransactionService, WriterParts};
use crate::{EngineError, sender, snapshot, thread_assignment};
use gapless_agent::monotonic::saturating_ns;
use gapless_agent::progress::{ProgressCounter, WaitResult};
use gapless_agent::{Agent, AgentFailure, Clock, CounterView, Counters, Now, Pauses, ThreadPlan, Waker};
use gapless_client::polled::ClientOptions;
use gapless_client::replay_merge::ReplayMerge;
use gapless_client::stream_layout::StreamLayout;
use gapless_client::{ClientError, PolledClient};
use gapless_journal::{RecoveryReport, SegmentPreparer};
use gapless_log::{Releaser, Scope, StreamIdentity, Window, WindowWriter};
use gapless_stream::event_stream::builder::{Journaling, StreamBuilder, StreamRole};
use gapless_stream::event_stream::{EventStream, StreamRecovery};
use gapless_stream::ingress::{IngressCounters, IngressLinks};
use gapless_stream::locked_directory::{DirectoryOwner, LockedDirectory};
use gapless_stream::manual_time::{ManualTime, TimeStep};
use gapless_stream::messages::SequencerRequest;
use gapless_stream::persistence::{JournalParameters, OpenedJournal};
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::transactions::Transactions;
use gapless_stream::{AgentRole, Ingress, IngressOptions, Sequencer, StreamError};
use gapless_transport::Tier;
use gapless_transport::mailbox::Mailbox;
use gapless_transport::token::random_token;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A service with a stream of its own, in this process.
pub struct ServiceHost {
    stream: EventStream,
    snapshots: Option<SnapshotRequests>,
    handled: CounterView,
    progress: Arc<ProgressCounter>,
    time_steps: Option<Mutex<Receiver<TimeStep>>>,
    repeated: CounterView,
    dead_letters: CounterView,
    state: Option<StateViews>,
    recovered: RecoverySummary,
    requests: (Mailbox<SequencerRequest>, Waker),
    versions: RangeInclusive<u32>,
    /// `None` without a journal.
    preparer: Option<SegmentPreparer>,
}

const NO_TERM: u64 = 0;

impl ServiceHost {
    /// Recovers `options.directory` and starts; clients can connect when this returns.
    ///
    /// # Errors
    /// Invalid options, a directory in use, damage, no threads or memory.
    pub fn start<S: Service>(service: S, options: ServiceHostOptions) -> Result<Self, EngineError> {
        options.check()?;
        Self::start_fold(Fold::new(service, options.policy.clone()), options)
    }

    /// Starts like [`ServiceHost::start`], a state-replicated service, which needs no cluster. Its handlers run once,
    /// before their commands enter the stream, which gets their effects. `make` declares the collections and returns
    /// the service.
    ///
    /// ```
    /// # mod gapless {
    /// #     pub use gapless_engine::store;
    /// #     pub mod prelude {
    /// #         pub use gapless_client::{ClientOptions, polled::MessageType};
    /// #         pub use gapless_engine::{ServiceHost, ServiceHostOptions, StateHandlers, StateService};
    /// #         pub use gapless_schema::Encoding;
    /// #         pub use gapless_transport::token::random_token;
    /// #         pub use std::time::Duration;
    /// #     }
    /// # }
    /// use gapless::prelude::*;
    /// use gapless::store::{Counter, Store};
    /// use std::time::SystemTime;
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
    ///                 // The call is not counted: a refusal undoes the changes before it.
    ///                 return Err("an empty call".into());
    ///             }
    ///             let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
    ///             context.reply_with(CALL, &[store.value(clock.calls) as u64, seconds].map(u64::to_le_bytes).concat())
    ///         });
    ///     }
    /// }
    ///
    /// let make = |store: &mut Store| Clock { calls: store.counter(1, "calls") };
    /// let host = ServiceHost::start_state(make, ServiceHostOptions::in_memory())?;
    /// let mut client = host.connect(ClientOptions::default())?;
    /// let session = client.open_session(random_token(), 16)?;
    /// assert!(client.call(session, CALL, b"", Duration::from_secs(5)).is_err());
    /// let reply = client.call(session, CALL, b"now", Duration::from_secs(5))?;
    /// assert_eq!(reply.payload[..8], 1u64.to_le_bytes());
    /// host.stop()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`ServiceHost::start`]; [`EngineError::Option`] for a policy that stops the service, which this kind does
    /// not support.
    pub fn start_state<S: StateService>(
        make: impl Fn(&mut Store) -> S + Send + Sync + 'static,
        options: ServiceHostOptions,
    ) -> Result<Self, EngineError> {
        options.check_of_state()?;
        let applier = TransactionApplier::new(factory_of(make), options.state_limits);
        Self::start_fold(Fold::applying_transactions(Box::new(applier)), options)
    }

    /// Like [`ServiceHost::start`], for a service with its own writer of transactions, created by `make_writer`.
    /// `released` applies them once released.
    ///
    /// # Errors
    /// As for [`ServiceHost::start_state`]; [`EngineError::System`] of `make_writer`.
    pub fn start_transactions(
        released: impl ReleasedTransactions,
        make_writer: impl FnOnce(WriterParts<'_>) -> io::Result<Box<dyn Transactions>> + Send + 'static,
        options: ServiceHostOptions,
    ) -> Result<Self, EngineError> {
        options.check_of_state()?;
        let service = TransactionService::new(released, make_writer);
        Self::start_fold(Fold::applying_transactions(Box::new(service)), options)
    }

    fn start_fold(fold: Fold, options: ServiceHostOptions) -> Result<Self, EngineError> {
        Ok(Self::start_driven(fold, options, false)?.0)
    }

    pub(crate) fn start_embedded(
        fold: Fold,
        options: ServiceHostOptions,
    ) -> Result<(Self, EmbeddedParts), EngineError> {
        let (host, held) = Self::start_driven(fold, options, true)?;
        Ok((host, held.expect("it is held where there are no threads")))
    }

    fn start_driven(
        mut fold: Fold,
        options: ServiceHostOptions,
        is_embedded: bool,
    ) -> Result<(Self, Option<EmbeddedParts>), EngineError> {
        let stream_options = options.stream_options();
        let found = RecoveredDirectory::recover(&mut fold, &options)?;
        let RecoveredDirectory { directory, opened, sequencer, recovered, record, dead_letters, identity } = found;
        let layout = directory.as_ref().map(LockedDirectory::layout).cloned();
        let mut builder = StreamBuilder::on_threads(
            &stream_options,
            directory,
            identity,
            recovered.last_sequence + 1,
            opened,
            StreamRole::Service,
            thread_assignment::of_host(&options)?,
        )?;
        if let Some(rules) = fold.fault_rules_to_write()? {
            // Served before the first frame of a publisher; the mailbox is empty.
            let _ = builder.requests.push(SequencerRequest::FaultRules(rules));
        }
        builder.set_socket_path(options.socket_path.clone());
        builder.advertised_limits.1 = stream_options.message_length_max;
        let mut writer = builder.take_writer();
        let cursor = writer.gating_cursor(Scope::Released);
        let Journaling { releaser, syncer_and_preparer, report } = builder.journal()?;
        let journal = layout.as_ref().filter(|_| options.tier != Tier::Memory).map(StreamLayout::journal);
        let (mut ingress, repeated, state) =
            ingress(&options, &builder, sequencer, writer, releaser, (&mut fold, journal))?;
        let mut time_steps = None;
        if options.manual_time {
            let (time, steps) = ManualTime::new();
            ingress = ingress.with_manual_time(time);
            time_steps = Some(Mutex::new(steps));
        }
        let (mut schedule, mut kept_preparer) = (None, None);
        if let (Some((syncer, preparer)), Some(layout)) = (syncer_and_preparer, &layout) {
            kept_preparer = Some(preparer.clone());
            let rules = SnapshotRules::for_own_journal(options.snapshot_interval_frames, options.snapshot_on_stop);
            let at = recovered.snapshot_sequence;
            let below = HostJournal::new(syncer, preparer, at);
            let woken = builder.threads.waker(AgentRole::Service);
            schedule = Some(SnapshotSchedule::start(layout.snapshots(), identity, at, rules, below, woken)?);
        }
        let (snapshots, snapshot_requests) = schedule.unzip();
        let (delivery, sender) = delivery(&options, &builder)?;
        let counters = ExecutorCounters::add_to(&builder.counters, &recovered)?;
        let (handled, dead_letter_count) = counters.views();
        let progress = Arc::clone(&counters.progress);
        let versions = fold.service.versions();
        let executor = Executor::new(
            fold,
            ExecutorLinks {
                state_hasher: None,
                record,
                cursor,
                window: builder.window.clone(),
                stop_at: StopPosition::Appended,
                delivery,
                sequencer: builder.requests.clone(),
                sequencer_waker: builder.threads.waker(AgentRole::Sequencer),
                from_sequencer: builder.answers.clone(),
                dead_letters,
                snapshots,
                frames_per_poll_max: stream_options.frames_per_poll_max,
                counters,
            },
        );
        let mut answering: Vec<(AgentRole, Box<dyn Agent>)> = vec![(AgentRole::Service, Box::new(executor))];
        answering.extend(sender.map(|sender| (AgentRole::Sender, Box::new(sender) as Box<dyn Agent>)));
        let (clock, why_not_tsc) = Clock::fastest();
        if let Some(reason) = why_not_tsc {
            tracing::info!(reason, "time is read from the operating system");
        }
        let shared = ingress.shared();
        let recovery = StreamRecovery {
            last_sequence: recovered.last_sequence,
            state_sequence: recovered.snapshot_sequence,
            frames_replayed: recovered.last_sequence - recovered.snapshot_sequence,
            journal: report,
        };
        let (window, waker) = (builder.window.clone(), builder.threads.waker(AgentRole::Sequencer));
        let requests = (builder.requests.clone(), waker.clone());
        let (stream, held) = if is_embedded {
            let stream = builder.start(Box::new(OwnerPolledAgent), answering, shared, recovery, None)?;
            (stream, Some(EmbeddedParts { ingress, clock, window, waker }))
        } else {
            (builder.start(Box::new(ingress), answering, shared, recovery, Some(clock))?, None)
        };
        let host = Self {
            stream,
            snapshots: snapshot_requests,
            handled,
            progress,
            time_steps,
            repeated,
            dead_letters: dead_letter_count,
            state,
            recovered,
            requests,
            versions,
            preparer: kept_preparer,
        };
        Ok((host, held))
    }

    pub(crate) fn turn(&mut self, now: Now) -> Result<usize, AgentFailure> {
        self.stream.turn(now).map_err(failure_of)
    }

    /// Returns whether the clean stop is complete.
    pub(crate) fn close_step(&mut self, now: Now) -> Result<bool, EngineError> {
        let is_last = self.stream.close_step(now).map_err(stopped)?;
        if is_last {
            self.preparer = None;
        }
        Ok(is_last)
    }

    /// Connects a client within this process.
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory for them.
    pub fn connect(&self, options: ClientOptions) -> Result<PolledClient, ClientError> {
        self.stream.client(options)
    }

    #[must_use]
    pub fn reader(&self, sequence: u64) -> ReplayMerge {
        self.stream.reader(sequence)
    }

    #[must_use]
    pub fn socket_path(&self) -> Option<&Path> {
        self.stream.socket_path()
    }

    #[must_use]
    pub fn identity(&self) -> StreamIdentity {
        self.stream.identity()
    }

    #[must_use]
    pub const fn recovered(&self) -> &RecoverySummary {
        &self.recovered
    }

    #[must_use]
    pub const fn journal_report(&self) -> Option<&RecoveryReport> {
        self.stream.recovery().journal.as_ref()
    }

    #[must_use]
    pub const fn tier(&self) -> Tier {
        self.stream.tier()
    }

    #[must_use]
    pub const fn plan(&self) -> &ThreadPlan<AgentRole> {
        self.stream.plan()
    }

    #[must_use]
    pub fn pin_warnings(&self) -> Vec<String> {
        self.stream.pin_warnings()
    }

    /// Returns the agent threads' time so far, ns.
    #[must_use]
    pub fn cpu_time_ns(&self) -> u64 {
        self.stream.cpu_time_ns()
    }

    /// Returns, per thread of the plan, times in which an interrupt, another thread or the hypervisor kept a
    /// busy-polling thread from running.
    #[must_use]
    pub fn pauses(&self) -> Vec<Pauses> {
        self.stream.pauses()
    }

    /// Returns the last sequence that has reached the tier.
    #[must_use]
    pub fn released_sequence(&self) -> u64 {
        self.stream.released_sequence()
    }

    #[must_use]
    pub fn handled_sequence(&self) -> u64 {
        self.handled.get()
    }

    /// Counts commands that no handler took, since the start.
    #[must_use]
    pub fn dead_letter_count(&self) -> u64 {
        self.dead_letters.get()
    }

    /// Returns the hash after [`ServiceHost::handled_sequence`]; `None` for event-sourced services.
    #[must_use]
    pub fn state_hash(&self) -> Option<u64> {
        self.state.as_ref().map(|state| state.hash.get())
    }

    /// Counts frames recognised as duplicates, since the start.
    #[must_use]
    pub fn repeated_count(&self) -> u64 {
        self.repeated.get()
    }

    /// Other processes read them from the file `counters` in the host's directory. An application can add its own.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        self.stream.counters()
    }

    /// Switches the service to another of its versions, at a mark that is appended soon. Afterwards, programs without
    /// that version cannot start here.
    ///
    /// # Errors
    /// The service does not have the version; or the sequencer's mailbox is full.
    pub fn begin_version(&self, version: u32) -> Result<(), EngineError> {
        if !self.versions.contains(&version) {
            let (first, last) = self.versions.clone().into_inner();
            return Err(EngineError::Version { version, sequence: self.released_sequence() + 1, first, last });
        }
        let (requests, waker) = &self.requests;
        let asked = requests.push(SequencerRequest::ServiceVersion { version });
        waker.wake();
        asked.map_err(|_| EngineError::Option {
            option: "version",
            reason: "the sequencer has too many requests to take; ask again".to_owned(),
        })
    }

    /// Advances the stream's time by `by` from its last frame, on a host with [`ServiceHostOptions::manual_time`].
    ///
    /// Each timer due until then fires at its own time, in order, including timers set by other timers. When this
    /// returns they are handled, and their outputs are on their way. Returns the time, ns since the epoch.
    ///
    /// ```
    /// # mod gapless {
    /// #     pub mod prelude {
    /// #         pub use gapless_client::{ClientOptions, polled::{Incoming, MessageType}};
    /// #         pub use gapless_engine::{Context, Handlers, Reject, Service, ServiceHost, ServiceHostOptions};
    /// #         pub use gapless_schema::Encoding;
    /// #         pub use gapless_transport::token::random_token;
    /// #         pub use std::time::Duration;
    /// #     }
    /// # }
    /// use gapless::prelude::*;
    ///
    /// const WATCH: MessageType = MessageType { schema: 1 << 16 | 1, encoding: Encoding::Opaque };
    /// const HOUR_NS: u64 = 3_600_000_000_000;
    ///
    /// /// Counts the hours since it was asked to.
    /// struct Hours(u64);
    ///
    /// impl Service for Hours {
    ///     fn handlers(handlers: &mut Handlers<Self>) {
    ///         handlers.on_bytes(WATCH.schema, |hours, _, context| {
    ///             context.set_numbered_timer(1, context.time_ns() + HOUR_NS);
    ///             context.reply_with(WATCH, &hours.0.to_le_bytes())
    ///         });
    ///     }
    ///     fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject> {
    ///         self.0 += 1;
    ///         context.set_numbered_timer(timer, context.time_ns() + HOUR_NS);
    ///         Ok(())
    ///     }
    /// #     fn snapshot(&self, _: &mut Vec<u8>) {}
    /// #     fn restore(&mut self, _: &[u8]) -> Result<(), String> {
    /// #         Ok(())
    /// #     }
    /// }
    ///
    /// let host = ServiceHost::start(Hours(0), ServiceHostOptions::in_memory().with_manual_time())?;
    /// let mut client = host.connect(ClientOptions::default())?;
    /// let session = client.open_session(random_token(), 16)?;
    /// client.call(session, WATCH, b"", Duration::from_secs(5))?;
    /// host.advance(Duration::from_secs(3 * 3600))?;
    /// assert_eq!(client.call(session, WATCH, b"", Duration::from_secs(5))?.payload, 3u64.to_le_bytes());
    /// host.stop()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The host has a clock, or it has failed.
    pub fn advance(&self, by: Duration) -> Result<u64, EngineError> {
        let Some(steps) = &self.time_steps else {
            let reason = "the time of this host is its clock's; ServiceHostOptions::with_manual_time lets it be moved";
            return Err(EngineError::Option { option: "manual_time", reason: reason.to_owned() });
        };
        let steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
        let mut handled = self.step_time(&steps, 0)?;
        let to_ns = handled.at_ns.saturating_add(saturating_ns(by));
        loop {
            let step = self.step_time(&steps, to_ns)?;
            if step.at_ns >= to_ns && step.last_sequence == handled.last_sequence {
                return Ok(step.at_ns);
            }
            handled = step;
        }
    }

    fn step_time(&self, steps: &Receiver<TimeStep>, to_ns: u64) -> Result<TimeStep, EngineError> {
        let (requests, waker) = &self.requests;
        let host_stopped = || {
            self.failure().unwrap_or_else(|| EngineError::Stopped(AgentFailure::new("host", "it was stopped".into())))
        };
        // Full of the service's timers: the sequencer takes them in its next poll.
        while requests.push(SequencerRequest::MoveTime { to_ns }).is_err() {
            if self.stream.failure().is_some() {
                return Err(host_stopped());
            }
            waker.wake();
            std::thread::yield_now();
        }
        waker.wake();
        let step = steps.recv().map_err(|_| host_stopped())?;
        match self.progress.wait_for(step.last_sequence, Duration::MAX) {
            WaitResult::Reached => Ok(step),
            WaitResult::Ended | WaitResult::TimedOut => Err(host_stopped()),
        }
    }

    #[doc(hidden)] // Awaited by readers of a command bus.
    #[must_use]
    pub fn progress(&self) -> Arc<ProgressCounter> {
        Arc::clone(&self.progress)
    }

    /// Takes a snapshot of everything handled so far; returns its sequence once it is on the device.
    ///
    /// # Errors
    /// The tier is `memory`, the snapshot cannot be written, or the host has failed.
    pub fn snapshot(&self) -> Result<u64, EngineError> {
        self.snapshot_requests()?.take(|| self.failure())
    }

    /// # Errors
    /// The tier is `memory`.
    pub(crate) fn snapshot_requests(&self) -> Result<&SnapshotRequests, EngineError> {
        self.snapshots.as_ref().ok_or_else(|| {
            let reason = "a service at tier memory keeps nothing that a snapshot could be part of".to_owned();
            EngineError::Option { option: "tier", reason }
        })
    }

    /// Deletes journal segments wholly before `sequence`, archived ones included, in the background once a snapshot
    /// covers them. A restart forgets the request. No effect at tier `memory`.
    pub fn delete_journal_before(&self, sequence: u64) {
        if let Some(preparer) = &self.preparer {
            preparer.delete_before(sequence);
        }
    }

    #[must_use]
    pub fn failure(&self) -> Option<EngineError> {
        self.stream.failure().map(stopped)
    }

    /// Handles the accepted frames, and writes a final snapshot if configured. Returns the last sequence.
    ///
    /// # Errors
    /// The host failed, before or during the stop.
    pub fn stop(self) -> Result<u64, EngineError> {
        self.stream.stop().map_err(stopped)?;
        Ok(self.handled.get())
    }
}

pub(crate) struct EmbeddedParts {
    pub ingress: Ingress,
    pub clock: Clock,
    pub window: Window,
    pub waker: Waker,
}

struct OwnerPolledAgent;

impl Agent for OwnerPolledAgent {
    fn name(&self) -> &str {
        "owner"
    }

    fn poll(&mut self, _: Now) -> Result<usize, gapless_agent::AgentError> {
        Ok(0)
    }
}

fn failure_of(error: StreamError) -> AgentFailure {
    match error {
        StreamError::Stopped(failure) => failure,
        other => AgentFailure::new("stream", other.into()),
    }
}

fn stopped(error: StreamError) -> EngineError {
    match error {
        StreamError::Stopped(failure) => EngineError::Stopped(failure),
        other => other.into(),
    }
}

struct RecoveredDirectory {
    directory: Option<LockedDirectory>,
    opened: Option<OpenedJournal>,
    sequencer: Sequencer,
    recovered: RecoverySummary,
    record: Option<OutputRecord>,
    dead_letters: DeadLetters,
    identity: StreamIdentity,
}

impl RecoveredDirectory {
    fn recover(fold: &mut Fold, options: &ServiceHostOptions) -> Result<Self, EngineError> {
        let mut directory =
            options.directory.as_deref().map(|root| LockedDirectory::lock(StreamLayout::new(root))).transpose()?;
        let owner = if fold.service.is_bus() { DirectoryOwner::Bus } else { DirectoryOwner::Service };
        directory.as_mut().map_or(Ok(()), |directory| directory.check_owner(owner))?;
        if let (Some(directory), Tier::Memory) = (&directory, options.tier) {
            directory.check_no_journal()?;
        }
        let expiry_ns = saturating_ns(options.session_expiry);
        let mut found = Self {
            directory,
            opened: None,
            sequencer: Sequencer::new(SequencerRules::of_service(expiry_ns)),
            recovered: RecoverySummary::default(),
            record: None,
            dead_letters: DeadLetters::counting(),
            identity: StreamIdentity { stream_id: random_token(), incarnation: random_token() as u64 },
        };
        let Some(layout) = found.directory.as_ref().map(LockedDirectory::layout).cloned() else { return Ok(found) };
        if options.tier == Tier::Memory {
            return Ok(found);
        }
        let points = snapshot::points(&layout.snapshots())?;
        if points.is_empty() {
            found.directory.as_ref().map_or(Ok(()), LockedDirectory::check_journal_exists)?;
        }
        let opening = JournalParameters { points, ..JournalParameters::new(options.tier, options.frame_length_max) };
        let mut opened = options.persistence.open(&layout.journal(), opening)?;
        found.identity = opened.identity;
        let mut recorded = RecordedOutputs::read(layout.root(), found.identity)?;
        found.dead_letters = DeadLetters::open(layout.root(), opened.journal.last_sequence())?;
        let mut sink = DeadLettersOnly(&mut found.dead_letters);
        let replayed = (&mut sink as &mut dyn Sink, Some(&mut recorded));
        found.recovered = recover(&layout, found.identity, fold, &mut found.sequencer, replayed, u64::MAX)?;
        found.record = Some(recorded.resume_after(fold, &layout.snapshots())?);
        if found.recovered.incomplete_from.is_some() {
            opened.journal.truncate_after(found.recovered.last_sequence)?;
        }
        found.opened = Some(opened);
        Ok(found)
    }
}

fn ingress(
    options: &ServiceHostOptions,
    builder: &StreamBuilder<'_>,
    sequencer: Sequencer,
    writer: WindowWriter,
    releaser: Option<Releaser>,
    (fold, journal): (&mut Fold, Option<PathBuf>),
) -> Result<(Ingress, CounterView, Option<StateViews>), EngineError> {
    let counters = IngressCounters::add_to(&builder.counters)?;
    let repeated = counters.frames_repeated.view();
    let mut ingress = Ingress::new(
        sequencer,
        writer,
        releaser,
        IngressLinks {
            publishers: builder.acceptor_links.ingress.clone(),
            service: builder.answers.clone(),
            requests: builder.requests.clone(),
            downstream: builder
                .threads
                .downstream(Some(AgentRole::Sequencer), &[AgentRole::Journaler, AgentRole::Service]),
            counters,
        },
        IngressOptions {
            frames_per_poll_max: options.frames_per_poll(),
            message_bytes_max: options.window_bytes / 2,
            ..IngressOptions::default()
        },
    );
    if let Some(handled) = fold.handled_commands() {
        ingress = ingress.handling_only(handled);
    }
    let mut state = None;
    if let Some(applier) = TransactionApplier::in_fold(fold) {
        ingress = ingress.with_speculative_execution(Box::new(
            applier.speculative_executor(builder.threads.waker(AgentRole::Sequencer)),
        ));
        // This host always leads: it requests the state now, and takes no command before it has it.
        ingress.lead(NO_TERM)?;
        state = Some(applier.attach(builder.threads.waker(AgentRole::Service), &builder.counters)?);
    } else if let Some(service) = TransactionService::in_fold(fold) {
        let wakers = (builder.threads.waker(AgentRole::Sequencer), builder.threads.waker(AgentRole::Service));
        let writer = service.writer(wakers, builder.window.clone(), journal, &builder.counters)?;
        ingress = ingress.with_speculative_execution(writer);
        ingress.lead(NO_TERM)?;
    }
    Ok((ingress, repeated, state))
}

fn delivery(
    options: &ServiceHostOptions,
    builder: &StreamBuilder<'_>,
) -> Result<(ReplyDelivery, Option<ReplySender>), EngineError> {
    let egress = builder.egress();
    if !builder.threads.has(AgentRole::Sender) {
        return Ok((ReplyDelivery::Direct(egress), None));
    }
    let depth = options.threads.send_queue_depth;
    let (queue, sender) = sender::of_depth(egress, depth, builder.threads.waker(AgentRole::Sender))?;
    Ok((ReplyDelivery::Detached(queue), Some(sender)))
}
