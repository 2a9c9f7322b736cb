//! The detached sender: an agent that delivers on a thread of its own. A waiting frame's term field carries the
//! connection; the sender restores the term.

use gapless_agent::{Agent, AgentError, Now, Waker};
use gapless_log::{LogError, MemoryKind, RingReader, RingWriter, StreamIdentity, ring};
use gapless_stream::AgentRole;
use gapless_stream::egress::{CheckedPayload, Egress, SendResult};
use gapless_transport::ConnectionId;
use gapless_transport::mailbox::Mailbox;
use gapless_wire::control::SessionOpened;
use gapless_wire::{Frame, FrameHeader, FrameWriter, HEADER_LENGTH, Kind, aligned_length};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub struct SendQueue {
    writer: RingWriter,
    pushed: u64,
    popped: Arc<AtomicU64>,
    depth: u64,
    waker: Waker,
    dirty: bool,
    undelivered: Mailbox<UndeliveredMessage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UndeliveredMessage {
    pub connection: ConnectionId,
    pub message: DeferredSend,
}

pub struct ReplySender {
    reader: RingReader,
    popped: Arc<AtomicU64>,
    egress: Egress,
    undelivered: Mailbox<UndeliveredMessage>,
    frame: Vec<u8>,
    retries: RetryTimer,
}

/// No wake-up announces that a publisher has read its ring.
#[derive(Debug, Default)]
pub(crate) struct RetryTimer {
    interval_ns: u64,
    at_ns: Option<u64>,
}

/// Keeps pace with a publisher that reads.
const RETRY_INTERVAL_NS_MIN: u64 = 100_000;
/// A publisher that does not read costs little.
const RETRY_INTERVAL_NS_MAX: u64 = 10_000_000;

impl RetryTimer {
    #[inline]
    pub fn after_poll(&mut self, now_ns: u64, is_waiting: bool, has_moved: bool) {
        if !is_waiting {
            self.at_ns = None;
            return;
        }
        self.interval_ns = match self.at_ns.filter(|_| !has_moved) {
            Some(at_ns) if now_ns < at_ns => return,
            Some(_) => (2 * self.interval_ns).min(RETRY_INTERVAL_NS_MAX),
            None => RETRY_INTERVAL_NS_MIN,
        };
        self.at_ns = Some(now_ns + self.interval_ns);
    }

    pub const fn deadline_ns(&self) -> Option<u64> {
        self.at_ns
    }
}

/// The queue is sized for typical replies.
///
/// # Errors
/// There is no memory for the queue.
pub(crate) fn of_depth(egress: Egress, depth: usize, waker: Waker) -> Result<(SendQueue, ReplySender), LogError> {
    // At least the longest output: a ring takes messages of up to half its length.
    let queue_bytes = (depth * 4096).clamp(4 << 20, 1 << 26).next_power_of_two();
    detached(egress, depth, queue_bytes, waker)
}

/// Creates a queue of at most `depth` messages, and the agent that empties it.
///
/// # Errors
/// There is no memory for the queue.
pub fn detached(
    egress: Egress,
    depth: usize,
    queue_bytes: usize,
    waker: Waker,
) -> Result<(SendQueue, ReplySender), LogError> {
    let (writer, reader) = ring::create(&MemoryKind::Anonymous, queue_bytes, StreamIdentity::default())?;
    let popped = Arc::<AtomicU64>::default();
    let undelivered = Mailbox::new(depth);
    let (depth, back) = (depth as u64, undelivered.clone());
    let queue =
        SendQueue { writer, pushed: 0, popped: Arc::clone(&popped), depth, waker, dirty: false, undelivered: back };
    Ok((queue, ReplySender { reader, popped, egress, undelivered, frame: Vec::new(), retries: RetryTimer::default() }))
}

impl SendQueue {
    pub(crate) fn push(
        &mut self,
        connection: ConnectionId,
        header: &FrameHeader,
        payload: CheckedPayload<'_>,
    ) -> SendResult {
        // Pairs with the Release in ReplySender::poll.
        if self.pushed - self.popped.load(Ordering::Acquire) >= self.depth {
            return SendResult::RingFull;
        }
        let length = payload.bytes().len();
        let claim = match self.writer.claim(HEADER_LENGTH + length) {
            Ok(claim) => claim,
            Err(LogError::Full { .. }) => return SendResult::RingFull,
            Err(error) => {
                tracing::error!(%error, "a reply does not fit the send queue");
                return SendResult::Undeliverable;
            }
        };
        let mut frame = FrameWriter::new(claim);
        frame.payload_mut()[..length].copy_from_slice(payload.bytes());
        let header = FrameHeader { term: u64::from(connection.0), ..*header };
        let length = frame.finish_with_checksum(&header, length, payload.crc());
        self.writer.commit(length);
        self.pushed += 1;
        self.dirty = true;
        SendResult::Written
    }

    pub(crate) fn take_undelivered(&self) -> Option<UndeliveredMessage> {
        self.undelivered.pop()
    }

    pub(crate) fn flush(&mut self) {
        if std::mem::take(&mut self.dirty) {
            // The thread's waker checks by itself whether it sleeps.
            let _ = self.writer.publish();
            self.waker.wake();
        }
    }
}

impl Agent for ReplySender {
    fn name(&self) -> &str {
        AgentRole::Sender.name()
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        let moved = self.egress.refresh();
        let mut work = 0;
        while let Some(length) = self.reader.next_length()? {
            self.frame.resize(aligned_length(length), 0);
            self.reader.copy(&mut self.frame);
            let frame = Frame::parse(&self.frame)?;
            let (header, connection) = (frame.header(), ConnectionId(frame.term() as u32));
            let header = FrameHeader { term: 0, ..header };
            if self.egress.deliver(connection, &header, CheckedPayload::new(frame.payload())) == SendResult::RingFull {
                let kind = match (header.kind, SessionOpened::from_bytes(frame.payload())) {
                    (Kind::Notice, _) => DeferredSendKind::Notices,
                    (Kind::Answer, _) => {
                        DeferredSendKind::Answer(Box::new(DeferredAnswer { header, payload: frame.payload().to_vec() }))
                    }
                    (_, Some(opened)) if header.session_seq == 0 => {
                        DeferredSendKind::Opened { next_session_seq: opened.next_session_seq }
                    }
                    _ => DeferredSendKind::Reply(header.session_seq),
                };
                let back = UndeliveredMessage { connection, message: DeferredSend { session: header.session, kind } };
                if self.undelivered.push(back).is_err() {
                    break;
                }
            }
            self.reader.advance(length);
            work += 1;
        }
        self.reader.release();
        // Release: the ring's room is given back before the count says so.
        self.popped.store(self.popped.load(Ordering::Relaxed) + work as u64, Ordering::Release);
        self.egress.flush();
        self.retries.after_poll(now.monotonic_ns, self.egress.is_waiting_for_room(), moved > 0);
        Ok(work + moved)
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.retries.deadline_ns()
    }

    fn is_drained(&self) -> bool {
        self.reader.known_bytes() == 0
    }
}

/// The content is looked up again when there is room, except that of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeferredSend {
    pub session: u64,
    pub kind: DeferredSendKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeferredSendKind {
    Reply(u64),
    Notices,
    Opened { next_session_seq: u64 },
    Answer(Box<DeferredAnswer>),
}

/// Answer of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeferredAnswer {
    pub header: FrameHeader,
    pub payload: Vec<u8>,
}
