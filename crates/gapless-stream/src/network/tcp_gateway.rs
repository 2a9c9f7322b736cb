//! [`TcpGateway`]: the agent of the command port over TCP. A node sends the same packets as to the datagram port, back
//! to back; its messages go into a ring of its own. Nothing is lost while it is connected: a full ring blocks its
//! connection, and so the node.

use super::client_sessions::{ClientSessions, Greeting, Offered};
use crate::counters::counters;
use crate::{AgentRole, StreamError};
use gapless_agent::{Agent, AgentError, Now};
use gapless_transport::network::tcp::{Received, TcpConnection};
use gapless_transport::network::tcp_server::{Slot, TcpServer};
use gapless_transport::warnings::Warnings;
use gapless_wire::upstream;
use gapless_wire::upstream::{Body, HELLO_LENGTH, PACKET_LENGTH_MAX, UpstreamPacket};
use rustix::fd::{AsFd, BorrowedFd};
use std::net::SocketAddr;

counters! {
    /// Counters of the agent, without those of its sessions.
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

enum Caller {
    /// Silent since this time.
    Anonymous { since_ns: u64 },
    Admitted {
        key: u64,
        /// Bytes of the first packet's frames that are in the ring already.
        taken: usize,
        /// There was no room for the remaining frames.
        is_stuck: bool,
    },
    /// Refused. After the refusal is sent, the node has until this time to close; see the rewind port.
    Leaving { until_ns: Option<u64> },
}

enum Ending {
    Left,
    Malformed(String),
    Silent,
}

pub struct TcpGateway {
    server: TcpServer<Caller>,
    sessions: ClientSessions,
    counters: TcpGatewayCounters,
    /// Buffer for the answers to a node, bytes.
    outgoing_bytes: usize,
    hello_timeout_ns: u64,
    next_timer_ns: u64,
    any_stuck: bool,
    now_ns: u64,
    warnings: Warnings,
}

const HELLO_TIMEOUT_NS: u64 = 5_000_000_000;
const ANSWER_PACKET_LENGTH_MAX: usize = 60_000;
/// Extra buffer for a welcome or a refusal, bytes.
const WELCOME_ROOM: usize = 4_096;
const TIMER_INTERVAL_NS: u64 = 50_000_000;
/// Interval of retrying a full ring, ns.
const STUCK_INTERVAL_NS: u64 = 50_000;
/// Time for a refused node to close its connection, ns.
const LEAVING_NS: u64 = 1_000_000_000;

impl TcpGateway {
    /// Listens at `local` for `sessions`, each with a ring of `reply_ring_bytes` for answers; port 0 picks a free one.
    ///
    /// # Errors
    /// The operating system's.
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
            // A ring's worth of frames with the headers of their packets.
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

    /// Serves every connection. Returns the work done.
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
                    if let Caller::Admitted { key, is_stuck: true, .. } = slot.state {
                        any_stuck = true;
                        // The report waits after the frames in the connection, so the node counts as seen.
                        sessions.heard(key, slot.connection.peer(), now_ns);
                    }
                    if is_timer_due { overdue(&slot.state, *hello_timeout_ns, now_ns) } else { None }
                }
                Err(ending) => Some(ending),
            };
            let Some(ending) = ending else { return true };
            let peer = slot.connection.peer();
            match ending {
                Ending::Left => tracing::debug!(%peer, "a node has hung up"),
                Ending::Malformed(error) => {
                    counters.dropped.add(1);
                    sessions.counters().malformed.add(1);
                    warnings.warn(now_ns, || format!("the node at {peer} is dropped: {error}"));
                }
                Ending::Silent => counters.silent.add(1),
            }
            if let Caller::Admitted { key, .. } = slot.state {
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
            self.server.retain(|slot| !matches!(slot.state, Caller::Admitted { key, .. } if gone.contains(&key)));
        }
    }
}

/// Receives from a connection and sends it pending answers. Returns the work done.
#[inline]
fn serve(
    slot: &mut Slot<Caller>,
    sessions: &mut ClientSessions,
    outgoing_bytes: usize,
    now_ns: u64,
) -> Result<usize, Ending> {
    let mut work = 0;
    match slot.receive() {
        Ok(Received::Nothing) => {}
        Ok(Received::Bytes(bytes)) => work += bytes,
        Ok(Received::Full) if matches!(slot.state, Caller::Admitted { .. }) => {}
        Ok(Received::Full) => slot.connection.discard_incoming(),
        Ok(Received::End) | Err(_) => return Err(Ending::Left),
    }
    let is_stuck = matches!(slot.state, Caller::Admitted { is_stuck: true, .. });
    if work > 0 || is_stuck {
        work += receive(slot, sessions, outgoing_bytes, now_ns)?;
    }
    if let Caller::Admitted { key, .. } = slot.state
        && slot.connection.unsent() == 0
    {
        let connection = &mut slot.connection;
        work += sessions.answer_one(key, ANSWER_PACKET_LENGTH_MAX, |_, _, packet| {
            assert!(connection.queue(packet), "an empty buffer has room for a ring of answers");
        });
    }
    let all_sent = slot.send().map_err(|_| Ending::Left)?;
    if let Caller::Leaving { until_ns: until_ns @ None } = &mut slot.state
        && all_sent
    {
        *until_ns = Some(now_ns + LEAVING_NS);
        slot.connection.finish();
    }
    Ok(work)
}

/// Takes the complete packets, as far as there is room for their frames. Returns the number of packets of frames taken.
fn receive(
    slot: &mut Slot<Caller>,
    sessions: &mut ClientSessions,
    outgoing_bytes: usize,
    now_ns: u64,
) -> Result<usize, Ending> {
    let Slot { connection, state, .. } = slot;
    let mut work = 0;
    loop {
        let malformed = |error: upstream::UpstreamError| Ending::Malformed(error.to_string());
        let Some(length) = upstream::peek(connection.incoming()).map_err(malformed)? else { return Ok(work) };
        if matches!(state, Caller::Anonymous { .. }) && length != HELLO_LENGTH {
            return Err(Ending::Malformed(format!("a first packet of {length} bytes, which is no hello")));
        }
        let Some(packet) = connection.incoming().get(..length) else { return Ok(work) };
        let UpstreamPacket { key, body } = UpstreamPacket::parse(packet).map_err(malformed)?;
        match (&mut *state, body) {
            (Caller::Leaving { .. }, _) => {}
            (Caller::Anonymous { .. } | Caller::Admitted { .. }, Body::Hello(hello)) => {
                let mut answer = [0; 512];
                let (greeting, answer_length) = sessions.greet(connection.peer(), &hello, now_ns, &mut answer);
                if matches!(state, Caller::Anonymous { .. }) {
                    connection.resize_incoming(PACKET_LENGTH_MAX);
                    connection.resize_outgoing(outgoing_bytes);
                }
                if !connection.queue(&answer[..answer_length]) {
                    return Err(Ending::Malformed("more hellos than it reads answers to".to_owned()));
                }
                *state = match greeting {
                    Greeting::Admitted(key) => Caller::Admitted { key, taken: 0, is_stuck: false },
                    Greeting::Refused => Caller::Leaving { until_ns: None },
                };
            }
            (Caller::Anonymous { .. }, _) => {
                return Err(Ending::Malformed("a first packet that is no hello".to_owned()));
            }
            (Caller::Admitted { key: own, .. }, _) if *own != key => {
                sessions.counters().unknown.add(1);
                return Err(Ending::Malformed("a packet with the key of another connection".to_owned()));
            }
            (Caller::Admitted { taken, is_stuck, .. }, Body::Frames(frames)) => {
                sessions.heard(key, connection.peer(), now_ns);
                match sessions.offer(key, &frames[*taken..]) {
                    Offered::All => (*taken, *is_stuck) = (0, false),
                    Offered::Part(bytes) => {
                        *taken += bytes;
                        *is_stuck = true;
                        return Ok(work + usize::from(bytes > 0));
                    }
                    Offered::Refused => return Err(Ending::Malformed("what is no frame among frames".to_owned())),
                }
            }
            (Caller::Admitted { .. }, Body::Report(report)) => {
                sessions.heard(key, connection.peer(), now_ns);
                sessions.reported(key, report);
            }
            (Caller::Admitted { .. }, Body::Farewell) => return Err(Ending::Left),
            (Caller::Admitted { .. }, Body::Welcome(_) | Body::Refusal { .. } | Body::Answers(_) | Body::Unknown) => {
                return Err(Ending::Malformed("a packet that only a sequencer sends".to_owned()));
            }
        }
        connection.consume(length);
        work += 1;
    }
}

/// The reason for closing a connection whose time is up.
fn overdue(caller: &Caller, hello_timeout_ns: u64, now_ns: u64) -> Option<Ending> {
    match caller {
        Caller::Anonymous { since_ns } if now_ns.saturating_sub(*since_ns) > hello_timeout_ns => Some(Ending::Silent),
        Caller::Leaving { until_ns: Some(until_ns) } if now_ns > *until_ns => Some(Ending::Left),
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
        let came = self.server.look(now.monotonic_ns, |socket, peer| {
            let connection = TcpConnection::over(socket, peer, HELLO_LENGTH, 0)?;
            Ok((connection, Caller::Anonymous { since_ns: now.monotonic_ns }))
        })?;
        if came.refused > 0 {
            self.counters.refused.add(came.refused);
        }
        if self.server.connections() == 0 {
            return Ok(came.events);
        }
        Ok(came.events + self.serve())
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
