//! [`Replayer`]: sends missed messages, from the window or the journal, to the requesting node. A request gets one
//! packet, and more only up to the allowance of the address, because it may be forged.

use crate::AgentRole;
use crate::counters::counters;
use gapless_agent::{Agent, AgentError, Now};
use gapless_client::ClientError;
use gapless_client::feed_sessions::SharedFeeds;
use gapless_client::replay_merge::{ReplayMerge, ReplayRead};
use gapless_transport::network::datagrams::{Datagrams, Peer, SendRefusal};
use gapless_transport::warnings::Warnings;
use gapless_wire::mold::{MoldRequest, PacketWriter};
use rustix::fd::BorrowedFd;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

counters! {
    pub struct ReplayerCounters {
        /// Requests whose frames were sent.
        answered: "replayer.requests_answered",
        /// Frames sent again.
        frames: "replayer.frames",
        /// Packets after the first of their request.
        further: "replayer.packets_further",
        /// Requests that were malformed, for other feed sessions, or for missing messages.
        refused: "replayer.requests_refused",
    }
}

pub struct Replayer<S> {
    socket: S,
    /// The latest first: requests of one node follow each other.
    readers: Vec<ReplayMerge>,
    make_reader: Box<dyn Fn(u64) -> ReplayMerge + Send>,
    feeds: SharedFeeds,
    counters: ReplayerCounters,
    requests: Vec<(Peer, MoldRequest)>,
    unfinished: VecDeque<(Peer, MoldRequest, u32)>,
    allowances: Allowances,
    warnings: Warnings,
    packet: Vec<u8>,
    polls_left: u32,
}

/// While no request arrives, the socket is read in one of this many polls: each read is a system call on the hot path.
const POLLS_PER_LOOK: u32 = 16;

const ANSWER_PACKETS_MAX: u32 = 64;
/// Messages share this thread.
const FURTHER_PER_POLL: usize = 8;
const UNFINISHED_MAX: usize = 64;

const READERS_MAX: usize = 8;

impl<S: Datagrams> Replayer<S> {
    /// An agent for the requests at `socket`.
    #[must_use]
    pub fn new(
        socket: S,
        make_reader: Box<dyn Fn(u64) -> ReplayMerge + Send>,
        feeds: SharedFeeds,
        packet_length_max: usize,
        counters: ReplayerCounters,
    ) -> Self {
        Self {
            socket,
            readers: Vec::new(),
            make_reader,
            feeds,
            counters,
            requests: Vec::new(),
            unfinished: VecDeque::new(),
            allowances: Allowances::default(),
            warnings: Warnings::default(),
            polls_left: 0,
            packet: vec![0; packet_length_max],
        }
    }

    /// Sends one packet with as many requested messages as fit. Returns their number: 0 if none is available.
    fn send_part(&mut self, to: Peer, request: MoldRequest) -> u16 {
        let feed = self.feeds.lock().find_by_name(request.feed_session).copied();
        let first = feed.and_then(|feed| feed.sequence_of(request.sequence));
        let (Some(feed), Some(first), true) = (feed, first, request.count > 0) else {
            return 0;
        };
        let mut reader = match self.readers.iter().position(|reader| reader.sequence() == first) {
            Some(index) => self.readers.remove(index),
            None => (self.make_reader)(first),
        };
        let mut writer = PacketWriter::new(&mut self.packet, feed.name, request.sequence);
        let mut count = 0;
        let released_sequence = reader.released_sequence();
        let outcome = loop {
            if count == request.count || !feed.holds(first + u64::from(count)) {
                break Ok(());
            }
            match reader.read() {
                Ok(ReplayRead::Frame(frame)) if writer.push(frame.bytes()) => count += 1,
                Ok(ReplayRead::Frame(frame)) => {
                    let length = frame.length();
                    reader.step_back(length);
                    break Ok(());
                }
                // Switching between window and journal returns empty once.
                Ok(ReplayRead::Empty) if first + u64::from(count) <= released_sequence => {}
                Ok(ReplayRead::Empty) | Err(ClientError::Lapped { .. }) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = outcome {
            // A request must not stop the stream: the journal's writer reports the journal's errors.
            self.warnings.warn_now(|| format!("a request cannot be answered from the journal: {error}"));
            return 0;
        }
        if count == 0 {
            return 0;
        }
        let length = writer.finish();
        // An unsent packet is requested again.
        if let Err(error) = self.socket.send(to, &self.packet[..length], length)
            && SendRefusal::is_too_narrow(&error)
        {
            self.warnings.warn_now(|| format!("a request cannot be answered: {error}"));
        }
        self.counters.frames.add(u64::from(count));
        self.readers.insert(0, reader);
        self.readers.truncate(READERS_MAX);
        count
    }

    fn answer(&mut self, to: Peer, request: MoldRequest) {
        // A client that requests the rest itself is answered by its requests, without duplicates.
        self.unfinished.retain(|(peer, rest, _)| *peer != to || !overlap(rest, &request));
        let count = self.send_part(to, request);
        if count == 0 {
            return self.counters.refused.add(1);
        }
        self.counters.answered.add(1);
        if let Some(rest) = rest_of(to, request, count, ANSWER_PACKETS_MAX - 1)
            && self.unfinished.len() < UNFINISHED_MAX
        {
            self.unfinished.push_back(rest);
        }
    }

    /// One request's in a row, because its reader is in place.
    fn send_due(&mut self, now_ns: u64) -> usize {
        let mut sent = 0;
        while sent < FURTHER_PER_POLL
            && let Some((to, request, packets_left)) = self.unfinished.pop_front()
        {
            if !self.allowances.take(to.ip(), now_ns) {
                continue;
            }
            let count = self.send_part(to, request);
            // 0: no messages are left, or none are there yet.
            if count > 0 {
                sent += 1;
                self.counters.further.add(1);
                if let Some(rest) = rest_of(to, request, count, packets_left - 1) {
                    self.unfinished.push_front(rest);
                }
            }
        }
        sent
    }
}

fn rest_of(to: Peer, request: MoldRequest, sent: u16, packets_left: u32) -> Option<(Peer, MoldRequest, u32)> {
    let (sequence, count) = (request.sequence + u64::from(sent), request.count - sent);
    (count > 0 && packets_left > 0).then_some((to, MoldRequest { sequence, count, ..request }, packets_left))
}

fn overlap(one: &MoldRequest, other: &MoldRequest) -> bool {
    let end = |request: &MoldRequest| request.sequence.saturating_add(u64::from(request.count));
    one.feed_session == other.feed_session && one.sequence < end(other) && other.sequence < end(one)
}

#[derive(Default)]
struct Allowances {
    by_address: HashMap<IpAddr, Allowance>,
    all: Option<Allowance>,
}

/// A token bucket.
#[derive(Clone, Copy)]
struct Allowance {
    packets: u64,
    at_ns: u64,
}

const ADDRESS_PACKETS_MAX: u64 = 256;
/// One more packet for an address after each, ns: 2,000 a second.
const ADDRESS_INTERVAL_NS: u64 = 500_000;
/// Like [`ADDRESS_PACKETS_MAX`], for all addresses.
const ALL_PACKETS_MAX: u64 = 1_024;
/// One more packet for all addresses together after each, ns: 20,000 a second.
const ALL_INTERVAL_NS: u64 = 50_000;
/// Others get no further packets until one has been quiet.
const ADDRESSES_MAX: usize = 256;

impl Allowance {
    fn take(&mut self, packets_max: u64, interval_ns: u64, now_ns: u64) -> bool {
        let earned = now_ns.saturating_sub(self.at_ns) / interval_ns;
        self.packets = self.packets.saturating_add(earned).min(packets_max);
        self.at_ns += earned * interval_ns;
        let may = self.packets > 0;
        self.packets -= u64::from(may);
        may
    }
}

impl Allowances {
    fn take(&mut self, address: IpAddr, now_ns: u64) -> bool {
        if !self.by_address.contains_key(&address) && self.by_address.len() >= ADDRESSES_MAX {
            // A full allowance need not be tracked.
            let full_ns = ADDRESS_PACKETS_MAX * ADDRESS_INTERVAL_NS;
            self.by_address.retain(|_, allowance| now_ns.saturating_sub(allowance.at_ns) < full_ns);
            if self.by_address.len() >= ADDRESSES_MAX {
                return false;
            }
        }
        let full = |packets| Allowance { packets, at_ns: now_ns };
        let own = self.by_address.entry(address).or_insert_with(|| full(ADDRESS_PACKETS_MAX));
        own.take(ADDRESS_PACKETS_MAX, ADDRESS_INTERVAL_NS, now_ns)
            && self.all.get_or_insert_with(|| full(ALL_PACKETS_MAX)).take(ALL_PACKETS_MAX, ALL_INTERVAL_NS, now_ns)
    }
}

impl<S: Datagrams> Agent for Replayer<S> {
    fn name(&self) -> &str {
        AgentRole::Replayer.name()
    }

    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        if self.polls_left > 0 {
            self.polls_left -= 1;
            return Ok(0);
        }
        let mut requests = std::mem::take(&mut self.requests);
        let refused = &self.counters.refused;
        self.socket.receive(&mut |from, bytes| match MoldRequest::from_bytes(bytes) {
            Ok(request) => requests.push((from, request)),
            Err(_) => refused.add(1),
        })?;
        let mut work = requests.len();
        for (from, request) in requests.drain(..) {
            self.answer(from, request);
        }
        self.requests = requests;
        // New requests may replace pending ones.
        work += self.send_due(now.monotonic_ns);
        if work == 0 {
            self.polls_left = POLLS_PER_LOOK;
        }
        Ok(work)
    }

    fn arm(&mut self) {
        // The last poll before sleep reads the socket.
        self.polls_left = 0;
    }

    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend(self.socket.fd());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn address(number: u32) -> IpAddr {
        IpAddr::from(number.to_be_bytes())
    }

    fn take_all(allowances: &mut Allowances, number: u32, now_ns: u64) -> usize {
        (0..5_000).take_while(|_| allowances.take(address(number), now_ns)).count()
    }

    #[test]
    fn address_allowance_is_enforced() {
        let mut allowances = Allowances::default();
        assert_eq!(take_all(&mut allowances, 1, 0), 256);
        assert_eq!(take_all(&mut allowances, 1, 499_999), 0);
        assert_eq!(take_all(&mut allowances, 1, 500_000), 1);
        assert_eq!(take_all(&mut allowances, 1, 10_400_000), 19);
        assert_eq!(take_all(&mut allowances, 1, 10_500_000), 1);
        assert_eq!(take_all(&mut allowances, 2, 10_500_000), 256, "each has its own");
        let second: usize = (0..1_000).map(|ms| take_all(&mut allowances, 1, SECOND_NS + ms * 1_000_000)).sum();
        assert_eq!(second, 256 + 2 * 999);
        assert_eq!(take_all(&mut allowances, 1, 60 * SECOND_NS), 256, "unused allowance does not accumulate");
    }

    #[test]
    fn total_allowance_is_enforced() {
        let mut allowances = Allowances::default();
        let at_once: usize = (0..300).map(|number| take_all(&mut allowances, number, 0)).sum();
        assert_eq!((at_once, allowances.by_address.len()), (1_024, 256));
        let second: usize = (0..250)
            .map(|turn| (0..256).map(|n| usize::from(allowances.take(address(n), turn * 4_000_000))).sum::<usize>())
            .sum();
        assert!((19_900..=20_100).contains(&second), "{second}");
        assert!(!allowances.take(address(900), SECOND_NS), "tracked addresses are not quiet yet");
        assert!(allowances.take(address(900), 2 * SECOND_NS));
        assert_eq!(allowances.by_address.len(), 1, "quiet addresses are no longer tracked");
    }
}
