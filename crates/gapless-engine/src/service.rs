//! What an application writes: a [`Service`] and its handlers, registered by message in [`Handlers`].

use crate::Reject;
use crate::context::Context;
use crate::handler_guard::Refused;
use gapless_schema::{Encoding, Message, schema_key};
use rustc_hash::FxHashMap;
use std::ops::RangeInclusive;

/// State that is the fold of a stream.
///
/// Handlers must be deterministic: same state, same message, same [`Context`], same outcome. Time and
/// identifiers come from the context; clocks, random numbers and iteration over unordered maps do not
/// belong here.
pub trait Service: Send + 'static {
    /// Names the handler of each message.
    fn handlers(handlers: &mut Handlers<Self>)
    where
        Self: Sized;

    /// Which versions of itself this program can act as. Handlers ask [`Context::version`] and do as that version does, so
    /// that programs can be replaced one by one: all of them act as the old version until the stream says otherwise, at one
    /// sequence. While an old version is active the snapshot's bytes are those of the old program. A new stream begins with
    /// the lowest version of its first leader.
    #[must_use]
    fn versions() -> RangeInclusive<u32>
    where
        Self: Sized,
    {
        1..=1
    }

    /// A timer that this service has set is due.
    ///
    /// # Errors
    /// A reason; the timer's outputs are dropped and the reason is recorded.
    fn on_timer(&mut self, timer: u64, context: &mut Context<'_>) -> Result<(), Reject> {
        let _ = (timer, context);
        Ok(())
    }

    /// Writes the whole state, so that [`Service::restore`] can make it again. The same state gives the same bytes, also in
    /// another process: the members of a cluster compare them, and one whose bytes differ stops. So write what stands in an
    /// unordered map in the order of its keys.
    ///
    /// It does not begin with the bytes `GAPSTORE`: so begins the state of a state-replicated service, which is refused here.
    fn snapshot(&self, state: &mut Vec<u8>);

    /// Becomes the state that [`Service::snapshot`] wrote.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    fn restore(&mut self, state: &[u8]) -> Result<(), String>;
}

type Handler<S> = Box<dyn Fn(&mut S, &[u8], &mut Context<'_>) -> Result<(), Refused> + Send>;

/// Which function takes which message.
pub struct Handlers<S> {
    by_message: FxHashMap<(u32, Encoding), Handler<S>>,
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

    /// The name that a message has in its schema, if a handler of the service takes it by its type; for reports.
    #[must_use]
    pub fn message_name(schema: u32, encoding: Encoding) -> Option<&'static str> {
        Self::of_service().names.get(&(schema, encoding)).copied()
    }
}

impl<S> Handlers<S> {
    /// `handler` takes messages of type `M`: a direct view, or an object, as `M` says.
    ///
    /// # Panics
    /// If the message has a handler already.
    pub fn on<M: Message>(
        &mut self,
        handler: impl Fn(&mut S, M::Decoded<'_>, &mut Context<'_>) -> Result<(), Reject> + Send + 'static,
    ) -> &mut Self {
        let call = move |service: &mut S, payload: &[u8], context: &mut Context<'_>| {
            let message = M::decode(payload).map_err(Refused::Undecodable)?;
            handler(service, message, context).map_err(Refused::Rejected)
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
        handler: impl Fn(&mut S, &[u8], &mut Context<'_>) -> Result<(), Reject> + Send + 'static,
    ) -> &mut Self {
        let call = move |service: &mut S, payload: &[u8], context: &mut Context<'_>| {
            handler(service, payload, context).map_err(Refused::Rejected)
        };
        self.insert(schema, Encoding::Opaque, Box::new(call))
    }

    fn insert(&mut self, schema: u32, encoding: Encoding, handler: Handler<S>) -> &mut Self {
        let before = self.by_message.insert((schema, encoding), handler);
        assert!(before.is_none(), "message {} in {encoding:?} has two handlers", describe(schema));
        self
    }

    #[inline]
    pub(crate) fn find(&self, schema: u32, encoding: Encoding) -> Option<&Handler<S>> {
        self.by_message.get(&(schema, encoding))
    }
}

/// A message type as people read it.
pub(crate) fn describe(schema: u32) -> String {
    format!("schema {} template {}", schema >> 16, schema & 0xffff)
}
