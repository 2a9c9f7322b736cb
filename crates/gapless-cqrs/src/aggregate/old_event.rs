//! [`OldEvent`]: an event in the version of an older program.

use super::Aggregate;
use crate::identity::TypeKey;
use crate::transaction::RecordedEvent;
use gapless_message::{Message, MessageError};

/// An event of the stream that has another type or version than today's, written by an older or a newer program.
/// [`Aggregate::upcast`](super::Aggregate::upcast) converts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldEvent<'a> {
    /// Key of its type.
    pub event: TypeKey,
    /// Version of its type.
    pub version: u32,
    pub payload: &'a [u8],
}

impl OldEvent<'_> {
    /// Whether its type has the name of `M`, in any version.
    #[must_use]
    pub fn is<M: Message>(&self) -> bool {
        self.event == const { TypeKey::of(M::TYPE_NAME) }
    }

    /// Decodes it as a message of that type, in the version in which it was written.
    ///
    /// # Errors
    /// Another type, a version that `M` cannot read, or bytes that do not decode.
    pub fn decode<M: Message>(&self) -> Result<M, MessageError> {
        if !self.is::<M>() {
            let reason = format!("its type has the key {:#010x}", self.event.0);
            return Err(MessageError { type_name: M::TYPE_NAME, reason });
        }
        M::decode_as(self.version, self.payload)
    }
}

/// Converts an event to today's type; `None` if it has no meaning any more.
#[inline]
pub(super) fn read<A: Aggregate>(event: &OldEvent<'_>) -> Result<Option<A::Event>, MessageError> {
    if event.version == A::Event::VERSION && event.is::<A::Event>() {
        A::Event::decode(event.payload).map(Some)
    } else {
        A::upcast(event)
    }
}

impl RecordedEvent<'_> {
    /// Converts the event to today's type for an aggregate of type `A`; `None` if it has no meaning any more, as
    /// [`Aggregate::upcast`] says.
    ///
    /// # Errors
    /// Another type, a version that this program does not know, or bytes that do not decode.
    pub fn decode<A: Aggregate>(&self) -> Result<Option<A::Event>, MessageError> {
        read::<A>(&OldEvent { event: self.event, version: self.version, payload: self.payload })
    }
}
