//! A message is complete at every moment: an entry is counted when it begins, and skipped groups and data are filled in
//! as empty when a later one is written. The progress is kept in `…Stage` structs, one byte per level, which the
//! optimizer removes if the calls are in straight order and the code that advances a stage is inlined.

use proc_macro2::TokenStream;
use quote::quote;

use super::super::model::{Charset, DataModel, FieldKind, FieldModel, GroupModel, IntegerSlot, Level};
use super::getters::is_option;
use super::values::{data_docs, deprecated, docs, long, note_lines, number, primitive_type, setter_docs, size};
use super::{Emitter, LevelOwner, ident};

impl Emitter<'_> {
    pub(super) fn encoder(&self, level: &Level, role: LevelOwner<'_>) -> TokenStream {
        let name = ident(&format!("{}Encoder", level.rust));
        let stage = ident(&format!("{}Stage", level.rust));
        let path = &level.path;
        let shift = if matches!(role, LevelOwner::Message(_)) { self.schema.header.length } else { 0 };
        let length = size(shift + level.block_length);
        let has_members = level.has_members();
        let (generics, fields) = match role {
            LevelOwner::Message(_) => (quote!(<'a>), quote!(tail: Tail<'a>, stage: #stage,)),
            LevelOwner::Entry if has_members => {
                (quote!(<'g, 'a>), quote!(tail: &'g mut Tail<'a>, stage: &'g mut #stage,))
            }
            _ => (quote!(<'a>), quote!()),
        };
        let docs = docs(&note_lines(&level.notes, format!("Writes `{path}` where it will lie.")));
        let setters = level.fields.iter().map(|field| self.setter(level, field, shift));
        let groups = level.groups.iter().enumerate().map(|(index, group)| self.group_opener(group, index));
        let data =
            level.data.iter().enumerate().map(|(index, data)| self.data_setter(path, data, level.groups.len() + index));
        let template = match role {
            LevelOwner::Composite => quote!(),
            _ => self.template(level, role, shift),
        };
        let message = match role {
            LevelOwner::Message(_) => self.message_encoder(level, shift),
            _ => quote!(),
        };
        let must_use =
            matches!(role, LevelOwner::Message(_)).then(|| quote!(#[must_use = "the message ends with finish"]));
        let stage = match role {
            LevelOwner::Message(_) => self.stage(level),
            _ if has_members => self.stage(level),
            _ => quote!(),
        };
        quote! {
            #docs
            #[derive(Debug)]
            #must_use
            pub struct #name #generics {
                block: &'a mut [u8; #length],
                #fields
            }

            impl #generics #name #generics {
                #template
                #message
                #(#setters)*
                #(#groups)*
                #(#data)*
            }

            #stage
        }
    }

    fn template(&self, level: &Level, role: LevelOwner<'_>, shift: usize) -> TokenStream {
        let length = size(shift + level.block_length);
        let header = match role {
            LevelOwner::Message(message) => {
                let header = &self.schema.header;
                let slots = [
                    (header.block_length, level.block_length as u64),
                    (header.template_id, u64::from(message.template_id)),
                    (header.schema_id, u64::from(self.schema.id)),
                    (header.version, self.schema.version),
                ];
                let slots = slots.map(|(slot, value)| self.with_slot(slot, value));
                quote!(#(#slots)*)
            }
            _ => quote!(),
        };
        let nulls = self.nulls(level, shift);
        quote! {
            const TEMPLATE: [u8; #length] = {
                let block = [0; #length];
                #header
                #nulls
                block
            };
        }
    }

    fn message_encoder(&self, level: &Level, shift: usize) -> TokenStream {
        let stage = ident(&format!("{}Stage", level.rust));
        let path = &level.path;
        let length = size(shift + level.block_length);
        let members = level.members() as u8;
        quote! {
            /// Begins a message at the start of `buffer`: its header is written, every optional field is null, the
            /// others are zero.
            ///
            /// # Errors
            /// [`EncodeError::Capacity`] if header and block do not fit.
            #[inline(always)]
            pub fn new(buffer: &'a mut [u8]) -> Result<Self, EncodeError> {
                let mut tail = Tail::new(buffer);
                let block = tail.chunk::<#length>(#path)?;
                *block = Self::TEMPLATE;
                Ok(Self { block, tail, stage: #stage { reached: 0, ..#stage::CLOSED } })
            }

            /// Ends the message: groups and data that were not written are empty. Returns its length in bytes, with
            /// the header.
            ///
            /// # Errors
            /// [`EncodeError::Capacity`] if they do not fit.
            #[inline(always)]
            pub fn finish(mut self) -> Result<usize, EncodeError> {
                self.stage.advance(&mut self.tail, #members)?;
                Ok(self.tail.position())
            }
        }
    }

    fn setter(&self, level: &Level, field: &FieldModel, shift: usize) -> TokenStream {
        let name = ident(&field.rust);
        let docs = setter_docs(level, field);
        let deprecated = deprecated(&field.notes);
        let offset = size(shift + field.offset);
        let length = size(field.kind.length());
        let block = size(shift + level.block_length);
        let slot = quote!(field_mut::<#offset, #length, #block>(self.block));
        let (of, write, null) = match &field.kind {
            FieldKind::Constant(_) => return quote!(),
            FieldKind::Composite(inner) => {
                let encoder = ident(&format!("{}Encoder", inner.rust));
                return quote! {
                    #docs
                    #deprecated
                    #[inline]
                    pub fn #name(&mut self) -> #encoder<'_> {
                        #encoder { block: #slot }
                    }
                };
            }
            FieldKind::Scalar { primitive, null, .. } => {
                let bytes = self.bytes(&quote!(value));
                let null = number(*primitive, *null);
                (primitive_type(*primitive), quote!(*#slot = #bytes;), quote!(self.#name(#null)))
            }
            FieldKind::Enum { of, null } => {
                let bytes = self.bytes(&quote!(value.raw()));
                let of_name = ident(&of.rust);
                let null = number(of.primitive, *null);
                (quote!(#of_name), quote!(*#slot = #bytes;), quote!(self.#name(#of_name::from_raw(#null))))
            }
            FieldKind::Set(of) => {
                let bytes = self.bytes(&quote!(value.raw()));
                let of_name = ident(&of.rust);
                (quote!(#of_name), quote!(*#slot = #bytes;), quote!(self.#name(#of_name::default())))
            }
            FieldKind::Array { primitive, length, null, .. } => {
                let item = size(primitive.size());
                let count = size(*length);
                let bytes = self.bytes(&quote!(item));
                let of = primitive_type(*primitive);
                let null = number(*primitive, *null);
                let write = quote! {
                    for (slot, item) in #slot.as_chunks_mut::<#item>().0.iter_mut().zip(value) {
                        *slot = #bytes;
                    }
                };
                (quote!(&[#of; #count]), write, quote!(self.#name(&[#null; #count])))
            }
        };
        let or_null = is_option(level, field).then(|| {
            let name_or_null = ident(&format!("{}_or_null", field.rust));
            let docs = super::values::docs(&[format!("Sets field `{}`, to null if there is no value.", field.name)]);
            quote! {
                #docs
                #deprecated
                #[inline]
                pub fn #name_or_null(&mut self, value: Option<#of>) -> &mut Self {
                    match value {
                        Some(value) => self.#name(value),
                        None => #null,
                    }
                }
            }
        });
        let text = self.text_setter(level, field, &slot);
        quote! {
            #docs
            #deprecated
            #[inline]
            pub fn #name(&mut self, value: #of) -> &mut Self {
                #write
                self
            }
            #or_null
            #text
        }
    }

    fn text_setter(&self, level: &Level, field: &FieldModel, slot: &TokenStream) -> TokenStream {
        let FieldKind::Array { charset: Some(charset), .. } = &field.kind else { return quote!() };
        let runtime = &self.runtime;
        let name = ident(&format!("{}_str", field.rust));
        let path = format!("{}.{}", level.path, field.name);
        let deprecated = deprecated(&field.notes);
        let docs = docs(&[
            format!("Sets field `{}` to a text, filled up with NUL.", field.name),
            String::new(),
            "# Errors".to_owned(),
            "[`EncodeError::Text`] if it is too long, holds a NUL or is not in the character encoding.".to_owned(),
        ]);
        let put = match charset {
            Charset::Utf8 => quote!(#runtime::sbe::text::put(#slot, value.as_bytes(), #path)?;),
            Charset::Ascii => quote!(#runtime::sbe::text::put_ascii(#slot, value.as_bytes(), #path)?;),
            Charset::Latin1 => quote!(#runtime::sbe::text::put_latin1(#slot, value, #path)?;),
        };
        quote! {
            #docs
            #deprecated
            #[inline]
            pub fn #name(&mut self, value: &str) -> Result<&mut Self, EncodeError> {
                #put
                Ok(self)
            }
        }
    }

    fn group_opener(&self, group: &GroupModel, index: usize) -> TokenStream {
        let name = ident(&group.rust);
        let encoder = ident(&format!("{}GroupEncoder", group.level.rust));
        let path = &group.level.path;
        let index = index as u8;
        let docs =
            docs(&note_lines(&group.level.notes, format!("Begins group `{}`, without entries yet.", group.name)));
        let deprecated = deprecated(&group.level.notes);
        let stage = group.level.has_members().then(|| {
            let child = ident(&format!("child_{}", group.rust));
            quote!(, stage: &mut self.stage.#child)
        });
        quote! {
            #docs
            ///
            /// # Errors
            /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late.
            #deprecated
            #[inline(always)]
            pub fn #name(&mut self) -> Result<#encoder<'_, 'a>, EncodeError> {
                self.stage.advance(&mut self.tail, #index)?;
                let dimension = self.tail.chunk(#path)?;
                *dimension = #encoder::EMPTY;
                self.stage.reached = #index + 1;
                Ok(#encoder { dimension, tail: &mut self.tail, count: 0 #stage })
            }
        }
    }

    fn data_setter(&self, path: &str, data: &DataModel, index: usize) -> TokenStream {
        let runtime = &self.runtime;
        let name = ident(&data.rust);
        let path = format!("{path}.{}", data.name);
        let index = index as u8;
        let docs = data_docs(data);
        let deprecated = deprecated(&data.notes);
        let of = primitive_type(data.length);
        let limit = long(data.length_max);
        let length = self.bytes(&quote!((value.len() as #of)));
        let check =
            (data.charset == Some(Charset::Ascii)).then(|| quote!(#runtime::sbe::text::check_ascii(value, #path)?;));
        quote! {
            #docs
            ///
            /// # Errors
            /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Order`] if it comes too late,
            /// [`EncodeError::Length`] if its length field cannot express its length, [`EncodeError::Text`] if
            /// it is not in the character encoding, where that is US-ASCII.
            #deprecated
            #[inline(always)]
            pub fn #name(&mut self, value: impl AsRef<[u8]>) -> Result<&mut Self, EncodeError> {
                let value = value.as_ref();
                #check
                self.stage.advance(&mut self.tail, #index)?;
                if value.len() as u64 > #limit {
                    return Err(#runtime::sbe::write::too_long(#path, value.len(), #limit));
                }
                self.tail.put_data(#length, value, #path)?;
                self.stage.reached = #index + 1;
                Ok(self)
            }
        }
    }

    pub(super) fn group_encoder(&self, group: &GroupModel) -> TokenStream {
        let runtime = &self.runtime;
        let level = &group.level;
        let name = ident(&format!("{}GroupEncoder", level.rust));
        let entry = ident(&format!("{}Encoder", level.rust));
        let stage = ident(&format!("{}Stage", level.rust));
        let path = &level.path;
        let docs = docs(&[format!("Writes the entries of group `{path}`.")]);
        let length = size(group.dimension.length);
        let block_length = self.with_slot(group.dimension.block_length, level.block_length as u64);
        let limit = long(group.dimension.num_max);
        let IntegerSlot::At { offset, primitive } = group.dimension.num_in_group else {
            unreachable!("the reader refuses a constant numInGroup")
        };
        let offset = size(offset);
        let bytes = size(primitive.size());
        let of = primitive_type(primitive);
        let count = self.bytes(&quote!((self.count as #of)));
        let members = level.members() as u8;
        let (stage_field, close, open, entry_type, entry_fields) = if level.has_members() {
            (
                quote!(stage: &'g mut #stage,),
                quote!(self.stage.advance(self.tail, #members)?;),
                quote!(self.stage.reached = 0;),
                quote!(#entry<'_, 'a>),
                quote!(, tail: self.tail, stage: self.stage),
            )
        } else {
            (quote!(), quote!(), quote!(), quote!(#entry<'a>), quote!())
        };
        quote! {
            #docs
            #[derive(Debug)]
            pub struct #name<'g, 'a> {
                dimension: &'a mut [u8; #length],
                tail: &'g mut Tail<'a>,
                count: u64,
                #stage_field
            }

            impl<'g, 'a> #name<'g, 'a> {
                /// The dimensions of a group without entries.
                const EMPTY: [u8; #length] = {
                    let block = [0; #length];
                    #block_length
                    block
                };

                /// Begins the next entry; its optional fields are null, the others zero.
                ///
                /// # Errors
                /// [`EncodeError::Capacity`] if it does not fit, [`EncodeError::Length`] if the group is full.
                #[inline(always)]
                pub fn entry(&mut self) -> Result<#entry_type, EncodeError> {
                    #close
                    if self.count >= #limit {
                        return Err(#runtime::sbe::write::too_long(#path, self.count as usize + 1, #limit));
                    }
                    let block = self.tail.chunk(#path)?;
                    *block = #entry::TEMPLATE;
                    self.count += 1;
                    *field_mut::<#offset, #bytes, #length>(self.dimension) = #count;
                    #open
                    Ok(#entry { block #entry_fields })
                }
            }
        }
    }

    fn stage(&self, level: &Level) -> TokenStream {
        let runtime = &self.runtime;
        let name = ident(&format!("{}Stage", level.rust));
        let members = level.members() as u8;
        let staged: Vec<_> = level.groups.iter().enumerate().filter(|(_, group)| group.level.has_members()).collect();
        let child_fields = staged.iter().map(|(_, group)| {
            let (field, of) = child(group);
            quote!(#field: #of,)
        });
        let child_closed = staged.iter().map(|(_, group)| {
            let (field, of) = child(group);
            quote!(#field: #of::CLOSED,)
        });
        let close = staged.iter().map(|(index, group)| {
            let (field, _) = child(group);
            let after = *index as u8 + 1;
            let members = group.level.members() as u8;
            quote!(if self.reached == #after { self.#field.advance(tail, #members)?; })
        });
        let closed = staged.iter().map(|(index, group)| {
            let (field, _) = child(group);
            let after = *index as u8 + 1;
            let members = group.level.members() as u8;
            quote!(&& (self.reached != #after || self.#field.is_at(#members)))
        });
        let paths = level.groups.iter().map(|group| group.level.path.clone());
        let paths: Vec<_> =
            paths.chain(level.data.iter().map(|data| format!("{}.{}", level.path, data.name))).collect();
        let fill = paths.iter().enumerate().map(|(index, path)| {
            let empty = match level.groups.get(index) {
                Some(group) => {
                    let encoder = ident(&format!("{}GroupEncoder", group.level.rust));
                    quote!(#encoder::EMPTY)
                }
                None => {
                    let length = size(level.data[index - level.groups.len()].length.size());
                    quote!([0; #length])
                }
            };
            let index = index as u8;
            quote!(if self.reached <= #index && #index < member { tail.put(#empty, #path)?; })
        });
        let late = paths.iter().enumerate().map(|(index, path)| {
            let index = index as u8;
            quote!(#index => #path,)
        });
        let whole = &level.path;
        quote! {
            /// Progress of the groups and data, here and in the entry that is open.
            #[derive(Clone, Copy, Debug)]
            struct #name {
                reached: u8,
                #(#child_fields)*
            }

            impl #name {
                const CLOSED: Self = Self { reached: #members, #(#child_closed)* };

                /// Whether `member` is the next to be written and nothing before it is open.
                #[inline(always)]
                const fn is_at(&self, member: u8) -> bool {
                    self.reached == member #(#closed)*
                }

                /// Completes the open member and fills in the skipped ones before `member`.
                #[inline(always)]
                fn advance<'a>(&mut self, tail: &mut Tail<'a>, member: u8) -> Result<(), EncodeError> {
                    if self.is_at(member) {
                        return Ok(());
                    }
                    // By value, so that on the straight path neither needs an address.
                    let (stage, rest, advanced) = self.skip_to(tail.take(), member);
                    *self = stage;
                    *tail = rest;
                    advanced
                }

                #[cold]
                #[inline(never)]
                fn skip_to(mut self, mut tail: Tail<'_>, member: u8) -> (Self, Tail<'_>, Result<(), EncodeError>) {
                    let advanced = self.fill(&mut tail, member);
                    (self, tail, advanced)
                }

                fn fill(&mut self, tail: &mut Tail<'_>, member: u8) -> Result<(), EncodeError> {
                    if self.reached > member {
                        return Err(#runtime::sbe::write::too_late(match member { #(#late)* _ => #whole }));
                    }
                    #(#close)*
                    #(#fill)*
                    self.reached = member;
                    Ok(())
                }
            }
        }
    }
}

fn child(group: &GroupModel) -> (proc_macro2::Ident, proc_macro2::Ident) {
    (ident(&format!("child_{}", group.rust)), ident(&format!("{}Stage", group.level.rust)))
}
