//! State of a state-replicated service: typed objects in collections. Transactions change them and encode their
//! changes, which other replicas apply without running the handler.
//!
//! The store does no I/O and reads no clock. Once its buffers have grown it allocates only for new objects, and for
//! objects that allocate themselves. Iteration is in the order of keys or pushes, never in hash order.
//!
//! ```
//! # mod gapless { pub use gapless_engine::{store, store_object}; }
//! use gapless::store::{StoreLimits, Store};
//!
//! gapless::store_object! {
//!     pub struct Account = 1, version 1 {
//!         pub balance: i64,
//!         pub owner: [u8; 24],
//!     }
//! }
//!
//! let declare = |store: &mut Store| (store.map::<u64, Account>(1, "accounts"), store.counter(2, "transfers"));
//! let mut leader = Store::new(StoreLimits::default());
//! let (accounts, transfers) = declare(&mut leader);
//!
//! let mut changes = Vec::new();
//! let mut transaction = leader.begin();
//! transaction.insert(accounts, 7, Account { balance: 100, owner: [0; 24] });
//! transaction.insert(accounts, 8, Account { balance: 0, owner: [0; 24] });
//! transaction.commit(&mut changes)?;
//!
//! let first = changes.len();
//! let mut transaction = leader.begin();
//! transaction.get_mut(accounts, &7).expect("it is there").balance -= 30;
//! transaction.get_mut(accounts, &8).expect("it is there").balance += 30;
//! transaction.add(transfers, 1)?;
//! transaction.commit(&mut changes)?;
//!
//! let mut follower = Store::new(StoreLimits::default());
//! let (accounts, _) = declare(&mut follower);
//! follower.apply(&changes[..first])?;
//! follower.apply(&changes[first..])?;
//! assert_eq!(follower.get(accounts, &8).expect("it is there").balance, 30);
//! assert_eq!(follower.state_hash(), leader.state_hash());
//!
//! // A transaction that is dropped, also by a panic, has never been.
//! leader.begin().remove(accounts, &7);
//! assert_eq!(follower.state_hash(), leader.state_hash());
//! # Ok::<(), gapless::store::StoreError>(())
//! ```

mod apply;
pub mod changes;
mod collection;
mod counter;
pub mod error;
pub mod fixed;
pub mod handles;
pub(crate) mod hash;
pub mod inline_message;
pub mod key;
pub mod object;
mod queue;
pub mod snapshot;
mod table;
mod tracker;
pub mod transaction;

pub use error::{ObjectError, StoreError};
pub use fixed::FixedField;
pub use handles::{Counter, Map, OrderedMap, Queue, Singleton, TableHandle};
pub use inline_message::InlineMessage;
pub use key::{ByteKey, StoreKey};
pub use object::StoreObject;
pub use tracker::{StoreLimits, StoreUsage};
pub use transaction::Transaction;

use collection::{Collection, CollectionIdentity, CollectionKind};
use counter::CounterCollection;
use key::sealed::Key as _;
use queue::QueueCollection;
use std::any::Any;
use std::ops::RangeBounds;
use table::{HashIndex, OrderedIndex, TableCollection};
use tracker::Tracker;

/// The state: collections of typed objects.
pub struct Store {
    collections: Vec<Box<dyn Collection>>,
    /// Index + 1 by number; 0 if undeclared.
    positions: Vec<u16>,
    tracker: Tracker,
    progress: Option<snapshot::SnapshotProgress>,
}

impl Store {
    /// Limits above the possible maximum are clamped.
    #[must_use]
    pub fn new(limits: StoreLimits) -> Self {
        let tracker = Tracker { limits: limits.clamped(), ..Tracker::default() };
        Self { collections: Vec::new(), positions: Vec::new(), tracker, progress: None }
    }

    /// Declares a map from `K` to `V` with number `id`.
    ///
    /// # Panics
    /// The number is taken. The same holds for the other declarations.
    pub fn map<K: StoreKey, V: StoreObject>(&mut self, id: u16, name: &str) -> Map<K, V> {
        let identity = self.identity(id, name, CollectionKind::Table, K::KIND, Some((V::TYPE, V::VERSION)));
        Map::new(self.declare(TableCollection::<K, V, HashIndex<K>>::new(identity)))
    }

    /// Declares a map with ordered iteration.
    ///
    /// # Panics
    /// As [`Self::map`].
    pub fn ordered_map<K: StoreKey, V: StoreObject>(&mut self, id: u16, name: &str) -> OrderedMap<K, V> {
        let identity = self.identity(id, name, CollectionKind::Table, K::KIND, Some((V::TYPE, V::VERSION)));
        OrderedMap::new(self.declare(TableCollection::<K, V, OrderedIndex<K>>::new(identity)))
    }

    /// Declares a place for one object, initially absent.
    ///
    /// # Panics
    /// As [`Self::map`].
    pub fn singleton<V: StoreObject>(&mut self, id: u16, name: &str) -> Singleton<V> {
        let identity = self.identity(id, name, CollectionKind::Table, <()>::KIND, Some((V::TYPE, V::VERSION)));
        Singleton::new(self.declare(TableCollection::<(), V, OrderedIndex<()>>::new(identity)))
    }

    pub fn queue<V: StoreObject>(&mut self, id: u16, name: &str) -> Queue<V> {
        let identity = self.identity(id, name, CollectionKind::Queue, <()>::KIND, Some((V::TYPE, V::VERSION)));
        Queue::new(self.declare(QueueCollection::<V>::new(identity)))
    }

    /// Initially 0.
    ///
    /// # Panics
    /// As [`Self::map`].
    pub fn counter(&mut self, id: u16, name: &str) -> Counter {
        let identity = self.identity(id, name, CollectionKind::Counter, <()>::KIND, None);
        Counter::new(self.declare(CounterCollection::new(identity)))
    }

    fn identity(
        &self,
        id: u16,
        name: &str,
        kind: CollectionKind,
        key_kind: u8,
        object: Option<(u64, u16)>,
    ) -> CollectionIdentity {
        let (object_type, version) = object.unwrap_or_default();
        let position = self.collections.len() as u16;
        CollectionIdentity { id, position, name: name.to_owned(), kind, key_kind, object_type, version }
    }

    fn declare(&mut self, collection: impl Collection) -> u16 {
        let CollectionIdentity { id, position, ref name, .. } = *collection.identity();
        let place = usize::from(id);
        if self.positions.len() <= place {
            self.positions.resize(place + 1, 0);
        }
        assert_eq!(self.positions[place], 0, "two collections have number {id}, the second is {name}");
        self.positions[place] = position.checked_add(1).expect("a store has less than 65,535 collections");
        self.collections.push(Box::new(collection));
        position
    }

    /// Dropping the transaction rolls it back.
    #[inline]
    pub fn begin(&mut self) -> Transaction<'_> {
        self.tracker.begin();
        Transaction::new(self)
    }

    /// Returns the object under a key.
    ///
    /// # Panics
    /// The handle belongs to another store. The same holds for all functions that take one.
    #[inline]
    pub fn get<H: TableHandle>(&self, handle: H, key: &H::Key) -> Option<&H::Object> {
        self.table(handle).get(key)
    }

    pub fn len<H: TableHandle>(&self, handle: H) -> u64 {
        self.table(handle).len()
    }

    pub fn range<K: StoreKey, V: StoreObject>(
        &self,
        handle: OrderedMap<K, V>,
        range: impl RangeBounds<K>,
    ) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let table = self.table(handle);
        table.index().0.range(range).map(|(key, slot)| (key, table.object(*slot)))
    }

    /// Collects and sorts the keys on each call.
    pub fn sorted_keys<K: StoreKey, V: StoreObject>(&self, handle: Map<K, V>) -> Vec<K> {
        self.table(handle).index().sorted_keys()
    }

    pub fn queue_len<V: StoreObject>(&self, handle: Queue<V>) -> usize {
        self.queue_of(handle).len()
    }

    /// Returns an item; 0 is the front.
    pub fn item<V: StoreObject>(&self, handle: Queue<V>, number: usize) -> Option<&V> {
        self.queue_of(handle).get(number)
    }

    pub fn items<V: StoreObject>(&self, handle: Queue<V>) -> impl Iterator<Item = &V> {
        self.queue_of(handle).iter()
    }

    pub fn value(&self, handle: Counter) -> i64 {
        of::<CounterCollection>(&*self.collections[handle.position()]).value()
    }

    /// Returns a hash that is equal on all replicas with the same objects, encoded by the same versions.
    #[inline]
    #[must_use]
    pub const fn state_hash(&self) -> u64 {
        self.tracker.hash
    }

    /// Hash of the declarations. Stores with different layouts may hash the same state differently.
    #[must_use]
    pub fn layout_hash(&self) -> u32 {
        let hash = self.collections.iter().fold(0, |hash, collection| {
            let CollectionIdentity { kind, key_kind, object_type, version, .. } = *collection.identity();
            let what = (kind as u64) << 24 | u64::from(key_kind) << 16 | u64::from(version);
            hash::mix(hash::mix(hash ^ collection.identity().seed()) ^ object_type) ^ what
        });
        hash::mix(hash) as u32
    }

    /// Walks over every object.
    #[must_use]
    pub fn recomputed_state_hash(&self) -> u64 {
        let hashes = self.collections.iter().map(|collection| collection.recomputed_hash());
        hashes.fold(0, u64::wrapping_add)
    }

    #[must_use]
    pub fn usage(&self) -> StoreUsage {
        let memory_bytes = self.collections.iter().map(|collection| collection.usage().memory_bytes).sum();
        StoreUsage { memory_bytes, ..self.tracker.usage }
    }

    pub fn usages(&self) -> impl Iterator<Item = (&str, StoreUsage)> {
        self.collections.iter().map(|collection| (collection.identity().name.as_str(), collection.usage()))
    }

    /// Removes every object; cancels a snapshot in progress.
    pub fn clear(&mut self) {
        self.cancel_snapshot();
        self.collections.iter_mut().for_each(|collection| collection.clear());
        self.tracker.begin();
        (self.tracker.hash, self.tracker.usage) = (0, StoreUsage::default());
    }

    #[inline]
    fn table<H: TableHandle>(&self, handle: H) -> &TableCollection<H::Key, H::Object, H::Index> {
        of(&*self.collections[handle.position()])
    }

    fn queue_of<V: StoreObject>(&self, handle: Queue<V>) -> &QueueCollection<V> {
        of(&*self.collections[handle.position()])
    }

    fn undo(&mut self) {
        while let Some(touch) = self.tracker.touches.pop() {
            self.collections[usize::from(touch.collection)].undo(&touch, &mut self.tracker);
        }
        self.tracker.begin();
    }

    #[inline]
    fn end_transaction(&mut self) {
        if self.tracker.has_undo_memory {
            for touch in &self.tracker.touches {
                self.collections[usize::from(touch.collection)].free_undo_memory(touch);
            }
        }
        self.tracker.touches.clear();
    }
}

const FOREIGN: &str = "the handle is of another store";

#[inline]
fn of<C: Collection>(collection: &dyn Collection) -> &C {
    (collection as &dyn Any).downcast_ref().expect(FOREIGN)
}

#[inline]
fn of_mut<C: Collection>(collection: &mut dyn Collection) -> &mut C {
    (collection as &mut dyn Any).downcast_mut().expect(FOREIGN)
}
