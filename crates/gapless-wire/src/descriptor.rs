//! The layout of a frame: every offset, limit, kind and flag, in one place.
//!
//! All fields are little-endian; a frame begins at a multiple of 8 bytes and occupies
//! [`aligned_length`] of its `length`; the bytes between are zero and belong to no checksum.
//!
//! ```text
//!   0                   1                   2                   3
//!   0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!  +-------------------------------+-------------------------------+
//!  |                            length                             |   0  header + payload, bytes
//!  +---------------+---------------+-------------------------------+
//!  |    version    |     kind      |             flags             |   4
//!  +---------------+---------------+-------------------------------+
//!  |                           sequence                            |   8  gapless from 1; 0 unsequenced
//!  |                                                               |
//!  +---------------------------------------------------------------+
//!  |                          timestamp                            |  16  ns since the epoch
//!  |                                                               |
//!  +---------------------------------------------------------------+
//!  |                           session                             |  24  who published it
//!  |                                                               |
//!  +---------------------------------------------------------------+
//!  |                         session_seq                           |  32  the publisher's own gapless number
//!  |                                                               |
//!  +---------------------------------------------------------------+
//!  |                             term                              |  40  leader's term, 0 without a cluster
//!  |                                                               |
//!  +-------------------------------+-------------------------------+
//!  |          template id          |           schema id           |  48  u32: schema id << 16 | template id
//!  +-------------------------------+-------------------------------+
//!  |        fragment count         |        fragment index         |  52  u32: index << 16 | count
//!  +-------------------------------+-------------------------------+
//!  |                          payload_crc                          |  56  CRC-32C, by the publisher
//!  +---------------------------------------------------------------+
//!  |                          header_crc                           |  60  CRC-32C of bytes 0–59
//!  +---------------------------------------------------------------+
//!  |                          payload …                            |  64
//! ```

pub const HEADER_LENGTH: usize = 64;
pub const MESSAGE_ALIGNMENT: usize = 8;
pub const VERSION: u8 = 1;
/// Limit of any stream's configuration, bytes.
pub const FRAME_LENGTH_MAX: usize = 1 << 20;
/// Longest frame that may cross UDP at an MTU of 1500, bytes.
pub const FRAME_LENGTH_UDP: usize = 1_376;

pub const LENGTH_OFFSET: usize = 0;
pub const VERSION_OFFSET: usize = 4;
pub const KIND_OFFSET: usize = 5;
pub const FLAGS_OFFSET: usize = 6;
pub const SEQUENCE_OFFSET: usize = 8;
pub const TIMESTAMP_OFFSET: usize = 16;
pub const SESSION_OFFSET: usize = 24;
pub const SESSION_SEQ_OFFSET: usize = 32;
pub const TERM_OFFSET: usize = 40;
pub const SCHEMA_OFFSET: usize = 48;
pub const FRAGMENT_OFFSET: usize = 52;
pub const PAYLOAD_CRC_OFFSET: usize = 56;
pub const HEADER_CRC_OFFSET: usize = 60;

/// Rounded up to [`MESSAGE_ALIGNMENT`].
#[inline]
#[must_use]
pub const fn aligned_length(length: usize) -> usize {
    (length + MESSAGE_ALIGNMENT - 1) & !(MESSAGE_ALIGNMENT - 1)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Expects exactly one reply.
    Command = 1,
    /// The frame has no reply.
    Event = 2,
    /// Appended by the sequencer only; the session is the timer's owner.
    Timer = 3,
    Mark = 4,
    /// The one reply to a command; never part of a stream.
    Reply = 5,
    /// Opens a session; its sequence becomes the session's identifier.
    SessionOpen = 6,
    /// Sent by its publisher, or appended by the sequencer when it has expired.
    SessionClose = 7,
    /// Unsolicited message from a service to a session; never part of a stream.
    Notice = 8,
    /// Acknowledges notices up to a number.
    Acknowledge = 9,
    TimerRequest = 10,
    /// In a journal only, sequence 0; `session_seq` is the sequence of the frame before it. [`crate::Frame::parse`]
    /// refuses it.
    Consensus = 11,
    /// Reads a service's state; never part of a stream. Session 0; `session_seq` is the client's number of the query,
    /// `sequence` the frame that must be handled first, `timestamp` the longest wait for it, ns.
    Query = 12,
    /// The one answer to a query; never part of a stream. `session_seq` is the query's, `sequence` the last handled
    /// frame.
    Answer = 13,
}

impl Kind {
    #[inline]
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Command,
            2 => Self::Event,
            3 => Self::Timer,
            4 => Self::Mark,
            5 => Self::Reply,
            6 => Self::SessionOpen,
            7 => Self::SessionClose,
            8 => Self::Notice,
            9 => Self::Acknowledge,
            10 => Self::TimerRequest,
            11 => Self::Consensus,
            12 => Self::Query,
            13 => Self::Answer,
            _ => return None,
        })
    }
}

/// The two lowest bits of `flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Encoding {
    Opaque = 0,
    /// Begins with the SBE message header.
    Sbe = 1,
    /// Field numbers are the SBE field ids.
    Protobuf = 2,
    /// A typed message: `schema` is the key of its name, the payload begins with its contract.
    Postcard = 3,
}

/// A new flag is also admitted in `known_flags` of the module `frame`.
pub const ENCODING_FLAGS: u16 = 0b11;
/// A [`Kind::Reply`] or [`Kind::Answer`] whose payload is a [`crate::control::Refusal`]; or a [`Kind::TimerRequest`]
/// for which the stream has no room: that frame keeps its place in the order but sets no timer.
pub const REFUSED_FLAG: u16 = 1 << 2;
/// A [`Kind::Consensus`] that holds the whole consensus state.
pub const CHECKPOINT_FLAG: u16 = 1 << 3;
/// Set by a leader that has run the handler of a [`Kind::Command`] or [`Kind::Timer`]: the payload is the resulting
/// transaction, after the 16 bytes of [`crate::control::TimerFired`] for a timer. Header fields stay the command's,
/// `encoding` is opaque. If a transaction takes several frames, each has the `session_seq` of the command's last.
pub const TRANSACTION_FLAG: u16 = 1 << 4;
/// Set by the sequencer on every frame of a typed [`Kind::Command`] whose contract its service does not handle: no
/// member handles it. Typed commands without it are handled by all members alike.
pub const UNHANDLED_FLAG: u16 = 1 << 5;
/// Flags of the sequencing side. No publisher may send them.
pub const SEQUENCER_FLAGS: u16 = TRANSACTION_FLAG | UNHANDLED_FLAG;

impl Encoding {
    /// Encoding in the two lowest bits.
    #[inline]
    #[must_use]
    pub const fn from_flags(flags: u16) -> Self {
        match flags & ENCODING_FLAGS {
            0 => Self::Opaque,
            1 => Self::Sbe,
            2 => Self::Protobuf,
            _ => Self::Postcard,
        }
    }

    #[inline]
    #[must_use]
    pub const fn flags(self) -> u16 {
        self as u16
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    pub index: u16,
    pub count: u16,
}

impl Fragment {
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// `None` unless index < count.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        let fragment = Self { index: (bits >> 16) as u16, count: bits as u16 };
        if fragment.index < fragment.count { Some(fragment) } else { None }
    }

    #[inline]
    #[must_use]
    pub const fn bits(self) -> u32 {
        (self.index as u32) << 16 | self.count as u32
    }

    #[inline]
    #[must_use]
    pub const fn is_last(self) -> bool {
        self.index + 1 == self.count
    }
}
