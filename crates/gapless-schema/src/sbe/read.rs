//! A whole message is parsed before a handler sees it: each group and data becomes a slice with checked bounds, and
//! iterating entries later cannot fail.

use core::marker::PhantomData;

use crate::DecodeError;

/// Limit of a group whose entries take no bytes: a short payload cannot cause a long loop.
pub const EMPTY_ENTRIES_MAX: u64 = 255;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the writer's root block.
    pub block_length: u64,
    pub template_id: u64,
    pub schema_id: u64,
    /// Acting version: that of the writer.
    pub version: u64,
}

impl Header {
    /// Checks that the header is of the expected message.
    ///
    /// # Errors
    /// [`DecodeError::Schema`], [`DecodeError::Template`].
    #[inline]
    pub fn expect(&self, message: &'static str, schema_id: u16, template_id: u16) -> Result<(), DecodeError> {
        if self.schema_id == u64::from(schema_id) && self.template_id == u64::from(template_id) {
            Ok(())
        } else {
            Err(self.unexpected(message, schema_id, template_id))
        }
    }

    #[cold]
    #[inline(never)]
    fn unexpected(self, message: &'static str, schema_id: u16, template_id: u16) -> DecodeError {
        if self.schema_id == u64::from(schema_id) {
            DecodeError::Template { message, expected: template_id, found: self.template_id }
        } else {
            DecodeError::Schema { message, expected: schema_id, found: self.schema_id }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    #[inline]
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload, total: payload.len() }
    }

    #[inline]
    #[must_use]
    pub const fn position(&self) -> usize {
        self.total - self.rest.len()
    }

    /// Takes `N` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline(always)]
    pub fn chunk<const N: usize>(&mut self, field: &'static str) -> Result<&'a [u8; N], DecodeError> {
        let Some((chunk, rest)) = self.rest.split_first_chunk() else {
            return Err(self.truncated(field, N));
        };
        self.rest = rest;
        Ok(chunk)
    }

    /// Takes `length` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    #[inline(always)]
    pub fn slice(&mut self, length: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let Some((slice, rest)) = self.rest.split_at_checked(length) else {
            return Err(self.truncated(field, length));
        };
        self.rest = rest;
        Ok(slice)
    }

    /// The block's known part as an array of `N` bytes, and all of it as written. `needed` is the length of the fields
    /// of `version`, at least `N`.
    ///
    /// # Errors
    /// [`DecodeError::BlockLength`], [`DecodeError::Truncated`].
    #[inline(always)]
    pub fn block<const N: usize>(
        &mut self,
        block_length: u64,
        needed: usize,
        version: u64,
        field: &'static str,
    ) -> Result<(&'a [u8; N], &'a [u8]), DecodeError> {
        if block_length < needed as u64 {
            return Err(self.short_block(block_length, needed, version, field));
        }
        let position = self.position();
        let block = self.slice(usize::try_from(block_length).unwrap_or(usize::MAX), field)?;
        match block.first_chunk() {
            Some(known) => Ok((known, block)),
            None => Err(DecodeError::truncated(field, position, N, block.len())),
        }
    }

    #[cold]
    #[inline(never)]
    const fn truncated(self, field: &'static str, needed_bytes: usize) -> DecodeError {
        DecodeError::truncated(field, self.position(), needed_bytes, self.rest.len())
    }

    #[cold]
    #[inline(never)]
    const fn short_block(
        self,
        found_bytes: u64,
        needed_bytes: usize,
        version: u64,
        field: &'static str,
    ) -> DecodeError {
        DecodeError::BlockLength { field, position: self.position(), needed_bytes, found_bytes, version }
    }
}

/// Implemented by generated decoders.
pub trait Entry<'a>: Sized {
    const NAME: &'static str;
    /// Entries hold groups or data, so that their lengths differ.
    const HAS_MEMBERS: bool;

    fn needed_length(version: u64) -> usize;

    /// Creates an entry without groups and data from its block; `None` if the block is too short.
    fn from_block(block: &'a [u8], version: u64) -> Option<Self>;

    /// Parses the entry that begins here.
    ///
    /// # Errors
    /// The fault in the entry and its place.
    fn parse(reader: &mut Reader<'a>, block_length: u64, version: u64) -> Result<Self, DecodeError>;
}

/// Copy it to iterate again.
#[derive(Debug)]
pub struct Group<'a, E> {
    bytes: &'a [u8],
    count: usize,
    block_length: usize,
    version: u64,
    entry: PhantomData<E>,
}

impl<E> Clone for Group<'_, E> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Group<'_, E> {}

impl<'a, E: Entry<'a>> Group<'a, E> {
    /// The same as for a group that an older writer omitted.
    #[inline]
    #[must_use]
    pub const fn empty() -> Self {
        Self { bytes: &[], count: 0, block_length: 0, version: 0, entry: PhantomData }
    }

    /// Parses the entries after the dimensions.
    ///
    /// # Errors
    /// The fault in an entry and its place.
    #[inline(always)]
    pub fn parse(reader: &mut Reader<'a>, block_length: u64, count: u64, version: u64) -> Result<Self, DecodeError> {
        if count == 0 {
            return Ok(Self::empty());
        }
        let needed = E::needed_length(version);
        if block_length < needed as u64 {
            return Err(reader.short_block(block_length, needed, version, E::NAME));
        }
        if block_length == 0 && count > EMPTY_ENTRIES_MAX {
            return Err(too_many::<E>(*reader, count));
        }
        let (Ok(count), Ok(stride)) = (usize::try_from(count), usize::try_from(block_length)) else {
            return Err(too_many::<E>(*reader, count));
        };
        let bytes = if E::HAS_MEMBERS {
            let start = reader.rest;
            for _ in 0..count {
                E::parse(reader, block_length, version)?;
            }
            &start[..start.len() - reader.rest.len()]
        } else {
            let Some(length) = stride.checked_mul(count) else {
                return Err(too_many::<E>(*reader, count as u64));
            };
            reader.slice(length, E::NAME)?
        };
        Ok(Self { bytes, count, block_length: stride, version, entry: PhantomData })
    }

    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cold]
#[inline(never)]
fn too_many<'a, E: Entry<'a>>(reader: Reader<'_>, found: u64) -> DecodeError {
    DecodeError::GroupLength { field: E::NAME, position: reader.position(), found }
}

impl<'a, E: Entry<'a>> Iterator for Group<'a, E> {
    type Item = E;

    #[inline(always)]
    fn next(&mut self) -> Option<E> {
        self.count = self.count.checked_sub(1)?;
        // Checked already; if a check should ever be wrong, the group ends here.
        if !E::HAS_MEMBERS {
            let (block, rest) = self.bytes.split_at_checked(self.block_length)?;
            self.bytes = rest;
            return E::from_block(block, self.version);
        }
        let mut reader = Reader::new(self.bytes);
        let entry = E::parse(&mut reader, self.block_length as u64, self.version).ok();
        self.bytes = reader.rest;
        entry
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl<'a, E: Entry<'a>> ExactSizeIterator for Group<'a, E> {}
