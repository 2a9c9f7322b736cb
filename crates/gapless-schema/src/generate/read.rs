//! Reads a schema file as a `Schema`: the root element, the message header, and the messages with their groups and
//! data.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::attributes;
use super::error::{Location, SchemaError, SchemaSource};
use super::model::{
    Charset, DataModel, FieldKind, FieldModel, GroupDimension, GroupModel, HeaderLayout, IntegerSlot, Level,
    MessageModel, Primitive, Schema,
};
use super::names::{NameScope, pascal};
use super::types::{Composite, EncodedType, Presence, SchemaType, TypeTable, presence};
use super::values::{notes, offset};
use super::versions;
use super::xml::{self, Element};

/// The longest payload of a frame.
const BLOCK_LENGTH_MAX: usize = 1 << 20;
/// Fields of all messages, with the members of their composites: each is visited often, and nested composites grow
/// exponentially.
const MEMBERS_MAX: usize = 100_000;

/// The first of `sources` has the root element.
pub(crate) fn schema(sources: &[Rc<SchemaSource>]) -> Result<Schema, SchemaError> {
    let documents = sources.iter().map(xml::parse).collect::<Result<Vec<_>, _>>()?;
    let roots: Vec<Element<'_>> =
        documents.iter().zip(sources).map(|(document, source)| Element::root(document, source)).collect();
    let Some(root) = roots.first() else { unreachable!("a schema has a first source") };
    if root.name() != "messageSchema" {
        return Err(root.error(format!("the root element is <{}>", root.name()), "<messageSchema>"));
    }
    roots.iter().try_for_each(attributes::check)?;
    let mut blocks = Vec::new();
    let mut message_elements = Vec::new();
    for (index, file) in roots.iter().enumerate() {
        if index > 0 && file.name() == "types" {
            blocks.push(file.clone());
            continue;
        }
        for child in file.children() {
            match child.name() {
                "types" => blocks.push(child),
                "message" => message_elements.push(child),
                "include" => {}
                other => {
                    return Err(child.error(format!("unknown element <{other}>"), "<types>, <message> or xi:include"));
                }
            }
        }
    }
    let version = root.number("version", "a version, from 0")?.unwrap_or(0);
    let mut reader = MessageReader { types: TypeTable::collect(&blocks)?, version, members: 0 };
    reader.types.resolve_all()?;
    let header_name = root.attribute("headerType").unwrap_or("messageHeader");
    let header = reader.header(root, header_name)?;
    let mut messages: Vec<MessageModel> = Vec::new();
    let mut seen_ids: HashMap<u16, String> = HashMap::new();
    let mut seen_names: HashSet<String> = HashSet::new();
    for element in &message_elements {
        let message = reader.message(element, &header)?;
        if let Some(other) = seen_ids.insert(message.template_id, message.name.clone()) {
            let problem = format!("message {:?} has the id {} of {other:?}", message.name, message.template_id);
            return Err(element.attribute_location("id").error(problem, "ids that differ"));
        }
        if !seen_names.insert(message.name.clone()) {
            let problem = format!("message {:?} is there twice", message.name);
            return Err(element.attribute_location("name").error(problem, "names that differ"));
        }
        messages.push(message);
    }
    let mut composites = reader.types.composites;
    let mut used = Vec::new();
    messages.iter().for_each(|message| collect_composites(&message.level, &mut used));
    // Headers, dimensions and encodings of data need no types of their own.
    composites.retain(|level| used.iter().any(|other| Rc::ptr_eq(level, other)));
    let text = |name: &str| root.attribute(name).map(str::to_owned);
    Ok(Schema {
        // Appears in comments of generated files.
        package: text("package").unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "),
        id: root.number("id", "a schema id from 0 to 65535")?.ok_or_else(|| {
            root.error("<messageSchema> has no attribute \"id\"", "id=\"…\", a number from 0 to 65535")
        })?,
        version,
        semantic_version: text("semanticVersion"),
        description: text("description"),
        big_endian: match root.attribute("byteOrder") {
            None | Some("littleEndian") => false,
            Some("bigEndian") => true,
            Some(other) => {
                let place = root.attribute_location("byteOrder");
                return Err(place.error(format!("byteOrder is {other:?}"), "littleEndian or bigEndian"));
            }
        },
        header,
        enums: reader.types.enums,
        sets: reader.types.sets,
        composites,
        messages,
    })
}

fn collect_composites(level: &Level, used: &mut Vec<Rc<Level>>) {
    for field in &level.fields {
        if let FieldKind::Composite(inner) = &field.kind
            && !used.iter().any(|other| Rc::ptr_eq(inner, other))
        {
            used.push(inner.clone());
            collect_composites(inner, used);
        }
    }
    level.groups.iter().for_each(|group| collect_composites(&group.level, used));
}

struct MessageReader<'d> {
    types: TypeTable<'d>,
    version: u64,
    members: usize,
}

impl<'d> MessageReader<'d> {
    fn header(&mut self, root: &Element<'d>, name: &str) -> Result<HeaderLayout, SchemaError> {
        let SchemaType::Composite(composite) = self.types.named(name, root, "headerType").map_err(|_| {
            root.error(
                format!("the header type {name:?} is missing"),
                "a composite with blockLength, templateId, schemaId and version",
            )
        })?
        else {
            return Err(root.error(format!("the header type {name:?} is not a composite"), "a composite"));
        };
        let slot = |member: &str| slot(&composite, root, name, member).map(|(slot, _)| slot);
        Ok(HeaderLayout {
            length: composite.level.as_ref().map_or(0, |level| level.block_length),
            block_length: slot("blockLength")?,
            template_id: slot("templateId")?,
            schema_id: slot("schemaId")?,
            version: slot("version")?,
        })
    }

    fn message(&mut self, element: &Element<'d>, header: &HeaderLayout) -> Result<MessageModel, SchemaError> {
        let name = element.symbol()?;
        let template_id: u16 = element
            .number("id", "a template id from 0 to 65535")?
            .ok_or_else(|| element.error("<message> has no attribute \"id\"", "a number from 0 to 65535"))?;
        let mut type_name = pascal(&name);
        if self.types.rust_names.is_taken(&type_name) {
            type_name.push_str("Message");
        }
        let level = self.level(element, &name, &type_name, 0, header.block_length, false)?;
        Ok(MessageModel { name, template_id, level })
    }

    fn level(
        &mut self,
        element: &Element<'d>,
        path: &str,
        type_name: &str,
        base_version: u64,
        block_slot: IntegerSlot,
        is_entry: bool,
    ) -> Result<Level, SchemaError> {
        let own = notes(element)?;
        self.check_version(element, own.since)?;
        let base_version = base_version.max(own.since);
        let mut level = Level {
            path: path.to_owned(),
            rust: self.types.rust_names.claim_type(type_name),
            notes: own,
            base_version,
            block_length: 0,
            members_in_all: 0,
            fields: Vec::new(),
            groups: Vec::new(),
            data: Vec::new(),
        };
        let mut scope = LevelScope::default();
        let mut end = 0;
        for child in element.children() {
            let stage = match child.name() {
                "field" => 0,
                "group" => 1,
                "data" => 2,
                other => return Err(child.error(format!("<{other}> in {path}"), "<field>, <group> or <data>")),
            };
            if stage < scope.stage {
                let problem = format!("<{}> comes too late in {path}", child.name());
                return Err(child.error(problem, "fields first, then groups, then data"));
            }
            scope.stage = stage;
            let name = child.symbol()?;
            let number = scope.claim(&child, &name)?;
            let rust = scope.methods.claim_method(&name);
            let variant = scope.variants.claim_variant(&name);
            match stage {
                0 => {
                    let field = self.field(&child, name, rust, variant, number, &mut end)?;
                    level.fields.push(field);
                }
                1 => {
                    let group = self.group(&child, name, rust, variant, number, &level)?;
                    level.groups.push(group);
                }
                _ => level.data.push(self.data(&child, name, rust, variant, number)?),
            }
        }
        versions::check_fields(&level.fields, base_version)?;
        versions::check_members(&level, is_entry)?;
        if level.members() > 200 {
            return Err(element.error(format!("{path} has {} groups and data", level.members()), "at most 200"));
        }
        let given: Option<usize> = element.number("blockLength", "a number of bytes")?;
        level.block_length = match given {
            Some(length) if length < end => {
                let problem = format!("blockLength {length} is too short for the fields of {path}");
                return Err(element.attribute_location("blockLength").error(problem, format!("at least {end}")));
            }
            Some(length) => length,
            None => end,
        };
        let limit = match block_slot {
            IntegerSlot::At { primitive, .. } => primitive.integer_range().1.min(BLOCK_LENGTH_MAX as i128) as usize,
            IntegerSlot::Constant(length) => {
                if length != level.block_length as u64 {
                    let problem = format!("the block of {path} has {} bytes", level.block_length);
                    return Err(element.error(problem, format!("{length}, the constant blockLength")));
                }
                BLOCK_LENGTH_MAX
            }
        };
        if level.block_length > limit {
            let problem = format!("the block of {path} has {} bytes", level.block_length);
            return Err(element.error(problem, format!("at most {limit}, as its blockLength field allows")));
        }
        Ok(level)
    }

    fn field(
        &mut self,
        element: &Element<'d>,
        name: String,
        rust: String,
        variant: String,
        number: u32,
        end: &mut usize,
    ) -> Result<FieldModel, SchemaError> {
        let type_name = element.required("type")?;
        let resolved = self.types.named(type_name, element, "type")?;
        let wanted = presence(element)?;
        let inherited = matches!(&resolved, SchemaType::Encoded(encoded) if encoded.optional);
        let kind = match (wanted, element.attribute("valueRef")) {
            (Some(Presence::Constant), Some(value_ref)) => {
                let primitive = match &resolved {
                    SchemaType::Encoded(encoded) => Some(encoded.primitive),
                    _ => None,
                };
                FieldKind::Constant(self.types.value_ref(element, value_ref, primitive)?)
            }
            (Some(Presence::Constant), None) => match resolved.kind(element)? {
                constant @ FieldKind::Constant(_) => constant,
                _ => {
                    let expected = "a valueRef, or a type with presence=\"constant\" and a value";
                    return Err(element.error(format!("the constant field {name:?} has no value"), expected));
                }
            },
            _ => resolved.kind(element)?,
        };
        let offset = offset(element, *end)?;
        *end = offset.checked_add(kind.length()).filter(|end| *end <= BLOCK_LENGTH_MAX).ok_or_else(|| {
            element
                .error(format!("field {name:?} makes the block too long"), format!("at most {BLOCK_LENGTH_MAX} bytes"))
        })?;
        let mut own = notes(element)?;
        if let SchemaType::Encoded(encoded) = &resolved {
            own.description = own.description.or_else(|| encoded.notes.description.clone());
            own.semantic_type = own.semantic_type.or_else(|| encoded.notes.semantic_type.clone());
            own.time_unit = own.time_unit.or_else(|| encoded.notes.time_unit.clone());
        }
        self.check_version(element, own.since)?;
        self.members += kind.members();
        if self.members > MEMBERS_MAX {
            let problem =
                format!("the messages have more than {MEMBERS_MAX} fields with the members of their composites");
            return Err(element.error(problem, "fewer, or several schemas"));
        }
        let optional = match wanted {
            Some(Presence::Optional) => true,
            Some(_) => false,
            None => inherited,
        };
        let has_offset = element.attribute("offset").is_some();
        Ok(FieldModel { name, rust, variant, number, kind, optional, offset, has_offset, notes: own })
    }

    fn group(
        &mut self,
        element: &Element<'d>,
        name: String,
        rust: String,
        variant: String,
        number: u32,
        parent: &Level,
    ) -> Result<GroupModel, SchemaError> {
        let dimension_name = element.attribute("dimensionType").unwrap_or("groupSizeEncoding");
        let SchemaType::Composite(composite) = self.types.named(dimension_name, element, "dimensionType")? else {
            let place = element.attribute_location("dimensionType");
            return Err(place.error(format!("{dimension_name:?} is not a composite"), "a composite"));
        };
        let (block_length, _) = slot(&composite, element, dimension_name, "blockLength")?;
        let (num_in_group, encoded) = slot(&composite, element, dimension_name, "numInGroup")?;
        let IntegerSlot::At { primitive, .. } = num_in_group else {
            return Err(element.error("numInGroup is a constant", "an unsigned integer"));
        };
        let dimension = GroupDimension {
            length: composite.level.as_ref().map_or(0, |level| level.block_length),
            block_length,
            num_in_group,
            num_max: length_max(&encoded, primitive),
        };
        let path = format!("{}.{name}", parent.path);
        let type_name = format!("{}{}", parent.rust, pascal(&name));
        let level = self.level(element, &path, &type_name, parent.base_version, block_length, true)?;
        Ok(GroupModel { name, rust, variant, number, dimension, level })
    }

    fn data(
        &mut self,
        element: &Element<'d>,
        name: String,
        rust: String,
        variant: String,
        number: u32,
    ) -> Result<DataModel, SchemaError> {
        let type_name = element.required("type")?;
        let place = element.attribute_location("type");
        let wrong = || {
            let expected = "a composite of an unsigned integer \"length\" and \"varData\" with length=\"0\"";
            place.error(format!("{type_name:?} is not the encoding of data"), expected)
        };
        let SchemaType::Composite(composite) = self.types.named(type_name, element, "type")? else {
            return Err(wrong());
        };
        let [(length_name, SchemaType::Encoded(length), 0), (data_name, SchemaType::Encoded(data), start)] =
            &composite.members[..]
        else {
            return Err(wrong());
        };
        let bytes = matches!(data.primitive, Primitive::Char | Primitive::Uint8 | Primitive::Int8);
        if length_name != "length"
            || data_name != "varData"
            || !length.primitive.is_unsigned()
            || length.length != 1
            || length.constant.is_some()
            || data.length != 0
            || !bytes
            || *start != length.primitive.size()
        {
            return Err(wrong());
        }
        let own = notes(element)?;
        self.check_version(element, own.since)?;
        let charset = match super::types::charset(element)? {
            Some(named) => Some(named),
            None if data.primitive == Primitive::Char => Some(data.charset.unwrap_or(Charset::Utf8)),
            None => data.charset,
        };
        let length_max = length_max(length, length.primitive);
        Ok(DataModel { name, rust, variant, number, length: length.primitive, length_max, charset, notes: own })
    }

    fn check_version(&self, element: &Element<'_>, since: u64) -> Result<(), SchemaError> {
        if since <= self.version {
            return Ok(());
        }
        let problem = format!("sinceVersion {since} is above the version {} of the schema", self.version);
        Err(element.attribute_location("sinceVersion").error(problem, format!("at most {}", self.version)))
    }
}

#[derive(Default)]
struct LevelScope {
    stage: u8,
    methods: NameScope,
    variants: NameScope,
    names: HashMap<String, Location>,
    ids: HashMap<u32, Location>,
}

impl LevelScope {
    fn claim(&mut self, element: &Element<'_>, name: &str) -> Result<u32, SchemaError> {
        let id: u32 = element.number("id", "a number from 0 to 65535")?.ok_or_else(|| {
            element.error(format!("<{}> {name:?} has no attribute \"id\"", element.name()), "a number from 0 to 65535")
        })?;
        if id > u32::from(u16::MAX) {
            let place = element.attribute_location("id");
            return Err(place.error(format!("id is {id}"), "a number from 0 to 65535"));
        }
        let place = element.location();
        if let Some(first) = self.names.insert(name.to_owned(), place.clone()) {
            let problem = format!("the name {name:?} is there twice");
            let expected = format!("another than in line {}", first.line());
            return Err(element.attribute_location("name").error(problem, expected));
        }
        if let Some(first) = self.ids.insert(id, place) {
            let problem = format!("the id {id} is there twice");
            let expected = format!("another than in line {}", first.line());
            return Err(element.attribute_location("id").error(problem, expected));
        }
        Ok(id)
    }
}

fn slot(
    composite: &Rc<Composite>,
    user: &Element<'_>,
    name: &str,
    member: &str,
) -> Result<(IntegerSlot, Rc<EncodedType>), SchemaError> {
    let wrong = |problem: &str| {
        user.error(format!("composite {name:?}: {problem} {member:?}"), "an unsigned integer of that name")
    };
    if composite.level.is_none() {
        return Err(user.error(format!("composite {name:?} has data of variable length"), "members of fixed length"));
    }
    let Some((_, resolved, offset)) = composite.members.iter().find(|(other, _, _)| other == member) else {
        return Err(wrong("there is no member"));
    };
    let SchemaType::Encoded(encoded) = resolved else { return Err(wrong("not a number:")) };
    if !encoded.primitive.is_unsigned() || encoded.length != 1 {
        return Err(wrong("not an unsigned integer:"));
    }
    let slot = match &encoded.constant {
        Some(super::model::Constant::Number(_, super::model::NumberValue::Integer(value))) => {
            IntegerSlot::Constant(*value as u64)
        }
        Some(_) => return Err(wrong("not a number:")),
        None if encoded.constant_without_value => return Err(wrong("a constant without a value:")),
        None => IntegerSlot::At { offset: *offset, primitive: encoded.primitive },
    };
    Ok((slot, encoded.clone()))
}

/// maxValue, or the greatest non-null value.
fn length_max(encoded: &EncodedType, primitive: Primitive) -> u64 {
    match encoded.max {
        Some(super::model::NumberValue::Integer(max)) => max as u64,
        _ => (primitive.integer_range().1 - 1) as u64,
    }
}
