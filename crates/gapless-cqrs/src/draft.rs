//! `Draft`: a command to be sent.

use crate::envelope::{CommandEnvelope, Condition};
use crate::event_filter::EventFilter;
use crate::identifiers::time_ordered_identifier;
use crate::identity::{AggregateId, ID_LENGTH_MAX, Position, TypeKey};
use gapless_message::Message;
use gapless_message::headers::Headers;
use std::marker::PhantomData;

/// A command to be sent, created by [`Aggregate::command`](crate::Aggregate::command) or
/// [`CommandHandler::command`](crate::CommandHandler::command).
#[must_use = "a bus sends it"]
pub struct Draft<'a, Command, Reply, Refusal> {
    aggregate: TypeKey,
    id: EncodedId,
    command: &'a Command,
    identifier: Option<u128>,
    expected_version: Option<u64>,
    condition: Option<(&'a EventFilter, Position)>,
    headers: Option<&'a Headers>,
    types: PhantomData<fn() -> (Reply, Refusal)>,
}

/// Encoded identifier of an aggregate, with its length even if it is too long to be stored.
#[derive(Clone, Copy)]
struct EncodedId {
    bytes: [u8; ID_LENGTH_MAX],
    length: usize,
}

impl EncodedId {
    #[inline]
    fn get(&self) -> Option<&[u8]> {
        self.bytes.get(..self.length)
    }
}

impl<'a, Command: Message, Reply, Refusal> Draft<'a, Command, Reply, Refusal> {
    pub(crate) fn new(aggregate: TypeKey, id: Option<&impl AggregateId>, command: &'a Command) -> Self {
        let mut draft = Self {
            aggregate,
            id: EncodedId { bytes: [0; ID_LENGTH_MAX], length: 0 },
            command,
            identifier: None,
            expected_version: None,
            condition: None,
            headers: None,
            types: PhantomData,
        };
        if let Some(id) = id {
            // A failed write leaves no valid identifier, whatever length it reports.
            draft.id.length = id.write(&mut draft.id.bytes).unwrap_or_else(|length| length.max(ID_LENGTH_MAX + 1));
        }
        draft
    }

    /// Sets an identifier. While it is remembered, a duplicate only gets the first answer; another command with it ends
    /// as [`CommandError::IdentifierReused`](crate::CommandError::IdentifierReused).
    pub const fn identified_by(mut self, identifier: u128) -> Self {
        self.identifier = Some(identifier);
        self
    }

    /// Sets a new [`time_ordered_identifier`], kept each time that this draft is sent: safe to retry.
    pub fn identified(self) -> Self {
        self.identified_by(time_ordered_identifier())
    }

    /// Expects that many events of the aggregate, or ends as [`CommandError::Conflict`](crate::CommandError::Conflict).
    /// Not for a handler's command.
    pub const fn expecting_version(mut self, version: u64) -> Self {
        self.expected_version = Some(version);
        self
    }

    /// Expects no event of a filter after a position, such as
    /// [`FoundEvents::read_through`](crate::FoundEvents::read_through), or ends as
    /// [`CommandError::ConditionFailed`](crate::CommandError::ConditionFailed).
    pub const fn only_if_none(mut self, filter: &'a EventFilter, after: Position) -> Self {
        self.condition = Some((filter, after));
        self
    }

    /// Adds metadata, at most 16 KiB, stored with the events for good.
    pub const fn with(mut self, headers: &'a Headers) -> Self {
        self.headers = Some(headers);
        self
    }

    pub(crate) const fn with_identity<'b>(
        &self,
        identifier: Option<u128>,
        headers: &'b Headers,
    ) -> Draft<'b, Command, Reply, Refusal>
    where
        'a: 'b,
    {
        let Self { aggregate, id, command, expected_version, condition, .. } = *self;
        let headers = Some(headers);
        Draft { aggregate, id, command, identifier, expected_version, condition, headers, types: PhantomData }
    }

    pub(crate) fn parts(&self) -> (TypeKey, &[u8], Option<u128>, Option<u64>, Option<&'a Headers>) {
        // An invalid identifier is reported by `write`.
        let id = self.id.get().unwrap_or_default();
        (self.aggregate, id, self.identifier, self.expected_version, self.headers)
    }

    pub(crate) fn expected_version(&self) -> u64 {
        self.expected_version.unwrap_or(0)
    }

    pub(crate) const fn command_key(&self) -> TypeKey {
        const { TypeKey::of(Command::TYPE_NAME) }
    }

    /// An error is the reason why it cannot be sent.
    #[inline]
    pub(crate) fn write(&self, into: &mut Vec<u8>) -> Result<(), String> {
        let id = self.id.get().ok_or_else(|| {
            format!("an aggregate's identifier has at most {ID_LENGTH_MAX} bytes, and this one {}", self.id.length)
        })?;
        if self.aggregate == TypeKey::NONE && self.expected_version.is_some() {
            return Err(
                "it expects a version, and is no aggregate's: `only_if_none` is for a handler's command".to_owned()
            );
        }
        let filter = self.condition.map(|(filter, _)| encoded(filter)).transpose()?;
        CommandEnvelope {
            aggregate: self.aggregate,
            command: self.command_key(),
            version: Command::VERSION,
            identifier: self.identifier,
            expected_version: self.expected_version,
            condition: self.condition.zip(filter.as_deref()).map(|((_, after), filter)| Condition { after, filter }),
            metadata: &[],
            id,
            payload: &[],
        }
        .write_head(into, |into| self.headers.map_or(Ok(()), |headers| headers.encode(into)))?;
        self.command.encode(into).map_err(|error| error.to_string())
    }
}

#[cold]
fn encoded(filter: &EventFilter) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    filter.encode(&mut bytes)?;
    match u16::try_from(bytes.len()) {
        Ok(_) => Ok(bytes),
        Err(_) => Err(format!("the filter of its condition has {} bytes, and 65535 have room", bytes.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Halves;

    impl AggregateId for Halves {
        fn write(&self, _: &mut [u8; ID_LENGTH_MAX]) -> Result<usize, usize> {
            Err(40)
        }

        fn read(_: &[u8]) -> Option<Self> {
            None
        }
    }

    #[test]
    fn half_written_identifier_is_not_sent() {
        let draft = Draft::<_, (), ()>::new(TypeKey::of("a"), Some(&Halves), &());
        assert!(draft.write(&mut Vec::new()).unwrap_err().contains("at most 64 bytes"));
        assert_eq!(draft.parts().1, b"");
    }
}
