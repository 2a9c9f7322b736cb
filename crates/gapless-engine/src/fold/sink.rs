//! `Sink`: destination of a fold's outputs, and sinks that drop them.

use crate::dead_letters::{DeadLetter, DeadLetters};
use crate::sessions::{SessionEntry, StoredReply};
use gapless_schema::Encoding;

/// Destination of a fold's outputs. Recovery drops them: a client without a reply retries.
pub trait Sink {
    fn reply(&mut self, session: &SessionEntry, reply: &StoredReply);
    fn opened(&mut self, session: &mut SessionEntry);
    fn notice(&mut self, session: &SessionEntry);
    fn set_timer(&mut self, timer: u64, deadline_ns: u64);
    fn cancel_timer(&mut self, timer: u64, deadline_ns: u64);
    fn dead_letter(&mut self, letter: DeadLetter);
    fn publish(&mut self, schema: u32, encoding: Encoding, payload: &[u8]) {
        let _ = (schema, encoding, payload);
    }
}

/// Used at a start, which records skipped commands too.
pub(crate) struct DeadLettersOnly<'a>(pub &'a mut DeadLetters);

impl Sink for DeadLettersOnly<'_> {
    fn reply(&mut self, _: &SessionEntry, _: &StoredReply) {}
    fn opened(&mut self, _: &mut SessionEntry) {}
    fn notice(&mut self, _: &SessionEntry) {}
    fn set_timer(&mut self, _: u64, _: u64) {}
    fn cancel_timer(&mut self, _: u64, _: u64) {}

    fn dead_letter(&mut self, letter: DeadLetter) {
        self.0.record(&letter);
    }
}

/// Drops all outputs.
pub struct NoSink;

impl Sink for NoSink {
    fn reply(&mut self, _: &SessionEntry, _: &StoredReply) {}
    fn opened(&mut self, _: &mut SessionEntry) {}
    fn notice(&mut self, _: &SessionEntry) {}
    fn set_timer(&mut self, _: u64, _: u64) {}
    fn cancel_timer(&mut self, _: u64, _: u64) {}
    fn dead_letter(&mut self, _: DeadLetter) {}
}
