//! `Connections`: the control socket and its connections.

use crate::config::SupervisorConfig;
use crate::control::UPGRADE_ADVICE;
use crate::control::protocol::{SupervisorAnswer, SupervisorRequest, VERSION};
use crate::error::SupervisorError;
use crate::listening::OpenSocket;
use crate::packets::{PacketPoll, Packets};
use crate::state_directory::{StateDirectory, StateSocket};
use nix::sys::socket::{getsockopt, sockopt};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{SocketFlags, SocketType};

const CONNECTIONS_MAX: usize = 64;
/// Reserved, so that other users cannot lock owners out.
const OWN_CONNECTIONS: usize = 8;
/// Connections of owners, subscribers and waiters stay open.
const IDLE_MAX_NS: u64 = 5_000_000_000;
const ACCEPT_PAUSE_NS: u64 = 100_000_000;
/// Limit of an error text, in characters, so that it fits into a packet.
pub const REASON_CHARACTERS_MAX: usize = 2000;

#[derive(Debug)]
pub struct Connections {
    listener: OpenSocket,
    owners: Vec<u32>,
    all: Vec<ControlConnection>,
    last_number: u64,
    accept_at_ns: u64,
}

#[derive(Debug)]
struct ControlConnection {
    number: u64,
    packets: Packets,
    permission: Permission,
    is_greeted: bool,
    asked_ns: u64,
    wants_events: bool,
    waits_for_end: bool,
}

impl ControlConnection {
    const fn idle_until_ns(&self) -> Option<u64> {
        let is_waited_for = self.wants_events || self.waits_for_end || matches!(self.permission, Permission::Owner);
        if is_waited_for { None } else { Some(self.asked_ns.saturating_add(IDLE_MAX_NS)) }
    }

    fn greeted(&mut self, request: SupervisorRequest) -> Result<Option<SupervisorRequest>, String> {
        match (request, self.is_greeted) {
            (SupervisorRequest::Hello { version: VERSION }, false) => {
                self.is_greeted = true;
                Ok(None)
            }
            (SupervisorRequest::Hello { version }, false) => Err(format!(
                "this command speaks version {version} of the protocol, and the supervisor version {VERSION}; {UPGRADE_ADVICE}"
            )),
            (SupervisorRequest::Hello { .. }, true) => Err("it says hello twice".to_owned()),
            (_, false) => Err(format!(
                "this command is that of an older gapless, and the supervisor speaks version {VERSION} of the protocol; {UPGRADE_ADVICE}"
            )),
            (request, true) => Ok(Some(request)),
        }
    }
}

/// Permission of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    Read,
    Control,
    Owner,
}

impl Connections {
    pub fn open(directory: &StateDirectory, config: &SupervisorConfig) -> Result<Self, SupervisorError> {
        let listener = listen(directory, config)?;
        let owners = vec![0, rustix::process::geteuid().as_raw()];
        Ok(Self { listener, owners, all: Vec::new(), last_number: 0, accept_at_ns: 0 })
    }

    /// Reopens the socket for another group, and closes the connections admitted by the previous one.
    pub fn listen_again(
        &mut self,
        directory: &StateDirectory,
        config: &SupervisorConfig,
    ) -> Result<(), SupervisorError> {
        self.listener = listen(directory, config)?;
        self.all.retain(|connection| connection.permission == Permission::Owner);
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

    /// Next time at which [`Connections::receive`] must run without input; monotonic, ns.
    pub fn next_ns(&self) -> Option<u64> {
        let accept = Some(self.accept_at_ns).filter(|at_ns| *at_ns > 0);
        self.all.iter().filter_map(ControlConnection::idle_until_ns).chain(accept).min()
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
            let permission = match (self.owners.contains(&peer.uid()), may_steer) {
                (true, _) => Permission::Owner,
                (false, true) => Permission::Control,
                (false, false) => Permission::Read,
            };
            let mut packets = Packets::over(socket);
            let others = self.all.iter().filter(|connection| connection.permission < Permission::Owner).count();
            if permission < Permission::Owner && others >= CONNECTIONS_MAX - OWN_CONNECTIONS {
                let reason = format!("the supervisor hears {others} commands already; try again");
                // The peer may be gone.
                let _ = packets.send(&SupervisorAnswer::Refused { reason });
                continue;
            }
            self.last_number += 1;
            self.all.push(ControlConnection {
                number: self.last_number,
                packets,
                permission,
                is_greeted: false,
                asked_ns: now_ns,
                wants_events: false,
                waits_for_end: false,
            });
        }
    }

    /// The listener stays readable while `accept` fails, and would be polled in a busy loop.
    fn note_accept_error(&mut self, now_ns: u64, errno: Errno) {
        if !matches!(errno, Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) {
            tracing::warn!("taking the connection of a command: {errno}");
            self.accept_at_ns = now_ns + ACCEPT_PAUSE_NS;
        }
    }

    /// Receives at most one request for each connection, with its number and permission.
    pub fn receive(&mut self, now_ns: u64, may_steer: bool) -> Vec<(u64, Permission, SupervisorRequest)> {
        self.accept(now_ns, may_steer);
        let mut requests = Vec::new();
        self.all.retain_mut(|connection| {
            if connection.packets.flush().is_err() {
                return false;
            }
            let refused = loop {
                match connection.packets.receive() {
                    Ok(PacketPoll::Packet(request)) => match connection.greeted(request) {
                        Ok(None) => {}
                        Ok(Some(request)) => {
                            connection.asked_ns = now_ns;
                            requests.push((connection.number, connection.permission, request));
                            return true;
                        }
                        Err(reason) => break reason,
                    },
                    Ok(PacketPoll::Pending) => {
                        return connection.idle_until_ns().is_none_or(|until_ns| now_ns < until_ns);
                    }
                    Ok(PacketPoll::Closed) => return false,
                    Err(reason) => break reason,
                }
            };
            // The peer may be gone.
            let _ = connection.packets.send(&SupervisorAnswer::Refused { reason: refused });
            false
        });
        requests
    }

    /// Sends an answer, if the connection still exists.
    pub fn answer(&mut self, number: u64, answer: &SupervisorAnswer) {
        self.all.retain_mut(|connection| connection.number != number || connection.packets.send(answer).is_ok());
    }

    pub fn refuse(&mut self, number: u64, reason: &str) {
        let reason = reason.chars().take(REASON_CHARACTERS_MAX).collect();
        self.answer(number, &SupervisorAnswer::Refused { reason });
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
    pub fn publish(&mut self, answer: &SupervisorAnswer) {
        self.all.retain_mut(|connection| !connection.wants_events || connection.packets.send(answer).is_ok());
    }

    /// Tells the waiting connections that all processes have ended, or why that failed.
    pub fn answer_waiters(&mut self, failure: Option<String>) {
        let answer = failure.map_or(SupervisorAnswer::Done, |reason| SupervisorAnswer::Refused { reason });
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
    OpenSocket::open(directory, StateSocket::Control, SocketType::SEQPACKET, mode, group)
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
                assert!(connections.receive(1, false).is_empty());
                client
            })
            .collect();
        let last = strangers.last_mut().unwrap();
        let refused = last.next(Duration::from_secs(10)).unwrap_err().to_string();
        assert!(refused.contains("56 commands already"), "{refused}");
        connections.owners = owners;
        let mut owner = connect(&directory);
        owner.ask(&SupervisorRequest::Down).unwrap();
        assert!(matches!(&connections.receive(1, false)[..], [(_, Permission::Owner, SupervisorRequest::Down)]));
    }

    #[test]
    fn idle_connections_are_closed() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, mut connections) = open(folder.path());
        let _owner = connect(&directory);
        connections.receive(SECOND, false);
        connections.owners.clear();
        let _mute = connect(&directory);
        let mut follower = connect(&directory);
        let mut asker = connect(&directory);
        follower.ask(&SupervisorRequest::Events).unwrap();
        for (number, _, request) in connections.receive(SECOND, false) {
            assert_eq!(request, SupervisorRequest::Events);
            connections.subscribe(number);
        }
        assert_eq!(connections.next_ns(), Some(6 * SECOND));
        asker.ask(&SupervisorRequest::Status).unwrap();
        assert_eq!(connections.receive(4 * SECOND, false).len(), 1);
        assert_eq!(connections.all.len(), 4);
        connections.receive(6 * SECOND, false);
        assert_eq!((connections.all.len(), connections.next_ns()), (3, Some(9 * SECOND)));
        connections.receive(9 * SECOND, false);
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
        connections.receive(later_ns, false);
        assert_eq!(connections.next_ns(), None);
    }

    #[test]
    fn other_versions_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, mut connections) = open(folder.path());
        let mut said = |first: &SupervisorRequest| {
            let address = directory.socket_address(StateSocket::Control.file()).unwrap();
            let mut packets = Packets::connect(&address, std::time::Instant::now()).unwrap().unwrap();
            packets.send(first).unwrap();
            assert!(connections.receive(1, false).is_empty());
            let until = std::time::Instant::now() + Duration::from_secs(10);
            match packets.next_until(until).unwrap() {
                Some(SupervisorAnswer::Refused { reason }) => reason,
                other => panic!("{other:?}"),
            }
        };
        let newer = said(&SupervisorRequest::Hello { version: 99 });
        assert!(newer.contains("version 99") && newer.contains(&format!("version {VERSION}")), "{newer}");
        assert!(newer.contains("Upgrading"), "{newer}");
        let older = said(&SupervisorRequest::Status);
        assert!(older.contains("older gapless") && older.contains("Upgrading"), "{older}");
    }

    #[test]
    fn old_supervisor_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, mut connections) = open(folder.path());
        let mut client = connect(&directory);
        client.ask(&SupervisorRequest::Status).unwrap();
        connections.accept(1, false);
        let reason = "a packet cannot be read: unknown variant `hello`, expected one of `up`, `down`".to_owned();
        connections.answer(1, &SupervisorAnswer::Refused { reason });
        let error = client.next(Duration::from_secs(10)).unwrap_err().to_string();
        assert!(error.contains("older gapless") && error.contains("Upgrading"), "{error}");
    }
}
