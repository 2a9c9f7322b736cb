//! For whom a node waits, and why: in words, for those who say it.

use super::StreamNode;
use super::event::NodeState;
use super::link::NodeLink;

impl<L: NodeLink> StreamNode<L> {
    /// For whom it waits, and why, as far as it knows; `None` if for nobody: it is connected, its session is open, and what it has published
    /// has come back; nor does it wait for what others may publish, unless the sequencer stands still. It waits for ever, because what is not there may come; a program says so while it lasts, at the times of
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
            // What happened before this node began to read, and how many members there are, it does not know.
            format!(
                "{what}: the sequencer at {peer} takes nothing; the stream is halted or its feed session has ended, its members have no \
                 majority, or it stands still; its status says which"
            )
        })
    }
}
