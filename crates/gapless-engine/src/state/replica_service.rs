//! [`StateReplicaService`]: a state-replicated service as a member of a cluster runs it: two parts of the member are made of it.

use super::ahead::Ahead;
use super::exchange::Exchange;
use super::follower::{Follower, StateCounters};
use super::{Make, StateOptions, StateService, make_of};
use crate::fold::{Fold, Policy};
use crate::replica_service::{ReplicaOptions, ReplicaService, StateViews};
use crate::store::Store;
use gapless_agent::{Agent, Waker};
use gapless_journal::FilePoint;
use gapless_log::StreamIdentity;
use gapless_stream::member_service::{MemberService, ServiceError, ServiceParts};
use gapless_stream::stream_layout::StreamLayout;
use gapless_stream::transactions::Transactions;
use std::sync::{Arc, PoisonError};

/// As [`ReplicaService`], of a state-replicated service.
pub struct StateReplicaService(pub(crate) ReplicaService);

impl StateReplicaService {
    /// Of the service that `make` gives; it is called again when the state is made anew.
    #[must_use]
    pub fn new<S: StateService>(make: impl Fn(&mut Store) -> S + Send + Sync + 'static, options: StateOptions) -> Self {
        Self::of(make_of(make), options)
    }

    pub(crate) fn of(make: Make, options: StateOptions) -> Self {
        let StateOptions { snapshot_interval_frames, snapshot_on_stop, limits } = options;
        let policy = Policy::default();
        let options = ReplicaOptions { snapshot_interval_frames, snapshot_on_stop, policy };
        // Each transaction carries the hash of the state.
        Self(ReplicaService::of(Fold::of_transactions(Box::new(Follower::new(make, limits))), options, 0))
    }
}

impl MemberService for StateReplicaService {
    fn points(&self, layout: &StreamLayout) -> Result<Vec<FilePoint>, ServiceError> {
        self.0.points(layout)
    }

    fn recover(&mut self, layout: &StreamLayout, identity: StreamIdentity, sequence: u64) -> Result<(), ServiceError> {
        Follower::of(&mut self.0.fold).set_source(layout.clone(), identity);
        self.0.recover(layout, identity, sequence)
    }

    fn transactions(&mut self, member: &Waker) -> Option<Box<dyn Transactions>> {
        let exchange = Arc::new(Exchange::new(member.clone()));
        Follower::of(&mut self.0.fold).set_exchange(Arc::clone(&exchange));
        Some(Box::new(Ahead::new(exchange)))
    }

    fn agent(mut self: Box<Self>, parts: ServiceParts<'_>) -> Result<Box<dyn Agent>, ServiceError> {
        let (hash, remade) = (parts.counters.add("service.state_hash")?, parts.counters.add("service.states_remade")?);
        let follower = Follower::of(&mut self.0.fold);
        if let Some(exchange) = follower.exchange() {
            exchange.set_follower(parts.waker.clone());
        }
        *self.0.state.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(StateViews { hash: hash.view(), remade: remade.view() });
        follower.count_in(StateCounters { hash, remade });
        Box::new(self.0).agent(parts)
    }
}
