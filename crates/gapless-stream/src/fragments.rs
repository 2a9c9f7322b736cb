//! [`Fragments`]: messages of which not every part is there yet. A message enters the stream whole, so its parts
//! wait here, in memory of a stated size.
//!
//! A session has one unfinished message at most. Where there is no memory for one more, it waits, the first that came
//! before all others; and a message that has not gone on for a while makes room for it, the one that stands still for
//! longest first. A publisher that goes on with that one later is answered by a gap, and sends it again.

use crate::sequencer::{Decision, compare};
use gapless_transport::link::ConnectionId;
use gapless_wire::descriptor::TRANSACTION_FLAG;
use gapless_wire::{Fragment, Frame, FrameHeader, HEADER_LENGTH, Kind, aligned_length};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::time::Duration;

/// The parts of one message so far.
struct Partial {
    /// The connection that sent them.
    connection: ConnectionId,
    /// The header of the first part.
    begin: FrameHeader,
    /// Each part, padded, back to back.
    bytes: Vec<u8>,
    frames: Vec<Range<usize>>,
    /// The longest that its parts may be together, bytes.
    length_max: usize,
    /// Bytes that are reserved for it.
    reserved_bytes: usize,
    begun_ns: u64,
    /// When its last part came.
    progress_ns: u64,
}

/// The message that is the next to get memory.
struct Waiting {
    connection: ConnectionId,
    session: u64,
    asked_ns: u64,
    next_look_ns: u64,
}

/// An unfinished message that has not gone on for so long makes room for others, ns. A publisher that waits and does not ask
/// again for so long waits no more.
const IDLE_NS_MAX: u64 = 2_000_000_000;
/// So does one that comes slower than this in the long run, bytes a second.
const BYTES_PER_S_MIN: u64 = 64 << 10;
/// Those that stand still are looked for this often, ns.
const LOOK_INTERVAL_NS: u64 = 10_000_000;
/// Sessions put off that are remembered; another is answered each time.
const PUT_OFF_MAX: usize = 1024;
/// The overhead of an unfinished message beside its bytes, and that of each part, bytes.
const MESSAGE_OVERHEAD: usize = 256;
const PART_OVERHEAD: usize = size_of::<Range<usize>>();

/// The fate of a part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Collected {
    /// It is kept; more parts are missing.
    Kept,
    /// It was the last one that was missing: the message can be appended.
    Complete,
    /// There is no memory for one more message now: the part is to be offered again.
    Later,
    /// Nor is there, and it cannot wait where it is: it is dropped unanswered, like the parts after it, and
    /// [`Fragments::recalled`] says when the message is to be sent again.
    PutOff,
    /// It is not taken, and this is why.
    Answer(Decision),
}

/// A message that has to be sent again from its first part. Parts after that one are dropped unanswered: each answer
/// would bring all of it once more.
struct PutOff {
    connection: ConnectionId,
    needed_bytes: usize,
    /// The last of the frames that passed by; a frame up to here that comes a second time is the publisher's question
    /// what is missing.
    passed_through: u64,
    since_ns: u64,
    /// Not answered before.
    next_answer_ns: u64,
    /// It was notified that there is room.
    is_recalled: bool,
}

/// The unfinished messages of all sessions.
pub(crate) struct Fragments {
    partial: FxHashMap<u64, Partial>,
    /// Sum of the reserved bytes.
    reserved_bytes: usize,
    /// Its limit; one message is always let in.
    bytes_max: usize,
    /// The longest message, with headers and padding.
    message_bytes_max: usize,
    /// How many unfinished messages each connection has.
    unfinished: FxHashMap<ConnectionId, usize>,
    waiting: Option<Waiting>,
    put_off: FxHashMap<u64, PutOff>,
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
            put_off: FxHashMap::default(),
            next_recall_ns: 0,
            evicted: 0,
        }
    }

    /// How many unfinished messages had to make room, so far.
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Whether there is something of a message of `session`.
    pub fn has(&self, session: u64) -> bool {
        self.partial.contains_key(&session)
    }

    /// Offers a part of a message of a session that accepts `expected` next. `frame` is whole, checked, and of the
    /// session's publisher `connection`; `padded` is the same with its padding.
    pub fn add(
        &mut self,
        connection: ConnectionId,
        frame: &Frame<'_>,
        padded: &[u8],
        expected: u64,
        now_ns: u64,
    ) -> Collected {
        let header = frame.header();
        let malformed = |reason| Collected::Answer(Decision::Malformed(reason));
        if !matches!(header.kind, Kind::Command | Kind::Event) {
            return malformed("only messages come in fragments");
        }
        if header.flags & TRANSACTION_FLAG != 0 {
            return malformed("a transaction is a leader's, not a publisher's");
        }
        let Some(partial) = self.partial.get_mut(&header.session) else {
            match compare(header.session_seq, expected) {
                Decision::Append if header.fragment.index == 0 => {}
                Decision::Append => return malformed("a message begins with its fragment 0"),
                Decision::Gap { .. } if self.passes_by(header.session, header.session_seq, now_ns) => {
                    return Collected::PutOff;
                }
                other => return Collected::Answer(other),
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
                // The frame that makes room may stand after this part in the same ring: then it cannot wait there, and
                // is to be sent again.
                if !self.unfinished.contains_key(&connection) {
                    return Collected::Later;
                }
                return match self.put_off(connection, &header, reserved_bytes, now_ns) {
                    true => Collected::Answer(Decision::Gap { next_session_seq: expected }),
                    false => Collected::PutOff,
                };
            }
            self.put_off.remove(&header.session);
            self.reserved_bytes += reserved_bytes;
            *self.unfinished.entry(connection).or_default() += 1;
            let (bytes, frames) = (Vec::with_capacity(length_max), Vec::with_capacity(count));
            let (begun_ns, progress_ns) = (now_ns, now_ns);
            let mut partial =
                Partial { connection, begin: header, bytes, frames, length_max, reserved_bytes, begun_ns, progress_ns };
            partial.push(frame.length(), padded);
            let is_complete = header.fragment.is_last();
            self.partial.insert(header.session, partial);
            return if is_complete { Collected::Complete } else { Collected::Kept };
        };
        let have = partial.frames.len() as u64;
        match compare(header.session_seq, partial.begin.session_seq + have) {
            Decision::Append => {}
            other => return Collected::Answer(other),
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
        if header.fragment.is_last() { Collected::Complete } else { Collected::Kept }
    }

    /// Notes that a message is put off at its first part; whether that is to be answered.
    #[cold]
    fn put_off(&mut self, connection: ConnectionId, header: &FrameHeader, needed_bytes: usize, now_ns: u64) -> bool {
        if self.put_off.len() >= PUT_OFF_MAX && !self.put_off.contains_key(&header.session) {
            self.put_off.retain(|_, put_off| now_ns.saturating_sub(put_off.since_ns) <= IDLE_NS_MAX);
            if self.put_off.len() >= PUT_OFF_MAX {
                return true;
            }
        }
        let put_off = self.put_off.entry(header.session).or_insert(PutOff {
            connection,
            needed_bytes,
            passed_through: header.session_seq,
            since_ns: now_ns,
            next_answer_ns: 0,
            is_recalled: false,
        });
        (put_off.connection, put_off.needed_bytes) = (connection, needed_bytes);
        (put_off.passed_through, put_off.is_recalled) = (header.session_seq, false);
        put_off.take_due_answer(now_ns)
    }

    /// Whether the frame `session_seq`, which comes too early, passes by unanswered, because a message of its session is
    /// put off.
    #[cold]
    pub fn passes_by(&mut self, session: u64, session_seq: u64, now_ns: u64) -> bool {
        let Some(put_off) = self.put_off.get_mut(&session) else { return false };
        if session_seq > put_off.passed_through {
            put_off.passed_through = session_seq;
            return true;
        }
        !put_off.take_due_answer(now_ns)
    }

    /// When [`Fragments::recalled`] is to be asked, ns; `None` if nothing is put off.
    #[inline]
    pub fn next_recall_ns(&self) -> Option<u64> {
        let waits = !self.put_off.is_empty() && self.put_off.values().any(|put_off| !put_off.is_recalled);
        waits.then_some(self.next_recall_ns)
    }

    /// The session of a message that was put off and that there may be room for now: the one whose turn it is, or the
    /// one that waits for longest. Its sender has to send it again.
    #[cold]
    pub fn recalled(&mut self, now_ns: u64) -> Option<(u64, ConnectionId)> {
        self.next_recall_ns = now_ns + LOOK_INTERVAL_NS;
        self.waiting.take_if(|waiting| now_ns.saturating_sub(waiting.asked_ns) > IDLE_NS_MAX);
        let session = match &self.waiting {
            Some(waiting) => waiting.session,
            None => {
                let waits = self.put_off.iter().filter(|(_, put_off)| !put_off.is_recalled);
                *waits.min_by_key(|(session, put_off)| (put_off.since_ns, **session))?.0
            }
        };
        let put_off = self.put_off.get(&session).filter(|put_off| !put_off.is_recalled)?;
        let (needed_bytes, connection) = (put_off.needed_bytes, put_off.connection);
        if !self.has_room(needed_bytes) {
            self.evict(needed_bytes, now_ns);
        }
        if !self.has_room(needed_bytes) {
            return None;
        }
        let put_off = self.put_off.get_mut(&session)?;
        put_off.is_recalled = true;
        put_off.next_answer_ns = now_ns + LOOK_INTERVAL_NS;
        // Nobody else takes the room while it is on its way.
        self.waiting = Some(Waiting { connection, session, asked_ns: now_ns, next_look_ns: 0 });
        Some((session, connection))
    }

    /// The number that the unfinished message of `session` expects next, if there is one.
    #[inline]
    pub fn expected(&self, session: u64) -> Option<u64> {
        if self.partial.is_empty() {
            return None;
        }
        let partial = self.partial.get(&session)?;
        Some(partial.begin.session_seq + partial.frames.len() as u64)
    }

    /// The complete message of `session`: its bytes, and each frame's place in them.
    pub fn complete(&self, session: u64) -> (&[u8], &[Range<usize>]) {
        let partial = self.partial.get(&session).expect("the caller was told that it is complete");
        (&partial.bytes, &partial.frames)
    }

    /// Forgets what there is of a message of `session`.
    pub fn forget(&mut self, session: u64) {
        self.waiting.take_if(|waiting| waiting.session == session);
        self.put_off.remove(&session);
        if let Some(partial) = self.partial.remove(&session) {
            self.reserved_bytes -= partial.reserved_bytes;
            let unfinished = self.unfinished.get_mut(&partial.connection).expect("each unfinished message is counted");
            *unfinished -= 1;
            if *unfinished == 0 {
                self.unfinished.remove(&partial.connection);
            }
        }
    }

    /// Forgets everything but the counters.
    pub fn forget_all(&mut self) {
        let evicted = self.evicted;
        *self = Self { evicted, ..Self::new(self.bytes_max, self.message_bytes_max) };
    }

    /// Forgets what there is of messages that came from `connection`.
    pub fn forget_from(&mut self, connection: ConnectionId) {
        self.waiting.take_if(|waiting| waiting.connection == connection);
        self.put_off.retain(|_, put_off| put_off.connection != connection);
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

    /// Whether there is memory for a message that begins, after those that stand still have made room.
    fn make_room(&mut self, connection: ConnectionId, session: u64, needed_bytes: usize, now_ns: u64) -> bool {
        let is_waiting = |waiting: &Waiting| now_ns.saturating_sub(waiting.asked_ns) <= IDLE_NS_MAX;
        self.waiting.take_if(|waiting| !is_waiting(waiting));
        if self.waiting.as_ref().is_some_and(|waiting| waiting.session != session) {
            // Otherwise short messages could for ever take from a long one the memory that becomes free.
            return false;
        }
        if !self.has_room(needed_bytes) {
            let waiting = self.waiting.get_or_insert(Waiting { connection, session, asked_ns: 0, next_look_ns: 0 });
            (waiting.connection, waiting.asked_ns) = (connection, now_ns);
            if now_ns >= waiting.next_look_ns {
                waiting.next_look_ns = now_ns + LOOK_INTERVAL_NS;
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

/// The least length of a message of `count` parts of which the first takes `first_length` bytes with its padding: all but
/// the last are of one length, and the last holds a byte.
pub(crate) const fn shortest_length(count: usize, first_length: usize) -> usize {
    count.saturating_sub(1).saturating_mul(first_length).saturating_add(aligned_length(HEADER_LENGTH + 1))
}

impl PutOff {
    /// Whether it is to be answered now; not more often than its publisher can make use of.
    const fn take_due_answer(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns >= self.next_answer_ns;
        if is_due {
            self.next_answer_ns = now_ns + LOOK_INTERVAL_NS;
        }
        is_due
    }
}

impl Partial {
    /// Whether it has to make room for others. One that is complete waits for nobody but the stream.
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
