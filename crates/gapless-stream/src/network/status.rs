//! [`SharedStatus`]: who is connected over networks, and how they are.

use super::datagrams::Peer;
use gapless_wire::upstream::Report;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is known of a node.
#[derive(Clone, Debug)]
pub struct NodeStatus {
    /// Its name, empty if nobody asked for it.
    pub username: String,
    /// By which network it came.
    pub network: &'static str,
    /// Where it sends from.
    pub peer: Peer,
    /// What it last said of itself.
    pub report: Report,
    /// Frames of it that found no room and were dropped.
    pub frames_dropped: u64,
    /// When it was last heard, monotonic ns.
    pub heard_ns: u64,
}

/// What is known of all nodes of the network, for whoever asks.
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
