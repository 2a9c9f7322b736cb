//! [`BloomFilter`]: no false negatives, about one false positive in 150. A split block Bloom filter (Putze, Sanders,
//! Singler: "Cache-, Hash- and Space-Efficient Bloom Filters", 2007; as in Apache Parquet): a lookup touches one cache
//! line. One thread inserts while others look up.

use super::key::IndexKey;
use gapless_wire::split_mix::finish;
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = 8;
const BITS_A_KEY: usize = 12;
const BLOCK_BYTES: usize = WORDS * 8;

type BloomBlock = [AtomicU64; WORDS];

pub(crate) struct BloomFilter(Box<[BloomBlock]>);

impl BloomFilter {
    /// An empty filter for `count` keys.
    pub fn for_keys(count: usize) -> Self {
        let blocks = (count * BITS_A_KEY).div_ceil(BLOCK_BYTES * 8).max(1);
        Self((0..blocks).map(|_| BloomBlock::default()).collect())
    }

    #[inline]
    fn place(&self, key: IndexKey) -> (&BloomBlock, u64) {
        let block = (u128::from(key.0) * self.0.len() as u128) >> 64;
        (&self.0[block as usize], finish(key.0))
    }

    #[inline]
    pub fn insert(&self, key: IndexKey) {
        let (block, hash) = self.place(key);
        for (index, word) in block.iter().enumerate() {
            // Relaxed: a thread that must see the key has read `last_sequence`, which is released after the insertion.
            word.fetch_or(1 << (hash >> (6 * index) & 63), Ordering::Relaxed);
        }
    }

    /// Whether a key may be in the set.
    #[inline]
    pub fn may_have(&self, key: IndexKey) -> bool {
        let (block, hash) = self.place(key);
        let has =
            |(index, word): (usize, &AtomicU64)| word.load(Ordering::Relaxed) & 1 << (hash >> (6 * index) & 63) != 0;
        block.iter().enumerate().all(has)
    }

    /// Encodes the words, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() * BLOCK_BYTES);
        for word in self.0.iter().flatten() {
            bytes.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        bytes
    }

    /// Decodes a filter; `None` if the length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() || !bytes.len().is_multiple_of(BLOCK_BYTES) {
            return None;
        }
        let mut blocks: Vec<BloomBlock> = Vec::with_capacity(bytes.len() / BLOCK_BYTES);
        blocks.resize_with(bytes.len() / BLOCK_BYTES, BloomBlock::default);
        let (words, _) = bytes.as_chunks();
        for (word, bytes) in blocks.as_flattened_mut().iter_mut().zip(words) {
            *word.get_mut() = u64::from_le_bytes(*bytes);
        }
        Some(Self(blocks.into_boxed_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn false_positives_are_few() {
        let filter = BloomFilter::for_keys(10_000);
        let key = |number: u64| IndexKey(finish(number));
        (0..10_000).for_each(|number| filter.insert(key(number)));
        let read = BloomFilter::from_bytes(&filter.to_bytes()).unwrap();
        for filter in [&filter, &read] {
            assert!((0..10_000).all(|number| filter.may_have(key(number))));
            let wrong = (10_000..110_000).filter(|number| filter.may_have(key(*number))).count();
            assert!(wrong < 1_500, "{wrong} of 100,000");
        }
        assert!(BloomFilter::from_bytes(&[]).is_none() && BloomFilter::from_bytes(&[0; 65]).is_none());
    }
}
