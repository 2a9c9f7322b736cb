//! [`EntryId`]: an aggregate's identifier in the cache.

use std::ops::Deref;

/// The longest one without memory of its own.
const SHORT_LENGTH_MAX: usize = 22;

/// An aggregate's identifier. A short one, as most are, lies in the entry itself: it is compared for each command.
pub(super) enum EntryId {
    Short(u8, [u8; SHORT_LENGTH_MAX]),
    Long(Box<[u8]>),
}

impl EntryId {
    pub fn new(id: &[u8]) -> Self {
        let mut short = [0; SHORT_LENGTH_MAX];
        match short.get_mut(..id.len()) {
            Some(into) => {
                into.copy_from_slice(id);
                Self::Short(id.len() as u8, short)
            }
            None => Self::Long(id.into()),
        }
    }
}

impl Deref for EntryId {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Short(length, bytes) => &bytes[..usize::from(*length)],
            Self::Long(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_ones_are_as_they_were_given() {
        assert_eq!(size_of::<EntryId>(), 24);
        let bytes: Vec<u8> = (1..=64).collect();
        for length in 0..=bytes.len() {
            let id = EntryId::new(&bytes[..length]);
            assert_eq!(&*id, &bytes[..length]);
            assert_eq!(matches!(id, EntryId::Long(_)), length > SHORT_LENGTH_MAX);
        }
    }
}
