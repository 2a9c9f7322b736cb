//! Handles of collections, small and `Copy`: valid for every store with the same collections declared in the same
//! order.

use super::key::StoreKey;
use super::object::StoreObject;
use super::table::{HashIndex, OrderedIndex};
use std::marker::PhantomData;

pub(super) mod sealed {
    use super::super::key::StoreKey;
    use super::super::table::TableIndex;

    pub trait CollectionHandle: Copy {
        type Index: TableIndex<Self::IndexKey>;
        type IndexKey: StoreKey;
        fn position(self) -> usize;
    }
}

/// Handle of a collection with keys: [`Map`], [`OrderedMap`], [`Singleton`].
pub trait TableHandle: sealed::CollectionHandle<IndexKey = Self::Key> {
    type Key: StoreKey;
    type Object: StoreObject;
}

macro_rules! handle {
    ($(#[$attribute:meta])* $name:ident<$($parameter:ident),*>) => {
        $(#[$attribute])*
        pub struct $name<$($parameter),*> {
            position: u16,
            types: PhantomData<fn() -> ($($parameter,)*)>,
        }

        impl<$($parameter),*> Clone for $name<$($parameter),*> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<$($parameter),*> Copy for $name<$($parameter),*> {}

        impl<$($parameter),*> $name<$($parameter),*> {
            pub(super) const fn new(position: u16) -> Self {
                Self { position, types: PhantomData }
            }
        }
    };
}

handle! {
    /// Objects by key, unordered.
    Map<K, V>
}
handle! {
    /// Objects by key, in key order.
    OrderedMap<K, V>
}
handle! {
    /// One object, under the key `()`.
    Singleton<V>
}
handle! {
    /// First-in, first-out queue of objects.
    Queue<V>
}

/// Number that transactions add to.
#[derive(Clone, Copy)]
pub struct Counter {
    position: u16,
}

impl Counter {
    pub(super) const fn new(position: u16) -> Self {
        Self { position }
    }

    pub(super) const fn position(self) -> usize {
        self.position as usize
    }
}

impl<V> Queue<V> {
    pub(super) const fn position(self) -> usize {
        self.position as usize
    }
}

impl<K: StoreKey, V: StoreObject> sealed::CollectionHandle for Map<K, V> {
    type Index = HashIndex<K>;
    type IndexKey = K;

    #[inline(always)]
    fn position(self) -> usize {
        usize::from(self.position)
    }
}

impl<K: StoreKey, V: StoreObject> TableHandle for Map<K, V> {
    type Key = K;
    type Object = V;
}

impl<K: StoreKey, V: StoreObject> sealed::CollectionHandle for OrderedMap<K, V> {
    type Index = OrderedIndex<K>;
    type IndexKey = K;

    #[inline(always)]
    fn position(self) -> usize {
        usize::from(self.position)
    }
}

impl<K: StoreKey, V: StoreObject> TableHandle for OrderedMap<K, V> {
    type Key = K;
    type Object = V;
}

impl<V: StoreObject> sealed::CollectionHandle for Singleton<V> {
    type Index = OrderedIndex<()>;
    type IndexKey = ();

    #[inline(always)]
    fn position(self) -> usize {
        usize::from(self.position)
    }
}

impl<V: StoreObject> TableHandle for Singleton<V> {
    type Key = ();
    type Object = V;
}
