//! [`Aggregate`]: decides on its commands and changes only by its events.

mod decision;
mod erased;
mod old_event;

pub use decision::{Decision, DecisionContext, Tags};
pub(crate) use erased::{
    CommandInput, DecideError, ErasedAggregate, ErasedState, MessageTypeId, SnapshotFormat, TypedAggregate, write_tag,
};
pub use old_event::OldEvent;

use crate::draft::Draft;
use crate::event_filter::EventFilter;
use crate::identity::{AggregateId, ID_LENGTH_MAX, TypeKey};
use gapless_message::{Message, MessageError};

/// An object whose state is built from its events. [`decide`](Self::decide) takes a command, changes nothing and emits
/// events; [`apply`](Self::apply) changes the state by one of them. The same events must give the same state, here,
/// after a restart and on every member of a cluster: neither function may use clocks, random numbers or anything
/// outside.
///
/// ```
/// use gapless_cqrs::{Aggregate, Creation, Decision, Message};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Message)]
/// enum Command { Open, Deposit(u64), Withdraw(u64) }
///
/// #[derive(Serialize, Deserialize, Message)]
/// enum Event { Opened, Deposited(u64), Withdrawn(u64) }
///
/// #[derive(Serialize, Deserialize, Message)]
/// struct Overdrawn { balance: u64 }
///
/// #[derive(Clone)]
/// struct Account { balance: u64 }
///
/// impl Aggregate for Account {
///     const NAME: &'static str = "account";
///     type Id = u64;
///     type Command = Command;
///     type Event = Event;
///     type Refusal = Overdrawn;
///
///     fn new(_: &u64) -> Self {
///         Self { balance: 0 }
///     }
///
///     fn creation(command: &Command) -> Creation {
///         if matches!(command, Command::Open) { Creation::Creates } else { Creation::MustExist }
///     }
///
///     fn decide(&self, command: Command, decision: &mut Decision<'_, Event>) -> Result<(), Overdrawn> {
///         match command {
///             Command::Open => decision.emit(Event::Opened),
///             Command::Deposit(amount) => decision.emit(Event::Deposited(amount)),
///             Command::Withdraw(amount) if amount > self.balance => return Err(Overdrawn { balance: self.balance }),
///             Command::Withdraw(amount) => decision.emit(Event::Withdrawn(amount)),
///         };
///         Ok(())
///     }
///
///     fn apply(&mut self, event: &Event) {
///         match event {
///             Event::Opened => {}
///             Event::Deposited(amount) => self.balance += amount,
///             Event::Withdrawn(amount) => self.balance -= amount,
///         }
///     }
/// }
/// ```
///
/// `Clone` is needed because a transaction over several aggregates may be refused after some of them have applied their
/// events.
pub trait Aggregate: Clone + Send + 'static {
    /// Name in the stream; keep it when the Rust type is renamed.
    const NAME: &'static str;
    type Id: AggregateId;
    /// Commands; an enum, if there are several.
    type Command: Message;
    /// Events; an enum, if there are several.
    type Event: Message;
    /// Refusals, passed on to the caller unchanged.
    type Refusal: Message;

    fn new(id: &Self::Id) -> Self;

    /// Whether the command needs an existing aggregate; by default every command does.
    fn creation(_command: &Self::Command) -> Creation {
        Creation::MustExist
    }

    /// Decides on a command: emits up to 65,535 events into `decision`, or refuses.
    ///
    /// # Errors
    /// The aggregate's refusal. The state does not change.
    fn decide(&self, command: Self::Command, decision: &mut Decision<'_, Self::Event>) -> Result<(), Self::Refusal>;

    /// Changes the state by a committed event, which cannot be refused any more.
    fn apply(&mut self, event: &Self::Event);

    /// Converts an event of another type or version to today's event; by default by [`Message::decode_as`], which copes
    /// with added fields and variants. `None`: the event has no meaning any more; it still counts in the aggregate's
    /// version.
    ///
    /// # Errors
    /// The program does not know the event. Only this aggregate is quarantined.
    fn upcast(old: &OldEvent<'_>) -> Result<Option<Self::Event>, MessageError> {
        old.decode().map(Some)
    }

    /// Version in which events are written while the service acts as `version`, one of
    /// [`CommandModel::versions`](crate::CommandModel::versions); 1 to 65,535, by default the newest.
    #[must_use]
    fn event_version(_version: u32) -> u32 {
        Self::Event::VERSION
    }

    fn command<'a>(id: &Self::Id, command: &'a Self::Command) -> Draft<'a, Self::Command, (), Self::Refusal> {
        Draft::new(const { TypeKey::of(Self::NAME) }, Some(id), command)
    }
}

impl EventFilter {
    /// The events of one aggregate.
    #[must_use]
    pub fn aggregate<A: Aggregate>(id: &A::Id) -> Self {
        let mut bytes = [0; ID_LENGTH_MAX];
        match id.write(&mut bytes) {
            Ok(length) => Self::of_aggregate(TypeKey::of(A::NAME), &bytes[..length]),
            // An identifier that is too long has no events: no command for it can be sent.
            Err(_) => Self::none(),
        }
    }
}

/// Whether a command needs an existing aggregate: one with an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Creation {
    /// An existing one, or the command ends as [`CommandError::NotFound`](crate::CommandError::NotFound).
    #[default]
    MustExist,
    /// A new one, or the command ends as [`CommandError::AlreadyExists`](crate::CommandError::AlreadyExists).
    Creates,
    CreatesIfMissing,
}

/// A part of an aggregate that decides for itself, such as an order's line. Its aggregate stores it, wraps its events
/// by [`Decision::entity`], and passes them to [`apply`](Self::apply).
pub trait Entity {
    type Command;
    type Event;
    type Refusal;

    /// Like [`Aggregate::decide`].
    ///
    /// # Errors
    /// The entity's own refusal.
    fn decide(&self, command: Self::Command, decision: &mut Decision<'_, Self::Event>) -> Result<(), Self::Refusal>;

    fn apply(&mut self, event: &Self::Event);
}
