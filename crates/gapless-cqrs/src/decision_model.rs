//! `DecisionModel`: a state for decisions that span aggregates.

use crate::aggregate::ErasedState;
use crate::event_filter::EventFilter;
use crate::identity::{AggregateId, Position};
use crate::transaction::RecordedEvent;
use gapless_message::MessageError;
use gapless_wire::fields::FieldError;
use std::any::TypeId;
use std::marker::PhantomData;

/// A state folded from the events of a filter, with or without aggregates: the consistency boundary of a decision that
/// is not one aggregate's. A handler reads it by [`HandlerContext::read`](crate::HandlerContext::read), and sees all
/// events before its command. No concurrent change is possible, so there is nothing to retry.
///
/// As with an aggregate, the same events must give the same state.
///
/// ```
/// use gapless_cqrs::{DecisionModel, EventFilter, Message, MessageError, RecordedEvent};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Message)]
/// struct Subscribed;
///
/// /// How many have subscribed to a course.
/// #[derive(Clone)]
/// struct Seats(u32);
///
/// impl DecisionModel for Seats {
///     type Id = String;
///
///     fn new(_: &String) -> Self {
///         Self(0)
///     }
///
///     fn events(course: &String) -> EventFilter {
///         EventFilter::tag("course", course).and(EventFilter::event::<Subscribed>())
///     }
///
///     fn apply(&mut self, event: &RecordedEvent<'_>) -> Result<(), MessageError> {
///         if let Some(Subscribed) = event.read()? {
///             self.0 += 1;
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait DecisionModel: Clone + Send + 'static {
    type Id: AggregateId;

    fn new(id: &Self::Id) -> Self;

    /// Events that change the state.
    fn events(id: &Self::Id) -> EventFilter;

    /// Changes the state by an event of its filter.
    ///
    /// # Errors
    /// The event cannot be read: the state is unusable, and commands that need it end as
    /// [`CommandError::Quarantined`](crate::CommandError::Quarantined).
    fn apply(&mut self, event: &RecordedEvent<'_>) -> Result<(), MessageError>;
}

pub(crate) trait ErasedDecisionModel: Send + Sync {
    fn name(&self) -> &'static str;

    /// `None` if the identifier does not decode.
    fn create(&self, id: &[u8]) -> Option<(ErasedState, EventFilter)>;

    fn copy(&self, state: &ErasedState) -> ErasedState;

    fn apply(&self, state: &mut ErasedState, event: &RecordedEvent<'_>) -> Result<(), MessageError>;
}

pub(crate) struct TypedDecisionModel<M>(PhantomData<fn() -> M>);

impl<M: DecisionModel> TypedDecisionModel<M> {
    pub const fn new() -> Self {
        Self(PhantomData)
    }

    pub fn id() -> TypeId {
        TypeId::of::<M>()
    }
}

const OWN_STATE: &str = "a state is handed to the type that made it";

impl<M: DecisionModel> ErasedDecisionModel for TypedDecisionModel<M> {
    fn name(&self) -> &'static str {
        std::any::type_name::<M>()
    }

    fn create(&self, id: &[u8]) -> Option<(ErasedState, EventFilter)> {
        let id = M::Id::read(id)?;
        Some((Box::new(M::new(&id)), M::events(&id)))
    }

    fn copy(&self, state: &ErasedState) -> ErasedState {
        Box::new(state.downcast_ref::<M>().expect(OWN_STATE).clone())
    }

    fn apply(&self, state: &mut ErasedState, event: &RecordedEvent<'_>) -> Result<(), MessageError> {
        state.downcast_mut::<M>().expect(OWN_STATE).apply(event)
    }
}

/// Position of the last event of a filter, for conditions of commands; the identifier is the encoded filter.
pub(crate) struct LastOfFilter;

impl LastOfFilter {
    /// The position in such a state.
    pub fn position(state: &ErasedState) -> Option<Position> {
        *state.downcast_ref::<Option<Position>>().expect(OWN_STATE)
    }

    /// Checks that an identifier decodes.
    pub fn check(id: &[u8]) -> Result<(), FieldError> {
        EventFilter::decode(id).map(drop)
    }
}

impl ErasedDecisionModel for LastOfFilter {
    fn name(&self) -> &'static str {
        "the condition of a command"
    }

    fn create(&self, id: &[u8]) -> Option<(ErasedState, EventFilter)> {
        Some((Box::new(None::<Position>), EventFilter::decode(id).ok()?))
    }

    fn copy(&self, state: &ErasedState) -> ErasedState {
        Box::new(Self::position(state))
    }

    fn apply(&self, state: &mut ErasedState, event: &RecordedEvent<'_>) -> Result<(), MessageError> {
        *state.downcast_mut::<Option<Position>>().expect(OWN_STATE) = Some(event.position);
        Ok(())
    }
}
