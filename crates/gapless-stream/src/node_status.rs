//! `SharedStatus`: nodes connected over networks, and their state.

use gapless_client::control_messages::NodeRow;
use gapless_transport::link::ConnectionId;
use gapless_transport::network::datagrams::Peer;
use gapless_transport::transport::Transport;
use gapless_wire::upstream::NodeReport;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug)]
pub struct NodeStatus {
    /// User name; empty if none was required.
    pub username: String,
    pub network: Transport,
    /// Connection, unique in this process.
    pub connection: ConnectionId,
    pub peer: Peer,
    /// Last report, if any.
    pub report: Option<ReceivedReport>,
    /// Frames dropped for lack of room.
    pub frames_dropped: u64,
    /// Arrival of its last packet, monotonic ns.
    pub last_packet_ns: u64,
}

/// A report, with facts from its arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedReport {
    pub report: NodeReport,
    pub released_sequence: u64,
    /// Frames published, including resent ones.
    pub frames_published: u64,
    /// Arrival, monotonic ns.
    pub at_ns: u64,
}

impl NodeStatus {
    pub(crate) fn row(&self) -> NodeRow {
        let ReceivedReport { report, released_sequence, frames_published, at_ns } = self.report.unwrap_or_default();
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

/// All nodes of the networks.
#[derive(Clone, Default)]
pub struct SharedStatus {
    nodes: Arc<Mutex<Vec<NodeStatus>>>,
}

impl SharedStatus {
    pub fn lock(&self) -> MutexGuard<'_, Vec<NodeStatus>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
