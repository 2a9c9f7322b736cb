//! [`Network`]: byte connections on virtual time. Like TCP, it delivers in order or not at all. It may be slow,
//! partitioned in one direction or both, break, deliver in pieces, and accept little at once.

use crate::random::Random;
use crate::trace::{Trace, hash_of};
use gapless_transport::sockets::{Pipe, PipeListener, Pipes};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes per direction.
const BUFFER_BYTES: usize = 192 << 10;
const PORT: u16 = 4100;

/// Unwinds a member that is killed in the middle of a turn.
pub(crate) struct KillSignal;

pub(crate) fn address_of(member: u64) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, PORT + member as u16))
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NetworkRoute {
    pub cut_until_ns: u64,
    pub delay_ns: u64,
    /// 0 for unlimited.
    pub bytes_per_ms: u64,
}

#[derive(Debug)]
pub(crate) struct Network {
    state: Mutex<NetworkState>,
    /// Descriptor that never becomes readable: everything is polled.
    nothing: OwnedFd,
}

#[derive(Debug)]
pub(crate) struct NetworkState {
    pub now_ns: u64,
    pub trace: Trace,
    random: Random,
    pub delay_ns_max: u64,
    routes: BTreeMap<(u64, u64), NetworkRoute>,
    /// Connections to them are not answered.
    powered_off: Vec<u64>,
    listeners: BTreeMap<SocketAddr, VecDeque<u64>>,
    connections: BTreeMap<u64, SimulatedConnection>,
    connections_made: u64,
    /// Member to be killed, and at which of its sends.
    killed: Option<(u64, u64)>,
}

#[derive(Debug)]
struct SimulatedConnection {
    opens_ns: u64,
    /// Dialling, then accepting.
    ends: [ConnectionEnd; 2],
}

#[derive(Debug)]
struct ConnectionEnd {
    member: u64,
    is_open: bool,
    /// The machine lost power without notice to the other end.
    is_vanished: bool,
    is_broken: bool,
    incoming: VecDeque<PieceInFlight>,
    incoming_bytes: usize,
    last_arrival_ns: u64,
}

#[derive(Debug)]
enum PieceInFlight {
    Bytes { arrives_ns: u64, bytes: Vec<u8>, taken: usize },
    Finish { arrives_ns: u64 },
    Reset { arrives_ns: u64 },
}

impl PieceInFlight {
    const fn arrives_ns(&self) -> u64 {
        match self {
            Self::Bytes { arrives_ns, .. } | Self::Finish { arrives_ns } | Self::Reset { arrives_ns } => *arrives_ns,
        }
    }
}

impl ConnectionEnd {
    const fn new(member: u64) -> Self {
        Self {
            member,
            is_open: true,
            is_vanished: false,
            is_broken: false,
            incoming: VecDeque::new(),
            incoming_bytes: 0,
            last_arrival_ns: 0,
        }
    }
}

impl Network {
    pub(crate) fn new(seed: u64, trace: Trace) -> io::Result<Arc<Self>> {
        let nothing = OwnedFd::from(std::fs::File::open("/dev/null")?);
        let state = NetworkState {
            now_ns: 0,
            trace,
            random: Random::of(seed, &[1]),
            delay_ns_max: 0,
            routes: BTreeMap::new(),
            powered_off: Vec::new(),
            listeners: BTreeMap::new(),
            connections: BTreeMap::new(),
            connections_made: 0,
            killed: None,
        };
        Ok(Arc::new(Self { state: Mutex::new(state), nothing }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, NetworkState> {
        // A killed member unwinds, but never while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NetworkState {
    pub(crate) fn route_mut(&mut self, from: u64, to: u64) -> &mut NetworkRoute {
        self.routes.entry((from, to)).or_default()
    }

    pub(crate) fn heal(&mut self) {
        self.routes.clear();
        self.killed = None;
    }

    /// Kills just before or after the `sends`-th next send.
    pub(crate) const fn kill(&mut self, member: u64, sends: u64) {
        self.killed = Some((member, sends));
    }

    pub(crate) const fn cancel_kill(&mut self) {
        self.killed = None;
    }

    pub(crate) fn set_powered_off(&mut self, member: u64, is_powered_off: bool) {
        self.powered_off.retain(|other| *other != member);
        if is_powered_off {
            self.powered_off.push(member);
            for connection in self.connections.values_mut() {
                for end in connection.ends.iter_mut().filter(|end| end.member == member) {
                    end.is_vanished = true;
                }
            }
        }
    }

    /// Breaks one end or both.
    pub(crate) fn break_one(&mut self, member: u64) {
        let of_member = |connection: &SimulatedConnection| connection.ends.iter().any(|end| end.member == member);
        let all: Vec<u64> = self.connections.iter().filter(|(_, each)| of_member(each)).map(|(id, _)| *id).collect();
        if all.is_empty() {
            return;
        }
        let id = self.random.pick(&all);
        let sides = 1 + self.random.below(3);
        if let Some(connection) = self.connections.get_mut(&id) {
            for (side, end) in connection.ends.iter_mut().enumerate() {
                end.is_broken |= sides & (1 << side) != 0;
            }
        }
    }

    fn is_cut(&self, from: u64, to: u64) -> bool {
        self.routes.get(&(from, to)).is_some_and(|route| self.now_ns < route.cut_until_ns)
    }

    fn arrival_ns(&mut self, from: u64, to: u64, length: usize) -> u64 {
        let route = self.routes.get(&(from, to)).copied().unwrap_or_default();
        let sending_ns = (length as u64 * 1_000_000).checked_div(route.bytes_per_ms).unwrap_or(0);
        let delay_ns_max = self.delay_ns_max;
        self.now_ns + route.delay_ns + sending_ns + self.random.below(delay_ns_max + 1)
    }

    fn push(&mut self, id: u64, to_side: usize, piece: impl FnOnce(u64) -> PieceInFlight, length: usize) {
        let Some(connection) = self.connections.get(&id) else { return };
        let (from, to) = (connection.ends[1 - to_side].member, connection.ends[to_side].member);
        let arrives_ns = self.arrival_ns(from, to, length);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let end = &mut connection.ends[to_side];
        end.last_arrival_ns = arrives_ns.max(end.last_arrival_ns);
        end.incoming_bytes += length;
        let arrives_ns = end.last_arrival_ns;
        end.incoming.push_back(piece(arrives_ns));
        self.trace.fold(&[self.now_ns, id, to_side as u64, arrives_ns, length as u64]);
    }

    fn receive(&mut self, id: u64, side: usize, room: &mut [u8]) -> io::Result<usize> {
        let Some(connection) = self.connections.get(&id) else { return Err(ErrorKind::ConnectionReset.into()) };
        let (end, other) = (&connection.ends[side], &connection.ends[1 - side]);
        if end.is_broken {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let is_held = self.is_cut(other.member, end.member);
        let now_ns = self.now_ns;
        let limit = if self.random.happens_per_100_000(2_000) {
            1 + self.random.below(room.len() as u64) as usize
        } else {
            room.len()
        };
        let Some(connection) = self.connections.get_mut(&id) else { return Err(ErrorKind::ConnectionReset.into()) };
        let end = &mut connection.ends[side];
        let mut filled = 0;
        while filled < limit && !is_held {
            let Some(piece) = end.incoming.front_mut().filter(|piece| piece.arrives_ns() <= now_ns) else { break };
            match piece {
                PieceInFlight::Bytes { bytes, taken, .. } => {
                    let length = (bytes.len() - *taken).min(limit - filled);
                    room[filled..filled + length].copy_from_slice(&bytes[*taken..*taken + length]);
                    *taken += length;
                    filled += length;
                    end.incoming_bytes -= length;
                    if *taken == bytes.len() {
                        end.incoming.pop_front();
                    }
                }
                PieceInFlight::Finish { .. } if filled == 0 => return Ok(0),
                PieceInFlight::Reset { .. } if filled == 0 => {
                    end.is_broken = true;
                    return Err(ErrorKind::ConnectionReset.into());
                }
                PieceInFlight::Finish { .. } | PieceInFlight::Reset { .. } => break,
            }
        }
        if filled == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(filled) }
    }

    fn send(&mut self, id: u64, side: usize, bytes: &[u8]) -> io::Result<usize> {
        let Some(connection) = self.connections.get_mut(&id) else { return Err(ErrorKind::BrokenPipe.into()) };
        if connection.ends[side].is_broken {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let other = &connection.ends[1 - side];
        let room = BUFFER_BYTES.saturating_sub(other.incoming_bytes);
        if other.is_vanished && !self.powered_off.contains(&other.member) {
            // The machine has power again, and forgot this connection.
            connection.ends[side].is_broken = true;
            return Err(ErrorKind::ConnectionReset.into());
        }
        if room == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let mut length = bytes.len().min(room);
        if self.random.happens_per_100_000(1_000) {
            length = 1 + self.random.below(length as u64) as usize;
        }
        let sent = bytes[..length].to_vec();
        let hash = hash_of(&sent);
        self.trace.fold(&[hash]);
        self.push(id, 1 - side, |arrives_ns| PieceInFlight::Bytes { arrives_ns, bytes: sent, taken: 0 }, length);
        Ok(length)
    }

    fn close(&mut self, id: u64, side: usize) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.ends[side].is_open = false;
        if connection.ends.iter().all(|end| !end.is_open) {
            self.connections.remove(&id);
            return;
        }
        if !connection.ends[side].is_vanished {
            if self.random.happens_per_100_000(50_000) {
                self.push(id, 1 - side, |arrives_ns| PieceInFlight::Finish { arrives_ns }, 0);
            } else {
                self.push(id, 1 - side, |arrives_ns| PieceInFlight::Reset { arrives_ns }, 0);
            }
        }
    }

    /// Checked before it sends.
    const fn is_killed_now(&mut self, member: u64) -> bool {
        match &mut self.killed {
            Some((killed, sends)) if *killed == member => {
                *sends = sends.saturating_sub(1);
                *sends == 0
            }
            _ => false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct MemberPort {
    pub network: Arc<Network>,
    pub member: u64,
}

impl Pipes for MemberPort {
    fn dial(&self, address: SocketAddr) -> io::Result<Box<dyn Pipe>> {
        let mut state = self.network.lock();
        let to = u64::from(address.port() - PORT);
        state.connections_made += 1;
        let id = state.connections_made;
        let opens_ns = state.arrival_ns(self.member, to, 0);
        let mut ends = [ConnectionEnd::new(self.member), ConnectionEnd::new(to)];
        let is_powered_off = state.powered_off.contains(&to);
        // Closed until it is accepted.
        ends[1].is_open = false;
        match state.listeners.get_mut(&address) {
            Some(backlog) => backlog.push_back(id),
            None if is_powered_off => ends[1].is_vanished = true,
            None => ends[0].is_broken = true,
        }
        state.connections.insert(id, SimulatedConnection { opens_ns, ends });
        drop(state);
        Ok(Box::new(SimulatedPipe { network: Arc::clone(&self.network), id, side: 0, member: self.member }))
    }

    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn PipeListener>> {
        let mut state = self.network.lock();
        if state.listeners.contains_key(&address) {
            return Err(ErrorKind::AddrInUse.into());
        }
        state.listeners.insert(address, VecDeque::new());
        drop(state);
        Ok(Box::new(SimulatedListener { network: Arc::clone(&self.network), address, member: self.member }))
    }
}

#[derive(Debug)]
struct SimulatedPipe {
    network: Arc<Network>,
    id: u64,
    side: usize,
    member: u64,
}

impl Pipe for SimulatedPipe {
    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.network.lock().receive(self.id, self.side, room)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.network.lock();
        if state.is_killed_now(self.member) {
            // The kill comes before the message leaves, or after it left and before anything else.
            if state.random.happens_per_100_000(50_000) {
                let _ = state.send(self.id, self.side, bytes);
            }
            drop(state);
            // Unlike a panic, this prints nothing.
            std::panic::resume_unwind(Box::new(KillSignal));
        }
        state.send(self.id, self.side, bytes)
    }

    fn finish(&self) {
        let mut state = self.network.lock();
        state.push(self.id, 1 - self.side, |arrives_ns| PieceInFlight::Finish { arrives_ns }, 0);
    }
}

impl Drop for SimulatedPipe {
    fn drop(&mut self) {
        self.network.lock().close(self.id, self.side);
    }
}

impl AsFd for SimulatedPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.network.nothing.as_fd()
    }
}

#[derive(Debug)]
struct SimulatedListener {
    network: Arc<Network>,
    address: SocketAddr,
    member: u64,
}

impl PipeListener for SimulatedListener {
    fn accept(&self) -> io::Result<(Box<dyn Pipe>, SocketAddr)> {
        let mut state = self.network.lock();
        let backlog = state.listeners.get(&self.address).cloned().unwrap_or_default();
        for (at, id) in backlog.into_iter().enumerate() {
            let Some(connection) = state.connections.get(&id) else { continue };
            let from = connection.ends[0].member;
            let is_here = connection.opens_ns <= state.now_ns;
            if !is_here || state.is_cut(from, self.member) || state.is_cut(self.member, from) {
                continue;
            }
            if let Some(backlog) = state.listeners.get_mut(&self.address) {
                backlog.remove(at);
            }
            if let Some(connection) = state.connections.get_mut(&id) {
                connection.ends[1].is_open = true;
            }
            drop(state);
            let wire = SimulatedPipe { network: Arc::clone(&self.network), id, side: 1, member: self.member };
            return Ok((Box::new(wire), address_of(from)));
        }
        // Drops connections that were closed before they were accepted.
        let NetworkState { listeners, connections, .. } = &mut *state;
        if let Some(backlog) = listeners.get_mut(&self.address) {
            backlog.retain(|id| connections.contains_key(id));
        }
        Err(ErrorKind::WouldBlock.into())
    }
}

impl Drop for SimulatedListener {
    fn drop(&mut self) {
        let mut state = self.network.lock();
        for id in state.listeners.remove(&self.address).unwrap_or_default() {
            if let Some(connection) = state.connections.get_mut(&id) {
                if connection.ends[1].is_vanished {
                    continue;
                }
                connection.ends[0].is_broken = true;
            }
        }
    }
}

impl AsFd for SimulatedListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.network.nothing.as_fd()
    }
}
