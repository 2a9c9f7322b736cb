//! [`ReplicaService`]: a service as a cluster member runs it ([`MemberService`]). It exists without the feature
//! `cluster` too.

use crate::dead_letters::DeadLetters;
use crate::executor::{Executor, ExecutorCounters, ExecutorLinks, ReplyDelivery, StopPosition};
use crate::fold::{Fold, NoSink, Policy, Sink};
use crate::output_record::RecordedOutputs;
use crate::recovery::{RecoverySummary, recover};
use crate::service::Service;
use crate::snapshot_schedule::{SnapshotJournal, SnapshotRequests, SnapshotRules, SnapshotSchedule};
use crate::state::transaction_applier::{StateViews, TransactionApplier};
use crate::state::{ServiceFactory, StateOptions, StateService, factory_of};
use crate::state_hasher::StateHasher;
use crate::store::Store;
use crate::transaction_service::{ReleasedTransactions, TransactionService, WriterParts};
use crate::{EngineError, sender, snapshot};
use gapless_agent::progress::ProgressCounter;
use gapless_agent::{Agent, CounterView};
use gapless_client::stream_layout::StreamLayout;
use gapless_journal::{DiskOperation, FilePoint, Syncer};
use gapless_log::StreamIdentity;
use gapless_stream::Sequencer;
use gapless_stream::handled_commands::HandledCommands;
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

/// Configuration of a service on a cluster member, overridden by section `[service]` of the member's file, whose
/// skipped sequences add to the policy's.
#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// `None`: no snapshots, so the journal is never deleted.
    pub snapshot_interval_frames: Option<u64>,
    pub snapshot_on_stop: bool,
    /// Must be equal on all members, or their states differ.
    pub policy: Policy,
}

impl Default for ReplicaOptions {
    fn default() -> Self {
        Self { snapshot_interval_frames: Some(10_000_000), snapshot_on_stop: true, policy: Policy::default() }
    }
}

pub(crate) type SharedSlot<T> = Arc<Mutex<Option<T>>>;

#[derive(Clone)]
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "read by a replica"))]
pub(crate) struct ServiceViews {
    pub recovered: RecoverySummary,
    pub handled: CounterView,
    pub progress: Arc<ProgressCounter>,
    pub dead_letters: CounterView,
    pub snapshots: SnapshotRequests,
}

pub struct ReplicaService {
    pub(crate) fold: Fold,
    pub(crate) options: ReplicaOptions,
    hash_interval_frames: u64,
    recovered: RecoverySummary,
    recorded: Option<RecordedOutputs>,
    failed: Option<EngineError>,
    pub(crate) views: SharedSlot<ServiceViews>,
    pub(crate) state: SharedSlot<StateViews>,
}

impl ReplicaService {
    /// A hash of the state goes to the member after each multiple of `hash_interval_frames`; 0: no hashes.
    #[must_use]
    pub fn new<S: Service>(service: S, options: ReplicaOptions, hash_interval_frames: u64) -> Self {
        let fold = Fold::new(service, options.policy.clone());
        Self::of(fold, options, hash_interval_frames)
    }

    /// `make` is called again to rebuild the state.
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
        Self::of(Fold::applying_transactions(Box::new(TransactionApplier::new(factory, limits))), options, 0)
    }

    /// The writer is folded from the whole stream, so there are no snapshots, which would delete the journal. A hash of
    /// the state of `released` goes to the member after each multiple of `hash_interval_frames`; 0: no hashes.
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
        let (views, state) = (SharedSlot::default(), SharedSlot::default());
        Self {
            fold,
            options,
            hash_interval_frames,
            recovered: RecoverySummary::default(),
            recorded: None,
            failed: None,
            views,
            state,
        }
    }
}

struct MemberSnapshotJournal {
    syncer: Syncer,
    watermark: RetentionWatermark,
}

impl SnapshotJournal for MemberSnapshotJournal {
    fn sync(&mut self) -> Result<(), EngineError> {
        self.syncer.sync_and_check()?;
        // Reserves disk space for the snapshot, which is written next.
        self.syncer.check_disk(DiskOperation::Allocate).map_err(EngineError::system("finding room for a snapshot"))
    }

    fn snapshot_written(&mut self, sequence: u64) {
        self.watermark.mark_covered(sequence);
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
        // Throw-away: the member's own sequencer is restored from its own state.
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

    fn handled_commands(&self) -> Option<HandledCommands> {
        self.fold.handled_commands()
    }

    fn fault_rules_to_write(&self) -> Option<FaultRules> {
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
        let rules = SnapshotRules::for_own_journal(options.snapshot_interval_frames, options.snapshot_on_stop);
        let journal = MemberSnapshotJournal { syncer: parts.syncer, watermark: parts.watermark };
        let (directory, at) = (parts.layout.snapshots(), recovered.snapshot_sequence);
        let (schedule, snapshots) = match parts.has_helpers {
            true => SnapshotSchedule::start(directory, parts.identity, at, rules, journal, parts.waker)?,
            false => SnapshotSchedule::by_hand(directory, parts.identity, at, rules, journal, parts.waker),
        };
        // Set only here, so it cannot fail.
        let _ = parts.snapshots.set(Arc::new(snapshots.clone()));
        let counters = ExecutorCounters::add_to(parts.counters, &recovered)?;
        let (handled, dead_letters) = counters.views();
        let progress = Arc::clone(&counters.progress);
        let root = parts.layout.root();
        let recorded = recorded.unwrap_or_else(|| RecordedOutputs::nothing(root, parts.identity));
        let record = recorded.resume_after(&fold, &parts.layout.snapshots())?;
        let (delivery, sender) = match parts.sender {
            None => (ReplyDelivery::Direct(parts.egress), None),
            Some(SenderParts { queue_depth, waker }) => {
                let (queue, sender) = sender::of_depth(parts.egress, queue_depth, waker)?;
                (ReplyDelivery::Detached(queue), Some(Box::new(sender) as Box<dyn Agent>))
            }
        };
        let links = ExecutorLinks {
            record: Some(record),
            cursor: parts.cursor,
            window: parts.window,
            stop_at: StopPosition::Released,
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
