//! `OldEvent`: an event in the version of an older program.

use super::Aggregate;
use crate::identity::TypeKey;
use crate::transaction::RecordedEvent;
use gapless_message::{Message, MessageError};

/// An event written by an older or newer program in another type or version than today's, converted by
/// [`Aggregate::upcast`](super::Aggregate::upcast).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldEvent<'a> {
    /// Type key.
    pub event: TypeKey,
    /// Type version.
    pub version: u32,
    pub payload: &'a [u8],
}

impl OldEvent<'_> {
    /// Whether the type has the name of `M`.
    #[must_use]
    pub fn is<M: Message>(&self) -> bool {
        self.event == const { TypeKey::of(M::TYPE_NAME) }
    }

    /// Decodes the event as `M`, in the version in which it was written.
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

#[inline]
pub(super) fn read<A: Aggregate>(event: &OldEvent<'_>) -> Result<Option<A::Event>, MessageError> {
    if event.version == A::Event::VERSION && event.is::<A::Event>() {
        A::Event::decode(event.payload).map(Some)
    } else {
        A::upcast(event)
    }
}

impl RecordedEvent<'_> {
    /// Converts the event to today's type for an aggregate of type `A`; `None` as for [`Aggregate::upcast`].
    ///
    /// # Errors
    /// Another type, a version that this program does not know, or bytes that do not decode.
    pub fn decode<A: Aggregate>(&self) -> Result<Option<A::Event>, MessageError> {
        read::<A>(&OldEvent { event: self.event, version: self.version, payload: self.payload })
    }
}
