//! Streaming protobuf decoders: one field after the other, without an object.

use proc_macro2::TokenStream;
use quote::quote;

use super::super::model::{DataModel, FieldKind, FieldModel, GroupModel, Level, Primitive};
use super::getters::is_bytes;
use super::object::{is_constant, item_type};
use super::values::{docs, note_lines, primitive_type};
use super::{Emitter, ident};
use crate::protobuf::{FIXED32, FIXED64, LENGTH_DELIMITED, VARINT};

struct FieldVariant {
    name: proc_macro2::Ident,
    docs: TokenStream,
    path: String,
    number: u32,
    of: TokenStream,
    borrows: bool,
    wire: u32,
    read: TokenStream,
    single: Option<(u32, TokenStream)>,
}

impl Emitter<'_> {
    pub(super) fn proto_decoder(&self, level: &Level) -> TokenStream {
        let runtime = &self.runtime;
        let name = ident(&format!("{}ProtobufDecoder", level.rust));
        let field_name = ident(&format!("{}Field", level.rust));
        let path = &level.path;
        let fields = level.fields.iter().filter(|field| !is_constant(field));
        let variants: Vec<FieldVariant> = fields
            .map(|field| self.field_variant(level, field))
            .chain(level.groups.iter().map(|group| self.group_variant(group)))
            .chain(level.data.iter().map(|data| self.data_variant(level, data)))
            .collect();
        let generics = variants.iter().any(|variant| variant.borrows).then(|| quote!(<'a>));
        let declared = variants.iter().map(|FieldVariant { name, docs, of, .. }| quote!(#docs #name(#of),));
        // The whole key is matched: a known field needs no check of its wire type.
        let reads = variants.iter().map(|FieldVariant { name, number, wire, read, single, .. }| {
            let key = number << 3 | wire;
            let single = single.as_ref().map(|(wire, read)| {
                let key = number << 3 | wire;
                quote!(#key => return Ok(Some(#field_name::#name(#read))),)
            });
            quote!(#key => return Ok(Some(#field_name::#name(#read))), #single)
        });
        let known = variants.iter().map(|FieldVariant { number, path, .. }| quote!((#number, #path)));
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
                /// The error in the payload and its place; nothing is read after that.
                #[inline]
                pub fn next_field(&mut self) -> Result<Option<#field_name #generics>, DecodeError> {
                    let read = self.read_field();
                    if read.is_err() {
                        self.reader.stop();
                    }
                    read
                }

                #[inline(always)]
                fn read_field(&mut self) -> Result<Option<#field_name #generics>, DecodeError> {
                    let reader = &mut self.reader;
                    while let Some(key) = reader.key(#path)? {
                        match key {
                            #(#reads)*
                            _ => *reader = reader.other(key, #path, &[#(#known),*])?,
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

    fn field_variant(&self, level: &Level, field: &FieldModel) -> FieldVariant {
        let runtime = &self.runtime;
        let path = format!("{}.{}", level.path, field.name);
        let read_value = |of: &TokenStream| quote!(<#of as #runtime::protobuf::Value>::read(reader, #path)?);
        let mut wire = LENGTH_DELIMITED;
        let mut single = None;
        let mut borrows = true;
        let (of, read) = match &field.kind {
            FieldKind::Array { charset: Some(_), .. } => (quote!(&'a str), quote!(reader.text(#path)?)),
            FieldKind::Array { primitive, .. } if is_bytes(*primitive) => {
                (quote!(&'a [u8]), quote!(reader.bytes(#path)?))
            }
            FieldKind::Array { primitive, .. } => {
                let item = primitive_type(*primitive);
                single = Some((wire_type(&field.kind), quote!(reader.unpacked(#path)?)));
                (quote!(#runtime::protobuf::Packed<'a, #item>), quote!(reader.packed(#path)?))
            }
            FieldKind::Composite(inner) => {
                let decoder = ident(&format!("{}ProtobufDecoder", inner.rust));
                (quote!(#decoder<'a>), quote!(#decoder { reader: reader.message(#path)? }))
            }
            scalar => {
                let of = scalar_type(scalar);
                wire = wire_type(scalar);
                borrows = false;
                let read = read_value(&of);
                (of, read)
            }
        };
        let docs = docs(&note_lines(&field.notes, format!("Field `{}`.", field.name)));
        FieldVariant { name: ident(&field.variant), docs, path, number: field.number, of, borrows, wire, read, single }
    }

    fn group_variant(&self, group: &GroupModel) -> FieldVariant {
        let runtime = &self.runtime;
        let path = group.level.path.clone();
        let (of, read, single, what) = if let Some(field) = group.level.list_field() {
            let item = item_type(group);
            let single = (wire_type(&field.kind), quote!(reader.unpacked(#path)?));
            (quote!(#runtime::protobuf::Packed<'a, #item>), quote!(reader.packed(#path)?), Some(single), "values")
        } else {
            let decoder = ident(&format!("{}ProtobufDecoder", group.level.rust));
            (quote!(#decoder<'a>), quote!(#decoder { reader: reader.message(#path)? }), None, "one entry")
        };
        let docs = docs(&note_lines(&group.level.notes, format!("Group `{}`: {what}.", group.name)));
        let (number, wire) = (group.number, LENGTH_DELIMITED);
        FieldVariant { name: ident(&group.variant), docs, path, number, of, borrows: true, wire, read, single }
    }

    fn data_variant(&self, level: &Level, data: &DataModel) -> FieldVariant {
        let path = format!("{}.{}", level.path, data.name);
        let (of, read) = match data.charset {
            Some(_) => (quote!(&'a str), quote!(reader.text(#path)?)),
            None => (quote!(&'a [u8]), quote!(reader.bytes(#path)?)),
        };
        let docs = docs(&note_lines(&data.notes, format!("Data `{}`.", data.name)));
        let (number, wire) = (data.number, LENGTH_DELIMITED);
        FieldVariant { name: ident(&data.variant), docs, path, number, of, borrows: true, wire, read, single: None }
    }
}

fn wire_type(kind: &FieldKind) -> u32 {
    match kind {
        FieldKind::Scalar { primitive: Primitive::Float, .. }
        | FieldKind::Array { primitive: Primitive::Float, .. } => FIXED32,
        FieldKind::Scalar { primitive: Primitive::Double, .. }
        | FieldKind::Array { primitive: Primitive::Double, .. } => FIXED64,
        _ => VARINT,
    }
}

fn scalar_type(kind: &FieldKind) -> TokenStream {
    match kind {
        FieldKind::Scalar { primitive, .. } => primitive_type(*primitive),
        FieldKind::Enum { of, .. } => {
            let name = ident(&of.rust);
            quote!(#name)
        }
        FieldKind::Set(of) => {
            let name = ident(&of.rust);
            quote!(#name)
        }
        _ => unreachable!("only scalars are asked for"),
    }
}
