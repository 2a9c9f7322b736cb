//! Changes are applied, and snapshots read, as a whole or not at all. The stored hash is that of the objects.

use crate::input::{FuzzInput, assert_says_something};
use crate::messages::car::{Car, CarDecoder};
use gapless_engine::store::{ByteKey, Counter, InlineMessage, Map, OrderedMap, Queue, Singleton, Store, StoreLimits};
use gapless_schema::{Protobuf, Sbe};
use gapless_wire::checksum::crc32c;

gapless_engine::store_object! {
    #[derive(Debug, PartialEq)]
    pub struct Flags = 9, version 2 {
        pub number: u64,
        pub are_set: [bool; 5],
    }
}

#[derive(Clone, Copy)]
pub struct FuzzCollections {
    pub flags: Map<u64, Flags>,
    pub cars: OrderedMap<ByteKey, Sbe<Car>>,
    pub records: Map<u128, InlineMessage<CarDecoder<'static>, 400>>,
    pub title: Singleton<Protobuf<Car>>,
    pub queue: Queue<Sbe<Car>>,
    pub counter: Counter,
}

#[must_use]
pub fn store() -> (Store, FuzzCollections) {
    let limits =
        StoreLimits { objects_max: 500, bytes_max: 1 << 20, object_length_max: 1 << 16, changes_length_max: 1 << 16 };
    let mut store = Store::new(limits);
    let handles = declare(&mut store);
    (store, handles)
}

pub fn declare(store: &mut Store) -> FuzzCollections {
    FuzzCollections {
        flags: store.map(1, "flags"),
        cars: store.ordered_map(2, "cars"),
        records: store.map(300, "records"),
        title: store.singleton(4, "title"),
        queue: store.queue(5, "queue"),
        counter: store.counter(6, "counter"),
    }
}

/// Each change follows its length of two bytes.
pub fn changes(bytes: &[u8]) {
    let (mut store, handles) = store();
    let mut input = FuzzInput(bytes);
    while !input.is_empty() {
        let length = usize::from(input.u16());
        let before = (store.state_hash(), store.usage().objects, store.value(handles.counter));
        match store.apply(input.bytes(length)) {
            Ok(()) => assert!(length > 0, "nothing is no changes"),
            Err(error) => {
                assert_says_something(&error);
                assert_eq!((store.state_hash(), store.usage().objects, store.value(handles.counter)), before);
            }
        }
        assert_eq!(store.state_hash(), store.recomputed_state_hash(), "the hash is that of the objects");
    }
    copies(&mut store);
}

pub fn snapshot(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    heal(&mut bytes);
    let (mut store, _) = store();
    match store.read_snapshot(&mut &bytes[..]) {
        Ok(()) => {
            assert_eq!(store.state_hash(), store.recomputed_state_hash(), "the hash is that of the objects");
            copies(&mut store);
        }
        Err(error) => {
            assert_says_something(&error);
            assert_eq!((store.state_hash(), store.recomputed_state_hash(), store.usage().objects), (0, 0, 0));
        }
    }
}

fn copies(from: &mut Store) {
    let mut bytes = Vec::new();
    from.write_snapshot(&mut bytes).expect("memory can be written to");
    let (mut to, handles) = store();
    to.read_snapshot(&mut &bytes[..]).expect("what was written is read");
    assert_eq!((to.state_hash(), to.usage().objects), (from.state_hash(), from.usage().objects));
    let mut transaction = to.begin();
    for key in transaction.sorted_keys(handles.flags) {
        transaction.get_mut(handles.flags, &key).expect("it is there").number ^= 1;
        transaction.remove(handles.flags, &key);
    }
    let cars: Vec<ByteKey> = transaction.range(handles.cars, ..).map(|(key, _)| *key).collect();
    for key in cars {
        transaction.get_mut(handles.cars, &key).expect("it is there").0.model.clear();
    }
    while transaction.pop(handles.queue).is_some() {}
    transaction.roll_back();
    assert_eq!((to.state_hash(), to.recomputed_state_hash()), (from.state_hash(), from.state_hash()));
}

/// Bytes before the pieces, and before the body of each.
const MAGIC_LENGTH: usize = 8;
const PIECE_HEAD: usize = 13;

fn heal(bytes: &mut [u8]) {
    let mut rest = bytes.get_mut(MAGIC_LENGTH..).unwrap_or_default();
    for number in 0_u32.. {
        if rest.len() < PIECE_HEAD {
            return;
        }
        let length = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
        let length = length.min(rest.len() - PIECE_HEAD);
        rest[..4].copy_from_slice(&(length as u32).to_le_bytes());
        rest[8..12].copy_from_slice(&number.to_le_bytes());
        let sum = crc32c(&rest[8..PIECE_HEAD + length]);
        rest[4..8].copy_from_slice(&sum.to_le_bytes());
        rest = &mut rest[PIECE_HEAD + length..];
    }
}
