//! `RouteOffers`: served routes of the domain, by instance.

use crate::process_facts::session;
use gapless_rpc::domain::{KnownRoute, KnownRouteState};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct RouteOffers {
    all: Vec<RouteOffer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteOffer {
    pub route: String,
    pub process_id: u32,
    pub is_open: bool,
    leader: u32,
}

impl RouteOffers {
    pub fn of(known: Vec<KnownRoute>) -> Self {
        let mut leaders = HashMap::new();
        let offers = known.into_iter().map(|KnownRoute { route, process_id, state, .. }| {
            let leader = *leaders.entry(process_id).or_insert_with(|| session(process_id).unwrap_or(process_id));
            RouteOffer { route, process_id, is_open: state == KnownRouteState::Open, leader }
        });
        Self { all: offers.collect() }
    }

    /// Routes of an instance with this process and its children.
    pub fn by(&self, process_id: u32) -> impl Iterator<Item = &RouteOffer> {
        self.all.iter().filter(move |offer| offer.process_id == process_id || offer.leader == process_id)
    }

    /// Open route of an instance.
    pub fn open(&self, process_id: u32, route: &str) -> Option<&RouteOffer> {
        self.by(process_id).find(|offer| offer.is_open && offer.route == route)
    }
}
