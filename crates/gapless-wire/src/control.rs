//! Payloads of the frames that the engine itself understands. Little-endian.

use crate::fields::{u32_at, u64_at, u128_at};

/// On its way to the sequencer the header carries session 0, or the only acceptable session: if the token belongs to
/// another session or to no session, the open is refused as unknown and makes none.
///
/// ```text
///  0  u128 token           the same token again gets the same session
/// 16  u32  window_messages messages that may be in flight, 1..=65,536
/// 20  u32  flags           bit 0: shared; the others are 0
/// 24  u64  notices_seen    the last notice that the publisher has received
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOpen {
    pub token: u128,
    pub window_messages: u32,
    /// Several publishers may use the session at the same time: instances of one service that publish the same messages
    /// under the same numbers.
    pub shared: bool,
    /// 0 for none.
    pub notices_seen: u64,
}

/// A service that keeps replies allows less.
pub const WINDOW_MESSAGES_MAX: u32 = 1 << 16;

const SHARED_FLAG: u32 = 1;

impl SessionOpen {
    pub const LENGTH: usize = 32;

    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..16].copy_from_slice(&self.token.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.window_messages.to_le_bytes());
        bytes[20..24].copy_from_slice(&(if self.shared { SHARED_FLAG } else { 0 }).to_le_bytes());
        bytes[24..32].copy_from_slice(&self.notices_seen.to_le_bytes());
        bytes
    }

    /// `None` unless `payload` has exactly this form and a window of 1..=65,536.
    #[must_use]
    pub fn from_bytes(payload: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LENGTH] = payload.try_into().ok()?;
        let (token, window_messages, flags) = (u128_at(bytes, 0), u32_at(bytes, 16), u32_at(bytes, 20));
        let notices_seen = u64_at(bytes, 24);
        let is_sound = (1..=WINDOW_MESSAGES_MAX).contains(&window_messages) && flags & !SHARED_FLAG == 0 && token != 0;
        is_sound.then_some(Self { token, window_messages, shared: flags & SHARED_FLAG != 0, notices_seen })
    }
}

/// ```text
///  0  u128 token            of the open
/// 16  u64  next_session_seq the next number that the session accepts
/// 24  u64  notices_acknowledged the last notice that the session has acknowledged
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOpened {
    pub token: u128,
    pub next_session_seq: u64,
    /// 0 for none.
    pub notices_acknowledged: u64,
}

impl SessionOpened {
    pub const LENGTH: usize = 32;

    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..16].copy_from_slice(&self.token.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.next_session_seq.to_le_bytes());
        bytes[24..].copy_from_slice(&self.notices_acknowledged.to_le_bytes());
        bytes
    }

    /// `None` unless `payload` has exactly this length.
    #[must_use]
    pub fn from_bytes(payload: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LENGTH] = payload.try_into().ok()?;
        Some(Self {
            token: u128_at(bytes, 0),
            next_session_seq: u64_at(bytes, 16),
            notices_acknowledged: u64_at(bytes, 24),
        })
    }
}

/// Why a command got no reply of the service, or a query no answer. The discriminant is the wire value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum RefusalCode {
    SessionUnknown = 1,
    /// A repeat whose reply is no longer kept; the detail is the first number with a kept reply.
    ReplyExpired = 2,
    /// Earlier commands are missing; the detail is the next expected number.
    Gap = 3,
    Malformed = 4,
    Unhandled = 5,
    /// The handler's outputs were discarded.
    HandlerPanicked = 6,
    /// The handler refused the command; the text is the handler's.
    Rejected = 7,
    /// The detail is the sequenced time, ns since the epoch, from which on messages are accepted again. No message is
    /// lost.
    Throttled = 8,
    /// Too many sessions; the detail is the low half of the token of the open.
    Limit = 9,
    /// The text has the addresses of the leader, one a line; empty while none is known.
    NotLeader = 10,
    /// The command took effect, but its reply is not kept; the detail is its length in bytes.
    ReplyTooLong = 11,
    /// The detail is the number of the command whose frame it is; 0 if it acknowledges notices.
    NotACommand = 12,
    /// A query that has waited as long as it may; the detail is the sequence that it waits for.
    Behind = 13,
    /// A query more than may wait for one connection; the detail is their limit.
    Busy = 14,
}

impl RefusalCode {
    #[must_use]
    pub const fn from_value(value: u32) -> Option<Self> {
        Some(match value {
            1 => Self::SessionUnknown,
            2 => Self::ReplyExpired,
            3 => Self::Gap,
            4 => Self::Malformed,
            5 => Self::Unhandled,
            6 => Self::HandlerPanicked,
            7 => Self::Rejected,
            8 => Self::Throttled,
            9 => Self::Limit,
            10 => Self::NotLeader,
            11 => Self::ReplyTooLong,
            12 => Self::NotACommand,
            13 => Self::Behind,
            14 => Self::Busy,
            _ => return None,
        })
    }
}

/// Payload of a reply or an answer with [`crate::descriptor::REFUSED_FLAG`].
///
/// ```text
///  0  u32  code
///  4  u32  reserved, 0
///  8  u64  detail           for a gap: the next expected session_seq; throttled: until when;
///                          a session too many: the low half of its token; a reply that is
///                          no longer kept, a number that is no command's: see there; else 0
/// 16  …    text, UTF-8
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    pub code: RefusalCode,
    /// Number whose meaning depends on the code, see [`RefusalCode`]; the application's own code for a rejection; else
    /// 0.
    pub detail: u64,
    pub text: &'a str,
}

impl<'a> Refusal<'a> {
    pub const FIXED_LENGTH: usize = 16;

    /// A text that does not fit is cut at a character boundary.
    ///
    /// # Panics
    /// If `buffer` is shorter than [`Refusal::FIXED_LENGTH`].
    pub fn write_to(&self, buffer: &mut [u8]) -> usize {
        let room = buffer.len() - Self::FIXED_LENGTH;
        let mut text_length = self.text.len().min(room);
        while !self.text.is_char_boundary(text_length) {
            text_length -= 1;
        }
        buffer[..4].copy_from_slice(&(self.code as u32).to_le_bytes());
        buffer[4..8].fill(0);
        buffer[8..16].copy_from_slice(&self.detail.to_le_bytes());
        buffer[16..16 + text_length].copy_from_slice(&self.text.as_bytes()[..text_length]);
        16 + text_length
    }

    /// `None` unless `payload` has this form.
    #[must_use]
    pub fn from_bytes(payload: &'a [u8]) -> Option<Self> {
        let (fixed, text) = payload.split_first_chunk::<{ Refusal::FIXED_LENGTH }>()?;
        Some(Self {
            code: RefusalCode::from_value(u32_at(fixed, 0))?,
            detail: u64_at(fixed, 8),
            text: std::str::from_utf8(text).ok()?,
        })
    }
}

/// Payload of a [`crate::Kind::Timer`] frame, which says that a timer is due, and of a [`crate::Kind::TimerRequest`],
/// by which a publisher asks for a timer.
///
/// ```text
///  0  u64  timer            the identifier that its owner gave it
///  8  u64  deadline_ns      when it was to fire, sequenced time; 0 in a request: not any more
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerFired {
    pub timer: u64,
    /// Ns since the epoch; 0 in a request cancels the timer.
    pub deadline_ns: u64,
}

impl TimerFired {
    pub const LENGTH: usize = 16;

    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&self.timer.to_le_bytes());
        bytes[8..].copy_from_slice(&self.deadline_ns.to_le_bytes());
        bytes
    }

    /// `None` unless `payload` has exactly this length.
    #[must_use]
    pub fn from_bytes(payload: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LENGTH] = payload.try_into().ok()?;
        Some(Self { timer: u64_at(bytes, 0), deadline_ns: u64_at(bytes, 8) })
    }
}
