//! `Transaction`: changes to the store, applied as a whole or not at all.

use super::changes::{HEAD_LENGTH, VERSION};
use super::error::StoreError;
use super::handles::sealed::CollectionHandle;
use super::handles::{Counter, OrderedMap, Queue, TableHandle};
use super::key::StoreKey;
use super::object::StoreObject;
use super::queue::QueueCollection;
use super::table::TableCollection;
use super::tracker::check_changes;
use super::{CounterCollection, Store, of_mut};
use std::ops::{Deref, RangeBounds};

/// An open transaction. Derefs to the [`Store`], whose reads include its changes. Dropped without
/// [`Transaction::commit`], also by a panic, it rolls back.
pub struct Transaction<'a> {
    store: &'a mut Store,
    is_open: bool,
}

impl Deref for Transaction<'_> {
    type Target = Store;

    #[inline]
    fn deref(&self) -> &Store {
        self.store
    }
}

type HandleTable<H> =
    TableCollection<<H as TableHandle>::Key, <H as TableHandle>::Object, <H as CollectionHandle>::Index>;

impl<'a> Transaction<'a> {
    #[inline]
    pub(super) const fn new(store: &'a mut Store) -> Self {
        Self { store, is_open: true }
    }

    #[inline]
    fn table<H: TableHandle>(&mut self, handle: H) -> (&mut HandleTable<H>, &mut super::tracker::Tracker) {
        let Store { collections, tracker, .. } = &mut *self.store;
        (of_mut(&mut *collections[handle.position()]), tracker)
    }

    /// The first call for an object keeps its old encoding; the commit compares, so an unchanged object costs only
    /// that.
    #[inline]
    pub fn get_mut<H: TableHandle>(&mut self, handle: H, key: &H::Key) -> Option<&mut H::Object> {
        let (table, tracker) = self.table(handle);
        table.get_mut(key, tracker)
    }

    /// Returns whether an object was replaced.
    #[inline]
    pub fn insert<H: TableHandle>(&mut self, handle: H, key: H::Key, object: H::Object) -> bool {
        let (table, tracker) = self.table(handle);
        table.insert(key, object, tracker)
    }

    #[inline]
    pub fn remove<H: TableHandle>(&mut self, handle: H, key: &H::Key) -> bool {
        let (table, tracker) = self.table(handle);
        table.remove(key, tracker)
    }

    pub fn remove_range<K: StoreKey, V: StoreObject>(
        &mut self,
        handle: OrderedMap<K, V>,
        range: impl RangeBounds<K>,
    ) -> usize {
        let (table, tracker) = self.table(handle);
        let keys: Vec<K> = table.index().0.range(range).map(|(key, _)| *key).collect();
        keys.iter().filter(|key| table.remove(key, tracker)).count()
    }

    /// Pushes an object to the back of a queue.
    ///
    /// # Errors
    /// It has no encoding, or too long a one; the queue is unchanged then.
    pub fn push<V: StoreObject>(&mut self, handle: Queue<V>, object: V) -> Result<(), StoreError> {
        let Store { collections, tracker, .. } = &mut *self.store;
        of_mut::<QueueCollection<V>>(&mut *collections[handle.position()]).push(object, tracker)
    }

    /// The object lives until the transaction ends, because a rollback restores it.
    pub fn pop<V: StoreObject>(&mut self, handle: Queue<V>) -> Option<&V> {
        let Store { collections, tracker, .. } = &mut *self.store;
        of_mut::<QueueCollection<V>>(&mut *collections[handle.position()]).pop(tracker)
    }

    /// Returns the new value.
    ///
    /// # Errors
    /// The sum overflows `i64`; the counter is unchanged then.
    pub fn add(&mut self, handle: Counter, number: i64) -> Result<i64, StoreError> {
        let Store { collections, tracker, .. } = &mut *self.store;
        let counter: &mut CounterCollection = of_mut(&mut *collections[handle.position()]);
        let Some(value) = counter.value().checked_add(number) else {
            return Err(StoreError::Limit {
                what: "the distance of a counter from zero".to_owned(),
                limit: i64::MAX as u64,
                found: counter.value().unsigned_abs().saturating_add(number.unsigned_abs()),
            });
        };
        counter.set(value, tracker);
        Ok(value)
    }

    /// Appends the changes to `changes`, for [`Store::apply`].
    ///
    /// # Errors
    /// An object cannot be encoded, or a limit would be exceeded: the transaction is rolled back, and `changes` is as
    /// before.
    #[inline]
    pub fn commit(self, changes: &mut Vec<u8>) -> Result<(), StoreError> {
        let length_max = self.store.tracker.limits.changes_length_max as usize;
        self.end(changes, length_max, false)
    }

    /// Like [`Transaction::commit`], with at most `length_max` bytes of changes; appends nothing if nothing has
    /// changed.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    #[inline]
    pub fn commit_within(self, changes: &mut Vec<u8>, length_max: usize) -> Result<(), StoreError> {
        let length_max = length_max.min(self.store.tracker.limits.changes_length_max as usize);
        self.end(changes, length_max, true)
    }

    #[inline]
    fn end(mut self, changes: &mut Vec<u8>, length_max: usize, may_be_empty: bool) -> Result<(), StoreError> {
        let begin = changes.len();
        if let Err(error) = self.write(begin, changes, length_max) {
            changes.truncate(begin);
            return Err(error);
        }
        if may_be_empty && changes.len() == begin + HEAD_LENGTH {
            changes.truncate(begin);
        }
        self.is_open = false;
        self.store.end_transaction();
        Ok(())
    }

    #[inline]
    fn write(&mut self, begin: usize, changes: &mut Vec<u8>, length_max: usize) -> Result<(), StoreError> {
        let Store { collections, tracker, .. } = &mut *self.store;
        changes.push(VERSION);
        changes.extend_from_slice(&[0; 4]);
        let mut operations: u32 = 0;
        for number in 0..tracker.touches.len() {
            let touch = tracker.touches[number];
            let length = changes.len();
            collections[usize::from(touch.collection)].finish(&touch, tracker, changes)?;
            operations += u32::from(changes.len() > length);
        }
        changes[begin + 1..begin + HEAD_LENGTH].copy_from_slice(&operations.to_le_bytes());
        check_changes(changes.len() - begin, length_max)?;
        tracker.limits.check_totals(&tracker.usage)
    }

    #[inline]
    pub fn roll_back(self) {
        drop(self);
    }
}

impl Drop for Transaction<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_open {
            self.store.undo();
        }
    }
}
