//! What calls and the command bus derive: messages from serde types, routes from functions. Used through `gapless-rpc`, `gapless-cqrs` or the face,
//! where the documentation of its macros is.
//!
//! | module | what lives there |
//! |---|---|
//! | `message` | `#[derive(Message)]` |
//! | `route` | `#[route]` |
//! | `serde_attributes` | what serde is told about a type, as far as it changes the bytes |
//!
//! Each macro is there for each crate that gives it out, because it writes paths and an application may depend on any of them: `Message` and
//! `route` name `::gapless_rpc`, `CommandMessage` names `::gapless_cqrs`; `FaceMessage`, `face_route` and `FaceCommandMessage`, which the
//! face gives out under the names of the others, name `::gapless::rpc` and `::gapless::cqrs`. Who has renamed the crate says `crate = path`.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod message;
mod route;
mod serde_attributes;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;

/// Implements `gapless_rpc::Message` and `gapless_rpc::message::Shape` for a type that is `Serialize` and `DeserializeOwned`.
///
/// On the type, in `#[message(…)]`:
///
/// | attribute | default | meaning |
/// |---|---|---|
/// | `name = "…"` | the type's own name | its name for the other side and in errors: say the old one when the type is renamed |
/// | `version = n` | 1 | from 1. A version that adds nothing (`since`) is another message: old and new refuse each other |
/// | `shape = "…"` | made of the fields | the shape is this text; for types that serde writes by `from`, `into` or `try_from` |
/// | `crate = path` | `::gapless_rpc`; `::gapless::rpc` for the derive of the face | the module that has `message`, where the application has renamed the crate or gives it out again |
///
/// On a field or variant:
///
/// | attribute | meaning |
/// |---|---|
/// | `since = n` | it came with version n; everything behind it did so, too. A field needs `#[serde(default)]` |
/// | `shape = "…"` | its shape is this text, for types whose shape is not known; change the text when the type changes |
///
/// Programs of all versions in which something was added by `since` understand each other, whichever side is new. A field that one side
/// lacks is its default at the other. A variant that one side lacks is not sent: the call ends with `CallError::BadMessage`, which
/// names it; in a reply the handler has run by then.
///
/// What serde can do and postcard cannot (`flatten`, `untagged`, `tag`, `skip_serializing_if` …) is an error.
#[proc_macro_derive(Message, attributes(message))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    finish(message::derive(input.into(), "::gapless_rpc"))
}

/// As `Message`, for applications that depend on the crate `gapless`: its code names `::gapless::rpc`.
#[proc_macro_derive(FaceMessage, attributes(message))]
pub fn derive_face_message(input: TokenStream) -> TokenStream {
    finish(message::derive(input.into(), "::gapless::rpc"))
}

/// As `Message`, for applications that depend on the crate `gapless-cqrs`: its code names `::gapless_cqrs`.
#[proc_macro_derive(CommandMessage, attributes(message))]
pub fn derive_command_message(input: TokenStream) -> TokenStream {
    finish(message::derive(input.into(), "::gapless_cqrs"))
}

/// As `CommandMessage`, for applications that depend on the crate `gapless`: its code names `::gapless::cqrs`.
#[proc_macro_derive(FaceCommandMessage, attributes(message))]
pub fn derive_face_command_message(input: TokenStream) -> TokenStream {
    finish(message::derive(input.into(), "::gapless::cqrs"))
}

/// Makes a route and its typed client of a function.
///
/// The function stays as it is: `fn` or `async fn`, with the request as its first parameter and, if it wants it, the call's context as
/// its second (`&CallContext` or `CallContext`), returning the reply, or a `Result` of it whose error becomes a `Rejection`. Beside it
/// stands a type of the same name (a function and a type do not get into each other's way) with
///
/// - `add::NAME`: the route's name, that of the function or `#[route("calculator/add")]`,
/// - `add::serve(&domain)`: serves it with the domain's defaults,
/// - `add::serve_by(builder)`: serves it with a `RouteBuilder` that has options, also under another name,
/// - `add::caller(&domain)`: its client, a `Caller` of the function's types.
///
/// Its code names `::gapless_rpc`, or `::gapless::rpc` if it comes from the crate `gapless`. Where that has another name:
/// `#[route(crate = path)]`, also `#[route(name = "calculator/add", crate = path)]`.
///
/// The code stands on this interface of the crate:
///
/// ```text
/// Domain::serve(&self, name: &str) -> RouteBuilder
/// Domain::caller::<Request, Reply>(&self, name: &str) -> Result<Caller<Request, Reply>, RpcError>
/// RouteBuilder::handle(self, F) -> Result<ServedRoute, RpcError>
///     where F: Fn(Request, &CallContext) -> Result<Reply, Rejection> + Clone + Send + Sync + 'static
/// RouteBuilder::handle_async(self, F) -> Result<ServedRoute, RpcError>
///     where F: Fn(Request, CallContext) -> impl Future<Output = Result<Reply, Rejection>> + Send, as above
/// ```
#[proc_macro_attribute]
pub fn route(options: TokenStream, item: TokenStream) -> TokenStream {
    route_of(options, item, "::gapless_rpc")
}

/// As `route`, for applications that depend on the crate `gapless`: its code names `::gapless::rpc`.
#[proc_macro_attribute]
pub fn face_route(options: TokenStream, item: TokenStream) -> TokenStream {
    route_of(options, item, "::gapless::rpc")
}

fn route_of(options: TokenStream, item: TokenStream, crate_path: &str) -> TokenStream {
    let item = Tokens::from(item);
    // The function stays in any case, so that its users have no errors of their own.
    let beside = route::expand(options.into(), item.clone(), crate_path).unwrap_or_else(syn::Error::into_compile_error);
    [item, beside].into_iter().collect::<Tokens>().into()
}

fn finish(result: syn::Result<Tokens>) -> TokenStream {
    result.unwrap_or_else(syn::Error::into_compile_error).into()
}
