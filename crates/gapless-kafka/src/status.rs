//! [`BridgeStatus`]: reply of [`STATUS_ROUTE`] in JSON to any JSON request. Times are milliseconds before the reply.

use crate::counters::Counters;
use crate::peers::{CallLoad, PeerState};
use crate::presence::digits;
use serde::{Deserialize, Serialize};

/// Route of a bridge's status: hidden, and never offered to other machines.
pub const STATUS_ROUTE: &str = ".bridge";

/// State of a running bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeStatus {
    /// Name.
    pub name: String,
    /// Prefix of the topics.
    pub prefix: String,
    /// Incarnation, 16 hexadecimal digits in JSON.
    #[serde(with = "digits")]
    pub incarnation: u64,
    /// Version of the protocol.
    pub protocol: u16,
    /// Machine.
    pub machine: String,
    /// Process id.
    pub process_id: u32,
    /// Time since the start.
    pub running_ms: u64,
    /// Progress.
    pub phase: BridgePhase,
    /// Connection to the broker.
    pub broker: BrokerStatus,
    /// Other bridges of the prefix, by name.
    pub peers: Vec<PeerStatus>,
    /// Other bridges whose leases cannot be used, by name.
    pub refused_peers: Vec<RefusedPeer>,
    /// Routes of this domain that other bridges may call, by name.
    pub offered: Vec<OfferedRouteStatus>,
    /// Offered routes for which the lease has no room.
    pub routes_left_out: usize,
    /// Routes of other domains that this domain may call, by name.
    pub taken: Vec<TakenRouteStatus>,
    /// Records that changed nothing.
    pub counters: Counters,
}

/// Progress of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BridgePhase {
    Starting,
    /// Requests of others are taken while leases are read.
    Joining,
    Serving,
    Stopping,
}

impl BridgePhase {
    /// The phase in a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Joining => "joining",
            Self::Serving => "serving",
            Self::Stopping => "stopping",
        }
    }
}

/// Connection of a bridge to its broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerStatus {
    /// Addresses of the file.
    pub brokers: Vec<String>,
    /// Own records come back.
    pub is_connected: bool,
    /// Time since the connection, or its loss; `None` before the first connection.
    pub since_ms: Option<u64>,
    /// Reason of a missing connection, as far as known.
    pub reason: Option<String>,
    /// The last operation that the broker refused to this user.
    pub refused: Option<String>,
}

/// Another bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Name.
    pub name: String,
    /// Machine, as the bridge names it.
    pub machine: String,
    /// Incarnation, 16 hexadecimal digits in JSON.
    #[serde(with = "digits")]
    pub incarnation: u64,
    /// Version of the protocol.
    pub protocol: u16,
    /// State.
    pub state: PeerState,
    /// Time since its last lease, about.
    pub heard_ms: u64,
    /// Routes that it offers, whether they are taken here or not.
    pub routes: usize,
    /// Calls in flight to it.
    pub calls_to: CallLoad,
    /// Calls in flight from it.
    pub calls_from: CallLoad,
}

/// Another bridge whose lease cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedPeer {
    /// Name.
    pub name: String,
    /// Reason; for another version of the protocol it names both.
    pub reason: String,
}

/// A route that this bridge offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedRouteStatus {
    /// Name.
    pub route: String,
    /// Open instances in this domain.
    pub instances: usize,
    /// Calls in flight from other machines.
    pub calls: u32,
}

/// A route of other bridges that this domain may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenRouteStatus {
    /// Name.
    pub route: String,
    /// Open instances elsewhere.
    pub instances: usize,
    /// Bridges that offer it.
    pub bridges: Vec<String>,
    /// The route could be opened in this domain.
    pub is_served: bool,
}
