//! CRC-32C (Castagnoli; RFC 3720, appendix B.4) as frames use it.
//!
//! Frames are small: a header is 60 bytes, a typical payload 200. For such lengths the published
//! crates spend as long on choosing a method as on the sum (60 bytes: 21 ns against 8 ns), and a
//! message is summed five times on its way, so the short loop is written out here. Longer payloads
//! go to the `crc32c` crate, which interleaves three streams.

use crate::descriptor::HEADER_CRC_OFFSET;

/// From this length on, in bytes, the interleaved implementation of the crate is faster.
const INTERLEAVED_LENGTH_MIN: usize = 1024;

/// CRC-32C of `bytes`.
#[inline]
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() < INTERLEAVED_LENGTH_MIN && std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has SSE 4.2, checked in the line above.
        #[allow(unsafe_code)]
        return unsafe { sse42(bytes) };
    }
    ::crc32c::crc32c(bytes)
}

/// CRC-32C of a header's first 60 bytes: seven little-endian words, and the payload's checksum.
#[inline]
#[must_use]
pub(crate) fn header_checksum(words: &[u64; 7], payload_crc: u32) -> u32 {
    let mut bytes = [0; HEADER_CRC_OFFSET];
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for (target, word) in chunks.iter_mut().zip(words) {
        *target = word.to_le_bytes();
    }
    rest.copy_from_slice(&payload_crc.to_le_bytes());
    crc32c(&bytes)
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse4.2")]
fn sse42(bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u32, _mm_crc32_u64};
    let (words, mut tail) = bytes.as_chunks::<8>();
    let mut sum = u64::from(u32::MAX);
    for word in words {
        sum = _mm_crc32_u64(sum, u64::from_le_bytes(*word));
    }
    // The instruction leaves the upper half zero.
    let mut sum = sum as u32;
    if let Some((half, rest)) = tail.split_first_chunk::<4>() {
        sum = _mm_crc32_u32(sum, u32::from_le_bytes(*half));
        tail = rest;
    }
    for byte in tail {
        sum = _mm_crc32_u8(sum, *byte);
    }
    !sum
}

#[cfg(test)]
mod tests {
    //! Known answers of RFC 3720, and agreement with the crate at every length.
    use super::crc32c;

    #[test]
    fn known_answers_of_rfc_3720() {
        assert_eq!(crc32c(&[0x00; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&ascending), 0x46dd_794e);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn every_length_and_alignment_agrees_with_the_crate() {
        let bytes: Vec<u8> = (0..2100u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for start in 0..9 {
            for length in 0..bytes.len() - start {
                let slice = &bytes[start..start + length];
                assert_eq!(crc32c(slice), ::crc32c::crc32c(slice), "start {start}, length {length}");
            }
        }
    }
}
