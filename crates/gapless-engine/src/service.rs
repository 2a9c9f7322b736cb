//! The application's part: a `Service` and its handlers, registered by message in `Handlers`.

use crate::Reject;
use crate::context::Context;
use crate::handler_guard::{HandlerRefusal, describe};
use crate::query::{QueryContext, TypedQuery};
use crate::typed_command::TypedCommand;
use crate::typed_message;
use gapless_message::request_description::{RequestDescriptions, RequestKind};
use gapless_message::{Deterministic, Message, Request, contract};
use gapless_schema::{Decode, Encoding, schema_key};
use gapless_stream::handled_commands::HandledCommands;
use rustc_hash::FxHashMap;
use std::ops::RangeInclusive;

/// State that is a fold over a stream. Handlers must be deterministic: take time, identifiers and random numbers from
/// the [`Context`]; use no clocks, random generators or iteration over unordered maps.
pub trait Service: Send + 'static {
    fn handlers(handlers: &mut Handlers<Self>)
    where
        Self: Sized;

    /// Versions that this program can act as. Handlers branch on [`Context::version`], so that a cluster's programs can
    /// be replaced one by one: all act as the old version until the stream activates the new one, at one sequence.
    /// Until then [`Service::snapshot`] writes the old program's bytes. A new stream starts with the lowest version of
    /// its first leader.
    #[must_use]
    fn versions() -> RangeInclusive<u32>
    where
        Self: Sized,
    {
        1..=1
    }

    /// Handles a timer of this service that is due.
    ///
    /// # Errors
    /// A reason, which is recorded; the outputs of the call are dropped.
    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        let _ = (timer, context);
        Ok(())
    }

    /// Writes the whole state for [`Service::restore`]. Equal states must give equal bytes in all processes (sort
    /// unordered maps): a cluster member whose bytes differ stops. The bytes must not begin with `GAPSTORE`, the mark
    /// of a replicated state.
    fn snapshot(&self, state: &mut Vec<u8>);

    /// Replaces the state by one of [`Service::snapshot`].
    ///
    /// # Errors
    /// Defect of the bytes.
    fn restore(&mut self, state: &[u8]) -> Result<(), String>;
}

type ServiceHandler<S> = Box<dyn Fn(&mut S, &[u8], &mut Context<'_>) -> Result<(), HandlerRefusal> + Send>;

type QueryHandler<S> = Box<dyn Fn(&S, &[u8], &QueryContext, &mut Vec<u8>) -> Result<(), HandlerRefusal> + Send>;

/// Reads a timer's message.
pub(crate) type TimerCheck = fn(&[u8]) -> Result<(), HandlerRefusal>;

struct TimerHandler<S> {
    name: &'static str,
    check: TimerCheck,
    handler: ServiceHandler<S>,
}

/// Registry of handlers by message.
pub struct Handlers<S> {
    by_message: FxHashMap<(u32, Encoding), ServiceHandler<S>>,
    queries: FxHashMap<u32, (QueryHandler<S>, &'static str)>,
    names: FxHashMap<(u32, Encoding), &'static str>,
    /// By the key of the message's name.
    timers: FxHashMap<u32, TimerHandler<S>>,
    requests: RequestDescriptions,
    /// Name's key and contract of each typed command or event, in all versions.
    contracts: Vec<(u32, u32)>,
}

impl<S> Default for Handlers<S> {
    fn default() -> Self {
        let (by_message, queries, names, timers, requests, contracts) = Default::default();
        Self { by_message, queries, names, timers, requests, contracts }
    }
}

impl<S: Service> Handlers<S> {
    pub(crate) fn of_service() -> Self {
        let mut handlers = Self::default();
        S::handlers(&mut handlers);
        handlers
    }

    /// Name of a message that has a handler; for reports.
    #[must_use]
    pub fn message_name(schema: u32, encoding: Encoding) -> Option<&'static str> {
        Self::of_service().name_of(schema, encoding)
    }
}

impl<S> Handlers<S> {
    /// Registers `handler` for `M`, decoded as a direct view or an object.
    ///
    /// # Panics
    /// The message has a handler already.
    pub fn on<M: Decode>(
        &mut self,
        handler: impl Fn(&mut S, M::Decoded<'_>, &mut Context<'_>) -> Result<(), Reject> + Send + 'static,
    ) -> &mut Self {
        let call = move |service: &mut S, payload: &[u8], context: &mut Context<'_>| {
            let message = M::decode(payload).map_err(HandlerRefusal::undecodable)?;
            handler(service, message, context).map_err(HandlerRefusal::Rejected)
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
        handler: impl Fn(&mut S, &[u8], &mut Context<'_>) -> Result<(), Reject> + Send + 'static,
    ) -> &mut Self {
        let call = move |service: &mut S, payload: &[u8], context: &mut Context<'_>| {
            handler(service, payload, context).map_err(HandlerRefusal::Rejected)
        };
        self.insert(schema, Encoding::Opaque, Box::new(call))
    }

    /// Registers `handler` for the commands `C` of all versions that this program reads. Its `Ok` is the reply, its `Err`
    /// the refusal. After a refusal the other outputs are dropped; the handler must not have changed the state
    /// ([`Reject`]). Commands of other types are not handled ([`crate::Policy`]): the leader's program decides, and the
    /// stream records it. A member whose program lacks a command that the leader handled stops: on a cluster, use a new
    /// command, or a new version of one, when all members read it.
    ///
    /// ```
    /// use gapless_engine::{Context, Handlers};
    /// use gapless_message::Message;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, Message)]
    /// #[message(reply = u32, refusal = SoldOut)]
    /// struct Take;
    /// #[derive(Serialize, Deserialize, Message)]
    /// struct SoldOut;
    ///
    /// struct Seats(u32);
    /// fn handlers(handlers: &mut Handlers<Seats>) {
    ///     handlers.command(|seats: &mut Seats, _: Take, _: &mut Context<'_>| {
    ///         seats.0 = seats.0.checked_sub(1).ok_or(SoldOut)?;
    ///         Ok(seats.0)
    ///     });
    /// }
    /// # handlers(&mut Handlers::default());
    /// ```
    ///
    /// Replies and refusals are kept in the sessions, which the members of a cluster compare, so an unordered collection
    /// in one does not compile:
    ///
    /// ```compile_fail,E0277
    /// use gapless_engine::{Context, Handlers};
    /// use gapless_message::{Message, NoRefusal};
    /// use serde::{Deserialize, Serialize};
    /// use std::collections::HashMap;
    ///
    /// #[derive(Serialize, Deserialize, Message)]
    /// #[message(reply = Prices)]
    /// struct Reprice;
    /// #[derive(Serialize, Deserialize, Message)]
    /// struct Prices(HashMap<u32, u64>);
    ///
    /// fn handlers(handlers: &mut Handlers<()>) {
    ///     handlers.command(|_: &mut (), _: Reprice, _: &mut Context<'_>| Ok::<_, NoRefusal>(Prices(HashMap::new())));
    /// }
    /// ```
    ///
    /// # Panics
    /// A command of this name has a handler already, or the types have more than 256 combinations of versions.
    pub fn command<C: Request<Reply: Deterministic, Refusal: Deterministic>>(
        &mut self,
        handler: impl Fn(&mut S, C, &mut Context<'_>) -> Result<C::Reply, C::Refusal> + Send + 'static,
    ) -> &mut Self {
        let typed = TypedCommand::<C>::new();
        let schema = typed.schema;
        self.requests.add::<C>(RequestKind::Command);
        self.contracts.extend(typed.contracts().map(|contract| (schema, contract)));
        let call = move |service: &mut S, payload: &[u8], context: &mut Context<'_>| {
            typed.call(payload, context, |command, context| handler(service, command, context))
        };
        check_name(C::TYPE_NAME, self.names.get(&(schema, Encoding::Postcard)).copied());
        self.names.insert((schema, Encoding::Postcard), C::TYPE_NAME);
        self.insert(schema, Encoding::Postcard, Box::new(call))
    }

    /// Registers `handler` for the events `M` of an event stream, of all versions that this program reads
    /// ([`crate::StreamService`]).
    ///
    /// # Panics
    /// A message of this name has a handler already.
    pub fn event<M: Message>(&mut self, handler: impl Fn(&mut S, M, &mut Context<'_>) + Send + 'static) -> &mut Self {
        let schema = contract::name_key(M::TYPE_NAME);
        check_name(M::TYPE_NAME, self.names.get(&(schema, Encoding::Postcard)).copied());
        self.names.insert((schema, Encoding::Postcard), M::TYPE_NAME);
        self.contracts.extend(contract::message_contracts::<M>().map(|contract| (schema, contract)));
        self.insert(schema, Encoding::Postcard, without_answer(handler))
    }

    /// Registers `handler` for the timers with a message `M` ([`Context::set_timer`]), of all versions that this program
    /// reads.
    ///
    /// ```
    /// use gapless_engine::{Context, Handlers};
    /// use gapless_message::Message;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, Message)]
    /// #[message(request)]
    /// struct Hold {
    ///     seat: u32,
    /// }
    /// #[derive(Serialize, Deserialize, Message)]
    /// struct HoldEnds {
    ///     seat: u32,
    /// }
    ///
    /// struct Seats(Vec<bool>);
    /// fn handlers(handlers: &mut Handlers<Seats>) {
    ///     handlers.command(|seats: &mut Seats, Hold { seat }, context: &mut Context<'_>| {
    ///         seats.0[seat as usize] = true;
    ///         context.set_timer(&HoldEnds { seat }, context.time_ns() + 60_000_000_000);
    ///         Ok(())
    ///     });
    ///     handlers.timer(|seats: &mut Seats, HoldEnds { seat }, _: &mut Context<'_>| seats.0[seat as usize] = false);
    /// }
    /// # handlers(&mut Handlers::default());
    /// ```
    ///
    /// # Panics
    /// A timer message of this name has a handler already.
    pub fn timer<M: Message>(&mut self, handler: impl Fn(&mut S, M, &mut Context<'_>) + Send + 'static) -> &mut Self {
        let check = |payload: &[u8]| typed_message::decode::<M>(payload).map(drop);
        let timer = TimerHandler { name: M::TYPE_NAME, check, handler: without_answer(handler) };
        let other = self.timers.insert(contract::name_key(M::TYPE_NAME), timer);
        check_name(M::TYPE_NAME, other.map(|other| other.name));
        self
    }

    /// Registers `handler` for the queries `Q` of all versions that this program reads. A query reads the state and does
    /// not enter the stream: its effects would be lost. It runs on the service's thread, between two frames: no command
    /// runs meanwhile, and one above 5 ms is named in the log. A panic fails the query alone.
    /// [`PolledClient::query_request`] asks.
    ///
    /// ```
    /// use gapless_engine::Handlers;
    /// use gapless_message::{Message, NoRefusal};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, Message)]
    /// #[message(reply = u32)]
    /// struct Left;
    ///
    /// struct Seats(u32);
    /// fn handlers(handlers: &mut Handlers<Seats>) {
    ///     handlers.query(|seats: &Seats, _: Left, _| Ok::<_, NoRefusal>(seats.0));
    /// }
    /// # handlers(&mut Handlers::default());
    /// ```
    ///
    /// # Panics
    /// A query of this name has a handler already, or the types have more than 256 combinations of versions.
    ///
    /// [`PolledClient::query_request`]: gapless_client::PolledClient::query_request
    pub fn query<Q: Request>(
        &mut self,
        handler: impl Fn(&S, Q, &QueryContext) -> Result<Q::Reply, Q::Refusal> + Send + 'static,
    ) -> &mut Self {
        let typed = TypedQuery::<Q>::new();
        let schema = typed.schema();
        let call = move |service: &S, payload: &[u8], context: &QueryContext, answer: &mut Vec<u8>| {
            typed.answer(payload, answer, |query| handler(service, query, context))
        };
        if let Some((_, other)) = self.queries.insert(schema, (Box::new(call), Q::TYPE_NAME)) {
            let name = Q::TYPE_NAME;
            panic!("queries {other} and {name} have the same name or key: give one `#[message(name = \"…\")]`");
        }
        self.requests.add::<Q>(RequestKind::Query);
        self
    }

    fn insert(&mut self, schema: u32, encoding: Encoding, handler: ServiceHandler<S>) -> &mut Self {
        let before = self.by_message.insert((schema, encoding), handler);
        assert!(before.is_none(), "message {} in {encoding:?} has two handlers", describe(schema, encoding));
        self
    }

    #[cold]
    pub(crate) fn name_of(&self, schema: u32, encoding: Encoding) -> Option<&'static str> {
        self.names.get(&(schema, encoding)).copied()
    }

    pub(crate) fn handled_commands(&self) -> HandledCommands {
        self.contracts.iter().copied().collect()
    }

    pub(crate) const fn requests(&self) -> &RequestDescriptions {
        &self.requests
    }

    pub(crate) fn timer_schemas(&self) -> Vec<u32> {
        self.timers.keys().copied().collect()
    }

    #[cold]
    pub(crate) fn timer_name(&self, schema: u32) -> Option<&'static str> {
        self.timers.get(&schema).map(|timer| timer.name)
    }

    pub(crate) fn find_timer(&self, schema: u32) -> Option<&ServiceHandler<S>> {
        self.timers.get(&schema).map(|timer| &timer.handler)
    }

    /// Returns the check of a timer's message.
    pub(crate) fn timer_check(&self, schema: u32) -> Option<TimerCheck> {
        self.timers.get(&schema).map(|timer| timer.check)
    }

    #[inline]
    pub(crate) fn find(&self, schema: u32, encoding: Encoding) -> Option<&ServiceHandler<S>> {
        self.by_message.get(&(schema, encoding))
    }

    pub(crate) fn find_query(&self, schema: u32, encoding: Encoding) -> Option<&QueryHandler<S>> {
        let found = self.queries.get(&schema).filter(|_| encoding == Encoding::Postcard);
        found.map(|(handler, _)| handler)
    }

    #[cold]
    pub(crate) fn query_name(&self, schema: u32) -> Option<&'static str> {
        self.queries.get(&schema).map(|(_, name)| *name)
    }
}

fn without_answer<S, M: Message>(handler: impl Fn(&mut S, M, &mut Context<'_>) + Send + 'static) -> ServiceHandler<S> {
    Box::new(move |service, payload, context| {
        handler(service, typed_message::decode(payload)?, context);
        Ok(())
    })
}

/// # Panics
/// `other` is a message of the same name or key.
pub(crate) fn check_name(name: &str, other: Option<&str>) {
    if let Some(other) = other {
        panic!("messages {other} and {name} have the same name or key: give one `#[message(name = \"…\")]`");
    }
}

/// Names that derived code uses.
#[doc(hidden)]
pub mod derived {
    pub use super::{Handlers, Service};
    pub use gapless_client::shared::Query;
    pub use gapless_client::{Call, Client};
    pub use gapless_message::state::{read as read_state, write as write_state};
}
