//! Streaming protobuf encoders: setters append fields, nested messages are written by closures.

use proc_macro2::TokenStream;
use quote::quote;

use super::super::model::{DataModel, FieldKind, FieldModel, GroupModel, Level, Primitive};
use super::enums::fits_protobuf;
use super::getters::is_bytes;
use super::object::item_type;
use super::values::{data_docs, docs, field_docs, note_lines, primitive_type, size};
use super::{Emitter, LevelOwner, ident};

impl Emitter<'_> {
    pub(super) fn proto_encoder(&self, level: &Level, role: LevelOwner<'_>) -> TokenStream {
        let runtime = &self.runtime;
        let name = ident(&format!("{}ProtobufEncoder", level.rust));
        let path = &level.path;
        let docs = docs(&note_lines(&level.notes, format!("Appends the fields of `{path}` as protobuf.")));
        let fields = level.fields.iter().map(|field| self.proto_setter(level, field));
        let groups = level.groups.iter().map(|group| self.proto_group(group));
        let data = level.data.iter().map(proto_data);
        let (generics, writer, more) = match role {
            LevelOwner::Message(_) => (
                quote!(<'a>),
                quote!(#runtime::protobuf::Writer<'a>),
                quote! {
                    /// Begins a message at the start of `buffer`; an empty one only counts.
                    #[inline]
                    pub const fn new(buffer: &'a mut [u8]) -> Self {
                        Self { writer: #runtime::protobuf::Writer::new(buffer) }
                    }

                    /// Ends the message and returns its length in bytes.
                    ///
                    /// # Errors
                    /// [`EncodeError::Capacity`] if it does not fit.
                    #[inline]
                    pub fn finish(self) -> Result<usize, EncodeError> {
                        self.writer.finish(#path)
                    }
                },
            ),
            _ => (quote!(<'w, 'a>), quote!(&'w mut #runtime::protobuf::Writer<'a>), quote!()),
        };
        quote! {
            #docs
            #[derive(Debug)]
            pub struct #name #generics {
                writer: #writer,
            }

            impl #generics #name #generics {
                #more
                #(#fields)*
                #(#groups)*
                #(#data)*
            }
        }
    }

    fn proto_setter(&self, level: &Level, field: &FieldModel) -> TokenStream {
        let name = ident(&field.rust);
        let number = field.number;
        let docs = field_docs(level, field);
        let deprecated = super::values::deprecated(&field.notes);
        let (of, write) = match &field.kind {
            FieldKind::Constant(_) => return quote!(),
            FieldKind::Composite(inner) => {
                let encoder = ident(&format!("{}ProtobufEncoder", inner.rust));
                return quote! {
                    #docs
                    #deprecated
                    #[inline]
                    pub fn #name(&mut self, write: impl FnOnce(&mut #encoder<'_, 'a>)) -> &mut Self {
                        let mark = self.writer.open(#number);
                        write(&mut #encoder { writer: &mut self.writer });
                        self.writer.close(mark);
                        self
                    }
                };
            }
            FieldKind::Array { charset: Some(_), .. } => {
                (quote!(&str), quote!(self.writer.bytes(#number, value.as_bytes());))
            }
            FieldKind::Array { primitive, length, .. } => {
                let of = primitive_type(*primitive);
                let length = size(*length);
                let write = if is_bytes(*primitive) {
                    quote!(self.writer.bytes(#number, value);)
                } else {
                    let item = packed(*primitive, &quote!((*item)));
                    quote! {
                        let mark = self.writer.open(#number);
                        for item in value {
                            #item
                        }
                        self.writer.close(mark);
                    }
                };
                (quote!(&[#of; #length]), write)
            }
            kind => scalar(kind, number),
        };
        quote! {
            #docs
            #deprecated
            #[inline]
            pub fn #name(&mut self, value: #of) -> &mut Self {
                #write
                self
            }
        }
    }

    fn proto_group(&self, group: &GroupModel) -> TokenStream {
        let name = ident(&group.rust);
        let number = group.number;
        let deprecated = super::values::deprecated(&group.level.notes);
        if let Some(field) = group.level.list_field() {
            let of = item_type(group);
            let item = match &field.kind {
                FieldKind::Enum { of, .. } => {
                    let value = enum_value(of.primitive, &quote!(item));
                    quote!(self.writer.packed_uint(#value);)
                }
                FieldKind::Scalar { primitive, .. } => packed(*primitive, &quote!(item)),
                _ => quote!(),
            };
            let docs = docs(&note_lines(&group.level.notes, format!("Group `{}`: all of its values.", group.name)));
            return quote! {
                #docs
                #deprecated
                #[inline]
                pub fn #name(&mut self, values: impl IntoIterator<Item = #of>) -> &mut Self {
                    let mut values = values.into_iter().peekable();
                    if values.peek().is_some() {
                        let mark = self.writer.open(#number);
                        for item in values {
                            #item
                        }
                        self.writer.close(mark);
                    }
                    self
                }
            };
        }
        let encoder = ident(&format!("{}ProtobufEncoder", group.level.rust));
        let docs = docs(&note_lines(&group.level.notes, format!("Group `{}`: appends one entry.", group.name)));
        quote! {
            #docs
            #deprecated
            #[inline]
            pub fn #name(&mut self, write: impl FnOnce(&mut #encoder<'_, 'a>)) -> &mut Self {
                let mark = self.writer.open(#number);
                write(&mut #encoder { writer: &mut self.writer });
                self.writer.close(mark);
                self
            }
        }
    }
}

fn proto_data(data: &DataModel) -> TokenStream {
    let name = ident(&data.rust);
    let number = data.number;
    let docs = data_docs(data);
    let deprecated = super::values::deprecated(&data.notes);
    let (of, bytes) = match data.charset {
        Some(_) => (quote!(&str), quote!(value.as_bytes())),
        None => (quote!(&[u8]), quote!(value)),
    };
    quote! {
        #docs
        #deprecated
        #[inline]
        pub fn #name(&mut self, value: #of) -> &mut Self {
            if !value.is_empty() {
                self.writer.bytes(#number, #bytes);
            }
            self
        }
    }
}

fn scalar(kind: &FieldKind, number: u32) -> (TokenStream, TokenStream) {
    match kind {
        FieldKind::Scalar { primitive, .. } => {
            let of = primitive_type(*primitive);
            let write = match primitive {
                Primitive::Float => quote!(self.writer.float(#number, value);),
                Primitive::Double => quote!(self.writer.double(#number, value);),
                signed if signed.is_signed() => quote!(self.writer.sint(#number, i64::from(value));),
                _ => quote!(self.writer.uint(#number, u64::from(value));),
            };
            (of, write)
        }
        FieldKind::Enum { of, .. } => {
            let name = ident(&of.rust);
            let value = enum_value(of.primitive, &quote!(value));
            (quote!(#name), quote!(self.writer.uint(#number, #value);))
        }
        FieldKind::Set(of) => {
            let name = ident(&of.rust);
            (quote!(#name), quote!(self.writer.uint(#number, u64::from(value.raw()));))
        }
        _ => unreachable!("only scalars are asked for"),
    }
}

fn packed(primitive: Primitive, item: &TokenStream) -> TokenStream {
    match primitive {
        Primitive::Float => quote!(self.writer.packed_float(#item);),
        Primitive::Double => quote!(self.writer.packed_double(#item);),
        signed if signed.is_signed() => quote!(self.writer.packed_sint(i64::from(#item));),
        _ => quote!(self.writer.packed_uint(u64::from(#item));),
    }
}

/// Sign-extended, like all protobuf enums.
fn enum_value(primitive: Primitive, value: &TokenStream) -> TokenStream {
    if fits_protobuf(primitive) {
        quote!(i64::from(#value.raw()) as u64)
    } else if primitive.is_signed() {
        quote!(((#value.raw() << 1) ^ (#value.raw() >> 63)) as u64)
    } else {
        quote!(u64::from(#value.raw()))
    }
}
