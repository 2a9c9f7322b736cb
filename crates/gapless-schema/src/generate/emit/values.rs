//! Numbers, nulls and documentation as Rust.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::super::model::{
    Constant, DataModel, ElementNotes, FieldKind, FieldModel, IntegerSlot, Level, NumberValue, Primitive,
};
use super::{Emitter, ident};

pub(super) fn primitive_type(primitive: Primitive) -> TokenStream {
    match primitive {
        Primitive::Char | Primitive::Uint8 => quote!(u8),
        Primitive::Int8 => quote!(i8),
        Primitive::Int16 => quote!(i16),
        Primitive::Int32 => quote!(i32),
        Primitive::Int64 => quote!(i64),
        Primitive::Uint16 => quote!(u16),
        Primitive::Uint32 => quote!(u32),
        Primitive::Uint64 => quote!(u64),
        Primitive::Float => quote!(f32),
        Primitive::Double => quote!(f64),
    }
}

pub(super) fn number(primitive: Primitive, value: NumberValue) -> TokenStream {
    let of = primitive_type(primitive);
    match value {
        NumberValue::Integer(value) => {
            let (least, greatest) = primitive.integer_range();
            if value == least && value != 0 {
                quote!(#of::MIN)
            } else if value == greatest {
                quote!(#of::MAX)
            } else {
                format!("({value}{of})").parse().expect("an integer with its type is Rust")
            }
        }
        NumberValue::Float(value) if value.is_nan() => quote!(#of::NAN),
        NumberValue::Float(value) if value.is_infinite() && value > 0.0 => quote!(#of::INFINITY),
        NumberValue::Float(value) if value.is_infinite() => quote!(#of::NEG_INFINITY),
        NumberValue::Float(value) => {
            let sign = value.is_sign_negative().then(|| quote!(-));
            let literal = match primitive {
                Primitive::Float => Literal::f32_suffixed(value.abs() as f32),
                _ => Literal::f64_suffixed(value.abs()),
            };
            quote!((#sign #literal))
        }
    }
}

pub(super) fn constant(constant: &Constant) -> (TokenStream, TokenStream) {
    match constant {
        Constant::Number(primitive, value) => (primitive_type(*primitive), number(*primitive, *value)),
        Constant::Text(text) => (quote!(&'static str), quote!(#text)),
        Constant::Enum(of, variant) => {
            let of = ident(&of.rust);
            let variant = ident(variant);
            (quote!(#of), quote!(#of::#variant))
        }
    }
}

pub(super) fn size(value: usize) -> Literal {
    Literal::usize_unsuffixed(value)
}

pub(super) fn long(value: u64) -> Literal {
    Literal::u64_unsuffixed(value)
}

/// The schema's text is not markdown: brackets and the like are escaped.
pub(super) fn docs(lines: &[String]) -> TokenStream {
    let lines = lines.iter().map(|line| if line.is_empty() { String::new() } else { format!(" {line}") });
    quote!(#(#[doc = #lines])*)
}

pub(super) fn plain(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        if matches!(character, '[' | ']' | '<' | '>' | '*' | '_' | '`' | '\\' | '#') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

pub(super) fn note_lines(notes: &ElementNotes, first: String) -> Vec<String> {
    let mut lines = vec![notes.description.as_deref().map(plain).filter(|text| !text.is_empty()).unwrap_or(first)];
    let mut more = Vec::new();
    if let Some(semantic) = &notes.semantic_type {
        more.push(format!("Semantic type: {}.", plain(semantic)));
    }
    if let Some(unit) = &notes.time_unit {
        more.push(format!("Unit of time: {}.", plain(unit)));
    }
    if let Some(epoch) = &notes.epoch {
        more.push(format!("Epoch: {}.", plain(epoch)));
    }
    if notes.since > 0 {
        more.push(format!("Since version {}.", notes.since));
    }
    if let Some(version) = notes.deprecated {
        more.push(format!("Deprecated since version {version}."));
    }
    if !more.is_empty() {
        lines.push(String::new());
        lines.extend(more);
    }
    lines
}

pub(super) fn deprecated(notes: &ElementNotes) -> Option<TokenStream> {
    notes.deprecated.map(|version| {
        let note = format!("deprecated since version {version} of the schema");
        quote!(#[deprecated(note = #note)])
    })
}

pub(super) fn field_docs(level: &Level, field: &FieldModel) -> TokenStream {
    let said = is_nullable(level, field).then(|| "`None` if it is null.".to_owned());
    lines_of(field, said)
}

pub(super) fn setter_docs(level: &Level, field: &FieldModel) -> TokenStream {
    let null = match field.kind {
        FieldKind::Scalar { null, .. } | FieldKind::Array { null, .. } | FieldKind::Enum { null, .. } => Some(null),
        _ => None,
    };
    let said = null.filter(|_| is_nullable(level, field));
    lines_of(field, said.map(|null| format!("The value {null} is the null value: it writes null.")))
}

fn is_nullable(level: &Level, field: &FieldModel) -> bool {
    level.is_nullable(field) && !matches!(field.kind, FieldKind::Constant(_))
}

fn lines_of(field: &FieldModel, said: Option<String>) -> TokenStream {
    let mut lines = note_lines(&field.notes, format!("Field `{}`.", field.name));
    let mut more = Vec::new();
    if let FieldKind::Scalar { min, max, .. } = &field.kind {
        match (min, max) {
            (Some(min), Some(max)) => more.push(format!("Range: {min} to {max}.")),
            (Some(min), None) => more.push(format!("At least {min}.")),
            (None, Some(max)) => more.push(format!("At most {max}.")),
            (None, None) => {}
        }
    }
    more.extend(said);
    if !more.is_empty() {
        lines.push(String::new());
        lines.extend(more);
    }
    docs(&lines)
}

pub(super) fn data_docs(data: &DataModel) -> TokenStream {
    docs(&note_lines(&data.notes, format!("Data `{}`.", data.name)))
}

impl Emitter<'_> {
    pub(super) fn read(&self, primitive: Primitive, raw: &TokenStream) -> TokenStream {
        let of = primitive_type(primitive);
        if self.schema.big_endian { quote!(#of::from_be_bytes(#raw)) } else { quote!(#of::from_le_bytes(#raw)) }
    }

    pub(super) fn bytes(&self, value: &TokenStream) -> TokenStream {
        if self.schema.big_endian { quote!(#value.to_be_bytes()) } else { quote!(#value.to_le_bytes()) }
    }

    pub(super) fn read_slot(&self, slot: IntegerSlot, raw: &TokenStream, length: usize) -> TokenStream {
        match slot {
            IntegerSlot::Constant(value) => {
                let value = long(value);
                quote!(#value)
            }
            IntegerSlot::At { offset, primitive } => {
                let offset = size(offset);
                let bytes = size(primitive.size());
                let length = size(length);
                let value = self.read(primitive, &quote!(*field::<#offset, #bytes, #length>(#raw)));
                quote!(u64::from(#value))
            }
        }
    }

    pub(super) fn with_slot(&self, slot: IntegerSlot, value: u64) -> TokenStream {
        match slot {
            IntegerSlot::Constant(_) => quote!(),
            IntegerSlot::At { offset, primitive } => {
                let value = number(primitive, NumberValue::Integer(i128::from(value)));
                let bytes = self.bytes(&value);
                let offset = size(offset);
                quote!(let block = with(block, #offset, #bytes);)
            }
        }
    }

    pub(super) fn nulls(&self, level: &Level, shift: usize) -> TokenStream {
        let fields =
            level.fields.iter().map(|field| self.null(&field.kind, level.is_nullable(field), shift + field.offset));
        quote!(#(#fields)*)
    }

    fn null(&self, kind: &FieldKind, nullable: bool, at: usize) -> TokenStream {
        let offset = size(at);
        match kind {
            FieldKind::Scalar { primitive, null, .. } if nullable => {
                let bytes = self.bytes(&number(*primitive, *null));
                quote!(let block = with(block, #offset, #bytes);)
            }
            FieldKind::Enum { of, null } if nullable => {
                let bytes = self.bytes(&number(of.primitive, *null));
                quote!(let block = with(block, #offset, #bytes);)
            }
            FieldKind::Array { primitive, null, length, .. } if nullable => {
                let bytes = self.bytes(&number(*primitive, *null));
                let length = size(*length);
                quote!(let block = with_repeated(block, #offset, #bytes, #length);)
            }
            FieldKind::Composite(level) => {
                let inner = self.nulls(level, at);
                // A composite is null if its first member is.
                let first = match level.fields.iter().find(|field| !matches!(field.kind, FieldKind::Constant(_))) {
                    Some(first) if nullable => self.null(&first.kind, true, at + first.offset),
                    _ => quote!(),
                };
                quote!(#inner #first)
            }
            _ => quote!(),
        }
    }
}
