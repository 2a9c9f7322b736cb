//! [`DecisionModel`]: what a handler decides by that is no aggregate's state.

use crate::aggregate::State;
use crate::event_filter::EventFilter;
use crate::identity::{AggregateId, Position};
use crate::transaction::RecordedEvent;
use gapless_message::MessageError;
use gapless_wire::fields::FieldError;
use std::any::TypeId;
use std::marker::PhantomData;

/// A state made of the events that a filter has, whichever aggregates they are of, or none: the boundary of a decision that is not one
/// aggregate's. A handler reads it by [`Work::read`](crate::Work::read) and sees all events behind which its command stands: nobody is
/// faster, and nothing has to be tried again.
///
/// The writer keeps it while there is room, and changes it by each event that it decides; else it is made of the events anew. As with an
/// aggregate, the same events give the same state.
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
    /// What tells one from another.
    type Id: AggregateId;

    /// One without events.
    fn new(id: &Self::Id) -> Self;

    /// Which events change it.
    fn events(id: &Self::Id) -> EventFilter;

    /// Changes it by an event that its filter has.
    ///
    /// # Errors
    /// The event cannot be read. Then there is no such state any more, and commands that need it end as
    /// [`CommandError::Quarantined`](crate::CommandError::Quarantined).
    fn apply(&mut self, event: &RecordedEvent<'_>) -> Result<(), MessageError>;
}

/// A decision model without its type.
pub(crate) trait ErasedDecisionModel: Send + Sync {
    fn name(&self) -> &'static str;

    /// One without events, and which change it; `None` if the bytes are no identifier of its.
    fn create(&self, id: &[u8]) -> Option<(State, EventFilter)>;

    /// A copy of a state.
    fn copy(&self, state: &State) -> State;

    /// Changes a state by an event.
    fn apply(&self, state: &mut State, event: &RecordedEvent<'_>) -> Result<(), MessageError>;
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

    fn create(&self, id: &[u8]) -> Option<(State, EventFilter)> {
        let id = M::Id::read(id)?;
        Some((Box::new(M::new(&id)), M::events(&id)))
    }

    fn copy(&self, state: &State) -> State {
        Box::new(state.downcast_ref::<M>().expect(OWN_STATE).clone())
    }

    fn apply(&self, state: &mut State, event: &RecordedEvent<'_>) -> Result<(), MessageError> {
        state.downcast_mut::<M>().expect(OWN_STATE).apply(event)
    }
}

/// Where the last event of a filter stands, whose bytes are the identifier: for decisions that were made outside.
pub(crate) struct LastOfFilter;

impl LastOfFilter {
    /// The position in such a state.
    pub fn position(state: &State) -> Option<Position> {
        *state.downcast_ref::<Option<Position>>().expect(OWN_STATE)
    }

    /// What is wrong with bytes that are no identifier.
    pub fn check(id: &[u8]) -> Result<(), FieldError> {
        EventFilter::decode(id).map(drop)
    }
}

impl ErasedDecisionModel for LastOfFilter {
    fn name(&self) -> &'static str {
        "the condition of a command"
    }

    fn create(&self, id: &[u8]) -> Option<(State, EventFilter)> {
        Some((Box::new(None::<Position>), EventFilter::decode(id).ok()?))
    }

    fn copy(&self, state: &State) -> State {
        Box::new(Self::position(state))
    }

    fn apply(&self, state: &mut State, event: &RecordedEvent<'_>) -> Result<(), MessageError> {
        *state.downcast_mut::<Option<Position>>().expect(OWN_STATE) = Some(event.position);
        Ok(())
    }
}
