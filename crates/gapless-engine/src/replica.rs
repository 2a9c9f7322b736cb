//! [`Replica`]: a service on a cluster. An event-sourced handler sees a command only after a quorum has it (decision
//! 3), so an instance never rolls back, and a new leader's instance has the old leader's state, or lags slightly.

use crate::EngineError;
use crate::fold::{OnPanic, OnUnhandled};
use crate::options::POLICY_OF_STATE_REFUSED;
use crate::recovery::RecoverySummary;
use crate::replica_service::{ReplicaOptions, ReplicaService, ServiceViews};
use crate::service::Service;
use crate::snapshot_schedule::SnapshotRequests;
use crate::state::transaction_applier::StateViews;
use crate::state::{ServiceFactory, StateOptions, StateService, factory_of};
use crate::store::Store;
use crate::transaction_service::{ReleasedTransactions, WriterParts};
use gapless_agent::progress::ProgressCounter;
use gapless_agent::{Now, ThreadPlan};
use gapless_client::ClientError;
use gapless_client::PolledClient;
use gapless_client::polled::ClientOptions;
use gapless_cluster::ClusterMember;
use gapless_cluster::config::{ClusterConfig, MemberKind, OnFault, ServiceConfig};
use gapless_stream::AgentRole;
use gapless_stream::member_service::MemberService;
use gapless_stream::transactions::Transactions;
use std::io;
use std::sync::{Arc, PoisonError};

impl ReplicaOptions {
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

/// Frames; the operator's setting wins.
fn interval(own: Option<u64>, config: &ServiceConfig) -> Option<u64> {
    config.snapshot_interval_frames.map_or(own, |frames| Some(frames).filter(|frames| *frames > 0))
}

fn refuse_snapshots(config: &ClusterConfig) -> Result<(), EngineError> {
    refuse_policy(config)?;
    if config.service.snapshot_interval_frames.is_some_and(|frames| frames > 0) {
        let reason = "the writer of transactions reads the whole stream; leave it out".to_owned();
        return Err(EngineError::Option { option: "service.snapshot_interval_frames", reason });
    }
    Ok(())
}

/// Such settings have no meaning for a service whose handlers run before their commands enter the stream.
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

/// Running instance of a service, with its cluster member.
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
    /// `None` on a witness.
    views: Option<ServiceViews>,
    state: Option<StateViews>,
}

type MemberStart = fn(&ClusterConfig, Box<dyn MemberService>) -> Result<ClusterMember, gapless_cluster::ClusterError>;

impl Replica {
    /// Recovers the member's directory and starts; clients can connect when this returns. A witness runs no service.
    ///
    /// # Errors
    /// Invalid options, a directory in use or of another kind, damage, no threads, no port.
    pub fn start<S: Service>(service: S, options: ReplicaOptions, config: &ClusterConfig) -> Result<Self, EngineError> {
        Self::start_by(Self::service_of(service, options, config), config, ClusterMember::start_with)
    }

    /// Like [`Replica::start`], without agent threads: progress happens only in [`Replica::turn`], at the caller's
    /// time. For threads with other work, tests and simulations.
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

    /// Like [`Replica::start`], with state replication: only the leader runs the handlers. `make` declares the
    /// collections and returns the service; it is called again to rebuild the state of a deposed leader.
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

    /// Like [`Replica::start_state`], without agent threads.
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

    /// Like [`Replica::start`], for a service with its own writer of transactions, created by `make_writer`. `released`
    /// applies them once released.
    ///
    /// # Errors
    /// As for [`Replica::start_state`]; [`EngineError::Option`] for snapshots, which would delete journal that the
    /// writer reads.
    pub fn start_transactions(
        released: impl ReleasedTransactions,
        make_writer: impl FnOnce(WriterParts<'_>) -> io::Result<Box<dyn Transactions>> + Send + 'static,
        config: &ClusterConfig,
    ) -> Result<Self, EngineError> {
        refuse_snapshots(config)?;
        Self::start_by(ReplicaService::of_transactions(released, make_writer, 0), config, ClusterMember::start_with)
    }

    /// Like [`Replica::start_transactions`], without agent threads.
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

    /// Creates the event-sourced service for a member built by the caller ([`ClusterMember::start_by_hand_with_in`]).
    #[must_use]
    pub fn member_service<S: Service>(
        service: S,
        options: ReplicaOptions,
        config: &ClusterConfig,
    ) -> Box<dyn MemberService> {
        Box::new(Self::service_of(service, options, config))
    }

    /// Like [`Replica::member_service`], for a state-replicated service.
    ///
    /// # Errors
    /// [`EngineError::Option`] for settings of the member's file that have no meaning for such a service.
    pub fn member_state_service<S: StateService>(
        make: impl Fn(&mut Store) -> S + Send + Sync + 'static,
        options: StateOptions,
        config: &ClusterConfig,
    ) -> Result<Box<dyn MemberService>, EngineError> {
        Ok(Box::new(Self::state_service_of(factory_of(make), options, config)?))
    }

    /// Like [`Replica::member_service`], for a service with its own writer. The members compare hashes of the state of
    /// `released`.
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

    fn start_by(service: ReplicaService, config: &ClusterConfig, start: MemberStart) -> Result<Self, EngineError> {
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

    /// Polls every agent once; returns the amount of work done.
    ///
    /// # Errors
    /// Failure of an agent.
    pub fn turn(&mut self, now: Now) -> Result<usize, EngineError> {
        Ok(self.member.turn(now)?)
    }

    #[must_use]
    pub const fn member(&self) -> &ClusterMember {
        &self.member
    }

    /// Connects a client within this process, usable while this member leads; to follow the leader, use
    /// [`PolledClient::connect_any`].
    ///
    /// # Errors
    /// Ring sizes out of range, or no memory for them.
    pub fn connect(&self, options: ClientOptions) -> Result<PolledClient, ClientError> {
        self.member.stream().client(options)
    }

    /// Returns an empty summary on a witness.
    #[must_use]
    pub fn recovered(&self) -> RecoverySummary {
        self.views.as_ref().map(|views| views.recovered).unwrap_or_default()
    }

    /// Returns 0 on a witness.
    #[must_use]
    pub fn handled_sequence(&self) -> u64 {
        self.views.as_ref().map_or(0, |views| views.handled.get())
    }

    /// Returns `None` on a witness.
    #[doc(hidden)] // Awaited by readers of a command bus.
    #[must_use]
    pub fn progress(&self) -> Option<Arc<ProgressCounter>> {
        self.views.as_ref().map(|views| Arc::clone(&views.progress))
    }

    /// Returns the hash of a replicated state after [`Replica::handled_sequence`], equal on all members there; `None`
    /// on a witness and for event-sourced services.
    #[must_use]
    pub fn state_hash(&self) -> Option<u64> {
        self.state.as_ref().map(|state| state.hash.get())
    }

    /// Counts rebuilds of a replicated state since the start, because it contained truncated frames of this member's
    /// leadership.
    #[must_use]
    pub fn states_rebuilt(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.rebuilt.get())
    }

    /// Counts commands that no handler took here, since the start.
    #[must_use]
    pub fn dead_letter_count(&self) -> u64 {
        self.views.as_ref().map_or(0, |views| views.dead_letters.get())
    }

    #[must_use]
    pub const fn plan(&self) -> &ThreadPlan<AgentRole> {
        self.member.stream().plan()
    }

    /// Takes a snapshot of everything handled so far; returns its sequence once it is on the device. Commits continue
    /// meanwhile.
    ///
    /// # Errors
    /// A witness, a failed write, a failed member.
    pub fn snapshot(&self) -> Result<u64, EngineError> {
        let Some(views) = &self.views else {
            let reason = "a witness runs no service, of which a snapshot could be taken".to_owned();
            return Err(EngineError::Option { option: "kind", reason });
        };
        views.snapshots.take(|| self.failure())
    }

    /// Returns a handle for another thread, while this one polls the agents; `None` on a witness.
    #[must_use]
    pub fn snapshots(&self) -> Option<SnapshotRequests> {
        self.views.as_ref().map(|views| views.snapshots.clone())
    }

    /// Returns true if this replica lagged so far that it has fetched another member's state and stops. Start it again
    /// with a new service.
    #[must_use]
    pub fn must_start_again(&self) -> bool {
        self.member.must_start_again()
    }

    #[must_use]
    pub fn failure(&self) -> Option<EngineError> {
        self.member.stream().failure().map(EngineError::Stream)
    }

    /// A leader hands over first, and all released frames are handled. Returns the last sequence released here.
    ///
    /// # Errors
    /// The member failed, before or during the stop.
    pub fn stop(self) -> Result<u64, EngineError> {
        Ok(self.member.stop()?)
    }
}
