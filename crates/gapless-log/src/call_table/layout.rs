//! Layout of the two regions of a call table, and the header of a request.

use crate::LogError;
use gapless_wire::fields::{u32_at, u64_at};

/// Number of priority classes; 0 is the most urgent.
pub const CLASSES: usize = 4;

pub const CLASS_TURNS: [u8; 15] = [0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0];
pub const SLOTS_MAX: u32 = 4096;
/// Longest payload, bytes: 16 MiB.
pub const PAYLOAD_LENGTH_MAX: usize = 16 << 20;
/// Room for the user headers of a request, bytes.
pub const HEADERS_ROOM: usize = if cfg!(loom) { 0 } else { 64 << 10 };
pub const REQUEST_HEADER_LENGTH: usize = 128;

#[cfg(not(loom))]
pub(super) const REQUESTS_MAGIC: u64 = u64::from_le_bytes(*b"GAPCALL\x04");
#[cfg(not(loom))]
pub(super) const CLAIMS_MAGIC: u64 = u64::from_le_bytes(*b"GAPCLAI\x04");

#[cfg(not(loom))]
const PAGE: usize = 4096;
/// Small for models, which should have few words.
#[cfg(loom)]
const PAGE: usize = 64;

/// Offsets in the request region.
pub(super) const TAILS: usize = PAGE;
/// In the cache line of the tails: a reader of a tail loads no other line.
const LATEST: usize = TAILS + CLASSES * 8;
const OFFERS: usize = TAILS + if cfg!(loom) { 64 } else { 128 };

/// Offsets in the claim region.
pub(super) const REACTOR_PARKED: usize = if cfg!(loom) { 8 } else { 128 };
pub(super) const UNTAKEN: usize = if cfg!(loom) { 24 } else { 192 };
pub(super) const DONE: usize = if cfg!(loom) { 16 } else { 256 };
const CLAIM_LINES: usize = if cfg!(loom) { 32 } else { DONE + SLOTS_MAX as usize / 8 }.next_multiple_of(PAGE);
const CLAIM_LINE_LENGTH: usize = if cfg!(loom) { 16 } else { 64 };
/// Cache line before a reply's bytes, polled by a spinning caller.
const REPLY_NOTICE_LENGTH: usize = if cfg!(loom) { 8 } else { 64 };

fn foreign(field: &'static str, found: impl ToString, expected: String) -> LogError {
    LogError::Foreign { field, found: found.to_string(), expected }
}

/// `generation u32 | low bits of its position u20 | slot u12`.
pub(super) const fn latest_word(position: u64, slot: u32, generation: u32) -> u64 {
    (generation as u64) << 32 | (position & LATEST_POSITION_MASK) << 12 | slot as u64
}

pub(super) const fn latest_entry(word: u64, position: u64) -> Option<(u32, u32)> {
    let is_meant = word >> 12 & LATEST_POSITION_MASK == position & LATEST_POSITION_MASK;
    if is_meant { Some((word as u32 & (SLOTS_MAX - 1), (word >> 32) as u32)) } else { None }
}

const LATEST_POSITION_MASK: u64 = (1 << 20) - 1;
const _: () = assert!(SLOTS_MAX == 1 << 12, "a slot has 12 bits in a latest word");

pub const STATUS_MAX: u32 = (1 << STATUS_BITS) - 1;
const STATUS_BITS: u32 = 7;
const _: () = assert!(PAYLOAD_LENGTH_MAX < 1 << (32 - STATUS_BITS), "a length has 25 bits in a notice");

/// `generation u32 | length of the reply u25 | status u7`.
pub(super) const fn notice_word(generation: u32, status: u32, length: usize) -> u64 {
    (generation as u64) << 32 | (length as u64) << STATUS_BITS | status as u64
}

pub(super) const fn noticed(word: u64, generation: u32) -> Option<(u32, u32)> {
    let low = word as u32;
    if (word >> 32) as u32 == generation { Some((low & STATUS_MAX, low >> STATUS_BITS)) } else { None }
}

/// Both sides compute the offsets of a table from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTableShape {
    slots: u32,
    payload_length_max: usize,
}

impl CallTableShape {
    /// `slots` is a power of two up to [`SLOTS_MAX`]; `payload_length_max` bytes come in addition to the user headers.
    ///
    /// # Errors
    /// [`LogError::Foreign`] for a number out of range.
    pub fn new(slots: u32, payload_length_max: usize) -> Result<Self, LogError> {
        if !slots.is_power_of_two() || slots > SLOTS_MAX {
            return Err(foreign("slots", slots, format!("a power of two up to {SLOTS_MAX}")));
        }
        if payload_length_max > PAYLOAD_LENGTH_MAX {
            return Err(foreign("longest payload", payload_length_max, format!("up to {PAYLOAD_LENGTH_MAX} bytes")));
        }
        Ok(Self { slots, payload_length_max })
    }

    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// Limit for a request and for a reply, bytes.
    #[must_use]
    pub const fn payload_length_max(&self) -> usize {
        self.payload_length_max
    }

    #[inline]
    #[must_use]
    pub const fn has_room(&self, headers_length: usize, payload_length: usize) -> bool {
        headers_length <= HEADERS_ROOM && payload_length <= self.payload_length_max
    }

    /// A faulty process of the same user may overwrite a slot, whatever it was given to map.
    pub(super) fn is_sound(&self, header: &RequestHeader, generation: u32) -> bool {
        header.generation == generation
            && self.has_room(header.headers_length as usize, header.payload_length as usize)
            && usize::from(header.class) < CLASSES
    }

    /// Twice the slots, so that an entry is seldom overwritten while its request is offered.
    pub(super) const fn ring_length(&self) -> usize {
        self.slots as usize * 2
    }

    pub(super) const fn offer(&self, class: usize, position: u64) -> usize {
        OFFERS + self.ring_entry(class, position) * 8
    }

    pub(super) const fn ring_entry(&self, class: usize, position: u64) -> usize {
        class * self.ring_length() + (position as usize & (self.ring_length() - 1))
    }

    pub(super) const fn latest(&self, class: usize) -> usize {
        LATEST + class * 8
    }

    const fn requests(&self) -> usize {
        (OFFERS + CLASSES * self.ring_length() * 8).next_multiple_of(PAGE)
    }

    const fn request_stride(&self) -> usize {
        (REQUEST_HEADER_LENGTH + HEADERS_ROOM + self.payload_length_max).next_multiple_of(PAGE)
    }

    pub(super) const fn request(&self, slot: u32) -> usize {
        self.requests() + slot as usize * self.request_stride()
    }

    #[must_use]
    pub const fn request_region_length(&self) -> usize {
        self.request(self.slots)
    }

    pub(super) const fn claim(&self, slot: u32) -> usize {
        CLAIM_LINES + slot as usize * CLAIM_LINE_LENGTH
    }

    const fn reply_stride(&self) -> usize {
        (REPLY_NOTICE_LENGTH + self.payload_length_max).next_multiple_of(PAGE)
    }

    pub(super) const fn reply_notice(&self, slot: u32) -> usize {
        self.claim(self.slots).next_multiple_of(PAGE) + slot as usize * self.reply_stride()
    }

    pub(super) const fn reply(&self, slot: u32) -> usize {
        self.reply_notice(slot) + REPLY_NOTICE_LENGTH
    }

    #[must_use]
    pub const fn claim_region_length(&self) -> usize {
        self.reply_notice(self.slots)
    }
}

/// ```text
///   0  u32 generation            36  u32 length of the payload
///   4  u8  class                 40  u64 affinity key, 0 none
///   5  u8  kind                  48  u64 deadline, ns of the monotonic clock, 0 none
///   6  u8  hops                  56  u64 fingerprint of the request's type
///   7  u8  attempt, from 1       64  u128 trace id, 0 none
///   8  u32 flags                 80  u64 span id
///  12  u32 encoding              88  u8  trace flags
///  16  u64 call's own number     89  …   reserved, 0
///  24  u64 sent at, ns of the monotonic clock
///  32  u32 length of the user    96  u64 instance, 0 none
///          headers              104  …   reserved, 0
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader {
    pub generation: u32,
    pub class: u8,
    /// Defined by the user of the table.
    pub kind: u8,
    pub hops: u8,
    pub attempt: u8,
    /// Defined by the user of the table.
    pub flags: u32,
    /// Defined by the user of the table.
    pub encoding: u32,
    pub call: u64,
    /// Ns of the monotonic clock.
    pub sent_ns: u64,
    pub headers_length: u32,
    pub payload_length: u32,
    pub key: u64,
    /// Ns of the monotonic clock; 0 for none.
    pub deadline_ns: u64,
    pub fingerprint: u64,
    pub trace_id: u128,
    pub span_id: u64,
    pub trace_flags: u8,
    /// Target among the instances that the receiver stands for; 0 for none.
    pub instance: u64,
}

impl RequestHeader {
    #[must_use]
    pub fn to_bytes(self) -> [u8; REQUEST_HEADER_LENGTH] {
        let mut bytes = [0; REQUEST_HEADER_LENGTH];
        bytes[0..4].copy_from_slice(&self.generation.to_le_bytes());
        bytes[4..8].copy_from_slice(&[self.class, self.kind, self.hops, self.attempt]);
        bytes[8..12].copy_from_slice(&self.flags.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.encoding.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.call.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.sent_ns.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.headers_length.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.payload_length.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.key.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.deadline_ns.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.fingerprint.to_le_bytes());
        bytes[64..80].copy_from_slice(&self.trace_id.to_le_bytes());
        bytes[80..88].copy_from_slice(&self.span_id.to_le_bytes());
        bytes[88] = self.trace_flags;
        bytes[96..104].copy_from_slice(&self.instance.to_le_bytes());
        bytes
    }

    #[must_use]
    pub fn from_bytes(bytes: &[u8; REQUEST_HEADER_LENGTH]) -> Self {
        Self {
            generation: u32_at(bytes, 0),
            class: bytes[4],
            kind: bytes[5],
            hops: bytes[6],
            attempt: bytes[7],
            flags: u32_at(bytes, 8),
            encoding: u32_at(bytes, 12),
            call: u64_at(bytes, 16),
            sent_ns: u64_at(bytes, 24),
            headers_length: u32_at(bytes, 32),
            payload_length: u32_at(bytes, 36),
            key: u64_at(bytes, 40),
            deadline_ns: u64_at(bytes, 48),
            fingerprint: u64_at(bytes, 56),
            trace_id: u128::from(u64_at(bytes, 64)) | u128::from(u64_at(bytes, 72)) << 64,
            span_id: u64_at(bytes, 80),
            trace_flags: bytes[88],
            instance: u64_at(bytes, 96),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn notice_belongs_to_its_generation() {
        let word = notice_word(u32::MAX, STATUS_MAX, PAYLOAD_LENGTH_MAX);
        assert_eq!(noticed(word, u32::MAX), Some((STATUS_MAX, PAYLOAD_LENGTH_MAX as u32)));
        assert_eq!(noticed(word, 0), None);
        assert_eq!(noticed(notice_word(1, 0, 5), 1), Some((0, 5)));
    }

    #[test]
    fn latest_entry_is_of_its_position() {
        let word = latest_word(7, SLOTS_MAX - 1, u32::MAX);
        assert_eq!(latest_entry(word, 7), Some((SLOTS_MAX - 1, u32::MAX)));
        assert_eq!(latest_entry(word, 6), None);
        assert_eq!(latest_entry(word, 8), None);
        assert_eq!(latest_entry(word, 7 + (1 << 20)), Some((SLOTS_MAX - 1, u32::MAX)), "20 bits of it");
    }
}
