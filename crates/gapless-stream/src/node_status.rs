//! [`SharedStatus`]: nodes that are connected over networks, and their state.

use gapless_client::control_messages::NodeRow;
use gapless_transport::link::ConnectionId;
use gapless_transport::network::datagrams::Peer;
use gapless_transport::transport::Transport;
use gapless_wire::upstream::Report;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sequencer's record of a node.
#[derive(Clone, Debug)]
pub struct NodeStatus {
    /// Its name, empty if nobody asked for it.
    pub username: String,
    /// By which network it came.
    pub network: Transport,
    /// Its connection, which is no other's of this process.
    pub connection: ConnectionId,
    /// Where it sends from.
    pub peer: Peer,
    /// Its last report; nothing before the first one.
    pub report: Option<Reported>,
    /// Frames of it that found no room and were dropped.
    pub frames_dropped: u64,
    /// When its last packet came, monotonic ns.
    pub heard_ns: u64,
}

/// A report, and the facts at its arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// The node's report.
    pub report: Report,
    /// The last sequence that was released.
    pub released_sequence: u64,
    /// Frames that the node had published, those sent again among them.
    pub frames_published: u64,
    /// When, monotonic ns.
    pub at_ns: u64,
}

impl NodeStatus {
    /// As others see it.
    pub(crate) fn row(&self) -> NodeRow {
        let Reported { report, released_sequence, frames_published, at_ns } = self.report.unwrap_or_default();
        let lag_frames = if report.position == 0 { 0 } else { (released_sequence + 1).saturating_sub(report.position) };
        NodeRow {
            connection: self.connection.0,
            name: self.username.clone(),
            process_id: None,
            address: Some(self.peer),
            transport: self.network,
            is_live: self.report.map(|reported| reported.report.is_live),
            position: report.position,
            lag_frames,
            frames_requested: report.frames_requested,
            frames_resent: report.frames_resent,
            frames_published,
            frames_dropped: self.frames_dropped,
            in_flight: report.in_flight,
            noted_ns: at_ns,
        }
    }
}

/// The records of all nodes of the network, for all that ask.
#[derive(Clone, Default)]
pub struct SharedStatus {
    nodes: Arc<Mutex<Vec<NodeStatus>>>,
}

impl SharedStatus {
    /// A look at it, or a change.
    pub fn lock(&self) -> MutexGuard<'_, Vec<NodeStatus>> {
        // No holder leaves the list half changed.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
