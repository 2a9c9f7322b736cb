//! [`Recent`]: the events behind the last run, indexed in memory.

use super::filter::Filter;
use super::key::IndexKey;
use crate::identity::Position;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Before the first posting of a key.
const NONE: u32 = u32::MAX;

/// See the head of the file.
pub(super) struct Recent {
    /// Everything from here on is in it.
    pub first_sequence: u64,
    postings: Vec<Posting>,
    /// The newest posting of each key.
    newest: FxHashMap<IndexKey, u32>,
    pub filter: Arc<Filter>,
}

struct Posting {
    sequence: u64,
    ordinal: u16,
    /// The one before of the same key.
    before: u32,
}

impl Recent {
    /// Nothing yet, from that sequence on, with room for so many postings.
    pub fn new(first_sequence: u64, postings_max: usize) -> Self {
        let filter = Arc::new(Filter::for_keys(postings_max));
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

    /// Appends the first `limit` positions of a key, from one on.
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

    /// The keys in their order.
    pub fn keys(&self) -> Vec<IndexKey> {
        let mut keys: Vec<_> = self.newest.keys().copied().collect();
        keys.sort_unstable();
        keys
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
    fn positions_come_in_their_order_from_one_on() {
        let mut recent = Recent::new(5, 100);
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
        assert_eq!((recent.keys(), recent.len()), (vec![IndexKey(0), IndexKey(1)], 20));
    }
}
