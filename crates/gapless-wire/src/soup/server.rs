//! Packets of a server.

use super::field::{feed_session_field, read_feed_session, read_sequence, sequence_field};
use super::{
    DEBUG, Dialect, HEADER_LENGTH, LOGIN_ACCEPTED_LENGTH, LOGIN_REJECTED_LENGTH, RawPacket, SEQUENCED_HEADER_LENGTH,
    SoupError, header, split_packet, write_packet,
};
use crate::feed_session::FeedSession;

const LOGIN_ACCEPTED: u8 = b'A';
const LOGIN_REJECTED: u8 = b'J';
const SEQUENCED: u8 = b'S';
const HEARTBEAT: u8 = b'H';
const END_OF_SESSION: u8 = b'Z';

const DIALECT: Dialect = Dialect {
    kinds: "+ A J S H Z",
    fixed_length: |kind| match kind {
        SEQUENCED | DEBUG => Some(None),
        HEARTBEAT | END_OF_SESSION => Some(Some(HEADER_LENGTH)),
        LOGIN_ACCEPTED => Some(Some(LOGIN_ACCEPTED_LENGTH)),
        LOGIN_REJECTED => Some(Some(LOGIN_REJECTED_LENGTH)),
        _ => None,
    },
};

/// A packet from a server.
///
/// ```
/// use gapless_wire::soup::{PACKET_LENGTH_MAX, ServerPacket, write_sequenced};
/// let mut received = [0; 16];
/// let length = write_sequenced(&mut received, b"hello").expect("there is room");
/// assert_eq!(ServerPacket::parse(&received[..4], PACKET_LENGTH_MAX), Ok(None));
/// let packet = ServerPacket::parse(&received[..length], PACKET_LENGTH_MAX);
/// assert_eq!(packet, Ok(Some((ServerPacket::Sequenced(b"hello"), 8))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerPacket<'a> {
    /// Next message of the feed; its sequence is one more than that of its predecessor.
    Sequenced(&'a [u8]),
    Heartbeat,
    /// The server closes the connection.
    EndOfSession,
    LoginAccepted {
        feed_session: FeedSession,
        /// Sequence of the next [`ServerPacket::Sequenced`].
        sequence: u64,
    },
    /// The server closes the connection.
    LoginRejected(RejectReason),
    Debug(&'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RejectReason {
    NotAuthorized = b'A',
    SessionNotAvailable = b'S',
}

impl<'a> ServerPacket<'a> {
    /// Reads the packet at the start of `bytes` and its length; `None` until it is complete.
    ///
    /// # Errors
    /// Any defect of the packet, as early as it can be seen.
    #[inline]
    pub fn parse(bytes: &'a [u8], packet_length_max: usize) -> Result<Option<(Self, usize)>, SoupError> {
        let Some(packet) = split_packet(bytes, packet_length_max, &DIALECT)? else { return Ok(None) };
        let RawPacket { kind, payload, length } = packet;
        let packet = match kind {
            SEQUENCED => Self::Sequenced(payload),
            HEARTBEAT => Self::Heartbeat,
            END_OF_SESSION => Self::EndOfSession,
            LOGIN_ACCEPTED => login_accepted(payload.try_into().expect("the length is checked"))?,
            LOGIN_REJECTED => login_rejected(payload[0])?,
            _ => Self::Debug(payload),
        };
        Ok(Some((packet, length)))
    }
}

fn login_accepted<'a>(payload: &[u8; LOGIN_ACCEPTED_LENGTH - HEADER_LENGTH]) -> Result<ServerPacket<'a>, SoupError> {
    let (feed_session, sequence) = payload.split_first_chunk().expect("the field is shorter than the payload");
    Ok(ServerPacket::LoginAccepted {
        feed_session: read_feed_session(feed_session)?,
        sequence: read_sequence(sequence.try_into().expect("the field is the rest of the payload"))?,
    })
}

fn login_rejected<'a>(reason: u8) -> Result<ServerPacket<'a>, SoupError> {
    match reason {
        b'A' => Ok(ServerPacket::LoginRejected(RejectReason::NotAuthorized)),
        b'S' => Ok(ServerPacket::LoginRejected(RejectReason::SessionNotAvailable)),
        found => Err(SoupError::RejectReason { found }),
    }
}

/// `None` if the message is longer than [`super::PAYLOAD_LENGTH_MAX`].
#[inline]
#[must_use]
pub fn sequenced_header(message_length: usize) -> Option<[u8; SEQUENCED_HEADER_LENGTH]> {
    header(SEQUENCED, message_length)
}

/// `None` if the packet does not fit the buffer or [`super::PACKET_LENGTH_MAX`].
#[inline]
#[must_use]
pub fn write_sequenced(buffer: &mut [u8], message: &[u8]) -> Option<usize> {
    write_packet(buffer, SEQUENCED, message)
}

#[must_use]
pub fn write_server_heartbeat(buffer: &mut [u8]) -> Option<usize> {
    write_packet(buffer, HEARTBEAT, &[])
}

#[must_use]
pub fn write_end_of_session(buffer: &mut [u8]) -> Option<usize> {
    write_packet(buffer, END_OF_SESSION, &[])
}

/// `sequence` is that of the feed's next message. `None` if the packet does not fit the buffer.
#[must_use]
pub fn write_login_accepted(buffer: &mut [u8], feed_session: FeedSession, sequence: u64) -> Option<usize> {
    let mut payload = [0; LOGIN_ACCEPTED_LENGTH - HEADER_LENGTH];
    payload[..FeedSession::LENGTH].copy_from_slice(&feed_session_field(feed_session));
    payload[FeedSession::LENGTH..].copy_from_slice(&sequence_field(sequence));
    write_packet(buffer, LOGIN_ACCEPTED, &payload)
}

/// `None` if the packet does not fit the buffer.
#[must_use]
pub fn write_login_rejected(buffer: &mut [u8], reason: RejectReason) -> Option<usize> {
    write_packet(buffer, LOGIN_REJECTED, &[reason as u8])
}
