// Generated from a schema (gapless.extension.v2, id 5, version 2). Do not edit: change the schema.

/// Messages of `gapless.extension.v2`.
///
/// Schema id 5, version 2.
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
pub mod extension_v2 {
    use ::gapless_schema::sbe::block::{
        field, field_mut, from_offset, late_field, with, with_repeated,
    };
    use ::gapless_schema::sbe::{Entry as _, Tail};
    use ::gapless_schema::{DecodeError, EncodeError};
    /// Id of the schema.
    pub const SCHEMA_ID: u16 = 5u16;
    /// Version of the schema.
    pub const SCHEMA_VERSION: u64 = 2u64;
    /// Enum `Side`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Side {
        /// Value `buy`.
        Buy,
        /// Value `sell`.
        Sell,
        /// Value `cross`.
        ///
        /// Since version 1.
        Cross,
        /// A number that this version of the schema does not name.
        Unknown(u8),
    }
    impl Side {
        /// The number that means null where a field is optional.
        pub const NULL: u8 = (0u8);
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: u8) -> Self {
            match raw {
                66u8 => Self::Buy,
                83u8 => Self::Sell,
                67u8 => Self::Cross,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u8 {
            match self {
                Self::Buy => (66u8),
                Self::Sell => (83u8),
                Self::Cross => (67u8),
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
    /// Set `Flags`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Flags(u8);
    impl Flags {
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
        /// Choice `hidden`.
        #[inline]
        #[must_use]
        pub const fn hidden(self) -> bool {
            self.0 & 1 != 0
        }
        /// With choice `hidden` set or not.
        #[inline]
        #[must_use]
        pub const fn with_hidden(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 1) } else { Self(self.0 & !1) }
        }
        /// Choice `postOnly`.
        ///
        /// Since version 2.
        #[inline]
        #[must_use]
        pub const fn post_only(self) -> bool {
            self.0 & 2 != 0
        }
        /// With choice `postOnly` set or not.
        #[inline]
        #[must_use]
        pub const fn with_post_only(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 2) } else { Self(self.0 & !2) }
        }
    }
    impl ::gapless_schema::protobuf::Value for Flags {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(Self(<u8 as ::gapless_schema::protobuf::Value>::read(reader, field)?))
        }
    }
    /// Reads composite `Venue` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct VenueDecoder<'a> {
        block: &'a [u8; 2],
        acting: &'a [u8],
        version: u64,
    }
    impl<'a> VenueDecoder<'a> {
        /// Whether its first member has the null value, which makes the whole composite null where it is optional.
        #[inline]
        #[must_use]
        pub fn is_null(&self) -> bool {
            let raw = field::<0, 2, 2>(self.block);
            let value = u16::from_le_bytes(*raw);
            value == u16::MAX
        }
        /// Field `country`.
        #[inline]
        #[must_use]
        pub fn country(&self) -> u16 {
            let raw = field::<0, 2, 2>(self.block);
            let value = u16::from_le_bytes(*raw);
            value
        }
        /// Field `segment`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn segment(&self) -> Option<u16> {
            let raw = late_field::<2>(self.acting, self.version, 1, 2)?;
            let value = u16::from_le_bytes(*raw);
            if value == u16::MAX { None } else { Some(value) }
        }
    }
    /// Writes `Venue` where it will lie.
    #[derive(Debug)]
    pub struct VenueEncoder<'a> {
        block: &'a mut [u8; 4],
    }
    impl<'a> VenueEncoder<'a> {
        /// Field `country`.
        #[inline]
        pub fn country(&mut self, value: u16) -> &mut Self {
            *field_mut::<0, 2, 4>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `segment`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn segment(&mut self, value: u16) -> &mut Self {
            *field_mut::<2, 2, 4>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `segment`, to null if there is no value.
        #[inline]
        pub fn segment_or_null(&mut self, value: Option<u16>) -> &mut Self {
            match value {
                Some(value) => self.segment(value),
                None => self.segment(u16::MAX),
            }
        }
    }
    /// `Venue` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Venue {
        /// Field `country`.
        pub country: u16,
        /// Field `segment`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        pub segment: Option<u16>,
    }
    impl Default for Venue {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                country: Default::default(),
                segment: None,
            }
        }
    }
    impl Venue {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &VenueDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                country: decoder.country(),
                segment: decoder.segment(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut VenueEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.country;
                encoder.country(*value);
            }
            if let Some(value) = &self.segment {
                if (*value) == u16::MAX {
                    return Err(EncodeError::Range {
                        field: "Venue.segment",
                        range: "of its type without the null value",
                    });
                }
                encoder.segment(*value);
            }
            Ok(())
        }
    }
    /// Appends the fields of `Venue` as protobuf.
    #[derive(Debug)]
    pub struct VenueProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> VenueProtobufEncoder<'w, 'a> {
        /// Field `country`.
        #[inline]
        pub fn country(&mut self, value: u16) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `segment`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn segment(&mut self, value: u16) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
    }
    /// A field of `Venue` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum VenueField {
        /// Field `country`.
        Country(u16),
        /// Field `segment`.
        ///
        /// Since version 1.
        Segment(u16),
    }
    /// Goes over the fields of `Venue` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct VenueProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> VenueProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<VenueField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<VenueField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Venue")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                VenueField::Country(
                                    <u16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Venue.country",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                VenueField::Segment(
                                    <u16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Venue.segment",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Venue",
                                &[(1u32, "Venue.country"), (2u32, "Venue.segment")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for VenueProtobufDecoder<'a> {
        type Item = Result<VenueField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Venue {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut VenueProtobufEncoder<'_, '_>) {
            {
                let value = &self.country;
                encoder.country(*value);
            }
            if let Some(value) = &self.segment {
                encoder.segment(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: VenueProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    VenueField::Country(value) => self.country = value,
                    VenueField::Segment(value) => self.segment = Some(value),
                }
            }
            Ok(())
        }
    }
    /// Reads composite `Limits` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct LimitsDecoder<'a> {
        block: &'a [u8; 8],
    }
    impl<'a> LimitsDecoder<'a> {
        /// Whether its first member has the null value, which makes the whole composite null where it is optional.
        #[inline]
        #[must_use]
        pub fn is_null(&self) -> bool {
            let raw = field::<0, 4, 8>(self.block);
            let value = i32::from_le_bytes(*raw);
            value == i32::MIN
        }
        /// Field `low`.
        #[inline]
        #[must_use]
        pub fn low(&self) -> i32 {
            let raw = field::<0, 4, 8>(self.block);
            let value = i32::from_le_bytes(*raw);
            value
        }
        /// Field `high`.
        #[inline]
        #[must_use]
        pub fn high(&self) -> i32 {
            let raw = field::<4, 4, 8>(self.block);
            let value = i32::from_le_bytes(*raw);
            value
        }
    }
    /// Writes `Limits` where it will lie.
    #[derive(Debug)]
    pub struct LimitsEncoder<'a> {
        block: &'a mut [u8; 8],
    }
    impl<'a> LimitsEncoder<'a> {
        /// Field `low`.
        #[inline]
        pub fn low(&mut self, value: i32) -> &mut Self {
            *field_mut::<0, 4, 8>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `high`.
        #[inline]
        pub fn high(&mut self, value: i32) -> &mut Self {
            *field_mut::<4, 4, 8>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// `Limits` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Limits {
        /// Field `low`.
        pub low: i32,
        /// Field `high`.
        pub high: i32,
    }
    impl Default for Limits {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                low: Default::default(),
                high: Default::default(),
            }
        }
    }
    impl Limits {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &LimitsDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                low: decoder.low(),
                high: decoder.high(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut LimitsEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.low;
                encoder.low(*value);
            }
            {
                let value = &self.high;
                encoder.high(*value);
            }
            Ok(())
        }
    }
    /// Appends the fields of `Limits` as protobuf.
    #[derive(Debug)]
    pub struct LimitsProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> LimitsProtobufEncoder<'w, 'a> {
        /// Field `low`.
        #[inline]
        pub fn low(&mut self, value: i32) -> &mut Self {
            self.writer.sint(1u32, i64::from(value));
            self
        }
        /// Field `high`.
        #[inline]
        pub fn high(&mut self, value: i32) -> &mut Self {
            self.writer.sint(2u32, i64::from(value));
            self
        }
    }
    /// A field of `Limits` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum LimitsField {
        /// Field `low`.
        Low(i32),
        /// Field `high`.
        High(i32),
    }
    /// Goes over the fields of `Limits` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct LimitsProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> LimitsProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<LimitsField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<LimitsField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Limits")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                LimitsField::Low(
                                    <i32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Limits.low",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                LimitsField::High(
                                    <i32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Limits.high",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Limits",
                                &[(1u32, "Limits.low"), (2u32, "Limits.high")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for LimitsProtobufDecoder<'a> {
        type Item = Result<LimitsField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Limits {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut LimitsProtobufEncoder<'_, '_>) {
            {
                let value = &self.low;
                encoder.low(*value);
            }
            {
                let value = &self.high;
                encoder.high(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: LimitsProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    LimitsField::Low(value) => self.low = value,
                    LimitsField::High(value) => self.high = value,
                }
            }
            Ok(())
        }
    }
    /// Reads message `Order` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct OrderDecoder<'a> {
        block: &'a [u8; 11],
        acting: &'a [u8],
        version: u64,
        group_legs: ::gapless_schema::sbe::Group<'a, OrderLegsDecoder<'a>>,
        group_parties: ::gapless_schema::sbe::Group<'a, OrderPartiesDecoder<'a>>,
        data_comment: &'a [u8],
    }
    impl<'a> OrderDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Order")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Order", SCHEMA_ID, 1u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            if version >= 2 { 35 } else { if version >= 1 { 19 } else { 11 } }
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    11,
                >(block_length, Self::needed_length_at(version), version, "Order")?;
            let group_legs = {
                let dimension = reader.chunk::<4>("Order.legs")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            let group_parties = if version < 1 {
                ::gapless_schema::sbe::Group::empty()
            } else {
                {
                    let dimension = reader.chunk::<4>("Order.parties")?;
                    ::gapless_schema::sbe::Group::parse(
                        reader,
                        u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                        u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                        version,
                    )?
                }
            };
            let data_comment = if version < 2 {
                &[]
            } else {
                {
                    let length = usize::try_from(
                            u16::from_le_bytes(*reader.chunk::<2>("Order.comment")?),
                        )
                        .unwrap_or(usize::MAX);
                    reader.slice(length, "Order.comment")?
                }
            };
            Ok(Self {
                block,
                acting,
                version,
                group_legs,
                group_parties,
                data_comment,
            })
        }
        /// Field `orderId`.
        #[inline]
        #[must_use]
        pub fn order_id(&self) -> u64 {
            let raw = field::<0, 8, 11>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `side`.
        #[inline]
        #[must_use]
        pub fn side(&self) -> Side {
            let raw = field::<8, 1, 11>(self.block);
            let value = Side::from_raw(u8::from_le_bytes(*raw));
            value
        }
        /// Field `venue`.
        #[inline]
        #[must_use]
        pub fn venue(&self) -> VenueDecoder<'a> {
            let raw = field::<9, 2, 11>(self.block);
            let value = VenueDecoder {
                block: raw,
                acting: from_offset(self.acting, 9),
                version: self.version,
            };
            value
        }
        /// Field `quantity`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn quantity(&self) -> Option<u32> {
            let raw = late_field::<4>(self.acting, self.version, 1, 13)?;
            let value = u32::from_le_bytes(*raw);
            if value == u32::MAX { None } else { Some(value) }
        }
        /// Field `flags`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn flags(&self) -> Option<Flags> {
            let raw = late_field::<1>(self.acting, self.version, 1, 17)?;
            let value = Flags::from_raw(u8::from_le_bytes(*raw));
            if false { None } else { Some(value) }
        }
        /// Field `otherSide`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn other_side(&self) -> Option<Side> {
            let raw = late_field::<1>(self.acting, self.version, 1, 18)?;
            let value = Side::from_raw(u8::from_le_bytes(*raw));
            if u8::from_le_bytes(*raw) == (0u8) { None } else { Some(value) }
        }
        /// Field `limits`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn limits(&self) -> Option<LimitsDecoder<'a>> {
            let raw = late_field::<8>(self.acting, self.version, 2, 19)?;
            let value = LimitsDecoder { block: raw };
            if value.is_null() { None } else { Some(value) }
        }
        /// Field `levels`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn levels(&self) -> Option<[i16; 2]> {
            let raw = late_field::<4>(self.acting, self.version, 2, 27)?;
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
        /// Field `text`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn text(&self) -> Option<&'a [u8; 4]> {
            let raw = late_field::<4>(self.acting, self.version, 2, 31)?;
            let value = raw;
            if value[0] == (0u8) { None } else { Some(value) }
        }
        /// Field `text` as text, up to the first NUL.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn text_str(&self) -> Result<Option<&'a str>, DecodeError> {
            match self.text() {
                Some(bytes) => {
                    Ok(
                        Some(
                            ::gapless_schema::sbe::text::utf8(
                                ::gapless_schema::sbe::text::until_nul(bytes),
                                "Order.text",
                            )?,
                        ),
                    )
                }
                None => Ok(None),
            }
        }
        /// Group `legs`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn legs(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, OrderLegsDecoder<'a>> {
            self.group_legs
        }
        /// Group `parties`: an iterator over its entries.
        ///
        /// Since version 1.
        #[inline]
        #[must_use]
        pub const fn parties(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, OrderPartiesDecoder<'a>> {
            self.group_parties
        }
        /// Data `comment`.
        ///
        /// Since version 2.
        #[inline]
        #[must_use]
        pub const fn comment(&self) -> &'a [u8] {
            self.data_comment
        }
        /// Data `comment` as text.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn comment_str(&self) -> Result<&'a str, DecodeError> {
            ::gapless_schema::sbe::text::utf8(self.data_comment, "Order.comment")
        }
    }
    /// Writes `Order` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct OrderEncoder<'a> {
        block: &'a mut [u8; 43],
        tail: Tail<'a>,
        stage: OrderStage,
    }
    impl<'a> OrderEncoder<'a> {
        const TEMPLATE: [u8; 43] = {
            let block = [0; 43];
            let block = with(block, 0, (35u16).to_le_bytes());
            let block = with(block, 2, (1u16).to_le_bytes());
            let block = with(block, 4, (5u16).to_le_bytes());
            let block = with(block, 6, (2u16).to_le_bytes());
            let block = with(block, 19, u16::MAX.to_le_bytes());
            let block = with(block, 21, u32::MAX.to_le_bytes());
            let block = with(block, 26, (0u8).to_le_bytes());
            let block = with(block, 27, i32::MIN.to_le_bytes());
            let block = with_repeated(block, 35, i16::MIN.to_le_bytes(), 2);
            let block = with_repeated(block, 39, (0u8).to_le_bytes(), 4);
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
            let block = tail.chunk::<43>("Order")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: OrderStage {
                    reached: 0,
                    ..OrderStage::CLOSED
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
        /// Field `orderId`.
        #[inline]
        pub fn order_id(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 43>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `side`.
        #[inline]
        pub fn side(&mut self, value: Side) -> &mut Self {
            *field_mut::<16, 1, 43>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `venue`.
        #[inline]
        pub fn venue(&mut self) -> VenueEncoder<'_> {
            VenueEncoder {
                block: field_mut::<17, 4, 43>(self.block),
            }
        }
        /// Field `quantity`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn quantity(&mut self, value: u32) -> &mut Self {
            *field_mut::<21, 4, 43>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `quantity`, to null if there is no value.
        #[inline]
        pub fn quantity_or_null(&mut self, value: Option<u32>) -> &mut Self {
            match value {
                Some(value) => self.quantity(value),
                None => self.quantity(u32::MAX),
            }
        }
        /// Field `flags`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn flags(&mut self, value: Flags) -> &mut Self {
            *field_mut::<25, 1, 43>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Sets field `flags`, to null if there is no value.
        #[inline]
        pub fn flags_or_null(&mut self, value: Option<Flags>) -> &mut Self {
            match value {
                Some(value) => self.flags(value),
                None => self.flags(Flags::default()),
            }
        }
        /// Field `otherSide`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn other_side(&mut self, value: Side) -> &mut Self {
            *field_mut::<26, 1, 43>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Sets field `otherSide`, to null if there is no value.
        #[inline]
        pub fn other_side_or_null(&mut self, value: Option<Side>) -> &mut Self {
            match value {
                Some(value) => self.other_side(value),
                None => self.other_side(Side::from_raw((0u8))),
            }
        }
        /// Field `limits`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn limits(&mut self) -> LimitsEncoder<'_> {
            LimitsEncoder {
                block: field_mut::<27, 8, 43>(self.block),
            }
        }
        /// Field `levels`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn levels(&mut self, value: &[i16; 2]) -> &mut Self {
            for (slot, item) in field_mut::<35, 4, 43>(self.block)
                .as_chunks_mut::<2>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `levels`, to null if there is no value.
        #[inline]
        pub fn levels_or_null(&mut self, value: Option<&[i16; 2]>) -> &mut Self {
            match value {
                Some(value) => self.levels(value),
                None => self.levels(&[i16::MIN; 2]),
            }
        }
        /// Field `text`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn text(&mut self, value: &[u8; 4]) -> &mut Self {
            for (slot, item) in field_mut::<39, 4, 43>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `text`, to null if there is no value.
        #[inline]
        pub fn text_or_null(&mut self, value: Option<&[u8; 4]>) -> &mut Self {
            match value {
                Some(value) => self.text(value),
                None => self.text(&[(0u8); 4]),
            }
        }
        /// Sets field `text` to a text, filled up with NUL.
        ///
        /// # Errors
        /// [`EncodeError::Text`] if it is too long, holds a NUL or is not in the character encoding.
        #[inline]
        pub fn text_str(&mut self, value: &str) -> Result<&mut Self, EncodeError> {
            ::gapless_schema::sbe::text::put(
                field_mut::<39, 4, 43>(self.block),
                value.as_bytes(),
                "Order.text",
            )?;
            Ok(self)
        }
        /// Begins group `legs`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn legs(&mut self) -> Result<OrderLegsGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Order.legs")?;
            *dimension = OrderLegsGroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(OrderLegsGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
                stage: &mut self.stage.child_legs,
            })
        }
        /// Begins group `parties`, without entries yet.
        ///
        /// Since version 1.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn parties(
            &mut self,
        ) -> Result<OrderPartiesGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 1u8)?;
            let dimension = self.tail.chunk("Order.parties")?;
            *dimension = OrderPartiesGroupEncoder::EMPTY;
            self.stage.reached = 1u8 + 1;
            Ok(OrderPartiesGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
        /// Data `comment`.
        ///
        /// Since version 2.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn comment(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 2u8)?;
            if value.len() as u64 > 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Order.comment",
                        value.len(),
                        65534,
                    ),
                );
            }
            self.tail
                .put_data((value.len() as u16).to_le_bytes(), value, "Order.comment")?;
            self.stage.reached = 2u8 + 1;
            Ok(self)
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct OrderStage {
        reached: u8,
        child_legs: OrderLegsStage,
    }
    impl OrderStage {
        const CLOSED: Self = Self {
            reached: 3u8,
            child_legs: OrderLegsStage::CLOSED,
        };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member && (self.reached != 1u8 || self.child_legs.is_at(1u8))
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
                            0u8 => "Order.legs",
                            1u8 => "Order.parties",
                            2u8 => "Order.comment",
                            _ => "Order",
                        },
                    ),
                );
            }
            if self.reached == 1u8 {
                self.child_legs.advance(tail, 1u8)?;
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(OrderLegsGroupEncoder::EMPTY, "Order.legs")?;
            }
            if self.reached <= 1u8 && 1u8 < member {
                tail.put(OrderPartiesGroupEncoder::EMPTY, "Order.parties")?;
            }
            if self.reached <= 2u8 && 2u8 < member {
                tail.put([0; 2], "Order.comment")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Order` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Order {
        /// Field `orderId`.
        pub order_id: u64,
        /// Field `side`.
        pub side: Side,
        /// Field `venue`.
        pub venue: Venue,
        /// Field `quantity`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        pub quantity: Option<u32>,
        /// Field `flags`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        pub flags: Flags,
        /// Field `otherSide`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        pub other_side: Option<Side>,
        /// Field `limits`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        pub limits: Option<Limits>,
        /// Field `levels`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        pub levels: Option<[i16; 2]>,
        /// Field `text`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        pub text: Option<String>,
        /// Group `legs`.
        pub legs: Vec<OrderLegs>,
        /// Group `parties`.
        ///
        /// Since version 1.
        pub parties: Vec<OrderParties>,
        /// Data `comment`.
        ///
        /// Since version 2.
        pub comment: String,
    }
    impl Default for Order {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                order_id: Default::default(),
                side: Default::default(),
                venue: Default::default(),
                quantity: None,
                flags: Default::default(),
                other_side: None,
                limits: None,
                levels: None,
                text: None,
                legs: Default::default(),
                parties: Default::default(),
                comment: Default::default(),
            }
        }
    }
    impl Order {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &OrderDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                order_id: decoder.order_id(),
                side: decoder.side(),
                venue: {
                    let item = decoder.venue();
                    Venue::from_decoder(&item)?
                },
                quantity: decoder.quantity(),
                flags: decoder.flags().unwrap_or_default(),
                other_side: decoder.other_side(),
                limits: match decoder.limits() {
                    Some(item) => Some(Limits::from_decoder(&item)?),
                    None => None,
                },
                levels: decoder.levels(),
                text: match decoder.text() {
                    Some(item) => {
                        Some(
                            ::gapless_schema::sbe::text::utf8(
                                    ::gapless_schema::sbe::text::until_nul(item),
                                    "Order.text",
                                )?
                                .to_owned(),
                        )
                    }
                    None => None,
                },
                legs: {
                    let entries = decoder.legs();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(OrderLegs::from_decoder(&entry)?);
                    }
                    list
                },
                parties: {
                    let entries = decoder.parties();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(OrderParties::from_decoder(&entry)?);
                    }
                    list
                },
                comment: ::gapless_schema::sbe::text::utf8(
                        decoder.comment(),
                        "Order.comment",
                    )?
                    .to_owned(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut OrderEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.order_id;
                encoder.order_id(*value);
            }
            {
                let value = &self.side;
                encoder.side(*value);
            }
            {
                let value = &self.venue;
                value.encode_into(&mut encoder.venue())?;
            }
            if let Some(value) = &self.quantity {
                if (*value) == u32::MAX {
                    return Err(EncodeError::Range {
                        field: "Order.quantity",
                        range: "of its type without the null value",
                    });
                }
                encoder.quantity(*value);
            }
            {
                let value = &self.flags;
                encoder.flags(*value);
            }
            if let Some(value) = &self.other_side {
                if (*value).raw() == (0u8) {
                    return Err(EncodeError::Range {
                        field: "Order.otherSide",
                        range: "of its type without the null value",
                    });
                }
                encoder.other_side(*value);
            }
            if let Some(value) = &self.limits {
                value.encode_into(&mut encoder.limits())?;
            }
            if let Some(value) = &self.levels {
                encoder.levels(value);
            }
            if let Some(value) = &self.text {
                encoder.text_str(value)?;
            }
            let mut group = encoder.legs()?;
            for item in &self.legs {
                item.encode_into(&mut group.entry()?)?;
            }
            let mut group = encoder.parties()?;
            for item in &self.parties {
                item.encode_into(&mut group.entry()?)?;
            }
            encoder.comment(&self.comment)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            35 + 4 + self.legs.iter().map(|entry| entry.sbe_body_length()).sum::<usize>()
                + 4 + self.parties.len() * 5 + 2 + self.comment.len()
        }
    }
    /// Appends the fields of `Order` as protobuf.
    #[derive(Debug)]
    pub struct OrderProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> OrderProtobufEncoder<'a> {
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
            self.writer.finish("Order")
        }
        /// Field `orderId`.
        #[inline]
        pub fn order_id(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `side`.
        #[inline]
        pub fn side(&mut self, value: Side) -> &mut Self {
            self.writer.uint(2u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `venue`.
        #[inline]
        pub fn venue(
            &mut self,
            write: impl FnOnce(&mut VenueProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(3u32);
            write(
                &mut VenueProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Field `quantity`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn quantity(&mut self, value: u32) -> &mut Self {
            self.writer.uint(5u32, u64::from(value));
            self
        }
        /// Field `flags`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn flags(&mut self, value: Flags) -> &mut Self {
            self.writer.uint(6u32, u64::from(value.raw()));
            self
        }
        /// Field `otherSide`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn other_side(&mut self, value: Side) -> &mut Self {
            self.writer.uint(7u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `limits`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn limits(
            &mut self,
            write: impl FnOnce(&mut LimitsProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(8u32);
            write(
                &mut LimitsProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Field `levels`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn levels(&mut self, value: &[i16; 2]) -> &mut Self {
            let mark = self.writer.open(9u32);
            for item in value {
                self.writer.packed_sint(i64::from((*item)));
            }
            self.writer.close(mark);
            self
        }
        /// Field `text`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn text(&mut self, value: &str) -> &mut Self {
            self.writer.bytes(10u32, value.as_bytes());
            self
        }
        /// Group `legs`: appends one entry.
        #[inline]
        pub fn legs(
            &mut self,
            write: impl FnOnce(&mut OrderLegsProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(4u32);
            write(
                &mut OrderLegsProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Group `parties`: appends one entry.
        ///
        /// Since version 1.
        #[inline]
        pub fn parties(
            &mut self,
            write: impl FnOnce(&mut OrderPartiesProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(11u32);
            write(
                &mut OrderPartiesProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Data `comment`.
        ///
        /// Since version 2.
        #[inline]
        pub fn comment(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(12u32, value.as_bytes());
            }
            self
        }
    }
    /// A field of `Order` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum OrderField<'a> {
        /// Field `orderId`.
        OrderId(u64),
        /// Field `side`.
        Side(Side),
        /// Field `venue`.
        Venue(VenueProtobufDecoder<'a>),
        /// Field `quantity`.
        ///
        /// Since version 1.
        Quantity(u32),
        /// Field `flags`.
        ///
        /// Since version 1.
        Flags(Flags),
        /// Field `otherSide`.
        ///
        /// Since version 1.
        OtherSide(Side),
        /// Field `limits`.
        ///
        /// Since version 2.
        Limits(LimitsProtobufDecoder<'a>),
        /// Field `levels`.
        ///
        /// Since version 2.
        Levels(::gapless_schema::protobuf::Packed<'a, i16>),
        /// Field `text`.
        ///
        /// Since version 2.
        Text(&'a str),
        /// Group `legs`: one entry.
        Legs(OrderLegsProtobufDecoder<'a>),
        /// Group `parties`: one entry.
        ///
        /// Since version 1.
        Parties(OrderPartiesProtobufDecoder<'a>),
        /// Data `comment`.
        ///
        /// Since version 2.
        Comment(&'a str),
    }
    /// Goes over the fields of `Order` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct OrderProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> OrderProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<OrderField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<OrderField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Order")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                OrderField::OrderId(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Order.orderId",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                OrderField::Side(
                                    <Side as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Order.side",
                                    )?,
                                ),
                            ),
                        );
                    }
                    26u32 => {
                        return Ok(
                            Some(
                                OrderField::Venue(VenueProtobufDecoder {
                                    reader: reader.message("Order.venue")?,
                                }),
                            ),
                        );
                    }
                    40u32 => {
                        return Ok(
                            Some(
                                OrderField::Quantity(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Order.quantity",
                                    )?,
                                ),
                            ),
                        );
                    }
                    48u32 => {
                        return Ok(
                            Some(
                                OrderField::Flags(
                                    <Flags as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Order.flags",
                                    )?,
                                ),
                            ),
                        );
                    }
                    56u32 => {
                        return Ok(
                            Some(
                                OrderField::OtherSide(
                                    <Side as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Order.otherSide",
                                    )?,
                                ),
                            ),
                        );
                    }
                    66u32 => {
                        return Ok(
                            Some(
                                OrderField::Limits(LimitsProtobufDecoder {
                                    reader: reader.message("Order.limits")?,
                                }),
                            ),
                        );
                    }
                    74u32 => {
                        return Ok(
                            Some(OrderField::Levels(reader.packed("Order.levels")?)),
                        );
                    }
                    72u32 => {
                        return Ok(
                            Some(OrderField::Levels(reader.unpacked("Order.levels")?)),
                        );
                    }
                    82u32 => {
                        return Ok(Some(OrderField::Text(reader.text("Order.text")?)));
                    }
                    34u32 => {
                        return Ok(
                            Some(
                                OrderField::Legs(OrderLegsProtobufDecoder {
                                    reader: reader.message("Order.legs")?,
                                }),
                            ),
                        );
                    }
                    90u32 => {
                        return Ok(
                            Some(
                                OrderField::Parties(OrderPartiesProtobufDecoder {
                                    reader: reader.message("Order.parties")?,
                                }),
                            ),
                        );
                    }
                    98u32 => {
                        return Ok(
                            Some(OrderField::Comment(reader.text("Order.comment")?)),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Order",
                                &[
                                    (1u32, "Order.orderId"),
                                    (2u32, "Order.side"),
                                    (3u32, "Order.venue"),
                                    (5u32, "Order.quantity"),
                                    (6u32, "Order.flags"),
                                    (7u32, "Order.otherSide"),
                                    (8u32, "Order.limits"),
                                    (9u32, "Order.levels"),
                                    (10u32, "Order.text"),
                                    (4u32, "Order.legs"),
                                    (11u32, "Order.parties"),
                                    (12u32, "Order.comment"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for OrderProtobufDecoder<'a> {
        type Item = Result<OrderField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Order {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut OrderProtobufEncoder<'_>) {
            {
                let value = &self.order_id;
                encoder.order_id(*value);
            }
            {
                let value = &self.side;
                encoder.side(*value);
            }
            {
                let value = &self.venue;
                encoder.venue(|encoder| value.encode_protobuf(encoder));
            }
            if let Some(value) = &self.quantity {
                encoder.quantity(*value);
            }
            {
                let value = &self.flags;
                encoder.flags(*value);
            }
            if let Some(value) = &self.other_side {
                encoder.other_side(*value);
            }
            if let Some(value) = &self.limits {
                encoder.limits(|encoder| value.encode_protobuf(encoder));
            }
            if let Some(value) = &self.levels {
                encoder.levels(value);
            }
            if let Some(value) = &self.text {
                encoder.text(value);
            }
            for entry in &self.legs {
                encoder.legs(|encoder| entry.encode_protobuf(encoder));
            }
            for entry in &self.parties {
                encoder.parties(|encoder| entry.encode_protobuf(encoder));
            }
            encoder.comment(&self.comment);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: OrderProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            let mut count_levels = 0;
            while let Some(field) = decoder.next_field()? {
                match field {
                    OrderField::OrderId(value) => self.order_id = value,
                    OrderField::Side(value) => self.side = value,
                    OrderField::Venue(value) => self.venue.merge_protobuf(value)?,
                    OrderField::Quantity(value) => self.quantity = Some(value),
                    OrderField::Flags(value) => self.flags = value,
                    OrderField::OtherSide(value) => self.other_side = Some(value),
                    OrderField::Limits(value) => {
                        self.limits
                            .get_or_insert_with(Default::default)
                            .merge_protobuf(value)?
                    }
                    OrderField::Levels(value) => {
                        for item in value {
                            let item = item?;
                            match self.levels.get_or_insert([0; 2]).get_mut(count_levels)
                            {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder.reader.error("Order.levels", "more than 2 values"),
                                    );
                                }
                            }
                            count_levels += 1;
                        }
                    }
                    OrderField::Text(value) => self.text = Some(value.to_owned()),
                    OrderField::Legs(value) => {
                        let mut entry = OrderLegs::default();
                        entry.merge_protobuf(value)?;
                        self.legs.push(entry);
                    }
                    OrderField::Parties(value) => {
                        let mut entry = OrderParties::default();
                        entry.merge_protobuf(value)?;
                        self.parties.push(entry);
                    }
                    OrderField::Comment(value) => self.comment = value.to_owned(),
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Order.legs` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct OrderLegsDecoder<'a> {
        block: &'a [u8; 4],
        acting: &'a [u8],
        version: u64,
        group_allocations: ::gapless_schema::sbe::Group<
            'a,
            OrderLegsAllocationsDecoder<'a>,
        >,
    }
    impl<'a> OrderLegsDecoder<'a> {
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            if version >= 2 { 12 } else { 4 }
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
                >(block_length, Self::needed_length_at(version), version, "Order.legs")?;
            let group_allocations = {
                let dimension = reader.chunk::<4>("Order.legs.allocations")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            Ok(Self {
                block,
                acting,
                version,
                group_allocations,
            })
        }
        /// Field `ratio`.
        #[inline]
        #[must_use]
        pub fn ratio(&self) -> u32 {
            let raw = field::<0, 4, 4>(self.block);
            let value = u32::from_le_bytes(*raw);
            value
        }
        /// Field `price`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn price(&self) -> Option<f64> {
            let raw = late_field::<8>(self.acting, self.version, 2, 4)?;
            let value = f64::from_le_bytes(*raw);
            if value.is_nan() { None } else { Some(value) }
        }
        /// Group `allocations`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn allocations(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, OrderLegsAllocationsDecoder<'a>> {
            self.group_allocations
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for OrderLegsDecoder<'a> {
        const NAME: &'static str = "Order.legs";
        const HAS_MEMBERS: bool = true;
        #[inline]
        fn needed_length(version: u64) -> usize {
            Self::needed_length_at(version)
        }
        #[inline(always)]
        fn from_block(block: &'a [u8], version: u64) -> Option<Self> {
            None
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
    /// Writes `Order.legs` where it will lie.
    #[derive(Debug)]
    pub struct OrderLegsEncoder<'g, 'a> {
        block: &'a mut [u8; 12],
        tail: &'g mut Tail<'a>,
        stage: &'g mut OrderLegsStage,
    }
    impl<'g, 'a> OrderLegsEncoder<'g, 'a> {
        const TEMPLATE: [u8; 12] = {
            let block = [0; 12];
            let block = with(block, 4, f64::NAN.to_le_bytes());
            block
        };
        /// Field `ratio`.
        #[inline]
        pub fn ratio(&mut self, value: u32) -> &mut Self {
            *field_mut::<0, 4, 12>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `price`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn price(&mut self, value: f64) -> &mut Self {
            *field_mut::<4, 8, 12>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `price`, to null if there is no value.
        #[inline]
        pub fn price_or_null(&mut self, value: Option<f64>) -> &mut Self {
            match value {
                Some(value) => self.price(value),
                None => self.price(f64::NAN),
            }
        }
        /// Begins group `allocations`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn allocations(
            &mut self,
        ) -> Result<OrderLegsAllocationsGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Order.legs.allocations")?;
            *dimension = OrderLegsAllocationsGroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(OrderLegsAllocationsGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct OrderLegsStage {
        reached: u8,
    }
    impl OrderLegsStage {
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
                            0u8 => "Order.legs.allocations",
                            _ => "Order.legs",
                        },
                    ),
                );
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(
                    OrderLegsAllocationsGroupEncoder::EMPTY,
                    "Order.legs.allocations",
                )?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Order.legs` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OrderLegs {
        /// Field `ratio`.
        pub ratio: u32,
        /// Field `price`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        pub price: Option<f64>,
        /// Group `allocations`.
        pub allocations: Vec<OrderLegsAllocations>,
    }
    impl Default for OrderLegs {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                ratio: Default::default(),
                price: None,
                allocations: Default::default(),
            }
        }
    }
    impl OrderLegs {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &OrderLegsDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                ratio: decoder.ratio(),
                price: decoder.price(),
                allocations: {
                    let entries = decoder.allocations();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(OrderLegsAllocations::from_decoder(&entry)?);
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
            encoder: &mut OrderLegsEncoder<'_, '_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.ratio;
                encoder.ratio(*value);
            }
            if let Some(value) = &self.price {
                encoder.price(*value);
            }
            let mut group = encoder.allocations()?;
            for item in &self.allocations {
                item.encode_into(&mut group.entry()?)?;
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            12 + 4 + self.allocations.len() * 6
        }
    }
    /// Appends the fields of `Order.legs` as protobuf.
    #[derive(Debug)]
    pub struct OrderLegsProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> OrderLegsProtobufEncoder<'w, 'a> {
        /// Field `ratio`.
        #[inline]
        pub fn ratio(&mut self, value: u32) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `price`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn price(&mut self, value: f64) -> &mut Self {
            self.writer.double(3u32, value);
            self
        }
        /// Group `allocations`: appends one entry.
        #[inline]
        pub fn allocations(
            &mut self,
            write: impl FnOnce(&mut OrderLegsAllocationsProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(2u32);
            write(
                &mut OrderLegsAllocationsProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
    }
    /// A field of `Order.legs` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum OrderLegsField<'a> {
        /// Field `ratio`.
        Ratio(u32),
        /// Field `price`.
        ///
        /// Since version 2.
        Price(f64),
        /// Group `allocations`: one entry.
        Allocations(OrderLegsAllocationsProtobufDecoder<'a>),
    }
    /// Goes over the fields of `Order.legs` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct OrderLegsProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> OrderLegsProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<OrderLegsField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<OrderLegsField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Order.legs")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                OrderLegsField::Ratio(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Order.legs.ratio",
                                    )?,
                                ),
                            ),
                        );
                    }
                    25u32 => {
                        return Ok(
                            Some(
                                OrderLegsField::Price(
                                    <f64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Order.legs.price",
                                    )?,
                                ),
                            ),
                        );
                    }
                    18u32 => {
                        return Ok(
                            Some(
                                OrderLegsField::Allocations(OrderLegsAllocationsProtobufDecoder {
                                    reader: reader.message("Order.legs.allocations")?,
                                }),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Order.legs",
                                &[
                                    (1u32, "Order.legs.ratio"),
                                    (3u32, "Order.legs.price"),
                                    (2u32, "Order.legs.allocations"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for OrderLegsProtobufDecoder<'a> {
        type Item = Result<OrderLegsField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl OrderLegs {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut OrderLegsProtobufEncoder<'_, '_>) {
            {
                let value = &self.ratio;
                encoder.ratio(*value);
            }
            if let Some(value) = &self.price {
                encoder.price(*value);
            }
            for entry in &self.allocations {
                encoder.allocations(|encoder| entry.encode_protobuf(encoder));
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: OrderLegsProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    OrderLegsField::Ratio(value) => self.ratio = value,
                    OrderLegsField::Price(value) => self.price = Some(value),
                    OrderLegsField::Allocations(value) => {
                        let mut entry = OrderLegsAllocations::default();
                        entry.merge_protobuf(value)?;
                        self.allocations.push(entry);
                    }
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Order.legs.allocations` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct OrderLegsAllocationsDecoder<'a> {
        block: &'a [u8; 4],
        acting: &'a [u8],
        version: u64,
    }
    impl<'a> OrderLegsAllocationsDecoder<'a> {
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            if version >= 1 { 6 } else { 4 }
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
                    "Order.legs.allocations",
                )?;
            Ok(Self { block, acting, version })
        }
        /// Field `account`.
        #[inline]
        #[must_use]
        pub fn account(&self) -> u32 {
            let raw = field::<0, 4, 4>(self.block);
            let value = u32::from_le_bytes(*raw);
            value
        }
        /// Field `share`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn share(&self) -> Option<i16> {
            let raw = late_field::<2>(self.acting, self.version, 1, 4)?;
            let value = i16::from_le_bytes(*raw);
            if value == i16::MIN { None } else { Some(value) }
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for OrderLegsAllocationsDecoder<'a> {
        const NAME: &'static str = "Order.legs.allocations";
        const HAS_MEMBERS: bool = false;
        #[inline]
        fn needed_length(version: u64) -> usize {
            Self::needed_length_at(version)
        }
        #[inline(always)]
        fn from_block(block: &'a [u8], version: u64) -> Option<Self> {
            Some(Self {
                block: block.first_chunk()?,
                acting: block,
                version,
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
    /// Writes `Order.legs.allocations` where it will lie.
    #[derive(Debug)]
    pub struct OrderLegsAllocationsEncoder<'a> {
        block: &'a mut [u8; 6],
    }
    impl<'a> OrderLegsAllocationsEncoder<'a> {
        const TEMPLATE: [u8; 6] = {
            let block = [0; 6];
            let block = with(block, 4, i16::MIN.to_le_bytes());
            block
        };
        /// Field `account`.
        #[inline]
        pub fn account(&mut self, value: u32) -> &mut Self {
            *field_mut::<0, 4, 6>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `share`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn share(&mut self, value: i16) -> &mut Self {
            *field_mut::<4, 2, 6>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `share`, to null if there is no value.
        #[inline]
        pub fn share_or_null(&mut self, value: Option<i16>) -> &mut Self {
            match value {
                Some(value) => self.share(value),
                None => self.share(i16::MIN),
            }
        }
    }
    /// `Order.legs.allocations` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OrderLegsAllocations {
        /// Field `account`.
        pub account: u32,
        /// Field `share`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        pub share: Option<i16>,
    }
    impl Default for OrderLegsAllocations {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                account: Default::default(),
                share: None,
            }
        }
    }
    impl OrderLegsAllocations {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &OrderLegsAllocationsDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                account: decoder.account(),
                share: decoder.share(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut OrderLegsAllocationsEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.account;
                encoder.account(*value);
            }
            if let Some(value) = &self.share {
                if (*value) == i16::MIN {
                    return Err(EncodeError::Range {
                        field: "Order.legs.allocations.share",
                        range: "of its type without the null value",
                    });
                }
                encoder.share(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            6
        }
    }
    /// Appends the fields of `Order.legs.allocations` as protobuf.
    #[derive(Debug)]
    pub struct OrderLegsAllocationsProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> OrderLegsAllocationsProtobufEncoder<'w, 'a> {
        /// Field `account`.
        #[inline]
        pub fn account(&mut self, value: u32) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `share`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn share(&mut self, value: i16) -> &mut Self {
            self.writer.sint(2u32, i64::from(value));
            self
        }
    }
    /// A field of `Order.legs.allocations` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum OrderLegsAllocationsField {
        /// Field `account`.
        Account(u32),
        /// Field `share`.
        ///
        /// Since version 1.
        Share(i16),
    }
    /// Goes over the fields of `Order.legs.allocations` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct OrderLegsAllocationsProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> OrderLegsAllocationsProtobufDecoder<'a> {
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
        pub fn next_field(
            &mut self,
        ) -> Result<Option<OrderLegsAllocationsField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(
            &mut self,
        ) -> Result<Option<OrderLegsAllocationsField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Order.legs.allocations")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                OrderLegsAllocationsField::Account(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Order.legs.allocations.account",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                OrderLegsAllocationsField::Share(
                                    <i16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Order.legs.allocations.share",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Order.legs.allocations",
                                &[
                                    (1u32, "Order.legs.allocations.account"),
                                    (2u32, "Order.legs.allocations.share"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for OrderLegsAllocationsProtobufDecoder<'a> {
        type Item = Result<OrderLegsAllocationsField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl OrderLegsAllocations {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut OrderLegsAllocationsProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.account;
                encoder.account(*value);
            }
            if let Some(value) = &self.share {
                encoder.share(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: OrderLegsAllocationsProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    OrderLegsAllocationsField::Account(value) => self.account = value,
                    OrderLegsAllocationsField::Share(value) => self.share = Some(value),
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Order.legs.allocations`.
    #[derive(Debug)]
    pub struct OrderLegsAllocationsGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> OrderLegsAllocationsGroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 4] = {
            let block = [0; 4];
            let block = with(block, 0, (6u16).to_le_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(&mut self) -> Result<OrderLegsAllocationsEncoder<'a>, EncodeError> {
            if self.count >= 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Order.legs.allocations",
                        self.count as usize + 1,
                        65534,
                    ),
                );
            }
            let block = self.tail.chunk("Order.legs.allocations")?;
            *block = OrderLegsAllocationsEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            Ok(OrderLegsAllocationsEncoder {
                block,
            })
        }
    }
    /// Writes the entries of group `Order.legs`.
    #[derive(Debug)]
    pub struct OrderLegsGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
        stage: &'g mut OrderLegsStage,
    }
    impl<'g, 'a> OrderLegsGroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 4] = {
            let block = [0; 4];
            let block = with(block, 0, (12u16).to_le_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(&mut self) -> Result<OrderLegsEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(self.tail, 1u8)?;
            if self.count >= 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Order.legs",
                        self.count as usize + 1,
                        65534,
                    ),
                );
            }
            let block = self.tail.chunk("Order.legs")?;
            *block = OrderLegsEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            self.stage.reached = 0;
            Ok(OrderLegsEncoder {
                block,
                tail: self.tail,
                stage: self.stage,
            })
        }
    }
    /// Reads an entry of group `Order.parties` where it lies.
    ///
    /// Since version 1.
    #[derive(Clone, Copy, Debug)]
    pub struct OrderPartiesDecoder<'a> {
        block: &'a [u8; 1],
        acting: &'a [u8],
        version: u64,
    }
    impl<'a> OrderPartiesDecoder<'a> {
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            if version >= 2 { 5 } else { 1 }
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
                    "Order.parties",
                )?;
            Ok(Self { block, acting, version })
        }
        /// Field `role`.
        #[inline]
        #[must_use]
        pub fn role(&self) -> u8 {
            let raw = field::<0, 1, 1>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `id`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn id(&self) -> Option<u32> {
            let raw = late_field::<4>(self.acting, self.version, 2, 1)?;
            let value = u32::from_le_bytes(*raw);
            if value == u32::MAX { None } else { Some(value) }
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for OrderPartiesDecoder<'a> {
        const NAME: &'static str = "Order.parties";
        const HAS_MEMBERS: bool = false;
        #[inline]
        fn needed_length(version: u64) -> usize {
            Self::needed_length_at(version)
        }
        #[inline(always)]
        fn from_block(block: &'a [u8], version: u64) -> Option<Self> {
            Some(Self {
                block: block.first_chunk()?,
                acting: block,
                version,
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
    /// Writes `Order.parties` where it will lie.
    ///
    /// Since version 1.
    #[derive(Debug)]
    pub struct OrderPartiesEncoder<'a> {
        block: &'a mut [u8; 5],
    }
    impl<'a> OrderPartiesEncoder<'a> {
        const TEMPLATE: [u8; 5] = {
            let block = [0; 5];
            let block = with(block, 1, u32::MAX.to_le_bytes());
            block
        };
        /// Field `role`.
        #[inline]
        pub fn role(&mut self, value: u8) -> &mut Self {
            *field_mut::<0, 1, 5>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `id`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn id(&mut self, value: u32) -> &mut Self {
            *field_mut::<1, 4, 5>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `id`, to null if there is no value.
        #[inline]
        pub fn id_or_null(&mut self, value: Option<u32>) -> &mut Self {
            match value {
                Some(value) => self.id(value),
                None => self.id(u32::MAX),
            }
        }
    }
    /// `Order.parties` as an object: any field in any order.
    ///
    /// Since version 1.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OrderParties {
        /// Field `role`.
        pub role: u8,
        /// Field `id`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        pub id: Option<u32>,
    }
    impl Default for OrderParties {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                role: Default::default(),
                id: None,
            }
        }
    }
    impl OrderParties {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &OrderPartiesDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                role: decoder.role(),
                id: decoder.id(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut OrderPartiesEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.role;
                encoder.role(*value);
            }
            if let Some(value) = &self.id {
                if (*value) == u32::MAX {
                    return Err(EncodeError::Range {
                        field: "Order.parties.id",
                        range: "of its type without the null value",
                    });
                }
                encoder.id(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            5
        }
    }
    /// Appends the fields of `Order.parties` as protobuf.
    ///
    /// Since version 1.
    #[derive(Debug)]
    pub struct OrderPartiesProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> OrderPartiesProtobufEncoder<'w, 'a> {
        /// Field `role`.
        #[inline]
        pub fn role(&mut self, value: u8) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `id`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn id(&mut self, value: u32) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
    }
    /// A field of `Order.parties` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum OrderPartiesField {
        /// Field `role`.
        Role(u8),
        /// Field `id`.
        ///
        /// Since version 2.
        Id(u32),
    }
    /// Goes over the fields of `Order.parties` in a protobuf payload.
    ///
    /// Since version 1.
    #[derive(Clone, Copy, Debug)]
    pub struct OrderPartiesProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> OrderPartiesProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<OrderPartiesField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<OrderPartiesField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Order.parties")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                OrderPartiesField::Role(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Order.parties.role",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                OrderPartiesField::Id(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Order.parties.id",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Order.parties",
                                &[(1u32, "Order.parties.role"), (2u32, "Order.parties.id")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for OrderPartiesProtobufDecoder<'a> {
        type Item = Result<OrderPartiesField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl OrderParties {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut OrderPartiesProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.role;
                encoder.role(*value);
            }
            if let Some(value) = &self.id {
                encoder.id(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: OrderPartiesProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    OrderPartiesField::Role(value) => self.role = value,
                    OrderPartiesField::Id(value) => self.id = Some(value),
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Order.parties`.
    #[derive(Debug)]
    pub struct OrderPartiesGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> OrderPartiesGroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 4] = {
            let block = [0; 4];
            let block = with(block, 0, (5u16).to_le_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(&mut self) -> Result<OrderPartiesEncoder<'a>, EncodeError> {
            if self.count >= 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Order.parties",
                        self.count as usize + 1,
                        65534,
                    ),
                );
            }
            let block = self.tail.chunk("Order.parties")?;
            *block = OrderPartiesEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            Ok(OrderPartiesEncoder { block })
        }
    }
    impl ::gapless_schema::Message for OrderDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Order";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = OrderDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<OrderDecoder<'_>, DecodeError> {
            OrderDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for OrderEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Order";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = OrderEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<OrderEncoder<'_>, EncodeError> {
            OrderEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: OrderEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for OrderProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Order";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = OrderProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<OrderProtobufDecoder<'_>, DecodeError> {
            Ok(OrderProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for OrderProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Order";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = OrderProtobufEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<OrderProtobufEncoder<'_>, EncodeError> {
            Ok(OrderProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: OrderProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Order {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Order";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&OrderDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = OrderEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Order {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Order";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(OrderProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = OrderProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = OrderProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Reads message `Note` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct NoteDecoder<'a> {
        block: &'a [u8; 8],
        data_text: &'a [u8],
        data_author: &'a [u8],
    }
    impl<'a> NoteDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Note")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Note", SCHEMA_ID, 2u16)?;
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
                >(block_length, Self::needed_length_at(version), version, "Note")?;
            let data_text = {
                let length = usize::try_from(
                        u16::from_le_bytes(*reader.chunk::<2>("Note.text")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Note.text")?
            };
            let data_author = if version < 1 {
                &[]
            } else {
                {
                    let length = usize::try_from(
                            u16::from_le_bytes(*reader.chunk::<2>("Note.author")?),
                        )
                        .unwrap_or(usize::MAX);
                    reader.slice(length, "Note.author")?
                }
            };
            Ok(Self {
                block,
                data_text,
                data_author,
            })
        }
        /// Field `at`.
        #[inline]
        #[must_use]
        pub fn at(&self) -> u64 {
            let raw = field::<0, 8, 8>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Data `text`.
        #[inline]
        #[must_use]
        pub const fn text(&self) -> &'a [u8] {
            self.data_text
        }
        /// Data `text` as text.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn text_str(&self) -> Result<&'a str, DecodeError> {
            ::gapless_schema::sbe::text::utf8(self.data_text, "Note.text")
        }
        /// Data `author`.
        ///
        /// Since version 1.
        #[inline]
        #[must_use]
        pub const fn author(&self) -> &'a [u8] {
            self.data_author
        }
        /// Data `author` as text.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn author_str(&self) -> Result<&'a str, DecodeError> {
            ::gapless_schema::sbe::text::utf8(self.data_author, "Note.author")
        }
    }
    /// Writes `Note` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct NoteEncoder<'a> {
        block: &'a mut [u8; 16],
        tail: Tail<'a>,
        stage: NoteStage,
    }
    impl<'a> NoteEncoder<'a> {
        const TEMPLATE: [u8; 16] = {
            let block = [0; 16];
            let block = with(block, 0, (8u16).to_le_bytes());
            let block = with(block, 2, (2u16).to_le_bytes());
            let block = with(block, 4, (5u16).to_le_bytes());
            let block = with(block, 6, (2u16).to_le_bytes());
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
            let block = tail.chunk::<16>("Note")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: NoteStage {
                    reached: 0,
                    ..NoteStage::CLOSED
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
            self.stage.advance(&mut self.tail, 2u8)?;
            Ok(self.tail.position())
        }
        /// Field `at`.
        #[inline]
        pub fn at(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 16>(self.block) = value.to_le_bytes();
            self
        }
        /// Data `text`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn text(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 0u8)?;
            if value.len() as u64 > 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Note.text",
                        value.len(),
                        65534,
                    ),
                );
            }
            self.tail.put_data((value.len() as u16).to_le_bytes(), value, "Note.text")?;
            self.stage.reached = 0u8 + 1;
            Ok(self)
        }
        /// Data `author`.
        ///
        /// Since version 1.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn author(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 1u8)?;
            if value.len() as u64 > 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Note.author",
                        value.len(),
                        65534,
                    ),
                );
            }
            self.tail
                .put_data((value.len() as u16).to_le_bytes(), value, "Note.author")?;
            self.stage.reached = 1u8 + 1;
            Ok(self)
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct NoteStage {
        reached: u8,
    }
    impl NoteStage {
        const CLOSED: Self = Self { reached: 2u8 };
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
                            0u8 => "Note.text",
                            1u8 => "Note.author",
                            _ => "Note",
                        },
                    ),
                );
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put([0; 2], "Note.text")?;
            }
            if self.reached <= 1u8 && 1u8 < member {
                tail.put([0; 2], "Note.author")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Note` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Note {
        /// Field `at`.
        pub at: u64,
        /// Data `text`.
        pub text: String,
        /// Data `author`.
        ///
        /// Since version 1.
        pub author: String,
    }
    impl Default for Note {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                at: Default::default(),
                text: Default::default(),
                author: Default::default(),
            }
        }
    }
    impl Note {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &NoteDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                at: decoder.at(),
                text: ::gapless_schema::sbe::text::utf8(decoder.text(), "Note.text")?
                    .to_owned(),
                author: ::gapless_schema::sbe::text::utf8(
                        decoder.author(),
                        "Note.author",
                    )?
                    .to_owned(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut NoteEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.at;
                encoder.at(*value);
            }
            encoder.text(&self.text)?;
            encoder.author(&self.author)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            8 + 2 + self.text.len() + 2 + self.author.len()
        }
    }
    /// Appends the fields of `Note` as protobuf.
    #[derive(Debug)]
    pub struct NoteProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> NoteProtobufEncoder<'a> {
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
            self.writer.finish("Note")
        }
        /// Field `at`.
        #[inline]
        pub fn at(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Data `text`.
        #[inline]
        pub fn text(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(2u32, value.as_bytes());
            }
            self
        }
        /// Data `author`.
        ///
        /// Since version 1.
        #[inline]
        pub fn author(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(3u32, value.as_bytes());
            }
            self
        }
    }
    /// A field of `Note` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum NoteField<'a> {
        /// Field `at`.
        At(u64),
        /// Data `text`.
        Text(&'a str),
        /// Data `author`.
        ///
        /// Since version 1.
        Author(&'a str),
    }
    /// Goes over the fields of `Note` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct NoteProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> NoteProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<NoteField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<NoteField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Note")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                NoteField::At(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Note.at",
                                    )?,
                                ),
                            ),
                        );
                    }
                    18u32 => return Ok(Some(NoteField::Text(reader.text("Note.text")?))),
                    26u32 => {
                        return Ok(Some(NoteField::Author(reader.text("Note.author")?)));
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Note",
                                &[
                                    (1u32, "Note.at"),
                                    (2u32, "Note.text"),
                                    (3u32, "Note.author"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for NoteProtobufDecoder<'a> {
        type Item = Result<NoteField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Note {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut NoteProtobufEncoder<'_>) {
            {
                let value = &self.at;
                encoder.at(*value);
            }
            encoder.text(&self.text);
            encoder.author(&self.author);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: NoteProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    NoteField::At(value) => self.at = value,
                    NoteField::Text(value) => self.text = value.to_owned(),
                    NoteField::Author(value) => self.author = value.to_owned(),
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::Message for NoteDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "Note";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = NoteDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<NoteDecoder<'_>, DecodeError> {
            NoteDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for NoteEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "Note";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = NoteEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<NoteEncoder<'_>, EncodeError> {
            NoteEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: NoteEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for NoteProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "Note";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = NoteProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<NoteProtobufDecoder<'_>, DecodeError> {
            Ok(NoteProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for NoteProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "Note";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = NoteProtobufEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<NoteProtobufEncoder<'_>, EncodeError> {
            Ok(NoteProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: NoteProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Note {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "Note";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&NoteDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = NoteEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Note {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "Note";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(NoteProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = NoteProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = NoteProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Reads message `Late` where it lies.
    ///
    /// Since version 1.
    #[derive(Clone, Copy, Debug)]
    pub struct LateDecoder<'a> {
        block: &'a [u8; 1],
        acting: &'a [u8],
        version: u64,
    }
    impl<'a> LateDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Late")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Late", SCHEMA_ID, 3u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            if version >= 2 { 2 } else { 1 }
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
                >(block_length, Self::needed_length_at(version), version, "Late")?;
            Ok(Self { block, acting, version })
        }
        /// Field `first`.
        #[inline]
        #[must_use]
        pub fn first(&self) -> u8 {
            let raw = field::<0, 1, 1>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `second`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn second(&self) -> Option<u8> {
            let raw = late_field::<1>(self.acting, self.version, 2, 1)?;
            let value = u8::from_le_bytes(*raw);
            if value == u8::MAX { None } else { Some(value) }
        }
    }
    /// Writes `Late` where it will lie.
    ///
    /// Since version 1.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct LateEncoder<'a> {
        block: &'a mut [u8; 10],
        tail: Tail<'a>,
        stage: LateStage,
    }
    impl<'a> LateEncoder<'a> {
        const TEMPLATE: [u8; 10] = {
            let block = [0; 10];
            let block = with(block, 0, (2u16).to_le_bytes());
            let block = with(block, 2, (3u16).to_le_bytes());
            let block = with(block, 4, (5u16).to_le_bytes());
            let block = with(block, 6, (2u16).to_le_bytes());
            let block = with(block, 9, u8::MAX.to_le_bytes());
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
            let block = tail.chunk::<10>("Late")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: LateStage {
                    reached: 0,
                    ..LateStage::CLOSED
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
        /// Field `first`.
        #[inline]
        pub fn first(&mut self, value: u8) -> &mut Self {
            *field_mut::<8, 1, 10>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `second`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn second(&mut self, value: u8) -> &mut Self {
            *field_mut::<9, 1, 10>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `second`, to null if there is no value.
        #[inline]
        pub fn second_or_null(&mut self, value: Option<u8>) -> &mut Self {
            match value {
                Some(value) => self.second(value),
                None => self.second(u8::MAX),
            }
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct LateStage {
        reached: u8,
    }
    impl LateStage {
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
                            _ => "Late",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Late` as an object: any field in any order.
    ///
    /// Since version 1.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Late {
        /// Field `first`.
        pub first: u8,
        /// Field `second`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        pub second: Option<u8>,
    }
    impl Default for Late {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                first: Default::default(),
                second: None,
            }
        }
    }
    impl Late {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &LateDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                first: decoder.first(),
                second: decoder.second(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut LateEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.first;
                encoder.first(*value);
            }
            if let Some(value) = &self.second {
                if (*value) == u8::MAX {
                    return Err(EncodeError::Range {
                        field: "Late.second",
                        range: "of its type without the null value",
                    });
                }
                encoder.second(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            2
        }
    }
    /// Appends the fields of `Late` as protobuf.
    ///
    /// Since version 1.
    #[derive(Debug)]
    pub struct LateProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> LateProtobufEncoder<'a> {
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
            self.writer.finish("Late")
        }
        /// Field `first`.
        #[inline]
        pub fn first(&mut self, value: u8) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `second`.
        ///
        /// Since version 2.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn second(&mut self, value: u8) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
    }
    /// A field of `Late` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum LateField {
        /// Field `first`.
        First(u8),
        /// Field `second`.
        ///
        /// Since version 2.
        Second(u8),
    }
    /// Goes over the fields of `Late` in a protobuf payload.
    ///
    /// Since version 1.
    #[derive(Clone, Copy, Debug)]
    pub struct LateProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> LateProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<LateField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<LateField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Late")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                LateField::First(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Late.first",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                LateField::Second(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Late.second",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Late",
                                &[(1u32, "Late.first"), (2u32, "Late.second")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for LateProtobufDecoder<'a> {
        type Item = Result<LateField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Late {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut LateProtobufEncoder<'_>) {
            {
                let value = &self.first;
                encoder.first(*value);
            }
            if let Some(value) = &self.second {
                encoder.second(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: LateProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    LateField::First(value) => self.first = value,
                    LateField::Second(value) => self.second = Some(value),
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::Message for LateDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Late";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = LateDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<LateDecoder<'_>, DecodeError> {
            LateDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for LateEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Late";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = LateEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<LateEncoder<'_>, EncodeError> {
            LateEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: LateEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for LateProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Late";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = LateProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<LateProtobufDecoder<'_>, DecodeError> {
            Ok(LateProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for LateProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Late";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = LateProtobufEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<LateProtobufEncoder<'_>, EncodeError> {
            Ok(LateProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: LateProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Late {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Late";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&LateDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = LateEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Late {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Late";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(LateProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = LateProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = LateProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
}
