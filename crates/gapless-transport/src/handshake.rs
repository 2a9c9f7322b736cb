//! Messages of a publisher and the acceptor over the Unix socket, before the rings exist: one each way, little-endian,
//! fixed length.
//!
//! ```text
//!  Hello (88 bytes)                      Welcome (80 bytes)
//!   0  u64  magic "GAPHELO\2"              0  u64  magic "GAPWELC\1"
//!   8  u32  command ring bytes             8  u32  status: 0 welcome, else a refusal
//!  12  u32  reply ring bytes              12  u32  connection
//!  16  u128 stream id, 0 for any          16  u128 stream id
//!  32  u64  incarnation, 0 for any        32  u64  incarnation
//!  40  u32  flags: bit 0 reads            40  u32  longest frame, bytes
//!  44  u16  mtu of the node's file,        44  u32  tier: 0 memory, 1 journal, 2 sync,
//!           0 for the stream's                 3 quorum, 4 quorum-sync
//!  46  u16  0                              48  u64  process id of the service
//!  48  u64  sequence of the last frame     56  u64  longest message, bytes
//!           that it has seen, 0 for none   64  u64  last sequence released
//!  56  u64  its time stamp, ns             72  u16  mtu of the stream, where another was
//!                                              stated, else 0
//!  64  u128 its stream id                  74  …    reserved, 0
//!  80  u64  its incarnation
//!  descriptors of a welcome: command ring, reply ring, the service's wake-up, the publisher's wake-up; and for
//!  one that reads the stream the window, read-only
//!  80  …    of a refusal with status 4: why the service has failed, UTF-8, at most 1,024 bytes; nothing
//!           where it has not
//! ```
//!
//! A refusal answers a hello. It is also the last message to an admitted publisher when the service fails. A publisher
//! of a version without reasons reads 80 bytes of it, and takes any message on its connection for the end.

use crate::link::RingSizes;
use crate::seen_frame::SeenFrame;
use gapless_log::StreamIdentity;
use gapless_wire::fields::{u16_at, u32_at, u64_at};
use gapless_wire::mtu::Mtu;

pub const HELLO_MAGIC: u64 = u64::from_le_bytes(*b"GAPHELO\x02");
pub const WELCOME_MAGIC: u64 = u64::from_le_bytes(*b"GAPWELC\x01");
pub const HELLO_LENGTH: usize = 88;
pub const WELCOME_LENGTH: usize = 80;
pub const WELCOME_DESCRIPTORS: usize = 4;
/// Number of descriptors for a publisher that reads the stream.
pub const WELCOME_DESCRIPTORS_MAX: usize = 5;

pub const REASON_BYTES_MAX: usize = 1024;

const READS_FLAG: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum HandshakeStatus {
    Welcome = 0,
    OtherStream = 1,
    /// Earlier sessions and sequences are invalid here.
    OtherIncarnation = 2,
    RingSize = 3,
    /// The service is stopping or cannot create more rings.
    Unavailable = 4,
    /// A service's stream, which other processes cannot read.
    NotReadable = 5,
    /// The stream lacks history that the publisher has seen.
    OtherHistory = 6,
    OtherMtu = 7,
}

impl HandshakeStatus {
    const fn from_value(value: u32) -> Option<Self> {
        Some(match value {
            0 => Self::Welcome,
            1 => Self::OtherStream,
            2 => Self::OtherIncarnation,
            3 => Self::RingSize,
            4 => Self::Unavailable,
            5 => Self::NotReadable,
            6 => Self::OtherHistory,
            7 => Self::OtherMtu,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    pub link: RingSizes,
    /// Zeros for any.
    pub identity: StreamIdentity,
    pub reads: bool,
    pub seen: SeenFrame,
    /// `None` takes the stream's.
    pub mtu: Option<Mtu>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    pub status: HandshakeStatus,
    pub connection: u32,
    pub identity: StreamIdentity,
    /// Bytes.
    pub frame_length_max: u32,
    /// Tier, to be decoded by [`crate::Tier::from_value`].
    pub tier: u32,
    pub process_id: u64,
    /// Sum of the fragments with headers, bytes.
    pub message_length_max: u64,
    pub released_sequence: u64,
    pub mtu: Option<Mtu>,
}

impl Hello {
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HELLO_LENGTH] {
        let mut bytes = [0; HELLO_LENGTH];
        bytes[..8].copy_from_slice(&HELLO_MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&(self.link.command_ring_bytes as u32).to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.link.reply_ring_bytes as u32).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.identity.stream_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.identity.incarnation.to_le_bytes());
        bytes[40..44].copy_from_slice(&(if self.reads { READS_FLAG } else { 0 }).to_le_bytes());
        bytes[44..46].copy_from_slice(&Mtu::to_field(self.mtu).to_le_bytes());
        bytes[48..56].copy_from_slice(&self.seen.sequence.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.seen.timestamp_ns.to_le_bytes());
        bytes[64..80].copy_from_slice(&self.seen.identity.stream_id.to_le_bytes());
        bytes[80..88].copy_from_slice(&self.seen.identity.incarnation.to_le_bytes());
        bytes
    }

    /// `None` if malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let is_hello = bytes.len() == HELLO_LENGTH
            && u64_at(bytes, 0) == HELLO_MAGIC
            && u32_at(bytes, 40) & !READS_FLAG == 0
            && u16_at(bytes, 46) == 0;
        if !is_hello {
            return None;
        }
        Some(Self {
            link: RingSizes {
                command_ring_bytes: u32_at(bytes, 8) as usize,
                reply_ring_bytes: u32_at(bytes, 12) as usize,
            },
            identity: StreamIdentity::at(bytes, 16),
            reads: u32_at(bytes, 40) & READS_FLAG != 0,
            seen: SeenFrame {
                identity: StreamIdentity::at(bytes, 64),
                sequence: u64_at(bytes, 48),
                timestamp_ns: u64_at(bytes, 56),
            },
            mtu: Mtu::from_field(u16_at(bytes, 44))?,
        })
    }
}

impl Welcome {
    #[must_use]
    pub fn to_bytes(&self) -> [u8; WELCOME_LENGTH] {
        let mut bytes = [0; WELCOME_LENGTH];
        bytes[..8].copy_from_slice(&WELCOME_MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&(self.status as u32).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.connection.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.identity.stream_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.identity.incarnation.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.frame_length_max.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.tier.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.process_id.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.message_length_max.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.released_sequence.to_le_bytes());
        bytes[72..74].copy_from_slice(&Mtu::to_field(self.mtu).to_le_bytes());
        bytes
    }

    /// The reason of the service's failure is truncated to the limit.
    #[must_use]
    pub fn to_bytes_with_reason(&self, reason: &str) -> Vec<u8> {
        let end = reason.floor_char_boundary(REASON_BYTES_MAX);
        [&self.to_bytes()[..], &reason.as_bytes()[..end]].concat()
    }

    /// `None` if malformed; a reason is optional.
    #[must_use]
    pub fn with_reason(bytes: &[u8]) -> Option<(Self, Option<&str>)> {
        let (head, reason) = bytes.split_at_checked(WELCOME_LENGTH)?;
        let welcome = Self::from_bytes(head)?;
        if reason.is_empty() {
            return Some((welcome, None));
        }
        if welcome.status != HandshakeStatus::Unavailable || reason.len() > REASON_BYTES_MAX {
            return None;
        }
        Some((welcome, Some(std::str::from_utf8(reason).ok()?)))
    }

    /// Parses a message without a reason; `None` if it is malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let is_welcome = bytes.len() == WELCOME_LENGTH && u64_at(bytes, 0) == WELCOME_MAGIC;
        if !is_welcome || bytes[74..] != [0; 6] {
            return None;
        }
        Some(Self {
            status: HandshakeStatus::from_value(u32_at(bytes, 8))?,
            connection: u32_at(bytes, 12),
            identity: StreamIdentity::at(bytes, 16),
            frame_length_max: u32_at(bytes, 40),
            tier: u32_at(bytes, 44),
            process_id: u64_at(bytes, 48),
            message_length_max: u64_at(bytes, 56),
            released_sequence: u64_at(bytes, 64),
            mtu: Mtu::from_field(u16_at(bytes, 72))?,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    fn welcome(status: HandshakeStatus) -> Welcome {
        Welcome {
            status,
            connection: 0,
            identity: StreamIdentity { stream_id: 7, incarnation: 9 },
            frame_length_max: 1024,
            tier: 0,
            process_id: 1,
            message_length_max: 1024,
            released_sequence: 5,
            mtu: None,
        }
    }

    #[test]
    fn a_refusal_states_its_reason() {
        let refusal = welcome(HandshakeStatus::Unavailable);
        let bytes = refusal.to_bytes_with_reason("the disk is gone");
        assert_eq!(Welcome::with_reason(&bytes), Some((refusal, Some("the disk is gone"))));
        assert_eq!(Welcome::with_reason(&refusal.to_bytes_with_reason("")), Some((refusal, None)));
        assert_eq!(Welcome::from_bytes(&bytes[..WELCOME_LENGTH]), Some(refusal));
        assert_eq!(Welcome::from_bytes(&bytes), None);
        // Truncated between two characters of three bytes.
        let bytes = refusal.to_bytes_with_reason(&"\u{20ac}".repeat(500));
        let (_, reason) = Welcome::with_reason(&bytes).unwrap();
        assert_eq!(reason.unwrap(), "\u{20ac}".repeat(REASON_BYTES_MAX / 3));
    }

    #[test]
    fn other_answers_have_no_reason() {
        let refusal = welcome(HandshakeStatus::Unavailable);
        let too_long = [&refusal.to_bytes()[..], &[b'x'; REASON_BYTES_MAX + 1]].concat();
        let no_text = [&refusal.to_bytes()[..], &[0xff]].concat();
        let of_welcome = welcome(HandshakeStatus::Welcome).to_bytes_with_reason("none");
        let too_short = refusal.to_bytes()[..WELCOME_LENGTH - 1].to_vec();
        for bytes in [too_long, no_text, of_welcome, too_short] {
            assert_eq!(Welcome::with_reason(&bytes), None, "{} bytes", bytes.len());
        }
    }
}
