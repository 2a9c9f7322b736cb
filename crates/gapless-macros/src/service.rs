//! `#[service]`.

use crate::handler::{Handler, HandlerKind};
use crate::service_client::{ClientOption, typed_client};
use proc_macro2::{Span, TokenStream as Tokens};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, ExprRange, FnArg, GenericParam, Ident, ImplItem, ImplItemFn, ItemImpl, Path, ReceiverKind,
    Result, ReturnType, Token, Type,
};

#[derive(Default)]
struct ServiceOptions {
    versions: Option<ExprRange>,
    client: ClientOption,
    crate_path: Option<Path>,
}

impl Parse for ServiceOptions {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                options.crate_path = Some(input.call(Path::parse_mod_style)?);
            } else {
                let option: Ident = input.parse()?;
                input.parse::<Token![=]>()?;
                if option == "versions" {
                    options.versions = Some(input.parse()?);
                } else if option == "client" {
                    options.client = input.parse()?;
                } else {
                    let text = "`versions = 1..=2`, `client = pub(crate) Name`, `client = none` or `crate = path` is \
                                expected here";
                    return Err(Error::new(option.span(), text));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

/// `module` has the traits, unless the options name another crate. The block is emitted even after an error, so that
/// its callers compile without further errors.
pub fn expand(options: Tokens, item: Tokens, module: &str) -> Tokens {
    let mut block = match syn::parse2::<ItemImpl>(item.clone()) {
        Ok(block) => block,
        Err(error) => {
            let error = Error::new(error.span(), "`#[service]` belongs on an inherent `impl` block of the state")
                .into_compile_error();
            return quote!(#item #error);
        }
    };
    let handlers = take_handlers(&mut block);
    let beside = handlers.and_then(|handlers| implementation(options, &block, &handlers, module));
    let beside = beside.unwrap_or_else(Error::into_compile_error);
    quote!(#block #beside)
}

/// Removes the attributes.
fn take_handlers(block: &mut ItemImpl) -> Result<Vec<Handler>> {
    let mut handlers: Vec<Handler> = Vec::new();
    let mut error: Option<Error> = None;
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let (marks, others) =
            std::mem::take(&mut method.attrs).into_iter().partition(|attribute| HandlerKind::of(attribute).is_some());
        method.attrs = others;
        let marks: Vec<Attribute> = marks;
        match handler_of(&marks, method) {
            Ok(handler) => handlers.extend(handler),
            Err(other) => match &mut error {
                None => error = Some(other),
                Some(error) => error.combine(other),
            },
        }
    }
    if let Some(error) = error {
        return Err(error);
    }
    for (index, handler) in handlers.iter().enumerate() {
        let text = |ty: &Type| ty.to_token_stream().to_string();
        let is_same = |other: &Handler| {
            other.kind == handler.kind && other.conditions.is_empty() && text(&other.message) == text(&handler.message)
        };
        if handler.conditions.is_empty() && handlers[..index].iter().any(is_same) {
            let text = format!("another {} takes this message, too", handler.kind.name());
            return Err(Error::new(handler.message.span(), text));
        }
    }
    Ok(handlers)
}

fn handler_of(marks: &[Attribute], method: &ImplItemFn) -> Result<Option<Handler>> {
    let Some((mark, kind)) = marks.first().and_then(|mark| Some((mark, HandlerKind::of(mark)?))) else {
        return Ok(None);
    };
    if let Some(other) = marks[1..].iter().find(|other| HandlerKind::of(other) != Some(kind)) {
        return Err(Error::new(other.span(), "a method handles one kind of message"));
    }
    mark.meta.require_path_only()?;
    handler(kind, method).map(Some)
}

fn handler(kind: HandlerKind, method: &ImplItemFn) -> Result<Handler> {
    let (signature, noun) = (&method.sig, kind.noun());
    if let Some(asyncness) = &signature.asyncness {
        return Err(Error::new(asyncness.span(), "a handler does not wait: it is not `async`"));
    }
    if let syn::Safety::Unsafe(unsafety) = &signature.safety {
        return Err(Error::new(unsafety.span(), "a handler cannot be `unsafe`: the engine calls it"));
    }
    let mut parameters = signature.generics.params.iter();
    if let Some(parameter) = parameters.find(|parameter| !matches!(parameter, GenericParam::Lifetime(_))) {
        let text = format!("{noun} has one type, so its handler has no generics but lifetimes");
        return Err(Error::new(parameter.span(), text));
    }
    let mut inputs = signature.inputs.iter();
    let receiver = inputs.next();
    let is_mutable = match receiver {
        Some(FnArg::Receiver(receiver)) => match receiver.kind {
            ReceiverKind::Reference(_, _, mutability) => Some(mutability.is_some()),
            _ => None,
        },
        _ => None,
    };
    if is_mutable != Some(kind.changes_state()) {
        let place = receiver.map_or_else(|| signature.paren_token.span.join(), Spanned::span);
        return Err(Error::new(place, kind.receiver()));
    }
    let mut types = inputs.filter_map(|input| match input {
        FnArg::Typed(parameter) => Some(&*parameter.ty),
        FnArg::Receiver(_) => None,
    });
    let Some(message) = types.next() else {
        let text = format!("the {} is expected as the second parameter, a type with `#[derive(Message)]`", kind.name());
        return Err(Error::new(signature.paren_token.span.join(), text));
    };
    if let Type::Reference(reference) = message {
        return Err(Error::new(reference.span(), format!("{noun} is owned: it comes from another process")));
    }
    let context = types.next();
    if let Some(context) = context {
        let is_mutable = match context {
            Type::Reference(reference) => Some(reference.mutability.is_some()),
            _ => None,
        };
        if is_mutable != Some(kind.changes_state()) {
            return Err(Error::new(context.span(), kind.context()));
        }
    }
    if let Some(more) = types.next() {
        let text = format!("a handler takes {noun} and the context: put more into the {}", kind.name());
        return Err(Error::new(more.span(), text));
    }
    let is_result = match &signature.output {
        ReturnType::Type(_, ty) => {
            matches!(&**ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Result"))
        }
        ReturnType::Default => false,
    };
    if let ReturnType::Type(_, ty) = &signature.output
        && !kind.has_answer()
    {
        return Err(Error::new(
            ty.span(),
            format!("no one waits for the answer to {noun}: its method returns nothing"),
        ));
    }
    let place = match &signature.output {
        ReturnType::Type(_, ty) => ty.span(),
        ReturnType::Default => signature.ident.span(),
    };
    Ok(Handler {
        kind,
        conditions: conditions_of(&method.attrs),
        documentation: attributes_named("doc", &method.attrs),
        method: signature.ident.clone(),
        message: message.clone(),
        has_context: context.is_some(),
        is_result,
        place: Span::call_site().located_at(place),
    })
}

fn conditions_of(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes_named("cfg", attributes)
}

fn attributes_named(name: &str, attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident(name)).cloned().collect()
}

fn implementation(options: Tokens, block: &ItemImpl, handlers: &[Handler], module: &str) -> Result<Tokens> {
    let options: ServiceOptions = syn::parse2(options)?;
    if let Some((path, _)) = &block.trait_ {
        return Err(Error::new(
            path.span(),
            "`#[service]` belongs on an inherent `impl` block of the state, not of a trait",
        ));
    }
    if !handlers.iter().any(|handler| matches!(handler.kind, HandlerKind::Command | HandlerKind::Event)) {
        let text = "a service needs at least one method with `#[command]`, or with `#[event]` on an event stream";
        return Err(Error::new(block.self_ty.span(), text));
    }
    let module: Path = match options.crate_path {
        Some(crate_path) => syn::parse_quote!(#crate_path::service::derived),
        None => syn::parse_str(module)?,
    };
    let conditions = conditions_of(&block.attrs);
    let client = typed_client(options.client, block, &conditions, handlers, &module)?;
    let handlers = handlers.iter().map(|handler| {
        let Handler { kind, conditions, method, message, has_context, is_result, place, .. } = handler;
        let context = has_context.then(|| quote!(, context));
        let call = quote_spanned!(*place=> Self::#method(service, message #context));
        let is_wrapped = kind.has_answer() && !is_result;
        let call = if is_wrapped { quote_spanned!(*place=> ::core::result::Result::Ok(#call)) } else { call };
        let parameter = if *has_context { quote!(context) } else { quote!(_) };
        let register = Ident::new(kind.name(), *place);
        let mutability = kind.changes_state().then(|| quote!(mut));
        quote_spanned!(*place=> #(#conditions)*
            handlers.#register::<#message>(|service: &#mutability Self, message, #parameter| #call);)
    });
    let versions = options.versions.map(|versions| {
        quote! {
            fn versions() -> ::core::ops::RangeInclusive<u32> {
                #versions
            }
        }
    });
    let (state, (impl_generics, _, where_clause)) = (&block.self_ty, block.generics.split_for_impl());
    Ok(quote! {
        #client

        #(#conditions)*
        const _: () = {
            // The only name in scope for the generated code, unlikely to exist in the application.
            use #module as __service;

            #[automatically_derived]
            impl #impl_generics __service::Service for #state #where_clause {
                fn handlers(handlers: &mut __service::Handlers<Self>) {
                    #(#handlers)*
                }

                #versions

                fn snapshot(&self, bytes: &mut ::std::vec::Vec<u8>) {
                    __service::write_state(self, bytes);
                }

                fn restore(&mut self, bytes: &[u8]) -> ::core::result::Result<(), ::std::string::String> {
                    *self = __service::read_state(bytes).map_err(|error| ::std::string::ToString::to_string(&error))?;
                    ::core::result::Result::Ok(())
                }
            }
        };
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(options: &str, item: &str) -> String {
        let code =
            expand(options.parse().unwrap(), item.parse().unwrap(), "::gapless_engine::service::derived").to_string();
        let (_, error) = code.split_once("compile_error").unwrap_or_else(|| panic!("no error for {item}: {code}"));
        error.to_owned()
    }

    #[test]
    fn bad_services_are_errors() {
        for (options, item, text) in [
            ("", "fn a() {}", "belongs on an inherent `impl`"),
            ("", "struct A;", "belongs on an inherent `impl`"),
            ("", "impl A { fn a(&mut self, c: C) {} }", "at least one method with `#[command]`"),
            ("", "impl B for A { #[command] fn a(&mut self, c: C) {} }", "not of a trait"),
            ("", "impl A { #[command] async fn a(&mut self, c: C) {} }", "not `async`"),
            ("", "impl A { #[command] unsafe fn a(&mut self, c: C) {} }", "cannot be `unsafe`"),
            ("", "impl A { #[command] fn a<T>(&mut self, c: T) {} }", "no generics"),
            ("", "impl A { #[command] fn a() {} }", "`&mut self` is expected"),
            ("", "impl A { #[command] fn a(&self, c: C) {} }", "`&mut self` is expected"),
            ("", "impl A { #[command] fn a(self, c: C) {} }", "`&mut self` is expected"),
            ("", "impl A { #[command] fn a(c: C) {} }", "`&mut self` is expected"),
            ("", "impl A { #[command] fn a(&mut self) {} }", "second parameter"),
            ("", "impl A { #[command] fn a(&mut self, c: &C) {} }", "a command is owned"),
            ("", "impl A { #[command] fn a(&mut self, c: C, d: D) {} }", "`&mut Context<'_>` is expected"),
            ("", "impl A { #[command] fn a(&mut self, c: C, d: &D) {} }", "`&mut Context<'_>` is expected"),
            ("", "impl A { #[command] fn a(&mut self, c: C, d: &mut D, e: E) {} }", "put more into the command"),
            (
                "",
                "impl A { #[command] fn a(&mut self, c: C) {} #[command] fn b(&mut self, c: C) {} }",
                "another command takes this message",
            ),
            ("", "impl A { #[timer] fn a(&mut self, t: T) {} }", "at least one method with `#[command]`"),
            ("", "impl A { #[timer] fn a(&mut self, t: T) -> u8 { 1 } }", "no one waits for the answer to a timer"),
            ("", "impl A { #[event] fn a(&mut self, e: E) -> Result<(), ()> {} }", "returns nothing"),
            ("", "impl A { #[event] #[timer] fn a(&mut self, e: E) {} }", "one kind of message"),
            (
                "",
                "impl A { #[event] fn a(&mut self, c: C) {} #[event] fn b(&mut self, c: C) {} }",
                "another event takes this message",
            ),
            ("", "impl A { #[command(b)] fn a(&mut self, c: C) {} }", "unexpected token"),
            ("", "impl A { #[query] fn a(&self, q: Q) {} }", "at least one method with `#[command]`"),
            ("", "impl A { #[query] async fn a(&self, q: Q) {} }", "not `async`"),
            ("", "impl A { #[query] unsafe fn a(&self, q: Q) {} }", "cannot be `unsafe`"),
            ("", "impl A { #[query] fn a<T>(&self, q: T) {} }", "a query has one type"),
            ("", "impl A { #[query] fn a() {} }", "`&self` is expected"),
            ("", "impl A { #[query] fn a(&mut self, q: Q) {} }", "`&self` is expected: a query reads the state"),
            ("", "impl A { #[query] fn a(self, q: Q) {} }", "`&self` is expected"),
            ("", "impl A { #[query] fn a(self: Box<Self>, q: Q) {} }", "`&self` is expected"),
            ("", "impl A { #[query] fn a(q: Q) {} }", "`&self` is expected"),
            ("", "impl A { #[query] fn a(&self) {} }", "the query is expected as the second parameter"),
            ("", "impl A { #[query] fn a(&self, q: &Q) {} }", "a query is owned"),
            ("", "impl A { #[query] fn a(&self, q: Q, d: D) {} }", "`&QueryContext` is expected"),
            ("", "impl A { #[query] fn a(&self, q: Q, d: &mut D) {} }", "`&QueryContext` is expected"),
            ("", "impl A { #[query] fn a(&self, q: Q, d: &D, e: E) {} }", "put more into the query"),
            ("", "impl A { #[query] #[command] fn a(&self, q: Q) {} }", "one kind of message"),
            ("", "impl A { #[query(b)] fn a(&self, q: Q) {} }", "unexpected token"),
            (
                "",
                "impl A { #[query] fn a(&self, q: Q) {} #[query] fn b(&self, q: Q) {} }",
                "another query takes this message",
            ),
            ("name = 3", "impl A { #[command] fn a(&mut self, c: C) {} }", "`versions = 1..=2`"),
            ("client = 3", "impl A { #[command] fn a(&mut self, c: C) {} }", "a name is expected"),
            ("client = pub none", "impl A { #[command] fn a(&mut self, c: C) {} }", "`none` makes no type"),
            ("client = B", "impl A { #[event] fn a(&mut self, c: C) {} }", "no command and no query"),
            ("client = B", "impl A<T> { #[command] fn a(&mut self, c: C) {} }", "a state with generics"),
            ("client = B", "impl [A] { #[command] fn a(&mut self, c: C) {} }", "`impl` block of a named type"),
            ("client = A", "impl A { #[command] fn a(&mut self, c: C) {} }", "`A` is the state"),
            ("", "impl A { #[command] fn client(&mut self, c: C) {} }", "`AClient` has a function `client` of its own"),
            (
                "",
                "impl A { #[command] fn a(&mut self, c: C) {} #[query] fn new(&self, c: C) {} }",
                "`AClient` has a function `new` of its own",
            ),
            ("versions = 3", "impl A { #[command] fn a(&mut self, c: C) {} }", "range"),
        ] {
            let error = error_of(options, item);
            assert!(error.contains(text), "{item}: {error}");
        }
    }

    #[test]
    fn block_remains_after_error() {
        let item = "impl A { #[command] fn a(&self, c: C) {} #[command] fn b(self, c: C) {} fn c(&self) {} }";
        let code = expand(Tokens::new(), item.parse().unwrap(), "::gapless_engine::service::derived").to_string();
        assert!(code.contains("fn a (& self , c : C) { }") && code.contains("fn c (& self) { }"), "{code}");
        assert_eq!(code.matches("`&mut self` is expected").count(), 2, "all errors at once: {code}");
    }

    #[test]
    fn handlers_and_options_are_written() {
        let item = "impl<T: State> A<T> { #[command] #[inline] fn a(&mut self, c: C) -> u8 { 1 } \
                    #[command] fn b(&mut self, d: D, context: &mut Context<'_>) -> Result<(), E> { Ok(()) } \
                    #[query] fn c(&self, c: C) -> u8 { 1 } \
                    #[query] fn d(&self, q: Q, context: &QueryContext) -> Result<(), E> { Ok(()) } }";
        let code = expand("versions = 1..=2, crate = foundation".parse().unwrap(), item.parse().unwrap(), "::x");
        let file: syn::File = syn::parse2(code.clone()).unwrap();
        assert_eq!(file.items.len(), 2, "a state with generics has no client");
        let code = code.to_string();
        for part in [
            "use foundation :: service :: derived as __service",
            "impl < T : State > __service :: Service for A < T >",
            "1 ..= 2",
            "command :: < C > (| service : & mut Self , message , _ | :: core :: result :: Result :: Ok (Self :: a (service , message)))",
            "command :: < D > (| service : & mut Self , message , context | Self :: b (service , message , context))",
            "query :: < C > (| service : & Self , message , _ | :: core :: result :: Result :: Ok (Self :: c (service , message)))",
            "query :: < Q > (| service : & Self , message , context | Self :: d (service , message , context))",
        ] {
            assert!(code.contains(part), "{part} is not in {code}");
        }
    }

    #[test]
    fn client_has_commands_and_queries() {
        let item = "impl b::A { /// Adds.\n #[command] fn a(&mut self, c: C) -> u8 { 1 } \
                    #[cfg(x)] #[query] fn q(&self, q: <Self as B>::Q) -> u8 { 1 } \
                    #[timer] fn t(&mut self, t: T) {} #[event] fn e(&mut self, e: E) {} }";
        let expanded = |options: &str| {
            let code = expand(options.parse().unwrap(), item.parse().unwrap(), "::x");
            syn::parse2::<syn::File>(code.clone()).unwrap();
            code.to_string()
        };
        let code = expanded("");
        for part in [
            "pub struct AClient (:: x :: Client)",
            "# [doc = \" Adds.\"] pub fn a (& self , command : C) -> :: x :: Call < C >",
            "# [cfg (x)] # [doc = \" Asks the query `q`.\"] pub fn q (& self , query : < b :: A as B > :: Q) -> :: x :: Query < < b :: A as B > :: Q >",
            "From < :: x :: Client > for AClient",
        ] {
            assert!(code.contains(part), "{part} is not in {code}");
        }
        assert!(!code.contains("pub fn t") && !code.contains("pub fn e"), "{code}");
        assert!(expanded("client = pub(crate) Till").contains("pub (crate) struct Till"));
        assert!(
            expanded("client = Till").contains("allow (dead_code , private_interfaces , unreachable_pub)] struct Till")
        );
        assert!(!expanded("client = none").contains("Client"));
    }

    #[test]
    fn conditions_are_copied() {
        let item = "#[cfg(a)] impl A { #[cfg(b)] #[command] fn a(&mut self, c: C) {} \
                    #[command] #[cfg(not(b))] fn b(&mut self, c: C) {} }";
        let code = expand(Tokens::new(), item.parse().unwrap(), "::x").to_string();
        assert!(!code.contains("compile_error"), "{code}");
        assert_eq!(code.matches("# [cfg (a)]").count(), 5, "block, client, its two implementations, service: {code}");
        for part in ["# [cfg (a)] const _", "# [cfg (b)] handlers . command", "# [cfg (not (b))] handlers . command"] {
            assert!(code.contains(part), "{part} is not in {code}");
        }
    }
}
