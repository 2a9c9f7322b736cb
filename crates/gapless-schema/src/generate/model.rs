//! Everything is resolved and checked: types are shared by reference, offsets and lengths are known.

use std::rc::Rc;

use super::error::Location;

pub(crate) struct Schema {
    pub package: String,
    pub id: u16,
    pub version: u64,
    pub semantic_version: Option<String>,
    pub description: Option<String>,
    pub big_endian: bool,
    pub header: HeaderLayout,
    pub enums: Vec<Rc<EnumType>>,
    pub sets: Vec<Rc<SetType>>,
    pub composites: Vec<Rc<Level>>,
    pub messages: Vec<MessageModel>,
}

pub(crate) struct HeaderLayout {
    pub length: usize,
    pub block_length: IntegerSlot,
    pub template_id: IntegerSlot,
    pub schema_id: IntegerSlot,
    pub version: IntegerSlot,
}

pub(crate) struct GroupDimension {
    pub length: usize,
    pub block_length: IntegerSlot,
    pub num_in_group: IntegerSlot,
    pub num_max: u64,
}

#[derive(Clone, Copy)]
pub(crate) enum IntegerSlot {
    At { offset: usize, primitive: Primitive },
    Constant(u64),
}

pub(crate) struct MessageModel {
    pub name: String,
    pub template_id: u16,
    pub level: Level,
}

/// Anything with a block: a message, an entry of a group, a composite.
pub(crate) struct Level {
    pub path: String,
    /// Prefix of its Rust types: `CarPerformanceFigure`.
    pub rust: String,
    pub notes: ElementNotes,
    /// Fields of a version up to this one are always present.
    pub base_version: u64,
    pub block_length: usize,
    /// Including nested ones, and itself.
    pub members_in_all: usize,
    pub fields: Vec<FieldModel>,
    pub groups: Vec<GroupModel>,
    pub data: Vec<DataModel>,
}

pub(crate) struct FieldModel {
    pub name: String,
    pub rust: String,
    pub variant: String,
    /// SBE field id; in a composite the member's place, from 1.
    pub number: u32,
    pub kind: FieldKind,
    pub optional: bool,
    pub offset: usize,
    /// No field before it moves it.
    pub has_offset: bool,
    pub notes: ElementNotes,
}

pub(crate) struct GroupModel {
    pub name: String,
    pub rust: String,
    pub variant: String,
    pub number: u32,
    pub dimension: GroupDimension,
    pub level: Level,
}

pub(crate) struct DataModel {
    pub name: String,
    pub rust: String,
    pub variant: String,
    pub number: u32,
    pub length: Primitive,
    pub length_max: u64,
    pub charset: Option<Charset>,
    pub notes: ElementNotes,
}

#[derive(Clone)]
pub(crate) struct ElementNotes {
    pub description: Option<String>,
    pub semantic_type: Option<String>,
    pub time_unit: Option<String>,
    pub epoch: Option<String>,
    pub since: u64,
    pub deprecated: Option<u64>,
    pub location: Location,
}

#[derive(Clone)]
pub(crate) enum FieldKind {
    Scalar { primitive: Primitive, null: NumberValue, min: Option<NumberValue>, max: Option<NumberValue> },
    Array { primitive: Primitive, length: usize, null: NumberValue, charset: Option<Charset> },
    Enum { of: Rc<EnumType>, null: NumberValue },
    Set(Rc<SetType>),
    Composite(Rc<Level>),
    Constant(Constant),
}

#[derive(Clone)]
pub(crate) enum Constant {
    Number(Primitive, NumberValue),
    Text(String),
    Enum(Rc<EnumType>, String),
}

pub(crate) struct EnumType {
    pub name: String,
    pub rust: String,
    pub primitive: Primitive,
    pub null: NumberValue,
    pub notes: ElementNotes,
    pub values: Vec<EnumValue>,
}

pub(crate) struct EnumValue {
    pub name: String,
    pub rust: String,
    pub number: i128,
    pub notes: ElementNotes,
}

pub(crate) struct SetType {
    pub name: String,
    pub rust: String,
    pub primitive: Primitive,
    pub notes: ElementNotes,
    pub choices: Vec<Choice>,
}

pub(crate) struct Choice {
    pub name: String,
    pub rust: String,
    pub bit: u32,
    pub notes: ElementNotes,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Charset {
    /// Checked when written; text read may still be UTF-8, as written before that check existed.
    Ascii,
    Utf8,
    Latin1,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum NumberValue {
    Integer(i128),
    Float(f64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Primitive {
    Char,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float,
    Double,
}

impl Primitive {
    pub(crate) const ALL: [(&'static str, Self); 11] = [
        ("char", Self::Char),
        ("int8", Self::Int8),
        ("int16", Self::Int16),
        ("int32", Self::Int32),
        ("int64", Self::Int64),
        ("uint8", Self::Uint8),
        ("uint16", Self::Uint16),
        ("uint32", Self::Uint32),
        ("uint64", Self::Uint64),
        ("float", Self::Float),
        ("double", Self::Double),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, primitive)| *primitive)
    }

    pub(crate) const fn size(self) -> usize {
        match self {
            Self::Char | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
        }
    }

    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Self::Float | Self::Double)
    }

    pub(crate) const fn is_unsigned(self) -> bool {
        matches!(self, Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64)
    }

    pub(crate) const fn is_signed(self) -> bool {
        matches!(self, Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64)
    }

    pub(crate) const fn integer_range(self) -> (i128, i128) {
        let bits = self.size() as u32 * 8;
        if self.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
    }

    pub(crate) const fn default_null(self) -> NumberValue {
        match self {
            Self::Float | Self::Double => NumberValue::Float(f64::NAN),
            Self::Char => NumberValue::Integer(0),
            _ if self.is_signed() => NumberValue::Integer(self.integer_range().0),
            _ => NumberValue::Integer(self.integer_range().1),
        }
    }
}

impl Level {
    pub(crate) fn length_at(&self, version: u64) -> usize {
        let version = version.max(self.base_version);
        let known = self.fields.iter().filter(|field| field.notes.since <= version);
        known.map(|field| field.offset + field.kind.length_at(version)).max().unwrap_or(0)
    }

    pub(crate) fn is_versioned(&self) -> bool {
        self.fields.iter().any(|field| self.is_late(field) || field.kind.is_versioned())
    }

    /// A writer of an older version may have omitted the field.
    pub(crate) const fn is_late(&self, field: &FieldModel) -> bool {
        field.notes.since > self.base_version
    }

    pub(crate) const fn is_nullable(&self, field: &FieldModel) -> bool {
        field.optional || self.is_late(field)
    }

    pub(crate) fn has_members(&self) -> bool {
        !self.groups.is_empty() || !self.data.is_empty()
    }

    pub(crate) fn members(&self) -> usize {
        self.groups.len() + self.data.len()
    }

    pub(crate) fn versions(&self) -> Vec<u64> {
        let mut versions = Vec::new();
        for field in &self.fields {
            versions.push(field.notes.since);
            if let FieldKind::Composite(level) = &field.kind {
                versions.extend(level.versions());
            }
        }
        versions.retain(|version| *version > self.base_version);
        versions.sort_unstable();
        versions.dedup();
        versions
    }

    /// Single field of a group that is a plain list: required, and named `value`.
    pub(crate) fn list_field(&self) -> Option<&FieldModel> {
        match &self.fields[..] {
            [field] if !self.has_members() && field.name == "value" && !self.is_nullable(field) => {
                matches!(field.kind, FieldKind::Scalar { .. } | FieldKind::Enum { .. }).then_some(field)
            }
            _ => None,
        }
    }
}

impl FieldKind {
    /// Number of members, itself included; more than 1 for a composite.
    pub(crate) fn members(&self) -> usize {
        match self {
            Self::Composite(level) => level.members_in_all,
            _ => 1,
        }
    }

    pub(crate) fn length(&self) -> usize {
        self.length_at(u64::MAX)
    }

    /// In the block of a writer of `version`.
    pub(crate) fn length_at(&self, version: u64) -> usize {
        match self {
            Self::Scalar { primitive, .. } => primitive.size(),
            Self::Array { primitive, length, .. } => primitive.size() * length,
            Self::Enum { of, .. } => of.primitive.size(),
            Self::Set(of) => of.primitive.size(),
            Self::Composite(level) => level.length_at(version),
            Self::Constant(_) => 0,
        }
    }

    fn is_versioned(&self) -> bool {
        matches!(self, Self::Composite(level) if level.is_versioned())
    }

    /// Bytes that a decoder takes as an array; of a versioned composite, the part that is always present.
    pub(crate) fn known_length(&self) -> usize {
        match self {
            Self::Composite(level) => level.known_length(),
            other => other.length(),
        }
    }
}

impl Level {
    pub(crate) fn known_length(&self) -> usize {
        if self.is_versioned() { self.length_at(self.base_version) } else { self.length_at(u64::MAX) }
    }
}
