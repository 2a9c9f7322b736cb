//! [`ControlServer`]: handles control requests on the acceptor's thread, and never blocks. It passes commands to the
//! sequencer and answers once their effect is released.

use crate::counters::counters;
use crate::messages::SequencerRequest;
use crate::node_status::{NodeStatus, SharedStatus};
use gapless_agent::Waker;
use gapless_client::control_messages::nodes::ROWS_MAX;
use gapless_client::control_messages::{
    ControlAnswer, ControlOutcome, ControlRequest, ControlStatus, NodeRow, NodesAnswer, NodesRequest, StreamState,
};
use gapless_client::feed_sessions::SharedFeeds;
use gapless_client::node_progress::NodeProgress;
use gapless_log::{RingNotes, StreamIdentity, Window};
use gapless_transport::Tier;
use gapless_transport::link::ConnectionId;
use gapless_transport::mailbox::Mailbox;
use gapless_transport::transport::Transport;
use gapless_wire::feed_session::FeedSession;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Limit on commands that wait for the sequencer at one time.
pub const WAITING_MAX: usize = 64;

/// The process in which commands take effect.
pub enum ControlTarget {
    Sequencer {
        /// Overtake all frames in publishers' rings.
        requests: Mailbox<SequencerRequest>,
        outcomes: Mailbox<ControlOutcome>,
        waker: Waker,
    },
    Elsewhere,
}

pub struct ControlFacts {
    pub tier: Tier,
    pub transports: Vec<Transport>,
    pub feeds: SharedFeeds,
    /// A halted sequencer takes no frames from publishers.
    pub is_halted: Arc<AtomicBool>,
}

counters! {
    pub struct ControlCounters {
        /// Requests that were carried out.
        done: "control.done",
        /// Requests that were refused, and malformed first messages.
        refused: "control.refused",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRequestState {
    Answered(ControlAnswer),
    Pending(u64),
}

struct LocalNode {
    connection: ConnectionId,
    process_id: Option<u32>,
    name: String,
    notes: RingNotes,
}

/// The control port, polled by the acceptor's thread.
pub struct ControlServer {
    target: ControlTarget,
    window: Window,
    next_number: u64,
    outcomes: Vec<ControlOutcome>,
    pending: usize,
    counters: ControlCounters,
    local_nodes: Vec<LocalNode>,
    status: SharedStatus,
    facts: ControlFacts,
    since: Instant,
}

impl ControlServer {
    /// A server that lists the nodes of `status`, connected over networks.
    #[must_use]
    pub fn new(
        target: ControlTarget,
        window: Window,
        status: SharedStatus,
        facts: ControlFacts,
        counters: ControlCounters,
    ) -> Self {
        let (outcomes, local_nodes, since) = (Vec::new(), Vec::new(), Instant::now());
        Self { target, window, next_number: 1, outcomes, pending: 0, counters, local_nodes, status, facts, since }
    }

    /// Registers a node of another process, with its state in `notes`.
    pub fn node_connected(&mut self, connection: ConnectionId, process_id: Option<u32>, notes: RingNotes) {
        let name = process_id.map(program_of).unwrap_or_default();
        self.local_nodes.push(LocalNode { connection, process_id, name, notes });
    }

    pub fn node_disconnected(&mut self, connection: ConnectionId) {
        self.local_nodes.retain(|node| node.connection != connection);
    }

    #[must_use]
    pub fn nodes(&self, request: NodesRequest) -> NodesAnswer {
        let released_sequence = self.window.released_sequence();
        let noted_ns = self.since.elapsed().as_nanos() as u64;
        let here = self.local_nodes.iter().filter(|node| node.connection.0 > request.behind);
        let mut rows: Vec<NodeRow> = here.map(|node| node.row(released_sequence, noted_ns)).collect();
        let nodes = self.status.lock();
        rows.extend(nodes.iter().filter(|node| node.connection.0 > request.behind).map(NodeStatus::row));
        drop(nodes);
        rows.sort_unstable_by_key(|row| row.connection);
        rows.dedup_by_key(|row| row.connection);
        let has_more = rows.len() > ROWS_MAX;
        rows.truncate(ROWS_MAX);
        let process_id = u64::from(std::process::id());
        NodesAnswer {
            identity: self.window.identity(),
            released_sequence,
            process_id,
            stream: self.stream(),
            has_more,
            rows,
        }
    }

    fn stream(&self) -> StreamState {
        let ControlFacts { tier, transports, feeds, is_halted } = &self.facts;
        let newest = feeds.lock().newest().copied();
        let is_here = matches!(self.target, ControlTarget::Sequencer { .. });
        StreamState {
            tier: *tier,
            transports: transports.clone(),
            // Relaxed: orders nothing.
            is_halted: is_here.then(|| is_halted.load(Ordering::Relaxed)),
            feed_session: newest.map_or(FeedSession::BLANK, |feed| feed.name),
            has_feed_ended: newest.is_some_and(|feed| feed.last_sequence.is_some()),
        }
    }

    /// Counts a malformed first message.
    pub fn count_refused(&self) {
        self.counters.refused.add(1);
    }

    pub fn ask(&mut self, request: ControlRequest) -> ControlRequestState {
        let ours = self.window.identity();
        let theirs = request.identity;
        if theirs.stream_id != 0 && theirs.stream_id != ours.stream_id {
            return ControlRequestState::Answered(self.refuse(ControlStatus::OtherStream));
        }
        if theirs.incarnation != 0 && theirs.incarnation != ours.incarnation {
            return ControlRequestState::Answered(self.refuse(ControlStatus::OtherIncarnation));
        }
        let ControlTarget::Sequencer { requests, waker, .. } = &self.target else {
            return ControlRequestState::Answered(self.refuse(ControlStatus::Relay));
        };
        let number = self.next_number;
        let command = SequencerRequest::Control { number, command: request.command };
        if self.pending >= WAITING_MAX || requests.push(command).is_err() {
            return ControlRequestState::Answered(self.refuse(ControlStatus::Busy));
        }
        waker.wake();
        self.next_number += 1;
        self.pending += 1;
        ControlRequestState::Pending(number)
    }

    /// Counts a refusal and returns its answer.
    pub fn refuse(&self, status: ControlStatus) -> ControlAnswer {
        self.counters.refused.add(1);
        answer(status, self.window.identity(), 0)
    }

    pub fn refresh(&mut self) {
        let ControlTarget::Sequencer { outcomes, .. } = &self.target else { return };
        while let Some(outcome) = outcomes.pop() {
            self.pending = self.pending.saturating_sub(1);
            self.outcomes.push(outcome);
            if self.outcomes.len() > 2 * WAITING_MAX {
                self.outcomes.remove(0);
            }
        }
    }

    /// Answer to a request, once its effect is released.
    pub fn outcome(&mut self, number: u64) -> Option<ControlAnswer> {
        let released_sequence = self.window.released_sequence();
        let is_due = |each: &ControlOutcome| each.number == number && each.sequence <= released_sequence;
        let index = self.outcomes.iter().position(is_due)?;
        let ControlOutcome { status, sequence, .. } = self.outcomes.swap_remove(index);
        Some(match status {
            ControlStatus::Done => {
                self.counters.done.add(1);
                answer(status, self.window.identity(), sequence)
            }
            ControlStatus::Unchanged => answer(status, self.window.identity(), sequence),
            refused => self.refuse(refused),
        })
    }
}

impl LocalNode {
    fn row(&self, released_sequence: u64, noted_ns: u64) -> NodeRow {
        let notes = NodeProgress::read(&self.notes);
        let lag_frames = if notes.position == 0 { 0 } else { (released_sequence + 1).saturating_sub(notes.position) };
        NodeRow {
            connection: self.connection.0,
            name: self.name.clone(),
            process_id: self.process_id,
            address: None,
            transport: Transport::SharedMemory,
            is_live: notes.is_live,
            position: notes.position,
            lag_frames,
            frames_requested: 0,
            frames_resent: notes.frames_resent,
            frames_published: notes.frames_published,
            frames_dropped: 0,
            in_flight: notes.in_flight,
            noted_ns,
        }
    }
}

/// Empty if the process has exited or lives in another namespace.
fn program_of(process_id: u32) -> String {
    let name = std::fs::read(format!("/proc/{process_id}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).chars().filter(|letter| !letter.is_control()).collect()
}

/// An answer in the name of this process.
#[must_use]
pub fn answer(status: ControlStatus, identity: StreamIdentity, sequence: u64) -> ControlAnswer {
    ControlAnswer { status, identity, sequence, process_id: u64::from(std::process::id()) }
}
