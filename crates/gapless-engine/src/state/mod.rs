//! State replication: the leader runs the handlers speculatively, before the cluster agrees, and what enters the stream is
//! the result of each: a transaction of changes and outputs. The other members apply the changes and run no handler, so a handler
//! may do what no two members would do alike: read a clock, draw a number, ask another system. Without a cluster
//! ([`ServiceHost::start_state`](crate::ServiceHost::start_state)) the host leads from its start, in memory or in a directory, so a test
//! needs no cluster.
//!
//! | module | what lives there |
//! |---|---|
//! | this | [`StateService`], [`StateHandlers`], [`StateOptions`]: what an application writes and says |
//! | `transaction_applier` | the part that applies what is released |
//! | `speculative_executor` | the part that runs handlers, called by the member's agent before a command is appended |
//! | `state_exchange` | how the state goes from one to the other, and back |
//!
//! There is one copy of the state on each member. While the member follows it belongs to the part that applies; when it
//! leads, that part has applied everything that was in the log and hands it over. When it no longer leads, the state comes
//! back with the frames that it contains: if they are released after all, nothing more is to be done; if they are cut, the
//! state is rebuilt from the newest snapshot and the journal.

pub(crate) mod speculative_executor;
pub(crate) mod state_exchange;
pub(crate) mod transaction_applier;

use crate::context::Context;
use crate::erased_service::unhandled;
use crate::fold::Fold;
use crate::handler_guard::Refused;
use crate::reject::Reject;
use crate::service::describe;
use crate::store::{Limits, Store, Transaction};
use gapless_schema::{Encoding, Message, schema_key};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A service whose state is in a [`Store`], of which it keeps the handles. It has no other state: `self` is not changed by
/// handlers, is not replicated and not in snapshots.
///
/// ```
/// # mod gapless {
/// #     pub use gapless_engine::{store, store_object};
/// #     pub mod prelude { pub use gapless_engine::{Context, Reject, StateHandlers, StateService}; }
/// # }
/// use gapless::prelude::*;
/// use gapless::store::{Map, Store, Transaction};
///
/// gapless::store_object! {
///     pub struct Account = 1, version 1 {
///         pub balance: i64,
///     }
/// }
///
/// struct Bank {
///     accounts: Map<u64, Account>,
/// }
///
/// impl Bank {
///     fn new(store: &mut Store) -> Self {
///         Self { accounts: store.map(1, "accounts") }
///     }
///
///     fn pay(&self, store: &mut Transaction<'_>, amount: &[u8], context: &mut Context<'_>) -> Result<(), Reject> {
///         let account = context.session();
///         if store.get(self.accounts, &account).is_none() {
///             store.insert(self.accounts, account, Account { balance: 0 });
///         }
///         // What was done before a refusal is undone.
///         let amount = amount.first_chunk().ok_or("8 bytes are expected")?;
///         store.get_mut(self.accounts, &account).expect("it is there").balance += i64::from_le_bytes(*amount);
///         Ok(())
///     }
/// }
///
/// impl StateService for Bank {
///     fn handlers(handlers: &mut StateHandlers<Self>) {
///         handlers.on_bytes(1 << 16 | 1, Self::pay);
///     }
/// }
/// let bank = Bank::new(&mut Store::new(Default::default()));
/// ```
pub trait StateService: Send + 'static {
    /// Names the handler of each message.
    fn handlers(handlers: &mut StateHandlers<Self>)
    where
        Self: Sized;

    /// A timer that this service has set is due.
    ///
    /// # Errors
    /// A reason; the timer's changes and outputs are dropped and the reason is recorded.
    fn on_timer(&self, timer: u64, store: &mut Transaction<'_>, context: &mut Context<'_>) -> Result<(), Reject> {
        let _ = (timer, store, context);
        Ok(())
    }
}

/// How a state-replicated service runs on a member of a cluster.
///
/// There is nothing to say about handlers that panic: what they did is undone, the command is refused, and the refusal is
/// recorded on all members alike.
#[derive(Clone, Debug)]
pub struct StateOptions {
    /// A snapshot after so many frames; `None` for none, and then nothing goes from the journal.
    pub snapshot_interval_frames: Option<u64>,
    /// A snapshot at a clean stop.
    pub snapshot_on_stop: bool,
    /// What the state may hold. The same on each member.
    pub limits: Limits,
}

impl Default for StateOptions {
    fn default() -> Self {
        Self { snapshot_interval_frames: Some(10_000_000), snapshot_on_stop: true, limits: Limits::default() }
    }
}

/// A fold that applies the transactions of a state-replicated service, for a look at a copied journal
/// ([`recover`](crate::recovery::recover)) and for tests; it runs no handler.
pub fn fold_of<S: StateService>(make: impl Fn(&mut Store) -> S + Send + Sync + 'static, limits: Limits) -> Fold {
    Fold::applying_transactions(Box::new(transaction_applier::TransactionApplier::new(factory_of(make), limits)))
}

type Handler<S> = Box<dyn Fn(&S, &mut Transaction<'_>, &[u8], &mut Context<'_>) -> Result<(), Refused> + Send>;

/// Which function takes which message.
pub struct StateHandlers<S> {
    by_message: FxHashMap<(u32, Encoding), Handler<S>>,
    names: FxHashMap<(u32, Encoding), &'static str>,
}

impl<S: StateService> StateHandlers<S> {
    fn of_service() -> Self {
        let mut handlers = Self { by_message: FxHashMap::default(), names: FxHashMap::default() };
        S::handlers(&mut handlers);
        handlers
    }

    /// The name that a message has in its schema, if a handler of the service takes it by its type; for reports.
    #[must_use]
    pub fn message_name(schema: u32, encoding: Encoding) -> Option<&'static str> {
        Self::of_service().names.get(&(schema, encoding)).copied()
    }
}

impl<S> StateHandlers<S> {
    /// `handler` takes messages of type `M`: a direct view, or an object, as `M` says.
    ///
    /// # Panics
    /// If the message has a handler already.
    pub fn on<M: Message>(
        &mut self,
        handler: impl Fn(&S, &mut Transaction<'_>, M::Decoded<'_>, &mut Context<'_>) -> Result<(), Reject> + Send + 'static,
    ) -> &mut Self {
        let call = move |service: &S, store: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>| {
            let message = M::decode(payload).map_err(Refused::Undecodable)?;
            handler(service, store, message, context).map_err(Refused::Rejected)
        };
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.names.insert((schema, M::ENCODING), M::NAME);
        self.insert(schema, M::ENCODING, Box::new(call))
    }

    /// `handler` takes the bytes of messages whose schema the application knows by itself.
    ///
    /// # Panics
    /// If the message has a handler already.
    pub fn on_bytes(
        &mut self,
        schema: u32,
        handler: impl Fn(&S, &mut Transaction<'_>, &[u8], &mut Context<'_>) -> Result<(), Reject> + Send + 'static,
    ) -> &mut Self {
        let call = move |service: &S, store: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>| {
            handler(service, store, payload, context).map_err(Refused::Rejected)
        };
        self.insert(schema, Encoding::Opaque, Box::new(call))
    }

    fn insert(&mut self, schema: u32, encoding: Encoding, handler: Handler<S>) -> &mut Self {
        let before = self.by_message.insert((schema, encoding), handler);
        assert!(before.is_none(), "message {} in {encoding:?} has two handlers", describe(schema));
        self
    }

    #[inline]
    fn find(&self, schema: u32, encoding: Encoding) -> Option<&Handler<S>> {
        self.by_message.get(&(schema, encoding))
    }
}

/// A state-replicated service with its handlers, without its type: what stands around it is compiled once.
pub(crate) trait ErasedStateService: Send {
    /// Calls the handler of a message.
    fn handle(
        &self,
        store: &mut Transaction<'_>,
        schema: u32,
        encoding: Encoding,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), Refused>;

    /// As [`StateService::on_timer`].
    fn on_timer(&self, timer: u64, store: &mut Transaction<'_>, context: &mut Context<'_>) -> Result<(), Reject>;
}

struct TypedStateService<S> {
    service: S,
    handlers: StateHandlers<S>,
}

impl<S: StateService> ErasedStateService for TypedStateService<S> {
    fn handle(
        &self,
        store: &mut Transaction<'_>,
        schema: u32,
        encoding: Encoding,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), Refused> {
        match self.handlers.find(schema, encoding) {
            Some(handler) => handler(&self.service, store, payload, context),
            None => Err(unhandled(schema, encoding)),
        }
    }

    fn on_timer(&self, timer: u64, store: &mut Transaction<'_>, context: &mut Context<'_>) -> Result<(), Reject> {
        self.service.on_timer(timer, store, context)
    }
}

/// Declares the collections in a store, and makes the service that has their handles.
pub(crate) type ServiceFactory = Arc<dyn Fn(&mut Store) -> Box<dyn ErasedStateService> + Send + Sync>;

/// `make` without the service's type.
pub(crate) fn factory_of<S: StateService>(make: impl Fn(&mut Store) -> S + Send + Sync + 'static) -> ServiceFactory {
    Arc::new(move |store| {
        let service = make(store);
        Box::new(TypedStateService { service, handlers: StateHandlers::of_service() })
    })
}

/// A service with its state, as it is handed over.
pub(crate) struct ReplicatedState {
    pub service: Box<dyn ErasedStateService>,
    pub store: Store,
    /// What the collections and their objects are; members that differ in it have different hashes.
    pub layout: u32,
}

impl ReplicatedState {
    pub fn new(factory: &ServiceFactory, limits: Limits) -> Self {
        let mut store = Store::new(limits);
        let service = factory(&mut store);
        let layout = store.layout_hash();
        Self { service, store, layout }
    }
}
