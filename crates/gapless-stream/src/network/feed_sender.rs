//! [`FeedSender`]: sends released frames as MoldUDP64 to multicast groups, single nodes, or both, without
//! acknowledgement: nodes request lost packets.

use crate::counters::counters;
use crate::{AgentRole, StreamError};
use gapless_agent::fault::crash_point;
use gapless_agent::{Agent, AgentError, Now};
use gapless_client::feed_sessions::{Feed, Feeds};
use gapless_log::GatingCursor;
use gapless_transport::mailbox::Mailbox;
use gapless_transport::network::datagrams::{Datagrams, Peer, SendRefusal};
use gapless_transport::warnings::Warnings;
use gapless_wire::descriptor::{KIND_OFFSET, SEQUENCE_OFFSET};
use gapless_wire::feed_session::FeedSession;
use gapless_wire::frame::peek_length;
use gapless_wire::mark::Mark;
use gapless_wire::mold::PacketWriter;
use gapless_wire::{Frame, Kind, aligned_length, mold};
use std::collections::VecDeque;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedSenderOptions {
    /// Groups: feed A, and B if there are two.
    pub groups: Vec<Peer>,
    /// A packet may hold several frames.
    pub batch: bool,
    /// Longest packet, bytes of UDP payload.
    pub packet_length_max: usize,
    /// Heartbeat interval of an idle feed, ns; three more follow shortly after the last packet, so that a loss at the
    /// end is noticed soon.
    pub heartbeat_interval_ns: u64,
}

impl Default for FeedSenderOptions {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            batch: true,
            packet_length_max: mold::PACKET_LENGTH_UDP,
            heartbeat_interval_ns: mold::HEARTBEAT_INTERVAL_NS,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedChange {
    Join(Peer),
    Leave(Peer),
}

counters! {
    pub struct FeedCounters {
        /// Packets made; each goes to all targets.
        packets: "feed.packets",
        /// Sent frames.
        frames: "feed.frames",
        /// Packets that the operating system refused for an address.
        refused: "feed.packets_refused",
        /// Addresses that get each packet.
        targets: "feed.targets",
    }
}

/// Readers may still request its last messages.
#[derive(Clone, Copy)]
struct EndedFeed {
    name: FeedSession,
    next_number: u64,
    announcements: u32,
    next_ns: u64,
}

/// Agent between the window and the network.
pub struct FeedSender<S> {
    socket: S,
    group_sockets: Vec<Box<dyn Datagrams>>,
    cursor: GatingCursor,
    options: FeedSenderOptions,
    feed: Option<Feed>,
    next_number: u64,
    ends_here: bool,
    /// A stop was requested, and the feed session has not ended yet.
    is_ending: bool,
    /// The end is still announced; newest first.
    ended: VecDeque<EndedFeed>,
    targets: Vec<Peer>,
    changes: Mailbox<FeedChange>,
    counters: FeedCounters,
    packets: Vec<u8>,
    lengths: Vec<usize>,
    target: usize,
    packets_taken: usize,
    bytes_taken: usize,
    next_heartbeat_ns: u64,
    heartbeats: u32,
    warnings: Warnings,
}

/// The most that segmentation offload takes at once.
const PACKETS_LENGTH_MAX: usize = 60_000;
const FIRST_HEARTBEATS_NS: [u64; 3] = [2_000_000, 20_000_000, 200_000_000];
/// About as frequent as heartbeats: half a minute.
const END_OF_SESSION_COUNT: u32 = 30;
/// For a stream that ends with its process.
const LAST_END_COUNT: u32 = 3;
const ENDED_MAX: usize = 8;

impl<S: Datagrams + 'static> FeedSender<S> {
    /// `cursor`: released frames from `next_sequence` on; `feeds`: feed sessions up to there. The end of the last one
    /// is announced again, because a node may have missed it.
    #[must_use]
    pub fn new(
        socket: S,
        cursor: GatingCursor,
        feeds: &Feeds,
        next_sequence: u64,
        options: FeedSenderOptions,
        changes: Mailbox<FeedChange>,
        counters: FeedCounters,
    ) -> Self {
        let targets = options.groups.clone();
        counters.targets.set(targets.len() as u64);
        let packets = vec![0; PACKETS_LENGTH_MAX + options.packet_length_max + mold::HEADER_LENGTH];
        let feed = feeds.current().copied();
        let ended = feeds.all().iter().rev().find_map(|feed| {
            let last = feed.last_sequence.filter(|last| (feed.first_sequence..next_sequence).contains(last))?;
            Some(EndedFeed { name: feed.name, next_number: feed.number_of(last) + 1, announcements: 0, next_ns: 0 })
        });
        let next_number = feed.map_or(1, |feed| feed.number_of(next_sequence));
        Self {
            socket,
            group_sockets: Vec::new(),
            cursor,
            options,
            feed,
            next_number,
            ends_here: false,
            is_ending: false,
            ended: ended.into_iter().collect(),
            targets,
            changes,
            counters,
            packets,
            lengths: Vec::new(),
            target: 0,
            packets_taken: 0,
            bytes_taken: 0,
            next_heartbeat_ns: 0,
            heartbeats: 0,
            warnings: Warnings::default(),
        }
    }

    /// Ends the feed session with this agent.
    #[must_use]
    pub fn with_ending_feed(mut self, ends_here: bool) -> Self {
        self.ends_here = ends_here;
        self
    }

    /// A socket for each group, in order.
    #[must_use]
    pub fn with_group_sockets(mut self, group_sockets: Vec<Box<dyn Datagrams>>) -> Self {
        self.group_sockets = group_sockets;
        self
    }

    fn change_targets(&mut self) {
        while self.lengths.is_empty()
            && let Some(change) = self.changes.pop()
        {
            match change {
                FeedChange::Join(peer) => {
                    if !self.targets.contains(&peer) {
                        self.targets.push(peer);
                    }
                    // A new node learns at once where the feed is.
                    self.heartbeats = 0;
                    self.next_heartbeat_ns = 0;
                }
                FeedChange::Leave(peer) => {
                    let groups = self.options.groups.len();
                    let mut index = 0;
                    self.targets.retain(|each| {
                        index += 1;
                        index <= groups || *each != peer
                    });
                }
            }
            self.counters.targets.set(self.targets.len() as u64);
        }
    }

    #[inline]
    fn pack(&mut self, now_ns: u64) -> Result<usize, StreamError> {
        let frames = self.cursor.available()?;
        if frames.is_empty() {
            return Ok(0);
        }
        let (mut position, mut count, mut offset) = (0, 0, 0);
        while position < frames.len() && offset < PACKETS_LENGTH_MAX {
            let (first, kind) = (sequence_at(&frames[position..]), frames[position + KIND_OFFSET]);
            if kind == Kind::Mark as u8
                && let Some(Mark::FeedBegan { feed_session }) = mark_at(&frames[position..])
            {
                self.feed = Some(Feed { name: feed_session, first_sequence: first, last_sequence: None });
                // Ends of earlier sessions with the same name no longer hold.
                self.ended.retain(|ended| ended.name != feed_session);
            }
            let Some(feed) = self.feed else {
                // Frames outside a feed session are not sent.
                position += aligned_length(length_at(&frames[position..]));
                continue;
            };
            let end = offset + self.options.packet_length_max;
            let mut writer = PacketWriter::new(&mut self.packets[offset..end], feed.name, feed.number_of(first));
            let mut is_over = false;
            while position < frames.len() {
                let length = length_at(&frames[position..]);
                let is_mark = frames[position + KIND_OFFSET] == Kind::Mark as u8;
                let mark = if is_mark { mark_at(&frames[position..]) } else { None };
                if writer.count() > 0 && matches!(mark, Some(Mark::FeedBegan { .. })) {
                    break;
                }
                if !writer.push(&frames[position..position + length]) {
                    assert!(writer.count() > 0, "a frame of {length} bytes fits a packet, or the start is refused");
                    break;
                }
                position += aligned_length(length);
                count += 1;
                is_over = matches!(mark, Some(Mark::FeedEnded { .. }));
                if is_over || !self.options.batch {
                    break;
                }
            }
            self.next_number = feed.number_of(first) + u64::from(writer.count());
            let length = writer.finish();
            self.lengths.push(length);
            offset += length;
            if is_over {
                // Before the first packet of the next session: a reader that follows numbers instead of names starts
                // over then.
                let length = mold::end_of_session(&mut self.packets[offset..], feed.name, self.next_number);
                self.lengths.push(length);
                offset += length;
                self.feed = None;
                let next_ns = now_ns + FIRST_HEARTBEATS_NS[0];
                note_end(
                    &mut self.ended,
                    EndedFeed { name: feed.name, next_number: self.next_number, announcements: 1, next_ns },
                );
            }
        }
        self.cursor.advance(position);
        self.counters.packets.add(self.lengths.len() as u64);
        self.counters.frames.add(count as u64);
        Ok(count)
    }

    #[inline]
    fn send(&mut self) -> bool {
        while self.target < self.targets.len() {
            let to = self.targets[self.target];
            let socket: &mut dyn Datagrams = match self.group_sockets.get_mut(self.target) {
                Some(own) => &mut **own,
                None => &mut self.socket,
            };
            while self.packets_taken < self.lengths.len() {
                let lengths = &self.lengths[self.packets_taken..];
                let bytes: usize = lengths.iter().sum();
                let rest = &self.packets[self.bytes_taken..self.bytes_taken + bytes];
                let result = match lengths {
                    [length] => socket.send(to, rest, *length).map(|bytes| usize::from(bytes > 0)),
                    _ => socket.send_uneven(to, rest, lengths),
                };
                match result {
                    Ok(0) => return false,
                    Ok(packets) => {
                        self.bytes_taken += lengths[..packets].iter().sum::<usize>();
                        self.packets_taken += packets;
                    }
                    Err(error) => {
                        // A reader requests it once the path works again.
                        self.counters.refused.add(lengths.len() as u64);
                        if SendRefusal::is_too_narrow(&error) {
                            self.warnings.warn_now(|| format!("a node misses packets of the feed: {error}"));
                        }
                        tracing::debug!(%error, "packets of the feed could not be sent");
                        break;
                    }
                }
                crash_point("between_packets");
            }
            self.target += 1;
            (self.packets_taken, self.bytes_taken) = (0, 0);
        }
        self.target = 0;
        self.lengths.clear();
        true
    }

    fn send_heartbeat(&mut self, now_ns: u64) {
        if let Some(feed) = &self.feed {
            let mut packet = [0; mold::HEADER_LENGTH];
            mold::heartbeat(&mut packet, feed.name, self.next_number);
            self.send_to_all(&packet);
        }
        self.schedule_heartbeat(now_ns);
    }

    fn schedule_heartbeat(&mut self, now_ns: u64) {
        self.next_heartbeat_ns = now_ns + self.interval_ns(self.heartbeats);
        self.heartbeats = self.heartbeats.saturating_add(1);
    }

    fn interval_ns(&self, times: u32) -> u64 {
        let interval_ns = self.options.heartbeat_interval_ns;
        FIRST_HEARTBEATS_NS.get(times as usize).map_or(interval_ns, |first| interval_ns.min(*first))
    }

    /// Announces ended sessions again when due. Independent of heartbeats, which a busy next session does not send.
    #[cold]
    fn announce_ended(&mut self, now_ns: u64) {
        for index in 0..self.ended.len() {
            let EndedFeed { name, next_number, announcements, next_ns } = self.ended[index];
            if now_ns < next_ns {
                continue;
            }
            let mut packet = [0; mold::HEADER_LENGTH];
            mold::end_of_session(&mut packet, name, next_number);
            self.send_to_all(&packet);
            let next_ns = now_ns + self.interval_ns(announcements);
            self.ended[index] = EndedFeed { name, next_number, announcements: announcements + 1, next_ns };
        }
        self.ended.retain(|ended| ended.announcements < END_OF_SESSION_COUNT);
    }

    fn send_to_all(&mut self, packet: &[u8]) {
        for target in &self.targets {
            if self.socket.send(*target, packet, packet.len()).is_err() {
                self.counters.refused.add(1);
            }
        }
    }
}

fn note_end(all: &mut VecDeque<EndedFeed>, ended: EndedFeed) {
    all.truncate(ENDED_MAX - 1);
    all.push_front(ended);
}

#[inline]
fn length_at(frames: &[u8]) -> usize {
    peek_length(frames, frames.len()).expect("the window holds whole frames only")
}

#[inline]
fn sequence_at(frames: &[u8]) -> u64 {
    u64::from_le_bytes(*frames[SEQUENCE_OFFSET..].first_chunk().expect("a frame holds a header"))
}

fn mark_at(frames: &[u8]) -> Option<Mark<'_>> {
    let frame = Frame::parse(frames).expect("the window holds whole frames only");
    Mark::from_bytes(frame.payload())
}

impl<S: Datagrams + 'static> Agent for FeedSender<S> {
    fn name(&self) -> &str {
        AgentRole::Feed.name()
    }

    #[inline]
    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        if !self.lengths.is_empty() && !self.send() {
            return Ok(0);
        }
        self.change_targets();
        let mut work = self.pack(now.monotonic_ns)?;
        if !self.lengths.is_empty() {
            crash_point("after_release_before_send");
            work += usize::from(self.send());
            self.heartbeats = 0;
            self.schedule_heartbeat(now.monotonic_ns);
        } else if now.monotonic_ns >= self.next_heartbeat_ns && self.lengths.is_empty() {
            self.send_heartbeat(now.monotonic_ns);
        }
        if self.is_ending
            && self.lengths.is_empty()
            && self.cursor.is_at_limit()
            && let Some(Feed { name, .. }) = self.feed.take()
        {
            let (next_number, next_ns) = (self.next_number, now.monotonic_ns);
            note_end(&mut self.ended, EndedFeed { name, next_number, announcements: 0, next_ns });
        }
        if self.lengths.is_empty() && self.ended.iter().any(|ended| now.monotonic_ns >= ended.next_ns) {
            self.announce_ended(now.monotonic_ns);
        }
        Ok(work)
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let ended = self.ended.iter().map(|ended| ended.next_ns);
        Some(ended.fold(self.next_heartbeat_ns, u64::min))
    }

    fn on_close(&mut self, _now: Now) -> Result<(), AgentError> {
        self.is_ending = self.ends_here && self.feed.is_some();
        Ok(())
    }

    fn is_drained(&self) -> bool {
        let is_ending =
            || self.feed.is_some() || self.ended.front().is_some_and(|ended| ended.announcements < LAST_END_COUNT);
        self.cursor.is_at_limit() && self.lengths.is_empty() && !(self.is_ending && is_ending())
    }
}

#[cfg(test)]
mod tests;
