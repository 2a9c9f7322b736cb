//! Leases: those of others and the routes that follow from them, and the own one.

use super::{BridgeCore, CorePhase, Topic};
use crate::effects::{BridgeNotice, DeliveryToken, Effect};
use crate::peers::{LeaseChange, LeaseTime, PeerIndex, ReplacedIncarnation};
use crate::presence::{BadLease, Lease, OfferedRoute, PEERS_MAX, bridge_of};
use crate::record::{KafkaRecord, PROTOCOL_VERSION, read_sender};
use crate::route_filter::any_matches;

impl BridgeCore {
    pub(super) fn read_presence(
        &mut self,
        record: KafkaRecord,
        append_ms: i64,
        now_ns: u64,
        effects: &mut Vec<Effect>,
    ) {
        let Some(name) = record.key.as_deref().and_then(bridge_of).map(str::to_owned) else {
            self.counters.malformed_records += 1;
            return;
        };
        let sender = read_sender(&record.headers);
        if *name == *self.id.name {
            if let Some((sender, sent)) = sender
                && sender == self.id
                && record.payload.is_some()
            {
                self.echo(Topic::Presence, sent, append_ms, now_ns, effects);
            }
            return;
        }
        let sender = sender.map(|(sender, _)| sender);
        let Some(json) = record.payload else {
            if let Some(peer) = self.peers.read_tombstone(&name, sender.as_ref()) {
                self.notice(BridgeNotice::PeerStopped { bridge: name.clone() }, effects);
                self.lose_peer(peer, &format!("bridge {name} has stopped"), effects);
            }
            return;
        };
        let lease = match Lease::read(&json) {
            Ok(lease) => lease,
            Err(bad) => {
                let own = sender.as_ref().filter(|sender| *sender.name == *name);
                let is_successor = own.is_some_and(|sender| self.peers.is_other_incarnation(sender));
                if self.peers.has_lease(&name) && !is_successor {
                    // Foreign bytes: the last good lease holds as long as it would without them.
                    self.counters.malformed_records += 1;
                    return;
                }
                return self.refuse_lease(&name, &bad, effects);
            }
        };
        self.refused_leases.remove(&name);
        let is_as_before = self.peers.offers_same_routes(&name, &lease);
        let age_ns = if self.is_joined() { self.presence_end.time.age_ns(append_ms, now_ns) } else { 0 };
        let news = self.peers.read_lease(&name, lease, LeaseTime { now_ns, append_ms, age_ns });
        match news {
            LeaseChange::Stale => {
                self.counters.stale_leases += 1;
                return;
            }
            LeaseChange::NoRoom => {
                if self.is_joined() && !std::mem::replace(&mut self.has_reported_full, true) {
                    effects.push(Effect::Notice(BridgeNotice::PrefixFull { bridge: name }));
                }
                return;
            }
            LeaseChange::Renewed if is_as_before => {
                if let Some(peer) = self.peers.find(&name) {
                    self.peers.update_load(peer);
                }
                return;
            }
            LeaseChange::Renewed => {}
            LeaseChange::Back => self.notice(BridgeNotice::PeerBack { bridge: name }, effects),
            LeaseChange::Began { old } => {
                let machine = self.peers.machine(&name).to_owned();
                self.notice(BridgeNotice::PeerBegan { bridge: name.clone(), machine }, effects);
                if let Some(ReplacedIncarnation { id: old, mark }) = old {
                    let reason = format!("bridge {name} began again");
                    self.calls_out.lose(&old, &reason, mark, &mut self.peers, effects);
                    self.with_calls_in(now_ns, effects, |calls, context| calls.forget(&old, context));
                }
            }
        }
        self.update_routes(effects);
    }

    pub(super) fn notice(&self, notice: BridgeNotice, effects: &mut Vec<Effect>) {
        // Bridges that were there before, and still are, are named when this one serves.
        if self.is_joined() {
            effects.push(Effect::Notice(notice));
        }
    }

    pub(super) fn refuse_lease(&mut self, name: &str, bad: &BadLease, effects: &mut Vec<Effect>) {
        let (bridge, reason) = (name.to_owned(), bad.to_string());
        let words = format!("bridge {bridge} is not used any more: {reason}");
        // Named once, not with each renewal; of those from before, the renewed ones.
        if self.is_joined() && self.refused_leases.get(name) != Some(&reason) && self.refused_leases.len() < PEERS_MAX {
            self.refused_leases.insert(bridge.clone(), reason.clone());
            effects.push(Effect::Notice(BridgeNotice::BadLease { bridge, reason }));
        }
        if let Some(peer) = self.peers.refuse(name) {
            self.lose_peer(peer, &words, effects);
        }
    }

    pub(super) fn set_offers(&mut self, offers: Vec<OfferedRoute>, effects: &mut Vec<Effect>) {
        let identities = offers.iter().flat_map(|offer| &offer.instances).map(|instance| instance.identity);
        self.peers.set_own_identities(identities.collect());
        if self.offers != offers {
            self.offers = offers;
            self.is_lease_due |= self.is_marked();
        }
        self.update_routes(effects);
    }

    pub(super) fn update_routes(&mut self, effects: &mut Vec<Effect>) {
        if self.phase != CorePhase::Serving {
            return;
        }
        let routes = self.peers.routes();
        for (name, route) in &routes {
            if self.relayed.get(name) != Some(route) {
                effects.push(Effect::Relay(route.clone()));
            }
        }
        for name in self.relayed.keys().filter(|name| !routes.contains_key(*name)) {
            effects.push(Effect::Withdraw { route: name.clone() });
        }
        self.relayed = routes;
    }

    pub(super) fn lose_peer(&mut self, peer: PeerIndex, reason: &str, effects: &mut Vec<Effect>) {
        let bridge = self.peers.get(peer).id.clone();
        self.calls_out.lose(&bridge, reason, None, &mut self.peers, effects);
        self.update_routes(effects);
    }

    pub(super) fn send_lease(&mut self, now_ns: u64, effects: &mut Vec<Effect>) {
        let Some(mark) = self.mark else { return };
        (self.is_lease_due, self.lease_sent_ns) = (false, now_ns);
        let is_stopping = !matches!(self.phase, CorePhase::Joining | CorePhase::Serving);
        let offered = self.offers.iter().filter(|offer| !is_stopping && any_matches(&self.options.offer, &offer.route));
        let counted =
            offered.map(|offer| OfferedRoute { in_flight: self.calls_in.in_flight(&offer.route), ..offer.clone() });
        let mut lease = Lease {
            protocol: PROTOCOL_VERSION,
            incarnation: self.id.incarnation,
            mark,
            machine: self.options.machine.clone(),
            lease_ms: self.lease_ns() / 1_000_000,
            is_stopping,
            routes: counted.collect(),
        };
        let (mut json, routes) = (lease.to_json(), lease.routes.len());
        while json.len() > self.options.limits.segment_bytes && !lease.routes.is_empty() {
            let share = lease.routes.len() * self.options.limits.segment_bytes / json.len();
            lease.routes.truncate(share.min(lease.routes.len() - 1));
            json = lease.to_json();
        }
        let left_out = routes - lease.routes.len();
        if left_out != std::mem::replace(&mut self.routes_left_out, left_out) && left_out > 0 {
            effects.push(Effect::Notice(BridgeNotice::LeaseFull { routes: left_out }));
        }
        self.last_sent += 1;
        let record = self.writer.lease(&self.id.name, &now_ns.to_string(), Some(json));
        self.send(DeliveryToken::Lease(self.last_sent), &self.presence.clone(), record, effects);
    }
}
