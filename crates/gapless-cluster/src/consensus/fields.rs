//! Little-endian fields on and off bytes, for the codecs of this module.

use super::details::{put_details, take_details};
use super::types::{Batch, MEMBERS_MAX, MemberId, Members, NUMBER_MAX, Place};

/// The leader completes the change of these members by itself.
const AUTO_LEAVE_FLAG: u8 = 1;
/// The highest number ever used, and details, follow.
const MORE_FLAG: u8 = 2;

/// What made bytes unreadable; the codecs give it their own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldError {
    /// The bytes end too early.
    Short,
    /// A field has a value that it cannot have.
    Value(&'static str),
}

/// Takes fields off the front of bytes.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], FieldError> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(FieldError::Short)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FieldError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(FieldError::Short)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FieldError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, FieldError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FieldError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FieldError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// An index, a term or a sequence: at most [`NUMBER_MAX`].
    pub(crate) fn number(&mut self, name: &'static str) -> Result<u64, FieldError> {
        let number = self.u64()?;
        if number > NUMBER_MAX { Err(FieldError::Value(name)) } else { Ok(number) }
    }

    pub(crate) fn member(&mut self, name: &'static str) -> Result<MemberId, FieldError> {
        MemberId::new(self.u64()?).ok_or(FieldError::Value(name))
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, FieldError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(FieldError::Value(name)),
        }
    }

    pub(crate) fn batch(&mut self) -> Result<Batch, FieldError> {
        Batch::from_bytes(self.bytes(Batch::LENGTH)?).ok_or(FieldError::Value("batch"))
    }

    pub(crate) fn place(&mut self) -> Result<Place, FieldError> {
        let index = self.number("index of a place")?;
        let term = self.number("term of a place")?;
        let sequence = self.number("sequence of a place")?;
        Ok(Place { index, term, sequence, hash: self.u64()? })
    }

    /// A number of members.
    pub(crate) fn count(&mut self, name: &'static str) -> Result<usize, FieldError> {
        let count = usize::from(self.u8()?);
        if count > MEMBERS_MAX { Err(FieldError::Value(name)) } else { Ok(count) }
    }

    pub(crate) fn list(&mut self, name: &'static str) -> Result<Vec<MemberId>, FieldError> {
        (0..self.count(name)?).map(|_| self.member(name)).collect()
    }

    /// A list in order, so that equal members have equal bytes.
    fn ordered(&mut self, name: &'static str) -> Result<Vec<MemberId>, FieldError> {
        let list = self.list(name)?;
        if list.is_sorted() { Ok(list) } else { Err(FieldError::Value(name)) }
    }

    /// Members that [`Members::check`] finds right, or none at all.
    pub(crate) fn members(&mut self) -> Result<Members, FieldError> {
        let mut members = Members {
            voters: self.ordered("voters")?,
            voters_outgoing: self.ordered("outgoing voters")?,
            learners: self.ordered("learners")?,
            learners_next: self.ordered("next learners")?,
            ..Members::default()
        };
        let flags = self.u8()?;
        if flags & !(AUTO_LEAVE_FLAG | MORE_FLAG) != 0 {
            return Err(FieldError::Value("flags of members"));
        }
        members.auto_leave = flags & AUTO_LEAVE_FLAG != 0;
        members.witnesses = self.ordered("witnesses")?;
        if flags & MORE_FLAG != 0 {
            members.numbers_used = self.number("highest number of a member")?;
            members.details = take_details(self)?;
            if members.numbers_used == 0 && members.details.is_empty() {
                return Err(FieldError::Value("details of members"));
            }
        }
        if members != Members::default() && members.check().is_err() {
            return Err(FieldError::Value("members"));
        }
        Ok(members)
    }

    pub(crate) const fn end(&self) -> Result<(), FieldError> {
        if self.0.is_empty() { Ok(()) } else { Err(FieldError::Value("bytes behind the end")) }
    }
}

pub(crate) fn put_u64(bytes: &mut Vec<u8>, value: u64) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_place(bytes: &mut Vec<u8>, place: &Place) {
    for value in [place.index, place.term, place.sequence, place.hash] {
        put_u64(bytes, value);
    }
}

pub(crate) fn put_list(bytes: &mut Vec<u8>, list: &[MemberId]) {
    debug_assert!(list.len() <= MEMBERS_MAX, "members are checked before they are encoded");
    bytes.push(list.len() as u8);
    list.iter().for_each(|member| put_u64(bytes, member.get()));
}

pub(crate) fn put_members(bytes: &mut Vec<u8>, members: &Members) {
    put_list(bytes, &members.voters);
    put_list(bytes, &members.voters_outgoing);
    put_list(bytes, &members.learners);
    put_list(bytes, &members.learners_next);
    let has_more = members.numbers_used != 0 || !members.details.is_empty();
    bytes.push(if members.auto_leave { AUTO_LEAVE_FLAG } else { 0 } | if has_more { MORE_FLAG } else { 0 });
    put_list(bytes, &members.witnesses);
    if has_more {
        put_u64(bytes, members.numbers_used);
        put_details(bytes, &members.details);
    }
}
