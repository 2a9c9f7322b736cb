//! Reading: `Frame`, a checked view of bytes, and `FrameHeader`, its fields as values.

use crate::checksum::{both_checksums, header_checksum};
use crate::descriptor::{self as d, Encoding, Fragment, HEADER_LENGTH, Kind, MESSAGE_ALIGNMENT, aligned_length};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Fewer bytes than a header, or than the header's length field.
    #[error("frame is cut short: {needed_bytes} bytes expected, {found_bytes} found")]
    Truncated { needed_bytes: usize, found_bytes: usize },
    /// The length field is smaller than a header or greater than the limit.
    #[error("frame length {length_bytes} is outside of {HEADER_LENGTH}..={limit_bytes} bytes")]
    Length { length_bytes: u32, limit_bytes: usize },
    /// A version of the layout that this program does not know.
    #[error("frame version {found} is not {}", d::VERSION)]
    Version { found: u8 },
    /// An unknown kind, or one that has no place in a stream.
    #[error("frame kind {found} is unknown in a stream")]
    Kind { found: u8 },
    /// An undefined flag.
    #[error("frame flags {found:#06x} have no meaning")]
    Flags { found: u16 },
    /// A fragment index that is not below its count.
    #[error("fragment field {found:#010x}: the index must be below the count")]
    Fragment { found: u32 },
    /// A header checksum that does not match the header.
    #[error("header checksum is {found:#010x}, the bytes give {computed:#010x}")]
    HeaderChecksum { found: u32, computed: u32 },
    /// A payload checksum that does not match the payload.
    #[error("payload checksum is {found:#010x}, the bytes give {computed:#010x}")]
    PayloadChecksum { found: u32, computed: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    pub kind: Kind,
    pub flags: u16,
    /// Gapless from 1; 0 while unsequenced.
    pub sequence: u64,
    /// Nanoseconds since the epoch; 0 while unsequenced.
    pub timestamp_ns: u64,
    pub session: u64,
    /// Gapless, the publisher's own.
    pub session_seq: u64,
    /// 0 without a cluster.
    pub term: u64,
    /// Schema id << 16 | template id.
    pub schema: u32,
    pub fragment: Fragment,
}

impl Default for FrameHeader {
    fn default() -> Self {
        Self {
            kind: Kind::Command,
            flags: 0,
            sequence: 0,
            timestamp_ns: 0,
            session: 0,
            session_seq: 0,
            term: 0,
            schema: 0,
            fragment: Fragment::WHOLE,
        }
    }
}

/// A view of one frame whose length, version, kind, flags and fragment are valid.
///
/// [`Frame::verify`] checks the checksums, because readers within the machine need not.
///
/// ```
/// # mod gapless { pub mod journal { pub use gapless_wire::Frame; } }
/// # use gapless_wire::{FrameHeader, FrameWriter};
/// use gapless::journal::Frame;
/// # let mut buffer = [0u8; 128];
/// # let mut writer = FrameWriter::new(&mut buffer);
/// # writer.payload_mut()[..5].copy_from_slice(b"hello");
/// # let length = writer.finish(&FrameHeader { session: 7, ..FrameHeader::default() }, 5);
/// // `buffer` holds a frame of session 7.
/// let frame = Frame::parse(&buffer[..length])?;
/// frame.verify()?;
/// assert_eq!((frame.session(), frame.payload()), (7, &b"hello"[..]));
/// # Ok::<(), gapless_wire::FrameError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    header: &'a [u8; HEADER_LENGTH],
}

/// Tells a reader how much to copy before it looks at anything else.
///
/// # Errors
/// [`FrameError::Truncated`] for fewer than 4 bytes, [`FrameError::Length`] outside the limits.
#[inline]
pub fn peek_length(bytes: &[u8], limit_bytes: usize) -> Result<usize, FrameError> {
    let Some(field) = bytes.first_chunk::<4>() else {
        return Err(FrameError::Truncated { needed_bytes: HEADER_LENGTH, found_bytes: bytes.len() });
    };
    check_length(u32::from_le_bytes(*field), limit_bytes)
}

/// Unchecked, as a hint for prefetching; 0 without a whole header.
#[inline]
#[must_use]
pub fn peek_session(bytes: &[u8]) -> u64 {
    let field = bytes.get(d::SESSION_OFFSET..HEADER_LENGTH).and_then(<[u8]>::first_chunk);
    field.map_or(0, |field| u64::from_le_bytes(*field))
}

/// Like [`peek_session`], for consecutive frames; returns the filled part of `sessions`.
#[inline]
pub fn peek_sessions<'a>(mut bytes: &[u8], sessions: &'a mut [u64]) -> &'a [u64] {
    let mut count = 0;
    while count < sessions.len()
        && let Ok(length) = peek_length(bytes, bytes.len())
    {
        sessions[count] = peek_session(bytes);
        count += 1;
        bytes = bytes.get(aligned_length(length)..).unwrap_or_default();
    }
    &sessions[..count]
}

/// Checks a length field against the header and `limit_bytes`.
///
/// # Errors
/// [`FrameError::Length`] outside the limits.
#[inline]
pub const fn check_length(length_bytes: u32, limit_bytes: usize) -> Result<usize, FrameError> {
    let length = length_bytes as usize;
    if length < HEADER_LENGTH || length > limit_bytes {
        return Err(FrameError::Length { length_bytes, limit_bytes });
    }
    Ok(length)
}

impl<'a> Frame<'a> {
    /// Views the frame at the start of `bytes`. Refuses a record of consensus ([`Kind::Consensus`]).
    ///
    /// # Errors
    /// Any defect of the header. Never reads past `bytes`.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        Self::view(bytes, false)
    }

    /// Like [`Frame::parse`], and admits a record of consensus. Never call it with bytes from outside.
    ///
    /// # Errors
    /// See [`Frame::parse`].
    #[inline]
    pub fn parse_journaled(bytes: &'a [u8]) -> Result<Self, FrameError> {
        Self::view(bytes, true)
    }

    #[inline(always)]
    fn view(bytes: &'a [u8], is_in_journal: bool) -> Result<Self, FrameError> {
        let length = peek_length(bytes, d::FRAME_LENGTH_MAX)?;
        let (Some(bytes), Some(header)) = (bytes.get(..length), bytes.first_chunk()) else {
            return Err(FrameError::Truncated { needed_bytes: length, found_bytes: bytes.len() });
        };
        let frame = Self { bytes, header };
        if header[d::VERSION_OFFSET] != d::VERSION {
            return Err(FrameError::Version { found: header[d::VERSION_OFFSET] });
        }
        let is_record = match Kind::from_byte(header[d::KIND_OFFSET]) {
            Some(Kind::Consensus) if is_in_journal => true,
            None | Some(Kind::Consensus) => return Err(FrameError::Kind { found: header[d::KIND_OFFSET] }),
            Some(_) => false,
        };
        let flags = frame.flags();
        let of_record = if is_record { d::CHECKPOINT_FLAG } else { d::SEQUENCER_FLAGS };
        let known_flags = d::ENCODING_FLAGS | d::REFUSED_FLAG | of_record;
        if flags & !known_flags != 0 {
            return Err(FrameError::Flags { found: flags });
        }
        let fragment = frame.u32_at(d::FRAGMENT_OFFSET);
        if Fragment::from_bits(fragment).is_none() {
            return Err(FrameError::Fragment { found: fragment });
        }
        Ok(frame)
    }

    /// Checks both checksums.
    ///
    /// # Errors
    /// [`FrameError::HeaderChecksum`] or [`FrameError::PayloadChecksum`].
    #[inline]
    pub fn verify(&self) -> Result<(), FrameError> {
        let (payload, header) = both_checksums(self.payload(), &words_of(self.header), self.payload_crc());
        if header != self.header_crc() {
            return Err(FrameError::HeaderChecksum { found: self.header_crc(), computed: header });
        }
        if payload != self.payload_crc() {
            return Err(FrameError::PayloadChecksum { found: self.payload_crc(), computed: payload });
        }
        Ok(())
    }

    #[inline]
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_LENGTH..]
    }

    #[inline]
    #[must_use]
    pub const fn length(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    #[must_use]
    pub fn kind(&self) -> Kind {
        Kind::from_byte(self.header[d::KIND_OFFSET]).expect("the kind is checked by parse")
    }

    #[inline]
    #[must_use]
    pub fn flags(&self) -> u16 {
        u16::from_le_bytes([self.header[d::FLAGS_OFFSET], self.header[d::FLAGS_OFFSET + 1]])
    }

    #[inline]
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        Encoding::from_flags(self.flags())
    }

    #[inline]
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.u64_at(d::SEQUENCE_OFFSET)
    }

    #[inline]
    #[must_use]
    pub fn timestamp_ns(&self) -> u64 {
        self.u64_at(d::TIMESTAMP_OFFSET)
    }

    #[inline]
    #[must_use]
    pub fn session(&self) -> u64 {
        self.u64_at(d::SESSION_OFFSET)
    }

    #[inline]
    #[must_use]
    pub fn session_seq(&self) -> u64 {
        self.u64_at(d::SESSION_SEQ_OFFSET)
    }

    #[inline]
    #[must_use]
    pub fn term(&self) -> u64 {
        self.u64_at(d::TERM_OFFSET)
    }

    #[inline]
    #[must_use]
    pub fn schema(&self) -> u32 {
        self.u32_at(d::SCHEMA_OFFSET)
    }

    #[inline]
    #[must_use]
    pub fn fragment(&self) -> Fragment {
        Fragment::from_bits(self.u32_at(d::FRAGMENT_OFFSET)).expect("the fragment is checked by parse")
    }

    #[inline]
    #[must_use]
    pub fn payload_crc(&self) -> u32 {
        self.u32_at(d::PAYLOAD_CRC_OFFSET)
    }

    #[inline]
    #[must_use]
    pub fn header_crc(&self) -> u32 {
        self.u32_at(d::HEADER_CRC_OFFSET)
    }

    #[must_use]
    pub fn header(&self) -> FrameHeader {
        FrameHeader {
            kind: self.kind(),
            flags: self.flags(),
            sequence: self.sequence(),
            timestamp_ns: self.timestamp_ns(),
            session: self.session(),
            session_seq: self.session_seq(),
            term: self.term(),
            schema: self.schema(),
            fragment: self.fragment(),
        }
    }

    #[inline]
    fn u32_at(&self, offset: usize) -> u32 {
        u32::from_le_bytes(*self.header[offset..].first_chunk().expect("offsets are inside the header"))
    }

    #[inline]
    fn u64_at(&self, offset: usize) -> u64 {
        u64::from_le_bytes(*self.header[offset..].first_chunk().expect("offsets are inside the header"))
    }
}

impl std::fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame").field("header", &self.header()).field("length", &self.length()).finish()
    }
}

#[inline]
pub(crate) fn header_checksum_of(header: &[u8; HEADER_LENGTH]) -> u32 {
    let payload_crc = header[d::PAYLOAD_CRC_OFFSET..].first_chunk().expect("it lies within the header");
    header_checksum(&words_of(header), u32::from_le_bytes(*payload_crc))
}

#[inline]
fn words_of(header: &[u8; HEADER_LENGTH]) -> [u64; 7] {
    let words = header.as_chunks::<8>().0;
    std::array::from_fn(|at| u64::from_le_bytes(words[at]))
}

const _: () = assert!(HEADER_LENGTH.is_multiple_of(MESSAGE_ALIGNMENT));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameWriter;

    fn framed(kind: Kind, flags: u16) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LENGTH + 8];
        let mut writer = FrameWriter::new(&mut bytes);
        writer.payload_mut().copy_from_slice(b"a record");
        writer.finish(&FrameHeader { kind, flags, ..FrameHeader::default() }, 8);
        bytes
    }

    #[test]
    fn sessions_of_whole_frames_are_peeked() {
        let mut bytes = Vec::new();
        for (session, payload_length) in [(5, 0), (6, 3), (7, 8)] {
            let mut frame = vec![0; aligned_length(HEADER_LENGTH + payload_length)];
            FrameWriter::new(&mut frame).finish(&FrameHeader { session, ..FrameHeader::default() }, payload_length);
            bytes.extend(frame);
        }
        assert_eq!(peek_sessions(&bytes, &mut [0; 8]), [5, 6, 7]);
        assert_eq!(peek_sessions(&bytes, &mut [0; 2]), [5, 6]);
        assert_eq!(peek_sessions(&bytes[..bytes.len() - 1], &mut [0; 8]), [5, 6]);
        assert_eq!(peek_sessions(&bytes[..HEADER_LENGTH - 1], &mut [0; 8]), []);
        assert_eq!(peek_sessions(&[], &mut [0; 8]), []);
    }

    #[test]
    fn consensus_record_is_journal_only() {
        for flags in [0, d::CHECKPOINT_FLAG] {
            let bytes = framed(Kind::Consensus, flags);
            assert_eq!(Frame::parse(&bytes).err(), Some(FrameError::Kind { found: 11 }));
            let record = Frame::parse_journaled(&bytes).unwrap();
            record.verify().unwrap();
            assert_eq!((record.kind(), record.flags(), record.payload()), (Kind::Consensus, flags, &b"a record"[..]));
        }
    }

    #[test]
    fn other_kinds_parse_everywhere() {
        for byte in 0..=255 {
            let kind = Kind::from_byte(byte).filter(|kind| *kind != Kind::Consensus);
            assert_eq!(kind.is_some(), matches!(byte, 1..=10 | 12 | 13), "kind {byte}");
            let Some(kind) = kind else { continue };
            let bytes = framed(kind, 0);
            assert_eq!(Frame::parse(&bytes).unwrap().header(), Frame::parse_journaled(&bytes).unwrap().header());
            let bytes = framed(kind, d::CHECKPOINT_FLAG);
            let refused = Some(FrameError::Flags { found: d::CHECKPOINT_FLAG });
            assert_eq!((Frame::parse(&bytes).err(), Frame::parse_journaled(&bytes).err()), (refused, refused));
        }
    }
}
