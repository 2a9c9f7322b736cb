//! Plain structs and their SBE form.

use proc_macro2::TokenStream;
use quote::quote;

use super::super::model::{Charset, DataModel, FieldKind, FieldModel, GroupModel, Level, NumberValue};
use super::getters::{is_option, null_test};
use super::values::{constant, data_docs, docs, field_docs, note_lines, number, primitive_type, size};
use super::{Emitter, LevelOwner, ident};

impl Emitter<'_> {
    pub(super) fn object(&self, level: &Level, role: LevelOwner<'_>) -> TokenStream {
        let name = ident(&level.rust);
        let path = &level.path;
        let docs = docs(&note_lines(&level.notes, format!("`{path}` as an object: any field in any order.")));
        let fields = level.fields.iter().filter(|field| !is_constant(field)).map(|field| {
            let name = ident(&field.rust);
            let docs = field_docs(level, field);
            let of = object_type(level, field);
            quote!(#docs pub #name: #of,)
        });
        let groups = level.groups.iter().map(|group| {
            let name = ident(&group.rust);
            let docs = super::values::docs(&note_lines(&group.level.notes, format!("Group `{}`.", group.name)));
            let of = item_type(group);
            quote!(#docs pub #name: Vec<#of>,)
        });
        let data = level.data.iter().map(|data| {
            let name = ident(&data.rust);
            let docs = data_docs(data);
            let of = data_type(data);
            quote!(#docs pub #name: #of,)
        });
        let defaults = level.fields.iter().filter(|field| !is_constant(field)).map(|field| {
            let name = ident(&field.rust);
            let value = match &field.kind {
                _ if has_option(level, field) => quote!(None),
                FieldKind::Array { charset: None, primitive, length, .. } => {
                    let zero = if primitive.is_float() { quote!(0.0) } else { quote!(0) };
                    let length = size(*length);
                    quote!([#zero; #length])
                }
                _ => quote!(Default::default()),
            };
            quote!(#name: #value,)
        });
        let members = level.groups.iter().map(|group| &group.rust).chain(level.data.iter().map(|data| &data.rust));
        let member_defaults = members.map(|name| {
            let name = ident(name);
            quote!(#name: Default::default(),)
        });
        let constants = level.fields.iter().filter_map(|field| match &field.kind {
            FieldKind::Constant(value) => {
                let name = ident(&field.rust.to_ascii_uppercase());
                let docs = field_docs(level, field);
                let (of, value) = constant(value);
                Some(quote!(#docs pub const #name: #of = #value;))
            }
            _ => None,
        });
        let encode = self.object_encode(level, role);
        let decode = self.object_decode(level);
        let length = self.object_length(level, role);
        quote! {
            #docs
            #[derive(Clone, Debug, PartialEq)]
            pub struct #name {
                #(#fields)*
                #(#groups)*
                #(#data)*
            }

            impl Default for #name {
                /// Nulls, zeros, first values of enums, and empty groups and data.
                fn default() -> Self {
                    Self { #(#defaults)* #(#member_defaults)* }
                }
            }

            impl #name {
                #(#constants)*
                #decode
                #encode
                #length
            }
        }
    }

    fn object_decode(&self, level: &Level) -> TokenStream {
        let decoder = ident(&format!("{}Decoder", level.rust));
        let fields = level.fields.iter().filter(|field| !is_constant(field)).map(|field| {
            let name = ident(&field.rust);
            let value = self.field_to_object(level, field);
            quote!(#name: #value,)
        });
        let groups = level.groups.iter().map(|group| {
            let name = ident(&group.rust);
            let item = match group.level.list_field() {
                Some(field) => {
                    let value = ident(&field.rust);
                    quote!(list.push(entry.#value()))
                }
                None => {
                    let entry = ident(&group.level.rust);
                    quote!(list.push(#entry::from_decoder(&entry)?))
                }
            };
            quote! {
                #name: {
                    let entries = decoder.#name();
                    let mut list = Vec::with_capacity(entries.len());
                    for entry in entries {
                        #item;
                    }
                    list
                },
            }
        });
        let data = level.data.iter().map(|data| {
            let name = ident(&data.rust);
            let value =
                self.bytes_to_object(data.charset, &quote!(decoder.#name()), &format!("{}.{}", level.path, data.name));
            quote!(#name: #value,)
        });
        quote! {
            /// Copies what a decoder reads.
            ///
            /// # Errors
            /// [`DecodeError::Text`] if a text is not in its character encoding.
            #[inline]
            pub fn from_decoder(decoder: &#decoder<'_>) -> Result<Self, DecodeError> {
                Ok(Self { #(#fields)* #(#groups)* #(#data)* })
            }
        }
    }

    fn field_to_object(&self, level: &Level, field: &FieldModel) -> TokenStream {
        let runtime = &self.runtime;
        let name = ident(&field.rust);
        let path = format!("{}.{}", level.path, field.name);
        let option = is_option(level, field);
        let (item, convert) = match &field.kind {
            FieldKind::Array { charset: Some(charset), .. } => {
                let text = quote!(#runtime::sbe::text::until_nul(item));
                (quote!(item), self.bytes_to_object(Some(*charset), &text, &path))
            }
            FieldKind::Array { primitive, .. } if super::getters::is_bytes(*primitive) => (quote!(item), quote!(*item)),
            FieldKind::Composite(inner) => {
                let object = ident(&inner.rust);
                (quote!(item), quote!(#object::from_decoder(&item)?))
            }
            FieldKind::Set(_) if option => return quote!(decoder.#name().unwrap_or_default()),
            _ => return quote!(decoder.#name()),
        };
        if option {
            quote!(match decoder.#name() { Some(#item) => Some(#convert), None => None })
        } else {
            quote!({ let #item = decoder.#name(); #convert })
        }
    }

    fn bytes_to_object(&self, charset: Option<Charset>, bytes: &TokenStream, path: &str) -> TokenStream {
        let runtime = &self.runtime;
        match charset {
            Some(Charset::Utf8 | Charset::Ascii) => quote!(#runtime::sbe::text::utf8(#bytes, #path)?.to_owned()),
            Some(Charset::Latin1) => quote!(#runtime::sbe::text::latin1_to_string(#bytes)),
            None => quote!(#bytes.to_vec()),
        }
    }

    fn object_encode(&self, level: &Level, role: LevelOwner<'_>) -> TokenStream {
        let runtime = &self.runtime;
        let encoder = ident(&format!("{}Encoder", level.rust));
        let generics = match role {
            LevelOwner::Entry if level.has_members() => quote!(<'_, '_>),
            _ => quote!(<'_>),
        };
        let fields =
            level.fields.iter().filter(|field| !is_constant(field)).map(|field| self.field_encode(level, field));
        let groups = level.groups.iter().map(|group| {
            let name = ident(&group.rust);
            let item = match group.level.list_field() {
                Some(field) => {
                    let check = self.range_check(&group.level, field, &quote!(*item));
                    let value = ident(&field.rust);
                    quote!(#check group.entry()?.#value(*item);)
                }
                None => quote!(item.encode_into(&mut group.entry()?)?;),
            };
            quote! {
                let mut group = encoder.#name()?;
                for item in &self.#name {
                    #item
                }
            }
        });
        let data = level.data.iter().map(|data| {
            let name = ident(&data.rust);
            let path = format!("{}.{}", level.path, data.name);
            match data.charset {
                Some(Charset::Latin1) => {
                    quote!(encoder.#name(#runtime::sbe::text::latin1_bytes(&self.#name, #path)?)?;)
                }
                _ => quote!(encoder.#name(&self.#name)?;),
            }
        });
        quote! {
            /// Writes all fields. Where null is an empty text or a value of its own, that value becomes null.
            ///
            /// # Errors
            /// The first field that does not fit into the buffer or its range.
            #[inline]
            pub fn encode_into(&self, encoder: &mut #encoder #generics) -> Result<(), EncodeError> {
                #(#fields)*
                #(#groups)*
                #(#data)*
                Ok(())
            }
        }
    }

    fn field_encode(&self, level: &Level, field: &FieldModel) -> TokenStream {
        let name = ident(&field.rust);
        let write = match &field.kind {
            FieldKind::Array { charset: Some(_), .. } => {
                let setter = ident(&format!("{}_str", field.rust));
                quote!(encoder.#setter(value)?;)
            }
            FieldKind::Array { .. } => quote!(encoder.#name(value);),
            FieldKind::Composite(_) => quote!(value.encode_into(&mut encoder.#name())?;),
            _ => {
                let check = self.range_check(level, field, &quote!(*value));
                quote!(#check encoder.#name(*value);)
            }
        };
        if has_option(level, field) {
            quote!(if let Some(value) = &self.#name { #write })
        } else {
            quote!({ let value = &self.#name; #write })
        }
    }

    /// Refuses values outside the schema's range, and values that would be read as null.
    fn range_check(&self, level: &Level, field: &FieldModel, value: &TokenStream) -> TokenStream {
        let path = format!("{}.{}", level.path, field.name);
        let (primitive, null, min, max, number_of) = match &field.kind {
            FieldKind::Scalar { primitive, null, min, max } => (*primitive, *null, *min, *max, quote!((#value))),
            FieldKind::Enum { of, null } => (of.primitive, *null, None, None, quote!((#value).raw())),
            _ => return quote!(),
        };
        let mut tests = Vec::new();
        // NaN means null, so it is allowed.
        let nan = matches!(null, NumberValue::Float(null) if null.is_nan());
        if level.is_nullable(field) && !nan {
            tests.push(null_test(primitive, null, &number_of));
        }
        let zero_min = min == Some(NumberValue::Integer(0)) && !primitive.is_signed();
        if let Some(min) = min.filter(|_| !zero_min) {
            let min = number(primitive, min);
            tests.push(quote!(#number_of < #min));
        }
        let (_, greatest) = primitive.integer_range();
        if let Some(max) = max.filter(|max| *max != NumberValue::Integer(greatest)) {
            let max = number(primitive, max);
            tests.push(quote!(#number_of > #max));
        }
        if tests.is_empty() {
            return quote!();
        }
        let range = match (min, max) {
            (None, None) => "of its type without the null value".to_owned(),
            (min, max) => {
                let text = |number: Option<NumberValue>| number.map_or("…".to_owned(), |number| number.to_string());
                format!("{} to {}", text(min), text(max))
            }
        };
        quote! {
            if #(#tests)||* {
                return Err(EncodeError::Range { field: #path, range: #range });
            }
        }
    }

    fn object_length(&self, level: &Level, role: LevelOwner<'_>) -> TokenStream {
        if matches!(role, LevelOwner::Composite) {
            return quote!();
        }
        let block = size(level.block_length);
        let groups = level.groups.iter().map(|group| {
            let name = ident(&group.rust);
            let dimension = size(group.dimension.length);
            let entry = size(group.level.block_length);
            if group.level.has_members() {
                quote!(+ #dimension + self.#name.iter().map(|entry| entry.sbe_body_length()).sum::<usize>())
            } else {
                quote!(+ #dimension + self.#name.len() * #entry)
            }
        });
        let data = level.data.iter().map(|data| {
            let name = ident(&data.rust);
            let prefix = size(data.length.size());
            match data.charset {
                Some(Charset::Latin1) => quote!(+ #prefix + self.#name.chars().count()),
                _ => quote!(+ #prefix + self.#name.len()),
            }
        });
        quote! {
            /// Bytes of the SBE form, without message header and dimensions.
            #[must_use]
            pub fn sbe_body_length(&self) -> usize {
                #block #(#groups)* #(#data)*
            }
        }
    }
}

pub(super) const fn is_constant(field: &FieldModel) -> bool {
    matches!(field.kind, FieldKind::Constant(_))
}

/// Absent sets are empty.
pub(super) fn has_option(level: &Level, field: &FieldModel) -> bool {
    is_option(level, field) && !matches!(field.kind, FieldKind::Set(_))
}

fn object_type(level: &Level, field: &FieldModel) -> TokenStream {
    let of = match &field.kind {
        FieldKind::Scalar { primitive, .. } => primitive_type(*primitive),
        FieldKind::Array { charset: Some(_), .. } => quote!(String),
        FieldKind::Array { primitive, length, .. } => {
            let of = primitive_type(*primitive);
            let length = size(*length);
            quote!([#of; #length])
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
            let name = ident(&level.rust);
            quote!(#name)
        }
        FieldKind::Constant(value) => constant(value).0,
    };
    if has_option(level, field) { quote!(Option<#of>) } else { of }
}

pub(super) fn item_type(group: &GroupModel) -> TokenStream {
    match group.level.list_field() {
        Some(field) => object_type(&group.level, field),
        None => {
            let name = ident(&group.level.rust);
            quote!(#name)
        }
    }
}

fn data_type(data: &DataModel) -> TokenStream {
    if data.charset.is_some() { quote!(String) } else { quote!(Vec<u8>) }
}
