//! `PendingConnections`: accepted connections before their handshake.

use super::connection::{ConnectionError, PeerConnection};
use super::error::DisconnectReason;
use super::options::MemberLinkOptions;
use super::tls::certificate_name;
use super::wire::{Introduction, LinkRefusal, LinkRefusalCode, MessageKind, VERSION, WireError};
use gapless_transport::sockets::Address;
use gapless_transport::sockets::Socket;
use gapless_transport::warnings::Warnings;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;

/// Counters of connections before their handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingStatistics {
    pub accepted: u64,
    /// First bytes were no message.
    pub garbage: u64,
    /// Connections dropped because they sent nothing for too long, or ended before they sent anything.
    pub silent: u64,
    /// Dropped for newer ones at the limit.
    pub displaced: u64,
    pub refused: u64,
}

#[derive(Debug)]
struct PendingConnection {
    connection: PeerConnection,
    address: Address,
    deadline_ns: u64,
    /// Stays open until the refusal is read.
    is_refused: bool,
}

enum HandshakeProgress {
    Pending,
    Member(Box<Introduction>),
    Refused(Box<LinkRefusal>),
    Garbage(String),
    Closed,
}

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

    pub(super) fn admit(&mut self, socket: Socket, address: Address, now_ns: u64, options: &MemberLinkOptions) {
        self.statistics.accepted += 1;
        if self.all.len() >= options.half_open_max {
            self.all.remove(0);
            self.statistics.displaced += 1;
            self.warnings.warn(now_ns, || format!("more than {} connections say nothing", options.half_open_max));
        }
        let deadline_ns = now_ns + options.handshake_ns_max;
        self.all.push(PendingConnection {
            connection: PeerConnection::new(socket),
            address,
            deadline_ns,
            is_refused: false,
        });
    }

    /// Checks each connection once; returns the next member that `judge` accepts.
    pub(super) fn next_member(
        &mut self,
        now_ns: u64,
        options: &MemberLinkOptions,
        mut judge: impl FnMut(&Introduction) -> Result<(), Box<LinkRefusal>>,
    ) -> Option<(PeerConnection, Introduction, Address)> {
        let mut index = 0;
        while let Some(pending) = self.all.get_mut(index) {
            let address = pending.address.clone();
            match pending.check(now_ns, &mut judge) {
                HandshakeProgress::Pending => {
                    index += 1;
                    continue;
                }
                HandshakeProgress::Refused(refusal) => {
                    self.statistics.refused += 1;
                    self.warnings.warn(now_ns, || format!("a member at {address} is refused: {refusal}"));
                    if pending.refuse(&refusal) {
                        pending.deadline_ns = now_ns + options.handshake_ns_max;
                        index += 1;
                        continue;
                    }
                }
                HandshakeProgress::Member(introduction) => {
                    let pending = self.all.remove(index);
                    return Some((pending.connection, *introduction, address));
                }
                HandshakeProgress::Garbage(error) => {
                    self.statistics.garbage += 1;
                    self.warnings.warn(now_ns, || format!("an unknown peer at {address} is dropped: {error}"));
                }
                HandshakeProgress::Closed if pending.is_refused => {}
                HandshakeProgress::Closed => {
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
    fn check(
        &mut self,
        now_ns: u64,
        judge: &mut impl FnMut(&Introduction) -> Result<(), Box<LinkRefusal>>,
    ) -> HandshakeProgress {
        if now_ns >= self.deadline_ns {
            return HandshakeProgress::Closed;
        }
        self.connection.socket.check();
        match self.connection.flush().and_then(|_| self.connection.read()) {
            Ok(true) => {}
            Ok(false) => return HandshakeProgress::Pending,
            Err(ConnectionError::System(error)) if error.kind() == io::ErrorKind::InvalidData => {
                return HandshakeProgress::Garbage(error.to_string());
            }
            Err(_) => return HandshakeProgress::Closed,
        }
        if self.is_refused {
            self.connection.discard();
            return HandshakeProgress::Pending;
        }
        let introduction = match self.connection.next_message() {
            Ok(None) => return HandshakeProgress::Pending,
            Ok(Some(message)) if message.kind == MessageKind::Hello => Introduction::parse(message.consensus),
            Ok(Some(message)) => Err(WireError::Kind { found: message.kind as u8 }),
            Err(error) => Err(error),
        };
        match introduction {
            Ok(introduction) => match judge(&introduction).and_then(|()| self.check_proof(&introduction)) {
                Ok(()) => HandshakeProgress::Member(Box::new(introduction)),
                Err(refusal) => HandshakeProgress::Refused(refusal),
            },
            Err(WireError::Version { found }) => {
                let text = format!("here version {VERSION}, there {found}");
                HandshakeProgress::Refused(Box::new(LinkRefusal::new(LinkRefusalCode::OtherVersion, text)))
            }
            Err(error) => HandshakeProgress::Garbage(error.to_string()),
        }
    }

    fn check_proof(&self, introduction: &Introduction) -> Result<(), Box<LinkRefusal>> {
        let member = introduction.from.member;
        let name = certificate_name(introduction.from.cluster.as_str(), member);
        if self.connection.socket.proves(&name) {
            return Ok(());
        }
        Err(Box::new(LinkRefusal::new(LinkRefusalCode::NotProven, format!("the certificate is not for {name}"))))
    }

    /// Returns whether to keep the connection until the refusal is read.
    fn refuse(&mut self, refusal: &LinkRefusal) -> bool {
        self.is_refused = true;
        // Unread bytes would reset the connection before the refusal is read.
        self.connection.discard();
        refuse(&mut self.connection, refusal).is_ok()
    }
}

pub(super) fn refuse(connection: &mut PeerConnection, refusal: &LinkRefusal) -> Result<(), ConnectionError> {
    connection.send(MessageKind::Refusal, &refusal.to_bytes(), &[], 0, usize::MAX)?;
    connection.socket.finish();
    Ok(())
}

impl From<ConnectionError> for DisconnectReason {
    fn from(broken: ConnectionError) -> Self {
        match broken {
            ConnectionError::Closed => Self::Closed,
            ConnectionError::System(error) => Self::Broken(error),
            ConnectionError::Wire(error) => Self::Garbage(error),
        }
    }
}
