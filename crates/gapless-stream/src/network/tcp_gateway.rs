//! [`TcpGateway`]: the command port over TCP, with the packets of the datagram port back to back. Nothing is lost while
//! a node is connected: a full ring blocks its connection.

use super::client_sessions::{AdmissionResult, ClientSessions, OfferResult};
use crate::counters::counters;
use crate::{AgentRole, StreamError};
use gapless_agent::{Agent, AgentError, Now};
use gapless_transport::network::tcp::{Received, TcpConnection};
use gapless_transport::network::tcp_server::{ConnectionSlot, TcpServer};
use gapless_transport::warnings::Warnings;
use gapless_wire::upstream;
use gapless_wire::upstream::{HELLO_LENGTH, PACKET_LENGTH_MAX, UpstreamBody, UpstreamPacket};
use rustix::fd::{AsFd, BorrowedFd};
use std::net::SocketAddr;

counters! {
    /// Counters without those of sessions.
    pub struct TcpGatewayCounters {
        /// Connections, including those without a welcome.
        connections: "tcp-gateway.connections",
        /// Connections closed at once because of the limit.
        refused: "tcp-gateway.connections_refused",
        /// Connections dropped for invalid packets or frames.
        dropped: "tcp-gateway.connections_dropped",
        /// Connections dropped because no hello arrived.
        silent: "tcp-gateway.connections_silent",
    }
}

enum TcpNodeState {
    Anonymous {
        since_ns: u64,
    },
    Admitted {
        key: u64,
        delivered_bytes: usize,
        is_stuck: bool,
    },
    /// Refused. The node closes first, until this time; see the rewind port.
    Leaving {
        until_ns: Option<u64>,
    },
}

enum NodeDisconnect {
    Left,
    Malformed(String),
    Silent,
}

pub struct TcpGateway {
    server: TcpServer<TcpNodeState>,
    sessions: ClientSessions,
    counters: TcpGatewayCounters,
    outgoing_bytes: usize,
    hello_timeout_ns: u64,
    next_timer_ns: u64,
    any_stuck: bool,
    now_ns: u64,
    warnings: Warnings,
}

const HELLO_TIMEOUT_NS: u64 = 5_000_000_000;
const ANSWER_PACKET_LENGTH_MAX: usize = 60_000;
const WELCOME_ROOM: usize = 4_096;
const TIMER_INTERVAL_NS: u64 = 50_000_000;
const STUCK_INTERVAL_NS: u64 = 50_000;
const LEAVING_NS: u64 = 1_000_000_000;

impl TcpGateway {
    /// Listens at `local` (port 0: a free one); answers go through rings of `reply_ring_bytes`.
    ///
    /// # Errors
    /// The operating system refuses the port.
    pub fn bind(
        local: SocketAddr,
        sessions: ClientSessions,
        (connections_max, reply_ring_bytes): (usize, usize),
        counters: TcpGatewayCounters,
    ) -> Result<Self, StreamError> {
        Ok(Self {
            server: TcpServer::bind(local, connections_max)?,
            sessions,
            counters,
            outgoing_bytes: 2 * reply_ring_bytes + WELCOME_ROOM,
            hello_timeout_ns: HELLO_TIMEOUT_NS,
            next_timer_ns: 0,
            any_stuck: false,
            now_ns: 0,
            warnings: Warnings::default(),
        })
    }

    #[must_use]
    pub const fn local_address(&self) -> SocketAddr {
        self.server.local_address()
    }

    fn serve(&mut self) -> usize {
        let Self { server, sessions, counters, outgoing_bytes, hello_timeout_ns, now_ns, warnings, .. } = self;
        let now_ns = *now_ns;
        let is_timer_due = now_ns >= self.next_timer_ns;
        let (mut work, mut any_stuck) = (0, false);
        server.retain(|slot| {
            let served = serve(slot, sessions, *outgoing_bytes, now_ns);
            let ending = match served {
                Ok(count) => {
                    work += count;
                    if let TcpNodeState::Admitted { key, is_stuck: true, .. } = slot.state {
                        any_stuck = true;
                        // The report waits after the frames in the connection, so the node counts as seen.
                        sessions.client_mut(key, slot.connection.peer(), now_ns);
                    }
                    if is_timer_due { overdue(&slot.state, *hello_timeout_ns, now_ns) } else { None }
                }
                Err(ending) => Some(ending),
            };
            let Some(ending) = ending else { return true };
            let peer = slot.connection.peer();
            match ending {
                NodeDisconnect::Left => tracing::debug!(%peer, "a node has hung up"),
                NodeDisconnect::Malformed(error) => {
                    counters.dropped.add(1);
                    sessions.counters().malformed.add(1);
                    warnings.warn(now_ns, || format!("the node at {peer} is dropped: {error}"));
                }
                NodeDisconnect::Silent => counters.silent.add(1),
            }
            if let TcpNodeState::Admitted { key, .. } = slot.state {
                sessions.leave(key);
            }
            false
        });
        sessions.flush();
        self.any_stuck = any_stuck;
        if is_timer_due {
            self.next_timer_ns = now_ns + TIMER_INTERVAL_NS;
            self.sweep();
        }
        self.counters.connections.set(self.server.connections() as u64);
        work
    }

    fn sweep(&mut self) {
        let mut gone = Vec::new();
        self.sessions.sweep(self.now_ns, |key, _| gone.push(key));
        if !gone.is_empty() {
            self.server.retain(|slot| !matches!(slot.state, TcpNodeState::Admitted { key, .. } if gone.contains(&key)));
        }
    }
}

#[inline]
fn serve(
    slot: &mut ConnectionSlot<TcpNodeState>,
    sessions: &mut ClientSessions,
    outgoing_bytes: usize,
    now_ns: u64,
) -> Result<usize, NodeDisconnect> {
    let mut work = 0;
    match slot.receive() {
        Ok(Received::Nothing) => {}
        Ok(Received::Bytes(bytes)) => work += bytes,
        Ok(Received::Full) if matches!(slot.state, TcpNodeState::Admitted { .. }) => {}
        Ok(Received::Full) => slot.connection.discard_incoming(),
        Ok(Received::End) | Err(_) => return Err(NodeDisconnect::Left),
    }
    let is_stuck = matches!(slot.state, TcpNodeState::Admitted { is_stuck: true, .. });
    if work > 0 || is_stuck {
        work += receive(slot, sessions, outgoing_bytes, now_ns)?;
    }
    if let TcpNodeState::Admitted { key, .. } = slot.state
        && slot.connection.unsent() == 0
    {
        let connection = &mut slot.connection;
        work += sessions.answer_one(key, ANSWER_PACKET_LENGTH_MAX, |_, _, packet| {
            assert!(connection.queue(packet), "an empty buffer has room for a ring of answers");
        });
    }
    let all_sent = slot.send().map_err(|_| NodeDisconnect::Left)?;
    if let TcpNodeState::Leaving { until_ns: until_ns @ None } = &mut slot.state
        && all_sent
    {
        *until_ns = Some(now_ns + LEAVING_NS);
        slot.connection.finish();
    }
    Ok(work)
}

/// Takes the complete packets, as far as there is room for their frames. Returns the number of packets of frames taken.
fn receive(
    slot: &mut ConnectionSlot<TcpNodeState>,
    sessions: &mut ClientSessions,
    outgoing_bytes: usize,
    now_ns: u64,
) -> Result<usize, NodeDisconnect> {
    let ConnectionSlot { connection, state, .. } = slot;
    let mut work = 0;
    loop {
        let malformed = |error: upstream::UpstreamError| NodeDisconnect::Malformed(error.to_string());
        let Some(length) = upstream::peek(connection.incoming()).map_err(malformed)? else { return Ok(work) };
        if matches!(state, TcpNodeState::Anonymous { .. }) && length != HELLO_LENGTH {
            return Err(NodeDisconnect::Malformed(format!("a first packet of {length} bytes, which is no hello")));
        }
        let Some(packet) = connection.incoming().get(..length) else { return Ok(work) };
        let UpstreamPacket { key, body } = UpstreamPacket::parse(packet).map_err(malformed)?;
        match (&mut *state, body) {
            (TcpNodeState::Leaving { .. }, _) => {}
            (TcpNodeState::Anonymous { .. } | TcpNodeState::Admitted { .. }, UpstreamBody::Hello(hello)) => {
                let mut answer = [0; 512];
                let (greeting, answer_length) = sessions.handle_hello(connection.peer(), &hello, now_ns, &mut answer);
                if matches!(state, TcpNodeState::Anonymous { .. }) {
                    connection.resize_incoming(PACKET_LENGTH_MAX);
                    connection.resize_outgoing(outgoing_bytes);
                }
                if !connection.queue(&answer[..answer_length]) {
                    return Err(NodeDisconnect::Malformed("more hellos than it reads answers to".to_owned()));
                }
                *state = match greeting {
                    AdmissionResult::Admitted(key) => {
                        TcpNodeState::Admitted { key, delivered_bytes: 0, is_stuck: false }
                    }
                    AdmissionResult::Refused => TcpNodeState::Leaving { until_ns: None },
                };
            }
            (TcpNodeState::Anonymous { .. }, _) => {
                return Err(NodeDisconnect::Malformed("a first packet that is no hello".to_owned()));
            }
            (TcpNodeState::Admitted { key: own, .. }, _) if *own != key => {
                sessions.counters().unknown.add(1);
                return Err(NodeDisconnect::Malformed("a packet with the key of another connection".to_owned()));
            }
            (TcpNodeState::Admitted { delivered_bytes, is_stuck, .. }, UpstreamBody::Frames(frames)) => {
                sessions.client_mut(key, connection.peer(), now_ns);
                match sessions.offer(key, &frames[*delivered_bytes..]) {
                    OfferResult::All => (*delivered_bytes, *is_stuck) = (0, false),
                    OfferResult::Part(bytes) => {
                        *delivered_bytes += bytes;
                        *is_stuck = true;
                        return Ok(work + usize::from(bytes > 0));
                    }
                    OfferResult::Refused => {
                        return Err(NodeDisconnect::Malformed("what is no frame among frames".to_owned()));
                    }
                }
            }
            (TcpNodeState::Admitted { .. }, UpstreamBody::Report(report)) => {
                sessions.client_mut(key, connection.peer(), now_ns);
                sessions.note_report(key, report);
            }
            (TcpNodeState::Admitted { .. }, UpstreamBody::Farewell) => return Err(NodeDisconnect::Left),
            (
                TcpNodeState::Admitted { .. },
                UpstreamBody::Welcome(_)
                | UpstreamBody::Refusal { .. }
                | UpstreamBody::Answers(_)
                | UpstreamBody::Unknown,
            ) => {
                return Err(NodeDisconnect::Malformed("a packet that only a sequencer sends".to_owned()));
            }
        }
        connection.consume(length);
        work += 1;
    }
}

fn overdue(caller: &TcpNodeState, hello_timeout_ns: u64, now_ns: u64) -> Option<NodeDisconnect> {
    match caller {
        TcpNodeState::Anonymous { since_ns } if now_ns.saturating_sub(*since_ns) > hello_timeout_ns => {
            Some(NodeDisconnect::Silent)
        }
        TcpNodeState::Leaving { until_ns: Some(until_ns) } if now_ns > *until_ns => Some(NodeDisconnect::Left),
        _ => None,
    }
}

impl Agent for TcpGateway {
    fn name(&self) -> &str {
        AgentRole::TcpGateway.name()
    }

    #[inline]
    fn poll(&mut self, now: Now) -> Result<usize, AgentError> {
        self.now_ns = now.monotonic_ns;
        let arrivals = self.server.poll_sockets(now.monotonic_ns, |socket, peer| {
            let connection = TcpConnection::over(socket, peer, HELLO_LENGTH, 0)?;
            Ok((connection, TcpNodeState::Anonymous { since_ns: now.monotonic_ns }))
        })?;
        if arrivals.refused > 0 {
            self.counters.refused.add(arrivals.refused);
        }
        if self.server.connections() == 0 {
            return Ok(arrivals.events);
        }
        Ok(arrivals.events + self.serve())
    }

    fn watch<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.server.as_fd());
        self.sessions.watch(descriptors);
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        if self.any_stuck {
            // Room in a ring causes no wake-up.
            return Some(self.now_ns + STUCK_INTERVAL_NS);
        }
        (self.server.connections() > 0).then_some(self.next_timer_ns)
    }

    fn arm(&mut self) {
        self.sessions.arm();
    }

    fn disarm(&mut self) {
        self.sessions.disarm();
    }
}
