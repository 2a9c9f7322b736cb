//! Copies words that another process may be writing: each word is read once, and only the copy is used afterwards.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

/// In no particular order. A plain copy would be wrong: the compiler may assume that the source does not change, and
/// may read it again after the copy was checked.
///
/// # Panics
/// If the lengths differ.
#[inline]
#[allow(unsafe_code)]
pub fn copy_words(words: &[AtomicU64], bytes: &mut [u8]) {
    // SAFETY: the same bytes; whole words are written into them, so each stays initialised.
    let bytes = unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [MaybeUninit<u8>]) };
    copy_words_to_unwritten(words, bytes);
}

/// See [`copy_words`].
///
/// # Panics
/// See [`copy_words`].
#[inline]
pub fn copy_words_to_unwritten(words: &[AtomicU64], bytes: &mut [MaybeUninit<u8>]) {
    assert_eq!(words.len() * 8, bytes.len());
    let copied = copy_lines(words, bytes);
    for (word, target) in words[copied / 8..].iter().zip(bytes[copied..].as_chunks_mut::<8>().0) {
        // Relaxed: ordered by an earlier load of the caller, or validated afterwards.
        target.write_copy_of_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
    }
}

/// Returns the number of bytes copied, whole lines of 64. Word by word takes twice as long, because the compiler merges
/// no atomic loads.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
#[allow(unsafe_code)]
fn copy_lines(words: &[AtomicU64], bytes: &mut [MaybeUninit<u8>]) -> usize {
    let length = bytes.len() / 64 * 64;
    if length != 0 {
        // SAFETY: reads `length` bytes from `words`, which are mapped, and writes as many into `bytes`, which are
        // borrowed exclusively. To the compiler this is an opaque read of memory that it can neither repeat nor
        // postpone. The processor does one load of each word, two or more words at a time.
        unsafe {
            std::arch::asm!(
                "2:",
                "movups {a}, [{source} + {offset}]",
                "movups {b}, [{source} + {offset} + 16]",
                "movups {c}, [{source} + {offset} + 32]",
                "movups {d}, [{source} + {offset} + 48]",
                "movups [{target} + {offset}], {a}",
                "movups [{target} + {offset} + 16], {b}",
                "movups [{target} + {offset} + 32], {c}",
                "movups [{target} + {offset} + 48], {d}",
                "add {offset}, 64",
                "cmp {offset}, {length}",
                "jb 2b",
                source = in(reg) words.as_ptr(),
                target = in(reg) bytes.as_mut_ptr(),
                length = in(reg) length,
                offset = inout(reg) 0_usize => _,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack),
            );
        }
    }
    length
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
fn copy_lines(_words: &[AtomicU64], _bytes: &mut [MaybeUninit<u8>]) -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code)]
    fn any_length_is_copied_exactly() {
        for count in 0..70 {
            for skipped in 0..4 {
                let words: Vec<AtomicU64> = (0..count as u64 + 4).map(|each| AtomicU64::new(!each)).collect();
                let words = &words[skipped..skipped + count];
                let mut bytes = vec![0xa5; count * 8 + 16];
                copy_words(words, &mut bytes[8..8 + count * 8]);
                let expected: Vec<u8> =
                    (0..count).flat_map(|each| (!((each + skipped) as u64)).to_ne_bytes()).collect();
                assert_eq!(bytes[8..8 + count * 8], expected);
                assert_eq!((&bytes[..8], &bytes[8 + count * 8..]), (&[0xa5; 8][..], &[0xa5; 8][..]));
                let mut unwritten = [MaybeUninit::new(0xa5); 70 * 8];
                copy_words_to_unwritten(words, &mut unwritten[..count * 8]);
                // SAFETY: all bytes were initialised, here or at first.
                assert!(unwritten.iter().zip(&expected).all(|(found, byte)| unsafe { found.assume_init() } == *byte));
            }
        }
    }
}
