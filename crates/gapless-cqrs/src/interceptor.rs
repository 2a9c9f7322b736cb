//! `DispatchInterceptor`: runs in a handle, before each command is sent and after its outcome; `HandlerInterceptor`:
//! runs in the writer, around *decide*.

use crate::aggregate::DecisionContext;
use crate::envelope::CommandEnvelope;
use crate::identity::TypeKey;
use crate::outcome::CommandOutcome;
use gapless_message::headers::Headers;
use gapless_message::{Message, MessageError};

/// Intercepts the commands that a handle sends. `before` runs in the order in which interceptors were added, `after` in
/// the opposite order.
///
/// ```
/// use gapless_cqrs::{DispatchInterceptor, DispatchedCommand, CommandOutcome};
///
/// /// Adds the user to every command.
/// struct UserHeader(String);
///
/// impl DispatchInterceptor for UserHeader {
///     fn before(&self, command: &mut DispatchedCommand) -> Result<(), String> {
///         if self.0.is_empty() {
///             return Err("nobody is logged in".to_owned());
///         }
///         command.headers.set("user", self.0.as_str());
///         Ok(())
///     }
///
///     fn after(&self, command: &DispatchedCommand, outcome: &CommandOutcome<'_>) {
///         println!("{} of {}: {outcome:?}", command.command_name, self.0);
///     }
/// }
/// ```
pub trait DispatchInterceptor: Send + Sync + 'static {
    /// Called before sending, on the sending thread; changes to headers and identifier apply to each retry.
    ///
    /// # Errors
    /// The reason why the command is not sent: [`CommandError::Intercepted`](crate::CommandError::Intercepted) for the
    /// sender.
    fn before(&self, command: &mut DispatchedCommand) -> Result<(), String> {
        let _ = command;
        Ok(())
    }

    /// Called with the last outcome, after all retries, on the thread that received it: must not wait for another
    /// command.
    fn after(&self, command: &DispatchedCommand, outcome: &CommandOutcome<'_>) {
        let _ = (command, outcome);
    }
}

/// A command to be sent.
#[derive(Clone, Debug)]
pub struct DispatchedCommand {
    /// [`TypeKey::NONE`] for a handler's command.
    pub aggregate: TypeKey,
    /// Encoded identifier.
    pub id: Vec<u8>,
    /// Name of the command's type.
    pub command_name: &'static str,
    /// Expected version of the aggregate.
    pub expected_version: Option<u64>,
    /// Identifier of the command; may be changed.
    pub identifier: Option<u128>,
    /// Metadata; may be changed.
    pub headers: Headers,
}

/// Intercepts commands in the writer, around the decision.
///
/// Runs on the writer's thread (on a member, only while it leads) and must not block: all other commands wait. A panic
/// fails only the command. Duplicates are not intercepted; a command whose aggregate has to be loaded first is, again,
/// after the load. Commands of a handler on aggregates are part of its own.
pub trait HandlerInterceptor: Send + 'static {
    /// Called before the decision.
    ///
    /// # Errors
    /// The reason for none: [`CommandError::Intercepted`](crate::CommandError::Intercepted) for the sender and
    /// duplicates.
    fn before(&mut self, command: &InterceptedCommand<'_>) -> Result<(), String> {
        let _ = command;
        Ok(())
    }

    /// Called after the decision or a failure; nothing is released or answered yet.
    fn after(&mut self, command: &InterceptedCommand<'_>, outcome: &CommandOutcome<'_>) {
        let _ = (command, outcome);
    }
}

/// A command in the writer.
#[derive(Clone, Copy, Debug)]
pub struct InterceptedCommand<'a> {
    /// [`TypeKey::NONE`] for a handler's command.
    pub aggregate: TypeKey,
    /// Encoded identifier.
    pub id: &'a [u8],
    /// Type key.
    pub command: TypeKey,
    /// Type version.
    pub version: u32,
    /// Encoded command.
    pub payload: &'a [u8],
    /// Identifier of the command.
    pub identifier: Option<u128>,
    /// Expected version of the aggregate.
    pub expected_version: Option<u64>,
    /// Time, session and number, headers.
    pub context: DecisionContext<'a>,
}

impl<'a> InterceptedCommand<'a> {
    pub(crate) const fn new(envelope: &CommandEnvelope<'a>, context: DecisionContext<'a>) -> Self {
        let CommandEnvelope { aggregate, command, version, identifier, expected_version, id, payload, .. } = *envelope;
        Self { aggregate, id, command, version, payload, identifier, expected_version, context }
    }

    /// `None` if the command is of another type.
    ///
    /// # Errors
    /// It does not decode.
    pub fn decode<Command: Message>(&self) -> Result<Option<Command>, MessageError> {
        let is_of_type = self.command == const { TypeKey::of(Command::TYPE_NAME) };
        is_of_type.then(|| Command::decode_as(self.version, self.payload)).transpose()
    }
}
