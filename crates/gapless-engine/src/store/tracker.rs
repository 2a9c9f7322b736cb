//! What a transaction has touched so far, and what it takes to finish or undo it.

use super::error::StoreError;
use super::object::StoreObject;
use std::collections::VecDeque;

/// What a store may hold; a transaction that would pass one of these fails as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Objects in all collections; at most 2^31.
    pub objects_max: u64,
    /// Bytes of all objects' encodings.
    pub bytes_max: u64,
    /// Bytes of one object's encoding; at most 32 MiB.
    pub object_length_max: u32,
    /// Bytes of the changes of one transaction.
    pub changes_length_max: u32,
}

impl Default for Limits {
    /// 100 million objects, 64 GiB, 1 MiB an object, 16 MiB a transaction.
    fn default() -> Self {
        Self { objects_max: 100_000_000, bytes_max: 64 << 30, object_length_max: 1 << 20, changes_length_max: 16 << 20 }
    }
}

impl Limits {
    /// Without what could not be kept to.
    pub(super) fn possible(self) -> Self {
        Self {
            objects_max: self.objects_max.min(1 << 31),
            object_length_max: self.object_length_max.min(32 << 20),
            ..self
        }
    }

    pub(super) fn check_object(&self, name: &str, length: usize) -> Result<(), StoreError> {
        if length <= self.object_length_max as usize {
            return Ok(());
        }
        Err(beyond(format!("the length of an object of collection {name}"), self.object_length_max, length))
    }

    #[inline]
    pub(super) fn check_totals(&self, usage: &Usage) -> Result<(), StoreError> {
        if usage.objects > self.objects_max {
            return Err(beyond("the number of objects".to_owned(), self.objects_max, usage.objects as usize));
        }
        if usage.bytes > self.bytes_max {
            return Err(beyond("the bytes of all objects".to_owned(), self.bytes_max, usage.bytes as usize));
        }
        Ok(())
    }
}

#[inline]
pub(super) fn check_changes(length: usize, length_max: usize) -> Result<(), StoreError> {
    if length <= length_max {
        return Ok(());
    }
    Err(beyond("the length of a transaction's changes".to_owned(), length_max as u64, length))
}

#[cold]
fn beyond(what: String, limit: impl Into<u64>, found: usize) -> StoreError {
    StoreError::Limit { what, limit: limit.into(), found: found as u64 }
}

/// What a collection or a whole store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Objects.
    pub objects: u64,
    /// Bytes of their encodings.
    pub bytes: u64,
    /// Bytes of memory that they take, places for more and the index included: an estimate, without what objects
    /// themselves keep elsewhere.
    pub memory_bytes: u64,
}

/// What happened first to an object in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happened {
    Changed,
    Inserted,
    Removed,
    Pushed,
    Popped,
    Added,
}

/// One thing that a transaction has touched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub place: u64,
    /// The content hash before; the value of a counter.
    pub hash_before: u64,
    /// Where the encoding from before stands in [`Tracker::before`].
    pub before_at: u32,
    pub before_length: u32,
    pub collection: u16,
    pub happened: Happened,
    /// Whether the state's hash held the object before.
    pub was_counted: bool,
}

/// A piece of a snapshot: whole operations.
const PIECE_LENGTH: usize = 1 << 12;

/// What was changed while a snapshot is taken, as it was before.
#[derive(Default)]
pub(super) struct Preserved {
    /// A snapshot is under way.
    pub is_freezing: bool,
    /// Its number; objects that it has, or that are newer, carry it.
    pub epoch: u32,
    /// Pieces of about [`PIECE_LENGTH`] each.
    pub pieces: VecDeque<Vec<u8>>,
}

impl Preserved {
    /// Where to append the next operation.
    pub(super) fn piece(&mut self) -> &mut Vec<u8> {
        if self.pieces.back().is_none_or(|piece| piece.len() >= PIECE_LENGTH) {
            self.pieces.push_back(Vec::with_capacity(PIECE_LENGTH + 1024));
        }
        self.pieces.back_mut().expect("one was just pushed")
    }
}

/// What all collections of a store share.
#[derive(Default)]
pub(super) struct Tracker {
    /// The number of the transaction that is open, or was last.
    pub transaction: u64,
    pub touches: Vec<Touch>,
    /// Encodings from before.
    pub before: Vec<u8>,
    pub scratch: Vec<u8>,
    /// Room for another encoding beside [`Self::scratch`].
    pub again: Vec<u8>,
    /// Something waits for the end of the transaction to be freed.
    pub is_to_settle: bool,
    /// With what the open transaction has done so far.
    pub hash: u64,
    pub usage: Usage,
    pub limits: Limits,
    pub preserved: Preserved,
}

impl Tracker {
    #[inline]
    pub(super) fn begin(&mut self) {
        self.transaction += 1;
        self.touches.clear();
        self.before.clear();
        self.is_to_settle = false;
    }

    /// Appends `object` to [`Self::before`]: (place, length).
    ///
    /// # Panics
    /// If it has no encoding: it had one when it was committed.
    #[inline]
    pub(super) fn keep<V: StoreObject>(&mut self, object: &V) -> (u32, u32) {
        let at = self.before.len();
        match object.as_encoded() {
            Some(bytes) => self.before.extend_from_slice(bytes),
            None => object.encode(&mut self.before).expect("an object that was committed can be encoded"),
        }
        (offset(at), (self.before.len() - at) as u32)
    }

    #[inline]
    pub(super) fn kept(&self, touch: &Touch) -> &[u8] {
        &self.before[touch.before_at as usize..][..touch.before_length as usize]
    }
}

/// # Panics
/// If a transaction has touched 4 GiB.
#[inline]
pub(super) fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("a transaction touches less than 4 GiB")
}
