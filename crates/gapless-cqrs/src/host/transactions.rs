//! [`BusTransactions`]: the writer as the sequencer's thread calls it.

use crate::events::{Advanced, EventReader};
use crate::handling;
use crate::identity::{Position, TypeKey};
use crate::released::Handover;
use crate::writer::{Failure, Ran, Stamp, Writer};
use gapless_agent::Waker;
use gapless_engine::transaction_service::{WriterParts, write_done, write_refusal};
use gapless_stream::Sequencer;
use gapless_stream::transactions::{Execution, Transactions};
use gapless_wire::FrameHeader;
use gapless_wire::control::{RefusalCode, TimerFired};
use gapless_wire::fields::FieldReader;
use std::collections::VecDeque;
use std::sync::Arc;

/// Frames of the stream that are read in one turn at most.
const FRAMES_A_TURN: usize = 4096;
/// The schema of an answer.
const ANSWER_SCHEMA: u32 = TypeKey::of("gapless.cqrs.answer").0;

/// See the head of the file.
pub(super) struct BusTransactions {
    writer: Writer,
    handover: Arc<Handover>,
    /// Of the thread that calls this.
    waker: Waker,
    released_waker: Waker,
    reader: EventReader,
    leading: Leading,
    /// Whether aggregates are being folded anew, by the stream up to there.
    refolding_to: Option<u64>,
    /// Sessions whose commands wait for that.
    deferred: VecDeque<u64>,
}

/// How far the writer is towards deciding.
enum Leading {
    No,
    /// The stream is read up to there, and the identifiers are waited for.
    From(u64),
    Yes,
}

impl BusTransactions {
    pub fn new(writer: Writer, handover: Arc<Handover>, parts: WriterParts) -> Self {
        let reader = EventReader::over(parts.reader(1), Position::default());
        let (waker, released_waker, leading) = (parts.waker, parts.released_waker, Leading::No);
        Self { writer, handover, waker, released_waker, reader, leading, refolding_to: None, deferred: VecDeque::new() }
    }

    /// Reads on in the stream. Whether everything up to `last_sequence` is read.
    #[cold]
    fn fill(&mut self, last_sequence: u64) -> Result<bool, String> {
        let mut left = FRAMES_A_TURN;
        while self.reader.next_sequence() <= last_sequence {
            match self.reader.advance(left).map_err(|error| error.to_string())? {
                Advanced::Frames => {
                    // There is more: a thread that finds nothing else to do would sleep in between.
                    self.waker.wake();
                    return Ok(self.reader.next_sequence() > last_sequence);
                }
                Advanced::End => return Ok(self.reader.next_sequence() > last_sequence),
                Advanced::Transaction => {}
            }
            let mut events = self.reader.transaction().map_err(|error| error.to_string())?;
            let (cache, model) = self.writer.cache_mut();
            while let Some(event) = events.next_event().map_err(|error| error.to_string())? {
                match self.refolding_to {
                    None => cache.fold(&model.aggregates, &event),
                    Some(_) => cache.refold(&model.aggregates, &event),
                }
            }
            left = left.saturating_sub(1);
        }
        Ok(true)
    }

    #[cold]
    fn take_over(&mut self, last_sequence: u64) -> Result<bool, String> {
        if !self.fill(last_sequence)? {
            return Ok(false);
        }
        let Some(bytes) = self.handover.take() else {
            self.released_waker.wake();
            return Ok(false);
        };
        let read = self.writer.identifiers_mut().read(&mut FieldReader::new(&bytes));
        read.map_err(|error| error.to_string())?;
        self.leading = Leading::Yes;
        Ok(true)
    }
}

impl BusTransactions {
    /// Goes on folding anew what a panic has left without a state. Whether that is done. Nobody decides meanwhile.
    #[cold]
    fn refold(&mut self, last_sequence: u64) -> bool {
        let to = *self.refolding_to.get_or_insert_with(|| {
            let (cache, model) = self.writer.cache_mut();
            cache.begin_refold(&model.aggregates);
            self.reader.seek(Position::default());
            last_sequence
        });
        match self.fill(to) {
            Ok(false) => return false,
            Ok(true) => self.writer.cache_mut().0.end_refold(),
            Err(reason) => {
                let reason = format!("it cannot be made anew: {reason}");
                self.writer.cache_mut().0.quarantine_refolding(&reason);
            }
        }
        self.refolding_to = None;
        true
    }
}

impl Transactions for BusTransactions {
    fn lead(&mut self, _term: u64, last_sequence: u64) {
        self.handover.want(last_sequence);
        self.leading = Leading::From(last_sequence);
    }

    fn follow(&mut self, _last_sequence: u64) {
        self.handover.withdraw();
        self.leading = Leading::No;
        self.deferred.clear();
        // What it has decided may be cut: nothing of that may be decided upon.
        self.refolding_to = None;
        self.writer.cache_mut().0.clear();
        self.reader.seek(Position::default());
    }

    #[inline]
    fn poll(&mut self, last_sequence: u64) -> bool {
        match self.leading {
            Leading::Yes if self.writer.has_spoiled() || self.refolding_to.is_some() => self.refold(last_sequence),
            Leading::Yes => true,
            Leading::No => false,
            Leading::From(last_sequence) => self.take_over(last_sequence).unwrap_or_else(|reason| {
                tracing::error!("the stream cannot be read: {reason}");
                false
            }),
        }
    }

    fn command(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        _sequencer: &Sequencer,
        length_max: usize,
        out: &mut Vec<u8>,
    ) -> Execution {
        let stamp = Stamp {
            sequence: header.sequence,
            time_ns: header.timestamp_ns,
            session: header.session,
            number: header.session_seq,
        };
        // What else stands in a transaction.
        let length_max = length_max.saturating_sub(64);
        let ran = handling::within(|| self.writer.run(stamp, payload, length_max));
        handling::settle(|| ran == Ran::Answered && self.writer.has_accepted());
        match ran {
            Ran::Answered => write_done(out, ANSWER_SCHEMA, self.writer.answer(), self.writer.changes()),
            Ran::Failed(failure) => {
                let code = match failure {
                    Failure::Unknown => RefusalCode::Unhandled,
                    Failure::Malformed => RefusalCode::Malformed,
                    Failure::Panicked => RefusalCode::HandlerPanicked,
                    Failure::Inadmissible => RefusalCode::Rejected,
                };
                write_refusal(out, code, self.writer.text(), true);
            }
            Ran::Later => {
                self.deferred.push_back(stamp.session);
                return Execution::Later;
            }
        }
        Execution::Done
    }

    fn ready(&mut self) -> Option<u64> {
        self.deferred.pop_front()
    }

    fn is_set(&self, _: TimerFired) -> bool {
        false
    }

    fn timer(&mut self, _: &FrameHeader, _: TimerFired, _: &Sequencer, _: usize, _: &mut Vec<u8>) {
        unreachable!("no timer is set")
    }

    fn acknowledged(&mut self, _: u64, _: u64) {}

    fn closed(&mut self, _: u64) {}
}
