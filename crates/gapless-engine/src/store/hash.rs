//! Hash of a store's state and of a snapshot's bytes: a sum of terms, so a change costs only the touched objects.
//! Detects replicas that differ by mistake; does not resist deliberate collisions.

const CHUNK: usize = 16;
const BLOCK: usize = 4 * CHUNK;

const FIRST: u64 = 0xa076_1d64_78bd_642f;
const SECOND: u64 = 0xe703_7ed1_a0b4_28db;
const FIRST_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND_STEP: u64 = 0xd1b5_4a32_d192_ed03;

#[inline(always)]
const fn fold(left: u64, right: u64) -> u64 {
    let product = left as u128 * right as u128;
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
pub(super) const fn mix(value: u64) -> u64 {
    fold(value ^ FIRST, value.wrapping_add(SECOND) | 1)
}

#[inline(always)]
fn term(position: usize, chunk: &[u8; CHUNK]) -> u64 {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&chunk[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let place = position as u64;
    let left = word(0) ^ FIRST.wrapping_add(place.wrapping_mul(FIRST_STEP));
    fold(left, word(8) ^ SECOND.wrapping_add(place.wrapping_mul(SECOND_STEP)))
}

/// The length has a term of its own, so trailing zeros count.
#[inline(always)]
fn padded(tail: &[u8]) -> [u8; CHUNK] {
    let mut chunk = [0; CHUNK];
    chunk[..tail.len()].copy_from_slice(tail);
    chunk
}

#[inline]
pub(crate) fn content_hash(bytes: &[u8]) -> u64 {
    let mut hash = mix(bytes.len() as u64);
    let (chunks, tail) = bytes.as_chunks::<CHUNK>();
    for (number, chunk) in chunks.iter().enumerate() {
        hash = hash.wrapping_add(term(number * CHUNK, chunk));
    }
    if !tail.is_empty() {
        hash = hash.wrapping_add(term(chunks.len() * CHUNK, &padded(tail)));
    }
    hash
}

#[inline(always)]
pub(super) const fn contribution(place: u64, content_hash: u64) -> u64 {
    mix(content_hash.wrapping_add(place))
}

/// Passes each differing range (begin, end) of equally long encodings to `changed`, in order; returns the change of the
/// content hash.
#[inline]
pub(super) fn differences(before: &[u8], after: &[u8], mut changed: impl FnMut(usize, usize)) -> u64 {
    debug_assert_eq!(before.len(), after.len());
    let mut hash_change: u64 = 0;
    let mut open: Option<(usize, usize)> = None;
    let mut look = |position: usize, old: &[u8; CHUNK], new: &[u8; CHUNK]| {
        let difference = u128::from_le_bytes(*old) ^ u128::from_le_bytes(*new);
        if difference == 0 {
            return;
        }
        hash_change = hash_change.wrapping_add(term(position, new)).wrapping_sub(term(position, old));
        let begin = position + difference.trailing_zeros() as usize / 8;
        let end = position + CHUNK - difference.leading_zeros() as usize / 8;
        match &mut open {
            // A range costs two extra bytes, so close ones are merged.
            Some((_, last)) if begin - *last <= 4 => *last = end,
            _ => {
                if let Some((begin, end)) = open.replace((begin, end)) {
                    changed(begin, end);
                }
            }
        }
    };
    let (old_blocks, old_rest) = before.as_chunks::<BLOCK>();
    let (new_blocks, new_rest) = after.as_chunks::<BLOCK>();
    for (number, (old, new)) in old_blocks.iter().zip(new_blocks).enumerate() {
        if old != new {
            for (chunk, (old, new)) in old.as_chunks().0.iter().zip(new.as_chunks().0).enumerate() {
                look(number * BLOCK + chunk * CHUNK, old, new);
            }
        }
    }
    let mut position = old_blocks.len() * BLOCK;
    for (old, new) in old_rest.chunks(CHUNK).zip(new_rest.chunks(CHUNK)) {
        look(position, &padded(old), &padded(new));
        position += CHUNK;
    }
    if let Some((begin, end)) = open {
        changed(begin, end);
    }
    hash_change
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: usize, seed: u64) -> Vec<u8> {
        (0..length).map(|at| mix(seed ^ at as u64) as u8).collect()
    }

    #[test]
    fn differences_update_the_hash() {
        for length in [0, 1, 15, 16, 17, 63, 64, 65, 200, 1024, 1031] {
            for round in 0..200 {
                let before = bytes(length, round);
                let mut after = before.clone();
                for change in 0..round % 5 {
                    if length > 0 {
                        let at = mix(round * 31 + change) as usize % length;
                        after[at] = after[at].wrapping_add(1);
                    }
                }
                let mut patched = before.clone();
                let mut last_end = 0;
                let change = differences(&before, &after, |begin, end| {
                    assert!(begin < end && end <= length && begin >= last_end, "{begin} to {end} of {length}");
                    assert!(before[begin] != after[begin] && before[end - 1] != after[end - 1]);
                    patched[begin..end].copy_from_slice(&after[begin..end]);
                    last_end = end;
                });
                assert_eq!(patched, after);
                assert_eq!(content_hash(&before).wrapping_add(change), content_hash(&after));
            }
        }
    }

    #[test]
    fn hash_covers_place_and_length() {
        assert_ne!(content_hash(&[0; 16]), content_hash(&[0; 17]));
        assert_ne!(content_hash(&[]), content_hash(&[0]));
        let (mut left, mut right) = ([0; 32], [0; 32]);
        left[0] = 1;
        right[16] = 1;
        assert_ne!(content_hash(&left), content_hash(&right));
        let (here, there) = (mix(1), mix(2));
        let straight = contribution(here, 5).wrapping_add(contribution(there, 6));
        assert_ne!(
            straight,
            contribution(here, 6).wrapping_add(contribution(there, 5)),
            "the assignment of values to keys matters"
        );
    }
}
