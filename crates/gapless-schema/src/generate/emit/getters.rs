//! The fields, groups and data of direct SBE decoders.

use proc_macro2::TokenStream;
use quote::quote;

use super::super::model::{Charset, DataModel, FieldKind, FieldModel, GroupModel, Level, NumberValue, Primitive};
use super::super::names::snake;
use super::decoder::{data_field, group_field};
use super::values::{
    constant, data_docs, deprecated, docs, field_docs, long, note_lines, number, primitive_type, size,
};
use super::{Emitter, ident};

impl Emitter<'_> {
    pub(super) fn field_getter(&self, level: &Level, field: &FieldModel) -> TokenStream {
        let name = ident(&field.rust);
        let docs = field_docs(level, field);
        let deprecated = deprecated(&field.notes);
        if let FieldKind::Constant(value) = &field.kind {
            let (of, value) = constant(value);
            return quote! {
                #docs
                #deprecated
                #[inline]
                #[must_use]
                pub const fn #name(&self) -> #of {
                    #value
                }
            };
        }
        let mut of = decoded_type(&field.kind);
        let late = level.is_late(field);
        let offset = size(field.offset);
        let length = size(field.kind.known_length());
        let raw = if late {
            let since = long(field.notes.since);
            quote!(late_field::<#length>(self.acting, self.version, #since, #offset)?)
        } else {
            let known = size(level.known_length());
            quote!(field::<#offset, #length, #known>(self.block))
        };
        let value = self.decoded_value(&field.kind, field.offset);
        let mut result = quote!(value);
        if is_option(level, field) {
            of = quote!(Option<#of>);
            let is_null = self.is_null(&field.kind);
            result = quote!(if #is_null { None } else { Some(value) });
        }
        let text = self.text_getter(level, field);
        let range = range_constants(field);
        quote! {
            #docs
            #deprecated
            #[inline]
            #[must_use]
            pub fn #name(&self) -> #of {
                let raw = #raw;
                let value = #value;
                #result
            }
            #text
            #range
        }
    }

    fn decoded_value(&self, kind: &FieldKind, offset: usize) -> TokenStream {
        match kind {
            FieldKind::Scalar { primitive, .. } => self.read(*primitive, &quote!(*raw)),
            FieldKind::Array { primitive, .. } if is_bytes(*primitive) => quote!(raw),
            FieldKind::Array { primitive, length, .. } => {
                let bytes = size(primitive.size());
                let length = size(*length);
                let item = self.read(*primitive, &quote!(items[index]));
                quote! {{
                    let items = raw.as_chunks::<#bytes>().0;
                    core::array::from_fn::<_, #length, _>(|index| #item)
                }}
            }
            FieldKind::Enum { of, .. } => {
                let name = ident(&of.rust);
                let raw = self.read(of.primitive, &quote!(*raw));
                quote!(#name::from_raw(#raw))
            }
            FieldKind::Set(of) => {
                let name = ident(&of.rust);
                let raw = self.read(of.primitive, &quote!(*raw));
                quote!(#name::from_raw(#raw))
            }
            FieldKind::Composite(level) => {
                let name = ident(&format!("{}Decoder", level.rust));
                let versioned = level.is_versioned().then(|| {
                    let offset = size(offset);
                    quote!(, acting: from_offset(self.acting, #offset), version: self.version)
                });
                quote!(#name { block: raw #versioned })
            }
            FieldKind::Constant(_) => quote!(()),
        }
    }

    fn is_null(&self, kind: &FieldKind) -> TokenStream {
        match kind {
            FieldKind::Scalar { primitive, null, .. } => null_test(*primitive, *null, &quote!(value)),
            FieldKind::Array { primitive, null, charset: Some(_), .. } => {
                null_test(*primitive, *null, &quote!(value[0]))
            }
            FieldKind::Array { primitive, null, .. } => {
                let test = null_test(*primitive, *null, &quote!((*value)));
                quote!(value.iter().all(|value| #test))
            }
            FieldKind::Enum { of, null } => {
                let raw = self.read(of.primitive, &quote!(*raw));
                let null = number(of.primitive, *null);
                quote!(#raw == #null)
            }
            FieldKind::Composite(_) => quote!(value.is_null()),
            FieldKind::Set(_) | FieldKind::Constant(_) => quote!(false),
        }
    }

    /// Test of a composite for null, by its first member that takes bytes.
    pub(super) fn composite_is_null(&self, level: &Level) -> TokenStream {
        let first = level.fields.iter().find(|field| !matches!(field.kind, FieldKind::Constant(_)));
        let test = match first {
            Some(first) if !level.is_late(first) => {
                let offset = size(first.offset);
                let length = size(first.kind.known_length());
                let known = size(level.known_length());
                let value = self.decoded_value(&first.kind, first.offset);
                let is_null = self.is_null(&first.kind);
                quote! {
                    let raw = field::<#offset, #length, #known>(self.block);
                    let value = #value;
                    #is_null
                }
            }
            _ => quote!(false),
        };
        quote! {
            /// Whether its first member has the null value, which makes the whole composite null where it is optional.
            #[inline]
            #[must_use]
            pub fn is_null(&self) -> bool {
                #test
            }
        }
    }

    fn text_getter(&self, level: &Level, field: &FieldModel) -> TokenStream {
        let FieldKind::Array { charset: Some(charset), .. } = &field.kind else { return quote!() };
        let runtime = &self.runtime;
        let name = ident(&field.rust);
        let path = format!("{}.{}", level.path, field.name);
        let nullable = is_option(level, field);
        let deprecated = deprecated(&field.notes);
        let docs = docs(&[
            format!("Field `{}` as text, up to the first NUL.", field.name),
            String::new(),
            "# Errors".to_owned(),
            "[`DecodeError::Text`] if it is not in its character encoding.".to_owned(),
        ]);
        let text_name = ident(&format!("{}_str", field.rust));
        if *charset == Charset::Latin1 {
            return quote!();
        }
        let convert = quote!(#runtime::sbe::text::utf8(#runtime::sbe::text::until_nul(bytes), #path));
        let (of, body) = if nullable {
            let body = quote! {
                match self.#name() {
                    Some(bytes) => Ok(Some(#convert?)),
                    None => Ok(None),
                }
            };
            (quote!(Option<&'a str>), body)
        } else {
            (quote!(&'a str), quote!(let bytes = self.#name(); #convert))
        };
        quote! {
            #docs
            #deprecated
            #[inline]
            pub fn #text_name(&self) -> Result<#of, DecodeError> {
                #body
            }
        }
    }

    pub(super) fn group_getter(&self, group: &GroupModel) -> TokenStream {
        let runtime = &self.runtime;
        let name = ident(&group.rust);
        let field = group_field(group);
        let entry = ident(&format!("{}Decoder", group.level.rust));
        let docs =
            docs(&note_lines(&group.level.notes, format!("Group `{}`: an iterator over its entries.", group.name)));
        let deprecated = deprecated(&group.level.notes);
        quote! {
            #docs
            #deprecated
            #[inline]
            #[must_use]
            pub const fn #name(&self) -> #runtime::sbe::Group<'a, #entry<'a>> {
                self.#field
            }
        }
    }

    pub(super) fn data_getter(&self, path: &str, data: &DataModel) -> TokenStream {
        let runtime = &self.runtime;
        let name = ident(&data.rust);
        let field = data_field(data);
        let text_docs = docs(&[
            format!("Data `{}` as text.", data.name),
            String::new(),
            "# Errors".to_owned(),
            "[`DecodeError::Text`] if it is not in its character encoding.".to_owned(),
        ]);
        let path = format!("{path}.{}", data.name);
        let docs = data_docs(data);
        let deprecated = deprecated(&data.notes);
        let text_name = ident(&format!("{}_str", data.rust));
        let text = matches!(data.charset, Some(Charset::Utf8 | Charset::Ascii)).then(|| {
            quote! {
                #text_docs
                #deprecated
                #[inline]
                pub fn #text_name(&self) -> Result<&'a str, DecodeError> {
                    #runtime::sbe::text::utf8(self.#field, #path)
                }
            }
        });
        quote! {
            #docs
            #deprecated
            #[inline]
            #[must_use]
            pub const fn #name(&self) -> &'a [u8] {
                self.#field
            }
            #text
        }
    }
}

/// A set has no null value: only a late one can be absent.
pub(super) fn is_option(level: &Level, field: &FieldModel) -> bool {
    match field.kind {
        FieldKind::Constant(_) => false,
        FieldKind::Set(_) => level.is_late(field),
        _ => level.is_nullable(field),
    }
}

/// Arrays of these types are read in place.
pub(super) const fn is_bytes(primitive: Primitive) -> bool {
    matches!(primitive, Primitive::Char | Primitive::Uint8)
}

fn decoded_type(kind: &FieldKind) -> TokenStream {
    match kind {
        FieldKind::Scalar { primitive, .. } => primitive_type(*primitive),
        FieldKind::Array { primitive, length, .. } => {
            let of = primitive_type(*primitive);
            let length = size(*length);
            if is_bytes(*primitive) { quote!(&'a [u8; #length]) } else { quote!([#of; #length]) }
        }
        FieldKind::Enum { of, .. } => {
            let name = ident(&of.rust);
            quote!(#name)
        }
        FieldKind::Set(of) => {
            let name = ident(&of.rust);
            quote!(#name)
        }
        FieldKind::Composite(level) => {
            let name = ident(&format!("{}Decoder", level.rust));
            quote!(#name<'a>)
        }
        FieldKind::Constant(value) => constant(value).0,
    }
}

/// NaN is not equal to itself.
pub(super) fn null_test(primitive: Primitive, null: NumberValue, value: &TokenStream) -> TokenStream {
    match null {
        NumberValue::Float(null) if null.is_nan() => quote!(#value.is_nan()),
        _ => {
            let null = number(primitive, null);
            quote!(#value == #null)
        }
    }
}

fn range_constants(field: &FieldModel) -> TokenStream {
    let FieldKind::Scalar { primitive, min, max, .. } = &field.kind else { return quote!() };
    let of = primitive_type(*primitive);
    let constant = |suffix: &str, what: &str, value: Option<NumberValue>| {
        value.map(|value| {
            let name = ident(&format!("{}_{suffix}", snake(&field.rust).to_ascii_uppercase()));
            let value = number(*primitive, value);
            let docs = docs(&[format!("The {what} value of `{}`.", field.name)]);
            quote!(#docs pub const #name: #of = #value;)
        })
    };
    let (least, greatest) = (constant("MIN", "least", *min), constant("MAX", "greatest", *max));
    quote!(#least #greatest)
}
