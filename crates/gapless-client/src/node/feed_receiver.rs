//! [`FeedReceiver`]: makes a gapless stream of MoldUDP64 packets that come doubled, out of order, damaged or not at
//! all. A core without I/O: packets and time in, frames and requests out.

use crate::feed_sessions::Feed;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::mark::Mark;
use gapless_wire::mold::{Content, Packet, Request};
use gapless_wire::{Frame, Kind, aligned_length};
use std::collections::BTreeMap;
use std::ops::Range;

/// Limits and times of a [`FeedReceiver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedReceiverOptions {
    /// Memory for packets that came before their turn, and as much for frames that are in order and not read yet,
    /// bytes.
    pub waiting_bytes_max: usize,
    /// A gap is asked for when it is so old, ns: packets may overtake each other.
    pub patience_ns: u64,
    /// A request without an answer is repeated after this time, ns; doubled each time, up to 64 times.
    pub request_interval_ns: u64,
    /// Gaps of more frames are for a rewind over TCP, where there is one; and so many more than are known are not
    /// believed of a heartbeat alone.
    pub rewind_frames_min: u64,
}

impl Default for FeedReceiverOptions {
    fn default() -> Self {
        Self {
            waiting_bytes_max: 8 << 20,
            patience_ns: 50_000,
            request_interval_ns: 2_000_000,
            rewind_frames_min: 2_000,
        }
    }
}

/// The counters of a [`FeedReceiver`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedCounts {
    /// Packets that brought something new.
    pub packets: u64,
    /// Packets of which everything was there already: the other of two feeds, mostly.
    pub packets_doubled: u64,
    /// Packets that came before their turn.
    pub packets_early: u64,
    /// Packets that were damaged.
    pub packets_damaged: u64,
    /// Packets of other feed sessions.
    pub packets_foreign: u64,
    /// Packets that came before their turn and found no room.
    pub packets_dropped: u64,
    /// Announcements that were not believed until the sequencer itself confirmed them.
    pub claims_doubted: u64,
    /// Those of them that the sequencer has refuted: they are not its own.
    pub claims_refuted: u64,
    /// Frames asked for again.
    pub frames_requested: u64,
    /// Frames that came by a rewind over TCP.
    pub frames_rewound: u64,
}

/// Puts a feed in order.
pub struct FeedReceiver {
    options: FeedReceiverOptions,
    /// The feed session that is read; `None` between two.
    feed: Option<Feed>,
    /// The one that was read before: for a while its end is still said.
    feed_before: Option<FeedSession>,
    /// The sequence that is due.
    next: u64,
    /// One after the last sequence that the feed has announced.
    end: u64,
    /// One after the last sequence that a checked frame or the sequencer itself has shown.
    confirmed: u64,
    /// What was announced too far beyond that; the first until the sequencer has answered.
    doubt: Option<Doubt>,
    /// Frames that are in order and not read yet, each padded.
    ready: Vec<u8>,
    read_until: usize,
    /// Frames that came before their turn, by the sequence of the first.
    waiting: BTreeMap<u64, Early>,
    waiting_bytes: usize,
    /// Since when `next` is missing although a later one is known.
    gap_since_ns: Option<u64>,
    request: Option<Asked>,
    /// How many frames an answer brings, as far as is known of this gap.
    frames_per_answer: u64,
    /// Answers since that was looked at that brought as much as this.
    full_answers: u32,
    counts: FeedCounts,
    /// A packet of another feed session came while this one stood still.
    foreign_since_progress: u64,
}

struct Doubt {
    end: u64,
    /// The sequencer was asked afterwards, so that its answer decides.
    is_asked: bool,
}

struct Early {
    frames: Vec<u8>,
    count: u64,
}

/// Requests on their way.
struct Asked {
    /// The range that was due when the last of them was sent, or when the last answer came.
    next: u64,
    /// Everything before this sequence was asked for.
    until: u64,
    /// The requests that are not answered yet, each from its first sequence to one after its last.
    ranges: Vec<Range<u64>>,
    at_ns: u64,
    interval_ns: u64,
}

impl FeedReceiver {
    /// Begins at `next`, in `feed`.
    #[must_use]
    pub fn new(options: FeedReceiverOptions, feed: Option<Feed>, next: u64) -> Self {
        Self {
            options,
            feed,
            feed_before: None,
            next,
            end: next,
            confirmed: next,
            doubt: None,
            ready: Vec::new(),
            read_until: 0,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            gap_since_ns: None,
            request: None,
            frames_per_answer: REQUEST_COUNT_MAX,
            full_answers: 0,
            counts: FeedCounts::default(),
            foreign_since_progress: 0,
        }
    }

    /// Goes on in `feed`, as the sequencer says, without a change of position. Returns the sequence that was announced
    /// and that the sequencer refutes, if there is one.
    pub fn set_feed(&mut self, feed: Feed, released_sequence: u64) -> Option<u64> {
        if feed.holds(self.next) {
            self.feed = Some(feed);
        }
        self.foreign_since_progress = 0;
        self.confirm(released_sequence.saturating_add(1));
        self.end = self.end.max(self.confirmed);
        let refuted = self.doubt.take_if(|doubt| doubt.is_asked)?;
        self.counts.claims_refuted += 1;
        Some(refuted.end - 1)
    }

    /// Whether something was announced that the sequencer is to be asked about.
    #[must_use]
    pub const fn has_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// The sequencer is being asked: its answer, by way of [`FeedReceiver::set_feed`], decides about what was announced
    /// before.
    pub const fn note_question(&mut self) {
        if let Some(doubt) = &mut self.doubt {
            doubt.is_asked = true;
        }
    }

    /// The frames before `end` exist.
    fn confirm(&mut self, end: u64) {
        self.confirmed = self.confirmed.max(end);
        self.doubt.take_if(|doubt| doubt.end <= self.confirmed);
    }

    /// Its counters so far.
    #[must_use]
    pub const fn counts(&self) -> &FeedCounts {
        &self.counts
    }

    /// The sequence that is due; those before it are in order.
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        self.next
    }

    /// The last sequence that the feed has announced.
    #[must_use]
    pub const fn released_sequence(&self) -> u64 {
        self.end - 1
    }

    /// The feed session that is read; `None` between two.
    #[must_use]
    pub const fn feed(&self) -> Option<&Feed> {
        self.feed.as_ref()
    }

    /// Whether there is reason to ask the sequencer which feed session goes on here.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.foreign_since_progress > 16 || (self.feed.is_none() && self.foreign_since_progress > 0)
    }

    /// Whether a frame can be read.
    #[inline]
    #[must_use]
    pub fn has_frame(&self) -> bool {
        self.read_until < self.ready.len()
    }

    /// The next frame, if there is one.
    #[inline]
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        if self.read_until == self.ready.len() {
            return None;
        }
        let start = self.read_until;
        let frame = Frame::parse(&self.ready[start..]).expect("only checked frames are ready");
        self.read_until = start + aligned_length(frame.length());
        Some(frame)
    }

    /// Takes a packet from the feed, or the answer to a request.
    pub fn take_packet(&mut self, bytes: &[u8], now_ns: u64) {
        let Ok(packet) = Packet::parse(bytes) else {
            self.counts.packets_damaged += 1;
            return;
        };
        let Some(first) = self.first_sequence(&packet) else { return };
        match packet.content {
            Content::Heartbeat | Content::EndOfSession => self.take_claim(first),
            Content::Messages(messages) => {
                let end = first.saturating_add(messages.len() as u64);
                if end <= self.next {
                    self.counts.packets_doubled += 1;
                } else if self.is_full() {
                    // Nobody reads now; a caller that does asks for it.
                    if end > self.end {
                        self.take_claim(end);
                    }
                    self.counts.packets_dropped += 1;
                } else if first <= self.next {
                    self.take_due(first, messages);
                    self.note_answer(first, end);
                } else {
                    self.take_early(first, end, messages);
                }
            }
        }
        self.note_gap(now_ns);
    }

    /// While something is missing, frames that come in order were asked for: the amount that an answer brings decides
    /// how much is asked for next. Packets that come early tell nothing of it: in a quiet feed they are short, in a
    /// journal there are none.
    fn note_answer(&mut self, first: u64, end: u64) {
        let Some(asked) = &mut self.request else { return };
        let count = end - first;
        // What a packet did not hold may follow in others, of which the last tells nothing.
        let is_last_part = asked.ranges.iter().any(|range| range.start < first && range.end == end);
        asked.ranges.retain(|range| range.end > self.next);
        if count >= self.frames_per_answer {
            self.full_answers += 1;
            if self.full_answers == FULL_ANSWERS_PER_PROBE {
                self.frames_per_answer = (self.frames_per_answer * 2).min(REQUEST_COUNT_MAX);
                self.full_answers = 0;
            }
        } else if end < asked.until && !is_last_part {
            // It had no room for more. The rest is asked for at once: it follows only if the sequencer can spare it.
            self.frames_per_answer = count.max(1);
            self.full_answers = 0;
            asked.until = self.next;
        }
    }

    /// Takes an end that no checksum covers: anybody who knows the name of the feed session may have announced it. Far
    /// beyond what is known it counts for nothing before the sequencer has confirmed it; a smaller untruth costs some
    /// requests, and the next heartbeat puts it right.
    fn take_claim(&mut self, end: u64) {
        if end < self.confirmed.saturating_add(self.options.rewind_frames_min) {
            self.end = end.max(self.confirmed);
            return;
        }
        self.counts.claims_doubted += 1;
        self.doubt.get_or_insert(Doubt { end, is_asked: false });
    }

    /// The sequence in the stream that the packet begins with; `None` if it is of no feed session that is read.
    fn first_sequence(&mut self, packet: &Packet<'_>) -> Option<u64> {
        if let Some(feed) = self.feed.as_ref().filter(|feed| feed.name == packet.feed_session) {
            let first = feed.sequence_of(packet.sequence);
            if first.is_none() {
                self.counts.packets_damaged += 1;
            }
            return first;
        }
        // Between two feed sessions the next one shows itself by its first frame.
        if self.feed.is_none()
            && packet.sequence == 1
            && let Content::Messages(mut messages) = packet.content.clone()
            && begins_feed(messages.next(), packet.feed_session, self.next)
        {
            self.feed = Some(Feed { name: packet.feed_session, first_sequence: self.next, last_sequence: None });
            return Some(self.next);
        }
        if self.feed_before == Some(packet.feed_session) {
            // All of it is read.
            self.counts.packets_doubled += 1;
            return None;
        }
        self.counts.packets_foreign += 1;
        self.foreign_since_progress += 1;
        None
    }

    #[inline]
    fn take_due<'a>(&mut self, first: u64, messages: impl Iterator<Item = &'a [u8]>) {
        self.make_room();
        let before = self.next;
        for (offset, bytes) in messages.enumerate() {
            let sequence = first + offset as u64;
            if sequence < self.next {
                continue;
            }
            if !self.accept(sequence, bytes) {
                self.counts.packets_damaged += 1;
                break;
            }
        }
        if self.next != before {
            self.counts.packets += 1;
            self.progress();
        }
    }

    fn take_early<'a>(&mut self, first: u64, end: u64, messages: impl Iterator<Item = &'a [u8]>) {
        if self.waiting.get(&first).is_some_and(|early| first + early.count >= end) {
            self.counts.packets_doubled += 1;
            return;
        }
        let mut frames = Vec::new();
        for (offset, bytes) in messages.enumerate() {
            if check(bytes, first + offset as u64).is_none() {
                self.counts.packets_damaged += 1;
                return;
            }
            push_padded(&mut frames, bytes);
        }
        self.confirm(end);
        self.end = self.end.max(end);
        if self.waiting_bytes + frames.len() > self.options.waiting_bytes_max {
            self.counts.packets_dropped += 1;
            return;
        }
        self.counts.packets_early += 1;
        self.waiting_bytes += frames.len();
        if let Some(before) = self.waiting.insert(first, Early { frames, count: end - first }) {
            self.waiting_bytes -= before.frames.len();
        }
    }

    /// Takes a frame that came in order by another way: a rewind over TCP. `false` if it is not the one that is due, or
    /// damaged.
    pub fn take_frame(&mut self, bytes: &[u8]) -> bool {
        self.make_room();
        let taken = self.accept(self.next, bytes);
        if taken {
            self.counts.frames_rewound += 1;
            self.progress();
        }
        taken
    }

    /// Checks a frame and puts it after those that are ready.
    #[inline]
    fn accept(&mut self, sequence: u64, bytes: &[u8]) -> bool {
        let Some(frame) = check(bytes, sequence) else { return false };
        if frame.kind() == Kind::Mark {
            match Mark::from_bytes(frame.payload()) {
                Some(Mark::FeedEnded { .. }) => {
                    self.feed_before = self.feed.take().map(|feed| feed.name);
                }
                Some(Mark::FeedBegan { feed_session }) => {
                    self.feed = Some(Feed { name: feed_session, first_sequence: sequence, last_sequence: None });
                }
                _ => {}
            }
        }
        push_padded(&mut self.ready, bytes);
        self.next = sequence + 1;
        true
    }

    /// Frames that waited for the ones that have just come are ready now.
    fn progress(&mut self) {
        self.foreign_since_progress = 0;
        self.gap_since_ns = None;
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.key() > self.next {
                break;
            }
            let (first, early) = entry.remove_entry();
            self.waiting_bytes -= early.frames.len();
            let (mut position, mut sequence) = (0, first);
            while position < early.frames.len() {
                let frame = Frame::parse(&early.frames[position..]).expect("it was checked when it came");
                let end = position + aligned_length(frame.length());
                if sequence == self.next {
                    let length = frame.length();
                    self.accept(sequence, &early.frames[position..position + length]);
                }
                position = end;
                sequence += 1;
            }
        }
        self.confirm(self.next);
        self.end = self.end.max(self.next);
    }

    /// Forgets what was read, once all of it was.
    #[inline]
    fn make_room(&mut self) {
        if self.read_until == self.ready.len() {
            self.ready.clear();
            self.read_until = 0;
        }
    }

    /// Whether what is in order takes as much memory as what is not may.
    fn is_full(&self) -> bool {
        self.has_frame() && self.ready.len() >= self.options.waiting_bytes_max
    }

    fn note_gap(&mut self, now_ns: u64) {
        if self.end <= self.next {
            self.gap_since_ns = None;
        } else if self.gap_since_ns.is_none() {
            self.gap_since_ns = Some(now_ns);
        }
    }

    /// How many frames are missing before the next one that is there.
    #[must_use]
    pub fn missing(&self) -> u64 {
        let until = self.waiting.first_key_value().map_or(self.end, |(first, _)| *first);
        until.saturating_sub(self.next)
    }

    /// Whether so much is missing that a rewind is the better way.
    #[must_use]
    pub fn wants_rewind(&self) -> bool {
        self.missing() >= self.options.rewind_frames_min
    }

    /// A request that is due at `now_ns`; to be called until there is none. Each is for about a packet, because that is
    /// what surely answers it, and several are on their way at a time.
    pub fn due_request(&mut self, now_ns: u64) -> Option<Request> {
        let missing = self.missing();
        if missing == 0 {
            self.request = None;
            return None;
        }
        let since_ns = *self.gap_since_ns.get_or_insert(now_ns);
        let (next, base_ns) = (self.next, self.options.request_interval_ns);
        let asked = match &mut self.request {
            None if now_ns.saturating_sub(since_ns) < self.options.patience_ns => return None,
            None => {
                // The first answer tells how much fits one.
                (self.frames_per_answer, self.full_answers) = (REQUEST_COUNT_MAX, 0);
                self.request.insert(Asked {
                    next,
                    until: next,
                    ranges: Vec::new(),
                    at_ns: now_ns,
                    interval_ns: base_ns,
                })
            }
            Some(asked) => {
                if asked.next != next {
                    // Something has come.
                    let (until, ranges) = (asked.until.max(next), std::mem::take(&mut asked.ranges));
                    *asked = Asked { next, until, ranges, at_ns: now_ns, interval_ns: base_ns };
                } else if now_ns.saturating_sub(asked.at_ns) >= asked.interval_ns {
                    let interval_ns = (asked.interval_ns * 2).min(base_ns * 64);
                    *asked = Asked { next, until: next, ranges: Vec::new(), at_ns: now_ns, interval_ns };
                }
                asked
            }
        };
        let end = (next + missing).min(next + self.frames_per_answer * REQUESTS_MAX);
        let feed = self.feed.as_ref()?;
        if asked.until >= end {
            return None;
        }
        let count = (end - asked.until).min(self.frames_per_answer).min(REQUEST_COUNT_MAX);
        let request = Request { feed_session: feed.name, sequence: feed.number_of(asked.until), count: count as u16 };
        asked.ranges.push(asked.until..asked.until + count);
        asked.until += count;
        self.counts.frames_requested += count;
        Some(request)
    }

    /// When [`FeedReceiver::due_request`] has something to say, ns; `None` while nothing is missing.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let since_ns = self.gap_since_ns?;
        Some(match &self.request {
            Some(asked) if asked.next == self.next => asked.at_ns + asked.interval_ns,
            _ => since_ns + self.options.patience_ns,
        })
    }
}

/// Frames asked for at once: more than a packet holds.
const REQUEST_COUNT_MAX: u64 = 1_000;
/// After so many answers that brought all that was asked for, more is asked for: frames may have become shorter.
const FULL_ANSWERS_PER_PROBE: u32 = 256;
/// Requests on their way at a time.
const REQUESTS_MAX: u64 = 16;

/// The frame in `bytes`, if it is exactly that, undamaged, and has this sequence.
#[inline]
pub(super) fn check(bytes: &[u8], sequence: u64) -> Option<Frame<'_>> {
    let frame = Frame::parse(bytes).ok()?;
    (frame.length() == bytes.len() && frame.sequence() == sequence && frame.verify().is_ok()).then_some(frame)
}

#[inline]
fn push_padded(frames: &mut Vec<u8>, bytes: &[u8]) {
    frames.extend_from_slice(bytes);
    frames.resize(frames.len().next_multiple_of(8), 0);
}

fn begins_feed(message: Option<&[u8]>, name: FeedSession, sequence: u64) -> bool {
    let frame = message.and_then(|bytes| check(bytes, sequence)).filter(|frame| frame.kind() == Kind::Mark);
    frame.is_some_and(|frame| Mark::from_bytes(frame.payload()) == Some(Mark::FeedBegan { feed_session: name }))
}

#[cfg(test)]
mod tests;
