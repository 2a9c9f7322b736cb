//! The other bridges by their leases, the load on them, and the choice of one for a call.

use crate::config::BridgeLimits;
use crate::effects::{RemoteInstance, RemoteRoute};
use crate::outcome::CallFailure;
use crate::presence::{Lease, MarkPlace, OfferedInstance, OfferedRoute, PEERS_MAX};
use crate::record::names::{self, BridgeId};
use crate::route_filter::{RouteFilter, any_matches};
use gapless_agent::monotonic::saturating_ns;
use gapless_wire::split_mix;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Maximum instances of other domains that a relay stands for.
pub const REMOTE_INSTANCES_MAX: usize = 256;

const SILENT_NAMED_MAX: usize = 3;

pub(crate) type PeerIndex = usize;

#[derive(Debug)]
pub(crate) struct PeerBridge {
    pub(crate) id: BridgeId,
    pub(crate) inbox: Arc<str>,
    pub(crate) mark: MarkPlace,
    pub(crate) lease: Lease,
    pub(crate) lease_append_ms: i64,
    pub(crate) lease_ns: u64,
    good_until_ns: u64,
    pub(crate) state: PeerState,
    pub(crate) load: CallLoad,
    by_route: HashMap<Arc<str>, u32>,
    heard_ns: u64,
    /// Time of the first ping that was not answered.
    unanswered_ns: Option<u64>,
}

/// State of another bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerState {
    /// The lease is good, and the inbox is read as far as known.
    Alive,
    Silent,
    /// The lease is good, but pings are not answered.
    Deaf,
    Stopped,
}

impl PeerState {
    /// The state in a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Silent => "silent",
            Self::Deaf => "deaf",
            Self::Stopped => "stopped",
        }
    }
}

/// Calls and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallLoad {
    /// Calls in flight.
    pub calls: u32,
    /// Bytes of their requests.
    pub bytes: u64,
}

impl CallLoad {
    /// One call always has room.
    pub(crate) fn has_room(&self, bytes: u64, limits: &BridgeLimits) -> bool {
        self.calls == 0 || self.calls < limits.calls_per_peer && self.bytes + bytes <= limits.bytes_per_peer
    }

    pub(crate) const fn add(&mut self, bytes: u64) {
        self.calls += 1;
        self.bytes += bytes;
    }

    pub(crate) const fn remove(&mut self, bytes: u64) {
        self.calls = self.calls.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

#[derive(Debug)]
struct RouteCandidate {
    peer: PeerIndex,
    workers: u32,
    reported: u32,
    identities: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseChange {
    Renewed,
    Began { old: Option<ReplacedIncarnation> },
    Back,
    Stale,
    NoRoom,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplacedIncarnation {
    pub(crate) id: BridgeId,
    /// Mark of the next incarnation, if of the same log: no request after it has begun.
    pub(crate) mark: Option<MarkPlace>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstanceSelector {
    Any,
    Key(u64),
    Instance(u64),
}

#[derive(Debug)]
pub(crate) struct PeerBridges {
    prefix: String,
    limits: BridgeLimits,
    take: Vec<RouteFilter>,
    peers: Vec<PeerBridge>,
    by_name: BTreeMap<Arc<str>, PeerIndex>,
    expiry_ns: u64,
    by_route: HashMap<Arc<str>, Vec<RouteCandidate>>,
    own_identities: HashSet<u64>,
    /// Equal bridges take turns.
    rotation: usize,
}

impl PeerBridges {
    pub(crate) fn new(prefix: &str, take: Vec<RouteFilter>, limits: BridgeLimits) -> Self {
        Self {
            prefix: prefix.to_owned(),
            limits,
            take,
            peers: Vec::new(),
            by_name: BTreeMap::new(),
            expiry_ns: u64::MAX,
            by_route: HashMap::new(),
            own_identities: HashSet::new(),
            rotation: 0,
        }
    }

    pub(crate) fn get(&self, peer: PeerIndex) -> &PeerBridge {
        &self.peers[peer]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PeerBridge> {
        self.by_name.values().map(|index| &self.peers[*index])
    }

    pub(crate) fn offering(&self, route: &str) -> Vec<String> {
        let candidates = self.by_route.get(route).into_iter().flatten();
        candidates.map(|candidate| self.peers[candidate.peer].id.name.to_string()).collect()
    }

    pub(crate) fn find(&self, name: &str) -> Option<PeerIndex> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn has_lease(&self, name: &str) -> bool {
        let is_good = |peer: PeerIndex| matches!(self.peers[peer].state, PeerState::Alive | PeerState::Deaf);
        self.find(name).is_some_and(is_good)
    }

    pub(crate) fn is_other_incarnation(&self, sender: &BridgeId) -> bool {
        self.find(&sender.name).is_some_and(|peer| self.peers[peer].id != *sender)
    }

    pub(crate) fn read_lease(&mut self, name: &str, lease: Lease, at: LeaseTime) -> LeaseChange {
        let good_ns = (lease.lease_ms * 1_000_000).saturating_sub(at.age_ns);
        let good_until_ns = at.now_ns + good_ns;
        let lease_ns = at.now_ns.saturating_sub(at.age_ns);
        self.expiry_ns = self.expiry_ns.min(good_until_ns);
        let Some(index) = self.find(name) else {
            let Some(index) = self.free_index() else { return LeaseChange::NoRoom };
            let name: Arc<str> = name.into();
            self.by_name.insert(name.clone(), index);
            let inbox = names::inbox(&self.prefix, &name).into();
            let peer = PeerBridge {
                id: BridgeId { name, incarnation: lease.incarnation },
                inbox,
                mark: lease.mark,
                lease,
                lease_append_ms: at.append_ms,
                lease_ns,
                good_until_ns,
                state: PeerState::Alive,
                load: CallLoad::default(),
                by_route: HashMap::new(),
                heard_ns: at.now_ns,
                unanswered_ns: None,
            };
            if index == self.peers.len() {
                self.peers.push(peer);
            } else {
                self.peers[index] = peer;
            }
            return LeaseChange::Began { old: None };
        };
        let peer = &mut self.peers[index];
        if lease.incarnation == peer.id.incarnation {
            let was = peer.state;
            (peer.lease_append_ms, peer.lease_ns) = (at.append_ms, lease_ns);
            // Leases of a backlog are old and do not shorten a younger one.
            (peer.lease, peer.good_until_ns) = (lease, good_until_ns.max(peer.good_until_ns));
            if was == PeerState::Deaf {
                return LeaseChange::Renewed;
            }
            peer.state = PeerState::Alive;
            return if was == PeerState::Alive { LeaseChange::Renewed } else { LeaseChange::Back };
        }
        // Stale only if both offset and time of its mark are not after the known ones: either may go back, the time
        // with the broker's clock, the offset in a recreated topic.
        if lease.mark.offset <= peer.mark.offset && lease.mark.time_ms <= peer.mark.time_ms {
            return LeaseChange::Stale;
        }
        let id = BridgeId { name: peer.id.name.clone(), incarnation: lease.incarnation };
        let mark = Some(lease.mark).filter(|mark| mark.is_after(peer.mark));
        let old = ReplacedIncarnation { id: std::mem::replace(&mut peer.id, id), mark };
        (peer.mark, peer.lease, peer.good_until_ns) = (lease.mark, lease, good_until_ns);
        (peer.lease_append_ms, peer.lease_ns) = (at.append_ms, lease_ns);
        (peer.state, peer.heard_ns, peer.unanswered_ns) = (PeerState::Alive, at.now_ns, None);
        peer.load = CallLoad::default();
        peer.by_route.clear();
        LeaseChange::Began { old: Some(old) }
    }

    fn free_index(&mut self) -> Option<PeerIndex> {
        if self.peers.len() < PEERS_MAX {
            return Some(self.peers.len());
        }
        let has_gone = |peer: &PeerBridge| matches!(peer.state, PeerState::Silent | PeerState::Stopped);
        let index = self.peers.iter().position(has_gone)?;
        self.by_name.remove(&self.peers[index].id.name);
        Some(index)
    }

    pub(crate) fn read_tombstone(&mut self, name: &str, sender: Option<&BridgeId>) -> Option<PeerIndex> {
        let index = self.find(name)?;
        let peer = &mut self.peers[index];
        let is_other = sender.is_some_and(|sender| *sender != peer.id);
        if is_other || peer.state == PeerState::Stopped {
            return None;
        }
        peer.state = PeerState::Stopped;
        Some(index)
    }

    pub(crate) fn refuse(&mut self, name: &str) -> Option<PeerIndex> {
        let index = self.find(name)?;
        let was = std::mem::replace(&mut self.peers[index].state, PeerState::Stopped);
        (was != PeerState::Stopped).then_some(index)
    }

    pub(crate) fn note_heard(&mut self, sender: &BridgeId, now_ns: u64) -> bool {
        let Some(index) = self.find(&sender.name) else { return false };
        let peer = &mut self.peers[index];
        if peer.id != *sender {
            return false;
        }
        (peer.heard_ns, peer.unanswered_ns) = (now_ns, None);
        let was_deaf = peer.state == PeerState::Deaf;
        if was_deaf {
            peer.state = PeerState::Alive;
        }
        was_deaf
    }

    /// Silent in the own inbox while calls are in flight there, or deaf.
    pub(crate) fn due_pings(&mut self, now_ns: u64) -> Vec<PeerIndex> {
        let interval_ns = saturating_ns(self.limits.lease_interval);
        let mut due = Vec::new();
        for (index, peer) in self.peers.iter_mut().enumerate() {
            let is_waiting = peer.state == PeerState::Alive && peer.load.calls > 0;
            if peer.state == PeerState::Deaf || is_waiting && now_ns.saturating_sub(peer.heard_ns) >= interval_ns {
                let since_ns = *peer.unanswered_ns.get_or_insert(now_ns);
                self.expiry_ns = self.expiry_ns.min(since_ns + saturating_ns(self.limits.lease_time));
                due.push(index);
            }
        }
        due
    }

    pub(crate) fn expire(&mut self, now_ns: u64) -> Vec<(PeerIndex, String)> {
        if now_ns < self.expiry_ns {
            return Vec::new();
        }
        let deaf_ns = saturating_ns(self.limits.lease_time);
        let mut lost = Vec::new();
        for (index, peer) in self.peers.iter_mut().enumerate() {
            let is_deaf = peer.unanswered_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= deaf_ns);
            let words = match peer.state {
                PeerState::Alive | PeerState::Deaf if peer.good_until_ns <= now_ns => {
                    peer.state = PeerState::Silent;
                    "its lease is over, and it has not renewed it"
                }
                PeerState::Alive if is_deaf => {
                    peer.state = PeerState::Deaf;
                    "it renews its lease, and answers no ping in its inbox"
                }
                _ => continue,
            };
            lost.push((index, words.to_owned()));
        }
        let expiry = |peer: &PeerBridge| match peer.state {
            PeerState::Alive => {
                let deaf = peer.unanswered_ns.map_or(u64::MAX, |since_ns| since_ns + deaf_ns);
                Some(peer.good_until_ns.min(deaf))
            }
            PeerState::Deaf => Some(peer.good_until_ns),
            PeerState::Silent | PeerState::Stopped => None,
        };
        self.expiry_ns = self.peers.iter().filter_map(expiry).min().unwrap_or(u64::MAX);
        lost
    }

    pub(crate) const fn next_expiry_ns(&self) -> u64 {
        self.expiry_ns
    }

    /// Gives every bridge time for a new lease: this one was cut off itself.
    pub(crate) fn extend_leases(&mut self, until_ns: u64) {
        for peer in &mut self.peers {
            peer.good_until_ns = peer.good_until_ns.max(until_ns);
            peer.unanswered_ns = None;
        }
    }

    /// Subtracts the time that the leases have aged, which becomes known only now.
    pub(crate) fn set_lease_ages(&mut self, age_ns: impl Fn(i64) -> u64, now_ns: u64) {
        for peer in &mut self.peers {
            let age_ns = age_ns(peer.lease_append_ms);
            let good_ns = (peer.lease.lease_ms * 1_000_000).saturating_sub(age_ns);
            peer.good_until_ns = now_ns + good_ns;
            peer.lease_ns = now_ns.saturating_sub(age_ns);
        }
        self.expiry_ns = now_ns;
    }

    pub(crate) fn set_own_identities(&mut self, identities: HashSet<u64>) {
        self.own_identities = identities;
    }

    pub(crate) fn routes(&mut self) -> BTreeMap<String, RemoteRoute> {
        self.by_route.clear();
        let mut routes = BTreeMap::<String, RemoteRoute>::new();
        for index in self.by_name.values().copied() {
            let peer = &self.peers[index];
            if peer.state != PeerState::Alive || peer.lease.is_stopping {
                continue;
            }
            for offered in &peer.lease.routes {
                let is_remote = |identity: &u64| !self.own_identities.contains(identity);
                let open = offered.instances.iter().filter(|each| each.is_open && is_remote(&each.identity));
                let open: Vec<_> = open.collect();
                if open.is_empty() || !any_matches(&self.take, &offered.route) {
                    continue;
                }
                let candidate = RouteCandidate {
                    peer: index,
                    workers: open.iter().map(|each| each.workers).fold(0, u32::saturating_add),
                    reported: offered.in_flight,
                    identities: open.iter().map(|each| each.identity).collect(),
                };
                let route = routes.entry(offered.route.clone()).or_insert_with(|| RemoteRoute {
                    route: offered.route.clone(),
                    version: offered.version.clone(),
                    metadata: offered.metadata.clone(),
                    request: offered.request.clone(),
                    reply: offered.reply.clone(),
                    workers: 0,
                    instances: Vec::new(),
                });
                for instance in open {
                    let is_known = route.instances.iter().any(|each| each.identity == instance.identity);
                    if !is_known && route.instances.len() < REMOTE_INSTANCES_MAX {
                        let name = format!("{}/{}", peer.lease.machine, instance.name);
                        route.instances.push(RemoteInstance { identity: instance.identity, name });
                        route.workers = route.workers.saturating_add(instance.workers);
                    }
                }
                self.by_route.entry(offered.route.as_str().into()).or_default().push(candidate);
            }
        }
        routes.values_mut().for_each(|route| route.instances.sort_by_key(|instance| instance.identity));
        routes
    }

    pub(crate) fn update_load(&mut self, index: PeerIndex) {
        for offered in &self.peers[index].lease.routes {
            let candidates = self.by_route.get_mut(offered.route.as_str()).into_iter().flatten();
            candidates.filter(|each| each.peer == index).for_each(|each| each.reported = offered.in_flight);
        }
    }

    pub(crate) fn choose(
        &mut self,
        route: &str,
        wanted: InstanceSelector,
        bytes: u64,
        now_ns: u64,
    ) -> Result<(PeerIndex, Arc<str>), CallFailure> {
        let Some((route, candidates)) = self.by_route.get_key_value(route) else {
            return Err(CallFailure::NoRoute { reason: self.silent_offers(route, None, now_ns).join("; ") });
        };
        let has_room = |candidate: &&RouteCandidate| self.peers[candidate.peer].load.has_room(bytes, &self.limits);
        let named = match wanted {
            InstanceSelector::Any => None,
            InstanceSelector::Instance(identity) => {
                let holder = candidates.iter().find(|each| each.identities.contains(&identity));
                let gone = || {
                    let mut reasons = vec![format!("its instance {identity:016x} has gone")];
                    reasons.extend(self.silent_offers(route, Some(identity), now_ns));
                    CallFailure::NoRoute { reason: reasons.join("; ") }
                };
                Some(holder.ok_or_else(gone)?)
            }
            InstanceSelector::Key(key) => {
                // The same order of instances of a key as for callers inside a machine.
                let key = split_mix::finish(key);
                let weight = |each: &&RouteCandidate| {
                    each.identities.iter().map(|identity| split_mix::finish(key ^ identity)).max().unwrap_or(0)
                };
                candidates.iter().max_by_key(weight)
            }
        };
        let chosen = match named {
            Some(named) => Some(named).filter(has_room),
            None => {
                self.rotation = self.rotation.wrapping_add(1);
                let (before, after) = candidates.split_at(self.rotation % candidates.len());
                let load = |candidate: &&RouteCandidate| {
                    let own = self.peers[candidate.peer].by_route.get(route).copied().unwrap_or(0);
                    let calls = u64::from(own) + u64::from(candidate.reported);
                    // In thousandths of a worker.
                    calls * 1000 / u64::from(candidate.workers.max(1))
                };
                after.iter().chain(before).filter(has_room).min_by_key(load)
            }
        };
        if let Some(chosen) = chosen {
            return Ok((chosen.peer, route.clone()));
        }
        let busy = named.map_or("all bridges that offer it", |named| &*self.peers[named.peer].id.name);
        let BridgeLimits { calls_per_peer, bytes_per_peer, .. } = self.limits;
        let reason = format!("{busy}: {calls_per_peer} calls or {bytes_per_peer} bytes are in flight there");
        Err(CallFailure::Busy { reason })
    }

    fn silent_offers(&self, route: &str, identity: Option<u64>, now_ns: u64) -> Vec<String> {
        let is_wanted = |instance: &OfferedInstance| {
            instance.is_open && identity.is_none_or(|identity| identity == instance.identity)
        };
        let is_offer = |offered: &OfferedRoute| offered.route == route && offered.instances.iter().any(is_wanted);
        let is_taken = any_matches(&self.take, route);
        let offering = self.iter().filter(|peer| is_taken && peer.lease.routes.iter().any(is_offer));
        let silent = offering.filter_map(|peer| {
            let since_ns = match peer.state {
                PeerState::Silent => peer.lease_ns,
                PeerState::Deaf => peer.unanswered_ns?,
                PeerState::Alive | PeerState::Stopped => return None,
            };
            let (name, state, seconds) =
                (&peer.id.name, peer.state.as_str(), now_ns.saturating_sub(since_ns) / 1_000_000_000);
            Some(format!("bridge {name}, which offered it, is {state} since {seconds} s"))
        });
        silent.take(SILENT_NAMED_MAX).collect()
    }

    pub(crate) fn begin(&mut self, peer: PeerIndex, route: &Arc<str>, bytes: u64) {
        let peer = &mut self.peers[peer];
        peer.load.add(bytes);
        *peer.by_route.entry(route.clone()).or_insert(0) += 1;
    }

    pub(crate) fn end(&mut self, peer: PeerIndex, incarnation: u64, route: &Arc<str>, bytes: u64) {
        let peer = &mut self.peers[peer];
        if peer.id.incarnation == incarnation {
            peer.load.remove(bytes);
            if let Some(calls) = peer.by_route.get_mut(route) {
                *calls -= 1;
                if *calls == 0 {
                    peer.by_route.remove(route);
                }
            }
            if peer.load.calls == 0 && peer.state == PeerState::Alive {
                peer.unanswered_ns = None;
            }
        }
    }

    pub(crate) fn machine(&self, name: &str) -> &str {
        self.find(name).map_or("", |index| &self.peers[index].lease.machine)
    }

    pub(crate) fn offers_same_routes(&self, name: &str, lease: &Lease) -> bool {
        self.find(name).is_some_and(|index| self.peers[index].lease.offers_same_routes(lease))
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseTime {
    pub(crate) now_ns: u64,
    pub(crate) append_ms: i64,
    pub(crate) age_ns: u64,
}
