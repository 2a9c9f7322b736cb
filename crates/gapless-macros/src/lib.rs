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

/// Implements `gapless_message::Message` and `gapless_message::Shape` for a type that is `Serialize` and
/// `DeserializeOwned`.
///
/// On the type, in `#[message(…)]`:
///
/// | attribute | default | meaning |
/// |---|---|---|
/// | `name = "…"` | name of the type | name for the peer and in errors; keep the old one when the type is renamed |
/// | `version = n` | 1 | from 1. A version without additions (`since`) is another message: old and new refuse each other |
/// | `shape = "…"` | derived from the fields | explicit shape, for types that serde encodes by `from`, `into` or `try_from` |
/// | `request` | | a request, answered by `()` and never refused |
/// | `reply = Type` | `()` | a request, and its reply |
/// | `refusal = Type` | `NoRefusal` | a request, and its refusal |
/// | `crate = path` | `::gapless` | the crate, if the application has renamed or re-exported it: the path of a module that contains `message` |
///
/// On a field or variant:
///
/// | attribute | meaning |
/// |---|---|
/// | `since = n` | added with version n, like everything after it. A field needs `#[serde(default)]` |
/// | `shape = "…"` | explicit shape, for types without a known shape; change the text when the type changes |
/// | `deterministic` | its type has equal bytes for equal values in all processes, although it is not `Deterministic` |
///
/// A message is `Deterministic` if all its fields are. A service writes only such messages. A type that serde encodes
/// by `from`, `into` or `try_from` implements the trait by hand. Two messages that contain each other ("overflow
/// evaluating the requirement") need `deterministic` on one of these fields.
///
/// Programs of all versions that differ by `since` understand each other, in both directions. A field that the sender
/// lacks gets its default. A variant that the receiver lacks is not sent: the call ends with `CallError::BadMessage`,
/// which names it.
///
/// Features of serde that postcard does not support (`flatten`, `untagged`, `tag`, `skip_serializing_if` …) are errors.
#[proc_macro_derive(Message, attributes(message))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    finish(message::derive(input.into(), "::gapless_message::derived"))
}

/// Same as `Message`, but uses `::gapless::message`.
#[proc_macro_derive(FaceMessage, attributes(message))]
pub fn derive_face_message(input: TokenStream) -> TokenStream {
    finish(message::derive(input.into(), "::gapless::message::derived"))
}

/// Implements `gapless_message::state::State` for a type that is `Serialize` and `DeserializeOwned`, and is not a
/// `Message`.
///
/// On the type, in `#[state(…)]`:
///
/// | attribute | default | meaning |
/// |---|---|---|
/// | `name = "…"` | name of the type | name in snapshots; keep the old one when the type is renamed |
/// | `version = n` | 1 | from 1 |
/// | `upgrade = path` | older versions are refused | `fn(OldState<'_>) -> Result<Self, String>`, makes a state of an older one |
/// | `crate = path` | `::gapless` | the crate, if the application has renamed or re-exported it |
///
/// On a field:
///
/// | attribute | meaning |
/// |---|---|
/// | `deterministic` | its type has equal bytes for equal values in all processes, although it is not `Deterministic` |
/// | `shape = "…"` | explicit shape, for types without a known shape; change the text when the type changes |
///
/// A field with `#[serde(skip)]` has its default in a restored state, so it needs `deterministic`, too.
#[proc_macro_derive(State, attributes(state))]
pub fn derive_state(input: TokenStream) -> TokenStream {
    finish(state::derive(input.into(), "::gapless_message::derived"))
}

/// Same as `State`, but uses `::gapless::message`.
#[proc_macro_derive(FaceState, attributes(state))]
pub fn derive_face_state(input: TokenStream) -> TokenStream {
    finish(state::derive(input.into(), "::gapless::message::derived"))
}

/// Generates a route and its typed client from a function.
///
/// It is a `fn` or an `async fn`. Parameters are the request and, optionally, the context of the call (`&CallContext`
/// or `CallContext`). It returns the reply, or a `Result` with it, whose error becomes a `Rejection`. The macro adds a
/// type of the same name, which does not conflict with the function, with
///
/// - `add::NAME`: name of the route: that of the function, or the one in `#[route("calculator/add")]`,
/// - `add::serve(&domain)`: serves it with the defaults of the domain,
/// - `add::serve_by(builder)`: serves it with the options of a `RouteBuilder`, also under another name,
/// - `add::caller(&domain)`: creates its client, a `Caller` with the types of the function.
///
/// Generated code uses `::gapless_rpc`, or `::gapless::rpc` if the macro comes from the crate `gapless`. For a renamed
/// crate: `#[route(crate = path)]` or `#[route(name = "calculator/add", crate = path)]`.
///
/// Generated code relies on this interface of the crate:
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

/// Same as `route`, but uses `::gapless::rpc`.
#[proc_macro_attribute]
pub fn face_route(options: TokenStream, item: TokenStream) -> TokenStream {
    route_of(options, item, "::gapless::rpc")
}

/// Makes a service of the methods of a state. The state derives `State`; each method with `#[command]` handles the
/// command that is its second parameter, and returns its reply, or a `Result` with its refusal:
///
/// ```text
/// #[gapless::service]
/// impl Ledger {
///     #[command]
///     fn transfer(&mut self, command: Transfer, context: &mut Context<'_>) -> Result<Booked, Overdrawn> { … }
///     #[timer]
///     fn remind(&mut self, reminder: Reminder) { … }
///     #[query]
///     fn balance(&self, query: Balance) -> u64 { … }
/// }
/// ```
///
/// The context may be left out. A returned refusal must leave the state as it was. The return type must be written as
/// `Result<…>`, not as an alias of it. A service with numbered timers, or with messages of a schema, implements `Service`
/// by hand instead.
///
/// | method | handles |
/// |---|---|
/// | `#[command]` | a command of a client |
/// | `#[query]` | a question of a client, which reads the state and has no place in the stream: `Handlers::query`; its context is a `&QueryContext` |
/// | `#[timer]` | a timer with its message, set by `Context::set_timer`; returns nothing |
/// | `#[event]` | a message of the event stream that the service runs on (`StreamService`); returns nothing |
///
/// Options:
///
/// | option | default | meaning |
/// |---|---|---|
/// | `versions = 1..=2` | `1..=1` | versions that the program can act as: `Service::versions` |
/// | `client = pub(crate) Name` | `pub LedgerClient` | visibility and name of the typed client; `client = none` makes none. A state with generics has none |
/// | `crate = path` | `::gapless` | the crate, if the application has renamed or re-exported it |
///
/// Expands to `impl Service`: registration of each handler, and snapshots of the derived state; and to the typed client
/// next to it, with one method for each command and query:
///
/// ```text
/// let ledger = LedgerClient::new(client);
/// let booked = ledger.transfer(Transfer { from: 1, to: 2, amount: 30 }).await?; // or `.wait()?` on a thread
/// let balance = ledger.balance(Balance(2)).await?;
/// ```
///
/// A request type may be less visible than the client: its method is then of use only where the type can be named.
#[proc_macro_attribute]
pub fn service(options: TokenStream, item: TokenStream) -> TokenStream {
    service::expand(options.into(), item.into(), "::gapless_engine::service::derived").into()
}

/// Same as `service`, but uses `::gapless::service`.
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
