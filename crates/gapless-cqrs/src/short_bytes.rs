//! `ShortBytes`: byte strings that are usually short.

use std::ops::Deref;

/// Up to `SHORT` bytes, at most 255, are stored inline; longer ones are allocated.
pub(crate) enum ShortBytes<const SHORT: usize> {
    Short(u8, [u8; SHORT]),
    Long(Box<[u8]>),
}

impl<const SHORT: usize> ShortBytes<SHORT> {
    #[inline]
    pub fn new(bytes: &[u8]) -> Self {
        const { assert!(SHORT <= u8::MAX as usize) }
        let mut short = [0; SHORT];
        match short.get_mut(..bytes.len()) {
            Some(into) => {
                into.copy_from_slice(bytes);
                Self::Short(bytes.len() as u8, short)
            }
            None => Self::Long(bytes.into()),
        }
    }
}

impl<const SHORT: usize> Deref for ShortBytes<SHORT> {
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
    fn short_and_long_bytes_are_kept() {
        let bytes: Vec<u8> = (1..=64).collect();
        for length in 0..=bytes.len() {
            let short = ShortBytes::<22>::new(&bytes[..length]);
            assert_eq!(&*short, &bytes[..length]);
            assert_eq!(matches!(short, ShortBytes::Long(_)), length > 22);
        }
        assert_eq!(size_of::<ShortBytes<22>>(), 24);
    }
}
