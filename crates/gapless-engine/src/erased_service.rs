//! [`ErasedService`]: a service without its type, so that the surrounding code is compiled once, at the price of one
//! indirect call per message.

use crate::EngineError;
use crate::context::Context;
use crate::handler_guard::{HandlerRefusal, describe};
use crate::pending_query::{PendingQuery, QueryPlace};
use crate::query::QueryContext;
use crate::reject::Reject;
use crate::service::{Handlers, Service};
use crate::sessions::SessionTable;
use crate::store::snapshot::MAGIC;
use crate::timers::TimerTable;
use crate::transaction_layout::DecodedTransaction;
use gapless_message::request_description::RequestDescriptions;
use gapless_schema::Encoding;
use gapless_stream::handled_commands::HandledCommands;
use gapless_stream::messages::QueryMessage;
use std::any::Any;
use std::ops::RangeInclusive;

pub(crate) trait ErasedService: Any + Send {
    fn versions(&self) -> RangeInclusive<u32>;

    fn become_version(&mut self, _version: u32) {}

    fn takes(&self, schema: u32, encoding: Encoding) -> bool;

    /// Typed commands that it handles by itself; `None` if a leader's handlers ran.
    fn handled_commands(&self) -> Option<HandledCommands> {
        None
    }

    /// Its typed requests.
    fn requests(&self) -> Option<&RequestDescriptions> {
        None
    }

    /// Name of a typed message, for reports.
    fn message_name(&self, _schema: u32, _encoding: Encoding) -> Option<&'static str> {
        None
    }

    fn handle(
        &mut self,
        schema: u32,
        encoding: Encoding,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), HandlerRefusal>;

    /// Appends the answer of a query.
    fn query(
        &self,
        query: &QueryMessage,
        _context: &QueryContext,
        _answer: &mut Vec<u8>,
    ) -> Result<(), HandlerRefusal> {
        Err(unhandled_query(query.schema, query.encoding))
    }

    /// Name of a query, for reports.
    fn query_name(&self, _schema: u32) -> Option<&'static str> {
        None
    }

    /// Hands a query to the owner of the state, if that is elsewhere.
    fn lend_query(&mut self, pending: PendingQuery, _last_sequence: u64) -> QueryPlace {
        QueryPlace::Here(pending)
    }

    /// Takes the lent queries that have an answer, or are to be asked again. Called often while there are some.
    fn take_lent_queries(&mut self) -> Vec<PendingQuery> {
        Vec::new()
    }

    /// Whether the state may be elsewhere.
    fn lends_queries(&self) -> bool {
        false
    }

    /// Lineage of the state: answers of an earlier one are void.
    fn state_lineage(&self) -> u64 {
        0
    }

    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject>;

    /// Keys of the timer messages that it takes.
    fn timer_schemas(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Name of a timer's message, for reports.
    fn timer_name(&self, _schema: u32) -> Option<&'static str> {
        None
    }

    /// Checks that it reads a timer's message. A leader's handlers decide by themselves.
    fn check_timer(&self, _schema: u32, _payload: &[u8]) -> Result<(), HandlerRefusal> {
        Ok(())
    }

    fn on_timer_message(
        &mut self,
        schema: u32,
        _payload: &[u8],
        _context: &mut Context<'_>,
    ) -> Result<(), HandlerRefusal> {
        Err(unhandled_timer(schema))
    }

    fn snapshot(&self, state: &mut Vec<u8>);

    fn restore(&mut self, state: &[u8]) -> Result<(), String>;

    /// True if the handlers ran on a leader.
    fn applies_transactions(&self) -> bool {
        false
    }

    /// Prepares for frame `sequence` of `term`, which is applied next.
    ///
    /// # Errors
    /// The state contains truncated frames and cannot be rebuilt.
    fn before_frame(&mut self, _sequence: u64, _term: u64) -> Result<(), EngineError> {
        Ok(())
    }

    fn apply(&mut self, _applied: &TransactionPosition, _read: &DecodedTransaction<'_>) -> Result<(), String> {
        Err("nothing applies it".to_owned())
    }

    fn is_bus(&self) -> bool {
        false
    }

    fn between_batches(
        &mut self,
        _last_sequence: u64,
        _timers: &TimerTable,
        _sessions: &SessionTable,
    ) -> Result<(), EngineError> {
        Ok(())
    }

    /// Tells whether the state is that after the last frame. For a final snapshot this must become true eventually.
    ///
    /// # Errors
    /// As for [`ErasedService::before_frame`].
    fn can_snapshot(&mut self, _last_sequence: u64, _is_final: bool) -> Result<bool, EngineError> {
        Ok(true)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TransactionPosition {
    pub sequence: u64,
    pub first_sequence: u64,
    pub first_timestamp_ns: u64,
    pub session: u64,
    pub session_seq: u64,
}

pub(crate) struct TypedService<S> {
    pub service: S,
    handlers: Handlers<S>,
}

impl<S: Service> TypedService<S> {
    pub fn new(service: S) -> Self {
        Self { service, handlers: Handlers::of_service() }
    }
}

impl<S: Service> ErasedService for TypedService<S> {
    fn versions(&self) -> RangeInclusive<u32> {
        S::versions()
    }

    fn takes(&self, schema: u32, encoding: Encoding) -> bool {
        self.handlers.find(schema, encoding).is_some()
    }

    fn handled_commands(&self) -> Option<HandledCommands> {
        Some(self.handlers.handled_commands())
    }

    fn requests(&self) -> Option<&RequestDescriptions> {
        Some(self.handlers.requests())
    }

    fn message_name(&self, schema: u32, encoding: Encoding) -> Option<&'static str> {
        self.handlers.name_of(schema, encoding).filter(|_| encoding == Encoding::Postcard)
    }

    fn handle(
        &mut self,
        schema: u32,
        encoding: Encoding,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), HandlerRefusal> {
        match self.handlers.find(schema, encoding) {
            Some(handler) => handler(&mut self.service, payload, context),
            None => Err(unhandled(schema, encoding)),
        }
    }

    fn query(&self, query: &QueryMessage, context: &QueryContext, answer: &mut Vec<u8>) -> Result<(), HandlerRefusal> {
        match self.handlers.find_query(query.schema, query.encoding) {
            Some(handler) => handler(&self.service, &query.payload, context, answer),
            None => Err(unhandled_query(query.schema, query.encoding)),
        }
    }

    fn query_name(&self, schema: u32) -> Option<&'static str> {
        self.handlers.query_name(schema)
    }

    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        self.service.on_timer(timer, context)
    }

    fn timer_schemas(&self) -> Vec<u32> {
        self.handlers.timer_schemas()
    }

    fn timer_name(&self, schema: u32) -> Option<&'static str> {
        self.handlers.timer_name(schema)
    }

    fn check_timer(&self, schema: u32, payload: &[u8]) -> Result<(), HandlerRefusal> {
        match self.handlers.timer_check(schema) {
            Some(check) => check(payload),
            None => Err(unhandled_timer(schema)),
        }
    }

    fn on_timer_message(
        &mut self,
        schema: u32,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), HandlerRefusal> {
        match self.handlers.find_timer(schema) {
            Some(handler) => handler(&mut self.service, payload, context),
            None => Err(unhandled_timer(schema)),
        }
    }

    fn snapshot(&self, state: &mut Vec<u8>) {
        self.service.snapshot(state);
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        if state.starts_with(&MAGIC) {
            return Err("it is of a state-replicated service, and this one is event-sourced".to_owned());
        }
        self.service.restore(state)
    }
}

#[cold]
pub(crate) fn unhandled(schema: u32, encoding: Encoding) -> HandlerRefusal {
    HandlerRefusal::Unhandled(format!("no handler takes {} in {encoding:?}", describe(schema, encoding)))
}

#[cold]
pub(crate) fn unhandled_timer(schema: u32) -> HandlerRefusal {
    HandlerRefusal::Unhandled(format!("no handler takes timers with {}", describe(schema, Encoding::Postcard)))
}

#[cold]
pub(crate) fn unhandled_query(schema: u32, encoding: Encoding) -> HandlerRefusal {
    HandlerRefusal::Unhandled(format!("the service has no query {} in {encoding:?}", describe(schema, encoding)))
}
