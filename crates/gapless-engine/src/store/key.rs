//! Keys of objects in a collection.

use super::changes::{ChangeError, ChangesReader, OperationHead};
use super::hash::mix;
use std::fmt;
use std::hash::Hash;

/// A key: `u64`, `u128`, [`ByteKey`], or `()` of a singleton.
pub trait StoreKey: sealed::Key {}

impl<K: sealed::Key> StoreKey for K {}

pub(super) mod sealed {
    use super::{ChangeError, ChangesReader, Hash, OperationHead, fmt};

    pub trait Key: Copy + Ord + Hash + fmt::Debug + Send + 'static {
        const KIND: u8;
        fn write(&self, head: &mut OperationHead);
        fn read(reader: &mut ChangesReader<'_>) -> Result<Self, ChangeError>;
        fn place(&self, seed: u64) -> u64;
    }
}

impl sealed::Key for () {
    const KIND: u8 = 0;

    #[inline]
    fn write(&self, _: &mut OperationHead) {}

    #[inline]
    fn read(_: &mut ChangesReader<'_>) -> Result<Self, ChangeError> {
        Ok(())
    }

    #[inline]
    fn place(&self, seed: u64) -> u64 {
        mix(seed)
    }
}

impl sealed::Key for u64 {
    const KIND: u8 = 1;

    #[inline]
    fn write(&self, head: &mut OperationHead) {
        head.bytes(self.to_le_bytes());
    }

    #[inline]
    fn read(reader: &mut ChangesReader<'_>) -> Result<Self, ChangeError> {
        reader.array("a key of 8 bytes").map(Self::from_le_bytes)
    }

    #[inline]
    fn place(&self, seed: u64) -> u64 {
        mix(seed ^ self)
    }
}

impl sealed::Key for u128 {
    const KIND: u8 = 2;

    #[inline]
    fn write(&self, head: &mut OperationHead) {
        head.bytes(self.to_le_bytes());
    }

    #[inline]
    fn read(reader: &mut ChangesReader<'_>) -> Result<Self, ChangeError> {
        reader.array("a key of 16 bytes").map(Self::from_le_bytes)
    }

    #[inline]
    fn place(&self, seed: u64) -> u64 {
        mix(mix(seed ^ *self as u64) ^ (*self >> 64) as u64)
    }
}

/// Up to [`ByteKey::LENGTH_MAX`] bytes or text, stored inline, in the order of its bytes.
///
/// ```
/// # mod gapless { pub use gapless_engine::store; }
/// use gapless::store::ByteKey;
///
/// let key = ByteKey::new(b"EURUSD").expect("it is short");
/// assert_eq!(key.as_bytes(), b"EURUSD");
/// assert!(key < ByteKey::new(b"EURUSDX").expect("it is short"));
/// assert_eq!(ByteKey::new(&[0; 40]), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteKey {
    // Zero-padded: comparing arrays, then lengths, gives the order of the bytes.
    bytes: [u8; Self::LENGTH_MAX],
    length: u8,
}

impl ByteKey {
    /// Longest key, bytes.
    pub const LENGTH_MAX: usize = 31;

    /// `None` if it is too long.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut key = Self { bytes: [0; Self::LENGTH_MAX], length: u8::try_from(bytes.len()).ok()? };
        key.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(key)
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Debug for ByteKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

impl sealed::Key for ByteKey {
    const KIND: u8 = 3;

    #[inline]
    fn write(&self, head: &mut OperationHead) {
        head.bytes([self.length]);
        head.part(self.bytes, usize::from(self.length));
    }

    #[inline]
    fn read(reader: &mut ChangesReader<'_>) -> Result<Self, ChangeError> {
        let at = reader.position();
        let length = usize::from(reader.byte("the length of a key")?);
        if length > Self::LENGTH_MAX {
            return Err(ChangeError::new(
                at,
                format!("a key of {length} bytes, at most {} are possible", Self::LENGTH_MAX),
            ));
        }
        let bytes = reader.bytes(length, "a key")?;
        Ok(Self::new(bytes).expect("its length has been looked at"))
    }

    #[inline]
    fn place(&self, seed: u64) -> u64 {
        mix(seed ^ super::hash::content_hash(self.as_bytes()))
    }
}
