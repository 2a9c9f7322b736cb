//! `CommandOutcome`: the outcome of a command without its types, for interceptors and retry policies.

use crate::envelope::{AnswerKind, CommandAnswer};
use crate::error::BusError;
use crate::identity::Position;

/// Outcome of a command without types; [`CommandError`](crate::CommandError) explains each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandOutcome<'a> {
    Accepted {
        /// First event's; without events, the position that it would have.
        position: Position,
        events: u32,
        /// Version after the command; 0 for a handler's command.
        version: u64,
    },
    Refused,
    NotFound,
    AlreadyExists,
    Conflict {
        found: u64,
    },
    ConditionFailed(Position),
    IdentifierReused,
    Quarantined(&'a str),
    Intercepted(&'a str),
    Failed(&'a str),
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

    /// The writer has decided; a decision is remembered under the command's identifier.
    #[must_use]
    pub const fn is_decided(&self) -> bool {
        !matches!(self, Self::Failed(_) | Self::Bus(_))
    }
}
