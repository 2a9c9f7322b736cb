//! Commands of the operator, handled like those of the API.

use super::Ingress;
use crate::StreamError;
use gapless_client::control_messages::{ControlCommand, ControlOutcome, ControlStatus};
use gapless_wire::mark::Mark;

impl Ingress {
    /// `false` while the window is full.
    #[cold]
    pub(super) fn execute_control(&mut self, number: u64, command: &ControlCommand) -> Result<bool, StreamError> {
        let Some(status) = self.control(command)? else { return Ok(false) };
        // A command's mark is the last appended frame.
        let outcome = ControlOutcome { number, status, sequence: self.sequencer.last_sequence() };
        // A full mailbox means that the control server has ended: it limits waiting requests.
        let _ = self.shared.outcomes.push(outcome);
        Ok(true)
    }

    /// `None` while the window is full.
    fn control(&mut self, command: &ControlCommand) -> Result<Option<ControlStatus>, StreamError> {
        let is_ended = self.sequencer.is_between_feeds();
        let mark = match command {
            ControlCommand::RollOver { name } => {
                if self.sequencer.feeds().find_by_name(*name).is_some() {
                    return Ok(Some(ControlStatus::NameTaken));
                }
                return Ok(self.begin_feed(*name)?.then_some(ControlStatus::Done));
            }
            _ if is_ended => return Ok(Some(ControlStatus::Ended)),
            ControlCommand::Halt { .. } if self.sequencer.is_halted() => return Ok(Some(ControlStatus::Unchanged)),
            ControlCommand::Halt { reason } => Mark::Halted { reason },
            ControlCommand::Resume if !self.sequencer.is_halted() => return Ok(Some(ControlStatus::Unchanged)),
            ControlCommand::Resume => Mark::Resumed,
            ControlCommand::End => match self.sequencer.feed_session() {
                Some(feed_session) => Mark::FeedEnded { feed_session },
                None => return Ok(Some(ControlStatus::Ended)),
            },
        };
        Ok(self.append_mark(mark)?.then_some(ControlStatus::Done))
    }
}
