//! [`Reader`], which walks the fields of a protobuf message, and [`Packed`], the values of a repeated scalar.
//!
//! Safe on any bytes: what is not protobuf is a [`DecodeError`] with field and position.

use core::marker::PhantomData;

use super::{FIXED32, FIXED64, LENGTH_DELIMITED, VARINT};
use crate::DecodeError;

/// Walks fields from the start of a message to its end.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Position of the end of `rest` in the payload.
    end: usize,
}

/// The key of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Field number.
    pub number: u32,
    /// How the value is laid out.
    pub wire: u32,
}

impl<'a> Reader<'a> {
    /// Begins at the start of `payload`.
    #[inline]
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload, end: payload.len() }
    }

    /// Bytes from the start of the payload.
    #[inline]
    #[must_use]
    pub const fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    /// Skips everything, so that nothing is read after an error.
    #[inline]
    pub const fn stop(&mut self) {
        self.rest = &[];
    }

    /// The key of the next field; `None` at the end.
    ///
    /// # Errors
    /// A key that is cut short or has no meaning.
    #[inline]
    pub fn key(&mut self, message: &'static str) -> Result<Option<Key>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let start = *self;
        let key = self.varint(message)?;
        match u32::try_from(key) {
            Ok(key) if key >> 3 != 0 => Ok(Some(Key { number: key >> 3, wire: key & 7 })),
            _ => Err(start.error(message, "the field number is outside of 1..=536870911")),
        }
    }

    /// The value of a scalar field.
    ///
    /// # Errors
    /// Another wire type than the field's, a value out of range, or the end of the message.
    #[inline]
    pub fn value<T: Value>(&mut self, key: Key, field: &'static str) -> Result<T, DecodeError> {
        if key.wire != T::WIRE {
            return Err(self.error(field, "the wire type is not that of the field"));
        }
        T::read(self, field)
    }

    /// A nested message.
    ///
    /// # Errors
    /// Another wire type, or the end of the message.
    #[inline]
    pub fn message(&mut self, key: Key, field: &'static str) -> Result<Reader<'a>, DecodeError> {
        let rest = self.bytes(key, field)?;
        Ok(Reader { rest, end: self.position() })
    }

    /// Text.
    ///
    /// # Errors
    /// Another wire type, text that is not UTF-8, or the end of the message.
    #[inline]
    pub fn text(&mut self, key: Key, field: &'static str) -> Result<&'a str, DecodeError> {
        crate::sbe::text::utf8(self.bytes(key, field)?, field)
    }

    /// Bytes.
    ///
    /// # Errors
    /// Another wire type, or the end of the message.
    #[inline]
    pub fn bytes(&mut self, key: Key, field: &'static str) -> Result<&'a [u8], DecodeError> {
        if key.wire != LENGTH_DELIMITED {
            return Err(self.error(field, "the wire type is not that of the field"));
        }
        let length = self.varint(field)?;
        self.take(length, field)
    }

    /// The values of a repeated scalar, packed or one by one.
    ///
    /// # Errors
    /// Another wire type, or the end of the message.
    #[inline]
    pub fn packed<T: Value>(&mut self, key: Key, field: &'static str) -> Result<Packed<'a, T>, DecodeError> {
        if key.wire == T::WIRE {
            let start = *self;
            T::read(self, field)?;
            let rest = &start.rest[..start.rest.len() - self.rest.len()];
            return Ok(Packed { reader: Reader { rest, end: self.position() }, field, value: PhantomData });
        }
        Ok(Packed { reader: self.message(key, field)?, field, value: PhantomData })
    }

    /// Skips a field that the schema does not know.
    ///
    /// # Errors
    /// An unknown wire type, or the end of the message.
    pub fn skip(&mut self, key: Key, message: &'static str) -> Result<(), DecodeError> {
        match key.wire {
            VARINT => self.varint(message).map(|_| ()),
            FIXED64 => self.take(8, message).map(|_| ()),
            LENGTH_DELIMITED => self.bytes(key, message).map(|_| ()),
            FIXED32 => self.take(4, message).map(|_| ()),
            _ => Err(self.error(message, "the wire type of an unknown field is not 0, 1, 2 or 5")),
        }
    }

    /// A varint of up to 64 bits.
    ///
    /// # Errors
    /// More bits, or the end of the message.
    #[inline]
    pub fn varint(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        match self.rest.split_first() {
            Some((byte, rest)) if *byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(field),
        }
    }

    fn long_varint(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        let mut value = 0;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                if index == 9 && *byte > 1 {
                    break;
                }
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        let problem = if self.rest.len() < 10 { "the varint is cut short" } else { "the varint has more than 64 bits" };
        Err(self.error(field, problem))
    }

    #[inline]
    fn take(&mut self, length: u64, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(DecodeError::truncated(field, self.position(), length, self.rest.len()));
        };
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(DecodeError::truncated(field, self.position(), N, self.rest.len()));
        };
        self.rest = rest;
        Ok(*taken)
    }

    /// An error at this position.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub const fn error(&self, field: &'static str, problem: &'static str) -> DecodeError {
        DecodeError::protobuf(field, self.position(), problem)
    }
}

/// A scalar that a field can hold; implemented here for numbers and by generated code for enums and sets.
pub trait Value: Sized {
    /// Its wire type.
    const WIRE: u32;

    /// Reads it.
    ///
    /// # Errors
    /// A value out of range, or the end of the message.
    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError>;
}

macro_rules! unsigned {
    ($($type:ty),*) => {$(
        impl Value for $type {
            const WIRE: u32 = VARINT;

            #[inline]
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
            const WIRE: u32 = VARINT;

            #[inline]
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
    const WIRE: u32 = FIXED32;

    #[inline]
    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        Ok(Self::from_le_bytes(reader.array(field)?))
    }
}

impl Value for f64 {
    const WIRE: u32 = FIXED64;

    #[inline]
    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        Ok(Self::from_le_bytes(reader.array(field)?))
    }
}

/// The number of a protobuf enum, which is sign-extended on the wire.
///
/// # Errors
/// A number that does not fit into `T`, or the end of the message.
#[inline]
pub fn enum_number<T: TryFrom<i64>>(reader: &mut Reader<'_>, field: &'static str) -> Result<T, DecodeError> {
    let start = *reader;
    let value = reader.varint(field)? as i64;
    T::try_from(value).map_err(|_| start.error(field, "the number is outside of the range of its enum"))
}

/// The values of a repeated scalar, an iterator.
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

    #[inline]
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
