//! The other bridges, as an operator sees them.

use super::{PeerState, Peers};
use crate::calls_in::CallsIn;
use crate::status::PeerStatus;

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

impl Peers {
    /// Each bridge, by name. `calls_in` counts the calls from it.
    pub(crate) fn status(&self, calls_in: &CallsIn, now_ns: u64) -> impl Iterator<Item = PeerStatus> {
        self.by_name.values().map(move |index| {
            let peer = &self.peers[*index];
            PeerStatus {
                name: peer.id.name.to_string(),
                machine: peer.lease.machine.clone(),
                incarnation: peer.id.incarnation,
                protocol: peer.lease.protocol,
                state: peer.state,
                heard_ms: now_ns.saturating_sub(peer.lease_ns) / 1_000_000,
                routes: peer.lease.routes.len(),
                calls_to: peer.load,
                calls_from: calls_in.load(&peer.id),
            }
        })
    }

    /// Names of the bridges that offer a route which is taken.
    pub(crate) fn offering(&self, route: &str) -> Vec<String> {
        let candidates = self.by_route.get(route).into_iter().flatten();
        candidates.map(|candidate| self.peers[candidate.peer].id.name.to_string()).collect()
    }
}
