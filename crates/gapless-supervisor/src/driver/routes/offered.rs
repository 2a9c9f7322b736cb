//! [`Offered`]: what is served in the domain, by processes and those that they belong to.

use crate::process_facts::session;
use gapless_rpc::domain::{KnownRoute, KnownRouteState};
use std::collections::HashMap;

/// What is served in the domain.
#[derive(Debug, Default)]
pub struct Offered {
    all: Vec<Offer>,
}

/// One route of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub route: String,
    pub process_id: u32,
    /// It takes calls now.
    pub is_open: bool,
    /// The first process of its session: a copy leads one, and what it starts belongs to it.
    leader: u32,
}

impl Offered {
    /// Of what is known by now.
    pub fn of(known: Vec<KnownRoute>) -> Self {
        let mut leaders = HashMap::new();
        let offers = known.into_iter().map(|KnownRoute { route, process_id, state, .. }| {
            let leader = *leaders.entry(process_id).or_insert_with(|| session(process_id).unwrap_or(process_id));
            Offer { route, process_id, is_open: state == KnownRouteState::Open, leader }
        });
        Self { all: offers.collect() }
    }

    /// What a copy with this process serves: it itself, and what it has started.
    pub fn by(&self, process_id: u32) -> impl Iterator<Item = &Offer> {
        self.all.iter().filter(move |offer| offer.process_id == process_id || offer.leader == process_id)
    }

    /// The process that serves a route for that copy and takes calls.
    pub fn open(&self, process_id: u32, route: &str) -> Option<&Offer> {
        self.by(process_id).find(|offer| offer.is_open && offer.route == route)
    }
}
