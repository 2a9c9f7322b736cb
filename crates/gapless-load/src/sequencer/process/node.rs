//! A node's process: connects, opens a session, and plays its role.

use super::link_counters::CountingLink;
use super::{TIMEOUT, push, rewind, round_trips};
use crate::Result;
use crate::child_process::Parent;
use crate::sequencer::failed;
use crate::sequencer::protocol::{
    NodeAssignment, NodeReady, NodeRole, StreamAddress, datagrams, shared_memory, stream_failed, tcp,
};
use gapless_client::node::{PublisherOptions, Start, StreamNode, StreamNodeOptions};
use gapless_wire::mtu::Mtu;
use std::time::Duration;

pub fn run(assignment: &NodeAssignment, parent: &Parent) -> Result<()> {
    let mtu = assignment.mtu.map(|bytes| Mtu::new(bytes.into())).transpose().map_err(failed)?;
    match &assignment.way {
        StreamAddress::SharedMemory { directory } => work(shared_memory(directory, mtu), assignment, parent),
        way @ StreamAddress::Tcp { .. } => work(tcp(way, mtu)?, assignment, parent),
        way @ StreamAddress::Datagrams { .. } => work(datagrams(way, assignment.batch, mtu)?, assignment, parent),
    }
}

fn work<L: CountingLink>(link: L, assignment: &NodeAssignment, parent: &Parent) -> Result<()> {
    let publisher = PublisherOptions { window_messages: assignment.window_messages, ..PublisherOptions::default() };
    let live = StreamNodeOptions { start: Start::Live, publisher: Some(publisher), ..StreamNodeOptions::default() };
    match assignment.role {
        NodeRole::RoundTrips { warm_up, messages, time_limit_ms } => {
            let mut node = open(StreamNode::new(link, live), parent)?;
            let outcome =
                round_trips::run(&mut node, assignment, (warm_up, messages), Duration::from_millis(time_limit_ms))?;
            parent.send(&outcome)
        }
        NodeRole::Push => push::run(open(StreamNode::new(link, live), parent)?, assignment, parent),
        NodeRole::Rewind => {
            parent.send(&NodeReady { session: 0 })?;
            let node = StreamNode::new(link, StreamNodeOptions::reading(Start::First));
            rewind::run(node, parent)
        }
    }
}

fn open<L: CountingLink>(mut node: StreamNode<L>, parent: &Parent) -> Result<StreamNode<L>> {
    node.wait_open(TIMEOUT).map_err(|error| stream_failed(&error))?;
    parent.send(&NodeReady { session: node.session().unwrap_or(0) })?;
    Ok(node)
}
