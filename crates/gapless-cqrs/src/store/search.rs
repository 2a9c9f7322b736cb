//! `FilterSearch`: positions that a filter may match, in the order of the stream.

use super::key::IndexKey;
use crate::event_filter::{EventFilter, FilterPart};
use crate::identity::Position;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const POSITIONS: usize = 4096;

/// Each alternative of a filter is looked up by its tags and aggregates, and by types only without these: most types
/// have too many events.
pub(crate) struct FilterSearch {
    alternatives: Vec<Vec<KeyCursor>>,
    found: BinaryHeap<Reverse<(Position, usize)>>,
    /// Alternatives to be looked up.
    due: Vec<usize>,
    /// Alternatives without a position up to `through`.
    others: Vec<usize>,
    through: u64,
}

struct KeyCursor {
    key: IndexKey,
    page: VecDeque<Position>,
}

fn keys_of(parts: &[FilterPart]) -> Vec<IndexKey> {
    let keys = |takes_types: bool| {
        parts.iter().filter_map(move |part| match part {
            FilterPart::Aggregate(aggregate, id) if !takes_types => Some(IndexKey::of_aggregate(*aggregate, id)),
            FilterPart::Tag(name, value) if !takes_types => Some(IndexKey::of_tag(name, value)),
            FilterPart::Type(event) if takes_types => Some(IndexKey::of_type(*event)),
            _ => None,
        })
    };
    let found: Vec<_> = keys(false).collect();
    if found.is_empty() { keys(true).collect() } else { found }
}

/// An event without any of them does not match the filter.
pub(crate) fn first_keys_of(filter: &EventFilter) -> impl Iterator<Item = IndexKey> {
    filter.alternatives().iter().filter_map(|parts| keys_of(parts).first().copied())
}

impl FilterSearch {
    pub fn new(filter: &EventFilter) -> Self {
        let cursor = |key| KeyCursor { key, page: VecDeque::new() };
        let alternatives = filter.alternatives().iter().map(|parts| keys_of(parts).into_iter().map(cursor).collect());
        let alternatives: Vec<_> = alternatives.collect();
        let due = (0..alternatives.len()).collect();
        Self { alternatives, found: BinaryHeap::new(), due, others: Vec::new(), through: 0 }
    }

    /// First position that the filter may match, in `from..=through`. `from` must never decrease; `through` must be
    /// indexed. `find` returns a key's first positions, up to a limit.
    ///
    /// # Errors
    /// Errors of `find`.
    pub fn next<Error>(
        &mut self,
        from: Position,
        through: u64,
        mut find: impl FnMut(IndexKey, Position, usize) -> Result<Vec<Position>, Error>,
    ) -> Result<Option<Position>, Error> {
        if through > self.through {
            self.through = through;
            self.due.append(&mut self.others);
        }
        while let Some(Reverse((_, passed))) = self.found.peek().filter(|Reverse((position, _))| *position < from) {
            self.due.push(*passed);
            self.found.pop();
        }
        // After an error the rest is still due.
        while let Some(index) = self.due.last().copied() {
            match first_common_position(&mut self.alternatives[index], from, through, &mut find)? {
                Some(position) => self.found.push(Reverse((position, index))),
                None => self.others.push(index),
            }
            self.due.pop();
        }
        Ok(self.found.peek().map(|Reverse((position, _))| *position))
    }
}

fn first_common_position<Error>(
    alternative: &mut [KeyCursor],
    from: Position,
    through: u64,
    find: &mut impl FnMut(IndexKey, Position, usize) -> Result<Vec<Position>, Error>,
) -> Result<Option<Position>, Error> {
    let (mut at, mut agreed) = (from, 0);
    while !alternative.is_empty() {
        for looked in &mut *alternative {
            while looked.page.front().is_some_and(|position| *position < at) {
                looked.page.pop_front();
            }
            if looked.page.is_empty() {
                looked.page = find(looked.key, at, POSITIONS)?.into();
            }
            match looked.page.front() {
                Some(position) if position.sequence > through => return Ok(None),
                Some(position) if *position == at => agreed += 1,
                Some(position) => (at, agreed) = (*position, 1),
                None => return Ok(None),
            }
        }
        if agreed >= alternative.len() {
            return Ok(Some(at));
        }
        agreed = 0;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapless_testkit::random::Random;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn search_agrees_with_full_scan() {
        let random = &mut Random::seeded();
        for _ in 0..200 {
            let mut positions: BTreeMap<IndexKey, BTreeSet<Position>> = BTreeMap::new();
            let tags = [["a", "1"], ["a", "2"], ["b", "1"], ["b", "2"]];
            let mut expected = BTreeSet::new();
            let filter = EventFilter::tag("a", "1").and(EventFilter::tag("b", "2")).or(EventFilter::tag("a", "2"));
            let through = 100 + random.below(900);
            for sequence in 1..=1000 {
                for ordinal in 0..2 {
                    let position = Position { sequence, ordinal };
                    let has = tags.map(|_| random.below(4) == 0);
                    for ([name, value], _) in tags.iter().zip(has).filter(|(_, has)| *has) {
                        positions.entry(IndexKey::of_tag(name, value.as_bytes())).or_default().insert(position);
                    }
                    if (has[0] && has[3] || has[1]) && sequence <= through {
                        expected.insert(position);
                    }
                }
            }
            let mut search = FilterSearch::new(&filter);
            let most = 1 + random.below(50) as usize;
            let mut find = |key: IndexKey, from: Position, limit: usize| {
                let found = positions.get(&key).into_iter().flat_map(|all| all.range(from..));
                Ok::<_, ()>(found.take(limit.min(most)).copied().collect::<Vec<_>>())
            };
            let (mut from, mut found) = (Position::default(), BTreeSet::new());
            while let Some(position) = search.next(from, through, &mut find).unwrap() {
                assert!(found.insert(position));
                from = Position { ordinal: position.ordinal + 1, ..position };
            }
            assert_eq!(found, expected);
        }
    }

    /// Looking at each alternative for each position would take a minute.
    #[test]
    fn many_alternatives_are_fast() {
        const TAGS: u64 = 20_000;
        let tag = |number: u64| EventFilter::tag("seat", number.to_string());
        let filter = (0..TAGS).map(tag).reduce(EventFilter::or).unwrap();
        let key = |number: u64| IndexKey::of_tag("seat", number.to_string().as_bytes());
        let at = |number| Position { sequence: number + 1, ordinal: 0 };
        let positions: BTreeMap<_, _> = (0..TAGS).map(|number| (key(number), at(number))).collect();
        let (mut search, mut looked) = (FilterSearch::new(&filter), 0);
        let mut find = |key: IndexKey, from: Position, _: usize| {
            looked += 1;
            Ok::<_, ()>(positions.get(&key).filter(|position| **position >= from).copied().into_iter().collect())
        };
        for number in 0..TAGS {
            assert_eq!(search.next(at(number), TAGS, &mut find), Ok(Some(at(number))));
        }
        assert_eq!(search.next(at(TAGS), TAGS, &mut find), Ok(None));
        assert_eq!(looked, 2 * TAGS);
    }
}
