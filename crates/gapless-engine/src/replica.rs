//! [`Replica`]: a service on a cluster. Each member runs a copy: all of them apply what is released, in the same order, and
//! the one on the leader answers.
//!
//! An event-sourcing handler sees a command when a quorum has it, and not before (decision 3); so a copy never takes
//! anything back, and the copy of a new leader is where the old one's was, or a little behind.

use crate::EngineError;
use crate::dead_letters::DeadLetters;
use crate::executor::{Delivery, End, Executor, ExecutorCounters, ExecutorLinks};
use crate::fold::{Fold, NoSink, OnPanic, OnUnhandled, Policy};
use crate::recovery::{Recovered, recover};
use crate::service::Service;
use crate::snapshot;
use crate::snapshot_schedule::{SnapshotJournal, SnapshotRequests, SnapshotRules, SnapshotSchedule};
use crate::state::follower::Follower;
use crate::state::seat::StateSeat;
use crate::state::{Make, StateOptions, StateService, make_of};
use crate::state_hashes::StateHashes;
use crate::store::Store;
use gapless_agent::{Agent, CounterView, Now, ThreadPlan};
use gapless_cluster::ClusterMember;
use gapless_cluster::config::{ClusterConfig, MemberKind, OnFault, ServiceConfig};
use gapless_cluster::member::service::{MemberService, ServiceError, ServiceParts};
use gapless_journal::{DiskWork, Syncer};
use gapless_log::StreamIdentity;
use gapless_stream::client::ClientOptions;
use gapless_stream::coverage::Coverage;
use gapless_stream::sequencer::SequencerRules;
use gapless_stream::stream_layout::StreamLayout;
use gapless_stream::{Client, Sequencer, StreamError};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

/// How a service runs on a member of a cluster; its stream is described by the member's file. What the file says in
/// `[service]` counts in the place of what stands here; sequences to be skipped are added to those of the policy.
#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// The longest payload that a handler may send, bytes.
    pub payload_length_max: usize,
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
        Self {
            payload_length_max: 1 << 20,
            snapshot_interval_frames: Some(10_000_000),
            snapshot_on_stop: true,
            policy: Policy::default(),
        }
    }
}

impl ReplicaOptions {
    /// As an operator has them.
    fn configured(mut self, config: &ServiceConfig) -> Self {
        self.policy.skip_sequences.extend(&config.skip);
        match config.on_panic {
            Some(OnFault::Stop) => self.policy.on_panic = OnPanic::Stop,
            Some(OnFault::DeadLetter) => self.policy.on_panic = OnPanic::DeadLetter,
            None => {}
        }
        match config.on_unhandled {
            Some(OnFault::Stop) => self.policy.on_unhandled = OnUnhandled::Stop,
            Some(OnFault::DeadLetter) => self.policy.on_unhandled = OnUnhandled::DeadLetter,
            None => {}
        }
        if let Some(frames) = config.snapshot_interval_frames {
            self.snapshot_interval_frames = Some(frames).filter(|frames| *frames > 0);
        }
        self
    }
}

/// A running copy of a service, and the member that it runs on.
///
/// ```no_run
/// use gapless_cluster::config::ClusterConfig;
/// use gapless_engine::{Handlers, Replica, ReplicaOptions, Service};
/// # #[derive(Default)]
/// # struct Orders;
/// # impl Service for Orders {
/// #     fn handlers(_: &mut Handlers<Self>) {}
/// #     fn snapshot(&self, _: &mut Vec<u8>) {}
/// #     fn restore(&mut self, _: &[u8]) -> Result<(), String> { Ok(()) }
/// # }
/// let config = ClusterConfig::load(std::path::Path::new("member-1.toml"))?;
/// let replica = Replica::start(Orders::default(), ReplicaOptions::default(), &config)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Replica {
    member: ClusterMember,
    /// None on a witness.
    views: Option<Views>,
    /// Of a state-replicated service.
    state: Option<StateViews>,
}

/// What a state-replicated service lets others see beside.
pub(crate) struct StateViews {
    pub hash: CounterView,
    pub remade: CounterView,
}

/// What is known once the service's agent is made.
type Later<T> = Arc<Mutex<Option<T>>>;

/// Starts a member with a service.
type Start = fn(&ClusterConfig, Box<dyn MemberService>) -> Result<ClusterMember, gapless_cluster::ClusterError>;

/// What a service's agent lets others see.
#[derive(Clone)]
struct Views {
    recovered: Recovered,
    handled: CounterView,
    dead_letters: CounterView,
    snapshots: SnapshotRequests,
}

impl Replica {
    /// Recovers what the member's directory holds, and starts: when this returns, clients can connect. A witness runs no
    /// service.
    ///
    /// # Errors
    /// Options that make no sense, a directory in use or of something else, damage, no threads, no port.
    pub fn start<S: Service>(service: S, options: ReplicaOptions, config: &ClusterConfig) -> Result<Self, EngineError> {
        Self::start_events(Self::seat_of(service, options, config), config, ClusterMember::start_with)
    }

    /// As [`Replica::start`], without threads for its agents: nothing happens but in [`Replica::turn`], and the caller
    /// says what time it is. For a thread that has more to do, for tests, and for simulations.
    ///
    /// # Errors
    /// As for [`Replica::start`].
    pub fn start_by_hand<S: Service>(
        service: S,
        options: ReplicaOptions,
        config: &ClusterConfig,
    ) -> Result<Self, EngineError> {
        Self::start_events(Self::seat_of(service, options, config), config, ClusterMember::start_by_hand_with)
    }

    /// As [`Replica::start`], by state replication: the leader alone runs the handlers, and the others apply what they have
    /// done ([`crate::state`]). `make` declares the collections and gives the service that knows them; it is called again
    /// when the state of a member that has lost its lead is made anew.
    ///
    /// # Errors
    /// As for [`Replica::start`].
    pub fn start_state<S: StateService>(
        make: impl Fn(&mut Store) -> S + Send + Sync + 'static,
        options: StateOptions,
        config: &ClusterConfig,
    ) -> Result<Self, EngineError> {
        Self::start_states(make_of(make), options, config, ClusterMember::start_with)
    }

    /// As [`Replica::start_state`], and by hand as [`Replica::start_by_hand`].
    ///
    /// # Errors
    /// As for [`Replica::start`].
    pub fn start_state_by_hand<S: StateService>(
        make: impl Fn(&mut Store) -> S + Send + Sync + 'static,
        options: StateOptions,
        config: &ClusterConfig,
    ) -> Result<Self, EngineError> {
        Self::start_states(make_of(make), options, config, ClusterMember::start_by_hand_with)
    }

    /// A copy of an event-sourced service for a member that the caller puts together, as
    /// [`ClusterMember::start_by_hand_with_in`] does: what [`Replica::start`] puts on its member.
    #[must_use]
    pub fn seat<S: Service>(service: S, options: ReplicaOptions, config: &ClusterConfig) -> Box<dyn MemberService> {
        Box::new(Self::seat_of(service, options, config))
    }

    /// As [`Replica::seat`], of a service whose state is replicated: what [`Replica::start_state`] puts on its member.
    ///
    /// # Errors
    /// [`EngineError::Option`] for what the member's file says of its service and such a service has no use for.
    pub fn seat_state<S: StateService>(
        make: impl Fn(&mut Store) -> S + Send + Sync + 'static,
        options: StateOptions,
        config: &ClusterConfig,
    ) -> Result<Box<dyn MemberService>, EngineError> {
        Ok(Box::new(Self::seat_of_state(make_of(make), options, config)?))
    }

    fn seat_of<S: Service>(service: S, options: ReplicaOptions, config: &ClusterConfig) -> Seat {
        let options = options.configured(&config.service);
        let fold = Fold::new(service, options.policy.clone(), options.payload_length_max);
        Seat::new(fold, options, config.service.hash_interval_frames)
    }

    fn start_events(seat: Seat, config: &ClusterConfig, start: Start) -> Result<Self, EngineError> {
        let (views, state) = (Arc::clone(&seat.views), Arc::clone(&seat.state));
        Self::start_by(&views, &state, seat.options.snapshot_interval_frames, config, || start(config, Box::new(seat)))
    }

    fn start_states(
        make: Make,
        options: StateOptions,
        config: &ClusterConfig,
        start: Start,
    ) -> Result<Self, EngineError> {
        let seat = Self::seat_of_state(make, options, config)?;
        let (views, state) = (Arc::clone(&seat.0.views), Arc::clone(&seat.0.state));
        let snapshot_interval_frames = seat.0.options.snapshot_interval_frames;
        Self::start_by(&views, &state, snapshot_interval_frames, config, || start(config, Box::new(seat)))
    }

    fn seat_of_state(make: Make, options: StateOptions, config: &ClusterConfig) -> Result<StateSeat, EngineError> {
        let StateOptions { payload_length_max, snapshot_interval_frames, snapshot_on_stop, limits } = options;
        for (option, is_said) in [
            ("service.skip", !config.service.skip.is_empty()),
            ("service.on_panic", config.service.on_panic == Some(OnFault::Stop)),
            ("service.on_unhandled", config.service.on_unhandled == Some(OnFault::Stop)),
        ] {
            if is_said {
                let reason = "no command stops a service whose state is replicated: what its handler did to the state before \
                              it panicked is taken back, and the command is refused";
                return Err(EngineError::Option { option, reason: reason.to_owned() });
            }
        }
        let options = ReplicaOptions {
            payload_length_max,
            snapshot_interval_frames,
            snapshot_on_stop,
            policy: Policy::default(),
        }
        .configured(&config.service);
        // Each transaction carries the hash of the state.
        Ok(StateSeat(Seat::new(Fold::of_transactions(Box::new(Follower::new(make, limits))), options, 0)))
    }

    fn start_by(
        views: &Later<Views>,
        state: &Later<StateViews>,
        snapshot_interval_frames: Option<u64>,
        config: &ClusterConfig,
        start: impl FnOnce() -> Result<ClusterMember, gapless_cluster::ClusterError>,
    ) -> Result<Self, EngineError> {
        if snapshot_interval_frames == Some(0) {
            let reason = "0 frames; leave it out for no snapshots".to_owned();
            return Err(EngineError::Option { option: "snapshot_interval_frames", reason });
        }
        let member = start()?;
        let views = views.lock().unwrap_or_else(PoisonError::into_inner).take();
        let state = state.lock().unwrap_or_else(PoisonError::into_inner).take();
        debug_assert_eq!(views.is_none(), config.own().kind == MemberKind::Witness);
        Ok(Self { member, views, state })
    }

    /// Polls every agent once, in a replica that was started by hand. Returns the work done.
    ///
    /// # Errors
    /// What an agent cannot go on after.
    pub fn turn(&mut self, now: Now) -> Result<usize, EngineError> {
        Ok(self.member.turn(now)?)
    }

    /// The member that it runs on: its role, what may be asked of it.
    #[must_use]
    pub const fn member(&self) -> &ClusterMember {
        &self.member
    }

    /// A client inside this process. It is of use while this member leads; one that follows the leader knows the sockets
    /// of all members ([`Client::connect_any`]).
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory for them.
    pub fn connect(&self, options: ClientOptions) -> Result<Client, StreamError> {
        self.member.stream().client(options)
    }

    /// What recovery did at the start; nothing on a witness.
    #[must_use]
    pub fn recovered(&self) -> Recovered {
        self.views.as_ref().map(|views| views.recovered).unwrap_or_default()
    }

    /// The last sequence that the service has handled here; 0 on a witness.
    #[must_use]
    pub fn handled_sequence(&self) -> u64 {
        self.views.as_ref().map_or(0, |views| views.handled.get())
    }

    /// The hash of a state-replicated service's state behind [`Replica::handled_sequence`]: on all members that stand there
    /// the same. `None` on a witness, and of an event-sourced service, whose state is its own.
    #[must_use]
    pub fn state_hash(&self) -> Option<u64> {
        self.state.as_ref().map(|state| state.hash.get())
    }

    /// How often a state-replicated service's state was made anew here, since the start: from a snapshot and the journal,
    /// because what this member ran ahead by, as a leader, was cut.
    #[must_use]
    pub fn states_remade(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.remade.get())
    }

    /// Commands that no handler took here, since the start.
    #[must_use]
    pub fn dead_letter_count(&self) -> u64 {
        self.views.as_ref().map_or(0, |views| views.dead_letters.get())
    }

    /// The threads and what the plan says of them.
    #[must_use]
    pub const fn plan(&self) -> &ThreadPlan {
        self.member.stream().plan()
    }

    /// Takes a snapshot of everything handled here so far and waits until it is on the device. Returns the sequence that
    /// it stands at. Commits go on meanwhile.
    ///
    /// # Errors
    /// A witness, a snapshot that cannot be written, a member that has failed.
    pub fn snapshot(&self) -> Result<u64, EngineError> {
        let Some(views) = &self.views else {
            let reason = "a witness runs no service, of which a snapshot could be taken".to_owned();
            return Err(EngineError::Option { option: "kind", reason });
        };
        views.snapshots.take(|| self.failure())
    }

    /// Asks for snapshots from another thread, where this one has to turn the agents; `None` on a witness.
    #[must_use]
    pub fn snapshots(&self) -> Option<SnapshotRequests> {
        self.views.as_ref().map(|views| views.snapshots.clone())
    }

    /// Whether it stops because it was so far behind that it has fetched the state of another member: to be started again
    /// then, with a new service; it goes on from there.
    #[must_use]
    pub fn must_start_again(&self) -> bool {
        self.member.must_start_again()
    }

    /// Why it has stopped by itself, if it has.
    #[must_use]
    pub fn failure(&self) -> Option<EngineError> {
        self.member.stream().failure().map(EngineError::Stream)
    }

    /// Stops it: a leader hands over first, and what is released is handled. Returns the last sequence that was released
    /// here.
    ///
    /// # Errors
    /// What made it stop by itself, before or now.
    pub fn stop(self) -> Result<u64, EngineError> {
        Ok(self.member.stop()?)
    }
}

/// A service that waits for its member.
pub(crate) struct Seat {
    pub fold: Fold,
    pub options: ReplicaOptions,
    pub hash_interval_frames: u64,
    recovered: Recovered,
    views: Later<Views>,
    pub state: Later<StateViews>,
}

impl Seat {
    fn new(fold: Fold, options: ReplicaOptions, hash_interval_frames: u64) -> Self {
        let (views, state) = (Later::default(), Later::default());
        Self { fold, options, hash_interval_frames, recovered: Recovered::default(), views, state }
    }
}

/// The member's journal as the service's snapshots need it.
struct MemberJournal {
    syncer: Syncer,
    coverage: Coverage,
}

impl SnapshotJournal for MemberJournal {
    fn sync(&mut self) -> Result<(), EngineError> {
        self.syncer.sync()?;
        // Of the snapshot, which is written next.
        self.syncer.ask_disk(DiskWork::Allocate).map_err(EngineError::system("finding room for a snapshot"))
    }

    fn covered(&mut self, sequence: u64) {
        self.coverage.covered(sequence);
    }
}

impl MemberService for Seat {
    fn snapshot_sequence(
        &self,
        layout: &StreamLayout,
        _identity: StreamIdentity,
        last_sequence: u64,
    ) -> Result<u64, ServiceError> {
        let Some((sequence, path)) = snapshot::list(&layout.snapshots())?.pop() else { return Ok(0) };
        if sequence > last_sequence {
            let reason = format!(
                "it stands at sequence {sequence}, the journal ends at {last_sequence}: frames that it contains are \
                 lost; restore the journal, or start the member anew with an empty directory"
            );
            return Err(EngineError::Snapshot { path, reason }.into());
        }
        Ok(sequence)
    }

    fn recover(&mut self, layout: &StreamLayout, identity: StreamIdentity, sequence: u64) -> Result<(), ServiceError> {
        if sequence == 0 {
            return Ok(());
        }
        // The member's own sequencer is found by its own state.
        let mut sequencer = Sequencer::new(SequencerRules::of_service(u64::MAX));
        self.recovered = recover(layout, identity, &mut self.fold, &mut sequencer, &mut NoSink, None, sequence)?;
        if self.recovered.last_sequence != sequence {
            let reason = format!("the service comes to {}, not to there", self.recovered.last_sequence);
            return Err(EngineError::Corrupt { sequence, reason }.into());
        }
        Ok(())
    }

    fn versions(&self) -> RangeInclusive<u32> {
        self.fold.service.versions()
    }

    fn agent(self: Box<Self>, parts: ServiceParts<'_>) -> Result<Box<dyn Agent>, ServiceError> {
        let Self { fold, options, hash_interval_frames, recovered, views, .. } = *self;
        let rules = SnapshotRules {
            interval_frames: options.snapshot_interval_frames,
            on_stop: options.snapshot_on_stop && options.snapshot_interval_frames.is_some(),
        };
        let journal = MemberJournal { syncer: parts.syncer, coverage: parts.coverage };
        let (directory, at) = (parts.layout.snapshots(), recovered.snapshot_sequence);
        let (schedule, snapshots) = match parts.has_helpers {
            true => SnapshotSchedule::start(directory, parts.identity, at, rules, journal, parts.waker)?,
            false => SnapshotSchedule::by_hand(directory, parts.identity, at, rules, journal, parts.waker),
        };
        parts.member.keeps_snapshots_in(Arc::new(snapshots.clone()));
        let counters = ExecutorCounters::add_to(parts.counters, &recovered)?;
        let (handled, dead_letters) = counters.views();
        let links = ExecutorLinks {
            cursor: parts.cursor,
            window: parts.window,
            end: End::Released,
            delivery: Delivery::Direct(parts.outlets),
            sequencer: parts.sequencer,
            from_sequencer: parts.from_sequencer,
            dead_letters: DeadLetters::open(parts.layout.root())?,
            snapshots: Some(schedule),
            frames_per_poll_max: parts.frames_per_poll_max,
            counters,
            hashes: StateHashes::new(hash_interval_frames, parts.identity, parts.hashes),
        };
        *views.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Views { recovered, handled, dead_letters, snapshots });
        Ok(Box::new(Executor::new(fold, links)))
    }
}
