//! A client of the rewind port: a feed session from any frame. SoupBinTCP 3.00; the connection is read only as fast as
//! its messages are taken.

use gapless_transport::network::TcpConnection;
use gapless_transport::network::tcp::Received;
use gapless_wire::feed_session::FeedSession;
use gapless_wire::soup::{
    Field, HEADER_LENGTH, HEARTBEAT_INTERVAL_NS, LOGIN_LENGTH, Login, PACKET_LENGTH_MAX, RejectReason, ServerPacket,
    SoupError, write_client_heartbeat, write_login, write_logout,
};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
use std::net::SocketAddr;

/// Reason why a rewind ends before its feed session does.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    /// The connection failed, or could not be made. Open a new rewind.
    #[error(transparent)]
    Connection(#[from] io::Error),
    /// The connection ended before the feed session did. Open a new rewind from the next message.
    #[error("the server closed the connection")]
    HungUp,
    /// A packet cannot be parsed. Check that the address is that of a rewind port.
    #[error(transparent)]
    Malformed(#[from] SoupError),
    /// The user name or password is wrong, or the server does not have the feed session.
    #[error("the login was rejected: {0:?}")]
    Rejected(RejectReason),
    /// The server does not have the requested message. Ask another server.
    #[error("the server begins at number {number} of feed session {feed_session}, not at the requested message")]
    Elsewhere { feed_session: FeedSession, number: u64 },
    /// The server has broken the protocol. Open a new rewind.
    #[error("unexpected packet: {0}")]
    OutOfPlace(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RewindRequest {
    pub username: Field<6>,
    pub password: Field<10>,
    pub feed_session: FeedSession,
    /// First wanted message in the feed session, from 1.
    pub number: u64,
}

#[derive(Debug)]
struct SoupReader {
    state: RewindState,
    feed_session: FeedSession,
    next_number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RewindState {
    LoggingIn,
    Reading,
    Ended,
}

impl SoupReader {
    const fn new(request: &RewindRequest) -> Self {
        Self { state: RewindState::LoggingIn, feed_session: request.feed_session, next_number: request.number }
    }

    #[inline]
    fn take(&mut self, packet: &ServerPacket<'_>) -> Result<bool, RewindError> {
        match (packet, self.state) {
            (ServerPacket::Sequenced(_), RewindState::Reading) => {
                self.next_number += 1;
                return Ok(true);
            }
            (ServerPacket::Debug(_), _) | (ServerPacket::Heartbeat, RewindState::Reading) => {}
            (ServerPacket::LoginAccepted { feed_session, sequence }, RewindState::LoggingIn) => {
                if (*feed_session, *sequence) != (self.feed_session, self.next_number) {
                    return Err(RewindError::Elsewhere { feed_session: *feed_session, number: *sequence });
                }
                self.state = RewindState::Reading;
            }
            (ServerPacket::LoginRejected(reason), RewindState::LoggingIn) => {
                return Err(RewindError::Rejected(*reason));
            }
            (ServerPacket::EndOfSession, RewindState::Reading) => self.state = RewindState::Ended,
            (_, RewindState::LoggingIn) => return Err(RewindError::OutOfPlace("before the login was answered")),
            (_, RewindState::Reading) => return Err(RewindError::OutOfPlace("the login was answered already")),
            (_, RewindState::Ended) => return Err(RewindError::OutOfPlace("after the end of the feed session")),
        }
        Ok(false)
    }
}

/// A feed session being received, starting at a given number.
#[derive(Debug)]
pub struct Rewind {
    connection: TcpConnection,
    reading: SoupReader,
    /// Length of the first packet, which has been handed out, bytes.
    handed_out: usize,
    last_packet_ns: u64,
    sent_ns: u64,
}

const INCOMING_BYTES: usize = 256 << 10;

const _: () = assert!(INCOMING_BYTES >= 2 * PACKET_LENGTH_MAX);

impl Rewind {
    /// Starts connecting to `server`.
    ///
    /// # Errors
    /// [`RewindError::Connection`], if the operating system refuses at once.
    pub fn open(server: SocketAddr, request: &RewindRequest, now_ns: u64) -> Result<Self, RewindError> {
        let mut connection = TcpConnection::connect(server, INCOMING_BYTES, 4 * LOGIN_LENGTH)?;
        let login = Login {
            username: request.username,
            password: request.password,
            feed_session: request.feed_session,
            sequence: request.number,
        };
        let length = write_login(connection.room(), &login).expect("a new buffer has room for a login");
        connection.commit(length);
        connection.send()?;
        Ok(Self {
            connection,
            reading: SoupReader::new(request),
            handed_out: 0,
            last_packet_ns: now_ns,
            sent_ns: now_ns,
        })
    }

    /// Whether the next message has arrived; [`Rewind::message`] then returns it.
    ///
    /// # Errors
    /// A packet that the server must not send.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, RewindError> {
        self.connection.consume(std::mem::take(&mut self.handed_out));
        while let Some((packet, length)) = ServerPacket::parse(self.connection.incoming(), PACKET_LENGTH_MAX)? {
            if self.reading.take(&packet)? {
                self.handed_out = length;
                return Ok(true);
            }
            self.connection.consume(length);
        }
        Ok(false)
    }

    /// Found by the last [`Rewind::advance`]; empty if it found none.
    #[inline]
    #[must_use]
    pub fn message(&self) -> &[u8] {
        self.connection.incoming().get(HEADER_LENGTH..self.handed_out).unwrap_or_default()
    }

    /// Number of the last message in the feed session.
    #[inline]
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.reading.next_number - 1
    }

    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.reading.state != RewindState::LoggingIn
    }

    /// All of the feed session was handed out.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.reading.state == RewindState::Ended
    }

    /// Time of the server's last packet, ns.
    #[must_use]
    pub const fn last_packet_ns(&self) -> u64 {
        self.last_packet_ns
    }

    /// Reads from the socket once, for when [`Rewind::advance`] finds no message. Returns whether bytes have arrived.
    ///
    /// # Errors
    /// The connection failed, or is at its end.
    #[inline]
    pub fn receive(&mut self, now_ns: u64) -> Result<bool, RewindError> {
        match self.connection.receive()? {
            Received::Bytes(_) => {
                self.last_packet_ns = now_ns;
                Ok(true)
            }
            Received::Nothing | Received::Full => Ok(false),
            Received::End if self.has_ended() => Ok(false),
            Received::End => Err(RewindError::HungUp),
        }
    }

    /// Sends packets that are due, and those still unsent.
    ///
    /// # Errors
    /// The connection failed.
    #[inline]
    pub fn tick(&mut self, now_ns: u64) -> Result<(), RewindError> {
        if self.is_accepted() && now_ns.saturating_sub(self.sent_ns) >= HEARTBEAT_INTERVAL_NS {
            self.sent_ns = now_ns;
            // Other packets are about to be sent if there is no room.
            let length = write_client_heartbeat(self.connection.room()).unwrap_or(0);
            self.connection.commit(length);
        }
        self.connection.send()?;
        Ok(())
    }

    /// Closes the connection, too.
    pub fn log_out(mut self) {
        let length = write_logout(self.connection.room()).unwrap_or(0);
        self.connection.commit(length);
        let _ = self.connection.send();
    }

    #[must_use]
    pub const fn is_sending(&self) -> bool {
        self.connection.unsent() > 0
    }
}

impl AsFd for Rewind {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

#[cfg(test)]
mod tests;
