//! Fields of this module's codecs; each codec words its own errors.

use super::types::{Batch, CONSENSUS_MEMBERS_MAX, LogPosition, MemberId, NUMBER_MAX};
pub(crate) use gapless_wire::fields::FieldError;
use gapless_wire::fields::{FieldReader, FieldWriter};
use std::ops::{Deref, DerefMut};

pub(crate) struct Fields<'a>(FieldReader<'a>);

impl<'a> Deref for Fields<'a> {
    type Target = FieldReader<'a>;

    fn deref(&self) -> &FieldReader<'a> {
        &self.0
    }
}

impl<'a> DerefMut for Fields<'a> {
    fn deref_mut(&mut self) -> &mut FieldReader<'a> {
        &mut self.0
    }
}

impl<'a> Fields<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(FieldReader::new(bytes))
    }

    pub(crate) fn version(&mut self, expected: u8) -> Result<(), FieldError> {
        if self.u8("version")? == expected { Ok(()) } else { Err(FieldError::Value { what: "version" }) }
    }

    /// An index, a term or a sequence: at most [`NUMBER_MAX`].
    pub(crate) fn number(&mut self, name: &'static str) -> Result<u64, FieldError> {
        let number = self.u64(name)?;
        if number > NUMBER_MAX { Err(FieldError::Value { what: name }) } else { Ok(number) }
    }

    pub(crate) fn member(&mut self, name: &'static str) -> Result<MemberId, FieldError> {
        MemberId::new(self.u64(name)?).ok_or(FieldError::Value { what: name })
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, FieldError> {
        match self.u8(name)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(FieldError::Value { what: name }),
        }
    }

    pub(crate) fn batch(&mut self) -> Result<Batch, FieldError> {
        Batch::from_bytes(self.bytes(Batch::LENGTH, "batch")?).ok_or(FieldError::Value { what: "batch" })
    }

    pub(crate) fn position(&mut self) -> Result<LogPosition, FieldError> {
        let index = self.number("index of a log position")?;
        let term = self.number("term of a log position")?;
        let sequence = self.number("sequence of a log position")?;
        Ok(LogPosition { index, term, sequence, hash: self.u64("hash of a log position")? })
    }

    pub(crate) fn count(&mut self, name: &'static str) -> Result<usize, FieldError> {
        let count = usize::from(self.u8(name)?);
        if count > CONSENSUS_MEMBERS_MAX { Err(FieldError::Value { what: name }) } else { Ok(count) }
    }

    pub(crate) fn list(&mut self, name: &'static str) -> Result<Vec<MemberId>, FieldError> {
        (0..self.count(name)?).map(|_| self.member(name)).collect()
    }

    pub(crate) fn end(&self) -> Result<(), FieldError> {
        if self.rest().is_empty() { Ok(()) } else { Err(FieldError::Value { what: "bytes behind the end" }) }
    }
}

pub(crate) fn put_u64(bytes: &mut Vec<u8>, value: u64) {
    FieldWriter::new(bytes).u64(value);
}

pub(crate) fn put_position(bytes: &mut Vec<u8>, position: &LogPosition) {
    for value in [position.index, position.term, position.sequence, position.hash] {
        put_u64(bytes, value);
    }
}

pub(crate) fn put_list(bytes: &mut Vec<u8>, list: &[MemberId]) {
    debug_assert!(list.len() <= CONSENSUS_MEMBERS_MAX, "members are checked before they are encoded");
    bytes.push(list.len() as u8);
    list.iter().for_each(|member| put_u64(bytes, member.get()));
}

pub(super) fn put_acknowledged<const N: usize>(bytes: &mut Vec<u8>, list: impl ExactSizeIterator<Item = [u64; N]>) {
    assert!(list.len() <= CONSENSUS_MEMBERS_MAX, "there are no more members");
    bytes.push(list.len() as u8);
    list.flatten().for_each(|number| put_u64(bytes, number));
}
