//! Reads the `<composite>`s of a schema.

use std::collections::HashSet;
use std::rc::Rc;

use super::error::SchemaError;
use super::model::{FieldModel, Level};
use super::names::{NameScope, pascal};
use super::types::{ARRAY_LENGTH_MAX, Composite, Presence, SchemaType, TypeTable, presence};
use super::values::{notes, offset};
use super::versions;
use super::xml::Element;

/// Nested ones included: they are visited often.
const MEMBERS_MAX: usize = 4_096;

impl<'d> TypeTable<'d> {
    pub(super) fn composite(&mut self, element: &Element<'d>, name: &str) -> Result<Rc<Composite>, SchemaError> {
        let mut methods = NameScope::default();
        let mut variants = NameScope::default();
        let mut members = Vec::new();
        let mut fields: Vec<FieldModel> = Vec::new();
        let mut end = 0usize;
        let mut of_fixed_length = true;
        let (mut seen, mut members_in_all) = (HashSet::new(), 1);
        for (index, child) in element.children().enumerate() {
            let member = child.symbol()?;
            if !seen.insert(member.clone()) {
                return Err(child.error(format!("member {member:?} is there twice"), "names that differ"));
            }
            let resolved = match child.name() {
                "ref" => self.named(child.required("type")?, &child, "type")?,
                _ => self.inline(&child, name, &member)?,
            };
            let kind = match &resolved {
                SchemaType::Encoded(encoded) if encoded.length == 0 && encoded.constant.is_none() => None,
                other => Some(other.kind(&child)?),
            };
            let offset = offset(&child, end)?;
            if let Some(kind) = kind {
                members_in_all += kind.members();
                if members_in_all > MEMBERS_MAX {
                    let problem =
                        format!("composite {name:?} has more than {MEMBERS_MAX} members with those of its own");
                    return Err(
                        child.error(problem, "fewer: each composite in a composite counts with all its members")
                    );
                }
                let length = kind.length();
                let optional = matches!(&resolved, SchemaType::Encoded(encoded) if encoded.optional)
                    || presence(&child)? == Some(Presence::Optional);
                let mut notes = notes(&child)?;
                if let (SchemaType::Encoded(encoded), "ref") = (&resolved, child.name()) {
                    notes.since = notes.since.max(encoded.notes.since);
                }
                end = offset.checked_add(length).filter(|end| *end <= ARRAY_LENGTH_MAX).ok_or_else(|| {
                    child.error("the composite is too long", format!("at most {ARRAY_LENGTH_MAX} bytes"))
                })?;
                fields.push(FieldModel {
                    rust: methods.claim_method(&member),
                    variant: variants.claim_variant(&member),
                    name: member.clone(),
                    number: index as u32 + 1,
                    kind,
                    optional,
                    offset,
                    has_offset: child.attribute("offset").is_some(),
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
        versions::check_fields(&fields, 0)?;
        let mut level = None;
        if of_fixed_length {
            let rust = self.rust_names.claim_type(name);
            let new = Rc::new(Level {
                path: name.to_owned(),
                rust,
                notes: notes(element)?,
                base_version: 0,
                block_length: end,
                members_in_all,
                fields,
                groups: Vec::new(),
                data: Vec::new(),
            });
            self.composites.push(new.clone());
            level = Some(new);
        }
        Ok(Rc::new(Composite { members, level }))
    }

    /// Reads a type defined inside of a composite. Its Rust name is prefixed with the composite's if it is taken.
    fn inline(&mut self, element: &Element<'d>, composite: &str, member: &str) -> Result<SchemaType, SchemaError> {
        let taken = self.raw.contains_key(member) || self.rust_names.is_taken(&pascal(member));
        let name = if taken { format!("{composite}_{member}") } else { member.to_owned() };
        self.resolve(element, &name)
    }
}
