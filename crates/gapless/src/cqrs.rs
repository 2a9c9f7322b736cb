//! The command bus: commands, aggregates, and an event store that is the stream, with the feature `cqrs`.
//!
//! The bus puts the events of each command into the stream as one transaction, and answers when that is as durable as
//! the tier promises:
//!
//! ```
//! use gapless::cqrs::{Aggregate, BusOptions, CommandError, CommandModel, Creation, Decision};
//! use gapless::{Host, Message};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, Message)]
//! enum Command { Open, Deposit(u64), Withdraw(u64) }
//!
//! #[derive(Serialize, Deserialize, Message)]
//! enum Event { Opened, Deposited(u64), Withdrawn(u64) }
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize, Message)]
//! struct Overdrawn { balance: u64 }
//!
//! #[derive(Clone)]
//! struct Account { balance: u64 }
//!
//! impl Aggregate for Account {
//!     const NAME: &'static str = "account";
//!     type Id = u64;
//!     type Command = Command;
//!     type Event = Event;
//!     type Refusal = Overdrawn;
//!
//!     fn new(_: &u64) -> Self {
//!         Self { balance: 0 }
//!     }
//!     fn creation(command: &Command) -> Creation {
//!         if matches!(command, Command::Open) { Creation::Creates } else { Creation::MustExist }
//!     }
//!     fn decide(&self, command: Command, decision: &mut Decision<'_, Event>) -> Result<(), Overdrawn> {
//!         match command {
//!             Command::Open => decision.emit(Event::Opened),
//!             Command::Deposit(amount) => decision.emit(Event::Deposited(amount)),
//!             Command::Withdraw(amount) if amount > self.balance => return Err(Overdrawn { balance: self.balance }),
//!             Command::Withdraw(amount) => decision.emit(Event::Withdrawn(amount)),
//!         };
//!         Ok(())
//!     }
//!     fn apply(&mut self, event: &Event) {
//!         match event {
//!             Event::Opened => {}
//!             Event::Deposited(amount) => self.balance += amount,
//!             Event::Withdrawn(amount) => self.balance -= amount,
//!         }
//!     }
//! }
//!
//! let model = CommandModel::new().aggregate::<Account>();
//! let host = Host::in_memory().aggregates(model).start()?;
//! let bus = host.bus(&BusOptions::default())?;
//! bus.call(Account::command(&7, &Command::Open))?;
//! let accepted = bus.call(Account::command(&7, &Command::Deposit(30)))?;
//! assert_eq!((accepted.version, accepted.events), (2, 1));
//! let refused = bus.call(Account::command(&7, &Command::Withdraw(31)));
//! assert_eq!(refused, Err(CommandError::Refused(Overdrawn { balance: 30 })));
//! host.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The guide `docs/guides/commanding.md` has the rest: handlers over several aggregates, identifiers and expected
//! versions, reading events, tests, and failures.

pub use gapless_cqrs::{
    AcceptedCommand, Aggregate, AggregateId, AggregateOptions, BaseFileError, BusError, BusOptions, CAUSATION,
    CORRELATION, Cause, CommandBus, CommandCounters, CommandError, CommandHandler, CommandIdentity, CommandModel,
    CommandOutcome, Creation, Decision, DecisionContext, DecisionModel, DeletionError, DeletionReport,
    DispatchInterceptor, DispatchedCommand, Draft, Entity, EventDirectory, EventFilter, EventReader, EventTags,
    ExecuteError, Fixture, FoundEvents, HandlerContext, HandlerError, HandlerInterceptor, IdentifierLimits,
    IndexFileError, InterceptedCommand, Interruption, Invariants, ModelError, ModelFixture, ModelInvariants, OldEvent,
    PendingOutcome, PolledBus, Position, Random, ReadError, RecordedEvent, RecordedTransaction, RetryPolicy,
    SnapshotPolicy, Tags, TestEvent, Ticket, TypeKey, When, WhenSent, time_ordered_identifier,
};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/commanding.md")]
struct Guide;
