//! Postcard from untrusted bytes. The reader of the crate `postcard` lacks limits: a recursive list takes one byte per
//! level and would end on the stack's guard page; a vector of `()` can claim 2⁶⁴ elements in ten bytes. Nor can it read
//! an older version's fields, or name position and value of an error.
//!
//! The format is postcard 1: <https://postcard.jamesmunns.com/wire-format>.

use serde::de::value::U32Deserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};
use std::fmt;

/// Limit of nested options, structs, sequences and enums.
pub const DEPTH_MAX: u32 = 256;
/// Limit of elements beyond one for each byte: those that take no bytes.
pub const EMPTY_ELEMENTS_MAX: u64 = 1 << 16;

/// Reads only the first `fields` fields of the outermost struct; the others get serde's defaults.
///
/// # Errors
/// Expected, found, and the position.
pub fn read<T: DeserializeOwned>(bytes: &[u8], fields: usize) -> Result<T, String> {
    let mut reader = PostcardReader {
        bytes,
        position: 0,
        depth: 0,
        elements_left: bytes.len() as u64 + EMPTY_ELEMENTS_MAX,
        fields: Some(fields),
    };
    let value = T::deserialize(&mut reader);
    let (position, length) = (reader.position, bytes.len());
    let value = value.map_err(|PostcardFault(reason)| format!("{reason}, at byte {position} of {length}"))?;
    if position < length {
        return Err(format!("it ends at byte {position}, but {length} bytes were found"));
    }
    Ok(value)
}

#[derive(Debug)]
struct PostcardFault(String);

impl fmt::Display for PostcardFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PostcardFault {}

impl de::Error for PostcardFault {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(text.to_string())
    }
}

fn fault<T>(reason: impl Into<String>) -> Result<T, PostcardFault> {
    Err(PostcardFault(reason.into()))
}

struct PostcardReader<'de> {
    bytes: &'de [u8],
    position: usize,
    depth: u32,
    elements_left: u64,
    /// Field count of the outermost struct, until something was read.
    fields: Option<usize>,
}

/// Groups of seven bits, the least significant first.
macro_rules! varints {
    ($($name:ident $type:ty;)*) => {
        $(
            #[inline]
            fn $name(&mut self, bits: u32) -> Result<$type, PostcardFault> {
                let mut number: $type = 0;
                for group in 0..bits.div_ceil(7) {
                    let [byte] = self.array("a number")?;
                    let shift = group * 7;
                    let low = <$type>::from(byte & 0x7f);
                    if bits - shift < 7 && low >> (bits - shift) != 0 {
                        break;
                    }
                    number |= low << shift;
                    if byte < 0x80 {
                        return Ok(number);
                    }
                }
                fault(format!("a number of {bits} bits is expected, a longer one was found"))
            }
        )*
    };
}

impl<'de> PostcardReader<'de> {
    fn take(&mut self, length: usize, what: &str) -> Result<&'de [u8], PostcardFault> {
        let rest = &self.bytes[self.position..];
        let Some(taken) = rest.get(..length) else {
            return fault(format!("{what} takes {length} bytes, {} are left", rest.len()));
        };
        self.position += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], PostcardFault> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    varints! {
        varint u64;
        wide_varint u128;
    }

    #[inline]
    fn signed(&mut self, bits: u32) -> Result<i64, PostcardFault> {
        let number = self.varint(bits)?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn counted(&mut self, what: &str) -> Result<&'de [u8], PostcardFault> {
        let length = self.varint(64)?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX), what)
    }

    fn text(&mut self) -> Result<&'de str, PostcardFault> {
        let bytes = self.counted("a text")?;
        std::str::from_utf8(bytes).or_else(|error| fault(format!("UTF-8 is expected: {error}")))
    }

    fn is_set(&mut self, what: &str) -> Result<bool, PostcardFault> {
        match self.array(what)? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => fault(format!("{what} of value 0 or 1 is expected, {other} was found")),
        }
    }

    fn count(&mut self) -> Result<usize, PostcardFault> {
        let count = self.varint(64)?;
        let Some(left) = self.elements_left.checked_sub(count) else {
            return fault(format!("{count} elements cannot lie in {} bytes", self.bytes.len()));
        };
        self.elements_left = left;
        Ok(count as usize)
    }

    #[inline]
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, PostcardFault>) -> Result<T, PostcardFault> {
        self.fields = None;
        if self.depth == DEPTH_MAX {
            return fault(format!("at most {DEPTH_MAX} levels of nesting are allowed"));
        }
        self.depth += 1;
        let value = inner(self);
        self.depth -= 1;
        value
    }

    fn tuple<V: Visitor<'de>>(&mut self, length: usize, visitor: V) -> Result<V::Value, PostcardFault> {
        self.deeper(|reader| visitor.visit_seq(ElementReader { reader, left: length }))
    }

    fn fields<V: Visitor<'de>>(&mut self, length: usize, visitor: V) -> Result<V::Value, PostcardFault> {
        let limit = self.fields.take().unwrap_or(usize::MAX);
        self.tuple(length.min(limit), visitor)
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty, $read:ident;)*) => {
        $(
            #[inline]
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
                let number = self.$read(<$type>::BITS)?;
                visitor.$visit(number as $type)
            }
        )*
    };
}

macro_rules! not_there {
    ($($method:ident: $what:literal;)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, PostcardFault> {
                fault(concat!("postcard does not say ", $what))
            }
        )*
    };
}

impl<'de> de::Deserializer<'de> for &mut PostcardReader<'de> {
    type Error = PostcardFault;

    numbers! {
        deserialize_u16 visit_u16 u16, varint;
        deserialize_u32 visit_u32 u32, varint;
        deserialize_u64 visit_u64 u64, varint;
        deserialize_u128 visit_u128 u128, wide_varint;
        deserialize_i16 visit_i16 i16, signed;
        deserialize_i32 visit_i32 i32, signed;
        deserialize_i64 visit_i64 i64, signed;
    }

    not_there! {
        deserialize_any: "of which type a value is: write its type into the message";
        deserialize_identifier: "how a field is called";
        deserialize_ignored_any: "how long a value is that is left out";
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        let number = self.wide_varint(128)?;
        visitor.visit_i128((number >> 1) as i128 ^ -((number & 1) as i128))
    }

    #[inline]
    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        let [byte] = self.array("a number")?;
        visitor.visit_u8(byte)
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        let bytes = self.array("a number")?;
        visitor.visit_i8(i8::from_le_bytes(bytes))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        let bytes = self.array("a number")?;
        visitor.visit_f32(f32::from_le_bytes(bytes))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        let bytes = self.array("a number")?;
        visitor.visit_f64(f64::from_le_bytes(bytes))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        let is_true = self.is_set("a truth value")?;
        visitor.visit_bool(is_true)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        let text = self.text()?;
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => visitor.visit_char(character),
            _ => fault(format!("one character is expected, {} were found", text.chars().count())),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        let text = self.text()?;
        visitor.visit_borrowed_str(text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        let bytes = self.counted("bytes")?;
        visitor.visit_borrowed_bytes(bytes)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        if self.is_set("an option's mark")? {
            self.deeper(|reader| visitor.visit_some(reader))
        } else {
            visitor.visit_none()
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, PostcardFault> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, PostcardFault> {
        self.deeper(|reader| visitor.visit_newtype_struct(reader))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        let count = self.count()?;
        self.tuple(count, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, PostcardFault> {
        self.tuple(length, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, PostcardFault> {
        self.tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PostcardFault> {
        let count = self.count()?;
        self.deeper(|reader| visitor.visit_map(ElementReader { reader, left: count }))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PostcardFault> {
        self.fields(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PostcardFault> {
        self.deeper(|reader| visitor.visit_enum(VariantReader(reader)))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

struct ElementReader<'a, 'de> {
    reader: &'a mut PostcardReader<'de>,
    left: usize,
}

impl<'de> de::SeqAccess<'de> for ElementReader<'_, 'de> {
    type Error = PostcardFault;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, PostcardFault> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::MapAccess<'de> for ElementReader<'_, 'de> {
    type Error = PostcardFault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, PostcardFault> {
        de::SeqAccess::next_element_seed(self, seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, PostcardFault> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

struct VariantReader<'a, 'de>(&'a mut PostcardReader<'de>);

impl<'de> de::EnumAccess<'de> for VariantReader<'_, 'de> {
    type Error = PostcardFault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), PostcardFault> {
        let number = self.0.varint(32)? as u32;
        let number: U32Deserializer<PostcardFault> = number.into_deserializer();
        Ok((seed.deserialize(number)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for VariantReader<'_, 'de> {
    type Error = PostcardFault;

    fn unit_variant(self) -> Result<(), PostcardFault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, PostcardFault> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, PostcardFault> {
        self.0.tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PostcardFault> {
        self.0.tuple(fields.len(), visitor)
    }
}
