//! `#[derive(Message)]`.

use crate::serde_attributes::{self, AttributePlace};
use crate::shape::{
    Derived, TypeAttributes, TypePart, attributes_of, definition, filled_text, name_text, number, part_options, parts,
    unknown_shape,
};
use proc_macro2::{Group, Ident, Span, TokenStream as Tokens, TokenTree};
use quote::{ToTokens as _, quote};
use std::collections::{BTreeMap, BTreeSet};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Generics, Path, Result, Type, WherePredicate};

struct TypeOptions {
    /// Has the traits.
    module: Path,
    name: String,
    version: u32,
    shape: Option<String>,
    answers: Option<Answers>,
}

/// Types of a request's answers; `None`: the defaults.
#[derive(Default)]
struct Answers {
    reply: Option<Type>,
    refusal: Option<Type>,
}

/// `module` has the traits, unless the type names another crate.
pub fn derive(input: Tokens, module: &str) -> Result<Tokens> {
    let input: DeriveInput = syn::parse2(input)?;
    let options = type_options(&input, module)?;
    let serde = serde_attributes::read(&input.attrs, AttributePlace::Type)?;
    if let (Some((name, span)), None) = (&serde.replaced, &options.shape) {
        return Err(unknown_shape(name, *span, Derived::Message));
    }
    let has = TypeAttributes { derived: Derived::Message, shape: options.shape.is_some(), default: serde.has_default };
    let (parts, before, after) = parts(&input, has)?;
    check_versions(&parts, &options)?;
    let older = older_versions(&parts, options.version);

    let name = &options.name;
    let version = options.version;
    let definition = definition(options.shape.as_deref(), &serde, &parts, (before, after));
    // A static in generic code is shared by all instances of the type.
    let is_generic = input.generics.type_params().next().is_some() || input.generics.const_params().next().is_some();
    let fingerprint = if is_generic {
        quote!(__message::typed::fingerprint_of::<Self>())
    } else {
        quote! {
            static FINGERPRINT: ::std::sync::OnceLock<u64> = ::std::sync::OnceLock::new();
            *FINGERPRINT.get_or_init(__message::typed::fingerprint_of::<Self>)
        }
    };
    let as_older = if older.is_empty() { Tokens::new() } else { as_older(&input.data, &parts, version, &older) };
    let older_list = older_list(&older, is_generic);

    let module = &options.module;
    let ident = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in &mut generics.params {
        match parameter {
            GenericParam::Lifetime(lifetime) => {
                return Err(Error::new(lifetime.span(), "a message owns what it holds: it travels to another process"));
            }
            GenericParam::Type(parameter) => parameter.bounds.extend::<[syn::TypeParamBound; 5]>([
                syn::parse_quote!(__message::typed::serde::Serialize),
                syn::parse_quote!(__message::typed::serde::de::DeserializeOwned),
                syn::parse_quote!(__message::Shape),
                syn::parse_quote!(::core::marker::Send),
                syn::parse_quote!('static),
            ]),
            GenericParam::Const(_) => {}
        }
    }
    // The bytes of another type would say nothing about the fields.
    let deterministic = if serde.replaced.is_some() { None } else { Some(deterministic(&input, &generics)?) };
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let request = options.answers.as_ref().map(|answers| {
        let reply = answers.reply.as_ref().map_or_else(|| quote!(()), |reply| quote!(#reply));
        let refusal = answers.refusal.as_ref().map_or_else(|| quote!(__message::NoRefusal), |refusal| quote!(#refusal));
        quote! {
            #[automatically_derived]
            impl #impl_generics __message::Request for #ident #type_generics #where_clause {
                type Reply = #reply;
                type Refusal = #refusal;
            }
        }
    });
    Ok(quote! {
        const _: () = {
            // The only name in scope for the generated code, unlikely to exist in the application.
            use #module as __message;

            #[automatically_derived]
            impl #impl_generics __message::Shape for #ident #type_generics #where_clause {
                fn write(writer: &mut __message::ShapeWriter) {
                    <Self as __message::Shape>::write_version(writer, #version);
                }

                fn write_version(writer: &mut __message::ShapeWriter, version: u32) {
                    let define = |writer: &mut __message::ShapeWriter| { #definition };
                    if version == #version {
                        writer.named::<Self>(#name, version, define);
                    } else {
                        writer.older(#name, version, define);
                    }
                }
            }

            #[automatically_derived]
            impl #impl_generics __message::Message for #ident #type_generics #where_clause {
                const TYPE_NAME: &'static str = #name;
                const ENCODING: __message::Encoding = __message::Encoding::Postcard;
                const VERSION: u32 = #version;

                fn fingerprint() -> u64 { #fingerprint }

                fn shape() -> ::std::string::String {
                    __message::typed::shape_of::<Self>()
                }

                #older_list

                fn encode(&self, into: &mut ::std::vec::Vec<u8>) -> ::core::result::Result<(), __message::MessageError> {
                    __message::typed::encode::<Self, Self>(self, into)
                }

                fn decode(bytes: &[u8]) -> ::core::result::Result<Self, __message::MessageError> {
                    __message::typed::decode::<Self>(bytes, usize::MAX)
                }

                #as_older

                fn to_json(&self) -> ::core::result::Result<::std::vec::Vec<u8>, __message::MessageError> {
                    __message::typed::to_json(self)
                }

                fn from_json(text: &[u8]) -> ::core::result::Result<Self, __message::MessageError> {
                    __message::typed::from_json(text)
                }
            }

            #request

            #deterministic
        };
    })
}

/// A message is deterministic if its fields are. Only messages that a service writes need to be: with the bounds of the
/// fields, an error names the field's type at the place where the service writes the message.
fn deterministic(input: &DeriveInput, generics: &Generics) -> Result<Tokens> {
    let fields: Vec<&Fields> = match &input.data {
        Data::Struct(data) => vec![&data.fields],
        Data::Enum(data) => data.variants.iter().map(|variant| &variant.fields).collect(),
        Data::Union(_) => Vec::new(),
    };
    let mut types: BTreeMap<String, (Span, Tokens)> = BTreeMap::new();
    for field in fields.into_iter().flatten() {
        let is_skipped = serde_attributes::read(&field.attrs, AttributePlace::Field)?.is_skipped;
        let is_declared = is_skipped || part_options(&field.attrs, Derived::Message)?.is_deterministic;
        if !is_declared {
            // The bound of a recursive field would need itself.
            let tokens = without_itself(field.ty.to_token_stream(), &input.ident);
            types.insert(tokens.to_string(), (field.ty.span(), tokens));
        }
    }
    let (ident, mut generics) = (&input.ident, generics.clone());
    // With a lifetime, an unmet bound of a type without parameters is no error by itself.
    let bounds = types.into_values().map(|(span, ty)| -> WherePredicate {
        let place = Span::call_site().located_at(span);
        syn::parse_quote_spanned!(place=> for<'__deterministic> #ty: __message::Deterministic)
    });
    generics.make_where_clause().predicates.extend(bounds);
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        #[allow(unused_lifetimes, single_use_lifetimes)]
        impl #impl_generics __message::Deterministic for #ident #type_generics #where_clause {}
    })
}

/// Replaces the type `ident`, with its arguments, by a deterministic type. A path such as `old::Name` is another type.
fn without_itself(tokens: Tokens, ident: &Ident) -> Tokens {
    let mut replaced = Tokens::new();
    let mut rest = tokens.into_iter().peekable();
    let mut is_in_path = false;
    while let Some(token) = rest.next() {
        match token {
            TokenTree::Ident(named)
                if !is_in_path && (named == *ident || named == "Self") && !is_punctuation(rest.peek(), ':') =>
            {
                if is_punctuation(rest.peek(), '<') {
                    skip_arguments(&mut rest);
                }
                replaced.extend(quote!(__message::Itself));
                is_in_path = false;
            }
            TokenTree::Group(group) => {
                let inner = without_itself(group.stream(), ident);
                replaced.extend([TokenTree::Group(Group::new(group.delimiter(), inner))]);
                is_in_path = false;
            }
            token => {
                is_in_path = is_punctuation(Some(&token), ':');
                replaced.extend([token]);
            }
        }
    }
    replaced
}

fn is_punctuation(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(found)) if found.as_char() == sign)
}

/// Skips generic arguments, from `<` to its `>`.
fn skip_arguments(rest: &mut impl Iterator<Item = TokenTree>) {
    let mut depth = 0;
    for token in rest {
        if let TokenTree::Punct(sign) = token {
            match sign.as_char() {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
        }
        if depth == 0 {
            return;
        }
    }
}

fn type_options(input: &DeriveInput, module: &str) -> Result<TypeOptions> {
    let mut options = TypeOptions {
        module: syn::parse_str(module)?,
        name: input.ident.unraw().to_string(),
        version: 1,
        shape: None,
        answers: None,
    };
    for attribute in attributes_of(&input.attrs, Derived::Message) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("crate") {
                let crate_path = meta.value()?.call(Path::parse_mod_style)?;
                options.module = syn::parse_quote!(#crate_path::message::derived);
            } else if meta.path.is_ident("name") {
                options.name = name_text(&meta.value()?.parse()?)?;
            } else if meta.path.is_ident("version") {
                options.version = number(&meta.value()?.parse()?, 1, "versions begin at 1")?;
            } else if meta.path.is_ident("shape") {
                options.shape = Some(filled_text(&meta.value()?.parse()?)?);
            } else if meta.path.is_ident("request") {
                options.answers.get_or_insert_default();
            } else if meta.path.is_ident("reply") {
                options.answers.get_or_insert_default().reply = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("refusal") {
                options.answers.get_or_insert_default().refusal = Some(meta.value()?.parse()?);
            } else {
                return Err(
                    meta.error("`name`, `version`, `shape`, `request`, `reply`, `refusal` or `crate` is expected here")
                );
            }
            Ok(())
        })?;
    }
    Ok(options)
}

/// Additions come last, in order, and are not newer than the type.
fn check_versions(parts: &[TypePart], options: &TypeOptions) -> Result<()> {
    let version = options.version;
    let mut before = 1;
    for part in parts {
        if part.since > 1 && options.shape.is_some() {
            return Err(Error::new(part.ident.span(), "the type's `shape` is one text, so it has no older versions"));
        }
        if part.since > version {
            let text = format!("it is there since version {}, but the type has version {version}", part.since);
            return Err(Error::new(part.ident.span(), text));
        }
        if part.since < before {
            let text = format!("it follows an addition of version {before}: add only at the end");
            return Err(Error::new(part.ident.span(), text));
        }
        before = part.since;
    }
    Ok(())
}

/// Differ only by additions; newest first.
fn older_versions(parts: &[TypePart], version: u32) -> Vec<u32> {
    let additions: BTreeSet<u32> = parts.iter().map(|part| part.since).collect();
    (1..version).rev().take_while(|older| additions.contains(&(older + 1))).collect()
}

/// Each shape is computed only once: it is needed for each request of an older version.
fn older_list(older: &[u32], is_generic: bool) -> Tokens {
    if older.is_empty() {
        return Tokens::new();
    }
    let list = quote!(::std::vec![#(__message::OlderVersion::of::<Self>(#older)),*]);
    let list = if is_generic {
        list
    } else {
        quote! {
            static OLDER: ::std::sync::OnceLock<::std::vec::Vec<__message::OlderVersion>> = ::std::sync::OnceLock::new();
            ::std::clone::Clone::clone(OLDER.get_or_init(|| #list))
        }
    };
    quote! {
        fn older() -> ::std::vec::Vec<__message::OlderVersion> { #list }

        fn shape_as(version: u32) -> ::std::string::String { __message::shape_at::<Self>(version) }
    }
}

fn as_older(data: &Data, parts: &[TypePart], version: u32, older: &[u32]) -> Tokens {
    let is_struct = matches!(data, Data::Struct(_));
    let (encoders, decoders): (Vec<_>, Vec<_>) = older
        .iter()
        .map(|older| {
            let newer: Vec<_> = parts.iter().filter(|part| part.since > *older).collect();
            if is_struct {
                let idents = newer.iter().map(|part| &part.ident);
                let count = parts.len() - newer.len();
                let encoder = quote!(#older => __message::typed::encode_without(self, into, |into| {
                    #(__message::typed::encode::<Self, _>(&self.#idents, into)?;)*
                    ::core::result::Result::Ok(())
                }));
                return (encoder, quote!(#older => __message::typed::decode::<Self>(bytes, #count)));
            }
            let refusals = newer.iter().map(|TypePart { ident, since, .. }| {
                let name = ident.unraw().to_string();
                quote!(Self::#ident { .. } => ::core::result::Result::Err(__message::typed::too_new::<Self>(#name, #since, #older)))
            });
            let refusals: Vec<_> = refusals.collect();
            let encoder = quote!(#older => match self {
                #(#refusals,)*
                #[allow(unreachable_patterns)]
                _ => __message::typed::encode::<Self, Self>(self, into),
            });
            let decoder = quote!(#older => __message::typed::decode::<Self>(bytes, usize::MAX).and_then(|value| match value {
                #(#refusals,)*
                #[allow(unreachable_patterns)]
                value => ::core::result::Result::Ok(value),
            }));
            (encoder, decoder)
        })
        .unzip();
    quote! {
        fn encode_as(
            &self,
            version: u32,
            into: &mut ::std::vec::Vec<u8>,
        ) -> ::core::result::Result<(), __message::MessageError> {
            match version {
                #version => __message::Message::encode(self, into),
                #(#encoders,)*
                _ => ::core::result::Result::Err(__message::typed::other_version::<Self>(version)),
            }
        }

        fn decode_as(version: u32, bytes: &[u8]) -> ::core::result::Result<Self, __message::MessageError> {
            match version {
                #version => <Self as __message::Message>::decode(bytes),
                #(#decoders,)*
                _ => ::core::result::Result::Err(__message::typed::other_version::<Self>(version)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn bad_types_fail_in_place() {
        for (item, place, text) in [
            ("struct A<'a> { a: &'a str }", "'a", "a message owns what it holds"),
            ("union A { a: u8 }", "union", "serde does not know unions"),
            ("#[message(version = 0)] struct A;", "0", "versions begin at 1"),
            ("#[message(name = \"\")] struct A;", "\"\"", "an empty one was found"),
            (
                "#[message(id = 3)] struct A;",
                "id",
                "`name`, `version`, `shape`, `request`, `reply`, `refusal` or `crate` is expected",
            ),
            ("#[message(reply)] struct A;", ")", "expected"),
            ("#[message(refusal = 3)] struct A;", "3", "expected"),
            ("struct A { #[message(id = 3)] a: u8 }", "id", "`since`, `shape` or `deterministic` is expected"),
            ("struct A { #[message(since = 1)] a: u8 }", "1", "`since` begins at 2"),
            ("#[serde(default)] struct A { #[message(since = 2)] a: u8 }", "a", "the type has version 1"),
            ("#[message(version = 2)] struct A { #[message(since = 2)] a: u8 }", "2", "`#[serde(default)]` is missing"),
            ("#[message(version = 2)] struct A(#[serde(default)] #[message(since = 2)] u8);", "2", "only named fields"),
            (
                "#[message(version = 2)] #[serde(default)] struct A { #[message(since = 2)] a: u8, b: u8 }",
                "b",
                "add only at the end",
            ),
            ("#[message(version = 2)] enum A { #[message(since = 2)] B, C }", "C", "add only at the end"),
            ("#[message(version = 2)] enum A { B { #[message(since = 2)] c: u8 } }", "2", "add a variant"),
            (
                "#[message(version = 2, shape = \"x\")] #[serde(default)] struct A { #[message(since = 2)] a: u8 }",
                "a",
                "it has no older versions",
            ),
            ("struct A { #[serde(flatten)] a: B }", "flatten", "postcard does not say"),
            ("#[serde(untagged)] enum A { B }", "untagged", "postcard does not say"),
            ("#[serde(rename = \"b\", tag = \"t\")] enum A { B }", "tag", "postcard does not say"),
            ("struct A { #[serde(skip_serializing_if = \"f\")] a: B }", "skip_serializing_if", "by their position"),
            ("enum A { #[serde(skip)] B, C }", "skip", "by their position"),
            ("struct A { #[serde(with = \"f\")] a: B }", "with", "the encoding by `with` has no known shape"),
            (
                "#[serde(try_from = \"B\")] struct A { a: B }",
                "try_from",
                "the encoding by `try_from` has no known shape",
            ),
            ("struct A { #[serde(rename(serialize = \"b\"))] a: B }", "rename", "the same in both directions"),
        ] {
            let error = derive(item.parse().unwrap(), "::gapless_message::derived").unwrap_err();
            let at = error.span().source_text().unwrap_or_default();
            assert!(error.to_string().contains(text), "{item}: {error}");
            assert_eq!(at, place, "{item}: {error}");
        }
    }

    #[test]
    fn supported_serde_attributes_pass() {
        let item = "#[serde(deny_unknown_fields, bound(serialize = \"T: X\"), crate = \"x::serde\", expecting = \"an A\")] \
                    struct A<T> { #[serde(alias = \"b\", default = \"c\")] a: T }";
        let code = derive(item.parse().unwrap(), "::gapless::message::derived").unwrap();
        let file: syn::File = syn::parse2(code.clone()).unwrap();
        assert_eq!(file.items.len(), 1);
        assert!(code.to_string().contains("use :: gapless :: message :: derived as __message"));
    }

    #[test]
    fn fields_decide_about_order() {
        let deterministic = |item: &str| {
            let code = derive(item.parse().unwrap(), "::x").unwrap().to_string();
            code.split_once("single_use_lifetimes)] ").map(|(_, code)| code.to_owned())
        };
        let code = deterministic(
            "struct A<T> { a: Vec<T>, b: u8, c: u8, #[message(deterministic)] d: D, #[serde(skip)] e: E, f: Vec<A<T>> }",
        );
        let code = code.unwrap();
        assert!(code.contains("__message :: Deterministic for A < T >"), "{code}");
        assert_eq!(code.matches("for < '__deterministic >").count(), 3, "of Vec<T>, u8 and Vec<A<T>>: {code}");
        let code = deterministic("enum A { B(Box<Self>), C { d: D } }").unwrap();
        assert_eq!(code.matches("for < '__deterministic > D :").count(), 1, "{code}");
        assert_eq!(deterministic("#[serde(into = \"B\")] #[message(shape = \"x\")] struct A { a: B }"), None);
    }

    #[test]
    fn older_versions_end_at_a_gap() {
        let part = |since| TypePart { ident: Ident::new("a", Span::call_site()), since, shape: Tokens::new() };
        assert_eq!(older_versions(&[part(1)], 1), []);
        assert_eq!(older_versions(&[part(1)], 3), []);
        assert_eq!(older_versions(&[part(1), part(2), part(3)], 3), [2, 1]);
        assert_eq!(older_versions(&[part(1), part(2), part(4)], 4), [3]);
    }

    #[test]
    fn recursive_types_are_replaced() {
        let ident = Ident::new("Node", Span::call_site());
        let replaced = |ty: &str| without_itself(ty.parse().unwrap_or_default(), &ident).to_string().replace(' ', "");
        for (ty, expected) in [
            ("Vec<Node>", "Vec<__message::Itself>"),
            ("HashMap<u32, Self>", "HashMap<u32,__message::Itself>"),
            ("Option<Box<Node<Vec<T>, 3>>>", "Option<Box<__message::Itself>>"),
            ("(Node, [Node; 2])", "(__message::Itself,[__message::Itself;2])"),
            ("old::Node", "old::Node"),
            ("Node::Part", "Node::Part"),
            ("<Node as Part>::Name", "<__message::ItselfasPart>::Name"),
            ("NodeKind", "NodeKind"),
        ] {
            assert_eq!(replaced(ty), expected, "{ty}");
        }
    }
}
