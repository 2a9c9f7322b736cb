//! `IndexKey`: the hash by which events are found.

use crate::identity::TypeKey;
use gapless_wire::split_mix::finish;

/// Hash of an aggregate, a tag or an event type, by which events are found. Keys may collide, so readers check each
/// event. Stored in files, so the algorithm must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct IndexKey(pub u64);

impl IndexKey {
    #[inline]
    pub fn of_aggregate(aggregate: TypeKey, id: &[u8]) -> Self {
        Self(hash_bytes(1 << 62 | u64::from(aggregate.0) << 8, id))
    }

    pub fn of_tag(name: &str, value: &[u8]) -> Self {
        Self(hash_bytes(hash_bytes(2 << 62, name.as_bytes()), value))
    }

    #[inline]
    pub fn of_type(event: TypeKey) -> Self {
        Self(hash_bytes(3 << 62 | u64::from(event.0), &[]))
    }
}

/// The last word is padded with zeros.
#[inline]
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, rest) = bytes.as_chunks::<8>();
    let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let last = (!rest.is_empty()).then_some(last);
    whole.iter().map(|word| u64::from_le_bytes(*word)).chain(last)
}

#[inline]
fn hash_bytes(begin: u64, bytes: &[u8]) -> u64 {
    words(bytes).fold(finish(begin ^ bytes.len() as u64), |hash, word| finish(hash ^ word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_stable_and_distinct() {
        let keys = [
            IndexKey::of_aggregate(TypeKey(1), b"id"),
            IndexKey::of_aggregate(TypeKey(2), b"id"),
            IndexKey::of_aggregate(TypeKey(1), b"id\0"),
            IndexKey::of_tag("seat", b"17"),
            IndexKey::of_tag("seat1", b"7"),
            IndexKey::of_type(TypeKey(1)),
        ];
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(
            keys[0],
            IndexKey(finish(finish(1 << 62 | 1 << 8 ^ 2) ^ 0x6469)),
            "a file of today is read tomorrow"
        );
    }
}
