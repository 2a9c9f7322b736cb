//! A layout with fixed offsets checks its length once and then reads with [`u32_at`] and its siblings; one that is read
//! from the front uses a [`FieldReader`]. The headers of frames have their own access in [`crate::frame`]: the hottest
//! code of all.

use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    /// The bytes end too early.
    #[error("{what} needs {needed} bytes, only {left} are left")]
    Short { what: &'static str, needed: usize, left: usize },
    /// The field has an invalid value.
    #[error("{what} has a value that it cannot have")]
    Value { what: &'static str },
}

#[derive(Clone, Copy, Debug)]
pub struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    #[inline]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Takes `length` bytes.
    ///
    /// # Errors
    /// [`FieldError::Short`], with `what` as the field's name; the reader does not move then.
    #[inline]
    pub fn bytes(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], FieldError> {
        let Some((bytes, rest)) = self.0.split_at_checked(length) else {
            return Err(short(what, length, self.0.len()));
        };
        self.0 = rest;
        Ok(bytes)
    }

    /// Takes `N` bytes.
    ///
    /// # Errors
    /// See [`FieldReader::bytes`].
    #[inline]
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], FieldError> {
        let Some((field, rest)) = self.0.split_first_chunk() else { return Err(short(what, N, self.0.len())) };
        self.0 = rest;
        Ok(*field)
    }

    /// Takes `N` bytes without a copy, for heads of several fields: a copy would be stored in words that the later
    /// reads do not match.
    ///
    /// # Errors
    /// See [`FieldReader::bytes`].
    #[inline]
    pub fn head<const N: usize>(&mut self, what: &'static str) -> Result<&'a [u8; N], FieldError> {
        let Some((head, rest)) = self.0.split_first_chunk() else { return Err(short(what, N, self.0.len())) };
        self.0 = rest;
        Ok(head)
    }

    /// Takes one byte.
    ///
    /// # Errors
    /// See [`FieldReader::bytes`].
    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Result<u8, FieldError> {
        self.array(what).map(u8::from_le_bytes)
    }

    /// Takes two bytes.
    ///
    /// # Errors
    /// See [`FieldReader::bytes`].
    #[inline]
    pub fn u16(&mut self, what: &'static str) -> Result<u16, FieldError> {
        self.array(what).map(u16::from_le_bytes)
    }

    /// Takes four bytes.
    ///
    /// # Errors
    /// See [`FieldReader::bytes`].
    #[inline]
    pub fn u32(&mut self, what: &'static str) -> Result<u32, FieldError> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// Takes eight bytes.
    ///
    /// # Errors
    /// See [`FieldReader::bytes`].
    #[inline]
    pub fn u64(&mut self, what: &'static str) -> Result<u64, FieldError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Takes sixteen bytes.
    ///
    /// # Errors
    /// See [`FieldReader::bytes`].
    #[inline]
    pub fn u128(&mut self, what: &'static str) -> Result<u128, FieldError> {
        self.array(what).map(u128::from_le_bytes)
    }
}

impl From<FieldError> for String {
    #[cold]
    fn from(error: FieldError) -> Self {
        error.to_string()
    }
}

#[cold]
const fn short(what: &'static str, needed: usize, left: usize) -> FieldError {
    FieldError::Short { what, needed, left }
}

#[derive(Debug)]
pub struct FieldWriter<'a>(&'a mut Vec<u8>);

impl<'a> FieldWriter<'a> {
    #[inline]
    #[must_use]
    pub const fn new(out: &'a mut Vec<u8>) -> Self {
        Self(out)
    }

    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    #[inline]
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    #[inline]
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    #[inline]
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    #[inline]
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    #[inline]
    pub fn u128(&mut self, value: u128) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }
}

#[inline]
fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    *bytes[offset..].first_chunk().expect("callers check the length")
}

/// Reads the two bytes at `offset`.
///
/// # Panics
/// If `bytes` are too short; callers check the length once, before the first field.
#[inline]
#[must_use]
pub fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, offset))
}

/// Reads the four bytes at `offset`.
///
/// # Panics
/// See [`u16_at`].
#[inline]
#[must_use]
pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, offset))
}

/// Reads the eight bytes at `offset`.
///
/// # Panics
/// See [`u16_at`].
#[inline]
#[must_use]
pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, offset))
}

/// Reads the sixteen bytes at `offset`.
///
/// # Panics
/// See [`u16_at`].
#[inline]
#[must_use]
pub fn u128_at(bytes: &[u8], offset: usize) -> u128 {
    u128::from_le_bytes(array_at(bytes, offset))
}

/// `value` is the `to_le_bytes` of a number.
///
/// # Panics
/// If `bytes` are too short.
#[inline]
pub fn put_at(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let mut bytes = Vec::new();
        FieldWriter::new(&mut bytes).u8(1).u16(2).u32(3).u64(4).u128(5).bytes(b"six");
        let mut fields = FieldReader::new(&bytes);
        assert_eq!((fields.u8("a"), fields.u16("b"), fields.u32("c")), (Ok(1), Ok(2), Ok(3)));
        assert_eq!((fields.u64("d"), fields.u128("e")), (Ok(4), Ok(5)));
        assert_eq!((fields.bytes(3, "f"), fields.rest()), (Ok(&b"six"[..]), &[][..]));
        assert_eq!((u16_at(&bytes, 1), u32_at(&bytes, 3), u64_at(&bytes, 7), u128_at(&bytes, 15)), (2, 3, 4, 5));
        put_at(&mut bytes, 3, &7u32.to_le_bytes());
        assert_eq!((u32_at(&bytes, 3), u64_at(&bytes, 7)), (7, 4));
    }

    #[test]
    fn short_field_is_named() {
        let mut fields = FieldReader::new(&[1, 2, 3]);
        let error = fields.u64("a deadline").unwrap_err();
        assert_eq!(error.to_string(), "a deadline needs 8 bytes, only 3 are left");
        assert_eq!(fields.bytes(4, "a name"), Err(FieldError::Short { what: "a name", needed: 4, left: 3 }));
        assert_eq!(fields.rest(), [1, 2, 3]);
    }
}
