//! For whom a node waits, on standard error: once a second at first, then less often.

use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::wait_notices::WaitNotices;
use gapless_client::node::{AnyLink, NodeState, StreamNode};

/// What is said while a node waits.
pub(super) struct Waiting {
    notices: WaitNotices,
    /// The messages that had come back at the last look, and its state: while that changes nobody waits.
    seen: (u64, NodeState),
}

impl Waiting {
    pub(super) const fn new() -> Self {
        Self { notices: WaitNotices::after_a_second(), seen: (0, NodeState::Connecting) }
    }

    /// A look at `node`, after each of its polls; what is to be said now, if anything is.
    pub(super) fn look(&mut self, node: &StreamNode<AnyLink>) -> Option<String> {
        let came_back = node.next_session_seq().unwrap_or(0).wrapping_sub(node.in_flight() as u64);
        let now = (came_back, node.state());
        let is_progress = now != std::mem::replace(&mut self.seen, now);
        let waits = node.state() == NodeState::Connecting
            || node.in_flight() > 0
            || (node.publishes() && node.next_session_seq().is_none());
        if is_progress || !waits {
            self.notices.end();
            return None;
        }
        let waited = self.notices.take_due(monotonic_ns())?;
        Some(format!("note: waiting for {} s: {}", waited.as_secs(), node.waits_for()?))
    }

    /// As [`Waiting::look`]; it is said at once.
    pub(super) fn say(&mut self, node: &StreamNode<AnyLink>) {
        if let Some(line) = self.look(node) {
            crate::commands::to_stderr!("{line}");
        }
    }
}
