//! [`DispatchInterceptor`]: runs in a handle, before each command is sent and after its outcome;
//! [`HandlerInterceptor`]: runs in the writer, around *decide*.

use crate::aggregate::DecisionContext;
use crate::ending::CommandOutcome;
use crate::envelope::CommandEnvelope;
use crate::identity::TypeKey;
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
///     fn after(&self, command: &DispatchedCommand, ending: &CommandOutcome<'_>) {
///         println!("{} of {}: {ending:?}", command.command_name, self.0);
///     }
/// }
/// ```
pub trait DispatchInterceptor: Send + Sync + 'static {
    /// Called before a command is sent. May change headers and identifier. Runs on the sending thread; changes are part
    /// of the command, and of each retry.
    ///
    /// # Errors
    /// The reason why the command is not sent. The sender gets
    /// [`CommandError::Intercepted`](crate::CommandError::Intercepted).
    fn before(&self, command: &mut DispatchedCommand) -> Result<(), String> {
        let _ = command;
        Ok(())
    }

    /// Called with the last outcome, after all retries. Runs on the thread that has received the outcome: it must not
    /// wait for another command.
    fn after(&self, command: &DispatchedCommand, ending: &CommandOutcome<'_>) {
        let _ = (command, ending);
    }
}

/// A command to be sent, as seen by interceptors.
#[derive(Clone, Debug)]
pub struct DispatchedCommand {
    /// Key of the aggregate's type; [`TypeKey::NONE`] for a handler's command.
    pub aggregate: TypeKey,
    /// Encoded identifier of the aggregate.
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

/// Intercepts every command in the writer, around the decision of an aggregate or a handler. Runs on the writer's
/// thread (on a member, only while it leads) and must not block, because all other commands wait. A panic fails the
/// command, and nothing else.
///
/// A duplicate gets the first answer without being intercepted. A command whose aggregate has to be loaded first is
/// intercepted again after the load. Commands that a handler executes on aggregates are part of the handler's command.
pub trait HandlerInterceptor: Send + 'static {
    /// Called before the decision.
    ///
    /// # Errors
    /// The reason why there is no decision. The sender gets
    /// [`CommandError::Intercepted`](crate::CommandError::Intercepted), and so does a duplicate.
    fn before(&mut self, command: &InterceptedCommand<'_>) -> Result<(), String> {
        let _ = command;
        Ok(())
    }

    /// Called after the decision or a failure. Events are not released yet, and no caller has an answer.
    fn after(&mut self, command: &InterceptedCommand<'_>, ending: &CommandOutcome<'_>) {
        let _ = (command, ending);
    }
}

/// A command in the writer, as seen by interceptors.
#[derive(Clone, Copy, Debug)]
pub struct InterceptedCommand<'a> {
    /// Key of the aggregate's type; [`TypeKey::NONE`] for a handler's command.
    pub aggregate: TypeKey,
    /// Encoded identifier of the aggregate.
    pub id: &'a [u8],
    /// Key of the command's type.
    pub command: TypeKey,
    /// Version of the command's type.
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

    /// Decodes the command, if it is of that type.
    ///
    /// # Errors
    /// The command is of that type, but does not decode.
    pub fn decode<Command: Message>(&self) -> Result<Option<Command>, MessageError> {
        let is_of_type = self.command == const { TypeKey::of(Command::TYPE_NAME) };
        is_of_type.then(|| Command::decode_as(self.version, self.payload)).transpose()
    }
}
