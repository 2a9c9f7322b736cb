//! [`Fragments`]: unfinished messages, at most one for each session, in bounded memory: a message enters the stream
//! whole. Without memory, new messages wait in order of arrival; unfinished ones without progress are evicted, the
//! longest idle first. Their publishers get a gap answer and resend.

use crate::sequencer::{Decision, NOT_A_PUBLISHERS_FLAG, decide_by_number};
use gapless_transport::link::ConnectionId;
use gapless_wire::descriptor::SEQUENCER_FLAGS;
use gapless_wire::{Fragment, Frame, FrameHeader, HEADER_LENGTH, Kind, aligned_length};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::time::Duration;

struct PartialMessage {
    connection: ConnectionId,
    begin: FrameHeader,
    /// Padded, back to back.
    bytes: Vec<u8>,
    frames: Vec<Range<usize>>,
    length_max: usize,
    reserved_bytes: usize,
    begun_ns: u64,
    progress_ns: u64,
}

struct MemoryWaiter {
    connection: ConnectionId,
    session: u64,
    asked_ns: u64,
    next_check_ns: u64,
}

/// Idle time after which an unfinished message is evicted for others, ns. A waiting publisher that does not ask again
/// for this long loses its turn.
const IDLE_NS_MAX: u64 = 2_000_000_000;
/// An unfinished message below this average rate is evicted, too.
const BYTES_PER_S_MIN: u64 = 64 << 10;
const CHECK_INTERVAL_NS: u64 = 10_000_000;
/// Beyond it every repeat is answered.
const POSTPONED_MAX: usize = 1024;
const MESSAGE_OVERHEAD: usize = 256;
const PART_OVERHEAD: usize = size_of::<Range<usize>>();

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CollectResult {
    Kept,
    Complete,
    NoMemory,
    /// No memory, and the part cannot stay in its ring: it and later parts are dropped without an answer, until
    /// [`Fragments::recalled`] reports the message.
    Postponed,
    Answer(Decision),
}

/// A message to be resent from its first part. Later parts are dropped without an answer, because each answer would
/// cause a full resend.
struct PostponedMessage {
    connection: ConnectionId,
    needed_bytes: usize,
    /// A second copy of a frame up to here is the publisher's query for missing frames.
    dropped_through: u64,
    since_ns: u64,
    next_answer_ns: u64,
    /// The publisher was told that there is room.
    is_recalled: bool,
}

pub(crate) struct Fragments {
    partial: FxHashMap<u64, PartialMessage>,
    reserved_bytes: usize,
    /// A single message is always admitted.
    bytes_max: usize,
    message_bytes_max: usize,
    unfinished: FxHashMap<ConnectionId, usize>,
    waiting: Option<MemoryWaiter>,
    postponed: FxHashMap<u64, PostponedMessage>,
    next_recall_ns: u64,
    evicted: u64,
}

impl Fragments {
    pub fn new(bytes_max: usize, message_bytes_max: usize) -> Self {
        Self {
            partial: FxHashMap::default(),
            reserved_bytes: 0,
            bytes_max,
            message_bytes_max,
            unfinished: FxHashMap::default(),
            waiting: None,
            postponed: FxHashMap::default(),
            next_recall_ns: 0,
            evicted: 0,
        }
    }

    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    pub fn has(&self, session: u64) -> bool {
        self.partial.contains_key(&session)
    }

    /// Adds a part to a session that expects `expected` next. `frame` must be verified and come from `connection`;
    /// `padded` is the same with its padding.
    pub fn add(
        &mut self,
        connection: ConnectionId,
        frame: &Frame<'_>,
        padded: &[u8],
        expected: u64,
        now_ns: u64,
    ) -> CollectResult {
        let header = frame.header();
        let malformed = |reason| CollectResult::Answer(Decision::Malformed(reason));
        if !matches!(header.kind, Kind::Command | Kind::Event) {
            return malformed("only messages come in fragments");
        }
        if header.flags & SEQUENCER_FLAGS != 0 {
            return malformed(NOT_A_PUBLISHERS_FLAG);
        }
        let Some(partial) = self.partial.get_mut(&header.session) else {
            match decide_by_number(header.session_seq, expected) {
                Decision::Append if header.fragment.index == 0 => {}
                Decision::Append => return malformed("a message begins with its fragment 0"),
                Decision::Gap { .. } if self.drops_silently(header.session, header.session_seq, now_ns) => {
                    return CollectResult::Postponed;
                }
                other => return CollectResult::Answer(other),
            }
            if header.session_seq.checked_add(u64::from(header.fragment.count)).is_none() {
                return malformed("a fragment's session_seq runs over");
            }
            let count = usize::from(header.fragment.count);
            if shortest_length(count, padded.len()) > self.message_bytes_max {
                return malformed("a message is longer than the stream's limit");
            }
            let length_max = count.saturating_mul(padded.len()).min(self.message_bytes_max);
            let reserved_bytes = MESSAGE_OVERHEAD + length_max + count * PART_OVERHEAD;
            if !self.make_room(connection, header.session, reserved_bytes, now_ns) {
                // The frame that frees memory may follow this part in the same ring: the part must be resent.
                if !self.unfinished.contains_key(&connection) {
                    return CollectResult::NoMemory;
                }
                return match self.postpone(connection, &header, reserved_bytes, now_ns) {
                    true => CollectResult::Answer(Decision::Gap { next_session_seq: expected }),
                    false => CollectResult::Postponed,
                };
            }
            self.postponed.remove(&header.session);
            self.reserved_bytes += reserved_bytes;
            *self.unfinished.entry(connection).or_default() += 1;
            let (bytes, frames) = (Vec::with_capacity(length_max), Vec::with_capacity(count));
            let (begun_ns, progress_ns) = (now_ns, now_ns);
            let mut partial = PartialMessage {
                connection,
                begin: header,
                bytes,
                frames,
                length_max,
                reserved_bytes,
                begun_ns,
                progress_ns,
            };
            partial.push(frame.length(), padded);
            let is_complete = header.fragment.is_last();
            self.partial.insert(header.session, partial);
            return if is_complete { CollectResult::Complete } else { CollectResult::Kept };
        };
        let have = partial.frames.len() as u64;
        match decide_by_number(header.session_seq, partial.begin.session_seq + have) {
            Decision::Append => {}
            other => return CollectResult::Answer(other),
        }
        let fragment = Fragment { index: have as u16, count: partial.begin.fragment.count };
        let due = FrameHeader { session_seq: header.session_seq, fragment, ..partial.begin };
        if header != due {
            return malformed("fragments differ only in session_seq and index, from 0");
        }
        if partial.bytes.len() + padded.len() > partial.length_max {
            return malformed("no fragment is longer than its message's first, and no message than the stream's limit");
        }
        partial.push(frame.length(), padded);
        partial.progress_ns = now_ns;
        if header.fragment.is_last() { CollectResult::Complete } else { CollectResult::Kept }
    }

    /// Returns whether to answer.
    #[cold]
    fn postpone(&mut self, connection: ConnectionId, header: &FrameHeader, needed_bytes: usize, now_ns: u64) -> bool {
        if self.postponed.len() >= POSTPONED_MAX && !self.postponed.contains_key(&header.session) {
            self.postponed.retain(|_, postponed| now_ns.saturating_sub(postponed.since_ns) <= IDLE_NS_MAX);
            if self.postponed.len() >= POSTPONED_MAX {
                return true;
            }
        }
        let postponed = self.postponed.entry(header.session).or_insert(PostponedMessage {
            connection,
            needed_bytes,
            dropped_through: header.session_seq,
            since_ns: now_ns,
            next_answer_ns: 0,
            is_recalled: false,
        });
        (postponed.connection, postponed.needed_bytes) = (connection, needed_bytes);
        (postponed.dropped_through, postponed.is_recalled) = (header.session_seq, false);
        postponed.take_due_answer(now_ns)
    }

    /// Whether an early frame is dropped: a message of its session is postponed.
    #[cold]
    pub fn drops_silently(&mut self, session: u64, session_seq: u64, now_ns: u64) -> bool {
        let Some(postponed) = self.postponed.get_mut(&session) else { return false };
        if session_seq > postponed.dropped_through {
            postponed.dropped_through = session_seq;
            return true;
        }
        !postponed.take_due_answer(now_ns)
    }

    /// Next time to call [`Fragments::recalled`], ns.
    #[inline]
    pub fn next_recall_ns(&self) -> Option<u64> {
        let waits = !self.postponed.is_empty() && self.postponed.values().any(|postponed| !postponed.is_recalled);
        waits.then_some(self.next_recall_ns)
    }

    /// Postponed message to be resent, whose turn it is, or the longest waiting.
    #[cold]
    pub fn recalled(&mut self, now_ns: u64) -> Option<(u64, ConnectionId)> {
        self.next_recall_ns = now_ns + CHECK_INTERVAL_NS;
        self.waiting.take_if(|waiting| now_ns.saturating_sub(waiting.asked_ns) > IDLE_NS_MAX);
        let session = match &self.waiting {
            Some(waiting) => waiting.session,
            None => {
                let waits = self.postponed.iter().filter(|(_, postponed)| !postponed.is_recalled);
                *waits.min_by_key(|(session, postponed)| (postponed.since_ns, **session))?.0
            }
        };
        let postponed = self.postponed.get(&session).filter(|postponed| !postponed.is_recalled)?;
        let (needed_bytes, connection) = (postponed.needed_bytes, postponed.connection);
        if !self.has_room(needed_bytes) {
            self.evict(needed_bytes, now_ns);
        }
        if !self.has_room(needed_bytes) {
            return None;
        }
        let postponed = self.postponed.get_mut(&session)?;
        postponed.is_recalled = true;
        postponed.next_answer_ns = now_ns + CHECK_INTERVAL_NS;
        // Reserves the turn while the message is resent.
        self.waiting = Some(MemoryWaiter { connection, session, asked_ns: now_ns, next_check_ns: 0 });
        Some((session, connection))
    }

    /// Next frame number of an unfinished message.
    #[inline]
    pub fn expected(&self, session: u64) -> Option<u64> {
        if self.partial.is_empty() {
            return None;
        }
        let partial = self.partial.get(&session)?;
        Some(partial.begin.session_seq + partial.frames.len() as u64)
    }

    /// Bytes of a complete message, and the range of each frame.
    pub fn complete(&self, session: u64) -> (&[u8], &[Range<usize>]) {
        let partial = self.partial.get(&session).expect("the caller was told that it is complete");
        (&partial.bytes, &partial.frames)
    }

    /// Removes the unfinished message.
    pub fn forget(&mut self, session: u64) {
        self.waiting.take_if(|waiting| waiting.session == session);
        self.postponed.remove(&session);
        if let Some(partial) = self.partial.remove(&session) {
            self.reserved_bytes -= partial.reserved_bytes;
            let unfinished = self.unfinished.get_mut(&partial.connection).expect("each unfinished message is counted");
            *unfinished -= 1;
            if *unfinished == 0 {
                self.unfinished.remove(&partial.connection);
            }
        }
    }

    /// Removes all but the counters.
    pub fn forget_all(&mut self) {
        let evicted = self.evicted;
        *self = Self { evicted, ..Self::new(self.bytes_max, self.message_bytes_max) };
    }

    /// Removes a connection's unfinished messages.
    pub fn forget_from(&mut self, connection: ConnectionId) {
        self.waiting.take_if(|waiting| waiting.connection == connection);
        self.postponed.retain(|_, postponed| postponed.connection != connection);
        if self.unfinished.remove(&connection).is_none() {
            return;
        }
        let reserved_bytes = &mut self.reserved_bytes;
        self.partial.retain(|_, partial| {
            if partial.connection == connection {
                *reserved_bytes -= partial.reserved_bytes;
            }
            partial.connection != connection
        });
    }

    const fn has_room(&self, needed_bytes: usize) -> bool {
        self.reserved_bytes == 0 || self.reserved_bytes + needed_bytes <= self.bytes_max
    }

    fn make_room(&mut self, connection: ConnectionId, session: u64, needed_bytes: usize, now_ns: u64) -> bool {
        let is_waiting = |waiting: &MemoryWaiter| now_ns.saturating_sub(waiting.asked_ns) <= IDLE_NS_MAX;
        self.waiting.take_if(|waiting| !is_waiting(waiting));
        if self.waiting.as_ref().is_some_and(|waiting| waiting.session != session) {
            // Otherwise short messages could starve a long one of the memory that becomes free.
            return false;
        }
        if !self.has_room(needed_bytes) {
            let waiting =
                self.waiting.get_or_insert(MemoryWaiter { connection, session, asked_ns: 0, next_check_ns: 0 });
            (waiting.connection, waiting.asked_ns) = (connection, now_ns);
            if now_ns >= waiting.next_check_ns {
                waiting.next_check_ns = now_ns + CHECK_INTERVAL_NS;
                self.evict(needed_bytes, now_ns);
            }
        }
        let has_room = self.has_room(needed_bytes);
        if has_room {
            self.waiting = None;
        }
        has_room
    }

    #[cold]
    fn evict(&mut self, needed_bytes: usize, now_ns: u64) {
        let overdue = self.partial.iter().filter(|(_, partial)| partial.is_overdue(now_ns));
        let mut overdue: Vec<_> = overdue.map(|(session, partial)| (partial.progress_ns, *session)).collect();
        overdue.sort_unstable();
        for (progress_ns, session) in overdue {
            if self.has_room(needed_bytes) {
                break;
            }
            let still_for = Duration::from_nanos(now_ns.saturating_sub(progress_ns));
            tracing::info!(session, ?still_for, "an unfinished message makes room for others; it is to be sent again");
            self.forget(session);
            self.evicted += 1;
        }
    }
}

/// All of the `count` parts but the last have the same length (`first_length`, with padding); the last has at least one
/// byte.
pub(crate) const fn shortest_length(count: usize, first_length: usize) -> usize {
    count.saturating_sub(1).saturating_mul(first_length).saturating_add(aligned_length(HEADER_LENGTH + 1))
}

impl PostponedMessage {
    const fn take_due_answer(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns >= self.next_answer_ns;
        if is_due {
            self.next_answer_ns = now_ns + CHECK_INTERVAL_NS;
        }
        is_due
    }
}

impl PartialMessage {
    /// A complete message waits only for the stream and is never evicted.
    fn is_overdue(&self, now_ns: u64) -> bool {
        let is_complete = self.frames.len() == usize::from(self.begin.fragment.count);
        let is_idle = now_ns.saturating_sub(self.progress_ns) > IDLE_NS_MAX;
        let due_ns = self.bytes.len() as u64 * 1_000_000_000 / BYTES_PER_S_MIN;
        !is_complete && (is_idle || now_ns.saturating_sub(self.begun_ns) > IDLE_NS_MAX + due_ns)
    }

    fn push(&mut self, length: usize, padded: &[u8]) {
        let start = self.bytes.len();
        self.frames.push(start..start + length);
        self.bytes.extend_from_slice(padded);
    }
}

#[cfg(test)]
mod tests;
