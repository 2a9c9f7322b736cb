//! Packets of a client.

use super::field::{feed_session_field, read_feed_session, read_sequence, sequence_field};
use super::{
    DEBUG, Dialect, Field, HEADER_LENGTH, LOGIN_LENGTH, RawPacket, SEQUENCED_HEADER_LENGTH, SoupError, header,
    split_packet, write_packet,
};
use crate::feed_session::FeedSession;
use std::fmt;

const LOGIN: u8 = b'L';
const UNSEQUENCED: u8 = b'U';
const HEARTBEAT: u8 = b'R';
const LOGOUT: u8 = b'O';

const DIALECT: Dialect = Dialect {
    kinds: "+ L U R O",
    fixed_length: |kind| match kind {
        UNSEQUENCED | DEBUG => Some(None),
        HEARTBEAT | LOGOUT => Some(Some(HEADER_LENGTH)),
        LOGIN => Some(Some(LOGIN_LENGTH)),
        _ => None,
    },
};

const PASSWORD_OFFSET: usize = 6;
const FEED_SESSION_OFFSET: usize = 16;
const SEQUENCE_OFFSET: usize = 26;

/// A packet from a client.
///
/// ```
/// use gapless_wire::FeedSession;
/// use gapless_wire::soup::{ClientPacket, Field, LOGIN_LENGTH, Login, write_login};
/// let login = Login {
///     username: Field::new("reader")?,
///     password: Field::new("swordfish")?,
///     feed_session: FeedSession::BLANK,
///     sequence: 1,
/// };
/// let mut sent = [0; LOGIN_LENGTH];
/// assert_eq!(write_login(&mut sent, &login), Some(LOGIN_LENGTH));
/// assert_eq!(&sent, b"\0\x2fLreaderswordfish                              1");
/// assert_eq!(ClientPacket::parse(&sent, LOGIN_LENGTH)?, Some((ClientPacket::Login(login), LOGIN_LENGTH)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientPacket<'a> {
    Unsequenced(&'a [u8]),
    Heartbeat,
    Login(Login),
    Logout,
    Debug(&'a [u8]),
}

/// Debug does not show the password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Login {
    pub username: Field<6>,
    pub password: Field<10>,
    /// Blank for the current one.
    pub feed_session: FeedSession,
    /// First message to read; 0 for the most recent.
    pub sequence: u64,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("username", &self.username.as_str())
            .field("password", &self.password)
            .field("feed_session", &self.feed_session)
            .field("sequence", &self.sequence)
            .finish()
    }
}

impl<'a> ClientPacket<'a> {
    /// Reads the packet at the start of `bytes` and its length; `None` until it is complete.
    ///
    /// # Errors
    /// Any defect of the packet, as early as it can be seen.
    #[inline]
    pub fn parse(bytes: &'a [u8], packet_length_max: usize) -> Result<Option<(Self, usize)>, SoupError> {
        let Some(packet) = split_packet(bytes, packet_length_max, &DIALECT)? else { return Ok(None) };
        let RawPacket { kind, payload, length } = packet;
        let packet = match kind {
            UNSEQUENCED => Self::Unsequenced(payload),
            HEARTBEAT => Self::Heartbeat,
            LOGIN => Self::Login(login(payload.try_into().expect("the length is checked"))?),
            LOGOUT => Self::Logout,
            _ => Self::Debug(payload),
        };
        Ok(Some((packet, length)))
    }
}

fn login(payload: &[u8; LOGIN_LENGTH - HEADER_LENGTH]) -> Result<Login, SoupError> {
    let username = field_at(payload, 0);
    Ok(Login {
        username: Field::from_bytes(username).ok_or(SoupError::Username { found: *username })?,
        password: Field::from_bytes(field_at(payload, PASSWORD_OFFSET)).ok_or(SoupError::Password)?,
        feed_session: read_feed_session(field_at(payload, FEED_SESSION_OFFSET))?,
        sequence: read_sequence(field_at(payload, SEQUENCE_OFFSET))?,
    })
}

fn field_at<const N: usize>(payload: &[u8; LOGIN_LENGTH - HEADER_LENGTH], offset: usize) -> &[u8; N] {
    payload[offset..].first_chunk().expect("offsets are inside the payload")
}

/// `None` if the message is longer than [`super::PAYLOAD_LENGTH_MAX`].
#[inline]
#[must_use]
pub fn unsequenced_header(message_length: usize) -> Option<[u8; SEQUENCED_HEADER_LENGTH]> {
    header(UNSEQUENCED, message_length)
}

/// `None` if the packet does not fit the buffer or [`super::PACKET_LENGTH_MAX`].
#[inline]
#[must_use]
pub fn write_unsequenced(buffer: &mut [u8], message: &[u8]) -> Option<usize> {
    write_packet(buffer, UNSEQUENCED, message)
}

#[must_use]
pub fn write_client_heartbeat(buffer: &mut [u8]) -> Option<usize> {
    write_packet(buffer, HEARTBEAT, &[])
}

/// `None` if the packet does not fit the buffer.
#[must_use]
pub fn write_login(buffer: &mut [u8], login: &Login) -> Option<usize> {
    let mut payload = [0; LOGIN_LENGTH - HEADER_LENGTH];
    payload[..PASSWORD_OFFSET].copy_from_slice(&login.username.bytes());
    payload[PASSWORD_OFFSET..FEED_SESSION_OFFSET].copy_from_slice(&login.password.bytes());
    payload[FEED_SESSION_OFFSET..SEQUENCE_OFFSET].copy_from_slice(&feed_session_field(login.feed_session));
    payload[SEQUENCE_OFFSET..].copy_from_slice(&sequence_field(login.sequence));
    write_packet(buffer, LOGIN, &payload)
}

#[must_use]
pub fn write_logout(buffer: &mut [u8]) -> Option<usize> {
    write_packet(buffer, LOGOUT, &[])
}
