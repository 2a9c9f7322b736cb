//! Marks: two values that a crash cannot tear, on one cache line of the header page, with one writer at a time. A mark
//! has two slots, written in turn: a writer that dies leaves the other slot intact. A slot that fails its checksum is
//! torn or damaged.

use std::sync::atomic::{AtomicU64, Ordering};

use gapless_wire::checksum::crc32c;

use crate::descriptor::MARK_WORDS;

/// Generic, so that loom can check the ordering argument.
pub(crate) trait MarkWord {
    fn load_acquire(&self) -> u64;
    fn store_release(&self, value: u64);
}

impl MarkWord for AtomicU64 {
    #[inline(always)]
    fn load_acquire(&self) -> u64 {
        // Pairs with `store_release` of the mark's writer.
        u64::from_le(self.load(Ordering::Acquire))
    }

    #[inline(always)]
    fn store_release(&self, value: u64) {
        // Pairs with `load_acquire` of the mark's readers.
        self.store(value.to_le(), Ordering::Release);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MarkValue {
    /// `descriptor` defines the meaning.
    pub first: u64,
    pub second: u64,
    /// Number of writes.
    pub generation: u64,
}

const VALID_BIT: u64 = 1 << 32;
const SLOT_WORDS: usize = MARK_WORDS / 2;
/// A live writer would have to write the mark twice during each attempt.
const ATTEMPTS_MAX: usize = 10_000;

/// Far above any real one: the next cannot overflow or be taken for an older one.
const GENERATION_MAX: u64 = u64::MAX / 2;

#[inline(always)]
fn check_word(first: u64, second: u64, generation: u64) -> u64 {
    let mut bytes = [0u8; 24];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..16].copy_from_slice(&second.to_le_bytes());
    bytes[16..].copy_from_slice(&generation.to_le_bytes());
    VALID_BIT | u64::from(crc32c(&bytes))
}

/// `None` if torn, damaged or being written.
fn read_slot<W: MarkWord>(slot: &[W]) -> Option<MarkValue> {
    // The writer clears the check word before changing a value and sets it after all of them, so equal valid check
    // words prove that the values in between belong together. All loads are acquire, so they stay in order.
    let check = slot[3].load_acquire();
    let (first, second, generation) = (slot[0].load_acquire(), slot[1].load_acquire(), slot[2].load_acquire());
    let again = slot[3].load_acquire();
    let whole = check == again && generation <= GENERATION_MAX && check == check_word(first, second, generation);
    whole.then_some(MarkValue { first, second, generation })
}

/// `None` if both slots are damaged, or never written.
pub(crate) fn read<W: MarkWord>(words: &[W]) -> Option<MarkValue> {
    assert_eq!(words.len(), MARK_WORDS, "a mark has {MARK_WORDS} words");
    // All words are zero only before the first write, which sets a generation for good. Do not wait for a writer: a
    // directory may have many such segments.
    if words.iter().all(|word| word.load_acquire() == 0) {
        return None;
    }
    (0..ATTEMPTS_MAX).find_map(|_| {
        let (even, odd) = (read_slot(&words[..SLOT_WORDS]), read_slot(&words[SLOT_WORDS..]));
        match (even, odd) {
            (Some(even), Some(odd)) => Some(if even.generation > odd.generation { even } else { odd }),
            (whole, None) | (None, whole) => whole,
        }
    })
}

/// Like [`read`], but `None` also if one slot is damaged: the intact one may be older, with an earlier end of the log.
/// A slot in which a writer died has no check word and does not count as damaged; one that is being written is invalid
/// only for moments.
pub(crate) fn read_undamaged<W: MarkWord>(words: &[W]) -> Option<MarkValue> {
    damaged_slot(words).is_none().then(|| read(words)).flatten()
}

pub(crate) fn damaged_slot<W: MarkWord>(words: &[W]) -> Option<usize> {
    let is_damaged = |slot: &[W]| slot[3].load_acquire() != 0 && read_slot(slot).is_none();
    let mut damaged = None;
    for _ in 0..ATTEMPTS_MAX {
        damaged = Some(words.chunks_exact(SLOT_WORDS).position(is_damaged)? * SLOT_WORDS * 8);
    }
    damaged
}

#[derive(Debug)]
pub(crate) struct MarkWriter {
    generation: u64,
}

impl MarkWriter {
    pub(crate) fn continue_from<W: MarkWord>(words: &[W]) -> Self {
        Self { generation: read(words).map_or(0, |value| value.generation) }
    }

    /// Everything written before is visible to a reader of the new value.
    #[inline]
    pub(crate) fn write<W: MarkWord>(&mut self, words: &[W], first: u64, second: u64) {
        let (start, generation) = self.next();
        let slot = &words[start..start + SLOT_WORDS];
        // A writer that dies here leaves the slot without a valid check word, and the other slot intact.
        slot[3].store_release(0);
        slot[0].store_release(first);
        slot[1].store_release(second);
        slot[2].store_release(generation);
        slot[3].store_release(check_word(first, second, generation));
    }

    /// Prepares a write through the file: returns the byte offset in the mark and the bytes. A reader of a partial
    /// write sees a check word that does not match the values.
    pub(crate) fn next_slot(&mut self, first: u64, second: u64) -> (usize, [u8; SLOT_WORDS * 8]) {
        let (start, generation) = self.next();
        let mut bytes = [0; SLOT_WORDS * 8];
        let words = [first, second, generation, check_word(first, second, generation)];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        (start * 8, bytes)
    }

    #[inline]
    fn next(&mut self) -> (usize, u64) {
        self.generation += 1;
        ((self.generation as usize & 1) * SLOT_WORDS, self.generation)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use gapless_testkit::random::{printed_seed, rounds};

    fn words() -> [AtomicU64; MARK_WORDS] {
        std::array::from_fn(|_| AtomicU64::new(0))
    }

    #[test]
    fn unwritten_mark_has_no_value() {
        assert_eq!(read(&words()), None);
    }

    #[test]
    fn value_survives_a_new_writer() {
        let words = words();
        let mut writer = MarkWriter::continue_from(&words);
        for value in 1..=5 {
            writer.write(&words, value, value * 10);
        }
        let mut writer = MarkWriter::continue_from(&words);
        writer.write(&words, 3, 30);
        assert_eq!(read(&words), Some(MarkValue { first: 3, second: 30, generation: 6 }));
    }

    #[test]
    fn file_equals_mapped_write() {
        let (stored, written) = (words(), words());
        let (mut storing, mut writing) = (MarkWriter::continue_from(&stored), MarkWriter::continue_from(&written));
        for value in 1..=5 {
            storing.write(&stored, value, value * 10);
            let (offset, bytes) = writing.next_slot(value, value * 10);
            for (word, bytes) in written[offset / 8..].iter().zip(bytes.chunks_exact(8)) {
                word.store(u64::from_ne_bytes(bytes.try_into().unwrap()), Ordering::SeqCst);
            }
            for (written, stored) in written.iter().zip(&stored) {
                assert_eq!(written.load(Ordering::SeqCst), stored.load(Ordering::SeqCst));
            }
        }
        assert_eq!(read(&written).map(|mark| mark.first), Some(5));
    }

    #[test]
    fn damage_falls_back_to_old_slot() {
        for bit in 0..256 {
            let words = words();
            let mut writer = MarkWriter::continue_from(&words);
            writer.write(&words, 1, 10);
            writer.write(&words, 2, 20);
            let word = &words[bit / 64];
            word.store(word.load(Ordering::SeqCst) ^ (1 << (bit % 64)), Ordering::SeqCst);
            assert_eq!(read(&words).map(|value| value.first), Some(1), "bit {bit}");
        }
    }

    #[test]
    fn undamaged_read_is_not_lower() {
        let words = words();
        let mut writer = MarkWriter::continue_from(&words);
        writer.write(&words, 1, 10);
        assert_eq!(read_undamaged(&words).map(|value| value.first), Some(1), "the other slot is not written yet");
        writer.write(&words, 2, 20);
        let (step, first) = (rounds(1, 10), printed_seed() % rounds(1, 10));
        for bit in (first as usize..512).step_by(step as usize) {
            let word = &words[bit / 64];
            let whole = word.fetch_xor(1 << (bit % 64), Ordering::SeqCst);
            assert_eq!(read_undamaged(&words), None, "bit {bit}");
            assert_eq!(damaged_slot(&words), Some(bit / 256 * 32), "bit {bit}");
            word.store(whole, Ordering::SeqCst);
        }
        words[7].store(0, Ordering::SeqCst);
        words[4].store(3, Ordering::SeqCst);
        assert_eq!(read_undamaged(&words).map(|value| value.first), Some(2));
        assert_eq!(damaged_slot(&words), None);
    }

    #[test]
    fn two_damaged_slots_have_no_value() {
        let words = words();
        let mut writer = MarkWriter::continue_from(&words);
        writer.write(&words, 1, 10);
        writer.write(&words, 2, 20);
        words[0].store(99, Ordering::SeqCst);
        words[4].store(99, Ordering::SeqCst);
        assert_eq!(read(&words), None);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    //! Every interleaving of a writer and a reader: each value read was written as a whole.
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as LoomWord;

    impl MarkWord for LoomWord {
        fn load_acquire(&self) -> u64 {
            self.load(Ordering::Acquire)
        }

        fn store_release(&self, value: u64) {
            self.store(value, Ordering::Release);
        }
    }

    #[test]
    fn reader_never_sees_a_torn_slot() {
        // Without a bound this takes minutes; three preemptions find every known way to tear a slot.
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let words: Arc<[LoomWord; MARK_WORDS]> = Arc::new(std::array::from_fn(|_| LoomWord::new(0)));
            let mut writer = MarkWriter { generation: 0 };
            writer.write(&words[..], 8, 1);
            let shared = words.clone();
            let reader = loom::thread::spawn(move || {
                for slot in [&shared[..SLOT_WORDS], &shared[SLOT_WORDS..]] {
                    if let Some(value) = read_slot(slot) {
                        assert_eq!((value.first, value.generation), (value.second * 8, value.second));
                    }
                }
            });
            writer.write(&words[..], 16, 2);
            writer.write(&words[..], 24, 3);
            reader.join().unwrap();
        });
    }
}
