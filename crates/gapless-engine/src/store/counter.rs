//! `CounterCollection`: the collection that holds one number.

use super::changes::{self, ADD, ChangeError, ChangesReader, put_varint, unzigzag, zigzag};
use super::collection::{Collection, CollectionIdentity};
use super::error::StoreError;
use super::hash::contribution;
use super::tracker::{StoreUsage, Touch, TouchKind, Tracker};

pub(super) struct CounterCollection {
    identity: CollectionIdentity,
    value: i64,
    transaction: u64,
}

impl CounterCollection {
    pub(super) const fn new(identity: CollectionIdentity) -> Self {
        Self { identity, value: 0, transaction: 0 }
    }

    pub(super) const fn value(&self) -> i64 {
        self.value
    }

    fn term(&self) -> u64 {
        if self.value == 0 { 0 } else { contribution(self.identity.seed(), self.value as u64) }
    }

    pub(super) fn set(&mut self, value: i64, tracker: &mut Tracker) {
        if self.transaction != tracker.transaction {
            self.transaction = tracker.transaction;
            tracker.touches.push(Touch {
                place: 0,
                hash_before: self.value as u64,
                before_at: 0,
                before_length: 0,
                collection: self.identity.position,
                kind: TouchKind::Added,
                was_counted: true,
            });
        }
        tracker.hash = tracker.hash.wrapping_sub(self.term());
        self.value = value;
        tracker.hash = tracker.hash.wrapping_add(self.term());
    }
}

impl Collection for CounterCollection {
    fn identity(&self) -> &CollectionIdentity {
        &self.identity
    }

    fn usage(&self) -> StoreUsage {
        StoreUsage { memory_bytes: size_of::<Self>() as u64, ..StoreUsage::default() }
    }

    fn recomputed_hash(&self) -> u64 {
        self.term()
    }

    fn finish(&mut self, touch: &Touch, _: &mut Tracker, out: &mut Vec<u8>) -> Result<(), StoreError> {
        let added = self.value.wrapping_sub(touch.hash_before as i64);
        if added != 0 {
            changes::begin(out, ADD, self.identity.id);
            put_varint(out, zigzag(added));
        }
        Ok(())
    }

    fn free_undo_memory(&mut self, _: &Touch) {}

    fn undo(&mut self, touch: &Touch, tracker: &mut Tracker) {
        self.set(touch.hash_before as i64, tracker);
    }

    fn apply(
        &mut self,
        operation: u8,
        reader: &mut ChangesReader<'_>,
        tracker: &mut Tracker,
    ) -> Result<(), ChangeError> {
        let at = reader.position();
        if operation != ADD {
            return Err(ChangeError::new(at, format!("operation {operation} is none of a counter's")));
        }
        let added = unzigzag(reader.varint("what is added")?);
        self.set(self.value.wrapping_add(added), tracker);
        Ok(())
    }

    fn freeze(&mut self, out: &mut Vec<u8>) {
        if self.value != 0 {
            changes::begin(out, ADD, self.identity.id);
            put_varint(out, zigzag(self.value));
        }
    }

    fn write_frozen(&mut self, _: &mut Tracker, _: &mut Vec<u8>, _: usize) -> bool {
        true
    }

    fn thaw(&mut self) {}

    fn clear(&mut self) {
        self.value = 0;
    }
}
