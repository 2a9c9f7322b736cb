//! A state-replicated service that waits for its member, and becomes two parts of it.

use super::ahead::Ahead;
use super::exchange::Exchange;
use super::follower::{Follower, StateCounters};
use crate::replica::{Seat, StateViews};
use gapless_agent::{Agent, Waker};
use gapless_cluster::member::service::{MemberService, ServiceError, ServiceParts};
use gapless_log::StreamIdentity;
use gapless_stream::stream_layout::StreamLayout;
use gapless_stream::transactions::Transactions;
use std::sync::{Arc, PoisonError};

pub(crate) struct StateSeat(pub Seat);

impl MemberService for StateSeat {
    fn snapshot_sequence(
        &self,
        layout: &StreamLayout,
        identity: StreamIdentity,
        last_sequence: u64,
    ) -> Result<u64, ServiceError> {
        self.0.snapshot_sequence(layout, identity, last_sequence)
    }

    fn recover(&mut self, layout: &StreamLayout, identity: StreamIdentity, sequence: u64) -> Result<(), ServiceError> {
        Follower::of(&mut self.0.fold).set_source(layout.clone(), identity);
        self.0.recover(layout, identity, sequence)
    }

    fn transactions(&mut self, member: &Waker) -> Option<Box<dyn Transactions>> {
        let exchange = Arc::new(Exchange::new(member.clone()));
        Follower::of(&mut self.0.fold).set_exchange(Arc::clone(&exchange));
        Some(Box::new(Ahead::new(exchange, self.0.options.payload_length_max)))
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
