//! [`Sink`]: where a fold's outputs go, and the sinks that forget them.

use crate::dead_letters::{DeadLetter, DeadLetters};
use crate::sessions::{SessionEntry, StoredReply};
use gapless_schema::Encoding;

/// Where a fold's outputs go. Recovery ignores them: whoever waits for a reply asks again.
pub trait Sink {
    /// A command has its reply.
    fn reply(&mut self, session: &SessionEntry, reply: &StoredReply);
    /// A session was opened; its reply is made from the entry.
    fn opened(&mut self, session: &mut SessionEntry);
    /// A session has a new notice, the last of its list.
    fn notice(&mut self, session: &SessionEntry);
    /// A timer is to fire.
    fn set_timer(&mut self, timer: u64, deadline_ns: u64);
    /// A timer is not to fire.
    fn cancel_timer(&mut self, timer: u64, deadline_ns: u64);
    /// No handler took a command.
    fn dead_letter(&mut self, letter: DeadLetter);
    /// A message for the event stream that the service runs on; a service whose stream is its own has none.
    fn publish(&mut self, schema: u32, encoding: Encoding, payload: &[u8]) {
        let _ = (schema, encoding, payload);
    }
}

/// A sink that forgets all but dead letters: what is skipped is skipped at a start.
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

/// A sink that forgets.
pub struct NoSink;

impl Sink for NoSink {
    fn reply(&mut self, _: &SessionEntry, _: &StoredReply) {}
    fn opened(&mut self, _: &mut SessionEntry) {}
    fn notice(&mut self, _: &SessionEntry) {}
    fn set_timer(&mut self, _: u64, _: u64) {}
    fn cancel_timer(&mut self, _: u64, _: u64) {}
    fn dead_letter(&mut self, _: DeadLetter) {}
}
