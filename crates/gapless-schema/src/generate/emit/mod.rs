//! All levels (messages, entries of groups, composites) go through the same writers.

mod decoder;
mod encoder;
mod enums;
mod getters;
mod message;
mod object;
mod proto_decoder;
mod proto_encoder;
mod proto_object;
mod values;

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

pub(crate) use enums::fits_protobuf;

use super::model::{Level, MessageModel, Schema};

pub(crate) struct Emitter<'s> {
    schema: &'s Schema,
    runtime: TokenStream,
    has_protobuf: bool,
}

#[derive(Clone, Copy)]
enum LevelOwner<'s> {
    Message(&'s MessageModel),
    Entry,
    Composite,
}

pub(crate) fn rust(schema: &Schema, module: &str, runtime: &str, has_protobuf: bool) -> String {
    let runtime = runtime.parse().expect("the path of the runtime is checked by the generator");
    let emitter = Emitter { schema, runtime, has_protobuf };
    let tokens = emitter.module(module);
    let file = syn::parse2(tokens).expect("generated Rust is Rust");
    let package = if schema.package.is_empty() { "without package" } else { &schema.package };
    format!(
        "// Generated from a schema ({package}, id {}, version {}). Do not edit: change the schema.\n\n{}",
        schema.id,
        schema.version,
        prettyplease::unparse(&file)
    )
}

fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

impl Emitter<'_> {
    fn module(&self, module: &str) -> TokenStream {
        let schema = self.schema;
        let runtime = &self.runtime;
        let name = ident(module);
        let mut lines =
            vec![schema.description.clone().unwrap_or_else(|| format!("Messages of `{}`.", schema.package))];
        lines.push(String::new());
        lines.push(format!("Schema id {}, version {}.", schema.id, schema.version));
        if let Some(semantic) = &schema.semantic_version {
            lines.push(format!("Semantic version {semantic}."));
        }
        let docs = values::docs(&lines);
        let schema_id = schema.id;
        let version = schema.version;
        let enums = schema.enums.iter().map(|of| self.enumeration(of));
        let sets = schema.sets.iter().map(|of| self.set(of));
        let composites = schema.composites.iter().map(|level| self.level(level, LevelOwner::Composite));
        let messages = schema.messages.iter().map(|message| {
            let levels = self.level(&message.level, LevelOwner::Message(message));
            let traits = self.message_traits(message);
            quote! { #levels #traits }
        });
        quote! {
            #docs
            #[allow(
                dead_code,
                deprecated,
                missing_docs,
                non_camel_case_types,
                non_snake_case,
                non_upper_case_globals,
                unused_imports,
                unused_braces,
                unused_mut,
                unused_parens,
                unused_variables,
                clippy::all,
                clippy::pedantic,
                clippy::nursery
            )]
            pub mod #name {
                use #runtime::sbe::block::{field, field_mut, from_offset, late_field, with, with_repeated};
                use #runtime::sbe::{Entry as _, Tail};
                use #runtime::{DecodeError, EncodeError};

                /// Id of the schema.
                pub const SCHEMA_ID: u16 = #schema_id;
                /// Version of the schema.
                pub const SCHEMA_VERSION: u64 = #version;

                #(#enums)*
                #(#sets)*
                #(#composites)*
                #(#messages)*
            }
        }
    }

    fn level(&self, level: &Level, role: LevelOwner<'_>) -> TokenStream {
        let decoder = self.decoder(level, role);
        let encoder = self.encoder(level, role);
        let object = self.object(level, role);
        let protobuf = self.has_protobuf.then(|| {
            let encoder = self.proto_encoder(level, role);
            let decoder = self.proto_decoder(level);
            let object = self.proto_object(level, role);
            quote! { #encoder #decoder #object }
        });
        let groups = level.groups.iter().map(|group| {
            let entry = self.level(&group.level, LevelOwner::Entry);
            let group_encoder = self.group_encoder(group);
            quote! { #entry #group_encoder }
        });
        quote! { #decoder #encoder #object #protobuf #(#groups)* }
    }
}
