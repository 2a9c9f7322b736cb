//! [`Ending`]: how a command has ended, without its types: for interceptors and policies of retrying.

use crate::envelope::{Answer, Answered};
use crate::error::BusError;
use crate::identity::Position;

/// How a command has ended, for those that do not know its types: [`CommandError`](crate::CommandError) says what each of them means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending<'a> {
    /// Its events are in the stream.
    Accepted {
        /// Of its first event; where it has none, where that would stand.
        position: Position,
        /// Its events.
        events: u32,
        /// The aggregate's version behind it; 0 of a handler's command.
        version: u64,
    },
    /// By the aggregate or the handler.
    Refused,
    /// The aggregate does not exist.
    NotFound,
    /// The aggregate exists already.
    AlreadyExists,
    /// The aggregate has this version, and another was expected.
    Conflict {
        /// What it is.
        found: u64,
    },
    /// There is an event that the command's condition excludes, here.
    ConditionFailed(Position),
    /// Another command had the same identifier.
    IdentifierReused,
    /// The aggregate cannot be made of its events, and why.
    Quarantined(&'a str),
    /// An interceptor has refused it, and why.
    Intercepted(&'a str),
    /// It has failed, and why.
    Failed(&'a str),
    /// There is no outcome.
    Bus(&'a BusError),
}

impl<'a> Ending<'a> {
    pub(crate) fn of_answer<Bytes: AsRef<[u8]>>(answer: &'a Answer<Bytes>) -> Self {
        let text = || std::str::from_utf8(answer.rest.as_ref()).unwrap_or("its reason cannot be read");
        match answer.answered {
            Answered::Accepted => {
                Self::Accepted { position: answer.position, events: answer.events, version: answer.aggregate_version }
            }
            Answered::Refused => Self::Refused,
            Answered::NotFound => Self::NotFound,
            Answered::AlreadyExists => Self::AlreadyExists,
            Answered::Conflict => Self::Conflict { found: answer.aggregate_version },
            Answered::ConditionFailed => Self::ConditionFailed(Position {
                sequence: answer.position.sequence,
                ordinal: answer.aggregate_version as u16,
            }),
            Answered::IdentifierReused => Self::IdentifierReused,
            Answered::Quarantined => Self::Quarantined(text()),
            Answered::Intercepted => Self::Intercepted(text()),
        }
    }

    /// Whether it is an answer of the writer's, which stays the same for the same command: it is remembered under the command's identifier.
    #[must_use]
    pub const fn is_decided(&self) -> bool {
        !matches!(self, Self::Failed(_) | Self::Bus(_))
    }
}
