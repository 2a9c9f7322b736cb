//! [`TableCollection`]: maps, ordered maps and singletons. Objects have slots that never move; an index maps keys to
//! slots.

use super::changes::{self, ChangeError, ChangesReader, OperationHead, PATCH, PUT, REMOVE};
use super::collection::{Collection, CollectionIdentity};
use super::error::{ObjectError, StoreError};
use super::hash::{content_hash, contribution, differences};
use super::key::sealed::Key;
use super::object::{StoreObject, decode};
use super::tracker::{StoreUsage, Touch, TouchKind, Tracker};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

pub trait TableIndex<K>: Default + Send + 'static {
    fn find(&self, key: &K) -> Option<u32>;
    fn put(&mut self, key: K, slot: u32);
    fn take(&mut self, key: &K) -> Option<u32>;
    fn entries_max(&self) -> usize;
}

/// The iteration order must never be visible.
pub struct HashIndex<K>(FxHashMap<K, u32>);

pub struct OrderedIndex<K>(pub(super) BTreeMap<K, u32>);

impl<K> Default for HashIndex<K> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<K> Default for OrderedIndex<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Key> TableIndex<K> for HashIndex<K> {
    #[inline]
    fn find(&self, key: &K) -> Option<u32> {
        self.0.get(key).copied()
    }

    #[inline]
    fn put(&mut self, key: K, slot: u32) {
        self.0.insert(key, slot);
    }

    #[inline]
    fn take(&mut self, key: &K) -> Option<u32> {
        self.0.remove(key)
    }

    fn entries_max(&self) -> usize {
        self.0.capacity() * 8 / 7
    }
}

impl<K: Key> HashIndex<K> {
    pub(super) fn sorted_keys(&self) -> Vec<K> {
        let mut keys: Vec<K> = self.0.keys().copied().collect();
        keys.sort_unstable();
        keys
    }
}

impl<K: Key> TableIndex<K> for OrderedIndex<K> {
    #[inline]
    fn find(&self, key: &K) -> Option<u32> {
        self.0.get(key).copied()
    }

    #[inline]
    fn put(&mut self, key: K, slot: u32) {
        self.0.insert(key, slot);
    }

    #[inline]
    fn take(&mut self, key: &K) -> Option<u32> {
        self.0.remove(key)
    }

    fn entries_max(&self) -> usize {
        self.0.len() * 3 / 2
    }
}

struct TableSlot<K, V> {
    key: K,
    /// `None` in a free slot. A removed object stays until its transaction has ended.
    object: Option<V>,
    content_hash: u64,
    length: u32,
    /// Last snapshot that has this object, or for which it is too new.
    epoch: u32,
    transaction: u64,
    is_live: bool,
    /// The state's hash and usage include the object.
    is_counted: bool,
}

/// Slots per allocation.
const TOGETHER: usize = 256;
/// Slots scanned by a step of a snapshot, used or not.
const SLOTS_PER_STEP_MAX: usize = 4096;

pub(super) struct TableCollection<K, V, I> {
    identity: CollectionIdentity,
    seed: u64,
    index: I,
    slots: Vec<Vec<TableSlot<K, V>>>,
    slots_used: u32,
    free: Vec<u32>,
    objects: u64,
    bytes: u64,
    frozen: (u32, u32),
}

impl<K: Key, V: StoreObject, I: TableIndex<K>> TableCollection<K, V, I> {
    pub(super) fn new(identity: CollectionIdentity) -> Self {
        let seed = identity.seed();
        Self {
            identity,
            seed,
            index: I::default(),
            slots: Vec::new(),
            slots_used: 0,
            free: Vec::new(),
            objects: 0,
            bytes: 0,
            frozen: (0, 0),
        }
    }

    pub(super) const fn index(&self) -> &I {
        &self.index
    }

    pub(super) const fn len(&self) -> u64 {
        self.objects
    }

    #[inline(always)]
    fn slot(&self, slot: u32) -> &TableSlot<K, V> {
        &self.slots[slot as usize / TOGETHER][slot as usize % TOGETHER]
    }

    #[inline(always)]
    fn slot_mut(&mut self, slot: u32) -> &mut TableSlot<K, V> {
        &mut self.slots[slot as usize / TOGETHER][slot as usize % TOGETHER]
    }

    #[inline]
    pub(super) fn object(&self, slot: u32) -> &V {
        self.slot(slot).object.as_ref().expect("the index names slots with objects")
    }

    #[inline]
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let slot = self.index.find(key)?;
        self.slot(slot).object.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: &K, tracker: &mut Tracker) -> Option<&mut V> {
        let slot = self.index.find(key)?;
        self.touch(slot, tracker);
        self.slot_mut(slot).object.as_mut()
    }

    #[inline]
    pub(super) fn insert(&mut self, key: K, object: V, tracker: &mut Tracker) -> bool {
        if let Some(slot) = self.index.find(&key) {
            self.touch(slot, tracker);
            self.slot_mut(slot).object = Some(object);
            return true;
        }
        let (transaction, epoch) = (tracker.transaction, tracker.preserved.epoch);
        let new = TableSlot {
            key,
            object: Some(object),
            content_hash: 0,
            length: 0,
            epoch,
            transaction,
            is_live: true,
            is_counted: false,
        };
        let slot = self.occupy(new);
        self.index.put(key, slot);
        tracker.touches.push(self.new_touch(slot, TouchKind::Inserted));
        false
    }

    fn occupy(&mut self, new: TableSlot<K, V>) -> u32 {
        if let Some(slot) = self.free.pop() {
            *self.slot_mut(slot) = new;
            return slot;
        }
        let slot = self.slots_used;
        if (slot as usize).is_multiple_of(TOGETHER) {
            self.slots.push(Vec::with_capacity(TOGETHER));
        }
        self.slots.last_mut().expect("one was pushed at the first slot").push(new);
        self.slots_used = slot.checked_add(1).expect("limits are below the number of slots");
        slot
    }

    #[inline]
    pub(super) fn remove(&mut self, key: &K, tracker: &mut Tracker) -> bool {
        let Some(slot) = self.index.take(key) else { return false };
        self.preserve(slot, tracker);
        tracker.touches.push(self.new_touch(slot, TouchKind::Removed));
        tracker.has_undo_memory = true;
        self.uncount(slot, tracker);
        self.slot_mut(slot).is_live = false;
        true
    }

    #[inline]
    fn new_touch(&self, place: u32, kind: TouchKind) -> Touch {
        let slot = self.slot(place);
        Touch {
            place: u64::from(place),
            hash_before: slot.content_hash,
            before_at: 0,
            before_length: slot.length,
            collection: self.identity.position,
            kind,
            was_counted: slot.is_counted,
        }
    }

    /// Keeps the old encoding, once per transaction.
    #[inline]
    fn touch(&mut self, place: u32, tracker: &mut Tracker) {
        let slot = self.slot_mut(place);
        if slot.transaction == tracker.transaction {
            return;
        }
        slot.transaction = tracker.transaction;
        let object = slot.object.as_ref().expect("the index names slots with objects");
        let (before_at, _) = tracker.keep(object);
        self.preserve(place, tracker);
        let touch = Touch { before_at, ..self.new_touch(place, TouchKind::Changed) };
        tracker.touches.push(touch);
    }

    /// Preserves the object for a snapshot in progress that has not reached it.
    #[inline]
    fn preserve(&mut self, place: u32, tracker: &mut Tracker) {
        if tracker.preserved.is_freezing && self.slot(place).epoch != tracker.preserved.epoch {
            self.preserve_now(place, tracker);
        }
    }

    #[cold]
    fn preserve_now(&mut self, place: u32, tracker: &mut Tracker) {
        let mut scratch = std::mem::take(&mut tracker.scratch);
        let slot = &mut self.slots[place as usize / TOGETHER][place as usize % TOGETHER];
        slot.epoch = tracker.preserved.epoch;
        let object = slot.object.as_ref().expect("the index names slots with objects");
        let bytes = encoded(object, &mut scratch).expect("an object that was committed can be encoded");
        write_put::<K, V>(&self.identity, &slot.key, bytes, tracker.preserved.piece());
        tracker.scratch = scratch;
    }

    #[inline]
    fn count(&mut self, place: u32, tracker: &mut Tracker) {
        let seed = self.seed;
        let slot = self.slot_mut(place);
        slot.is_counted = true;
        tracker.hash = tracker.hash.wrapping_add(contribution(slot.key.place(seed), slot.content_hash));
        let length = u64::from(slot.length);
        tracker.usage.objects += 1;
        tracker.usage.bytes += length;
        self.objects += 1;
        self.bytes += length;
    }

    #[inline]
    fn uncount(&mut self, place: u32, tracker: &mut Tracker) {
        let seed = self.seed;
        let slot = self.slot_mut(place);
        if !slot.is_counted {
            return;
        }
        slot.is_counted = false;
        tracker.hash = tracker.hash.wrapping_sub(contribution(slot.key.place(seed), slot.content_hash));
        let length = u64::from(slot.length);
        tracker.usage.objects -= 1;
        tracker.usage.bytes -= length;
        self.objects -= 1;
        self.bytes -= length;
    }

    #[inline]
    fn recount(&mut self, place: u32, content_hash: u64, length: usize, tracker: &mut Tracker) {
        let seed = self.seed;
        let slot = self.slot_mut(place);
        if slot.is_counted && slot.length as usize == length {
            // The common case: only the hash changes.
            let at = slot.key.place(seed);
            let before = std::mem::replace(&mut slot.content_hash, content_hash);
            let change = contribution(at, content_hash).wrapping_sub(contribution(at, before));
            tracker.hash = tracker.hash.wrapping_add(change);
            return;
        }
        self.uncount(place, tracker);
        let slot = self.slot_mut(place);
        (slot.content_hash, slot.length) = (content_hash, length as u32);
        self.count(place, tracker);
    }

    /// A patch, or the whole object if that is not much longer.
    #[inline]
    fn finish_changed(&mut self, touch: &Touch, tracker: &mut Tracker, out: &mut Vec<u8>) -> Result<(), StoreError> {
        let place = touch.place as u32;
        if !self.slot(place).is_live {
            return Ok(());
        }
        let mut scratch = std::mem::take(&mut tracker.scratch);
        let slot = self.slot(place);
        let object = slot.object.as_ref().expect("a live slot has an object");
        let after = encoded(object, &mut scratch).map_err(|error| self.unencodable(place, error))?;
        let before = tracker.kept(touch);
        let patched = if before.len() == after.len() {
            write_patch::<K, V>(&self.identity, slot, before, after, out)
        } else {
            PatchOutcome::TooLong
        };
        let (length, content_hash) = match patched {
            PatchOutcome::Unchanged => {
                tracker.scratch = scratch;
                return Ok(());
            }
            PatchOutcome::Written { content_hash } => (after.len(), content_hash),
            PatchOutcome::TooLong => {
                tracker.limits.check_object(&self.identity.name, after.len())?;
                write_put::<K, V>(&self.identity, &slot.key, after, out);
                (after.len(), content_hash(after))
            }
        };
        tracker.scratch = scratch;
        self.recount(place, content_hash, length, tracker);
        Ok(())
    }

    #[inline]
    fn finish_inserted(&mut self, place: u32, tracker: &mut Tracker, out: &mut Vec<u8>) -> Result<(), StoreError> {
        if !self.slot(place).is_live {
            return Ok(());
        }
        let mut scratch = std::mem::take(&mut tracker.scratch);
        let slot = self.slot(place);
        let object = slot.object.as_ref().expect("a live slot has an object");
        let bytes = encoded(object, &mut scratch).map_err(|error| self.unencodable(place, error))?;
        tracker.limits.check_object(&self.identity.name, bytes.len())?;
        write_put::<K, V>(&self.identity, &slot.key, bytes, out);
        let (content_hash, length) = (content_hash(bytes), bytes.len());
        tracker.scratch = scratch;
        self.recount(place, content_hash, length, tracker);
        Ok(())
    }

    #[cold]
    fn unencodable(&self, place: u32, source: ObjectError) -> StoreError {
        let key = format!("{:?}", self.slot(place).key);
        StoreError::Object { collection: self.identity.name.clone(), key, source }
    }

    fn apply_put(&mut self, key: K, reader: &mut ChangesReader<'_>, tracker: &mut Tracker) -> Result<(), ChangeError> {
        let object: V = read_object(reader, tracker, &self.identity)?;
        if self.index.find(&key).is_some_and(|slot| self.slot(slot).transaction == tracker.transaction) {
            return Err(ChangeError::new(reader.position(), "the object is there twice"));
        }
        let mut scratch = std::mem::take(&mut tracker.scratch);
        let bytes =
            encoded(&object, &mut scratch).map_err(|error| ChangeError::new(reader.position(), error.to_string()))?;
        let (content_hash, length) = (content_hash(bytes), bytes.len());
        tracker.scratch = scratch;
        self.insert(key, object, tracker);
        let slot = self.index.find(&key).expect("it was just inserted");
        self.recount(slot, content_hash, length, tracker);
        Ok(())
    }

    fn apply_patch(
        &mut self,
        key: &K,
        reader: &mut ChangesReader<'_>,
        tracker: &mut Tracker,
    ) -> Result<(), ChangeError> {
        let begin = reader.position();
        let version = reader.varint_u16("the version of an object")?;
        if version > V::VERSION {
            let error = ObjectError::Version { found: version, known: V::VERSION };
            return Err(ChangeError::new(begin, error.to_string()));
        }
        let Some(place) = self.index.find(key) else {
            return Err(ChangeError::new(begin, "there is no object that could be patched"));
        };
        if self.slot(place).transaction == tracker.transaction {
            return Err(ChangeError::new(begin, "the object is there twice"));
        }
        self.touch(place, tracker);
        let touch = *tracker.touches.last().expect("it was just touched");
        let (mut patched, mut again) =
            (std::mem::take(&mut tracker.scratch), std::mem::take(&mut tracker.second_scratch));
        patched.clear();
        patched.extend_from_slice(tracker.kept(&touch));
        let result = self.patch_object(place, version, &mut patched, tracker.kept(&touch), reader, &mut again);
        (tracker.scratch, tracker.second_scratch) = (patched, again);
        let (content_hash, length) = result?;
        self.recount(place, content_hash, length, tracker);
        Ok(())
    }

    /// Returns content hash and length.
    fn patch_object(
        &mut self,
        place: u32,
        version: u16,
        bytes: &mut [u8],
        before: &[u8],
        reader: &mut ChangesReader<'_>,
        again: &mut Vec<u8>,
    ) -> Result<(u64, usize), ChangeError> {
        let at = reader.position();
        let length = reader.length("the length of a patched object")?;
        let check = u32::from_le_bytes(reader.array::<CHECK_LENGTH>("the hash of a patched object")?);
        // An older version may have had fewer fields at the end.
        if length > bytes.len() || (version == V::VERSION && length != bytes.len()) {
            return Err(ChangeError::new(at, format!("a patch of {length} bytes, the object has {}", bytes.len())));
        }
        read_ranges(reader, &mut bytes[..length])?;
        let hash_change = differences(before, bytes, |_, _| {});
        let whole = self.slot(place).content_hash.wrapping_add(hash_change);
        let of_length = if length == bytes.len() { whole } else { content_hash(&bytes[..length]) };
        if of_length as u32 != check {
            let reason = "the patched object is not the one that was patched: another state, or another layout";
            return Err(ChangeError::new(at, reason));
        }
        let object = decode::<V>(V::VERSION, bytes).map_err(|error| ChangeError::new(at, error.to_string()))?;
        if object.as_encoded().is_none() && !encoded(&object, again).is_ok_and(|again| again == bytes) {
            return Err(ChangeError::new(at, "the patched object has another encoding"));
        }
        self.slot_mut(place).object = Some(object);
        Ok((whole, bytes.len()))
    }

    fn apply_remove(&mut self, key: &K, reader: &ChangesReader<'_>, tracker: &mut Tracker) -> Result<(), ChangeError> {
        let found = self.index.find(key);
        if found.is_some_and(|slot| self.slot(slot).transaction == tracker.transaction) {
            return Err(ChangeError::new(reader.position(), "the object is there twice"));
        }
        if self.remove(key, tracker) {
            return Ok(());
        }
        Err(ChangeError::new(reader.position(), "there is no object that could be removed"))
    }
}

#[inline]
fn encoded<'a, V: StoreObject>(object: &'a V, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], ObjectError> {
    if let Some(bytes) = object.as_encoded() {
        return Ok(bytes);
    }
    scratch.clear();
    object.encode(scratch)?;
    Ok(scratch)
}

#[inline]
fn write_put<K: Key, V: StoreObject>(identity: &CollectionIdentity, key: &K, bytes: &[u8], out: &mut Vec<u8>) {
    let mut head = OperationHead::new(PUT, identity.id);
    key.write(&mut head);
    head.append_to(out);
    changes::put_object(out, V::VERSION, bytes);
}

const CHECK_LENGTH: usize = 4;

enum PatchOutcome {
    Unchanged,
    Written {
        content_hash: u64,
    },
    /// The whole object is shorter.
    TooLong,
}

#[inline]
fn write_patch<K: Key, V: StoreObject>(
    identity: &CollectionIdentity,
    slot: &TableSlot<K, V>,
    before: &[u8],
    after: &[u8],
    out: &mut Vec<u8>,
) -> PatchOutcome {
    let begin = out.len();
    let mut head = OperationHead::new(PATCH, identity.id);
    slot.key.write(&mut head);
    head.varint(u64::from(V::VERSION));
    head.varint(after.len() as u64);
    // The check is filled in after all ranges are written.
    head.bytes([0; CHECK_LENGTH]);
    head.append_to(out);
    let stretches_at = out.len();
    let mut last_end = 0;
    let hash_change = differences(before, after, |from, to| {
        changes::put_range(out, after, from, to, from - last_end);
        last_end = to;
    });
    if last_end == 0 {
        out.truncate(begin);
        return PatchOutcome::Unchanged;
    }
    if out.len() - stretches_at >= after.len() {
        out.truncate(begin);
        return PatchOutcome::TooLong;
    }
    out.push(0);
    let content_hash = slot.content_hash.wrapping_add(hash_change);
    out[stretches_at - CHECK_LENGTH..stretches_at].copy_from_slice(&(content_hash as u32).to_le_bytes());
    PatchOutcome::Written { content_hash }
}

fn read_ranges(reader: &mut ChangesReader<'_>, bytes: &mut [u8]) -> Result<(), ChangeError> {
    let mut position = 0;
    loop {
        let at = reader.position();
        let length = reader.length("the length of a stretch")?;
        if length == 0 {
            return Ok(());
        }
        let gap = reader.length("the place of a stretch")?;
        let new = reader.bytes(length, "a stretch")?;
        let rest = bytes.get_mut(position..).and_then(|rest| rest.get_mut(gap..));
        let Some(place) = rest.and_then(|rest| rest.get_mut(..length)) else {
            return Err(ChangeError::new(at, format!("a stretch of {length} bytes reaches beyond the object")));
        };
        place.copy_from_slice(new);
        position += gap + length;
    }
}

pub(super) fn read_object<V: StoreObject>(
    reader: &mut ChangesReader<'_>,
    tracker: &Tracker,
    identity: &CollectionIdentity,
) -> Result<V, ChangeError> {
    let at = reader.position();
    let version = reader.varint_u16("the version of an object")?;
    let length = reader.length("the length of an object")?;
    tracker.limits.check_object(&identity.name, length).map_err(|error| ChangeError::new(at, error.to_string()))?;
    let bytes = reader.bytes(length, "an object")?;
    decode(version, bytes).map_err(|error| ChangeError::new(at, error.to_string()))
}

impl<K: Key, V: StoreObject, I: TableIndex<K>> Collection for TableCollection<K, V, I> {
    fn identity(&self) -> &CollectionIdentity {
        &self.identity
    }

    fn usage(&self) -> StoreUsage {
        let slots = self.slots.len() * TOGETHER * size_of::<TableSlot<K, V>>();
        let entries = self.index.entries_max() * (size_of::<(K, u32)>() + 1);
        let memory_bytes = (slots + entries + self.free.capacity() * size_of::<u32>()) as u64;
        StoreUsage { objects: self.objects, bytes: self.bytes, memory_bytes }
    }

    fn recomputed_hash(&self) -> u64 {
        let mut scratch = Vec::new();
        let live = self.slots.iter().flatten().filter(|slot| slot.is_live);
        live.fold(0, |hash: u64, slot| {
            let object = slot.object.as_ref().expect("a live slot has an object");
            let bytes = encoded(object, &mut scratch).expect("an object that was committed can be encoded");
            hash.wrapping_add(contribution(slot.key.place(self.seed), content_hash(bytes)))
        })
    }

    #[inline]
    fn finish(&mut self, touch: &Touch, tracker: &mut Tracker, out: &mut Vec<u8>) -> Result<(), StoreError> {
        match touch.kind {
            TouchKind::Changed => self.finish_changed(touch, tracker, out)?,
            TouchKind::Inserted => self.finish_inserted(touch.place as u32, tracker, out)?,
            _ if touch.was_counted => {
                let mut head = OperationHead::new(REMOVE, self.identity.id);
                self.slot(touch.place as u32).key.write(&mut head);
                head.append_to(out);
            }
            _ => {}
        }
        Ok(())
    }

    fn free_undo_memory(&mut self, touch: &Touch) {
        if touch.kind == TouchKind::Removed {
            self.slot_mut(touch.place as u32).object = None;
            self.free.push(touch.place as u32);
        }
    }

    fn undo(&mut self, touch: &Touch, tracker: &mut Tracker) {
        let place = touch.place as u32;
        match touch.kind {
            TouchKind::Changed => {
                let before = V::decode(V::VERSION, tracker.kept(touch)).expect("what was encoded is decoded");
                self.slot_mut(place).object = Some(before);
                self.recount(place, touch.hash_before, touch.before_length as usize, tracker);
            }
            TouchKind::Inserted => {
                self.uncount(place, tracker);
                let slot = self.slot_mut(place);
                (slot.object, slot.is_live) = (None, false);
                let key = slot.key;
                self.index.take(&key);
                self.free.push(place);
            }
            _ => {
                let slot = self.slot_mut(place);
                slot.is_live = true;
                let key = slot.key;
                self.index.put(key, place);
                if touch.was_counted {
                    self.count(place, tracker);
                }
            }
        }
    }

    fn apply(
        &mut self,
        operation: u8,
        reader: &mut ChangesReader<'_>,
        tracker: &mut Tracker,
    ) -> Result<(), ChangeError> {
        let at = reader.position();
        if !matches!(operation, PUT | PATCH | REMOVE) {
            return Err(ChangeError::new(at, format!("operation {operation} is none of a map's")));
        }
        let key = K::read(reader)?;
        let applied = match operation {
            PUT => self.apply_put(key, reader, tracker),
            PATCH => self.apply_patch(&key, reader, tracker),
            _ => self.apply_remove(&key, reader, tracker),
        };
        applied.map_err(|flaw| flaw.of_key(&key))
    }

    fn freeze(&mut self, _: &mut Vec<u8>) {
        self.frozen = (0, self.slots_used);
    }

    fn write_frozen(&mut self, tracker: &mut Tracker, out: &mut Vec<u8>, length_max: usize) -> bool {
        let epoch = tracker.preserved.epoch;
        let mut scratch = std::mem::take(&mut tracker.scratch);
        let (mut next, end) = self.frozen;
        let mut slots_scanned = 0;
        while next < end && out.len() < length_max && slots_scanned < SLOTS_PER_STEP_MAX {
            let slot = &mut self.slots[next as usize / TOGETHER][next as usize % TOGETHER];
            if slot.is_live && slot.epoch != epoch {
                slot.epoch = epoch;
                let object = slot.object.as_ref().expect("a live slot has an object");
                let bytes = encoded(object, &mut scratch).expect("an object that was committed can be encoded");
                write_put::<K, V>(&self.identity, &slot.key, bytes, out);
            }
            next += 1;
            slots_scanned += 1;
        }
        tracker.scratch = scratch;
        self.frozen.0 = next;
        next == end
    }

    fn thaw(&mut self) {
        self.frozen = (0, 0);
    }

    fn clear(&mut self) {
        *self = Self::new(self.identity.clone());
    }
}
