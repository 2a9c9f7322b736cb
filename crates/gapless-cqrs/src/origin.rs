//! [`Cause`] of a command, and its headers. A command without them starts a chain: its own identity is the correlation,
//! so they take no space without a cause.

use crate::identity::Position;
use gapless_message::headers::Headers;
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// Header of the chain: a caller's value, or the identity of the first command, [`Cause::to_bytes`].
pub const CORRELATION: &str = "correlation";
/// Header of the cause: [`Cause::to_bytes`], or a caller's value.
pub const CAUSATION: &str = "causation";

/// The event or command that caused a command.
///
/// ```
/// use gapless_cqrs::{Cause, Position};
///
/// let event = Cause::Event(Position { sequence: 17, ordinal: 2 });
/// assert_eq!((event.to_bytes().len(), event.to_string()), (10, "event 17.2".to_owned()));
/// let command = Cause::Command { session: 3, number: 9 };
/// assert_eq!((command.to_bytes().len(), command.to_string()), (16, "command 3/9".to_owned()));
/// assert_eq!(Cause::read(&command.to_bytes()), Some(command));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Another command, whose handler sent this one.
    Command {
        session: u64,
        number: u64,
    },
    Event(Position),
}

impl Cause {
    /// Header value, big-endian: for a command u64 session, u64 number; for an event u64 sequence, u16 ordinal.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Command { session, number } => [session.to_be_bytes(), number.to_be_bytes()].concat(),
            Self::Event(Position { sequence, ordinal }) => {
                [&sequence.to_be_bytes()[..], &ordinal.to_be_bytes()].concat()
            }
        }
    }

    /// Decodes [`Cause::to_bytes`]; `None` for a caller's other bytes.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first_chunk::<8>()?;
        let first = u64::from_be_bytes(*first);
        if let Ok(number) = rest.try_into() {
            return Some(Self::Command { session: first, number: u64::from_be_bytes(number) });
        }
        let ordinal = u16::from_be_bytes(rest.try_into().ok()?);
        Some(Self::Event(Position { sequence: first, ordinal }))
    }
}

impl Display for Cause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { session, number } => write!(f, "command {session}/{number}"),
            Self::Event(position) => write!(f, "event {position}"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandOrigin<'a> {
    pub session: u64,
    pub number: u64,
    pub metadata: &'a [u8],
}

impl<'a> CommandOrigin<'a> {
    /// Correlation of the command.
    pub fn correlation(&self) -> Cow<'a, [u8]> {
        match Headers::find_encoded(self.metadata, CORRELATION) {
            Some(correlation) => Cow::Borrowed(correlation),
            None => Cow::Owned(self.command().to_bytes()),
        }
    }

    /// Event or command that caused the command.
    pub fn cause(&self) -> Option<Cause> {
        Cause::read(Headers::find_encoded(self.metadata, CAUSATION)?)
    }

    /// The command itself, as a cause.
    pub const fn command(&self) -> Cause {
        Cause::Command { session: self.session, number: self.number }
    }

    /// Adds correlation and cause, unless set.
    pub fn carry_on(&self, cause: Cause, headers: &mut Headers) {
        if headers.get(CORRELATION).is_none() {
            headers.set(CORRELATION, self.correlation());
        }
        if headers.get(CAUSATION).is_none() {
            headers.set(CAUSATION, cause.to_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_round_trips() {
        let causes =
            [Cause::Command { session: 1, number: u64::MAX }, Cause::Event(Position { sequence: 9, ordinal: 3 })];
        for cause in causes {
            let bytes = cause.to_bytes();
            assert_eq!(Cause::read(&bytes), Some(cause));
            assert_eq!((Cause::read(&bytes[1..]), Cause::read(&[&bytes[..], &[0]].concat())), (None, None));
        }
        assert_eq!((Cause::read(&[]), Cause::read(b"order 17")), (None, None));
    }

    #[test]
    fn correlation_is_carried_on() {
        let mut first = Headers::default();
        let origin = CommandOrigin { session: 3, number: 4, metadata: &[] };
        origin.carry_on(origin.command(), &mut first);
        let of_first = origin.command().to_bytes();
        assert_eq!((first.get(CORRELATION), first.get(CAUSATION)), (Some(&of_first[..]), Some(&of_first[..])));
        let mut metadata = Vec::new();
        first.encode(&mut metadata).unwrap();
        let origin = CommandOrigin { session: 3, number: 5, metadata: &metadata };
        assert_eq!(origin.cause(), Some(Cause::Command { session: 3, number: 4 }));
        let mut second = Headers::default().with(CAUSATION, "an alarm clock");
        origin.carry_on(origin.command(), &mut second);
        assert_eq!(
            (second.get(CORRELATION), second.get(CAUSATION)),
            (Some(&of_first[..]), Some(&b"an alarm clock"[..]))
        );
    }
}
