// Generated from a schema (gapless.truck, id 2, version 0). Do not edit: change the schema.

/// A truck: what the examples of the standard use
///
/// Schema id 2, version 0.
/// Semantic version 5.2.
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
pub mod truck {
    use ::gapless_schema::sbe::block::{
        field, field_mut, from_offset, late_field, with, with_repeated,
    };
    use ::gapless_schema::sbe::{Entry as _, Tail};
    use ::gapless_schema::{DecodeError, EncodeError};
    /// Id of the schema.
    pub const SCHEMA_ID: u16 = 2u16;
    /// Version of the schema.
    pub const SCHEMA_VERSION: u64 = 0u64;
    /// Enum `Model`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Model {
        /// Value `A`.
        A,
        /// Value `B`.
        B,
        /// Value `C`.
        C,
        /// A number that this version of the schema does not name.
        Unknown(u8),
    }
    impl Model {
        /// The number that means null where a field is optional.
        pub const NULL: u8 = (0u8);
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: u8) -> Self {
            match raw {
                65u8 => Self::A,
                66u8 => Self::B,
                67u8 => Self::C,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u8 {
            match self {
                Self::A => (65u8),
                Self::B => (66u8),
                Self::C => (67u8),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for Model {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::A
        }
    }
    impl ::gapless_schema::protobuf::Value for Model {
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
    /// Enum `BooleanType`.
    ///
    /// Semantic type: Boolean.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum BooleanType {
        /// No
        F,
        /// Yes
        T,
        /// A number that this version of the schema does not name.
        Unknown(u8),
    }
    impl BooleanType {
        /// The number that means null where a field is optional.
        pub const NULL: u8 = u8::MAX;
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: u8) -> Self {
            match raw {
                0u8 => Self::F,
                1u8 => Self::T,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u8 {
            match self {
                Self::F => (0u8),
                Self::T => (1u8),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for BooleanType {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::F
        }
    }
    impl ::gapless_schema::protobuf::Value for BooleanType {
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
    /// Enum `BoostType`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum BoostType {
        /// Value `TURBO`.
        Turbo,
        /// Value `SUPERCHARGER`.
        Supercharger,
        /// Value `NITROUS`.
        Nitrous,
        /// A number that this version of the schema does not name.
        Unknown(u8),
    }
    impl BoostType {
        /// The number that means null where a field is optional.
        pub const NULL: u8 = (0u8);
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: u8) -> Self {
            match raw {
                84u8 => Self::Turbo,
                83u8 => Self::Supercharger,
                78u8 => Self::Nitrous,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u8 {
            match self {
                Self::Turbo => (84u8),
                Self::Supercharger => (83u8),
                Self::Nitrous => (78u8),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for BoostType {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::Turbo
        }
    }
    impl ::gapless_schema::protobuf::Value for BoostType {
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
    /// Set `OptionalExtras`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct OptionalExtras(u8);
    impl OptionalExtras {
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
        /// Choice `sunRoof`.
        #[inline]
        #[must_use]
        pub const fn sun_roof(self) -> bool {
            self.0 & 1 != 0
        }
        /// With choice `sunRoof` set or not.
        #[inline]
        #[must_use]
        pub const fn with_sun_roof(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 1) } else { Self(self.0 & !1) }
        }
        /// Choice `sportsPack`.
        #[inline]
        #[must_use]
        pub const fn sports_pack(self) -> bool {
            self.0 & 2 != 0
        }
        /// With choice `sportsPack` set or not.
        #[inline]
        #[must_use]
        pub const fn with_sports_pack(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 2) } else { Self(self.0 & !2) }
        }
        /// Keeps the speed
        #[inline]
        #[must_use]
        pub const fn cruise_control(self) -> bool {
            self.0 & 4 != 0
        }
        /// With choice `cruiseControl` set or not.
        #[inline]
        #[must_use]
        pub const fn with_cruise_control(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 4) } else { Self(self.0 & !4) }
        }
    }
    impl ::gapless_schema::protobuf::Value for OptionalExtras {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(Self(<u8 as ::gapless_schema::protobuf::Value>::read(reader, field)?))
        }
    }
    /// Set `Alarms`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Alarms(u16);
    impl Alarms {
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
        /// Choice `low`.
        #[inline]
        #[must_use]
        pub const fn low(self) -> bool {
            self.0 & 1 != 0
        }
        /// With choice `low` set or not.
        #[inline]
        #[must_use]
        pub const fn with_low(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 1) } else { Self(self.0 & !1) }
        }
        /// Choice `hot`.
        #[inline]
        #[must_use]
        pub const fn hot(self) -> bool {
            self.0 & 32768 != 0
        }
        /// With choice `hot` set or not.
        #[inline]
        #[must_use]
        pub const fn with_hot(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 32768) } else { Self(self.0 & !32768) }
        }
    }
    impl ::gapless_schema::protobuf::Value for Alarms {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(Self(<u16 as ::gapless_schema::protobuf::Value>::read(reader, field)?))
        }
    }
    /// Reads composite `Booster` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct BoosterDecoder<'a> {
        block: &'a [u8; 2],
    }
    impl<'a> BoosterDecoder<'a> {
        /// Whether its first member has the null value, which makes the whole composite null where it is optional.
        #[inline]
        #[must_use]
        pub fn is_null(&self) -> bool {
            let raw = field::<0, 1, 2>(self.block);
            let value = BoostType::from_raw(u8::from_le_bytes(*raw));
            u8::from_le_bytes(*raw) == (0u8)
        }
        /// Field `BoostType`.
        #[inline]
        #[must_use]
        pub fn boost_type(&self) -> BoostType {
            let raw = field::<0, 1, 2>(self.block);
            let value = BoostType::from_raw(u8::from_le_bytes(*raw));
            value
        }
        /// Field `horsePower`.
        #[inline]
        #[must_use]
        pub fn horse_power(&self) -> u8 {
            let raw = field::<1, 1, 2>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
    }
    /// Writes `Booster` where it will lie.
    #[derive(Debug)]
    pub struct BoosterEncoder<'a> {
        block: &'a mut [u8; 2],
    }
    impl<'a> BoosterEncoder<'a> {
        /// Field `BoostType`.
        #[inline]
        pub fn boost_type(&mut self, value: BoostType) -> &mut Self {
            *field_mut::<0, 1, 2>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `horsePower`.
        #[inline]
        pub fn horse_power(&mut self, value: u8) -> &mut Self {
            *field_mut::<1, 1, 2>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// `Booster` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Booster {
        /// Field `BoostType`.
        pub boost_type: BoostType,
        /// Field `horsePower`.
        pub horse_power: u8,
    }
    impl Default for Booster {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                boost_type: Default::default(),
                horse_power: Default::default(),
            }
        }
    }
    impl Booster {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &BoosterDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                boost_type: decoder.boost_type(),
                horse_power: decoder.horse_power(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut BoosterEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.boost_type;
                encoder.boost_type(*value);
            }
            {
                let value = &self.horse_power;
                encoder.horse_power(*value);
            }
            Ok(())
        }
    }
    /// Appends the fields of `Booster` as protobuf.
    #[derive(Debug)]
    pub struct BoosterProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> BoosterProtobufEncoder<'w, 'a> {
        /// Field `BoostType`.
        #[inline]
        pub fn boost_type(&mut self, value: BoostType) -> &mut Self {
            self.writer.uint(1u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `horsePower`.
        #[inline]
        pub fn horse_power(&mut self, value: u8) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
    }
    /// A field of `Booster` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum BoosterField {
        /// Field `BoostType`.
        BoostType(BoostType),
        /// Field `horsePower`.
        HorsePower(u8),
    }
    /// Goes over the fields of `Booster` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct BoosterProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> BoosterProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<BoosterField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<BoosterField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Booster")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                BoosterField::BoostType(
                                    <BoostType as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Booster.BoostType",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                BoosterField::HorsePower(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Booster.horsePower",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Booster",
                                &[(1u32, "Booster.BoostType"), (2u32, "Booster.horsePower")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for BoosterProtobufDecoder<'a> {
        type Item = Result<BoosterField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Booster {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut BoosterProtobufEncoder<'_, '_>) {
            {
                let value = &self.boost_type;
                encoder.boost_type(*value);
            }
            {
                let value = &self.horse_power;
                encoder.horse_power(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: BoosterProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    BoosterField::BoostType(value) => self.boost_type = value,
                    BoosterField::HorsePower(value) => self.horse_power = value,
                }
            }
            Ok(())
        }
    }
    /// Reads composite `Sump` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct SumpDecoder<'a> {
        block: &'a [u8; 4],
    }
    impl<'a> SumpDecoder<'a> {
        /// Whether its first member has the null value, which makes the whole composite null where it is optional.
        #[inline]
        #[must_use]
        pub fn is_null(&self) -> bool {
            let raw = field::<0, 2, 4>(self.block);
            let value = u16::from_le_bytes(*raw);
            value == u16::MAX
        }
        /// Field `oil`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn oil(&self) -> Option<u16> {
            let raw = field::<0, 2, 4>(self.block);
            let value = u16::from_le_bytes(*raw);
            if value == u16::MAX { None } else { Some(value) }
        }
        /// Field `Alarms`.
        #[inline]
        #[must_use]
        pub fn alarms(&self) -> Alarms {
            let raw = field::<2, 2, 4>(self.block);
            let value = Alarms::from_raw(u16::from_le_bytes(*raw));
            value
        }
    }
    /// Writes `Sump` where it will lie.
    #[derive(Debug)]
    pub struct SumpEncoder<'a> {
        block: &'a mut [u8; 4],
    }
    impl<'a> SumpEncoder<'a> {
        /// Field `oil`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn oil(&mut self, value: u16) -> &mut Self {
            *field_mut::<0, 2, 4>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `oil`, to null if there is no value.
        #[inline]
        pub fn oil_or_null(&mut self, value: Option<u16>) -> &mut Self {
            match value {
                Some(value) => self.oil(value),
                None => self.oil(u16::MAX),
            }
        }
        /// Field `Alarms`.
        #[inline]
        pub fn alarms(&mut self, value: Alarms) -> &mut Self {
            *field_mut::<2, 2, 4>(self.block) = value.raw().to_le_bytes();
            self
        }
    }
    /// `Sump` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Sump {
        /// Field `oil`.
        ///
        /// `None` if it is null.
        pub oil: Option<u16>,
        /// Field `Alarms`.
        pub alarms: Alarms,
    }
    impl Default for Sump {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                oil: None,
                alarms: Default::default(),
            }
        }
    }
    impl Sump {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &SumpDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                oil: decoder.oil(),
                alarms: decoder.alarms(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut SumpEncoder<'_>,
        ) -> Result<(), EncodeError> {
            if let Some(value) = &self.oil {
                if (*value) == u16::MAX {
                    return Err(EncodeError::Range {
                        field: "Sump.oil",
                        range: "of its type without the null value",
                    });
                }
                encoder.oil(*value);
            }
            {
                let value = &self.alarms;
                encoder.alarms(*value);
            }
            Ok(())
        }
    }
    /// Appends the fields of `Sump` as protobuf.
    #[derive(Debug)]
    pub struct SumpProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> SumpProtobufEncoder<'w, 'a> {
        /// Field `oil`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn oil(&mut self, value: u16) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `Alarms`.
        #[inline]
        pub fn alarms(&mut self, value: Alarms) -> &mut Self {
            self.writer.uint(2u32, u64::from(value.raw()));
            self
        }
    }
    /// A field of `Sump` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum SumpField {
        /// Field `oil`.
        Oil(u16),
        /// Field `Alarms`.
        Alarms(Alarms),
    }
    /// Goes over the fields of `Sump` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct SumpProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> SumpProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<SumpField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<SumpField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Sump")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                SumpField::Oil(
                                    <u16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Sump.oil",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                SumpField::Alarms(
                                    <Alarms as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Sump.Alarms",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Sump",
                                &[(1u32, "Sump.oil"), (2u32, "Sump.Alarms")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for SumpProtobufDecoder<'a> {
        type Item = Result<SumpField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Sump {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut SumpProtobufEncoder<'_, '_>) {
            if let Some(value) = &self.oil {
                encoder.oil(*value);
            }
            {
                let value = &self.alarms;
                encoder.alarms(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: SumpProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    SumpField::Oil(value) => self.oil = Some(value),
                    SumpField::Alarms(value) => self.alarms = value,
                }
            }
            Ok(())
        }
    }
    /// Reads composite `Engine` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct EngineDecoder<'a> {
        block: &'a [u8; 14],
    }
    impl<'a> EngineDecoder<'a> {
        /// Whether its first member has the null value, which makes the whole composite null where it is optional.
        #[inline]
        #[must_use]
        pub fn is_null(&self) -> bool {
            let raw = field::<0, 2, 14>(self.block);
            let value = u16::from_le_bytes(*raw);
            value == u16::MAX
        }
        /// Field `capacity`.
        #[inline]
        #[must_use]
        pub fn capacity(&self) -> u16 {
            let raw = field::<0, 2, 14>(self.block);
            let value = u16::from_le_bytes(*raw);
            value
        }
        /// Field `numCylinders`.
        #[inline]
        #[must_use]
        pub fn num_cylinders(&self) -> u8 {
            let raw = field::<2, 1, 14>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `maxRpm`.
        #[inline]
        #[must_use]
        pub const fn max_rpm(&self) -> u16 {
            (9000u16)
        }
        /// Field `manufacturerCode`.
        #[inline]
        #[must_use]
        pub fn manufacturer_code(&self) -> &'a [u8; 3] {
            let raw = field::<3, 3, 14>(self.block);
            let value = raw;
            value
        }
        /// Field `manufacturerCode` as text, up to the first NUL.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn manufacturer_code_str(&self) -> Result<&'a str, DecodeError> {
            let bytes = self.manufacturer_code();
            ::gapless_schema::sbe::text::utf8(
                ::gapless_schema::sbe::text::until_nul(bytes),
                "Engine.manufacturerCode",
            )
        }
        /// Field `fuel`.
        #[inline]
        #[must_use]
        pub const fn fuel(&self) -> &'static str {
            "Diesel"
        }
        /// Field `efficiency`.
        ///
        /// Range: 0 to 100.
        #[inline]
        #[must_use]
        pub fn efficiency(&self) -> i8 {
            let raw = field::<6, 1, 14>(self.block);
            let value = i8::from_le_bytes(*raw);
            value
        }
        /// The least value of `efficiency`.
        pub const EFFICIENCY_MIN: i8 = (0i8);
        /// The greatest value of `efficiency`.
        pub const EFFICIENCY_MAX: i8 = (100i8);
        /// Field `boosterEnabled`.
        #[inline]
        #[must_use]
        pub fn booster_enabled(&self) -> BooleanType {
            let raw = field::<7, 1, 14>(self.block);
            let value = BooleanType::from_raw(u8::from_le_bytes(*raw));
            value
        }
        /// Field `booster`.
        #[inline]
        #[must_use]
        pub fn booster(&self) -> BoosterDecoder<'a> {
            let raw = field::<8, 2, 14>(self.block);
            let value = BoosterDecoder { block: raw };
            value
        }
        /// Field `Sump`.
        #[inline]
        #[must_use]
        pub fn sump(&self) -> SumpDecoder<'a> {
            let raw = field::<10, 4, 14>(self.block);
            let value = SumpDecoder { block: raw };
            value
        }
    }
    /// Writes `Engine` where it will lie.
    #[derive(Debug)]
    pub struct EngineEncoder<'a> {
        block: &'a mut [u8; 14],
    }
    impl<'a> EngineEncoder<'a> {
        /// Field `capacity`.
        #[inline]
        pub fn capacity(&mut self, value: u16) -> &mut Self {
            *field_mut::<0, 2, 14>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `numCylinders`.
        #[inline]
        pub fn num_cylinders(&mut self, value: u8) -> &mut Self {
            *field_mut::<2, 1, 14>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `manufacturerCode`.
        #[inline]
        pub fn manufacturer_code(&mut self, value: &[u8; 3]) -> &mut Self {
            for (slot, item) in field_mut::<3, 3, 14>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `manufacturerCode` to a text, filled up with NUL.
        ///
        /// # Errors
        /// [`EncodeError::Text`] if it is too long, holds a NUL or is not in the character encoding.
        #[inline]
        pub fn manufacturer_code_str(
            &mut self,
            value: &str,
        ) -> Result<&mut Self, EncodeError> {
            ::gapless_schema::sbe::text::put(
                field_mut::<3, 3, 14>(self.block),
                value.as_bytes(),
                "Engine.manufacturerCode",
            )?;
            Ok(self)
        }
        /// Field `efficiency`.
        ///
        /// Range: 0 to 100.
        #[inline]
        pub fn efficiency(&mut self, value: i8) -> &mut Self {
            *field_mut::<6, 1, 14>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `boosterEnabled`.
        #[inline]
        pub fn booster_enabled(&mut self, value: BooleanType) -> &mut Self {
            *field_mut::<7, 1, 14>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `booster`.
        #[inline]
        pub fn booster(&mut self) -> BoosterEncoder<'_> {
            BoosterEncoder {
                block: field_mut::<8, 2, 14>(self.block),
            }
        }
        /// Field `Sump`.
        #[inline]
        pub fn sump(&mut self) -> SumpEncoder<'_> {
            SumpEncoder {
                block: field_mut::<10, 4, 14>(self.block),
            }
        }
    }
    /// `Engine` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Engine {
        /// Field `capacity`.
        pub capacity: u16,
        /// Field `numCylinders`.
        pub num_cylinders: u8,
        /// Field `manufacturerCode`.
        pub manufacturer_code: String,
        /// Field `efficiency`.
        ///
        /// Range: 0 to 100.
        pub efficiency: i8,
        /// Field `boosterEnabled`.
        pub booster_enabled: BooleanType,
        /// Field `booster`.
        pub booster: Booster,
        /// Field `Sump`.
        pub sump: Sump,
    }
    impl Default for Engine {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                capacity: Default::default(),
                num_cylinders: Default::default(),
                manufacturer_code: Default::default(),
                efficiency: Default::default(),
                booster_enabled: Default::default(),
                booster: Default::default(),
                sump: Default::default(),
            }
        }
    }
    impl Engine {
        /// Field `maxRpm`.
        pub const MAX_RPM: u16 = (9000u16);
        /// Field `fuel`.
        pub const FUEL: &'static str = "Diesel";
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &EngineDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                capacity: decoder.capacity(),
                num_cylinders: decoder.num_cylinders(),
                manufacturer_code: {
                    let item = decoder.manufacturer_code();
                    ::gapless_schema::sbe::text::utf8(
                            ::gapless_schema::sbe::text::until_nul(item),
                            "Engine.manufacturerCode",
                        )?
                        .to_owned()
                },
                efficiency: decoder.efficiency(),
                booster_enabled: decoder.booster_enabled(),
                booster: {
                    let item = decoder.booster();
                    Booster::from_decoder(&item)?
                },
                sump: {
                    let item = decoder.sump();
                    Sump::from_decoder(&item)?
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
            encoder: &mut EngineEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.capacity;
                encoder.capacity(*value);
            }
            {
                let value = &self.num_cylinders;
                encoder.num_cylinders(*value);
            }
            {
                let value = &self.manufacturer_code;
                encoder.manufacturer_code_str(value)?;
            }
            {
                let value = &self.efficiency;
                if (*value) < (0i8) || (*value) > (100i8) {
                    return Err(EncodeError::Range {
                        field: "Engine.efficiency",
                        range: "0 to 100",
                    });
                }
                encoder.efficiency(*value);
            }
            {
                let value = &self.booster_enabled;
                encoder.booster_enabled(*value);
            }
            {
                let value = &self.booster;
                value.encode_into(&mut encoder.booster())?;
            }
            {
                let value = &self.sump;
                value.encode_into(&mut encoder.sump())?;
            }
            Ok(())
        }
    }
    /// Appends the fields of `Engine` as protobuf.
    #[derive(Debug)]
    pub struct EngineProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> EngineProtobufEncoder<'w, 'a> {
        /// Field `capacity`.
        #[inline]
        pub fn capacity(&mut self, value: u16) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `numCylinders`.
        #[inline]
        pub fn num_cylinders(&mut self, value: u8) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
        /// Field `manufacturerCode`.
        #[inline]
        pub fn manufacturer_code(&mut self, value: &str) -> &mut Self {
            self.writer.bytes(4u32, value.as_bytes());
            self
        }
        /// Field `efficiency`.
        ///
        /// Range: 0 to 100.
        #[inline]
        pub fn efficiency(&mut self, value: i8) -> &mut Self {
            self.writer.sint(6u32, i64::from(value));
            self
        }
        /// Field `boosterEnabled`.
        #[inline]
        pub fn booster_enabled(&mut self, value: BooleanType) -> &mut Self {
            self.writer.uint(7u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `booster`.
        #[inline]
        pub fn booster(
            &mut self,
            write: impl FnOnce(&mut BoosterProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(8u32);
            write(
                &mut BoosterProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Field `Sump`.
        #[inline]
        pub fn sump(
            &mut self,
            write: impl FnOnce(&mut SumpProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(9u32);
            write(
                &mut SumpProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
    }
    /// A field of `Engine` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum EngineField<'a> {
        /// Field `capacity`.
        Capacity(u16),
        /// Field `numCylinders`.
        NumCylinders(u8),
        /// Field `manufacturerCode`.
        ManufacturerCode(&'a str),
        /// Field `efficiency`.
        Efficiency(i8),
        /// Field `boosterEnabled`.
        BoosterEnabled(BooleanType),
        /// Field `booster`.
        Booster(BoosterProtobufDecoder<'a>),
        /// Field `Sump`.
        Sump(SumpProtobufDecoder<'a>),
    }
    /// Goes over the fields of `Engine` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct EngineProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> EngineProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<EngineField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<EngineField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Engine")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                EngineField::Capacity(
                                    <u16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Engine.capacity",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                EngineField::NumCylinders(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Engine.numCylinders",
                                    )?,
                                ),
                            ),
                        );
                    }
                    34u32 => {
                        return Ok(
                            Some(
                                EngineField::ManufacturerCode(
                                    reader.text("Engine.manufacturerCode")?,
                                ),
                            ),
                        );
                    }
                    48u32 => {
                        return Ok(
                            Some(
                                EngineField::Efficiency(
                                    <i8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Engine.efficiency",
                                    )?,
                                ),
                            ),
                        );
                    }
                    56u32 => {
                        return Ok(
                            Some(
                                EngineField::BoosterEnabled(
                                    <BooleanType as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Engine.boosterEnabled",
                                    )?,
                                ),
                            ),
                        );
                    }
                    66u32 => {
                        return Ok(
                            Some(
                                EngineField::Booster(BoosterProtobufDecoder {
                                    reader: reader.message("Engine.booster")?,
                                }),
                            ),
                        );
                    }
                    74u32 => {
                        return Ok(
                            Some(
                                EngineField::Sump(SumpProtobufDecoder {
                                    reader: reader.message("Engine.Sump")?,
                                }),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Engine",
                                &[
                                    (1u32, "Engine.capacity"),
                                    (2u32, "Engine.numCylinders"),
                                    (4u32, "Engine.manufacturerCode"),
                                    (6u32, "Engine.efficiency"),
                                    (7u32, "Engine.boosterEnabled"),
                                    (8u32, "Engine.booster"),
                                    (9u32, "Engine.Sump"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for EngineProtobufDecoder<'a> {
        type Item = Result<EngineField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Engine {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut EngineProtobufEncoder<'_, '_>) {
            {
                let value = &self.capacity;
                encoder.capacity(*value);
            }
            {
                let value = &self.num_cylinders;
                encoder.num_cylinders(*value);
            }
            {
                let value = &self.manufacturer_code;
                encoder.manufacturer_code(value);
            }
            {
                let value = &self.efficiency;
                encoder.efficiency(*value);
            }
            {
                let value = &self.booster_enabled;
                encoder.booster_enabled(*value);
            }
            {
                let value = &self.booster;
                encoder.booster(|encoder| value.encode_protobuf(encoder));
            }
            {
                let value = &self.sump;
                encoder.sump(|encoder| value.encode_protobuf(encoder));
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: EngineProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    EngineField::Capacity(value) => self.capacity = value,
                    EngineField::NumCylinders(value) => self.num_cylinders = value,
                    EngineField::ManufacturerCode(value) => {
                        self.manufacturer_code = value.to_owned();
                    }
                    EngineField::Efficiency(value) => self.efficiency = value,
                    EngineField::BoosterEnabled(value) => self.booster_enabled = value,
                    EngineField::Booster(value) => self.booster.merge_protobuf(value)?,
                    EngineField::Sump(value) => self.sump.merge_protobuf(value)?,
                }
            }
            Ok(())
        }
    }
    /// Null if the mantissa is
    #[derive(Clone, Copy, Debug)]
    pub struct PriceDecoder<'a> {
        block: &'a [u8; 8],
    }
    impl<'a> PriceDecoder<'a> {
        /// Whether its first member has the null value, which makes the whole composite null where it is optional.
        #[inline]
        #[must_use]
        pub fn is_null(&self) -> bool {
            let raw = field::<0, 8, 8>(self.block);
            let value = i64::from_le_bytes(*raw);
            value == i64::MIN
        }
        /// Field `mantissa`.
        #[inline]
        #[must_use]
        pub fn mantissa(&self) -> i64 {
            let raw = field::<0, 8, 8>(self.block);
            let value = i64::from_le_bytes(*raw);
            value
        }
        /// Field `exponent`.
        #[inline]
        #[must_use]
        pub const fn exponent(&self) -> i8 {
            (-2i8)
        }
    }
    /// Null if the mantissa is
    #[derive(Debug)]
    pub struct PriceEncoder<'a> {
        block: &'a mut [u8; 8],
    }
    impl<'a> PriceEncoder<'a> {
        /// Field `mantissa`.
        #[inline]
        pub fn mantissa(&mut self, value: i64) -> &mut Self {
            *field_mut::<0, 8, 8>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// Null if the mantissa is
    #[derive(Clone, Debug, PartialEq)]
    pub struct Price {
        /// Field `mantissa`.
        pub mantissa: i64,
    }
    impl Default for Price {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                mantissa: Default::default(),
            }
        }
    }
    impl Price {
        /// Field `exponent`.
        pub const EXPONENT: i8 = (-2i8);
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &PriceDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                mantissa: decoder.mantissa(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut PriceEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.mantissa;
                encoder.mantissa(*value);
            }
            Ok(())
        }
    }
    /// Null if the mantissa is
    #[derive(Debug)]
    pub struct PriceProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> PriceProtobufEncoder<'w, 'a> {
        /// Field `mantissa`.
        #[inline]
        pub fn mantissa(&mut self, value: i64) -> &mut Self {
            self.writer.sint(1u32, i64::from(value));
            self
        }
    }
    /// A field of `Price` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum PriceField {
        /// Field `mantissa`.
        Mantissa(i64),
    }
    /// Null if the mantissa is
    #[derive(Clone, Copy, Debug)]
    pub struct PriceProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> PriceProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<PriceField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<PriceField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Price")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                PriceField::Mantissa(
                                    <i64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Price.mantissa",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(key, "Price", &[(1u32, "Price.mantissa")])?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for PriceProtobufDecoder<'a> {
        type Item = Result<PriceField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Price {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut PriceProtobufEncoder<'_, '_>) {
            {
                let value = &self.mantissa;
                encoder.mantissa(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: PriceProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    PriceField::Mantissa(value) => self.mantissa = value,
                }
            }
            Ok(())
        }
    }
    /// Description of a truck
    #[derive(Clone, Copy, Debug)]
    pub struct TruckDecoder<'a> {
        block: &'a [u8; 65],
        group_fuel_figures: ::gapless_schema::sbe::Group<
            'a,
            TruckFuelFiguresDecoder<'a>,
        >,
        group_performance_figures: ::gapless_schema::sbe::Group<
            'a,
            TruckPerformanceFiguresDecoder<'a>,
        >,
        data_manufacturer: &'a [u8],
        data_model: &'a [u8],
        data_activation_code: &'a [u8],
    }
    impl<'a> TruckDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Truck")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Truck", SCHEMA_ID, 1u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            65
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    65,
                >(block_length, Self::needed_length_at(version), version, "Truck")?;
            let group_fuel_figures = {
                let dimension = reader.chunk::<4>("Truck.fuelFigures")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            let group_performance_figures = {
                let dimension = reader.chunk::<4>("Truck.performanceFigures")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            let data_manufacturer = {
                let length = usize::try_from(
                        u32::from_le_bytes(*reader.chunk::<4>("Truck.manufacturer")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Truck.manufacturer")?
            };
            let data_model = {
                let length = usize::try_from(
                        u8::from_le_bytes(*reader.chunk::<1>("Truck.model")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Truck.model")?
            };
            let data_activation_code = {
                let length = usize::try_from(
                        u16::from_le_bytes(*reader.chunk::<2>("Truck.activationCode")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Truck.activationCode")?
            };
            Ok(Self {
                block,
                group_fuel_figures,
                group_performance_figures,
                data_manufacturer,
                data_model,
                data_activation_code,
            })
        }
        /// Field `serialNumber`.
        #[inline]
        #[must_use]
        pub fn serial_number(&self) -> u64 {
            let raw = field::<0, 8, 65>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `modelYear`.
        ///
        /// Semantic type: MonthYear.
        #[inline]
        #[must_use]
        pub fn model_year(&self) -> u16 {
            let raw = field::<8, 2, 65>(self.block);
            let value = u16::from_le_bytes(*raw);
            value
        }
        /// Field `available`.
        #[inline]
        #[must_use]
        pub fn available(&self) -> BooleanType {
            let raw = field::<10, 1, 65>(self.block);
            let value = BooleanType::from_raw(u8::from_le_bytes(*raw));
            value
        }
        /// Field `code`.
        #[inline]
        #[must_use]
        pub fn code(&self) -> Model {
            let raw = field::<11, 1, 65>(self.block);
            let value = Model::from_raw(u8::from_le_bytes(*raw));
            value
        }
        /// Kilograms
        #[inline]
        #[must_use]
        pub fn axle_loads(&self) -> [u32; 4] {
            let raw = field::<12, 16, 65>(self.block);
            let value = {
                let items = raw.as_chunks::<4>().0;
                core::array::from_fn::<_, 4, _>(|index| u32::from_le_bytes(items[index]))
            };
            value
        }
        /// Field `vehicleCode`.
        #[inline]
        #[must_use]
        pub fn vehicle_code(&self) -> &'a [u8; 6] {
            let raw = field::<28, 6, 65>(self.block);
            let value = raw;
            value
        }
        /// Field `vehicleCode` as text, up to the first NUL.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn vehicle_code_str(&self) -> Result<&'a str, DecodeError> {
            let bytes = self.vehicle_code();
            ::gapless_schema::sbe::text::utf8(
                ::gapless_schema::sbe::text::until_nul(bytes),
                "Truck.vehicleCode",
            )
        }
        /// Field `extras`.
        #[inline]
        #[must_use]
        pub fn extras(&self) -> OptionalExtras {
            let raw = field::<34, 1, 65>(self.block);
            let value = OptionalExtras::from_raw(u8::from_le_bytes(*raw));
            value
        }
        /// Field `discountedModel`.
        #[inline]
        #[must_use]
        pub const fn discounted_model(&self) -> Model {
            Model::C
        }
        /// Field `shownModel`.
        #[inline]
        #[must_use]
        pub const fn shown_model(&self) -> Model {
            Model::B
        }
        /// Field `engine`.
        #[inline]
        #[must_use]
        pub fn engine(&self) -> EngineDecoder<'a> {
            let raw = field::<35, 14, 65>(self.block);
            let value = EngineDecoder { block: raw };
            value
        }
        /// Field `price`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn price(&self) -> Option<PriceDecoder<'a>> {
            let raw = field::<49, 8, 65>(self.block);
            let value = PriceDecoder { block: raw };
            if value.is_null() { None } else { Some(value) }
        }
        /// Field `listPrice`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn list_price(&self) -> Option<PriceDecoder<'a>> {
            let raw = field::<57, 8, 65>(self.block);
            let value = PriceDecoder { block: raw };
            if value.is_null() { None } else { Some(value) }
        }
        /// Group `fuelFigures`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn fuel_figures(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, TruckFuelFiguresDecoder<'a>> {
            self.group_fuel_figures
        }
        /// Group `performanceFigures`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn performance_figures(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, TruckPerformanceFiguresDecoder<'a>> {
            self.group_performance_figures
        }
        /// Data `manufacturer`.
        #[inline]
        #[must_use]
        pub const fn manufacturer(&self) -> &'a [u8] {
            self.data_manufacturer
        }
        /// Data `manufacturer` as text.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn manufacturer_str(&self) -> Result<&'a str, DecodeError> {
            ::gapless_schema::sbe::text::utf8(
                self.data_manufacturer,
                "Truck.manufacturer",
            )
        }
        /// Data `model`.
        #[inline]
        #[must_use]
        pub const fn model(&self) -> &'a [u8] {
            self.data_model
        }
        /// Data `activationCode`.
        #[inline]
        #[must_use]
        pub const fn activation_code(&self) -> &'a [u8] {
            self.data_activation_code
        }
    }
    /// Description of a truck
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct TruckEncoder<'a> {
        block: &'a mut [u8; 73],
        tail: Tail<'a>,
        stage: TruckStage,
    }
    impl<'a> TruckEncoder<'a> {
        const TEMPLATE: [u8; 73] = {
            let block = [0; 73];
            let block = with(block, 0, (65u16).to_le_bytes());
            let block = with(block, 2, (1u16).to_le_bytes());
            let block = with(block, 4, (2u16).to_le_bytes());
            let block = with(block, 6, (0u16).to_le_bytes());
            let block = with(block, 53, u16::MAX.to_le_bytes());
            let block = with(block, 57, i64::MIN.to_le_bytes());
            let block = with(block, 65, i64::MIN.to_le_bytes());
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
            let block = tail.chunk::<73>("Truck")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: TruckStage {
                    reached: 0,
                    ..TruckStage::CLOSED
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
        /// Field `serialNumber`.
        #[inline]
        pub fn serial_number(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 73>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `modelYear`.
        ///
        /// Semantic type: MonthYear.
        #[inline]
        pub fn model_year(&mut self, value: u16) -> &mut Self {
            *field_mut::<16, 2, 73>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `available`.
        #[inline]
        pub fn available(&mut self, value: BooleanType) -> &mut Self {
            *field_mut::<18, 1, 73>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `code`.
        #[inline]
        pub fn code(&mut self, value: Model) -> &mut Self {
            *field_mut::<19, 1, 73>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Kilograms
        #[inline]
        pub fn axle_loads(&mut self, value: &[u32; 4]) -> &mut Self {
            for (slot, item) in field_mut::<20, 16, 73>(self.block)
                .as_chunks_mut::<4>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Field `vehicleCode`.
        #[inline]
        pub fn vehicle_code(&mut self, value: &[u8; 6]) -> &mut Self {
            for (slot, item) in field_mut::<36, 6, 73>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `vehicleCode` to a text, filled up with NUL.
        ///
        /// # Errors
        /// [`EncodeError::Text`] if it is too long, holds a NUL or is not in the character encoding.
        #[inline]
        pub fn vehicle_code_str(
            &mut self,
            value: &str,
        ) -> Result<&mut Self, EncodeError> {
            ::gapless_schema::sbe::text::put(
                field_mut::<36, 6, 73>(self.block),
                value.as_bytes(),
                "Truck.vehicleCode",
            )?;
            Ok(self)
        }
        /// Field `extras`.
        #[inline]
        pub fn extras(&mut self, value: OptionalExtras) -> &mut Self {
            *field_mut::<42, 1, 73>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `engine`.
        #[inline]
        pub fn engine(&mut self) -> EngineEncoder<'_> {
            EngineEncoder {
                block: field_mut::<43, 14, 73>(self.block),
            }
        }
        /// Field `price`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn price(&mut self) -> PriceEncoder<'_> {
            PriceEncoder {
                block: field_mut::<57, 8, 73>(self.block),
            }
        }
        /// Field `listPrice`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn list_price(&mut self) -> PriceEncoder<'_> {
            PriceEncoder {
                block: field_mut::<65, 8, 73>(self.block),
            }
        }
        /// Begins group `fuelFigures`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn fuel_figures(
            &mut self,
        ) -> Result<TruckFuelFiguresGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Truck.fuelFigures")?;
            *dimension = TruckFuelFiguresGroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(TruckFuelFiguresGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
                stage: &mut self.stage.child_fuel_figures,
            })
        }
        /// Begins group `performanceFigures`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn performance_figures(
            &mut self,
        ) -> Result<TruckPerformanceFiguresGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 1u8)?;
            let dimension = self.tail.chunk("Truck.performanceFigures")?;
            *dimension = TruckPerformanceFiguresGroupEncoder::EMPTY;
            self.stage.reached = 1u8 + 1;
            Ok(TruckPerformanceFiguresGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
                stage: &mut self.stage.child_performance_figures,
            })
        }
        /// Data `manufacturer`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn manufacturer(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 2u8)?;
            if value.len() as u64 > 1073741824 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Truck.manufacturer",
                        value.len(),
                        1073741824,
                    ),
                );
            }
            self.tail
                .put_data(
                    (value.len() as u32).to_le_bytes(),
                    value,
                    "Truck.manufacturer",
                )?;
            self.stage.reached = 2u8 + 1;
            Ok(self)
        }
        /// Data `model`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn model(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 3u8)?;
            if value.len() as u64 > 254 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Truck.model",
                        value.len(),
                        254,
                    ),
                );
            }
            self.tail.put_data((value.len() as u8).to_le_bytes(), value, "Truck.model")?;
            self.stage.reached = 3u8 + 1;
            Ok(self)
        }
        /// Data `activationCode`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn activation_code(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 4u8)?;
            if value.len() as u64 > 4096 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Truck.activationCode",
                        value.len(),
                        4096,
                    ),
                );
            }
            self.tail
                .put_data(
                    (value.len() as u16).to_le_bytes(),
                    value,
                    "Truck.activationCode",
                )?;
            self.stage.reached = 4u8 + 1;
            Ok(self)
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct TruckStage {
        reached: u8,
        child_fuel_figures: TruckFuelFiguresStage,
        child_performance_figures: TruckPerformanceFiguresStage,
    }
    impl TruckStage {
        const CLOSED: Self = Self {
            reached: 5u8,
            child_fuel_figures: TruckFuelFiguresStage::CLOSED,
            child_performance_figures: TruckPerformanceFiguresStage::CLOSED,
        };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
                && (self.reached != 1u8 || self.child_fuel_figures.is_at(1u8))
                && (self.reached != 2u8 || self.child_performance_figures.is_at(1u8))
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
                            0u8 => "Truck.fuelFigures",
                            1u8 => "Truck.performanceFigures",
                            2u8 => "Truck.manufacturer",
                            3u8 => "Truck.model",
                            4u8 => "Truck.activationCode",
                            _ => "Truck",
                        },
                    ),
                );
            }
            if self.reached == 1u8 {
                self.child_fuel_figures.advance(tail, 1u8)?;
            }
            if self.reached == 2u8 {
                self.child_performance_figures.advance(tail, 1u8)?;
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(TruckFuelFiguresGroupEncoder::EMPTY, "Truck.fuelFigures")?;
            }
            if self.reached <= 1u8 && 1u8 < member {
                tail.put(
                    TruckPerformanceFiguresGroupEncoder::EMPTY,
                    "Truck.performanceFigures",
                )?;
            }
            if self.reached <= 2u8 && 2u8 < member {
                tail.put([0; 4], "Truck.manufacturer")?;
            }
            if self.reached <= 3u8 && 3u8 < member {
                tail.put([0; 1], "Truck.model")?;
            }
            if self.reached <= 4u8 && 4u8 < member {
                tail.put([0; 2], "Truck.activationCode")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// Description of a truck
    #[derive(Clone, Debug, PartialEq)]
    pub struct Truck {
        /// Field `serialNumber`.
        pub serial_number: u64,
        /// Field `modelYear`.
        ///
        /// Semantic type: MonthYear.
        pub model_year: u16,
        /// Field `available`.
        pub available: BooleanType,
        /// Field `code`.
        pub code: Model,
        /// Kilograms
        pub axle_loads: [u32; 4],
        /// Field `vehicleCode`.
        pub vehicle_code: String,
        /// Field `extras`.
        pub extras: OptionalExtras,
        /// Field `engine`.
        pub engine: Engine,
        /// Field `price`.
        ///
        /// `None` if it is null.
        pub price: Option<Price>,
        /// Field `listPrice`.
        ///
        /// `None` if it is null.
        pub list_price: Option<Price>,
        /// Group `fuelFigures`.
        pub fuel_figures: Vec<TruckFuelFigures>,
        /// Group `performanceFigures`.
        pub performance_figures: Vec<TruckPerformanceFigures>,
        /// Data `manufacturer`.
        pub manufacturer: String,
        /// Data `model`.
        pub model: String,
        /// Data `activationCode`.
        pub activation_code: Vec<u8>,
    }
    impl Default for Truck {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                serial_number: Default::default(),
                model_year: Default::default(),
                available: Default::default(),
                code: Default::default(),
                axle_loads: [0; 4],
                vehicle_code: Default::default(),
                extras: Default::default(),
                engine: Default::default(),
                price: None,
                list_price: None,
                fuel_figures: Default::default(),
                performance_figures: Default::default(),
                manufacturer: Default::default(),
                model: Default::default(),
                activation_code: Default::default(),
            }
        }
    }
    impl Truck {
        /// Field `discountedModel`.
        pub const DISCOUNTED_MODEL: Model = Model::C;
        /// Field `shownModel`.
        pub const SHOWN_MODEL: Model = Model::B;
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &TruckDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                serial_number: decoder.serial_number(),
                model_year: decoder.model_year(),
                available: decoder.available(),
                code: decoder.code(),
                axle_loads: decoder.axle_loads(),
                vehicle_code: {
                    let item = decoder.vehicle_code();
                    ::gapless_schema::sbe::text::utf8(
                            ::gapless_schema::sbe::text::until_nul(item),
                            "Truck.vehicleCode",
                        )?
                        .to_owned()
                },
                extras: decoder.extras(),
                engine: {
                    let item = decoder.engine();
                    Engine::from_decoder(&item)?
                },
                price: match decoder.price() {
                    Some(item) => Some(Price::from_decoder(&item)?),
                    None => None,
                },
                list_price: match decoder.list_price() {
                    Some(item) => Some(Price::from_decoder(&item)?),
                    None => None,
                },
                fuel_figures: {
                    let entries = decoder.fuel_figures();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(TruckFuelFigures::from_decoder(&entry)?);
                    }
                    list
                },
                performance_figures: {
                    let entries = decoder.performance_figures();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(TruckPerformanceFigures::from_decoder(&entry)?);
                    }
                    list
                },
                manufacturer: ::gapless_schema::sbe::text::utf8(
                        decoder.manufacturer(),
                        "Truck.manufacturer",
                    )?
                    .to_owned(),
                model: ::gapless_schema::sbe::text::latin1_to_string(decoder.model()),
                activation_code: decoder.activation_code().to_vec(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut TruckEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.serial_number;
                encoder.serial_number(*value);
            }
            {
                let value = &self.model_year;
                encoder.model_year(*value);
            }
            {
                let value = &self.available;
                encoder.available(*value);
            }
            {
                let value = &self.code;
                encoder.code(*value);
            }
            {
                let value = &self.axle_loads;
                encoder.axle_loads(value);
            }
            {
                let value = &self.vehicle_code;
                encoder.vehicle_code_str(value)?;
            }
            {
                let value = &self.extras;
                encoder.extras(*value);
            }
            {
                let value = &self.engine;
                value.encode_into(&mut encoder.engine())?;
            }
            if let Some(value) = &self.price {
                value.encode_into(&mut encoder.price())?;
            }
            if let Some(value) = &self.list_price {
                value.encode_into(&mut encoder.list_price())?;
            }
            let mut group = encoder.fuel_figures()?;
            for item in &self.fuel_figures {
                item.encode_into(&mut group.entry()?)?;
            }
            let mut group = encoder.performance_figures()?;
            for item in &self.performance_figures {
                item.encode_into(&mut group.entry()?)?;
            }
            encoder.manufacturer(&self.manufacturer)?;
            encoder
                .model(
                    ::gapless_schema::sbe::text::latin1_bytes(
                        &self.model,
                        "Truck.model",
                    )?,
                )?;
            encoder.activation_code(&self.activation_code)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            65 + 4
                + self
                    .fuel_figures
                    .iter()
                    .map(|entry| entry.sbe_body_length())
                    .sum::<usize>() + 4
                + self
                    .performance_figures
                    .iter()
                    .map(|entry| entry.sbe_body_length())
                    .sum::<usize>() + 4 + self.manufacturer.len() + 1
                + self.model.chars().count() + 2 + self.activation_code.len()
        }
    }
    /// Description of a truck
    #[derive(Debug)]
    pub struct TruckProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> TruckProtobufEncoder<'a> {
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
            self.writer.finish("Truck")
        }
        /// Field `serialNumber`.
        #[inline]
        pub fn serial_number(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `modelYear`.
        ///
        /// Semantic type: MonthYear.
        #[inline]
        pub fn model_year(&mut self, value: u16) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
        /// Field `available`.
        #[inline]
        pub fn available(&mut self, value: BooleanType) -> &mut Self {
            self.writer.uint(3u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `code`.
        #[inline]
        pub fn code(&mut self, value: Model) -> &mut Self {
            self.writer.uint(4u32, i64::from(value.raw()) as u64);
            self
        }
        /// Kilograms
        #[inline]
        pub fn axle_loads(&mut self, value: &[u32; 4]) -> &mut Self {
            let mark = self.writer.open(5u32);
            for item in value {
                self.writer.packed_uint(u64::from((*item)));
            }
            self.writer.close(mark);
            self
        }
        /// Field `vehicleCode`.
        #[inline]
        pub fn vehicle_code(&mut self, value: &str) -> &mut Self {
            self.writer.bytes(6u32, value.as_bytes());
            self
        }
        /// Field `extras`.
        #[inline]
        pub fn extras(&mut self, value: OptionalExtras) -> &mut Self {
            self.writer.uint(7u32, u64::from(value.raw()));
            self
        }
        /// Field `engine`.
        #[inline]
        pub fn engine(
            &mut self,
            write: impl FnOnce(&mut EngineProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(9u32);
            write(
                &mut EngineProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Field `price`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn price(
            &mut self,
            write: impl FnOnce(&mut PriceProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(22u32);
            write(
                &mut PriceProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Field `listPrice`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn list_price(
            &mut self,
            write: impl FnOnce(&mut PriceProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(23u32);
            write(
                &mut PriceProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Group `fuelFigures`: appends one entry.
        #[inline]
        pub fn fuel_figures(
            &mut self,
            write: impl FnOnce(&mut TruckFuelFiguresProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(10u32);
            write(
                &mut TruckFuelFiguresProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Group `performanceFigures`: appends one entry.
        #[inline]
        pub fn performance_figures(
            &mut self,
            write: impl FnOnce(&mut TruckPerformanceFiguresProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(13u32);
            write(
                &mut TruckPerformanceFiguresProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Data `manufacturer`.
        #[inline]
        pub fn manufacturer(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(18u32, value.as_bytes());
            }
            self
        }
        /// Data `model`.
        #[inline]
        pub fn model(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(19u32, value.as_bytes());
            }
            self
        }
        /// Data `activationCode`.
        #[inline]
        pub fn activation_code(&mut self, value: &[u8]) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(20u32, value);
            }
            self
        }
    }
    /// A field of `Truck` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum TruckField<'a> {
        /// Field `serialNumber`.
        SerialNumber(u64),
        /// Field `modelYear`.
        ///
        /// Semantic type: MonthYear.
        ModelYear(u16),
        /// Field `available`.
        Available(BooleanType),
        /// Field `code`.
        Code(Model),
        /// Kilograms
        AxleLoads(::gapless_schema::protobuf::Packed<'a, u32>),
        /// Field `vehicleCode`.
        VehicleCode(&'a str),
        /// Field `extras`.
        Extras(OptionalExtras),
        /// Field `engine`.
        Engine(EngineProtobufDecoder<'a>),
        /// Field `price`.
        Price(PriceProtobufDecoder<'a>),
        /// Field `listPrice`.
        ListPrice(PriceProtobufDecoder<'a>),
        /// Group `fuelFigures`: one entry.
        FuelFigures(TruckFuelFiguresProtobufDecoder<'a>),
        /// Group `performanceFigures`: one entry.
        PerformanceFigures(TruckPerformanceFiguresProtobufDecoder<'a>),
        /// Data `manufacturer`.
        Manufacturer(&'a str),
        /// Data `model`.
        Model(&'a str),
        /// Data `activationCode`.
        ActivationCode(&'a [u8]),
    }
    /// Description of a truck
    #[derive(Clone, Copy, Debug)]
    pub struct TruckProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> TruckProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<TruckField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<TruckField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Truck")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                TruckField::SerialNumber(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Truck.serialNumber",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                TruckField::ModelYear(
                                    <u16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Truck.modelYear",
                                    )?,
                                ),
                            ),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(
                                TruckField::Available(
                                    <BooleanType as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Truck.available",
                                    )?,
                                ),
                            ),
                        );
                    }
                    32u32 => {
                        return Ok(
                            Some(
                                TruckField::Code(
                                    <Model as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Truck.code",
                                    )?,
                                ),
                            ),
                        );
                    }
                    42u32 => {
                        return Ok(
                            Some(
                                TruckField::AxleLoads(reader.packed("Truck.axleLoads")?),
                            ),
                        );
                    }
                    40u32 => {
                        return Ok(
                            Some(
                                TruckField::AxleLoads(reader.unpacked("Truck.axleLoads")?),
                            ),
                        );
                    }
                    50u32 => {
                        return Ok(
                            Some(
                                TruckField::VehicleCode(reader.text("Truck.vehicleCode")?),
                            ),
                        );
                    }
                    56u32 => {
                        return Ok(
                            Some(
                                TruckField::Extras(
                                    <OptionalExtras as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Truck.extras",
                                    )?,
                                ),
                            ),
                        );
                    }
                    74u32 => {
                        return Ok(
                            Some(
                                TruckField::Engine(EngineProtobufDecoder {
                                    reader: reader.message("Truck.engine")?,
                                }),
                            ),
                        );
                    }
                    178u32 => {
                        return Ok(
                            Some(
                                TruckField::Price(PriceProtobufDecoder {
                                    reader: reader.message("Truck.price")?,
                                }),
                            ),
                        );
                    }
                    186u32 => {
                        return Ok(
                            Some(
                                TruckField::ListPrice(PriceProtobufDecoder {
                                    reader: reader.message("Truck.listPrice")?,
                                }),
                            ),
                        );
                    }
                    82u32 => {
                        return Ok(
                            Some(
                                TruckField::FuelFigures(TruckFuelFiguresProtobufDecoder {
                                    reader: reader.message("Truck.fuelFigures")?,
                                }),
                            ),
                        );
                    }
                    106u32 => {
                        return Ok(
                            Some(
                                TruckField::PerformanceFigures(TruckPerformanceFiguresProtobufDecoder {
                                    reader: reader.message("Truck.performanceFigures")?,
                                }),
                            ),
                        );
                    }
                    146u32 => {
                        return Ok(
                            Some(
                                TruckField::Manufacturer(reader.text("Truck.manufacturer")?),
                            ),
                        );
                    }
                    154u32 => {
                        return Ok(Some(TruckField::Model(reader.text("Truck.model")?)));
                    }
                    162u32 => {
                        return Ok(
                            Some(
                                TruckField::ActivationCode(
                                    reader.bytes("Truck.activationCode")?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Truck",
                                &[
                                    (1u32, "Truck.serialNumber"),
                                    (2u32, "Truck.modelYear"),
                                    (3u32, "Truck.available"),
                                    (4u32, "Truck.code"),
                                    (5u32, "Truck.axleLoads"),
                                    (6u32, "Truck.vehicleCode"),
                                    (7u32, "Truck.extras"),
                                    (9u32, "Truck.engine"),
                                    (22u32, "Truck.price"),
                                    (23u32, "Truck.listPrice"),
                                    (10u32, "Truck.fuelFigures"),
                                    (13u32, "Truck.performanceFigures"),
                                    (18u32, "Truck.manufacturer"),
                                    (19u32, "Truck.model"),
                                    (20u32, "Truck.activationCode"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for TruckProtobufDecoder<'a> {
        type Item = Result<TruckField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Truck {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut TruckProtobufEncoder<'_>) {
            {
                let value = &self.serial_number;
                encoder.serial_number(*value);
            }
            {
                let value = &self.model_year;
                encoder.model_year(*value);
            }
            {
                let value = &self.available;
                encoder.available(*value);
            }
            {
                let value = &self.code;
                encoder.code(*value);
            }
            {
                let value = &self.axle_loads;
                encoder.axle_loads(value);
            }
            {
                let value = &self.vehicle_code;
                encoder.vehicle_code(value);
            }
            {
                let value = &self.extras;
                encoder.extras(*value);
            }
            {
                let value = &self.engine;
                encoder.engine(|encoder| value.encode_protobuf(encoder));
            }
            if let Some(value) = &self.price {
                encoder.price(|encoder| value.encode_protobuf(encoder));
            }
            if let Some(value) = &self.list_price {
                encoder.list_price(|encoder| value.encode_protobuf(encoder));
            }
            for entry in &self.fuel_figures {
                encoder.fuel_figures(|encoder| entry.encode_protobuf(encoder));
            }
            for entry in &self.performance_figures {
                encoder.performance_figures(|encoder| entry.encode_protobuf(encoder));
            }
            encoder.manufacturer(&self.manufacturer);
            encoder.model(&self.model);
            encoder.activation_code(&self.activation_code);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: TruckProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            let mut count_axle_loads = 0;
            while let Some(field) = decoder.next_field()? {
                match field {
                    TruckField::SerialNumber(value) => self.serial_number = value,
                    TruckField::ModelYear(value) => self.model_year = value,
                    TruckField::Available(value) => self.available = value,
                    TruckField::Code(value) => self.code = value,
                    TruckField::AxleLoads(value) => {
                        for item in value {
                            let item = item?;
                            match (&mut self.axle_loads).get_mut(count_axle_loads) {
                                Some(slot) => *slot = item,
                                None => {
                                    return Err(
                                        decoder
                                            .reader
                                            .error("Truck.axleLoads", "more than 4 values"),
                                    );
                                }
                            }
                            count_axle_loads += 1;
                        }
                    }
                    TruckField::VehicleCode(value) => {
                        self.vehicle_code = value.to_owned();
                    }
                    TruckField::Extras(value) => self.extras = value,
                    TruckField::Engine(value) => self.engine.merge_protobuf(value)?,
                    TruckField::Price(value) => {
                        self.price
                            .get_or_insert_with(Default::default)
                            .merge_protobuf(value)?
                    }
                    TruckField::ListPrice(value) => {
                        self.list_price
                            .get_or_insert_with(Default::default)
                            .merge_protobuf(value)?
                    }
                    TruckField::FuelFigures(value) => {
                        let mut entry = TruckFuelFigures::default();
                        entry.merge_protobuf(value)?;
                        self.fuel_figures.push(entry);
                    }
                    TruckField::PerformanceFigures(value) => {
                        let mut entry = TruckPerformanceFigures::default();
                        entry.merge_protobuf(value)?;
                        self.performance_figures.push(entry);
                    }
                    TruckField::Manufacturer(value) => {
                        self.manufacturer = value.to_owned();
                    }
                    TruckField::Model(value) => self.model = value.to_owned(),
                    TruckField::ActivationCode(value) => {
                        self.activation_code = value.to_owned();
                    }
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Truck.fuelFigures` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct TruckFuelFiguresDecoder<'a> {
        block: &'a [u8; 6],
        data_usage_description: &'a [u8],
    }
    impl<'a> TruckFuelFiguresDecoder<'a> {
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            6
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    6,
                >(
                    block_length,
                    Self::needed_length_at(version),
                    version,
                    "Truck.fuelFigures",
                )?;
            let data_usage_description = {
                let length = usize::try_from(
                        u16::from_le_bytes(
                            *reader.chunk::<2>("Truck.fuelFigures.usageDescription")?,
                        ),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Truck.fuelFigures.usageDescription")?
            };
            Ok(Self {
                block,
                data_usage_description,
            })
        }
        /// Field `speed`.
        #[inline]
        #[must_use]
        pub fn speed(&self) -> u16 {
            let raw = field::<0, 2, 6>(self.block);
            let value = u16::from_le_bytes(*raw);
            value
        }
        /// Field `mpg`.
        #[inline]
        #[must_use]
        pub fn mpg(&self) -> f32 {
            let raw = field::<2, 4, 6>(self.block);
            let value = f32::from_le_bytes(*raw);
            value
        }
        /// Data `usageDescription`.
        #[inline]
        #[must_use]
        pub const fn usage_description(&self) -> &'a [u8] {
            self.data_usage_description
        }
        /// Data `usageDescription` as text.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn usage_description_str(&self) -> Result<&'a str, DecodeError> {
            ::gapless_schema::sbe::text::utf8(
                self.data_usage_description,
                "Truck.fuelFigures.usageDescription",
            )
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for TruckFuelFiguresDecoder<'a> {
        const NAME: &'static str = "Truck.fuelFigures";
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
    /// Writes `Truck.fuelFigures` where it will lie.
    #[derive(Debug)]
    pub struct TruckFuelFiguresEncoder<'g, 'a> {
        block: &'a mut [u8; 6],
        tail: &'g mut Tail<'a>,
        stage: &'g mut TruckFuelFiguresStage,
    }
    impl<'g, 'a> TruckFuelFiguresEncoder<'g, 'a> {
        const TEMPLATE: [u8; 6] = {
            let block = [0; 6];
            block
        };
        /// Field `speed`.
        #[inline]
        pub fn speed(&mut self, value: u16) -> &mut Self {
            *field_mut::<0, 2, 6>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `mpg`.
        #[inline]
        pub fn mpg(&mut self, value: f32) -> &mut Self {
            *field_mut::<2, 4, 6>(self.block) = value.to_le_bytes();
            self
        }
        /// Data `usageDescription`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn usage_description(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 0u8)?;
            if value.len() as u64 > 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Truck.fuelFigures.usageDescription",
                        value.len(),
                        65534,
                    ),
                );
            }
            self.tail
                .put_data(
                    (value.len() as u16).to_le_bytes(),
                    value,
                    "Truck.fuelFigures.usageDescription",
                )?;
            self.stage.reached = 0u8 + 1;
            Ok(self)
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct TruckFuelFiguresStage {
        reached: u8,
    }
    impl TruckFuelFiguresStage {
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
                            0u8 => "Truck.fuelFigures.usageDescription",
                            _ => "Truck.fuelFigures",
                        },
                    ),
                );
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put([0; 2], "Truck.fuelFigures.usageDescription")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Truck.fuelFigures` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TruckFuelFigures {
        /// Field `speed`.
        pub speed: u16,
        /// Field `mpg`.
        pub mpg: f32,
        /// Data `usageDescription`.
        pub usage_description: String,
    }
    impl Default for TruckFuelFigures {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                speed: Default::default(),
                mpg: Default::default(),
                usage_description: Default::default(),
            }
        }
    }
    impl TruckFuelFigures {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &TruckFuelFiguresDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                speed: decoder.speed(),
                mpg: decoder.mpg(),
                usage_description: ::gapless_schema::sbe::text::utf8(
                        decoder.usage_description(),
                        "Truck.fuelFigures.usageDescription",
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
            encoder: &mut TruckFuelFiguresEncoder<'_, '_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.speed;
                encoder.speed(*value);
            }
            {
                let value = &self.mpg;
                encoder.mpg(*value);
            }
            encoder.usage_description(&self.usage_description)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            6 + 2 + self.usage_description.len()
        }
    }
    /// Appends the fields of `Truck.fuelFigures` as protobuf.
    #[derive(Debug)]
    pub struct TruckFuelFiguresProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> TruckFuelFiguresProtobufEncoder<'w, 'a> {
        /// Field `speed`.
        #[inline]
        pub fn speed(&mut self, value: u16) -> &mut Self {
            self.writer.uint(11u32, u64::from(value));
            self
        }
        /// Field `mpg`.
        #[inline]
        pub fn mpg(&mut self, value: f32) -> &mut Self {
            self.writer.float(12u32, value);
            self
        }
        /// Data `usageDescription`.
        #[inline]
        pub fn usage_description(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(200u32, value.as_bytes());
            }
            self
        }
    }
    /// A field of `Truck.fuelFigures` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum TruckFuelFiguresField<'a> {
        /// Field `speed`.
        Speed(u16),
        /// Field `mpg`.
        Mpg(f32),
        /// Data `usageDescription`.
        UsageDescription(&'a str),
    }
    /// Goes over the fields of `Truck.fuelFigures` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct TruckFuelFiguresProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> TruckFuelFiguresProtobufDecoder<'a> {
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
        ) -> Result<Option<TruckFuelFiguresField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(
            &mut self,
        ) -> Result<Option<TruckFuelFiguresField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Truck.fuelFigures")? {
                match key {
                    88u32 => {
                        return Ok(
                            Some(
                                TruckFuelFiguresField::Speed(
                                    <u16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Truck.fuelFigures.speed",
                                    )?,
                                ),
                            ),
                        );
                    }
                    101u32 => {
                        return Ok(
                            Some(
                                TruckFuelFiguresField::Mpg(
                                    <f32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Truck.fuelFigures.mpg",
                                    )?,
                                ),
                            ),
                        );
                    }
                    1602u32 => {
                        return Ok(
                            Some(
                                TruckFuelFiguresField::UsageDescription(
                                    reader.text("Truck.fuelFigures.usageDescription")?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Truck.fuelFigures",
                                &[
                                    (11u32, "Truck.fuelFigures.speed"),
                                    (12u32, "Truck.fuelFigures.mpg"),
                                    (200u32, "Truck.fuelFigures.usageDescription"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for TruckFuelFiguresProtobufDecoder<'a> {
        type Item = Result<TruckFuelFiguresField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl TruckFuelFigures {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut TruckFuelFiguresProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.speed;
                encoder.speed(*value);
            }
            {
                let value = &self.mpg;
                encoder.mpg(*value);
            }
            encoder.usage_description(&self.usage_description);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: TruckFuelFiguresProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    TruckFuelFiguresField::Speed(value) => self.speed = value,
                    TruckFuelFiguresField::Mpg(value) => self.mpg = value,
                    TruckFuelFiguresField::UsageDescription(value) => {
                        self.usage_description = value.to_owned();
                    }
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Truck.fuelFigures`.
    #[derive(Debug)]
    pub struct TruckFuelFiguresGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
        stage: &'g mut TruckFuelFiguresStage,
    }
    impl<'g, 'a> TruckFuelFiguresGroupEncoder<'g, 'a> {
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
        pub fn entry(&mut self) -> Result<TruckFuelFiguresEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(self.tail, 1u8)?;
            if self.count >= 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Truck.fuelFigures",
                        self.count as usize + 1,
                        65534,
                    ),
                );
            }
            let block = self.tail.chunk("Truck.fuelFigures")?;
            *block = TruckFuelFiguresEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            self.stage.reached = 0;
            Ok(TruckFuelFiguresEncoder {
                block,
                tail: self.tail,
                stage: self.stage,
            })
        }
    }
    /// Reads an entry of group `Truck.performanceFigures` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct TruckPerformanceFiguresDecoder<'a> {
        block: &'a [u8; 1],
        group_acceleration: ::gapless_schema::sbe::Group<
            'a,
            TruckPerformanceFiguresAccelerationDecoder<'a>,
        >,
    }
    impl<'a> TruckPerformanceFiguresDecoder<'a> {
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
                    "Truck.performanceFigures",
                )?;
            let group_acceleration = {
                let dimension = reader
                    .chunk::<4>("Truck.performanceFigures.acceleration")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            Ok(Self { block, group_acceleration })
        }
        /// Field `octaneRating`.
        ///
        /// Range: 90 to 110.
        #[inline]
        #[must_use]
        pub fn octane_rating(&self) -> u8 {
            let raw = field::<0, 1, 1>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// The least value of `octaneRating`.
        pub const OCTANE_RATING_MIN: u8 = (90u8);
        /// The greatest value of `octaneRating`.
        pub const OCTANE_RATING_MAX: u8 = (110u8);
        /// Group `acceleration`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn acceleration(
            &self,
        ) -> ::gapless_schema::sbe::Group<
            'a,
            TruckPerformanceFiguresAccelerationDecoder<'a>,
        > {
            self.group_acceleration
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for TruckPerformanceFiguresDecoder<'a> {
        const NAME: &'static str = "Truck.performanceFigures";
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
    /// Writes `Truck.performanceFigures` where it will lie.
    #[derive(Debug)]
    pub struct TruckPerformanceFiguresEncoder<'g, 'a> {
        block: &'a mut [u8; 1],
        tail: &'g mut Tail<'a>,
        stage: &'g mut TruckPerformanceFiguresStage,
    }
    impl<'g, 'a> TruckPerformanceFiguresEncoder<'g, 'a> {
        const TEMPLATE: [u8; 1] = {
            let block = [0; 1];
            block
        };
        /// Field `octaneRating`.
        ///
        /// Range: 90 to 110.
        #[inline]
        pub fn octane_rating(&mut self, value: u8) -> &mut Self {
            *field_mut::<0, 1, 1>(self.block) = value.to_le_bytes();
            self
        }
        /// Begins group `acceleration`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn acceleration(
            &mut self,
        ) -> Result<
            TruckPerformanceFiguresAccelerationGroupEncoder<'_, 'a>,
            EncodeError,
        > {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Truck.performanceFigures.acceleration")?;
            *dimension = TruckPerformanceFiguresAccelerationGroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(TruckPerformanceFiguresAccelerationGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct TruckPerformanceFiguresStage {
        reached: u8,
    }
    impl TruckPerformanceFiguresStage {
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
                            0u8 => "Truck.performanceFigures.acceleration",
                            _ => "Truck.performanceFigures",
                        },
                    ),
                );
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(
                    TruckPerformanceFiguresAccelerationGroupEncoder::EMPTY,
                    "Truck.performanceFigures.acceleration",
                )?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Truck.performanceFigures` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TruckPerformanceFigures {
        /// Field `octaneRating`.
        ///
        /// Range: 90 to 110.
        pub octane_rating: u8,
        /// Group `acceleration`.
        pub acceleration: Vec<TruckPerformanceFiguresAcceleration>,
    }
    impl Default for TruckPerformanceFigures {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                octane_rating: Default::default(),
                acceleration: Default::default(),
            }
        }
    }
    impl TruckPerformanceFigures {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &TruckPerformanceFiguresDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                octane_rating: decoder.octane_rating(),
                acceleration: {
                    let entries = decoder.acceleration();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(
                            TruckPerformanceFiguresAcceleration::from_decoder(&entry)?,
                        );
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
            encoder: &mut TruckPerformanceFiguresEncoder<'_, '_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.octane_rating;
                if (*value) < (90u8) || (*value) > (110u8) {
                    return Err(EncodeError::Range {
                        field: "Truck.performanceFigures.octaneRating",
                        range: "90 to 110",
                    });
                }
                encoder.octane_rating(*value);
            }
            let mut group = encoder.acceleration()?;
            for item in &self.acceleration {
                item.encode_into(&mut group.entry()?)?;
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            1 + 4 + self.acceleration.len() * 6
        }
    }
    /// Appends the fields of `Truck.performanceFigures` as protobuf.
    #[derive(Debug)]
    pub struct TruckPerformanceFiguresProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> TruckPerformanceFiguresProtobufEncoder<'w, 'a> {
        /// Field `octaneRating`.
        ///
        /// Range: 90 to 110.
        #[inline]
        pub fn octane_rating(&mut self, value: u8) -> &mut Self {
            self.writer.uint(14u32, u64::from(value));
            self
        }
        /// Group `acceleration`: appends one entry.
        #[inline]
        pub fn acceleration(
            &mut self,
            write: impl FnOnce(
                &mut TruckPerformanceFiguresAccelerationProtobufEncoder<'_, 'a>,
            ),
        ) -> &mut Self {
            let mark = self.writer.open(15u32);
            write(
                &mut TruckPerformanceFiguresAccelerationProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
    }
    /// A field of `Truck.performanceFigures` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum TruckPerformanceFiguresField<'a> {
        /// Field `octaneRating`.
        OctaneRating(u8),
        /// Group `acceleration`: one entry.
        Acceleration(TruckPerformanceFiguresAccelerationProtobufDecoder<'a>),
    }
    /// Goes over the fields of `Truck.performanceFigures` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct TruckPerformanceFiguresProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> TruckPerformanceFiguresProtobufDecoder<'a> {
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
        ) -> Result<Option<TruckPerformanceFiguresField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(
            &mut self,
        ) -> Result<Option<TruckPerformanceFiguresField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Truck.performanceFigures")? {
                match key {
                    112u32 => {
                        return Ok(
                            Some(
                                TruckPerformanceFiguresField::OctaneRating(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Truck.performanceFigures.octaneRating",
                                    )?,
                                ),
                            ),
                        );
                    }
                    122u32 => {
                        return Ok(
                            Some(
                                TruckPerformanceFiguresField::Acceleration(TruckPerformanceFiguresAccelerationProtobufDecoder {
                                    reader: reader
                                        .message("Truck.performanceFigures.acceleration")?,
                                }),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Truck.performanceFigures",
                                &[
                                    (14u32, "Truck.performanceFigures.octaneRating"),
                                    (15u32, "Truck.performanceFigures.acceleration"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for TruckPerformanceFiguresProtobufDecoder<'a> {
        type Item = Result<TruckPerformanceFiguresField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl TruckPerformanceFigures {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut TruckPerformanceFiguresProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.octane_rating;
                encoder.octane_rating(*value);
            }
            for entry in &self.acceleration {
                encoder.acceleration(|encoder| entry.encode_protobuf(encoder));
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: TruckPerformanceFiguresProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    TruckPerformanceFiguresField::OctaneRating(value) => {
                        self.octane_rating = value;
                    }
                    TruckPerformanceFiguresField::Acceleration(value) => {
                        let mut entry = TruckPerformanceFiguresAcceleration::default();
                        entry.merge_protobuf(value)?;
                        self.acceleration.push(entry);
                    }
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Truck.performanceFigures.acceleration` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct TruckPerformanceFiguresAccelerationDecoder<'a> {
        block: &'a [u8; 6],
    }
    impl<'a> TruckPerformanceFiguresAccelerationDecoder<'a> {
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            6
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    6,
                >(
                    block_length,
                    Self::needed_length_at(version),
                    version,
                    "Truck.performanceFigures.acceleration",
                )?;
            Ok(Self { block })
        }
        /// Field `mph`.
        #[inline]
        #[must_use]
        pub fn mph(&self) -> u16 {
            let raw = field::<0, 2, 6>(self.block);
            let value = u16::from_le_bytes(*raw);
            value
        }
        /// Field `seconds`.
        #[inline]
        #[must_use]
        pub fn seconds(&self) -> f32 {
            let raw = field::<2, 4, 6>(self.block);
            let value = f32::from_le_bytes(*raw);
            value
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a>
    for TruckPerformanceFiguresAccelerationDecoder<'a> {
        const NAME: &'static str = "Truck.performanceFigures.acceleration";
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
    /// Writes `Truck.performanceFigures.acceleration` where it will lie.
    #[derive(Debug)]
    pub struct TruckPerformanceFiguresAccelerationEncoder<'a> {
        block: &'a mut [u8; 6],
    }
    impl<'a> TruckPerformanceFiguresAccelerationEncoder<'a> {
        const TEMPLATE: [u8; 6] = {
            let block = [0; 6];
            block
        };
        /// Field `mph`.
        #[inline]
        pub fn mph(&mut self, value: u16) -> &mut Self {
            *field_mut::<0, 2, 6>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `seconds`.
        #[inline]
        pub fn seconds(&mut self, value: f32) -> &mut Self {
            *field_mut::<2, 4, 6>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// `Truck.performanceFigures.acceleration` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TruckPerformanceFiguresAcceleration {
        /// Field `mph`.
        pub mph: u16,
        /// Field `seconds`.
        pub seconds: f32,
    }
    impl Default for TruckPerformanceFiguresAcceleration {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                mph: Default::default(),
                seconds: Default::default(),
            }
        }
    }
    impl TruckPerformanceFiguresAcceleration {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &TruckPerformanceFiguresAccelerationDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                mph: decoder.mph(),
                seconds: decoder.seconds(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut TruckPerformanceFiguresAccelerationEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.mph;
                encoder.mph(*value);
            }
            {
                let value = &self.seconds;
                encoder.seconds(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            6
        }
    }
    /// Appends the fields of `Truck.performanceFigures.acceleration` as protobuf.
    #[derive(Debug)]
    pub struct TruckPerformanceFiguresAccelerationProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> TruckPerformanceFiguresAccelerationProtobufEncoder<'w, 'a> {
        /// Field `mph`.
        #[inline]
        pub fn mph(&mut self, value: u16) -> &mut Self {
            self.writer.uint(16u32, u64::from(value));
            self
        }
        /// Field `seconds`.
        #[inline]
        pub fn seconds(&mut self, value: f32) -> &mut Self {
            self.writer.float(17u32, value);
            self
        }
    }
    /// A field of `Truck.performanceFigures.acceleration` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum TruckPerformanceFiguresAccelerationField {
        /// Field `mph`.
        Mph(u16),
        /// Field `seconds`.
        Seconds(f32),
    }
    /// Goes over the fields of `Truck.performanceFigures.acceleration` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct TruckPerformanceFiguresAccelerationProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> TruckPerformanceFiguresAccelerationProtobufDecoder<'a> {
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
        ) -> Result<Option<TruckPerformanceFiguresAccelerationField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(
            &mut self,
        ) -> Result<Option<TruckPerformanceFiguresAccelerationField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Truck.performanceFigures.acceleration")? {
                match key {
                    128u32 => {
                        return Ok(
                            Some(
                                TruckPerformanceFiguresAccelerationField::Mph(
                                    <u16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Truck.performanceFigures.acceleration.mph",
                                    )?,
                                ),
                            ),
                        );
                    }
                    141u32 => {
                        return Ok(
                            Some(
                                TruckPerformanceFiguresAccelerationField::Seconds(
                                    <f32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Truck.performanceFigures.acceleration.seconds",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Truck.performanceFigures.acceleration",
                                &[
                                    (16u32, "Truck.performanceFigures.acceleration.mph"),
                                    (17u32, "Truck.performanceFigures.acceleration.seconds"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for TruckPerformanceFiguresAccelerationProtobufDecoder<'a> {
        type Item = Result<TruckPerformanceFiguresAccelerationField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl TruckPerformanceFiguresAcceleration {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut TruckPerformanceFiguresAccelerationProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.mph;
                encoder.mph(*value);
            }
            {
                let value = &self.seconds;
                encoder.seconds(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: TruckPerformanceFiguresAccelerationProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    TruckPerformanceFiguresAccelerationField::Mph(value) => {
                        self.mph = value;
                    }
                    TruckPerformanceFiguresAccelerationField::Seconds(value) => {
                        self.seconds = value;
                    }
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Truck.performanceFigures.acceleration`.
    #[derive(Debug)]
    pub struct TruckPerformanceFiguresAccelerationGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> TruckPerformanceFiguresAccelerationGroupEncoder<'g, 'a> {
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
        pub fn entry(
            &mut self,
        ) -> Result<TruckPerformanceFiguresAccelerationEncoder<'a>, EncodeError> {
            if self.count >= 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Truck.performanceFigures.acceleration",
                        self.count as usize + 1,
                        65534,
                    ),
                );
            }
            let block = self.tail.chunk("Truck.performanceFigures.acceleration")?;
            *block = TruckPerformanceFiguresAccelerationEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            Ok(TruckPerformanceFiguresAccelerationEncoder {
                block,
            })
        }
    }
    /// Writes the entries of group `Truck.performanceFigures`.
    #[derive(Debug)]
    pub struct TruckPerformanceFiguresGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
        stage: &'g mut TruckPerformanceFiguresStage,
    }
    impl<'g, 'a> TruckPerformanceFiguresGroupEncoder<'g, 'a> {
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
        pub fn entry(
            &mut self,
        ) -> Result<TruckPerformanceFiguresEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(self.tail, 1u8)?;
            if self.count >= 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Truck.performanceFigures",
                        self.count as usize + 1,
                        65534,
                    ),
                );
            }
            let block = self.tail.chunk("Truck.performanceFigures")?;
            *block = TruckPerformanceFiguresEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            self.stage.reached = 0;
            Ok(TruckPerformanceFiguresEncoder {
                block,
                tail: self.tail,
                stage: self.stage,
            })
        }
    }
    impl ::gapless_schema::Message for TruckDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Truck";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = TruckDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<TruckDecoder<'_>, DecodeError> {
            TruckDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for TruckEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Truck";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = TruckEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<TruckEncoder<'_>, EncodeError> {
            TruckEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: TruckEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for TruckProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Truck";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = TruckProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<TruckProtobufDecoder<'_>, DecodeError> {
            Ok(TruckProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for TruckProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Truck";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = TruckProtobufEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<TruckProtobufEncoder<'_>, EncodeError> {
            Ok(TruckProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: TruckProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Truck {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Truck";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&TruckDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = TruckEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Truck {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Truck";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(TruckProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = TruckProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = TruckProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
}
