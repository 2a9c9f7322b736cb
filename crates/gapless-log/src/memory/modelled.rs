//! [`Memory`] as a vector of loom's atomics, so that the protocol of window, cursors and ring can be
//! model-checked. It takes capacities below a page and ignores where the memory would live.
//!
//! Two things differ from the mapped kind. A model is only as fast as it has few atomics, so of the
//! header only the words of the protocol exist, and of each 64 bytes of data only the first two words
//! (length, sequence) and the last. And loom never lets a load see a later store, so whether a frame
//! is overwritten only after its last reader has done with it would go unseen in the values; each line
//! has a witness instead, which fails the model when a write and a gated read are not ordered.

use super::{AtomicU64, LogError, MemoryKind, Shape, d};
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

/// Words of each line of data that exist.
const DATA_WORDS: [usize; 3] = [0, 1, 7];

const LINE_LENGTH: usize = 64;

/// The words of a mapping as loom's atomics.
pub struct Memory {
    header: Vec<AtomicU64>,
    index: Vec<AtomicU64>,
    lines: Vec<Line>,
    shape: Shape,
}

struct Line {
    words: [AtomicU64; DATA_WORDS.len()],
    /// Accessed as the bytes of the line are: exclusively by the writer, shared by gated readers.
    witness: UnsafeCell<()>,
}

// SAFETY: what makes it !Sync is the witness, which holds nothing; loom checks how it is accessed.
unsafe impl Sync for Memory {}

impl Memory {
    /// A model: `capacity` is a power of two from 64 on.
    ///
    /// # Errors
    /// None; the signature is that of the mapped kind.
    pub fn create(_kind: &MemoryKind, shape: Shape, words: &[(usize, u64)]) -> Result<Self, LogError> {
        let value = |number| words.iter().find(|(each, _)| *each == number).map_or(0, |(_, value)| *value);
        let line = |_| Line { words: std::array::from_fn(|_| AtomicU64::new(0)), witness: UnsafeCell::new(()) };
        Ok(Self {
            header: HEADER_WORDS.iter().map(|number| AtomicU64::new(value(*number))).collect(),
            index: (0..shape.index_slots).map(|_| AtomicU64::new(0)).collect(),
            lines: (0..shape.capacity / LINE_LENGTH).map(line).collect(),
            shape,
        })
    }

    /// The shape this model was made with.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Data bytes.
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

    /// The line of `position`, and its word there if it is one of those that exist.
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
