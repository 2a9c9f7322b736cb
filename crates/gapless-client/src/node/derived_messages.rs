//! Publishing messages derived from the stream alone: the outputs of a deterministic service.

use super::link::NodeLink;
use super::publishing_session::PublishingSession;
use super::{NodeState, StreamNode, event_header};
use crate::ClientError;
use crate::polled::MessageType;
use gapless_wire::HEADER_LENGTH;
use gapless_wire::control::TimerFired;

impl<L: NodeLink> StreamNode<L> {
    /// Publishes the output of a deterministic service: its messages and numbers follow from the stream alone, so that
    /// a replay or a second instance publishes no duplicates. A message that the stream already has is not sent.
    ///
    /// # Errors
    /// As for [`StreamNode::publish`].
    pub fn publish_derived(&mut self, message: MessageType, payload: &[u8]) -> Result<u64, ClientError> {
        if self.skips(payload.len()) {
            return Ok(self.next_session_seq().unwrap_or(1) - 1);
        }
        let header = event_header(message);
        // A derived message cannot wait for the end of a halt here: the sequencer holds it back.
        self.put(header, payload.len(), |buffer| {
            buffer.copy_from_slice(payload);
            Ok(payload.len())
        })
    }

    /// Like [`StreamNode::publish_derived`], for a timer.
    ///
    /// # Errors
    /// As for [`StreamNode::publish`].
    pub fn set_timer_derived(&mut self, timer: u64, deadline_ns: u64) -> Result<(), ClientError> {
        if !self.skips(TimerFired::LENGTH) {
            let payload = TimerFired { timer, deadline_ns }.to_bytes();
            self.put(PublishingSession::timer_header(), payload.len(), |buffer| {
                buffer.copy_from_slice(&payload);
                Ok(payload.len())
            })?;
        }
        Ok(())
    }

    /// Whether the stream already has the derived message.
    fn skips(&mut self, length: usize) -> bool {
        let (Some(publisher), Some(connected)) = (&mut self.publisher, &self.connected) else { return false };
        let part = connected.frame_length_max - HEADER_LENGTH;
        publisher.skip(length.div_ceil(part).max(1) as u64)
    }

    /// Number from 1; set before the first message of this process.
    pub fn set_next_derived(&mut self, number: u64) {
        if let Some(publisher) = &mut self.publisher {
            publisher.set_next_derived(number);
        }
    }

    /// Last number up to which the stream is known to have every derived frame; 0 for a node that only reads. Until then
    /// only this process may have them.
    #[must_use]
    pub fn acknowledged_session_seq(&self) -> u64 {
        self.publisher.as_ref().map_or(0, PublishingSession::acknowledged)
    }

    /// Asks the sequencer for the frames that it has, if there is no room.
    ///
    /// # Errors
    /// A fatal error of the link.
    pub fn has_room_for_derived(&mut self) -> Result<bool, ClientError> {
        let Some(publisher) = &self.publisher else { return Ok(false) };
        if publisher.is_open() && (self.closed.is_halted || publisher.has_room_for_derived()) {
            return Ok(true);
        }
        match self.ask_for_room() {
            Err(ClientError::Disconnected { .. }) => self.state = NodeState::Connecting,
            other => other?,
        }
        Ok(false)
    }

    fn ask_for_room(&mut self) -> Result<(), ClientError> {
        let Some(publisher) = &mut self.publisher else { return Ok(()) };
        if self.state == NodeState::Connecting {
            return Ok(());
        }
        let now_ns = self.clock.now().monotonic_ns;
        // Packets are not read until the sequencer has answered.
        self.link.take_in(now_ns)?;
        if publisher.is_open()
            && publisher.take_due_probe(now_ns)
            && let Some(frame) = publisher.last_sent()
            && self.link.send(frame)?
        {
            self.link.flush()?;
        }
        Ok(())
    }
}
