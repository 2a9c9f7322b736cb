//! A message is parsed once, then every field is an infallible read.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::super::model::{DataModel, GroupModel, Level};
use super::values::{docs, long, note_lines, size};
use super::{Emitter, LevelOwner, ident};

impl Emitter<'_> {
    pub(super) fn decoder(&self, level: &Level, role: LevelOwner<'_>) -> TokenStream {
        let runtime = &self.runtime;
        let name = ident(&format!("{}Decoder", level.rust));
        let path = &level.path;
        let kind = match role {
            LevelOwner::Message(_) => "message",
            LevelOwner::Entry => "an entry of group",
            LevelOwner::Composite => "composite",
        };
        let docs = docs(&note_lines(&level.notes, format!("Reads {kind} `{path}` where it lies.")));
        let known = size(level.known_length());
        let versioned = level.is_versioned();
        let version_fields = versioned.then(|| quote!(acting: &'a [u8], version: u64,));
        let group_fields = level.groups.iter().map(|group| {
            let name = group_field(group);
            let entry = ident(&format!("{}Decoder", group.level.rust));
            quote!(#name: #runtime::sbe::Group<'a, #entry<'a>>,)
        });
        let data_fields = level.data.iter().map(|data| {
            let name = data_field(data);
            quote!(#name: &'a [u8],)
        });
        let fields = level.fields.iter().map(|field| self.field_getter(level, field));
        let groups = level.groups.iter().map(|group| self.group_getter(group));
        let data = level.data.iter().map(|data| self.data_getter(path, data));
        let more = match role {
            LevelOwner::Composite => self.composite_is_null(level),
            LevelOwner::Entry => self.level_parse(level),
            LevelOwner::Message(message) => {
                let body = self.level_parse(level);
                let message = self.message_parse(message);
                quote!(#message #body)
            }
        };
        let entry = match role {
            LevelOwner::Entry => self.entry_trait(level),
            _ => quote!(),
        };
        quote! {
            #docs
            #[derive(Clone, Copy, Debug)]
            pub struct #name<'a> {
                block: &'a [u8; #known],
                #version_fields
                #(#group_fields)*
                #(#data_fields)*
            }

            impl<'a> #name<'a> {
                #more
                #(#fields)*
                #(#groups)*
                #(#data)*
            }

            #entry
        }
    }

    fn level_parse(&self, level: &Level) -> TokenStream {
        let runtime = &self.runtime;
        let path = &level.path;
        let known = size(level.known_length());
        let mut needed = {
            let base = size(level.length_at(level.base_version));
            quote!({ #base })
        };
        for version in level.versions() {
            let length = size(level.length_at(version));
            let version = long(version);
            needed = quote!({ if version >= #version { #length } else #needed });
        }
        let groups = level.groups.iter().map(|group| self.group_parse(level, group));
        let data = level.data.iter().map(|data| self.data_parse(level, data));
        let names = level.groups.iter().map(group_field).chain(level.data.iter().map(data_field));
        let version_fields = level.is_versioned().then(|| quote!(acting, version,));
        quote! {
            #[inline]
            const fn needed_length_at(version: u64) -> usize #needed

            #[inline(always)]
            fn parse_body(
                reader: &mut #runtime::sbe::Reader<'a>,
                block_length: u64,
                version: u64,
            ) -> Result<Self, DecodeError> {
                let (block, acting) =
                    reader.block::<#known>(block_length, Self::needed_length_at(version), version, #path)?;
                #(#groups)*
                #(#data)*
                Ok(Self { block, #version_fields #(#names,)* })
            }
        }
    }

    fn entry_trait(&self, level: &Level) -> TokenStream {
        let runtime = &self.runtime;
        let name = ident(&format!("{}Decoder", level.rust));
        let path = &level.path;
        let has_members = level.has_members();
        let from_block = if has_members {
            quote!(None)
        } else {
            let version_fields = level.is_versioned().then(|| quote!(acting: block, version,));
            quote!(Some(Self { block: block.first_chunk()?, #version_fields }))
        };
        quote! {
            impl<'a> #runtime::sbe::Entry<'a> for #name<'a> {
                const NAME: &'static str = #path;
                const HAS_MEMBERS: bool = #has_members;

                #[inline]
                fn needed_length(version: u64) -> usize {
                    Self::needed_length_at(version)
                }

                #[inline(always)]
                fn from_block(block: &'a [u8], version: u64) -> Option<Self> {
                    #from_block
                }

                #[inline(always)]
                fn parse(
                    reader: &mut #runtime::sbe::Reader<'a>,
                    block_length: u64,
                    version: u64,
                ) -> Result<Self, DecodeError> {
                    Self::parse_body(reader, block_length, version)
                }
            }
        }
    }

    fn group_parse(&self, level: &Level, group: &GroupModel) -> TokenStream {
        let runtime = &self.runtime;
        let name = group_field(group);
        let path = &group.level.path;
        let length = size(group.dimension.length);
        let block_length = self.read_slot(group.dimension.block_length, &quote!(dimension), group.dimension.length);
        let count = self.read_slot(group.dimension.num_in_group, &quote!(dimension), group.dimension.length);
        let parse = quote! {{
            let dimension = reader.chunk::<#length>(#path)?;
            #runtime::sbe::Group::parse(reader, #block_length, #count, version)?
        }};
        self.member_parse(level, &name, group.level.notes.since, &parse, &quote!(#runtime::sbe::Group::empty()))
    }

    fn data_parse(&self, level: &Level, data: &DataModel) -> TokenStream {
        let name = data_field(data);
        let path = format!("{}.{}", level.path, data.name);
        let length = size(data.length.size());
        let value = self.read(data.length, &quote!(*reader.chunk::<#length>(#path)?));
        let parse = quote! {{
            let length = usize::try_from(#value).unwrap_or(usize::MAX);
            reader.slice(length, #path)?
        }};
        self.member_parse(level, &name, data.notes.since, &parse, &quote!(&[]))
    }

    fn member_parse(
        &self,
        level: &Level,
        name: &Ident,
        since: u64,
        parse: &TokenStream,
        absent: &TokenStream,
    ) -> TokenStream {
        if since > level.base_version {
            let since = long(since);
            quote!(let #name = if version < #since { #absent } else { #parse };)
        } else {
            quote!(let #name = #parse;)
        }
    }
}

pub(super) fn group_field(group: &GroupModel) -> Ident {
    ident(&format!("group_{}", group.rust))
}

pub(super) fn data_field(data: &DataModel) -> Ident {
    ident(&format!("data_{}", data.rust))
}
