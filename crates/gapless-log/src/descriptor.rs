//! Layout of a mapping: a header page, an index of sequences, and the data, which is mapped twice in a row so that a
//! frame never wraps.
//!
//! ```text
//!  file:     | header 4096 | index: slots × u64 | data: capacity |
//!  mapping:  | header      | index              | data           | data again |
//!
//!  header (bytes; each of the words from 128 on has a cache line pair of its own)
//!     0  u64  magic "GAPLESS\1"
//!     8  u64  kind: 1 window, 2 ring
//!    16  u64  capacity, bytes
//!    24  u64  index slots
//!    32  u128 stream id
//!    48  u64  incarnation
//!    56  u64  longest frame, bytes
//!   128  u64  appended (window) or tail (ring): position after the last published frame
//!   136  u64  sequence of the last published frame (window)
//!   256  u64  released (window): position after the last frame whose tier is reached
//!   264  u64  sequence of the last released frame
//!   384  u64  claimed (window): position up to which the writer may be writing
//!   512  u64  head (ring): position after the last frame that the reader has finished
//!   640  u64  reader parked: 1 while the reader of a ring sleeps
//!   768  u64  closed: 1 when the writer has finished, 2 when the reader has finished
//!   896  u64 × 8  notes (ring): words of the reader for the other side to look at; nothing here depends on them
//! ```
//!
//! Positions are bytes since the start, never wrap, and map to `position % capacity`. Index slot `sequence % slots`
//! holds the position of that sequence's frame, or [`NOWHERE`] if it was truncated.

pub const HEADER_LENGTH: usize = 4096;
/// `GAPLESS` and the layout's version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"GAPLESS\x01");
pub const KIND_WINDOW: u64 = 1;
pub const KIND_RING: u64 = 2;

/// Word numbers (byte offset / 8) in the header.
pub const MAGIC_WORD: usize = 0;
pub const KIND_WORD: usize = 1;
pub const CAPACITY_WORD: usize = 2;
pub const INDEX_SLOTS_WORD: usize = 3;
pub const STREAM_LOW_WORD: usize = 4;
pub const STREAM_HIGH_WORD: usize = 5;
pub const INCARNATION_WORD: usize = 6;
pub const FRAME_LENGTH_MAX_WORD: usize = 7;
/// Appended (window) or tail (ring).
pub const TAIL_WORD: usize = 128 / 8;
pub const TAIL_SEQUENCE_WORD: usize = 136 / 8;
pub const RELEASED_WORD: usize = 256 / 8;
pub const RELEASED_SEQUENCE_WORD: usize = 264 / 8;
pub const CLAIMED_WORD: usize = 384 / 8;
pub const HEAD_WORD: usize = 512 / 8;
/// 1 while the ring's reader sleeps.
pub const READER_PARKED_WORD: usize = 640 / 8;
/// Bit 0: the writer has finished; bit 1: the reader.
pub const CLOSED_WORD: usize = 768 / 8;
pub const NOTES_WORD: usize = 896 / 8;
pub const NOTES: usize = 8;
pub const HEADER_WORDS: usize = NOTES_WORD + NOTES;

/// Least capacity, bytes: one page.
pub const CAPACITY_MIN: usize = 4096;
/// Greatest capacity, bytes.
pub const CAPACITY_MAX: usize = 1 << 36;
/// Value of an index slot whose frame was truncated.
pub const NOWHERE: u64 = u64::MAX;
/// Greatest position accepted when a mapping is opened, 4 EiB: sums of positions never overflow.
pub const POSITION_MAX: u64 = 1 << 62;
