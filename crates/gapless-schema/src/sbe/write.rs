//! `Tail`, the unwritten part of a buffer.

use crate::EncodeError;
use crate::error::cold;

/// Groups and data take their bytes from its start.
#[derive(Debug)]
pub struct Tail<'a> {
    rest: &'a mut [u8],
    total: usize,
}

impl<'a> Tail<'a> {
    #[inline]
    #[must_use]
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        let total = buffer.len();
        Self { rest: buffer, total }
    }

    #[inline]
    #[must_use]
    pub const fn position(&self) -> usize {
        self.total - self.rest.len()
    }

    /// Leaves an empty tail.
    #[inline(always)]
    pub const fn take(&mut self) -> Self {
        core::mem::replace(self, Self { rest: &mut [], total: 0 })
    }

    /// Takes `N` bytes.
    ///
    /// # Errors
    /// [`EncodeError::Capacity`]; nothing is taken then.
    #[inline(always)]
    pub fn chunk<const N: usize>(&mut self, field: &'static str) -> Result<&'a mut [u8; N], EncodeError> {
        if self.rest.len() < N {
            return Err(EncodeError::capacity(field, self.position(), N, self.rest.len()));
        }
        match core::mem::take(&mut self.rest).split_first_chunk_mut() {
            Some((chunk, rest)) => {
                self.rest = rest;
                Ok(chunk)
            }
            None => unreachable!("the length is checked above"),
        }
    }

    /// Appends `N` bytes.
    ///
    /// # Errors
    /// [`EncodeError::Capacity`].
    #[inline]
    pub fn put<const N: usize>(&mut self, bytes: [u8; N], field: &'static str) -> Result<(), EncodeError> {
        *self.chunk(field)? = bytes;
        Ok(())
    }

    /// `length` is the encoded length field of `N` bytes.
    ///
    /// # Errors
    /// [`EncodeError::Capacity`]; nothing is written then.
    #[inline(always)]
    pub fn put_data<const N: usize>(
        &mut self,
        length: [u8; N],
        bytes: &[u8],
        field: &'static str,
    ) -> Result<(), EncodeError> {
        let needed = N + bytes.len();
        if self.rest.len() < needed {
            return Err(EncodeError::capacity(field, self.position(), needed, self.rest.len()));
        }
        let (taken, rest) = core::mem::take(&mut self.rest).split_at_mut(needed);
        self.rest = rest;
        let (head, body) = taken.split_at_mut(N);
        head.copy_from_slice(&length);
        copy(body, bytes);
        Ok(())
    }
}

/// Short texts are copied in two overlapping halves, because a call to `memcpy` takes longer.
///
/// # Panics
/// If the lengths differ.
#[inline(always)]
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    match from.len() {
        8..=16 => copy_halves::<8>(to, from),
        4..8 => copy_halves::<4>(to, from),
        _ => to.copy_from_slice(from),
    }
}

#[inline(always)]
fn copy_halves<const N: usize>(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "the lengths are the same");
    if let (Some(head), Some(end)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) {
        if let Some(to) = to.first_chunk_mut() {
            *to = *head;
        }
        if let Some(to) = to.last_chunk_mut() {
            *to = *end;
        }
    }
}

#[inline(always)]
#[must_use]
pub const fn too_late(field: &'static str) -> EncodeError {
    cold();
    EncodeError::Order { field }
}

#[inline(always)]
#[must_use]
pub const fn too_long(field: &'static str, found: usize, limit: u64) -> EncodeError {
    cold();
    EncodeError::Length { field, found, limit }
}
