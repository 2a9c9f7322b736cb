//! Notices on standard error: once a second at first, then less often.

use gapless_agent::monotonic::monotonic_ns;
use gapless_agent::wait_notices::WaitNotices;
use gapless_client::node::{AnyLink, NodeLink, NodeState, StreamNode};
use std::time::Duration;

const CHECK_INTERVAL_NS: u64 = 500_000_000;

fn note(waited: Duration, what: &str) -> String {
    format!("note: waiting for {} s: {what}", waited.as_secs())
}

pub(super) fn print_wait_note(waited: Duration, what: &str) {
    crate::commands::to_stderr!("{}", note(waited, what));
}

pub(super) struct WaitMonitor {
    notices: WaitNotices,
    /// Returned or read messages, and the node's state, at the last check: while either changes, the node is not
    /// waiting.
    seen: (u64, NodeState),
    next_check_ns: u64,
    is_sequencer_halted: bool,
}

impl WaitMonitor {
    pub(super) const fn new() -> Self {
        let (notices, seen) = (WaitNotices::after_a_second(), (0, NodeState::Connecting));
        Self { notices, seen, next_check_ns: 0, is_sequencer_halted: false }
    }

    pub(super) fn check(&mut self, node: &StreamNode<AnyLink>) -> Option<String> {
        let waits = node.state() == NodeState::Connecting
            || node.in_flight() > 0
            || (node.publishes() && node.next_session_seq().is_none());
        let came_back = node.next_session_seq().unwrap_or(0).wrapping_sub(node.in_flight() as u64);
        let now = (if waits { came_back } else { node.position() }, node.state());
        let is_progress = now != std::mem::replace(&mut self.seen, now);
        if is_progress || !(waits || self.is_sequencer_halted(node)) {
            self.notices.end();
            return None;
        }
        let waited = self.notices.take_due(monotonic_ns())?;
        Some(note(waited, &node.waits_for()?))
    }

    fn is_sequencer_halted(&mut self, node: &StreamNode<AnyLink>) -> bool {
        let now_ns = monotonic_ns();
        if now_ns >= self.next_check_ns {
            self.next_check_ns = now_ns + CHECK_INTERVAL_NS;
            self.is_sequencer_halted = node.link().standstill().is_some();
        }
        self.is_sequencer_halted
    }

    pub(super) fn print_due(&mut self, node: &StreamNode<AnyLink>) {
        if let Some(line) = self.check(node) {
            crate::commands::to_stderr!("{line}");
        }
    }
}
