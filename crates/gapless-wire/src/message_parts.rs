//! `MessageParts`: splits a message that is longer than a frame into fragments.

use crate::Fragment;

/// Payload of a message, split into as few parts as possible, of equal length; an empty message is one empty part.
/// Packets of equal length leave with one system call (UDP segmentation offload): at an MTU of 1,500, messages of 1,400
/// bytes, sent as a full packet and a short one each, took five times the processor time of one packet.
#[derive(Clone, Copy, Debug)]
pub struct MessageParts<'a> {
    payload: &'a [u8],
    part_length: usize,
    count: usize,
}

impl<'a> MessageParts<'a> {
    /// `part_length_max` is not 0.
    #[inline]
    #[must_use]
    pub fn new(payload: &'a [u8], part_length_max: usize) -> Self {
        let count = payload.len().div_ceil(part_length_max).max(1);
        Self { payload, part_length: payload.len().div_ceil(count), count }
    }

    /// A frame's header counts no more than [`u16::MAX`].
    #[inline]
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns the part `index` with its header field.
    ///
    /// # Panics
    /// If there is no such part.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> (Fragment, &'a [u8]) {
        let begin = index * self.part_length;
        let part = &self.payload[begin..self.payload.len().min(begin + self.part_length)];
        (Fragment { index: index as u16, count: self.count as u16 }, part)
    }

    #[inline]
    pub fn iter(self) -> impl Iterator<Item = (Fragment, &'a [u8])> {
        (0..self.count).map(move |index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_up_the_message() {
        for (length, count) in [(0, 1), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3)] {
            let payload: Vec<u8> = (0..length).collect();
            let parts = MessageParts::new(&payload, 4);
            assert_eq!((parts.count(), parts.iter().count()), (count, count), "{length} bytes");
            assert_eq!(parts.iter().flat_map(|(_, part)| part).copied().collect::<Vec<_>>(), payload);
            for (index, (fragment, part)) in parts.iter().enumerate() {
                assert_eq!((usize::from(fragment.index), usize::from(fragment.count)), (index, count));
                assert!(part.len() == parts.get(0).1.len() || fragment.is_last());
            }
        }
    }

    #[test]
    fn parts_have_equal_lengths() {
        let lengths = |length: usize, part_length_max| {
            let payload = vec![0; length];
            MessageParts::new(&payload, part_length_max).iter().map(|(_, part)| part.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(1_400, 1_312), [700, 700]);
        assert_eq!(lengths(2_625, 1_312), [875, 875, 875]);
        for part_length_max in 1..40 {
            for length in 1..400 {
                let parts = lengths(length, part_length_max);
                let (first, last) = (parts[0], parts[parts.len() - 1]);
                assert_eq!(parts.len(), length.div_ceil(part_length_max));
                assert!(first <= part_length_max && last > 0 && first - last < parts.len(), "{length}: {parts:?}");
            }
        }
    }
}
