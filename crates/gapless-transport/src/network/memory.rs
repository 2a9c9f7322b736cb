//! [`MemoryNetwork`]: for tests and simulation. Time is moved by hand and faults come from one seed, so the same calls
//! produce the same packets.

use super::datagrams::{Datagrams, Peer, check_even, check_uneven};
use super::random::Random;
use rustix::fd::BorrowedFd;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Default; see [`MemoryNetwork::set_queue_bytes_max`].
const QUEUE_BYTES_MAX: usize = 4 << 20;
const PACKET_OVERHEAD_BYTES: usize = 64;
const PACKETS_PER_RECEIVE: usize = 64;

/// Faults, independent for each packet and receiver; rates from 0 (never) to 1 (always).
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    pub loss: f64,
    pub duplication: f64,
    /// Held back by up to three more delays and at least 1 ns; other packets of the same sender and receiver keep their
    /// order.
    pub reordering: f64,
    pub corruption: f64,
    /// Uniform in this range.
    pub delay_ns: RangeInclusive<u64>,
}

impl Faults {
    pub const NONE: Self = Self { loss: 0.0, duplication: 0.0, reordering: 0.0, corruption: 0.0, delay_ns: 0..=0 };

    fn check(&self) {
        for rate in [self.loss, self.duplication, self.reordering, self.corruption] {
            assert!((0.0..=1.0).contains(&rate), "a rate of {rate} is not between 0 and 1");
        }
        assert!(!self.delay_ns.is_empty(), "the delays {:?} hold nothing", self.delay_ns);
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self::NONE
    }
}

/// `sent + duplicated` is the sum of `delivered`, `lost`, `cut`, `overflowed`, `unreachable` and the packets in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounters {
    /// A packet to a group counts once for each member.
    pub sent: u64,
    /// Including copies and damaged packets.
    pub delivered: u64,
    pub lost: u64,
    pub duplicated: u64,
    pub corrupted: u64,
    /// Delivered after a later packet of the same sender and receiver; copies do not count.
    pub reordered: u64,
    pub cut: u64,
    pub overflowed: u64,
    pub unreachable: u64,
}

/// Clones are the same network.
#[derive(Clone)]
pub struct MemoryNetwork {
    state: Arc<Mutex<NetworkState>>,
}

impl MemoryNetwork {
    /// No sockets, time 0.
    ///
    /// # Panics
    /// If a rate is not between 0 and 1, or the range of delays is empty.
    #[must_use]
    pub fn new(seed: u64, faults: Faults) -> Self {
        faults.check();
        let state = NetworkState {
            random: Random::new(seed),
            faults,
            now_ns: 0,
            packets_ever: 0,
            queue_bytes_max: QUEUE_BYTES_MAX,
            ends: BTreeMap::new(),
            groups: BTreeMap::new(),
            links: BTreeMap::new(),
            cuts: BTreeSet::new(),
            counters: MemoryCounters::default(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Opens a socket at `address`.
    ///
    /// # Errors
    /// The address is in use.
    pub fn socket(&self, address: Peer) -> io::Result<MemorySocket> {
        let mut state = self.lock();
        if state.ends.contains_key(&address) {
            let reason = format!("a socket at {address} exists already");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, reason));
        }
        state.ends.insert(address, MemoryEndpoint::default());
        Ok(MemorySocket { network: self.clone(), address, arrived: Vec::with_capacity(PACKETS_PER_RECEIVE) })
    }

    /// Sets the faults of later packets; packets in flight keep their fate.
    ///
    /// # Panics
    /// As for [`MemoryNetwork::new`].
    pub fn set_faults(&self, faults: Faults) {
        faults.check();
        self.lock().faults = faults;
    }

    /// Limit on packets in flight to and waiting at each socket, a packet counting 64 bytes more than its contents;
    /// more are dropped and counted.
    pub fn set_queue_bytes_max(&self, bytes: usize) {
        self.lock().queue_bytes_max = bytes;
    }

    /// Packets that the socket at `address` takes before it reports no room; `None` for no limit.
    ///
    /// # Panics
    /// If no socket has this address.
    pub fn set_send_room(&self, address: Peer, packets: Option<usize>) {
        let mut state = self.lock();
        let Some(end) = state.ends.get_mut(&address) else { panic!("no socket is at {address}") };
        end.send_room = packets;
    }

    pub fn cut(&self, one: Peer, other: Peer) {
        self.cut_one_way(one, other);
        self.cut_one_way(other, one);
    }

    pub fn cut_one_way(&self, from: Peer, to: Peer) {
        self.lock().cuts.insert((from, to));
    }

    pub fn heal(&self, one: Peer, other: Peer) {
        let mut state = self.lock();
        state.cuts.remove(&(one, other));
        state.cuts.remove(&(other, one));
    }

    pub fn heal_all(&self) {
        self.lock().cuts.clear();
    }

    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.lock().now_ns
    }

    pub fn advance(&self, ns: u64) {
        self.lock().now_ns += ns;
    }

    /// Sets the time to `now_ns`.
    ///
    /// # Panics
    /// If `now_ns` is in the past.
    pub fn set_time(&self, now_ns: u64) {
        let mut state = self.lock();
        assert!(now_ns >= state.now_ns, "the time {} would go back to {now_ns}", state.now_ns);
        state.now_ns = now_ns;
    }

    /// Time of the next packet, ns; in the past if one is waiting. Nothing happens before, so a simulator may jump
    /// there.
    #[must_use]
    pub fn next_arrival_ns(&self) -> Option<u64> {
        self.lock().ends.values().filter_map(|end| end.queue.first_key_value()).map(|(key, _)| key.arrival_ns).min()
    }

    #[must_use]
    pub fn counters(&self) -> MemoryCounters {
        self.lock().counters
    }

    fn lock(&self) -> MutexGuard<'_, NetworkState> {
        // A test that panicked here has failed; the next one's message should not be about a lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves the network when dropped.
pub struct MemorySocket {
    network: MemoryNetwork,
    address: Peer,
    arrived: Vec<QueuedPacket>,
}

impl MemorySocket {
    /// Receives packets to `group`, including its own. Any address becomes a group when a socket joins it; a socket
    /// with that address no longer receives its packets.
    pub fn join(&self, group: Peer) {
        self.network.lock().groups.entry(group).or_default().insert(self.address);
    }

    pub fn leave(&self, group: Peer) {
        if let Some(members) = self.network.lock().groups.get_mut(&group) {
            members.remove(&self.address);
        }
    }
}

impl Datagrams for MemorySocket {
    fn send(&mut self, to: Peer, bytes: &[u8], packet_length: usize) -> io::Result<usize> {
        check_even(to, bytes, packet_length)?;
        let mut state = self.network.lock();
        let packets = bytes.chunks(packet_length).take_while(|packet| state.take(self.address, to, packet));
        Ok(packets.map(<[u8]>::len).sum())
    }

    fn send_uneven(&mut self, to: Peer, mut bytes: &[u8], lengths: &[usize]) -> io::Result<usize> {
        check_uneven(to, bytes, lengths)?;
        let mut state = self.network.lock();
        let mut take = |length: &&usize| {
            let (packet, rest) = bytes.split_at(**length);
            bytes = rest;
            state.take(self.address, to, packet)
        };
        Ok(lengths.iter().take_while(|length| take(length)).count())
    }

    fn receive(&mut self, take: &mut dyn FnMut(Peer, &[u8])) -> io::Result<usize> {
        // The lock is released first: `take` may send.
        self.network.lock().deliver(self.address, &mut self.arrived);
        let count = self.arrived.len();
        for packet in self.arrived.drain(..) {
            take(packet.from, &packet.bytes);
        }
        Ok(count)
    }

    fn local_address(&self) -> Peer {
        self.address
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Drop for MemorySocket {
    fn drop(&mut self) {
        self.network.lock().close(self.address);
    }
}

struct NetworkState {
    random: Random,
    faults: Faults,
    now_ns: u64,
    packets_ever: u64,
    queue_bytes_max: usize,
    // Iteration must not depend on a hash's seed.
    ends: BTreeMap<Peer, MemoryEndpoint>,
    groups: BTreeMap<Peer, BTreeSet<Peer>>,
    links: BTreeMap<(Peer, Peer), LinkState>,
    cuts: BTreeSet<(Peer, Peer)>,
    counters: MemoryCounters,
}

#[derive(Default)]
struct MemoryEndpoint {
    queue: BTreeMap<ArrivalOrder, QueuedPacket>,
    queue_bytes: usize,
    send_room: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ArrivalOrder {
    arrival_ns: u64,
    number: u64,
}

struct QueuedPacket {
    from: Peer,
    /// One allocation for all members of a group.
    bytes: Arc<[u8]>,
    link_number: u64,
    is_copy: bool,
}

#[derive(Default)]
struct LinkState {
    sent: u64,
    /// Keeps packets in order unless they are held back.
    last_arrival_ns: u64,
    delivered: u64,
}

impl NetworkState {
    fn take(&mut self, from: Peer, to: Peer, packet: &[u8]) -> bool {
        if let Some(room) = self.ends.get_mut(&from).and_then(|end| end.send_room.as_mut()) {
            if *room == 0 {
                return false;
            }
            *room -= 1;
        }
        let bytes: Arc<[u8]> = packet.into();
        match self.groups.get(&to) {
            Some(members) => {
                for member in members.clone() {
                    self.send(from, member, &bytes);
                }
            }
            None => self.send(from, to, &bytes),
        }
        true
    }

    fn send(&mut self, from: Peer, to: Peer, bytes: &Arc<[u8]>) {
        self.counters.sent += 1;
        let link = self.links.entry((from, to)).or_default();
        link.sent += 1;
        let link_number = link.sent;
        if self.cuts.contains(&(from, to)) {
            self.counters.cut += 1;
            return;
        }
        if self.random.chance(self.faults.loss) {
            self.counters.lost += 1;
            return;
        }
        let copies = self.random.chance(self.faults.duplication);
        self.queue(to, QueuedPacket { from, bytes: Arc::clone(bytes), link_number, is_copy: false });
        if copies {
            self.counters.duplicated += 1;
            self.queue(to, QueuedPacket { from, bytes: Arc::clone(bytes), link_number, is_copy: true });
        }
    }

    fn queue(&mut self, to: Peer, mut packet: QueuedPacket) {
        if self.random.chance(self.faults.corruption) {
            packet.bytes = self.damaged(&packet.bytes);
            self.counters.corrupted += 1;
        }
        let arrival_ns = self.arrival_ns(packet.from, to);
        self.packets_ever += 1;
        let arrival = ArrivalOrder { arrival_ns, number: self.packets_ever };
        let Some(end) = self.ends.get_mut(&to) else {
            self.counters.unreachable += 1;
            return;
        };
        let queue_bytes = end.queue_bytes + packet.bytes.len() + PACKET_OVERHEAD_BYTES;
        if queue_bytes > self.queue_bytes_max {
            self.counters.overflowed += 1;
            return;
        }
        end.queue_bytes = queue_bytes;
        end.queue.insert(arrival, packet);
    }

    fn arrival_ns(&mut self, from: Peer, to: Peer) -> u64 {
        let (shortest_ns, longest_ns) = (*self.faults.delay_ns.start(), *self.faults.delay_ns.end());
        let arrival_ns = self.now_ns + self.random.between(shortest_ns, longest_ns);
        let is_held_back = self.random.chance(self.faults.reordering);
        let link = self.links.entry((from, to)).or_default();
        if is_held_back {
            let further_ns = self.random.between(1, longest_ns.saturating_mul(3).max(1));
            return link.last_arrival_ns.max(arrival_ns) + further_ns;
        }
        link.last_arrival_ns = link.last_arrival_ns.max(arrival_ns);
        link.last_arrival_ns
    }

    fn damaged(&mut self, bytes: &[u8]) -> Arc<[u8]> {
        let mut damaged: Arc<[u8]> = bytes.into();
        let bit = self.random.between(0, bytes.len() as u64 * 8 - 1) as usize;
        if let Some(bytes) = Arc::get_mut(&mut damaged) {
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        damaged
    }

    fn deliver(&mut self, to: Peer, arrived: &mut Vec<QueuedPacket>) {
        let Some(end) = self.ends.get_mut(&to) else { return };
        while arrived.len() < PACKETS_PER_RECEIVE {
            let Some(first) = end.queue.first_entry() else { return };
            if first.key().arrival_ns > self.now_ns {
                return;
            }
            let packet = first.remove();
            end.queue_bytes -= packet.bytes.len() + PACKET_OVERHEAD_BYTES;
            self.counters.delivered += 1;
            let link = self.links.entry((packet.from, to)).or_default();
            if packet.link_number < link.delivered && !packet.is_copy {
                self.counters.reordered += 1;
            }
            link.delivered = link.delivered.max(packet.link_number);
            arrived.push(packet);
        }
    }

    fn close(&mut self, address: Peer) {
        if let Some(end) = self.ends.remove(&address) {
            self.counters.unreachable += end.queue.len() as u64;
        }
        for members in self.groups.values_mut() {
            members.remove(&address);
        }
    }
}
