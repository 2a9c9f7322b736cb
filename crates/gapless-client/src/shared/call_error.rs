//! [`CallError`]: what became of a command without a reply.

use crate::CommandNumber;
use gapless_wire::control::RefusalCode;

/// The end of a command that has no reply. `Refusal` is the service's own type.
///
/// Statuses for a web front:
///
/// | error | status |
/// |---|---|
/// | `Refused` | 409, or what the refusal means |
/// | `NotSent`, `Busy` | 503 with `Retry-After` |
/// | `Invalid`, `Failed` | 500 |
/// | `Mismatch` | 502: one side is about to be replaced |
/// | `Unknown`, `Pending` | 504: the caller looks before it tries again |
/// | `Done` | 202 |
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError<Refusal> {
    /// No effect, for a reason of the service. Read the refusal.
    #[error("the service refused the command: {0:?}")]
    Refused(Refusal),
    /// No effect: the command was never sent. Retry it.
    #[error("the command was not sent: {reason}")]
    NotSent { reason: String },
    /// No effect: the command cannot be encoded, or is longer than the limit. Correct the program.
    #[error("the command cannot be sent: {reason}")]
    Invalid { reason: String },
    /// No effect: too many commands wait for room already. Retry later, or send less at a time.
    #[error("{waiting} commands wait for room already; retry when some of them are done")]
    Busy {
        /// Commands that are not sent yet, or that a durable client keeps.
        waiting: usize,
    },
    /// No effect: the command is in the stream, and its handler panicked, does not exist, or gave a refusal that
    /// cannot be read. Correct the program that the reason names.
    #[error("the command at sequence {sequence} failed ({code:?}): {reason}")]
    Failed {
        /// Place of the command in the total order.
        sequence: u64,
        code: RefusalCode,
        reason: String,
    },
    /// No effect: the service has no such command, or its types differ from the client's. Build both with the same types,
    /// or start the service's newer program.
    #[error("the service does not handle {name}, which had no effect: {difference}")]
    Mismatch {
        /// Name of the request.
        name: &'static str,
        /// First difference, with the versions of both sides.
        difference: String,
    },
    /// The command was sent: it has taken effect once, or will, or never will. Do not send it again before you know:
    /// [`Client::outcome`](crate::Client::outcome) asks for its reply.
    #[error("command {number} was sent, but its outcome is unknown: {reason}")]
    Unknown { number: CommandNumber, reason: String },
    /// The command has taken effect, and its reply is lost. Do not send it again.
    #[error("the command took effect at sequence {sequence}, but its reply is lost: {reason}")]
    Done {
        /// Place of the command in the total order.
        sequence: u64,
        reason: String,
    },
    /// The command is kept by a durable client, and has no outcome yet. Wait again, or in the next life.
    #[error("the command is kept, and has no outcome yet: {reason}")]
    Pending { reason: String },
}

impl<Refusal> CallError<Refusal> {
    /// Whether the command took effect; `None` if that is unknown.
    #[must_use]
    pub const fn took_effect(&self) -> Option<bool> {
        match self {
            Self::Refused(_)
            | Self::NotSent { .. }
            | Self::Invalid { .. }
            | Self::Busy { .. }
            | Self::Failed { .. }
            | Self::Mismatch { .. } => Some(false),
            Self::Unknown { .. } | Self::Pending { .. } => None,
            Self::Done { .. } => Some(true),
        }
    }

    /// Refusal of the service.
    ///
    /// # Errors
    /// The same error, if it is another one.
    pub fn refusal(self) -> Result<Refusal, Self> {
        match self {
            Self::Refused(refusal) => Ok(refusal),
            other => Err(other),
        }
    }
}
