//! The `<types>` of a schema: encoded types, enums, sets and composites, resolved by name.
//!
//! Types may refer to each other in any order, so they are resolved when they are first asked for; a chain of
//! references that comes back to its beginning is an error.

use std::collections::HashMap;
use std::rc::Rc;

use super::error::SchemaError;
use super::model::{
    Charset, Choice, Constant, EnumType, EnumValue, Field, Kind, Level, Notes, Number, Primitive, SetType,
};
use super::names::{Names, pascal};
use super::values::{notes, number_in, parse_number};
use super::xml::Element;

/// The longest array or text; a block must fit its length field anyway.
const ARRAY_LENGTH_MAX: usize = 1 << 20;

/// The longest chain of references; a composite in a composite in a composite is three.
const CHAIN_MAX: usize = 32;

/// A resolved type.
#[derive(Clone)]
pub(crate) enum Type {
    Encoded(Rc<Encoded>),
    Enum(Rc<EnumType>),
    Set(Rc<SetType>),
    Composite(Rc<Composite>),
}

/// A `<type>`.
#[derive(Clone)]
pub(crate) struct Encoded {
    pub primitive: Primitive,
    /// 1 for a scalar, 0 for data of variable length.
    pub length: usize,
    pub optional: bool,
    pub null: Number,
    pub min: Option<Number>,
    pub max: Option<Number>,
    pub constant: Option<Constant>,
    pub charset: Option<Charset>,
    /// A constant that names a value of an enum, to be resolved by whoever uses the type.
    pub value_ref: Option<String>,
    pub constant_without_value: bool,
    pub notes: Notes,
}

/// A `<composite>`: as a level where it can be a field, and its members where it is a header, dimensions or data.
pub(crate) struct Composite {
    pub members: Vec<(String, Type, usize)>,
    /// `None` for the encoding of data, which has no fixed length.
    pub level: Option<Rc<Level>>,
}

pub(crate) struct Types<'d> {
    raw: HashMap<String, Element<'d>>,
    names_in_order: Vec<String>,
    done: HashMap<String, Type>,
    /// Names that are being resolved: the chain of references.
    chain: Vec<String>,
    pub rust_names: Names,
    pub enums: Vec<Rc<EnumType>>,
    pub sets: Vec<Rc<SetType>>,
    pub composites: Vec<Rc<Level>>,
}

impl<'d> Types<'d> {
    /// Collects the types of all `<types>` elements.
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
                    format!("one definition; the first is in line {} of {}", first.line, first.file),
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
            rust_names: Names::default(),
            enums: Vec::new(),
            sets: Vec::new(),
            composites: Vec::new(),
        })
    }

    /// Resolves every type, so that an unused one is checked too.
    pub(crate) fn resolve_all(&mut self) -> Result<(), SchemaError> {
        for name in self.names_in_order.clone() {
            if let Some(element) = self.raw.get(&name).cloned() {
                self.named(&name, &element, "name")?;
            }
        }
        Ok(())
    }

    /// The type that an attribute of `user` names.
    pub(crate) fn named(&mut self, name: &str, user: &Element<'d>, attribute: &str) -> Result<Type, SchemaError> {
        if let Some(done) = self.done.get(name) {
            return Ok(done.clone());
        }
        if let Some(primitive) = Primitive::named(name) {
            return Ok(Type::Encoded(Rc::new(Encoded::plain(primitive, user)?)));
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

    fn resolve(&mut self, element: &Element<'d>, name: &str) -> Result<Type, SchemaError> {
        match element.name() {
            "type" => Ok(Type::Encoded(Rc::new(self.encoded(element)?))),
            "enum" => Ok(Type::Enum(self.enumeration(element, name)?)),
            "set" => Ok(Type::Set(self.set(element, name)?)),
            "composite" => Ok(Type::Composite(self.composite(element, name)?)),
            other => Err(element.error(
                format!("<{other}> is not a type"),
                "<type>, <composite>, <enum>, <set> or, in a composite, <ref>",
            )),
        }
    }

    fn encoded(&mut self, element: &Element<'d>) -> Result<Encoded, SchemaError> {
        let primitive_name = element.required("primitiveType")?;
        let Some(primitive) = Primitive::named(primitive_name) else {
            let known: Vec<_> = Primitive::ALL.iter().map(|(name, _)| *name).collect();
            return Err(element
                .attribute_location("primitiveType")
                .error(format!("unknown primitive type {primitive_name:?}"), known.join(", ")));
        };
        let mut encoded = Encoded::plain(primitive, element)?;
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
        encoded.charset = match element.attribute("characterEncoding") {
            None if primitive == Primitive::Char => Some(Charset::Utf8),
            None => None,
            Some(_) if encoded.length == 1 && primitive != Primitive::Char => None,
            Some(text) => Some(charset(text).ok_or_else(|| {
                element
                    .attribute_location("characterEncoding")
                    .error(format!("unknown character encoding {text:?}"), "US-ASCII, UTF-8 or ISO-8859-1")
            })?),
        };
        match presence(element)? {
            None | Some(Presence::Required) => {}
            Some(Presence::Optional) => encoded.optional = true,
            Some(Presence::Constant) => self.constant(element, &mut encoded, length)?,
        }
        Ok(encoded)
    }

    /// The value of a constant type: in its text, or a `valueRef` to an enum.
    fn constant(
        &mut self,
        element: &Element<'d>,
        encoded: &mut Encoded,
        length: Option<usize>,
    ) -> Result<(), SchemaError> {
        if let Some(value_ref) = element.attribute("valueRef") {
            encoded.constant = Some(self.value_ref(element, value_ref, Some(encoded.primitive))?);
            encoded.value_ref = Some(value_ref.to_owned());
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

    /// `Enum.value` as a constant.
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
        let Type::Enum(of) = self.named(enum_name, element, "valueRef")? else {
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

    /// The primitive type of an enum or set, and its null value.
    fn encoding_type(&mut self, element: &Element<'d>) -> Result<Rc<Encoded>, SchemaError> {
        let name = element.required("encodingType")?;
        let resolved = self.named(name, element, "encodingType")?;
        match resolved {
            Type::Encoded(encoded) if encoded.length == 1 && encoded.constant.is_none() => Ok(encoded),
            _ => Err(element.attribute_location("encodingType").error(
                format!("the encoding type {name:?} is not a single number"),
                "a primitive type or such a <type>",
            )),
        }
    }

    fn enumeration(&mut self, element: &Element<'d>, name: &str) -> Result<Rc<EnumType>, SchemaError> {
        let encoding = self.encoding_type(element)?;
        let primitive = encoding.primitive;
        if primitive.is_float() {
            let place = element.attribute_location("encodingType");
            return Err(place.error("an enum of floating point numbers", "char or an integer type"));
        }
        let null = match element.attribute("nullValue") {
            Some(text) => parse_number(primitive, text, &element.attribute_location("nullValue"), "nullValue")?,
            None => encoding.null,
        };
        let mut names = Names::default();
        let mut values: Vec<EnumValue> = Vec::new();
        for child in element.children() {
            if child.name() != "validValue" {
                return Err(child.error(format!("<{}> in <enum>", child.name()), "<validValue>"));
            }
            let value_name = child.symbol()?;
            let number = parse_number(primitive, child.text(), &child.location(), "the value")?;
            number_in(number, encoding.min, encoding.max, &child.location(), "the value")?;
            let Number::Integer(integer) = number else {
                return Err(child.error("the value is not an integer", "an integer"));
            };
            if number == null {
                return Err(child.error(format!("value {value_name:?} is the null value"), "another number"));
            }
            for other in &values {
                if other.name == value_name || other.number == integer {
                    return Err(child.error(
                        format!("value {value_name:?} = {integer} repeats {:?} = {}", other.name, other.number),
                        "names and numbers that differ",
                    ));
                }
            }
            let rust = names.claim_variant(&value_name);
            values.push(EnumValue { rust, name: value_name, number: integer, notes: notes(&child)? });
        }
        if values.is_empty() {
            return Err(element.error(format!("enum {name:?} has no values"), "at least one <validValue>"));
        }
        let rust = self.rust_names.claim_type(name);
        let notes = notes(element)?;
        let of = Rc::new(EnumType { name: name.to_owned(), rust, primitive, null, notes, values });
        self.enums.push(of.clone());
        Ok(of)
    }

    fn set(&mut self, element: &Element<'d>, name: &str) -> Result<Rc<SetType>, SchemaError> {
        let primitive = self.encoding_type(element)?.primitive;
        if !primitive.is_unsigned() {
            let place = element.attribute_location("encodingType");
            return Err(place.error("a set of another type", "uint8, uint16, uint32 or uint64"));
        }
        let mut names = Names::default();
        let bits = primitive.size() as u32 * 8;
        let mut choices: Vec<Choice> = Vec::new();
        for child in element.children() {
            if child.name() != "choice" {
                return Err(child.error(format!("<{}> in <set>", child.name()), "<choice>"));
            }
            let choice_name = child.symbol()?;
            let bit = match child.text().parse::<u32>() {
                Ok(bit) if bit < bits => bit,
                _ => {
                    let expected = format!("the number of a bit, 0 to {}", bits - 1);
                    return Err(child.error(format!("choice {choice_name:?} is {:?}", child.text()), expected));
                }
            };
            for other in &choices {
                if other.name == choice_name || other.bit == bit {
                    return Err(child.error(
                        format!("choice {choice_name:?} = {bit} repeats {:?} = {}", other.name, other.bit),
                        "names and bits that differ",
                    ));
                }
            }
            let rust = names.claim_choice(&choice_name);
            choices.push(Choice { rust, name: choice_name, bit, notes: notes(&child)? });
        }
        let rust = self.rust_names.claim_type(name);
        let of = Rc::new(SetType { name: name.to_owned(), rust, primitive, notes: notes(element)?, choices });
        self.sets.push(of.clone());
        Ok(of)
    }

    fn composite(&mut self, element: &Element<'d>, name: &str) -> Result<Rc<Composite>, SchemaError> {
        let mut methods = Names::default();
        let mut variants = Names::default();
        let mut members = Vec::new();
        let mut fields: Vec<Field> = Vec::new();
        let mut end = 0usize;
        let mut of_fixed_length = true;
        for (index, child) in element.children().enumerate() {
            let member = child.symbol()?;
            if members.iter().any(|(other, _, _)| *other == member) {
                return Err(child.error(format!("member {member:?} is there twice"), "names that differ"));
            }
            let resolved = match child.name() {
                "ref" => self.named(child.required("type")?, &child, "type")?,
                _ => self.inline(&child, name, &member)?,
            };
            let kind = match &resolved {
                Type::Encoded(encoded) if encoded.length == 0 && encoded.constant.is_none() => None,
                other => Some(other.kind(&child)?),
            };
            let offset = super::values::offset(&child, end)?;
            if let Some(kind) = kind {
                let length = kind.length();
                let optional = matches!(&resolved, Type::Encoded(encoded) if encoded.optional)
                    || presence(&child)? == Some(Presence::Optional);
                let mut notes = notes(&child)?;
                if let (Type::Encoded(encoded), "ref") = (&resolved, child.name()) {
                    notes.since = notes.since.max(encoded.notes.since);
                }
                end = offset.checked_add(length).filter(|end| *end <= ARRAY_LENGTH_MAX).ok_or_else(|| {
                    child.error("the composite is too long", format!("at most {ARRAY_LENGTH_MAX} bytes"))
                })?;
                fields.push(Field {
                    rust: methods.claim_method(&member),
                    variant: variants.claim_variant(&member),
                    name: member.clone(),
                    number: index as u32 + 1,
                    kind,
                    optional,
                    offset,
                    notes,
                });
            } else {
                of_fixed_length = false;
            }
            members.push((member, resolved, offset));
        }
        if members.is_empty() {
            return Err(element
                .error(format!("composite {name:?} has no members"), "<type>, <enum>, <set>, <composite> or <ref>"));
        }
        let mut level = None;
        if of_fixed_length {
            let rust = self.rust_names.claim_type(name);
            let new = Rc::new(Level {
                path: name.to_owned(),
                rust,
                notes: notes(element)?,
                base_version: 0,
                block_length: end,
                fields,
                groups: Vec::new(),
                data: Vec::new(),
            });
            self.composites.push(new.clone());
            level = Some(new);
        }
        Ok(Rc::new(Composite { members, level }))
    }

    /// A type that is defined inside of a composite; its Rust name carries the composite's if it is taken.
    fn inline(&mut self, element: &Element<'d>, composite: &str, member: &str) -> Result<Type, SchemaError> {
        let taken = self.raw.contains_key(member) || self.rust_names.is_taken(&pascal(member));
        let name = if taken { format!("{composite}_{member}") } else { member.to_owned() };
        self.resolve(element, &name)
    }
}

impl Type {
    /// The type as what a field holds.
    pub(crate) fn kind(&self, user: &Element<'_>) -> Result<Kind, SchemaError> {
        match self {
            Self::Encoded(encoded) => encoded.kind(user),
            Self::Enum(of) => Ok(Kind::Enum { of: of.clone(), null: of.null }),
            Self::Set(of) => Ok(Kind::Set(of.clone())),
            Self::Composite(composite) => match &composite.level {
                Some(level) => Ok(Kind::Composite(level.clone())),
                None => {
                    Err(user.error("a composite with data of variable length", "a type of fixed length, or <data>"))
                }
            },
        }
    }
}

impl Encoded {
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
            value_ref: None,
            constant_without_value: false,
            notes: notes(element)?,
        })
    }

    fn kind(&self, user: &Element<'_>) -> Result<Kind, SchemaError> {
        if let Some(constant) = &self.constant {
            return Ok(Kind::Constant(constant.clone()));
        }
        if self.constant_without_value {
            return Err(user.error("a constant without a value", "text inside of the <type>, or a valueRef"));
        }
        let Self { primitive, length, null, min, max, .. } = *self;
        match length {
            0 => Err(user.error("a type of length 0", "a type of fixed length, or <data>")),
            1 => Ok(Kind::Scalar { primitive, null, min, max }),
            _ => {
                let charset = self.charset.filter(|_| matches!(primitive, Primitive::Char | Primitive::Uint8));
                Ok(Kind::Array { primitive, length, null, charset })
            }
        }
    }
}

/// The attribute `presence`.
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

/// A character encoding by its name; ASCII is a part of UTF-8.
pub(crate) fn charset(name: &str) -> Option<Charset> {
    match name.to_ascii_uppercase().replace('_', "-").as_str() {
        "ASCII" | "US-ASCII" | "UTF-8" | "UTF8" => Some(Charset::Utf8),
        "ISO-8859-1" | "LATIN1" | "LATIN-1" => Some(Charset::Latin1),
        _ => None,
    }
}
