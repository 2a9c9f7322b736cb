//! Changes, snapshots and transactions that a store refuses, with place and reason; data of other versions.
#![allow(clippy::unwrap_used, reason = "a test says where it failed")]

use gapless_engine::store::{ByteKey, InlineMessage, Map, Store, StoreError, StoreLimits};
use gapless_schema::{Protobuf, Sbe};

include!("../../../gapless-schema/golden/car.rs");

use car::{Car, CarDecoder, CarEncoder, Engine};

mod older {
    gapless_engine::store_object! {
        pub(super) struct Account = 1, version 1 {
            pub(super) balance: i64,
            pub(super) limit: u32,
        }
    }
}

gapless_engine::store_object! {
    #[derive(Debug, PartialEq)]
    struct Account = 1, version 2 {
        balance: i64,
        limit: u32,
        is_closed: bool,
    }
}

gapless_engine::store_object! {
    struct Other = 2, version 1 {
        number: u64,
    }
}

fn accounts() -> (Store, Map<u64, Account>) {
    let mut store = Store::new(StoreLimits::default());
    let accounts = store.map(7, "accounts");
    (store, accounts)
}

fn older_accounts() -> (Store, Map<u64, older::Account>) {
    let mut store = Store::new(StoreLimits::default());
    let accounts = store.map(7, "accounts");
    (store, accounts)
}

fn commit(store: &mut Store, act: impl FnOnce(&mut gapless_engine::store::Transaction<'_>)) -> Vec<u8> {
    let mut changes = Vec::new();
    let mut transaction = store.begin();
    act(&mut transaction);
    transaction.commit(&mut changes).unwrap();
    changes
}

const ACCOUNT: Account = Account { balance: 5, limit: 100, is_closed: false };

#[test]
fn change_of_other_state_is_located() {
    let (mut leader, accounts) = self::accounts();
    let put = commit(&mut leader, |transaction| {
        transaction.insert(accounts, 41, ACCOUNT);
    });
    let patch = commit(&mut leader, |transaction| transaction.get_mut(accounts, &41).unwrap().balance = 6);
    let (mut follower, of_follower) = self::accounts();
    let error = follower.apply(&patch).unwrap_err();
    assert!(matches!(error, StoreError::Changes { offset: 15, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("accounts (7), key 41") && text.contains("no object that could be patched"), "{text}");
    follower.apply(&put).unwrap();
    commit(&mut follower, |transaction| transaction.get_mut(of_follower, &41).unwrap().limit = 1);
    let text = follower.apply(&patch).unwrap_err().to_string();
    assert!(text.contains("key 41") && text.contains("another state"), "{text}");
    assert_eq!(follower.get(of_follower, &41), Some(&Account { limit: 1, ..ACCOUNT }));

    let remove = commit(&mut leader, |transaction| assert!(transaction.remove(accounts, &41)));
    follower.apply(&remove).unwrap();
    let text = follower.apply(&remove).unwrap_err().to_string();
    assert!(text.contains("no object that could be removed"), "{text}");
}

#[test]
fn undeclared_collection_fails() {
    let (mut leader, accounts) = accounts();
    let changes = commit(&mut leader, |transaction| {
        transaction.insert(accounts, 1, ACCOUNT);
    });
    let mut follower = Store::new(StoreLimits::default());
    follower.map::<u64, Account>(6, "others");
    let text = follower.apply(&changes).unwrap_err().to_string();
    assert!(text.contains("collection 7") && text.contains("no such collection"), "{text}");
    let mut snapshot = Vec::new();
    leader.write_snapshot(&mut snapshot).unwrap();
    let text = follower.read_snapshot(&mut &snapshot[..]).unwrap_err().to_string();
    assert!(text.contains("collection 7") && text.contains("not declared"), "{text}");
    let mut follower = Store::new(StoreLimits::default());
    follower.map::<u64, Other>(7, "accounts");
    let text = follower.read_snapshot(&mut &snapshot[..]).unwrap_err().to_string();
    assert!(text.contains("of other types"), "{text}");
}

#[test]
fn snapshot_may_lack_a_collection() {
    let (mut leader, accounts) = accounts();
    commit(&mut leader, |transaction| {
        transaction.insert(accounts, 1, ACCOUNT);
    });
    let mut snapshot = Vec::new();
    leader.write_snapshot(&mut snapshot).unwrap();
    let (mut newer, of_newer) = self::accounts();
    newer.queue::<Other>(8, "new");
    newer.counter(9, "newer");
    newer.read_snapshot(&mut &snapshot[..]).unwrap();
    assert_eq!(newer.get(of_newer, &1), Some(&ACCOUNT));
    assert_eq!(newer.state_hash(), leader.state_hash());
}

#[test]
fn older_objects_are_readable() {
    let (mut old, of_old) = older_accounts();
    let put = commit(&mut old, |transaction| {
        transaction.insert(of_old, 1, older::Account { balance: 5, limit: 100 });
    });
    let mut snapshot = Vec::new();
    old.write_snapshot(&mut snapshot).unwrap();
    let patch = commit(&mut old, |transaction| transaction.get_mut(of_old, &1).unwrap().balance = 9);

    let (mut new, of_new) = accounts();
    new.apply(&put).unwrap();
    new.apply(&patch).unwrap();
    let expected = Account { balance: 9, ..ACCOUNT };
    assert_eq!(new.get(of_new, &1), Some(&expected));
    new.read_snapshot(&mut &snapshot[..]).unwrap();
    new.apply(&patch).unwrap();
    assert_eq!(new.get(of_new, &1), Some(&expected));
    assert_eq!(new.state_hash(), new.recomputed_state_hash());

    let newer = commit(&mut new, |transaction| transaction.get_mut(of_new, &1).unwrap().balance = 10);
    let text = old.apply(&newer).unwrap_err().to_string();
    assert!(text.contains("version 2 of the object is newer than 1"), "{text}");
    snapshot.clear();
    new.write_snapshot(&mut snapshot).unwrap();
    let text = old.read_snapshot(&mut &snapshot[..]).unwrap_err().to_string();
    assert!(text.contains("accounts (7)") && text.contains("version 2"), "{text}");
}

#[test]
fn limit_fails_the_transaction() {
    let limits = StoreLimits { objects_max: 2, bytes_max: 40, object_length_max: 20, changes_length_max: 60 };
    let mut store = Store::new(limits);
    let accounts = store.map::<u64, Account>(7, "accounts");
    let texts = store.map::<u64, InlineMessage<CarDecoder<'static>, 300>>(8, "cars");
    let queue = store.queue::<Account>(9, "queue");
    let first = commit(&mut store, |transaction| {
        transaction.insert(accounts, 1, ACCOUNT);
    });
    let hash = store.state_hash();
    let mut refused = |act: &dyn Fn(&mut gapless_engine::store::Transaction<'_>), expected: &str| {
        let mut changes = Vec::new();
        let mut transaction = store.begin();
        transaction.get_mut(accounts, &1).unwrap().balance = 77;
        act(&mut transaction);
        let text = transaction.commit(&mut changes).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
        assert!(changes.is_empty());
        assert_eq!((store.state_hash(), store.usage().objects), (hash, 1));
        assert_eq!(store.get(accounts, &1), Some(&ACCOUNT));
    };
    refused(
        &|transaction| {
            transaction.insert(texts, 1, car(&[0; 10]));
        },
        "an object of collection cars",
    );
    refused(
        &|transaction| {
            transaction.insert(accounts, 2, ACCOUNT);
            transaction.push(queue, ACCOUNT).unwrap();
        },
        "changes would be",
    );
    let mut other = Store::new(StoreLimits { changes_length_max: 1000, ..limits });
    other.map::<u64, Account>(7, "accounts");
    other.apply(&first).unwrap();
    let second = accounts_changes(2..4);
    let text = other.apply(&second).unwrap_err().to_string();
    assert!(text.contains("objects would be 3, the limit is 2"), "{text}");
    let mut narrow = Store::new(StoreLimits { bytes_max: 20, ..limits });
    narrow.map::<u64, Account>(7, "accounts");
    let text = narrow.apply(&second).unwrap_err().to_string();
    assert!(text.contains("bytes of all objects would be 26, the limit is 20"), "{text}");
    assert_eq!(narrow.usage().objects, 0);
}

fn accounts_changes(keys: std::ops::Range<u64>) -> Vec<u8> {
    let (mut store, accounts) = accounts();
    commit(&mut store, |transaction| {
        for key in keys {
            transaction.insert(accounts, key, ACCOUNT);
        }
    })
}

fn car(code: &[u8]) -> InlineMessage<CarDecoder<'static>, 300> {
    let model = String::from_utf8_lossy(code).replace('\0', "x");
    InlineMessage::written::<CarEncoder<'static>>(|car| {
        car.serial_number(5).model_year(2005);
        car.manufacturer("MANUFACTURER")?;
        car.model(&model).map(|_| ())
    })
    .unwrap()
}

#[test]
fn counter_overflow_is_an_error() {
    let mut store = Store::new(StoreLimits::default());
    let counter = store.counter(1, "counter");
    let mut transaction = store.begin();
    assert_eq!(transaction.add(counter, i64::MAX).unwrap(), i64::MAX);
    assert!(transaction.add(counter, 1).unwrap_err().to_string().contains("the limit is"));
    assert_eq!(transaction.add(counter, -1).unwrap(), i64::MAX - 1);
    drop(transaction);
    assert_eq!((store.value(counter), store.state_hash()), (0, 0));
}

#[test]
fn messages_are_stored_in_any_form() {
    let declare = |store: &mut Store| {
        let records = store.map::<ByteKey, InlineMessage<CarDecoder<'static>, 300>>(1, "records");
        (records, store.map::<u64, Sbe<Car>>(2, "sbe"), store.map::<u64, Protobuf<Car>>(3, "protobuf"))
    };
    let (mut leader, mut follower) = (Store::new(StoreLimits::default()), Store::new(StoreLimits::default()));
    let (records, sbe, protobuf) = declare(&mut leader);
    let of_follower = declare(&mut follower);
    let key = ByteKey::new(b"first").unwrap();
    let whole = Car {
        serial_number: Some(9),
        engine: Engine { capacity: Some(4), ..Engine::default() },
        some_numbers: (0..50).collect(),
        model: "MODEL".to_owned(),
        ..Car::default()
    };
    let put = commit(&mut leader, |transaction| {
        transaction.insert(records, key, car(b"MODEL"));
        transaction.insert(sbe, 1, Sbe(whole.clone()));
        transaction.insert(protobuf, 1, Protobuf(whole.clone()));
    });
    let changed = commit(&mut leader, |transaction| {
        let record = transaction.get_mut(records, &key).unwrap();
        record.overwrite(8, 77_i32.to_le_bytes()).unwrap();
        let refused = record.overwrite(record.bytes().len() - 3, [0; 4]).unwrap_err().to_string();
        assert!(refused.contains("Car") && refused.contains("4 bytes"), "{refused}");
        transaction.get_mut(sbe, &1).unwrap().0.serial_number = Some(10);
        transaction.get_mut(protobuf, &1).unwrap().0.serial_number = Some(10);
    });
    assert!(changed.len() < put.len() / 3, "patches: {} of {} bytes", changed.len(), put.len());
    follower.apply(&put).unwrap();
    follower.apply(&changed).unwrap();
    assert_eq!(follower.state_hash(), leader.state_hash());
    assert_eq!(follower.state_hash(), follower.recomputed_state_hash());
    let record = follower.get(of_follower.0, &key).unwrap();
    assert_eq!(record.read().unwrap().serial_number(), Some(77));
    assert_eq!(record.read().unwrap().model(), b"MODEL");
    let expected = Car { serial_number: Some(10), ..whole };
    assert_eq!(follower.get(of_follower.1, &1).unwrap().0, expected);
    assert_eq!(follower.get(of_follower.2, &1).unwrap().0, expected);
    let before = leader.state_hash();
    let mut transaction = leader.begin();
    transaction.get_mut(sbe, &1).unwrap().0.model.clear();
    transaction.remove(records, &key);
    transaction.roll_back();
    assert_eq!((leader.state_hash(), leader.recomputed_state_hash()), (before, before));
    assert_eq!(leader.get(sbe, &1).unwrap().0, expected);
}

#[test]
#[should_panic(expected = "two collections have number 3")]
fn duplicate_number_panics() {
    let mut store = Store::new(StoreLimits::default());
    store.counter(3, "first");
    store.counter(3, "second");
}

#[test]
fn snapshot_is_of_its_begin() {
    let (mut store, accounts) = accounts();
    for first in (0..50_000).step_by(1000) {
        commit(&mut store, |transaction| {
            for key in first..first + 1000 {
                transaction.insert(accounts, key, Account { balance: key as i64, ..ACCOUNT });
            }
        });
    }
    let hash = store.state_hash();
    let mut snapshot = Vec::new();
    store.begin_snapshot(&mut snapshot).unwrap();
    assert!(store.begin_snapshot(&mut Vec::new()).unwrap_err().to_string().contains("under way"));
    let (mut steps, mut key, mut longest) = (0, 0, 0);
    loop {
        commit(&mut store, |transaction| {
            transaction.get_mut(accounts, &key).unwrap().balance = -1;
            transaction.get_mut(accounts, &(49_999 - key)).unwrap().balance = -2;
            transaction.remove(accounts, &(25_000 + key));
            transaction.insert(accounts, 60_000 + key, ACCOUNT);
        });
        let before = snapshot.len();
        let is_last = store.snapshot_step(&mut snapshot, 10_000).unwrap();
        longest = longest.max(snapshot.len() - before);
        (steps, key) = (steps + 1, key + 1);
        if is_last {
            break;
        }
    }
    assert!(steps > 100 && longest < 15_000, "{steps} steps, the longest piece has {longest} bytes");
    assert_eq!(store.preserved_bytes(), 0);
    let (mut other, of_other) = self::accounts();
    other.read_snapshot(&mut &snapshot[..]).unwrap();
    assert_eq!((other.state_hash(), other.len(of_other)), (hash, 50_000));
    assert_eq!(other.get(of_other, &0).unwrap().balance, 0);
    assert_ne!(store.state_hash(), hash);
    assert_eq!(store.state_hash(), store.recomputed_state_hash());
    assert!(store.snapshot_step(&mut snapshot, 1).unwrap_err().to_string().contains("no snapshot"));
}
