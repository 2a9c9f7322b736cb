//! Layout of a segment file: every offset, mark and name, in one place.
//!
//! A segment is one preallocated file: a header page, the sparse index, and frames in the format of the window (see
//! `gapless_wire::descriptor`). Each frame is at a multiple of 8 bytes, without gaps, and zeros follow the last. All
//! fields are little-endian.
//!
//! If they were synced, the synced mark's second value is not 0: everything before that position of its segment, and in
//! every older segment, is on the device. A segment with records has a records mark, whose first value is 0 without a
//! checkpoint among them. A journal without records has neither.
//!
//! ```text
//!  offset
//!       0 +--------------------------------------------------------------+
//!         | fixed header, CRC-32C over bytes 0–123 at 124                 |
//!     512 | boot mark       : the machine's boot id, two u64              |
//!    1024 | opened mark     : first sequence, opened at (ns, epoch)       |
//!    1536 | journaled mark  : end position | sealed bit, last sequence    |
//!    2048 | synced mark     : sequence, end position of synced records    |
//!    2560 | failed mark     : 1 after a failed fdatasync, 0               |
//!    3072 | records mark    : newest checkpoint, sequence before it       |
//!    3584 | times mark      : time stamp of the frame before the first,   |
//!         |                   of the last, ns; 0 if it is not known        |
//!    4096 +--------------------------------------------------------------+
//!         | index: {u64 sequence, u64 position} for every 64 KiB of       |
//!         | frames; 0 where no batch began                                |
//!  frames +--------------------------------------------------------------+  multiple of 4096
//!  offset | frame, frame, frame … zeros                                   |
//!  length +--------------------------------------------------------------+
//!
//! fixed header
//!    0                   4                   8
//!    +---------------------------------------+
//!  0 |  magic "GAPLSEGM"                     |
//!  8 |  version          |  header length    |
//! 16 |  stream id, low                       |
//! 24 |  stream id, high                      |
//! 32 |  incarnation                          |
//! 40 |  segment number, from 1               |
//! 48 |  segment length, bytes                |
//! 56 |  frames offset, bytes                 |
//! 64 |  frame length max |  index stride     |
//! 72 |  reserved, 0 …                        |
//! 124|                   |  CRC-32C of 0–123 |
//!    +---------------------------------------+
//!
//! mark: two slots on one cache line, written in turn, so that one is always whole
//!    +-------------------+-------------------+-------------------+-------------------+
//!  0 |  first value      |  second value     |  generation       |  1 << 32 | CRC    |
//! 32 |  first value      |  second value     |  generation       |  1 << 32 | CRC    |
//!    +-------------------+-------------------+-------------------+-------------------+
//! ```

use gapless_wire::checksum::crc32c;
use gapless_wire::fields;

pub const MAGIC: [u8; 8] = *b"GAPLSEGM";
pub const VERSION: u32 = 1;
pub const HEADER_PAGE_LENGTH: usize = 4096;
pub const FIXED_LENGTH: usize = 128;
pub const FIXED_CRC_OFFSET: usize = 124;
pub const BOOT_MARK_OFFSET: usize = 512;
pub const OPENED_MARK_OFFSET: usize = 1024;
pub const JOURNALED_MARK_OFFSET: usize = 1536;
pub const SYNCED_MARK_OFFSET: usize = 2048;
pub const FAILED_MARK_OFFSET: usize = 2560;
pub const RECORDS_MARK_OFFSET: usize = 3072;
/// Time stamps of the frame before the first, and, in a sealed segment, of the last frame; 0: unknown. Neighbouring
/// segments must agree on them.
pub const TIMES_MARK_OFFSET: usize = 3584;
/// Words of 8 bytes in a mark.
pub const MARK_WORDS: usize = 8;
/// In the journaled mark's position (a multiple of 8): the segment takes no more frames.
pub const SEALED_BIT: u64 = 1;
pub const INDEX_OFFSET: usize = HEADER_PAGE_LENGTH;
/// Bytes of frames per index entry.
pub const INDEX_STRIDE: usize = 64 * 1024;
pub const INDEX_ENTRY_LENGTH: usize = 16;
/// Alignment of files and their areas, bytes.
pub const PAGE_LENGTH: usize = 4096;

pub const SEGMENT_SUFFIX: &str = ".segment";
pub const PREPARED_PREFIX: &str = "prepared-";
pub const LOCK_NAME: &str = "lock";

/// See `archived`.
pub const ARCHIVED_SUFFIX: &str = ".archived";
pub const ARCHIVE_LOCK_NAME: &str = "archive-lock";

/// See `history`.
pub const HISTORY_NAME: &str = "history";
/// Between the segment's name and a number.
pub const CUT_INFIX: &str = ".cut-";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedHeader {
    pub stream_id: u128,
    /// Drawn when the directory was created.
    pub incarnation: u64,
    /// In the directory, from 1.
    pub number: u64,
    /// Whole file, bytes.
    pub segment_length: u64,
    pub frames_offset: u64,
    /// Bytes.
    pub frame_length_max: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedHeaderFault {
    Magic,
    Checksum,
    Version(u32),
    Lengths,
}

impl FixedHeader {
    #[must_use]
    pub fn to_bytes(&self) -> [u8; FIXED_LENGTH] {
        let mut bytes = [0; FIXED_LENGTH];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(HEADER_PAGE_LENGTH as u32).to_le_bytes());
        bytes[16..32].copy_from_slice(&self.stream_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.number.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.segment_length.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.frames_offset.to_le_bytes());
        bytes[64..68].copy_from_slice(&self.frame_length_max.to_le_bytes());
        bytes[68..72].copy_from_slice(&(INDEX_STRIDE as u32).to_le_bytes());
        let sum = crc32c(&bytes[..FIXED_CRC_OFFSET]);
        bytes[FIXED_CRC_OFFSET..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes and checks a header.
    ///
    /// # Errors
    /// Defect of the header. The version is checked before the checksum, because another version may keep its checksum
    /// elsewhere.
    pub fn from_bytes(bytes: &[u8; FIXED_LENGTH]) -> Result<Self, FixedHeaderFault> {
        let (u32_at, u64_at) = (|at| fields::u32_at(bytes, at), |at| fields::u64_at(bytes, at));
        if bytes[..8] != MAGIC {
            return Err(FixedHeaderFault::Magic);
        }
        let sum_is_right = u32_at(FIXED_CRC_OFFSET) == crc32c(&bytes[..FIXED_CRC_OFFSET]);
        if u32_at(8) != VERSION {
            // A flipped bit must not look like a foreign version.
            let mut as_ours = *bytes;
            as_ours[8..12].copy_from_slice(&VERSION.to_le_bytes());
            let is_damage = u32_at(FIXED_CRC_OFFSET) == crc32c(&as_ours[..FIXED_CRC_OFFSET]);
            return Err(if is_damage { FixedHeaderFault::Checksum } else { FixedHeaderFault::Version(u32_at(8)) });
        }
        if !sum_is_right {
            return Err(FixedHeaderFault::Checksum);
        }
        let header = Self {
            stream_id: fields::u128_at(bytes, 16),
            incarnation: u64_at(32),
            number: u64_at(40),
            segment_length: u64_at(48),
            frames_offset: u64_at(56),
            frame_length_max: u32_at(64),
        };
        let lengths_hold = u32_at(12) as usize == HEADER_PAGE_LENGTH
            && u32_at(68) as usize == INDEX_STRIDE
            && header.segment_length <= SEGMENT_LENGTH_MAX
            && header.segment_length.is_multiple_of(PAGE_LENGTH as u64)
            && header.frames_offset == frames_offset(header.segment_length)
            && header.frames_offset < header.segment_length
            && (gapless_wire::HEADER_LENGTH..=gapless_wire::descriptor::FRAME_LENGTH_MAX)
                .contains(&(header.frame_length_max as usize));
        if lengths_hold { Ok(header) } else { Err(FixedHeaderFault::Lengths) }
    }
}

/// Longest segment, bytes: 1 TiB.
pub const SEGMENT_LENGTH_MAX: u64 = 1 << 40;

#[must_use]
pub const fn index_entries(segment_length: u64) -> usize {
    (segment_length as usize).div_ceil(INDEX_STRIDE)
}

#[must_use]
pub const fn frames_offset(segment_length: u64) -> u64 {
    let index_length = index_entries(segment_length) * INDEX_ENTRY_LENGTH;
    (INDEX_OFFSET + index_length.next_multiple_of(PAGE_LENGTH)) as u64
}

#[must_use]
pub fn segment_name(first_sequence: u64) -> String {
    format!("{first_sequence:020}{SEGMENT_SUFFIX}")
}

#[must_use]
pub fn archived_name(first_sequence: u64) -> String {
    format!("{first_sequence:020}{ARCHIVED_SUFFIX}")
}

#[must_use]
pub fn prepared_name(number: u64) -> String {
    format!("{PREPARED_PREFIX}{number:020}{SEGMENT_SUFFIX}")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedFileName {
    Segment(u64),
    Prepared(u64),
    Archived(u64),
}

/// `None` if it is not a segment's.
#[must_use]
pub fn parse_file_name(name: &str) -> Option<ParsedFileName> {
    let number = |digits: &str| {
        let all_digits = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if all_digits { digits.parse().ok() } else { None }
    };
    if let Some(digits) = name.strip_suffix(ARCHIVED_SUFFIX) {
        return number(digits).map(ParsedFileName::Archived);
    }
    let stem = name.strip_suffix(SEGMENT_SUFFIX)?;
    match stem.strip_prefix(PREPARED_PREFIX) {
        Some(digits) => number(digits).map(ParsedFileName::Prepared),
        None => number(stem).map(ParsedFileName::Segment),
    }
}

#[must_use]
pub fn is_cut_name(name: &str) -> bool {
    name.rsplit_once(CUT_INFIX).is_some_and(|(segment, number)| {
        parse_file_name(segment).is_some() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> FixedHeader {
        FixedHeader {
            stream_id: 0x1234_5678_9abc_def0_0fed_cba9_8765_4321,
            incarnation: 77,
            number: 3,
            segment_length: 1 << 20,
            frames_offset: frames_offset(1 << 20),
            frame_length_max: 1376,
        }
    }

    #[test]
    fn header_survives_a_round_trip() {
        assert_eq!(FixedHeader::from_bytes(&header().to_bytes()), Ok(header()));
    }

    #[test]
    fn flipped_header_bit_is_detected() {
        let bytes = header().to_bytes();
        for bit in 0..FIXED_LENGTH * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let fault = FixedHeader::from_bytes(&flipped).expect_err("one bit differs");
            assert!(matches!(fault, FixedHeaderFault::Magic | FixedHeaderFault::Checksum), "bit {bit}: {fault:?}");
        }
    }

    #[test]
    fn unknown_version_is_reported() {
        let mut bytes = header().to_bytes();
        bytes[8..12].copy_from_slice(&9u32.to_le_bytes());
        let sum = crc32c(&bytes[..FIXED_CRC_OFFSET]);
        bytes[FIXED_CRC_OFFSET..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(FixedHeader::from_bytes(&bytes), Err(FixedHeaderFault::Version(9)));
    }

    #[test]
    fn foreign_names_are_ignored() {
        assert_eq!(parse_file_name(&segment_name(u64::MAX)), Some(ParsedFileName::Segment(u64::MAX)));
        assert_eq!(parse_file_name(&prepared_name(7)), Some(ParsedFileName::Prepared(7)));
        assert_eq!(parse_file_name(&archived_name(7)), Some(ParsedFileName::Archived(7)));
        for foreign in ["lock", "1.segment", "00000000000000000001.snapshot", "+0000000000000000001.segment"] {
            assert_eq!(parse_file_name(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn index_fits_before_the_frames() {
        for length in [8192, 1 << 16, 1 << 20, 1 << 28, 1 << 30] {
            let offset = frames_offset(length) as usize;
            assert!(offset.is_multiple_of(PAGE_LENGTH));
            assert!(INDEX_OFFSET + index_entries(length) * INDEX_ENTRY_LENGTH <= offset);
        }
    }
}
