//! [`ReplicaService`]: a service as a member of a cluster runs it. It knows what a member's service does ([`MemberService`])
//! and nothing of consensus, so it is there without the feature `cluster`, too.

use crate::dead_letters::DeadLetters;
use crate::executor::{Delivery, Executor, ExecutorCounters, ExecutorLinks, StopAt};
use crate::fold::{Fold, NoSink, Policy, Sink};
use crate::output_record::RecordedOutputs;
use crate::recovery::{Recovered, recover};
use crate::service::Service;
use crate::snapshot_schedule::{SnapshotJournal, SnapshotRequests, SnapshotRules, SnapshotSchedule};
use crate::state::transaction_applier::{StateViews, TransactionApplier};
use crate::state::{ServiceFactory, StateOptions, StateService, factory_of};
use crate::state_hasher::StateHasher;
use crate::store::Store;
use crate::transaction_service::{ReleasedTransactions, TransactionService, WriterParts};
use crate::{EngineError, sender, snapshot};
use gapless_agent::progress::Progress;
use gapless_agent::{Agent, CounterView};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{DiskWork, FilePoint, Syncer};
use gapless_log::StreamIdentity;
use gapless_stream::Sequencer;
use gapless_stream::member_service::{
    MemberService, SenderParts, ServiceAgents, ServiceError, ServiceParts, TransactionLinks,
};
use gapless_stream::retention_watermark::RetentionWatermark;
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::transactions::Transactions;
use gapless_wire::mark::FaultRules;
use std::io;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

/// How a service runs on a member of a cluster; its stream is described by the member's file. What the file says in
/// `[service]` counts in the place of what stands here; sequences to be skipped are added to those of the policy.
#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// A snapshot after so many frames; `None` for none, and then nothing goes from the journal.
    pub snapshot_interval_frames: Option<u64>,
    /// A snapshot at a clean stop.
    pub snapshot_on_stop: bool,
    /// What happens to messages that no handler takes, and to handlers that panic. The same on each member: their states
    /// differ else.
    pub policy: Policy,
}

impl Default for ReplicaOptions {
    fn default() -> Self {
        Self { snapshot_interval_frames: Some(10_000_000), snapshot_on_stop: true, policy: Policy::default() }
    }
}

/// What is known once the service's agent is made.
pub(crate) type Later<T> = Arc<Mutex<Option<T>>>;

/// What a service's agent lets others see.
#[derive(Clone)]
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "read by a replica"))]
pub(crate) struct ServiceViews {
    pub recovered: Recovered,
    pub handled: CounterView,
    pub progress: Arc<Progress>,
    pub dead_letters: CounterView,
    pub snapshots: SnapshotRequests,
}

/// A service that a member is given, and makes its agent of.
pub struct ReplicaService {
    pub(crate) fold: Fold,
    pub(crate) options: ReplicaOptions,
    hash_interval_frames: u64,
    recovered: Recovered,
    recorded: Option<RecordedOutputs>,
    /// Why there is no writer of transactions.
    failed: Option<EngineError>,
    pub(crate) views: Later<ServiceViews>,
    pub(crate) state: Later<StateViews>,
}

impl ReplicaService {
    /// Of an event-sourced service; a hash of its state goes to the member behind each multiple of `hash_interval_frames`,
    /// 0 for none.
    #[must_use]
    pub fn new<S: Service>(service: S, options: ReplicaOptions, hash_interval_frames: u64) -> Self {
        let fold = Fold::new(service, options.policy.clone());
        Self::of(fold, options, hash_interval_frames)
    }

    /// Of the state-replicated service that `make` gives; it is called again when the state is made anew.
    #[must_use]
    pub fn of_state<S: StateService>(
        make: impl Fn(&mut Store) -> S + Send + Sync + 'static,
        options: StateOptions,
    ) -> Self {
        Self::of_factory(factory_of(make), options)
    }

    pub(crate) fn of_factory(factory: ServiceFactory, options: StateOptions) -> Self {
        let StateOptions { snapshot_interval_frames, snapshot_on_stop, limits } = options;
        let policy = Policy::default();
        let options = ReplicaOptions { snapshot_interval_frames, snapshot_on_stop, policy };
        // Each transaction carries the hash of the state.
        Self::of(Fold::applying_transactions(Box::new(TransactionApplier::new(factory, limits))), options, 0)
    }

    /// Of a service whose commands become transactions by a writer of its own. Its writer is folded from the whole stream, so
    /// there are no snapshots, which would let the journal go. A hash of what is made of released transactions goes to the member behind each
    /// multiple of `hash_interval_frames`, 0 for none.
    #[must_use]
    pub fn of_transactions(
        released: impl ReleasedTransactions,
        make_writer: impl FnOnce(WriterParts<'_>) -> io::Result<Box<dyn Transactions>> + Send + 'static,
        hash_interval_frames: u64,
    ) -> Self {
        let options =
            ReplicaOptions { snapshot_interval_frames: None, snapshot_on_stop: false, policy: Policy::default() };
        let service = TransactionService::new(released, make_writer);
        Self::of(Fold::applying_transactions(Box::new(service)), options, hash_interval_frames)
    }

    fn of(fold: Fold, options: ReplicaOptions, hash_interval_frames: u64) -> Self {
        let (views, state) = (Later::default(), Later::default());
        Self {
            fold,
            options,
            hash_interval_frames,
            recovered: Recovered::default(),
            recorded: None,
            failed: None,
            views,
            state,
        }
    }
}

/// The member's journal as the service's snapshots need it.
struct MemberJournal {
    syncer: Syncer,
    watermark: RetentionWatermark,
}

impl SnapshotJournal for MemberJournal {
    fn sync(&mut self) -> Result<(), EngineError> {
        self.syncer.sync_and_check()?;
        // Of the snapshot, which is written next.
        self.syncer.ask_disk(DiskWork::Allocate).map_err(EngineError::system("finding room for a snapshot"))
    }

    fn covered(&mut self, sequence: u64) {
        self.watermark.covered(sequence);
    }
}

impl MemberService for ReplicaService {
    fn points(&self, layout: &StreamLayout) -> Result<Vec<FilePoint>, ServiceError> {
        Ok(snapshot::points(&layout.snapshots())?)
    }

    fn recover(&mut self, layout: &StreamLayout, identity: StreamIdentity, sequence: u64) -> Result<(), ServiceError> {
        if let Some(applier) = TransactionApplier::in_fold(&mut self.fold) {
            applier.set_source(layout.clone(), identity);
        }
        if sequence == 0 {
            return Ok(());
        }
        let mut recorded = RecordedOutputs::read(layout.root(), identity)?;
        // The member's own sequencer is found by its own state.
        let mut sequencer = Sequencer::new(SequencerRules::of_service(u64::MAX));
        let replayed = (&mut NoSink as &mut dyn Sink, Some(&mut recorded));
        self.recovered = recover(layout, identity, &mut self.fold, &mut sequencer, replayed, sequence)?;
        self.recorded = Some(recorded);
        self.fold.fault_rules_to_write()?;
        if self.recovered.last_sequence != sequence {
            let reason = format!("the service comes to {}, not to there", self.recovered.last_sequence);
            return Err(EngineError::Corrupt { sequence, reason }.into());
        }
        Ok(())
    }

    fn transactions(&mut self, links: &TransactionLinks<'_>) -> Option<Box<dyn Transactions>> {
        if let Some(service) = TransactionService::in_fold(&mut self.fold) {
            let wakers = (links.member.clone(), links.service.clone());
            let writer = service.writer(wakers, links.window.clone(), Some(links.layout.journal()), links.counters);
            return writer.map_err(|error| self.failed = Some(error)).ok();
        }
        Some(Box::new(TransactionApplier::in_fold(&mut self.fold)?.speculative_executor(links.member.clone())))
    }

    fn versions(&self) -> RangeInclusive<u32> {
        self.fold.service.versions()
    }

    fn fault_rules_to_write(&self) -> Option<FaultRules> {
        // Others were refused when it recovered.
        self.fold.fault_rules_to_write().ok().flatten()
    }

    fn agent(self: Box<Self>, parts: ServiceParts<'_>) -> Result<ServiceAgents, ServiceError> {
        let Self { mut fold, options, hash_interval_frames, recovered, recorded, failed, views, state } = *self;
        if let Some(error) = failed {
            return Err(error.into());
        }
        if let Some(applier) = TransactionApplier::in_fold(&mut fold) {
            let attached = applier.attach(parts.waker.clone(), parts.counters)?;
            *state.lock().unwrap_or_else(PoisonError::into_inner) = Some(attached);
        }
        let rules = SnapshotRules::over_own_journal(options.snapshot_interval_frames, options.snapshot_on_stop);
        let journal = MemberJournal { syncer: parts.syncer, watermark: parts.watermark };
        let (directory, at) = (parts.layout.snapshots(), recovered.snapshot_sequence);
        let (schedule, snapshots) = match parts.has_helpers {
            true => SnapshotSchedule::start(directory, parts.identity, at, rules, journal, parts.waker)?,
            false => SnapshotSchedule::by_hand(directory, parts.identity, at, rules, journal, parts.waker),
        };
        // Nobody else does.
        let _ = parts.snapshots.set(Arc::new(snapshots.clone()));
        let counters = ExecutorCounters::add_to(parts.counters, &recovered)?;
        let (handled, dead_letters) = counters.views();
        let progress = Arc::clone(&counters.progress);
        let root = parts.layout.root();
        let recorded = recorded.unwrap_or_else(|| RecordedOutputs::nothing(root, parts.identity));
        let record = recorded.go_on_behind(&fold, &parts.layout.snapshots())?;
        let (delivery, sender) = match parts.sender {
            None => (Delivery::Direct(parts.egress), None),
            Some(SenderParts { queue_depth, waker }) => {
                let (queue, sender) = sender::of_depth(parts.egress, queue_depth, waker)?;
                (Delivery::Detached(queue), Some(Box::new(sender) as Box<dyn Agent>))
            }
        };
        let links = ExecutorLinks {
            record: Some(record),
            cursor: parts.cursor,
            window: parts.window,
            stop_at: StopAt::Released,
            delivery,
            sequencer: parts.sequencer,
            sequencer_waker: parts.sequencer_waker,
            from_sequencer: parts.from_sequencer,
            dead_letters: DeadLetters::open(parts.layout.root(), u64::MAX)?,
            snapshots: Some(schedule),
            frames_per_poll_max: parts.frames_per_poll_max,
            counters,
            state_hasher: StateHasher::new(hash_interval_frames, parts.identity, parts.hashes),
        };
        *views.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(ServiceViews { recovered, handled, progress, dead_letters, snapshots });
        Ok(ServiceAgents { service: Box::new(Executor::new(fold, links)), sender })
    }
}
