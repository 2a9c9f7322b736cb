//! State replication: the leader runs the handlers before the cluster agrees, and appends their effects as
//! transactions, which the other members apply. So a handler may be non-deterministic.
//!
//! Each member has one copy of the state, owned by a follower's applier. On a new leader, the applier first applies
//! everything in the log, then hands the state to the executor. A deposed leader hands it back with the range of its
//! speculative frames: if these are released after all, the state is right; if they are truncated, it is rebuilt from
//! the newest snapshot and the journal.

pub(crate) mod speculative_executor;
pub(crate) mod state_exchange;
pub(crate) mod transaction_applier;

use crate::context::Context;
use crate::erased_service::{unhandled, unhandled_query, unhandled_timer};
use crate::fold::Fold;
use crate::handler_guard::{HandlerRefusal, describe};
use crate::query::{QueryContext, TypedQuery};
use crate::reject::Reject;
use crate::service::check_name;
use crate::store::{Store, StoreLimits, Transaction};
use crate::timers::{DueTimer, TimerMessage};
use crate::typed_command::TypedCommand;
use crate::typed_message;
use gapless_message::request_description::{RequestDescriptions, RequestKind};
use gapless_message::{Message, Request, contract};
use gapless_schema::{Decode, Encoding, schema_key};
use gapless_stream::messages::QueryMessage;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A service whose whole state is in a [`Store`]; the service keeps the collection handles. Handlers cannot change
/// `self`, which is neither replicated nor part of snapshots.
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
///         // A refusal undoes the changes before it.
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
    fn handlers(handlers: &mut StateHandlers<Self>)
    where
        Self: Sized;

    /// Handles a timer of this service that is due.
    ///
    /// # Errors
    /// A reason, which is recorded; the changes and outputs of the call are dropped.
    fn on_timer(&self, timer: u64, store: &mut Transaction<'_>, context: &mut Context<'_>) -> Result<(), Reject> {
        let _ = (timer, store, context);
        Ok(())
    }
}

/// Configuration of a state-replicated service on a cluster member. A panic undoes the handler's changes and refuses
/// the command, which all members record.
#[derive(Clone, Debug)]
pub struct StateOptions {
    /// `None`: no snapshots, so the journal is never deleted.
    pub snapshot_interval_frames: Option<u64>,
    pub snapshot_on_stop: bool,
    /// Must be equal on all members.
    pub limits: StoreLimits,
}

impl Default for StateOptions {
    fn default() -> Self {
        Self { snapshot_interval_frames: Some(10_000_000), snapshot_on_stop: true, limits: StoreLimits::default() }
    }
}

/// A fold that applies transactions without running handlers, for debugging replays
/// ([`recover`](crate::recovery::recover)) and tests.
pub fn fold_of<S: StateService>(make: impl Fn(&mut Store) -> S + Send + Sync + 'static, limits: StoreLimits) -> Fold {
    Fold::applying_transactions(Box::new(transaction_applier::TransactionApplier::new(factory_of(make), limits)))
}

type StateHandler<S> =
    Box<dyn Fn(&S, &mut Transaction<'_>, &[u8], &mut Context<'_>) -> Result<(), HandlerRefusal> + Send>;

type StateQueryHandler<S> =
    Box<dyn Fn(&S, &Store, &[u8], &QueryContext, &mut Vec<u8>) -> Result<(), HandlerRefusal> + Send>;

/// Registry of handlers by message.
pub struct StateHandlers<S> {
    by_message: FxHashMap<(u32, Encoding), StateHandler<S>>,
    queries: FxHashMap<u32, (StateQueryHandler<S>, &'static str)>,
    names: FxHashMap<(u32, Encoding), &'static str>,
    /// By the key of the message's name.
    timers: FxHashMap<u32, (&'static str, StateHandler<S>)>,
    requests: RequestDescriptions,
}

impl<S: StateService> StateHandlers<S> {
    fn of_service() -> Self {
        let (by_message, queries, names, timers, requests) = Default::default();
        let mut handlers = Self { by_message, queries, names, timers, requests };
        S::handlers(&mut handlers);
        handlers
    }

    /// Name of a message that has a handler; for reports.
    #[must_use]
    pub fn message_name(schema: u32, encoding: Encoding) -> Option<&'static str> {
        Self::of_service().names.get(&(schema, encoding)).copied()
    }
}

impl<S> StateHandlers<S> {
    /// Registers `handler` for `M`, decoded as a direct view or an object.
    ///
    /// # Panics
    /// The message has a handler already.
    pub fn on<M: Decode>(
        &mut self,
        handler: impl Fn(&S, &mut Transaction<'_>, M::Decoded<'_>, &mut Context<'_>) -> Result<(), Reject> + Send + 'static,
    ) -> &mut Self {
        let call = move |service: &S, store: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>| {
            let message = M::decode(payload).map_err(HandlerRefusal::undecodable)?;
            handler(service, store, message, context).map_err(HandlerRefusal::Rejected)
        };
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.names.insert((schema, M::ENCODING), M::NAME);
        self.insert(schema, M::ENCODING, Box::new(call))
    }

    /// Registers `handler` for the raw bytes of a message.
    ///
    /// # Panics
    /// The message has a handler already.
    pub fn on_bytes(
        &mut self,
        schema: u32,
        handler: impl Fn(&S, &mut Transaction<'_>, &[u8], &mut Context<'_>) -> Result<(), Reject> + Send + 'static,
    ) -> &mut Self {
        let call = move |service: &S, store: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>| {
            handler(service, store, payload, context).map_err(HandlerRefusal::Rejected)
        };
        self.insert(schema, Encoding::Opaque, Box::new(call))
    }

    /// Registers `handler` for the commands `C` of all versions that this program reads. Its `Ok` is the reply, its `Err`
    /// the refusal, which undoes the changes and drops the other outputs of the call
    /// ([`Handlers::command`](crate::Handlers::command)).
    ///
    /// # Panics
    /// A command of this name has a handler already, or the types have more than 256 combinations of versions.
    pub fn command<C: Request>(
        &mut self,
        handler: impl Fn(&S, &mut Transaction<'_>, C, &mut Context<'_>) -> Result<C::Reply, C::Refusal> + Send + 'static,
    ) -> &mut Self {
        let typed = TypedCommand::<C>::new();
        let schema = typed.schema;
        let call = move |service: &S, store: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>| {
            typed.call(payload, context, |command, context| handler(service, store, command, context))
        };
        check_name(C::TYPE_NAME, self.names.get(&(schema, Encoding::Postcard)).copied());
        self.requests.add::<C>(RequestKind::Command);
        self.names.insert((schema, Encoding::Postcard), C::TYPE_NAME);
        self.insert(schema, Encoding::Postcard, Box::new(call))
    }

    /// Registers `handler` for the timers with a message `M` ([`Context::set_timer`]), of all versions that this program
    /// reads.
    ///
    /// # Panics
    /// A timer message of this name has a handler already.
    pub fn timer<M: Message>(
        &mut self,
        handler: impl Fn(&S, &mut Transaction<'_>, M, &mut Context<'_>) + Send + 'static,
    ) -> &mut Self {
        let call = move |service: &S, store: &mut Transaction<'_>, payload: &[u8], context: &mut Context<'_>| {
            handler(service, store, typed_message::decode(payload)?, context);
            Ok(())
        };
        let other = self.timers.insert(contract::name_key(M::TYPE_NAME), (M::TYPE_NAME, Box::new(call)));
        check_name(M::TYPE_NAME, other.map(|(name, _)| name));
        self
    }

    /// Registers `handler` for the queries `Q` of all versions that this program reads
    /// ([`Handlers::query`](crate::Handlers::query)). Any member answers from its copy of the state. A leader's copy is
    /// ahead of the cluster: its answer leaves when everything that it has read is released, and the handler runs on the
    /// thread that appends commands.
    ///
    /// ```
    /// use gapless_engine::StateHandlers;
    /// use gapless_engine::store::{Counter, Store};
    /// use gapless_message::{Message, NoRefusal};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, Message)]
    /// #[message(reply = i64)]
    /// struct Calls;
    ///
    /// struct Register {
    ///     calls: Counter,
    /// }
    /// fn handlers(handlers: &mut StateHandlers<Register>) {
    ///     handlers.query(|register: &Register, store: &Store, _: Calls, _| Ok::<_, NoRefusal>(store.value(register.calls)));
    /// }
    /// ```
    ///
    /// # Panics
    /// A query of this name has a handler already, or the types have more than 256 combinations of versions.
    pub fn query<Q: Request>(
        &mut self,
        handler: impl Fn(&S, &Store, Q, &QueryContext) -> Result<Q::Reply, Q::Refusal> + Send + 'static,
    ) -> &mut Self {
        let typed = TypedQuery::<Q>::new();
        let schema = typed.schema();
        let call = move |service: &S, store: &Store, payload: &[u8], context: &QueryContext, answer: &mut Vec<u8>| {
            typed.answer(payload, answer, |query| handler(service, store, query, context))
        };
        let other = self.queries.insert(schema, (Box::new(call), Q::TYPE_NAME));
        check_name(Q::TYPE_NAME, other.map(|(_, name)| name));
        self.requests.add::<Q>(RequestKind::Query);
        self
    }

    fn insert(&mut self, schema: u32, encoding: Encoding, handler: StateHandler<S>) -> &mut Self {
        let before = self.by_message.insert((schema, encoding), handler);
        assert!(before.is_none(), "message {} in {encoding:?} has two handlers", describe(schema, encoding));
        self
    }

    #[inline]
    fn find(&self, schema: u32, encoding: Encoding) -> Option<&StateHandler<S>> {
        self.by_message.get(&(schema, encoding))
    }
}

pub(crate) trait ErasedStateService: Send {
    fn handle(
        &self,
        store: &mut Transaction<'_>,
        schema: u32,
        encoding: Encoding,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), HandlerRefusal>;

    /// Name of a query, for reports.
    fn query_name(&self, schema: u32) -> Option<&'static str>;

    /// Appends the answer of a query.
    fn query(
        &self,
        store: &Store,
        query: &QueryMessage,
        context: &QueryContext,
        answer: &mut Vec<u8>,
    ) -> Result<(), HandlerRefusal>;

    fn on_timer(
        &self,
        timer: &DueTimer,
        store: &mut Transaction<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), HandlerRefusal>;

    /// Keys of the timer messages that it takes.
    fn timer_schemas(&self) -> Vec<u32>;

    /// Its typed requests.
    fn requests(&self) -> &RequestDescriptions;
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
    ) -> Result<(), HandlerRefusal> {
        match self.handlers.find(schema, encoding) {
            Some(handler) => handler(&self.service, store, payload, context),
            None => Err(unhandled(schema, encoding)),
        }
    }

    fn query_name(&self, schema: u32) -> Option<&'static str> {
        self.handlers.queries.get(&schema).map(|(_, name)| *name)
    }

    fn query(
        &self,
        store: &Store,
        query: &QueryMessage,
        context: &QueryContext,
        answer: &mut Vec<u8>,
    ) -> Result<(), HandlerRefusal> {
        let found = self.handlers.queries.get(&query.schema).filter(|_| query.encoding == Encoding::Postcard);
        match found {
            Some((handler, _)) => handler(&self.service, store, &query.payload, context, answer),
            None => Err(unhandled_query(query.schema, query.encoding)),
        }
    }

    fn on_timer(
        &self,
        timer: &DueTimer,
        store: &mut Transaction<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), HandlerRefusal> {
        match timer {
            DueTimer::Numbered(timer) => {
                self.service.on_timer(*timer, store, context).map_err(HandlerRefusal::Rejected)
            }
            DueTimer::Message(TimerMessage { schema, payload }) => match self.handlers.timers.get(schema) {
                Some((_, handler)) => handler(&self.service, store, payload, context),
                None => Err(unhandled_timer(*schema)),
            },
        }
    }

    fn timer_schemas(&self) -> Vec<u32> {
        self.handlers.timers.keys().copied().collect()
    }

    fn requests(&self) -> &RequestDescriptions {
        &self.handlers.requests
    }
}

pub(crate) type ServiceFactory = Arc<dyn Fn(&mut Store) -> Box<dyn ErasedStateService> + Send + Sync>;

pub(crate) fn factory_of<S: StateService>(make: impl Fn(&mut Store) -> S + Send + Sync + 'static) -> ServiceFactory {
    Arc::new(move |store| {
        let service = make(store);
        Box::new(TypedStateService { service, handlers: StateHandlers::of_service() })
    })
}

pub(crate) struct ReplicatedState {
    pub service: Box<dyn ErasedStateService>,
    pub store: Store,
    /// Hash of the collections' and objects' types. Members that differ in it have different state hashes.
    pub layout: u32,
    /// Counts the rebuilds: a state of a later lineage lacks frames that one of an earlier lineage contained.
    pub lineage: u64,
}

impl ReplicatedState {
    pub fn new(factory: &ServiceFactory, limits: StoreLimits) -> Self {
        let mut store = Store::new(limits);
        let service = factory(&mut store);
        let layout = store.layout_hash();
        Self { service, store, layout, lineage: 0 }
    }
}
