//! Checks frames in sequence. Safe for arbitrary bytes: never panics, never reads outside its input, always moves
//! forward.

use gapless_wire::descriptor::{KIND_OFFSET, LENGTH_OFFSET, SEQUENCE_OFFSET, VERSION, VERSION_OFFSET};
use gapless_wire::{Frame, HEADER_LENGTH, Kind, MESSAGE_ALIGNMENT, aligned_length};

use crate::error::FrameFault;

/// `bytes` must begin with frame `expected`, with both checksums; refuses consensus records.
///
/// # Errors
/// The fault found.
#[inline]
pub(crate) fn check_frame(bytes: &[u8], expected: u64, frame_length_max: usize) -> Result<Frame<'_>, FrameFault> {
    let frame = check_next(bytes, expected, frame_length_max)?;
    if is_record(&frame) { Err(FrameFault::Sequence { expected, found: 0 }) } else { Ok(frame) }
}

/// Like [`check_frame`], but accepts a consensus record before that frame.
///
/// # Errors
/// The fault found.
#[inline]
pub(crate) fn check_next(bytes: &[u8], expected: u64, frame_length_max: usize) -> Result<Frame<'_>, FrameFault> {
    let frame = match Frame::parse_journaled(bytes) {
        Ok(frame) => frame,
        Err(error) => return Err(malformed(bytes, error)),
    };
    frame.verify()?;
    if is_record(&frame) {
        check_place(&frame, expected)?;
    } else if frame.sequence() != expected {
        return Err(FrameFault::Sequence { expected, found: frame.sequence() });
    }
    if frame.length() > frame_length_max {
        return Err(FrameFault::TooLong { length_bytes: frame.length(), limit_bytes: frame_length_max });
    }
    let padded = aligned_length(frame.length());
    let padding_is_zero =
        bytes.get(frame.length()..padded).is_some_and(|padding| padding.iter().all(|&byte| byte == 0));
    if padding_is_zero { Ok(frame) } else { Err(FrameFault::Padding) }
}

#[inline]
pub(crate) fn is_record(frame: &Frame<'_>) -> bool {
    frame.kind() == Kind::Consensus
}

/// A record has no sequence and names the frame before it.
#[cold]
fn check_place(record: &Frame<'_>, next_sequence: u64) -> Result<(), FrameFault> {
    if record.sequence() != 0 {
        return Err(FrameFault::Sequence { expected: 0, found: record.sequence() });
    }
    let (expected, found) = (next_sequence.wrapping_sub(1), record.session_seq());
    if expected == found { Ok(()) } else { Err(FrameFault::RecordPosition { expected, found }) }
}

#[cold]
fn malformed(bytes: &[u8], error: gapless_wire::FrameError) -> FrameFault {
    let no_frame = bytes.len() < HEADER_LENGTH || bytes[LENGTH_OFFSET..LENGTH_OFFSET + 4] == [0; 4];
    if no_frame { FrameFault::Empty } else { FrameFault::Frame(error) }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanEnd {
    /// Intact; or the sequence before the first.
    pub(crate) last_sequence: u64,
    pub(crate) position: usize,
    pub(crate) fault: FrameFault,
}

/// Up to the first fault. Calls `each` with every frame and record, the last frame's sequence, its position and its
/// end.
pub(crate) fn scan(
    bytes: &[u8],
    mut position: usize,
    first_sequence: u64,
    frame_length_max: usize,
    mut each: impl FnMut(&Frame<'_>, u64, usize, usize),
) -> ScanEnd {
    let mut sequence = first_sequence;
    loop {
        let rest = bytes.get(position..).unwrap_or_default();
        match check_next(rest, sequence, frame_length_max) {
            Ok(frame) => {
                let end = position + aligned_length(frame.length());
                if !is_record(&frame) {
                    sequence += 1;
                }
                each(&frame, sequence - 1, position, end);
                position = end;
            }
            Err(fault) => return ScanEnd { last_sequence: sequence - 1, position, fault },
        }
    }
}

/// Frames with a sequence above `after`, and records, at any multiple of 8: a truncation at the start of `bytes` also
/// destroys these.
pub(crate) fn count_intact(bytes: &[u8], after: u64) -> (u64, u64) {
    let (mut frames, mut records) = (0, 0);
    let mut offset = 0;
    while offset + HEADER_LENGTH <= bytes.len() {
        let rest = &bytes[offset..];
        let intact = looks_like_header(rest)
            .then(|| Frame::parse_journaled(rest).ok().filter(|frame| frame.verify().is_ok()))
            .flatten()
            .filter(|frame| is_record(frame) || frame.sequence() > after);
        match intact {
            Some(frame) => {
                *if is_record(&frame) { &mut records } else { &mut frames } += 1;
                offset += aligned_length(frame.length());
            }
            None => offset += MESSAGE_ALIGNMENT,
        }
    }
    (frames, records)
}

/// Avoids computing checksums at most other positions.
fn looks_like_header(bytes: &[u8]) -> bool {
    bytes[VERSION_OFFSET] == VERSION && Kind::from_byte(bytes[KIND_OFFSET]).is_some()
}

/// At the last frame boundary up to `limit_bytes`. Returns length and number of frames.
///
/// # Errors
/// Offset of the first invalid length.
pub(crate) fn split_batch(frames: &[u8], limit_bytes: usize, frame_length_max: usize) -> Result<(usize, u64), usize> {
    let (mut offset, mut count) = (0, 0);
    while offset < frames.len() {
        let length = gapless_wire::frame::peek_length(&frames[offset..], frame_length_max).map_err(|_| offset)?;
        let end = offset + aligned_length(length);
        if end > frames.len() {
            return Err(offset);
        }
        if end > limit_bytes {
            break;
        }
        (offset, count) = (end, count + 1);
    }
    Ok((offset, count))
}

#[inline]
pub(crate) fn first_sequence_of(frames: &[u8]) -> Option<u64> {
    frames.get(SEQUENCE_OFFSET..).and_then(<[u8]>::first_chunk).map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_frames::frames;
    use proptest::prelude::*;

    #[test]
    fn scan_stops_at_zeros() {
        let mut bytes = frames(5, 3, 100);
        let end = bytes.len();
        bytes.resize(end + 256, 0);
        let mut seen = Vec::new();
        let stop = scan(&bytes, 0, 5, 1376, |_, sequence, start, end| seen.push((sequence, start, end)));
        assert_eq!((stop.last_sequence, stop.position, stop.fault), (7, end, FrameFault::Empty));
        assert_eq!(seen.iter().map(|s| s.0).collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(seen.last().unwrap().2, end);
    }

    #[test]
    fn frames_after_garbage_count() {
        let mut bytes = vec![0xab; 136];
        bytes.extend_from_slice(&frames(9, 4, 33));
        assert_eq!(count_intact(&bytes, 8), (4, 0));
        assert_eq!(count_intact(&bytes, 10), (2, 0));
    }

    #[test]
    fn batch_is_split_at_a_frame() {
        let batch = frames(1, 10, 40);
        let one = batch.len() / 10;
        assert_eq!(split_batch(&batch, one * 3 + 8, 1376), Ok((one * 3, 3)));
        assert_eq!(split_batch(&batch, usize::MAX, 1376), Ok((one * 10, 10)));
        assert_eq!(split_batch(&batch[..one + 8], usize::MAX, 1376), Err(one));
    }

    proptest! {
        #[test]
        fn scan_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600), first in any::<u32>()) {
            let stop = scan(&bytes, 0, u64::from(first) + 1, 1376, |_, _, _, _| ());
            prop_assert!(stop.position <= bytes.len());
            let _count = count_intact(&bytes, 0);
            let _split = split_batch(&bytes, 200, 1376);
        }
    }
}
