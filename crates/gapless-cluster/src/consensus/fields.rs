//! Little-endian fields on and off bytes, for the codecs of this module.

use super::types::{Batch, LogPosition, MEMBERS_MAX, MemberId, NUMBER_MAX};

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

    pub(crate) fn position(&mut self) -> Result<LogPosition, FieldError> {
        let index = self.number("index of a log position")?;
        let term = self.number("term of a log position")?;
        let sequence = self.number("sequence of a log position")?;
        Ok(LogPosition { index, term, sequence, hash: self.u64()? })
    }

    /// A number of members.
    pub(crate) fn count(&mut self, name: &'static str) -> Result<usize, FieldError> {
        let count = usize::from(self.u8()?);
        if count > MEMBERS_MAX { Err(FieldError::Value(name)) } else { Ok(count) }
    }

    pub(crate) fn list(&mut self, name: &'static str) -> Result<Vec<MemberId>, FieldError> {
        (0..self.count(name)?).map(|_| self.member(name)).collect()
    }

    pub(crate) const fn end(&self) -> Result<(), FieldError> {
        if self.0.is_empty() { Ok(()) } else { Err(FieldError::Value("bytes behind the end")) }
    }
}

pub(crate) fn put_u64(bytes: &mut Vec<u8>, value: u64) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_position(bytes: &mut Vec<u8>, position: &LogPosition) {
    for value in [position.index, position.term, position.sequence, position.hash] {
        put_u64(bytes, value);
    }
}

pub(crate) fn put_list(bytes: &mut Vec<u8>, list: &[MemberId]) {
    debug_assert!(list.len() <= MEMBERS_MAX, "members are checked before they are encoded");
    bytes.push(list.len() as u8);
    list.iter().for_each(|member| put_u64(bytes, member.get()));
}

/// A list with its number: of each member what it has acknowledged.
pub(super) fn put_acknowledged<const N: usize>(bytes: &mut Vec<u8>, list: impl ExactSizeIterator<Item = [u64; N]>) {
    assert!(list.len() <= MEMBERS_MAX, "there are no more members");
    bytes.push(list.len() as u8);
    list.flatten().for_each(|number| put_u64(bytes, number));
}
