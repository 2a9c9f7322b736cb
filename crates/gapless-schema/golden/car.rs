// Generated from a schema (gapless.car, id 1, version 0). Do not edit: change the schema.

/// The Car of the canonical benchmark
///
/// Schema id 1, version 0.
/// Semantic version 1.0.
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
pub mod car {
    use ::gapless_schema::sbe::block::{
        field, field_mut, from_offset, late_field, with, with_repeated,
    };
    use ::gapless_schema::sbe::{Entry as _, Tail};
    use ::gapless_schema::{DecodeError, EncodeError};
    /// Id of the schema.
    pub const SCHEMA_ID: u16 = 1u16;
    /// Version of the schema.
    pub const SCHEMA_VERSION: u64 = 0u64;
    /// Whether the car can be bought
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Availability {
        /// Value `F`.
        F,
        /// Value `T`.
        T,
        /// A number that this version of the schema does not name.
        Unknown(u8),
    }
    impl Availability {
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
    impl Default for Availability {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::F
        }
    }
    impl ::gapless_schema::protobuf::Value for Availability {
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
    /// Enum `Code`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Code {
        /// Value `A`.
        A,
        /// Value `B`.
        B,
        /// Value `C`.
        C,
        /// A number that this version of the schema does not name.
        Unknown(u8),
    }
    impl Code {
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
    impl Default for Code {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::A
        }
    }
    impl ::gapless_schema::protobuf::Value for Code {
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
    /// What comes with the car
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Extra {
        /// Value `sunRoof`.
        SunRoof,
        /// Value `sportsPack`.
        SportsPack,
        /// Value `cruiseControl`.
        CruiseControl,
        /// A number that this version of the schema does not name.
        Unknown(u8),
    }
    impl Extra {
        /// The number that means null where a field is optional.
        pub const NULL: u8 = u8::MAX;
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: u8) -> Self {
            match raw {
                0u8 => Self::SunRoof,
                1u8 => Self::SportsPack,
                2u8 => Self::CruiseControl,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u8 {
            match self {
                Self::SunRoof => (0u8),
                Self::SportsPack => (1u8),
                Self::CruiseControl => (2u8),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for Extra {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::SunRoof
        }
    }
    impl ::gapless_schema::protobuf::Value for Extra {
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
            let value = i16::from_le_bytes(*raw);
            value == i16::MIN
        }
        /// Cubic centimetres
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn capacity(&self) -> Option<i16> {
            let raw = field::<0, 2, 14>(self.block);
            let value = i16::from_le_bytes(*raw);
            if value == i16::MIN { None } else { Some(value) }
        }
        /// Field `numCylinders`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn num_cylinders(&self) -> Option<i8> {
            let raw = field::<2, 1, 14>(self.block);
            let value = i8::from_le_bytes(*raw);
            if value == i8::MIN { None } else { Some(value) }
        }
        /// Field `maxRpm`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn max_rpm(&self) -> Option<i16> {
            let raw = field::<3, 2, 14>(self.block);
            let value = i16::from_le_bytes(*raw);
            if value == i16::MIN { None } else { Some(value) }
        }
        /// Field `manufacturerCode`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn manufacturer_code(&self) -> Option<&'a [u8; 3]> {
            let raw = field::<5, 3, 14>(self.block);
            let value = raw;
            if value[0] == (0u8) { None } else { Some(value) }
        }
        /// Field `manufacturerCode` as text, up to the first NUL.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn manufacturer_code_str(&self) -> Result<Option<&'a str>, DecodeError> {
            match self.manufacturer_code() {
                Some(bytes) => {
                    Ok(
                        Some(
                            ::gapless_schema::sbe::text::utf8(
                                ::gapless_schema::sbe::text::until_nul(bytes),
                                "Engine.manufacturerCode",
                            )?,
                        ),
                    )
                }
                None => Ok(None),
            }
        }
        /// Field `fuel`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn fuel(&self) -> Option<&'a [u8; 6]> {
            let raw = field::<8, 6, 14>(self.block);
            let value = raw;
            if value[0] == (0u8) { None } else { Some(value) }
        }
        /// Field `fuel` as text, up to the first NUL.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn fuel_str(&self) -> Result<Option<&'a str>, DecodeError> {
            match self.fuel() {
                Some(bytes) => {
                    Ok(
                        Some(
                            ::gapless_schema::sbe::text::utf8(
                                ::gapless_schema::sbe::text::until_nul(bytes),
                                "Engine.fuel",
                            )?,
                        ),
                    )
                }
                None => Ok(None),
            }
        }
    }
    /// Writes `Engine` where it will lie.
    #[derive(Debug)]
    pub struct EngineEncoder<'a> {
        block: &'a mut [u8; 14],
    }
    impl<'a> EngineEncoder<'a> {
        /// Cubic centimetres
        ///
        /// The value -32768 is the null value: it writes null.
        #[inline]
        pub fn capacity(&mut self, value: i16) -> &mut Self {
            *field_mut::<0, 2, 14>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `capacity`, to null if there is no value.
        #[inline]
        pub fn capacity_or_null(&mut self, value: Option<i16>) -> &mut Self {
            match value {
                Some(value) => self.capacity(value),
                None => self.capacity(i16::MIN),
            }
        }
        /// Field `numCylinders`.
        ///
        /// The value -128 is the null value: it writes null.
        #[inline]
        pub fn num_cylinders(&mut self, value: i8) -> &mut Self {
            *field_mut::<2, 1, 14>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `numCylinders`, to null if there is no value.
        #[inline]
        pub fn num_cylinders_or_null(&mut self, value: Option<i8>) -> &mut Self {
            match value {
                Some(value) => self.num_cylinders(value),
                None => self.num_cylinders(i8::MIN),
            }
        }
        /// Field `maxRpm`.
        ///
        /// The value -32768 is the null value: it writes null.
        #[inline]
        pub fn max_rpm(&mut self, value: i16) -> &mut Self {
            *field_mut::<3, 2, 14>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `maxRpm`, to null if there is no value.
        #[inline]
        pub fn max_rpm_or_null(&mut self, value: Option<i16>) -> &mut Self {
            match value {
                Some(value) => self.max_rpm(value),
                None => self.max_rpm(i16::MIN),
            }
        }
        /// Field `manufacturerCode`.
        ///
        /// The value 0 is the null value: it writes null.
        #[inline]
        pub fn manufacturer_code(&mut self, value: &[u8; 3]) -> &mut Self {
            for (slot, item) in field_mut::<5, 3, 14>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `manufacturerCode`, to null if there is no value.
        #[inline]
        pub fn manufacturer_code_or_null(
            &mut self,
            value: Option<&[u8; 3]>,
        ) -> &mut Self {
            match value {
                Some(value) => self.manufacturer_code(value),
                None => self.manufacturer_code(&[(0u8); 3]),
            }
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
            ::gapless_schema::sbe::text::put_ascii(
                field_mut::<5, 3, 14>(self.block),
                value.as_bytes(),
                "Engine.manufacturerCode",
            )?;
            Ok(self)
        }
        /// Field `fuel`.
        ///
        /// The value 0 is the null value: it writes null.
        #[inline]
        pub fn fuel(&mut self, value: &[u8; 6]) -> &mut Self {
            for (slot, item) in field_mut::<8, 6, 14>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `fuel`, to null if there is no value.
        #[inline]
        pub fn fuel_or_null(&mut self, value: Option<&[u8; 6]>) -> &mut Self {
            match value {
                Some(value) => self.fuel(value),
                None => self.fuel(&[(0u8); 6]),
            }
        }
        /// Sets field `fuel` to a text, filled up with NUL.
        ///
        /// # Errors
        /// [`EncodeError::Text`] if it is too long, holds a NUL or is not in the character encoding.
        #[inline]
        pub fn fuel_str(&mut self, value: &str) -> Result<&mut Self, EncodeError> {
            ::gapless_schema::sbe::text::put_ascii(
                field_mut::<8, 6, 14>(self.block),
                value.as_bytes(),
                "Engine.fuel",
            )?;
            Ok(self)
        }
    }
    /// `Engine` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Engine {
        /// Cubic centimetres
        ///
        /// `None` if it is null.
        pub capacity: Option<i16>,
        /// Field `numCylinders`.
        ///
        /// `None` if it is null.
        pub num_cylinders: Option<i8>,
        /// Field `maxRpm`.
        ///
        /// `None` if it is null.
        pub max_rpm: Option<i16>,
        /// Field `manufacturerCode`.
        ///
        /// `None` if it is null.
        pub manufacturer_code: Option<String>,
        /// Field `fuel`.
        ///
        /// `None` if it is null.
        pub fuel: Option<String>,
    }
    impl Default for Engine {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                capacity: None,
                num_cylinders: None,
                max_rpm: None,
                manufacturer_code: None,
                fuel: None,
            }
        }
    }
    impl Engine {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &EngineDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                capacity: decoder.capacity(),
                num_cylinders: decoder.num_cylinders(),
                max_rpm: decoder.max_rpm(),
                manufacturer_code: match decoder.manufacturer_code() {
                    Some(item) => {
                        Some(
                            ::gapless_schema::sbe::text::utf8(
                                    ::gapless_schema::sbe::text::until_nul(item),
                                    "Engine.manufacturerCode",
                                )?
                                .to_owned(),
                        )
                    }
                    None => None,
                },
                fuel: match decoder.fuel() {
                    Some(item) => {
                        Some(
                            ::gapless_schema::sbe::text::utf8(
                                    ::gapless_schema::sbe::text::until_nul(item),
                                    "Engine.fuel",
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
            encoder: &mut EngineEncoder<'_>,
        ) -> Result<(), EncodeError> {
            if let Some(value) = &self.capacity {
                if (*value) == i16::MIN {
                    return Err(EncodeError::Range {
                        field: "Engine.capacity",
                        range: "of its type without the null value",
                    });
                }
                encoder.capacity(*value);
            }
            if let Some(value) = &self.num_cylinders {
                if (*value) == i8::MIN {
                    return Err(EncodeError::Range {
                        field: "Engine.numCylinders",
                        range: "of its type without the null value",
                    });
                }
                encoder.num_cylinders(*value);
            }
            if let Some(value) = &self.max_rpm {
                if (*value) == i16::MIN {
                    return Err(EncodeError::Range {
                        field: "Engine.maxRpm",
                        range: "of its type without the null value",
                    });
                }
                encoder.max_rpm(*value);
            }
            if let Some(value) = &self.manufacturer_code {
                encoder.manufacturer_code_str(value)?;
            }
            if let Some(value) = &self.fuel {
                encoder.fuel_str(value)?;
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
        /// Cubic centimetres
        ///
        /// `None` if it is null.
        #[inline]
        pub fn capacity(&mut self, value: i16) -> &mut Self {
            self.writer.sint(1u32, i64::from(value));
            self
        }
        /// Field `numCylinders`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn num_cylinders(&mut self, value: i8) -> &mut Self {
            self.writer.sint(2u32, i64::from(value));
            self
        }
        /// Field `maxRpm`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn max_rpm(&mut self, value: i16) -> &mut Self {
            self.writer.sint(3u32, i64::from(value));
            self
        }
        /// Field `manufacturerCode`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn manufacturer_code(&mut self, value: &str) -> &mut Self {
            self.writer.bytes(4u32, value.as_bytes());
            self
        }
        /// Field `fuel`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn fuel(&mut self, value: &str) -> &mut Self {
            self.writer.bytes(5u32, value.as_bytes());
            self
        }
    }
    /// A field of `Engine` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum EngineField<'a> {
        /// Cubic centimetres
        Capacity(i16),
        /// Field `numCylinders`.
        NumCylinders(i8),
        /// Field `maxRpm`.
        MaxRpm(i16),
        /// Field `manufacturerCode`.
        ManufacturerCode(&'a str),
        /// Field `fuel`.
        Fuel(&'a str),
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
        /// The error in the payload and its place; nothing is read after that.
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
                                    <i16 as ::gapless_schema::protobuf::Value>::read(
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
                                    <i8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Engine.numCylinders",
                                    )?,
                                ),
                            ),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(
                                EngineField::MaxRpm(
                                    <i16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Engine.maxRpm",
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
                    42u32 => {
                        return Ok(Some(EngineField::Fuel(reader.text("Engine.fuel")?)));
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Engine",
                                &[
                                    (1u32, "Engine.capacity"),
                                    (2u32, "Engine.numCylinders"),
                                    (3u32, "Engine.maxRpm"),
                                    (4u32, "Engine.manufacturerCode"),
                                    (5u32, "Engine.fuel"),
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
            if let Some(value) = &self.capacity {
                encoder.capacity(*value);
            }
            if let Some(value) = &self.num_cylinders {
                encoder.num_cylinders(*value);
            }
            if let Some(value) = &self.max_rpm {
                encoder.max_rpm(*value);
            }
            if let Some(value) = &self.manufacturer_code {
                encoder.manufacturer_code(value);
            }
            if let Some(value) = &self.fuel {
                encoder.fuel(value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: EngineProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    EngineField::Capacity(value) => self.capacity = Some(value),
                    EngineField::NumCylinders(value) => self.num_cylinders = Some(value),
                    EngineField::MaxRpm(value) => self.max_rpm = Some(value),
                    EngineField::ManufacturerCode(value) => {
                        self.manufacturer_code = Some(value.to_owned());
                    }
                    EngineField::Fuel(value) => self.fuel = Some(value.to_owned()),
                }
            }
            Ok(())
        }
    }
    /// A car: the message of the canonical benchmark
    #[derive(Clone, Copy, Debug)]
    pub struct CarDecoder<'a> {
        block: &'a [u8; 28],
        group_some_numbers: ::gapless_schema::sbe::Group<'a, CarSomeNumbersDecoder<'a>>,
        group_extras: ::gapless_schema::sbe::Group<'a, CarExtrasDecoder<'a>>,
        group_fuel_figure: ::gapless_schema::sbe::Group<'a, CarFuelFigureDecoder<'a>>,
        group_performance_figure: ::gapless_schema::sbe::Group<
            'a,
            CarPerformanceFigureDecoder<'a>,
        >,
        data_manufacturer: &'a [u8],
        data_model: &'a [u8],
    }
    impl<'a> CarDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. Bytes after the
        /// message are ignored.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Car")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Car", SCHEMA_ID, 1u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            28
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    28,
                >(block_length, Self::needed_length_at(version), version, "Car")?;
            let group_some_numbers = {
                let dimension = reader.chunk::<4>("Car.someNumbers")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            let group_extras = {
                let dimension = reader.chunk::<4>("Car.extras")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            let group_fuel_figure = {
                let dimension = reader.chunk::<4>("Car.fuelFigure")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            let group_performance_figure = {
                let dimension = reader.chunk::<4>("Car.performanceFigure")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u16::from_le_bytes(*field::<0, 2, 4>(dimension))),
                    u64::from(u16::from_le_bytes(*field::<2, 2, 4>(dimension))),
                    version,
                )?
            };
            let data_manufacturer = {
                let length = usize::try_from(
                        u16::from_le_bytes(*reader.chunk::<2>("Car.manufacturer")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Car.manufacturer")?
            };
            let data_model = {
                let length = usize::try_from(
                        u16::from_le_bytes(*reader.chunk::<2>("Car.model")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Car.model")?
            };
            Ok(Self {
                block,
                group_some_numbers,
                group_extras,
                group_fuel_figure,
                group_performance_figure,
                data_manufacturer,
                data_model,
            })
        }
        /// Field `serialNumber`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn serial_number(&self) -> Option<i32> {
            let raw = field::<0, 4, 28>(self.block);
            let value = i32::from_le_bytes(*raw);
            if value == i32::MIN { None } else { Some(value) }
        }
        /// Field `modelYear`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn model_year(&self) -> Option<i16> {
            let raw = field::<4, 2, 28>(self.block);
            let value = i16::from_le_bytes(*raw);
            if value == i16::MIN { None } else { Some(value) }
        }
        /// Field `available`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn available(&self) -> Option<Availability> {
            let raw = field::<6, 1, 28>(self.block);
            let value = Availability::from_raw(u8::from_le_bytes(*raw));
            if u8::from_le_bytes(*raw) == u8::MAX { None } else { Some(value) }
        }
        /// Field `code`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn code(&self) -> Option<Code> {
            let raw = field::<7, 1, 28>(self.block);
            let value = Code::from_raw(u8::from_le_bytes(*raw));
            if u8::from_le_bytes(*raw) == (0u8) { None } else { Some(value) }
        }
        /// Field `vehicleCode`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn vehicle_code(&self) -> Option<&'a [u8; 6]> {
            let raw = field::<8, 6, 28>(self.block);
            let value = raw;
            if value[0] == (0u8) { None } else { Some(value) }
        }
        /// Field `vehicleCode` as text, up to the first NUL.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn vehicle_code_str(&self) -> Result<Option<&'a str>, DecodeError> {
            match self.vehicle_code() {
                Some(bytes) => {
                    Ok(
                        Some(
                            ::gapless_schema::sbe::text::utf8(
                                ::gapless_schema::sbe::text::until_nul(bytes),
                                "Car.vehicleCode",
                            )?,
                        ),
                    )
                }
                None => Ok(None),
            }
        }
        /// Field `engine`.
        #[inline]
        #[must_use]
        pub fn engine(&self) -> EngineDecoder<'a> {
            let raw = field::<14, 14, 28>(self.block);
            let value = EngineDecoder { block: raw };
            value
        }
        /// Group `someNumbers`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn some_numbers(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, CarSomeNumbersDecoder<'a>> {
            self.group_some_numbers
        }
        /// Group `extras`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn extras(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, CarExtrasDecoder<'a>> {
            self.group_extras
        }
        /// Group `fuelFigure`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn fuel_figure(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, CarFuelFigureDecoder<'a>> {
            self.group_fuel_figure
        }
        /// Group `performanceFigure`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn performance_figure(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, CarPerformanceFigureDecoder<'a>> {
            self.group_performance_figure
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
            ::gapless_schema::sbe::text::utf8(self.data_manufacturer, "Car.manufacturer")
        }
        /// Data `model`.
        #[inline]
        #[must_use]
        pub const fn model(&self) -> &'a [u8] {
            self.data_model
        }
        /// Data `model` as text.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if it is not in its character encoding.
        #[inline]
        pub fn model_str(&self) -> Result<&'a str, DecodeError> {
            ::gapless_schema::sbe::text::utf8(self.data_model, "Car.model")
        }
    }
    /// A car: the message of the canonical benchmark
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct CarEncoder<'a> {
        block: &'a mut [u8; 36],
        tail: Tail<'a>,
        stage: CarStage,
    }
    impl<'a> CarEncoder<'a> {
        const TEMPLATE: [u8; 36] = {
            let block = [0; 36];
            let block = with(block, 0, (28u16).to_le_bytes());
            let block = with(block, 2, (1u16).to_le_bytes());
            let block = with(block, 4, (1u16).to_le_bytes());
            let block = with(block, 6, (0u16).to_le_bytes());
            let block = with(block, 8, i32::MIN.to_le_bytes());
            let block = with(block, 12, i16::MIN.to_le_bytes());
            let block = with(block, 14, u8::MAX.to_le_bytes());
            let block = with(block, 15, (0u8).to_le_bytes());
            let block = with_repeated(block, 16, (0u8).to_le_bytes(), 6);
            let block = with(block, 22, i16::MIN.to_le_bytes());
            let block = with(block, 24, i8::MIN.to_le_bytes());
            let block = with(block, 25, i16::MIN.to_le_bytes());
            let block = with_repeated(block, 27, (0u8).to_le_bytes(), 3);
            let block = with_repeated(block, 30, (0u8).to_le_bytes(), 6);
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
            let block = tail.chunk::<36>("Car")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: CarStage {
                    reached: 0,
                    ..CarStage::CLOSED
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
            self.stage.advance(&mut self.tail, 6u8)?;
            Ok(self.tail.position())
        }
        /// Field `serialNumber`.
        ///
        /// The value -2147483648 is the null value: it writes null.
        #[inline]
        pub fn serial_number(&mut self, value: i32) -> &mut Self {
            *field_mut::<8, 4, 36>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `serialNumber`, to null if there is no value.
        #[inline]
        pub fn serial_number_or_null(&mut self, value: Option<i32>) -> &mut Self {
            match value {
                Some(value) => self.serial_number(value),
                None => self.serial_number(i32::MIN),
            }
        }
        /// Field `modelYear`.
        ///
        /// The value -32768 is the null value: it writes null.
        #[inline]
        pub fn model_year(&mut self, value: i16) -> &mut Self {
            *field_mut::<12, 2, 36>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `modelYear`, to null if there is no value.
        #[inline]
        pub fn model_year_or_null(&mut self, value: Option<i16>) -> &mut Self {
            match value {
                Some(value) => self.model_year(value),
                None => self.model_year(i16::MIN),
            }
        }
        /// Field `available`.
        ///
        /// The value 255 is the null value: it writes null.
        #[inline]
        pub fn available(&mut self, value: Availability) -> &mut Self {
            *field_mut::<14, 1, 36>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Sets field `available`, to null if there is no value.
        #[inline]
        pub fn available_or_null(&mut self, value: Option<Availability>) -> &mut Self {
            match value {
                Some(value) => self.available(value),
                None => self.available(Availability::from_raw(u8::MAX)),
            }
        }
        /// Field `code`.
        ///
        /// The value 0 is the null value: it writes null.
        #[inline]
        pub fn code(&mut self, value: Code) -> &mut Self {
            *field_mut::<15, 1, 36>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Sets field `code`, to null if there is no value.
        #[inline]
        pub fn code_or_null(&mut self, value: Option<Code>) -> &mut Self {
            match value {
                Some(value) => self.code(value),
                None => self.code(Code::from_raw((0u8))),
            }
        }
        /// Field `vehicleCode`.
        ///
        /// The value 0 is the null value: it writes null.
        #[inline]
        pub fn vehicle_code(&mut self, value: &[u8; 6]) -> &mut Self {
            for (slot, item) in field_mut::<16, 6, 36>(self.block)
                .as_chunks_mut::<1>()
                .0
                .iter_mut()
                .zip(value)
            {
                *slot = item.to_le_bytes();
            }
            self
        }
        /// Sets field `vehicleCode`, to null if there is no value.
        #[inline]
        pub fn vehicle_code_or_null(&mut self, value: Option<&[u8; 6]>) -> &mut Self {
            match value {
                Some(value) => self.vehicle_code(value),
                None => self.vehicle_code(&[(0u8); 6]),
            }
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
            ::gapless_schema::sbe::text::put_ascii(
                field_mut::<16, 6, 36>(self.block),
                value.as_bytes(),
                "Car.vehicleCode",
            )?;
            Ok(self)
        }
        /// Field `engine`.
        #[inline]
        pub fn engine(&mut self) -> EngineEncoder<'_> {
            EngineEncoder {
                block: field_mut::<22, 14, 36>(self.block),
            }
        }
        /// Begins group `someNumbers`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn some_numbers(
            &mut self,
        ) -> Result<CarSomeNumbersGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Car.someNumbers")?;
            *dimension = CarSomeNumbersGroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(CarSomeNumbersGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
        /// Begins group `extras`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn extras(&mut self) -> Result<CarExtrasGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 1u8)?;
            let dimension = self.tail.chunk("Car.extras")?;
            *dimension = CarExtrasGroupEncoder::EMPTY;
            self.stage.reached = 1u8 + 1;
            Ok(CarExtrasGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
        /// Begins group `fuelFigure`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn fuel_figure(
            &mut self,
        ) -> Result<CarFuelFigureGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 2u8)?;
            let dimension = self.tail.chunk("Car.fuelFigure")?;
            *dimension = CarFuelFigureGroupEncoder::EMPTY;
            self.stage.reached = 2u8 + 1;
            Ok(CarFuelFigureGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
        /// Begins group `performanceFigure`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn performance_figure(
            &mut self,
        ) -> Result<CarPerformanceFigureGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 3u8)?;
            let dimension = self.tail.chunk("Car.performanceFigure")?;
            *dimension = CarPerformanceFigureGroupEncoder::EMPTY;
            self.stage.reached = 3u8 + 1;
            Ok(CarPerformanceFigureGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
                stage: &mut self.stage.child_performance_figure,
            })
        }
        /// Data `manufacturer`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length, [`EncodeError::Text`] if
        /// it is not in the character encoding, where that is US-ASCII.
        #[inline(always)]
        pub fn manufacturer(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 4u8)?;
            if value.len() as u64 > 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Car.manufacturer",
                        value.len(),
                        65534,
                    ),
                );
            }
            self.tail
                .put_data(
                    (value.len() as u16).to_le_bytes(),
                    value,
                    "Car.manufacturer",
                )?;
            self.stage.reached = 4u8 + 1;
            Ok(self)
        }
        /// Data `model`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length, [`EncodeError::Text`] if
        /// it is not in the character encoding, where that is US-ASCII.
        #[inline(always)]
        pub fn model(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 5u8)?;
            if value.len() as u64 > 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Car.model",
                        value.len(),
                        65534,
                    ),
                );
            }
            self.tail.put_data((value.len() as u16).to_le_bytes(), value, "Car.model")?;
            self.stage.reached = 5u8 + 1;
            Ok(self)
        }
    }
    /// Progress of the groups and data, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct CarStage {
        reached: u8,
        child_performance_figure: CarPerformanceFigureStage,
    }
    impl CarStage {
        const CLOSED: Self = Self {
            reached: 6u8,
            child_performance_figure: CarPerformanceFigureStage::CLOSED,
        };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
                && (self.reached != 4u8 || self.child_performance_figure.is_at(1u8))
        }
        /// Completes the open member and fills in the skipped ones before `member`.
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
                            0u8 => "Car.someNumbers",
                            1u8 => "Car.extras",
                            2u8 => "Car.fuelFigure",
                            3u8 => "Car.performanceFigure",
                            4u8 => "Car.manufacturer",
                            5u8 => "Car.model",
                            _ => "Car",
                        },
                    ),
                );
            }
            if self.reached == 4u8 {
                self.child_performance_figure.advance(tail, 1u8)?;
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(CarSomeNumbersGroupEncoder::EMPTY, "Car.someNumbers")?;
            }
            if self.reached <= 1u8 && 1u8 < member {
                tail.put(CarExtrasGroupEncoder::EMPTY, "Car.extras")?;
            }
            if self.reached <= 2u8 && 2u8 < member {
                tail.put(CarFuelFigureGroupEncoder::EMPTY, "Car.fuelFigure")?;
            }
            if self.reached <= 3u8 && 3u8 < member {
                tail.put(
                    CarPerformanceFigureGroupEncoder::EMPTY,
                    "Car.performanceFigure",
                )?;
            }
            if self.reached <= 4u8 && 4u8 < member {
                tail.put([0; 2], "Car.manufacturer")?;
            }
            if self.reached <= 5u8 && 5u8 < member {
                tail.put([0; 2], "Car.model")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// A car: the message of the canonical benchmark
    #[derive(Clone, Debug, PartialEq)]
    pub struct Car {
        /// Field `serialNumber`.
        ///
        /// `None` if it is null.
        pub serial_number: Option<i32>,
        /// Field `modelYear`.
        ///
        /// `None` if it is null.
        pub model_year: Option<i16>,
        /// Field `available`.
        ///
        /// `None` if it is null.
        pub available: Option<Availability>,
        /// Field `code`.
        ///
        /// `None` if it is null.
        pub code: Option<Code>,
        /// Field `vehicleCode`.
        ///
        /// `None` if it is null.
        pub vehicle_code: Option<String>,
        /// Field `engine`.
        pub engine: Engine,
        /// Group `someNumbers`.
        pub some_numbers: Vec<i32>,
        /// Group `extras`.
        pub extras: Vec<Extra>,
        /// Group `fuelFigure`.
        pub fuel_figure: Vec<CarFuelFigure>,
        /// Group `performanceFigure`.
        pub performance_figure: Vec<CarPerformanceFigure>,
        /// Data `manufacturer`.
        pub manufacturer: String,
        /// Data `model`.
        pub model: String,
    }
    impl Default for Car {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                serial_number: None,
                model_year: None,
                available: None,
                code: None,
                vehicle_code: None,
                engine: Default::default(),
                some_numbers: Default::default(),
                extras: Default::default(),
                fuel_figure: Default::default(),
                performance_figure: Default::default(),
                manufacturer: Default::default(),
                model: Default::default(),
            }
        }
    }
    impl Car {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &CarDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                serial_number: decoder.serial_number(),
                model_year: decoder.model_year(),
                available: decoder.available(),
                code: decoder.code(),
                vehicle_code: match decoder.vehicle_code() {
                    Some(item) => {
                        Some(
                            ::gapless_schema::sbe::text::utf8(
                                    ::gapless_schema::sbe::text::until_nul(item),
                                    "Car.vehicleCode",
                                )?
                                .to_owned(),
                        )
                    }
                    None => None,
                },
                engine: {
                    let item = decoder.engine();
                    Engine::from_decoder(&item)?
                },
                some_numbers: {
                    let entries = decoder.some_numbers();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(entry.value());
                    }
                    list
                },
                extras: {
                    let entries = decoder.extras();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(entry.value());
                    }
                    list
                },
                fuel_figure: {
                    let entries = decoder.fuel_figure();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(CarFuelFigure::from_decoder(&entry)?);
                    }
                    list
                },
                performance_figure: {
                    let entries = decoder.performance_figure();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(CarPerformanceFigure::from_decoder(&entry)?);
                    }
                    list
                },
                manufacturer: ::gapless_schema::sbe::text::utf8(
                        decoder.manufacturer(),
                        "Car.manufacturer",
                    )?
                    .to_owned(),
                model: ::gapless_schema::sbe::text::utf8(decoder.model(), "Car.model")?
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
            encoder: &mut CarEncoder<'_>,
        ) -> Result<(), EncodeError> {
            if let Some(value) = &self.serial_number {
                if (*value) == i32::MIN {
                    return Err(EncodeError::Range {
                        field: "Car.serialNumber",
                        range: "of its type without the null value",
                    });
                }
                encoder.serial_number(*value);
            }
            if let Some(value) = &self.model_year {
                if (*value) == i16::MIN {
                    return Err(EncodeError::Range {
                        field: "Car.modelYear",
                        range: "of its type without the null value",
                    });
                }
                encoder.model_year(*value);
            }
            if let Some(value) = &self.available {
                if (*value).raw() == u8::MAX {
                    return Err(EncodeError::Range {
                        field: "Car.available",
                        range: "of its type without the null value",
                    });
                }
                encoder.available(*value);
            }
            if let Some(value) = &self.code {
                if (*value).raw() == (0u8) {
                    return Err(EncodeError::Range {
                        field: "Car.code",
                        range: "of its type without the null value",
                    });
                }
                encoder.code(*value);
            }
            if let Some(value) = &self.vehicle_code {
                encoder.vehicle_code_str(value)?;
            }
            {
                let value = &self.engine;
                value.encode_into(&mut encoder.engine())?;
            }
            let mut group = encoder.some_numbers()?;
            for item in &self.some_numbers {
                group.entry()?.value(*item);
            }
            let mut group = encoder.extras()?;
            for item in &self.extras {
                group.entry()?.value(*item);
            }
            let mut group = encoder.fuel_figure()?;
            for item in &self.fuel_figure {
                item.encode_into(&mut group.entry()?)?;
            }
            let mut group = encoder.performance_figure()?;
            for item in &self.performance_figure {
                item.encode_into(&mut group.entry()?)?;
            }
            encoder.manufacturer(&self.manufacturer)?;
            encoder.model(&self.model)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            28 + 4 + self.some_numbers.len() * 4 + 4 + self.extras.len() * 1 + 4
                + self.fuel_figure.len() * 6 + 4
                + self
                    .performance_figure
                    .iter()
                    .map(|entry| entry.sbe_body_length())
                    .sum::<usize>() + 2 + self.manufacturer.len() + 2 + self.model.len()
        }
    }
    /// A car: the message of the canonical benchmark
    #[derive(Debug)]
    pub struct CarProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> CarProtobufEncoder<'a> {
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
            self.writer.finish("Car")
        }
        /// Field `serialNumber`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn serial_number(&mut self, value: i32) -> &mut Self {
            self.writer.sint(1u32, i64::from(value));
            self
        }
        /// Field `modelYear`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn model_year(&mut self, value: i16) -> &mut Self {
            self.writer.sint(2u32, i64::from(value));
            self
        }
        /// Field `available`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn available(&mut self, value: Availability) -> &mut Self {
            self.writer.uint(3u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `code`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn code(&mut self, value: Code) -> &mut Self {
            self.writer.uint(4u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `vehicleCode`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn vehicle_code(&mut self, value: &str) -> &mut Self {
            self.writer.bytes(5u32, value.as_bytes());
            self
        }
        /// Field `engine`.
        #[inline]
        pub fn engine(
            &mut self,
            write: impl FnOnce(&mut EngineProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(6u32);
            write(
                &mut EngineProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Group `someNumbers`: all of its values.
        #[inline]
        pub fn some_numbers(
            &mut self,
            values: impl IntoIterator<Item = i32>,
        ) -> &mut Self {
            let mut values = values.into_iter().peekable();
            if values.peek().is_some() {
                let mark = self.writer.open(7u32);
                for item in values {
                    self.writer.packed_sint(i64::from(item));
                }
                self.writer.close(mark);
            }
            self
        }
        /// Group `extras`: all of its values.
        #[inline]
        pub fn extras(&mut self, values: impl IntoIterator<Item = Extra>) -> &mut Self {
            let mut values = values.into_iter().peekable();
            if values.peek().is_some() {
                let mark = self.writer.open(8u32);
                for item in values {
                    self.writer.packed_uint(i64::from(item.raw()) as u64);
                }
                self.writer.close(mark);
            }
            self
        }
        /// Group `fuelFigure`: appends one entry.
        #[inline]
        pub fn fuel_figure(
            &mut self,
            write: impl FnOnce(&mut CarFuelFigureProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(9u32);
            write(
                &mut CarFuelFigureProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Group `performanceFigure`: appends one entry.
        #[inline]
        pub fn performance_figure(
            &mut self,
            write: impl FnOnce(&mut CarPerformanceFigureProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(10u32);
            write(
                &mut CarPerformanceFigureProtobufEncoder {
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
                self.writer.bytes(11u32, value.as_bytes());
            }
            self
        }
        /// Data `model`.
        #[inline]
        pub fn model(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(12u32, value.as_bytes());
            }
            self
        }
    }
    /// A field of `Car` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum CarField<'a> {
        /// Field `serialNumber`.
        SerialNumber(i32),
        /// Field `modelYear`.
        ModelYear(i16),
        /// Field `available`.
        Available(Availability),
        /// Field `code`.
        Code(Code),
        /// Field `vehicleCode`.
        VehicleCode(&'a str),
        /// Field `engine`.
        Engine(EngineProtobufDecoder<'a>),
        /// Group `someNumbers`: values.
        SomeNumbers(::gapless_schema::protobuf::Packed<'a, i32>),
        /// Group `extras`: values.
        Extras(::gapless_schema::protobuf::Packed<'a, Extra>),
        /// Group `fuelFigure`: one entry.
        FuelFigure(CarFuelFigureProtobufDecoder<'a>),
        /// Group `performanceFigure`: one entry.
        PerformanceFigure(CarPerformanceFigureProtobufDecoder<'a>),
        /// Data `manufacturer`.
        Manufacturer(&'a str),
        /// Data `model`.
        Model(&'a str),
    }
    /// A car: the message of the canonical benchmark
    #[derive(Clone, Copy, Debug)]
    pub struct CarProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> CarProtobufDecoder<'a> {
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
        /// The error in the payload and its place; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<CarField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<CarField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Car")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                CarField::SerialNumber(
                                    <i32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Car.serialNumber",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                CarField::ModelYear(
                                    <i16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Car.modelYear",
                                    )?,
                                ),
                            ),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(
                                CarField::Available(
                                    <Availability as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Car.available",
                                    )?,
                                ),
                            ),
                        );
                    }
                    32u32 => {
                        return Ok(
                            Some(
                                CarField::Code(
                                    <Code as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Car.code",
                                    )?,
                                ),
                            ),
                        );
                    }
                    42u32 => {
                        return Ok(
                            Some(CarField::VehicleCode(reader.text("Car.vehicleCode")?)),
                        );
                    }
                    50u32 => {
                        return Ok(
                            Some(
                                CarField::Engine(EngineProtobufDecoder {
                                    reader: reader.message("Car.engine")?,
                                }),
                            ),
                        );
                    }
                    58u32 => {
                        return Ok(
                            Some(
                                CarField::SomeNumbers(reader.packed("Car.someNumbers")?),
                            ),
                        );
                    }
                    56u32 => {
                        return Ok(
                            Some(
                                CarField::SomeNumbers(reader.unpacked("Car.someNumbers")?),
                            ),
                        );
                    }
                    66u32 => {
                        return Ok(Some(CarField::Extras(reader.packed("Car.extras")?)));
                    }
                    64u32 => {
                        return Ok(Some(CarField::Extras(reader.unpacked("Car.extras")?)));
                    }
                    74u32 => {
                        return Ok(
                            Some(
                                CarField::FuelFigure(CarFuelFigureProtobufDecoder {
                                    reader: reader.message("Car.fuelFigure")?,
                                }),
                            ),
                        );
                    }
                    82u32 => {
                        return Ok(
                            Some(
                                CarField::PerformanceFigure(CarPerformanceFigureProtobufDecoder {
                                    reader: reader.message("Car.performanceFigure")?,
                                }),
                            ),
                        );
                    }
                    90u32 => {
                        return Ok(
                            Some(
                                CarField::Manufacturer(reader.text("Car.manufacturer")?),
                            ),
                        );
                    }
                    98u32 => return Ok(Some(CarField::Model(reader.text("Car.model")?))),
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Car",
                                &[
                                    (1u32, "Car.serialNumber"),
                                    (2u32, "Car.modelYear"),
                                    (3u32, "Car.available"),
                                    (4u32, "Car.code"),
                                    (5u32, "Car.vehicleCode"),
                                    (6u32, "Car.engine"),
                                    (7u32, "Car.someNumbers"),
                                    (8u32, "Car.extras"),
                                    (9u32, "Car.fuelFigure"),
                                    (10u32, "Car.performanceFigure"),
                                    (11u32, "Car.manufacturer"),
                                    (12u32, "Car.model"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for CarProtobufDecoder<'a> {
        type Item = Result<CarField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Car {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut CarProtobufEncoder<'_>) {
            if let Some(value) = &self.serial_number {
                encoder.serial_number(*value);
            }
            if let Some(value) = &self.model_year {
                encoder.model_year(*value);
            }
            if let Some(value) = &self.available {
                encoder.available(*value);
            }
            if let Some(value) = &self.code {
                encoder.code(*value);
            }
            if let Some(value) = &self.vehicle_code {
                encoder.vehicle_code(value);
            }
            {
                let value = &self.engine;
                encoder.engine(|encoder| value.encode_protobuf(encoder));
            }
            encoder.some_numbers(self.some_numbers.iter().copied());
            encoder.extras(self.extras.iter().copied());
            for entry in &self.fuel_figure {
                encoder.fuel_figure(|encoder| entry.encode_protobuf(encoder));
            }
            for entry in &self.performance_figure {
                encoder.performance_figure(|encoder| entry.encode_protobuf(encoder));
            }
            encoder.manufacturer(&self.manufacturer);
            encoder.model(&self.model);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: CarProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    CarField::SerialNumber(value) => self.serial_number = Some(value),
                    CarField::ModelYear(value) => self.model_year = Some(value),
                    CarField::Available(value) => self.available = Some(value),
                    CarField::Code(value) => self.code = Some(value),
                    CarField::VehicleCode(value) => {
                        self.vehicle_code = Some(value.to_owned());
                    }
                    CarField::Engine(value) => self.engine.merge_protobuf(value)?,
                    CarField::SomeNumbers(value) => {
                        for item in value {
                            self.some_numbers.push(item?);
                        }
                    }
                    CarField::Extras(value) => {
                        for item in value {
                            self.extras.push(item?);
                        }
                    }
                    CarField::FuelFigure(value) => {
                        let mut entry = CarFuelFigure::default();
                        entry.merge_protobuf(value)?;
                        self.fuel_figure.push(entry);
                    }
                    CarField::PerformanceFigure(value) => {
                        let mut entry = CarPerformanceFigure::default();
                        entry.merge_protobuf(value)?;
                        self.performance_figure.push(entry);
                    }
                    CarField::Manufacturer(value) => self.manufacturer = value.to_owned(),
                    CarField::Model(value) => self.model = value.to_owned(),
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Car.someNumbers` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct CarSomeNumbersDecoder<'a> {
        block: &'a [u8; 4],
    }
    impl<'a> CarSomeNumbersDecoder<'a> {
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
                    "Car.someNumbers",
                )?;
            Ok(Self { block })
        }
        /// Field `value`.
        #[inline]
        #[must_use]
        pub fn value(&self) -> i32 {
            let raw = field::<0, 4, 4>(self.block);
            let value = i32::from_le_bytes(*raw);
            value
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for CarSomeNumbersDecoder<'a> {
        const NAME: &'static str = "Car.someNumbers";
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
    /// Writes `Car.someNumbers` where it will lie.
    #[derive(Debug)]
    pub struct CarSomeNumbersEncoder<'a> {
        block: &'a mut [u8; 4],
    }
    impl<'a> CarSomeNumbersEncoder<'a> {
        const TEMPLATE: [u8; 4] = {
            let block = [0; 4];
            block
        };
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: i32) -> &mut Self {
            *field_mut::<0, 4, 4>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// `Car.someNumbers` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CarSomeNumbers {
        /// Field `value`.
        pub value: i32,
    }
    impl Default for CarSomeNumbers {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { value: Default::default() }
        }
    }
    impl CarSomeNumbers {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &CarSomeNumbersDecoder<'_>,
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
            encoder: &mut CarSomeNumbersEncoder<'_>,
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
    /// Appends the fields of `Car.someNumbers` as protobuf.
    #[derive(Debug)]
    pub struct CarSomeNumbersProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> CarSomeNumbersProtobufEncoder<'w, 'a> {
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: i32) -> &mut Self {
            self.writer.sint(1u32, i64::from(value));
            self
        }
    }
    /// A field of `Car.someNumbers` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum CarSomeNumbersField {
        /// Field `value`.
        Value(i32),
    }
    /// Goes over the fields of `Car.someNumbers` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct CarSomeNumbersProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> CarSomeNumbersProtobufDecoder<'a> {
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
        /// The error in the payload and its place; nothing is read after that.
        #[inline]
        pub fn next_field(
            &mut self,
        ) -> Result<Option<CarSomeNumbersField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<CarSomeNumbersField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Car.someNumbers")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                CarSomeNumbersField::Value(
                                    <i32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Car.someNumbers.value",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Car.someNumbers",
                                &[(1u32, "Car.someNumbers.value")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for CarSomeNumbersProtobufDecoder<'a> {
        type Item = Result<CarSomeNumbersField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl CarSomeNumbers {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut CarSomeNumbersProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.value;
                encoder.value(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: CarSomeNumbersProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    CarSomeNumbersField::Value(value) => self.value = value,
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Car.someNumbers`.
    #[derive(Debug)]
    pub struct CarSomeNumbersGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> CarSomeNumbersGroupEncoder<'g, 'a> {
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
        pub fn entry(&mut self) -> Result<CarSomeNumbersEncoder<'a>, EncodeError> {
            if self.count >= 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Car.someNumbers",
                        self.count as usize + 1,
                        65534,
                    ),
                );
            }
            let block = self.tail.chunk("Car.someNumbers")?;
            *block = CarSomeNumbersEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            Ok(CarSomeNumbersEncoder { block })
        }
    }
    /// Reads an entry of group `Car.extras` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct CarExtrasDecoder<'a> {
        block: &'a [u8; 1],
    }
    impl<'a> CarExtrasDecoder<'a> {
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
                >(block_length, Self::needed_length_at(version), version, "Car.extras")?;
            Ok(Self { block })
        }
        /// Field `value`.
        #[inline]
        #[must_use]
        pub fn value(&self) -> Extra {
            let raw = field::<0, 1, 1>(self.block);
            let value = Extra::from_raw(u8::from_le_bytes(*raw));
            value
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for CarExtrasDecoder<'a> {
        const NAME: &'static str = "Car.extras";
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
    /// Writes `Car.extras` where it will lie.
    #[derive(Debug)]
    pub struct CarExtrasEncoder<'a> {
        block: &'a mut [u8; 1],
    }
    impl<'a> CarExtrasEncoder<'a> {
        const TEMPLATE: [u8; 1] = {
            let block = [0; 1];
            block
        };
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: Extra) -> &mut Self {
            *field_mut::<0, 1, 1>(self.block) = value.raw().to_le_bytes();
            self
        }
    }
    /// `Car.extras` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CarExtras {
        /// Field `value`.
        pub value: Extra,
    }
    impl Default for CarExtras {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { value: Default::default() }
        }
    }
    impl CarExtras {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &CarExtrasDecoder<'_>,
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
            encoder: &mut CarExtrasEncoder<'_>,
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
    /// Appends the fields of `Car.extras` as protobuf.
    #[derive(Debug)]
    pub struct CarExtrasProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> CarExtrasProtobufEncoder<'w, 'a> {
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: Extra) -> &mut Self {
            self.writer.uint(1u32, i64::from(value.raw()) as u64);
            self
        }
    }
    /// A field of `Car.extras` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum CarExtrasField {
        /// Field `value`.
        Value(Extra),
    }
    /// Goes over the fields of `Car.extras` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct CarExtrasProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> CarExtrasProtobufDecoder<'a> {
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
        /// The error in the payload and its place; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<CarExtrasField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<CarExtrasField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Car.extras")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                CarExtrasField::Value(
                                    <Extra as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Car.extras.value",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(key, "Car.extras", &[(1u32, "Car.extras.value")])?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for CarExtrasProtobufDecoder<'a> {
        type Item = Result<CarExtrasField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl CarExtras {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut CarExtrasProtobufEncoder<'_, '_>) {
            {
                let value = &self.value;
                encoder.value(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: CarExtrasProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    CarExtrasField::Value(value) => self.value = value,
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Car.extras`.
    #[derive(Debug)]
    pub struct CarExtrasGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> CarExtrasGroupEncoder<'g, 'a> {
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
        pub fn entry(&mut self) -> Result<CarExtrasEncoder<'a>, EncodeError> {
            if self.count >= 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Car.extras",
                        self.count as usize + 1,
                        65534,
                    ),
                );
            }
            let block = self.tail.chunk("Car.extras")?;
            *block = CarExtrasEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            Ok(CarExtrasEncoder { block })
        }
    }
    /// Reads an entry of group `Car.fuelFigure` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct CarFuelFigureDecoder<'a> {
        block: &'a [u8; 6],
    }
    impl<'a> CarFuelFigureDecoder<'a> {
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
                    "Car.fuelFigure",
                )?;
            Ok(Self { block })
        }
        /// Field `speed`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn speed(&self) -> Option<i16> {
            let raw = field::<0, 2, 6>(self.block);
            let value = i16::from_le_bytes(*raw);
            if value == i16::MIN { None } else { Some(value) }
        }
        /// Field `mpg`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn mpg(&self) -> Option<f32> {
            let raw = field::<2, 4, 6>(self.block);
            let value = f32::from_le_bytes(*raw);
            if value.is_nan() { None } else { Some(value) }
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for CarFuelFigureDecoder<'a> {
        const NAME: &'static str = "Car.fuelFigure";
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
    /// Writes `Car.fuelFigure` where it will lie.
    #[derive(Debug)]
    pub struct CarFuelFigureEncoder<'a> {
        block: &'a mut [u8; 6],
    }
    impl<'a> CarFuelFigureEncoder<'a> {
        const TEMPLATE: [u8; 6] = {
            let block = [0; 6];
            let block = with(block, 0, i16::MIN.to_le_bytes());
            let block = with(block, 2, f32::NAN.to_le_bytes());
            block
        };
        /// Field `speed`.
        ///
        /// The value -32768 is the null value: it writes null.
        #[inline]
        pub fn speed(&mut self, value: i16) -> &mut Self {
            *field_mut::<0, 2, 6>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `speed`, to null if there is no value.
        #[inline]
        pub fn speed_or_null(&mut self, value: Option<i16>) -> &mut Self {
            match value {
                Some(value) => self.speed(value),
                None => self.speed(i16::MIN),
            }
        }
        /// Field `mpg`.
        ///
        /// The value NaN is the null value: it writes null.
        #[inline]
        pub fn mpg(&mut self, value: f32) -> &mut Self {
            *field_mut::<2, 4, 6>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `mpg`, to null if there is no value.
        #[inline]
        pub fn mpg_or_null(&mut self, value: Option<f32>) -> &mut Self {
            match value {
                Some(value) => self.mpg(value),
                None => self.mpg(f32::NAN),
            }
        }
    }
    /// `Car.fuelFigure` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CarFuelFigure {
        /// Field `speed`.
        ///
        /// `None` if it is null.
        pub speed: Option<i16>,
        /// Field `mpg`.
        ///
        /// `None` if it is null.
        pub mpg: Option<f32>,
    }
    impl Default for CarFuelFigure {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { speed: None, mpg: None }
        }
    }
    impl CarFuelFigure {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &CarFuelFigureDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                speed: decoder.speed(),
                mpg: decoder.mpg(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut CarFuelFigureEncoder<'_>,
        ) -> Result<(), EncodeError> {
            if let Some(value) = &self.speed {
                if (*value) == i16::MIN {
                    return Err(EncodeError::Range {
                        field: "Car.fuelFigure.speed",
                        range: "of its type without the null value",
                    });
                }
                encoder.speed(*value);
            }
            if let Some(value) = &self.mpg {
                encoder.mpg(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            6
        }
    }
    /// Appends the fields of `Car.fuelFigure` as protobuf.
    #[derive(Debug)]
    pub struct CarFuelFigureProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> CarFuelFigureProtobufEncoder<'w, 'a> {
        /// Field `speed`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn speed(&mut self, value: i16) -> &mut Self {
            self.writer.sint(1u32, i64::from(value));
            self
        }
        /// Field `mpg`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn mpg(&mut self, value: f32) -> &mut Self {
            self.writer.float(2u32, value);
            self
        }
    }
    /// A field of `Car.fuelFigure` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum CarFuelFigureField {
        /// Field `speed`.
        Speed(i16),
        /// Field `mpg`.
        Mpg(f32),
    }
    /// Goes over the fields of `Car.fuelFigure` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct CarFuelFigureProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> CarFuelFigureProtobufDecoder<'a> {
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
        /// The error in the payload and its place; nothing is read after that.
        #[inline]
        pub fn next_field(&mut self) -> Result<Option<CarFuelFigureField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<CarFuelFigureField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Car.fuelFigure")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                CarFuelFigureField::Speed(
                                    <i16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Car.fuelFigure.speed",
                                    )?,
                                ),
                            ),
                        );
                    }
                    21u32 => {
                        return Ok(
                            Some(
                                CarFuelFigureField::Mpg(
                                    <f32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Car.fuelFigure.mpg",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Car.fuelFigure",
                                &[
                                    (1u32, "Car.fuelFigure.speed"),
                                    (2u32, "Car.fuelFigure.mpg"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for CarFuelFigureProtobufDecoder<'a> {
        type Item = Result<CarFuelFigureField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl CarFuelFigure {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut CarFuelFigureProtobufEncoder<'_, '_>,
        ) {
            if let Some(value) = &self.speed {
                encoder.speed(*value);
            }
            if let Some(value) = &self.mpg {
                encoder.mpg(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: CarFuelFigureProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    CarFuelFigureField::Speed(value) => self.speed = Some(value),
                    CarFuelFigureField::Mpg(value) => self.mpg = Some(value),
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Car.fuelFigure`.
    #[derive(Debug)]
    pub struct CarFuelFigureGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> CarFuelFigureGroupEncoder<'g, 'a> {
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
        pub fn entry(&mut self) -> Result<CarFuelFigureEncoder<'a>, EncodeError> {
            if self.count >= 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Car.fuelFigure",
                        self.count as usize + 1,
                        65534,
                    ),
                );
            }
            let block = self.tail.chunk("Car.fuelFigure")?;
            *block = CarFuelFigureEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            Ok(CarFuelFigureEncoder { block })
        }
    }
    /// Reads an entry of group `Car.performanceFigure` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct CarPerformanceFigureDecoder<'a> {
        block: &'a [u8; 1],
        group_acceleration: ::gapless_schema::sbe::Group<
            'a,
            CarPerformanceFigureAccelerationDecoder<'a>,
        >,
    }
    impl<'a> CarPerformanceFigureDecoder<'a> {
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
                    "Car.performanceFigure",
                )?;
            let group_acceleration = {
                let dimension = reader.chunk::<4>("Car.performanceFigure.acceleration")?;
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
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn octane_rating(&self) -> Option<i8> {
            let raw = field::<0, 1, 1>(self.block);
            let value = i8::from_le_bytes(*raw);
            if value == i8::MIN { None } else { Some(value) }
        }
        /// Group `acceleration`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn acceleration(
            &self,
        ) -> ::gapless_schema::sbe::Group<
            'a,
            CarPerformanceFigureAccelerationDecoder<'a>,
        > {
            self.group_acceleration
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for CarPerformanceFigureDecoder<'a> {
        const NAME: &'static str = "Car.performanceFigure";
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
    /// Writes `Car.performanceFigure` where it will lie.
    #[derive(Debug)]
    pub struct CarPerformanceFigureEncoder<'g, 'a> {
        block: &'a mut [u8; 1],
        tail: &'g mut Tail<'a>,
        stage: &'g mut CarPerformanceFigureStage,
    }
    impl<'g, 'a> CarPerformanceFigureEncoder<'g, 'a> {
        const TEMPLATE: [u8; 1] = {
            let block = [0; 1];
            let block = with(block, 0, i8::MIN.to_le_bytes());
            block
        };
        /// Field `octaneRating`.
        ///
        /// The value -128 is the null value: it writes null.
        #[inline]
        pub fn octane_rating(&mut self, value: i8) -> &mut Self {
            *field_mut::<0, 1, 1>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `octaneRating`, to null if there is no value.
        #[inline]
        pub fn octane_rating_or_null(&mut self, value: Option<i8>) -> &mut Self {
            match value {
                Some(value) => self.octane_rating(value),
                None => self.octane_rating(i8::MIN),
            }
        }
        /// Begins group `acceleration`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn acceleration(
            &mut self,
        ) -> Result<CarPerformanceFigureAccelerationGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Car.performanceFigure.acceleration")?;
            *dimension = CarPerformanceFigureAccelerationGroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(CarPerformanceFigureAccelerationGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
    }
    /// Progress of the groups and data, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct CarPerformanceFigureStage {
        reached: u8,
    }
    impl CarPerformanceFigureStage {
        const CLOSED: Self = Self { reached: 1u8 };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
        }
        /// Completes the open member and fills in the skipped ones before `member`.
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
                            0u8 => "Car.performanceFigure.acceleration",
                            _ => "Car.performanceFigure",
                        },
                    ),
                );
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(
                    CarPerformanceFigureAccelerationGroupEncoder::EMPTY,
                    "Car.performanceFigure.acceleration",
                )?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Car.performanceFigure` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CarPerformanceFigure {
        /// Field `octaneRating`.
        ///
        /// `None` if it is null.
        pub octane_rating: Option<i8>,
        /// Group `acceleration`.
        pub acceleration: Vec<CarPerformanceFigureAcceleration>,
    }
    impl Default for CarPerformanceFigure {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                octane_rating: None,
                acceleration: Default::default(),
            }
        }
    }
    impl CarPerformanceFigure {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &CarPerformanceFigureDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                octane_rating: decoder.octane_rating(),
                acceleration: {
                    let entries = decoder.acceleration();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(
                            CarPerformanceFigureAcceleration::from_decoder(&entry)?,
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
            encoder: &mut CarPerformanceFigureEncoder<'_, '_>,
        ) -> Result<(), EncodeError> {
            if let Some(value) = &self.octane_rating {
                if (*value) == i8::MIN {
                    return Err(EncodeError::Range {
                        field: "Car.performanceFigure.octaneRating",
                        range: "of its type without the null value",
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
    /// Appends the fields of `Car.performanceFigure` as protobuf.
    #[derive(Debug)]
    pub struct CarPerformanceFigureProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> CarPerformanceFigureProtobufEncoder<'w, 'a> {
        /// Field `octaneRating`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn octane_rating(&mut self, value: i8) -> &mut Self {
            self.writer.sint(1u32, i64::from(value));
            self
        }
        /// Group `acceleration`: appends one entry.
        #[inline]
        pub fn acceleration(
            &mut self,
            write: impl FnOnce(
                &mut CarPerformanceFigureAccelerationProtobufEncoder<'_, 'a>,
            ),
        ) -> &mut Self {
            let mark = self.writer.open(2u32);
            write(
                &mut CarPerformanceFigureAccelerationProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
    }
    /// A field of `Car.performanceFigure` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum CarPerformanceFigureField<'a> {
        /// Field `octaneRating`.
        OctaneRating(i8),
        /// Group `acceleration`: one entry.
        Acceleration(CarPerformanceFigureAccelerationProtobufDecoder<'a>),
    }
    /// Goes over the fields of `Car.performanceFigure` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct CarPerformanceFigureProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> CarPerformanceFigureProtobufDecoder<'a> {
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
        /// The error in the payload and its place; nothing is read after that.
        #[inline]
        pub fn next_field(
            &mut self,
        ) -> Result<Option<CarPerformanceFigureField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(
            &mut self,
        ) -> Result<Option<CarPerformanceFigureField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Car.performanceFigure")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                CarPerformanceFigureField::OctaneRating(
                                    <i8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Car.performanceFigure.octaneRating",
                                    )?,
                                ),
                            ),
                        );
                    }
                    18u32 => {
                        return Ok(
                            Some(
                                CarPerformanceFigureField::Acceleration(CarPerformanceFigureAccelerationProtobufDecoder {
                                    reader: reader
                                        .message("Car.performanceFigure.acceleration")?,
                                }),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Car.performanceFigure",
                                &[
                                    (1u32, "Car.performanceFigure.octaneRating"),
                                    (2u32, "Car.performanceFigure.acceleration"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for CarPerformanceFigureProtobufDecoder<'a> {
        type Item = Result<CarPerformanceFigureField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl CarPerformanceFigure {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut CarPerformanceFigureProtobufEncoder<'_, '_>,
        ) {
            if let Some(value) = &self.octane_rating {
                encoder.octane_rating(*value);
            }
            for entry in &self.acceleration {
                encoder.acceleration(|encoder| entry.encode_protobuf(encoder));
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: CarPerformanceFigureProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    CarPerformanceFigureField::OctaneRating(value) => {
                        self.octane_rating = Some(value);
                    }
                    CarPerformanceFigureField::Acceleration(value) => {
                        let mut entry = CarPerformanceFigureAcceleration::default();
                        entry.merge_protobuf(value)?;
                        self.acceleration.push(entry);
                    }
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Car.performanceFigure.acceleration` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct CarPerformanceFigureAccelerationDecoder<'a> {
        block: &'a [u8; 6],
    }
    impl<'a> CarPerformanceFigureAccelerationDecoder<'a> {
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
                    "Car.performanceFigure.acceleration",
                )?;
            Ok(Self { block })
        }
        /// Field `mph`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn mph(&self) -> Option<i16> {
            let raw = field::<0, 2, 6>(self.block);
            let value = i16::from_le_bytes(*raw);
            if value == i16::MIN { None } else { Some(value) }
        }
        /// Field `seconds`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn seconds(&self) -> Option<f32> {
            let raw = field::<2, 4, 6>(self.block);
            let value = f32::from_le_bytes(*raw);
            if value.is_nan() { None } else { Some(value) }
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a>
    for CarPerformanceFigureAccelerationDecoder<'a> {
        const NAME: &'static str = "Car.performanceFigure.acceleration";
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
    /// Writes `Car.performanceFigure.acceleration` where it will lie.
    #[derive(Debug)]
    pub struct CarPerformanceFigureAccelerationEncoder<'a> {
        block: &'a mut [u8; 6],
    }
    impl<'a> CarPerformanceFigureAccelerationEncoder<'a> {
        const TEMPLATE: [u8; 6] = {
            let block = [0; 6];
            let block = with(block, 0, i16::MIN.to_le_bytes());
            let block = with(block, 2, f32::NAN.to_le_bytes());
            block
        };
        /// Field `mph`.
        ///
        /// The value -32768 is the null value: it writes null.
        #[inline]
        pub fn mph(&mut self, value: i16) -> &mut Self {
            *field_mut::<0, 2, 6>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `mph`, to null if there is no value.
        #[inline]
        pub fn mph_or_null(&mut self, value: Option<i16>) -> &mut Self {
            match value {
                Some(value) => self.mph(value),
                None => self.mph(i16::MIN),
            }
        }
        /// Field `seconds`.
        ///
        /// The value NaN is the null value: it writes null.
        #[inline]
        pub fn seconds(&mut self, value: f32) -> &mut Self {
            *field_mut::<2, 4, 6>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `seconds`, to null if there is no value.
        #[inline]
        pub fn seconds_or_null(&mut self, value: Option<f32>) -> &mut Self {
            match value {
                Some(value) => self.seconds(value),
                None => self.seconds(f32::NAN),
            }
        }
    }
    /// `Car.performanceFigure.acceleration` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CarPerformanceFigureAcceleration {
        /// Field `mph`.
        ///
        /// `None` if it is null.
        pub mph: Option<i16>,
        /// Field `seconds`.
        ///
        /// `None` if it is null.
        pub seconds: Option<f32>,
    }
    impl Default for CarPerformanceFigureAcceleration {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { mph: None, seconds: None }
        }
    }
    impl CarPerformanceFigureAcceleration {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &CarPerformanceFigureAccelerationDecoder<'_>,
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
            encoder: &mut CarPerformanceFigureAccelerationEncoder<'_>,
        ) -> Result<(), EncodeError> {
            if let Some(value) = &self.mph {
                if (*value) == i16::MIN {
                    return Err(EncodeError::Range {
                        field: "Car.performanceFigure.acceleration.mph",
                        range: "of its type without the null value",
                    });
                }
                encoder.mph(*value);
            }
            if let Some(value) = &self.seconds {
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
    /// Appends the fields of `Car.performanceFigure.acceleration` as protobuf.
    #[derive(Debug)]
    pub struct CarPerformanceFigureAccelerationProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> CarPerformanceFigureAccelerationProtobufEncoder<'w, 'a> {
        /// Field `mph`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn mph(&mut self, value: i16) -> &mut Self {
            self.writer.sint(1u32, i64::from(value));
            self
        }
        /// Field `seconds`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn seconds(&mut self, value: f32) -> &mut Self {
            self.writer.float(2u32, value);
            self
        }
    }
    /// A field of `Car.performanceFigure.acceleration` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum CarPerformanceFigureAccelerationField {
        /// Field `mph`.
        Mph(i16),
        /// Field `seconds`.
        Seconds(f32),
    }
    /// Goes over the fields of `Car.performanceFigure.acceleration` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct CarPerformanceFigureAccelerationProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> CarPerformanceFigureAccelerationProtobufDecoder<'a> {
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
        /// The error in the payload and its place; nothing is read after that.
        #[inline]
        pub fn next_field(
            &mut self,
        ) -> Result<Option<CarPerformanceFigureAccelerationField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(
            &mut self,
        ) -> Result<Option<CarPerformanceFigureAccelerationField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Car.performanceFigure.acceleration")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                CarPerformanceFigureAccelerationField::Mph(
                                    <i16 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Car.performanceFigure.acceleration.mph",
                                    )?,
                                ),
                            ),
                        );
                    }
                    21u32 => {
                        return Ok(
                            Some(
                                CarPerformanceFigureAccelerationField::Seconds(
                                    <f32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Car.performanceFigure.acceleration.seconds",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Car.performanceFigure.acceleration",
                                &[
                                    (1u32, "Car.performanceFigure.acceleration.mph"),
                                    (2u32, "Car.performanceFigure.acceleration.seconds"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for CarPerformanceFigureAccelerationProtobufDecoder<'a> {
        type Item = Result<CarPerformanceFigureAccelerationField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl CarPerformanceFigureAcceleration {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut CarPerformanceFigureAccelerationProtobufEncoder<'_, '_>,
        ) {
            if let Some(value) = &self.mph {
                encoder.mph(*value);
            }
            if let Some(value) = &self.seconds {
                encoder.seconds(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: CarPerformanceFigureAccelerationProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    CarPerformanceFigureAccelerationField::Mph(value) => {
                        self.mph = Some(value);
                    }
                    CarPerformanceFigureAccelerationField::Seconds(value) => {
                        self.seconds = Some(value);
                    }
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Car.performanceFigure.acceleration`.
    #[derive(Debug)]
    pub struct CarPerformanceFigureAccelerationGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> CarPerformanceFigureAccelerationGroupEncoder<'g, 'a> {
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
        ) -> Result<CarPerformanceFigureAccelerationEncoder<'a>, EncodeError> {
            if self.count >= 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Car.performanceFigure.acceleration",
                        self.count as usize + 1,
                        65534,
                    ),
                );
            }
            let block = self.tail.chunk("Car.performanceFigure.acceleration")?;
            *block = CarPerformanceFigureAccelerationEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            Ok(CarPerformanceFigureAccelerationEncoder {
                block,
            })
        }
    }
    /// Writes the entries of group `Car.performanceFigure`.
    #[derive(Debug)]
    pub struct CarPerformanceFigureGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        count: u64,
        stage: &'g mut CarPerformanceFigureStage,
    }
    impl<'g, 'a> CarPerformanceFigureGroupEncoder<'g, 'a> {
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
        ) -> Result<CarPerformanceFigureEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(self.tail, 1u8)?;
            if self.count >= 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Car.performanceFigure",
                        self.count as usize + 1,
                        65534,
                    ),
                );
            }
            let block = self.tail.chunk("Car.performanceFigure")?;
            *block = CarPerformanceFigureEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<2, 2, 4>(self.dimension) = (self.count as u16).to_le_bytes();
            self.stage.reached = 0;
            Ok(CarPerformanceFigureEncoder {
                block,
                tail: self.tail,
                stage: self.stage,
            })
        }
    }
    impl ::gapless_schema::MessageSchema for CarDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Car";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Decode for CarDecoder<'_> {
        type Decoded<'a> = CarDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<CarDecoder<'_>, DecodeError> {
            CarDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::MessageSchema for CarEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Car";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Direct for CarEncoder<'_> {
        type Encoder<'a> = CarEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<CarEncoder<'_>, EncodeError> {
            CarEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: CarEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Car {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Car";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&CarDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = CarEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::MessageSchema for CarProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Car";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Decode for CarProtobufDecoder<'_> {
        type Decoded<'a> = CarProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<CarProtobufDecoder<'_>, DecodeError> {
            Ok(CarProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::MessageSchema for CarProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Car";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Direct for CarProtobufEncoder<'_> {
        type Encoder<'a> = CarProtobufEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<CarProtobufEncoder<'_>, EncodeError> {
            Ok(CarProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: CarProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Car {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Car";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(CarProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = CarProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = CarProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
}
