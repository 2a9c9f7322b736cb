//! Types may refer to each other in any order, so they are resolved on first use; a cycle of references is an error.

use std::collections::HashMap;
use std::rc::Rc;

use super::error::SchemaError;
use super::model::{Charset, Constant, ElementNotes, EnumType, FieldKind, Level, NumberValue, Primitive, SetType};
use super::names::NameScope;
use super::values::{notes, number_in, parse_number};
use super::xml::Element;

/// A block must fit its length field anyway.
pub(super) const ARRAY_LENGTH_MAX: usize = 1 << 20;

/// A composite in a composite in a composite is three.
const CHAIN_MAX: usize = 32;

#[derive(Clone)]
pub(crate) enum SchemaType {
    Encoded(Rc<EncodedType>),
    Enum(Rc<EnumType>),
    Set(Rc<SetType>),
    Composite(Rc<Composite>),
}

#[derive(Clone)]
pub(crate) struct EncodedType {
    pub primitive: Primitive,
    /// 1 for a scalar, 0 for data of variable length.
    pub length: usize,
    pub optional: bool,
    pub null: NumberValue,
    pub min: Option<NumberValue>,
    pub max: Option<NumberValue>,
    pub constant: Option<Constant>,
    pub charset: Option<Charset>,
    pub constant_without_value: bool,
    pub notes: ElementNotes,
}

/// A level for use as a field, and members for use as header, dimensions or data.
pub(crate) struct Composite {
    pub members: Vec<(String, SchemaType, usize)>,
    /// `None` for the encoding of data, which has no fixed length.
    pub level: Option<Rc<Level>>,
}

pub(crate) struct TypeTable<'d> {
    pub(super) raw: HashMap<String, Element<'d>>,
    names_in_order: Vec<String>,
    done: HashMap<String, SchemaType>,
    chain: Vec<String>,
    pub rust_names: NameScope,
    pub enums: Vec<Rc<EnumType>>,
    pub sets: Vec<Rc<SetType>>,
    pub composites: Vec<Rc<Level>>,
}

impl<'d> TypeTable<'d> {
    pub(crate) fn collect(blocks: &[Element<'d>]) -> Result<Self, SchemaError> {
        let mut raw: HashMap<String, Element<'d>> = HashMap::new();
        let mut names_in_order = Vec::new();
        for element in blocks.iter().flat_map(Element::children) {
            if !matches!(element.name(), "type" | "composite" | "enum" | "set") {
                return Err(element.error(
                    format!("<{}> cannot stand in <types>", element.name()),
                    "<type>, <composite>, <enum> or <set>",
                ));
            }
            let name = element.symbol()?;
            if let Some(first) = raw.get(&name) {
                let first = first.location();
                return Err(element.error(
                    format!("type {name:?} is defined twice"),
                    format!("one definition; the first is in line {} of {}", first.line(), first.source.name),
                ));
            }
            if Primitive::named(&name).is_some() {
                return Err(element.error(format!("{name:?} is a primitive type"), "another name"));
            }
            raw.insert(name.clone(), element);
            names_in_order.push(name);
        }
        Ok(Self {
            raw,
            names_in_order,
            done: HashMap::new(),
            chain: Vec::new(),
            rust_names: NameScope::default(),
            enums: Vec::new(),
            sets: Vec::new(),
            composites: Vec::new(),
        })
    }

    /// Unused types are checked, too.
    pub(crate) fn resolve_all(&mut self) -> Result<(), SchemaError> {
        for name in self.names_in_order.clone() {
            if let Some(element) = self.raw.get(&name).cloned() {
                self.named(&name, &element, "name")?;
            }
        }
        Ok(())
    }

    pub(crate) fn named(&mut self, name: &str, user: &Element<'d>, attribute: &str) -> Result<SchemaType, SchemaError> {
        if let Some(done) = self.done.get(name) {
            return Ok(done.clone());
        }
        if let Some(primitive) = Primitive::named(name) {
            return Ok(SchemaType::Encoded(Rc::new(EncodedType::plain(primitive, user)?)));
        }
        let place = user.attribute_location(attribute);
        let Some(element) = self.raw.get(name).cloned() else {
            return Err(place.error(format!("unknown type {name:?}"), self.known_names(name)));
        };
        if self.chain.iter().any(|other| other == name) {
            let chain = format!("{} -> {name}", self.chain.join(" -> "));
            return Err(place.error(format!("the type refers to itself: {chain}"), "references without a cycle"));
        }
        if self.chain.len() >= CHAIN_MAX {
            return Err(place.error("references are nested too deeply", format!("at most {CHAIN_MAX} in a chain")));
        }
        self.chain.push(name.to_owned());
        let resolved = self.resolve(&element, name);
        self.chain.pop();
        let resolved = resolved?;
        self.done.insert(name.to_owned(), resolved.clone());
        Ok(resolved)
    }

    fn known_names(&self, wanted: &str) -> String {
        let near = |name: &&String| name.eq_ignore_ascii_case(wanted);
        if let Some(name) = self.names_in_order.iter().find(near) {
            return format!("a type of the schema; did you mean {name:?}?");
        }
        let mut names: Vec<&str> = self.names_in_order.iter().map(String::as_str).take(12).collect();
        names.push(if self.names_in_order.len() > 12 { "… or a primitive type" } else { "or a primitive type" });
        format!("one of {}", names.join(", "))
    }

    pub(super) fn resolve(&mut self, element: &Element<'d>, name: &str) -> Result<SchemaType, SchemaError> {
        match element.name() {
            "type" => Ok(SchemaType::Encoded(Rc::new(self.encoded(element)?))),
            "enum" => Ok(SchemaType::Enum(self.enumeration(element, name)?)),
            "set" => Ok(SchemaType::Set(self.set(element, name)?)),
            "composite" => Ok(SchemaType::Composite(self.composite(element, name)?)),
            other => Err(element.error(
                format!("<{other}> is not a type"),
                "<type>, <composite>, <enum>, <set> or, in a composite, <ref>",
            )),
        }
    }

    fn encoded(&mut self, element: &Element<'d>) -> Result<EncodedType, SchemaError> {
        let primitive_name = element.required("primitiveType")?;
        let Some(primitive) = Primitive::named(primitive_name) else {
            let known: Vec<_> = Primitive::ALL.iter().map(|(name, _)| *name).collect();
            return Err(element
                .attribute_location("primitiveType")
                .error(format!("unknown primitive type {primitive_name:?}"), known.join(", ")));
        };
        let mut encoded = EncodedType::plain(primitive, element)?;
        let length: Option<usize> = element.number("length", "a number of elements")?;
        encoded.length = length.unwrap_or(1);
        if encoded.length > ARRAY_LENGTH_MAX {
            return Err(element
                .attribute_location("length")
                .error(format!("length is {}", encoded.length), format!("at most {ARRAY_LENGTH_MAX}")));
        }
        for (attribute, slot) in [("minValue", &mut encoded.min), ("maxValue", &mut encoded.max)] {
            if let Some(text) = element.attribute(attribute) {
                *slot = Some(parse_number(primitive, text, &element.attribute_location(attribute), attribute)?);
            }
        }
        if let Some(text) = element.attribute("nullValue") {
            encoded.null = parse_number(primitive, text, &element.attribute_location("nullValue"), "nullValue")?;
        }
        encoded.charset = match charset(element)? {
            None if primitive == Primitive::Char => Some(Charset::Utf8),
            Some(_) if encoded.length == 1 && primitive != Primitive::Char => None,
            named => named,
        };
        match presence(element)? {
            None | Some(Presence::Required) => {}
            Some(Presence::Optional) => encoded.optional = true,
            Some(Presence::Constant) => self.constant(element, &mut encoded, length)?,
        }
        Ok(encoded)
    }

    fn constant(
        &mut self,
        element: &Element<'d>,
        encoded: &mut EncodedType,
        length: Option<usize>,
    ) -> Result<(), SchemaError> {
        if let Some(value_ref) = element.attribute("valueRef") {
            encoded.constant = Some(self.value_ref(element, value_ref, Some(encoded.primitive))?);
            return Ok(());
        }
        let text = element.text();
        if text.is_empty() {
            // A field that uses the type may give the value.
            encoded.constant_without_value = true;
            return Ok(());
        }
        let primitive = encoded.primitive;
        if primitive == Primitive::Char && (text.len() > 1 || length.is_some_and(|length| length > 1)) {
            if length.is_some_and(|length| text.len() > length) {
                return Err(element.error(
                    format!("the constant {text:?} has {} bytes", text.len()),
                    format!("at most {} as in length", encoded.length),
                ));
            }
            encoded.constant = Some(Constant::Text(text.to_owned()));
            return Ok(());
        }
        if encoded.length != 1 {
            return Err(element.error("a constant array of numbers", "a constant of length 1, or of type char"));
        }
        let number = parse_number(primitive, text, &element.location(), "the constant")?;
        number_in(number, encoded.min, encoded.max, &element.location(), "the constant")?;
        encoded.constant = Some(Constant::Number(primitive, number));
        Ok(())
    }

    pub(crate) fn value_ref(
        &mut self,
        element: &Element<'d>,
        text: &str,
        primitive: Option<Primitive>,
    ) -> Result<Constant, SchemaError> {
        let place = element.attribute_location("valueRef");
        let Some((enum_name, value_name)) = text.split_once('.') else {
            return Err(place.error(format!("valueRef is {text:?}"), "Enum.value"));
        };
        let SchemaType::Enum(of) = self.named(enum_name, element, "valueRef")? else {
            return Err(place.error(format!("{enum_name:?} is not an enum"), "the name of an enum before the dot"));
        };
        if primitive.is_some_and(|primitive| primitive != of.primitive) {
            return Err(place.error(
                format!("the primitive type is not the encoding type of enum {enum_name:?}"),
                "the encoding type of the enum",
            ));
        }
        let Some(value) = of.values.iter().find(|value| value.name == value_name) else {
            let known: Vec<_> = of.values.iter().map(|value| value.name.as_str()).collect();
            return Err(place.error(format!("enum {enum_name:?} has no value {value_name:?}"), known.join(", ")));
        };
        let variant = value.rust.clone();
        Ok(Constant::Enum(of, variant))
    }
}

impl SchemaType {
    pub(crate) fn kind(&self, user: &Element<'_>) -> Result<FieldKind, SchemaError> {
        match self {
            Self::Encoded(encoded) => encoded.kind(user),
            Self::Enum(of) => Ok(FieldKind::Enum { of: of.clone(), null: of.null }),
            Self::Set(of) => Ok(FieldKind::Set(of.clone())),
            Self::Composite(composite) => match &composite.level {
                Some(level) => Ok(FieldKind::Composite(level.clone())),
                None => {
                    Err(user.error("a composite with data of variable length", "a type of fixed length, or <data>"))
                }
            },
        }
    }
}

impl EncodedType {
    fn plain(primitive: Primitive, element: &Element<'_>) -> Result<Self, SchemaError> {
        Ok(Self {
            primitive,
            length: 1,
            optional: false,
            null: primitive.default_null(),
            min: None,
            max: None,
            constant: None,
            charset: None,
            constant_without_value: false,
            notes: notes(element)?,
        })
    }

    fn kind(&self, user: &Element<'_>) -> Result<FieldKind, SchemaError> {
        if let Some(constant) = &self.constant {
            return Ok(FieldKind::Constant(constant.clone()));
        }
        if self.constant_without_value {
            return Err(user.error("a constant without a value", "text inside of the <type>, or a valueRef"));
        }
        let Self { primitive, length, null, min, max, .. } = *self;
        match length {
            0 => Err(user.error("a type of length 0", "a type of fixed length, or <data>")),
            1 => Ok(FieldKind::Scalar { primitive, null, min, max }),
            _ => {
                let charset = self.charset.filter(|_| matches!(primitive, Primitive::Char | Primitive::Uint8));
                Ok(FieldKind::Array { primitive, length, null, charset })
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Optional,
    Constant,
}

pub(crate) fn presence(element: &Element<'_>) -> Result<Option<Presence>, SchemaError> {
    match element.attribute("presence") {
        None => Ok(None),
        Some("required") => Ok(Some(Presence::Required)),
        Some("optional") => Ok(Some(Presence::Optional)),
        Some("constant") => Ok(Some(Presence::Constant)),
        Some(other) => Err(element
            .attribute_location("presence")
            .error(format!("presence is {other:?}"), "required, optional or constant")),
    }
}

pub(crate) fn charset(element: &Element<'_>) -> Result<Option<Charset>, SchemaError> {
    let Some(text) = element.attribute("characterEncoding") else { return Ok(None) };
    match text.trim().to_ascii_uppercase().replace('_', "-").as_str() {
        "ASCII" | "US-ASCII" => Ok(Some(Charset::Ascii)),
        "UTF-8" | "UTF8" => Ok(Some(Charset::Utf8)),
        "ISO-8859-1" | "LATIN1" | "LATIN-1" => Ok(Some(Charset::Latin1)),
        _ => Err(element
            .attribute_location("characterEncoding")
            .error(format!("unknown character encoding {text:?}"), "US-ASCII, UTF-8 or ISO-8859-1")),
    }
}
