//! What the store asks of each of its collections, whatever is in it.

use super::changes::{Flaw, Reader};
use super::error::StoreError;
use super::hash::mix;
use super::tracker::{Touch, Tracker, Usage};
use std::any::Any;

/// What a collection is, as snapshots say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// Its number in changes and snapshots.
    pub id: u16,
    /// Its place among the collections of this store.
    pub position: u16,
    pub name: String,
    pub kind: Kind,
    pub key_kind: u8,
    pub object_type: u64,
    pub version: u16,
}

impl Identity {
    /// What sets this collection's terms of the hash apart.
    pub(super) const fn seed(&self) -> u64 {
        mix((self.id as u64) << 8 | self.kind as u64)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Table = 1,
    Queue = 2,
    Counter = 3,
}

pub(super) trait Collection: Any + Send {
    fn identity(&self) -> &Identity;
    fn usage(&self) -> Usage;
    /// Recomputes its part of the state's hash from the objects.
    fn recomputed_hash(&self) -> u64;

    /// Writes what has become of a touched object, and takes it into the hash.
    fn finish(&mut self, touch: &Touch, tracker: &mut Tracker, out: &mut Vec<u8>) -> Result<(), StoreError>;
    /// Frees what only an undo would have needed.
    fn settle(&mut self, touch: &Touch);
    /// Makes it what it was; called in the reverse order of the touches.
    fn undo(&mut self, touch: &Touch, tracker: &mut Tracker);
    /// Does an operation from elsewhere, touches and hash included.
    fn apply(&mut self, operation: u8, reader: &mut Reader<'_>, tracker: &mut Tracker) -> Result<(), Flaw>;

    /// A snapshot begins here; what is not an object goes to `out`.
    fn freeze(&mut self, out: &mut Vec<u8>);
    /// Writes what the snapshot lacks, until `out` has `length_max` bytes or enough was looked at; whether that was all.
    fn write_frozen(&mut self, tracker: &mut Tracker, out: &mut Vec<u8>, length_max: usize) -> bool;
    /// The snapshot is done or given up.
    fn thaw(&mut self);
    /// Removes everything.
    fn clear(&mut self);
}
