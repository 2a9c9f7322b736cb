//! Little-endian fields on and off bytes: the one reader and writer of them for every codec of the workspace.
//!
//! A layout with fixed offsets checks its length once and then reads by [`u32_at`] and its siblings; one that is read from
//! the front takes a [`FieldReader`], whose [`FieldError`] says which field is missing and how much of it. The headers of
//! frames have their own access in [`crate::frame`]: it is the hottest code of all, and its offsets are checked by its type.
//! Nothing here knows what a field means.

use thiserror::Error;

/// Why a field cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    /// The bytes end too early.
    #[error("{what} needs {needed} bytes, only {left} are left")]
    Short {
        /// The field, as a person would name it.
        what: &'static str,
        /// Its length in bytes.
        needed: usize,
        /// Bytes from where it begins to the end.
        left: usize,
    },
    /// The field is there, with a value that it cannot have.
    #[error("{what} has a value that it cannot have")]
    Value {
        /// The field, as a person would name it.
        what: &'static str,
    },
}

/// Takes fields off the front of bytes.
#[derive(Clone, Copy, Debug)]
pub struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
    /// A reader that stands at the first of `bytes`.
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What has not been taken yet.
    #[inline]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Takes `length` bytes.
    ///
    /// # Errors
    /// [`FieldError::Short`], with `what` as the field's name; nothing is taken then.
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
    /// As for [`FieldReader::bytes`].
    #[inline]
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], FieldError> {
        let Some((field, rest)) = self.0.split_first_chunk() else { return Err(short(what, N, self.0.len())) };
        self.0 = rest;
        Ok(*field)
    }

    /// As [`FieldReader::array`], where they lie: for heads of several fields, which a copy would put into other words than they are read in.
    ///
    /// # Errors
    /// As for [`FieldReader::bytes`].
    #[inline]
    pub fn head<const N: usize>(&mut self, what: &'static str) -> Result<&'a [u8; N], FieldError> {
        let Some((head, rest)) = self.0.split_first_chunk() else { return Err(short(what, N, self.0.len())) };
        self.0 = rest;
        Ok(head)
    }

    /// Takes one byte.
    ///
    /// # Errors
    /// As for [`FieldReader::bytes`].
    #[inline]
    pub fn u8(&mut self, what: &'static str) -> Result<u8, FieldError> {
        self.array(what).map(u8::from_le_bytes)
    }

    /// Takes two bytes.
    ///
    /// # Errors
    /// As for [`FieldReader::bytes`].
    #[inline]
    pub fn u16(&mut self, what: &'static str) -> Result<u16, FieldError> {
        self.array(what).map(u16::from_le_bytes)
    }

    /// Takes four bytes.
    ///
    /// # Errors
    /// As for [`FieldReader::bytes`].
    #[inline]
    pub fn u32(&mut self, what: &'static str) -> Result<u32, FieldError> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// Takes eight bytes.
    ///
    /// # Errors
    /// As for [`FieldReader::bytes`].
    #[inline]
    pub fn u64(&mut self, what: &'static str) -> Result<u64, FieldError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// Takes sixteen bytes.
    ///
    /// # Errors
    /// As for [`FieldReader::bytes`].
    #[inline]
    pub fn u128(&mut self, what: &'static str) -> Result<u128, FieldError> {
        self.array(what).map(u128::from_le_bytes)
    }
}

impl From<FieldError> for String {
    /// For readers whose errors are sentences.
    #[cold]
    fn from(error: FieldError) -> Self {
        error.to_string()
    }
}

#[cold]
const fn short(what: &'static str, needed: usize, left: usize) -> FieldError {
    FieldError::Short { what, needed, left }
}

/// Puts fields behind what the caller's vector holds already.
#[derive(Debug)]
pub struct FieldWriter<'a>(&'a mut Vec<u8>);

impl<'a> FieldWriter<'a> {
    /// A writer at the end of `out`.
    #[inline]
    #[must_use]
    pub const fn new(out: &'a mut Vec<u8>) -> Self {
        Self(out)
    }

    /// Puts bytes as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Puts one byte.
    #[inline]
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    /// Puts two bytes.
    #[inline]
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Puts four bytes.
    #[inline]
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Puts eight bytes.
    #[inline]
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Puts sixteen bytes.
    #[inline]
    pub fn u128(&mut self, value: u128) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }
}

#[inline]
fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    *bytes[offset..].first_chunk().expect("callers check the length")
}

/// The two bytes at `offset`.
///
/// # Panics
/// If `bytes` end before; callers check the length of what they read once, before its first field.
#[inline]
#[must_use]
pub fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, offset))
}

/// The four bytes at `offset`.
///
/// # Panics
/// As [`u16_at`].
#[inline]
#[must_use]
pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, offset))
}

/// The eight bytes at `offset`.
///
/// # Panics
/// As [`u16_at`].
#[inline]
#[must_use]
pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, offset))
}

/// The sixteen bytes at `offset`.
///
/// # Panics
/// As [`u16_at`].
#[inline]
#[must_use]
pub fn u128_at(bytes: &[u8], offset: usize) -> u128 {
    u128::from_le_bytes(array_at(bytes, offset))
}

/// Puts `value` at `offset`: of a number its `to_le_bytes`.
///
/// # Panics
/// If `bytes` end before.
#[inline]
pub fn put_at(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_were_written() {
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
    fn a_field_that_is_cut_is_named_and_nothing_is_taken() {
        let mut fields = FieldReader::new(&[1, 2, 3]);
        let error = fields.u64("a deadline").unwrap_err();
        assert_eq!(error.to_string(), "a deadline needs 8 bytes, only 3 are left");
        assert_eq!(fields.bytes(4, "a name"), Err(FieldError::Short { what: "a name", needed: 4, left: 3 }));
        assert_eq!(fields.rest(), [1, 2, 3]);
    }
}
