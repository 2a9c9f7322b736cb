//! Tests of `Executor`: batch sizes, replies and their retries, counters, the record of outputs, and the position of a
//! clean stop.

mod queries;

use super::*;
use crate::context::Context;
use crate::fold::Policy;
use crate::output_record::{self, RecordedOutputs};
use crate::query::QueryContext;
use crate::reject::Reject;
use crate::service::{Handlers, Service};
use crate::snapshot;
use crate::snapshot_schedule::{SnapshotJournal, SnapshotRules};
use gapless_agent::Waker;
use gapless_log::{MemoryKind, Releaser, RingReader, Scope, StreamIdentity, WindowOptions, WindowWriter, ring};
use gapless_schema::Encoding;
use gapless_stream::messages::EgressMessage;
use gapless_transport::ConnectionId;
use gapless_wire::control::SessionOpen;
use gapless_wire::fields::u64_at;
use gapless_wire::{Fragment, FrameHeader, FrameWriter, HEADER_LENGTH, Kind};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

const IDENTITY: StreamIdentity = StreamIdentity { stream_id: 5, incarnation: 1 };
const SCHEMA: u32 = 3 << 16 | 7;
const SESSION: u64 = 1;
const PUBLISHER: ConnectionId = ConnectionId(4);
const FRAMES_PER_POLL_MAX: usize = 16;
const SECOND_NS: u64 = 1_000_000_000;
/// Four frames with a [`LONG_REPLY`].
const RING_BYTES: usize = 4096;
const LONG_REPLY: usize = RING_BYTES / 4 - HEADER_LENGTH;

struct Keeper(Vec<u8>);

impl Keeper {
    fn take(&mut self, payload: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
        let (what, rest) = payload.split_first().ok_or("empty")?;
        self.0.push(*what);
        match what {
            b'l' => context.reply_bytes(5, Encoding::Opaque, LONG_REPLY, |_| Ok::<_, String>(LONG_REPLY))?,
            b't' => context.set_numbered_timer(u64::from(rest[0]), u64::from(rest[1])),
            _ => {}
        }
        Ok(())
    }
}

/// Answered by as many bytes.
#[derive(serde::Serialize, serde::Deserialize, gapless_message::Message)]
#[message(reply = Vec<u8>)]
struct AskBytes(u32);

impl Service for Keeper {
    fn handlers(handlers: &mut Handlers<Self>) {
        handlers.on_bytes(SCHEMA, Self::take);
        handlers.query(|_: &Self, AskBytes(length), _: &QueryContext| {
            Ok::<_, gapless_message::NoRefusal>(vec![7; length as usize])
        });
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        assert!(!self.0.contains(&b'!'), "a fault of the service");
        state.extend_from_slice(&self.0);
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = state.to_vec();
        Ok(())
    }
}

struct Synced;

impl SnapshotJournal for Synced {
    fn sync(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn snapshot_written(&mut self, _: u64) {}
}

struct TestExecutor {
    writer: WindowWriter,
    releaser: Releaser,
    executor: Executor,
    from_sequencer: Mailbox<ResponderMessage>,
    to_sequencer: Mailbox<SequencerRequest>,
    counters: Counters,
    replies: RingReader,
    wake: Arc<OwnedFd>,
    now_ns: u64,
    session_seq: u64,
}

impl TestExecutor {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ExecutorLinks)) -> Self {
        Self::of(Fold::new(Keeper(Vec::new()), Policy::default()), change)
    }

    /// Session 1 is open and its publisher attached.
    fn of(fold: Fold, change: impl FnOnce(&mut ExecutorLinks)) -> Self {
        let options = WindowOptions { identity: IDENTITY, ..WindowOptions::default() };
        let (mut writer, releaser) = options.create(1).unwrap();
        let counters = Counters::in_memory(32).unwrap();
        let (from_sequencer, to_sequencer, publishers) = (Mailbox::new(8), Mailbox::new(8), Mailbox::new(8));
        let mut links = ExecutorLinks {
            cursor: writer.gating_cursor(Scope::Released),
            window: writer.window(),
            stop_at: StopPosition::Released,
            delivery: ReplyDelivery::Direct(Egress::new(publishers.clone(), RING_BYTES / 2)),
            sequencer: to_sequencer.clone(),
            sequencer_waker: Waker::new().unwrap(),
            from_sequencer: from_sequencer.clone(),
            dead_letters: DeadLetters::counting(),
            snapshots: None,
            state_hasher: None,
            record: None,
            frames_per_poll_max: FRAMES_PER_POLL_MAX,
            counters: ExecutorCounters::add_to(&counters, &RecoverySummary::default()).unwrap(),
        };
        change(&mut links);
        let (writing_end, replies) = ring::create(&MemoryKind::Anonymous, RING_BYTES, IDENTITY).unwrap();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let opened = EgressMessage::Opened { connection: PUBLISHER, writer: writing_end, wake: Arc::clone(&wake) };
        assert!(publishers.push(opened).is_ok());
        let attach = ResponderMessage::Attach { session: SESSION, token: 7, connection: PUBLISHER };
        from_sequencer.push(attach).unwrap();
        let mut world = Self {
            writer,
            releaser,
            executor: Executor::new(fold, links),
            from_sequencer,
            to_sequencer,
            counters,
            replies,
            wake,
            now_ns: SECOND_NS,
            session_seq: 0,
        };
        let open = SessionOpen { token: 7, window_messages: 8, shared: false, notices_seen: 0 };
        world.append(FrameHeader { kind: Kind::SessionOpen, ..FrameHeader::default() }, &open.to_bytes());
        world.release();
        assert_eq!((world.poll(0), world.answered(9)), (1, vec![0]));
        world
    }

    fn append(&mut self, header: FrameHeader, payload: &[u8]) {
        let sequence = self.writer.last_sequence() + 1;
        let mut frame = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
        let mut writing = FrameWriter::new(&mut frame);
        writing.payload_mut()[..payload.len()].copy_from_slice(payload);
        writing.finish(&FrameHeader { sequence, timestamp_ns: sequence, session: SESSION, ..header }, payload.len());
        self.writer.append(&frame, sequence).unwrap();
        self.writer.publish();
    }

    fn append_command(&mut self, schema: u32, fragment: Fragment, payload: &[u8]) {
        self.session_seq += 1;
        let session_seq = self.session_seq;
        let header = FrameHeader { kind: Kind::Command, session_seq, schema, fragment, ..FrameHeader::default() };
        self.append(header, payload);
    }

    fn release(&mut self) {
        let window = self.writer.window();
        self.releaser.release(window.appended(), window.appended_sequence());
    }

    fn send(&mut self, count: usize, payload: &[u8]) {
        for _ in 0..count {
            self.append_command(SCHEMA, Fragment::WHOLE, payload);
        }
        self.release();
    }

    fn poll(&mut self, after_ns: u64) -> usize {
        self.try_poll(after_ns).unwrap()
    }

    fn try_poll(&mut self, after_ns: u64) -> Result<usize, AgentError> {
        self.now_ns += after_ns;
        self.executor.poll(Now { monotonic_ns: self.now_ns, epoch_ns: self.now_ns })
    }

    fn handled(&mut self, after_ns: u64) -> usize {
        let frames = self.poll(after_ns);
        assert_eq!(self.answered(frames + 1).len(), frames);
        frames
    }

    fn close(&mut self) {
        self.executor.on_close(Now { monotonic_ns: self.now_ns, epoch_ns: self.now_ns }).unwrap();
    }

    fn answered(&mut self, count_max: usize) -> Vec<u64> {
        let mut numbers = Vec::new();
        while numbers.len() < count_max
            && let Some(length) = self.replies.next_length().unwrap()
        {
            let mut bytes = vec![0; aligned_length(length)];
            self.replies.copy(&mut bytes);
            let frame = Frame::parse(&bytes).unwrap();
            assert_eq!((frame.kind(), frame.session()), (Kind::Reply, SESSION));
            numbers.push(frame.session_seq());
            self.replies.advance(length);
        }
        self.replies.release();
        numbers
    }

    fn count(&self, label: &str) -> u64 {
        let values = self.counters.values();
        values.iter().find(|(found, _)| found.strip_prefix("service.") == Some(label)).unwrap().1
    }

    fn waits_ns(&self) -> Option<u64> {
        self.executor.next_deadline_ns().map(|deadline_ns| deadline_ns - self.now_ns)
    }

    fn timers_requested(&self) -> Vec<u64> {
        let requests = std::iter::from_fn(|| self.to_sequencer.pop());
        let timers = requests.map(|request| match request {
            SequencerRequest::SetTimer { timer, deadline_ns } if deadline_ns == 100 + timer => timer,
            other => panic!("{other:?}"),
        });
        timers.collect()
    }
}

fn snapshots_in(directory: &Path, rules: SnapshotRules) -> Option<SnapshotSchedule> {
    let waker = Waker::new().unwrap();
    Some(SnapshotSchedule::by_hand(directory.to_owned(), IDENTITY, 0, rules, Synced, waker).0)
}

fn snapshots_of(directory: &Path) -> Vec<u64> {
    snapshot::list(directory).unwrap().into_iter().map(|(sequence, _)| sequence).collect()
}

#[test]
fn frames_run_once_in_order() {
    let mut world = TestExecutor::new();
    assert_eq!((world.executor.name(), world.count("last_sequence")), ("service", 1));
    world.append_command(SCHEMA, Fragment::WHOLE, b"a");
    for _ in 0..3 {
        assert_eq!((world.poll(0), world.answered(9)), (0, vec![]), "an unreleased frame may still be truncated");
    }
    world.send(1, b"b");
    assert_eq!((world.poll(0), world.answered(9)), (2, vec![1, 2]));
    assert_eq!((world.poll(0), world.answered(9)), (0, vec![]));
    assert_eq!(world.executor.fold.state(), b"ab");
    assert_eq!((world.count("last_sequence"), world.count("handling_sequence")), (3, 0));
    world.append_command(SCHEMA + 1, Fragment::WHOLE, b"c");
    world.release();
    assert_eq!((world.count("dead_letters"), world.poll(0), world.answered(9)), (0, 1, vec![3]));
    assert_eq!((world.count("dead_letters"), world.count("last_sequence")), (1, 4));
    assert_eq!((world.executor.counters.views().0.get(), world.executor.counters.views().1.get()), (4, 1));
}

#[test]
fn counters_start_at_recovery() {
    let counters = Counters::in_memory(32).unwrap();
    let recovered = RecoverySummary { last_sequence: 7, interrupted_sequence: 6, ..RecoverySummary::default() };
    let views = ExecutorCounters::add_to(&counters, &recovered).unwrap().views();
    assert_eq!((views.0.get(), views.1.get()), (7, 0));
    assert!(counters.values().contains(&(INTERRUPTED.to_owned(), 6)));
}

#[test]
fn full_polls_double_until_too_slow() {
    let mut world = TestExecutor::new();
    world.send(100, b"_");
    // The first poll, of the session open, was full.
    let took_ns = [0, 0, POLL_NS_MAX, 1, 0, POLL_NS_MAX + 1];
    assert_eq!(took_ns.map(|took_ns| world.handled(took_ns)), [2, 4, 8, 16, 16, 8]);
    assert_eq!([2 * POLL_NS_MAX; 4].map(|took_ns| world.handled(took_ns)), [4, 2, 1, 1]);
    assert_eq!([0; 5].map(|took_ns| world.handled(took_ns)), [2, 4, 8, 16, 8]);
    world.send(40, b"_");
    assert_eq!([SECOND_NS, 0, 0].map(|took_ns| world.handled(took_ns)), [16, 16, 8]);
}

#[test]
fn fragments_are_handled_in_one_poll() {
    let mut world = TestExecutor::new();
    for index in 0..3 {
        world.append_command(SCHEMA, Fragment { index, count: 3 }, b"m");
    }
    world.send(2, b"_");
    assert_eq!((world.poll(2 * POLL_NS_MAX), world.answered(9)), (3, vec![3]));
}

#[test]
fn corrupt_frame_stops_after_replies() {
    let mut world = TestExecutor::new();
    world.send(1, b"a");
    let header = FrameHeader { sequence: 3, ..FrameHeader::default() };
    let mut frame = vec![0; HEADER_LENGTH];
    FrameWriter::new(&mut frame).finish(&header, 0);
    frame[4] ^= 0xff;
    world.writer.append(&frame, 3).unwrap();
    world.writer.publish();
    world.release();
    let error = world.try_poll(0).unwrap_err();
    match error.downcast_ref() {
        Some(EngineError::Corrupt { sequence: 3, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!((world.answered(9), world.count("last_sequence")), (vec![1], 2));
}

#[test]
fn reopen_waits_for_the_release() {
    let mut world = TestExecutor::new();
    world.append_command(SCHEMA, Fragment::WHOLE, b"a");
    let (session, token, connection) = (SESSION, 7, PUBLISHER);
    let (next_session_seq, notices_seen, last_sequence) = (2, 0, 2);
    let reopen = ResponderMessage::Reopen { session, token, next_session_seq, notices_seen, last_sequence, connection };
    world.from_sequencer.push(reopen).unwrap();
    assert_eq!((world.poll(0), world.answered(9)), (0, vec![]));
    world.release();
    assert_eq!((world.poll(0), world.answered(9)), (1, vec![0, 1]));
    assert_eq!((world.poll(0), world.answered(9)), (0, vec![]), "once");
}

#[test]
fn new_leader_gets_all_timers() {
    let mut world = TestExecutor::new();
    world.send(1, &[b't', 1, 101]);
    assert_eq!((world.poll(0), world.timers_requested()), (1, vec![1]));
    world.from_sequencer.push(ResponderMessage::Leads { last_sequence: 3 }).unwrap();
    assert_eq!((world.poll(0), world.timers_requested()), (0, vec![]));
    world.send(1, &[b't', 2, 102]);
    assert_eq!((world.poll(0), world.timers_requested()), (1, vec![1, 2]));
    world.send(1, &[b't', 3, 103]);
    assert_eq!((world.poll(0), world.timers_requested()), (1, vec![3]));
}

#[test]
fn deferred_replies_are_retried() {
    let mut world = TestExecutor::new();
    world.send(8, b"l");
    while world.poll(0) > 0 {}
    assert_eq!((world.count("messages_waiting"), world.count("last_sequence")), (4, 9));
    assert_eq!(world.waits_ns(), Some(100_000));
    assert_eq!((world.poll(100_000), world.waits_ns()), (0, Some(200_000)), "the publisher does not read");
    assert_eq!((world.poll(200_000), world.waits_ns()), (0, Some(400_000)));
    assert_eq!(world.answered(2), [1, 2]);
    assert_eq!((world.poll(400_000), world.waits_ns()), (2, Some(100_000)));
    assert_eq!(world.count("messages_waiting"), 2);
    world.send(1, b"_");
    assert_eq!(world.answered(1), [3]);
    assert_eq!((world.poll(100_000), world.count("messages_waiting")), (2, 2), "one frame, and one deferred reply");
    assert_eq!(world.answered(9), [4, 5, 6, 7]);
    assert_eq!((world.poll(100_000), world.waits_ns()), (2, None));
    assert_eq!((world.answered(9), world.count("messages_waiting")), (vec![8, 9], 0));
}

#[test]
fn closed_publisher_is_dropped() {
    let mut world = TestExecutor::new();
    let (_, other) = ring::create(&MemoryKind::Anonymous, RING_BYTES, IDENTITY).unwrap();
    drop(std::mem::replace(&mut world.replies, other));
    world.poll(SECOND_NS - 1);
    assert_eq!(Arc::strong_count(&world.wake), 2, "the last check was less than a second ago");
    world.poll(1);
    assert_eq!(Arc::strong_count(&world.wake), 1);
}

#[test]
fn clean_stop_drains_first() {
    for (stop_at, is_drained) in [(StopPosition::Released, true), (StopPosition::Appended, false)] {
        let mut world = TestExecutor::with(|links| links.stop_at = stop_at);
        assert!(world.executor.is_drained());
        world.append_command(SCHEMA, Fragment::WHOLE, b"a");
        world.close();
        world.poll(0);
        assert_eq!(world.executor.is_drained(), is_drained, "{stop_at:?}");
        world.release();
        assert!(!world.executor.is_drained());
        world.poll(0);
        assert!(world.executor.is_drained());
    }
}

#[test]
fn stop_awaits_last_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let rules = SnapshotRules { interval_frames: None, on_stop: true };
    let mut world = TestExecutor::with(|links| links.snapshots = snapshots_in(directory.path(), rules));
    world.send(1, b"a");
    for _ in 0..3 {
        world.poll(0);
        assert!(!world.executor.is_drained(), "there is no snapshot");
    }
    assert!(snapshots_of(directory.path()).is_empty());
    world.send(20, b"b");
    world.close();
    for frames in [2, 4, 8, 6] {
        assert_eq!((world.executor.is_drained(), world.poll(0)), (false, frames));
        assert!(snapshots_of(directory.path()).is_empty());
    }
    assert!(!world.executor.is_drained(), "the snapshot is taken but not written");
    world.poll(0);
    assert_eq!((snapshots_of(directory.path()), world.executor.is_drained()), (vec![22], true));
}

#[test]
fn idle_or_snapshot_ends_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let records = || -> Vec<(u64, u64)> {
        let bytes = std::fs::read(path.join(output_record::FILE_NAME)).unwrap();
        bytes[64..].chunks(output_record::RECORD_LENGTH).map(|record| (u64_at(record, 0), u64_at(record, 8))).collect()
    };
    let rules = SnapshotRules { interval_frames: Some(4), on_stop: false };
    let mut world = TestExecutor::with(|links| {
        let fold = Fold::new(Keeper(Vec::new()), Policy::default());
        let nothing = RecordedOutputs::nothing(path, IDENTITY);
        links.record = Some(nothing.resume_after(&fold, path).unwrap());
        links.snapshots = snapshots_in(path, rules);
    });
    assert_eq!((world.waits_ns(), records()), (None, vec![(1, 1)]));
    world.send(1, b"a");
    world.poll(0);
    let idle_ns = world.waits_ns().unwrap();
    assert_eq!((world.poll(idle_ns - 1), records()), (0, vec![(1, 1)]));
    assert_eq!((world.poll(1), records(), world.waits_ns()), (0, vec![(1, 2)], None));
    world.send(2, b"a");
    assert_eq!((world.poll(0), records(), world.waits_ns()), (2, vec![(1, 4)], None));
    assert_eq!((world.poll(0), snapshots_of(path)), (0, vec![4]));
    world.send(1, b"a");
    assert_eq!((world.poll(0), records()), (1, vec![(1, 4)]));
    drop(world);
    assert_eq!(records(), [(1, 4), (5, 5)]);
}

#[test]
fn replies_before_a_panic_are_sent() {
    let mut world = TestExecutor::with(|links| links.state_hasher = StateHasher::new(3, IDENTITY, Mailbox::new(8)));
    world.send(1, b"a");
    world.send(1, b"!");
    let outcome = catch_unwind(AssertUnwindSafe(|| world.try_poll(0).map_err(|error| error.to_string())));
    assert!(outcome.is_err());
    assert_eq!(
        (world.answered(9), world.count("handling_sequence")),
        (vec![], 3),
        "the second command was in progress"
    );
    let TestExecutor { executor, mut replies, .. } = world;
    drop(executor);
    assert!(replies.next_length().unwrap().is_some());
}
