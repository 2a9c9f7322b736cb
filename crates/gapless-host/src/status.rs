//! [`Status`]: phase, role and sequences of a host.

use gapless_client::node::NodeState;
use gapless_engine::recovery::RecoverySummary;
use gapless_transport::Tier;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Running,
    /// On a member only: it has fetched another member's state and starts again.
    Starting,
    /// Ended with an error, [`Status::failure`].
    Failed,
    /// Stopped by [`Running::stop`](crate::Running::stop).
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Host with a stream of its own.
    Alone,
    Leader,
    /// Member that does not lead, also while there is no leader.
    Follower,
    /// Member that votes and runs no service.
    Witness,
    /// Node of a stream of others.
    Node,
}

/// State of a node and its stream, at most 20 ms older than its last poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    pub state: NodeState,
    /// Published messages that are not known to be in the stream.
    pub in_flight: usize,
    /// Peer that the node has waited for longer than a second, with the reason as far as known.
    pub waits_for: Option<String>,
}

/// State of a host; after its end the last one known. Role and leader of a member are up to 20 ms old.
#[derive(Clone, Debug)]
pub struct Status {
    pub phase: Phase,
    pub role: Role,
    /// Number of the leading member; `None` for a host with a stream of its own, and while there is no leader.
    pub leader: Option<u64>,
    /// `memory` on a node; its stream's status has the tier.
    pub tier: Tier,
    /// Last sequence that has reached the tier; on a node the last one that it knows of.
    pub released: u64,
    /// Last sequence that the program has handled; 0 on a witness.
    pub handled: u64,
    /// Recovery of the last start; empty on a witness, only the snapshot on a node.
    pub recovered: RecoverySummary,
    /// Commands that no handler took, since the last start; on a node messages that a handler refused.
    pub dead_letters: u64,
    /// Hash of a replicated state after `handled`, equal on all members there.
    pub state_hash: Option<u64>,
    /// `None` but on a node.
    pub node: Option<NodeStatus>,
    /// Starts since [`Host::start`](crate::Host::start), itself included.
    pub starts: u64,
    /// Reason of [`Phase::Failed`].
    pub failure: Option<String>,
}
