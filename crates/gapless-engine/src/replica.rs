//! [`Replica`]: a service on a cluster. Each member runs a copy: all of them apply what is released, in the same order, and
//! the one on the leader answers.
//!
//! An event-sourcing handler sees a command when a quorum has it, and not before (decision 3); so a copy never takes
//! anything back, and the copy of a new leader is where the old one's was, or a little behind.

use crate::EngineError;
use crate::fold::{OnPanic, OnUnhandled};
use crate::options::POLICY_OF_STATE_REFUSED;
use crate::recovery::Recovered;
use crate::replica_service::{ReplicaOptions, ReplicaService, ServiceViews};
use crate::service::Service;
use crate::snapshot_schedule::SnapshotRequests;
use crate::state::transaction_applier::StateViews;
use crate::state::{ServiceFactory, StateOptions, StateService, factory_of};
use crate::store::Store;
use crate::transaction_service::{ReleasedTransactions, WriterParts};
use gapless_agent::progress::Progress;
use gapless_agent::{Now, ThreadPlan};
use gapless_client::Client;
use gapless_client::ClientError;
use gapless_client::client::ClientOptions;
use gapless_cluster::ClusterMember;
use gapless_cluster::config::{ClusterConfig, MemberKind, OnFault, ServiceConfig};
use gapless_stream::AgentRole;
use gapless_stream::member_service::MemberService;
use gapless_stream::transactions::Transactions;
use std::io;
use std::sync::{Arc, PoisonError};

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
        self.snapshot_interval_frames = interval(self.snapshot_interval_frames, config);
        self
    }
}

/// After how many frames a snapshot is taken: what the operator says counts.
fn interval(own: Option<u64>, config: &ServiceConfig) -> Option<u64> {
    config.snapshot_interval_frames.map_or(own, |frames| Some(frames).filter(|frames| *frames > 0))
}

/// Of a service with a writer of its own no snapshots are taken.
fn refuse_snapshots(config: &ClusterConfig) -> Result<(), EngineError> {
    refuse_policy(config)?;
    if config.service.snapshot_interval_frames.is_some_and(|frames| frames > 0) {
        let reason = "the writer of transactions reads the whole stream; leave it out".to_owned();
        return Err(EngineError::Option { option: "service.snapshot_interval_frames", reason });
    }
    Ok(())
}

/// What the member's file says of its service must be of use to one whose handlers run before their commands enter the stream.
fn refuse_policy(config: &ClusterConfig) -> Result<(), EngineError> {
    for (option, is_said) in [
        ("service.skip", !config.service.skip.is_empty()),
        ("service.on_panic", config.service.on_panic == Some(OnFault::Stop)),
        ("service.on_unhandled", config.service.on_unhandled == Some(OnFault::Stop)),
    ] {
        if is_said {
            return Err(EngineError::Option { option, reason: POLICY_OF_STATE_REFUSED.to_owned() });
        }
    }
    Ok(())
}

/// A running copy of a service, and the member that it runs on.
///
/// ```no_run
/// # mod gapless {
/// #     pub mod prelude {
/// #         pub use gapless_cluster::config::ClusterConfig;
/// #         pub use gapless_engine::{Handlers, Replica, ReplicaOptions, Service};
/// #     }
/// # }
/// use gapless::prelude::*;
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
    views: Option<ServiceViews>,
    /// Of a state-replicated service.
    state: Option<StateViews>,
}

/// Starts a member with a service.
type Start = fn(&ClusterConfig, Box<dyn MemberService>) -> Result<ClusterMember, gapless_cluster::ClusterError>;

impl Replica {
    /// Recovers what the member's directory holds, and starts: when this returns, clients can connect. A witness runs no
    /// service.
    ///
    /// # Errors
    /// Options that make no sense, a directory in use or of something else, damage, no threads, no port.
    pub fn start<S: Service>(service: S, options: ReplicaOptions, config: &ClusterConfig) -> Result<Self, EngineError> {
        Self::start_by(Self::service_of(service, options, config), config, ClusterMember::start_with)
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
        Self::start_by(Self::service_of(service, options, config), config, ClusterMember::start_by_hand_with)
    }

    /// As [`Replica::start`], by state replication: the leader alone runs the handlers, and the others apply what they have
    /// done. `make` declares the collections and gives the service that knows them; it is called again
    /// when the state of a member that has lost its lead is made anew.
    ///
    /// # Errors
    /// As for [`Replica::start`].
    pub fn start_state<S: StateService>(
        make: impl Fn(&mut Store) -> S + Send + Sync + 'static,
        options: StateOptions,
        config: &ClusterConfig,
    ) -> Result<Self, EngineError> {
        Self::start_by(Self::state_service_of(factory_of(make), options, config)?, config, ClusterMember::start_with)
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
        Self::start_by(
            Self::state_service_of(factory_of(make), options, config)?,
            config,
            ClusterMember::start_by_hand_with,
        )
    }

    /// As [`Replica::start`], of a service whose commands become transactions by a writer of its own, which `make_writer` makes;
    /// `released` is what is made of them.
    ///
    /// # Errors
    /// As for [`Replica::start_state`]; [`EngineError::Option`] for snapshots, which let go of what the writer reads.
    pub fn start_transactions(
        released: impl ReleasedTransactions,
        make_writer: impl FnOnce(WriterParts<'_>) -> io::Result<Box<dyn Transactions>> + Send + 'static,
        config: &ClusterConfig,
    ) -> Result<Self, EngineError> {
        refuse_snapshots(config)?;
        // What is made of them may be large: it is not hashed.
        Self::start_by(ReplicaService::of_transactions(released, make_writer, 0), config, ClusterMember::start_with)
    }

    /// As [`Replica::start_transactions`], and by hand as [`Replica::start_by_hand`].
    ///
    /// # Errors
    /// As for [`Replica::start_transactions`].
    pub fn start_transactions_by_hand(
        released: impl ReleasedTransactions,
        make_writer: impl FnOnce(WriterParts<'_>) -> io::Result<Box<dyn Transactions>> + Send + 'static,
        config: &ClusterConfig,
    ) -> Result<Self, EngineError> {
        refuse_snapshots(config)?;
        Self::start_by(
            ReplicaService::of_transactions(released, make_writer, 0),
            config,
            ClusterMember::start_by_hand_with,
        )
    }

    /// A copy of an event-sourced service for a member that the caller puts together, as
    /// [`ClusterMember::start_by_hand_with_in`] does: what [`Replica::start`] puts on its member.
    #[must_use]
    pub fn member_service<S: Service>(
        service: S,
        options: ReplicaOptions,
        config: &ClusterConfig,
    ) -> Box<dyn MemberService> {
        Box::new(Self::service_of(service, options, config))
    }

    /// As [`Replica::member_service`], of a service whose state is replicated: what [`Replica::start_state`] puts on its member.
    ///
    /// # Errors
    /// [`EngineError::Option`] for what the member's file says of its service and such a service has no use for.
    pub fn member_state_service<S: StateService>(
        make: impl Fn(&mut Store) -> S + Send + Sync + 'static,
        options: StateOptions,
        config: &ClusterConfig,
    ) -> Result<Box<dyn MemberService>, EngineError> {
        Ok(Box::new(Self::state_service_of(factory_of(make), options, config)?))
    }

    /// As [`Replica::member_service`], of a service whose commands become transactions by a writer of its own: what
    /// [`Replica::start_transactions`] puts on its member, and what is made of the transactions is compared between members.
    #[must_use]
    pub fn member_transaction_service(
        released: impl ReleasedTransactions,
        make_writer: impl FnOnce(WriterParts<'_>) -> io::Result<Box<dyn Transactions>> + Send + 'static,
        config: &ClusterConfig,
    ) -> Box<dyn MemberService> {
        Box::new(ReplicaService::of_transactions(released, make_writer, config.service.hash_interval_frames))
    }

    fn service_of<S: Service>(service: S, options: ReplicaOptions, config: &ClusterConfig) -> ReplicaService {
        let options = options.configured(&config.service);
        ReplicaService::new(service, options, config.service.hash_interval_frames)
    }

    fn start_by(service: ReplicaService, config: &ClusterConfig, start: Start) -> Result<Self, EngineError> {
        if service.options.snapshot_interval_frames == Some(0) {
            let reason = "0 frames; leave it out for no snapshots".to_owned();
            return Err(EngineError::Option { option: "snapshot_interval_frames", reason });
        }
        let (views, state) = (Arc::clone(&service.views), Arc::clone(&service.state));
        let member = start(config, Box::new(service))?;
        let views = views.lock().unwrap_or_else(PoisonError::into_inner).take();
        let state = state.lock().unwrap_or_else(PoisonError::into_inner).take();
        debug_assert_eq!(views.is_none(), config.own().kind == MemberKind::Witness);
        Ok(Self { member, views, state })
    }

    fn state_service_of(
        factory: ServiceFactory,
        options: StateOptions,
        config: &ClusterConfig,
    ) -> Result<ReplicaService, EngineError> {
        refuse_policy(config)?;
        let snapshot_interval_frames = interval(options.snapshot_interval_frames, &config.service);
        Ok(ReplicaService::of_factory(factory, StateOptions { snapshot_interval_frames, ..options }))
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
    pub fn connect(&self, options: ClientOptions) -> Result<Client, ClientError> {
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

    /// The same, for threads that wait for it; `None` on a witness.
    #[doc(hidden)] // Readers of a command bus wait by it.
    #[must_use]
    pub fn progress(&self) -> Option<Arc<Progress>> {
        self.views.as_ref().map(|views| Arc::clone(&views.progress))
    }

    /// The hash of a state-replicated service's state behind [`Replica::handled_sequence`]: on all members that stand there
    /// the same. `None` on a witness, and of an event-sourced service, whose state is its own.
    #[must_use]
    pub fn state_hash(&self) -> Option<u64> {
        self.state.as_ref().map(|state| state.hash.get())
    }

    /// How often a state-replicated service's state was made anew here, since the start: from a snapshot and the journal,
    /// because frames that it contained, from this member as a leader, were cut.
    #[must_use]
    pub fn states_remade(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.rebuilt.get())
    }

    /// Commands that no handler took here, since the start.
    #[must_use]
    pub fn dead_letter_count(&self) -> u64 {
        self.views.as_ref().map_or(0, |views| views.dead_letters.get())
    }

    /// The threads and what the plan says of them.
    #[must_use]
    pub const fn plan(&self) -> &ThreadPlan<AgentRole> {
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
