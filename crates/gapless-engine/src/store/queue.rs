//! [`QueueCollection`]: a queue whose objects never change.

use super::changes::{self, BEGIN, ChangeError, ChangesReader, POP, PUSH, put_varint};
use super::collection::{Collection, CollectionIdentity};
use super::error::StoreError;
use super::hash::{content_hash, contribution, mix};
use super::object::StoreObject;
use super::table::read_object;
use super::tracker::{StoreUsage, Touch, TouchKind, Tracker, offset};
use std::collections::VecDeque;

struct QueueItem<V> {
    object: V,
    content_hash: u64,
    length: u32,
}

pub(super) struct QueueCollection<V> {
    identity: CollectionIdentity,
    seed: u64,
    items: VecDeque<QueueItem<V>>,
    /// Items are numbered from 0 in the order of pushes.
    head: u64,
    popped: Vec<QueueItem<V>>,
    bytes: u64,
    frozen_next: u64,
    /// A pop writes its item first; it is always the next one.
    frozen_end: u64,
}

impl<V: StoreObject> QueueCollection<V> {
    pub(super) fn new(identity: CollectionIdentity) -> Self {
        let seed = identity.seed();
        Self {
            identity,
            seed,
            items: VecDeque::new(),
            head: 0,
            popped: Vec::new(),
            bytes: 0,
            frozen_next: 0,
            frozen_end: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn get(&self, number: usize) -> Option<&V> {
        self.items.get(number).map(|item| &item.object)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &V> {
        self.items.iter().map(|item| &item.object)
    }

    fn tail(&self) -> u64 {
        self.head + self.items.len() as u64
    }

    /// 0 for an unused queue.
    fn ends(&self) -> u64 {
        if self.tail() == 0 { 0 } else { contribution(mix(self.seed ^ self.head), !self.tail()) }
    }

    fn item_term(&self, number: u64, item: &QueueItem<V>) -> u64 {
        contribution(mix(self.seed.wrapping_add(number)), item.content_hash)
    }

    #[inline]
    fn with_ends<T>(&mut self, tracker: &mut Tracker, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.ends();
        let result = change(self);
        tracker.hash = tracker.hash.wrapping_sub(before).wrapping_add(self.ends());
        result
    }

    fn count(&mut self, number: u64, item: &QueueItem<V>, tracker: &mut Tracker) {
        tracker.hash = tracker.hash.wrapping_add(self.item_term(number, item));
        tracker.usage.objects += 1;
        tracker.usage.bytes += u64::from(item.length);
        self.bytes += u64::from(item.length);
    }

    fn uncount(&mut self, number: u64, item: &QueueItem<V>, tracker: &mut Tracker) {
        tracker.hash = tracker.hash.wrapping_sub(self.item_term(number, item));
        tracker.usage.objects -= 1;
        tracker.usage.bytes -= u64::from(item.length);
        self.bytes -= u64::from(item.length);
    }

    /// Encodes at once, because a queued item never changes.
    pub(super) fn push(&mut self, object: V, tracker: &mut Tracker) -> Result<(), StoreError> {
        let at = tracker.before.len();
        let number = self.tail();
        let encoded = object.encode(&mut tracker.before);
        let length = tracker.before.len() - at;
        let checked = encoded
            .map_err(|source| StoreError::Object {
                collection: self.identity.name.clone(),
                key: format!("item {number}"),
                source,
            })
            .and_then(|()| tracker.limits.check_object(&self.identity.name, length));
        if let Err(error) = checked {
            tracker.before.truncate(at);
            return Err(error);
        }
        let item = QueueItem { object, content_hash: content_hash(&tracker.before[at..]), length: length as u32 };
        tracker.touches.push(Touch {
            place: number,
            hash_before: 0,
            before_at: offset(at),
            before_length: length as u32,
            collection: self.identity.position,
            kind: TouchKind::Pushed,
            was_counted: false,
        });
        self.count(number, &item, tracker);
        self.with_ends(tracker, |queue| queue.items.push_back(item));
        Ok(())
    }

    pub(super) fn pop(&mut self, tracker: &mut Tracker) -> Option<&V> {
        let item = self.with_ends(tracker, |queue| {
            let item = queue.items.pop_front()?;
            queue.head += 1;
            Some(item)
        })?;
        let number = self.head - 1;
        if (self.frozen_next..self.frozen_end).contains(&number) {
            write_push(&self.identity, &item.object, tracker.preserved.piece());
            self.frozen_next = number + 1;
        }
        self.uncount(number, &item, tracker);
        tracker.has_undo_memory = true;
        tracker.touches.push(Touch {
            place: number,
            hash_before: 0,
            before_at: 0,
            before_length: 0,
            collection: self.identity.position,
            kind: TouchKind::Popped,
            was_counted: true,
        });
        self.popped.push(item);
        self.popped.last().map(|item| &item.object)
    }
}

fn write_push<V: StoreObject>(identity: &CollectionIdentity, object: &V, out: &mut Vec<u8>) {
    changes::begin(out, PUSH, identity.id);
    let mut bytes = Vec::new();
    object.encode(&mut bytes).expect("an object that was committed can be encoded");
    changes::put_object(out, V::VERSION, &bytes);
}

impl<V: StoreObject> Collection for QueueCollection<V> {
    fn identity(&self) -> &CollectionIdentity {
        &self.identity
    }

    fn usage(&self) -> StoreUsage {
        let memory_bytes = (self.items.capacity() * size_of::<QueueItem<V>>()) as u64;
        StoreUsage { objects: self.items.len() as u64, bytes: self.bytes, memory_bytes }
    }

    fn recomputed_hash(&self) -> u64 {
        let mut bytes = Vec::new();
        self.items.iter().zip(self.head..).fold(self.ends(), |hash, (item, number)| {
            bytes.clear();
            item.object.encode(&mut bytes).expect("an object that was committed can be encoded");
            hash.wrapping_add(contribution(mix(self.seed.wrapping_add(number)), content_hash(&bytes)))
        })
    }

    fn finish(&mut self, touch: &Touch, tracker: &mut Tracker, out: &mut Vec<u8>) -> Result<(), StoreError> {
        if touch.kind == TouchKind::Popped {
            changes::begin(out, POP, self.identity.id);
            return Ok(());
        }
        changes::begin(out, PUSH, self.identity.id);
        changes::put_object(out, V::VERSION, tracker.kept(touch));
        Ok(())
    }

    fn free_undo_memory(&mut self, _: &Touch) {
        self.popped.clear();
    }

    fn undo(&mut self, touch: &Touch, tracker: &mut Tracker) {
        if touch.kind == TouchKind::Popped {
            let item = self.popped.pop().expect("what was popped is kept until the transaction ends");
            self.count(touch.place, &item, tracker);
            self.with_ends(tracker, |queue| {
                queue.head -= 1;
                queue.items.push_front(item);
            });
        } else {
            let item = self.with_ends(tracker, |queue| queue.items.pop_back());
            self.uncount(touch.place, &item.expect("what was pushed is there"), tracker);
        }
    }

    fn apply(
        &mut self,
        operation: u8,
        reader: &mut ChangesReader<'_>,
        tracker: &mut Tracker,
    ) -> Result<(), ChangeError> {
        let at = reader.position();
        match operation {
            PUSH => {
                let object: V = read_object(reader, tracker, &self.identity)?;
                self.push(object, tracker).map_err(|error| ChangeError::new(at, error.to_string()))
            }
            POP if self.pop(tracker).is_some() => Ok(()),
            POP => Err(ChangeError::new(at, "there is nothing that could be popped")),
            BEGIN => {
                let head = reader.varint("the number of the first item")?;
                // Leaves room for more pushes than any stream will have.
                if self.tail() != 0 || head > u64::MAX / 2 {
                    return Err(ChangeError::new(at, "a queue that was used cannot begin elsewhere"));
                }
                self.with_ends(tracker, |queue| queue.head = head);
                Ok(())
            }
            _ => Err(ChangeError::new(at, format!("operation {operation} is none of a queue's"))),
        }
    }

    fn freeze(&mut self, out: &mut Vec<u8>) {
        (self.frozen_next, self.frozen_end) = (self.head, self.tail());
        if self.head != 0 {
            changes::begin(out, BEGIN, self.identity.id);
            put_varint(out, self.head);
        }
    }

    fn write_frozen(&mut self, _: &mut Tracker, out: &mut Vec<u8>, length_max: usize) -> bool {
        while self.frozen_next < self.frozen_end && out.len() < length_max {
            let number = self.frozen_next - self.head;
            write_push(&self.identity, &self.items[number as usize].object, out);
            self.frozen_next += 1;
        }
        self.frozen_next == self.frozen_end
    }

    fn thaw(&mut self) {
        (self.frozen_next, self.frozen_end) = (0, 0);
    }

    fn clear(&mut self) {
        *self = Self::new(self.identity.clone());
    }
}
