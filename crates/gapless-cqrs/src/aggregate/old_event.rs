//! [`OldEvent`]: an event as an older program has written it.

use super::Aggregate;
use crate::identity::TypeKey;
use crate::transaction::RecordedEvent;
use gapless_message::{Message, MessageError};

/// An event of the stream that is not of today's type and version: an older program has written it, or a newer one.
/// [`Aggregate::upcast`](super::Aggregate::upcast) says what it is today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldEvent<'a> {
    /// The key of its type.
    pub event: TypeKey,
    /// The version of its type.
    pub version: u32,
    /// Its bytes.
    pub payload: &'a [u8],
}

impl OldEvent<'_> {
    /// Whether its type has the name of `M`, in whichever version.
    #[must_use]
    pub fn is<M: Message>(&self) -> bool {
        self.event == const { TypeKey::of(M::TYPE_NAME) }
    }

    /// Reads it as a message of that type, in the version in which it was written.
    ///
    /// # Errors
    /// It is of another type, or of a version that the type does not read; its bytes are none.
    pub fn decode<M: Message>(&self) -> Result<M, MessageError> {
        if !self.is::<M>() {
            let reason = format!("its type has the key {:#010x}", self.event.0);
            return Err(MessageError { type_name: M::TYPE_NAME, reason });
        }
        M::decode_as(self.version, self.payload)
    }
}

/// What an event is today; `None` if it means nothing any more.
#[inline]
pub(super) fn read<A: Aggregate>(event: &OldEvent<'_>) -> Result<Option<A::Event>, MessageError> {
    if event.version == A::Event::VERSION && event.is::<A::Event>() {
        A::Event::decode(event.payload).map(Some)
    } else {
        A::upcast(event)
    }
}

impl RecordedEvent<'_> {
    /// What the event is today, for an aggregate of that type; `None` if it means nothing any more, which [`Aggregate::upcast`] says.
    ///
    /// # Errors
    /// It is of another type, or of a version that this program does not know; its bytes are none.
    pub fn decode<A: Aggregate>(&self) -> Result<Option<A::Event>, MessageError> {
        read::<A>(&OldEvent { event: self.event, version: self.version, payload: self.payload })
    }
}
