//! `Executor`: the agent that applies released frames in order and replies to the publishers.

mod outbox;
mod queries;
mod query_answers;

use crate::EngineError;
use crate::dead_letters::DeadLetters;
use crate::fold::Fold;
use crate::interruption::{ANSWERING, HANDLING, INTERRUPTED, keep_interrupted_query, keep_interrupted_speculation};
use crate::output_record::OutputRecord;
use crate::pending_query::POLL_NS_MAX;
use crate::recovery::RecoverySummary;
use crate::sender::{RetryTimer, SendQueue};
use crate::snapshot_schedule::SnapshotSchedule;
use crate::state_hasher::StateHasher;
use gapless_agent::progress::ProgressCounter;
use gapless_agent::{Agent, AgentError, Counter, CounterView, Counters, Now, Waker};
use gapless_log::{GatingCursor, Window};
use gapless_stream::AgentRole;
use gapless_stream::egress::Egress;
use gapless_stream::messages::{ResponderMessage, SequencerRequest};
use gapless_transport::mailbox::Mailbox;
use gapless_wire::frame::peek_sessions;
use gapless_wire::prefetch::FramesAhead;
use gapless_wire::{Frame, aligned_length};
use outbox::ReplyOutbox;
pub use queries::QUERIES_WAITING_MAX;
use queries::Queries;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Last handled sequence.
const LAST_SEQUENCE: &str = "service.last_sequence";
/// Commands without a handler, since the start.
const DEAD_LETTERS: &str = "service.dead_letters";
/// Replies and notices that wait for clients that do not read.
const MESSAGES_WAITING: &str = "service.messages_waiting";
/// Answered queries, since the start.
const QUERIES: &str = "service.queries";
/// Queries that wait for a sequence, or for room at a client that does not read.
const QUERIES_WAITING: &str = "service.queries_waiting";
/// Time in the handlers of queries, since the start, ns.
const QUERY_NS: &str = "service.query_ns";

/// Route of the replies.
pub enum ReplyDelivery {
    Direct(Egress),
    Detached(SendQueue),
}

pub struct Executor {
    fold: Fold,
    cursor: GatingCursor,
    window: Window,
    stop_at: StopPosition,
    outbox: ReplyOutbox,
    from_sequencer: Mailbox<ResponderMessage>,
    snapshots: Option<SnapshotSchedule>,
    state_hasher: Option<StateHasher>,
    frames_per_poll_max: usize,
    frames_per_poll: usize,
    full_since_ns: Option<u64>,
    counters: ExecutorCounters,
    next_sweep_ns: u64,
    retries: RetryTimer,
    closing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPosition {
    /// End of the appended frames: they will be released.
    Appended,
    /// End of the released frames: a cluster may cut later ones.
    Released,
}

pub struct ExecutorLinks {
    pub cursor: GatingCursor,
    pub window: Window,
    pub stop_at: StopPosition,
    pub delivery: ReplyDelivery,
    pub sequencer: Mailbox<SequencerRequest>,
    pub sequencer_waker: Waker,
    pub from_sequencer: Mailbox<ResponderMessage>,
    pub dead_letters: DeadLetters,
    pub snapshots: Option<SnapshotSchedule>,
    pub state_hasher: Option<StateHasher>,
    pub record: Option<OutputRecord>,
    pub frames_per_poll_max: usize,
    pub counters: ExecutorCounters,
}

#[derive(Debug)]
pub struct ExecutorCounters {
    pub last_sequence: Counter,
    pub progress: Arc<ProgressCounter>,
    pub dead_letters: Counter,
    pub waiting: Counter,
    pub handling: Counter,
    pub queries: Counter,
    pub queries_waiting: Counter,
    pub query_ns: Counter,
    /// Query in progress; the outbox takes it.
    answering: Option<Counter>,
}

impl ExecutorCounters {
    pub fn add_to(counters: &Counters, recovered: &RecoverySummary) -> Result<Self, gapless_agent::Error> {
        let last_sequence = counters.add(LAST_SEQUENCE)?;
        last_sequence.set(recovered.last_sequence);
        let dead_letters = counters.add(DEAD_LETTERS)?;
        counters.add(INTERRUPTED)?.set(recovered.interrupted_sequence);
        keep_interrupted_speculation(counters, recovered.interrupted_speculation)?;
        keep_interrupted_query(counters, recovered.interrupted_query)?;
        let (waiting, handling) = (counters.add(MESSAGES_WAITING)?, counters.add(HANDLING)?);
        let progress = Arc::new(ProgressCounter::new(recovered.last_sequence));
        let (queries, queries_waiting) = (counters.add(QUERIES)?, counters.add(QUERIES_WAITING)?);
        let (query_ns, answering) = (counters.add(QUERY_NS)?, Some(counters.add(ANSWERING)?));
        Ok(Self {
            last_sequence,
            progress,
            dead_letters,
            waiting,
            handling,
            queries,
            queries_waiting,
            query_ns,
            answering,
        })
    }

    #[must_use]
    pub fn views(&self) -> (CounterView, CounterView) {
        (self.last_sequence.view(), self.dead_letters.view())
    }
}

impl Executor {
    #[must_use]
    pub fn new(fold: Fold, mut links: ExecutorLinks) -> Self {
        Self {
            fold,
            cursor: links.cursor,
            window: links.window,
            stop_at: links.stop_at,
            outbox: ReplyOutbox {
                delivery: links.delivery,
                deferred: Vec::new(),
                attached_early: FxHashMap::default(),
                reopened: BTreeMap::new(),
                sequencer: links.sequencer,
                sequencer_waker: links.sequencer_waker,
                requests: VecDeque::new(),
                dead_letters: links.dead_letters,
                record: links.record,
                timers_from: None,
                queries: Queries::default(),
                answering: links.counters.answering.take(),
            },
            from_sequencer: links.from_sequencer,
            snapshots: links.snapshots,
            state_hasher: links.state_hasher,
            frames_per_poll_max: links.frames_per_poll_max,
            frames_per_poll: 1,
            full_since_ns: None,
            counters: links.counters,
            next_sweep_ns: 0,
            retries: RetryTimer::default(),
            closing: false,
        }
    }

    fn is_at_end(&self) -> bool {
        let end = match self.stop_at {
            StopPosition::Appended => self.window.appended(),
            StopPosition::Released => self.window.released(),
        };
        self.cursor.position() == end
    }

    #[inline]
    fn adapt_poll_limit(&mut self, now_ns: u64) {
        let Some(since_ns) = self.full_since_ns.take() else { return };
        self.frames_per_poll = if now_ns.saturating_sub(since_ns) > POLL_NS_MAX {
            (self.frames_per_poll / 2).max(1)
        } else {
            (self.frames_per_poll * 2).min(self.frames_per_poll_max)
        };
    }

    #[inline]
    fn apply_released(&mut self, now_ns: u64) -> Result<usize, EngineError> {
        let frames = self.cursor.available()?;
        // Sent before the sequencer publishes the frames, so handled first.
        while let Some(message) = self.from_sequencer.pop() {
            self.outbox.handle_request(&mut self.fold, message, now_ns);
        }
        if !self.outbox.reopened.is_empty() {
            self.outbox.answer_reopened(&mut self.fold, self.window.released_sequence());
        }
        self.fold.between_batches()?;
        let (mut position, mut applied, mut frames_ahead) = (0, 0, FramesAhead::default());
        while position < frames.len() && (applied < self.frames_per_poll || self.fold.is_mid_message()) {
            frames_ahead.step(|sessions| self.fold.prefetch(peek_sessions(&frames[position..], sessions)));
            let frame = Frame::parse(&frames[position..]).map_err(|source| {
                let reason = source.to_string();
                EngineError::Corrupt { sequence: self.fold.last_sequence() + 1, reason }
            })?;
            position += aligned_length(frame.length());
            self.counters.handling.set(frame.sequence());
            self.fold.apply(&frame, &mut self.outbox)?;
            if let Some(record) = &mut self.outbox.record {
                record.after_frame();
            }
            if let Some(state_hasher) = &self.state_hasher {
                state_hasher.after_frame(&self.fold);
            }
            applied += 1;
        }
        if position > 0 {
            self.counters.handling.set(0);
            self.cursor.advance(position);
        }
        Ok(applied)
    }

    #[cold]
    fn answer_queries(&mut self, now_ns: u64) -> usize {
        let work = self.outbox.answer_queries(&mut self.fold, now_ns);
        let queries = &self.outbox.queries;
        self.counters.queries.set(queries.answered);
        self.counters.queries_waiting.set(queries.count() as u64);
        self.counters.query_ns.set(queries.handler_ns + queries.lent_ns);
        work
    }

    /// Runs after the replies have left, so that no reply waits for it. A frame counts as handled when the sequencer
    /// has its timers.
    #[inline]
    fn count(&mut self) {
        if self.counters.last_sequence.get() != self.fold.last_sequence() && self.outbox.requests.is_empty() {
            self.counters.last_sequence.set(self.fold.last_sequence());
            self.counters.progress.advance_to(self.fold.last_sequence());
            self.counters.dead_letters.set(self.outbox.dead_letters.count());
        }
        let waiting = self.outbox.deferred.iter().map(|waiting| waiting.messages.len() as u64).sum();
        if self.counters.waiting.get() != waiting {
            self.counters.waiting.set(waiting);
        }
    }
}

impl Agent for Executor {
    fn name(&self) -> &str {
        AgentRole::Service.name()
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        self.adapt_poll_limit(now.monotonic_ns);
        let query_ns = self.outbox.queries.handler_ns;
        let mut moved = self.outbox.refresh();
        let applied = self.apply_released(now.monotonic_ns);
        if !self.outbox.queries.is_empty() && applied.is_ok() {
            moved += self.answer_queries(now.monotonic_ns);
        }
        if self.outbox.timers_from.is_some_and(|sequence| self.fold.last_sequence() >= sequence) {
            self.outbox.timers_from = None;
            self.outbox.set_timers(&self.fold);
        }
        // Replies to frames applied before a failure are sent all the same: their commands are released.
        if !self.outbox.deferred.is_empty() {
            moved += self.outbox.retry(&self.fold);
        }
        self.outbox.dead_letters.write_unwritten();
        self.retries.after_poll(now.monotonic_ns, self.outbox.has_deferred_messages(), moved > 0);
        self.outbox.flush();
        self.count();
        moved += usize::from(!self.outbox.requests.is_empty());
        let applied = applied?;
        self.full_since_ns = (applied >= self.frames_per_poll).then(|| {
            // The time of queries says nothing about frames.
            now.monotonic_ns + (self.outbox.queries.handler_ns - query_ns)
        });
        let is_last = self.closing && self.is_at_end();
        let before = self.snapshots.as_ref().map_or(0, SnapshotSchedule::taken_sequence);
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.after_batch(&mut self.fold, is_last)?;
        }
        if let Some(record) = &mut self.outbox.record {
            let last = (self.fold.last_sequence(), self.fold.last_timestamp_ns());
            record.after_batch(last, now.monotonic_ns);
            if self.snapshots.as_ref().is_some_and(|snapshots| snapshots.taken_sequence() != before) {
                record.end_record(now.monotonic_ns);
            }
        }
        if now.monotonic_ns >= self.next_sweep_ns {
            self.next_sweep_ns = now.monotonic_ns + 1_000_000_000;
            self.outbox.drop_closed();
        }
        Ok(applied + moved)
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let record_ns = self.outbox.record.as_ref().and_then(OutputRecord::next_deadline_ns);
        let query_ns = self.outbox.queries.next_deadline_ns();
        record_ns.into_iter().chain(self.retries.deadline_ns()).chain(query_ns).min()
    }

    fn on_close(&mut self, _now: Now) -> Result<(), AgentError> {
        self.closing = true;
        Ok(())
    }

    fn is_drained(&self) -> bool {
        let is_written = self.snapshots.as_ref().is_none_or(SnapshotSchedule::is_finished);
        self.is_at_end() && is_written
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.counters.progress.end();
        self.outbox.flush();
    }
}

#[cfg(test)]
mod tests;
