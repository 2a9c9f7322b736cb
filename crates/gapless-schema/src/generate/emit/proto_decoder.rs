//! Streaming protobuf decoders: one field after the other, without an object.

use proc_macro2::TokenStream;
use quote::quote;

use super::super::model::{Data, Field, Group, Kind, Level};
use super::getters::is_bytes;
use super::object::{is_constant, item_type};
use super::values::{docs, note_lines, primitive_type};
use super::{Emitter, ident};

/// A variant of the enum of fields: what it holds, whether that borrows, and how it is read.
struct Variant {
    name: proc_macro2::Ident,
    docs: TokenStream,
    number: u32,
    of: TokenStream,
    borrows: bool,
    read: TokenStream,
}

impl Emitter<'_> {
    pub(super) fn proto_decoder(&self, level: &Level) -> TokenStream {
        let runtime = &self.runtime;
        let name = ident(&format!("{}ProtobufDecoder", level.rust));
        let field_name = ident(&format!("{}Field", level.rust));
        let path = &level.path;
        let fields = level.fields.iter().filter(|field| !is_constant(field));
        let variants: Vec<Variant> = fields
            .map(|field| self.field_variant(level, field))
            .chain(level.groups.iter().map(|group| self.group_variant(group)))
            .chain(level.data.iter().map(|data| self.data_variant(level, data)))
            .collect();
        let generics = variants.iter().any(|variant| variant.borrows).then(|| quote!(<'a>));
        let declared = variants.iter().map(|Variant { name, docs, of, .. }| quote!(#docs #name(#of),));
        let reads = variants
            .iter()
            .map(|Variant { name, number, read, .. }| quote!(#number => return Ok(Some(#field_name::#name(#read))),));
        let enum_docs = docs(&[format!("A field of `{path}` in a protobuf payload.")]);
        let docs = docs(&note_lines(&level.notes, format!("Goes over the fields of `{path}` in a protobuf payload.")));
        quote! {
            #enum_docs
            #[derive(Clone, Copy, Debug)]
            pub enum #field_name #generics {
                #(#declared)*
            }

            #docs
            #[derive(Clone, Copy, Debug)]
            pub struct #name<'a> {
                reader: #runtime::protobuf::Reader<'a>,
            }

            impl<'a> #name<'a> {
                /// Begins at the start of `payload`.
                #[inline]
                #[must_use]
                pub const fn new(payload: &'a [u8]) -> Self {
                    Self { reader: #runtime::protobuf::Reader::new(payload) }
                }

                /// The next field that the schema knows; others are skipped. `None` at the end.
                ///
                /// # Errors
                /// What is wrong with the payload and where; nothing is read after that.
                #[inline]
                pub fn next_field(&mut self) -> Result<Option<#field_name #generics>, DecodeError> {
                    let read = self.read_field();
                    if read.is_err() {
                        self.reader.stop();
                    }
                    read
                }

                #[inline]
                fn read_field(&mut self) -> Result<Option<#field_name #generics>, DecodeError> {
                    let reader = &mut self.reader;
                    while let Some(key) = reader.key(#path)? {
                        match key.number {
                            #(#reads)*
                            _ => reader.skip(key, #path)?,
                        }
                    }
                    Ok(None)
                }
            }

            impl<'a> Iterator for #name<'a> {
                type Item = Result<#field_name #generics, DecodeError>;

                #[inline]
                fn next(&mut self) -> Option<Self::Item> {
                    self.next_field().transpose()
                }
            }
        }
    }

    fn field_variant(&self, level: &Level, field: &Field) -> Variant {
        let runtime = &self.runtime;
        let path = format!("{}.{}", level.path, field.name);
        let value = |of: TokenStream| {
            let read = quote!(reader.value::<#of>(key, #path)?);
            (of, false, read)
        };
        let (of, borrows, read) = match &field.kind {
            Kind::Scalar { primitive, .. } => value(primitive_type(*primitive)),
            Kind::Enum { of, .. } => {
                let name = ident(&of.rust);
                value(quote!(#name))
            }
            Kind::Set(of) => {
                let name = ident(&of.rust);
                value(quote!(#name))
            }
            Kind::Array { charset: Some(_), .. } => (quote!(&'a str), true, quote!(reader.text(key, #path)?)),
            Kind::Array { primitive, .. } if is_bytes(*primitive) => {
                (quote!(&'a [u8]), true, quote!(reader.bytes(key, #path)?))
            }
            Kind::Array { primitive, .. } => {
                let item = primitive_type(*primitive);
                (quote!(#runtime::protobuf::Packed<'a, #item>), true, quote!(reader.packed(key, #path)?))
            }
            Kind::Composite(inner) => {
                let decoder = ident(&format!("{}ProtobufDecoder", inner.rust));
                (quote!(#decoder<'a>), true, quote!(#decoder { reader: reader.message(key, #path)? }))
            }
            Kind::Constant(_) => unreachable!("constants are left out"),
        };
        let docs = docs(&note_lines(&field.notes, format!("Field `{}`.", field.name)));
        Variant { name: ident(&field.variant), docs, number: field.number, of, borrows, read }
    }

    fn group_variant(&self, group: &Group) -> Variant {
        let runtime = &self.runtime;
        let path = &group.level.path;
        let (of, read, what) = if group.level.list_field().is_some() {
            let item = item_type(group);
            (quote!(#runtime::protobuf::Packed<'a, #item>), quote!(reader.packed(key, #path)?), "values")
        } else {
            let decoder = ident(&format!("{}ProtobufDecoder", group.level.rust));
            (quote!(#decoder<'a>), quote!(#decoder { reader: reader.message(key, #path)? }), "one entry")
        };
        let docs = docs(&note_lines(&group.level.notes, format!("Group `{}`: {what}.", group.name)));
        Variant { name: ident(&group.variant), docs, number: group.number, of, borrows: true, read }
    }

    fn data_variant(&self, level: &Level, data: &Data) -> Variant {
        let path = format!("{}.{}", level.path, data.name);
        let (of, read) = match data.charset {
            Some(_) => (quote!(&'a str), quote!(reader.text(key, #path)?)),
            None => (quote!(&'a [u8]), quote!(reader.bytes(key, #path)?)),
        };
        let docs = docs(&note_lines(&data.notes, format!("Data `{}`.", data.name)));
        Variant { name: ident(&data.variant), docs, number: data.number, of, borrows: true, read }
    }
}
