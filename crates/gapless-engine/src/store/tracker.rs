//! `Tracker`: objects touched by the open transaction, with the data to finish or undo it.

use super::error::StoreError;
use super::object::StoreObject;
use std::collections::VecDeque;

/// Limits of a store; a transaction that would exceed one fails as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// At most 2^31.
    pub objects_max: u64,
    /// All encodings, bytes.
    pub bytes_max: u64,
    /// Bytes; at most 32 MiB.
    pub object_length_max: u32,
    /// Per transaction, bytes.
    pub changes_length_max: u32,
}

impl Default for StoreLimits {
    /// 100 million objects, 64 GiB, 1 MiB per object, 16 MiB per transaction.
    fn default() -> Self {
        Self { objects_max: 100_000_000, bytes_max: 64 << 30, object_length_max: 1 << 20, changes_length_max: 16 << 20 }
    }
}

impl StoreLimits {
    pub(super) fn clamped(self) -> Self {
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
        Err(limit_error(format!("the length of an object of collection {name}"), self.object_length_max, length))
    }

    #[inline]
    pub(super) fn check_totals(&self, usage: &StoreUsage) -> Result<(), StoreError> {
        if usage.objects > self.objects_max {
            return Err(limit_error("the number of objects".to_owned(), self.objects_max, usage.objects as usize));
        }
        if usage.bytes > self.bytes_max {
            return Err(limit_error("the bytes of all objects".to_owned(), self.bytes_max, usage.bytes as usize));
        }
        Ok(())
    }
}

#[inline]
pub(super) fn check_changes(length: usize, length_max: usize) -> Result<(), StoreError> {
    if length <= length_max {
        return Ok(());
    }
    Err(limit_error("the length of a transaction's changes".to_owned(), length_max as u64, length))
}

#[cold]
fn limit_error(what: String, limit: impl Into<u64>, found: usize) -> StoreError {
    StoreError::Limit { what, limit: limit.into(), found: found as u64 }
}

/// Usage of a collection or a whole store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreUsage {
    pub objects: u64,
    pub bytes: u64,
    /// Estimate: with spare slots and the index, without the objects' own allocations.
    pub memory_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TouchKind {
    Changed,
    Inserted,
    Removed,
    Pushed,
    Popped,
    Added,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub place: u64,
    /// The value of a counter.
    pub hash_before: u64,
    pub before_at: u32,
    pub before_length: u32,
    pub collection: u16,
    pub kind: TouchKind,
    /// The state's hash included the object before.
    pub was_counted: bool,
}

const PIECE_LENGTH: usize = 1 << 12;

#[derive(Default)]
pub(super) struct PreservedObjects {
    pub is_freezing: bool,
    /// Number of the snapshot; objects that it has, or that are newer, carry it.
    pub epoch: u32,
    pub pieces: VecDeque<Vec<u8>>,
}

impl PreservedObjects {
    pub(super) fn piece(&mut self) -> &mut Vec<u8> {
        if self.pieces.back().is_none_or(|piece| piece.len() >= PIECE_LENGTH) {
            self.pieces.push_back(Vec::with_capacity(PIECE_LENGTH + 1024));
        }
        self.pieces.back_mut().expect("one was just pushed")
    }
}

#[derive(Default)]
pub(super) struct Tracker {
    pub transaction: u64,
    pub touches: Vec<Touch>,
    pub before: Vec<u8>,
    pub scratch: Vec<u8>,
    pub second_scratch: Vec<u8>,
    pub has_undo_memory: bool,
    pub hash: u64,
    pub usage: StoreUsage,
    pub limits: StoreLimits,
    pub preserved: PreservedObjects,
}

impl Tracker {
    #[inline]
    pub(super) fn begin(&mut self) {
        self.transaction += 1;
        self.touches.clear();
        self.before.clear();
        self.has_undo_memory = false;
    }

    /// Returns (position, length) in [`Self::before`].
    ///
    /// # Panics
    /// The object has no encoding, although it had one when it was committed.
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
/// A transaction has touched 4 GiB.
#[inline]
pub(super) fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("a transaction touches less than 4 GiB")
}
