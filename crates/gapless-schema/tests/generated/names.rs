// Generated from a schema (gapless.names, id 65535, version 1). Do not edit: change the schema.

/// Messages of `gapless.names`.
///
/// Schema id 65535, version 1.
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
pub mod names {
    use ::gapless_schema::sbe::block::{
        field, field_mut, from_offset, late_field, with, with_repeated,
    };
    use ::gapless_schema::sbe::{Entry as _, Tail};
    use ::gapless_schema::{DecodeError, EncodeError};
    /// Id of the schema.
    pub const SCHEMA_ID: u16 = 65535u16;
    /// Version of the schema.
    pub const SCHEMA_VERSION: u64 = 1u64;
    /// Enum `Kind`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Kind {
        /// Value `Unknown`.
        Unknown_,
        /// Value `N_U_L_L`.
        NULL_,
        /// Value `self`.
        Self_,
        /// Value `Self`.
        Self__,
        /// A number that this version of the schema does not name.
        Unknown(i8),
    }
    impl Kind {
        /// The number that means null where a field is optional.
        pub const NULL: i8 = i8::MIN;
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: i8) -> Self {
            match raw {
                -127i8 => Self::Unknown_,
                -2i8 => Self::NULL_,
                0i8 => Self::Self_,
                1i8 => Self::Self__,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> i8 {
            match self {
                Self::Unknown_ => (-127i8),
                Self::NULL_ => (-2i8),
                Self::Self_ => (0i8),
                Self::Self__ => (1i8),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for Kind {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::Unknown_
        }
    }
    impl ::gapless_schema::protobuf::Value for Kind {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(
                Self::from_raw(
                    ::gapless_schema::protobuf::read::enum_number::<i8>(reader, field)?,
                ),
            )
        }
    }
    /// Enum `tail_Kind`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum TailKind {
        /// Value `great`.
        Great,
        /// A number that this version of the schema does not name.
        Unknown(u32),
    }
    impl TailKind {
        /// The number that means null where a field is optional.
        pub const NULL: u32 = u32::MAX;
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: u32) -> Self {
            match raw {
                4000000000u32 => Self::Great,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> u32 {
            match self {
                Self::Great => (4000000000u32),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for TailKind {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::Great
        }
    }
    impl ::gapless_schema::protobuf::Value for TailKind {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(
                Self::from_raw(
                    <u32 as ::gapless_schema::protobuf::Value>::read(reader, field)?,
                ),
            )
        }
    }
    /// Enum `Signed`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Signed {
        /// Value `least`.
        Least,
        /// A number that this version of the schema does not name.
        Unknown(i64),
    }
    impl Signed {
        /// The number that means null where a field is optional.
        pub const NULL: i64 = i64::MIN;
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: i64) -> Self {
            match raw {
                -9223372036854775807i64 => Self::Least,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> i64 {
            match self {
                Self::Least => (-9223372036854775807i64),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for Signed {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::Least
        }
    }
    impl ::gapless_schema::protobuf::Value for Signed {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(
                Self::from_raw(
                    <i64 as ::gapless_schema::protobuf::Value>::read(reader, field)?,
                ),
            )
        }
    }
    /// Enum `Box`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Box {
        /// Value `minus`.
        Minus,
        /// A number that this version of the schema does not name.
        Unknown(i16),
    }
    impl Box {
        /// The number that means null where a field is optional.
        pub const NULL: i16 = i16::MIN;
        /// The value of a number.
        #[inline]
        #[must_use]
        pub const fn from_raw(raw: i16) -> Self {
            match raw {
                -300i16 => Self::Minus,
                _ => Self::Unknown(raw),
            }
        }
        /// The number on the wire.
        #[inline]
        #[must_use]
        pub const fn raw(self) -> i16 {
            match self {
                Self::Minus => (-300i16),
                Self::Unknown(raw) => raw,
            }
        }
    }
    impl Default for Box {
        /// The first value of the schema.
        #[inline]
        fn default() -> Self {
            Self::Minus
        }
    }
    impl ::gapless_schema::protobuf::Value for Box {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(
                Self::from_raw(
                    ::gapless_schema::protobuf::read::enum_number::<i16>(reader, field)?,
                ),
            )
        }
    }
    /// Set `Vec`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Vec_(u8);
    impl Vec_ {
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
        /// Choice `self`.
        #[inline]
        #[must_use]
        pub const fn self_(self) -> bool {
            self.0 & 1 != 0
        }
        /// With choice `self` set or not.
        #[inline]
        #[must_use]
        pub const fn with_self_(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 1) } else { Self(self.0 & !1) }
        }
        /// Choice `raw`.
        #[inline]
        #[must_use]
        pub const fn raw_(self) -> bool {
            self.0 & 2 != 0
        }
        /// With choice `raw` set or not.
        #[inline]
        #[must_use]
        pub const fn with_raw_(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 2) } else { Self(self.0 & !2) }
        }
        /// Choice `with`.
        #[inline]
        #[must_use]
        pub const fn with(self) -> bool {
            self.0 & 4 != 0
        }
        /// With choice `with` set or not.
        #[inline]
        #[must_use]
        pub const fn with_with(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 4) } else { Self(self.0 & !4) }
        }
        /// Choice `x`.
        #[inline]
        #[must_use]
        pub const fn x(self) -> bool {
            self.0 & 8 != 0
        }
        /// With choice `x` set or not.
        #[inline]
        #[must_use]
        pub const fn with_x(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 8) } else { Self(self.0 & !8) }
        }
        /// Choice `withX`.
        #[inline]
        #[must_use]
        pub const fn with_x_(self) -> bool {
            self.0 & 16 != 0
        }
        /// With choice `withX` set or not.
        #[inline]
        #[must_use]
        pub const fn with_with_x_(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 16) } else { Self(self.0 & !16) }
        }
        /// Choice `_1st`.
        #[inline]
        #[must_use]
        pub const fn _1st(self) -> bool {
            self.0 & 32 != 0
        }
        /// With choice `_1st` set or not.
        #[inline]
        #[must_use]
        pub const fn with_1st(self, chosen: bool) -> Self {
            if chosen { Self(self.0 | 32) } else { Self(self.0 & !32) }
        }
    }
    impl ::gapless_schema::protobuf::Value for Vec_ {
        #[inline(always)]
        fn read(
            reader: &mut ::gapless_schema::protobuf::Reader<'_>,
            field: &'static str,
        ) -> Result<Self, DecodeError> {
            Ok(Self(<u8 as ::gapless_schema::protobuf::Value>::read(reader, field)?))
        }
    }
    /// Reads composite `Tail` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct Tail_Decoder<'a> {
        block: &'a [u8; 1],
    }
    impl<'a> Tail_Decoder<'a> {
        /// Whether its first member has the null value, which makes the whole composite null where it is optional.
        #[inline]
        #[must_use]
        pub fn is_null(&self) -> bool {
            let raw = field::<0, 1, 1>(self.block);
            let value = Kind::from_raw(i8::from_le_bytes(*raw));
            i8::from_le_bytes(*raw) == i8::MIN
        }
        /// Field `first`.
        #[inline]
        #[must_use]
        pub const fn first(&self) -> u8 {
            (1u8)
        }
        /// Field `Kind`.
        #[inline]
        #[must_use]
        pub fn kind(&self) -> Kind {
            let raw = field::<0, 1, 1>(self.block);
            let value = Kind::from_raw(i8::from_le_bytes(*raw));
            value
        }
    }
    /// Writes `Tail` where it will lie.
    #[derive(Debug)]
    pub struct Tail_Encoder<'a> {
        block: &'a mut [u8; 1],
    }
    impl<'a> Tail_Encoder<'a> {
        /// Field `Kind`.
        #[inline]
        pub fn kind(&mut self, value: Kind) -> &mut Self {
            *field_mut::<0, 1, 1>(self.block) = value.raw().to_le_bytes();
            self
        }
    }
    /// `Tail` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Tail_ {
        /// Field `Kind`.
        pub kind: Kind,
    }
    impl Default for Tail_ {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { kind: Default::default() }
        }
    }
    impl Tail_ {
        /// Field `first`.
        pub const FIRST: u8 = (1u8);
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &Tail_Decoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self { kind: decoder.kind() })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut Tail_Encoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.kind;
                encoder.kind(*value);
            }
            Ok(())
        }
    }
    /// Appends the fields of `Tail` as protobuf.
    #[derive(Debug)]
    pub struct Tail_ProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> Tail_ProtobufEncoder<'w, 'a> {
        /// Field `Kind`.
        #[inline]
        pub fn kind(&mut self, value: Kind) -> &mut Self {
            self.writer.uint(2u32, i64::from(value.raw()) as u64);
            self
        }
    }
    /// A field of `Tail` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum Tail_Field {
        /// Field `Kind`.
        Kind(Kind),
    }
    /// Goes over the fields of `Tail` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct Tail_ProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> Tail_ProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<Tail_Field>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<Tail_Field>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Tail")? {
                match key {
                    16u32 => {
                        return Ok(
                            Some(
                                Tail_Field::Kind(
                                    <Kind as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.Kind",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => *reader = reader.other(key, "Tail", &[(2u32, "Tail.Kind")])?,
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for Tail_ProtobufDecoder<'a> {
        type Item = Result<Tail_Field, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Tail_ {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut Tail_ProtobufEncoder<'_, '_>) {
            {
                let value = &self.kind;
                encoder.kind(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: Tail_ProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    Tail_Field::Kind(value) => self.kind = value,
                }
            }
            Ok(())
        }
    }
    /// Reads composite `Entry` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct EntryDecoder<'a> {
        block: &'a [u8; 8],
    }
    impl<'a> EntryDecoder<'a> {
        /// Whether its first member has the null value, which makes the whole composite null where it is optional.
        #[inline]
        #[must_use]
        pub fn is_null(&self) -> bool {
            let raw = field::<0, 8, 8>(self.block);
            let value = i64::from_le_bytes(*raw);
            value == i64::MIN
        }
        /// Field `clone`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn clone_(&self) -> Option<i64> {
            let raw = field::<0, 8, 8>(self.block);
            let value = i64::from_le_bytes(*raw);
            if value == i64::MIN { None } else { Some(value) }
        }
    }
    /// Writes `Entry` where it will lie.
    #[derive(Debug)]
    pub struct EntryEncoder<'a> {
        block: &'a mut [u8; 8],
    }
    impl<'a> EntryEncoder<'a> {
        /// Field `clone`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn clone_(&mut self, value: i64) -> &mut Self {
            *field_mut::<0, 8, 8>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `clone`, to null if there is no value.
        #[inline]
        pub fn clone__or_null(&mut self, value: Option<i64>) -> &mut Self {
            match value {
                Some(value) => self.clone_(value),
                None => self.clone_(i64::MIN),
            }
        }
    }
    /// `Entry` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Entry {
        /// Field `clone`.
        ///
        /// `None` if it is null.
        pub clone_: Option<i64>,
    }
    impl Default for Entry {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { clone_: None }
        }
    }
    impl Entry {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &EntryDecoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self { clone_: decoder.clone_() })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut EntryEncoder<'_>,
        ) -> Result<(), EncodeError> {
            if let Some(value) = &self.clone_ {
                if (*value) == i64::MIN {
                    return Err(EncodeError::Range {
                        field: "Entry.clone",
                        range: "of its type without the null value",
                    });
                }
                encoder.clone_(*value);
            }
            Ok(())
        }
    }
    /// Appends the fields of `Entry` as protobuf.
    #[derive(Debug)]
    pub struct EntryProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> EntryProtobufEncoder<'w, 'a> {
        /// Field `clone`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn clone_(&mut self, value: i64) -> &mut Self {
            self.writer.sint(1u32, i64::from(value));
            self
        }
    }
    /// A field of `Entry` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum EntryField {
        /// Field `clone`.
        Clone(i64),
    }
    /// Goes over the fields of `Entry` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct EntryProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> EntryProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<EntryField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<EntryField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Entry")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                EntryField::Clone(
                                    <i64 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Entry.clone",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => *reader = reader.other(key, "Entry", &[(1u32, "Entry.clone")])?,
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for EntryProtobufDecoder<'a> {
        type Item = Result<EntryField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Entry {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut EntryProtobufEncoder<'_, '_>) {
            if let Some(value) = &self.clone_ {
                encoder.clone_(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: EntryProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    EntryField::Clone(value) => self.clone_ = Some(value),
                }
            }
            Ok(())
        }
    }
    /// Reads composite `tail` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct Tail__Decoder<'a> {
        block: &'a [u8; 12],
    }
    impl<'a> Tail__Decoder<'a> {
        /// Whether its first member has the null value, which makes the whole composite null where it is optional.
        #[inline]
        #[must_use]
        pub fn is_null(&self) -> bool {
            let raw = field::<0, 4, 12>(self.block);
            let value = TailKind::from_raw(u32::from_le_bytes(*raw));
            u32::from_le_bytes(*raw) == u32::MAX
        }
        /// Field `Kind`.
        #[inline]
        #[must_use]
        pub fn kind(&self) -> TailKind {
            let raw = field::<0, 4, 12>(self.block);
            let value = TailKind::from_raw(u32::from_le_bytes(*raw));
            value
        }
        /// Field `Entry`.
        #[inline]
        #[must_use]
        pub fn entry_(&self) -> EntryDecoder<'a> {
            let raw = field::<4, 8, 12>(self.block);
            let value = EntryDecoder { block: raw };
            value
        }
    }
    /// Writes `tail` where it will lie.
    #[derive(Debug)]
    pub struct Tail__Encoder<'a> {
        block: &'a mut [u8; 12],
    }
    impl<'a> Tail__Encoder<'a> {
        /// Field `Kind`.
        #[inline]
        pub fn kind(&mut self, value: TailKind) -> &mut Self {
            *field_mut::<0, 4, 12>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `Entry`.
        #[inline]
        pub fn entry_(&mut self) -> EntryEncoder<'_> {
            EntryEncoder {
                block: field_mut::<4, 8, 12>(self.block),
            }
        }
    }
    /// `tail` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Tail__ {
        /// Field `Kind`.
        pub kind: TailKind,
        /// Field `Entry`.
        pub entry_: Entry,
    }
    impl Default for Tail__ {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                kind: Default::default(),
                entry_: Default::default(),
            }
        }
    }
    impl Tail__ {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(decoder: &Tail__Decoder<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                kind: decoder.kind(),
                entry_: {
                    let item = decoder.entry_();
                    Entry::from_decoder(&item)?
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
            encoder: &mut Tail__Encoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.kind;
                encoder.kind(*value);
            }
            {
                let value = &self.entry_;
                value.encode_into(&mut encoder.entry_())?;
            }
            Ok(())
        }
    }
    /// Appends the fields of `tail` as protobuf.
    #[derive(Debug)]
    pub struct Tail__ProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> Tail__ProtobufEncoder<'w, 'a> {
        /// Field `Kind`.
        #[inline]
        pub fn kind(&mut self, value: TailKind) -> &mut Self {
            self.writer.uint(1u32, u64::from(value.raw()));
            self
        }
        /// Field `Entry`.
        #[inline]
        pub fn entry_(
            &mut self,
            write: impl FnOnce(&mut EntryProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(2u32);
            write(
                &mut EntryProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
    }
    /// A field of `tail` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum Tail__Field<'a> {
        /// Field `Kind`.
        Kind(TailKind),
        /// Field `Entry`.
        Entry(EntryProtobufDecoder<'a>),
    }
    /// Goes over the fields of `tail` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct Tail__ProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> Tail__ProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<Tail__Field<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<Tail__Field<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("tail")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                Tail__Field::Kind(
                                    <TailKind as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "tail.Kind",
                                    )?,
                                ),
                            ),
                        );
                    }
                    18u32 => {
                        return Ok(
                            Some(
                                Tail__Field::Entry(EntryProtobufDecoder {
                                    reader: reader.message("tail.Entry")?,
                                }),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "tail",
                                &[(1u32, "tail.Kind"), (2u32, "tail.Entry")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for Tail__ProtobufDecoder<'a> {
        type Item = Result<Tail__Field<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl Tail__ {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut Tail__ProtobufEncoder<'_, '_>) {
            {
                let value = &self.kind;
                encoder.kind(*value);
            }
            {
                let value = &self.entry_;
                encoder.entry_(|encoder| value.encode_protobuf(encoder));
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: Tail__ProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    Tail__Field::Kind(value) => self.kind = value,
                    Tail__Field::Entry(value) => self.entry_.merge_protobuf(value)?,
                }
            }
            Ok(())
        }
    }
    /// Reads message `Tail` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct TailMessageDecoder<'a> {
        block: &'a [u8; 32],
        acting: &'a [u8],
        version: u64,
        group_decoder: ::gapless_schema::sbe::Group<'a, TailMessageDecoder_Decoder<'a>>,
        group_stage: ::gapless_schema::sbe::Group<'a, TailMessageStage_Decoder<'a>>,
        group_group: ::gapless_schema::sbe::Group<'a, TailMessageGroup_Decoder<'a>>,
        data_dimension: &'a [u8],
        data_block_length: &'a [u8],
        data_length: &'a [u8],
    }
    impl<'a> TailMessageDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<28>("Tail")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u32::from_le_bytes(*field::<24, 4, 28>(header))),
                template_id: u64::from(u32::from_le_bytes(*field::<17, 4, 28>(header))),
                schema_id: u64::from(u64::from_le_bytes(*field::<9, 8, 28>(header))),
                version: u64::from(u64::from_le_bytes(*field::<1, 8, 28>(header))),
            };
            header.expect("Tail", SCHEMA_ID, 1u16)?;
            Self::parse_body(&mut reader, header.block_length, header.version)
        }
        #[inline]
        const fn needed_length_at(version: u64) -> usize {
            if version >= 1 { 32 } else { 32 }
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
                >(block_length, Self::needed_length_at(version), version, "Tail")?;
            let group_decoder = {
                let dimension = reader.chunk::<14>("Tail.decoder")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u32::from_le_bytes(*field::<10, 4, 14>(dimension))),
                    u64::from(u64::from_le_bytes(*field::<0, 8, 14>(dimension))),
                    version,
                )?
            };
            let group_stage = {
                let dimension = reader.chunk::<14>("Tail.stage")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u32::from_le_bytes(*field::<10, 4, 14>(dimension))),
                    u64::from(u64::from_le_bytes(*field::<0, 8, 14>(dimension))),
                    version,
                )?
            };
            let group_group = {
                let dimension = reader.chunk::<14>("Tail.group")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    u64::from(u32::from_le_bytes(*field::<10, 4, 14>(dimension))),
                    u64::from(u64::from_le_bytes(*field::<0, 8, 14>(dimension))),
                    version,
                )?
            };
            let data_dimension = {
                let length = usize::try_from(
                        u64::from_le_bytes(*reader.chunk::<8>("Tail.dimension")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Tail.dimension")?
            };
            let data_block_length = {
                let length = usize::try_from(
                        u64::from_le_bytes(*reader.chunk::<8>("Tail.block_length")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Tail.block_length")?
            };
            let data_length = if version < 1 {
                &[]
            } else {
                {
                    let length = usize::try_from(
                            u64::from_le_bytes(*reader.chunk::<8>("Tail.length")?),
                        )
                        .unwrap_or(usize::MAX);
                    reader.slice(length, "Tail.length")?
                }
            };
            Ok(Self {
                block,
                acting,
                version,
                group_decoder,
                group_stage,
                group_group,
                data_dimension,
                data_block_length,
                data_length,
            })
        }
        /// Field `block`.
        #[inline]
        #[must_use]
        pub fn block(&self) -> u8 {
            let raw = field::<2, 1, 32>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `version`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn version(&self) -> Option<u8> {
            let raw = late_field::<1>(self.acting, self.version, 1, 3)?;
            let value = u8::from_le_bytes(*raw);
            if value == u8::MAX { None } else { Some(value) }
        }
        /// Field `acting`.
        #[inline]
        #[must_use]
        pub fn acting(&self) -> Tail_Decoder<'a> {
            let raw = field::<4, 1, 32>(self.block);
            let value = Tail_Decoder { block: raw };
            value
        }
        /// Field `position`.
        #[inline]
        #[must_use]
        pub fn position(&self) -> Tail__Decoder<'a> {
            let raw = field::<5, 12, 32>(self.block);
            let value = Tail__Decoder { block: raw };
            value
        }
        /// Field `finish`.
        #[inline]
        #[must_use]
        pub fn finish_(&self) -> Vec_ {
            let raw = field::<17, 1, 32>(self.block);
            let value = Vec_::from_raw(u8::from_le_bytes(*raw));
            value
        }
        /// Field `reader`.
        #[inline]
        #[must_use]
        pub fn reader(&self) -> Signed {
            let raw = field::<18, 8, 32>(self.block);
            let value = Signed::from_raw(i64::from_le_bytes(*raw));
            value
        }
        /// Field `encoder`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn encoder(&self) -> Option<Box> {
            let raw = field::<26, 2, 32>(self.block);
            let value = Box::from_raw(i16::from_le_bytes(*raw));
            if i16::from_le_bytes(*raw) == i16::MIN { None } else { Some(value) }
        }
        /// Field `value`.
        ///
        /// `None` if it is null.
        #[inline]
        #[must_use]
        pub fn value(&self) -> Option<u8> {
            let raw = field::<28, 1, 32>(self.block);
            let value = u8::from_le_bytes(*raw);
            if value == u8::MAX { None } else { Some(value) }
        }
        /// Field `value_str`.
        #[inline]
        #[must_use]
        pub fn value_str_(&self) -> u8 {
            let raw = field::<29, 1, 32>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `value_or_null`.
        #[inline]
        #[must_use]
        pub fn value_or_null_(&self) -> u8 {
            let raw = field::<30, 1, 32>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Field `async`.
        #[inline]
        #[must_use]
        pub fn async_(&self) -> u8 {
            let raw = field::<31, 1, 32>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Group `decoder`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn decoder(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, TailMessageDecoder_Decoder<'a>> {
            self.group_decoder
        }
        /// Group `stage`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn stage(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, TailMessageStage_Decoder<'a>> {
            self.group_stage
        }
        /// Group `group`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn group(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, TailMessageGroup_Decoder<'a>> {
            self.group_group
        }
        /// Data `dimension`.
        #[inline]
        #[must_use]
        pub const fn dimension(&self) -> &'a [u8] {
            self.data_dimension
        }
        /// Data `block_length`.
        #[inline]
        #[must_use]
        pub const fn block_length(&self) -> &'a [u8] {
            self.data_block_length
        }
        /// Data `length`.
        ///
        /// Since version 1.
        #[inline]
        #[must_use]
        pub const fn length(&self) -> &'a [u8] {
            self.data_length
        }
    }
    /// Writes `Tail` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct TailMessageEncoder<'a> {
        block: &'a mut [u8; 60],
        tail: Tail<'a>,
        stage: TailMessageStage,
    }
    impl<'a> TailMessageEncoder<'a> {
        const TEMPLATE: [u8; 60] = {
            let block = [0; 60];
            let block = with(block, 24, (32u32).to_le_bytes());
            let block = with(block, 17, (1u32).to_le_bytes());
            let block = with(block, 9, (65535u64).to_le_bytes());
            let block = with(block, 1, (1u64).to_le_bytes());
            let block = with(block, 31, u8::MAX.to_le_bytes());
            let block = with(block, 37, i64::MIN.to_le_bytes());
            let block = with(block, 54, i16::MIN.to_le_bytes());
            let block = with(block, 56, u8::MAX.to_le_bytes());
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
            let block = tail.chunk::<60>("Tail")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: TailMessageStage {
                    reached: 0,
                    ..TailMessageStage::CLOSED
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
        /// Field `block`.
        #[inline]
        pub fn block(&mut self, value: u8) -> &mut Self {
            *field_mut::<30, 1, 60>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `version`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn version(&mut self, value: u8) -> &mut Self {
            *field_mut::<31, 1, 60>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `version`, to null if there is no value.
        #[inline]
        pub fn version_or_null(&mut self, value: Option<u8>) -> &mut Self {
            match value {
                Some(value) => self.version(value),
                None => self.version(u8::MAX),
            }
        }
        /// Field `acting`.
        #[inline]
        pub fn acting(&mut self) -> Tail_Encoder<'_> {
            Tail_Encoder {
                block: field_mut::<32, 1, 60>(self.block),
            }
        }
        /// Field `position`.
        #[inline]
        pub fn position(&mut self) -> Tail__Encoder<'_> {
            Tail__Encoder {
                block: field_mut::<33, 12, 60>(self.block),
            }
        }
        /// Field `finish`.
        #[inline]
        pub fn finish_(&mut self, value: Vec_) -> &mut Self {
            *field_mut::<45, 1, 60>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `reader`.
        #[inline]
        pub fn reader(&mut self, value: Signed) -> &mut Self {
            *field_mut::<46, 8, 60>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Field `encoder`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn encoder(&mut self, value: Box) -> &mut Self {
            *field_mut::<54, 2, 60>(self.block) = value.raw().to_le_bytes();
            self
        }
        /// Sets field `encoder`, to null if there is no value.
        #[inline]
        pub fn encoder_or_null(&mut self, value: Option<Box>) -> &mut Self {
            match value {
                Some(value) => self.encoder(value),
                None => self.encoder(Box::from_raw(i16::MIN)),
            }
        }
        /// Field `value`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn value(&mut self, value: u8) -> &mut Self {
            *field_mut::<56, 1, 60>(self.block) = value.to_le_bytes();
            self
        }
        /// Sets field `value`, to null if there is no value.
        #[inline]
        pub fn value_or_null(&mut self, value: Option<u8>) -> &mut Self {
            match value {
                Some(value) => self.value(value),
                None => self.value(u8::MAX),
            }
        }
        /// Field `value_str`.
        #[inline]
        pub fn value_str_(&mut self, value: u8) -> &mut Self {
            *field_mut::<57, 1, 60>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `value_or_null`.
        #[inline]
        pub fn value_or_null_(&mut self, value: u8) -> &mut Self {
            *field_mut::<58, 1, 60>(self.block) = value.to_le_bytes();
            self
        }
        /// Field `async`.
        #[inline]
        pub fn async_(&mut self, value: u8) -> &mut Self {
            *field_mut::<59, 1, 60>(self.block) = value.to_le_bytes();
            self
        }
        /// Begins group `decoder`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn decoder(
            &mut self,
        ) -> Result<TailMessageDecoder_GroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Tail.decoder")?;
            *dimension = TailMessageDecoder_GroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(TailMessageDecoder_GroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
                stage: &mut self.stage.child_decoder,
            })
        }
        /// Begins group `stage`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn stage(
            &mut self,
        ) -> Result<TailMessageStage_GroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 1u8)?;
            let dimension = self.tail.chunk("Tail.stage")?;
            *dimension = TailMessageStage_GroupEncoder::EMPTY;
            self.stage.reached = 1u8 + 1;
            Ok(TailMessageStage_GroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
        /// Begins group `group`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn group(
            &mut self,
        ) -> Result<TailMessageGroup_GroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 2u8)?;
            let dimension = self.tail.chunk("Tail.group")?;
            *dimension = TailMessageGroup_GroupEncoder::EMPTY;
            self.stage.reached = 2u8 + 1;
            Ok(TailMessageGroup_GroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
        /// Data `dimension`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn dimension(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 3u8)?;
            if value.len() as u64 > 18446744073709551614 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Tail.dimension",
                        value.len(),
                        18446744073709551614,
                    ),
                );
            }
            self.tail
                .put_data((value.len() as u64).to_le_bytes(), value, "Tail.dimension")?;
            self.stage.reached = 3u8 + 1;
            Ok(self)
        }
        /// Data `block_length`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn block_length(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 4u8)?;
            if value.len() as u64 > 18446744073709551614 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Tail.block_length",
                        value.len(),
                        18446744073709551614,
                    ),
                );
            }
            self.tail
                .put_data(
                    (value.len() as u64).to_le_bytes(),
                    value,
                    "Tail.block_length",
                )?;
            self.stage.reached = 4u8 + 1;
            Ok(self)
        }
        /// Data `length`.
        ///
        /// Since version 1.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn length(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 5u8)?;
            if value.len() as u64 > 18446744073709551614 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Tail.length",
                        value.len(),
                        18446744073709551614,
                    ),
                );
            }
            self.tail
                .put_data((value.len() as u64).to_le_bytes(), value, "Tail.length")?;
            self.stage.reached = 5u8 + 1;
            Ok(self)
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct TailMessageStage {
        reached: u8,
        child_decoder: TailMessageDecoder_Stage,
    }
    impl TailMessageStage {
        const CLOSED: Self = Self {
            reached: 6u8,
            child_decoder: TailMessageDecoder_Stage::CLOSED,
        };
        /// Whether `member` is the next to be written and nothing before it is open.
        #[inline(always)]
        const fn is_at(&self, member: u8) -> bool {
            self.reached == member
                && (self.reached != 1u8 || self.child_decoder.is_at(2u8))
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
                            0u8 => "Tail.decoder",
                            1u8 => "Tail.stage",
                            2u8 => "Tail.group",
                            3u8 => "Tail.dimension",
                            4u8 => "Tail.block_length",
                            5u8 => "Tail.length",
                            _ => "Tail",
                        },
                    ),
                );
            }
            if self.reached == 1u8 {
                self.child_decoder.advance(tail, 2u8)?;
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(TailMessageDecoder_GroupEncoder::EMPTY, "Tail.decoder")?;
            }
            if self.reached <= 1u8 && 1u8 < member {
                tail.put(TailMessageStage_GroupEncoder::EMPTY, "Tail.stage")?;
            }
            if self.reached <= 2u8 && 2u8 < member {
                tail.put(TailMessageGroup_GroupEncoder::EMPTY, "Tail.group")?;
            }
            if self.reached <= 3u8 && 3u8 < member {
                tail.put([0; 8], "Tail.dimension")?;
            }
            if self.reached <= 4u8 && 4u8 < member {
                tail.put([0; 8], "Tail.block_length")?;
            }
            if self.reached <= 5u8 && 5u8 < member {
                tail.put([0; 8], "Tail.length")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Tail` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TailMessage {
        /// Field `block`.
        pub block: u8,
        /// Field `version`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        pub version: Option<u8>,
        /// Field `acting`.
        pub acting: Tail_,
        /// Field `position`.
        pub position: Tail__,
        /// Field `finish`.
        pub finish_: Vec_,
        /// Field `reader`.
        pub reader: Signed,
        /// Field `encoder`.
        ///
        /// `None` if it is null.
        pub encoder: Option<Box>,
        /// Field `value`.
        ///
        /// `None` if it is null.
        pub value: Option<u8>,
        /// Field `value_str`.
        pub value_str_: u8,
        /// Field `value_or_null`.
        pub value_or_null_: u8,
        /// Field `async`.
        pub async_: u8,
        /// Group `decoder`.
        pub decoder: Vec<TailMessageDecoder_>,
        /// Group `stage`.
        pub stage: Vec<Signed>,
        /// Group `group`.
        pub group: Vec<Box>,
        /// Data `dimension`.
        pub dimension: Vec<u8>,
        /// Data `block_length`.
        pub block_length: Vec<u8>,
        /// Data `length`.
        ///
        /// Since version 1.
        pub length: Vec<u8>,
    }
    impl Default for TailMessage {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                block: Default::default(),
                version: None,
                acting: Default::default(),
                position: Default::default(),
                finish_: Default::default(),
                reader: Default::default(),
                encoder: None,
                value: None,
                value_str_: Default::default(),
                value_or_null_: Default::default(),
                async_: Default::default(),
                decoder: Default::default(),
                stage: Default::default(),
                group: Default::default(),
                dimension: Default::default(),
                block_length: Default::default(),
                length: Default::default(),
            }
        }
    }
    impl TailMessage {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &TailMessageDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                block: decoder.block(),
                version: decoder.version(),
                acting: {
                    let item = decoder.acting();
                    Tail_::from_decoder(&item)?
                },
                position: {
                    let item = decoder.position();
                    Tail__::from_decoder(&item)?
                },
                finish_: decoder.finish_(),
                reader: decoder.reader(),
                encoder: decoder.encoder(),
                value: decoder.value(),
                value_str_: decoder.value_str_(),
                value_or_null_: decoder.value_or_null_(),
                async_: decoder.async_(),
                decoder: {
                    let entries = decoder.decoder();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(TailMessageDecoder_::from_decoder(&entry)?);
                    }
                    list
                },
                stage: {
                    let entries = decoder.stage();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(entry.value());
                    }
                    list
                },
                group: {
                    let entries = decoder.group();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(entry.value());
                    }
                    list
                },
                dimension: decoder.dimension().to_vec(),
                block_length: decoder.block_length().to_vec(),
                length: decoder.length().to_vec(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut TailMessageEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.block;
                encoder.block(*value);
            }
            if let Some(value) = &self.version {
                if (*value) == u8::MAX {
                    return Err(EncodeError::Range {
                        field: "Tail.version",
                        range: "of its type without the null value",
                    });
                }
                encoder.version(*value);
            }
            {
                let value = &self.acting;
                value.encode_into(&mut encoder.acting())?;
            }
            {
                let value = &self.position;
                value.encode_into(&mut encoder.position())?;
            }
            {
                let value = &self.finish_;
                encoder.finish_(*value);
            }
            {
                let value = &self.reader;
                encoder.reader(*value);
            }
            if let Some(value) = &self.encoder {
                if (*value).raw() == i16::MIN {
                    return Err(EncodeError::Range {
                        field: "Tail.encoder",
                        range: "of its type without the null value",
                    });
                }
                encoder.encoder(*value);
            }
            if let Some(value) = &self.value {
                if (*value) == u8::MAX {
                    return Err(EncodeError::Range {
                        field: "Tail.value",
                        range: "of its type without the null value",
                    });
                }
                encoder.value(*value);
            }
            {
                let value = &self.value_str_;
                encoder.value_str_(*value);
            }
            {
                let value = &self.value_or_null_;
                encoder.value_or_null_(*value);
            }
            {
                let value = &self.async_;
                encoder.async_(*value);
            }
            let mut group = encoder.decoder()?;
            for item in &self.decoder {
                item.encode_into(&mut group.entry()?)?;
            }
            let mut group = encoder.stage()?;
            for item in &self.stage {
                group.entry()?.value(*item);
            }
            let mut group = encoder.group()?;
            for item in &self.group {
                group.entry()?.value(*item);
            }
            encoder.dimension(&self.dimension)?;
            encoder.block_length(&self.block_length)?;
            encoder.length(&self.length)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            32 + 14
                + self.decoder.iter().map(|entry| entry.sbe_body_length()).sum::<usize>()
                + 14 + self.stage.len() * 8 + 14 + self.group.len() * 2 + 8
                + self.dimension.len() + 8 + self.block_length.len() + 8
                + self.length.len()
        }
    }
    /// Appends the fields of `Tail` as protobuf.
    #[derive(Debug)]
    pub struct TailMessageProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> TailMessageProtobufEncoder<'a> {
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
            self.writer.finish("Tail")
        }
        /// Field `block`.
        #[inline]
        pub fn block(&mut self, value: u8) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Field `version`.
        ///
        /// Since version 1.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn version(&mut self, value: u8) -> &mut Self {
            self.writer.uint(2u32, u64::from(value));
            self
        }
        /// Field `acting`.
        #[inline]
        pub fn acting(
            &mut self,
            write: impl FnOnce(&mut Tail_ProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(3u32);
            write(
                &mut Tail_ProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Field `position`.
        #[inline]
        pub fn position(
            &mut self,
            write: impl FnOnce(&mut Tail__ProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(4u32);
            write(
                &mut Tail__ProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Field `finish`.
        #[inline]
        pub fn finish_(&mut self, value: Vec_) -> &mut Self {
            self.writer.uint(5u32, u64::from(value.raw()));
            self
        }
        /// Field `reader`.
        #[inline]
        pub fn reader(&mut self, value: Signed) -> &mut Self {
            self.writer.uint(6u32, ((value.raw() << 1) ^ (value.raw() >> 63)) as u64);
            self
        }
        /// Field `encoder`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn encoder(&mut self, value: Box) -> &mut Self {
            self.writer.uint(7u32, i64::from(value.raw()) as u64);
            self
        }
        /// Field `value`.
        ///
        /// `None` if it is null.
        #[inline]
        pub fn value(&mut self, value: u8) -> &mut Self {
            self.writer.uint(8u32, u64::from(value));
            self
        }
        /// Field `value_str`.
        #[inline]
        pub fn value_str_(&mut self, value: u8) -> &mut Self {
            self.writer.uint(9u32, u64::from(value));
            self
        }
        /// Field `value_or_null`.
        #[inline]
        pub fn value_or_null_(&mut self, value: u8) -> &mut Self {
            self.writer.uint(10u32, u64::from(value));
            self
        }
        /// Field `async`.
        #[inline]
        pub fn async_(&mut self, value: u8) -> &mut Self {
            self.writer.uint(11u32, u64::from(value));
            self
        }
        /// Group `decoder`: appends one entry.
        #[inline]
        pub fn decoder(
            &mut self,
            write: impl FnOnce(&mut TailMessageDecoder_ProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(12u32);
            write(
                &mut TailMessageDecoder_ProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Group `stage`: all of its values.
        #[inline]
        pub fn stage(&mut self, values: impl IntoIterator<Item = Signed>) -> &mut Self {
            let mut values = values.into_iter().peekable();
            if values.peek().is_some() {
                let mark = self.writer.open(13u32);
                for item in values {
                    self.writer
                        .packed_uint(((item.raw() << 1) ^ (item.raw() >> 63)) as u64);
                }
                self.writer.close(mark);
            }
            self
        }
        /// Group `group`: all of its values.
        #[inline]
        pub fn group(&mut self, values: impl IntoIterator<Item = Box>) -> &mut Self {
            let mut values = values.into_iter().peekable();
            if values.peek().is_some() {
                let mark = self.writer.open(14u32);
                for item in values {
                    self.writer.packed_uint(i64::from(item.raw()) as u64);
                }
                self.writer.close(mark);
            }
            self
        }
        /// Data `dimension`.
        #[inline]
        pub fn dimension(&mut self, value: &[u8]) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(15u32, value);
            }
            self
        }
        /// Data `block_length`.
        #[inline]
        pub fn block_length(&mut self, value: &[u8]) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(16u32, value);
            }
            self
        }
        /// Data `length`.
        ///
        /// Since version 1.
        #[inline]
        pub fn length(&mut self, value: &[u8]) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(17u32, value);
            }
            self
        }
    }
    /// A field of `Tail` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum TailMessageField<'a> {
        /// Field `block`.
        Block(u8),
        /// Field `version`.
        ///
        /// Since version 1.
        Version(u8),
        /// Field `acting`.
        Acting(Tail_ProtobufDecoder<'a>),
        /// Field `position`.
        Position(Tail__ProtobufDecoder<'a>),
        /// Field `finish`.
        Finish(Vec_),
        /// Field `reader`.
        Reader(Signed),
        /// Field `encoder`.
        Encoder(Box),
        /// Field `value`.
        Value(u8),
        /// Field `value_str`.
        ValueStr(u8),
        /// Field `value_or_null`.
        ValueOrNull(u8),
        /// Field `async`.
        Async(u8),
        /// Group `decoder`: one entry.
        Decoder(TailMessageDecoder_ProtobufDecoder<'a>),
        /// Group `stage`: values.
        Stage(::gapless_schema::protobuf::Packed<'a, Signed>),
        /// Group `group`: values.
        Group(::gapless_schema::protobuf::Packed<'a, Box>),
        /// Data `dimension`.
        Dimension(&'a [u8]),
        /// Data `block_length`.
        BlockLength(&'a [u8]),
        /// Data `length`.
        ///
        /// Since version 1.
        Length(&'a [u8]),
    }
    /// Goes over the fields of `Tail` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct TailMessageProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> TailMessageProtobufDecoder<'a> {
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
        ) -> Result<Option<TailMessageField<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<TailMessageField<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Tail")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                TailMessageField::Block(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.block",
                                    )?,
                                ),
                            ),
                        );
                    }
                    16u32 => {
                        return Ok(
                            Some(
                                TailMessageField::Version(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.version",
                                    )?,
                                ),
                            ),
                        );
                    }
                    26u32 => {
                        return Ok(
                            Some(
                                TailMessageField::Acting(Tail_ProtobufDecoder {
                                    reader: reader.message("Tail.acting")?,
                                }),
                            ),
                        );
                    }
                    34u32 => {
                        return Ok(
                            Some(
                                TailMessageField::Position(Tail__ProtobufDecoder {
                                    reader: reader.message("Tail.position")?,
                                }),
                            ),
                        );
                    }
                    40u32 => {
                        return Ok(
                            Some(
                                TailMessageField::Finish(
                                    <Vec_ as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.finish",
                                    )?,
                                ),
                            ),
                        );
                    }
                    48u32 => {
                        return Ok(
                            Some(
                                TailMessageField::Reader(
                                    <Signed as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.reader",
                                    )?,
                                ),
                            ),
                        );
                    }
                    56u32 => {
                        return Ok(
                            Some(
                                TailMessageField::Encoder(
                                    <Box as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.encoder",
                                    )?,
                                ),
                            ),
                        );
                    }
                    64u32 => {
                        return Ok(
                            Some(
                                TailMessageField::Value(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.value",
                                    )?,
                                ),
                            ),
                        );
                    }
                    72u32 => {
                        return Ok(
                            Some(
                                TailMessageField::ValueStr(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.value_str",
                                    )?,
                                ),
                            ),
                        );
                    }
                    80u32 => {
                        return Ok(
                            Some(
                                TailMessageField::ValueOrNull(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.value_or_null",
                                    )?,
                                ),
                            ),
                        );
                    }
                    88u32 => {
                        return Ok(
                            Some(
                                TailMessageField::Async(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.async",
                                    )?,
                                ),
                            ),
                        );
                    }
                    98u32 => {
                        return Ok(
                            Some(
                                TailMessageField::Decoder(TailMessageDecoder_ProtobufDecoder {
                                    reader: reader.message("Tail.decoder")?,
                                }),
                            ),
                        );
                    }
                    106u32 => {
                        return Ok(
                            Some(TailMessageField::Stage(reader.packed("Tail.stage")?)),
                        );
                    }
                    104u32 => {
                        return Ok(
                            Some(TailMessageField::Stage(reader.unpacked("Tail.stage")?)),
                        );
                    }
                    114u32 => {
                        return Ok(
                            Some(TailMessageField::Group(reader.packed("Tail.group")?)),
                        );
                    }
                    112u32 => {
                        return Ok(
                            Some(TailMessageField::Group(reader.unpacked("Tail.group")?)),
                        );
                    }
                    122u32 => {
                        return Ok(
                            Some(
                                TailMessageField::Dimension(reader.bytes("Tail.dimension")?),
                            ),
                        );
                    }
                    130u32 => {
                        return Ok(
                            Some(
                                TailMessageField::BlockLength(
                                    reader.bytes("Tail.block_length")?,
                                ),
                            ),
                        );
                    }
                    138u32 => {
                        return Ok(
                            Some(TailMessageField::Length(reader.bytes("Tail.length")?)),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Tail",
                                &[
                                    (1u32, "Tail.block"),
                                    (2u32, "Tail.version"),
                                    (3u32, "Tail.acting"),
                                    (4u32, "Tail.position"),
                                    (5u32, "Tail.finish"),
                                    (6u32, "Tail.reader"),
                                    (7u32, "Tail.encoder"),
                                    (8u32, "Tail.value"),
                                    (9u32, "Tail.value_str"),
                                    (10u32, "Tail.value_or_null"),
                                    (11u32, "Tail.async"),
                                    (12u32, "Tail.decoder"),
                                    (13u32, "Tail.stage"),
                                    (14u32, "Tail.group"),
                                    (15u32, "Tail.dimension"),
                                    (16u32, "Tail.block_length"),
                                    (17u32, "Tail.length"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for TailMessageProtobufDecoder<'a> {
        type Item = Result<TailMessageField<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl TailMessage {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut TailMessageProtobufEncoder<'_>) {
            {
                let value = &self.block;
                encoder.block(*value);
            }
            if let Some(value) = &self.version {
                encoder.version(*value);
            }
            {
                let value = &self.acting;
                encoder.acting(|encoder| value.encode_protobuf(encoder));
            }
            {
                let value = &self.position;
                encoder.position(|encoder| value.encode_protobuf(encoder));
            }
            {
                let value = &self.finish_;
                encoder.finish_(*value);
            }
            {
                let value = &self.reader;
                encoder.reader(*value);
            }
            if let Some(value) = &self.encoder {
                encoder.encoder(*value);
            }
            if let Some(value) = &self.value {
                encoder.value(*value);
            }
            {
                let value = &self.value_str_;
                encoder.value_str_(*value);
            }
            {
                let value = &self.value_or_null_;
                encoder.value_or_null_(*value);
            }
            {
                let value = &self.async_;
                encoder.async_(*value);
            }
            for entry in &self.decoder {
                encoder.decoder(|encoder| entry.encode_protobuf(encoder));
            }
            encoder.stage(self.stage.iter().copied());
            encoder.group(self.group.iter().copied());
            encoder.dimension(&self.dimension);
            encoder.block_length(&self.block_length);
            encoder.length(&self.length);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: TailMessageProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    TailMessageField::Block(value) => self.block = value,
                    TailMessageField::Version(value) => self.version = Some(value),
                    TailMessageField::Acting(value) => self.acting.merge_protobuf(value)?,
                    TailMessageField::Position(value) => {
                        self.position.merge_protobuf(value)?
                    }
                    TailMessageField::Finish(value) => self.finish_ = value,
                    TailMessageField::Reader(value) => self.reader = value,
                    TailMessageField::Encoder(value) => self.encoder = Some(value),
                    TailMessageField::Value(value) => self.value = Some(value),
                    TailMessageField::ValueStr(value) => self.value_str_ = value,
                    TailMessageField::ValueOrNull(value) => self.value_or_null_ = value,
                    TailMessageField::Async(value) => self.async_ = value,
                    TailMessageField::Decoder(value) => {
                        let mut entry = TailMessageDecoder_::default();
                        entry.merge_protobuf(value)?;
                        self.decoder.push(entry);
                    }
                    TailMessageField::Stage(value) => {
                        for item in value {
                            self.stage.push(item?);
                        }
                    }
                    TailMessageField::Group(value) => {
                        for item in value {
                            self.group.push(item?);
                        }
                    }
                    TailMessageField::Dimension(value) => {
                        self.dimension = value.to_owned();
                    }
                    TailMessageField::BlockLength(value) => {
                        self.block_length = value.to_owned();
                    }
                    TailMessageField::Length(value) => self.length = value.to_owned(),
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Tail.decoder` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct TailMessageDecoder_Decoder<'a> {
        block: &'a [u8; 1],
        group_tail: ::gapless_schema::sbe::Group<'a, TailMessageDecoderTailDecoder<'a>>,
        data_stage: &'a [u8],
    }
    impl<'a> TailMessageDecoder_Decoder<'a> {
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
                    "Tail.decoder",
                )?;
            let group_tail = {
                let dimension = reader.chunk::<1>("Tail.decoder.tail")?;
                ::gapless_schema::sbe::Group::parse(
                    reader,
                    4,
                    u64::from(u8::from_le_bytes(*field::<0, 1, 1>(dimension))),
                    version,
                )?
            };
            let data_stage = {
                let length = usize::try_from(
                        u64::from_le_bytes(*reader.chunk::<8>("Tail.decoder.stage")?),
                    )
                    .unwrap_or(usize::MAX);
                reader.slice(length, "Tail.decoder.stage")?
            };
            Ok(Self {
                block,
                group_tail,
                data_stage,
            })
        }
        /// Field `field`.
        #[inline]
        #[must_use]
        pub fn field(&self) -> u8 {
            let raw = field::<0, 1, 1>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
        /// Group `tail`: an iterator over its entries.
        #[inline]
        #[must_use]
        pub const fn tail(
            &self,
        ) -> ::gapless_schema::sbe::Group<'a, TailMessageDecoderTailDecoder<'a>> {
            self.group_tail
        }
        /// Data `stage`.
        #[inline]
        #[must_use]
        pub const fn stage(&self) -> &'a [u8] {
            self.data_stage
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for TailMessageDecoder_Decoder<'a> {
        const NAME: &'static str = "Tail.decoder";
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
    /// Writes `Tail.decoder` where it will lie.
    #[derive(Debug)]
    pub struct TailMessageDecoder_Encoder<'g, 'a> {
        block: &'a mut [u8; 1],
        tail: &'g mut Tail<'a>,
        stage: &'g mut TailMessageDecoder_Stage,
    }
    impl<'g, 'a> TailMessageDecoder_Encoder<'g, 'a> {
        const TEMPLATE: [u8; 1] = {
            let block = [0; 1];
            block
        };
        /// Field `field`.
        #[inline]
        pub fn field(&mut self, value: u8) -> &mut Self {
            *field_mut::<0, 1, 1>(self.block) = value.to_le_bytes();
            self
        }
        /// Begins group `tail`, without entries yet.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
        #[inline(always)]
        pub fn tail(
            &mut self,
        ) -> Result<TailMessageDecoderTailGroupEncoder<'_, 'a>, EncodeError> {
            self.stage.advance(&mut self.tail, 0u8)?;
            let dimension = self.tail.chunk("Tail.decoder.tail")?;
            *dimension = TailMessageDecoderTailGroupEncoder::EMPTY;
            self.stage.reached = 0u8 + 1;
            Ok(TailMessageDecoderTailGroupEncoder {
                dimension,
                tail: &mut self.tail,
                count: 0,
            })
        }
        /// Data `stage`.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
        /// [`EncodeError::Length`] if its length field cannot express its length.
        #[inline(always)]
        pub fn stage(
            &mut self,
            value: impl AsRef<[u8]>,
        ) -> Result<&mut Self, EncodeError> {
            let value = value.as_ref();
            self.stage.advance(&mut self.tail, 1u8)?;
            if value.len() as u64 > 18446744073709551614 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Tail.decoder.stage",
                        value.len(),
                        18446744073709551614,
                    ),
                );
            }
            self.tail
                .put_data(
                    (value.len() as u64).to_le_bytes(),
                    value,
                    "Tail.decoder.stage",
                )?;
            self.stage.reached = 1u8 + 1;
            Ok(self)
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct TailMessageDecoder_Stage {
        reached: u8,
    }
    impl TailMessageDecoder_Stage {
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
                            0u8 => "Tail.decoder.tail",
                            1u8 => "Tail.decoder.stage",
                            _ => "Tail.decoder",
                        },
                    ),
                );
            }
            if self.reached <= 0u8 && 0u8 < member {
                tail.put(
                    TailMessageDecoderTailGroupEncoder::EMPTY,
                    "Tail.decoder.tail",
                )?;
            }
            if self.reached <= 1u8 && 1u8 < member {
                tail.put([0; 8], "Tail.decoder.stage")?;
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `Tail.decoder` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TailMessageDecoder_ {
        /// Field `field`.
        pub field: u8,
        /// Group `tail`.
        pub tail: Vec<TailMessageDecoderTail>,
        /// Data `stage`.
        pub stage: Vec<u8>,
    }
    impl Default for TailMessageDecoder_ {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                field: Default::default(),
                tail: Default::default(),
                stage: Default::default(),
            }
        }
    }
    impl TailMessageDecoder_ {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &TailMessageDecoder_Decoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {
                field: decoder.field(),
                tail: {
                    let entries = decoder.tail();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        list.push(TailMessageDecoderTail::from_decoder(&entry)?);
                    }
                    list
                },
                stage: decoder.stage().to_vec(),
            })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut TailMessageDecoder_Encoder<'_, '_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.field;
                encoder.field(*value);
            }
            let mut group = encoder.tail()?;
            for item in &self.tail {
                item.encode_into(&mut group.entry()?)?;
            }
            encoder.stage(&self.stage)?;
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            1 + 1 + self.tail.len() * 4 + 8 + self.stage.len()
        }
    }
    /// Appends the fields of `Tail.decoder` as protobuf.
    #[derive(Debug)]
    pub struct TailMessageDecoder_ProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> TailMessageDecoder_ProtobufEncoder<'w, 'a> {
        /// Field `field`.
        #[inline]
        pub fn field(&mut self, value: u8) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
        /// Group `tail`: appends one entry.
        #[inline]
        pub fn tail(
            &mut self,
            write: impl FnOnce(&mut TailMessageDecoderTailProtobufEncoder<'_, 'a>),
        ) -> &mut Self {
            let mark = self.writer.open(2u32);
            write(
                &mut TailMessageDecoderTailProtobufEncoder {
                    writer: &mut self.writer,
                },
            );
            self.writer.close(mark);
            self
        }
        /// Data `stage`.
        #[inline]
        pub fn stage(&mut self, value: &[u8]) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(3u32, value);
            }
            self
        }
    }
    /// A field of `Tail.decoder` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum TailMessageDecoder_Field<'a> {
        /// Field `field`.
        Field(u8),
        /// Group `tail`: one entry.
        Tail(TailMessageDecoderTailProtobufDecoder<'a>),
        /// Data `stage`.
        Stage(&'a [u8]),
    }
    /// Goes over the fields of `Tail.decoder` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct TailMessageDecoder_ProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> TailMessageDecoder_ProtobufDecoder<'a> {
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
        ) -> Result<Option<TailMessageDecoder_Field<'a>>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(
            &mut self,
        ) -> Result<Option<TailMessageDecoder_Field<'a>>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Tail.decoder")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                TailMessageDecoder_Field::Field(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.decoder.field",
                                    )?,
                                ),
                            ),
                        );
                    }
                    18u32 => {
                        return Ok(
                            Some(
                                TailMessageDecoder_Field::Tail(TailMessageDecoderTailProtobufDecoder {
                                    reader: reader.message("Tail.decoder.tail")?,
                                }),
                            ),
                        );
                    }
                    26u32 => {
                        return Ok(
                            Some(
                                TailMessageDecoder_Field::Stage(
                                    reader.bytes("Tail.decoder.stage")?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Tail.decoder",
                                &[
                                    (1u32, "Tail.decoder.field"),
                                    (2u32, "Tail.decoder.tail"),
                                    (3u32, "Tail.decoder.stage"),
                                ],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for TailMessageDecoder_ProtobufDecoder<'a> {
        type Item = Result<TailMessageDecoder_Field<'a>, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl TailMessageDecoder_ {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut TailMessageDecoder_ProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.field;
                encoder.field(*value);
            }
            for entry in &self.tail {
                encoder.tail(|encoder| entry.encode_protobuf(encoder));
            }
            encoder.stage(&self.stage);
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: TailMessageDecoder_ProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    TailMessageDecoder_Field::Field(value) => self.field = value,
                    TailMessageDecoder_Field::Tail(value) => {
                        let mut entry = TailMessageDecoderTail::default();
                        entry.merge_protobuf(value)?;
                        self.tail.push(entry);
                    }
                    TailMessageDecoder_Field::Stage(value) => {
                        self.stage = value.to_owned();
                    }
                }
            }
            Ok(())
        }
    }
    /// Reads an entry of group `Tail.decoder.tail` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct TailMessageDecoderTailDecoder<'a> {
        block: &'a [u8; 4],
    }
    impl<'a> TailMessageDecoderTailDecoder<'a> {
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
                    "Tail.decoder.tail",
                )?;
            Ok(Self { block })
        }
        /// Field `version`.
        #[inline]
        #[must_use]
        pub fn version(&self) -> f32 {
            let raw = field::<0, 4, 4>(self.block);
            let value = f32::from_le_bytes(*raw);
            value
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for TailMessageDecoderTailDecoder<'a> {
        const NAME: &'static str = "Tail.decoder.tail";
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
    /// Writes `Tail.decoder.tail` where it will lie.
    #[derive(Debug)]
    pub struct TailMessageDecoderTailEncoder<'a> {
        block: &'a mut [u8; 4],
    }
    impl<'a> TailMessageDecoderTailEncoder<'a> {
        const TEMPLATE: [u8; 4] = {
            let block = [0; 4];
            block
        };
        /// Field `version`.
        #[inline]
        pub fn version(&mut self, value: f32) -> &mut Self {
            *field_mut::<0, 4, 4>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// `Tail.decoder.tail` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TailMessageDecoderTail {
        /// Field `version`.
        pub version: f32,
    }
    impl Default for TailMessageDecoderTail {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {
                version: Default::default(),
            }
        }
    }
    impl TailMessageDecoderTail {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &TailMessageDecoderTailDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self { version: decoder.version() })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut TailMessageDecoderTailEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.version;
                encoder.version(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            4
        }
    }
    /// Appends the fields of `Tail.decoder.tail` as protobuf.
    #[derive(Debug)]
    pub struct TailMessageDecoderTailProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> TailMessageDecoderTailProtobufEncoder<'w, 'a> {
        /// Field `version`.
        #[inline]
        pub fn version(&mut self, value: f32) -> &mut Self {
            self.writer.float(1u32, value);
            self
        }
    }
    /// A field of `Tail.decoder.tail` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum TailMessageDecoderTailField {
        /// Field `version`.
        Version(f32),
    }
    /// Goes over the fields of `Tail.decoder.tail` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct TailMessageDecoderTailProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> TailMessageDecoderTailProtobufDecoder<'a> {
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
        ) -> Result<Option<TailMessageDecoderTailField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(
            &mut self,
        ) -> Result<Option<TailMessageDecoderTailField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Tail.decoder.tail")? {
                match key {
                    13u32 => {
                        return Ok(
                            Some(
                                TailMessageDecoderTailField::Version(
                                    <f32 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.decoder.tail.version",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(
                                key,
                                "Tail.decoder.tail",
                                &[(1u32, "Tail.decoder.tail.version")],
                            )?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for TailMessageDecoderTailProtobufDecoder<'a> {
        type Item = Result<TailMessageDecoderTailField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl TailMessageDecoderTail {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut TailMessageDecoderTailProtobufEncoder<'_, '_>,
        ) {
            {
                let value = &self.version;
                encoder.version(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: TailMessageDecoderTailProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    TailMessageDecoderTailField::Version(value) => self.version = value,
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Tail.decoder.tail`.
    #[derive(Debug)]
    pub struct TailMessageDecoderTailGroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 1],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> TailMessageDecoderTailGroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 1] = {
            let block = [0; 1];
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(
            &mut self,
        ) -> Result<TailMessageDecoderTailEncoder<'a>, EncodeError> {
            if self.count >= 254 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Tail.decoder.tail",
                        self.count as usize + 1,
                        254,
                    ),
                );
            }
            let block = self.tail.chunk("Tail.decoder.tail")?;
            *block = TailMessageDecoderTailEncoder::TEMPLATE;
            self.count += 1;
            *field_mut::<0, 1, 1>(self.dimension) = (self.count as u8).to_le_bytes();
            Ok(TailMessageDecoderTailEncoder {
                block,
            })
        }
    }
    /// Writes the entries of group `Tail.decoder`.
    #[derive(Debug)]
    pub struct TailMessageDecoder_GroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 14],
        tail: &'g mut Tail<'a>,
        count: u64,
        stage: &'g mut TailMessageDecoder_Stage,
    }
    impl<'g, 'a> TailMessageDecoder_GroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 14] = {
            let block = [0; 14];
            let block = with(block, 10, (1u32).to_le_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(
            &mut self,
        ) -> Result<TailMessageDecoder_Encoder<'_, 'a>, EncodeError> {
            self.stage.advance(self.tail, 2u8)?;
            if self.count >= 18446744073709551614 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Tail.decoder",
                        self.count as usize + 1,
                        18446744073709551614,
                    ),
                );
            }
            let block = self.tail.chunk("Tail.decoder")?;
            *block = TailMessageDecoder_Encoder::TEMPLATE;
            self.count += 1;
            *field_mut::<0, 8, 14>(self.dimension) = (self.count as u64).to_le_bytes();
            self.stage.reached = 0;
            Ok(TailMessageDecoder_Encoder {
                block,
                tail: self.tail,
                stage: self.stage,
            })
        }
    }
    /// Reads an entry of group `Tail.stage` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct TailMessageStage_Decoder<'a> {
        block: &'a [u8; 8],
    }
    impl<'a> TailMessageStage_Decoder<'a> {
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
                >(block_length, Self::needed_length_at(version), version, "Tail.stage")?;
            Ok(Self { block })
        }
        /// Field `value`.
        #[inline]
        #[must_use]
        pub fn value(&self) -> Signed {
            let raw = field::<0, 8, 8>(self.block);
            let value = Signed::from_raw(i64::from_le_bytes(*raw));
            value
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for TailMessageStage_Decoder<'a> {
        const NAME: &'static str = "Tail.stage";
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
    /// Writes `Tail.stage` where it will lie.
    #[derive(Debug)]
    pub struct TailMessageStage_Encoder<'a> {
        block: &'a mut [u8; 8],
    }
    impl<'a> TailMessageStage_Encoder<'a> {
        const TEMPLATE: [u8; 8] = {
            let block = [0; 8];
            block
        };
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: Signed) -> &mut Self {
            *field_mut::<0, 8, 8>(self.block) = value.raw().to_le_bytes();
            self
        }
    }
    /// `Tail.stage` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TailMessageStage_ {
        /// Field `value`.
        pub value: Signed,
    }
    impl Default for TailMessageStage_ {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { value: Default::default() }
        }
    }
    impl TailMessageStage_ {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &TailMessageStage_Decoder<'_>,
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
            encoder: &mut TailMessageStage_Encoder<'_>,
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
    /// Appends the fields of `Tail.stage` as protobuf.
    #[derive(Debug)]
    pub struct TailMessageStage_ProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> TailMessageStage_ProtobufEncoder<'w, 'a> {
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: Signed) -> &mut Self {
            self.writer.uint(1u32, ((value.raw() << 1) ^ (value.raw() >> 63)) as u64);
            self
        }
    }
    /// A field of `Tail.stage` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum TailMessageStage_Field {
        /// Field `value`.
        Value(Signed),
    }
    /// Goes over the fields of `Tail.stage` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct TailMessageStage_ProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> TailMessageStage_ProtobufDecoder<'a> {
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
        ) -> Result<Option<TailMessageStage_Field>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<TailMessageStage_Field>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Tail.stage")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                TailMessageStage_Field::Value(
                                    <Signed as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.stage.value",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(key, "Tail.stage", &[(1u32, "Tail.stage.value")])?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for TailMessageStage_ProtobufDecoder<'a> {
        type Item = Result<TailMessageStage_Field, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl TailMessageStage_ {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut TailMessageStage_ProtobufEncoder<'_, '_>,
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
            mut decoder: TailMessageStage_ProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    TailMessageStage_Field::Value(value) => self.value = value,
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Tail.stage`.
    #[derive(Debug)]
    pub struct TailMessageStage_GroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 14],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> TailMessageStage_GroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 14] = {
            let block = [0; 14];
            let block = with(block, 10, (8u32).to_le_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(&mut self) -> Result<TailMessageStage_Encoder<'a>, EncodeError> {
            if self.count >= 18446744073709551614 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Tail.stage",
                        self.count as usize + 1,
                        18446744073709551614,
                    ),
                );
            }
            let block = self.tail.chunk("Tail.stage")?;
            *block = TailMessageStage_Encoder::TEMPLATE;
            self.count += 1;
            *field_mut::<0, 8, 14>(self.dimension) = (self.count as u64).to_le_bytes();
            Ok(TailMessageStage_Encoder { block })
        }
    }
    /// Reads an entry of group `Tail.group` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct TailMessageGroup_Decoder<'a> {
        block: &'a [u8; 2],
    }
    impl<'a> TailMessageGroup_Decoder<'a> {
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
                >(block_length, Self::needed_length_at(version), version, "Tail.group")?;
            Ok(Self { block })
        }
        /// Field `value`.
        #[inline]
        #[must_use]
        pub fn value(&self) -> Box {
            let raw = field::<0, 2, 2>(self.block);
            let value = Box::from_raw(i16::from_le_bytes(*raw));
            value
        }
    }
    impl<'a> ::gapless_schema::sbe::Entry<'a> for TailMessageGroup_Decoder<'a> {
        const NAME: &'static str = "Tail.group";
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
    /// Writes `Tail.group` where it will lie.
    #[derive(Debug)]
    pub struct TailMessageGroup_Encoder<'a> {
        block: &'a mut [u8; 2],
    }
    impl<'a> TailMessageGroup_Encoder<'a> {
        const TEMPLATE: [u8; 2] = {
            let block = [0; 2];
            block
        };
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: Box) -> &mut Self {
            *field_mut::<0, 2, 2>(self.block) = value.raw().to_le_bytes();
            self
        }
    }
    /// `Tail.group` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TailMessageGroup_ {
        /// Field `value`.
        pub value: Box,
    }
    impl Default for TailMessageGroup_ {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { value: Default::default() }
        }
    }
    impl TailMessageGroup_ {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &TailMessageGroup_Decoder<'_>,
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
            encoder: &mut TailMessageGroup_Encoder<'_>,
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
            2
        }
    }
    /// Appends the fields of `Tail.group` as protobuf.
    #[derive(Debug)]
    pub struct TailMessageGroup_ProtobufEncoder<'w, 'a> {
        writer: &'w mut ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'w, 'a> TailMessageGroup_ProtobufEncoder<'w, 'a> {
        /// Field `value`.
        #[inline]
        pub fn value(&mut self, value: Box) -> &mut Self {
            self.writer.uint(1u32, i64::from(value.raw()) as u64);
            self
        }
    }
    /// A field of `Tail.group` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum TailMessageGroup_Field {
        /// Field `value`.
        Value(Box),
    }
    /// Goes over the fields of `Tail.group` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct TailMessageGroup_ProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> TailMessageGroup_ProtobufDecoder<'a> {
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
        ) -> Result<Option<TailMessageGroup_Field>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<TailMessageGroup_Field>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("Tail.group")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                TailMessageGroup_Field::Value(
                                    <Box as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "Tail.group.value",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => {
                        *reader = reader
                            .other(key, "Tail.group", &[(1u32, "Tail.group.value")])?;
                    }
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for TailMessageGroup_ProtobufDecoder<'a> {
        type Item = Result<TailMessageGroup_Field, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl TailMessageGroup_ {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(
            &self,
            encoder: &mut TailMessageGroup_ProtobufEncoder<'_, '_>,
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
            mut decoder: TailMessageGroup_ProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    TailMessageGroup_Field::Value(value) => self.value = value,
                }
            }
            Ok(())
        }
    }
    /// Writes the entries of group `Tail.group`.
    #[derive(Debug)]
    pub struct TailMessageGroup_GroupEncoder<'g, 'a> {
        dimension: &'a mut [u8; 14],
        tail: &'g mut Tail<'a>,
        count: u64,
    }
    impl<'g, 'a> TailMessageGroup_GroupEncoder<'g, 'a> {
        /// The dimensions of a group without entries.
        const EMPTY: [u8; 14] = {
            let block = [0; 14];
            let block = with(block, 10, (2u32).to_le_bytes());
            block
        };
        /// Begins the next entry; its optional fields are null, the others zero.
        ///
        /// # Errors
        /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
        #[inline(always)]
        pub fn entry(&mut self) -> Result<TailMessageGroup_Encoder<'a>, EncodeError> {
            if self.count >= 18446744073709551614 {
                return Err(
                    ::gapless_schema::sbe::write::too_long(
                        "Tail.group",
                        self.count as usize + 1,
                        18446744073709551614,
                    ),
                );
            }
            let block = self.tail.chunk("Tail.group")?;
            *block = TailMessageGroup_Encoder::TEMPLATE;
            self.count += 1;
            *field_mut::<0, 8, 14>(self.dimension) = (self.count as u64).to_le_bytes();
            Ok(TailMessageGroup_Encoder { block })
        }
    }
    impl ::gapless_schema::Message for TailMessageDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Tail";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = TailMessageDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<TailMessageDecoder<'_>, DecodeError> {
            TailMessageDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for TailMessageEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Tail";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = TailMessageEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<TailMessageEncoder<'_>, EncodeError> {
            TailMessageEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: TailMessageEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for TailMessageProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Tail";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = TailMessageProtobufDecoder<'a>;
        #[inline]
        fn decode(
            payload: &[u8],
        ) -> Result<TailMessageProtobufDecoder<'_>, DecodeError> {
            Ok(TailMessageProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for TailMessageProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Tail";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = TailMessageProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<TailMessageProtobufEncoder<'_>, EncodeError> {
            Ok(TailMessageProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(
            encoder: TailMessageProtobufEncoder<'_>,
        ) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for TailMessage {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Tail";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&TailMessageDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            28 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = TailMessageEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for TailMessage {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 1u16;
        const NAME: &'static str = "Tail";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(TailMessageProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = TailMessageProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = TailMessageProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Reads message `TailDecoder` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct TailDecoderDecoder<'a> {
        block: &'a [u8; 0],
    }
    impl<'a> TailDecoderDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<28>("TailDecoder")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u32::from_le_bytes(*field::<24, 4, 28>(header))),
                template_id: u64::from(u32::from_le_bytes(*field::<17, 4, 28>(header))),
                schema_id: u64::from(u64::from_le_bytes(*field::<9, 8, 28>(header))),
                version: u64::from(u64::from_le_bytes(*field::<1, 8, 28>(header))),
            };
            header.expect("TailDecoder", SCHEMA_ID, 2u16)?;
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
                >(
                    block_length,
                    Self::needed_length_at(version),
                    version,
                    "TailDecoder",
                )?;
            Ok(Self { block })
        }
    }
    /// Writes `TailDecoder` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct TailDecoderEncoder<'a> {
        block: &'a mut [u8; 28],
        tail: Tail<'a>,
        stage: TailDecoderStage,
    }
    impl<'a> TailDecoderEncoder<'a> {
        const TEMPLATE: [u8; 28] = {
            let block = [0; 28];
            let block = with(block, 24, (0u32).to_le_bytes());
            let block = with(block, 17, (2u32).to_le_bytes());
            let block = with(block, 9, (65535u64).to_le_bytes());
            let block = with(block, 1, (1u64).to_le_bytes());
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
            let block = tail.chunk::<28>("TailDecoder")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: TailDecoderStage {
                    reached: 0,
                    ..TailDecoderStage::CLOSED
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
    struct TailDecoderStage {
        reached: u8,
    }
    impl TailDecoderStage {
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
                            _ => "TailDecoder",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `TailDecoder` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TailDecoder {}
    impl Default for TailDecoder {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self {}
        }
    }
    impl TailDecoder {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &TailDecoderDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self {})
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut TailDecoderEncoder<'_>,
        ) -> Result<(), EncodeError> {
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            0
        }
    }
    /// Appends the fields of `TailDecoder` as protobuf.
    #[derive(Debug)]
    pub struct TailDecoderProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> TailDecoderProtobufEncoder<'a> {
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
            self.writer.finish("TailDecoder")
        }
    }
    /// A field of `TailDecoder` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum TailDecoderField {}
    /// Goes over the fields of `TailDecoder` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct TailDecoderProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> TailDecoderProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<TailDecoderField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<TailDecoderField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("TailDecoder")? {
                match key {
                    _ => *reader = reader.other(key, "TailDecoder", &[])?,
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for TailDecoderProtobufDecoder<'a> {
        type Item = Result<TailDecoderField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl TailDecoder {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut TailDecoderProtobufEncoder<'_>) {}
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: TailDecoderProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {}
            }
            Ok(())
        }
    }
    impl ::gapless_schema::Message for TailDecoderDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "TailDecoder";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = TailDecoderDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<TailDecoderDecoder<'_>, DecodeError> {
            TailDecoderDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for TailDecoderEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "TailDecoder";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = TailDecoderEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<TailDecoderEncoder<'_>, EncodeError> {
            TailDecoderEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: TailDecoderEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for TailDecoderProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "TailDecoder";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = TailDecoderProtobufDecoder<'a>;
        #[inline]
        fn decode(
            payload: &[u8],
        ) -> Result<TailDecoderProtobufDecoder<'_>, DecodeError> {
            Ok(TailDecoderProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for TailDecoderProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "TailDecoder";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = TailDecoderProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<TailDecoderProtobufEncoder<'_>, EncodeError> {
            Ok(TailDecoderProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(
            encoder: TailDecoderProtobufEncoder<'_>,
        ) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for TailDecoder {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "TailDecoder";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&TailDecoderDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            28 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = TailDecoderEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for TailDecoder {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 2u16;
        const NAME: &'static str = "TailDecoder";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(TailDecoderProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = TailDecoderProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = TailDecoderProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
    /// Reads message `String` where it lies.
    #[derive(Clone, Copy, Debug)]
    pub struct StringMessageDecoder<'a> {
        block: &'a [u8; 1],
    }
    impl<'a> StringMessageDecoder<'a> {
        /// Reads a payload, which begins with the message header, and checks it as a whole. What follows the
        /// message is left alone.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline(always)]
        pub fn parse(payload: &'a [u8]) -> Result<Self, DecodeError> {
            let mut reader = ::gapless_schema::sbe::Reader::new(payload);
            let header = reader.chunk::<28>("String")?;
            let header = ::gapless_schema::sbe::Header {
                block_length: u64::from(u32::from_le_bytes(*field::<24, 4, 28>(header))),
                template_id: u64::from(u32::from_le_bytes(*field::<17, 4, 28>(header))),
                schema_id: u64::from(u64::from_le_bytes(*field::<9, 8, 28>(header))),
                version: u64::from(u64::from_le_bytes(*field::<1, 8, 28>(header))),
            };
            header.expect("String", SCHEMA_ID, 3u16)?;
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
                >(block_length, Self::needed_length_at(version), version, "String")?;
            Ok(Self { block })
        }
        /// Field `None`.
        #[inline]
        #[must_use]
        pub fn none(&self) -> u8 {
            let raw = field::<0, 1, 1>(self.block);
            let value = u8::from_le_bytes(*raw);
            value
        }
    }
    /// Writes `String` where it will lie.
    #[derive(Debug)]
    #[must_use = "the message ends with finish"]
    pub struct StringMessageEncoder<'a> {
        block: &'a mut [u8; 29],
        tail: Tail<'a>,
        stage: StringMessageStage,
    }
    impl<'a> StringMessageEncoder<'a> {
        const TEMPLATE: [u8; 29] = {
            let block = [0; 29];
            let block = with(block, 24, (1u32).to_le_bytes());
            let block = with(block, 17, (3u32).to_le_bytes());
            let block = with(block, 9, (65535u64).to_le_bytes());
            let block = with(block, 1, (1u64).to_le_bytes());
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
            let block = tail.chunk::<29>("String")?;
            *block = Self::TEMPLATE;
            Ok(Self {
                block,
                tail,
                stage: StringMessageStage {
                    reached: 0,
                    ..StringMessageStage::CLOSED
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
        /// Field `None`.
        #[inline]
        pub fn none(&mut self, value: u8) -> &mut Self {
            *field_mut::<28, 1, 29>(self.block) = value.to_le_bytes();
            self
        }
    }
    /// How far the groups and data are written, here and in the entry that is open.
    #[derive(Clone, Copy, Debug)]
    struct StringMessageStage {
        reached: u8,
    }
    impl StringMessageStage {
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
                            _ => "String",
                        },
                    ),
                );
            }
            self.reached = member;
            Ok(())
        }
    }
    /// `String` as an object: any field in any order.
    #[derive(Clone, Debug, PartialEq)]
    pub struct StringMessage {
        /// Field `None`.
        pub none: u8,
    }
    impl Default for StringMessage {
        /// Nulls, zeros, first values of enums, and empty groups and data.
        fn default() -> Self {
            Self { none: Default::default() }
        }
    }
    impl StringMessage {
        /// Copies what a decoder reads.
        ///
        /// # Errors
        /// [`DecodeError::Text`] if a text is not in its character encoding.
        #[inline]
        pub fn from_decoder(
            decoder: &StringMessageDecoder<'_>,
        ) -> Result<Self, DecodeError> {
            Ok(Self { none: decoder.none() })
        }
        /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
        ///
        /// # Errors
        /// The first field that does not fit into the buffer or its range.
        #[inline]
        pub fn encode_into(
            &self,
            encoder: &mut StringMessageEncoder<'_>,
        ) -> Result<(), EncodeError> {
            {
                let value = &self.none;
                encoder.none(*value);
            }
            Ok(())
        }
        /// Bytes of the SBE form, without message header and dimensions.
        #[must_use]
        pub fn sbe_body_length(&self) -> usize {
            1
        }
    }
    /// Appends the fields of `String` as protobuf.
    #[derive(Debug)]
    pub struct StringMessageProtobufEncoder<'a> {
        writer: ::gapless_schema::protobuf::Writer<'a>,
    }
    impl<'a> StringMessageProtobufEncoder<'a> {
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
            self.writer.finish("String")
        }
        /// Field `None`.
        #[inline]
        pub fn none(&mut self, value: u8) -> &mut Self {
            self.writer.uint(1u32, u64::from(value));
            self
        }
    }
    /// A field of `String` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub enum StringMessageField {
        /// Field `None`.
        None(u8),
    }
    /// Goes over the fields of `String` in a protobuf payload.
    #[derive(Clone, Copy, Debug)]
    pub struct StringMessageProtobufDecoder<'a> {
        reader: ::gapless_schema::protobuf::Reader<'a>,
    }
    impl<'a> StringMessageProtobufDecoder<'a> {
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
        pub fn next_field(&mut self) -> Result<Option<StringMessageField>, DecodeError> {
            let read = self.read_field();
            if read.is_err() {
                self.reader.stop();
            }
            read
        }
        #[inline(always)]
        fn read_field(&mut self) -> Result<Option<StringMessageField>, DecodeError> {
            let reader = &mut self.reader;
            while let Some(key) = reader.key("String")? {
                match key {
                    8u32 => {
                        return Ok(
                            Some(
                                StringMessageField::None(
                                    <u8 as ::gapless_schema::protobuf::Value>::read(
                                        reader,
                                        "String.None",
                                    )?,
                                ),
                            ),
                        );
                    }
                    _ => *reader = reader.other(key, "String", &[(1u32, "String.None")])?,
                }
            }
            Ok(None)
        }
    }
    impl<'a> Iterator for StringMessageProtobufDecoder<'a> {
        type Item = Result<StringMessageField, DecodeError>;
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.next_field().transpose()
        }
    }
    impl StringMessage {
        /// Writes all fields that are not null as protobuf.
        #[inline]
        pub fn encode_protobuf(&self, encoder: &mut StringMessageProtobufEncoder<'_>) {
            {
                let value = &self.none;
                encoder.none(*value);
            }
        }
        /// Takes over the fields of a protobuf payload; groups are appended to.
        ///
        /// # Errors
        /// What is wrong with the payload and where.
        #[inline]
        pub fn merge_protobuf(
            &mut self,
            mut decoder: StringMessageProtobufDecoder<'_>,
        ) -> Result<(), DecodeError> {
            while let Some(field) = decoder.next_field()? {
                match field {
                    StringMessageField::None(value) => self.none = value,
                }
            }
            Ok(())
        }
    }
    impl ::gapless_schema::Message for StringMessageDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "String";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Decoded<'a> = StringMessageDecoder<'a>;
        #[inline(always)]
        fn decode(payload: &[u8]) -> Result<StringMessageDecoder<'_>, DecodeError> {
            StringMessageDecoder::parse(payload)
        }
    }
    impl ::gapless_schema::Direct for StringMessageEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "String";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Sbe;
        type Encoder<'a> = StringMessageEncoder<'a>;
        #[inline]
        fn encoder(buffer: &mut [u8]) -> Result<StringMessageEncoder<'_>, EncodeError> {
            StringMessageEncoder::new(buffer)
        }
        #[inline]
        fn finish(encoder: StringMessageEncoder<'_>) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::Message for StringMessageProtobufDecoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "String";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Decoded<'a> = StringMessageProtobufDecoder<'a>;
        #[inline]
        fn decode(
            payload: &[u8],
        ) -> Result<StringMessageProtobufDecoder<'_>, DecodeError> {
            Ok(StringMessageProtobufDecoder::new(payload))
        }
    }
    impl ::gapless_schema::Direct for StringMessageProtobufEncoder<'_> {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "String";
        const ENCODING: ::gapless_schema::Encoding = ::gapless_schema::Encoding::Protobuf;
        type Encoder<'a> = StringMessageProtobufEncoder<'a>;
        #[inline]
        fn encoder(
            buffer: &mut [u8],
        ) -> Result<StringMessageProtobufEncoder<'_>, EncodeError> {
            Ok(StringMessageProtobufEncoder::new(buffer))
        }
        #[inline]
        fn finish(
            encoder: StringMessageProtobufEncoder<'_>,
        ) -> Result<usize, EncodeError> {
            encoder.finish()
        }
    }
    impl ::gapless_schema::SbeObject for StringMessage {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "String";
        fn from_sbe(payload: &[u8]) -> Result<Self, DecodeError> {
            Self::from_decoder(&StringMessageDecoder::parse(payload)?)
        }
        fn sbe_length(&self) -> usize {
            28 + self.sbe_body_length()
        }
        fn to_sbe(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = StringMessageEncoder::new(buffer)?;
            self.encode_into(&mut encoder)?;
            encoder.finish()
        }
    }
    impl ::gapless_schema::ProtobufObject for StringMessage {
        const SCHEMA_ID: u16 = SCHEMA_ID;
        const TEMPLATE_ID: u16 = 3u16;
        const NAME: &'static str = "String";
        fn from_protobuf(payload: &[u8]) -> Result<Self, DecodeError> {
            let mut object = Self::default();
            object.merge_protobuf(StringMessageProtobufDecoder::new(payload))?;
            Ok(object)
        }
        fn protobuf_length(&self) -> usize {
            let mut encoder = StringMessageProtobufEncoder::new(&mut []);
            self.encode_protobuf(&mut encoder);
            encoder.writer.position()
        }
        fn to_protobuf(&self, buffer: &mut [u8]) -> Result<usize, EncodeError> {
            let mut encoder = StringMessageProtobufEncoder::new(buffer);
            self.encode_protobuf(&mut encoder);
            encoder.finish()
        }
    }
}
