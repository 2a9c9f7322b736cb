//! [`MessageParts`]: how a message that is longer than a frame is cut into fragments. Used by whoever makes frames.

use crate::Fragment;

/// The payload of a message, cut into parts of one length; only the last may be shorter. An empty message is one empty part.
#[derive(Clone, Copy, Debug)]
pub struct MessageParts<'a> {
    payload: &'a [u8],
    part_length: usize,
    count: usize,
}

impl<'a> MessageParts<'a> {
    /// Cuts `payload` into parts of `part_length` bytes, which is not 0.
    #[inline]
    #[must_use]
    pub fn new(payload: &'a [u8], part_length: usize) -> Self {
        Self { payload, part_length, count: payload.len().div_ceil(part_length).max(1) }
    }

    /// How many there are. A frame's header counts no more than [`u16::MAX`].
    #[inline]
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The part `index`, and what its header says of it.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> (Fragment, &'a [u8]) {
        let begin = index * self.part_length;
        let part = &self.payload[begin..self.payload.len().min(begin + self.part_length)];
        (Fragment { index: index as u16, count: self.count as u16 }, part)
    }

    /// All of them, in their order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = (Fragment, &'a [u8])> {
        (0..self.count).map(move |index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_message_are_the_message() {
        for (length, count) in [(0, 1), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3)] {
            let payload: Vec<u8> = (0..length).collect();
            let parts = MessageParts::new(&payload, 4);
            assert_eq!((parts.count(), parts.iter().count()), (count, count), "{length} bytes");
            assert_eq!(parts.iter().flat_map(|(_, part)| part).copied().collect::<Vec<_>>(), payload);
            for (index, (fragment, part)) in parts.iter().enumerate() {
                assert_eq!((usize::from(fragment.index), usize::from(fragment.count)), (index, count));
                assert!(part.len() == 4 || fragment.is_last());
            }
        }
    }
}
