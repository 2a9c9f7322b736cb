//! [`Memory`] as loom's atomics. A model must have few of them to be fast: the header has only the words of the
//! protocol, and each 64 bytes of data only the first two words (length, sequence) and the last. Loom never lets a load
//! see a later store, so values would not reveal a frame overwritten before its last reader has finished; instead each
//! line has a witness, which fails the model when a write and a gated read are not ordered.

use super::{AtomicU64, LogError, MemoryKind, MemoryShape, d};
use crate::sync::Ordering;
use loom::cell::UnsafeCell;

const HEADER_WORDS: [usize; 8] = [
    d::TAIL_WORD,
    d::TAIL_SEQUENCE_WORD,
    d::RELEASED_WORD,
    d::RELEASED_SEQUENCE_WORD,
    d::CLAIMED_WORD,
    d::HEAD_WORD,
    d::READER_PARKED_WORD,
    d::CLOSED_WORD,
];

const DATA_WORDS: [usize; 3] = [0, 1, 7];

const LINE_LENGTH: usize = 64;

pub struct Memory {
    header: Vec<AtomicU64>,
    index: Vec<AtomicU64>,
    lines: Vec<Line>,
    shape: MemoryShape,
}

struct Line {
    words: [AtomicU64; DATA_WORDS.len()],
    /// Accessed like the bytes of the line: exclusively by the writer, shared by gated readers.
    witness: UnsafeCell<()>,
}

// SAFETY: only the witness makes it !Sync; it holds nothing, and loom checks the accesses to it.
unsafe impl Sync for Memory {}

impl Memory {
    /// `capacity` is a power of two, at least 64.
    ///
    /// # Errors
    /// Never; the signature is that of the mapped kind.
    pub fn create(_kind: &MemoryKind, shape: MemoryShape, words: &[(usize, u64)]) -> Result<Self, LogError> {
        let value = |number| words.iter().find(|(each, _)| *each == number).map_or(0, |(_, value)| *value);
        let line = |_| Line { words: std::array::from_fn(|_| AtomicU64::new(0)), witness: UnsafeCell::new(()) };
        Ok(Self {
            header: HEADER_WORDS.iter().map(|number| AtomicU64::new(value(*number))).collect(),
            index: (0..shape.index_slots).map(|_| AtomicU64::new(0)).collect(),
            lines: (0..shape.capacity / LINE_LENGTH).map(line).collect(),
            shape,
        })
    }

    #[must_use]
    pub fn shape(&self) -> MemoryShape {
        self.shape
    }

    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shape.capacity
    }

    pub(crate) fn header_word(&self, number: usize) -> &AtomicU64 {
        let place = HEADER_WORDS.iter().position(|each| *each == number);
        &self.header[place.expect("only words of the protocol are modelled")]
    }

    pub(crate) fn index_word(&self, sequence: u64) -> &AtomicU64 {
        &self.index[sequence as usize & (self.shape.index_slots - 1)]
    }

    fn line(&self, position: u64) -> (&Line, Option<&AtomicU64>) {
        let offset = position as usize & (self.shape.capacity - 1);
        let line = &self.lines[offset / LINE_LENGTH];
        let place = DATA_WORDS.iter().position(|each| *each == offset % LINE_LENGTH / 8);
        (line, place.map(|place| &line.words[place]))
    }

    pub(crate) fn load_word(&self, position: u64) -> u64 {
        self.line(position).0.witness.with(|_| ());
        self.load_word_racing(position)
    }

    pub(crate) fn load(&self, position: u64, bytes: &mut [u8]) {
        for (number, target) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *target = self.load_word(position + number as u64 * 8).to_ne_bytes();
        }
    }

    pub(crate) fn load_word_racing(&self, position: u64) -> u64 {
        self.line(position).1.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    pub(crate) fn load_racing(&self, position: u64, bytes: &mut [u8]) {
        for (number, target) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *target = self.load_word_racing(position + number as u64 * 8).to_ne_bytes();
        }
    }

    pub(crate) fn prefetch_for_writing(&self, _position: u64) {}

    pub(crate) fn prefetch_bytes(&self, _position: u64, _length: usize) {}

    pub(crate) fn store(&self, position: u64, bytes: &[u8]) {
        for (number, source) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let (line, word) = self.line(position + number as u64 * 8);
            line.witness.with_mut(|_| ());
            if let Some(word) = word {
                word.store(u64::from_ne_bytes(*source), Ordering::Relaxed);
            }
        }
    }
}
