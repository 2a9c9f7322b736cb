//! Typed client of a `#[service]`: a type with one method for each command and query.

use crate::handler::{Handler, HandlerKind};
use proc_macro2::{Group, Span, TokenStream as Tokens, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, Ident, ItemImpl, Path, Result, Type, Visibility};

/// Functions of each client, and those of its traits.
const OWN_FUNCTIONS: [&str; 8] = ["new", "client", "clone", "clone_from", "fmt", "from", "into", "to_owned"];

/// Option `client = …`.
#[derive(Default)]
pub enum ClientOption {
    /// `pub`, and named after the state. The visibility of the state is unknown here; a client is often public where the
    /// state is not.
    #[default]
    Public,
    Without,
    Named(Visibility, Ident),
}

impl Parse for ClientOption {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let visibility: Visibility = input.parse()?;
        let name: Ident = input
            .parse()
            .map_err(|error| Error::new(error.span(), "a name is expected: `client = pub(crate) Name`"))?;
        match (name == "none", &visibility) {
            (false, _) => Ok(Self::Named(visibility, name)),
            (true, Visibility::Inherited) => Ok(Self::Without),
            (true, _) => Err(Error::new(name.span(), "`none` makes no type, so it has no visibility")),
        }
    }
}

/// Returns nothing for a state with generics, or without commands and queries, unless the options ask for a client.
pub fn typed_client(
    option: ClientOption,
    block: &ItemImpl,
    conditions: &[Attribute],
    handlers: &[Handler],
    module: &Path,
) -> Result<Tokens> {
    let named = match option {
        ClientOption::Without => return Ok(Tokens::new()),
        ClientOption::Public => None,
        ClientOption::Named(visibility, name) => Some((visibility, name)),
    };
    let handlers: Vec<&Handler> = handlers.iter().filter(|handler| handler.kind.has_answer()).collect();
    let state = match &*block.self_ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    };
    let refusal = match state {
        None => Some("a client needs an `impl` block of a named type"),
        Some(state) if !block.generics.params.is_empty() || !state.arguments.is_none() => {
            Some("a state with generics has no client: its methods would need the types; write it by hand")
        }
        Some(_) if handlers.is_empty() => Some("the service has no command and no query, so it has no client"),
        Some(_) => None,
    };
    let (Some(state), None) = (state, refusal) else {
        return match (named, refusal) {
            (Some((_, name)), Some(text)) => Err(Error::new(name.span(), text)),
            _ => Ok(Tokens::new()),
        };
    };
    let (visibility, client) = named.unwrap_or_else(|| {
        let name = format_ident!("{}Client", state.ident, span = Span::call_site().located_at(state.ident.span()));
        (syn::parse_quote!(pub), name)
    });
    if client == state.ident {
        return Err(Error::new(client.span(), format!("`{client}` is the state: its client needs another name")));
    }
    let methods = handlers.into_iter().map(|handler| method(handler, &client, &block.self_ty, module));
    let methods = methods.collect::<Result<Vec<_>>>()?;
    let documentation = format!(
        " Client of `{}`: one method for each command and query. For another name, or none: `#[service(client = …)]`.",
        state.ident
    );
    let made = format!(" Makes a `{client}` of a client of the service.");
    // Requests may be less visible than the client: whoever cannot name them has no use for the method.
    let lints = quote!(#[allow(dead_code, private_interfaces, unreachable_pub)]);
    Ok(quote! {
        #(#conditions)*
        #[doc = #documentation]
        #[derive(Clone, Debug)]
        #lints
        #visibility struct #client(#module::Client);

        #(#conditions)*
        #lints
        impl #client {
            #[doc = #made]
            #[must_use]
            pub const fn new(client: #module::Client) -> Self {
                Self(client)
            }

            /// Returns the client of any request.
            #[must_use]
            pub const fn client(&self) -> &#module::Client {
                &self.0
            }

            #(#methods)*
        }

        #(#conditions)*
        #[automatically_derived]
        impl ::core::convert::From<#module::Client> for #client {
            fn from(client: #module::Client) -> Self {
                Self(client)
            }
        }
    })
}

fn method(handler: &Handler, client: &Ident, state: &Type, module: &Path) -> Result<Tokens> {
    let Handler { kind, conditions, documentation, method, message, .. } = handler;
    if OWN_FUNCTIONS.iter().any(|own| method == own) {
        let text = format!(
            "`{client}` has a function `{method}` of its own: give the method another name, or write `client = none`"
        );
        return Err(Error::new(method.span(), text));
    }
    let message = in_place_of_self(message.to_token_stream(), state);
    let (future, call, verb) = match kind {
        HandlerKind::Query => ("Query", "query", "Asks"),
        _ => ("Call", "call", "Sends"),
    };
    let (future, call) = (Ident::new(future, Span::call_site()), Ident::new(call, Span::call_site()));
    let parameter = Ident::new(kind.name(), Span::call_site());
    let default = documentation.is_empty().then(|| {
        let text = format!(" {verb} the {} `{method}`.", kind.name());
        quote!(#[doc = #text])
    });
    Ok(quote! {
        #(#conditions)*
        #(#documentation)*
        #default
        pub fn #method(&self, #parameter: #message) -> #module::#future<#message> {
            self.0.#call(#parameter)
        }
    })
}

/// Replaces `Self`, which is the client in the methods of the client.
fn in_place_of_self(tokens: Tokens, state: &Type) -> Tokens {
    let replaced = tokens.into_iter().map(|token| match token {
        TokenTree::Ident(ident) if ident == "Self" => state.to_token_stream(),
        TokenTree::Group(group) => {
            TokenTree::Group(Group::new(group.delimiter(), in_place_of_self(group.stream(), state))).into()
        }
        token => token.into(),
    });
    replaced.collect()
}
