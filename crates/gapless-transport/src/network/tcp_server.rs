//! [`TcpServer`]: a port and its connections, for a polling agent. One edge-triggered `epoll` reports the events of
//! all; each is remembered until a read or write finds nothing more to do, so an unread connection costs no system
//! calls.

use super::tcp::{Received, TcpConnection};
use crate::TransportError;
use crate::sockets::tcp::accept;
use crate::warnings::Warnings;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};

pub struct ConnectionSlot<T> {
    pub connection: TcpConnection,
    pub state: T,
    may_read: bool,
    may_write: bool,
}

impl<T> ConnectionSlot<T> {
    /// Like [`TcpConnection::receive`], if there may be bytes.
    ///
    /// # Errors
    /// As for [`TcpConnection::receive`].
    #[inline]
    pub fn receive(&mut self) -> io::Result<Received> {
        if !self.may_read {
            return Ok(Received::Nothing);
        }
        let received = self.connection.receive()?;
        self.may_read = received != Received::Nothing;
        Ok(received)
    }

    /// Like [`TcpConnection::send`], if there may be room.
    ///
    /// # Errors
    /// As for [`TcpConnection::send`].
    #[inline]
    pub fn send(&mut self) -> io::Result<bool> {
        if self.connection.unsent() > 0 && self.may_write {
            self.may_write = self.connection.send()?;
        }
        Ok(self.connection.unsent() == 0)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollResult {
    pub events: usize,
    /// Closed at once because of the limit.
    pub refused: u64,
}

pub struct TcpServer<T> {
    listener: TcpListener,
    local_address: SocketAddr,
    epoll: OwnedFd,
    slots: Vec<Option<ConnectionSlot<T>>>,
    connections: usize,
    connections_max: usize,
    next_poll_ns: u64,
    last_packet_ns: u64,
    may_accept: bool,
    next_accept_ns: u64,
    warnings: Warnings,
}

const PORT: u64 = u64::MAX;
const EVENTS_MAX: usize = 64;
const ACCEPTS_MAX: usize = 16;
/// Next poll after the quiet time divided by this: a call costs most of a microsecond, and an event is seen late by at
/// most a quarter of the time before it.
const POLL_DIVISOR: u64 = 4;
const POLL_INTERVAL_NS_MAX: u64 = 20_000;
/// Pause after the system ran out of descriptors, ns.
const ACCEPT_PAUSE_NS: u64 = 100_000_000;

impl<T> TcpServer<T> {
    /// Port 0 picks a free one.
    ///
    /// # Errors
    /// The operating system refuses the port.
    pub fn bind(local: SocketAddr, connections_max: usize) -> Result<Self, TransportError> {
        let action = || format!("listening at {local}");
        let failed = |source| TransportError::System { action: action(), source };
        let listener = TcpListener::bind(local).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let local_address = listener.local_addr().map_err(failed)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(TransportError::system(action()))?;
        epoll::add(&epoll, &listener, EventData::new_u64(PORT), EventFlags::IN)
            .map_err(TransportError::system(action()))?;
        Ok(Self {
            listener,
            local_address,
            epoll,
            slots: Vec::new(),
            connections: 0,
            connections_max,
            next_poll_ns: 0,
            last_packet_ns: 0,
            may_accept: false,
            next_accept_ns: 0,
            warnings: Warnings::default(),
        })
    }

    #[must_use]
    pub const fn local_address(&self) -> SocketAddr {
        self.local_address
    }

    #[must_use]
    pub const fn connections(&self) -> usize {
        self.connections
    }

    /// Asks for events; `make` wraps a new connection's socket.
    ///
    /// # Errors
    /// An error of the operating system that a retry cannot fix.
    pub fn poll_sockets(
        &mut self,
        now_ns: u64,
        make: impl FnMut(OwnedFd, SocketAddr) -> io::Result<(TcpConnection, T)>,
    ) -> Result<PollResult, TransportError> {
        let mut result = PollResult::default();
        if now_ns < self.next_poll_ns {
            return Ok(result);
        }
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        let events = match epoll::wait(&self.epoll, &mut room, Some(&none)) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(result),
            Err(errno) => return Err(TransportError::system("looking for connections")(errno)),
        };
        result.events = events.len();
        for event in events {
            let token = event.data.u64();
            if token == PORT {
                self.may_accept = true;
            } else if let Some(Some(slot)) = self.slots.get_mut(token as usize) {
                let flags = event.flags;
                slot.may_read |=
                    flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
                slot.may_write |= flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR);
            }
        }
        if std::mem::take(&mut self.may_accept) && now_ns >= self.next_accept_ns {
            result.refused = self.accept(now_ns, make);
        }
        if result.events > 0 {
            self.last_packet_ns = now_ns;
        } else {
            let quiet_ns = now_ns.saturating_sub(self.last_packet_ns);
            self.next_poll_ns = now_ns + (quiet_ns / POLL_DIVISOR).min(POLL_INTERVAL_NS_MAX);
        }
        Ok(result)
    }

    fn accept(
        &mut self,
        now_ns: u64,
        mut make: impl FnMut(OwnedFd, SocketAddr) -> io::Result<(TcpConnection, T)>,
    ) -> u64 {
        let mut refused = 0;
        for _ in 0..ACCEPTS_MAX {
            let (stream, peer) = match accept(&self.listener) {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                    continue;
                }
                Err(error) => {
                    let at = self.local_address;
                    self.warnings.warn(now_ns, || format!("no connection can be accepted at {at} now: {error}"));
                    self.next_accept_ns = now_ns + ACCEPT_PAUSE_NS;
                    break;
                }
            };
            if self.connections >= self.connections_max {
                refused += 1;
                continue;
            }
            let connected = stream.set_nonblocking(true).and_then(|()| make(OwnedFd::from(stream), peer));
            let Ok((connection, state)) = connected else {
                refused += 1;
                continue;
            };
            let index = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            let watched = epoll::add(&self.epoll, &connection, EventData::new_u64(index as u64), flags);
            if let Err(error) = watched {
                // Out of memory or watches: a new connection must not end the existing ones.
                self.warnings.warn(now_ns, || format!("the connection of {peer} cannot be watched: {error}"));
                refused += 1;
                continue;
            }
            let slot = Some(ConnectionSlot { connection, state, may_read: true, may_write: true });
            if index == self.slots.len() {
                self.slots.push(slot);
            } else {
                self.slots[index] = slot;
            }
            self.connections += 1;
        }
        refused
    }

    #[inline]
    pub fn retain(&mut self, mut visit: impl FnMut(&mut ConnectionSlot<T>) -> bool) {
        for place in &mut self.slots {
            if place.as_mut().is_some_and(|slot| !visit(slot)) {
                // Closing also removes it from the epoll.
                *place = None;
                self.connections -= 1;
            }
        }
    }

    pub fn slots(&self) -> impl Iterator<Item = &ConnectionSlot<T>> {
        self.slots.iter().flatten()
    }
}

impl<T> AsFd for TcpServer<T> {
    /// Readable when [`TcpServer::poll_sockets`] has events.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::wait::turn_until;
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::net::sockopt::tcp_nodelay;

    fn server() -> TcpServer<()> {
        TcpServer::bind(SocketAddr::from(([127, 0, 0, 1], 0)), 1).unwrap()
    }

    fn poll_sockets(server: &mut TcpServer<()>, now_ns: u64) -> usize {
        server.poll_sockets(now_ns, |socket, peer| Ok((TcpConnection::over(socket, peer, 8, 8)?, ()))).unwrap().events
    }

    fn wait(server: &TcpServer<()>) {
        poll(&mut [PollFd::new(server, PollFlags::IN)], None).unwrap();
    }

    fn connected(now_ns: u64) -> (TcpServer<()>, TcpConnection) {
        let mut server = server();
        let client = TcpConnection::connect(server.local_address(), 8, 8).unwrap();
        wait(&server);
        poll_sockets(&mut server, now_ns);
        assert_eq!(server.connections(), 1);
        wait(&server);
        assert_eq!(poll_sockets(&mut server, now_ns), 1);
        (server, client)
    }

    #[test]
    fn both_ends_send_without_delay() {
        let (server, client) = connected(1_000_000);
        let accepted = &server.slots().next().unwrap().connection;
        assert!(tcp_nodelay(&client).unwrap() && tcp_nodelay(accepted).unwrap());
    }

    #[test]
    fn polls_get_rarer_after_an_event() {
        let (mut server, mut client) = connected(1_000_000);
        let mut say = |server: &TcpServer<()>| {
            client.queue(b"a");
            turn_until("it is sent", || client.send().unwrap());
            wait(server);
        };
        assert_eq!(poll_sockets(&mut server, 1_004_000), 0);
        say(&server);
        assert_eq!(poll_sockets(&mut server, 1_004_999), 0, "a quarter of 4 µs has not passed");
        assert_eq!(poll_sockets(&mut server, 1_005_000), 1);
        assert_eq!(poll_sockets(&mut server, 2_000_000), 0);
        say(&server);
        assert_eq!(poll_sockets(&mut server, 2_019_999), 0);
        assert_eq!(poll_sockets(&mut server, 2_020_000), 1);
    }
}
