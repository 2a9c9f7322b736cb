//! [`Rewind`]: a client of the rewind port: a feed session from any frame on, by SoupBinTCP 3.00. The frames that it
//! reads are in order; the caller interprets the messages.
//!
//! | part | what it does |
//! |---|---|
//! | `SoupReading` | the protocol, without I/O: the meaning of each packet at its place |
//! | [`Rewind`] | the same over a connection, which is read only as fast as its messages are taken |

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

/// Why a rewind ends before its feed session does.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    /// The connection is broken, or never came about.
    #[error(transparent)]
    Connection(#[from] io::Error),
    /// The server has hung up.
    #[error("the server has hung up")]
    HungUp,
    /// The received bytes are no SoupBinTCP.
    #[error(transparent)]
    Malformed(#[from] SoupError),
    /// The login was rejected.
    #[error("the login was rejected: {0:?}")]
    Rejected(RejectReason),
    /// The server begins elsewhere than it was asked to.
    #[error("the server begins at number {number} of feed session {feed_session}, which is not what it was asked for")]
    Elsewhere {
        /// The feed session it has begun.
        feed_session: FeedSession,
        /// The number of its first message.
        number: u64,
    },
    /// A packet of a kind that is none at this place.
    #[error("a packet came where none of its kind belongs: {0}")]
    OutOfPlace(&'static str),
}

/// The fields of a login request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RewindRequest {
    pub username: Field<6>,
    pub password: Field<10>,
    pub feed_session: FeedSession,
    /// The number in it, from 1, of the first message that is wanted.
    pub number: u64,
}

/// The meaning of a server's packets at their place.
#[derive(Debug)]
struct SoupReading {
    state: LoginState,
    feed_session: FeedSession,
    /// Of the next message.
    next_number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoginState {
    LoggingIn,
    Reading,
    Ended,
}

impl SoupReading {
    const fn new(request: &RewindRequest) -> Self {
        Self { state: LoginState::LoggingIn, feed_session: request.feed_session, next_number: request.number }
    }

    /// Takes a packet. Whether it is the next message.
    #[inline]
    fn take(&mut self, packet: &ServerPacket<'_>) -> Result<bool, RewindError> {
        match (packet, self.state) {
            (ServerPacket::Sequenced(_), LoginState::Reading) => {
                self.next_number += 1;
                return Ok(true);
            }
            (ServerPacket::Debug(_), _) | (ServerPacket::Heartbeat, LoginState::Reading) => {}
            (ServerPacket::LoginAccepted { feed_session, sequence }, LoginState::LoggingIn) => {
                if (*feed_session, *sequence) != (self.feed_session, self.next_number) {
                    return Err(RewindError::Elsewhere { feed_session: *feed_session, number: *sequence });
                }
                self.state = LoginState::Reading;
            }
            (ServerPacket::LoginRejected(reason), LoginState::LoggingIn) => return Err(RewindError::Rejected(*reason)),
            (ServerPacket::EndOfSession, LoginState::Reading) => self.state = LoginState::Ended,
            (_, LoginState::LoggingIn) => return Err(RewindError::OutOfPlace("before the login was answered")),
            (_, LoginState::Reading) => return Err(RewindError::OutOfPlace("the login was answered already")),
            (_, LoginState::Ended) => return Err(RewindError::OutOfPlace("behind the end of the feed session")),
        }
        Ok(false)
    }
}

/// A feed session on its way, from a number on.
#[derive(Debug)]
pub struct Rewind {
    connection: TcpConnection,
    reading: SoupReading,
    /// Length of the packet that stands first and has been handed out, bytes.
    handed_out: usize,
    heard_ns: u64,
    sent_ns: u64,
}

/// The most that is read at once, bytes.
const INCOMING_BYTES: usize = 256 << 10;

const _: () = assert!(INCOMING_BYTES >= 2 * PACKET_LENGTH_MAX);

impl Rewind {
    /// Begins to connect to `server` and to ask for `request`.
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
        // Not connected yet, most likely; it leaves when it can.
        connection.send()?;
        Ok(Self { connection, reading: SoupReading::new(request), handed_out: 0, heard_ns: now_ns, sent_ns: now_ns })
    }

    /// Goes to the next message, if it has come. [`Rewind::message`] is that one then.
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

    /// The message that [`Rewind::advance`] went to; empty if it found none.
    #[inline]
    #[must_use]
    pub fn message(&self) -> &[u8] {
        self.connection.incoming().get(HEADER_LENGTH..self.handed_out).unwrap_or_default()
    }

    /// The number of that message in the feed session.
    #[inline]
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.reading.next_number - 1
    }

    /// Whether the server has let it in.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.reading.state != LoginState::LoggingIn
    }

    /// Whether the feed session has ended and all of it was handed out.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.reading.state == LoginState::Ended
    }

    /// The time of the last packet from the server, ns.
    #[must_use]
    pub const fn heard_ns(&self) -> u64 {
        self.heard_ns
    }

    /// Looks once at the received bytes. To be called when [`Rewind::advance`] finds nothing. Whether something has.
    ///
    /// # Errors
    /// The connection is broken, or at its end.
    #[inline]
    pub fn receive(&mut self, now_ns: u64) -> Result<bool, RewindError> {
        match self.connection.receive()? {
            Received::Bytes(_) => {
                self.heard_ns = now_ns;
                Ok(true)
            }
            Received::Nothing | Received::Full => Ok(false),
            Received::End if self.has_ended() => Ok(false),
            Received::End => Err(RewindError::HungUp),
        }
    }

    /// Sends the packets that the clock makes due, and those that could not leave before.
    ///
    /// # Errors
    /// The connection is broken.
    #[inline]
    pub fn tick(&mut self, now_ns: u64) -> Result<(), RewindError> {
        if self.is_accepted() && now_ns.saturating_sub(self.sent_ns) >= HEARTBEAT_INTERVAL_NS {
            self.sent_ns = now_ns;
            // Without room for one, others are on their way already.
            let length = write_client_heartbeat(self.connection.room()).unwrap_or(0);
            self.connection.commit(length);
        }
        self.connection.send()?;
        Ok(())
    }

    /// Says that it leaves, and hangs up.
    pub fn log_out(mut self) {
        let length = write_logout(self.connection.room()).unwrap_or(0);
        self.connection.commit(length);
        // Hanging up says the same.
        let _ = self.connection.send();
    }

    /// Whether something is still to be sent.
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
