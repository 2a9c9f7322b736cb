//! [`Connections`]: the control socket and its connections.

use crate::config::SupervisorConfig;
use crate::control::WHAT_TO_DO;
use crate::control::protocol::{Answer, Request, VERSION};
use crate::error::SupervisorError;
use crate::listening::OpenSocket;
use crate::packets::{Packets, Received};
use crate::state_directory::{Socket, StateDirectory};
use nix::sys::socket::{getsockopt, sockopt};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType};

const CONNECTIONS_MAX: usize = 64;
/// Connections reserved for owners, so that other users cannot lock them out.
const OWN_CONNECTIONS: usize = 8;
/// Time after which an idle connection is closed, ns. Connections of owners, subscribers and waiters stay open.
const IDLE_MAX_NS: u64 = 5_000_000_000;
/// Pause in accepting connections after `accept` has failed, for instance for lack of descriptors, ns.
const ACCEPT_PAUSE_NS: u64 = 100_000_000;
/// Limit of an error text, in characters, so that it fits into a packet.
pub const REASON_CHARACTERS_MAX: usize = 2000;

#[derive(Debug)]
pub struct Connections {
    listener: OpenSocket,
    /// User ids with all permissions.
    owners: Vec<u32>,
    all: Vec<Connection>,
    last_number: u64,
    /// End of the current pause in accepting, monotonic, ns; 0 without one.
    accept_at_ns: u64,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    packets: Packets,
    may: May,
    is_greeted: bool,
    /// Time of the connection or of its last request, monotonic, ns.
    asked_ns: u64,
    wants_events: bool,
    waits_for_end: bool,
}

impl Connection {
    /// Idle deadline.
    const fn idle_until_ns(&self) -> Option<u64> {
        let is_waited_for = self.wants_events || self.waits_for_end || matches!(self.may, May::Own);
        if is_waited_for { None } else { Some(self.asked_ns.saturating_add(IDLE_MAX_NS)) }
    }

    /// Handles the version handshake. Returns requests after it; errors are the reasons for a refusal.
    fn greeted(&mut self, request: Request) -> Result<Option<Request>, String> {
        match (request, self.is_greeted) {
            (Request::Hello { version: VERSION }, false) => {
                self.is_greeted = true;
                Ok(None)
            }
            (Request::Hello { version }, false) => Err(format!(
                "this command speaks version {version} of the protocol, and the supervisor version {VERSION}; {WHAT_TO_DO}"
            )),
            (Request::Hello { .. }, true) => Err("it says hello twice".to_owned()),
            (_, false) => Err(format!(
                "this command is that of an older gapless, and the supervisor speaks version {VERSION} of the protocol; {WHAT_TO_DO}"
            )),
            (request, true) => Ok(Some(request)),
        }
    }
}

/// Permission of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum May {
    /// Read status and events.
    Look,
    /// Also start, stop, scale and end.
    Steer,
    /// Also replace the configuration.
    Own,
}

impl Connections {
    pub fn open(directory: &StateDirectory, config: &SupervisorConfig) -> Result<Self, SupervisorError> {
        let listener = listen(directory, config)?;
        let owners = vec![0, rustix::process::geteuid().as_raw()];
        Ok(Self { listener, owners, all: Vec::new(), last_number: 0, accept_at_ns: 0 })
    }

    /// Reopens the socket for another group, and closes the connections that were admitted by the previous one.
    pub fn listen_anew(
        &mut self,
        directory: &StateDirectory,
        config: &SupervisorConfig,
    ) -> Result<(), SupervisorError> {
        self.listener = listen(directory, config)?;
        self.all.retain(|connection| connection.may == May::Own);
        Ok(())
    }

    /// Reopens the socket if its file was removed.
    pub fn listen_if_removed(
        &mut self,
        directory: &StateDirectory,
        config: &SupervisorConfig,
    ) -> Result<(), SupervisorError> {
        if !self.listener.is_reachable(directory) {
            self.listener = listen(directory, config)?;
        }
        Ok(())
    }

    pub fn poll_fds<'a>(&'a self, now_ns: u64, fds: &mut Vec<PollFd<'a>>) {
        if self.takes_more(now_ns) {
            fds.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        for connection in &self.all {
            let writable = if connection.packets.has_queued() { PollFlags::OUT } else { PollFlags::empty() };
            fds.push(PollFd::new(&connection.packets, PollFlags::IN | writable));
        }
    }

    const fn takes_more(&self, now_ns: u64) -> bool {
        self.all.len() < CONNECTIONS_MAX && self.accept_at_ns <= now_ns
    }

    /// Next time at which [`Connections::hear`] must run without input; monotonic, ns.
    pub fn next_ns(&self) -> Option<u64> {
        let accept = Some(self.accept_at_ns).filter(|at_ns| *at_ns > 0);
        self.all.iter().filter_map(Connection::idle_until_ns).chain(accept).min()
    }

    fn accept(&mut self, now_ns: u64, may_steer: bool) {
        if self.accept_at_ns <= now_ns {
            self.accept_at_ns = 0;
        }
        for _ in 0..CONNECTIONS_MAX {
            if !self.takes_more(now_ns) {
                return;
            }
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = match rustix::net::accept_with(&self.listener, flags) {
                Ok(socket) => socket,
                Err(errno) => return self.note_accept_error(now_ns, errno),
            };
            let Ok(peer) = getsockopt(&socket, sockopt::PeerCredentials) else { continue };
            let may = match (self.owners.contains(&peer.uid()), may_steer) {
                (true, _) => May::Own,
                (false, true) => May::Steer,
                (false, false) => May::Look,
            };
            let mut packets = Packets::over(socket);
            let others = self.all.iter().filter(|connection| connection.may < May::Own).count();
            if may < May::Own && others >= CONNECTIONS_MAX - OWN_CONNECTIONS {
                let reason = format!("the supervisor hears {others} commands already; try again");
                // The peer may be gone.
                let _ = packets.send(&Answer::Refused { reason });
                continue;
            }
            self.last_number += 1;
            self.all.push(Connection {
                number: self.last_number,
                packets,
                may,
                is_greeted: false,
                asked_ns: now_ns,
                wants_events: false,
                waits_for_end: false,
            });
        }
    }

    /// Pauses accepting: the listener stays readable while `accept` fails, and would be polled in a busy loop.
    fn note_accept_error(&mut self, now_ns: u64, errno: Errno) {
        if !matches!(errno, Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) {
            tracing::warn!("taking the connection of a command: {errno}");
            self.accept_at_ns = now_ns + ACCEPT_PAUSE_NS;
        }
    }

    /// Receives requests, at most one for each connection, with its number and permission.
    pub fn hear(&mut self, now_ns: u64, may_steer: bool) -> Vec<(u64, May, Request)> {
        self.accept(now_ns, may_steer);
        let mut asked = Vec::new();
        self.all.retain_mut(|connection| {
            if connection.packets.flush().is_err() {
                return false;
            }
            let refused = loop {
                match connection.packets.receive() {
                    Ok(Received::Packet(request)) => match connection.greeted(request) {
                        // The request follows.
                        Ok(None) => {}
                        Ok(Some(request)) => {
                            connection.asked_ns = now_ns;
                            asked.push((connection.number, connection.may, request));
                            return true;
                        }
                        Err(reason) => break reason,
                    },
                    Ok(Received::Nothing) => {
                        return connection.idle_until_ns().is_none_or(|until_ns| now_ns < until_ns);
                    }
                    Ok(Received::End) => return false,
                    Err(reason) => break reason,
                }
            };
            // The peer may be gone.
            let _ = connection.packets.send(&Answer::Refused { reason: refused });
            false
        });
        asked
    }

    /// Sends an answer, if the connection still exists.
    pub fn answer(&mut self, number: u64, answer: &Answer) {
        self.all.retain_mut(|connection| connection.number != number || connection.packets.send(answer).is_ok());
    }

    pub fn refuse(&mut self, number: u64, reason: &str) {
        let reason = reason.chars().take(REASON_CHARACTERS_MAX).collect();
        self.answer(number, &Answer::Refused { reason });
    }

    /// Sends events to the connection from now on.
    pub fn subscribe(&mut self, number: u64) {
        self.all.iter_mut().filter(|one| one.number == number).for_each(|one| one.wants_events = true);
    }

    /// Makes the connection wait for the end of all processes.
    pub fn await_end(&mut self, number: u64) {
        self.all.iter_mut().filter(|one| one.number == number).for_each(|one| one.waits_for_end = true);
    }

    /// Sends an answer to all subscribers of events.
    pub fn tell(&mut self, answer: &Answer) {
        self.all.retain_mut(|connection| !connection.wants_events || connection.packets.send(answer).is_ok());
    }

    /// Tells the waiting connections that all processes have ended, or why that failed.
    pub fn tell_end(&mut self, failure: Option<String>) {
        let answer = failure.map_or(Answer::Done, |reason| Answer::Refused { reason });
        for connection in &mut self.all {
            if std::mem::take(&mut connection.waits_for_end) {
                // The peer may be gone.
                let _ = connection.packets.send(&answer);
            }
        }
    }
}

fn listen(directory: &StateDirectory, config: &SupervisorConfig) -> Result<OpenSocket, SupervisorError> {
    let group = config.group.as_ref().map(|group| group.id);
    let own = Mode::RUSR | Mode::WUSR;
    let mode = if group.is_some() { own | Mode::RGRP | Mode::WGRP } else { own };
    OpenSocket::open(directory, Socket::Control, SocketType::SEQPACKET, mode, group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::ControlClient;
    use std::path::Path;
    use std::time::Duration;

    const SECOND: u64 = 1_000_000_000;

    fn open(folder: &Path) -> (StateDirectory, Connections) {
        let directory = StateDirectory::create(&folder.join("state"), None).unwrap();
        let config = SupervisorConfig::parse_in_force("", Path::new("/tmp/floor.toml")).unwrap();
        let connections = Connections::open(&directory, &config).unwrap();
        (directory, connections)
    }

    fn connect(directory: &StateDirectory) -> ControlClient {
        ControlClient::connect(directory.path()).unwrap().unwrap()
    }

    #[test]
    fn owners_are_not_locked_out() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, mut connections) = open(folder.path());
        let owners = std::mem::take(&mut connections.owners);
        let mut strangers: Vec<ControlClient> = (0..CONNECTIONS_MAX)
            .map(|_| {
                let client = connect(&directory);
                assert!(connections.hear(1, false).is_empty());
                client
            })
            .collect();
        let last = strangers.last_mut().unwrap();
        let refused = last.next(Duration::from_secs(10)).unwrap_err().to_string();
        assert!(refused.contains("56 commands already"), "{refused}");
        connections.owners = owners;
        let mut owner = connect(&directory);
        owner.ask(&Request::Down).unwrap();
        assert!(matches!(&connections.hear(1, false)[..], [(_, May::Own, Request::Down)]));
    }

    #[test]
    fn idle_connections_are_closed() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, mut connections) = open(folder.path());
        let _owner = connect(&directory);
        connections.hear(SECOND, false);
        connections.owners.clear();
        let _mute = connect(&directory);
        let mut follower = connect(&directory);
        let mut asker = connect(&directory);
        follower.ask(&Request::Events).unwrap();
        for (number, _, request) in connections.hear(SECOND, false) {
            assert_eq!(request, Request::Events);
            connections.subscribe(number);
        }
        assert_eq!(connections.next_ns(), Some(6 * SECOND));
        asker.ask(&Request::Status).unwrap();
        assert_eq!(connections.hear(4 * SECOND, false).len(), 1);
        assert_eq!(connections.all.len(), 4);
        connections.hear(6 * SECOND, false);
        assert_eq!((connections.all.len(), connections.next_ns()), (3, Some(9 * SECOND)));
        connections.hear(9 * SECOND, false);
        assert_eq!((connections.all.len(), connections.next_ns()), (2, None));
    }

    #[test]
    fn failed_accept_pauses_polling() {
        let folder = tempfile::tempdir().unwrap();
        let (_, mut connections) = open(folder.path());
        let polled = |connections: &Connections, now_ns| {
            let mut fds = Vec::new();
            connections.poll_fds(now_ns, &mut fds);
            fds.len()
        };
        connections.note_accept_error(SECOND, Errno::AGAIN);
        assert_eq!((polled(&connections, SECOND), connections.next_ns()), (1, None));
        connections.note_accept_error(SECOND, Errno::MFILE);
        let later_ns = SECOND + ACCEPT_PAUSE_NS;
        assert_eq!((polled(&connections, SECOND), connections.next_ns()), (0, Some(later_ns)));
        assert_eq!(polled(&connections, later_ns), 1);
        connections.hear(later_ns, false);
        assert_eq!(connections.next_ns(), None);
    }

    #[test]
    fn other_versions_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, mut connections) = open(folder.path());
        let mut said = |first: &Request| {
            let address = directory.socket_address(Socket::Control.file()).unwrap();
            let mut packets = Packets::connect(&address, std::time::Instant::now()).unwrap().unwrap();
            packets.send(first).unwrap();
            assert!(connections.hear(1, false).is_empty());
            let until = std::time::Instant::now() + Duration::from_secs(10);
            match packets.next_until(until).unwrap() {
                Some(Answer::Refused { reason }) => reason,
                other => panic!("{other:?}"),
            }
        };
        let newer = said(&Request::Hello { version: 99 });
        assert!(newer.contains("version 99") && newer.contains(&format!("version {VERSION}")), "{newer}");
        assert!(newer.contains("Upgrading"), "{newer}");
        let older = said(&Request::Status);
        assert!(older.contains("older gapless") && older.contains("Upgrading"), "{older}");
    }

    #[test]
    fn old_supervisor_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, mut connections) = open(folder.path());
        let mut client = connect(&directory);
        client.ask(&Request::Status).unwrap();
        connections.accept(1, false);
        // Answer of a supervisor without versions to an unknown request.
        let reason = "a packet cannot be read: unknown variant `hello`, expected one of `up`, `down`".to_owned();
        connections.answer(1, &Answer::Refused { reason });
        let error = client.next(Duration::from_secs(10)).unwrap_err().to_string();
        assert!(error.contains("older gapless") && error.contains("Upgrading"), "{error}");
    }
}
