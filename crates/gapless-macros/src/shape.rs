//! Shape of a type, written by derived code: its fields or variants, by name and type.

use crate::serde_attributes::{self, AttributePlace, SerdeAttributes};
use proc_macro2::{Span, TokenStream as Tokens};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, LitInt, LitStr, Result, Type};

const NAME_LENGTH_MAX: usize = 256;

/// Derived trait; its options are in the attribute of the same name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Derived {
    Message,
    State,
}

impl Derived {
    const fn attribute(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::State => "state",
        }
    }
}

/// Options of a field or variant.
#[derive(Default)]
pub struct PartOptions {
    pub since: Option<(u32, Span)>,
    pub shape: Option<String>,
    pub is_deterministic: bool,
}

#[derive(Clone, Copy)]
pub struct TypeAttributes {
    pub derived: Derived,
    pub shape: bool,
    pub default: bool,
}

/// A field or a variant.
pub struct TypePart {
    pub ident: Ident,
    pub since: u32,
    pub shape: Tokens,
}

pub fn part_options(attributes: &[Attribute], derived: Derived) -> Result<PartOptions> {
    let mut options = PartOptions::default();
    for attribute in attributes_of(attributes, derived) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("since") && derived == Derived::Message {
                let since = meta.value()?.parse()?;
                let number = number(&since, 2, "`since` begins at 2; parts of version 1 need none")?;
                options.since = Some((number, since.span()));
            } else if meta.path.is_ident("shape") {
                options.shape = Some(filled_text(&meta.value()?.parse()?)?);
            } else if meta.path.is_ident("deterministic") {
                options.is_deterministic = true;
            } else {
                return Err(meta.error(match derived {
                    Derived::Message => "`since`, `shape` or `deterministic` is expected here",
                    Derived::State => "`deterministic` or `shape` is expected here",
                }));
            }
            Ok(())
        })?;
    }
    Ok(options)
}

pub fn attributes_of(attributes: &[Attribute], derived: Derived) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(move |attribute| attribute.path().is_ident(derived.attribute()))
}

pub fn number(literal: &LitInt, least: u32, otherwise: &str) -> Result<u32> {
    let number = literal.base10_parse::<u32>()?;
    if number < least { Err(Error::new(literal.span(), otherwise)) } else { Ok(number) }
}

/// Name of a type for the peer and in snapshots.
pub fn name_text(literal: &LitStr) -> Result<String> {
    let name = filled_text(literal)?;
    if name.len() > NAME_LENGTH_MAX {
        return Err(Error::new(literal.span(), format!("a name has at most {NAME_LENGTH_MAX} bytes")));
    }
    Ok(name)
}

pub fn filled_text(literal: &LitStr) -> Result<String> {
    let text = literal.value();
    if text.is_empty() {
        Err(Error::new(literal.span(), "a text is expected, an empty one was found"))
    } else {
        Ok(text)
    }
}

pub fn unknown_shape(name: &str, span: Span, derived: Derived) -> Error {
    let attribute = derived.attribute();
    Error::new(
        span,
        format!("the encoding by `{name}` has no known shape: add `#[{attribute}(shape = \"a name and a version\")]`"),
    )
}

/// Fields or variants, with the opening and closing text of the definition.
pub fn parts(input: &DeriveInput, has: TypeAttributes) -> Result<(Vec<TypePart>, &'static str, &'static str)> {
    match &input.data {
        Data::Struct(data) => {
            let (before, after) = match &data.fields {
                Fields::Named(_) => (" {", "}"),
                Fields::Unnamed(_) => (" (", ")"),
                Fields::Unit => ("", ""),
            };
            Ok((fields(&data.fields, true, has)?, before, after))
        }
        Data::Enum(data) => {
            let mut parts = Vec::new();
            for variant in &data.variants {
                let serde = serde_attributes::read(&variant.attrs, AttributePlace::Variant)?;
                let options = part_options(&variant.attrs, has.derived)?;
                if options.is_deterministic {
                    return Err(Error::new(variant.ident.span(), "`deterministic` belongs on a field"));
                }
                let (before, after) = match &variant.fields {
                    Fields::Named(_) => (" {", "}"),
                    Fields::Unnamed(_) => ("(", ")"),
                    Fields::Unit => ("", ""),
                };
                let label = format!("{}{}", variant.ident.unraw(), serde.renamed);
                let inner = match (&options.shape, &serde.replaced) {
                    (Some(shape), _) => quote!(writer.text(": "); writer.text(#shape);),
                    (None, Some((name, span))) if !has.shape => return Err(unknown_shape(name, *span, has.derived)),
                    _ => {
                        let shapes = fields(&variant.fields, false, has)?;
                        let shapes = shapes.iter().map(|part| &part.shape);
                        quote!(writer.text(#before); #(#shapes)* writer.text(#after);)
                    }
                };
                parts.push(TypePart {
                    ident: variant.ident.clone(),
                    since: options.since.map_or(1, |(since, _)| since),
                    shape: quote!(writer.item(#label); #inner),
                });
            }
            Ok((parts, " enum {", "}"))
        }
        Data::Union(data) => {
            Err(Error::new(data.union_token.span(), "serde does not know unions: a struct or an enum is expected"))
        }
    }
}

/// `may_grow`: fields may have a `since`.
fn fields(fields: &Fields, may_grow: bool, has: TypeAttributes) -> Result<Vec<TypePart>> {
    let mut parts = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let serde = serde_attributes::read(&field.attrs, AttributePlace::Field)?;
        let options = part_options(&field.attrs, has.derived)?;
        if let Some((_, span)) = options.since {
            check_since(field, &serde, may_grow, has, span)?;
        }
        if serde.is_skipped && has.derived == Derived::State && !options.is_deterministic {
            let text =
                "a restored state has the default here: add `#[state(deterministic)]` if that changes no outcome";
            return Err(Error::new(field.ty.span(), text));
        }
        if serde.is_skipped {
            continue;
        }
        let shape = match (&options.shape, &serde.replaced) {
            (Some(shape), _) => quote!(writer.text(#shape);),
            (None, Some((name, span))) if !has.shape => return Err(unknown_shape(name, *span, has.derived)),
            _ => shape_of_type(&field.ty),
        };
        let label = match &field.ident {
            Some(ident) => format!("{}{}: ", ident.unraw(), serde.renamed),
            None => String::new(),
        };
        parts.push(TypePart {
            ident: field.ident.clone().unwrap_or_else(|| Ident::new(&format!("field_{index}"), field.span())),
            since: options.since.map_or(1, |(since, _)| since),
            shape: quote!(writer.item(#label); #shape),
        });
    }
    Ok(parts)
}

/// Spanned at the type, so that an unknown shape is an error there; `writer` still resolves at the call site.
fn shape_of_type(ty: &Type) -> Tokens {
    let place = Span::call_site().located_at(ty.span());
    quote_spanned!(place=> writer.of::<#ty>();)
}

fn check_since(
    field: &syn::Field,
    serde: &SerdeAttributes,
    may_grow: bool,
    has: TypeAttributes,
    span: Span,
) -> Result<()> {
    let wrong = if !may_grow {
        "fields of a variant cannot be added later: add a variant"
    } else if field.ident.is_none() {
        "only named fields can come with a later version"
    } else if serde.is_skipped {
        "a field that is not written belongs to every version"
    } else if !serde.has_default && !has.default {
        "`#[serde(default)]` is missing: older programs do not write the field"
    } else if serde.replaced.is_some() {
        "a field that serde writes by a function of its own cannot come with a later version"
    } else {
        return Ok(());
    };
    Err(Error::new(span, wrong))
}

/// `shape` replaces the parts; `before` and `after` enclose them.
pub fn definition(
    shape: Option<&str>,
    serde: &SerdeAttributes,
    parts: &[TypePart],
    (before, after): (&str, &str),
) -> Tokens {
    if let Some(shape) = shape {
        let text = format!(" = {shape}");
        return quote!(writer.text(#text););
    }
    let parts = parts.iter().map(|TypePart { since, shape, .. }| match since {
        1 => shape.clone(),
        _ => quote!(if version >= #since { #shape }),
    });
    let after = format!("{after}{}", serde.renamed);
    quote!(writer.text(#before); #(#parts)* writer.text(#after);)
}
