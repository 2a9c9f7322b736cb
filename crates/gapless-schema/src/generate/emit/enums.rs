//! Enums and sets.

use proc_macro2::TokenStream;
use quote::quote;

use super::super::model::{EnumType, NumberValue, Primitive, SetType};
use super::values::{deprecated, docs, long, note_lines, number, primitive_type};
use super::{Emitter, ident};

/// A protobuf enum has 32 bits.
pub(crate) const fn fits_protobuf(primitive: Primitive) -> bool {
    primitive.size() < 4 || matches!(primitive, Primitive::Int32)
}

impl Emitter<'_> {
    pub(super) fn enumeration(&self, of: &EnumType) -> TokenStream {
        let runtime = &self.runtime;
        let name = ident(&of.rust);
        let lines = note_lines(&of.notes, format!("Enum `{}`.", of.name));
        let enum_docs = docs(&lines);
        let raw = primitive_type(of.primitive);
        let variants = of.values.iter().map(|value| {
            let name = ident(&value.rust);
            let docs = docs(&note_lines(&value.notes, format!("Value `{}`.", value.name)));
            quote!(#docs #name)
        });
        let from = of.values.iter().map(|value| {
            let variant = ident(&value.rust);
            let number = pattern(of.primitive, value.number);
            quote!(#number => Self::#variant)
        });
        let into = of.values.iter().map(|value| {
            let variant = ident(&value.rust);
            let number = number(of.primitive, NumberValue::Integer(value.number));
            quote!(Self::#variant => #number)
        });
        let first = ident(&of.values.first().expect("an enum has a value").rust);
        let null = number(of.primitive, of.null);
        let read = if fits_protobuf(of.primitive) {
            quote!(#runtime::protobuf::read::enum_number::<#raw>(reader, field)?)
        } else {
            quote!(<#raw as #runtime::protobuf::Value>::read(reader, field)?)
        };
        quote! {
            #enum_docs
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum #name {
                #(#variants,)*
                /// A number that this version of the schema does not name.
                Unknown(#raw),
            }

            impl #name {
                /// The number that means null where a field is optional.
                pub const NULL: #raw = #null;

                /// The value of a number.
                #[inline]
                #[must_use]
                pub const fn from_raw(raw: #raw) -> Self {
                    match raw {
                        #(#from,)*
                        _ => Self::Unknown(raw),
                    }
                }

                /// The number on the wire.
                #[inline]
                #[must_use]
                pub const fn raw(self) -> #raw {
                    match self {
                        #(#into,)*
                        Self::Unknown(raw) => raw,
                    }
                }
            }

            impl Default for #name {
                /// The first value of the schema.
                #[inline]
                fn default() -> Self {
                    Self::#first
                }
            }

            impl #runtime::protobuf::Value for #name {
                #[inline(always)]
                fn read(reader: &mut #runtime::protobuf::Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
                    Ok(Self::from_raw(#read))
                }
            }
        }
    }

    pub(super) fn set(&self, of: &SetType) -> TokenStream {
        let runtime = &self.runtime;
        let name = ident(&of.rust);
        let set_docs = docs(&note_lines(&of.notes, format!("Set `{}`.", of.name)));
        let raw = primitive_type(of.primitive);
        let choices = of.choices.iter().map(|choice| {
            let get = ident(&choice.rust);
            let with = ident(&super::super::names::with(&choice.rust));
            let bit = long(1 << choice.bit);
            let lines = note_lines(&choice.notes, format!("Choice `{}`.", choice.name));
            let get_docs = docs(&lines);
            let with_docs = docs(&[format!("With choice `{}` set or not.", choice.name)]);
            let deprecated = deprecated(&choice.notes);
            quote! {
                #get_docs
                #deprecated
                #[inline]
                #[must_use]
                pub const fn #get(self) -> bool {
                    self.0 & #bit != 0
                }

                #with_docs
                #deprecated
                #[inline]
                #[must_use]
                pub const fn #with(self, chosen: bool) -> Self {
                    if chosen { Self(self.0 | #bit) } else { Self(self.0 & !#bit) }
                }
            }
        });
        quote! {
            #set_docs
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
            pub struct #name(#raw);

            impl #name {
                /// The set of these bits; bits without a choice are kept.
                #[inline]
                #[must_use]
                pub const fn from_raw(bits: #raw) -> Self {
                    Self(bits)
                }

                /// The bits on the wire.
                #[inline]
                #[must_use]
                pub const fn raw(self) -> #raw {
                    self.0
                }

                /// Whether no choice is set.
                #[inline]
                #[must_use]
                pub const fn is_empty(self) -> bool {
                    self.0 == 0
                }

                #(#choices)*
            }

            impl #runtime::protobuf::Value for #name {
                #[inline(always)]
                fn read(reader: &mut #runtime::protobuf::Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
                    Ok(Self(<#raw as #runtime::protobuf::Value>::read(reader, field)?))
                }
            }
        }
    }
}

fn pattern(primitive: Primitive, value: i128) -> TokenStream {
    format!("{value}{}", primitive_type(primitive)).parse().expect("an integer with its type is Rust")
}
