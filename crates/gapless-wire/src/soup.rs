//! All packets, in both directions; the length is big-endian and counts everything after itself:
//!
//! ```text
//!  0 1 2 3        byte
//! +---+-+-----…-+
//! |len|T|payload|
//! +---+-+-----…-+
//! ```
//!
//! | type | from | packet | payload |
//! |---|---|---|---|
//! | `+` | both | debug | any text; to be ignored |
//! | `L` | client | login | username 6, password 10, feed session 10, sequence 20 |
//! | `U` | client | unsequenced data | one message |
//! | `R` | client | heartbeat | |
//! | `O` | client | logout | |
//! | `A` | server | login accepted | feed session 10, sequence 20: of the next sequenced data |
//! | `J` | server | login rejected | a reason: `A` not authorized, `S` feed session not available |
//! | `S` | server | sequenced data | one message, whose sequence both sides count |
//! | `H` | server | heartbeat | |
//! | `Z` | server | end of the feed session | |
//!
//! Fields of fixed length are ASCII, padded with spaces: username and password on the right, feed sessions and
//! sequences on the left. (The specification does not name the side for a login; we write the accepted one, and read
//! both.) Either side sends a heartbeat after [`HEARTBEAT_INTERVAL_NS`] without another packet, and gives the other up
//! after [`SILENCE_NS_MAX`]. Source: *SoupBinTCP Version 3.00*, Nasdaq.

mod client;
mod field;
mod server;

use crate::feed_session::FeedSession;

pub use client::{
    ClientPacket, Login, unsequenced_header, write_client_heartbeat, write_login, write_logout, write_unsequenced,
};
pub use field::{Field, SoupFieldError};
pub use server::{
    RejectReason, ServerPacket, sequenced_header, write_end_of_session, write_login_accepted, write_login_rejected,
    write_sequenced, write_server_heartbeat,
};

pub const HEADER_LENGTH: usize = 3;
pub const SEQUENCED_HEADER_LENGTH: usize = HEADER_LENGTH;
/// Longest packet, bytes.
pub const PACKET_LENGTH_MAX: usize = LENGTH_FIELD_LENGTH + u16::MAX as usize;
/// Longest payload, bytes.
pub const PAYLOAD_LENGTH_MAX: usize = PACKET_LENGTH_MAX - HEADER_LENGTH;
pub const LOGIN_LENGTH: usize = HEADER_LENGTH + 6 + 10 + 10 + SEQUENCE_LENGTH;
pub const LOGIN_ACCEPTED_LENGTH: usize = HEADER_LENGTH + 10 + SEQUENCE_LENGTH;
pub const LOGIN_REJECTED_LENGTH: usize = HEADER_LENGTH + 1;
/// Silence after which a side sends a heartbeat, ns.
pub const HEARTBEAT_INTERVAL_NS: u64 = 1_000_000_000;
/// Silence after which a side is considered dead, ns.
pub const SILENCE_NS_MAX: u64 = 15_000_000_000;

const LENGTH_FIELD_LENGTH: usize = 2;
const KIND_OFFSET: usize = LENGTH_FIELD_LENGTH;
const SEQUENCE_LENGTH: usize = 20;

const DEBUG: u8 = b'+';

const _: () = assert!(LOGIN_LENGTH == 49 && LOGIN_ACCEPTED_LENGTH == 33 && FeedSession::LENGTH == 10);

/// The connection must be closed, because the start of its next packet is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SoupError {
    /// The length field is 0; it counts at least the type.
    #[error("SoupBinTCP packet of length 0: its type is missing")]
    Empty,
    /// The packet exceeds the limit.
    #[error("SoupBinTCP packet has {length_bytes} bytes, at most {limit_bytes} are allowed here")]
    Length { length_bytes: usize, limit_bytes: usize },
    /// No packet from this side has this type.
    #[error("SoupBinTCP packet type '{}' is none of {expected}", found.escape_ascii())]
    Kind { found: u8, expected: &'static str },
    /// The packet has the wrong length for its type.
    #[error(
        "SoupBinTCP packet of type '{}' has {found_bytes} bytes, {expected_bytes} are expected",
        kind.escape_ascii()
    )]
    FixedLength { kind: u8, expected_bytes: usize, found_bytes: usize },
    /// The sequence of a login is not a 64-bit number.
    #[error("sequence \"{}\" is not a decimal number of 64 bits filled up with spaces", found.escape_ascii())]
    Sequence { found: [u8; SEQUENCE_LENGTH] },
    /// The feed session of a login is neither a name nor blank.
    #[error("feed session \"{}\" is not printable ASCII filled up with spaces", found.escape_ascii())]
    FeedSession { found: [u8; FeedSession::LENGTH] },
    /// The username of a login is not printable.
    #[error("username \"{}\" is not printable ASCII filled up with spaces", found.escape_ascii())]
    Username { found: [u8; 6] },
    /// The password of a login is not printable; it is not shown.
    #[error("the login's password is not printable ASCII filled up with spaces")]
    Password,
    /// A login was rejected for an unknown reason.
    #[error("reject reason '{}' is none of A S", found.escape_ascii())]
    RejectReason { found: u8 },
}

/// Length in bytes of the packet at the start of `bytes`; `None` until it is complete.
///
/// # Errors
/// [`SoupError::Empty`], or [`SoupError::Length`] beyond `packet_length_max`, as soon as the length field is there: a
/// receiver never waits for a packet that it cannot hold.
#[inline]
pub fn peek(bytes: &[u8], packet_length_max: usize) -> Result<Option<usize>, SoupError> {
    let length = announced_length(bytes, packet_length_max)?;
    Ok(length.filter(|length| *length <= bytes.len()))
}

#[inline]
fn announced_length(bytes: &[u8], packet_length_max: usize) -> Result<Option<usize>, SoupError> {
    let Some(field) = bytes.first_chunk() else { return Ok(None) };
    let length = LENGTH_FIELD_LENGTH + usize::from(u16::from_be_bytes(*field));
    if length < HEADER_LENGTH {
        return Err(SoupError::Empty);
    }
    if length > packet_length_max {
        return Err(SoupError::Length { length_bytes: length, limit_bytes: packet_length_max });
    }
    Ok(Some(length))
}

struct Dialect {
    kinds: &'static str,
    /// Outer `None` for an unknown type, inner `None` for any length.
    fixed_length: fn(kind: u8) -> Option<Option<usize>>,
}

struct RawPacket<'a> {
    kind: u8,
    payload: &'a [u8],
    length: usize,
}

/// A bad header is an error as soon as it is there.
#[inline]
fn split_packet<'a>(
    bytes: &'a [u8],
    packet_length_max: usize,
    dialect: &Dialect,
) -> Result<Option<RawPacket<'a>>, SoupError> {
    let Some(length) = announced_length(bytes, packet_length_max)? else { return Ok(None) };
    let Some(kind) = bytes.get(KIND_OFFSET).copied() else { return Ok(None) };
    match (dialect.fixed_length)(kind) {
        None => return Err(SoupError::Kind { found: kind, expected: dialect.kinds }),
        Some(Some(expected_bytes)) if expected_bytes != length => {
            return Err(SoupError::FixedLength { kind, expected_bytes, found_bytes: length });
        }
        Some(_) => {}
    }
    let payload = bytes.get(HEADER_LENGTH..length);
    Ok(payload.map(|payload| RawPacket { kind, payload, length }))
}

/// Either side may send it and the other ignores it. `None` if it does not fit the buffer or [`PACKET_LENGTH_MAX`].
#[must_use]
pub fn write_debug(buffer: &mut [u8], text: &[u8]) -> Option<usize> {
    write_packet(buffer, DEBUG, text)
}

/// Returns the header of a packet whose payload is stored elsewhere; `None` if that is longer than
/// [`PAYLOAD_LENGTH_MAX`].
#[inline]
fn header(kind: u8, payload_length: usize) -> Option<[u8; HEADER_LENGTH]> {
    let [high, low] = u16::try_from(payload_length.checked_add(1)?).ok()?.to_be_bytes();
    Some([high, low, kind])
}

#[inline]
fn write_packet(buffer: &mut [u8], kind: u8, payload: &[u8]) -> Option<usize> {
    let header = header(kind, payload.len())?;
    let (place, rest) = buffer.split_first_chunk_mut()?;
    rest.get_mut(..payload.len())?.copy_from_slice(payload);
    *place = header;
    Some(HEADER_LENGTH + payload.len())
}

#[cfg(test)]
mod tests;
