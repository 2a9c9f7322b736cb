//! `CommandHandler`: decides on commands that span aggregates, in one transaction.

use crate::aggregate::{Aggregate, DecisionContext, MessageTypeId};
use crate::decision_model::{DecisionModel, TypedDecisionModel};
use crate::draft::Draft;
use crate::identity::{AggregateId, ID_LENGTH_MAX, TypeKey};
use gapless_message::{Message, MessageError};
use std::any::{Any, TypeId};

/// Decides on commands that span aggregates; the events of one command are one transaction.
///
/// Runs on the writer's thread. If an aggregate has to be loaded first, the handler is stopped and run again from its
/// beginning, without an effect of the first run: it must depend only on its command and on `work`.
pub trait CommandHandler: Send + 'static {
    /// No other handler of the model may have the same type.
    type Command: Message;
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

/// `work` cannot go on; to be passed on by `?`. If ignored, only delays the end: the command has no effect.
#[derive(Debug)]
pub struct Interruption(pub(crate) InterruptionReason);

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum InterruptionReason {
    NotInMemory,
    Quarantined(String),
    /// Unknown to the model, or not to be encoded or decoded.
    Impossible(String),
}

/// An aggregate did not accept a handler's command.
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
    /// Converts to the handler's own refusal, to be passed on by `?`; an interruption stays one. `refusal` gets `None`
    /// if the aggregate is missing, or exists already.
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

pub(crate) type AggregateTypeRef = (TypeKey, &'static str);

pub(crate) trait Workspace {
    /// State of an aggregate after all changes of the transaction; `None` if it has no events.
    fn state(
        &mut self,
        aggregate: AggregateTypeRef,
        id: &[u8],
    ) -> Result<Option<&(dyn Any + Send)>, InterruptionReason>;

    /// The command is an `Option` of its type.
    fn execute(
        &mut self,
        aggregate: AggregateTypeRef,
        id: &[u8],
        command: &mut dyn Any,
    ) -> Result<(), ErasedExecuteError>;

    /// The event is an `Option` of its type.
    fn emit(&mut self, aggregate: AggregateTypeRef, id: &[u8], event: &mut dyn Any) -> Result<(), InterruptionReason>;

    fn record(
        &mut self,
        event: MessageTypeId,
        payload: Result<Vec<u8>, MessageError>,
    ) -> Result<(), InterruptionReason>;

    fn tag(&mut self, name: &str, value: &[u8]);

    /// State of a decision model after all changes of the transaction.
    fn read(&mut self, model: (TypeId, &'static str), id: &[u8]) -> Result<&(dyn Any + Send), InterruptionReason>;
}

#[derive(Debug)]
pub(crate) enum ErasedExecuteError {
    Refused(Vec<u8>),
    NotFound,
    AlreadyExists,
    Interrupted(InterruptionReason),
}

impl<'a> HandlerContext<'a> {
    /// Further input.
    #[must_use]
    pub const fn context(&self) -> &DecisionContext<'a> {
        &self.context
    }

    /// State of an aggregate after the handler's changes; `None` without events.
    ///
    /// # Errors
    /// Not loaded yet, or impossible to load; to be passed on.
    pub fn state<A: Aggregate>(&mut self, id: &A::Id) -> Result<Option<&A>, Interruption> {
        let (mut bytes, aggregate) = ([0; ID_LENGTH_MAX], (const { TypeKey::of(A::NAME) }, A::NAME));
        let state = self.workspace.state(aggregate, encode_id(id, &mut bytes)).map_err(Interruption)?;
        Ok(state.map(|state| state.downcast_ref().expect("a state is of its aggregate's type")))
    }

    /// Runs an aggregate's decision; its events join the transaction.
    ///
    /// # Errors
    /// A refusal, or an aggregate that is missing or exists already: unchanged, and the handler may go on. An
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

    /// Adds an event of an aggregate, decided by the handler.
    ///
    /// # Errors
    /// The same as for [`HandlerContext::state`].
    pub fn emit<A: Aggregate>(&mut self, id: &A::Id, event: A::Event) -> Result<EventTags<'_>, Interruption> {
        let (mut bytes, aggregate) = ([0; ID_LENGTH_MAX], (const { TypeKey::of(A::NAME) }, A::NAME));
        self.workspace.emit(aggregate, encode_id(id, &mut bytes), &mut Some(event)).map_err(Interruption)?;
        Ok(EventTags(&mut *self.workspace))
    }

    /// Adds an event without an aggregate, declared by [`CommandModel::event`](crate::CommandModel::event), found by
    /// type and tags.
    ///
    /// # Errors
    /// An event that does not encode, or of an undeclared type; to be passed on.
    pub fn record<E: Message>(&mut self, event: &E) -> Result<EventTags<'_>, Interruption> {
        let mut payload = Vec::new();
        let encoded = event.encode(&mut payload).map(|()| payload);
        self.workspace.record(MessageTypeId::of::<E>(), encoded).map_err(Interruption)?;
        Ok(EventTags(&mut *self.workspace))
    }

    /// State of a decision model, including the handler's events.
    ///
    /// # Errors
    /// Not loaded yet, impossible to load, or of an undeclared type; to be passed on.
    pub fn read<M: DecisionModel>(&mut self, id: &M::Id) -> Result<&M, Interruption> {
        let mut bytes = [0; ID_LENGTH_MAX];
        let model = (TypedDecisionModel::<M>::id(), std::any::type_name::<M>());
        let read = self.workspace.read(model, encode_id(id, &mut bytes)).map_err(Interruption)?;
        Ok(read.downcast_ref().expect("a state is of its model's type"))
    }
}

/// Tags the event added last.
pub struct EventTags<'a>(&'a mut dyn Workspace);

impl EventTags<'_> {
    /// Like [`Tags::tag`](crate::Tags::tag).
    pub fn tag(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.0.tag(name, value.as_ref());
        self
    }
}

/// One that is too long becomes invalid bytes.
fn encode_id<'a>(id: &impl AggregateId, bytes: &'a mut [u8; ID_LENGTH_MAX]) -> &'a [u8] {
    match id.write(bytes) {
        Ok(length) => &bytes[..length],
        Err(_) => &[0xff; ID_LENGTH_MAX + 1],
    }
}

fn unreadable(error: &MessageError) -> InterruptionReason {
    InterruptionReason::Impossible(format!("its refusal cannot be read: {error}"))
}
