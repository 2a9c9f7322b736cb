// Generated from a schema (gapless.commands, id 23, version 0). Do not edit: change the schema.

/// A counter
///
/// Schema id 23, version 0.
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
pub mod commands {
    use ::gapless_schema::sbe::block::{
        field, field_mut, from_offset, late_field, with, with_repeated,
    };
    use ::gapless_schema::sbe::{Entry as _, Tail};
    use ::gapless_schema::{DecodeError, EncodeError};
    /// Id of the schema.
    pub const SCHEMA_ID: u16 = 23u16;
    /// Version of the schema.
    pub const SCHEMA_VERSION: u64 = 0u64;
    /// Reads message `AddCommand` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct AddCommandDecoder<'a> {
        block: &'a [u8; 8],
        data_note: &'a [u8],
    }
    impl<'a> AddCommandDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. Bytes after the
        /// message are ignored.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("AddCommand")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("AddCommand", SCHEMA_ID, 1u16)?;
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
                >(block_length, Self::needed_length_at(version), version, "AddCommand")?;
            let data_note = {
                let length = usize::try_from(
                        u16::from_le_bytes(*reader.chunk::<2>("AddCommand.note")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "AddCommand.note")?
            };
            Ok(Self { block, data_note })
        }
        /// Field `amount`.
        #[inline]
        #[must_use]
        pub fn amount(&self) -> u64 {
            let raw = field::<0, 8, 8>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
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
            ::gapless_schema::sbe::text::utf8(self.data_note, "AddCommand.note")
        }
    }
    /// Writes `AddCommand` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct AddCommandEncoder<'a> {
        block: &'a mut [u8; 16],
        tail: Tail<'a>,
        stage: AddCommandStage,
    }
    impl<'a> AddCommandEncoder<'a> {
        const TEMPLATE: [u8; 16] = {
            let block = [0; 16];
            let block = with(block, 0, (8u16).to_le_bytes());
            let block = with(block, 2, (1u16).to_le_bytes());
            let block = with(block, 4, (23u16).to_le_bytes());
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
            let block = tail.chunk::<16>("AddCommand")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: AddCommandStage {
                    reached: 0,
                    ..AddCommandStage::CLOSED
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
        /// Field `amount`.
        #[inline]
        pub fn amount(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 16>(self.block) = value.to_le_bytes();
            self
        }
        /// Data `note`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length, [`EncodeError::Text`] if
        /// it is not in the character encoding, where that is US-ASCII.
        #[inline(always)]
        pub fn note(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 0u8)?;
            if value.len() as u64 > 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "AddCommand.note",
                        value.len(),
                        65534,
                    ),
                );
            }
            self.tail
                .put_data((value.len() as u16).to_le_bytes(), value, "AddCommand.note")?;
            self.stage.reached = 0u8 + 1;
            Ok(self)
        }
    }
    /// Progress of the groups and data, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct AddCommandStage {
        reached: u8,
    }
    impl AddCommandStage {
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
                            0u8 => "AddCommand.note",
                            _ => "AddCommand",
                        },
                    ),
                );
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put([0; 2], "AddCommand.note")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `AddCommand` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AddCommand {
        /// Field `amount`.
        pub amount: u64,
        /// Data `note`.
        pub note: String,
    }
    impl Default for AddCommand {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                amount: Default::default(),
                note: Default::default(),
            }
        }
    }
    impl AddCommand {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &AddCommandDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                amount: decoder.amount(),
                note: ::gapless_schema::sbe::text::utf8(
                        decoder.note(),
                        "AddCommand.note",
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
            encoder: &mut AddCommandEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.amount;
                encoder.amount(*value);
            }
            encoder.note(&self.note)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            8 + 2 + self.note.len()
        }
    }
    /// Appends the fields of `AddCommand` as protobuf.
    #[derive(Debug)]
    pub struct AddCommandProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> AddCommandProtobufEncoder<'a> {
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
            self.writer.finish("AddCommand")
        }
        /// Field `amount`.
        #[inline]
        pub fn amount(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Data `note`.
        #[inline]
        pub fn note(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(2u32, value.as_bytes());
            }
            self
        }
    }
    /// A field of `AddCommand` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum AddCommandField<'a> {
        /// Field `amount`.
        Amount(u64),
        /// Data `note`.
        Note(&'a str),
    }
    /// Goes over the fields of `AddCommand` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct AddCommandProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> AddCommandProtobufDecoder<'a> {
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
        ) -> Result<Option<AddCommandField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<AddCommandField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("AddCommand")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                AddCommandField::Amount(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "AddCommand.amount",
                                    )?,
                                ),
                            ),
                        );
                    }
                    18u32 => {
                        return Ok(
                            Some(AddCommandField::Note(reader.text("AddCommand.note")?)),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "AddCommand",
                                &[(1u32, "AddCommand.amount"), (2u32, "AddCommand.note")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for AddCommandProtobufDecoder<'a> {
        type Item = Result<AddCommandField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl AddCommand {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut AddCommandProtobufEncoder<'_>) {
            {
                let value = &self.amount;
                encoder.amount(*value);
            }
            encoder.note(&self.note);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: AddCommandProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    AddCommandField::Amount(value) => self.amount = value,
                    AddCommandField::Note(value) => self.note = value.to_owned(),
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::MessageSchema for AddCommandDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "AddCommand";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Decode for AddCommandDecoder<'_> {
        type Decoded<'a> = AddCommandDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<AddCommandDecoder<'_>, DecodeError> {
            AddCommandDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::MessageSchema for AddCommandEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "AddCommand";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Direct for AddCommandEncoder<'_> {
        type Encoder<'a> = AddCommandEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<AddCommandEncoder<'_>, EncodeError> {
            AddCommandEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: AddCommandEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for AddCommand {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "AddCommand";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&AddCommandDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = AddCommandEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::MessageSchema for AddCommandProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "AddCommand";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Decode for AddCommandProtobufDecoder<'_> {
        type Decoded<'a> = AddCommandProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<AddCommandProtobufDecoder<'_>, DecodeError> {
            Ok(AddCommandProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::MessageSchema for AddCommandProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "AddCommand";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Direct for AddCommandProtobufEncoder<'_> {
        type Encoder<'a> = AddCommandProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<AddCommandProtobufEncoder<'_>, EncodeError> {
            Ok(AddCommandProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: AddCommandProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for AddCommand {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "AddCommand";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(AddCommandProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = AddCommandProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = AddCommandProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Reads message `AddedEvent` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct AddedEventDecoder<'a> {
        block: &'a [u8; 8],
        data_note: &'a [u8],
    }
    impl<'a> AddedEventDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. Bytes after the
        /// message are ignored.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<8>("AddedEvent")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u16::from_le_bytes(*field::<0, 2, 8>(header))),
                template_id: u64::from(u16::from_le_bytes(*field::<2, 2, 8>(header))),
                schema_id: u64::from(u16::from_le_bytes(*field::<4, 2, 8>(header))),
                version: u64::from(u16::from_le_bytes(*field::<6, 2, 8>(header))),
            };
            header.expect("AddedEvent", SCHEMA_ID, 2u16)?;
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
                >(block_length, Self::needed_length_at(version), version, "AddedEvent")?;
            let data_note = {
                let length = usize::try_from(
                        u16::from_le_bytes(*reader.chunk::<2>("AddedEvent.note")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "AddedEvent.note")?
            };
            Ok(Self { block, data_note })
        }
        /// Field `amount`.
        #[inline]
        #[must_use]
        pub fn amount(&self) -> u64 {
            let raw = field::<0, 8, 8>(self.block);
            let value = u64::from_le_bytes(*raw);
            value
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
            ::gapless_schema::sbe::text::utf8(self.data_note, "AddedEvent.note")
        }
    }
    /// Writes `AddedEvent` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct AddedEventEncoder<'a> {
        block: &'a mut [u8; 16],
        tail: Tail<'a>,
        stage: AddedEventStage,
    }
    impl<'a> AddedEventEncoder<'a> {
        const TEMPLATE: [u8; 16] = {
            let block = [0; 16];
            let block = with(block, 0, (8u16).to_le_bytes());
            let block = with(block, 2, (2u16).to_le_bytes());
            let block = with(block, 4, (23u16).to_le_bytes());
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
            let block = tail.chunk::<16>("AddedEvent")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: AddedEventStage {
                    reached: 0,
                    ..AddedEventStage::CLOSED
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
        /// Field `amount`.
        #[inline]
        pub fn amount(&mut self, value: u64) -> &mut Self {
            *field_mut::<8, 8, 16>(self.block) = value.to_le_bytes();
            self
        }
        /// Data `note`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length, [`EncodeError::Text`] if
        /// it is not in the character encoding, where that is US-ASCII.
        #[inline(always)]
        pub fn note(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 0u8)?;
            if value.len() as u64 > 65534 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "AddedEvent.note",
                        value.len(),
                        65534,
                    ),
                );
            }
            self.tail
                .put_data((value.len() as u16).to_le_bytes(), value, "AddedEvent.note")?;
            self.stage.reached = 0u8 + 1;
            Ok(self)
        }
    }
    /// Progress of the groups and data, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct AddedEventStage {
        reached: u8,
    }
    impl AddedEventStage {
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
                            0u8 => "AddedEvent.note",
                            _ => "AddedEvent",
                        },
                    ),
                );
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put([0; 2], "AddedEvent.note")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `AddedEvent` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct AddedEvent {
        /// Field `amount`.
        pub amount: u64,
        /// Data `note`.
        pub note: String,
    }
    impl Default for AddedEvent {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                amount: Default::default(),
                note: Default::default(),
            }
        }
    }
    impl AddedEvent {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &AddedEventDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                amount: decoder.amount(),
                note: ::gapless_schema::sbe::text::utf8(
                        decoder.note(),
                        "AddedEvent.note",
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
            encoder: &mut AddedEventEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.amount;
                encoder.amount(*value);
            }
            encoder.note(&self.note)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            8 + 2 + self.note.len()
        }
    }
    /// Appends the fields of `AddedEvent` as protobuf.
    #[derive(Debug)]
    pub struct AddedEventProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> AddedEventProtobufEncoder<'a> {
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
            self.writer.finish("AddedEvent")
        }
        /// Field `amount`.
        #[inline]
        pub fn amount(&mut self, value: u64) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Data `note`.
        #[inline]
        pub fn note(&mut self, value: &str) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(2u32, value.as_bytes());
            }
            self
        }
    }
    /// A field of `AddedEvent` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum AddedEventField<'a> {
        /// Field `amount`.
        Amount(u64),
        /// Data `note`.
        Note(&'a str),
    }
    /// Goes over the fields of `AddedEvent` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct AddedEventProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> AddedEventProtobufDecoder<'a> {
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
        ) -> Result<Option<AddedEventField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<AddedEventField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("AddedEvent")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                AddedEventField::Amount(
                                    <u64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "AddedEvent.amount",
                                    )?,
                                ),
                            ),
                        );
                    }
                    18u32 => {
                        return Ok(
                            Some(AddedEventField::Note(reader.text("AddedEvent.note")?)),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "AddedEvent",
                                &[(1u32, "AddedEvent.amount"), (2u32, "AddedEvent.note")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for AddedEventProtobufDecoder<'a> {
        type Item = Result<AddedEventField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl AddedEvent {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut AddedEventProtobufEncoder<'_>) {
            {
                let value = &self.amount;
                encoder.amount(*value);
            }
            encoder.note(&self.note);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// The error in the payload and its place.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: AddedEventProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    AddedEventField::Amount(value) => self.amount = value,
                    AddedEventField::Note(value) => self.note = value.to_owned(),
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::MessageSchema for AddedEventDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "AddedEvent";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Decode for AddedEventDecoder<'_> {
        type Decoded<'a> = AddedEventDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<AddedEventDecoder<'_>, DecodeError> {
            AddedEventDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::MessageSchema for AddedEventEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "AddedEvent";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
    }
    impl ::gapless_schema::Direct for AddedEventEncoder<'_> {
        type Encoder<'a> = AddedEventEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<AddedEventEncoder<'_>, EncodeError> {
            AddedEventEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: AddedEventEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for AddedEvent {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "AddedEvent";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&AddedEventDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            8 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = AddedEventEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::MessageSchema for AddedEventProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "AddedEvent";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Decode for AddedEventProtobufDecoder<'_> {
        type Decoded<'a> = AddedEventProtobufDecoder<'a>;
        #[inline]
        fn decode(payload: &[u8]) -> Result<AddedEventProtobufDecoder<'_>, DecodeError> {
            Ok(AddedEventProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::MessageSchema for AddedEventProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "AddedEvent";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
    }
    impl ::gapless_schema::Direct for AddedEventProtobufEncoder<'_> {
        type Encoder<'a> = AddedEventProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<AddedEventProtobufEncoder<'_>, EncodeError> {
            Ok(AddedEventProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(encoder: AddedEventProtobufEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for AddedEvent {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "AddedEvent";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(AddedEventProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = AddedEventProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = AddedEventProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
}
