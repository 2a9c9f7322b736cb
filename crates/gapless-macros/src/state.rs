//! `#[derive(State)]`.

use crate::serde_attributes::{self, AttributePlace};
use crate::shape::{Derived, TypeAttributes, attributes_of, definition, name_text, number, part_options, parts};
use proc_macro2::{Span, TokenStream as Tokens};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Path, Result};

struct TypeOptions {
    /// Has the traits.
    module: Path,
    name: String,
    version: u32,
    upgrade: Option<Path>,
}

/// `module` has the traits, unless the type names another crate.
pub fn derive(input: Tokens, module: &str) -> Result<Tokens> {
    let input: DeriveInput = syn::parse2(input)?;
    let options = type_options(&input, module)?;
    let serde = serde_attributes::read(&input.attrs, AttributePlace::Type)?;
    if let Some((name, span)) = &serde.replaced {
        let text = format!("`{name}` writes another type: make that one the state, or a field of it");
        return Err(Error::new(*span, text));
    }
    let has = TypeAttributes { derived: Derived::State, shape: false, default: serde.has_default };
    let (parts, before, after) = parts(&input, has)?;
    let definition = definition(None, &serde, &parts, (before, after));
    let checks = checks(&input.data)?;

    let mut generics = input.generics.clone();
    for parameter in &mut generics.params {
        match parameter {
            GenericParam::Lifetime(lifetime) => {
                return Err(Error::new(lifetime.span(), "a state has no lifetimes: it is restored from a snapshot"));
            }
            GenericParam::Type(parameter) => parameter.bounds.extend::<[syn::TypeParamBound; 6]>([
                syn::parse_quote!(__state::typed::serde::Serialize),
                syn::parse_quote!(__state::typed::serde::de::DeserializeOwned),
                syn::parse_quote!(__state::Shape),
                syn::parse_quote!(__state::Deterministic),
                syn::parse_quote!(::core::marker::Send),
                syn::parse_quote!('static),
            ]),
            GenericParam::Const(_) => {}
        }
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let TypeOptions { module, name, version, upgrade, .. } = &options;
    let ident = &input.ident;
    let upgrade = upgrade.as_ref().map(|upgrade| {
        quote! {
            fn upgrade(old: __state::OldState<'_>) -> ::core::result::Result<Self, ::std::string::String> {
                #upgrade(old)
            }
        }
    });
    Ok(quote! {
        const _: () = {
            // The only name in scope for the generated code, unlikely to exist in the application.
            use #module as __state;

            #[automatically_derived]
            impl #impl_generics __state::Shape for #ident #type_generics #where_clause {
                fn write(writer: &mut __state::ShapeWriter) {
                    writer.named::<Self>(#name, #version, |writer| { #definition });
                }
            }

            #[automatically_derived]
            impl #impl_generics __state::Deterministic for #ident #type_generics #where_clause {
                fn assert_fields() {
                    #(#checks)*
                }
            }

            #[automatically_derived]
            impl #impl_generics __state::State for #ident #type_generics #where_clause {
                const NAME: &'static str = #name;
                const VERSION: u32 = #version;

                #upgrade
            }
        };
    })
}

fn type_options(input: &DeriveInput, module: &str) -> Result<TypeOptions> {
    let mut options = TypeOptions {
        module: syn::parse_str(module)?,
        name: input.ident.unraw().to_string(),
        version: 1,
        upgrade: None,
    };
    for attribute in attributes_of(&input.attrs, Derived::State) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("crate") {
                let crate_path = meta.value()?.call(Path::parse_mod_style)?;
                options.module = syn::parse_quote!(#crate_path::message::derived);
            } else if meta.path.is_ident("name") {
                options.name = name_text(&meta.value()?.parse()?)?;
            } else if meta.path.is_ident("version") {
                options.version = number(&meta.value()?.parse()?, 1, "versions begin at 1")?;
            } else if meta.path.is_ident("upgrade") {
                options.upgrade = Some(meta.value()?.parse()?);
            } else {
                return Err(meta.error("`name`, `version`, `upgrade` or `crate` is expected here"));
            }
            Ok(())
        })?;
    }
    Ok(options)
}

/// One check for each field, spanned so that errors point at its type.
fn checks(data: &Data) -> Result<Vec<Tokens>> {
    let all: Vec<&Fields> = match data {
        Data::Struct(data) => vec![&data.fields],
        Data::Enum(data) => data.variants.iter().map(|variant| &variant.fields).collect(),
        Data::Union(_) => Vec::new(),
    };
    let mut checks = Vec::new();
    for field in all.into_iter().flatten() {
        let is_skipped = serde_attributes::read(&field.attrs, AttributePlace::Field)?.is_skipped;
        if is_skipped || part_options(&field.attrs, Derived::State)?.is_deterministic {
            continue;
        }
        let ty = &field.ty;
        let place = Span::call_site().located_at(ty.span());
        checks.push(quote_spanned!(place=> __state::assert_deterministic::<#ty>();));
    }
    Ok(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_types_fail_in_place() {
        for (item, place, text) in [
            ("struct A<'a> { a: &'a str }", "'a", "a state has no lifetimes"),
            ("union A { a: u8 }", "union", "serde does not know unions"),
            ("#[state(version = 0)] struct A;", "0", "versions begin at 1"),
            ("#[state(since = 2)] struct A;", "since", "`upgrade` or `crate` is expected"),
            ("struct A { #[state(since = 2)] a: u8 }", "since", "`deterministic` or `shape` is expected"),
            ("struct A { #[serde(flatten)] a: B }", "flatten", "postcard does not say"),
            ("struct A { #[serde(with = \"f\")] a: B }", "with", "add `#[state(shape"),
            ("#[serde(try_from = \"B\")] struct A { a: B }", "try_from", "`try_from` writes another type"),
            ("struct A { #[serde(skip)] a: B }", "B", "a restored state has the default here"),
            ("enum A { #[state(deterministic)] B }", "B", "belongs on a field"),
        ] {
            let error = derive(item.parse().unwrap(), "::gapless_message::derived").unwrap_err();
            let at = error.span().source_text().unwrap_or_default();
            assert!(error.to_string().contains(text), "{item}: {error}");
            assert_eq!(at, place, "{item}: {error}");
        }
    }

    #[test]
    fn each_field_is_checked_once() {
        let item = "enum A<T> { B(u8, #[state(deterministic, shape = \"C 1\")] C), D { e: T, #[serde(skip)] #[state(deterministic)] f: G } }";
        let code = derive(item.parse().unwrap(), "::gapless_message::derived").unwrap().to_string();
        assert_eq!(code.matches("assert_deterministic").count(), 2, "{code}");
    }
}
