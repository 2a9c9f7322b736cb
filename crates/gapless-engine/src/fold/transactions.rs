//! A [`Fold`] that applies transactions of a leader's handlers.

use super::{Fold, Policy, Sink};
use crate::dead_letters::DeadLetter;
use crate::erased_service::{ErasedService, TransactionPosition};
use crate::handler_guard::HandlerRefusal;
use crate::outputs::{ExecutionOutcome, Outputs};
use crate::transaction_layout::TransactionReply;
use crate::{EngineError, transaction_layout};
use gapless_wire::control::TimerFired;
use gapless_wire::descriptor::TRANSACTION_FLAG;
use gapless_wire::{Fragment, Frame};

impl Fold {
    pub(crate) fn applying_transactions(service: Box<dyn ErasedService>) -> Self {
        Self::of(service, Policy::default())
    }

    #[inline]
    pub(crate) fn between_batches(&mut self) -> Result<(), EngineError> {
        if !self.applies_transactions {
            return Ok(());
        }
        self.service.between_batches(self.last_sequence, &self.timers, &self.sessions)
    }

    /// `is_final`: no frame is applied after it.
    pub(crate) fn can_snapshot(&mut self, is_final: bool) -> Result<bool, EngineError> {
        self.service.can_snapshot(self.last_sequence, is_final)
    }

    /// Stages notices and timers; the reply stays in `payload`.
    #[inline(always)]
    pub(super) fn transaction<'a>(
        &mut self,
        frame: &Frame<'_>,
        payload: &'a [u8],
    ) -> Result<(ExecutionOutcome, Option<TransactionReply<'a>>), EngineError> {
        let sequence = frame.sequence();
        let corrupt = |reason| EngineError::Corrupt { sequence, reason };
        self.outputs.clear();
        let read = transaction_layout::read(payload, &mut self.outputs).map_err(corrupt)?;
        if let Some(session) = self.sessions.first_over_notice_limit(&self.outputs) {
            return Err(corrupt(format!("a transaction leaves session {session} more notices than it may have")));
        }
        let (first_sequence, first_timestamp_ns) = match frame.fragment() {
            Fragment::WHOLE => (sequence, frame.timestamp_ns()),
            _ => self.first_fragment,
        };
        let (session, session_seq) = (frame.session(), frame.session_seq());
        let applied = TransactionPosition { sequence, first_sequence, first_timestamp_ns, session, session_seq };
        self.service.apply(&applied, &read).map_err(corrupt)?;
        Ok((read.outcome, read.reply))
    }

    pub(super) fn timer_transaction(&mut self, frame: &Frame<'_>, sink: &mut dyn Sink) -> Result<(), EngineError> {
        if frame.fragment() == Fragment::WHOLE {
            return self.fired(frame, frame.payload(), sink);
        }
        let Some(message) = self.collect(frame) else { return Ok(()) };
        let outcome = self.fired(frame, &message, sink);
        self.message = message;
        outcome
    }

    fn fired(&mut self, frame: &Frame<'_>, payload: &[u8], sink: &mut dyn Sink) -> Result<(), EngineError> {
        let sequence = frame.sequence();
        let corrupt = |reason: &str| EngineError::Corrupt { sequence, reason: reason.to_owned() };
        let (head, payload) =
            payload.split_at_checked(TimerFired::LENGTH).ok_or_else(|| corrupt("a malformed timer"))?;
        let fired = TimerFired::from_bytes(head).ok_or_else(|| corrupt("a malformed timer"))?;
        if frame.flags() & TRANSACTION_FLAG == 0 || !self.timers.is_set(fired.timer, fired.deadline_ns) {
            return Err(corrupt("a timer whose handler has not run, or that is not set"));
        }
        let schema = self.timers.take(fired.timer, fired.deadline_ns).and_then(|due| due.schema()).unwrap_or_default();
        let (outcome, reply) = self.transaction(frame, payload)?;
        if reply.is_some() {
            return Err(corrupt("a timer with a reply"));
        }
        if let ExecutionOutcome::Refused { code, text: reason, .. } = outcome {
            sink.dead_letter(DeadLetter { sequence, session: 0, session_seq: 0, schema, code, reason });
        }
        self.commit_side_outputs(sink);
        Ok(())
    }
}

/// Refuses a command of a leader that does not run the service: the members would not all run it alike.
///
/// # Errors
/// The frame has no term: outside a cluster the stream always has its service, so this one was event-sourced.
#[cold]
pub(super) fn refuse_without_handlers(
    frame: &Frame<'_>,
    outputs: &mut Outputs,
) -> Result<ExecutionOutcome, EngineError> {
    if frame.term() == 0 {
        let (found, expected) = ("an event-sourced", "state-replicated");
        return Err(EngineError::Kind { sequence: frame.sequence(), found, expected });
    }
    outputs.clear();
    let text = "the leader that took it runs no service; send it as another command".to_owned();
    Ok(HandlerRefusal::Unhandled(text).into())
}
