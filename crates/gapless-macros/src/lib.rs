//! Macros used through `gapless-message`, `gapless-rpc` or the face, which document them. Each exists twice, because
//! the generated code contains paths: those of the crates, and `::gapless` for the `Face…` and `face_…` variants. For a
//! renamed crate there is the option `crate = path`.
//!
//! | module | what lives there |
//! |---|---|
//! | `message` | `#[derive(Message)]` |
//! | `route` | `#[route]` |
//! | `service` | `#[service]` |
//! | `service_client` | the typed client of a `#[service]` |
//! | `handler` | one method of a `#[service]` |
//! | `state` | `#[derive(State)]` |
//! | `shape` | shapes of types, for both derives |
//! | `serde_attributes` | attributes of serde that change the encoding |

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod handler;
mod message;
mod route;
mod serde_attributes;
mod service;
mod service_client;
mod shape;
mod state;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;

#[doc = include_str!("message.md")]
#[proc_macro_derive(Message, attributes(message))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    finish(message::derive(input.into(), "::gapless_message::derived"))
}

#[doc = include_str!("message.md")]
#[proc_macro_derive(FaceMessage, attributes(message))]
pub fn derive_face_message(input: TokenStream) -> TokenStream {
    finish(message::derive(input.into(), "::gapless::message::derived"))
}

#[doc = include_str!("state.md")]
#[proc_macro_derive(State, attributes(state))]
pub fn derive_state(input: TokenStream) -> TokenStream {
    finish(state::derive(input.into(), "::gapless_message::derived"))
}

#[doc = include_str!("state.md")]
#[proc_macro_derive(FaceState, attributes(state))]
pub fn derive_face_state(input: TokenStream) -> TokenStream {
    finish(state::derive(input.into(), "::gapless::message::derived"))
}

#[doc = include_str!("route.md")]
#[proc_macro_attribute]
pub fn route(options: TokenStream, item: TokenStream) -> TokenStream {
    route_of(options, item, "::gapless_rpc")
}

#[doc = include_str!("route.md")]
#[proc_macro_attribute]
pub fn face_route(options: TokenStream, item: TokenStream) -> TokenStream {
    route_of(options, item, "::gapless::rpc")
}

#[doc = include_str!("service.md")]
#[proc_macro_attribute]
pub fn service(options: TokenStream, item: TokenStream) -> TokenStream {
    service::expand(options.into(), item.into(), "::gapless_engine::service::derived").into()
}

#[doc = include_str!("service.md")]
#[proc_macro_attribute]
pub fn face_service(options: TokenStream, item: TokenStream) -> TokenStream {
    service::expand(options.into(), item.into(), "::gapless::service::derived").into()
}

fn route_of(options: TokenStream, item: TokenStream, crate_path: &str) -> TokenStream {
    let item = Tokens::from(item);
    // Emitted even after an error, so that its callers compile without further errors.
    let beside = route::expand(options.into(), item.clone(), crate_path).unwrap_or_else(syn::Error::into_compile_error);
    [item, beside].into_iter().collect::<Tokens>().into()
}

fn finish(result: syn::Result<Tokens>) -> TokenStream {
    result.unwrap_or_else(syn::Error::into_compile_error).into()
}
