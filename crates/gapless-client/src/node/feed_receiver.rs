//! [`FeedReceiver`]: makes a gapless stream of MoldUDP64 packets that arrive duplicated, out of order, damaged or not
//! at all. No I/O.

use crate::feed_sessions::Feed;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::mark::Mark;
use gapless_wire::mold::{MoldPacket, MoldRequest, PacketContent};
use gapless_wire::{Frame, Kind, aligned_length};
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedReceiverOptions {
    /// Memory for early packets, and as much for unread ordered frames, bytes.
    pub waiting_bytes_max: usize,
    /// Age at which a gap is requested, ns: packets may overtake each other.
    pub patience_ns: u64,
    /// Interval of repeated requests, ns; doubled each time, up to 64-fold.
    pub request_interval_ns: u64,
    /// Gaps of at least this many frames are left to a rewind over TCP, if there is one. A heartbeat that announces
    /// this many more frames than are known needs confirmation.
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedCounts {
    /// Packets with new frames.
    pub packets: u64,
    /// Packets without new frames: mostly duplicates from the second of two feeds.
    pub packets_doubled: u64,
    pub packets_early: u64,
    pub packets_damaged: u64,
    /// Packets of other feed sessions.
    pub packets_foreign: u64,
    pub packets_dropped: u64,
    /// Announcements that needed confirmation by the sequencer.
    pub claims_doubted: u64,
    /// Announcements that were not the sequencer's own.
    pub claims_refuted: u64,
    pub frames_requested: u64,
    pub frames_rewound: u64,
}

pub struct FeedReceiver {
    options: FeedReceiverOptions,
    /// `None` between two feed sessions.
    feed: Option<Feed>,
    /// Previous feed session, whose end is still announced for a while.
    feed_before: Option<FeedSession>,
    next: u64,
    /// One after the last sequence that the feed has announced.
    end: u64,
    /// One after the last sequence confirmed by a verified frame or the sequencer.
    confirmed: u64,
    /// The first announcement too far beyond the confirmed end, until the sequencer has answered.
    unconfirmed: Option<UnconfirmedEnd>,
    ready: Vec<u8>,
    read_until: usize,
    waiting: BTreeMap<u64, EarlyFrames>,
    waiting_bytes: usize,
    /// `next` is missing although a later one is known.
    gap_since_ns: Option<u64>,
    request: Option<GapRequest>,
    frames_per_answer: u64,
    /// Full answers since `frames_per_answer` was last probed.
    full_answers: u32,
    counts: FeedCounts,
    /// Packets of other feed sessions that arrived without progress in this one.
    foreign_since_progress: u64,
}

struct UnconfirmedEnd {
    end: u64,
    /// The sequencer was asked after the announcement, so that its answer decides.
    is_probed: bool,
}

struct EarlyFrames {
    frames: Vec<u8>,
    count: u64,
}

struct GapRequest {
    /// Next sequence when the last request was sent, or the last answer arrived.
    next: u64,
    /// Everything before this sequence was requested.
    until: u64,
    /// Unanswered requests.
    ranges: Vec<Range<u64>>,
    at_ns: u64,
    interval_ns: u64,
}

impl FeedReceiver {
    #[must_use]
    pub fn new(options: FeedReceiverOptions, feed: Option<Feed>, next: u64) -> Self {
        Self {
            options,
            feed,
            feed_before: None,
            next,
            end: next,
            confirmed: next,
            unconfirmed: None,
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

    /// Continues in `feed`, by the sequencer's answer, without a change of position. Returns the announced sequence
    /// that the answer refutes.
    pub fn set_feed(&mut self, feed: Feed, released_sequence: u64) -> Option<u64> {
        if feed.holds(self.next) {
            self.feed = Some(feed);
        }
        self.foreign_since_progress = 0;
        self.confirm(released_sequence.saturating_add(1));
        self.end = self.end.max(self.confirmed);
        let refuted = self.unconfirmed.take_if(|unconfirmed| unconfirmed.is_probed)?;
        self.counts.claims_refuted += 1;
        Some(refuted.end - 1)
    }

    /// Whether to ask the sequencer about an announcement.
    #[must_use]
    pub const fn has_unconfirmed_end(&self) -> bool {
        self.unconfirmed.is_some()
    }

    /// The sequencer is being asked: its answer, through [`FeedReceiver::set_feed`], decides on earlier announcements.
    pub const fn note_probe(&mut self) {
        if let Some(unconfirmed) = &mut self.unconfirmed {
            unconfirmed.is_probed = true;
        }
    }

    /// Frames before `end` exist.
    fn confirm(&mut self, end: u64) {
        self.confirmed = self.confirmed.max(end);
        self.unconfirmed.take_if(|unconfirmed| unconfirmed.end <= self.confirmed);
    }

    #[must_use]
    pub const fn counts(&self) -> &FeedCounts {
        &self.counts
    }

    /// All frames before it are in order.
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        self.next
    }

    /// Last sequence announced by the feed.
    #[must_use]
    pub const fn released_sequence(&self) -> u64 {
        self.end - 1
    }

    /// `None` between two feed sessions.
    #[must_use]
    pub const fn feed(&self) -> Option<&Feed> {
        self.feed.as_ref()
    }

    /// Whether to ask the sequencer which feed session continues here.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.foreign_since_progress > 16 || (self.feed.is_none() && self.foreign_since_progress > 0)
    }

    #[inline]
    #[must_use]
    pub fn has_frame(&self) -> bool {
        self.read_until < self.ready.len()
    }

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

    /// Takes a packet of the feed, or the answer to a request.
    pub fn take_packet(&mut self, bytes: &[u8], now_ns: u64) {
        let Ok(packet) = MoldPacket::parse(bytes) else {
            self.counts.packets_damaged += 1;
            return;
        };
        let Some(first) = self.first_sequence(&packet) else { return };
        match packet.content {
            PacketContent::Heartbeat | PacketContent::EndOfSession => self.take_claim(first),
            PacketContent::Messages(messages) => {
                let end = first.saturating_add(messages.len() as u64);
                if end <= self.next {
                    self.counts.packets_doubled += 1;
                } else if self.is_full() {
                    // A slow reader requests these frames once it continues.
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

    /// Adapts the size of requests: while a gap is filled, frames in order are answers, and the amount in one decides
    /// how much is requested next. Early packets are short in a quiet feed.
    fn note_answer(&mut self, first: u64, end: u64) {
        let Some(asked) = &mut self.request else { return };
        let count = end - first;
        // The rest of an answer may follow in further packets, of which the last is no measure.
        let is_last_part = asked.ranges.iter().any(|range| range.start < first && range.end == end);
        asked.ranges.retain(|range| range.end > self.next);
        if count >= self.frames_per_answer {
            self.full_answers += 1;
            if self.full_answers == FULL_ANSWERS_PER_PROBE {
                self.frames_per_answer = (self.frames_per_answer * 2).min(REQUEST_COUNT_MAX);
                self.full_answers = 0;
            }
        } else if end < asked.until && !is_last_part {
            // A full answer: the rest is requested at once, because it follows by itself only if the sequencer can
            // spare it.
            self.frames_per_answer = count.max(1);
            self.full_answers = 0;
            asked.until = self.next;
        }
    }

    /// Takes an end that no checksum covers: anyone who knows the feed session's name can announce it. An end far
    /// beyond the known one has no effect before the sequencer confirms it; a smaller forgery costs a few requests
    /// until the next heartbeat.
    fn take_claim(&mut self, end: u64) {
        if end < self.confirmed.saturating_add(self.options.rewind_frames_min) {
            self.end = end.max(self.confirmed);
            return;
        }
        self.counts.claims_doubted += 1;
        self.unconfirmed.get_or_insert(UnconfirmedEnd { end, is_probed: false });
    }

    /// `None` if the packet belongs to no feed session that is read.
    fn first_sequence(&mut self, packet: &MoldPacket<'_>) -> Option<u64> {
        if let Some(feed) = self.feed.as_ref().filter(|feed| feed.name == packet.feed_session) {
            let first = feed.sequence_of(packet.sequence);
            if first.is_none() {
                self.counts.packets_damaged += 1;
            }
            return first;
        }
        // The next feed session is recognised by its first frame.
        if self.feed.is_none()
            && packet.sequence == 1
            && let PacketContent::Messages(mut messages) = packet.content.clone()
            && begins_feed(messages.next(), packet.feed_session, self.next)
        {
            self.feed = Some(Feed { name: packet.feed_session, first_sequence: self.next, last_sequence: None });
            return Some(self.next);
        }
        if self.feed_before == Some(packet.feed_session) {
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
        if let Some(before) = self.waiting.insert(first, EarlyFrames { frames, count: end - first }) {
            self.waiting_bytes -= before.frames.len();
        }
    }

    /// Takes an ordered frame from a rewind over TCP; `false` if it is not the next one, or damaged.
    pub fn take_frame(&mut self, bytes: &[u8]) -> bool {
        self.make_room();
        let taken = self.accept(self.next, bytes);
        if taken {
            self.counts.frames_rewound += 1;
            self.progress();
        }
        taken
    }

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

    #[inline]
    fn make_room(&mut self) {
        if self.read_until == self.ready.len() {
            self.ready.clear();
            self.read_until = 0;
        }
    }

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

    /// Frames missing before the next one available.
    #[must_use]
    pub fn missing(&self) -> u64 {
        let until = self.waiting.first_key_value().map_or(self.end, |(first, _)| *first);
        until.saturating_sub(self.next)
    }

    /// Whether the gap is so large that a rewind is better.
    #[must_use]
    pub fn wants_rewind(&self) -> bool {
        self.missing() >= self.options.rewind_frames_min
    }

    /// Call it until it returns `None`. Each request is for about one packet, the only certain answer, and several are
    /// in flight.
    pub fn due_request(&mut self, now_ns: u64) -> Option<MoldRequest> {
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
                // The first answer shows how much fits one.
                (self.frames_per_answer, self.full_answers) = (REQUEST_COUNT_MAX, 0);
                self.request.insert(GapRequest {
                    next,
                    until: next,
                    ranges: Vec::new(),
                    at_ns: now_ns,
                    interval_ns: base_ns,
                })
            }
            Some(asked) => {
                if asked.next != next {
                    let (until, ranges) = (asked.until.max(next), std::mem::take(&mut asked.ranges));
                    *asked = GapRequest { next, until, ranges, at_ns: now_ns, interval_ns: base_ns };
                } else if now_ns.saturating_sub(asked.at_ns) >= asked.interval_ns {
                    let interval_ns = (asked.interval_ns * 2).min(base_ns * 64);
                    *asked = GapRequest { next, until: next, ranges: Vec::new(), at_ns: now_ns, interval_ns };
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
        let request =
            MoldRequest { feed_session: feed.name, sequence: feed.number_of(asked.until), count: count as u16 };
        asked.ranges.push(asked.until..asked.until + count);
        asked.until += count;
        self.counts.frames_requested += count;
        Some(request)
    }

    /// Time of the next [`FeedReceiver::due_request`], ns; `None` while nothing is missing.
    #[must_use]
    pub fn next_deadline_ns(&self) -> Option<u64> {
        let since_ns = self.gap_since_ns?;
        Some(match &self.request {
            Some(asked) if asked.next == self.next => asked.at_ns + asked.interval_ns,
            _ => since_ns + self.options.patience_ns,
        })
    }
}

/// More than a packet holds.
const REQUEST_COUNT_MAX: u64 = 1_000;
/// More is then requested: frames may have become shorter.
const FULL_ANSWERS_PER_PROBE: u32 = 256;
const REQUESTS_MAX: u64 = 16;

/// Exactly one undamaged frame with this sequence.
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
