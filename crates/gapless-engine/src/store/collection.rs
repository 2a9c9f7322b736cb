//! `Collection`: the store's view of a collection, without its types.

use super::changes::{ChangeError, ChangesReader};
use super::error::StoreError;
use super::hash::mix;
use super::tracker::{StoreUsage, Touch, Tracker};
use std::any::Any;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CollectionIdentity {
    pub id: u16,
    pub position: u16,
    pub name: String,
    pub kind: CollectionKind,
    pub key_kind: u8,
    pub object_type: u64,
    pub version: u16,
}

impl CollectionIdentity {
    /// Separates the hash terms of collections.
    pub(super) const fn seed(&self) -> u64 {
        mix((self.id as u64) << 8 | self.kind as u64)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum CollectionKind {
    Table = 1,
    Queue = 2,
    Counter = 3,
}

pub(super) trait Collection: Any + Send {
    fn identity(&self) -> &CollectionIdentity;
    fn usage(&self) -> StoreUsage;
    fn recomputed_hash(&self) -> u64;

    fn finish(&mut self, touch: &Touch, tracker: &mut Tracker, out: &mut Vec<u8>) -> Result<(), StoreError>;
    fn free_undo_memory(&mut self, touch: &Touch);
    /// Called in reverse order.
    fn undo(&mut self, touch: &Touch, tracker: &mut Tracker);
    fn apply(
        &mut self,
        operation: u8,
        reader: &mut ChangesReader<'_>,
        tracker: &mut Tracker,
    ) -> Result<(), ChangeError>;

    fn freeze(&mut self, out: &mut Vec<u8>);
    /// Writes objects that the snapshot lacks, until `out` has `length_max` bytes or enough slots were scanned; returns
    /// whether all are written.
    fn write_frozen(&mut self, tracker: &mut Tracker, out: &mut Vec<u8>, length_max: usize) -> bool;
    fn thaw(&mut self);
    fn clear(&mut self);
}
