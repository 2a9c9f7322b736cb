//! The state of a state-replicated service: typed objects in collections, changed by transactions that give their
//! changes as bytes, which other replicas apply without running the handler.
//!
//! | module | what lives there |
//! |---|---|
//! | [`handles`] | [`Map`], [`OrderedMap`], [`Singleton`], [`Queue`], [`Counter`]: names of collections |
//! | [`transaction`] | [`Transaction`]: reads and changes; commit or roll back |
//! | [`object`] | [`StoreObject`]: what a type must be able to do; the schema layer's types can |
//! | [`record`] | [`Record`]: an object that is kept as its message |
//! | [`fixed`] | [`store_object!`](crate::store_object): plain structs |
//! | [`key`] | keys |
//! | [`changes`] | the bytes that changes are |
//! | [`snapshot`] | the bytes that a whole state is, written piece by piece |
//! | `apply` | changes from elsewhere, checked |
//! | `tracker` | what a transaction has touched; [`Limits`], [`Usage`] |
//! | `collection`, `table`, `queue`, `counter` | the collections themselves |
//! | `hash` | the hash of the state |
//! | [`error`] | [`StoreError`], [`ObjectError`] |
//!
//! Nothing here does I/O, reads a clock, or allocates once its buffers have grown, but for objects that are new or
//! allocate themselves. The order in which anything can be iterated is that of keys or of pushes, never that of a hash.
//!
//! ```
//! # mod gapless { pub use gapless_engine::{store, store_object}; }
//! use gapless::store::{Limits, Store};
//!
//! gapless::store_object! {
//!     pub struct Account = 1, version 1 {
//!         pub balance: i64,
//!         pub owner: [u8; 24],
//!     }
//! }
//!
//! let declare = |store: &mut Store| (store.map::<u64, Account>(1, "accounts"), store.counter(2, "transfers"));
//! let mut leader = Store::new(Limits::default());
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
//! let mut follower = Store::new(Limits::default());
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
pub mod key;
pub mod object;
mod queue;
pub mod record;
pub mod snapshot;
mod table;
mod tracker;
pub mod transaction;

pub use error::{ObjectError, StoreError};
pub use fixed::FixedField;
pub use handles::{Counter, Map, OrderedMap, Queue, Singleton, TableHandle};
pub use key::{ByteKey, Key};
pub use object::StoreObject;
pub use record::Record;
pub use tracker::{Limits, Usage};
pub use transaction::Transaction;

use collection::{Collection, Identity, Kind};
use counter::CounterOf;
use key::sealed::Key as _;
use queue::QueueOf;
use std::any::Any;
use std::ops::RangeBounds;
use table::{HashIndex, OrderedIndex, Table};
use tracker::Tracker;

/// The state: collections of typed objects.
pub struct Store {
    collections: Vec<Box<dyn Collection>>,
    /// Positions by the collections' numbers, plus one; 0 where there is none.
    positions: Vec<u16>,
    tracker: Tracker,
    /// The snapshot under way.
    walk: Option<snapshot::Walk>,
}

impl Store {
    /// An empty store without collections. Limits that are higher than possible are taken for the highest.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let tracker = Tracker { limits: limits.possible(), ..Tracker::default() };
        Self { collections: Vec::new(), positions: Vec::new(), tracker, walk: None }
    }

    /// Declares a map from `K` to `V`, number `id`.
    ///
    /// # Panics
    /// If there is a collection of this number; so do the other declarations.
    pub fn map<K: Key, V: StoreObject>(&mut self, id: u16, name: &str) -> Map<K, V> {
        let identity = self.identity(id, name, Kind::Table, K::KIND, Some((V::TYPE, V::VERSION)));
        Map::new(self.declare(Table::<K, V, HashIndex<K>>::new(identity)))
    }

    /// Declares a map whose keys can be walked in order.
    ///
    /// # Panics
    /// As [`Self::map`].
    pub fn ordered_map<K: Key, V: StoreObject>(&mut self, id: u16, name: &str) -> OrderedMap<K, V> {
        let identity = self.identity(id, name, Kind::Table, K::KIND, Some((V::TYPE, V::VERSION)));
        OrderedMap::new(self.declare(Table::<K, V, OrderedIndex<K>>::new(identity)))
    }

    /// Declares a place for one object, which is not there until it is set.
    ///
    /// # Panics
    /// As [`Self::map`].
    pub fn singleton<V: StoreObject>(&mut self, id: u16, name: &str) -> Singleton<V> {
        let identity = self.identity(id, name, Kind::Table, <()>::KIND, Some((V::TYPE, V::VERSION)));
        Singleton::new(self.declare(Table::<(), V, OrderedIndex<()>>::new(identity)))
    }

    /// Declares a queue.
    ///
    /// # Panics
    /// As [`Self::map`].
    pub fn queue<V: StoreObject>(&mut self, id: u16, name: &str) -> Queue<V> {
        let identity = self.identity(id, name, Kind::Queue, <()>::KIND, Some((V::TYPE, V::VERSION)));
        Queue::new(self.declare(QueueOf::<V>::new(identity)))
    }

    /// Declares a counter, which is 0.
    ///
    /// # Panics
    /// As [`Self::map`].
    pub fn counter(&mut self, id: u16, name: &str) -> Counter {
        let identity = self.identity(id, name, Kind::Counter, <()>::KIND, None);
        Counter::new(self.declare(CounterOf::new(identity)))
    }

    fn identity(&self, id: u16, name: &str, kind: Kind, key_kind: u8, object: Option<(u64, u16)>) -> Identity {
        let (object_type, version) = object.unwrap_or_default();
        let position = self.collections.len() as u16;
        Identity { id, position, name: name.to_owned(), kind, key_kind, object_type, version }
    }

    fn declare(&mut self, collection: impl Collection) -> u16 {
        let Identity { id, position, ref name, .. } = *collection.identity();
        let place = usize::from(id);
        if self.positions.len() <= place {
            self.positions.resize(place + 1, 0);
        }
        assert_eq!(self.positions[place], 0, "two collections have number {id}, the second is {name}");
        self.positions[place] = position.checked_add(1).expect("a store has less than 65,535 collections");
        self.collections.push(Box::new(collection));
        position
    }

    /// Begins a transaction. Dropping it rolls it back.
    #[inline]
    pub fn begin(&mut self) -> Transaction<'_> {
        self.tracker.begin();
        Transaction::new(self)
    }

    /// The object under a key.
    ///
    /// # Panics
    /// If the handle is another store's; so does every function that takes one.
    #[inline]
    pub fn get<H: TableHandle>(&self, handle: H, key: &H::Key) -> Option<&H::Object> {
        self.table(handle).get(key)
    }

    /// The number of objects in a map.
    pub fn len<H: TableHandle>(&self, handle: H) -> u64 {
        self.table(handle).len()
    }

    /// The objects of an ordered map whose keys are in `range`, in order.
    pub fn range<K: Key, V: StoreObject>(
        &self,
        handle: OrderedMap<K, V>,
        range: impl RangeBounds<K>,
    ) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let table = self.table(handle);
        table.index().0.range(range).map(|(key, slot)| (key, table.object(*slot)))
    }

    /// The keys of a map in order; they are collected and sorted on each call.
    pub fn sorted_keys<K: Key, V: StoreObject>(&self, handle: Map<K, V>) -> Vec<K> {
        self.table(handle).index().sorted_keys()
    }

    /// The number of items in a queue.
    pub fn queue_len<V: StoreObject>(&self, handle: Queue<V>) -> usize {
        self.queue_of(handle).len()
    }

    /// The item that `number` others are before.
    pub fn item<V: StoreObject>(&self, handle: Queue<V>, number: usize) -> Option<&V> {
        self.queue_of(handle).get(number)
    }

    /// The items of a queue from its front on.
    pub fn items<V: StoreObject>(&self, handle: Queue<V>) -> impl Iterator<Item = &V> {
        self.queue_of(handle).iter()
    }

    /// The value of a counter.
    pub fn value(&self, handle: Counter) -> i64 {
        of::<CounterOf>(&*self.collections[handle.position()]).value()
    }

    /// A hash of everything in the store, the same on every replica that holds the same objects, encoded by the same
    /// versions. It is kept up to date by each transaction.
    #[inline]
    #[must_use]
    pub const fn state_hash(&self) -> u64 {
        self.tracker.hash
    }

    /// A hash of what is declared: collections, keys, and the types and versions of objects. Stores that differ in it may
    /// have different hashes of the same state.
    #[must_use]
    pub fn layout_hash(&self) -> u32 {
        let hash = self.collections.iter().fold(0, |hash, collection| {
            let Identity { kind, key_kind, object_type, version, .. } = *collection.identity();
            let what = (kind as u64) << 24 | u64::from(key_kind) << 16 | u64::from(version);
            hash::mix(hash::mix(hash ^ collection.identity().seed()) ^ object_type) ^ what
        });
        hash::mix(hash) as u32
    }

    /// The same hash from every object: as long as a walk over the whole state takes.
    #[must_use]
    pub fn recomputed_state_hash(&self) -> u64 {
        let hashes = self.collections.iter().map(|collection| collection.recomputed_hash());
        hashes.fold(0, u64::wrapping_add)
    }

    /// What the whole store holds.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let memory_bytes = self.collections.iter().map(|collection| collection.usage().memory_bytes).sum();
        Usage { memory_bytes, ..self.tracker.usage }
    }

    /// What each collection holds, by name, in the order of declaration.
    pub fn usages(&self) -> impl Iterator<Item = (&str, Usage)> {
        self.collections.iter().map(|collection| (collection.identity().name.as_str(), collection.usage()))
    }

    /// Removes every object; a snapshot under way is given up.
    pub fn clear(&mut self) {
        self.cancel_snapshot();
        self.collections.iter_mut().for_each(|collection| collection.clear());
        self.tracker.begin();
        (self.tracker.hash, self.tracker.usage) = (0, Usage::default());
    }

    #[inline]
    fn table<H: TableHandle>(&self, handle: H) -> &Table<H::Key, H::Object, H::Index> {
        of(&*self.collections[handle.position()])
    }

    fn queue_of<V: StoreObject>(&self, handle: Queue<V>) -> &QueueOf<V> {
        of(&*self.collections[handle.position()])
    }

    /// Undoes what the open transaction has done.
    fn undo(&mut self) {
        while let Some(touch) = self.tracker.touches.pop() {
            self.collections[usize::from(touch.collection)].undo(&touch, &mut self.tracker);
        }
        self.tracker.begin();
    }

    /// Ends a transaction whose changes are in the state's hash.
    #[inline]
    fn settle(&mut self) {
        if self.tracker.is_to_settle {
            for touch in &self.tracker.touches {
                self.collections[usize::from(touch.collection)].settle(touch);
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
