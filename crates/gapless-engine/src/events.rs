//! A fold on an event stream that belongs to others: what it takes from it, and what it leaves alone. There are no
//! commands with replies; what its handlers publish goes back into the stream under numbers that follow from the
//! stream alone, so that a replay and a second copy publish the same.

use crate::EngineError;
use crate::fold::{DeadLetter, Fold, Outcome, Sink};
use crate::service::Service;
use gapless_wire::{Fragment, Frame, Kind};

impl<S: Service> Fold<S> {
    /// The same fold, for a stream that belongs to others.
    #[must_use]
    pub fn on_stream(mut self) -> Self {
        self.is_on_stream = true;
        self
    }

    /// Applies the next frame of a stream that belongs to others; `own` if this service published it, or asked for
    /// the timer. Messages that no handler takes are somebody else's.
    ///
    /// # Errors
    /// A gap in the order; what the policy makes an error.
    pub fn apply_of_stream(&mut self, frame: &Frame<'_>, own: bool, sink: &mut impl Sink) -> Result<(), EngineError> {
        let sequence = frame.sequence();
        if sequence != self.last_sequence + 1 {
            let reason = format!("sequence {} was due", self.last_sequence + 1);
            return Err(EngineError::Corrupt { sequence, reason });
        }
        self.last_sequence = sequence;
        self.last_timestamp_ns = frame.timestamp_ns();
        match frame.kind() {
            Kind::Event | Kind::Command if frame.fragment() == Fragment::WHOLE => {
                self.event(frame, frame.payload(), sink)
            }
            Kind::Event | Kind::Command => {
                let Some(message) = self.collect(frame) else { return Ok(()) };
                let outcome = self.event(frame, &message, sink);
                self.message = message;
                outcome
            }
            Kind::Timer if own => self.timer(frame, sink),
            _ => Ok(()),
        }
    }

    fn event(&mut self, frame: &Frame<'_>, payload: &[u8], sink: &mut impl Sink) -> Result<(), EngineError> {
        if self.handlers.find(frame.schema(), frame.encoding()).is_none() {
            return Ok(());
        }
        match self.run(frame, payload)? {
            Outcome::Done => self.commit_side_outputs(sink),
            // Nobody waits for an answer, so a refusal is recorded like a fault.
            Outcome::Refused { text, .. } => {
                let (sequence, session, schema) = (frame.sequence(), frame.session(), frame.schema());
                let session_seq = frame.session_seq();
                sink.dead_letter(DeadLetter { sequence, session, session_seq, schema, reason: text });
            }
        }
        Ok(())
    }
}
