//! The same seed gives the same inputs.

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

const LENGTH_MAX: usize = 16 * 1024;
const EXTREMES: [u64; 14] =
    [0, 1, 7, 8, 63, 64, 65, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1, u64::MAX];

pub struct Mutator {
    random: TestRng,
}

impl Mutator {
    pub fn new(seed: u64, target: &str) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        for (place, byte) in bytes[8..].iter_mut().zip(target.bytes()) {
            *place = byte;
        }
        Self { random: TestRng::from_seed(RngAlgorithm::ChaCha, &bytes) }
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.random.next_u64() % limit.max(1) as u64) as usize
    }

    pub fn next(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let chosen = self.below(corpus.len());
        let mut bytes = corpus[chosen].clone();
        for _ in 0..=self.below(5) {
            self.change(&mut bytes, corpus);
        }
        bytes.truncate(LENGTH_MAX);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, corpus: &[Vec<u8>]) {
        let at = self.below(bytes.len() + 1);
        let length = self.below(bytes.len() - at + 1).min(256);
        match self.below(9) {
            0 | 1 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            2 if at < bytes.len() => bytes[at] = self.random.next_u32() as u8,
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..at + length)),
            5 => {
                let copy = bytes[at..at + length].to_vec();
                let to = self.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            6 => {
                let other = self.below(corpus.len());
                let from = self.below(corpus[other].len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&corpus[other][from..]);
            }
            _ => self.number(bytes),
        }
    }

    /// 1, 2, 4 or 8 bytes become an extreme value, or a neighbour of theirs.
    fn number(&mut self, bytes: &mut [u8]) {
        let width = 1 << self.below(4);
        if bytes.len() < width {
            return;
        }
        let mut at = self.below(bytes.len() - width + 1);
        if self.below(2) == 0 {
            at -= at % width;
        }
        let field = &mut bytes[at..at + width];
        let mut word = [0; 8];
        word[..width].copy_from_slice(field);
        let value = match self.below(3) {
            0 => u64::from_le_bytes(word).wrapping_add(self.below(17) as u64).wrapping_sub(8),
            _ => EXTREMES[self.below(EXTREMES.len())],
        };
        field.copy_from_slice(&value.to_le_bytes()[..width]);
        if self.below(4) == 0 {
            field.reverse();
        }
    }
}
