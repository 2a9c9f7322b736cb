//! The upstream protocol between a node and the sequencer's command port, over UDP or TCP.
//!
//! ```text
//!  every packet                              over TCP packets follow each other without anything between them
//!   0  u32  magic "GUP\1"
//!   4  u8   type                             1 hello, 2 welcome, 3 refusal, 4 frames, 5 answers,
//!   5  u8   reserved, 0                      6 report, 7 unknown, 8 farewell
//!   6  u16  reserved, 0
//!   8  u32  length                           of the whole packet, bytes
//!  12  u32  crc                              CRC-32C of the packet with this field 0; of frames and answers, which
//!                                            have their own checksums, of the first 24 bytes only
//!  16  u64  key                              the connection, from the welcome; 0 in a hello and a refusal
//!  24  …    body
//!
//!  hello (136 bytes)                         welcome (136 bytes)
//!  24  u64  nonce, not 0                     24  u64  nonce, of the hello
//!  32  u128 stream id, 0 for any             32  u128 stream id
//!  48  u64  incarnation, 0 for any           48  u64  incarnation
//!  56  u64  position: next to read;           56  u64  position: next to read
//!           0 the first that is held,        64  u64  released sequence
//!           2^64-1 the next one              72  u32  longest frame, bytes
//!  64  6 B  username                         76  u32  tier: 0 memory, 1 journal, 2 sync
//!  70 10 B  password                         80  u64  longest message with headers, bytes
//!  80  u64  sequence of the last frame       88 10 B  the feed session that holds the position
//!           that it has seen, 0 for none     98  6 B  0
//!  88  u64  its time stamp, ns
//!  96  u128 its stream id
//! 112  u64  its incarnation
//! 120  u16  mtu of the node's file, 0 for the
//!           stream's
//! 122 14 B  0: no answer to a hello is
//!           longer than the hello
//!                                           104  u64  its first sequence
//!  refusal (36 bytes + text)                112  u64  its last sequence, 0 while it is open
//!  24  u64  nonce, of the hello             120  u64  heartbeat interval, ns
//!  32  u32  code                            128  u64  flags, 0
//!  36  …    text, UTF-8, at most 100 bytes
//!
//!  report (64 bytes)                         frames, answers: frames, each padded to 8 bytes
//!  24  u64  position: next to read           unknown, farewell: no body
//!  32  u64  frames requested again
//!  40  u64  damaged or foreign packets
//!  48  u64  frames sent again
//!  56  u32  state: 0 rewinding, 1 live
//!  60  u32  messages in flight
//! ```

use crate::checksum::crc32c;
use crate::feed_session::FeedSession;
use crate::fields::{put_at, u16_at, u32_at, u64_at, u128_at};
use crate::mtu::{Mtu, PACKET_HEADER_LENGTH};
use crate::soup::Field;

/// No MoldUDP64 packet begins with it: it is no printable text.
pub const MAGIC: u32 = u32::from_le_bytes(*b"GUP\x01");
pub const HEADER_LENGTH: usize = 24;
/// At least the length of any answer, so that a forged sender address cannot be used for amplification.
pub const HELLO_LENGTH: usize = WELCOME_LENGTH;
/// Longest packet over TCP, bytes.
pub const PACKET_LENGTH_MAX: usize = 256 << 10;

const _: () = assert!(HEADER_LENGTH == PACKET_HEADER_LENGTH, "packets are as long as an MTU says");

const TYPE_OFFSET: usize = 4;
const LENGTH_OFFSET: usize = 8;
const CRC_OFFSET: usize = 12;
const KEY_OFFSET: usize = 16;
const WELCOME_LENGTH: usize = 136;
const REFUSAL_LENGTH: usize = 36;
const REPORT_LENGTH: usize = 64;
const CONTROL_LENGTH_MAX: usize = HELLO_LENGTH;
const TEXT_LENGTH_MAX: usize = CONTROL_LENGTH_MAX - REFUSAL_LENGTH;

/// In a hello: the first frame that is held.
pub const POSITION_FIRST: u64 = 0;
/// In a hello: the end of the stream.
pub const POSITION_LIVE: u64 = u64::MAX;
/// In a hello and its welcome: the client of a service reads its replies alone.
pub const POSITION_NONE: u64 = u64::MAX - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// A wrong first word.
    #[error("{found:#010x} begins no upstream packet; {MAGIC:#010x} does")]
    Magic { found: u32 },
    /// The length field does not match the packet, or exceeds the limits.
    #[error("an upstream packet of {found_bytes} bytes says that it has {length_bytes}")]
    Length { length_bytes: u32, found_bytes: usize },
    /// The checksum does not match the bytes.
    #[error("an upstream packet's checksum is {found:#010x}, its bytes give {computed:#010x}")]
    Checksum { found: u32, computed: u32 },
    /// An unknown type, or a body that does not match the type.
    #[error("the body of an upstream packet of type {kind} is malformed")]
    Body { kind: u8 },
}

/// The discriminant is the wire value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum RefusalReason {
    NotAuthorized = 1,
    OtherStream = 2,
    OtherIncarnation = 3,
    /// The position is no longer held.
    NotHeld = 4,
    /// The limit of nodes is reached, or the stream is stopping.
    Unavailable = 5,
    /// The node has seen a frame that this stream does not contain.
    OtherHistory = 6,
    OtherMtu = 7,
}

impl RefusalReason {
    const fn from_value(value: u32) -> Option<Self> {
        Some(match value {
            1 => Self::NotAuthorized,
            2 => Self::OtherStream,
            3 => Self::OtherIncarnation,
            4 => Self::NotHeld,
            5 => Self::Unavailable,
            6 => Self::OtherHistory,
            7 => Self::OtherMtu,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeHello {
    /// Chosen by the node; the answer carries it.
    pub nonce: u64,
    /// 0 for any.
    pub stream_id: u128,
    /// 0 for any.
    pub incarnation: u64,
    /// Next sequence, or [`POSITION_FIRST`] or [`POSITION_LIVE`].
    pub position: u64,
    pub username: Field<6>,
    pub password: Field<10>,
    /// 0 for none.
    pub seen_sequence: u64,
    pub seen_timestamp_ns: u64,
    pub seen_stream_id: u128,
    pub seen_incarnation: u64,
    /// `None` for the stream's.
    pub mtu: Option<Mtu>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeWelcome {
    pub nonce: u64,
    pub stream_id: u128,
    pub incarnation: u64,
    pub position: u64,
    pub released_sequence: u64,
    /// Longest frame, bytes.
    pub frame_length_max: u32,
    /// Durability of a released frame: 0 memory, 1 journal, 2 sync.
    pub tier: u32,
    /// Longest message, with the headers and padding of its frames.
    pub message_bytes_max: u64,
    /// Holds the position, or is the newest.
    pub feed_session: FeedSession,
    pub feed_first_sequence: u64,
    /// Last sequence of the feed session, if it has ended.
    pub feed_last_sequence: Option<u64>,
    /// Interval of the node's reports; after ten of them without a packet the node is forgotten.
    pub heartbeat_interval_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeReport {
    pub position: u64,
    pub frames_requested: u64,
    /// Damaged or foreign.
    pub packets_refused: u64,
    pub frames_resent: u64,
    pub is_live: bool,
    pub in_flight: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamBody<'a> {
    Hello(NodeHello),
    Welcome(NodeWelcome),
    Refusal {
        nonce: u64,
        reason: RefusalReason,
        text: &'a str,
    },
    Frames(&'a [u8]),
    Answers(&'a [u8]),
    Report(NodeReport),
    /// The node must say hello again.
    Unknown,
    Farewell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamPacket<'a> {
    /// 0 in a hello and a refusal.
    pub key: u64,
    pub body: UpstreamBody<'a>,
}

/// `None` while there are fewer than 12 bytes.
///
/// # Errors
/// [`UpstreamError::Magic`], [`UpstreamError::Length`] beyond [`PACKET_LENGTH_MAX`].
pub fn peek(bytes: &[u8]) -> Result<Option<usize>, UpstreamError> {
    if bytes.len() < LENGTH_OFFSET + 4 {
        return Ok(None);
    }
    let magic = u32_at(bytes, 0);
    if magic != MAGIC {
        return Err(UpstreamError::Magic { found: magic });
    }
    let length_bytes = u32_at(bytes, LENGTH_OFFSET);
    if !(HEADER_LENGTH..=PACKET_LENGTH_MAX).contains(&(length_bytes as usize)) {
        return Err(UpstreamError::Length { length_bytes, found_bytes: bytes.len() });
    }
    Ok(Some(length_bytes as usize))
}

impl<'a> UpstreamPacket<'a> {
    /// Reads exactly one packet.
    ///
    /// # Errors
    /// Any defect of the packet.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, UpstreamError> {
        let length = peek(bytes)?.filter(|length| *length == bytes.len());
        if length.is_none() || bytes.len() < HEADER_LENGTH {
            let length_bytes = if bytes.len() < LENGTH_OFFSET + 4 { 0 } else { u32_at(bytes, LENGTH_OFFSET) };
            return Err(UpstreamError::Length { length_bytes, found_bytes: bytes.len() });
        }
        let kind = bytes[TYPE_OFFSET];
        let (found, computed) = (u32_at(bytes, CRC_OFFSET), checksum(bytes));
        if found != computed {
            return Err(UpstreamError::Checksum { found, computed });
        }
        let body = if bytes[5..8] == [0; 3] { body(kind, bytes) } else { None };
        let body = body.ok_or(UpstreamError::Body { kind })?;
        Ok(Self { key: u64_at(bytes, KEY_OFFSET), body })
    }

    /// `None` if the packet does not fit.
    #[must_use]
    pub fn write_to(&self, buffer: &mut [u8]) -> Option<usize> {
        let text_length = |text: &str| text.len().min(TEXT_LENGTH_MAX);
        let (kind, length) = match &self.body {
            UpstreamBody::Hello(_) => (HELLO, HELLO_LENGTH),
            UpstreamBody::Welcome(_) => (WELCOME, WELCOME_LENGTH),
            UpstreamBody::Refusal { text, .. } => (REFUSAL, REFUSAL_LENGTH + text_length(text)),
            UpstreamBody::Frames(frames) => (FRAMES, HEADER_LENGTH + frames.len()),
            UpstreamBody::Answers(frames) => (ANSWERS, HEADER_LENGTH + frames.len()),
            UpstreamBody::Report(_) => (REPORT, REPORT_LENGTH),
            UpstreamBody::Unknown => (UNKNOWN, HEADER_LENGTH),
            UpstreamBody::Farewell => (FAREWELL, HEADER_LENGTH),
        };
        let packet = buffer.get_mut(..length)?;
        packet[HEADER_LENGTH..].fill(0);
        match self.body {
            UpstreamBody::Hello(hello) => {
                put_at(packet, 24, &hello.nonce.to_le_bytes());
                put_at(packet, 32, &hello.stream_id.to_le_bytes());
                put_at(packet, 48, &hello.incarnation.to_le_bytes());
                put_at(packet, 56, &hello.position.to_le_bytes());
                put_at(packet, 64, &hello.username.bytes());
                put_at(packet, 70, &hello.password.bytes());
                put_at(packet, 80, &hello.seen_sequence.to_le_bytes());
                put_at(packet, 88, &hello.seen_timestamp_ns.to_le_bytes());
                put_at(packet, 96, &hello.seen_stream_id.to_le_bytes());
                put_at(packet, 112, &hello.seen_incarnation.to_le_bytes());
                put_at(packet, 120, &Mtu::to_field(hello.mtu).to_le_bytes());
            }
            UpstreamBody::Welcome(welcome) => {
                put_at(packet, 24, &welcome.nonce.to_le_bytes());
                put_at(packet, 32, &welcome.stream_id.to_le_bytes());
                put_at(packet, 48, &welcome.incarnation.to_le_bytes());
                put_at(packet, 56, &welcome.position.to_le_bytes());
                put_at(packet, 64, &welcome.released_sequence.to_le_bytes());
                put_at(packet, 72, &welcome.frame_length_max.to_le_bytes());
                put_at(packet, 76, &welcome.tier.to_le_bytes());
                put_at(packet, 80, &welcome.message_bytes_max.to_le_bytes());
                put_at(packet, 88, &welcome.feed_session.bytes());
                put_at(packet, 104, &welcome.feed_first_sequence.to_le_bytes());
                put_at(packet, 112, &welcome.feed_last_sequence.unwrap_or(0).to_le_bytes());
                put_at(packet, 120, &welcome.heartbeat_interval_ns.to_le_bytes());
            }
            UpstreamBody::Refusal { nonce, reason, text } => {
                put_at(packet, 24, &nonce.to_le_bytes());
                put_at(packet, 32, &(reason as u32).to_le_bytes());
                let mut end = text_length(text);
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                put_at(packet, REFUSAL_LENGTH, &text.as_bytes()[..end]);
            }
            UpstreamBody::Frames(frames) | UpstreamBody::Answers(frames) => put_at(packet, HEADER_LENGTH, frames),
            UpstreamBody::Report(report) => {
                put_at(packet, 24, &report.position.to_le_bytes());
                put_at(packet, 32, &report.frames_requested.to_le_bytes());
                put_at(packet, 40, &report.packets_refused.to_le_bytes());
                put_at(packet, 48, &report.frames_resent.to_le_bytes());
                put_at(packet, 56, &u32::from(report.is_live).to_le_bytes());
                put_at(packet, 60, &report.in_flight.to_le_bytes());
            }
            UpstreamBody::Unknown | UpstreamBody::Farewell => {}
        }
        finish(packet, kind, self.key);
        Some(length)
    }
}

/// Writes the header before the published frames in `packet`.
///
/// # Panics
/// If `packet` does not hold a header.
pub fn finish_frames(packet: &mut [u8], key: u64) {
    finish(packet, FRAMES, key);
}

/// Like [`finish_frames`].
///
/// # Panics
/// See [`finish_frames`].
pub fn finish_answers(packet: &mut [u8], key: u64) {
    finish(packet, ANSWERS, key);
}

fn finish(packet: &mut [u8], kind: u8, key: u64) {
    let length = packet.len() as u32;
    put_at(packet, 0, &MAGIC.to_le_bytes());
    put_at(packet, TYPE_OFFSET, &[kind, 0, 0, 0]);
    put_at(packet, LENGTH_OFFSET, &length.to_le_bytes());
    put_at(packet, KEY_OFFSET, &key.to_le_bytes());
    let crc = checksum(packet);
    put_at(packet, CRC_OFFSET, &crc.to_le_bytes());
}

const HELLO: u8 = 1;
const WELCOME: u8 = 2;
const REFUSAL: u8 = 3;
const FRAMES: u8 = 4;
const ANSWERS: u8 = 5;
const REPORT: u8 = 6;
const UNKNOWN: u8 = 7;
const FAREWELL: u8 = 8;

fn checksum(packet: &[u8]) -> u32 {
    let mut copy = [0; CONTROL_LENGTH_MAX];
    // Frames have their own checksums, and all other packets are short.
    let is_frames = matches!(packet[TYPE_OFFSET], FRAMES | ANSWERS);
    let length = if is_frames { HEADER_LENGTH } else { packet.len().min(CONTROL_LENGTH_MAX) };
    copy[..length].copy_from_slice(&packet[..length]);
    copy[CRC_OFFSET..CRC_OFFSET + 4].fill(0);
    crc32c(&copy[..length])
}

fn body(kind: u8, bytes: &[u8]) -> Option<UpstreamBody<'_>> {
    let field = |offset| u64_at(bytes, offset);
    Some(match kind {
        HELLO if bytes.len() == HELLO_LENGTH && field(24) != 0 && bytes[122..].iter().all(|byte| *byte == 0) => {
            UpstreamBody::Hello(NodeHello {
                nonce: field(24),
                stream_id: u128_at(bytes, 32),
                incarnation: field(48),
                position: field(56),
                username: Field::from_bytes(bytes[64..].first_chunk()?)?,
                password: Field::from_bytes(bytes[70..].first_chunk()?)?,
                seen_sequence: field(80),
                seen_timestamp_ns: field(88),
                seen_stream_id: u128_at(bytes, 96),
                seen_incarnation: field(112),
                mtu: Mtu::from_field(u16_at(bytes, 120))?,
            })
        }
        WELCOME if bytes.len() == WELCOME_LENGTH && bytes[98..104] == [0; 6] && field(128) == 0 => {
            UpstreamBody::Welcome(NodeWelcome {
                nonce: field(24),
                stream_id: u128_at(bytes, 32),
                incarnation: field(48),
                position: field(56),
                released_sequence: field(64),
                frame_length_max: u32_at(bytes, 72),
                tier: u32_at(bytes, 76),
                message_bytes_max: field(80),
                feed_session: FeedSession::from_bytes(*bytes[88..].first_chunk()?)?,
                feed_first_sequence: field(104),
                feed_last_sequence: Some(field(112)).filter(|last| *last != 0),
                heartbeat_interval_ns: field(120),
            })
        }
        REFUSAL if (REFUSAL_LENGTH..=CONTROL_LENGTH_MAX).contains(&bytes.len()) => UpstreamBody::Refusal {
            nonce: field(24),
            reason: RefusalReason::from_value(u32_at(bytes, 32))?,
            text: std::str::from_utf8(&bytes[REFUSAL_LENGTH..]).ok()?.trim_end_matches('\0'),
        },
        FRAMES => UpstreamBody::Frames(&bytes[HEADER_LENGTH..]),
        ANSWERS => UpstreamBody::Answers(&bytes[HEADER_LENGTH..]),
        REPORT if bytes.len() == REPORT_LENGTH => UpstreamBody::Report(NodeReport {
            position: field(24),
            frames_requested: field(32),
            packets_refused: field(40),
            frames_resent: field(48),
            is_live: match u32_at(bytes, 56) {
                0 => false,
                1 => true,
                _ => return None,
            },
            in_flight: u32_at(bytes, 60),
        }),
        UNKNOWN if bytes.len() == HEADER_LENGTH => UpstreamBody::Unknown,
        FAREWELL if bytes.len() == HEADER_LENGTH => UpstreamBody::Farewell,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
