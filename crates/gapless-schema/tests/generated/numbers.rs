// Generated from a schema (gapless.numbers, id 3, version 4). Do not edit: change the schema.

/// Messages of `gapless.numbers`.
///
/// Schema id 3, version 4.
#[allow(
    dead_code,
    deprecated,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unused_imports,
    unused_braces,
    unused_mut,
    unused_parens,
    unused_variables,
    clippy::all,
    clippy::pedantic,
    clippy::nursery
)]
pub mod numbers {
    use ::gapless_schema::sbe::block::{
        field, field_mut, from_offset, late_field, with, with_repeated,
    };
    use ::gapless_schema::sbe::{Entry as _, Tail};
    use ::gapless_schema::{DecodeError, EncodeError};
    /// Id of the schema.
    pub const SCHEMA_ID: u16 = 3u16;
    /// Version of the schema.
    pub const SCHEMA_VERSION: u64 = 4u64;
    /// Enum `Letter`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Letter {
        /// Value `alpha`.
        Alpha,
        /// Value `Zulu`.
        Zulu,
        /// A number that this version of the schema does not name.
        Unknown(u8),
    }
    impl Letter {
        /// The number that means null where a field is optional.
        pub const NULL: u8 = (0u8);
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: u8) -> Self {
            match raw {
                97u8 => Self::Alpha,
                90u8 => Self::Zulu,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u8 {
            match self {
                Self::Alpha => (97u8),
                Self::Zulu => (90u8),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for Letter {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::Alpha
        }
    }
    impl ::gapless_schema::protobuf::Value for Letter {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(
                Self::from_raw(
                    ::gapless_schema::protobuf::read::enum_number::<u8>(reader, field)?,
                ),
            )
        }
    }
    /// Enum `Side`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Side {
        /// Value `BUY`.
        Buy,
        /// Value `SELL`.
        Sell,
        /// Not used any more
        ///
        /// Deprecated since version 3.
        Cross,
        /// Value `SELL_SHORT`.
        ///
        /// Since version 2.
        SellShort,
        /// A number that this version of the schema does not name.
        Unknown(u8),
    }
    impl Side {
        /// The number that means null where a field is optional.
        pub const NULL: u8 = (200u8);
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: u8) -> Self {
            match raw {
                1u8 => Self::Buy,
                2u8 => Self::Sell,
                3u8 => Self::Cross,
                4u8 => Self::SellShort,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u8 {
            match self {
                Self::Buy => (1u8),
                Self::Sell => (2u8),
                Self::Cross => (3u8),
                Self::SellShort => (4u8),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for Side {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::Buy
        }
    }
    impl ::gapless_schema::protobuf::Value for Side {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(
                Self::from_raw(
                    ::gapless_schema::protobuf::read::enum_number::<u8>(reader, field)?,
                ),
            )
        }
    }
    /// Enum `Wide`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Wide {
        /// Value `none`.
        None,
        /// Value `many`.
        Many,
        /// A number that this version of the schema does not name.
        Unknown(u16),
    }
    impl Wide {
        /// The number that means null where a field is optional.
        pub const NULL: u16 = u16::MAX;
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: u16) -> Self {
            match raw {
                0u16 => Self::None,
                60000u16 => Self::Many,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u16 {
            match self {
                Self::None => (0u16),
                Self::Many => (60000u16),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for Wide {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::None
        }
    }
    impl ::gapless_schema::protobuf::Value for Wide {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(
                Self::from_raw(
                    ::gapless_schema::protobuf::read::enum_number::<u16>(reader, field)?,
                ),
            )
        }
    }
    /// Set `Bits8`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Bits8(u8);
    impl Bits8 {
        /// The set of these bits; bits without a choice are kept.
        #[inline]
        #[must_use]
        pub const fn from_raw(bits: u8) -> Self {
            Self(bits)
        }
        /// The bits on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u8 {
            self.0
        }
        /// Whether no choice is set.
        #[inline]
        #[must_use]
        pub const fn is_empty(self) -> bool {
            self.0 == 0
        }
        /// Choice `first`.
        #[inline]
        #[must_use]
        pub const fn first(self) -> bool {
            self.0 & 1 != 0
        }
        /// With choice `first` set or not.
        #[inline]
        #[must_use]
        pub const fn with_first(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 1) } else { Self(self.0 & !1) }
        }
        /// Choice `last`.
        #[inline]
        #[must_use]
        pub const fn last(self) -> bool {
            self.0 & 128 != 0
        }
        /// With choice `last` set or not.
        #[inline]
        #[must_use]
        pub const fn with_last(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 128) } else { Self(self.0 & !128) }
        }
    }
    impl ::gapless_schema::protobuf::Value for Bits8 {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(Self(<u8 as ::gapless_schema::protobuf::Value>::read(reader, field)?))
        }
    }
    /// Set `Bits16`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Bits16(u16);
    impl Bits16 {
        /// The set of these bits; bits without a choice are kept.
        #[inline]
        #[must_use]
        pub const fn from_raw(bits: u16) -> Self {
            Self(bits)
        }
        /// The bits on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u16 {
            self.0
        }
        /// Whether no choice is set.
        #[inline]
        #[must_use]
        pub const fn is_empty(self) -> bool {
            self.0 == 0
        }
        /// Choice `first`.
        #[inline]
        #[must_use]
        pub const fn first(self) -> bool {
            self.0 & 1 != 0
        }
        /// With choice `first` set or not.
        #[inline]
        #[must_use]
        pub const fn with_first(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 1) } else { Self(self.0 & !1) }
        }
        /// Choice `last`.
        #[inline]
        #[must_use]
        pub const fn last(self) -> bool {
            self.0 & 32768 != 0
        }
        /// With choice `last` set or not.
        #[inline]
        #[must_use]
        pub const fn with_last(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 32768) } else { Self(self.0 & !32768) }
        }
    }
    impl ::gapless_schema::protobuf::Value for Bits16 {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(Self(<u16 as ::gapless_schema::protobuf::Value>::read(reader, field)?))
        }
    }
    /// Set `Bits32`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Bits32(u32);
    impl Bits32 {
        /// The set of these bits; bits without a choice are kept.
        #[inline]
        #[must_use]
        pub const fn from_raw(bits: u32) -> Self {
            Self(bits)
        }
        /// The bits on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u32 {
            self.0
        }
        /// Whether no choice is set.
        #[inline]
        #[must_use]
        pub const fn is_empty(self) -> bool {
            self.0 == 0
        }
        /// Choice `first`.
        #[inline]
        #[must_use]
        pub const fn first(self) -> bool {
            self.0 & 1 != 0
        }
        /// With choice `first` set or not.
        #[inline]
        #[must_use]
        pub const fn with_first(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 1) } else { Self(self.0 & !1) }
        }
        /// Choice `last`.
        #[inline]
        #[must_use]
        pub const fn last(self) -> bool {
            self.0 & 2147483648 != 0
        }
        /// With choice `last` set or not.
        #[inline]
        #[must_use]
        pub const fn with_last(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 2147483648) } else { Self(self.0 & !2147483648) }
        }
    }
    impl ::gapless_schema::protobuf::Value for Bits32 {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(Self(<u32 as ::gapless_schema::protobuf::Value>::read(reader, field)?))
        }
    }
    /// Set `Bits64`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Bits64(u64);
    impl Bits64 {
        /// The set of these bits; bits without a choice are kept.
        #[inline]
        #[must_use]
        pub const fn from_raw(bits: u64) -> Self {
            Self(bits)
        }
        /// The bits on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u64 {
            self.0
        }
        /// Whether no choice is set.
        #[inline]
        #[must_use]
        pub const fn is_empty(self) -> bool {
            self.0 == 0
        }
        /// Choice `first`.
        #[inline]
        #[must_use]
        pub const fn first(self) -> bool {
            self.0 & 1 != 0
        }
        /// With choice `first` set or not.
        #[inline]
        #[must_use]
        pub const fn with_first(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 1) } else { Self(self.0 & !1) }
        }
        /// Choice `last`.
        ///
        /// Deprecated since version 2.
        #[deprecated(note = "deprecated since version 2 of the schema")]
        #[inline]
        #[must_use]
        pub const fn last(self) -> bool {
            self.0 & 9223372036854775808 != 0
        }
        /// With choice `last` set or not.
        #[deprecated(note = "deprecated since version 2 of the schema")]
        #[inline]
        #[must_use]
        pub const fn with_last(self, chosen: bool) -> Self {
            if chosen {
                Self(self.0 | 9223372036854775808)
            } else {
                Self(self.0 & !9223372036854775808)
            }
        }
    }
    impl ::gapless_schema::protobuf::Value for Bits64 {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(Self(<u64 as ::gapless_schema::protobuf::Value>::read(reader, field)?))
        }
    }
    /// Reads composite `Spaced` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct SpacedDecoder<'a> {
        block: &'a [u8; 13],
    }
    impl<'a> SpacedDecoder<'a> {
        /// Whether its first member has the null value, which makes the whole composite null where it is optional.
        #[inline]
        #[must_use]
        pub fn is_null(&self) -> bool {
            let raw = field::<0, 1, 13>(self.block);
            let value = u8::from_le_bytes(*raw);
            value == u8::MAX
        }
        /// Field `first`.
        #[inline]
        #[must_use]
        pub fn first(&self) -> u8 {
            let raw = field::<0, 1, 13>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `second`.
        #[inline]
        #[must_use]
        pub fn second(&self) -> u32 {
            let raw = field::<4, 4, 13>(self.block);
            let value = u32::from_le_bytes(*raw);
            value
        }
        /// Field `third`.
        #[inline]
        #[must_use]
        pub fn third(&self) -> u8 {
            let raw = field::<12, 1, 13>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
    }
    /// Writes `Spaced` where it will lie.
    #[derive(Debug)]
    pub struct SpacedEncoder<'a> {
        block: &'a mut [u8; 13],
    }
    impl<'a> SpacedEncoder<'a> {
        /// Field `first`.
        #[inline]
        pub fn first(&mut self, value: u8) -> &mut Self {
            *field_mut::<0, 1, 13>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `second`.
        #[inline]
        pub fn second(&mut self, value: u32) -> &mut Self {
            *field_mut::<4, 4, 13>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `third`.
        #[inline]
        pub fn third(&mut self, value: u8) -> &mut Self {
            *field_mut::<12, 1, 13>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// `Spaced` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Spaced {
        /// Field `first`.
        pub first: u8,
        /// Field `second`.
        pub second: u32,
        /// Field `third`.
        pub third: u8,
    }
    impl Default for Spaced {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                first: Default::default(),
                second: Default::default(),
                third: Default::default(),
            }
        }
    }
    impl Spaced {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &SpacedDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                first: decoder.first(),
                second: decoder.second(),
                third: decoder.third(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut SpacedEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.first;
                encoder.first(*value);
            }
            {
                let value = &self.second;
                encoder.second(*value);
            }
            {
                let value = &self.third;
                encoder.third(*value);
            }
            Ok(())
        }
    }
    /// Appends the fields of `Spaced` as protobuf.
    #[derive(Debug)]
    pub struct SpacedProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> SpacedProtobufEncoder<'w, 'a> {
        /// Field `first`.
        #[inline]
        pub fn first(&mut self, value: u8) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `second`.
        #[inline]
        pub fn second(&mut self, value: u32) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
        /// Field `third`.
        #[inline]
        pub fn third(&mut self, value: u8) -> &mut Self {
            self.writer.uint(3u32, u64::from(value));
            self
        }
    }
    /// A field of `Spaced` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum SpacedField {
        /// Field `first`.
        First(u8),
        /// Field `second`.
        Second(u32),
        /// Field `third`.
        Third(u8),
    }
    /// Goes over the fields of `Spaced` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct SpacedProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> SpacedProtobufDecoder<'a> {
        /// Begins at the start of `payload`.
        #[inline]
        #[must_use]
        pub const fn new(payload: &'a [u8]) -> Self {
            Self {
                reader: ::gapless_schema::protobuf::Reader::new(payload),
            }
        }
        /// The next field that the schema knows; others are skipped. `None` at the end.
        ///
        /// # Errors
        /// What is wrong with the payload and where; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<SpacedField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<SpacedField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Spaced")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                SpacedField::First(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Spaced.first",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                SpacedField::Second(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Spaced.second",
                                    )?,
                                ),
                            ),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(
                                SpacedField::Third(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Spaced.third",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Spaced",
                                &[
                                    (1u32, "Spaced.first"),
                                    (2u32, "Spaced.second"),
                                    (3u32, "Spaced.third"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for SpacedProtobufDecoder<'a> {
        type Item = Result<SpacedField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Spaced {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut SpacedProtobufEncoder<'_, '_>) {
            {
                let value = &self.first;
                encoder.first(*value);
            }
            {
                let value = &self.second;
                encoder.second(*value);
            }
            {
                let value = &self.third;
                encoder.third(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: SpacedProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    SpacedField::First(value) => self.first = value,
                    SpacedField::Second(value) => self.second = value,
                    SpacedField::Third(value) => self.third = value,
                }
            }
            Ok(())
        }
    }
    /// Reads message `Scalars` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct ScalarsDecoder<'a> {
        block: &'a [u8; 120],
    }
    impl<'a> ScalarsDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Scalars")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Scalars", SCHEMA_ID, 1u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            120
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    120,
                >(block_length, Self::needed_length_at(version), version, "Scalars")?;
            Ok(Self { block })
        }
        /// Field `aChar`.
        #[inline]
        #[must_use]
        pub fn a_char(&self) -> u8 {
            let raw = field::<0, 1, 120>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `anInt8`.
        #[inline]
        #[must_use]
        pub fn an_int8(&self) -> i8 {
            let raw = field::<1, 1, 120>(self.block);
            let value = i8::from_le_bytes(*raw);
            value
        }
        /// Field `anInt16`.
        #[inline]
        #[must_use]
        pub fn an_int16(&self) -> i16 {
            let raw = field::<2, 2, 120>(self.block);
            let value = i16::from_le_bytes(*raw);
            value
        }
        /// Field `anInt32`.
        #[inline]
        #[must_use]
        pub fn an_int32(&self) -> i32 {
            let raw = field::<4, 4, 120>(self.block);
            let value = i32::from_le_bytes(*raw);
            value
        }
        /// Field `anInt64`.
        #[inline]
        #[must_use]
        pub fn an_int64(&self) -> i64 {
            let raw = field::<8, 8, 120>(self.block);
            let value = i64::from_le_bytes(*raw);
            value
        }
        /// Field `aUint8`.
        #[inline]
        #[must_use]
        pub fn a_uint8(&self) -> u8 {
            let raw = field::<16, 1, 120>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `aUint16`.
        #[inline]
        #[must_use]
        pub fn a_uint16(&self) -> u16 {
            let raw = field::<17, 2, 120>(self.block);
            let value = u16::from_le_bytes(*raw);
            value
        }
        /// Field `aUint32`.
        #[inline]
        #[must_use]
        pub fn a_uint32(&self) -> u32 {
            let raw = field::<19, 4, 120>(self.block);
            let value = u32::from_le_bytes(*raw);
            value
        }
        /// Field `aUint64`.
        #[inline]
        #[must_use]
        pub fn a_uint64(&self) -> u64 {
            let raw = field::<23, 8, 120>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `aFloat`.
        #[inline]
        #[must_use]
        pub fn a_float(&self) -> f32 {
            let raw = field::<31, 4, 120>(self.block);
            let value = f32::from_le_bytes(*raw);
            value
        }
        /// Field `aDouble`.
        #[inline]
        #[must_use]
        pub fn a_double(&self) -> f64 {
            let raw = field::<35, 8, 120>(self.block);
            let value = f64::from_le_bytes(*raw);
            value
        }
        /// Field `maybeChar`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_char(&self) -> Option<u8> {
            let raw = field::<43, 1, 120>(self.block);
            let value = u8::from_le_bytes(*raw);
            if value == (0u8) { None } else { Some(value) }
        }
        /// Field `maybeInt8`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_int8(&self) -> Option<i8> {
            let raw = field::<44, 1, 120>(self.block);
            let value = i8::from_le_bytes(*raw);
            if value == i8::MIN { None } else { Some(value) }
        }
        /// Field `maybeInt16`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_int16(&self) -> Option<i16> {
            let raw = field::<45, 2, 120>(self.block);
            let value = i16::from_le_bytes(*raw);
            if value == i16::MIN { None } else { Some(value) }
        }
        /// Field `maybeInt32`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_int32(&self) -> Option<i32> {
            let raw = field::<47, 4, 120>(self.block);
            let value = i32::from_le_bytes(*raw);
            if value == i32::MIN { None } else { Some(value) }
        }
        /// Field `maybeInt64`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_int64(&self) -> Option<i64> {
            let raw = field::<51, 8, 120>(self.block);
            let value = i64::from_le_bytes(*raw);
            if value == i64::MIN { None } else { Some(value) }
        }
        /// Field `maybeUint8`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_uint8(&self) -> Option<u8> {
            let raw = field::<59, 1, 120>(self.block);
            let value = u8::from_le_bytes(*raw);
            if value == u8::MAX { None } else { Some(value) }
        }
        /// Field `maybeUint16`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_uint16(&self) -> Option<u16> {
            let raw = field::<60, 2, 120>(self.block);
            let value = u16::from_le_bytes(*raw);
            if value == u16::MAX { None } else { Some(value) }
        }
        /// Field `maybeUint32`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_uint32(&self) -> Option<u32> {
            let raw = field::<62, 4, 120>(self.block);
            let value = u32::from_le_bytes(*raw);
            if value == u32::MAX { None } else { Some(value) }
        }
        /// Field `maybeUint64`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_uint64(&self) -> Option<u64> {
            let raw = field::<66, 8, 120>(self.block);
            let value = u64::from_le_bytes(*raw);
            if value == u64::MAX { None } else { Some(value) }
        }
        /// Field `maybeFloat`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_float(&self) -> Option<f32> {
            let raw = field::<74, 4, 120>(self.block);
            let value = f32::from_le_bytes(*raw);
            if value.is_nan() { None } else { Some(value) }
        }
        /// Field `maybeDouble`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_double(&self) -> Option<f64> {
            let raw = field::<78, 8, 120>(self.block);
            let value = f64::from_le_bytes(*raw);
            if value.is_nan() { None } else { Some(value) }
        }
        /// Field `minusOneIsNull`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn minus_one_is_null(&self) -> Option<i32> {
            let raw = field::<86, 4, 120>(self.block);
            let value = i32::from_le_bytes(*raw);
            if value == (-1i32) { None } else { Some(value) }
        }
        /// Field `zeroIsNull`.
        ///
        /// Range: 1 to 1000.
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn zero_is_null(&self) -> Option<u16> {
            let raw = field::<90, 2, 120>(self.block);
            let value = u16::from_le_bytes(*raw);
            if value == (0u16) { None } else { Some(value) }
        }
        /// The least value of `zeroIsNull`.
        pub const ZERO_IS_NULL_MIN: u16 = (1u16);
        /// The greatest value of `zeroIsNull`.
        pub const ZERO_IS_NULL_MAX: u16 = (1000u16);
        /// Field `otherIsNull`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn other_is_null(&self) -> Option<f64> {
            let raw = field::<92, 8, 120>(self.block);
            let value = f64::from_le_bytes(*raw);
            if value == (1.5f64) { None } else { Some(value) }
        }
        /// Field `neverNull`.
        #[inline]
        #[must_use]
        pub fn never_null(&self) -> i32 {
            let raw = field::<100, 4, 120>(self.block);
            let value = i32::from_le_bytes(*raw);
            value
        }
        /// Field `temperature`.
        ///
        /// Range: -273.1499938964844 to 1000.
        #[inline]
        #[must_use]
        pub fn temperature(&self) -> f32 {
            let raw = field::<104, 4, 120>(self.block);
            let value = f32::from_le_bytes(*raw);
            value
        }
        /// The least value of `temperature`.
        pub const TEMPERATURE_MIN: f32 = (-273.15f32);
        /// The greatest value of `temperature`.
        pub const TEMPERATURE_MAX: f32 = (1000f32);
        /// Field `maybeTemperature`.
        ///
        /// Range: -273.1499938964844 to 1000.
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_temperature(&self) -> Option<f32> {
            let raw = field::<108, 4, 120>(self.block);
            let value = f32::from_le_bytes(*raw);
            if value.is_nan() { None } else { Some(value) }
        }
        /// The least value of `maybeTemperature`.
        pub const MAYBE_TEMPERATURE_MIN: f32 = (-273.15f32);
        /// The greatest value of `maybeTemperature`.
        pub const MAYBE_TEMPERATURE_MAX: f32 = (1000f32);
        /// Field `sendingTime`.
        ///
        /// Semantic type: UTCTimestamp.
        /// Unit of time: nanosecond.
        /// Epoch: unix.
        #[inline]
        #[must_use]
        pub fn sending_time(&self) -> u64 {
            let raw = field::<112, 8, 120>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
    }
    /// Writes `Scalars` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct ScalarsEncoder<'a> {
        block: &'a mut [u8; 128],
        tail: Tail<'a>,
        stage: ScalarsStage,
    }
    impl<'a> ScalarsEncoder<'a> {
        const TEMPLATE: [u8; 128] = {
            let block = [0; 128];
            let block = with(block, 0, (120u16).to_le_bytes());
            let block = with(block, 2, (1u16).to_le_bytes());
            let block = with(block, 4, (3u16).to_le_bytes());
            let block = with(block, 6, (4u16).to_le_bytes());
            let block = with(block, 51, (0u8).to_le_bytes());
            let block = with(block, 52, i8::MIN.to_le_bytes());
            let block = with(block, 53, i16::MIN.to_le_bytes());
            let block = with(block, 55, i32::MIN.to_le_bytes());
            let block = with(block, 59, i64::MIN.to_le_bytes());
            let block = with(block, 67, u8::MAX.to_le_bytes());
            let block = with(block, 68, u16::MAX.to_le_bytes());
            let block = with(block, 70, u32::MAX.to_le_bytes());
            let block = with(block, 74, u64::MAX.to_le_bytes());
            let block = with(block, 82, f32::NAN.to_le_bytes());
            let block = with(block, 86, f64::NAN.to_le_bytes());
            let block = with(block, 94, (-1i32).to_le_bytes());
            let block = with(block, 98, (0u16).to_le_bytes());
            let block = with(block, 100, (1.5f64).to_le_bytes());
            let block = with(block, 116, f32::NAN.to_le_bytes());
            block
        };
        /// Begins a message at the start of `buffer`: its header is written, every optional field is null, the
        /// others are zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if header and block do not fit.
        #[inline(always)]
        pub fn new(buffer: &'a mut [u8]) -> Result<Self, EncodeError> {
            let mut tail = Tail::new(buffer);
            let block = tail.chunk::<128>("Scalars")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: ScalarsStage {
                    reached: 0,
                    ..ScalarsStage::CLOSED
                },
            })
        }
        /// Ends the message: groups and data that were not written are empty. Returns its length in bytes, with
        /// the header.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if they do not fit.
        #[inline(always)]
        pub fn finish(mut self) -> Result<usize, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            Ok(self.tail.position())
        }
        /// Field `aChar`.
        #[inline]
        pub fn a_char(&mut self, value: u8) -> &mut Self {
            *field_mut::<8, 1, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `anInt8`.
        #[inline]
        pub fn an_int8(&mut self, value: i8) -> &mut Self {
            *field_mut::<9, 1, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `anInt16`.
        #[inline]
        pub fn an_int16(&mut self, value: i16) -> &mut Self {
            *field_mut::<10, 2, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `anInt32`.
        #[inline]
        pub fn an_int32(&mut self, value: i32) -> &mut Self {
            *field_mut::<12, 4, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `anInt64`.
        #[inline]
        pub fn an_int64(&mut self, value: i64) -> &mut Self {
            *field_mut::<16, 8, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `aUint8`.
        #[inline]
        pub fn a_uint8(&mut self, value: u8) -> &mut Self {
            *field_mut::<24, 1, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `aUint16`.
        #[inline]
        pub fn a_uint16(&mut self, value: u16) -> &mut Self {
            *field_mut::<25, 2, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `aUint32`.
        #[inline]
        pub fn a_uint32(&mut self, value: u32) -> &mut Self {
            *field_mut::<27, 4, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `aUint64`.
        #[inline]
        pub fn a_uint64(&mut self, value: u64) -> &mut Self {
            *field_mut::<31, 8, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `aFloat`.
        #[inline]
        pub fn a_float(&mut self, value: f32) -> &mut Self {
            *field_mut::<39, 4, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `aDouble`.
        #[inline]
        pub fn a_double(&mut self, value: f64) -> &mut Self {
            *field_mut::<43, 8, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `maybeChar`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_char(&mut self, value: u8) -> &mut Self {
            *field_mut::<51, 1, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maybeChar`, to null if there is no value.
        #[inline]
        pub fn maybe_char_or_null(&mut self, value: Option<u8>) -> &mut Self {
            match value {
                Some(value) => self.maybe_char(value),
                None => self.maybe_char((0u8)),
            }
        }
        /// Field `maybeInt8`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_int8(&mut self, value: i8) -> &mut Self {
            *field_mut::<52, 1, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maybeInt8`, to null if there is no value.
        #[inline]
        pub fn maybe_int8_or_null(&mut self, value: Option<i8>) -> &mut Self {
            match value {
                Some(value) => self.maybe_int8(value),
                None => self.maybe_int8(i8::MIN),
            }
        }
        /// Field `maybeInt16`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_int16(&mut self, value: i16) -> &mut Self {
            *field_mut::<53, 2, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maybeInt16`, to null if there is no value.
        #[inline]
        pub fn maybe_int16_or_null(&mut self, value: Option<i16>) -> &mut Self {
            match value {
                Some(value) => self.maybe_int16(value),
                None => self.maybe_int16(i16::MIN),
            }
        }
        /// Field `maybeInt32`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_int32(&mut self, value: i32) -> &mut Self {
            *field_mut::<55, 4, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maybeInt32`, to null if there is no value.
        #[inline]
        pub fn maybe_int32_or_null(&mut self, value: Option<i32>) -> &mut Self {
            match value {
                Some(value) => self.maybe_int32(value),
                None => self.maybe_int32(i32::MIN),
            }
        }
        /// Field `maybeInt64`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_int64(&mut self, value: i64) -> &mut Self {
            *field_mut::<59, 8, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maybeInt64`, to null if there is no value.
        #[inline]
        pub fn maybe_int64_or_null(&mut self, value: Option<i64>) -> &mut Self {
            match value {
                Some(value) => self.maybe_int64(value),
                None => self.maybe_int64(i64::MIN),
            }
        }
        /// Field `maybeUint8`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_uint8(&mut self, value: u8) -> &mut Self {
            *field_mut::<67, 1, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maybeUint8`, to null if there is no value.
        #[inline]
        pub fn maybe_uint8_or_null(&mut self, value: Option<u8>) -> &mut Self {
            match value {
                Some(value) => self.maybe_uint8(value),
                None => self.maybe_uint8(u8::MAX),
            }
        }
        /// Field `maybeUint16`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_uint16(&mut self, value: u16) -> &mut Self {
            *field_mut::<68, 2, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maybeUint16`, to null if there is no value.
        #[inline]
        pub fn maybe_uint16_or_null(&mut self, value: Option<u16>) -> &mut Self {
            match value {
                Some(value) => self.maybe_uint16(value),
                None => self.maybe_uint16(u16::MAX),
            }
        }
        /// Field `maybeUint32`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_uint32(&mut self, value: u32) -> &mut Self {
            *field_mut::<70, 4, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maybeUint32`, to null if there is no value.
        #[inline]
        pub fn maybe_uint32_or_null(&mut self, value: Option<u32>) -> &mut Self {
            match value {
                Some(value) => self.maybe_uint32(value),
                None => self.maybe_uint32(u32::MAX),
            }
        }
        /// Field `maybeUint64`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_uint64(&mut self, value: u64) -> &mut Self {
            *field_mut::<74, 8, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maybeUint64`, to null if there is no value.
        #[inline]
        pub fn maybe_uint64_or_null(&mut self, value: Option<u64>) -> &mut Self {
            match value {
                Some(value) => self.maybe_uint64(value),
                None => self.maybe_uint64(u64::MAX),
            }
        }
        /// Field `maybeFloat`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_float(&mut self, value: f32) -> &mut Self {
            *field_mut::<82, 4, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maybeFloat`, to null if there is no value.
        #[inline]
        pub fn maybe_float_or_null(&mut self, value: Option<f32>) -> &mut Self {
            match value {
                Some(value) => self.maybe_float(value),
                None => self.maybe_float(f32::NAN),
            }
        }
        /// Field `maybeDouble`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_double(&mut self, value: f64) -> &mut Self {
            *field_mut::<86, 8, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maybeDouble`, to null if there is no value.
        #[inline]
        pub fn maybe_double_or_null(&mut self, value: Option<f64>) -> &mut Self {
            match value {
                Some(value) => self.maybe_double(value),
                None => self.maybe_double(f64::NAN),
            }
        }
        /// Field `minusOneIsNull`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn minus_one_is_null(&mut self, value: i32) -> &mut Self {
            *field_mut::<94, 4, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `minusOneIsNull`, to null if there is no value.
        #[inline]
        pub fn minus_one_is_null_or_null(&mut self, value: Option<i32>) -> &mut Self {
            match value {
                Some(value) => self.minus_one_is_null(value),
                None => self.minus_one_is_null((-1i32)),
            }
        }
        /// Field `zeroIsNull`.
        ///
        /// Range: 1 to 1000.
        /// `None` if it is null.
        #[inline]
        pub fn zero_is_null(&mut self, value: u16) -> &mut Self {
            *field_mut::<98, 2, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `zeroIsNull`, to null if there is no value.
        #[inline]
        pub fn zero_is_null_or_null(&mut self, value: Option<u16>) -> &mut Self {
            match value {
                Some(value) => self.zero_is_null(value),
                None => self.zero_is_null((0u16)),
            }
        }
        /// Field `otherIsNull`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn other_is_null(&mut self, value: f64) -> &mut Self {
            *field_mut::<100, 8, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `otherIsNull`, to null if there is no value.
        #[inline]
        pub fn other_is_null_or_null(&mut self, value: Option<f64>) -> &mut Self {
            match value {
                Some(value) => self.other_is_null(value),
                None => self.other_is_null((1.5f64)),
            }
        }
        /// Field `neverNull`.
        #[inline]
        pub fn never_null(&mut self, value: i32) -> &mut Self {
            *field_mut::<108, 4, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `temperature`.
        ///
        /// Range: -273.1499938964844 to 1000.
        #[inline]
        pub fn temperature(&mut self, value: f32) -> &mut Self {
            *field_mut::<112, 4, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `maybeTemperature`.
        ///
        /// Range: -273.1499938964844 to 1000.
        /// `None` if it is null.
        #[inline]
        pub fn maybe_temperature(&mut self, value: f32) -> &mut Self {
            *field_mut::<116, 4, 128>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maybeTemperature`, to null if there is no value.
        #[inline]
        pub fn maybe_temperature_or_null(&mut self, value: Option<f32>) -> &mut Self {
            match value {
                Some(value) => self.maybe_temperature(value),
                None => self.maybe_temperature(f32::NAN),
            }
        }
        /// Field `sendingTime`.
        ///
        /// Semantic type: UTCTimestamp.
        /// Unit of time: nanosecond.
        /// Epoch: unix.
        #[inline]
        pub fn sending_time(&mut self, value: u64) -> &mut Self {
            *field_mut::<120, 8, 128>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct ScalarsStage {
        reached: u8,
    }
    impl ScalarsStage {
        const CLOSED: Self = Self { reached: 0u8 };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
        }
        /// Completes what is open and fills in what is skipped before `member`.
        #[inline(always)]
        fn advance<'a>(
            &mut self,
            tail: &mut Tail<'a>,
            member: u8,
        ) -> Result<(), EncodeError> {
            if self.is_at(member) {
                return Ok(());
            }
            let (stage, rest, advanced) = self.skip_to(tail.take(), member);
            *self = stage;
            *tail = rest;
            advanced
        }
        #[cold]
        #[inline(never)]
        fn skip_to(
            mut self,
            mut tail: Tail<'_>,
            member: u8,
        ) -> (Self, Tail<'_>, Result<(), EncodeError>) {
            let advanced = self.fill(&mut tail, member);
            (self, tail, advanced)
        }
        fn fill(&mut self, tail: &mut Tail<'_>, member: u8) -> Result<(), EncodeError> {
            if self.reached > member {
                return Err(
                    ::gapless_schema::sbe::write::too_late(
                        match member {
                            _ => "Scalars",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Scalars` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Scalars {
        /// Field `aChar`.
        pub a_char: u8,
        /// Field `anInt8`.
        pub an_int8: i8,
        /// Field `anInt16`.
        pub an_int16: i16,
        /// Field `anInt32`.
        pub an_int32: i32,
        /// Field `anInt64`.
        pub an_int64: i64,
        /// Field `aUint8`.
        pub a_uint8: u8,
        /// Field `aUint16`.
        pub a_uint16: u16,
        /// Field `aUint32`.
        pub a_uint32: u32,
        /// Field `aUint64`.
        pub a_uint64: u64,
        /// Field `aFloat`.
        pub a_float: f32,
        /// Field `aDouble`.
        pub a_double: f64,
        /// Field `maybeChar`.
        ///
        /// `None` if it is null.
        pub maybe_char: Option<u8>,
        /// Field `maybeInt8`.
        ///
        /// `None` if it is null.
        pub maybe_int8: Option<i8>,
        /// Field `maybeInt16`.
        ///
        /// `None` if it is null.
        pub maybe_int16: Option<i16>,
        /// Field `maybeInt32`.
        ///
        /// `None` if it is null.
        pub maybe_int32: Option<i32>,
        /// Field `maybeInt64`.
        ///
        /// `None` if it is null.
        pub maybe_int64: Option<i64>,
        /// Field `maybeUint8`.
        ///
        /// `None` if it is null.
        pub maybe_uint8: Option<u8>,
        /// Field `maybeUint16`.
        ///
        /// `None` if it is null.
        pub maybe_uint16: Option<u16>,
        /// Field `maybeUint32`.
        ///
        /// `None` if it is null.
        pub maybe_uint32: Option<u32>,
        /// Field `maybeUint64`.
        ///
        /// `None` if it is null.
        pub maybe_uint64: Option<u64>,
        /// Field `maybeFloat`.
        ///
        /// `None` if it is null.
        pub maybe_float: Option<f32>,
        /// Field `maybeDouble`.
        ///
        /// `None` if it is null.
        pub maybe_double: Option<f64>,
        /// Field `minusOneIsNull`.
        ///
        /// `None` if it is null.
        pub minus_one_is_null: Option<i32>,
        /// Field `zeroIsNull`.
        ///
        /// Range: 1 to 1000.
        /// `None` if it is null.
        pub zero_is_null: Option<u16>,
        /// Field `otherIsNull`.
        ///
        /// `None` if it is null.
        pub other_is_null: Option<f64>,
        /// Field `neverNull`.
        pub never_null: i32,
        /// Field `temperature`.
        ///
        /// Range: -273.1499938964844 to 1000.
        pub temperature: f32,
        /// Field `maybeTemperature`.
        ///
        /// Range: -273.1499938964844 to 1000.
        /// `None` if it is null.
        pub maybe_temperature: Option<f32>,
        /// Field `sendingTime`.
        ///
        /// Semantic type: UTCTimestamp.
        /// Unit of time: nanosecond.
        /// Epoch: unix.
        pub sending_time: u64,
    }
    impl Default for Scalars {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                a_char: Default::default(),
                an_int8: Default::default(),
                an_int16: Default::default(),
                an_int32: Default::default(),
                an_int64: Default::default(),
                a_uint8: Default::default(),
                a_uint16: Default::default(),
                a_uint32: Default::default(),
                a_uint64: Default::default(),
                a_float: Default::default(),
                a_double: Default::default(),
                maybe_char: None,
                maybe_int8: None,
                maybe_int16: None,
                maybe_int32: None,
                maybe_int64: None,
                maybe_uint8: None,
                maybe_uint16: None,
                maybe_uint32: None,
                maybe_uint64: None,
                maybe_float: None,
                maybe_double: None,
                minus_one_is_null: None,
                zero_is_null: None,
                other_is_null: None,
                never_null: Default::default(),
                temperature: Default::default(),
                maybe_temperature: None,
                sending_time: Default::default(),
            }
        }
    }
    impl Scalars {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &ScalarsDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                a_char: decoder.a_char(),
                an_int8: decoder.an_int8(),
                an_int16: decoder.an_int16(),
                an_int32: decoder.an_int32(),
                an_int64: decoder.an_int64(),
                a_uint8: decoder.a_uint8(),
                a_uint16: decoder.a_uint16(),
                a_uint32: decoder.a_uint32(),
                a_uint64: decoder.a_uint64(),
                a_float: decoder.a_float(),
                a_double: decoder.a_double(),
                maybe_char: decoder.maybe_char(),
                maybe_int8: decoder.maybe_int8(),
                maybe_int16: decoder.maybe_int16(),
                maybe_int32: decoder.maybe_int32(),
                maybe_int64: decoder.maybe_int64(),
                maybe_uint8: decoder.maybe_uint8(),
                maybe_uint16: decoder.maybe_uint16(),
                maybe_uint32: decoder.maybe_uint32(),
                maybe_uint64: decoder.maybe_uint64(),
                maybe_float: decoder.maybe_float(),
                maybe_double: decoder.maybe_double(),
                minus_one_is_null: decoder.minus_one_is_null(),
                zero_is_null: decoder.zero_is_null(),
                other_is_null: decoder.other_is_null(),
                never_null: decoder.never_null(),
                temperature: decoder.temperature(),
                maybe_temperature: decoder.maybe_temperature(),
                sending_time: decoder.sending_time(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut ScalarsEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.a_char;
                encoder.a_char(*value);
            }
            {
                let value = &self.an_int8;
                encoder.an_int8(*value);
            }
            {
                let value = &self.an_int16;
                encoder.an_int16(*value);
            }
            {
                let value = &self.an_int32;
                encoder.an_int32(*value);
            }
            {
                let value = &self.an_int64;
                encoder.an_int64(*value);
            }
            {
                let value = &self.a_uint8;
                encoder.a_uint8(*value);
            }
            {
                let value = &self.a_uint16;
                encoder.a_uint16(*value);
            }
            {
                let value = &self.a_uint32;
                encoder.a_uint32(*value);
            }
            {
                let value = &self.a_uint64;
                encoder.a_uint64(*value);
            }
            {
                let value = &self.a_float;
                encoder.a_float(*value);
            }
            {
                let value = &self.a_double;
                encoder.a_double(*value);
            }
            if let Some(value) = &self.maybe_char {
                if (*value) == (0u8) {
                    return Err(EncodeError::Range {
                        field: "Scalars.maybeChar",
                        range: "of its type without the null value",
                    });
                }
                encoder.maybe_char(*value);
            }
            if let Some(value) = &self.maybe_int8 {
                if (*value) == i8::MIN {
                    return Err(EncodeError::Range {
                        field: "Scalars.maybeInt8",
                        range: "of its type without the null value",
                    });
                }
                encoder.maybe_int8(*value);
            }
            if let Some(value) = &self.maybe_int16 {
                if (*value) == i16::MIN {
                    return Err(EncodeError::Range {
                        field: "Scalars.maybeInt16",
                        range: "of its type without the null value",
                    });
                }
                encoder.maybe_int16(*value);
            }
            if let Some(value) = &self.maybe_int32 {
                if (*value) == i32::MIN {
                    return Err(EncodeError::Range {
                        field: "Scalars.maybeInt32",
                        range: "of its type without the null value",
                    });
                }
                encoder.maybe_int32(*value);
            }
            if let Some(value) = &self.maybe_int64 {
                if (*value) == i64::MIN {
                    return Err(EncodeError::Range {
                        field: "Scalars.maybeInt64",
                        range: "of its type without the null value",
                    });
                }
                encoder.maybe_int64(*value);
            }
            if let Some(value) = &self.maybe_uint8 {
                if (*value) == u8::MAX {
                    return Err(EncodeError::Range {
                        field: "Scalars.maybeUint8",
                        range: "of its type without the null value",
                    });
                }
                encoder.maybe_uint8(*value);
            }
            if let Some(value) = &self.maybe_uint16 {
                if (*value) == u16::MAX {
                    return Err(EncodeError::Range {
                        field: "Scalars.maybeUint16",
                        range: "of its type without the null value",
                    });
                }
                encoder.maybe_uint16(*value);
            }
            if let Some(value) = &self.maybe_uint32 {
                if (*value) == u32::MAX {
                    return Err(EncodeError::Range {
                        field: "Scalars.maybeUint32",
                        range: "of its type without the null value",
                    });
                }
                encoder.maybe_uint32(*value);
            }
            if let Some(value) = &self.maybe_uint64 {
                if (*value) == u64::MAX {
                    return Err(EncodeError::Range {
                        field: "Scalars.maybeUint64",
                        range: "of its type without the null value",
                    });
                }
                encoder.maybe_uint64(*value);
            }
            if let Some(value) = &self.maybe_float {
                encoder.maybe_float(*value);
            }
            if let Some(value) = &self.maybe_double {
                encoder.maybe_double(*value);
            }
            if let Some(value) = &self.minus_one_is_null {
                if (*value) == (-1i32) {
                    return Err(EncodeError::Range {
                        field: "Scalars.minusOneIsNull",
                        range: "of its type without the null value",
                    });
                }
                encoder.minus_one_is_null(*value);
            }
            if let Some(value) = &self.zero_is_null {
                if (*value) == (0u16) || (*value) < (1u16) || (*value) > (1000u16) {
                    return Err(EncodeError::Range {
                        field: "Scalars.zeroIsNull",
                        range: "1 to 1000",
                    });
                }
                encoder.zero_is_null(*value);
            }
            if let Some(value) = &self.other_is_null {
                if (*value) == (1.5f64) {
                    return Err(EncodeError::Range {
                        field: "Scalars.otherIsNull",
                        range: "of its type without the null value",
                    });
                }
                encoder.other_is_null(*value);
            }
            {
                let value = &self.never_null;
                encoder.never_null(*value);
            }
            {
                let value = &self.temperature;
                if (*value) < (-273.15f32) || (*value) > (1000f32) {
                    return Err(EncodeError::Range {
                        field: "Scalars.temperature",
                        range: "-273.1499938964844 to 1000",
                    });
                }
                encoder.temperature(*value);
            }
            if let Some(value) = &self.maybe_temperature {
                if (*value) < (-273.15f32) || (*value) > (1000f32) {
                    return Err(EncodeError::Range {
                        field: "Scalars.maybeTemperature",
                        range: "-273.1499938964844 to 1000",
                    });
                }
                encoder.maybe_temperature(*value);
            }
            {
                let value = &self.sending_time;
                encoder.sending_time(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            120
        }
    }
    /// Appends the fields of `Scalars` as protobuf.
    #[derive(Debug)]
    pub struct ScalarsProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> ScalarsProtobufEncoder<'a> {
        /// Begins a message at the start of `buffer`; an empty one only counts.
        #[inline]
        pub const fn new(buffer: &'a mut [u8]) -> Self {
            Self {
                writer: ::gapless_schema::protobuf::Writer::new(buffer),
            }
        }
        /// Ends the message and returns its length in bytes.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit.
        #[inline]
        pub fn finish(self) -> Result<usize, EncodeError> {
            self.writer.finish("Scalars")
        }
        /// Field `aChar`.
        #[inline]
        pub fn a_char(&mut self, value: u8) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `anInt8`.
        #[inline]
        pub fn an_int8(&mut self, value: i8) -> &mut Self {
            self.writer.sint(2u32, i64::from(value));
            self
        }
        /// Field `anInt16`.
        #[inline]
        pub fn an_int16(&mut self, value: i16) -> &mut Self {
            self.writer.sint(3u32, i64::from(value));
            self
        }
        /// Field `anInt32`.
        #[inline]
        pub fn an_int32(&mut self, value: i32) -> &mut Self {
            self.writer.sint(4u32, i64::from(value));
            self
        }
        /// Field `anInt64`.
        #[inline]
        pub fn an_int64(&mut self, value: i64) -> &mut Self {
            self.writer.sint(5u32, i64::from(value));
            self
        }
        /// Field `aUint8`.
        #[inline]
        pub fn a_uint8(&mut self, value: u8) -> &mut Self {
            self.writer.uint(6u32, u64::from(value));
            self
        }
        /// Field `aUint16`.
        #[inline]
        pub fn a_uint16(&mut self, value: u16) -> &mut Self {
            self.writer.uint(7u32, u64::from(value));
            self
        }
        /// Field `aUint32`.
        #[inline]
        pub fn a_uint32(&mut self, value: u32) -> &mut Self {
            self.writer.uint(8u32, u64::from(value));
            self
        }
        /// Field `aUint64`.
        #[inline]
        pub fn a_uint64(&mut self, value: u64) -> &mut Self {
            self.writer.uint(9u32, u64::from(value));
            self
        }
        /// Field `aFloat`.
        #[inline]
        pub fn a_float(&mut self, value: f32) -> &mut Self {
            self.writer.float(10u32, value);
            self
        }
        /// Field `aDouble`.
        #[inline]
        pub fn a_double(&mut self, value: f64) -> &mut Self {
            self.writer.double(11u32, value);
            self
        }
        /// Field `maybeChar`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_char(&mut self, value: u8) -> &mut Self {
            self.writer.uint(21u32, u64::from(value));
            self
        }
        /// Field `maybeInt8`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_int8(&mut self, value: i8) -> &mut Self {
            self.writer.sint(22u32, i64::from(value));
            self
        }
        /// Field `maybeInt16`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_int16(&mut self, value: i16) -> &mut Self {
            self.writer.sint(23u32, i64::from(value));
            self
        }
        /// Field `maybeInt32`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_int32(&mut self, value: i32) -> &mut Self {
            self.writer.sint(24u32, i64::from(value));
            self
        }
        /// Field `maybeInt64`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_int64(&mut self, value: i64) -> &mut Self {
            self.writer.sint(25u32, i64::from(value));
            self
        }
        /// Field `maybeUint8`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_uint8(&mut self, value: u8) -> &mut Self {
            self.writer.uint(26u32, u64::from(value));
            self
        }
        /// Field `maybeUint16`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_uint16(&mut self, value: u16) -> &mut Self {
            self.writer.uint(27u32, u64::from(value));
            self
        }
        /// Field `maybeUint32`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_uint32(&mut self, value: u32) -> &mut Self {
            self.writer.uint(28u32, u64::from(value));
            self
        }
        /// Field `maybeUint64`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_uint64(&mut self, value: u64) -> &mut Self {
            self.writer.uint(29u32, u64::from(value));
            self
        }
        /// Field `maybeFloat`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_float(&mut self, value: f32) -> &mut Self {
            self.writer.float(30u32, value);
            self
        }
        /// Field `maybeDouble`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_double(&mut self, value: f64) -> &mut Self {
            self.writer.double(31u32, value);
            self
        }
        /// Field `minusOneIsNull`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn minus_one_is_null(&mut self, value: i32) -> &mut Self {
            self.writer.sint(41u32, i64::from(value));
            self
        }
        /// Field `zeroIsNull`.
        ///
        /// Range: 1 to 1000.
        /// `None` if it is null.
        #[inline]
        pub fn zero_is_null(&mut self, value: u16) -> &mut Self {
            self.writer.uint(42u32, u64::from(value));
            self
        }
        /// Field `otherIsNull`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn other_is_null(&mut self, value: f64) -> &mut Self {
            self.writer.double(43u32, value);
            self
        }
        /// Field `neverNull`.
        #[inline]
        pub fn never_null(&mut self, value: i32) -> &mut Self {
            self.writer.sint(44u32, i64::from(value));
            self
        }
        /// Field `temperature`.
        ///
        /// Range: -273.1499938964844 to 1000.
        #[inline]
        pub fn temperature(&mut self, value: f32) -> &mut Self {
            self.writer.float(45u32, value);
            self
        }
        /// Field `maybeTemperature`.
        ///
        /// Range: -273.1499938964844 to 1000.
        /// `None` if it is null.
        #[inline]
        pub fn maybe_temperature(&mut self, value: f32) -> &mut Self {
            self.writer.float(46u32, value);
            self
        }
        /// Field `sendingTime`.
        ///
        /// Semantic type: UTCTimestamp.
        /// Unit of time: nanosecond.
        /// Epoch: unix.
        #[inline]
        pub fn sending_time(&mut self, value: u64) -> &mut Self {
            self.writer.uint(47u32, u64::from(value));
            self
        }
    }
    /// A field of `Scalars` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum ScalarsField {
        /// Field `aChar`.
        AChar(u8),
        /// Field `anInt8`.
        AnInt8(i8),
        /// Field `anInt16`.
        AnInt16(i16),
        /// Field `anInt32`.
        AnInt32(i32),
        /// Field `anInt64`.
        AnInt64(i64),
        /// Field `aUint8`.
        AUint8(u8),
        /// Field `aUint16`.
        AUint16(u16),
        /// Field `aUint32`.
        AUint32(u32),
        /// Field `aUint64`.
        AUint64(u64),
        /// Field `aFloat`.
        AFloat(f32),
        /// Field `aDouble`.
        ADouble(f64),
        /// Field `maybeChar`.
        MaybeChar(u8),
        /// Field `maybeInt8`.
        MaybeInt8(i8),
        /// Field `maybeInt16`.
        MaybeInt16(i16),
        /// Field `maybeInt32`.
        MaybeInt32(i32),
        /// Field `maybeInt64`.
        MaybeInt64(i64),
        /// Field `maybeUint8`.
        MaybeUint8(u8),
        /// Field `maybeUint16`.
        MaybeUint16(u16),
        /// Field `maybeUint32`.
        MaybeUint32(u32),
        /// Field `maybeUint64`.
        MaybeUint64(u64),
        /// Field `maybeFloat`.
        MaybeFloat(f32),
        /// Field `maybeDouble`.
        MaybeDouble(f64),
        /// Field `minusOneIsNull`.
        MinusOneIsNull(i32),
        /// Field `zeroIsNull`.
        ZeroIsNull(u16),
        /// Field `otherIsNull`.
        OtherIsNull(f64),
        /// Field `neverNull`.
        NeverNull(i32),
        /// Field `temperature`.
        Temperature(f32),
        /// Field `maybeTemperature`.
        MaybeTemperature(f32),
        /// Field `sendingTime`.
        ///
        /// Semantic type: UTCTimestamp.
        /// Unit of time: nanosecond.
        /// Epoch: unix.
        SendingTime(u64),
    }
    /// Goes over the fields of `Scalars` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct ScalarsProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> ScalarsProtobufDecoder<'a> {
        /// Begins at the start of `payload`.
        #[inline]
        #[must_use]
        pub const fn new(payload: &'a [u8]) -> Self {
            Self {
                reader: ::gapless_schema::protobuf::Reader::new(payload),
            }
        }
        /// The next field that the schema knows; others are skipped. `None` at the end.
        ///
        /// # Errors
        /// What is wrong with the payload and where; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<ScalarsField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<ScalarsField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Scalars")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                ScalarsField::AChar(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.aChar",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                ScalarsField::AnInt8(
                                    <i8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.anInt8",
                                    )?,
                                ),
                            ),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(
                                ScalarsField::AnInt16(
                                    <i16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.anInt16",
                                    )?,
                                ),
                            ),
                        );
                    }
                    32u32 => {
                        return Ok(
                            Some(
                                ScalarsField::AnInt32(
                                    <i32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.anInt32",
                                    )?,
                                ),
                            ),
                        );
                    }
                    40u32 => {
                        return Ok(
                            Some(
                                ScalarsField::AnInt64(
                                    <i64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.anInt64",
                                    )?,
                                ),
                            ),
                        );
                    }
                    48u32 => {
                        return Ok(
                            Some(
                                ScalarsField::AUint8(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.aUint8",
                                    )?,
                                ),
                            ),
                        );
                    }
                    56u32 => {
                        return Ok(
                            Some(
                                ScalarsField::AUint16(
                                    <u16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.aUint16",
                                    )?,
                                ),
                            ),
                        );
                    }
                    64u32 => {
                        return Ok(
                            Some(
                                ScalarsField::AUint32(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.aUint32",
                                    )?,
                                ),
                            ),
                        );
                    }
                    72u32 => {
                        return Ok(
                            Some(
                                ScalarsField::AUint64(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.aUint64",
                                    )?,
                                ),
                            ),
                        );
                    }
                    85u32 => {
                        return Ok(
                            Some(
                                ScalarsField::AFloat(
                                    <f32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.aFloat",
                                    )?,
                                ),
                            ),
                        );
                    }
                    89u32 => {
                        return Ok(
                            Some(
                                ScalarsField::ADouble(
                                    <f64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.aDouble",
                                    )?,
                                ),
                            ),
                        );
                    }
                    168u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MaybeChar(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.maybeChar",
                                    )?,
                                ),
                            ),
                        );
                    }
                    176u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MaybeInt8(
                                    <i8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.maybeInt8",
                                    )?,
                                ),
                            ),
                        );
                    }
                    184u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MaybeInt16(
                                    <i16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.maybeInt16",
                                    )?,
                                ),
                            ),
                        );
                    }
                    192u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MaybeInt32(
                                    <i32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.maybeInt32",
                                    )?,
                                ),
                            ),
                        );
                    }
                    200u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MaybeInt64(
                                    <i64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.maybeInt64",
                                    )?,
                                ),
                            ),
                        );
                    }
                    208u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MaybeUint8(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.maybeUint8",
                                    )?,
                                ),
                            ),
                        );
                    }
                    216u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MaybeUint16(
                                    <u16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.maybeUint16",
                                    )?,
                                ),
                            ),
                        );
                    }
                    224u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MaybeUint32(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.maybeUint32",
                                    )?,
                                ),
                            ),
                        );
                    }
                    232u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MaybeUint64(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.maybeUint64",
                                    )?,
                                ),
                            ),
                        );
                    }
                    245u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MaybeFloat(
                                    <f32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.maybeFloat",
                                    )?,
                                ),
                            ),
                        );
                    }
                    249u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MaybeDouble(
                                    <f64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.maybeDouble",
                                    )?,
                                ),
                            ),
                        );
                    }
                    328u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MinusOneIsNull(
                                    <i32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.minusOneIsNull",
                                    )?,
                                ),
                            ),
                        );
                    }
                    336u32 => {
                        return Ok(
                            Some(
                                ScalarsField::ZeroIsNull(
                                    <u16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.zeroIsNull",
                                    )?,
                                ),
                            ),
                        );
                    }
                    345u32 => {
                        return Ok(
                            Some(
                                ScalarsField::OtherIsNull(
                                    <f64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.otherIsNull",
                                    )?,
                                ),
                            ),
                        );
                    }
                    352u32 => {
                        return Ok(
                            Some(
                                ScalarsField::NeverNull(
                                    <i32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.neverNull",
                                    )?,
                                ),
                            ),
                        );
                    }
                    365u32 => {
                        return Ok(
                            Some(
                                ScalarsField::Temperature(
                                    <f32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.temperature",
                                    )?,
                                ),
                            ),
                        );
                    }
                    373u32 => {
                        return Ok(
                            Some(
                                ScalarsField::MaybeTemperature(
                                    <f32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.maybeTemperature",
                                    )?,
                                ),
                            ),
                        );
                    }
                    376u32 => {
                        return Ok(
                            Some(
                                ScalarsField::SendingTime(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Scalars.sendingTime",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Scalars",
                                &[
                                    (1u32, "Scalars.aChar"),
                                    (2u32, "Scalars.anInt8"),
                                    (3u32, "Scalars.anInt16"),
                                    (4u32, "Scalars.anInt32"),
                                    (5u32, "Scalars.anInt64"),
                                    (6u32, "Scalars.aUint8"),
                                    (7u32, "Scalars.aUint16"),
                                    (8u32, "Scalars.aUint32"),
                                    (9u32, "Scalars.aUint64"),
                                    (10u32, "Scalars.aFloat"),
                                    (11u32, "Scalars.aDouble"),
                                    (21u32, "Scalars.maybeChar"),
                                    (22u32, "Scalars.maybeInt8"),
                                    (23u32, "Scalars.maybeInt16"),
                                    (24u32, "Scalars.maybeInt32"),
                                    (25u32, "Scalars.maybeInt64"),
                                    (26u32, "Scalars.maybeUint8"),
                                    (27u32, "Scalars.maybeUint16"),
                                    (28u32, "Scalars.maybeUint32"),
                                    (29u32, "Scalars.maybeUint64"),
                                    (30u32, "Scalars.maybeFloat"),
                                    (31u32, "Scalars.maybeDouble"),
                                    (41u32, "Scalars.minusOneIsNull"),
                                    (42u32, "Scalars.zeroIsNull"),
                                    (43u32, "Scalars.otherIsNull"),
                                    (44u32, "Scalars.neverNull"),
                                    (45u32, "Scalars.temperature"),
                                    (46u32, "Scalars.maybeTemperature"),
                                    (47u32, "Scalars.sendingTime"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for ScalarsProtobufDecoder<'a> {
        type Item = Result<ScalarsField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Scalars {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut ScalarsProtobufEncoder<'_>) {
            {
                let value = &self.a_char;
                encoder.a_char(*value);
            }
            {
                let value = &self.an_int8;
                encoder.an_int8(*value);
            }
            {
                let value = &self.an_int16;
                encoder.an_int16(*value);
            }
            {
                let value = &self.an_int32;
                encoder.an_int32(*value);
            }
            {
                let value = &self.an_int64;
                encoder.an_int64(*value);
            }
            {
                let value = &self.a_uint8;
                encoder.a_uint8(*value);
            }
            {
                let value = &self.a_uint16;
                encoder.a_uint16(*value);
            }
            {
                let value = &self.a_uint32;
                encoder.a_uint32(*value);
            }
            {
                let value = &self.a_uint64;
                encoder.a_uint64(*value);
            }
            {
                let value = &self.a_float;
                encoder.a_float(*value);
            }
            {
                let value = &self.a_double;
                encoder.a_double(*value);
            }
            if let Some(value) = &self.maybe_char {
                encoder.maybe_char(*value);
            }
            if let Some(value) = &self.maybe_int8 {
                encoder.maybe_int8(*value);
            }
            if let Some(value) = &self.maybe_int16 {
                encoder.maybe_int16(*value);
            }
            if let Some(value) = &self.maybe_int32 {
                encoder.maybe_int32(*value);
            }
            if let Some(value) = &self.maybe_int64 {
                encoder.maybe_int64(*value);
            }
            if let Some(value) = &self.maybe_uint8 {
                encoder.maybe_uint8(*value);
            }
            if let Some(value) = &self.maybe_uint16 {
                encoder.maybe_uint16(*value);
            }
            if let Some(value) = &self.maybe_uint32 {
                encoder.maybe_uint32(*value);
            }
            if let Some(value) = &self.maybe_uint64 {
                encoder.maybe_uint64(*value);
            }
            if let Some(value) = &self.maybe_float {
                encoder.maybe_float(*value);
            }
            if let Some(value) = &self.maybe_double {
                encoder.maybe_double(*value);
            }
            if let Some(value) = &self.minus_one_is_null {
                encoder.minus_one_is_null(*value);
            }
            if let Some(value) = &self.zero_is_null {
                encoder.zero_is_null(*value);
            }
            if let Some(value) = &self.other_is_null {
                encoder.other_is_null(*value);
            }
            {
                let value = &self.never_null;
                encoder.never_null(*value);
            }
            {
                let value = &self.temperature;
                encoder.temperature(*value);
            }
            if let Some(value) = &self.maybe_temperature {
                encoder.maybe_temperature(*value);
            }
            {
                let value = &self.sending_time;
                encoder.sending_time(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: ScalarsProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    ScalarsField::AChar(value) => self.a_char = value,
                    ScalarsField::AnInt8(value) => self.an_int8 = value,
                    ScalarsField::AnInt16(value) => self.an_int16 = value,
                    ScalarsField::AnInt32(value) => self.an_int32 = value,
                    ScalarsField::AnInt64(value) => self.an_int64 = value,
                    ScalarsField::AUint8(value) => self.a_uint8 = value,
                    ScalarsField::AUint16(value) => self.a_uint16 = value,
                    ScalarsField::AUint32(value) => self.a_uint32 = value,
                    ScalarsField::AUint64(value) => self.a_uint64 = value,
                    ScalarsField::AFloat(value) => self.a_float = value,
                    ScalarsField::ADouble(value) => self.a_double = value,
                    ScalarsField::MaybeChar(value) => self.maybe_char = Some(value),
                    ScalarsField::MaybeInt8(value) => self.maybe_int8 = Some(value),
                    ScalarsField::MaybeInt16(value) => self.maybe_int16 = Some(value),
                    ScalarsField::MaybeInt32(value) => self.maybe_int32 = Some(value),
                    ScalarsField::MaybeInt64(value) => self.maybe_int64 = Some(value),
                    ScalarsField::MaybeUint8(value) => self.maybe_uint8 = Some(value),
                    ScalarsField::MaybeUint16(value) => self.maybe_uint16 = Some(value),
                    ScalarsField::MaybeUint32(value) => self.maybe_uint32 = Some(value),
                    ScalarsField::MaybeUint64(value) => self.maybe_uint64 = Some(value),
                    ScalarsField::MaybeFloat(value) => self.maybe_float = Some(value),
                    ScalarsField::MaybeDouble(value) => self.maybe_double = Some(value),
                    ScalarsField::MinusOneIsNull(value) => {
                        self.minus_one_is_null = Some(value);
                    }
                    ScalarsField::ZeroIsNull(value) => self.zero_is_null = Some(value),
                    ScalarsField::OtherIsNull(value) => self.other_is_null = Some(value),
                    ScalarsField::NeverNull(value) => self.never_null = value,
                    ScalarsField::Temperature(value) => self.temperature = value,
                    ScalarsField::MaybeTemperature(value) => {
                        self.maybe_temperature = Some(value);
                    }
                    ScalarsField::SendingTime(value) => self.sending_time = value,
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::Message for ScalarsDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Scalars";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = ScalarsDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<ScalarsDecoder<'_>, DecodeError> {
            ScalarsDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for ScalarsEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Scalars";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = ScalarsEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<ScalarsEncoder<'_>, EncodeError> {
            ScalarsEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: ScalarsEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for ScalarsProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Scalars";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = ScalarsProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<ScalarsProtobufDecoder<'_>, DecodeError> {
            Ok(ScalarsProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for ScalarsProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Scalars";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = ScalarsProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<ScalarsProtobufEncoder<'_>, EncodeError> {
            Ok(ScalarsProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: ScalarsProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Scalars {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Scalars";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&ScalarsDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = ScalarsEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Scalars {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Scalars";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(ScalarsProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = ScalarsProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = ScalarsProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Reads message `Arrays` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct ArraysDecoder<'a> {
        block: &'a [u8; 138],
    }
    impl<'a> ArraysDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Arrays")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Arrays", SCHEMA_ID, 2u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            138
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    138,
                >(block_length, Self::needed_length_at(version), version, "Arrays")?;
            Ok(Self { block })
        }
        /// Field `int8s`.
        #[inline]
        #[must_use]
        pub fn int8s(&self) -> [i8; 3] {
            let raw = field::<0, 3, 138>(self.block);
            let value = {
                let items = raw.as_chunks::<1>().0;
                core::array::from_fn::<_, 3, _>(|index| i8::from_le_bytes(items[index]))
            };
            value
        }
        /// Field `uint8s`.
        #[inline]
        #[must_use]
        pub fn uint8s(&self) -> &'a [u8; 4] {
            let raw = field::<3, 4, 138>(self.block);
            let value = raw;
            value
        }
        /// Field `int16s`.
        #[inline]
        #[must_use]
        pub fn int16s(&self) -> [i16; 2] {
            let raw = field::<7, 4, 138>(self.block);
            let value = {
                let items = raw.as_chunks::<2>().0;
                core::array::from_fn::<_, 2, _>(|index| i16::from_le_bytes(items[index]))
            };
            value
        }
        /// Field `uint16s`.
        #[inline]
        #[must_use]
        pub fn uint16s(&self) -> [u16; 2] {
            let raw = field::<11, 4, 138>(self.block);
            let value = {
                let items = raw.as_chunks::<2>().0;
                core::array::from_fn::<_, 2, _>(|index| u16::from_le_bytes(items[index]))
            };
            value
        }
        /// Field `int32s`.
        #[inline]
        #[must_use]
        pub fn int32s(&self) -> [i32; 2] {
            let raw = field::<15, 8, 138>(self.block);
            let value = {
                let items = raw.as_chunks::<4>().0;
                core::array::from_fn::<_, 2, _>(|index| i32::from_le_bytes(items[index]))
            };
            value
        }
        /// Field `uint32s`.
        #[inline]
        #[must_use]
        pub fn uint32s(&self) -> [u32; 2] {
            let raw = field::<23, 8, 138>(self.block);
            let value = {
                let items = raw.as_chunks::<4>().0;
                core::array::from_fn::<_, 2, _>(|index| u32::from_le_bytes(items[index]))
            };
            value
        }
        /// Field `int64s`.
        #[inline]
        #[must_use]
        pub fn int64s(&self) -> [i64; 2] {
            let raw = field::<31, 16, 138>(self.block);
            let value = {
                let items = raw.as_chunks::<8>().0;
                core::array::from_fn::<_, 2, _>(|index| i64::from_le_bytes(items[index]))
            };
            value
        }
        /// Field `uint64s`.
        #[inline]
        #[must_use]
        pub fn uint64s(&self) -> [u64; 2] {
            let raw = field::<47, 16, 138>(self.block);
            let value = {
                let items = raw.as_chunks::<8>().0;
                core::array::from_fn::<_, 2, _>(|index| u64::from_le_bytes(items[index]))
            };
            value
        }
        /// Field `floats`.
        #[inline]
        #[must_use]
        pub fn floats(&self) -> [f32; 3] {
            let raw = field::<63, 12, 138>(self.block);
            let value = {
                let items = raw.as_chunks::<4>().0;
                core::array::from_fn::<_, 3, _>(|index| f32::from_le_bytes(items[index]))
            };
            value
        }
        /// Field `doubles`.
        #[inline]
        #[must_use]
        pub fn doubles(&self) -> [f64; 2] {
            let raw = field::<75, 16, 138>(self.block);
            let value = {
                let items = raw.as_chunks::<8>().0;
                core::array::from_fn::<_, 2, _>(|index| f64::from_le_bytes(items[index]))
            };
            value
        }
        /// Field `noInt16s`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn no_int16s(&self) -> Option<[i16; 2]> {
            let raw = field::<91, 4, 138>(self.block);
            let value = {
                let items = raw.as_chunks::<2>().0;
                core::array::from_fn::<_, 2, _>(|index| i16::from_le_bytes(items[index]))
            };
            if value.iter().all(|value| (*value) == i16::MIN) {
                None
            } else {
                Some(value)
            }
        }
        /// Field `someInt16s`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn some_int16s(&self) -> Option<[i16; 2]> {
            let raw = field::<95, 4, 138>(self.block);
            let value = {
                let items = raw.as_chunks::<2>().0;
                core::array::from_fn::<_, 2, _>(|index| i16::from_le_bytes(items[index]))
            };
            if value.iter().all(|value| (*value) == i16::MIN) {
                None
            } else {
                Some(value)
            }
        }
        /// Field `noFloats`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn no_floats(&self) -> Option<[f32; 2]> {
            let raw = field::<99, 8, 138>(self.block);
            let value = {
                let items = raw.as_chunks::<4>().0;
                core::array::from_fn::<_, 2, _>(|index| f32::from_le_bytes(items[index]))
            };
            if value.iter().all(|value| (*value).is_nan()) { None } else { Some(value) }
        }
        /// Field `noBytes`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn no_bytes(&self) -> Option<&'a [u8; 2]> {
            let raw = field::<107, 2, 138>(self.block);
            let value = raw;
            if value.iter().all(|value| (*value) == u8::MAX) {
                None
            } else {
                Some(value)
            }
        }
        /// Field `latin`.
        #[inline]
        #[must_use]
        pub fn latin(&self) -> &'a [u8; 5] {
            let raw = field::<109, 5, 138>(self.block);
            let value = raw;
            value
        }
        /// Field `utf8`.
        #[inline]
        #[must_use]
        pub fn utf8(&self) -> &'a [u8; 8] {
            let raw = field::<114, 8, 138>(self.block);
            let value = raw;
            value
        }
        /// Field `utf8` as text, up to the first NUL.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn utf8_str(&self) -> Result<&'a str, DecodeError> {
            let bytes = self.utf8();
            ::gapless_schema::sbe::text::utf8(
                ::gapless_schema::sbe::text::until_nul(bytes),
                "Arrays.utf8",
            )
        }
        /// Field `utf8Bytes`.
        #[inline]
        #[must_use]
        pub fn utf8_bytes(&self) -> &'a [u8; 8] {
            let raw = field::<122, 8, 138>(self.block);
            let value = raw;
            value
        }
        /// Field `utf8Bytes` as text, up to the first NUL.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn utf8_bytes_str(&self) -> Result<&'a str, DecodeError> {
            let bytes = self.utf8_bytes();
            ::gapless_schema::sbe::text::utf8(
                ::gapless_schema::sbe::text::until_nul(bytes),
                "Arrays.utf8Bytes",
            )
        }
        /// Field `noText`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn no_text(&self) -> Option<&'a [u8; 8]> {
            let raw = field::<130, 8, 138>(self.block);
            let value = raw;
            if value[0] == (0u8) { None } else { Some(value) }
        }
        /// Field `noText` as text, up to the first NUL.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn no_text_str(&self) -> Result<Option<&'a str>, DecodeError> {
            match self.no_text() {
                Some(bytes) => {
                    Ok(
                        Some(
                            ::gapless_schema::sbe::text::utf8(
                                ::gapless_schema::sbe::text::until_nul(bytes),
                                "Arrays.noText",
                            )?,
                        ),
                    )
                }
                None => Ok(None),
            }
        }
    }
    /// Writes `Arrays` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct ArraysEncoder<'a> {
        block: &'a mut [u8; 146],
        tail: Tail<'a>,
        stage: ArraysStage,
    }
    impl<'a> ArraysEncoder<'a> {
        const TEMPLATE: [u8; 146] = {
            let block = [0; 146];
            let block = with(block, 0, (138u16).to_le_bytes());
            let block = with(block, 2, (2u16).to_le_bytes());
            let block = with(block, 4, (3u16).to_le_bytes());
            let block = with(block, 6, (4u16).to_le_bytes());
            let block = with_repeated(block, 99, i16::MIN.to_le_bytes(), 2);
            let block = with_repeated(block, 103, i16::MIN.to_le_bytes(), 2);
            let block = with_repeated(block, 107, f32::NAN.to_le_bytes(), 2);
            let block = with_repeated(block, 115, u8::MAX.to_le_bytes(), 2);
            let block = with_repeated(block, 138, (0u8).to_le_bytes(), 8);
            block
        };
        /// Begins a message at the start of `buffer`: its header is written, every optional field is null, the
        /// others are zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if header and block do not fit.
        #[inline(always)]
        pub fn new(buffer: &'a mut [u8]) -> Result<Self, EncodeError> {
            let mut tail = Tail::new(buffer);
            let block = tail.chunk::<146>("Arrays")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: ArraysStage {
                    reached: 0,
                    ..ArraysStage::CLOSED
                },
            })
        }
        /// Ends the message: groups and data that were not written are empty. Returns its length in bytes, with
        /// the header.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if they do not fit.
        #[inline(always)]
        pub fn finish(mut self) -> Result<usize, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            Ok(self.tail.position())
        }
        /// Field `int8s`.
        #[inline]
        pub fn int8s(&mut self, value: &[i8; 3]) -> &mut Self {
            for (slot, item) in field_mut::<8, 3, 146>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Field `uint8s`.
        #[inline]
        pub fn uint8s(&mut self, value: &[u8; 4]) -> &mut Self {
            for (slot, item) in field_mut::<11, 4, 146>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Field `int16s`.
        #[inline]
        pub fn int16s(&mut self, value: &[i16; 2]) -> &mut Self {
            for (slot, item) in field_mut::<15, 4, 146>(self.block)
                .as_chunks_mut::<2>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Field `uint16s`.
        #[inline]
        pub fn uint16s(&mut self, value: &[u16; 2]) -> &mut Self {
            for (slot, item) in field_mut::<19, 4, 146>(self.block)
                .as_chunks_mut::<2>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Field `int32s`.
        #[inline]
        pub fn int32s(&mut self, value: &[i32; 2]) -> &mut Self {
            for (slot, item) in field_mut::<23, 8, 146>(self.block)
                .as_chunks_mut::<4>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Field `uint32s`.
        #[inline]
        pub fn uint32s(&mut self, value: &[u32; 2]) -> &mut Self {
            for (slot, item) in field_mut::<31, 8, 146>(self.block)
                .as_chunks_mut::<4>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Field `int64s`.
        #[inline]
        pub fn int64s(&mut self, value: &[i64; 2]) -> &mut Self {
            for (slot, item) in field_mut::<39, 16, 146>(self.block)
                .as_chunks_mut::<8>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Field `uint64s`.
        #[inline]
        pub fn uint64s(&mut self, value: &[u64; 2]) -> &mut Self {
            for (slot, item) in field_mut::<55, 16, 146>(self.block)
                .as_chunks_mut::<8>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Field `floats`.
        #[inline]
        pub fn floats(&mut self, value: &[f32; 3]) -> &mut Self {
            for (slot, item) in field_mut::<71, 12, 146>(self.block)
                .as_chunks_mut::<4>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Field `doubles`.
        #[inline]
        pub fn doubles(&mut self, value: &[f64; 2]) -> &mut Self {
            for (slot, item) in field_mut::<83, 16, 146>(self.block)
                .as_chunks_mut::<8>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Field `noInt16s`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn no_int16s(&mut self, value: &[i16; 2]) -> &mut Self {
            for (slot, item) in field_mut::<99, 4, 146>(self.block)
                .as_chunks_mut::<2>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `noInt16s`, to null if there is no value.
        #[inline]
        pub fn no_int16s_or_null(&mut self, value: Option<&[i16; 2]>) -> &mut Self {
            match value {
                Some(value) => self.no_int16s(value),
                None => self.no_int16s(&[i16::MIN; 2]),
            }
        }
        /// Field `someInt16s`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn some_int16s(&mut self, value: &[i16; 2]) -> &mut Self {
            for (slot, item) in field_mut::<103, 4, 146>(self.block)
                .as_chunks_mut::<2>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `someInt16s`, to null if there is no value.
        #[inline]
        pub fn some_int16s_or_null(&mut self, value: Option<&[i16; 2]>) -> &mut Self {
            match value {
                Some(value) => self.some_int16s(value),
                None => self.some_int16s(&[i16::MIN; 2]),
            }
        }
        /// Field `noFloats`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn no_floats(&mut self, value: &[f32; 2]) -> &mut Self {
            for (slot, item) in field_mut::<107, 8, 146>(self.block)
                .as_chunks_mut::<4>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `noFloats`, to null if there is no value.
        #[inline]
        pub fn no_floats_or_null(&mut self, value: Option<&[f32; 2]>) -> &mut Self {
            match value {
                Some(value) => self.no_floats(value),
                None => self.no_floats(&[f32::NAN; 2]),
            }
        }
        /// Field `noBytes`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn no_bytes(&mut self, value: &[u8; 2]) -> &mut Self {
            for (slot, item) in field_mut::<115, 2, 146>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `noBytes`, to null if there is no value.
        #[inline]
        pub fn no_bytes_or_null(&mut self, value: Option<&[u8; 2]>) -> &mut Self {
            match value {
                Some(value) => self.no_bytes(value),
                None => self.no_bytes(&[u8::MAX; 2]),
            }
        }
        /// Field `latin`.
        #[inline]
        pub fn latin(&mut self, value: &[u8; 5]) -> &mut Self {
            for (slot, item) in field_mut::<117, 5, 146>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `latin` to a text, filled up with NUL.
        ///
        /// # Errors
        /// [`EncodeError::Text`] if it is too long, holds a NUL or is not in the character encoding.
        #[inline]
        pub fn latin_str(&mut self, value: &str) -> Result<&mut Self, EncodeError> {
            ::gapless_schema::sbe::text::put_latin1(
                field_mut::<117, 5, 146>(self.block),
                value,
                "Arrays.latin",
            )?;
            Ok(self)
        }
        /// Field `utf8`.
        #[inline]
        pub fn utf8(&mut self, value: &[u8; 8]) -> &mut Self {
            for (slot, item) in field_mut::<122, 8, 146>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `utf8` to a text, filled up with NUL.
        ///
        /// # Errors
        /// [`EncodeError::Text`] if it is too long, holds a NUL or is not in the character encoding.
        #[inline]
        pub fn utf8_str(&mut self, value: &str) -> Result<&mut Self, EncodeError> {
            ::gapless_schema::sbe::text::put(
                field_mut::<122, 8, 146>(self.block),
                value.as_bytes(),
                "Arrays.utf8",
            )?;
            Ok(self)
        }
        /// Field `utf8Bytes`.
        #[inline]
        pub fn utf8_bytes(&mut self, value: &[u8; 8]) -> &mut Self {
            for (slot, item) in field_mut::<130, 8, 146>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `utf8Bytes` to a text, filled up with NUL.
        ///
        /// # Errors
        /// [`EncodeError::Text`] if it is too long, holds a NUL or is not in the character encoding.
        #[inline]
        pub fn utf8_bytes_str(&mut self, value: &str) -> Result<&mut Self, EncodeError> {
            ::gapless_schema::sbe::text::put(
                field_mut::<130, 8, 146>(self.block),
                value.as_bytes(),
                "Arrays.utf8Bytes",
            )?;
            Ok(self)
        }
        /// Field `noText`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn no_text(&mut self, value: &[u8; 8]) -> &mut Self {
            for (slot, item) in field_mut::<138, 8, 146>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `noText`, to null if there is no value.
        #[inline]
        pub fn no_text_or_null(&mut self, value: Option<&[u8; 8]>) -> &mut Self {
            match value {
                Some(value) => self.no_text(value),
                None => self.no_text(&[(0u8); 8]),
            }
        }
        /// Sets field `noText` to a text, filled up with NUL.
        ///
        /// # Errors
        /// [`EncodeError::Text`] if it is too long, holds a NUL or is not in the character encoding.
        #[inline]
        pub fn no_text_str(&mut self, value: &str) -> Result<&mut Self, EncodeError> {
            ::gapless_schema::sbe::text::put(
                field_mut::<138, 8, 146>(self.block),
                value.as_bytes(),
                "Arrays.noText",
            )?;
            Ok(self)
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct ArraysStage {
        reached: u8,
    }
    impl ArraysStage {
        const CLOSED: Self = Self { reached: 0u8 };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
        }
        /// Completes what is open and fills in what is skipped before `member`.
        #[inline(always)]
        fn advance<'a>(
            &mut self,
            tail: &mut Tail<'a>,
            member: u8,
        ) -> Result<(), EncodeError> {
            if self.is_at(member) {
                return Ok(());
            }
            let (stage, rest, advanced) = self.skip_to(tail.take(), member);
            *self = stage;
            *tail = rest;
            advanced
        }
        #[cold]
        #[inline(never)]
        fn skip_to(
            mut self,
            mut tail: Tail<'_>,
            member: u8,
        ) -> (Self, Tail<'_>, Result<(), EncodeError>) {
            let advanced = self.fill(&mut tail, member);
            (self, tail, advanced)
        }
        fn fill(&mut self, tail: &mut Tail<'_>, member: u8) -> Result<(), EncodeError> {
            if self.reached > member {
                return Err(
                    ::gapless_schema::sbe::write::too_late(
                        match member {
                            _ => "Arrays",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Arrays` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Arrays {
        /// Field `int8s`.
        pub int8s: [i8; 3],
        /// Field `uint8s`.
        pub uint8s: [u8; 4],
        /// Field `int16s`.
        pub int16s: [i16; 2],
        /// Field `uint16s`.
        pub uint16s: [u16; 2],
        /// Field `int32s`.
        pub int32s: [i32; 2],
        /// Field `uint32s`.
        pub uint32s: [u32; 2],
        /// Field `int64s`.
        pub int64s: [i64; 2],
        /// Field `uint64s`.
        pub uint64s: [u64; 2],
        /// Field `floats`.
        pub floats: [f32; 3],
        /// Field `doubles`.
        pub doubles: [f64; 2],
        /// Field `noInt16s`.
        ///
        /// `None` if it is null.
        pub no_int16s: Option<[i16; 2]>,
        /// Field `someInt16s`.
        ///
        /// `None` if it is null.
        pub some_int16s: Option<[i16; 2]>,
        /// Field `noFloats`.
        ///
        /// `None` if it is null.
        pub no_floats: Option<[f32; 2]>,
        /// Field `noBytes`.
        ///
        /// `None` if it is null.
        pub no_bytes: Option<[u8; 2]>,
        /// Field `latin`.
        pub latin: String,
        /// Field `utf8`.
        pub utf8: String,
        /// Field `utf8Bytes`.
        pub utf8_bytes: String,
        /// Field `noText`.
        ///
        /// `None` if it is null.
        pub no_text: Option<String>,
    }
    impl Default for Arrays {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                int8s: [0; 3],
                uint8s: [0; 4],
                int16s: [0; 2],
                uint16s: [0; 2],
                int32s: [0; 2],
                uint32s: [0; 2],
                int64s: [0; 2],
                uint64s: [0; 2],
                floats: [0.0; 3],
                doubles: [0.0; 2],
                no_int16s: None,
                some_int16s: None,
                no_floats: None,
                no_bytes: None,
                latin: Default::default(),
                utf8: Default::default(),
                utf8_bytes: Default::default(),
                no_text: None,
            }
        }
    }
    impl Arrays {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &ArraysDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                int8s: decoder.int8s(),
                uint8s: {
                    let item = decoder.uint8s();
                    *item
                },
                int16s: decoder.int16s(),
                uint16s: decoder.uint16s(),
                int32s: decoder.int32s(),
                uint32s: decoder.uint32s(),
                int64s: decoder.int64s(),
                uint64s: decoder.uint64s(),
                floats: decoder.floats(),
                doubles: decoder.doubles(),
                no_int16s: decoder.no_int16s(),
                some_int16s: decoder.some_int16s(),
                no_floats: decoder.no_floats(),
                no_bytes: match decoder.no_bytes() {
                    Some(item) => Some(*item),
                    None => None,
                },
                latin: {
                    let item = decoder.latin();
                    ::gapless_schema::sbe::text::latin1_to_string(
                        ::gapless_schema::sbe::text::until_nul(item),
                    )
                },
                utf8: {
                    let item = decoder.utf8();
                    ::gapless_schema::sbe::text::utf8(
                            ::gapless_schema::sbe::text::until_nul(item),
                            "Arrays.utf8",
                        )?
                        .to_owned()
                },
                utf8_bytes: {
                    let item = decoder.utf8_bytes();
                    ::gapless_schema::sbe::text::utf8(
                            ::gapless_schema::sbe::text::until_nul(item),
                            "Arrays.utf8Bytes",
                        )?
                        .to_owned()
                },
                no_text: match decoder.no_text() {
                    Some(item) => {
                        Some(
                            ::gapless_schema::sbe::text::utf8(
                                    ::gapless_schema::sbe::text::until_nul(item),
                                    "Arrays.noText",
                                )?
                                .to_owned(),
                        )
                    }
                    None => None,
                },
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut ArraysEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.int8s;
                encoder.int8s(value);
            }
            {
                let value = &self.uint8s;
                encoder.uint8s(value);
            }
            {
                let value = &self.int16s;
                encoder.int16s(value);
            }
            {
                let value = &self.uint16s;
                encoder.uint16s(value);
            }
            {
                let value = &self.int32s;
                encoder.int32s(value);
            }
            {
                let value = &self.uint32s;
                encoder.uint32s(value);
            }
            {
                let value = &self.int64s;
                encoder.int64s(value);
            }
            {
                let value = &self.uint64s;
                encoder.uint64s(value);
            }
            {
                let value = &self.floats;
                encoder.floats(value);
            }
            {
                let value = &self.doubles;
                encoder.doubles(value);
            }
            if let Some(value) = &self.no_int16s {
                encoder.no_int16s(value);
            }
            if let Some(value) = &self.some_int16s {
                encoder.some_int16s(value);
            }
            if let Some(value) = &self.no_floats {
                encoder.no_floats(value);
            }
            if let Some(value) = &self.no_bytes {
                encoder.no_bytes(value);
            }
            {
                let value = &self.latin;
                encoder.latin_str(value)?;
            }
            {
                let value = &self.utf8;
                encoder.utf8_str(value)?;
            }
            {
                let value = &self.utf8_bytes;
                encoder.utf8_bytes_str(value)?;
            }
            if let Some(value) = &self.no_text {
                encoder.no_text_str(value)?;
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            138
        }
    }
    /// Appends the fields of `Arrays` as protobuf.
    #[derive(Debug)]
    pub struct ArraysProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> ArraysProtobufEncoder<'a> {
        /// Begins a message at the start of `buffer`; an empty one only counts.
        #[inline]
        pub const fn new(buffer: &'a mut [u8]) -> Self {
            Self {
                writer: ::gapless_schema::protobuf::Writer::new(buffer),
            }
        }
        /// Ends the message and returns its length in bytes.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit.
        #[inline]
        pub fn finish(self) -> Result<usize, EncodeError> {
            self.writer.finish("Arrays")
        }
        /// Field `int8s`.
        #[inline]
        pub fn int8s(&mut self, value: &[i8; 3]) -> &mut Self {
            let mark = self.writer.open(1u32);
            for item in value {
                self.writer.packed_sint(i64::from((*item)));
            }
            self.writer.close(mark);
            self
        }
        /// Field `uint8s`.
        #[inline]
        pub fn uint8s(&mut self, value: &[u8; 4]) -> &mut Self {
            self.writer.bytes(2u32, value);
            self
        }
        /// Field `int16s`.
        #[inline]
        pub fn int16s(&mut self, value: &[i16; 2]) -> &mut Self {
            let mark = self.writer.open(3u32);
            for item in value {
                self.writer.packed_sint(i64::from((*item)));
            }
            self.writer.close(mark);
            self
        }
        /// Field `uint16s`.
        #[inline]
        pub fn uint16s(&mut self, value: &[u16; 2]) -> &mut Self {
            let mark = self.writer.open(4u32);
            for item in value {
                self.writer.packed_uint(u64::from((*item)));
            }
            self.writer.close(mark);
            self
        }
        /// Field `int32s`.
        #[inline]
        pub fn int32s(&mut self, value: &[i32; 2]) -> &mut Self {
            let mark = self.writer.open(5u32);
            for item in value {
                self.writer.packed_sint(i64::from((*item)));
            }
            self.writer.close(mark);
            self
        }
        /// Field `uint32s`.
        #[inline]
        pub fn uint32s(&mut self, value: &[u32; 2]) -> &mut Self {
            let mark = self.writer.open(6u32);
            for item in value {
                self.writer.packed_uint(u64::from((*item)));
            }
            self.writer.close(mark);
            self
        }
        /// Field `int64s`.
        #[inline]
        pub fn int64s(&mut self, value: &[i64; 2]) -> &mut Self {
            let mark = self.writer.open(7u32);
            for item in value {
                self.writer.packed_sint(i64::from((*item)));
            }
            self.writer.close(mark);
            self
        }
        /// Field `uint64s`.
        #[inline]
        pub fn uint64s(&mut self, value: &[u64; 2]) -> &mut Self {
            let mark = self.writer.open(8u32);
            for item in value {
                self.writer.packed_uint(u64::from((*item)));
            }
            self.writer.close(mark);
            self
        }
        /// Field `floats`.
        #[inline]
        pub fn floats(&mut self, value: &[f32; 3]) -> &mut Self {
            let mark = self.writer.open(9u32);
            for item in value {
                self.writer.packed_float((*item));
            }
            self.writer.close(mark);
            self
        }
        /// Field `doubles`.
        #[inline]
        pub fn doubles(&mut self, value: &[f64; 2]) -> &mut Self {
            let mark = self.writer.open(10u32);
            for item in value {
                self.writer.packed_double((*item));
            }
            self.writer.close(mark);
            self
        }
        /// Field `noInt16s`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn no_int16s(&mut self, value: &[i16; 2]) -> &mut Self {
            let mark = self.writer.open(11u32);
            for item in value {
                self.writer.packed_sint(i64::from((*item)));
            }
            self.writer.close(mark);
            self
        }
        /// Field `someInt16s`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn some_int16s(&mut self, value: &[i16; 2]) -> &mut Self {
            let mark = self.writer.open(12u32);
            for item in value {
                self.writer.packed_sint(i64::from((*item)));
            }
            self.writer.close(mark);
            self
        }
        /// Field `noFloats`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn no_floats(&mut self, value: &[f32; 2]) -> &mut Self {
            let mark = self.writer.open(13u32);
            for item in value {
                self.writer.packed_float((*item));
            }
            self.writer.close(mark);
            self
        }
        /// Field `noBytes`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn no_bytes(&mut self, value: &[u8; 2]) -> &mut Self {
            self.writer.bytes(14u32, value);
            self
        }
        /// Field `latin`.
        #[inline]
        pub fn latin(&mut self, value: &str) -> &mut Self {
            self.writer.bytes(15u32, value.as_bytes());
            self
        }
        /// Field `utf8`.
        #[inline]
        pub fn utf8(&mut self, value: &str) -> &mut Self {
            self.writer.bytes(16u32, value.as_bytes());
            self
        }
        /// Field `utf8Bytes`.
        #[inline]
        pub fn utf8_bytes(&mut self, value: &str) -> &mut Self {
            self.writer.bytes(17u32, value.as_bytes());
            self
        }
        /// Field `noText`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn no_text(&mut self, value: &str) -> &mut Self {
            self.writer.bytes(18u32, value.as_bytes());
            self
        }
    }
    /// A field of `Arrays` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum ArraysField<'a> {
        /// Field `int8s`.
        Int8s(::gapless_schema::protobuf::Packed<'a, i8>),
        /// Field `uint8s`.
        Uint8s(&'a [u8]),
        /// Field `int16s`.
        Int16s(::gapless_schema::protobuf::Packed<'a, i16>),
        /// Field `uint16s`.
        Uint16s(::gapless_schema::protobuf::Packed<'a, u16>),
        /// Field `int32s`.
        Int32s(::gapless_schema::protobuf::Packed<'a, i32>),
        /// Field `uint32s`.
        Uint32s(::gapless_schema::protobuf::Packed<'a, u32>),
        /// Field `int64s`.
        Int64s(::gapless_schema::protobuf::Packed<'a, i64>),
        /// Field `uint64s`.
        Uint64s(::gapless_schema::protobuf::Packed<'a, u64>),
        /// Field `floats`.
        Floats(::gapless_schema::protobuf::Packed<'a, f32>),
        /// Field `doubles`.
        Doubles(::gapless_schema::protobuf::Packed<'a, f64>),
        /// Field `noInt16s`.
        NoInt16s(::gapless_schema::protobuf::Packed<'a, i16>),
        /// Field `someInt16s`.
        SomeInt16s(::gapless_schema::protobuf::Packed<'a, i16>),
        /// Field `noFloats`.
        NoFloats(::gapless_schema::protobuf::Packed<'a, f32>),
        /// Field `noBytes`.
        NoBytes(&'a [u8]),
        /// Field `latin`.
        Latin(&'a str),
        /// Field `utf8`.
        Utf8(&'a str),
        /// Field `utf8Bytes`.
        Utf8Bytes(&'a str),
        /// Field `noText`.
        NoText(&'a str),
    }
    /// Goes over the fields of `Arrays` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct ArraysProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> ArraysProtobufDecoder<'a> {
        /// Begins at the start of `payload`.
        #[inline]
        #[must_use]
        pub const fn new(payload: &'a [u8]) -> Self {
            Self {
                reader: ::gapless_schema::protobuf::Reader::new(payload),
            }
        }
        /// The next field that the schema knows; others are skipped. `None` at the end.
        ///
        /// # Errors
        /// What is wrong with the payload and where; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<ArraysField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<ArraysField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Arrays")? {
                match key {
                    10u32 => {
                        return Ok(
                            Some(ArraysField::Int8s(reader.packed("Arrays.int8s")?)),
                        );
                    }
                    8u32 => {
                        return Ok(
                            Some(ArraysField::Int8s(reader.unpacked("Arrays.int8s")?)),
                        );
                    }
                    18u32 => {
                        return Ok(
                            Some(ArraysField::Uint8s(reader.bytes("Arrays.uint8s")?)),
                        );
                    }
                    26u32 => {
                        return Ok(
                            Some(ArraysField::Int16s(reader.packed("Arrays.int16s")?)),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(ArraysField::Int16s(reader.unpacked("Arrays.int16s")?)),
                        );
                    }
                    34u32 => {
                        return Ok(
                            Some(ArraysField::Uint16s(reader.packed("Arrays.uint16s")?)),
                        );
                    }
                    32u32 => {
                        return Ok(
                            Some(
                                ArraysField::Uint16s(reader.unpacked("Arrays.uint16s")?),
                            ),
                        );
                    }
                    42u32 => {
                        return Ok(
                            Some(ArraysField::Int32s(reader.packed("Arrays.int32s")?)),
                        );
                    }
                    40u32 => {
                        return Ok(
                            Some(ArraysField::Int32s(reader.unpacked("Arrays.int32s")?)),
                        );
                    }
                    50u32 => {
                        return Ok(
                            Some(ArraysField::Uint32s(reader.packed("Arrays.uint32s")?)),
                        );
                    }
                    48u32 => {
                        return Ok(
                            Some(
                                ArraysField::Uint32s(reader.unpacked("Arrays.uint32s")?),
                            ),
                        );
                    }
                    58u32 => {
                        return Ok(
                            Some(ArraysField::Int64s(reader.packed("Arrays.int64s")?)),
                        );
                    }
                    56u32 => {
                        return Ok(
                            Some(ArraysField::Int64s(reader.unpacked("Arrays.int64s")?)),
                        );
                    }
                    66u32 => {
                        return Ok(
                            Some(ArraysField::Uint64s(reader.packed("Arrays.uint64s")?)),
                        );
                    }
                    64u32 => {
                        return Ok(
                            Some(
                                ArraysField::Uint64s(reader.unpacked("Arrays.uint64s")?),
                            ),
                        );
                    }
                    74u32 => {
                        return Ok(
                            Some(ArraysField::Floats(reader.packed("Arrays.floats")?)),
                        );
                    }
                    77u32 => {
                        return Ok(
                            Some(ArraysField::Floats(reader.unpacked("Arrays.floats")?)),
                        );
                    }
                    82u32 => {
                        return Ok(
                            Some(ArraysField::Doubles(reader.packed("Arrays.doubles")?)),
                        );
                    }
                    81u32 => {
                        return Ok(
                            Some(
                                ArraysField::Doubles(reader.unpacked("Arrays.doubles")?),
                            ),
                        );
                    }
                    90u32 => {
                        return Ok(
                            Some(
                                ArraysField::NoInt16s(reader.packed("Arrays.noInt16s")?),
                            ),
                        );
                    }
                    88u32 => {
                        return Ok(
                            Some(
                                ArraysField::NoInt16s(reader.unpacked("Arrays.noInt16s")?),
                            ),
                        );
                    }
                    98u32 => {
                        return Ok(
                            Some(
                                ArraysField::SomeInt16s(reader.packed("Arrays.someInt16s")?),
                            ),
                        );
                    }
                    96u32 => {
                        return Ok(
                            Some(
                                ArraysField::SomeInt16s(
                                    reader.unpacked("Arrays.someInt16s")?,
                                ),
                            ),
                        );
                    }
                    106u32 => {
                        return Ok(
                            Some(
                                ArraysField::NoFloats(reader.packed("Arrays.noFloats")?),
                            ),
                        );
                    }
                    109u32 => {
                        return Ok(
                            Some(
                                ArraysField::NoFloats(reader.unpacked("Arrays.noFloats")?),
                            ),
                        );
                    }
                    114u32 => {
                        return Ok(
                            Some(ArraysField::NoBytes(reader.bytes("Arrays.noBytes")?)),
                        );
                    }
                    122u32 => {
                        return Ok(Some(ArraysField::Latin(reader.text("Arrays.latin")?)));
                    }
                    130u32 => {
                        return Ok(Some(ArraysField::Utf8(reader.text("Arrays.utf8")?)));
                    }
                    138u32 => {
                        return Ok(
                            Some(
                                ArraysField::Utf8Bytes(reader.text("Arrays.utf8Bytes")?),
                            ),
                        );
                    }
                    146u32 => {
                        return Ok(
                            Some(ArraysField::NoText(reader.text("Arrays.noText")?)),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Arrays",
                                &[
                                    (1u32, "Arrays.int8s"),
                                    (2u32, "Arrays.uint8s"),
                                    (3u32, "Arrays.int16s"),
                                    (4u32, "Arrays.uint16s"),
                                    (5u32, "Arrays.int32s"),
                                    (6u32, "Arrays.uint32s"),
                                    (7u32, "Arrays.int64s"),
                                    (8u32, "Arrays.uint64s"),
                                    (9u32, "Arrays.floats"),
                                    (10u32, "Arrays.doubles"),
                                    (11u32, "Arrays.noInt16s"),
                                    (12u32, "Arrays.someInt16s"),
                                    (13u32, "Arrays.noFloats"),
                                    (14u32, "Arrays.noBytes"),
                                    (15u32, "Arrays.latin"),
                                    (16u32, "Arrays.utf8"),
                                    (17u32, "Arrays.utf8Bytes"),
                                    (18u32, "Arrays.noText"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for ArraysProtobufDecoder<'a> {
        type Item = Result<ArraysField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Arrays {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut ArraysProtobufEncoder<'_>) {
            {
                let value = &self.int8s;
                encoder.int8s(value);
            }
            {
                let value = &self.uint8s;
                encoder.uint8s(value);
            }
            {
                let value = &self.int16s;
                encoder.int16s(value);
            }
            {
                let value = &self.uint16s;
                encoder.uint16s(value);
            }
            {
                let value = &self.int32s;
                encoder.int32s(value);
            }
            {
                let value = &self.uint32s;
                encoder.uint32s(value);
            }
            {
                let value = &self.int64s;
                encoder.int64s(value);
            }
            {
                let value = &self.uint64s;
                encoder.uint64s(value);
            }
            {
                let value = &self.floats;
                encoder.floats(value);
            }
            {
                let value = &self.doubles;
                encoder.doubles(value);
            }
            if let Some(value) = &self.no_int16s {
                encoder.no_int16s(value);
            }
            if let Some(value) = &self.some_int16s {
                encoder.some_int16s(value);
            }
            if let Some(value) = &self.no_floats {
                encoder.no_floats(value);
            }
            if let Some(value) = &self.no_bytes {
                encoder.no_bytes(value);
            }
            {
                let value = &self.latin;
                encoder.latin(value);
            }
            {
                let value = &self.utf8;
                encoder.utf8(value);
            }
            {
                let value = &self.utf8_bytes;
                encoder.utf8_bytes(value);
            }
            if let Some(value) = &self.no_text {
                encoder.no_text(value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: ArraysProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            let mut count_int8s = 0;
            let mut count_int16s = 0;
            let mut count_uint16s = 0;
            let mut count_int32s = 0;
            let mut count_uint32s = 0;
            let mut count_int64s = 0;
            let mut count_uint64s = 0;
            let mut count_floats = 0;
            let mut count_doubles = 0;
            let mut count_no_int16s = 0;
            let mut count_some_int16s = 0;
            let mut count_no_floats = 0;
            while let Some(field) = decoder.next_field()? {
                match field {
                    ArraysField::Int8s(value) => {
                        for item in value {
                            let item = item?;
                            match (&mut self.int8s).get_mut(count_int8s) {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder.reader.error("Arrays.int8s", "more than 3 values"),
                                    );
                                }
                            }
                            count_int8s += 1;
                        }
                    }
                    ArraysField::Uint8s(value) => {
                        match <[u8; 4]>::try_from(value) {
                            Ok(value) => self.uint8s = value,
                            Err(_) => {
                                return Err(
                                    decoder
                                        .reader
                                        .error("Arrays.uint8s", "the bytes are not 4 long"),
                                );
                            }
                        }
                    }
                    ArraysField::Int16s(value) => {
                        for item in value {
                            let item = item?;
                            match (&mut self.int16s).get_mut(count_int16s) {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder.reader.error("Arrays.int16s", "more than 2 values"),
                                    );
                                }
                            }
                            count_int16s += 1;
                        }
                    }
                    ArraysField::Uint16s(value) => {
                        for item in value {
                            let item = item?;
                            match (&mut self.uint16s).get_mut(count_uint16s) {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder.reader.error("Arrays.uint16s", "more than 2 values"),
                                    );
                                }
                            }
                            count_uint16s += 1;
                        }
                    }
                    ArraysField::Int32s(value) => {
                        for item in value {
                            let item = item?;
                            match (&mut self.int32s).get_mut(count_int32s) {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder.reader.error("Arrays.int32s", "more than 2 values"),
                                    );
                                }
                            }
                            count_int32s += 1;
                        }
                    }
                    ArraysField::Uint32s(value) => {
                        for item in value {
                            let item = item?;
                            match (&mut self.uint32s).get_mut(count_uint32s) {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder.reader.error("Arrays.uint32s", "more than 2 values"),
                                    );
                                }
                            }
                            count_uint32s += 1;
                        }
                    }
                    ArraysField::Int64s(value) => {
                        for item in value {
                            let item = item?;
                            match (&mut self.int64s).get_mut(count_int64s) {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder.reader.error("Arrays.int64s", "more than 2 values"),
                                    );
                                }
                            }
                            count_int64s += 1;
                        }
                    }
                    ArraysField::Uint64s(value) => {
                        for item in value {
                            let item = item?;
                            match (&mut self.uint64s).get_mut(count_uint64s) {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder.reader.error("Arrays.uint64s", "more than 2 values"),
                                    );
                                }
                            }
                            count_uint64s += 1;
                        }
                    }
                    ArraysField::Floats(value) => {
                        for item in value {
                            let item = item?;
                            match (&mut self.floats).get_mut(count_floats) {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder.reader.error("Arrays.floats", "more than 3 values"),
                                    );
                                }
                            }
                            count_floats += 1;
                        }
                    }
                    ArraysField::Doubles(value) => {
                        for item in value {
                            let item = item?;
                            match (&mut self.doubles).get_mut(count_doubles) {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder.reader.error("Arrays.doubles", "more than 2 values"),
                                    );
                                }
                            }
                            count_doubles += 1;
                        }
                    }
                    ArraysField::NoInt16s(value) => {
                        for item in value {
                            let item = item?;
                            match self
                                .no_int16s
                                .get_or_insert([0; 2])
                                .get_mut(count_no_int16s)
                            {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder
                                            .reader
                                            .error("Arrays.noInt16s", "more than 2 values"),
                                    );
                                }
                            }
                            count_no_int16s += 1;
                        }
                    }
                    ArraysField::SomeInt16s(value) => {
                        for item in value {
                            let item = item?;
                            match self
                                .some_int16s
                                .get_or_insert([0; 2])
                                .get_mut(count_some_int16s)
                            {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder
                                            .reader
                                            .error("Arrays.someInt16s", "more than 2 values"),
                                    );
                                }
                            }
                            count_some_int16s += 1;
                        }
                    }
                    ArraysField::NoFloats(value) => {
                        for item in value {
                            let item = item?;
                            match self
                                .no_floats
                                .get_or_insert([0.0; 2])
                                .get_mut(count_no_floats)
                            {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder
                                            .reader
                                            .error("Arrays.noFloats", "more than 2 values"),
                                    );
                                }
                            }
                            count_no_floats += 1;
                        }
                    }
                    ArraysField::NoBytes(value) => {
                        match <[u8; 2]>::try_from(value) {
                            Ok(value) => self.no_bytes = Some(value),
                            Err(_) => {
                                return Err(
                                    decoder
                                        .reader
                                        .error("Arrays.noBytes", "the bytes are not 2 long"),
                                );
                            }
                        }
                    }
                    ArraysField::Latin(value) => self.latin = value.to_owned(),
                    ArraysField::Utf8(value) => self.utf8 = value.to_owned(),
                    ArraysField::Utf8Bytes(value) => self.utf8_bytes = value.to_owned(),
                    ArraysField::NoText(value) => self.no_text = Some(value.to_owned()),
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::Message for ArraysDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "Arrays";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = ArraysDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<ArraysDecoder<'_>, DecodeError> {
            ArraysDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for ArraysEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "Arrays";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = ArraysEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<ArraysEncoder<'_>, EncodeError> {
            ArraysEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: ArraysEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for ArraysProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "Arrays";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = ArraysProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<ArraysProtobufDecoder<'_>, DecodeError> {
            Ok(ArraysProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for ArraysProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "Arrays";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = ArraysProtobufEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<ArraysProtobufEncoder<'_>, EncodeError> {
            Ok(ArraysProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: ArraysProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Arrays {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "Arrays";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&ArraysDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = ArraysEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Arrays {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "Arrays";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(ArraysProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = ArraysProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = ArraysProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Reads message `Choices` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct ChoicesDecoder<'a> {
        block: &'a [u8; 22],
        group_sides: ::gapless_schema::sbe::Group<'a, ChoicesSidesDecoder<'a>>,
        group_wholes: ::gapless_schema::sbe::Group<'a, ChoicesWholesDecoder<'a>>,
        group_parts: ::gapless_schema::sbe::Group<'a, ChoicesPartsDecoder<'a>>,
    }
    impl<'a> ChoicesDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Choices")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Choices", SCHEMA_ID, 3u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            22
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    22,
                >(block_length, Self::needed_length_at(version), version, "Choices")?;
            let group_sides = {
                let dimension = reader.chunk::<4>("Choices.sides")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            let group_wholes = {
                let dimension = reader.chunk::<4>("Choices.wholes")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            let group_parts = {
                let dimension = reader.chunk::<4>("Choices.parts")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            Ok(Self {
                block,
                group_sides,
                group_wholes,
                group_parts,
            })
        }
        /// Field `letter`.
        #[inline]
        #[must_use]
        pub fn letter(&self) -> Letter {
            let raw = field::<0, 1, 22>(self.block);
            let value = Letter::from_raw(u8::from_le_bytes(*raw));
            value
        }
        /// Field `maybeLetter`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_letter(&self) -> Option<Letter> {
            let raw = field::<1, 1, 22>(self.block);
            let value = Letter::from_raw(u8::from_le_bytes(*raw));
            if u8::from_le_bytes(*raw) == (0u8) { None } else { Some(value) }
        }
        /// Field `side`.
        #[inline]
        #[must_use]
        pub fn side(&self) -> Side {
            let raw = field::<2, 1, 22>(self.block);
            let value = Side::from_raw(u8::from_le_bytes(*raw));
            value
        }
        /// Field `maybeSide`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe_side(&self) -> Option<Side> {
            let raw = field::<3, 1, 22>(self.block);
            let value = Side::from_raw(u8::from_le_bytes(*raw));
            if u8::from_le_bytes(*raw) == (200u8) { None } else { Some(value) }
        }
        /// Field `otherSide`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn other_side(&self) -> Option<Side> {
            let raw = field::<4, 1, 22>(self.block);
            let value = Side::from_raw(u8::from_le_bytes(*raw));
            if u8::from_le_bytes(*raw) == (200u8) { None } else { Some(value) }
        }
        /// Field `wide`.
        #[inline]
        #[must_use]
        pub fn wide(&self) -> Wide {
            let raw = field::<5, 2, 22>(self.block);
            let value = Wide::from_raw(u16::from_le_bytes(*raw));
            value
        }
        /// Field `bits8`.
        #[inline]
        #[must_use]
        pub fn bits8(&self) -> Bits8 {
            let raw = field::<7, 1, 22>(self.block);
            let value = Bits8::from_raw(u8::from_le_bytes(*raw));
            value
        }
        /// Field `bits16`.
        #[inline]
        #[must_use]
        pub fn bits16(&self) -> Bits16 {
            let raw = field::<8, 2, 22>(self.block);
            let value = Bits16::from_raw(u16::from_le_bytes(*raw));
            value
        }
        /// Field `bits32`.
        #[inline]
        #[must_use]
        pub fn bits32(&self) -> Bits32 {
            let raw = field::<10, 4, 22>(self.block);
            let value = Bits32::from_raw(u32::from_le_bytes(*raw));
            value
        }
        /// Field `bits64`.
        #[inline]
        #[must_use]
        pub fn bits64(&self) -> Bits64 {
            let raw = field::<14, 8, 22>(self.block);
            let value = Bits64::from_raw(u64::from_le_bytes(*raw));
            value
        }
        /// Field `letterConstant`.
        #[inline]
        #[must_use]
        pub const fn letter_constant(&self) -> u8 {
            (103u8)
        }
        /// Field `textConstant`.
        #[inline]
        #[must_use]
        pub const fn text_constant(&self) -> &'static str {
            "Gapless"
        }
        /// Field `int16Constant`.
        #[inline]
        #[must_use]
        pub const fn int16_constant(&self) -> i16 {
            (-42i16)
        }
        /// Field `uint64Constant`.
        #[inline]
        #[must_use]
        pub const fn uint64_constant(&self) -> u64 {
            (9000000000u64)
        }
        /// Field `doubleConstant`.
        #[inline]
        #[must_use]
        pub const fn double_constant(&self) -> f64 {
            (2.5f64)
        }
        /// Field `sideConstant`.
        #[inline]
        #[must_use]
        pub const fn side_constant(&self) -> Side {
            Side::Sell
        }
        /// Group `sides`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn sides(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, ChoicesSidesDecoder<'a>> {
            self.group_sides
        }
        /// Group `wholes`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn wholes(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, ChoicesWholesDecoder<'a>> {
            self.group_wholes
        }
        /// Group `parts`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn parts(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, ChoicesPartsDecoder<'a>> {
            self.group_parts
        }
    }
    /// Writes `Choices` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct ChoicesEncoder<'a> {
        block: &'a mut [u8; 30],
        tail: Tail<'a>,
        stage: ChoicesStage,
    }
    impl<'a> ChoicesEncoder<'a> {
        const TEMPLATE: [u8; 30] = {
            let block = [0; 30];
            let block = with(block, 0, (22u16).to_le_bytes());
            let block = with(block, 2, (3u16).to_le_bytes());
            let block = with(block, 4, (3u16).to_le_bytes());
            let block = with(block, 6, (4u16).to_le_bytes());
            let block = with(block, 9, (0u8).to_le_bytes());
            let block = with(block, 11, (200u8).to_le_bytes());
            let block = with(block, 12, (200u8).to_le_bytes());
            block
        };
        /// Begins a message at the start of `buffer`: its header is written, every optional field is null, the
        /// others are zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if header and block do not fit.
        #[inline(always)]
        pub fn new(buffer: &'a mut [u8]) -> Result<Self, EncodeError> {
            let mut tail = Tail::new(buffer);
            let block = tail.chunk::<30>("Choices")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: ChoicesStage {
                    reached: 0,
                    ..ChoicesStage::CLOSED
                },
            })
        }
        /// Ends the message: groups and data that were not written are empty. Returns its length in bytes, with
        /// the header.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if they do not fit.
        #[inline(always)]
        pub fn finish(mut self) -> Result<usize, EncodeError> {
            self.stage.advance(&mut self.tail, 3u8)?;
            Ok(self.tail.position())
        }
        /// Field `letter`.
        #[inline]
        pub fn letter(&mut self, value: Letter) -> &mut Self {
            *field_mut::<8, 1, 30>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `maybeLetter`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_letter(&mut self, value: Letter) -> &mut Self {
            *field_mut::<9, 1, 30>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Sets field `maybeLetter`, to null if there is no value.
        #[inline]
        pub fn maybe_letter_or_null(&mut self, value: Option<Letter>) -> &mut Self {
            match value {
                Some(value) => self.maybe_letter(value),
                None => self.maybe_letter(Letter::from_raw((0u8))),
            }
        }
        /// Field `side`.
        #[inline]
        pub fn side(&mut self, value: Side) -> &mut Self {
            *field_mut::<10, 1, 30>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `maybeSide`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_side(&mut self, value: Side) -> &mut Self {
            *field_mut::<11, 1, 30>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Sets field `maybeSide`, to null if there is no value.
        #[inline]
        pub fn maybe_side_or_null(&mut self, value: Option<Side>) -> &mut Self {
            match value {
                Some(value) => self.maybe_side(value),
                None => self.maybe_side(Side::from_raw((200u8))),
            }
        }
        /// Field `otherSide`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn other_side(&mut self, value: Side) -> &mut Self {
            *field_mut::<12, 1, 30>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Sets field `otherSide`, to null if there is no value.
        #[inline]
        pub fn other_side_or_null(&mut self, value: Option<Side>) -> &mut Self {
            match value {
                Some(value) => self.other_side(value),
                None => self.other_side(Side::from_raw((200u8))),
            }
        }
        /// Field `wide`.
        #[inline]
        pub fn wide(&mut self, value: Wide) -> &mut Self {
            *field_mut::<13, 2, 30>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `bits8`.
        #[inline]
        pub fn bits8(&mut self, value: Bits8) -> &mut Self {
            *field_mut::<15, 1, 30>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `bits16`.
        #[inline]
        pub fn bits16(&mut self, value: Bits16) -> &mut Self {
            *field_mut::<16, 2, 30>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `bits32`.
        #[inline]
        pub fn bits32(&mut self, value: Bits32) -> &mut Self {
            *field_mut::<18, 4, 30>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `bits64`.
        #[inline]
        pub fn bits64(&mut self, value: Bits64) -> &mut Self {
            *field_mut::<22, 8, 30>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Begins group `sides`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn sides(
            &mut self,
        ) -> Result<ChoicesSidesGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Choices.sides")?;
            *dimension = ChoicesSidesGroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(ChoicesSidesGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
        /// Begins group `wholes`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn wholes(
            &mut self,
        ) -> Result<ChoicesWholesGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 1u8)?;
            let dimension = self.tail.chunk("Choices.wholes")?;
            *dimension = ChoicesWholesGroupEncoder::EMPTY;
            self.stage.reached = 1u8 + 1;
            Ok(ChoicesWholesGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
        /// Begins group `parts`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn parts(
            &mut self,
        ) -> Result<ChoicesPartsGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 2u8)?;
            let dimension = self.tail.chunk("Choices.parts")?;
            *dimension = ChoicesPartsGroupEncoder::EMPTY;
            self.stage.reached = 2u8 + 1;
            Ok(ChoicesPartsGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct ChoicesStage {
        reached: u8,
    }
    impl ChoicesStage {
        const CLOSED: Self = Self { reached: 3u8 };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
        }
        /// Completes what is open and fills in what is skipped before `member`.
        #[inline(always)]
        fn advance<'a>(
            &mut self,
            tail: &mut Tail<'a>,
            member: u8,
        ) -> Result<(), EncodeError> {
            if self.is_at(member) {
                return Ok(());
            }
            let (stage, rest, advanced) = self.skip_to(tail.take(), member);
            *self = stage;
            *tail = rest;
            advanced
        }
        #[cold]
        #[inline(never)]
        fn skip_to(
            mut self,
            mut tail: Tail<'_>,
            member: u8,
        ) -> (Self, Tail<'_>, Result<(), EncodeError>) {
            let advanced = self.fill(&mut tail, member);
            (self, tail, advanced)
        }
        fn fill(&mut self, tail: &mut Tail<'_>, member: u8) -> Result<(), EncodeError> {
            if self.reached > member {
                return Err(
                    ::gapless_schema::sbe::write::too_late(
                        match member {
                            0u8 => "Choices.sides",
                            1u8 => "Choices.wholes",
                            2u8 => "Choices.parts",
                            _ => "Choices",
                        },
                    ),
                );
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(ChoicesSidesGroupEncoder::EMPTY, "Choices.sides")?;
            }
            if self.reached <= 1u8 && 1u8 < member {
                tail.put(ChoicesWholesGroupEncoder::EMPTY, "Choices.wholes")?;
            }
            if self.reached <= 2u8 && 2u8 < member {
                tail.put(ChoicesPartsGroupEncoder::EMPTY, "Choices.parts")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Choices` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Choices {
        /// Field `letter`.
        pub letter: Letter,
        /// Field `maybeLetter`.
        ///
        /// `None` if it is null.
        pub maybe_letter: Option<Letter>,
        /// Field `side`.
        pub side: Side,
        /// Field `maybeSide`.
        ///
        /// `None` if it is null.
        pub maybe_side: Option<Side>,
        /// Field `otherSide`.
        ///
        /// `None` if it is null.
        pub other_side: Option<Side>,
        /// Field `wide`.
        pub wide: Wide,
        /// Field `bits8`.
        pub bits8: Bits8,
        /// Field `bits16`.
        pub bits16: Bits16,
        /// Field `bits32`.
        pub bits32: Bits32,
        /// Field `bits64`.
        pub bits64: Bits64,
        /// Group `sides`.
        pub sides: Vec<Side>,
        /// Group `wholes`.
        pub wholes: Vec<u64>,
        /// Group `parts`.
        pub parts: Vec<f32>,
    }
    impl Default for Choices {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                letter: Default::default(),
                maybe_letter: None,
                side: Default::default(),
                maybe_side: None,
                other_side: None,
                wide: Default::default(),
                bits8: Default::default(),
                bits16: Default::default(),
                bits32: Default::default(),
                bits64: Default::default(),
                sides: Default::default(),
                wholes: Default::default(),
                parts: Default::default(),
            }
        }
    }
    impl Choices {
        /// Field `letterConstant`.
        pub const LETTER_CONSTANT: u8 = (103u8);
        /// Field `textConstant`.
        pub const TEXT_CONSTANT: &'static str = "Gapless";
        /// Field `int16Constant`.
        pub const INT16_CONSTANT: i16 = (-42i16);
        /// Field `uint64Constant`.
        pub const UINT64_CONSTANT: u64 = (9000000000u64);
        /// Field `doubleConstant`.
        pub const DOUBLE_CONSTANT: f64 = (2.5f64);
        /// Field `sideConstant`.
        pub const SIDE_CONSTANT: Side = Side::Sell;
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &ChoicesDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                letter: decoder.letter(),
                maybe_letter: decoder.maybe_letter(),
                side: decoder.side(),
                maybe_side: decoder.maybe_side(),
                other_side: decoder.other_side(),
                wide: decoder.wide(),
                bits8: decoder.bits8(),
                bits16: decoder.bits16(),
                bits32: decoder.bits32(),
                bits64: decoder.bits64(),
                sides: {
                    let entries = decoder.sides();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(entry.value());
                    }
                    list
                },
                wholes: {
                    let entries = decoder.wholes();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(entry.value());
                    }
                    list
                },
                parts: {
                    let entries = decoder.parts();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(entry.value());
                    }
                    list
                },
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut ChoicesEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.letter;
                encoder.letter(*value);
            }
            if let Some(value) = &self.maybe_letter {
                if (*value).raw() == (0u8) {
                    return Err(EncodeError::Range {
                        field: "Choices.maybeLetter",
                        range: "of its type without the null value",
                    });
                }
                encoder.maybe_letter(*value);
            }
            {
                let value = &self.side;
                encoder.side(*value);
            }
            if let Some(value) = &self.maybe_side {
                if (*value).raw() == (200u8) {
                    return Err(EncodeError::Range {
                        field: "Choices.maybeSide",
                        range: "of its type without the null value",
                    });
                }
                encoder.maybe_side(*value);
            }
            if let Some(value) = &self.other_side {
                if (*value).raw() == (200u8) {
                    return Err(EncodeError::Range {
                        field: "Choices.otherSide",
                        range: "of its type without the null value",
                    });
                }
                encoder.other_side(*value);
            }
            {
                let value = &self.wide;
                encoder.wide(*value);
            }
            {
                let value = &self.bits8;
                encoder.bits8(*value);
            }
            {
                let value = &self.bits16;
                encoder.bits16(*value);
            }
            {
                let value = &self.bits32;
                encoder.bits32(*value);
            }
            {
                let value = &self.bits64;
                encoder.bits64(*value);
            }
            let mut group = encoder.sides()?;
            for item in &self.sides {
                group.entry()?.value(*item);
            }
            let mut group = encoder.wholes()?;
            for item in &self.wholes {
                group.entry()?.value(*item);
            }
            let mut group = encoder.parts()?;
            for item in &self.parts {
                group.entry()?.value(*item);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            22 + 4 + self.sides.len() * 1 + 4 + self.wholes.len() * 8 + 4
                + self.parts.len() * 4
        }
    }
    /// Appends the fields of `Choices` as protobuf.
    #[derive(Debug)]
    pub struct ChoicesProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> ChoicesProtobufEncoder<'a> {
        /// Begins a message at the start of `buffer`; an empty one only counts.
        #[inline]
        pub const fn new(buffer: &'a mut [u8]) -> Self {
            Self {
                writer: ::gapless_schema::protobuf::Writer::new(buffer),
            }
        }
        /// Ends the message and returns its length in bytes.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit.
        #[inline]
        pub fn finish(self) -> Result<usize, EncodeError> {
            self.writer.finish("Choices")
        }
        /// Field `letter`.
        #[inline]
        pub fn letter(&mut self, value: Letter) -> &mut Self {
            self.writer.uint(1u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `maybeLetter`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_letter(&mut self, value: Letter) -> &mut Self {
            self.writer.uint(2u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `side`.
        #[inline]
        pub fn side(&mut self, value: Side) -> &mut Self {
            self.writer.uint(3u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `maybeSide`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe_side(&mut self, value: Side) -> &mut Self {
            self.writer.uint(4u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `otherSide`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn other_side(&mut self, value: Side) -> &mut Self {
            self.writer.uint(5u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `wide`.
        #[inline]
        pub fn wide(&mut self, value: Wide) -> &mut Self {
            self.writer.uint(6u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `bits8`.
        #[inline]
        pub fn bits8(&mut self, value: Bits8) -> &mut Self {
            self.writer.uint(7u32, u64::from(value.raw()));
            self
        }
        /// Field `bits16`.
        #[inline]
        pub fn bits16(&mut self, value: Bits16) -> &mut Self {
            self.writer.uint(8u32, u64::from(value.raw()));
            self
        }
        /// Field `bits32`.
        #[inline]
        pub fn bits32(&mut self, value: Bits32) -> &mut Self {
            self.writer.uint(9u32, u64::from(value.raw()));
            self
        }
        /// Field `bits64`.
        #[inline]
        pub fn bits64(&mut self, value: Bits64) -> &mut Self {
            self.writer.uint(10u32, u64::from(value.raw()));
            self
        }
        /// Group `sides`: all of its values.
        #[inline]
        pub fn sides(&mut self, values: impl IntoIterator<Item = Side>) -> &mut Self {
            let mut values = values.into_iter().peekable();
            if values.peek().is_some() {
                let mark = self.writer.open(17u32);
                for item in values {
                    self.writer.packed_uint(i64::from(item.raw()) as u64);
                }
                self.writer.close(mark);
            }
            self
        }
        /// Group `wholes`: all of its values.
        #[inline]
        pub fn wholes(&mut self, values: impl IntoIterator<Item = u64>) -> &mut Self {
            let mut values = values.into_iter().peekable();
            if values.peek().is_some() {
                let mark = self.writer.open(18u32);
                for item in values {
                    self.writer.packed_uint(u64::from(item));
                }
                self.writer.close(mark);
            }
            self
        }
        /// Group `parts`: all of its values.
        #[inline]
        pub fn parts(&mut self, values: impl IntoIterator<Item = f32>) -> &mut Self {
            let mut values = values.into_iter().peekable();
            if values.peek().is_some() {
                let mark = self.writer.open(19u32);
                for item in values {
                    self.writer.packed_float(item);
                }
                self.writer.close(mark);
            }
            self
        }
    }
    /// A field of `Choices` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum ChoicesField<'a> {
        /// Field `letter`.
        Letter(Letter),
        /// Field `maybeLetter`.
        MaybeLetter(Letter),
        /// Field `side`.
        Side(Side),
        /// Field `maybeSide`.
        MaybeSide(Side),
        /// Field `otherSide`.
        OtherSide(Side),
        /// Field `wide`.
        Wide(Wide),
        /// Field `bits8`.
        Bits8(Bits8),
        /// Field `bits16`.
        Bits16(Bits16),
        /// Field `bits32`.
        Bits32(Bits32),
        /// Field `bits64`.
        Bits64(Bits64),
        /// Group `sides`: values.
        Sides(::gapless_schema::protobuf::Packed<'a, Side>),
        /// Group `wholes`: values.
        Wholes(::gapless_schema::protobuf::Packed<'a, u64>),
        /// Group `parts`: values.
        Parts(::gapless_schema::protobuf::Packed<'a, f32>),
    }
    /// Goes over the fields of `Choices` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct ChoicesProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> ChoicesProtobufDecoder<'a> {
        /// Begins at the start of `payload`.
        #[inline]
        #[must_use]
        pub const fn new(payload: &'a [u8]) -> Self {
            Self {
                reader: ::gapless_schema::protobuf::Reader::new(payload),
            }
        }
        /// The next field that the schema knows; others are skipped. `None` at the end.
        ///
        /// # Errors
        /// What is wrong with the payload and where; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<ChoicesField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<ChoicesField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Choices")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                ChoicesField::Letter(
                                    <Letter as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.letter",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                ChoicesField::MaybeLetter(
                                    <Letter as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.maybeLetter",
                                    )?,
                                ),
                            ),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(
                                ChoicesField::Side(
                                    <Side as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.side",
                                    )?,
                                ),
                            ),
                        );
                    }
                    32u32 => {
                        return Ok(
                            Some(
                                ChoicesField::MaybeSide(
                                    <Side as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.maybeSide",
                                    )?,
                                ),
                            ),
                        );
                    }
                    40u32 => {
                        return Ok(
                            Some(
                                ChoicesField::OtherSide(
                                    <Side as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.otherSide",
                                    )?,
                                ),
                            ),
                        );
                    }
                    48u32 => {
                        return Ok(
                            Some(
                                ChoicesField::Wide(
                                    <Wide as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.wide",
                                    )?,
                                ),
                            ),
                        );
                    }
                    56u32 => {
                        return Ok(
                            Some(
                                ChoicesField::Bits8(
                                    <Bits8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.bits8",
                                    )?,
                                ),
                            ),
                        );
                    }
                    64u32 => {
                        return Ok(
                            Some(
                                ChoicesField::Bits16(
                                    <Bits16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.bits16",
                                    )?,
                                ),
                            ),
                        );
                    }
                    72u32 => {
                        return Ok(
                            Some(
                                ChoicesField::Bits32(
                                    <Bits32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.bits32",
                                    )?,
                                ),
                            ),
                        );
                    }
                    80u32 => {
                        return Ok(
                            Some(
                                ChoicesField::Bits64(
                                    <Bits64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.bits64",
                                    )?,
                                ),
                            ),
                        );
                    }
                    138u32 => {
                        return Ok(
                            Some(ChoicesField::Sides(reader.packed("Choices.sides")?)),
                        );
                    }
                    136u32 => {
                        return Ok(
                            Some(ChoicesField::Sides(reader.unpacked("Choices.sides")?)),
                        );
                    }
                    146u32 => {
                        return Ok(
                            Some(ChoicesField::Wholes(reader.packed("Choices.wholes")?)),
                        );
                    }
                    144u32 => {
                        return Ok(
                            Some(
                                ChoicesField::Wholes(reader.unpacked("Choices.wholes")?),
                            ),
                        );
                    }
                    154u32 => {
                        return Ok(
                            Some(ChoicesField::Parts(reader.packed("Choices.parts")?)),
                        );
                    }
                    157u32 => {
                        return Ok(
                            Some(ChoicesField::Parts(reader.unpacked("Choices.parts")?)),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Choices",
                                &[
                                    (1u32, "Choices.letter"),
                                    (2u32, "Choices.maybeLetter"),
                                    (3u32, "Choices.side"),
                                    (4u32, "Choices.maybeSide"),
                                    (5u32, "Choices.otherSide"),
                                    (6u32, "Choices.wide"),
                                    (7u32, "Choices.bits8"),
                                    (8u32, "Choices.bits16"),
                                    (9u32, "Choices.bits32"),
                                    (10u32, "Choices.bits64"),
                                    (17u32, "Choices.sides"),
                                    (18u32, "Choices.wholes"),
                                    (19u32, "Choices.parts"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for ChoicesProtobufDecoder<'a> {
        type Item = Result<ChoicesField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Choices {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut ChoicesProtobufEncoder<'_>) {
            {
                let value = &self.letter;
                encoder.letter(*value);
            }
            if let Some(value) = &self.maybe_letter {
                encoder.maybe_letter(*value);
            }
            {
                let value = &self.side;
                encoder.side(*value);
            }
            if let Some(value) = &self.maybe_side {
                encoder.maybe_side(*value);
            }
            if let Some(value) = &self.other_side {
                encoder.other_side(*value);
            }
            {
                let value = &self.wide;
                encoder.wide(*value);
            }
            {
                let value = &self.bits8;
                encoder.bits8(*value);
            }
            {
                let value = &self.bits16;
                encoder.bits16(*value);
            }
            {
                let value = &self.bits32;
                encoder.bits32(*value);
            }
            {
                let value = &self.bits64;
                encoder.bits64(*value);
            }
            encoder.sides(self.sides.iter().copied());
            encoder.wholes(self.wholes.iter().copied());
            encoder.parts(self.parts.iter().copied());
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: ChoicesProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    ChoicesField::Letter(value) => self.letter = value,
                    ChoicesField::MaybeLetter(value) => self.maybe_letter = Some(value),
                    ChoicesField::Side(value) => self.side = value,
                    ChoicesField::MaybeSide(value) => self.maybe_side = Some(value),
                    ChoicesField::OtherSide(value) => self.other_side = Some(value),
                    ChoicesField::Wide(value) => self.wide = value,
                    ChoicesField::Bits8(value) => self.bits8 = value,
                    ChoicesField::Bits16(value) => self.bits16 = value,
                    ChoicesField::Bits32(value) => self.bits32 = value,
                    ChoicesField::Bits64(value) => self.bits64 = value,
                    ChoicesField::Sides(value) => {
                        for item in value {
                            self.sides.push(item?);
                        }
                    }
                    ChoicesField::Wholes(value) => {
                        for item in value {
                            self.wholes.push(item?);
                        }
                    }
                    ChoicesField::Parts(value) => {
                        for item in value {
                            self.parts.push(item?);
                        }
                    }
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Choices.sides` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct ChoicesSidesDecoder<'a> {
        block: &'a [u8; 1],
    }
    impl<'a> ChoicesSidesDecoder<'a> {
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            1
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    1,
                >(
                    block_length,
                    Self::needed_length_at(version),
                    version,
                    "Choices.sides",
                )?;
            Ok(Self { block })
        }
        /// Field `value`.
        #[inline]
        #[must_use]
        pub fn value(&self) -> Side {
            let raw = field::<0, 1, 1>(self.block);
            let value = Side::from_raw(u8::from_le_bytes(*raw));
            value
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for ChoicesSidesDecoder<'a> {
        const NAME: &'static str = "Choices.sides";
        const HAS_MEMBERS: bool = false;
        #[inline]
        fn needed_length(version: u64) -> usize {
            Self::needed_length_at(version)
        }
        #[inline(always)]
        fn from_block(block: &'a [u8], version: u64) -> Option<Self> {
            Some(Self {
                block: block.first_chunk()?,
            })
        }
        #[inline(always)]
        fn parse(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            Self::parse_body(reader, block_length, version)
        }
    }
    /// Writes `Choices.sides` where it will lie.
    #[derive(Debug)]
    pub struct ChoicesSidesEncoder<'a> {
        block: &'a mut [u8; 1],
    }
    impl<'a> ChoicesSidesEncoder<'a> {
        const TEMPLATE: [u8; 1] = {
            let block = [0; 1];
            block
        };
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: Side) -> &mut Self {
            *field_mut::<0, 1, 1>(self.block) = value.raw().to_le_bytes();
            self
        }
    }
    /// `Choices.sides` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ChoicesSides {
        /// Field `value`.
        pub value: Side,
    }
    impl Default for ChoicesSides {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { value: Default::default() }
        }
    }
    impl ChoicesSides {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &ChoicesSidesDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self { value: decoder.value() })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut ChoicesSidesEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.value;
                encoder.value(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            1
        }
    }
    /// Appends the fields of `Choices.sides` as protobuf.
    #[derive(Debug)]
    pub struct ChoicesSidesProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> ChoicesSidesProtobufEncoder<'w, 'a> {
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: Side) -> &mut Self {
            self.writer.uint(1u32, i64::from(value.raw()) as u64);
            self
        }
    }
    /// A field of `Choices.sides` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum ChoicesSidesField {
        /// Field `value`.
        Value(Side),
    }
    /// Goes over the fields of `Choices.sides` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct ChoicesSidesProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> ChoicesSidesProtobufDecoder<'a> {
        /// Begins at the start of `payload`.
        #[inline]
        #[must_use]
        pub const fn new(payload: &'a [u8]) -> Self {
            Self {
                reader: ::gapless_schema::protobuf::Reader::new(payload),
            }
        }
        /// The next field that the schema knows; others are skipped. `None` at the end.
        ///
        /// # Errors
        /// What is wrong with the payload and where; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<ChoicesSidesField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<ChoicesSidesField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Choices.sides")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                ChoicesSidesField::Value(
                                    <Side as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.sides.value",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Choices.sides",
                                &[(1u32, "Choices.sides.value")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for ChoicesSidesProtobufDecoder<'a> {
        type Item = Result<ChoicesSidesField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl ChoicesSides {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut ChoicesSidesProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.value;
                encoder.value(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: ChoicesSidesProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    ChoicesSidesField::Value(value) => self.value = value,
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Choices.sides`.
    #[derive(Debug)]
    pub struct ChoicesSidesGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> ChoicesSidesGroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 4] = {
            let block = [0; 4];
            let block = with(block, 0, (1u16).to_le_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(&mut self) -> Result<ChoicesSidesEncoder<'a>, EncodeError> {
            if self.count >= 500 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Choices.sides",
                        self.count as usize + 1,
                        500,
                    ),
                );
            }
            let block = self.tail.chunk("Choices.sides")?;
            *block = ChoicesSidesEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            Ok(ChoicesSidesEncoder { block })
        }
    }
    /// Reads an entry of group `Choices.wholes` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct ChoicesWholesDecoder<'a> {
        block: &'a [u8; 8],
    }
    impl<'a> ChoicesWholesDecoder<'a> {
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            8
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    8,
                >(
                    block_length,
                    Self::needed_length_at(version),
                    version,
                    "Choices.wholes",
                )?;
            Ok(Self { block })
        }
        /// Field `value`.
        #[inline]
        #[must_use]
        pub fn value(&self) -> u64 {
            let raw = field::<0, 8, 8>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for ChoicesWholesDecoder<'a> {
        const NAME: &'static str = "Choices.wholes";
        const HAS_MEMBERS: bool = false;
        #[inline]
        fn needed_length(version: u64) -> usize {
            Self::needed_length_at(version)
        }
        #[inline(always)]
        fn from_block(block: &'a [u8], version: u64) -> Option<Self> {
            Some(Self {
                block: block.first_chunk()?,
            })
        }
        #[inline(always)]
        fn parse(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            Self::parse_body(reader, block_length, version)
        }
    }
    /// Writes `Choices.wholes` where it will lie.
    #[derive(Debug)]
    pub struct ChoicesWholesEncoder<'a> {
        block: &'a mut [u8; 8],
    }
    impl<'a> ChoicesWholesEncoder<'a> {
        const TEMPLATE: [u8; 8] = {
            let block = [0; 8];
            block
        };
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: u64) -> &mut Self {
            *field_mut::<0, 8, 8>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// `Choices.wholes` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ChoicesWholes {
        /// Field `value`.
        pub value: u64,
    }
    impl Default for ChoicesWholes {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { value: Default::default() }
        }
    }
    impl ChoicesWholes {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &ChoicesWholesDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self { value: decoder.value() })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut ChoicesWholesEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.value;
                encoder.value(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            8
        }
    }
    /// Appends the fields of `Choices.wholes` as protobuf.
    #[derive(Debug)]
    pub struct ChoicesWholesProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> ChoicesWholesProtobufEncoder<'w, 'a> {
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
    }
    /// A field of `Choices.wholes` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum ChoicesWholesField {
        /// Field `value`.
        Value(u64),
    }
    /// Goes over the fields of `Choices.wholes` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct ChoicesWholesProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> ChoicesWholesProtobufDecoder<'a> {
        /// Begins at the start of `payload`.
        #[inline]
        #[must_use]
        pub const fn new(payload: &'a [u8]) -> Self {
            Self {
                reader: ::gapless_schema::protobuf::Reader::new(payload),
            }
        }
        /// The next field that the schema knows; others are skipped. `None` at the end.
        ///
        /// # Errors
        /// What is wrong with the payload and where; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<ChoicesWholesField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<ChoicesWholesField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Choices.wholes")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                ChoicesWholesField::Value(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.wholes.value",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Choices.wholes",
                                &[(1u32, "Choices.wholes.value")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for ChoicesWholesProtobufDecoder<'a> {
        type Item = Result<ChoicesWholesField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl ChoicesWholes {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut ChoicesWholesProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.value;
                encoder.value(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: ChoicesWholesProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    ChoicesWholesField::Value(value) => self.value = value,
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Choices.wholes`.
    #[derive(Debug)]
    pub struct ChoicesWholesGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> ChoicesWholesGroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 4] = {
            let block = [0; 4];
            let block = with(block, 0, (8u16).to_le_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(&mut self) -> Result<ChoicesWholesEncoder<'a>, EncodeError> {
            if self.count >= 500 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Choices.wholes",
                        self.count as usize + 1,
                        500,
                    ),
                );
            }
            let block = self.tail.chunk("Choices.wholes")?;
            *block = ChoicesWholesEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            Ok(ChoicesWholesEncoder { block })
        }
    }
    /// Reads an entry of group `Choices.parts` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct ChoicesPartsDecoder<'a> {
        block: &'a [u8; 4],
    }
    impl<'a> ChoicesPartsDecoder<'a> {
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            4
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    4,
                >(
                    block_length,
                    Self::needed_length_at(version),
                    version,
                    "Choices.parts",
                )?;
            Ok(Self { block })
        }
        /// Field `value`.
        #[inline]
        #[must_use]
        pub fn value(&self) -> f32 {
            let raw = field::<0, 4, 4>(self.block);
            let value = f32::from_le_bytes(*raw);
            value
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for ChoicesPartsDecoder<'a> {
        const NAME: &'static str = "Choices.parts";
        const HAS_MEMBERS: bool = false;
        #[inline]
        fn needed_length(version: u64) -> usize {
            Self::needed_length_at(version)
        }
        #[inline(always)]
        fn from_block(block: &'a [u8], version: u64) -> Option<Self> {
            Some(Self {
                block: block.first_chunk()?,
            })
        }
        #[inline(always)]
        fn parse(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            Self::parse_body(reader, block_length, version)
        }
    }
    /// Writes `Choices.parts` where it will lie.
    #[derive(Debug)]
    pub struct ChoicesPartsEncoder<'a> {
        block: &'a mut [u8; 4],
    }
    impl<'a> ChoicesPartsEncoder<'a> {
        const TEMPLATE: [u8; 4] = {
            let block = [0; 4];
            block
        };
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: f32) -> &mut Self {
            *field_mut::<0, 4, 4>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// `Choices.parts` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ChoicesParts {
        /// Field `value`.
        pub value: f32,
    }
    impl Default for ChoicesParts {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { value: Default::default() }
        }
    }
    impl ChoicesParts {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &ChoicesPartsDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self { value: decoder.value() })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut ChoicesPartsEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.value;
                encoder.value(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            4
        }
    }
    /// Appends the fields of `Choices.parts` as protobuf.
    #[derive(Debug)]
    pub struct ChoicesPartsProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> ChoicesPartsProtobufEncoder<'w, 'a> {
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: f32) -> &mut Self {
            self.writer.float(1u32, value);
            self
        }
    }
    /// A field of `Choices.parts` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum ChoicesPartsField {
        /// Field `value`.
        Value(f32),
    }
    /// Goes over the fields of `Choices.parts` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct ChoicesPartsProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> ChoicesPartsProtobufDecoder<'a> {
        /// Begins at the start of `payload`.
        #[inline]
        #[must_use]
        pub const fn new(payload: &'a [u8]) -> Self {
            Self {
                reader: ::gapless_schema::protobuf::Reader::new(payload),
            }
        }
        /// The next field that the schema knows; others are skipped. `None` at the end.
        ///
        /// # Errors
        /// What is wrong with the payload and where; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<ChoicesPartsField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<ChoicesPartsField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Choices.parts")? {
                match key {
                    13u32 => {
                        return Ok(
                            Some(
                                ChoicesPartsField::Value(
                                    <f32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Choices.parts.value",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Choices.parts",
                                &[(1u32, "Choices.parts.value")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for ChoicesPartsProtobufDecoder<'a> {
        type Item = Result<ChoicesPartsField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl ChoicesParts {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut ChoicesPartsProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.value;
                encoder.value(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: ChoicesPartsProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    ChoicesPartsField::Value(value) => self.value = value,
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Choices.parts`.
    #[derive(Debug)]
    pub struct ChoicesPartsGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> ChoicesPartsGroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 4] = {
            let block = [0; 4];
            let block = with(block, 0, (4u16).to_le_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(&mut self) -> Result<ChoicesPartsEncoder<'a>, EncodeError> {
            if self.count >= 500 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Choices.parts",
                        self.count as usize + 1,
                        500,
                    ),
                );
            }
            let block = self.tail.chunk("Choices.parts")?;
            *block = ChoicesPartsEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            Ok(ChoicesPartsEncoder { block })
        }
    }
    impl ::gapless_schema::Message for ChoicesDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Choices";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = ChoicesDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<ChoicesDecoder<'_>, DecodeError> {
            ChoicesDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for ChoicesEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Choices";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = ChoicesEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<ChoicesEncoder<'_>, EncodeError> {
            ChoicesEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: ChoicesEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for ChoicesProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Choices";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = ChoicesProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<ChoicesProtobufDecoder<'_>, DecodeError> {
            Ok(ChoicesProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for ChoicesProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Choices";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = ChoicesProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<ChoicesProtobufEncoder<'_>, EncodeError> {
            Ok(ChoicesProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: ChoicesProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Choices {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Choices";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&ChoicesDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = ChoicesEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Choices {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Choices";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(ChoicesProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = ChoicesProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = ChoicesProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Deprecated, and has gaps
    ///
    /// Deprecated since version 4.
    #[derive(Clone, Copy, Debug)]
    pub struct PaddedDecoder<'a> {
        block: &'a [u8; 29],
        group_entries: ::gapless_schema::sbe::Group<'a, PaddedEntriesDecoder<'a>>,
    }
    impl<'a> PaddedDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Padded")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Padded", SCHEMA_ID, 4u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            29
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    29,
                >(block_length, Self::needed_length_at(version), version, "Padded")?;
            let group_entries = {
                let dimension = reader.chunk::<4>("Padded.entries")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            Ok(Self { block, group_entries })
        }
        /// Field `near`.
        #[inline]
        #[must_use]
        pub fn near(&self) -> u8 {
            let raw = field::<0, 1, 29>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `far`.
        #[inline]
        #[must_use]
        pub fn far(&self) -> u16 {
            let raw = field::<10, 2, 29>(self.block);
            let value = u16::from_le_bytes(*raw);
            value
        }
        /// Field `spaced`.
        #[inline]
        #[must_use]
        pub fn spaced(&self) -> SpacedDecoder<'a> {
            let raw = field::<16, 13, 29>(self.block);
            let value = SpacedDecoder { block: raw };
            value
        }
        /// Group `entries`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn entries(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, PaddedEntriesDecoder<'a>> {
            self.group_entries
        }
    }
    /// Deprecated, and has gaps
    ///
    /// Deprecated since version 4.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct PaddedEncoder<'a> {
        block: &'a mut [u8; 48],
        tail: Tail<'a>,
        stage: PaddedStage,
    }
    impl<'a> PaddedEncoder<'a> {
        const TEMPLATE: [u8; 48] = {
            let block = [0; 48];
            let block = with(block, 0, (40u16).to_le_bytes());
            let block = with(block, 2, (4u16).to_le_bytes());
            let block = with(block, 4, (3u16).to_le_bytes());
            let block = with(block, 6, (4u16).to_le_bytes());
            block
        };
        /// Begins a message at the start of `buffer`: its header is written, every optional field is null, the
        /// others are zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if header and block do not fit.
        #[inline(always)]
        pub fn new(buffer: &'a mut [u8]) -> Result<Self, EncodeError> {
            let mut tail = Tail::new(buffer);
            let block = tail.chunk::<48>("Padded")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: PaddedStage {
                    reached: 0,
                    ..PaddedStage::CLOSED
                },
            })
        }
        /// Ends the message: groups and data that were not written are empty. Returns its length in bytes, with
        /// the header.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if they do not fit.
        #[inline(always)]
        pub fn finish(mut self) -> Result<usize, EncodeError> {
            self.stage.advance(&mut self.tail, 1u8)?;
            Ok(self.tail.position())
        }
        /// Field `near`.
        #[inline]
        pub fn near(&mut self, value: u8) -> &mut Self {
            *field_mut::<8, 1, 48>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `far`.
        #[inline]
        pub fn far(&mut self, value: u16) -> &mut Self {
            *field_mut::<18, 2, 48>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `spaced`.
        #[inline]
        pub fn spaced(&mut self) -> SpacedEncoder<'_> {
            SpacedEncoder {
                block: field_mut::<24, 13, 48>(self.block),
            }
        }
        /// Begins group `entries`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn entries(
            &mut self,
        ) -> Result<PaddedEntriesGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Padded.entries")?;
            *dimension = PaddedEntriesGroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(PaddedEntriesGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct PaddedStage {
        reached: u8,
    }
    impl PaddedStage {
        const CLOSED: Self = Self { reached: 1u8 };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
        }
        /// Completes what is open and fills in what is skipped before `member`.
        #[inline(always)]
        fn advance<'a>(
            &mut self,
            tail: &mut Tail<'a>,
            member: u8,
        ) -> Result<(), EncodeError> {
            if self.is_at(member) {
                return Ok(());
            }
            let (stage, rest, advanced) = self.skip_to(tail.take(), member);
            *self = stage;
            *tail = rest;
            advanced
        }
        #[cold]
        #[inline(never)]
        fn skip_to(
            mut self,
            mut tail: Tail<'_>,
            member: u8,
        ) -> (Self, Tail<'_>, Result<(), EncodeError>) {
            let advanced = self.fill(&mut tail, member);
            (self, tail, advanced)
        }
        fn fill(&mut self, tail: &mut Tail<'_>, member: u8) -> Result<(), EncodeError> {
            if self.reached > member {
                return Err(
                    ::gapless_schema::sbe::write::too_late(
                        match member {
                            0u8 => "Padded.entries",
                            _ => "Padded",
                        },
                    ),
                );
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(PaddedEntriesGroupEncoder::EMPTY, "Padded.entries")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// Deprecated, and has gaps
    ///
    /// Deprecated since version 4.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Padded {
        /// Field `near`.
        pub near: u8,
        /// Field `far`.
        pub far: u16,
        /// Field `spaced`.
        pub spaced: Spaced,
        /// Group `entries`.
        pub entries: Vec<PaddedEntries>,
    }
    impl Default for Padded {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                near: Default::default(),
                far: Default::default(),
                spaced: Default::default(),
                entries: Default::default(),
            }
        }
    }
    impl Padded {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &PaddedDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                near: decoder.near(),
                far: decoder.far(),
                spaced: {
                    let item = decoder.spaced();
                    Spaced::from_decoder(&item)?
                },
                entries: {
                    let entries = decoder.entries();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(PaddedEntries::from_decoder(&entry)?);
                    }
                    list
                },
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut PaddedEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.near;
                encoder.near(*value);
            }
            {
                let value = &self.far;
                encoder.far(*value);
            }
            {
                let value = &self.spaced;
                value.encode_into(&mut encoder.spaced())?;
            }
            let mut group = encoder.entries()?;
            for item in &self.entries {
                item.encode_into(&mut group.entry()?)?;
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            40 + 4 + self.entries.len() * 8
        }
    }
    /// Deprecated, and has gaps
    ///
    /// Deprecated since version 4.
    #[derive(Debug)]
    pub struct PaddedProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> PaddedProtobufEncoder<'a> {
        /// Begins a message at the start of `buffer`; an empty one only counts.
        #[inline]
        pub const fn new(buffer: &'a mut [u8]) -> Self {
            Self {
                writer: ::gapless_schema::protobuf::Writer::new(buffer),
            }
        }
        /// Ends the message and returns its length in bytes.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit.
        #[inline]
        pub fn finish(self) -> Result<usize, EncodeError> {
            self.writer.finish("Padded")
        }
        /// Field `near`.
        #[inline]
        pub fn near(&mut self, value: u8) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `far`.
        #[inline]
        pub fn far(&mut self, value: u16) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
        /// Field `spaced`.
        #[inline]
        pub fn spaced(
            &mut self,
            write: impl FnOnce(&mut SpacedProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(3u32);
            write(
                &mut SpacedProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Group `entries`: appends one entry.
        #[inline]
        pub fn entries(
            &mut self,
            write: impl FnOnce(&mut PaddedEntriesProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(4u32);
            write(
                &mut PaddedEntriesProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
    }
    /// A field of `Padded` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum PaddedField<'a> {
        /// Field `near`.
        Near(u8),
        /// Field `far`.
        Far(u16),
        /// Field `spaced`.
        Spaced(SpacedProtobufDecoder<'a>),
        /// Group `entries`: one entry.
        Entries(PaddedEntriesProtobufDecoder<'a>),
    }
    /// Deprecated, and has gaps
    ///
    /// Deprecated since version 4.
    #[derive(Clone, Copy, Debug)]
    pub struct PaddedProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> PaddedProtobufDecoder<'a> {
        /// Begins at the start of `payload`.
        #[inline]
        #[must_use]
        pub const fn new(payload: &'a [u8]) -> Self {
            Self {
                reader: ::gapless_schema::protobuf::Reader::new(payload),
            }
        }
        /// The next field that the schema knows; others are skipped. `None` at the end.
        ///
        /// # Errors
        /// What is wrong with the payload and where; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<PaddedField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<PaddedField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Padded")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                PaddedField::Near(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Padded.near",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                PaddedField::Far(
                                    <u16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Padded.far",
                                    )?,
                                ),
                            ),
                        );
                    }
                    26u32 => {
                        return Ok(
                            Some(
                                PaddedField::Spaced(SpacedProtobufDecoder {
                                    reader: reader.message("Padded.spaced")?,
                                }),
                            ),
                        );
                    }
                    34u32 => {
                        return Ok(
                            Some(
                                PaddedField::Entries(PaddedEntriesProtobufDecoder {
                                    reader: reader.message("Padded.entries")?,
                                }),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Padded",
                                &[
                                    (1u32, "Padded.near"),
                                    (2u32, "Padded.far"),
                                    (3u32, "Padded.spaced"),
                                    (4u32, "Padded.entries"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for PaddedProtobufDecoder<'a> {
        type Item = Result<PaddedField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Padded {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut PaddedProtobufEncoder<'_>) {
            {
                let value = &self.near;
                encoder.near(*value);
            }
            {
                let value = &self.far;
                encoder.far(*value);
            }
            {
                let value = &self.spaced;
                encoder.spaced(|encoder| value.encode_protobuf(encoder));
            }
            for entry in &self.entries {
                encoder.entries(|encoder| entry.encode_protobuf(encoder));
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: PaddedProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    PaddedField::Near(value) => self.near = value,
                    PaddedField::Far(value) => self.far = value,
                    PaddedField::Spaced(value) => self.spaced.merge_protobuf(value)?,
                    PaddedField::Entries(value) => {
                        let mut entry = PaddedEntries::default();
                        entry.merge_protobuf(value)?;
                        self.entries.push(entry);
                    }
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Padded.entries` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct PaddedEntriesDecoder<'a> {
        block: &'a [u8; 4],
    }
    impl<'a> PaddedEntriesDecoder<'a> {
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            4
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    4,
                >(
                    block_length,
                    Self::needed_length_at(version),
                    version,
                    "Padded.entries",
                )?;
            Ok(Self { block })
        }
        /// Field `here`.
        #[inline]
        #[must_use]
        pub fn here(&self) -> u8 {
            let raw = field::<3, 1, 4>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `kind`.
        #[inline]
        #[must_use]
        pub const fn kind(&self) -> u8 {
            (103u8)
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for PaddedEntriesDecoder<'a> {
        const NAME: &'static str = "Padded.entries";
        const HAS_MEMBERS: bool = false;
        #[inline]
        fn needed_length(version: u64) -> usize {
            Self::needed_length_at(version)
        }
        #[inline(always)]
        fn from_block(block: &'a [u8], version: u64) -> Option<Self> {
            Some(Self {
                block: block.first_chunk()?,
            })
        }
        #[inline(always)]
        fn parse(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            Self::parse_body(reader, block_length, version)
        }
    }
    /// Writes `Padded.entries` where it will lie.
    #[derive(Debug)]
    pub struct PaddedEntriesEncoder<'a> {
        block: &'a mut [u8; 8],
    }
    impl<'a> PaddedEntriesEncoder<'a> {
        const TEMPLATE: [u8; 8] = {
            let block = [0; 8];
            block
        };
        /// Field `here`.
        #[inline]
        pub fn here(&mut self, value: u8) -> &mut Self {
            *field_mut::<3, 1, 8>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// `Padded.entries` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PaddedEntries {
        /// Field `here`.
        pub here: u8,
    }
    impl Default for PaddedEntries {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { here: Default::default() }
        }
    }
    impl PaddedEntries {
        /// Field `kind`.
        pub const KIND: u8 = (103u8);
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &PaddedEntriesDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self { here: decoder.here() })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut PaddedEntriesEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.here;
                encoder.here(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            8
        }
    }
    /// Appends the fields of `Padded.entries` as protobuf.
    #[derive(Debug)]
    pub struct PaddedEntriesProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> PaddedEntriesProtobufEncoder<'w, 'a> {
        /// Field `here`.
        #[inline]
        pub fn here(&mut self, value: u8) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
    }
    /// A field of `Padded.entries` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum PaddedEntriesField {
        /// Field `here`.
        Here(u8),
    }
    /// Goes over the fields of `Padded.entries` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct PaddedEntriesProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> PaddedEntriesProtobufDecoder<'a> {
        /// Begins at the start of `payload`.
        #[inline]
        #[must_use]
        pub const fn new(payload: &'a [u8]) -> Self {
            Self {
                reader: ::gapless_schema::protobuf::Reader::new(payload),
            }
        }
        /// The next field that the schema knows; others are skipped. `None` at the end.
        ///
        /// # Errors
        /// What is wrong with the payload and where; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<PaddedEntriesField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<PaddedEntriesField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Padded.entries")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                PaddedEntriesField::Here(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Padded.entries.here",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Padded.entries",
                                &[(1u32, "Padded.entries.here")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for PaddedEntriesProtobufDecoder<'a> {
        type Item = Result<PaddedEntriesField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl PaddedEntries {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut PaddedEntriesProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.here;
                encoder.here(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: PaddedEntriesProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    PaddedEntriesField::Here(value) => self.here = value,
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Padded.entries`.
    #[derive(Debug)]
    pub struct PaddedEntriesGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> PaddedEntriesGroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 4] = {
            let block = [0; 4];
            let block = with(block, 0, (8u16).to_le_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(&mut self) -> Result<PaddedEntriesEncoder<'a>, EncodeError> {
            if self.count >= 500 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Padded.entries",
                        self.count as usize + 1,
                        500,
                    ),
                );
            }
            let block = self.tail.chunk("Padded.entries")?;
            *block = PaddedEntriesEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            Ok(PaddedEntriesEncoder { block })
        }
    }
    impl ::gapless_schema::Message for PaddedDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 4u16;
        const NAME: &'static str = "Padded";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = PaddedDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<PaddedDecoder<'_>, DecodeError> {
            PaddedDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for PaddedEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 4u16;
        const NAME: &'static str = "Padded";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = PaddedEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<PaddedEncoder<'_>, EncodeError> {
            PaddedEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: PaddedEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for PaddedProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 4u16;
        const NAME: &'static str = "Padded";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = PaddedProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<PaddedProtobufDecoder<'_>, DecodeError> {
            Ok(PaddedProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for PaddedProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 4u16;
        const NAME: &'static str = "Padded";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = PaddedProtobufEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<PaddedProtobufEncoder<'_>, EncodeError> {
            Ok(PaddedProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: PaddedProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Padded {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 4u16;
        const NAME: &'static str = "Padded";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&PaddedDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = PaddedEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Padded {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 4u16;
        const NAME: &'static str = "Padded";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(PaddedProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = PaddedProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = PaddedProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Reads message `Keywords` where it lies.
    ///
    /// Semantic type: K.
    #[derive(Clone, Copy, Debug)]
    pub struct KeywordsDecoder<'a> {
        block: &'a [u8; 8],
    }
    impl<'a> KeywordsDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Keywords")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Keywords", SCHEMA_ID, 5u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            8
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    8,
                >(block_length, Self::needed_length_at(version), version, "Keywords")?;
            Ok(Self { block })
        }
        /// Field `type`.
        #[inline]
        #[must_use]
        pub fn type_(&self) -> u8 {
            let raw = field::<0, 1, 8>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `match`.
        #[inline]
        #[must_use]
        pub fn match_(&self) -> u8 {
            let raw = field::<1, 1, 8>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `self`.
        #[inline]
        #[must_use]
        pub fn self_(&self) -> u8 {
            let raw = field::<2, 1, 8>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `parse`.
        ///
        /// Deprecated since version 4.
        #[deprecated(note = "deprecated since version 4 of the schema")]
        #[inline]
        #[must_use]
        pub fn parse_(&self) -> u8 {
            let raw = field::<3, 1, 8>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `next`.
        #[inline]
        #[must_use]
        pub fn next_(&self) -> u8 {
            let raw = field::<4, 1, 8>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `fooBar`.
        #[inline]
        #[must_use]
        pub fn foo_bar(&self) -> u8 {
            let raw = field::<5, 1, 8>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `foo_bar`.
        #[inline]
        #[must_use]
        pub fn foo_bar_(&self) -> u8 {
            let raw = field::<6, 1, 8>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `Result`.
        #[inline]
        #[must_use]
        pub fn result(&self) -> u8 {
            let raw = field::<7, 1, 8>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
    }
    /// Writes `Keywords` where it will lie.
    ///
    /// Semantic type: K.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct KeywordsEncoder<'a> {
        block: &'a mut [u8; 16],
        tail: Tail<'a>,
        stage: KeywordsStage,
    }
    impl<'a> KeywordsEncoder<'a> {
        const TEMPLATE: [u8; 16] = {
            let block = [0; 16];
            let block = with(block, 0, (8u16).to_le_bytes());
            let block = with(block, 2, (5u16).to_le_bytes());
            let block = with(block, 4, (3u16).to_le_bytes());
            let block = with(block, 6, (4u16).to_le_bytes());
            block
        };
        /// Begins a message at the start of `buffer`: its header is written, every optional field is null, the
        /// others are zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if header and block do not fit.
        #[inline(always)]
        pub fn new(buffer: &'a mut [u8]) -> Result<Self, EncodeError> {
            let mut tail = Tail::new(buffer);
            let block = tail.chunk::<16>("Keywords")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: KeywordsStage {
                    reached: 0,
                    ..KeywordsStage::CLOSED
                },
            })
        }
        /// Ends the message: groups and data that were not written are empty. Returns its length in bytes, with
        /// the header.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if they do not fit.
        #[inline(always)]
        pub fn finish(mut self) -> Result<usize, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            Ok(self.tail.position())
        }
        /// Field `type`.
        #[inline]
        pub fn type_(&mut self, value: u8) -> &mut Self {
            *field_mut::<8, 1, 16>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `match`.
        #[inline]
        pub fn match_(&mut self, value: u8) -> &mut Self {
            *field_mut::<9, 1, 16>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `self`.
        #[inline]
        pub fn self_(&mut self, value: u8) -> &mut Self {
            *field_mut::<10, 1, 16>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `parse`.
        ///
        /// Deprecated since version 4.
        #[deprecated(note = "deprecated since version 4 of the schema")]
        #[inline]
        pub fn parse_(&mut self, value: u8) -> &mut Self {
            *field_mut::<11, 1, 16>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `next`.
        #[inline]
        pub fn next_(&mut self, value: u8) -> &mut Self {
            *field_mut::<12, 1, 16>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `fooBar`.
        #[inline]
        pub fn foo_bar(&mut self, value: u8) -> &mut Self {
            *field_mut::<13, 1, 16>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `foo_bar`.
        #[inline]
        pub fn foo_bar_(&mut self, value: u8) -> &mut Self {
            *field_mut::<14, 1, 16>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `Result`.
        #[inline]
        pub fn result(&mut self, value: u8) -> &mut Self {
            *field_mut::<15, 1, 16>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct KeywordsStage {
        reached: u8,
    }
    impl KeywordsStage {
        const CLOSED: Self = Self { reached: 0u8 };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
        }
        /// Completes what is open and fills in what is skipped before `member`.
        #[inline(always)]
        fn advance<'a>(
            &mut self,
            tail: &mut Tail<'a>,
            member: u8,
        ) -> Result<(), EncodeError> {
            if self.is_at(member) {
                return Ok(());
            }
            let (stage, rest, advanced) = self.skip_to(tail.take(), member);
            *self = stage;
            *tail = rest;
            advanced
        }
        #[cold]
        #[inline(never)]
        fn skip_to(
            mut self,
            mut tail: Tail<'_>,
            member: u8,
        ) -> (Self, Tail<'_>, Result<(), EncodeError>) {
            let advanced = self.fill(&mut tail, member);
            (self, tail, advanced)
        }
        fn fill(&mut self, tail: &mut Tail<'_>, member: u8) -> Result<(), EncodeError> {
            if self.reached > member {
                return Err(
                    ::gapless_schema::sbe::write::too_late(
                        match member {
                            _ => "Keywords",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Keywords` as an object: any field in any order.
    ///
    /// Semantic type: K.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Keywords {
        /// Field `type`.
        pub type_: u8,
        /// Field `match`.
        pub match_: u8,
        /// Field `self`.
        pub self_: u8,
        /// Field `parse`.
        ///
        /// Deprecated since version 4.
        pub parse_: u8,
        /// Field `next`.
        pub next_: u8,
        /// Field `fooBar`.
        pub foo_bar: u8,
        /// Field `foo_bar`.
        pub foo_bar_: u8,
        /// Field `Result`.
        pub result: u8,
    }
    impl Default for Keywords {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                type_: Default::default(),
                match_: Default::default(),
                self_: Default::default(),
                parse_: Default::default(),
                next_: Default::default(),
                foo_bar: Default::default(),
                foo_bar_: Default::default(),
                result: Default::default(),
            }
        }
    }
    impl Keywords {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &KeywordsDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                type_: decoder.type_(),
                match_: decoder.match_(),
                self_: decoder.self_(),
                parse_: decoder.parse_(),
                next_: decoder.next_(),
                foo_bar: decoder.foo_bar(),
                foo_bar_: decoder.foo_bar_(),
                result: decoder.result(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut KeywordsEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.type_;
                encoder.type_(*value);
            }
            {
                let value = &self.match_;
                encoder.match_(*value);
            }
            {
                let value = &self.self_;
                encoder.self_(*value);
            }
            {
                let value = &self.parse_;
                encoder.parse_(*value);
            }
            {
                let value = &self.next_;
                encoder.next_(*value);
            }
            {
                let value = &self.foo_bar;
                encoder.foo_bar(*value);
            }
            {
                let value = &self.foo_bar_;
                encoder.foo_bar_(*value);
            }
            {
                let value = &self.result;
                encoder.result(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            8
        }
    }
    /// Appends the fields of `Keywords` as protobuf.
    ///
    /// Semantic type: K.
    #[derive(Debug)]
    pub struct KeywordsProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> KeywordsProtobufEncoder<'a> {
        /// Begins a message at the start of `buffer`; an empty one only counts.
        #[inline]
        pub const fn new(buffer: &'a mut [u8]) -> Self {
            Self {
                writer: ::gapless_schema::protobuf::Writer::new(buffer),
            }
        }
        /// Ends the message and returns its length in bytes.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit.
        #[inline]
        pub fn finish(self) -> Result<usize, EncodeError> {
            self.writer.finish("Keywords")
        }
        /// Field `type`.
        #[inline]
        pub fn type_(&mut self, value: u8) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `match`.
        #[inline]
        pub fn match_(&mut self, value: u8) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
        /// Field `self`.
        #[inline]
        pub fn self_(&mut self, value: u8) -> &mut Self {
            self.writer.uint(3u32, u64::from(value));
            self
        }
        /// Field `parse`.
        ///
        /// Deprecated since version 4.
        #[deprecated(note = "deprecated since version 4 of the schema")]
        #[inline]
        pub fn parse_(&mut self, value: u8) -> &mut Self {
            self.writer.uint(4u32, u64::from(value));
            self
        }
        /// Field `next`.
        #[inline]
        pub fn next_(&mut self, value: u8) -> &mut Self {
            self.writer.uint(5u32, u64::from(value));
            self
        }
        /// Field `fooBar`.
        #[inline]
        pub fn foo_bar(&mut self, value: u8) -> &mut Self {
            self.writer.uint(6u32, u64::from(value));
            self
        }
        /// Field `foo_bar`.
        #[inline]
        pub fn foo_bar_(&mut self, value: u8) -> &mut Self {
            self.writer.uint(7u32, u64::from(value));
            self
        }
        /// Field `Result`.
        #[inline]
        pub fn result(&mut self, value: u8) -> &mut Self {
            self.writer.uint(8u32, u64::from(value));
            self
        }
    }
    /// A field of `Keywords` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum KeywordsField {
        /// Field `type`.
        Type(u8),
        /// Field `match`.
        Match(u8),
        /// Field `self`.
        Self_(u8),
        /// Field `parse`.
        ///
        /// Deprecated since version 4.
        Parse(u8),
        /// Field `next`.
        Next(u8),
        /// Field `fooBar`.
        FooBar(u8),
        /// Field `foo_bar`.
        FooBar_(u8),
        /// Field `Result`.
        Result(u8),
    }
    /// Goes over the fields of `Keywords` in a protobuf payload.
    ///
    /// Semantic type: K.
    #[derive(Clone, Copy, Debug)]
    pub struct KeywordsProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> KeywordsProtobufDecoder<'a> {
        /// Begins at the start of `payload`.
        #[inline]
        #[must_use]
        pub const fn new(payload: &'a [u8]) -> Self {
            Self {
                reader: ::gapless_schema::protobuf::Reader::new(payload),
            }
        }
        /// The next field that the schema knows; others are skipped. `None` at the end.
        ///
        /// # Errors
        /// What is wrong with the payload and where; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<KeywordsField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<KeywordsField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Keywords")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                KeywordsField::Type(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Keywords.type",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                KeywordsField::Match(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Keywords.match",
                                    )?,
                                ),
                            ),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(
                                KeywordsField::Self_(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Keywords.self",
                                    )?,
                                ),
                            ),
                        );
                    }
                    32u32 => {
                        return Ok(
                            Some(
                                KeywordsField::Parse(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Keywords.parse",
                                    )?,
                                ),
                            ),
                        );
                    }
                    40u32 => {
                        return Ok(
                            Some(
                                KeywordsField::Next(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Keywords.next",
                                    )?,
                                ),
                            ),
                        );
                    }
                    48u32 => {
                        return Ok(
                            Some(
                                KeywordsField::FooBar(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Keywords.fooBar",
                                    )?,
                                ),
                            ),
                        );
                    }
                    56u32 => {
                        return Ok(
                            Some(
                                KeywordsField::FooBar_(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Keywords.foo_bar",
                                    )?,
                                ),
                            ),
                        );
                    }
                    64u32 => {
                        return Ok(
                            Some(
                                KeywordsField::Result(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Keywords.Result",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Keywords",
                                &[
                                    (1u32, "Keywords.type"),
                                    (2u32, "Keywords.match"),
                                    (3u32, "Keywords.self"),
                                    (4u32, "Keywords.parse"),
                                    (5u32, "Keywords.next"),
                                    (6u32, "Keywords.fooBar"),
                                    (7u32, "Keywords.foo_bar"),
                                    (8u32, "Keywords.Result"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for KeywordsProtobufDecoder<'a> {
        type Item = Result<KeywordsField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Keywords {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut KeywordsProtobufEncoder<'_>) {
            {
                let value = &self.type_;
                encoder.type_(*value);
            }
            {
                let value = &self.match_;
                encoder.match_(*value);
            }
            {
                let value = &self.self_;
                encoder.self_(*value);
            }
            {
                let value = &self.parse_;
                encoder.parse_(*value);
            }
            {
                let value = &self.next_;
                encoder.next_(*value);
            }
            {
                let value = &self.foo_bar;
                encoder.foo_bar(*value);
            }
            {
                let value = &self.foo_bar_;
                encoder.foo_bar_(*value);
            }
            {
                let value = &self.result;
                encoder.result(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: KeywordsProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    KeywordsField::Type(value) => self.type_ = value,
                    KeywordsField::Match(value) => self.match_ = value,
                    KeywordsField::Self_(value) => self.self_ = value,
                    KeywordsField::Parse(value) => self.parse_ = value,
                    KeywordsField::Next(value) => self.next_ = value,
                    KeywordsField::FooBar(value) => self.foo_bar = value,
                    KeywordsField::FooBar_(value) => self.foo_bar_ = value,
                    KeywordsField::Result(value) => self.result = value,
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::Message for KeywordsDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 5u16;
        const NAME: &'static str = "Keywords";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = KeywordsDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<KeywordsDecoder<'_>, DecodeError> {
            KeywordsDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for KeywordsEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 5u16;
        const NAME: &'static str = "Keywords";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = KeywordsEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<KeywordsEncoder<'_>, EncodeError> {
            KeywordsEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: KeywordsEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for KeywordsProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 5u16;
        const NAME: &'static str = "Keywords";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = KeywordsProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<KeywordsProtobufDecoder<'_>, DecodeError> {
            Ok(KeywordsProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for KeywordsProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 5u16;
        const NAME: &'static str = "Keywords";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = KeywordsProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<KeywordsProtobufEncoder<'_>, EncodeError> {
            Ok(KeywordsProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: KeywordsProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Keywords {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 5u16;
        const NAME: &'static str = "Keywords";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&KeywordsDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = KeywordsEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Keywords {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 5u16;
        const NAME: &'static str = "Keywords";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(KeywordsProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = KeywordsProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = KeywordsProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Reads message `Option` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct OptionMessageDecoder<'a> {
        block: &'a [u8; 1],
    }
    impl<'a> OptionMessageDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Option")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Option", SCHEMA_ID, 6u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            1
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    1,
                >(block_length, Self::needed_length_at(version), version, "Option")?;
            Ok(Self { block })
        }
        /// Field `some`.
        #[inline]
        #[must_use]
        pub fn some(&self) -> u8 {
            let raw = field::<0, 1, 1>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
    }
    /// Writes `Option` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct OptionMessageEncoder<'a> {
        block: &'a mut [u8; 9],
        tail: Tail<'a>,
        stage: OptionMessageStage,
    }
    impl<'a> OptionMessageEncoder<'a> {
        const TEMPLATE: [u8; 9] = {
            let block = [0; 9];
            let block = with(block, 0, (1u16).to_le_bytes());
            let block = with(block, 2, (6u16).to_le_bytes());
            let block = with(block, 4, (3u16).to_le_bytes());
            let block = with(block, 6, (4u16).to_le_bytes());
            block
        };
        /// Begins a message at the start of `buffer`: its header is written, every optional field is null, the
        /// others are zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if header and block do not fit.
        #[inline(always)]
        pub fn new(buffer: &'a mut [u8]) -> Result<Self, EncodeError> {
            let mut tail = Tail::new(buffer);
            let block = tail.chunk::<9>("Option")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: OptionMessageStage {
                    reached: 0,
                    ..OptionMessageStage::CLOSED
                },
            })
        }
        /// Ends the message: groups and data that were not written are empty. Returns its length in bytes, with
        /// the header.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if they do not fit.
        #[inline(always)]
        pub fn finish(mut self) -> Result<usize, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            Ok(self.tail.position())
        }
        /// Field `some`.
        #[inline]
        pub fn some(&mut self, value: u8) -> &mut Self {
            *field_mut::<8, 1, 9>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct OptionMessageStage {
        reached: u8,
    }
    impl OptionMessageStage {
        const CLOSED: Self = Self { reached: 0u8 };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
        }
        /// Completes what is open and fills in what is skipped before `member`.
        #[inline(always)]
        fn advance<'a>(
            &mut self,
            tail: &mut Tail<'a>,
            member: u8,
        ) -> Result<(), EncodeError> {
            if self.is_at(member) {
                return Ok(());
            }
            let (stage, rest, advanced) = self.skip_to(tail.take(), member);
            *self = stage;
            *tail = rest;
            advanced
        }
        #[cold]
        #[inline(never)]
        fn skip_to(
            mut self,
            mut tail: Tail<'_>,
            member: u8,
        ) -> (Self, Tail<'_>, Result<(), EncodeError>) {
            let advanced = self.fill(&mut tail, member);
            (self, tail, advanced)
        }
        fn fill(&mut self, tail: &mut Tail<'_>, member: u8) -> Result<(), EncodeError> {
            if self.reached > member {
                return Err(
                    ::gapless_schema::sbe::write::too_late(
                        match member {
                            _ => "Option",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Option` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OptionMessage {
        /// Field `some`.
        pub some: u8,
    }
    impl Default for OptionMessage {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { some: Default::default() }
        }
    }
    impl OptionMessage {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &OptionMessageDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self { some: decoder.some() })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut OptionMessageEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.some;
                encoder.some(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            1
        }
    }
    /// Appends the fields of `Option` as protobuf.
    #[derive(Debug)]
    pub struct OptionMessageProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> OptionMessageProtobufEncoder<'a> {
        /// Begins a message at the start of `buffer`; an empty one only counts.
        #[inline]
        pub const fn new(buffer: &'a mut [u8]) -> Self {
            Self {
                writer: ::gapless_schema::protobuf::Writer::new(buffer),
            }
        }
        /// Ends the message and returns its length in bytes.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit.
        #[inline]
        pub fn finish(self) -> Result<usize, EncodeError> {
            self.writer.finish("Option")
        }
        /// Field `some`.
        #[inline]
        pub fn some(&mut self, value: u8) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
    }
    /// A field of `Option` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum OptionMessageField {
        /// Field `some`.
        Some(u8),
    }
    /// Goes over the fields of `Option` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct OptionMessageProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> OptionMessageProtobufDecoder<'a> {
        /// Begins at the start of `payload`.
        #[inline]
        #[must_use]
        pub const fn new(payload: &'a [u8]) -> Self {
            Self {
                reader: ::gapless_schema::protobuf::Reader::new(payload),
            }
        }
        /// The next field that the schema knows; others are skipped. `None` at the end.
        ///
        /// # Errors
        /// What is wrong with the payload and where; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<OptionMessageField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<OptionMessageField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Option")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                OptionMessageField::Some(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Option.some",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => *reader = reader.other(key, "Option", &[(1u32, "Option.some")])?,
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for OptionMessageProtobufDecoder<'a> {
        type Item = Result<OptionMessageField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl OptionMessage {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut OptionMessageProtobufEncoder<'_>) {
            {
                let value = &self.some;
                encoder.some(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: OptionMessageProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    OptionMessageField::Some(value) => self.some = value,
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::Message for OptionMessageDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 6u16;
        const NAME: &'static str = "Option";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = OptionMessageDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<OptionMessageDecoder<'_>, DecodeError> {
            OptionMessageDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for OptionMessageEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 6u16;
        const NAME: &'static str = "Option";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = OptionMessageEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<OptionMessageEncoder<'_>, EncodeError> {
            OptionMessageEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: OptionMessageEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for OptionMessageProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 6u16;
        const NAME: &'static str = "Option";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = OptionMessageProtobufDecoder<'a>;
        #[inline]
        fn decode(
            payload: &[u8],
        ) -> Result<OptionMessageProtobufDecoder<'_>, DecodeError> {
            Ok(OptionMessageProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for OptionMessageProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 6u16;
        const NAME: &'static str = "Option";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = OptionMessageProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<OptionMessageProtobufEncoder<'_>, EncodeError> {
            Ok(OptionMessageProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(
            encoder: OptionMessageProtobufEncoder<'_>,
        ) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for OptionMessage {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 6u16;
        const NAME: &'static str = "Option";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&OptionMessageDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = OptionMessageEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for OptionMessage {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 6u16;
        const NAME: &'static str = "Option";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(OptionMessageProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = OptionMessageProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = OptionMessageProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Reads message `Empty` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct EmptyDecoder<'a> {
        block: &'a [u8; 0],
    }
    impl<'a> EmptyDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Empty")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Empty", SCHEMA_ID, 7u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            0
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    0,
                >(block_length, Self::needed_length_at(version), version, "Empty")?;
            Ok(Self { block })
        }
    }
    /// Writes `Empty` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct EmptyEncoder<'a> {
        block: &'a mut [u8; 8],
        tail: Tail<'a>,
        stage: EmptyStage,
    }
    impl<'a> EmptyEncoder<'a> {
        const TEMPLATE: [u8; 8] = {
            let block = [0; 8];
            let block = with(block, 0, (0u16).to_le_bytes());
            let block = with(block, 2, (7u16).to_le_bytes());
            let block = with(block, 4, (3u16).to_le_bytes());
            let block = with(block, 6, (4u16).to_le_bytes());
            block
        };
        /// Begins a message at the start of `buffer`: its header is written, every optional field is null, the
        /// others are zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if header and block do not fit.
        #[inline(always)]
        pub fn new(buffer: &'a mut [u8]) -> Result<Self, EncodeError> {
            let mut tail = Tail::new(buffer);
            let block = tail.chunk::<8>("Empty")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: EmptyStage {
                    reached: 0,
                    ..EmptyStage::CLOSED
                },
            })
        }
        /// Ends the message: groups and data that were not written are empty. Returns its length in bytes, with
        /// the header.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if they do not fit.
        #[inline(always)]
        pub fn finish(mut self) -> Result<usize, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            Ok(self.tail.position())
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct EmptyStage {
        reached: u8,
    }
    impl EmptyStage {
        const CLOSED: Self = Self { reached: 0u8 };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
        }
        /// Completes what is open and fills in what is skipped before `member`.
        #[inline(always)]
        fn advance<'a>(
            &mut self,
            tail: &mut Tail<'a>,
            member: u8,
        ) -> Result<(), EncodeError> {
            if self.is_at(member) {
                return Ok(());
            }
            let (stage, rest, advanced) = self.skip_to(tail.take(), member);
            *self = stage;
            *tail = rest;
            advanced
        }
        #[cold]
        #[inline(never)]
        fn skip_to(
            mut self,
            mut tail: Tail<'_>,
            member: u8,
        ) -> (Self, Tail<'_>, Result<(), EncodeError>) {
            let advanced = self.fill(&mut tail, member);
            (self, tail, advanced)
        }
        fn fill(&mut self, tail: &mut Tail<'_>, member: u8) -> Result<(), EncodeError> {
            if self.reached > member {
                return Err(
                    ::gapless_schema::sbe::write::too_late(
                        match member {
                            _ => "Empty",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Empty` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Empty {}
    impl Default for Empty {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {}
        }
    }
    impl Empty {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &EmptyDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {})
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut EmptyEncoder<'_>,
        ) -> Result<(), EncodeError> {
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            0
        }
    }
    /// Appends the fields of `Empty` as protobuf.
    #[derive(Debug)]
    pub struct EmptyProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> EmptyProtobufEncoder<'a> {
        /// Begins a message at the start of `buffer`; an empty one only counts.
        #[inline]
        pub const fn new(buffer: &'a mut [u8]) -> Self {
            Self {
                writer: ::gapless_schema::protobuf::Writer::new(buffer),
            }
        }
        /// Ends the message and returns its length in bytes.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit.
        #[inline]
        pub fn finish(self) -> Result<usize, EncodeError> {
            self.writer.finish("Empty")
        }
    }
    /// A field of `Empty` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum EmptyField {}
    /// Goes over the fields of `Empty` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct EmptyProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> EmptyProtobufDecoder<'a> {
        /// Begins at the start of `payload`.
        #[inline]
        #[must_use]
        pub const fn new(payload: &'a [u8]) -> Self {
            Self {
                reader: ::gapless_schema::protobuf::Reader::new(payload),
            }
        }
        /// The next field that the schema knows; others are skipped. `None` at the end.
        ///
        /// # Errors
        /// What is wrong with the payload and where; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<EmptyField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<EmptyField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Empty")? {
                match key {
                    _ => *reader = reader.other(key, "Empty", &[])?,
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for EmptyProtobufDecoder<'a> {
        type Item = Result<EmptyField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Empty {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut EmptyProtobufEncoder<'_>) {}
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: EmptyProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {}
            }
            Ok(())
        }
    }
    impl ::gapless_schema::Message for EmptyDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 7u16;
        const NAME: &'static str = "Empty";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = EmptyDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<EmptyDecoder<'_>, DecodeError> {
            EmptyDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for EmptyEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 7u16;
        const NAME: &'static str = "Empty";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = EmptyEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<EmptyEncoder<'_>, EncodeError> {
            EmptyEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: EmptyEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for EmptyProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 7u16;
        const NAME: &'static str = "Empty";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = EmptyProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<EmptyProtobufDecoder<'_>, DecodeError> {
            Ok(EmptyProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for EmptyProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 7u16;
        const NAME: &'static str = "Empty";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = EmptyProtobufEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<EmptyProtobufEncoder<'_>, EncodeError> {
            Ok(EmptyProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: EmptyProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Empty {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 7u16;
        const NAME: &'static str = "Empty";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&EmptyDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = EmptyEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Empty {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 7u16;
        const NAME: &'static str = "Empty";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(EmptyProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = EmptyProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = EmptyProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
}
