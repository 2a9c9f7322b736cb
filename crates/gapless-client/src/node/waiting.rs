//! Text for messages about a node's wait: for whom, and why.

use super::StreamNode;
use super::event::NodeState;
use super::link::NodeLink;

impl<L: NodeLink> StreamNode<L> {
    /// Peer that the node waits for, with the reason as far as known; `None` if it is connected, its session is open,
    /// and its messages have come back. A node waits without a limit; programs report it at the times of
    /// [`WaitNotices`](gapless_agent::wait_notices::WaitNotices).
    #[must_use]
    pub fn waits_for(&self) -> Option<String> {
        let peer = self.link.peer();
        match self.state {
            NodeState::Closed => return None,
            NodeState::Connecting => {
                let failure = self.connect_failure().map(|failure| format!(": {failure}")).unwrap_or_default();
                return Some(format!("no sequencer answers at {peer}{failure}"));
            }
            NodeState::Rewinding | NodeState::Live => {}
        }
        let standstill = self.link.standstill();
        let Some(publisher) = &self.publisher else { return standstill.map(|why| format!("nothing comes: {why}")) };
        let missing = self.in_flight();
        let what = match missing {
            0 if publisher.is_open() => return standstill.map(|why| format!("nothing comes: {why}")),
            0 => "the session is not open yet".to_owned(),
            1 => "a message has not come back".to_owned(),
            count => format!("{count} messages have not come back"),
        };
        Some(if let Some(why) = standstill {
            format!("{what}: {why}")
        } else if self.closed.is_halted {
            format!("{what}: the stream at {peer} is halted, until it is resumed")
        } else if self.closed.is_between_feeds {
            format!("{what}: the feed session of the stream at {peer} has ended, and no other has begun")
        } else {
            // The node does not know the events before it began to read, nor the number of members.
            format!(
                "{what}: the sequencer at {peer} takes nothing; the stream is halted or its feed session has ended, its members have no \
                 majority, or it stands still; its status says which"
            )
        })
    }
}
