// Generated from a schema (gapless.big.endian, id 4, version 1). Do not edit: change the schema.

/// Messages of `gapless.big.endian`.
///
/// Schema id 4, version 1.
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
pub mod big_endian {
    use ::gapless_schema::sbe::block::{
        field, field_mut, from_offset, late_field, with, with_repeated,
    };
    use ::gapless_schema::sbe::{Entry as _, Tail};
    use ::gapless_schema::{DecodeError, EncodeError};
    /// Id of the schema.
    pub const SCHEMA_ID: u16 = 4u16;
    /// Version of the schema.
    pub const SCHEMA_VERSION: u64 = 1u64;
    /// Enum `Level`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Level {
        /// Value `low`.
        Low,
        /// Value `high`.
        High,
        /// A number that this version of the schema does not name.
        Unknown(u16),
    }
    impl Level {
        /// The number that means null where a field is optional.
        pub const NULL: u16 = u16::MAX;
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: u16) -> Self {
            match raw {
                1u16 => Self::Low,
                513u16 => Self::High,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u16 {
            match self {
                Self::Low => (1u16),
                Self::High => (513u16),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for Level {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::Low
        }
    }
    impl ::gapless_schema::protobuf::Value for Level {
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
    /// Set `Marks`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Marks(u32);
    impl Marks {
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
        /// Choice `one`.
        #[inline]
        #[must_use]
        pub const fn one(self) -> bool {
            self.0 & 2 != 0
        }
        /// With choice `one` set or not.
        #[inline]
        #[must_use]
        pub const fn with_one(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 2) } else { Self(self.0 & !2) }
        }
        /// Choice `twenty`.
        #[inline]
        #[must_use]
        pub const fn twenty(self) -> bool {
            self.0 & 1048576 != 0
        }
        /// With choice `twenty` set or not.
        #[inline]
        #[must_use]
        pub const fn with_twenty(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 1048576) } else { Self(self.0 & !1048576) }
        }
    }
    impl ::gapless_schema::protobuf::Value for Marks {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(Self(<u32 as ::gapless_schema::protobuf::Value>::read(reader, field)?))
        }
    }
    /// Reads composite `Point` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct PointDecoder<'a> {
        block: &'a [u8; 12],
    }
    impl<'a> PointDecoder<'a> {
        /// Whether its first member has the null value, which makes the whole composite null where it is optional.
        #[inline]
        #[must_use]
        pub fn is_null(&self) -> bool {
            let raw = field::<0, 4, 12>(self.block);
            let value = i32::from_be_bytes(*raw);
            value == i32::MIN
        }
        /// Field `x`.
        #[inline]
        #[must_use]
        pub fn x(&self) -> i32 {
            let raw = field::<0, 4, 12>(self.block);
            let value = i32::from_be_bytes(*raw);
            value
        }
        /// Field `y`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn y(&self) -> Option<f64> {
            let raw = field::<4, 8, 12>(self.block);
            let value = f64::from_be_bytes(*raw);
            if value.is_nan() { None } else { Some(value) }
        }
    }
    /// Writes `Point` where it will lie.
    #[derive(Debug)]
    pub struct PointEncoder<'a> {
        block: &'a mut [u8; 12],
    }
    impl<'a> PointEncoder<'a> {
        /// Field `x`.
        #[inline]
        pub fn x(&mut self, value: i32) -> &mut Self {
            *field_mut::<0, 4, 12>(self.block) = value.to_be_bytes();
            self
        }
        /// Field `y`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn y(&mut self, value: f64) -> &mut Self {
            *field_mut::<4, 8, 12>(self.block) = value.to_be_bytes();
            self
        }
        /// Sets field `y`, to null if there is no value.
        #[inline]
        pub fn y_or_null(&mut self, value: Option<f64>) -> &mut Self {
            match value {
                Some(value) => self.y(value),
                None => self.y(f64::NAN),
            }
        }
    }
    /// `Point` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Point {
        /// Field `x`.
        pub x: i32,
        /// Field `y`.
        ///
        /// `None` if it is null.
        pub y: Option<f64>,
    }
    impl Default for Point {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                x: Default::default(),
                y: None,
            }
        }
    }
    impl Point {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &PointDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                x: decoder.x(),
                y: decoder.y(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut PointEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.x;
                encoder.x(*value);
            }
            if let Some(value) = &self.y {
                encoder.y(*value);
            }
            Ok(())
        }
    }
    /// Appends the fields of `Point` as protobuf.
    #[derive(Debug)]
    pub struct PointProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> PointProtobufEncoder<'w, 'a> {
        /// Field `x`.
        #[inline]
        pub fn x(&mut self, value: i32) -> &mut Self {
            self.writer.sint(1u32, i64::from(value));
            self
        }
        /// Field `y`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn y(&mut self, value: f64) -> &mut Self {
            self.writer.double(2u32, value);
            self
        }
    }
    /// A field of `Point` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum PointField {
        /// Field `x`.
        X(i32),
        /// Field `y`.
        Y(f64),
    }
    /// Goes over the fields of `Point` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct PointProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> PointProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<PointField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<PointField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Point")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                PointField::X(
                                    <i32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Point.x",
                                    )?,
                                ),
                            ),
                        );
                    }
                    17u32 => {
                        return Ok(
                            Some(
                                PointField::Y(
                                    <f64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Point.y",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Point",
                                &[(1u32, "Point.x"), (2u32, "Point.y")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for PointProtobufDecoder<'a> {
        type Item = Result<PointField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Point {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut PointProtobufEncoder<'_, '_>) {
            {
                let value = &self.x;
                encoder.x(*value);
            }
            if let Some(value) = &self.y {
                encoder.y(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: PointProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    PointField::X(value) => self.x = value,
                    PointField::Y(value) => self.y = Some(value),
                }
            }
            Ok(())
        }
    }
    /// Reads message `Big` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct BigDecoder<'a> {
        block: &'a [u8; 40],
        group_outer: ::gapless_schema::sbe::Group<'a, BigOuterDecoder<'a>>,
        group_plain: ::gapless_schema::sbe::Group<'a, BigPlainDecoder<'a>>,
        data_small: &'a [u8],
        data_middle: &'a [u8],
        data_wide: &'a [u8],
    }
    impl<'a> BigDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<6>("Big")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_be_bytes(*field::<4, 2, 6>(header))),
                template_id: u64::from(u16::from_be_bytes(*field::<2, 2, 6>(header))),
                schema_id: u64::from(u8::from_be_bytes(*field::<0, 1, 6>(header))),
                version: u64::from(u8::from_be_bytes(*field::<1, 1, 6>(header))),
            };
            header.expect("Big", SCHEMA_ID, 513u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            40
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    40,
                >(block_length, Self::needed_length_at(version), version, "Big")?;
            let group_outer = {
                let dimension = reader.chunk::<4>("Big.outer")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_be_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_be_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            let group_plain = {
                let dimension = reader.chunk::<2>("Big.plain")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u8::from_be_bytes(*field::<0, 1, 2>(dimension))),
                    u64::from(u8::from_be_bytes(*field::<1, 1, 2>(dimension))),
                    version,
                )?
            };
            let data_small = {
                let length = usize::try_from(
                        u8::from_be_bytes(*reader.chunk::<1>("Big.small")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Big.small")?
            };
            let data_middle = {
                let length = usize::try_from(
                        u16::from_be_bytes(*reader.chunk::<2>("Big.middle")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Big.middle")?
            };
            let data_wide = {
                let length = usize::try_from(
                        u32::from_be_bytes(*reader.chunk::<4>("Big.wide")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Big.wide")?
            };
            Ok(Self {
                block,
                group_outer,
                group_plain,
                data_small,
                data_middle,
                data_wide,
            })
        }
        /// Field `whole`.
        #[inline]
        #[must_use]
        pub fn whole(&self) -> i64 {
            let raw = field::<0, 8, 40>(self.block);
            let value = i64::from_be_bytes(*raw);
            value
        }
        /// Field `part`.
        #[inline]
        #[must_use]
        pub fn part(&self) -> f32 {
            let raw = field::<8, 4, 40>(self.block);
            let value = f32::from_be_bytes(*raw);
            value
        }
        /// Field `shorts`.
        #[inline]
        #[must_use]
        pub fn shorts(&self) -> [i16; 3] {
            let raw = field::<12, 6, 40>(self.block);
            let value = {
                let items = raw.as_chunks::<2>().0;
                core::array::from_fn::<_, 3, _>(|index| i16::from_be_bytes(items[index]))
            };
            value
        }
        /// Field `level`.
        #[inline]
        #[must_use]
        pub fn level(&self) -> Level {
            let raw = field::<18, 2, 40>(self.block);
            let value = Level::from_raw(u16::from_be_bytes(*raw));
            value
        }
        /// Field `marks`.
        #[inline]
        #[must_use]
        pub fn marks(&self) -> Marks {
            let raw = field::<20, 4, 40>(self.block);
            let value = Marks::from_raw(u32::from_be_bytes(*raw));
            value
        }
        /// Field `point`.
        #[inline]
        #[must_use]
        pub fn point(&self) -> PointDecoder<'a> {
            let raw = field::<24, 12, 40>(self.block);
            let value = PointDecoder { block: raw };
            value
        }
        /// Field `maybe`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn maybe(&self) -> Option<u32> {
            let raw = field::<36, 4, 40>(self.block);
            let value = u32::from_be_bytes(*raw);
            if value == u32::MAX { None } else { Some(value) }
        }
        /// Group `outer`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn outer(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, BigOuterDecoder<'a>> {
            self.group_outer
        }
        /// Group `plain`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn plain(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, BigPlainDecoder<'a>> {
            self.group_plain
        }
        /// Data `small`.
        #[inline]
        #[must_use]
        pub const fn small(&self) -> &'a [u8] {
            self.data_small
        }
        /// Data `middle`.
        #[inline]
        #[must_use]
        pub const fn middle(&self) -> &'a [u8] {
            self.data_middle
        }
        /// Data `middle` as text.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn middle_str(&self) -> Result<&'a str, DecodeError> {
            ::gapless_schema::sbe::text::utf8(self.data_middle, "Big.middle")
        }
        /// Data `wide`.
        #[inline]
        #[must_use]
        pub const fn wide(&self) -> &'a [u8] {
            self.data_wide
        }
        /// Data `wide` as text.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn wide_str(&self) -> Result<&'a str, DecodeError> {
            ::gapless_schema::sbe::text::utf8(self.data_wide, "Big.wide")
        }
    }
    /// Writes `Big` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct BigEncoder<'a> {
        block: &'a mut [u8; 46],
        tail: Tail<'a>,
        stage: BigStage,
    }
    impl<'a> BigEncoder<'a> {
        const TEMPLATE: [u8; 46] = {
            let block = [0; 46];
            let block = with(block, 4, (40u16).to_be_bytes());
            let block = with(block, 2, (513u16).to_be_bytes());
            let block = with(block, 0, (4u8).to_be_bytes());
            let block = with(block, 1, (1u8).to_be_bytes());
            let block = with(block, 34, f64::NAN.to_be_bytes());
            let block = with(block, 42, u32::MAX.to_be_bytes());
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
            let block = tail.chunk::<46>("Big")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: BigStage {
                    reached: 0,
                    ..BigStage::CLOSED
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
            self.stage.advance(&mut self.tail, 5u8)?;
            Ok(self.tail.position())
        }
        /// Field `whole`.
        #[inline]
        pub fn whole(&mut self, value: i64) -> &mut Self {
            *field_mut::<6, 8, 46>(self.block) = value.to_be_bytes();
            self
        }
        /// Field `part`.
        #[inline]
        pub fn part(&mut self, value: f32) -> &mut Self {
            *field_mut::<14, 4, 46>(self.block) = value.to_be_bytes();
            self
        }
        /// Field `shorts`.
        #[inline]
        pub fn shorts(&mut self, value: &[i16; 3]) -> &mut Self {
            for (slot, item) in field_mut::<18, 6, 46>(self.block)
                .as_chunks_mut::<2>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_be_bytes();
            }
            self
        }
        /// Field `level`.
        #[inline]
        pub fn level(&mut self, value: Level) -> &mut Self {
            *field_mut::<24, 2, 46>(self.block) = value.raw().to_be_bytes();
            self
        }
        /// Field `marks`.
        #[inline]
        pub fn marks(&mut self, value: Marks) -> &mut Self {
            *field_mut::<26, 4, 46>(self.block) = value.raw().to_be_bytes();
            self
        }
        /// Field `point`.
        #[inline]
        pub fn point(&mut self) -> PointEncoder<'_> {
            PointEncoder {
                block: field_mut::<30, 12, 46>(self.block),
            }
        }
        /// Field `maybe`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe(&mut self, value: u32) -> &mut Self {
            *field_mut::<42, 4, 46>(self.block) = value.to_be_bytes();
            self
        }
        /// Sets field `maybe`, to null if there is no value.
        #[inline]
        pub fn maybe_or_null(&mut self, value: Option<u32>) -> &mut Self {
            match value {
                Some(value) => self.maybe(value),
                None => self.maybe(u32::MAX),
            }
        }
        /// Begins group `outer`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn outer(&mut self) -> Result<BigOuterGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Big.outer")?;
            *dimension = BigOuterGroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(BigOuterGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
                stage: &mut self.stage.child_outer,
            })
        }
        /// Begins group `plain`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn plain(&mut self) -> Result<BigPlainGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 1u8)?;
            let dimension = self.tail.chunk("Big.plain")?;
            *dimension = BigPlainGroupEncoder::EMPTY;
            self.stage.reached = 1u8 + 1;
            Ok(BigPlainGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
        /// Data `small`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn small(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 2u8)?;
            if value.len() as u64 > 254 {
                return Err(
                    ::gapless_schema::sbe::write::too_long("Big.small", value.len(), 254),
                );
            }
            self.tail.put_data((value.len() as u8).to_be_bytes(), value, "Big.small")?;
            self.stage.reached = 2u8 + 1;
            Ok(self)
        }
        /// Data `middle`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn middle(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 3u8)?;
            if value.len() as u64 > 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Big.middle",
                        value.len(),
                        65534,
                    ),
                );
            }
            self.tail.put_data((value.len() as u16).to_be_bytes(), value, "Big.middle")?;
            self.stage.reached = 3u8 + 1;
            Ok(self)
        }
        /// Data `wide`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn wide(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 4u8)?;
            if value.len() as u64 > 1000000 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Big.wide",
                        value.len(),
                        1000000,
                    ),
                );
            }
            self.tail.put_data((value.len() as u32).to_be_bytes(), value, "Big.wide")?;
            self.stage.reached = 4u8 + 1;
            Ok(self)
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct BigStage {
        reached: u8,
        child_outer: BigOuterStage,
    }
    impl BigStage {
        const CLOSED: Self = Self {
            reached: 5u8,
            child_outer: BigOuterStage::CLOSED,
        };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
                && (self.reached != 1u8 || self.child_outer.is_at(2u8))
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
                            0u8 => "Big.outer",
                            1u8 => "Big.plain",
                            2u8 => "Big.small",
                            3u8 => "Big.middle",
                            4u8 => "Big.wide",
                            _ => "Big",
                        },
                    ),
                );
            }
            if self.reached == 1u8 {
                self.child_outer.advance(tail, 2u8)?;
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(BigOuterGroupEncoder::EMPTY, "Big.outer")?;
            }
            if self.reached <= 1u8 && 1u8 < member {
                tail.put(BigPlainGroupEncoder::EMPTY, "Big.plain")?;
            }
            if self.reached <= 2u8 && 2u8 < member {
                tail.put([0; 1], "Big.small")?;
            }
            if self.reached <= 3u8 && 3u8 < member {
                tail.put([0; 2], "Big.middle")?;
            }
            if self.reached <= 4u8 && 4u8 < member {
                tail.put([0; 4], "Big.wide")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Big` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Big {
        /// Field `whole`.
        pub whole: i64,
        /// Field `part`.
        pub part: f32,
        /// Field `shorts`.
        pub shorts: [i16; 3],
        /// Field `level`.
        pub level: Level,
        /// Field `marks`.
        pub marks: Marks,
        /// Field `point`.
        pub point: Point,
        /// Field `maybe`.
        ///
        /// `None` if it is null.
        pub maybe: Option<u32>,
        /// Group `outer`.
        pub outer: Vec<BigOuter>,
        /// Group `plain`.
        pub plain: Vec<BigPlain>,
        /// Data `small`.
        pub small: Vec<u8>,
        /// Data `middle`.
        pub middle: String,
        /// Data `wide`.
        pub wide: String,
    }
    impl Default for Big {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                whole: Default::default(),
                part: Default::default(),
                shorts: [0; 3],
                level: Default::default(),
                marks: Default::default(),
                point: Default::default(),
                maybe: None,
                outer: Default::default(),
                plain: Default::default(),
                small: Default::default(),
                middle: Default::default(),
                wide: Default::default(),
            }
        }
    }
    impl Big {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &BigDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                whole: decoder.whole(),
                part: decoder.part(),
                shorts: decoder.shorts(),
                level: decoder.level(),
                marks: decoder.marks(),
                point: {
                    let item = decoder.point();
                    Point::from_decoder(&item)?
                },
                maybe: decoder.maybe(),
                outer: {
                    let entries = decoder.outer();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(BigOuter::from_decoder(&entry)?);
                    }
                    list
                },
                plain: {
                    let entries = decoder.plain();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(BigPlain::from_decoder(&entry)?);
                    }
                    list
                },
                small: decoder.small().to_vec(),
                middle: ::gapless_schema::sbe::text::utf8(
                        decoder.middle(),
                        "Big.middle",
                    )?
                    .to_owned(),
                wide: ::gapless_schema::sbe::text::utf8(decoder.wide(), "Big.wide")?
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
            encoder: &mut BigEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.whole;
                encoder.whole(*value);
            }
            {
                let value = &self.part;
                encoder.part(*value);
            }
            {
                let value = &self.shorts;
                encoder.shorts(value);
            }
            {
                let value = &self.level;
                encoder.level(*value);
            }
            {
                let value = &self.marks;
                encoder.marks(*value);
            }
            {
                let value = &self.point;
                value.encode_into(&mut encoder.point())?;
            }
            if let Some(value) = &self.maybe {
                if (*value) == u32::MAX {
                    return Err(EncodeError::Range {
                        field: "Big.maybe",
                        range: "of its type without the null value",
                    });
                }
                encoder.maybe(*value);
            }
            let mut group = encoder.outer()?;
            for item in &self.outer {
                item.encode_into(&mut group.entry()?)?;
            }
            let mut group = encoder.plain()?;
            for item in &self.plain {
                item.encode_into(&mut group.entry()?)?;
            }
            encoder.small(&self.small)?;
            encoder.middle(&self.middle)?;
            encoder.wide(&self.wide)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            40 + 4
                + self.outer.iter().map(|entry| entry.sbe_body_length()).sum::<usize>()
                + 2 + self.plain.len() * 1 + 1 + self.small.len() + 2 + self.middle.len()
                + 4 + self.wide.len()
        }
    }
    /// Appends the fields of `Big` as protobuf.
    #[derive(Debug)]
    pub struct BigProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> BigProtobufEncoder<'a> {
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
            self.writer.finish("Big")
        }
        /// Field `whole`.
        #[inline]
        pub fn whole(&mut self, value: i64) -> &mut Self {
            self.writer.sint(1u32, i64::from(value));
            self
        }
        /// Field `part`.
        #[inline]
        pub fn part(&mut self, value: f32) -> &mut Self {
            self.writer.float(2u32, value);
            self
        }
        /// Field `shorts`.
        #[inline]
        pub fn shorts(&mut self, value: &[i16; 3]) -> &mut Self {
            let mark = self.writer.open(3u32);
            for item in value {
                self.writer.packed_sint(i64::from((*item)));
            }
            self.writer.close(mark);
            self
        }
        /// Field `level`.
        #[inline]
        pub fn level(&mut self, value: Level) -> &mut Self {
            self.writer.uint(4u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `marks`.
        #[inline]
        pub fn marks(&mut self, value: Marks) -> &mut Self {
            self.writer.uint(5u32, u64::from(value.raw()));
            self
        }
        /// Field `point`.
        #[inline]
        pub fn point(
            &mut self,
            write: impl FnOnce(&mut PointProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(6u32);
            write(
                &mut PointProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Field `maybe`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn maybe(&mut self, value: u32) -> &mut Self {
            self.writer.uint(7u32, u64::from(value));
            self
        }
        /// Group `outer`: appends one entry.
        #[inline]
        pub fn outer(
            &mut self,
            write: impl FnOnce(&mut BigOuterProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(8u32);
            write(
                &mut BigOuterProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Group `plain`: appends one entry.
        #[inline]
        pub fn plain(
            &mut self,
            write: impl FnOnce(&mut BigPlainProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(9u32);
            write(
                &mut BigPlainProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Data `small`.
        #[inline]
        pub fn small(&mut self, value: &[u8]) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(10u32, value);
            }
            self
        }
        /// Data `middle`.
        #[inline]
        pub fn middle(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(11u32, value.as_bytes());
            }
            self
        }
        /// Data `wide`.
        #[inline]
        pub fn wide(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(12u32, value.as_bytes());
            }
            self
        }
    }
    /// A field of `Big` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum BigField<'a> {
        /// Field `whole`.
        Whole(i64),
        /// Field `part`.
        Part(f32),
        /// Field `shorts`.
        Shorts(::gapless_schema::protobuf::Packed<'a, i16>),
        /// Field `level`.
        Level(Level),
        /// Field `marks`.
        Marks(Marks),
        /// Field `point`.
        Point(PointProtobufDecoder<'a>),
        /// Field `maybe`.
        Maybe(u32),
        /// Group `outer`: one entry.
        Outer(BigOuterProtobufDecoder<'a>),
        /// Group `plain`: one entry.
        Plain(BigPlainProtobufDecoder<'a>),
        /// Data `small`.
        Small(&'a [u8]),
        /// Data `middle`.
        Middle(&'a str),
        /// Data `wide`.
        Wide(&'a str),
    }
    /// Goes over the fields of `Big` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct BigProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> BigProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<BigField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<BigField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Big")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                BigField::Whole(
                                    <i64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Big.whole",
                                    )?,
                                ),
                            ),
                        );
                    }
                    21u32 => {
                        return Ok(
                            Some(
                                BigField::Part(
                                    <f32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Big.part",
                                    )?,
                                ),
                            ),
                        );
                    }
                    26u32 => {
                        return Ok(Some(BigField::Shorts(reader.packed("Big.shorts")?)));
                    }
                    24u32 => {
                        return Ok(Some(BigField::Shorts(reader.unpacked("Big.shorts")?)));
                    }
                    32u32 => {
                        return Ok(
                            Some(
                                BigField::Level(
                                    <Level as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Big.level",
                                    )?,
                                ),
                            ),
                        );
                    }
                    40u32 => {
                        return Ok(
                            Some(
                                BigField::Marks(
                                    <Marks as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Big.marks",
                                    )?,
                                ),
                            ),
                        );
                    }
                    50u32 => {
                        return Ok(
                            Some(
                                BigField::Point(PointProtobufDecoder {
                                    reader: reader.message("Big.point")?,
                                }),
                            ),
                        );
                    }
                    56u32 => {
                        return Ok(
                            Some(
                                BigField::Maybe(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Big.maybe",
                                    )?,
                                ),
                            ),
                        );
                    }
                    66u32 => {
                        return Ok(
                            Some(
                                BigField::Outer(BigOuterProtobufDecoder {
                                    reader: reader.message("Big.outer")?,
                                }),
                            ),
                        );
                    }
                    74u32 => {
                        return Ok(
                            Some(
                                BigField::Plain(BigPlainProtobufDecoder {
                                    reader: reader.message("Big.plain")?,
                                }),
                            ),
                        );
                    }
                    82u32 => return Ok(Some(BigField::Small(reader.bytes("Big.small")?))),
                    90u32 => {
                        return Ok(Some(BigField::Middle(reader.text("Big.middle")?)));
                    }
                    98u32 => return Ok(Some(BigField::Wide(reader.text("Big.wide")?))),
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Big",
                                &[
                                    (1u32, "Big.whole"),
                                    (2u32, "Big.part"),
                                    (3u32, "Big.shorts"),
                                    (4u32, "Big.level"),
                                    (5u32, "Big.marks"),
                                    (6u32, "Big.point"),
                                    (7u32, "Big.maybe"),
                                    (8u32, "Big.outer"),
                                    (9u32, "Big.plain"),
                                    (10u32, "Big.small"),
                                    (11u32, "Big.middle"),
                                    (12u32, "Big.wide"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for BigProtobufDecoder<'a> {
        type Item = Result<BigField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Big {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut BigProtobufEncoder<'_>) {
            {
                let value = &self.whole;
                encoder.whole(*value);
            }
            {
                let value = &self.part;
                encoder.part(*value);
            }
            {
                let value = &self.shorts;
                encoder.shorts(value);
            }
            {
                let value = &self.level;
                encoder.level(*value);
            }
            {
                let value = &self.marks;
                encoder.marks(*value);
            }
            {
                let value = &self.point;
                encoder.point(|encoder| value.encode_protobuf(encoder));
            }
            if let Some(value) = &self.maybe {
                encoder.maybe(*value);
            }
            for entry in &self.outer {
                encoder.outer(|encoder| entry.encode_protobuf(encoder));
            }
            for entry in &self.plain {
                encoder.plain(|encoder| entry.encode_protobuf(encoder));
            }
            encoder.small(&self.small);
            encoder.middle(&self.middle);
            encoder.wide(&self.wide);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: BigProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            let mut count_shorts = 0;
            while let Some(field) = decoder.next_field()? {
                match field {
                    BigField::Whole(value) => self.whole = value,
                    BigField::Part(value) => self.part = value,
                    BigField::Shorts(value) => {
                        for item in value {
                            let item = item?;
                            match (&mut self.shorts).get_mut(count_shorts) {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder.reader.error("Big.shorts", "more than 3 values"),
                                    );
                                }
                            }
                            count_shorts += 1;
                        }
                    }
                    BigField::Level(value) => self.level = value,
                    BigField::Marks(value) => self.marks = value,
                    BigField::Point(value) => self.point.merge_protobuf(value)?,
                    BigField::Maybe(value) => self.maybe = Some(value),
                    BigField::Outer(value) => {
                        let mut entry = BigOuter::default();
                        entry.merge_protobuf(value)?;
                        self.outer.push(entry);
                    }
                    BigField::Plain(value) => {
                        let mut entry = BigPlain::default();
                        entry.merge_protobuf(value)?;
                        self.plain.push(entry);
                    }
                    BigField::Small(value) => self.small = value.to_owned(),
                    BigField::Middle(value) => self.middle = value.to_owned(),
                    BigField::Wide(value) => self.wide = value.to_owned(),
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Big.outer` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct BigOuterDecoder<'a> {
        block: &'a [u8; 2],
        group_middle: ::gapless_schema::sbe::Group<'a, BigOuterMiddleDecoder<'a>>,
        data_note: &'a [u8],
    }
    impl<'a> BigOuterDecoder<'a> {
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            2
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    2,
                >(block_length, Self::needed_length_at(version), version, "Big.outer")?;
            let group_middle = {
                let dimension = reader.chunk::<2>("Big.outer.middle")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u8::from_be_bytes(*field::<0, 1, 2>(dimension))),
                    u64::from(u8::from_be_bytes(*field::<1, 1, 2>(dimension))),
                    version,
                )?
            };
            let data_note = {
                let length = usize::try_from(
                        u32::from_be_bytes(*reader.chunk::<4>("Big.outer.note")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Big.outer.note")?
            };
            Ok(Self {
                block,
                group_middle,
                data_note,
            })
        }
        /// Field `id`.
        #[inline]
        #[must_use]
        pub fn id(&self) -> u16 {
            let raw = field::<0, 2, 2>(self.block);
            let value = u16::from_be_bytes(*raw);
            value
        }
        /// Group `middle`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn middle(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, BigOuterMiddleDecoder<'a>> {
            self.group_middle
        }
        /// Data `note`.
        #[inline]
        #[must_use]
        pub const fn note(&self) -> &'a [u8] {
            self.data_note
        }
        /// Data `note` as text.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn note_str(&self) -> Result<&'a str, DecodeError> {
            ::gapless_schema::sbe::text::utf8(self.data_note, "Big.outer.note")
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for BigOuterDecoder<'a> {
        const NAME: &'static str = "Big.outer";
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
    /// Writes `Big.outer` where it will lie.
    #[derive(Debug)]
    pub struct BigOuterEncoder<'g, 'a> {
        block: &'a mut [u8; 2],
        tail: &'g mut Tail<'a>,
        stage: &'g mut BigOuterStage,
    }
    impl<'g, 'a> BigOuterEncoder<'g, 'a> {
        const TEMPLATE: [u8; 2] = {
            let block = [0; 2];
            block
        };
        /// Field `id`.
        #[inline]
        pub fn id(&mut self, value: u16) -> &mut Self {
            *field_mut::<0, 2, 2>(self.block) = value.to_be_bytes();
            self
        }
        /// Begins group `middle`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn middle(
            &mut self,
        ) -> Result<BigOuterMiddleGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Big.outer.middle")?;
            *dimension = BigOuterMiddleGroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(BigOuterMiddleGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
                stage: &mut self.stage.child_middle,
            })
        }
        /// Data `note`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn note(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 1u8)?;
            if value.len() as u64 > 1000000 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Big.outer.note",
                        value.len(),
                        1000000,
                    ),
                );
            }
            self.tail
                .put_data((value.len() as u32).to_be_bytes(), value, "Big.outer.note")?;
            self.stage.reached = 1u8 + 1;
            Ok(self)
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct BigOuterStage {
        reached: u8,
        child_middle: BigOuterMiddleStage,
    }
    impl BigOuterStage {
        const CLOSED: Self = Self {
            reached: 2u8,
            child_middle: BigOuterMiddleStage::CLOSED,
        };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
                && (self.reached != 1u8 || self.child_middle.is_at(2u8))
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
                            0u8 => "Big.outer.middle",
                            1u8 => "Big.outer.note",
                            _ => "Big.outer",
                        },
                    ),
                );
            }
            if self.reached == 1u8 {
                self.child_middle.advance(tail, 2u8)?;
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(BigOuterMiddleGroupEncoder::EMPTY, "Big.outer.middle")?;
            }
            if self.reached <= 1u8 && 1u8 < member {
                tail.put([0; 4], "Big.outer.note")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Big.outer` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct BigOuter {
        /// Field `id`.
        pub id: u16,
        /// Group `middle`.
        pub middle: Vec<BigOuterMiddle>,
        /// Data `note`.
        pub note: String,
    }
    impl Default for BigOuter {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                id: Default::default(),
                middle: Default::default(),
                note: Default::default(),
            }
        }
    }
    impl BigOuter {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &BigOuterDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                id: decoder.id(),
                middle: {
                    let entries = decoder.middle();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(BigOuterMiddle::from_decoder(&entry)?);
                    }
                    list
                },
                note: ::gapless_schema::sbe::text::utf8(
                        decoder.note(),
                        "Big.outer.note",
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
            encoder: &mut BigOuterEncoder<'_, '_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.id;
                encoder.id(*value);
            }
            let mut group = encoder.middle()?;
            for item in &self.middle {
                item.encode_into(&mut group.entry()?)?;
            }
            encoder.note(&self.note)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            2 + 2
                + self.middle.iter().map(|entry| entry.sbe_body_length()).sum::<usize>()
                + 4 + self.note.len()
        }
    }
    /// Appends the fields of `Big.outer` as protobuf.
    #[derive(Debug)]
    pub struct BigOuterProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> BigOuterProtobufEncoder<'w, 'a> {
        /// Field `id`.
        #[inline]
        pub fn id(&mut self, value: u16) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Group `middle`: appends one entry.
        #[inline]
        pub fn middle(
            &mut self,
            write: impl FnOnce(&mut BigOuterMiddleProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(2u32);
            write(
                &mut BigOuterMiddleProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Data `note`.
        #[inline]
        pub fn note(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(3u32, value.as_bytes());
            }
            self
        }
    }
    /// A field of `Big.outer` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum BigOuterField<'a> {
        /// Field `id`.
        Id(u16),
        /// Group `middle`: one entry.
        Middle(BigOuterMiddleProtobufDecoder<'a>),
        /// Data `note`.
        Note(&'a str),
    }
    /// Goes over the fields of `Big.outer` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct BigOuterProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> BigOuterProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<BigOuterField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<BigOuterField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Big.outer")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                BigOuterField::Id(
                                    <u16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Big.outer.id",
                                    )?,
                                ),
                            ),
                        );
                    }
                    18u32 => {
                        return Ok(
                            Some(
                                BigOuterField::Middle(BigOuterMiddleProtobufDecoder {
                                    reader: reader.message("Big.outer.middle")?,
                                }),
                            ),
                        );
                    }
                    26u32 => {
                        return Ok(
                            Some(BigOuterField::Note(reader.text("Big.outer.note")?)),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Big.outer",
                                &[
                                    (1u32, "Big.outer.id"),
                                    (2u32, "Big.outer.middle"),
                                    (3u32, "Big.outer.note"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for BigOuterProtobufDecoder<'a> {
        type Item = Result<BigOuterField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl BigOuter {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut BigOuterProtobufEncoder<'_, '_>) {
            {
                let value = &self.id;
                encoder.id(*value);
            }
            for entry in &self.middle {
                encoder.middle(|encoder| entry.encode_protobuf(encoder));
            }
            encoder.note(&self.note);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: BigOuterProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    BigOuterField::Id(value) => self.id = value,
                    BigOuterField::Middle(value) => {
                        let mut entry = BigOuterMiddle::default();
                        entry.merge_protobuf(value)?;
                        self.middle.push(entry);
                    }
                    BigOuterField::Note(value) => self.note = value.to_owned(),
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Big.outer.middle` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct BigOuterMiddleDecoder<'a> {
        block: &'a [u8; 4],
        group_inner: ::gapless_schema::sbe::Group<'a, BigOuterMiddleInnerDecoder<'a>>,
        data_note: &'a [u8],
    }
    impl<'a> BigOuterMiddleDecoder<'a> {
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
                    "Big.outer.middle",
                )?;
            let group_inner = {
                let dimension = reader.chunk::<2>("Big.outer.middle.inner")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u8::from_be_bytes(*field::<0, 1, 2>(dimension))),
                    u64::from(u8::from_be_bytes(*field::<1, 1, 2>(dimension))),
                    version,
                )?
            };
            let data_note = {
                let length = usize::try_from(
                        u16::from_be_bytes(*reader.chunk::<2>("Big.outer.middle.note")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Big.outer.middle.note")?
            };
            Ok(Self {
                block,
                group_inner,
                data_note,
            })
        }
        /// Field `id`.
        #[inline]
        #[must_use]
        pub fn id(&self) -> u32 {
            let raw = field::<0, 4, 4>(self.block);
            let value = u32::from_be_bytes(*raw);
            value
        }
        /// Group `inner`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn inner(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, BigOuterMiddleInnerDecoder<'a>> {
            self.group_inner
        }
        /// Data `note`.
        #[inline]
        #[must_use]
        pub const fn note(&self) -> &'a [u8] {
            self.data_note
        }
        /// Data `note` as text.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn note_str(&self) -> Result<&'a str, DecodeError> {
            ::gapless_schema::sbe::text::utf8(self.data_note, "Big.outer.middle.note")
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for BigOuterMiddleDecoder<'a> {
        const NAME: &'static str = "Big.outer.middle";
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
    /// Writes `Big.outer.middle` where it will lie.
    #[derive(Debug)]
    pub struct BigOuterMiddleEncoder<'g, 'a> {
        block: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        stage: &'g mut BigOuterMiddleStage,
    }
    impl<'g, 'a> BigOuterMiddleEncoder<'g, 'a> {
        const TEMPLATE: [u8; 4] = {
            let block = [0; 4];
            block
        };
        /// Field `id`.
        #[inline]
        pub fn id(&mut self, value: u32) -> &mut Self {
            *field_mut::<0, 4, 4>(self.block) = value.to_be_bytes();
            self
        }
        /// Begins group `inner`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn inner(
            &mut self,
        ) -> Result<BigOuterMiddleInnerGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Big.outer.middle.inner")?;
            *dimension = BigOuterMiddleInnerGroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(BigOuterMiddleInnerGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
                stage: &mut self.stage.child_inner,
            })
        }
        /// Data `note`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn note(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 1u8)?;
            if value.len() as u64 > 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Big.outer.middle.note",
                        value.len(),
                        65534,
                    ),
                );
            }
            self.tail
                .put_data(
                    (value.len() as u16).to_be_bytes(),
                    value,
                    "Big.outer.middle.note",
                )?;
            self.stage.reached = 1u8 + 1;
            Ok(self)
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct BigOuterMiddleStage {
        reached: u8,
        child_inner: BigOuterMiddleInnerStage,
    }
    impl BigOuterMiddleStage {
        const CLOSED: Self = Self {
            reached: 2u8,
            child_inner: BigOuterMiddleInnerStage::CLOSED,
        };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
                && (self.reached != 1u8 || self.child_inner.is_at(1u8))
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
                            0u8 => "Big.outer.middle.inner",
                            1u8 => "Big.outer.middle.note",
                            _ => "Big.outer.middle",
                        },
                    ),
                );
            }
            if self.reached == 1u8 {
                self.child_inner.advance(tail, 1u8)?;
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(
                    BigOuterMiddleInnerGroupEncoder::EMPTY,
                    "Big.outer.middle.inner",
                )?;
            }
            if self.reached <= 1u8 && 1u8 < member {
                tail.put([0; 2], "Big.outer.middle.note")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Big.outer.middle` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct BigOuterMiddle {
        /// Field `id`.
        pub id: u32,
        /// Group `inner`.
        pub inner: Vec<BigOuterMiddleInner>,
        /// Data `note`.
        pub note: String,
    }
    impl Default for BigOuterMiddle {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                id: Default::default(),
                inner: Default::default(),
                note: Default::default(),
            }
        }
    }
    impl BigOuterMiddle {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &BigOuterMiddleDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                id: decoder.id(),
                inner: {
                    let entries = decoder.inner();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(BigOuterMiddleInner::from_decoder(&entry)?);
                    }
                    list
                },
                note: ::gapless_schema::sbe::text::utf8(
                        decoder.note(),
                        "Big.outer.middle.note",
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
            encoder: &mut BigOuterMiddleEncoder<'_, '_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.id;
                encoder.id(*value);
            }
            let mut group = encoder.inner()?;
            for item in &self.inner {
                item.encode_into(&mut group.entry()?)?;
            }
            encoder.note(&self.note)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            4 + 2 + self.inner.iter().map(|entry| entry.sbe_body_length()).sum::<usize>()
                + 2 + self.note.len()
        }
    }
    /// Appends the fields of `Big.outer.middle` as protobuf.
    #[derive(Debug)]
    pub struct BigOuterMiddleProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> BigOuterMiddleProtobufEncoder<'w, 'a> {
        /// Field `id`.
        #[inline]
        pub fn id(&mut self, value: u32) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Group `inner`: appends one entry.
        #[inline]
        pub fn inner(
            &mut self,
            write: impl FnOnce(&mut BigOuterMiddleInnerProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(2u32);
            write(
                &mut BigOuterMiddleInnerProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Data `note`.
        #[inline]
        pub fn note(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(3u32, value.as_bytes());
            }
            self
        }
    }
    /// A field of `Big.outer.middle` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum BigOuterMiddleField<'a> {
        /// Field `id`.
        Id(u32),
        /// Group `inner`: one entry.
        Inner(BigOuterMiddleInnerProtobufDecoder<'a>),
        /// Data `note`.
        Note(&'a str),
    }
    /// Goes over the fields of `Big.outer.middle` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct BigOuterMiddleProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> BigOuterMiddleProtobufDecoder<'a> {
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
        ) -> Result<Option<BigOuterMiddleField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(
            &mut self,
        ) -> Result<Option<BigOuterMiddleField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Big.outer.middle")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                BigOuterMiddleField::Id(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Big.outer.middle.id",
                                    )?,
                                ),
                            ),
                        );
                    }
                    18u32 => {
                        return Ok(
                            Some(
                                BigOuterMiddleField::Inner(BigOuterMiddleInnerProtobufDecoder {
                                    reader: reader.message("Big.outer.middle.inner")?,
                                }),
                            ),
                        );
                    }
                    26u32 => {
                        return Ok(
                            Some(
                                BigOuterMiddleField::Note(
                                    reader.text("Big.outer.middle.note")?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Big.outer.middle",
                                &[
                                    (1u32, "Big.outer.middle.id"),
                                    (2u32, "Big.outer.middle.inner"),
                                    (3u32, "Big.outer.middle.note"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for BigOuterMiddleProtobufDecoder<'a> {
        type Item = Result<BigOuterMiddleField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl BigOuterMiddle {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut BigOuterMiddleProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.id;
                encoder.id(*value);
            }
            for entry in &self.inner {
                encoder.inner(|encoder| entry.encode_protobuf(encoder));
            }
            encoder.note(&self.note);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: BigOuterMiddleProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    BigOuterMiddleField::Id(value) => self.id = value,
                    BigOuterMiddleField::Inner(value) => {
                        let mut entry = BigOuterMiddleInner::default();
                        entry.merge_protobuf(value)?;
                        self.inner.push(entry);
                    }
                    BigOuterMiddleField::Note(value) => self.note = value.to_owned(),
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Big.outer.middle.inner` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct BigOuterMiddleInnerDecoder<'a> {
        block: &'a [u8; 8],
        data_note: &'a [u8],
    }
    impl<'a> BigOuterMiddleInnerDecoder<'a> {
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
                    "Big.outer.middle.inner",
                )?;
            let data_note = {
                let length = usize::try_from(
                        u8::from_be_bytes(
                            *reader.chunk::<1>("Big.outer.middle.inner.note")?,
                        ),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Big.outer.middle.inner.note")?
            };
            Ok(Self { block, data_note })
        }
        /// Field `id`.
        #[inline]
        #[must_use]
        pub fn id(&self) -> u64 {
            let raw = field::<0, 8, 8>(self.block);
            let value = u64::from_be_bytes(*raw);
            value
        }
        /// Data `note`.
        #[inline]
        #[must_use]
        pub const fn note(&self) -> &'a [u8] {
            self.data_note
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for BigOuterMiddleInnerDecoder<'a> {
        const NAME: &'static str = "Big.outer.middle.inner";
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
    /// Writes `Big.outer.middle.inner` where it will lie.
    #[derive(Debug)]
    pub struct BigOuterMiddleInnerEncoder<'g, 'a> {
        block: &'a mut [u8; 8],
        tail: &'g mut Tail<'a>,
        stage: &'g mut BigOuterMiddleInnerStage,
    }
    impl<'g, 'a> BigOuterMiddleInnerEncoder<'g, 'a> {
        const TEMPLATE: [u8; 8] = {
            let block = [0; 8];
            block
        };
        /// Field `id`.
        #[inline]
        pub fn id(&mut self, value: u64) -> &mut Self {
            *field_mut::<0, 8, 8>(self.block) = value.to_be_bytes();
            self
        }
        /// Data `note`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn note(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 0u8)?;
            if value.len() as u64 > 254 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Big.outer.middle.inner.note",
                        value.len(),
                        254,
                    ),
                );
            }
            self.tail
                .put_data(
                    (value.len() as u8).to_be_bytes(),
                    value,
                    "Big.outer.middle.inner.note",
                )?;
            self.stage.reached = 0u8 + 1;
            Ok(self)
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct BigOuterMiddleInnerStage {
        reached: u8,
    }
    impl BigOuterMiddleInnerStage {
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
                            0u8 => "Big.outer.middle.inner.note",
                            _ => "Big.outer.middle.inner",
                        },
                    ),
                );
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put([0; 1], "Big.outer.middle.inner.note")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Big.outer.middle.inner` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct BigOuterMiddleInner {
        /// Field `id`.
        pub id: u64,
        /// Data `note`.
        pub note: Vec<u8>,
    }
    impl Default for BigOuterMiddleInner {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                id: Default::default(),
                note: Default::default(),
            }
        }
    }
    impl BigOuterMiddleInner {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &BigOuterMiddleInnerDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                id: decoder.id(),
                note: decoder.note().to_vec(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut BigOuterMiddleInnerEncoder<'_, '_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.id;
                encoder.id(*value);
            }
            encoder.note(&self.note)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            8 + 1 + self.note.len()
        }
    }
    /// Appends the fields of `Big.outer.middle.inner` as protobuf.
    #[derive(Debug)]
    pub struct BigOuterMiddleInnerProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> BigOuterMiddleInnerProtobufEncoder<'w, 'a> {
        /// Field `id`.
        #[inline]
        pub fn id(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Data `note`.
        #[inline]
        pub fn note(&mut self, value: &[u8]) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(2u32, value);
            }
            self
        }
    }
    /// A field of `Big.outer.middle.inner` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum BigOuterMiddleInnerField<'a> {
        /// Field `id`.
        Id(u64),
        /// Data `note`.
        Note(&'a [u8]),
    }
    /// Goes over the fields of `Big.outer.middle.inner` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct BigOuterMiddleInnerProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> BigOuterMiddleInnerProtobufDecoder<'a> {
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
        ) -> Result<Option<BigOuterMiddleInnerField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(
            &mut self,
        ) -> Result<Option<BigOuterMiddleInnerField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Big.outer.middle.inner")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                BigOuterMiddleInnerField::Id(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Big.outer.middle.inner.id",
                                    )?,
                                ),
                            ),
                        );
                    }
                    18u32 => {
                        return Ok(
                            Some(
                                BigOuterMiddleInnerField::Note(
                                    reader.bytes("Big.outer.middle.inner.note")?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Big.outer.middle.inner",
                                &[
                                    (1u32, "Big.outer.middle.inner.id"),
                                    (2u32, "Big.outer.middle.inner.note"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for BigOuterMiddleInnerProtobufDecoder<'a> {
        type Item = Result<BigOuterMiddleInnerField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl BigOuterMiddleInner {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut BigOuterMiddleInnerProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.id;
                encoder.id(*value);
            }
            encoder.note(&self.note);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: BigOuterMiddleInnerProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    BigOuterMiddleInnerField::Id(value) => self.id = value,
                    BigOuterMiddleInnerField::Note(value) => self.note = value.to_owned(),
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Big.outer.middle.inner`.
    #[derive(Debug)]
    pub struct BigOuterMiddleInnerGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 2],
        tail: &'g mut Tail<'a>,
        count: u64,
        stage: &'g mut BigOuterMiddleInnerStage,
    }
    impl<'g, 'a> BigOuterMiddleInnerGroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 2] = {
            let block = [0; 2];
            let block = with(block, 0, (8u8).to_be_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(
            &mut self,
        ) -> Result<BigOuterMiddleInnerEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(self.tail, 1u8)?;
            if self.count >= 254 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Big.outer.middle.inner",
                        self.count as usize + 1,
                        254,
                    ),
                );
            }
            let block = self.tail.chunk("Big.outer.middle.inner")?;
            *block = BigOuterMiddleInnerEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<1, 1, 2>(self.dimension) = (self.count as u8).to_be_bytes();
            self.stage.reached = 0;
            Ok(BigOuterMiddleInnerEncoder {
                block,
                tail: self.tail,
                stage: self.stage,
            })
        }
    }
    /// Writes the entries of group `Big.outer.middle`.
    #[derive(Debug)]
    pub struct BigOuterMiddleGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 2],
        tail: &'g mut Tail<'a>,
        count: u64,
        stage: &'g mut BigOuterMiddleStage,
    }
    impl<'g, 'a> BigOuterMiddleGroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 2] = {
            let block = [0; 2];
            let block = with(block, 0, (4u8).to_be_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(&mut self) -> Result<BigOuterMiddleEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(self.tail, 2u8)?;
            if self.count >= 254 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Big.outer.middle",
                        self.count as usize + 1,
                        254,
                    ),
                );
            }
            let block = self.tail.chunk("Big.outer.middle")?;
            *block = BigOuterMiddleEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<1, 1, 2>(self.dimension) = (self.count as u8).to_be_bytes();
            self.stage.reached = 0;
            Ok(BigOuterMiddleEncoder {
                block,
                tail: self.tail,
                stage: self.stage,
            })
        }
    }
    /// Writes the entries of group `Big.outer`.
    #[derive(Debug)]
    pub struct BigOuterGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
        stage: &'g mut BigOuterStage,
    }
    impl<'g, 'a> BigOuterGroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 4] = {
            let block = [0; 4];
            let block = with(block, 0, (2u16).to_be_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(&mut self) -> Result<BigOuterEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(self.tail, 2u8)?;
            if self.count >= 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Big.outer",
                        self.count as usize + 1,
                        65534,
                    ),
                );
            }
            let block = self.tail.chunk("Big.outer")?;
            *block = BigOuterEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_be_bytes();
            self.stage.reached = 0;
            Ok(BigOuterEncoder {
                block,
                tail: self.tail,
                stage: self.stage,
            })
        }
    }
    /// Reads an entry of group `Big.plain` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct BigPlainDecoder<'a> {
        block: &'a [u8; 1],
    }
    impl<'a> BigPlainDecoder<'a> {
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
                >(block_length, Self::needed_length_at(version), version, "Big.plain")?;
            Ok(Self { block })
        }
        /// Field `id`.
        #[inline]
        #[must_use]
        pub fn id(&self) -> i8 {
            let raw = field::<0, 1, 1>(self.block);
            let value = i8::from_be_bytes(*raw);
            value
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for BigPlainDecoder<'a> {
        const NAME: &'static str = "Big.plain";
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
    /// Writes `Big.plain` where it will lie.
    #[derive(Debug)]
    pub struct BigPlainEncoder<'a> {
        block: &'a mut [u8; 1],
    }
    impl<'a> BigPlainEncoder<'a> {
        const TEMPLATE: [u8; 1] = {
            let block = [0; 1];
            block
        };
        /// Field `id`.
        #[inline]
        pub fn id(&mut self, value: i8) -> &mut Self {
            *field_mut::<0, 1, 1>(self.block) = value.to_be_bytes();
            self
        }
    }
    /// `Big.plain` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct BigPlain {
        /// Field `id`.
        pub id: i8,
    }
    impl Default for BigPlain {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { id: Default::default() }
        }
    }
    impl BigPlain {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &BigPlainDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self { id: decoder.id() })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut BigPlainEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.id;
                encoder.id(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            1
        }
    }
    /// Appends the fields of `Big.plain` as protobuf.
    #[derive(Debug)]
    pub struct BigPlainProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> BigPlainProtobufEncoder<'w, 'a> {
        /// Field `id`.
        #[inline]
        pub fn id(&mut self, value: i8) -> &mut Self {
            self.writer.sint(1u32, i64::from(value));
            self
        }
    }
    /// A field of `Big.plain` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum BigPlainField {
        /// Field `id`.
        Id(i8),
    }
    /// Goes over the fields of `Big.plain` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct BigPlainProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> BigPlainProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<BigPlainField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<BigPlainField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Big.plain")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                BigPlainField::Id(
                                    <i8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Big.plain.id",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(key, "Big.plain", &[(1u32, "Big.plain.id")])?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for BigPlainProtobufDecoder<'a> {
        type Item = Result<BigPlainField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl BigPlain {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut BigPlainProtobufEncoder<'_, '_>) {
            {
                let value = &self.id;
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
            mut decoder: BigPlainProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    BigPlainField::Id(value) => self.id = value,
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Big.plain`.
    #[derive(Debug)]
    pub struct BigPlainGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 2],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> BigPlainGroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 2] = {
            let block = [0; 2];
            let block = with(block, 0, (1u8).to_be_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(&mut self) -> Result<BigPlainEncoder<'a>, EncodeError> {
            if self.count >= 254 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Big.plain",
                        self.count as usize + 1,
                        254,
                    ),
                );
            }
            let block = self.tail.chunk("Big.plain")?;
            *block = BigPlainEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<1, 1, 2>(self.dimension) = (self.count as u8).to_be_bytes();
            Ok(BigPlainEncoder { block })
        }
    }
    impl ::gapless_schema::Message for BigDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 513u16;
        const NAME: &'static str = "Big";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = BigDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<BigDecoder<'_>, DecodeError> {
            BigDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for BigEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 513u16;
        const NAME: &'static str = "Big";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = BigEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<BigEncoder<'_>, EncodeError> {
            BigEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: BigEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for BigProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 513u16;
        const NAME: &'static str = "Big";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = BigProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<BigProtobufDecoder<'_>, DecodeError> {
            Ok(BigProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for BigProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 513u16;
        const NAME: &'static str = "Big";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = BigProtobufEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<BigProtobufEncoder<'_>, EncodeError> {
            Ok(BigProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: BigProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Big {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 513u16;
        const NAME: &'static str = "Big";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&BigDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            6 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = BigEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Big {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 513u16;
        const NAME: &'static str = "Big";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(BigProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = BigProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = BigProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
}
