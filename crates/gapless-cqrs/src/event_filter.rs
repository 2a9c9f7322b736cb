//! [`EventFilter`]: selects events.
//!
//! ```text
//! u8 alternatives, each: u8 parts, each:
//!   u8 0  an aggregate's   u32 key of its type, u8 length, identifier
//!   u8 1  a tag            u8 length, name, u8 length, value
//!   u8 2  of a type        u32 key
//! ```
//! Numbers are little-endian.

use crate::identity::{ID_LENGTH_MAX, TypeKey};
use crate::transaction::RecordedEvent;
use gapless_message::Message;
use gapless_wire::fields::{FieldError, FieldReader};
use std::collections::BTreeSet;
use std::ops::Bound;

const PARTS_MAX: usize = u8::MAX as usize;
/// More alternatives are not compared one by one.
const COMPARED_MAX: usize = 8;

/// Selects events of an aggregate, with a tag, or of a type; [`and`](Self::and) and [`or`](Self::or) combine filters.
///
/// ```
/// use gapless_cqrs::{EventFilter, Message};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Message)]
/// struct Subscribed;
///
/// let of_both = EventFilter::tag("course", "c1").and(EventFilter::tag("student", "s1"));
/// let of_either = EventFilter::tag("course", "c1").or(EventFilter::tag("student", "s1"));
/// assert_ne!(of_both, of_either.and(EventFilter::event::<Subscribed>()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// An event matches if it has all parts of one alternative; parts are sorted.
    alternatives: BTreeSet<Vec<FilterPart>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FilterPart {
    Aggregate(TypeKey, Vec<u8>),
    Tag(String, Vec<u8>),
    Type(TypeKey),
}

impl EventFilter {
    fn of(part: FilterPart) -> Self {
        Self { alternatives: BTreeSet::from([vec![part]]) }
    }

    /// Events with a tag; name and value are cut after 255 bytes.
    #[must_use]
    pub fn tag(name: impl AsRef<str>, value: impl AsRef<[u8]>) -> Self {
        let (name, value) = cut_tag(name.as_ref(), value.as_ref());
        Self::of(FilterPart::Tag(name.to_owned(), value.to_vec()))
    }

    /// Events of a type.
    #[must_use]
    pub fn event<E: Message>() -> Self {
        Self::of_type(TypeKey::of(E::TYPE_NAME))
    }

    /// Events of an aggregate; none if the identifier is too long.
    #[must_use]
    pub fn of_aggregate(aggregate: TypeKey, id: impl Into<Vec<u8>>) -> Self {
        let id = id.into();
        if id.len() > ID_LENGTH_MAX {
            return Self::none();
        }
        Self::of(FilterPart::Aggregate(aggregate, id))
    }

    pub(crate) const fn none() -> Self {
        Self { alternatives: BTreeSet::new() }
    }

    /// Events of the type with this key.
    #[must_use]
    pub fn of_type(event: TypeKey) -> Self {
        Self::of(FilterPart::Type(event))
    }

    /// Events that match either filter.
    #[must_use]
    pub fn or(mut self, mut other: Self) -> Self {
        if self.alternatives.len() < other.alternatives.len() {
            std::mem::swap(&mut self, &mut other);
        }
        self.alternatives.extend(other.alternatives);
        self
    }

    /// Events that match both filters.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let both = self.alternatives.iter().flat_map(|mine| {
            let with = |theirs: &Vec<FilterPart>| sorted_parts(mine.iter().chain(theirs).cloned().collect());
            other.alternatives.iter().map(with)
        });
        Self { alternatives: both.collect() }
    }

    /// Whether an event matches; check events found by the index, because keys may collide.
    #[must_use]
    pub fn has(&self, event: &RecordedEvent<'_>) -> bool {
        if self.alternatives.len() <= COMPARED_MAX {
            return self.alternatives.iter().any(|parts| parts.iter().all(|part| part.has(event)));
        }
        let tags = event.tags().map(|(name, value)| FilterPart::Tag(name.to_owned(), value.to_vec()));
        let others = [FilterPart::Aggregate(event.aggregate, event.id.to_vec()), FilterPart::Type(event.event)];
        self.has_alternative_after(&mut Vec::new(), &sorted_parts(tags.chain(others).collect()))
    }

    /// Relies on alternatives with the same first parts being adjacent.
    fn has_alternative_after(&self, first: &mut Vec<FilterPart>, parts: &[FilterPart]) -> bool {
        let mut nearest = self.alternatives.range::<[FilterPart], _>((Bound::Included(&first[..]), Bound::Unbounded));
        match nearest.next() {
            Some(found) if found == first => true,
            Some(found) if found.starts_with(first) => parts.iter().enumerate().any(|(at, part)| {
                first.push(part.clone());
                let has = self.has_alternative_after(first, &parts[at + 1..]);
                first.pop();
                has
            }),
            _ => false,
        }
    }

    pub(crate) const fn alternatives(&self) -> &BTreeSet<Vec<FilterPart>> {
        &self.alternatives
    }

    pub(crate) fn encode(&self, into: &mut Vec<u8>) -> Result<(), String> {
        let most = self.alternatives.iter().map(Vec::len).max().unwrap_or(0).max(self.alternatives.len());
        if most > PARTS_MAX {
            return Err(format!("a filter has at most {PARTS_MAX} alternatives of as many parts, and this one {most}"));
        }
        into.push(self.alternatives.len() as u8);
        for parts in &self.alternatives {
            into.push(parts.len() as u8);
            parts.iter().for_each(|part| part.encode(into));
        }
        Ok(())
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, FieldError> {
        let mut fields = FieldReader::new(bytes);
        let mut alternatives = BTreeSet::new();
        for _ in 0..fields.u8("the alternatives of a filter")? {
            let mut parts = Vec::new();
            for _ in 0..fields.u8("the parts of a filter")? {
                parts.push(FilterPart::decode(&mut fields)?);
            }
            alternatives.insert(sorted_parts(parts));
        }
        match fields.rest() {
            [] => Ok(Self { alternatives }),
            _ => Err(FieldError::Value { what: "what stands behind a filter" }),
        }
    }
}

fn sorted_parts(mut parts: Vec<FilterPart>) -> Vec<FilterPart> {
    parts.sort_unstable();
    parts.dedup();
    parts
}

pub(crate) fn cut_tag<'a>(name: &'a str, value: &'a [u8]) -> (&'a str, &'a [u8]) {
    let most = usize::from(u8::MAX);
    (&name[..name.floor_char_boundary(most)], &value[..value.len().min(most)])
}

impl FilterPart {
    fn has(&self, event: &RecordedEvent<'_>) -> bool {
        match self {
            Self::Aggregate(aggregate, id) => event.aggregate == *aggregate && *event.id == **id,
            Self::Tag(name, value) => event.tags().any(|tag| tag == (&**name, &**value)),
            Self::Type(key) => event.event == *key,
        }
    }

    fn encode(&self, into: &mut Vec<u8>) {
        let put = |bytes: &[u8], into: &mut Vec<u8>| {
            into.push(bytes.len() as u8);
            into.extend_from_slice(bytes);
        };
        match self {
            Self::Aggregate(TypeKey(key), id) => {
                into.push(0);
                into.extend_from_slice(&key.to_le_bytes());
                put(id, into);
            }
            Self::Tag(name, value) => {
                into.push(1);
                put(name.as_bytes(), into);
                put(value, into);
            }
            Self::Type(TypeKey(key)) => {
                into.push(2);
                into.extend_from_slice(&key.to_le_bytes());
            }
        }
    }

    fn decode(fields: &mut FieldReader<'_>) -> Result<Self, FieldError> {
        let bytes = |fields: &mut FieldReader<'_>, what| {
            let length = fields.u8(what)?;
            fields.bytes(length.into(), what).map(<[u8]>::to_vec)
        };
        Ok(match fields.u8("a part of a filter")? {
            0 => {
                let aggregate = TypeKey(fields.u32("an aggregate's type")?);
                Self::Aggregate(aggregate, bytes(fields, "an aggregate's identifier")?)
            }
            1 => {
                let name = String::from_utf8(bytes(fields, "a tag's name")?);
                let name = name.map_err(|_| FieldError::Value { what: "a tag's name" })?;
                Self::Tag(name, bytes(fields, "a tag's value")?)
            }
            2 => Self::Type(TypeKey(fields.u32("a type of events")?)),
            _ => return Err(FieldError::Value { what: "the kind of a filter's part" }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::{EventHead, RecordedEvents, write_count, write_event, write_head};

    fn filters() -> [EventFilter; 5] {
        let tag = |name, value| EventFilter::tag(name, value);
        let aggregate = EventFilter::of_aggregate(TypeKey::of("b"), b"id");
        [
            tag("seat", "17"),
            tag("seat", "17").and(tag("row", "2")),
            tag("seat", "18").or(aggregate.clone()),
            tag("seat", "18").or(tag("row", "2")).and(aggregate),
            EventFilter::of_type(TypeKey::of("a")).and(tag("row", "3")),
        ]
    }

    #[test]
    fn any_alternative_matches() {
        let mut bytes = Vec::new();
        write_head(&mut bytes, None, b"");
        let tags = b"\x04seat\x0217\x03row\x012";
        let head = EventHead { event: TypeKey::of("a"), version: 1, aggregate: TypeKey::of("b"), id: b"id", tags };
        write_event(&mut bytes, &head, |_| Ok::<_, ()>(())).unwrap();
        write_count(&mut bytes, 1);
        let event = RecordedEvents::read(1, &bytes).unwrap().next_event().unwrap().unwrap();
        let expected = [true, true, true, true, false];
        assert_eq!(filters().map(|filter| filter.has(&event)), expected);
        let with_others =
            |filter| (0..2_000).map(|seat| EventFilter::tag("other", seat.to_string())).fold(filter, EventFilter::or);
        assert_eq!(filters().map(|filter| with_others(filter).has(&event)), expected);
        assert!(!EventFilter::of_aggregate(TypeKey::of("b"), [0; 65]).has(&event));
        let long = "x".repeat(300);
        assert_eq!(EventFilter::tag(&long, &long), EventFilter::tag(&long[..255], &long[..255]));
    }

    #[test]
    fn filter_round_trips() {
        for filter in filters() {
            let mut bytes = Vec::new();
            filter.encode(&mut bytes).unwrap();
            assert_eq!(EventFilter::decode(&bytes), Ok(filter));
            (0..bytes.len()).for_each(|cut| assert!(EventFilter::decode(&bytes[..cut]).is_err(), "cut at {cut}"));
            bytes.push(0);
            assert!(EventFilter::decode(&bytes).is_err());
        }
        let many = (0..256).map(|index: u32| EventFilter::tag("n", index.to_string()));
        let many = many.reduce(EventFilter::or).unwrap();
        assert!(many.encode(&mut Vec::new()).unwrap_err().contains("256"));
    }
}
