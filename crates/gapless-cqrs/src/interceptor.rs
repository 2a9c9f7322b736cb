//! [`DispatchInterceptor`]: what looks at every command of a handle, before it is sent and when it has ended; [`HandlerInterceptor`]: the same in
//! the writer, around *decide*.

use crate::aggregate::Circumstances;
use crate::ending::Ending;
use crate::envelope::Envelope;
use crate::identity::TypeKey;
use gapless_message::headers::Headers;
use gapless_message::{Message, MessageError};

/// Looks at every command that a handle sends. Several are asked in the order in which they were added, and told in the opposite order.
///
/// ```
/// use gapless_cqrs::{DispatchInterceptor, Dispatched, Ending};
///
/// /// Every command says who has sent it.
/// struct SaysWho(String);
///
/// impl DispatchInterceptor for SaysWho {
///     fn before(&self, command: &mut Dispatched) -> Result<(), String> {
///         if self.0.is_empty() {
///             return Err("nobody is logged in".to_owned());
///         }
///         command.headers.set("user", self.0.as_str());
///         Ok(())
///     }
///
///     fn after(&self, command: &Dispatched, ending: &Ending<'_>) {
///         println!("{} of {}: {ending:?}", command.command_name, self.0);
///     }
/// }
/// ```
pub trait DispatchInterceptor: Send + Sync + 'static {
    /// A command is about to be sent; its headers and identifier may be changed. This runs on the thread that sends, and what it changes is
    /// part of the command: a repeat has it, too.
    ///
    /// # Errors
    /// Why it is not sent: its sender gets [`CommandError::Intercepted`](crate::CommandError::Intercepted).
    fn before(&self, command: &mut Dispatched) -> Result<(), String> {
        let _ = command;
        Ok(())
    }

    /// A command has ended, after all repeats. This runs on whichever thread has got the outcome: it must not wait for another command.
    fn after(&self, command: &Dispatched, ending: &Ending<'_>) {
        let _ = (command, ending);
    }
}

/// A command on its way to be sent, as interceptors see it.
#[derive(Clone, Debug)]
pub struct Dispatched {
    /// The key of its aggregate's type; [`TypeKey::NONE`]: it is for a handler.
    pub aggregate: TypeKey,
    /// The bytes of its aggregate's identifier.
    pub id: Vec<u8>,
    /// The name of the command's type.
    pub command_name: &'static str,
    /// The version that the aggregate is expected to have.
    pub expected_version: Option<u64>,
    /// Its identifier; may be changed.
    pub identifier: Option<u128>,
    /// Its metadata; may be changed.
    pub headers: Headers,
}

/// Looks at every command in the writer, before an aggregate or a handler decides on it and when that has ended. It runs on the writer's thread, on
/// a lone node as on the member that leads, by either drive: it must not block, since all others wait meanwhile. One that panics has the command
/// fail, and nothing else.
///
/// A command that was decided on before, which its identifier says, gets its answer without being asked about; one whose aggregate has to be
/// read first is asked about again when it is there. What a handler has aggregates decide is part of the handler's command.
pub trait HandlerInterceptor: Send + 'static {
    /// A command is about to be decided on.
    ///
    /// # Errors
    /// Why it is not: its sender gets [`CommandError::Intercepted`](crate::CommandError::Intercepted), and a repeat of it, too.
    fn before(&mut self, command: &Intercepted<'_>) -> Result<(), String> {
        let _ = command;
        Ok(())
    }

    /// It was decided on, or has failed. Its events are not released yet, so nobody has been told.
    fn after(&mut self, command: &Intercepted<'_>, ending: &Ending<'_>) {
        let _ = (command, ending);
    }
}

/// A command in the writer, as interceptors see it.
#[derive(Clone, Copy, Debug)]
pub struct Intercepted<'a> {
    /// The key of its aggregate's type; [`TypeKey::NONE`]: it is for a handler.
    pub aggregate: TypeKey,
    /// The bytes of its aggregate's identifier.
    pub id: &'a [u8],
    /// The key of the command's type.
    pub command: TypeKey,
    /// Its version.
    pub version: u32,
    /// The bytes of the command.
    pub payload: &'a [u8],
    /// The identifier that it was given.
    pub identifier: Option<u128>,
    /// The version that the aggregate is expected to have.
    pub expected_version: Option<u64>,
    /// Time, session and number, headers.
    pub circumstances: Circumstances<'a>,
}

impl<'a> Intercepted<'a> {
    pub(crate) const fn new(envelope: &Envelope<'a>, circumstances: Circumstances<'a>) -> Self {
        let Envelope { aggregate, command, version, identifier, expected_version, id, payload, .. } = *envelope;
        Self { aggregate, id, command, version, payload, identifier, expected_version, circumstances }
    }

    /// The command, if it is of that type.
    ///
    /// # Errors
    /// It is of that type, and its bytes are none.
    pub fn decode<Command: Message>(&self) -> Result<Option<Command>, MessageError> {
        let is_of_type = self.command == const { TypeKey::of(Command::TYPE_NAME) };
        is_of_type.then(|| Command::decode_as(self.version, self.payload)).transpose()
    }
}
