//! The state of a bridge, for its operator.

use super::{BridgeCore, CorePhase};
use crate::record::PROTOCOL_VERSION;
use crate::route_filter::any_matches;
use crate::status::{
    BridgePhase, BridgeStatus, BrokerStatus, OfferedRouteStatus, PeerStatus, RefusedPeer, TakenRouteStatus,
};
use gapless_agent::Now;

impl BridgeCore {
    /// The state at `now`, of which only the monotonic clock is read. Process id, running time, addresses, refusals of
    /// the broker and [`TakenRouteStatus::is_served`] are left to the core's owner.
    #[must_use]
    pub fn status(&self, now: Now) -> BridgeStatus {
        let now_ns = now.monotonic_ns;
        let peers = self.peers.iter().filter(|peer| !self.refused_leases.contains_key(&*peer.id.name));
        let peers = peers.map(|peer| PeerStatus {
            name: peer.id.name.to_string(),
            machine: peer.lease.machine.clone(),
            incarnation: peer.id.incarnation,
            protocol: peer.lease.protocol,
            state: peer.state,
            heard_ms: now_ns.saturating_sub(peer.lease_ns) / 1_000_000,
            routes: peer.lease.routes.len(),
            calls_to: peer.load,
            calls_from: self.calls_in.load(&peer.id),
        });
        let mut refused_peers: Vec<_> = self.refused_leases.iter().collect();
        refused_peers.sort_unstable();
        let refused_peers =
            refused_peers.into_iter().map(|(name, reason)| RefusedPeer { name: name.clone(), reason: reason.clone() });
        let offered = self.offers.iter().filter(|offer| any_matches(&self.options.offer, &offer.route));
        let offered = offered.map(|offer| OfferedRouteStatus {
            route: offer.route.clone(),
            instances: offer.instances.iter().filter(|instance| instance.is_open).count(),
            calls: self.calls_in.in_flight(&offer.route),
        });
        let taken = self.relayed.values().map(|remote| TakenRouteStatus {
            route: remote.route.clone(),
            instances: remote.instances.len(),
            bridges: self.peers.offering(&remote.route),
            is_served: false,
        });
        BridgeStatus {
            name: self.id.name.to_string(),
            prefix: self.options.prefix.clone(),
            incarnation: self.id.incarnation,
            protocol: PROTOCOL_VERSION,
            machine: self.options.machine.clone(),
            process_id: 0,
            running_ms: 0,
            phase: match self.phase {
                CorePhase::New | CorePhase::Marking { .. } | CorePhase::Reading => BridgePhase::Starting,
                CorePhase::Joining => BridgePhase::Joining,
                CorePhase::Serving => BridgePhase::Serving,
                CorePhase::Stopping { .. } | CorePhase::Leaving { .. } | CorePhase::Ended => BridgePhase::Stopping,
            },
            broker: self.broker_status(now_ns),
            peers: peers.collect(),
            refused_peers: refused_peers.collect(),
            offered: offered.collect(),
            routes_left_out: self.routes_left_out,
            taken: taken.collect(),
            counters: self.counters,
        }
    }

    fn broker_status(&self, now_ns: u64) -> BrokerStatus {
        let is_connected = self.is_joined() && self.broker.lost_ns.is_none();
        let since_ns = if is_connected { self.broker.connected_ns } else { self.broker.lost_ns };
        let words = Some(&self.broker.last_reason).filter(|words| !is_connected && !words.is_empty());
        BrokerStatus {
            is_connected,
            since_ms: since_ns.map(|since_ns| now_ns.saturating_sub(since_ns) / 1_000_000),
            reason: words.cloned(),
            ..BrokerStatus::default()
        }
    }
}
