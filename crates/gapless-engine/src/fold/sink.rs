//! [`Sink`]: destination of a fold's outputs, and sinks that drop them.

use crate::dead_letters::{DeadLetter, DeadLetters};
use crate::sessions::{SessionEntry, StoredReply};
use gapless_schema::Encoding;

/// Destination of a fold's outputs. Recovery drops them: a client that waits for a reply retries.
pub trait Sink {
    /// A command has its reply.
    fn reply(&mut self, session: &SessionEntry, reply: &StoredReply);
    /// A session was opened; its reply is made from the entry.
    fn opened(&mut self, session: &mut SessionEntry);
    /// A session has a new notice, the last of its list.
    fn notice(&mut self, session: &SessionEntry);
    fn set_timer(&mut self, timer: u64, deadline_ns: u64);
    fn cancel_timer(&mut self, timer: u64, deadline_ns: u64);
    /// No handler took a command.
    fn dead_letter(&mut self, letter: DeadLetter);
    /// Publishes a message to the event stream that the service runs on. A service with its own stream never calls it.
    fn publish(&mut self, schema: u32, encoding: Encoding, payload: &[u8]) {
        let _ = (schema, encoding, payload);
    }
}

/// Drops all outputs but dead letters. Used at a start, which also records skipped commands.
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
