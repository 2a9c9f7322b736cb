// Generated from a schema (gapless.market, id 21, version 0). Do not edit: change the schema.

/// A small market: orders in, outcomes and trades out
///
/// Schema id 21, version 0.
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
pub mod market {
    use ::gapless_schema::sbe::block::{
        field, field_mut, from_offset, late_field, with, with_repeated,
    };
    use ::gapless_schema::sbe::{Entry as _, Tail};
    use ::gapless_schema::{DecodeError, EncodeError};
    /// Id of the schema.
    pub const SCHEMA_ID: u16 = 21u16;
    /// Version of the schema.
    pub const SCHEMA_VERSION: u64 = 0u64;
    /// Enum `Side`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Side {
        /// Value `buy`.
        Buy,
        /// Value `sell`.
        Sell,
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
    /// Enum `Reason`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Reason {
        /// Not within 1 and the market's limit
        Quantity,
        /// Not within 1 and the market's limit
        Price,
        /// No such order is in the book
        NotResting,
        /// Another's order
        NotYours,
        /// The market is over
        Closed,
        /// A number that this version of the schema does not name.
        Unknown(u8),
    }
    impl Reason {
        /// The number that means null where a field is optional.
        pub const NULL: u8 = u8::MAX;
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: u8) -> Self {
            match raw {
                1u8 => Self::Quantity,
                2u8 => Self::Price,
                3u8 => Self::NotResting,
                4u8 => Self::NotYours,
                5u8 => Self::Closed,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u8 {
            match self {
                Self::Quantity => (1u8),
                Self::Price => (2u8),
                Self::NotResting => (3u8),
                Self::NotYours => (4u8),
                Self::Closed => (5u8),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for Reason {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::Quantity
        }
    }
    impl ::gapless_schema::protobuf::Value for Reason {
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
    /// Reads message `NewOrder` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct NewOrderDecoder<'a> {
        block: &'a [u8; 21],
    }
    impl<'a> NewOrderDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. Bytes after the
        /// message are ignored.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("NewOrder")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("NewOrder", SCHEMA_ID, 1u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            21
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    21,
                >(block_length, Self::needed_length_at(version), version, "NewOrder")?;
            Ok(Self { block })
        }
        /// Field `request`.
        #[inline]
        #[must_use]
        pub fn request(&self) -> u64 {
            let raw = field::<0, 8, 21>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Hundredths
        #[inline]
        #[must_use]
        pub fn price(&self) -> i64 {
            let raw = field::<8, 8, 21>(self.block);
            let value = i64::from_le_bytes(*raw);
            value
        }
        /// Field `quantity`.
        #[inline]
        #[must_use]
        pub fn quantity(&self) -> u32 {
            let raw = field::<16, 4, 21>(self.block);
            let value = u32::from_le_bytes(*raw);
            value
        }
        /// Field `side`.
        #[inline]
        #[must_use]
        pub fn side(&self) -> Side {
            let raw = field::<20, 1, 21>(self.block);
            let value = Side::from_raw(u8::from_le_bytes(*raw));
            value
        }
    }
    /// Writes `NewOrder` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct NewOrderEncoder<'a> {
        block: &'a mut [u8; 29],
        tail: Tail<'a>,
        stage: NewOrderStage,
    }
    impl<'a> NewOrderEncoder<'a> {
        const TEMPLATE: [u8; 29] = {
            let block = [0; 29];
            let block = with(block, 0, (21u16).to_le_bytes());
            let block = with(block, 2, (1u16).to_le_bytes());
            let block = with(block, 4, (21u16).to_le_bytes());
            let block = with(block, 6, (0u16).to_le_bytes());
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
            let block = tail.chunk::<29>("NewOrder")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: NewOrderStage {
                    reached: 0,
                    ..NewOrderStage::CLOSED
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
        /// Field `request`.
        #[inline]
        pub fn request(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 29>(self.block) = value.to_le_bytes();
            self
        }
        /// Hundredths
        #[inline]
        pub fn price(&mut self, value: i64) -> &mut Self {
            *field_mut::<16, 8, 29>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `quantity`.
        #[inline]
        pub fn quantity(&mut self, value: u32) -> &mut Self {
            *field_mut::<24, 4, 29>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `side`.
        #[inline]
        pub fn side(&mut self, value: Side) -> &mut Self {
            *field_mut::<28, 1, 29>(self.block) = value.raw().to_le_bytes();
            self
        }
    }
    /// Progress of the groups and data, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct NewOrderStage {
        reached: u8,
    }
    impl NewOrderStage {
        const CLOSED: Self = Self { reached: 0u8 };
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
                            _ => "NewOrder",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `NewOrder` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct NewOrder {
        /// Field `request`.
        pub request: u64,
        /// Hundredths
        pub price: i64,
        /// Field `quantity`.
        pub quantity: u32,
        /// Field `side`.
        pub side: Side,
    }
    impl Default for NewOrder {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                request: Default::default(),
                price: Default::default(),
                quantity: Default::default(),
                side: Default::default(),
            }
        }
    }
    impl NewOrder {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &NewOrderDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                request: decoder.request(),
                price: decoder.price(),
                quantity: decoder.quantity(),
                side: decoder.side(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut NewOrderEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.request;
                encoder.request(*value);
            }
            {
                let value = &self.price;
                encoder.price(*value);
            }
            {
                let value = &self.quantity;
                encoder.quantity(*value);
            }
            {
                let value = &self.side;
                encoder.side(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            21
        }
    }
    /// Appends the fields of `NewOrder` as protobuf.
    #[derive(Debug)]
    pub struct NewOrderProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> NewOrderProtobufEncoder<'a> {
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
            self.writer.finish("NewOrder")
        }
        /// Field `request`.
        #[inline]
        pub fn request(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Hundredths
        #[inline]
        pub fn price(&mut self, value: i64) -> &mut Self {
            self.writer.sint(2u32, i64::from(value));
            self
        }
        /// Field `quantity`.
        #[inline]
        pub fn quantity(&mut self, value: u32) -> &mut Self {
            self.writer.uint(3u32, u64::from(value));
            self
        }
        /// Field `side`.
        #[inline]
        pub fn side(&mut self, value: Side) -> &mut Self {
            self.writer.uint(4u32, i64::from(value.raw()) as u64);
            self
        }
    }
    /// A field of `NewOrder` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum NewOrderField {
        /// Field `request`.
        Request(u64),
        /// Hundredths
        Price(i64),
        /// Field `quantity`.
        Quantity(u32),
        /// Field `side`.
        Side(Side),
    }
    /// Goes over the fields of `NewOrder` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct NewOrderProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> NewOrderProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<NewOrderField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<NewOrderField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("NewOrder")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                NewOrderField::Request(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "NewOrder.request",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                NewOrderField::Price(
                                    <i64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "NewOrder.price",
                                    )?,
                                ),
                            ),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(
                                NewOrderField::Quantity(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "NewOrder.quantity",
                                    )?,
                                ),
                            ),
                        );
                    }
                    32u32 => {
                        return Ok(
                            Some(
                                NewOrderField::Side(
                                    <Side as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "NewOrder.side",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "NewOrder",
                                &[
                                    (1u32, "NewOrder.request"),
                                    (2u32, "NewOrder.price"),
                                    (3u32, "NewOrder.quantity"),
                                    (4u32, "NewOrder.side"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for NewOrderProtobufDecoder<'a> {
        type Item = Result<NewOrderField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl NewOrder {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut NewOrderProtobufEncoder<'_>) {
            {
                let value = &self.request;
                encoder.request(*value);
            }
            {
                let value = &self.price;
                encoder.price(*value);
            }
            {
                let value = &self.quantity;
                encoder.quantity(*value);
            }
            {
                let value = &self.side;
                encoder.side(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: NewOrderProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    NewOrderField::Request(value) => self.request = value,
                    NewOrderField::Price(value) => self.price = value,
                    NewOrderField::Quantity(value) => self.quantity = value,
                    NewOrderField::Side(value) => self.side = value,
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::MessageSchema for NewOrderDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "NewOrder";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Decode for NewOrderDecoder<'_> {
        type Decoded<'a> = NewOrderDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<NewOrderDecoder<'_>, DecodeError> {
            NewOrderDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::MessageSchema for NewOrderEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "NewOrder";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Direct for NewOrderEncoder<'_> {
        type Encoder<'a> = NewOrderEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<NewOrderEncoder<'_>, EncodeError> {
            NewOrderEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: NewOrderEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for NewOrder {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "NewOrder";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&NewOrderDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = NewOrderEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::MessageSchema for NewOrderProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "NewOrder";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Decode for NewOrderProtobufDecoder<'_> {
        type Decoded<'a> = NewOrderProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<NewOrderProtobufDecoder<'_>, DecodeError> {
            Ok(NewOrderProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::MessageSchema for NewOrderProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "NewOrder";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Direct for NewOrderProtobufEncoder<'_> {
        type Encoder<'a> = NewOrderProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<NewOrderProtobufEncoder<'_>, EncodeError> {
            Ok(NewOrderProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: NewOrderProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for NewOrder {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "NewOrder";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(NewOrderProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = NewOrderProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = NewOrderProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Reads message `CancelOrder` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct CancelOrderDecoder<'a> {
        block: &'a [u8; 16],
    }
    impl<'a> CancelOrderDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. Bytes after the
        /// message are ignored.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("CancelOrder")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("CancelOrder", SCHEMA_ID, 2u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            16
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    16,
                >(
                    block_length,
                    Self::needed_length_at(version),
                    version,
                    "CancelOrder",
                )?;
            Ok(Self { block })
        }
        /// Field `request`.
        #[inline]
        #[must_use]
        pub fn request(&self) -> u64 {
            let raw = field::<0, 8, 16>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `order`.
        #[inline]
        #[must_use]
        pub fn order(&self) -> u64 {
            let raw = field::<8, 8, 16>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
    }
    /// Writes `CancelOrder` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct CancelOrderEncoder<'a> {
        block: &'a mut [u8; 24],
        tail: Tail<'a>,
        stage: CancelOrderStage,
    }
    impl<'a> CancelOrderEncoder<'a> {
        const TEMPLATE: [u8; 24] = {
            let block = [0; 24];
            let block = with(block, 0, (16u16).to_le_bytes());
            let block = with(block, 2, (2u16).to_le_bytes());
            let block = with(block, 4, (21u16).to_le_bytes());
            let block = with(block, 6, (0u16).to_le_bytes());
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
            let block = tail.chunk::<24>("CancelOrder")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: CancelOrderStage {
                    reached: 0,
                    ..CancelOrderStage::CLOSED
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
        /// Field `request`.
        #[inline]
        pub fn request(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 24>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `order`.
        #[inline]
        pub fn order(&mut self, value: u64) -> &mut Self {
            *field_mut::<16, 8, 24>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// Progress of the groups and data, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct CancelOrderStage {
        reached: u8,
    }
    impl CancelOrderStage {
        const CLOSED: Self = Self { reached: 0u8 };
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
                            _ => "CancelOrder",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `CancelOrder` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CancelOrder {
        /// Field `request`.
        pub request: u64,
        /// Field `order`.
        pub order: u64,
    }
    impl Default for CancelOrder {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                request: Default::default(),
                order: Default::default(),
            }
        }
    }
    impl CancelOrder {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &CancelOrderDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                request: decoder.request(),
                order: decoder.order(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut CancelOrderEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.request;
                encoder.request(*value);
            }
            {
                let value = &self.order;
                encoder.order(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            16
        }
    }
    /// Appends the fields of `CancelOrder` as protobuf.
    #[derive(Debug)]
    pub struct CancelOrderProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> CancelOrderProtobufEncoder<'a> {
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
            self.writer.finish("CancelOrder")
        }
        /// Field `request`.
        #[inline]
        pub fn request(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `order`.
        #[inline]
        pub fn order(&mut self, value: u64) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
    }
    /// A field of `CancelOrder` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum CancelOrderField {
        /// Field `request`.
        Request(u64),
        /// Field `order`.
        Order(u64),
    }
    /// Goes over the fields of `CancelOrder` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct CancelOrderProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> CancelOrderProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<CancelOrderField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<CancelOrderField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("CancelOrder")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                CancelOrderField::Request(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "CancelOrder.request",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                CancelOrderField::Order(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "CancelOrder.order",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "CancelOrder",
                                &[
                                    (1u32, "CancelOrder.request"),
                                    (2u32, "CancelOrder.order"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for CancelOrderProtobufDecoder<'a> {
        type Item = Result<CancelOrderField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl CancelOrder {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut CancelOrderProtobufEncoder<'_>) {
            {
                let value = &self.request;
                encoder.request(*value);
            }
            {
                let value = &self.order;
                encoder.order(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: CancelOrderProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    CancelOrderField::Request(value) => self.request = value,
                    CancelOrderField::Order(value) => self.order = value,
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::MessageSchema for CancelOrderDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "CancelOrder";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Decode for CancelOrderDecoder<'_> {
        type Decoded<'a> = CancelOrderDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<CancelOrderDecoder<'_>, DecodeError> {
            CancelOrderDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::MessageSchema for CancelOrderEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "CancelOrder";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Direct for CancelOrderEncoder<'_> {
        type Encoder<'a> = CancelOrderEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<CancelOrderEncoder<'_>, EncodeError> {
            CancelOrderEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: CancelOrderEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for CancelOrder {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "CancelOrder";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&CancelOrderDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = CancelOrderEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::MessageSchema for CancelOrderProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "CancelOrder";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Decode for CancelOrderProtobufDecoder<'_> {
        type Decoded<'a> = CancelOrderProtobufDecoder<'a>;
        #[inline]
        fn decode(
            payload: &[u8],
        ) -> Result<CancelOrderProtobufDecoder<'_>, DecodeError> {
            Ok(CancelOrderProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::MessageSchema for CancelOrderProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "CancelOrder";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Direct for CancelOrderProtobufEncoder<'_> {
        type Encoder<'a> = CancelOrderProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<CancelOrderProtobufEncoder<'_>, EncodeError> {
            Ok(CancelOrderProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(
            encoder: CancelOrderProtobufEncoder<'_>,
        ) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for CancelOrder {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "CancelOrder";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(CancelOrderProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = CancelOrderProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = CancelOrderProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// An entry node has said all that it has to say
    #[derive(Clone, Copy, Debug)]
    pub struct FinishedDecoder<'a> {
        block: &'a [u8; 8],
    }
    impl<'a> FinishedDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. Bytes after the
        /// message are ignored.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Finished")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Finished", SCHEMA_ID, 3u16)?;
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
                >(block_length, Self::needed_length_at(version), version, "Finished")?;
            Ok(Self { block })
        }
        /// Field `lastRequest`.
        #[inline]
        #[must_use]
        pub fn last_request(&self) -> u64 {
            let raw = field::<0, 8, 8>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
    }
    /// An entry node has said all that it has to say
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct FinishedEncoder<'a> {
        block: &'a mut [u8; 16],
        tail: Tail<'a>,
        stage: FinishedStage,
    }
    impl<'a> FinishedEncoder<'a> {
        const TEMPLATE: [u8; 16] = {
            let block = [0; 16];
            let block = with(block, 0, (8u16).to_le_bytes());
            let block = with(block, 2, (3u16).to_le_bytes());
            let block = with(block, 4, (21u16).to_le_bytes());
            let block = with(block, 6, (0u16).to_le_bytes());
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
            let block = tail.chunk::<16>("Finished")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: FinishedStage {
                    reached: 0,
                    ..FinishedStage::CLOSED
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
        /// Field `lastRequest`.
        #[inline]
        pub fn last_request(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 16>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// Progress of the groups and data, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct FinishedStage {
        reached: u8,
    }
    impl FinishedStage {
        const CLOSED: Self = Self { reached: 0u8 };
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
                            _ => "Finished",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// An entry node has said all that it has to say
    #[derive(Clone, Debug, PartialEq)]
    pub struct Finished {
        /// Field `lastRequest`.
        pub last_request: u64,
    }
    impl Default for Finished {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                last_request: Default::default(),
            }
        }
    }
    impl Finished {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &FinishedDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                last_request: decoder.last_request(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut FinishedEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.last_request;
                encoder.last_request(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            8
        }
    }
    /// An entry node has said all that it has to say
    #[derive(Debug)]
    pub struct FinishedProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> FinishedProtobufEncoder<'a> {
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
            self.writer.finish("Finished")
        }
        /// Field `lastRequest`.
        #[inline]
        pub fn last_request(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
    }
    /// A field of `Finished` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum FinishedField {
        /// Field `lastRequest`.
        LastRequest(u64),
    }
    /// An entry node has said all that it has to say
    #[derive(Clone, Copy, Debug)]
    pub struct FinishedProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> FinishedProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<FinishedField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<FinishedField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Finished")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                FinishedField::LastRequest(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Finished.lastRequest",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(key, "Finished", &[(1u32, "Finished.lastRequest")])?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for FinishedProtobufDecoder<'a> {
        type Item = Result<FinishedField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Finished {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut FinishedProtobufEncoder<'_>) {
            {
                let value = &self.last_request;
                encoder.last_request(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: FinishedProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    FinishedField::LastRequest(value) => self.last_request = value,
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::MessageSchema for FinishedDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Finished";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Decode for FinishedDecoder<'_> {
        type Decoded<'a> = FinishedDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<FinishedDecoder<'_>, DecodeError> {
            FinishedDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::MessageSchema for FinishedEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Finished";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Direct for FinishedEncoder<'_> {
        type Encoder<'a> = FinishedEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<FinishedEncoder<'_>, EncodeError> {
            FinishedEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: FinishedEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Finished {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Finished";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&FinishedDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = FinishedEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::MessageSchema for FinishedProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Finished";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Decode for FinishedProtobufDecoder<'_> {
        type Decoded<'a> = FinishedProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<FinishedProtobufDecoder<'_>, DecodeError> {
            Ok(FinishedProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::MessageSchema for FinishedProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Finished";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Direct for FinishedProtobufEncoder<'_> {
        type Encoder<'a> = FinishedProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<FinishedProtobufEncoder<'_>, EncodeError> {
            Ok(FinishedProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: FinishedProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Finished {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "Finished";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(FinishedProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = FinishedProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = FinishedProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// The outcome of an order; its trades follow
    #[derive(Clone, Copy, Debug)]
    pub struct AcceptedDecoder<'a> {
        block: &'a [u8; 21],
    }
    impl<'a> AcceptedDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. Bytes after the
        /// message are ignored.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Accepted")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Accepted", SCHEMA_ID, 11u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            21
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    21,
                >(block_length, Self::needed_length_at(version), version, "Accepted")?;
            Ok(Self { block })
        }
        /// Field `order`.
        #[inline]
        #[must_use]
        pub fn order(&self) -> u64 {
            let raw = field::<0, 8, 21>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `price`.
        #[inline]
        #[must_use]
        pub fn price(&self) -> i64 {
            let raw = field::<8, 8, 21>(self.block);
            let value = i64::from_le_bytes(*raw);
            value
        }
        /// Field `quantity`.
        #[inline]
        #[must_use]
        pub fn quantity(&self) -> u32 {
            let raw = field::<16, 4, 21>(self.block);
            let value = u32::from_le_bytes(*raw);
            value
        }
        /// Field `side`.
        #[inline]
        #[must_use]
        pub fn side(&self) -> Side {
            let raw = field::<20, 1, 21>(self.block);
            let value = Side::from_raw(u8::from_le_bytes(*raw));
            value
        }
    }
    /// The outcome of an order; its trades follow
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct AcceptedEncoder<'a> {
        block: &'a mut [u8; 29],
        tail: Tail<'a>,
        stage: AcceptedStage,
    }
    impl<'a> AcceptedEncoder<'a> {
        const TEMPLATE: [u8; 29] = {
            let block = [0; 29];
            let block = with(block, 0, (21u16).to_le_bytes());
            let block = with(block, 2, (11u16).to_le_bytes());
            let block = with(block, 4, (21u16).to_le_bytes());
            let block = with(block, 6, (0u16).to_le_bytes());
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
            let block = tail.chunk::<29>("Accepted")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: AcceptedStage {
                    reached: 0,
                    ..AcceptedStage::CLOSED
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
        /// Field `order`.
        #[inline]
        pub fn order(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 29>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `price`.
        #[inline]
        pub fn price(&mut self, value: i64) -> &mut Self {
            *field_mut::<16, 8, 29>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `quantity`.
        #[inline]
        pub fn quantity(&mut self, value: u32) -> &mut Self {
            *field_mut::<24, 4, 29>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `side`.
        #[inline]
        pub fn side(&mut self, value: Side) -> &mut Self {
            *field_mut::<28, 1, 29>(self.block) = value.raw().to_le_bytes();
            self
        }
    }
    /// Progress of the groups and data, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct AcceptedStage {
        reached: u8,
    }
    impl AcceptedStage {
        const CLOSED: Self = Self { reached: 0u8 };
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
                            _ => "Accepted",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// The outcome of an order; its trades follow
    #[derive(Clone, Debug, PartialEq)]
    pub struct Accepted {
        /// Field `order`.
        pub order: u64,
        /// Field `price`.
        pub price: i64,
        /// Field `quantity`.
        pub quantity: u32,
        /// Field `side`.
        pub side: Side,
    }
    impl Default for Accepted {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                order: Default::default(),
                price: Default::default(),
                quantity: Default::default(),
                side: Default::default(),
            }
        }
    }
    impl Accepted {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &AcceptedDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                order: decoder.order(),
                price: decoder.price(),
                quantity: decoder.quantity(),
                side: decoder.side(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut AcceptedEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.order;
                encoder.order(*value);
            }
            {
                let value = &self.price;
                encoder.price(*value);
            }
            {
                let value = &self.quantity;
                encoder.quantity(*value);
            }
            {
                let value = &self.side;
                encoder.side(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            21
        }
    }
    /// The outcome of an order; its trades follow
    #[derive(Debug)]
    pub struct AcceptedProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> AcceptedProtobufEncoder<'a> {
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
            self.writer.finish("Accepted")
        }
        /// Field `order`.
        #[inline]
        pub fn order(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `price`.
        #[inline]
        pub fn price(&mut self, value: i64) -> &mut Self {
            self.writer.sint(2u32, i64::from(value));
            self
        }
        /// Field `quantity`.
        #[inline]
        pub fn quantity(&mut self, value: u32) -> &mut Self {
            self.writer.uint(3u32, u64::from(value));
            self
        }
        /// Field `side`.
        #[inline]
        pub fn side(&mut self, value: Side) -> &mut Self {
            self.writer.uint(4u32, i64::from(value.raw()) as u64);
            self
        }
    }
    /// A field of `Accepted` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum AcceptedField {
        /// Field `order`.
        Order(u64),
        /// Field `price`.
        Price(i64),
        /// Field `quantity`.
        Quantity(u32),
        /// Field `side`.
        Side(Side),
    }
    /// The outcome of an order; its trades follow
    #[derive(Clone, Copy, Debug)]
    pub struct AcceptedProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> AcceptedProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<AcceptedField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<AcceptedField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Accepted")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                AcceptedField::Order(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Accepted.order",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                AcceptedField::Price(
                                    <i64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Accepted.price",
                                    )?,
                                ),
                            ),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(
                                AcceptedField::Quantity(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Accepted.quantity",
                                    )?,
                                ),
                            ),
                        );
                    }
                    32u32 => {
                        return Ok(
                            Some(
                                AcceptedField::Side(
                                    <Side as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Accepted.side",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Accepted",
                                &[
                                    (1u32, "Accepted.order"),
                                    (2u32, "Accepted.price"),
                                    (3u32, "Accepted.quantity"),
                                    (4u32, "Accepted.side"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for AcceptedProtobufDecoder<'a> {
        type Item = Result<AcceptedField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Accepted {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut AcceptedProtobufEncoder<'_>) {
            {
                let value = &self.order;
                encoder.order(*value);
            }
            {
                let value = &self.price;
                encoder.price(*value);
            }
            {
                let value = &self.quantity;
                encoder.quantity(*value);
            }
            {
                let value = &self.side;
                encoder.side(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: AcceptedProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    AcceptedField::Order(value) => self.order = value,
                    AcceptedField::Price(value) => self.price = value,
                    AcceptedField::Quantity(value) => self.quantity = value,
                    AcceptedField::Side(value) => self.side = value,
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::MessageSchema for AcceptedDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 11u16;
        const NAME: &'static str = "Accepted";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Decode for AcceptedDecoder<'_> {
        type Decoded<'a> = AcceptedDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<AcceptedDecoder<'_>, DecodeError> {
            AcceptedDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::MessageSchema for AcceptedEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 11u16;
        const NAME: &'static str = "Accepted";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Direct for AcceptedEncoder<'_> {
        type Encoder<'a> = AcceptedEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<AcceptedEncoder<'_>, EncodeError> {
            AcceptedEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: AcceptedEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Accepted {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 11u16;
        const NAME: &'static str = "Accepted";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&AcceptedDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = AcceptedEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::MessageSchema for AcceptedProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 11u16;
        const NAME: &'static str = "Accepted";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Decode for AcceptedProtobufDecoder<'_> {
        type Decoded<'a> = AcceptedProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<AcceptedProtobufDecoder<'_>, DecodeError> {
            Ok(AcceptedProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::MessageSchema for AcceptedProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 11u16;
        const NAME: &'static str = "Accepted";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Direct for AcceptedProtobufEncoder<'_> {
        type Encoder<'a> = AcceptedProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<AcceptedProtobufEncoder<'_>, EncodeError> {
            Ok(AcceptedProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: AcceptedProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Accepted {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 11u16;
        const NAME: &'static str = "Accepted";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(AcceptedProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = AcceptedProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = AcceptedProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// The outcome of an order or of a cancel
    #[derive(Clone, Copy, Debug)]
    pub struct RejectedDecoder<'a> {
        block: &'a [u8; 9],
    }
    impl<'a> RejectedDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. Bytes after the
        /// message are ignored.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Rejected")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Rejected", SCHEMA_ID, 12u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            9
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    9,
                >(block_length, Self::needed_length_at(version), version, "Rejected")?;
            Ok(Self { block })
        }
        /// Field `request`.
        #[inline]
        #[must_use]
        pub fn request(&self) -> u64 {
            let raw = field::<0, 8, 9>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `reason`.
        #[inline]
        #[must_use]
        pub fn reason(&self) -> Reason {
            let raw = field::<8, 1, 9>(self.block);
            let value = Reason::from_raw(u8::from_le_bytes(*raw));
            value
        }
    }
    /// The outcome of an order or of a cancel
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct RejectedEncoder<'a> {
        block: &'a mut [u8; 17],
        tail: Tail<'a>,
        stage: RejectedStage,
    }
    impl<'a> RejectedEncoder<'a> {
        const TEMPLATE: [u8; 17] = {
            let block = [0; 17];
            let block = with(block, 0, (9u16).to_le_bytes());
            let block = with(block, 2, (12u16).to_le_bytes());
            let block = with(block, 4, (21u16).to_le_bytes());
            let block = with(block, 6, (0u16).to_le_bytes());
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
            let block = tail.chunk::<17>("Rejected")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: RejectedStage {
                    reached: 0,
                    ..RejectedStage::CLOSED
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
        /// Field `request`.
        #[inline]
        pub fn request(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 17>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `reason`.
        #[inline]
        pub fn reason(&mut self, value: Reason) -> &mut Self {
            *field_mut::<16, 1, 17>(self.block) = value.raw().to_le_bytes();
            self
        }
    }
    /// Progress of the groups and data, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct RejectedStage {
        reached: u8,
    }
    impl RejectedStage {
        const CLOSED: Self = Self { reached: 0u8 };
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
                            _ => "Rejected",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// The outcome of an order or of a cancel
    #[derive(Clone, Debug, PartialEq)]
    pub struct Rejected {
        /// Field `request`.
        pub request: u64,
        /// Field `reason`.
        pub reason: Reason,
    }
    impl Default for Rejected {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                request: Default::default(),
                reason: Default::default(),
            }
        }
    }
    impl Rejected {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &RejectedDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                request: decoder.request(),
                reason: decoder.reason(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut RejectedEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.request;
                encoder.request(*value);
            }
            {
                let value = &self.reason;
                encoder.reason(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            9
        }
    }
    /// The outcome of an order or of a cancel
    #[derive(Debug)]
    pub struct RejectedProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> RejectedProtobufEncoder<'a> {
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
            self.writer.finish("Rejected")
        }
        /// Field `request`.
        #[inline]
        pub fn request(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `reason`.
        #[inline]
        pub fn reason(&mut self, value: Reason) -> &mut Self {
            self.writer.uint(2u32, i64::from(value.raw()) as u64);
            self
        }
    }
    /// A field of `Rejected` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum RejectedField {
        /// Field `request`.
        Request(u64),
        /// Field `reason`.
        Reason(Reason),
    }
    /// The outcome of an order or of a cancel
    #[derive(Clone, Copy, Debug)]
    pub struct RejectedProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> RejectedProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<RejectedField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<RejectedField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Rejected")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                RejectedField::Request(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Rejected.request",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                RejectedField::Reason(
                                    <Reason as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Rejected.reason",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Rejected",
                                &[(1u32, "Rejected.request"), (2u32, "Rejected.reason")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for RejectedProtobufDecoder<'a> {
        type Item = Result<RejectedField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Rejected {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut RejectedProtobufEncoder<'_>) {
            {
                let value = &self.request;
                encoder.request(*value);
            }
            {
                let value = &self.reason;
                encoder.reason(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: RejectedProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    RejectedField::Request(value) => self.request = value,
                    RejectedField::Reason(value) => self.reason = value,
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::MessageSchema for RejectedDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 12u16;
        const NAME: &'static str = "Rejected";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Decode for RejectedDecoder<'_> {
        type Decoded<'a> = RejectedDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<RejectedDecoder<'_>, DecodeError> {
            RejectedDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::MessageSchema for RejectedEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 12u16;
        const NAME: &'static str = "Rejected";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Direct for RejectedEncoder<'_> {
        type Encoder<'a> = RejectedEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<RejectedEncoder<'_>, EncodeError> {
            RejectedEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: RejectedEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Rejected {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 12u16;
        const NAME: &'static str = "Rejected";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&RejectedDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = RejectedEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::MessageSchema for RejectedProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 12u16;
        const NAME: &'static str = "Rejected";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Decode for RejectedProtobufDecoder<'_> {
        type Decoded<'a> = RejectedProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<RejectedProtobufDecoder<'_>, DecodeError> {
            Ok(RejectedProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::MessageSchema for RejectedProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 12u16;
        const NAME: &'static str = "Rejected";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Direct for RejectedProtobufEncoder<'_> {
        type Encoder<'a> = RejectedProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<RejectedProtobufEncoder<'_>, EncodeError> {
            Ok(RejectedProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: RejectedProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Rejected {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 12u16;
        const NAME: &'static str = "Rejected";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(RejectedProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = RejectedProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = RejectedProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// The outcome of a cancel
    #[derive(Clone, Copy, Debug)]
    pub struct CancelledDecoder<'a> {
        block: &'a [u8; 20],
    }
    impl<'a> CancelledDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. Bytes after the
        /// message are ignored.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Cancelled")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Cancelled", SCHEMA_ID, 13u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            20
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    20,
                >(block_length, Self::needed_length_at(version), version, "Cancelled")?;
            Ok(Self { block })
        }
        /// Field `request`.
        #[inline]
        #[must_use]
        pub fn request(&self) -> u64 {
            let raw = field::<0, 8, 20>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `order`.
        #[inline]
        #[must_use]
        pub fn order(&self) -> u64 {
            let raw = field::<8, 8, 20>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// What was left of it
        #[inline]
        #[must_use]
        pub fn quantity(&self) -> u32 {
            let raw = field::<16, 4, 20>(self.block);
            let value = u32::from_le_bytes(*raw);
            value
        }
    }
    /// The outcome of a cancel
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct CancelledEncoder<'a> {
        block: &'a mut [u8; 28],
        tail: Tail<'a>,
        stage: CancelledStage,
    }
    impl<'a> CancelledEncoder<'a> {
        const TEMPLATE: [u8; 28] = {
            let block = [0; 28];
            let block = with(block, 0, (20u16).to_le_bytes());
            let block = with(block, 2, (13u16).to_le_bytes());
            let block = with(block, 4, (21u16).to_le_bytes());
            let block = with(block, 6, (0u16).to_le_bytes());
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
            let block = tail.chunk::<28>("Cancelled")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: CancelledStage {
                    reached: 0,
                    ..CancelledStage::CLOSED
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
        /// Field `request`.
        #[inline]
        pub fn request(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 28>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `order`.
        #[inline]
        pub fn order(&mut self, value: u64) -> &mut Self {
            *field_mut::<16, 8, 28>(self.block) = value.to_le_bytes();
            self
        }
        /// What was left of it
        #[inline]
        pub fn quantity(&mut self, value: u32) -> &mut Self {
            *field_mut::<24, 4, 28>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// Progress of the groups and data, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct CancelledStage {
        reached: u8,
    }
    impl CancelledStage {
        const CLOSED: Self = Self { reached: 0u8 };
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
                            _ => "Cancelled",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// The outcome of a cancel
    #[derive(Clone, Debug, PartialEq)]
    pub struct Cancelled {
        /// Field `request`.
        pub request: u64,
        /// Field `order`.
        pub order: u64,
        /// What was left of it
        pub quantity: u32,
    }
    impl Default for Cancelled {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                request: Default::default(),
                order: Default::default(),
                quantity: Default::default(),
            }
        }
    }
    impl Cancelled {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &CancelledDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                request: decoder.request(),
                order: decoder.order(),
                quantity: decoder.quantity(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut CancelledEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.request;
                encoder.request(*value);
            }
            {
                let value = &self.order;
                encoder.order(*value);
            }
            {
                let value = &self.quantity;
                encoder.quantity(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            20
        }
    }
    /// The outcome of a cancel
    #[derive(Debug)]
    pub struct CancelledProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> CancelledProtobufEncoder<'a> {
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
            self.writer.finish("Cancelled")
        }
        /// Field `request`.
        #[inline]
        pub fn request(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `order`.
        #[inline]
        pub fn order(&mut self, value: u64) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
        /// What was left of it
        #[inline]
        pub fn quantity(&mut self, value: u32) -> &mut Self {
            self.writer.uint(3u32, u64::from(value));
            self
        }
    }
    /// A field of `Cancelled` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum CancelledField {
        /// Field `request`.
        Request(u64),
        /// Field `order`.
        Order(u64),
        /// What was left of it
        Quantity(u32),
    }
    /// The outcome of a cancel
    #[derive(Clone, Copy, Debug)]
    pub struct CancelledProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> CancelledProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<CancelledField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<CancelledField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Cancelled")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                CancelledField::Request(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Cancelled.request",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                CancelledField::Order(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Cancelled.order",
                                    )?,
                                ),
                            ),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(
                                CancelledField::Quantity(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Cancelled.quantity",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Cancelled",
                                &[
                                    (1u32, "Cancelled.request"),
                                    (2u32, "Cancelled.order"),
                                    (3u32, "Cancelled.quantity"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for CancelledProtobufDecoder<'a> {
        type Item = Result<CancelledField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Cancelled {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut CancelledProtobufEncoder<'_>) {
            {
                let value = &self.request;
                encoder.request(*value);
            }
            {
                let value = &self.order;
                encoder.order(*value);
            }
            {
                let value = &self.quantity;
                encoder.quantity(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: CancelledProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    CancelledField::Request(value) => self.request = value,
                    CancelledField::Order(value) => self.order = value,
                    CancelledField::Quantity(value) => self.quantity = value,
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::MessageSchema for CancelledDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 13u16;
        const NAME: &'static str = "Cancelled";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Decode for CancelledDecoder<'_> {
        type Decoded<'a> = CancelledDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<CancelledDecoder<'_>, DecodeError> {
            CancelledDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::MessageSchema for CancelledEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 13u16;
        const NAME: &'static str = "Cancelled";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Direct for CancelledEncoder<'_> {
        type Encoder<'a> = CancelledEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<CancelledEncoder<'_>, EncodeError> {
            CancelledEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: CancelledEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Cancelled {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 13u16;
        const NAME: &'static str = "Cancelled";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&CancelledDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = CancelledEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::MessageSchema for CancelledProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 13u16;
        const NAME: &'static str = "Cancelled";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Decode for CancelledProtobufDecoder<'_> {
        type Decoded<'a> = CancelledProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<CancelledProtobufDecoder<'_>, DecodeError> {
            Ok(CancelledProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::MessageSchema for CancelledProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 13u16;
        const NAME: &'static str = "Cancelled";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Direct for CancelledProtobufEncoder<'_> {
        type Encoder<'a> = CancelledProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<CancelledProtobufEncoder<'_>, EncodeError> {
            Ok(CancelledProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: CancelledProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Cancelled {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 13u16;
        const NAME: &'static str = "Cancelled";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(CancelledProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = CancelledProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = CancelledProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Reads message `Trade` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct TradeDecoder<'a> {
        block: &'a [u8; 36],
    }
    impl<'a> TradeDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. Bytes after the
        /// message are ignored.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Trade")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Trade", SCHEMA_ID, 14u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            36
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    36,
                >(block_length, Self::needed_length_at(version), version, "Trade")?;
            Ok(Self { block })
        }
        /// From 1, without a gap
        #[inline]
        #[must_use]
        pub fn trade(&self) -> u64 {
            let raw = field::<0, 8, 36>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `price`.
        #[inline]
        #[must_use]
        pub fn price(&self) -> i64 {
            let raw = field::<8, 8, 36>(self.block);
            let value = i64::from_le_bytes(*raw);
            value
        }
        /// Field `buyOrder`.
        #[inline]
        #[must_use]
        pub fn buy_order(&self) -> u64 {
            let raw = field::<16, 8, 36>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `sellOrder`.
        #[inline]
        #[must_use]
        pub fn sell_order(&self) -> u64 {
            let raw = field::<24, 8, 36>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `quantity`.
        #[inline]
        #[must_use]
        pub fn quantity(&self) -> u32 {
            let raw = field::<32, 4, 36>(self.block);
            let value = u32::from_le_bytes(*raw);
            value
        }
    }
    /// Writes `Trade` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct TradeEncoder<'a> {
        block: &'a mut [u8; 44],
        tail: Tail<'a>,
        stage: TradeStage,
    }
    impl<'a> TradeEncoder<'a> {
        const TEMPLATE: [u8; 44] = {
            let block = [0; 44];
            let block = with(block, 0, (36u16).to_le_bytes());
            let block = with(block, 2, (14u16).to_le_bytes());
            let block = with(block, 4, (21u16).to_le_bytes());
            let block = with(block, 6, (0u16).to_le_bytes());
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
            let block = tail.chunk::<44>("Trade")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: TradeStage {
                    reached: 0,
                    ..TradeStage::CLOSED
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
        /// From 1, without a gap
        #[inline]
        pub fn trade(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 44>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `price`.
        #[inline]
        pub fn price(&mut self, value: i64) -> &mut Self {
            *field_mut::<16, 8, 44>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `buyOrder`.
        #[inline]
        pub fn buy_order(&mut self, value: u64) -> &mut Self {
            *field_mut::<24, 8, 44>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `sellOrder`.
        #[inline]
        pub fn sell_order(&mut self, value: u64) -> &mut Self {
            *field_mut::<32, 8, 44>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `quantity`.
        #[inline]
        pub fn quantity(&mut self, value: u32) -> &mut Self {
            *field_mut::<40, 4, 44>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// Progress of the groups and data, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct TradeStage {
        reached: u8,
    }
    impl TradeStage {
        const CLOSED: Self = Self { reached: 0u8 };
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
                            _ => "Trade",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Trade` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Trade {
        /// From 1, without a gap
        pub trade: u64,
        /// Field `price`.
        pub price: i64,
        /// Field `buyOrder`.
        pub buy_order: u64,
        /// Field `sellOrder`.
        pub sell_order: u64,
        /// Field `quantity`.
        pub quantity: u32,
    }
    impl Default for Trade {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                trade: Default::default(),
                price: Default::default(),
                buy_order: Default::default(),
                sell_order: Default::default(),
                quantity: Default::default(),
            }
        }
    }
    impl Trade {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &TradeDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                trade: decoder.trade(),
                price: decoder.price(),
                buy_order: decoder.buy_order(),
                sell_order: decoder.sell_order(),
                quantity: decoder.quantity(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut TradeEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.trade;
                encoder.trade(*value);
            }
            {
                let value = &self.price;
                encoder.price(*value);
            }
            {
                let value = &self.buy_order;
                encoder.buy_order(*value);
            }
            {
                let value = &self.sell_order;
                encoder.sell_order(*value);
            }
            {
                let value = &self.quantity;
                encoder.quantity(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            36
        }
    }
    /// Appends the fields of `Trade` as protobuf.
    #[derive(Debug)]
    pub struct TradeProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> TradeProtobufEncoder<'a> {
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
            self.writer.finish("Trade")
        }
        /// From 1, without a gap
        #[inline]
        pub fn trade(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `price`.
        #[inline]
        pub fn price(&mut self, value: i64) -> &mut Self {
            self.writer.sint(2u32, i64::from(value));
            self
        }
        /// Field `buyOrder`.
        #[inline]
        pub fn buy_order(&mut self, value: u64) -> &mut Self {
            self.writer.uint(3u32, u64::from(value));
            self
        }
        /// Field `sellOrder`.
        #[inline]
        pub fn sell_order(&mut self, value: u64) -> &mut Self {
            self.writer.uint(4u32, u64::from(value));
            self
        }
        /// Field `quantity`.
        #[inline]
        pub fn quantity(&mut self, value: u32) -> &mut Self {
            self.writer.uint(5u32, u64::from(value));
            self
        }
    }
    /// A field of `Trade` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum TradeField {
        /// From 1, without a gap
        Trade(u64),
        /// Field `price`.
        Price(i64),
        /// Field `buyOrder`.
        BuyOrder(u64),
        /// Field `sellOrder`.
        SellOrder(u64),
        /// Field `quantity`.
        Quantity(u32),
    }
    /// Goes over the fields of `Trade` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct TradeProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> TradeProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<TradeField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<TradeField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Trade")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                TradeField::Trade(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Trade.trade",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                TradeField::Price(
                                    <i64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Trade.price",
                                    )?,
                                ),
                            ),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(
                                TradeField::BuyOrder(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Trade.buyOrder",
                                    )?,
                                ),
                            ),
                        );
                    }
                    32u32 => {
                        return Ok(
                            Some(
                                TradeField::SellOrder(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Trade.sellOrder",
                                    )?,
                                ),
                            ),
                        );
                    }
                    40u32 => {
                        return Ok(
                            Some(
                                TradeField::Quantity(
                                    <u32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Trade.quantity",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Trade",
                                &[
                                    (1u32, "Trade.trade"),
                                    (2u32, "Trade.price"),
                                    (3u32, "Trade.buyOrder"),
                                    (4u32, "Trade.sellOrder"),
                                    (5u32, "Trade.quantity"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for TradeProtobufDecoder<'a> {
        type Item = Result<TradeField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Trade {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut TradeProtobufEncoder<'_>) {
            {
                let value = &self.trade;
                encoder.trade(*value);
            }
            {
                let value = &self.price;
                encoder.price(*value);
            }
            {
                let value = &self.buy_order;
                encoder.buy_order(*value);
            }
            {
                let value = &self.sell_order;
                encoder.sell_order(*value);
            }
            {
                let value = &self.quantity;
                encoder.quantity(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: TradeProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    TradeField::Trade(value) => self.trade = value,
                    TradeField::Price(value) => self.price = value,
                    TradeField::BuyOrder(value) => self.buy_order = value,
                    TradeField::SellOrder(value) => self.sell_order = value,
                    TradeField::Quantity(value) => self.quantity = value,
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::MessageSchema for TradeDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 14u16;
        const NAME: &'static str = "Trade";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Decode for TradeDecoder<'_> {
        type Decoded<'a> = TradeDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<TradeDecoder<'_>, DecodeError> {
            TradeDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::MessageSchema for TradeEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 14u16;
        const NAME: &'static str = "Trade";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Direct for TradeEncoder<'_> {
        type Encoder<'a> = TradeEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<TradeEncoder<'_>, EncodeError> {
            TradeEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: TradeEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Trade {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 14u16;
        const NAME: &'static str = "Trade";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&TradeDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = TradeEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::MessageSchema for TradeProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 14u16;
        const NAME: &'static str = "Trade";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Decode for TradeProtobufDecoder<'_> {
        type Decoded<'a> = TradeProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<TradeProtobufDecoder<'_>, DecodeError> {
            Ok(TradeProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::MessageSchema for TradeProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 14u16;
        const NAME: &'static str = "Trade";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Direct for TradeProtobufEncoder<'_> {
        type Encoder<'a> = TradeProtobufEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<TradeProtobufEncoder<'_>, EncodeError> {
            Ok(TradeProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: TradeProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Trade {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 14u16;
        const NAME: &'static str = "Trade";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(TradeProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = TradeProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = TradeProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Every entry node has finished; nothing follows
    #[derive(Clone, Copy, Debug)]
    pub struct ClosedDecoder<'a> {
        block: &'a [u8; 32],
    }
    impl<'a> ClosedDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. Bytes after the
        /// message are ignored.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("Closed")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("Closed", SCHEMA_ID, 15u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            32
        }
        #[inline(always)]
        fn parse_body(
            reader: &mut ::gapless_schema::sbe::Reader<'a>,
            block_length: u64,
            version: u64,
        ) -> Result<Self, DecodeError> {
            let (block, acting) = reader
                .block::<
                    32,
                >(block_length, Self::needed_length_at(version), version, "Closed")?;
            Ok(Self { block })
        }
        /// Field `requests`.
        #[inline]
        #[must_use]
        pub fn requests(&self) -> u64 {
            let raw = field::<0, 8, 32>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `trades`.
        #[inline]
        #[must_use]
        pub fn trades(&self) -> u64 {
            let raw = field::<8, 8, 32>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `restingQuantity`.
        #[inline]
        #[must_use]
        pub fn resting_quantity(&self) -> u64 {
            let raw = field::<16, 8, 32>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
        /// Field `bookFingerprint`.
        #[inline]
        #[must_use]
        pub fn book_fingerprint(&self) -> u64 {
            let raw = field::<24, 8, 32>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
        }
    }
    /// Every entry node has finished; nothing follows
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct ClosedEncoder<'a> {
        block: &'a mut [u8; 40],
        tail: Tail<'a>,
        stage: ClosedStage,
    }
    impl<'a> ClosedEncoder<'a> {
        const TEMPLATE: [u8; 40] = {
            let block = [0; 40];
            let block = with(block, 0, (32u16).to_le_bytes());
            let block = with(block, 2, (15u16).to_le_bytes());
            let block = with(block, 4, (21u16).to_le_bytes());
            let block = with(block, 6, (0u16).to_le_bytes());
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
            let block = tail.chunk::<40>("Closed")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: ClosedStage {
                    reached: 0,
                    ..ClosedStage::CLOSED
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
        /// Field `requests`.
        #[inline]
        pub fn requests(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 40>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `trades`.
        #[inline]
        pub fn trades(&mut self, value: u64) -> &mut Self {
            *field_mut::<16, 8, 40>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `restingQuantity`.
        #[inline]
        pub fn resting_quantity(&mut self, value: u64) -> &mut Self {
            *field_mut::<24, 8, 40>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `bookFingerprint`.
        #[inline]
        pub fn book_fingerprint(&mut self, value: u64) -> &mut Self {
            *field_mut::<32, 8, 40>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// Progress of the groups and data, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct ClosedStage {
        reached: u8,
    }
    impl ClosedStage {
        const CLOSED: Self = Self { reached: 0u8 };
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
                            _ => "Closed",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// Every entry node has finished; nothing follows
    #[derive(Clone, Debug, PartialEq)]
    pub struct Closed {
        /// Field `requests`.
        pub requests: u64,
        /// Field `trades`.
        pub trades: u64,
        /// Field `restingQuantity`.
        pub resting_quantity: u64,
        /// Field `bookFingerprint`.
        pub book_fingerprint: u64,
    }
    impl Default for Closed {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                requests: Default::default(),
                trades: Default::default(),
                resting_quantity: Default::default(),
                book_fingerprint: Default::default(),
            }
        }
    }
    impl Closed {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &ClosedDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                requests: decoder.requests(),
                trades: decoder.trades(),
                resting_quantity: decoder.resting_quantity(),
                book_fingerprint: decoder.book_fingerprint(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut ClosedEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.requests;
                encoder.requests(*value);
            }
            {
                let value = &self.trades;
                encoder.trades(*value);
            }
            {
                let value = &self.resting_quantity;
                encoder.resting_quantity(*value);
            }
            {
                let value = &self.book_fingerprint;
                encoder.book_fingerprint(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            32
        }
    }
    /// Every entry node has finished; nothing follows
    #[derive(Debug)]
    pub struct ClosedProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> ClosedProtobufEncoder<'a> {
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
            self.writer.finish("Closed")
        }
        /// Field `requests`.
        #[inline]
        pub fn requests(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `trades`.
        #[inline]
        pub fn trades(&mut self, value: u64) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
        /// Field `restingQuantity`.
        #[inline]
        pub fn resting_quantity(&mut self, value: u64) -> &mut Self {
            self.writer.uint(3u32, u64::from(value));
            self
        }
        /// Field `bookFingerprint`.
        #[inline]
        pub fn book_fingerprint(&mut self, value: u64) -> &mut Self {
            self.writer.uint(4u32, u64::from(value));
            self
        }
    }
    /// A field of `Closed` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum ClosedField {
        /// Field `requests`.
        Requests(u64),
        /// Field `trades`.
        Trades(u64),
        /// Field `restingQuantity`.
        RestingQuantity(u64),
        /// Field `bookFingerprint`.
        BookFingerprint(u64),
    }
    /// Every entry node has finished; nothing follows
    #[derive(Clone, Copy, Debug)]
    pub struct ClosedProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> ClosedProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<ClosedField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<ClosedField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Closed")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                ClosedField::Requests(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Closed.requests",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                ClosedField::Trades(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Closed.trades",
                                    )?,
                                ),
                            ),
                        );
                    }
                    24u32 => {
                        return Ok(
                            Some(
                                ClosedField::RestingQuantity(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Closed.restingQuantity",
                                    )?,
                                ),
                            ),
                        );
                    }
                    32u32 => {
                        return Ok(
                            Some(
                                ClosedField::BookFingerprint(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Closed.bookFingerprint",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Closed",
                                &[
                                    (1u32, "Closed.requests"),
                                    (2u32, "Closed.trades"),
                                    (3u32, "Closed.restingQuantity"),
                                    (4u32, "Closed.bookFingerprint"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for ClosedProtobufDecoder<'a> {
        type Item = Result<ClosedField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Closed {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut ClosedProtobufEncoder<'_>) {
            {
                let value = &self.requests;
                encoder.requests(*value);
            }
            {
                let value = &self.trades;
                encoder.trades(*value);
            }
            {
                let value = &self.resting_quantity;
                encoder.resting_quantity(*value);
            }
            {
                let value = &self.book_fingerprint;
                encoder.book_fingerprint(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: ClosedProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    ClosedField::Requests(value) => self.requests = value,
                    ClosedField::Trades(value) => self.trades = value,
                    ClosedField::RestingQuantity(value) => self.resting_quantity = value,
                    ClosedField::BookFingerprint(value) => self.book_fingerprint = value,
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::MessageSchema for ClosedDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 15u16;
        const NAME: &'static str = "Closed";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Decode for ClosedDecoder<'_> {
        type Decoded<'a> = ClosedDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<ClosedDecoder<'_>, DecodeError> {
            ClosedDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::MessageSchema for ClosedEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 15u16;
        const NAME: &'static str = "Closed";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Direct for ClosedEncoder<'_> {
        type Encoder<'a> = ClosedEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<ClosedEncoder<'_>, EncodeError> {
            ClosedEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: ClosedEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for Closed {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 15u16;
        const NAME: &'static str = "Closed";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&ClosedDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = ClosedEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::MessageSchema for ClosedProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 15u16;
        const NAME: &'static str = "Closed";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Decode for ClosedProtobufDecoder<'_> {
        type Decoded<'a> = ClosedProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<ClosedProtobufDecoder<'_>, DecodeError> {
            Ok(ClosedProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::MessageSchema for ClosedProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 15u16;
        const NAME: &'static str = "Closed";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Direct for ClosedProtobufEncoder<'_> {
        type Encoder<'a> = ClosedProtobufEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<ClosedProtobufEncoder<'_>, EncodeError> {
            Ok(ClosedProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: ClosedProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for Closed {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 15u16;
        const NAME: &'static str = "Closed";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(ClosedProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = ClosedProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = ClosedProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
}
