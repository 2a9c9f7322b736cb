//! `#[route]`.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, FnArg, GenericArgument, ItemFn, LitStr, Path, PathArguments, Result, ReturnType, Token, Type};

/// The rule of `gapless_rpc::route_name`.
const ROUTE_NAME_LENGTH_MAX: usize = 128;

#[derive(Default)]
struct RouteOptions {
    name: Option<LitStr>,
    crate_path: Option<Path>,
}

impl Parse for RouteOptions {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            if input.peek(LitStr) && options.name.is_none() {
                options.name = Some(input.parse()?);
            } else if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                options.crate_path = Some(input.call(Path::parse_mod_style)?);
            } else {
                let option: syn::Ident = input.call(syn::Ident::parse_any)?;
                if option != "name" {
                    return Err(Error::new(option.span(), "a text, `name = \"…\"` or `crate = path` is expected here"));
                }
                input.parse::<Token![=]>()?;
                options.name = Some(input.parse()?);
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

#[derive(Clone, Copy)]
enum ContextForm {
    Absent,
    Borrowed,
    Owned,
}

pub fn expand(options: Tokens, item: Tokens, crate_path: &str) -> Result<Tokens> {
    let options: RouteOptions = syn::parse2(options)?;
    let function: ItemFn = syn::parse2(item).map_err(|error| {
        Error::new(error.span(), "`#[route]` stands on a function: `fn` or `async fn`, outside of an `impl`")
    })?;
    refuse_what_no_route_can_be(&function)?;
    let (request, context) = parameters(&function)?;
    let (reply, is_result) = reply(&function)?;
    let name = name(&options, &function)?;
    let crate_path = options.crate_path.map_or_else(|| syn::parse_str(crate_path), Ok)?;

    let ident = &function.sig.ident;
    let visibility = &function.vis;
    let is_async = function.sig.asyncness.is_some();
    let argument = match (context, is_async) {
        (ContextForm::Absent, _) => Tokens::new(),
        (ContextForm::Borrowed, true) => quote!(&context),
        (ContextForm::Owned, false) => quote!(context.clone()),
        (ContextForm::Borrowed, false) | (ContextForm::Owned, true) => quote!(context),
    };
    let call = quote!(#ident(request, #argument));
    let call = if is_async { quote!(#call.await) } else { call };
    let outcome = if is_result {
        quote!(#call.map_err(::core::convert::Into::into))
    } else {
        quote!(::core::result::Result::Ok(#call))
    };
    let result = quote!(::core::result::Result<#reply, #crate_path::Rejection>);
    let parameter = if matches!(context, ContextForm::Absent) { quote!(_context) } else { quote!(context) };
    let handle = if is_async {
        quote!(builder.handle_async(|request: #request, #parameter: #crate_path::CallContext| async move {
            let outcome: #result = #outcome;
            outcome
        }))
    } else {
        quote!(builder.handle(|request: #request, #parameter: &#crate_path::CallContext| -> #result { #outcome }))
    };
    let conditions: Vec<_> = function.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
    let about = format!("The route `{}`: its name, its server and its client.", name.value());
    // An enum without variants lives in the type namespace only, so it does not conflict with the function.
    Ok(quote! {
        #[doc = #about]
        #[allow(non_camel_case_types)]
        #(#conditions)*
        #visibility enum #ident {}

        #[allow(dead_code)]
        #(#conditions)*
        impl #ident {
            /// The route's name.
            #visibility const NAME: &'static str = #name;

            /// Serves the route with the domain's defaults.
            ///
            /// # Errors
            /// As those of the builder.
            #visibility fn serve(
                domain: &#crate_path::Domain,
            ) -> ::core::result::Result<#crate_path::ServedRoute, #crate_path::RpcError> {
                Self::serve_by(domain.serve(Self::NAME))
            }

            /// Serves the route as the builder says.
            ///
            /// # Errors
            /// As those of the builder.
            #visibility fn serve_by(
                builder: #crate_path::RouteBuilder,
            ) -> ::core::result::Result<#crate_path::ServedRoute, #crate_path::RpcError> {
                #handle
            }

            /// The route's client.
            ///
            /// # Errors
            /// As those of the domain.
            #visibility fn caller(
                domain: &#crate_path::Domain,
            ) -> ::core::result::Result<#crate_path::Caller<#request, #reply>, #crate_path::RpcError> {
                domain.caller::<#request, #reply>(Self::NAME)
            }
        }
    })
}

fn refuse_what_no_route_can_be(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if let syn::Safety::Unsafe(unsafety) = &signature.safety {
        let text = "a route's function is called by whoever calls the route, who promises nothing: it is not `unsafe`";
        return Err(Error::new(unsafety.span(), text));
    }
    if !signature.generics.params.is_empty() {
        let text = "a route has one type of request and one of reply, so its function has no generics";
        return Err(Error::new(signature.generics.span(), text));
    }
    if let Some(clause) = &signature.generics.where_clause {
        return Err(Error::new(clause.span(), "a route's function has no generics, so there is nothing to bound"));
    }
    if let Some(variadic) = &signature.variadic {
        return Err(Error::new(variadic.span(), "a route's function takes a request and at most the call's context"));
    }
    if let Some(receiver) = signature.receiver() {
        let text = "a route's function has no `self`: state that its workers share goes to `RouteBuilder::handle` in a closure";
        return Err(Error::new(receiver.span(), text));
    }
    Ok(())
}

const ONE_REQUEST: &str = "a route has one request: send a struct for more; the only other parameter is the call's context, \
                           `&CallContext` is expected";

/// Whether a type may be the context, under any name: it has no parameters, and is neither a primitive nor a `String`.
fn may_be_context(path: &Path) -> bool {
    path.segments.last().is_some_and(|last| {
        let name = last.ident.unraw().to_string();
        last.arguments.is_none() && name != "String" && !name.starts_with(|letter: char| letter.is_ascii_lowercase())
    })
}

fn is_context_type(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if may_be_context(&path.path))
}

fn parameters(function: &ItemFn) -> Result<(&Type, ContextForm)> {
    let mut types = function.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(parameter) => Some(&*parameter.ty),
        FnArg::Receiver(_) => None,
    });
    let Some(request) = types.next() else {
        let text = "a route's function takes the request as its first parameter; `()` is a request without content";
        return Err(Error::new(function.sig.paren_token.span.join(), text));
    };
    refuse_borrowed(request, "a request is owned: it comes from another process")?;
    let context = match types.next() {
        None => ContextForm::Absent,
        Some(Type::Reference(reference)) if reference.mutability.is_none() && is_context_type(&reference.elem) => {
            ContextForm::Borrowed
        }
        Some(Type::Path(path)) if may_be_context(&path.path) => ContextForm::Owned,
        Some(other) => return Err(Error::new(other.span(), ONE_REQUEST)),
    };
    match types.next() {
        None => Ok((request, context)),
        Some(other) => Err(Error::new(other.span(), ONE_REQUEST)),
    }
}

fn reply(function: &ItemFn) -> Result<(&Type, bool)> {
    let signature = &function.sig;
    let ReturnType::Type(_, returned) = &signature.output else {
        let text = "a route's function says what it replies: `-> Reply` or `-> Result<Reply, Rejection>` is missing; `-> ()` if \
                    there is nothing to say";
        let end = signature.paren_token.span.close();
        return Err(Error::new(end, text));
    };
    let reply = match &**returned {
        Type::Path(path) => match path.path.segments.last() {
            Some(last) if last.ident == "Result" => match &last.arguments {
                PathArguments::AngleBracketed(arguments) => arguments.args.iter().find_map(|argument| match argument {
                    GenericArgument::Type(ty) => Some(ty),
                    _ => None,
                }),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let (reply, is_result) = reply.map_or((&**returned, false), |reply| (reply, true));
    refuse_borrowed(reply, "a reply is owned: it goes to another process")?;
    Ok((reply, is_result))
}

fn refuse_borrowed(ty: &Type, why: &str) -> Result<()> {
    match ty {
        Type::Reference(_) => Err(Error::new(ty.span(), why)),
        Type::ImplTrait(_) | Type::Infer(_) | Type::Never(_) => {
            Err(Error::new(ty.span(), "a type with a name is expected: the client has to name it, too"))
        }
        _ => Ok(()),
    }
}

fn name(options: &RouteOptions, function: &ItemFn) -> Result<LitStr> {
    let ident = &function.sig.ident;
    let name = options.name.clone().unwrap_or_else(|| LitStr::new(&ident.unraw().to_string(), ident.span()));
    let text = name.value();
    let is_first = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_part =
        |part: &str| part.starts_with(is_first) && part.chars().all(|letter| is_first(letter) || ".-".contains(letter));
    if text.len() <= ROUTE_NAME_LENGTH_MAX && text.split('/').all(is_part) {
        return Ok(name);
    }
    let text = format!(
        "{text:?} is no route's name: at most {ROUTE_NAME_LENGTH_MAX} letters, digits, \".\", \"-\" and \"_\" are expected, in parts \
         with \"/\" between them, each beginning with a letter, a digit or \"_\""
    );
    Err(Error::new(name.span(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(options: &str, item: &str) -> (String, String) {
        let error = expand(options.parse().unwrap(), item.parse().unwrap(), "::gapless_rpc").unwrap_err();
        (error.to_string(), error.span().source_text().unwrap_or_default())
    }

    #[test]
    fn code_uses_the_crate_path() {
        let item: Tokens = "pub fn add(request: Add) -> Sum { Sum(0) }".parse().unwrap();
        let code = expand(Tokens::new(), item.clone(), "::gapless::rpc").unwrap();
        let file: syn::File = syn::parse2(code.clone()).unwrap();
        assert_eq!(file.items.len(), 2, "a type and its functions");
        let code = code.to_string();
        assert!(code.contains(":: gapless :: rpc :: Domain") && !code.contains("gapless_rpc"), "{code}");
        let code = expand("crate = other::path".parse().unwrap(), item, "::gapless::rpc").unwrap().to_string();
        assert!(code.contains("other :: path :: Domain") && !code.contains("gapless"), "{code}");
    }

    #[test]
    fn bad_functions_fail_in_place() {
        for (item, place, text) in [
            ("fn f(r: A) {}", ")", "`-> Reply` or `-> Result<Reply, Rejection>` is missing"),
            ("fn f() -> B { B }", "()", "takes the request as its first parameter"),
            ("fn f(&self, r: A) -> B { B }", "&self", "no `self`"),
            ("unsafe fn f(r: A) -> B { B }", "unsafe", "not `unsafe`"),
            ("fn f<T>(r: T) -> B { B }", "<T>", "no generics"),
            ("fn f<'a>(r: &'a A) -> B { B }", "<'a>", "no generics"),
            ("fn f(r: A) -> B where A: Copy { B }", "where A: Copy", "nothing to bound"),
            ("fn f(r: &A) -> B { B }", "&A", "a request is owned"),
            ("fn f(r: A) -> &'static str { B }", "&'static str", "a reply is owned"),
            ("fn f(r: A) -> Result<&'static str, E> { B }", "&'static str", "a reply is owned"),
            ("fn f(r: A) -> impl Message { B }", "impl Message", "a type with a name"),
            ("fn f(r: impl Message) -> B { B }", "impl Message", "a type with a name"),
            ("fn f(r: A, c: &mut CallContext) -> B { B }", "&mut CallContext", "`&CallContext` is expected"),
            ("fn f(r: A, c: &CallContext, more: u8) -> B { B }", "u8", "a route has one request"),
            ("fn f(a: i64, b: i64) -> i64 { a }", "i64", "a route has one request"),
            ("fn f(a: A, b: &str) -> B { B }", "&str", "a route has one request"),
            ("fn f(a: A, b: std::string::String) -> B { B }", "std::string::String", "a route has one request"),
            ("fn f(a: A, b: Vec<B>) -> B { B }", "Vec<B>", "a route has one request"),
            ("fn f(a: A, b: (B, B)) -> B { B }", "(B, B)", "a route has one request"),
            ("struct F;", "struct", "stands on a function"),
        ] {
            let (found, at) = refusal("", item);
            assert!(found.contains(text), "{item}: {found}");
            assert_eq!(at, place, "{item}: {found}");
        }
    }

    #[test]
    fn bad_options_fail_in_place() {
        let long = format!("\"{}\"", "x".repeat(129));
        for (options, place, text) in [
            ("\"a b\"", "\"a b\"", "is no route's name"),
            ("name = \"\"", "\"\"", "is no route's name"),
            ("\"../x\"", "\"../x\"", "is no route's name"),
            ("\"a/\"", "\"a/\"", "is no route's name"),
            ("\"-v\"", "\"-v\"", "is no route's name"),
            (&long, &*long, "at most 128 letters"),
            ("workers = 3", "workers", "`name = \"…\"` or `crate = path` is expected"),
            ("\"a\", \"b\"", "\"b\"", ""),
        ] {
            let (found, at) = refusal(options, "fn f(r: A) -> B { B }");
            assert!(found.contains(text), "{options}: {found}");
            assert_eq!(at, place, "{options}: {found}");
        }
        let (found, at) = refusal("", "fn größe(r: A) -> B { B }");
        assert!(found.contains("\"größe\" is no route's name"), "{found}");
        assert_eq!(at, "größe");
    }
}
