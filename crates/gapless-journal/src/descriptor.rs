//! The layout of a segment file: every offset, mark and name, in one place.
//!
//! Every module of this crate calls it. It never touches a file.
//!
//! A segment is one preallocated file: a header page, the sparse index, and frames as they stand in
//! the window (see `gapless_wire::descriptor`), each at a multiple of 8 bytes, without gaps, followed
//! by zeros. Positions are byte offsets in the file. All fields are little-endian.
//!
//! Records of consensus stand among the frames (decision 35). The synced mark's second value is not 0 where they were
//! synced with it: everything before that position of its segment, and in every segment before it, is on the device. The
//! records mark is there in a segment that holds records; its first value is 0 without a checkpoint among them. In a
//! journal without records neither is ever written.
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

/// The first eight bytes of every segment.
pub const MAGIC: [u8; 8] = *b"GAPLSEGM";
/// The version of this layout.
pub const VERSION: u32 = 1;
/// Length of the header page in bytes.
pub const HEADER_PAGE_LENGTH: usize = 4096;
/// Length of the fixed header in bytes, its checksum included.
pub const FIXED_LENGTH: usize = 128;
/// Offset of the fixed header's checksum.
pub const FIXED_CRC_OFFSET: usize = 124;
/// Offset of the boot mark.
pub const BOOT_MARK_OFFSET: usize = 512;
/// Offset of the opened mark.
pub const OPENED_MARK_OFFSET: usize = 1024;
/// Offset of the journaled mark.
pub const JOURNALED_MARK_OFFSET: usize = 1536;
/// Offset of the synced mark.
pub const SYNCED_MARK_OFFSET: usize = 2048;
/// Offset of the mark that a failed fdatasync leaves.
pub const FAILED_MARK_OFFSET: usize = 2560;
/// Offset of the mark that says where records of consensus are.
pub const RECORDS_MARK_OFFSET: usize = 3072;
/// Offset of the mark that holds the time stamps of the frame before the first and, once the segment is sealed, of the
/// last: by these two neighbours know each other. 0 stands for one that is not known.
pub const TIMES_MARK_OFFSET: usize = 3584;
/// Words of 8 bytes in a mark.
pub const MARK_WORDS: usize = 8;
/// Set in the journaled mark's position (a multiple of 8) when the segment takes no more frames.
pub const SEALED_BIT: u64 = 1;
/// Offset of the index.
pub const INDEX_OFFSET: usize = HEADER_PAGE_LENGTH;
/// One index entry stands for this many bytes of frames.
pub const INDEX_STRIDE: usize = 64 * 1024;
/// Length of an index entry in bytes.
pub const INDEX_ENTRY_LENGTH: usize = 16;
/// Files and their areas are multiples of this.
pub const PAGE_LENGTH: usize = 4096;

/// How the name of a segment ends.
pub const SEGMENT_SUFFIX: &str = ".segment";
/// How the name of a segment begins that has not got its final name yet.
pub const PREPARED_PREFIX: &str = "prepared-";
/// The name of the lock file.
pub const LOCK_NAME: &str = "lock";

/// How the name of a segment's stub ends, whose frames lie in an archive; see `archived`.
pub const ARCHIVED_SUFFIX: &str = ".archived";
/// The name of the lock of who archives.
pub const ARCHIVE_LOCK_NAME: &str = "archive-lock";

/// The name of the file that says which segments must be there; see `history`.
pub const HISTORY_NAME: &str = "history";
/// Stands in the name of a file of bytes that were cut from a journal, before a number: the name of the segment stands
/// before it.
pub const CUT_INFIX: &str = ".cut-";

/// The fields of a fixed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedHeader {
    /// The stream whose frames these are.
    pub stream_id: u128,
    /// Drawn when the directory was created.
    pub incarnation: u64,
    /// Counts the directory's segments from 1.
    pub number: u64,
    /// Length of the whole file in bytes.
    pub segment_length: u64,
    /// Where frames begin.
    pub frames_offset: u64,
    /// The longest frame of the stream in bytes.
    pub frame_length_max: u32,
}

/// Why a page is not a fixed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedFault {
    /// The first bytes are not [`MAGIC`].
    Magic,
    /// The checksum is not that of the bytes.
    Checksum,
    /// Another layout.
    Version(u32),
    /// A length or an offset that no writer writes.
    Lengths,
}

impl FixedHeader {
    /// The bytes of the header.
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

    /// Reads and checks a header.
    ///
    /// # Errors
    /// The fault of the header. The version is looked at before the checksum, because another version may keep its
    /// checksum elsewhere.
    pub fn from_bytes(bytes: &[u8; FIXED_LENGTH]) -> Result<Self, FixedFault> {
        let (u32_at, u64_at) = (|at| fields::u32_at(bytes, at), |at| fields::u64_at(bytes, at));
        if bytes[..8] != MAGIC {
            return Err(FixedFault::Magic);
        }
        let sum_is_right = u32_at(FIXED_CRC_OFFSET) == crc32c(&bytes[..FIXED_CRC_OFFSET]);
        if u32_at(8) != VERSION {
            // One flipped bit must not look like a foreign version.
            let mut as_ours = *bytes;
            as_ours[8..12].copy_from_slice(&VERSION.to_le_bytes());
            let is_damage = u32_at(FIXED_CRC_OFFSET) == crc32c(&as_ours[..FIXED_CRC_OFFSET]);
            return Err(if is_damage { FixedFault::Checksum } else { FixedFault::Version(u32_at(8)) });
        }
        if !sum_is_right {
            return Err(FixedFault::Checksum);
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
        if lengths_hold { Ok(header) } else { Err(FixedFault::Lengths) }
    }
}

/// The longest segment, in bytes: 1 TiB.
pub const SEGMENT_LENGTH_MAX: u64 = 1 << 40;

/// How many index entries a segment of `segment_length` bytes has.
#[must_use]
pub const fn index_entries(segment_length: u64) -> usize {
    (segment_length as usize).div_ceil(INDEX_STRIDE)
}

/// Where frames begin in a segment of `segment_length` bytes.
#[must_use]
pub const fn frames_offset(segment_length: u64) -> u64 {
    let index_length = index_entries(segment_length) * INDEX_ENTRY_LENGTH;
    (INDEX_OFFSET + index_length.next_multiple_of(PAGE_LENGTH)) as u64
}

/// The name of the segment whose first frame has this sequence.
#[must_use]
pub fn segment_name(first_sequence: u64) -> String {
    format!("{first_sequence:020}{SEGMENT_SUFFIX}")
}

/// The name of the stub of an archived segment whose first frame has this sequence.
#[must_use]
pub fn archived_name(first_sequence: u64) -> String {
    format!("{first_sequence:020}{ARCHIVED_SUFFIX}")
}

/// The name of a segment that is made ahead of need, before its first sequence is known.
#[must_use]
pub fn prepared_name(number: u64) -> String {
    format!("{PREPARED_PREFIX}{number:020}{SEGMENT_SUFFIX}")
}

/// The parts of a file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameMeaning {
    /// A segment with this first sequence.
    Segment(u64),
    /// A segment made ahead of need, with this number.
    Prepared(u64),
    /// The stub of an archived segment with this first sequence.
    Archived(u64),
}

/// Reads a file's name; `None` for a file that is not a segment of ours.
#[must_use]
pub fn meaning_of_name(name: &str) -> Option<NameMeaning> {
    let number = |digits: &str| {
        let all_digits = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if all_digits { digits.parse().ok() } else { None }
    };
    if let Some(digits) = name.strip_suffix(ARCHIVED_SUFFIX) {
        return number(digits).map(NameMeaning::Archived);
    }
    let stem = name.strip_suffix(SEGMENT_SUFFIX)?;
    match stem.strip_prefix(PREPARED_PREFIX) {
        Some(digits) => number(digits).map(NameMeaning::Prepared),
        None => number(stem).map(NameMeaning::Segment),
    }
}

/// Whether this is the name of something that was cut from a journal.
#[must_use]
pub fn is_cut_name(name: &str) -> bool {
    name.rsplit_once(CUT_INFIX).is_some_and(|(segment, number)| {
        meaning_of_name(segment).is_some() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
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
    fn a_header_reads_back() {
        assert_eq!(FixedHeader::from_bytes(&header().to_bytes()), Ok(header()));
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        let bytes = header().to_bytes();
        for bit in 0..FIXED_LENGTH * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let fault = FixedHeader::from_bytes(&flipped).expect_err("one bit differs");
            assert!(matches!(fault, FixedFault::Magic | FixedFault::Checksum), "bit {bit}: {fault:?}");
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = header().to_bytes();
        bytes[8..12].copy_from_slice(&9u32.to_le_bytes());
        let sum = crc32c(&bytes[..FIXED_CRC_OFFSET]);
        bytes[FIXED_CRC_OFFSET..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(FixedHeader::from_bytes(&bytes), Err(FixedFault::Version(9)));
    }

    #[test]
    fn names_read_back_and_foreign_names_are_left_alone() {
        assert_eq!(meaning_of_name(&segment_name(u64::MAX)), Some(NameMeaning::Segment(u64::MAX)));
        assert_eq!(meaning_of_name(&prepared_name(7)), Some(NameMeaning::Prepared(7)));
        assert_eq!(meaning_of_name(&archived_name(7)), Some(NameMeaning::Archived(7)));
        for foreign in ["lock", "1.segment", "00000000000000000001.snapshot", "+0000000000000000001.segment"] {
            assert_eq!(meaning_of_name(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn the_index_fits_before_the_frames() {
        for length in [8192, 1 << 16, 1 << 20, 1 << 28, 1 << 30] {
            let offset = frames_offset(length) as usize;
            assert!(offset.is_multiple_of(PAGE_LENGTH));
            assert!(INDEX_OFFSET + index_entries(length) * INDEX_ENTRY_LENGTH <= offset);
        }
    }
}
