//! [`PendingConnections`]: accepted connections before their handshake. Limited in number and in time.

use super::connection::{Broken, Connection};
use super::error::GoneReason;
use super::options::MemberLinkOptions;
use super::tls::certificate_name;
use super::wire::{Introduction, Kind, Refusal, RefusalCode, VERSION, WireError};
use gapless_transport::sockets::Address;
use gapless_transport::sockets::Socket;
use gapless_transport::warnings::Warnings;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;

/// Counters of the pending connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingStatistics {
    pub accepted: u64,
    /// Connections dropped because their first bytes were no message.
    pub garbage: u64,
    /// Connections dropped because they sent nothing for too long, or ended before they sent anything.
    pub silent: u64,
    /// Connections dropped for newer ones at the limit.
    pub displaced: u64,
    pub refused: u64,
}

#[derive(Debug)]
struct PendingConnection {
    connection: Connection,
    address: Address,
    deadline_ns: u64,
    /// Whether it was refused, and stays open until it has read the refusal.
    is_parting: bool,
}

/// Result of a check of a pending connection.
enum Verdict {
    Stays,
    Member(Box<Introduction>),
    Refused(Box<Refusal>),
    Garbage(String),
    Gone,
}

/// All pending connections, oldest first.
#[derive(Debug, Default)]
pub(super) struct PendingConnections {
    all: Vec<PendingConnection>,
    warnings: Warnings,
    pub(super) statistics: PendingStatistics,
}

impl PendingConnections {
    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a connection; if there are too many, the oldest is dropped.
    pub(super) fn admit(&mut self, socket: Socket, address: Address, now_ns: u64, options: &MemberLinkOptions) {
        self.statistics.accepted += 1;
        if self.all.len() >= options.half_open_max {
            self.all.remove(0);
            self.statistics.displaced += 1;
            self.warnings.warn(now_ns, || format!("more than {} connections say nothing", options.half_open_max));
        }
        let deadline_ns = now_ns + options.handshake_ns_max;
        self.all.push(PendingConnection {
            connection: Connection::new(socket),
            address,
            deadline_ns,
            is_parting: false,
        });
    }

    /// Checks each connection once. `judge` decides on acceptance. Returns the next accepted member, or `None`.
    pub(super) fn next_member(
        &mut self,
        now_ns: u64,
        options: &MemberLinkOptions,
        mut judge: impl FnMut(&Introduction) -> Result<(), Box<Refusal>>,
    ) -> Option<(Connection, Introduction, Address)> {
        let mut index = 0;
        while let Some(pending) = self.all.get_mut(index) {
            let address = pending.address.clone();
            match pending.look(now_ns, &mut judge) {
                Verdict::Stays => {
                    index += 1;
                    continue;
                }
                Verdict::Refused(refusal) => {
                    self.statistics.refused += 1;
                    self.warnings.warn(now_ns, || format!("a member at {address} is refused: {refusal}"));
                    if pending.part(&refusal) {
                        pending.deadline_ns = now_ns + options.handshake_ns_max;
                        index += 1;
                        continue;
                    }
                }
                Verdict::Member(introduction) => {
                    let pending = self.all.remove(index);
                    return Some((pending.connection, *introduction, address));
                }
                Verdict::Garbage(error) => {
                    self.statistics.garbage += 1;
                    self.warnings.warn(now_ns, || format!("an unknown peer at {address} is dropped: {error}"));
                }
                Verdict::Gone if pending.is_parting => {}
                Verdict::Gone => {
                    self.statistics.silent += 1;
                    self.warnings.warn(now_ns, || format!("an unknown peer at {address} said nothing"));
                }
            }
            self.all.remove(index);
        }
        None
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.all.iter().map(|pending| pending.connection.as_fd())
    }
}

impl PendingConnection {
    fn look(&mut self, now_ns: u64, judge: &mut impl FnMut(&Introduction) -> Result<(), Box<Refusal>>) -> Verdict {
        if now_ns >= self.deadline_ns {
            return Verdict::Gone;
        }
        self.connection.socket.check();
        match self.connection.flush().and_then(|_| self.connection.look()) {
            Ok(true) => {}
            Ok(false) => return Verdict::Stays,
            Err(Broken::System(error)) if error.kind() == io::ErrorKind::InvalidData => {
                return Verdict::Garbage(error.to_string());
            }
            Err(_) => return Verdict::Gone,
        }
        if self.is_parting {
            self.connection.discard();
            return Verdict::Stays;
        }
        let introduction = match self.connection.next_message() {
            Ok(None) => return Verdict::Stays,
            Ok(Some(message)) if message.kind == Kind::Hello => Introduction::parse(message.consensus),
            Ok(Some(message)) => Err(WireError::Kind { found: message.kind as u8 }),
            Err(error) => Err(error),
        };
        match introduction {
            Ok(introduction) => match judge(&introduction).and_then(|()| self.check_proof(&introduction)) {
                Ok(()) => Verdict::Member(Box::new(introduction)),
                Err(refusal) => Verdict::Refused(refusal),
            },
            Err(WireError::Version { found }) => {
                let text = format!("here version {VERSION}, there {found}");
                Verdict::Refused(Box::new(Refusal::new(RefusalCode::OtherVersion, text)))
            }
            Err(error) => Verdict::Garbage(error.to_string()),
        }
    }

    fn check_proof(&self, introduction: &Introduction) -> Result<(), Box<Refusal>> {
        let member = introduction.from.member;
        let name = certificate_name(introduction.from.cluster.as_str(), member);
        if self.connection.socket.proves(&name) {
            return Ok(());
        }
        Err(Box::new(Refusal::new(RefusalCode::NotProven, format!("the certificate is not for {name}"))))
    }

    /// Sends a refusal. Returns whether the connection should stay open until it was read.
    fn part(&mut self, refusal: &Refusal) -> bool {
        self.is_parting = true;
        // Unread bytes after the hello would reset the connection before the refusal is read.
        self.connection.discard();
        refuse(&mut self.connection, refusal).is_ok()
    }
}

/// Sends a refusal and closes the sending side.
pub(super) fn refuse(connection: &mut Connection, refusal: &Refusal) -> Result<(), Broken> {
    connection.send(Kind::Refusal, &refusal.to_bytes(), &[], 0, usize::MAX)?;
    connection.socket.finish();
    Ok(())
}

impl From<Broken> for GoneReason {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Closed => Self::Closed,
            Broken::System(error) => Self::Broken(error),
            Broken::Wire(error) => Self::Garbage(error),
        }
    }
}
