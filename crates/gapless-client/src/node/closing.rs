//! The close is a message after everything published; its return in the stream is the acknowledgement.

use super::event::NodeEvent;
use super::link::NodeLink;
use super::publishing_session::PublishingSession;
use super::{ClientError, StreamNode};
use std::time::Duration;

impl<L: NodeLink> StreamNode<L> {
    /// Asks the stream to close the node's session, after everything that was published; the node continues reading.
    /// [`StreamNode::is_session_closed`] once the close has come back. The token then opens another session, numbered
    /// from 1.
    ///
    /// # Errors
    /// [`ClientError::NotOpen`] before the session is open; [`ClientError::KeptFull`]: poll and retry;
    /// [`ClientError::Option`] for a shared session.
    pub fn close_session(&mut self) -> Result<(), ClientError> {
        let now_ns = if self.link.loses() { self.clock.now().monotonic_ns } else { 0 };
        self.publisher.as_mut().ok_or(ClientError::NotOpen)?.close(now_ns)
    }

    /// Whether the close of the node's session has come back.
    #[must_use]
    pub fn is_session_closed(&self) -> bool {
        self.publisher.as_ref().is_some_and(PublishingSession::is_closed)
    }

    /// Polls until everything published has come back and the session is closed.
    ///
    /// # Errors
    /// [`ClientError::TimedOut`] after `timeout` (a halted stream takes no close): the session lives until it expires.
    /// Those of [`StreamNode::poll`] and [`StreamNode::close_session`].
    pub fn finish(&mut self, timeout: Duration, mut take: impl FnMut(NodeEvent<'_>)) -> Result<(), ClientError> {
        if !self.publisher.as_ref().is_some_and(PublishingSession::is_open) {
            return Ok(());
        }
        let begun_ns = self.clock.now().monotonic_ns;
        self.poll_until(timeout, "what was published", |node| node.in_flight() == 0, &mut take)?;
        self.close_session()?;
        let passed = Duration::from_nanos(self.clock.now().monotonic_ns.saturating_sub(begun_ns));
        self.poll_until(timeout.saturating_sub(passed), "a session close", Self::is_session_closed, take)
    }
}
