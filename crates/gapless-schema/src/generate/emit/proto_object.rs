//! The protobuf form of plain structs, over the streaming encoders and decoders.

use proc_macro2::TokenStream;
use quote::quote;

use super::super::model::{FieldKind, FieldModel, GroupModel, Level};
use super::getters::is_bytes;
use super::object::{has_option, is_constant};
use super::values::size;
use super::{Emitter, LevelOwner, ident};

impl Emitter<'_> {
    pub(super) fn proto_object(&self, level: &Level, role: LevelOwner<'_>) -> TokenStream {
        let name = ident(&level.rust);
        let encoder = ident(&format!("{}ProtobufEncoder", level.rust));
        let decoder = ident(&format!("{}ProtobufDecoder", level.rust));
        let field_enum = ident(&format!("{}Field", level.rust));
        let generics = match role {
            LevelOwner::Message(_) => quote!(<'_>),
            _ => quote!(<'_, '_>),
        };
        let fields: Vec<_> = level.fields.iter().filter(|field| !is_constant(field)).collect();
        let write_fields = fields.iter().map(|field| write_field(level, field));
        let write_groups = level.groups.iter().map(write_group);
        let write_data = level.data.iter().map(|data| {
            let name = ident(&data.rust);
            quote!(encoder.#name(&self.#name);)
        });
        let counters = fields.iter().filter(|field| is_counted(field)).map(|field| {
            let counter = ident(&format!("count_{}", field.rust));
            quote!(let mut #counter = 0;)
        });
        let read_fields = fields.iter().map(|field| {
            let variant = ident(&field.variant);
            let read = self.read_field(level, field);
            quote!(#field_enum::#variant(value) => #read)
        });
        let read_groups = level.groups.iter().map(|group| {
            let variant = ident(&group.variant);
            let name = ident(&group.rust);
            let read = if group.level.list_field().is_some() {
                quote!(for item in value { self.#name.push(item?); })
            } else {
                let entry = ident(&group.level.rust);
                quote! {
                    let mut entry = #entry::default();
                    entry.merge_protobuf(value)?;
                    self.#name.push(entry);
                }
            };
            quote!(#field_enum::#variant(value) => { #read })
        });
        let read_data = level.data.iter().map(|data| {
            let variant = ident(&data.variant);
            let name = ident(&data.rust);
            quote!(#field_enum::#variant(value) => self.#name = value.to_owned(),)
        });
        quote! {
            impl #name {
                /// Writes all fields that are not null as protobuf.
                #[inline]
                pub fn encode_protobuf(&self, encoder: &mut #encoder #generics) {
                    #(#write_fields)*
                    #(#write_groups)*
                    #(#write_data)*
                }

                /// Takes over the fields of a protobuf payload; groups are appended to.
                ///
                /// # Errors
                /// The error in the payload and its place.
                #[inline]
                pub fn merge_protobuf(&mut self, mut decoder: #decoder<'_>) -> Result<(), DecodeError> {
                    #(#counters)*
                    while let Some(field) = decoder.next_field()? {
                        match field {
                            #(#read_fields)*
                            #(#read_groups)*
                            #(#read_data)*
                        }
                    }
                    Ok(())
                }
            }
        }
    }

    fn read_field(&self, level: &Level, field: &FieldModel) -> TokenStream {
        let name = ident(&field.rust);
        let path = format!("{}.{}", level.path, field.name);
        let option = has_option(level, field);
        let some = |value: TokenStream| if option { quote!(Some(#value)) } else { value };
        match &field.kind {
            FieldKind::Array { charset: Some(_), .. } => {
                let value = some(quote!(value.to_owned()));
                quote!(self.#name = #value,)
            }
            FieldKind::Array { primitive, length, .. } if is_bytes(*primitive) => {
                let length = size(*length);
                let value = some(quote!(value));
                let problem = format!("the bytes are not {length} long");
                quote! {
                    match <[u8; #length]>::try_from(value) {
                        Ok(value) => self.#name = #value,
                        Err(_) => return Err(decoder.reader.error(#path, #problem)),
                    },
                }
            }
            FieldKind::Array { primitive, length, .. } => {
                let counter = ident(&format!("count_{}", field.rust));
                let zero = if primitive.is_float() { quote!(0.0) } else { quote!(0) };
                let problem = format!("more than {length} values");
                let length = size(*length);
                let array =
                    if option { quote!(self.#name.get_or_insert([#zero; #length])) } else { quote!((&mut self.#name)) };
                quote! {
                    for item in value {
                        let item = item?;
                        match #array.get_mut(#counter) {
                            Some(slot) => *slot = item,
                            None => return Err(decoder.reader.error(#path, #problem)),
                        }
                        #counter += 1;
                    },
                }
            }
            FieldKind::Composite(_) if option => {
                quote!(self.#name.get_or_insert_with(Default::default).merge_protobuf(value)?,)
            }
            FieldKind::Composite(_) => quote!(self.#name.merge_protobuf(value)?,),
            _ => {
                let value = some(quote!(value));
                quote!(self.#name = #value,)
            }
        }
    }
}

/// Values of the field come one by one.
fn is_counted(field: &FieldModel) -> bool {
    matches!(&field.kind, FieldKind::Array { charset: None, primitive, .. } if !is_bytes(*primitive))
}

fn write_field(level: &Level, field: &FieldModel) -> TokenStream {
    let name = ident(&field.rust);
    let write = match &field.kind {
        FieldKind::Composite(_) => quote!(encoder.#name(|encoder| value.encode_protobuf(encoder));),
        FieldKind::Array { .. } => quote!(encoder.#name(value);),
        _ => quote!(encoder.#name(*value);),
    };
    if has_option(level, field) {
        quote!(if let Some(value) = &self.#name { #write })
    } else {
        quote!({ let value = &self.#name; #write })
    }
}

fn write_group(group: &GroupModel) -> TokenStream {
    let name = ident(&group.rust);
    if group.level.list_field().is_some() {
        quote!(encoder.#name(self.#name.iter().copied());)
    } else {
        quote!(for entry in &self.#name { encoder.#name(|encoder| entry.encode_protobuf(encoder)); })
    }
}
