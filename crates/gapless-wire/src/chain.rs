//! The chained hash: one number that identifies a whole stream up to a frame. It protects against accidents and
//! mix-ups, not against forgery.

use crate::{Frame, FrameError, aligned_length};

/// 2^64 divided by the golden ratio, made odd.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash after a stream's frame. Each step is a bijection of the previous value, so two streams that differ in one
/// frame stay different until another frame differs.
///
/// ```
/// use gapless_wire::chain::Chain;
/// let mut chain = Chain::new(7);
/// chain.extend_checksums(1, 2);
/// let mut other = Chain::new(7);
/// other.extend_checksums(2, 1);
/// assert_ne!(chain.value(), other.value());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain(u64);

impl Chain {
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(mix(seed ^ MULTIPLIER))
    }

    #[must_use]
    pub const fn at(value: u64) -> Self {
        Self(value)
    }

    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }

    #[inline]
    pub fn extend(&mut self, frame: &Frame<'_>) {
        self.extend_checksums(frame.payload_crc(), frame.header_crc());
    }

    /// The header's checksum covers sequence, term and the payload's checksum.
    #[inline]
    pub const fn extend_checksums(&mut self, payload_crc: u32, header_crc: u32) {
        self.0 = mix(self.0 ^ (payload_crc as u64 | (header_crc as u64) << 32));
    }

    /// Adds all frames of `bytes`, back to back with their padding; returns their number.
    ///
    /// # Errors
    /// If some bytes are not a frame; the chain is then unchanged.
    pub fn extend_frames(&mut self, bytes: &[u8]) -> Result<u64, FrameError> {
        let mut chain = *self;
        let (mut rest, mut count) = (bytes, 0);
        while !rest.is_empty() {
            let frame = Frame::parse(rest)?;
            chain.extend(&frame);
            count += 1;
            rest = rest.get(aligned_length(frame.length())..).unwrap_or_default();
        }
        *self = chain;
        Ok(count)
    }
}

#[inline]
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_mul(MULTIPLIER);
    // The multiplication only moves bits up; this brings the upper half down again.
    value ^ (value >> 32)
}

#[cfg(test)]
mod tests {
    use super::Chain;
    use crate::{FrameHeader, FrameWriter, HEADER_LENGTH, aligned_length};

    fn frames(payloads: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (at, payload) in payloads.iter().enumerate() {
            let mut frame = vec![0; aligned_length(HEADER_LENGTH + payload.len())];
            let mut writer = FrameWriter::new(&mut frame);
            writer.payload_mut()[..payload.len()].copy_from_slice(payload);
            writer.finish(&FrameHeader { sequence: at as u64 + 1, ..FrameHeader::default() }, payload.len());
            bytes.extend(frame);
        }
        bytes
    }

    #[test]
    fn pieces_give_the_same_value() {
        let bytes = frames(&[b"one", b"two and more", b""]);
        let mut whole = Chain::new(1);
        assert_eq!(whole.extend_frames(&bytes), Ok(3));
        let cut = aligned_length(HEADER_LENGTH + 3);
        let mut pieces = Chain::new(1);
        assert_eq!(pieces.extend_frames(&bytes[..cut]), Ok(1));
        assert_eq!(Chain::at(pieces.value()).extend_frames(&bytes[cut..]), Ok(2));
        assert_eq!(pieces.extend_frames(&bytes[cut..]), Ok(2));
        assert_eq!(whole, pieces);
    }

    #[test]
    fn order_content_and_stream_count() {
        let value = |seed, payloads: &[&[u8]]| {
            let mut chain = Chain::new(seed);
            chain.extend_frames(&frames(payloads)).unwrap();
            chain.value()
        };
        let all = [
            value(1, &[b"a", b"b"]),
            value(1, &[b"b", b"a"]),
            value(2, &[b"a", b"b"]),
            value(1, &[b"a"]),
            value(1, &[b"a", b"c"]),
            value(1, &[]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one));
        }
    }

    #[test]
    fn bad_frame_leaves_chain_unchanged() {
        let mut bytes = frames(&[b"one", b"two"]);
        let length = bytes.len();
        bytes[length / 2 + 4] = 0xff;
        let mut chain = Chain::new(1);
        assert!(chain.extend_frames(&bytes).is_err());
        assert!(chain.extend_frames(&bytes[..length - 8]).is_err());
        assert_eq!(chain, Chain::new(1));
    }
}
