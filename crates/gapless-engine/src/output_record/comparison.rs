//! `ComparingSink`: compares a replay's outputs with the recorded ones.

use super::checks::ReplayComparison;
use super::{OutputHash, RecordedOutputs};
use crate::dead_letters::DeadLetter;
use crate::fold::Sink;
use crate::sessions::{SessionEntry, StoredReply};
use gapless_schema::Encoding;
use gapless_wire::checksum::crc32c;
use std::ops::RangeInclusive;
use std::path::PathBuf;

pub(crate) struct ComparingSink<'a> {
    sink: &'a mut dyn Sink,
    pub recorded: &'a mut RecordedOutputs,
    next: usize,
    replaying: Option<RecordReplay>,
}

struct RecordReplay {
    hash: OutputHash,
    replayed: ReplayComparison,
}

/// A frame in `at` was the first to differ.
#[derive(Debug)]
pub(crate) struct OutputDifference {
    pub first: u64,
    pub last: u64,
    pub at: RangeInclusive<u64>,
    pub path: PathBuf,
}

impl<'a> ComparingSink<'a> {
    pub fn new(sink: &'a mut dyn Sink, recorded: &'a mut RecordedOutputs) -> Self {
        Self { sink, recorded, next: 0, replaying: None }
    }

    #[inline]
    pub fn before(&mut self, sequence: u64) {
        let is_between = self.replaying.is_none();
        while is_between && self.recorded.records.get(self.next).is_some_and(|next| next.first < sequence) {
            self.next += 1;
        }
        if let Some(next) = self.recorded.records.get(self.next).filter(|next| next.first == sequence) {
            self.replaying =
                Some(RecordReplay { hash: OutputHash::new(), replayed: ReplayComparison::new(next.checks) });
        }
    }

    /// Notes that frame `sequence`, with this time stamp, was replayed.
    ///
    /// # Errors
    /// The outputs of the record that ends here differ from the recorded ones.
    #[inline]
    pub fn after(&mut self, sequence: u64, timestamp_ns: u64) -> Result<(), OutputDifference> {
        let Some(replaying) = &mut self.replaying else { return Ok(()) };
        replaying.replayed.after_frame(replaying.hash);
        let Some(record) = self.recorded.records.get(self.next).filter(|record| record.last == sequence) else {
            return Ok(());
        };
        let Some(RecordReplay { hash, replayed }) = self.replaying.take() else { return Ok(()) };
        if record.timestamp_ns != timestamp_ns {
            tracing::info!(sequence, "a record of outputs is of frames that were cut, and goes");
            self.recorded.records.remove(self.next);
            return Ok(());
        }
        self.next += 1;
        if hash.0 == record.hash {
            return Ok(());
        }
        let (first, last, path) = (record.first, record.last, self.recorded.path.clone());
        Err(OutputDifference { first, last, at: replayed.differs(first, last), path })
    }

    fn with(&mut self, add: impl FnOnce(&mut OutputHash)) {
        if let Some(replaying) = &mut self.replaying {
            add(&mut replaying.hash);
        }
    }
}

impl Sink for ComparingSink<'_> {
    fn reply(&mut self, session: &SessionEntry, reply: &StoredReply) {
        self.with(|hash| hash.reply(reply, crc32c(&reply.payload)));
        self.sink.reply(session, reply);
    }

    fn opened(&mut self, session: &mut SessionEntry) {
        self.sink.opened(session);
    }

    fn notice(&mut self, session: &SessionEntry) {
        self.with(|hash| hash.notice(session));
        self.sink.notice(session);
    }

    fn set_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.with(|hash| hash.timer(timer, deadline_ns));
        self.sink.set_timer(timer, deadline_ns);
    }

    fn cancel_timer(&mut self, timer: u64, deadline_ns: u64) {
        self.with(|hash| hash.timer(timer, !deadline_ns));
        self.sink.cancel_timer(timer, deadline_ns);
    }

    fn dead_letter(&mut self, letter: DeadLetter) {
        self.with(|hash| hash.dead_letter(&letter));
        self.sink.dead_letter(letter);
    }

    fn publish(&mut self, schema: u32, encoding: Encoding, payload: &[u8]) {
        self.sink.publish(schema, encoding, payload);
    }
}
