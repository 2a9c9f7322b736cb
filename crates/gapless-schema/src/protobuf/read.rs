//! Safe on any bytes. Rare paths take the reader by value, so that on the straight path its two fields stay in
//! registers.

use core::marker::PhantomData;

use super::{FIXED32, FIXED64, LENGTH_DELIMITED, VARINT};
use crate::DecodeError;

#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    end: usize,
}

impl<'a> Reader<'a> {
    #[inline]
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload, end: payload.len() }
    }

    #[inline]
    #[must_use]
    pub const fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    /// Skips the rest: nothing is read after an error.
    #[inline]
    pub const fn stop(&mut self) {
        self.rest = &[];
    }

    /// Number and wire type; `None` at the end.
    ///
    /// # Errors
    /// A truncated or invalid key.
    #[inline(always)]
    pub fn key(&mut self, message: &'static str) -> Result<Option<u32>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let start = *self;
        match u32::try_from(self.varint(message)?) {
            Ok(key) if key >> 3 != 0 => Ok(Some(key)),
            _ => Err(start.error(message, "the field number is outside of 1..=536870911")),
        }
    }

    /// Reads a nested message.
    ///
    /// # Errors
    /// A premature end of the message.
    #[inline(always)]
    pub fn message(&mut self, field: &'static str) -> Result<Reader<'a>, DecodeError> {
        let rest = self.bytes(field)?;
        Ok(Reader { rest, end: self.position() })
    }

    /// Reads text.
    ///
    /// # Errors
    /// Text that is not UTF-8, or a premature end of the message.
    #[inline]
    pub fn text(&mut self, field: &'static str) -> Result<&'a str, DecodeError> {
        crate::sbe::text::utf8(self.bytes(field)?, field)
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// A premature end of the message.
    #[inline(always)]
    pub fn bytes(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.varint(field)?;
        self.take(length, field)
    }

    /// Reads a packed list.
    ///
    /// # Errors
    /// A premature end of the message.
    #[inline]
    pub fn packed<T: Value>(&mut self, field: &'static str) -> Result<Packed<'a, T>, DecodeError> {
        Ok(Packed { reader: self.message(field)?, field, value: PhantomData })
    }

    /// One value of a list that is not packed.
    ///
    /// # Errors
    /// A value out of range, or a premature end of the message.
    #[inline]
    pub fn unpacked<T: Value>(&mut self, field: &'static str) -> Result<Packed<'a, T>, DecodeError> {
        let start = *self;
        T::read(self, field)?;
        let rest = &start.rest[..start.rest.len() - self.rest.len()];
        Ok(Packed { reader: Reader { rest, end: self.position() }, field, value: PhantomData })
    }

    /// Skips a field of unknown number; `known` names the others.
    ///
    /// # Errors
    /// A known field with another wire type, an unknown wire type, or a premature end of the message.
    #[cold]
    #[inline(never)]
    pub fn other(
        mut self,
        key: u32,
        message: &'static str,
        known: &[(u32, &'static str)],
    ) -> Result<Self, DecodeError> {
        let number = key >> 3;
        if let Some((_, field)) = known.iter().find(|(other, _)| *other == number) {
            return Err(self.error(field, "the wire type is not that of the field"));
        }
        match key & 7 {
            VARINT => drop(self.varint(message)?),
            FIXED64 => drop(self.take(8, message)?),
            LENGTH_DELIMITED => drop(self.bytes(message)?),
            FIXED32 => drop(self.take(4, message)?),
            _ => return Err(self.error(message, "the wire type of an unknown field is not 0, 1, 2 or 5")),
        }
        Ok(self)
    }

    /// Up to 64 bits.
    ///
    /// # Errors
    /// More bits, or a premature end of the message.
    #[inline(always)]
    pub fn varint(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        match *self.rest {
            [first, ref rest @ ..] if first < 0x80 => {
                self.rest = rest;
                Ok(u64::from(first))
            }
            [first, second, ref rest @ ..] if second < 0x80 => {
                self.rest = rest;
                Ok(u64::from(first & 0x7f) | u64::from(second) << 7)
            }
            _ => {
                let (value, rest) = self.long_varint(field)?;
                self.rest = rest;
                Ok(value)
            }
        }
    }

    #[inline(never)]
    fn long_varint(self, field: &'static str) -> Result<(u64, &'a [u8]), DecodeError> {
        let mut value = 0;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                if index == 9 && *byte > 1 {
                    break;
                }
                return Ok((value, &self.rest[index + 1..]));
            }
        }
        let problem = if self.rest.len() < 10 { "the varint is cut short" } else { "the varint has more than 64 bits" };
        Err(self.error(field, problem))
    }

    #[inline(always)]
    fn take(&mut self, length: u64, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(DecodeError::truncated(field, self.position(), length, self.rest.len()));
        };
        self.rest = rest;
        Ok(taken)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(DecodeError::truncated(field, self.position(), N, self.rest.len()));
        };
        self.rest = rest;
        Ok(*taken)
    }

    #[cold]
    #[inline(never)]
    #[must_use]
    pub const fn error(self, field: &'static str, problem: &'static str) -> DecodeError {
        DecodeError::protobuf(field, self.position(), problem)
    }
}

/// Implemented here for numbers and by generated code for enums and sets.
pub trait Value: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// A value out of range, or a premature end of the message.
    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError>;
}

macro_rules! unsigned {
    ($($type:ty),*) => {$(
        impl Value for $type {
            #[inline(always)]
            fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
                let start = *reader;
                let value = reader.varint(field)?;
                Self::try_from(value).map_err(|_| start.error(field, "the number is outside of the range of its type"))
            }
        }
    )*};
}

macro_rules! signed {
    ($($type:ty),*) => {$(
        impl Value for $type {
            #[inline(always)]
            fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
                let start = *reader;
                let value = reader.varint(field)?;
                let value = (value >> 1) as i64 ^ -((value & 1) as i64);
                Self::try_from(value).map_err(|_| start.error(field, "the number is outside of the range of its type"))
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64);
signed!(i8, i16, i32, i64);

impl Value for f32 {
    #[inline(always)]
    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        Ok(Self::from_le_bytes(reader.array(field)?))
    }
}

impl Value for f64 {
    #[inline(always)]
    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        Ok(Self::from_le_bytes(reader.array(field)?))
    }
}

/// Sign-extended on the wire.
///
/// # Errors
/// A number that does not fit into `T`, or a premature end of the message.
#[inline(always)]
pub fn enum_number<T: TryFrom<i64>>(reader: &mut Reader<'_>, field: &'static str) -> Result<T, DecodeError> {
    let start = *reader;
    let value = reader.varint(field)? as i64;
    T::try_from(value).map_err(|_| start.error(field, "the number is outside of the range of its enum"))
}

#[derive(Debug)]
pub struct Packed<'a, T> {
    reader: Reader<'a>,
    field: &'static str,
    value: PhantomData<T>,
}

impl<T> Clone for Packed<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Packed<'_, T> {}

impl<T: Value> Iterator for Packed<'_, T> {
    type Item = Result<T, DecodeError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.rest.is_empty() {
            return None;
        }
        let value = T::read(&mut self.reader, self.field);
        if value.is_err() {
            self.reader.stop();
        }
        Some(value)
    }
}
