//! [`Aggregate`]: what decides on its commands and changes by its events, and by nothing else.
//!
//! | module | what lives there |
//! |---|---|
//! | `erased` | an aggregate's type without its type: from bytes to decisions, from events to bytes |
//! | `old_event` | [`OldEvent`]: what an older program has written |
//! | `decision` | [`Decision`]: what *decide* may know, and where it puts its events |

mod decision;
mod erased;
mod old_event;

pub use decision::{Circumstances, Decision, Tags};
pub(crate) use erased::{
    Commanded, ErasedAggregate, MessageType, NotDecided, State, StateFiles, TypedAggregate, write_tag,
};
pub use old_event::OldEvent;

use crate::draft::Draft;
use crate::event_filter::EventFilter;
use crate::identity::{AggregateId, ID_LENGTH_MAX, TypeKey};
use gapless_message::{Message, MessageError};

/// Something whose state is made of its events. A command is decided on by [`decide`](Self::decide), which changes nothing and says which
/// events follow; [`apply`](Self::apply) changes the state by one of them. The same events give the same state, here, after a restart, and
/// on every member of a cluster: neither function looks at clocks, random numbers or anything outside.
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
/// A command that is one transaction over several aggregates may look at what it has decided before, and then be refused: for that a state can
/// be copied.
pub trait Aggregate: Clone + Send + 'static {
    /// The name of the type in the stream: it stays when the Rust type is renamed.
    const NAME: &'static str;
    /// What tells one from another.
    type Id: AggregateId;
    /// What it decides on; an enum, if there are several.
    type Command: Message;
    /// What it decides, and is made of.
    type Event: Message;
    /// Why it refuses. The caller gets it as it is.
    type Refusal: Message;

    /// One of which there is no event yet.
    fn new(id: &Self::Id) -> Self;

    /// Whether the command is for one that exists. Without this function, all are.
    fn creation(_command: &Self::Command) -> Creation {
        Creation::MustExist
    }

    /// Decides on a command: puts events into `decision`, none or as many as 65,535, or refuses, and then what it has put there is
    /// dropped.
    ///
    /// # Errors
    /// The aggregate's own refusal, which changes nothing.
    fn decide(&self, command: Self::Command, decision: &mut Decision<'_, Self::Event>) -> Result<(), Self::Refusal>;

    /// Changes the state by an event that has happened. There is no refusing it any more.
    fn apply(&mut self, event: &Self::Event);

    /// What an event is today that was not written in today's type and version: today's event, or `None` if it means nothing any more. It still
    /// counts in the aggregate's version. Without this function, what [`Message::decode_as`] makes of it: fields and variants that were added
    /// need nothing else.
    ///
    /// # Errors
    /// It is nothing that this program knows: the aggregate is quarantined, and it alone.
    fn upcast(old: &OldEvent<'_>) -> Result<Option<Self::Event>, MessageError> {
        old.decode().map(Some)
    }

    /// In which version of its type an event is written while the stream's service acts as `version`, one of
    /// [`CommandModel::versions`](crate::CommandModel::versions); 1 to 65,535. Without this function, in the newest.
    #[must_use]
    fn event_version(_version: u32) -> u32 {
        Self::Event::VERSION
    }

    /// A command for the aggregate with that identifier, for a bus to send.
    fn command<'a>(id: &Self::Id, command: &'a Self::Command) -> Draft<'a, Self::Command, (), Self::Refusal> {
        Draft::new(const { TypeKey::of(Self::NAME) }, Some(id), command)
    }
}

impl EventFilter {
    /// Those of an aggregate.
    #[must_use]
    pub fn aggregate<A: Aggregate>(id: &A::Id) -> Self {
        let mut bytes = [0; ID_LENGTH_MAX];
        match id.write(&mut bytes) {
            Ok(length) => Self::of_aggregate(TypeKey::of(A::NAME), &bytes[..length]),
            // One that is too long has no events: no command for it can be sent.
            Err(_) => Self::of_nothing(),
        }
    }
}

/// Which aggregates a command is for: one exists as soon as it has an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Creation {
    /// One that exists; else the command ends as [`CommandError::NotFound`](crate::CommandError::NotFound).
    #[default]
    MustExist,
    /// One that does not; else it ends as [`CommandError::AlreadyExists`](crate::CommandError::AlreadyExists).
    Creates,
    /// Either.
    CreatesIfMissing,
}

/// A part of an aggregate that decides for itself: an order's line, a game's player. It has no life of its own in the stream: its
/// aggregate keeps it, wraps its events into its own by [`Decision::entity`], and hands them to [`apply`](Self::apply).
pub trait Entity {
    /// What it decides on.
    type Command;
    /// What it decides.
    type Event;
    /// Why it refuses.
    type Refusal;

    /// As [`Aggregate::decide`].
    ///
    /// # Errors
    /// The entity's own refusal.
    fn decide(&self, command: Self::Command, decision: &mut Decision<'_, Self::Event>) -> Result<(), Self::Refusal>;

    /// As [`Aggregate::apply`].
    fn apply(&mut self, event: &Self::Event);
}
