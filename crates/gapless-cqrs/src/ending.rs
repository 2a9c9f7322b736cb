//! [`CommandOutcome`]: the outcome of a command without its types, for interceptors and retry policies.

use crate::envelope::{AnswerKind, CommandAnswer};
use crate::error::BusError;
use crate::identity::Position;

/// The outcome of a command without its types. [`CommandError`](crate::CommandError) explains each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandOutcome<'a> {
    /// The events are in the stream.
    Accepted {
        /// Position of the first event; without events, the position that it would have.
        position: Position,
        /// Number of events.
        events: u32,
        /// Version of the aggregate after the command; 0 for a handler's command.
        version: u64,
    },
    /// Refused by the aggregate or the handler.
    Refused,
    /// The aggregate does not exist.
    NotFound,
    /// The aggregate exists already.
    AlreadyExists,
    /// The aggregate has another version than expected.
    Conflict {
        /// Version of the aggregate.
        found: u64,
    },
    /// The stream has an event, at this position, that the command's condition excludes.
    ConditionFailed(Position),
    /// Another command had the same identifier.
    IdentifierReused,
    /// The aggregate cannot be loaded from its events, for this reason.
    Quarantined(&'a str),
    /// Refused by an interceptor, for this reason.
    Intercepted(&'a str),
    /// Failed, for this reason.
    Failed(&'a str),
    /// There is no outcome.
    Bus(&'a BusError),
}

impl<'a> CommandOutcome<'a> {
    pub(crate) fn of_answer<Bytes: AsRef<[u8]>>(answer: &'a CommandAnswer<Bytes>) -> Self {
        let text = || std::str::from_utf8(answer.rest.as_ref()).unwrap_or("its reason cannot be read");
        match answer.kind {
            AnswerKind::Accepted => {
                Self::Accepted { position: answer.position, events: answer.events, version: answer.aggregate_version }
            }
            AnswerKind::Refused => Self::Refused,
            AnswerKind::NotFound => Self::NotFound,
            AnswerKind::AlreadyExists => Self::AlreadyExists,
            AnswerKind::Conflict => Self::Conflict { found: answer.aggregate_version },
            AnswerKind::ConditionFailed => Self::ConditionFailed(Position {
                sequence: answer.position.sequence,
                ordinal: answer.aggregate_version as u16,
            }),
            AnswerKind::IdentifierReused => Self::IdentifierReused,
            AnswerKind::Quarantined => Self::Quarantined(text()),
            AnswerKind::Intercepted => Self::Intercepted(text()),
        }
    }

    /// Whether the writer has decided. A decision is remembered under the command's identifier, and stays the same for
    /// the same command.
    #[must_use]
    pub const fn is_decided(&self) -> bool {
        !matches!(self, Self::Failed(_) | Self::Bus(_))
    }
}
