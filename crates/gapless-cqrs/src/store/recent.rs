//! `RecentPostings`: the in-memory index of the events after the last run.

use super::filter::BloomFilter;
use super::key::IndexKey;
use crate::identity::Position;
use rustc_hash::FxHashMap;
use std::sync::Arc;

const NONE: u32 = u32::MAX;

pub(super) struct RecentPostings {
    /// First indexed frame.
    pub first_sequence: u64,
    postings: Vec<Posting>,
    newest: FxHashMap<IndexKey, u32>,
    pub filter: Arc<BloomFilter>,
}

struct Posting {
    sequence: u64,
    ordinal: u16,
    before: u32,
}

impl RecentPostings {
    /// An empty index from a sequence on.
    pub fn new(first_sequence: u64, postings_max: usize) -> Self {
        let filter = Arc::new(BloomFilter::for_keys(postings_max));
        Self { first_sequence, postings: Vec::new(), newest: FxHashMap::default(), filter }
    }

    pub const fn len(&self) -> usize {
        self.postings.len()
    }

    #[inline]
    pub fn add(&mut self, key: IndexKey, position: Position) {
        let at = u32::try_from(self.postings.len()).expect("it is sealed before");
        let before = self.newest.insert(key, at).unwrap_or(NONE);
        if before == NONE {
            self.filter.insert(key);
        }
        self.postings.push(Posting { sequence: position.sequence, ordinal: position.ordinal, before });
    }

    /// Appends the first `limit` positions of a key.
    pub fn find(&self, key: IndexKey, from: Position, limit: usize, found: &mut Vec<Position>) {
        let begin = found.len();
        let mut at = self.newest.get(&key).copied().unwrap_or(NONE);
        while let Some(posting) = self.postings.get(at as usize) {
            let position = posting.position();
            if position < from {
                break;
            }
            found.push(position);
            at = posting.before;
        }
        found[begin..].reverse();
        found.truncate(begin + limit);
    }

    /// Calls `visit` for each key, in order, with all its positions.
    ///
    /// # Errors
    /// The first error of `visit`.
    pub fn try_for_each<E>(&self, mut visit: impl FnMut(IndexKey, &[Position]) -> Result<(), E>) -> Result<(), E> {
        let mut keys: Vec<_> = self.newest.iter().map(|(key, newest)| (*key, *newest as usize)).collect();
        keys.sort_unstable();
        // Following each key's chain would miss the cache at every posting. A pass from the newest posting to the
        // oldest finds the key of each, and a pass back puts each in its place.
        let (mut numbers, mut ends) = (vec![0; self.postings.len()], vec![0; keys.len()]);
        keys.iter().zip(0_u32..).for_each(|((_, newest), number)| numbers[*newest] = number);
        for (at, posting) in self.postings.iter().enumerate().rev() {
            let number = numbers[at];
            ends[number as usize] += 1;
            if let Some(before) = numbers.get_mut(posting.before as usize) {
                *before = number;
            }
        }
        let mut next = 0;
        for end in &mut ends {
            (*end, next) = (next, next + *end);
        }
        let mut positions = vec![Position::default(); self.postings.len()];
        for (posting, number) in self.postings.iter().zip(&numbers) {
            let end = &mut ends[*number as usize];
            positions[*end] = posting.position();
            *end += 1;
        }
        let mut begin = 0;
        keys.iter()
            .zip(ends)
            .try_for_each(|((key, _), end)| visit(*key, &positions[std::mem::replace(&mut begin, end)..end]))
    }
}

impl Posting {
    const fn position(&self) -> Position {
        Position { sequence: self.sequence, ordinal: self.ordinal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_ascend() {
        let mut recent = RecentPostings::new(5, 100);
        let position = |sequence| Position { sequence, ordinal: 0 };
        for sequence in 5..25 {
            recent.add(IndexKey(sequence % 2), position(sequence));
        }
        let find = |key, from, limit| {
            let mut found = vec![position(1)];
            recent.find(IndexKey(key), position(from), limit, &mut found);
            found.into_iter().skip(1).map(|position| position.sequence).collect::<Vec<_>>()
        };
        assert_eq!(find(1, 0, 3), [5, 7, 9]);
        assert_eq!(find(0, 20, 9), [20, 22, 24]);
        assert!(find(2, 0, 9).is_empty());
        assert_eq!(recent.len(), 20);
        for nth in 0..7 {
            (100..140)
                .filter(|key| key % 7 >= nth)
                .for_each(|key| recent.add(IndexKey(key), position(100 * nth + key)));
        }
        let mut visited = Vec::new();
        let all = recent.try_for_each(|key, positions| {
            let mut expected = Vec::new();
            recent.find(key, Position::default(), usize::MAX, &mut expected);
            assert_eq!(positions, expected);
            visited.push(key.0);
            if key.0 == 139 { Err(key.0) } else { Ok(()) }
        });
        assert_eq!((all, visited), (Err(139), [0, 1].into_iter().chain(100..140).collect()));
    }
}
