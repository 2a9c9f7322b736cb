//! Timers of a fold: their handlers, and the check of those in a snapshot.

use super::{Fold, Sink, Trigger};
use crate::EngineError;
use crate::dead_letters::DeadLetter;
use crate::handler_guard::HandlerRefusal;
use crate::outputs::ExecutionOutcome;
use crate::timers::{DueTimer, TimerMessage};
use gapless_wire::Frame;
use gapless_wire::control::TimerFired;

impl Fold {
    pub(crate) fn timer(&mut self, frame: &Frame<'_>, sink: &mut dyn Sink) -> Result<(), EngineError> {
        let sequence = frame.sequence();
        let Some(TimerFired { timer, deadline_ns }) = TimerFired::from_bytes(frame.payload()) else {
            return Err(EngineError::Corrupt { sequence, reason: "a malformed timer".to_owned() });
        };
        let Some(due) = self.timers.take(timer, deadline_ns) else { return Ok(()) };
        let schema = due.schema();
        let called = self.call(frame, Trigger::Timer { timer, deadline_ns, schema }, |service, context| match &due {
            DueTimer::Numbered(timer) => service.on_timer(*timer, context).map_err(HandlerRefusal::Rejected),
            DueTimer::Message(TimerMessage { schema, payload }) => service.on_timer_message(*schema, payload, context),
        });
        // No client waits for a reply, so a refusal is recorded as a dead letter.
        if let ExecutionOutcome::Refused { code, text: reason, .. } = called? {
            let schema = schema.unwrap_or_default();
            sink.dead_letter(DeadLetter { sequence, session: 0, session_seq: 0, schema, code, reason });
        }
        self.commit_side_outputs(sink);
        Ok(())
    }

    /// Checks that this program reads the messages of the timers in a snapshot: it would stop when one is due, and would
    /// write an equal message with other bytes, as another timer.
    ///
    /// # Errors
    /// [`EngineError::MissingMessage`].
    pub(crate) fn check_timers(&self) -> Result<(), EngineError> {
        for (timer, TimerMessage { schema, payload }) in self.timers.messages() {
            let Err(HandlerRefusal::Unhandled(reason)) = self.service.check_timer(*schema, payload) else { continue };
            let deadline_ns =
                self.timers.iter().find(|(set, _)| *set == timer).map_or(0, |(_, deadline_ns)| deadline_ns);
            let message = Trigger::Timer { timer, deadline_ns, schema: Some(*schema) }.describe(&*self.service);
            let (sequence, session, session_seq) = (self.last_sequence, 0, 0);
            return Err(EngineError::MissingMessage { message, sequence, session, session_seq, reason });
        }
        Ok(())
    }
}
