//! `Drains`: instances that are being drained, and those that are finished.

use super::protocol::WatchRequests;
use super::route_offers::RouteOffers;
use crate::instance_name::InstanceName;
use crate::process_facts::session;
use gapless_rpc::Domain;
use std::collections::BTreeSet;
use std::time::Duration;

/// Instances being drained, and finished ones.
#[derive(Debug, Default)]
pub struct Drains {
    asked: BTreeSet<(u32, String)>,
    over: BTreeSet<(InstanceName, u64)>,
    are_waiting: bool,
}

impl Drains {
    /// Starts wanted drains and returns newly finished ones; without a domain, all count as finished.
    pub fn poll(&mut self, requests: &WatchRequests, domain: Option<&Domain>) -> Vec<(InstanceName, u64)> {
        let mut over = Vec::new();
        let mut wanted = BTreeSet::new();
        self.are_waiting = false;
        let known = requests.values().any(|request| request.is_to_drain).then(|| domain.map(DomainView::of)).flatten();
        for (instance, request) in requests.iter().filter(|(_, request)| request.is_to_drain) {
            let key = (instance.clone(), request.incarnation);
            wanted.insert(key.clone());
            if self.over.contains(&key) {
                continue;
            }
            if let Some((domain, known)) = domain.zip(known.as_ref()) {
                for offer in known.offered.by(request.process_id) {
                    self.ask(domain, offer.process_id, &offer.route);
                }
            }
            if known.as_ref().is_none_or(|known| known.serves_nothing(request.process_id)) {
                self.over.insert(key.clone());
                over.push(key);
            } else {
                self.are_waiting = true;
            }
        }
        self.over.retain(|key| wanted.contains(key));
        if wanted.is_empty() {
            self.asked.clear();
        }
        over
    }

    /// Whether a drain is in progress.
    pub const fn are_waiting(&self) -> bool {
        self.are_waiting
    }

    fn ask(&mut self, domain: &Domain, process_id: u32, route: &str) {
        if !self.asked.insert((process_id, route.to_owned())) {
            return;
        }
        // Progress is seen in the served routes, so do not wait here.
        if let Err(error) = domain.drain_route(route, Some(process_id), Duration::ZERO) {
            tracing::warn!("process {process_id} is to finish {route}: {error}");
        }
    }
}

struct DomainView {
    has_discovered: bool,
    unheard: Vec<u32>,
    offered: RouteOffers,
}

impl DomainView {
    fn of(domain: &Domain) -> Self {
        // Order matters: a process that is no longer unheard is among the offers.
        let (has_discovered, unheard) = (domain.has_discovered(), domain.unknown_servers());
        Self { has_discovered, unheard, offered: RouteOffers::of(domain.offered_routes()) }
    }

    fn serves_nothing(&self, process_id: u32) -> bool {
        let is_its = |other: &u32| *other == process_id || session(*other) == Some(process_id);
        self.has_discovered && !self.unheard.iter().any(is_its) && self.offered.by(process_id).next().is_none()
    }
}
