// Generated from a schema (gapless.extension.v0, id 5, version 0). Do not edit: change the schema.

/// Messages of `gapless.extension.v0`.
///
/// Schema id 5, version 0.
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
pub mod extension_v0 {
    use ::gapless_schema::sbe::block::{
        field, field_mut, from_offset, late_field, with, with_repeated,
    };
    use ::gapless_schema::sbe::{Entry as _, Tail};
    use ::gapless_schema::{DecodeError, EncodeError};
    /// Id of the schema.
    pub const SCHEMA_ID: u16 = 5u16;
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
    /// Reads composite `Venue` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct VenueDecoder<'a> {
        block: &'a [u8; 2],
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
    }
    /// Writes `Venue` where it will lie.
    #[derive(Debug)]
    pub struct VenueEncoder<'a> {
        block: &'a mut [u8; 2],
    }
    impl<'a> VenueEncoder<'a> {
        /// Field `country`.
        #[inline]
        pub fn country(&mut self, value: u16) -> &mut Self {
            *field_mut::<0, 2, 2>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// `Venue` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Venue {
        /// Field `country`.
        pub country: u16,
    }
    impl Default for Venue {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                country: Default::default(),
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
            Ok(Self { country: decoder.country() })
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
    }
    /// A field of `Venue` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum VenueField {
        /// Field `country`.
        Country(u16),
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
                    _ => {
                        *reader = reader.other(key, "Venue", &[(1u32, "Venue.country")])?;
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
                }
            }
            Ok(())
        }
    }
    /// Reads message `Order` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct OrderDecoder<'a> {
        block: &'a [u8; 11],
        group_legs: ::gapless_schema::sbe::Group<'a, OrderLegsDecoder<'a>>,
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
            11
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
            Ok(Self { block, group_legs })
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
            let value = VenueDecoder { block: raw };
            value
        }
        /// Group `legs`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn legs(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, OrderLegsDecoder<'a>> {
            self.group_legs
        }
    }
    /// Writes `Order` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct OrderEncoder<'a> {
        block: &'a mut [u8; 19],
        tail: Tail<'a>,
        stage: OrderStage,
    }
    impl<'a> OrderEncoder<'a> {
        const TEMPLATE: [u8; 19] = {
            let block = [0; 19];
            let block = with(block, 0, (11u16).to_le_bytes());
            let block = with(block, 2, (1u16).to_le_bytes());
            let block = with(block, 4, (5u16).to_le_bytes());
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
            let block = tail.chunk::<19>("Order")?;
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
            self.stage.advance(&mut self.tail, 1u8)?;
            Ok(self.tail.position())
        }
        /// Field `orderId`.
        #[inline]
        pub fn order_id(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 19>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `side`.
        #[inline]
        pub fn side(&mut self, value: Side) -> &mut Self {
            *field_mut::<16, 1, 19>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `venue`.
        #[inline]
        pub fn venue(&mut self) -> VenueEncoder<'_> {
            VenueEncoder {
                block: field_mut::<17, 2, 19>(self.block),
            }
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
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct OrderStage {
        reached: u8,
        child_legs: OrderLegsStage,
    }
    impl OrderStage {
        const CLOSED: Self = Self {
            reached: 1u8,
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
        /// Group `legs`.
        pub legs: Vec<OrderLegs>,
    }
    impl Default for Order {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                order_id: Default::default(),
                side: Default::default(),
                venue: Default::default(),
                legs: Default::default(),
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
                legs: {
                    let entries = decoder.legs();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(OrderLegs::from_decoder(&entry)?);
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
            let mut group = encoder.legs()?;
            for item in &self.legs {
                item.encode_into(&mut group.entry()?)?;
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            11 + 4 + self.legs.iter().map(|entry| entry.sbe_body_length()).sum::<usize>()
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
        /// Group `legs`: one entry.
        Legs(OrderLegsProtobufDecoder<'a>),
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
                    34u32 => {
                        return Ok(
                            Some(
                                OrderField::Legs(OrderLegsProtobufDecoder {
                                    reader: reader.message("Order.legs")?,
                                }),
                            ),
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
                                    (4u32, "Order.legs"),
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
            for entry in &self.legs {
                encoder.legs(|encoder| entry.encode_protobuf(encoder));
            }
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
            while let Some(field) = decoder.next_field()? {
                match field {
                    OrderField::OrderId(value) => self.order_id = value,
                    OrderField::Side(value) => self.side = value,
                    OrderField::Venue(value) => self.venue.merge_protobuf(value)?,
                    OrderField::Legs(value) => {
                        let mut entry = OrderLegs::default();
                        entry.merge_protobuf(value)?;
                        self.legs.push(entry);
                    }
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Order.legs` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct OrderLegsDecoder<'a> {
        block: &'a [u8; 4],
        group_allocations: ::gapless_schema::sbe::Group<
            'a,
            OrderLegsAllocationsDecoder<'a>,
        >,
    }
    impl<'a> OrderLegsDecoder<'a> {
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
            Ok(Self { block, group_allocations })
        }
        /// Field `ratio`.
        #[inline]
        #[must_use]
        pub fn ratio(&self) -> u32 {
            let raw = field::<0, 4, 4>(self.block);
            let value = u32::from_le_bytes(*raw);
            value
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
        block: &'a mut [u8; 4],
        tail: &'g mut Tail<'a>,
        stage: &'g mut OrderLegsStage,
    }
    impl<'g, 'a> OrderLegsEncoder<'g, 'a> {
        const TEMPLATE: [u8; 4] = {
            let block = [0; 4];
            block
        };
        /// Field `ratio`.
        #[inline]
        pub fn ratio(&mut self, value: u32) -> &mut Self {
            *field_mut::<0, 4, 4>(self.block) = value.to_le_bytes();
            self
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
        /// Group `allocations`.
        pub allocations: Vec<OrderLegsAllocations>,
    }
    impl Default for OrderLegs {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                ratio: Default::default(),
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
            let mut group = encoder.allocations()?;
            for item in &self.allocations {
                item.encode_into(&mut group.entry()?)?;
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            4 + 4 + self.allocations.len() * 4
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
    }
    impl<'a> OrderLegsAllocationsDecoder<'a> {
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
                    "Order.legs.allocations",
                )?;
            Ok(Self { block })
        }
        /// Field `account`.
        #[inline]
        #[must_use]
        pub fn account(&self) -> u32 {
            let raw = field::<0, 4, 4>(self.block);
            let value = u32::from_le_bytes(*raw);
            value
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
        block: &'a mut [u8; 4],
    }
    impl<'a> OrderLegsAllocationsEncoder<'a> {
        const TEMPLATE: [u8; 4] = {
            let block = [0; 4];
            block
        };
        /// Field `account`.
        #[inline]
        pub fn account(&mut self, value: u32) -> &mut Self {
            *field_mut::<0, 4, 4>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// `Order.legs.allocations` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OrderLegsAllocations {
        /// Field `account`.
        pub account: u32,
    }
    impl Default for OrderLegsAllocations {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                account: Default::default(),
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
            Ok(Self { account: decoder.account() })
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
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            4
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
    }
    /// A field of `Order.legs.allocations` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum OrderLegsAllocationsField {
        /// Field `account`.
        Account(u32),
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
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Order.legs.allocations",
                                &[(1u32, "Order.legs.allocations.account")],
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
            let block = with(block, 0, (4u16).to_le_bytes());
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
            let block = with(block, 0, (4u16).to_le_bytes());
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
            Ok(Self { block, data_text })
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
            self.stage.advance(&mut self.tail, 1u8)?;
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
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct NoteStage {
        reached: u8,
    }
    impl NoteStage {
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
                            0u8 => "Note.text",
                            _ => "Note",
                        },
                    ),
                );
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put([0; 2], "Note.text")?;
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
    }
    impl Default for Note {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                at: Default::default(),
                text: Default::default(),
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
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            8 + 2 + self.text.len()
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
    }
    /// A field of `Note` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum NoteField<'a> {
        /// Field `at`.
        At(u64),
        /// Data `text`.
        Text(&'a str),
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
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Note",
                                &[(1u32, "Note.at"), (2u32, "Note.text")],
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
}
