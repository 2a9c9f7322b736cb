//! [`CommandHandler`]: decides on commands that span aggregates, in one transaction.

use crate::aggregate::{Aggregate, DecisionContext, MessageTypeId};
use crate::decision_model::{DecisionModel, TypedDecisionModel};
use crate::draft::Draft;
use crate::identity::{AggregateId, ID_LENGTH_MAX, TypeKey};
use gapless_message::{Message, MessageError};
use std::any::{Any, TypeId};

/// Decides on commands that span aggregates. All events of one command are one transaction, whatever aggregates they
/// belong to.
///
/// A handler runs on the writer's thread, between two other commands, and sees every aggregate as the previous command
/// has left it. If an aggregate has to be loaded from disk first, the handler is stopped there and run again from its
/// beginning; the first run has no effect. So it must depend only on its command and on `work`.
pub trait CommandHandler: Send + 'static {
    /// Commands. No other handler of the model may have the same type.
    type Command: Message;
    /// Reply to the caller of an accepted command.
    type Reply: Message;
    /// Refusals, passed on to the caller unchanged.
    type Refusal: Message;

    /// Decides on a command.
    ///
    /// # Errors
    /// A refusal, which drops all changes; or an error of `work`, passed on by `?`.
    fn handle(
        &self,
        command: Self::Command,
        work: &mut HandlerContext<'_>,
    ) -> Result<Self::Reply, HandlerError<Self::Refusal>>;

    /// A command, ready to be sent on a bus.
    fn command(command: &Self::Command) -> Draft<'_, Self::Command, Self::Reply, Self::Refusal> {
        Draft::new(TypeKey::NONE, None::<&u64>, command)
    }
}

/// The reason why a handler stops.
#[derive(Debug)]
pub enum HandlerError<Refusal> {
    /// The handler refuses.
    Refused(Refusal),
    /// `work` cannot go on.
    Interrupted(Interruption),
}

impl<Refusal> From<Interruption> for HandlerError<Refusal> {
    fn from(interruption: Interruption) -> Self {
        Self::Interrupted(interruption)
    }
}

/// The reason why `work` cannot go on; to be passed on by `?`. A handler that ignores it only delays the end: the
/// command has no effect.
#[derive(Debug)]
pub struct Interruption(pub(crate) InterruptionReason);

/// Contents of [`Interruption`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InterruptionReason {
    /// The aggregate has to be loaded first.
    NotInMemory,
    /// The aggregate cannot be loaded from its events, for this reason.
    Quarantined(String),
    /// The model does not know the aggregate, or an identifier or value cannot be encoded or decoded.
    Impossible(String),
}

/// The reason why an aggregate did not accept a command of a handler.
#[derive(Debug)]
pub enum ExecuteError<Refusal> {
    /// The aggregate refuses. The handler may go on without it.
    Refused(Refusal),
    /// The aggregate does not exist, and the command needs an existing one.
    NotFound,
    /// The aggregate exists, and the command needs a new one.
    AlreadyExists,
    /// The handler cannot go on.
    Interrupted(Interruption),
}

impl<Refusal> ExecuteError<Refusal> {
    /// Converts it to the handler's own refusal, to be passed on by `?`; an interruption stays one. `refusal` gets
    /// `None` if the aggregate is missing, or exists already.
    pub fn refuse<Own>(self, refusal: impl FnOnce(Option<Refusal>) -> Own) -> HandlerError<Own> {
        match self {
            Self::Refused(refused) => HandlerError::Refused(refusal(Some(refused))),
            Self::NotFound | Self::AlreadyExists => HandlerError::Refused(refusal(None)),
            Self::Interrupted(interruption) => HandlerError::Interrupted(interruption),
        }
    }
}

/// Context of a handler.
pub struct HandlerContext<'a> {
    pub(crate) context: DecisionContext<'a>,
    pub(crate) workspace: &'a mut dyn Workspace,
}

/// Key and name of a type of aggregates.
pub(crate) type AggregateTypeRef = (TypeKey, &'static str);

/// The writer's side of [`HandlerContext`].
pub(crate) trait Workspace {
    /// State of an aggregate after all changes of the transaction; `None` if it has no events.
    fn state(
        &mut self,
        aggregate: AggregateTypeRef,
        id: &[u8],
    ) -> Result<Option<&(dyn Any + Send)>, InterruptionReason>;

    /// Runs the aggregate's decision on a command, an `Option` of its command's type.
    fn execute(
        &mut self,
        aggregate: AggregateTypeRef,
        id: &[u8],
        command: &mut dyn Any,
    ) -> Result<(), ErasedExecuteError>;

    /// Adds an event of an aggregate, an `Option` of its event's type.
    fn emit(&mut self, aggregate: AggregateTypeRef, id: &[u8], event: &mut dyn Any) -> Result<(), InterruptionReason>;

    /// Adds an event without an aggregate, or fails if it cannot be encoded.
    fn record(
        &mut self,
        event: MessageTypeId,
        payload: Result<Vec<u8>, MessageError>,
    ) -> Result<(), InterruptionReason>;

    /// Tags the event that was added last.
    fn tag(&mut self, name: &str, value: &[u8]);

    /// State of a decision model after all changes of the transaction.
    fn read(&mut self, model: (TypeId, &'static str), id: &[u8]) -> Result<&(dyn Any + Send), InterruptionReason>;
}

/// [`ExecuteError`] without types.
#[derive(Debug)]
pub(crate) enum ErasedExecuteError {
    Refused(Vec<u8>),
    NotFound,
    AlreadyExists,
    Interrupted(InterruptionReason),
}

impl<'a> HandlerContext<'a> {
    /// Further input of the handler.
    #[must_use]
    pub const fn context(&self) -> &DecisionContext<'a> {
        &self.context
    }

    /// State of an aggregate after all changes of the handler; `None` if it has no events.
    ///
    /// # Errors
    /// The aggregate is not loaded yet, or cannot be; to be passed on.
    pub fn state<A: Aggregate>(&mut self, id: &A::Id) -> Result<Option<&A>, Interruption> {
        let (mut bytes, aggregate) = ([0; ID_LENGTH_MAX], (const { TypeKey::of(A::NAME) }, A::NAME));
        let state = self.workspace.state(aggregate, encode_id(id, &mut bytes)).map_err(Interruption)?;
        Ok(state.map(|state| state.downcast_ref().expect("a state is of its aggregate's type")))
    }

    /// Runs an aggregate's decision on one of its commands. Its events become part of the transaction.
    ///
    /// # Errors
    /// A refusal, or an aggregate that is missing or exists already: it is unchanged, and the handler may go on. An
    /// interruption is to be passed on.
    pub fn execute<A: Aggregate>(&mut self, id: &A::Id, command: A::Command) -> Result<(), ExecuteError<A::Refusal>> {
        let (mut bytes, aggregate) = ([0; ID_LENGTH_MAX], (const { TypeKey::of(A::NAME) }, A::NAME));
        let executed = self.workspace.execute(aggregate, encode_id(id, &mut bytes), &mut Some(command));
        executed.map_err(|unexecuted| match unexecuted {
            ErasedExecuteError::Refused(bytes) => match A::Refusal::decode(&bytes) {
                Ok(refusal) => ExecuteError::Refused(refusal),
                Err(error) => ExecuteError::Interrupted(Interruption(unreadable(&error))),
            },
            ErasedExecuteError::NotFound => ExecuteError::NotFound,
            ErasedExecuteError::AlreadyExists => ExecuteError::AlreadyExists,
            ErasedExecuteError::Interrupted(interrupted) => ExecuteError::Interrupted(Interruption(interrupted)),
        })
    }

    /// Adds an event of an aggregate, decided by the handler itself.
    ///
    /// # Errors
    /// The same as for [`HandlerContext::state`].
    pub fn emit<A: Aggregate>(&mut self, id: &A::Id, event: A::Event) -> Result<EventTags<'_>, Interruption> {
        let (mut bytes, aggregate) = ([0; ID_LENGTH_MAX], (const { TypeKey::of(A::NAME) }, A::NAME));
        self.workspace.emit(aggregate, encode_id(id, &mut bytes), &mut Some(event)).map_err(Interruption)?;
        Ok(EventTags(&mut *self.workspace))
    }

    /// Adds an event without an aggregate, of a type that the model has by
    /// [`CommandModel::event`](crate::CommandModel::event). It is found by its type and tags.
    ///
    /// # Errors
    /// The event cannot be encoded, or the model does not have its type; to be passed on.
    pub fn record<E: Message>(&mut self, event: &E) -> Result<EventTags<'_>, Interruption> {
        let mut payload = Vec::new();
        let encoded = event.encode(&mut payload).map(|()| payload);
        self.workspace.record(MessageTypeId::of::<E>(), encoded).map_err(Interruption)?;
        Ok(EventTags(&mut *self.workspace))
    }

    /// State of a decision model, folded from all events of its filter before the command, and from those that the
    /// handler has added.
    ///
    /// # Errors
    /// The state is not loaded yet, or cannot be, or the model does not have its type; to be passed on.
    pub fn read<M: DecisionModel>(&mut self, id: &M::Id) -> Result<&M, Interruption> {
        let mut bytes = [0; ID_LENGTH_MAX];
        let model = (TypedDecisionModel::<M>::id(), std::any::type_name::<M>());
        let read = self.workspace.read(model, encode_id(id, &mut bytes)).map_err(Interruption)?;
        Ok(read.downcast_ref().expect("a state is of its model's type"))
    }
}

/// Tags the event that a handler has added last.
pub struct EventTags<'a>(&'a mut dyn Workspace);

impl EventTags<'_> {
    /// Adds a tag, like [`Tags::tag`](crate::Tags::tag).
    pub fn tag(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.0.tag(name, value.as_ref());
        self
    }
}

/// Encodes an identifier; one that is too long becomes invalid bytes.
fn encode_id<'a>(id: &impl AggregateId, bytes: &'a mut [u8; ID_LENGTH_MAX]) -> &'a [u8] {
    match id.write(bytes) {
        Ok(length) => &bytes[..length],
        Err(_) => &[0xff; ID_LENGTH_MAX + 1],
    }
}

fn unreadable(error: &MessageError) -> InterruptionReason {
    InterruptionReason::Impossible(format!("its refusal cannot be read: {error}"))
}
