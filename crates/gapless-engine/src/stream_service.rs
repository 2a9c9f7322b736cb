//! [`StreamService`]: a service on an event stream of others. It publishes under numbers derived from the stream alone,
//! so a replay or a second instance adds no message twice.

use crate::dead_letters::{DeadLetter, DeadLetters};
use crate::fold::{Fold, Policy, Sink};
use crate::handler_guard::HandlerRefusal;
use crate::outputs::OUTPUT_LENGTH_MAX;
use crate::service::Service;
use crate::sessions::{SessionEntry, StoredReply};
use crate::snapshot_schedule::{SnapshotJournal, SnapshotRules, SnapshotSchedule};
use crate::{EngineError, snapshot};
use gapless_agent::Waker;
use gapless_client::node::{NodeEvent, NodeLink, NodeState, PublisherOptions, Start, StreamNode, StreamNodeOptions};
use gapless_client::polled::MessageType;
use gapless_client::stream_layout::StreamLayout;
use gapless_client::{ClientError, QueryError};
use gapless_schema::Encoding;
use gapless_stream::locked_directory::{DirectoryOwner, LockedDirectory};
use gapless_stream::messages::QueryMessage;
use gapless_transport::ConnectionId;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Configuration of a service on an event stream of others.
#[derive(Clone, Debug)]
pub struct StreamServiceOptions {
    /// Identity in the stream, shared by the service's instances and kept over restarts.
    pub token: u128,
    /// Directory of this instance for snapshots and dead letters. Without one, each start replays the stream from its
    /// first frame.
    pub directory: Option<PathBuf>,
    /// `None`: no snapshots.
    pub snapshot_interval_frames: Option<u64>,
    pub snapshot_on_stop: bool,
    pub policy: Policy,
    /// Memory for published messages not known to be in the stream, bytes.
    pub kept_bytes_max: usize,
}

impl StreamServiceOptions {
    #[must_use]
    pub fn new(token: u128) -> Self {
        Self {
            token,
            directory: None,
            snapshot_interval_frames: Some(10_000_000),
            snapshot_on_stop: true,
            policy: Policy::default(),
            kept_bytes_max: 64 << 20,
        }
    }
}

/// A service on an event stream that belongs to others.
///
/// It has no thread: its owner polls it.
pub struct StreamService<S: Service, L> {
    fold: Fold,
    service: PhantomData<fn() -> S>,
    node: StreamNode<L>,
    outputs: StreamOutputs,
    options: StreamServiceOptions,
    snapshots: Option<SnapshotSchedule>,
    snapshot_sequence: u64,
    waker: Waker,
    /// Dropped after the snapshots' thread has ended.
    _directory: Option<LockedDirectory>,
}

struct StreamOutputs {
    buffer: Vec<u8>,
    queue: VecDeque<StreamOutput>,
    dead_letters: DeadLetters,
}

enum StreamOutput {
    Message { message: MessageType, payload: Range<usize> },
    Timer { timer: u64, deadline_ns: u64 },
}

impl Sink for StreamOutputs {
    fn reply(&mut self, _: &SessionEntry, _: &StoredReply) {}
    fn opened(&mut self, _: &mut SessionEntry) {}
    fn notice(&mut self, _: &SessionEntry) {}

    fn set_timer(&mut self, timer: u64, deadline_ns: u64) {
        // 0 would cancel the timer; 1 is equally due at once.
        self.queue.push_back(StreamOutput::Timer { timer, deadline_ns: deadline_ns.max(1) });
    }

    fn cancel_timer(&mut self, timer: u64, _: u64) {
        // The sequencer replaces a timer with the same identifier: no cancel is needed.
        let is_replaced =
            matches!(self.queue.back(), Some(StreamOutput::Timer { timer: set, deadline_ns: 1.. }) if *set == timer);
        if !is_replaced {
            self.queue.push_back(StreamOutput::Timer { timer, deadline_ns: 0 });
        }
    }

    fn dead_letter(&mut self, letter: DeadLetter) {
        self.dead_letters.record(&letter);
    }

    fn publish(&mut self, schema: u32, encoding: Encoding, payload: &[u8]) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(payload);
        let message = MessageType { schema, encoding };
        self.queue.push_back(StreamOutput::Message { message, payload: start..self.buffer.len() });
    }
}

/// The stream's owner syncs it. If a power failure leaves a snapshot ahead of it, connecting fails.
struct ForeignJournal;

impl SnapshotJournal for ForeignJournal {
    fn sync(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn snapshot_written(&mut self, _: u64) {}
}

/// Longest wait of a stop for its messages to be in the stream.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait of a stop for its snapshot to be written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

impl<S: Service, L: NodeLink> StreamService<S, L> {
    /// Connects by `link` at the first poll. Continues after the newest snapshot, or starts at the first frame that the
    /// stream holds.
    ///
    /// # Errors
    /// The directory cannot be read, is another instance's or another program's, or its snapshot cannot be used.
    pub fn new(service: S, link: L, options: StreamServiceOptions) -> Result<Self, EngineError> {
        let mut fold = Fold::new(service, options.policy.clone()).on_event_stream();
        let publisher = PublisherOptions {
            token: options.token,
            shared: true,
            kept_bytes_max: options.kept_bytes_max,
            ..PublisherOptions::default()
        };
        let mut node_options = StreamNodeOptions { publisher: Some(publisher), ..StreamNodeOptions::default() };
        let mut dead_letters = DeadLetters::counting();
        let mut snapshot_sequence = 0;
        let mut locked = None;
        if let Some(directory) = &options.directory {
            locked.insert(LockedDirectory::lock(StreamLayout::new(directory))?).check_owner(DirectoryOwner::Node)?;
            dead_letters = DeadLetters::open(directory, u64::MAX)?;
            if let Some((sequence, path)) = snapshot::list(&directory.join("snapshots"))?.pop() {
                let identity = snapshot::identity_of(&path)?;
                snapshot::restore(&mut fold, &path, identity)?;
                node_options.identity = identity;
                node_options.start = Start::Sequence(sequence + 1);
                snapshot_sequence = sequence;
            }
        }
        // The stream has no marks of this service; its snapshots keep the rules.
        if let Some(rules) = fold.fault_rules_to_write()? {
            fold.fault_rules = Some(rules);
        }
        locked.as_ref().map_or(Ok(()), LockedDirectory::note_owner)?;
        let mut node = StreamNode::new(link, node_options);
        node.set_next_derived(fold.next_published);
        let waker = Waker::new().map_err(EngineError::system("making a waker"))?;
        let outputs = StreamOutputs { buffer: Vec::new(), queue: VecDeque::new(), dead_letters };
        Ok(Self {
            fold,
            service: PhantomData,
            node,
            outputs,
            options,
            snapshots: None,
            snapshot_sequence,
            waker,
            _directory: locked,
        })
    }

    #[must_use]
    pub fn service(&self) -> &S {
        self.fold.service()
    }

    #[must_use]
    pub const fn node(&self) -> &StreamNode<L> {
        &self.node
    }

    #[must_use]
    pub const fn last_sequence(&self) -> u64 {
        self.fold.last_sequence()
    }

    /// Returns 0 without a snapshot.
    #[must_use]
    pub const fn snapshot_sequence(&self) -> u64 {
        self.snapshot_sequence
    }

    /// Counts messages refused by handlers or lost to their panics, and timers refused by the stream.
    #[must_use]
    pub const fn dead_letter_count(&self) -> u64 {
        self.outputs.dead_letters.count()
    }

    /// True once everything that the stream had at the connect is applied.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.node.state() == NodeState::Live
    }

    /// Applies at most `limit` frames and publishes the outputs; connects and reconnects by itself. Returns the number
    /// of applied frames.
    ///
    /// # Errors
    /// Cases that the policy makes errors, another stream, damage, or frames that the stream no longer holds.
    pub fn poll(&mut self, limit: usize) -> Result<usize, EngineError> {
        self.outputs.dead_letters.write_unwritten();
        self.node.turn(|event| {
            if let NodeEvent::Throttled { until_ns } = event {
                tracing::warn!(until_ns, "the sequencer takes less of this service than it publishes");
            }
        })?;
        let mut applied = 0;
        while applied < limit || self.fold.is_mid_message() {
            // Also checked before reading starts: messages that the stream already has need not be kept.
            if !self.node.has_room_for_derived()? {
                break;
            }
            if self.fold.last_sequence == 0 && self.node.position() > 1 {
                self.begin_at_first_held()?;
            }
            let Some((frame, own)) = self.node.next_frame()? else { break };
            self.fold.apply_event_stream_frame(&frame, own, &mut self.outputs)?;
            applied += 1;
            if !self.outputs.queue.is_empty() {
                self.publish()?;
            }
        }
        self.node.flush()?;
        // A snapshot may wait for messages that have come back.
        if applied > 0 || self.snapshots.is_some() {
            self.snapshot(false)?;
        }
        Ok(applied)
    }

    #[cold]
    fn begin_at_first_held(&self) -> Result<(), EngineError> {
        let first = self.node.position();
        let reason = format!(
            "the stream holds frames from {first} on, and this service has no snapshot that covers what was before"
        );
        Err(ClientError::Lapped { sequence: 1, reason }.into())
    }

    fn publish(&mut self) -> Result<(), EngineError> {
        for output in self.outputs.queue.drain(..) {
            match output {
                StreamOutput::Message { message, payload } => {
                    self.node.publish_derived(message, &self.outputs.buffer[payload])?;
                }
                StreamOutput::Timer { timer, deadline_ns } => self.node.set_timer_derived(timer, deadline_ns)?,
            }
        }
        self.outputs.buffer.clear();
        Ok(())
    }

    fn snapshot(&mut self, is_last: bool) -> Result<(), EngineError> {
        let (Some(directory), Some(identity)) = (&self.options.directory, self.node.identity()) else { return Ok(()) };
        if self.snapshots.is_none() {
            let rules = SnapshotRules {
                interval_frames: self.options.snapshot_interval_frames,
                on_stop: self.options.snapshot_on_stop,
            };
            let (directory, at) = (directory.join("snapshots"), self.snapshot_sequence);
            let (schedule, _) =
                SnapshotSchedule::start(directory, identity, at, rules, ForeignJournal, self.waker.clone())?;
            self.snapshots = Some(schedule);
        }
        self.fold.next_published = self.node.next_session_seq().unwrap_or(self.fold.next_published);
        match &mut self.snapshots {
            Some(snapshots) => {
                let acknowledged = self.node.acknowledged_session_seq();
                snapshots.after_batch_acknowledged(&mut self.fold, is_last, acknowledged)
            }
            None => Ok(()),
        }
    }

    /// Sleeps until there is input, or for `timeout`.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), EngineError> {
        Ok(self.node.wait(timeout)?)
    }

    /// Appends the answer to a query of the state after the last applied frame. `payload` is as
    /// `gapless_message::contract::encode_request` writes it, the answer as `decode_answer` of that module reads it.
    ///
    /// # Errors
    /// [`QueryError::Unhandled`] without a handler for these types; [`QueryError::Failed`] after a panic of the handler.
    pub fn query(&self, message: MessageType, payload: &[u8], answer: &mut Vec<u8>) -> Result<(), QueryError> {
        let query = QueryMessage {
            connection: ConnectionId(0),
            publisher: Weak::new(),
            number: 0,
            after: 0,
            wait_ns_max: 0,
            schema: message.schema,
            encoding: message.encoding,
            payload: payload.to_vec(),
        };
        match self.fold.query(&query, answer) {
            Ok(()) | Err(HandlerRefusal::Typed(_)) => Ok(()),
            Err(HandlerRefusal::Unhandled(reason) | HandlerRefusal::Undecodable(reason)) => {
                Err(QueryError::Unhandled { reason })
            }
            Err(HandlerRefusal::Inadmissible(reason) | HandlerRefusal::Panicked(reason)) => {
                Err(QueryError::Failed { reason })
            }
            Err(HandlerRefusal::Rejected(reject)) => Err(QueryError::Failed { reason: reject.text }),
            Err(HandlerRefusal::TooLong(length)) => Err(QueryError::Failed {
                reason: format!("its answer has {length} bytes; {OUTPUT_LENGTH_MAX} are the most"),
            }),
        }
    }

    /// Polls until `stopped` is set, sleeping without input, then stops.
    ///
    /// # Errors
    /// As for [`StreamService::poll`].
    pub fn run(mut self, stopped: &AtomicBool) -> Result<(), EngineError> {
        let mut empty = 0u32;
        // Pairs with the Release store of the stopping thread.
        while !stopped.load(Ordering::Acquire) {
            if self.poll(256)? > 0 {
                empty = 0;
                continue;
            }
            empty = empty.saturating_add(1);
            match empty {
                0..2_000 => std::hint::spin_loop(),
                2_000..2_200 => std::thread::yield_now(),
                _ => self.wait(Duration::from_millis(20))?,
            }
        }
        self.stop()
    }

    /// Stops between two messages. Waits at most 2 s for its messages to be in the stream, and continues to apply
    /// frames meanwhile; then writes a final snapshot, if configured. Without them in the stream there is no final
    /// snapshot: the next start makes them again.
    ///
    /// # Errors
    /// The snapshot cannot be written; or as for [`StreamService::poll`].
    pub fn stop(mut self) -> Result<(), EngineError> {
        let begun = Instant::now();
        let published = self.node.next_session_seq().map_or(0, |next| next - 1);
        loop {
            if self.fold.last_sequence() > 0 {
                self.snapshot(true)?;
            }
            let (is_finished, is_writing) = self
                .snapshots
                .as_ref()
                .map_or((true, false), |snapshots| (snapshots.is_finished(), snapshots.is_writing()));
            if is_finished && self.node.acknowledged_session_seq() >= published {
                return self.snapshots.as_ref().map_or(Ok(()), SnapshotSchedule::check);
            }
            if begun.elapsed() > if is_writing { WRITE_TIMEOUT } else { SETTLE_TIMEOUT } {
                let in_flight = self.node.in_flight();
                tracing::warn!(in_flight, "the service stops without a final snapshot: it has messages in flight");
                return Ok(());
            }
            if self.poll(256)? == 0 {
                self.wait(Duration::from_millis(1))?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test says where it failed")]

    use super::*;
    use crate::OnPanic;
    use crate::fold::Policy;
    use crate::reject::Reject;
    use crate::service::Handlers;
    use gapless_client::node::{SharedMemoryLink, SharedMemoryOptions};
    use gapless_log::StreamIdentity;
    use std::path::Path;

    struct Idle;

    impl Service for Idle {
        fn handlers(_: &mut Handlers<Self>) {}

        fn on_timer(&mut self, _: u64, _: &mut crate::Context<'_>) -> Result<(), Reject> {
            Ok(())
        }

        fn snapshot(&self, _: &mut Vec<u8>) {}

        fn restore(&mut self, _: &[u8]) -> Result<(), String> {
            Ok(())
        }
    }

    fn run(place: &Path, on_panic: OnPanic, sequence: u64) -> Result<(), EngineError> {
        let mut options = StreamServiceOptions::new(1);
        options.directory = Some(place.to_owned());
        options.policy = Policy { on_panic, ..Policy::default() };
        let link = SharedMemoryLink::new(&place.join("stream"), SharedMemoryOptions::default());
        let mut service = StreamService::new(Idle, link, options)?;
        service.fold.last_sequence = sequence;
        let identity = StreamIdentity { stream_id: 7, incarnation: 1 };
        snapshot::write(&place.join("snapshots"), sequence, &snapshot::encode(&service.fold, identity))
    }

    #[test]
    fn snapshots_keep_fault_rules() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        run(place, OnPanic::Stop, 1).unwrap();
        run(place, OnPanic::DeadLetter, 2).unwrap();
        run(place, OnPanic::DeadLetter, 3).unwrap();
        let said = run(place, OnPanic::Stop, 4).unwrap_err().to_string();
        assert!(said.contains("for its whole life that a panic is a dead letter"), "{said}");
    }
}
