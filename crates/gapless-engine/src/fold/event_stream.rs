//! A fold on an event stream of other programs. Handlers publish under numbers derived from the stream alone, so that a
//! replay and a second instance publish the same.

use crate::EngineError;
use crate::dead_letters::DeadLetter;
use crate::fold::{Fold, Sink};
use crate::outputs::ExecutionOutcome;
use gapless_wire::control::{RefusalCode, TimerFired};
use gapless_wire::descriptor::REFUSED_FLAG;
use gapless_wire::{Fragment, Frame, Kind};

impl Fold {
    #[must_use]
    pub fn on_event_stream(mut self) -> Self {
        self.is_on_event_stream = true;
        self
    }

    /// `own`: this service published it or requested the timer. Messages without a handler belong to other consumers.
    ///
    /// # Errors
    /// A gap in the sequence, or a case that the policy makes an error.
    pub fn apply_event_stream_frame(
        &mut self,
        frame: &Frame<'_>,
        own: bool,
        sink: &mut dyn Sink,
    ) -> Result<(), EngineError> {
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
            Kind::TimerRequest if own && frame.flags() & REFUSED_FLAG != 0 => {
                timer_refused(frame, sink);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn event(&mut self, frame: &Frame<'_>, payload: &[u8], sink: &mut dyn Sink) -> Result<(), EngineError> {
        if !self.service.takes(frame.schema(), frame.encoding()) {
            return Ok(());
        }
        match self.run(frame, payload)? {
            ExecutionOutcome::Done => self.commit_side_outputs(sink),
            // No client waits for a reply, so a refusal is recorded as a dead letter.
            ExecutionOutcome::Refused { code, text: reason, .. } => {
                let (sequence, session, schema) = (frame.sequence(), frame.session(), frame.schema());
                let session_seq = frame.session_seq();
                sink.dead_letter(DeadLetter { sequence, session, session_seq, schema, code, reason });
            }
        }
        Ok(())
    }
}

/// The stream had no room for the timer: the operator learns that it will not fire.
#[cold]
fn timer_refused(frame: &Frame<'_>, sink: &mut dyn Sink) {
    let Some(TimerFired { timer, deadline_ns }) = TimerFired::from_bytes(frame.payload()) else { return };
    let (sequence, session, session_seq) = (frame.sequence(), frame.session(), frame.session_seq());
    let reason = format!("the stream has no room for timer {timer}, due at {deadline_ns} ns; it will not fire");
    let code = RefusalCode::Limit;
    sink.dead_letter(DeadLetter { sequence, session, session_seq, schema: 0, code, reason });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says where it failed")]
    use super::*;
    use crate::context::Context;
    use crate::fold::Policy;
    use crate::reject::Reject;
    use crate::service::{Handlers, Service};
    use crate::sessions::{SessionEntry, StoredReply};
    use gapless_wire::{FrameHeader, FrameWriter, HEADER_LENGTH};

    struct Idle;

    impl Service for Idle {
        fn handlers(_: &mut Handlers<Self>) {}

        fn on_timer(&mut self, _: u64, _: &mut Context<'_>) -> Result<(), Reject> {
            Ok(())
        }

        fn snapshot(&self, _: &mut Vec<u8>) {}

        fn restore(&mut self, _: &[u8]) -> Result<(), String> {
            Ok(())
        }
    }

    #[derive(Default)]
    struct Letters(Vec<DeadLetter>);

    impl Sink for Letters {
        fn reply(&mut self, _: &SessionEntry, _: &StoredReply) {}
        fn opened(&mut self, _: &mut SessionEntry) {}
        fn notice(&mut self, _: &SessionEntry) {}
        fn set_timer(&mut self, _: u64, _: u64) {}
        fn cancel_timer(&mut self, _: u64, _: u64) {}
        fn dead_letter(&mut self, letter: DeadLetter) {
            self.0.push(letter);
        }
    }

    fn request(sequence: u64, timer: u64, flags: u16) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LENGTH + TimerFired::LENGTH];
        let mut writer = FrameWriter::new(&mut bytes);
        writer.payload_mut().copy_from_slice(&TimerFired { timer, deadline_ns: 5_000 }.to_bytes());
        let kind = Kind::TimerRequest;
        let header = FrameHeader { kind, sequence, session: 7, session_seq: sequence, flags, ..FrameHeader::default() };
        writer.finish(&header, TimerFired::LENGTH);
        bytes
    }

    fn letters() -> Vec<DeadLetter> {
        let (mut fold, mut letters) = (Fold::new(Idle, Policy::default()).on_event_stream(), Letters::default());
        let requests = [(11, 0, true), (12, REFUSED_FLAG, true), (13, REFUSED_FLAG, false), (14, REFUSED_FLAG, true)];
        for ((timer, flags, own), sequence) in requests.into_iter().zip(1..) {
            let bytes = request(sequence, timer, flags);
            fold.apply_event_stream_frame(&Frame::parse(&bytes).unwrap(), own, &mut letters).unwrap();
        }
        letters.0
    }

    #[test]
    fn refused_timer_is_a_dead_letter() {
        let letter = |sequence: u64, timer: u64| DeadLetter {
            sequence,
            session: 7,
            session_seq: sequence,
            schema: 0,
            code: RefusalCode::Limit,
            reason: format!("the stream has no room for timer {timer}, due at 5000 ns; it will not fire"),
        };
        let once = letters();
        assert_eq!(once, [letter(2, 12), letter(4, 14)], "only own requests that were refused");
        assert_eq!(letters(), once);
    }
}
