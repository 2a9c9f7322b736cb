//! [`CommandHandler`]: decides on commands that are no single aggregate's, in one transaction over several.

use crate::aggregate::{Aggregate, Circumstances, MessageType};
use crate::decision_model::{DecisionModel, TypedDecisionModel};
use crate::draft::Draft;
use crate::identity::{AggregateId, ID_LENGTH_MAX, TypeKey};
use gapless_message::{Message, MessageError};
use std::any::{Any, TypeId};

/// Decides on commands that are no single aggregate's: all events of one command, of whichever aggregates of the stream, are one
/// transaction, in the stream or not.
///
/// It runs on the writer's thread, between two other commands, and sees every aggregate as it is behind the command before. Where an
/// aggregate has to be read from disk first, the handler is stopped at that place and run again from its beginning when it is there;
/// nothing that it did counts. So it only looks at its command and at what `work` gives.
pub trait CommandHandler: Send + 'static {
    /// What it decides on. No other handler of the model has the same.
    type Command: Message;
    /// What the caller gets when it is done.
    type Reply: Message;
    /// Why it refuses. The caller gets it as it is.
    type Refusal: Message;

    /// Decides on a command.
    ///
    /// # Errors
    /// Its refusal, which drops all that it has done; and what `work` says, handed on by `?`.
    fn handle(&self, command: Self::Command, work: &mut Work<'_>) -> Result<Self::Reply, Stop<Self::Refusal>>;

    /// A command for a bus to send.
    fn command(command: &Self::Command) -> Draft<'_, Self::Command, Self::Reply, Self::Refusal> {
        Draft::new(TypeKey::NONE, None::<&u64>, command)
    }
}

/// Why a handler goes no further.
#[derive(Debug)]
pub enum Stop<Refusal> {
    /// It refuses.
    Refused(Refusal),
    /// `work` cannot go on.
    Interrupted(Interruption),
}

impl<Refusal> From<Interruption> for Stop<Refusal> {
    fn from(interruption: Interruption) -> Self {
        Self::Interrupted(interruption)
    }
}

/// Why `work` cannot go on; handed on by `?`. Whoever keeps it instead only puts the end off: nothing of the command counts.
#[derive(Debug)]
pub struct Interruption(pub(crate) Interrupted);

/// See [`Interruption`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// It has to be read first.
    Cold,
    /// It cannot be made of its events, and why.
    Quarantined(String),
    /// The model knows no such aggregate, or the bytes are no identifier of its, or cannot be encoded.
    Impossible(String),
}

/// How an aggregate's own decision ends inside a handler.
#[derive(Debug)]
pub enum Undone<Refusal> {
    /// It refuses. The handler may go on without it.
    Refused(Refusal),
    /// It does not exist, and the command is for one that does.
    NotFound,
    /// It exists, and the command is for one that does not.
    AlreadyExists,
    /// The handler cannot go on.
    Interrupted(Interruption),
}

impl<Refusal> Undone<Refusal> {
    /// Makes the handler's own refusal of what is none of an interruption, to be handed on by `?`. `None` stands for an aggregate that
    /// is not there, or is.
    pub fn refuse<Own>(self, refusal: impl FnOnce(Option<Refusal>) -> Own) -> Stop<Own> {
        match self {
            Self::Refused(refused) => Stop::Refused(refusal(Some(refused))),
            Self::NotFound | Self::AlreadyExists => Stop::Refused(refusal(None)),
            Self::Interrupted(interruption) => Stop::Interrupted(interruption),
        }
    }
}

/// What a handler does its work with.
pub struct Work<'a> {
    pub(crate) circumstances: Circumstances<'a>,
    pub(crate) workspace: &'a mut dyn Workspace,
}

/// A type of aggregates: its key, and its name.
pub(crate) type Named = (TypeKey, &'static str);

/// The aggregates as the writer has them.
pub(crate) trait Workspace {
    /// Its state behind everything that the transaction has done; `None` if it has no events.
    fn state(&mut self, aggregate: Named, id: &[u8]) -> Result<Option<&(dyn Any + Send)>, Interrupted>;

    /// Lets it decide on the value in the `Option` of its command's type.
    fn execute(&mut self, aggregate: Named, id: &[u8], command: &mut dyn Any) -> Result<(), Unexecuted>;

    /// Adds the event in the `Option` of its event's type.
    fn emit(&mut self, aggregate: Named, id: &[u8], event: &mut dyn Any) -> Result<(), Interrupted>;

    /// Adds an event of no aggregate, or says why it cannot be encoded.
    fn record(&mut self, event: MessageType, payload: Result<Vec<u8>, MessageError>) -> Result<(), Interrupted>;

    /// Gives the event that was added last a tag.
    fn tag(&mut self, name: &str, value: &[u8]);

    /// The state of a decision model behind everything that the transaction has done.
    fn read(&mut self, model: (TypeId, &'static str), id: &[u8]) -> Result<&(dyn Any + Send), Interrupted>;
}

/// As [`Undone`], without types.
#[derive(Debug)]
pub(crate) enum Unexecuted {
    Refused(Vec<u8>),
    NotFound,
    AlreadyExists,
    Interrupted(Interrupted),
}

impl<'a> Work<'a> {
    /// What else the handler may know of its command.
    #[must_use]
    pub const fn circumstances(&self) -> &Circumstances<'a> {
        &self.circumstances
    }

    /// The state of an aggregate behind all that the handler has done before; `None` if it has no events.
    ///
    /// # Errors
    /// It is not there yet, or cannot be made of its events; to be handed on.
    pub fn state<A: Aggregate>(&mut self, id: &A::Id) -> Result<Option<&A>, Interruption> {
        let (mut bytes, aggregate) = ([0; ID_LENGTH_MAX], (const { TypeKey::of(A::NAME) }, A::NAME));
        let state = self.workspace.state(aggregate, written(id, &mut bytes)).map_err(Interruption)?;
        Ok(state.map(|state| state.downcast_ref().expect("a state is of its aggregate's type")))
    }

    /// Lets an aggregate decide on a command of its own. Its events become part of the transaction.
    ///
    /// # Errors
    /// It refuses, or is not there, or there already: then it is as it was, and the handler may go on. An interruption is to be handed on.
    pub fn execute<A: Aggregate>(&mut self, id: &A::Id, command: A::Command) -> Result<(), Undone<A::Refusal>> {
        let (mut bytes, aggregate) = ([0; ID_LENGTH_MAX], (const { TypeKey::of(A::NAME) }, A::NAME));
        let executed = self.workspace.execute(aggregate, written(id, &mut bytes), &mut Some(command));
        executed.map_err(|unexecuted| match unexecuted {
            Unexecuted::Refused(bytes) => match A::Refusal::decode(&bytes) {
                Ok(refusal) => Undone::Refused(refusal),
                Err(error) => Undone::Interrupted(Interruption(unreadable(&error))),
            },
            Unexecuted::NotFound => Undone::NotFound,
            Unexecuted::AlreadyExists => Undone::AlreadyExists,
            Unexecuted::Interrupted(interrupted) => Undone::Interrupted(Interruption(interrupted)),
        })
    }

    /// Adds an event of an aggregate that the handler itself has decided on.
    ///
    /// # Errors
    /// As [`Work::state`].
    pub fn emit<A: Aggregate>(&mut self, id: &A::Id, event: A::Event) -> Result<EventTags<'_>, Interruption> {
        let (mut bytes, aggregate) = ([0; ID_LENGTH_MAX], (const { TypeKey::of(A::NAME) }, A::NAME));
        self.workspace.emit(aggregate, written(id, &mut bytes), &mut Some(event)).map_err(Interruption)?;
        Ok(EventTags(&mut *self.workspace))
    }

    /// Adds an event of no aggregate, of a type that the model has by [`CommandModel::event`](crate::CommandModel::event). It is found by its
    /// type and tags.
    ///
    /// # Errors
    /// It cannot be encoded, or the model does not have its type; to be handed on.
    pub fn record<E: Message>(&mut self, event: &E) -> Result<EventTags<'_>, Interruption> {
        let mut payload = Vec::new();
        let encoded = event.encode(&mut payload).map(|()| payload);
        self.workspace.record(MessageType::of::<E>(), encoded).map_err(Interruption)?;
        Ok(EventTags(&mut *self.workspace))
    }

    /// The state of a decision model, of all events of its filter behind which the command stands, and of those that the handler has
    /// decided before.
    ///
    /// # Errors
    /// It is not there yet, or cannot be made of its events, or the model does not have its type; to be handed on.
    pub fn read<M: DecisionModel>(&mut self, id: &M::Id) -> Result<&M, Interruption> {
        let mut bytes = [0; ID_LENGTH_MAX];
        let model = (TypedDecisionModel::<M>::id(), std::any::type_name::<M>());
        let read = self.workspace.read(model, written(id, &mut bytes)).map_err(Interruption)?;
        Ok(read.downcast_ref().expect("a state is of its model's type"))
    }
}

/// Tags of the event that a handler has added last.
pub struct EventTags<'a>(&'a mut dyn Workspace);

impl EventTags<'_> {
    /// As [`Tags::tag`](crate::Tags::tag).
    pub fn tag(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.0.tag(name, value.as_ref());
        self
    }
}

/// The bytes of an identifier; of one that is too long, bytes that are no identifier.
fn written<'a>(id: &impl AggregateId, bytes: &'a mut [u8; ID_LENGTH_MAX]) -> &'a [u8] {
    match id.write(bytes) {
        Ok(length) => &bytes[..length],
        Err(_) => &[0xff; ID_LENGTH_MAX + 1],
    }
}

fn unreadable(error: &MessageError) -> Interrupted {
    Interrupted::Impossible(format!("its refusal cannot be read: {error}"))
}
