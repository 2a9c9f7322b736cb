//! [`AnyService`]: what a fold needs of a service, without its type. All that stands around a service is compiled once
//! by this, and not for each; the price is one indirect call for each message.

use crate::EngineError;
use crate::context::Context;
use crate::reject::Reject;
use crate::service::{Handlers, Refused, Service, describe};
use crate::sessions::SessionTable;
use crate::store::snapshot::MAGIC;
use crate::timers::TimerTable;
use crate::transaction_layout::Read;
use gapless_schema::Encoding;
use std::any::Any;
use std::ops::RangeInclusive;

/// A service with its handlers, or the state of one whose handlers ran before.
pub(crate) trait AnyService: Any + Send {
    /// The versions that it can act as.
    fn versions(&self) -> RangeInclusive<u32>;

    /// Whether it has a handler for such messages.
    fn takes(&self, schema: u32, encoding: Encoding) -> bool;

    /// Calls the handler.
    fn handle(
        &mut self,
        schema: u32,
        encoding: Encoding,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), Refused>;

    /// As [`Service::on_timer`].
    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject>;

    /// As [`Service::snapshot`].
    fn snapshot(&self, state: &mut Vec<u8>);

    /// As [`Service::restore`].
    fn restore(&mut self, state: &[u8]) -> Result<(), String>;

    /// Whether its handlers ran before, on a leader, and it applies their transactions.
    fn is_of_transactions(&self) -> bool {
        false
    }

    /// A frame comes, with its sequence and term.
    ///
    /// # Errors
    /// The state is ahead by what was cut, and cannot be made anew.
    fn see(&mut self, _sequence: u64, _term: u64) -> Result<(), EngineError> {
        Ok(())
    }

    /// A transaction comes, with its sequence.
    ///
    /// # Errors
    /// It does not apply, or comes to another state than the leader's.
    fn apply(&mut self, _sequence: u64, _read: &Read<'_>) -> Result<(), String> {
        Err("nothing applies it".to_owned())
    }

    /// Between two batches of frames, behind `last_sequence`.
    ///
    /// # Errors
    /// As for [`AnyService::see`].
    fn attend(
        &mut self,
        _last_sequence: u64,
        _timers: &TimerTable,
        _sessions: &SessionTable,
    ) -> Result<(), EngineError> {
        Ok(())
    }

    /// Whether the state is as it was behind the last frame, for a snapshot; at a clean stop it has to become that.
    ///
    /// # Errors
    /// As for [`AnyService::see`].
    fn can_snapshot(&mut self, _last_sequence: u64, _is_final: bool) -> Result<bool, EngineError> {
        Ok(true)
    }
}

/// A service of a known type, with its handlers.
pub(crate) struct WithHandlers<S> {
    pub service: S,
    handlers: Handlers<S>,
}

impl<S: Service> WithHandlers<S> {
    pub fn new(service: S) -> Self {
        Self { service, handlers: Handlers::of_service() }
    }
}

impl<S: Service> AnyService for WithHandlers<S> {
    fn versions(&self) -> RangeInclusive<u32> {
        S::versions()
    }

    fn takes(&self, schema: u32, encoding: Encoding) -> bool {
        self.handlers.find(schema, encoding).is_some()
    }

    fn handle(
        &mut self,
        schema: u32,
        encoding: Encoding,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), Refused> {
        match self.handlers.find(schema, encoding) {
            Some(handler) => handler(&mut self.service, payload, context),
            None => Err(unhandled(schema, encoding)),
        }
    }

    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        self.service.on_timer(timer, context)
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

/// What is said of a message that has no handler.
#[cold]
pub(crate) fn unhandled(schema: u32, encoding: Encoding) -> Refused {
    Refused::Unhandled(format!("no handler takes {} in {encoding:?}", describe(schema)))
}
