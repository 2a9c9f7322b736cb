//! Field numbers are SBE field ids; members of composites, which have none, are numbered by their place from 1. Signed
//! integers are `sint32` and `sint64`, null is absent. An enum of more than 32 bits, which protobuf does not have, is a
//! plain number.

use super::emit::fits_protobuf;
use super::error::SchemaError;
use super::model::{Constant, ElementNotes, EnumType, FieldKind, FieldModel, Level, Primitive, Schema};
use super::names::snake;

const RESERVED: std::ops::RangeInclusive<u32> = 19_000..=19_999;

pub(crate) fn check(schema: &Schema) -> Result<(), SchemaError> {
    schema.messages.iter().try_for_each(|message| check_level(&message.level))
}

fn check_level(level: &Level) -> Result<(), SchemaError> {
    let fields = level.fields.iter().filter(|field| !matches!(field.kind, FieldKind::Constant(_)));
    let numbers = fields.map(|field| (&field.name, field.number, &field.notes));
    let groups = level.groups.iter().map(|group| (&group.name, group.number, &group.level.notes));
    let data = level.data.iter().map(|data| (&data.name, data.number, &data.notes));
    for (name, number, notes) in numbers.chain(groups).chain(data) {
        if number == 0 || RESERVED.contains(&number) {
            let problem = format!("id {number} of {name:?} cannot be the number of a protobuf field");
            let expected =
                "1 to 18999 or 20000 to 65535, or no protobuf form (--sbe-only, Generator::without_protobuf)";
            return Err(notes.location.error(problem, expected));
        }
    }
    level.groups.iter().try_for_each(|group| check_level(&group.level))
}

pub(crate) fn proto(schema: &Schema) -> String {
    let mut out = ProtoText { text: String::new(), indent: 0 };
    out.line(&format!(
        "// Generated from an SBE schema (id {}, version {}). Do not edit: change the schema.",
        schema.id, schema.version
    ));
    out.line("// Numbers of fields are SBE field ids. Null is absent.");
    out.line("syntax = \"proto3\";");
    out.line("");
    let symbols = schema.package.replace(|character: char| !character.is_ascii_alphanumeric() && character != '.', "_");
    let package: Vec<_> = symbols.split('.').map(snake).filter(|part| !part.is_empty()).collect();
    if !package.is_empty() {
        out.line(&format!("package {};", package.join(".")));
        out.line("");
    }
    for of in schema.enums.iter().filter(|of| fits_protobuf(of.primitive)) {
        enumeration(&mut out, of);
    }
    for level in &schema.composites {
        message(&mut out, level);
    }
    for item in &schema.messages {
        message(&mut out, &item.level);
    }
    out.text
}

struct ProtoText {
    text: String,
    indent: usize,
}

impl ProtoText {
    fn line(&mut self, line: &str) {
        if !line.is_empty() {
            self.text.push_str(&"  ".repeat(self.indent));
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    fn notes(&mut self, notes: &ElementNotes) {
        if let Some(description) = &notes.description {
            self.line(&format!("// {}", description.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
}

fn enumeration(out: &mut ProtoText, of: &EnumType) {
    let prefix = snake(&of.rust).to_ascii_uppercase();
    out.notes(&of.notes);
    out.line(&format!("enum {} {{", of.rust));
    out.indent += 1;
    // The first value of a proto3 enum is zero. Its values share the scope of the enum, hence the prefix; underscores
    // keep equal names apart.
    let name = |rust: &str| {
        let underscores = rust.len() - rust.trim_end_matches('_').len();
        format!("{prefix}_{}{}", snake(rust).to_ascii_uppercase(), "_".repeat(underscores))
    };
    match of.values.iter().find(|value| value.number == 0) {
        Some(zero) => out.line(&format!("{} = 0;", name(&zero.rust))),
        None => out.line(&format!("{prefix}_UNSPECIFIED_ = 0;")),
    }
    for value in of.values.iter().filter(|value| value.number != 0) {
        out.notes(&value.notes);
        out.line(&format!("{} = {};", name(&value.rust), value.number));
    }
    out.indent -= 1;
    out.line("}");
    out.line("");
}

fn message(out: &mut ProtoText, level: &Level) {
    out.notes(&level.notes);
    out.line(&format!("message {} {{", level.rust));
    out.indent += 1;
    for field in &level.fields {
        out.notes(&field.notes);
        match &field.kind {
            FieldKind::Constant(constant) => {
                out.line(&format!("// Constant {} = {}", field.name, constant_text(constant)))
            }
            _ => {
                let deprecated = if field.notes.deprecated.is_some() { " [deprecated = true]" } else { "" };
                let of = field_type(field);
                out.line(&format!("{of} {} = {}{deprecated};", name(level, &field.name, field.number), field.number));
            }
        }
    }
    for group in &level.groups {
        out.notes(&group.level.notes);
        let of = match group.level.list_field() {
            Some(field) => scalar_type(&field.kind),
            None => group.level.rust.clone(),
        };
        out.line(&format!("repeated {of} {} = {};", name(level, &group.name, group.number), group.number));
    }
    for data in &level.data {
        out.notes(&data.notes);
        let of = if data.charset.is_some() { "string" } else { "bytes" };
        out.line(&format!("{of} {} = {};", name(level, &data.name, data.number), data.number));
    }
    out.indent -= 1;
    out.line("}");
    out.line("");
    for group in level.groups.iter().filter(|group| group.level.list_field().is_none()) {
        message(out, &group.level);
    }
}

/// Name of the schema, with the id if an earlier name became the same.
fn name(level: &Level, name: &str, number: u32) -> String {
    let fields = level.fields.iter().map(|field| (&field.name, field.number));
    let groups = level.groups.iter().map(|group| (&group.name, group.number));
    let data = level.data.iter().map(|data| (&data.name, data.number));
    let plain = snake(name);
    match fields.chain(groups).chain(data).find(|(other, _)| snake(other) == plain) {
        Some((_, first)) if first != number => format!("{plain}_id{number}"),
        _ => plain,
    }
}

fn field_type(field: &FieldModel) -> String {
    match &field.kind {
        FieldKind::Array { charset: Some(_), .. } => "optional string".to_owned(),
        FieldKind::Array { primitive: Primitive::Uint8, .. } => "optional bytes".to_owned(),
        FieldKind::Array { primitive, .. } => format!("repeated {}", primitive_type(*primitive)),
        FieldKind::Composite(level) => level.rust.clone(),
        kind => format!("optional {}", scalar_type(kind)),
    }
}

fn scalar_type(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Scalar { primitive, .. } => primitive_type(*primitive).to_owned(),
        FieldKind::Enum { of, .. } if fits_protobuf(of.primitive) => of.rust.clone(),
        FieldKind::Enum { of, .. } => primitive_type(of.primitive).to_owned(),
        FieldKind::Set(of) => primitive_type(of.primitive).to_owned(),
        _ => unreachable!("only scalars are asked for"),
    }
}

const fn primitive_type(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::Int8 | Primitive::Int16 | Primitive::Int32 => "sint32",
        Primitive::Int64 => "sint64",
        Primitive::Char | Primitive::Uint8 | Primitive::Uint16 | Primitive::Uint32 => "uint32",
        Primitive::Uint64 => "uint64",
        Primitive::Float => "float",
        Primitive::Double => "double",
    }
}

fn constant_text(constant: &Constant) -> String {
    match constant {
        Constant::Number(_, number) => number.to_string(),
        Constant::Text(text) => format!("{text:?}"),
        Constant::Enum(of, value) => format!("{}.{value}", of.name),
    }
}
