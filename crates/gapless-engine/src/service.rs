//! The application's part: a [`Service`] and its handlers, registered by message in [`Handlers`].

use crate::Reject;
use crate::context::Context;
use crate::handler_guard::HandlerRefusal;
use gapless_schema::{Encoding, Message, schema_key};
use rustc_hash::FxHashMap;
use std::ops::RangeInclusive;

/// State that is a fold over a stream.
///
/// Handlers must be deterministic: the same state, message and [`Context`] give the same outcome. Take time,
/// identifiers and random numbers from the context. Clocks, random generators and iteration over unordered maps do not
/// belong in a handler.
pub trait Service: Send + 'static {
    /// Registers the handler of each message.
    fn handlers(handlers: &mut Handlers<Self>)
    where
        Self: Sized;

    /// Returns the versions that this program can act as.
    ///
    /// Handlers branch on [`Context::version`], so that the programs of a cluster can be replaced one by one: all act
    /// as the old version until the stream activates the new one, at one sequence. While an old version is active,
    /// [`Service::snapshot`] writes the old program's bytes. A new stream starts with the lowest version of its first
    /// leader.
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

    /// Writes the whole state for [`Service::restore`].
    ///
    /// Equal states must give equal bytes, in other processes too: cluster members compare them, and one whose bytes
    /// differ stops. So write the entries of an unordered map in the order of their keys.
    ///
    /// The bytes must not begin with `GAPSTORE`, which marks the state of a state-replicated service and is refused
    /// here.
    fn snapshot(&self, state: &mut Vec<u8>);

    /// Replaces the state by one that [`Service::snapshot`] wrote.
    ///
    /// # Errors
    /// Defect of the bytes.
    fn restore(&mut self, state: &[u8]) -> Result<(), String>;
}

type ServiceHandler<S> = Box<dyn Fn(&mut S, &[u8], &mut Context<'_>) -> Result<(), HandlerRefusal> + Send>;

/// Registry of handlers by message.
pub struct Handlers<S> {
    by_message: FxHashMap<(u32, Encoding), ServiceHandler<S>>,
    names: FxHashMap<(u32, Encoding), &'static str>,
}

impl<S> Default for Handlers<S> {
    fn default() -> Self {
        Self { by_message: FxHashMap::default(), names: FxHashMap::default() }
    }
}

impl<S: Service> Handlers<S> {
    pub(crate) fn of_service() -> Self {
        let mut handlers = Self::default();
        S::handlers(&mut handlers);
        handlers
    }

    /// Returns the schema name of a message that a typed handler takes; for reports.
    #[must_use]
    pub fn message_name(schema: u32, encoding: Encoding) -> Option<&'static str> {
        Self::of_service().names.get(&(schema, encoding)).copied()
    }
}

impl<S> Handlers<S> {
    /// Registers `handler` for messages of type `M`, decoded as a direct view or an object.
    ///
    /// # Panics
    /// The message has a handler already.
    pub fn on<M: Message>(
        &mut self,
        handler: impl Fn(&mut S, M::Decoded<'_>, &mut Context<'_>) -> Result<(), Reject> + Send + 'static,
    ) -> &mut Self {
        let call = move |service: &mut S, payload: &[u8], context: &mut Context<'_>| {
            let message = M::decode(payload).map_err(HandlerRefusal::Undecodable)?;
            handler(service, message, context).map_err(HandlerRefusal::Rejected)
        };
        let schema = schema_key(M::SCHEMA_ID, M::TEMPLATE_ID);
        self.names.insert((schema, M::ENCODING), M::NAME);
        self.insert(schema, M::ENCODING, Box::new(call))
    }

    /// Registers `handler` for the raw bytes of a message whose schema the application decodes itself.
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

    fn insert(&mut self, schema: u32, encoding: Encoding, handler: ServiceHandler<S>) -> &mut Self {
        let before = self.by_message.insert((schema, encoding), handler);
        assert!(before.is_none(), "message {} in {encoding:?} has two handlers", describe(schema));
        self
    }

    #[inline]
    pub(crate) fn find(&self, schema: u32, encoding: Encoding) -> Option<&ServiceHandler<S>> {
        self.by_message.get(&(schema, encoding))
    }
}

pub(crate) fn describe(schema: u32) -> String {
    format!("schema {} template {}", schema >> 16, schema & 0xffff)
}
