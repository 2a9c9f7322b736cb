//! Messages of a link, byte by byte. No I/O and no clock; safe on any bytes.
//!
//! ```text
//!  every message (header 32 bytes, little-endian)      then
//!   0  u32  magic "GCL\1"                              32  …  consensus part, padded with zeros to 8 bytes
//!   4  u8   version, 2                                     …  frames part, padded with zeros to 8 bytes
//!   5  u8   kind
//!   6  u16  reserved, 0
//!   8  u32  consensus length, bytes without padding     kinds: 1 hello, 2 welcome, 3 refusal, 4 ping,
//!  12  u32  frames length, bytes without padding               5 consensus, 6 catch-up request,
//!  16  u64  number: of its sender's messages on this           7 catch-up frames
//!           connection, from 1 without a gap              8 members, 9 divergence check, 10 endpoints,
//!  24  u32  CRC-32C of the consensus part                      11 snapshot transfer request,
//!                                                              12 snapshot transfer, 13 time,
//!                                                              14 retention watermark, 15 history
//!  28  u32  CRC-32C of bytes 0–27
//!
//!  hello, welcome: the consensus part (136 bytes)       refusal: the consensus part (8 bytes + text)
//!   0  u128 stream id, 0 for any                        0  u32  code
//!  16  u64  incarnation, 0 for any                      4  u32  reserved, 0
//!  24  u64  sending member, not 0                       8  …    text, UTF-8, at most 200 bytes
//!  32  u64  receiving member, not 0
//!  40  u64  instance of the sending member
//!  48  u32  flags: 1 may lack acknowledged entries
//!  52  u16  reserved, 0
//!  54  u16  length of the cluster's name, bytes
//!  56  64 B the cluster's name, UTF-8, then zeros
//! 120  u64  newest term that its log has seen, 0 for a new one
//! 128  u64  index of the last entry that it has persisted
//! ```
//!
//! Magic, version and kind have the same place in every version, so that a member of another version can be refused
//! with the reason.

use super::log_state::LogState;
use gapless_wire::checksum::crc32c;
use gapless_wire::fields::{put_at, u16_at, u32_at, u64_at, u128_at};
use std::fmt;

/// First word of every message.
pub const MAGIC: u32 = u32::from_le_bytes(*b"GCL\x01");
pub const VERSION: u8 = 2;
/// Bytes before the parts.
pub const HEADER_LENGTH: usize = 32;
/// Longest consensus part, bytes.
pub const CONSENSUS_LENGTH_MAX: usize = 1 << 20;
/// Longest frames part, bytes.
pub const FRAMES_LENGTH_MAX: usize = 64 << 20;
/// Bytes of the consensus part; a pending connection accepts nothing longer.
pub const HANDSHAKE_LENGTH_MAX: usize = 256;
/// Longest message of a divergence check, bytes.
pub const DIVERGENCE_CHECK_LENGTH_MAX: usize = 4096;
/// Longest name of a cluster, bytes.
pub const CLUSTER_NAME_LENGTH_MAX: usize = 64;
/// Bytes of a hello's or welcome's consensus part.
pub const INTRODUCTION_LENGTH: usize = 136;
/// Longest text of a refusal, bytes.
pub const REFUSAL_TEXT_LENGTH_MAX: usize = 200;
/// Longest message of a member's endpoints, bytes.
pub const ENDPOINTS_LENGTH_MAX: usize = 256;
/// Longest message about the time, bytes.
pub const TIME_LENGTH_MAX: usize = 64;
/// Longest message of a retention watermark, bytes.
pub const RETENTION_WATERMARK_LENGTH_MAX: usize = 64;
/// Longest message of a history, bytes.
pub const HISTORY_LENGTH_MAX: usize = 4096;
/// Longest request for a snapshot transfer, bytes.
pub const SNAPSHOT_TRANSFER_REQUEST_LENGTH_MAX: usize = 64;
/// Longest piece of a snapshot transfer, bytes.
pub const SNAPSHOT_TRANSFER_PIECE_LENGTH_MAX: usize = 1 << 20;

const VERSION_OFFSET: usize = 4;
const KIND_OFFSET: usize = 5;
const CONSENSUS_LENGTH_OFFSET: usize = 8;
const FRAMES_LENGTH_OFFSET: usize = 12;
const NUMBER_OFFSET: usize = 16;
const CONSENSUS_CRC_OFFSET: usize = 24;
const HEADER_CRC_OFFSET: usize = 28;
const REFUSAL_HEADER_LENGTH: usize = 8;

/// Number of a member in the cluster's configuration; never 0.
pub type MemberNumber = u64;

/// Reason for which bytes are not a message, or not an allowed one; the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("{found:#010x} begins no message of a link; {MAGIC:#010x} does")]
    Magic { found: u32 },
    #[error("the other side speaks version {found} of the cluster protocol, this one version {VERSION}")]
    Version { found: u8 },
    #[error("the checksum of a message's header is {found:#010x}, its bytes give {computed:#010x}")]
    HeaderChecksum { found: u32, computed: u32 },
    #[error("the checksum of a message's consensus part is {found:#010x}, its bytes give {computed:#010x}")]
    ConsensusChecksum { found: u32, computed: u32 },
    /// An unknown kind, or one that is not allowed now.
    #[error("a message of kind {found} has no place here")]
    Kind { found: u8 },
    #[error("the {part} part of a message has {found_bytes} bytes, {limit_bytes} at most are allowed")]
    Length { part: &'static str, found_bytes: usize, limit_bytes: usize },
    /// A message is missing, or was received twice.
    #[error("message {expected} was expected on this connection, {found} came")]
    Number { expected: u64, found: u64 },
    /// A body is malformed, or a reserved field or padding is not zero.
    #[error("the {what} of a message is malformed")]
    Malformed { what: &'static str },
}

/// The discriminant is the wire value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MessageKind {
    Hello = 1,
    Welcome = 2,
    /// Refusal by either side; ends the connection.
    Refusal = 3,
    Ping = 4,
    Consensus = 5,
    CatchUpRequest = 6,
    CatchUpFrames = 7,
    Members = 8,
    DivergenceCheck = 9,
    Endpoints = 10,
    SnapshotTransferRequest = 11,
    SnapshotTransfer = 12,
    Time = 13,
    RetentionWatermark = 14,
    History = 15,
}

impl MessageKind {
    const fn from_value(value: u8) -> Option<Self> {
        Some(match value {
            1 => Self::Hello,
            2 => Self::Welcome,
            3 => Self::Refusal,
            4 => Self::Ping,
            5 => Self::Consensus,
            6 => Self::CatchUpRequest,
            7 => Self::CatchUpFrames,
            8 => Self::Members,
            9 => Self::DivergenceCheck,
            10 => Self::Endpoints,
            11 => Self::SnapshotTransferRequest,
            12 => Self::SnapshotTransfer,
            13 => Self::Time,
            14 => Self::RetentionWatermark,
            15 => Self::History,
            _ => return None,
        })
    }

    #[must_use]
    pub const fn is_of_handshake(self) -> bool {
        matches!(self, Self::Hello | Self::Welcome | Self::Refusal)
    }

    /// Longest consensus and frames part, bytes.
    #[must_use]
    pub const fn lengths_max(self) -> (usize, usize) {
        match self {
            Self::Hello | Self::Welcome | Self::Refusal => (HANDSHAKE_LENGTH_MAX, 0),
            Self::Ping => (0, 0),
            Self::DivergenceCheck => (DIVERGENCE_CHECK_LENGTH_MAX, 0),
            Self::Endpoints => (ENDPOINTS_LENGTH_MAX, 0),
            Self::Time => (TIME_LENGTH_MAX, 0),
            Self::RetentionWatermark => (RETENTION_WATERMARK_LENGTH_MAX, 0),
            Self::History => (HISTORY_LENGTH_MAX, 0),
            Self::SnapshotTransferRequest => (SNAPSHOT_TRANSFER_REQUEST_LENGTH_MAX, 0),
            Self::SnapshotTransfer => (CONSENSUS_LENGTH_MAX, SNAPSHOT_TRANSFER_PIECE_LENGTH_MAX),
            Self::CatchUpRequest | Self::Members => (CONSENSUS_LENGTH_MAX, 0),
            Self::Consensus | Self::CatchUpFrames => (CONSENSUS_LENGTH_MAX, FRAMES_LENGTH_MAX),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    pub kind: MessageKind,
    /// Bytes of the consensus part, without padding.
    pub consensus_length: usize,
    /// Bytes of the frames part, without padding.
    pub frames_length: usize,
    /// Number of the message on its connection, from 1.
    pub number: u64,
    consensus_crc: u32,
}

impl MessageHeader {
    /// Creates the header of a message with this consensus part.
    ///
    /// # Panics
    /// If a part is longer than its kind allows.
    #[inline]
    #[must_use]
    pub fn new(kind: MessageKind, number: u64, consensus: &[u8], frames_length: usize) -> Self {
        let (consensus_length_max, frames_length_max) = kind.lengths_max();
        assert!(consensus.len() <= consensus_length_max, "a consensus part of {} bytes in {kind:?}", consensus.len());
        assert!(frames_length <= frames_length_max, "a frames part of {frames_length} bytes in {kind:?}");
        Self { kind, consensus_length: consensus.len(), frames_length, number, consensus_crc: crc32c(consensus) }
    }

    #[inline]
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_LENGTH] {
        let mut bytes = [0; HEADER_LENGTH];
        put_at(&mut bytes, 0, &MAGIC.to_le_bytes());
        bytes[VERSION_OFFSET] = VERSION;
        bytes[KIND_OFFSET] = self.kind as u8;
        put_at(&mut bytes, CONSENSUS_LENGTH_OFFSET, &(self.consensus_length as u32).to_le_bytes());
        put_at(&mut bytes, FRAMES_LENGTH_OFFSET, &(self.frames_length as u32).to_le_bytes());
        put_at(&mut bytes, NUMBER_OFFSET, &self.number.to_le_bytes());
        put_at(&mut bytes, CONSENSUS_CRC_OFFSET, &self.consensus_crc.to_le_bytes());
        let crc = crc32c(&bytes[..HEADER_CRC_OFFSET]);
        put_at(&mut bytes, HEADER_CRC_OFFSET, &crc.to_le_bytes());
        bytes
    }

    /// Checks a header; its lengths are then within the limits of its kind.
    ///
    /// # Errors
    /// The bytes are not a header.
    #[inline]
    pub fn parse(bytes: &[u8; HEADER_LENGTH]) -> Result<Self, WireError> {
        let magic = u32_at(bytes, 0);
        if magic != MAGIC {
            return Err(WireError::Magic { found: magic });
        }
        if bytes[VERSION_OFFSET] != VERSION {
            return Err(WireError::Version { found: bytes[VERSION_OFFSET] });
        }
        let (found, computed) = (u32_at(bytes, HEADER_CRC_OFFSET), crc32c(&bytes[..HEADER_CRC_OFFSET]));
        if found != computed {
            return Err(WireError::HeaderChecksum { found, computed });
        }
        let kind = MessageKind::from_value(bytes[KIND_OFFSET]).ok_or(WireError::Kind { found: bytes[KIND_OFFSET] })?;
        if bytes[KIND_OFFSET + 1..CONSENSUS_LENGTH_OFFSET] != [0; 2] {
            return Err(WireError::Malformed { what: "header" });
        }
        let header = Self {
            kind,
            consensus_length: u32_at(bytes, CONSENSUS_LENGTH_OFFSET) as usize,
            frames_length: u32_at(bytes, FRAMES_LENGTH_OFFSET) as usize,
            number: u64_at(bytes, NUMBER_OFFSET),
            consensus_crc: u32_at(bytes, CONSENSUS_CRC_OFFSET),
        };
        let (consensus_length_max, frames_length_max) = kind.lengths_max();
        for (part, found_bytes, limit_bytes) in [
            ("consensus", header.consensus_length, consensus_length_max),
            ("frames", header.frames_length, frames_length_max),
        ] {
            if found_bytes > limit_bytes {
                return Err(WireError::Length { part, found_bytes, limit_bytes });
            }
        }
        Ok(header)
    }

    /// Bytes with header and padding: a multiple of 8.
    #[inline]
    #[must_use]
    pub const fn message_length(&self) -> usize {
        self.frames_offset() + self.frames_length.next_multiple_of(8)
    }

    #[inline]
    #[must_use]
    pub const fn frames_offset(&self) -> usize {
        HEADER_LENGTH + self.consensus_length.next_multiple_of(8)
    }

    /// Consensus and frames part of a whole message.
    ///
    /// # Errors
    /// The consensus part is damaged, or the padding is not zero.
    ///
    /// # Panics
    /// If the length is not [`MessageHeader::message_length`].
    #[inline]
    pub fn parts<'a>(&self, message: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), WireError> {
        assert_eq!(message.len(), self.message_length(), "a whole message is taken apart");
        let (head, frames) = message.split_at(self.frames_offset());
        let (consensus, consensus_filling) = head[HEADER_LENGTH..].split_at(self.consensus_length);
        let (frames, frames_filling) = frames.split_at(self.frames_length);
        if consensus_filling.iter().chain(frames_filling).any(|byte| *byte != 0) {
            return Err(WireError::Malformed { what: "filling" });
        }
        let computed = crc32c(consensus);
        if computed != self.consensus_crc {
            return Err(WireError::ConsensusChecksum { found: self.consensus_crc, computed });
        }
        Ok((consensus, frames))
    }
}

/// 1 to [`CLUSTER_NAME_LENGTH_MAX`] bytes without control characters.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ClusterName(Box<str>);

impl ClusterName {
    /// `None` if empty, too long, or with control characters.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let is_valid = !name.is_empty() && name.len() <= CLUSTER_NAME_LENGTH_MAX && !name.chars().any(char::is_control);
        is_valid.then(|| Self(name.into()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for ClusterName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, formatter)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberIdentity {
    pub cluster: ClusterName,
    /// 0 while unknown.
    pub stream_id: u128,
    /// 0 while unknown.
    pub incarnation: u64,
    /// Number of the member, not 0.
    pub member: MemberNumber,
    /// Random number of the directory, drawn when it was empty: distinguishes two members configured with one identity.
    pub instance: u64,
}

/// A hello or a welcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Sender.
    pub from: MemberIdentity,
    /// Receiver, not 0.
    pub to: MemberNumber,
    /// State of the sender's log.
    pub log: LogState,
}

impl Introduction {
    #[must_use]
    pub fn to_bytes(&self) -> [u8; INTRODUCTION_LENGTH] {
        let mut bytes = [0; INTRODUCTION_LENGTH];
        let name = self.from.cluster.as_str().as_bytes();
        put_at(&mut bytes, 0, &self.from.stream_id.to_le_bytes());
        put_at(&mut bytes, 16, &self.from.incarnation.to_le_bytes());
        put_at(&mut bytes, 24, &self.from.member.to_le_bytes());
        put_at(&mut bytes, 32, &self.to.to_le_bytes());
        put_at(&mut bytes, 40, &self.from.instance.to_le_bytes());
        put_at(&mut bytes, 48, &u32::from(self.log.is_rejoining).to_le_bytes());
        put_at(&mut bytes, 54, &(name.len() as u16).to_le_bytes());
        bytes[56..56 + name.len()].copy_from_slice(name);
        put_at(&mut bytes, 120, &self.log.term.to_le_bytes());
        put_at(&mut bytes, 128, &self.log.last_index.to_le_bytes());
        bytes
    }

    /// Decodes an introduction.
    ///
    /// # Errors
    /// The bytes are not an introduction.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let malformed = WireError::Malformed { what: "introduction" };
        let bytes: &[u8; INTRODUCTION_LENGTH] = bytes.try_into().map_err(|_| malformed)?;
        let name_length = usize::from(u16_at(bytes, 54));
        let name = bytes[56..56 + CLUSTER_NAME_LENGTH_MAX].get(..name_length).ok_or(malformed)?;
        let cluster = std::str::from_utf8(name).ok().and_then(ClusterName::new).ok_or(malformed)?;
        let introduction = Self {
            from: MemberIdentity {
                cluster,
                stream_id: u128_at(bytes, 0),
                incarnation: u64_at(bytes, 16),
                member: u64_at(bytes, 24),
                instance: u64_at(bytes, 40),
            },
            to: u64_at(bytes, 32),
            log: LogState {
                term: u64_at(bytes, 120),
                last_index: u64_at(bytes, 128),
                is_rejoining: u32_at(bytes, 48) == 1,
            },
        };
        // Reserved fields must be zero, so encoding must give the same bytes.
        let is_valid = introduction.from.member != 0 && introduction.to != 0 && introduction.to_bytes() == *bytes;
        is_valid.then_some(introduction).ok_or(malformed)
    }
}

/// The discriminant is the wire value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u32)]
pub enum LinkRefusalCode {
    #[error("it belongs to a cluster of another name")]
    OtherCluster = 1,
    #[error("it belongs to another stream")]
    OtherStream = 2,
    #[error("it belongs to another incarnation of the stream")]
    OtherIncarnation = 3,
    #[error("it is not a member of the cluster")]
    UnknownMember = 4,
    /// Another process with this number is connected, or is the other side itself.
    #[error("two members have one number")]
    DuplicateIdentity = 5,
    #[error("it speaks another version of the protocol")]
    OtherVersion = 6,
    #[error("it has connected to itself")]
    Itself = 7,
    /// The hello was for another member: wrong address.
    #[error("the address is that of another member")]
    OtherMember = 8,
    /// The member with the lower number dials.
    #[error("of two members the one with the lower number connects")]
    WrongSide = 9,
    #[error("it is a member of the cluster no longer")]
    Removed = 10,
    /// The member has another directory than the one with which it acknowledged.
    #[error("it comes with another directory than before")]
    OtherDirectory = 11,
    /// The TLS certificate is not this member's.
    #[error("its certificate is another member's")]
    NotProven = 12,
    /// The log holds less than was acknowledged: an older copy of the directory.
    #[error("it has less than it has acknowledged")]
    LostAcknowledged = 13,
}

impl LinkRefusalCode {
    const ALL: [Self; 13] = [
        Self::OtherCluster,
        Self::OtherStream,
        Self::OtherIncarnation,
        Self::UnknownMember,
        Self::DuplicateIdentity,
        Self::OtherVersion,
        Self::Itself,
        Self::OtherMember,
        Self::WrongSide,
        Self::Removed,
        Self::OtherDirectory,
        Self::NotProven,
        Self::LostAcknowledged,
    ];

    fn from_value(value: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|code| *code as u32 == value)
    }
}

/// Refusal with the expected and the found value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkRefusal {
    pub code: LinkRefusalCode,
    /// Text for the other side's log; at most [`REFUSAL_TEXT_LENGTH_MAX`] bytes are sent.
    pub text: String,
}

impl LinkRefusal {
    /// Cuts a longer text.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let end = self.text.floor_char_boundary(REFUSAL_TEXT_LENGTH_MAX);
        let mut bytes = (self.code as u32).to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(&self.text.as_bytes()[..end]);
        bytes
    }

    /// Control characters in the text, which would break a log line, become spaces.
    ///
    /// # Errors
    /// The bytes are not a refusal.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let malformed = WireError::Malformed { what: "refusal" };
        let (head, text) = bytes.split_first_chunk::<REFUSAL_HEADER_LENGTH>().ok_or(malformed)?;
        let code = LinkRefusalCode::from_value(u32_at(head, 0)).ok_or(malformed)?;
        if u32_at(head, 4) != 0 || text.len() > REFUSAL_TEXT_LENGTH_MAX {
            return Err(malformed);
        }
        let text = std::str::from_utf8(text).map_err(|_| malformed)?;
        Ok(Self { code, text: text.replace(char::is_control, " ") })
    }
}

impl fmt::Display for LinkRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.code, self.text)
    }
}

#[cfg(test)]
mod tests;
